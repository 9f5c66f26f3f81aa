//! The copy of a picture on this node's disk.
//!
//! ```text
//!   braid settings 1
//!   crc32c of the rest, in hexadecimal
//!   the picture, as JSON
//! ```
//! Written beside the old one, synced, renamed, and the folder synced: after a crash it is one or
//! the other.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use braid_env::fs::{FileSystem, read_all};

use crate::picture::Picture;

const FIRST_LINE: &str = "braid settings 1";
const NAME: &str = "settings";

/// See the [module's page](self).
pub struct DiskCopy {
    fs: Arc<dyn FileSystem>,
    dir: PathBuf,
}

impl DiskCopy {
    /// In a folder that is there.
    pub fn new(fs: Arc<dyn FileSystem>, dir: impl Into<PathBuf>) -> DiskCopy {
        DiskCopy { fs, dir: dir.into() }
    }

    /// What was written last; `None` if nothing was.
    ///
    /// # Errors
    /// The disk's; `InvalidData` for what is no copy, or a damaged one.
    pub(crate) fn read(&self) -> io::Result<Option<Picture>> {
        let path = self.dir.join(NAME);
        if !self.fs.exists(&path)? {
            return Ok(None);
        }
        let bytes = read_all(&*self.fs, &path)?;
        let damaged = || io::Error::new(io::ErrorKind::InvalidData, "the copy is damaged");
        let text = std::str::from_utf8(&bytes).map_err(|_| damaged())?;
        let mut parts = text.splitn(3, '\n');
        let (first, crc, rest) = (parts.next(), parts.next(), parts.next().unwrap_or(""));
        let whole = crc == Some(format!("{:08x}", crc32c::crc32c(rest.as_bytes())).as_str());
        if first != Some(FIRST_LINE) || !whole {
            return Err(damaged());
        }
        serde_json::from_str(rest).map(Some).map_err(|_| damaged())
    }

    /// Replaces it. Durable when this returns.
    ///
    /// # Errors
    /// The disk's; then the old one is there.
    pub(crate) fn write(&self, picture: &Picture) -> io::Result<()> {
        let rest = serde_json::to_string(picture).map_err(io::Error::other)?;
        let crc = crc32c::crc32c(rest.as_bytes());
        let text = format!("{FIRST_LINE}\n{crc:08x}\n{rest}");
        let (path, new) = (self.dir.join(NAME), self.dir.join(format!("{NAME}.new")));
        let file = self.fs.create(&new)?;
        file.write_at(text.as_bytes(), 0)?;
        file.sync_data()?;
        self.fs.rename(&new, &path)?;
        self.fs.sync_dir(&self.dir)
    }
}
