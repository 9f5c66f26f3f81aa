//! Members come and go, and replicas with them.
//!
//! ```text
//!   locality         where nodes are
//!   placement        who should have a replica: one step at a time
//!   replica_changes  a step as an entry of the log, and why it is safe
//!   retiring         the end of a replica that was removed
//!   founding         what was split off is there before anything goes
//! ```

pub(crate) mod founding;
pub(crate) mod locality;
pub(crate) mod placement;
pub(crate) mod replica_changes;
pub(crate) mod retiring;
