//! Promises of nodes that are broken on the way: what a node with a mistake would say or do.

use std::sync::Arc;

use braid_kv::{ScannedMany, SpanRows, Work};
use braid_lsm::{CommitTs, Exported};
use braid_range::{Answer, Ask, CommitAsk, Decision, NodeId, PrepareAsk, Request, thin_out};

use crate::plan::Sabotage;

/// Changes what one node sends to another one.
pub(crate) fn twist_message(sabotage: Sabotage, bytes: Vec<u8>) -> Vec<u8> {
    // Kinds of a range's records: `docs/formats/range_entries.md`.
    fn is_record(item: &Exported, kind: u8) -> bool {
        matches!(item, Exported::Entry { key, .. } if key[0] == 0 && key[10] == kind)
    }
    let leaves_out: fn(&Exported) -> bool = match sabotage {
        Sabotage::StatesWithoutTombstones => |item| matches!(item, Exported::Tombstone { .. }),
        Sabotage::StatesWithoutOutcomes => |item| is_record(item, b'o'),
        Sabotage::StatesWithoutPrepared => |item| is_record(item, b'p'),
        _ => return bytes,
    };
    thin_out(&bytes, leaves_out).unwrap_or(bytes)
}

/// Changes what a node is asked, or says what it answers instead of doing it.
pub(crate) fn twist_request(
    sabotage: Sabotage,
    request: &mut Request,
    clock: CommitTs,
) -> Option<Answer> {
    match (sabotage, &mut request.ask) {
        (Sabotage::LostIntent, Ask::Prepare(_)) => Some(Answer::Prepared { bound: clock }),
        (Sabotage::RecordForgotten, Ask::Decide { .. }) => Some(Answer::Aborted),
        (Sabotage::SkippedUncertainty, Ask::Get { when, .. } | Ask::Scan { when, .. }) => {
            when.limit = when.at;
            None
        }
        (
            Sabotage::FloorsRaised,
            Ask::Prepare(PrepareAsk { read_at, .. }) | Ask::Commit(CommitAsk { read_at, .. }),
        ) => {
            *read_at = clock;
            None
        }
        (
            Sabotage::LocksTakenForHeld,
            Ask::Prepare(PrepareAsk { locks, .. })
            | Ask::Commit(CommitAsk { locks, .. })
            | Ask::Validate { locks, .. },
        ) => {
            *locks = None;
            None
        }
        (Sabotage::LocksTakenForHeld, Ask::Lock(ask)) => {
            ask.session = None;
            None
        }
        (Sabotage::FloorsRaised, Ask::Validate { floor, .. }) => {
            *floor = clock;
            None
        }
        (Sabotage::UnguardedReads, Ask::Prepare(PrepareAsk { reads, writes, .. }))
            if !writes.is_empty() =>
        {
            *reads = braid_kv::Reads::default();
            None
        }
        (Sabotage::UnguardedReads, Ask::Validate { reads, .. }) => {
            *reads = braid_kv::Reads::default();
            None
        }
        _ => None,
    }
}

/// Changes what a node has answered to a request; returns what it is asked to do besides.
pub(crate) fn twist_answer(
    sabotage: Sabotage,
    (request, node): (&Request, NodeId),
    answer: &mut Answer,
) -> Option<Ask> {
    match (sabotage, &request.ask, &*answer) {
        (Sabotage::ResolveBeforeRecord, Ask::Prepare(ask), Answer::Prepared { bound }) => {
            let decision = Decision::Committed { at: *bound, by: node };
            Some(Ask::Resolve { txn: ask.txn, decision, span: None })
        }
        (Sabotage::StaleDescriptor, Ask::Scan { request, when }, Answer::WrongRange { .. }) => {
            let nothing = SpanRows { rows: Arc::default(), rest: None, cursor: None };
            let parts = vec![nothing; request.scans.len()];
            let work = Work::default();
            *answer = Answer::Scanned(ScannedMany { parts, at: when.at, undurable: None, work });
            None
        }
        _ => None,
    }
}
