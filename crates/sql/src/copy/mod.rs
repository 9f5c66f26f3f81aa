//! COPY and IMPORT: many rows in, many rows out.
//!
//! ```text
//!   client's bytes ─ decode ─► raw rows ─ load ─► values, defaults, constraints ─► Writer
//!   files (IMPORT) ─┘                     (errors name file, line and column)
//!   query or table ─► rows ─ encode ─► bytes
//! ```
//! A COPY or IMPORT is one statement: with an error nothing of it stays.

mod decode;
mod encode;
mod load;
mod unload;

pub use load::CopyIn;
pub(crate) use load::{copy_from_file, import};
pub use unload::CopyOut;
