//! How blocks are compressed.

use std::borrow::Cow;
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

    /// The bytes of a block, which are no more than `most`.
    pub(super) fn decompress(self, block: &[u8], most: usize) -> Result<Cow<'_, [u8]>, String> {
        let all = |from: &mut dyn Read| {
            let mut out = Vec::new();
            let limit = most as u64 + 1;
            from.take(limit).read_to_end(&mut out).map_err(|e| format!("a block: {e}"))?;
            if out.len() > most {
                return Err(format!("a block of more than {most} bytes"));
            }
            Ok(Cow::Owned(out))
        };
        match self {
            Codec::None => Ok(Cow::Borrowed(block)),
            Codec::Deflate => all(&mut flate2::bufread::DeflateDecoder::new(block)),
            Codec::Bzip2 => all(&mut bzip2::bufread::MultiBzDecoder::new(block)),
            Codec::Zstd => {
                let decoder = zstd::stream::read::Decoder::with_buffer(block);
                all(&mut decoder.map_err(|e| format!("a block: {e}"))?)
            }
            Codec::Snappy => snappy(block, most),
        }
    }
}

/// Raw snappy with a checksum behind it.
fn snappy(block: &[u8], most: usize) -> Result<Cow<'_, [u8]>, String> {
    let (data, sum) = block.split_last_chunk::<4>().ok_or("a block is cut off")?;
    let length = snap::raw::decompress_len(data).map_err(|e| format!("a block: {e}"))?;
    if length > most {
        return Err(format!("a block of more than {most} bytes"));
    }
    let out =
        snap::raw::Decoder::new().decompress_vec(data).map_err(|e| format!("a block: {e}"))?;
    let mut crc = flate2::Crc::new();
    crc.update(&out);
    if crc.sum() != u32::from_be_bytes(*sum) {
        return Err("the checksum of a block is wrong".into());
    }
    Ok(Cow::Owned(out))
}
