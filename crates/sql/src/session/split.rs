//! ALTER TABLE .. SPLIT AT VALUES: borders of ranges where somebody wants them.
//!
//! ```text
//!   customers SPLIT AT VALUES (512)     .. /customers/511 | /customers/512 ..
//!   orders    SPLIT AT VALUES (512)     the same, if orders lie in customers
//!   orders    SPLIT AT VALUES (512, 7)  inside of the family: /customers/512/#/orders/7 ..
//! ```
//!
//! Ranges that are large are split by themselves; a table that is going to be large can be parted
//! before it is filled. A border is no part of the transaction: it is there when the statement
//! ends, also if the transaction is rolled back, and nobody's rows change.

use std::sync::Arc;

use braid_catalog::{Table, kv_error};
use braid_keys::path::elements;
use braid_parser::SplitTable;
use braid_scalar::Scope;
use braid_types::{SqlError, SqlResult, SqlState};
use sqlparser::ast::Expr;

use super::Context;
use braid_rows::TableLayout;

pub(crate) fn run(ctx: &Context, split: &SplitTable) -> SqlResult<()> {
    if split.if_exists && ctx.find_relation(&split.table)?.is_none() {
        let name = split.table.join(".");
        ctx.notice(format!("relation \"{name}\" does not exist, skipping"));
        return Ok(());
    }
    let table = ctx.table(&split.table)?;
    let coordinator = ctx.db.coordinator();
    if coordinator.describe_ranges().map_err(kv_error)?.is_none() {
        return Err(SqlError::unsupported("ALTER TABLE .. SPLIT AT on a node that is alone")
            .with_hint("Only the members of a cluster part their keys into ranges."));
    }
    let border = |values: &Vec<Expr>| key_of(ctx, &table, values, "SPLIT AT");
    let borders: Vec<Vec<u8>> = split.borders.iter().map(border).collect::<SqlResult<_>>()?;
    for border in borders {
        ctx.check_cancel()?;
        coordinator.split_at(&border).map_err(kv_error)?;
    }
    Ok(())
}

/// The first key of a row with these values of its primary key, or the first of them; `what` wants
/// to know it.
///
/// # Errors
/// 0A000 for a table without a primary key, 42601 for too many values, 23502 for NULL.
pub(super) fn key_of(
    ctx: &Context,
    table: &Arc<Table>,
    values: &[Expr],
    what: &str,
) -> SqlResult<Vec<u8>> {
    if table.has_row_id() {
        return Err(SqlError::unsupported(format!("{what} for a table without a primary key"))
            .with_hint("Its rows have a hidden key, and lie in the order in which they came."));
    }
    let rows = TableLayout::new(&ctx.catalog, table)?.rows;
    let columns = rows.columns();
    if values.len() > columns.len() {
        let most = columns.len();
        let text = format!("{what} has {} values, and the primary key {most}", values.len());
        return Err(SqlError::syntax(text));
    }
    let mut none = ctx.no_params();
    let mut first = Vec::with_capacity(values.len());
    for (value, column) in values.iter().zip(columns) {
        let bound = braid_scalar::bind_to(value, &column.ty, &Scope::empty(), &mut none)?;
        let value = bound.eval(&[], &ctx.eval)?;
        if value.is_null() {
            let text = format!("{what} takes no NULL: columns of a primary key have none");
            return Err(SqlError::new(SqlState::NOT_NULL_VIOLATION, text));
        }
        first.push(value);
    }
    let mut key = rows.prefix(&first)?;
    // All values are those of the rows that it lies in: in front of their families.
    if let [.., outer, last] = elements(&key)?.as_slice()
        && last.columns == last.end
    {
        key.truncate(outer.end);
    }
    Ok(key)
}
