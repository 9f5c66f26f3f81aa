//! The raft log: entries and promises of all groups of a node, in one log on disk.
//!
//! `batch` is what is written at once and its byte form, `log` the log that is open, `recovery`
//! what is known of each group after its records were read, `runs` where entries lie in files.

mod batch;
mod log;
mod recovery;
mod runs;

pub use batch::LogBatch;
pub use log::{LogPlace, RaftLog, RaftLogOptions};
pub use recovery::LoggedGroup;
