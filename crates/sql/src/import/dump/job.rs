//! The job of a dump: who waits for it, how it ends, and that it goes on.
//!
//! ```text
//!   IMPORT PGDUMP               the statement waits, and answers with the report
//!   .. WITH detached            answers with the job; the report is a file
//!   its node stops              nobody sees anything: it goes on when it starts again
//!   no room on the disk         nobody sees anything: it goes on with RESUME JOB
//! ```
//! That the job has succeeded is written by the transaction that brings the rows, so that a dump is
//! there once, wherever the node was killed.

use std::path::PathBuf;
use std::sync::Arc;

use braid_env::clock::{Clock, WallClock};
use braid_import::{Folder, SourceFile};
use braid_parser::ImportDump;
use braid_types::{Datum, SqlError, SqlResult, SqlState};

use super::super::detached::go_on;
use super::super::outcome::{forget_files, note_end, note_failure};
use super::hierarchy;
use super::load::{Load, run_statement};
use super::options::Options;
use crate::bulk::erase_abandoned;
use crate::database::Database;
use crate::jobs::{Record, RunAs};
use crate::session::{Outcome, Rows, RowsTag, Session, VecRows};

/// Files that an import of a dump writes.
#[derive(Default)]
pub(super) struct Written {
    /// What was left out, whole.
    pub(super) log: Option<PathBuf>,
    /// The report, of a job that nobody waits for.
    pub(super) report: Option<PathBuf>,
}

/// IMPORT PGDUMP, in a session of its own.
pub(crate) fn import_dump(
    session: Session,
    (db, run_as): (&Arc<Database>, RunAs),
    d: &ImportDump,
    statement: &str,
) -> SqlResult<Outcome> {
    let options = Options::read(d)?;
    let folder = db.import_folder()?.clone();
    let mut files = files_of(&folder, &d.file)?;
    let (Some(file), true) = (files.pop(), files.is_empty()) else {
        let state = SqlState::INVALID_PARAMETER_VALUE;
        return Err(SqlError::new(state, format!("\"{}\" is more than one dump", d.file)));
    };
    let log = options.log_ignored.as_deref();
    let log = match d.job {
        // It may have been written just before the node stopped.
        Some(_) => log.map(|name| folder.written_file(name)),
        None => log.map(|name| folder.new_file(name)),
    };
    let mut files = Written { log: log.transpose()?, report: None };
    let id = d.job.map_or_else(|| db.new_ids(1), Ok)?;
    let database = run_as.database.clone();
    let run_as = (!options.dry_run).then_some(run_as);
    let node = db.own_node();
    let mut record = Record { node, run_as, ..Record::new(id, "import", statement) };
    let stored = Record::change(db.coordinator(), id, |_| None)?;
    if let Some(stored) = stored {
        (record.fraction, record.mark) = (stored.fraction, stored.mark);
    }
    record.store(db.coordinator())?;
    if options.detached && d.job.is_none() {
        go_on(db, record)?;
        return Ok(started(id));
    }
    if d.job.is_some() {
        files.report = Some(folder.written_file(&report_name(&d.file, id))?);
    }
    load((session, options), (db, &database), (folder, file, files), (record, d.job.is_some()))
}

/// Loads it, and says how that has ended. `again`: an earlier process may have begun.
fn load(
    (session, options): (Session, Options),
    (db, database): (&Arc<Database>, &str),
    (folder, file, files): (Folder, SourceFile, Written),
    (record, again): (Record, bool),
) -> SqlResult<Outcome> {
    let (id, dry_run) = (record.id, options.dry_run);
    let job = db.jobs().start_pausable(record, Vec::new(), session.cancel_flag());
    let begun = WallClock.monotonic_nanos();
    let mut load = Load::new(db, (session, options), (folder, file, files), &job);
    let done = hierarchy::tables_of(db, database)
        .and_then(|there| load.run(again).and_then(|()| load.end(&there, begun)));
    if done.is_err() {
        // What there is to say has been said; the transaction may be gone already.
        let _warned = run_statement(&mut load.session, "ROLLBACK");
    }
    let (rows, findings) = load.into_report();
    db.jobs().end(id);
    let done = match done {
        Ok(()) if dry_run => {
            let record =
                Record { state: crate::jobs::State::Succeeded, fraction: 1.0, ..job.record() };
            record.store(db.coordinator())
        }
        Ok(()) => {
            forget_files(db, id);
            Ok(())
        }
        Err(e) if dry_run => {
            note_failure(db, job.record(), &e);
            Err(e)
        }
        Err(e) => Err(note_end(db, job.record(), e)),
    };
    // But for what the job goes on with.
    if (done.is_err() || dry_run)
        && let Err(error) = erase_abandoned(db.coordinator())
    {
        tracing::warn!(%error, job = id, "cannot erase yet what an import has left");
    }
    done?;
    let tag = RowsTag::Fixed(format!("IMPORT {rows}"));
    Ok(Outcome::Rows(Rows::new(Box::new(VecRows::new(findings)), tag)))
}

/// The answer of a statement that does not wait.
fn started(id: u32) -> Outcome {
    let told = "SHOW JOBS tells how far it is; the report is a file when it has succeeded";
    let id = format!("job {id}");
    let row = vec![Datum::text("started"), Datum::Null, Datum::text(id), Datum::text(told)];
    let tag = RowsTag::Fixed("IMPORT 0".into());
    Outcome::Rows(Rows::new(Box::new(VecRows::new(vec![row])), tag))
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

/// The report of a job that nobody waits for, in the folder for imports.
fn report_name(dump: &str, id: u32) -> String {
    let last = dump.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    format!("{last}-{id}.report")
}
