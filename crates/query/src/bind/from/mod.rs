//! FROM: what is read, and how it is joined.
//!
//! - [`items`]: tables, views, subqueries, functions, joins.
//! - [`order`]: the order of a query in FROM, for aggregates.
//! - [`using`]: joins by columns of the same name.

mod items;
mod order;
mod sample;
mod using;

pub(super) use items::{Item, OWN_LEVEL, bare, combine, copy_of, empty_item, rename_columns};
pub(super) use order::from_order;
