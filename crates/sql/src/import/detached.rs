//! Imports that nobody waits for: the statement answers with the job's id, a thread goes on. So do
//! those that a stopped node has left, when it starts again: from their beginning, since nothing of
//! a load is stored before its end.

use std::sync::Arc;

use braid_catalog::kv_error;
use braid_env::tasks::spawn_thread;
use braid_kv::TxnOptions;
use braid_parser::{Import, Kind, Statement};
use braid_types::{SqlError, SqlResult};

use super::answer;
use super::options::Options;
use super::run::{import, note_failure, run_as};
use crate::database::Database;
use crate::jobs::{Record, State};
use crate::session::{Context, Outcome, Session, SessionOptions};

/// IMPORT: runs it, or has it run.
pub(crate) fn start(ctx: &Context, i: &Import, statement: &str) -> SqlResult<Outcome> {
    if i.job.is_some() || ctx.failure.is_some() || !Options::read(i)?.detached {
        return import(ctx, i, statement);
    }
    // What can be told at once is.
    let table = ctx.table(&i.table)?;
    let folder = ctx.db.import_folder()?;
    i.files.iter().try_for_each(|pattern| folder.files(pattern).map(|_| ()))?;
    crate::copy::targets(&table, &i.columns)?;
    let job = ctx.db.new_ids(1)?;
    let record = Record { run_as: Some(run_as(ctx)), ..Record::new(job, "import", statement) };
    record.store(ctx.db.coordinator())?;
    go_on(&ctx.db, record)?;
    Ok(answer::of_start(job))
}

impl Database {
    /// Begins the imports again that an earlier process has not ended, but for those that pause.
    /// How many there are.
    pub fn resume_imports(self: &Arc<Self>) -> SqlResult<usize> {
        let txn = self.coordinator().begin(TxnOptions::default()).map_err(kv_error)?;
        let left = |record: &Record| {
            record.run_as.is_some()
                && record.state == State::Running
                && self.jobs().record(record.id).is_none()
        };
        let records: Vec<Record> = Record::all(&txn)?.into_iter().filter(left).collect();
        let count = records.len();
        for record in records {
            tracing::info!(job = record.id, "an import begins again");
            go_on(self, record)?;
        }
        Ok(count)
    }
}

/// Runs an import in a thread and a session of its own.
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
    spawn_thread("import", move || {
        if let Err(e) = run(session, &record) {
            tracing::warn!(job = record.id, error = %e, "an import has failed");
            note_failure(&db, record, &e);
        }
    });
    Ok(())
}

fn run(mut session: Session, record: &Record) -> SqlResult<()> {
    let lost = || SqlError::internal("the text of an import is none");
    let parsed = session.parse_script(&record.statement)?;
    let mut statements = parsed.into_iter();
    let mut statement: Statement = statements.next().ok_or_else(lost)?;
    let Kind::Import(import) = &*statement.kind else { return Err(lost()) };
    let import = Import { job: Some(record.id), ..(**import).clone() };
    statement.kind = Kind::Import(Box::new(import)).into();
    let prepared = session.prepare(statement, &[])?;
    session.execute(&prepared, Vec::new()).map(|_| ())
}
