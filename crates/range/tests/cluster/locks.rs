//! Locks and reads at the leaseholder, as coordinators ask for them.

use braid_kv::{
    Conflict, GotMany, Grant, KeySpan, LockItem, LockMany, LockMode, Reads, TXN_COUNTER_BITS,
    Target, TxnId as LockTxn, Wait,
};
use braid_lsm::CommitTs;
use braid_range::{
    Answer, Ask, CommitAsk, HeldLocks, LockAsk, LockStop, Locked, RangeId, Split, TxnId, When,
};
use bytes::Bytes;

use super::{Cluster, commit, key, put, read, shown};

/// Transaction `n` of a coordinator.
fn txn(coordinator: u64, n: u64) -> LockTxn {
    LockTxn(coordinator << TXN_COUNTER_BITS | n)
}

fn lock(txn: LockTxn, step: u64, session: Option<u64>, keys: &[&str], at: CommitTs) -> Ask {
    let item = |name: &&str| LockItem {
        target: Target::Key(key(name)),
        mode: LockMode::Exclusive,
        check: true,
    };
    let items = keys.iter().map(item).collect();
    let request = LockMany { txn, items, read_ts: at, wait: Wait::Block, timeout: None };
    Ask::Lock(LockAsk { request, step, session })
}

fn commit_locked(cluster: &Cluster, locks: (LockTxn, u64), name: &str) -> Ask {
    let began = cluster.now(1);
    Ask::Commit(CommitAsk {
        txn: TxnId { began, number: locks.0.0 },
        read_at: began,
        reads: Reads::default(),
        locks: Some(HeldLocks {
            owner: locks.0,
            session: locks.1,
            span: KeySpan::point(&key(name)),
        }),
        not_after: None,
        not_before: CommitTs::ZERO,
        writes: vec![put(name, "locked")],
        anchor: None,
    })
}

fn held(answer: Option<Answer>) -> Locked {
    match answer {
        Some(Answer::Locked(locked)) if locked.stop.is_none() => locked,
        other => panic!("{other:?}"),
    }
}

const LOST: Answer = Answer::Conflict(Conflict::LocksLost);

#[test]
fn locks_go_with_the_lease_and_nobody_commits_without_them() {
    let mut cluster = Cluster::new();
    let now = cluster.now(1);
    let first = held(cluster.ask(1, lock(txn(1, 1), 1, None, &["a"], now)));
    assert_eq!((first.session, &first.grants[..]), (1, [Grant::Held].as_slice()));
    // Another node takes over. It knows of no locks, and gives the same one to somebody else.
    cluster.cut_off = vec![1];
    cluster.pass(120, &[2, 3]);
    let holder = if cluster.describe(2).contains("leads") { 2 } else { 3 };
    let later = cluster.now(holder);
    let other = held(cluster.ask(holder, lock(txn(2, 1), 1, None, &["a"], later)));
    assert_eq!(other.session, 2);
    let commits = commit_locked(&cluster, (txn(1, 1), 1), "a");
    assert_eq!(cluster.ask(holder, commits), Some(LOST));
    let more = lock(txn(1, 1), 2, Some(1), &["b"], later);
    assert_eq!(cluster.ask(holder, more), Some(LOST));
    let validate = Ask::Validate {
        locks: Some(HeldLocks { owner: txn(1, 1), session: 1, span: KeySpan::point(&key("a")) }),
        floor: now,
        through: later,
        reads: Reads::default(),
    };
    assert_eq!(cluster.ask(holder, validate), Some(LOST));
    // A late copy of its first request makes a session, but not the one that it had.
    cluster.ask(holder, lock(txn(1, 1), 1, None, &["c"], later));
    let commits = commit_locked(&cluster, (txn(1, 1), 1), "a");
    assert_eq!(cluster.ask(holder, commits), Some(LOST));
    let commits = commit_locked(&cluster, (txn(2, 1), 2), "a");
    assert!(matches!(cluster.ask(holder, commits), Some(Answer::Committed { .. })));
}

#[test]
fn late_and_repeated_requests_for_locks_do_nothing_new() {
    let mut cluster = Cluster::new();
    let now = cluster.now(1);
    let first = lock(txn(1, 1), 1, None, &["a", "b"], now);
    let answer = cluster.ask(1, first.clone());
    assert_eq!(held(answer.clone()).grants, [Grant::Held; 2]);
    assert_eq!(cluster.ask(1, first.clone()), answer);
    // Another one waits, asks again, and is answered on both questions at once.
    let waits = lock(txn(1, 2), 1, None, &["c", "b"], now);
    assert_eq!(cluster.ask(1, waits.clone()), None);
    let asked = cluster.asked;
    assert_eq!(cluster.ask(1, waits), None);
    let release = |step, ended| {
        let targets = vec![Target::Key(key("b"))];
        Ask::Release { txn: txn(1, 1), step, targets, ended }
    };
    // Older than what was asked last.
    assert_eq!(cluster.ask(1, release(1, false)), Some(Answer::Fine));
    assert_eq!(cluster.answer(asked), None);
    assert_eq!(cluster.ask(1, release(2, false)), Some(Answer::Fine));
    let (one, two) = (cluster.answer(asked), cluster.answer(asked + 1));
    assert!(one == two && held(one).grants == [Grant::Held; 2]);
    assert_eq!(cluster.ask(1, first), Some(Answer::Again), "that was before the release");
    // All goes at the end, whatever the request names.
    assert_eq!(cluster.ask(1, release(u64::MAX, true)), Some(Answer::Fine));
    held(cluster.ask(1, lock(txn(1, 3), 1, None, &["a"], now)));
}

#[test]
fn who_gives_up_is_told_what_it_has() {
    let mut cluster = Cluster::new();
    let now = cluster.now(1);
    held(cluster.ask(1, lock(txn(1, 1), 1, None, &["b"], now)));
    assert_eq!(cluster.ask(1, lock(txn(1, 2), 1, None, &["a", "b", "c"], now)), None);
    let (asked, give_up) = (cluster.asked, Ask::GiveUp { txn: txn(1, 2), step: 1 });
    let Some(Answer::Locked(locked)) = cluster.ask(1, give_up) else { panic!("it waited") };
    assert_eq!(locked.grants, [Grant::Held]);
    assert_eq!(locked.stop, Some(LockStop::GivenUp));
    assert_eq!(cluster.answer(asked), Some(Answer::Locked(locked)));
    // Given up before it comes: then it finds that.
    let give_up = Ask::GiveUp { txn: txn(1, 3), step: 1 };
    let Some(Answer::Locked(none)) = cluster.ask(1, give_up) else { panic!("it is told") };
    assert_eq!((none.grants.len(), none.stop.clone()), (0, Some(LockStop::GivenUp)));
    let late = cluster.ask(1, lock(txn(1, 3), 1, None, &["y"], now));
    assert_eq!(late, Some(Answer::Locked(none)));
}

#[test]
fn what_a_process_that_is_gone_has_sent_comes_to_nothing_and_its_locks_are_free() {
    let mut cluster = Cluster::new();
    let now = cluster.now(1);
    let (gone, other) = (txn(7, 1), txn(8, 1));
    held(cluster.ask(1, lock(gone, 1, None, &["a"], now)));
    let named = |cluster: &Cluster, txn: LockTxn| TxnId { began: cluster.now(1), number: txn.0 };
    let early = commit(named(&cluster, txn(7, 2)), vec![put("b", "early")]);
    assert!(matches!(cluster.ask(1, early), Some(Answer::Committed { .. })));
    assert_eq!(cluster.ask(1, lock(other, 1, None, &["a"], now)), None);
    let asked = cluster.asked;
    for node in 1..=3 {
        assert_eq!(cluster.ask(node, Ask::Fence { coordinator: 7 }), Some(Answer::Fine));
    }
    held(cluster.answer(asked));
    // What it had sent before, and what it had sent to whoever leads next.
    let late = commit(named(&cluster, txn(7, 3)), vec![put("b", "late")]);
    assert_eq!(cluster.ask(1, late.clone()), Some(Answer::OutcomeUnknown));
    let locks = lock(txn(7, 4), 1, None, &["c"], now);
    assert_eq!(cluster.ask(1, locks), Some(Answer::OutcomeUnknown));
    cluster.cut_off = vec![1];
    cluster.pass(120, &[2, 3]);
    let holder = if cluster.describe(2).contains("leads") { 2 } else { 3 };
    assert_eq!(cluster.ask(holder, late), Some(Answer::OutcomeUnknown));
    let others = commit(named(&cluster, txn(8, 2)), vec![put("c", "other")]);
    assert!(matches!(cluster.ask(holder, others), Some(Answer::Committed { .. })));
    assert_eq!(shown(cluster.ask(holder, read("a", "z"))), "b=early c=other");
}

#[test]
fn locks_that_no_coordinator_speaks_for_go() {
    let mut cluster = Cluster::new();
    let now = cluster.now(1);
    held(cluster.ask(1, lock(txn(1, 1), 1, None, &["a"], now)));
    held(cluster.ask(1, lock(txn(1, 2), 1, None, &["b"], now)));
    held(cluster.ask(1, lock(txn(2, 1), 1, None, &["c"], now)));
    // The first has ended, and that was not heard. What began later is not spoken of.
    let says = |newest, running: &[LockTxn]| Ask::Running { newest, running: running.to_vec() };
    let (one, two) = (txn(1, 1), txn(1, 2));
    assert_eq!(cluster.ask(1, says(one, &[])), Some(Answer::Fine));
    held(cluster.ask(1, lock(txn(2, 2), 1, None, &["a"], now)));
    assert_eq!(cluster.ask(1, commit_locked(&cluster, (one, 1), "a")), Some(LOST));
    for _ in 0..12 {
        cluster.pass(10, &[1, 2, 3]);
        assert_eq!(cluster.ask(1, says(two, &[two])), Some(Answer::Fine));
    }
    // The second coordinator was silent for 12 seconds.
    let later = cluster.now(1);
    held(cluster.ask(1, lock(txn(1, 3), 1, None, &["c"], later)));
    assert_eq!(cluster.ask(1, commit_locked(&cluster, (txn(2, 1), 1), "c")), Some(LOST));
    let commits = commit_locked(&cluster, (two, 1), "b");
    assert!(matches!(cluster.ask(1, commits), Some(Answer::Committed { .. })));
}

#[test]
fn of_transactions_that_end_together_none_gets_what_another_one_had() {
    let mut cluster = Cluster::new();
    let now = cluster.now(1);
    held(cluster.ask(1, lock(txn(1, 1), 1, None, &["a"], now)));
    // They wait for each other, one of them with a lock of the same request.
    assert_eq!(cluster.ask(1, lock(txn(1, 2), 1, None, &["b", "a"], now)), None);
    assert_eq!(cluster.ask(1, lock(txn(1, 3), 1, None, &["a"], now)), None);
    let says = Ask::Running { newest: txn(1, 3), running: Vec::new() };
    assert_eq!(cluster.ask(1, says), Some(Answer::Fine));
    held(cluster.ask(1, lock(txn(2, 1), 1, None, &["a", "b"], now)));
}

#[test]
fn a_split_takes_the_locks_on_its_keys_along() {
    let mut cluster = Cluster::new();
    let now = cluster.now(1);
    let span = Target::Span(KeySpan::new(key("f"), key("q")));
    let item = LockItem { target: span, mode: LockMode::Exclusive, check: true };
    let (items, wait, timeout) = (vec![item], Wait::Block, None);
    let request = LockMany { txn: txn(1, 1), items, read_ts: now, wait, timeout };
    held(cluster.ask(1, Ask::Lock(LockAsk { request, step: 1, session: None })));
    // Who waits is told to ask again: it may be for the other range.
    assert_eq!(cluster.ask(1, lock(txn(1, 2), 1, None, &["p"], now)), None);
    let waits = cluster.asked;
    let split = Ask::Split(Split { at: key("k"), right: RangeId(2) });
    assert_eq!(cluster.ask(1, split), Some(Answer::Again));
    assert_eq!(cluster.answer(waits), Some(Answer::Again));
    for (range, name, n) in [(1, "g", 3), (2, "p", 4)] {
        assert_eq!(cluster.ask_range(range, 1, lock(txn(1, n), 1, None, &[name], now)), None);
    }
    let (left, right) = (cluster.asked - 1, cluster.asked);
    cluster.pass(3, &[1, 2, 3]);
    let commits = commit_locked(&cluster, (txn(1, 1), 1), "m");
    assert!(matches!(cluster.ask_range(2, 1, commits), Some(Answer::Committed { .. })));
    // They go range by range.
    let end = Ask::Release { txn: txn(1, 1), step: u64::MAX, targets: Vec::new(), ended: true };
    assert_eq!(cluster.ask_range(1, 1, end.clone()), Some(Answer::Fine));
    held(cluster.answer(left));
    assert_eq!(cluster.answer(right), None);
    assert_eq!(cluster.ask_range(2, 1, end), Some(Answer::Fine));
    held(cluster.answer(right));
}

#[test]
fn what_was_written_about_when_a_reader_began_is_in_doubt() {
    let mut cluster = Cluster::new();
    let at = cluster.now(1);
    cluster.pass(1, &[1, 2, 3]);
    let written = commit(TxnId { began: cluster.now(1), number: 1 }, vec![put("a", "1")]);
    let Some(Answer::Committed { at: ts, .. }) = cluster.ask(1, written) else {
        panic!("it commits")
    };
    let limit = CommitTs(at.0 + (250_000 << 12));
    let get = |name: &str, when| Ask::Get { keys: vec![key(name)], when };
    let in_doubt = || When { limit, ..When::exactly(at) };
    assert_eq!(cluster.ask(1, get("a", in_doubt())), Some(Answer::Uncertain(ts)));
    let got = |value: Option<&'static str>| value.map(|v| Bytes::from_static(v.as_bytes()));
    let mut values = |name: &str, when: When| match cluster.ask(1, get(name, when)) {
        Some(Answer::Got(GotMany { values, .. })) => values[0].clone(),
        other => panic!("{other:?}"),
    };
    // Nothing was written there; it is read at the time of that commit; this node's clock was
    // seen before the commit; it is so much older that no clock can be so far ahead.
    assert_eq!(values("b", in_doubt()), None);
    assert_eq!(values("a", When { at: ts, ..in_doubt() }), got(Some("1")));
    assert_eq!(values("a", When { observed: Some(at), ..in_doubt() }), None);
    let older = CommitTs(ts.0 - (300_000 << 12));
    assert_eq!(values("a", When { limit: older, ..in_doubt() }), None);
    assert_eq!(values("a", When::exactly(at)), None);
}

/// The network may keep a copy of a request for long. What its transaction would get nobody would
/// ever give back: a coordinator that has said that nobody is left there says no more.
#[test]
fn a_copy_of_a_request_that_comes_when_its_transaction_is_over_gets_no_lock() {
    let mut cluster = Cluster::new();
    let now = cluster.now(1);
    let late = lock(txn(1, 1), 1, None, &["a"], now);
    held(cluster.ask(1, late.clone()));
    let end = Ask::Release { txn: txn(1, 1), step: u64::MAX, targets: Vec::new(), ended: true };
    assert_eq!(cluster.ask(1, end), Some(Answer::Fine));
    // Others of the same coordinator are running, older ones and a newer one.
    let running = |newest, running: Vec<LockTxn>| Ask::Running { newest, running };
    let said = running(txn(1, 3), vec![txn(1, 3)]);
    assert_eq!(cluster.ask(1, said), Some(Answer::Fine));
    assert_eq!(cluster.ask(1, late.clone()), Some(LOST));
    let give_up = Ask::GiveUp { txn: txn(1, 1), step: 9 };
    assert_eq!(cluster.ask(1, give_up), Some(LOST));
    // What was said before comes later, and tells nothing new.
    let earlier = running(txn(1, 2), vec![txn(1, 1), txn(1, 2)]);
    assert_eq!(cluster.ask(1, earlier), Some(Answer::Fine));
    let earlier = running(txn(1, 3), vec![txn(1, 1), txn(1, 3)]);
    assert_eq!(cluster.ask(1, earlier), Some(Answer::Fine));
    assert_eq!(cluster.ask(1, late.clone()), Some(LOST));
    held(cluster.ask(1, lock(txn(1, 3), 1, None, &["a"], now)));
    held(cluster.ask(1, lock(txn(1, 4), 1, None, &["b"], now)));
    held(cluster.ask(1, lock(txn(2, 1), 1, None, &["c"], now)));
    // A range that is split off remembers it, too.
    let split = Ask::Split(Split { at: key("h"), right: RangeId(2) });
    assert_eq!(cluster.ask(1, split), Some(Answer::Again));
    cluster.pass(3, &[1, 2, 3]);
    assert_eq!(cluster.ask_range(2, 1, lock(txn(1, 1), 1, None, &["m"], now)), Some(LOST));
}

#[test]
fn what_was_promised_to_a_validator_is_kept_also_behind_a_split() {
    let mut cluster = Cluster::new();
    let now = cluster.now(1);
    let through = CommitTs(now.0 + (100_000 << 12));
    let reads = Reads { points: Vec::new(), spans: vec![KeySpan::new(key("a"), key("z"))] };
    let validate = Ask::Validate { locks: None, floor: now, through, reads };
    assert_eq!(cluster.ask(1, validate.clone()), Some(Answer::Fine));
    let split = Ask::Split(Split { at: key("k"), right: RangeId(2) });
    assert_eq!(cluster.ask(1, split), Some(Answer::Again));
    for (range, name, number) in [(1, "b", 1), (2, "m", 2)] {
        let writes = commit(TxnId { began: now, number }, vec![put(name, "1")]);
        let done = cluster.ask_range(range, 1, writes);
        let Some(Answer::Committed { at, .. }) = done else { panic!("{done:?}") };
        assert!(at > through, "{name} was written at {at}, nothing was to come up to {through}");
    }
    assert!(matches!(cluster.ask(1, validate), Some(Answer::WrongRange { .. })));
}

/// A commit and a split are applied together. Who waited for the commit waits for a lock behind it
/// when the split takes that lock away, and is told to ask again.
#[test]
fn who_begins_to_wait_for_a_lock_while_a_split_takes_it_away_is_told_to_ask_again() {
    let mut cluster = Cluster::new();
    let now = cluster.now(1);
    held(cluster.ask(1, lock(txn(1, 1), 1, None, &["m"], now)));
    let ask = |cluster: &mut Cluster, number, ask| {
        let request = braid_range::Request { range: RangeId(1), ask };
        cluster.process(1).request(number, request).expect("nothing fails");
    };
    let writes = commit_locked(&cluster, (txn(1, 1), 1), "m");
    ask(&mut cluster, 901, writes);
    ask(&mut cluster, 902, Ask::Split(Split { at: key("h"), right: RangeId(2) }));
    ask(&mut cluster, 903, lock(txn(1, 2), 1, None, &["m"], now));
    assert_eq!(cluster.answer(903), None);
    cluster.settle();
    assert!(matches!(cluster.answer(901), Some(Answer::Committed { .. })));
    assert_eq!(cluster.answer(902), Some(Answer::Again));
    let moved = cluster.answer(903);
    assert!(matches!(moved, Some(Answer::Again | Answer::WrongRange { .. })), "{moved:?}");
}
