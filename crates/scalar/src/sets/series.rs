//! `generate_series`.

use braid_types::{Datum, SqlError, SqlResult, SqlState, numeric};

use crate::EvalContext;
use crate::functions::{i64_of, interval_of};
use crate::operators::{add_interval, add_interval_tz};
use crate::registry::{Rows, Table};

fn zero_step() -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, "step size cannot equal zero")
}

fn integers(a: &[Datum], _: &EvalContext) -> SqlResult<Rows> {
    let int = |v: &Datum| i128::from(i64_of(v));
    let wide = matches!(a[0], Datum::Int8(_));
    let (start, stop) = (int(&a[0]), int(&a[1]));
    let step = a.get(2).map_or(1, int);
    if step == 0 {
        return Err(zero_step());
    }
    if (step > 0 && start > stop) || (step < 0 && start < stop) {
        return Ok(Rows::none());
    }
    let count = (stop - start) / step + 1;
    Ok(Rows::each((0..count).map(move |i| {
        let v = start + i * step;
        Ok(vec![if wide { Datum::Int8(v as i64) } else { Datum::Int4(v as i32) }])
    })))
}

fn numbers(a: &[Datum], _: &EvalContext) -> SqlResult<Rows> {
    let mut given = Vec::new();
    for (value, what) in a.iter().zip(["start value", "stop value", "step size"]) {
        match value {
            Datum::Numeric(n) => given.push((**n).clone()),
            Datum::NumericInf(_) => return Err(not_finite(what, "infinity")),
            _ => return Err(not_finite(what, "NaN")),
        }
    }
    let (mut at, stop) = (given[0].clone(), given[1].clone());
    let step = given.get(2).cloned().unwrap_or_else(|| numeric::from_i128(1));
    let direction = numeric::compare(&step, &numeric::from_i128(0));
    if direction.is_eq() {
        return Err(zero_step());
    }
    Ok(Rows::each(std::iter::from_fn(move || {
        if numeric::compare(&at, &stop) == direction {
            return None;
        }
        let next = numeric::add(&at, &step);
        Some(numeric::datum(std::mem::replace(&mut at, next)).map(|value| vec![value]))
    })))
}

fn not_finite(what: &str, value: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, format!("{what} cannot be {value}"))
}

fn times(a: &[Datum], ctx: &EvalContext) -> SqlResult<Rows> {
    let micros = |v: &Datum| match v {
        Datum::Timestamp(t) | Datum::TimestampTz(t) => *t,
        _ => 0,
    };
    let step = interval_of(&a[2]);
    let forward = step.length() > 0;
    if step.length() == 0 {
        return Err(zero_step());
    }
    let zoned = matches!(a[0], Datum::TimestampTz(_));
    let (first, stop) = (micros(&a[0]), micros(&a[1]));
    let ctx = ctx.clone();
    let mut next = Some(first);
    Ok(Rows::each(std::iter::from_fn(move || {
        let at = next.filter(|at| if forward { *at <= stop } else { *at >= stop })?;
        // Days have as many hours as the clocks of the session's zone give them.
        let after = match zoned {
            true => add_interval_tz(at, &step, &ctx),
            false => add_interval(at, &step),
        };
        next = after.as_ref().ok().copied();
        let value = if zoned { Datum::TimestampTz(at) } else { Datum::Timestamp(at) };
        Some(after.map(|_| vec![value]))
    })))
}

/// Adds the functions of this file.
pub(super) fn fill(t: &mut Table) {
    for signature in [
        "generate_series(int4, int4) int4 -- the values from one to another, by steps",
        "generate_series(int4, int4, int4) int4",
        "generate_series(int8, int8) int8",
        "generate_series(int8, int8, int8) int8",
    ] {
        t.rows(signature, integers);
    }
    t.rows("generate_series(numeric, numeric) numeric", numbers);
    t.rows("generate_series(numeric, numeric, numeric) numeric", numbers);
    t.rows("generate_series(timestamp, timestamp, interval) timestamp", times);
    t.rows("generate_series(timestamptz, timestamptz, interval) timestamptz", times).stable();
}
