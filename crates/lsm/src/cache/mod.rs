//! Blocks kept in memory.

mod block_cache;
mod frame;
mod frame_pool;
mod owners;
mod prefetch;

/// The atomics of the parts that loom runs as well (`tests/interleavings.rs`).
mod atomics {
    pub(super) use std::sync::atomic::{AtomicUsize, Ordering, fence};
}

pub(crate) use block_cache::{BlockCache, COLD, Frames, WARM};
pub(crate) use frame::Frame;
pub(crate) use frame_pool::region_bytes;
pub(crate) use prefetch::prefetch;
