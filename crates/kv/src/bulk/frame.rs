//! Files of frames: a frame is what is read from the disk at once, behind a checksum.
//!
//! | bytes | meaning |
//! |---|---|
//! | u32 | length of the frame's payload |
//! | u32 | crc32c of the payload |
//! | .. | payload; of most frames for each row u32 key length, u32 value length, key, value |
//!
//! All numbers are little endian.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use braid_env::fs::{File, FileSystem};
use bytes::Bytes;

use super::io_error;
use crate::error::KvResult;

/// Length and checksum.
pub(crate) const FRAME_HEAD: usize = 8;
/// Lengths of key and value.
const ROW_HEAD: usize = 8;

/// A file of frames. It goes from the disk with this, unless it shall stay.
pub(crate) struct FrameFile {
    fs: Arc<dyn FileSystem>,
    file: Arc<dyn File>,
    stays: Arc<AtomicBool>,
    path: PathBuf,
    len: u64,
}

impl FrameFile {
    /// A new one.
    pub(crate) fn create(
        fs: &Arc<dyn FileSystem>,
        stays: &Arc<AtomicBool>,
        path: PathBuf,
    ) -> KvResult<FrameFile> {
        let file = fs.create(&path).map_err(|error| io_error(&path, &error))?;
        Ok(FrameFile { fs: fs.clone(), file, stays: stays.clone(), path, len: 0 })
    }

    /// One of an earlier process, whose length was noted.
    pub(super) fn again(
        fs: &Arc<dyn FileSystem>,
        stays: &Arc<AtomicBool>,
        path: PathBuf,
        len: u64,
    ) -> KvResult<FrameFile> {
        let file = fs.open(&path).map_err(|error| io_error(&path, &error))?;
        let file = FrameFile { fs: fs.clone(), file, stays: stays.clone(), path, len };
        let found = file.file.len().map_err(|error| io_error(&file.path, &error))?;
        if found < len {
            let reason = format!("it has {found} bytes instead of {len}");
            return Err(file.place().damaged(found, &reason));
        }
        Ok(file)
    }

    /// Writes a frame: its payload lies behind [`FRAME_HEAD`] bytes, which are filled here. Where
    /// it begins.
    pub(crate) fn append(&mut self, frame: &mut [u8]) -> KvResult<u64> {
        let (head, payload) = frame.split_at_mut(FRAME_HEAD);
        let (len, crc) = (payload.len() as u32, crc32c::crc32c(payload));
        head[..4].copy_from_slice(&len.to_le_bytes());
        head[4..].copy_from_slice(&crc.to_le_bytes());
        let at = self.len;
        self.file.write_at(frame, at).map_err(|error| io_error(&self.path, &error))?;
        self.len += frame.len() as u64;
        Ok(at)
    }

    /// Reads the rows of the frame that begins at an offset.
    pub(crate) fn rows(&self, offset: u64) -> KvResult<Frame> {
        Frame::read(&self.place(), offset)
    }

    /// Reads the payload of a frame that is none of rows.
    pub(crate) fn payload(&self, offset: u64) -> KvResult<Bytes> {
        let mut payload = Vec::new();
        self.place().read_frame(offset, &mut payload)?;
        Ok(payload.into())
    }

    /// Makes its bytes durable.
    pub(super) fn sync(&self) -> KvResult<()> {
        self.file.sync_data().map_err(|error| io_error(&self.path, &error))
    }

    /// Removes it, though files stay.
    pub(super) fn remove(self) -> KvResult<()> {
        if !self.stays.load(Ordering::SeqCst) {
            // Dropping it does.
            return Ok(());
        }
        self.fs.remove(&self.path).map_err(|error| io_error(&self.path, &error))
    }

    pub(crate) fn byte_len(&self) -> u64 {
        self.len
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn handle(&self) -> Arc<dyn File> {
        self.file.clone()
    }

    pub(crate) fn place(&self) -> Place<'_> {
        Place { file: &*self.file, path: &self.path, len: self.len }
    }
}

impl Drop for FrameFile {
    fn drop(&mut self) {
        if self.stays.load(Ordering::SeqCst) {
            return;
        }
        if let Err(error) = self.fs.remove(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "cannot remove a file of rows");
        }
    }
}

/// Bytes of a row in a payload.
pub(super) fn row_len(key: &[u8], value: &[u8]) -> usize {
    ROW_HEAD + key.len() + value.len()
}

/// Adds a row to a payload.
pub(crate) fn put_row(frame: &mut Vec<u8>, key: &[u8], value: (&[u8], &[u8])) {
    frame.extend_from_slice(&(key.len() as u32).to_le_bytes());
    frame.extend_from_slice(&((value.0.len() + value.1.len()) as u32).to_le_bytes());
    frame.extend_from_slice(key);
    frame.extend_from_slice(value.0);
    frame.extend_from_slice(value.1);
}

/// The rows of a frame, in order.
pub(crate) struct Frame {
    bytes: Bytes,
    /// Where keys begin and end, and values end.
    rows: Vec<(usize, usize, usize)>,
}

impl Frame {
    /// Reads the frame that begins at an offset.
    fn read(place: &Place<'_>, offset: u64) -> KvResult<Frame> {
        let mut bytes = Vec::new();
        place.read_frame(offset, &mut bytes)?;
        let mut rows = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            let row = row_at(&bytes, at).ok_or_else(|| place.damaged(offset, "a row is cut off"));
            let (key, value) = row?;
            at = value.end;
            rows.push((key.start, key.end, value.end));
        }
        Ok(Frame { bytes: bytes.into(), rows })
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn key(&self, row: usize) -> Bytes {
        let (start, end, _) = self.rows[row];
        self.bytes.slice(start..end)
    }

    pub(crate) fn value(&self, row: usize) -> Bytes {
        let (_, start, end) = self.rows[row];
        self.bytes.slice(start..end)
    }

    /// The first row whose key is at or above this one.
    pub(crate) fn position(&self, key: &[u8]) -> usize {
        self.rows.partition_point(|(start, end, _)| &self.bytes[*start..*end] < key)
    }
}

/// Where frames are read from.
pub(crate) struct Place<'a> {
    pub(super) file: &'a dyn File,
    pub(super) path: &'a Path,
    pub(super) len: u64,
}

impl Place<'_> {
    /// Reads the payload of the frame that begins at an offset.
    pub(super) fn read_frame(&self, at: u64, frame: &mut Vec<u8>) -> KvResult<()> {
        let failed = |error| io_error(self.path, &error);
        let mut head = [0; FRAME_HEAD];
        self.file.read_exact_at(&mut head, at).map_err(failed)?;
        let len = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
        let crc = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
        if u64::from(len) > self.len - at - FRAME_HEAD as u64 {
            return Err(self.damaged(at, "a frame is longer than the run"));
        }
        frame.clear();
        frame.reserve_exact(len as usize);
        frame.resize(len as usize, 0);
        self.file.read_exact_at(frame, at + FRAME_HEAD as u64).map_err(failed)?;
        if crc32c::crc32c(frame) != crc {
            return Err(self.damaged(at, "checksum mismatch"));
        }
        Ok(())
    }

    pub(crate) fn damaged(&self, offset: u64, reason: &str) -> crate::KvError {
        let (file, reason) = (self.path.to_path_buf(), reason.to_string());
        braid_lsm::Error::Corruption { file, offset, reason }.into()
    }
}

/// Where the key and the value of the row lie that begins here; `None` if it is cut off.
pub(super) fn row_at(frame: &[u8], at: usize) -> Option<(Range<usize>, Range<usize>)> {
    let number = |at: usize| {
        let bytes = frame.get(at..at + 4)?.try_into().ok()?;
        Some(u32::from_le_bytes(bytes) as usize)
    };
    let (key, value) = (number(at)?, number(at + 4)?);
    let start = at + ROW_HEAD;
    let end = start.checked_add(key)?.checked_add(value)?;
    (end <= frame.len()).then(|| (start..start + key, start + key..end))
}
