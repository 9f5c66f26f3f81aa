//! `pg_prepared_statements` and `pg_cursors`: what the session that asks has opened.

use braid_scalar::{OpenCursor, PreparedStatement};
use braid_types::{ArrayValue, Datum, SqlResult, SqlType};

use super::table::{Rows, SystemTable, View, flag, text};

type Made = SqlResult<Vec<Vec<Datum>>>;

/// A table about what the session has.
pub fn table(name: &str) -> Option<SystemTable> {
    let (layout, rows): (_, Rows) = match name {
        "pg_prepared_statements" => (
            "name text, statement text, prepare_time timestamptz, parameter_types regtype[], \
             from_sql bool, generic_plans int8, custom_plans int8",
            pg_prepared_statements,
        ),
        "pg_cursors" => (
            "name text, statement text, is_holdable bool, is_binary bool, is_scrollable bool, \
             creation_time timestamptz",
            pg_cursors,
        ),
        _ => return None,
    };
    Some(SystemTable { layout, rows, oid: 0 })
}

fn pg_prepared_statements(v: &View<'_>) -> Made {
    let row = |p: PreparedStatement| {
        let types = p.params.into_iter().map(Datum::Oid).collect();
        vec![
            text(p.name),
            text(p.text),
            Datum::TimestampTz(p.micros),
            Datum::Array(ArrayValue::list(SqlType::Regtype, types).into()),
            flag(p.from_sql),
            Datum::Int8(0),
            Datum::Int8(0),
        ]
    };
    Ok(v.eval.session.prepared_statements().into_iter().map(row).collect())
}

fn pg_cursors(v: &View<'_>) -> Made {
    let row = |c: OpenCursor| {
        vec![
            text(c.name),
            text(c.text),
            flag(c.holds),
            flag(c.binary),
            flag(c.scrolls),
            Datum::TimestampTz(c.micros),
        ]
    };
    Ok(v.eval.session.cursors().into_iter().map(row).collect())
}
