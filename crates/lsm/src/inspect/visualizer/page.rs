//! The page: the history of a store as JSON inside of `page.html`.

use std::path::Path;
use std::sync::Arc;

use braid_env::fs::FileSystem;

use super::history::History;
use crate::cache::BlockCache;
use crate::error::{Error, Result};
use crate::versions::{SstEnv, manifest_edits};

const PAGE: &str = include_str!("page.html");

/// The page for the store in a directory. `title` is what it says on top.
pub fn lsm_page(fs: Arc<dyn FileSystem>, dir: &Path, title: &str) -> Result<String> {
    let json = history_of(fs, dir)?.to_json(title);
    Ok(PAGE.replacen("/*DATA*/", &json, 1))
}

fn history_of(fs: Arc<dyn FileSystem>, dir: &Path) -> Result<History> {
    let cache = Arc::new(BlockCache::new(1 << 10));
    let env = SstEnv { fs, dir: dir.to_path_buf(), cache, l0_sublevels: true };
    let mut history = History::default();
    manifest_edits(&env, &mut |manifest, edit| history.add(manifest, edit))?;
    if history.is_empty() {
        return Err(Error::corruption(dir.join("CURRENT"), 0, "there is no manifest to show"));
    }
    Ok(history)
}
