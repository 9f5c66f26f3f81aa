//! What is counted of executions, and how two counts become one.

use braid_kv::Work;

/// Times in milliseconds, summed up so that mean and deviation come out.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
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

/// What the executions of a statement have done.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
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
    pub work: Work,
    /// Most bytes that one execution held.
    pub memory_peak: u64,
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
