//! What a group knows of its log, and the part that it keeps in memory.
//!
//! ```text
//!   i1 i2 i3 | i4 i5 i6 i7 | i8 i9 i10
//!           cut           kept from here on
//! ```
//!
//! Of the entry at the *cut*, the last one that was dropped, place and term are still known: a
//! follower's log can be compared there. Of entries behind it that are only in the log's files
//! the terms are known. What is applied and durable may be let go of: only followers that are far
//! behind need it, and then it is *fetched*: whoever drives the group reads it from the files.
//!
//! How long a log is, in bytes, is known by *blocks* of entries: it is cut between two of them when
//! it is too long. A follower that needs what was cut is *behind*: it can only be given a state.
//!
//! The raft crate reads entries from here. An entry is put in when it is handed out to be made
//! durable, which may be before it is.

use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};

use raft::eraftpb::{ConfState, Entry, HardState, Snapshot};
use raft::{Error, GetEntriesContext, RaftState, Storage, StorageError};

/// What the frame of an entry takes is small beside this estimate.
const FRAME_BYTES: u64 = 32;

/// Entries that are not in memory, and for which of the raft crate's followers.
pub(crate) struct Missing {
    pub(crate) first: u64,
    pub(crate) end: u64,
    pub(crate) bytes: u64,
    pub(crate) contexts: Vec<GetEntriesContext>,
}

/// See the [module's page](self).
pub(crate) struct GroupLog {
    hard_state: HardState,
    replicas: ConfState,
    /// Place and term of the last entry that is gone.
    cut: (u64, u64),
    /// Where terms begin behind the cut.
    terms: VecDeque<(u64, u64)>,
    /// The first entry in memory, or the place where it will be.
    first: u64,
    entries: VecDeque<Entry>,
    /// Bytes of those.
    bytes: u64,
    /// Entries that were fetched, for the moment.
    fetched: Vec<Entry>,
    missing: RefCell<Vec<Missing>>,
    /// Followers that need what was cut.
    behind: RefCell<BTreeSet<u64>>,
    /// First entry and bytes of each block behind the cut.
    blocks: VecDeque<(u64, u64)>,
    /// A block is so long.
    block_bytes: u64,
}

fn size(entry: &Entry) -> u64 {
    entry.data.len() as u64 + FRAME_BYTES
}

impl GroupLog {
    /// A log that was cut; behind that lie entries of which only the terms are known, and how many
    /// bytes they have, then those that are given.
    pub(crate) fn new(
        (hard_state, replicas): (HardState, ConfState),
        cut: (u64, u64),
        (older, older_bytes): (VecDeque<(u64, u64)>, u64),
        entries: Vec<Entry>,
        block_bytes: u64,
    ) -> GroupLog {
        let first = entries.first().map_or(cut.0 + 1, |entry| entry.index);
        let blocks = older.front().map(|run| (run.0, older_bytes)).into_iter().collect();
        let mut log = GroupLog {
            hard_state,
            replicas,
            cut,
            terms: older,
            first,
            entries: VecDeque::new(),
            bytes: 0,
            fetched: Vec::new(),
            missing: RefCell::default(),
            behind: RefCell::default(),
            blocks,
            block_bytes,
        };
        log.append(entries);
        log
    }

    pub(crate) fn last(&self) -> u64 {
        self.first + self.entries.len() as u64 - 1
    }

    pub(crate) fn cut(&self) -> (u64, u64) {
        self.cut
    }

    /// All entries behind the cut, if they are in memory.
    pub(crate) fn all(&self) -> Option<&VecDeque<Entry>> {
        (self.first == self.cut.0 + 1).then_some(&self.entries)
    }

    /// Entries in memory, and those only in files.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.entries.len() as u64, self.first - self.cut.0 - 1)
    }

    /// Puts entries in; they take the place of what is there from the first of them on.
    pub(crate) fn append(&mut self, entries: Vec<Entry>) {
        let Some(first) = entries.first().map(|entry| entry.index) else { return };
        assert!(
            self.first <= first && first <= self.last() + 1,
            "entries from {first} on do not follow a log of ({}, {}], kept from {} on",
            self.cut.0,
            self.last(),
            self.first
        );
        let gone = self.entries.drain((first - self.first) as usize..);
        let gone = gone.map(|entry| size(&entry)).sum::<u64>();
        self.bytes -= gone;
        self.shorten_blocks(first, gone);
        while self.terms.back().is_some_and(|run| run.0 >= first) {
            self.terms.pop_back();
        }
        for entry in entries {
            self.bytes += size(&entry);
            match self.blocks.back_mut().filter(|block| block.1 < self.block_bytes) {
                Some(block) => block.1 += size(&entry),
                None => self.blocks.push_back((entry.index, size(&entry))),
            }
            if self.terms.back().is_none_or(|run| run.1 != entry.term) {
                self.terms.push_back((entry.index, entry.term));
            }
            self.entries.push_back(entry);
        }
    }

    /// The entries from `first` on are gone, which have so many bytes.
    fn shorten_blocks(&mut self, first: u64, mut bytes: u64) {
        while let Some(block) = self.blocks.pop_back_if(|block| block.0 >= first) {
            bytes = bytes.saturating_sub(block.1);
        }
        if let Some(block) = self.blocks.back_mut() {
            block.1 = block.1.saturating_sub(bytes);
        }
    }

    /// Bytes of all entries behind the cut, about.
    pub(crate) fn log_bytes(&self) -> u64 {
        self.blocks.iter().map(|block| block.1).sum()
    }

    /// Up to where it may be cut so that at least so many bytes stay, about.
    pub(crate) fn end_of_all_but(&self, bytes: u64) -> u64 {
        let mut kept = 0;
        let enough = self.blocks.iter().rev().find(|block| {
            kept += block.1;
            kept >= bytes
        });
        enough.map_or(self.cut.0, |block| block.0 - 1)
    }

    /// Drops the entries up to `index`, which must be there.
    pub(crate) fn cut_to(&mut self, index: u64) {
        let index = index.min(self.last());
        let Some(term) = self.term_of(index).filter(|_| index > self.cut.0) else { return };
        self.cut = (index, term);
        while let Some(entry) = self.entries.pop_front_if(|entry| entry.index <= index) {
            self.bytes -= size(&entry);
        }
        self.first = self.first.max(index + 1);
        while self.terms.get(1).is_some_and(|run| run.0 <= index + 1) {
            self.terms.pop_front();
        }
        if self.last() == index {
            self.terms.clear();
            self.blocks.clear();
        }
        while self.blocks.get(1).is_some_and(|block| block.0 <= index + 1) {
            self.blocks.pop_front();
        }
        if let Some(block) = self.blocks.front_mut() {
            block.0 = block.0.max(index + 1);
        }
    }

    /// Lets go of entries up to `index`, which are durable and applied, as long as there are more
    /// bytes than that.
    pub(crate) fn let_go(&mut self, index: u64, bytes: u64) {
        while self.bytes > bytes
            && self.entries.len() > 1
            && let Some(entry) = self.entries.pop_front_if(|entry| entry.index <= index)
        {
            self.bytes -= size(&entry);
            self.first += 1;
        }
    }

    pub(crate) fn term_of(&self, index: u64) -> Option<u64> {
        if index == self.cut.0 {
            return Some(self.cut.1);
        }
        if index < self.cut.0 || index > self.last() {
            return None;
        }
        let at = self.terms.partition_point(|run| run.0 <= index);
        self.terms.get(at.checked_sub(1)?).map(|run| run.1)
    }

    /// What was asked for since the last time and is not in memory.
    pub(crate) fn take_missing(&mut self) -> Vec<Missing> {
        std::mem::take(self.missing.get_mut())
    }

    /// Who was found to be behind since the last time.
    pub(crate) fn take_behind(&mut self) -> BTreeSet<u64> {
        std::mem::take(self.behind.get_mut())
    }

    /// Has entries at hand that are not kept.
    pub(crate) fn set_fetched(&mut self, entries: Vec<Entry>) {
        self.fetched = entries;
    }

    fn miss(&self, first: u64, end: u64, bytes: u64, context: GetEntriesContext) {
        let mut missing = self.missing.borrow_mut();
        match missing.iter_mut().find(|known| known.first == first) {
            Some(known) => known.contexts.push(context),
            None => missing.push(Missing { first, end, bytes, contexts: vec![context] }),
        }
    }
}

/// The first of some entries, up to so many bytes, but at least one.
fn limited<'a>(entries: impl Iterator<Item = &'a Entry>, most: u64) -> Vec<Entry> {
    let (mut bytes, mut out) = (0, Vec::new());
    for entry in entries {
        bytes += size(entry);
        if !out.is_empty() && bytes > most {
            break;
        }
        out.push(entry.clone());
    }
    out
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
        context: GetEntriesContext,
    ) -> raft::Result<Vec<Entry>> {
        if low <= self.cut.0 {
            return Err(Error::Store(StorageError::Compacted));
        }
        if high > self.last() + 1 {
            return Err(Error::Store(StorageError::Unavailable));
        }
        let most = max_size.into().unwrap_or(u64::MAX);
        if low >= self.first {
            let from = (low - self.first) as usize;
            let count = high.saturating_sub(low) as usize;
            return Ok(limited(self.entries.range(from..from + count), most));
        }
        let fetched = self.fetched.first().map_or(u64::MAX, |entry| entry.index);
        if fetched <= low && low < fetched + self.fetched.len() as u64 {
            let wanted =
                self.fetched.iter().filter(|entry| low <= entry.index && entry.index < high);
            return Ok(limited(wanted, most));
        }
        if !context.can_async() {
            // It asks for what is not applied, and that is never let go of.
            return Err(Error::Store(StorageError::Unavailable));
        }
        self.miss(low, high.min(self.first), most, context);
        Err(Error::Store(StorageError::LogTemporarilyUnavailable))
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

    /// States do not travel as messages of Raft: whoever drives the group is told who needs one.
    /// When the follower has it, it says so as if it had got the entries.
    fn snapshot(&self, _request_index: u64, to: u64) -> raft::Result<Snapshot> {
        self.behind.borrow_mut().insert(to);
        Err(Error::Store(StorageError::SnapshotTemporarilyUnavailable))
    }
}
