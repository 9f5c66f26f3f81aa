//! How long somebody waits for an answer, and what ends that earlier.
//!
//! ```text
//!   a request        until ────────────────────────────────────────► unavailable
//!   its statement    is told to stop ──► canceled
//!   a commit         is told to stop ── grace ──► nobody knows whether it has happened
//!   a node           is cut off from a majority ── 8 s ──► unavailable, after 1 s each
//! ```

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use braid_env::clock::Clock;
use braid_kv::{KvError, KvResult};

/// So long after a node was cut off from a majority of the members whoever asks there goes on
/// waiting: longer than an election takes.
const CUT_OFF: Duration = Duration::from_secs(8);
/// And from then on so long: clients that know of other nodes go there.
const STILL_CUT_OFF: Duration = Duration::from_secs(1);

/// Nobody raises it.
static NEVER: AtomicBool = AtomicBool::new(false);

/// Since when a node is cut off from a majority of the members. Nobody can serve it anything then,
/// or soon nobody can.
#[derive(Debug, Default)]
pub(crate) struct Reach {
    /// In microseconds; 0: it is not.
    lost_at: AtomicU64,
}

impl Reach {
    /// Somebody has looked.
    pub(crate) fn note(&self, is_cut_off: bool, now_micros: u64) {
        match (is_cut_off, self.lost_at.load(Ordering::Relaxed)) {
            (false, _) => self.lost_at.store(0, Ordering::Relaxed),
            (true, 0) => self.lost_at.store(now_micros, Ordering::Relaxed),
            (true, _) => {}
        }
    }

    /// How long it is waited for an answer of use, at most.
    pub(crate) fn patience(&self, most: Duration, clock: &dyn Clock) -> Duration {
        let lost_at = self.lost_at.load(Ordering::Relaxed);
        if lost_at == 0 {
            return most;
        }
        let gone = Duration::from_micros(clock.now_micros().saturating_sub(lost_at));
        most.min(CUT_OFF.saturating_sub(gone).max(STILL_CUT_OFF))
    }
}

/// See the [module's page](self).
#[derive(Clone, Copy)]
pub(crate) struct Patience<'a> {
    /// Without an answer of use for so long a request fails.
    pub(crate) time: Duration,
    /// Raised: whoever waits is to stop.
    pub(crate) stop: &'a AtomicBool,
    /// It goes on waiting for so long then.
    pub(crate) grace: Duration,
}

impl<'a> Patience<'a> {
    /// Whoever waits for so long is told by this flag to stop, if there is one.
    pub(crate) fn of(time: Duration, stop: Option<&'a AtomicBool>) -> Patience<'a> {
        Patience { time, stop: stop.unwrap_or(&NEVER), grace: Duration::ZERO }
    }

    /// Begins to wait.
    pub(crate) fn begin(self, clock: &dyn Clock) -> Left<'a> {
        let until = clock.now_micros() + self.time.as_micros() as u64;
        Left { patience: self, until }
    }
}

/// What is left of a [`Patience`].
pub(crate) struct Left<'a> {
    pub(crate) patience: Patience<'a>,
    /// In microseconds.
    until: u64,
}

impl<'a> Left<'a> {
    /// For what has to be asked for first.
    pub(crate) fn rest(&self, clock: &dyn Clock) -> Patience<'a> {
        Patience { time: self.time(clock, self.patience.time), ..self.patience }
    }

    /// There was an answer of use: it begins anew.
    pub(crate) fn begin_anew(&mut self, clock: &dyn Clock) {
        *self = self.patience.begin(clock);
    }

    /// At most so long for one question.
    pub(crate) fn time(&self, clock: &dyn Clock, most: Duration) -> Duration {
        most.min(Duration::from_micros(self.until.saturating_sub(clock.now_micros())))
    }

    /// Whether it is over.
    pub(crate) fn is_over(&self, clock: &dyn Clock) -> bool {
        self.until < clock.now_micros()
    }

    /// Whether whoever waits was told to stop just now, and is to ask the same node once more.
    ///
    /// # Errors
    /// [`KvError::Canceled`]: it stops at once.
    pub(crate) fn go_on(&mut self, clock: &dyn Clock) -> KvResult<bool> {
        if !self.patience.stop.load(Ordering::Relaxed) {
            return Ok(false);
        }
        if self.patience.grace.is_zero() {
            return Err(KvError::Canceled);
        }
        let grace = self.patience.grace.as_micros() as u64;
        self.until = self.until.min(clock.now_micros() + grace);
        // It is not told again.
        self.patience.stop = &NEVER;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use braid_env::clock::ManualClock;

    use super::*;

    #[test]
    fn who_asks_where_no_majority_is_waits_for_an_election_and_not_much_longer() {
        let (clock, reach) = (ManualClock::at_micros(1_000_000), Reach::default());
        let most = Duration::from_secs(30);
        let waits = |reach: &Reach, clock: &ManualClock| reach.patience(most, clock).as_secs();
        reach.note(false, clock.now_micros());
        assert_eq!(waits(&reach, &clock), 30);
        reach.note(true, clock.now_micros());
        assert_eq!(waits(&reach, &clock), 8);
        clock.advance(Duration::from_secs(5));
        // It was so before.
        reach.note(true, clock.now_micros());
        assert_eq!(waits(&reach, &clock), 3);
        clock.advance(Duration::from_secs(60));
        assert_eq!(waits(&reach, &clock), 1);
        assert_eq!(reach.patience(Duration::from_millis(10), &clock).as_millis(), 10);
        reach.note(false, clock.now_micros());
        assert_eq!(waits(&reach, &clock), 30);
    }

    #[test]
    fn who_is_told_to_stop_does_so_at_once_or_after_its_grace() {
        let (clock, stop) = (ManualClock::at_micros(1_000_000), AtomicBool::new(false));
        let time = Duration::from_secs(30);
        let mut read = Patience::of(time, Some(&stop)).begin(&clock);
        let grace = Duration::from_secs(1);
        let mut commit = Patience { grace, ..Patience::of(time, Some(&stop)) }.begin(&clock);
        let mut never = Patience::of(time, None).begin(&clock);
        assert!(matches!(read.go_on(&clock), Ok(false)));
        stop.store(true, Ordering::Relaxed);
        assert!(matches!(read.go_on(&clock), Err(KvError::Canceled)));
        assert!(matches!(commit.go_on(&clock), Ok(true)));
        assert!(matches!(commit.go_on(&clock), Ok(false)), "it was told before");
        assert!(matches!(never.go_on(&clock), Ok(false)));
        assert_eq!(commit.time(&clock, time), grace);
        clock.advance(Duration::from_secs(2));
        assert!(commit.is_over(&clock) && !never.is_over(&clock));
        clock.advance(time);
        assert!(never.is_over(&clock));
        never.begin_anew(&clock);
        assert!(!never.is_over(&clock));
    }
}
