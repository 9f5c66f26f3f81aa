//! Sorted runs on disk: what did not fit into memory, until the load is merged.
//!
//! | bytes | meaning |
//! |---|---|
//! | u32 | length of the frame's payload |
//! | u32 | crc32c of the payload |
//! | .. | payload: for each row u32 key length, u32 value length, key, value |
//!
//! All numbers are little endian. A run lives as long as its load and is never read by another
//! process, so it has no version; the checksum is there because disks lie.

use std::path::PathBuf;
use std::sync::Arc;

use braid_env::fs::{File, FileSystem};

use super::io_error;
use super::merge::Part;
use crate::error::KvResult;

/// Payload at which a frame ends.
const FRAME_BYTES: usize = 256 << 10;
const FRAME_HEAD: usize = 8;
const ROW_HEAD: usize = 8;

/// A run being written.
pub(crate) struct RunWriter {
    run: Run,
    frame: Vec<u8>,
    /// The first key of the frame.
    first: Vec<u8>,
}

/// A finished run. Its file goes with it.
pub(crate) struct Run {
    fs: Arc<dyn FileSystem>,
    file: Arc<dyn File>,
    path: PathBuf,
    len: u64,
    /// First keys of the frames, and where these begin.
    frames: Vec<(Vec<u8>, u64)>,
}

impl RunWriter {
    pub(crate) fn create(fs: &Arc<dyn FileSystem>, path: PathBuf) -> KvResult<RunWriter> {
        let file = fs.create(&path).map_err(|error| io_error(&path, &error))?;
        let run = Run { fs: fs.clone(), file, path, len: 0, frames: Vec::new() };
        Ok(RunWriter { run, frame: vec![0; FRAME_HEAD], first: Vec::new() })
    }

    /// Adds a row; keys come in order.
    pub(crate) fn put(&mut self, key: &[u8], value: &[u8]) -> KvResult<()> {
        if self.frame.len() == FRAME_HEAD {
            self.first = key.to_vec();
        }
        self.frame.extend_from_slice(&(key.len() as u32).to_le_bytes());
        self.frame.extend_from_slice(&(value.len() as u32).to_le_bytes());
        self.frame.extend_from_slice(key);
        self.frame.extend_from_slice(value);
        if self.frame.len() >= FRAME_BYTES {
            self.end_frame()?;
        }
        Ok(())
    }

    fn end_frame(&mut self) -> KvResult<()> {
        let payload = &self.frame[FRAME_HEAD..];
        if payload.is_empty() {
            return Ok(());
        }
        let (len, crc) = (payload.len() as u32, crc32c::crc32c(payload));
        self.frame[..4].copy_from_slice(&len.to_le_bytes());
        self.frame[4..8].copy_from_slice(&crc.to_le_bytes());
        let run = &mut self.run;
        run.file.write_at(&self.frame, run.len).map_err(|error| io_error(&run.path, &error))?;
        run.frames.push((std::mem::take(&mut self.first), run.len));
        run.len += self.frame.len() as u64;
        self.frame.truncate(FRAME_HEAD);
        Ok(())
    }

    pub(crate) fn finish(mut self) -> KvResult<Run> {
        self.end_frame()?;
        Ok(self.run)
    }
}

impl Run {
    /// Reads the rows that lie in a part, the first of them at once.
    pub(crate) fn reader(&self, part: Part) -> KvResult<RunReader> {
        let (file, path, len) = (self.file.clone(), self.path.clone(), self.len);
        // Equal keys may begin in one frame and go on in the next.
        let before = part.from.as_ref().map_or(0, |from| {
            self.frames.partition_point(|(first, _)| first < from).saturating_sub(1)
        });
        let next = self.frames.get(before).map_or(len, |(_, at)| *at);
        let Part { from, to } = part;
        let mut reader =
            RunReader { file, path, len, next, to, frame: Vec::new(), at: 0, row: None };
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
        self.frames.iter().map(|(first, _)| (&first[..], FRAME_BYTES as u64))
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if let Err(error) = self.fs.remove(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "cannot remove a run of a load");
        }
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
        let number = |at: usize| {
            let bytes = self.frame.get(at..at + 4)?;
            Some(u32::from_le_bytes(bytes.try_into().ok()?) as usize)
        };
        let (Some(key), Some(value)) = (number(self.at), number(self.at + 4)) else {
            return Err(self.damaged("a row is cut off"));
        };
        let start = self.at + ROW_HEAD;
        if self.frame.len() - start < key + value {
            return Err(self.damaged("a row is cut off"));
        }
        let own = start..start + key;
        if self.to.as_ref().is_some_and(|to| self.frame[own.clone()] >= to[..]) {
            (self.row, self.next, self.at) = (None, self.len, self.frame.len());
            return Ok(());
        }
        self.row = Some((own, start + key..start + key + value));
        self.at = start + key + value;
        Ok(())
    }

    fn read_frame(&mut self) -> KvResult<()> {
        let failed = |error| io_error(&self.path, &error);
        let mut head = [0; FRAME_HEAD];
        self.file.read_exact_at(&mut head, self.next).map_err(failed)?;
        let len = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
        let crc = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
        if u64::from(len) > self.len - self.next - FRAME_HEAD as u64 {
            return Err(self.damaged("a frame is longer than the run"));
        }
        self.frame.resize(len as usize, 0);
        self.file.read_exact_at(&mut self.frame, self.next + FRAME_HEAD as u64).map_err(failed)?;
        if crc32c::crc32c(&self.frame) != crc {
            return Err(self.damaged("checksum mismatch"));
        }
        self.next += FRAME_HEAD as u64 + u64::from(len);
        self.at = 0;
        Ok(())
    }

    fn damaged(&self, reason: &str) -> crate::KvError {
        let (file, reason) = (self.path.clone(), reason.to_string());
        braid_lsm::Error::Corruption { file, offset: self.next, reason }.into()
    }
}
