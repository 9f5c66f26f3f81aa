//! How an import ends that does not succeed: it has failed, or it waits for room on the disk.

use braid_types::{SqlError, SqlState};

use crate::database::Database;
use crate::jobs::{Record, State};

/// Writes down how an import has ended, and says it. Nothing has to be taken back.
///
/// Of one that ends because the node does nothing is written: it goes on when the node starts. One
/// that finds no room on the disk pauses: it goes on when somebody says so.
pub(super) fn note_end(db: &Database, mut record: Record, e: SqlError) -> SqlError {
    let canceled = e.state() == SqlState::QUERY_CANCELED;
    if canceled && db.jobs().is_stopping() {
        return e;
    }
    let id = record.id;
    if e.state() != SqlState::DISK_FULL {
        forget_files(db, id);
        note_failure(db, record, &e);
        return e;
    }
    let at = match db.coordinator().read_job_note(id) {
        Some(_) => "from its last checkpoint",
        None => "from its first row",
    };
    record.state = State::Paused;
    record.error = Some(format!("it waits for room on the disk: {}", e.message()));
    if let Err(error) = record.store(db.coordinator()) {
        // It counts as running then, and RESUME JOB finds that it does not.
        tracing::warn!(%error, job = id, "cannot write down that a job pauses");
    }
    e.with_hint(format!("Make room and say RESUME JOB {id}: it goes on {at}."))
}

/// Writes down that an import has failed.
pub(super) fn note_failure(db: &Database, mut record: Record, e: &SqlError) {
    let canceled = e.state() == SqlState::QUERY_CANCELED;
    if canceled && db.jobs().is_stopping() {
        return;
    }
    record.state = if canceled { State::Canceled } else { State::Failed };
    let detail = e.detail().map_or_else(String::new, |d| format!(": {d}"));
    record.error = Some(format!("{}{detail}", e.message()));
    if let Err(error) = record.store(db.coordinator()) {
        tracing::warn!(%error, job = record.id, "cannot write down that a job has failed");
    }
}

/// Removes what a job has on the disk.
pub(crate) fn forget_files(db: &Database, id: u32) {
    if let Err(error) = db.coordinator().sweep_job_files(|job, _| job != id) {
        tracing::warn!(%error, job = id, "cannot remove files of a job");
    }
}
