//! What the segments of a log know of each other, so that loss, exchange, repetition and files from
//! elsewhere are told from the end of the log.
//!
//! ```text
//!   manifest    store S          the log is durable up to: segment 8, identity c, offset 700
//!                                                                   |
//!   000007.wal  [S | 7 | b | follows a | ...records... | seal]      |
//!   000008.wal  [S | 8 | c | follows b | ...records... ]     <------+
//!   000009.wal  [S | 9 | d | follows c | ...]      not known yet: nobody relies on it
//! ```
//!
//! Each segment begins with a *head*: the store, its number, an identity chosen at random, and the
//! identity of the one before it. The manifest says how far the log is known to reach; it learns of
//! a segment before anybody is told that something in it is durable. So:
//!
//! * Up to the *mark*, every segment must be there, in place and whole; the last one at least up to
//!   the mark's offset. If the store was closed, the log ends exactly there.
//! * Behind the mark a crash may have left anything: a segment without a head, or with that of
//!   the file's former life. Nobody was promised what was in it. But a head that neither a crash
//!   nor recycling explains is an error there as well.

use std::path::Path;

use braid_env::fs::FileSystem;

use super::reader::{SegmentEnd, SegmentRead, read_segment};
use super::record::{BLOCK, ChunkKind, HEADER, any_chunk_at, append_chunk};
use super::segments::{SegmentFile, ends_before, segment_path, segments_from};
use crate::error::{Error, Result};

/// Bytes of a segment's head.
pub(crate) const HEAD: u64 = HEADER + 40;

/// How a segment begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentHead {
    /// Identity of the store.
    pub(crate) store: u64,
    pub(crate) number: u64,
    /// Chosen at random: no other segment has it.
    pub(crate) identity: u64,
    /// Identity of the segment before it; 0 if that has none.
    pub(crate) follows: u64,
    /// Bytes that the file had when the segment began.
    pub(crate) allocated: u64,
}

impl SegmentHead {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let fields = [self.store, self.number, self.identity, self.follows, self.allocated];
        let payload: Vec<u8> = fields.iter().flat_map(|field| field.to_le_bytes()).collect();
        let mut out = Vec::with_capacity(HEAD as usize);
        append_chunk(ChunkKind::Head, self.number as u32, 0, &payload, &mut out);
        out
    }

    /// The head at the start of a file, whatever segment it is of.
    fn decode(image: &[u8]) -> Option<SegmentHead> {
        let chunk = any_chunk_at(image, 0).filter(|chunk| chunk.kind == ChunkKind::Head)?;
        if chunk.payload.len() as u64 != HEAD - HEADER {
            return None;
        }
        let mut fields = chunk
            .payload
            .chunks_exact(8)
            .map(|bytes| u64::from_le_bytes(bytes.try_into().expect("chunks of eight bytes")));
        let mut next = || fields.next().unwrap_or(0);
        let (store, number, identity) = (next(), next(), next());
        Some(SegmentHead { store, number, identity, follows: next(), allocated: next() })
    }
}

/// Up to here the log is known to be durable. Of no segment: number 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct LogMark {
    pub(crate) segment: u64,
    pub(crate) position: u64,
    /// 0 if the segment has no head, as those of format version 1.
    pub(crate) identity: u64,
}

/// What the manifest says of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LogFacts {
    pub(crate) store: u64,
    /// The oldest segment that is needed.
    pub(crate) floor: u64,
    /// Segments from here on have heads.
    pub(crate) chained_from: u64,
    pub(crate) mark: LogMark,
    /// The log ends at the mark.
    pub(crate) closed: bool,
}

/// What a walk over the log found.
#[derive(Debug, Default)]
pub(crate) struct Walked {
    /// The log.
    pub(crate) kept: Vec<SegmentFile>,
    /// Nothing in these was ever durable.
    pub(crate) left: Vec<SegmentFile>,
    /// Segment and offset at which the log ends without a seal.
    pub(crate) torn: Option<(u64, u64)>,
    /// The number behind the last segment that was looked at.
    pub(crate) next: u64,
    /// Where the log ends.
    pub(crate) end: LogMark,
}

/// How a segment stands to the one before it.
enum Link {
    /// It has its head, and follows.
    Chained(SegmentHead),
    /// It is older than heads.
    Headless,
    /// Behind the mark: begun, but a crash took the head, and with it all.
    Unwritten,
}

/// Is called with each record: number and path of its segment, its offset, its bytes.
type Visit<'a> = dyn FnMut(u64, &Path, u64, &[u8]) -> Result<()> + 'a;

/// Visits the records of the log in order: segment, its path, offset, record.
///
/// Only the last segment that holds anything may end without a seal: there the power failed.
pub(crate) fn walk_log(
    fs: &dyn FileSystem,
    dir: &Path,
    names: &[String],
    facts: &LogFacts,
    visit: &mut Visit<'_>,
) -> Result<Walked> {
    let segments = segments_from(names, facts.floor);
    let mut walked = Walked { next: facts.floor, end: facts.mark, ..Walked::default() };
    for (at, file) in segments.iter().enumerate() {
        if ends_before(*file, walked.next, walked.torn.is_none()) || begun_in_vain(*file, facts) {
            check_left(dir, &segments[at..])?;
            walked.left.extend(&segments[at..]);
            break;
        }
        walk_segment(fs, dir, *file, facts, &mut walked, visit)?;
    }
    let needed = facts.mark.segment;
    if needed >= facts.floor && walked.next <= needed {
        let reason = format!("the wal segment is missing: the log reached segment {needed}");
        return Err(Error::corruption(segment_path(dir, walked.next), 0, reason));
    }
    Ok(walked)
}

/// A segment that was made ahead of need, and outlived the close of the store.
fn begun_in_vain(file: SegmentFile, facts: &LogFacts) -> bool {
    facts.closed && file.ahead && file.number > facts.mark.segment
}

/// Behind the end of the log nothing may have a name that says that all before it is durable.
fn check_left(dir: &Path, left: &[SegmentFile]) -> Result<()> {
    let Some(named) = left.iter().find(|file| !file.ahead) else { return Ok(()) };
    let reason = "segments before it were durable, but are not whole";
    Err(Error::corruption(named.path(dir), 0, reason))
}

fn walk_segment(
    fs: &dyn FileSystem,
    dir: &Path,
    file: SegmentFile,
    facts: &LogFacts,
    walked: &mut Walked,
    visit: &mut Visit<'_>,
) -> Result<()> {
    let (segment, path) = (file.number, file.path(dir));
    let wrong = |offset: u64, reason: String| Err(Error::corruption(&path, offset, reason));
    if segment != walked.next {
        let reason = format!("the wal segment is missing, but segment {segment} is there");
        return Err(Error::corruption(segment_path(dir, walked.next), 0, reason));
    }
    let needed = segment <= facts.mark.segment;
    if facts.closed && !needed {
        let last = facts.mark.segment;
        return wrong(0, format!("the store was closed when segment {last} was the last one"));
    }
    if needed && file.ahead {
        return wrong(0, "the segment was durable, but its name says that it was not".into());
    }
    let link = link(fs, &path, segment, facts, walked)?;
    let torn = walked.torn;
    let mut visit_record = |offset: u64, record: &[u8]| {
        if let Some((torn, at)) = torn {
            let reason = "the segment ends without a seal, but later ones have records";
            return Err(Error::corruption(segment_path(dir, torn), at, reason));
        }
        visit(segment, &path, offset, record)
    };
    let read = read_segment(fs, &path, segment, &mut visit_record)?;
    check_extent(fs, &path, segment, facts, &link, &read)?;
    walked.next = segment + 1;
    if walked.torn.is_some() {
        // Created behind the end, but nothing in it can be durable.
        walked.left.push(file);
        return Ok(());
    }
    if let SegmentEnd::Torn { at, .. } = read.end {
        walked.torn = Some((segment, at));
    }
    match link {
        Link::Unwritten => walked.left.push(file),
        Link::Headless => {
            walked.kept.push(file);
            walked.end = LogMark { segment, position: read.upto, identity: 0 };
        }
        Link::Chained(head) => {
            walked.kept.push(file);
            walked.end = LogMark { segment, position: read.upto, identity: head.identity };
        }
    }
    Ok(())
}

/// Looks at a segment's head.
fn link(
    fs: &dyn FileSystem,
    path: &Path,
    segment: u64,
    facts: &LogFacts,
    walked: &Walked,
) -> Result<Link> {
    let wrong = |reason: String| Err(Error::corruption(path, 0, reason));
    let found = read_head(fs, path)?;
    if segment < facts.chained_from {
        return match found {
            None => Ok(Link::Headless),
            Some(head) => {
                wrong(format!("expected a segment of format version 1, found {}", name_of(&head)))
            }
        };
    }
    let needed = segment <= facts.mark.segment;
    let Some(head) = found else {
        if needed {
            let reason = "expected the head of wal segment";
            return wrong(format!("{reason} {segment}, found none"));
        }
        return Ok(Link::Unwritten);
    };
    if head.store != facts.store {
        let expected = facts.store;
        return wrong(format!(
            "expected segment {segment} of store {expected:016x}, found {}",
            name_of(&head)
        ));
    }
    if head.number != segment {
        if !needed && head.number < segment {
            // The file's former life: it was to be recycled.
            return Ok(Link::Unwritten);
        }
        return wrong(format!("expected segment {segment}, found {}", name_of(&head)));
    }
    let before = Some(walked.end).filter(|end| end.segment + 1 == segment && end.identity != 0);
    if let Some(before) = before.filter(|before| before.identity != head.follows) {
        let (expected, found) = (before.identity, head.follows);
        return wrong(format!(
            "expected a segment that follows {expected:016x}, found one that follows {found:016x}"
        ));
    }
    let mark = facts.mark;
    if segment == mark.segment && mark.identity != 0 && head.identity != mark.identity {
        let (expected, found) = (mark.identity, head.identity);
        return wrong(format!("expected the segment {expected:016x}, found {found:016x}"));
    }
    Ok(Link::Chained(head))
}

fn name_of(head: &SegmentHead) -> String {
    format!("segment {} of store {:016x}", head.number, head.store)
}

/// Whether a segment reaches as far as the manifest knows it to.
fn check_extent(
    fs: &dyn FileSystem,
    path: &Path,
    segment: u64,
    facts: &LogFacts,
    link: &Link,
    read: &SegmentRead,
) -> Result<()> {
    let mark = facts.mark;
    let wrong = |reason: String| Err(Error::corruption(path, read.upto, reason));
    let sealed = read.end == SegmentEnd::Sealed;
    if segment < mark.segment && !sealed {
        let last = mark.segment;
        return wrong(format!("the segment ends without a seal, but the log reached {last}"));
    }
    if segment != mark.segment {
        return Ok(());
    }
    if read.upto < mark.position || facts.closed && read.upto != mark.position {
        let (found, expected) = (read.upto, mark.position);
        return wrong(format!("the log ends at {found}, but it reached {expected}"));
    }
    if let Link::Chained(head) = link
        && !sealed
    {
        let io = |error| Error::io(format!("reading {}", path.display()), &error);
        let len = fs.open(path).and_then(|file| file.len()).map_err(io)?;
        if len < head.allocated {
            let expected = head.allocated;
            return wrong(format!("the segment has {len} bytes, but it had {expected}"));
        }
    }
    Ok(())
}

/// The head of a segment, whichever it is; `None` if there is no valid one.
pub(crate) fn read_head(fs: &dyn FileSystem, path: &Path) -> Result<Option<SegmentHead>> {
    let io = |error| Error::io(format!("reading {}", path.display()), &error);
    let file = fs.open(path).map_err(io)?;
    let len = file.len().map_err(io)?;
    let mut image = vec![0; HEAD.min(len) as usize];
    file.read_exact_at(&mut image, 0).map_err(io)?;
    Ok(SegmentHead::decode(&image))
}

/// The number in the first chunk of a file, be it a segment's or a manifest's: for messages about
/// files that took the place of others.
pub(crate) fn any_number(fs: &dyn FileSystem, path: &Path) -> std::io::Result<Option<u32>> {
    let file = fs.open(path)?;
    let mut image = vec![0; file.len()?.min(BLOCK) as usize];
    file.read_exact_at(&mut image, 0)?;
    let whole = any_chunk_at(&image, 0).map(|_| &image[7..11]);
    Ok(whole.map(|number| u32::from_le_bytes(number.try_into().expect("four bytes"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_round_trip_and_any_changed_byte_is_noticed() {
        let head =
            SegmentHead { store: 1 << 63, number: 7, identity: 9, follows: 8, allocated: 32 };
        let image = head.encode();
        assert_eq!(image.len() as u64, HEAD);
        assert_eq!(SegmentHead::decode(&image), Some(head));
        for at in 0..image.len() {
            let mut broken = image.clone();
            broken[at] ^= 1;
            assert_eq!(SegmentHead::decode(&broken), None, "byte {at}");
        }
    }
}
