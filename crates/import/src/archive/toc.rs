//! Head and table of contents of an archive.
//!
//! Numbers are a byte for the sign and `int_size` bytes, least significant first; texts are their
//! length, as such a number (negative: there is none), and their bytes.

use std::io::{self, Read};

/// What an archive begins with.
pub(crate) const MAGIC: &[u8] = b"PGDMP";
/// Versions of the format, as major and minor number.
type Version = (u8, u8);

/// The first one that names how data is compressed: PostgreSQL 16.
const NAMES_COMPRESSION: Version = (1, 15);
/// Entries have an access method: PostgreSQL 12.
const HAS_TABLE_ACCESS_METHOD: Version = (1, 14);
/// Entries have a kind of relation: PostgreSQL 17.
const HAS_RELATION_KIND: Version = (1, 16);
/// The oldest one that is read: PostgreSQL 9.0 and later write it.
const OLDEST: Version = (1, 12);
/// A text or a list longer than this is damage.
const LENGTH_MAX: i64 = 1 << 30;

/// How the files of an archive lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// All in one file.
    Custom,
    /// A file for each table's data, in a directory or a tar archive.
    Files,
}

/// How data is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Packing {
    Plain,
    Zlib,
    Lz4,
    Zstd,
}

/// Where the data of an entry lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DataPlace {
    None,
    /// At this byte of the file.
    At(u64),
    /// Somewhere behind the table of contents, under the entry's number.
    Somewhere,
    /// In the file of this name.
    File(String),
}

/// One entry.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) id: i64,
    pub(crate) tag: String,
    /// What it is, such as `TABLE` or `TABLE DATA`.
    pub(crate) kind: String,
    /// Statements that make it.
    pub(crate) definition: String,
    /// The COPY that takes the data.
    pub(crate) copy: String,
    pub(crate) schema: String,
    pub(crate) owner: String,
    pub(crate) data: DataPlace,
}

/// A table of contents.
#[derive(Debug)]
pub(crate) struct Toc {
    pub(crate) layout: Layout,
    pub(crate) packing: Packing,
    pub(crate) entries: Vec<Entry>,
    int_size: u8,
    /// Bytes of the file in front of what comes behind.
    pub(crate) length: u64,
}

/// Reads numbers and texts.
pub(crate) struct Numbers<R> {
    input: R,
    int_size: u8,
    /// Bytes taken.
    pub(crate) taken: u64,
}

fn bad(reason: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason.into())
}

impl<R: Read> Numbers<R> {
    pub(crate) fn new(input: R, int_size: u8) -> Numbers<R> {
        Numbers { input, int_size, taken: 0 }
    }

    pub(crate) fn bytes(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        self.input.read_exact(buffer)?;
        self.taken += buffer.len() as u64;
        Ok(())
    }

    pub(crate) fn byte(&mut self) -> io::Result<u8> {
        let mut byte = [0];
        self.bytes(&mut byte)?;
        Ok(byte[0])
    }

    fn unsigned(&mut self, size: u8) -> io::Result<u64> {
        let mut value = 0u64;
        for n in 0..u32::from(size) {
            let byte = u64::from(self.byte()?);
            if n >= 8 && byte != 0 {
                return Err(bad("a number is too large"));
            }
            value |= byte.checked_shl(8 * n).unwrap_or(0);
        }
        Ok(value)
    }

    pub(crate) fn int(&mut self) -> io::Result<i64> {
        let negative = self.byte()? != 0;
        let value = i64::try_from(self.unsigned(self.int_size)?).map_err(|_| bad("a number"))?;
        Ok(if negative { -value } else { value })
    }

    fn text(&mut self) -> io::Result<Option<String>> {
        let length = self.int()?;
        if length < 0 {
            return Ok(None);
        }
        if length > LENGTH_MAX {
            return Err(bad("a text is too long"));
        }
        // Not all at once: the length may be damage.
        let mut out = Vec::new();
        let taken = (&mut self.input).take(length as u64).read_to_end(&mut out)?;
        self.taken += taken as u64;
        if taken as i64 != length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        String::from_utf8(out).map(Some).map_err(|_| bad("a text is not UTF-8"))
    }
}

impl Toc {
    /// Reads the beginning of a file.
    pub(crate) fn read(input: impl Read) -> io::Result<Toc> {
        let mut from = Numbers::new(input, 4);
        Toc::read_from(&mut from).map_err(|e| {
            let place = format!("{e}, near byte {} of the table of contents", from.taken);
            io::Error::new(e.kind(), place)
        })
    }

    fn read_from(from: &mut Numbers<impl Read>) -> io::Result<Toc> {
        let mut magic = [0; MAGIC.len()];
        from.bytes(&mut magic)?;
        if magic != MAGIC {
            return Err(bad("it is no archive of pg_dump"));
        }
        let version = (from.byte()?, from.byte()?);
        let _revision = from.byte()?;
        let (major, minor) = version;
        if version < OLDEST || version > HAS_RELATION_KIND {
            return Err(bad(format!("version {major}.{minor} of the archive format is not known")));
        }
        from.int_size = from.byte()?;
        let offset_size = from.byte()?;
        if !(1..=16).contains(&from.int_size) || !(1..=16).contains(&offset_size) {
            return Err(bad("its numbers have an impossible size"));
        }
        let layout = match from.byte()? {
            1 => Layout::Custom,
            3 | 5 => Layout::Files,
            other => return Err(bad(format!("archives of format {other} are not known"))),
        };
        let packing = packing(from, version)?;
        // When it was made: seconds to years, and summer time.
        for _ in 0..7 {
            from.int()?;
        }
        let _database = from.text()?;
        let _versions = (from.text()?, from.text()?);
        let count = from.int()?;
        let mut entries = Vec::new();
        for _ in 0..count.max(0) {
            entries.push(entry(from, version, layout, offset_size)?);
        }
        let (int_size, length) = (from.int_size, from.taken);
        Ok(Toc { layout, packing, entries, int_size, length })
    }

    /// Reads numbers of this archive.
    pub(crate) fn numbers<R: Read>(&self, input: R) -> Numbers<R> {
        Numbers::new(input, self.int_size)
    }
}

fn packing(from: &mut Numbers<impl Read>, version: Version) -> io::Result<Packing> {
    if version < NAMES_COMPRESSION {
        // A level, 0 for none.
        return Ok(if from.int()? == 0 { Packing::Plain } else { Packing::Zlib });
    }
    Ok(match from.byte()? {
        0 => Packing::Plain,
        1 => Packing::Zlib,
        2 => Packing::Lz4,
        3 => Packing::Zstd,
        other => return Err(bad(format!("compression {other} is not known"))),
    })
}

fn entry(
    from: &mut Numbers<impl Read>,
    version: Version,
    layout: Layout,
    offset_size: u8,
) -> io::Result<Entry> {
    let id = from.int()?;
    let has_data = from.int()? != 0;
    let _catalog = (from.text()?, from.text()?);
    let tag = from.text()?.unwrap_or_default();
    let kind = from.text()?.unwrap_or_default();
    let _section = from.int()?;
    let definition = from.text()?.unwrap_or_default();
    let _drop = from.text()?;
    let copy = from.text()?.unwrap_or_default();
    let schema = from.text()?.unwrap_or_default();
    let _tablespace = from.text()?;
    if version >= HAS_TABLE_ACCESS_METHOD {
        from.text()?;
    }
    if version >= HAS_RELATION_KIND {
        from.int()?;
    }
    let owner = from.text()?.unwrap_or_default();
    let _with_oids = from.text()?;
    // What it depends on, up to a text that is none.
    while from.text()?.is_some() {}
    let data = match layout {
        Layout::Files => match from.text()?.filter(|name| !name.is_empty()) {
            Some(name) if has_data => DataPlace::File(name),
            _ => DataPlace::None,
        },
        Layout::Custom => {
            let state = from.byte()?;
            let at = from.unsigned(offset_size)?;
            match state {
                2 => DataPlace::At(at),
                1 if has_data => DataPlace::Somewhere,
                1 | 3 => DataPlace::None,
                _ => return Err(bad("an entry's place is damaged")),
            }
        }
    };
    Ok(Entry { id, tag, kind, definition, copy, schema, owner, data })
}
