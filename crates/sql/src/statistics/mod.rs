//! What is known of the rows of tables without reading them: for planners, and to look at.
//!
//! ```text
//!   ANALYZE ─► sample ─► estimate ─► record, in the store ─► cache ─► planners, pg_stats
//!                                                              ▲
//!   statements that write ─────────────────────────► changes ──┘
//! ```
//! - [`sample`]: drawing rows from all over a table; what they say is estimated, stored and asked
//!   in [`braid_planner`].
//! - [`cache`]: what is in memory, and how many rows there are.
//! - [`changes`]: rows that were written since.
//! - [`families`]: the largest of them, by stored bytes.
//! - [`mod@analyze`]: the statement. [`auto`]: without one, in the background.

mod analyze;
mod auto;
mod cache;
mod changes;
mod families;
mod sample;
mod sizes;

pub(crate) use analyze::analyze;
pub(crate) use cache::Statistics;
pub use changes::TableActivity;
pub(crate) use changes::{Delta, Tally};
pub use families::LargeFamily;
pub use sizes::SizeOf;
