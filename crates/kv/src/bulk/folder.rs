//! The folder `bulk` of a store's directory: files of loads, and what a load that may go on in
//! another process has noted.
//!
//! ```text
//!   00000012.run          of a load that ends with its process: gone at the next open
//!   00000013.kept         rows that a session keeps: likewise
//!   job-7-00000003.sst    of job 7's load: stays until somebody says that job 7 has ended
//!   job-7-note            what job 7 needs to go on
//! ```

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use braid_env::fs::{FileSystem, read_all};

use crate::error::{KvError, KvResult};

/// Where loads of a store put their files.
pub(crate) struct BulkFolder {
    pub(super) fs: Arc<dyn FileSystem>,
    path: PathBuf,
    pub(super) options: braid_lsm::Options,
    next_file: AtomicU64,
}

/// The job that a file is for; `None`: it is none of a job.
fn job_of(name: &str) -> Option<u32> {
    name.strip_prefix("job-")?.split('-').next()?.parse().ok()
}

impl BulkFolder {
    /// The folder below a store's directory. Removes what loads without a job left there.
    pub(crate) fn open(
        fs: Arc<dyn FileSystem>,
        store: &Path,
        options: braid_lsm::Options,
    ) -> KvResult<Arc<BulkFolder>> {
        let path = store.join("bulk");
        let folder = BulkFolder { fs, path, options, next_file: AtomicU64::new(0) };
        let mut next = 0;
        for name in folder.names()? {
            let digits = name.rsplit('-').next().and_then(|last| last.split('.').next());
            next = next.max(digits.and_then(|n| n.parse::<u64>().ok()).map_or(0, |n| n + 1));
            if job_of(&name).is_none() {
                folder.remove(&name)?;
            }
        }
        folder.next_file.store(next, Ordering::Relaxed);
        Ok(Arc::new(folder))
    }

    pub(crate) fn fs(&self) -> &Arc<dyn FileSystem> {
        &self.fs
    }

    /// How ssts of the store are written.
    pub(crate) fn options(&self) -> &braid_lsm::Options {
        &self.options
    }

    fn names(&self) -> KvResult<Vec<String>> {
        let failed = |error| io_error(&self.path, &error);
        match self.fs.exists(&self.path).map_err(failed)? {
            true => self.fs.list(&self.path).map_err(failed),
            false => Ok(Vec::new()),
        }
    }

    fn remove(&self, name: &str) -> KvResult<()> {
        let path = self.path.join(name);
        self.fs.remove(&path).map_err(|error| io_error(&path, &error))
    }

    /// A path for a new file.
    pub(crate) fn new_path(&self, job: Option<u32>, ending: &str) -> KvResult<PathBuf> {
        self.fs.create_dir_all(&self.path).map_err(|error| io_error(&self.path, &error))?;
        let number = self.next_file.fetch_add(1, Ordering::Relaxed);
        let owner = job.map_or_else(String::new, |job| format!("job-{job}-"));
        Ok(self.path.join(format!("{owner}{number:08}.{ending}")))
    }

    /// The path of a file that [`BulkFolder::new_path`] gave, by its name.
    pub(super) fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Makes names durable.
    pub(super) fn sync(&self) -> KvResult<()> {
        self.fs.sync_dir(&self.path).map_err(|error| io_error(&self.path, &error))
    }

    /// Removes files of jobs of which `lives` says no, given the job and the file's name.
    pub(crate) fn sweep(&self, lives: impl Fn(u32, &str) -> bool) -> KvResult<()> {
        for name in self.names()? {
            if job_of(&name).is_some_and(|job| !lives(job, &name)) {
                self.remove(&name)?;
            }
        }
        Ok(())
    }

    fn note(&self, job: u32) -> PathBuf {
        self.path.join(format!("job-{job}-note"))
    }

    /// Replaces a job's note in one step; durable when it returns.
    pub(crate) fn write_note(&self, job: u32, content: &[u8]) -> KvResult<()> {
        let (note, new) = (self.note(job), self.path.join(format!("job-{job}-note.new")));
        let mut bytes = crc32c::crc32c(content).to_le_bytes().to_vec();
        bytes.extend_from_slice(content);
        let written = self.fs.create_dir_all(&self.path).and_then(|()| {
            let file = self.fs.create(&new)?;
            file.write_at(&bytes, 0)?;
            file.sync_data()?;
            self.fs.rename(&new, &note)
        });
        written.map_err(|error| io_error(&new, &error))?;
        self.sync()
    }

    /// A job's note; `None` if there is none that is whole.
    pub(crate) fn read_note(&self, job: u32) -> Option<Vec<u8>> {
        let bytes = read_all(&*self.fs, &self.note(job)).ok()?;
        let (crc, content) = bytes.split_first_chunk::<4>()?;
        (crc32c::crc32c(content) == u32::from_le_bytes(*crc)).then(|| content.to_vec())
    }
}

pub(super) fn io_error(path: &Path, error: &std::io::Error) -> KvError {
    if error.kind() == std::io::ErrorKind::StorageFull {
        return KvError::Engine(braid_lsm::Error::DiskFull);
    }
    let (context, kind) = (path.display().to_string(), error.kind());
    KvError::Engine(braid_lsm::Error::Io { context, kind, message: error.to_string() })
}
