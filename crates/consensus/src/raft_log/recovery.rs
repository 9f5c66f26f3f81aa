//! What is known of each group after the records of the log were read in order.

use std::collections::{BTreeMap, VecDeque};

use super::batch::Item;
use crate::entry::{Entry, HardState};
use crate::ids::{GroupId, LogIndex, Term};

/// What the log holds of a group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LoggedGroup {
    /// What its replica has promised.
    pub hard_state: HardState,
    /// Place and term of the last entry that was dropped.
    pub cut: (LogIndex, Term),
    /// The entries behind it.
    pub entries: Vec<Entry>,
}

/// A group while records are being read.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) hard_state: HardState,
    pub(super) cut: (LogIndex, Term),
    entries: VecDeque<Entry>,
    pub(super) runs: Runs,
}

/// Which segments hold the entries of a group that are needed.
#[derive(Debug, Clone, Default)]
pub(super) struct Runs {
    /// First and last entry, and the segment that holds them; without gaps.
    runs: VecDeque<(LogIndex, LogIndex, u64)>,
}

impl Runs {
    /// Entries were written into a segment: what was there from the first on does not count.
    pub(super) fn write(&mut self, first: LogIndex, last: LogIndex, segment: u64) {
        while self.runs.back().is_some_and(|run| run.0 >= first) {
            self.runs.pop_back();
        }
        if let Some(run) = self.runs.back_mut().filter(|run| run.1 >= first) {
            run.1 = LogIndex(first.0 - 1);
        }
        match self.runs.back_mut() {
            Some(run) if run.2 == segment => run.1 = last,
            _ => self.runs.push_back((first, last, segment)),
        }
    }

    /// Entries up to there are not needed.
    pub(super) fn cut(&mut self, index: LogIndex) {
        while self.runs.front().is_some_and(|run| run.1 <= index) {
            self.runs.pop_front();
        }
    }

    /// The oldest segment that is needed.
    pub(super) fn oldest(&self) -> Option<u64> {
        self.runs.iter().map(|run| run.2).min()
    }
}

impl Found {
    fn entries(&mut self, entries: Vec<Entry>, segment: u64) -> Result<(), String> {
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
            Some(start) if start < first => {
                self.entries.truncate((first.0 - start.0) as usize);
            }
            _ => self.entries.clear(),
        }
        self.entries.extend(entries);
        self.runs.write(first, last, segment);
        Ok(())
    }

    fn cut(&mut self, at: (LogIndex, Term)) {
        self.cut = self.cut.max(at);
        while self.entries.front().is_some_and(|entry| entry.index <= self.cut.0) {
            self.entries.pop_front();
        }
        self.runs.cut(self.cut.0);
    }

    pub(super) fn finish(&self, group: GroupId) -> Result<LoggedGroup, String> {
        let first = self.entries.front().map(|entry| entry.index);
        let (cut, wanted) = (self.cut, self.cut.0.next());
        if let Some(first) = first.filter(|first| *first != wanted) {
            return Err(format!("entries {wanted} to {first} of {group} are missing"));
        }
        let entries = self.entries.iter().cloned().collect();
        Ok(LoggedGroup { hard_state: self.hard_state, cut, entries })
    }
}

/// Takes a record in.
pub(super) fn take_up(
    groups: &mut BTreeMap<GroupId, Found>,
    segment: u64,
    items: Vec<Item>,
) -> Result<(), String> {
    for item in items {
        match item {
            Item::Entries { group, entries } => {
                let found = groups.entry(group).or_default();
                found.entries(entries, segment).map_err(|reason| format!("{group}: {reason}"))?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_know_the_oldest_segment_that_is_needed() {
        let i = LogIndex;
        let mut runs = Runs::default();
        runs.write(i(1), i(4), 1);
        runs.write(i(5), i(6), 1);
        runs.write(i(7), i(9), 2);
        assert_eq!(runs.oldest(), Some(1));
        // Entries 5 to 9 are overwritten: 1 to 4 are still in segment 1.
        runs.write(i(5), i(5), 3);
        assert_eq!(runs.runs, [(i(1), i(4), 1), (i(5), i(5), 3)]);
        runs.cut(i(3));
        assert_eq!(runs.oldest(), Some(1));
        runs.cut(i(4));
        assert_eq!(runs.oldest(), Some(3));
        runs.cut(i(5));
        assert_eq!(runs.oldest(), None);
    }
}
