//! `generate_series`.

use braid_types::{Datum, SqlError, SqlResult, SqlState, numeric};

use crate::EvalContext;
use crate::functions::{i64_of, interval_of};
use crate::operators::{add_interval, add_interval_tz};
use crate::registry::{Rows, Table};

/// Rows that one call may give: they are in memory at once.
const MAX_ROWS: usize = 20_000_000;

fn too_many() -> SqlError {
    SqlError::new(SqlState::OUT_OF_MEMORY, "a set-returning function gave too many rows")
        .with_hint(format!("At most {MAX_ROWS} rows of one call are held in memory."))
}

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
        return Ok(Vec::new());
    }
    let count = ((stop - start) / step + 1).max(0);
    if count > MAX_ROWS as i128 {
        return Err(too_many());
    }
    Ok((0..count)
        .map(|i| {
            let v = start + i * step;
            vec![if wide { Datum::Int8(v as i64) } else { Datum::Int4(v as i32) }]
        })
        .collect())
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
    let (mut at, stop) = (given[0].clone(), &given[1]);
    let step = given.get(2).cloned().unwrap_or_else(|| numeric::from_i128(1));
    let direction = numeric::compare(&step, &numeric::from_i128(0));
    if direction.is_eq() {
        return Err(zero_step());
    }
    let mut out = Vec::new();
    while numeric::compare(&at, stop) != direction {
        out.push(vec![numeric::datum(at.clone())?]);
        at = numeric::add(&at, &step);
        if out.len() > MAX_ROWS {
            return Err(too_many());
        }
    }
    Ok(out)
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
    let (mut at, stop) = (micros(&a[0]), micros(&a[1]));
    let mut out = Vec::new();
    while (forward && at <= stop) || (!forward && at >= stop) {
        out.push(vec![if zoned { Datum::TimestampTz(at) } else { Datum::Timestamp(at) }]);
        // Days have as many hours as the clocks of the session's zone give them.
        at = match zoned {
            true => add_interval_tz(at, &step, ctx)?,
            false => add_interval(at, &step)?,
        };
        if out.len() > MAX_ROWS {
            return Err(too_many());
        }
    }
    Ok(out)
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
