//! Records in blocks: the byte format of wal segments and of the manifest.
//!
//! A file is a row of 32-KiB blocks. A record is cut into chunks that never cross a block:
//!
//! ```text
//!   chunk:  crc32c u32 (masked) | len u16 | kind u8 | segment u32 | synced_to u64 | payload
//!           `--- over all that follows ---'
//!   kind:   1 whole record, 2 first, 3 middle, 4 last part, 5 seal (end of the segment),
//!           6 head of a segment (only at its start, see `chain`)
//! ```
//!
//! * `segment` tells chunks of this segment from those of the file's former life (recycling).
//! * `synced_to` is a position of this segment known to be durable when the chunk was framed. It
//!   tells a torn tail from corruption: damage below a later chunk's `synced_to` cannot be the
//!   end of an interrupted write.

use crate::error::Result;

pub(crate) const BLOCK: u64 = 32 << 10;
pub(crate) const HEADER: u64 = 19;

/// What part of a record a chunk is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChunkKind {
    Full = 1,
    First = 2,
    Middle = 3,
    Last = 4,
    Seal = 5,
    Head = 6,
}

impl ChunkKind {
    fn from_u8(byte: u8) -> Option<ChunkKind> {
        Some(match byte {
            1 => ChunkKind::Full,
            2 => ChunkKind::First,
            3 => ChunkKind::Middle,
            4 => ChunkKind::Last,
            5 => ChunkKind::Seal,
            6 => ChunkKind::Head,
            _ => return None,
        })
    }
}

/// Appends framed records to a buffer and knows the position in the segment.
#[derive(Debug, Clone)]
pub(crate) struct Framer {
    segment: u32,
    position: u64,
}

impl Framer {
    /// A framer at the start of a segment. Only the low 32 bits of the number are stored.
    pub(crate) fn new(segment: u64) -> Framer {
        Framer { segment: segment as u32, position: 0 }
    }

    /// A framer that goes on behind what is already there.
    pub(crate) fn at(segment: u64, position: u64) -> Framer {
        Framer { segment: segment as u32, position }
    }

    /// Bytes framed so far.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// Appends one record.
    pub(crate) fn frame(&mut self, payload: &[u8], synced_to: u64, out: &mut Vec<u8>) {
        let chunks = payload.len() / (BLOCK - HEADER) as usize + 2;
        out.reserve(payload.len() + chunks * HEADER as usize);
        let mut rest = payload;
        let mut first = true;
        loop {
            let room = self.room(out);
            let take = rest.len().min((room - HEADER) as usize);
            let (part, after) = rest.split_at(take);
            let kind = match (first, after.is_empty()) {
                (true, true) => ChunkKind::Full,
                (true, false) => ChunkKind::First,
                (false, false) => ChunkKind::Middle,
                (false, true) => ChunkKind::Last,
            };
            self.chunk(kind, part, synced_to, out);
            if after.is_empty() {
                return;
            }
            rest = after;
            first = false;
        }
    }

    /// Appends the mark that nothing follows in this segment.
    pub(crate) fn seal(&mut self, synced_to: u64, out: &mut Vec<u8>) {
        self.room(out);
        self.chunk(ChunkKind::Seal, &[], synced_to, out);
    }

    /// Bytes left in the block, at least a header; pads to the next block if there are fewer.
    fn room(&mut self, out: &mut Vec<u8>) -> u64 {
        let left = BLOCK - self.position % BLOCK;
        if left > HEADER {
            return left;
        }
        out.resize(out.len() + left as usize, 0);
        self.position += left;
        BLOCK
    }

    fn chunk(&mut self, kind: ChunkKind, part: &[u8], synced_to: u64, out: &mut Vec<u8>) {
        append_chunk(kind, self.segment, synced_to, part, out);
        self.position += HEADER + part.len() as u64;
    }
}

/// Appends one chunk.
pub(crate) fn append_chunk(
    kind: ChunkKind,
    segment: u32,
    synced_to: u64,
    part: &[u8],
    out: &mut Vec<u8>,
) {
    let mut header = [0; HEADER as usize];
    header[4..6].copy_from_slice(&(part.len() as u16).to_le_bytes());
    header[6] = kind as u8;
    header[7..11].copy_from_slice(&segment.to_le_bytes());
    header[11..].copy_from_slice(&synced_to.to_le_bytes());
    let crc = mask(crc32c::crc32c_append(crc32c::crc32c(&header[4..]), part));
    header[..4].copy_from_slice(&crc.to_le_bytes());
    out.extend_from_slice(&header);
    out.extend_from_slice(part);
}

/// A crc of bytes that contain crcs is weak; stored ones are rotated and shifted.
fn mask(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(0xA282_EAD8)
}

/// One valid chunk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chunk<'a> {
    pub(crate) offset: u64,
    pub(crate) kind: ChunkKind,
    pub(crate) synced_to: u64,
    pub(crate) payload: &'a [u8],
}

/// Reads the chunk at `offset`; `None` if there is no valid one of this segment.
pub(crate) fn chunk_at(image: &[u8], offset: u64, segment: u64) -> Option<Chunk<'_>> {
    is_marked(image, offset as usize, segment).then(|| any_chunk_at(image, offset))?
}

/// Reads the chunk at `offset`, of whatever segment.
pub(crate) fn any_chunk_at(image: &[u8], offset: u64) -> Option<Chunk<'_>> {
    chunk_in(image, 0, offset)
}

/// Reads the chunk at `offset` of a segment of which `image` is the part from `base` on, which is
/// the start of a block.
pub(crate) fn chunk_in(image: &[u8], base: u64, offset: u64) -> Option<Chunk<'_>> {
    let start = (offset - base) as usize;
    let header = image.get(start..start + HEADER as usize)?;
    let kind = ChunkKind::from_u8(header[6])?;
    let len = u16::from_le_bytes([header[4], header[5]]) as usize;
    if offset % BLOCK + HEADER + len as u64 > BLOCK {
        return None;
    }
    let end = start + HEADER as usize + len;
    let covered = image.get(start + 4..end)?;
    let crc = u32::from_le_bytes([header[0], header[1], header[2], header[3]]);
    if mask(crc32c::crc32c(covered)) != crc {
        return None;
    }
    let synced = header[11..19].try_into().expect("eight bytes of a header of 19");
    let synced_to = u64::from_le_bytes(synced);
    (synced_to <= offset).then_some(Chunk {
        offset,
        kind,
        synced_to,
        payload: &image[start + HEADER as usize..end],
    })
}

/// Whether the bytes at `start` would be a chunk of this segment.
pub(crate) fn is_marked(image: &[u8], start: usize, segment: u64) -> bool {
    image.get(start + 7..start + 11).is_some_and(|mark| mark == (segment as u32).to_le_bytes())
}

/// Visits the valid chunks from `offset` on; returns where the first invalid one would begin.
pub(crate) fn scan_chunks<'a>(
    image: &'a [u8],
    mut offset: u64,
    segment: u64,
    visit: &mut dyn FnMut(Chunk<'a>) -> Result<bool>,
) -> Result<u64> {
    loop {
        let left = BLOCK - offset % BLOCK;
        if left <= HEADER {
            offset += left;
        }
        let Some(chunk) = chunk_at(image, offset, segment) else {
            return Ok(offset);
        };
        offset += HEADER + chunk.payload.len() as u64;
        if !visit(chunk)? {
            return Ok(offset);
        }
    }
}

/// A page that was preallocated and never written.
const ZEROS: [u8; 4096] = [0; 4096];

/// The largest `synced_to` of any valid chunk at or after `from`: what is known to have been
/// durable when those chunks were written.
pub(crate) fn synced_by_later_chunks(image: &[u8], from: u64, segment: u64) -> u64 {
    let mut synced = 0;
    let mark = (segment as u32).to_le_bytes();
    let mut start = from as usize;
    let end = image.len().saturating_sub(HEADER as usize - 1);
    while start < end {
        // What was preallocated and never written is zeros, which no chunk begins with: passed at
        // once, it costs a restart nothing.
        if image[start] == 0 && image[start..].starts_with(&ZEROS) {
            start += ZEROS.len() - HEADER as usize;
            continue;
        }
        // The segment number sits 7 bytes into a chunk: a cheap test before the crc.
        if image[start + 7..start + 11] == mark
            && let Some(chunk) = chunk_at(image, start as u64, segment)
        {
            synced = synced.max(chunk.synced_to);
        }
        start += 1;
    }
    synced
}

/// Makes the checksums of a damaged image match, chunk after chunk: fuzzers look behind them.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn seal_chunks(image: &mut [u8]) {
    let mut start = 0;
    while let Some(header) = image.get(start..start + HEADER as usize) {
        let len = u16::from_le_bytes([header[4], header[5]]) as usize;
        let end = start + HEADER as usize + len;
        let Some(covered) = image.get(start + 4..end) else { return };
        let crc = mask(crc32c::crc32c(covered));
        image[start..start + 4].copy_from_slice(&crc.to_le_bytes());
        start = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use braid_env::random::Random;

    fn records(image: &[u8], segment: u64) -> Vec<Vec<u8>> {
        let mut found: Vec<Vec<u8>> = Vec::new();
        scan_chunks(image, 0, segment, &mut |chunk| {
            match chunk.kind {
                ChunkKind::Full | ChunkKind::First => found.push(chunk.payload.to_vec()),
                ChunkKind::Middle | ChunkKind::Last => {
                    found.last_mut().unwrap().extend_from_slice(chunk.payload);
                }
                ChunkKind::Seal => return Ok(false),
                ChunkKind::Head => {}
            }
            Ok(true)
        })
        .unwrap();
        found
    }

    #[test]
    fn a_chunk_behind_zeros_is_found_wherever_it_begins() {
        for zeros in (0..40).chain(4_060..4_140).chain(8_150..8_200) {
            let mut image = vec![0; zeros];
            append_chunk(ChunkKind::Full, 7, zeros as u64, b"abc", &mut image);
            image.extend([0; 5_000]);
            assert_eq!(synced_by_later_chunks(&image, 0, 7), zeros as u64, "{zeros}");
            assert_eq!(synced_by_later_chunks(&image, 0, 8), 0, "{zeros}");
            assert_eq!(synced_by_later_chunks(&image, zeros as u64 + 1, 7), 0, "{zeros}");
        }
    }

    #[test]
    fn records_of_any_length_round_trip() {
        for seed in 0..50 {
            let mut random = Random::seeded(seed);
            let mut framer = Framer::new(seed);
            let mut image = Vec::new();
            let mut written = Vec::new();
            for _ in 0..30 {
                let len = match random.below(3) {
                    0 => random.below(60),
                    1 => BLOCK - HEADER - 20 + random.below(40),
                    _ => random.below(100_000),
                };
                let mut record = vec![0; len as usize];
                random.fill(&mut record);
                framer.frame(&record, 0, &mut image);
                assert_eq!(image.len() as u64, framer.position());
                written.push(record);
            }
            assert_eq!(records(&image, seed), written, "seed {seed}");
            assert!(records(&image, seed + 1).is_empty());
        }
    }

    #[test]
    fn a_changed_byte_ends_the_valid_part() {
        let mut framer = Framer::new(1);
        let mut image = Vec::new();
        framer.frame(b"first", 0, &mut image);
        let second = image.len();
        framer.frame(b"second", 5, &mut image);
        for at in second..image.len() {
            let mut broken = image.clone();
            broken[at] ^= 1;
            assert_eq!(records(&broken, 1).len(), 1);
        }
    }
}
