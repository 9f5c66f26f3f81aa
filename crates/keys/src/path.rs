//! Paths: which table or index a key belongs to, and the spans of rows and families.
//!
//! ```text
//!        row            row FE ................. row FF
//!         |<- the row ->|<- everything inside it ->|
//!         |<------------- the family ------------->|
//! ```
//!
//! All spans are `[start, end)`.

use braid_types::{Datum, SqlError, SqlResult, SqlState};

use crate::column::{Direction, encode_column, skip_column};

/// First byte of rows and index entries.
pub const DATA_PREFIX: u8 = 0x02;
/// Separates an ancestor's row key from what is interleaved in it.
pub const CHILD_MARKER: u8 = 0xFE;
/// No key continues with this byte or a greater one.
pub const END_MARKER: u8 = 0xFF;
/// Longest key, in bytes.
pub const MAX_KEY_BYTES: usize = 64 << 10;

/// Appends an id or generation: one byte below 0xC0, else a length byte and big-endian bytes.
/// Order-preserving.
pub(crate) fn push_number(out: &mut Vec<u8>, v: u64) {
    if v < 0xC0 {
        out.push(v as u8);
    } else {
        let skip = (v.leading_zeros() / 8) as usize;
        out.push(0xC0 + (8 - skip) as u8);
        out.extend_from_slice(&v.to_be_bytes()[skip..]);
    }
}

/// Reads a number of [`push_number`]; returns it and its length.
pub fn read_number(bytes: &[u8]) -> Option<(u64, usize)> {
    match *bytes.first()? {
        b @ 0..=0xBF => Some((u64::from(b), 1)),
        b @ 0xC1..=0xC8 => {
            let n = usize::from(b - 0xC0);
            let mut buf = [0; 8];
            buf[8 - n..].copy_from_slice(bytes.get(1..=n)?);
            Some((u64::from_be_bytes(buf), n + 1))
        }
        _ => None,
    }
}

/// Builds one key from the root downwards.
///
/// ```
/// use braid_keys::{Direction, KeyBuilder, pretty};
/// use braid_types::Datum;
/// let mut k = KeyBuilder::root(100, 1);
/// k.column(&Datum::Int4(7), Direction::ASC)?;
/// k.child(101, 1);
/// k.column(&Datum::Int4(3), Direction::ASC)?;
/// assert_eq!(pretty::key(&k.finish()?), "/Table/100:1/7/#/101:1/3");
/// # Ok::<(), braid_types::SqlError>(())
/// ```
#[derive(Clone, Debug)]
pub struct KeyBuilder {
    bytes: Vec<u8>,
}

impl KeyBuilder {
    /// Starts at a root table or a global index.
    pub fn root(id: u32, generation: u32) -> KeyBuilder {
        KeyBuilder::root_in(Vec::with_capacity(32), id, generation)
    }

    /// As [`KeyBuilder::root`], in the memory of a key that nobody needs any more.
    pub fn root_in(mut bytes: Vec<u8>, id: u32, generation: u32) -> KeyBuilder {
        bytes.clear();
        bytes.push(DATA_PREFIX);
        push_number(&mut bytes, u64::from(id));
        push_number(&mut bytes, u64::from(generation));
        KeyBuilder { bytes }
    }

    /// Continues an existing key.
    pub fn from_key(key: &[u8]) -> KeyBuilder {
        KeyBuilder { bytes: key.to_vec() }
    }

    /// Steps into a child table or interleaved index of the row built so far.
    pub fn child(&mut self, id: u32, generation: u32) {
        self.bytes.push(CHILD_MARKER);
        push_number(&mut self.bytes, u64::from(id));
        push_number(&mut self.bytes, u64::from(generation));
    }

    /// Appends a key column.
    ///
    /// # Errors
    /// 0A000 for a value that cannot be a key column.
    pub fn column(&mut self, value: &Datum, dir: Direction) -> SqlResult<()> {
        encode_column(&mut self.bytes, value, dir)
    }

    /// What was built so far, as a prefix.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The key.
    ///
    /// # Errors
    /// 54000 if it is longer than [`MAX_KEY_BYTES`].
    pub fn finish(self) -> SqlResult<Vec<u8>> {
        if self.bytes.len() > MAX_KEY_BYTES {
            return Err(SqlError::new(
                SqlState::PROGRAM_LIMIT_EXCEEDED,
                format!(
                    "key of {} bytes exceeds the maximum of {MAX_KEY_BYTES} bytes",
                    self.bytes.len()
                ),
            )
            .with_hint("Values indexed or used as a key together may have 64 KiB."));
        }
        Ok(self.bytes)
    }
}

/// End of the span of one row without what is interleaved in it: `row FE`.
pub fn row_end(row: &[u8]) -> Vec<u8> {
    [row, &[CHILD_MARKER]].concat()
}

/// End of the span of everything that starts with this prefix (a row, a partial key, a table):
/// `prefix FF`.
pub fn family_end(prefix: &[u8]) -> Vec<u8> {
    [prefix, &[END_MARKER]].concat()
}

/// Span of a root table or global index up to and including a generation, for removal. What comes
/// after it may be in use already, by the very transaction that removes this.
pub fn generations_upto(id: u32, generation: u32) -> (Vec<u8>, Vec<u8>) {
    let mut start = vec![DATA_PREFIX];
    push_number(&mut start, u64::from(id));
    let mut end = start.clone();
    push_number(&mut end, u64::from(generation) + 1);
    (start, end)
}

/// Span of one generation of a root table or global index.
pub fn generation(id: u32, generation: u32) -> (Vec<u8>, Vec<u8>) {
    let start = KeyBuilder::root(id, generation).bytes;
    let end = family_end(&start);
    (start, end)
}

/// One path element of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element {
    /// Table or index id.
    pub id: u32,
    /// Its generation.
    pub generation: u32,
    /// Offset of the element's first column.
    pub columns: usize,
    /// Offset after the element's last column.
    pub end: usize,
}

/// The path elements of a data key, root first.
///
/// # Errors
/// XX001 if the bytes are not a data key.
pub fn elements(key: &[u8]) -> SqlResult<Vec<Element>> {
    let mut out = Vec::with_capacity(4);
    let mut at = 1;
    let damaged = || SqlError::new(SqlState::DATA_CORRUPTED, "malformed key path");
    if key.first() != Some(&DATA_PREFIX) {
        return Err(damaged());
    }
    loop {
        let (id, n) = read_number(&key[at..]).ok_or_else(damaged)?;
        at += n;
        let (generation, n) = read_number(&key[at..]).ok_or_else(damaged)?;
        at += n;
        let columns = at;
        while at < key.len() && key[at] != CHILD_MARKER {
            at += skip_column(&key[at..])?;
        }
        out.push(Element {
            id: u32::try_from(id).map_err(|_| damaged())?,
            generation: u32::try_from(generation).map_err(|_| damaged())?,
            columns,
            end: at,
        });
        if at >= key.len() {
            return Ok(out);
        }
        at += 1;
    }
}

/// Lengths of the beginnings of a data key that are rows, the outermost first: where a key space
/// may be cut so that families stay whole as long as possible. None for other keys.
///
/// ```
/// use braid_keys::{Direction, KeyBuilder, row_lengths};
/// use braid_types::Datum;
/// let mut k = KeyBuilder::root(100, 1);
/// k.column(&Datum::Int4(7), Direction::ASC)?;
/// let outer = k.as_bytes().len();
/// k.child(101, 1);
/// k.column(&Datum::Int4(3), Direction::ASC)?;
/// let key = k.finish()?;
/// assert_eq!(row_lengths(&key), [outer, key.len()]);
/// assert!(row_lengths(b"\x01system").is_empty());
/// # Ok::<(), braid_types::SqlError>(())
/// ```
pub fn row_lengths(key: &[u8]) -> Vec<usize> {
    elements(key).map_or_else(|_| Vec::new(), |path| path.iter().map(|row| row.end).collect())
}

/// Generations from here on have a class of their own; smaller ones have that of their table or
/// index.
pub const OWN_CLASS: u32 = 1 << 30;

/// Class of the rows of a generation of a table, or the entries of an index, 1 to 31. After a
/// TRUNCATE scans do not meet the old rows, though they lie among those of the parent.
pub fn class_of(id: u32, generation: u32) -> u8 {
    let number = if generation < OWN_CLASS { id } else { generation };
    (number % 31 + 1) as u8
}

/// The engine's row class of a key: that of its last path element; 0 for system records and for
/// bytes that are no key. Scans of one table skip blocks without its class.
pub fn row_class(key: &[u8]) -> u8 {
    if key.first() != Some(&DATA_PREFIX) {
        return 0;
    }
    let mut at = 1;
    loop {
        let Some((id, n)) = read_number(key.get(at..).unwrap_or(&[])) else {
            return 0;
        };
        at += n;
        let Some((generation, n)) = read_number(key.get(at..).unwrap_or(&[])) else {
            return 0;
        };
        at += n;
        while at < key.len() && key[at] != CHILD_MARKER {
            match skip_column(&key[at..]) {
                Ok(n) => at += n,
                Err(_) => return 0,
            }
        }
        if at >= key.len() {
            let both = u32::try_from(id).ok().zip(u32::try_from(generation).ok());
            return both.map_or(0, |(id, generation)| class_of(id, generation));
        }
        at += 1;
    }
}
