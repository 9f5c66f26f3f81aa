//! SHOW INTERLEAVE PROPOSALS: which tables could lie in others, and what that takes.
//!
//! ```text
//!   customers (id)                 the root
//!     orders (id)                  REFERENCES customers        needs its key in front: new key
//!       lines (order_id, n)        REFERENCES orders           begins with it already: ready
//!     countries (code)             orders REFERENCES it, too   alternative: customers is better
//! ```
//! A foreign key to another table's primary key says that a row belongs to another one. If the
//! table's own primary key begins with those columns, its rows can lie in that row as they are;
//! else the columns must come in front. [`find`] tells which, [`told`] in what words.
//!
//! What is proposed keeps every constraint: the foreign key goes on to say what becomes of rows,
//! and the table only lies elsewhere (`INTERLEAVE IN PARENT p (columns)`).

mod find;
mod told;

pub(super) use told::{COLUMNS, rows};
