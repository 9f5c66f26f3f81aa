//! Reads a segment at recovery: its records, and how it ends.
//!
//! ```text
//!   records ... [seal]                    Sealed: the next segment goes on from here
//!   records ... <bytes that do not hold>  Torn: the power failed in the middle of a write
//!   records ... <damage> ... [chunk that says "synced beyond the damage"]   corruption
//! ```

use std::path::Path;

use braid_env::fs::{FileSystem, read_all};

use super::record::{ChunkKind, scan_chunks, synced_by_later_chunks};
use crate::error::{Error, Result};

/// How a segment ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SegmentEnd {
    /// By a seal: all of it is there.
    Sealed,
    /// Without a seal; valid records end at this offset. `empty`: there is not even one.
    Torn { at: u64, empty: bool },
}

/// Calls `visit(offset, record)` for each whole record of a segment.
pub(crate) fn read_segment(
    fs: &dyn FileSystem,
    path: &Path,
    segment: u64,
    visit: &mut dyn FnMut(u64, &[u8]) -> Result<()>,
) -> Result<SegmentEnd> {
    let image = read_all(fs, path)
        .map_err(|error| Error::io(format!("reading {}", path.display()), &error))?;
    let mut record: Vec<u8> = Vec::new();
    let mut record_at = None;
    let mut sealed = false;
    // End of the last whole record: a record that is cut off does not exist.
    let mut whole_to = 0;
    let valid_to = scan_chunks(&image, segment, &mut |chunk| {
        let continues = matches!(chunk.kind, ChunkKind::Middle | ChunkKind::Last);
        if continues != record_at.is_some() {
            let reason = "the parts of a record do not follow each other";
            return Err(Error::corruption(path, chunk.offset, reason));
        }
        let end = chunk.offset + super::record::HEADER + chunk.payload.len() as u64;
        match chunk.kind {
            ChunkKind::Seal => {
                sealed = true;
                return Ok(false);
            }
            ChunkKind::Full => {
                visit(chunk.offset, chunk.payload)?;
                whole_to = end;
            }
            ChunkKind::First => {
                record_at = Some(chunk.offset);
                record = chunk.payload.to_vec();
            }
            ChunkKind::Middle => record.extend_from_slice(chunk.payload),
            ChunkKind::Last => {
                record.extend_from_slice(chunk.payload);
                let offset = record_at.take().expect("checked above");
                visit(offset, &record)?;
                whole_to = end;
            }
        }
        Ok(true)
    })?;
    if sealed {
        return Ok(SegmentEnd::Sealed);
    }
    if synced_by_later_chunks(&image, valid_to, segment) > whole_to {
        let reason = "a record that was durable cannot be read";
        return Err(Error::corruption(path, valid_to, reason));
    }
    Ok(SegmentEnd::Torn { at: whole_to, empty: whole_to == 0 })
}
