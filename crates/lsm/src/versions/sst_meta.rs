//! What the engine knows about a live sst without opening it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use braid_env::fs::FileSystem;
use bytes::Bytes;

use crate::cache::BlockCache;
use crate::error::{Error, Result};
use crate::key::KeySpan;
use crate::sstable::{Properties, SstReader, sst_path};

/// What is needed to open ssts.
pub(crate) struct SstEnv {
    pub(crate) fs: Arc<dyn FileSystem>,
    pub(crate) dir: PathBuf,
    pub(crate) cache: Arc<BlockCache>,
}

/// One sst of a version. Immutable, except for its lazily opened reader.
pub(crate) struct SstMeta {
    pub(crate) file_no: u64,
    pub(crate) level: usize,
    pub(crate) size: u64,
    bounds: KeySpan,
    pub(crate) arrival_low: u64,
    pub(crate) arrival_high: u64,
    pub(crate) min_ts: u64,
    pub(crate) max_ts: u64,
    pub(crate) max_point_ts: u64,
    pub(crate) rows: u64,
    pub(crate) deletes: u64,
    pub(crate) tombstones: u64,
    file: Arc<LiveFile>,
}

/// The file behind one or more `SstMeta` (a move to another level makes a new meta). The last
/// owner removes it if it is obsolete by then.
pub(crate) struct LiveFile {
    reader: OnceLock<Arc<SstReader>>,
    obsolete: AtomicBool,
    remove: Option<(Arc<dyn FileSystem>, PathBuf)>,
}

impl Drop for LiveFile {
    fn drop(&mut self) {
        if !self.obsolete.load(Ordering::Acquire) {
            return;
        }
        if let Some((fs, path)) = &self.remove {
            // The next open removes what could not be removed now.
            if let Err(error) = fs.remove(path) {
                tracing::warn!(path = %path.display(), %error, "cannot remove obsolete sst");
            }
        }
    }
}

/// The numbers of a new sst, as they are stored in an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SstFacts {
    pub(crate) file_no: u64,
    pub(crate) level: usize,
    pub(crate) size: u64,
    pub(crate) start: Bytes,
    pub(crate) end: Bytes,
    pub(crate) arrival_low: u64,
    pub(crate) arrival_high: u64,
    pub(crate) min_ts: u64,
    pub(crate) max_ts: u64,
    pub(crate) max_point_ts: u64,
    pub(crate) rows: u64,
    pub(crate) deletes: u64,
    pub(crate) tombstones: u64,
}

impl SstFacts {
    pub(crate) fn of(file_no: u64, level: usize, size: u64, properties: &Properties) -> SstFacts {
        SstFacts {
            file_no,
            level,
            size,
            start: properties.start.clone(),
            end: properties.end.clone(),
            arrival_low: properties.arrival_low,
            arrival_high: properties.arrival_high,
            min_ts: properties.min_ts,
            max_ts: properties.max_ts,
            max_point_ts: properties.max_point_ts,
            rows: properties.rows,
            deletes: properties.deletes,
            tombstones: properties.tombstones,
        }
    }
}

impl SstMeta {
    pub(crate) fn new(facts: &SstFacts, env: &SstEnv) -> SstMeta {
        let path = sst_path(&env.dir, facts.file_no);
        let file = Arc::new(LiveFile {
            reader: OnceLock::new(),
            obsolete: AtomicBool::new(false),
            remove: Some((env.fs.clone(), path)),
        });
        SstMeta::over(facts, file)
    }

    fn over(facts: &SstFacts, file: Arc<LiveFile>) -> SstMeta {
        SstMeta {
            file_no: facts.file_no,
            level: facts.level,
            size: facts.size,
            bounds: KeySpan { start: facts.start.clone(), end: facts.end.clone() },
            arrival_low: facts.arrival_low,
            arrival_high: facts.arrival_high,
            min_ts: facts.min_ts,
            max_ts: facts.max_ts,
            max_point_ts: facts.max_point_ts,
            rows: facts.rows,
            deletes: facts.deletes,
            tombstones: facts.tombstones,
            file,
        }
    }

    /// The same file at another level.
    pub(crate) fn moved(&self, level: usize) -> SstMeta {
        SstMeta::over(&SstFacts { level, ..self.facts() }, self.file.clone())
    }

    pub(crate) fn facts(&self) -> SstFacts {
        SstFacts {
            file_no: self.file_no,
            level: self.level,
            size: self.size,
            start: self.bounds.start.clone(),
            end: self.bounds.end.clone(),
            arrival_low: self.arrival_low,
            arrival_high: self.arrival_high,
            min_ts: self.min_ts,
            max_ts: self.max_ts,
            max_point_ts: self.max_point_ts,
            rows: self.rows,
            deletes: self.deletes,
            tombstones: self.tombstones,
        }
    }

    /// Every key and tombstone of the sst is in this span.
    pub(crate) fn bounds(&self) -> &KeySpan {
        &self.bounds
    }

    /// Its file goes when the last view and version lets go of it.
    pub(crate) fn make_obsolete(&self) {
        self.file.obsolete.store(true, Ordering::Release);
    }

    /// The open sst; opens it at the first call.
    pub(crate) fn reader(&self, env: &SstEnv) -> Result<Arc<SstReader>> {
        if let Some(reader) = self.file.reader.get() {
            return Ok(reader.clone());
        }
        let path = sst_path(&env.dir, self.file_no);
        let reader = SstReader::open(&*env.fs, &path, self.file_no, env.cache.clone())?;
        let facts = reader.properties();
        let found = SstFacts::of(self.file_no, self.level, self.size, facts);
        if found != self.facts() {
            let reason = "the sst is not the one that the manifest describes";
            return Err(Error::corruption(path, self.size, reason));
        }
        Ok(self.file.reader.get_or_init(|| Arc::new(reader)).clone())
    }
}
