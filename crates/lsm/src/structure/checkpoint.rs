//! A copy of the store that shares its files: hard links to ssts, and a manifest of its own.
//!
//! The copy holds everything that was written before the call, and nothing but a prefix of the
//! arrival order. It opens as a store and lives on independently: ssts are never changed, only
//! unlinked.

use std::path::Path;
use std::sync::Arc;

use super::ingest::link_or_copy;
use crate::error::{Error, Result};
use crate::sstable::sst_path;
use crate::store::Store;
use crate::versions::{Manifest, Recovered};

impl Store {
    /// See [`Db::checkpoint`](crate::Db::checkpoint).
    pub(crate) fn checkpoint(self: &Arc<Store>, dir: &Path) -> Result<()> {
        let fs = &*self.env.fs;
        let io = |error| Error::io(format!("writing checkpoint {}", dir.display()), &error);
        fs.create_dir_all(dir).map_err(io)?;
        if fs.list(dir).map_err(io)?.iter().any(|name| name != "LOCK") {
            let reason = format!("{} is not empty", dir.display());
            return Err(Error::InvalidIngest { reason });
        }
        let copy = self.pin_everything()?;
        let mut linked: Vec<u64> = Vec::new();
        for sst in copy.version.ssts() {
            let file_no = sst.backing.file_no;
            if !linked.contains(&file_no) {
                link_or_copy(fs, &sst_path(&self.env.dir, file_no), &sst_path(dir, file_no))
                    .map_err(io)?;
                linked.push(file_no);
            }
        }
        fs.sync_dir(dir).map_err(io)?;
        let mut manifest = Manifest::create(fs, dir, 1, &copy.snapshot(), &*self.ballast)?;
        manifest.seal(&*self.ballast)?;
        if let Some(parent) = dir.parent() {
            fs.sync_dir(parent).map_err(io)?;
        }
        Ok(())
    }

    /// A version that holds everything that arrived, and what a manifest must say with it.
    fn pin_everything(self: &Arc<Store>) -> Result<Recovered> {
        // Most of the work happens while writers go on; the rest while they wait.
        self.flush_all()?;
        let mut commit = self.commit.lock();
        if !self.state.load().mutable.is_empty() {
            self.rotate(&mut commit);
        }
        loop {
            let state = self.state.load_full();
            if state.immutable.is_empty() && state.structural.is_empty() {
                break;
            }
            self.await_progress()?;
        }
        let gc_threshold = self.durable_gc()?;
        let version = self.state.load().version.clone();
        Ok(Recovered {
            version,
            next_file: self.next_file.load(std::sync::atomic::Ordering::Acquire),
            next_arrival: commit.arrival,
            gc_threshold,
            newest_ts: self.newest.load(std::sync::atomic::Ordering::Acquire),
            ..Recovered::new_store()
        })
    }
}
