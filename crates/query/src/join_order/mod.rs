//! Joins in an order that keeps intermediate results small.
//!
//! ```text
//!   optimized plan ─► groups ─ inner joins that stand together
//!                     graph ── their relations, equalities in classes, other conditions
//!                     check ── semi and anti joins over a group, which stand where they cost least
//!                     search ─ the cheapest tree: all trees of few relations, else greedily
//!                       └─ estimate ─ rows and distinct values of a plan
//!                            └─ share ─ of a table's rows, by what ANALYZE has found out
//!                     sides ── joins outside of groups: the smaller side is held
//! ```
//! The search is dynamic programming over sets of relations (Selinger et al., *Access path
//! selection in a relational database management system*, 1979), over bushy trees; above ten
//! relations the pair with the smallest result is joined first (Fegaras, *A new heuristic for
//! optimizing large queries*, 1998). The left side of a join is read first and held.

mod check;
mod estimate;
mod graph;
mod groups;
mod search;
mod share;
mod sides;

pub(crate) use estimate::rows_expected;
pub(crate) use groups::ordered;
pub(crate) use share::of_table as share_of_table;
