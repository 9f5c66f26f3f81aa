//! `braid demo`: a real hierarchy in a temporary store, and a shell on it. Without a terminal it
//! runs the statements on standard input and ends with them.
//!
//! - [`start`]: what is asked for, and what comes up.
//! - [`load`]: the rows, with a bar while they come.
//! - [`nodes`]: the demo's nodes as processes of their own, for `--nodes 3`.
//! - [`tour`]: five minutes, step by step.

mod load;
mod nodes;
mod start;
mod tour;

pub(crate) use start::{DemoArguments, run};
