//! A file as a stream of bytes: decompressed, and counted as it lies on the disk.

use std::io::{self, BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use braid_env::fs::{File, FileSystem};
use braid_types::{SqlError, SqlResult, SqlState};

use crate::folder::SourceFile;
use crate::options::Compression;

/// Bytes asked of the disk at once.
const CHUNK: usize = 256 << 10;

/// The bytes of a file from a place on.
pub(crate) struct Input {
    stream: Box<dyn Read + Send>,
    read: Arc<AtomicU64>,
}

/// A file that is read from the front.
struct Raw {
    file: Arc<dyn File>,
    at: u64,
    read: Arc<AtomicU64>,
}

impl Read for Raw {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.file.read_at(buffer, self.at)?;
        self.at += n as u64;
        self.read.store(self.at, Ordering::Relaxed);
        Ok(n)
    }
}

impl Input {
    /// Opens a file, `from` bytes behind its beginning, decompressed.
    pub(crate) fn open(
        fs: &dyn FileSystem,
        source: &SourceFile,
        compression: Compression,
        from: u64,
    ) -> SqlResult<Input> {
        let file = fs.open(&source.path).map_err(|e| failed(source, &e))?;
        let read = Arc::new(AtomicU64::new(0));
        let compression = compression.of(&source.path);
        let plain = matches!(compression, Compression::Auto | Compression::None);
        let at = if plain { from } else { 0 };
        let raw = BufReader::with_capacity(CHUNK, Raw { file, at, read: read.clone() });
        let stream: Box<dyn Read + Send> = match compression {
            Compression::Auto | Compression::None => Box::new(raw),
            Compression::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(raw)),
            Compression::Bzip2 => Box::new(bzip2::bufread::MultiBzDecoder::new(raw)),
            Compression::Zstd => {
                let decoder = zstd::stream::read::Decoder::with_buffer(raw);
                Box::new(decoder.map_err(|e| failed(source, &e))?)
            }
        };
        let mut input = Input { stream, read };
        if !plain {
            // Nothing else finds a place in compressed bytes.
            input.skip(from).map_err(|e| failed(source, &e))?;
        }
        Ok(input)
    }

    /// Reads over so many bytes.
    pub(crate) fn skip(&mut self, bytes: u64) -> io::Result<()> {
        io::copy(&mut (&mut self.stream).take(bytes), &mut io::sink()).map(|_| ())
    }

    /// Bytes that come from elsewhere, and how many of the file were read for them.
    pub(crate) fn of(stream: Box<dyn Read + Send>, read: Arc<AtomicU64>) -> Input {
        Input { stream, read }
    }

    /// Bytes read of the file so far.
    pub(crate) fn position(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.read(buffer)
    }
}

/// A file that cannot be read.
pub(crate) fn failed(source: &SourceFile, e: &io::Error) -> SqlError {
    let state = match e.kind() {
        io::ErrorKind::NotFound => SqlState("58P01"),
        io::ErrorKind::PermissionDenied => SqlState::INSUFFICIENT_PRIVILEGE,
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::UnexpectedEof => {
            SqlState::BAD_COPY_FILE_FORMAT
        }
        // What decompressors make of damaged input.
        io::ErrorKind::Other => SqlState::BAD_COPY_FILE_FORMAT,
        _ => SqlState::IO_ERROR,
    };
    SqlError::new(state, format!("could not read file \"{}\": {e}", source.name))
}
