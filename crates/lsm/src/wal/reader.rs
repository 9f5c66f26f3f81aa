//! Reads a segment at recovery: its records, and how it ends. Segments are preallocated; of one
//! that ends in a seal no more is read than was written.
//!
//! ```text
//!   records ... [seal]                    Sealed: the next segment goes on from here
//!   records ... <bytes that do not hold>  Torn: the power failed in the middle of a write
//!   records ... <damage> ... [chunk that says "synced beyond the damage"]   corruption
//! ```

use std::cell::Cell;
use std::path::Path;

use braid_env::fs::FileSystem;

use super::record::{BLOCK, Chunk, ChunkKind, scan_chunks, synced_by_later_chunks};
use crate::error::{Error, Result};

/// So many bytes are read at once.
const STEP: u64 = 1 << 20;

/// How a segment ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SegmentEnd {
    /// By a seal: all of it is there.
    Sealed,
    /// Without a seal; valid records end at this offset. `empty`: there is not even one.
    Torn { at: u64, empty: bool },
}

/// What was read of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentRead {
    pub(crate) end: SegmentEnd,
    /// Behind the seal, or behind the last whole record.
    pub(crate) upto: u64,
}

/// Calls `visit(offset, record)` for each whole record of a segment. Its head is passed over.
pub(crate) fn read_segment(
    fs: &dyn FileSystem,
    path: &Path,
    segment: u64,
    visit: &mut dyn FnMut(u64, &[u8]) -> Result<()>,
) -> Result<SegmentRead> {
    let io = |error| Error::io(format!("reading {}", path.display()), &error);
    let file = fs.open(path).map_err(io)?;
    let len = file.len().map_err(io)?;
    let mut image: Vec<u8> = Vec::new();
    let extend = |image: &mut Vec<u8>, to: u64| {
        let from = image.len();
        let mut part = vec![0; (to.min(len) as usize).saturating_sub(from)];
        file.read_exact_at(&mut part, from as u64).map_err(io)?;
        image.append(&mut part);
        Ok(())
    };
    let mut record: Vec<u8> = Vec::new();
    let mut record_at = None;
    let sealed = Cell::new(false);
    // End of the last whole record: a record that is cut off does not exist.
    let mut whole_to = 0;
    let mut empty = true;
    let mut visit_chunk = |chunk: Chunk<'_>| {
        let continues = matches!(chunk.kind, ChunkKind::Middle | ChunkKind::Last);
        if continues != record_at.is_some() {
            let reason = "the parts of a record do not follow each other";
            return Err(Error::corruption(path, chunk.offset, reason));
        }
        let end = chunk.offset + super::record::HEADER + chunk.payload.len() as u64;
        match chunk.kind {
            ChunkKind::Seal => {
                sealed.set(true);
                return Ok(false);
            }
            ChunkKind::Head if chunk.offset == 0 => whole_to = end,
            ChunkKind::Head => {
                let reason = "the head of a segment is not at its start";
                return Err(Error::corruption(path, chunk.offset, reason));
            }
            ChunkKind::Full => {
                visit(chunk.offset, chunk.payload)?;
                (whole_to, empty) = (end, false);
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
                (whole_to, empty) = (end, false);
            }
        }
        Ok(true)
    };
    let mut valid_to = 0;
    loop {
        extend(&mut image, valid_to + STEP)?;
        valid_to = scan_chunks(&image, valid_to, segment, &mut visit_chunk)?;
        // A chunk does not cross a block: what does not hold with all of its block read, is no
        // chunk.
        let all_read = image.len() as u64 == len;
        if sealed.get() || all_read || valid_to + BLOCK <= image.len() as u64 {
            break;
        }
    }
    if sealed.get() {
        return Ok(SegmentRead { end: SegmentEnd::Sealed, upto: valid_to });
    }
    extend(&mut image, len)?;
    if synced_by_later_chunks(&image, valid_to, segment) > whole_to {
        let reason = "a record that was durable cannot be read";
        return Err(Error::corruption(path, valid_to, reason));
    }
    Ok(SegmentRead { end: SegmentEnd::Torn { at: whole_to, empty }, upto: whole_to })
}
