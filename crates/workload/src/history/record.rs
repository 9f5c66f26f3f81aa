//! What a history is: transactions with what they did and saw, and the names of what can be wrong.

use std::fmt;
use std::str::FromStr;

/// What is read and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Key {
    /// A list that can be erased, with children of its own.
    List(u32),
    /// The erasures of a list, itself a list that only grows.
    Trail(u32),
    /// One value.
    Register(u32),
}

/// One thing that a transaction did. Values are unique over the history, 0 is never written.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Op {
    /// The value was put at the end of a list.
    Append { key: Key, value: u64 },
    /// The list with everything below it was deleted and begun again with one value.
    Erase { key: Key, value: u64 },
    /// The register was overwritten.
    Write { key: Key, value: u64 },
    /// A list was read; `scan` if by a query over all lists.
    Read { key: Key, values: Vec<u64>, scan: bool },
    /// A register was read; 0 before the first write.
    Get { key: Key, value: u64 },
    /// The children of a list were read: one for each of its values.
    Children { key: Key, values: Vec<u64> },
    /// A child was looked for by its value.
    Lookup { key: Key, value: u64, found: bool },
}

impl Op {
    /// What it is about.
    pub fn key(&self) -> Key {
        match self {
            Op::Append { key, .. }
            | Op::Erase { key, .. }
            | Op::Write { key, .. }
            | Op::Read { key, .. }
            | Op::Get { key, .. }
            | Op::Children { key, .. }
            | Op::Lookup { key, .. } => *key,
        }
    }

    /// The value that it wrote.
    pub fn written(&self) -> Option<u64> {
        match self {
            Op::Append { value, .. } | Op::Erase { value, .. } | Op::Write { value, .. } => {
                Some(*value)
            }
            _ => None,
        }
    }
}

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Outcome {
    Committed,
    Aborted,
    /// The answer to COMMIT was lost.
    Unknown,
}

/// One transaction as its client saw it.
#[derive(Clone, Debug)]
pub struct Transaction {
    /// Before its first statement was sent; any clock that all clients share.
    pub began: u64,
    /// After its end was answered.
    pub ended: u64,
    /// Whether it happened.
    pub outcome: Outcome,
    /// In the order of its statements.
    pub ops: Vec<Op>,
}

/// All transactions.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// In no particular order.
    pub transactions: Vec<Transaction>,
}

/// What was promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Level {
    Serializable,
    RepeatableRead,
    ReadCommitted,
}

impl Level {
    /// As SQL writes it.
    pub fn sql(self) -> &'static str {
        match self {
            Level::Serializable => "serializable",
            Level::RepeatableRead => "repeatable read",
            Level::ReadCommitted => "read committed",
        }
    }
}

impl FromStr for Level {
    type Err = String;

    fn from_str(text: &str) -> Result<Level, String> {
        [Level::Serializable, Level::RepeatableRead, Level::ReadCommitted]
            .into_iter()
            .find(|level| level.sql() == text.replace('-', " ").to_lowercase())
            .ok_or_else(|| format!("{text} is no isolation level"))
    }
}

/// What can be wrong, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Anomaly {
    /// A value that nobody wrote there.
    Unwritten,
    /// A value twice in one list.
    Duplicate,
    /// Two reads of a list that are not one a beginning of the other.
    Disorder,
    /// A value that was erased is there again.
    Resurrected,
    /// A committed value that the last state does not have, nor what an erasure saw.
    Lost,
    /// A cycle of writes over writes: a dirty write.
    G0,
    /// A value of a transaction that was rolled back.
    G1a,
    /// A value that its own transaction replaced.
    G1b,
    /// A cycle of writes and reads of writes.
    G1c,
    /// A transaction does not see what it wrote itself.
    Internal,
    /// Two reads of one transaction differ.
    Unrepeatable,
    /// A list, its children and their index show different states in one transaction.
    Torn,
    /// Two transactions changed the same version.
    LostUpdate,
    /// A cycle with one read of what was overwritten: read skew.
    GSingle,
    /// A cycle whose reads of overwritten values are not neighbours: a long fork.
    GNonadjacent,
    /// A cycle with several reads of overwritten rows: write skew.
    G2Item,
    /// The same with a query over many rows.
    G2,
    /// Cyclic only with what was over before something began: a read of the past.
    Stale,
}

impl Anomaly {
    /// Whether a level allows it.
    pub fn allowed(self, level: Level) -> bool {
        match level {
            Level::Serializable => false,
            Level::RepeatableRead => matches!(self, Anomaly::G2Item | Anomaly::G2),
            Level::ReadCommitted => self >= Anomaly::Unrepeatable,
        }
    }
}

impl fmt::Display for Anomaly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Anomaly::LostUpdate => "lost update",
            Anomaly::GSingle => "G-single",
            Anomaly::GNonadjacent => "G-nonadjacent",
            Anomaly::G2Item => "G2-item",
            other => return write!(f, "{other:?}"),
        };
        f.write_str(name)
    }
}
