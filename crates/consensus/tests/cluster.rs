//! Groups told in scripts, and the raft log under crashes and damage.

#[path = "group/scenarios.rs"]
mod group_scenarios;
#[path = "raft_log/crash.rs"]
mod raft_log_crash;
#[path = "raft_log/damage.rs"]
mod raft_log_damage;
#[path = "raft_log/read.rs"]
mod raft_log_read;
#[path = "raft_log/segments.rs"]
mod raft_log_segments;

/// The first seed, and how many: `BRAID_FIRST_SEED`, `BRAID_SEEDS`.
fn seeds(count: u64) -> (u64, u64) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    (number("BRAID_FIRST_SEED").unwrap_or(1), number("BRAID_SEEDS").unwrap_or(count))
}
