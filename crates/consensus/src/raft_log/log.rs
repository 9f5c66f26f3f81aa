//! The raft log that is open.
//!
//! ```text
//!   segment 7   ...                                  needed while a group has an entry in here
//!   segment 8   [state of all groups] ...            promises and cuts before this do not count
//!   segment 9   [state of all groups] ... <-- writes
//! ```
//!
//! When a segment is begun, the promises and cuts of all groups are written into it once more, so
//! that only entries keep older segments: a segment goes when no group needs an entry in it or in
//! one before it, and the state behind it is durable. A quiet group with few entries can hold a
//! segment for long; [`RaftLog::holding`] names such groups, and writing their entries again
//! ([`LogBatch::entries`]) moves them.
//!
//! One thread writes; syncing takes a shared reference of the log below and may happen elsewhere.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use braid_env::fs::FileSystem;
use braid_lsm::{SegmentedLog, SegmentedLogOptions};

use super::batch::{Item, LogBatch, Noted, decode};
use super::recovery::{LoggedGroup, take_up};
use super::runs::{Place, Runs};
use crate::entry::{Entry, HardState};
use crate::error::Result;
use crate::ids::{GroupId, LogIndex, Term};

/// Tunables of a raft log: those of the segments below.
pub type RaftLogOptions = SegmentedLogOptions;

/// A place in the stream of all that was written since open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct LogPlace(u64);

/// What is remembered of a group.
#[derive(Debug, Default)]
struct Remembered {
    hard_state: HardState,
    cut: (LogIndex, Term),
    runs: Runs,
}

/// See the [module's page](self).
pub struct RaftLog {
    log: Arc<SegmentedLog>,
    groups: BTreeMap<GroupId, Remembered>,
    /// The segment that was written last.
    segment: u64,
    /// The newest state of all groups: its segment.
    state: Option<u64>,
    /// End of what was written, and of what somebody waits for.
    written: LogPlace,
    awaited: LogPlace,
}

impl RaftLog {
    /// Opens the log in a directory, creating both if they do not exist. Returns what it holds of
    /// each group. Fails if it is damaged. Blocks on the device.
    pub fn open(
        fs: Arc<dyn FileSystem>,
        dir: &Path,
        options: RaftLogOptions,
    ) -> Result<(RaftLog, BTreeMap<GroupId, LoggedGroup>)> {
        let mut found = BTreeMap::new();
        let log = SegmentedLog::open(fs, dir, options, &mut |segment, offset, record| {
            let place = Place { segment, offset, bytes: record.len() as u64 };
            take_up(&mut found, place, decode(record)?)
        })?;
        let mut groups = BTreeMap::new();
        let mut logged = BTreeMap::new();
        for (group, found) in found {
            let whole = found.finish(group).map_err(|reason| {
                crate::Error::Inconsistent(format!("raft log {}: {reason}", dir.display()))
            })?;
            logged.insert(group, whole);
            let (hard_state, cut, runs) = (found.hard_state, found.cut, found.runs);
            groups.insert(group, Remembered { hard_state, cut, runs });
        }
        let (written, awaited) = (LogPlace::default(), LogPlace::default());
        let log = Arc::new(log);
        Ok((RaftLog { log, groups, segment: 0, state: None, written, awaited }, logged))
    }

    /// Writes a record: it is handed to the operating system when this returns. It is durable
    /// after [`RaftLog::sync`] of the place that is returned, which is the one of an earlier
    /// record if nobody needs this one to be.
    pub fn write(&mut self, batch: &LogBatch) -> Result<LogPlace> {
        if batch.is_empty() {
            return Ok(self.awaited);
        }
        self.put(batch)?;
        if batch.must_sync {
            self.awaited = self.written;
        }
        Ok(self.awaited)
    }

    fn put(&mut self, batch: &LogBatch) -> Result<()> {
        let appended = self.log.append(&batch.bytes)?;
        let (segment, offset) = (appended.segment, appended.offset);
        let place = Place { segment, offset, bytes: batch.bytes.len() as u64 };
        for noted in &batch.noted {
            self.note(*noted, place);
        }
        self.written = LogPlace(appended.upto);
        if appended.segment != self.segment {
            self.segment = appended.segment;
            self.put_state()?;
        }
        self.log.write(self.written.0)?;
        Ok(())
    }

    /// Writes promises and cuts of all groups.
    fn put_state(&mut self) -> Result<()> {
        let mut state = LogBatch::default();
        for (group, known) in &self.groups {
            state.hard_state(*group, known.hard_state);
            state.cut(*group, known.cut);
        }
        if state.is_empty() {
            return Ok(());
        }
        let appended = self.log.append(&state.bytes)?;
        self.written = LogPlace(appended.upto);
        // A record that fills the segment may be followed by one that begins the next: then the
        // state lies there, and what is before it is needed no more than before.
        self.state = Some(appended.segment);
        Ok(())
    }

    fn note(&mut self, noted: Noted, place: Place) {
        match noted {
            Noted::Entries { group, first, last } => {
                self.groups.entry(group).or_default().runs.write(first, last, place);
            }
            Noted::HardState { group, state } => {
                self.groups.entry(group).or_default().hard_state = state;
            }
            Noted::Cut { group, at } => {
                let known = self.groups.entry(group).or_default();
                known.cut = known.cut.max(at);
                known.runs.cut(known.cut.0);
            }
            Noted::Removed { group } => {
                self.groups.remove(&group);
            }
        }
    }

    /// Reads entries of a group from `first` on, in front of `end` and up to so many bytes, but at
    /// least one. All of them must be behind the group's cut. Blocks on the device.
    pub fn read(
        &self,
        group: GroupId,
        first: LogIndex,
        end: LogIndex,
        bytes: u64,
    ) -> Result<Vec<Entry>> {
        let missing = |index: LogIndex| {
            let reason = format!("{group}, {index}: the raft log does not have the entry");
            crate::Error::Inconsistent(reason)
        };
        let known = self.groups.get(&group).ok_or_else(|| missing(first))?;
        let (mut next, mut left, mut out) = (first, bytes, Vec::new());
        while next < end && left > 0 {
            let run = known.runs.holding(next).ok_or_else(|| missing(next))?;
            let (last, before) = (run.last.min(LogIndex(end.0 - 1)), next);
            self.log.read(run.place.segment, run.place.offset, &mut |record| {
                for entry in entries_of(group, decode(record)?) {
                    if entry.index == next && next <= last && left > 0 {
                        left = left.saturating_sub(entry.data.len() as u64 + 32);
                        next = next.next();
                        out.push(entry);
                    }
                }
                Ok(next <= last && left > 0)
            })?;
            if next == before {
                return Err(missing(next));
            }
        }
        Ok(out)
    }

    /// Blocks until everything up to there is durable.
    pub fn sync(&self, upto: LogPlace) -> Result<()> {
        Ok(self.log.sync(upto.0)?)
    }

    /// End of everything that was written.
    pub fn written(&self) -> LogPlace {
        self.written
    }

    /// Gives up segments that no group needs. Blocks on the device if there are any.
    pub fn release(&mut self) -> Result<()> {
        let Some(state_segment) = self.state else { return Ok(()) };
        let needed = self.groups.values().filter_map(|known| known.runs.oldest()).min();
        let floor = needed.unwrap_or(state_segment).min(state_segment);
        if floor > self.log.oldest_segment() {
            // The state, and the cuts since then: without them entries would be missing.
            self.log.sync(self.written.0)?;
            self.log.release(floor)?;
        }
        Ok(())
    }

    /// Groups that hold a segment which is `age` segments older than the one that is written.
    pub fn holding(&self, age: u64) -> Vec<GroupId> {
        let old = |known: &Remembered| {
            known.runs.oldest().is_some_and(|segment| segment + age <= self.segment)
        };
        self.groups.iter().filter(|(_, known)| old(known)).map(|(group, _)| *group).collect()
    }

    /// Makes everything durable, and ends the log.
    pub fn close(self) -> Result<()> {
        self.sync(self.written)?;
        match Arc::into_inner(self.log) {
            Some(log) => Ok(log.close()?),
            None => Ok(()),
        }
    }
}

/// What a record has of a group's entries, after all of its items.
fn entries_of(group: GroupId, items: Vec<Item>) -> Vec<Entry> {
    let mut out: Vec<Entry> = Vec::new();
    for item in items {
        if let Item::Entries { group: of, entries } = item
            && of == group
            && let Some(first) = entries.first().map(|entry| entry.index)
        {
            out.retain(|entry| entry.index < first);
            out.extend(entries);
        }
    }
    out
}
