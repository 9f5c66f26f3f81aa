//! Input cut into lines, or into records of lines whose breaks stand between quotes.
//!
//! ```text
//!   buffer  |  taken  | record | what was read ahead |
//!                     ^ start  ^ next
//! ```
//! The buffer grows to the longest record, up to a limit, and what it takes is counted.

use std::io::Read;
use std::ops::Range;

use braid_env::memory::Held;
use braid_types::{SqlError, SqlResult, SqlState};

use crate::folder::SourceFile;
use crate::input::{Input, failed};

/// The buffer at first, in bytes.
const BUFFER: usize = 256 << 10;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// When a line break belongs to a field.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Quoting {
    pub(crate) quote: u8,
    pub(crate) escape: u8,
    /// A quote opens a field only behind this byte, or at the record's beginning.
    pub(crate) only_behind: Option<u8>,
}

/// See the [module documentation](self).
pub(crate) struct Lines {
    input: Input,
    source: SourceFile,
    buffer: Vec<u8>,
    start: usize,
    filled: usize,
    ended: bool,
    /// Of what comes next, from 1.
    line: u64,
    bytes_max: usize,
    held: Held,
}

/// A record's place in the buffer, without its line break.
pub(crate) struct Record {
    /// The line on which it begins.
    pub(crate) line: u64,
    pub(crate) bytes: Range<usize>,
}

impl Lines {
    pub(crate) fn new(input: Input, source: SourceFile, bytes_max: usize, held: Held) -> Lines {
        let (buffer, line) = (Vec::new(), 1);
        Lines { input, source, buffer, start: 0, filled: 0, ended: false, line, bytes_max, held }
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
    pub(crate) fn next(&mut self, quoting: Option<Quoting>) -> SqlResult<Option<Record>> {
        let mut scanned = 0;
        let mut inside = false;
        loop {
            let found = match quoting {
                None => memchr::memchr(b'\n', &self.ahead()[scanned..]).map(|at| scanned + at),
                Some(q) => end_of_record(self.ahead(), &mut scanned, &mut inside, q, self.ended),
            };
            if let Some(at) = found {
                return self.take(at, at + 1).map(Some);
            }
            if quoting.is_none() {
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
            self.fill()?;
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
        let first = self.buffer.is_empty();
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.filled, 0);
            self.filled -= self.start;
            self.start = 0;
        }
        if self.filled == self.buffer.len() {
            if self.filled >= self.bytes_max {
                return Err(self.too_long());
            }
            let size = (self.buffer.len() * 2).clamp(BUFFER, self.bytes_max.max(BUFFER));
            if let Err(e) = self.held.resize(size) {
                return Err(self.at_line(SqlState::OUT_OF_MEMORY, &e.to_string()));
            }
            self.buffer.resize(size, 0);
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

    fn place(&self) -> String {
        format!("file \"{}\", line {}", self.source.name, self.line)
    }

    fn at_line(&self, state: SqlState, message: &str) -> SqlError {
        SqlError::new(state, message).with_detail(self.place())
    }
}

/// Finds the line break that ends the first record. `scanned` and `inside` say where the search
/// is, to go on when there is more input.
fn end_of_record(
    input: &[u8],
    scanned: &mut usize,
    inside: &mut bool,
    q: Quoting,
    at_end: bool,
) -> Option<usize> {
    let mut at = *scanned;
    let found = loop {
        let rest = &input[at.min(input.len())..];
        if *inside {
            match memchr::memchr2(q.quote, q.escape, rest).map(|n| at + n) {
                None => break None,
                // The escaped byte may still have to come.
                Some(here) if q.escape != q.quote && input[here] == q.escape => {
                    if here + 1 >= input.len() && !at_end {
                        at = here;
                        *scanned = at;
                        return None;
                    }
                    at = here + 2;
                }
                // A doubled quote closes and opens: the same as staying inside.
                Some(here) => {
                    *inside = false;
                    at = here + 1;
                    if q.only_behind.is_some() {
                        if at >= input.len() && !at_end {
                            *inside = true;
                            *scanned = here;
                            return None;
                        }
                        if input.get(at) == Some(&q.quote) && q.escape == q.quote {
                            *inside = true;
                            at += 1;
                        }
                    }
                }
            }
        } else {
            match memchr::memchr2(q.quote, b'\n', rest).map(|n| at + n) {
                None => break None,
                Some(here) if input[here] == b'\n' => break Some(here),
                Some(here) => {
                    let opens = |before: u8| here == 0 || input[here - 1] == before;
                    *inside = q.only_behind.is_none_or(opens);
                    at = here + 1;
                }
            }
        }
    };
    *scanned = input.len().max(at);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the cut of the input matters: it must not.
    fn ends(text: &[u8], q: Quoting) -> Vec<usize> {
        let mut out = Vec::new();
        let mut start = 0;
        while start < text.len() {
            let rest = &text[start..];
            let (mut scanned, mut inside) = (0, false);
            let whole = end_of_record(rest, &mut scanned, &mut inside, q, true);
            let (mut scanned, mut inside) = (0, false);
            let pieces = (1..=rest.len()).find_map(|n| {
                end_of_record(&rest[..n], &mut scanned, &mut inside, q, n == rest.len())
            });
            assert_eq!(whole, pieces, "{:?}", String::from_utf8_lossy(rest));
            let Some(at) = whole else { break };
            out.push(start + at);
            start += at + 1;
        }
        out
    }

    #[test]
    fn line_breaks_in_quotes_are_data() {
        let q = Quoting { quote: b'"', escape: b'"', only_behind: None };
        assert_eq!(ends(b"a,b\n\"x\ny\",\"\"\"\n\"\n", q), [3, 15]);
        assert_eq!(ends(b"a\"b\nc\"d\n", q), [7]);
        let escaped = Quoting { escape: b'\\', ..q };
        assert_eq!(ends(b"\"a\\\"\n\"\nb\n", escaped), [6, 8]);
        let strict = Quoting { only_behind: Some(b','), ..q };
        assert_eq!(ends(b"a\"b\nc\"d\n\"e\n\",f\n", strict), [3, 7, 14]);
        assert_eq!(ends(b"1,\"a\"\"\n\"\n", strict), [8]);
    }
}
