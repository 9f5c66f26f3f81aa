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
//! A writer that fills a segment goes on with the next one at once. Making the full one durable is
//! the business of the next thread that waits for durability (a flush does): it goes through all
//! segments in order. Until then the new one has a name that says so ([`segments`]).
//!
//! [`segments`]: super::segments
//!
//! After a failed write or sync nothing is believed any more: every later append and wait fails
//! with the same error until the store is opened again. The exception is a full device: then the
//! reserve is released and the write repeated once, as nothing was lost yet.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use braid_env::clock::Clock;
use braid_env::fs::{File, FileSystem};
use braid_env::random::Random;
use parking_lot::{Condvar, Mutex, MutexGuard};

use super::chain::{HEAD, LogMark, SegmentHead};
use super::record::{BLOCK, Framer};
use super::segments::{SegmentFile, segment_path};
use crate::error::{Error, Result};

/// Position in the stream of all records since open; orders durability.
pub(crate) type Lsn = u64;

/// So much is written ahead where small commits will follow.
const WARM_AHEAD: u64 = 8 * BLOCK;

/// Where to find room when the device is full.
pub(crate) trait SpaceReserve: Send + Sync {
    /// Gives back what is held in reserve; true if that freed anything.
    fn release(&self) -> bool;
}

/// Who keeps in mind how far the log reaches. Told of each segment once it is durable, and before
/// anybody is told that something in it is.
pub(crate) trait LogWitness: Send + Sync {
    fn segment_begun(&self, mark: LogMark) -> Result<()>;
}

/// Where a log goes on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogStart {
    /// Identity of the store.
    pub(crate) store: u64,
    /// The first segment to write; it must not hold anything yet.
    pub(crate) segment: u64,
    /// Where the log ends so far.
    pub(crate) mark: LogMark,
}

/// Where a record went.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Appended {
    pub(crate) lsn: Lsn,
    pub(crate) segment: u64,
    /// Where it begins in that segment, or the padding in front of it.
    pub(crate) offset: u64,
    /// Bytes that wait in memory now.
    pub(crate) queued: u64,
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
    /// A buffer to use again.
    spare: Vec<u8>,
    /// Threads that wait for durability now.
    waiters: usize,
    /// How many threads the last sync served, and how long it took.
    last_group: usize,
    last_sync_nanos: u64,
}

impl Queue {
    /// The piece that the framer goes on with.
    fn open_piece(&mut self) -> &mut Piece {
        let segment = self.segment;
        if !self.pieces.last().is_some_and(|last| last.segment == segment && !last.sealed) {
            let bytes = std::mem::take(&mut self.spare);
            let offset = self.framer.position();
            self.pieces.push(Piece { segment, offset, bytes, sealed: false });
        }
        self.pieces.last_mut().expect("there is one now")
    }

    /// Keeps the memory of written pieces, if nobody needed new ones meanwhile.
    fn take_back(&mut self, written: &mut Vec<Piece>) {
        const MOST: usize = 256 << 10;
        let Some(Piece { mut bytes, .. }) = written.pop() else { return };
        if bytes.capacity() <= MOST {
            bytes.clear();
            self.spare = bytes;
        }
        if self.pieces.is_empty() {
            written.clear();
            std::mem::swap(&mut self.pieces, written);
        }
    }
}

/// A segment that is not known to be durable.
#[derive(Clone)]
struct OpenSegment {
    name: SegmentFile,
    file: Arc<dyn File>,
    /// Bytes below this were written before, in this life of the file or an earlier one.
    warm_to: u64,
    /// Its name is durable.
    listed: bool,
    identity: u64,
    /// End of what was written.
    written_to: u64,
}

/// The segments that are not known to be durable, in order.
#[derive(Default)]
struct Files {
    /// Complete ones.
    sealed: Vec<OpenSegment>,
    current: Option<OpenSegment>,
    /// The one after that, made before it is needed.
    prepared: Option<OpenSegment>,
    /// Somebody is making this one.
    preparing: Option<u64>,
    /// The last one that was to be prepared: what fails is not tried at every write.
    tried: u64,
    /// Number and identity of the last one that is written to, or was.
    last: (u64, u64),
}

/// The write-ahead log of an open store.
pub(crate) struct Wal {
    fs: Arc<dyn FileSystem>,
    dir: PathBuf,
    store: u64,
    segment_size: u64,
    max_recycled: usize,
    queue: Mutex<Queue>,
    /// Wakes who waits for a write. Who waits for the sync behind it is let sleep: a group of
    /// commits would be woken twice.
    written: Condvar,
    /// Wakes who waits for a sync.
    synced: Condvar,
    /// Wakes a leader that gathers company.
    gather: Condvar,
    clock: Arc<dyn Clock>,
    files: Mutex<Files>,
    /// Wakes who waits for the segment that is being prepared.
    prepared: Condvar,
    /// The current segment is half full, and the next one is not there.
    wants_segment: AtomicBool,
    /// Syncs cover little: commits wait for the device one by one.
    small_syncs: AtomicBool,
    reserve: Arc<dyn SpaceReserve>,
    witness: Arc<dyn LogWitness>,
    /// Up to here all is durable.
    mark: Mutex<LogMark>,
    random: Mutex<Random>,
}

impl Wal {
    /// A wal that goes on at `start`.
    pub(crate) fn new(
        (fs, dir): (Arc<dyn FileSystem>, &Path),
        start: LogStart,
        (segment_size, max_recycled): (u64, usize),
        reserve: Arc<dyn SpaceReserve>,
        witness: Arc<dyn LogWitness>,
        clock: Arc<dyn Clock>,
    ) -> Wal {
        let first = start.segment;
        let last = (start.mark.segment, start.mark.identity);
        Wal {
            fs,
            dir: dir.to_path_buf(),
            store: start.store,
            segment_size,
            max_recycled,
            queue: Mutex::new(Queue {
                framer: Framer::at(first, HEAD),
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
                spare: Vec::new(),
                waiters: 0,
                last_group: 1,
                last_sync_nanos: 0,
            }),
            written: Condvar::new(),
            synced: Condvar::new(),
            gather: Condvar::new(),
            clock,
            files: Mutex::new(Files { last, ..Files::default() }),
            prepared: Condvar::new(),
            wants_segment: AtomicBool::new(false),
            small_syncs: AtomicBool::new(false),
            reserve,
            witness,
            mark: Mutex::new(start.mark),
            random: Mutex::new(Random::from_entropy()),
        }
    }

    /// Queues a record. Readers of the device see nothing of it before [`Wal::wait`].
    pub(crate) fn append(&self, record: &[u8]) -> Result<Appended> {
        let mut queue = self.queue.lock();
        if let Some(error) = &queue.failed {
            return Err(error.clone());
        }
        if queue.framer.position() >= self.segment_size {
            self.rotate_locked(&mut queue);
        }
        let synced_to = queue.segment_synced;
        let queue = &mut *queue;
        let mut framer = queue.framer.clone();
        let offset = framer.position();
        let bytes = &mut queue.open_piece().bytes;
        let before = bytes.len();
        framer.frame(record, synced_to, bytes);
        let added = (bytes.len() - before) as u64;
        queue.framer = framer;
        queue.queued_bytes += added;
        queue.appended += added;
        let (lsn, segment, queued) = (queue.appended, queue.segment, queue.queued_bytes);
        Ok(Appended { lsn, segment, offset, queued })
    }

    /// Ends the current segment; returns the number of the next one.
    pub(crate) fn rotate(&self) -> u64 {
        let mut queue = self.queue.lock();
        if queue.framer.position() > HEAD {
            self.rotate_locked(&mut queue);
        }
        queue.segment
    }

    fn rotate_locked(&self, queue: &mut Queue) {
        let synced_to = queue.segment_synced;
        let mut framer = queue.framer.clone();
        let piece = queue.open_piece();
        let before = piece.bytes.len();
        framer.seal(synced_to, &mut piece.bytes);
        piece.sealed = true;
        let added = (piece.bytes.len() - before) as u64;
        queue.queued_bytes += added;
        queue.appended += added;
        queue.segment += 1;
        queue.framer = Framer::at(queue.segment, HEAD);
        queue.segment_synced = 0;
    }

    /// End of everything appended so far.
    pub(crate) fn appended(&self) -> Lsn {
        self.queue.lock().appended
    }

    /// Bytes known to be durable since open.
    pub(crate) fn synced(&self) -> Lsn {
        self.queue.lock().synced
    }

    /// Up to here the log is durable, and the witness knows of each segment.
    pub(crate) fn mark(&self) -> LogMark {
        *self.mark.lock()
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
                true => self.synced.wait(queue),
                false => self.written.wait(queue),
            }
        }
    }

    /// Writes everything that is queued. Nobody else may be writing.
    fn lead_write(&self, queue: &mut MutexGuard<'_, Queue>) {
        queue.writing = true;
        let mut pieces = std::mem::take(&mut queue.pieces);
        queue.queued_bytes = 0;
        let upto = queue.appended;
        let end = (queue.segment, queue.framer.position());
        let result = MutexGuard::unlocked(queue, || self.write_out(&pieces));
        queue.writing = false;
        queue.take_back(&mut pieces);
        match result {
            Ok(()) => {
                queue.written = upto;
                queue.written_end = end;
            }
            Err(error) => {
                queue.failed = Some(error);
                self.synced.notify_all();
            }
        }
        self.written.notify_all();
    }

    /// Writes what is queued and makes it durable. Nobody else may be syncing.
    fn lead_sync(&self, queue: &mut MutexGuard<'_, Queue>) {
        queue.syncing = true;
        self.gather_company(queue);
        while queue.writing {
            self.written.wait(queue);
        }
        let group = queue.waiters;
        if queue.failed.is_none() && !queue.pieces.is_empty() {
            self.lead_write(queue);
        }
        if queue.failed.is_none() {
            let (upto, end) = (queue.written, queue.written_end);
            let (result, nanos) = MutexGuard::unlocked(queue, || {
                let start = self.clock.monotonic_nanos();
                let result = self.sync_files();
                (result, self.clock.monotonic_nanos().saturating_sub(start))
            });
            queue.last_group = group.max(1);
            queue.last_sync_nanos = nanos;
            match result {
                Ok(()) => {
                    let small = upto.saturating_sub(queue.synced) < WARM_AHEAD;
                    self.small_syncs.store(small, Ordering::Relaxed);
                    queue.synced = queue.synced.max(upto);
                    // A segment that nothing was written to has no file yet.
                    if end.0 == queue.segment && end.1 > HEAD {
                        queue.segment_synced = queue.segment_synced.max(end.1);
                    }
                }
                Err(error) => {
                    queue.failed = Some(error);
                    self.written.notify_all();
                }
            }
        }
        queue.syncing = false;
        self.synced.notify_all();
    }

    /// Writes pieces in order. Only one thread at a time runs this.
    fn write_out(&self, pieces: &[Piece]) -> Result<()> {
        let mut files = self.files.lock();
        for piece in pieces {
            while files.preparing == Some(piece.segment) {
                self.prepared.wait(&mut files);
            }
            let current = match &mut files.current {
                Some(open) if open.name.number == piece.segment => open,
                _ => {
                    let prepared = files.prepared.take();
                    let prepared = prepared.filter(|open| open.name.number == piece.segment);
                    let opened = match prepared {
                        Some(open) => open,
                        None => {
                            // Recovery may believe that all before it is durable only if it is.
                            let ahead = !files.sealed.is_empty();
                            let name = SegmentFile { number: piece.segment, ahead };
                            self.start_segment(name, files.last)?
                        }
                    };
                    files.last = (opened.name.number, opened.identity);
                    files.current.insert(opened)
                }
            };
            self.write_piece(current, piece)?;
            let half_full = piece.offset + piece.bytes.len() as u64 >= self.segment_size / 2;
            if piece.sealed {
                let full = files.current.take();
                files.sealed.extend(full);
            } else if half_full && files.tried <= piece.segment {
                self.wants_segment.store(true, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// Whether it is time for [`Wal::prepare_segment`].
    pub(crate) fn wants_segment(&self) -> bool {
        self.wants_segment.load(Ordering::Relaxed)
    }

    /// Makes a segment before it is needed. When the one before it is full, a flush may be syncing
    /// already, and making a file would wait for that. Writers go on meanwhile, unless they get
    /// there. What fails is not tried again: the writer who needs the segment does that.
    pub(crate) fn prepare_segment(&self) {
        self.wants_segment.store(false, Ordering::Relaxed);
        let (number, last) = {
            let mut files = self.files.lock();
            let Some(current) = files.current.as_ref().map(|open| open.name.number) else { return };
            if files.tried > current || files.preparing.is_some() {
                return;
            }
            files.tried = current + 1;
            files.preparing = Some(files.tried);
            (files.tried, files.last)
        };
        let made = self.start_segment(SegmentFile { number, ahead: true }, last);
        if let Err(error) = &made {
            tracing::debug!(%error, "cannot make a wal segment yet");
        }
        let mut files = self.files.lock();
        files.prepared = made.ok();
        files.preparing = None;
        drop(files);
        self.prepared.notify_all();
    }

    /// Removes a segment that was made and will not be needed: the store is closed.
    pub(crate) fn remove_prepared(&self) -> Result<()> {
        let Some(open) = self.files.lock().prepared.take() else { return Ok(()) };
        let removed = self.fs.remove(&open.name.path(&self.dir));
        removed.map_err(|error| self.io("removing", open.name.number, &error))
    }

    /// Makes durable what is written by now, segment after segment, and lets the witness know of
    /// new ones. Only one thread at a time runs this; others may write meanwhile, and what they
    /// write is theirs to wait for.
    fn sync_files(&self) -> Result<()> {
        let (sealed, current) = {
            let files = self.files.lock();
            (files.sealed.clone(), files.current.clone())
        };
        let mut is_new = false;
        for open in sealed.iter().chain(&current) {
            let SegmentFile { number, ahead } = open.name;
            is_new |= ahead || !open.listed;
            if ahead {
                // All before it is durable now.
                let path = segment_path(&self.dir, number);
                let renamed = self.fs.rename(&open.name.path(&self.dir), &path);
                renamed.map_err(|error| self.io("renaming", number, &error))?;
            }
            open.file.sync_data().map_err(|error| self.io("syncing", number, &error))?;
            if ahead || !open.listed {
                let synced = self.fs.sync_dir(&self.dir);
                synced.map_err(|error| self.io("listing", number, &error))?;
            }
        }
        if let Some(last) = current.as_ref().or(sealed.last()) {
            let (segment, position) = (last.name.number, last.written_to);
            let mark = LogMark { segment, position, identity: last.identity };
            if is_new {
                self.witness.segment_begun(mark)?;
            }
            *self.mark.lock() = mark;
        }
        let mut files = self.files.lock();
        files.sealed.drain(..sealed.len());
        // The segment that was current may have become full meanwhile.
        let Some(number) = current.map(|open| open.name.number) else { return Ok(()) };
        let Files { sealed, current, .. } = &mut *files;
        for open in sealed.iter_mut().chain(current).filter(|open| open.name.number == number) {
            open.name.ahead = false;
            open.listed = true;
        }
        Ok(())
    }

    /// Writes; if the device is full, once more with what was held in reserve.
    fn write_at(&self, file: &dyn File, segment: u64, bytes: &[u8], offset: u64) -> Result<()> {
        let mut result = file.write_at(bytes, offset);
        if let Err(error) = &result
            && error.kind() == std::io::ErrorKind::StorageFull
            && self.reserve.release()
        {
            result = file.write_at(bytes, offset);
        }
        result.map_err(|error| self.io("writing", segment, &error))
    }

    fn write_piece(&self, open: &mut OpenSegment, piece: &Piece) -> Result<()> {
        self.write_at(&*open.file, piece.segment, &piece.bytes, piece.offset)?;
        let end = piece.offset + piece.bytes.len() as u64;
        open.written_to = end;
        self.warm_up(open, end);
        Ok(())
    }

    /// Small commits into fresh blocks pay for metadata at each sync. Writing zeros well ahead
    /// pays once for many commits. Large writes do not need it, nor do those that nobody syncs.
    fn warm_up(&self, open: &mut OpenSegment, end: u64) {
        if end <= open.warm_to {
            return;
        }
        let small = end - open.warm_to < WARM_AHEAD && self.small_syncs.load(Ordering::Relaxed);
        open.warm_to = end;
        let to = (end + WARM_AHEAD).min(self.segment_size);
        if small && to > end {
            // Failing to warm up costs speed only.
            if open.file.write_at(&vec![0; (to - end) as usize], end).is_ok() {
                open.warm_to = to;
            }
        }
    }

    /// Makes a segment's file, with its head. `last`: number and identity of a segment before it.
    fn start_segment(&self, name: SegmentFile, last: (u64, u64)) -> Result<OpenSegment> {
        let (segment, path) = (name.number, name.path(&self.dir));
        let old = if self.recycles() { self.queue.lock().recycled.pop() } else { None };
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
        let follows = if last.0 + 1 == segment { last.1 } else { 0 };
        let identity = self.random.lock().next_u64() | 1;
        let allocated = file.len().map_err(io)?;
        let head = SegmentHead { store: self.store, number: segment, identity, follows, allocated };
        self.write_at(&*file, segment, &head.encode(), 0)?;
        let warm_to = warm_to.max(HEAD);
        Ok(OpenSegment { name, file, warm_to, listed: false, identity, written_to: HEAD })
    }

    /// Whether old segments are written over. That makes small syncs cheap; but part of a block
    /// that the system does not remember any more has to be read before it is written, so those
    /// who do not sync are better off with fresh segments.
    fn recycles(&self) -> bool {
        self.small_syncs.load(Ordering::Relaxed)
    }

    /// Takes back a segment that recovery will not need: its blocks are used again.
    pub(crate) fn retire(&self, path: &Path) -> Result<()> {
        // The queue's lock is not held over the device: appends go on meanwhile.
        if !self.recycles() || self.queue.lock().recycled.len() >= self.max_recycled {
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
