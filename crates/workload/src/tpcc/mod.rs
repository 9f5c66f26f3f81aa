//! TPC-C: a wholesale company with warehouses, districts, customers and their orders.
//!
//! ```text
//!   interleaved                         flat
//!   warehouse                           nine tables with the same primary keys
//!   ├─ district                         and plain foreign keys
//!   │  ├─ customer
//!   │  └─ order
//!   │     └─ order_line
//!   └─ stock
//!   item, history, new_order stand alone
//! ```
//!
//! `new_order` stays outside of the hierarchy: its rows are deleted all the time, and their
//! tombstones would lie between the rows of `order`. Column names, sizes and distributions follow
//! the TPC-C specification, revision 5.11, clauses 1.3 and 4.3.

mod fixtures;
mod load;
mod rows;
mod run;
mod schema;
mod transactions;

pub use fixtures::{Fixtures, write as write_fixtures};
pub use load::{LoadReport, load};
pub use rows::{CUSTOMERS, ITEMS};
pub use run::{Connect, RunReport, RunSettings, inconsistencies, run, run_where_nodes_die};
pub use schema::{Layout, TABLES, create};
pub use transactions::Kind;
