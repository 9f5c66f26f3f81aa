//! Reads of the past at replicas without the lease: what they know to be whole, they answer alone.

use braid_range::{Decision, When};

use super::several::{bound, name, prepare, resolve, two_ranges};
use super::*;

/// Long enough for a promise to be made and heard.
const A_WHILE: u64 = 25;

fn get(name: &str, at: CommitTs) -> Ask {
    Ask::Get { keys: vec![key(name)], when: When::exactly(at) }
}

/// What was read, or how it was refused.
fn value(answer: Option<Answer>) -> String {
    match answer {
        Some(Answer::Got(got)) => match &got.values[0] {
            Some(value) => String::from_utf8_lossy(value).into_owned(),
            None => "nothing".into(),
        },
        Some(Answer::NotHolder { .. }) => "not here".into(),
        other => format!("{other:?}"),
    }
}

fn write(cluster: &mut Cluster, id: u64, number: u64, value: &'static str) -> CommitTs {
    let txn = TxnId { began: cluster.now(id), number };
    match cluster.ask(id, commit(txn, vec![put("a", value)])) {
        Some(Answer::Committed { at, .. }) => at,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_replica_without_the_lease_answers_for_closed_times_and_for_no_others() {
    let mut cluster = Cluster::new();
    let first = write(&mut cluster, 1, 1, "1");
    let second = write(&mut cluster, 1, 2, "2");
    cluster.pass(A_WHILE, &[1, 2, 3]);
    let times = [CommitTs(first.0 - 1), first, CommitTs(second.0 - 1), second];
    for id in [2, 3] {
        let seen = times.map(|at| value(cluster.ask(id, get("a", at))));
        assert_eq!(seen, ["nothing", "1", "1", "2"], "n{id}");
    }
    // A time that was not yet when it was closed last.
    let now = cluster.now(2);
    assert_eq!(value(cluster.ask(2, get("a", now))), "not here");
    // Who may be in doubt about what is newer asks where it is known.
    let limit = CommitTs(second.0 + 1);
    let when = When { limit, ..When::exactly(second) };
    let doubtful = Ask::Get { keys: vec![key("a")], when };
    assert_eq!(value(cluster.ask(2, doubtful)), "not here");
    // It answers when nobody else is there.
    cluster.crash(1, CrashPolicy::LoseAll);
    cluster.cut_off = vec![3];
    cluster.pass(200, &[2]);
    assert_eq!(value(cluster.ask(2, get("a", first))), "1");
    assert_eq!(value(cluster.ask(2, get("a", second))), "2");
    // Who begins anew has been promised nothing.
    cluster.crash(2, CrashPolicy::LoseAll);
    cluster.restart(2);
    assert_eq!(value(cluster.ask(2, get("a", first))), "not here");
}

#[test]
fn a_replica_that_lacks_what_was_written_does_not_answer() {
    let mut cluster = Cluster::new();
    let first = write(&mut cluster, 1, 1, "1");
    cluster.pass(A_WHILE, &[1, 2, 3]);
    // It hears what is promised, and gets no entries.
    cluster.deaf = vec![(2, 1)];
    let second = write(&mut cluster, 1, 2, "2");
    cluster.pass(A_WHILE, &[1, 3]);
    assert_eq!(value(cluster.ask(3, get("a", second))), "2");
    assert_eq!(value(cluster.ask(2, get("a", second))), "not here");
    assert_eq!(value(cluster.ask(2, get("a", first))), "1");
    cluster.deaf = Vec::new();
    cluster.pass(A_WHILE, &[1, 2, 3]);
    assert_eq!(value(cluster.ask(2, get("a", second))), "2");
}

/// It may happen yet, at a time that is closed.
#[test]
fn what_is_proposed_and_not_applied_anywhere_is_waited_for() {
    let mut cluster = Cluster::new();
    let first = write(&mut cluster, 1, 1, "1");
    cluster.pass(A_WHILE, &[1, 2, 3]);
    cluster.deaf = vec![(2, 1), (3, 1)];
    let txn = TxnId { began: cluster.now(1), number: 2 };
    assert_eq!(cluster.ask(1, commit(txn, vec![put("a", "2")])), None);
    cluster.pass(1, &[1]);
    let at = cluster.now(1);
    cluster.pass(A_WHILE, &[1]);
    assert_eq!(value(cluster.ask(2, get("a", first))), "1");
    assert_eq!(value(cluster.ask(2, get("a", at))), "not here");
    cluster.deaf = Vec::new();
    cluster.pass(A_WHILE, &[1, 2, 3]);
    assert_eq!(value(cluster.ask(2, get("a", at))), "2");
}

#[test]
fn what_is_prepared_and_may_have_happened_is_in_the_way() {
    let mut cluster = two_ranges();
    let txn = name(&cluster, 1);
    let part = prepare(txn, Vec::new(), vec![put("m", "1")]);
    let bound = bound(cluster.ask_range(2, 1, part));
    cluster.pass(5, &[1, 2, 3]);
    let at = cluster.now(1);
    cluster.pass(A_WHILE, &[1, 2, 3]);
    let read =
        |cluster: &mut Cluster, name: &str, at| value(cluster.ask_range(2, 2, get(name, at)));
    assert_eq!(read(&mut cluster, "m", CommitTs(bound.0 - 1)), "nothing");
    assert_eq!(read(&mut cluster, "m", bound), "not here");
    assert_eq!(read(&mut cluster, "m", at), "not here");
    assert_eq!(read(&mut cluster, "n", at), "nothing");
    let decision = Decision::Committed { at: CommitTs(bound.0 + 1), by: NodeId(1) };
    assert_eq!(cluster.ask_range(2, 1, resolve(txn, decision)), Some(Answer::Fine));
    cluster.pass(1, &[1, 2, 3]);
    assert_eq!(read(&mut cluster, "m", bound), "nothing");
    assert_eq!(read(&mut cluster, "m", at), "1");
}

#[test]
fn a_range_that_sleeps_is_read_without_being_woken() {
    let mut cluster = Cluster::new();
    let first = write(&mut cluster, 1, 1, "1");
    cluster.pass(120, &[1, 2, 3]);
    let sleeps = |cluster: &mut Cluster| [1, 2, 3].map(|id| cluster.process(id).sleeps(RangeId(1)));
    assert_eq!(sleeps(&mut cluster), [true; 3]);
    // It was closed when it fell asleep: some seconds after it was asked last.
    let later = CommitTs(first.0 + (3_000_000 << 12));
    assert_eq!(value(cluster.ask(2, get("a", later))), "1");
    assert_eq!(sleeps(&mut cluster), [true; 3]);
    // Nor is somebody needed who knows about how much there is.
    let span = KeySpan::new(key("a"), key("b"));
    assert!(matches!(cluster.ask(2, Ask::StoredBytes(span)), Some(Answer::Stored(_))));
    assert_eq!(sleeps(&mut cluster), [true; 3]);
    let now = cluster.now(2);
    assert_eq!(value(cluster.ask(2, get("a", now))), "not here");
    assert_eq!(sleeps(&mut cluster), [false; 3]);
    // Its lease was over: somebody has to ask where it was.
    cluster.pass(1, &[1, 2, 3]);
    assert_eq!(value(cluster.ask(1, get("a", now))), "1");
    cluster.pass(A_WHILE, &[1, 2, 3]);
    assert_eq!(value(cluster.ask(2, get("a", now))), "1");
}
