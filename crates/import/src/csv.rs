//! CSV: fields of a record, by PostgreSQL's rules, with an option for stricter quotes.
//!
//! Own code because what stands for NULL does so only without quotes, and the libraries do not tell
//! whether a field had some. A quote anywhere begins and ends quoting, so `a"b,c"d` is one field;
//! with strict quotes only whole fields may be quoted.

use std::borrow::Cow;

use braid_types::{Datum, SqlError, SqlResult, SqlState};

use crate::batch::{Batch, Misfit, Row};
use crate::lines::{Lines, Quoting, Record};
use crate::options::{CsvOptions, Header};
use crate::reader::Source;
use crate::target::{Target, not_utf8};

/// Rows of one file.
pub(crate) struct CsvSource {
    lines: Lines,
    options: CsvOptions,
    target: std::sync::Arc<Target>,
    /// Lines that are still to be left out.
    skip: u64,
    header: Header,
}

/// A field as it stands in the record.
struct Field<'a> {
    bytes: Cow<'a, [u8]>,
    quoted: bool,
}

impl CsvSource {
    pub(crate) fn new(
        lines: Lines,
        options: CsvOptions,
        target: std::sync::Arc<Target>,
    ) -> CsvSource {
        let (skip, header) = (options.skip, options.header);
        CsvSource { lines, options, target, skip, header }
    }

    fn quoting(&self) -> Quoting {
        let CsvOptions { quote, escape, delimiter, strict_quotes, .. } = self.options;
        Quoting { quote, escape, only_behind: strict_quotes.then_some(delimiter) }
    }

    /// What a record is, if it is no row: nothing more to say about it.
    fn passes(&mut self, record: &Record) -> SqlResult<bool> {
        let bytes = self.lines.bytes(record);
        if self.options.comment.is_some_and(|c| bytes.first() == Some(&c)) {
            return Ok(false);
        }
        if self.skip > 0 {
            self.skip -= 1;
            return Ok(false);
        }
        match std::mem::take(&mut self.header) {
            Header::None => {}
            Header::Skipped => return Ok(false),
            Header::Match => {
                let fields = self.fields(bytes).map_err(|(_, e)| e)?;
                self.check_header(&fields)?;
                return Ok(false);
            }
        }
        // An empty line is a row of one empty field, and of nothing else.
        Ok(!bytes.is_empty() || self.target.columns.len() == 1)
    }

    fn check_header(&self, fields: &[Field<'_>]) -> SqlResult<()> {
        let columns = &self.target.columns;
        let names: Vec<Cow<'_, str>> =
            fields.iter().map(|f| String::from_utf8_lossy(&f.bytes)).collect();
        let wrong = columns.iter().zip(&names).position(|(c, name)| c.name != **name);
        let at = wrong.unwrap_or(columns.len().min(names.len()));
        if at == columns.len() && at == names.len() {
            return Ok(());
        }
        let got = names.get(at).map_or("nothing".into(), |name| format!("\"{name}\""));
        let wanted = columns.get(at).map_or("nothing".into(), |c| format!("\"{}\"", c.name));
        let message = format!("header field {} is {got}, and the column there is {wanted}", at + 1);
        Err(SqlError::new(SqlState::BAD_COPY_FILE_FORMAT, message))
    }

    /// The values of a record, or the column that fails and why.
    fn values(&self, bytes: &[u8]) -> Result<Vec<Option<Datum>>, (Option<usize>, SqlError)> {
        let fields = self.fields(bytes)?;
        let columns = self.target.columns.len();
        if fields.len() < columns {
            let name = &self.target.columns[fields.len()].name;
            let message = format!("missing data for column \"{name}\"");
            return Err((None, SqlError::new(SqlState::BAD_COPY_FILE_FORMAT, message)));
        }
        if fields.len() > columns {
            let message = "extra data after last expected column";
            return Err((None, SqlError::new(SqlState::BAD_COPY_FILE_FORMAT, message)));
        }
        let value = |(at, field): (usize, &Field<'_>)| {
            if !field.quoted && *field.bytes == *self.options.null {
                return Ok(Some(Datum::Null));
            }
            let text = std::str::from_utf8(&field.bytes).ok().filter(|t| !t.contains('\0'));
            let text = text.ok_or_else(|| (Some(at), not_utf8()))?;
            self.target.text(at, text).map(Some).map_err(|e| (Some(at), e))
        };
        fields.iter().enumerate().map(value).collect()
    }

    fn fields<'a>(&self, record: &'a [u8]) -> Result<Vec<Field<'a>>, (Option<usize>, SqlError)> {
        let mut out = Vec::with_capacity(self.target.columns.len());
        let mut rest = record;
        loop {
            let (field, taken) = self.field(rest).map_err(|e| (Some(out.len()), e))?;
            out.push(field);
            match rest.get(taken) {
                None => return Ok(out),
                Some(_) => rest = &rest[taken + 1..],
            }
        }
    }

    /// The field that a record begins with, and its length.
    fn field<'a>(&self, record: &'a [u8]) -> SqlResult<(Field<'a>, usize)> {
        let CsvOptions { delimiter, quote, .. } = self.options;
        let end = memchr::memchr2(delimiter, quote, record).unwrap_or(record.len());
        if record.get(end) != Some(&quote) {
            return Ok((Field { bytes: Cow::Borrowed(&record[..end]), quoted: false }, end));
        }
        if self.options.strict_quotes && end > 0 {
            return Err(loose_quote());
        }
        self.quoted_field(record)
    }

    fn quoted_field<'a>(&self, record: &'a [u8]) -> SqlResult<(Field<'a>, usize)> {
        let CsvOptions { delimiter, quote, escape, strict_quotes, .. } = self.options;
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
        Ok((Field { bytes: Cow::Owned(bytes), quoted: true }, at))
    }
}

fn loose_quote() -> SqlError {
    SqlError::new(SqlState::BAD_COPY_FILE_FORMAT, "a quote inside of a field that is not quoted")
        .with_hint("Without strict_quotes, a quote anywhere begins and ends quoting.")
}

impl Source for CsvSource {
    fn read(&mut self, out: &mut Batch) -> SqlResult<()> {
        let quoting = self.quoting();
        while !out.is_full() {
            // The header and lines to be left out have quotes as all others.
            let Some(record) = self.lines.next(Some(quoting))? else {
                out.last = true;
                break;
            };
            let line = record.line;
            if !self.passes(&record).map_err(|e| e.with_detail(format!("line {line}")))? {
                continue;
            }
            let bytes = self.lines.bytes(&record);
            match self.values(bytes) {
                Ok(values) => out.push(Row { number: line, values, size: bytes.len() + 1 }),
                Err((column, error)) => {
                    let text = String::from_utf8_lossy(bytes).into_owned();
                    out.refuse(Misfit { number: line, column, error, text });
                }
            }
        }
        out.read = self.lines.position();
        Ok(())
    }
}
