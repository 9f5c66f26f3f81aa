//! A dump on its way into the database, statement by statement.

use std::sync::Arc;

use braid_env::clock::{Clock, WallClock};
use braid_env::fs::DiskFs;
use braid_env::memory::Account;
use braid_import::dump::{Dump, Piece};
use braid_import::{Folder, SourceFile};
use braid_parser::{ImportDump, Kind};
use braid_types::{SqlError, SqlResult, SqlState, TimeZone};

use super::super::outcome::note_failure;
use super::findings::{Findings, head};
use super::hierarchy::{self, Wish};
use super::kinds::{
    destroys, ignored, is_foreign_key, is_of_function, is_of_node, is_of_rights, is_unsupported,
    own_identity, starts, words,
};
use super::options::Options;
use crate::copy::CopyIn;
use crate::database::Database;
use crate::jobs::registry::Job;
use crate::jobs::{Record, State};
use crate::session::{Outcome, Rows, RowsTag, Session, VecRows};

/// Data that is handed to a COPY at once.
const CHUNK: usize = 256 << 10;

/// A dump on its way into the database.
struct Load<'a> {
    session: Session,
    options: Options,
    file: SourceFile,
    folder: Folder,
    job: &'a Job,
    findings: Findings,
    rows: u64,
    /// Bytes of rows, as they stand in the dump.
    bytes: u64,
    tables: u64,
}

/// IMPORT PGDUMP, in a session of its own.
pub(crate) fn import_dump(
    mut session: Session,
    (db, database): (&Arc<Database>, &str),
    d: &ImportDump,
    statement: &str,
) -> SqlResult<Outcome> {
    let options = Options::read(d)?;
    db.only_alone("IMPORT PGDUMP", "Play a dump in plain text with psql.")?;
    let mut files = files_of(db.import_folder()?, &d.file)?;
    let (Some(file), true) = (files.pop(), files.is_empty()) else {
        let state = SqlState::INVALID_PARAMETER_VALUE;
        return Err(SqlError::new(state, format!("\"{}\" is more than one dump", d.file)));
    };
    let folder = db.import_folder()?.clone();
    let log = options.log_ignored.as_deref().map(|name| folder.new_file(name)).transpose()?;
    let record = Record::new(db.new_ids(1)?, "import", statement);
    record.store(db.coordinator())?;
    let id = record.id;
    let job = db.jobs().start_pausable(record, Vec::new(), session.cancel_flag());
    let account = db.coordinator().memory().account(usize::MAX);
    let there = hierarchy::tables_of(db, database)?;
    run_statement(&mut session, "BEGIN")?;
    let findings = Findings::new(&account, options.log_ignored.is_some());
    let begun = WallClock.monotonic_nanos();
    let (rows, bytes, tables) = (0, 0, 0);
    let mut load =
        Load { session, options, file, folder, job: &job, findings, rows, bytes, tables };
    let done = load.run(&account).and_then(|()| load.end(&there, begun, log.as_deref()));
    if done.is_err() {
        run_statement(&mut load.session, "ROLLBACK").map(|_| ())?;
    }
    db.jobs().end(id);
    let record = job.record();
    match done {
        Ok(()) => {
            Record { state: State::Succeeded, fraction: 1.0, ..record }.store(db.coordinator())?;
            let tag = RowsTag::Fixed(format!("IMPORT {}", load.rows));
            let rows = load.findings.into_rows();
            Ok(Outcome::Rows(Rows::new(Box::new(VecRows::new(rows)), tag)))
        }
        Err(e) => {
            note_failure(db, record, &e);
            Err(e)
        }
    }
}

/// The file of a dump; of a directory that pg_dump wrote, its table of contents.
fn files_of(folder: &Folder, name: &str) -> SqlResult<Vec<SourceFile>> {
    match folder.files(name) {
        Err(e) if e.state() == SqlState::WRONG_OBJECT_TYPE => {
            let toc = format!("{}/toc.dat", name.trim_end_matches('/'));
            folder.files(&toc).map_err(|_| e)
        }
        other => other,
    }
}

impl Load<'_> {
    /// What there is to do when all statements have run; then it counts, or is taken back.
    fn end(
        &mut self,
        there: &hierarchy::Tables,
        begun: u64,
        log: Option<&std::path::Path>,
    ) -> SqlResult<()> {
        let wish = self.options.interleave.clone();
        if self.options.propose || wish != Wish::Flat {
            self.job.phase("hierarchy");
            // Dumps take it away.
            run_statement(&mut self.session, "SET search_path = public")?;
        }
        let moved = hierarchy::apply(&mut self.session, &wish, there, &mut self.findings);
        moved.map_err(|e| self.of_file(e))?;
        if self.options.propose {
            hierarchy::propose(&mut self.session, &mut self.findings)?;
        }
        if let Some(path) = log {
            self.findings.write_left_out(&*DiskFs::shared(), path)?;
        }
        if !self.options.dry_run {
            return run_statement(&mut self.session, "COMMIT").map(|_| ());
        }
        self.sum_up(WallClock.monotonic_nanos().saturating_sub(begun))?;
        run_statement(&mut self.session, "ROLLBACK").map(|_| ())
    }

    /// The end of a dry run's report.
    fn sum_up(&mut self, nanos: u64) -> SqlResult<()> {
        let rate = self.rows as f64 / (nanos.max(1) as f64 / 1e9);
        let wrong = self.findings.wrongs();
        for (what, value) in [
            ("tables", self.tables.to_string()),
            ("rows", self.rows.to_string()),
            ("bytes of rows", self.bytes.to_string()),
            ("rows per second", format!("{rate:.0}")),
            ("statements that fail", wrong.to_string()),
        ] {
            self.findings.tell("total", None, what, &value)?;
        }
        Ok(())
    }

    /// An error that has to do with the dump, but with no statement of it.
    fn of_file(&self, e: SqlError) -> SqlError {
        let place = format!("file \"{}\"", self.file.name);
        let detail = e.detail().map_or(place.clone(), |d| format!("{d}\n{place}"));
        e.with_detail(detail)
    }

    fn run(&mut self, account: &Arc<Account>) -> SqlResult<()> {
        let (compression, longest) = (self.options.compression, self.options.row_bytes_max);
        let fs = DiskFs::shared();
        let folder = self.folder.clone();
        let mut dump = Dump::open(&fs, &folder, &self.file, compression, longest, account)?;
        self.job.phase("read");
        while let Some(piece) = dump.next_piece()? {
            self.session.pass(self.job)?;
            self.job.at_least(dump.position() as f64 / self.file.size.max(1) as f64);
            match piece {
                Piece::Command(line, text) => {
                    self.findings.tell("ignored", Some(line), &text, "a command of psql")?;
                }
                Piece::Statement(line, text) => {
                    let words = words(&text);
                    match self.take(&mut dump, line, &text, &words) {
                        Err(e) if self.options.dry_run && !is_of_node(&e) && !is_of_dump(&e) => {
                            self.findings.wrong(line, &text, &e)?;
                        }
                        taken => taken.map_err(|e| self.placed(e, line, &text, &dump))?,
                    }
                }
            }
        }
        Ok(())
    }

    fn take(&mut self, dump: &mut Dump, line: u64, text: &str, words: &[String]) -> SqlResult<()> {
        if let Some(why) = ignored(words) {
            return self.findings.leave_out(line, text, why);
        }
        if destroys(words) && !self.options.allow_destructive {
            let state = SqlState::FEATURE_NOT_SUPPORTED;
            return Err(SqlError::new(state, "the dump takes away what is there")
                .with_hint("WITH allow_destructive lets it."));
        }
        if self.options.skip_foreign_keys && is_foreign_key(words) {
            return self.findings.leave_out(line, text, "skip_foreign_keys");
        }
        if starts(words, &["create", "schema", "public"]) {
            return self.findings.leave_out(line, text, "the schema is there");
        }
        if starts(words, &["copy"]) && words.iter().any(|w| w == "stdin") {
            return self.copy(dump, line, text);
        }
        if is_of_rights(words) || is_of_function(words) {
            return self.rights(line, text);
        }
        let named = own_identity(text, words);
        if named.is_some() {
            let why = "the sequence has the name that the table gives it";
            self.findings.tell("changed", Some(line), text, why)?;
        }
        match self.run_one(named.as_deref().unwrap_or(text)) {
            Err(e) if self.may_be_left_out(&e, words) => {
                let why = format!("{}: {}", e.state().0, e.message());
                self.findings.leave_out(line, text, &why)
            }
            Err(e) if is_unsupported(&e) => {
                Err(e.with_hint("WITH ignore_unsupported_statements leaves such statements out."))
            }
            other => other,
        }
    }

    /// Runs a statement about roles, owners, rights or functions, if that is possible here.
    fn rights(&mut self, line: u64, text: &str) -> SqlResult<()> {
        let shown = text.split(" PASSWORD ").next().unwrap_or_default();
        match self.run_one(text) {
            Err(e) if is_of_node(&e) => Err(e),
            Err(e) => self.findings.leave_out(line, shown, e.message()),
            Ok(()) => Ok(()),
        }
    }

    /// Whether the dump goes on without a statement that failed.
    fn may_be_left_out(&self, e: &SqlError, words: &[String]) -> bool {
        let unsupported = is_unsupported(e);
        // Settings of other versions say nothing about rows.
        let setting = starts(words, &["set"]) && e.state() == SqlState::UNDEFINED_OBJECT;
        setting || unsupported && self.options.ignore_unsupported
    }

    /// Runs a statement, so that the transaction goes on if it fails.
    fn run_one(&mut self, text: &str) -> SqlResult<()> {
        run_statement(&mut self.session, "SAVEPOINT dump")?;
        let done = run_statement(&mut self.session, text);
        if done.is_err() {
            run_statement(&mut self.session, "ROLLBACK TO SAVEPOINT dump")?;
        }
        run_statement(&mut self.session, "RELEASE SAVEPOINT dump")?;
        done.map(|_| ())
    }

    /// Runs a COPY with the data that follows. Of a dry run, what comes behind a COPY that fails is
    /// read on from the end of its data.
    fn copy(&mut self, dump: &mut Dump, line: u64, text: &str) -> SqlResult<()> {
        let table = copied_table(text);
        let mut at_end = false;
        if !self.options.dry_run {
            return self.copy_rows(dump, line, (text, &table), &mut at_end);
        }
        run_statement(&mut self.session, "SAVEPOINT dump")?;
        let copied = self.copy_rows(dump, line, (text, &table), &mut at_end);
        if let Err(e) = &copied {
            if is_of_node(e) || is_of_dump(e) {
                return copied;
            }
            run_statement(&mut self.session, "ROLLBACK TO SAVEPOINT dump")?;
            while !at_end && dump.data()?.is_some() {}
        }
        run_statement(&mut self.session, "RELEASE SAVEPOINT dump")?;
        copied
    }

    fn copy_rows(
        &mut self,
        dump: &mut Dump,
        line: u64,
        (text, table): (&str, &str),
        at_end: &mut bool,
    ) -> SqlResult<()> {
        let mut copy = match run_statement(&mut self.session, text)? {
            Outcome::CopyIn(copy) => copy,
            _ => return Err(SqlError::internal("a COPY that wants no data")),
        };
        let mut chunk = Vec::new();
        let (mut taken, mut bytes) = (0u64, 0);
        while let Some((_, data)) = dump.data()? {
            if taken >= self.options.row_limit {
                continue;
            }
            taken += 1;
            bytes += data.len() as u64;
            chunk.extend_from_slice(data);
            chunk.push(b'\n');
            if chunk.len() >= CHUNK {
                self.session.pass(self.job)?;
                self.job.at_least(dump.position() as f64 / self.file.size.max(1) as f64);
                feed(&mut copy, &mut chunk, line)?;
            }
        }
        *at_end = true;
        feed(&mut copy, &mut chunk, line)?;
        let rows = copy.finish().map_err(|e| in_data(e, line))?;
        self.rows += rows;
        self.bytes += bytes;
        self.tables += 1;
        self.findings.tell("loaded", Some(line), table, &format!("{rows} rows"))
    }

    /// An error with its place in the dump and what failed.
    fn placed(&self, e: SqlError, line: u64, text: &str, dump: &Dump) -> SqlError {
        let name = format!("file \"{}\"", self.file.name);
        let place = dump.entry(line).unwrap_or_else(|| format!("line {line}"));
        let place = format!("{name}, {place}: {}", head(text));
        match e.detail() {
            Some(d) if d.contains(&name) => e,
            Some(d) => {
                let detail = format!("{d}\n{place}");
                e.with_detail(detail)
            }
            None => e.with_detail(place),
        }
    }
}

fn feed(copy: &mut CopyIn, chunk: &mut Vec<u8>, line: u64) -> SqlResult<()> {
    let fed = copy.feed(chunk);
    chunk.clear();
    fed.map_err(|e| in_data(e, line))
}

/// The lines that a COPY speaks of are those of its data, which begin behind its statement.
fn in_data(e: SqlError, line: u64) -> SqlError {
    let detail = e.detail().unwrap_or_default();
    let detail = format!("{detail}\nLines are counted from line {line} of the dump.");
    e.with_detail(detail.trim_start().to_string())
}

/// The table that a COPY of pg_dump names, as it is written.
fn copied_table(text: &str) -> String {
    let rest = text.split_once(char::is_whitespace).map_or("", |(_, rest)| rest.trim_start());
    let mut quoted = false;
    let end = rest.find(|c: char| {
        quoted ^= c == '"';
        !quoted && (c.is_whitespace() || c == '(')
    });
    rest[..end.unwrap_or(rest.len())].to_string()
}

/// An error of the dump itself: what comes behind it cannot be told apart.
fn is_of_dump(e: &SqlError) -> bool {
    e.state() == SqlState::BAD_COPY_FILE_FORMAT && e.detail().is_some_and(|d| d.contains("file \""))
}

/// Runs a statement of the session.
pub(super) fn run_statement(session: &mut Session, text: &str) -> SqlResult<Outcome> {
    match started(session, text)? {
        Outcome::Rows(mut rows) => {
            while rows.next_batch()?.is_some() {}
            Ok(Outcome::Done(rows.tag()))
        }
        other => Ok(other),
    }
}

/// The rows of a query, as text.
pub(super) fn query(session: &mut Session, text: &str) -> SqlResult<Vec<Vec<Option<String>>>> {
    let mut out = Vec::new();
    if let Outcome::Rows(mut rows) = started(session, text)? {
        while let Some(batch) = rows.next_batch()? {
            let shown = |row: &crate::Row| row.iter().map(|d| d.to_text(TimeZone::utc())).collect();
            out.extend(batch.iter().map(shown));
        }
    }
    Ok(out)
}

fn started(session: &mut Session, text: &str) -> SqlResult<Outcome> {
    let mut statements = session.parse_script(text)?;
    let Some(statement) = statements.pop().filter(|s| !matches!(&*s.kind, Kind::Empty)) else {
        return Ok(Outcome::Empty);
    };
    let prepared = session.prepare(statement, &[])?;
    session.execute(&prepared, Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_names_its_table() {
        for (text, name) in [
            ("COPY public.t (a, b) FROM stdin", "public.t"),
            ("COPY \"My (odd) schema\".\"T\"\"x\" FROM stdin", "\"My (odd) schema\".\"T\"\"x\""),
            ("COPY t(a) FROM stdin", "t"),
            ("COPY", ""),
        ] {
            assert_eq!(copied_table(text), name);
        }
    }
}
