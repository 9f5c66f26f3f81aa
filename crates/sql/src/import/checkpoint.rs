//! What an import notes on the disk, so that it goes on from there after a crash or a full disk.
//!
//! ```text
//!   job-7-note   the files and the table, as they were; up to where each file was read;
//!                which files of the load hold what came of that
//! ```
//! A note counts only if nothing is different from then: the input's files have their sizes and
//! times, the table and those that it refers to have their descriptors, and no row has been written
//! to the latter since (the import had kept writers out of them, until it ended). If anything is,
//! the import begins from its first row. Rows that were refused are in the note, too.

use std::collections::BTreeMap;

use braid_catalog::kv_error;
use braid_import::{Position, SourceFile};
use braid_kv::{CommitTs, KeySpan, SavedLoad};
use braid_types::{SqlError, SqlResult};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::refused::StoredRefusal;
use crate::dml::table_load::Written;
use crate::dml::writer::TableInfo;
use crate::session::Context;

/// How far a file was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileMark {
    offset: u64,
    number: u64,
    /// Nothing is left of it.
    pub(super) done: bool,
    /// Bytes of it on the disk that were read.
    pub(super) read: u64,
    /// Rows and misfits that were taken from it.
    pub(super) taken: u64,
}

impl FileMark {
    /// At a position.
    pub(super) fn at(end: Position, done: bool, read: u64, taken: u64) -> FileMark {
        FileMark { offset: end.offset, number: end.number, done, read, taken }
    }

    /// Where reading goes on.
    pub(super) fn position(&self) -> Position {
        Position { offset: self.offset, number: self.number }
    }
}

/// What one of the loads that are filled side by side has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Part {
    /// Files that it has taken rows of, by their place in the list.
    pub(super) files: BTreeMap<usize, FileMark>,
    /// Rows, entries, bytes.
    written: (u64, u64, u64),
    /// As [`SavedLoad::encode`], in hexadecimal digits.
    saved: String,
}

impl Part {
    pub(super) fn new(
        files: BTreeMap<usize, FileMark>,
        written: Written,
        saved: &SavedLoad,
    ) -> Part {
        let written = (written.rows, written.entries, written.bytes);
        let saved = saved.encode().iter().map(|b| format!("{b:02x}")).collect();
        Part { files, written, saved }
    }

    pub(super) fn written(&self) -> Written {
        let (rows, entries, bytes) = self.written;
        Written { rows, entries, bytes }
    }

    pub(super) fn saved(&self) -> Option<SavedLoad> {
        let digit = |c: u8| char::from(c).to_digit(16).and_then(|d| u8::try_from(d).ok());
        let pairs = self.saved.as_bytes().chunks(2);
        let bytes: Option<Vec<u8>> =
            pairs.map(|pair| Some(digit(*pair.first()?)? << 4 | digit(*pair.get(1)?)?)).collect();
        SavedLoad::decode(&bytes?)
    }
}

/// See the [module documentation](self).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Note {
    /// A form that is not known is as none.
    form: u32,
    /// Everything that it depends on, but for rows.
    surroundings: u64,
    /// Rows of other tables are as they were at this time.
    at: u64,
    pub(super) parts: Vec<Part>,
    pub(super) refused: Vec<StoredRefusal>,
    /// How much of the job was done.
    pub(super) fraction: f64,
}

const FORM: u32 = 1;

impl Note {
    pub(super) fn new(
        ctx: &Context,
        surroundings: u64,
        parts: Vec<Part>,
        refused: Vec<StoredRefusal>,
        fraction: f64,
    ) -> SqlResult<Note> {
        let at = ctx.db.coordinator().now().map_err(kv_error)?.0;
        Ok(Note { form: FORM, surroundings, at, parts, refused, fraction })
    }

    /// Writes it; durable when it returns.
    pub(super) fn store(&self, ctx: &Context, job: u32) -> SqlResult<()> {
        let content = as_json(self)?;
        ctx.db.coordinator().write_job_note(job, content.as_bytes()).map_err(kv_error)
    }

    /// The note of a job, if it counts. The caller keeps writers out of the tables.
    pub(super) fn read(
        ctx: &Context,
        job: u32,
        info: &TableInfo,
        surroundings: u64,
    ) -> SqlResult<Option<Note>> {
        let coordinator = ctx.db.coordinator();
        let Some(content) = coordinator.read_job_note(job) else { return Ok(None) };
        let Ok(note) = serde_json::from_slice::<Note>(&content) else { return Ok(None) };
        if note.form != FORM || note.surroundings != surroundings {
            return Ok(None);
        }
        let unchanged = coordinator.is_unchanged(referenced(info), CommitTs(note.at));
        Ok(unchanged.map_err(kv_error)?.then_some(note))
    }

    /// Whether a file of the job's load is still needed.
    pub(super) fn needs(&self, job: u32, name: &str) -> bool {
        name == format!("job-{job}-note")
            || self.parts.iter().any(|part| part.saved().is_some_and(|s| s.needs(name)))
    }
}

/// Where the rows are that rows of the table refer to.
fn referenced(info: &TableInfo) -> Vec<KeySpan> {
    info.referenced().map(|parent| parent.rows.whole_span()).collect()
}

/// A number that is another one if something is different that an import depends on.
pub(super) fn surroundings(
    info: &TableInfo,
    files: &[SourceFile],
    statement: &str,
) -> SqlResult<u64> {
    let mut all = vec![as_json(&**info.table())?];
    for parent in info.referenced() {
        all.push(as_json(&*parent.table)?);
    }
    all.extend(facts(files));
    all.push(statement.into());
    Ok(xxh3_64(all.join("\n").as_bytes()))
}

/// What is another one if a file has changed.
pub(super) fn facts(files: &[SourceFile]) -> Vec<String> {
    files.iter().map(|f| format!("{} {} {}", f.name, f.size, f.modified)).collect()
}

/// What a note is made of. Never nothing instead of an error: an import would go on from there.
pub(super) fn as_json(value: &impl Serialize) -> SqlResult<String> {
    serde_json::to_string(value)
        .map_err(|e| SqlError::internal(format!("a note of an import cannot be written: {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_keep_their_saved_loads() {
        let mark = FileMark::at(Position { offset: 9, number: 3 }, false, 10, 2);
        let files = BTreeMap::from([(1, mark)]);
        let written = Written { rows: 2, entries: 4, bytes: 60 };
        let part = Part::new(files, written, &SavedLoad::default());
        let text = serde_json::to_string(&part).unwrap();
        let back: Part = serde_json::from_str(&text).unwrap();
        assert_eq!((&back, back.saved()), (&part, Some(SavedLoad::default())));
        assert_eq!((back.written(), back.files[&1].position().number), (written, 3));
        assert_eq!(Part { saved: "0g".into(), ..part }.saved(), None);
    }
}
