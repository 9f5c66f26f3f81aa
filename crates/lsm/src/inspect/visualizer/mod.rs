//! The LSM visualizer: one self-contained page that replays how the tree grew.
//!
//! `braid debug lsm DIR --html out.html` is this. It reads the manifests of a store, old ones too
//! as far as they are kept, and puts every edit on a time line: levels and sublevels to scale over
//! the key line, what an edit took away and what it added, its reason, facts of each sst. An sst
//! of L0 that is wide for its bytes (it overlaps everything and so holds up every compaction) is
//! marked.
//!
//! ```text
//!   manifests -> History (edits, keys sorted once) -> JSON inside of page.html
//! ```
//!
//! Nothing is loaded from a network, by the page or by us. The store may be open meanwhile.

mod history;

use std::path::Path;
use std::sync::Arc;

use braid_env::fs::FileSystem;

use crate::cache::BlockCache;
use crate::error::{Error, Result};
use crate::versions::{SstEnv, manifest_edits};
use history::History;

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
