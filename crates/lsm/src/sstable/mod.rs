//! Ssts: immutable sorted files.
//!
//! ```text
//!   [row blocks][tombstones][filter][index partitions][top index][properties][footer 64 B]
//! ```
//!
//! Every block ends in a trailer with a checksum that is seeded with the file's number and the
//! block's offset, so that a block read from the wrong place fails too. The byte tables are in
//! `docs/formats/sst.md`.

mod block_walker;
mod columns;
mod cursor;
mod entries;
mod extent;
mod filter;
mod format;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod index_block;
mod prefix;
mod properties;
mod reader;
mod row_block;
mod row_block_builder;
mod row_key;
mod tombstone_block;
mod writer;

pub(crate) use block_walker::BlockPlace;
pub(crate) use columns::{head_of, partition_point};
pub(crate) use cursor::{LEAST_PART, SstCursor, Wanted};
pub(crate) use entries::SstEntries;
pub(crate) use filter::{key_hash, line_of as filter_line, probes as filter_probes};
pub(crate) use format::sst_path;
pub(crate) use index_block::IndexBlock;
pub(crate) use prefix::Prefix;
pub(crate) use properties::Properties;
pub(crate) use reader::{SstIdentity, SstReader, check_identity};
pub(crate) use row_block::RowBlock;
#[cfg(test)]
pub(crate) use row_block_builder::RowBlockBuilder;
pub(crate) use writer::{SstWriter, WRITE_SIZE, WriterOptions};
