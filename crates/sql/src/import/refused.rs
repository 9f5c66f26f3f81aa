//! Rows that are no good: an error with its place, or, up to a number, lines of a file.

use std::collections::BTreeMap;
use std::path::Path;

use braid_catalog::{Table, memory_error};
use braid_env::fs::FileSystem;
use braid_types::{SqlError, SqlResult, SqlState};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::dml::table_load::is_of_row;
use crate::session::Context;

/// A row's place: the file by its place in the list, and its line or number there.
pub(super) type Place = (usize, u64);

/// How much of a row's text is kept.
const TEXT_MAX: usize = 64 << 10;
/// Of a dry run: so many problems are shown.
const SHOWN: u64 = 100;

/// A row that is no good.
#[derive(Clone, Debug)]
pub(super) struct Refusal {
    pub(super) error: SqlError,
    /// The column that fails, by name.
    pub(super) column: Option<String>,
    /// As it stands in the file, if it was read as text.
    pub(super) text: Option<String>,
}

/// A refusal as a checkpoint keeps it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct StoredRefusal {
    place: Place,
    state: String,
    message: String,
    detail: Option<String>,
    constraint: Option<String>,
    column: Option<String>,
    text: Option<String>,
}

/// See the [module documentation](self).
pub(super) struct Refused {
    names: Vec<String>,
    /// `line` or `row`.
    counts: &'static str,
    table: String,
    /// More than so many end the import; of a dry run they do not.
    most: u64,
    /// Kept at most.
    kept: u64,
    dry_run: bool,
    found: BTreeMap<Place, Refusal>,
    /// Those that are not kept, too.
    count: u64,
    /// Of them, those whose key is taken.
    taken: u64,
}

impl Refused {
    pub(super) fn new(
        table: &Table,
        names: Vec<String>,
        counts: &'static str,
        most: u64,
        dry_run: bool,
    ) -> Refused {
        let kept = if dry_run { most.max(SHOWN) } else { most };
        let (table, found) = (table.name.clone(), BTreeMap::new());
        Refused { names, counts, table, most, kept, dry_run, found, count: 0, taken: 0 }
    }

    /// Whether rows may be no good at all.
    pub(super) fn tolerates(&self) -> bool {
        self.dry_run || self.most > 0
    }

    /// How many there are.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Of them, those that fit but for their key.
    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    /// Those that are kept, in order.
    pub(super) fn all(&self) -> impl Iterator<Item = (&Place, &Refusal)> {
        self.found.iter()
    }

    /// Whether a row was refused.
    pub(super) fn holds(&self, place: &Place) -> bool {
        self.found.contains_key(place)
    }

    /// How many more may come, and one.
    pub(super) fn room(&self) -> u64 {
        self.kept.saturating_sub(self.found.len() as u64) + 1
    }

    /// Forgets all of them: everything is read again.
    pub(super) fn clear(&mut self) {
        self.found.clear();
        (self.count, self.taken) = (0, 0);
    }

    /// What a checkpoint keeps.
    pub(super) fn stored(&self) -> Vec<StoredRefusal> {
        let stored = |(place, r): (&Place, &Refusal)| StoredRefusal {
            place: *place,
            state: r.error.state().0.into(),
            message: r.error.message().into(),
            detail: r.error.detail().map(str::to_string),
            constraint: r.error.constraint().map(str::to_string),
            column: r.column.as_deref().or(r.error.column()).map(str::to_string),
            text: r.text.clone(),
        };
        self.found.iter().map(stored).collect()
    }

    /// Takes up what a checkpoint has kept.
    pub(super) fn restore(&mut self, ctx: &Context, stored: Vec<StoredRefusal>) -> SqlResult<()> {
        for StoredRefusal { place, state, message, detail, constraint, column, text } in stored {
            let state = SqlState::of_code(&state).unwrap_or(SqlState::INVALID_PARAMETER_VALUE);
            let mut error = SqlError::new(state, message);
            if let Some(detail) = detail {
                error = error.with_detail(detail);
            }
            if let Some(constraint) = constraint {
                error = error.with_constraint(constraint);
            }
            self.add(ctx, place, Refusal { error, column, text })?;
        }
        Ok(())
    }

    /// Where a row is, for messages.
    pub(super) fn place(&self, (file, number): Place, column: Option<&str>) -> String {
        let name = self.names.get(file).map_or("", String::as_str);
        let column = column.map(|c| format!(", column {c}")).unwrap_or_default();
        format!("file \"{name}\", {} {number}{column}", self.counts)
    }

    /// An error with its place as the last line of its detail.
    pub(super) fn placed(&self, e: SqlError, place: Place, column: Option<&str>) -> SqlError {
        let column = column.or(e.column()).map(str::to_string);
        let place = self.place(place, column.as_deref());
        let detail = match e.detail() {
            Some(d) => format!("{d}\nIMPORT INTO {}, {place}", self.table),
            None => format!("IMPORT INTO {}, {place}", self.table),
        };
        e.with_detail(detail)
    }

    /// A row is no good.
    ///
    /// # Errors
    /// Its error with the place if that ends the import.
    pub(super) fn add(&mut self, ctx: &Context, place: Place, refusal: Refusal) -> SqlResult<()> {
        if self.found.contains_key(&place) {
            return Ok(());
        }
        let column = refusal.column.as_deref();
        self.count += 1;
        if !self.dry_run && self.count > self.most {
            let e = self.placed(refusal.error.clone(), place, column);
            return Err(match self.most {
                0 => e,
                most => e.with_hint(format!("More rows are no good than max_bad_rows = {most}.")),
            });
        }
        if (self.found.len() as u64) < self.kept {
            let mut refusal = refusal;
            if let Some(text) = &mut refusal.text {
                let end = text.floor_char_boundary(TEXT_MAX);
                text.truncate(end);
            }
            let bytes = 256 + refusal.text.as_ref().map_or(0, String::len);
            ctx.memory.take("rows that were refused", bytes).map_err(|e| memory_error(&e))?;
            self.found.insert(place, refusal);
        }
        Ok(())
    }

    /// A row is no good, or something else has happened to it.
    ///
    /// # Errors
    /// As of [`Refused::add`]; what is not about the row, with its place.
    pub(super) fn add_if_of_row(&mut self, ctx: &Context, at: Place, r: Refusal) -> SqlResult<()> {
        if is_of_row(&r.error) {
            return self.add(ctx, at, r);
        }
        Err(self.placed(r.error, at, r.column.as_deref()))
    }

    /// A row's key is taken.
    ///
    /// # Errors
    /// As of [`Refused::add`].
    pub(super) fn add_taken(&mut self, ctx: &Context, at: Place, r: Refusal) -> SqlResult<()> {
        let before = self.count;
        self.add(ctx, at, r)?;
        self.taken += self.count - before;
        Ok(())
    }

    /// Writes all of them into a new file: one JSON object in each line.
    pub(super) fn write(&self, fs: &dyn FileSystem, path: &Path) -> SqlResult<()> {
        let mut out = String::new();
        for (place, r) in &self.found {
            let line = json!({
                "file": self.names.get(place.0), self.counts: place.1,
                "column": r.column.as_deref().or(r.error.column()),
                "constraint": r.error.constraint(), "sqlstate": r.error.state().0,
                "message": r.error.message(), "detail": r.error.detail(), "row": r.text,
            });
            out.push_str(&line.to_string());
            out.push('\n');
        }
        let written = fs.create(path).and_then(|file| {
            file.write_at(out.as_bytes(), 0)?;
            file.sync_data()
        });
        written.map_err(|e| {
            let path = path.display();
            SqlError::new(SqlState::IO_ERROR, format!("cannot write \"{path}\": {e}"))
        })
    }
}
