//! Room held back on the device, so that a full disk can be emptied by deleting.
//!
//! A file of a few megabytes is allocated when a store opens. When a write finds no room, the
//! file goes, the write is repeated, and from then on writes that add data are refused; reads,
//! deletes, range deletes and compactions go on in the room it left. When enough is free again
//! the file comes back and all writes are accepted.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use braid_env::fs::FileSystem;

use crate::wal::SpaceReserve;

/// The reserve of one store.
pub(crate) struct Ballast {
    fs: Arc<dyn FileSystem>,
    dir: PathBuf,
    size: u64,
    held: AtomicBool,
    full: AtomicBool,
}

impl Ballast {
    /// Takes the reserve of a store if there is plenty of room, or finds it from an earlier run.
    pub(crate) fn new(fs: Arc<dyn FileSystem>, dir: &Path, size: u64) -> Ballast {
        let ballast = Ballast {
            fs,
            dir: dir.to_path_buf(),
            size,
            held: AtomicBool::new(false),
            full: AtomicBool::new(false),
        };
        let there = ballast.fs.exists(&ballast.path()).unwrap_or(false);
        ballast.held.store(there, Ordering::Release);
        ballast
    }

    fn path(&self) -> PathBuf {
        self.dir.join("BALLAST")
    }

    /// Allocates the file if there is room for it twice.
    pub(crate) fn take(&self) {
        let room = self.fs.space(&self.dir).map_or(0, |space| space.free);
        if self.size == 0 || self.held.load(Ordering::Acquire) || room < 2 * self.size {
            return;
        }
        let made = self.fs.create(&self.path()).and_then(|file| file.allocate(self.size));
        match made {
            Ok(()) => self.held.store(true, Ordering::Release),
            // Nothing depends on it; it is tried again when the device has room.
            Err(error) => tracing::warn!(%error, "cannot hold back room on the device"),
        }
    }

    /// Gives the room back; true if there was any. Writes that add data are refused from now on.
    pub(crate) fn release_now(&self) -> bool {
        if !self.full.swap(true, Ordering::AcqRel) {
            tracing::warn!("the device is full: writes that add data are refused");
        }
        self.held.swap(false, Ordering::AcqRel) && self.fs.remove(&self.path()).is_ok()
    }

    /// Whether writes that add data must be refused. Looks whether there is room again.
    pub(crate) fn is_full(&self) -> bool {
        if !self.full.load(Ordering::Acquire) {
            return false;
        }
        let room = self.fs.space(&self.dir).map_or(0, |space| space.free);
        if room < if self.size > 0 { 3 * self.size } else { 1 << 20 } {
            return true;
        }
        self.full.store(false, Ordering::Release);
        tracing::info!("the device has room again");
        self.take();
        false
    }

    /// As [`Ballast::is_full`], without looking at the device.
    pub(crate) fn was_full(&self) -> bool {
        self.full.load(Ordering::Acquire)
    }
}

impl SpaceReserve for Ballast {
    fn release(&self) -> bool {
        self.release_now()
    }
}
