//! Where the data of an archive lies: as a stream of its bytes, decompressed.

use std::collections::BTreeMap;
use std::io::{self, BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use braid_env::fs::{File, FileSystem};

use super::lz4::Lz4Frames;
use super::toc::{DataPlace, Entry, Layout, Numbers, Packing, Toc};
use crate::folder::{Folder, SourceFile};

/// Bytes asked of the disk at once.
const CHUNK: usize = 256 << 10;
/// Length of a tar archive's blocks.
const TAR_BLOCK: u64 = 512;
/// A block of rows, and one of large objects.
const BLOCK_DATA: u8 = 1;
const BLOCK_BLOBS: u8 = 3;

/// A part of a file.
pub(crate) struct Piece {
    file: Arc<dyn File>,
    at: u64,
    end: u64,
    /// The furthest place that was read, all files one behind the other; this one begins behind so
    /// many bytes.
    read: Arc<AtomicU64>,
    before: u64,
}

impl Read for Piece {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let wanted = buffer.len().min(left);
        let n = self.file.read_at(&mut buffer[..wanted], self.at)?;
        self.at += n as u64;
        self.read.fetch_max(self.before + self.at, Ordering::Relaxed);
        Ok(n)
    }
}

/// How the files of an archive are found.
enum Files {
    /// All in one.
    One,
    /// In a folder, by the names that entries give them; its own name below that for imports.
    Folder(BTreeMap<String, FolderFile>, String),
    /// In a tar archive: where they lie and end.
    Tar(BTreeMap<String, (u64, u64)>),
}

/// A file of data in a folder.
struct FolderFile {
    source: SourceFile,
    packing: Packing,
    /// Bytes of the files in front of it.
    before: u64,
}

/// An archive whose table of contents was read.
pub(crate) struct Archive {
    fs: Arc<dyn FileSystem>,
    file: Arc<dyn File>,
    len: u64,
    files: Files,
    pub(crate) toc: Toc,
    /// Blocks of data whose places the table of contents does not tell, by entry.
    found: BTreeMap<i64, u64>,
    pub(crate) read: Arc<AtomicU64>,
}

impl Archive {
    /// Opens the archive that a file is, or begins; `None` if it is none. `name` is that of the
    /// file below the folder.
    pub(crate) fn open(
        fs: &Arc<dyn FileSystem>,
        folder: &Folder,
        (name, file): (&str, Arc<dyn File>),
    ) -> io::Result<Option<Archive>> {
        let len = file.len()?;
        let mut head = [0; TAR_BLOCK as usize];
        let n = file.read_at(&mut head, 0)?;
        let read = Arc::new(AtomicU64::new(0));
        let piece = |at, end| {
            let (file, read, before) = (file.clone(), read.clone(), 0);
            BufReader::new(Piece { file, at, end, read, before })
        };
        let (toc, files) = if head[..n].starts_with(super::toc::MAGIC) {
            let toc = Toc::read(piece(0, len))?;
            let files = match toc.layout {
                Layout::Custom => Files::One,
                Layout::Files => {
                    let parent = name.rsplit_once('/').map_or("", |(parent, _)| parent);
                    Files::Folder(folder_files(&toc, folder, parent, len), parent.into())
                }
            };
            (toc, files)
        } else if head[..n].starts_with(b"toc.dat\0") && n > 262 && &head[257..262] == b"ustar" {
            let members = members(&*file, len)?;
            let (at, end) = members.get("toc.dat").copied().unwrap_or_default();
            (Toc::read(piece(at, end))?, Files::Tar(members))
        } else {
            return Ok(None);
        };
        let (fs, found) = (fs.clone(), BTreeMap::new());
        let mut archive = Archive { fs, file, len, files, toc, found, read };
        if archive.toc.entries.iter().any(|e| e.data == DataPlace::Somewhere) {
            archive.find_blocks()?;
        }
        Ok(Some(archive))
    }

    fn piece(&self, at: u64, end: u64) -> Piece {
        let (file, read) = (self.file.clone(), self.read.clone());
        Piece { file, at, end, read, before: 0 }
    }

    /// Files besides the one that was opened.
    pub(crate) fn others(&self) -> Vec<SourceFile> {
        match &self.files {
            Files::Folder(files, _) => files.values().map(|file| file.source.clone()).collect(),
            Files::One | Files::Tar(_) => Vec::new(),
        }
    }

    /// Looks where the blocks begin: an archive that was written into a pipe does not tell.
    fn find_blocks(&mut self) -> io::Result<()> {
        let mut at = self.toc.length;
        while at < self.len {
            let (id, end) = self.block(at).map_err(near(at))?;
            self.found.insert(id, at);
            at = end;
        }
        Ok(())
    }

    /// The number of the block that begins somewhere, and where it ends.
    fn block(&self, mut at: u64) -> io::Result<(i64, u64)> {
        let piece = BufReader::with_capacity(64, self.piece(at, self.len));
        let mut numbers = self.toc.numbers(piece);
        let (kind, id) = (numbers.byte()?, numbers.int()?);
        at += numbers.taken;
        match kind {
            BLOCK_DATA => Ok((id, self.behind_chunks(at)?)),
            BLOCK_BLOBS => loop {
                // Each with its number, up to one that is 0.
                let piece = BufReader::with_capacity(64, self.piece(at, self.len));
                let mut numbers = self.toc.numbers(piece);
                let object = numbers.int()?;
                at += numbers.taken;
                if object == 0 {
                    return Ok((id, at));
                }
                at = self.behind_chunks(at)?;
            },
            _ => Err(damaged("a block of an unknown kind", at)),
        }
    }

    /// Where the chunks end that begin somewhere.
    fn behind_chunks(&self, mut at: u64) -> io::Result<u64> {
        loop {
            let piece = BufReader::with_capacity(64, self.piece(at, self.len));
            let mut numbers = self.toc.numbers(piece);
            let length = numbers.int()?;
            at += numbers.taken;
            match u64::try_from(length) {
                Ok(0) => return Ok(at),
                Ok(length) if length <= self.len - at => at += length,
                _ => return Err(damaged("a chunk is longer than the file", at)),
            }
        }
    }

    /// The data of an entry; `None` if it has none.
    pub(crate) fn data(&self, entry: &Entry) -> io::Result<Option<Box<dyn Read + Send>>> {
        let at = match &entry.data {
            DataPlace::None => return Ok(None),
            DataPlace::File(name) => return self.file_data(name).map(Some),
            DataPlace::At(at) => *at,
            DataPlace::Somewhere => match self.found.get(&entry.id) {
                Some(at) => *at,
                None => return Err(damaged("the data of an entry is not there", self.len)),
            },
        };
        let input = BufReader::with_capacity(CHUNK, self.piece(at, self.len));
        let mut numbers = self.toc.numbers(input);
        let kind = numbers.byte().map_err(near(at))?;
        if numbers.int().map_err(near(at))? != entry.id || kind != BLOCK_DATA {
            return Err(damaged("the data of another entry", at));
        }
        let chunks = BufReader::new(Chunks { numbers, begun: at, left: 0, ended: false });
        Ok(Some(unpack(self.toc.packing, chunks, false)?))
    }

    fn file_data(&self, name: &str) -> io::Result<Box<dyn Read + Send>> {
        if !is_good(name) {
            return Err(damaged("an impossible name of a file", 0));
        }
        match &self.files {
            Files::One => Err(damaged("a file of data in a custom archive", 0)),
            Files::Tar(members) => {
                let place = members.get(name).copied();
                let (at, end) = place.ok_or_else(|| damaged("a missing file of data", self.len))?;
                let piece = BufReader::with_capacity(CHUNK, self.piece(at, end));
                Ok(Box::new(piece))
            }
            Files::Folder(files, parent) => {
                let Some(FolderFile { source, packing, before }) = files.get(name) else {
                    let below = if parent.is_empty() { "" } else { "/" };
                    let what = format!("the archive's file \"{parent}{below}{name}\" is not there");
                    return Err(io::Error::new(io::ErrorKind::NotFound, what));
                };
                let (file, read) = (self.fs.open(&source.path)?, self.read.clone());
                let piece = Piece { file, at: 0, end: source.size, read, before: *before };
                unpack(*packing, BufReader::with_capacity(CHUNK, piece), true)
            }
        }
    }
}

/// Whether a file of data may have this name.
fn is_good(name: &str) -> bool {
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    name.chars().all(good) && !name.starts_with('.')
}

/// The files of data beside a table of contents of so many bytes, as far as they are there.
fn folder_files(
    toc: &Toc,
    folder: &Folder,
    parent: &str,
    length: u64,
) -> BTreeMap<String, FolderFile> {
    let below = if parent.is_empty() { "" } else { "/" };
    let (mut out, mut before) = (BTreeMap::new(), length);
    for entry in &toc.entries {
        let DataPlace::File(name) = &entry.data else { continue };
        let found = SUFFIXES.iter().filter(|_| is_good(name)).find_map(|(suffix, packing)| {
            let files = folder.files(&format!("{parent}{below}{name}{suffix}"));
            Some((files.ok()?.pop()?, *packing))
        });
        if let Some((source, packing)) = found {
            let size = source.size;
            out.insert(name.clone(), FolderFile { source, packing, before });
            before += size;
        }
    }
    out
}

/// How files of a directory are compressed, by what their names end with.
const SUFFIXES: &[(&str, Packing)] = &[
    ("", Packing::Plain),
    (".gz", Packing::Zlib),
    (".lz4", Packing::Lz4),
    (".zst", Packing::Zstd),
];

fn unpack(
    packing: Packing,
    input: impl io::BufRead + Send + 'static,
    is_file: bool,
) -> io::Result<Box<dyn Read + Send>> {
    Ok(match packing {
        Packing::Plain => Box::new(input),
        Packing::Zlib if is_file => Box::new(flate2::bufread::MultiGzDecoder::new(input)),
        Packing::Zlib => Box::new(flate2::bufread::ZlibDecoder::new(input)),
        Packing::Lz4 => Box::new(Lz4Frames::new(input)),
        Packing::Zstd => Box::new(zstd::stream::read::Decoder::with_buffer(input)?),
    })
}

fn damaged(reason: &str, at: u64) -> io::Error {
    near(at)(io::Error::new(io::ErrorKind::InvalidData, reason))
}

/// Adds a place to an error that has none.
fn near(at: u64) -> impl Fn(io::Error) -> io::Error {
    move |e| match e.to_string() {
        reason if reason.contains(" near byte ") => e,
        reason => io::Error::new(e.kind(), format!("{reason}, near byte {at}")),
    }
}

/// The chunks of a block as one stream: each with its length, up to one of 0.
struct Chunks<R> {
    numbers: Numbers<R>,
    /// Bytes of the file in front of the block.
    begun: u64,
    left: usize,
    ended: bool,
}

impl<R: Read> Read for Chunks<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.left == 0 {
            if self.ended {
                return Ok(0);
            }
            let at = self.begun + self.numbers.taken;
            let length = self.numbers.int().map_err(near(at))?;
            self.left = usize::try_from(length).map_err(|_| damaged("a chunk's length", at))?;
            self.ended = self.left == 0;
        }
        let n = buffer.len().min(self.left);
        let at = self.begun + self.numbers.taken;
        self.numbers.bytes(&mut buffer[..n]).map_err(near(at))?;
        self.left -= n;
        Ok(n)
    }
}

/// Where the files of a tar archive lie and end.
fn members(file: &dyn File, len: u64) -> io::Result<BTreeMap<String, (u64, u64)>> {
    let mut out = BTreeMap::new();
    let mut at = 0;
    while at + TAR_BLOCK <= len {
        let mut head = [0; TAR_BLOCK as usize];
        file.read_exact_at(&mut head, at)?;
        if head.iter().all(|b| *b == 0) {
            break;
        }
        let field = |from: usize, length: usize| {
            let bytes = &head[from..from + length];
            let end = bytes.iter().position(|b| *b == 0).unwrap_or(length);
            String::from_utf8_lossy(&bytes[..end]).trim().to_string()
        };
        // Very long files have their length in base 256.
        let size = match head[124] & 0x80 {
            0 => u64::from_str_radix(&field(124, 12), 8).ok(),
            _ => head[128..136].try_into().ok().map(u64::from_be_bytes),
        };
        let begin = at + TAR_BLOCK;
        let end = size.and_then(|size| begin.checked_add(size)).filter(|end| *end <= len);
        let end = end.ok_or_else(|| damaged("a file of the tar archive is cut off", at))?;
        out.insert(field(0, 100), (begin, end));
        at = end.next_multiple_of(TAR_BLOCK);
    }
    Ok(out)
}
