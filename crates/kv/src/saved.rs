//! Transactions that go on in another process: what they have written, read and locked so far.
//!
//! ```text
//!   save      the read timestamp moves to now, if nothing that was read has changed; all as bytes
//!             ... the process ends, and its locks and its buffer with it ...
//!   restore   locks are taken anew ─► nothing changed since then? ─► the writes are there again
//! ```
//! Between the two, others may have done anything. So the other transaction is the first one only
//! if what that had read, and what it had locked and found unchanged, is as it was; else
//! [`KvError::Retry`](crate::KvError::Retry) says so, as it would at the first one's commit. What
//! lies in spans that nobody but the transaction can know needs neither locks nor that question,
//! and is left out: it is in the store already ([`Txn::ingest_private`]), or among the writes.
//!
//! | bytes | meaning |
//! |---|---|
//! | u64 | read timestamp |
//! | 7 lists | deleted spans, writes, keys and spans read, descriptors, locks, spans as they were |
//!
//! A list is its length as u32, and its elements; so is a text. All numbers are little endian.

use braid_lsm::{CommitTs, KeySpan};
use bytes::Bytes;

use crate::buffer::{Slot, write_memory};
use crate::error::KvResult;
use crate::locks::{LockMode, Target};
use crate::read_set::{PointRead, ReadPart, Reads};
use crate::span_map::SpanMap;
use crate::spans::{LockItem, Validate};
use crate::txn::{Isolation, Txn};

/// See the [module documentation](self).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SavedTxn {
    read_ts: CommitTs,
    spans: Vec<KeySpan>,
    points: Vec<(Bytes, Slot)>,
    reads: Reads,
    depends_on: Vec<Bytes>,
    /// Each with its mode, and whether nothing newer was below it.
    locks: Vec<(Target, LockMode, bool)>,
    /// What else must be as it was.
    fixed: Vec<KeySpan>,
}

const MODES: [LockMode; 4] =
    [LockMode::KeyShare, LockMode::Shared, LockMode::NoKeyExclusive, LockMode::Exclusive];

impl Txn {
    /// What it is so far, for [`Txn::restore`] of one in another process; what lies in `private`
    /// nobody else can know. `None` if it cannot be carried over: its writes lie on disk, a load is
    /// attached, a scan is open, or its level promises one view. What it knows of `fixed` without
    /// having read it there must be as it is now, too.
    ///
    /// Its read timestamp moves to now.
    ///
    /// # Errors
    /// [`KvError::Retry`](crate::KvError::Retry) if something that it has read has changed: it
    /// could not commit.
    pub fn save(&self, private: &[KeySpan], fixed: Vec<KeySpan>) -> KvResult<Option<SavedTxn>> {
        let mut state = self.open_state()?;
        let scans = self.records_reads() && !state.scans.open.is_empty();
        let one_view = self.isolation() == Isolation::RepeatableRead || self.read_only();
        let apart = state.is_attached() || !state.own.is_in_memory() || !state.names.is_empty();
        if one_view || scans || apart {
            return Ok(None);
        }
        state.check_locks()?;
        self.move_view(&mut state)?;
        let mut known = SpanMap::default();
        private.iter().filter(|span| !span.is_empty()).for_each(|span| {
            known.insert(span);
        });
        let is_own = |span: &KeySpan| known.covering(&span.start).is_some_and(|o| o.covers(span));
        let has = |key: &[u8]| known.covering(key).is_some();
        let all = state.reads.all();
        let reads = Reads {
            points: all.points.iter().filter(|read| !has(&read.key)).cloned().collect(),
            spans: all.spans.iter().filter(|span| !is_own(span)).cloned().collect(),
        };
        let lock = |target: &Target| {
            let held = match target {
                Target::Key(key) if has(key) => None,
                Target::Span(span) if is_own(span) => None,
                Target::Key(key) => state.held.get(key),
                Target::Span(span) => state.held_spans.get(&span.start).map(|(_, held)| held),
            };
            held.map(|held| (target.clone(), held.mode, held.checked))
        };
        let (spans, points) = state.own.in_memory();
        Ok(Some(SavedTxn {
            read_ts: state.read_ts,
            spans,
            points,
            reads,
            depends_on: state.depends_on.iter().cloned().collect(),
            locks: state.acquired.iter().filter_map(lock).collect(),
            fixed,
        }))
    }

    /// Becomes the transaction that was saved, at the read timestamp of now. It is new, and has
    /// done nothing yet.
    ///
    /// # Errors
    /// [`KvError::Retry`](crate::KvError::Retry) if what that one had read or locked has changed;
    /// those of locking.
    pub fn restore(&self, saved: &SavedTxn) -> KvResult<()> {
        debug_assert!(self.is_clean() && self.is_unlocked());
        let locks = saved.locks.iter();
        let item = |(target, mode, _): &(Target, LockMode, bool)| LockItem {
            target: target.clone(),
            mode: *mode,
            check: false,
        };
        self.lock_many(locks.clone().map(item).collect())?;
        let mut state = self.open_state()?;
        self.refresh(&mut state);
        // After the new timestamp was chosen: every commit up to it is visible to this check.
        let mut reads = saved.reads.clone();
        let whole = |key: &Bytes| PointRead { key: key.clone(), part: None };
        reads.points.extend(saved.depends_on.iter().map(whole));
        reads.spans.extend(saved.fixed.iter().cloned());
        for (target, ..) in locks.filter(|(_, _, checked)| *checked) {
            match target {
                Target::Key(key) => reads.points.push(whole(key)),
                Target::Span(span) => reads.spans.push(span.clone()),
            }
        }
        let request = Validate { floor: saved.read_ts, through: state.read_ts, reads };
        let asking = self.count_request();
        self.spans().validate(&request)?;
        drop(asking);
        state.reads.adopt(&saved.reads);
        state.depends_on.extend(saved.depends_on.iter().cloned());
        saved.spans.iter().try_for_each(|span| state.own.delete_span(span).map(|_| ()))?;
        let bytes = saved.points.iter().map(|(key, slot)| write_memory(key, slot)).sum();
        state.memory.written.grow(bytes)?;
        saved.points.iter().for_each(|(key, slot)| state.own.set(key.clone(), slot.clone()));
        Ok(())
    }
}

impl SavedTxn {
    /// When it was saved: what others have written later counts.
    pub fn read_ts(&self) -> CommitTs {
        self.read_ts
    }

    /// Keys in a span that it is going to delete.
    pub fn deletes_in(&self, span: &KeySpan) -> impl Iterator<Item = &[u8]> {
        let deleted = self.points.iter().filter(|(_, slot)| slot.is_none());
        deleted.map(|(key, _)| &key[..]).filter(|key| span.contains(key))
    }

    /// Whether it depends on anything outside of a span being as it was.
    pub fn depends_outside(&self, span: &KeySpan) -> bool {
        let out = |key: &[u8]| !span.contains(key);
        self.reads.points.iter().any(|read| out(&read.key))
            || self.reads.spans.iter().chain(&self.fixed).any(|read| !span.covers(read))
            || self.depends_on.iter().any(|key| out(key))
            || self.locks.iter().any(|(target, _, checked)| match target {
                Target::Key(key) => *checked && out(key),
                Target::Span(own) => *checked && !span.covers(own),
            })
    }

    /// As bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = self.read_ts.0.to_le_bytes().to_vec();
        list(&mut out, &self.spans, put_span);
        list(&mut out, &self.points, |out, (key, slot)| {
            text(out, key);
            out.push(u8::from(slot.is_some()));
            text(out, slot.as_deref().unwrap_or_default());
        });
        list(&mut out, &self.reads.points, |out, read| {
            text(out, &read.key);
            out.push(u8::from(read.part.is_some()));
            let Some(part) = &read.part else { return };
            text(out, &part.what);
            out.push(u8::from(part.digest.is_some()));
            out.extend_from_slice(&part.digest.unwrap_or_default().to_le_bytes());
        });
        list(&mut out, &self.reads.spans, put_span);
        list(&mut out, &self.depends_on, |out, key| text(out, key));
        list(&mut out, &self.locks, |out, (target, mode, checked)| {
            let mode = MODES.iter().position(|m| m == mode).unwrap_or_default() as u8;
            out.extend([mode, u8::from(*checked), u8::from(matches!(target, Target::Span(_)))]);
            match target {
                Target::Key(key) => text(out, key),
                Target::Span(span) => put_span(out, span),
            }
        });
        list(&mut out, &self.fixed, put_span);
        out
    }

    /// From its bytes; `None` for others.
    pub fn decode(bytes: &[u8]) -> Option<SavedTxn> {
        let from = &mut Taking(bytes);
        let saved = SavedTxn {
            read_ts: CommitTs(u64::from_le_bytes(from.array()?)),
            spans: from.list(Taking::span)?,
            points: from.list(|from| {
                let (key, there, value) = (from.text()?, from.flag()?, from.text()?);
                Some((key, there.then_some(value)))
            })?,
            reads: Reads {
                points: from.list(|from| {
                    let (key, part) = (from.text()?, from.flag()?);
                    let part = match part {
                        true => Some(from.part()?),
                        false => None,
                    };
                    Some(PointRead { key, part })
                })?,
                spans: from.list(Taking::span)?,
            },
            depends_on: from.list(Taking::text)?,
            locks: from.list(|from| {
                let [mode] = from.array()?;
                let (checked, is_span) = (from.flag()?, from.flag()?);
                let target = match is_span {
                    true => Target::Span(from.span()?),
                    false => Target::Key(from.text()?),
                };
                Some((target, *MODES.get(usize::from(mode))?, checked))
            })?,
            fixed: from.list(Taking::span)?,
        };
        from.0.is_empty().then_some(saved)
    }
}

fn text(out: &mut Vec<u8>, text: &[u8]) {
    out.extend_from_slice(&(text.len() as u32).to_le_bytes());
    out.extend_from_slice(text);
}

fn put_span(out: &mut Vec<u8>, span: &KeySpan) {
    text(out, &span.start);
    text(out, &span.end);
}

fn list<T>(out: &mut Vec<u8>, all: &[T], put: impl Fn(&mut Vec<u8>, &T)) {
    out.extend_from_slice(&(all.len() as u32).to_le_bytes());
    all.iter().for_each(|one| put(out, one));
}

/// Bytes that are read from the front.
struct Taking<'a>(&'a [u8]);

impl Taking<'_> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }

    fn flag(&mut self) -> Option<bool> {
        self.array::<1>().map(|[byte]| byte != 0)
    }

    fn text(&mut self) -> Option<Bytes> {
        let len = u32::from_le_bytes(self.array()?) as usize;
        let (text, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(Bytes::copy_from_slice(text))
    }

    fn span(&mut self) -> Option<KeySpan> {
        Some(KeySpan::new(self.text()?, self.text()?))
    }

    fn part(&mut self) -> Option<ReadPart> {
        let (what, there, digest) = (self.text()?, self.flag()?, self.array()?);
        Some(ReadPart { what, digest: there.then_some(u128::from_le_bytes(digest)) })
    }

    fn list<T>(&mut self, one: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let len = u32::from_le_bytes(self.array()?);
        (0..len).map(|_| one(self)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_saved_is_read_back() {
        let span = KeySpan::new("a", "c");
        let part = ReadPart { what: Bytes::from("p"), digest: Some(7) };
        let read = |part| PointRead { key: Bytes::from("r"), part };
        let saved = SavedTxn {
            read_ts: CommitTs(1 << 50),
            spans: vec![span.clone()],
            points: vec![(Bytes::from("k"), Some(Bytes::new())), (Bytes::from("l"), None)],
            reads: Reads { points: vec![read(None), read(Some(part))], spans: vec![span.clone()] },
            depends_on: vec![Bytes::from("d")],
            locks: vec![
                (Target::Key(Bytes::from("k")), LockMode::Exclusive, true),
                (Target::Span(span.clone()), LockMode::Shared, false),
            ],
            fixed: vec![span],
        };
        let bytes = saved.encode();
        assert_eq!(SavedTxn::decode(&bytes), Some(saved.clone()));
        for cut in 0..bytes.len() {
            assert_eq!(SavedTxn::decode(&bytes[..cut]), None, "{cut}");
        }
        assert_eq!(saved.deletes_in(&KeySpan::all()).collect::<Vec<_>>(), [b"l"]);
        assert!(saved.depends_outside(&KeySpan::new("k", "l")));
        assert!(!saved.depends_outside(&KeySpan::new("a", "s")));
    }
}
