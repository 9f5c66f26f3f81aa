//! What a run has shown.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use braid_workload::history::{History, Level, check};

/// What a run has shown.
#[derive(Debug, Clone, Default)]
pub struct Verdict {
    /// What is wrong; nothing if the run was good.
    pub problems: Vec<String>,
    /// Of everything that has happened, in order.
    pub trace: u64,
    /// Events.
    pub events: u64,
    /// Simulated time.
    pub micros: u64,
    /// How many transactions committed, failed, and have an outcome that nobody knows.
    pub outcomes: [usize; 3],
    /// What has happened how often.
    pub counts: BTreeMap<&'static str, u64>,
    /// The last things that happened.
    pub tail: VecDeque<String>,
}

impl Verdict {
    /// Judges the history: serializable, and nothing in it is older than what was over before.
    pub(crate) fn judge(&mut self, history: &History) {
        let report = check(history, Level::Serializable);
        self.outcomes = report.outcomes;
        if !report.forbidden.is_empty() {
            self.problems.push(report.to_string());
        }
    }

    /// Whether nothing is wrong.
    pub fn is_good(&self) -> bool {
        self.problems.is_empty()
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [committed, failed, unknown] = self.outcomes;
        write!(
            f,
            "{committed} committed, {failed} failed, {unknown} unknown in {} s; {} events",
            self.micros / 1_000_000,
            self.events
        )?;
        self.counts.iter().try_for_each(|(what, count)| write!(f, ", {count} {what}"))?;
        self.problems.iter().try_for_each(|problem| write!(f, "\n  {problem}"))
    }
}
