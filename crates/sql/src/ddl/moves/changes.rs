//! What others have written since the last look, brought over to where the rows move.
//!
//! ```text
//!   before   what the last round saw ─┐ the places that a watch has seen in between
//!   now      what this one sees      ─┴─ differ: remove what is not there any more, then put
//! ```
//! Two more things may have happened to the copies themselves: range deletes of the families that
//! they lie in, by those who know nothing of them. Each is looked at as of just before it: the rows
//! that it hid are put again, if they still are.
//!
//! A round writes in short transactions, or in the one that ends the move.

use std::collections::BTreeSet;

use braid_catalog::kv_error;
use braid_kv::{CommitTs, KeySpan, ReadMode, TxnOptions, Watched, Watching};
use braid_types::SqlResult;
use bytes::Bytes;

use super::moving::{Moving, MovingTable, Stored};
use super::online::Job;
use super::parents::rows_in;
use crate::dml::keys::duplicate_key;
use crate::session::Context;
use braid_rows::Row;
use braid_rows::TableScan;

/// Rows that are looked at together, and written by one transaction.
const AT_ONCE: usize = 256;
/// So many places can be looked at while writers wait.
const FEW: usize = 64;

/// Where the copies stand.
pub(super) struct Copies<'a> {
    pub(super) job: &'a Job,
    pub(super) moving: &'a Moving,
    /// Where the rows lie.
    pub(super) old: Watching,
    /// Where they come to lie.
    pub(super) new: Watching,
    /// What the copies say.
    pub(super) prev: Context,
    /// Whether every row has been seen to have a parent.
    pub(super) has_parents: bool,
    /// What has to be looked at: what was touched since `prev`, as far as that is known.
    pub(super) seen: Seen,
}

/// What a round has to look at.
#[derive(Default)]
pub(super) struct Seen {
    old: Watched,
    new: Watched,
}

impl Seen {
    /// Whether it is done in a moment.
    pub(super) fn is_little(&self) -> bool {
        let points = |span: &KeySpan| span.end.len() == span.start.len() + 1;
        let few = |seen: &Watched| {
            !seen.lost
                && seen.touched.len() <= FEW
                && seen.erased.len() <= FEW / 4
                && seen.touched.iter().all(points)
        };
        few(&self.old) && few(&self.new)
    }
}

fn add(all: &mut Watched, more: Watched) {
    all.touched.extend(more.touched);
    all.erased.extend(more.erased);
    all.lost |= more.lost;
}

/// A row that may not be in its new place as it should.
struct Changed {
    table: usize,
    before: Option<Row>,
    now: Option<Row>,
}

/// The two halves of a round: rows may take each other's keys.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Half {
    Remove,
    Put,
}

impl Copies<'_> {
    /// Takes note of what was touched up to what the context's transaction sees. Whether it is done
    /// in a moment.
    pub(super) fn look(&mut self, now: &Context) -> bool {
        add(&mut self.seen.old, self.old.upto(&now.txn));
        add(&mut self.seen.new, self.new.upto(&now.txn));
        self.seen.is_little()
    }

    /// Makes the copies what `now` sees, in short transactions.
    pub(super) fn catch_up(&mut self, now: Context) -> SqlResult<()> {
        self.round(&now, None)?;
        (self.prev, self.seen) = (now, Seen::default());
        Ok(())
    }

    /// As [`Copies::catch_up`], in the transaction of `end`, which is what it sees. If that does
    /// not commit, nothing has happened.
    pub(super) fn finish(&self, end: &Context) -> SqlResult<()> {
        self.round(end, Some(end))
    }

    fn round(&self, now: &Context, end: Option<&Context>) -> SqlResult<()> {
        for half in [Half::Remove, Half::Put] {
            self.hidden(now, &mut |changed| self.write(now, end, half, changed))?;
            self.touched(now, &mut |changed| self.write(now, end, half, changed))?;
        }
        if !self.has_parents {
            return Ok(());
        }
        let at = match end {
            Some(end) => end.clone(),
            None => self.job.now()?,
        };
        self.moving.check_gone(&self.prev, now, &at, &self.seen.new)
    }

    /// Gives `f` the rows below the places that were touched, and if range deletes were lost, all.
    fn touched(
        &self,
        now: &Context,
        f: &mut dyn FnMut(Vec<Changed>) -> SqlResult<()>,
    ) -> SqlResult<()> {
        let seen = &self.seen;
        if seen.old.lost || seen.new.lost {
            let whole = self.moving.first().old.rows.whole_span();
            return self.in_span(now, &whole, f);
        }
        let mut keys: Vec<Bytes> = Vec::new();
        for span in &seen.old.touched {
            if span.end.len() == span.start.len() + 1 {
                keys.push(span.start.clone());
                if keys.len() == AT_ONCE {
                    f(self.under_keys(now, &std::mem::take(&mut keys))?)?;
                }
            } else {
                self.in_span(now, span, f)?;
            }
        }
        f(self.under_keys(now, &keys)?)?;
        for (span, _) in &seen.old.erased {
            self.in_span(now, span, f)?;
        }
        Ok(())
    }

    fn under_keys(&self, now: &Context, keys: &[Bytes]) -> SqlResult<Vec<Changed>> {
        let read = |ctx: &Context| ctx.txn.get_many(keys, ReadMode::Unrecorded).map_err(kv_error);
        let mut out = Vec::new();
        for (key, (before, now)) in keys.iter().zip(read(&self.prev)?.into_iter().zip(read(now)?)) {
            // One of another table may be of the same class.
            for (table, one) in self.moving.tables.iter().enumerate() {
                let row = |value: &Option<Bytes>| match value {
                    Some(value) => one.old.decode(key, value, None),
                    None => Ok(None),
                };
                let (before, now) = (row(&before)?, row(&now)?);
                if before.is_some() || now.is_some() {
                    out.push(Changed { table, before, now });
                }
            }
        }
        Ok(out)
    }

    fn in_span(
        &self,
        now: &Context,
        span: &KeySpan,
        f: &mut dyn FnMut(Vec<Changed>) -> SqlResult<()>,
    ) -> SqlResult<()> {
        for (table, one) in self.moving.tables.iter().enumerate() {
            let scan = |ctx| Ahead::new(rows_in(ctx, &one.old, span, ReadMode::Unrecorded));
            let (mut before, mut after) = (scan(&self.prev)?, scan(now)?);
            let mut batch = Vec::new();
            while let Some(first) = [before.key(), after.key()].into_iter().flatten().min() {
                let first = first.clone();
                let changed =
                    Changed { table, before: before.take_if(&first)?, now: after.take_if(&first)? };
                batch.push(changed);
                if batch.len() == AT_ONCE {
                    now.check_cancel()?;
                    f(std::mem::take(&mut batch))?;
                }
            }
            f(batch)?;
        }
        Ok(())
    }

    /// Gives `f` the rows whose copies were hidden by range deletes in their new place.
    fn hidden(
        &self,
        now: &Context,
        f: &mut dyn FnMut(Vec<Changed>) -> SqlResult<()>,
    ) -> SqlResult<()> {
        for (span, ts) in &self.seen.new.erased {
            let as_of = Some(CommitTs(ts.0 - 1));
            let options = TxnOptions { as_of, ..TxnOptions::default() };
            let (txn, _) = now.db.begin(options)?;
            let past = Context { txn, ..now.clone() };
            for one in &self.moving.tables {
                let keys: Vec<Bytes> = self.hidden_of(one, &past, now, span)?.into_iter().collect();
                for part in keys.chunks(AT_ONCE) {
                    f(self.under_keys(now, part)?)?;
                }
            }
        }
        Ok(())
    }

    /// Keys, as they lie, of the rows of which a copy or an entry was in a span.
    fn hidden_of(
        &self,
        one: &MovingTable,
        past: &Context,
        now: &Context,
        span: &KeySpan,
    ) -> SqlResult<BTreeSet<Bytes>> {
        let mut out = BTreeSet::new();
        let mut rows = rows_in(past, &one.now, span, ReadMode::Unrecorded);
        while let Some((_, row)) = rows.next_row()? {
            out.insert(one.old.row_key(&row)?.into());
        }
        for i in one.now.indexes.iter().filter(|i| i.index.interleave_in.is_some()) {
            let options = i.scan_options(ReadMode::Unrecorded, false);
            let mut entries = past.txn.scan(span.clone(), options).map_err(kv_error)?;
            while let Some((key, value)) = entries.next().map_err(kv_error)? {
                let Some(owner) = one.now.row_of_entry(i, &key, &value)? else { continue };
                let key = one.now.row_key(&owner)?;
                let read = |ctx: &Context, mode| ctx.txn.get_as(&key, mode).map_err(kv_error);
                let found = match read(past, ReadMode::Unrecorded)? {
                    Some(found) => Some(found),
                    None => read(now, ReadMode::Latest)?,
                };
                let row = found.map(|value| one.now.decode(&key, &value, None)).transpose()?;
                if let Some(row) = row.flatten() {
                    out.insert(one.old.row_key(&row)?.into());
                }
            }
        }
        Ok(out)
    }

    /// Writes one half of what has become of rows.
    fn write(
        &self,
        now: &Context,
        end: Option<&Context>,
        half: Half,
        changed: Vec<Changed>,
    ) -> SqlResult<()> {
        if changed.is_empty() {
            return Ok(());
        }
        if half == Half::Put {
            self.check(now, &changed)?;
        }
        let work =
            |ctx: &Context| changed.iter().try_for_each(|row| self.write_one(ctx, half, row));
        if let Some(end) = end {
            return work(end);
        }
        self.job.again(work)
    }

    /// That rows may be where they come to lie.
    fn check(&self, now: &Context, changed: &[Changed]) -> SqlResult<()> {
        let mut parents = self.moving.parents(now).filter(|_| self.has_parents);
        for Changed { table, now: row, .. } in changed {
            let Some(row) = row else { continue };
            self.moving.tables[*table].check(now, row)?;
            if let Some(parents) = parents.as_mut().filter(|_| *table == 0) {
                parents.ask(row)?;
            }
        }
        parents.map_or(Ok(()), |mut parents| parents.answer())
    }

    fn write_one(&self, ctx: &Context, half: Half, row: &Changed) -> SqlResult<()> {
        let one = &self.moving.tables[row.table];
        let stored = |row: &Option<Row>| match row {
            Some(row) => one.stored(row),
            None => Ok(Vec::new()),
        };
        let (before, now) = (stored(&row.before)?, stored(&row.now)?);
        if half == Half::Remove {
            for gone in before.iter().filter(|b| !now.iter().any(|n| n.key == b.key)) {
                ctx.txn.delete(gone.key.clone()).map_err(kv_error)?;
            }
            return Ok(());
        }
        for new in now {
            let there = ctx.txn.get_as(&new.key, ReadMode::Latest).map_err(kv_error)?;
            match there {
                Some(there) if there == new.value => {}
                Some(there) if !before.iter().any(|before| before.key == new.key) => {
                    refuse_other(ctx, one, &new, &there, row.now.as_ref())?;
                    ctx.txn.put(new.key, new.value).map_err(kv_error)?;
                }
                _ => ctx.txn.put(new.key, new.value).map_err(kv_error)?,
            }
        }
        Ok(())
    }
}

/// 23505 if what is stored where a row wants something to be is another row's.
fn refuse_other(
    ctx: &Context,
    one: &MovingTable,
    new: &Stored,
    there: &[u8],
    row: Option<&Row>,
) -> SqlResult<()> {
    let owner = one.owner(new.target, &new.key, there)?.unwrap_or_default();
    let (layout, index) = match new.target {
        0 => (&one.old, &one.now.table.primary),
        n => (&one.now, &one.now.indexes[n - 1].index),
    };
    let own = match row {
        Some(row) if !owner.is_empty() => layout.row_key(&owner)? == layout.row_key(row)?,
        _ => false,
    };
    if own { Ok(()) } else { Err(duplicate_key(ctx, &one.now.table, index, &owner)) }
}

/// Rows of a scan, one ahead.
struct Ahead {
    rows: TableScan,
    next: Option<(Bytes, Row)>,
}

impl Ahead {
    fn new(mut rows: TableScan) -> SqlResult<Ahead> {
        let next = rows.next_row()?;
        Ok(Ahead { rows, next })
    }

    fn key(&self) -> Option<&Bytes> {
        self.next.as_ref().map(|(key, _)| key)
    }

    /// The next row, if it has this key.
    fn take_if(&mut self, key: &Bytes) -> SqlResult<Option<Row>> {
        if self.key() != Some(key) {
            return Ok(None);
        }
        let next = self.rows.next_row()?;
        Ok(std::mem::replace(&mut self.next, next).map(|(_, row)| row))
    }
}
