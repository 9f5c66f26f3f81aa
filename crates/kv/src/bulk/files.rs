//! Finished ssts of a load that wait to be ingested.

use std::path::PathBuf;
use std::sync::Arc;

use super::folder::BulkFolder;
use super::sst::Sst;

/// See the [module documentation](self). Removed when dropped, unless they belong to a job that may
/// go on: an ingest links them first.
pub struct BulkFiles {
    folder: Arc<BulkFolder>,
    paths: Vec<PathBuf>,
    /// Of the paths, so many at the beginning were written by the load's end.
    own: usize,
    /// The others, which were finished before.
    before: Vec<Sst>,
}

impl BulkFiles {
    pub(crate) fn new(folder: &Arc<BulkFolder>) -> BulkFiles {
        BulkFiles { folder: folder.clone(), paths: Vec::new(), own: 0, before: Vec::new() }
    }

    /// Takes a path that is about to be written.
    pub(crate) fn add(&mut self, path: PathBuf) {
        debug_assert!(self.before.is_empty(), "own files come first");
        self.paths.push(path);
        self.own = self.paths.len();
    }

    /// Takes what other threads wrote.
    pub(super) fn append(&mut self, mut other: BulkFiles) {
        std::mem::take(&mut other.paths).into_iter().for_each(|path| self.add(path));
        other.own = 0;
    }

    /// Takes ssts that are as they shall be.
    pub(super) fn take_in(&mut self, ssts: Vec<Sst>) {
        self.paths.extend(ssts.iter().map(|sst| sst.path.clone()));
        self.before.extend(ssts);
    }

    /// Whether there is nothing to ingest.
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// By name, where the store finds them.
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// How many were finished while rows still came, and not written again.
    pub fn finished_early(&self) -> usize {
        self.before.len()
    }
}

impl Drop for BulkFiles {
    fn drop(&mut self) {
        for path in &self.paths[..self.own] {
            if let Err(error) = self.folder.fs.remove(path) {
                tracing::warn!(path = %path.display(), %error, "cannot remove a file of a load");
            }
        }
    }
}
