//! Numerics whose scale nobody knows beforehand: sums, averages, products with them.
//!
//! Such a value travels in the packed form, with its own scale. One of up to 32 digits is read as
//! an integer and a scale, and compared or multiplied so; a batch with larger ones, with NaN or
//! with infinities is for the row form.

use std::cmp::Ordering;
use std::sync::Arc;

use braid_scalar::{Bound, CmpOp};
use braid_types::{SqlType, push_numeric, small_numeric};
use datafusion::arrow::array::{Array, AsArray, BinaryBuilder, BooleanArray};
use datafusion::arrow::datatypes::{DataType, Decimal128Type};

use super::compile::{Compiled, Compiler};
use super::value::{Fit, Unfit, Vector};
use crate::arrow_form::DECIMAL_NAN;

/// An integer and its digits behind the point; `None` is NULL.
type Number = Option<(i128, u8)>;

/// The numbers of a column, or the one of all rows.
fn numbers(value: &Vector) -> Fit<Vec<Number>> {
    let array = value.inner();
    let at = |at: usize, number: &dyn Fn(usize) -> Fit<(i128, u8)>| match array.is_null(at) {
        true => Ok(None),
        false => number(at).map(Some),
    };
    let rows = 0..array.len();
    match array.data_type() {
        DataType::Binary => {
            let values = array.as_binary_opt::<i32>().ok_or(Unfit)?;
            let number = |at: usize| small_numeric(values.value(at)).ok_or(Unfit);
            rows.map(|n| at(n, &number)).collect()
        }
        DataType::Decimal128(_, scale) => {
            let scale = u8::try_from(*scale).map_err(|_| Unfit)?;
            let values = array.as_primitive_opt::<Decimal128Type>().ok_or(Unfit)?;
            let number = |at: usize| match values.value(at) {
                DECIMAL_NAN => Err(Unfit),
                value => Ok((value, scale)),
            };
            rows.map(|n| at(n, &number)).collect()
        }
        _ => Err(Unfit),
    }
}

/// `f` of both numbers of each row, unless one is NULL.
fn over_pairs<T>(
    (a, b): (&Vector, &Vector),
    f: impl Fn((i128, u8), (i128, u8)) -> Fit<T>,
) -> Fit<Vec<Option<T>>> {
    let (x, y) = (numbers(a)?, numbers(b)?);
    let rows = match (a, b) {
        (Vector::Same(_), Vector::Each(_)) => y.len(),
        _ => x.len(),
    };
    let of = |side: &Vector, all: &[Number], row: usize| match side {
        Vector::Each(_) => all[row],
        Vector::Same(_) => all[0],
    };
    let pair = |row: usize| match (of(a, &x, row), of(b, &y, row)) {
        (Some(l), Some(r)) => f(l, r).map(Some),
        _ => Ok(None),
    };
    (0..rows).map(pair).collect()
}

fn order((l, l_scale): (i128, u8), (r, r_scale): (i128, u8)) -> Fit<Ordering> {
    let raised = |v: i128, by: u8| 10i128.checked_pow(by.into()).and_then(|p| v.checked_mul(p));
    let scale = l_scale.max(r_scale);
    let (l, r) = (raised(l, scale - l_scale), raised(r, scale - r_scale));
    Ok(l.ok_or(Unfit)?.cmp(&r.ok_or(Unfit)?))
}

/// Both operands, if they are numerics of which one at least is packed.
fn operands(compiler: &Compiler<'_>, left: &Bound, right: &Bound) -> Option<(Compiled, Compiled)> {
    if ![left, right].iter().all(|side| matches!(side.ty(), SqlType::Numeric(_))) {
        return None;
    }
    let (left, right) = (compiler.compile(left)?, compiler.compile(right)?);
    let both = [&left.ty, &right.ty];
    let known = both.iter().all(|ty| matches!(ty, DataType::Binary | DataType::Decimal128(..)));
    (known && both.contains(&&DataType::Binary)).then_some((left, right))
}

/// A comparison.
pub(super) fn compare(
    compiler: &Compiler<'_>,
    op: CmpOp,
    left: &Bound,
    right: &Bound,
) -> Option<Compiled> {
    let (left, right) = operands(compiler, left, right)?;
    let shell = Compiled::new(DataType::Boolean, &[&left, &right], |_, _| Err(Unfit));
    Some(shell.risky().code(move |frame, ctx| {
        let (l, r) = (left.run(frame, ctx)?, right.run(frame, ctx)?);
        let truths = over_pairs((&l, &r), |l, r| Ok(op.holds(order(l, r)?)))?;
        Ok(Vector::joined(&l, &r, Arc::new(BooleanArray::from(truths))))
    }))
}

/// A product: its scale is the sum of those of its factors.
pub(super) fn product(compiler: &Compiler<'_>, a: &Bound, b: &Bound) -> Option<Compiled> {
    let (a, b) = operands(compiler, a, b)?;
    let shell = Compiled::new(DataType::Binary, &[&a, &b], |_, _| Err(Unfit));
    Some(shell.risky().code(move |frame, ctx| {
        let (l, r) = (a.run(frame, ctx)?, b.run(frame, ctx)?);
        let product = |(l, l_scale): (i128, u8), (r, r_scale): (i128, u8)| {
            let number = l.checked_mul(r).ok_or(Unfit)?;
            Ok((number, u16::from(l_scale) + u16::from(r_scale)))
        };
        let products = over_pairs((&l, &r), product)?;
        let mut out = BinaryBuilder::with_capacity(products.len(), products.len() * 16);
        let mut bytes = Vec::new();
        for product in products {
            bytes.clear();
            match product {
                None => out.append_null(),
                Some((number, scale)) if push_numeric(number, scale, &mut bytes) => {
                    out.append_value(&bytes);
                }
                Some(_) => return Err(Unfit),
            }
        }
        Ok(Vector::joined(&l, &r, Arc::new(out.finish())))
    }))
}
