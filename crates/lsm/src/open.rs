//! Opening a store.
//!
//! ```text
//!   lock the directory
//!   CURRENT -> manifest -> version, gc threshold, wal floor
//!   check that every live sst is there with its size
//!   wal segments from the floor on -> memtables; seal a torn tail
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
use crate::options::Options;
use crate::sstable::sst_path;
use crate::state::State;
use crate::store::Store;
use crate::structure::{ARRIVAL_STEP, Incoming, Place, Record, Structural, StructuralRecord};
use crate::versions::{
    Backing, Manifest, Recovered, SstEnv, SstMeta, load_manifest, manifest_numbers, manifest_path,
};
use crate::wal::{
    Framer, SegmentEnd, SegmentFile, Wal, ends_before, read_segment, segment_path, segments_from,
};

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
    let segments = segments_from(&names, recovered.wal_floor);
    // Above everything that is there, and at the beginning of a memtable's numbers.
    let highest = recovered.version.ssts().map(|sst| sst.arrival_high).max().unwrap_or(0);
    let arrival = recovered.next_arrival.max(highest + 1).next_multiple_of(ARRIVAL_STEP);
    let mut replayed = Replayed::new(&recovered, arrival, options.memtable_size);
    let next_segment =
        replay(&*fs, dir, recovered.wal_floor, &segments, &mut |segment, record| {
            match record {
                Record::Batch(batch) => replayed.insert(segment, &batch),
                Record::Structural(op) if recovered.installed.contains(&(segment, op.number)) => {}
                Record::Structural(op) => replayed.take_up(segment, op, &env)?,
            }
            Ok(())
        })?;
    recovered.newest_ts = recovered.newest_ts.max(replayed.newest_ts);
    if segments.len() > MANY_SEGMENTS {
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
    let wal = Wal::new(
        fs,
        dir,
        next_segment,
        options.wal_segment_size,
        options.wal_recycled_segments,
        ballast.clone(),
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
        manifest: Mutex::new(manifest),
        visible: AtomicU64::new(idx),
        newest: AtomicU64::new(recovered.newest_ts),
        structure_epoch: AtomicU64::new(0),
        gc_threshold: AtomicU64::new(recovered.gc_threshold),
        gc_durable: AtomicU64::new(recovered.gc_threshold),
        next_file: AtomicU64::new(recovered.next_file),
        oldest_segment: Mutex::new(recovered.wal_floor),
        wal,
        ballast,
        background: Background::default(),
        throttle: Throttle::new(l0_sublevels),
        prepared: Default::default(),
        read_meter,
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
}

impl Replayed {
    fn new(recovered: &Recovered, arrival: u64, memtable_size: usize) -> Replayed {
        let floor = recovered.wal_floor;
        let state = State {
            mutable: Arc::new(Memtable::new(arrival, floor, b"", memtable_size)),
            immutable: Vec::new(),
            structural: Vec::new(),
            version: recovered.version.clone(),
        };
        Replayed { state, segment: floor, idx: 0, newest_ts: 0, memtable_size }
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
        let op = Structural::of(record, ticket, (0, 0), arrival, env);
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
        let next = Arc::new(Memtable::new(arrival, segment, &prefix, self.memtable_size));
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
        return Ok(Recovered::fresh());
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

/// Whether the file of a live sst is there, as long as it was.
fn check_file(env: &SstEnv, backing: &Backing) -> Result<()> {
    let path = sst_path(&env.dir, backing.file_no);
    let len = match env.fs.open(&path).and_then(|file| file.len()) {
        Ok(len) => len,
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
    Ok(())
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

/// Replays segments in order. Returns the number of the first segment that is free to write.
///
/// Only the last segment that holds anything may end without a seal: there the power failed. It
/// gets its seal now, so that a later open does not mistake its end for damage. Segments that were
/// begun ahead of it are removed first: nothing in them was durable.
fn replay(
    fs: &dyn FileSystem,
    dir: &Path,
    floor: u64,
    segments: &[SegmentFile],
    apply: &mut dyn FnMut(u64, Record) -> Result<()>,
) -> Result<u64> {
    let mut torn: Option<(u64, u64)> = None;
    let mut next = floor;
    let mut count = 0;
    for file in segments {
        let (segment, path) = (file.number, file.path(dir));
        if ends_before(*file, next, torn.is_none()) {
            break;
        }
        if segment != next {
            let reason = format!("wal segment {next} is missing");
            return Err(Error::corruption(&path, 0, reason));
        }
        let end = read_segment(fs, &path, segment, &mut |offset, record| {
            let record = Record::decode(record)
                .map_err(|reason| Error::corruption(&path, offset, reason))?;
            if let Some((torn, at)) = torn {
                let reason = "the segment ends without a seal, but later ones have records";
                return Err(Error::corruption(segment_path(dir, torn), at, reason));
            }
            apply(segment, record)
        })?;
        if let SegmentEnd::Torn { at, .. } = end {
            torn = torn.or(Some((segment, at)));
        }
        next = segment + 1;
        count += 1;
    }
    let (read, left) = segments.split_at(count);
    if let Some(named) = left.iter().find(|file| !file.ahead) {
        let reason = "segments before it were durable, but are not whole";
        return Err(Error::corruption(named.path(dir), 0, reason));
    }
    // Segments behind a torn one were created, but nothing in them can be durable.
    let last = torn.map_or(u64::MAX, |(segment, _)| segment);
    let (kept, empty) = read.split_at(read.partition_point(|file| file.number <= last));
    remove_segments(fs, dir, empty.iter().chain(left))?;
    settle_segments(fs, dir, kept)?;
    let Some((segment, at)) = torn else { return Ok(next) };
    seal_torn_segment(fs, dir, segment, at)?;
    Ok(segment + 1)
}

fn remove_segments<'a>(
    fs: &dyn FileSystem,
    dir: &Path,
    segments: impl Iterator<Item = &'a SegmentFile>,
) -> Result<()> {
    let mut removed = false;
    for file in segments {
        let path = file.path(dir);
        fs.remove(&path)
            .map_err(|error| Error::io(format!("removing {}", path.display()), &error))?;
        removed = true;
    }
    if removed {
        // Before the segment in front of them gets a seal: they must not seem to follow it.
        fs.sync_dir(dir)
            .map_err(|error| Error::io(format!("syncing {}", dir.display()), &error))?;
    }
    Ok(())
}

/// Makes replayed segments durable, in order: after the death of a process the system may still
/// hold part of them, and new segments will be named as if it did not.
fn settle_segments(fs: &dyn FileSystem, dir: &Path, segments: &[SegmentFile]) -> Result<()> {
    for file in segments {
        let path = segment_path(dir, file.number);
        let io = |error| Error::io(format!("syncing {}", path.display()), &error);
        if file.ahead {
            fs.rename(&file.path(dir), &path).map_err(io)?;
        }
        fs.open_write(&path).and_then(|open| open.sync_data()).map_err(io)?;
        fs.sync_dir(dir).map_err(io)?;
    }
    Ok(())
}

fn seal_torn_segment(fs: &dyn FileSystem, dir: &Path, segment: u64, at: u64) -> Result<()> {
    let path = segment_path(dir, segment);
    let io = |error| Error::io(format!("sealing {}", path.display()), &error);
    let file = fs.open_write(&path).map_err(io)?;
    let mut framer = Framer::at(segment, at);
    let mut seal = Vec::new();
    framer.seal(at, &mut seal);
    file.write_at(&seal, at).map_err(io)?;
    // What lies behind never became durable, and the next open need not read it.
    file.set_len(at + seal.len() as u64).map_err(io)?;
    file.sync_data().map_err(io)?;
    fs.sync_dir(dir).map_err(io)
}
