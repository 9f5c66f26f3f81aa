//! Where the keys of a test are kept: in a store of this process, or by three replicas of a range.
//!
//! Test files that use this are compiled twice: `isolation_over_a_range.rs` is `isolation.rs` once
//! more. The name of the test's crate says which of both it is.

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
    let options = StoreOptions::new(Arc::new(MemFs::new()), Path::new("db"), Arc::new(WallClock));
    Store::open(options).expect("opens").coordinator()
}
