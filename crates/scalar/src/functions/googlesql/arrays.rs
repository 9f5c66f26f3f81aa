//! Arrays: made of series, put together, searched, cut.

use std::cmp::Ordering;

use braid_types::{Datum, Interval, SqlResult, SqlState, SqlType, numeric};

use super::civil::{add_months, days_of};
use super::guests::invalid;
use crate::EvalContext;
use crate::array_operators::{array, items_of};
use crate::functions::{f64_of, i64_of, interval_of};
use crate::limits::{MAX_ITEMS, too_many_items};
use crate::registry::Table;

fn element(value: &Datum) -> SqlType {
    match value {
        Datum::Array(a) => a.element.clone(),
        other => other.implied_type(),
    }
}

/// The values from a first one up or down to a last one, `step(n)` being the n-th.
fn series<T: PartialOrd>(
    (last, up): (T, bool),
    step: impl Fn(i64) -> Option<T>,
    value: impl Fn(&T) -> Datum,
) -> SqlResult<Vec<Datum>> {
    let mut out = Vec::new();
    for n in 0.. {
        let Some(next) = step(n) else { break };
        let inside = match next.partial_cmp(&last) {
            Some(Ordering::Equal) => true,
            Some(Ordering::Less) => up,
            Some(Ordering::Greater) => !up,
            None => false,
        };
        if !inside {
            break;
        }
        if out.len() == MAX_ITEMS {
            return Err(too_many_items());
        }
        out.push(value(&next));
    }
    Ok(out)
}

fn no_step() -> braid_types::SqlError {
    invalid("a sequence step cannot be 0")
}

fn integers(a: &[Datum]) -> SqlResult<Datum> {
    let (first, last) = (i64_of(&a[0]), i64_of(&a[1]));
    let step = a.get(2).map_or(1, i64_of);
    if step == 0 {
        return Err(no_step());
    }
    let at = |n: i64| first.checked_add(step.checked_mul(n)?);
    Ok(array(SqlType::Int8, series((last, step > 0), at, |v| Datum::Int8(*v))?))
}

fn doubles(a: &[Datum]) -> SqlResult<Datum> {
    let (first, last) = (f64_of(&a[0]), f64_of(&a[1]));
    let step = a.get(2).map_or(1.0, f64_of);
    if step == 0.0 {
        return Err(no_step());
    }
    if ![first, last, step].iter().all(|v| v.is_finite()) {
        return Err(invalid("a sequence of doubles needs finite ones"));
    }
    let at = |n: i64| Some(first + step * n as f64);
    Ok(array(SqlType::Float8, series((last, step > 0.0), at, |v| Datum::Float8(*v))?))
}

fn numerics(a: &[Datum]) -> SqlResult<Datum> {
    let number = |value: &Datum| match value {
        Datum::Numeric(v) => Ok((**v).clone()),
        _ => Err(invalid("a sequence of numerics needs finite ones")),
    };
    let (first, last) = (number(&a[0])?, number(&a[1])?);
    let step = a.get(2).map_or_else(|| Ok(numeric::from_i128(1)), number)?;
    let zero = numeric::from_i128(0);
    if step == zero {
        return Err(no_step());
    }
    let up = step > zero;
    let at = |n: i64| Some(&first + &step * numeric::from_i128(n.into()));
    let made = series((last, up), at, |v| numeric::datum(v.clone()).unwrap_or(Datum::Null))?;
    Ok(array(SqlType::Numeric(None), made))
}

/// Days from one to another, by so many days or months.
fn dates(a: &[Datum], _: &EvalContext) -> SqlResult<Datum> {
    let (Datum::Date(first), Datum::Date(last)) = (&a[0], &a[1]) else { return Ok(Datum::Null) };
    if [first, last].iter().any(|d| matches!(**d, i32::MAX | i32::MIN)) {
        return Err(invalid("a sequence of dates needs finite ones"));
    }
    let step = a.get(2).map_or(Interval { days: 1, ..Interval::default() }, interval_of);
    if step.micros != 0 || (step.months != 0 && step.days != 0) {
        return Err(invalid("the step of a sequence of dates is a number of one date part"));
    }
    let forward = i64::from(step.months) + i64::from(step.days);
    if forward == 0 {
        return Err(no_step());
    }
    let first = i64::from(*first);
    let at = |n: i64| {
        let moved = add_months(first, i64::from(step.months).checked_mul(n)?)?;
        days_of(moved.checked_add(i64::from(step.days).checked_mul(n)?)?)
    };
    Ok(array(SqlType::Date, series((*last, forward > 0), at, |d| Datum::Date(*d))?))
}

/// Moments from one to another, by a time of fixed length.
fn moments(a: &[Datum], _: &EvalContext) -> SqlResult<Datum> {
    let (Datum::TimestampTz(first), Datum::TimestampTz(last)) = (&a[0], &a[1]) else {
        return Ok(Datum::Null);
    };
    if [first, last].iter().any(|t| matches!(**t, i64::MAX | i64::MIN)) {
        return Err(invalid("a sequence of timestamps needs finite ones"));
    }
    let step = interval_of(&a[2]);
    if step.months != 0 {
        return Err(invalid("the step of a sequence of timestamps is at most in days"));
    }
    let step = i64::from(step.days)
        .checked_mul(braid_types::MICROS_PER_DAY)
        .and_then(|days| days.checked_add(step.micros))
        .ok_or_else(|| invalid("the step is too large"))?;
    if step == 0 {
        return Err(no_step());
    }
    let at = |n: i64| first.checked_add(step.checked_mul(n)?);
    let made = series((*last, step > 0), at, |t| Datum::TimestampTz(*t))?;
    Ok(array(SqlType::TimestampTz, made))
}

fn generators(t: &mut Table) {
    const ABOUT: &str =
        "generate_array(int8, int8) int8[] -- the numbers from one to another, by a step";
    t.add(ABOUT, |a, _| integers(a));
    t.add("generate_array(int8, int8, int8) int8[]", |a, _| integers(a));
    t.add("generate_array(int4, int4) int8[]", |a, _| integers(a));
    t.add("generate_array(int4, int4, int4) int8[]", |a, _| integers(a));
    t.add("generate_array(int2, int2) int8[]", |a, _| integers(a));
    t.add("generate_array(int2, int2, int2) int8[]", |a, _| integers(a));
    t.add("generate_array(numeric, numeric) numeric[]", |a, _| numerics(a));
    t.add("generate_array(numeric, numeric, numeric) numeric[]", |a, _| numerics(a));
    t.add("generate_array(float8, float8) float8[]", |a, _| doubles(a));
    t.add("generate_array(float8, float8, float8) float8[]", |a, _| doubles(a));
    t.add("generate_date_array(date, date) date[] -- the days from one to another", dates);
    t.add("generate_date_array(date, date, interval) date[]", dates);
    t.add(
        "generate_timestamp_array(timestamptz, timestamptz, interval) timestamptz[] -- the moments \
         from one to another, by a step",
        moments,
    );
}

/// The place of an offset, which may count from the end.
fn place(offset: &Datum, length: usize) -> i64 {
    match i64_of(offset) {
        at if at < 0 => at.saturating_add(length as i64),
        at => at,
    }
}

/// The smallest or greatest element; NaN if there is one.
fn extreme(value: &Datum, wanted: Ordering) -> Datum {
    let nan = |v: &Datum| match v {
        Datum::Float4(v) => v.is_nan(),
        Datum::Float8(v) => v.is_nan(),
        _ => false,
    };
    let mut best = Datum::Null;
    for item in items_of(value).iter().filter(|item| !item.is_null()) {
        if nan(item) {
            return item.clone();
        }
        if best.is_null() || item.cmp_sql(&best) == wanted {
            best = item.clone();
        }
    }
    best
}

fn holds(all: &[Datum], wanted: &Datum) -> bool {
    !wanted.is_null() && all.iter().any(|item| !item.is_null() && item.cmp_sql(wanted).is_eq())
}

fn safe_at(a: &[Datum], at: i64) -> Option<Datum> {
    usize::try_from(at).ok().and_then(|at| items_of(&a[0]).get(at).cloned())
}

fn element_at(a: &[Datum], at: i64) -> SqlResult<Datum> {
    safe_at(a, at).ok_or_else(|| {
        let text = format!("array index {} is out of bounds", i64_of(&a[1]));
        braid_types::SqlError::new(SqlState::ARRAY_SUBSCRIPT_ERROR, text)
            .with_hint("SAFE_OFFSET and SAFE_ORDINAL give NULL there.")
    })
}

fn ends(t: &mut Table) {
    fn end(value: Option<&Datum>) -> SqlResult<Datum> {
        value.cloned().ok_or_else(|| invalid("an empty array has no first or last element"))
    }
    t.add("array_first(anyarray) anyelement -- the first element", |a, _| {
        end(items_of(&a[0]).first())
    });
    t.add(
        "array_last(anyarray) anyelement -- the last element",
        |a, _| end(items_of(&a[0]).last()),
    );
    t.add("array_offset(anyarray, int8) anyelement -- a[OFFSET(n)]: from 0", |a, _| {
        element_at(a, i64_of(&a[1]))
    });
    t.add("array_ordinal(anyarray, int8) anyelement -- a[ORDINAL(n)]: from 1", |a, _| {
        element_at(a, i64_of(&a[1]).saturating_sub(1))
    });
    t.add("array_safe_offset(anyarray, int8) anyelement -- a[SAFE_OFFSET(n)]: or NULL", |a, _| {
        Ok(safe_at(a, i64_of(&a[1])).unwrap_or(Datum::Null))
    });
    t.add(
        "array_safe_ordinal(anyarray, int8) anyelement -- a[SAFE_ORDINAL(n)]: or NULL",
        |a, _| Ok(safe_at(a, i64_of(&a[1]).saturating_sub(1)).unwrap_or(Datum::Null)),
    );
    t.add(
        "array_slice(anyarray, int8, int8) anyarray -- from an offset to another, negative from \
         the end",
        |a, _| {
            let all = items_of(&a[0]);
            let (from, to) = (place(&a[1], all.len()).max(0), place(&a[2], all.len()));
            let end = to.saturating_add(1).clamp(0, all.len() as i64);
            let part = all.get(from as usize..end as usize).unwrap_or_default();
            Ok(array(element(&a[0]), part.to_vec()))
        },
    );
}

fn questions(t: &mut Table) {
    t.add("array_length(anyarray) int8 -- number of elements", |a, _| {
        Ok(Datum::Int8(items_of(&a[0]).len() as i64))
    });
    t.add("array_includes(anyarray, anyelement) bool -- whether it has the element", |a, _| {
        Ok(Datum::Bool(holds(items_of(&a[0]), &a[1])))
    });
    t.add("array_includes_any(anyarray, anyarray) bool -- whether it has one of them", |a, _| {
        let all = items_of(&a[0]);
        Ok(Datum::Bool(items_of(&a[1]).iter().any(|wanted| holds(all, wanted))))
    });
    t.add("array_includes_all(anyarray, anyarray) bool -- whether it has all of them", |a, _| {
        let all = items_of(&a[0]);
        Ok(Datum::Bool(items_of(&a[1]).iter().all(|wanted| holds(all, wanted))))
    });
    t.add("array_is_distinct(anyarray) bool -- whether no element is there twice", |a, _| {
        let mut all: Vec<&Datum> = items_of(&a[0]).iter().collect();
        all.sort_by(|x, y| x.cmp_sql(y));
        Ok(Datum::Bool(!all.windows(2).any(|pair| pair[0].cmp_sql(pair[1]).is_eq())))
    });
    t.add("array_max(anyarray) anyelement -- the greatest element, NULLs left out", |a, _| {
        Ok(extreme(&a[0], Ordering::Greater))
    });
    t.add("array_min(anyarray) anyelement -- the smallest element, NULLs left out", |a, _| {
        Ok(extreme(&a[0], Ordering::Less))
    });
}

/// Adds the functions of this file.
pub(super) fn fill(t: &mut Table) {
    generators(t);
    ends(t);
    questions(t);
    t.add("array_concat(...anyarray) anyarray -- the arrays one behind the other", |a, _| {
        let all = a.iter().flat_map(items_of);
        let all: Vec<Datum> = all.take(MAX_ITEMS + 1).cloned().collect();
        if all.len() > MAX_ITEMS { Err(too_many_items()) } else { Ok(array(element(&a[0]), all)) }
    });
    t.add("array_reverse(anyarray) anyarray -- the elements from the last to the first", |a, _| {
        Ok(array(element(&a[0]), items_of(&a[0]).iter().rev().cloned().collect()))
    });
}
