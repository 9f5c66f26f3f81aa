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

/// The bytes of a file from its beginning.
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
    /// Opens a file.
    pub(crate) fn open(
        fs: &dyn FileSystem,
        source: &SourceFile,
        compression: Compression,
    ) -> SqlResult<Input> {
        let file = fs.open(&source.path).map_err(|e| failed(source, &e))?;
        let read = Arc::new(AtomicU64::new(0));
        let raw = BufReader::with_capacity(CHUNK, Raw { file, at: 0, read: read.clone() });
        let stream: Box<dyn Read + Send> = match compression.of(&source.path) {
            Compression::Auto | Compression::None => Box::new(raw),
            Compression::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(raw)),
            Compression::Bzip2 => Box::new(bzip2::bufread::MultiBzDecoder::new(raw)),
            Compression::Zstd => {
                let decoder = zstd::stream::read::Decoder::with_buffer(raw);
                Box::new(decoder.map_err(|e| failed(source, &e))?)
            }
        };
        Ok(Input { stream, read })
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
