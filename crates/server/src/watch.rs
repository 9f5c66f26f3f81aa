//! One thread that watches all sockets and all limits of time.
//!
//! ```text
//!   connection's state     watched for             then
//!   parked                 bytes, or the end       a thread gets it
//!   a thread has it        the end                 its statement is stopped
//!   either                 limits of time          the statement or the session is stopped
//! ```
//! A socket is in the set once (epoll, one shot): each report disarms it, and whoever takes or
//! parks the connection arms it again for what is of interest then.

use std::io;
use std::net::{Shutdown, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use braid_sql::Cause;
use rustix::event::{Timespec, epoll};

use crate::backends::Parked;
use crate::listener::{Shared, resume};

/// How long a limit of time may be overrun.
const TICK: Duration = Duration::from_millis(25);
/// From one tick to the next while there are no connections. Whoever comes says something, and is
/// heard at once.
const TICK_ALONE: Duration = Duration::from_millis(250);

/// Free memory goes back to the system about once a second, if connections fell silent since;
/// after a while when the last one has gone.
const TRIM_TICKS: u64 = 40;
/// The same when the process has much that nobody counted.
const URGENT_TICKS: u64 = 4;

/// The set of sockets.
pub(crate) struct Watch {
    epoll: OwnedFd,
}

/// What a socket is watched for.
#[derive(Clone, Copy)]
pub(crate) enum Interest {
    /// Bytes to read, or the end.
    Speech,
    /// That the client leaves.
    Departure,
}

impl Interest {
    fn flags(self) -> epoll::EventFlags {
        let end = epoll::EventFlags::RDHUP | epoll::EventFlags::ONESHOT;
        match self {
            Interest::Speech => end | epoll::EventFlags::IN,
            Interest::Departure => end,
        }
    }
}

impl Watch {
    pub(crate) fn new() -> io::Result<Watch> {
        Ok(Watch { epoll: epoll::create(epoll::CreateFlags::CLOEXEC)? })
    }

    /// Puts a socket into the set.
    pub(crate) fn add(&self, pid: i32, socket: &TcpStream, interest: Interest) -> io::Result<()> {
        let data = epoll::EventData::new_u64(pid as u64);
        Ok(epoll::add(&self.epoll, socket, data, interest.flags())?)
    }

    /// Arms a socket again.
    pub(crate) fn arm(&self, pid: i32, socket: &TcpStream, interest: Interest) -> io::Result<()> {
        let data = epoll::EventData::new_u64(pid as u64);
        Ok(epoll::modify(&self.epoll, socket, data, interest.flags())?)
    }

    /// Waits for reports, at most so long: process ids, and whether the client has left.
    fn wait(&self, tick: Duration, reports: &mut Vec<(i32, bool)>) -> io::Result<()> {
        let mut events = Vec::with_capacity(256);
        let tick = Timespec { tv_sec: 0, tv_nsec: tick.as_nanos() as _ };
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), Some(&tick)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
        let gone = epoll::EventFlags::RDHUP | epoll::EventFlags::HUP | epoll::EventFlags::ERR;
        reports.clear();
        // Fields of a packed struct are copied out before use.
        reports.extend(events.iter().map(|e| {
            let (data, flags) = (e.data, e.flags);
            (data.u64() as i32, flags.intersects(gone))
        }));
        Ok(())
    }
}

/// The body of the watching thread.
pub(crate) fn watch(shared: &Arc<Shared>) {
    let mut reports = Vec::new();
    let mut ticks = 0u64;
    while !shared.stopping.load(Ordering::Relaxed) {
        let tick = if shared.backends.is_empty() { TICK_ALONE } else { TICK };
        if let Err(e) = shared.watch.wait(tick, &mut reports) {
            tracing::error!(error = %e, "cannot watch sockets");
            std::thread::sleep(TICK);
        }
        for &(pid, gone) in &reports {
            match shared.backends.take(pid) {
                Some(parked) => wake(shared, parked),
                None if gone => drop(raise(shared, pid, Cause::Gone)),
                None => {}
            }
        }
        for (pid, cause) in shared.backends.expired() {
            raise(shared, pid, cause);
        }
        if let Err(e) = shared.workers.tick() {
            tracing::warn!(error = %e, "no more threads for connections that wait");
        }
        ticks += 1;
        let pool = shared.place.memory();
        if let Some(resident) = shared.config.resident {
            pool.note_resident(resident(), shared.memory_fixed);
        }
        let much = pool.is_strained();
        let rested = || shared.rested.swap(false, Ordering::Relaxed);
        if let Some(trim) = shared.config.trim
            && (ticks.is_multiple_of(if much { URGENT_TICKS } else { TRIM_TICKS }))
            && (much || rested())
        {
            trim();
            if much {
                shared.place.engine().release_free_memory();
            }
        }
    }
}

/// Stops a statement or a session, wherever it is.
pub(crate) fn raise(shared: &Arc<Shared>, pid: i32, cause: Cause) -> bool {
    let Some(backend) = shared.backends.find(pid) else { return false };
    backend.interrupt.raise(cause);
    if cause.ends_session() {
        match shared.backends.take(pid) {
            Some(parked) => wake(shared, parked),
            // Its thread may sleep in a read: that now reports the end of the input.
            None => drop(backend.socket.shutdown(Shutdown::Read)),
        }
    }
    true
}

pub(crate) fn wake(shared: &Arc<Shared>, parked: Parked) {
    let own = Arc::clone(shared);
    if let Err(e) = shared.workers.run(Box::new(move || resume(parked, &own))) {
        tracing::warn!(error = %e, "no thread for a connection: it is closed");
    }
}
