//! Operators over `pg_lsn`, places in a log: bytes between them, and places so many bytes on.

use std::sync::Arc;

use braid_types::numeric::{self, BigDecimal};
use braid_types::ordered::lsn::{bytes_before, of};
use braid_types::{Datum, SqlError, SqlResult, SqlState};

use crate::registry::{Eval, Table};

fn place(value: &Datum) -> i128 {
    match value {
        Datum::Ordered(value) => i128::from(bytes_before(value)),
        _ => 0,
    }
}

fn number(value: i128) -> SqlResult<Datum> {
    numeric::datum(numeric::from_i128(value))
}

/// So many bytes on; what is said of NaN begins with `verb`.
fn moved(from: i128, by: &Datum, sign: i8, (verb, preposition): (&str, &str)) -> SqlResult<Datum> {
    let range = || SqlError::new(SqlState::INVALID_PARAMETER_VALUE, "pg_lsn out of range");
    let by = match by {
        Datum::Numeric(by) => Arc::clone(by),
        Datum::NumericNan => {
            let text = format!("cannot {verb} NaN {preposition} pg_lsn");
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text));
        }
        _ => {
            let text = "cannot convert infinity to pg_lsn";
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text));
        }
    };
    let from = numeric::from_i128(from);
    let to: BigDecimal = if sign < 0 { numeric::sub(&from, &by) } else { numeric::add(&from, &by) };
    let rounded = numeric::to_i128(&to).and_then(|bytes| u64::try_from(bytes).ok());
    rounded.map(|bytes| Datum::Ordered(of(bytes))).ok_or_else(range)
}

/// Adds the functions of this file.
pub(super) fn fill(t: &mut Table) {
    let between: Eval = |a, _| number(place(&a[0]) - place(&a[1]));
    t.add("-(pg_lsn, pg_lsn) numeric", between);
    t.add("pg_lsn_mi(pg_lsn, pg_lsn) numeric -- as `-`", between);
    t.add("pg_wal_lsn_diff(pg_lsn, pg_lsn) numeric -- bytes between two places in a log", between);
    let add: Eval = |a, _| moved(place(&a[0]), &a[1], 1, ("add", "to"));
    t.add("+(pg_lsn, numeric) pg_lsn", add);
    t.add("pg_lsn_pli(pg_lsn, numeric) pg_lsn -- as `+`", add);
    let added: Eval = |a, _| moved(place(&a[1]), &a[0], 1, ("add", "to"));
    t.add("+(numeric, pg_lsn) pg_lsn", added);
    t.add("numeric_pl_pg_lsn(numeric, pg_lsn) pg_lsn -- as `+`", added);
    let back: Eval = |a, _| moved(place(&a[0]), &a[1], -1, ("subtract", "from"));
    t.add("-(pg_lsn, numeric) pg_lsn", back);
    t.add("pg_lsn_mii(pg_lsn, numeric) pg_lsn -- as `-`", back);
    t.add("pg_lsn(numeric) pg_lsn -- the place behind so many bytes", |a, _| {
        moved(0, &a[0], 1, ("convert", "to"))
    });
    let greater: Eval = |a, _| Ok(if place(&a[0]) > place(&a[1]) { &a[0] } else { &a[1] }.clone());
    t.add("pg_lsn_larger(pg_lsn, pg_lsn) pg_lsn -- the later of two places", greater);
    let less: Eval = |a, _| Ok(if place(&a[0]) < place(&a[1]) { &a[0] } else { &a[1] }.clone());
    t.add("pg_lsn_smaller(pg_lsn, pg_lsn) pg_lsn -- the earlier of two places", less);
}
