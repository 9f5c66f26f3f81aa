//! What is written at once, and its byte form (`docs/formats/raft_log.md`).
//!
//! A record is a row of items, each of one group:
//!
//! ```text
//!   1 entries     group, index of the first, count; term, kind and data of each
//!   2 hard state  group, term, vote, commit
//!   3 cut         group, index and term of the last entry that is not needed
//!   4 removed     group
//! ```

use bytes::Bytes;

use crate::codec::{Reader, put_bytes, put_number};
use crate::entry::{Entry, EntryKind, HardState};
use crate::group::Append;
use crate::ids::{GroupId, LogIndex, ReplicaId, Term};

const ENTRIES: u8 = 1;
const HARD_STATE: u8 = 2;
const CUT: u8 = 3;
const REMOVED: u8 = 4;

/// One item of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Item {
    Entries { group: GroupId, entries: Vec<Entry> },
    HardState { group: GroupId, state: HardState },
    Cut { group: GroupId, at: (LogIndex, Term) },
    Removed { group: GroupId },
}

/// What an item changes in what is known of the log: an [`Item`] without the entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Noted {
    Entries { group: GroupId, first: LogIndex, last: LogIndex },
    HardState { group: GroupId, state: HardState },
    Cut { group: GroupId, at: (LogIndex, Term) },
    Removed { group: GroupId },
}

/// Changes of any number of groups that are written as one record.
#[derive(Debug, Default)]
pub struct LogBatch {
    pub(crate) bytes: Vec<u8>,
    pub(crate) noted: Vec<Noted>,
    /// Somebody waits for it.
    pub(crate) must_sync: bool,
}

impl LogBatch {
    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// What a group wants to be made durable.
    pub fn append(&mut self, group: GroupId, append: &Append) {
        self.must_sync |= append.must_sync;
        if let Some(state) = append.hard_state {
            self.hard_state(group, state);
        }
        self.entries(group, &append.entries);
    }

    /// A group's promise.
    pub(crate) fn hard_state(&mut self, group: GroupId, state: HardState) {
        self.begin(HARD_STATE, group);
        put_number(&mut self.bytes, state.term.0);
        put_number(&mut self.bytes, state.vote.map_or(0, |vote| vote.0));
        put_number(&mut self.bytes, state.commit.0);
        self.noted.push(Noted::HardState { group, state });
    }

    /// Entries that take the place of what is there from the first of them on.
    pub fn entries(&mut self, group: GroupId, entries: &[Entry]) {
        let (Some(first), Some(last)) = (entries.first(), entries.last()) else { return };
        self.begin(ENTRIES, group);
        put_number(&mut self.bytes, first.index.0);
        put_number(&mut self.bytes, entries.len() as u64);
        for entry in entries {
            put_number(&mut self.bytes, entry.term.0);
            self.bytes.push(match entry.kind {
                EntryKind::Command => 0,
                EntryKind::Replicas => 1,
            });
            put_bytes(&mut self.bytes, &entry.data);
        }
        self.noted.push(Noted::Entries { group, first: first.index, last: last.index });
    }

    /// Entries up to there are not needed any more.
    pub fn cut(&mut self, group: GroupId, at: (LogIndex, Term)) {
        self.begin(CUT, group);
        put_number(&mut self.bytes, at.0.0);
        put_number(&mut self.bytes, at.1.0);
        self.noted.push(Noted::Cut { group, at });
    }

    /// The replica begins anew behind an entry, with a state that was given to it: entries that it
    /// has are not needed, nor are they those of the group. What it has promised stays.
    pub fn begin_anew(&mut self, group: GroupId, promised: HardState, at: (LogIndex, Term)) {
        self.remove(group);
        self.hard_state(group, promised);
        self.cut(group, at);
        self.must_sync = true;
    }

    /// What a replica has promised that is not there yet.
    pub fn promise(&mut self, group: GroupId, promised: HardState) {
        self.hard_state(group, promised);
        self.must_sync = true;
    }

    /// The group has no replica on this node any more.
    pub fn remove(&mut self, group: GroupId) {
        self.begin(REMOVED, group);
        self.noted.push(Noted::Removed { group });
    }

    fn begin(&mut self, tag: u8, group: GroupId) {
        self.bytes.push(tag);
        put_number(&mut self.bytes, group.0);
    }
}

/// Reads a record.
pub(crate) fn decode(record: &[u8]) -> Result<Vec<Item>, String> {
    let mut reader = Reader::new(record);
    let mut items = Vec::new();
    while !reader.is_empty() {
        items.push(item(&mut reader)?);
    }
    Ok(items)
}

fn item(reader: &mut Reader<'_>) -> Result<Item, String> {
    let cut_off = || "an item of the raft log is cut off".to_string();
    let tag = reader.byte().ok_or_else(cut_off)?;
    let mut number = || reader.number().ok_or_else(cut_off);
    let group = GroupId(number()?);
    match tag {
        HARD_STATE => {
            let (term, vote, commit) = (Term(number()?), number()?, LogIndex(number()?));
            let vote = Some(ReplicaId(vote)).filter(|vote| vote.0 != 0);
            Ok(Item::HardState { group, state: HardState { term, vote, commit } })
        }
        CUT => Ok(Item::Cut { group, at: (LogIndex(number()?), Term(number()?)) }),
        REMOVED => Ok(Item::Removed { group }),
        ENTRIES => {
            let (first, count) = (number()?, number()?);
            let mut entries = Vec::new();
            for n in 0..count {
                let index = first.checked_add(n).map(LogIndex).ok_or_else(cut_off)?;
                entries.push(entry(reader, index).ok_or_else(cut_off)?);
            }
            Ok(Item::Entries { group, entries })
        }
        _ => Err(format!("an item of the raft log has the unknown kind {tag}")),
    }
}

fn entry(reader: &mut Reader<'_>, index: LogIndex) -> Option<Entry> {
    let term = Term(reader.number()?);
    let kind = match reader.byte()? {
        0 => EntryKind::Command,
        1 => EntryKind::Replicas,
        _ => return None,
    };
    Some(Entry { index, term, kind, data: Bytes::copy_from_slice(reader.bytes()?) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_round_trip_and_cuts_are_errors() {
        let entry = |index, data: &'static [u8]| {
            let (index, term) = (LogIndex(index), Term(3));
            Entry { index, term, kind: EntryKind::Command, data: Bytes::from_static(data) }
        };
        let (one, two) = (GroupId(1), GroupId(200));
        let entries = vec![entry(9, b"a"), entry(10, b"")];
        let state = HardState { term: Term(3), vote: Some(ReplicaId(2)), commit: LogIndex(8) };
        let mut batch = LogBatch::default();
        batch.hard_state(one, state);
        batch.entries(one, &entries);
        let at = (LogIndex(7), Term(1));
        batch.cut(two, at);
        batch.remove(two);
        let items = vec![
            Item::HardState { group: one, state },
            Item::Entries { group: one, entries },
            Item::Cut { group: two, at },
            Item::Removed { group: two },
        ];
        assert_eq!(decode(&batch.bytes).unwrap(), items);
        let whole: Vec<usize> =
            (0..=batch.bytes.len()).filter(|len| decode(&batch.bytes[..*len]).is_ok()).collect();
        assert_eq!(whole.len(), items.len() + 1, "only whole items are read: {whole:?}");
        assert!(decode(&[9, 1]).unwrap_err().contains("unknown kind 9"));
    }
}
