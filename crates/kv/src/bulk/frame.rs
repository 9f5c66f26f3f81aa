//! Frames of a run: what is read from the disk at once, behind a checksum.

use std::ops::Range;
use std::path::Path;

use braid_env::fs::File;
use bytes::Bytes;

use super::io_error;
use crate::error::KvResult;

/// Length and checksum.
pub(super) const FRAME_HEAD: usize = 8;
/// Lengths of key and value.
const ROW_HEAD: usize = 8;

/// The rows of a frame, in order.
pub(crate) struct Frame {
    bytes: Bytes,
    /// Where keys begin and end, and values end.
    rows: Vec<(usize, usize, usize)>,
}

impl Frame {
    /// Reads the frame that begins at an offset.
    pub(super) fn read(place: &Place<'_>, offset: u64) -> KvResult<Frame> {
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

/// A run's file.
pub(super) struct Place<'a> {
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
        frame.resize(len as usize, 0);
        self.file.read_exact_at(frame, at + FRAME_HEAD as u64).map_err(failed)?;
        if crc32c::crc32c(frame) != crc {
            return Err(self.damaged(at, "checksum mismatch"));
        }
        Ok(())
    }

    pub(super) fn damaged(&self, offset: u64, reason: &str) -> crate::KvError {
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
