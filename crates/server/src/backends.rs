//! All connections of the node: how many there may be, and how each is found to be stopped.
//!
//! ```text
//!   accepted ──► greeting ──► session ──► gone
//!                   │            │
//!                   │            └─ at most `max`, of which a few are for root
//!                   └─ at most GREETINGS_MAX: one more pushes out the oldest; each has
//!                      `startup_timeout` to say who it is
//! ```
//! So silent sockets never keep a client out that says at once what it wants, and applications
//! that use up all connections leave a way in for root.

use std::collections::HashMap;
use std::io;
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use braid_env::clock::{Clock, WallClock};
use braid_env::memory::Account;
use braid_sql::{Cause, Interrupt};
use braid_types::{SqlError, SqlState};
use parking_lot::Mutex;

use crate::listener::Shared;
use crate::pgwire::connection::Connection;
use crate::pgwire::startup::Greeting;

/// Sockets that have not yet said who they are.
pub(crate) const GREETINGS_MAX: usize = 250;
/// Of the connections, so many are kept for root (PostgreSQL: `superuser_reserved_connections`).
const RESERVED: usize = 3;
/// The user for whom they are kept.
const SUPERUSER: &str = "root";

/// One connection, as others see it.
pub(crate) struct Backend {
    pub(crate) pid: i32,
    pub(crate) secret: i32,
    pub(crate) socket: Arc<TcpStream>,
    pub(crate) interrupt: Arc<Interrupt>,
    /// What its messages hold.
    pub(crate) memory: Arc<Account>,
    /// What is being waited for, each with the time when that becomes too long.
    pub(crate) statement: Deadline,
    pub(crate) transaction: Deadline,
    pub(crate) idle: Deadline,
    pub(crate) idle_in_transaction: Deadline,
}

/// A moment of the monotonic clock, or none.
#[derive(Default)]
pub(crate) struct Deadline(AtomicU64);

impl Deadline {
    /// Begins, unless it has begun already.
    pub(crate) fn begin(&self, limit: Option<Duration>) {
        if let Some(limit) = limit
            && self.0.load(Ordering::Relaxed) == 0
        {
            let nanos = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
            self.0.store(now().saturating_add(nanos).max(1), Ordering::Relaxed);
        }
    }

    pub(crate) fn end(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    fn passed(&self, now: u64) -> bool {
        let at = self.0.load(Ordering::Relaxed);
        at != 0 && at <= now
    }
}

/// Nanoseconds of the monotonic clock.
pub(crate) fn now() -> u64 {
    WallClock.monotonic_nanos()
}

/// A connection that nobody says anything on: it needs no thread.
pub(crate) enum Parked {
    Greeting(Box<Greeting>),
    Session(Box<Connection>),
}

#[derive(Default)]
pub(crate) struct Backends {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The last connection's number among those of this node.
    last: i32,
    open: HashMap<i32, Entry>,
    sessions: usize,
}

struct Entry {
    backend: Arc<Backend>,
    is_session: bool,
    parked: Option<Parked>,
    /// There is something to tell its client, and a thread had it.
    roused: bool,
}

/// A connection's place in the register; dropping it gives the place back.
pub(crate) struct Registration {
    pub(crate) backend: Arc<Backend>,
    backends: Arc<Backends>,
}

impl Backends {
    /// Registers a new socket, which now has to say who it is.
    pub(crate) fn admit(
        self: &Arc<Self>,
        socket: TcpStream,
        secret: i32,
        shared: &Shared,
    ) -> Registration {
        let limit = shared.config.startup_timeout;
        let mut state = self.state.lock();
        let node = shared.place.member().map_or(0, |member| member.node().0);
        let most = braid_sql::sessions_most(node);
        let pid = loop {
            state.last = if state.last < most { state.last + 1 } else { 1 };
            let pid = braid_sql::session_number(node, state.last);
            if !state.open.contains_key(&pid) {
                break pid;
            }
        };
        let backend = Arc::new(Backend {
            pid,
            secret,
            socket: Arc::new(socket),
            interrupt: Arc::default(),
            memory: shared.place.memory().account(usize::MAX),
            statement: Deadline::default(),
            transaction: Deadline::default(),
            idle: Deadline::default(),
            idle_in_transaction: Deadline::default(),
        });
        backend.idle.begin(Some(limit));
        let entry =
            Entry { backend: Arc::clone(&backend), is_session: false, parked: None, roused: false };
        state.open.insert(pid, entry);
        Registration { backend, backends: Arc::clone(self) }
    }

    /// Takes out the oldest silent socket that has not said who it is, if there are too many of
    /// them. One that is being listened to is not silent.
    pub(crate) fn surplus_greeting(&self) -> Option<Parked> {
        let mut state = self.state.lock();
        let greetings = state.open.values().filter(|e| !e.is_session);
        if greetings.clone().count() <= GREETINGS_MAX {
            return None;
        }
        let silent = greetings.filter(|e| e.parked.is_some());
        let oldest = silent.min_by_key(|e| e.backend.pid)?.backend.pid;
        state.open.get_mut(&oldest)?.parked.take()
    }

    /// Makes a session of a socket that has said who it is.
    ///
    /// # Errors
    /// 53300 when there are `max` already, or so many that the rest is kept for root.
    pub(crate) fn promote(
        &self,
        registration: &Registration,
        user: &str,
        max: usize,
    ) -> Result<(), SqlError> {
        let mut state = self.state.lock();
        let reserved = if user == SUPERUSER { 0 } else { RESERVED.min(max / 2) };
        if state.sessions + reserved >= max {
            let message = if state.sessions < max {
                "remaining connection slots are reserved for root"
            } else {
                "sorry, too many clients already"
            };
            return Err(SqlError::new(SqlState("53300"), message).with_hint(format!(
                "At most {max} connections are open at once (--max-connections), {RESERVED} of \
                 them for root."
            )));
        }
        if let Some(entry) = state.open.get_mut(&registration.backend.pid) {
            entry.is_session = true;
            state.sessions += 1;
        }
        registration.backend.idle.end();
        Ok(())
    }

    /// Keeps a connection until somebody takes it. `arm` has its socket watched; nobody can take
    /// the connection before that is done.
    pub(crate) fn park(
        &self,
        pid: i32,
        connection: Parked,
        arm: impl FnOnce(&Backend) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut state = self.state.lock();
        let Some(entry) = state.open.get_mut(&pid) else { return Ok(()) };
        let armed = arm(&entry.backend);
        // Dropped outside of the lock, which it takes again.
        let dropped = match armed {
            Ok(()) => entry.parked.replace(connection),
            Err(_) => Some(connection),
        };
        drop(state);
        drop(dropped);
        armed
    }

    pub(crate) fn is_session(&self, pid: i32) -> bool {
        self.state.lock().open.get(&pid).is_some_and(|e| e.is_session)
    }

    /// Takes a connection that was parked.
    pub(crate) fn take(&self, pid: i32) -> Option<Parked> {
        self.state.lock().open.get_mut(&pid)?.parked.take()
    }

    /// Takes a session that has something to tell its client. One that a thread has is noted: the
    /// thread looks before it waits, or [`Backends::roused`] says it when it is parked.
    pub(crate) fn rouse(&self, pid: i32) -> Option<Parked> {
        let mut state = self.state.lock();
        let entry = state.open.get_mut(&pid)?;
        let parked = entry.parked.take();
        entry.roused = parked.is_none();
        parked
    }

    /// Takes a session that was parked although it was roused.
    pub(crate) fn roused(&self, pid: i32) -> Option<Parked> {
        let mut state = self.state.lock();
        let entry = state.open.get_mut(&pid)?;
        let parked = if entry.roused { entry.parked.take() } else { None };
        entry.roused = false;
        parked
    }

    pub(crate) fn find(&self, pid: i32) -> Option<Arc<Backend>> {
        self.state.lock().open.get(&pid).map(|e| Arc::clone(&e.backend))
    }

    /// A statement's cancel request. A wrong secret does nothing, silently, as in PostgreSQL: the
    /// sender learns nothing.
    pub(crate) fn cancel(&self, pid: i32, secret: i32) {
        if let Some(backend) = self.find(pid).filter(|b| b.secret == secret) {
            backend.interrupt.raise(Cause::User);
        }
    }

    /// Connections whose time is up, with the reason.
    pub(crate) fn expired(&self) -> Vec<(i32, Cause)> {
        let now = now();
        let mut out = Vec::new();
        for (pid, entry) in &self.state.lock().open {
            let b = &entry.backend;
            let limits = [
                (&b.statement, Cause::StatementTimeout),
                (&b.transaction, Cause::TransactionTimeout),
                (&b.idle, Cause::IdleSession),
                (&b.idle_in_transaction, Cause::IdleInTransaction),
            ];
            for (deadline, cause) in limits {
                if deadline.passed(now) {
                    deadline.end();
                    out.push((*pid, cause));
                }
            }
        }
        out
    }

    /// Process ids of all connections.
    pub(crate) fn pids(&self) -> Vec<i32> {
        self.state.lock().open.keys().copied().collect()
    }

    /// Closes all sockets, whatever their threads do.
    pub(crate) fn cut_all(&self) {
        for entry in self.state.lock().open.values() {
            // The peer may have closed it already; either way it is closed now.
            let _already_closed = entry.backend.socket.shutdown(Shutdown::Both);
        }
    }

    /// Sessions, not counting sockets that have not said who they are.
    pub(crate) fn sessions(&self) -> usize {
        self.state.lock().sessions
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.state.lock().open.is_empty()
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut state = self.backends.state.lock();
        if let Some(entry) = state.open.remove(&self.backend.pid) {
            state.sessions -= usize::from(entry.is_session);
            drop(state);
            // A parked connection owns its registration, so nothing is parked in its own entry.
            drop(entry);
        }
    }
}
