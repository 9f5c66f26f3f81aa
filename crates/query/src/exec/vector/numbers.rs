//! Arithmetic of integers and floats.

use braid_scalar::Bound;
use braid_types::SqlType;
use datafusion::arrow::array::ArrowNativeTypeOp;
use datafusion::arrow::datatypes::{
    ArrowPrimitiveType, DataType, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
};

use super::compile::{Compiled, Compiler};
use super::value::{Fit, Unfit, Vector, each, try_each, try_zip};

/// The operators of this file.
#[derive(Clone, Copy, PartialEq)]
enum Op {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    Neg,
    Abs,
}

fn operator(name: &str, args: usize) -> Option<Op> {
    Some(match (name, args) {
        ("+", 2) => Op::Add,
        ("-", 2) => Op::Sub,
        ("*", 2) => Op::Mul,
        ("/", 2) => Op::Div,
        ("%" | "mod", 2) => Op::Rem,
        ("-", 1) => Op::Neg,
        ("abs" | "@", 1) => Op::Abs,
        _ => return None,
    })
}

/// The kernel of an operator of numbers that are not numeric.
pub(super) fn call(
    compiler: &Compiler<'_>,
    bound: &Bound,
    name: &str,
    args: &[Bound],
) -> Option<Compiled> {
    let op = operator(name, args.len())?;
    let number = |ty: &SqlType| ty.is_integer() || matches!(ty, SqlType::Float4 | SqlType::Float8);
    if !args.iter().all(|a| number(a.ty())) {
        return None;
    }
    let float = !bound.ty().is_integer();
    if float && op == Op::Rem || !number(bound.ty()) {
        return None;
    }
    let mut parts = Vec::new();
    for arg in args {
        parts.push(widened(compiler.compile(arg)?, bound.ty())?);
    }
    let ty = parts[0].ty.clone();
    let all: Vec<&Compiled> = parts.iter().collect();
    let kernel = Compiled::new(ty.clone(), &all, |_, _| Err(Unfit));
    let always = float && matches!(op, Op::Neg | Op::Abs);
    let kernel = if always { kernel } else { kernel.risky() };
    Some(kernel.code(move |frame, ctx| {
        let a = parts[0].run(frame, ctx)?;
        let b = match parts.get(1) {
            Some(part) => part.run(frame, ctx)?,
            None => a.clone(),
        };
        let rows = frame.rows();
        match &ty {
            DataType::Int16 => integers::<Int16Type>(op, &a, &b, rows),
            DataType::Int32 => integers::<Int32Type>(op, &a, &b, rows),
            DataType::Int64 => integers::<Int64Type>(op, &a, &b, rows),
            DataType::Float32 => singles(op, &a, &b, rows),
            DataType::Float64 => doubles(op, &a, &b, rows),
            _ => Err(Unfit),
        }
    }))
}

/// Float operators take one `real` and one `double precision` too.
fn widened(kernel: Compiled, ty: &SqlType) -> Option<Compiled> {
    let wanted = crate::arrow_form::data_type(ty);
    if kernel.ty == wanted {
        return Some(kernel);
    }
    if (&kernel.ty, &wanted) != (&DataType::Float32, &DataType::Float64) {
        return None;
    }
    let shell = Compiled::new(wanted.clone(), &[&kernel], |_, _| Err(Unfit));
    Some(shell.code(move |frame, ctx| {
        each::<Float32Type, Float64Type>(&kernel.run(frame, ctx)?, &wanted, f64::from)
    }))
}

fn integers<T: ArrowPrimitiveType>(op: Op, a: &Vector, b: &Vector, rows: usize) -> Fit<Vector>
where
    T::Native: ArrowNativeTypeOp + Ord,
{
    let out = &T::DATA_TYPE;
    let pair = (a, b);
    match op {
        Op::Add => try_zip::<T, T, T>(pair, rows, out, |x, y| x.add_checked(y).ok()),
        Op::Sub => try_zip::<T, T, T>(pair, rows, out, |x, y| x.sub_checked(y).ok()),
        Op::Mul => try_zip::<T, T, T>(pair, rows, out, |x, y| x.mul_checked(y).ok()),
        Op::Div => try_zip::<T, T, T>(pair, rows, out, |x, y| x.div_checked(y).ok()),
        Op::Rem => try_zip::<T, T, T>(pair, rows, out, |x, y| match y.is_zero() {
            true => None,
            false => Some(x.mod_wrapping(y)),
        }),
        Op::Neg => try_each::<T, T>(a, out, |x| x.neg_checked().ok()),
        Op::Abs => try_each::<T, T>(a, out, |x| match x < T::Native::ZERO {
            true => x.neg_checked().ok(),
            false => Some(x),
        }),
    }
}

/// Sums, products and quotients of doubles. What overflows, underflows or is divided by zero is
/// left to the row form.
fn doubles(op: Op, a: &Vector, b: &Vector, rows: usize) -> Fit<Vector> {
    type T = Float64Type;
    let out = &DataType::Float64;
    let pair = (a, b);
    let plain = |v: f64| v.is_finite().then_some(v);
    match op {
        Op::Add => try_zip::<T, T, T>(pair, rows, out, |x, y| plain(x + y)),
        Op::Sub => try_zip::<T, T, T>(pair, rows, out, |x, y| plain(x - y)),
        Op::Mul => try_zip::<T, T, T>(pair, rows, out, |x, y| {
            plain(x * y).filter(|v| *v != 0.0 || x == 0.0 || y == 0.0)
        }),
        Op::Div => try_zip::<T, T, T>(pair, rows, out, |x, y| {
            plain(x / y).filter(|v| *v != 0.0 || (x == 0.0 && y != 0.0))
        }),
        Op::Neg => each::<T, T>(a, out, |x| -x),
        Op::Abs => each::<T, T>(a, out, f64::abs),
        Op::Rem => Err(Unfit),
    }
}

fn singles(op: Op, a: &Vector, b: &Vector, rows: usize) -> Fit<Vector> {
    type T = Float32Type;
    let out = &DataType::Float32;
    let pair = (a, b);
    let plain = |v: f32| v.is_finite().then_some(v);
    match op {
        Op::Add => try_zip::<T, T, T>(pair, rows, out, |x, y| plain(x + y)),
        Op::Sub => try_zip::<T, T, T>(pair, rows, out, |x, y| plain(x - y)),
        Op::Mul => try_zip::<T, T, T>(pair, rows, out, |x, y| {
            plain(x * y).filter(|v| *v != 0.0 || x == 0.0 || y == 0.0)
        }),
        Op::Div => try_zip::<T, T, T>(pair, rows, out, |x, y| {
            plain(x / y).filter(|v| *v != 0.0 || (x == 0.0 && y != 0.0))
        }),
        Op::Neg => each::<T, T>(a, out, |x| -x),
        Op::Abs => each::<T, T>(a, out, f32::abs),
        Op::Rem => Err(Unfit),
    }
}
