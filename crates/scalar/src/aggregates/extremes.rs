//! Aggregates that keep one value: the smallest, the greatest, all true, bits, any.

use braid_types::Datum;

use super::accumulator::{Accumulator, AggregateCode};
use super::running::{Next, running};
use crate::functions::i64_of;
use crate::registry::Table;

fn one(next: fn(&Datum, &Datum) -> Option<Datum>) -> Box<dyn Accumulator> {
    running(Next::Better(next))
}

/// Keeps the first value that is not NULL: what plans show of values that are equal.
pub fn first_of_group() -> AggregateCode {
    AggregateCode { start: |_| one(|_, _| None), by_order: true, within_group: None, extreme: None }
}

fn truths(a: &Datum, b: &Datum, op: fn(bool, bool) -> bool) -> Option<Datum> {
    match (a, b) {
        (Datum::Bool(a), Datum::Bool(b)) => Some(Datum::Bool(op(*a, *b))),
        _ => None,
    }
}

fn bits(a: &Datum, b: &Datum, op: fn(i64, i64) -> i64) -> Option<Datum> {
    let result = op(i64_of(a), i64_of(b));
    Some(match a {
        Datum::Int2(_) => Datum::Int2(result as i16),
        Datum::Int4(_) => Datum::Int4(result as i32),
        _ => Datum::Int8(result),
    })
}

/// Adds the aggregates of this file.
pub(super) fn fill(t: &mut Table) {
    macro_rules! extreme {
        ($name:literal, $about:literal, $last:literal, $next:expr) => {
            for signature in [
                concat!($name, "(int2) int2 -- ", $about),
                concat!($name, "(int4) int4"),
                concat!($name, "(int8) int8"),
                concat!($name, "(numeric) numeric"),
                concat!($name, "(float4) float4"),
                concat!($name, "(float8) float8"),
                concat!($name, "(text) text"),
                concat!($name, "(bpchar) bpchar"),
                concat!($name, "(date) date"),
                concat!($name, "(time) time"),
                concat!($name, "(timestamp) timestamp"),
                concat!($name, "(timestamptz) timestamptz"),
                concat!($name, "(interval) interval"),
                concat!($name, "(oid) oid"),
                concat!($name, "(inet) inet"),
                concat!($name, "(money) money"),
                concat!($name, "(timetz) timetz"),
                concat!($name, "(tid) tid"),
                concat!($name, "(xid8) xid8"),
                concat!($name, "(pg_lsn) pg_lsn"),
                concat!($name, "(citext) citext"),
                concat!($name, "(anyarray) anyarray"),
                concat!($name, "(anyenum) anyenum"),
            ] {
                t.aggregate(signature, |_| one($next)).extreme($last);
            }
        };
    }
    // Of equal values that look different (0 and 0.00) the last is kept, as in PostgreSQL.
    extreme!("min", "the smallest value", false, |kept, v| v
        .cmp_sql(kept)
        .is_le()
        .then(|| v.clone()));
    extreme!("max", "the greatest value", true, |kept, v| v
        .cmp_sql(kept)
        .is_ge()
        .then(|| v.clone()));
    for signature in
        ["bool_and(bool) bool -- whether all are true", "every(bool) bool -- as `bool_and`"]
    {
        t.aggregate(signature, |_| one(|a, b| truths(a, b, |a, b| a && b)));
    }
    t.aggregate("bool_or(bool) bool -- whether one is true", |_| {
        one(|a, b| truths(a, b, |a, b| a || b))
    });
    macro_rules! bitwise {
        ($name:literal, $about:literal, $op:expr) => {
            for signature in [
                concat!($name, "(int2) int2 -- ", $about),
                concat!($name, "(int4) int4"),
                concat!($name, "(int8) int8"),
            ] {
                t.aggregate(signature, |_| one(|a, b| bits(a, b, $op)));
            }
        };
    }
    bitwise!("bit_and", "and of the bits of all", |a, b| a & b);
    bitwise!("bit_or", "or of the bits of all", |a, b| a | b);
    bitwise!("bit_xor", "exclusive or of the bits of all", |a, b| a ^ b);
    t.aggregate("any_value(anyelement) anyelement -- one of the values", first_of_group().start)
        .by_order();
}
