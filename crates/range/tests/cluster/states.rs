//! Replicas that are behind their logs and get the state of the range: what was written while they
//! were away, with all versions; crashes on both sides at any moment; ranges that were split off
//! meanwhile.

use std::sync::atomic::Ordering;

use super::*;

const SHORT_LOG: u64 = 20_000;

/// Three nodes whose logs are short.
fn short_logs(gc_window_micros: Option<u64>) -> Cluster {
    let mut cluster = Cluster::keeping(gc_window_micros);
    for id in 1..=3 {
        cluster.nodes[id as usize - 1].max_log_bytes = SHORT_LOG;
        cluster.crash(id, CrashPolicy::KeepAll);
        cluster.restart(id);
    }
    cluster.pass(150, &[1, 2, 3]);
    cluster
}

/// Nodes that run live on for some seconds, and their stores are synced.
fn live(cluster: &mut Cluster, seconds: u64) {
    for _ in 0..seconds {
        let runs = |id: &u64| cluster.nodes[*id as usize - 1].process.is_some();
        let who: Vec<u64> = (1..=3).filter(runs).collect();
        cluster.pass(10, &who);
        for id in who {
            // It may have lost power meanwhile.
            let Some(process) = cluster.nodes[id as usize - 1].process.as_mut() else { continue };
            let position = process.store_position();
            position.wait_durable().expect("the disk works");
            process.store_synced(&position).expect("nothing fails");
        }
        cluster.settle();
        cluster.work();
    }
}

/// The node among those that run that leads a range.
fn leads(cluster: &mut Cluster, at: &str) -> u64 {
    let shown = Ask::Read { spans: vec![KeySpan::point(&key(at))], at: None, bytes: 1 };
    for _ in 0..40 {
        for id in 1..=3 {
            if cluster.nodes[id as usize - 1].process.is_none() || cluster.cut_off.contains(&id) {
                continue;
            }
            for (range, _) in cluster.process(id).ranges() {
                let answer = cluster.ask_range(range.id.0, id, shown.clone());
                if matches!(answer, Some(Answer::Rows { .. })) {
                    return id;
                }
            }
        }
        live(cluster, 1);
    }
    let runs = |id: &u64| cluster.nodes[*id as usize - 1].process.is_some();
    let running: Vec<u64> = (1..=3).filter(runs).collect();
    let states: Vec<String> = running.into_iter().map(|id| cluster.describe(id)).collect();
    panic!("nobody serves {at}:\n{}", states.join("\n"));
}

/// Commits writes into the range that has a key.
fn write(cluster: &mut Cluster, number: &mut u64, at: &str, writes: Vec<Write>) -> CommitTs {
    for _ in 0..40 {
        let id = leads(cluster, at);
        let ranges = cluster.process(id).ranges();
        let range = ranges.iter().find(|(range, _)| range.span.contains(&key(at)));
        let range = range.expect("all keys are in some range").0.id;
        *number += 1;
        let txn = TxnId { began: cluster.now(id), number: *number };
        let done = cluster.ask_range(range.0, id, commit(txn, writes.clone()));
        if let Some(Answer::Committed { at, .. }) = done {
            return at;
        }
    }
    panic!("nobody commits into {at}");
}

fn large(name: &str, letter: &str) -> Write {
    Write::Put(key(name), letter.repeat(3_000).into())
}

type Rows = Vec<(Bytes, Bytes, CommitTs)>;

/// What a node's own store has of data as of a time.
fn rows(cluster: &mut Cluster, id: u64, at: CommitTs) -> Rows {
    let view = cluster.process(id).store().view(at).expect("the store is open");
    let span = KeySpan::new(FIRST_DATA_KEY, KeySpan::all().end);
    let mut scan = view.scan(span, ScanOptions::default()).expect("the disk works");
    let mut rows = Vec::new();
    while let Some(row) = scan.next_row().expect("the disk works") {
        rows.push((row.key.clone(), row.value.clone(), row.ts));
    }
    rows
}

/// How many states n3 has got since it was started.
fn installed(cluster: &mut Cluster) -> u64 {
    cluster.process(3).states_installed().load(Ordering::Relaxed)
}

const NEWEST: CommitTs = CommitTs(u64::MAX - 1);

/// Until all nodes have applied the same.
fn until_level(cluster: &mut Cluster) {
    for _ in 0..60 {
        live(cluster, 1);
        let ranges: Vec<_> = (1..=3).map(|id| cluster.process(id).ranges()).collect();
        if ranges.iter().all(|other| *other == ranges[0]) {
            return;
        }
    }
    let states: Vec<String> = (1..=3).map(|id| cluster.describe(id)).collect();
    panic!("they do not become alike:\n{}", states.join("\n"));
}

/// n3 is away while the others write past the bound of their logs; returns times of some commits.
fn write_while_n3_is_away(cluster: &mut Cluster) -> Vec<CommitTs> {
    let (mut number, mut times) = (0, Vec::new());
    let mut commit = |cluster: &mut Cluster, writes| {
        times.push(write(cluster, &mut number, "a", writes));
    };
    commit(cluster, vec![put("a", "before"), put("gone", "before"), put("fam/1", "before")]);
    live(cluster, 2);
    cluster.crash(3, CrashPolicy::Random(50));
    commit(cluster, vec![put("a", "1"), Write::Delete(key("gone"))]);
    commit(cluster, vec![Write::DeleteSpan(KeySpan::new(key("fam"), key("fan")))]);
    for n in 0..30 {
        let letter = ["x", "y", "z"][n % 3];
        commit(cluster, vec![large(&format!("k{:02}", n % 20), letter)]);
        live(cluster, 1);
    }
    commit(cluster, vec![put("a", "2")]);
    live(cluster, 2);
    times
}

#[test]
fn who_was_away_while_the_log_was_cut_is_given_all_versions_and_goes_on() {
    let mut cluster = short_logs(None);
    let times = write_while_n3_is_away(&mut cluster);
    let leader = leads(&mut cluster, "a");
    let state = cluster.describe(leader);
    assert!(!state.contains("log (i0"), "the log is not kept for who is away: {state}");
    cluster.restart(3);
    until_level(&mut cluster);
    assert_eq!(installed(&mut cluster), 1);
    for at in times.into_iter().chain([NEWEST]) {
        assert_eq!(rows(&mut cluster, 3, at), rows(&mut cluster, leader, at), "as of {at}");
    }
    // What it acknowledges counts: with one other it is a majority, and it can lead.
    let mut number = 1_000;
    cluster.crash(leader, CrashPolicy::LoseAll);
    write(&mut cluster, &mut number, "a", vec![put("a", "3")]);
    cluster.crash(3, CrashPolicy::LoseAll);
    cluster.restart(3);
    cluster.restart(leader);
    until_level(&mut cluster);
    assert_eq!(rows(&mut cluster, 3, NEWEST), rows(&mut cluster, leader, NEWEST));
    assert_eq!(
        shown(Some(Answer::Rows {
            at: NEWEST,
            rows: rows(&mut cluster, 3, NEWEST).into_iter().take(1).map(|r| (r.0, r.1)).collect(),
            rest: Vec::new(),
        })),
        "a=3"
    );
}

/// The receiver loses power in front of each change of its disk while it gets a state. It comes
/// back
/// with the old state or the new one, whole, and gets there in the end.
#[test]
fn a_crash_while_a_state_arrives_leaves_the_old_one_or_the_new_one() {
    let (mut old, mut new) = (0, 0);
    for round in 0.. {
        let mut cluster = short_logs(None);
        write_while_n3_is_away(&mut cluster);
        cluster.restart(3);
        let before = rows(&mut cluster, 3, NEWEST);
        let leader = leads(&mut cluster, "a");
        let after = rows(&mut cluster, leader, NEWEST);
        assert_ne!(before, after);
        let half = CrashPolicy::Random(50);
        let policy = [CrashPolicy::LoseAll, CrashPolicy::KeepAll, half, half, half];
        let (changes, random) = (round / 3, Random::seeded(round));
        // What a start changes has no part in it.
        cluster.nodes[2].fs.arm_crash(changes, random, policy[round as usize % 5]);
        for _ in 0..20 {
            live(&mut cluster, 1);
            if cluster.nodes[2].process.is_none() {
                break;
            }
        }
        cluster.nodes[2].fs.disarm_crash();
        let has_crashed = cluster.nodes[2].process.is_none();
        if has_crashed {
            cluster.restart(3);
            let found = rows(&mut cluster, 3, NEWEST);
            assert!(found == before || found == after, "change {changes}");
            match found == before {
                true => old += 1,
                false => new += 1,
            }
        }
        until_level(&mut cluster);
        assert_eq!(rows(&mut cluster, 3, NEWEST), after, "change {changes}");
        if !has_crashed || changes > 400 {
            break;
        }
    }
    println!("{old} times the old state, {new} times the new one");
    assert!(old > 5 && new > 5, "{old} {new}");
}

#[test]
fn a_sender_that_is_gone_or_does_not_lead_any_more_leaves_nothing_behind() {
    let mut cluster = short_logs(None);
    write_while_n3_is_away(&mut cluster);
    // More than is sent in a tick.
    let mut number = 5_000;
    for n in 0..7 {
        let (name, value) = (format!("m{n:02}"), Bytes::from(vec![b'v'; 1_000_000]));
        write(&mut cluster, &mut number, &name, vec![Write::Put(key(&name), value)]);
        cluster.work();
    }
    let leader = leads(&mut cluster, "a");
    cluster.restart(3);
    let arriving = |cluster: &Cluster| {
        cluster.nodes[2].fs.list(Path::new("/node/arriving")).expect("it is there").len()
    };
    for _ in 0..100 {
        cluster.pass(1, &[1, 2, 3]);
        // Whatever is on the way is lost.
        cluster.messages.clear();
        if arriving(&cluster) > 0 {
            break;
        }
    }
    assert_ne!(arriving(&cluster), 0);
    assert_eq!(installed(&mut cluster), 0);
    cluster.crash(leader, CrashPolicy::LoseAll);
    live(&mut cluster, 20);
    cluster.restart(leader);
    until_level(&mut cluster);
    live(&mut cluster, 15);
    assert_eq!(arriving(&cluster), 0);
    let leader = leads(&mut cluster, "a");
    assert_eq!(rows(&mut cluster, 3, NEWEST), rows(&mut cluster, leader, NEWEST));
}

#[test]
fn ranges_that_were_split_off_meanwhile_begin_with_a_state() {
    let mut cluster = short_logs(None);
    let mut number = 0;
    write(&mut cluster, &mut number, "a", vec![put("a", "1"), put("m", "1"), put("t", "1")]);
    live(&mut cluster, 2);
    cluster.crash(3, CrashPolicy::LoseAll);
    for (at, right) in [("m", 7), ("t", 8)] {
        let leader = leads(&mut cluster, "a");
        let range = if at == "m" { 1 } else { 7 };
        let split = Ask::Split(Split { at: key(at), right: RangeId(right) });
        assert_eq!(cluster.ask_range(range, leader, split), Some(Answer::Again));
        live(&mut cluster, 12);
    }
    for n in 0..25 {
        for at in ["a", "m", "t"] {
            write(&mut cluster, &mut number, at, vec![large(at, ["x", "y"][n % 2])]);
        }
        live(&mut cluster, 1);
    }
    cluster.restart(3);
    assert_eq!(cluster.process(3).ranges().len(), 1);
    until_level(&mut cluster);
    assert_eq!(cluster.process(3).ranges().len(), 3);
    assert_eq!(installed(&mut cluster), 3);
    let leader = leads(&mut cluster, "a");
    assert_eq!(rows(&mut cluster, 3, NEWEST), rows(&mut cluster, leader, NEWEST));
    // It opens again, and a majority that it belongs to serves all of them.
    cluster.crash(3, CrashPolicy::LoseAll);
    cluster.restart(3);
    cluster.crash(if leader == 1 { 2 } else { 1 }, CrashPolicy::LoseAll);
    for at in ["a", "m", "t"] {
        write(&mut cluster, &mut number, at, vec![put(at, "2")]);
    }
}

/// n3 is away while range 7 is split off, from "m" on, and the log that says so is cut. Returns the
/// number of the last commit, too.
fn split_while_n3_is_away(gc_window_micros: Option<u64>) -> (Cluster, u64) {
    let mut cluster = short_logs(gc_window_micros);
    let mut number = 0;
    write(&mut cluster, &mut number, "a", vec![put("a", "1"), put("m", "1")]);
    live(&mut cluster, 2);
    cluster.crash(3, CrashPolicy::LoseAll);
    let leader = leads(&mut cluster, "a");
    let split = Ask::Split(Split { at: key("m"), right: RangeId(7) });
    assert_eq!(cluster.ask_range(1, leader, split), Some(Answer::Again));
    live(&mut cluster, 12);
    for n in 0..25 {
        write(&mut cluster, &mut number, "a", vec![large("a", ["x", "y"][n % 2])]);
        live(&mut cluster, 1);
    }
    write(&mut cluster, &mut number, "m", vec![put("m", "2")]);
    (cluster, number)
}

/// n3 comes back, and before it is given what was split off meanwhile, one of those who have it is
/// lost: with n3's vote the other one serves it. n3 keeps its vote over a loss of power.
#[test]
fn who_has_no_replica_yet_votes_and_keeps_its_vote() {
    let (mut cluster, mut number) = split_while_n3_is_away(None);
    let leader = leads(&mut cluster, "m");
    let other = if leader == 1 { 2 } else { 1 };
    cluster.crash(leader, CrashPolicy::LoseAll);
    // It does not hear of the split itself.
    cluster.deaf = vec![(3, 1)];
    cluster.restart(3);
    let promise = |cluster: &mut Cluster| {
        let lines = cluster.describe(3);
        lines.lines().find(|line| line.contains("is not there")).map(str::to_string)
    };
    let mut ticks = 0;
    while promise(&mut cluster).is_none() {
        cluster.pass(1, &[other, 3]);
        ticks += 1;
        assert!(ticks < 1_000, "{}", cluster.describe(other));
    }
    let promised = promise(&mut cluster).expect("it has voted");
    assert!(promised.contains(&format!("voted r{other}")), "{promised}");
    cluster.crash(3, CrashPolicy::LoseAll);
    cluster.restart(3);
    assert_eq!(promise(&mut cluster), Some(promised));
    cluster.deaf.clear();
    write(&mut cluster, &mut number, "m", vec![put("m", "3")]);
    assert_eq!(leads(&mut cluster, "m"), other);
    cluster.restart(leader);
    until_level(&mut cluster);
    assert_eq!(promise(&mut cluster), None);
    assert_eq!(rows(&mut cluster, 3, NEWEST), rows(&mut cluster, other, NEWEST));
}

/// What is older than the threshold of the range comes along, and is below that of the store.
#[test]
fn a_state_is_taken_in_below_the_threshold_of_the_store() {
    let mut cluster = short_logs(Some(8_000_000));
    write_while_n3_is_away(&mut cluster);
    cluster.restart(3);
    until_level(&mut cluster);
    assert!(installed(&mut cluster) > 0);
    live(&mut cluster, 30);
    let threshold = cluster.process(3).store().gc_threshold();
    assert!(threshold > CommitTs::ZERO);
    let leader = leads(&mut cluster, "a");
    assert_eq!(rows(&mut cluster, 3, NEWEST), rows(&mut cluster, leader, NEWEST));
}

/// Of three replicas of a range that was split off one is lost, and one has never come into being:
/// its node has got the left range's state, which lies behind the split. Nobody can be elected
/// without that node's vote.
#[test]
fn a_member_without_a_replica_votes_and_gets_it() {
    let (mut cluster, mut number) = split_while_n3_is_away(None);
    cluster.deaf = vec![(3, 7)];
    cluster.restart(3);
    live(&mut cluster, 10);
    assert_eq!(installed(&mut cluster), 1);
    assert_eq!(cluster.process(3).ranges().len(), 1);
    // The one that leads the right range is lost for ever.
    let leader = leads(&mut cluster, "m");
    cluster.crash(leader, CrashPolicy::LoseAll);
    cluster.deaf.clear();
    write(&mut cluster, &mut number, "m", vec![put("n", "3")]);
    live(&mut cluster, 2);
    let found = rows(&mut cluster, 3, NEWEST);
    let values: Vec<_> = found.into_iter().skip(1).map(|row| (row.0, row.1)).collect();
    assert_eq!(values, [(key("m"), Bytes::from("2")), (key("n"), Bytes::from("3"))]);
}

/// A member has no replica of a range yet, another one is lost, and the threshold of the first
/// one's store moves on with its other ranges: that of the range cannot, since nobody acknowledges
/// anything. The state is taken in all the same, with all versions that may still be read.
#[test]
fn a_state_with_an_older_threshold_than_the_store_is_taken_in() {
    let (mut cluster, mut number) = split_while_n3_is_away(Some(2_000_000));
    cluster.deaf = vec![(3, 7)];
    cluster.restart(3);
    live(&mut cluster, 12);
    assert_eq!(cluster.process(3).ranges().len(), 1);
    let leader = leads(&mut cluster, "m");
    for letter in ["x", "y", "z"] {
        write(&mut cluster, &mut number, "m", vec![large("m", letter), large("n", letter)]);
    }
    cluster.crash(leader, CrashPolicy::LoseAll);
    let other = 3 - leader;
    live(&mut cluster, 12);
    let live_on = |cluster: &mut Cluster, number: &mut u64| {
        for _ in 0..20 {
            write(cluster, number, "a", vec![put("a", "9")]);
            live(cluster, 1);
        }
    };
    live_on(&mut cluster, &mut number);
    let threshold = |cluster: &mut Cluster, id| cluster.process(id).store().gc_threshold();
    let moved_on = threshold(&mut cluster, 3);
    assert!(threshold(&mut cluster, other) < moved_on, "the right range's threshold moves");
    cluster.deaf.clear();
    for _ in 0..100 {
        cluster.pass(1, &[other, 3]);
        if cluster.process(3).ranges().len() == 2 {
            break;
        }
    }
    let lowered = threshold(&mut cluster, 3);
    assert!(lowered < moved_on, "it is not given the state:\n{}", cluster.describe(other));
    let of_right = |cluster: &mut Cluster, id, at| {
        let all = rows(cluster, id, at);
        all.into_iter().filter(|(row, ..)| *row >= key("m")).collect::<Rows>()
    };
    // Jobs of the store go by the lower threshold from here on.
    cluster.process(3).store().compact_span(&KeySpan::all()).expect("the disk works");
    let oldest = lowered.max(threshold(&mut cluster, other));
    assert!(oldest < moved_on);
    for at in [oldest, CommitTs(moved_on.0 - 1), moved_on, NEWEST] {
        let expected = of_right(&mut cluster, other, at);
        assert!(!expected.is_empty(), "{at}");
        assert_eq!(expected, of_right(&mut cluster, 3, at), "{at}");
    }
    // It counts, and what is not read any more goes.
    write(&mut cluster, &mut number, "m", vec![put("m", "4")]);
    live_on(&mut cluster, &mut number);
    assert!(threshold(&mut cluster, 3) > moved_on, "{}", cluster.describe(3));
}

/// Whoever leads by the vote of a member without a replica has nobody who acknowledges anything,
/// and loses its leadership within two seconds. A state that takes longer goes on all the same.
#[test]
fn a_state_goes_on_while_its_sender_is_elected_again_and_again() {
    let (mut cluster, mut number) = split_while_n3_is_away(None);
    cluster.deaf = vec![(3, 7)];
    cluster.restart(3);
    live(&mut cluster, 10);
    // Versions of one row: the range is not split. Each fills a piece.
    for letter in [b'a', b'b', b'c', b'd', b'e', b'f', b'g'] {
        let value = Bytes::from(vec![letter; 120_000]);
        write(&mut cluster, &mut number, "m", vec![Write::Put(key("m"), value)]);
        cluster.work();
    }
    let leader = leads(&mut cluster, "m");
    let other = 3 - leader;
    live(&mut cluster, 2);
    cluster.crash(leader, CrashPolicy::LoseAll);
    cluster.deaf.clear();
    cluster.slow = Some(3);
    let is_arriving = |cluster: &Cluster| {
        !cluster.nodes[2].fs.list(Path::new("/node/arriving")).expect("it is there").is_empty()
    };
    let (mut arrives, mut lost) = (0, 0);
    while cluster.process(3).ranges().len() < 2 {
        cluster.pass(1, &[other, 3]);
        cluster.work();
        arrives += usize::from(is_arriving(&cluster));
        let state = cluster.describe(other);
        let right = state.lines().nth(1).expect("it has two ranges");
        lost += usize::from(is_arriving(&cluster) && !right.contains("leads"));
        assert!(arrives < 200, "it is begun anew each time:\n{state}");
        assert!(cluster.ticks < 10_000, "it never begins:\n{state}");
    }
    println!("it arrived for {arrives} ticks; in {lost} of them its sender did not lead");
    assert!(arrives > 30 && lost > 0, "{arrives} {lost}");
    cluster.slow = None;
    write(&mut cluster, &mut number, "m", vec![put("n", "3")]);
    assert_eq!(leads(&mut cluster, "m"), other);
}
