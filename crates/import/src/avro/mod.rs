//! Apache Avro object container files.
//!
//! ```text
//!   "Obj" 1 | metadata: avro.schema, avro.codec | sync mark      [`container`]
//!   count size <rows, compressed> sync mark                      [`codec`]
//!   ..                                          row by [`schema`] ─► values [`decode`]
//! ```
//! Own code: the format is small, and the library for it turns on features of crates that half of
//! our dependencies are built from.

mod codec;
mod container;
mod decode;
mod schema;

pub(crate) use container::AvroSource;
