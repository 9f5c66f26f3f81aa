//! The range delete: whole families go under one tombstone per key span.
//!
//! ```text
//!   DELETE FROM orders WHERE customer = 7 AND id < 100
//!     span   [/customers/7/#/orders , /customers/7/#/orders/100)     with all lines in it
//!     one tombstone; O(1) in rows below, whatever secondary indexes there are
//! ```
//!
//! It is right when deleting row by row would leave nothing of the spans:
//! 1. WHERE says exactly "key in these spans", and the spans hold no row of another table that is
//!    not below the deleted rows.
//! 2. Every table below goes along: ON DELETE CASCADE of the interleaving, or of a foreign key on
//!    the interleave columns. One with NO ACTION is probed: rows there are error 23503, as row by
//!    row. One that is interleaved for locality only must survive: no range delete.
//! 3. Foreign keys into the spans from elsewhere are probed (NO ACTION, RESTRICT); their other
//!    actions need the rows: no range delete.
//!
//! Secondary indexes never matter. Entries inside the spans go along; entries elsewhere become
//! dead: readers check every entry against its base row (see `storage::scan`).
//!
//! The row count is that of the named table, found by seeks over the families, or by one read when
//! the span is a single row's.

use std::sync::Arc;

use braid_catalog::{ForeignKey, InterleaveForm, RefAction, Table, kv_error};
use braid_kv::{KeySpan, LockItem, LockMode, ReadMode, Target, Wait};
use braid_types::{Datum, SqlResult};
use bytes::Bytes;

use super::ahead::{self, Referring};
use super::references::{
    find_by_key, lookup_of, reference_values, rows_with, still_has_children, still_referenced,
};
use super::writer::TableInfo;
use crate::general_query::Row;
use crate::plan::access::Access;
use crate::session::Context;
use crate::statistics::Delta;
use crate::storage::scan::get_row;
use crate::storage::{TableLayout, TableScan};

/// A planned range delete.
pub(crate) struct RangeDelete {
    access: Access,
    /// The deleted table and all below it.
    subtree: Vec<Arc<Table>>,
    /// Tables below whose rows forbid the delete.
    must_be_empty: Vec<Arc<TableLayout>>,
    /// Foreign keys from elsewhere: referencing table, key, referenced table.
    probes: Vec<(Arc<TableLayout>, ForeignKey, Arc<TableLayout>)>,
}

impl RangeDelete {
    /// Plans it, or says why not.
    pub fn plan(
        ctx: &Context,
        info: &TableInfo,
        access: Access,
        returning: bool,
    ) -> SqlResult<Result<RangeDelete, String>> {
        let c = &ctx.catalog;
        let table = info.table();
        let subtree = c.subtree(table);
        if subtree.len() == 1 {
            return Ok(Err("no table is interleaved in it".into()));
        }
        if returning {
            return Ok(Err("RETURNING needs the rows".into()));
        }
        if let Some(rest) = access.rest.first() {
            return Ok(Err(format!("the condition {rest} is not a span of the primary key")));
        }
        if access.eq_len() < info.layout.rows.pure_len() {
            let parent = table.interleave.as_ref().and_then(|i| c.table(i.parent));
            return Ok(Err(format!(
                "the spans would also hold rows of table {}",
                parent.map_or("", |p| &p.name)
            )));
        }
        let mut plan = RangeDelete {
            access,
            subtree: subtree.clone(),
            must_be_empty: Vec::new(),
            probes: Vec::new(),
        };
        for t in &subtree[1..] {
            match fate(t) {
                Fate::Dies => {}
                Fate::MustBeAbsent => {
                    plan.must_be_empty.push(Arc::new(TableLayout::new(c, t)?));
                }
                Fate::Survives => {
                    return Ok(Err(format!(
                        "rows of table {} are interleaved for locality only and must stay",
                        t.name
                    )));
                }
            }
        }
        for s in &subtree {
            for r in c.referencing_tables(s.id) {
                for fk in r.kept_foreign_keys().filter(|fk| fk.parent == s.id) {
                    let inside = subtree.iter().any(|t| t.id == r.id);
                    let along = inside && along_the_path(r, fk, s);
                    match (along, fk.on_delete) {
                        (true, RefAction::Cascade | RefAction::NoAction) => {}
                        (false, RefAction::NoAction | RefAction::Restrict) => plan.probes.push((
                            Arc::new(TableLayout::new(c, r)?),
                            fk.clone(),
                            Arc::new(TableLayout::new(c, s)?),
                        )),
                        (_, action) => {
                            return Ok(Err(format!(
                                "foreign key {} of table {} is ON DELETE {}",
                                fk.name,
                                r.name,
                                action.sql()
                            )));
                        }
                    }
                }
            }
        }
        Ok(Ok(plan))
    }

    /// Which rows of the named table go.
    pub fn access(&self) -> &Access {
        &self.access
    }

    /// Whether lists of keys name so many combinations that the spans would hold other rows too.
    pub(crate) fn is_too_wide(&self, ctx: &Context, info: &TableInfo) -> SqlResult<bool> {
        Ok(!self.access.excess(&info.layout, &[], &ctx.eval)?.is_empty())
    }

    /// Runs it; returns the number of rows of the named table.
    pub fn run(&self, ctx: &Context, info: &TableInfo) -> SqlResult<u64> {
        for t in &self.subtree {
            ctx.lock_shape(t)?;
        }
        let layout = &info.layout;
        let (spans, count) = if self.access.is_point(layout) {
            let mut spans = Vec::new();
            let keys = self.access.points(layout, &[], &ctx.eval)?;
            for (n, key) in keys.iter().enumerate() {
                if n.is_multiple_of(ctx.txn.batch_max()) && keys.len() > 1 {
                    let part = &keys[n..keys.len().min(n + ctx.txn.batch_max())];
                    ask_families(ctx, part)?;
                }
                let span = TableLayout::family_span(key);
                ctx.txn.lock_span(&span, LockMode::Exclusive, Wait::Block).map_err(kv_error)?;
                if get_row(&ctx.txn, layout, key.clone())?.is_some() {
                    spans.push(span);
                }
            }
            let n = spans.len() as u64;
            (spans, n)
        } else {
            let spans = self.access.spans(layout, &[], &ctx.eval)?;
            lock_families(ctx, &spans)?;
            for s in &spans {
                ctx.txn.lock_span(s, LockMode::Exclusive, Wait::Block).map_err(kv_error)?;
            }
            // Only the keys matter for counting.
            let none = Some(vec![false; layout.table.columns.len()]);
            let mut scan =
                TableScan::new(ctx.txn.clone(), layout.clone(), spans.clone(), none, false);
            while scan.next_row()?.is_some() {
                if scan.rows.is_multiple_of(1024) {
                    ctx.check_cancel()?;
                }
            }
            (spans, scan.rows)
        };
        if count == 0 {
            return Ok(0);
        }
        self.check_children(ctx, info, &spans)?;
        self.check_references(ctx, &spans)?;
        for span in &spans {
            // What this transaction had written into the span is gone with it; its entries in
            // indexes elsewhere are dead like all others.
            ctx.txn.delete_span(span).map_err(kv_error)?;
        }
        let now = ctx.db.coordinator().wall_clock_us();
        self.subtree.iter().for_each(|t| ctx.db.reclaim_state().mark(t, now));
        self.tell(ctx, info.table(), count);
        Ok(count)
    }

    /// Tells statistics how many rows are gone; those below the table by what a family holds on
    /// average.
    fn tell(&self, ctx: &Context, table: &Table, count: u64) {
        let rows = |t: &Arc<Table>| ctx.db.statistics(t).map_or(1.0, |known| known.rows.max(1.0));
        let own = self.subtree.iter().find(|t| t.id == table.id).map_or(1.0, rows);
        for t in &self.subtree {
            let gone = if t.id == table.id { count as f64 } else { count as f64 * rows(t) / own };
            let delta = Delta::deleted(gone.round() as u64);
            ctx.db.statistics_state().changes.add(t, delta);
        }
    }

    fn check_children(&self, ctx: &Context, info: &TableInfo, spans: &[KeySpan]) -> SqlResult<()> {
        for child in &self.must_be_empty {
            let mut scan =
                TableScan::new(ctx.txn.clone(), child.clone(), spans.to_vec(), None, false)
                    .reading(ReadMode::Latest);
            if let Some((_, row)) = scan.next_row()? {
                let parent = child
                    .table
                    .interleave
                    .as_ref()
                    .and_then(|i| ctx.catalog.table(i.parent))
                    .unwrap_or(info.table());
                if let Some(fk) = path_key(&child.table) {
                    let parent_row = parent_row_of(child, fk, parent, &row);
                    return Err(still_referenced(ctx, parent, &parent_row, &child.table, fk));
                }
                let mut parent_row = vec![Datum::Null; parent.columns.len()];
                for (k, own) in parent.primary.columns.iter().zip(child.rows.columns()) {
                    if let Some(o) = parent.ordinal(k.column) {
                        parent_row[o] = row[own.ordinal].clone();
                    }
                }
                return Err(still_has_children(ctx, parent, Some(&parent_row), &child.table));
            }
        }
        Ok(())
    }

    /// Looks for rows elsewhere that refer to rows in the spans.
    fn check_references(&self, ctx: &Context, spans: &[KeySpan]) -> SqlResult<()> {
        let most = ctx.txn.batch_max();
        for (from, fk, to) in &self.probes {
            ctx.lock_shape(&from.table)?;
            let mut probe = Probe { ctx, spans, from, fk, to, waiting: Vec::new() };
            // The deleted key's leading columns, as far as the foreign key holds them, find the
            // candidates by an index of the referencing table.
            let leading: Vec<u32> = to.rows.columns()
                [..self.access.eq_len().min(to.rows.columns().len())]
                .iter()
                .map_while(|k| fk.parent_columns.iter().position(|p| *p == k.column))
                .map(|p| fk.columns[p])
                .collect();
            let nothing = vec![Datum::Null; leading.len()];
            // Without such an index, once over all of it, however many keys there are.
            if lookup_of(from, &leading, &nothing).1.is_empty() {
                let all = vec![from.rows.whole_span()];
                let mut scan = TableScan::new(ctx.txn.clone(), from.clone(), all, None, false)
                    .reading(ReadMode::Latest);
                while let Some((key, row)) = scan.next_row()? {
                    probe.take(&key, row)?;
                }
            } else {
                for prefixes in self.access.prefixes(&[], &ctx.eval)?.chunks(most) {
                    let mut referring = Referring::new(ctx);
                    for prefix in prefixes {
                        referring.rows_with(from, &leading, &prefix[..leading.len()])?;
                    }
                    referring.ask()?;
                    for prefix in prefixes {
                        let values = &prefix[..leading.len()];
                        for (key, row) in rows_with(ctx, from, &leading, values, usize::MAX)? {
                            probe.take(&key, row)?;
                        }
                    }
                }
            }
            probe.decide()?;
        }
        Ok(())
    }

    /// EXPLAIN lines.
    pub fn explain(&self, ctx: &Context, info: &TableInfo) -> SqlResult<Vec<String>> {
        let names: Vec<_> = self.subtree.iter().map(|t| t.name.as_str()).collect();
        let mut lines = vec![format!("  range delete: {}", names.join(", "))];
        lines.push(format!("    where: {}", self.access.describe(&info.layout)));
        // Without parameter values the spans are not known yet.
        if let Ok(spans) = self.access.spans(&info.layout, &[], &ctx.eval) {
            for s in spans.iter().take(10) {
                lines.push(format!("    span: {}", braid_keys::pretty::span(&s.start, &s.end)));
            }
            if spans.len() > 10 {
                lines.push(format!("    and {} more spans", spans.len() - 10));
            }
        }
        for t in &self.must_be_empty {
            lines.push(format!("    check: no rows of {} (ON DELETE NO ACTION)", t.table.name));
        }
        for (from, fk, _) in &self.probes {
            lines.push(format!("    check: foreign key {} of {}", fk.name, from.table.name));
        }
        Ok(lines)
    }
}

/// Rows that refer to a table of which spans go: is what they refer to among it? Asks for many at
/// once.
struct Probe<'a> {
    ctx: &'a Context,
    /// What goes, sorted.
    spans: &'a [KeySpan],
    from: &'a TableLayout,
    fk: &'a ForeignKey,
    to: &'a Arc<TableLayout>,
    /// Rows, and what they refer to.
    waiting: Vec<(Row, Vec<Datum>)>,
}

impl Probe<'_> {
    fn goes(&self, key: &[u8]) -> bool {
        let n = self.spans.partition_point(|s| s.start.as_ref() as &[u8] <= key);
        n > 0 && self.spans[n - 1].contains(key)
    }

    fn take(&mut self, key: &[u8], row: Row) -> SqlResult<()> {
        // A row that goes along does not count.
        if self.goes(key) {
            return Ok(());
        }
        if let Some(values) = reference_values(&self.from.table, self.fk, &row)? {
            self.waiting.push((row, values));
        }
        if self.waiting.len() >= self.ctx.txn.batch_max() { self.decide() } else { Ok(()) }
    }

    /// About those that came so far: 23503 for the first that refers to what goes.
    fn decide(&mut self) -> SqlResult<()> {
        let waiting = std::mem::take(&mut self.waiting);
        let (ctx, to, fk) = (self.ctx, self.to, self.fk);
        if waiting.len() > 1 {
            ahead::of_probes(ctx, to, fk, waiting.iter().map(|(_, values)| values))?;
        }
        for (row, values) in &waiting {
            let found = find_by_key(ctx, to, &fk.parent_columns, values)?;
            if found.is_some_and(|key| self.goes(&key)) {
                let parent_row = parent_row_of(self.from, fk, &to.table, row);
                return Err(still_referenced(ctx, &to.table, &parent_row, &self.from.table, fk));
            }
        }
        Ok(())
    }
}

/// Asks ahead for the locks of families and for the rows at their heads.
fn ask_families(ctx: &Context, keys: &[Vec<u8>]) -> SqlResult<()> {
    let spans: Vec<KeySpan> = keys.iter().map(|key| TableLayout::family_span(key)).collect();
    lock_families(ctx, &spans)?;
    let keys = keys.iter().cloned().map(Bytes::from);
    ctx.txn.get_ahead(keys, ReadMode::Recorded).map_err(kv_error)
}

fn lock_families(ctx: &Context, spans: &[KeySpan]) -> SqlResult<()> {
    let lock = |span: &KeySpan| {
        let target = Target::Span(span.clone());
        LockItem { target, mode: LockMode::Exclusive, check: true }
    };
    if spans.len() < 2 {
        return Ok(());
    }
    ctx.txn.lock_ahead(spans.iter().map(lock).collect()).map_err(kv_error)
}

/// What happens to a child's rows when their parent rows go.
enum Fate {
    Dies,
    MustBeAbsent,
    Survives,
}

fn fate(t: &Table) -> Fate {
    let Some(i) = &t.interleave else { return Fate::Survives };
    if i.form == InterleaveForm::Enforced {
        return if i.on_delete == RefAction::Cascade { Fate::Dies } else { Fate::MustBeAbsent };
    }
    let on_path = |fk: &&ForeignKey| fk.parent == i.parent && same_columns(&fk.columns, &i.columns);
    if t.foreign_keys.iter().filter(on_path).any(|fk| fk.on_delete == RefAction::Cascade) {
        return Fate::Dies;
    }
    match path_key(t).map(|fk| fk.on_delete) {
        Some(RefAction::NoAction | RefAction::Restrict) => Fate::MustBeAbsent,
        _ => Fate::Survives,
    }
}

/// The foreign key of a layout-only child on its interleave columns.
fn path_key(t: &Table) -> Option<&ForeignKey> {
    let i = t.interleave.as_ref().filter(|i| !i.enforced())?;
    t.foreign_keys.iter().find(|fk| fk.parent == i.parent && same_columns(&fk.columns, &i.columns))
}

fn same_columns(a: &[u32], b: &[u32]) -> bool {
    a.len() == b.len() && a.iter().all(|c| b.contains(c))
}

/// Whether the referencing row lies inside the referenced one: the foreign key's columns are the
/// leading key columns, matched with the referenced table's key in order.
fn along_the_path(r: &Table, fk: &ForeignKey, s: &Table) -> bool {
    r.id != s.id
        && fk.columns.len() == s.primary.columns.len()
        && fk.columns.len() <= r.primary.columns.len()
        && s.primary.columns.iter().zip(&r.primary.columns).all(|(theirs, own)| {
            fk.parent_columns
                .iter()
                .position(|p| *p == theirs.column)
                .is_some_and(|at| fk.columns[at] == own.column)
        })
}

/// The referenced columns of a parent row, as far as the referencing row tells them.
fn parent_row_of(from: &TableLayout, fk: &ForeignKey, parent: &Table, row: &Row) -> Row {
    let mut out = vec![Datum::Null; parent.columns.len()];
    for (own, theirs) in fk.columns.iter().zip(&fk.parent_columns) {
        if let (Some(a), Some(b)) = (from.table.ordinal(*own), parent.ordinal(*theirs)) {
            out[b] = row[a].clone();
        }
    }
    out
}
