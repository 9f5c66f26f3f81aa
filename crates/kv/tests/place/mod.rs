//! Where the keys of a test are kept: in a store of this process, by three replicas of a range, or by
//! those of several ranges, which are split under the transactions that write into them.
//!
//! Test files that use this are compiled several times: `isolation_over_a_range.rs` is `isolation.rs`
//! once more. The name of the test's crate says which of both it is.

use std::path::Path;
use std::sync::Arc;

use braid_env::clock::WallClock;
use braid_env::fs::MemFs;
use braid_kv::{Coordinator, Store, StoreOptions};
use braid_sim::{LiveCluster, LiveOptions};

/// A coordinator of a place that has no keys yet.
pub fn coordinator() -> Arc<Coordinator> {
    if env!("CARGO_CRATE_NAME").ends_with("over_a_range") {
        return LiveCluster::start(LiveOptions::default()).coordinator();
    }
    if env!("CARGO_CRATE_NAME").ends_with("over_ranges") {
        let split_at_commits = Some(2);
        let options = LiveOptions { split_at_commits, ..LiveOptions::default() };
        return LiveCluster::start(options).coordinator();
    }
    let options = StoreOptions::new(Arc::new(MemFs::new()), Path::new("db"), Arc::new(WallClock));
    Store::open(options).expect("opens").coordinator()
}
