//! A plan as lines, some of which are operators with what they did.
//!
//! ```text
//!   Insert on t                                      an operator, depth 0
//!     range: ..                                      a line about it
//!     point read on s  (actual time=.. rows=1 ..)    an operator below it, depth 1
//!       key: id = 7                                  a line about that
//! ```
//! Text shows the lines as they are; the others make a tree of the operators by their depth.

use braid_kv::{Network, Work};

/// One line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlanLine {
    /// With its blanks: two for each level.
    pub text: String,
    /// What the line is about, if it is an operator.
    pub operator: Option<Operator>,
}

/// An operator.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Operator {
    /// What PostgreSQL would call it, as far as it has something alike.
    pub kind: String,
    /// The table that it reads or writes.
    pub relation: Option<String>,
    /// The index that it reads.
    pub index: Option<String>,
    /// Rows that it was expected to give.
    pub estimate: Option<f64>,
    /// What it did, if it was run.
    pub actual: Option<Actual>,
}

/// What an operator did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Actual {
    /// Rows given, in all loops.
    pub rows: u64,
    /// Times that it was started.
    pub loops: u64,
    /// Nanoseconds until its first row, and until its end: those of its inputs among them.
    pub nanos: Option<(u64, u64)>,
    /// Requests to the store.
    pub requests: u64,
    /// What of them went to other nodes.
    pub network: Network,
    /// What was looked at there.
    pub work: Work,
    /// Most bytes that it held, as far as it says so.
    pub memory_peak: Option<u64>,
    /// Bytes that it wrote to files because they did not fit.
    pub spilled_bytes: u64,
}

/// A plan that was explained.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Explained {
    /// Its lines.
    pub lines: Vec<PlanLine>,
    /// Rows that it gave or wrote, if it was run.
    pub rows: Option<u64>,
}

impl From<String> for PlanLine {
    fn from(text: String) -> PlanLine {
        PlanLine { text, operator: None }
    }
}

impl From<&str> for PlanLine {
    fn from(text: &str) -> PlanLine {
        PlanLine::from(text.to_string())
    }
}

impl PlanLine {
    /// A line about an operator of such a kind.
    pub fn operator(text: impl Into<String>, kind: &str, relation: Option<&str>) -> PlanLine {
        let operator = Operator {
            kind: kind.to_string(),
            relation: relation.map(str::to_string),
            ..Operator::default()
        };
        PlanLine { text: text.into(), operator: Some(operator) }
    }

    /// One level deeper.
    #[must_use]
    pub(crate) fn indented(self) -> PlanLine {
        PlanLine { text: format!("  {}", self.text), ..self }
    }

    /// It reads an index and no rows.
    pub(crate) fn covers(&mut self) {
        self.text.push_str(" (covering)");
        if let Some(operator) = &mut self.operator {
            operator.kind = "Index Only Scan".into();
        }
    }

    /// How many rows it is expected to give.
    pub(crate) fn expect(&mut self, rows: f64) {
        if let Some(operator) = &mut self.operator {
            operator.estimate = Some(rows);
        }
    }

    /// What it did.
    pub fn ran(&mut self, actual: Actual) {
        if let Some(operator) = &mut self.operator {
            operator.actual = Some(actual);
        }
    }

    pub(super) fn depth(&self) -> usize {
        (self.text.len() - self.text.trim_start().len()) / 2
    }
}

impl Actual {
    /// It was started so often more, or has given so many rows more.
    pub(crate) fn note(&mut self, rows: u64, loops: u64) {
        if let Some((first, all)) = &mut self.nanos
            && self.rows == 0
            && rows > 0
        {
            *first = *all;
        }
        self.rows += rows;
        self.loops += loops;
    }

    /// Two runs of one operator are one.
    pub fn add(&mut self, other: Actual) {
        self.rows += other.rows;
        self.loops += other.loops;
        self.requests += other.requests;
        self.network = self.network.plus(other.network);
        self.work = self.work.plus(other.work);
        self.nanos = match (self.nanos, other.nanos) {
            (Some((first, all)), Some((_, more))) => Some((first, all + more)),
            (own, other) => own.or(other),
        };
        self.memory_peak = self.memory_peak.max(other.memory_peak);
        self.spilled_bytes += other.spilled_bytes;
    }
}
