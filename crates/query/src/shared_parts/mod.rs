//! Parts of a plan that occur more than once are computed once.
//!
//! ```text
//!   Join                                   Join
//!     Aggregate                              Aggregate
//!       Join  nation, supplier, partsupp       Part 1 ─┐
//!     Aggregate                    ──►       Aggregate  ├── rows, computed by whoever comes first
//!       Join  nation, supplier, partsupp       Part 1 ─┘
//! ```
//! A part is a join of tables with conditions that select few of their rows (`find.rs`). Both
//! occurrences give all columns that one of them needs (`node.rs`), and the first that is asked
//! keeps the rows for the other (`exec.rs`). If there is no memory for that, each computes its own.
//!
//! In a plan that is kept for all values of its parameters, two parts may differ in these: whether
//! they are the same is found out by each execution.

mod exec;
mod find;
mod node;

pub(crate) use exec::linked;
pub(crate) use find::shared;
pub(crate) use node::PartPlanner;
