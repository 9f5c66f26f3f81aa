//! Versions that nobody reads any more: what a threshold of the store asks of everybody.

use braid_kv::{
    Grant, LockItem, LockMany, LockMode, TXN_COUNTER_BITS, Target, TxnId as LockTxn, Wait,
};
use braid_range::{Decision, LockAsk, LockStop, Locked, PrepareAsk, When};

use super::*;

/// The record of starts has no time of its own, and contract C2 refuses whatever is below a
/// threshold.
#[test]
fn a_store_with_a_threshold_starts_again_and_counts_its_starts() {
    let mut cluster = Cluster::new();
    let mut number = 0;
    let mut write = |cluster: &mut Cluster, id| {
        number += 1;
        let txn = TxnId { began: cluster.now(id), number };
        let done = cluster.ask(id, commit(txn, vec![put("a", "1")]));
        assert!(matches!(done, Some(Answer::Committed { .. })), "{done:?}");
    };
    write(&mut cluster, 1);
    // The second threshold is next to the stamp of the record itself; the third one is the same.
    let first = cluster.now(1);
    for (threshold, starts) in [(first.0, 2), (first.0 + 1, 3), (first.0 + 1, 4)] {
        let store = cluster.process(1).store();
        store.set_gc_threshold(CommitTs(threshold)).expect("it is open");
        let holder = cluster.leaseholder();
        write(&mut cluster, holder);
        cluster.process(1).store().flush().expect("it flushes");
        cluster.work();
        cluster.crash(1, CrashPolicy::LoseAll);
        cluster.restart(1);
        assert_eq!(cluster.process(1).starts(), starts);
        assert_eq!(cluster.process(1).store().gc_threshold(), CommitTs(threshold));
        cluster.pass(150, &[1, 2, 3]);
    }
    let holder = cluster.leaseholder();
    write(&mut cluster, holder);
    assert_eq!(shown(cluster.ask(holder, read("a", "b"))), "a=1");
}

const SECOND: u64 = 1_000_000;
/// Versions are kept for so long; a step is a 16th of it.
const WINDOW: u64 = 16 * SECOND;

/// All nodes live on for some seconds, their stores are synced, and n1 hears of readers.
fn live(cluster: &mut Cluster, seconds: u64, oldest: Option<CommitTs>) {
    for _ in 0..seconds {
        if let Some(oldest) = oldest {
            let says = Ask::ReadsFrom { coordinator: 7, oldest };
            for id in 1..=3 {
                if cluster.nodes[id as usize - 1].process.is_some() {
                    assert_eq!(cluster.ask(id, says.clone()), Some(Answer::Fine));
                }
            }
        }
        let runs = |id: &u64| cluster.nodes[*id as usize - 1].process.is_some();
        let who: Vec<u64> = (1..=3).filter(runs).collect();
        cluster.pass(10, &who);
        for id in who {
            let process = cluster.process(id);
            let position = process.store_position();
            position.wait_durable().expect("the disk works");
            process.store_synced(&position).expect("nothing fails");
        }
        cluster.work();
    }
}

fn thresholds(cluster: &mut Cluster) -> [CommitTs; 3] {
    [1, 2, 3].map(|id| cluster.process(id).store().gc_threshold())
}

fn micros(ts: CommitTs) -> u64 {
    ts.0 >> 12
}

fn write(cluster: &mut Cluster, id: u64, number: u64, value: &'static str) -> CommitTs {
    let txn = TxnId { began: cluster.now(id), number };
    match cluster.ask(id, commit(txn, vec![put("a", value)])) {
        Some(Answer::Committed { at, .. }) => at,
        other => panic!("{other:?}"),
    }
}

fn read_at(at: CommitTs) -> Ask {
    Ask::Read { spans: vec![KeySpan::new(key("a"), key("b"))], at: Some(at), bytes: 1 << 20 }
}

fn get_at(at: CommitTs) -> Ask {
    Ask::Get { keys: vec![key("a")], when: When::exactly(at) }
}

/// The oldest time that can be read, if that is the answer.
fn refused(answer: Option<Answer>) -> CommitTs {
    match answer {
        Some(Answer::Conflict(Conflict::Collected(oldest))) => oldest,
        other => panic!("{other:?}"),
    }
}

fn is_lock_refused(answer: Option<Answer>) -> bool {
    let Some(Answer::Locked(Locked { grants, stop, .. })) = answer else { return false };
    let newer = matches!(stop, Some(LockStop::Newer(Conflict::Collected(_))));
    newer && grants == [Grant::Newer]
}

fn lock_at(number: u64, read_ts: CommitTs, check: bool) -> Ask {
    let txn = LockTxn(9 << TXN_COUNTER_BITS | number);
    let (target, mode) = (Target::Key(key("a")), LockMode::Exclusive);
    let items = vec![LockItem { target, mode, check }];
    let request = LockMany { txn, items, read_ts, wait: Wait::NoWait, timeout: None };
    Ask::Lock(LockAsk { request, step: 1, session: None })
}

/// Until then a threshold would let nothing go, and each step of it would be an entry.
#[test]
fn a_range_that_sleeps_wakes_once_for_what_was_written_last() {
    // A step is 30 s.
    let mut cluster = Cluster::keeping(Some(480 * SECOND));
    let written = write(&mut cluster, 1, 1, "1");
    live(&mut cluster, 25, None);
    let before = cluster.process(2).ranges()[0].1;
    live(&mut cluster, 440, None);
    assert_eq!(cluster.process(2).ranges()[0].1, before, "the window is not over");
    assert!(thresholds(&mut cluster).iter().all(|at| *at < written));
    live(&mut cluster, 80, None);
    let moved = thresholds(&mut cluster);
    assert!(moved.iter().all(|at| *at >= written), "{moved:?}");
    let after = cluster.process(2).ranges()[0].1;
    assert!(after.0 <= before.0 + 3, "{before} {after}");
    live(&mut cluster, 100, None);
    assert_eq!(cluster.process(2).ranges()[0].1, after);
    assert!([1, 2, 3].iter().all(|id| cluster.process(*id).sleeps(RangeId(1))));
}

/// The same, and each second something is written.
fn live_writing(cluster: &mut Cluster, seconds: u64) {
    for _ in 0..seconds {
        let holder = cluster.leaseholder();
        let txn = TxnId { began: cluster.now(holder), number: 1_000 };
        let done = cluster.ask(holder, commit(txn, vec![put("c", "1")]));
        assert!(matches!(done, Some(Answer::Committed { .. })), "{done:?}");
        live(cluster, 1, None);
    }
}

#[test]
fn a_threshold_follows_the_clock_on_all_nodes_where_something_is_written() {
    let mut cluster = Cluster::keeping(Some(WINDOW));
    let first = write(&mut cluster, 1, 1, "1");
    let second = write(&mut cluster, 1, 2, "2");
    let split = Ask::Split(Split { at: key("k"), right: RangeId(2) });
    assert_eq!(cluster.ask(1, split), Some(Answer::Again));
    live(&mut cluster, 8, None);
    assert_eq!(shown(cluster.ask(1, read_at(first))), "a=1", "the window is not over");
    assert!(thresholds(&mut cluster).iter().all(|at| *at < first));
    live_writing(&mut cluster, 60);
    let now = micros(cluster.now(1));
    let all = thresholds(&mut cluster);
    assert_eq!(all, [all[0]; 3]);
    let kept = now - micros(all[0]);
    assert!((WINDOW..WINDOW + 4 * SECOND).contains(&kept), "{kept}");
    // It moves in steps, with an entry for each, beside one for what is written, and maybe one for
    // a lease; in the other range nothing happens at all.
    let applied = |cluster: &mut Cluster| {
        let ranges = cluster.process(2).ranges();
        [ranges[0].1.0, ranges[1].1.0]
    };
    let before = applied(&mut cluster);
    live_writing(&mut cluster, 32);
    let after = applied(&mut cluster);
    let entries = after[0] - before[0];
    assert!((62..=98).contains(&entries), "{entries} entries in 32 steps");
    assert_eq!(after[1], before[1]);
    assert!(cluster.process(2).sleeps(RangeId(2)));
    // Nobody reads there below the threshold of the store, either.
    let other = |at| {
        let spans = vec![KeySpan::new(key("m"), key("n"))];
        Ask::Read { spans, at: Some(at), bytes: 1 }
    };
    let mut refusals = Vec::new();
    for id in [1, 2, 3, 1, 2, 3] {
        let answer = cluster.ask_range(2, id, other(second));
        refusals.extend(matches!(answer, Some(Answer::Conflict(_))).then(|| refused(answer)));
        cluster.pass(1, &[1, 2, 3]);
    }
    assert!(refusals.iter().any(|oldest| *oldest > second), "{refusals:?}");
    let holder = cluster.leaseholder();
    cluster.ask(holder, read("a", "b"));
    cluster.pass(1, &[1, 2, 3]);
    let oldest = refused(cluster.ask(holder, read_at(second)));
    assert_eq!(shown(cluster.ask(holder, read_at(oldest))), "a=2");
    assert_eq!(refused(cluster.ask(holder, get_at(CommitTs(oldest.0 - 1)))), oldest);
    assert_eq!(shown(cluster.ask(holder, read("a", "b"))), "a=2");
}

#[test]
fn what_is_read_below_the_threshold_and_what_relies_on_it_is_refused() {
    let mut cluster = Cluster::keeping(Some(WINDOW));
    let old = write(&mut cluster, 1, 1, "1");
    write(&mut cluster, 1, 2, "2");
    // Somebody reads at that time, and says so.
    live(&mut cluster, 60, Some(old));
    assert_eq!(shown(cluster.ask(1, read_at(old))), "a=1");
    assert!(thresholds(&mut cluster)[0] < old);
    // He is silent for longer than anybody waits for him.
    live(&mut cluster, 9, None);
    assert_eq!(shown(cluster.ask(1, read_at(old))), "a=1");
    live(&mut cluster, 5, None);
    let oldest = refused(cluster.ask(1, read_at(old)));
    // When he is back, it is too late for him.
    live(&mut cluster, 2, Some(old));
    assert_eq!(refused(cluster.ask(1, read_at(old))), refused(cluster.ask(1, get_at(old))));
    let now = cluster.now(1);
    let name = |number| TxnId { began: now, number };
    let spans = vec![KeySpan::new(key("a"), key("b"))];
    // The version that would be in conflict with it may be gone: so would be its trace.
    let reads = Reads { points: Vec::new(), spans: spans.clone() };
    let validate = |floor| {
        let reads = reads.clone();
        Ask::Validate { locks: None, floor, through: now, reads }
    };
    refused(cluster.ask(1, validate(old)));
    assert_eq!(cluster.ask(1, validate(now)), Some(Answer::Fine));
    let relying = |number, at| commit_reading(name(number), at, spans.clone(), vec![put("c", "1")]);
    refused(cluster.ask(1, relying(3, old)));
    assert!(matches!(cluster.ask(1, relying(4, now)), Some(Answer::Committed { .. })));
    let prepare = |number, read_at, reads| {
        let (txn, owner, writes) = (name(number), LockTxn(number), vec![put("d", "1")]);
        let (locks, anchor) = (None, key("a"));
        Ask::Prepare(PrepareAsk { txn, owner, locks, anchor, read_at, reads, writes })
    };
    refused(cluster.ask(1, prepare(5, old, reads.clone())));
    assert!(is_lock_refused(cluster.ask(1, lock_at(1, old, true))));
    assert!(!is_lock_refused(cluster.ask(1, lock_at(2, now, true))));
    let row = |name| vec![(key(name), Bytes::new())];
    let ingest = |number, at, rows| Ask::Ingest { txn: name(number), at, rows };
    refused(cluster.ask(1, ingest(6, oldest, row("x"))));
    let newest = refused(cluster.ask(1, read_at(old)));
    let above = ingest(7, CommitTs(newest.0 + 1), row("y"));
    assert!(matches!(cluster.ask(1, above), Some(Answer::Committed { .. })));
    // Whoever has read nothing relies on nothing.
    let blind = commit_reading(name(8), old, Vec::new(), vec![put("e", "1")]);
    assert!(matches!(cluster.ask(1, blind), Some(Answer::Committed { .. })));
    let prepared = cluster.ask(1, prepare(9, old, Reads::default()));
    assert!(matches!(prepared, Some(Answer::Prepared { .. })), "{prepared:?}");
}

#[test]
fn a_process_that_has_not_listened_for_long_moves_no_threshold() {
    let mut cluster = Cluster::keeping(Some(WINDOW));
    let old = write(&mut cluster, 1, 1, "1");
    live(&mut cluster, 30, Some(old));
    (1..=3).for_each(|id| cluster.crash(id, CrashPolicy::LoseAll));
    (1..=3).for_each(|id| cluster.restart(id));
    // Routers are silent while there is nobody to talk to.
    live(&mut cluster, 8, None);
    live(&mut cluster, 20, Some(old));
    let holder = cluster.leaseholder();
    assert_eq!(shown(cluster.ask(holder, read_at(old))), "a=1");
    live(&mut cluster, 12, None);
    let holder = cluster.leaseholder();
    cluster.ask(holder, read("a", "b"));
    cluster.pass(1, &[1, 2, 3]);
    refused(cluster.ask(holder, read_at(old)));
}

#[test]
fn what_is_prepared_holds_the_threshold_of_its_range_and_of_the_store_below_it() {
    let mut cluster = Cluster::keeping(Some(WINDOW));
    let split = Ask::Split(Split { at: key("k"), right: RangeId(2) });
    assert_eq!(cluster.ask(1, split), Some(Answer::Again));
    let txn = TxnId { began: cluster.now(1), number: 1 };
    let ask = Ask::Prepare(PrepareAsk {
        txn,
        owner: LockTxn(1),
        locks: None,
        anchor: key("k"),
        read_at: txn.began,
        reads: Reads::default(),
        writes: vec![put("a", "1")],
    });
    let Some(Answer::Prepared { bound }) = cluster.ask(1, ask) else { panic!("not prepared") };
    // Or the other range would be settled, and stay where it is.
    let later = commit(TxnId { began: cluster.now(1), number: 2 }, vec![put("m", "1")]);
    assert!(matches!(cluster.ask_range(2, 1, later), Some(Answer::Committed { .. })));
    let applied = |cluster: &mut Cluster| cluster.process(1).ranges()[0].1.0;
    live(&mut cluster, 30, None);
    let before = applied(&mut cluster);
    live(&mut cluster, 30, None);
    // It asks for nothing that comes to nothing.
    assert!(applied(&mut cluster) < before + 5);
    let other = |at| {
        let spans = vec![KeySpan::new(key("m"), key("n"))];
        Ask::Read { spans, at: Some(at), bytes: 1 }
    };
    assert!(refused(cluster.ask_range(2, 1, other(CommitTs(1)))) > bound);
    let all = thresholds(&mut cluster);
    assert!(all.iter().all(|at| CommitTs::ZERO < *at && *at < bound), "{all:?}");
    // As early as it can be.
    let decision = Decision::Committed { at: bound, by: NodeId(1) };
    cluster.ask(1, read("x", "y"));
    cluster.pass(2, &[1, 2, 3]);
    let holder = cluster.leaseholder();
    let resolved = cluster.ask(holder, Ask::Resolve { txn, decision, span: None });
    assert_eq!(resolved, Some(Answer::Fine));
    assert_eq!(shown(cluster.ask(holder, read("a", "b"))), "a=1");
    live(&mut cluster, 5, None);
    assert!(thresholds(&mut cluster)[0] > bound);
}

/// What is applied again after a crash is above the store's threshold, or the node could not go on.
#[test]
fn the_threshold_of_a_store_is_one_that_its_durable_states_have() {
    let mut cluster = Cluster::keeping(Some(WINDOW));
    live(&mut cluster, 1, None);
    let times: Vec<CommitTs> = (0..4)
        .map(|_| {
            live(&mut cluster, 1, None);
            cluster.now(1)
        })
        .collect();
    // A memtable is full, and waits to be flushed.
    for number in 10..13 {
        let name = TxnId { began: cluster.now(1), number };
        let big = Write::Put(key("big"), Bytes::from(vec![7; 30_000]));
        let done = cluster.ask(1, commit(name, vec![big]));
        assert!(matches!(done, Some(Answer::Committed { .. })), "{done:?}");
    }
    // Nothing of what follows is durable in the stores: rows of the past, and thresholds above
    // these.
    for (number, at) in times.into_iter().enumerate() {
        let name = TxnId { began: cluster.now(1), number: number as u64 };
        let rows = vec![(key(&format!("old{number}")), Bytes::from_static(b"x"))];
        let taken = cluster.ask(1, Ask::Ingest { txn: name, at, rows });
        assert!(matches!(taken, Some(Answer::Committed { .. })), "{taken:?}");
    }
    for number in 100..110 {
        let holder = cluster.leaseholder();
        let name = TxnId { began: cluster.now(holder), number };
        let done = cluster.ask(holder, commit(name, vec![put("c", "1")]));
        assert!(matches!(done, Some(Answer::Committed { .. })), "{done:?}");
        cluster.pass(30, &[1, 2, 3]);
    }
    let holder = cluster.leaseholder();
    cluster.ask(holder, read("a", "b"));
    cluster.pass(1, &[1, 2, 3]);
    assert!(micros(refused(cluster.ask(holder, read_at(CommitTs(1))))) > 1_010 * SECOND);
    let old = thresholds(&mut cluster);
    assert!(old.iter().all(|at| micros(*at) < 1_000 * SECOND), "{old:?}");
    // Whatever threshold the store has is durable when it has flushed.
    cluster.work();
    (1..=3).for_each(|id| cluster.crash(id, CrashPolicy::LoseAll));
    (1..=3).for_each(|id| cluster.restart(id));
    live(&mut cluster, 20, None);
    let holder = cluster.leaseholder();
    cluster.ask(holder, read("a", "b"));
    cluster.pass(1, &[1, 2, 3]);
    live_writing(&mut cluster, 20);
    let shown = shown(cluster.ask(holder, read("old", "p")));
    assert_eq!(shown, "old0=x old1=x old2=x old3=x");
    let all = thresholds(&mut cluster);
    assert!(micros(all[0]) > 1_010 * SECOND && all == [all[0]; 3], "{all:?}");
}
