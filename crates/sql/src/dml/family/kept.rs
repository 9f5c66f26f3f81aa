//! What lies inside of families and does not go with them.
//!
//! ```text
//!   /customers/7
//!   /customers/7/#/notes/1            kept: for locality only
//!   /customers/7/#/notes/1/#/words/1  and all below it, whatever it says
//!   /customers/7/#/notes_by_day/..    and its index that lies in the customer
//!   /customers/7/#/orders/1           goes
//! ```
//! All rows of a kept table below one row lie together, so each such place is one span that is left
//! out; a place costs one seek, however many rows it has.

use std::sync::Arc;

use braid_catalog::{Catalog, Table, kv_error};
use braid_keys::family_end;
use braid_kv::{KeySpan, ReadMode, ScanOptions};
use braid_types::SqlResult;

use crate::session::Context;
use braid_rows::Row;
use braid_rows::{Layout, TableLayout};

/// What is asked about rows of a kept table whose parents go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Check {
    /// They may stay.
    Nothing,
    /// They must be gone when the statement ends.
    Later,
    /// They must not be there.
    Refuses,
}

/// A table whose rows do not go.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) table: Arc<TableLayout>,
    pub(super) check: Check,
    /// Keys of its rows, of rows below it, and of entries that lie above it; with the number of the
    /// path element that they have in common below one parent.
    places: Vec<(Layout, usize)>,
}

impl Kept {
    pub(super) fn new(c: &Catalog, table: &Arc<Table>, check: Check) -> SqlResult<Kept> {
        let layout = Arc::new(TableLayout::new(c, table)?);
        let element = c.depth(table) - 1;
        let mut places = vec![(layout.rows.clone(), element)];
        let below = c.subtree(table);
        for t in &below {
            let l = TableLayout::new(c, t)?;
            if t.id != table.id {
                places.push((l.rows.clone(), element));
            }
            // Entries that lie in kept rows stay with those.
            let above = |id: &u32| !below.iter().any(|t| t.id == *id);
            for i in l.kept_indexes().filter(|i| i.index.interleave_in.as_ref().is_some_and(above))
            {
                places.push((i.layout.clone(), i.layout.depth() - 1));
            }
        }
        Ok(Kept { table: layout, check, places })
    }

    pub(super) fn explain(&self) -> String {
        let name = &self.table.table.name;
        match self.check {
            Check::Nothing => format!("stays: {name} (for locality only)"),
            Check::Later => format!("check: no rows of {name} at the end (ON DELETE NO ACTION)"),
            Check::Refuses => {
                let i = self.table.table.interleave.as_ref();
                let action = i.map(|i| i.on_delete).unwrap_or_default();
                format!("check: no rows of {name} (ON DELETE {})", action.sql())
            }
        }
    }

    /// The spans that are left out of these. `found` is told of the first row of this table in each
    /// place, if rows are asked about.
    pub(super) fn spans(
        &self,
        ctx: &Context,
        spans: &[KeySpan],
        found: &mut dyn FnMut(Row) -> SqlResult<()>,
    ) -> SqlResult<Vec<KeySpan>> {
        let mut out = Vec::new();
        for (n, (layout, element)) in self.places.iter().enumerate() {
            let asks = n == 0 && self.check != Check::Nothing;
            let mode = ReadMode::Latest;
            let classes = layout.class_mask();
            let options = ScanOptions { classes, mode, ..ScanOptions::default() };
            for (at, span) in spans.iter().enumerate() {
                if at.is_multiple_of(ctx.txn.batch_max()) && spans.len() > 1 {
                    let part = &spans[at..spans.len().min(at + ctx.txn.batch_max())];
                    ctx.txn.scan_ahead(part, &options).map_err(kv_error)?;
                }
                let mut scan = ctx.txn.scan(span.clone(), options).map_err(kv_error)?;
                while let Some((key, value)) = scan.next().map_err(kv_error)? {
                    ctx.check_cancel()?;
                    let Some(cut) = layout.cut(&key, *element)? else { continue };
                    if asks && let Some(row) = self.table.decode(&key, &value, None)? {
                        found(row)?;
                    }
                    let start = key.slice(..cut);
                    let end = family_end(&start);
                    scan.seek(&end).map_err(kv_error)?;
                    out.push(KeySpan::new(start, end));
                }
            }
        }
        Ok(out)
    }
}
