//! The rules of the engine, checked on a model that shares no code with it.
//!
//! A store of six keys lives through a random history: puts, deletes, range deletes at timestamps
//! that are not monotone across keys, flushes, three kinds of compactions with random output cuts,
//! GC thresholds, ingests, excises, crashes. After every step each key is read at several timestamps and compared
//! with an oracle that keeps everything (the read rule in its plain form).
//!
//! **Mutants.** Each rule of [`rules::Rules`] can be broken by itself. A run of the broken rules
//! must be caught by the oracle; otherwise the model is too weak, or the rule is not needed. So a
//! rule about dropping, stopping or parking is changed here first, with its mutant.
//!
//! ```sh
//! cargo test -p braid-lsm --test rules_model -- --nocapture            # 300 seeds
//! BRAID_SEEDS=5000 cargo test -p braid-lsm --test rules_model -- --nocapture
//! BRAID_FIRST_SEED=4711 BRAID_SEEDS=1 ...                               # one history again
//! ```

mod history;
mod rules;
mod store;
mod structure;

use history::{Failure, run};
use rules::{MUTANTS, Rules};

fn env(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default)
}

fn seeds() -> std::ops::Range<u64> {
    let first = env("BRAID_FIRST_SEED", 1);
    first..first + env("BRAID_SEEDS", 300)
}

#[test]
fn the_rules_are_right() {
    let mut reads = 0;
    for seed in seeds() {
        match run(seed, &Rules::default()) {
            Ok(n) => reads += n,
            Err(Failure { step, story }) => panic!("seed {seed}, step {step}: {story}"),
        }
    }
    println!("{} histories, {reads} reads, no mismatch", seeds().count());
    assert!(reads > 0);
}

#[test]
fn every_mutant_is_caught() {
    let mut survivors = Vec::new();
    for mutant in MUTANTS {
        let mut rules = Rules::default();
        (mutant.break_rule)(&mut rules);
        let caught = seeds().filter(|seed| run(*seed, &rules).is_err()).count();
        println!("{caught:6} of {} caught: {}", seeds().count(), mutant.name);
        if caught == 0 {
            survivors.push(mutant.name);
        }
    }
    assert!(survivors.is_empty(), "not caught: {survivors:#?}");
}
