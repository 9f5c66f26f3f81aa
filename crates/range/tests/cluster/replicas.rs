//! Replicas that move: nodes that join, leave and are lost; replicas that were removed and do not
//! know it; crashes at any moment of a replica's end.

use std::sync::atomic::Ordering;

use braid_range::{Members, Standing};

use super::*;

impl Cluster {
    /// A node more, with an empty disk.
    fn join(&mut self) -> u64 {
        let micros = self.nodes[0].clock.now_micros();
        self.nodes.push(new_node(micros, None));
        let id = self.nodes.len() as u64;
        self.restart(id);
        id
    }

    /// All that run hear who belongs to the cluster, three replicas of each range.
    fn say_members(&mut self, standings: &[(u64, Standing)]) {
        let nodes = standings.iter().map(|(node, standing)| (NodeId(*node), *standing)).collect();
        let members = Members { replicas: 3, nodes, localities: BTreeMap::new() };
        for node in &mut self.nodes {
            if let Some(process) = &mut node.process {
                process.set_members(members.clone());
            }
        }
    }

    fn running(&self) -> Vec<u64> {
        let runs = |id: &u64| self.nodes[*id as usize - 1].process.is_some();
        (1..=self.nodes.len() as u64).filter(runs).collect()
    }

    /// The voters of a range as a node knows them, and how many come or go.
    fn voters(&mut self, id: u64, range: u64) -> (Vec<u64>, usize) {
        let ranges = self.process(id).ranges();
        let found = ranges.into_iter().find(|(of, _)| of.id == RangeId(range));
        let Some((of, _)) = found else { return (Vec::new(), 0) };
        let mut nodes: Vec<u64> = of.replicas.iter().map(|(_, node)| node.0).collect();
        nodes.sort_unstable();
        (nodes, of.learners.len() + of.leaving.len())
    }

    /// Time passes until a node knows these as the voters.
    fn until_voters(&mut self, id: u64, range: u64, expected: &[u64]) {
        for _ in 0..60 {
            if self.voters(id, range) == (expected.to_vec(), 0) {
                return;
            }
            let who = self.running();
            self.pass(10, &who);
        }
        let states: Vec<String> = self.running().into_iter().map(|id| self.describe(id)).collect();
        let found = self.voters(id, range);
        panic!("{found:?}, not {expected:?}:\n{}", states.join("\n"));
    }

    pub(super) fn rows_in_store(&mut self, id: u64) -> usize {
        let view = self.process(id).store().view(CommitTs(u64::MAX - 1)).expect("it is open");
        let span = KeySpan::new(FIRST_DATA_KEY, KeySpan::all().end);
        let mut scan = view.scan(span, ScanOptions::default()).expect("the disk works");
        let mut rows = 0;
        while scan.next_row().expect("the disk works").is_some() {
            rows += 1;
        }
        rows
    }

    fn write(&mut self, id: u64, number: u64, name: &str) {
        let txn = TxnId { began: self.now(id), number };
        let done = self.ask(id, commit(txn, vec![put(name, "1")]));
        assert!(matches!(done, Some(Answer::Committed { .. })), "{done:?}");
    }
}

use Standing::{Gone, Leaving, Member};

const FOUR: [(u64, Standing); 4] = [(1, Member), (2, Member), (3, Member), (4, Member)];

fn with(standing: Standing) -> [(u64, Standing); 4] {
    [(1, Member), (2, Member), (3, standing), (4, Member)]
}

#[test]
fn a_lost_node_is_replaced_and_its_replica_goes_when_it_comes_back() {
    let mut cluster = Cluster::new();
    cluster.write(1, 1, "a");
    cluster.pass(10, &[1, 2, 3]);
    cluster.crash(3, CrashPolicy::KeepAll);
    cluster.join();
    cluster.say_members(&FOUR);
    cluster.pass(100, &[1, 2, 4]);
    assert_eq!(cluster.voters(1, 1), (vec![1, 2, 3], 0), "it is away for 10 s only");
    cluster.say_members(&with(Gone));
    cluster.until_voters(4, 1, &[1, 2, 4]);
    assert_eq!(cluster.rows_in_store(4), 1);
    // The new one counts: with it and one of the others there is a majority.
    cluster.crash(2, CrashPolicy::LoseAll);
    cluster.write(1, 2, "b");
    cluster.restart(2);
    cluster.restart(3);
    assert_eq!(cluster.rows_in_store(3), 1, "it does not know it yet");
    cluster.pass(40, &[1, 2, 3, 4]);
    assert_eq!(cluster.process(3).ranges(), vec![]);
    assert_eq!(cluster.rows_in_store(3), 0);
    cluster.crash(3, CrashPolicy::LoseAll);
    cluster.restart(3);
    assert_eq!(cluster.process(3).ranges(), vec![]);
    // It comes back under another number, in place of one that leaves.
    cluster.say_members(&[(1, Member), (2, Leaving), (3, Member), (4, Member)]);
    cluster.until_voters(3, 1, &[1, 3, 4]);
    cluster.pass(60, &[1, 2, 3, 4]);
    assert_eq!(cluster.process(2).ranges(), vec![]);
    assert_eq!(cluster.rows_in_store(3), 2);
}

#[test]
fn the_leaseholder_gives_its_lease_away_before_it_leaves() {
    let mut cluster = Cluster::new();
    cluster.write(1, 1, "a");
    cluster.join();
    cluster.say_members(&[(1, Leaving), (2, Member), (3, Member), (4, Member)]);
    cluster.until_voters(4, 1, &[2, 3, 4]);
    cluster.pass(60, &[1, 2, 3, 4]);
    assert_eq!(cluster.process(1).ranges(), vec![]);
    assert_eq!(cluster.rows_in_store(1), 0);
    assert_eq!(cluster.ask(1, read("a", "z")), Some(Answer::NoReplica));
    let leader = (2..=4).find(|id| cluster.describe(*id).contains("leads")).expect("one leads");
    assert_eq!(shown(cluster.ask(leader, read("a", "z"))), "a=1");
}

#[test]
fn without_another_node_nothing_moves() {
    let mut cluster = Cluster::new();
    cluster.say_members(&[(1, Member), (2, Member), (3, Leaving)]);
    cluster.pass(200, &[1, 2, 3]);
    assert_eq!(cluster.voters(1, 1), (vec![1, 2, 3], 0));
}

#[test]
fn a_replica_without_a_vote_counts_for_nothing() {
    let mut cluster = Cluster::new();
    cluster.join();
    cluster.say_members(&FOUR);
    cluster.pass(12, &[1, 2, 3, 4]);
    // It has been heard of, and gets nothing since then.
    cluster.cut_off = vec![4];
    cluster.say_members(&with(Gone));
    cluster.pass(20, &[1, 2, 3]);
    assert_eq!(cluster.voters(1, 1), (vec![1, 2, 3], 1));
    cluster.crash(2, CrashPolicy::LoseAll);
    cluster.write(1, 1, "a");
    cluster.crash(3, CrashPolicy::LoseAll);
    cluster.cut_off.clear();
    let txn = TxnId { began: cluster.now(1), number: 2 };
    assert_eq!(cluster.ask(1, commit(txn, vec![put("b", "1")])), None, "one of three voters");
}

/// A replica that was removed and missed it says something: it is told, and nobody hears it.
#[test]
fn what_a_removed_replica_says_is_not_heard() {
    let mut cluster = Cluster::new();
    cluster.join();
    cluster.say_members(&FOUR);
    cluster.cut_off = vec![3];
    cluster.pass(10, &[1, 2, 3, 4]);
    cluster.say_members(&with(Gone));
    cluster.until_voters(1, 1, &[1, 2, 4]);
    let before = cluster.describe(1);
    let term = |text: &str| text.split(" t").nth(1).map(|rest| rest[..2].to_string());
    // It asks for votes all the time, and hears nothing.
    cluster.cut_off.clear();
    cluster.pass(3, &[1, 2, 4]);
    assert_eq!(cluster.voters(3, 1).0, [1, 2, 3]);
    cluster.pass(60, &[1, 2, 3, 4]);
    assert_eq!(cluster.process(3).ranges(), vec![]);
    assert_eq!(term(&cluster.describe(1)), term(&before), "there was no election");
}

/// A replica was removed and does not know it, and its node is about to get the next one: only the
/// first one goes.
#[test]
fn who_gets_a_replica_again_keeps_that_one() {
    let mut cluster = Cluster::new();
    cluster.write(1, 1, "a");
    cluster.join();
    cluster.say_members(&FOUR);
    cluster.pass(12, &[1, 2, 3, 4]);
    cluster.crash(3, CrashPolicy::KeepAll);
    cluster.say_members(&with(Gone));
    cluster.until_voters(1, 1, &[1, 2, 4]);
    // Another one leaves, and the third gets a replica again while its old one is still there.
    cluster.restart(3);
    cluster.cut_off = vec![3];
    cluster.pass(12, &[1, 2, 3, 4]);
    cluster.say_members(&[(1, Member), (2, Leaving), (3, Member), (4, Member)]);
    cluster.cut_off.clear();
    cluster.until_voters(1, 1, &[1, 3, 4]);
    cluster.pass(60, &[1, 2, 3, 4]);
    assert_eq!(cluster.rows_in_store(3), 1);
}

/// The power fails in front of each change of the disk while a replica goes: it is there, or gone,
/// and stays gone.
#[test]
fn a_replica_goes_whole_whatever_crashes() {
    for changes in 0.. {
        let mut cluster = Cluster::new();
        cluster.write(1, 1, "a");
        cluster.join();
        cluster.say_members(&with(Member));
        cluster.crash(3, CrashPolicy::KeepAll);
        cluster.say_members(&with(Gone));
        cluster.until_voters(4, 1, &[1, 2, 4]);
        cluster.restart(3);
        let random = Random::seeded(changes);
        cluster.nodes[2].fs.arm_crash(changes, random, CrashPolicy::Random(50));
        cluster.pass(60, &[1, 2, 3, 4]);
        let crashed = cluster.nodes[2].process.is_none();
        if crashed {
            cluster.restart(3);
            let rows = cluster.rows_in_store(3);
            let ranges = cluster.process(3).ranges().len();
            assert_eq!(rows, ranges, "{changes} changes: keys without a replica, or the reverse");
            cluster.pass(60, &[1, 2, 3, 4]);
        }
        cluster.nodes[2].fs.disarm_crash();
        assert_eq!(cluster.process(3).ranges(), vec![], "{changes} changes");
        assert_eq!(cluster.rows_in_store(3), 0, "{changes} changes");
        if !crashed {
            assert!(changes > 3, "it never lost power");
            return;
        }
    }
}

/// A node gets the replicas of a lost one, of ranges that hold little. Their states take their
/// places together, without files, and the power fails in front of each change of the disk.
#[test]
fn small_states_take_their_places_together_whatever_crashes() {
    const BORDERS: [&str; 5] = ["b", "c", "d", "e", "f"];
    let mut most_at_once = 0;
    for changes in (0..).step_by(2) {
        let mut cluster = Cluster::new();
        for (n, border) in BORDERS.iter().rev().enumerate() {
            let split = Ask::Split(Split { at: key(border), right: RangeId(20 + n as u64) });
            assert_eq!(cluster.ask(1, split), Some(Answer::Again));
            cluster.pass(3, &[1, 2, 3]);
        }
        for (number, border) in BORDERS.iter().enumerate() {
            let txn = TxnId { began: cluster.now(1), number: number as u64 };
            let range = 24 - number as u64;
            cluster.ask_range(range, 1, commit(txn, vec![put(border, "1")]));
        }
        cluster.join();
        cluster.say_members(&with(Member));
        cluster.crash(3, CrashPolicy::KeepAll);
        let random = Random::seeded(changes);
        cluster.nodes[3].fs.arm_crash(changes, random, CrashPolicy::Random(50));
        cluster.say_members(&with(Gone));
        for _ in 0..100 {
            let before = installed_by(&mut cluster, 4);
            cluster.pass(1, &[1, 2, 4]);
            if cluster.nodes[3].process.is_none() {
                break;
            }
            most_at_once = most_at_once.max(installed_by(&mut cluster, 4) - before);
        }
        let crashed = cluster.nodes[3].process.is_none();
        cluster.nodes[3].fs.disarm_crash();
        if crashed {
            cluster.restart(4);
            cluster.say_members(&with(Gone));
        }
        for range in [1, 20, 21, 22, 23, 24] {
            cluster.until_voters(4, range, &[1, 2, 4]);
        }
        cluster.crash(4, CrashPolicy::LoseAll);
        cluster.restart(4);
        cluster.pass(30, &[1, 2, 4]);
        assert_eq!(cluster.rows_in_store(4), BORDERS.len(), "{changes} changes");
        if !crashed {
            assert!(changes > 10 && most_at_once > 1, "{changes} changes, {most_at_once}");
            return;
        }
    }
}

fn installed_by(cluster: &mut Cluster, id: u64) -> u64 {
    let process = cluster.nodes[id as usize - 1].process.as_ref();
    process.map_or(0, |process| process.states_installed().load(Ordering::Relaxed))
}

#[test]
fn both_halves_of_a_range_that_was_split_move_on() {
    let mut cluster = Cluster::new();
    cluster.write(1, 1, "b");
    let split = Ask::Split(Split { at: key("k"), right: RangeId(2) });
    cluster.ask(1, split);
    cluster.crash(3, CrashPolicy::LoseAll);
    cluster.join();
    cluster.say_members(&with(Gone));
    cluster.until_voters(4, 1, &[1, 2, 4]);
    cluster.until_voters(4, 2, &[1, 2, 4]);
    // The split itself is lost with what was not synced, and both replicas were removed since then.
    cluster.restart(3);
    cluster.pass(150, &[1, 2, 3, 4]);
    assert_eq!(cluster.process(3).ranges(), vec![]);
    assert_eq!(cluster.rows_in_store(3), 0);
}

/// The power fails in front of each change of the disk while a node's replica goes that was removed
/// long ago, and the next one of the same range takes its place: no log of the first one is taken
/// for one of the second.
#[test]
fn a_replica_takes_the_place_of_a_removed_one_whatever_crashes() {
    for round in 0.. {
        let (changes, seed) = (round / 3, round);
        let mut cluster = Cluster::new();
        cluster.write(1, 1, "a");
        cluster.join();
        cluster.say_members(&with(Member));
        cluster.crash(3, CrashPolicy::KeepAll);
        cluster.say_members(&with(Gone));
        cluster.until_voters(4, 1, &[1, 2, 4]);
        cluster.restart(3);
        let random = Random::seeded(seed);
        cluster.nodes[2].fs.arm_crash(changes, random, CrashPolicy::Random(50));
        // It learns that its first replica was removed by getting another one.
        cluster.say_members(&[(1, Member), (2, Leaving), (3, Member), (4, Member)]);
        for _ in 0..20 {
            cluster.pass(10, &[1, 2, 3, 4]);
            if cluster.nodes[2].process.is_none() {
                break;
            }
        }
        let crashed = cluster.nodes[2].process.is_none();
        cluster.nodes[2].fs.disarm_crash();
        if crashed {
            cluster.restart(3);
            cluster.say_members(&[(1, Member), (2, Leaving), (3, Member), (4, Member)]);
        }
        cluster.until_voters(3, 1, &[1, 3, 4]);
        assert_eq!(cluster.rows_in_store(3), 1, "{changes} changes");
        if !crashed {
            assert!(changes > 10, "it never lost power");
            return;
        }
    }
}

/// A range that was split off is on one node only: the others have the split in their logs at most.
/// As long as that may be so, none of them gives up its replica of the left range.
#[test]
fn no_replica_goes_before_what_was_split_off_is_founded() {
    let mut cluster = Cluster::new();
    cluster.write(1, 1, "b");
    cluster.join();
    cluster.say_members(&FOUR);
    cluster.pass(12, &[1, 2, 3, 4]);
    // Nobody hears of the right range from the node that leads.
    cluster.deaf = vec![(2, 2), (3, 2), (4, 2)];
    let split = Ask::Split(Split { at: key("k"), right: RangeId(2) });
    assert_eq!(cluster.ask(1, split), Some(Answer::Again));
    cluster.say_members(&with(Leaving));
    cluster.pass(200, &[1, 2, 3, 4]);
    assert_eq!(cluster.voters(1, 1), (vec![1, 2, 3], 0));
    cluster.deaf.clear();
    cluster.until_voters(4, 1, &[1, 2, 4]);
    cluster.until_voters(4, 2, &[1, 2, 4]);
}

/// The node that leads a range may have no replica of what was split off it, or one that is behind.
#[test]
fn who_hears_nothing_of_what_was_split_off_asks_whether_it_is_founded() {
    let mut cluster = Cluster::new();
    cluster.write(1, 1, "b");
    cluster.join();
    cluster.say_members(&FOUR);
    cluster.pass(12, &[1, 2, 3, 4]);
    cluster.deaf = vec![(1, 2)];
    let split = Ask::Split(Split { at: key("k"), right: RangeId(2) });
    assert_eq!(cluster.ask(1, split), Some(Answer::Again));
    cluster.pass(60, &[1, 2, 3, 4]);
    // The others have founded it; the one that leads the left range has no entry of it.
    cluster.say_members(&with(Leaving));
    cluster.until_voters(4, 1, &[1, 2, 4]);
}

/// The same for a replica that applies the entry that removes it.
#[test]
fn a_replica_that_hears_of_its_end_goes_whole_whatever_crashes() {
    let mut crashes = 0;
    for round in 0.. {
        let (changes, seed) = (round / 3, round);
        let mut cluster = Cluster::new();
        cluster.write(1, 1, "a");
        cluster.join();
        cluster.say_members(&with(Leaving));
        cluster.pass(20, &[1, 2, 3, 4]);
        let random = Random::seeded(seed);
        cluster.nodes[2].fs.arm_crash(changes, random, CrashPolicy::Random(50));
        for _ in 0..12 {
            cluster.pass(10, &[1, 2, 3, 4]);
            if cluster.nodes[2].process.is_none() {
                break;
            }
        }
        let crashed = cluster.nodes[2].process.is_none();
        cluster.nodes[2].fs.disarm_crash();
        if crashed {
            crashes += 1;
            cluster.restart(3);
            cluster.say_members(&with(Leaving));
        }
        cluster.until_voters(4, 1, &[1, 2, 4]);
        cluster.pass(60, &[1, 2, 3, 4]);
        assert_eq!(cluster.process(3).ranges(), vec![], "{changes} changes");
        assert_eq!(cluster.rows_in_store(3), 0, "{changes} changes");
        if !crashed {
            assert!(crashes > 20, "it lost power {crashes} times");
            return;
        }
    }
}

/// All others are exchanged while a member is away: it answers replicas that it has never heard of.
#[test]
fn who_was_away_while_all_others_were_exchanged_catches_up() {
    let mut cluster = Cluster::new();
    cluster.write(1, 1, "a");
    cluster.join();
    cluster.join();
    let all = |first, second| [(1, first), (2, second), (3, Member), (4, Member), (5, Member)];
    cluster.say_members(&all(Member, Member));
    cluster.pass(12, &[1, 2, 3, 4, 5]);
    cluster.cut_off = vec![3];
    cluster.say_members(&all(Leaving, Member));
    cluster.pass(150, &[1, 2, 4, 5]);
    cluster.say_members(&all(Leaving, Leaving));
    cluster.until_voters(4, 1, &[3, 4, 5]);
    cluster.pass(60, &[1, 2, 4, 5]);
    for id in [1, 2] {
        assert_eq!(cluster.process(id).ranges(), vec![]);
        cluster.crash(id, CrashPolicy::KeepAll);
    }
    assert_eq!(cluster.voters(3, 1), (vec![1, 2, 3], 0), "it has heard of nothing");
    cluster.cut_off.clear();
    cluster.pass(30, &[3, 4, 5]);
    assert_eq!(cluster.voters(3, 1), (vec![3, 4, 5], 0));
    // It counts.
    let leads = |cluster: &mut Cluster, id| cluster.describe(id).contains("leads");
    let leader = if leads(&mut cluster, 4) { 4 } else { 5 };
    cluster.crash(9 - leader, CrashPolicy::LoseAll);
    cluster.write(leader, 2, "b");
}

/// n3 loses its vote by an entry that only it has heard of when n1, which has proposed that, loses
/// power: n3 is elected, since it has the longest log, and the entry is committed. It cannot get
/// the lease, so it hands on.
#[test]
fn who_leads_when_it_loses_its_vote_hands_on() {
    let mut cluster = Cluster::new();
    cluster.write(1, 1, "a");
    cluster.join();
    cluster.deaf_when = Some(("n3 loses its vote", vec![(2, 1), (4, 1)]));
    cluster.say_members(&with(Leaving));
    let mut ticks = 0;
    while cluster.deaf_when.is_some() {
        cluster.pass(1, &[1, 2, 3, 4]);
        ticks += 1;
        assert!(ticks < 400, "{}", cluster.describe(1));
    }
    assert_eq!(cluster.voters(1, 1), (vec![1, 2, 3, 4], 0));
    cluster.crash(1, CrashPolicy::LoseAll);
    // It may stay after all: it does not hand on since its node is leaving.
    cluster.say_members(&FOUR);
    cluster.deaf.clear();
    let mut has_led = false;
    for _ in 0..200 {
        cluster.pass(1, &[2, 3, 4]);
        has_led |= cluster.describe(3).contains("leads");
    }
    assert!(has_led, "{}", cluster.describe(3));
    let leads = |cluster: &mut Cluster, id| cluster.describe(id).contains("leads");
    let leader = if leads(&mut cluster, 2) { 2 } else { 4 };
    cluster.write(leader, 2, "b");
    cluster.until_voters(leader, 1, &[1, 2, 4]);
}
