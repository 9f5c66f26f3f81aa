//! Back-pressure: writers are slowed down smoothly, long before they would have to stop.
//!
//! ```text
//!   runs in L0     0 ..... slow ............... stop
//!   writers        free    at the speed at which L0 is drained,
//!                          less and less of it  a short wait per write
//! ```
//!
//! The speed at which compactions take bytes out of L0 is measured. Between the two limits writers
//! share a bucket that fills at that speed, times a factor that falls with the pressure. At the
//! upper limit each write waits for background work, but never as long as a second: an engine
//! that is overloaded is slow; it does not stand still.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Longest wait of one write for background work. With sublevels a job is over soon, and so is the
/// wait for it.
const LONGEST_STOP: Duration = Duration::from_millis(150);
/// Without sublevels, where one job may work on all of L0.
const LONGEST_STOP_PER_FILE: Duration = Duration::from_millis(500);
/// Before anything was measured, in bytes per second.
const FIRST_GUESS: u64 = 64 << 20;
const SLOWEST: u64 = 1 << 20;

/// See the module.
pub(crate) struct Throttle {
    /// Longest wait for background work; a delay is at most three fifths of it.
    longest_stop: Duration,
    /// Bytes per second that leave L0 while compactions work on it.
    drain: AtomicU64,
    /// When the bucket has room again, in nanoseconds of the clock.
    next: AtomicU64,
    /// From 0 to 1,000: how far between the limits.
    pressure: AtomicU64,
    /// Runs of L0 are at the upper limit.
    full: std::sync::atomic::AtomicBool,
    delayed_nanos: AtomicU64,
    longest_nanos: AtomicU64,
}

impl Throttle {
    /// Of a store with or without sublevels in its L0.
    pub(crate) fn new(l0_sublevels: bool) -> Throttle {
        Throttle {
            longest_stop: if l0_sublevels { LONGEST_STOP } else { LONGEST_STOP_PER_FILE },
            drain: AtomicU64::new(FIRST_GUESS),
            next: AtomicU64::new(0),
            pressure: AtomicU64::new(0),
            full: Default::default(),
            delayed_nanos: AtomicU64::new(0),
            longest_nanos: AtomicU64::new(0),
        }
    }

    /// Longest wait of one write while L0 is at its upper limit.
    pub(crate) fn longest_stop(&self) -> Duration {
        self.longest_stop
    }

    /// Notes how deep L0 is and how many bytes wait for compaction (`debt`, with its soft and
    /// hard limits).
    pub(crate) fn note(&self, depth: usize, slow: usize, stop: usize, debt: (u64, u64, u64)) {
        let share = |value: u64, low: u64, high: u64| {
            value.saturating_sub(low).saturating_mul(1_000) / high.saturating_sub(low).max(1)
        };
        let (debt, soft, hard) = debt;
        let depth_share =
            if depth < slow { 0 } else { share(depth as u64 + 1, slow as u64, stop as u64) };
        let pressure = depth_share.max(share(debt, soft, hard)).min(1_000);
        self.pressure.store(pressure, Ordering::Relaxed);
        self.full.store(depth >= stop, Ordering::Relaxed);
    }

    /// Whether L0 is at its upper limit.
    pub(crate) fn is_full(&self) -> bool {
        self.full.load(Ordering::Relaxed)
    }

    /// Whether writes may have to wait.
    pub(crate) fn is_pressed(&self) -> bool {
        self.pressure.load(Ordering::Relaxed) > 0
    }

    /// A compaction took `bytes` out of L0 in `nanos`.
    pub(crate) fn drained(&self, bytes: u64, nanos: u64) {
        if bytes < 1 << 16 || nanos == 0 {
            return;
        }
        let rate = (bytes as f64 / nanos as f64 * 1e9) as u64;
        let old = self.drain.load(Ordering::Relaxed);
        self.drain.store((old / 4 * 3).saturating_add(rate / 4).max(SLOWEST), Ordering::Relaxed);
    }

    /// How long a write of `bytes` waits. `more`: pressure from elsewhere, up to 1,000.
    pub(crate) fn delay(&self, bytes: u64, now: u64, more: u64) -> Option<Duration> {
        let pressure = self.pressure.load(Ordering::Relaxed).max(more.min(1_000));
        if pressure == 0 {
            return None;
        }
        // From one and a half times what leaves L0 down to a tenth of it.
        let rate = self.drain.load(Ordering::Relaxed) / 1_000 * (1_500 - pressure * 14 / 10);
        let cost = (bytes as f64 / rate.max(SLOWEST) as f64 * 1e9) as u64;
        let longest = self.longest_stop.as_nanos() as u64 * 3 / 5;
        let mut start = now;
        let update = self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| {
            start = next.clamp(now, now + longest);
            Some(start + cost.min(longest))
        });
        debug_assert!(update.is_ok(), "the closure always gives a value");
        let wait = start - now;
        (wait > 0).then(|| Duration::from_nanos(wait))
    }

    /// Notes that a write was kept waiting.
    pub(crate) fn waited(&self, nanos: u64) {
        self.delayed_nanos.fetch_add(nanos, Ordering::Relaxed);
        self.longest_nanos.fetch_max(nanos, Ordering::Relaxed);
    }

    /// Nanoseconds that writes waited: all together, and the longest one.
    pub(crate) fn waits(&self) -> (u64, u64) {
        (self.delayed_nanos.load(Ordering::Relaxed), self.longest_nanos.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deeper_l0_the_longer_a_write_waits_but_never_for_a_second() {
        let mut last = Duration::ZERO;
        for depth in [7, 8, 12, 16, 19, 40] {
            let throttle = Throttle::new(true);
            throttle.note(depth, 8, 20, (0, 1 << 30, 1 << 34));
            // The first write fills the bucket, the second one pays for it.
            assert_eq!(throttle.delay(1 << 20, 5, 0), None);
            let delay = throttle.delay(1 << 20, 5, 0).unwrap_or_default();
            assert!(delay >= last, "depth {depth}: {delay:?} after {last:?}");
            assert_eq!(delay.is_zero(), depth < 8);
            assert!(delay < Duration::from_secs(1));
            last = delay;
        }
    }
}
