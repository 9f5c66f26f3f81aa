//! The files of one export: under other names until all of them are complete.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use braid_env::fs::FileSystem;
use braid_types::{SqlError, SqlResult, SqlState};

use super::packed::Packed;
use crate::folder::Folder;
use crate::options::Compression;

/// What a part is called until it counts.
const UNFINISHED: &str = ".partial";

/// One file.
#[derive(Debug, Clone)]
pub struct Part {
    /// Its path below the folder for imports: what IMPORT takes.
    pub name: String,
    /// Rows in it.
    pub rows: u64,
    /// Its length.
    pub bytes: u64,
    path: PathBuf,
}

/// See the [module documentation](self). Dropping it takes away what was not published.
pub struct Parts {
    fs: Arc<dyn FileSystem>,
    /// Where they are, and what statements call that.
    place: (PathBuf, String),
    /// What each name begins with: nobody else's do.
    prefix: String,
    suffix: &'static str,
    compression: Compression,
    parts: Vec<Part>,
}

impl Parts {
    /// Parts in a folder below the one for imports, which is made if it is not there. `id` must be
    /// new; `suffix` is that of the format, with its dot.
    ///
    /// # Errors
    /// 42501 for what lies outside; those of the disk.
    pub fn start(
        fs: Arc<dyn FileSystem>,
        folder: &Folder,
        place: &str,
        id: u32,
        suffix: &'static str,
        compression: Compression,
    ) -> SqlResult<Parts> {
        let place = folder.folder_for(&*fs, place)?;
        let prefix = format!("export-{id}-");
        Ok(Parts { fs, place, prefix, suffix, compression, parts: Vec::new() })
    }

    /// Begins the next part. It ends with [`Parts::end`], before another one begins.
    ///
    /// # Errors
    /// 58P02 if there is such a file; those of the disk, with the file's name.
    pub fn begin(&mut self) -> SqlResult<Packed> {
        let packed = match self.compression {
            Compression::Auto | Compression::None => "",
            Compression::Gzip => ".gz",
            Compression::Zstd => ".zst",
            Compression::Bzip2 => ".bz2",
        };
        let file = format!("{}{:04}{}{packed}", self.prefix, self.parts.len(), self.suffix);
        let (folder, shown) = &self.place;
        let name = if shown.is_empty() { file.clone() } else { format!("{shown}/{file}") };
        let path = folder.join(&file);
        if self.fs.exists(&path).map_err(|e| failed(&name, &e))? {
            let message = format!("file \"{name}\" exists already");
            return Err(SqlError::new(SqlState("58P02"), message));
        }
        let part = Part { name, rows: 0, bytes: 0, path };
        let opened = self.fs.create(&unfinished(&part));
        let sink = opened.and_then(|file| Packed::new(file, self.compression));
        self.parts.push(part);
        sink.map_err(|e| self.failed(&e))
    }

    /// Ends the part that was begun: durable, but under another name yet.
    ///
    /// # Errors
    /// Those of the disk, with the file's name.
    pub fn end(&mut self, sink: Packed, rows: u64) -> SqlResult<()> {
        let bytes = sink.finish().map_err(|e| self.failed(&e))?;
        if let Some(part) = self.parts.last_mut() {
            (part.rows, part.bytes) = (rows, bytes);
        }
        Ok(())
    }

    /// What the part that was begun is going to be called.
    pub fn open_name(&self) -> String {
        self.parts.last().map_or_else(String::new, |part| part.name.clone())
    }

    /// An error of the disk that has to do with the part that was begun.
    pub fn failed(&self, e: &io::Error) -> SqlError {
        failed(&self.open_name(), e)
    }

    /// Gives all parts their names. Durable when it returns.
    ///
    /// # Errors
    /// Those of the disk; then there is none of them.
    pub fn publish(mut self) -> SqlResult<Vec<Part>> {
        for (at, part) in self.parts.iter().enumerate() {
            if let Err(e) = self.fs.rename(&unfinished(part), &part.path) {
                for published in &self.parts[..at] {
                    let _best_effort = self.fs.remove(&published.path);
                }
                return Err(failed(&part.name, &e));
            }
        }
        let parts = std::mem::take(&mut self.parts);
        self.fs.sync_dir(&self.place.0).map_err(|e| failed(&self.place.1, &e))?;
        Ok(parts)
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        for part in &self.parts {
            // What cannot be removed is still called unfinished.
            let _best_effort = self.fs.remove(&unfinished(part));
        }
    }
}

fn unfinished(part: &Part) -> PathBuf {
    let mut name = part.path.clone().into_os_string();
    name.push(UNFINISHED);
    name.into()
}

pub(super) fn failed(name: &str, e: &io::Error) -> SqlError {
    let state = match e.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => SqlState("53100"),
        io::ErrorKind::PermissionDenied => SqlState::INSUFFICIENT_PRIVILEGE,
        _ => SqlState::IO_ERROR,
    };
    SqlError::new(state, format!("could not write file \"{name}\": {e}"))
}
