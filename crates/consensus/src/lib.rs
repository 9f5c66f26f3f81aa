//! Replicated logs: several replicas agree on one sequence of entries.
//!
//! ```text
//!            tick   message   proposal   disk done
//!               \      |         |        /
//!                +-----v---------v-------+
//!                |         Group         |     one replica's part in one group: a pure machine
//!                +-----+---------+-------+
//!               /      |         |        \
//!            send   append     apply    who leads
//!                      |
//!                 +----v----+
//!                 | RaftLog |                  one log on disk for all groups of a node
//!                 +---------+
//! ```
//!
//! A [`Group`] has no clock, no thread, no disk and no socket. Whoever drives it tells it what has
//! happened, takes its [`Effects`] and carries them out. Elections, the order of entries and the
//! counting of votes come from the crate `raft`, which only this crate names: what it is told and
//! what it answers are types of our own.
//!
//! [`RaftLog`] keeps the entries and votes of all groups in segments, with one fsync for everybody
//! who waits. It stands on the engine's log of segments, so that loss, exchange and repetition of
//! files are told from a torn tail.
//!
//! What this crate does not know: what entries mean, key spans, leases, transactions, sockets.

mod absent;
pub mod codec;
mod entry;
mod error;
mod group;
mod group_log;
mod ids;
mod message;
mod raft_log;

pub use absent::{AbsentVote, vote_absent};
pub use entry::{Entry, EntryKind, HardState, ReplicaChange, ReplicaSet};
pub use error::{Error, Result};
pub use group::{Append, Effects, Fetch, Group, GroupOptions, GroupStart};
pub use ids::{GroupId, LogIndex, ReplicaId, Term};
pub use message::Message;
pub use raft_log::{LogBatch, LogPlace, LoggedGroup, RaftLog, RaftLogOptions};
