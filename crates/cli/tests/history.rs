//! Random transactions by several clients against the real binary; the checker of histories says
//! what they saw that their isolation level forbids.
//!
//! `BRAID_TRANSACTIONS=100000` runs the long form, `BRAID_FIRST_SEED` other transactions; `braid
//! workload history` does the same against any node.

mod support;

use braid_workload::history::{Level, Settings, check, run};
use support::Node;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default)
}

fn clean(level: Level, transactions: u64) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let node = Node::start(&directory.path().join("store"));
    let settings = Settings {
        url: node.url.clone(),
        transactions: number("BRAID_TRANSACTIONS", transactions),
        level,
        seed: number("BRAID_FIRST_SEED", 1),
        clients: 4,
    };
    let (history, changes) = run(&settings).expect("the workload runs");
    let report = check(&history, level);
    println!("{level:?}, seed {}, {changes} schema changes: {report}", settings.seed);
    assert!(report.forbidden.is_empty(), "{level:?}, seed {}: {report}", settings.seed);
    let orphans = "SELECT count(*) FROM member m LEFT JOIN family f ON f.k = m.k WHERE f.k IS NULL";
    let orphans: i64 = node.client().query_one(orphans, &[]).expect("a join").get(0);
    assert_eq!(orphans, 0, "{level:?}: children without their family");
    assert!(changes > 0 && report.outcomes[0] > 0, "nothing happened: {report}");
}

#[test]
fn serializable_histories_are_clean() {
    clean(Level::Serializable, 2_000);
}

#[test]
fn repeatable_read_histories_have_only_write_skew() {
    clean(Level::RepeatableRead, 1_000);
}

#[test]
fn read_committed_histories_have_neither_dirty_writes_nor_dirty_reads() {
    clean(Level::ReadCommitted, 1_000);
}
