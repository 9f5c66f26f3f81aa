//! The single-fault campaign: one script, run again for every call that it makes, each time with
//! that call failing and a crash behind it.

use std::sync::Arc;

use braid_env::fs::{CrashPolicy, FaultFs, FileSystem, MemFs};
use braid_env::random::Random;

use super::setting;

/// All kinds of failures for a call with `BRAID_ALL_FAULTS=1`, otherwise one of them in turn.
fn outcomes(nth: u64) -> Vec<&'static str> {
    let all = ["EIO", "ENOSPC", "short"];
    match setting("BRAID_ALL_FAULTS", 0) {
        1 => all.to_vec(),
        _ => vec![all[nth as usize % all.len()]],
    }
}

/// Runs `script` with call 1, 2, .. of `operations` failing; `verify` gets what is on the device
/// after a crash, what the script said, and words for the case.
pub fn each_single_fault<T>(
    seed: u64,
    operations: u64,
    script: impl Fn(Arc<dyn FileSystem>) -> T,
    verify: impl Fn(&MemFs, &T, &str),
) {
    assert!(operations > 300, "the script makes only {operations} calls");
    for nth in 1..=operations {
        for outcome in outcomes(nth) {
            let base = MemFs::new();
            let faulty = FaultFs::new(Arc::new(base.clone()), seed);
            faulty.add_rule(&format!("any(*) nth={nth} -> {outcome}")).unwrap();
            let done = script(Arc::new(faulty));
            let policy = if nth % 2 == 0 { CrashPolicy::LoseAll } else { CrashPolicy::Random(50) };
            let after = base.crash_clone(&mut Random::seeded(nth), policy);
            verify(&after, &done, &format!("seed {seed}, call {nth} -> {outcome}"));
        }
    }
}
