//! How what is asked of ranges, and what they answer, is written: see [`crate::codec`].

use std::sync::Arc;

use braid_consensus::ReplicaId;
use braid_consensus::codec::Reader;
use braid_kv::{
    Conflict, GotMany, Grant, Jump, LockItem, LockMany, LockMode, LockReport, PointRead, ReadAt,
    ReadPart, Reads, RowBatch, ScanMany, ScannedMany, ShownLock, ShownRange, SpanRows, SpanScan,
    Target, TxnId as LockTxn, Wait, Work,
};
use braid_lsm::{CommitTs, KeySpan};
use braid_range::{
    Anchor, Answer, Ask, CommitAsk, Decision, HeldLocks, LockAsk, LockStop, Locked, MetClocks,
    NodeId, PrepareAsk, RangeDescriptor, RangeId, Request, Split, TxnId, Unfinished, WaitReport,
    When, Write,
};

use crate::codec::{Coded, enums, structs, wrappers};

wrappers!(CommitTs, LockTxn, NodeId, RangeId, ReplicaId);

impl Coded for MetClocks {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.to_vec().put(out);
    }
    fn take(reader: &mut Reader<'_>) -> Option<Self> {
        Some(MetClocks(Vec::take(reader)?.into()))
    }
}

impl Coded for Arc<RowBatch> {
    fn put(&self, out: &mut Vec<u8>) {
        self.len().put(out);
        for (key, value, ts) in self.iter() {
            braid_consensus::codec::put_bytes(out, key);
            braid_consensus::codec::put_bytes(out, value);
            ts.put(out);
        }
    }
    fn take(reader: &mut Reader<'_>) -> Option<Self> {
        let mut batch = RowBatch::copying();
        for _ in 0..reader.number()? {
            let (key, value) = (reader.bytes()?, reader.bytes()?);
            batch.push(key, value, CommitTs::take(reader)?);
        }
        Some(Arc::new(batch))
    }
}

structs! {
    KeySpan { start, end }
    ReadPart { what, digest }
    PointRead { key, part }
    Reads { points, spans }
    Work { entries, tombstones, blocks, blocks_from_disk, bytes }
    GotMany { values, undurable, work }
    Jump { classes, suffix }
    SpanScan { span, rows, more, cursor }
    ScanMany { scans, at, reverse, classes, jump, rows, bytes, notes, blocks }
    SpanRows { rows, rest, cursor }
    ScannedMany { parts, at, undurable, work }
    LockItem { target, mode, check }
    LockMany { txn, items, read_ts, wait, timeout }
    ShownLock { txn, target, mode, granted }
    LockReport { lines, waiting, locks }
    ShownRange { id, span, replicas, leaseholder, bytes, moves }
    RangeDescriptor { id, span, generation, replicas, learners, leaving, next_replica }
    TxnId { began, number }
    Request { range, ask }
    When { at, limit, observed, served, met }
    HeldLocks { owner, session, span }
    CommitAsk { txn, read_at, reads, locks, not_after, not_before, writes, anchor }
    PrepareAsk { txn, owner, locks, anchor, read_at, reads, writes }
    LockAsk { request, step, session }
    Anchor { key, participants }
    Split { at, right }
    Unfinished { prepared, decided }
    Locked { session, grants, stop, waited_nanos }
    WaitReport { txn, step, whom, age_micros }
}

enums! {
    ReadAt { 1 Time(ts), 2 Latest, }
    Target { 1 Key(key), 2 Span(span), }
    LockMode { 1 KeyShare, 2 Shared, 3 NoKeyExclusive, 4 Exclusive, }
    Wait { 1 Block, 2 NoWait, 3 SkipLocked, }
    Grant { 1 Held, 2 Newer, 3 Skipped, }
    Conflict {
        1 Written(key),
        2 WrittenSpan(span),
        3 Read(key),
        4 ReadSpan(span),
        5 FixedView,
        6 Uncertain(ts),
        7 LocksLost,
        8 Abandoned,
        9 Collected(oldest),
    }
    Decision { 1 Committed { at, by }, 2 Aborted, }
    Write { 1 Put(key, value), 2 Delete(key), 3 DeleteSpan(span), }
    LockStop {
        1 Newer(conflict),
        2 NotFree,
        3 TimedOut,
        4 Deadlock(circle),
        5 GivenUp,
    }
    Ask {
        1 Read { spans, at, bytes },
        2 Get { keys, when },
        3 Scan { request, when },
        4 Commit(ask),
        5 Prepare(ask),
        6 Resolve { txn, decision, span },
        7 Decide { txn, anchor },
        8 Settle { txn, anchor },
        9 Unfinished,
        10 Validate { locks, floor, through, reads },
        11 Lock(ask),
        12 GiveUp { txn, step },
        13 Release { txn, step, targets, ended },
        14 Running { newest, running },
        15 WaitsFor { txn, waits },
        16 Ingest { txn, at, rows },
        17 Divide(span, parts, least),
        18 StoredBytes(span),
        19 ShowLocks,
        20 Split(split),
        21 ShowRanges,
        22 ReadsFrom { coordinator, oldest },
        23 Ranges,
        24 SplitAt(at),
        25 UnfinishedRanges,
        26 Recall { coordinator },
        27 Fence { coordinator },
        28 Clock,
    }
    Answer {
        1 Rows { at, rows, rest },
        2 Committed { at, by },
        3 Prepared { bound },
        4 Aborted,
        5 Yield,
        6 Blocked { txn, anchor },
        7 Unfinished(unfinished),
        8 Got(got),
        9 Scanned(scanned),
        10 Uncertain(ts),
        11 Fine,
        12 Conflict(conflict),
        13 TooLate,
        14 Locked(locked),
        15 Waits { waits },
        16 Divided(cuts),
        17 Stored(bytes),
        18 Locks(report),
        19 NotHolder { try_node },
        20 WrongRange { known },
        21 NoReplica,
        22 Again,
        23 OutcomeUnknown,
        24 Refused(reason),
        25 ShownRanges(shown),
        26 Ranges(known),
        27 OfPredecessor { nodes },
        28 DiskFull,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::decode;
    use bytes::Bytes;
    use std::time::Duration;

    fn key(text: &'static str) -> Bytes {
        Bytes::from_static(text.as_bytes())
    }

    fn round_trips<T: Coded + PartialEq + std::fmt::Debug>(value: T) {
        let mut bytes = Vec::new();
        value.put(&mut bytes);
        for len in 0..bytes.len() {
            assert_ne!(decode::<T>(&bytes[..len]).as_ref(), Some(&value), "cut at {len}");
        }
        assert_eq!(decode::<T>(&bytes), Some(value));
        bytes.push(0);
        assert_eq!(decode::<T>(&bytes), None, "something behind it");
    }

    fn reads() -> Reads {
        let part = ReadPart { what: key("w"), digest: Some(u128::MAX - 5) };
        let points = vec![
            PointRead { key: key("a"), part: None },
            PointRead { key: key("b"), part: Some(part) },
        ];
        Reads { points, spans: vec![KeySpan::new("c", "d")] }
    }

    fn held() -> Option<HeldLocks> {
        Some(HeldLocks { owner: LockTxn(77), session: 3, span: KeySpan::new("k", "m") })
    }

    fn writes() -> Vec<Write> {
        vec![
            Write::Put(key("a"), key("1")),
            Write::Delete(key("b")),
            Write::DeleteSpan(KeySpan::new("k", "m")),
        ]
    }

    const TXN: TxnId = TxnId { began: CommitTs(1 << 50), number: 7 };

    fn commit() -> Ask {
        let participants = vec![KeySpan::new("k", "m")];
        Ask::Commit(CommitAsk {
            txn: TXN,
            read_at: CommitTs(4),
            reads: reads(),
            locks: held(),
            not_after: Some(CommitTs(8)),
            not_before: CommitTs(2),
            writes: writes(),
            anchor: Some(Anchor { key: key("a"), participants }),
        })
    }

    fn prepare() -> Ask {
        Ask::Prepare(PrepareAsk {
            txn: TXN,
            owner: LockTxn(77),
            locks: None,
            anchor: key("z"),
            read_at: CommitTs(4),
            reads: reads(),
            writes: writes(),
        })
    }

    fn lock() -> Ask {
        let targets = [Target::Key(key("x")), Target::Span(KeySpan::new("k", "m"))];
        let mode = LockMode::NoKeyExclusive;
        let request = LockMany {
            txn: LockTxn(77),
            items: targets.map(|target| LockItem { target, mode, check: true }).to_vec(),
            read_ts: CommitTs(3),
            wait: Wait::SkipLocked,
            timeout: Some(Duration::from_millis(1500)),
        };
        Ask::Lock(LockAsk { request, step: 3, session: Some(4) })
    }

    fn scan(when: When) -> Ask {
        let span = KeySpan::new("k", "m");
        let request = ScanMany {
            scans: vec![SpanScan { span, rows: usize::MAX, more: true, cursor: None }],
            at: ReadAt::Time(CommitTs(4)),
            reverse: true,
            classes: u32::MAX,
            jump: Some(Jump { classes: 2, suffix: key("\u{1}") }),
            rows: 10,
            bytes: 20,
            notes: false,
            blocks: true,
        };
        Ask::Scan { request, when }
    }

    #[test]
    fn requests_round_trip_and_cuts_are_noticed() {
        let (span, txn, owner) = (KeySpan::new("k", "m"), TXN, LockTxn(77));
        let (limit, served) = (CommitTs(9), Some(CommitTs(7)));
        let met = MetClocks([(NodeId(1), CommitTs(5)), (NodeId(3), CommitTs(6))].into());
        let when = When { at: CommitTs(5), limit, observed: Some(CommitTs(6)), served, met };
        let decision = Decision::Committed { at: CommitTs(9), by: NodeId(2) };
        let report = WaitReport { txn: owner, step: 2, whom: vec![LockTxn(4)], age_micros: 9 };
        let (floor, through) = (CommitTs(1), CommitTs(2));
        let asks = [
            Ask::Read { spans: vec![span.clone()], at: None, bytes: 8 },
            Ask::Get { keys: vec![key("a"), key("")], when: when.clone() },
            scan(when),
            commit(),
            prepare(),
            Ask::Resolve { txn, decision, span: Some(span.clone()) },
            Ask::Resolve { txn, decision: Decision::Aborted, span: None },
            Ask::Validate { locks: held(), floor, through, reads: reads() },
            lock(),
            Ask::WaitsFor { txn: owner, waits: vec![report] },
            Ask::Ingest { txn, at: CommitTs(3), rows: vec![(key("r"), key("v"))] },
            Ask::Divide(span, 3, 4),
            Ask::ShowLocks,
            Ask::ShowRanges,
            Ask::Ranges,
            Ask::UnfinishedRanges,
            Ask::SplitAt(key("q")),
            Ask::ReadsFrom { coordinator: 1 << 20, oldest: CommitTs(1 << 60) },
            Ask::Split(Split { at: key("q"), right: RangeId(99) }),
            Ask::Recall { coordinator: 1 << 20 },
            Ask::Fence { coordinator: 1 << 20 },
            Ask::Clock,
        ];
        for ask in asks {
            round_trips(Request { range: RangeId(1 << 60), ask });
        }
    }

    #[test]
    fn answers_round_trip_and_cuts_are_noticed() {
        let mut batch = RowBatch::new();
        batch.push(b"k", b"v", CommitTs(4));
        batch.push(b"l", b"", CommitTs(5));
        let rest = Some(KeySpan::new("m", "z"));
        let parts = vec![SpanRows { rows: Arc::new(batch), rest, cursor: Some(8) }];
        let work = Work { entries: 1, tombstones: 2, blocks: 3, blocks_from_disk: 4, bytes: 5 };
        let undurable = Some(CommitTs(3));
        let replicas = vec![(ReplicaId(1), NodeId(1)), (ReplicaId(2), NodeId(2))];
        let span = KeySpan::new("a", "b");
        let known = vec![RangeDescriptor::new(RangeId(3), span, replicas)];
        let grants = vec![Grant::Held, Grant::Newer, Grant::Skipped];
        let stop = Some(LockStop::Deadlock("1 waits for 2".into()));
        let shown = ShownLock {
            txn: LockTxn(1),
            target: Target::Key(key("k")),
            mode: LockMode::Shared,
            granted: true,
        };
        let txn = TxnId { began: CommitTs(1), number: 2 };
        let answers = [
            Answer::Got(GotMany { values: vec![None, Some(key("v"))], undurable, work }),
            Answer::Scanned(ScannedMany { parts, at: CommitTs(9), undurable, work }),
            Answer::Locked(Locked { session: 4, grants, stop, waited_nanos: 5 }),
            Answer::Locks(LockReport { lines: "one\n".into(), waiting: 1, locks: vec![shown] }),
            Answer::Ranges(known.clone()),
            Answer::OfPredecessor { nodes: vec![NodeId(4), NodeId(1)] },
            Answer::ShownRanges(vec![ShownRange {
                id: 7,
                span: KeySpan::new("a", "b"),
                replicas: vec![1, 2, 3],
                leaseholder: Some(2),
                bytes: 9,
                moves: Some("node 3 is dead".into()),
            }]),
            Answer::Conflict(Conflict::ReadSpan(KeySpan::new("a", "b"))),
            Answer::Conflict(Conflict::Collected(CommitTs(1 << 60))),
            Answer::NotHolder { try_node: Some(NodeId(3)) },
            Answer::WrongRange { known },
            Answer::Blocked { txn, anchor: key("a") },
            Answer::Unfinished(Unfinished { prepared: vec![(txn, key("b"))], decided: vec![] }),
            Answer::Refused("because".into()),
            Answer::OutcomeUnknown,
            Answer::DiskFull,
        ];
        answers.into_iter().for_each(round_trips);
    }
}
