//! Histories of random transactions, and the question whether an isolation level allows them.
//!
//! Every write carries a value that is written once, so a read tells whom it saw. Three kinds of
//! data: lists that grow by appending and are erased with their family (range deletes, TRUNCATE),
//! trails that tell in which order a list was erased, and registers that are overwritten.
//!
//! - [`record`]: what a history is.
//! - [`plan`]: random transactions, a function of a seed.
//! - [`mod@run`]: plans run by several clients against a node.
//! - [`mod@simulate`]: plans run by a model, for histories that are known to be good.
//! - [`versions`]: the order of versions, and what is wrong without any graph.
//! - [`graph`]: who must come before whom, and cycles in that.
//! - [`mod@check`]: the verdict.

pub mod check;
pub mod graph;
pub mod plan;
pub mod record;
pub mod run;
pub mod simulate;
pub mod versions;

pub use check::{Report, check};
pub use record::{Anomaly, History, Key, Level, Op, Outcome, Transaction};
pub use run::{Settings, run};
pub use simulate::{Model, simulate};
