//! What a transaction over several ranges leaves in each of them before it is decided.
//!
//! ```text
//!   range a     prepare ── bound 5 ─────────────── resolve at 9: its writes happen, at 9
//!   range b     prepare ────── bound 7 ─────────── resolve at 9
//!   anchor                        commit at 9        one entry: the transaction has happened
//! ```
//!
//! A *prepared* part is durable and survives the leaseholder: what it writes, what it has read, and
//! its locks. It happens at or above its *bound*, if it happens. Until that is known nobody reads
//! what it writes at or above the bound, nobody writes what it has read or writes, and nobody gets
//! a lock that its own exclude. Below the bound nothing of it can ever be seen.

use braid_consensus::codec::{Reader, put_bytes, put_number};
use braid_kv::{LockMode, Target, TxnId as LockTxn};
use braid_lsm::{CommitTs, KeySpan};
use bytes::Bytes;

use crate::command::{Write, put_write, take_write};
use crate::ids::{NodeId, TxnId, put_span, put_txn, take_span, take_txn};

/// What became of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Decision {
    /// It has happened.
    Committed {
        /// When.
        at: CommitTs,
        /// The node whose clock has chosen that.
        by: NodeId,
    },
    /// It has not, and will not.
    Aborted,
}

impl Decision {
    pub(crate) fn encode(self, out: &mut Vec<u8>) {
        // No commit has the timestamp 0.
        let (at, by) = match self {
            Decision::Committed { at, by } => (at, by),
            Decision::Aborted => (CommitTs::ZERO, NodeId(0)),
        };
        put_number(out, at.0);
        put_number(out, by.0);
    }

    pub(crate) fn decode(reader: &mut Reader<'_>) -> Option<Decision> {
        let (at, by) = (CommitTs(reader.number()?), NodeId(reader.number()?));
        Some(match at {
            CommitTs::ZERO => Decision::Aborted,
            at => Decision::Committed { at, by },
        })
    }
}

/// Where the fate of a transaction over several ranges is decided, and who waits for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Anchor {
    /// The range that has this key keeps the transaction's record.
    pub key: Bytes,
    /// What the transaction touches elsewhere. The record stays until all of it is resolved.
    pub participants: Vec<KeySpan>,
}

impl Anchor {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        put_bytes(out, &self.key);
        put_list(out, &self.participants, put_span);
    }

    pub(crate) fn decode(reader: &mut Reader<'_>) -> Option<Anchor> {
        let key = Bytes::copy_from_slice(reader.bytes()?);
        Some(Anchor { key, participants: take_list(reader, take_span)? })
    }
}

/// See the [module's page](self).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Prepared {
    pub(crate) txn: TxnId,
    /// Whose locks these are.
    pub(crate) owner: LockTxn,
    /// Who knows its fate: the range that has this key.
    pub(crate) anchor: Bytes,
    /// It does not happen below: the timestamp of the entry that prepared it.
    pub(crate) bound: CommitTs,
    pub(crate) writes: Vec<Write>,
    pub(crate) reads: Vec<KeySpan>,
    pub(crate) locks: Vec<(Target, LockMode)>,
}

impl Prepared {
    /// Whether it writes into one of these.
    pub(crate) fn writes_into(&self, spans: &[KeySpan]) -> bool {
        let overlaps = |write: &Write| {
            let own = write.span();
            spans.iter().any(|span| span.overlaps(&own))
        };
        self.writes.iter().any(overlaps)
    }

    /// Whether it has read from one of these.
    pub(crate) fn reads_from(&self, spans: &[KeySpan]) -> bool {
        self.reads.iter().any(|own| spans.iter().any(|span| span.overlaps(own)))
    }

    /// Whether it locks a part of that.
    pub(crate) fn locks_in(&self, span: &KeySpan) -> bool {
        let spans = self.locks.iter().map(|(target, _)| crate::locking::span_of(target));
        spans.into_iter().any(|own| own.overlaps(span))
    }

    /// What of it lies inside of a span; nothing if all of it lies elsewhere.
    pub(crate) fn clipped(&self, to: &KeySpan) -> Option<Prepared> {
        let clip = |span: &KeySpan| {
            let start = span.start.clone().max(to.start.clone());
            let end = span.end.clone().min(to.end.clone());
            (start < end).then(|| KeySpan::new(start, end))
        };
        let write = |write: &Write| match write {
            Write::DeleteSpan(span) => clip(span).map(Write::DeleteSpan),
            point => to.covers(&point.span()).then(|| point.clone()),
        };
        let lock = |(target, mode): &(Target, LockMode)| match target {
            Target::Key(key) => to.contains(key).then(|| (target.clone(), *mode)),
            Target::Span(span) => clip(span).map(|span| (Target::Span(span), *mode)),
        };
        let part = Prepared {
            writes: self.writes.iter().filter_map(write).collect(),
            reads: self.reads.iter().filter_map(clip).collect(),
            locks: self.locks.iter().filter_map(lock).collect(),
            ..self.clone()
        };
        let is_empty = part.writes.is_empty() && part.reads.is_empty() && part.locks.is_empty();
        (!is_empty).then_some(part)
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        put_txn(out, self.txn);
        put_number(out, self.owner.0);
        put_bytes(out, &self.anchor);
        put_number(out, self.bound.0);
        put_list(out, &self.writes, put_write);
        put_list(out, &self.reads, put_span);
        put_list(out, &self.locks, |out, (target, mode)| {
            out.push(number_of(*mode));
            match target {
                Target::Key(key) => {
                    out.push(1);
                    put_bytes(out, key);
                }
                Target::Span(span) => {
                    out.push(2);
                    put_span(out, span);
                }
            }
        });
    }

    pub(crate) fn decode(reader: &mut Reader<'_>) -> Option<Prepared> {
        let txn = take_txn(reader)?;
        let owner = LockTxn(reader.number()?);
        let anchor = Bytes::copy_from_slice(reader.bytes()?);
        let bound = CommitTs(reader.number()?);
        let writes = take_list(reader, take_write)?;
        let reads = take_list(reader, take_span)?;
        let locks = take_list(reader, |reader| {
            let mode = mode_of(reader.byte()?)?;
            let target = match reader.byte()? {
                1 => Target::Key(Bytes::copy_from_slice(reader.bytes()?)),
                2 => Target::Span(take_span(reader)?),
                _ => return None,
            };
            Some((target, mode))
        })?;
        Some(Prepared { txn, owner, anchor, bound, writes, reads, locks })
    }
}

fn number_of(mode: LockMode) -> u8 {
    match mode {
        LockMode::KeyShare => 1,
        LockMode::Shared => 2,
        LockMode::NoKeyExclusive => 3,
        LockMode::Exclusive => 4,
    }
}

fn mode_of(number: u8) -> Option<LockMode> {
    use LockMode::{Exclusive, KeyShare, NoKeyExclusive, Shared};
    [KeyShare, Shared, NoKeyExclusive, Exclusive].into_iter().find(|m| number_of(*m) == number)
}

pub(crate) fn put_list<T>(out: &mut Vec<u8>, list: &[T], put: impl Fn(&mut Vec<u8>, &T)) {
    put_number(out, list.len() as u64);
    list.iter().for_each(|item| put(out, item));
}

pub(crate) fn take_list<T>(
    reader: &mut Reader<'_>,
    take: impl Fn(&mut Reader<'_>) -> Option<T>,
) -> Option<Vec<T>> {
    let count = reader.number()?;
    let mut list = Vec::new();
    for _ in 0..count {
        list.push(take(reader)?);
    }
    Some(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepared() -> Prepared {
        Prepared {
            txn: TxnId { began: CommitTs(1 << 40), number: 3 },
            owner: LockTxn(9),
            anchor: Bytes::from_static(b"a"),
            bound: CommitTs(77),
            writes: vec![
                Write::Put("b".into(), "1".into()),
                Write::DeleteSpan(KeySpan::new("d", "q")),
            ],
            reads: vec![KeySpan::new("c", "n")],
            locks: vec![
                (Target::Key("b".into()), LockMode::Exclusive),
                (Target::Span(KeySpan::new("d", "q")), LockMode::KeyShare),
            ],
        }
    }

    #[test]
    fn parts_round_trip_and_cuts_are_noticed() {
        let mut bytes = Vec::new();
        prepared().encode(&mut bytes);
        assert_eq!(Prepared::decode(&mut Reader::new(&bytes)), Some(prepared()));
        (0..bytes.len())
            .for_each(|len| assert_eq!(Prepared::decode(&mut Reader::new(&bytes[..len])), None));
    }

    #[test]
    fn a_part_is_clipped_to_both_sides_of_a_split() {
        let (left, right) = (KeySpan::new("a", "m"), KeySpan::new("m", "z"));
        let left = prepared().clipped(&left).expect("it has a part here");
        assert_eq!(left.writes[1], Write::DeleteSpan(KeySpan::new("d", "m")));
        assert_eq!((left.writes.len(), left.locks.len()), (2, 2));
        let right = prepared().clipped(&right).expect("it has a part here");
        assert_eq!(right.writes, [Write::DeleteSpan(KeySpan::new("m", "q"))]);
        assert_eq!(right.reads, [KeySpan::new("m", "n")]);
        assert_eq!(right.bound, CommitTs(77));
        assert_eq!(prepared().clipped(&KeySpan::new("q", "z")), None);
    }
}
