//! The rows of a query: joined ([`super::joined`]), sorted, locked, cut, projected.
//!
//! Rows that are locked are locked many at once, and never more of them than will be handed out:
//! at most so many as LIMIT still wants. A lock that is not free is waited for when its row comes,
//! with the rows before it locked and none of those behind it; SKIP LOCKED passes over them all in
//! the same request.

use std::collections::VecDeque;
use std::sync::Arc;

use braid_catalog::{kv_error, memory_error};
use braid_env::memory::Held;
use braid_kv::{LockItem, Locked, Target, Wait};
use braid_rows::{Row, row_memory};
use braid_scalar::{Bound, Volatility};
use braid_types::{SqlError, SqlResult};
use bytes::Bytes;

use super::columnar::{ColumnarRows, OneByOne};
use super::joined::Joined;
use super::select::{Locking, Output, Parts};
use super::select_list::compute_windows;
use super::sorting::Order;
use crate::answer::Answer;
use crate::general_query::RowStream;
use crate::session::Context;

/// Rows per batch.
const BATCH: usize = 256;

/// The rows of a query: joined, sorted if need be, cut, locked, projected.
pub(super) struct SelectStream {
    joined: Option<Joined>,
    /// Sorted rows, when a sort was needed.
    sorted: Option<VecDeque<(Bytes, Row)>>,
    ctx: Arc<Context>,
    parts: Arc<Parts>,
    left: Option<u64>,
    skip: u64,
    /// Memory of the sorted rows.
    sorting: Option<Held>,
    /// Rows that are going to be locked, or are already.
    locking: VecDeque<(Bytes, Row)>,
    /// What comes after them, if it is no row.
    end: Option<SqlResult<()>>,
    columns: Columns,
    /// DISTINCT ON: its values of the last row.
    last: Option<Row>,
}

/// Whether the rows come in columns.
enum Columns {
    /// Nobody has asked for anything yet.
    Unknown,
    No,
    Yes(Box<ColumnarRows>),
}

impl SelectStream {
    pub(super) fn open(
        ctx: Arc<Context>,
        parts: Arc<Parts>,
        limit: Option<u64>,
        offset: u64,
    ) -> SqlResult<SelectStream> {
        let first = match limit {
            Some(limit) if parts.sort.is_empty() && parts.output.is_plain() => {
                limit.checked_add(offset)
            }
            _ => None,
        };
        let first = first.and_then(|rows| usize::try_from(rows).ok());
        if parts.locking.is_some() {
            // Rows that are somebody's must not move away, nor go with their table.
            parts.steps.iter().try_for_each(|step| ctx.lock_shape(&step.layout.table))?;
        }
        // Rows that turn out to be locked by others are passed over: then all may be wanted.
        let most = match (limit, &parts.locking) {
            (Some(limit), None) if parts.output.is_plain() => {
                usize::try_from(limit.saturating_add(offset)).ok()
            }
            _ => None,
        };
        let all = parts.steps.len();
        let late = most.map_or(all, |_| parts.late_from(parts.passes.are_alike(&ctx.eval)));
        let start = VecDeque::from([Row::new()]);
        let mut joined = Joined::of_steps(ctx.clone(), parts.clone(), first, (0..late, start));
        let mut out = SelectStream {
            joined: None,
            sorted: None,
            ctx,
            parts: parts.clone(),
            left: limit,
            skip: offset,
            sorting: None,
            locking: VecDeque::new(),
            end: None,
            columns: Columns::Unknown,
            last: None,
        };
        if parts.sort.is_empty() && !parts.output.has_windows() {
            out.joined = Some(joined);
            return Ok(out);
        }
        let mut memory = out.ctx.memory.hold("sort");
        let ready = windowed(&parts, &mut joined, &out.ctx, &mut memory)?;
        let mut rows = match (parts.sort.is_empty(), ready) {
            (true, Some(ready)) => ready,
            (_, ready) => {
                let found = (joined, ready);
                sorted_rows((&out.ctx, &parts), found, (late, most), &mut memory)?
            }
        };
        out.sorting = Some(memory);
        if late == all {
            out.sorted = Some(rows);
            return Ok(out);
        }
        rows.truncate(most.unwrap_or(usize::MAX));
        let first = rows.into_iter().map(|(_, row)| row).collect();
        out.joined = Some(Joined::of_steps(out.ctx.clone(), parts, None, (late..all, first)));
        Ok(out)
    }

    /// The next row, of those that DISTINCT ON leaves.
    fn next_joined(&mut self) -> SqlResult<Option<(Bytes, Row)>> {
        let parts = self.parts.clone();
        let on = match &parts.output {
            Output::Rows(out) if !out.on.is_empty() => &out.on,
            _ => return self.next_of_all(),
        };
        while let Some((key, row)) = self.next_of_all()? {
            let values = on.iter().map(|e| e.eval(&row, &self.ctx.eval));
            let values = values.collect::<SqlResult<Row>>()?;
            let same = |last: &Row| last.iter().zip(&values).all(|(a, b)| a.cmp_sql(b).is_eq());
            if !self.last.as_ref().is_some_and(same) {
                self.last = Some(values);
                return Ok(Some((key, row)));
            }
        }
        Ok(None)
    }

    fn next_of_all(&mut self) -> SqlResult<Option<(Bytes, Row)>> {
        if let Some(sorted) = &mut self.sorted {
            return Ok(sorted.pop_front());
        }
        match &mut self.joined {
            Some(j) => j.next_row(),
            None => Ok(None),
        }
    }

    /// The next row that was locked, if rows are locked.
    fn next_kept(&mut self) -> SqlResult<Option<(Bytes, Row)>> {
        let Some(locking) = self.parts.locking else { return self.next_joined() };
        loop {
            while let Some((key, row)) = self.locking.pop_front() {
                if locking.take(&self.ctx, &key, &self.parts.steps[0].layout.table)? {
                    return Ok(Some((key, row)));
                }
            }
            if let Some(end) = &self.end {
                return end.clone().map(|()| None);
            }
            self.ask_locks(locking)?;
        }
    }

    /// Takes the next rows that are wanted, and asks for their locks as far as these are free.
    fn ask_locks(&mut self, locking: Locking) -> SqlResult<()> {
        let wanted = self.left.map_or(u64::MAX, |left| left.saturating_add(self.skip));
        let most = usize::try_from(wanted).unwrap_or(usize::MAX).min(self.ctx.txn.batch_max());
        while self.locking.len() < most.max(1) && self.end.is_none() {
            match self.next_joined() {
                Ok(Some(row)) => self.locking.push_back(row),
                Ok(None) => self.end = Some(Ok(())),
                Err(error) => self.end = Some(Err(error)),
            }
        }
        if self.locking.len() < 2 {
            return Ok(());
        }
        let (mode, check) = (locking.mode, true);
        let item = |key: &Bytes| LockItem { target: Target::Key(key.clone()), mode, check };
        let items = self.locking.iter().map(|(key, _)| item(key)).collect();
        if locking.wait != Wait::SkipLocked {
            return self.ctx.txn.lock_ahead(items).map_err(kv_error);
        }
        let mut told = self.ctx.txn.lock_ahead_skipping(items).map_err(kv_error)?.into_iter();
        self.locking.retain(|_| told.next() != Some(Locked::Skipped));
        Ok(())
    }
}

impl RowStream for SelectStream {
    fn next_answer(&mut self) -> SqlResult<Option<Answer>> {
        if matches!(self.columns, Columns::Unknown)
            && self.skip == 0
            && let Some(rows) = ColumnarRows::open(&self.ctx, &self.parts, self.left)?
        {
            self.columns = Columns::Yes(Box::new(rows));
        }
        match &mut self.columns {
            Columns::Yes(rows) => {
                Ok(rows.next(&self.ctx)?.map(|columns| Answer::Columns(Box::new(columns))))
            }
            _ => Ok(self.next_batch()?.map(Answer::Rows)),
        }
    }

    fn next_batch(&mut self) -> SqlResult<Option<Vec<Row>>> {
        if let Columns::Yes(rows) = &mut self.columns {
            let columns = rows.next(&self.ctx)?;
            return Ok(columns.map(|columns| Answer::Columns(Box::new(columns)).into_rows()));
        }
        self.columns = Columns::No;
        let mut out = Vec::new();
        let parts = self.parts.clone();
        let Output::Rows(each) = &parts.output else {
            return Err(SqlError::internal("aggregates are not streamed"));
        };
        let moved = each.are_moved();
        let passed: Vec<&Bound> = match self.skip {
            0 => Vec::new(),
            _ => each.exprs.iter().filter(|e| e.volatility() == Volatility::Volatile).collect(),
        };
        while out.len() < BATCH && self.left != Some(0) {
            let Some((_, row)) = self.next_kept()? else {
                self.left = Some(0);
                break;
            };
            self.ctx.check_cancel()?;
            if self.skip > 0 {
                self.skip -= 1;
                // What a volatile function does counts, not only what it gives.
                passed.iter().try_for_each(|e| e.eval(&row, &self.ctx.eval).map(drop))?;
                continue;
            }
            out.push(each.show(row, moved, &self.ctx)?);
            self.left = self.left.map(|l| l - 1);
        }
        Ok(if out.is_empty() { None } else { Some(out) })
    }
}

/// All rows in the order that was asked for, or so many of the first; they are held.
fn sorted_rows(
    (ctx, parts): (&Arc<Context>, &Arc<Parts>),
    (mut joined, ready): (Joined, Option<VecDeque<(Bytes, Row)>>),
    (late, most): (usize, Option<usize>),
    memory: &mut Held,
) -> SqlResult<VecDeque<(Bytes, Row)>> {
    let mut order = Order::new(ctx, &parts.sort, most, memory);
    if let Some(ready) = ready {
        for (key, row) in ready {
            if let Some(values) = order.wants(&row)? {
                order.add(values, key, row)?;
            }
        }
        return order.rows();
    }
    // Of rows that are not locked nobody needs the keys.
    if let Some(mut rows) = OneByOne::open(ctx, parts, late)? {
        while let Some(row) = rows.next(ctx)? {
            if let Some(values) = order.wants(row)? {
                order.add(values, Bytes::new(), rows.take())?;
            }
        }
        return order.rows();
    }
    while let Some((key, row)) = joined.next_row()? {
        if let Some(values) = order.wants(&row)? {
            order.add(values, key, row)?;
        }
    }
    order.rows()
}

/// All rows with the values of windows over them, if there are windows.
fn windowed(
    parts: &Parts,
    joined: &mut Joined,
    ctx: &Context,
    held: &mut Held,
) -> SqlResult<Option<VecDeque<(Bytes, Row)>>> {
    let windows = match &parts.output {
        Output::Rows(out) if !out.windows.is_empty() => &out.windows,
        _ => return Ok(None),
    };
    let mut rows = Vec::new();
    while let Some((key, row)) = joined.next_row()? {
        held.grow(key.len() + row_memory(&row)).map_err(|e| memory_error(&e))?;
        rows.push((key, row));
    }
    compute_windows(windows, &mut rows, ctx, held)?;
    Ok(Some(rows.into()))
}
