//! The hybrid logical clock: 52 bits of microseconds, 12 bits of counter, one `u64`.
//!
//! ```text
//!   63                                              12 11         0
//!   | microseconds since 1970 (until the year 2112)   | logical   |
//! ```
//!
//! Two calls never return the same number, and a number returned after [`Hlc::update`] is above
//! what was observed. If more than 4,096 timestamps are taken in one microsecond the counter
//! spills into the microseconds: the clock then runs ahead of the wall by a hair, which is safe,
//! since it only ever moves forward.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Clock;

/// Number of low bits that hold the logical counter.
pub const LOGICAL_BITS: u32 = 12;

/// A clock of unique, increasing 64-bit timestamps close to wall time.
pub struct Hlc {
    clock: Arc<dyn Clock>,
    last: AtomicU64,
}

impl Hlc {
    /// A hybrid logical clock over `clock` that has not seen any timestamp yet.
    pub fn new(clock: Arc<dyn Clock>) -> Hlc {
        Hlc { clock, last: AtomicU64::new(0) }
    }

    /// Takes the next timestamp: above every one taken or observed before. Lock-free.
    pub fn now(&self) -> u64 {
        let physical = self.clock.now_micros() << LOGICAL_BITS;
        let mut last = self.last.load(Ordering::Relaxed);
        loop {
            let next = physical.max(last + 1);
            match self.last.compare_exchange_weak(last, next, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return next,
                Err(seen) => last = seen,
            }
        }
    }

    /// Looks at the clock without taking a timestamp: no later `now()` returns less or equal.
    pub fn peek(&self) -> u64 {
        self.last.load(Ordering::Acquire)
    }

    /// Learns of a timestamp made elsewhere: every later `now()` is above it.
    pub fn update(&self, observed: u64) {
        self.last.fetch_max(observed, Ordering::AcqRel);
    }

    /// The microseconds since 1970 inside a timestamp.
    pub fn micros_of(timestamp: u64) -> u64 {
        timestamp >> LOGICAL_BITS
    }

    /// The smallest timestamp of a microsecond.
    pub fn from_micros(micros: u64) -> u64 {
        micros << LOGICAL_BITS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;

    #[test]
    fn timestamps_increase_while_the_wall_clock_stands_still_or_goes_back() {
        let wall = Arc::new(ManualClock::at_micros(1_000));
        let hlc = Hlc::new(wall.clone());
        let first = hlc.now();
        assert_eq!(Hlc::micros_of(first), 1_000);
        let mut last = first;
        for _ in 0..10_000 {
            let next = hlc.now();
            assert!(next > last);
            last = next;
        }
        wall.set_micros(5);
        assert!(hlc.now() > last);
    }

    #[test]
    fn observed_timestamps_push_the_clock() {
        let hlc = Hlc::new(Arc::new(ManualClock::at_micros(1)));
        hlc.update(Hlc::from_micros(9_999));
        assert!(hlc.now() > Hlc::from_micros(9_999));
    }
}
