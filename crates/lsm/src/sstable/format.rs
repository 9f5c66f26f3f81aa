//! Blocks and footers: the frame around everything in an sst.
//!
//! ```text
//!   block:   image (raw, or raw_len u32 + compressed) | codec u8 | kind u8 | 0 u16 | xxh3 u64
//!   footer:  magic u64 | version u32 | flags u32 | file_no u64 | top index off u64 len u32 |
//!            properties off u64 len u32 | identity u64 | xxh3 u64 (over the first 56 bytes)
//! ```

use std::path::{Path, PathBuf};

use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::options::Codec;

pub(crate) const TRAILER: usize = 12;
pub(crate) const FOOTER: usize = 64;
pub(crate) const MAGIC: u64 = 0x5453_5344_4941_5242; // "BRAIDSST"
pub(crate) const FORMAT_VERSION: u32 = 1;

/// No compressed block is larger: one that says so is not given memory to prove it. A block that
/// would be larger is stored as it is.
const MAX_COMPRESSED: usize = 256 << 20;

/// Name of an sst's file.
pub(crate) fn sst_path(dir: &Path, file_no: u64) -> PathBuf {
    dir.join(format!("{file_no:06}.sst"))
}

/// What is in a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockKind {
    Rows = 1,
    Tombstones = 2,
    Filter = 3,
    Index = 4,
    TopIndex = 5,
    Properties = 6,
}

/// Where a block's image lies in its file; the trailer follows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct BlockHandle {
    pub(crate) offset: u64,
    pub(crate) len: u32,
}

fn seed(file_no: u64, offset: u64) -> u64 {
    file_no.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ offset
}

/// What lz4 needs to find repetitions, in bytes.
const LZ4_TABLE: usize = 16 << 10;

/// Compresses block after block: what that needs of memory is there from the first one on.
#[derive(Default)]
pub(crate) struct Packer {
    table: lz4_flex::block::CompressTable,
    packed: Vec<u8>,
}

impl Packer {
    /// Bytes of memory that it takes.
    pub(crate) fn memory(&self) -> usize {
        LZ4_TABLE + self.packed.capacity()
    }

    /// The compressed image, if it is worth it.
    fn pack(&mut self, raw: &[u8], codec: Codec) -> Option<&[u8]> {
        if raw.len() > MAX_COMPRESSED {
            return None;
        }
        // Compression of bytes in memory fails only for lack of memory; raw is always right.
        let len = match codec {
            Codec::None => return None,
            Codec::Lz4 => {
                let most = lz4_flex::block::get_maximum_output_size(raw.len());
                if self.packed.len() < most {
                    self.packed.resize(most, 0);
                }
                let (packed, table) = (&mut self.packed, &mut self.table);
                lz4_flex::block::compress_into_with_table(raw, packed, table).ok()?
            }
            Codec::Zstd => {
                self.packed = zstd::bulk::compress(raw, 1).ok()?;
                self.packed.len()
            }
        };
        // Less than an eighth saved is not worth the time to decompress.
        (len + 4 < raw.len() - raw.len() / 8).then(|| &self.packed[..len])
    }
}

/// Appends a block to `out`; `offset` is where it will lie in the file. Returns its image length.
pub(crate) fn append_block(
    out: &mut Vec<u8>,
    raw: &[u8],
    kind: BlockKind,
    (codec, packer): (Codec, &mut Packer),
    file_no: u64,
    offset: u64,
) -> u32 {
    let start = out.len();
    let packed = packer.pack(raw, codec);
    let codec_byte = match (&packed, codec) {
        (Some(_), Codec::Lz4) => 1,
        (Some(_), Codec::Zstd) => 2,
        _ => 0,
    };
    if let Some(image) = packed {
        out.extend_from_slice(&(raw.len() as u32).to_le_bytes());
        out.extend_from_slice(image);
    } else {
        out.extend_from_slice(raw);
    }
    let len = out.len() - start;
    out.extend_from_slice(&[codec_byte, kind as u8, 0, 0]);
    let sum = xxh3_64_with_seed(&out[start..], seed(file_no, offset));
    out.extend_from_slice(&sum.to_le_bytes());
    len as u32
}

/// Makes the checksum of a damaged block match again: fuzzers look behind it.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn seal_block(bytes: &mut [u8], file_no: u64, offset: u64) {
    if let Some(at) = bytes.len().checked_sub(8) {
        let sum = xxh3_64_with_seed(&bytes[..at], seed(file_no, offset));
        bytes[at..].copy_from_slice(&sum.to_le_bytes());
    }
}

/// As [`seal_block`], for a footer.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn seal_footer(bytes: &mut [u8; FOOTER]) {
    let sum = xxh3_64_with_seed(&bytes[..56], le_u64(bytes, 16));
    bytes[56..].copy_from_slice(&sum.to_le_bytes());
}

/// Checks a block read from disk (image and trailer) and returns its raw image.
pub(crate) fn open_block(
    mut bytes: Vec<u8>,
    kind: BlockKind,
    file_no: u64,
    offset: u64,
) -> Result<Bytes, String> {
    if bytes.len() < TRAILER {
        return Err("block is shorter than its trailer".into());
    }
    let image_len = bytes.len() - TRAILER;
    let stored = le_u64(&bytes, image_len + 4);
    let sum = xxh3_64_with_seed(&bytes[..image_len + 4], seed(file_no, offset));
    if sum != stored {
        return Err("block checksum does not match".into());
    }
    let (codec, found) = (bytes[image_len], bytes[image_len + 1]);
    if found != kind as u8 {
        return Err(format!("block is of kind {found}, expected {}", kind as u8));
    }
    bytes.truncate(image_len);
    if codec == 0 {
        return Ok(bytes.into());
    }
    if image_len < 4 {
        return Err("compressed block without a length".into());
    }
    let raw_len = le_u32(&bytes, 0) as usize;
    if raw_len > MAX_COMPRESSED {
        return Err(format!("block says that it decompresses to {raw_len} bytes"));
    }
    let raw = match codec {
        1 => lz4_flex::block::decompress(&bytes[4..], raw_len).map_err(|e| e.to_string())?,
        2 => zstd::bulk::decompress(&bytes[4..], raw_len).map_err(|e| e.to_string())?,
        other => return Err(format!("unknown codec {other}")),
    };
    if raw.len() != raw_len {
        return Err("block decompresses to another length than it says".into());
    }
    Ok(raw.into())
}

/// The last 64 bytes of an sst.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Footer {
    pub(crate) file_no: u64,
    pub(crate) top_index: BlockHandle,
    pub(crate) properties: BlockHandle,
    /// Chosen at random; 0 in older files.
    pub(crate) identity: u64,
}

/// Why a footer cannot be used.
#[derive(Debug)]
pub(crate) enum FooterError {
    Damaged(&'static str),
    TooNew(u32),
}

impl Footer {
    pub(crate) fn encode(&self) -> [u8; FOOTER] {
        let mut out = [0; FOOTER];
        out[0..8].copy_from_slice(&MAGIC.to_le_bytes());
        out[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        out[16..24].copy_from_slice(&self.file_no.to_le_bytes());
        out[24..32].copy_from_slice(&self.top_index.offset.to_le_bytes());
        out[32..36].copy_from_slice(&self.top_index.len.to_le_bytes());
        out[36..44].copy_from_slice(&self.properties.offset.to_le_bytes());
        out[44..48].copy_from_slice(&self.properties.len.to_le_bytes());
        out[48..56].copy_from_slice(&self.identity.to_le_bytes());
        let sum = xxh3_64_with_seed(&out[..56], self.file_no);
        out[56..].copy_from_slice(&sum.to_le_bytes());
        out
    }

    pub(crate) fn decode(bytes: &[u8; FOOTER]) -> Result<Footer, FooterError> {
        let file_no = le_u64(bytes, 16);
        if xxh3_64_with_seed(&bytes[..56], file_no) != le_u64(bytes, 56) {
            return Err(FooterError::Damaged("footer checksum does not match"));
        }
        if le_u64(bytes, 0) != MAGIC {
            return Err(FooterError::Damaged("not an sst"));
        }
        let version = le_u32(bytes, 8);
        if version > FORMAT_VERSION || le_u32(bytes, 12) != 0 {
            return Err(FooterError::TooNew(version));
        }
        Ok(Footer {
            file_no,
            top_index: BlockHandle { offset: le_u64(bytes, 24), len: le_u32(bytes, 32) },
            properties: BlockHandle { offset: le_u64(bytes, 36), len: le_u32(bytes, 44) },
            identity: le_u64(bytes, 48),
        })
    }
}

/// Reads a little-endian number; panics if it is out of bounds, which callers have checked.
pub(crate) fn le_u16(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

/// As [`le_u16`].
pub(crate) fn le_u32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

/// As [`le_u16`].
pub(crate) fn le_u64(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_round_trip_and_know_their_place() {
        let raw: Vec<u8> = (0..5_000u32).map(|i| (i / 100) as u8).collect();
        let mut packer = Packer::default();
        for codec in [Codec::None, Codec::Lz4, Codec::Zstd] {
            let mut out = Vec::new();
            append_block(&mut out, &raw, BlockKind::Rows, (codec, &mut packer), 7, 4096);
            assert_eq!(open_block(out.clone(), BlockKind::Rows, 7, 4096).unwrap(), raw);
            assert!(open_block(out.clone(), BlockKind::Rows, 8, 4096).is_err());
            assert!(open_block(out.clone(), BlockKind::Rows, 7, 8192).is_err());
            assert!(open_block(out.clone(), BlockKind::Index, 7, 4096).is_err());
            for at in (0..out.len()).step_by(7) {
                let mut broken = out.clone();
                broken[at] ^= 4;
                assert!(open_block(broken, BlockKind::Rows, 7, 4096).is_err());
            }
        }
    }

    #[test]
    fn a_packer_forgets_the_blocks_before() {
        let (mut packer, mut first) = (Packer::default(), None);
        for i in 0..200u32 {
            // Small, large, and some that cannot be packed.
            let len = [3_000, 100_000, 700][i as usize % 3];
            let noise = |j: u32| if i % 5 == 0 { j.wrapping_mul(2_654_435_761) >> 24 } else { i };
            let raw: Vec<u8> = (0..len).map(|j| (noise(j) ^ (j / 40)) as u8).collect();
            let mut out = Vec::new();
            append_block(&mut out, &raw, BlockKind::Rows, (Codec::Lz4, &mut packer), 7, 0);
            assert_eq!(open_block(out.clone(), BlockKind::Rows, 7, 0).unwrap(), raw);
            first = first.or(Some((raw, out)));
        }
        // What was packed before does not show.
        let (raw, expected) = first.expect("there was a first one");
        let mut again = Vec::new();
        append_block(&mut again, &raw, BlockKind::Rows, (Codec::Lz4, &mut packer), 7, 0);
        assert_eq!(open_block(again.clone(), BlockKind::Rows, 7, 0).unwrap(), raw);
        assert_eq!(again.len(), expected.len());
    }

    #[test]
    fn a_block_cannot_ask_for_any_amount_of_memory() {
        let mut out = Vec::new();
        let lz4 = (Codec::Lz4, &mut Packer::default());
        append_block(&mut out, &[7; 5_000], BlockKind::Rows, lz4, 7, 0);
        out[..4].copy_from_slice(&u32::MAX.to_le_bytes());
        seal_block(&mut out, 7, 0);
        let refused = open_block(out, BlockKind::Rows, 7, 0).unwrap_err();
        assert!(refused.contains("decompresses to 4294967295 bytes"), "{refused}");
    }

    #[test]
    fn a_footer_with_any_changed_byte_is_refused() {
        let handle = BlockHandle { offset: 100, len: 5 };
        let footer = Footer { file_no: 3, top_index: handle, properties: handle, identity: 9 };
        let bytes = footer.encode();
        assert_eq!(Footer::decode(&bytes).unwrap(), footer);
        for at in 0..FOOTER {
            let mut broken = bytes;
            broken[at] ^= 1;
            assert!(Footer::decode(&broken).is_err());
        }
    }

    #[test]
    fn a_footer_of_a_newer_format_is_told_from_damage() {
        let handle = BlockHandle { offset: 100, len: 5 };
        let mut bytes =
            Footer { file_no: 3, top_index: handle, properties: handle, identity: 9 }.encode();
        bytes[8] = 2;
        let sum = xxh3_64_with_seed(&bytes[..56], 3);
        bytes[56..].copy_from_slice(&sum.to_le_bytes());
        assert!(matches!(Footer::decode(&bytes), Err(FooterError::TooNew(2))));
    }
}
