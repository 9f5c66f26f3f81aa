//! Input cut into lines, or into records of lines whose breaks stand between quotes.
//!
//! ```text
//!   buffer  |  taken  | record | what was read ahead |
//!                     ^ start  ^ next
//! ```
//! The buffer grows to the longest record, up to a limit, and what it takes is counted.

use std::io::Read;
use std::ops::Range;

use braid_types::{SqlError, SqlResult, SqlState};

use crate::batch::Position;
use crate::csv_syntax::CsvSyntax;
use crate::folder::SourceFile;
use crate::input::{Input, failed};
use crate::room::Room;

/// The buffer at first, in bytes, where there is memory enough.
pub(crate) const BUFFER: usize = 256 << 10;
/// So many times a long record is in memory before it is stored: here, and as values.
const ROW_COPIES: usize = 4;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// See the [module documentation](self).
pub(crate) struct Lines {
    input: Input,
    source: SourceFile,
    buffer: Vec<u8>,
    start: usize,
    filled: usize,
    ended: bool,
    /// Bytes of the input in front of the buffer.
    before: u64,
    /// Of what comes next, from 1.
    line: u64,
    bytes_max: usize,
    /// Size of the buffer at first.
    first: usize,
    room: Room,
}

/// A record's place in the buffer, without its line break.
pub(crate) struct Record {
    /// The line on which it begins.
    pub(crate) line: u64,
    pub(crate) bytes: Range<usize>,
}

impl Lines {
    /// Lines of an input that was opened at a position, none of them longer than so many bytes, in
    /// a buffer that has so many at first.
    pub(crate) fn new(
        input: Input,
        source: SourceFile,
        from: Position,
        (bytes_max, first): (usize, usize),
        room: Room,
    ) -> Lines {
        let (buffer, before, line) = (Vec::new(), from.offset, from.number + 1);
        let (start, filled, ended) = (0, 0, false);
        Lines { input, source, buffer, start, filled, ended, before, line, bytes_max, first, room }
    }

    /// The position behind what was taken.
    pub(crate) fn taken(&self) -> Position {
        Position { offset: self.before + self.start as u64, number: self.line - 1 }
    }

    /// Bytes read of the file so far.
    pub(crate) fn position(&self) -> u64 {
        self.input.position()
    }

    /// The bytes of a record that was taken last.
    pub(crate) fn bytes(&self, record: &Record) -> &[u8] {
        &self.buffer[record.bytes.clone()]
    }

    /// Takes the next record; `None` at the end.
    ///
    /// # Errors
    /// 22P04 for a quote that is never closed and for damaged compression, 54000 for a record over
    /// the limit, 53200 without memory for it; and the disk's. All name the line.
    pub(crate) fn next(&mut self, syntax: Option<CsvSyntax>) -> SqlResult<Option<Record>> {
        let mut scanned = 0;
        let mut inside = false;
        loop {
            let found = match syntax {
                None => memchr::memchr(b'\n', &self.ahead()[scanned..]).map(|at| scanned + at),
                Some(q) => q.end_of_record(self.ahead(), &mut scanned, &mut inside, self.ended),
            };
            if let Some(at) = found {
                return self.take(at, at + 1).map(Some);
            }
            if syntax.is_none() {
                scanned = self.ahead().len();
            }
            if self.ended {
                let rest = self.ahead().len();
                if inside {
                    let message = "unterminated CSV quoted field";
                    return Err(self.at_line(SqlState::BAD_COPY_FILE_FORMAT, message));
                }
                return (rest > 0).then(|| self.take(rest, rest)).transpose();
            }
            match self.fill() {
                Err(e) if e.state() == SqlState::OUT_OF_MEMORY => {
                    return Err(self.without_memory(syntax, (scanned, inside)));
                }
                filled => filled?,
            }
        }
    }

    /// The error of a record for which there is no memory: it tells how long it is. The file is
    /// read to its end for that.
    fn without_memory(
        &mut self,
        syntax: Option<CsvSyntax>,
        (mut scanned, mut inside): (usize, bool),
    ) -> SqlError {
        let mut passed = 0;
        let length = loop {
            // One byte in front of what comes says whether a quote opens.
            let keep = scanned.saturating_sub(1);
            (passed, scanned) = (passed + keep, scanned - keep);
            self.start += keep;
            if self.ended || self.fill().is_err() {
                break passed + self.ahead().len();
            }
            let found = match syntax {
                None => memchr::memchr(b'\n', &self.ahead()[scanned..]).map(|at| scanned + at),
                Some(q) => q.end_of_record(self.ahead(), &mut scanned, &mut inside, self.ended),
            };
            if let Some(at) = found {
                break passed + at;
            }
            if syntax.is_none() {
                scanned = self.ahead().len();
            }
        };
        if length > self.bytes_max {
            return self.too_long();
        }
        // What it needs next is refused, and told with that.
        let way = self.room.resize(length.saturating_mul(ROW_COPIES));
        let message = format!("out of memory: a row of {length} bytes");
        let e = self.at_line(SqlState::OUT_OF_MEMORY, &message);
        match way {
            Err(refused) => e.with_hint(refused.to_string()),
            Ok(()) => e,
        }
    }

    fn ahead(&self) -> &[u8] {
        &self.buffer[self.start..self.filled]
    }

    /// Takes the next bytes; a record that began before the break, and its break.
    fn take(&mut self, length: usize, with_break: usize) -> SqlResult<Record> {
        if length > self.bytes_max {
            return Err(self.too_long());
        }
        let bytes = &self.ahead()[..length];
        let breaks = memchr::memchr_iter(b'\n', bytes).count() as u64;
        let length = if bytes.ends_with(b"\r") { length - 1 } else { length };
        let line = self.line;
        self.line += breaks + 1;
        let bytes = self.start..self.start + length;
        self.start += with_break;
        Ok(Record { line, bytes })
    }

    fn too_long(&self) -> SqlError {
        let message = format!("a row is longer than {} bytes", self.bytes_max);
        self.at_line(SqlState::PROGRAM_LIMIT_EXCEEDED, &message)
            .with_hint("WITH max_row_size = '..' allows longer ones.")
    }

    /// Reads more, behind what is there.
    fn fill(&mut self) -> SqlResult<()> {
        let first = self.buffer.is_empty() && self.before == 0;
        if self.start > 0 {
            self.before += self.start as u64;
            self.buffer.copy_within(self.start..self.filled, 0);
            self.filled -= self.start;
            self.start = 0;
        }
        if self.filled == self.buffer.len() {
            self.grow()?;
        }
        let read = loop {
            match self.input.read(&mut self.buffer[self.filled..]) {
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        match read {
            Ok(0) => self.ended = true,
            Ok(n) => self.filled += n,
            Err(e) => {
                let detail = self.place();
                return Err(failed(&self.source, &e).with_detail(detail));
            }
        }
        if first && self.ahead().starts_with(BYTE_ORDER_MARK) {
            self.start = BYTE_ORDER_MARK.len();
        }
        Ok(())
    }

    /// Makes the buffer larger.
    fn grow(&mut self) -> SqlResult<()> {
        if self.filled >= self.bytes_max {
            return Err(self.too_long());
        }
        let before = self.buffer.len();
        let size = (before * 2).clamp(self.first, self.bytes_max.max(self.first));
        // Both are there while one is copied into the other.
        let grown = self.room.resize(before + size);
        grown.map_err(|e| self.at_line(SqlState::OUT_OF_MEMORY, &e.to_string()))?;
        let mut larger = vec![0; size];
        larger[..self.filled].copy_from_slice(&self.buffer[..self.filled]);
        self.buffer = larger;
        let given_back = self.room.resize(size);
        given_back.map_err(|e| self.at_line(SqlState::OUT_OF_MEMORY, &e.to_string()))
    }

    /// An error with its file and line.
    pub(crate) fn placed(&self, e: SqlError, line: u64) -> SqlError {
        e.with_detail(format!("file \"{}\", line {line}", self.source.name))
    }

    fn place(&self) -> String {
        format!("file \"{}\", line {}", self.source.name, self.line)
    }

    fn at_line(&self, state: SqlState, message: &str) -> SqlError {
        SqlError::new(state, message).with_detail(self.place())
    }
}
