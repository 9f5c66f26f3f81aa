//! Makes the log that was found end where it ends.
//!
//! What was never durable is removed, the rest is made durable, and a torn end gets a seal, so that
//! a later open does not mistake it for damage. A crash in between leaves a log that settles the
//! same way again.

use std::path::Path;

use braid_env::fs::FileSystem;

use super::chain::{LogMark, Walked};
use super::record::Framer;
use super::segments::{SegmentFile, segment_path};
use crate::error::{Error, Result};

/// See the [module's page](self). Returns the first segment that is free to write, and where the
/// log ends now.
pub(crate) fn settle(fs: &dyn FileSystem, dir: &Path, walked: &Walked) -> Result<(u64, LogMark)> {
    remove_segments(fs, dir, walked.left.iter())?;
    settle_segments(fs, dir, &walked.kept)?;
    let Some((segment, at)) = walked.torn else { return Ok((walked.next, walked.end)) };
    if !walked.kept.iter().any(|file| file.number == segment) {
        return Ok((segment, walked.end));
    }
    let position = seal_torn_segment(fs, dir, segment, at)?;
    Ok((segment + 1, LogMark { position, ..walked.end }))
}

fn remove_segments<'a>(
    fs: &dyn FileSystem,
    dir: &Path,
    segments: impl Iterator<Item = &'a SegmentFile>,
) -> Result<()> {
    let mut removed = false;
    for file in segments {
        let path = file.path(dir);
        fs.remove(&path)
            .map_err(|error| Error::io(format!("removing {}", path.display()), &error))?;
        removed = true;
    }
    if removed {
        // Before the segment in front of them gets a seal: they must not seem to follow it.
        fs.sync_dir(dir)
            .map_err(|error| Error::io(format!("syncing {}", dir.display()), &error))?;
    }
    Ok(())
}

/// Makes replayed segments durable, in order: after the death of a process the system may still
/// hold part of them, and new segments will be named as if it did not.
fn settle_segments(fs: &dyn FileSystem, dir: &Path, segments: &[SegmentFile]) -> Result<()> {
    for file in segments {
        let path = segment_path(dir, file.number);
        let io = |error| Error::io(format!("syncing {}", path.display()), &error);
        if file.ahead {
            fs.rename(&file.path(dir), &path).map_err(io)?;
        }
        fs.open_write(&path).and_then(|open| open.sync_data()).map_err(io)?;
        fs.sync_dir(dir).map_err(io)?;
    }
    Ok(())
}

/// Returns where the segment ends with its seal.
fn seal_torn_segment(fs: &dyn FileSystem, dir: &Path, segment: u64, at: u64) -> Result<u64> {
    let path = segment_path(dir, segment);
    let io = |error| Error::io(format!("sealing {}", path.display()), &error);
    let file = fs.open_write(&path).map_err(io)?;
    let mut framer = Framer::at(segment, at);
    let mut seal = Vec::new();
    framer.seal(at, &mut seal);
    file.write_at(&seal, at).map_err(io)?;
    file.sync_data().map_err(io)?;
    // What lies behind never became durable, and the next open need not read it. Not before the
    // seal is durable: a segment that is short and has none was cut off by somebody else.
    file.set_len(at + seal.len() as u64).map_err(io)?;
    file.sync_data().map_err(io)?;
    fs.sync_dir(dir).map_err(io)?;
    Ok(framer.position())
}
