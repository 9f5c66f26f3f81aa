//! Conversions between numbers, between dates and timestamps, and names of one type.

use braid_scalar::Bound;
use braid_types::{Datum, MICROS_PER_DAY, SqlType, check_date, check_timestamp, numeric};
use datafusion::arrow::datatypes::{
    ArrowPrimitiveType, DataType, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type,
    Int64Type, UInt32Type,
};

use super::compile::{Compiled, Compiler};
use super::texts;
use super::value::{Fit, Unfit, Vector, each, try_each};
use crate::arrow_form::{self, DECIMAL_NAN};

type Code = Box<dyn Fn(&Vector, &DataType) -> Fit<Vector> + Send + Sync>;

/// The kernel of a conversion.
pub(super) fn cast(compiler: &Compiler<'_>, bound: &Bound, inner: &Bound) -> Option<Compiled> {
    let (from, to) = (inner.ty().clone(), bound.ty().clone());
    let kernel = compiler.compile(inner)?;
    let out = arrow_form::data_type(&to);
    if unchanged(&from, &to) {
        return Some(kernel);
    }
    let number = |ty: &SqlType| {
        ty.is_integer() || matches!(ty, SqlType::Float4 | SqlType::Float8 | SqlType::Numeric(_))
    };
    if number(&from) && number(&to) {
        return match (&from, &to) {
            (_, SqlType::Numeric(_)) => to_numeric(kernel, &from, &to),
            (SqlType::Numeric(_), _) => from_numeric(kernel, out),
            _ => between(kernel, out),
        };
    }
    if from.is_oid_like() && to == SqlType::Int8 {
        let code: Code = Box::new(|v, out| each::<UInt32Type, Int64Type>(v, out, i64::from));
        return Some(coded(kernel, out, code));
    }
    if matches!((&from, &to), (SqlType::Char(_), SqlType::Text | SqlType::Varchar(None))) {
        return texts::unpadded(kernel);
    }
    let code: Code = match (&from, &to) {
        (SqlType::Date, SqlType::Timestamp) => Box::new(|v, out| {
            try_each::<Int32Type, Int64Type>(v, out, |days| match days {
                i32::MAX => Some(i64::MAX),
                i32::MIN => Some(i64::MIN),
                days => check_timestamp(i128::from(days) * i128::from(MICROS_PER_DAY)).ok(),
            })
        }),
        (SqlType::Timestamp, SqlType::Date) => Box::new(|v, out| {
            try_each::<Int64Type, Int32Type>(v, out, |micros| match micros {
                i64::MAX => Some(i32::MAX),
                i64::MIN => Some(i32::MIN),
                micros => check_date(micros.div_euclid(MICROS_PER_DAY)).ok(),
            })
        }),
        _ => return None,
    };
    Some(coded(kernel, out, code).risky())
}

/// Whether the value stays as it is.
fn unchanged(from: &SqlType, to: &SqlType) -> bool {
    let plain = |ty: &SqlType| matches!(ty, SqlType::Text | SqlType::Varchar(_) | SqlType::Name);
    (from == to && to.typmod() < 0)
        || (matches!(from, SqlType::Numeric(_)) && *to == SqlType::Numeric(None))
        || (plain(from) && matches!(to, SqlType::Text | SqlType::Varchar(None)))
}

fn coded(kernel: Compiled, out: DataType, code: Code) -> Compiled {
    let shell = Compiled::new(out.clone(), &[&kernel], |_, _| Err(Unfit));
    shell.code(move |frame, ctx| code(&kernel.run(frame, ctx)?, &out))
}

/// Between integers and floats.
fn between(kernel: Compiled, out: DataType) -> Option<Compiled> {
    use DataType as D;
    macro_rules! each {
        ($from:ty, $to:ty, $f:expr) => {
            (false, Box::new(|v, out| each::<$from, $to>(v, out, $f)))
        };
    }
    macro_rules! check {
        ($from:ty, $to:ty, $f:expr) => {
            (true, Box::new(|v, out| try_each::<$from, $to>(v, out, $f)))
        };
    }
    let (risky, code): (bool, Code) = match (&kernel.ty, &out) {
        (a, b) if a == b => return Some(kernel),
        (D::Int16, D::Int32) => each!(Int16Type, Int32Type, i32::from),
        (D::Int16, D::Int64) => each!(Int16Type, Int64Type, i64::from),
        (D::Int32, D::Int64) => each!(Int32Type, Int64Type, i64::from),
        (D::Int32, D::Int16) => check!(Int32Type, Int16Type, |v| v.try_into().ok()),
        (D::Int64, D::Int16) => check!(Int64Type, Int16Type, |v| v.try_into().ok()),
        (D::Int64, D::Int32) => check!(Int64Type, Int32Type, |v| v.try_into().ok()),
        (D::Int16, D::Float64) => each!(Int16Type, Float64Type, f64::from),
        (D::Int32, D::Float64) => each!(Int32Type, Float64Type, f64::from),
        (D::Int64, D::Float64) => each!(Int64Type, Float64Type, |v| v as f64),
        (D::Int16, D::Float32) => each!(Int16Type, Float32Type, f32::from),
        (D::Int32, D::Float32) => each!(Int32Type, Float32Type, |v| v as f32),
        (D::Int64, D::Float32) => each!(Int64Type, Float32Type, |v| v as f32),
        (D::Float32, D::Float64) => each!(Float32Type, Float64Type, f64::from),
        (D::Float64, D::Int16) => {
            check!(Float64Type, Int16Type, |v| whole(v)?.try_into().ok())
        }
        (D::Float64, D::Int32) => {
            check!(Float64Type, Int32Type, |v| whole(v)?.try_into().ok())
        }
        (D::Float64, D::Int64) => {
            check!(Float64Type, Int64Type, |v| whole(v)?.try_into().ok())
        }
        _ => return None,
    };
    let kernel = coded(kernel, out, code);
    Some(if risky { kernel.risky() } else { kernel })
}

/// Rounded to the even neighbour.
fn whole(value: f64) -> Option<i128> {
    let rounded = value.round_ties_even();
    (rounded.abs() <= 1e19).then_some(rounded as i128)
}

/// An integer as a decimal without digits behind the point.
fn exact(kernel: Compiled) -> Option<Compiled> {
    let (digits, code): (u16, Code) = match kernel.ty {
        DataType::Int16 => {
            (5, Box::new(|v, out| each::<Int16Type, Decimal128Type>(v, out, i128::from)))
        }
        DataType::Int32 => {
            (10, Box::new(|v, out| each::<Int32Type, Decimal128Type>(v, out, i128::from)))
        }
        DataType::Int64 => {
            (19, Box::new(|v, out| each::<Int64Type, Decimal128Type>(v, out, i128::from)))
        }
        _ => return None,
    };
    Some(coded(kernel, arrow_form::decimal(0), code).digits(digits))
}

fn to_numeric(kernel: Compiled, from: &SqlType, to: &SqlType) -> Option<Compiled> {
    let decimal = match from {
        SqlType::Numeric(_) => kernel,
        _ => exact(kernel)?,
    };
    if *to == SqlType::Numeric(None) {
        return Some(decimal);
    }
    // Into a declared type: rounded, and refused where it does not fit.
    let (DataType::Decimal128(_, have), Some(scale), SqlType::Numeric(Some((precision, _)))) =
        (&decimal.ty, arrow_form::decimal_scale(to), to)
    else {
        return None;
    };
    let (have, precision) = (*have as u8, *precision);
    let limit = 10i128.checked_pow(u32::from(precision))?;
    let within = move |v: i128| (v.abs() < limit).then_some(v);
    let code: Code = match have.checked_sub(scale) {
        None => {
            let factor = 10i128.pow(u32::from(scale - have));
            Box::new(move |v, out| {
                try_each::<Decimal128Type, Decimal128Type>(v, out, |v| match v {
                    DECIMAL_NAN => Some(v),
                    v => within(v.checked_mul(factor)?),
                })
            })
        }
        Some(fewer) => {
            let divisor = 10i128.pow(u32::from(fewer));
            Box::new(move |v, out| {
                try_each::<Decimal128Type, Decimal128Type>(v, out, |v| match v {
                    DECIMAL_NAN => Some(v),
                    v => within(rounded(v, divisor)),
                })
            })
        }
    };
    Some(coded(decimal, arrow_form::decimal(scale), code).digits(precision).risky())
}

/// Half away from zero.
fn rounded(value: i128, divisor: i128) -> i128 {
    let (quotient, rest) = (value / divisor, value % divisor);
    match rest.abs() >= divisor - rest.abs() && rest != 0 {
        true => quotient + value.signum(),
        false => quotient,
    }
}

fn from_numeric(kernel: Compiled, out: DataType) -> Option<Compiled> {
    if !matches!(kernel.ty, DataType::Decimal128(..)) {
        return None;
    }
    let scale = kernel.scale()?;
    let divisor = 10i128.pow(u32::from(scale));
    fn integer<T: ArrowPrimitiveType>(divisor: i128) -> Code
    where
        T::Native: TryFrom<i128>,
    {
        Box::new(move |v, out| {
            try_each::<Decimal128Type, T>(v, out, |v| match v {
                DECIMAL_NAN => None,
                v => rounded(v, divisor).try_into().ok(),
            })
        })
    }
    let code: Code = match out {
        DataType::Int16 => integer::<Int16Type>(divisor),
        DataType::Int32 => integer::<Int32Type>(divisor),
        DataType::Int64 => integer::<Int64Type>(divisor),
        DataType::Float64 => Box::new(move |v, out| {
            each::<Decimal128Type, Float64Type>(v, out, |v| double(v, scale, divisor))
        }),
        _ => return None,
    };
    let always = out == DataType::Float64;
    let kernel = coded(kernel, out, code);
    Some(if always { kernel } else { kernel.risky() })
}

/// The nearest double. A quotient of numbers that doubles hold is rounded once.
fn double(value: i128, scale: u8, divisor: i128) -> f64 {
    match value {
        DECIMAL_NAN => f64::NAN,
        v if v.abs() < 1 << 53 && scale <= 22 => v as f64 / divisor as f64,
        v => match arrow_form::from_decimal(v, scale) {
            Datum::Numeric(exact) => numeric::to_f64(&exact),
            _ => f64::NAN,
        },
    }
}
