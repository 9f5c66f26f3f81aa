//! CSV: where records end and what their fields are, by PostgreSQL's rules, with an option for
//! stricter quotes. IMPORT and COPY read by it.
//!
//! Own code because what stands for NULL does so only without quotes, and the libraries do not tell
//! whether a field had some. A quote anywhere begins and ends quoting, so `a"b,c"d` is one field;
//! with strict quotes only whole fields may be quoted.

use std::borrow::Cow;

use braid_types::{SqlError, SqlResult, SqlState};

/// See the [module documentation](self).
#[derive(Debug, Clone, Copy)]
pub struct CsvSyntax {
    /// Between two fields.
    pub delimiter: u8,
    /// Around a field.
    pub quote: u8,
    /// Before a quote inside of quotes.
    pub escape: u8,
    /// A quote opens a field only behind a delimiter, or at the record's beginning.
    pub strict_quotes: bool,
}

/// A field as it stands in the record.
#[derive(Debug)]
pub struct CsvField<'a> {
    /// Without its quotes.
    pub bytes: Cow<'a, [u8]>,
    /// Whether it had some.
    pub quoted: bool,
}

impl CsvSyntax {
    /// Finds the line break that ends the first record. `scanned` and `inside` say where the search
    /// is, to go on when there is more input.
    pub fn end_of_record(
        &self,
        input: &[u8],
        scanned: &mut usize,
        inside: &mut bool,
        at_end: bool,
    ) -> Option<usize> {
        let q = self;
        let only_behind = q.strict_quotes.then_some(q.delimiter);
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
                        if only_behind.is_some() {
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
                        *inside = only_behind.is_none_or(opens);
                        at = here + 1;
                    }
                }
            }
        };
        *scanned = input.len().max(at);
        found
    }

    /// The fields of a record.
    ///
    /// # Errors
    /// A field that is wrong.
    pub(crate) fn fields<'a>(&self, record: &'a [u8]) -> SqlResult<Vec<CsvField<'a>>> {
        let mut out = Vec::new();
        self.each_field(record, |field| {
            out.push(field);
            Ok(())
        })?;
        Ok(out)
    }

    /// Tells the fields of a record, one after the other.
    ///
    /// # Errors
    /// A field that is wrong, behind those that were told; and what `tell` says.
    pub fn each_field<'a>(
        &self,
        record: &'a [u8],
        mut tell: impl FnMut(CsvField<'a>) -> SqlResult<()>,
    ) -> SqlResult<()> {
        let mut rest = record;
        loop {
            let (field, taken) = self.field(rest)?;
            tell(field)?;
            match rest.get(taken) {
                None => return Ok(()),
                Some(_) => rest = &rest[taken + 1..],
            }
        }
    }

    /// The field that a record begins with, and its length.
    fn field<'a>(&self, record: &'a [u8]) -> SqlResult<(CsvField<'a>, usize)> {
        let CsvSyntax { delimiter, quote, .. } = *self;
        let end = memchr::memchr2(delimiter, quote, record).unwrap_or(record.len());
        if record.get(end) != Some(&quote) {
            return Ok((CsvField { bytes: Cow::Borrowed(&record[..end]), quoted: false }, end));
        }
        if self.strict_quotes && end > 0 {
            return Err(loose_quote());
        }
        self.quoted_field(record)
    }

    fn quoted_field<'a>(&self, record: &'a [u8]) -> SqlResult<(CsvField<'a>, usize)> {
        let CsvSyntax { delimiter, quote, escape, strict_quotes } = *self;
        let mut bytes = Vec::new();
        let (mut inside, mut at) = (false, 0);
        while let Some(&byte) = record.get(at) {
            let next = record.get(at + 1).copied();
            if inside && byte == escape && next.is_some_and(|b| b == quote || b == escape) {
                at += 1;
                bytes.push(record[at]);
            } else if byte == quote {
                inside = !inside;
                if strict_quotes && !inside && next.is_some_and(|b| b != delimiter) {
                    return Err(loose_quote());
                }
            } else if !inside && byte == delimiter {
                break;
            } else {
                bytes.push(byte);
            }
            at += 1;
        }
        Ok((CsvField { bytes: Cow::Owned(bytes), quoted: true }, at))
    }
}

fn loose_quote() -> SqlError {
    SqlError::new(SqlState::BAD_COPY_FILE_FORMAT, "a quote inside of a field that is not quoted")
        .with_hint("Without strict_quotes, a quote anywhere begins and ends quoting.")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the cut of the input matters: it must not.
    fn ends(text: &[u8], q: CsvSyntax) -> Vec<usize> {
        let mut out = Vec::new();
        let mut start = 0;
        while start < text.len() {
            let rest = &text[start..];
            let (mut scanned, mut inside) = (0, false);
            let whole = q.end_of_record(rest, &mut scanned, &mut inside, true);
            let (mut scanned, mut inside) = (0, false);
            let pieces = (1..=rest.len()).find_map(|n| {
                q.end_of_record(&rest[..n], &mut scanned, &mut inside, n == rest.len())
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
        let q = CsvSyntax { delimiter: b',', quote: b'"', escape: b'"', strict_quotes: false };
        assert_eq!(ends(b"a,b\n\"x\ny\",\"\"\"\n\"\n", q), [3, 15]);
        assert_eq!(ends(b"a\"b\nc\"d\n", q), [7]);
        let escaped = CsvSyntax { escape: b'\\', ..q };
        assert_eq!(ends(b"\"a\\\"\n\"\nb\n", escaped), [6, 8]);
        let strict = CsvSyntax { strict_quotes: true, ..q };
        assert_eq!(ends(b"a\"b\nc\"d\n\"e\n\",f\n", strict), [3, 7, 14]);
        assert_eq!(ends(b"1,\"a\"\"\n\"\n", strict), [8]);
    }
}
