//! What the store is told of the values that it keeps, without knowing what a row is.
//!
//! ```text
//!   write      a value that begins with `stamped`: "in this column, when I was committed"
//!   commit     the entry gets its timestamp; the value stays as it is
//!   read       the value as it reads at that timestamp
//! ```
//! So a transaction can store the time of its commit, which nobody knows when the value is written,
//! and nothing needs to be written anew when it is known. Values are *settled* where they leave the
//! engine; a transaction's own writes are not.
//!
//! A key is looked for by its bytes, so it cannot wait for its reader: one that holds the time of
//! its commit is written under a *name* until then, which sorts as the future does, and gets its
//! bytes when the timestamp is chosen ([`KeyNames`]). Such a commit has a microsecond of its own,
//! so that nobody else can have given the same key to a row.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use braid_lsm::{Batch, BatchWrite, CommitTs, Db, KeySpan, Piece, RowBatch};
use bytes::Bytes;

use crate::error::KvResult;
use crate::read_set::successor;

/// The value of a key, as it is when committed at this timestamp; `None` for what is not stamped.
pub type Settle = fn(key: &[u8], value: &[u8], at: CommitTs) -> Option<Vec<u8>>;

/// What is known of the values of rows.
#[derive(Clone, Copy)]
pub struct RowForm {
    /// Tells a part of a value from others: equal parts have equal digests. `None` for what is no
    /// value. It must be as good as unique: a transaction goes on when the digest has stayed.
    pub part_digest: fn(value: &[u8], what: &[u8]) -> Option<u128>,
    /// First byte of values that hold their commit's time somewhere. Others may begin with it.
    pub stamped: u8,
    /// Puts the time into such a value.
    pub settle: Settle,
    /// A commit timestamp as a column of a key; `true`: of a descending one.
    pub key_time: fn(at: CommitTs, descending: bool) -> Vec<u8>,
}

/// Where in a key the time of its commit is going to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyTime {
    /// The bytes that stand for it until then.
    pub at: Range<usize>,
    /// Of a descending column.
    pub descending: bool,
}

/// The keys of a transaction that get the time of its commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyNames {
    /// By name; with the places of the time in it, in order.
    names: BTreeMap<Bytes, Vec<KeyTime>>,
    /// The bytes in front of the first time.
    fronts: BTreeSet<Bytes>,
}

impl KeyNames {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// One more; again changes nothing.
    pub(crate) fn add(&mut self, name: Bytes, times: Vec<KeyTime>) {
        let front = name.slice(..times.first().map_or(name.len(), |time| time.at.start));
        self.names.insert(name, times);
        self.fronts.insert(front);
    }

    /// Names of which a key may come to lie in a span, wherever they lie themselves.
    pub(crate) fn near<'a>(&'a self, span: &'a KeySpan) -> impl Iterator<Item = &'a Bytes> {
        let inside = self.fronts.range(span.start.clone()..span.end.clone());
        // Those fronts that the start of the span goes on from.
        let around = (0..span.start.len()).filter_map(|len| self.fronts.get(&span.start[..len]));
        around.chain(inside).flat_map(|front| {
            let from = self.names.range(front.clone()..).map(|(name, _)| name);
            from.take_while(move |name| name.starts_with(front))
        })
    }

    /// Where keys with the front of this name can come to lie, if their commit is after `since`.
    /// Names are outside of it.
    pub(crate) fn future(&self, name: &Bytes, form: RowForm, since: CommitTs) -> KeySpan {
        let Some(time) = self.names.get(name).and_then(|times| times.first()) else {
            return KeySpan::point(name);
        };
        let at = |at| [&name[..time.at.start], &*(form.key_time)(at, time.descending)].concat();
        let [first, last] = [since, CommitTs(u64::MAX)].map(at);
        let (start, last) = if first < last { (first, last) } else { (last, first) };
        KeySpan::new(Bytes::from(start), behind_all(last))
    }

    /// Where the key of a name can come to lie, if its commit is after `since`, and the name, which
    /// sorts as the end of time does.
    pub(crate) fn reach(&self, name: &Bytes, form: RowForm, since: CommitTs) -> KeySpan {
        let Some(times) = self.names.get(name) else { return KeySpan::point(name) };
        let first = Bytes::from(key_at(name, times, form, since));
        let (start, last) = if first < *name { (&first, name) } else { (name, &first) };
        KeySpan::new(start.clone(), successor(last))
    }

    /// What is written, under the keys that a commit at this timestamp gives it.
    pub(crate) fn given(&self, batch: &Batch, form: RowForm, at: CommitTs) -> Batch {
        let mut out = Batch::at(at);
        for write in batch.writes() {
            match write {
                BatchWrite::Put(key, value) => match self.names.get(key) {
                    None => out.put(key, value),
                    Some(times) => out.put(&key_at(key, times, form, at), value),
                },
                // Nothing is stored under a name.
                BatchWrite::Delete(key) if self.names.contains_key(key) => {}
                BatchWrite::Delete(key) => out.delete(key),
                BatchWrite::DeleteSpan(start, end) => out.delete_span(start, end),
            }
        }
        out
    }
}

/// The end of all keys that begin so.
fn behind_all(mut front: Vec<u8>) -> Bytes {
    while let Some(last) = front.pop() {
        if let Some(next) = last.checked_add(1) {
            front.push(next);
            break;
        }
    }
    front.into()
}

/// A key with the time instead of what stands for it.
fn key_at(name: &[u8], times: &[KeyTime], form: RowForm, at: CommitTs) -> Vec<u8> {
    let mut key = Vec::with_capacity(name.len());
    let mut from = 0;
    for time in times {
        key.extend_from_slice(&name[from..time.at.start]);
        key.extend_from_slice(&(form.key_time)(at, time.descending));
        from = time.at.end;
    }
    key.extend_from_slice(&name[from..]);
    key
}

impl RowForm {
    #[inline]
    fn is_stamped(&self, value: &[u8]) -> bool {
        value.first() == Some(&self.stamped)
    }

    /// What a key was found to be as of `at`, settled.
    pub(crate) fn settled(
        &self,
        engine: &Db,
        (key, value): (&[u8], Bytes),
        at: CommitTs,
    ) -> KvResult<Bytes> {
        if !self.is_stamped(&value) {
            return Ok(value);
        }
        // Few values are: their timestamps are looked up.
        let found = engine.view(at)?.get_with_ts(key)?;
        let settled = found.and_then(|(value, ts)| (self.settle)(key, &value, ts));
        Ok(settled.map_or(value, Bytes::from))
    }

    /// Settles rows of a scan.
    pub(crate) fn settle_rows(&self, rows: &mut RowBatch) {
        if rows.has_parts() {
            let is_stamped = |piece| match piece {
                Piece::Part(part, _) => part.may_begin_with(self.stamped),
                Piece::Single(rows) => (0..rows.len()).any(|i| self.is_stamped(rows.value(i))),
            };
            if !rows.pieces(0..rows.len()).any(is_stamped) {
                return;
            }
            rows.make_single();
        }
        for i in 0..rows.len() {
            if self.is_stamped(rows.value(i))
                && let Some(value) = (self.settle)(rows.key(i), rows.value(i), rows.ts(i))
            {
                rows.set_value(i, &value);
            }
        }
    }
}
