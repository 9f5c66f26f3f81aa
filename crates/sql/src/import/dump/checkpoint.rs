//! What the job of a dump notes on the disk, so that another process goes on from there.
//!
//! ```text
//!   job-7-note   the files, as they were; the place up to which they were read
//!                what was told so far, and what was left out
//!                the block: its transaction's writes, reads and locks (`SavedTxn`), its settings
//!                in the middle of a COPY: its load's files (`SavedLoad`)
//!   record       the loads that are in the store already, and wait for the commit
//! ```
//! All of a dump is one transaction, and that goes on: what it has loaded lies in the store where
//! nobody else looks, everything else it has done is in its buffer, which the note holds. So the
//! note counts only if that transaction could have committed: nothing that it has read, and no
//! schema, has changed since the note was written; and if the files are as they were. Else the dump
//! begins again.

use std::sync::Arc;

use braid_catalog::kv_error;
use braid_env::clock::{Clock, WallClock};
use braid_import::dump::Place;
use braid_import::{Position, SourceFile};
use braid_keys::system;
use braid_kv::{Coordinator, KeySpan, SavedLoad, SavedTxn};
use braid_types::SqlResult;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::super::checkpoint::{as_json, facts};
use super::absent::Absent;
use super::findings::SavedFindings;
use super::hierarchy::Planned;
use crate::copy::SavedCopy;
use crate::dml::table_load::Written;
use crate::jobs::Record;
use crate::session::SavedBlock;

/// A note that counts, if everything else is as it was.
pub(super) struct Note {
    pub(super) head: Head,
    pub(super) txn: SavedTxn,
    /// Of the COPY that [`Head::copying`] tells of.
    pub(super) load: SavedLoad,
}

/// All of a note but what kv has saved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Head {
    /// A form that is not known is as none.
    form: u32,
    /// The statement and the files.
    surroundings: u64,
    /// Offset and line, for the text and for the entry of an archive; the entry.
    place: ((u64, u64), (u64, u64), usize),
    pub(super) block: SavedBlock,
    pub(super) so_far: SoFar,
    pub(super) copying: Option<Copying>,
}

/// What a dump has become so far, besides what its transaction has done.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct SoFar {
    pub(super) told: SavedFindings,
    pub(super) absent: Absent,
    pub(super) rows: u64,
    pub(super) bytes: u64,
    pub(super) tables: u64,
    /// By table: rows that came.
    pub(super) loaded: Vec<(u32, u64)>,
    /// Where tables are still to go; none: that was not asked yet.
    pub(super) moves: Option<Vec<Planned>>,
}

/// A COPY in the middle.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Copying {
    /// Line of the statement.
    pub(super) line: u64,
    /// The statement.
    pub(super) text: String,
    /// Rows that were taken of the dump, and their bytes.
    pub(super) taken: (u64, u64),
    /// Rows that were written, and the line of the data that comes next.
    count: u64,
    next: u64,
    /// Rows, entries, bytes.
    written: (u64, u64, u64),
}

const FORM: u32 = 1;

impl Copying {
    /// One that begins.
    pub(super) fn new(line: u64, text: &str) -> Copying {
        Copying { line, text: text.into(), ..Copying::default() }
    }
}

impl Note {
    pub(super) fn new(
        (surroundings, place): (u64, &Place),
        (block, txn): (SavedBlock, SavedTxn),
        so_far: SoFar,
        copying: Option<(Copying, SavedCopy)>,
    ) -> Note {
        let pair = |at: &Position| (at.offset, at.number);
        let (order, entry) = &place.entry;
        let place = (pair(&place.text), pair(entry), *order);
        let mut load = SavedLoad::default();
        let copying = copying.map(|(copying, saved)| {
            let Written { rows, entries, bytes } = saved.written;
            load = saved.load;
            let (count, next) = (saved.count, saved.line);
            Copying { count, next, written: (rows, entries, bytes), ..copying }
        });
        let head = Head { form: FORM, surroundings, place, block, so_far, copying };
        Note { head, txn, load }
    }

    /// Writes it; durable when it returns. How many bytes that took.
    pub(super) fn store(&self, coordinator: &Coordinator, job: u32) -> SqlResult<u64> {
        let head = as_json(&self.head)?;
        let mut bytes = Vec::new();
        for part in [head.as_bytes(), &self.txn.encode(), &self.load.encode()] {
            bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
            bytes.extend_from_slice(part);
        }
        coordinator.write_job_note(job, &bytes).map_err(kv_error)?;
        Ok(bytes.len() as u64)
    }

    /// The note of a job, if it is one of these surroundings.
    pub(super) fn read(coordinator: &Coordinator, job: u32, surroundings: u64) -> Option<Note> {
        let bytes = coordinator.read_job_note(job)?;
        let mut rest = &bytes[..];
        let mut part = || {
            let (len, behind) = rest.split_first_chunk::<8>()?;
            let len = usize::try_from(u64::from_le_bytes(*len)).ok()?;
            let (part, behind) = behind.split_at_checked(len)?;
            rest = behind;
            Some(part)
        };
        let head: Head = serde_json::from_slice(part()?).ok()?;
        let (txn, load) = (SavedTxn::decode(part()?)?, SavedLoad::decode(part()?)?);
        let counts = head.form == FORM && head.surroundings == surroundings;
        counts.then_some(Note { head, txn, load })
    }

    /// Where reading goes on.
    pub(super) fn place(&self) -> Place {
        let position = |(offset, number)| Position { offset, number };
        let (text, entry, order) = self.head.place;
        Place { text: position(text), entry: (order, position(entry)) }
    }

    /// What the COPY in the middle has come to.
    pub(super) fn saved_copy(&self, copying: &Copying) -> SavedCopy {
        let (rows, entries, bytes) = copying.written;
        SavedCopy {
            load: self.load.clone(),
            written: Written { rows, entries, bytes },
            count: copying.count,
            line: copying.next,
        }
    }

    /// The loads in the store that it goes on with.
    pub(super) fn loads(&self) -> Vec<u32> {
        let (start, end) = system::pending_loads();
        let keys = KeySpan::new(start, end);
        self.txn.deletes_in(&keys).filter_map(system::pending_load_id).collect()
    }

    /// Whether a file of the job is still needed.
    pub(super) fn needs(&self, job: u32, name: &str) -> bool {
        name == format!("job-{job}-note") || self.load.needs(name)
    }
}

/// A number that is another one if the statement or a file is.
pub(super) fn surroundings(files: &[SourceFile], statement: &str) -> u64 {
    let mut all = facts(files);
    all.push(statement.into());
    xxh3_64(all.join("\n").as_bytes())
}

/// Notes that are larger than this are written less often,
const LARGE_NOTE: u64 = 16 << 20;
/// so that for each byte of them so many of the dump are read.
const WORTH: u64 = 8;
/// What takes longer than this is not to be done again, however few bytes it was.
const LONG_NANOS: u64 = 30_000_000_000;

/// When a note is due.
pub(super) struct Pace {
    /// Bytes of the dump between two; `None`: there are none.
    every: Option<u64>,
    /// Bytes of the dump in front of the last one.
    at: u64,
    since: u64,
    /// Bytes of the last one.
    size: u64,
}

impl Pace {
    pub(super) fn new(every: Option<u64>) -> Pace {
        Pace { every, at: 0, since: WallClock.monotonic_nanos(), size: 0 }
    }

    /// Bytes of the dump between two notes, if there are any.
    pub(super) fn every(&self) -> Option<u64> {
        self.every
    }

    /// Whether one is due, when so many bytes of the dump were read; `worth`: something was done
    /// that takes long.
    pub(super) fn is_due(&self, read: u64, worth: bool) -> bool {
        let Some(every) = self.every else { return false };
        let (new, took) = (read.saturating_sub(self.at), WallClock.monotonic_nanos() - self.since);
        let costly = if self.size > LARGE_NOTE { WORTH * self.size } else { 0 };
        took > LONG_NANOS || new >= costly && (worth || new >= every)
    }

    /// One was written.
    pub(super) fn wrote(&mut self, read: u64, size: u64) {
        (self.at, self.since, self.size) = (read, WallClock.monotonic_nanos(), size);
    }
}

/// Writes down how far a job is, and the loads that stay when its process ends.
pub(super) fn note_in_record(coordinator: &Arc<Coordinator>, now: &Record) -> SqlResult<()> {
    let change = |stored: Option<&Record>| {
        let stored = stored.filter(|stored| !stored.state.is_final())?;
        let (step, mark) = (now.step.clone(), now.mark.clone());
        Some(Record { step, mark, fraction: now.fraction, ..stored.clone() })
    };
    Record::change(coordinator, now.id, change).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_due_after_bytes_or_work_and_large_ones_less_often() {
        let mut pace = Pace::new(Some(100));
        assert!(!pace.is_due(99, false) && pace.is_due(100, false) && pace.is_due(1, true));
        pace.wrote(100, LARGE_NOTE + 1);
        assert!(!pace.is_due(1_000, true) && pace.is_due(100 + 9 * LARGE_NOTE, false));
        assert!(!Pace::new(None).is_due(u64::MAX, true));
    }
}
