//! A dump on its way into the database, statement by statement.

use std::sync::Arc;

use braid_catalog::kv_error;
use braid_env::clock::{Clock, WallClock};
use braid_env::fs::DiskFs;
use braid_env::memory::Account;
use braid_import::dump::{Dump, Piece, Place};
use braid_import::{Folder, SourceFile};
use braid_parser::Kind;
use braid_rows::Row;
use braid_types::{SqlError, SqlResult, SqlState, TimeZone};

use super::super::outcome::forget_files;
use super::absent::{is_undefined, name_at};
use super::alone::alone;
use super::checkpoint::{Copying, Note, Pace, SoFar, note_in_record, surroundings};
use super::findings::{Findings, SavedFindings, head};
use super::hierarchy::{self, Wish};
use super::instead::instead;
use super::job::Written;
use super::kinds::{
    attaches_index, destroys, ignored, is_foreign_key, is_of_function, is_of_node, is_of_rights,
    is_of_transactions, is_unsupported, makes_table, starts, words,
};
use super::options::Options;
use crate::bulk::erase_abandoned;
use crate::copy::CopyIn;
use crate::database::Database;
use crate::jobs::registry::Job;
use crate::jobs::{Record, State};
use crate::session::{Outcome, Session};

/// Data that is handed to a COPY at once.
const CHUNK: usize = 256 << 10;
/// Of the memory: as rows it takes many times as much.
const CHUNK_PART: usize = 256;
/// At least so much, where checkpoints are closer.
const CHUNK_LEAST: usize = 8 << 10;

/// See the [module documentation](self).
pub(super) struct Load<'a> {
    db: Arc<Database>,
    pub(super) session: Session,
    options: Options,
    file: SourceFile,
    folder: Folder,
    written: Written,
    job: &'a Job,
    account: Arc<Account>,
    findings: Findings,
    /// But for what the findings tell.
    so_far: SoFar,
    /// Bytes of all files.
    size: u64,
    surroundings: u64,
    pace: Pace,
    /// Where the dump ends, when it was read.
    end: Option<Place>,
}

/// A COPY whose rows come.
struct Copy {
    to: Box<CopyIn>,
    table: String,
    what: Copying,
}

impl Load<'_> {
    pub(super) fn new<'a>(
        db: &Arc<Database>,
        (session, options): (Session, Options),
        (folder, file, written): (Folder, SourceFile, Written),
        job: &'a Job,
    ) -> Load<'a> {
        let account = db.coordinator().memory().account(options.memory.unwrap_or(usize::MAX));
        if let Some(memory) = options.memory {
            session.pay_from(&account, memory / 4 * 3);
        }
        let findings = Findings::new(&account, options.log_ignored.is_some());
        let pace = Pace::new((!options.dry_run).then_some(options.checkpoint_bytes));
        Load {
            db: db.clone(),
            session,
            options,
            size: file.size,
            file,
            folder,
            written,
            job,
            account,
            findings,
            so_far: SoFar::default(),
            surroundings: 0,
            pace,
            end: None,
        }
    }

    /// How many rows came, and what became of the statements.
    pub(super) fn into_report(self) -> (u64, Vec<Row>) {
        (self.so_far.rows, self.findings.into_rows())
    }

    fn open(&self, from: &Place) -> SqlResult<Dump> {
        let Options { compression, row_bytes_max, .. } = self.options;
        let fs = DiskFs::shared();
        Dump::open(&fs, &self.folder, &self.file, compression, row_bytes_max, &self.account, from)
    }

    /// Begins the transaction; or goes on with that of an earlier process, where it noted that it
    /// was.
    fn begin(&mut self, again: bool) -> SqlResult<(Dump, Option<Copy>)> {
        let dump = self.open(&Place::default())?;
        self.size = dump.size();
        self.surroundings = surroundings(&dump.files(), &self.job.record().statement);
        let note = if again { self.last_note()? } else { None };
        run_statement(&mut self.session, "BEGIN")?;
        let Some(note) = note else { return Ok((dump, None)) };
        match self.take_up(&note) {
            Ok(copy) => {
                let place = note.place();
                self.pace.wrote(place.text.offset, 0);
                tracing::info!(job = self.job.id(), line = place.text.number, "a dump goes on");
                return Ok((self.open(&place)?, copy));
            }
            Err(e) if is_of_process(&e) => return Err(e),
            Err(error) => {
                tracing::warn!(job = self.job.id(), %error, "a checkpoint is of no use");
            }
        }
        run_statement(&mut self.session, "ROLLBACK")?;
        self.so_far = SoFar::default();
        self.findings = Findings::new(&self.account, self.options.log_ignored.is_some());
        forget_files(&self.db, self.job.id());
        self.keep(None)?;
        erase_abandoned(self.db.coordinator())?;
        run_statement(&mut self.session, "BEGIN")?;
        Ok((dump, None))
    }

    /// The note of an earlier process, when all is gone that this does not know of.
    fn last_note(&self) -> SqlResult<Option<Note>> {
        let coordinator = self.db.coordinator();
        let read = || Note::read(coordinator, self.job.id(), self.surroundings);
        self.keep(read().map(|note| note.loads()).as_deref())?;
        erase_abandoned(coordinator)?;
        // What was erased may have taken along what it knows of.
        let note = read();
        if note.is_none() {
            forget_files(&self.db, self.job.id());
            self.keep(None)?;
        }
        Ok(note)
    }

    /// Says which loads stay when the process ends.
    fn keep(&self, loads: Option<&[u32]>) -> SqlResult<()> {
        let mut record = Record { mark: None, ..self.job.record() };
        loads.iter().for_each(|loads| record.keep_loads(loads));
        self.job.set_mark(record.mark.clone());
        note_in_record(self.db.coordinator(), &record)
    }

    /// Becomes what a note says; the COPY that it was in.
    fn take_up(&mut self, note: &Note) -> SqlResult<Option<Copy>> {
        let so_far = note.head.so_far.clone();
        self.session.restore_block(&note.head.block, &note.txn, &so_far.loaded)?;
        self.findings.restore(so_far.told.clone())?;
        self.so_far = SoFar { told: SavedFindings::default(), ..so_far };
        let Some(what) = &note.head.copying else { return Ok(None) };
        let mut copy = self.begin_copy(what.line, &what.text)?;
        copy.to.restore(&note.saved_copy(what))?;
        copy.what = what.clone();
        Ok(Some(copy))
    }

    /// Notes where it is, if that is worth it by now; `worth`: it has done something that takes
    /// long.
    fn checkpoint_if_due(
        &mut self,
        place: Option<Place>,
        worth: bool,
        copy: Option<&mut Copy>,
    ) -> SqlResult<()> {
        let due = |place: &Place| self.pace.is_due(place.text.offset, worth);
        let Some(place) = place.filter(due) else { return Ok(()) };
        let copying = match copy {
            None => None,
            Some(copy) => match copy.to.save().map_err(|e| in_data(e, copy.what.line))? {
                Some(saved) => Some((copy.what.clone(), saved)),
                None => return Ok(()),
            },
        };
        let Some(block) = self.session.save_block()? else { return Ok(()) };
        let so_far = SoFar { told: self.findings.save(), ..self.so_far.clone() };
        let note = Note::new((self.surroundings, &place), block, so_far, copying);
        let (coordinator, job) = (self.db.coordinator(), self.job.id());
        // First, so that there is no load that the note knows of and nobody keeps.
        self.keep(Some(&note.loads()))?;
        let size = note.store(coordinator, job)?;
        self.pace.wrote(place.text.offset, size);
        coordinator
            .sweep_job_files(|of, name| of != job || note.needs(job, name))
            .map_err(kv_error)?;
        self.job.tell("checkpoint");
        Ok(())
    }

    /// What there is to do when all statements have run; then it counts, or is taken back.
    pub(super) fn end(&mut self, there: &hierarchy::Tables, begun: u64) -> SqlResult<()> {
        if self.so_far.moves.is_none() {
            for (name, line, count) in self.so_far.absent.inserts() {
                let why =
                    format!("{count} INSERT statements of a table that is left out (line {line})");
                self.findings.tell("ignored", None, name, &why)?;
            }
        }
        let wish = self.options.interleave.clone();
        if self.options.propose || wish != Wish::Flat {
            self.job.phase("hierarchy");
            // Dumps take it away.
            run_statement(&mut self.session, "SET search_path = public")?;
        }
        self.find_places(&wish, there)?;
        if self.options.propose {
            hierarchy::propose(&mut self.session, &mut self.findings)?;
        }
        if self.options.memory.is_some() && !self.options.dry_run {
            let peak = self.account.peak().to_string();
            self.findings.tell("total", None, "peak memory in bytes", &peak)?;
        }
        let fs = DiskFs::shared();
        if let Some(path) = &self.written.log {
            self.findings.write_left_out(&*fs, path)?;
        }
        if let Some(path) = &self.written.report {
            self.findings.write_report(&*fs, path)?;
        }
        if !self.options.dry_run {
            // The rows are there, and the job has succeeded, in one and the same step.
            let record = self.job.record();
            let record = Record { state: State::Succeeded, fraction: 1.0, ..record };
            self.session.write_with_block(&record)?;
            return run_statement(&mut self.session, "COMMIT").map(|_| ());
        }
        self.sum_up(WallClock.monotonic_nanos().saturating_sub(begun))?;
        run_statement(&mut self.session, "ROLLBACK").map(|_| ())
    }

    /// Moves tables to where they are to lie.
    fn find_places(&mut self, wish: &Wish, there: &hierarchy::Tables) -> SqlResult<()> {
        let mut left = match self.so_far.moves.take() {
            Some(left) => left,
            None => hierarchy::plan(&mut self.session, wish, there).map_err(|e| self.of_file(e))?,
        };
        left.reverse();
        while let Some(next) = left.pop() {
            let moved = hierarchy::follow(&mut self.session, &next, &mut self.findings);
            moved.map_err(|e| self.of_file(e))?;
            self.session.pass(self.job)?;
            self.so_far.moves = Some(left.iter().rev().cloned().collect());
            self.checkpoint_if_due(self.end, true, None)?;
        }
        Ok(())
    }

    /// The end of a dry run's report.
    fn sum_up(&mut self, nanos: u64) -> SqlResult<()> {
        let rate = self.so_far.rows as f64 / (nanos.max(1) as f64 / 1e9);
        let wrong = self.findings.wrongs();
        for (what, value) in [
            ("tables", self.so_far.tables.to_string()),
            ("rows", self.so_far.rows.to_string()),
            ("bytes of rows", self.so_far.bytes.to_string()),
            ("rows per second", format!("{rate:.0}")),
            ("peak memory in bytes", self.account.peak().to_string()),
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

    /// Runs all statements; `again`: an earlier process may have run some.
    pub(super) fn run(&mut self, again: bool) -> SqlResult<()> {
        let (mut dump, copy) = self.begin(again)?;
        self.job.phase("read");
        if let Some(copy) = copy {
            let what = copy.what.clone();
            let copied = self.copy_rows(&mut dump, copy, &mut false);
            copied.map_err(|e| self.placed(e, what.line, &what.text, &dump))?;
        }
        while let Some(piece) = dump.next_piece()? {
            self.session.pass(self.job)?;
            self.progress(&dump);
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
            self.checkpoint_if_due(dump.place(), false, None)?;
        }
        self.end = dump.place();
        if self.options.interleave != Wish::Flat && self.so_far.moves.is_none() {
            self.checkpoint_if_due(self.end, true, None)?;
        }
        Ok(())
    }

    fn progress(&self, dump: &Dump) {
        self.job.at_least(dump.position() as f64 / self.size.max(1) as f64);
    }

    fn take(&mut self, dump: &mut Dump, line: u64, text: &str, words: &[String]) -> SqlResult<()> {
        if is_of_transactions(words) {
            let e = SqlError::unsupported(format!("{} in a dump", words[0].to_uppercase()));
            return Err(e.with_hint("All of a dump is one transaction."));
        }
        if let Some(why) = ignored(words) {
            return self.leave_out(line, text, why);
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
        if self.so_far.absent.takes_insert(text, words) {
            return Ok(());
        }
        let done = match self.run_one(text) {
            Err(e) => self.otherwise(line, text, e)?,
            done => done,
        };
        match done {
            Err(e) => match self.may_be_left_out(&e, words) {
                Some(why) => self.leave_out(line, text, &why),
                None if is_unsupported(&e) => Err(
                    e.with_hint("WITH ignore_unsupported_statements leaves such statements out.")
                ),
                None => Err(e),
            },
            Ok(()) => Ok(()),
        }
    }

    /// A statement is left out, and with it what it would have made.
    fn leave_out(&mut self, line: u64, text: &str, why: &str) -> SqlResult<()> {
        self.so_far.absent.add(line, text, &words(text));
        self.findings.leave_out(line, text, why)
    }

    /// Runs what there is in the place of a statement that failed.
    fn otherwise(&mut self, line: u64, whole: &str, e: SqlError) -> SqlResult<SqlResult<()>> {
        let (mut text, mut error) = (whole.to_string(), e);
        let mut told = Vec::new();
        loop {
            // One that cannot be read has none.
            let parsed = self.session.parse_script(&text).ok().and_then(|mut all| all.pop());
            let Some(parsed) = parsed else { return Ok(Err(error)) };
            let asked = self.options.ignore_unsupported;
            let other = match instead((&parsed, &text), &error, asked) {
                None if asked && is_unsupported(&error) => alone(&mut self.session, &parsed)?,
                other => other,
            };
            let Some((other, why)) = other else { return Ok(Err(error)) };
            told.push(why);
            match self.run_one(&other) {
                Ok(()) => break,
                Err(e) => (text, error) = (other, e),
            }
        }
        self.findings.tell("changed", Some(line), whole, &told.join("; "))?;
        Ok(Ok(()))
    }

    /// Runs a statement about roles, owners, rights or functions, if that is possible here.
    fn rights(&mut self, line: u64, text: &str) -> SqlResult<()> {
        let shown = text.split(" PASSWORD ").next().unwrap_or_default();
        match self.run_one(text) {
            Err(e) if is_of_node(&e) => Err(e),
            Err(e) => self.leave_out(line, shown, e.message()),
            Ok(()) => Ok(()),
        }
    }

    /// Why the dump goes on without a statement that failed, if it does.
    fn may_be_left_out(&self, e: &SqlError, words: &[String]) -> Option<String> {
        let why = || format!("{}: {}", e.state().0, e.message());
        // Settings of other versions say nothing about rows.
        if starts(words, &["set"]) && e.state() == SqlState::UNDEFINED_OBJECT {
            return Some(why());
        }
        let asked = self.options.ignore_unsupported;
        // The partition itself was left out.
        if asked && attaches_index(words) && e.state() == SqlState::INVALID_OBJECT_DEFINITION {
            return Some(why());
        }
        match self.so_far.absent.cause(e) {
            // A table is not left out without being asked: its rows would be lost.
            Some(cause) if asked || !makes_table(words) => Some(cause),
            // A dump is whole in itself: what is not there is something that we do not have.
            _ => (asked && (is_unsupported(e) || is_undefined(e))).then(why),
        }
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
        if let Some(absent) = self.so_far.absent.line_of(&table) {
            let mut rows = 0u64;
            while dump.data()?.is_some() {
                self.session.pass(self.job)?;
                rows += 1;
            }
            let why = format!("{rows} rows of a table that is left out (line {absent})");
            return self.findings.tell("ignored", Some(line), &table, &why);
        }
        let mut at_end = false;
        if !self.options.dry_run {
            let copy = self.begin_copy(line, text)?;
            return self.copy_rows(dump, copy, &mut at_end);
        }
        run_statement(&mut self.session, "SAVEPOINT dump")?;
        let begun = self.begin_copy(line, text);
        let copied = begun.and_then(|copy| self.copy_rows(dump, copy, &mut at_end));
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

    fn begin_copy(&mut self, line: u64, text: &str) -> SqlResult<Copy> {
        let Outcome::CopyIn(mut to) = run_statement(&mut self.session, text)? else {
            return Err(SqlError::internal("a COPY that wants no data"));
        };
        if self.pace.every().is_some() {
            to.for_job(self.job.id());
        }
        let what = Copying::new(line, text);
        Ok(Copy { to, table: copied_table(text), what })
    }

    fn copy_rows(&mut self, dump: &mut Dump, mut copy: Copy, at_end: &mut bool) -> SqlResult<()> {
        let line = copy.what.line;
        let mut chunk = Vec::new();
        let every = self.pace.every().and_then(|every| usize::try_from(every).ok());
        let most = every.map_or(CHUNK, |every| every.clamp(CHUNK_LEAST, CHUNK));
        let most = most.min((self.account.limit() / CHUNK_PART).max(CHUNK_LEAST));
        while let Some((_, data)) = dump.data()? {
            let (taken, bytes) = copy.what.taken;
            if taken >= self.options.row_limit {
                continue;
            }
            copy.what.taken = (taken + 1, bytes + data.len() as u64);
            chunk.extend_from_slice(data);
            chunk.push(b'\n');
            if chunk.len() >= most {
                self.session.pass(self.job)?;
                self.progress(dump);
                feed(&mut copy.to, &mut chunk, line)?;
                if copy.to.is_load() {
                    self.checkpoint_if_due(dump.place(), false, Some(&mut copy))?;
                }
            }
        }
        *at_end = true;
        feed(&mut copy.to, &mut chunk, line)?;
        let (table, is_load) = (copy.to.table(), copy.to.is_load());
        let rows = copy.to.finish().map_err(|e| in_data(e, line))?;
        let so_far = &mut self.so_far;
        so_far.rows += rows;
        so_far.bytes += copy.what.taken.1;
        so_far.tables += 1;
        so_far.loaded.push((table, rows));
        self.job.tell("loaded");
        self.findings.tell("loaded", Some(line), &copy.table, &format!("{rows} rows"))?;
        self.checkpoint_if_due(dump.place(), is_load, None)
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
    let said: Vec<&str> = e.detail().into_iter().chain(e.context()).collect();
    let detail = said.join("\n");
    let detail = format!("{detail}\nLines are counted from line {line} of the dump.");
    e.with_detail(detail.trim_start().to_string())
}

/// The table that a COPY of pg_dump names, as it is written.
fn copied_table(text: &str) -> String {
    let rest = text.split_once(char::is_whitespace).map_or("", |(_, rest)| rest.trim_start());
    name_at(rest).to_string()
}

/// An error of the process, or of the room that it has: whatever is done again fails, too.
fn is_of_process(e: &SqlError) -> bool {
    ["53", "57"].iter().any(|class| e.state().0.starts_with(class))
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
            let shown = |row: &Row| row.iter().map(|d| d.to_text(TimeZone::utc())).collect();
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
