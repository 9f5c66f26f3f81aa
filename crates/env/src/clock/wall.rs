//! The [`Clock`] trait, the machine's clock and a clock that tests move by hand.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A source of time. Implementations are cheap to call and never block, except in [`Clock::sleep`].
pub trait Clock: Send + Sync + 'static {
    /// Microseconds since 1970-01-01 UTC. May jump in both directions.
    fn now_micros(&self) -> u64;

    /// Nanoseconds since an arbitrary start. Never goes backwards.
    fn monotonic_nanos(&self) -> u64;

    /// Lets the calling thread wait for `duration` of this clock's time.
    fn sleep(&self, duration: Duration);
}

/// The clock of the machine.
#[derive(Debug, Default, Clone, Copy)]
pub struct WallClock;

fn process_start() -> Instant {
    static START: OnceLock<Instant> = OnceLock::new();
    *START.get_or_init(Instant::now)
}

impl Clock for WallClock {
    fn now_micros(&self) -> u64 {
        // A machine set to before 1970 reads as 1970: timestamps stay positive and ordered.
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64)
    }

    fn monotonic_nanos(&self) -> u64 {
        process_start().elapsed().as_nanos() as u64
    }

    fn sleep(&self, duration: Duration) {
        std::thread::sleep(duration);
    }
}

/// Nanoseconds that the calling thread has spent on a core, if the system says so.
pub fn thread_cpu_nanos() -> Option<u64> {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let (seconds, nanos) = (u64::try_from(spent.tv_sec).ok()?, u64::try_from(spent.tv_nsec).ok()?);
    Some(seconds * 1_000_000_000 + nanos)
}

/// A clock that stands still until a test moves it.
#[derive(Debug)]
pub struct ManualClock {
    micros: AtomicU64,
}

impl ManualClock {
    /// A clock that shows `micros` microseconds since 1970.
    pub fn at_micros(micros: u64) -> ManualClock {
        ManualClock { micros: AtomicU64::new(micros) }
    }

    /// Moves the clock forward by `duration`.
    pub fn advance(&self, duration: Duration) {
        self.micros.fetch_add(duration.as_micros() as u64, Ordering::SeqCst);
    }

    /// Sets the clock, also backwards: a test of what happens when an operator does that.
    pub fn set_micros(&self, micros: u64) {
        self.micros.store(micros, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now_micros(&self) -> u64 {
        self.micros.load(Ordering::SeqCst)
    }

    fn monotonic_nanos(&self) -> u64 {
        self.micros.load(Ordering::SeqCst).saturating_mul(1_000)
    }

    /// Does not wait: it moves the clock, so that code which sleeps makes progress in tests.
    fn sleep(&self, duration: Duration) {
        self.advance(duration);
    }
}
