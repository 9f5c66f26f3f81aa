//! Leases that go to other nodes: for balance, and before a node ends.

use braid_kv::{LockItem, LockMany, LockMode, TXN_COUNTER_BITS, Target, TxnId as LockTxn, Wait};
use braid_range::{LockAsk, Locked};

use super::*;

const BORDERS: [&str; 5] = ["b", "c", "d", "e", "f"];

/// Three nodes that spread what they lead, and a range that is split in six by n1.
fn six_ranges() -> Cluster {
    let mut cluster = Cluster::new();
    for (n, border) in BORDERS.iter().rev().enumerate() {
        let split = Ask::Split(Split { at: key(border), right: RangeId(20 + n as u64) });
        assert_eq!(cluster.ask(1, split), Some(Answer::Again));
        cluster.pass(3, &[1, 2, 3]);
    }
    cluster
}

/// How many ranges each node leads; 0 if it does not run.
fn leads(cluster: &mut Cluster) -> [usize; 3] {
    [1, 2, 3].map(|id| {
        let process = cluster.nodes[id - 1].process.as_ref();
        process.map_or(0, |process| process.describe().matches(" leads ").count())
    })
}

/// Writes into each of the ranges at whichever node serves it; how many ticks nobody has.
fn write_all(cluster: &mut Cluster, who: &[u64], number: &mut u64) -> u64 {
    let mut waited = 0;
    for at in ["a"].iter().chain(&BORDERS) {
        loop {
            let done = who.iter().any(|id| {
                let ranges = cluster.process(*id).ranges();
                let range = ranges.iter().find(|(range, _)| range.span.contains(&key(at)));
                *number += 1;
                let txn = TxnId { began: cluster.now(*id), number: *number };
                let range = range.expect("all keys are in some range").0.id.0;
                let answer = cluster.ask_range(range, *id, commit(txn, vec![put(at, "1")]));
                matches!(answer, Some(Answer::Committed { .. }))
            });
            if done {
                break;
            }
            waited += 1;
            cluster.pass(1, who);
        }
    }
    waited
}

/// Starts all nodes again, and lets them spread the leases of six ranges from now on.
fn spread(cluster: &mut Cluster) {
    for id in 1..=3 {
        cluster.nodes[id as usize - 1].spread_ticks = Some(7);
        cluster.crash(id, CrashPolicy::KeepAll);
        cluster.restart(id);
    }
    cluster.pass(200, &[1, 2, 3]);
    assert_eq!(leads(cluster), [2, 2, 2]);
}

#[test]
fn leases_of_a_range_that_was_split_are_spread_and_a_node_that_comes_back_gets_its_share() {
    let mut cluster = six_ranges();
    assert_eq!(leads(&mut cluster), [6, 0, 0]);
    cluster.pass(100, &[1, 2, 3]);
    assert_eq!(leads(&mut cluster), [6, 0, 0], "nobody has said that they should move");
    spread(&mut cluster);
    let mut number = 0;
    assert!(write_all(&mut cluster, &[1, 2, 3], &mut number) < 60);
    // It is away: the others lead, and give two back.
    cluster.crash(2, CrashPolicy::LoseAll);
    cluster.pass(150, &[1, 3]);
    write_all(&mut cluster, &[1, 3], &mut number);
    assert_eq!(leads(&mut cluster), [3, 0, 3]);
    cluster.restart(2);
    cluster.pass(200, &[1, 2, 3]);
    assert_eq!(leads(&mut cluster), [2, 2, 2]);
    // Nothing moves any more.
    for _ in 0..20 {
        cluster.pass(10, &[1, 2, 3]);
        assert_eq!(leads(&mut cluster), [2, 2, 2]);
    }
}

#[test]
fn a_node_that_drains_leads_nothing_soon_and_nobody_waits_for_its_leases() {
    let mut cluster = six_ranges();
    let mut number = 0;
    write_all(&mut cluster, &[1, 2, 3], &mut number);
    cluster.process(1).drain(true);
    let mut ticks = 0;
    while leads(&mut cluster)[0] > 0 {
        cluster.pass(1, &[1, 2, 3]);
        ticks += 1;
        assert!(ticks < 10, "{:?}", leads(&mut cluster));
    }
    assert_eq!(leads(&mut cluster), [0, 3, 3]);
    cluster.crash(1, CrashPolicy::KeepAll);
    // A lease has 6 s: nobody waits for that.
    let waited = write_all(&mut cluster, &[2, 3], &mut number);
    assert!(waited < 5, "waited {waited} ticks");
}

/// What balances must not give anything to who is about to end.
#[test]
fn a_node_that_drains_is_given_nothing_by_the_others() {
    let mut cluster = six_ranges();
    spread(&mut cluster);
    cluster.process(1).drain(true);
    cluster.pass(20, &[1, 2, 3]);
    for _ in 0..50 {
        cluster.pass(1, &[1, 2, 3]);
        assert_eq!(leads(&mut cluster)[0], 0);
    }
    // Nor just after it has ended.
    cluster.crash(1, CrashPolicy::KeepAll);
    let mut number = 0;
    cluster.pass(1, &[2, 3]);
    assert!(write_all(&mut cluster, &[2, 3], &mut number) < 5);
    cluster.pass(25, &[2, 3]);
    assert!(write_all(&mut cluster, &[2, 3], &mut number) < 5);
    cluster.restart(1);
    cluster.pass(200, &[1, 2, 3]);
    assert_eq!(leads(&mut cluster), [2, 2, 2]);
}

fn lock(txn: LockTxn, at: CommitTs) -> Ask {
    let target = Target::Key(key("a"));
    let items = vec![LockItem { target, mode: LockMode::Exclusive, check: true }];
    let request = LockMany { txn, items, read_ts: at, wait: Wait::Block, timeout: None };
    Ask::Lock(LockAsk { request, step: 1, session: None })
}

#[test]
fn who_has_locks_may_end_and_who_has_none_waits_for_the_next_lease() {
    let mut cluster = six_ranges();
    let now = cluster.now(1);
    let (first, second) = (LockTxn(1 << TXN_COUNTER_BITS | 1), LockTxn(1 << TXN_COUNTER_BITS | 2));
    let held = cluster.ask(1, lock(first, now));
    let Some(Answer::Locked(Locked { stop: None, .. })) = held else { panic!("{held:?}") };
    cluster.process(1).drain(true);
    cluster.pass(6, &[1, 2, 3]);
    // All but the range with the lock have gone.
    assert_eq!(leads(&mut cluster)[0], 1);
    assert_eq!(cluster.ask(1, lock(second, now)), None);
    let asked = cluster.asked;
    let targets = vec![Target::Key(key("a"))];
    let release = Ask::Release { txn: first, step: 2, targets, ended: true };
    assert_eq!(cluster.ask(1, release), Some(Answer::Fine));
    cluster.pass(3, &[1, 2, 3]);
    assert_eq!(leads(&mut cluster)[0], 0);
    let answer = cluster.answer(asked);
    assert!(matches!(answer, Some(Answer::NotHolder { try_node: Some(_) })), "{answer:?}");
}

#[test]
fn a_lock_that_stays_keeps_a_node_from_draining_for_a_second_only() {
    let mut cluster = six_ranges();
    let now = cluster.now(1);
    let holds = LockTxn(1 << TXN_COUNTER_BITS | 1);
    assert!(matches!(cluster.ask(1, lock(holds, now)), Some(Answer::Locked(_))));
    cluster.process(1).drain(true);
    cluster.pass(20, &[1, 2, 3]);
    assert_eq!(leads(&mut cluster)[0], 0);
}

/// The entry is on its way, and nobody can say what becomes of it.
#[test]
fn who_has_asked_to_release_its_lease_serves_nothing_whatever_becomes_of_that() {
    let mut cluster = Cluster::new();
    assert_eq!(shown(cluster.ask(1, read("a", "b"))), "");
    cluster.process(1).drain(true);
    // It releases with this tick, and none of its messages arrives.
    cluster.pass(3, &[2, 3]);
    cluster.cut_off = vec![1];
    cluster.pass(1, &[1]);
    assert_eq!(cluster.ask(1, read("a", "b")), None);
    // Another one leads when the lease is over, if it has not got the entry.
    cluster.pass(120, &[2, 3]);
    let holder = [2, 3].into_iter().find(|id| shown(cluster.ask(*id, read("a", "b"))).is_empty());
    assert!(holder.is_some());
}
