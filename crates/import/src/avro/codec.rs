//! How blocks are compressed.

use std::io::Read;

/// A codec by its name in the file.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Codec {
    None,
    Deflate,
    Snappy,
    Zstd,
    Bzip2,
}

impl Codec {
    pub(super) fn named(name: &str) -> Option<Codec> {
        Some(match name {
            "" | "null" => Codec::None,
            "deflate" => Codec::Deflate,
            "snappy" => Codec::Snappy,
            "zstandard" => Codec::Zstd,
            "bzip2" => Codec::Bzip2,
            _ => return None,
        })
    }

    /// The bytes of a block, which are no more than `most`. Whatever is held at a time, `grow` is
    /// told before.
    pub(super) fn decompress(
        self,
        block: Vec<u8>,
        most: usize,
        grow: &mut Grow<'_>,
    ) -> Result<Vec<u8>, String> {
        match self {
            Codec::None => Ok(block),
            Codec::Deflate => {
                all(&mut flate2::bufread::DeflateDecoder::new(&block[..]), &block, most, grow)
            }
            Codec::Bzip2 => {
                all(&mut bzip2::bufread::MultiBzDecoder::new(&block[..]), &block, most, grow)
            }
            Codec::Zstd => {
                let decoder = zstd::stream::read::Decoder::with_buffer(&block[..]);
                let mut decoder = decoder.map_err(|e| format!("a block: {e}"))?;
                all(&mut decoder, &block, most, grow)
            }
            Codec::Snappy => snappy(&block, most, grow),
        }
    }
}

/// Told how many bytes are about to be held.
pub(super) type Grow<'a> = dyn FnMut(usize) -> Result<(), String> + 'a;

/// What decoders hold besides, with what they may look back at: it is no more than what came out.
const DECODER: usize = 256 << 10;
/// Bytes that come out at first.
const FIRST: usize = 64 << 10;

fn all(
    from: &mut dyn Read,
    block: &[u8],
    most: usize,
    grow: &mut Grow<'_>,
) -> Result<Vec<u8>, String> {
    let mut out: Vec<u8> = Vec::new();
    loop {
        if out.len() == out.capacity() {
            let size = (out.len() * 2).clamp(FIRST, most.saturating_add(1).max(FIRST));
            // Both are there while one is copied into the other.
            grow(block.len() + DECODER + out.len() * 2 + size)?;
            out.reserve_exact(size - out.len());
        }
        let room = (out.capacity() - out.len()) as u64;
        let n = from.take(room).read_to_end(&mut out).map_err(|e| format!("a block: {e}"))?;
        if out.len() > most {
            return Err(format!("a block of more than {most} bytes"));
        }
        if n == 0 {
            return Ok(out);
        }
    }
}

/// Raw snappy with a checksum behind it.
fn snappy(block: &[u8], most: usize, grow: &mut Grow<'_>) -> Result<Vec<u8>, String> {
    let (data, sum) = block.split_last_chunk::<4>().ok_or("a block is cut off")?;
    let length = snap::raw::decompress_len(data).map_err(|e| format!("a block: {e}"))?;
    if length > most {
        return Err(format!("a block of more than {most} bytes"));
    }
    grow(block.len() + length)?;
    let out =
        snap::raw::Decoder::new().decompress_vec(data).map_err(|e| format!("a block: {e}"))?;
    let mut crc = flate2::Crc::new();
    crc.update(&out);
    if crc.sum() != u32::from_be_bytes(*sum) {
        return Err("the checksum of a block is wrong".into());
    }
    Ok(out)
}
