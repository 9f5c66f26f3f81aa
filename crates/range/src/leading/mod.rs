//! Who leads a range, whether anybody has to be awake for that, and when leadership goes on.
//!
//! ```text
//!   moving       leases go to other nodes: so that all serve their share, and before a node ends
//!   sleeping     ranges that nobody asks anything: who of them sleeps, when they wake
//!   sleepers     what a node knows of those that sleep without looking at each of them
//!   pace         what is done for thousands of ranges, some of them with each tick
//!   neighbours   which nodes are there: one word from node to node, however many ranges they share
//!   fencing      processes that are gone, of which nothing is to happen any more
//!   recalls      leases of another kind, on locks: those above have them, and others ask for them
//!   room         who is short of room on its disk leads nothing, who has none stands still
//!   closed       up to when those who do not lead answer reads of the past by themselves
//! ```

pub(crate) mod closed;
pub(crate) mod fencing;
pub(crate) mod moving;
pub(crate) mod neighbours;
pub(crate) mod pace;
pub(crate) mod recalls;
pub(crate) mod room;
pub(crate) mod sleepers;
pub(crate) mod sleeping;
