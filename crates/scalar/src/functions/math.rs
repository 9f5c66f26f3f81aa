//! Mathematical functions.

use braid_types::{Datum, SqlError, SqlResult, SqlState, numeric, numeric_functions};

use super::{f64_of, i64_of, numeric_special as special};
use crate::EvalContext;
use crate::operators::{float_result, not_underflown, out_of_range};
use crate::registry::{Eval, Table};

fn float(a: &[Datum], f: fn(f64) -> f64) -> SqlResult<Datum> {
    let x = f64_of(&a[0]);
    Ok(Datum::Float8(float_result(f(x), &[x])?))
}

/// Input that the function is not defined for, 22003.
fn outside() -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "input is out of range")
}

fn within(a: &[Datum], inside: fn(f64) -> bool, f: fn(f64) -> f64) -> SqlResult<Datum> {
    let x = f64_of(&a[0]);
    if !x.is_nan() && !inside(x) {
        return Err(outside());
    }
    Ok(Datum::Float8(f(x)))
}

fn angle(a: &[Datum], f: fn(f64) -> f64) -> SqlResult<Datum> {
    within(a, f64::is_finite, f)
}

fn arc(a: &[Datum], f: fn(f64) -> f64) -> SqlResult<Datum> {
    within(a, |x| x.abs() <= 1.0, f)
}

/// Above this, one more or less under the root makes no difference, and the square may overflow.
const LARGE: f64 = 268_435_456.0;

fn inverse_sinh(x: f64) -> f64 {
    match x.is_finite() && x.abs() > LARGE {
        true => (x.abs().ln() + std::f64::consts::LN_2).copysign(x),
        false => x.asinh(),
    }
}

fn inverse_cosh(x: f64) -> f64 {
    // Near 1 what matters is how far from it.
    let above = x - 1.0;
    if (0.0..=1.0).contains(&above) {
        (above + (2.0 * above + above * above).sqrt()).ln_1p()
    } else if x.is_finite() && x > LARGE {
        x.ln() + std::f64::consts::LN_2
    } else {
        x.acosh()
    }
}

fn domain(message: &str) -> SqlError {
    SqlError::new(SqlState("2201E"), message)
}

fn logarithm(a: &[Datum], f: fn(f64) -> f64) -> SqlResult<Datum> {
    let x = f64_of(&a[0]);
    if x == 0.0 {
        return Err(domain("cannot take logarithm of zero"));
    }
    if x < 0.0 {
        return Err(domain("cannot take logarithm of a negative number"));
    }
    Ok(Datum::Float8(f(x)))
}

fn exact(a: &[Datum], f: fn(&numeric::BigDecimal) -> numeric::BigDecimal) -> SqlResult<Datum> {
    match &a[0] {
        Datum::Numeric(x) => numeric::datum(f(x)),
        other => Ok(other.clone()),
    }
}

fn rounding(t: &mut Table) {
    t.add("ceil(float8) float8 -- the next whole number above", |a, _| float(a, f64::ceil));
    t.add("ceiling(float8) float8 -- as `ceil`", |a, _| float(a, f64::ceil));
    t.add("floor(float8) float8 -- the next whole number below", |a, _| float(a, f64::floor));
    t.add(
        "round(float8) float8 -- the nearest whole number, or with so many digits behind the point",
        |a, _| float(a, f64::round_ties_even),
    );
    t.add("trunc(float8) float8 -- cut off towards zero, or behind so many digits", |a, _| {
        float(a, f64::trunc)
    });
    t.add("ceil(numeric) numeric", |a, _| exact(a, |x| numeric::floor(x, true)));
    t.add("ceiling(numeric) numeric", |a, _| exact(a, |x| numeric::floor(x, true)));
    t.add("floor(numeric) numeric", |a, _| exact(a, |x| numeric::floor(x, false)));
    t.add("round(numeric) numeric", |a, _| exact(a, |x| numeric::round(x, 0)));
    t.add("trunc(numeric) numeric", |a, _| exact(a, |x| numeric::trunc(x, 0)));
    t.add("round(numeric, int4) numeric", |a, _| match &a[0] {
        Datum::Numeric(x) => numeric::datum(numeric::round(x, places(&a[1]))),
        other => Ok(other.clone()),
    });
    t.add("trunc(numeric, int4) numeric", |a, _| match &a[0] {
        Datum::Numeric(x) => numeric::datum(numeric::trunc(x, places(&a[1]))),
        other => Ok(other.clone()),
    });
    // NaN is neither above nor below zero.
    t.add("sign(float8) float8 -- -1, 0 or 1", |a, _| {
        float(a, |x| f64::from(i8::from(x > 0.0) - i8::from(x < 0.0)))
    });
    t.add("sign(numeric) numeric", |a, _| {
        special::unary(
            &a[0],
            |x| {
                let sign = numeric::compare(x, &numeric::from_i128(0)) as i8;
                Ok(numeric::from_i128(i128::from(sign)))
            },
            |negative| numeric::datum(numeric::from_i128(if negative { -1 } else { 1 })),
        )
    });
    t.add("scale(numeric) int4 -- digits behind the point", |a, _| match &a[0] {
        Datum::Numeric(x) => Ok(Datum::Int4(numeric::parts(x).1 as i32)),
        _ => Ok(Datum::Null),
    });
    t.add("trim_scale(numeric) numeric -- the same value without zeros at its end", |a, _| {
        exact(a, |x| {
            let (digits, scale) = numeric::normalized(x);
            numeric::BigDecimal::new(digits, scale)
        })
    });
}

fn transcendental(t: &mut Table) {
    t.add("sqrt(float8) float8 -- square root", |a, _| {
        if f64_of(&a[0]) < 0.0 {
            return Err(SqlError::new(
                SqlState("2201F"),
                "cannot take square root of a negative number",
            ));
        }
        float(a, f64::sqrt)
    });
    t.add("sqrt(numeric) numeric", |a, _| special::square_root(&a[0]));
    t.add("cbrt(float8) float8 -- cube root", |a, _| float(a, f64::cbrt));
    t.add("exp(float8) float8 -- e to this power", |a, _| {
        let x = f64_of(&a[0]);
        let result = float_result(x.exp(), &[x])?;
        Ok(Datum::Float8(not_underflown(result, 1.0, x.is_infinite())?))
    });
    t.add("exp(numeric) numeric", |a, _| special::exponential(&a[0]));
    t.add("ln(float8) float8 -- natural logarithm", |a, _| logarithm(a, f64::ln));
    t.add("log(float8) float8 -- logarithm to the base 10, or to the first argument", |a, _| {
        logarithm(a, f64::log10)
    });
    t.add("log10(float8) float8 -- logarithm to the base 10", |a, _| logarithm(a, f64::log10));
    t.add("ln(numeric) numeric", |a, _| special::natural_logarithm(&a[0]));
    let ten: Eval = |a, _| {
        let ten = Datum::Numeric(numeric::from_i128(10).into());
        special::logarithm(&ten, &a[0])
    };
    t.add("log(numeric) numeric", ten);
    t.add("log10(numeric) numeric", ten);
    t.add("log(numeric, numeric) numeric", |a, _| special::logarithm(&a[0], &a[1]));
    t.add("sin(float8) float8 -- sine of an angle in radians", |a, _| angle(a, f64::sin));
    t.add("cos(float8) float8 -- cosine of an angle in radians", |a, _| angle(a, f64::cos));
    t.add("tan(float8) float8 -- tangent of an angle in radians", |a, _| angle(a, f64::tan));
    t.add("cot(float8) float8 -- cotangent of an angle in radians", |a, _| {
        angle(a, |x| 1.0 / x.tan())
    });
    t.add("asin(float8) float8 -- angle of a sine, in radians", |a, _| arc(a, f64::asin));
    t.add("acos(float8) float8 -- angle of a cosine, in radians", |a, _| arc(a, f64::acos));
    t.add("asinh(float8) float8 -- inverse hyperbolic sine", |a, _| float(a, inverse_sinh));
    t.add("acosh(float8) float8 -- inverse hyperbolic cosine", |a, _| {
        within(a, |x| x >= 1.0, inverse_cosh)
    });
    t.add("atanh(float8) float8 -- inverse hyperbolic tangent", |a, _| {
        // Of the absolute value: near -1 the formula loses its digits.
        within(a, |x| x.abs() <= 1.0, |x| x.abs().atanh().copysign(x))
    });
    t.add("atan(float8) float8 -- angle of a tangent, in radians", |a, _| float(a, f64::atan));
    t.add("sinh(float8) float8 -- hyperbolic sine", |a, _| Ok(Datum::Float8(f64_of(&a[0]).sinh())));
    t.add("cosh(float8) float8 -- hyperbolic cosine", |a, _| {
        Ok(Datum::Float8(f64_of(&a[0]).cosh()))
    });
    t.add("tanh(float8) float8 -- hyperbolic tangent", |a, _| float(a, f64::tanh));
    t.add("degrees(float8) float8 -- radians as degrees", |a, _| float(a, f64::to_degrees));
    t.add("radians(float8) float8 -- degrees as radians", |a, _| {
        let x = f64_of(&a[0]);
        let result = x * (std::f64::consts::PI / 180.0);
        Ok(Datum::Float8(not_underflown(float_result(result, &[x])?, x, false)?))
    });
    t.add("atan2(float8, float8) float8 -- angle of the point (x, y), given as y, x", |a, _| {
        Ok(Datum::Float8(f64_of(&a[0]).atan2(f64_of(&a[1]))))
    });
    t.add("pi() float8 -- the number pi", |_, _| Ok(Datum::Float8(std::f64::consts::PI)));
}

fn gcd(mut a: i128, mut b: i128) -> i128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a.abs()
}

fn integers(t: &mut Table) {
    fn fit(v: i128, wide: bool) -> SqlResult<Datum> {
        if wide {
            i64::try_from(v).map(Datum::Int8).map_err(|_| out_of_range("bigint"))
        } else {
            i32::try_from(v).map(Datum::Int4).map_err(|_| out_of_range("integer"))
        }
    }
    fn wide(a: &[Datum], at: usize) -> i128 {
        i128::from(i64_of(&a[at]))
    }
    t.add("gcd(numeric, numeric) numeric -- greatest common divisor", |a, _| {
        match (&a[0], &a[1]) {
            (Datum::Numeric(x), Datum::Numeric(y)) => numeric::datum(numeric_functions::gcd(x, y)),
            _ => Ok(Datum::NumericNan),
        }
    });
    t.add("lcm(numeric, numeric) numeric -- least common multiple", |a, _| match (&a[0], &a[1]) {
        (Datum::Numeric(x), Datum::Numeric(y)) => numeric::datum(numeric_functions::lcm(x, y)?),
        _ => Ok(Datum::NumericNan),
    });
    t.add("gcd(int4, int4) int4", |a, _| fit(gcd(wide(a, 0), wide(a, 1)), false));
    t.add("gcd(int8, int8) int8", |a, _| fit(gcd(wide(a, 0), wide(a, 1)), true));
    fn lcm(a: &[Datum], is_wide: bool) -> SqlResult<Datum> {
        let (x, y) = (wide(a, 0), wide(a, 1));
        if x == 0 || y == 0 {
            return fit(0, is_wide);
        }
        fit((x / gcd(x, y) * y).abs(), is_wide)
    }
    t.add("lcm(int4, int4) int4", |a, _| lcm(a, false));
    t.add("lcm(int8, int8) int8", |a, _| lcm(a, true));
    t.add("factorial(int8) numeric -- product of the whole numbers from 1", |a, _| {
        numeric::datum(numeric_functions::factorial(i64_of(&a[0]))?)
    });
    t.add("numeric_inc(numeric) numeric -- one more", |a, _| {
        special::add(&[a[0].clone(), Datum::Numeric(numeric::from_i128(1).into())])
    });
    t.add(
        "min_scale(numeric) int4 -- digits behind the point that the value needs",
        |a, _| match &a[0] {
            Datum::Numeric(x) => Ok(Datum::Int4(numeric::normalized(x).1 as i32)),
            _ => Ok(Datum::Null),
        },
    );
    t.add(
        "width_bucket(float8, float8, float8, int4) int4 \
         -- which of so many equal parts of a range a value is in",
        |a, _| {
            let (x, low, high, n) = (f64_of(&a[0]), f64_of(&a[1]), f64_of(&a[2]), i64_of(&a[3]));
            if n <= 0 {
                return Err(SqlError::new(SqlState("2201G"), "count must be greater than zero"));
            }
            let bad = |message: &str| SqlError::new(SqlState("2201G"), message);
            if x.is_nan() || low.is_nan() || high.is_nan() {
                return Err(bad("operand, lower bound, and upper bound cannot be NaN"));
            }
            if low.is_infinite() || high.is_infinite() {
                return Err(bad("lower and upper bounds must be finite"));
            }
            if low == high {
                return Err(bad("lower bound cannot equal upper bound"));
            }
            let (below, behind) = match low < high {
                true => (x < low, x >= high),
                false => (x > low, x <= high),
            };
            let bucket = if below {
                0
            } else if behind {
                n + 1
            } else {
                // Halves where the difference of the bounds overflows. A quotient that rounds to 1
                // gives the bucket behind the last, as in PostgreSQL 15.
                let share = match (high - low).is_finite() {
                    true => (x - low) * n as f64 / (high - low),
                    false => (x / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0) * n as f64,
                };
                (share as i64).saturating_add(1)
            };
            i32::try_from(bucket).map(Datum::Int4).map_err(|_| {
                SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "integer out of range")
            })
        },
    );
    let random: Eval = |_, c: &EvalContext| Ok(Datum::Float8(c.session.random()));
    t.add("random() float8 -- a random number from 0 to below 1", random).volatile();
    t.add("setseed(float8) void -- what random() of this session gives from now on", |a, c| {
        let seed = f64_of(&a[0]);
        if !(-1.0..=1.0).contains(&seed) {
            let text = format!("setseed parameter {seed} is out of allowed range [-1,1]");
            return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, text));
        }
        c.session.seed_random(seed);
        Ok(Datum::text(""))
    })
    .volatile();
}

/// Digits behind the point that `round` and `trunc` are asked for, as far as a `numeric` has them.
fn places(value: &Datum) -> i64 {
    i64_of(value).clamp(-131_073, 16_383)
}

/// Adds the functions of this file.
pub(super) fn fill(t: &mut Table) {
    rounding(t);
    transcendental(t);
    integers(t);
}
