//! The wal's queue: appending is a copy in memory, durability is somebody's turn at the device.
//!
//! ```text
//!   commit pipeline     append(record) -> Lsn        never blocks on the device
//!        |              queue: [piece][piece][piece]
//!   waiters             wait(lsn): one of them takes the whole queue and writes it;
//!                       one of those who want durability syncs once for all: group commit
//! ```
//!
//! Writing and syncing are two turns: while one thread waits for the device to sync, others go on
//! handing records to the operating system.
//!
//! Segments are preallocated and recycled: a write into blocks that exist already needs no
//! metadata in the same sync, which halves the time of a small commit.
//!
//! After a failed write or sync nothing is believed any more: every later append and wait fails
//! with the same error until the store is opened again. The exception is a full device: then the
//! reserve is released and the write repeated once, as nothing was lost yet.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use braid_env::clock::Clock;
use braid_env::fs::{File, FileSystem};
use parking_lot::{Condvar, Mutex, MutexGuard};

use super::record::{BLOCK, Framer};
use crate::error::{Error, Result};

/// Position in the stream of all records since open; orders durability.
pub(crate) type Lsn = u64;

/// Where to find room when the device is full.
pub(crate) trait SpaceReserve: Send + Sync {
    /// Gives back what is held in reserve; true if that freed anything.
    fn release(&self) -> bool;
}

/// Name of a segment's file.
pub(crate) fn segment_path(dir: &Path, segment: u64) -> PathBuf {
    dir.join(format!("{segment:06}.wal"))
}

struct Piece {
    segment: u64,
    offset: u64,
    bytes: Vec<u8>,
    sealed: bool,
}

struct Queue {
    framer: Framer,
    segment: u64,
    pieces: Vec<Piece>,
    queued_bytes: u64,
    /// End of what was appended.
    appended: Lsn,
    written: Lsn,
    synced: Lsn,
    /// Position of the current segment that is durable.
    segment_synced: u64,
    /// End of what was written: segment and position.
    written_end: (u64, u64),
    /// A thread is writing now.
    writing: bool,
    /// A thread is syncing now, or gathering company for it.
    syncing: bool,
    failed: Option<Error>,
    recycled: Vec<PathBuf>,
    /// Threads that wait for durability now.
    waiters: usize,
    /// How many threads the last sync served, and how long it took.
    last_group: usize,
    last_sync_nanos: u64,
}

struct OpenSegment {
    segment: u64,
    file: Arc<dyn File>,
    /// Bytes below this were written before, in this life of the file or an earlier one.
    warm_to: u64,
}

/// The write-ahead log of an open store.
pub(crate) struct Wal {
    fs: Arc<dyn FileSystem>,
    dir: PathBuf,
    segment_size: u64,
    max_recycled: usize,
    queue: Mutex<Queue>,
    turn: Condvar,
    /// Wakes a leader that gathers company.
    gather: Condvar,
    clock: Arc<dyn Clock>,
    file: Mutex<Option<OpenSegment>>,
    reserve: Arc<dyn SpaceReserve>,
}

impl Wal {
    /// A wal that will begin with segment `first`, which must not hold anything yet.
    pub(crate) fn new(
        fs: Arc<dyn FileSystem>,
        dir: &Path,
        first: u64,
        segment_size: u64,
        max_recycled: usize,
        reserve: Arc<dyn SpaceReserve>,
        clock: Arc<dyn Clock>,
    ) -> Wal {
        Wal {
            fs,
            dir: dir.to_path_buf(),
            segment_size,
            max_recycled,
            queue: Mutex::new(Queue {
                framer: Framer::new(first),
                segment: first,
                pieces: Vec::new(),
                queued_bytes: 0,
                appended: 0,
                written: 0,
                synced: 0,
                segment_synced: 0,
                written_end: (first, 0),
                writing: false,
                syncing: false,
                failed: None,
                recycled: Vec::new(),
                waiters: 0,
                last_group: 1,
                last_sync_nanos: 0,
            }),
            turn: Condvar::new(),
            gather: Condvar::new(),
            clock,
            file: Mutex::new(None),
            reserve,
        }
    }

    /// Queues a record. Readers of the device see nothing of it before [`Wal::wait`].
    pub(crate) fn append(&self, record: &[u8]) -> Result<Lsn> {
        self.append_somewhere(record).map(|(lsn, _)| lsn)
    }

    /// As [`Wal::append`]; also says in which segment the record is.
    pub(crate) fn append_somewhere(&self, record: &[u8]) -> Result<(Lsn, u64)> {
        let mut queue = self.queue.lock();
        if let Some(error) = &queue.failed {
            return Err(error.clone());
        }
        if queue.framer.position() >= self.segment_size {
            self.rotate_locked(&mut queue);
        }
        let synced_to = queue.segment_synced;
        let queue = &mut *queue;
        let at = queue.framer.position();
        let piece = piece_for(&mut queue.pieces, queue.segment, at);
        let before = piece.bytes.len();
        queue.framer.frame(record, synced_to, &mut piece.bytes);
        let added = (piece.bytes.len() - before) as u64;
        queue.queued_bytes += added;
        queue.appended += added;
        Ok((queue.appended, queue.segment))
    }

    /// Ends the current segment; returns the number of the next one.
    pub(crate) fn rotate(&self) -> u64 {
        let mut queue = self.queue.lock();
        if queue.framer.position() > 0 {
            self.rotate_locked(&mut queue);
        }
        queue.segment
    }

    fn rotate_locked(&self, queue: &mut Queue) {
        let synced_to = queue.segment_synced;
        let at = queue.framer.position();
        let piece = piece_for(&mut queue.pieces, queue.segment, at);
        let before = piece.bytes.len();
        queue.framer.seal(synced_to, &mut piece.bytes);
        piece.sealed = true;
        let added = (piece.bytes.len() - before) as u64;
        queue.queued_bytes += added;
        queue.appended += added;
        queue.segment += 1;
        queue.framer = Framer::new(queue.segment);
        queue.segment_synced = 0;
    }

    /// Bytes that wait in memory.
    pub(crate) fn queued_bytes(&self) -> u64 {
        self.queue.lock().queued_bytes
    }

    /// End of everything appended so far.
    pub(crate) fn appended(&self) -> Lsn {
        self.queue.lock().appended
    }

    /// Bytes known to be durable since open.
    pub(crate) fn synced(&self) -> Lsn {
        self.queue.lock().synced
    }

    /// Blocks until everything up to `lsn` is on the device: with `sync` durable, otherwise handed
    /// to the operating system (survives the process, not the power).
    pub(crate) fn wait(&self, lsn: Lsn, sync: bool) -> Result<()> {
        let mut queue = self.queue.lock();
        if sync {
            queue.waiters += 1;
            self.gather.notify_one();
        }
        let result = self.wait_in_turn(&mut queue, lsn, sync);
        if sync {
            queue.waiters -= 1;
        }
        result
    }

    /// Lets the threads that the last sync served come back before the next sync begins: they have
    /// just been answered, so their next commits are on the way. Without it they split into two
    /// halves that wait for each other's syncs. Costs at most an eighth of a sync, and nothing
    /// where one thread commits alone.
    fn gather_company(&self, queue: &mut MutexGuard<'_, Queue>) {
        const SLICES: u32 = 4;
        let slice = Duration::from_nanos(queue.last_sync_nanos / 8 / u64::from(SLICES));
        let mut expired = 0;
        while queue.waiters < queue.last_group && expired < SLICES {
            if self.gather.wait_for(queue, slice).timed_out() {
                expired += 1;
            }
        }
    }

    fn wait_in_turn(&self, queue: &mut MutexGuard<'_, Queue>, lsn: Lsn, sync: bool) -> Result<()> {
        loop {
            let done = if sync { queue.synced } else { queue.written };
            if done >= lsn {
                return Ok(());
            }
            if let Some(error) = &queue.failed {
                return Err(error.clone());
            }
            match sync {
                true if !queue.syncing => self.lead_sync(queue),
                false if !queue.writing => self.lead_write(queue),
                _ => self.turn.wait(queue),
            }
        }
    }

    /// Writes everything that is queued. Nobody else may be writing.
    fn lead_write(&self, queue: &mut MutexGuard<'_, Queue>) {
        queue.writing = true;
        let pieces = std::mem::take(&mut queue.pieces);
        queue.queued_bytes = 0;
        let upto = queue.appended;
        let end = (queue.segment, queue.framer.position());
        let result = MutexGuard::unlocked(queue, || self.write_out(&pieces));
        queue.writing = false;
        match result {
            Ok(()) => {
                queue.written = upto;
                queue.written_end = end;
            }
            Err(error) => queue.failed = Some(error),
        }
        self.turn.notify_all();
    }

    /// Writes what is queued and makes it durable. Nobody else may be syncing.
    fn lead_sync(&self, queue: &mut MutexGuard<'_, Queue>) {
        queue.syncing = true;
        self.gather_company(queue);
        while queue.writing {
            self.turn.wait(queue);
        }
        let group = queue.waiters;
        if queue.failed.is_none() && !queue.pieces.is_empty() {
            self.lead_write(queue);
        }
        if queue.failed.is_none() {
            let (upto, end) = (queue.written, queue.written_end);
            let (result, nanos) = MutexGuard::unlocked(queue, || {
                let start = self.clock.monotonic_nanos();
                let result = self.sync_current();
                (result, self.clock.monotonic_nanos().saturating_sub(start))
            });
            queue.last_group = group.max(1);
            queue.last_sync_nanos = nanos;
            match result {
                Ok(()) => {
                    queue.synced = queue.synced.max(upto);
                    if end.0 == queue.segment {
                        queue.segment_synced = queue.segment_synced.max(end.1);
                    }
                }
                Err(error) => queue.failed = Some(error),
            }
        }
        queue.syncing = false;
        self.turn.notify_all();
    }

    /// Writes pieces in order. Only one thread at a time runs this.
    fn write_out(&self, pieces: &[Piece]) -> Result<()> {
        let mut slot = self.file.lock();
        for piece in pieces {
            if slot.as_ref().is_none_or(|open| open.segment != piece.segment) {
                *slot = Some(self.start_segment(piece.segment)?);
            }
            let open = slot.as_mut().expect("just opened");
            self.write_piece(open, piece)?;
            if piece.sealed {
                // The next segment may only exist for recovery if this one is whole.
                self.sync_file(&*open.file, open.segment)?;
            }
        }
        Ok(())
    }

    /// Syncs the segment that was written last; those before it were synced at their end.
    fn sync_current(&self) -> Result<()> {
        let current = self.file.lock().as_ref().map(|open| (open.file.clone(), open.segment));
        match current {
            // Others may write to it meanwhile; what they write is theirs to wait for.
            Some((file, segment)) => self.sync_file(&*file, segment),
            None => Ok(()),
        }
    }

    fn sync_file(&self, file: &dyn File, segment: u64) -> Result<()> {
        file.sync_data().map_err(|error| self.io("syncing", segment, &error))
    }

    fn write_piece(&self, open: &mut OpenSegment, piece: &Piece) -> Result<()> {
        let mut result = open.file.write_at(&piece.bytes, piece.offset);
        if let Err(error) = &result
            && error.kind() == std::io::ErrorKind::StorageFull
            && self.reserve.release()
        {
            result = open.file.write_at(&piece.bytes, piece.offset);
        }
        result.map_err(|error| self.io("writing", piece.segment, &error))?;
        let end = piece.offset + piece.bytes.len() as u64;
        self.warm_up(open, end);
        Ok(())
    }

    /// Small commits into fresh blocks pay for metadata at each sync. Writing zeros well ahead
    /// pays once for many commits. Large writes do not need it.
    fn warm_up(&self, open: &mut OpenSegment, end: u64) {
        const AHEAD: u64 = 8 * BLOCK;
        if end <= open.warm_to {
            return;
        }
        let small = end - open.warm_to < AHEAD;
        open.warm_to = end;
        let to = (end + AHEAD).min(self.segment_size);
        if small && to > end {
            // Failing to warm up costs speed only.
            if open.file.write_at(&vec![0; (to - end) as usize], end).is_ok() {
                open.warm_to = to;
            }
        }
    }

    fn start_segment(&self, segment: u64) -> Result<OpenSegment> {
        let path = segment_path(&self.dir, segment);
        let old = self.queue.lock().recycled.pop();
        let io = |error| self.io("creating", segment, &error);
        let (file, warm_to) = if let Some(old) = old {
            self.fs.rename(&old, &path).map_err(io)?;
            let file = self.fs.open_write(&path).map_err(io)?;
            let len = file.len().map_err(io)?;
            (file, len)
        } else {
            (self.fs.create(&path).map_err(io)?, 0)
        };
        // Without room for a whole segment the records may still fit.
        match file.allocate(self.segment_size) {
            Err(error) if error.kind() != std::io::ErrorKind::StorageFull => return Err(io(error)),
            _ => {}
        }
        self.fs.sync_dir(&self.dir).map_err(io)?;
        Ok(OpenSegment { segment, file, warm_to })
    }

    /// Takes back a segment that recovery will not need: its blocks are used again.
    pub(crate) fn retire(&self, path: &Path) -> Result<()> {
        // The queue's lock is not held over the device: appends go on meanwhile.
        if self.queue.lock().recycled.len() >= self.max_recycled {
            return self
                .fs
                .remove(path)
                .map_err(|error| Error::io(format!("removing {}", path.display()), &error));
        }
        let name = path.with_extension("recycled");
        self.fs
            .rename(path, &name)
            .map_err(|error| Error::io(format!("renaming {}", path.display()), &error))?;
        self.queue.lock().recycled.push(name);
        Ok(())
    }

    fn io(&self, doing: &str, segment: u64, error: &std::io::Error) -> Error {
        let path = segment_path(&self.dir, segment);
        Error::io(format!("{doing} {}", path.display()), error)
    }
}

/// The piece that ends at `at`, or a new one.
fn piece_for(pieces: &mut Vec<Piece>, segment: u64, at: u64) -> &mut Piece {
    let fits = pieces.last().is_some_and(|last| last.segment == segment && !last.sealed);
    if !fits {
        pieces.push(Piece { segment, offset: at, bytes: Vec::new(), sealed: false });
    }
    pieces.last_mut().expect("there is one now")
}
