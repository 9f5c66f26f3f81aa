//! Operators that are not comparisons: arithmetic, concatenation, patterns, jsonb, arrays.

use std::borrow::Cow;

use braid_types::{
    CastContext, Datum, Interval, MICROS_PER_DAY, SqlError, SqlResult, SqlState, SqlType, cast,
    check_date, check_timestamp, civil_from_days, days_from_civil, jsonb, numeric,
};

use crate::functions::numeric_special as special;
use crate::functions::{f64_of, i64_of, interval_of, json_of, path_of, path_step, text_of, words};
use crate::registry::{Eval, Table};
use crate::{EvalContext, pattern};
use braid_types::jsonb::serde_json;

/// `x out of range`, 22003.
pub(crate) fn out_of_range(ty: &str) -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, format!("{ty} out of range"))
}

macro_rules! int_ops {
    ($table:ident, $ty:literal, $full:literal, $variant:ident, $int:ty) => {{
        fn pair(a: &[Datum]) -> ($int, $int) {
            match (&a[0], &a[1]) {
                (Datum::$variant(x), Datum::$variant(y)) => (*x, *y),
                _ => (0, 0),
            }
        }
        fn done(v: Option<$int>) -> SqlResult<Datum> {
            v.map(Datum::$variant).ok_or_else(|| out_of_range($full))
        }
        $table.add(concat!("+(", $ty, ", ", $ty, ") ", $ty), |a, _| {
            let (x, y) = pair(a);
            done(x.checked_add(y))
        });
        $table.add(concat!("-(", $ty, ", ", $ty, ") ", $ty), |a, _| {
            let (x, y) = pair(a);
            done(x.checked_sub(y))
        });
        $table.add(concat!("*(", $ty, ", ", $ty, ") ", $ty), |a, _| {
            let (x, y) = pair(a);
            done(x.checked_mul(y))
        });
        $table.add(concat!("/(", $ty, ", ", $ty, ") ", $ty), |a, _| {
            let (x, y) = pair(a);
            if y == 0 { Err(numeric::division_by_zero()) } else { done(x.checked_div(y)) }
        });
        fn modulo(a: &[Datum], _: &EvalContext) -> SqlResult<Datum> {
            let (x, y) = pair(a);
            if y == 0 {
                Err(numeric::division_by_zero())
            } else {
                Ok(Datum::$variant(x.checked_rem(y).unwrap_or(0)))
            }
        }
        $table.add(concat!("%(", $ty, ", ", $ty, ") ", $ty), modulo);
        $table.add(concat!("mod(", $ty, ", ", $ty, ") ", $ty), modulo);
        $table.add(concat!("&(", $ty, ", ", $ty, ") ", $ty, " -- and of the bits"), |a, _| {
            let (x, y) = pair(a);
            done(Some(x & y))
        });
        $table.add(concat!("|(", $ty, ", ", $ty, ") ", $ty, " -- or of the bits"), |a, _| {
            let (x, y) = pair(a);
            done(Some(x | y))
        });
        $table.add(
            concat!("#(", $ty, ", ", $ty, ") ", $ty, " -- exclusive or of the bits"),
            |a, _| {
                let (x, y) = pair(a);
                done(Some(x ^ y))
            },
        );
        $table.add(concat!("<<(", $ty, ", int4) ", $ty, " -- bits shifted to the left"), |a, _| {
            match (&a[0], &a[1]) {
                // Narrow integers are shifted as 32 bits, as C does it.
                (Datum::$variant(x), Datum::Int4(n)) if size_of::<$int>() < 4 => {
                    done(Some((i64::from(*x) as i32).wrapping_shl(*n as u32) as $int))
                }
                (Datum::$variant(x), Datum::Int4(n)) => done(Some(x.wrapping_shl(*n as u32))),
                _ => Ok(Datum::Null),
            }
        });
        $table.add(
            concat!(">>(", $ty, ", int4) ", $ty, " -- bits shifted to the right"),
            |a, _| match (&a[0], &a[1]) {
                (Datum::$variant(x), Datum::Int4(n)) if size_of::<$int>() < 4 => {
                    done(Some((i64::from(*x) as i32).wrapping_shr(*n as u32) as $int))
                }
                (Datum::$variant(x), Datum::Int4(n)) => done(Some(x.wrapping_shr(*n as u32))),
                _ => Ok(Datum::Null),
            },
        );
        $table.add(concat!("-(", $ty, ") ", $ty), |a, _| match &a[0] {
            Datum::$variant(x) => done(x.checked_neg()),
            _ => Ok(Datum::Null),
        });
        $table.add(concat!("+(", $ty, ") ", $ty), |a, _| Ok(a[0].clone()));
        $table.add(concat!("~(", $ty, ") ", $ty), |a, _| match &a[0] {
            Datum::$variant(x) => done(Some(!x)),
            _ => Ok(Datum::Null),
        });
        fn absolute(a: &[Datum], _: &EvalContext) -> SqlResult<Datum> {
            match &a[0] {
                Datum::$variant(x) => done(x.checked_abs()),
                _ => Ok(Datum::Null),
            }
        }
        $table.add(concat!("@(", $ty, ") ", $ty), absolute);
        $table.add(concat!("abs(", $ty, ") ", $ty), absolute);
    }};
}

/// A float result: infinity out of finite input is an overflow.
pub(crate) fn float_result(value: f64, inputs: &[f64]) -> SqlResult<f64> {
    if value.is_infinite() && inputs.iter().all(|v| v.is_finite()) {
        return Err(SqlError::new(
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
            "value out of range: overflow",
        ));
    }
    Ok(value)
}

/// A product or quotient: zero out of other numbers is an underflow.
pub(crate) fn not_underflown(result: f64, x: f64, exact_zero: bool) -> SqlResult<f64> {
    if result == 0.0 && x != 0.0 && !exact_zero {
        return Err(SqlError::new(
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
            "value out of range: underflow",
        ));
    }
    Ok(result)
}

fn arithmetic8(sign: char, x: f64, y: f64) -> SqlResult<f64> {
    Ok(match sign {
        '+' => float_result(x + y, &[x, y])?,
        '-' => float_result(x - y, &[x, y])?,
        '*' => not_underflown(float_result(x * y, &[x, y])?, x, y == 0.0)?,
        _ if y == 0.0 && !x.is_nan() => return Err(numeric::division_by_zero()),
        _ => not_underflown(float_result(x / y, &[x, y])?, x, y.is_infinite())?,
    })
}

fn arithmetic4(sign: char, x: f32, y: f32) -> SqlResult<f32> {
    let inputs = [f64::from(x), f64::from(y)];
    let result = match sign {
        '+' => x + y,
        '-' => x - y,
        '*' => x * y,
        _ if y == 0.0 && !x.is_nan() => return Err(numeric::division_by_zero()),
        _ => x / y,
    };
    float_result(f64::from(result), &inputs)?;
    let exact_zero = match sign {
        '*' => y == 0.0,
        '/' => y.is_infinite(),
        _ => true,
    };
    not_underflown(f64::from(result), inputs[0], exact_zero)?;
    Ok(result)
}

macro_rules! float_arithmetic {
    ($table:ident, $sign:literal, $name:literal) => {{
        let wide: Eval =
            |a, _| Ok(Datum::Float8(arithmetic8($sign, f64_of(&a[0]), f64_of(&a[1]))?));
        $table.add(concat!($name, "(float8, float8) float8"), wide);
        $table.add(concat!($name, "(float4, float8) float8"), wide);
        $table.add(concat!($name, "(float8, float4) float8"), wide);
        $table.add(concat!($name, "(float4, float4) float4"), |a, _| {
            Ok(Datum::Float4(arithmetic4($sign, f64_of(&a[0]) as f32, f64_of(&a[1]) as f32)?))
        });
    }};
}

fn float_ops(t: &mut Table) {
    float_arithmetic!(t, '+', "+");
    float_arithmetic!(t, '-', "-");
    float_arithmetic!(t, '*', "*");
    float_arithmetic!(t, '/', "/");
    t.add(
        "-(float8) float8 \
         -- difference; alone, the negated value; of a document, without a key or position",
        |a, _| Ok(Datum::Float8(-f64_of(&a[0]))),
    );
    t.add("-(float4) float4", |a, _| Ok(Datum::Float4(-(f64_of(&a[0]) as f32))));
    t.add("+(float8) float8 -- sum", |a, _| Ok(a[0].clone()));
    t.add("+(float4) float4", |a, _| Ok(a[0].clone()));
    t.add("@(float4) float4 -- absolute value", |a, _| {
        Ok(Datum::Float4((f64_of(&a[0]) as f32).abs()))
    });
    t.add("@(float8) float8", |a, _| Ok(Datum::Float8(f64_of(&a[0]).abs())));
    t.add("abs(float8) float8 -- absolute value", |a, _| Ok(Datum::Float8(f64_of(&a[0]).abs())));
    t.add("abs(float4) float4", |a, _| Ok(Datum::Float4((f64_of(&a[0]) as f32).abs())));
    t.add("|/(float8) float8 -- square root", |a, _| {
        let x = f64_of(&a[0]);
        if x < 0.0 {
            return Err(SqlError::new(
                SqlState("2201F"),
                "cannot take square root of a negative number",
            ));
        }
        Ok(Datum::Float8(x.sqrt()))
    });
    t.add("||/(float8) float8 -- cube root", |a, _| Ok(Datum::Float8(f64_of(&a[0]).cbrt())));
    t.add("^(float8, float8) float8 -- the left side to the power of the right one", power_float);
    t.add("power(float8, float8) float8 -- the first to the power of the second", power_float);
    t.add("pow(float8, float8) float8 -- as `power`", power_float);
}

fn power_float(a: &[Datum], _: &EvalContext) -> SqlResult<Datum> {
    let (x, y) = (f64_of(&a[0]), f64_of(&a[1]));
    if x == 0.0 && y < 0.0 {
        return Err(SqlError::new(
            SqlState("2201F"),
            "zero raised to a negative power is undefined",
        ));
    }
    if x < 0.0 && y.fract() != 0.0 && y.is_finite() {
        return Err(SqlError::new(
            SqlState("2201F"),
            "a negative number raised to a non-integer power yields a complex result",
        ));
    }
    let result = float_result(x.powf(y), &[x, y])?;
    let exact_zero = x == 0.0 || x.is_infinite() || y.is_infinite();
    Ok(Datum::Float8(not_underflown(result, 1.0, exact_zero)?))
}

fn numeric_ops(t: &mut Table) {
    t.add("+(numeric, numeric) numeric", |a, _| special::add(a));
    t.add("-(numeric, numeric) numeric", |a, _| special::subtract(a));
    t.add("*(numeric, numeric) numeric -- product", |a, _| special::multiply(a));
    t.add("/(numeric, numeric) numeric -- quotient; of integers, cut off towards zero", |a, _| {
        special::divide(a)
    });
    t.add("div(numeric, numeric) numeric -- whole quotient, cut off towards zero", |a, _| {
        special::divide_whole(a)
    });
    t.add(
        "%(numeric, numeric) numeric -- the remainder of a division, with the sign of the dividend",
        |a, _| special::remainder(a),
    );
    t.add("mod(numeric, numeric) numeric -- as `%`", |a, _| special::remainder(a));
    t.add("^(numeric, numeric) numeric", |a, _| special::power(a));
    t.add("power(numeric, numeric) numeric", |a, _| special::power(a));
    t.add("pow(numeric, numeric) numeric", |a, _| special::power(a));
    t.add("-(numeric) numeric", |a, _| special::negate(&a[0]));
    t.add("+(numeric) numeric", |a, _| Ok(a[0].clone()));
    let absolute: Eval =
        |a, _| special::unary(&a[0], |x| Ok(x.abs()), |_| Ok(Datum::NumericInf(false)));
    t.add("@(numeric) numeric", absolute);
    t.add("abs(numeric) numeric", absolute);
}

/// Adds months to a local timestamp, keeping the day within the month.
pub(crate) fn add_months(micros: i64, months: i32) -> SqlResult<i64> {
    if months == 0 {
        return Ok(micros);
    }
    let days = micros.div_euclid(MICROS_PER_DAY);
    let (year, month, day) = civil_from_days(days);
    let total = year * 12 + (month - 1) + i64::from(months);
    let (year, month) = (total.div_euclid(12), total.rem_euclid(12) + 1);
    let next = days_from_civil(year + i64::from(month == 12), month % 12 + 1, 1);
    let first = days_from_civil(year, month, 1);
    let day = first + day.min(next - first) - 1;
    check_timestamp(
        i128::from(day) * i128::from(MICROS_PER_DAY)
            + i128::from(micros.rem_euclid(MICROS_PER_DAY)),
    )
}

fn infinite(micros: i64) -> bool {
    micros == i64::MAX || micros == i64::MIN
}

/// timestamp + interval, in microseconds; infinities stay.
///
/// # Errors
/// 22008 out of range.
pub fn add_interval(micros: i64, interval: &Interval) -> SqlResult<i64> {
    if infinite(micros) {
        return Ok(micros);
    }
    let moved = add_months(micros, interval.months)?;
    check_timestamp(
        i128::from(moved)
            + i128::from(interval.days) * i128::from(MICROS_PER_DAY)
            + i128::from(interval.micros),
    )
}

/// timestamptz + interval: months and days by the wall clock of the zone.
pub(crate) fn add_interval_tz(
    micros: i64,
    interval: &Interval,
    ctx: &EvalContext,
) -> SqlResult<i64> {
    if infinite(micros) {
        return Ok(micros);
    }
    let mut moved = micros;
    if interval.months != 0 || interval.days != 0 {
        let local = add_months(ctx.style.zone.to_local(micros), interval.months)?;
        let local = check_timestamp(
            i128::from(local) + i128::from(interval.days) * i128::from(MICROS_PER_DAY),
        )?;
        moved = ctx.style.zone.to_utc(local);
    }
    check_timestamp(i128::from(moved) + i128::from(interval.micros))
}

fn difference(a: i64, b: i64) -> SqlResult<Datum> {
    if infinite(a) || infinite(b) {
        return Err(SqlError::new(
            SqlState::DATETIME_FIELD_OVERFLOW,
            "cannot subtract infinite timestamps",
        ));
    }
    let micros = a
        .checked_sub(b)
        .ok_or_else(|| SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, "interval out of range"))?;
    Ok(Datum::Interval(Interval {
        months: 0,
        days: (micros / MICROS_PER_DAY) as i32,
        micros: micros % MICROS_PER_DAY,
    }))
}

fn date_plus(days: i32, delta: i64) -> SqlResult<Datum> {
    if days == i32::MAX || days == i32::MIN {
        return Ok(Datum::Date(days));
    }
    Ok(Datum::Date(check_date(i64::from(days) + delta)?))
}

fn micros_of(value: &Datum) -> i64 {
    match value {
        Datum::Timestamp(t) | Datum::TimestampTz(t) | Datum::Time(t) => *t,
        Datum::Date(i32::MAX) => i64::MAX,
        Datum::Date(i32::MIN) => i64::MIN,
        Datum::Date(d) => i64::from(*d).saturating_mul(MICROS_PER_DAY),
        _ => 0,
    }
}

/// Microseconds of a timestamp, or of a date that timestamps reach.
fn instant(value: &Datum) -> SqlResult<i64> {
    match value {
        Datum::Date(d) if *d != i32::MAX && *d != i32::MIN => {
            check_timestamp(i128::from(*d) * i128::from(MICROS_PER_DAY)).map_err(|_| {
                SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, "date out of range for timestamp")
            })
        }
        other => Ok(micros_of(other)),
    }
}

fn datetime_ops(t: &mut Table) {
    t.add("+(date, int4) date", |a, _| match &a[0] {
        Datum::Date(d) => date_plus(*d, i64_of(&a[1])),
        _ => Ok(Datum::Null),
    });
    t.add("+(int4, date) date", |a, _| match &a[1] {
        Datum::Date(d) => date_plus(*d, i64_of(&a[0])),
        _ => Ok(Datum::Null),
    });
    t.add("-(date, int4) date", |a, _| match &a[0] {
        Datum::Date(d) => date_plus(*d, -i64_of(&a[1])),
        _ => Ok(Datum::Null),
    });
    t.add("-(date, date) int4", |a, _| match (&a[0], &a[1]) {
        (Datum::Date(x), Datum::Date(y)) => {
            if [x, y].iter().any(|d| **d == i32::MAX || **d == i32::MIN) {
                return Err(SqlError::new(
                    SqlState::DATETIME_FIELD_OVERFLOW,
                    "cannot subtract infinite dates",
                ));
            }
            Ok(Datum::Int4(x - y))
        }
        _ => Ok(Datum::Null),
    });
    let plus: Eval =
        |a, _| Ok(Datum::Timestamp(add_interval(instant(&a[0])?, &interval_of(&a[1]))?));
    let plus_flipped: Eval =
        |a, _| Ok(Datum::Timestamp(add_interval(instant(&a[1])?, &interval_of(&a[0]))?));
    let minus: Eval =
        |a, _| Ok(Datum::Timestamp(add_interval(instant(&a[0])?, &interval_of(&a[1]).neg()?)?));
    t.add("+(date, interval) timestamp", plus);
    t.add("+(interval, date) timestamp", plus_flipped);
    t.add("-(date, interval) timestamp", minus);
    t.add("+(timestamp, interval) timestamp", plus);
    t.add("+(interval, timestamp) timestamp", plus_flipped);
    t.add("-(timestamp, interval) timestamp", minus);
    t.add("+(timestamptz, interval) timestamptz", |a, c| {
        Ok(Datum::TimestampTz(add_interval_tz(micros_of(&a[0]), &interval_of(&a[1]), c)?))
    })
    .stable();
    t.add("+(interval, timestamptz) timestamptz", |a, c| {
        Ok(Datum::TimestampTz(add_interval_tz(micros_of(&a[1]), &interval_of(&a[0]), c)?))
    })
    .stable();
    t.add("-(timestamptz, interval) timestamptz", |a, c| {
        let back = interval_of(&a[1]).neg()?;
        Ok(Datum::TimestampTz(add_interval_tz(micros_of(&a[0]), &back, c)?))
    })
    .stable();
    t.add("-(timestamp, timestamp) interval", |a, _| {
        difference(micros_of(&a[0]), micros_of(&a[1]))
    });
    t.add("-(timestamptz, timestamptz) interval", |a, _| {
        difference(micros_of(&a[0]), micros_of(&a[1]))
    });
    t.add("-(time, time) interval", |a, _| {
        let micros = micros_of(&a[0]) - micros_of(&a[1]);
        Ok(Datum::Interval(Interval { micros, ..Interval::default() }))
    });
    t.add("+(date, time) timestamp", |a, _| {
        let day = instant(&a[0])?;
        if infinite(day) {
            return Ok(Datum::Timestamp(day));
        }
        Ok(Datum::Timestamp(check_timestamp(i128::from(day) + i128::from(micros_of(&a[1])))?))
    });
    t.add("+(time, interval) time", |a, _| {
        let total = micros_of(&a[0]).wrapping_add(interval_of(&a[1]).micros);
        Ok(Datum::Time(total.rem_euclid(MICROS_PER_DAY)))
    });
    t.add("+(interval, time) time", |a, _| {
        let total = micros_of(&a[1]).wrapping_add(interval_of(&a[0]).micros);
        Ok(Datum::Time(total.rem_euclid(MICROS_PER_DAY)))
    });
    t.add("-(time, interval) time", |a, _| {
        let total = micros_of(&a[0]).wrapping_sub(interval_of(&a[1]).micros);
        Ok(Datum::Time(total.rem_euclid(MICROS_PER_DAY)))
    });
    t.add("+(interval, interval) interval", |a, _| {
        Ok(Datum::Interval(interval_of(&a[0]).add(&interval_of(&a[1]))?))
    });
    t.add("-(interval, interval) interval", |a, _| {
        Ok(Datum::Interval(interval_of(&a[0]).add(&interval_of(&a[1]).neg()?)?))
    });
    t.add("-(interval) interval", |a, _| Ok(Datum::Interval(interval_of(&a[0]).neg()?)));
    t.add("*(interval, float8) interval", |a, _| {
        Ok(Datum::Interval(interval_of(&a[0]).mul(f64_of(&a[1]))?))
    });
    t.add("*(float8, interval) interval", |a, _| {
        Ok(Datum::Interval(interval_of(&a[1]).mul(f64_of(&a[0]))?))
    });
    t.add("/(interval, float8) interval", |a, _| {
        let divisor = f64_of(&a[1]);
        if divisor == 0.0 {
            return Err(numeric::division_by_zero());
        }
        Ok(Datum::Interval(interval_of(&a[0]).div(divisor)?))
    });
}

/// Text of a value inside `||`: like a cast to text.
fn piece(value: &Datum, ctx: &EvalContext) -> String {
    match value {
        Datum::Bool(b) => b.to_string(),
        // An address shows its bits then.
        Datum::Ordered(ordered) => {
            let from = ordered.kind().sql_type();
            let text = cast(value, &from, &SqlType::Text, CastContext::Explicit, ctx.style);
            text.map(|text| text_of(&text).to_string()).unwrap_or_default()
        }
        other => other.to_text(ctx.style).unwrap_or_default(),
    }
}

/// A text beside a value of a type, on either side.
macro_rules! beside_text {
    ($($ty:literal)*) => {
        [$(concat!("||(text, ", $ty, ") text"), concat!("||(", $ty, ", text) text")),*]
    };
}

fn concat_rarer(t: &mut Table) {
    let mixed: Eval = |a, c| Ok(Datum::text(format!("{}{}", piece(&a[0], c), piece(&a[1], c))));
    for signature in beside_text![
        "point" "lseg" "line" "box" "path" "polygon" "circle" "tid" "xid8" "money" "inet" "cidr"
        "macaddr" "macaddr8" "pg_lsn" "jsonpath" "refcursor" "int4range" "int8range" "numrange"
        "daterange" "tsrange" "tstzrange"
    ] {
        t.add(signature, mixed).stable();
    }
}

fn concat_ops(t: &mut Table) {
    t.add("||(text, text) text -- both sides one behind the other", |a, _| {
        Ok(Datum::text(format!("{}{}", text_of(&a[0]), text_of(&a[1]))))
    });
    let mixed: Eval = |a, c| Ok(Datum::text(format!("{}{}", piece(&a[0], c), piece(&a[1], c))));
    for signature in [
        "||(text, bool) text",
        "||(text, int8) text",
        "||(text, numeric) text",
        "||(text, time) text",
        "||(text, uuid) text",
        "||(text, oid) text",
        "||(bool, text) text",
        "||(int8, text) text",
        "||(numeric, text) text",
        "||(time, text) text",
        "||(uuid, text) text",
        "||(oid, text) text",
    ] {
        t.add(signature, mixed);
    }
    t.add("||(text, int2) text", mixed);
    t.add("||(text, int4) text", mixed);
    t.add("||(int2, text) text", mixed);
    t.add("||(int4, text) text", mixed);
    for signature in [
        "||(text, float4) text",
        "||(text, float8) text",
        "||(text, date) text",
        "||(text, timestamp) text",
        "||(text, interval) text",
        "||(float4, text) text",
        "||(float8, text) text",
        "||(date, text) text",
        "||(timestamp, text) text",
        "||(interval, text) text",
        "||(text, bytea) text",
        "||(bytea, text) text",
        "||(text, json) text",
        "||(json, text) text",
    ] {
        t.add(signature, mixed).stable();
    }
    t.add("||(text, timestamptz) text", mixed).stable();
    t.add("||(timestamptz, text) text", mixed).stable();
    t.add("||(bytea, bytea) bytea", |a, _| match (&a[0], &a[1]) {
        (Datum::Bytea(x), Datum::Bytea(y)) => Ok(Datum::Bytea([&x[..], &y[..]].concat().into())),
        _ => Ok(Datum::Null),
    });
}

/// A text, or bytes as if each was a character.
fn characters(value: &Datum) -> Cow<'_, str> {
    match value {
        Datum::Bytea(bytes) => bytes.iter().map(|b| char::from(*b)).collect(),
        text => Cow::Borrowed(text_of(text)),
    }
}

fn like(a: &[Datum], ignore_case: bool) -> SqlResult<bool> {
    let escape = a.get(2).map_or(Ok(Some('\\')), |e| pattern::escape_of(&characters(e)))?;
    pattern::like(&characters(&a[0]), &characters(&a[1]), escape, ignore_case)
}

fn pattern_ops(t: &mut Table) {
    t.add("~~(text, text) bool -- LIKE", |a, _| Ok(Datum::Bool(like(a, false)?)));
    t.add("~~(bytea, bytea) bool", |a, _| Ok(Datum::Bool(like(a, false)?)));
    t.add("~~(text, text, text) bool", |a, _| Ok(Datum::Bool(like(a, false)?)));
    t.add("~~(bytea, bytea, bytea) bool", |a, _| Ok(Datum::Bool(like(a, false)?)));
    t.add("!~~(text, text) bool -- NOT LIKE", |a, _| Ok(Datum::Bool(!like(a, false)?)));
    t.add("!~~(bytea, bytea) bool", |a, _| Ok(Datum::Bool(!like(a, false)?)));
    t.add("!~~(text, text, text) bool", |a, _| Ok(Datum::Bool(!like(a, false)?)));
    t.add("!~~(bytea, bytea, bytea) bool", |a, _| Ok(Datum::Bool(!like(a, false)?)));
    t.add("~~*(text, text) bool -- ILIKE", |a, _| Ok(Datum::Bool(like(a, true)?)));
    t.add("~~*(text, text, text) bool", |a, _| Ok(Datum::Bool(like(a, true)?)));
    t.add("!~~*(text, text) bool -- NOT ILIKE", |a, _| Ok(Datum::Bool(!like(a, true)?)));
    t.add("!~~*(text, text, text) bool", |a, _| Ok(Datum::Bool(!like(a, true)?)));
    // Of char(n) with its padding, as it is shown.
    t.add("~~(character, text) bool", |a, _| Ok(Datum::Bool(like(a, false)?)));
    t.add("~~(character, text, text) bool", |a, _| Ok(Datum::Bool(like(a, false)?)));
    t.add("!~~(character, text) bool", |a, _| Ok(Datum::Bool(!like(a, false)?)));
    t.add("!~~(character, text, text) bool", |a, _| Ok(Datum::Bool(!like(a, false)?)));
    t.add("~~*(character, text) bool", |a, _| Ok(Datum::Bool(like(a, true)?)));
    t.add("~~*(character, text, text) bool", |a, _| Ok(Datum::Bool(like(a, true)?)));
    t.add("!~~*(character, text) bool", |a, _| Ok(Datum::Bool(!like(a, true)?)));
    t.add("!~~*(character, text, text) bool", |a, _| Ok(Datum::Bool(!like(a, true)?)));
    let similar: Eval = |a, _| {
        let escape = a.get(2).map_or(Ok(Some('\\')), |e| pattern::escape_of(text_of(e)))?;
        let regex = pattern::regex(&pattern::similar_regex(text_of(&a[1]), escape)?, "")?;
        Ok(Datum::Bool(regex.is_match(text_of(&a[0]))))
    };
    t.add("similar_to(text, text) bool -- SIMILAR TO", similar);
    t.add("similar_to(text, text, text) bool", similar);
    fn found(a: &[Datum], flags: &str) -> SqlResult<bool> {
        Ok(pattern::regex(text_of(&a[1]), flags)?.is_match(text_of(&a[0])))
    }
    t.add(
        "~(text, text) bool \
         -- all bits turned; of texts, whether a part matches the regular expression",
        |a, _| Ok(Datum::Bool(found(a, "")?)),
    );
    t.add("~*(text, text) bool -- as `~`, whatever the case", |a, _| {
        Ok(Datum::Bool(found(a, "i")?))
    });
    t.add(
        "!~(text, text) bool -- whether no part of the text matches the regular expression",
        |a, _| Ok(Datum::Bool(!found(a, "")?)),
    );
    t.add("!~*(text, text) bool -- as `!~`, whatever the case", |a, _| {
        Ok(Datum::Bool(!found(a, "i")?))
    });
    t.add("~(character, text) bool", |a, _| Ok(Datum::Bool(found(a, "")?)));
    t.add("~*(character, text) bool", |a, _| Ok(Datum::Bool(found(a, "i")?)));
    t.add("!~(character, text) bool", |a, _| Ok(Datum::Bool(!found(a, "")?)));
    t.add("!~*(character, text) bool", |a, _| Ok(Datum::Bool(!found(a, "i")?)));
    t.add("^@(text, text) bool -- whether the text begins with the other", |a, _| {
        Ok(Datum::Bool(text_of(&a[0]).starts_with(text_of(&a[1]))))
    });
}

/// The element of an array by a possibly negative position.
fn json_index(items: &[serde_json::Value], at: i64) -> Option<&serde_json::Value> {
    let at = if at < 0 { at + items.len() as i64 } else { at };
    usize::try_from(at).ok().and_then(|at| items.get(at))
}

/// Follows one step of a path: a key, or a position in an array.
pub(crate) fn json_step<'a>(
    value: &'a serde_json::Value,
    step: &str,
) -> Option<&'a serde_json::Value> {
    match value {
        serde_json::Value::Object(map) => map.get(step),
        serde_json::Value::Array(items) => json_index(items, step.parse().ok()?),
        _ => None,
    }
}

/// JSON as SQL text: strings without quotes, JSON null as NULL.
pub(crate) fn json_text(value: Option<&serde_json::Value>) -> Datum {
    match value {
        None | Some(serde_json::Value::Null) => Datum::Null,
        Some(serde_json::Value::String(s)) => Datum::text(s.as_str()),
        Some(other) => Datum::text(jsonb::text(other)),
    }
}

fn json_value(value: Option<&serde_json::Value>) -> Datum {
    value.map_or(Datum::Null, |v| jsonb::datum(v.clone()))
}

fn json_get(a: &[Datum]) -> Option<&serde_json::Value> {
    match (json_of(&a[0]), &a[1]) {
        (serde_json::Value::Object(map), Datum::Text(key)) => map.get(&**key),
        (serde_json::Value::Array(items), Datum::Int4(at)) => json_index(items, i64::from(*at)),
        // A scalar document counts as an array of one.
        (serde_json::Value::Object(_), Datum::Int4(_)) => None,
        (scalar, Datum::Int4(0 | -1)) => Some(scalar),
        _ => None,
    }
}

fn json_path(a: &[Datum]) -> Option<&serde_json::Value> {
    let mut value = json_of(&a[0]);
    for step in crate::array_operators::items_of(&a[1]) {
        match step {
            Datum::Text(step) => value = json_step(value, step)?,
            _ => return None,
        }
    }
    Some(value)
}

fn json_has(value: &serde_json::Value, key: &str) -> bool {
    match value {
        serde_json::Value::Object(map) => map.contains_key(key),
        serde_json::Value::Array(items) => items.iter().any(|i| i.as_str() == Some(key)),
        serde_json::Value::String(s) => s == key,
        _ => false,
    }
}

fn cannot_delete(message: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

/// `jsonb - position`.
fn json_remove_at(value: &serde_json::Value, at: i64) -> SqlResult<serde_json::Value> {
    let mut value = value.clone();
    match &mut value {
        serde_json::Value::Array(items) => {
            let at = if at < 0 { at + items.len() as i64 } else { at };
            if let Some(at) = usize::try_from(at).ok().filter(|at| *at < items.len()) {
                items.remove(at);
            }
            Ok(value)
        }
        serde_json::Value::Object(_) => {
            Err(cannot_delete("cannot delete from object using integer index"))
        }
        _ => Err(cannot_delete("cannot delete from scalar")),
    }
}

/// `jsonb - keys`: fields of an object, strings of an array.
fn json_remove_keys(value: &serde_json::Value, keys: &[&str]) -> SqlResult<serde_json::Value> {
    let mut value = value.clone();
    match &mut value {
        serde_json::Value::Object(map) => map.retain(|k, _| !keys.contains(&k.as_str())),
        serde_json::Value::Array(items) => {
            items.retain(|i| i.as_str().is_none_or(|s| !keys.contains(&s)));
        }
        _ => return Err(cannot_delete("cannot delete from scalar")),
    }
    Ok(value)
}

/// `jsonb #- path`.
pub(crate) fn json_remove_path(
    value: &serde_json::Value,
    path: &[Datum],
) -> SqlResult<serde_json::Value> {
    let mut value = value.clone();
    let empty = value.as_array().is_some_and(Vec::is_empty)
        || value.as_object().is_some_and(serde_json::Map::is_empty);
    if empty {
        return Ok(value);
    }
    if !value.is_array() && !value.is_object() {
        return Err(cannot_delete("cannot delete path in scalar"));
    }
    let mut at = &mut value;
    for (n, step) in path.iter().enumerate() {
        let last = n + 1 == path.len();
        let step = path_step(step, n)?;
        if !at.is_array() && !at.is_object() {
            break;
        }
        match at {
            serde_json::Value::Object(map) if last => {
                map.shift_remove(step);
                break;
            }
            serde_json::Value::Object(map) => match map.get_mut(step) {
                Some(inner) => at = inner,
                None => break,
            },
            serde_json::Value::Array(items) if items.is_empty() => break,
            serde_json::Value::Array(items) => {
                let given: i64 = step.trim().parse().map_err(|_| {
                    SqlError::new(
                        SqlState::INVALID_TEXT_REPRESENTATION,
                        format!("path element at position {} is not an integer: \"{step}\"", n + 1),
                    )
                })?;
                let place = if given < 0 { given + items.len() as i64 } else { given };
                let Some(place) = usize::try_from(place).ok().filter(|p| *p < items.len()) else {
                    break;
                };
                if last {
                    items.remove(place);
                    break;
                }
                at = &mut items[place];
            }
            _ => break,
        }
    }
    Ok(value)
}

fn json_concat(a: &serde_json::Value, b: &serde_json::Value) -> SqlResult<serde_json::Value> {
    use serde_json::Value;
    Ok(match (a, b) {
        (Value::Object(x), Value::Object(y)) => {
            let mut merged = x.clone();
            for (key, value) in y {
                merged.insert(key.clone(), value.clone());
            }
            jsonb::normalize(Value::Object(merged))?
        }
        (x, y) => {
            let list = |v: &Value| match v {
                Value::Array(items) => items.clone(),
                other => vec![other.clone()],
            };
            Value::Array([list(x), list(y)].concat())
        }
    })
}

fn json_ops(t: &mut Table) {
    t.add("->(jsonb, text) jsonb -- a field or an element of a document", |a, _| {
        Ok(json_value(json_get(a)))
    });
    t.add("->(jsonb, int4) jsonb", |a, _| Ok(json_value(json_get(a))));
    t.add("->>(jsonb, text) text -- a field or an element of a document, as text", |a, _| {
        Ok(json_text(json_get(a)))
    });
    t.add("->>(jsonb, int4) text", |a, _| Ok(json_text(json_get(a))));
    t.add("#>(jsonb, text[]) jsonb -- what is at a path", |a, _| Ok(json_value(json_path(a))));
    t.add("#>>(jsonb, text[]) text -- what is at a path, as text", |a, _| {
        Ok(json_text(json_path(a)))
    });
    t.add("@>(jsonb, jsonb) bool", |a, _| {
        Ok(Datum::Bool(jsonb::contains(json_of(&a[0]), json_of(&a[1]))))
    });
    t.add("<@(jsonb, jsonb) bool", |a, _| {
        Ok(Datum::Bool(jsonb::contains(json_of(&a[1]), json_of(&a[0]))))
    });
    t.add(
        "?(jsonb, text) bool -- whether the text is a key of the object or an element of the array",
        |a, _| Ok(Datum::Bool(json_has(json_of(&a[0]), text_of(&a[1])))),
    );
    t.add("?|(jsonb, text[]) bool -- whether any of the texts is a key or an element", |a, _| {
        Ok(Datum::Bool(words(&a[1]).iter().any(|k| json_has(json_of(&a[0]), k))))
    });
    t.add("?&(jsonb, text[]) bool -- whether all the texts are keys or elements", |a, _| {
        Ok(Datum::Bool(words(&a[1]).iter().all(|k| json_has(json_of(&a[0]), k))))
    });
    t.add("||(jsonb, jsonb) jsonb", |a, _| {
        Ok(jsonb::datum(json_concat(json_of(&a[0]), json_of(&a[1]))?))
    });
    t.add("-(jsonb, text) jsonb", |a, _| {
        Ok(jsonb::datum(json_remove_keys(json_of(&a[0]), &[text_of(&a[1])])?))
    });
    t.add("-(jsonb, int4) jsonb", |a, _| {
        Ok(jsonb::datum(json_remove_at(json_of(&a[0]), i64_of(&a[1]))?))
    });
    t.add("-(jsonb, text[]) jsonb", |a, _| {
        Ok(jsonb::datum(json_remove_keys(json_of(&a[0]), &words(&a[1]))?))
    });
    t.add("jsonb_delete(jsonb, ...text) jsonb -- the document without these keys", |a, _| {
        // One key is as in `jsonb - text`; of several those that are NULL are none.
        if a[0].is_null() || a.len() == 2 && a[1].is_null() {
            return Ok(Datum::Null);
        }
        let keys = a[1..].iter().filter(|key| !key.is_null()).map(text_of);
        Ok(jsonb::datum(json_remove_keys(json_of(&a[0]), &keys.collect::<Vec<_>>())?))
    })
    .lax();
    t.add("#-(jsonb, text[]) jsonb -- the document without what is at the path", |a, _| {
        Ok(jsonb::datum(json_remove_path(json_of(&a[0]), path_of(&a[1]))?))
    });
}

/// Adds every operator to the table.
pub(crate) fn fill(t: &mut Table) {
    int_ops!(t, "int2", "smallint", Int2, i16);
    int_ops!(t, "int4", "integer", Int4, i32);
    int_ops!(t, "int8", "bigint", Int8, i64);
    float_ops(t);
    numeric_ops(t);
    datetime_ops(t);
    concat_ops(t);
    concat_rarer(t);
    pattern_ops(t);
    json_ops(t);
}
