//! Bulk loads: any number of rows, sorted outside of memory, that enter the store as finished ssts
//! in one step.
//!
//! ```text
//!   put(target, key, value)      in any order
//!     buffer of the target  ──full──►  sorted run on disk     ┐
//!     buffer of the target  ──full──►  sorted run on disk     ├─ finish: one merge in key order
//!     what is still in memory, sorted                         ┘   ──► ssts that share no keys
//!   Txn::ingest_private   now, at the transaction's read timestamp: a span that nobody else knows
//!   Txn::attach           at commit, at the commit timestamp: one edit of the manifest
//! ```
//!
//! - [`buffer`]: rows of one target in memory, and their order.
//! - [`run`]: sorted runs on disk; their blocks carry checksums.
//! - [`merge`]: all runs and buffers as one ordered stream, cut into ssts.
//!
//! *Targets* are places in key space that are filled at the same time, such as a table's rows and
//! one of its indexes: rows often arrive in key order, index entries hardly ever do.
//!
//! **Memory** is bounded by [`BulkLoad::new`]'s budget, whatever is loaded, and by what its account
//! gives: a buffer that is refused becomes a run. **Files** lie in the
//! folder `bulk` of the store's directory; what a crash leaves there is removed at the next open.
//! No lock is taken for a row: the caller holds what keeps others away from the targets.

pub(crate) mod buffer;
pub(crate) mod merge;
pub(crate) mod run;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use braid_env::fs::FileSystem;
use braid_env::memory::Account;
use braid_env::tasks::side_by_side;
use braid_lsm::{CommitTs, SstBuilder, even_cuts};

use self::buffer::Buffer;
use self::merge::{Merge, Part, Source};
use self::run::{Run, RunWriter};
use crate::error::{KvError, KvResult};

/// Size at which an sst of a load ends, in bytes.
const SST_BYTES: u64 = 64 << 20;

/// Where loads of a store put their files.
pub(crate) struct BulkFolder {
    fs: Arc<dyn FileSystem>,
    path: PathBuf,
    options: braid_lsm::Options,
    next_file: AtomicU64,
}

impl BulkFolder {
    /// The folder below a store's directory. Removes what an earlier process left there.
    pub(crate) fn open(
        fs: Arc<dyn FileSystem>,
        store: &std::path::Path,
        options: braid_lsm::Options,
    ) -> KvResult<Arc<BulkFolder>> {
        let path = store.join("bulk");
        let failed = |error| io_error(&path, &error);
        if fs.exists(&path).map_err(failed)? {
            for name in fs.list(&path).map_err(failed)? {
                fs.remove(&path.join(name)).map_err(failed)?;
            }
        }
        Ok(Arc::new(BulkFolder { fs, path, options, next_file: AtomicU64::new(0) }))
    }

    fn new_path(&self, ending: &str) -> KvResult<PathBuf> {
        self.fs.create_dir_all(&self.path).map_err(|error| io_error(&self.path, &error))?;
        let number = self.next_file.fetch_add(1, Ordering::Relaxed);
        Ok(self.path.join(format!("{number:08}.{ending}")))
    }
}

fn io_error(path: &std::path::Path, error: &std::io::Error) -> KvError {
    if error.kind() == std::io::ErrorKind::StorageFull {
        return KvError::Engine(braid_lsm::Error::DiskFull);
    }
    let (context, kind) = (path.display().to_string(), error.kind());
    KvError::Engine(braid_lsm::Error::Io { context, kind, message: error.to_string() })
}

/// Rows on their way into the store.
pub struct BulkLoad {
    folder: Arc<BulkFolder>,
    /// With the target they belong to; the first ones are filled.
    buffers: Vec<(usize, Buffer)>,
    /// With the target they belong to.
    runs: Vec<(usize, Run)>,
    /// Bytes that one buffer may hold.
    budget: usize,
}

/// Parts that are merged side by side have at least so many bytes.
const PART_BYTES: u64 = 4 << 20;
/// A buffer is looked at in so many places to find where to cut.
const MARKS: usize = 64;

/// What [`BulkLoad::finish`] tells about each row, in key order.
pub struct Loaded<'a> {
    /// Which target it was put to.
    pub target: usize,
    /// Its key.
    pub key: &'a [u8],
    /// Its value.
    pub value: &'a [u8],
    /// Whether the row before had the same key. The caller must refuse that.
    pub again: bool,
}

impl BulkLoad {
    pub(crate) fn new(
        folder: Arc<BulkFolder>,
        targets: usize,
        budget: usize,
        account: &Arc<Account>,
    ) -> BulkLoad {
        let budget = (budget / targets.max(1)).max(1 << 16);
        let buffers = (0..targets).map(|target| (target, Buffer::new(account))).collect();
        BulkLoad { folder, buffers, runs: Vec::new(), budget }
    }

    /// Adds a row to a target.
    ///
    /// # Errors
    /// The disk's, when a full buffer becomes a run; [`KvError::OutOfMemory`] if not even one row
    /// may be held.
    pub fn put(&mut self, target: usize, key: &[u8], value: &[u8]) -> KvResult<()> {
        let buffer = &mut self.buffers[target].1;
        if !buffer.is_empty() && buffer.bytes() + key.len() + value.len() > self.budget {
            self.spill(target)?;
        }
        match self.buffers[target].1.push(key, value) {
            Err(_) if !self.buffers[target].1.is_empty() => {
                self.spill(target)?;
                Ok(self.buffers[target].1.push(key, value)?)
            }
            other => Ok(other?),
        }
    }

    /// Puts what is in memory in order, as [`BulkLoad::finish`] would: for loads that are filled
    /// side by side and then become one.
    pub fn sort(&mut self) {
        self.buffers.iter_mut().for_each(|(_, buffer)| buffer.sort());
    }

    /// Takes over the rows of another load, with the same targets.
    pub fn absorb(&mut self, other: BulkLoad) {
        self.buffers.extend(other.buffers);
        self.runs.extend(other.runs);
    }

    /// Whether everything is still in memory, and takes fewer bytes than this.
    pub fn is_below(&self, bytes: usize) -> bool {
        self.runs.is_empty() && self.buffers.iter().map(|(_, b)| b.bytes()).sum::<usize>() < bytes
    }

    fn spill(&mut self, target: usize) -> KvResult<()> {
        let path = self.folder.new_path("run")?;
        let mut writer = RunWriter::create(&self.folder.fs, path)?;
        let buffer = &mut self.buffers[target].1;
        buffer.sort();
        for (key, value) in buffer.rows(0..buffer.len()) {
            writer.put(key, value)?;
        }
        buffer.clear();
        self.runs.push((target, writer.finish()?));
        Ok(())
    }

    /// The rows of a part in key order. The buffers are sorted.
    fn merge(&self, part: &Part) -> KvResult<Merge<'_>> {
        let mut sources = Vec::new();
        for (target, buffer) in &self.buffers {
            sources.push((*target, Source::memory(buffer, part)));
        }
        for (target, run) in &self.runs {
            sources.push((*target, Source::run(run, part)?));
        }
        Ok(Merge::new(sources))
    }

    /// Calls `each` with every row in key order, and nothing else: for loads that turned out to be
    /// small.
    pub fn drain<E: From<KvError>>(
        mut self,
        each: impl FnMut(Loaded<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.visit(each)
    }

    /// Calls `each` with every row in key order, and writes nothing.
    pub fn visit<E: From<KvError>>(
        &mut self,
        mut each: impl FnMut(Loaded<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.sort();
        let mut merge = self.merge(&Part::default())?;
        while let Some(row) = merge.next()? {
            each(row)?;
        }
        Ok(())
    }

    /// Writes the ssts. `each` sees every row before it is written and may refuse the load.
    ///
    /// # Errors
    /// Those of `each`, and the disk's; nothing is left of the load then.
    pub fn finish<E: From<KvError>>(
        mut self,
        each: impl FnMut(Loaded<'_>) -> Result<(), E>,
    ) -> Result<BulkFiles, E> {
        self.sort();
        let mut files = BulkFiles { folder: self.folder.clone(), paths: Vec::new() };
        self.write(&Part::default(), &mut files, each)?;
        Ok(files)
    }

    /// As [`BulkLoad::finish`], on several threads, each with a part of the keys. `each` is asked
    /// for what sees the rows of one part, in order; equal keys are always in the same part.
    ///
    /// # Errors
    /// As there. If several parts fail, the first one's.
    pub fn finish_beside<E, F>(
        mut self,
        threads: usize,
        each: impl Fn() -> F + Sync,
    ) -> Result<BulkFiles, E>
    where
        E: From<KvError> + Send,
        F: FnMut(Loaded<'_>) -> Result<(), E>,
    {
        self.sort();
        let mut files = BulkFiles { folder: self.folder.clone(), paths: Vec::new() };
        let (load, each) = (&self, &each);
        let jobs = Part::between(load.cuts(threads)).into_iter().map(|part| {
            let mut own = BulkFiles { folder: load.folder.clone(), paths: Vec::new() };
            move || load.write(&part, &mut own, each()).map(|()| own)
        });
        for own in side_by_side("bulk-load", jobs.collect()) {
            files.paths.append(&mut own?.paths);
        }
        Ok(files)
    }

    /// Keys that cut the rows into as many parts of about the same size. The buffers are sorted.
    fn cuts(&self, parts: usize) -> Vec<Vec<u8>> {
        let mut marks: Vec<(&[u8], u64)> = Vec::new();
        for (_, buffer) in &self.buffers {
            let step = (buffer.len() / MARKS).max(1);
            let bytes = buffer.bytes() as u64 * step as u64 / buffer.len().max(1) as u64;
            let keys = buffer.rows(0..buffer.len()).step_by(step).map(|(key, _)| (key, bytes));
            marks.extend(keys);
        }
        marks.extend(self.runs.iter().flat_map(|(_, run)| run.marks()));
        let cuts = even_cuts(marks, parts, PART_BYTES);
        cuts.into_iter().map(<[u8]>::to_vec).collect()
    }

    /// Writes the ssts of one part.
    fn write<E: From<KvError>>(
        &self,
        part: &Part,
        files: &mut BulkFiles,
        mut each: impl FnMut(Loaded<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let folder = &self.folder;
        let mut merge = self.merge(part)?;
        let mut open: Option<SstBuilder> = None;
        while let Some(row) = merge.next()? {
            let (key, value) = (row.key, row.value);
            each(Loaded { target: row.target, key, value, again: row.again })?;
            let builder = match &mut open {
                Some(builder) => builder,
                None => {
                    let path = folder.new_path("sst")?;
                    files.paths.push(path.clone());
                    let (fs, options) = (&folder.fs, &folder.options);
                    let builder = SstBuilder::create(fs, &path, CommitTs(1), options);
                    open.insert(builder.map_err(KvError::from)?)
                }
            };
            builder.put(key, value).map_err(KvError::from)?;
            if builder.size() >= SST_BYTES {
                let full = open.take().expect("it was just written to");
                full.finish().map_err(KvError::from)?;
            }
        }
        if let Some(last) = open {
            last.finish().map_err(KvError::from)?;
        }
        Ok(())
    }
}

/// Finished ssts that wait to be ingested. Removed when dropped: an ingest links them first.
pub struct BulkFiles {
    folder: Arc<BulkFolder>,
    paths: Vec<PathBuf>,
}

impl BulkFiles {
    /// Whether there is nothing to ingest.
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// By name, where the store finds them.
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }
}

impl Drop for BulkFiles {
    fn drop(&mut self) {
        for path in &self.paths {
            if let Err(error) = self.folder.fs.remove(path) {
                tracing::warn!(path = %path.display(), %error, "cannot remove a file of a load");
            }
        }
    }
}
