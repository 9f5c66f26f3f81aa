//! The write-ahead log: batches become durable here before anything else happens to them.
//!
//! `record` is the byte format of segments (shared with the manifest), `writer` the queue with
//! group commit, `reader` what recovery does with a segment, `segments` what file names say,
//! `chain` what segments know of each other, `settle` what is done about a torn end.
//! `segmented_log` is a log of the same kind for others.

mod chain;
mod reader;
mod record;
mod seek;
mod segmented_log;
mod segments;
mod settle;
mod writer;

pub(crate) use chain::{LogFacts, LogMark, any_number, read_head, walk_log};
pub(crate) use reader::{SegmentEnd, SegmentRead, read_segment};
pub(crate) use record::Framer;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use record::seal_chunks;
pub use segmented_log::{LogAppended, SegmentedLog, SegmentedLogOptions, VisitRecord};
pub(crate) use segments::{SegmentFile, segment_path};
pub(crate) use settle::settle;
pub(crate) use writer::{LogStart, LogWitness, Lsn, SpaceReserve, Wal};
