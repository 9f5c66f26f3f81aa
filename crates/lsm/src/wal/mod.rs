//! The write-ahead log: batches become durable here before anything else happens to them.
//!
//! `record` is the byte format of segments (shared with the manifest), `writer` the queue with
//! group commit, `reader` what recovery does with a segment.

mod reader;
mod record;
mod writer;

pub(crate) use reader::{SegmentEnd, read_segment};
pub(crate) use record::Framer;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use record::seal_chunks;
pub(crate) use writer::{Lsn, SpaceReserve, Wal, segment_path};
