//! A file as a stream of bytes: decompressed, and counted as it lies on the disk.

use std::io::{self, BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use braid_env::fs::{File, FileSystem};
use braid_types::{SqlError, SqlResult, SqlState};

use crate::folder::SourceFile;
use crate::options::Compression;
use crate::reader::out_of_memory;
use crate::room::Room;
use crate::unpacking::memory_of;

/// Bytes asked of the disk at once, where there is memory enough.
pub(crate) const CHUNK: usize = 256 << 10;

/// The bytes of a file from a place on.
pub(crate) struct Input {
    stream: Box<dyn Read + Send>,
    read: Arc<AtomicU64>,
    /// What decompression takes.
    _room: Option<Room>,
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
    /// Opens a file, `from` bytes behind its beginning, decompressed; so many bytes are asked of
    /// the disk at once.
    pub(crate) fn open(
        fs: &dyn FileSystem,
        source: &SourceFile,
        (compression, chunk, mut room): (Compression, usize, Room),
        from: u64,
    ) -> SqlResult<Input> {
        let failed = |e: io::Error| failed(source, &e);
        let file = fs.open(&source.path).map_err(failed)?;
        let read = Arc::new(AtomicU64::new(0));
        let compression = compression.of(&source.path);
        let plain = matches!(compression, Compression::Auto | Compression::None);
        let at = if plain { from } else { 0 };
        let need = memory_of(compression, &*file).map_err(failed)?;
        room.resize(need.all).map_err(|e| out_of_memory(&e))?;
        let raw = BufReader::with_capacity(chunk, Raw { file, at, read: read.clone() });
        let stream: Box<dyn Read + Send> = match compression {
            Compression::Auto | Compression::None => Box::new(raw),
            Compression::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(raw)),
            Compression::Bzip2 => Box::new(bzip2::bufread::MultiBzDecoder::new(raw)),
            Compression::Zstd => {
                let mut decoder = zstd::stream::read::Decoder::with_buffer(raw).map_err(failed)?;
                decoder.window_log_max(need.window_log).map_err(failed)?;
                Box::new(decoder)
            }
        };
        let mut input = Input { stream, read, _room: Some(room) };
        if !plain {
            // Nothing else finds a place in compressed bytes.
            input.skip(from).map_err(failed)?;
        }
        Ok(input)
    }

    /// Reads over so many bytes.
    pub(crate) fn skip(&mut self, bytes: u64) -> io::Result<()> {
        io::copy(&mut (&mut self.stream).take(bytes), &mut io::sink()).map(|_| ())
    }

    /// Bytes that come from elsewhere, and how many of the file were read for them.
    pub(crate) fn of(stream: Box<dyn Read + Send>, read: Arc<AtomicU64>) -> Input {
        Input { stream, read, _room: None }
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
