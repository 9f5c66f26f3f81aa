//! Simulated clusters: seeds that must be good, and broken promises that must be noticed.
//!
//! `BRAID_SEEDS` and `BRAID_FIRST_SEED` choose other seeds; `BRAID_TRACE=1` prints what happened
//! last in a run that is not good.

use std::collections::BTreeMap;

use braid_sim::{Plan, Sabotage, Verdict, run};

#[path = "cluster/schemas.rs"]
mod schemas;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

fn seeds(count: u64) -> std::ops::Range<u64> {
    let first = number("BRAID_FIRST_SEED").unwrap_or(1);
    first..first + number("BRAID_SEEDS").unwrap_or(count)
}

fn show(plan: &Plan, verdict: &Verdict) -> String {
    let tail = if number("BRAID_TRACE").is_some() {
        Vec::from(verdict.tail.clone()).join("\n")
    } else {
        String::new()
    };
    format!("{plan:?}\n{verdict}\n{tail}")
}

#[test]
fn histories_are_serializable_and_live_whatever_breaks() {
    let (mut seconds, mut events, mut committed) = (0, 0, 0);
    let mut counts = BTreeMap::<&str, u64>::new();
    let all = seeds(10);
    for seed in all.clone() {
        let plan = Plan::of_seed(seed);
        let verdict = run(&plan);
        assert!(verdict.is_good(), "seed {seed}: {}", show(&plan, &verdict));
        seconds += verdict.micros / 1_000_000;
        events += verdict.events;
        committed += verdict.outcomes[0];
        verdict.counts.iter().for_each(|(what, n)| *counts.entry(what).or_default() += n);
    }
    println!("seeds {all:?}: {seconds} simulated seconds, {events} events, {committed} commits");
    println!("{counts:?}");
    assert_ne!(counts["seconds collected"], 0);
    assert_ne!(counts["states installed"], 0);
    assert_ne!(counts["leases given away"], 0);
}

#[test]
fn transactions_of_kv_are_serializable_and_live_whatever_breaks() {
    let (mut seconds, mut events, mut outcomes) = (0, 0, [0; 3]);
    let mut counts = BTreeMap::<&str, u64>::new();
    let all = seeds(11);
    for seed in all.clone() {
        let plan = Plan::of_seed(seed).over_kv();
        let verdict = run(&plan);
        assert!(verdict.is_good(), "seed {seed}: {}", show(&plan, &verdict));
        seconds += verdict.micros / 1_000_000;
        events += verdict.events;
        (0..3).for_each(|n| outcomes[n] += verdict.outcomes[n]);
        verdict.counts.iter().for_each(|(what, n)| *counts.entry(what).or_default() += n);
    }
    println!("seeds {all:?}: {seconds} simulated seconds, {events} events, outcomes {outcomes:?}");
    println!("{counts:?}");
    assert!(counts["near reads"] > 100, "{}", counts["near reads"]);
    assert_ne!(counts["seconds collected"], 0);
    assert_ne!(counts["states installed"], 0);
    assert_ne!(counts["leases given away"], 0);
}

/// Runs a plan of each seed with clients of both kinds, and adds up what has happened.
fn counted(all: std::ops::Range<u64>, plan: fn(Plan) -> Plan) -> BTreeMap<&'static str, u64> {
    let mut counts = BTreeMap::<&str, u64>::new();
    for seed in all.clone() {
        for plan in [plan(Plan::of_seed(seed)), plan(Plan::of_seed(seed).over_kv())] {
            let verdict = run(&plan);
            assert!(verdict.is_good(), "seed {seed}: {}", show(&plan, &verdict));
            verdict.counts.iter().for_each(|(what, n)| *counts.entry(what).or_default() += n);
        }
    }
    println!("seeds {all:?}: {counts:?}");
    counts
}

/// Nodes join, leave and are lost for ever, under all other trouble.
#[test]
fn replicas_move_and_nothing_is_lost_whatever_breaks() {
    let counts = counted(seeds(10), Plan::moving);
    for what in ["nodes joined", "nodes asked to leave", "disks lost", "replicas removed"] {
        assert_ne!(counts.get(what), None, "no {what}");
    }
}

/// A node that was alone, and has rows, becomes the first of a cluster: its rows are there at the
/// end, on all nodes, whatever breaks meanwhile.
#[test]
fn a_node_that_was_alone_becomes_the_first_and_nothing_is_lost_whatever_breaks() {
    let counts = counted(seeds(8), Plan::grown);
    assert_ne!(counts["states installed"], 0);
}

/// Ranges sleep most of the time, and whatever breaks does so in their sleep: nodes die, lose each
/// other in both directions or in one, stand still. Somebody asks, and is answered.
#[test]
fn ranges_that_sleep_wake_whatever_breaks() {
    let counts = counted(seeds(6), Plan::dozing);
    for what in ["crashes", "partitions", "one-way cuts", "pauses"] {
        assert_ne!(counts.get(what), None, "no {what}");
    }
    assert!(counts["naps"] > 500, "{}", counts["naps"]);
}

/// Disks become full, of one node or of all, also in the middle of a write, and get room back:
/// nothing is lost, and who has stood still goes on.
#[test]
fn full_disks_lose_nothing_and_nodes_go_on_when_there_is_room() {
    let counts = counted(seeds(8), Plan::filling);
    for what in ["out of room", "short of room", "rooms regained", "stopped by full disks"] {
        assert_ne!(counts.get(what), None, "no {what}");
    }
}

/// A range is split in front of a family of which only a later row is there so far: the border is
/// in
/// front of all that it may have. Clients that look at a number whole cannot do so over a border.
#[test]
fn a_family_whose_first_rows_come_late_stays_whole() {
    let plan = Plan::of_seed(1025);
    let verdict = run(&plan);
    assert!(verdict.is_good(), "{}", show(&plan, &verdict));
}

/// A commit is proposed when its range is about to be split between its keys. The client asks again,
/// and comes to a replica that knows of the split, and not of the commit behind it.
#[test]
fn a_commit_behind_a_split_is_not_said_to_have_come_to_nothing() {
    let plan = Plan::of_seed(20_000).dozing();
    let verdict = run(&plan);
    assert!(verdict.is_good(), "{}", show(&plan, &verdict));
}

#[test]
fn a_seed_gives_the_same_trace_again() {
    for seed in seeds(4).flat_map(|seed| [seed, seed + 1_000_000]) {
        let over_kv = seed > 1_000_000;
        let plan = Plan::of_seed(seed % 1_000_000);
        let plan = if over_kv { plan.over_kv().moving() } else { plan };
        let (one, two) = (run(&plan), run(&plan));
        assert_eq!((one.trace, one.events), (two.trace, two.events), "seed {seed}");
        assert_eq!(one.tail, two.tail, "seed {seed}");
    }
}

/// The first seed whose run notices the broken promise.
fn noticed(sabotage: Sabotage, most: u64) {
    noticed_in(sabotage, seeds(most));
}

fn noticed_in(sabotage: Sabotage, seeds: std::ops::Range<u64>) {
    for seed in seeds.clone() {
        let plan = Plan::of_seed(seed).sabotaged(sabotage);
        let verdict = run(&plan);
        if !verdict.is_good() {
            println!("{sabotage:?}: seed {seed}: {}", verdict.problems.join("\n"));
            return;
        }
    }
    panic!("seeds {seeds:?} do not notice {sabotage:?}");
}

#[test]
fn disks_that_lie_are_noticed() {
    // Seed 2 ends within the library of consensus: it panics when its log has lost what it knows of.
    noticed_in(Sabotage::DisksLie, 3..33);
}

#[test]
fn clocks_beyond_the_bound_are_noticed() {
    noticed(Sabotage::ClocksBeyondBound, 60);
}

#[test]
fn commits_tried_again_under_new_names_are_noticed() {
    noticed(Sabotage::NewNames, 30);
}

#[test]
fn a_client_that_takes_again_for_done_is_noticed() {
    noticed(Sabotage::AgainIsDone, 30);
}

#[test]
fn logs_that_are_cut_too_early_are_noticed() {
    noticed(Sabotage::CutTooEarly, 60);
}

#[test]
fn parts_that_are_prepared_and_forgotten_are_noticed() {
    noticed(Sabotage::LostIntent, 30);
}

#[test]
fn parts_that_happen_before_they_are_decided_are_noticed() {
    noticed(Sabotage::ResolveBeforeRecord, 30);
}

#[test]
fn forgotten_records_of_commits_are_noticed() {
    noticed(Sabotage::RecordForgotten, 60);
}

#[test]
fn readers_that_skip_their_doubts_are_noticed() {
    noticed(Sabotage::SkippedUncertainty, 60);
}

#[test]
fn reads_that_are_not_guarded_while_prepared_are_noticed() {
    noticed(Sabotage::UnguardedReads, 200);
}

#[test]
fn nodes_that_answer_for_keys_they_gave_away_are_noticed() {
    noticed(Sabotage::StaleDescriptor, 30);
}

#[test]
fn versions_that_are_dropped_while_somebody_reads_them_are_noticed() {
    noticed_in(Sabotage::CollectEverything, 40..100);
}

#[test]
fn conflicts_that_are_not_seen_because_of_raised_floors_are_noticed() {
    noticed(Sabotage::FloorsRaised, 60);
}

#[test]
fn locks_that_went_with_their_lease_and_are_taken_for_held_are_noticed() {
    noticed(Sabotage::LocksTakenForHeld, 60);
}

#[test]
fn states_without_range_tombstones_are_noticed() {
    noticed(Sabotage::StatesWithoutTombstones, 30);
}

#[test]
fn states_without_outcomes_are_noticed() {
    noticed(Sabotage::StatesWithoutOutcomes, 60);
}

#[test]
fn states_without_prepared_parts_are_noticed() {
    // It takes a client that dies with a prepared part while a node that needs its state is away:
    // seldom so.
    noticed_in(Sabotage::StatesWithoutPrepared, 240..300);
}
