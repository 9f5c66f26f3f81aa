//! The write-ahead log: batches become durable here before anything else happens to them.
//!
//! `record` is the byte format of segments (shared with the manifest), `writer` the queue with
//! group commit, `reader` what recovery does with a segment, `segments` what file names say,
//! `chain` what segments know of each other.

mod chain;
mod reader;
mod record;
mod segments;
mod writer;

pub(crate) use chain::{LogFacts, LogMark, Walked, any_number, read_head, walk_log};
pub(crate) use reader::{SegmentEnd, SegmentRead, read_segment};
pub(crate) use record::Framer;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use record::seal_chunks;
pub(crate) use segments::{SegmentFile, segment_path};
pub(crate) use writer::{LogStart, LogWitness, Lsn, SpaceReserve, Wal};
