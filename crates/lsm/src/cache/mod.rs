//! Blocks kept in memory.

mod block_cache;
mod frame;
mod prefetch;

pub(crate) use block_cache::{BlockCache, COLD, Frames, WARM};
pub(crate) use frame::Frame;
pub(crate) use prefetch::prefetch;
