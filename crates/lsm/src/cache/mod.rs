//! Blocks kept in memory.

mod block_cache;

pub(crate) use block_cache::{BlockCache, COLD, Frames, WARM};
