//! Views that can be written to: those whose rows are rows of one relation.
//!
//! ```text
//!   CREATE VIEW open AS SELECT id, upper(name) AS shown, note FROM job j WHERE done IS NULL
//!
//!   base job, called j    columns id, -, note    condition done IS NULL
//!
//!   UPDATE open SET note = 'x' WHERE shown = 'A'
//!   UPDATE job  SET note = 'x' WHERE done IS NULL AND upper(name) = 'A'
//! ```
//! The base may be such a view again. What writes goes *through* them to the table (the module
//! `target` of [`crate::dml`]); here is only what their queries say, which the system catalogs tell
//! as well.
//!
//! [`mod@printed`]: their text as PostgreSQL prints it.

mod printed;
mod simple;

pub use crate::ddl::view::uses::may_use_column;
pub use printed::Printer;
pub use simple::{SimpleView, may_write, simple};
pub(crate) use simple::{qualified_query, read_through};
