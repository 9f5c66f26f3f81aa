//! Does every row that moved have its parent row?
//!
//! Asked once of all rows, as of one time, and from then on of those that came, and of the rows
//! below parents that went.

use std::sync::Arc;

use braid_catalog::kv_error;
use braid_kv::{KeySpan, ReadMode, Watched};
use braid_types::SqlResult;
use bytes::Bytes;

use super::copy::rows_of;
use super::moving::Moving;
use crate::dml::references::missing_parent;
use crate::session::Context;
use braid_rows::Row;
use braid_rows::{TableLayout, TableScan};

/// Rows whose parents are looked up together.
const AT_ONCE: usize = 512;

/// Looks parents of rows up, many at a time.
pub(super) struct Parents<'a> {
    ctx: &'a Context,
    parent: &'a TableLayout,
    own: &'a TableLayout,
    asked: Vec<(Bytes, Row)>,
}

impl Parents<'_> {
    /// Asks for a row's parent.
    pub(super) fn ask(&mut self, row: &Row) -> SqlResult<()> {
        let key: Bytes = self.own.parent_key(self.parent, row)?.into();
        // Rows mostly come in groups.
        if self.asked.last().is_some_and(|(last, _)| *last == key) {
            return Ok(());
        }
        self.asked.push((key, row.clone()));
        if self.asked.len() == AT_ONCE { self.answer() } else { Ok(()) }
    }

    /// Has all answered.
    ///
    /// # Errors
    /// 23503 if a parent is not there.
    pub(super) fn answer(&mut self) -> SqlResult<()> {
        self.ctx.check_cancel()?;
        let keys: Vec<Bytes> = self.asked.iter().map(|(key, _)| key.clone()).collect();
        let found = self.ctx.txn.get_many(&keys, ReadMode::Unrecorded).map_err(kv_error)?;
        match found.iter().position(Option::is_none) {
            Some(n) => Err(missing_parent(self.ctx, self.own, self.parent, &self.asked[n].1)),
            None => {
                self.asked.clear();
                Ok(())
            }
        }
    }
}

impl Moving {
    /// Asks for parents as the context's transaction sees them; `None` if none must be there.
    pub(super) fn parents<'a>(&'a self, ctx: &'a Context) -> Option<Parents<'a>> {
        let parent = self.parent.as_ref()?;
        Some(Parents { ctx, parent, own: &self.first().now, asked: Vec::new() })
    }

    /// That all rows which the context's transaction sees have parents that it sees.
    pub(super) fn check_all(&self, ctx: &Context) -> SqlResult<()> {
        let Some(mut parents) = self.parents(ctx) else { return Ok(()) };
        let mut rows = rows_of(ctx, &self.first().old, false);
        while let Some((_, row)) = rows.next_row()? {
            parents.ask(&row)?;
        }
        parents.answer()
    }

    /// That nothing lies below parents that have gone since `prev`, as `now` sees it. `at` reads
    /// the new rows, which are what `now` says.
    pub(super) fn check_gone(
        &self,
        prev: &Context,
        now: &Context,
        at: &Context,
        seen: &Watched,
    ) -> SqlResult<()> {
        let Some(parent) = &self.parent else { return Ok(()) };
        if seen.lost {
            return self.check_all(now);
        }
        let erased = seen.erased.iter().map(|(span, _)| span);
        for span in seen.touched.iter().chain(erased) {
            let mut before = rows_in(prev, parent, span, ReadMode::Unrecorded);
            loop {
                let mut keys: Vec<Bytes> = Vec::new();
                while keys.len() < AT_ONCE
                    && let Some((key, _)) = before.next_row()?
                {
                    keys.push(key);
                }
                if keys.is_empty() {
                    break;
                }
                now.check_cancel()?;
                let there = now.txn.get_many(&keys, ReadMode::Unrecorded).map_err(kv_error)?;
                for (key, _) in keys.iter().zip(there).filter(|(_, there)| there.is_none()) {
                    self.check_empty(now, at, parent, key)?;
                }
            }
        }
        Ok(())
    }

    /// That nothing lies below a parent that has gone.
    fn check_empty(
        &self,
        now: &Context,
        at: &Context,
        parent: &TableLayout,
        key: &[u8],
    ) -> SqlResult<()> {
        let own = &self.first().now;
        let family = TableLayout::family_span(key);
        match rows_in(at, own, &family, ReadMode::Latest).next_row()? {
            Some((_, row)) => Err(missing_parent(now, own, parent, &row)),
            None => Ok(()),
        }
    }
}

/// Rows of a table in a span.
pub(super) fn rows_in(
    ctx: &Context,
    layout: &Arc<TableLayout>,
    span: &KeySpan,
    mode: ReadMode,
) -> TableScan {
    let spans = vec![span.clone()];
    TableScan::new(ctx.txn.clone(), layout.clone(), spans, None, false).reading(mode)
}
