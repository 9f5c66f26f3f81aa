//! `(a, b) OVERLAPS (c, d)`: whether two spans of time meet. A span is two ends in any order, or
//! one end and how long it is.

use std::cmp::Ordering;

use braid_types::{Datum, SqlResult};

use super::interval_of;
use super::zoned_time::later;
use crate::EvalContext;
use crate::operators::{add_interval, add_interval_tz};
use crate::registry::Table;

/// The second end of a span.
fn end(from: &Datum, to: &Datum, ctx: &EvalContext) -> SqlResult<Datum> {
    let Datum::Interval(_) = to else { return Ok(to.clone()) };
    let long = interval_of(to);
    Ok(match from {
        Datum::Timestamp(at) => Datum::Timestamp(add_interval(*at, &long)?),
        Datum::TimestampTz(at) => Datum::TimestampTz(add_interval_tz(*at, &long, ctx)?),
        Datum::Time(at) => {
            Datum::Time((at.wrapping_add(long.micros)).rem_euclid(braid_types::MICROS_PER_DAY))
        }
        Datum::Null => Datum::Null,
        timetz => later(timetz, long.micros)?,
    })
}

/// A span with its ends in order; the second one is NULL if one of them is not known.
fn span(a: &Datum, b: &Datum) -> Option<(Datum, Datum)> {
    match (a, b) {
        (Datum::Null, Datum::Null) => None,
        (Datum::Null, known) | (known, Datum::Null) => Some((known.clone(), Datum::Null)),
        (a, b) if a.cmp_sql(b) == Ordering::Greater => Some((b.clone(), a.clone())),
        (a, b) => Some((a.clone(), b.clone())),
    }
}

fn overlaps(a: &[Datum], ctx: &EvalContext) -> SqlResult<Datum> {
    let first = span(&a[0], &end(&a[0], &a[1], ctx)?);
    let second = span(&a[2], &end(&a[2], &a[3], ctx)?);
    let (Some(first), Some(second)) = (first, second) else { return Ok(Datum::Null) };
    let (early, late) = match first.0.cmp_sql(&second.0) {
        // At one moment at least they are the same.
        Ordering::Equal if first.1.is_null() || second.1.is_null() => return Ok(Datum::Null),
        Ordering::Equal => return Ok(Datum::Bool(true)),
        Ordering::Less => (first, second),
        Ordering::Greater => (second, first),
    };
    if early.1.is_null() {
        return Ok(Datum::Null);
    }
    if late.0.cmp_sql(&early.1) == Ordering::Less {
        return Ok(Datum::Bool(true));
    }
    Ok(if late.1.is_null() { Datum::Null } else { Datum::Bool(false) })
}

macro_rules! all {
    ($t:ident, $($about:literal, $ty:literal;)*) => {
        $(
            $t.add(concat!("overlaps(", $ty, ", ", $ty, ", ", $ty, ", ", $ty, ") bool", $about),
                overlaps).lax();
        )*
    };
}

macro_rules! long {
    ($t:ident, $($ty:literal;)*) => {
        $(
            $t.add(concat!("overlaps(", $ty, ", interval, ", $ty, ", interval) bool"),
                overlaps).lax().stable();
            $t.add(concat!("overlaps(", $ty, ", ", $ty, ", ", $ty, ", interval) bool"),
                overlaps).lax().stable();
            $t.add(concat!("overlaps(", $ty, ", interval, ", $ty, ", ", $ty, ") bool"),
                overlaps).lax().stable();
        )*
    };
}

/// Adds the functions of this file.
pub(super) fn fill(t: &mut Table) {
    all! { t,
        " -- whether two spans of time meet: `(a, b) OVERLAPS (c, d)`", "timestamptz";
        "", "timestamp";
        "", "time";
        "", "timetz";
    }
    long! { t, "timestamptz"; "timestamp"; "time"; }
}
