//! Transactions over two ranges, driven by hand: what is prepared survives, keeps others away, and
//! comes to its end once.

use braid_env::fs::CrashPolicy;
use braid_kv::{
    Conflict, Grant, KeySpan, LockItem, LockMany, LockMode, Reads, TXN_COUNTER_BITS, Target,
    TxnId as LockTxn, Wait,
};
use braid_lsm::CommitTs;
use braid_range::{
    Anchor, Answer, Ask, CommitAsk, Decision, HeldLocks, LockAsk, MetClocks, PrepareAsk, RangeId,
    Split, TxnId, When, Write,
};

use super::{Cluster, commit, key, put, read, shown};

/// Range 1 has the keys below k, range 2 the others; n1 serves both.
pub(super) fn two_ranges() -> Cluster {
    let mut cluster = Cluster::new();
    let split = Ask::Split(Split { at: key("k"), right: RangeId(2) });
    assert_eq!(cluster.ask(1, split), Some(Answer::Again));
    cluster.pass(3, &[1, 2, 3]);
    cluster
}

pub(super) fn name(cluster: &Cluster, number: u64) -> TxnId {
    TxnId { began: cluster.now(1), number }
}

fn owner(number: u64) -> LockTxn {
    LockTxn(1 << TXN_COUNTER_BITS | number)
}

pub(super) fn prepare(txn: TxnId, spans: Vec<KeySpan>, writes: Vec<Write>) -> Ask {
    Ask::Prepare(PrepareAsk {
        txn,
        owner: owner(txn.number),
        locks: None,
        anchor: key("a"),
        read_at: txn.began,
        reads: Reads { points: Vec::new(), spans },
        writes,
    })
}

fn commit_at_anchor(txn: TxnId, not_before: CommitTs, writes: Vec<Write>) -> Ask {
    let participants = vec![KeySpan::new(key("m"), key("n"))];
    Ask::Commit(CommitAsk {
        txn,
        read_at: txn.began,
        reads: Reads::default(),
        locks: None,
        not_after: None,
        not_before,
        writes,
        anchor: Some(Anchor { key: key("a"), participants }),
    })
}

pub(super) fn bound(answer: Option<Answer>) -> CommitTs {
    match answer {
        Some(Answer::Prepared { bound }) => bound,
        other => panic!("{other:?}"),
    }
}

fn decision(answer: Option<Answer>) -> Decision {
    match answer {
        Some(Answer::Committed { at, by }) => Decision::Committed { at, by },
        Some(Answer::Aborted) => Decision::Aborted,
        other => panic!("{other:?}"),
    }
}

pub(super) fn resolve(txn: TxnId, decision: Decision) -> Ask {
    Ask::Resolve { txn, decision, span: None }
}

/// The node that serves a range, after some time.
fn server(cluster: &mut Cluster, range: u64) -> u64 {
    for _ in 0..100 {
        // Somebody wants it.
        for id in 1..=3 {
            cluster.ask_range(range, id, Ask::ShowLocks);
        }
        cluster.pass(1, &[1, 2, 3]);
        if let Some(id) = (1..=3).find(|id| cluster.process(*id).serves(RangeId(range))) {
            return id;
        }
    }
    panic!("nobody serves range {range}")
}

fn read_at(at: CommitTs) -> Ask {
    let spans = vec![KeySpan::new(key("k"), key("z"))];
    Ask::Read { spans, at: Some(at), bytes: 1 << 20 }
}

#[test]
fn what_is_prepared_happens_when_it_is_decided_and_not_before() {
    let mut cluster = two_ranges();
    let txn = name(&cluster, 1);
    let writes = vec![put("m", "1"), Write::DeleteSpan(KeySpan::new(key("n"), key("p")))];
    let ask = prepare(txn, Vec::new(), writes);
    let bound = bound(cluster.ask_range(2, 1, ask.clone()));
    assert_eq!(cluster.ask_range(2, 1, ask), Some(Answer::Prepared { bound }));
    // Below its bound, and beside it, everything goes on.
    assert_eq!(shown(cluster.ask_range(2, 1, read_at(CommitTs(bound.0 - 1)))), "");
    assert_eq!(shown(cluster.ask_range(2, 1, read("q", "r"))), "");
    let beside = commit(name(&cluster, 2), vec![put("q", "2")]);
    assert!(matches!(cluster.ask_range(2, 1, beside), Some(Answer::Committed { .. })));
    assert_eq!(cluster.ask_range(2, 1, read("m", "n")), None);
    let onto = commit(name(&cluster, 3), vec![put("o", "3")]);
    assert_eq!(cluster.ask_range(2, 1, onto), None);
    let done = cluster.ask(1, commit_at_anchor(txn, bound, vec![put("a", "1")]));
    let happened = decision(done);
    let Decision::Committed { at, .. } = happened else { panic!("{happened:?}") };
    assert!(at >= bound);
    assert_eq!(cluster.ask_range(2, 1, resolve(txn, happened)), Some(Answer::Fine));
    // Who waited goes on; what was written meanwhile is above it.
    let waited: Vec<String> =
        std::mem::take(&mut cluster.answers).into_iter().map(|(_, a)| shown(Some(a))).collect();
    assert_eq!(waited[0], "m=1");
    assert!(waited[1].contains("Committed"), "{waited:?}");
    assert_eq!(shown(cluster.ask_range(2, 1, read_at(at))), "m=1 q=2");
    assert_eq!(shown(cluster.ask_range(2, 1, read_at(CommitTs(at.0 - 1)))), "q=2");
    // A copy of the request that comes late finds it at its end.
    let late = prepare(txn, Vec::new(), vec![put("m", "1")]);
    assert_eq!(decision(cluster.ask_range(2, 1, late)), happened);
    assert_eq!(cluster.ask_range(2, 1, resolve(txn, happened)), Some(Answer::Fine));
    assert_eq!(cluster.process(1).unfinished(), (0, 1));
    let settle = Ask::Settle { txn, anchor: key("a") };
    assert_eq!(cluster.ask(1, settle), Some(Answer::Fine));
    assert_eq!(cluster.process(1).unfinished(), (0, 0));
}

#[test]
fn what_is_prepared_survives_crashes_new_leases_and_splits() {
    for policy in [CrashPolicy::LoseAll, CrashPolicy::KeepAll] {
        let mut cluster = two_ranges();
        let txn = name(&cluster, 1);
        let writes = vec![
            put("m", "1"),
            Write::DeleteSpan(KeySpan::new(key("n"), key("r"))),
            put("o", "1"),
            put("q", "1"),
        ];
        let bound = bound(cluster.ask_range(2, 1, prepare(txn, Vec::new(), writes)));
        let split = Ask::Split(Split { at: key("p"), right: RangeId(3) });
        assert_eq!(cluster.ask_range(2, 1, split), Some(Answer::Again));
        cluster.pass(3, &[1, 2, 3]);
        let happened = decision(cluster.ask(1, commit_at_anchor(txn, bound, vec![put("a", "1")])));
        (1..=3).for_each(|id| cluster.crash(id, policy));
        (1..=3).for_each(|id| cluster.restart(id));
        cluster.pass(150, &[1, 2, 3]);
        let mut found = Vec::new();
        for (range, from, to) in [(1, "a", "k"), (2, "k", "p"), (3, "p", "z")] {
            let id = server(&mut cluster, range);
            if range == 1 {
                let decide = Ask::Decide { txn, anchor: key("a") };
                assert_eq!(decision(cluster.ask(id, decide)), happened);
            } else {
                // It has waited long enough for somebody to look after it.
                let blocked = Answer::Blocked { txn, anchor: key("a") };
                assert_eq!(cluster.ask_range(range, id, read(from, to)), Some(blocked));
                let told = cluster.ask_range(range, id, resolve(txn, happened));
                assert_eq!(told, Some(Answer::Fine));
            }
            found.push(shown(cluster.ask_range(range, id, read(from, to))));
        }
        assert_eq!(found, ["a=1", "m=1 o=1", "q=1"]);
        // Once more all is lost but the log: it is resolved once.
        (1..=3).for_each(|id| cluster.crash(id, policy));
        (1..=3).for_each(|id| cluster.restart(id));
        cluster.pass(150, &[1, 2, 3]);
        for id in 1..=3 {
            assert_eq!(cluster.process(id).unfinished(), (0, 1));
        }
    }
}

#[test]
fn a_transaction_that_nobody_knows_never_happens() {
    let mut cluster = two_ranges();
    let txn = name(&cluster, 1);
    let bound = bound(cluster.ask_range(2, 1, prepare(txn, Vec::new(), vec![put("m", "1")])));
    cluster.pass(40, &[1, 2, 3]);
    let unfinished = cluster.ask_range(2, 1, Ask::Unfinished);
    let Some(Answer::Unfinished(unfinished)) = unfinished else { panic!("{unfinished:?}") };
    assert_eq!(unfinished.prepared, [(txn, key("a"))]);
    let decide = Ask::Decide { txn, anchor: key("a") };
    assert_eq!(cluster.ask(1, decide.clone()), Some(Answer::Aborted));
    assert_eq!(cluster.ask(1, decide), Some(Answer::Aborted));
    // Its coordinator was only slow.
    let late = commit_at_anchor(txn, bound, vec![put("a", "1")]);
    assert_eq!(cluster.ask(1, late), Some(Answer::Aborted));
    assert_eq!(cluster.ask_range(2, 1, resolve(txn, Decision::Aborted)), Some(Answer::Fine));
    assert_eq!(shown(cluster.ask_range(2, 1, read("k", "z"))), "");
    assert_eq!(shown(cluster.ask(1, read("a", "b"))), "");
    // Beyond the window nobody remembers, and the answer is the same.
    cluster.pass(250, &[1, 2, 3]);
    let later = commit(name(&cluster, 9), vec![put("b", "1")]);
    assert!(matches!(cluster.ask(1, later), Some(Answer::Committed { .. })));
    let decide = Ask::Decide { txn, anchor: key("a") };
    assert_eq!(cluster.ask(1, decide), Some(Answer::Aborted));
    let late = prepare(txn, Vec::new(), vec![put("m", "1")]);
    let refused = cluster.ask_range(2, 1, late);
    assert!(matches!(refused, Some(Answer::Aborted | Answer::OutcomeUnknown)), "{refused:?}");
}

#[test]
fn what_was_read_is_guarded_and_younger_ones_yield() {
    let mut cluster = two_ranges();
    let (old, young) = (name(&cluster, 1), name(&cluster, 2));
    let reads = || vec![KeySpan::new(key("m"), key("n"))];
    bound(cluster.ask_range(2, 1, prepare(old, reads(), vec![put("o", "1")])));
    // Reading what is read is free, writing it is not; who has nothing elsewhere just waits.
    assert_eq!(shown(cluster.ask_range(2, 1, read("m", "n"))), "");
    assert_eq!(
        cluster.ask_range(2, 1, prepare(young, Vec::new(), vec![put("m", "2")])),
        Some(Answer::Yield)
    );
    let reads_it = prepare(young, vec![KeySpan::point(&key("o"))], vec![put("q", "2")]);
    assert_eq!(cluster.ask_range(2, 1, reads_it), Some(Answer::Yield));
    assert_eq!(cluster.ask_range(2, 1, commit(young, vec![put("m", "2")])), None);
    let elder = TxnId { began: CommitTs(old.began.0 - 1), number: 3 };
    assert_eq!(cluster.ask_range(2, 1, prepare(elder, Vec::new(), vec![put("m", "3")])), None);
    assert_eq!(cluster.ask_range(2, 1, resolve(old, Decision::Aborted)), Some(Answer::Fine));
    let answers: Vec<Answer> =
        std::mem::take(&mut cluster.answers).into_iter().map(|a| a.1).collect();
    assert!(matches!(answers[0], Answer::Committed { .. }), "{answers:?}");
    // What the elder one waited for was written meanwhile; it has not read it.
    assert!(matches!(answers[1], Answer::Prepared { .. }), "{answers:?}");
}

fn lock(number: u64, name: &str, at: CommitTs, wait: Wait) -> Ask {
    let item = LockItem { target: Target::Key(key(name)), mode: LockMode::Exclusive, check: false };
    let (txn, timeout) = (owner(number), None);
    let request = LockMany { txn, items: vec![item], read_ts: at, wait, timeout };
    Ask::Lock(LockAsk { request, step: 1, session: None })
}

#[test]
fn locks_of_what_is_prepared_survive_their_lease() {
    let mut cluster = two_ranges();
    let now = cluster.now(1);
    let locked = cluster.ask_range(2, 1, lock(1, "m", now, Wait::Block));
    let Some(Answer::Locked(locked)) = locked else { panic!("{locked:?}") };
    assert_eq!(locked.grants, [Grant::Held]);
    let span = KeySpan::point(&key("m"));
    let locks = Some(HeldLocks { owner: owner(1), session: locked.session, span });
    let txn = name(&cluster, 1);
    let Ask::Prepare(ask) = prepare(txn, Vec::new(), vec![put("n", "1")]) else { unreachable!() };
    bound(cluster.ask_range(2, 1, Ask::Prepare(PrepareAsk { locks: locks.clone(), ..ask })));
    // Its coordinator has given it back: it stays.
    let (step, targets) = (u64::MAX, Vec::new());
    let release = Ask::Release { txn: owner(1), step, targets, ended: true };
    assert_eq!(cluster.ask_range(2, 1, release), Some(Answer::Fine));
    cluster.cut_off = vec![1];
    cluster.pass(120, &[2, 3]);
    let holder = [2, 3].into_iter().find(|id| cluster.process(*id).serves(RangeId(2)));
    let holder = holder.expect("one of them serves it");
    let later = cluster.now(holder);
    let taken = cluster.ask_range(2, holder, lock(2, "m", later, Wait::NoWait));
    let Some(Answer::Locked(taken)) = taken else { panic!("{taken:?}") };
    assert_eq!(taken.grants, []);
    // Whoever comes with the old session is told that it is gone.
    let late = Ask::Commit(CommitAsk {
        txn: TxnId { began: later, number: 7 },
        read_at: later,
        reads: Reads::default(),
        locks,
        not_after: None,
        not_before: CommitTs::ZERO,
        writes: vec![put("m", "7")],
        anchor: None,
    });
    let lost = Answer::Conflict(Conflict::LocksLost);
    assert_eq!(cluster.ask_range(2, holder, late), Some(lost));
    // Who waits for it learns whom to look after.
    let waits = cluster.ask_range(2, holder, lock(3, "m", later, Wait::Block));
    assert_eq!(waits, None);
    cluster.pass(2, &[2, 3]);
    let blocked = Answer::Blocked { txn, anchor: key("a") };
    assert!(cluster.answers.iter().any(|(_, answer)| *answer == blocked), "{:?}", cluster.answers);
    let aborted = resolve(txn, Decision::Aborted);
    assert_eq!(cluster.ask_range(2, holder, aborted), Some(Answer::Fine));
    let asked_again = cluster.ask_range(2, holder, lock(3, "m", later, Wait::Block));
    let Some(Answer::Locked(locked)) = asked_again else { panic!("{asked_again:?}") };
    assert_eq!(locked.grants, [Grant::Held]);
}

/// Who takes "it has other keys" for the end of a commit hears it only from whoever has the lease:
/// behind the split in the log there may be the commit itself, proposed when the range was whole.
#[test]
fn only_the_leaseholder_says_that_the_keys_of_a_commit_were_given_away() {
    let mut cluster = two_ranges();
    let txn = name(&cluster, 1);
    let spans = vec![KeySpan::new(key("a"), key("z"))];
    let across = Ask::Commit(CommitAsk {
        txn,
        read_at: txn.began,
        reads: Reads { points: Vec::new(), spans },
        locks: None,
        not_after: None,
        not_before: CommitTs::ZERO,
        writes: vec![put("a", "1")],
        anchor: None,
    });
    let ingest = Ask::Ingest { txn, at: txn.began, rows: vec![(key("m"), key("1"))] };
    for ask in [across, ingest] {
        for follower in [2, 3] {
            let answer = cluster.ask_range(1, follower, ask.clone());
            assert!(matches!(answer, Some(Answer::NotHolder { .. })), "{answer:?}");
        }
        let answer = cluster.ask_range(1, 1, ask);
        assert!(matches!(answer, Some(Answer::WrongRange { .. })), "{answer:?}");
    }
}

#[test]
fn a_reader_that_began_before_a_commit_was_stamped_elsewhere_is_in_doubt() {
    let mut cluster = two_ranges();
    let began = cluster.now(1);
    cluster.pass(1, &[1, 2, 3]);
    let observed = cluster.now(1);
    let txn = name(&cluster, 1);
    let bound = bound(cluster.ask_range(2, 1, prepare(txn, Vec::new(), vec![put("m", "1")])));
    // Another node's clock has chosen the time, and it may have done so before the reader began.
    let elsewhere = Decision::Committed { at: CommitTs(bound.0 + 5), by: braid_range::NodeId(2) };
    let limit = CommitTs(began.0 + (250_000 << 12));
    let get = |observed| Ask::Get {
        keys: vec![key("m")],
        when: When { limit, observed: Some(observed), ..When::exactly(began) },
    };
    assert_eq!(cluster.ask_range(2, 1, get(observed)), None);
    assert_eq!(cluster.ask_range(2, 1, resolve(txn, elsewhere)), Some(Answer::Fine));
    let waited = std::mem::take(&mut cluster.answers);
    assert!(matches!(waited[0].1, Answer::Uncertain(_)), "{waited:?}");
    let answer = cluster.ask_range(2, 1, get(observed));
    assert!(matches!(answer, Some(Answer::Uncertain(_))), "{answer:?}");
    // Whoever has met that clock knows; unless it showed as much.
    let met = |clock| Ask::Get {
        keys: vec![key("m")],
        when: When {
            limit,
            observed: Some(observed),
            met: MetClocks([(braid_range::NodeId(2), clock)].into()),
            ..When::exactly(began)
        },
    };
    let answer = cluster.ask_range(2, 1, met(observed));
    assert!(matches!(answer, Some(Answer::Got(_))), "{answer:?}");
    let answer = cluster.ask_range(2, 1, met(CommitTs(bound.0 + 5)));
    assert!(matches!(answer, Some(Answer::Uncertain(_))), "{answer:?}");
    // What this node's own clock has chosen later was later.
    let own = name(&cluster, 2);
    let ask = prepare(own, Vec::new(), vec![put("q", "1")]);
    let CommitTs(bound) = super::several::bound(cluster.ask_range(2, 1, ask));
    let here = Decision::Committed { at: CommitTs(bound + 5), by: braid_range::NodeId(1) };
    assert_eq!(cluster.ask_range(2, 1, resolve(own, here)), Some(Answer::Fine));
}
