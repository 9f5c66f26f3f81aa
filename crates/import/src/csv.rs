//! CSV: rows of a file, by the fields of its records.

use std::borrow::Cow;

use braid_types::{Datum, SqlError, SqlResult, SqlState};

use crate::batch::{Batch, Misfit, Row};
use crate::csv_syntax::{CsvField, CsvSyntax};
use crate::lines::{Lines, Record};
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

impl CsvSource {
    pub(crate) fn new(
        lines: Lines,
        options: CsvOptions,
        target: std::sync::Arc<Target>,
    ) -> CsvSource {
        // What stands in front of the rows was passed where reading goes on.
        let (skip, header) = match lines.taken().offset {
            0 => (options.skip, options.header),
            _ => (0, Header::None),
        };
        CsvSource { lines, options, target, skip, header }
    }

    fn syntax(&self) -> CsvSyntax {
        let CsvOptions { delimiter, quote, escape, strict_quotes, .. } = self.options;
        CsvSyntax { delimiter, quote, escape, strict_quotes }
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
                let fields = self.syntax().fields(bytes)?;
                self.check_header(&fields)?;
                return Ok(false);
            }
        }
        // An empty line is a row of one empty field, and of nothing else.
        Ok(!bytes.is_empty() || self.target.columns.len() == 1)
    }

    fn check_header(&self, fields: &[CsvField<'_>]) -> SqlResult<()> {
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
        let columns = self.target.columns.len();
        let (mut values, mut count, mut failed) = (Vec::with_capacity(columns), 0, None);
        let split = self.syntax().each_field(bytes, |field| {
            if count < columns && failed.is_none() {
                match self.value(count, &field) {
                    Ok(value) => values.push(Some(value)),
                    Err(e) => failed = Some((Some(count), e)),
                }
            }
            count += 1;
            Ok(())
        });
        // A field that is wrong may be one that no column has.
        split.map_err(|e| (Some(count).filter(|at| *at < columns), e))?;
        if count < columns {
            let name = &self.target.columns[count].name;
            let message = format!("missing data for column \"{name}\"");
            return Err((None, SqlError::new(SqlState::BAD_COPY_FILE_FORMAT, message)));
        }
        if count > columns {
            let message = "extra data after last expected column";
            return Err((None, SqlError::new(SqlState::BAD_COPY_FILE_FORMAT, message)));
        }
        failed.map_or(Ok(values), Err)
    }

    fn value(&self, at: usize, field: &CsvField<'_>) -> SqlResult<Datum> {
        if !field.quoted && *field.bytes == *self.options.null {
            return Ok(Datum::Null);
        }
        let text = std::str::from_utf8(&field.bytes).ok().filter(|t| !t.contains('\0'));
        self.target.text(at, text.ok_or_else(not_utf8)?)
    }
}

impl Source for CsvSource {
    fn read(&mut self, out: &mut Batch) -> SqlResult<()> {
        let syntax = self.syntax();
        while !out.is_full() {
            // The header and lines to be left out have quotes as all others.
            let Some(record) = self.lines.next(Some(syntax))? else {
                out.last = true;
                break;
            };
            let line = record.line;
            if !self.passes(&record).map_err(|e| self.lines.placed(e, line))? {
                continue;
            }
            let bytes = self.lines.bytes(&record);
            let placed = |e: SqlError| self.lines.placed(e, line);
            // Fields without their quotes, and their values.
            out.expect(bytes.len() * 2).map_err(placed)?;
            let taken = match self.values(bytes) {
                Ok(values) => out.push(Row { number: line, values }),
                Err((column, error)) => {
                    let text = String::from_utf8_lossy(bytes).into_owned();
                    out.refuse(Misfit { number: line, column, error, text })
                }
            };
            taken.map_err(placed)?;
        }
        (out.read, out.end) = (self.lines.position(), self.lines.taken());
        Ok(())
    }
}
