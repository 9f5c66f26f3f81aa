//! Rows that refer to a row that goes by a foreign key with ON DELETE CASCADE, and lie elsewhere.
//!
//! ```text
//!   lines, key (order, n), refer by (order)   many: one tombstone [/lines/7, ..)
//!   notes, key (id), index (order)            many: a part at a time; rows whose keys follow
//!                                             each other are one tombstone, others go one by one
//!   few, of either                            one by one
//! ```
//! A few rows are less work one by one, for the engine too; and what is a few is not kept in memory
//! for long. Many are not kept in memory at all.
//!
//! **Nobody waits for a span.** Who inserts a row locks its key first, and then the row that it
//! refers to, which we hold: to wait for his key here would close a circle. So a span is locked if
//! it is free at this moment, and else its rows go one by one, those that are there.

use std::sync::Arc;

use braid_catalog::ForeignKey;
use braid_kv::{KeySpan, ReadMode};
use braid_types::{Datum, SqlResult};
use bytes::Bytes;

use super::doomed::{Doomed, covers};
use super::fate::Incoming;
use super::worth::{FEW_ROWS, WORTH_SPANS, are_free, has_more, weigh};
use crate::dml::in_parts::part;
use crate::dml::references::{Referrers, rows_with};
use crate::dml::writer::{Action, TableInfo, Writer};
use crate::session::Context;
use braid_rows::Row;
use braid_rows::layout::united;
use braid_rows::{TableLayout, TableScan};

/// Beside a few, so many for each place in which they lie go one by one.
const FEW_EACH: usize = 4;

impl Writer {
    /// Leaves for later what becomes of the rows that refer by this key to these values, which are
    /// gone.
    pub(in crate::dml) fn follow_later(
        &mut self,
        child: &Arc<TableInfo>,
        fk: &ForeignKey,
        values: Vec<Datum>,
    ) -> SqlResult<()> {
        let found = rows_with(&self.ctx, &child.layout, &fk.columns, &values, FEW_ROWS + 1)?;
        if found.len() > FEW_ROWS {
            let action = match head_of(&child.layout, fk, &values) {
                Some(head) => Action::Erase(child.clone(), vec![head]),
                None => Action::Follow(child.clone(), fk.clone(), values),
            };
            self.leave(action);
            return Ok(());
        }
        for (key, row) in found {
            self.delete_later(child, key, row);
        }
        Ok(())
    }

    /// As [`Writer::follow_later`], of rows that refer to what lies in spans; `false` if they must
    /// be looked for.
    pub(super) fn follow_spans_later(
        &mut self,
        incoming: &Incoming,
        doomed: &Doomed,
    ) -> SqlResult<bool> {
        let Some(heads) = heads_in(incoming, doomed)? else { return Ok(false) };
        let from = &incoming.from;
        let few = FEW_ROWS.saturating_add(FEW_EACH.saturating_mul(heads.len()));
        let spans = spans_of(from, &heads)?;
        if !has_more(&self.ctx, &from.rows, &spans, few, ReadMode::Latest)? {
            return Ok(false);
        }
        let child = self.info(from.table.id)?;
        self.leave(Action::Erase(child, heads));
        Ok(true)
    }

    /// Deletes all rows of a table with these leading key values, and what lies in them.
    pub(in crate::dml) fn erase_under(
        &mut self,
        info: &Arc<TableInfo>,
        heads: Vec<Vec<Datum>>,
    ) -> SqlResult<()> {
        let ctx = self.ctx.clone();
        let spans = united(spans_of(&info.layout, &heads)?);
        if !are_free(&ctx, &spans)? {
            return self.delete_under(info, spans);
        }
        let fate = info.fate(&ctx)?;
        let count = weigh(&ctx, &info.layout, &spans)?;
        self.erase(&fate, info, &Doomed::in_spans(spans, heads, count))
    }

    /// As [`Writer::erase_under`], row by row.
    fn delete_under(&mut self, info: &Arc<TableInfo>, spans: Vec<KeySpan>) -> SqlResult<()> {
        let ctx = self.ctx.clone();
        let mut scan = TableScan::new(ctx.txn.clone(), info.layout.clone(), spans, None, false)
            .reading(ReadMode::Latest);
        self.delete_parts(info, |_| scan.next_row())
    }

    /// Deletes all rows of a table that refer by a key to these values.
    pub(in crate::dml) fn delete_following(
        &mut self,
        info: &Arc<TableInfo>,
        fk: &ForeignKey,
        values: &[Datum],
    ) -> SqlResult<()> {
        let mut rows = Referrers::open(&self.ctx, &info.layout, &fk.columns, values)?;
        self.delete_parts(info, |ctx| rows.next(ctx))
    }

    /// Deletes rows as they come, a part at a time.
    fn delete_parts(
        &mut self,
        info: &Arc<TableInfo>,
        mut next: impl FnMut(&Context) -> SqlResult<Option<(Bytes, Row)>>,
    ) -> SqlResult<()> {
        let ctx = self.ctx.clone();
        let mut held = ctx.memory.hold("rows that refer to deleted ones");
        while let Some(mut rows) = part(&ctx, &mut held, || next(&ctx))? {
            // Those wait for their turn.
            rows.retain(|(key, _)| !self.is_deleted(key));
            self.delete_part(info, rows)?;
            self.lock_tables_instead()?;
        }
        Ok(())
    }

    fn delete_part(&mut self, info: &Arc<TableInfo>, rows: Vec<(Bytes, Row)>) -> SqlResult<()> {
        let fate = info.fate(&self.ctx)?;
        if fate.is_family() {
            return self.erase_rows(info, &rows);
        }
        let doomed = Doomed::families(&info.layout, &rows);
        if doomed.spans.len() * WORTH_SPANS <= rows.len() {
            return self.erase(&fate, info, &doomed);
        }
        for part in rows.chunks(self.ctx.txn.batch_max()) {
            self.delete_each(info, part)?;
        }
        Ok(())
    }
}

/// The leading key values that all rows have, and no others, which refer by a key to these values.
fn head_of(layout: &TableLayout, fk: &ForeignKey, values: &[Datum]) -> Option<Vec<Datum>> {
    let columns = fk.columns.len();
    if columns < layout.rows.pure_len() {
        return None;
    }
    let value = |id: u32| fk.columns.iter().position(|c| *c == id).map(|at| values[at].clone());
    layout.rows.columns().get(..columns)?.iter().map(|k| value(k.column)).collect()
}

/// The leading key values that all rows have, and no others, which refer to what lies in spans.
/// `None` if these do not tell.
pub(super) fn heads_in(incoming: &Incoming, doomed: &Doomed) -> SqlResult<Option<Vec<Vec<Datum>>>> {
    let Incoming { from, fk, to, follows, .. } = incoming;
    let given = doomed.heads.first().map_or(0, Vec::len);
    // A row with a NULL refers to nothing, and stays.
    let told = from.rows.columns().iter().take(fk.columns.len()).skip(given);
    let sure = told.into_iter().all(|k| !from.table.columns[k.ordinal].nullable);
    if !follows || !sure || given < from.rows.pure_len() {
        return Ok(None);
    }
    for head in &doomed.heads {
        // Bounds on the next column leave some of its rows where they are.
        if !covers(&doomed.spans, &to.rows.prefix_span(head)?) {
            return Ok(None);
        }
    }
    Ok(Some(doomed.heads.clone()))
}

fn spans_of(layout: &TableLayout, heads: &[Vec<Datum>]) -> SqlResult<Vec<KeySpan>> {
    heads.iter().map(|head| layout.rows.prefix_span(head)).collect()
}
