//! COPY: many rows in, many rows out.
//!
//! ```text
//!   client's bytes ─ decode ─► raw rows ─ load ─► values, defaults, constraints ─► few: Writer
//!                                                                  └─► many: a thread's load
//!   a file ─────────┘                     (errors name file, line and column)
//!   query or table ─► rows ─ encode ─► bytes
//! ```
//! A COPY is one statement: with an error nothing of it stays.

mod decode;
mod encode;
mod from_file;
mod load;
mod load_thread;
mod raw_rows;
mod unload;

pub(crate) use encode::Encoder;
pub(crate) use from_file::copy_from_file;
pub use load::CopyIn;
pub(crate) use load::{SavedCopy, copied_table, others, targets};
pub use unload::CopyOut;
pub(crate) use unload::{planned, writes};
