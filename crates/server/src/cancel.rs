//! Who can cancel whose statement: process number and secret of every connection.

use std::collections::HashMap;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

/// Connections that are open now.
#[derive(Default)]
pub(crate) struct Connections {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    next_pid: i32,
    open: HashMap<i32, Open>,
}

struct Open {
    secret: i32,
    cancel: Arc<AtomicBool>,
    socket: TcpStream,
}

/// A connection's entry; dropping it removes the entry.
pub(crate) struct Registration {
    pub(crate) pid: i32,
    pub(crate) secret: i32,
    pub(crate) cancel: Arc<AtomicBool>,
    connections: Arc<Connections>,
}

impl Connections {
    /// Registers a connection, or `None` if there are `max` already.
    pub(crate) fn register(
        self: &Arc<Self>,
        socket: TcpStream,
        secret: i32,
        max: usize,
    ) -> Option<Registration> {
        let mut state = self.state.lock();
        if state.open.len() >= max {
            return None;
        }
        state.next_pid = state.next_pid.checked_add(1).unwrap_or(1);
        let pid = state.next_pid;
        let cancel = Arc::new(AtomicBool::new(false));
        state.open.insert(pid, Open { secret, cancel: Arc::clone(&cancel), socket });
        Some(Registration { pid, secret, cancel, connections: Arc::clone(self) })
    }

    /// Raises the cancel flag of a connection. A wrong secret does nothing, silently, as in
    /// PostgreSQL: the sender learns nothing.
    pub(crate) fn cancel(&self, pid: i32, secret: i32) {
        if let Some(open) = self.state.lock().open.get(&pid).filter(|o| o.secret == secret) {
            open.cancel.store(true, Ordering::Relaxed);
        }
    }

    /// Cancels what runs and closes all sockets.
    pub(crate) fn close_all(&self) {
        for open in self.state.lock().open.values() {
            open.cancel.store(true, Ordering::Relaxed);
            // The peer may have closed it already; either way it is closed now.
            let _already_closed = open.socket.shutdown(std::net::Shutdown::Both);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.state.lock().open.len()
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.connections.state.lock().open.remove(&self.pid);
    }
}
