//! Row deletion policies: which rows are too old to be kept.
//!
//! ```text
//!   ROW DELETION POLICY (OLDER_THAN(created, INTERVAL 30 DAY))       GoogleSQL
//!   TTL INTERVAL '30 days' ON created                                PostgreSQL dialect
//! ```
//! Rows go with their families, so everything below must be able to go: ON DELETE CASCADE, or for
//! locality only. Who takes them away: [`crate::jobs::expiry`].

use std::sync::Arc;

use braid_catalog::{Interleave, RefAction, Table, Ttl};
use braid_parser::TtlClause;
use braid_types::{Datum, SqlError, SqlResult, SqlState, SqlType, TimeZone};

use crate::ddl::{Change, alter_column, bad_table};

/// Checks a policy of a table whose columns are known.
pub(in crate::ddl) fn declare(c: &Change, t: &Table, clause: &TtlClause) -> SqlResult<Ttl> {
    let column = t.column_named(&clause.column).ok_or_else(|| {
        SqlError::new(
            SqlState::UNDEFINED_COLUMN,
            format!("column \"{}\" of a row deletion policy does not exist", clause.column),
        )
    })?;
    if !is_time(&column.ty) {
        return Err(SqlError::new(
            SqlState::DATATYPE_MISMATCH,
            format!("column \"{}\" of a row deletion policy must be a time", column.name),
        )
        .with_hint("Use a column of type timestamptz, timestamp or date."));
    }
    let zero = Datum::parse("0", &SqlType::Interval, TimeZone::utc())?;
    let age = Datum::parse(&clause.interval, &SqlType::Interval, TimeZone::utc())?;
    if age.cmp_sql(&zero).is_lt() {
        return Err(SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            "the interval of a row deletion policy must not be negative",
        ));
    }
    if let Some(t) = c.catalog.table(t.id) {
        for child in &c.catalog.subtree(t)[1..] {
            if let Some(i) = child.interleave.as_ref().filter(|i| stops(i)) {
                return Err(stopped(&t.name, &child.name, i.on_delete));
            }
        }
    }
    Ok(Ttl { column: column.id, interval: age.to_text(TimeZone::utc()).unwrap_or_default() })
}

fn is_time(ty: &SqlType) -> bool {
    matches!(ty, SqlType::TimestampTz | SqlType::Timestamp | SqlType::Date)
}

/// Whether a child keeps its parent from being deleted.
fn stops(i: &Interleave) -> bool {
    i.enforced() && i.on_delete != RefAction::Cascade
}

fn stopped(table: &str, child: &str, action: RefAction) -> SqlError {
    bad_table(format!(
        "table \"{child}\" is ON DELETE {} below table \"{table}\" with a row deletion policy",
        action.sql()
    ))
    .with_hint("Everything interleaved in a table with a row deletion policy must go along.")
}

/// Refuses a child that would keep rows of a table above with a policy.
pub(in crate::ddl) fn check_above(c: &Change, child: &str, i: &Interleave) -> SqlResult<()> {
    let Some(parent) = c.catalog.table(i.parent).filter(|_| stops(i)) else { return Ok(()) };
    match c.catalog.chain(parent).iter().find(|above| above.upkeep.ttl.is_some()) {
        Some(above) => Err(stopped(&above.name, child, i.on_delete)),
        None => Ok(()),
    }
}

/// ALTER TABLE: another policy, or none.
pub(in crate::ddl) fn set(
    c: &mut Change,
    t: &Arc<Table>,
    clause: Option<&TtlClause>,
) -> SqlResult<()> {
    if clause.is_none() && t.upkeep.ttl.is_none() {
        if t.column_named("ttl").is_some() {
            return alter_column::drop(c, t, "ttl", false, false);
        }
        return Err(bad_table(format!("table \"{}\" has no row deletion policy", t.name)));
    }
    let mut new = (**t).clone();
    new.upkeep.ttl = clause.map(|clause| declare(c, t, clause)).transpose()?;
    c.put(new);
    Ok(())
}

/// Refuses to change a column by which rows grow old.
pub(in crate::ddl) fn refuse_used(t: &Table, column: u32) -> SqlResult<()> {
    match t.upkeep.ttl.as_ref().filter(|ttl| ttl.column == column) {
        None => Ok(()),
        Some(_) => Err(SqlError::new(
            SqlState::DEPENDENT_OBJECTS_STILL_EXIST,
            format!("the row deletion policy of table \"{}\" uses this column", t.name),
        )
        .with_hint("Drop the policy first: ALTER TABLE .. DROP ROW DELETION POLICY.")),
    }
}
