//! The write-ahead log: batches become durable here before anything else happens to them.
//!
//! `record` is the byte format of segments (shared with the manifest), `writer` the queue with
//! group commit, `reader` what recovery does with a segment, `segments` what file names say.

mod reader;
mod record;
mod segments;
mod writer;

pub(crate) use reader::{SegmentEnd, read_segment};
pub(crate) use record::Framer;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use record::seal_chunks;
pub(crate) use segments::{SegmentFile, ends_before, segment_path, segments_from};
pub(crate) use writer::{Lsn, SpaceReserve, Wal};
