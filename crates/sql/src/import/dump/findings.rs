//! What is told of a dump: line by line what became of its statements.

use std::path::Path;
use std::sync::Arc;

use braid_catalog::memory_error;
use braid_env::fs::FileSystem;
use braid_env::memory::{Account, Held};
use braid_rows::Row;
use braid_types::{Datum, SqlError, SqlResult, SqlState, SqlType, TimeZone};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::general_query::ColumnInfo;

/// What a finding shows of a statement.
const SHOWN: usize = 120;
/// More than so many that are wrong tell nobody anything.
const WRONG_MAX: usize = 1_000;

/// The columns of the answer.
pub(crate) fn columns() -> Vec<ColumnInfo> {
    [("result", SqlType::Text), ("line", SqlType::Int8), ("subject", SqlType::Text)]
        .into_iter()
        .chain([("detail", SqlType::Text)])
        .map(|(name, ty)| ColumnInfo::computed(name, ty))
        .collect()
}

/// What was told so far: for another process that goes on with the dump.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct SavedFindings {
    /// Result, line, subject, detail.
    rows: Vec<(String, Option<u64>, String, String)>,
    left_out: Option<String>,
}

/// See the [module documentation](self).
pub(super) struct Findings {
    rows: Vec<Row>,
    /// Statements that were left out, whole, if somebody wants them.
    left_out: Option<String>,
    wrong: usize,
    held: Held,
}

impl Findings {
    pub(super) fn new(account: &Arc<Account>, wants_left_out: bool) -> Findings {
        let held = account.hold("what is told of a dump");
        Findings { rows: Vec::new(), left_out: wants_left_out.then(String::new), wrong: 0, held }
    }

    /// Adds a line: what became of the statement on a line of the dump, and why.
    pub(super) fn tell(
        &mut self,
        result: &str,
        line: Option<u64>,
        subject: &str,
        detail: &str,
    ) -> SqlResult<()> {
        let number = |line: u64| Datum::Int8(i64::try_from(line).unwrap_or(i64::MAX));
        let line = line.map_or(Datum::Null, number);
        let row = vec![Datum::text(result), line, Datum::text(head(subject)), Datum::text(detail)];
        let bytes = row.iter().map(Datum::memory).sum();
        self.held.grow(bytes).map_err(|e| memory_error(&e))?;
        self.rows.push(row);
        Ok(())
    }

    /// A statement that is left out.
    pub(super) fn leave_out(&mut self, line: u64, text: &str, why: &str) -> SqlResult<()> {
        if let Some(all) = &mut self.left_out {
            self.held.grow(text.len() + why.len() + 32).map_err(|e| memory_error(&e))?;
            // As SQL that can be read, changed and run.
            let why = why.replace('\n', " ");
            all.push_str(&format!("-- line {line}: {why}\n{};\n\n", text.trim_end()));
        }
        self.tell("ignored", Some(line), text, why)
    }

    /// What would have been an error, of a dry run.
    ///
    /// # Errors
    /// 54000 when there are too many to be told.
    pub(super) fn wrong(&mut self, line: u64, text: &str, e: &SqlError) -> SqlResult<()> {
        self.wrong += 1;
        if self.wrong > WRONG_MAX {
            let message = format!("more than {WRONG_MAX} statements of the dump fail");
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message).with_hint(
                "Look at the first ones: WITH ignore_unsupported_statements may help.",
            ));
        }
        let detail =
            e.detail().map(|d| format!(" ({})", d.replace('\n', "; "))).unwrap_or_default();
        let what = format!("{}: {}{detail}", e.state().0, e.message());
        self.tell("wrong", Some(line), text, &what)
    }

    /// What was told so far.
    pub(super) fn save(&self) -> SavedFindings {
        let text = |d: &Datum| d.to_text(TimeZone::utc()).unwrap_or_default();
        let row =
            |row: &Row| (text(&row[0]), text(&row[1]).parse().ok(), text(&row[2]), text(&row[3]));
        SavedFindings { rows: self.rows.iter().map(row).collect(), left_out: self.left_out.clone() }
    }

    /// Takes up what another process has told.
    pub(super) fn restore(&mut self, saved: SavedFindings) -> SqlResult<()> {
        let bytes = saved.left_out.as_ref().map_or(0, String::len);
        self.held.grow(bytes).map_err(|e| memory_error(&e))?;
        self.left_out = saved.left_out;
        let mut rows = saved.rows.into_iter();
        rows.try_for_each(|(result, line, subject, detail)| {
            self.tell(&result, line, &subject, &detail)
        })
    }

    /// Statements that would have been errors.
    pub(super) fn wrongs(&self) -> usize {
        self.wrong
    }

    /// Writes what was left out to a new file, if somebody wants it.
    pub(super) fn write_left_out(&self, fs: &dyn FileSystem, path: &Path) -> SqlResult<()> {
        let Some(text) = &self.left_out else { return Ok(()) };
        write_file(fs, path, text)
    }

    /// Writes the report to a file: an object in JSON for each line.
    pub(super) fn write_report(&self, fs: &dyn FileSystem, path: &Path) -> SqlResult<()> {
        let field = |d: &Datum| d.to_text(TimeZone::utc());
        let line = |row: &Row| {
            let line = field(&row[1]).and_then(|n| n.parse::<u64>().ok());
            let [result, _, subject, detail] = [0, 1, 2, 3].map(|n| field(&row[n]));
            json!({"result": result, "line": line, "subject": subject, "detail": detail})
        };
        let text: String = self.rows.iter().map(|row| format!("{}\n", line(row))).collect();
        write_file(fs, path, &text)
    }

    /// The lines of the answer.
    pub(super) fn into_rows(self) -> Vec<Row> {
        self.rows
    }
}

fn write_file(fs: &dyn FileSystem, path: &Path, text: &str) -> SqlResult<()> {
    let written = fs.create(path).and_then(|file| {
        file.write_at(text.as_bytes(), 0)?;
        file.sync_data()
    });
    written.map_err(|e| {
        let message = format!("could not write \"{}\": {e}", path.display());
        SqlError::new(SqlState::IO_ERROR, message)
    })
}

/// The beginning of a statement, in one line.
pub(super) fn head(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}..", &line[..at]),
        None => line,
    }
}
