//! What reads pay for an untidy tree: sampled work, and the budget to do something about it.
//!
//! One in about 256 gets and seeks is looked at. Every sst that it had to look into, although the
//! key was in a lower one, is charged with what that cost, times the sampling rate:
//!
//! ```text
//!   get k     L0.1  [--------]   filter says no   charged
//!             L0.0     [--]      filter says no   charged
//!             L5    [-------]    found            not charged: somebody has to hold the row
//!             L6  [------------] not visited
//! ```
//!
//! A seek looks into every run, so all ssts but the lowest are charged. So is what a scan spends on
//! going back and forth between runs. What a look costs is measured, per level: an upper level
//! that the CPU's caches hold is cheaper to look into than the bottom. Charges halve every minute.
//!
//! Rewriting is paid from a bucket. While users write, it gets a share of what flushes and other
//! compactions write in the meantime, so write amplification grows by that share at most. While
//! they write next to nothing, it gets what half a thread can compact. Nothing is saved up while
//! nobody reads.
//!
//! Source: the article on Pebble's read-based compactions, and its two known weaknesses: positions
//! were counted instead of work, and nothing tied the writes to a budget.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use braid_env::clock::Clock;
use parking_lot::Mutex;

use crate::state::State;
use crate::versions::{LEVELS, SstEnv, SstMeta};

/// First guess of the nanoseconds that a get spends on a run that does not have its key: search,
/// filter, the cache misses of both.
const PROBE_NANOS: u64 = 150;
/// First guess of the nanoseconds that a seek spends on a run: index, block, position.
const SEEK_NANOS: u64 = 1_000;
/// A measured time counts for at most so many times what is known: threads are interrupted.
const OUTLIER: u64 = 4;
/// Charges halve in this time.
const HALF_LIFE: f64 = 60e9;
/// Rates are computed over at least and at most this many seconds.
const RATE_WINDOW: (f64, f64) = (2.0, 86.0);
/// Over at least this many seconds if there are `SURE` samples or more.
const SHORT_WINDOW: f64 = 0.1;
const SURE: u32 = 8;
/// Users write next to nothing below this many bytes per second.
const IDLE_WRITES: u64 = 128 << 10;
const BUCKET: i64 = 256 << 20;
const EVALUATE_NANOS: u64 = 100_000_000;
/// Nobody read for a while if evaluations lie so far apart.
const PAUSE_NANOS: u64 = 5_000_000_000;
/// Rates of writing are taken over at least this long.
const WRITE_WINDOW: u64 = 500_000_000;

/// What reads wasted on an sst, in nanoseconds.
#[derive(Default)]
pub(crate) struct ReadDebt {
    nanos: AtomicU64,
    samples: AtomicU32,
    /// When it was charged first.
    since: AtomicU64,
}

impl ReadDebt {
    fn charge(&self, nanos: u64, now: u64) {
        self.samples.fetch_add(1, Ordering::Relaxed);
        if self.nanos.fetch_add(nanos, Ordering::Relaxed) == 0 {
            self.since.store(now, Ordering::Relaxed);
        }
    }

    fn decay(&self, factor: f64) {
        let nanos = self.nanos.load(Ordering::Relaxed);
        self.nanos.store((nanos as f64 * factor) as u64, Ordering::Relaxed);
    }

    /// Nanoseconds wasted per second.
    pub(crate) fn rate(&self, now: u64) -> f64 {
        let nanos = self.nanos.load(Ordering::Relaxed);
        let age = now.saturating_sub(self.since.load(Ordering::Relaxed)) as f64 / 1e9;
        let sure = self.samples.load(Ordering::Relaxed) >= SURE;
        nanos as f64 / age.clamp(if sure { SHORT_WINDOW } else { RATE_WINDOW.0 }, RATE_WINDOW.1)
    }
}

/// Operations until the next sample, for some of the threads.
#[repr(align(64))]
#[derive(Default)]
struct Stripe {
    left: AtomicU32,
    state: AtomicU32,
}

const STRIPES: usize = 8;

fn stripe_of_this_thread() -> usize {
    use std::sync::atomic::AtomicUsize;
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static MINE: usize = NEXT.fetch_add(1, Ordering::Relaxed) % STRIPES;
    }
    MINE.with(|mine| *mine)
}

struct Budget {
    tokens: i64,
    /// When the bucket was filled last, and what others had written by then.
    last: u64,
    others: u64,
    /// When the rate of user writes was taken last, and what they had written by then.
    rated: u64,
    user_bytes: u64,
    /// Bytes per second that users write.
    rate: f64,
    /// When users last wrote more than next to nothing.
    last_busy: u64,
    last_decay: u64,
}

/// What was written since open.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Written {
    /// By users.
    pub(crate) user: u64,
    /// By flushes.
    pub(crate) flushed: u64,
    /// By flushes and by compactions that are not for the sake of reads.
    pub(crate) others: u64,
}

/// What an evaluation allows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Allowance {
    /// Bytes that may be rewritten.
    pub(crate) bytes: u64,
    /// Seconds that a tidy tree is likely to stay tidy, if users write next to nothing.
    calm: f64,
    /// Bytes per second that users write otherwise (0: not known yet), and what share of them
    /// arrives in L0.
    rate: f64,
    arrives: f64,
}

impl Allowance {
    /// Seconds for which it pays to have merged away `upper` bytes: until as much has arrived
    /// again.
    pub(crate) fn horizon(&self, upper: u64) -> f64 {
        if self.rate <= IDLE_WRITES as f64 {
            self.calm
        } else {
            upper as f64 / (self.rate * self.arrives)
        }
    }
}

/// Measured times, smoothed, by level.
struct Costs([AtomicU64; LEVELS]);

impl Costs {
    fn starting_at(nanos: u64) -> Costs {
        Costs(std::array::from_fn(|_| AtomicU64::new(nanos)))
    }

    /// Learns from a measured time; 0 is from a clock that stands still.
    fn learn(&self, level: usize, nanos: u64) {
        let old = self.of(level);
        if nanos > 0 {
            let new = (old * 31 + nanos.min(old * OUTLIER)).div_ceil(32);
            self.0[level].store(new, Ordering::Relaxed);
        }
    }

    fn of(&self, level: usize) -> u64 {
        self.0[level].load(Ordering::Relaxed)
    }
}

/// See the module.
pub(crate) struct ReadMeter {
    stripes: [Stripe; STRIPES],
    every: u32,
    share: u64,
    samples: AtomicU32,
    evaluated: AtomicU64,
    budget: Mutex<Budget>,
    probes: Costs,
    seeks: Costs,
    /// Picoseconds that a compaction takes per byte read and written.
    picos_per_byte: AtomicU64,
    counts: [AtomicU64; 4],
}

/// Sampled operations and the ssts they looked into.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ReadCounts {
    pub(crate) gets: u64,
    pub(crate) get_ssts: u64,
    pub(crate) seeks: u64,
    pub(crate) seek_ssts: u64,
}

impl ReadMeter {
    /// Samples one in about `every` operations; `share`: percent of what others write to spend.
    pub(crate) fn new(every: u32, share: u32, now: u64) -> ReadMeter {
        ReadMeter {
            stripes: Default::default(),
            every: every.max(1),
            share: u64::from(share),
            samples: AtomicU32::new(0),
            evaluated: AtomicU64::new(now),
            budget: Mutex::new(Budget {
                tokens: 0,
                last: now,
                others: 0,
                rated: now,
                user_bytes: 0,
                rate: f64::MAX,
                last_busy: now,
                last_decay: now,
            }),
            probes: Costs::starting_at(PROBE_NANOS),
            seeks: Costs::starting_at(SEEK_NANOS),
            picos_per_byte: AtomicU64::new(4_000),
            counts: Default::default(),
        }
    }

    /// Whether this operation is to be looked at. A load and a store, mostly.
    #[inline]
    pub(crate) fn is_due(&self) -> bool {
        let stripe = &self.stripes[stripe_of_this_thread()];
        let left = stripe.left.load(Ordering::Relaxed);
        if left > 0 {
            stripe.left.store(left - 1, Ordering::Relaxed);
            return false;
        }
        self.restart(stripe)
    }

    #[cold]
    fn restart(&self, stripe: &Stripe) -> bool {
        // Any sequence will do that does not beat with the pattern of the reads.
        let state = stripe.state.load(Ordering::Relaxed).wrapping_mul(0x9E37_79B1).wrapping_add(1);
        stripe.state.store(state, Ordering::Relaxed);
        stripe.left.store((state >> 8) % (2 * self.every), Ordering::Relaxed);
        true
    }

    fn weight(&self) -> u64 {
        u64::from(self.every)
    }

    /// Charges the ssts that a get of `key` passes, and measures what that takes.
    pub(crate) fn sample_get(
        &self,
        state: &State,
        env: &SstEnv,
        key: &[u8],
        hash: u64,
        clock: &dyn Clock,
    ) {
        let mut passed: Vec<&SstMeta> = Vec::new();
        let mut found = false;
        let start = clock.monotonic_nanos();
        let mut before = start;
        for run in state.version.runs_for_reads() {
            let Some(sst) = run.file_of(key).map(|file| &*file.sst) else { continue };
            if sst.reader(env).is_ok_and(|reader| reader.may_contain(hash)) {
                found = true;
                break;
            }
            let now = clock.monotonic_nanos();
            self.probes.learn(sst.level, now - before);
            before = now;
            passed.push(sst);
        }
        let visited = passed.len() as u64 + u64::from(found);
        self.counts[0].fetch_add(1, Ordering::Relaxed);
        self.counts[1].fetch_add(visited, Ordering::Relaxed);
        // The last one that was looked into stays, whether it has the key or not.
        let wasted = if found { passed.len() } else { passed.len().saturating_sub(1) };
        for sst in &passed[..wasted] {
            sst.reads.charge(self.probes.of(sst.level) * self.weight(), start);
        }
        self.samples.fetch_add(1, Ordering::Relaxed);
    }

    /// Charges the ssts over the position of a seek, newest first, but the lowest. With each comes
    /// how long the seek was busy with it.
    pub(crate) fn charge_seek(&self, over: &[(&SstMeta, u64)], now: u64) {
        self.counts[2].fetch_add(1, Ordering::Relaxed);
        self.counts[3].fetch_add(over.len() as u64, Ordering::Relaxed);
        for (sst, nanos) in over {
            self.seeks.learn(sst.level, *nanos);
        }
        for (sst, _) in &over[..over.len().saturating_sub(1)] {
            sst.reads.charge(self.seeks.of(sst.level) * self.weight(), now);
        }
        self.samples.fetch_add(1, Ordering::Relaxed);
    }

    /// Charges the ssts that a scan goes back and forth between, but the lowest, with the share
    /// `part` of `nanos` that it took to read some rows.
    pub(crate) fn charge_scan(&self, over: &[&SstMeta], nanos: u64, part: f64, now: u64) {
        let upper = &over[..over.len().saturating_sub(1)];
        for sst in upper {
            let each = nanos as f64 * part / upper.len() as f64;
            // Nobody is ever that much faster: the thread was interrupted.
            let most = self.seeks.of(sst.level) * 256;
            sst.reads.charge((each as u64).min(most) * self.weight(), now);
        }
        self.samples.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether it is time to look for something to do.
    pub(crate) fn wants_evaluation(&self, now: u64) -> bool {
        let waited = now.saturating_sub(self.evaluated.load(Ordering::Relaxed));
        let samples = self.samples.load(Ordering::Relaxed);
        samples > 0 && (waited >= EVALUATE_NANOS || samples >= 16 * self.every)
    }

    /// Begins an evaluation: lets charges decay, fills the bucket.
    pub(crate) fn evaluate<'a>(
        &self,
        ssts: impl Iterator<Item = &'a SstMeta>,
        written: Written,
        now: u64,
    ) -> Allowance {
        self.evaluated.store(now, Ordering::Relaxed);
        self.samples.store(0, Ordering::Relaxed);
        let mut budget = self.budget.lock();
        let nanos = now.saturating_sub(budget.last_decay);
        if nanos > 1_000_000_000 {
            let factor = (-(nanos as f64) / HALF_LIFE).exp2();
            ssts.for_each(|sst| sst.reads.decay(factor));
            budget.last_decay = now;
        }
        let elapsed = now.saturating_sub(budget.rated);
        if elapsed >= WRITE_WINDOW {
            let new = written.user.saturating_sub(budget.user_bytes);
            let rate = new as f64 / elapsed as f64 * 1e9;
            // The first rate, and one over a pause, say nothing about now.
            let known = budget.rate < f64::MAX && elapsed < PAUSE_NANOS;
            budget.rate = if known { (budget.rate + rate) / 2.0 } else { rate };
            if rate > IDLE_WRITES as f64 {
                budget.last_busy = now;
            } else if known {
                budget.rate = rate;
            }
            (budget.rated, budget.user_bytes) = (now, written.user);
        }
        let new = written.others.saturating_sub(budget.others);
        let elapsed = now.saturating_sub(budget.last);
        (budget.last, budget.others) = (now, written.others);
        // What was written while nobody read earns nothing.
        if elapsed < PAUSE_NANOS {
            budget.tokens += (new / 100 * self.share) as i64;
        }
        if now.saturating_sub(budget.last_busy) > 1_000_000_000 {
            let half = elapsed.min(PAUSE_NANOS) as f64 / 2.0;
            budget.tokens += (half / self.rewrite_nanos(1)) as i64;
        }
        budget.tokens = budget.tokens.min(BUCKET);
        let calm = now.saturating_sub(budget.last_busy) as f64 / 1e9;
        Allowance {
            bytes: budget.tokens.max(0) as u64,
            calm: (calm * 10.0).clamp(60.0, 3_600.0),
            rate: if budget.rate < f64::MAX { budget.rate } else { 0.0 },
            arrives: (written.flushed as f64 / written.user.max(1) as f64).clamp(0.05, 1.0),
        }
    }

    /// Takes what a compaction is expected to write out of the bucket.
    pub(crate) fn spend(&self, bytes: u64) {
        self.budget.lock().tokens -= bytes as i64;
        // What is there to do may have changed.
        self.evaluated.store(0, Ordering::Relaxed);
    }

    /// A compaction read and wrote `bytes` in `nanos`.
    pub(crate) fn compacted(&self, bytes: u64, nanos: u64) {
        if bytes < 1 << 20 || nanos == 0 {
            return;
        }
        let picos = (nanos as f64 * 1_000.0 / bytes as f64) as u64;
        let old = self.picos_per_byte.load(Ordering::Relaxed);
        self.picos_per_byte.store((old * 7 + picos) / 8, Ordering::Relaxed);
    }

    /// Nanoseconds that it takes to rewrite so many bytes.
    pub(crate) fn rewrite_nanos(&self, bytes: u64) -> f64 {
        bytes as f64 * 2.0 * self.picos_per_byte.load(Ordering::Relaxed) as f64 / 1_000.0
    }

    pub(crate) fn counts(&self) -> ReadCounts {
        let get = |i: usize| self.counts[i].load(Ordering::Relaxed);
        ReadCounts { gets: get(0), get_ssts: get(1), seeks: get(2), seek_ssts: get(3) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// The allowance at a moment at which so many bytes had been written.
    fn at(meter: &ReadMeter, now: u64, user: u64, others: u64) -> Allowance {
        meter.evaluate(std::iter::empty(), Written { user, flushed: user / 2, others }, now)
    }

    #[test]
    fn while_users_write_a_share_of_what_others_write_is_allowed() {
        let meter = ReadMeter::new(256, 50, 0);
        // What was written before anybody read earns nothing.
        assert_eq!(at(&meter, 100 * SECOND, 1 << 30, 1 << 32).bytes, 0);
        let mut others = 1 << 32;
        for half in 1..=20u64 {
            others += 4 << 20;
            at(&meter, 100 * SECOND + half * SECOND / 2, (1 << 30) + (half << 20), others);
        }
        let busy = at(&meter, 111 * SECOND, (1 << 30) + (21 << 20), others);
        assert!((38 << 20..=40 << 20).contains(&busy.bytes), "{busy:?}");
        // 2 MiB per second, of which half arrives: 4 MiB come again within four seconds.
        assert!((2.0..8.0).contains(&busy.horizon(4 << 20)), "{busy:?}");
        meter.spend(1 << 30);
        assert_eq!(at(&meter, 112 * SECOND, (1 << 30) + (22 << 20), others).bytes, 0);
    }

    #[test]
    fn while_they_do_not_time_is_what_counts() {
        let meter = ReadMeter::new(256, 50, 0);
        for tenth in 0..=100 {
            at(&meter, tenth * SECOND / 10, 0, 0);
        }
        let idle = at(&meter, 11 * SECOND, 0, 0);
        assert!(idle.bytes >= BUCKET as u64 / 2 && idle.horizon(1) >= 60.0, "{idle:?}");
    }

    #[test]
    fn an_interrupted_thread_teaches_little() {
        let costs = Costs::starting_at(1_000);
        costs.learn(3, 50_000_000);
        assert!(costs.of(3) < 1_200 && costs.of(2) == 1_000);
        costs.learn(3, 0);
        (0..1_000).for_each(|_| costs.learn(3, 300));
        assert!(costs.of(3) < 400, "{}", costs.of(3));
    }
}
