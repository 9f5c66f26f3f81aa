//! Opening a store: take the lock, replay the wal, start a fresh segment.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use arc_swap::ArcSwap;
use braid_env::fs::FileSystem;
use parking_lot::Mutex;

use crate::batch::Batch;
use crate::commit::{CommitState, insert_into};
use crate::error::{Error, Result};
use crate::memtable::Memtable;
use crate::options::Options;
use crate::state::State;
use crate::store::Store;
use crate::wal::{Framer, SegmentEnd, SpaceReserve, Wal, read_segment, segment_path};

struct NoReserve;

impl SpaceReserve for NoReserve {
    fn release(&self) -> bool {
        false
    }
}

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
    let segments = wal_segments(&*fs, dir)?;
    let memtable = Memtable::new(1, segments.first().copied().unwrap_or(1), b"");
    let mut idx = 0;
    let next_segment = replay(&*fs, dir, &segments, &mut |batch| {
        idx += 1;
        insert_into(&memtable, batch, idx);
        Ok(())
    })?;
    let newest = memtable.max_ts();
    let wal = Wal::new(
        fs.clone(),
        dir,
        next_segment,
        options.wal_segment_size,
        options.wal_recycled_segments,
        Arc::new(NoReserve),
    );
    Ok(Arc::new(Store {
        options,
        dir: dir.to_path_buf(),
        lock: Mutex::new(Some(lock)),
        state: ArcSwap::from_pointee(State {
            mutable: Arc::new(memtable),
            immutable: Vec::new(),
        }),
        commit: Mutex::new(CommitState {
            last_idx: idx,
            arrival: 1,
        }),
        visible: AtomicU64::new(idx),
        newest: AtomicU64::new(newest),
        gc_threshold: AtomicU64::new(0),
        wal,
        closed: AtomicBool::new(false),
        writes: Default::default(),
        fs,
    }))
}

/// Numbers of the wal segments in a directory, ascending.
pub(crate) fn wal_segments(fs: &dyn FileSystem, dir: &Path) -> Result<Vec<u64>> {
    let names = fs
        .list(dir)
        .map_err(|error| Error::io(format!("listing {}", dir.display()), &error))?;
    let mut segments: Vec<u64> = names
        .iter()
        .filter_map(|name| name.strip_suffix(".wal")?.parse().ok())
        .collect();
    segments.sort_unstable();
    Ok(segments)
}

/// Replays segments in order. Returns the number of the first segment that is free to write.
///
/// Only the last segment that holds anything may end without a seal: there the power failed. It
/// gets its seal now, so that a later open does not mistake its end for damage.
pub(crate) fn replay(
    fs: &dyn FileSystem,
    dir: &Path,
    segments: &[u64],
    apply: &mut dyn FnMut(&Batch) -> Result<()>,
) -> Result<u64> {
    let mut torn: Option<(u64, u64)> = None;
    let mut last = segments.first().map_or(0, |first| first - 1);
    for &segment in segments {
        let path = segment_path(dir, segment);
        if segment != last + 1 {
            let reason = format!("wal segment {} is missing", last + 1);
            return Err(Error::corruption(&path, 0, reason));
        }
        let end = read_segment(fs, &path, segment, &mut |offset, record| {
            let batch =
                Batch::decode(record).map_err(|reason| Error::corruption(&path, offset, reason))?;
            if let Some((torn, at)) = torn {
                let reason = "the segment ends without a seal, but later ones have records";
                return Err(Error::corruption(segment_path(dir, torn), at, reason));
            }
            apply(&batch)
        })?;
        match end {
            SegmentEnd::Torn { empty: true, .. } if torn.is_some() => {}
            SegmentEnd::Torn { at, .. } => torn = torn.or(Some((segment, at))),
            SegmentEnd::Sealed => {}
        }
        last = segment;
    }
    let Some((segment, at)) = torn else {
        return Ok(last + 1);
    };
    // Segments behind the torn one were created, but nothing in them can be durable.
    for &empty in segments.iter().filter(|other| **other > segment) {
        let path = segment_path(dir, empty);
        fs.remove(&path)
            .map_err(|error| Error::io(format!("removing {}", path.display()), &error))?;
    }
    seal_torn_segment(fs, dir, segment, at)?;
    Ok(segment + 1)
}

fn seal_torn_segment(fs: &dyn FileSystem, dir: &Path, segment: u64, at: u64) -> Result<()> {
    let path = segment_path(dir, segment);
    let io = |error| Error::io(format!("sealing {}", path.display()), &error);
    let file = fs.open_write(&path).map_err(io)?;
    let mut seal = Vec::new();
    Framer::at(segment, at).seal(at, &mut seal);
    file.write_at(&seal, at).map_err(io)?;
    file.sync_data().map_err(io)?;
    fs.sync_dir(dir).map_err(io)
}
