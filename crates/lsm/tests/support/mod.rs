//! What the campaigns share: the oracle, random operations, option sets, comparison.

pub mod faults;
pub mod options;
pub mod oracle;
pub mod structure;
pub mod workload;

/// A number from the environment.
pub fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// The seeds of a campaign: `BRAID_FIRST_SEED` (default 0) and `BRAID_SEEDS` of them.
pub fn seeds(default_count: u64) -> std::ops::Range<u64> {
    let first = setting("BRAID_FIRST_SEED", 0);
    first..first + setting("BRAID_SEEDS", default_count)
}
