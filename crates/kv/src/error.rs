//! Errors of transactions, sorted by what the caller does next.

use std::fmt;

use braid_env::memory::Exceeded;
use braid_lsm::{CommitTs, KeySpan};
use bytes::Bytes;

/// Shorthand for results of this crate.
pub type KvResult<T> = Result<T, KvError>;

/// Why a transactional operation failed.
#[derive(Debug)]
pub enum KvError {
    /// Another transaction got there first: roll back and run again (SQLSTATE 40001). Under
    /// READ COMMITTED running the statement again is enough.
    Retry {
        /// What conflicted, for the error's detail.
        conflict: Conflict,
    },
    /// Waiting would have closed a circle of waiting transactions (40P01): roll back, run again.
    Deadlock {
        /// The circle, for the error's detail.
        cycle: String,
    },
    /// A lock was not free and the caller did not want to wait for it (55P03).
    LockNotAvailable,
    /// A lock was not free for as long as the caller wanted to wait (55P03).
    LockTimeout,
    /// The caller's cancel flag was raised (57014).
    Canceled,
    /// The timestamp asked for is older than what is kept (or lies in the future).
    TimestampOutOfWindow {
        /// What was asked for.
        asked: CommitTs,
        /// The oldest readable timestamp.
        oldest: CommitTs,
        /// The newest readable timestamp.
        newest: CommitTs,
    },
    /// There is no memory for what the transaction holds (53200).
    OutOfMemory(Exceeded),
    /// A write in a read-only transaction (25006).
    ReadOnly,
    /// It would have to know the time of its own commit: rows that it reads or deletes are in a
    /// span into which its commit is going to put a key (55000).
    TimePending,
    /// There are too many writes beside keys that get the time of the commit (54000).
    TooManyWithTimes {
        /// So many are taken.
        most: usize,
    },
    /// Whoever keeps the keys takes no request like this, or none so large (54000). Nothing has
    /// happened.
    Refused(String),
    /// The transaction has already ended.
    Ended,
    /// Whoever keeps the keys cannot be reached, or cannot do it (57P03). Nothing has happened.
    Unavailable(String),
    /// Nobody says whether the transaction has happened (40003).
    OutcomeUnknown(String),
    /// The engine refused or failed.
    Engine(braid_lsm::Error),
}

/// What stood in the way of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conflict {
    /// It wants to write or lock a key that was written since its read timestamp.
    Written(Bytes),
    /// It wants to delete or lock a span in which something was written since then.
    WrittenSpan(KeySpan),
    /// A key that it read was written since then.
    Read(Bytes),
    /// A span that it read was written to since then.
    ReadSpan(KeySpan),
    /// Its statement would have to see a newer state, but it was promised one view.
    FixedView,
    /// What it reads was written at about the time at which it began: by clocks alone nobody can
    /// tell what was first.
    Uncertain(CommitTs),
    /// Its locks went when another node took their range over.
    LocksLost,
    /// What it reads is as of a time before this one, of which not all versions are kept any more.
    Collected(CommitTs),
    /// It was taken for abandoned in the middle of its commit, and those whom it kept from going on
    /// have ended it.
    Abandoned,
}

impl Conflict {
    /// The conflict in words, with keys printed by `key`.
    pub fn describe(&self, key: &dyn Fn(&[u8]) -> String) -> String {
        let span = |s: &KeySpan| format!("[{}, {})", key(&s.start), key(&s.end));
        match self {
            Conflict::Written(k) => format!("{} has changed", key(k)),
            Conflict::WrittenSpan(s) => format!("rows in {} have changed", span(s)),
            Conflict::Read(k) => format!("{} was read and has changed since", key(k)),
            Conflict::ReadSpan(s) => format!("{} was read and has changed since", span(s)),
            Conflict::FixedView => "the view of this transaction cannot move".into(),
            Conflict::Uncertain(ts) => {
                format!("a row was written at {}, about when this transaction began", ts.0)
            }
            Conflict::LocksLost => "its locks went with the lease of their range".into(),
            Conflict::Collected(oldest) => format!(
                "it took so long, or its node was silent for so long, that rows as it sees them \
                 are not kept any more; they are from {} on",
                oldest.0
            ),
            Conflict::Abandoned => "its commit took too long and others have ended it".into(),
        }
    }
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe(&|key| key.escape_ascii().to_string()))
    }
}

impl From<braid_lsm::Error> for KvError {
    fn from(e: braid_lsm::Error) -> KvError {
        KvError::Engine(e)
    }
}

impl From<Exceeded> for KvError {
    fn from(e: Exceeded) -> KvError {
        KvError::OutOfMemory(e)
    }
}

impl fmt::Display for KvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KvError::Retry { conflict } => {
                write!(f, "conflict with a concurrent commit: {conflict}")
            }
            KvError::Deadlock { cycle } => write!(f, "deadlock: {cycle}"),
            KvError::LockNotAvailable => f.write_str("lock is not available"),
            KvError::LockTimeout => f.write_str("lock was not available in time"),
            KvError::Canceled => f.write_str("canceled"),
            KvError::OutOfMemory(e) => e.fmt(f),
            KvError::TimestampOutOfWindow { asked, oldest, newest } => write!(
                f,
                "timestamp {} is outside of what can be read: {} to {}",
                asked.0, oldest.0, newest.0
            ),
            KvError::ReadOnly => f.write_str("write in a read-only transaction"),
            KvError::TimePending => f.write_str("depends on the time of its own commit"),
            KvError::TooManyWithTimes { most } => {
                write!(f, "more than {most} writes beside keys with the time of their commit")
            }
            KvError::Refused(reason) => f.write_str(reason),
            KvError::Ended => f.write_str("transaction has ended"),
            KvError::Unavailable(reason) => write!(f, "not available: {reason}"),
            KvError::OutcomeUnknown(reason) => {
                write!(f, "it is not known whether the transaction has happened: {reason}")
            }
            KvError::Engine(e) => write!(f, "{e}"),
        }
    }
}

impl std::error::Error for KvError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            KvError::Engine(e) => Some(e),
            _ => None,
        }
    }
}
