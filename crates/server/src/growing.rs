//! A node that was alone becomes the first of a cluster: what is done before, while it still is
//! alone.
//!
//! ```text
//!   here       what an unclean end has left is taken away; what must not go along is refused
//!   member     DIR/cluster/member is written: from here on it is a member, whatever crashes
//!   its store  stays where it is, marked as a member's; its rows are one range, with one replica
//!   others     join, and are given replicas, as in any cluster
//! ```
//!
//! A node alone takes away at its start what a process that has died could not: temporary tables,
//! half of a schema change, loads. A member does not, since all that may belong to a node that is
//! alive. So it has to happen here, for the last time. It changes nothing that a node alone would
//! not change: up to the next step, and if that is refused, it can be started alone as ever.

use std::sync::Arc;

use braid_kv::{Store, StoreOptions};
use braid_lsm::Db;
use braid_query::SpillDirectory;
use braid_sql::Database;

use crate::config::ClusterConfig;
use crate::listener::StartError;
use crate::place::open_alone;

/// Makes the store that a node alone has left, if there is one, ready to be a member's.
///
/// # Errors
/// [`StartError::OfCluster`] if it was one already, [`StartError::NotReady`] if something is in the
/// way that goes away, and what opening it says.
pub(crate) fn prepare(options: &StoreOptions, cluster: &ClusterConfig) -> Result<(), StartError> {
    let exists = Db::exists(&*options.fs, &options.dir).map_err(StartError::System)?;
    // Who is not the first one is refused, with its reason, by the member.
    if !exists || cluster.members.first() != cluster.listen.as_ref() {
        return Ok(());
    }
    let StoreOptions { fs, dir, engine, clock, memory, .. } = options;
    let own = StoreOptions {
        engine: engine.clone(),
        memory: memory.clone(),
        gc_window: options.gc_window,
        row_form: options.row_form,
        ..StoreOptions::new(fs.clone(), dir.clone(), clock.clone())
    };
    let store = open_alone(own)?;
    check_clock(&store, cluster)?;
    {
        let general =
            braid_query::Engine::new(SpillDirectory(None)).map_err(StartError::Catalog)?;
        let database = Database::open(store.coordinator(), general).map_err(StartError::Catalog)?;
        check_jobs(&database)?;
    }
    store.engine().close().map_err(|e| StartError::Store(e.into()))
}

/// What is younger than the clock cannot be told to others: they do not listen to a node whose
/// clock is ahead.
fn check_clock(store: &Store, cluster: &ClusterConfig) -> Result<(), StartError> {
    let newest = store.engine().last_commit_ts();
    let offset = cluster.max_clock_offset.as_micros() as u64;
    if newest <= Store::timestamp_at(store.wall_clock_us() + offset) {
        return Ok(());
    }
    Err(StartError::NotReady(
        "its newest rows were written at a later time than the clock of this machine shows: set \
         the clock, or wait until that time"
            .into(),
    ))
}

/// Imports and moves of tables go on after a start, but not on a member.
fn check_jobs(database: &Arc<Database>) -> Result<(), StartError> {
    let jobs = database.unfinished_jobs().map_err(StartError::Catalog)?;
    let Some(first) = jobs.first() else {
        // Takes the files of jobs away that nobody goes on with.
        return database.resume_jobs().map(|_| ()).map_err(StartError::Catalog);
    };
    Err(StartError::NotReady(format!(
        "{} jobs are not at their end, as {first}: start it without --join, and wait until SHOW \
         JOBS says that they are, or CANCEL JOB",
        jobs.len()
    )))
}
