//! The far side of transactions when it is ranges on several nodes.
//!
//! ```text
//!   Txn, Coordinator        kv
//!        |  trait Spans
//!      Router               cuts requests at the borders of ranges, finds leaseholders,
//!        |                  asks again, follows each commit to its outcome
//!        |  trait Transport
//!   leaseholders            range
//! ```
//!
//! A [`Router`] is the [`braid_kv::Spans`] of a node: what is above does not know whether its keys
//! are in this process or elsewhere. It keeps of each transaction its steps and where it has locks,
//! of each read timestamp what it has seen of other nodes' clocks, and of ranges what it was told.
//!
//! * Reads go to the leaseholder of each range. If something was written about when the transaction
//!   began, they end in [`braid_kv::KvError::Retry`], as when a row has changed.
//!   What was at a time of the past is asked of the replica on the same node first.
//! * Locks are taken range by range, in their order; each range keeps them with its lease.
//! * A commit that writes into one range is one request there. What it has read or locked in other
//!   ranges is validated first, *through* a time that the commit then must not come behind.
//! * A commit that writes into several ranges is prepared in all but one, at the same time, happens
//!   there, and is resolved in the others after it was answered. What somebody else has left half
//!   done is brought to its end by whoever meets it.
//!
//! What this crate does not know: SQL, sockets, the raft crate.

mod at_once;
mod clocks;
mod leases;
mod locks;
mod news;
mod patience;
mod reads;
mod router;
mod routes;
mod scans;
mod seam;
mod several;
mod transport;
mod txns;
mod watches;

pub use news::{News, Word};
pub use router::{Router, RouterOptions};
pub use transport::{Reply, Transport};
