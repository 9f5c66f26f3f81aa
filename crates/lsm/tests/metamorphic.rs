//! The metamorphic campaign: random histories under every option set, each answer predicted.
//!
//! One seed is one history: batches (accepted or refused), gets, scans in both directions with
//! classes, limits and jumps, conflict checks, held views, gc thresholds, flushes, compactions,
//! reopening with other options. Background work runs as single steps that the seed chooses.
//!
//! ```text
//!   cargo test -p braid-lsm --test metamorphic                                  the short version
//!   BRAID_SEEDS=5000 cargo test --release -p braid-lsm --test metamorphic       the long campaign
//!   BRAID_FIRST_SEED=17 BRAID_SEEDS=1 cargo test -p braid-lsm --test metamorphic    seed 17 again
//! ```
//!
//! Long campaign: every seed runs under two option sets in turn; `BRAID_ALL_SETS=1` runs it under
//! all of them.

#[allow(dead_code)]
mod support;

use std::collections::BTreeMap;

use braid_lsm::Metrics;
use support::options::SETS;
use support::workload::Subject;
use support::{seeds, setting};

fn run(seed: u64, set: usize) -> Metrics {
    let mut subject = Subject::new(seed, set);
    let steps = 150 + seed % 5 * 100;
    for _ in 0..steps {
        subject.step().unwrap();
        if subject.random.chance(1, 150) {
            let other = subject.side.below(SETS.len() as u64) as usize;
            subject.reopen(other).unwrap();
        }
    }
    subject.check_all().unwrap();
    subject.tasks.run_all();
    subject.check_all().unwrap();
    let metrics = subject.db.metrics();
    subject.reopen(set).unwrap();
    subject.check_all().unwrap();
    metrics
}

#[test]
fn every_answer_is_the_predicted_one() {
    let all = setting("BRAID_ALL_SETS", 0) == 1;
    let mut flushes = 0;
    let mut done = BTreeMap::new();
    for seed in seeds(40) {
        let sets: Vec<usize> = if all || seed < 6 {
            (0..SETS.len()).collect()
        } else {
            vec![seed as usize % SETS.len(), (seed as usize / 7 + 3) % SETS.len()]
        };
        for set in sets {
            let metrics = run(seed, set);
            flushes += metrics.flushes;
            for numbers in metrics.reasons {
                let (compactions, moves) = done.entry(numbers.reason).or_insert((0, 0));
                *compactions += numbers.compactions;
                *moves += numbers.moves;
            }
        }
    }
    println!("since the last reopens: {flushes} flushes; compactions and moves: {done:?}");
    let all = done.values().all(|(compactions, _)| *compactions > 0);
    assert!(flushes > 0 && all, "a campaign that lacks something proves little");
}
