//! Sorted runs on disk: what did not fit into memory, until the load is merged.
//!
//! Frames of rows, one behind the other. A run lives as long as its load, or as its job, which
//! begins from its first row if it is not what was noted: so it has no version; the checksum is
//! there because disks lie.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use braid_env::fs::{File, FileSystem};

use super::frame::{FRAME_HEAD, FrameFile, Place, put_row, row_at, row_len};
use super::merge::Part;
use crate::error::KvResult;

/// Payload at which a frame ends, unless memory is short.
pub(super) const FRAME_BYTES: usize = 256 << 10;
/// The least, unless the run ends.
pub(super) const FRAME_MIN: usize = 8 << 10;
/// So many places of a run are known by their keys.
const MARKS_MAX: usize = 128;

/// A run being written. Rows that are only to be read again need not come in order.
pub(crate) struct RunWriter {
    run: Run,
    /// Payload at which a frame ends.
    frame_bytes: usize,
    frame: Vec<u8>,
    /// The first key of the frame.
    first: Vec<u8>,
}

/// A finished run.
pub(crate) struct Run {
    file: FrameFile,
    marks: Marks,
    /// Its last key.
    last: Vec<u8>,
    /// Payload of the longest frame.
    frame_max: usize,
    /// A note knows of it: it stays, as long as the job may go on.
    noted: bool,
}

/// First keys of some frames, and where these begin.
#[derive(Default)]
struct Marks {
    keys: Vec<(Vec<u8>, u64)>,
    /// Frames that have come.
    frames: usize,
    /// Each frame of so many has a mark, as a power of two.
    power: u32,
}

impl Marks {
    fn add(&mut self, first: Vec<u8>, at: u64) {
        if self.frames.is_multiple_of(1 << self.power) {
            self.keys.push((first, at));
        }
        self.frames += 1;
        if self.keys.len() > MARKS_MAX {
            let mut n = 0usize;
            self.keys.retain(|_| {
                n += 1;
                !n.is_multiple_of(2)
            });
            self.power += 1;
        }
    }
}

impl RunWriter {
    pub(crate) fn create(
        fs: &Arc<dyn FileSystem>,
        stays: &Arc<AtomicBool>,
        path: PathBuf,
    ) -> KvResult<RunWriter> {
        let file = FrameFile::create(fs, stays, path)?;
        let run = Run::of(file);
        let (frame, first) = (vec![0; FRAME_HEAD], Vec::new());
        Ok(RunWriter { run, frame_bytes: FRAME_BYTES, frame, first })
    }

    /// Frames have at most so many bytes, unless a row is longer.
    pub(crate) fn with_frames_of(mut self, bytes: usize) -> RunWriter {
        self.frame_bytes = bytes.clamp(FRAME_MIN, FRAME_BYTES);
        self
    }

    /// Bytes of memory that it takes with this row.
    pub(crate) fn memory_with(&self, key: &[u8], value: &[u8]) -> usize {
        FRAME_HEAD + self.frame_bytes.max(row_len(key, value))
    }

    /// Adds a row; keys come in order.
    pub(crate) fn put(&mut self, key: &[u8], value: &[u8]) -> KvResult<()> {
        let row = row_len(key, value);
        if self.frame.len() + row > FRAME_HEAD + self.frame_bytes {
            self.end_frame()?;
        }
        if self.frame.len() == FRAME_HEAD {
            self.first = key.to_vec();
            self.frame.reserve_exact(self.frame_bytes.max(row));
        }
        put_row(&mut self.frame, key, (value, &[]));
        if row >= self.frame_bytes {
            self.end_frame()?;
        }
        Ok(())
    }

    fn end_frame(&mut self) -> KvResult<()> {
        if self.frame.len() > FRAME_HEAD {
            let at = self.run.file.append(&mut self.frame)?;
            self.run.marks.add(std::mem::take(&mut self.first), at);
            self.run.frame_max = self.run.frame_max.max(self.frame.len() - FRAME_HEAD);
            self.frame.truncate(FRAME_HEAD);
            // A long row needed more.
            self.frame.shrink_to(FRAME_HEAD + self.frame_bytes);
        }
        Ok(())
    }

    /// Ends it; `last` is the key that was put last.
    pub(crate) fn finish(mut self, last: &[u8]) -> KvResult<Run> {
        self.end_frame()?;
        self.run.last = last.to_vec();
        Ok(self.run)
    }
}

impl Run {
    fn of(file: FrameFile) -> Run {
        let (marks, last) = (Marks::default(), Vec::new());
        Run { file, marks, last, frame_max: 0, noted: false }
    }

    /// One of an earlier process, whose length was noted. One that is not sorted has no marks.
    pub(crate) fn again(
        fs: &Arc<dyn FileSystem>,
        stays: &Arc<AtomicBool>,
        path: PathBuf,
        (len, sorted): (u64, bool),
    ) -> KvResult<Run> {
        let file = FrameFile::again(fs, stays, path, len)?;
        let mut run = Run { noted: true, ..Run::of(file) };
        if !sorted {
            return Ok(run);
        }
        let mut reader = run.reader(Part::default())?;
        let mut marks = Marks::default();
        while let Some((key, _)) = reader.row() {
            if reader.at_first {
                marks.add(key.to_vec(), reader.frame_at);
                run.frame_max = run.frame_max.max(reader.frame.len());
            }
            run.last.clear();
            run.last.extend_from_slice(key);
            reader.advance()?;
        }
        run.marks = marks;
        Ok(run)
    }

    /// Makes its bytes durable: a note will know of it.
    pub(crate) fn keep(&mut self) -> KvResult<()> {
        self.noted = true;
        self.file.sync()
    }

    /// Its rows lie elsewhere now: its file goes, unless a note knows of it.
    pub(super) fn discard(self) -> KvResult<()> {
        if self.noted { Ok(()) } else { self.file.remove() }
    }

    /// Bytes of memory that reading it takes.
    pub(super) fn reading(&self) -> usize {
        self.frame_max.max(FRAME_MIN)
    }

    /// Whether a key of it may lie in `[start, end)`.
    pub(super) fn may_meet(&self, start: &[u8], end: &[u8]) -> bool {
        let first = self.marks.keys.first().is_some_and(|(first, _)| &first[..] < end);
        first && &self.last[..] >= start
    }

    /// Its file.
    pub(super) fn path(&self) -> &Path {
        self.file.path()
    }

    /// Bytes on disk.
    pub(super) fn byte_len(&self) -> u64 {
        self.file.byte_len()
    }

    /// Reads the rows that lie in a part, the first of them at once.
    pub(crate) fn reader(&self, part: Part) -> KvResult<RunReader> {
        let (file, path, len) = (self.file.handle(), self.path().to_path_buf(), self.byte_len());
        // Equal keys may begin in one frame and go on in the next.
        let before = part.from.as_ref().map_or(0, |from| {
            self.marks.keys.partition_point(|(first, _)| first < from).saturating_sub(1)
        });
        // One without marks is read from its beginning.
        let next = self.marks.keys.get(before).map_or(0, |(_, at)| *at);
        let Part { from, to } = part;
        let mut reader = RunReader {
            file,
            path,
            len,
            next,
            to,
            frame: Vec::new(),
            at: 0,
            row: None,
            frame_at: 0,
            at_first: false,
        };
        reader.advance()?;
        while let (Some(from), Some((key, _))) = (&from, reader.row())
            && key < &from[..]
        {
            reader.advance()?;
        }
        Ok(reader)
    }

    /// Keys at about equal distances, and the bytes between them.
    pub(crate) fn marks(&self) -> impl Iterator<Item = (&[u8], u64)> {
        let each = self.byte_len() / self.marks.keys.len().max(1) as u64;
        self.marks.keys.iter().map(move |(first, _)| (&first[..], each))
    }
}

/// Reads a part of a run, a frame at a time.
pub(crate) struct RunReader {
    file: Arc<dyn File>,
    path: PathBuf,
    len: u64,
    next: u64,
    /// The key that it ends in front of.
    to: Option<Vec<u8>>,
    frame: Vec<u8>,
    at: usize,
    /// Where the current row's key and value lie in the frame.
    row: Option<(std::ops::Range<usize>, std::ops::Range<usize>)>,
    /// Where the frame lies in the file.
    frame_at: u64,
    /// The current row is the frame's first one.
    at_first: bool,
}

impl RunReader {
    pub(crate) fn row(&self) -> Option<(&[u8], &[u8])> {
        let (key, value) = self.row.clone()?;
        Some((&self.frame[key], &self.frame[value]))
    }

    pub(crate) fn advance(&mut self) -> KvResult<()> {
        if self.at == self.frame.len() {
            if self.next == self.len {
                self.row = None;
                return Ok(());
            }
            self.read_frame()?;
        }
        let Some((own, value)) = row_at(&self.frame, self.at) else {
            return Err(self.place().damaged(self.frame_at, "a row is cut off"));
        };
        if self.to.as_ref().is_some_and(|to| self.frame[own.clone()] >= to[..]) {
            (self.row, self.next, self.at) = (None, self.len, self.frame.len());
            return Ok(());
        }
        self.at_first = self.at == 0;
        self.at = value.end;
        self.row = Some((own, value));
        Ok(())
    }

    fn read_frame(&mut self) -> KvResult<()> {
        let mut frame = std::mem::take(&mut self.frame);
        let read = self.place().read_frame(self.next, &mut frame);
        self.frame = frame;
        read?;
        self.frame_at = self.next;
        self.next += (FRAME_HEAD + self.frame.len()) as u64;
        self.at = 0;
        Ok(())
    }

    fn place(&self) -> Place<'_> {
        Place { file: &*self.file, path: &self.path, len: self.len }
    }
}
