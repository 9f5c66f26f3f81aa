//! Cursors: DECLARE, FETCH, MOVE, CLOSE.
//!
//! ```text
//!   before the first     1      2      3     behind the last
//!         0              1      2      3            4          where a cursor stands
//! ```
//! A cursor without SCROLL pulls its rows when they are fetched and keeps none of them, so it can
//! go onward only. One that scrolls keeps what has passed; one WITH HOLD keeps all from the
//! beginning, because it outlives its transaction. Kept rows go to disk when memory is short. One
//! of which nothing is said keeps what it has passed as long as that is small.
//!
//! A cursor shows what there was when it was declared. Its rows are pulled from the transaction
//! that is open, so before that writes, or sees another state, those that are left are kept.

use std::collections::VecDeque;
use std::sync::Arc;

use braid_scalar::{OpenCursor, SessionFunctions};
use braid_types::{SqlError, SqlResult, SqlState, SqlType};

use super::kept_rows::{KeptRows, KeptStream};
use super::position::{CursorTable, Known, KnownCursors};
use crate::general_query::ColumnInfo;
use crate::session::client::Session;
use crate::session::context::Context;
use crate::session::outcome::{Outcome, Rows, RowsTag};
use crate::session::prepared::Prepared;
use braid_parser::{DeclareCursor, FetchRows, Kind, Steps};
use braid_rows::Row;

/// A cursor is shown as long as there is one.
struct Shown {
    name: String,
    among: Arc<KnownCursors>,
}

impl Shown {
    fn change(&self, f: impl FnOnce(&mut Known)) {
        if let Some(known) = self.among.lock().get_mut(&self.name) {
            f(known);
        }
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        self.among.lock().remove(&self.name);
    }
}

/// What [`Session::declare`] needs beside the rows.
pub(crate) struct Declared<'a> {
    pub(crate) cursor: &'a DeclareCursor,
    /// The statement.
    pub(crate) text: Arc<str>,
    pub(crate) columns: Vec<ColumnInfo>,
    /// The tables whose rows it can tell: the columns of their keys stand behind its own.
    pub(crate) tables: &'a [CursorTable],
}

/// Whether a cursor can go back.
#[derive(Clone, Copy, PartialEq)]
enum Scroll {
    Yes,
    No,
    /// Nobody has said anything: as long as what it has passed is small.
    WhileSmall,
}

/// So many bytes of rows a cursor keeps of which nobody has said that it scrolls.
const SMALL: usize = 1 << 20;

/// A cursor.
pub(crate) struct Cursor {
    /// Those that are shown. Rows have more behind them, if it can tell rows of tables.
    columns: Vec<ColumnInfo>,
    /// Rows that nobody has pulled yet; `None` when there are no more.
    source: Option<Rows>,
    /// Pulled, and still ahead.
    ahead: VecDeque<Row>,
    /// Passed, from the first, of a cursor that scrolls; all, of one WITH HOLD; those that were
    /// left when the transaction went on.
    kept: KeptRows,
    /// The number of the row before those that are kept.
    kept_behind: u64,
    scrolls: Scroll,
    /// Where it stands.
    at: u64,
    hold: bool,
    /// Its query has failed: what it would have given from there on, nobody knows.
    failed: bool,
    /// Its query has failed behind the rows that are kept, which nobody has been told yet.
    failing: Option<SqlError>,
    /// How many savepoints there were when it was declared; `None` once its transaction has ended.
    savepoints: Option<usize>,
    shown: Shown,
}

impl Cursor {
    /// The next row, which the cursor stands on then.
    fn next(&mut self) -> SqlResult<Option<Row>> {
        if let Some(row) = self.kept_at(self.at + 1)? {
            self.at += 1;
            return Ok(Some(row));
        }
        let is_behind = self.source.is_none() && self.ahead.is_empty();
        let row = self.pull()?;
        match &row {
            Some(row) => {
                self.at += 1;
                self.keep(row)?;
            }
            None if is_behind && self.scrolls == Scroll::No => {}
            None => self.at = self.last() + 1,
        }
        Ok(row)
    }

    /// A row by its number, if it is kept.
    fn kept_at(&mut self, number: u64) -> SqlResult<Option<Row>> {
        match number.checked_sub(self.kept_behind + 1) {
            Some(at) => self.kept.get(at as usize),
            None => Ok(None),
        }
    }

    /// Keeps a row that is passed, if it can be asked for again.
    fn keep(&mut self, row: &Row) -> SqlResult<()> {
        match self.scrolls {
            Scroll::No => {}
            Scroll::Yes => self.kept.push(row.clone())?,
            Scroll::WhileSmall => {
                if !self.kept.is_small(SMALL) || self.kept.push(row.clone()).is_err() {
                    self.scrolls = Scroll::No;
                    self.kept.clear();
                    self.shown.change(|known| known.open.scrolls = false);
                }
            }
        }
        Ok(())
    }

    /// The number of the last row, once all were pulled.
    fn last(&self) -> u64 {
        if self.scrolls == Scroll::No { self.at } else { self.kept.len() as u64 }
    }

    fn pull(&mut self) -> SqlResult<Option<Row>> {
        while self.ahead.is_empty() {
            if let Some(e) = self.failing.take() {
                self.failed = true;
                return Err(e);
            }
            let Some(source) = &mut self.source else { return Ok(None) };
            match source.next_batch() {
                Ok(Some(rows)) => self.ahead.extend(rows),
                Ok(None) => self.source = None,
                Err(e) => {
                    self.failed = true;
                    return Err(e);
                }
            }
        }
        Ok(self.ahead.pop_front())
    }

    /// The row before; `None`, and the cursor stands before the first, when there is none.
    fn prior(&mut self) -> SqlResult<Option<Row>> {
        self.check_scrolls()?;
        self.at = self.at.saturating_sub(1);
        self.kept_at(self.at)
    }

    /// The row that it stands on.
    fn current(&mut self) -> SqlResult<Option<Row>> {
        self.check_scrolls()?;
        self.kept_at(self.at)
    }

    /// Whether it was declared in the transaction that is open.
    pub(in crate::session) fn is_new(&self) -> bool {
        self.savepoints.is_some()
    }

    /// Its transaction has committed.
    pub(in crate::session) fn settle(&mut self) {
        if self.savepoints.take().is_some() {
            self.shown.change(|known| known.held = true);
        }
    }

    fn check_scrolls(&self) -> SqlResult<()> {
        if self.scrolls != Scroll::No {
            return Ok(());
        }
        Err(SqlError::new(
            SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
            "cursor can only scan forward",
        )
        .with_hint("Declare it with SCROLL option to enable backward scan."))
    }

    /// Reads everything, for a cursor that outlives its transaction.
    fn pull_all(&mut self) -> SqlResult<()> {
        while let Some(source) = &mut self.source {
            let Some(rows) = source.next_batch()? else { break };
            rows.into_iter().try_for_each(|row| self.kept.push(row))?;
        }
        self.source = None;
        Ok(())
    }

    /// Keeps what is left, because its transaction goes on.
    fn keep_rest(&mut self) -> SqlResult<()> {
        if self.source.is_none() {
            return Ok(());
        }
        if self.scrolls == Scroll::No {
            self.kept_behind = self.at;
        }
        self.ahead.drain(..).try_for_each(|row| self.kept.push(row))?;
        match self.pull_all() {
            Err(e) if self.source.take().is_some() => self.failing = Some(e),
            other => other?,
        }
        Ok(())
    }

    /// Goes, and gives each row that it comes to.
    fn go(&mut self, steps: Steps, mut each: impl FnMut(Row) -> SqlResult<()>) -> SqlResult<u64> {
        let (mut found, mut stands, columns) = (0, None, self.columns.len());
        let mut give = |row: Option<Row>| -> SqlResult<bool> {
            let keys = row.as_ref().map(|row| row[columns..].to_vec());
            stands = Some(keys);
            let Some(mut row) = row else { return Ok(false) };
            row.truncate(columns);
            each(row)?;
            found += 1;
            Ok(true)
        };
        match steps {
            Steps::By(0) => drop(give(self.current()?)?),
            Steps::By(n) if n > 0 => {
                for _ in 0..n {
                    if !give(self.next()?)? {
                        break;
                    }
                }
            }
            Steps::By(n) => {
                for _ in 0..n.unsigned_abs() {
                    if !give(self.prior()?)? {
                        break;
                    }
                }
            }
            Steps::AllOnward => while give(self.next()?)? {},
            Steps::AllBack => while give(self.prior()?)? {},
            Steps::Absolute(n) => drop(give(self.absolute(n)?)?),
            Steps::Relative(n) => {
                let to = i64::try_from(self.at).unwrap_or(i64::MAX).saturating_add(n);
                let row = match (n, to) {
                    (0, _) => self.current()?,
                    (_, ..=0) => self.absolute(0)?,
                    (_, to) => self.absolute(to)?,
                };
                give(row)?;
            }
        }
        if let Some(keys) = stands {
            self.shown.change(|known| known.current = keys);
        }
        Ok(found)
    }

    /// Goes to the row with a number, from the end if it is negative.
    fn absolute(&mut self, n: i64) -> SqlResult<Option<Row>> {
        let to = match u64::try_from(n) {
            Ok(to) => to,
            Err(_) => {
                self.check_scrolls()?;
                while self.next()?.is_some() {}
                (self.last() + 1).saturating_sub(n.unsigned_abs())
            }
        };
        if to <= self.at {
            self.check_scrolls()?;
            self.at = to;
            return self.current();
        }
        while self.at + 1 < to {
            if self.next()?.is_none() {
                return Ok(None);
            }
        }
        self.next()
    }
}

impl Session {
    /// DECLARE: `rows` are those of the query.
    pub(crate) fn declare(
        &mut self,
        ctx: &Context,
        declared: Declared<'_>,
        rows: Rows,
    ) -> SqlResult<()> {
        let DeclareCursor { name, scroll, hold, binary, query } = declared.cursor;
        let savepoints = self.open.as_ref().filter(|o| o.explicit).map(|o| o.savepoints.len());
        if !hold && savepoints.is_none() {
            return Err(SqlError::new(
                SqlState::NO_ACTIVE_SQL_TRANSACTION,
                "DECLARE CURSOR can only be used in transaction blocks",
            ));
        }
        if self.cursors.contains_key(name) {
            return Err(SqlError::new(
                SqlState::DUPLICATE_CURSOR,
                format!("cursor \"{name}\" already exists"),
            ));
        }
        let mut types = column_types(&declared.columns);
        types.extend(declared.tables.iter().flat_map(|table| table.key.iter().cloned()));
        let coordinator = self.db.coordinator();
        let locks = !query.locks.is_empty();
        let scrolls = match scroll {
            Some(true) => Scroll::Yes,
            None if *hold => Scroll::Yes,
            None if !locks => Scroll::WhileSmall,
            _ => Scroll::No,
        };
        let mut cursor = Cursor {
            columns: declared.columns,
            source: Some(rows),
            ahead: VecDeque::new(),
            kept: KeptRows::new(coordinator, types, &ctx.memory, "the rows of a cursor"),
            kept_behind: 0,
            scrolls,
            at: 0,
            hold: *hold,
            failed: false,
            failing: None,
            savepoints,
            shown: Shown { name: name.clone(), among: self.state.cursors.clone() },
        };
        if *hold {
            cursor.pull_all()?;
        }
        let open = OpenCursor {
            name: name.clone(),
            text: declared.text,
            holds: *hold,
            binary: *binary,
            scrolls: scrolls != Scroll::No,
            micros: self.state.clock_micros(),
        };
        let known = Known::new(open, declared.tables, locks);
        self.state.cursors.lock().insert(name.clone(), known);
        self.cursors.insert(name.clone(), cursor);
        Ok(())
    }

    fn cursor(&mut self, name: &str) -> SqlResult<&mut Cursor> {
        self.cursors.get_mut(name).ok_or_else(|| no_cursor(name))
    }

    /// The transaction is about to write, or to see another state: open cursors go on to show
    /// theirs.
    pub(in crate::session) fn settle_cursors(&mut self) -> SqlResult<()> {
        self.cursors.values_mut().filter(|cursor| cursor.is_new()).try_for_each(Cursor::keep_rest)
    }

    /// The columns of a cursor's rows.
    pub fn cursor_columns(&self, name: &str) -> SqlResult<Vec<ColumnInfo>> {
        self.cursors.get(name).map(|c| c.columns.clone()).ok_or_else(|| no_cursor(name))
    }

    /// Whether a statement fetches from a cursor that was declared BINARY.
    pub fn fetches_binary(&self, prepared: &Prepared) -> bool {
        let Kind::Fetch(fetch) = &*prepared.statement.kind else { return false };
        self.state.cursors.lock().get(&fetch.cursor).is_some_and(|known| known.open.binary)
    }

    /// FETCH and MOVE.
    pub(crate) fn fetch(&mut self, fetch: &FetchRows) -> SqlResult<Outcome> {
        let coordinator = self.db.coordinator().clone();
        let account = coordinator.memory().account(self.state.derived().sizes.statement);
        let cursor = self.cursor(&fetch.cursor)?;
        if cursor.failed {
            let text = format!("portal \"{}\" cannot be run", fetch.cursor);
            return Err(SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, text));
        }
        if fetch.only_move {
            let passed = cursor.go(fetch.steps, |_| Ok(()))?;
            return Ok(Outcome::Done(format!("MOVE {passed}")));
        }
        let types = column_types(&cursor.columns);
        let mut rows = KeptRows::new(&coordinator, types, &account, "the rows of a FETCH");
        let found = cursor.go(fetch.steps, |row| rows.push(row))?;
        let tag = RowsTag::Fixed(format!("FETCH {found}"));
        Ok(Outcome::Rows(Rows::new(Box::new(KeptStream::new(rows)), tag).holding(account)))
    }

    /// CLOSE; `None`: all.
    pub(crate) fn close_cursor(&mut self, name: Option<&str>) -> SqlResult<()> {
        match name {
            None => self.cursors.clear(),
            Some(name) => drop(self.cursors.remove(name).ok_or_else(|| no_cursor(name))?),
        }
        Ok(())
    }

    /// A transaction ends: its cursors go, but for those WITH HOLD if it commits.
    pub(in crate::session) fn end_cursors(&mut self, commits: bool) {
        self.cursors.retain(|_, cursor| !cursor.is_new() || (commits && cursor.hold));
    }

    /// What was declared since this savepoint never was.
    pub(in crate::session) fn forget_cursors_since(&mut self, savepoint: usize) {
        self.cursors.retain(|_, cursor| cursor.savepoints.is_none_or(|n| n <= savepoint));
    }

    /// A savepoint is forgotten: what was declared since belongs to the one before it.
    pub(in crate::session) fn adopt_cursors(&mut self, savepoint: usize) {
        for cursor in self.cursors.values_mut() {
            cursor.savepoints = cursor.savepoints.map(|n| n.min(savepoint));
        }
    }
}

fn column_types(columns: &[ColumnInfo]) -> Vec<SqlType> {
    columns.iter().map(|column| column.ty.clone()).collect()
}

pub(super) fn no_cursor(name: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_CURSOR_NAME, format!("cursor \"{name}\" does not exist"))
}
