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
//! A seek looks into every run, so all ssts but the lowest are charged, and with more. Charges
//! halve every minute. Rewriting is paid from a bucket: a share of what users write, and a steady
//! trickle while they write next to nothing.
//!
//! Source: the article on Pebble's read-based compactions, and its two known weaknesses: positions
//! were counted instead of work, and nothing tied the writes to a budget.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::state::State;
use crate::versions::{SstEnv, SstMeta};

/// Nanoseconds that a get spends on a run that does not have its key: search, filter, the cache
/// misses of both.
const PROBE_NANOS: u64 = 250;
/// Nanoseconds that a seek spends on a run: index, block, position, and its part of the merge.
const SEEK_NANOS: u64 = 2_500;
/// Charges halve in this time.
const HALF_LIFE: f64 = 60e9;
/// Rates are computed over at least and at most this long.
const RATE_WINDOW: (f64, f64) = (2.0, 86.0);
/// Bytes per second that may be rewritten while users write next to nothing.
const IDLE_RATE: u64 = 96 << 20;
/// Users write next to nothing below this many bytes per second.
const IDLE_WRITES: u64 = 128 << 10;
const BUCKET: i64 = 256 << 20;
const EVALUATE_NANOS: u64 = 500_000_000;

/// What reads wasted on an sst, in nanoseconds.
#[derive(Default)]
pub(crate) struct ReadDebt {
    nanos: AtomicU64,
    /// When it was charged first.
    since: AtomicU64,
}

impl ReadDebt {
    fn charge(&self, nanos: u64, now: u64) {
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
        nanos as f64 / age.clamp(RATE_WINDOW.0, RATE_WINDOW.1)
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
    last: u64,
    user_bytes: u64,
    /// When users last wrote more than next to nothing.
    last_busy: u64,
    last_decay: u64,
}

/// See the module.
pub(crate) struct ReadMeter {
    stripes: [Stripe; STRIPES],
    every: u32,
    share: u64,
    samples: AtomicU32,
    evaluated: AtomicU64,
    budget: Mutex<Budget>,
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
    /// Samples one in about `every` operations; `share`: percent of user bytes to spend.
    pub(crate) fn new(every: u32, share: u32, now: u64) -> ReadMeter {
        ReadMeter {
            stripes: Default::default(),
            every: every.max(1),
            share: u64::from(share),
            samples: AtomicU32::new(0),
            evaluated: AtomicU64::new(now),
            budget: Mutex::new(Budget {
                tokens: BUCKET / 4,
                last: now,
                user_bytes: 0,
                last_busy: now,
                last_decay: now,
            }),
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

    /// Charges the ssts that a get of `key` passed.
    pub(crate) fn sample_get(&self, state: &State, env: &SstEnv, key: &[u8], hash: u64, now: u64) {
        let mut passed: Vec<&SstMeta> = Vec::new();
        let mut found = false;
        for run in state.version.runs_for_reads() {
            let Some(sst) = run.file_of(key).map(|file| &*file.sst) else { continue };
            if sst.reader(env).is_ok_and(|reader| reader.may_contain(hash)) {
                found = true;
                break;
            }
            passed.push(sst);
        }
        let visited = passed.len() as u64 + u64::from(found);
        self.counts[0].fetch_add(1, Ordering::Relaxed);
        self.counts[1].fetch_add(visited, Ordering::Relaxed);
        // The last one that was looked into stays, whether it has the key or not.
        let wasted = if found { passed.len() } else { passed.len().saturating_sub(1) };
        for sst in &passed[..wasted] {
            sst.reads.charge(PROBE_NANOS * self.weight(), now);
        }
        self.samples.fetch_add(1, Ordering::Relaxed);
    }

    /// Charges the ssts over the position of a seek, but the lowest.
    pub(crate) fn sample_seek(&self, state: &State, key: &[u8], now: u64) {
        let runs = state.version.runs_for_reads().iter();
        let over: Vec<&SstMeta> =
            runs.filter_map(|run| run.file_of(key)).map(|file| &*file.sst).collect();
        self.counts[2].fetch_add(1, Ordering::Relaxed);
        self.counts[3].fetch_add(over.len() as u64, Ordering::Relaxed);
        for sst in &over[..over.len().saturating_sub(1)] {
            sst.reads.charge(SEEK_NANOS * self.weight(), now);
        }
        self.samples.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether it is time to look for something to do.
    pub(crate) fn wants_evaluation(&self, now: u64) -> bool {
        let waited = now.saturating_sub(self.evaluated.load(Ordering::Relaxed));
        let samples = self.samples.load(Ordering::Relaxed);
        samples > 0 && (waited >= EVALUATE_NANOS || samples >= 16 * self.every)
    }

    /// Begins an evaluation: lets charges decay, fills the bucket. Returns the bytes that may be
    /// written, and for how many seconds things are likely to stay as they are: at least a
    /// minute, and longer if nobody has written for long.
    pub(crate) fn evaluate<'a>(
        &self,
        ssts: impl Iterator<Item = &'a SstMeta>,
        user_bytes: u64,
        now: u64,
    ) -> (i64, f64) {
        self.evaluated.store(now, Ordering::Relaxed);
        self.samples.store(0, Ordering::Relaxed);
        let mut budget = self.budget.lock();
        let nanos = now.saturating_sub(budget.last_decay);
        if nanos > 1_000_000_000 {
            let factor = (-(nanos as f64) / HALF_LIFE).exp2();
            ssts.for_each(|sst| sst.reads.decay(factor));
            budget.last_decay = now;
        }
        let elapsed = now.saturating_sub(budget.last);
        let new = user_bytes.saturating_sub(budget.user_bytes);
        if elapsed >= EVALUATE_NANOS / 2 {
            let per_second = (new as f64 / elapsed as f64 * 1e9) as u64;
            if per_second > IDLE_WRITES {
                budget.last_busy = now;
            }
            budget.last = now;
            budget.user_bytes = user_bytes;
            budget.tokens += (new / 100 * self.share) as i64;
            if now.saturating_sub(budget.last_busy) > 1_000_000_000 {
                budget.tokens += (IDLE_RATE as f64 * elapsed as f64 / 1e9) as i64;
            }
            budget.tokens = budget.tokens.min(BUCKET);
        }
        let calm = now.saturating_sub(budget.last_busy) as f64 / 1e9;
        (budget.tokens, (calm * 10.0).clamp(60.0, 3_600.0))
    }

    /// Takes what a compaction is expected to write out of the bucket, which may then be empty
    /// for a while.
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
