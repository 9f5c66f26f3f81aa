//! A log of records of its own, for others than the engine: its segments, and a file that says how
//! far they reach.
//!
//! ```text
//!   MARK          store S, needed from segment 7 on, durable up to segment 8, offset 700
//!   000007.wal    whole, sealed
//!   000008.wal    being written
//!   000009.ahead  begun before 8 was durable
//! ```
//!
//! Frames, segments and the chain between them are those of the engine's wal; what the manifest
//! does for the wal, `MARK` does here: it is replaced whenever a segment has become durable for the
//! first time, before anybody is told that something in it is; when segments are given up; and at
//! close, after which the log ends exactly there. So a segment that is lost, exchanged, repeated or
//! cut off is an error that names it, and only the end of the last one may be torn.
//!
//! What records mean, and from which segment on they are needed, is the owner's business.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use braid_env::clock::{Clock, WallClock};
use braid_env::fs::{DirLock, FileSystem, read_all};
use braid_env::random::Random;
use parking_lot::Mutex;

use super::chain::{LogFacts, LogMark, walk_log};
use super::seek::read_records;
use super::segments::{SegmentFile, segment_path};
use super::settle::settle;
use super::writer::{LogStart, LogWitness, Lsn, SpaceReserve, Wal};
use crate::error::{Error, Result};

const MAGIC: &[u8; 8] = b"braidlog";
const VERSION: u32 = 1;
const MARK_LEN: usize = 64;

/// Tunables of a [`SegmentedLog`].
#[derive(Clone)]
pub struct SegmentedLogOptions {
    /// Size of a segment, in bytes; a larger record makes its segment larger. Default 32 MiB.
    pub segment_size: u64,
    /// Used segments that are kept to be written again. Default 2.
    pub recycled_segments: usize,
    /// Clock for measuring how long the device takes.
    pub clock: Arc<dyn Clock>,
}

impl Default for SegmentedLogOptions {
    fn default() -> SegmentedLogOptions {
        let clock = Arc::new(WallClock);
        SegmentedLogOptions { segment_size: 32 << 20, recycled_segments: 2, clock }
    }
}

/// Where a record went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogAppended {
    /// Its end in the stream of all records since open: for [`SegmentedLog::sync`].
    pub upto: u64,
    /// The segment that holds it.
    pub segment: u64,
    /// Where it lies there: for [`SegmentedLog::read`].
    pub offset: u64,
}

/// What the mark file says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Marked {
    store: u64,
    floor: u64,
    mark: LogMark,
    closed: bool,
}

impl Marked {
    fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend_from_slice(&VERSION.to_le_bytes());
        let LogMark { segment, position, identity } = self.mark;
        let fields = [self.store, self.floor, segment, position, identity, u64::from(self.closed)];
        fields.iter().for_each(|field| out.extend_from_slice(&field.to_le_bytes()));
        let crc = crc32c::crc32c(&out);
        out.extend_from_slice(&crc.to_le_bytes());
        out
    }

    fn decode(bytes: &[u8], path: &Path) -> Result<Marked> {
        let wrong = |at: usize, reason: &str| Err(Error::corruption(path, at as u64, reason));
        if bytes.len() != MARK_LEN {
            return wrong(bytes.len().min(MARK_LEN), "a mark has 64 bytes");
        }
        if &bytes[..8] != MAGIC {
            return wrong(0, "this is no mark of a log");
        }
        let crc = u32::from_le_bytes(bytes[60..].try_into().expect("four bytes"));
        if crc32c::crc32c(&bytes[..60]) != crc {
            return wrong(60, "the checksum does not match");
        }
        let found = u32::from_le_bytes(bytes[8..12].try_into().expect("four bytes"));
        if found > VERSION {
            return Err(Error::FormatTooNew { file: path.into(), found, supported: VERSION });
        }
        let field = |n: usize| {
            let at = 12 + n * 8;
            u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
        };
        let mark = LogMark { segment: field(2), position: field(3), identity: field(4) };
        Ok(Marked { store: field(0), floor: field(1), mark, closed: field(5) != 0 })
    }
}

/// The mark file of an open log.
struct MarkFile {
    fs: Arc<dyn FileSystem>,
    dir: PathBuf,
    said: Mutex<Marked>,
}

impl MarkFile {
    fn path(dir: &Path) -> PathBuf {
        dir.join("MARK")
    }

    /// Replaces the file; durable when it returns.
    fn change(&self, change: impl FnOnce(&mut Marked)) -> Result<()> {
        let mut said = self.said.lock();
        let mut next = *said;
        change(&mut next);
        let (path, made) = (MarkFile::path(&self.dir), self.dir.join("MARK.new"));
        let io = |error| Error::io(format!("writing {}", path.display()), &error);
        let file = self.fs.create(&made).map_err(io)?;
        file.write_at(&next.encode(), 0).map_err(io)?;
        file.sync_data().map_err(io)?;
        self.fs.rename(&made, &path).map_err(io)?;
        self.fs.sync_dir(&self.dir).map_err(io)?;
        *said = next;
        Ok(())
    }
}

impl LogWitness for MarkFile {
    fn segment_begun(&self, mark: LogMark) -> Result<()> {
        self.change(|said| said.mark = mark)
    }
}

/// Nothing is held back on the device for this log.
struct NoReserve;

impl SpaceReserve for NoReserve {
    fn release(&self) -> bool {
        false
    }
}

/// An open log. See the [module's page](self).
pub struct SegmentedLog {
    wal: Wal,
    mark: Arc<MarkFile>,
    /// Segments that are not given up, without the one that is being written.
    oldest: Mutex<u64>,
    _lock: Box<dyn DirLock>,
}

/// Is called with each record: its segment, where it lies there, its bytes. What it says is wrong
/// becomes an error with the file and the offset.
pub type VisitRecord<'a> = dyn FnMut(u64, u64, &[u8]) -> std::result::Result<(), String> + 'a;

impl SegmentedLog {
    /// Opens the log in a directory, creating both if they do not exist, and visits its records in
    /// order. Fails with `Corruption` if it is damaged. Blocks on the device.
    pub fn open(
        fs: Arc<dyn FileSystem>,
        dir: &Path,
        options: SegmentedLogOptions,
        visit: &mut VisitRecord<'_>,
    ) -> Result<SegmentedLog> {
        let io = |error| Error::io(format!("opening {}", dir.display()), &error);
        fs.create_dir_all(dir).map_err(io)?;
        let lock = fs.lock(&dir.join("LOCK")).map_err(|error| match error.kind() {
            std::io::ErrorKind::WouldBlock => Error::DirectoryInUse(dir.to_path_buf()),
            _ => io(error),
        })?;
        let names = fs.list(dir).map_err(io)?;
        let said = read_mark(&*fs, dir, &names)?;
        let facts = LogFacts {
            store: said.store,
            floor: said.floor,
            chained_from: 0,
            mark: said.mark,
            closed: said.closed,
        };
        let walked = walk_log(&*fs, dir, &names, &facts, &mut |segment, path, at, record| {
            visit(segment, at, record).map_err(|reason| Error::corruption(path, at, reason))
        })?;
        let (segment, mark) = settle(&*fs, dir, &walked)?;
        let file = MarkFile { fs: fs.clone(), dir: dir.to_path_buf(), said: Mutex::new(said) };
        file.change(|said| (said.mark, said.closed) = (mark, false))?;
        remove_strangers(&*fs, dir, &names, said.floor);
        let file = Arc::new(file);
        let wal = Wal::new(
            (fs, dir),
            LogStart { store: said.store, segment, mark },
            (options.segment_size, options.recycled_segments),
            Arc::new(NoReserve),
            file.clone(),
            options.clock,
        );
        Ok(SegmentedLog { wal, mark: file, oldest: Mutex::new(said.floor), _lock: lock })
    }

    /// Queues a record; does not wait for the device.
    pub fn append(&self, record: &[u8]) -> Result<LogAppended> {
        let appended = self.wal.append(record)?;
        let (upto, segment, offset) = (appended.lsn, appended.segment, appended.offset);
        Ok(LogAppended { upto, segment, offset })
    }

    /// Blocks until everything up to there was handed to the operating system.
    pub fn write(&self, upto: Lsn) -> Result<()> {
        self.wal.wait(upto, false)
    }

    /// Blocks until everything up to there is durable. Who waits at the same time shares one sync.
    pub fn sync(&self, upto: Lsn) -> Result<()> {
        self.wal.wait(upto, true)?;
        if self.wal.wants_segment() {
            self.wal.prepare_segment();
        }
        Ok(())
    }

    /// Visits records from one on that was written ([`SegmentedLog::write`]) and not given up,
    /// until `visit` returns `false`. Blocks on the device.
    pub fn read(
        &self,
        segment: u64,
        offset: u64,
        visit: &mut dyn FnMut(&[u8]) -> std::result::Result<bool, String>,
    ) -> Result<()> {
        read_records(&*self.mark.fs, &self.mark.dir, (segment, offset), visit)
    }

    /// Gives up the segments before `floor`: what is needed must be durable from there on. Durable
    /// when it returns.
    pub fn release(&self, floor: u64) -> Result<()> {
        let mut oldest = self.oldest.lock();
        if floor <= *oldest {
            return Ok(());
        }
        // First the mark: a segment that is needed and missing is damage.
        self.mark.change(|said| said.floor = floor)?;
        let first = std::mem::replace(&mut *oldest, floor);
        for segment in first..floor {
            let path = segment_path(&self.mark.dir, segment);
            if self.mark.fs.exists(&path).unwrap_or(false) {
                self.wal.retire(&path)?;
            }
        }
        Ok(())
    }

    /// The oldest segment that is kept.
    pub fn oldest_segment(&self) -> u64 {
        *self.oldest.lock()
    }

    /// Makes everything durable. The next open finds the log ending exactly here.
    pub fn close(self) -> Result<()> {
        self.wal.wait(self.wal.appended(), true)?;
        self.wal.rotate();
        self.wal.wait(self.wal.appended(), true)?;
        self.wal.remove_prepared()?;
        let mark = self.wal.mark();
        self.mark.change(|said| (said.mark, said.closed) = (mark, true))
    }
}

/// What the mark file says; of a new log, after it was made.
fn read_mark(fs: &dyn FileSystem, dir: &Path, names: &[String]) -> Result<Marked> {
    let path = MarkFile::path(dir);
    if names.iter().any(|name| name == "MARK") {
        let bytes = read_all(fs, &path)
            .map_err(|error| Error::io(format!("reading {}", path.display()), &error))?;
        return Marked::decode(&bytes, &path);
    }
    if let Some(name) = names.iter().find(|name| SegmentFile::of_name(name).is_some()) {
        return Err(Error::corruption(path, 0, format!("it is missing, but there is {name}")));
    }
    let store = Random::from_entropy().next_u64() | 1;
    Ok(Marked { store, floor: 1, mark: LogMark::default(), closed: false })
}

/// Removes what is not needed. Errors only leave files behind.
fn remove_strangers(fs: &dyn FileSystem, dir: &Path, names: &[String], floor: u64) {
    for name in names {
        let old = SegmentFile::of_name(name).is_some_and(|file| file.number < floor);
        let stranger = old || name.ends_with(".recycled") || name == "MARK.new";
        if stranger && let Err(error) = fs.remove(&dir.join(name)) {
            tracing::warn!(name, %error, "cannot remove a file that is not needed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_round_trip_and_any_changed_byte_is_noticed() {
        let mark = LogMark { segment: 3, position: 400, identity: 9 };
        let marked = Marked { store: 7, floor: 2, mark, closed: true };
        let (bytes, path) = (marked.encode(), Path::new("MARK"));
        assert_eq!(Marked::decode(&bytes, path).unwrap(), marked);
        for at in 0..bytes.len() {
            let mut broken = bytes.clone();
            broken[at] ^= 4;
            assert!(Marked::decode(&broken, path).is_err(), "byte {at}");
        }
    }
}
