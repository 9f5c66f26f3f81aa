//! Jobs that nobody waits for: imports whose statement answers with the job's id, and what a
//! stopped node has left when it starts again. They run in a thread; those of before from their
//! last checkpoint, or from their beginning.

use std::sync::Arc;

use braid_catalog::kv_error;
use braid_env::tasks::spawn_thread;
use braid_kv::TxnOptions;
use braid_parser::{Import, ImportDump, Kind, Statement};
use braid_types::{SqlError, SqlResult};

use super::answer;
use super::options::Options;
use super::outcome::{note_failure, note_unless_noted};
use super::run::import;
use crate::database::Database;
use crate::jobs::{Record, State};
use crate::session::{Context, Outcome, Session, SessionOptions};

/// IMPORT: runs it, or has it run.
pub(crate) fn start(ctx: &Context, i: &Import, statement: &str) -> SqlResult<Outcome> {
    if i.job.is_some() || ctx.block.is_some() || !Options::read(i)?.detached {
        return import(ctx, i, statement);
    }
    // What can be told at once is.
    let table = ctx.table(&i.table)?;
    let folder = ctx.db.import_folder()?;
    i.files.iter().try_for_each(|pattern| folder.files(pattern).map(|_| ()))?;
    crate::copy::targets(&table, &i.columns)?;
    let job = ctx.db.new_ids(1)?;
    let (node, run_as) = (ctx.db.own_node(), Some(ctx.run_as()));
    let record = Record { node, run_as, ..Record::new(job, "import", statement) };
    record.store(ctx.db.coordinator())?;
    go_on(&ctx.db, record)?;
    Ok(answer::of_start(job))
}

impl Database {
    /// Begins the imports and moves of tables again that an earlier process has not ended, but for
    /// those that pause, and in a cluster those of other nodes: their files are there. How many
    /// there are.
    pub fn resume_jobs(self: &Arc<Self>) -> SqlResult<usize> {
        let txn = self.coordinator().begin(TxnOptions::default()).map_err(kv_error)?;
        let left = |record: &Record| {
            record.run_as.is_some()
                && record.node == self.own_node()
                && record.state == State::Running
                && self.jobs().record(record.id).is_none()
        };
        let all = Record::all(&txn)?;
        let lives = |job: u32, _: &str| {
            let record = all.iter().find(|record| record.id == job);
            record.is_some_and(|record| !record.state.is_final())
        };
        self.coordinator().sweep_job_files(lives).map_err(kv_error)?;
        let records: Vec<Record> = all.into_iter().filter(left).collect();
        let count = records.len();
        for record in records {
            tracing::info!(job = record.id, kind = record.kind, "a job begins again");
            go_on(self, record)?;
        }
        Ok(count)
    }

    /// Jobs that are not at their end, running or paused, for people: number and kind.
    pub fn unfinished_jobs(&self) -> SqlResult<Vec<String>> {
        let txn = self.coordinator().begin(TxnOptions::default()).map_err(kv_error)?;
        let all = Record::all(&txn)?.into_iter().filter(|record| !record.state.is_final());
        Ok(all.map(|record| format!("{} ({})", record.id, record.kind)).collect())
    }
}

/// Runs a job in a thread and a session of its own.
pub(crate) fn go_on(db: &Arc<Database>, record: Record) -> SqlResult<()> {
    let run_as = record.run_as.clone();
    let run_as = run_as.ok_or_else(|| SqlError::internal("a job that cannot begin again"))?;
    let options = SessionOptions {
        user: run_as.user,
        database: run_as.database,
        settings: run_as.settings,
        ..SessionOptions::default()
    };
    let session = match Session::new(db.clone(), options) {
        Ok(session) => session,
        Err(e) => {
            note_failure(db, record, &e);
            return Err(e);
        }
    };
    let db = db.clone();
    spawn_thread("job", move || {
        if let Err(e) = run(session, &record) {
            tracing::warn!(job = record.id, kind = record.kind, error = %e, "a job has failed");
            note_unless_noted(&db, record, &e);
        }
    });
    Ok(())
}

fn run(mut session: Session, record: &Record) -> SqlResult<()> {
    let lost = || SqlError::internal("the text of a job is none");
    let parsed = session.parse_script(&record.statement)?;
    let mut statements = parsed.into_iter();
    let mut statement: Statement = statements.next().ok_or_else(lost)?;
    let job = Some(record.id);
    let kind = match &*statement.kind {
        Kind::Import(i) => Kind::Import(Box::new(Import { job, ..(**i).clone() })),
        Kind::ImportDump(d) => Kind::ImportDump(Box::new(ImportDump { job, ..(**d).clone() })),
        _ => return session.move_again(statement, record),
    };
    statement.kind = kind.into();
    let prepared = session.prepare(statement, &[])?;
    session.execute(&prepared, Vec::new()).map(|_| ())
}
