//! The checker of histories is software, too: good histories must pass, and each of the bugs
//! planted here must be found under its name.
//!
//! A bug is a change of a good history: what a database with that bug would have shown.

use std::collections::HashSet;

use braid_workload::history::{
    Anomaly, History, Key, Level, Model, Op, Outcome, Transaction, check, simulate,
};

/// A name, what it must be called, and the change; None if the history has no place for it.
type Bug = (&'static str, Anomaly, fn(&mut History) -> Option<()>);

const BUGS: &[Bug] = &[
    ("an append is lost", Anomaly::Lost, lost_append),
    ("half of a transaction is lost", Anomaly::Lost, lost_half),
    ("an append happens twice", Anomaly::Duplicate, duplicated_append),
    ("two appends are exchanged for one reader", Anomaly::Disorder, reordered),
    ("a value from nowhere", Anomaly::Unwritten, from_nowhere),
    ("a value survives a range delete", Anomaly::Resurrected, resurrected),
    ("a read of a rolled back append", Anomaly::G1a, read_of_aborted),
    ("a read between two appends of one transaction", Anomaly::G1b, intermediate_read),
    ("a transaction does not see its append", Anomaly::Internal, blind_to_itself),
    ("the second read shows less", Anomaly::Unrepeatable, unrepeatable),
    ("a child survives its family", Anomaly::Torn, child_survives),
    ("a child is missing", Anomaly::Torn, child_missing),
    ("the index finds an erased child", Anomaly::Torn, index_remembers),
    ("half of an erasure is seen", Anomaly::GSingle, half_erased),
    ("half of a TRUNCATE is seen", Anomaly::GSingle, half_truncated),
    ("a reader sees half of a transaction", Anomaly::GSingle, fractured_view),
    ("a reader sees the past", Anomaly::Stale, read_of_the_past),
    ("two appends to the same version", Anomaly::LostUpdate, lost_update),
    ("two erasures of the same version", Anomaly::LostUpdate, erased_twice),
    ("two writes over the same register", Anomaly::LostUpdate, register_lost_update),
    ("a read of a rolled back register", Anomaly::G1a, register_of_aborted),
    ("read skew of registers", Anomaly::GSingle, register_skew),
    ("dirty writes", Anomaly::G0, dirty_writes),
    ("each reads the other", Anomaly::G1c, circular_reads),
    ("a long fork", Anomaly::GNonadjacent, long_fork),
    ("write skew", Anomaly::G2Item, write_skew),
    ("write skew of registers", Anomaly::G2Item, register_write_skew),
    ("the read-only anomaly", Anomaly::G2Item, read_only_anomaly),
    ("write skew by a query over all rows", Anomaly::G2, predicate_skew),
];

const SEEDS: u64 = 3;

fn good(seed: u64) -> History {
    simulate(Model::Serial, 1_500, seed)
}

#[test]
fn planted_bugs_are_found_by_name() {
    for &(name, anomaly, plant) in BUGS {
        for seed in 1..=SEEDS {
            let mut history = good(seed);
            plant(&mut history).unwrap_or_else(|| panic!("seed {seed} has no place for: {name}"));
            let report = check(&history, Level::Serializable);
            assert!(report.forbidden.contains(&anomaly), "{name}, seed {seed}: {report}");
            let judged = check(&history, Level::RepeatableRead).forbidden.contains(&anomaly);
            assert_eq!(judged, !anomaly.allowed(Level::RepeatableRead), "{name}, seed {seed}");
        }
    }
    let names: HashSet<_> = BUGS.iter().map(|bug| bug.0).collect();
    assert!(names.len() >= 20);
}

#[test]
fn cycles_get_no_other_name() {
    for &(name, anomaly, plant) in BUGS {
        let mut history = good(1);
        plant(&mut history).unwrap();
        let found = check(&history, Level::Serializable);
        let cycles: Vec<_> =
            found.anomalies.keys().filter(|a| **a >= Anomaly::LostUpdate).collect();
        if anomaly >= Anomaly::LostUpdate {
            assert_eq!(cycles, [&anomaly], "{name}: {found}");
        }
    }
}

#[test]
fn good_histories_pass() {
    for seed in 1..=SEEDS {
        let report = check(&good(seed), Level::Serializable);
        assert!(report.anomalies.is_empty(), "serial, seed {seed}: {report}");
        let snapshots = simulate(Model::Snapshot, 1_500, seed);
        for level in [Level::RepeatableRead, Level::ReadCommitted] {
            let report = check(&snapshots, level);
            assert!(report.forbidden.is_empty(), "snapshots, seed {seed}, {level:?}: {report}");
        }
    }
}

#[test]
fn snapshots_are_not_serializable() {
    let report = check(&simulate(Model::Snapshot, 1_500, 1), Level::Serializable);
    let found: Vec<_> = report.forbidden.iter().collect();
    assert!(found.contains(&&Anomaly::G2Item) || found.contains(&&Anomaly::G2), "{report}");
}

#[test]
fn the_checker_is_linear_enough_for_long_histories() {
    // 100,000 with BRAID_ALL=1; what it takes is printed by the test runner.
    let all = std::env::var("BRAID_ALL").is_ok_and(|v| v == "1");
    let history = simulate(Model::Serial, if all { 100_000 } else { 10_000 }, 1);
    let report = check(&history, Level::Serializable);
    println!("{report}");
    assert!(report.anomalies.is_empty(), "{report}");
}

/// A value that the good history does not have.
const FRESH: u64 = 1 << 40;

/// A list that the good history does not have.
const A: Key = Key::List(900_001);
const B: Key = Key::List(900_002);
const R: Key = Key::Register(900_001);
const S: Key = Key::Register(900_002);

fn append(key: Key, value: u64) -> Op {
    Op::Append { key, value: FRESH + value }
}

fn write(key: Key, value: u64) -> Op {
    Op::Write { key, value: FRESH + value }
}

fn read(key: Key, values: &[u64]) -> Op {
    Op::Read { key, values: values.iter().map(|v| FRESH + v).collect(), scan: false }
}

fn get(key: Key, value: u64) -> Op {
    Op::Get { key, value: if value == 0 { 0 } else { FRESH + value } }
}

/// Transactions at the same time, before the last one, which reads what is left at the end.
fn inject(history: &mut History, transactions: Vec<Vec<Op>>, left: Vec<Op>) -> Option<()> {
    let last = history.transactions.last_mut()?;
    last.ops.extend(left);
    let ended = last.began - 1;
    let beside = transactions.into_iter().map(|ops| Transaction {
        began: ended - 1,
        ended,
        outcome: Outcome::Committed,
        ops,
    });
    let at = history.transactions.len() - 1;
    history.transactions.splice(at..at, beside);
    Some(())
}

/// All committed appends to lists, as transaction and place.
fn appends(history: &History) -> Vec<(usize, Key, u64)> {
    let committed = |t: &(usize, &Transaction)| t.1.outcome == Outcome::Committed;
    let of = |(n, t): (usize, &Transaction)| -> Vec<(usize, Key, u64)> {
        let list = |op: &Op| match op {
            Op::Append { key: key @ Key::List(_), value } => Some((n, *key, *value)),
            _ => None,
        };
        t.ops.iter().filter_map(list).collect()
    };
    history.transactions.iter().enumerate().filter(committed).flat_map(of).collect()
}

/// The last read, which has everything.
fn at_the_end(history: &mut History, wanted: Key) -> Option<&mut Vec<u64>> {
    history.transactions.last_mut()?.ops.iter_mut().find_map(|op| match op {
        Op::Read { key, values, .. } if *key == wanted => Some(values),
        _ => None,
    })
}

/// A list as it was when a value had just been added.
fn list_up_to(history: &History, wanted: Key, value: u64) -> Option<Vec<u64>> {
    history.transactions.iter().flat_map(|t| &t.ops).find_map(|op| match op {
        Op::Read { key, values, .. } if *key == wanted => {
            let place = values.iter().position(|v| *v == value)?;
            Some(values[..=place].to_vec())
        }
        _ => None,
    })
}

/// Changes every read of a list.
fn every_read(history: &mut History, wanted: Key, change: impl Fn(&mut Vec<u64>)) {
    for op in history.transactions.iter_mut().flat_map(|t| &mut t.ops) {
        match op {
            Op::Read { key, values, .. } | Op::Children { key, values } if *key == wanted => {
                change(values);
            }
            _ => {}
        }
    }
}

fn forget(history: &mut History, key: Key, value: u64) {
    every_read(history, key, |values| values.retain(|v| *v != value));
    for t in &mut history.transactions {
        t.ops.retain(|op| !matches!(op, Op::Lookup { value: v, .. } if *v == value));
    }
}

fn lost_append(history: &mut History) -> Option<()> {
    let (_, key, value) = *appends(history).get(200)?;
    forget(history, key, value);
    Some(())
}

fn lost_half(history: &mut History) -> Option<()> {
    let all = appends(history);
    let pair = all.windows(2).find(|w| w[0].0 == w[1].0 && w[0].1 != w[1].1)?;
    forget(history, pair[1].1, pair[1].2);
    Some(())
}

fn duplicated_append(history: &mut History) -> Option<()> {
    let values = history.transactions.last_mut()?.ops.iter_mut().find_map(|op| match op {
        Op::Read { key: Key::List(_), values, .. } if values.len() > 2 => Some(values),
        _ => None,
    })?;
    values.push(values[1]);
    Some(())
}

fn reordered(history: &mut History) -> Option<()> {
    let ends: Vec<(Key, Vec<u64>)> = reads_of_lists(history.transactions.last()?);
    let one = history.transactions.iter_mut().rev().skip(1).find_map(|t| {
        let committed = t.outcome == Outcome::Committed;
        t.ops.iter_mut().filter(|_| committed).find_map(|op| match op {
            Op::Read { key, values, .. }
                if values.len() > 2
                    && ends.iter().any(|(k, all)| k == key && all.starts_with(values)) =>
            {
                Some(values)
            }
            _ => None,
        })
    })?;
    let end = one.len();
    one.swap(end - 1, end - 2);
    Some(())
}

fn reads_of_lists(t: &Transaction) -> Vec<(Key, Vec<u64>)> {
    let list = |op: &Op| match op {
        Op::Read { key: key @ Key::List(_), values, .. } => Some((*key, values.clone())),
        _ => None,
    };
    t.ops.iter().filter_map(list).collect()
}

fn from_nowhere(history: &mut History) -> Option<()> {
    at_the_end(history, Key::List(3))?.push(FRESH);
    Some(())
}

/// Committed erasures: transaction, list, what was read before, the new first value.
fn erasures(history: &History) -> Vec<(usize, Key, Vec<u64>, u64)> {
    let mut out = Vec::new();
    for (n, t) in history.transactions.iter().enumerate() {
        if t.outcome != Outcome::Committed {
            continue;
        }
        for (i, op) in t.ops.iter().enumerate() {
            let Op::Erase { key, value } = op else { continue };
            // The read is two operations before, the trail one.
            if let Some(Op::Read { values, .. }) = t.ops.get(i.wrapping_sub(2)) {
                out.push((n, *key, values.clone(), *value));
            }
        }
    }
    out
}

fn resurrected(history: &mut History) -> Option<()> {
    let found = erasures(history).into_iter().rev().find(|(_, key, before, erasure)| {
        let is_last = at_the_end(&mut history.clone(), *key).is_some_and(|v| v[0] == *erasure);
        before.len() > 1 && is_last
    })?;
    let (_, key, before, _) = found;
    at_the_end(history, key)?.push(before[1]);
    Some(())
}

fn read_of_aborted(history: &mut History) -> Option<()> {
    let (writer, ..) = *appends(history).get(100)?;
    history.transactions[writer].outcome = Outcome::Aborted;
    Some(())
}

fn intermediate_read(history: &mut History) -> Option<()> {
    let (reader, key, value) = appends(history).into_iter().find_map(|(writer, key, value)| {
        let of = |(n, t): (usize, &Transaction)| {
            let ends = |op: &Op| match op {
                Op::Read { key: k, values, .. } => *k == key && values.last() == Some(&value),
                _ => false,
            };
            (n != writer && t.outcome == Outcome::Committed && t.ops.iter().any(ends))
                .then_some((n, key, value))
        };
        history.transactions.iter().enumerate().find_map(of)
    })?;
    let writer = appends(history).into_iter().find(|a| a.2 == value)?.0;
    let ops = history.transactions[reader].ops.clone();
    every_read(history, key, |values| {
        if let Some(place) = values.iter().position(|v| *v == value) {
            values.insert(place + 1, FRESH);
        }
    });
    history.transactions[reader].ops = ops;
    let ops = &mut history.transactions[writer].ops;
    let place = ops.iter().position(|op| op.written() == Some(value))?;
    ops.insert(place + 1, Op::Append { key, value: FRESH });
    Some(())
}

fn blind_to_itself(history: &mut History) -> Option<()> {
    let (writer, key, value) = *appends(history).get(100)?;
    let mut values = list_up_to(history, key, value)?;
    values.pop();
    history.transactions[writer].ops.push(Op::Read { key, values, scan: false });
    Some(())
}

/// A committed transaction that reads a list of several values and writes nothing, and the read.
fn a_reader(history: &History) -> Option<(usize, Key, Vec<u64>)> {
    history.transactions[300..].iter().enumerate().find_map(|(n, t)| {
        let reads_only = t.ops.iter().all(|op| op.written().is_none());
        let (key, values) = reads_of_lists(t).into_iter().find(|(_, values)| values.len() > 2)?;
        (reads_only && t.outcome == Outcome::Committed).then_some((n + 300, key, values))
    })
}

fn unrepeatable(history: &mut History) -> Option<()> {
    let (reader, key, mut values) = a_reader(history)?;
    values.pop();
    history.transactions[reader].ops.push(Op::Read { key, values, scan: false });
    Some(())
}

fn child_survives(history: &mut History) -> Option<()> {
    let (reader, key, mut values) = a_reader(history)?;
    values.push(1);
    history.transactions[reader].ops.push(Op::Children { key, values });
    Some(())
}

fn child_missing(history: &mut History) -> Option<()> {
    let (reader, key, mut values) = a_reader(history)?;
    values.remove(0);
    history.transactions[reader].ops.push(Op::Children { key, values });
    Some(())
}

fn index_remembers(history: &mut History) -> Option<()> {
    let (reader, key, _) = a_reader(history)?;
    history.transactions[reader].ops.push(Op::Lookup { key, value: 1, found: true });
    Some(())
}

fn half_erased(history: &mut History) -> Option<()> {
    let (eraser, key, before, erasure) =
        erasures(history).into_iter().find(|(_, _, before, _)| before.len() > 1)?;
    let Key::List(number) = key else { return None };
    let trail = list_up_to(history, Key::Trail(number), erasure)?;
    beside(history, eraser, vec![(Key::Trail(number), trail), (key, before)])
}

fn half_truncated(history: &mut History) -> Option<()> {
    let all = erasures(history);
    let pair = all.windows(2).find(|w| w[0].0 == w[1].0 && w[0].1 != w[1].1)?;
    let reads = vec![(pair[0].1, vec![pair[0].3]), (pair[1].1, pair[1].2.clone())];
    beside(history, pair[0].0, reads)
}

fn fractured_view(history: &mut History) -> Option<()> {
    let all = appends(history);
    let pair = all[100..].windows(2).find(|w| w[0].0 == w[1].0 && w[0].1 != w[1].1)?;
    let seen = list_up_to(history, pair[0].1, pair[0].2)?;
    let mut unseen = list_up_to(history, pair[1].1, pair[1].2)?;
    unseen.pop();
    beside(history, pair[0].0, vec![(pair[0].1, seen), (pair[1].1, unseen)])
}

/// A reader at the time of a transaction.
fn beside(history: &mut History, of: usize, reads: Vec<(Key, Vec<u64>)>) -> Option<()> {
    let ops =
        reads.into_iter().map(|(key, values)| Op::Read { key, values, scan: false }).collect();
    let Transaction { began, ended, .. } = history.transactions[of];
    let reader = Transaction { began, ended, outcome: Outcome::Committed, ops };
    history.transactions.insert(of + 1, reader);
    Some(())
}

fn read_of_the_past(history: &mut History) -> Option<()> {
    let alone = |a: &(usize, Key, u64)| history.transactions[a.0].ops.len() == 1;
    let (writer, key, value) = appends(history).into_iter().skip(100).find(alone)?;
    let mut values = list_up_to(history, key, value)?;
    values.pop();
    let began = history.transactions[writer].ended + 1;
    let ops = vec![Op::Read { key, values, scan: false }];
    let outcome = Outcome::Committed;
    history.transactions.push(Transaction { began, ended: began + 1, outcome, ops });
    Some(())
}

fn lost_update(history: &mut History) -> Option<()> {
    let ops = |v| vec![read(A, &[]), append(A, v)];
    inject(history, vec![ops(1), ops(2)], vec![read(A, &[1, 2])])
}

fn erased_twice(history: &mut History) -> Option<()> {
    let trail = Key::Trail(900_001);
    let ops = |v| vec![read(A, &[1]), append(trail, v), Op::Erase { key: A, value: FRESH + v }];
    let left = vec![read(trail, &[2, 3]), read(A, &[3])];
    inject(history, vec![vec![append(A, 1)], ops(2), ops(3)], left)
}

fn register_lost_update(history: &mut History) -> Option<()> {
    let ops = |v| vec![get(R, 0), write(R, v)];
    inject(history, vec![ops(1), ops(2)], Vec::new())
}

fn register_of_aborted(history: &mut History) -> Option<()> {
    inject(history, vec![vec![write(R, 1)], vec![get(R, 1)]], Vec::new())?;
    let writer = history.transactions.len() - 3;
    history.transactions[writer].outcome = Outcome::Aborted;
    Some(())
}

fn register_skew(history: &mut History) -> Option<()> {
    let writer = vec![get(R, 0), get(S, 0), write(R, 1), write(S, 2)];
    inject(history, vec![writer, vec![get(R, 1), get(S, 0)]], Vec::new())
}

fn dirty_writes(history: &mut History) -> Option<()> {
    let ops = |v| vec![append(A, v), append(B, v)];
    inject(history, vec![ops(1), ops(2)], vec![read(A, &[1, 2]), read(B, &[2, 1])])
}

fn circular_reads(history: &mut History) -> Option<()> {
    let one = vec![append(A, 1), read(B, &[2])];
    let other = vec![append(B, 2), read(A, &[1])];
    inject(history, vec![one, other], vec![read(A, &[1]), read(B, &[2])])
}

fn long_fork(history: &mut History) -> Option<()> {
    let readers = [vec![read(A, &[1]), read(B, &[])], vec![read(A, &[]), read(B, &[2])]];
    let all = [vec![append(A, 1)], vec![append(B, 2)]].into_iter().chain(readers).collect();
    inject(history, all, vec![read(A, &[1]), read(B, &[2])])
}

fn write_skew(history: &mut History) -> Option<()> {
    let one = vec![read(A, &[]), append(B, 1)];
    let other = vec![read(B, &[]), append(A, 2)];
    inject(history, vec![one, other], vec![read(A, &[2]), read(B, &[1])])
}

fn register_write_skew(history: &mut History) -> Option<()> {
    let ops = |key, v| vec![get(R, 0), get(S, 0), write(key, v)];
    inject(history, vec![ops(R, 1), ops(S, 2)], Vec::new())
}

fn read_only_anomaly(history: &mut History) -> Option<()> {
    let slow = vec![read(A, &[]), read(B, &[]), append(A, 1)];
    let (fast, reader) = (vec![append(B, 2)], vec![read(A, &[]), read(B, &[2])]);
    inject(history, vec![slow, fast, reader], vec![read(A, &[1]), read(B, &[2])])
}

fn predicate_skew(history: &mut History) -> Option<()> {
    let scan = |key| Op::Read { key, values: Vec::new(), scan: true };
    let one = vec![scan(A), scan(B), append(B, 1)];
    let other = vec![scan(A), scan(B), append(A, 2)];
    inject(history, vec![one, other], vec![read(A, &[2]), read(B, &[1])])
}
