//! EXPLAIN: what is said of a plan, and of running it.
//!
//! - [`lines`]: a plan as lines, some of which are operators with what they did. Plans write them.
//! - `writing`: what INSERT, UPDATE and DELETE did.
//! - `run`: EXPLAIN of a statement. `summary`: what is known of it as a whole.
//! - `interleave`: the trees in which its tables lie.
//! - `text`, `tree`: the forms in which clients get it: TEXT, JSON, YAML, XML. `debug`: all of it.

mod debug;
mod interleave;
pub mod lines;
mod run;
mod summary;
mod text;
mod tree;
mod writing;

pub use lines::{Actual, Explained, Operator, PlanLine};
pub(crate) use writing::{Timed, writing};
