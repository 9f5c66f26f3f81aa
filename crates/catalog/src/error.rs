//! How errors of the transaction layer look to SQL.

use braid_env::memory::{Exceeded, Scope};
use braid_kv::KvError;
use braid_types::{SqlError, SqlState};

/// The SQL error for a failed transactional operation.
pub fn kv_error(e: KvError) -> SqlError {
    match e {
        KvError::Retry { conflict } => SqlError::new(
            SqlState::SERIALIZATION_FAILURE,
            "could not serialize access due to concurrent update",
        )
        .with_detail(conflict.describe(&braid_keys::pretty::key))
        .with_hint("The transaction might succeed if retried."),
        KvError::Deadlock { cycle } => {
            SqlError::new(SqlState::DEADLOCK_DETECTED, "deadlock detected")
                .with_detail(cycle)
                .with_hint("The transaction might succeed if retried.")
        }
        KvError::LockNotAvailable => {
            SqlError::new(SqlState::LOCK_NOT_AVAILABLE, "could not obtain lock on row")
        }
        KvError::LockTimeout => {
            SqlError::new(SqlState::LOCK_NOT_AVAILABLE, "canceling statement due to lock timeout")
        }
        KvError::OutOfMemory(e) => memory_error(&e),
        KvError::Canceled => {
            SqlError::new(SqlState::QUERY_CANCELED, "canceling statement due to user request")
        }
        KvError::TimestampOutOfWindow { .. } => SqlError::new(
            SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
            "AS OF SYSTEM TIME is outside of what can still be read",
        )
        .with_detail(e.to_string())
        .with_hint("Rows are kept for the time of the setting gc_window."),
        KvError::ReadOnly => SqlError::new(
            SqlState::READ_ONLY_SQL_TRANSACTION,
            "cannot execute a writing statement in a read-only transaction",
        ),
        KvError::Ended => SqlError::internal("the transaction has already ended"),
        KvError::Engine(e) => engine_error(&e),
    }
}

/// 53200: there is no memory for what a statement wants to hold.
pub fn memory_error(e: &Exceeded) -> SqlError {
    let hint = match e.scope {
        Scope::Statement => "Raise statement_mem, or make the statement smaller.",
        Scope::Node => "Other statements hold it; run again later, or raise --max-memory.",
    };
    SqlError::new(SqlState::OUT_OF_MEMORY, format!("out of memory: {}", e.what))
        .with_detail(e.to_string())
        .with_hint(hint)
}

fn engine_error(e: &braid_lsm::Error) -> SqlError {
    let state = match e {
        braid_lsm::Error::Corruption { .. } => SqlState::DATA_CORRUPTED,
        braid_lsm::Error::DiskFull => SqlState::DISK_FULL,
        braid_lsm::Error::TooLarge { .. } => SqlState::PROGRAM_LIMIT_EXCEEDED,
        _ => SqlState::IO_ERROR,
    };
    SqlError::new(state, e.to_string())
}
