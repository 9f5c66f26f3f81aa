//! Trigonometry in degrees, exact where the answer is: `sind(30)` is 0.5.
//!
//! An angle is brought into the first quadrant, and what is computed there is scaled so that it is
//! right at 0, 30, 45, 60 and 90 degrees, as PostgreSQL does it.

use std::f64::consts::PI;

use braid_types::{Datum, SqlError, SqlResult, SqlState};

use super::f64_of;
use crate::registry::Table;

const RADIANS: f64 = PI / 180.0;

fn outside() -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "input is out of range")
}

/// The sine, for 0 to 30 degrees.
fn low_sine(x: f64) -> f64 {
    (x * RADIANS).sin() / (30.0 * RADIANS).sin() / 2.0
}

/// The cosine, for 0 to 60 degrees.
fn low_cosine(x: f64) -> f64 {
    let less = |x: f64| 1.0 - (x * RADIANS).cos();
    1.0 - less(x) / less(60.0) / 2.0
}

/// The sine in the first quadrant.
fn sine(x: f64) -> f64 {
    if x <= 30.0 { low_sine(x) } else { low_cosine(90.0 - x) }
}

/// The cosine in the first quadrant.
fn cosine(x: f64) -> f64 {
    if x <= 60.0 { low_cosine(x) } else { low_sine(90.0 - x) }
}

/// The arc sine of 0 to 1.
fn arc_sine(x: f64) -> f64 {
    match x <= 0.5 {
        true => x.asin() / 0.5_f64.asin() * 30.0,
        false => 90.0 - x.acos() / 0.5_f64.acos() * 60.0,
    }
}

/// The arc cosine of 0 to 1.
fn arc_cosine(x: f64) -> f64 {
    match x <= 0.5 {
        true => 90.0 - x.asin() / 0.5_f64.asin() * 30.0,
        false => x.acos() / 0.5_f64.acos() * 60.0,
    }
}

/// An angle within the first quadrant, and whether it was left of the y axis and below the x axis.
/// A negative zero stays one.
fn reduced(x: f64) -> (f64, bool, bool) {
    let mut x = x % 360.0;
    let mut below = x < 0.0;
    x = signed(below, x);
    if x > 180.0 {
        x = 360.0 - x;
        below = !below;
    }
    if x > 90.0 { (180.0 - x, true, below) } else { (x, false, below) }
}

fn signed(negative: bool, x: f64) -> f64 {
    if negative { -x } else { x }
}

/// No negative zero.
fn plain_zero(x: f64) -> f64 {
    if x == 0.0 { 0.0 } else { x }
}

fn angle(a: &[Datum], f: fn(f64) -> f64) -> SqlResult<Datum> {
    let x = f64_of(&a[0]);
    match x {
        x if x.is_nan() => Ok(Datum::Float8(x)),
        x if x.is_infinite() => Err(outside()),
        x => Ok(Datum::Float8(f(x))),
    }
}

fn arc(a: &[Datum], f: fn(f64) -> f64) -> SqlResult<Datum> {
    let x = f64_of(&a[0]);
    match x {
        x if x.is_nan() => Ok(Datum::Float8(x)),
        x if x.abs() > 1.0 => Err(outside()),
        x => Ok(Datum::Float8(f(x))),
    }
}

/// Adds the functions of this file.
pub(super) fn fill(t: &mut Table) {
    t.add("sind(float8) float8 -- sine of degrees", |a, _| {
        angle(a, |x| {
            let (x, _, below) = reduced(x);
            signed(below, sine(x))
        })
    });
    t.add("cosd(float8) float8 -- cosine of degrees", |a, _| {
        angle(a, |x| {
            let (x, left, _) = reduced(x);
            signed(left, cosine(x))
        })
    });
    t.add("tand(float8) float8 -- tangent of degrees", |a, _| {
        angle(a, |x| {
            let (x, left, below) = reduced(x);
            let whole = sine(45.0) / cosine(45.0);
            plain_zero(signed(left != below, sine(x) / cosine(x) / whole))
        })
    });
    t.add("cotd(float8) float8 -- cotangent of degrees", |a, _| {
        angle(a, |x| {
            let (x, left, below) = reduced(x);
            let whole = cosine(45.0) / sine(45.0);
            plain_zero(signed(left != below, cosine(x) / sine(x) / whole))
        })
    });
    t.add("asind(float8) float8 -- arc sine in degrees", |a, _| {
        arc(a, |x| if x < 0.0 { -arc_sine(-x) } else { arc_sine(x) })
    });
    t.add("acosd(float8) float8 -- arc cosine in degrees", |a, _| {
        arc(a, |x| if x >= 0.0 { arc_cosine(x) } else { 90.0 + arc_sine(-x) })
    });
    t.add("atand(float8) float8 -- arc tangent in degrees", |a, _| {
        Ok(Datum::Float8(f64_of(&a[0]).atan() / 1.0_f64.atan() * 45.0))
    });
    t.add("atan2d(float8, float8) float8 -- arc tangent of a quotient in degrees", |a, _| {
        Ok(Datum::Float8(f64_of(&a[0]).atan2(f64_of(&a[1])) / 1.0_f64.atan() * 45.0))
    });
}
