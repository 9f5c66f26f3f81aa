//! IMPORT PGDUMP: a plain dump of PostgreSQL, all of it in one transaction.
//!
//! ```text
//!   statement ─┬─ about owners, rights, functions, triggers, ..  ─► ignored, and told
//!              ├─ takes something away                           ─► only WITH allow_destructive
//!              ├─ COPY                                           ─► a bulk load
//!              └─ anything else                                  ─► run as if a client had sent it
//! ```
//! The tables belong to the transaction until it commits, so that the rows of a COPY are loads, and
//! nothing of a dump that fails is ever seen. The answer tells line by line what became of it.

use std::sync::Arc;

use braid_env::fs::DiskFs;
use braid_env::memory::Account;
use braid_import::dump::{Dump, Piece};
use braid_import::{Compression, Folder, SourceFile};
use braid_parser::{ImportDump, Kind};
use braid_types::{Datum, SqlError, SqlResult, SqlState, SqlType};

use super::options::{bad, flag, number, size, text};
use super::outcome::note_failure;
use crate::copy::CopyIn;
use crate::database::Database;
use crate::general_query::{ColumnInfo, Row};
use crate::jobs::registry::Job;
use crate::jobs::{Record, State};
use crate::session::{Outcome, Rows, RowsTag, Session, VecRows};

/// What a finding shows of a statement.
const SHOWN: usize = 120;
/// Data that is handed to a COPY at once.
const CHUNK: usize = 256 << 10;

/// Statements that say nothing about rows, with what is said of them.
const IGNORED: &[(&[&str], &str)] = &[
    (&["create", "extension"], "extensions are not supported"),
    (&["comment", "on", "extension"], "extensions are not supported"),
    (&["alter", "extension"], "extensions are not supported"),
    (&["create", "database"], "the session's database takes the dump"),
    (&["alter", "database"], "the session's database takes the dump"),
    (&["create", "function"], "functions are not supported"),
    (&["create", "or", "replace", "function"], "functions are not supported"),
    (&["alter", "function"], "functions are not supported"),
    (&["comment", "on", "function"], "functions are not supported"),
    (&["create", "procedure"], "procedures are not supported"),
    (&["create", "or", "replace", "procedure"], "procedures are not supported"),
    (&["create", "aggregate"], "aggregates are not supported"),
    (&["create", "trigger"], "triggers are not supported"),
    (&["create", "constraint", "trigger"], "triggers are not supported"),
    (&["comment", "on", "trigger"], "triggers are not supported"),
    (&["create", "event", "trigger"], "triggers are not supported"),
    (&["create", "rule"], "rules are not supported"),
    (&["create", "policy"], "row security is not supported"),
    (&["create", "publication"], "replication is not supported"),
    (&["create", "subscription"], "replication is not supported"),
    (&["create", "language"], "languages are not supported"),
    (&["create", "or", "replace", "language"], "languages are not supported"),
    (&["create", "statistics"], "statistics over several columns are not supported"),
    (&["security", "label"], "labels are not supported"),
];

/// Statements about roles and what they may do. One that fails, mostly because a role is not here,
/// says nothing about rows: it is left out.
const RIGHTS: &[&[&str]] = &[
    &["grant"],
    &["revoke"],
    &["alter", "default", "privileges"],
    &["create", "role"],
    &["alter", "role"],
    &["create", "user"],
    &["alter", "user"],
];

/// Statements that take something away that may be in use.
const DESTRUCTIVE: &[&[&str]] = &[&["drop"], &["truncate"], &["delete"]];

struct Options {
    ignore_unsupported: bool,
    allow_destructive: bool,
    skip_foreign_keys: bool,
    dry_run: bool,
    row_limit: u64,
    row_bytes_max: usize,
    compression: Compression,
}

impl Options {
    fn read(d: &ImportDump) -> SqlResult<Options> {
        let mut out = Options {
            ignore_unsupported: false,
            allow_destructive: false,
            skip_foreign_keys: false,
            dry_run: false,
            row_limit: u64::MAX,
            row_bytes_max: 256 << 20,
            compression: Compression::Auto,
        };
        for (name, value) in &d.options {
            match name.as_str() {
                "ignore_unsupported_statements" => out.ignore_unsupported = flag(name, value)?,
                "allow_destructive" => out.allow_destructive = flag(name, value)?,
                "skip_foreign_keys" => out.skip_foreign_keys = flag(name, value)?,
                "dry_run" => out.dry_run = flag(name, value)?,
                "row_limit" => out.row_limit = number(name, value)?.max(1),
                "max_row_size" => out.row_bytes_max = size(name, value)?,
                "decompress" => {
                    let named = Compression::named(&text(name, value)?.to_lowercase());
                    out.compression =
                        named.ok_or_else(|| bad(name, "is auto, none, gzip, zstd or bzip2"))?;
                }
                other => {
                    return Err(bad(other, "is not known for a dump").with_hint(
                        "Options are ignore_unsupported_statements, allow_destructive, \
                         skip_foreign_keys, dry_run, row_limit, max_row_size, decompress.",
                    ));
                }
            }
        }
        Ok(out)
    }
}

/// The columns of the answer.
pub(crate) fn dump_columns() -> Vec<ColumnInfo> {
    [("result", SqlType::Text), ("line", SqlType::Int8), ("subject", SqlType::Text)]
        .into_iter()
        .chain([("detail", SqlType::Text)])
        .map(|(name, ty)| ColumnInfo::computed(name, ty))
        .collect()
}

/// A dump on its way into the database.
struct Load<'a> {
    session: Session,
    options: Options,
    file: SourceFile,
    folder: Folder,
    job: &'a Job,
    findings: Vec<Row>,
    rows: u64,
}

/// IMPORT PGDUMP, in a session of its own.
pub(crate) fn import_dump(
    mut session: Session,
    db: &Arc<Database>,
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
    let record = Record::new(db.new_ids(1)?, "import", statement);
    record.store(db.coordinator())?;
    let id = record.id;
    let job = db.jobs().start_pausable(record, Vec::new(), session.cancel_flag());
    let account = db.coordinator().memory().account(usize::MAX);
    run_statement(&mut session, "BEGIN")?;
    let (findings, rows) = (Vec::new(), 0);
    let folder = db.import_folder()?.clone();
    let mut load = Load { session, options, file, folder, job: &job, findings, rows };
    let done = load.run(&account).and_then(|()| {
        let end = if load.options.dry_run { "ROLLBACK" } else { "COMMIT" };
        run_statement(&mut load.session, end).map(|_| ())
    });
    if done.is_err() {
        run_statement(&mut load.session, "ROLLBACK").map(|_| ())?;
    }
    db.jobs().end(id);
    let record = job.record();
    match done {
        Ok(()) => {
            Record { state: State::Succeeded, fraction: 1.0, ..record }.store(db.coordinator())?;
            let tag = RowsTag::Fixed(format!("IMPORT {}", load.rows));
            Ok(Outcome::Rows(Rows::new(Box::new(VecRows::new(load.findings)), tag)))
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
                    self.tell("ignored", line, &text, "a command of psql");
                }
                Piece::Statement(line, text) => {
                    let words = words(&text);
                    let taken = self.take(&mut dump, line, &text, &words);
                    taken.map_err(|e| self.placed(e, line, &text, &dump))?;
                }
            }
        }
        Ok(())
    }

    fn take(&mut self, dump: &mut Dump, line: u64, text: &str, words: &[String]) -> SqlResult<()> {
        if let Some(why) = ignored(words) {
            self.tell("ignored", line, text, why);
            return Ok(());
        }
        if destroys(words) && !self.options.allow_destructive {
            let state = SqlState::FEATURE_NOT_SUPPORTED;
            return Err(SqlError::new(state, "the dump takes away what is there")
                .with_hint("WITH allow_destructive lets it."));
        }
        if self.options.skip_foreign_keys && is_foreign_key(words) {
            self.tell("ignored", line, text, "skip_foreign_keys");
            return Ok(());
        }
        if starts(words, &["create", "schema", "public"]) {
            self.tell("ignored", line, text, "the schema is there");
            return Ok(());
        }
        if starts(words, &["copy"]) && words.iter().any(|w| w == "stdin") {
            return self.copy(dump, line, text, words);
        }
        if is_of_rights(words) {
            return self.rights(line, text);
        }
        let named = own_identity(text, words);
        if named.is_some() {
            self.tell("changed", line, text, "the sequence has the name that the table gives it");
        }
        match self.run_one(named.as_deref().unwrap_or(text)) {
            Err(e) if self.may_be_left_out(&e, words) => {
                let why = format!("{}: {}", e.state().0, e.message());
                self.tell("ignored", line, text, &why);
                Ok(())
            }
            Err(e) if is_unsupported(&e) => {
                Err(e.with_hint("WITH ignore_unsupported_statements leaves such statements out."))
            }
            other => other,
        }
    }

    /// Runs a statement about roles, owners or rights, if that is possible here.
    fn rights(&mut self, line: u64, text: &str) -> SqlResult<()> {
        let shown = text.split(" PASSWORD ").next().unwrap_or_default();
        match self.run_one(text) {
            Err(e) if is_of_node(&e) => Err(e),
            Err(e) => {
                self.tell("ignored", line, shown, e.message());
                Ok(())
            }
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

    /// Runs a COPY with the data that follows.
    fn copy(&mut self, dump: &mut Dump, line: u64, text: &str, words: &[String]) -> SqlResult<()> {
        let table = words.get(1).cloned().unwrap_or_default();
        let mut copy = match run_statement(&mut self.session, text)? {
            Outcome::CopyIn(copy) => copy,
            _ => return Err(SqlError::internal("a COPY that wants no data")),
        };
        let mut chunk = Vec::new();
        let mut taken = 0u64;
        while let Some((_, data)) = dump.data()? {
            if taken >= self.options.row_limit {
                continue;
            }
            taken += 1;
            chunk.extend_from_slice(data);
            chunk.push(b'\n');
            if chunk.len() >= CHUNK {
                self.session.pass(self.job)?;
                self.job.at_least(dump.position() as f64 / self.file.size.max(1) as f64);
                feed(&mut copy, &mut chunk, line)?;
            }
        }
        feed(&mut copy, &mut chunk, line)?;
        let rows = copy.finish().map_err(|e| in_data(e, line))?;
        self.rows += rows;
        self.tell("loaded", line, &table, &format!("{rows} rows"));
        Ok(())
    }

    fn tell(&mut self, result: &str, line: u64, subject: &str, detail: &str) {
        let line = Datum::Int8(i64::try_from(line).unwrap_or(i64::MAX));
        let row = vec![Datum::text(result), line, Datum::text(head(subject)), Datum::text(detail)];
        self.findings.push(row);
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

fn run_statement(session: &mut Session, text: &str) -> SqlResult<Outcome> {
    let mut statements = session.parse_script(text)?;
    let Some(statement) = statements.pop().filter(|s| !matches!(&*s.kind, Kind::Empty)) else {
        return Ok(Outcome::Empty);
    };
    let prepared = session.prepare(statement, &[])?;
    let outcome = session.execute(&prepared, Vec::new())?;
    if let Outcome::Rows(mut rows) = outcome {
        while rows.next_batch()?.is_some() {}
        return Ok(Outcome::Done(rows.tag()));
    }
    Ok(outcome)
}

/// What a statement begins with, in lower case: enough to tell what it is.
fn words(text: &str) -> Vec<String> {
    let lower = text.chars().take(2000).collect::<String>().to_lowercase();
    lower
        .split(|c: char| c.is_whitespace() || "(),".contains(c))
        .filter(|w| !w.is_empty())
        .map(str::to_string)
        .collect()
}

fn starts(words: &[String], with: &[&str]) -> bool {
    words.len() >= with.len() && words.iter().zip(with).all(|(a, b)| a == b)
}

fn ignored(words: &[String]) -> Option<&'static str> {
    if let Some((_, why)) = IGNORED.iter().find(|(with, _)| starts(words, with)) {
        return Some(why);
    }
    if !starts(words, &["alter"]) {
        return None;
    }
    let has = |pair: &[&str]| words.windows(pair.len()).any(|w| starts(w, pair));
    if has(&["row", "level", "security"]) {
        return Some("row security is not supported");
    }
    let physical = has(&["cluster", "on"]) || has(&["replica", "identity"]);
    (physical || has(&["set", "storage"]) || has(&["set", "compression"]))
        .then_some("says how PostgreSQL stores rows")
}

/// Whether a statement is about roles, owners or rights.
fn is_of_rights(words: &[String]) -> bool {
    let owner = || words.windows(2).any(|w| starts(w, &["owner", "to"]));
    RIGHTS.iter().any(|with| starts(words, with)) || starts(words, &["alter"]) && owner()
}

/// An error that has nothing to do with the statement: of the disk, of memory, or a cancel.
fn is_of_node(e: &SqlError) -> bool {
    ["53", "57", "58", "XX"].iter().any(|class| e.state().0.starts_with(class))
}

fn destroys(words: &[String]) -> bool {
    let drops = |w: &String| w == "drop";
    let column = words.windows(2).any(|w| drops(&w[0]) && ["not", "default"].contains(&&*w[1]));
    DESTRUCTIVE.iter().any(|with| starts(words, with))
        || starts(words, &["alter", "table"]) && words.iter().any(drops) && !column
}

/// `ADD GENERATED .. AS IDENTITY (..)` as our grammar has it: pg_dump names the sequence, and
/// writes its options, each in a line, in another order.
fn own_identity(text: &str, words: &[String]) -> Option<String> {
    const ORDER: [&str; 6] = ["increment", "minvalue", "maxvalue", "start", "cache", "cycle"];
    if !starts(words, &["alter", "table"]) {
        return None;
    }
    let (head, rest) = text.split_once(" AS IDENTITY (")?;
    let (body, tail) = rest.rsplit_once(')')?;
    let mut options: Vec<&str> = body.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
    options.retain(|option| !option.starts_with("SEQUENCE NAME "));
    options.sort_by_key(|option| {
        let lower = option.to_lowercase();
        ORDER.iter().position(|word| lower.split_whitespace().any(|w| w == *word))
    });
    Some(format!("{head} AS IDENTITY ({}){tail}", options.join(" ")))
}

/// A statement of PostgreSQL that we cannot read is one that we do not support.
fn is_unsupported(e: &SqlError) -> bool {
    matches!(e.state(), SqlState::FEATURE_NOT_SUPPORTED | SqlState::SYNTAX_ERROR)
}

fn is_foreign_key(words: &[String]) -> bool {
    starts(words, &["alter", "table"]) && words.windows(2).any(|w| starts(w, &["foreign", "key"]))
}

/// The beginning of a statement, in one line.
fn head(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}..", &line[..at]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_told_apart_by_their_words() {
        let why = |text: &str| ignored(&words(text)).is_some();
        assert!(why("CREATE OR REPLACE FUNCTION f()\nRETURNS int"));
        assert!(why("ALTER TABLE t CLUSTER ON i"));
        let of_rights = |text: &str| is_of_rights(&words(text));
        assert!(of_rights("ALTER TABLE ONLY public.t OWNER TO me"));
        assert!(of_rights("GRANT ALL ON t TO me") && !of_rights("CREATE TABLE owner (\"to\" int)"));
        assert!(
            !why("CREATE TABLE \"grant\" (a int)") && !why("ALTER TABLE t ADD PRIMARY KEY (a)")
        );
        let takes = |text: &str| destroys(&words(text));
        assert!(takes("DROP TABLE IF EXISTS t") && takes("TRUNCATE t"));
        assert!(takes("ALTER TABLE IF EXISTS ONLY t DROP CONSTRAINT IF EXISTS k"));
        assert!(!takes("ALTER TABLE t ALTER COLUMN a DROP DEFAULT"));
        let key = "ALTER TABLE ONLY a ADD CONSTRAINT c FOREIGN KEY (b) REFERENCES d(e)";
        assert!(is_foreign_key(&words(key)));
    }
}
