//! The state of a range, for a replica that is behind its log: a *raft snapshot*.
//!
//! ```text
//!   leader                                            replica that is behind
//!     begin: state as of i900, lease, threshold  ──►    wants it?
//!     piece 0: records of the range              ◄──    got 0
//!     piece 1, 2, ..: all versions of its keys   ──►    ssts in a folder of their own
//!     the log behind i900 stays                  ◄──    got 1, 2, ..
//!     last piece                                 ──►    installed: it goes on from i900
//! ```
//!
//! `message` is what is said, `sending` the leader's side, `receiving` the other side until all is
//! there, `installing` the step from the old state to the new one; `small` that of many at once.
//!
//! Rules:
//!
//! 1. A state is sent from a view of the store that is pinned for it. The log behind it stays until
//!    it has arrived or was given up.
//! 2. Few pieces are on the way at a time, and so many bytes each second: neither side keeps more
//!    in memory than these. What is lost is sent again; who is silent for long is given up, and
//!    then it is begun anew, with a newer state.
//! 3. What has arrived is ssts that nobody reads, or, of a range of which nothing is here, one
//!    piece in memory. It takes the place of everything that the replica has in one step, as far
//!    as anybody can see: a file that says so is durable before the first change, and goes after
//!    the last one; a node that finds it does all of it again.
//! 4. A replica that has the entry up to which the state goes takes none. So nothing that it has
//!    acknowledged is lost. Installing is like a start on another disk: what it has promised stays.
//! 5. A range without a replica here, of which others speak, was split off in what this node has
//!    missed: it says so, and its replica begins with a state. Not before the replica that had
//!    those keys has given them up, and not below the store's threshold.

mod installing;
mod message;
mod receiving;
mod sending;
mod small;

pub(crate) use installing::{Staging, finish_installs};
pub(crate) use message::Said;
pub use message::thin_out;
pub(crate) use sending::Traffic;
