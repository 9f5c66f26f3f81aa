//! Bytes on their way into a file, compressed or not.

use std::io::{self, Write};
use std::sync::Arc;

use braid_env::fs::File;

use crate::options::Compression;

/// Bytes that go to the disk at once.
const CHUNK: usize = 256 << 10;

/// A file that is written from the front.
pub(super) struct Front {
    file: Arc<dyn File>,
    buffer: Vec<u8>,
    /// Bytes on the disk.
    at: u64,
}

impl Front {
    fn write_out(&mut self) -> io::Result<()> {
        self.file.write_at(&self.buffer, self.at)?;
        self.at += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}

impl Write for Front {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(data);
        if self.buffer.len() >= CHUNK {
            self.write_out()?;
        }
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// See the [module documentation](self).
pub struct Packed(Kind);

enum Kind {
    Plain(Front),
    Gzip(flate2::write::GzEncoder<Front>),
    Bzip2(bzip2::write::BzEncoder<Front>),
    Zstd(zstd::stream::write::Encoder<'static, Front>),
}

impl Packed {
    /// An empty file.
    pub(super) fn new(file: Arc<dyn File>, compression: Compression) -> io::Result<Packed> {
        let front = Front { file, buffer: Vec::with_capacity(CHUNK), at: 0 };
        Ok(Packed(match compression {
            Compression::Auto | Compression::None => Kind::Plain(front),
            Compression::Gzip => {
                Kind::Gzip(flate2::write::GzEncoder::new(front, flate2::Compression::default()))
            }
            Compression::Bzip2 => {
                Kind::Bzip2(bzip2::write::BzEncoder::new(front, bzip2::Compression::default()))
            }
            // 0 is the library's default level.
            Compression::Zstd => Kind::Zstd(zstd::stream::write::Encoder::new(front, 0)?),
        }))
    }

    /// Writes what is left, and makes it durable; the length of the file.
    pub(super) fn finish(self) -> io::Result<u64> {
        let mut front = match self.0 {
            Kind::Plain(front) => front,
            Kind::Gzip(encoder) => encoder.finish()?,
            Kind::Bzip2(encoder) => encoder.finish()?,
            Kind::Zstd(encoder) => encoder.finish()?,
        };
        front.write_out()?;
        front.file.sync_data()?;
        Ok(front.at)
    }
}

impl Write for Packed {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Kind::Plain(to) => to.write(data),
            Kind::Gzip(to) => to.write(data),
            Kind::Bzip2(to) => to.write(data),
            Kind::Zstd(to) => to.write(data),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
