//! Batches that are prepared before they take their place in the order of arrival.
//!
//! The commit mutex decides the order; whoever holds it keeps everybody waiting. So all that does
//! not depend on the place is done in front of it, and a batch of very many rows does not go
//! through the memtable at all:
//!
//! ```text
//!                  small                          large
//!   prepare        net effect, wal form           net effect; ssts, written and durable
//!                  room in memory and L0          the same
//!   -- commit mutex ------------------------------------------------------------------
//!   apply at ts    wal queue, memtable            one wal record that names the ssts
//!   ----------------------------------------------------------------------------------
//!   relieve        the queue, if it is long       part of the version, if it is its turn
//! ```
//!
//! The ssts are ingested (see `ingest`) with all entries at the commit's timestamp, which is not
//! known when they are written. Ssts that the caller has finished himself go the same way, from
//! the names on that they get in the directory. A batch that is dropped takes its files with it;
//! those that a crash leaves behind are removed by the next open, as nothing refers to them.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;

use super::ingest::IngestOptions;
use super::queued::Incoming;
use super::record::StructuralRecord;
use crate::batch::{Batch, BatchOp};
use crate::cache::BlockCache;
use crate::commit::Pending;
use crate::error::{Error, Result};
use crate::key::{CommitTs, KeySpan};
use crate::memtable::Tombstone;
use crate::range_tombstone::coalesce;
use crate::sstable::{SstIdentity, SstReader, SstWriter, WRITE_SIZE, WriterOptions, sst_path};
use crate::store::Store;
use crate::versions::{Backing, SstFacts};

/// Files of a store have no such numbers: their timestamps are not their own.
const WRITTEN_EARLY: u64 = 1 << 62;
/// Stands in the files; every reader sees the commit's instead.
pub(super) const ANY_TS: u64 = 1;
/// Keys of memtables that are looked up in a file, under the commit mutex.
const MOST_LOOKUPS: usize = 64;

/// A batch that is ready to be applied. Dropping it leaves nothing behind.
#[must_use = "nothing is written before apply()"]
pub struct PreparedBatch {
    store: Arc<Store>,
    batch: Batch,
    files: Vec<EarlyFile>,
    /// Finished ssts that `files` are names of: then the batch is empty.
    sources: Vec<PathBuf>,
    is_applied: bool,
    /// A wal record may name the files.
    are_kept: bool,
}

/// An sst that has no place yet.
pub(super) struct EarlyFile {
    pub(super) path: PathBuf,
    pub(super) backing: Backing,
    /// The reader is that of `path`.
    pub(super) is_named: bool,
    pub(super) reader: Arc<SstReader>,
}

impl EarlyFile {
    fn span(&self) -> KeySpan {
        let properties = self.reader.properties();
        KeySpan { start: properties.start.clone(), end: properties.end.clone() }
    }

    /// With the timestamp that its entries get: it is not opened again.
    fn at(self, ts: CommitTs, store: &Store) -> EarlyFile {
        let Backing { file_no, sealed_no, .. } = self.backing;
        let named = SstIdentity { file_no, sealed_no: Some(sealed_no), ts_override: ts.0 };
        if !self.is_named {
            return self;
        }
        match Arc::try_unwrap(self.reader) {
            Ok(reader) => {
                let reader = reader.placed(self.path.clone(), named, store.env.cache.clone());
                EarlyFile { reader: Arc::new(reader), ..self }
            }
            Err(reader) => EarlyFile { is_named: false, reader, ..self },
        }
    }

    /// The reader, if the store's sst can have it.
    fn open_reader(&self) -> Option<Arc<SstReader>> {
        self.is_named.then(|| self.reader.clone())
    }

    fn facts(&self, ts: CommitTs) -> SstFacts {
        let mut properties = self.reader.properties().clone();
        properties.override_ts(ts.0);
        SstFacts::over(0, &properties, Backing { ts_override: ts.0, ..self.backing })
    }
}

impl Drop for PreparedBatch {
    fn drop(&mut self) {
        if self.are_kept {
            return;
        }
        for file in &self.files {
            if let Err(error) = self.store.env.fs.remove(&file.path) {
                tracing::warn!(path = %file.path.display(), %error, "cannot remove an early sst");
            }
        }
    }
}

impl PreparedBatch {
    /// Applies the batch at `ts`, as [`Db::apply`](crate::Db::apply) does: visible when it
    /// returns. Never waits for the device or for background work. Afterwards, outside of all
    /// locks, the caller lets [`Pending::relieve`] do the rest, and drops this: to give the memory
    /// of a large batch back takes its time, too.
    ///
    /// # Panics
    /// If it is applied a second time.
    pub fn apply(&mut self, ts: CommitTs) -> Result<Pending> {
        assert!(!std::mem::replace(&mut self.is_applied, true), "a batch is applied once");
        self.batch.set_ts(ts);
        let store = self.store.clone();
        // An old timestamp may be among rows that are newer: the memtable knows how to tell.
        if self.files.is_empty() || ts.0 <= store.newest.load(Ordering::Acquire) {
            return self.apply_among_newer(ts);
        }
        store.place_early(self, ts)
    }

    /// Where something newer has come meanwhile, each entry has to be compared with what is there.
    /// That of finished ssts waits for the device: it does not happen where one clock gives all
    /// timestamps.
    fn apply_among_newer(&mut self, ts: CommitTs) -> Result<Pending> {
        let store = &self.store;
        if self.sources.is_empty() {
            return store.apply_prepared(&mut self.batch);
        }
        let options = IngestOptions { ts_override: Some(ts), ..IngestOptions::default() };
        store.ingest(&self.sources, options)?;
        Ok(Pending::of_files(store.clone(), store.wal.appended()))
    }

    /// Of finished ssts, the names of which are durable.
    pub(super) fn of_files(
        store: Arc<Store>,
        files: Vec<EarlyFile>,
        sources: Vec<PathBuf>,
    ) -> PreparedBatch {
        let batch = Batch::at(CommitTs(ANY_TS));
        PreparedBatch { store, batch, files, sources, is_applied: false, are_kept: false }
    }

    /// What it touches: deleted spans first, as start and end, then keys in order.
    pub fn touched(&self) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
        self.batch.ops().map(|op| match op {
            BatchOp::Span { start, end } => (start, Some(end)),
            BatchOp::Point { key, .. } => (key, None),
        })
    }

    /// Number of keys and spans that it touches.
    pub fn touched_count(&self) -> usize {
        self.batch.len()
    }
}

impl Store {
    /// See [`Db::prepare`](crate::Db::prepare).
    pub(crate) fn prepare_batch(self: &Arc<Store>, mut batch: Batch) -> Result<PreparedBatch> {
        batch.normalise()?;
        if batch.adds_data() && self.ballast.is_full() {
            return Err(Error::DiskFull);
        }
        let size = batch.encoded().len() as u64;
        self.make_room(size)?;
        let store = self.clone();
        let (files, sources) = (Vec::new(), Vec::new());
        let mut prepared =
            PreparedBatch { store, batch, files, sources, is_applied: false, are_kept: false };
        let options = &self.options;
        if prepared.batch.len() >= options.large_batch_rows || size >= options.large_batch_bytes {
            self.write_early(&mut prepared)?;
        }
        Ok(prepared)
    }

    /// Writes the batch into ssts, disjoint and durable under their names.
    fn write_early(&self, prepared: &mut PreparedBatch) -> Result<()> {
        let PreparedBatch { batch, files, .. } = prepared;
        let mut spans = Vec::with_capacity(batch.span_count());
        spans.extend(batch.ops().filter_map(|op| match op {
            BatchOp::Span { start, end } => {
                let (start, end) = (Bytes::copy_from_slice(start), Bytes::copy_from_slice(end));
                Some(Tombstone { start, end, ts: ANY_TS })
            }
            BatchOp::Point { .. } => None,
        }));
        let spans = coalesce(spans);
        let mut from = Bytes::new();
        let mut open: Option<(u64, SstWriter)> = None;
        for op in batch.ops() {
            let BatchOp::Point { key, kind, value } = op else { continue };
            // Each is synced when it is complete: syncs of the wal wait behind that much at most.
            let largest = self.options.target_sst_size.saturating_mul(2);
            if open.as_ref().is_some_and(|(_, writer)| writer.size() >= largest) {
                let to = Bytes::copy_from_slice(key);
                let part = clipped(&spans, &from, Some(&to));
                files.push(self.finish_early(open.take().expect("just seen"), &part)?);
                from = to;
            }
            let (_, writer) = match &mut open {
                Some(open) => open,
                None => open.insert(self.begin_early()?),
            };
            writer.add(key, ANY_TS, kind, value)?;
        }
        let part = clipped(&spans, &from, None);
        let last = match open {
            Some(open) => open,
            None => self.begin_early()?,
        };
        files.push(self.finish_early(last, &part)?);
        let dir = &self.env.dir;
        let synced = self.names.sync(&*self.env.fs, dir);
        synced.map_err(|error| Error::io(format!("syncing {}", dir.display()), &error))
    }

    fn begin_early(&self) -> Result<(u64, SstWriter)> {
        let file_no = self.next_file.fetch_add(1, Ordering::AcqRel);
        let options = WriterOptions {
            block_size: self.options.block_size,
            index_partition_size: self.options.index_partition_size,
            filter_bits_per_key: self.options.filter_bits_per_key,
            codec: self.options.codec,
            row_class: self.options.row_class,
            write_size: WRITE_SIZE,
        };
        let path = sst_path(&self.env.dir, file_no);
        let writer = SstWriter::create(&*self.env.fs, path, file_no | WRITTEN_EARLY, options)?;
        Ok((file_no, writer))
    }

    fn finish_early(
        &self,
        (file_no, writer): (u64, SstWriter),
        spans: &[Tombstone],
    ) -> Result<EarlyFile> {
        let (properties, size) = writer.finish(spans, (0, 0))?;
        let path = sst_path(&self.env.dir, file_no);
        let (sealed_no, identity) = (file_no | WRITTEN_EARLY, properties.identity);
        let named = SstIdentity { file_no, sealed_no: Some(sealed_no), ts_override: 0 };
        // Only looked into for a few keys before it has its timestamp.
        let cache = Arc::new(BlockCache::new(1 << 20));
        let reader = Arc::new(SstReader::open(&*self.env.fs, &path, named, cache)?);
        let backing = Backing { file_no, size, sealed_no, ts_override: 0, identity };
        Ok(EarlyFile { path, backing, is_named: true, reader })
    }

    /// Gives the files of a batch their place.
    fn place_early(
        self: &Arc<Store>,
        prepared: &mut PreparedBatch,
        ts: CommitTs,
    ) -> Result<Pending> {
        let files = prepared.files.drain(..);
        prepared.files = files.map(|file| file.at(ts, self)).collect();
        let mut commit = self.commit.lock();
        if self.closed.load(Ordering::Acquire) {
            return Err(Error::Closed);
        }
        let newest = self.newest.load(Ordering::Acquire);
        let oldest = self.gc_threshold.load(Ordering::Acquire);
        if ts.0 <= newest.max(oldest) || ts.0 == u64::MAX {
            // Somebody came before us with a newer timestamp.
            drop(commit);
            return prepared.apply_among_newer(ts);
        }
        let number = self.next_file.fetch_add(1, Ordering::AcqRel);
        let ssts = prepared.files.iter().map(|file| file.facts(ts)).collect();
        let record = StructuralRecord { number, excised: None, ssts };
        let files = &prepared.files;
        let incoming = Incoming {
            excised: None,
            spans: files.iter().map(EarlyFile::span).collect(),
            open: &|i| Ok(files[i].reader.clone()),
            patience: MOST_LOOKUPS,
        };
        let arrival = self.make_place(&mut commit, &incoming)?;
        // From here on the wal may name the files.
        prepared.are_kept = true;
        let readers = files.iter().map(EarlyFile::open_reader).collect();
        let op = self.put_in_place(&mut commit, record, arrival, readers)?;
        commit.last_lsn = commit.last_lsn.max(op.lsn);
        self.count_batch(&prepared.batch);
        Ok(Pending::of_files(self.clone(), op.lsn))
    }
}

/// The parts of tombstones in `[from, to)`.
fn clipped(spans: &[Tombstone], from: &Bytes, to: Option<&Bytes>) -> Vec<Tombstone> {
    let inside = spans.iter().filter_map(|span| {
        let start = span.start.clone().max(from.clone());
        let end = to.map_or(span.end.clone(), |to| span.end.clone().min(to.clone()));
        (start < end).then_some(Tombstone { start, end, ts: span.ts })
    });
    inside.collect()
}
