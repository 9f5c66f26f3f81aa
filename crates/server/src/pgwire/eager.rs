//! Waiting for a client that goes on at once.
//!
//! To sleep until the next message comes, and to be woken for it, takes the system longer than a
//! short statement takes us. A client in a tight exchange (a pipeline of short statements over
//! loopback or within a rack) speaks again before a sleeper would be awake. So who has just been
//! spoken to quickly looks again and again for a short while before it sleeps:
//!
//! ```text
//!   answer sent ──► last gap short? ──yes──► look for a while ──► bytes: read
//!                        │ no                    │ nothing
//!                        └─────────► sleep ◄─────┘
//! ```
//! It costs processor time and must never take it from work: half of the processors at most look,
//! each gives way to whoever is ready to run, and after one pause of the client nobody looks until
//! it has been quick again. Where more clients are busy than there are processors, there is always
//! work, and nobody looks. Neither does whoever had to give way: others than clients want the
//! processor, too, and keep it for a slice of the system's, a millisecond or more, while the
//! message comes. Who sleeps is woken for it at once. (*Competitive spinning*: Karlin, Li, Manasse,
//! Owicki, 1991.)

use std::net::TcpStream;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::backends::now;

/// Threads that look at this moment, of the whole process: processors are the process's, too.
static LOOKING: AtomicUsize = AtomicUsize::new(0);
/// Clients that are busy.
static BUSY: AtomicUsize = AtomicUsize::new(0);

/// Whose last gap was up to so many times as long as a short one is busy. A crowd of quick clients
/// makes each other's gaps longer than short ones.
const BUSY_GAPS: u32 = 10;

fn processors() -> usize {
    static COUNT: OnceLock<usize> = OnceLock::new();
    *COUNT.get_or_init(|| std::thread::available_parallelism().map_or(0, usize::from))
}

/// Whoever has used the processor for longer is no client in a tight exchange, which sleeps sooner.
const SHORT_TURN: Duration = Duration::from_micros(200);
/// Who had to give way does not look for so many messages.
const AFTER_GIVING_WAY: u32 = 256;

/// How many may look.
fn looking_max() -> usize {
    processors() / 2
}

/// What is known of a client's pace.
pub(super) struct Pace {
    /// How long it is looked for bytes, and what counts as a short gap.
    look_for: Duration,
    /// Since when its next message is waited for, by the monotonic clock.
    since: Option<u64>,
    quick: bool,
    busy: bool,
    /// For so many messages it is not looked, whatever the pace.
    rests: u32,
}

impl Pace {
    pub(super) fn new(look_for: Duration) -> Pace {
        Pace { look_for, since: None, quick: false, busy: false, rests: 0 }
    }

    /// The wait begins. Returns when there is something to read, or when it is time to sleep.
    pub(super) fn wait(&mut self, socket: &TcpStream) {
        let since = *self.since.get_or_insert_with(now);
        let rests = self.rests > 0;
        self.rests = self.rests.saturating_sub(1);
        if !self.quick || rests || BUSY.load(Ordering::Relaxed) > processors() {
            return;
        }
        let others = LOOKING.fetch_add(1, Ordering::Relaxed);
        if others < looking_max() {
            while is_within(self.look_for, since) && !is_readable(socket) {
                let gave = now();
                std::thread::yield_now();
                if !is_within(SHORT_TURN, gave) {
                    self.rests = AFTER_GIVING_WAY;
                    break;
                }
            }
        }
        LOOKING.fetch_sub(1, Ordering::Relaxed);
    }

    /// Bytes have come, or the wait is over.
    pub(super) fn heard(&mut self) {
        let Some(since) = self.since.take() else { return };
        self.quick = is_within(self.look_for, since);
        self.set_busy(self.quick || is_within(self.look_for * BUSY_GAPS, since));
    }

    fn set_busy(&mut self, busy: bool) {
        match (self.busy, busy) {
            (false, true) => drop(BUSY.fetch_add(1, Ordering::Relaxed)),
            (true, false) => drop(BUSY.fetch_sub(1, Ordering::Relaxed)),
            _ => {}
        }
        self.busy = busy;
    }
}

/// Whether a wait that began then is no longer than this as yet.
fn is_within(limit: Duration, since: u64) -> bool {
    u128::from(now().saturating_sub(since)) < limit.as_nanos()
}

impl Drop for Pace {
    fn drop(&mut self) {
        self.set_busy(false);
    }
}

fn is_readable(socket: &TcpStream) -> bool {
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    // An error is told by the read that follows.
    poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&at_once)) != Ok(0)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpListener;

    use super::*;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (client, listener.accept().unwrap().0)
    }

    // One test: threads that look are counted for the whole process.
    #[test]
    fn a_quick_client_is_looked_for_until_it_pauses() {
        let (mut client, server) = pair();
        let mut pace = Pace::new(Duration::from_secs(60));
        // Nobody knows the client yet: back at once.
        pace.wait(&server);
        assert!(!is_readable(&server));
        pace.heard();
        let speaks = std::thread::Builder::new().spawn(move || {
            std::thread::sleep(Duration::from_millis(20));
            client.write_all(b"x").unwrap();
            client
        });
        pace.wait(&server);
        // One processor has none to spare for looking, and other tests may want this one.
        assert!(is_readable(&server) || looking_max() == 0 || pace.rests > 0);
        drop(speaks.unwrap().join().unwrap());
        drop(pace);

        // Who had to give way sleeps at once, for a while.
        let (_client, server) = pair();
        let mut pace = Pace { quick: true, rests: 2, ..Pace::new(Duration::from_secs(60)) };
        pace.wait(&server);
        pace.wait(&server);
        assert!(pace.rests == 0 && !is_readable(&server));
        drop(pace);

        let (_client, server) = pair();
        let mut pace = Pace { quick: true, ..Pace::new(Duration::from_millis(1)) };
        pace.wait(&server);
        assert!(!is_readable(&server));
        std::thread::sleep(Duration::from_millis(2));
        pace.heard();
        assert!(!pace.quick);
        let mut never = Pace::new(Duration::ZERO);
        never.wait(&server);
        never.heard();
        assert!(!never.quick);

        // So many are busy that nobody looks: back at once.
        drop(pace);
        assert_eq!(BUSY.load(Ordering::Relaxed), 0);
        let quick = |_| {
            let mut pace = Pace::new(Duration::from_secs(60));
            pace.wait(&server);
            pace.heard();
            pace
        };
        let mut crowd: Vec<Pace> = (0..=processors()).map(quick).collect();
        assert!(crowd.iter().all(|pace| pace.quick));
        crowd[0].wait(&server);
        assert!(!is_readable(&server));
        drop(crowd);
        assert_eq!(BUSY.load(Ordering::Relaxed), 0);
    }
}
