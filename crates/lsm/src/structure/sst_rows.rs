//! The rows of an sst that was built outside of a store, for those who cannot take it in whole.

use std::path::Path;
use std::sync::Arc;

use braid_env::fs::FileSystem;

use crate::cache::BlockCache;
use crate::error::{Error, Result};
use crate::key::Kind;
use crate::sstable::{SstEntries, SstIdentity, SstReader};

/// Calls `visit` with key and value of each row, in key order. Fails with `Corruption` if the file
/// is damaged, or holds deletions: those would be lost. Blocks on the device.
pub fn visit_sst(
    fs: &dyn FileSystem,
    path: &Path,
    visit: &mut dyn FnMut(&[u8], &[u8]),
) -> Result<()> {
    let identity = SstIdentity { file_no: 0, sealed_no: None, ts_override: 0 };
    let cache = Arc::new(BlockCache::new(1 << 20));
    let reader = Arc::new(SstReader::open(fs, path, identity, cache)?);
    let facts = reader.properties();
    if facts.deletes > 0 || facts.tombstones > 0 {
        return Err(Error::corruption(path, 0, "rows are expected, and there are deletions"));
    }
    let mut entries = SstEntries::open(reader.clone())?;
    while let Some(key) = entries.key() {
        debug_assert!(entries.kind() == Kind::Put, "there are no deletions");
        visit(key, entries.value());
        entries.advance()?;
    }
    Ok(())
}
