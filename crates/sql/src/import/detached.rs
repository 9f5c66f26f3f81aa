//! Imports that nobody waits for: the statement answers with the job's id, a thread goes on.

use braid_env::tasks::spawn_thread;
use braid_parser::{Import, Kind, Statement};
use braid_types::{SqlError, SqlResult};

use super::answer;
use super::options::Options;
use super::run::{import, note_failure, store};
use crate::jobs::Record;
use crate::session::{Context, Outcome, Session, SessionOptions};

/// IMPORT: runs it, or has it run.
pub(crate) fn start(
    session: &Session,
    ctx: &Context,
    i: &Import,
    statement: &str,
) -> SqlResult<Outcome> {
    if i.job.is_some() || ctx.failure.is_some() || !Options::read(i)?.detached {
        return import(ctx, i, statement);
    }
    // What can be told at once is.
    let table = ctx.table(&i.table)?;
    let folder = ctx.db.import_folder()?;
    i.files.iter().try_for_each(|pattern| folder.files(pattern).map(|_| ()))?;
    crate::copy::targets(&table, &i.columns)?;
    let job = ctx.db.new_ids(1)?;
    let options = SessionOptions {
        user: ctx.session.user.clone(),
        database: ctx.session.database.clone(),
        settings: session.changed_settings(),
        ..SessionOptions::default()
    };
    let own = Session::new(ctx.db.clone(), options)?;
    let import = Import { job: Some(job), ..i.clone() };
    let record = Record::new(job, "import", statement);
    store(&ctx.db, &record)?;
    let db = ctx.db.clone();
    spawn_thread("import", move || {
        let text = record.statement.clone();
        if let Err(e) = run(own, import, &text) {
            tracing::warn!(job, error = %e, "an import has failed");
            note_failure(&db, record, &e);
        }
    });
    Ok(answer::of_start(job))
}

fn run(mut session: Session, import: Import, text: &str) -> SqlResult<()> {
    let mut statement: Statement = session
        .parse_script(text)?
        .into_iter()
        .find(|s| matches!(&*s.kind, Kind::Import(_)))
        .ok_or_else(|| SqlError::internal("the text of an import is none"))?;
    statement.kind = Kind::Import(Box::new(import)).into();
    let prepared = session.prepare(statement, &[])?;
    session.execute(&prepared, Vec::new()).map(|_| ())
}
