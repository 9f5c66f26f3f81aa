//! How much memory decompression takes, as the beginning of a file says.

use std::io;

use braid_env::fs::File;

use crate::options::Compression;

/// What a decoder takes.
#[derive(Debug, PartialEq)]
pub(crate) struct Need {
    /// In bytes.
    pub(crate) all: usize,
    /// Of zstd: how far repetitions may reach back, as a power of two.
    pub(crate) window_log: u32,
}

/// Windows of zstd that every decoder takes, as a power of two: level 19 needs no more.
const WINDOW_LOG: u32 = 23;
/// The largest that its format has on this machine.
const WINDOW_LOG_MAX: u32 = 31;

/// What the decoder of a file takes.
pub(crate) fn memory_of(compression: Compression, file: &dyn File) -> io::Result<Need> {
    let (all, window_log) = match compression {
        Compression::Auto | Compression::None => (0, 0),
        // A window of 32 KiB, and tables.
        Compression::Gzip => (96 << 10, 0),
        Compression::Bzip2 => {
            let mut head = [0; 4];
            let n = file.read_at(&mut head, 0)?;
            let level = head[3].wrapping_sub(b'0');
            let level = if n == 4 && (1..=9).contains(&level) { level } else { 9 };
            (usize::from(level) * 400_000 + (200 << 10), 0)
        }
        Compression::Zstd => {
            let window = zstd_window(file)?;
            let log = u64::BITS - window.saturating_sub(1).leading_zeros();
            // Input, output and tables besides.
            let window = usize::try_from(window).unwrap_or(usize::MAX);
            let all = window.saturating_add(window.min(128 << 10) * 3 + (192 << 10));
            (all, log.clamp(WINDOW_LOG, WINDOW_LOG_MAX))
        }
    };
    Ok(Need { all, window_log })
}

/// The window of a file's first frame; 0 if it has none.
fn zstd_window(file: &dyn File) -> io::Result<u64> {
    let mut at = 0;
    loop {
        let mut head = [0; 14];
        let n = file.read_at(&mut head, at)?;
        let number = |from: usize| {
            u32::from_le_bytes([head[from], head[from + 1], head[from + 2], head[from + 3]])
        };
        match number(0) {
            // Frames that decoders skip.
            0x184D_2A50..=0x184D_2A5F if n >= 8 => at += 8 + u64::from(number(4)),
            0xFD2F_B528 if n > 5 => return Ok(window_of(&head[4..n])),
            _ => return Ok(0),
        }
    }
}

/// The window by a frame's header behind its magic number.
fn window_of(head: &[u8]) -> u64 {
    let descriptor = head[0];
    let (size_code, single) = (descriptor >> 6, descriptor & 0x20 != 0);
    if !single {
        let (exponent, mantissa) = (u32::from(head[1] >> 3), u64::from(head[1] & 7));
        let base = 1u64 << (10 + exponent);
        return base + base / 8 * mantissa;
    }
    // The content itself.
    let dictionary = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let (width, more) = [(1, 0), (2, 256), (4, 0), (8, 0)][usize::from(size_code)];
    let mut size = [0; 8];
    let field = head.get(1 + dictionary..).unwrap_or_default();
    let width = width.min(field.len());
    size[..width].copy_from_slice(&field[..width]);
    u64::from_le_bytes(size).saturating_add(more)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::path::Path;

    use braid_env::fs::{FileSystem, MemFs};

    use super::*;

    fn need(compression: Compression, content: &[u8]) -> Need {
        let fs = MemFs::new();
        let file = fs.create(Path::new("f")).unwrap();
        file.write_at(content, 0).unwrap();
        memory_of(compression, &*file).unwrap()
    }

    #[test]
    fn a_file_says_what_its_decoder_needs() {
        let content = vec![b'x'; 3 << 20];
        for (level, log, least) in [(1, 19, 512 << 10), (19, 23, 2 << 20)] {
            // Streams do not know their length: the window is the level's.
            let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), level).unwrap();
            encoder.write_all(&content).unwrap();
            let packed = encoder.finish().unwrap();
            let found = need(Compression::Zstd, &packed);
            assert!((least..10 << 20).contains(&found.all), "{level}: {found:?}");
            assert!(found.window_log >= log);
            // Behind a frame that is skipped.
            let skipped = [&0x184D_2A50u32.to_le_bytes()[..], &[3, 0, 0, 0], b"abc", &packed];
            assert_eq!(need(Compression::Zstd, &skipped.concat()), found);
        }
        let whole = zstd::bulk::compress(&content[..1000], 3).unwrap();
        assert!(need(Compression::Zstd, &whole).all < 512 << 10);
        let mut long = zstd::stream::write::Encoder::new(Vec::new(), 3).unwrap();
        long.window_log(27).unwrap();
        long.write_all(&content).unwrap();
        let found = need(Compression::Zstd, &long.finish().unwrap());
        assert!(found.all > 128 << 20 && found.window_log == 27, "{found:?}");
        for damaged in [&b""[..], b"x", &whole[..4], &whole[..5], &0x184D_2A51u32.to_le_bytes()] {
            need(Compression::Zstd, damaged);
        }
        assert!(need(Compression::Bzip2, b"BZh1").all * 3 < need(Compression::Bzip2, b"BZ").all);
        assert_eq!(need(Compression::None, b"").all, 0);
    }
}
