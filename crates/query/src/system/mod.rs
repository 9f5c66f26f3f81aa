//! `pg_catalog` and `information_schema`: virtual tables made from the catalog, and the functions
//! that describe its objects.

mod absent;
mod activity;
mod code;
mod comments;
mod defaults;
mod definition;
mod dependencies;
mod extensions;
mod info_schema;
mod lookup;
mod names;
mod opened;
mod ours;
mod partitions;
mod pg_tables;
mod privileges;
mod qualified;
mod relations;
mod roles;
mod row_statistics;
mod sizes;
mod sql_functions;
mod statistics;
mod table;
mod type_rows;

pub use definition::catalog_function;
pub(crate) use lookup::{is_pg_table, type_named};
pub use lookup::{parse_query, rows, table};
pub use table::SystemTable;
pub(crate) use table::{HIDDEN, TABLE_OID};
