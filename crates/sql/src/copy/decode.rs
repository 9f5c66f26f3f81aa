//! COPY data to raw rows: text, CSV and binary, fed in pieces that end anywhere.
//!
//! ```text
//!   feed("1\tAda\n2\tGr")  ─► row(line 1: "1", "Ada")
//!   feed("ace\n\\.\n")     ─► row(line 2: "2", "Grace"), then the end marker: the rest is ignored
//! ```
//!
//! What CSV is, is that of IMPORT ([`CsvSyntax`]).
//!
//! A raw field is NULL or bytes: UTF-8 text for the text formats, the value's binary form for the
//! binary one. Errors are 22P04 (or 22021 for bytes that are not UTF-8) and name the line.

use braid_import::{CsvField, CsvSyntax};
use braid_types::encodings::{Decoding, Encoding};
use braid_types::{SqlError, SqlResult, SqlState};

use super::raw_rows::{RawRow, RawRows};
use braid_parser::{CopyFormat, CopyOptions};

/// Splits a stream of bytes into rows.
pub(crate) struct Decoder {
    format: CopyFormat,
    /// Of the text format, the delimiter counts.
    syntax: CsvSyntax,
    null: Vec<u8>,
    /// By column, if it is asked for: quotes do not keep it from being NULL.
    force_null: Vec<bool>,
    /// By column, if it is asked for: nothing is NULL.
    force_not_null: Vec<bool>,
    skip_header: bool,
    /// Names that the header must hold.
    header_names: Option<Vec<String>>,
    columns: usize,
    /// Of text that is not in UTF-8.
    decoding: Option<Decoding>,
    /// Input that does not make a whole row yet.
    rest: Vec<u8>,
    /// Where the search for the end of the first row in `rest` goes on.
    scanned: usize,
    in_quotes: bool,
    line: u64,
    begun: bool,
    ended: bool,
}

/// Longest row, in bytes: a missing closing quote must not eat the memory.
const ROW_BYTES_MAX: usize = 256 << 20;
const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0";

fn bad(message: impl Into<String>, line: u64) -> SqlError {
    SqlError::new(SqlState::BAD_COPY_FILE_FORMAT, message).with_detail(format!("line {line}"))
}

/// A one-byte option; PostgreSQL has the same restriction.
pub(super) fn one_byte(name: &str, value: Option<char>, default: u8) -> SqlResult<u8> {
    match value {
        None => Ok(default),
        Some(c) if c.is_ascii() && c != '\n' && c != '\r' => Ok(c as u8),
        Some(_) => Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            format!("COPY {name} must be a single one-byte character"),
        )),
    }
}

/// What stands for NULL if the statement does not say.
pub(super) fn default_null(format: CopyFormat) -> &'static str {
    if format == CopyFormat::Csv { "" } else { "\\N" }
}

impl Decoder {
    /// A decoder for rows of `columns` fields.
    ///
    /// # Errors
    /// 0A000 or 42601 for options that make no sense.
    pub(crate) fn new(options: &CopyOptions, columns: usize) -> SqlResult<Decoder> {
        let csv = options.format == CopyFormat::Csv;
        let delimiter = one_byte("delimiter", options.delimiter, if csv { b',' } else { b'\t' })?;
        let quote = one_byte("quote", options.quote, b'"')?;
        if csv && delimiter == quote {
            return Err(SqlError::syntax("COPY delimiter and quote must be different"));
        }
        let null = options.null.as_deref().unwrap_or(default_null(options.format));
        Ok(Decoder {
            format: options.format,
            syntax: CsvSyntax {
                delimiter,
                quote,
                escape: one_byte("escape", options.escape, quote)?,
                strict_quotes: false,
            },
            null: null.as_bytes().to_vec(),
            force_null: Vec::new(),
            force_not_null: Vec::new(),
            skip_header: options.header,
            header_names: None,
            columns,
            decoding: None,
            rest: Vec::new(),
            scanned: 0,
            in_quotes: false,
            line: 1,
            begun: false,
            ended: false,
        })
    }

    /// What is asked for columns of these names.
    ///
    /// # Errors
    /// 42P10 for a column that is not one of these.
    pub(crate) fn force(mut self, options: &CopyOptions, names: &[&str]) -> SqlResult<Decoder> {
        let flags = |asked: &Option<Vec<String>>, option: &str| {
            let Some(asked) = asked else { return Ok(Vec::new()) };
            if let Some(other) = asked.iter().find(|name| !names.contains(&name.as_str())) {
                let message = format!("{option} column \"{other}\" not referenced by COPY");
                return Err(SqlError::new(SqlState::INVALID_COLUMN_REFERENCE, message));
            }
            let is_asked = |n: &&str| asked.is_empty() || asked.iter().any(|name| name == n);
            Ok(names.iter().map(is_asked).collect())
        };
        self.force_null = flags(&options.force_null, "FORCE_NULL")?;
        self.force_not_null = flags(&options.force_not_null, "FORCE_NOT_NULL")?;
        Ok(self)
    }

    /// The header must hold these names, in this order (HEADER MATCH).
    pub(crate) fn match_header(mut self, names: Vec<String>) -> Decoder {
        self.header_names = Some(names);
        self
    }

    fn check_header(&self, header: RawRow<'_>, line: u64) -> SqlResult<()> {
        let Some(names) = &self.header_names else { return Ok(()) };
        for (at, (field, name)) in header.fields().zip(names).enumerate() {
            let got = match field {
                Some(bytes) if *bytes == *name.as_bytes() => continue,
                Some(bytes) => format!("got \"{}\"", String::from_utf8_lossy(bytes)),
                None => "got null value".to_string(),
            };
            return Err(bad(
                format!(
                    "column name mismatch in header line field {}: {got}, expected \"{name}\"",
                    at + 1
                ),
                line,
            ));
        }
        Ok(())
    }

    /// The text that comes is in this encoding.
    pub(crate) fn in_encoding(mut self, encoding: Option<Encoding>) -> Decoder {
        self.decoding = match self.format {
            CopyFormat::Binary => None,
            _ => encoding.map(Decoding::new),
        };
        self
    }

    /// Takes a piece of input, appends the rows that it completes.
    pub(crate) fn feed(&mut self, data: &[u8], rows: &mut RawRows) -> SqlResult<()> {
        let Some(mut decoding) = self.decoding.take() else { return self.feed_utf8(data, rows) };
        let mut text = String::new();
        let decoded = decoding.feed(data, &mut text);
        self.decoding = Some(decoding);
        // What is wrong with the rows before is told first.
        self.feed_utf8(text.as_bytes(), rows)?;
        decoded.map_err(|e| e.with_detail(format!("line {}", self.line)))
    }

    fn feed_utf8(&mut self, data: &[u8], rows: &mut RawRows) -> SqlResult<()> {
        if self.ended {
            return Ok(());
        }
        self.rest.extend_from_slice(data);
        let mut start = 0;
        let done = loop {
            let taken = match self.format {
                CopyFormat::Binary => self.binary_row(start, rows),
                _ => self.text_row(start, false, rows),
            };
            match taken {
                Ok(0) => break Ok(()),
                Ok(n) => start += n,
                Err(e) => break Err(e),
            }
        };
        self.rest.drain(..start.min(self.rest.len()));
        if done.is_ok() && self.rest.len() > ROW_BYTES_MAX {
            return Err(bad("row is too long", self.line));
        }
        done
    }

    /// The line that comes next; `None` within one.
    pub(super) fn next_line(&self) -> Option<u64> {
        self.rest.is_empty().then_some(self.line)
    }

    /// The input goes on at this line.
    pub(super) fn go_on_at(&mut self, line: u64) {
        self.line = line;
    }

    /// The end of the input: the last line may lack its line break.
    pub(crate) fn finish(&mut self, rows: &mut RawRows) -> SqlResult<()> {
        if self.ended {
            return Ok(());
        }
        if let Some(decoding) = &mut self.decoding {
            decoding.finish().map_err(|e| e.with_detail(format!("line {}", self.line)))?;
        }
        if self.format == CopyFormat::Binary {
            // Clients may leave out the trailer, as for PostgreSQL.
            return match (self.begun, self.rest.is_empty()) {
                (true, true) => Ok(()),
                (true, false) => Err(bad("unexpected EOF in COPY data", self.line)),
                (false, _) => Err(bad("COPY file signature not recognized", self.line)),
            };
        }
        if !self.rest.is_empty() {
            let taken = self.text_row(0, true, rows)?;
            debug_assert!(taken > 0 || self.ended);
        }
        self.rest.clear();
        Ok(())
    }

    /// Takes one line of text or CSV from `rest[start..]`. Returns the bytes taken, 0 = more input
    /// is needed.
    fn text_row(&mut self, start: usize, at_end: bool, rows: &mut RawRows) -> SqlResult<usize> {
        let Some((length, with_break)) = self.line_length(start, at_end)? else {
            return Ok(0);
        };
        self.scanned = 0;
        let first_line = self.line;
        let line = &self.rest[start..start + length];
        if line == b"\\." {
            self.line += 1;
            self.ended = true;
            return Ok(0);
        }
        let breaks = self.breaks_inside(line);
        // Without MATCH the names are not checked.
        if !self.skip_header || self.header_names.is_some() {
            self.read_fields(line, rows).inspect_err(|_| rows.drop_open())?;
        }
        if !self.skip_header {
            rows.end_row(first_line);
        } else if self.header_names.is_some() {
            let checked = self.check_header(rows.open(), first_line);
            rows.drop_open();
            checked?;
        }
        self.skip_header = false;
        self.line += 1 + breaks;
        Ok(with_break)
    }

    /// Reads the fields of a line, which has to have as many as there are columns.
    fn read_fields(&self, line: &[u8], rows: &mut RawRows) -> SqlResult<()> {
        let count = match self.format {
            _ if self.columns == 0 && line.is_empty() => 0,
            CopyFormat::Csv => self.csv_fields(line, rows)?,
            _ => self.text_fields(line, rows)?,
        };
        match count.cmp(&self.columns) {
            std::cmp::Ordering::Equal => Ok(()),
            std::cmp::Ordering::Greater => {
                Err(bad("extra data after last expected column", self.line))
            }
            std::cmp::Ordering::Less => {
                let message = format!("missing data for column {} of {}", count + 1, self.columns);
                Err(bad(message, self.line))
            }
        }
    }

    fn breaks_inside(&self, line: &[u8]) -> u64 {
        if self.format == CopyFormat::Csv {
            line.iter().filter(|b| **b == b'\n').count() as u64
        } else {
            0
        }
    }

    /// Length of the first line in `rest[start..]`, without and with its line break.
    fn line_length(&mut self, start: usize, at_end: bool) -> SqlResult<Option<(usize, usize)>> {
        let input = &self.rest[start..];
        let csv = self.format == CopyFormat::Csv;
        if self.scanned == 0 {
            self.in_quotes = false;
        }
        let mut i = self.scanned;
        if csv {
            let (scanned, inside) = (&mut self.scanned, &mut self.in_quotes);
            if let Some(end) = self.syntax.end_of_record(input, scanned, inside, at_end) {
                let length = if end > 0 && input[end - 1] == b'\r' { end - 1 } else { end };
                return Ok(Some((length, end + 1)));
            }
            i = self.scanned;
        }
        while !csv && i < input.len() {
            let byte = input[i];
            if byte == b'\\' {
                if i + 1 >= input.len() && !at_end {
                    break;
                }
                // A backslash before a line break makes it data.
                i += if input.get(i + 1) == Some(&b'.') { 1 } else { 2 };
                continue;
            } else if byte == b'\n' {
                let length = if i > 0 && input[i - 1] == b'\r' { i - 1 } else { i };
                return Ok(Some((length, i + 1)));
            }
            i += 1;
        }
        if !at_end {
            self.scanned = i.min(input.len());
            return Ok(None);
        }
        if self.in_quotes {
            return Err(bad("unterminated CSV quoted field", self.line));
        }
        let length = if input.ends_with(b"\r") { input.len() - 1 } else { input.len() };
        Ok(Some((length, input.len())))
    }

    /// The fields of a line of text, and how many.
    fn text_fields(&self, line: &[u8], rows: &mut RawRows) -> SqlResult<usize> {
        let good = is_text(line);
        let (mut count, mut start, mut i) = (0, 0, 0);
        loop {
            if i >= line.len() || line[i] == self.syntax.delimiter {
                let raw = &line[start..i.min(line.len())];
                if raw == self.null {
                    rows.push(None);
                } else if good && !raw.contains(&b'\\') {
                    rows.push(Some(raw));
                } else {
                    rows.push(Some(self.checked(&unescape(raw), count)?));
                }
                count += 1;
                if i >= line.len() {
                    return Ok(count);
                }
                start = i + 1;
                i += 1;
            } else {
                i += if line[i] == b'\\' { 2 } else { 1 };
            }
        }
    }

    /// The fields of a record of CSV, and how many.
    fn csv_fields(&self, line: &[u8], rows: &mut RawRows) -> SqlResult<usize> {
        let forced = |list: &[bool], at: usize| list.get(at).copied().unwrap_or(false);
        let good = is_text(line);
        let mut count = 0;
        self.syntax.each_field(line, |CsvField { bytes, quoted }| {
            let can_be = !quoted && !forced(&self.force_not_null, count)
                || quoted && forced(&self.force_null, count);
            let null = can_be && *bytes == *self.null;
            if !null && !good {
                self.checked(&bytes, count)?;
            }
            rows.push((!null).then_some(&*bytes));
            count += 1;
            Ok(())
        })?;
        Ok(count)
    }

    /// The bytes of a field, if they are UTF-8.
    fn checked<'b>(&self, bytes: &'b [u8], column: usize) -> SqlResult<&'b [u8]> {
        if is_text(bytes) {
            return Ok(bytes);
        }
        let message = "invalid byte sequence for encoding \"UTF8\"";
        let detail = format!("line {}, column {}", self.line, column + 1);
        Err(SqlError::new(SqlState::CHARACTER_NOT_IN_REPERTOIRE, message).with_detail(detail))
    }

    /// Takes one row of binary data. Returns the bytes taken, 0 = more input is needed.
    fn binary_row(&mut self, start: usize, rows: &mut RawRows) -> SqlResult<usize> {
        let input = &self.rest[start..];
        if self.ended {
            return Ok(0);
        }
        if !self.begun {
            let Some(header) = input.get(..SIGNATURE.len() + 8) else { return Ok(0) };
            if !header.starts_with(SIGNATURE) {
                return Err(bad("COPY file signature not recognized", self.line));
            }
            let number = |at: usize| i32::from_be_bytes(header[at..at + 4].try_into().expect("4"));
            let (flags, extension) = (number(SIGNATURE.len()), number(SIGNATURE.len() + 4));
            if flags != 0 || extension < 0 {
                return Err(bad("invalid COPY file header", self.line));
            }
            let length = header.len() + extension as usize;
            if input.len() < length {
                return Ok(0);
            }
            self.begun = true;
            return Ok(length);
        }
        let Some(count) = input.get(..2) else { return Ok(0) };
        let count = i16::from_be_bytes(count.try_into().expect("two bytes"));
        if count == -1 {
            self.ended = true;
            return Ok(2);
        }
        if count < 0 || count as usize != self.columns {
            let message = format!("row field count is {count}, expected {}", self.columns);
            return Err(bad(message, self.line));
        }
        let mut at = 2;
        for _ in 0..count {
            let Some(length) = input.get(at..at + 4) else {
                rows.drop_open();
                return Ok(0);
            };
            let length = i32::from_be_bytes(length.try_into().expect("four bytes"));
            at += 4;
            if length == -1 {
                rows.push(None);
                continue;
            }
            if length < 0 || length as usize > ROW_BYTES_MAX {
                rows.drop_open();
                return Err(bad("invalid field size", self.line));
            }
            let Some(value) = input.get(at..at + length as usize) else {
                rows.drop_open();
                return Ok(0);
            };
            rows.push(Some(value));
            at += length as usize;
        }
        rows.end_row(self.line);
        self.line += 1;
        Ok(at)
    }
}

/// Whether bytes are a text that can be stored.
fn is_text(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok() && !bytes.contains(&0)
}

/// Backslash sequences of the text format.
fn unescape(raw: &[u8]) -> Vec<u8> {
    if !raw.contains(&b'\\') {
        return raw.to_vec();
    }
    let mut out = Vec::with_capacity(raw.len());
    let mut i = 0;
    while i < raw.len() {
        if raw[i] != b'\\' || i + 1 == raw.len() {
            out.push(raw[i]);
            i += 1;
            continue;
        }
        i += 2;
        match raw[i - 1] {
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'v' => out.push(11),
            b'x' if raw.get(i).is_some_and(u8::is_ascii_hexdigit) => {
                let digits = raw[i..].iter().take(2).take_while(|b| b.is_ascii_hexdigit()).count();
                out.push(number(&raw[i..i + digits], 16));
                i += digits;
            }
            b'0'..=b'7' => {
                i -= 1;
                let octal = |b: &&u8| (b'0'..=b'7').contains(*b);
                let digits = raw[i..].iter().take(3).take_while(octal).count();
                out.push(number(&raw[i..i + digits], 8));
                i += digits;
            }
            other => out.push(other),
        }
    }
    out
}

fn number(digits: &[u8], radix: u32) -> u8 {
    let value = digits.iter().fold(0, |v, d| v * radix + (*d as char).to_digit(radix).unwrap_or(0));
    (value & 0xff) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(format: CopyFormat) -> CopyOptions {
        CopyOptions { format, ..CopyOptions::default() }
    }

    /// Feeds the input whole, and byte by byte: both must give the same.
    fn decode(options: &CopyOptions, columns: usize, input: &[u8]) -> Result<String, String> {
        let show = |pieces: &mut dyn Iterator<Item = &[u8]>| -> SqlResult<String> {
            let mut decoder = Decoder::new(options, columns)?;
            let mut rows = RawRows::default();
            for piece in pieces {
                decoder.feed(piece, &mut rows)?;
            }
            decoder.finish(&mut rows)?;
            let row = |r: RawRow<'_>| {
                let field = |f: Option<&[u8]>| {
                    f.map_or("NULL".into(), |f| format!("{:?}", String::from_utf8_lossy(f)))
                };
                let fields: Vec<String> = r.fields().map(field).collect();
                format!("{}:{}", r.line, fields.join(","))
            };
            Ok(rows.iter().map(row).collect::<Vec<_>>().join(" "))
        };
        let text = |r: SqlResult<String>| {
            r.map_err(|e| format!("{} ({})", e.message(), e.detail().unwrap_or_default()))
        };
        let whole = text(show(&mut std::iter::once(input)));
        let pieces = text(show(&mut input.chunks(1)));
        assert_eq!(whole, pieces, "the cut of the input must not matter");
        whole
    }

    #[test]
    fn text_rows() {
        let o = options(CopyFormat::Text);
        let input = b"1\tAda\n2\t\\N\r\n\\x41\\101\ta\\tb\\\nc\n3\tlast";
        let want = r#"1:"1","Ada" 2:"2",NULL 3:"AA","a\tb\nc" 4:"3","last""#;
        assert_eq!(decode(&o, 2, input).unwrap(), want);
        assert_eq!(decode(&o, 1, b"x\n\\.\nignored\n").unwrap(), r#"1:"x""#);
        let missing = decode(&o, 2, b"1\tx\n2\n").unwrap_err();
        assert_eq!(missing, "missing data for column 2 of 2 (line 2)");
        assert!(decode(&o, 1, b"1\t2\n").unwrap_err().contains("extra data"));
        assert!(decode(&o, 1, b"a\nb\n\xff\n").unwrap_err().contains("line 3, column 1"));
    }

    #[test]
    fn csv_rows() {
        let o = CopyOptions { header: true, ..options(CopyFormat::Csv) };
        let input = b"a,b\n1,\"x, \"\"y\"\"\nz\"\r\n,\"\"\n\"q\"r,s";
        let want = r#"2:"1","x, \"y\"\nz" 4:NULL,"" 5:"qr","s""#;
        assert_eq!(decode(&o, 2, input).unwrap(), want);
        let open = decode(&o, 1, b"h\n\"never closed\n1\n").unwrap_err();
        assert!(open.contains("unterminated CSV quoted field (line 2)"), "{open}");
        let escaped = CopyOptions { escape: Some('\\'), ..options(CopyFormat::Csv) };
        assert_eq!(decode(&escaped, 1, b"\"a\\\"b\"\n").unwrap(), r#"1:"a\"b""#);
    }

    #[test]
    fn binary_rows() {
        let o = options(CopyFormat::Binary);
        let mut input = SIGNATURE.to_vec();
        input.extend([0; 8]);
        input.extend([0, 2, 0, 0, 0, 1, b'x', 0xff, 0xff, 0xff, 0xff]);
        let whole = r#"1:"x",NULL"#;
        assert_eq!(decode(&o, 2, &input).unwrap(), whole, "without a trailer");
        for cut in 1..11 {
            let e = decode(&o, 2, &input[..input.len() - cut]).unwrap_err();
            assert!(e.contains("unexpected EOF"), "{cut}: {e}");
        }
        assert!(decode(&o, 2, &input[..18]).unwrap_err().contains("signature"));
        input.extend([0xff, 0xff]);
        assert_eq!(decode(&o, 2, &input).unwrap(), whole);
        assert!(decode(&o, 3, &input).unwrap_err().contains("expected 3"));
        assert!(decode(&o, 1, b"no signature at all here").unwrap_err().contains("signature"));
    }
}
