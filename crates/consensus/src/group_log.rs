//! The part of a group's log that is kept in memory: everything behind the *cut*.
//!
//! ```text
//!   i1 i2 i3 | i4 i5 i6 i7          the cut is at i3: place and term of i3 are still known,
//!            cut                    so that a follower's log can be compared there
//! ```
//!
//! The raft crate reads entries from here. An entry is put in when it is handed out to be made
//! durable, which may be before it is.

use std::collections::VecDeque;

use raft::eraftpb::{ConfState, Entry, HardState, Snapshot};
use raft::{Error, GetEntriesContext, RaftState, Storage, StorageError};

/// See the [module's page](self).
pub(crate) struct GroupLog {
    hard_state: HardState,
    replicas: ConfState,
    /// Place and term of the last entry that is gone.
    cut: (u64, u64),
    entries: VecDeque<Entry>,
}

impl GroupLog {
    pub(crate) fn new(
        hard_state: HardState,
        replicas: ConfState,
        cut: (u64, u64),
        entries: VecDeque<Entry>,
    ) -> GroupLog {
        GroupLog { hard_state, replicas, cut, entries }
    }

    pub(crate) fn last(&self) -> u64 {
        self.cut.0 + self.entries.len() as u64
    }

    pub(crate) fn cut(&self) -> (u64, u64) {
        self.cut
    }

    /// All entries behind the cut.
    pub(crate) fn entries(&self) -> &VecDeque<Entry> {
        &self.entries
    }

    /// Puts entries in; they take the place of what is there from the first of them on.
    pub(crate) fn append(&mut self, entries: Vec<Entry>) {
        let Some(first) = entries.first().map(|entry| entry.index) else { return };
        assert!(
            self.cut.0 < first && first <= self.last() + 1,
            "entries from {first} on do not follow a log of ({}, {}]",
            self.cut.0,
            self.last()
        );
        self.entries.truncate((first - self.cut.0 - 1) as usize);
        self.entries.extend(entries);
    }

    /// Drops the entries up to `index`, which must be there.
    pub(crate) fn cut_to(&mut self, index: u64) {
        while self.cut.0 < index
            && let Some(entry) = self.entries.pop_front()
        {
            self.cut = (entry.index, entry.term);
        }
    }

    pub(crate) fn term_of(&self, index: u64) -> Option<u64> {
        if index == self.cut.0 {
            return Some(self.cut.1);
        }
        let at = index.checked_sub(self.cut.0 + 1)?;
        self.entries.get(at as usize).map(|entry| entry.term)
    }
}

impl Storage for GroupLog {
    fn initial_state(&self) -> raft::Result<RaftState> {
        Ok(RaftState::new(self.hard_state.clone(), self.replicas.clone()))
    }

    fn entries(
        &self,
        low: u64,
        high: u64,
        max_size: impl Into<Option<u64>>,
        _context: GetEntriesContext,
    ) -> raft::Result<Vec<Entry>> {
        if low <= self.cut.0 {
            return Err(Error::Store(StorageError::Compacted));
        }
        if high > self.last() + 1 {
            return Err(Error::Store(StorageError::Unavailable));
        }
        let from = (low - self.cut.0 - 1) as usize;
        let count = high.saturating_sub(low) as usize;
        let most = max_size.into().unwrap_or(u64::MAX);
        let mut bytes = 0;
        let mut out = Vec::new();
        for entry in self.entries.range(from..from + count) {
            // What the frame of an entry takes is small beside this estimate.
            bytes += entry.data.len() as u64 + 32;
            if !out.is_empty() && bytes > most {
                break;
            }
            out.push(entry.clone());
        }
        Ok(out)
    }

    fn term(&self, index: u64) -> raft::Result<u64> {
        if index < self.cut.0 {
            return Err(Error::Store(StorageError::Compacted));
        }
        self.term_of(index).ok_or(Error::Store(StorageError::Unavailable))
    }

    fn first_index(&self) -> raft::Result<u64> {
        Ok(self.cut.0 + 1)
    }

    fn last_index(&self) -> raft::Result<u64> {
        Ok(self.last())
    }

    /// There are none yet: whoever cuts a log looks that all replicas have what is cut.
    fn snapshot(&self, _request_index: u64, _to: u64) -> raft::Result<Snapshot> {
        Err(Error::Store(StorageError::SnapshotTemporarilyUnavailable))
    }
}
