//! What is counted of executions, and how two counts become one.

use braid_kv::{Network, TxnStats, Work};
use braid_types::RetryReason;
use serde::{Deserialize, Serialize};

/// Times in milliseconds, summed up so that mean and deviation come out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// How many.
    pub count: u64,
    /// Sum.
    pub total: f64,
    /// Shortest.
    pub min: f64,
    /// Longest.
    pub max: f64,
    /// Sum of the squares of what each differs from the mean.
    squares: f64,
}

impl Times {
    /// One more.
    pub fn add(&mut self, ms: f64) {
        let mean = self.mean();
        self.min = if self.count == 0 { ms } else { self.min.min(ms) };
        self.max = self.max.max(ms);
        self.count += 1;
        self.total += ms;
        // Welford: exact also where the mean is large and the differences are small.
        self.squares += (ms - mean) * (ms - self.mean());
    }

    /// What both have counted.
    pub fn merge(&mut self, other: &Times) {
        if other.count == 0 || self.count == 0 {
            *self = if self.count == 0 { *other } else { *self };
            return;
        }
        let (a, b) = (self.count as f64, other.count as f64);
        let apart = other.mean() - self.mean();
        self.squares += other.squares + apart * apart * a * b / (a + b);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.count += other.count;
        self.total += other.total;
    }

    /// Average; 0 of nothing.
    pub fn mean(&self) -> f64 {
        self.total / self.count.max(1) as f64
    }

    /// Standard deviation of all of them, as PostgreSQL's extension gives it.
    pub fn deviation(&self) -> f64 {
        (self.squares / self.count.max(1) as f64).max(0.0).sqrt()
    }
}

/// How often something had to run again, or failed for it, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lost([u64; RetryReason::ALL.len()]);

impl Lost {
    /// For that reason.
    pub fn get(&self, reason: RetryReason) -> u64 {
        self.0[reason as usize]
    }

    /// Once more; `None`: for a reason that does not count.
    pub(crate) fn add(&mut self, reason: Option<RetryReason>) {
        if let Some(reason) = reason {
            self.0[reason as usize] += 1;
        }
    }

    /// What both have counted.
    pub(crate) fn merge(&mut self, other: &Lost) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, more)| *sum += more);
    }

    fn since(&self, before: &Lost) -> Lost {
        Lost(std::array::from_fn(|at| self.0[at] - before.0[at]))
    }
}

/// How nodes tell each other of [`Network`].
#[derive(Serialize, Deserialize)]
#[serde(remote = "Network")]
struct ShownNetwork {
    calls: u64,
    bytes: u64,
    nanos: u64,
}

/// How they tell each other of [`Work`].
#[derive(Serialize, Deserialize)]
#[serde(remote = "Work")]
struct ShownWork {
    entries: u64,
    tombstones: u64,
    blocks: u64,
    blocks_from_disk: u64,
    bytes: u64,
}

/// What transactions have done. Only sums, so that what came between two looks can be told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transacted {
    /// That committed.
    pub commits: u64,
    /// That did not.
    pub rollbacks: u64,
    /// Commits that had something to write,
    pub writing: u64,
    /// those of them in which several ranges had to agree,
    pub distributed: u64,
    /// and in how many ranges they had to agree.
    pub participants: u64,
    /// Requests to the store.
    pub requests: u64,
    /// What went to other nodes.
    #[serde(with = "ShownNetwork")]
    pub network: Network,
    /// Tries that were lost.
    pub lost: Lost,
    /// Nanoseconds from begin to end.
    pub nanos: u64,
    /// Nanoseconds of the commits.
    pub commit_nanos: u64,
}

impl Transacted {
    /// One more has ended.
    pub(crate) fn end(&mut self, stats: &TxnStats, committed: bool, nanos: u64) {
        self.commits += u64::from(committed);
        self.rollbacks += u64::from(!committed);
        self.writing += u64::from(stats.participants > 0);
        self.distributed += u64::from(stats.participants > 1);
        self.participants += stats.participants;
        self.requests += stats.requests;
        self.network = self.network.plus(stats.network);
        self.nanos += nanos;
        self.commit_nanos += stats.commit_nanos;
    }

    /// How many.
    pub fn count(&self) -> u64 {
        self.commits + self.rollbacks
    }

    /// What both have counted.
    pub fn merge(&mut self, other: &Transacted) {
        self.commits += other.commits;
        self.rollbacks += other.rollbacks;
        self.writing += other.writing;
        self.distributed += other.distributed;
        self.participants += other.participants;
        self.requests += other.requests;
        self.network = self.network.plus(other.network);
        self.lost.merge(&other.lost);
        self.nanos += other.nanos;
        self.commit_nanos += other.commit_nanos;
    }

    /// What has come since then.
    #[must_use]
    pub fn since(&self, before: &Transacted) -> Transacted {
        Transacted {
            commits: self.commits - before.commits,
            rollbacks: self.rollbacks - before.rollbacks,
            writing: self.writing - before.writing,
            distributed: self.distributed - before.distributed,
            participants: self.participants - before.participants,
            requests: self.requests - before.requests,
            network: self.network.since(before.network),
            lost: self.lost.since(&before.lost),
            nanos: self.nanos - before.nanos,
            commit_nanos: self.commit_nanos - before.commit_nanos,
        }
    }
}

/// What the executions of a statement have done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tally {
    /// Executions that came to their end; also those whose rows were not all wanted.
    pub executions: Times,
    /// Plans made for it.
    pub plans: Times,
    /// Executions that failed.
    pub errors: u64,
    /// Rows given or written.
    pub rows: u64,
    /// Tries beyond the first.
    pub retries: u64,
    /// Requests to the store.
    pub requests: u64,
    /// Requests that waited for locks of others, and milliseconds of that.
    pub lock_waits: u64,
    /// See `lock_waits`.
    pub lock_wait_time: f64,
    /// What was looked at in the store.
    #[serde(with = "ShownWork")]
    pub work: Work,
    /// Most bytes that one execution held.
    pub memory_peak: u64,
    /// What went to other nodes.
    #[serde(with = "ShownNetwork")]
    pub network: Network,
    /// Ranges that were asked, those of each execution summed up.
    pub ranges_touched: u64,
    /// Tries that were lost, in blocks too.
    pub lost: Lost,
    /// The transactions that it was alone in.
    pub alone: Transacted,
}

impl Tally {
    /// What both have counted.
    pub fn merge(&mut self, other: &Tally) {
        self.executions.merge(&other.executions);
        self.plans.merge(&other.plans);
        self.errors += other.errors;
        self.rows += other.rows;
        self.retries += other.retries;
        self.requests += other.requests;
        self.lock_waits += other.lock_waits;
        self.lock_wait_time += other.lock_wait_time;
        self.work = self.work.plus(other.work);
        self.memory_peak = self.memory_peak.max(other.memory_peak);
        self.network = self.network.plus(other.network);
        self.ranges_touched += other.ranges_touched;
        self.lost.merge(&other.lost);
        self.alone.merge(&other.alone);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_halves_make_the_whole() {
        let values = [3.0, 1.5, 8.0, 1.0e6, 1.0e6 + 1.0, 2.0];
        let of = |values: &[f64]| {
            let mut times = Times::default();
            values.iter().for_each(|ms| times.add(*ms));
            times
        };
        let whole = of(&values);
        for cut in 0..=values.len() {
            let mut both = of(&values[..cut]);
            both.merge(&of(&values[cut..]));
            assert_eq!((both.count, both.min, both.max), (6, 1.5, 1.0e6 + 1.0), "{cut}");
            assert!((both.mean() - whole.mean()).abs() < 1e-6, "{cut}");
            let ratio = both.deviation() / whole.deviation();
            assert!((ratio - 1.0).abs() < 1e-9, "{cut}");
        }
        let mean = values.iter().sum::<f64>() / 6.0;
        let variance = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / 6.0;
        assert!((whole.deviation() / variance.sqrt() - 1.0).abs() < 1e-9);
        assert_eq!(of(&[]).deviation(), 0.0);
    }
}
