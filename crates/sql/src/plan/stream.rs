//! Running the chain of steps.

use std::collections::VecDeque;
use std::sync::Arc;

use braid_catalog::{kv_error, memory_error};
use braid_env::memory::Held;
use braid_kv::{KvError, Locked};
use braid_types::{Datum, SqlError, SqlResult, SqlState};
use bytes::Bytes;

use super::family::FamilyScan;
use super::rows::RowSource;
use super::select::{Output, Parts, SortKey};
use super::sorting::sorted;
use crate::general_query::{Row, RowStream, row_memory};
use crate::session::Context;

/// Rows per batch.
const BATCH: usize = 256;

/// Where the rows of an open step come from.
enum Source {
    /// Rows of the step's table.
    Table(RowSource),
    /// Rows of this and the following steps, joined already.
    Family(FamilyScan),
}

/// An open step, or several in one pass.
struct Open {
    source: Source,
    /// The step it ends with.
    last: usize,
    /// The row so far, before this step.
    outer: Row,
    matched: bool,
}

impl Open {
    /// The step it begins with.
    fn first(&self) -> usize {
        match &self.source {
            Source::Table(_) => self.last,
            Source::Family(scan) => scan.first(),
        }
    }
}

/// Counts what a step asks the store, if somebody wants to know.
fn counted<T>(ctx: &Context, step: usize, work: impl FnOnce() -> T) -> T {
    let Some(asked) = &ctx.asked else { return work() };
    let before = ctx.txn.stats().requests;
    let out = work();
    asked.lock()[step] += ctx.txn.stats().requests - before;
    out
}

/// Joined rows, one at a time.
pub(super) struct Joined {
    ctx: Context,
    parts: Arc<Parts>,
    open: Vec<Open>,
    single: bool,
    seen: u64,
    /// Rows of the first step that will be wanted, if that is known.
    first: Option<usize>,
}

impl Joined {
    pub(super) fn open(ctx: Context, parts: Arc<Parts>, first: Option<usize>) -> SqlResult<Joined> {
        let mut out =
            Joined { ctx, single: parts.steps.is_empty(), parts, open: Vec::new(), seen: 0, first };
        if !out.single {
            out.open_step(Vec::new())?;
        }
        Ok(out)
    }

    fn open_step(&mut self, outer: Row) -> SqlResult<()> {
        let n = self.open.last().map_or(0, |open| open.last + 1);
        let last = self.parts.passes[n];
        let source = if last > n {
            let parts = self.parts.clone();
            let scan = FamilyScan::open(&self.ctx, parts, n, last, outer.clone())?;
            Source::Family(scan)
        } else {
            let s = &self.parts.steps[n];
            let reverse = n == 0 && self.parts.reverse;
            let wanted = s.wanted.clone();
            let rows = RowSource::lookup(&self.ctx, &s.layout, &s.access, wanted, reverse, &outer)?;
            Source::Table(match self.first {
                Some(first) => rows.expecting(first),
                None => rows,
            })
        };
        self.open.push(Open { source, last, outer, matched: false });
        Ok(())
    }

    fn passes(&self, parts: &[braid_scalar::Bound], row: &Row) -> SqlResult<bool> {
        for p in parts {
            if !p.eval_bool(row, &self.ctx.eval)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The next row, with the key of the first table's row.
    pub(super) fn next_row(&mut self) -> SqlResult<Option<(Bytes, Row)>> {
        if self.single {
            self.single = false;
            // No table: one row without columns.
            self.open.clear();
            return Ok(Some((Bytes::new(), Vec::new())));
        }
        loop {
            let Some(open) = self.open.last_mut() else { return Ok(None) };
            self.seen += 1;
            if self.seen.is_multiple_of(1024) {
                self.ctx.check_cancel()?;
            }
            let parts = self.parts.clone();
            let last = open.last + 1 == parts.steps.len();
            let n = open.first();
            let found = match &mut open.source {
                Source::Table(rows) => counted(&self.ctx, n, || rows.next_row(&self.ctx))?,
                Source::Family(scan) => {
                    if let Some(row) = counted(&self.ctx, n, || scan.next_row(&self.ctx))? {
                        if last {
                            return Ok(Some((Bytes::new(), row)));
                        }
                        self.open_step(row)?;
                        continue;
                    }
                    open.matched = scan.matched;
                    None
                }
            };
            // Of several steps in one pass, the first: what happens inside is the pass's affair.
            let first = open.first();
            let s = &parts.steps[first];
            let last = first + 1 == parts.steps.len();
            let (key, row) = match found {
                Some((key, own)) => {
                    let mut row = open.outer.clone();
                    row.extend(own);
                    if !self.passes(&s.access.rest, &row)? {
                        continue;
                    }
                    self.open.last_mut().expect("still open").matched = true;
                    (key, row)
                }
                None => {
                    let done = self.open.pop().expect("it is the last one");
                    if !s.left || done.matched {
                        continue;
                    }
                    let mut row = done.outer;
                    row.extend(vec![Datum::Null; s.layout.table.columns.len()]);
                    // The step is closed: continue below it with the row of NULLs.
                    if !self.passes(&s.after, &row)? {
                        continue;
                    }
                    if last {
                        return Ok(Some((Bytes::new(), row)));
                    }
                    self.open.push(Open {
                        source: Source::Table(RowSource::empty(&s.layout)),
                        last: first,
                        outer: row[..s.offset].to_vec(),
                        matched: true,
                    });
                    self.open_step(row)?;
                    continue;
                }
            };
            if !self.passes(&s.after, &row)? {
                continue;
            }
            if last {
                return Ok(Some((key, row)));
            }
            self.open_step(row)?;
        }
    }
}

/// The rows of a query: joined, sorted if need be, cut, locked, projected.
pub(super) struct SelectStream {
    joined: Option<Joined>,
    /// Sorted rows, when a sort was needed.
    sorted: Option<VecDeque<(Bytes, Row)>>,
    ctx: Context,
    parts: Arc<Parts>,
    left: Option<u64>,
    skip: u64,
    /// Memory of the sorted rows.
    sorting: Option<Held>,
}

impl SelectStream {
    pub(super) fn open(
        ctx: Context,
        parts: Arc<Parts>,
        limit: Option<u64>,
        offset: u64,
    ) -> SqlResult<SelectStream> {
        let first = match limit {
            Some(limit) if parts.sort.is_empty() => limit.checked_add(offset),
            _ => None,
        };
        let first = first.and_then(|rows| usize::try_from(rows).ok());
        let mut joined = Joined::open(ctx.clone(), parts.clone(), first)?;
        let mut out = SelectStream {
            joined: None,
            sorted: None,
            ctx,
            parts: parts.clone(),
            left: limit,
            skip: offset,
            sorting: None,
        };
        if parts.sort.is_empty() {
            out.joined = Some(joined);
            return Ok(out);
        }
        // Rows that turn out to be locked by others are passed over: then all may be wanted.
        let most = match (limit, &parts.locking) {
            (Some(limit), None) => usize::try_from(limit.saturating_add(offset)).ok(),
            _ => None,
        };
        let mut memory = out.ctx.memory.hold("sort");
        let (mut all, mut held) = (Vec::new(), 0);
        while let Some((key, row)) = joined.next_row()? {
            let sort_values = parts
                .sort
                .iter()
                .map(|k| k.expr.eval(&row, &out.ctx.eval))
                .collect::<SqlResult<Vec<_>>>()?;
            let bytes = key.len() + row_memory(&sort_values) + row_memory(&row);
            memory.grow(bytes).map_err(|e| memory_error(&e))?;
            held += bytes;
            all.push((sort_values, key, row));
            // Of many rows only the first are wanted: the others go before they are many.
            if most.is_some_and(|most| all.len() >= most.saturating_mul(2).max(1024)) {
                let most = most.unwrap_or_default();
                all.sort_by(|a, b| compare(&parts.sort, &a.0, &b.0));
                let gone =
                    all.drain(most..).map(|(s, k, r)| k.len() + row_memory(&s) + row_memory(&r));
                held -= gone.sum::<usize>();
                memory.resize(held).map_err(|e| memory_error(&e))?;
            }
        }
        let by_keys =
            |a: &(Row, Bytes, Row), b: &(Row, Bytes, Row)| compare(&parts.sort, &a.0, &b.0);
        let all = sorted(all, by_keys, || out.ctx.check_cancel())?;
        out.sorting = Some(memory);
        out.sorted = Some(all.into_iter().map(|(_, key, row)| (key, row)).collect());
        Ok(out)
    }

    fn next_joined(&mut self) -> SqlResult<Option<(Bytes, Row)>> {
        if let Some(sorted) = &mut self.sorted {
            return Ok(sorted.pop_front());
        }
        match &mut self.joined {
            Some(j) => j.next_row(),
            None => Ok(None),
        }
    }

    /// Locks a row; `false` if it is skipped.
    fn lock(&self, key: &[u8]) -> SqlResult<bool> {
        let Some(l) = self.parts.locking else { return Ok(true) };
        match self.ctx.txn.lock(key, l.mode, l.wait) {
            Ok(Locked::Yes) => Ok(true),
            Ok(Locked::Skipped) => Ok(false),
            Err(KvError::LockNotAvailable) => Err(SqlError::new(
                SqlState::LOCK_NOT_AVAILABLE,
                format!(
                    "could not obtain lock on row in relation \"{}\"",
                    self.parts.steps[0].layout.table.name
                ),
            )),
            Err(e) => Err(kv_error(e)),
        }
    }
}

impl RowStream for SelectStream {
    fn next_batch(&mut self) -> SqlResult<Option<Vec<Row>>> {
        let mut out = Vec::new();
        let parts = self.parts.clone();
        let Output::Rows(exprs) = &parts.output else {
            return Err(SqlError::internal("aggregates are not streamed"));
        };
        while out.len() < BATCH && self.left != Some(0) {
            let Some((key, row)) = self.next_joined()? else {
                self.left = Some(0);
                break;
            };
            if !self.lock(&key)? {
                continue;
            }
            if self.skip > 0 {
                self.skip -= 1;
                continue;
            }
            let values =
                exprs.iter().map(|e| e.eval(&row, &self.ctx.eval)).collect::<SqlResult<Row>>()?;
            out.push(values);
            self.left = self.left.map(|l| l - 1);
        }
        Ok(if out.is_empty() { None } else { Some(out) })
    }
}

fn compare(keys: &[SortKey], a: &[Datum], b: &[Datum]) -> std::cmp::Ordering {
    use std::cmp::Ordering::{Equal, Greater, Less};
    for ((k, x), y) in keys.iter().zip(a).zip(b) {
        let o = match (x.is_null(), y.is_null()) {
            (true, true) => Equal,
            (true, false) => {
                if k.nulls_first {
                    Less
                } else {
                    Greater
                }
            }
            (false, true) => {
                if k.nulls_first {
                    Greater
                } else {
                    Less
                }
            }
            _ if k.desc => y.cmp_sql(x),
            _ => x.cmp_sql(y),
        };
        if o != Equal {
            return o;
        }
    }
    Equal
}
