//! The frame format of LZ4, around blocks that a library decompresses.
//!
//! | bytes | meaning |
//! |---|---|
//! | u32 | `184D2204` |
//! | u8, u8 | flags; largest block |
//! | u64, u32 | length of the contents and number of a dictionary, if the flags say so |
//! | u8 | checksum of these |
//! | for each block: u32 | length, its highest bit set where it is not compressed; 0 at the end |
//! | .., u32 | its bytes; a checksum, if the flags say so |
//! | u32 | a checksum of the contents, if the flags say so |
//!
//! Blocks may refer to the 64 KiB in front of them. Checksums are not looked at: what is damaged
//! is seen by the data, which has its own end.

use std::io::{self, Read};

const MAGIC: u32 = 0x184D_2204;
/// Bytes that a block may refer to.
const WINDOW: usize = 64 << 10;

/// See the [module documentation](self).
pub(crate) struct Lz4Frames<R> {
    input: R,
    /// Decompressed: what was given, as far as blocks may refer to it, and what comes next.
    buffer: Vec<u8>,
    at: usize,
    frame: Option<Frame>,
}

#[derive(Clone, Copy)]
struct Frame {
    block_max: usize,
    block_checksums: bool,
    content_checksum: bool,
}

fn bad(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("LZ4: {reason}"))
}

impl<R: Read> Lz4Frames<R> {
    pub(crate) fn new(input: R) -> Lz4Frames<R> {
        Lz4Frames { input, buffer: Vec::new(), at: 0, frame: None }
    }

    fn take<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut out = [0; N];
        self.input.read_exact(&mut out)?;
        Ok(out)
    }

    /// Reads a frame's head; `None` at the end of the input.
    fn head(&mut self) -> io::Result<Option<Frame>> {
        let mut magic = [0; 4];
        let mut filled = 0;
        while filled < 4 {
            match self.input.read(&mut magic[filled..])? {
                0 if filled == 0 => return Ok(None),
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                n => filled += n,
            }
        }
        if u32::from_le_bytes(magic) != MAGIC {
            return Err(bad("no frame begins here"));
        }
        let [flags, sizes] = self.take()?;
        if flags >> 6 != 1 {
            return Err(bad("a version that is not known"));
        }
        if flags & 8 != 0 {
            self.take::<8>()?;
        }
        if flags & 1 != 0 {
            self.take::<4>()?;
        }
        self.take::<1>()?;
        let block_max = match sizes >> 4 & 7 {
            4 => 64 << 10,
            5 => 256 << 10,
            6 => 1 << 20,
            7 => 4 << 20,
            _ => return Err(bad("an impossible size of blocks")),
        };
        let (block_checksums, content_checksum) = (flags & 16 != 0, flags & 4 != 0);
        Ok(Some(Frame { block_max, block_checksums, content_checksum }))
    }

    /// Decompresses the next block; `false` at the end of the input.
    fn more(&mut self) -> io::Result<bool> {
        let frame = match self.frame {
            Some(frame) => frame,
            None => match self.head()? {
                Some(frame) => *self.frame.insert(frame),
                None => return Ok(false),
            },
        };
        let head = u32::from_le_bytes(self.take()?);
        let (plain, length) = (head >> 31 == 1, (head & 0x7fff_ffff) as usize);
        if length == 0 {
            if frame.content_checksum {
                self.take::<4>()?;
            }
            self.frame = None;
            (self.buffer, self.at) = (Vec::new(), 0);
            return Ok(true);
        }
        if length > frame.block_max {
            return Err(bad("a block is too long"));
        }
        let mut block = vec![0; length];
        self.input.read_exact(&mut block)?;
        if frame.block_checksums {
            self.take::<4>()?;
        }
        let old = self.buffer.len().saturating_sub(WINDOW);
        self.buffer.drain(..old);
        self.at = self.buffer.len();
        if plain {
            self.buffer.extend_from_slice(&block);
            return Ok(true);
        }
        let mut out = vec![0; frame.block_max];
        let n = lz4_flex::block::decompress_into_with_dict(&block, &mut out, &self.buffer)
            .map_err(|e| bad(&e.to_string()))?;
        self.buffer.extend_from_slice(&out[..n]);
        Ok(true)
    }
}

impl<R: Read> Read for Lz4Frames<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.at == self.buffer.len() {
            if !self.more()? {
                return Ok(0);
            }
        }
        let n = out.len().min(self.buffer.len() - self.at);
        out[..n].copy_from_slice(&self.buffer[self.at..self.at + n]);
        self.at += n;
        Ok(n)
    }
}
