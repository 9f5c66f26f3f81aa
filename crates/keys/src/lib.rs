//! The key space: where rows, index entries and system records live, and in which order.
//!
//! ```text
//!   01 ..                                    system records (catalog, counters, sequences)
//!   02 | id gen | key columns                a root row, or an entry of a global index
//!   02 | id gen | key columns | FE id gen | more columns            a child row
//!   02 | id gen | key columns | FE id gen | index columns, rest     an interleaved index entry
//!   02 | id gen | ..          | FE id gen | ..  | FE id gen | ..    a grandchild row
//! ```
//!
//! A row and everything interleaved below it share a prefix, so a family is one span
//! `[row, row FF)` and the row alone is `[row, row FE)`: the marker `FE` sorts after the row's own
//! key and after every column tag, and nothing sorts at or above `FF`.
//!
//! `id` is the table's (or index's) object id. `gen` is its generation: TRUNCATE and friends change
//! it, and all old rows are unreachable at once.
//!
//! Parts:
//! - [`mod@column`]: one value to bytes whose order is SQL's order; self-delimiting, ASC and DESC.
//! - [`path`]: path elements, the marker, row class, spans of a row, of a family, of a prefix.
//! - [`system`]: keys of system records.
//! - [`pretty`]: any key as text, `/Table/100:1/7/#/101:1/3`.
//!
//! Order-preserving means: for values of one type in one direction, comparing key bytes gives what
//! `ORDER BY` gives. Equal values have equal bytes (1.0 and 1.00, -0 and 0, 1 month and 30 days);
//! the codec is therefore not able to give such values back exactly, see
//! [`column::is_composite`]: those columns are stored in the row's value as well.
//!
//! Byte tables: `docs/formats/keys.md`. What this crate does not know: how rows are stored, sent
//! or found, and what a table is.

pub mod column;
mod decimal;
mod document;
pub mod path;
pub mod pretty;
pub mod system;

pub use column::{Direction, decode_column, encode_column, skip_column};
pub use path::{
    CHILD_MARKER, END_MARKER, KeyBuilder, MAX_KEY_BYTES, family_end, row_class, row_end,
    row_lengths,
};
