//! Taking finished ssts into the store, and cutting spans out of it.
//!
//! ```text
//!   open each file: footer, properties, index, tombstones      outside of any lock, once
//!   contract C1                        may have to look up every key of the files
//!   link it (or copy it) into the directory; sync
//!   -- commit mutex -------------------------------------------
//!   contracts C1, C2                   nothing is written if one is broken; C1 only against
//!                                      what arrived since, where a block of the file meets it
//!   shares keys with a memtable: seal  no flush is waited for
//!   wal record                         this is its place in the arrival order
//!   the queue of layers                visible from here on
//!   ------------------------------------------------------------
//!   make it part of the version if nothing older is in the way; else wait for the wal
//! ```
//!
//! Files too small to be worth an sst go through the memtable as one batch.
//!
//! An ingest waits for two syncs, the directory's and that of its edit or record, one after the
//! other; those who wait at the same time share them (`names`, `install`). A record that outlives a
//! crash must find its file; and as soon as it is in the wal, any other writer's sync may make it
//! durable, with batches behind it that count on it. Syncing the file would make its new name
//! durable on some file systems only.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use braid_env::fs::FileSystem;

use super::bulk::{ANY_TS, EarlyFile, PreparedBatch};
use super::queued::{Incoming, Place, Structural, without};
use super::record::StructuralRecord;
use crate::batch::Batch;
use crate::commit::CommitState;
use crate::compaction::BULK;
use crate::error::{Error, Result};
use crate::key::{CommitTs, KeySpan, Kind};
use crate::sstable::{SstEntries, SstIdentity, SstReader, sst_path};
use crate::state::State;
use crate::store::Store;
use crate::versions::{Backing, Run, SstFacts, SstMeta};
use crate::wal::Lsn;

/// Keys of memtables that are looked up in an ingested file, under the commit mutex.
const MOST_LOOKUPS: usize = 256;

/// How to ingest.
#[derive(Debug, Clone, Default)]
pub struct IngestOptions {
    /// All entries count as committed at this timestamp; the files stay as they are. They must
    /// hold one entry per key.
    pub ts_override: Option<CommitTs>,
    /// First cuts this span out of the store, in the same step: nothing that was there before is
    /// seen any more, at any time. New entries may then be older than what was there, and in files
    /// that lie in here whole as old as the GC threshold or older.
    pub excise: Option<KeySpan>,
}

/// A file that was opened and may be taken in.
struct Candidate {
    path: PathBuf,
    reader: Arc<SstReader>,
    /// The reader is that of the name that the file has in the store.
    is_placed: bool,
    ts_override: u64,
    size: u64,
}

impl Candidate {
    fn open(store: &Store, path: &Path, options: &IngestOptions) -> Result<Candidate> {
        let fs = &*store.env.fs;
        let io = |error| Error::io(format!("opening {}", path.display()), &error);
        let ts_override = options.ts_override.map_or(0, |ts| ts.0);
        let identity = SstIdentity { file_no: 0, sealed_no: None, ts_override };
        // Its blocks do not belong into the store's cache: it has no number there yet.
        let cache = Arc::new(crate::cache::BlockCache::new(1 << 20));
        let reader = Arc::new(SstReader::open(fs, path, identity, cache)?);
        let size = reader.file_len().map_err(io)?;
        let path_given = path.to_path_buf();
        let candidate = Candidate { path: path_given, reader, is_placed: false, ts_override, size };
        if ts_override > 0 && candidate.has_versions() {
            return refuse(path, "has several versions of a key: they cannot be of one timestamp");
        }
        Ok(candidate)
    }

    /// Under the name that is one of the same file: it is not opened again.
    fn placed(self, store: &Store, file_no: u64) -> Candidate {
        let identity = SstIdentity {
            file_no,
            sealed_no: Some(self.reader.sealed_no()),
            ts_override: self.ts_override,
        };
        let path = sst_path(&store.env.dir, file_no);
        match Arc::try_unwrap(self.reader) {
            Ok(reader) => {
                let reader = Arc::new(reader.placed(path, identity, store.env.cache.clone()));
                Candidate { reader, is_placed: true, ..self }
            }
            Err(reader) => Candidate { reader, ..self },
        }
    }

    /// The reader, if the store's sst can have it.
    fn open_reader(&self) -> Option<Arc<SstReader>> {
        self.is_placed.then(|| self.reader.clone())
    }

    fn has_versions(&self) -> bool {
        let top = self.reader.top();
        (0..top.len()).any(|part| top.has_versions(part))
    }

    /// The timestamp of its oldest entry.
    fn oldest(&self) -> u64 {
        self.reader.properties().min_ts
    }

    fn span(&self) -> KeySpan {
        let properties = self.reader.properties();
        KeySpan { start: properties.start.clone(), end: properties.end.clone() }
    }

    fn facts(&self, file_no: u64) -> SstFacts {
        let sealed_no = self.reader.sealed_no();
        let identity = self.reader.properties().identity;
        let (size, ts_override) = (self.size, self.ts_override);
        let backing = Backing { file_no, size, sealed_no, ts_override, identity };
        SstFacts { file_no, ..SstFacts::over(0, self.reader.properties(), backing) }
    }
}

/// A moment in the order of arrival: what came before it was looked at.
struct Seen {
    /// Ingests and excises so far.
    epoch: u64,
    /// Commit index of the last batch.
    idx: u64,
    /// The memtable that took batches then.
    arrival: u64,
}

fn refuse<T>(path: &Path, reason: &str) -> Result<T> {
    Err(Error::InvalidIngest { reason: format!("{} {reason}", path.display()) })
}

impl Store {
    /// See [`Db::spans_of`](crate::Db::spans_of).
    pub(crate) fn spans_of(&self, paths: &[PathBuf]) -> Result<Vec<KeySpan>> {
        let options = IngestOptions::default();
        paths.iter().map(|path| Ok(Candidate::open(self, path, &options)?.span())).collect()
    }

    /// See [`Db::ingest`](crate::Db::ingest).
    pub(crate) fn ingest(
        self: &Arc<Store>,
        paths: &[PathBuf],
        options: IngestOptions,
    ) -> Result<()> {
        if self.closed.load(Ordering::Acquire) {
            return Err(Error::Closed);
        }
        let mut files = self.open_files(paths, &options)?;
        let excised = options.excise.filter(|span| !span.is_empty());
        if files.is_empty() && excised.is_none() {
            return Ok(());
        }
        if !files.is_empty() && self.ballast.is_full() {
            return Err(Error::DiskFull);
        }
        if excised.is_none()
            && let Some(batch) = self.as_batch(&files)?
        {
            return self.apply(batch)?.wait_durable();
        }
        self.make_room_for(&files)?;
        let (seen, state) = self.look();
        for file in &files {
            self.check_times(file, excised.as_ref())?;
            self.check_order(file, excised.as_ref(), &state, None)?;
        }
        drop(state);
        let mut linked = Vec::new();
        let placed = self
            .link_all(&mut files, &mut linked)
            .and_then(|()| self.enqueue(&files, &linked, excised, &seen));
        let op = match placed {
            Ok(op) => op,
            Err((error, written)) => {
                // Once its record may be in the wal, a replay may ask for the files.
                if !written {
                    self.unlink(&linked);
                }
                return Err(error);
            }
        };
        // Durable by its edit, if nothing older is in the way, or by its record. An edit that fails
        // is tried again, and reported, by the flush.
        if let Err(error) = self.install_due_operations() {
            tracing::warn!(%error, "an operation waits for its edit");
        }
        if self.state.load().structural.iter().any(|other| Arc::ptr_eq(other, &op)) {
            self.wal.wait(op.lsn, true)?;
        }
        self.schedule();
        Ok(())
    }

    /// Opens files that are to be taken in together, in key order.
    fn open_files(&self, paths: &[PathBuf], options: &IngestOptions) -> Result<Vec<Candidate>> {
        let open = |path: &PathBuf| Candidate::open(self, path, options);
        let mut files = paths.iter().map(open).collect::<Result<Vec<_>>>()?;
        files.sort_by_key(|file| file.span().start);
        for pair in files.windows(2) {
            if pair[0].span().end > pair[1].span().start {
                let other = format!("overlaps {}", pair[1].path.display());
                return refuse(&pair[0].path, &other);
            }
        }
        Ok(files)
    }

    /// Waits as bulk does, however few bytes the files have: they may become a sublevel.
    fn make_room_for(self: &Arc<Store>, files: &[Candidate]) -> Result<()> {
        let bytes: u64 = files.iter().map(|file| file.size).sum();
        self.make_room(if files.is_empty() { 0 } else { bytes.max(BULK) })
    }

    /// See [`Db::prepare_files`](crate::Db::prepare_files).
    pub(crate) fn prepare_files(self: &Arc<Store>, paths: &[PathBuf]) -> Result<PreparedBatch> {
        let ts_override = Some(CommitTs(ANY_TS));
        let mut files = self.open_files(paths, &IngestOptions { ts_override, excise: None })?;
        if let Some(batch) = self.as_batch(&files)? {
            return self.prepare_batch(batch);
        }
        if !files.is_empty() && self.ballast.is_full() {
            return Err(Error::DiskFull);
        }
        self.make_room_for(&files)?;
        let mut linked = Vec::new();
        if let Err((error, _)) = self.link_all(&mut files, &mut linked) {
            self.unlink(&linked);
            return Err(error);
        }
        let named = files.into_iter().zip(linked).map(|(file, file_no)| {
            let path = sst_path(&self.env.dir, file_no);
            let backing = Backing { ts_override: 0, ..file.facts(file_no).backing };
            EarlyFile { path, backing, is_named: file.is_placed, reader: file.reader }
        });
        Ok(PreparedBatch::of_files(self.clone(), named.collect(), paths.to_vec()))
    }

    /// The contents of files that are not worth an sst: all of one timestamp and few.
    fn as_batch(&self, files: &[Candidate]) -> Result<Option<Batch>> {
        let bytes: u64 = files.iter().map(|file| file.size).sum();
        let mut times = files.iter().map(|file| {
            let facts = file.reader.properties();
            (facts.min_ts, facts.max_ts)
        });
        let Some((ts, _)) = times.next() else { return Ok(None) };
        let first = files[0].reader.properties().max_ts;
        if bytes > self.options.small_ingest_bytes
            || first != ts
            || times.any(|other| other != (ts, ts))
        {
            return Ok(None);
        }
        let mut batch = Batch::at(CommitTs(ts));
        for file in files {
            for tombstone in file.reader.skyline().tombstones() {
                batch.delete_span(&tombstone.start, &tombstone.end);
            }
        }
        for file in files {
            let mut entries = SstEntries::open(file.reader.clone())?;
            while let Some(key) = entries.key() {
                match entries.kind() {
                    Kind::Put => batch.put(key, entries.value()),
                    Kind::Delete => batch.delete(key),
                }
                entries.advance()?;
            }
        }
        Ok(Some(batch))
    }

    /// Gives every file a name in the directory; durable when it returns.
    fn link_all(
        &self,
        files: &mut Vec<Candidate>,
        linked: &mut Vec<u64>,
    ) -> std::result::Result<(), (Error, bool)> {
        let fs = &*self.env.fs;
        let mut named = Vec::with_capacity(files.len());
        for file in files.drain(..) {
            let file_no = self.next_file.fetch_add(1, Ordering::AcqRel);
            linked.push(file_no);
            let to = sst_path(&self.env.dir, file_no);
            let is_same = link_or_copy(fs, &file.path, &to).map_err(|error| {
                let doing = format!("linking {} to {}", file.path.display(), to.display());
                (Error::io(doing, &error), false)
            })?;
            named.push(if is_same { file.placed(self, file_no) } else { file });
        }
        *files = named;
        if !files.is_empty() {
            let dir = &self.env.dir;
            self.names
                .sync(fs, dir)
                .map_err(|e| (Error::io(format!("syncing {}", dir.display()), &e), false))?;
        }
        Ok(())
    }

    fn unlink(&self, linked: &[u64]) {
        for file_no in linked {
            let path = sst_path(&self.env.dir, *file_no);
            if self.env.fs.exists(&path).unwrap_or(false)
                && let Err(error) = self.env.fs.remove(&path)
            {
                tracing::warn!(path = %path.display(), %error, "cannot remove refused sst");
            }
        }
    }

    /// Takes a place in the arrival order. The flag of an error says whether the record may have
    /// been written.
    fn enqueue(
        self: &Arc<Store>,
        files: &[Candidate],
        linked: &[u64],
        excised: Option<KeySpan>,
        seen: &Seen,
    ) -> std::result::Result<Arc<Structural>, (Error, bool)> {
        let unwritten = |error| (error, false);
        let mut commit = self.commit.lock();
        if self.closed.load(Ordering::Acquire) {
            return Err((Error::Closed, false));
        }
        for file in files {
            self.check_times(file, excised.as_ref()).map_err(unwritten)?;
            self.check_arrived(file, excised.as_ref(), seen, commit.last_idx).map_err(unwritten)?;
        }
        let facts: Vec<SstFacts> =
            files.iter().zip(linked).map(|(file, file_no)| file.facts(*file_no)).collect();
        let number = self.next_file.fetch_add(1, Ordering::AcqRel);
        let record = StructuralRecord { number, excised, ssts: facts };
        let incoming = Incoming {
            excised: record.excised.as_ref(),
            spans: files.iter().map(Candidate::span).collect(),
            open: &|i| Ok(files[i].reader.clone()),
            patience: MOST_LOOKUPS,
        };
        let arrival = self.make_place(&mut commit, &incoming).map_err(unwritten)?;
        let readers = files.iter().map(Candidate::open_reader).collect();
        self.put_in_place(&mut commit, record, arrival, readers).map_err(|error| (error, true))
    }

    /// Writes the record of an operation and makes it visible, at the place that was found for it.
    /// `readers`: of its ssts, where they are open.
    pub(super) fn put_in_place(
        self: &Arc<Store>,
        commit: &mut CommitState,
        record: StructuralRecord,
        arrival: u64,
        readers: Vec<Option<Arc<SstReader>>>,
    ) -> Result<Arc<Structural>> {
        // Operations that are in the version already are durable without their records.
        let waiting = self.state.load().structural.iter().map(|op| op.lsn).max().unwrap_or(0);
        let before = commit.last_lsn.max(waiting);
        let appended = self.wal.append(&record.encode())?;
        let (lsn, segment, number) = (appended.lsn, appended.segment, record.number);
        let (ticket, env) = ((segment, number), &self.env);
        let op = Structural::of(record, ticket, (before, lsn), arrival, (env, readers));
        let op = Arc::new(op);
        for sst in op.run.ssts() {
            self.newest.fetch_max(sst.max_ts, Ordering::AcqRel);
        }
        let _state = self.state_lock.lock();
        let state = self.state.load().with_operation(op.clone());
        self.dead_spans.close();
        self.state.store(Arc::new(state));
        self.structure_epoch.fetch_add(1, Ordering::AcqRel);
        self.dead_spans.reopen();
        Ok(op)
    }

    /// Finds the place of an operation; seals the mutable memtable if it must go above that.
    pub(super) fn make_place(
        self: &Arc<Store>,
        commit: &mut CommitState,
        incoming: &Incoming<'_>,
    ) -> Result<u64> {
        Ok(match self.state.load().place_of(incoming)? {
            Place::Bottom(arrival) => arrival,
            Place::Top => {
                self.rotate(commit);
                self.state.load().arrival_on_top()
            }
        })
    }

    /// The layers of now, with what names this moment. What arrives meanwhile may be in the layers,
    /// but counts as not seen.
    fn look(&self) -> (Seen, Arc<State>) {
        let epoch = self.structure_epoch.load(Ordering::Acquire);
        let idx = self.visible.load(Ordering::Acquire);
        let state = self.state.load_full();
        (Seen { epoch, idx, arrival: state.mutable.arrival }, state)
    }

    /// Contract C1 for one file, against what has arrived since `seen`. The caller holds the commit
    /// mutex.
    fn check_arrived(
        &self,
        file: &Candidate,
        excised: Option<&KeySpan>,
        seen: &Seen,
        last_idx: u64,
    ) -> Result<()> {
        let same_structure = self.structure_epoch.load(Ordering::Acquire) == seen.epoch;
        if same_structure && last_idx == seen.idx {
            return Ok(());
        }
        let state = self.state.load_full();
        // All batches since then are in the memtable of then and later ones, while that is there.
        let is_there = state.memtables().any(|memtable| memtable.arrival == seen.arrival);
        let since = (same_structure && is_there).then_some(seen.arrival);
        self.check_order(file, excised, &state, since)
    }

    /// Contract C2 for one file. Where everything is cut out nothing was dropped that the file's
    /// entries could be taken for: all versions that there are come with it.
    fn check_times(&self, file: &Candidate, excised: Option<&KeySpan>) -> Result<()> {
        let properties = file.reader.properties();
        let key = &properties.start;
        let (oldest, newest) = (properties.min_ts, properties.max_ts);
        if oldest == 0 || newest == u64::MAX {
            return broken(key, if oldest == 0 { 0 } else { newest }, newest);
        }
        if excised.is_some_and(|cut| cut.covers(&file.span())) {
            return Ok(());
        }
        let threshold = self.gc_threshold.load(Ordering::Acquire);
        if oldest <= threshold {
            return broken(key, oldest, threshold);
        }
        Ok(())
    }

    /// Contract C1 for one file. What is excised does not count as there. `since`: only memtables
    /// from this arrival on can have broken it.
    fn check_order(
        &self,
        file: &Candidate,
        excised: Option<&KeySpan>,
        state: &State,
        since: Option<u64>,
    ) -> Result<()> {
        let oldest = file.oldest();
        if oldest == 0 || oldest > self.newest.load(Ordering::Acquire) {
            return Ok(());
        }
        let newest = |part: &KeySpan| -> Result<u64> {
            let Some(arrival) = since else {
                return state.newest_above(&self.env, part, oldest - 1, true);
            };
            let later = state.memtables().filter(|memtable| memtable.arrival >= arrival);
            Ok(later.map(|table| table.newest_above(part, oldest - 1, true)).max().unwrap_or(0))
        };
        let is_met = |span: KeySpan| -> Result<bool> {
            let mut parts = outside(span, excised).into_iter();
            parts.try_fold(false, |met, part| Ok(met || newest(&part)? >= oldest))
        };
        if !is_met(file.span())? {
            return Ok(());
        }
        // Something there is not older than the oldest entry: look at each.
        for tombstone in file.reader.skyline().tombstones() {
            let ts = tombstone.ts;
            let own = KeySpan { start: tombstone.start.clone(), end: tombstone.end.clone() };
            for part in outside(own, excised) {
                let point = state.newest_above(&self.env, &part, ts - 1, false)?;
                let any = state.newest_above(&self.env, &part, ts, true)?;
                if point >= ts || any > ts {
                    return broken(&part.start, ts, point.max(any));
                }
            }
        }
        // The file may reach over what somebody writes to all the time, and have nothing there.
        file.reader.each_block(&mut |block| match is_met(block.clone())? {
            true => self.check_keys(file, block, excised, state),
            false => Ok(()),
        })
    }

    /// Contract C1 for the entries of a file in a span.
    fn check_keys(
        &self,
        file: &Candidate,
        span: KeySpan,
        excised: Option<&KeySpan>,
        state: &State,
    ) -> Result<()> {
        let mut entries = SstEntries::open_span(file.reader.clone(), span)?;
        while let Some(key) = entries.key() {
            if !excised.is_some_and(|cut| cut.contains(key)) {
                let have = state.max_ts_of(&self.env, key, 0)?;
                if have > entries.ts() {
                    return broken(key, entries.ts(), have);
                }
            }
            entries.advance()?;
        }
        Ok(())
    }
}

fn broken(key: &[u8], write: u64, have: u64) -> Result<()> {
    let (write, have) = (CommitTs(write), CommitTs(have));
    Err(Error::TimestampContract { key: key.to_vec(), write, have })
}

/// The parts of a span that stay when `excised` is cut out.
fn outside(span: KeySpan, excised: Option<&KeySpan>) -> Vec<KeySpan> {
    match excised {
        Some(cut) => without(vec![span], cut),
        None => vec![span],
    }
}

impl Structural {
    /// An operation as its record says; `readers`: of its ssts, where they are open.
    pub(crate) fn of(
        record: StructuralRecord,
        ticket: (u64, u64),
        (before, lsn): (Lsn, Lsn),
        arrival: u64,
        (env, readers): (&crate::versions::SstEnv, Vec<Option<Arc<SstReader>>>),
    ) -> Structural {
        let readers = readers.into_iter().chain(std::iter::repeat(None));
        let ssts = record.ssts.into_iter().zip(readers).map(|(facts, reader)| {
            let facts = SstFacts { arrival_low: arrival, arrival_high: arrival, ..facts };
            Arc::new(match reader {
                Some(reader) => SstMeta::opened(&facts, env, reader),
                None => SstMeta::new(&facts, env),
            })
        });
        let run = Run::new(ssts.collect());
        Structural { ticket, before, lsn, arrival, excised: record.excised, run }
    }
}

/// A second name for a file, whose bytes are durable; a durable copy where names cannot reach.
/// Whether it is the same file.
pub(super) fn link_or_copy(fs: &dyn FileSystem, from: &Path, to: &Path) -> std::io::Result<bool> {
    use std::io::ErrorKind::{CrossesDevices, Unsupported};
    match fs.link(from, to) {
        Ok(()) => Ok(true),
        Err(error) if [CrossesDevices, Unsupported].contains(&error.kind()) => {
            copy(fs, from, to).map(|()| false)
        }
        Err(error) => Err(error),
    }
}

fn copy(fs: &dyn FileSystem, from: &Path, to: &Path) -> std::io::Result<()> {
    const PIECE: usize = 1 << 20;
    let (source, target) = (fs.open(from)?, fs.create(to)?);
    let len = source.len()?;
    let mut buffer = vec![0; PIECE];
    let mut at = 0;
    while at < len {
        let part = &mut buffer[..PIECE.min((len - at) as usize)];
        source.read_exact_at(part, at)?;
        target.write_at(part, at)?;
        at += part.len() as u64;
    }
    target.sync_data()
}
