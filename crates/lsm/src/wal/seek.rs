//! Reads records from the middle of a segment that is being kept.
//!
//! At recovery a segment is read from its start, and how it ends says how far the log reaches. Here
//! the record is known to have been written, so that anything but a whole record in its place is
//! damage. A block at a time is read: what is asked for is often one small record.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use braid_env::fs::{File, FileSystem};

use super::record::{BLOCK, ChunkKind, HEADER, chunk_in, is_marked};
use super::segments::SegmentFile;
use crate::error::{Error, Result};

/// Visits records of a segment from an offset on, until `visit` returns `false`.
pub(crate) fn read_records(
    fs: &dyn FileSystem,
    dir: &Path,
    (segment, mut offset): (u64, u64),
    visit: &mut dyn FnMut(&[u8]) -> std::result::Result<bool, String>,
) -> Result<()> {
    let (path, file) = open(fs, dir, segment)?;
    let io = |error| Error::io(format!("reading {}", path.display()), &error);
    let len = file.len().map_err(io)?;
    let mut block = Vec::new();
    let mut base = None;
    let mut record: Vec<u8> = Vec::new();
    let mut begun = false;
    loop {
        if BLOCK - offset % BLOCK <= HEADER {
            offset += BLOCK - offset % BLOCK;
        }
        let wanted = offset - offset % BLOCK;
        if base != Some(wanted) {
            block.resize(len.saturating_sub(wanted).min(BLOCK) as usize, 0);
            file.read_exact_at(&mut block, wanted).map_err(io)?;
            base = Some(wanted);
        }
        let marked = is_marked(&block, (offset - wanted) as usize, segment);
        let chunk = chunk_in(&block, wanted, offset).filter(|_| marked);
        let wrong = |reason: &str| Err(Error::corruption(&path, offset, reason));
        let Some(chunk) = chunk else { return wrong("a record that was written cannot be read") };
        let continues = matches!(chunk.kind, ChunkKind::Middle | ChunkKind::Last);
        if continues != begun || matches!(chunk.kind, ChunkKind::Seal | ChunkKind::Head) {
            return wrong("a record was written here, and something else is found");
        }
        record.extend_from_slice(chunk.payload);
        begun = !matches!(chunk.kind, ChunkKind::Full | ChunkKind::Last);
        offset += HEADER + chunk.payload.len() as u64;
        if !begun {
            let goes_on = visit(&record);
            if !goes_on.map_err(|reason| Error::corruption(&path, offset, reason))? {
                return Ok(());
            }
            record.clear();
        }
    }
}

/// A segment's file. Another thread that syncs the log may be giving it its durable name.
fn open(fs: &dyn FileSystem, dir: &Path, segment: u64) -> Result<(PathBuf, Arc<dyn File>)> {
    const TRIES: usize = 3;
    let mut last = None;
    for ahead in [false, true].into_iter().cycle().take(2 * TRIES) {
        let path = SegmentFile { number: segment, ahead }.path(dir);
        match fs.open(&path) {
            Ok(file) => return Ok((path, file)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                last = Some((path, error))
            }
            Err(error) => return Err(Error::io(format!("opening {}", path.display()), &error)),
        }
    }
    let (path, error) = last.expect("it was tried");
    Err(Error::io(format!("opening {}", path.display()), &error))
}
