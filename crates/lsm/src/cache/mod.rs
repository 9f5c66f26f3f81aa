//! Blocks kept in memory.

mod block_cache;
mod frame;
mod frame_pool;
mod owners;
mod prefetch;
mod shelf;

/// The atomics of the parts that loom runs as well (`tests/interleavings.rs`).
mod atomics {
    pub(super) use std::sync::atomic::{AtomicUsize, Ordering, fence};
}

pub use block_cache::Sidecar;
pub(crate) use block_cache::{BlockCache, COLD, Frames, Pinned, WARM};
pub(crate) use frame::{Frame, Header};
pub(crate) use frame_pool::{Life, region_bytes, release_free};
pub use prefetch::prefetch;
pub(crate) use shelf::OnShelf;
