//! What the engine knows about a live sst without opening it.
//!
//! An sst of a version is a *span of a file*. Usually that is the whole file. A **virtual sst** is
//! a part of one: structural edits cut files by changing bounds, never bytes:
//!
//! ```text
//!   file 7     a b c d e f g h i j k l m n o p     bytes on disk: unchanged
//!   before     [------------ sst 7 -----------]
//!   excise [e, k):
//!   after      [-- sst 21 -]         [- sst 22-]   both backed by file 7; e to j is garbage
//! ```
//!
//! * Readers and compactions see only what lies inside the bounds, points and tombstones alike.
//! * Counts and sizes of a virtual sst are estimates; `min_ts`, `max_ts` and `max_point_ts` are
//!   bounds (the file's own). Its key bounds and its number of range tombstones are exact.
//! * The file goes when the last sst on it has left the version and no view pins one.
//!
//! An ingested file keeps the number that its checksums were made with (`sealed_no`), and its rows
//! may all be read as of one timestamp (`ts_override`); neither rewrites a byte.

use std::ops::Deref;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use crate::cache::BlockCache;
use crate::compaction::ReadDebt;
use crate::error::{Error, Result};
use crate::key::KeySpan;
use crate::memtable::Tombstone;
use crate::sstable::{Properties, SstEntries, SstIdentity, SstReader, sst_path};
use braid_env::fs::FileSystem;

/// What is needed to open ssts.
pub(crate) struct SstEnv {
    pub(crate) fs: Arc<dyn FileSystem>,
    pub(crate) dir: PathBuf,
    pub(crate) cache: Arc<BlockCache>,
    /// Whether versions lay out L0 as sublevels.
    pub(crate) l0_sublevels: bool,
}

/// The file that holds an sst's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Backing {
    /// Number in the file's name. Equals the sst's own number unless the sst is virtual.
    pub(crate) file_no: u64,
    /// Bytes of the file.
    pub(crate) size: u64,
    /// Number that the file's checksums were made with: differs for ingested files.
    pub(crate) sealed_no: u64,
    /// All entries are read as of this timestamp; 0: each has its own.
    pub(crate) ts_override: u64,
    /// What the file's footer must say, so that no other file of this number, as of another store,
    /// is taken for it; 0 if that is not known (format version 1).
    pub(crate) identity: u64,
}

impl Backing {
    /// A file that its store wrote.
    pub(crate) fn own(file_no: u64, size: u64, identity: u64) -> Backing {
        Backing { file_no, size, sealed_no: file_no, ts_override: 0, identity }
    }
}

/// The numbers of an sst, as they are stored in an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SstFacts {
    /// Number of the sst, unique among all ssts and files of the store's life.
    pub(crate) file_no: u64,
    pub(crate) level: usize,
    /// Bytes, of a virtual sst its share of the file.
    pub(crate) size: u64,
    /// Every key and tombstone of the sst is in this span.
    pub(crate) bounds: KeySpan,
    pub(crate) arrival_low: u64,
    pub(crate) arrival_high: u64,
    pub(crate) min_ts: u64,
    pub(crate) max_ts: u64,
    pub(crate) max_point_ts: u64,
    pub(crate) rows: u64,
    pub(crate) deletes: u64,
    pub(crate) tombstones: u64,
    pub(crate) backing: Backing,
}

impl SstFacts {
    /// Facts of a file that this store wrote.
    pub(crate) fn of(file_no: u64, level: usize, size: u64, properties: &Properties) -> SstFacts {
        SstFacts::over(level, properties, Backing::own(file_no, size, properties.identity))
    }

    /// Facts of a whole file, whoever wrote it. `properties` have the override applied.
    pub(crate) fn over(level: usize, properties: &Properties, backing: Backing) -> SstFacts {
        SstFacts {
            file_no: backing.file_no,
            level,
            size: backing.size,
            bounds: KeySpan::new(properties.start.clone(), properties.end.clone()),
            arrival_low: properties.arrival_low,
            arrival_high: properties.arrival_high,
            min_ts: properties.min_ts,
            max_ts: properties.max_ts,
            max_point_ts: properties.max_point_ts,
            rows: properties.rows,
            deletes: properties.deletes,
            tombstones: properties.tombstones,
            backing,
        }
    }

    /// Whether the sst is only a part of its file.
    pub(crate) fn is_virtual(&self) -> bool {
        self.backing.file_no != self.file_no
    }
}

/// One sst of a version: its facts, which never change, and its lazily opened reader.
pub(crate) struct SstMeta {
    facts: SstFacts,
    /// What reads wasted on it.
    pub(crate) reads: ReadDebt,
    file: Arc<LiveFile>,
}

impl Deref for SstMeta {
    type Target = SstFacts;

    fn deref(&self) -> &SstFacts {
        &self.facts
    }
}

/// The file behind one or more `SstMeta`. The last owner removes it if it is obsolete by then.
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

impl SstMeta {
    /// An sst on a file that no other sst uses.
    pub(crate) fn new(facts: &SstFacts, env: &SstEnv) -> SstMeta {
        let path = sst_path(&env.dir, facts.backing.file_no);
        let file = Arc::new(LiveFile {
            reader: OnceLock::new(),
            obsolete: AtomicBool::new(false),
            remove: Some((env.fs.clone(), path)),
        });
        SstMeta::on(facts, file)
    }

    /// One whose file is open already, by its own name.
    pub(crate) fn opened(facts: &SstFacts, env: &SstEnv, reader: Arc<SstReader>) -> SstMeta {
        let sst = SstMeta::new(facts, env);
        // Nobody else knows it yet.
        let _is_first = sst.file.reader.set(reader);
        sst
    }

    fn on(facts: &SstFacts, file: Arc<LiveFile>) -> SstMeta {
        SstMeta { facts: facts.clone(), reads: ReadDebt::default(), file }
    }

    /// Another sst on the same file: moved to another level, or a part of it.
    pub(crate) fn sharing(&self, facts: &SstFacts) -> SstMeta {
        debug_assert_eq!(self.backing.file_no, facts.backing.file_no);
        SstMeta::on(facts, self.file.clone())
    }

    pub(crate) fn facts(&self) -> &SstFacts {
        &self.facts
    }

    /// Every key and tombstone of the sst is in this span.
    pub(crate) fn bounds(&self) -> &KeySpan {
        &self.facts.bounds
    }

    /// Its file goes when the last view and version lets go of it. Only for files that no sst of
    /// the current version uses any more.
    pub(crate) fn make_obsolete(&self) {
        self.file.obsolete.store(true, Ordering::Release);
    }

    /// The open file; opens it at the first call. It may hold more than this sst: clip what comes
    /// from it, unless it was asked for by a key inside the bounds.
    #[inline]
    pub(crate) fn reader(&self, env: &SstEnv) -> Result<&Arc<SstReader>> {
        match self.file.reader.get() {
            Some(reader) => Ok(reader),
            None => self.open(env),
        }
    }

    #[cold]
    fn open(&self, env: &SstEnv) -> Result<&Arc<SstReader>> {
        let Backing { file_no, size, sealed_no, ts_override, .. } = self.backing;
        let path = sst_path(&env.dir, file_no);
        let identity = SstIdentity { file_no, sealed_no: Some(sealed_no), ts_override };
        let reader = SstReader::open(&*env.fs, &path, identity, env.cache.clone())?;
        if !self.is_described_by(reader.properties()) {
            let reason = "the sst is not the one that the manifest describes";
            return Err(Error::corruption(path, size, reason));
        }
        Ok(self.file.reader.get_or_init(|| Arc::new(reader)))
    }

    fn is_described_by(&self, properties: &Properties) -> bool {
        let identity = self.backing.identity;
        if identity != 0 && properties.identity != identity {
            return false;
        }
        let whole = SstFacts::over(self.level, properties, self.backing);
        if self.is_virtual() {
            return whole.bounds.covers(&self.bounds)
                && whole.rows >= self.rows
                && whole.max_ts >= self.max_ts
                && whole.min_ts <= self.min_ts;
        }
        // An ingested file does not know when it will arrive.
        let (arrival_low, arrival_high) = (self.arrival_low, self.arrival_high);
        let ingested = self.backing.sealed_no != self.backing.file_no;
        let whole = if ingested { SstFacts { arrival_low, arrival_high, ..whole } } else { whole };
        whole == self.facts
    }

    /// The range tombstones of the sst, oldest first, cut at its bounds.
    pub(crate) fn tombstones_inside(&self, env: &SstEnv) -> Result<Vec<Tombstone>> {
        if self.tombstones == 0 {
            return Ok(Vec::new());
        }
        Ok(cut_tombstones(&self.reader(env)?.skyline().tombstones(), &self.bounds))
    }

    /// All entries inside the bounds, every version.
    pub(crate) fn entries(&self, env: &SstEnv) -> Result<SstEntries> {
        let reader = self.reader(env)?.clone();
        if self.is_virtual() {
            SstEntries::open_span(reader, self.bounds.clone())
        } else {
            SstEntries::open(reader)
        }
    }

    /// The part of the sst inside `span`, as a virtual sst of number `file_no` at the same place;
    /// `None` if nothing of it is in there. Its bounds are as tight as its contents. Reads up to
    /// three blocks.
    pub(crate) fn clip(
        &self,
        span: &KeySpan,
        file_no: u64,
        env: &SstEnv,
    ) -> Result<Option<SstFacts>> {
        let span = self.bounds.intersect(span);
        if span.is_empty() {
            return Ok(None);
        }
        let reader = self.reader(env)?;
        let tombstones = cut_tombstones(&reader.skyline().tombstones(), &span);
        let extent = reader.extent(&span)?;
        let mut bounds = extent.as_ref().map(|extent| extent.bounds.clone());
        for tombstone in &tombstones {
            let own = KeySpan { start: tombstone.start.clone(), end: tombstone.end.clone() };
            bounds = Some(bounds.map_or(own.clone(), |bounds| KeySpan {
                start: bounds.start.min(own.start),
                end: bounds.end.max(own.end),
            }));
        }
        let Some(bounds) = bounds else { return Ok(None) };
        let newest_tombstone = tombstones.last().map_or(0, |tombstone| tombstone.ts);
        let oldest_tombstone = tombstones.first().map_or(u64::MAX, |tombstone| tombstone.ts);
        let mut facts =
            SstFacts { file_no, bounds, tombstones: tombstones.len() as u64, ..self.facts.clone() };
        match extent {
            Some(extent) => {
                let size = extent.bytes.clamp(1, self.size.max(1));
                let share = |count: u64| {
                    let part = u128::from(count) * u128::from(size) / u128::from(self.size.max(1));
                    (part as u64).max(u64::from(count > 0)).min(count)
                };
                facts.size = size;
                facts.rows = share(self.rows);
                facts.deletes = share(self.deletes);
                facts.max_ts = self.max_point_ts.max(newest_tombstone);
            }
            None => {
                (facts.rows, facts.deletes, facts.max_point_ts) = (0, 0, 0);
                (facts.min_ts, facts.max_ts) = (oldest_tombstone, newest_tombstone);
                facts.size = 1;
            }
        }
        Ok(Some(facts))
    }

    /// What is left of the sst if `span` is cut out of it: its parts below and above the span.
    /// `number` gives numbers for virtual ssts.
    pub(crate) fn cut_out(
        &self,
        span: &KeySpan,
        env: &SstEnv,
        mut number: impl FnMut() -> u64,
    ) -> Result<Vec<SstFacts>> {
        let low = KeySpan { start: self.bounds.start.clone(), end: span.start.clone() };
        let high = KeySpan { start: span.end.clone(), end: self.bounds.end.clone() };
        let mut parts = Vec::new();
        for side in [low, high].into_iter().filter(|side| !side.is_empty()) {
            parts.extend(self.clip(&side, number(), env)?);
        }
        Ok(parts)
    }
}

/// The parts of tombstones inside a span, in their order.
fn cut_tombstones(tombstones: &[Tombstone], span: &KeySpan) -> Vec<Tombstone> {
    let inside = tombstones.iter().filter_map(|tombstone| {
        let start = (&tombstone.start).max(&span.start).clone();
        let end = (&tombstone.end).min(&span.end).clone();
        (start < end).then_some(Tombstone { start, end, ts: tombstone.ts })
    });
    inside.collect()
}
