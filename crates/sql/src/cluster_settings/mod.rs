//! Settings of the whole cluster, and statements that it denies.
//!
//! ```text
//!   SET CLUSTER SETTING, DENY QUERY ─► store: one transaction over records, the next version
//!                                        │
//!                    this node, at once ◄┴► spread: the others hear of the version and read
//!                          │
//!                     gate: asked before a statement is planned, and before it runs
//! ```
//! - [`store`]: records, and how they change.
//! - [`change`]: the statements that change them.
//! - [`features`]: which classes a statement is of. [`gate`]: what is denied.
//! - [`spread`]: hearing of newer versions, waiting until others have.
//! - [`shown`]: SHOW CLUSTER SETTING, SHOW DENIED QUERIES.
//!
//! What there is to set, and what a node goes by, is `braid_settings`.

mod change;
mod features;
mod gate;
pub(crate) mod shown;
mod spread;
mod store;

pub(crate) use gate::digest;
pub use shown::{denied_queries, setting_rows};
