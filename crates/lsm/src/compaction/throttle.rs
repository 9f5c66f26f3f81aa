//! Back-pressure: writers are slowed down smoothly, long before they would have to stop.
//!
//! ```text
//!   sublevels      0 ..... slow ................ stop .................
//!   small writes   free    at the speed at which  a few milliseconds each,
//!                          L0 is drained, less    more with every sublevel
//!   bulk           free    and less of it         waits for background work
//! ```
//!
//! The speed at which compactions take bytes out of L0 is measured. Above the lower limit writers
//! share a bucket that fills at that speed, times a factor that falls with the pressure. At the
//! upper limit it is a tenth, and falls further: what small writes bring is less than what leaves.
//! Who brings much at once (an ingest, a batch of a megabyte) has a bucket of his own, so that
//! nobody waits behind him, and at the upper limit waits for L0 itself: as long as draining his
//! bytes takes, but never for more than a second. How long a write waits at most goes by its bytes:
//! an engine that is overloaded is slow; it does not stand still.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A write of so many bytes is bulk.
pub(crate) const BULK: u64 = 1 << 20;
/// Longest wait of the smallest write; what is nearly bulk waits up to [`LONGEST_STOP`].
const LEAST_STOP: Duration = Duration::from_millis(20);
/// What each sublevel from the upper limit on adds to the wait of a write, and to its longest.
const STEP: Duration = Duration::from_millis(1);
/// More sublevels above the limit do not count.
const MOST_STEPS: u64 = 20;
/// Longest wait for background work, apart from what bulk waits for its own bytes. With sublevels a
/// job is over soon, and so is the wait for it.
const LONGEST_STOP: Duration = Duration::from_millis(150);
/// Without sublevels, where one job may work on all of L0.
const LONGEST_STOP_PER_FILE: Duration = Duration::from_millis(500);
/// No write waits longer.
const LONGEST: Duration = Duration::from_secs(1);
/// Before anything was measured, in bytes per second.
const FIRST_GUESS: u64 = 64 << 20;
const SLOWEST: u64 = 1 << 20;

/// See the module.
pub(crate) struct Throttle {
    longest_stop: Duration,
    /// Bytes per second that leave L0 while compactions work on it.
    drain: AtomicU64,
    /// When the buckets of small writes and of bulk have room again, in nanoseconds of the clock.
    next: [AtomicU64; 2],
    /// From 0 to 1,000: how far between the limits.
    pressure: AtomicU64,
    /// Sublevels from the upper limit on; 0: it is not reached.
    above: AtomicU64,
    delayed_nanos: AtomicU64,
    longest_nanos: AtomicU64,
}

impl Throttle {
    /// Of a store with or without sublevels in its L0.
    pub(crate) fn new(l0_sublevels: bool) -> Throttle {
        Throttle {
            longest_stop: if l0_sublevels { LONGEST_STOP } else { LONGEST_STOP_PER_FILE },
            drain: AtomicU64::new(FIRST_GUESS),
            next: Default::default(),
            pressure: AtomicU64::new(0),
            above: AtomicU64::new(0),
            delayed_nanos: AtomicU64::new(0),
            longest_nanos: AtomicU64::new(0),
        }
    }

    /// How long a write of `bytes` waits for L0 while that is at its upper limit; `None`: it does
    /// not wait for L0, but as [`Throttle::delay`] says.
    pub(crate) fn stop(&self, bytes: u64) -> Option<Duration> {
        let drained = bytes as f64 / self.drain.load(Ordering::Relaxed).max(SLOWEST) as f64;
        let stop = self.longest_stop + Duration::from_secs_f64(drained.min(1.0));
        (self.is_full() && bytes >= BULK).then_some(stop.min(LONGEST))
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
        self.above.store((depth + 1).saturating_sub(stop) as u64, Ordering::Relaxed);
    }

    /// Whether L0 is at its upper limit.
    pub(crate) fn is_full(&self) -> bool {
        self.above.load(Ordering::Relaxed) > 0
    }

    /// Whether writers may have to wait.
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
        let above = self.above.load(Ordering::Relaxed).min(MOST_STEPS);
        // From one and a half times what leaves L0 down to a tenth of it, and less.
        let rate = self.drain.load(Ordering::Relaxed) / 1_000 * (1_500 - pressure * 14 / 10);
        let rate = rate.max(SLOWEST) / (1 + above / 4);
        let cost = (bytes as f64 / rate as f64 * 1e9) as u64;
        let step = above * STEP.as_nanos() as u64;
        let (least, most) = (LEAST_STOP.as_nanos() as u64, self.longest_stop.as_nanos() as u64);
        let longest = least + (most * 3 / 5 - least) / 1_000 * (bytes.min(BULK) * 1_000 / BULK);
        let mut start = now;
        let next = &self.next[usize::from(bytes >= BULK)];
        let update = next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| {
            start = next.clamp(now, now + longest);
            Some(next.max(start + cost.min(longest)))
        });
        debug_assert!(update.is_ok(), "the closure always gives a value");
        let wait = start - now + step;
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

    /// Of a store with the default limits, so deep.
    fn at(depth: usize) -> Throttle {
        let throttle = Throttle::new(true);
        throttle.note(depth, 8, 20, (0, 1 << 30, 1 << 34));
        throttle
    }

    #[test]
    fn the_deeper_l0_the_longer_a_write_waits_but_never_for_a_second() {
        for bytes in [1 << 10, 1 << 18, 1 << 20, 1 << 26] {
            let mut last = Duration::ZERO;
            for depth in [7, 8, 12, 16, 19, 20, 24, 40] {
                let throttle = at(depth);
                // The first write fills the bucket, the second one pays for it.
                let first = throttle.delay(bytes, 5, 0).unwrap_or_default();
                assert_eq!(first.is_zero(), depth < 20, "{bytes} at {depth}: {first:?}");
                let delay = throttle.delay(bytes, 5, 0).unwrap_or_default();
                assert!(delay >= last, "depth {depth}: {delay:?} after {last:?}");
                assert_eq!(delay.is_zero(), depth < 8);
                let stop = throttle.stop(bytes).unwrap_or_default();
                assert_eq!(stop.is_zero(), depth < 20 || bytes < BULK);
                assert!(delay.max(stop) <= Duration::from_secs(1));
                last = delay;
            }
        }
    }

    #[test]
    fn a_small_write_waits_a_few_milliseconds_at_the_limit_whatever_others_bring() {
        for (depth, most) in [(20, 2), (25, 8), (80, 25)] {
            let throttle = at(depth);
            for _ in 0..100 {
                assert!(throttle.delay(64 << 20, 5, 0).is_some(), "bulk pays for itself");
            }
            let (mut waited, mut now) = (Duration::ZERO, 5);
            for _ in 0..1_000 {
                let delay = throttle.delay(300, now, 0).unwrap_or_default();
                assert!(delay <= Duration::from_millis(most), "{depth}: {delay:?}");
                (waited, now) = (waited + delay, now + delay.as_nanos() as u64);
            }
            assert!(waited >= Duration::from_millis(1_000), "they do wait: {waited:?}");
            assert_eq!(throttle.stop(300), None);
        }
    }

    #[test]
    fn small_writes_bring_less_than_leaves_at_the_limit() {
        let throttle = at(20);
        // Many at once, each as soon as it may.
        let (mut now, mut bytes) = (0, 0);
        while now < 1_000_000_000 {
            bytes += 4 << 10;
            now += throttle.delay(4 << 10, now, 0).map_or(0, |delay| delay.as_nanos() as u64)
                - STEP.as_nanos() as u64;
        }
        assert!(bytes <= FIRST_GUESS / 9, "{bytes} in a second");
    }
}
