//! `PENDING_COMMIT_TIMESTAMP()`: the time of the commit as a value of INSERT and UPDATE.
//!
//! It is a value of its column and nothing else: there is nothing yet that an expression could be
//! made of. What becomes of it: `storage/row_value.rs`.

use braid_catalog::Table;
use braid_scalar::{Bound, object_name_parts};
use braid_types::{Datum, SqlError, SqlResult, SqlState, TimeZone, UNIX_EPOCH_MICROS};
use sqlparser::ast;

use crate::session::Context;
use braid_rows::commit_micros;

/// The function, without arguments.
const FUNCTION: &str = "pending_commit_timestamp";

/// Whether an expression is `PENDING_COMMIT_TIMESTAMP()`.
pub(in crate::dml) fn is_pending(e: &ast::Expr) -> bool {
    let ast::Expr::Function(f) = e else { return false };
    let none = matches!(&f.args, ast::FunctionArguments::List(list) if list.args.is_empty());
    none && object_name_parts(&f.name) == [FUNCTION]
}

/// The placeholder for a column.
///
/// # Errors
/// 55000 if the column does not allow it.
pub(in crate::dml) fn pending(table: &Table, at: usize) -> SqlResult<Bound> {
    let c = &table.columns[at];
    match c.commit_time {
        true => Ok(Bound::constant(Datum::PENDING_COMMIT_TIME, c.ty.clone())),
        false => Err(SqlError::new(
            SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!("column \"{}\" does not allow commit timestamps", c.name),
        )
        .with_hint("ALTER TABLE .. ALTER COLUMN .. SET OPTIONS (allow_commit_timestamp = true).")),
    }
}

/// A query for INSERT without the values of its select list that are `PENDING_COMMIT_TIMESTAMP()`,
/// which are NULL in it, and their places; `None`: there is none whose place is known.
pub(in crate::dml) fn taken_out(query: &ast::Query) -> Option<(ast::Query, Vec<usize>)> {
    let ast::SetExpr::Select(select) = &*query.body else { return None };
    let mut select = select.clone();
    let mut places = Vec::new();
    for (n, item) in select.projection.iter_mut().enumerate() {
        let (ast::SelectItem::UnnamedExpr(e) | ast::SelectItem::ExprWithAlias { expr: e, .. }) =
            item
        else {
            // Nobody knows here how many columns a star is.
            break;
        };
        if is_pending(e) {
            *e = ast::Expr::value(ast::Value::Null);
            places.push(n);
        }
    }
    if places.is_empty() {
        return None;
    }
    Some((ast::Query { body: Box::new(ast::SetExpr::Select(select)), ..query.clone() }, places))
}

/// What SET assigns to a column from the row that was to be inserted, if that waits for the commit:
/// it may be passed on as it is.
pub(in crate::dml) fn passed_on<'a>(
    e: &Bound,
    at: usize,
    excluded: &'a [Datum],
) -> Option<&'a Datum> {
    let same = e.as_column().is_some_and(|from| from == excluded.len() + at);
    excluded.get(at).filter(|value| same && value.is_pending_commit_time())
}

/// Refuses a time in the future, which would be behind that of commits to come.
///
/// # Errors
/// 23514.
pub(crate) fn check_past(ctx: &Context, t: &Table, at: usize, value: &Datum) -> SqlResult<()> {
    let Datum::TimestampTz(micros) = value else { return Ok(()) };
    let wall = i64::try_from(ctx.db.coordinator().wall_clock_us()).unwrap_or(i64::MAX);
    // Commits that were seen may be ahead of this node's clock.
    let now = (wall - UNIX_EPOCH_MICROS).max(commit_micros(ctx.txn.read_ts()));
    if value.is_pending_commit_time() || *micros <= now {
        return Ok(());
    }
    let (name, text) = (&t.columns[at].name, value.to_text(TimeZone::utc()).unwrap_or_default());
    Err(SqlError::new(
        SqlState::CHECK_VIOLATION,
        format!("commit timestamp column \"{name}\" cannot be in the future: {text}"),
    )
    .with_hint("Use PENDING_COMMIT_TIMESTAMP().")
    .with_table(ctx.schema_name(t.schema), &t.name)
    .with_column(name))
}
