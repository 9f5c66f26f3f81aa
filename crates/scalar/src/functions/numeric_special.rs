//! Arithmetic of `numeric` with NaN and the infinities: the rules of PostgreSQL, case by case.
//!
//! ```text
//!   NaN with anything is NaN     Inf - Inf, Inf * 0, Inf / Inf are NaN     x / Inf is 0
//! ```

use braid_types::numeric::{self, BigDecimal};
use braid_types::{Datum, SqlError, SqlResult, SqlState, numeric_functions};

/// A `numeric`.
#[derive(Clone, Copy)]
pub(crate) enum Number<'a> {
    /// A number.
    Finite(&'a BigDecimal),
    /// Not a number.
    Nan,
    /// Infinity; the flag is true for the negative one.
    Inf(bool),
}

/// The number of a `numeric` argument.
pub(crate) fn number(value: &Datum) -> Number<'_> {
    match value {
        Datum::Numeric(v) => Number::Finite(v),
        Datum::NumericInf(negative) => Number::Inf(*negative),
        _ => Number::Nan,
    }
}

use Number::{Finite, Inf, Nan};

fn sign(value: &BigDecimal) -> i8 {
    numeric::compare(value, &numeric::from_i128(0)) as i8
}

fn infinity(negative: bool) -> SqlResult<Datum> {
    Ok(Datum::NumericInf(negative))
}

fn nan() -> SqlResult<Datum> {
    Ok(Datum::NumericNan)
}

fn zero() -> SqlResult<Datum> {
    numeric::datum(numeric::from_i128(0))
}

fn one() -> SqlResult<Datum> {
    numeric::datum(numeric::from_i128(1))
}

/// Sum.
pub(crate) fn add(a: &[Datum]) -> SqlResult<Datum> {
    match (number(&a[0]), number(&a[1])) {
        (Finite(x), Finite(y)) => numeric::datum(numeric::add(x, y)),
        (Nan, _) | (_, Nan) => nan(),
        (Inf(x), Inf(y)) if x != y => nan(),
        (Inf(x), _) | (_, Inf(x)) => infinity(x),
    }
}

/// Opposite.
pub(crate) fn negate(value: &Datum) -> SqlResult<Datum> {
    match number(value) {
        Finite(x) => numeric::datum(numeric::neg(x)),
        Inf(negative) => infinity(!negative),
        Nan => nan(),
    }
}

/// Difference.
pub(crate) fn subtract(a: &[Datum]) -> SqlResult<Datum> {
    match (number(&a[0]), number(&a[1])) {
        (Finite(x), Finite(y)) => numeric::datum(numeric::sub(x, y)),
        _ => add(&[a[0].clone(), negate(&a[1])?]),
    }
}

/// Product.
pub(crate) fn multiply(a: &[Datum]) -> SqlResult<Datum> {
    match (number(&a[0]), number(&a[1])) {
        (Finite(x), Finite(y)) => numeric::datum(numeric::mul(x, y)),
        (Nan, _) | (_, Nan) => nan(),
        (Inf(x), Inf(y)) => infinity(x != y),
        (Inf(negative), Finite(v)) | (Finite(v), Inf(negative)) => match sign(v) {
            0 => nan(),
            s => infinity(negative != (s < 0)),
        },
    }
}

fn infinite_quotient(negative: bool, divisor: &BigDecimal) -> SqlResult<Datum> {
    match sign(divisor) {
        0 => Err(numeric::division_by_zero()),
        s => infinity(negative != (s < 0)),
    }
}

/// Quotient.
pub(crate) fn divide(a: &[Datum]) -> SqlResult<Datum> {
    match (number(&a[0]), number(&a[1])) {
        (Finite(x), Finite(y)) => numeric::datum(numeric::div(x, y)?),
        (Nan, _) | (_, Nan) | (Inf(_), Inf(_)) => nan(),
        (Inf(negative), Finite(y)) => infinite_quotient(negative, y),
        (Finite(_), Inf(_)) => zero(),
    }
}

/// Quotient without its fraction.
pub(crate) fn divide_whole(a: &[Datum]) -> SqlResult<Datum> {
    match (number(&a[0]), number(&a[1])) {
        (Finite(x), Finite(y)) => numeric::datum(numeric::div_trunc(x, y)?),
        _ => divide(a),
    }
}

/// Remainder.
pub(crate) fn remainder(a: &[Datum]) -> SqlResult<Datum> {
    match (number(&a[0]), number(&a[1])) {
        (Finite(x), Finite(y)) => numeric::datum(numeric::rem(x, y)?),
        (Nan, _) | (_, Nan) | (Inf(_), Inf(_)) => nan(),
        (Inf(_), Finite(y)) if sign(y) == 0 => Err(numeric::division_by_zero()),
        (Inf(_), Finite(_)) => nan(),
        (Finite(_), Inf(_)) => Ok(a[0].clone()),
    }
}

fn invalid(message: &str) -> SqlError {
    SqlError::new(SqlState("2201F"), message)
}

/// Power.
pub(crate) fn power(a: &[Datum]) -> SqlResult<Datum> {
    let unit = numeric::from_i128(1);
    match (number(&a[0]), number(&a[1])) {
        (Finite(x), Finite(y)) => numeric::datum(numeric_functions::power(x, y)?),
        // 1 to any power and any number to 0 are 1, NaN included.
        (Finite(x), _) if numeric::compare(x, &unit).is_eq() => one(),
        (_, Finite(y)) if sign(y) == 0 => one(),
        (Nan, _) | (_, Nan) => nan(),
        (Finite(x), Inf(negative)) if sign(x) == 0 => match negative {
            true => Err(invalid("zero raised to a negative power is undefined")),
            false => zero(),
        },
        (Finite(x), Inf(negative)) => {
            let size = numeric::compare(&x.abs(), &unit);
            match (size.is_eq(), size.is_gt() != negative) {
                (true, _) => one(),
                (_, true) => infinity(false),
                _ => zero(),
            }
        }
        (Inf(_), Inf(negative)) => {
            if negative {
                zero()
            } else {
                infinity(false)
            }
        }
        (Inf(base_negative), Finite(y)) => {
            let whole = numeric::trunc(y, 0);
            if base_negative && numeric::compare(&whole, y).is_ne() {
                return Err(invalid(
                    "a negative number raised to a non-integer power yields a complex result",
                ));
            }
            if sign(y) < 0 {
                return zero();
            }
            if !base_negative {
                return infinity(false);
            }
            let two = numeric::from_i128(2);
            infinity(sign(&numeric::rem(&whole, &two)?) != 0)
        }
    }
}

/// Logarithm to a base.
pub(crate) fn logarithm(base: &Datum, value: &Datum) -> SqlResult<Datum> {
    let negative =
        || SqlError::new(SqlState("2201E"), "cannot take logarithm of a negative number");
    match (number(base), number(value)) {
        (Finite(b), Finite(v)) => numeric::datum(numeric_functions::log(b, v)?),
        (Nan, _) | (_, Nan) => nan(),
        (Inf(true), _) | (_, Inf(true)) => Err(negative()),
        (Inf(_), Inf(_)) => nan(),
        (Inf(_), Finite(v)) | (Finite(v), Inf(_)) if sign(v) < 0 => Err(negative()),
        (Inf(_), Finite(v)) | (Finite(v), Inf(_)) if sign(v) == 0 => {
            Err(SqlError::new(SqlState("2201E"), "cannot take logarithm of zero"))
        }
        (Inf(_), Finite(_)) => zero(),
        (Finite(_), Inf(_)) => infinity(false),
    }
}

/// A function of one number; what it gives for the infinities.
pub(crate) fn unary(
    value: &Datum,
    finite: fn(&BigDecimal) -> SqlResult<BigDecimal>,
    infinite: fn(bool) -> SqlResult<Datum>,
) -> SqlResult<Datum> {
    match number(value) {
        Finite(x) => numeric::datum(finite(x)?),
        Inf(negative) => infinite(negative),
        Nan => nan(),
    }
}

/// `sqrt`.
pub(crate) fn square_root(value: &Datum) -> SqlResult<Datum> {
    unary(value, numeric::sqrt, |negative| match negative {
        true => Err(invalid("cannot take square root of a negative number")),
        false => Ok(Datum::NumericInf(false)),
    })
}

/// `exp`.
pub(crate) fn exponential(value: &Datum) -> SqlResult<Datum> {
    unary(value, numeric_functions::exp, |negative| match negative {
        true => numeric::datum(numeric::from_i128(0)),
        false => Ok(Datum::NumericInf(false)),
    })
}

/// `ln`.
pub(crate) fn natural_logarithm(value: &Datum) -> SqlResult<Datum> {
    unary(value, numeric_functions::ln, |negative| match negative {
        true => Err(SqlError::new(SqlState("2201E"), "cannot take logarithm of a negative number")),
        false => Ok(Datum::NumericInf(false)),
    })
}
