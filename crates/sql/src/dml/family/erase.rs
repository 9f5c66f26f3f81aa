//! Families go: locks, what stays, who is asked, tombstones, what others declared for it.
//!
//! Nothing of a family is read for that but what stays in it. Questions whose answer may still
//! change in the statement wait for its end, as those of rows that are deleted one by one.

use std::sync::Arc;

use braid_catalog::{Index, RefAction, Table, kv_error};
use braid_kv::{KeySpan, LockItem, LockMode, Target, Wait};
use braid_rows::Row;
use braid_types::{Datum, SqlResult};
use bytes::Bytes;

use super::doomed::{Doomed, without};
use super::fate::{Fate, Incoming};
use super::kept::{Check, Kept};
use super::probe::{parent_row_of, referring};
use crate::dml::later::Later;
use crate::dml::references::{still_has_children, still_referenced};
use crate::dml::writer::{TableInfo, Writer};
use crate::jobs::reclaim;
use crate::session::Context;
use crate::statistics::Delta;

impl Writer {
    /// Deletes rows that are heads of families, with everything that goes with them.
    pub(in crate::dml) fn erase_rows(
        &mut self,
        info: &Arc<TableInfo>,
        rows: &[(Bytes, Row)],
    ) -> SqlResult<()> {
        let fate = info.fate(&self.ctx)?;
        let doomed = Doomed::families(&info.layout, rows);
        if doomed.count == 0 {
            return Ok(());
        }
        self.erase(&fate, info, &doomed)
    }

    /// Deletes what lies in spans. What others declared for that is left to [`Writer::act`].
    pub(in crate::dml) fn erase(
        &mut self,
        fate: &Fate,
        info: &Arc<TableInfo>,
        doomed: &Doomed,
    ) -> SqlResult<()> {
        let ctx = self.ctx.clone();
        for t in fate.dying.iter().chain(fate.kept.iter().map(|kept| &kept.table.table)) {
            ctx.lock_shape(t)?;
        }
        lock_families(&ctx, &doomed.spans)?;
        let kept = self.kept_spans(fate, &doomed.spans)?;
        let gone = without(&doomed.spans, &kept);
        for incoming in &fate.incoming {
            self.referring_rows(incoming, doomed, &gone)?;
        }
        for span in &gone {
            // What this transaction had written into the span is gone with it; its entries in
            // indexes elsewhere are dead like all others.
            ctx.txn.delete_span(span).map_err(kv_error)?;
        }
        let leaves = |i: &Index| fate.leaves_entries(i.interleave_in);
        reclaim::erased(&ctx, &fate.dying, leaves, &gone)?;
        // Actions that wait may be about rows that are gone now.
        self.is_stale();
        tell(&ctx, fate, info.table(), doomed.count);
        Ok(())
    }

    /// Spans that stay, sorted, not overlapping; asks what is to be asked about them.
    fn kept_spans(&mut self, fate: &Fate, spans: &[KeySpan]) -> SqlResult<Vec<KeySpan>> {
        let ctx = self.ctx.clone();
        let mut out: Vec<KeySpan> = Vec::new();
        for kept in &fate.kept {
            let mut found = |row: Row| self.refused_child(kept, &row);
            out.extend(kept.spans(&ctx, spans, &mut found)?);
        }
        out.sort_by(|a, b| a.start.cmp(&b.start));
        // Rows below a kept one, and places that several tables have in common.
        out.dedup_by(|next, before| {
            let inside = next.start < before.end;
            if inside && before.end < next.end {
                before.end = next.end.clone();
            }
            inside
        });
        Ok(out)
    }

    /// A row that must not be there when its parent is gone.
    fn refused_child(&mut self, kept: &Kept, row: &Row) -> SqlResult<()> {
        let child = kept.table.table.clone();
        let Some(parent) = child.interleave.as_ref().map(|i| i.parent) else { return Ok(()) };
        let info = self.info(parent)?;
        let mut parent_row = vec![Datum::Null; info.table().columns.len()];
        for (theirs, own) in info.layout.rows.columns().iter().zip(kept.table.rows.columns()) {
            parent_row[theirs.ordinal] = row[own.ordinal].clone();
        }
        self.work.probes += 1;
        match kept.check {
            Check::Nothing => {}
            Check::Later => self.ask_later(Later::Children(info, parent_row, child)),
            Check::Refuses => {
                let parent = info.table();
                return Err(still_has_children(&self.ctx, parent, Some(&parent_row), &child));
            }
        }
        Ok(())
    }

    /// Looks for rows that refer to what goes, and does what was declared for them.
    fn referring_rows(
        &mut self,
        incoming: &Incoming,
        doomed: &Doomed,
        gone: &[KeySpan],
    ) -> SqlResult<()> {
        let ctx = self.ctx.clone();
        let Incoming { from, fk, to, settled, .. } = incoming;
        ctx.lock_shape(&from.table)?;
        if self.follow_spans_later(incoming, doomed)? {
            return Ok(());
        }
        let refuses = match fk.on_delete {
            RefAction::Restrict => true,
            RefAction::NoAction => *settled,
            _ => false,
        };
        let (found, asked) = referring(&ctx, incoming, doomed, gone, refuses)?;
        self.work.probes += asked;
        if found.is_empty() {
            return Ok(());
        }
        let (child, parent) = (self.info(from.table.id)?, self.info(to.table.id)?);
        for (key, row) in found {
            let parent_row = parent_row_of(from, fk, &to.table, &row);
            match fk.on_delete {
                _ if refuses => {
                    return Err(still_referenced(&ctx, &to.table, &parent_row, &from.table, fk));
                }
                RefAction::NoAction | RefAction::Restrict => {
                    let id = child.table().id;
                    let later = Later::Referenced(parent.clone(), parent_row, id, fk.clone());
                    self.ask_later(later);
                }
                RefAction::Cascade => self.delete_later(&child, key, row),
                action => {
                    self.set_later(parent.table(), None, (&child, key), fk, action)?;
                    if action == RefAction::SetDefault {
                        // The default may be the very key that is gone.
                        let id = child.table().id;
                        let later = Later::Referenced(parent.clone(), parent_row, id, fk.clone());
                        self.ask_later(later);
                    }
                }
            }
        }
        Ok(())
    }
}

/// Takes the locks of families, many at once.
pub(super) fn lock_families(ctx: &Context, spans: &[KeySpan]) -> SqlResult<()> {
    if spans.len() > 1 {
        ctx.txn.lock_ahead(spans.iter().map(family_lock).collect()).map_err(kv_error)?;
    }
    for span in spans {
        ctx.txn.lock_span(span, LockMode::Exclusive, Wait::Block).map_err(kv_error)?;
    }
    Ok(())
}

/// The lock of a family that goes.
pub(super) fn family_lock(span: &KeySpan) -> LockItem {
    LockItem { target: Target::Span(span.clone()), mode: LockMode::Exclusive, check: true }
}

/// Tells statistics how many rows are gone; those below the table by what a family holds on
/// average.
fn tell(ctx: &Context, fate: &Fate, table: &Table, count: u64) {
    let rows = |t: &Arc<Table>| ctx.db.statistics(t).map_or(1.0, |known| known.rows.max(1.0));
    let own = fate.dying.iter().find(|t| t.id == table.id).map_or(1.0, rows);
    for t in &fate.dying {
        let gone = if t.id == table.id { count as f64 } else { count as f64 * rows(t) / own };
        let delta = Delta::deleted(gone.round() as u64);
        ctx.db.statistics_state().changes.add(t, delta);
    }
}
