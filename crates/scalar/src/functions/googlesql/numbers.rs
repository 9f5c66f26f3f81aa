//! Arithmetic that gives NULL where it fails, and distances of vectors.

use braid_types::{Datum, SqlResult, numeric};

use super::guests::{invalid, or_null};
use crate::functions::numeric_special as special;
use crate::functions::{bool_of, f64_of, i64_of, text_of};
use crate::registry::Table;

/// A finite double of finite ones; else NULL, as an overflow.
fn float(a: &[Datum], compute: fn(f64, f64) -> f64) -> SqlResult<Datum> {
    let (left, right) = (f64_of(&a[0]), f64_of(&a[1]));
    let value = compute(left, right);
    let overflow = value.is_infinite() && left.is_finite() && right.is_finite();
    Ok(if overflow { Datum::Null } else { Datum::Float8(value) })
}

/// An integer, or NULL for an overflow.
fn whole(value: Option<i64>) -> SqlResult<Datum> {
    Ok(value.map_or(Datum::Null, Datum::Int8))
}

/// `X / Y` of doubles; NULL for a divisor of zero.
fn quotient(a: &[Datum]) -> SqlResult<Datum> {
    match f64_of(&a[1]) == 0.0 {
        true => Ok(Datum::Null),
        false => float(a, |x, y| x / y),
    }
}

/// Entries for integers of each width (a double would be the preferred type of all of them),
/// numerics and doubles.
macro_rules! safe {
    ($t:ident, $name:literal, $about:literal, $int:expr, $numeric:expr, $float:expr) => {
        $t.add(concat!($name, "(int8, int8) int8 -- ", $about), |a, _| {
            whole($int(i64_of(&a[0]), i64_of(&a[1])))
        });
        $t.add(concat!($name, "(int4, int4) int8"), |a, _| {
            whole($int(i64_of(&a[0]), i64_of(&a[1])))
        });
        $t.add(concat!($name, "(int2, int2) int8"), |a, _| {
            whole($int(i64_of(&a[0]), i64_of(&a[1])))
        });
        $t.add(concat!($name, "(numeric, numeric) numeric"), |a, _| or_null($numeric(a)));
        $t.add(concat!($name, "(float8, float8) float8"), |a, _| float(a, $float));
    };
}

fn arithmetic(t: &mut Table) {
    safe!(
        t,
        "safe_add",
        "the sum, NULL if it overflows",
        i64::checked_add,
        special::add,
        |x, y| x + y
    );
    safe!(
        t,
        "safe_subtract",
        "the difference, NULL if it overflows",
        i64::checked_sub,
        special::subtract,
        |x, y| x - y
    );
    safe!(
        t,
        "safe_multiply",
        "the product, NULL if it overflows",
        i64::checked_mul,
        special::multiply,
        |x, y| x * y
    );
    t.add(
        "safe_divide(int8, int8) float8 -- the quotient, of integers a double; NULL by zero",
        |a, _| quotient(a),
    );
    t.add("safe_divide(int4, int4) float8", |a, _| quotient(a));
    t.add("safe_divide(int2, int2) float8", |a, _| quotient(a));
    t.add("safe_divide(numeric, numeric) numeric", |a, _| or_null(special::divide(a)));
    t.add("safe_divide(float8, float8) float8", |a, _| quotient(a));
    t.add("safe_negate(int8) int8 -- with the other sign, NULL if that overflows", |a, _| {
        whole(i64_of(&a[0]).checked_neg())
    });
    t.add("safe_negate(int4) int8", |a, _| whole(i64_of(&a[0]).checked_neg()));
    t.add("safe_negate(int2) int8", |a, _| whole(i64_of(&a[0]).checked_neg()));
    t.add("safe_negate(numeric) numeric", |a, _| or_null(special::negate(&a[0])));
    t.add("safe_negate(float8) float8", |a, _| Ok(Datum::Float8(-f64_of(&a[0]))));
}

fn doubles_and_bits(t: &mut Table) {
    t.add("ieee_divide(float8, float8) float8 -- the quotient; infinity or NaN by zero", |a, _| {
        Ok(Datum::Float8(f64_of(&a[0]) / f64_of(&a[1])))
    });
    t.add("is_inf(float8) bool -- whether a double is infinite", |a, _| {
        Ok(Datum::Bool(f64_of(&a[0]).is_infinite()))
    });
    t.add("is_nan(float8) bool -- whether a double is no number", |a, _| {
        Ok(Datum::Bool(f64_of(&a[0]).is_nan()))
    });
    t.add(
        "bit_reverse(int8, bool) int8 -- the bits in reverse; with true the sign stays where it is",
        |a, _| {
            let (value, keep) = (i64_of(&a[0]), bool_of(&a[1]));
            Ok(Datum::Int8(match keep {
                false => value.reverse_bits(),
                // The other 63 bits, within themselves.
                true => {
                    let rest = ((value as u64) << 1).reverse_bits();
                    value & i64::MIN | (rest & i64::MAX as u64) as i64
                }
            }))
        },
    );
    t.add(
        "parse_numeric(text) numeric -- the number that a text says, blanks around it",
        |a, _| {
            let text = text_of(&a[0]).trim();
            match numeric::parse(text) {
                Some(value) => numeric::datum(value),
                None => Err(invalid(format!("invalid numeric: {text}"))),
            }
        },
    );
}

/// Both vectors of a distance.
fn vectors(a: &[Datum]) -> SqlResult<(Vec<f64>, Vec<f64>)> {
    let [left, right] = [&a[0], &a[1]].map(|value| match value {
        Datum::Array(array) if !array.items.iter().any(Datum::is_null) => {
            Some(array.items.iter().map(f64_of).collect::<Vec<f64>>())
        }
        _ => None,
    });
    match (left, right) {
        (Some(left), Some(right)) if left.len() == right.len() => Ok((left, right)),
        (Some(left), Some(right)) => {
            Err(invalid(format!("array length mismatch: {} and {}", left.len(), right.len())))
        }
        _ => Err(invalid("a vector must not hold NULL")),
    }
}

fn dot(left: &[f64], right: &[f64]) -> f64 {
    left.iter().zip(right).map(|(x, y)| x * y).sum()
}

fn distances(t: &mut Table) {
    t.add("dot_product(float8[], float8[]) float8 -- of two vectors", |a, _| {
        let (left, right) = vectors(a)?;
        Ok(Datum::Float8(dot(&left, &right)))
    });
    t.add("euclidean_distance(float8[], float8[]) float8 -- of two vectors", |a, _| {
        let (left, right) = vectors(a)?;
        let squares = left.iter().zip(&right).map(|(x, y)| (x - y) * (x - y));
        Ok(Datum::Float8(squares.sum::<f64>().sqrt()))
    });
    t.add(
        "cosine_distance(float8[], float8[]) float8 -- one less the cosine of the angle between \
         two vectors",
        |a, _| {
            let (left, right) = vectors(a)?;
            let length = (dot(&left, &left) * dot(&right, &right)).sqrt();
            if length == 0.0 {
                return Err(invalid("cosine distance is not defined for a vector of zeros"));
            }
            Ok(Datum::Float8(1.0 - dot(&left, &right) / length))
        },
    );
}

/// Adds the functions of this file.
pub(super) fn fill(t: &mut Table) {
    arithmetic(t);
    doubles_and_bits(t);
    distances(t);
}
