//! Our own SELECT plans: point reads, span reads, index lookups, joins along keys.
//!
//! ```text
//!   FROM customers c JOIN orders o ON o.customer = c.id WHERE c.id = 7 ORDER BY o.id LIMIT 10
//!     step 1   point read on customers      key id = 7
//!     step 2   family read of orders        in the same pass
//! ```
//! A plan is a chain of steps, one per table. Each step finds its rows by a key, whose values are
//! constants, parameters or columns of the steps before; some steps only ask whether there is a row
//! ([`semi`]) or give one value ([`value`], [`subqueries`]). Steps whose tables lie inside each
//! other are read in one pass ([`family`], [`gather`], [`passes`]). What a step is going to look up
//! is asked for many rows at once ([`joined`]). Rows stream; nothing else is kept but groups
//! ([`groups`]), and what an ORDER BY that the keys do not give needs; steps that can wait until it
//! is known which rows it gives do ([`late`]).
//!
//! Joins by USING: [`using`]. Locks: [`locks`]. What is shown of the rows: [`select_list`]. Set
//! operations, WITH and queries in FROM are made of several chains ([`compound`]).
//!
//! What does not fit ([`plan_query`] gives `None`) goes to [`crate::general_query`]; where its rows
//! are to be locked, by way of [`locked`].

mod aggregate;
mod build;
pub(crate) mod choice;
mod columnar;
mod compound;
mod family;
mod first_rows;
mod gather;
mod groups;
mod joined;
mod late;
mod locks;
mod order;
mod passes;
pub mod rows;
mod select;
mod select_list;
mod semi;
mod shown;
mod sorting;
mod stream;
mod subqueries;
mod using;
mod value;

pub(crate) use build::plan_query;
pub use compound::SelectPlan;
pub(crate) use compound::Within;
use locks::lock_clauses;
pub(crate) use locks::lock_clauses::calls_that_gather;
pub(crate) use locks::locked;
