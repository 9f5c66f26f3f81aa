//! Arithmetic of numeric where the digits behind the point are known beforehand.
//!
//! ```text
//!   price numeric(15,2)   (1 - discount) of discount numeric(15,2)   their product
//!   Decimal128, scale 2   scale 2, at most 16 digits                 scale 4, at most 31 digits
//! ```
//! Scales and digits of results are PostgreSQL's, and follow from those of the operands; so a
//! result that can have up to 38 digits cannot overflow its 128 bits, and one up to 76 digits not
//! its 256. What can have more, and quotients, whose scale depends on the values, have no kernel.

use std::sync::Arc;

use braid_scalar::Bound;
use braid_types::{Datum, SqlType, push_numeric};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, BinaryBuilder, new_null_array};
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Decimal256Type, i256};

use super::compile::{Compiled, Compiler};
use super::packed;
use super::value::{Fit, Unfit, Vector, each, zip};
use crate::arrow_form::{self, DECIMAL_NAN, WIDE_NAN};

/// Number of decimal digits, at least one.
pub(super) fn digits_of(value: i128) -> u16 {
    value.unsigned_abs().checked_ilog10().map_or(1, |n| n as u16 + 1)
}

fn power(n: u8) -> i128 {
    10i128.pow(u32::from(n))
}

/// The carrier for so many digits.
fn carrier(digits: u16, scale: u8) -> Option<DataType> {
    match digits {
        ..=38 if scale <= 38 => Some(arrow_form::decimal(scale)),
        ..=76 if scale <= 76 => Some(DataType::Decimal256(76, scale as i8)),
        _ => None,
    }
}

/// The same values in another carrier that loses nothing, display scales included.
pub(super) fn carried(kernel: Compiled, to: &DataType) -> Option<Compiled> {
    if kernel.ty == *to {
        return Some(kernel);
    }
    let digits = kernel.digits;
    let mut shell = Compiled::new(to.clone(), &[&kernel], |_, _| Err(Unfit)).digits(digits);
    shell.null = kernel.null;
    let out = to.clone();
    if kernel.null {
        return Some(shell.code(move |_, _| Ok(Vector::Same(new_null_array(&out, 1)))));
    }
    match (&kernel.ty, to) {
        (DataType::Decimal128(_, a), DataType::Decimal256(_, b)) if a == b => {
            Some(shell.code(move |frame, ctx| widened(&kernel.run(frame, ctx)?, &out)))
        }
        (DataType::Decimal128(..) | DataType::Decimal256(..), DataType::Binary) => {
            let scale = kernel.scale()?;
            Some(shell.code(move |frame, ctx| {
                let value = kernel.run(frame, ctx)?;
                Ok(value.with(packed(value.inner(), scale)?))
            }))
        }
        _ => None,
    }
}

fn widened(value: &Vector, out: &DataType) -> Fit<Vector> {
    each::<Decimal128Type, Decimal256Type>(value, out, |v| match v {
        DECIMAL_NAN => WIDE_NAN,
        v => i256::from_i128(v),
    })
}

/// The packed form of decimals.
fn packed(array: &ArrayRef, scale: u8) -> Fit<ArrayRef> {
    let mut builder = BinaryBuilder::with_capacity(array.len(), array.len() * 16);
    let mut bytes = Vec::new();
    let narrow = array.as_primitive_opt::<Decimal128Type>();
    let wide = array.as_primitive_opt::<Decimal256Type>();
    for at in 0..array.len() {
        if array.is_null(at) {
            builder.append_null();
            continue;
        }
        let number = match (narrow, wide) {
            (Some(values), _) => values.value(at),
            (_, Some(values)) if values.value(at) == WIDE_NAN => DECIMAL_NAN,
            (_, Some(values)) => values.value(at).to_i128().ok_or(Unfit)?,
            _ => return Err(Unfit),
        };
        bytes.clear();
        match number {
            DECIMAL_NAN => arrow_form::pack(&Datum::NumericNan, &mut bytes),
            number if push_numeric(number, u16::from(scale), &mut bytes) => {}
            _ => return Err(Unfit),
        }
        builder.append_value(&bytes);
    }
    Ok(Arc::new(builder.finish()))
}

/// Values with more digits behind the point. The carrier has room for them.
fn scaled(kernel: Compiled, scale: u8) -> Option<Compiled> {
    let more = scale.checked_sub(kernel.scale()?)?;
    if more == 0 {
        return Some(kernel);
    }
    let digits = kernel.digits + u16::from(more);
    let out = carrier(digits, scale)?;
    let shell = Compiled::new(out.clone(), &[&kernel], |_, _| Err(Unfit)).digits(digits);
    let factor = i256::from_i128(10).checked_pow(u32::from(more))?;
    let small = (more <= 38).then(|| power(more));
    Some(match (&kernel.ty, &out, small) {
        (DataType::Decimal128(..), DataType::Decimal128(..), Some(factor)) => {
            shell.code(move |frame, ctx| {
                let value = kernel.run(frame, ctx)?;
                each::<Decimal128Type, Decimal128Type>(&value, &out, |v| match v {
                    DECIMAL_NAN => v,
                    v => v.wrapping_mul(factor),
                })
            })
        }
        _ => {
            let wide = carried_wide(kernel)?;
            shell.code(move |frame, ctx| {
                let value = wide.run(frame, ctx)?;
                each::<Decimal256Type, Decimal256Type>(&value, &out, |v| match v {
                    WIDE_NAN => v,
                    v => v.wrapping_mul(factor),
                })
            })
        }
    })
}

/// The same in 256 bits.
fn carried_wide(kernel: Compiled) -> Option<Compiled> {
    let scale = kernel.scale()?;
    carried(kernel, &DataType::Decimal256(76, scale as i8))
}

/// Both sides at one scale in one carrier.
pub(super) fn aligned(left: Compiled, right: Compiled) -> Option<(Compiled, Compiled)> {
    let scale = left.scale()?.max(right.scale()?);
    let (left, right) = (scaled(left, scale)?, scaled(right, scale)?);
    if left.ty == right.ty {
        return Some((left, right));
    }
    Some((carried_wide(left)?, carried_wide(right)?))
}

/// The kernel of an operator of numerics.
pub(super) fn call(
    compiler: &Compiler<'_>,
    bound: &Bound,
    name: &str,
    args: &[Bound],
) -> Option<Compiled> {
    let numeric = |ty: &SqlType| matches!(ty, SqlType::Numeric(_));
    if !numeric(bound.ty()) || !args.iter().all(|a| numeric(a.ty())) {
        return None;
    }
    match (name, args) {
        ("+" | "-", [a, b]) => sum(compiler.compile(a)?, compiler.compile(b)?, name == "-"),
        ("*", [a, b]) => product(compiler.compile(a)?, compiler.compile(b)?)
            .or_else(|| packed::product(compiler, a, b)),
        ("-", [a]) => changed(compiler.compile(a)?, i128::wrapping_neg, i256::wrapping_neg),
        ("abs" | "@", [a]) => changed(compiler.compile(a)?, i128::wrapping_abs, i256::wrapping_abs),
        ("+", [a]) => compiler.compile(a),
        _ => None,
    }
}

/// A function of one number that keeps scale and digits.
fn changed(kernel: Compiled, small: fn(i128) -> i128, wide: fn(i256) -> i256) -> Option<Compiled> {
    kernel.scale()?;
    let (ty, digits) = (kernel.ty.clone(), kernel.digits);
    let shell = Compiled::new(ty.clone(), &[&kernel], |_, _| Err(Unfit)).digits(digits);
    Some(shell.code(move |frame, ctx| {
        let value = kernel.run(frame, ctx)?;
        match ty {
            DataType::Decimal128(..) => {
                each::<Decimal128Type, Decimal128Type>(&value, &ty, |v| match v {
                    DECIMAL_NAN => v,
                    v => small(v),
                })
            }
            _ => each::<Decimal256Type, Decimal256Type>(&value, &ty, |v| match v {
                WIDE_NAN => v,
                v => wide(v),
            }),
        }
    }))
}

/// Sum or difference: the larger scale, one digit more before the point.
fn sum(a: Compiled, b: Compiled, minus: bool) -> Option<Compiled> {
    let scale = a.scale()?.max(b.scale()?);
    let whole = |k: &Compiled| k.scale().map(|s| k.digits.saturating_sub(u16::from(s)));
    let digits = whole(&a)?.max(whole(&b)?) + 1 + u16::from(scale);
    let out = carrier(digits, scale)?;
    let (a, b) = (scaled(a, scale)?, scaled(b, scale)?);
    let (a, b) = match out {
        DataType::Decimal128(..) => (a, b),
        _ => (carried_wide(a)?, carried_wide(b)?),
    };
    let shell = Compiled::new(out.clone(), &[&a, &b], |_, _| Err(Unfit)).digits(digits);
    Some(shell.code(move |frame, ctx| {
        let (x, y) = (a.run(frame, ctx)?, b.run(frame, ctx)?);
        let rows = frame.rows();
        match out {
            DataType::Decimal128(..) => {
                type T = Decimal128Type;
                zip::<T, T, T>((&x, &y), rows, &out, |x, y| match (x, y) {
                    (DECIMAL_NAN, _) | (_, DECIMAL_NAN) => DECIMAL_NAN,
                    _ if minus => x.wrapping_sub(y),
                    _ => x.wrapping_add(y),
                })
            }
            _ => {
                type T = Decimal256Type;
                zip::<T, T, T>((&x, &y), rows, &out, |x, y| match (x, y) {
                    (WIDE_NAN, _) | (_, WIDE_NAN) => WIDE_NAN,
                    _ if minus => x.wrapping_sub(y),
                    _ => x.wrapping_add(y),
                })
            }
        }
    }))
}

/// Product: scales and digits add up.
fn product(a: Compiled, b: Compiled) -> Option<Compiled> {
    let scale = a.scale()? + b.scale()?;
    let digits = a.digits + b.digits;
    let out = carrier(digits, scale)?;
    let narrow = |k: &Compiled| matches!(k.ty, DataType::Decimal128(..));
    let both_narrow = narrow(&a) && narrow(&b);
    let (a, b) = if both_narrow { (a, b) } else { (carried_wide(a)?, carried_wide(b)?) };
    let shell = Compiled::new(out.clone(), &[&a, &b], |_, _| Err(Unfit)).digits(digits);
    Some(shell.code(move |frame, ctx| {
        let (x, y) = (a.run(frame, ctx)?, b.run(frame, ctx)?);
        let (pair, rows) = ((&x, &y), frame.rows());
        type Narrow = Decimal128Type;
        type Wide = Decimal256Type;
        match (&out, both_narrow) {
            (DataType::Decimal128(..), _) => {
                zip::<Narrow, Narrow, Narrow>(pair, rows, &out, |x, y| match (x, y) {
                    (DECIMAL_NAN, _) | (_, DECIMAL_NAN) => DECIMAL_NAN,
                    _ => x.wrapping_mul(y),
                })
            }
            (_, true) => zip::<Narrow, Narrow, Wide>(pair, rows, &out, |x, y| match (x, y) {
                (DECIMAL_NAN, _) | (_, DECIMAL_NAN) => WIDE_NAN,
                _ => wide_product(x, y),
            }),
            (_, false) => zip::<Wide, Wide, Wide>(pair, rows, &out, |x, y| match (x, y) {
                (WIDE_NAN, _) | (_, WIDE_NAN) => WIDE_NAN,
                _ => x.wrapping_mul(y),
            }),
        }
    }))
}

/// Most factors are far from their bounds.
fn wide_product(x: i128, y: i128) -> i256 {
    match (i64::try_from(x), i64::try_from(y)) {
        (Ok(x), Ok(y)) => i256::from_i128(i128::from(x) * i128::from(y)),
        _ => i256::from_i128(x).wrapping_mul(i256::from_i128(y)),
    }
}
