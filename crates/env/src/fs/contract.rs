//! The two traits everything that touches a disk is written against.

use std::io;
use std::path::Path;
use std::sync::Arc;

/// A lock on a directory, held until dropped (or until the process dies).
pub trait DirLock: Send + Sync {}

/// Room on the device of a directory, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// Size of the device.
    pub total: u64,
    /// What an unprivileged writer may still use.
    pub free: u64,
}

/// Names and directories.
pub trait FileSystem: Send + Sync + 'static {
    /// Creates an empty file for reading and writing; an existing one loses its contents.
    /// The name is durable after [`FileSystem::sync_dir`] of the directory.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>>;

    /// Opens an existing file for reading.
    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>>;

    /// Opens an existing file for reading and writing, keeping its contents.
    fn open_write(&self, path: &Path) -> io::Result<Arc<dyn File>>;

    /// Creates a directory and its parents.
    fn create_dir_all(&self, path: &Path) -> io::Result<()>;

    /// Makes names in a directory durable.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;

    /// Renames a file; an existing target is replaced in one step.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Gives a file a second name.
    fn link(&self, existing: &Path, new: &Path) -> io::Result<()>;

    /// Removes a name; the bytes go when no name and no open file is left.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Names of the files and directories in a directory, sorted, without the directory's path.
    fn list(&self, path: &Path) -> io::Result<Vec<String>>;

    /// Whether a file or directory of that name exists.
    fn exists(&self, path: &Path) -> io::Result<bool>;

    /// Room on the device of `path`.
    fn space(&self, path: &Path) -> io::Result<Space>;

    /// Takes the exclusive lock file `path`, creating it if needed.
    /// Fails with `WouldBlock` if another process (or another user in this one) holds it.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn DirLock>>;
}

/// The contents of one open file. All methods take positions; there is no cursor.
pub trait File: Send + Sync {
    /// Reads up to `buffer.len()` bytes at `offset`; fewer only at the end of the file.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes all of `data` at `offset`, extending the file if needed. Not durable before a sync.
    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()>;

    /// Current length in bytes.
    fn len(&self) -> io::Result<u64>;

    /// Whether the file has no bytes.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Cuts or extends (with zeros) the file.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Reserves room so that later writes below `len` need no new blocks. May extend the file.
    fn allocate(&self, len: u64) -> io::Result<()>;

    /// Makes contents durable, and the length if it changed. Blocks on the device.
    fn sync_data(&self) -> io::Result<()>;

    /// Reads exactly `buffer.len()` bytes; `UnexpectedEof` if the file is too short.
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let mut done = 0;
        while done < buffer.len() {
            let n = self.read_at(&mut buffer[done..], offset + done as u64)?;
            if n == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            done += n;
        }
        Ok(())
    }
}

/// Reads a whole file into memory.
pub fn read_all(fs: &dyn FileSystem, path: &Path) -> io::Result<Vec<u8>> {
    let file = fs.open(path)?;
    let mut bytes = vec![0; file.len()? as usize];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(bytes)
}
