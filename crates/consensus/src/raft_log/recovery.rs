//! What is known of each group after the records of the log were read in order.
//!
//! Of a group that holds many entries only the newest are kept in memory: the others stay where
//! they are, and [`super::RaftLog::read`] finds them.

use std::collections::{BTreeMap, VecDeque};

use super::batch::Item;
use super::runs::{Place, Runs};
use crate::entry::{Entry, HardState};
use crate::ids::{GroupId, LogIndex, Term};

/// What the log holds of a group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LoggedGroup {
    /// What its replica has promised.
    pub hard_state: HardState,
    /// Place and term of the last entry that was dropped.
    pub cut: (LogIndex, Term),
    /// What lies between the cut and the first of `entries` is in the log's files only: where each
    /// term begins there. Usually nothing does.
    pub older: Vec<(LogIndex, Term)>,
    /// Bytes of those, about.
    pub older_bytes: u64,
    /// The entries behind that.
    pub entries: Vec<Entry>,
}

/// So many bytes of a group's entries are kept while the log is read.
const KEPT: usize = 256 << 10;

/// A group while records are being read.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) hard_state: HardState,
    pub(super) cut: (LogIndex, Term),
    /// Where terms begin, of entries that were let go of.
    older: VecDeque<(LogIndex, Term)>,
    older_bytes: u64,
    entries: VecDeque<Entry>,
    /// Bytes of them.
    bytes: usize,
    pub(super) runs: Runs,
}

impl Found {
    fn entries(&mut self, entries: Vec<Entry>, place: Place) -> Result<(), String> {
        let (Some(first), Some(last)) = (entries.first(), entries.last()) else { return Ok(()) };
        let (first, last) = (first.index, last.index);
        let here = self.entries.front().map(|entry| entry.index);
        match here {
            Some(start) if first > LogIndex(start.0 + self.entries.len() as u64) => {
                let next = start.0 + self.entries.len() as u64;
                return Err(format!(
                    "entries from {first} on follow a log that ends before i{next}"
                ));
            }
            Some(start) if start < first => self.keep((first.0 - start.0) as usize),
            _ => {
                self.keep(0);
                while self.older.back().is_some_and(|run| run.0 >= first) {
                    self.older.pop_back();
                }
            }
        }
        self.bytes += entries.iter().map(|entry| entry.data.len()).sum::<usize>();
        self.entries.extend(entries);
        self.runs.write(first, last, place);
        while self.bytes > KEPT && self.entries.len() > 1 {
            let gone = self.entries.pop_front().expect("there are two");
            self.bytes -= gone.data.len();
            self.older_bytes += gone.data.len() as u64;
            if self.older.back().is_none_or(|run| run.1 != gone.term) {
                self.older.push_back((gone.index, gone.term));
            }
        }
        Ok(())
    }

    /// Forgets all but the first so many of the entries.
    fn keep(&mut self, count: usize) {
        let count = count.min(self.entries.len());
        self.bytes -= self.entries.drain(count..).map(|entry| entry.data.len()).sum::<usize>();
    }

    fn cut(&mut self, at: (LogIndex, Term)) {
        self.cut = self.cut.max(at);
        while let Some(entry) = self.entries.pop_front_if(|entry| entry.index <= self.cut.0) {
            self.bytes -= entry.data.len();
        }
        // Of the terms that begin up to the cut, the last one may go on behind it.
        let behind = self.cut.0.next();
        while self.older.get(1).is_some_and(|run| run.0 <= behind) {
            self.older.pop_front();
        }
        if let Some(run) = self.older.front_mut() {
            run.0 = run.0.max(behind);
        }
        let first = self.entries.front().map(|entry| entry.index);
        if first.is_none_or(|first| first <= behind) {
            self.older.clear();
            self.older_bytes = 0;
        }
        self.runs.cut(self.cut.0);
    }

    pub(super) fn finish(&self, group: GroupId) -> Result<LoggedGroup, String> {
        let oldest = self.older.front().map(|run| run.0);
        let first = oldest.or_else(|| self.entries.front().map(|entry| entry.index));
        let (cut, wanted) = (self.cut, self.cut.0.next());
        if let Some(first) = first.filter(|first| *first != wanted) {
            return Err(format!("entries {wanted} to {first} of {group} are missing"));
        }
        let entries = self.entries.iter().cloned().collect();
        let older = self.older.iter().copied().collect();
        let (hard_state, older_bytes) = (self.hard_state, self.older_bytes);
        Ok(LoggedGroup { hard_state, cut, older, older_bytes, entries })
    }
}

/// Takes a record in.
pub(super) fn take_up(
    groups: &mut BTreeMap<GroupId, Found>,
    place: Place,
    items: Vec<Item>,
) -> Result<(), String> {
    for item in items {
        match item {
            Item::Entries { group, entries } => {
                let found = groups.entry(group).or_default();
                found.entries(entries, place).map_err(|reason| format!("{group}: {reason}"))?;
            }
            Item::HardState { group, state } => groups.entry(group).or_default().hard_state = state,
            Item::Cut { group, at } => groups.entry(group).or_default().cut(at),
            Item::Removed { group } => {
                groups.remove(&group);
            }
        }
    }
    Ok(())
}
