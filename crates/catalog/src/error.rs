//! How errors of the transaction layer look to SQL.

use braid_env::memory::{Exceeded, Scope};
use braid_kv::{Conflict, KvError};
use braid_types::{RetryReason, SqlError, SqlState, commit_time_is_pending};

use crate::conflict::Lost;

/// The SQL error for a failed transactional operation.
pub fn kv_error(e: KvError) -> SqlError {
    match e {
        KvError::Retry { conflict } => Lost::Changed
            .error("could not serialize access due to concurrent update")
            .with_detail(conflict.describe(&braid_keys::pretty::key))
            .with_retry_reason(reason(&conflict)),
        KvError::Deadlock { cycle } => Lost::Deadlock.error("deadlock detected").with_detail(cycle),
        KvError::LockNotAvailable => Lost::NotFree.error("could not obtain lock on row"),
        KvError::LockTimeout => Lost::NotFree.error("canceling statement due to lock timeout"),
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
        KvError::TimePending => commit_time_is_pending(),
        KvError::TooManyWithTimes { .. } => {
            SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, e.to_string())
                .with_hint("Commit more often.")
        }
        KvError::Refused(reason) => SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, reason.clone())
            .with_hint(
                "Commit in parts; IMPORT .. WITH online does. Many rows are loaded at once into an \
                 empty table.",
            ),
        KvError::Ended => SqlError::internal("the transaction has already ended"),
        KvError::Unavailable(reason) => SqlError::new(
            SqlState::CANNOT_CONNECT_NOW,
            format!("the rows cannot be reached: {reason}"),
        )
        .with_hint(
            "Nothing has changed. Run it again at another node, or when the one that holds them \
             is back.",
        ),
        KvError::OutcomeUnknown(reason) => SqlError::new(
            SqlState::STATEMENT_COMPLETION_UNKNOWN,
            format!("it is not known whether the transaction was committed: {reason}"),
        )
        .with_hint("Look at what it should have changed before running it again."),
        KvError::Engine(e) => engine_error(&e),
    }
}

fn reason(conflict: &Conflict) -> RetryReason {
    match conflict {
        Conflict::Written(_) | Conflict::WrittenSpan(_) | Conflict::FixedView => {
            RetryReason::WriteConflict
        }
        Conflict::Read(_) | Conflict::ReadSpan(_) => RetryReason::ReadConflict,
        Conflict::Uncertain(_) => RetryReason::UncertainRead,
        Conflict::LocksLost | Conflict::Collected(_) | Conflict::Abandoned => {
            RetryReason::LeaseLost
        }
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
    let error = SqlError::new(state, e.to_string());
    match e {
        braid_lsm::Error::DiskFull => error.with_hint(
            "Make room on the disk: writes are accepted again then. In a cluster, on those of the \
             nodes that braid_nodes calls short of room. Reads and deletes go on.",
        ),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use braid_kv::{CommitTs, Conflict};

    use super::*;

    /// One error of each kind; the match makes a new kind a line here.
    fn all() -> Vec<(KvError, &'static str)> {
        let exceeded =
            Exceeded { what: "a sort".into(), bytes: 2, scope: Scope::Statement, limit: 1 };
        let ts = CommitTs(1);
        let engine = |e| KvError::Engine(e);
        let all = vec![
            KvError::Retry { conflict: Conflict::FixedView },
            KvError::Deadlock { cycle: "1 waits for 1".into() },
            KvError::LockNotAvailable,
            KvError::LockTimeout,
            KvError::Canceled,
            KvError::TimestampOutOfWindow { asked: ts, oldest: ts, newest: ts },
            KvError::OutOfMemory(exceeded),
            KvError::ReadOnly,
            KvError::TimePending,
            KvError::TooManyWithTimes { most: 1 },
            KvError::Refused("too large".into()),
            KvError::Ended,
            KvError::Unavailable("no answer".into()),
            KvError::OutcomeUnknown("no answer".into()),
            engine(braid_lsm::Error::DiskFull),
        ];
        all.into_iter()
            .map(|e| {
                let state = match &e {
                    KvError::Retry { .. } => "40001",
                    KvError::Deadlock { .. } => "40P01",
                    KvError::LockNotAvailable | KvError::LockTimeout => "55P03",
                    KvError::Canceled => "57014",
                    KvError::TimestampOutOfWindow { .. } => "55000",
                    KvError::OutOfMemory(_) => "53200",
                    KvError::ReadOnly => "25006",
                    KvError::TimePending => "55000",
                    KvError::TooManyWithTimes { .. } | KvError::Refused(_) => "54000",
                    KvError::Ended => "XX000",
                    KvError::Unavailable(_) => "57P03",
                    KvError::OutcomeUnknown(_) => "40003",
                    KvError::Engine(_) => "53100",
                };
                (e, state)
            })
            .collect()
    }

    #[test]
    fn every_error_of_transactions_has_its_state() {
        for (error, state) in all() {
            let shown = error.to_string();
            assert_eq!(kv_error(error).state().0, state, "{shown}");
        }
    }
}
