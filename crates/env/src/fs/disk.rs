//! The operating system's files.

use std::fs;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use super::{DirLock, File, FileSystem, Space};

/// The real file system.
#[derive(Debug, Default, Clone, Copy)]
pub struct DiskFs;

impl DiskFs {
    /// The real file system, ready to be handed to an engine.
    pub fn shared() -> Arc<dyn FileSystem> {
        Arc::new(DiskFs)
    }
}

struct DiskFile(fs::File);

struct DiskLock(#[expect(dead_code, reason = "held for its lock")] fs::File);

impl DirLock for DiskLock {}

impl FileSystem for DiskFs {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let file =
            fs::OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path)?;
        Ok(Arc::new(DiskFile(file)))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(DiskFile(fs::File::open(path)?)))
    }

    fn open_write(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(DiskFile(fs::OpenOptions::new().read(true).write(true).open(path)?)))
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        fs::create_dir_all(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        fs::File::open(path)?.sync_all()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn link(&self, existing: &Path, new: &Path) -> io::Result<()> {
        fs::hard_link(existing, new)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(path)? {
            // A name that is not UTF-8 was not made by us; it is left alone.
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        path.try_exists()
    }

    fn space(&self, path: &Path) -> io::Result<Space> {
        let stat = rustix::fs::statvfs(path)?;
        Ok(Space { total: stat.f_blocks * stat.f_frsize, free: stat.f_bavail * stat.f_frsize })
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn DirLock>> {
        let file = fs::OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Box::new(DiskLock(file))),
            Err(fs::TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
            Err(fs::TryLockError::Error(error)) => Err(error),
        }
    }
}

impl File for DiskFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        loop {
            match self.0.read_at(buffer, offset) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_all_at(data, offset)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        if len == 0 {
            return Ok(());
        }
        match rustix::fs::fallocate(&self.0, rustix::fs::FallocateFlags::empty(), 0, len) {
            Ok(()) => Ok(()),
            // Not every file system can reserve; writes then simply extend the file.
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}
