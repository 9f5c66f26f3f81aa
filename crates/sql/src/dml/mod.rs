//! INSERT, UPDATE, DELETE.
//!
//! - [`insert`], [`update`], [`delete`]: the statements: what to write.
//! - [`writer`]: writing a row with its index entries, constraints and referential actions.
//! - [`ahead`]: what writing many rows will ask, asked in batches.
//! - [`range_delete`]: one tombstone for a whole span of families, and when that is right.
//! - [`references`]: foreign keys and interleave parents. [`defaults`]: values and checks of a row.
//! - [`table_load`]: very many rows at once.
//! - [`source`]: rows from a query. [`target`]: names, scopes and RETURNING of the written table.

mod ahead;
pub mod defaults;
mod delete;
mod insert;
pub(crate) mod keys;
pub mod range_delete;
pub(crate) mod references;
pub mod source;
pub(crate) mod table_load;
mod target;
mod update;
pub mod writer;

use std::sync::Arc;

use braid_catalog::Table;
use braid_types::SqlResult;

pub use delete::DeletePlan;
pub use insert::InsertPlan;
pub use target::{Returning, returning, scope_of};
pub use update::UpdatePlan;

use crate::general_query::Row;
use crate::session::Context;

/// What a writing statement did.
#[derive(Debug, Default)]
pub struct Written {
    /// Rows of the named table.
    pub count: u64,
    /// RETURNING.
    pub returning: Option<Vec<Row>>,
}

/// Inserts rows whose values are the visible columns in order.
pub(crate) fn insert_plain(ctx: &Context, table: &Arc<Table>, rows: Vec<Row>) -> SqlResult<u64> {
    let info = Arc::new(writer::TableInfo::new(ctx, table)?);
    let mut w = writer::Writer::new(ctx);
    let count = rows.len() as u64;
    let mut left = rows.into_iter();
    let mut next = || -> SqlResult<Option<Row>> {
        let Some(values) = left.next() else { return Ok(None) };
        let mut values = values.into_iter();
        let mut row = Vec::with_capacity(table.columns.len());
        for (at, c) in table.columns.iter().enumerate() {
            row.push(if c.hidden {
                info.filler.default(ctx, at)?
            } else {
                values.next().unwrap_or(braid_types::Datum::Null)
            });
        }
        Ok(Some(row))
    };
    loop {
        let mut part: Vec<((), Row)> = Vec::new();
        while part.len() < ctx.txn.batch_max()
            && let Some(row) = next()?
        {
            part.push(((), row));
        }
        if part.is_empty() {
            break;
        }
        let bad = w.prepare(&info, &mut part, false)?;
        for ((), row) in part {
            w.insert(&info, row)?;
        }
        if let Some(((), e)) = bad {
            return Err(e);
        }
    }
    w.finish()?;
    Ok(count)
}
