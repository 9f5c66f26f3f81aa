//! A family in one pass: a row with the rows interleaved in it, in the order in which they lie.
//!
//! ```text
//!   FROM customers c JOIN orders o ON o.id = c.id LEFT JOIN lines l ON (l.id, l.o) = (o.id, o.o)
//!
//!   keys, one scan        rows so far              handed out
//!   /c/7                  c7
//!   /c/7/#/o/1            c7 o1
//!   /c/7/#/o/1/#/l/1      c7 o1 l1                 c7 o1 l1
//!   /c/7/#/o/2            c7 o2
//!   /c/8                  (o2 had no lines)        c7 o2 NULL
//! ```
//! Key order is the order of a nested loop over the same tables, so one scan of the outermost
//! table's spans does what otherwise takes a lookup for every row. It is used where the scan meets
//! nothing else: no other table or index is interleaved between the chain's tables.

use std::collections::VecDeque;
use std::sync::Arc;

use braid_catalog::{Catalog, kv_error};
use braid_keys::{CHILD_MARKER, END_MARKER, family_end};
use braid_kv::{KeySpan, ScanOptions, TxnScan};
use braid_types::{Datum, SqlResult};
use bytes::Bytes;

use super::joined::{passes, without_match};
use super::select::{Parts, Step};
use crate::session::Context;
use braid_planner::Same;
use braid_rows::Row;
use braid_rows::scan::Lookahead;

/// For each step, the last step that one pass beginning there covers; itself if there is none.
pub(super) fn whole_passes(steps: &[Step], catalog: &Catalog, same: Same<'_>) -> Vec<usize> {
    let mut last: Vec<usize> = (0..steps.len()).collect();
    for n in (1..steps.len()).rev() {
        let joins = follows(&steps[n - 1], &steps[n], same)
            && catalog.is_only_child(steps[n - 1].layout.table.id, steps[n].layout.table.id);
        if joins {
            last[n - 1] = last[n];
        }
    }
    last
}

/// Whether the inner step wants exactly the rows that lie inside of an outer row.
fn follows(outer: &Step, inner: &Step, same: Same<'_>) -> bool {
    let key = outer.layout.rows.columns();
    let found = (!outer.left).then_some(&outer.access);
    inner.family
        && outer.access.index.is_none()
        && inner.access.is_exactly(key.iter().map(|k| outer.offset + k.ordinal), found, same)
}

/// A row of the outer tables whose family is being read.
struct OpenRow {
    key: Bytes,
    /// Joined with the rows around it.
    row: Row,
    /// Whether a row was found inside of it.
    matched: bool,
}

/// One pass over the families that an access path finds, for one row of the steps before.
pub(super) struct FamilyScan {
    parts: Arc<Parts>,
    first: usize,
    last: usize,
    /// The row of the steps before.
    outer: Row,
    spans: std::vec::IntoIter<KeySpan>,
    ahead: Lookahead,
    /// What the spans do not say of the first step's rows; see
    /// [`braid_planner::access::Access::excess`].
    excess: Vec<(usize, Vec<Datum>)>,
    scan: Option<TxnScan>,
    open: Vec<OpenRow>,
    /// The row that was decoded last: its place is used again.
    own: Row,
    ready: VecDeque<Row>,
    /// Whether the first step has found a row.
    pub(super) matched: bool,
}

impl FamilyScan {
    /// Opens the pass over steps `first` to `last`.
    pub(super) fn open(
        ctx: &Context,
        parts: Arc<Parts>,
        first: usize,
        last: usize,
        outer: Row,
    ) -> SqlResult<FamilyScan> {
        let step = &parts.steps[first];
        let spans = step.access.spans(&step.layout, &outer, &ctx.eval)?;
        let excess = step.access.excess(&step.layout, &outer, &ctx.eval)?;
        Ok(FamilyScan {
            parts,
            first,
            last,
            outer,
            spans: spans.into_iter(),
            ahead: Lookahead::new(1),
            excess,
            scan: None,
            open: Vec::new(),
            own: Row::new(),
            ready: VecDeque::new(),
            matched: false,
        })
    }

    /// How the spans of a pass are scanned.
    fn options(ctx: &Context, steps: &[Step]) -> ScanOptions {
        let classes = steps.iter().fold(0, |mask, step| mask | step.layout.rows.class_mask());
        let leaf = &steps[steps.len() - 1].layout;
        let jump = leaf.jumps().then(|| (leaf.rows.class_mask(), END_MARKER));
        ScanOptions { classes, mode: ctx.reading, jump, ..ScanOptions::default() }
    }

    /// Asks ahead for the families that passes over steps `first` to `last` are going to read for
    /// these rows. What fails here fails again when it is that row's turn.
    pub(super) fn ask_ahead<'a>(
        ctx: &Context,
        parts: &Parts,
        (first, last): (usize, usize),
        outers: impl Iterator<Item = &'a Row>,
    ) -> SqlResult<()> {
        let step = &parts.steps[first];
        let spans = |outer: &Row| step.access.spans(&step.layout, outer, &ctx.eval).ok();
        let spans: Vec<KeySpan> = outers.filter_map(spans).flatten().collect();
        let options = FamilyScan::options(ctx, &parts.steps[first..=last]);
        ctx.txn.scan_ahead(&spans, &options).map(|_| ()).map_err(kv_error)
    }

    /// Opens the scan of the next span; `false` if there is none.
    fn open_next(&mut self, ctx: &Context) -> SqlResult<bool> {
        let waiting = self.spans.as_slice();
        let steps = &self.parts.steps[self.first..=self.last];
        let options = FamilyScan::options(ctx, steps);
        if !waiting.is_empty() {
            let ask = self.ahead.next(waiting.len(), ctx.txn.batch_max());
            if ask > 1 {
                ctx.txn.scan_ahead(&waiting[..ask], &options).map_err(kv_error)?;
            }
        }
        let Some(span) = self.spans.next() else { return Ok(false) };
        for step in steps {
            step.layout.used_by(&ctx.txn, ctx.reading)?;
        }
        self.scan = Some(ctx.txn.scan(span, options).map_err(kv_error)?);
        Ok(true)
    }

    /// The next row of all steps up to `last`.
    pub(super) fn next_row(&mut self, ctx: &Context) -> SqlResult<Option<Row>> {
        let parts = self.parts.clone();
        let mut place = Vec::new();
        loop {
            if let Some(row) = self.ready.pop_front() {
                return Ok(Some(row));
            }
            ctx.check_cancel()?;
            let Some(scan) = &mut self.scan else {
                if !self.open_next(ctx)? {
                    if self.open.is_empty() {
                        return Ok(None);
                    }
                    self.close_to(ctx, 0)?;
                }
                continue;
            };
            let Some((key, value)) = scan.next_row().map_err(kv_error)? else {
                self.scan = None;
                continue;
            };
            // The row's table: usually the one below the row before, or the same again.
            let mut own = std::mem::take(&mut self.own);
            let mut found = None;
            for depth in (0..=self.last - self.first).rev() {
                let step = &parts.steps[self.first + depth];
                let all = depth == 0 && !self.excess.is_empty();
                let wanted = if all { None } else { step.wanted.as_deref() };
                if step.layout.decode_into(key, value, wanted, &mut own)? {
                    found = Some(depth);
                    break;
                }
            }
            let Some(depth) = found else {
                self.own = own;
                continue;
            };
            place.clear();
            place.extend_from_slice(key);
            let goes_on = self.take(ctx, &place, depth, &mut own)?;
            self.own = own;
            let step = &parts.steps[self.first + depth];
            let leaf = self.first + depth == self.last;
            // What nobody wants is jumped over: below a row that was refused, and below the last,
            // if the scan does not do that by itself.
            let jumps = leaf && step.layout.jumps();
            if step.layout.has_children && !jumps && (leaf || !goes_on) {
                let end = family_end(&place);
                if let Some(scan) = &mut self.scan {
                    scan.seek(&end).map_err(kv_error)?;
                }
            }
        }
    }

    /// A row of the table at `depth` was met. Returns whether the rows inside of it matter.
    fn take(&mut self, ctx: &Context, key: &[u8], depth: usize, own: &mut Row) -> SqlResult<bool> {
        let around = |open: &&OpenRow| is_inside(key, &open.key);
        let kept = self.open.iter().take(depth).take_while(around).count();
        self.close_to(ctx, kept)?;
        let n = self.first + depth;
        let step = &self.parts.steps[n];
        if depth == 0 && !self.excess.is_empty() {
            let (access, layout) = (&step.access, &step.layout);
            if !access.admits(&self.excess, layout, own, &self.outer, &ctx.eval)? {
                return Ok(false);
            }
        }
        let outer = match depth {
            0 => &self.outer,
            // Its parent was refused, or is missing where only the layout was declared.
            _ if self.open.len() < depth => return Ok(false),
            _ => &self.open[depth - 1].row,
        };
        let row = joined(outer, own.drain(..));
        if !passes(&step.access.rest, &row, ctx)? {
            return Ok(false);
        }
        match depth {
            0 => self.matched = true,
            _ => self.open[depth - 1].matched = true,
        }
        if !passes(&step.after, &row, ctx)? {
            return Ok(false);
        }
        if n == self.last {
            self.ready.push_back(row);
        } else {
            let key = Bytes::copy_from_slice(key);
            self.open.push(OpenRow { key, row, matched: false });
        }
        Ok(true)
    }

    /// Leaves the open rows at `depth` and below: those that found nothing get their NULLs.
    fn close_to(&mut self, ctx: &Context, depth: usize) -> SqlResult<()> {
        while self.open.len() > depth {
            let inner = self.first + self.open.len();
            let open = self.open.pop().expect("it is longer than depth");
            if !open.matched {
                let steps = &self.parts.steps[inner..=self.last];
                self.ready.extend(without_match(steps, open.row, ctx)?);
            }
        }
        Ok(())
    }
}

/// A row of the steps before with one of the next step.
pub(super) fn joined(outer: &[Datum], own: impl IntoIterator<Item = Datum>) -> Row {
    let own = own.into_iter();
    let mut row = Vec::with_capacity(outer.len() + own.size_hint().0);
    row.extend_from_slice(outer);
    row.extend(own);
    row
}

/// Whether a key lies in the family of a row with another key.
pub(super) fn is_inside(key: &[u8], row: &[u8]) -> bool {
    key.starts_with(row) && key.get(row.len()) == Some(&CHILD_MARKER)
}
