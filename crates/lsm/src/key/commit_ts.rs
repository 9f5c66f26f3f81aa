//! The only number stored with an entry.
//!
//! A commit timestamp decides *visibility*: a read at T sees what was committed at or before T.
//! It never decides *structure* (which file lies above which); that is the arrival order.

use std::fmt;

/// When something was committed. An opaque, ordered number that the caller chooses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct CommitTs(pub u64);

impl CommitTs {
    /// Before everything. Nothing can be written at it.
    pub const ZERO: CommitTs = CommitTs(0);
    /// After everything; reserved ("no successor"). Nothing can be written at it.
    pub const MAX: CommitTs = CommitTs(u64::MAX);

    /// The next timestamp.
    pub fn next(self) -> CommitTs {
        CommitTs(self.0.saturating_add(1))
    }
}

impl fmt::Debug for CommitTs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@{}", self.0)
    }
}

impl fmt::Display for CommitTs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}
