//! Seeing inside: what tells people and tools about a store, and nothing that the store needs.
//!
//! - [`event`]: what background work does, as typed events.
//! - [`explain`]: which layers, blocks and tombstones one read looks at.
//! - [`visualizer`]: a page that replays how the tree grew.
//! - [`dump`]: files in words. [`checker`]: a whole store verified offline.
//! - `fuzzing`: entry points for fuzzers.

mod checker;
pub mod dump;
mod event;
mod explain;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod visualizer;

pub use checker::{CheckReport, Problem, check_store};
pub use event::{DropCounts, Event, EventKind, EventListener, EventSst, JobKind, JobOutcome};
pub(crate) use event::{Events, JobTicket};
pub(crate) use explain::{explain_get, explain_scan};
pub use visualizer::lsm_page;
