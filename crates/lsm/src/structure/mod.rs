//! Operations that change which files make up the store, not what is in them.
//!
//! They are edits of the version, O(files touched), whatever the number of rows. A compaction that
//! was running meanwhile may find its inputs gone: its outputs are then thrown away and the work
//! is picked again ([`Store::install`](crate::store::Store::install) says so).

mod split;
