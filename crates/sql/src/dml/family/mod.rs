//! Families as a whole: what goes with a row, and how it goes or moves in one piece.
//!
//! ```text
//!   DELETE FROM customers WHERE ..          which rows?       their families, as spans
//!     [/customers/7, /customers/7 FF)       one tombstone each; neighbours become one
//!        less  [/customers/7/#/notes, ..)   what is in there for locality only stays
//!        checks                             who refers to something in there from elsewhere?
//! ```
//! - [`fate`]: which tables go with a row, which stay, and which foreign keys are asked about it.
//! - [`doomed`]: the spans that are to go. [`kept`]: what lies in them and stays.
//! - [`probe`]: rows elsewhere that refer to something in the spans.
//! - [`erase`]: how all of it is done. [`moves`]: a family gets another key.
//! - [`follow`]: rows that lie elsewhere and go along by a foreign key, when they are many.
//! - [`span_delete`]: rows that are named by spans are not looked for. [`worth`]: of a table in
//!   which nothing lies, if that is less work.
//!
//! Secondary indexes are in nobody's way. Entries inside the spans go along; entries elsewhere
//! become dead: readers check every entry against its base row (see `storage::scan`), and
//! `jobs::reclaim` takes them away later.

pub(super) mod doomed;
mod erase;
pub(super) mod fate;
mod follow;
mod kept;
pub(super) mod moves;
mod probe;
pub(super) mod span_delete;
mod worth;
