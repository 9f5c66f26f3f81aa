//! Ranges: key spans of which several nodes have a replica each.
//!
//! ```text
//!   request            message        tick          disk done
//!      |                  |             |               |
//!   +--v------------------v-------------v---------------v--+
//!   | Replicas                       all ranges of a node  |
//!   |   Replica    lease, latches, requests that wait      |-----> answers, messages
//!   |     Group    agrees on the order of commands         |
//!   |     Machine  applies commands, each exactly once     |
//!   +------------------+---------------------+-------------+
//!                      |                     |
//!                  raft log            one store (lsm)
//! ```
//!
//! The life of a commit: the leaseholder looks whether what was read still holds, takes a
//! timestamp, takes *latches* on what will be written and proposes one command. When a majority has
//! it durable, each replica applies it: data, outcome and the place in the log in one batch. Then
//! the leaseholder answers. Reads at the leaseholder ask nobody else: they wait for latches, and
//! read the store.
//!
//! Everything in here is a state machine: no thread, no socket, no clock but the one that is
//! given. What is promised: keys are linearizable and commits serializable as long as clocks are
//! within the bound of each other; what was acknowledged survives while a majority of the replicas
//! does; a commit that is asked for again happens once.
//!
//! The life of a split: a command of the range's log gives the keys from some key on to a new
//! range, with the same nodes, the lease and the outcomes that there are. Each replica makes its
//! replica of the new range when it applies that. Who asks the old one for keys that went is told.
//!
//! Until a majority of the new range is there, the old one keeps its replicas and its log
//! (`members::founding`).
//!
//! A transaction over several ranges is *prepared* in all of them but one, its *anchor*, where
//! one entry commits it; then the others are told (`prepared`, `several`).
//!
//! Versions that nobody reads any more go: each range has a threshold that follows the clock, and
//! stays below the oldest time that a transaction of any router reads (`collecting`).
//!
//! A replica that stays away is not waited for: the log of a range is cut when it is too long, and
//! who needs what is gone is given the state of the range (`raft_snapshot`). Until then it votes
//! with what it has, be it nothing (`absent`).
//!
//! Who has a replica changes by one replica at a time (`members`): what dead nodes had, others get,
//! and what leaves or joins is made up for.
//!
//! A range that nobody asks anything sleeps, until somebody does, or a node that it depends on is
//! not there any more (`leading::sleeping`).
//!
//! What was at some time of the past is read at any replica that knows that nothing of that time is
//! to come (`leading::closed`).
//!
//! What is not there yet: a place to look ranges up.
//!
//! What this crate does not know: SQL, transactions' buffers and locks, sockets, the raft crate.

mod absent;
mod answers;
mod collecting;
mod command;
mod deadlocks;
mod envelope;
mod foreign;
mod ids;
mod leading;
mod lease;
mod local_keys;
mod locking;
mod machine;
mod members;
mod outcomes;
mod prepared;
mod raft_snapshot;
mod replica;
mod replicas;
mod request;
mod serving;
mod several;
mod splitting;
mod state;

pub use answers::{AnswerTimes, Answered};
pub use command::{Split, Write};
pub use ids::{NodeId, RangeDescriptor, RangeId, TxnId};
pub use leading::recalls::Recalls;
pub use leading::room::{Room, RoomFloors, RoomWatch, ShortNodes};
pub use leading::sleeping::Activity;
pub use lease::Lease;
pub use local_keys::FIRST_DATA_KEY;
pub use members::locality::Locality;
pub use members::placement::{Members, Standing};
pub use prepared::{Anchor, Decision};
pub use raft_snapshot::thin_out;
pub use replicas::{NodeEffects, NodeEnv, NodeOptions, Replicas, StorePosition, is_of_cluster};
pub use request::{
    Answer, Ask, CommitAsk, HeldLocks, LockAsk, LockSession, LockStop, Locked, MetClocks,
    PrepareAsk, Request, RequestNumber, Unfinished, WaitReport, When,
};
pub use splitting::{SplitPoints, anywhere};
