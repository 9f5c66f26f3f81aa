//! One node of a cluster as a process.
//!
//! ```text
//!   Coordinator          of this node: transactions of its clients
//!        |
//!      Router            cluster
//!        |  Carrier      asks this node's replicas, or others'
//!   +----+-------------------------+
//!   |                              |
//!  inbox ──► driver thread       Peers ──► one connection to each other node
//!            Replicas              ▲
//!            files, clock          └────── one connection from each
//! ```
//!
//! One thread owns the replicas: it takes what comes, lets time pass, syncs the raft log once for
//! all that has come meanwhile, and sends what they want sent. Nobody else waits for the disk of
//! the raft log; the store is synced by a thread of its own, every second.
//!
//! A connection carries frames in one direction ([`frame`]): whoever has something to say dials.
//! Its first frame says who dials, which cluster, and which format; the other side agrees, or
//! says why not ([`identity`]). What does not fit the format ends that connection and nothing else.
//!
//! What may be lost: everything that is sent. Raft repeats what matters, a router asks again, and
//! what must not happen twice has a name.
//!
//! The first members are said at the first start. Others join later, leave, and are replaced: the
//! [`roster`] says who belongs to the cluster, and replicas follow it.
//!
//! What this crate does not know: SQL, the raft crate, async runtimes.

mod calls;
mod carrier;
mod codec;
mod driver;
pub mod frame;
pub mod identity;
mod member;
mod office;
mod orders;
mod peers;
mod requests;
pub mod roster;

pub use frame::Order;
pub use member::{Member, MemberChanges, MemberError, MemberOptions};
pub use orders::order;

pub use braid_range::{Locality, Room};
