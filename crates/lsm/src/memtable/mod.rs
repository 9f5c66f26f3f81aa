//! The sorted buffer of recent writes, in memory.
//!
//! Points live in an arena skiplist that readers walk without locks; range tombstones live in a
//! stacked skyline, over the same kind of list. One writer at a time (the commit pipeline).

mod arena;
mod arrival_log;
mod classes;
mod cursor;
mod head;
mod key_filter;
mod link;
mod skiplist;
mod table;

/// The atomics of the parts that loom runs as well (`tests/interleavings.rs`).
mod atomics {
    pub(super) use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
}

pub(crate) use arena::{Arena, prepare_chunks, wants_chunks};
pub(crate) use cursor::MemtableCursor;
pub(crate) use head::key_head;
pub(crate) use key_filter::KeyFilter;
pub(crate) use link::Link;
pub(crate) use skiplist::NodeRef;
pub(crate) use table::{Memtable, Tombstone, newest_tombstone};
