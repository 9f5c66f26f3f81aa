//! Opening a store.
//!
//! ```text
//!   lock the directory
//!   CURRENT -> manifest -> version, gc threshold, wal floor
//!   check that every live sst is there with its size
//!   wal segments from the floor on -> memtables; a chain up to where the manifest knows it; seal
//!   a torn tail
//!   new manifest with a snapshot, made current     (the first write that matters)
//!   remove files that nothing refers to
//! ```
//!
//! A crash at any point leaves a store that opens the same way again.
//!
//! What was replayed is flushed in the background if it is much or spread over many segments: a
//! store that is killed again and again must not read all of its log again and again. A memtable
//! is sealed only between two segments, so that flushing it frees whole segments.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use arc_swap::ArcSwap;
use braid_env::fs::FileSystem;
use parking_lot::Mutex;

use crate::ballast::Ballast;
use crate::batch::Batch;
use crate::cache::BlockCache;
use crate::commit::{CommitState, insert_into};
use crate::compaction::{Background, ReadMeter, Throttle};
use crate::error::{Error, Result};
use crate::inspect::Events;
use crate::memtable::Memtable;
use crate::options::{Options, RowClassFn};
use crate::sstable::{check_identity, sst_path};
use crate::state::State;
use crate::store::Store;
use crate::structure::{
    ARRIVAL_STEP, Incoming, NameSyncs, Place, Record, Structural, StructuralRecord,
};
use crate::versions::{
    Backing, Manifest, ManifestWitness, Recovered, SstEnv, SstMeta, load_manifest,
    manifest_numbers, manifest_path,
};
use crate::wal::{LogStart, SegmentFile, Wal, settle, walk_log};

/// Opens the store in `dir`, creating it if there is none.
pub(crate) fn open(fs: Arc<dyn FileSystem>, dir: &Path, options: Options) -> Result<Arc<Store>> {
    let io = |error| Error::io(format!("opening {}", dir.display()), &error);
    fs.create_dir_all(dir).map_err(io)?;
    let lock = fs.lock(&dir.join("LOCK")).map_err(|error| {
        if error.kind() == std::io::ErrorKind::WouldBlock {
            Error::DirectoryInUse(dir.to_path_buf())
        } else {
            io(error)
        }
    })?;
    let cache = Arc::new(BlockCache::new(options.block_cache_size));
    let l0_sublevels = options.l0_sublevels;
    let env = Arc::new(SstEnv { fs: fs.clone(), dir: dir.to_path_buf(), cache, l0_sublevels });
    let names = fs.list(dir).map_err(io)?;
    let mut recovered = recover_version(&env, &names)?;
    // Above everything that is there, and at the beginning of a memtable's numbers.
    let highest = recovered.version.ssts().map(|sst| sst.arrival_high).max().unwrap_or(0);
    let arrival = recovered.next_arrival.max(highest + 1).next_multiple_of(ARRIVAL_STEP);
    let mut replayed = Replayed::new(&recovered, arrival, &options);
    let walked =
        walk_log(&*fs, dir, &names, &recovered.log(), &mut |segment, path, at, record| {
            let record =
                Record::decode(record).map_err(|reason| Error::corruption(path, at, reason))?;
            match record {
                Record::Batch(batch) => replayed.insert(segment, &batch),
                Record::Structural(op) if recovered.installed.contains(&(segment, op.number)) => {}
                Record::Structural(op) => replayed.take_up(segment, op, &env)?,
            }
            Ok(())
        })?;
    let (next_segment, mark) = settle(&*fs, dir, &walked)?;
    recovered.log_mark = mark;
    // Segments of format version 1 stay what they are.
    recovered.chained_from = recovered.chained_from.min(next_segment);
    recovered.name_store();
    recovered.newest_ts = recovered.newest_ts.max(replayed.newest_ts);
    if walked.kept.len() > MANY_SEGMENTS {
        replayed.seal(next_segment);
    }
    let Replayed { state, idx, .. } = replayed;
    let arrival = state.mutable.arrival;
    let ballast = Arc::new(Ballast::new(fs.clone(), dir, options.ballast_size));
    let number = recovered.number + 1;
    let snapshot = recovered.snapshot();
    let manifest = match Manifest::create(&*fs, dir, number, &snapshot, &*ballast) {
        Err(Error::DiskFull) if ballast.release_now() => {
            Manifest::create(&*fs, dir, number, &snapshot, &*ballast)?
        }
        other => other?,
    };
    remove_strangers(&*fs, dir, &names, &recovered, &state, number);
    ballast.take();
    let manifest = Arc::new(Mutex::new(manifest));
    let witness = ManifestWitness { manifest: manifest.clone(), reserve: ballast.clone() };
    let wal = Wal::new(
        (fs, dir),
        LogStart { store: recovered.store, segment: next_segment, mark: recovered.log_mark },
        (options.wal_segment_size, options.wal_recycled_segments),
        ballast.clone(),
        Arc::new(witness),
        options.clock.clone(),
    );
    let now = options.clock.monotonic_nanos();
    let read_meter = ReadMeter::new(options.read_sample_every, options.read_compaction_share, now);
    let store = Arc::new(Store {
        tasks: options.executor(),
        events: Events::new(options.clock.clone(), options.listener.clone()),
        options,
        env,
        lock: Mutex::new(Some(lock)),
        state: ArcSwap::from_pointee(state),
        state_lock: Mutex::new(()),
        commit: Mutex::new(CommitState { last_idx: idx, arrival, last_lsn: 0 }),
        manifest,
        visible: AtomicU64::new(idx),
        newest: AtomicU64::new(recovered.newest_ts),
        structure_epoch: AtomicU64::new(0),
        gc_threshold: AtomicU64::new(recovered.gc_threshold),
        gc_durable: AtomicU64::new(recovered.gc_threshold),
        next_file: AtomicU64::new(recovered.next_file),
        oldest_segment: Mutex::new(recovered.wal_floor),
        wal,
        names: NameSyncs::default(),
        ballast,
        background: Background::default(),
        throttle: Throttle::new(l0_sublevels),
        prepared: Default::default(),
        read_meter,
        dead_spans: Default::default(),
        last_look: Default::default(),
        closed: AtomicBool::new(false),
        counters: Default::default(),
    });
    store.note_pressure();
    store.schedule();
    Ok(store)
}

/// More segments than this are not left for the next open to replay again.
const MANY_SEGMENTS: usize = 2;

/// The layers of the store, with what the wal holds.
struct Replayed {
    state: State,
    /// Segment of the last batch.
    segment: u64,
    idx: u64,
    newest_ts: u64,
    memtable_size: usize,
    row_class: RowClassFn,
}

impl Replayed {
    fn new(recovered: &Recovered, arrival: u64, options: &Options) -> Replayed {
        let (memtable_size, row_class) = (options.memtable_size, options.row_class);
        let floor = recovered.wal_floor;
        let mutable = Memtable::new(arrival, floor, b"", memtable_size).of_classes(row_class);
        let state = State {
            mutable: Arc::new(mutable),
            immutable: Vec::new(),
            structural: Vec::new(),
            version: recovered.version.clone(),
        };
        Replayed { state, segment: floor, idx: 0, newest_ts: 0, memtable_size, row_class }
    }

    fn insert(&mut self, segment: u64, batch: &Batch) {
        // The memtable that wrote these segments was about as large as this, so the next one is
        // less than twice the limit.
        if segment != self.segment && self.state.mutable.bytes() >= self.memtable_size {
            self.seal(segment);
        }
        self.segment = segment;
        self.idx += 1;
        self.newest_ts = self.newest_ts.max(batch.ts().0);
        insert_into(&self.state.mutable, batch, self.idx);
    }

    /// An ingest or excise goes to the place that it had.
    fn take_up(&mut self, segment: u64, record: StructuralRecord, env: &SstEnv) -> Result<()> {
        for facts in &record.ssts {
            check_file(env, &facts.backing)?;
            self.newest_ts = self.newest_ts.max(facts.max_ts);
        }
        let incoming = Incoming {
            excised: record.excised.as_ref(),
            spans: record.ssts.iter().map(|facts| facts.bounds.clone()).collect(),
            open: &|i| SstMeta::new(&record.ssts[i], env).reader(env).cloned(),
            patience: usize::MAX,
        };
        let arrival = match self.state.place_of(&incoming)? {
            Place::Bottom(arrival) => arrival,
            // The wal was rotated then, so this record begins a segment.
            Place::Top => {
                self.seal(segment);
                self.state.arrival_on_top()
            }
        };
        let ticket = (segment, record.number);
        let op = Structural::of(record, ticket, (0, 0), arrival, (env, Vec::new()));
        self.state = self.state.with_operation(Arc::new(op));
        self.segment = segment;
        Ok(())
    }

    /// Goes on with an empty memtable, whose first batch will be in `segment`.
    fn seal(&mut self, segment: u64) {
        if self.state.mutable.is_empty() {
            return;
        }
        let prefix = self.state.mutable.common_prefix();
        let arrival = self.state.mutable.arrival + ARRIVAL_STEP;
        let next = Memtable::new(arrival, segment, &prefix, self.memtable_size);
        let next = Arc::new(next.of_classes(self.row_class));
        let full = std::mem::replace(&mut self.state.mutable, next);
        self.state.immutable.insert(0, full);
    }
}

fn number_of(name: &str, extension: &str) -> Option<u64> {
    name.strip_suffix(extension)?.parse().ok()
}

/// What the manifest says, with all live ssts found in place.
fn recover_version(env: &SstEnv, names: &[String]) -> Result<Recovered> {
    let Some(mut recovered) = load_manifest(env)? else {
        let data = names.iter().find(|name| name.ends_with(".sst") || name.ends_with(".wal"));
        if let Some(name) = data {
            let reason = format!("it is missing, but there is {name}");
            return Err(Error::corruption(env.dir.join("CURRENT"), 0, reason));
        }
        return Ok(Recovered::new_store());
    };
    recovered.version.check().map_err(|reason| {
        Error::corruption(manifest_path(&env.dir, recovered.number), 0, reason)
    })?;
    for sst in recovered.version.ssts() {
        check_file(env, &sst.backing)?;
    }
    // Numbers of files that a crash left behind are not used again before those are gone.
    let used = names.iter().filter_map(|name| number_of(name, ".sst")).max().unwrap_or(0);
    recovered.next_file = recovered.next_file.max(used + 1);
    Ok(recovered)
}

/// Whether the file of a live sst is there, as long as it was, and not another one.
fn check_file(env: &SstEnv, backing: &Backing) -> Result<()> {
    let path = sst_path(&env.dir, backing.file_no);
    let opened = env.fs.open(&path).and_then(|file| Ok((file.len()?, file)));
    let (len, file) = match opened {
        Ok(opened) => opened,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(Error::corruption(path, 0, "a live sst is missing"));
        }
        Err(error) => return Err(Error::io(format!("opening {}", path.display()), &error)),
    };
    let size = backing.size;
    if len != size {
        let reason = format!("the sst has {len} bytes instead of {size}");
        return Err(Error::corruption(path, len.min(size), reason));
    }
    check_identity(&*file, len, &path, (backing.sealed_no, backing.identity))
}

/// Manifests before the current one that are kept, to be looked at: the newest ones, up to
/// `OLD_MANIFESTS` bytes in all.
fn kept_manifests(fs: &dyn FileSystem, dir: &Path, names: &[String], current: u64) -> Vec<u64> {
    const OLD_MANIFESTS: u64 = 8 << 20;
    let mut left = OLD_MANIFESTS;
    let mut kept = Vec::new();
    for number in manifest_numbers(names).into_iter().rev().filter(|number| *number < current) {
        let len = fs.open(&manifest_path(dir, number)).and_then(|file| file.len());
        let Some(rest) = left.checked_sub(len.unwrap_or(u64::MAX)) else { break };
        left = rest;
        kept.push(number);
    }
    kept
}

/// Removes manifests that are not kept. Errors only leave them behind.
pub(crate) fn remove_old_manifests(fs: &dyn FileSystem, dir: &Path, current: u64) {
    let Ok(names) = fs.list(dir) else { return };
    let kept = kept_manifests(fs, dir, &names, current);
    let old = manifest_numbers(&names).into_iter().filter(|number| *number < current);
    for number in old.filter(|number| !kept.contains(number)) {
        if let Err(error) = fs.remove(&manifest_path(dir, number)) {
            tracing::warn!(number, %error, "cannot remove an old manifest");
        }
    }
}

/// Removes what neither the version nor the wal needs. Errors only leave the files behind.
fn remove_strangers(
    fs: &dyn FileSystem,
    dir: &Path,
    names: &[String],
    recovered: &Recovered,
    state: &State,
    manifest: u64,
) {
    let old = kept_manifests(fs, dir, names, manifest);
    for name in names {
        let waiting = state.structural.iter().flat_map(|op| op.run.ssts());
        let mut ssts = recovered.version.ssts().chain(waiting);
        let mut live = |file_no| ssts.any(|sst| sst.backing.file_no == file_no);
        let stranger = if let Some(file_no) = number_of(name, ".sst") {
            !live(file_no)
        } else if let Some(segment) = SegmentFile::of_name(name) {
            segment.number < recovered.wal_floor
        } else if let Some(number) = name.strip_prefix("MANIFEST-") {
            number.parse().is_ok_and(|number| number != manifest && !old.contains(&number))
        } else {
            name.ends_with(".recycled") || name == "CURRENT.tmp"
        };
        if stranger && let Err(error) = fs.remove(&dir.join(name)) {
            tracing::warn!(name, %error, "cannot remove a file that is not needed");
        }
    }
}
