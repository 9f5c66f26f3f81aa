//! What sessions of different nodes have in common although no row says so.
//!
//! ```text
//!   session of node 1 ── pg_advisory_lock(7) ──► record 7: process A, session 12  ◄── node 2 waits
//!                     ── NOTIFY c, 'x' ────────► message 41 ──► all nodes ──► inboxes
//!   process A         ── every 2 s ────────────► presence of A: until 10:00:06
//! ```
//! On a node alone this lives in its memory ([`crate::runtime`]), and does here too: a session is
//! served by its own node's memory first, and by records that all nodes see behind that.
//!
//! - [`presence`]: until when what a process holds counts for others, so that a node that dies or
//!   is cut off keeps nothing for ever.
//! - [`calls`]: what a node asks another one about its sessions and jobs.
//! - `statistics`: what statements of all nodes have done, added up.
//! - [`locks`]: advisory locks. [`messages`]: LISTEN and NOTIFY.
//!
//! Locks on rows would be free when a range's lease is lost; these are not.

pub(crate) mod calls;
pub(crate) mod locks;
pub(crate) mod messages;
pub(crate) mod presence;
mod statistics;

use locks::LocksOverNodes;
use messages::Messages;
use presence::Presence;

/// What a node knows of that.
#[derive(Default)]
pub(crate) struct OverNodes {
    presence: Presence,
    locks: LocksOverNodes,
    messages: Messages,
}
