//! How an import ends that does not succeed: it has failed, or it waits for room on the disk.

use braid_types::{SqlError, SqlState};

use crate::database::Database;
use crate::jobs::{Record, State};

/// Writes down how an import has ended, and says it. Nothing has to be taken back.
///
/// Of one that ends because the node does only that is written how far it is: it goes on when the
/// node starts. One that finds no room on the disk pauses: it goes on when somebody says so.
pub(super) fn note_end(db: &Database, record: Record, e: SqlError) -> SqlError {
    let canceled = e.state() == SqlState::QUERY_CANCELED;
    let id = record.id;
    if canceled && db.jobs().is_stopping() {
        note_progress(db, &record);
        return e;
    }
    // The commit may have happened, and only its way to the disk has failed.
    let stored = Record::change(db.coordinator(), id, |_| None);
    if stored.is_ok_and(|stored| stored.is_some_and(|r| r.state == State::Succeeded)) {
        let told =
            "All of it is there, but may be gone if the node stops before it is on the disk.";
        return e.with_hint(told);
    }
    if e.state() != SqlState::DISK_FULL {
        forget_files(db, id);
        note_failure(db, record, &e);
        return e;
    }
    let at = match db.coordinator().read_job_note(id) {
        Some(_) => "from its last checkpoint",
        None => "from its beginning",
    };
    note_pause(db, record, &e);
    e.with_hint(format!("Make room and say RESUME JOB {id}: it goes on {at}."))
}

/// Writes down that an import waits for room on the disk, if there is room for that.
fn note_pause(db: &Database, mut record: Record, e: &SqlError) {
    record.state = State::Paused;
    record.error = Some(format!("it waits for room on the disk: {}", e.message()));
    if let Err(error) = record.store(db.coordinator()) {
        // It counts as running then, and RESUME JOB finds that it does not.
        tracing::warn!(%error, job = record.id, "cannot write down that a job pauses");
    }
}

/// Writes down how an import has ended in a thread of its own, if nobody has: where the disk was
/// full, there may be room now.
pub(super) fn note_unless_noted(db: &Database, record: Record, e: &SqlError) {
    // One that was taken back has said so itself.
    let stored = Record::change(db.coordinator(), record.id, |_| None);
    let Ok(Some(stored)) = stored else { return };
    match stored.state {
        State::Running if e.state() == SqlState::DISK_FULL => note_pause(db, stored, e),
        State::Running => note_failure(db, record, e),
        _ => {}
    }
}

/// Writes down how far an import has come, which is shown until it goes on.
fn note_progress(db: &Database, now: &Record) {
    let change = |stored: Option<&Record>| {
        let stored = stored.filter(|stored| !stored.state.is_final())?;
        Some(Record { fraction: stored.fraction.max(now.fraction), ..stored.clone() })
    };
    if let Err(error) = Record::change(db.coordinator(), now.id, change) {
        tracing::warn!(%error, job = now.id, "cannot write down how far a job is");
    }
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
