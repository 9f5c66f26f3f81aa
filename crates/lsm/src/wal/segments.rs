//! The files of the log, and what their names say.
//!
//! ```text
//!   000007.wal      all segments before it are durable: damage to them is corruption
//!   000008.ahead    begun while 000007 was not durable yet: after a power failure 000007 may end
//!                   in the middle, and then nothing from here on counts
//!   x.recycled      blocks to use again
//! ```
//!
//! Whoever makes the log durable goes through it in order: renames a segment once all before it
//! are durable, syncs it, syncs the directory. So an `ahead` is only ever followed by others, and
//! nothing that is durable lies in one.

use std::path::{Path, PathBuf};

/// A segment's file as a directory lists it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SegmentFile {
    pub(crate) number: u64,
    /// Begun before all earlier segments were durable.
    pub(crate) ahead: bool,
}

impl SegmentFile {
    pub(crate) fn path(self, dir: &Path) -> PathBuf {
        let extension = if self.ahead { "ahead" } else { "wal" };
        dir.join(format!("{:06}.{extension}", self.number))
    }

    /// The segment with this file name, if it is one.
    pub(crate) fn of_name(name: &str) -> Option<SegmentFile> {
        let (number, extension) = name.rsplit_once('.')?;
        let ahead = match extension {
            "wal" => false,
            "ahead" => true,
            _ => return None,
        };
        Some(SegmentFile { number: number.parse().ok()?, ahead })
    }
}

/// Name of a segment's file once all segments before it are durable.
pub(crate) fn segment_path(dir: &Path, segment: u64) -> PathBuf {
    SegmentFile { number: segment, ahead: false }.path(dir)
}

/// The segments that recovery needs, ascending.
pub(crate) fn segments_from(names: &[String], floor: u64) -> Vec<SegmentFile> {
    let segments = names.iter().filter_map(|name| SegmentFile::of_name(name));
    let mut segments: Vec<SegmentFile> = segments.filter(|file| file.number >= floor).collect();
    segments.sort_unstable();
    // A rename leaves one name; if a device shows both, the durable one is right.
    segments.dedup_by_key(|file| file.number);
    segments
}

/// Whether the log ends in front of this segment: it was begun ahead, and does not follow a
/// whole one. `whole`: all segments so far end in seals; `next`: the number that is expected.
pub(crate) fn ends_before(file: SegmentFile, next: u64, whole: bool) -> bool {
    file.ahead && (file.number != next || !whole)
}
