//! Why a statement or a session has to stop.
//!
//! Loops look at one flag ([`Interrupt::flag`]) and stop with 57014 when it is up. Who raised it,
//! and what the client is told, stands beside it:
//!
//! ```text
//!   raise(User) ──────────► 57014, the session goes on; lowered when the next statement begins
//!   raise(StatementTimeout) 57014, likewise
//!   raise(Terminate) ─────► 57P01, the session ends: never lowered
//! ```
//! Of two causes the one further down in [`Cause`] counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use braid_types::{SqlError, SqlState};

/// Who asked, in order of weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// A cancel request or `pg_cancel_backend`.
    User = 1,
    /// `statement_timeout`.
    StatementTimeout,
    /// `idle_session_timeout`; this and all below end the session.
    IdleSession,
    /// `idle_in_transaction_session_timeout`.
    IdleInTransaction,
    /// `transaction_timeout`.
    TransactionTimeout,
    /// `pg_terminate_backend`.
    Terminate,
    /// The node stops.
    Shutdown,
    /// The client has left: there is nobody to tell.
    Gone,
}

const ALL: [Cause; 8] = [
    Cause::User,
    Cause::StatementTimeout,
    Cause::IdleSession,
    Cause::IdleInTransaction,
    Cause::TransactionTimeout,
    Cause::Terminate,
    Cause::Shutdown,
    Cause::Gone,
];

impl Cause {
    /// Whether the session ends, not only its statement.
    pub fn ends_session(self) -> bool {
        self >= Cause::IdleSession
    }

    /// What the client is told.
    pub fn error(self) -> SqlError {
        let (state, message) = match self {
            Cause::User => (SqlState::QUERY_CANCELED, "canceling statement due to user request"),
            Cause::StatementTimeout => {
                (SqlState::QUERY_CANCELED, "canceling statement due to statement timeout")
            }
            Cause::IdleSession => {
                (SqlState("57P05"), "terminating connection due to idle-session timeout")
            }
            Cause::IdleInTransaction => {
                (SqlState("25P03"), "terminating connection due to idle-in-transaction timeout")
            }
            Cause::TransactionTimeout => {
                (SqlState("25P04"), "terminating connection due to transaction timeout")
            }
            Cause::Terminate | Cause::Shutdown => {
                (SqlState::ADMIN_SHUTDOWN, "terminating connection due to administrator command")
            }
            Cause::Gone => (SqlState("08006"), "connection to client lost"),
        };
        SqlError::new(state, message)
    }
}

/// See the [module documentation](self).
#[derive(Debug, Default)]
pub struct Interrupt {
    flag: Arc<AtomicBool>,
    /// A [`Cause`] as a number; 0 is none.
    cause: AtomicU8,
}

impl Interrupt {
    /// What running statements look at.
    pub fn flag(&self) -> &Arc<AtomicBool> {
        &self.flag
    }

    /// Asks for a stop.
    pub fn raise(&self, cause: Cause) {
        // That the client leaves because it is sent away does not change what it is told.
        if cause == Cause::Gone && self.cause().is_some_and(Cause::ends_session) {
            return;
        }
        self.cause.fetch_max(cause as u8, Ordering::SeqCst);
        self.flag.store(true, Ordering::SeqCst);
    }

    /// Forgets a request that was about an earlier statement.
    pub fn begin_statement(&self) {
        if !self.flag.load(Ordering::Relaxed) {
            return;
        }
        self.flag.store(false, Ordering::SeqCst);
        let lowered = self.cause.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |c| {
            (c < Cause::IdleSession as u8).then_some(0)
        });
        if lowered.is_err() {
            self.flag.store(true, Ordering::SeqCst);
        }
    }

    /// What was asked for, if anything.
    pub fn cause(&self) -> Option<Cause> {
        let index = usize::from(self.cause.load(Ordering::SeqCst)).checked_sub(1)?;
        ALL.get(index).copied()
    }
}

/// Other sessions of the node, for functions that signal them.
pub trait Backends: Send + Sync {
    /// Raises a cause in the session with this process id; `false` if there is none.
    fn signal(&self, pid: i32, cause: Cause) -> bool;

    /// Has this session tell its client what waits for it, if the client is silent.
    fn wake(&self, pid: i32);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cancel_is_about_one_statement_and_an_end_is_final() {
        let i = Interrupt::default();
        i.raise(Cause::User);
        i.raise(Cause::StatementTimeout);
        assert_eq!(i.cause(), Some(Cause::StatementTimeout));
        i.begin_statement();
        assert_eq!((i.cause(), i.flag().load(Ordering::SeqCst)), (None, false));
        i.raise(Cause::Terminate);
        i.raise(Cause::Gone);
        i.raise(Cause::User);
        i.begin_statement();
        assert_eq!((i.cause(), i.flag().load(Ordering::SeqCst)), (Some(Cause::Terminate), true));
        assert_eq!(ALL.map(|c| c as u8), [1, 2, 3, 4, 5, 6, 7, 8]);
    }
}
