//! What is in doubt for a reader because of clocks, and what is not, whoever has the lease.

use braid_kv::{KeySpan, ReadAt, ScanMany, SpanScan};
use braid_lsm::CommitTs;
use braid_range::{Answer, Ask, MetClocks, NodeId, RangeId, Request, Split, TxnId, When};

use super::{Cluster, commit, key, put};

fn later(ts: CommitTs, millis: u64) -> CommitTs {
    CommitTs(ts.0 + ((millis * 1_000) << 12))
}

/// A reader that has begun on another node and has asked nobody so far.
fn reader(at: CommitTs) -> When {
    When { limit: later(at, 250), ..When::exactly(at) }
}

fn write(cluster: &mut Cluster, (range, node): (u64, u64), name: &str) -> CommitTs {
    let number = cluster.asked + 1_000;
    let txn = TxnId { began: cluster.now(node), number };
    match cluster.ask_range(range, node, commit(txn, vec![put(name, "1")])) {
        Some(Answer::Committed { at, .. }) => at,
        other => panic!("{other:?}"),
    }
}

/// Whether it is read without a doubt; there is nothing that it sees.
fn is_certain(cluster: &mut Cluster, (range, node): (u64, u64), name: &str, when: When) -> bool {
    match cluster.ask_range(range, node, Ask::Get { keys: vec![key(name)], when }) {
        Some(Answer::Got(got)) => {
            assert_eq!(got.values, [None], "it was written later");
            true
        }
        Some(Answer::Uncertain(_)) => false,
        other => panic!("{other:?}"),
    }
}

/// The first node gives all away; who serves that range then.
fn drain(cluster: &mut Cluster, range: u64) -> u64 {
    cluster.process(1).drain(true);
    cluster.pass(20, &[1, 2, 3]);
    let serves = |id: &u64| cluster.process(*id).serves(RangeId(range));
    [2, 3].into_iter().find(serves).expect("another one serves it")
}

/// Seconds after a transaction has begun its range is split, and the lease moves. What is written
/// since then, all the time, was not there when it began.
#[test]
fn what_was_written_long_after_a_reader_began_is_no_doubt_wherever_ranges_and_leases_go() {
    let mut cluster = Cluster::new();
    let began = cluster.now(1);
    cluster.pass(10, &[1, 2, 3]);
    let split = Ask::Split(Split { at: key("h"), right: RangeId(2) });
    assert_eq!(cluster.ask(1, split), Some(Answer::Again));
    cluster.pass(3, &[1, 2, 3]);
    write(&mut cluster, (1, 1), "b");
    write(&mut cluster, (2, 1), "m");
    assert!(is_certain(&mut cluster, (1, 1), "b", reader(began)));
    assert!(is_certain(&mut cluster, (2, 1), "m", reader(began)));
    for _ in 0..100 {
        write(&mut cluster, (2, 1), "m");
    }
    assert!(is_certain(&mut cluster, (2, 1), "m", reader(began)));
    let holder = drain(&mut cluster, 2);
    assert!(is_certain(&mut cluster, (2, holder), "m", reader(began)));
    write(&mut cluster, (2, holder), "m");
    assert!(is_certain(&mut cluster, (2, holder), "m", reader(began)));
    // The same where a process knows only what the disk has kept.
    cluster.crash(holder, braid_env::fs::CrashPolicy::KeepAll);
    cluster.restart(holder);
    let serving = |_| {
        cluster.pass(1, &[1, 2, 3]);
        [1, 2, 3].into_iter().find(|id| cluster.process(*id).serves(RangeId(2)))
    };
    let holder = (0..120).find_map(serving).expect("somebody serves it");
    assert!(is_certain(&mut cluster, (2, holder), "m", reader(began)));
}

#[test]
fn what_a_reader_was_answered_by_one_holder_bounds_its_doubts_at_the_next() {
    let mut cluster = Cluster::new();
    let began = cluster.now(1);
    cluster.pass(1, &[1, 2, 3]);
    let served = cluster.now(1);
    let written = write(&mut cluster, (1, 1), "b");
    assert!(written > served && written < reader(began).limit);
    let asks = |seen| When { observed: Some(seen), ..reader(began) };
    assert!(is_certain(&mut cluster, (1, 1), "b", asks(served)));
    let holder = drain(&mut cluster, 1);
    // The clock of the new holder says nothing of what the old one has written.
    let now = cluster.now(holder);
    assert!(!is_certain(&mut cluster, (1, holder), "b", reader(began)));
    assert!(!is_certain(&mut cluster, (1, holder), "b", asks(now)));
    assert!(!is_certain(&mut cluster, (1, holder), "b", asks(served)));
    // What the range has answered to it does; but not if that was later than the write.
    let answered = |at| When { served: Some(at), ..asks(now) };
    assert!(is_certain(&mut cluster, (1, holder), "b", answered(served)));
    assert!(!is_certain(&mut cluster, (1, holder), "b", answered(written)));
    // Where the clock was seen before, that is enough, whenever the range has answered.
    let mut cluster = Cluster::new();
    let began = cluster.now(1);
    cluster.pass(1, &[1, 2, 3]);
    let observed = Some(cluster.now(1));
    let served = Some(write(&mut cluster, (1, 1), "b"));
    let seen = When { observed, served, ..reader(began) };
    assert!(is_certain(&mut cluster, (1, 1), "b", seen));
}

/// A reader has asked all nodes for their clocks before it read anything. Then leases move.
#[test]
fn whoever_has_met_the_clock_of_an_earlier_holder_knows_what_came_later() {
    let mut cluster = Cluster::new();
    let began = cluster.now(1);
    cluster.pass(1, &[1, 2, 3]);
    let clock = cluster.now(1);
    let written = write(&mut cluster, (1, 1), "b");
    let holder = drain(&mut cluster, 1);
    let met = |node: u64, of_node| {
        let met = MetClocks([(NodeId(node), of_node)].into());
        When { observed: Some(clock), met, ..reader(began) }
    };
    assert!(is_certain(&mut cluster, (1, holder), "b", met(1, clock)));
    assert!(!is_certain(&mut cluster, (1, holder), "b", met(1, written)));
    assert!(!is_certain(&mut cluster, (1, holder), "b", met(holder, clock)));
}

/// What its clock shows is not above what an earlier process of it has stamped.
#[test]
fn a_node_that_has_just_begun_does_not_say_what_its_clock_shows() {
    let mut cluster = Cluster::new();
    let of_node = RangeId(0).0;
    cluster.pass(10, &[1, 2, 3]);
    assert_eq!(cluster.ask_range(of_node, 2, Ask::Clock), Some(Answer::Fine));
    cluster.crash(2, braid_env::fs::CrashPolicy::KeepAll);
    cluster.restart(2);
    let answer = cluster.ask_range(of_node, 2, Ask::Clock);
    assert!(matches!(answer, Some(Answer::Refused(_))), "{answer:?}");
    cluster.pass(10, &[1, 2, 3]);
    assert_eq!(cluster.ask_range(of_node, 2, Ask::Clock), Some(Answer::Fine));
}

/// A reader has seen the clock of a node, and then reads a range there into which that node has
/// written since: it is certain. So it is when the lease has moved and it reads again.
#[test]
fn what_a_reader_was_certain_of_stays_certain_when_the_lease_moves() {
    let mut cluster = Cluster::new();
    let began = cluster.now(1);
    cluster.pass(1, &[1, 2, 3]);
    let observed = Some(cluster.now(1));
    let written = write(&mut cluster, (1, 1), "b");
    let first = When { observed, ..reader(began) };
    assert!(is_certain(&mut cluster, (1, 1), "b", first));
    let times = cluster.clocks[&cluster.asked];
    assert!(times.clock > written && Some(times.certain) == observed, "{times:?}");
    let holder = drain(&mut cluster, 1);
    let again = |served| When { served: Some(served), ..reader(began) };
    assert!(!is_certain(&mut cluster, (1, holder), "b", again(times.clock)));
    assert!(is_certain(&mut cluster, (1, holder), "b", again(times.certain)));
}

/// A node may take many requests before it sends an answer. What others write in between was not
/// there when the first one was answered, and is in doubt for nobody who asks again.
#[test]
fn an_answer_says_what_the_clock_showed_when_it_was_made_and_not_when_it_was_sent() {
    let mut cluster = Cluster::new();
    let began = cluster.now(1);
    cluster.pass(1, &[1, 2, 3]);
    let get = || Ask::Get { keys: vec![key("b")], when: reader(began) };
    let txn = TxnId { began: cluster.now(1), number: 1 };
    // The second read comes while the write is on its way: nobody has been told of that either.
    for (number, ask) in [(901, get()), (902, commit(txn, vec![put("b", "1")])), (903, get())] {
        let request = Request { range: RangeId(1), ask };
        cluster.process(1).request(number, request).expect("nothing fails");
    }
    cluster.settle();
    let Some(Answer::Committed { at, .. }) = cluster.answer(902) else { panic!("it commits") };
    for number in [901, 903] {
        assert!(matches!(cluster.answer(number), Some(Answer::Got(_))));
        let clock = Some(cluster.clocks[&number].clock);
        assert!(clock < Some(at), "the clock showed {clock:?} for what was read before {at}");
        let observed = When { observed: clock, ..reader(began) };
        let served = When { served: clock, ..reader(began) };
        for seen in [observed, served] {
            assert!(is_certain(&mut cluster, (1, 1), "b", seen));
        }
    }
}

#[test]
fn a_scan_is_in_doubt_only_about_what_it_has_come_to() {
    let mut cluster = Cluster::new();
    for name in ["b", "d", "f"] {
        write(&mut cluster, (1, 1), name);
    }
    cluster.pass(3, &[1, 2, 3]);
    let began = cluster.now(1);
    cluster.pass(1, &[1, 2, 3]);
    write(&mut cluster, (1, 1), "d");
    let scan = |cluster: &mut Cluster, reverse, rows| {
        let span = KeySpan::new(key("a"), key("z"));
        let scans = vec![SpanScan { span, rows: usize::MAX, more: true, cursor: None }];
        let request = ScanMany {
            scans,
            at: ReadAt::Time(began),
            reverse,
            classes: u32::MAX,
            jump: None,
            rows,
            bytes: 1 << 20,
            notes: false,
            blocks: false,
        };
        let when = reader(began);
        cluster.ask(1, Ask::Scan { request, when })
    };
    for reverse in [false, true] {
        let first = scan(&mut cluster, reverse, 1);
        assert!(matches!(first, Some(Answer::Scanned(_))), "{first:?}");
        let all = scan(&mut cluster, reverse, 3);
        assert!(matches!(all, Some(Answer::Uncertain(_))), "{all:?}");
    }
}
