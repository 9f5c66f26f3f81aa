//! What the entries of a range's log say (`docs/formats/range_entries.md`).

use braid_consensus::LogIndex;
use braid_consensus::codec::{Reader, put_bytes, put_number};
use braid_lsm::{CommitTs, KeySpan};
use bytes::Bytes;

use crate::ids::{RangeId, TxnId, put_span, put_txn, take_span, take_txn};
use crate::lease::Lease;
use crate::members::replica_changes::Change;
use crate::prepared::{Anchor, Decision, Prepared, put_list, take_list};

const VERSION: u8 = 1;

/// One change of data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// Sets the value of a key.
    Put(Bytes, Bytes),
    /// Deletes a key, which need not exist.
    Delete(Bytes),
    /// Deletes all keys of a span: one range tombstone.
    DeleteSpan(KeySpan),
}

impl Write {
    /// The keys that it changes.
    pub fn span(&self) -> KeySpan {
        match self {
            Write::Put(key, _) | Write::Delete(key) => KeySpan::point(key),
            Write::DeleteSpan(span) => span.clone(),
        }
    }

    /// Bytes of its keys and values.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Write::Put(key, value) => key.len() + value.len(),
            Write::Delete(key) => key.len(),
            Write::DeleteSpan(span) => span.start.len() + span.end.len(),
        }
    }
}

/// What a command does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Act {
    /// A transaction commits. If it has an anchor this is it, and other ranges are part of it.
    Commit { txn: TxnId, writes: Vec<Write>, anchor: Option<Anchor> },
    /// Rows appear at a time of the past, where nobody looks yet.
    Ingest { txn: TxnId, at: CommitTs, rows: Vec<(Bytes, Bytes)> },
    /// A replica gets the lease, or renews its own.
    Lease(Lease),
    /// The holder gives its lease up: no later timestamp belongs to it.
    Release,
    /// The log may be cut up to here. Who has less of it needs a state.
    Cut(LogIndex),
    /// Nobody reads as of a time below any more.
    Gc(CommitTs),
    /// The keys from `at` on become a range of their own. It is remembered until that one is
    /// founded; not in entries of versions before that.
    Split { split: Split, is_remembered: bool },
    /// A range that was split off is founded.
    Founded(RangeId),
    /// A part of a transaction over several ranges is ready to happen. Its bound is the entry's
    /// timestamp.
    Prepare(Box<Prepared>),
    /// What was prepared happens, or goes.
    Resolve { txn: TxnId, decision: Decision },
    /// A transaction that has not happened never will.
    Abort { txn: TxnId },
    /// Nobody waits for the outcome of a transaction any more.
    Settle { txn: TxnId },
    /// Another replica belongs to the range, or one less. Its entry is one of the group's, too.
    Replicas(Change),
}

/// How a range is split.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split {
    /// First key of the new range.
    pub at: Bytes,
    /// The new range: a number that no range ever had.
    pub right: RangeId,
}

/// What a leader proposes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Command {
    /// The lease under which it was proposed; of [`Act::Lease`]: the one before it.
    pub(crate) lease: u64,
    /// Counts proposals under a lease: a repeated one is known by it.
    pub(crate) proposal: u64,
    /// When it happens.
    pub(crate) ts: CommitTs,
    pub(crate) act: Act,
}

impl Command {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        put_number(&mut out, self.lease);
        put_number(&mut out, self.proposal);
        put_number(&mut out, self.ts.0);
        match &self.act {
            Act::Commit { txn, writes, anchor } => {
                out.push(1);
                put_txn(&mut out, *txn);
                put_list(&mut out, writes, put_write);
                out.push(u8::from(anchor.is_some()));
                anchor.iter().for_each(|anchor| anchor.encode(&mut out));
            }
            Act::Prepare(prepared) => {
                out.push(6);
                prepared.encode(&mut out);
            }
            Act::Resolve { txn, decision } => {
                out.push(7);
                put_txn(&mut out, *txn);
                decision.encode(&mut out);
            }
            Act::Abort { txn } | Act::Settle { txn } => {
                out.push(if matches!(self.act, Act::Abort { .. }) { 8 } else { 9 });
                put_txn(&mut out, *txn);
            }
            Act::Lease(lease) => {
                out.push(2);
                lease.encode(&mut out);
            }
            Act::Release => out.push(11),
            Act::Cut(index) => {
                out.push(3);
                put_number(&mut out, index.0);
            }
            Act::Gc(threshold) => {
                out.push(10);
                put_number(&mut out, threshold.0);
            }
            Act::Founded(range) => {
                out.push(14);
                put_number(&mut out, range.0);
            }
            Act::Split { split, is_remembered } => {
                out.push(if *is_remembered { 13 } else { 4 });
                put_bytes(&mut out, &split.at);
                put_number(&mut out, split.right.0);
            }
            Act::Replicas(change) => {
                out.push(12);
                change.encode(&mut out);
            }
            Act::Ingest { txn, at, rows } => {
                out.push(5);
                put_txn(&mut out, *txn);
                put_number(&mut out, at.0);
                put_number(&mut out, rows.len() as u64);
                for (key, value) in rows {
                    put_bytes(&mut out, key);
                    put_bytes(&mut out, value);
                }
            }
        }
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Command> {
        let mut reader = Reader::new(bytes);
        if reader.byte()? != VERSION {
            return None;
        }
        let (lease, proposal) = (reader.number()?, reader.number()?);
        let ts = CommitTs(reader.number()?);
        let act = take_act(&mut reader)?;
        reader.is_empty().then_some(Command { lease, proposal, ts, act })
    }
}

fn take_act(reader: &mut Reader<'_>) -> Option<Act> {
    Some(match reader.byte()? {
        1 => {
            let (txn, writes) = (take_txn(reader)?, take_list(reader, take_write)?);
            let anchor = match reader.byte()? {
                0 => None,
                1 => Some(Anchor::decode(reader)?),
                _ => return None,
            };
            Act::Commit { txn, writes, anchor }
        }
        6 => Act::Prepare(Box::new(Prepared::decode(reader)?)),
        7 => {
            let (txn, decision) = (take_txn(reader)?, Decision::decode(reader)?);
            Act::Resolve { txn, decision }
        }
        8 => Act::Abort { txn: take_txn(reader)? },
        9 => Act::Settle { txn: take_txn(reader)? },
        2 => Act::Lease(Lease::decode(reader)?),
        11 => Act::Release,
        12 => Act::Replicas(Change::decode(reader)?),
        3 => Act::Cut(LogIndex(reader.number()?)),
        10 => Act::Gc(CommitTs(reader.number()?)),
        kind @ (4 | 13) => {
            let at = Bytes::copy_from_slice(reader.bytes()?);
            let split = Split { at, right: RangeId(reader.number()?) };
            Act::Split { split, is_remembered: kind == 13 }
        }
        14 => Act::Founded(RangeId(reader.number()?)),
        5 => {
            let (txn, at) = (take_txn(reader)?, CommitTs(reader.number()?));
            let mut rows = Vec::new();
            for _ in 0..reader.number()? {
                let key = Bytes::copy_from_slice(reader.bytes()?);
                rows.push((key, Bytes::copy_from_slice(reader.bytes()?)));
            }
            Act::Ingest { txn, at, rows }
        }
        _ => return None,
    })
}

pub(crate) fn put_write(out: &mut Vec<u8>, write: &Write) {
    match write {
        Write::Put(key, value) => {
            out.push(1);
            put_bytes(out, key);
            put_bytes(out, value);
        }
        Write::Delete(key) => {
            out.push(2);
            put_bytes(out, key);
        }
        Write::DeleteSpan(span) => {
            out.push(3);
            put_span(out, span);
        }
    }
}

pub(crate) fn take_write(reader: &mut Reader<'_>) -> Option<Write> {
    let kind = reader.byte()?;
    if kind == 3 {
        return Some(Write::DeleteSpan(take_span(reader)?));
    }
    let key = Bytes::copy_from_slice(reader.bytes()?);
    match kind {
        1 => Some(Write::Put(key, Bytes::copy_from_slice(reader.bytes()?))),
        2 => Some(Write::Delete(key)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::NodeId;
    use braid_consensus::ReplicaId;

    #[test]
    fn commands_round_trip_and_cuts_are_noticed() {
        let txn = TxnId { began: CommitTs(1 << 40), number: 3 };
        let writes = vec![
            Write::Put(Bytes::from_static(b"a"), Bytes::from_static(b"1")),
            Write::Delete(Bytes::from_static(b"b")),
            Write::DeleteSpan(KeySpan::new("c", "d")),
        ];
        let participants = vec![KeySpan::new("x", "y")];
        let anchor = Anchor { key: Bytes::from_static(b"a"), participants };
        let split = Split { at: Bytes::from_static(b"m"), right: RangeId(3) };
        for act in [
            Act::Commit { txn, writes: writes.clone(), anchor: None },
            Act::Commit { txn, writes, anchor: Some(anchor) },
            Act::Resolve { txn, decision: Decision::Committed { at: CommitTs(5), by: NodeId(3) } },
            Act::Resolve { txn, decision: Decision::Aborted },
            Act::Abort { txn },
            Act::Settle { txn },
            Act::Lease(Lease { sequence: 300, ..Lease::NONE }),
            Act::Cut(LogIndex(9)),
            Act::Gc(CommitTs(1 << 50)),
            Act::Release,
            Act::Replicas(Change::Add(ReplicaId(4), NodeId(5))),
            Act::Split { split: split.clone(), is_remembered: false },
            Act::Split { split, is_remembered: true },
            Act::Founded(RangeId(300)),
            Act::Ingest {
                txn,
                at: CommitTs(7),
                rows: vec![(Bytes::from_static(b"k"), Bytes::from_static(b"v"))],
            },
        ] {
            let command = Command { lease: 2, proposal: 400, ts: CommitTs(77), act };
            let bytes = command.encode();
            assert_eq!(Command::decode(&bytes), Some(command));
            (0..bytes.len()).for_each(|len| assert_eq!(Command::decode(&bytes[..len]), None));
        }
    }
}
