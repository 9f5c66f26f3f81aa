//! TPC-H: 22 analytical queries over a seller's parts, suppliers, customers and orders.
//!
//! ```text
//!   interleaved                flat
//!   orders                     eight tables with the same primary keys and indexes
//!   └─ lineitem
//!   part
//!   └─ partsupp
//!   customer, supplier, nation, region stand alone
//! ```
//! Rows and query texts are those of the specification, by the crate `tpchgen`; the parameters are
//! the specification's validation values (clauses 2.4.x.3). The queries run against any server that
//! speaks PostgreSQL's protocol; with two servers, answers are compared and times alternate.

mod load;
mod queries;
mod run;
mod schema;

pub use load::load;
pub use queries::{QUERIES, query};
pub use run::{Report, Settings, run};
pub use schema::create;
