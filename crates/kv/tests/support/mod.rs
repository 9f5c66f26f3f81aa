//! What the tests of this crate share: a file system that holds calls back.
#![allow(clippy::disallowed_types, reason = "a test may panic while it holds a lock")]

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use braid_env::fs::{DirLock, File, FileSystem, MemFs, Space};

/// Holds calls back while it is shut.
#[derive(Default)]
pub struct Gate {
    shut: Mutex<bool>,
    opened: Condvar,
    /// Threads that are held back.
    held: AtomicU64,
}

impl Gate {
    fn pass(&self) {
        let mut shut = self.shut.lock().unwrap();
        self.held.fetch_add(u64::from(*shut), Ordering::SeqCst);
        while *shut {
            shut = self.opened.wait(shut).unwrap();
        }
    }

    /// From now on calls are held back.
    pub fn shut(&self) {
        *self.shut.lock().unwrap() = true;
        self.held.store(0, Ordering::SeqCst);
    }

    /// Lets everything pass.
    pub fn open(&self) {
        *self.shut.lock().unwrap() = false;
        self.opened.notify_all();
    }

    /// Returns when somebody is held back.
    pub fn wait_for_one(&self) {
        while self.held.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
    }
}

/// Syncs of files whose name ends like this pass the first gate, reads of them the second. `/`
/// stands for directories.
pub struct GatedFs {
    pub fs: MemFs,
    pub of_files: &'static str,
    pub syncs: Arc<Gate>,
    pub reads: Arc<Gate>,
}

struct GatedFile {
    file: Arc<dyn File>,
    gates: Option<(Arc<Gate>, Arc<Gate>)>,
}

impl GatedFs {
    fn gated(&self, path: &Path, file: Arc<dyn File>) -> Arc<dyn File> {
        let is_meant = path.to_string_lossy().ends_with(self.of_files);
        let gates = is_meant.then(|| (self.syncs.clone(), self.reads.clone()));
        Arc::new(GatedFile { file, gates })
    }
}

impl FileSystem for GatedFs {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        Ok(self.gated(path, self.fs.create(path)?))
    }
    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        Ok(self.gated(path, self.fs.open(path)?))
    }
    fn open_write(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        Ok(self.gated(path, self.fs.open_write(path)?))
    }
    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.fs.create_dir_all(path)
    }
    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        if self.of_files == "/" {
            self.syncs.pass();
        }
        self.fs.sync_dir(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.fs.rename(from, to)
    }
    fn link(&self, existing: &Path, new: &Path) -> io::Result<()> {
        self.fs.link(existing, new)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.fs.remove(path)
    }
    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.fs.list(path)
    }
    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.fs.exists(path)
    }
    fn space(&self, path: &Path) -> io::Result<Space> {
        self.fs.space(path)
    }
    fn lock(&self, path: &Path) -> io::Result<Box<dyn DirLock>> {
        self.fs.lock(path)
    }
}

impl File for GatedFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        if let Some((_, reads)) = &self.gates {
            reads.pass();
        }
        self.file.read_at(buffer, offset)
    }
    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_at(data, offset)
    }
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }
    fn allocate(&self, len: u64) -> io::Result<()> {
        self.file.allocate(len)
    }
    fn sync_data(&self) -> io::Result<()> {
        if let Some((syncs, _)) = &self.gates {
            syncs.pass();
        }
        self.file.sync_data()
    }
}
