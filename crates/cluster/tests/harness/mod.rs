//! What tests of a router have in common.

use std::sync::Arc;
use std::time::Duration;

use braid_cluster::RouterOptions;
use braid_env::clock::{Hlc, WallClock};
use braid_env::fs::MemFs;
use braid_range::{NodeId, RangeDescriptor, Recalls};

/// Of a router on node 1 that knows these ranges, and does not wait for long.
pub fn options(ranges: Vec<RangeDescriptor>) -> RouterOptions {
    RouterOptions {
        home: Some(NodeId(1)),
        coordinator: 1,
        hlc: Arc::new(Hlc::new(Arc::new(WallClock))),
        wall: Arc::new(WallClock),
        max_clock_offset_micros: 250_000,
        patience: Duration::from_millis(20),
        oldest_readable: Arc::default(),
        recalls: Recalls::default(),
        fs: Arc::new(MemFs::new()),
        ranges,
    }
}
