//! Losing against another transaction: every way of it, its SQLSTATE, and what follows.
//!
//! ```text
//!   what happened                             SQLSTATE   who runs again
//!   a row or span changed since it was read   40001      the statement, keeping its locks
//!   a table changed since planning            40001      the same
//!   a circle of waiting                       40P01      the same, letting go of its locks first
//!   a lock is not free: NOWAIT, lock_timeout  55P03      nobody; background work comes later
//!   a unique key is taken                     23505      nobody: the data is wrong
//! ```
//! No other code names these states; `cargo xtask tidy` checks that.

use braid_types::{RetryReason, SqlError, SqlState};

/// How a statement lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// Something that it read, or wants to write, has changed since.
    Changed,
    /// A table is not what the statement was planned with.
    Replanned,
    /// Its waiting would have closed a circle.
    Deadlock,
    /// A lock was not free, or not in time.
    NotFree,
    /// A unique key is taken.
    Duplicate,
}

/// What follows an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// It may run again, and wins sooner if it keeps its locks.
    Again,
    /// It may run again, when it has let go of its locks.
    AgainUnlocked,
    /// Who is in no hurry may come again later.
    Later,
    /// Running again would fail again.
    Never,
}

impl Lost {
    /// All ways to lose.
    pub const ALL: [Lost; 5] =
        [Lost::Changed, Lost::Replanned, Lost::Deadlock, Lost::NotFree, Lost::Duplicate];

    fn decide(self) -> (SqlState, After) {
        match self {
            Lost::Changed | Lost::Replanned => (SqlState::SERIALIZATION_FAILURE, After::Again),
            Lost::Deadlock => (SqlState::DEADLOCK_DETECTED, After::AgainUnlocked),
            Lost::NotFree => (SqlState::LOCK_NOT_AVAILABLE, After::Later),
            Lost::Duplicate => (SqlState::UNIQUE_VIOLATION, After::Never),
        }
    }

    /// The error of it; where running again helps, its hint says so.
    pub fn error(self, message: impl Into<String>) -> SqlError {
        let (state, after) = self.decide();
        let error = SqlError::new(state, message);
        let error = match after {
            After::Again | After::AgainUnlocked => {
                error.with_hint("The transaction might succeed if retried.")
            }
            After::Later | After::Never => error,
        };
        match self {
            Lost::Changed => error.with_retry_reason(RetryReason::WriteConflict),
            Lost::Replanned => error.with_retry_reason(RetryReason::SchemaChange),
            Lost::Deadlock => error.with_retry_reason(RetryReason::Deadlock),
            Lost::NotFree | Lost::Duplicate => error,
        }
    }
}

impl After {
    /// What follows this error, whoever made it.
    pub fn error(e: &SqlError) -> After {
        let decided = Lost::ALL.into_iter().map(Lost::decide);
        let mut found = decided.filter(|(state, _)| *state == e.state()).map(|(_, after)| after);
        found.next().unwrap_or(After::Never)
    }

    /// Whether a transaction may run again as a whole.
    pub fn is_again(self) -> bool {
        matches!(self, After::Again | After::AgainUnlocked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_lose_has_its_state_and_what_follows() {
        for lost in Lost::ALL {
            let (state, after) = match lost {
                Lost::Changed | Lost::Replanned => ("40001", After::Again),
                Lost::Deadlock => ("40P01", After::AgainUnlocked),
                Lost::NotFree => ("55P03", After::Later),
                Lost::Duplicate => ("23505", After::Never),
            };
            let error = lost.error("lost");
            assert_eq!((error.state().0, After::error(&error)), (state, after), "{lost:?}");
            assert_eq!(error.hint().is_some(), after.is_again(), "{lost:?}");
            assert_eq!(error.retry_reason().is_some(), after.is_again(), "{lost:?}");
        }
        assert_eq!(After::error(&SqlError::internal("a bug")), After::Never);
    }
}
