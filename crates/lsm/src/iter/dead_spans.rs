//! Where nothing lives: spans that a scan has walked through without finding a row.
//!
//! Deleted keys stay until nobody may read them any more, hours by default. A queue deletes at its
//! head all the time, and whoever asks for the first row walks over all that was there before:
//!
//! ```text
//!   x x x x x x x x x x x x x x x x x x x x x x x x x x x r r r r r      x deleted, r row
//!   |--- the first scan walks and notes -------------->|
//!                                      the next ones:  |-x-x-->|
//! ```
//! A note is about one moment, and is good for all later ones until somebody puts a key in there:
//! writers look at the notes before their batch goes into the memtable, and cut them at the keys
//! that they put. Nothing of this is stored; it is lost when the store closes.
//!
//! **Nothing gets past.** A scan says what it walks over before it does ([`DeadSpans::watch`]).
//! A writer says that its batch begins, then looks whether anybody watches; a watcher registers,
//! then looks whether a batch has begun that its view does not see. One of the two sees the other.
//! Ingests and excises close the notes while they become visible; views from before cannot watch.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;

use super::source::ReadPoint;
use crate::batch::{Batch, BatchOp};
use crate::key::{KeySpan, Kind};

/// Most notes for one set of classes.
const NOTES_MAX: usize = 1024;
/// Most sets of classes that have notes.
const SETS_MAX: usize = 8;
/// Most scans that watch at a time.
const WATCHES_MAX: usize = 64;
/// Of larger batches the keys are not looked at one by one: all notes go.
const LOOKED_THROUGH: usize = 4096;

/// Notes on a store's dead spans.
#[derive(Default)]
pub(crate) struct DeadSpans {
    /// Notes and watches: without any, writers have nothing to look at.
    count: AtomicUsize,
    /// Commit index of the last batch that began.
    begun: AtomicU64,
    notes: Mutex<Notes>,
}

#[derive(Default)]
struct Notes {
    /// For each set of classes, disjoint spans by their starts.
    sets: Vec<(u32, BTreeMap<Bytes, Note>)>,
    watches: BTreeMap<u64, KeySpan>,
    last_watch: u64,
    /// Something becomes visible that was not looked at.
    is_closed: bool,
}

/// A scan that says what it is going to walk through.
pub(crate) struct Watch {
    number: u64,
    read: ReadPoint,
}

/// A span in which no row is visible at `read` or later.
#[derive(Clone)]
struct Note {
    end: Bytes,
    read: ReadPoint,
}

/// The key right behind another one.
pub(super) fn behind(key: &[u8]) -> Bytes {
    Bytes::from([key, &[0]].concat())
}

impl DeadSpans {
    /// A batch begins: what it puts is alive from now on. Called in the order of the batches,
    /// before any of it is in the memtable.
    pub(crate) fn begin_batch(&self, batch: &Batch, idx: u64) {
        self.begun.store(idx, Ordering::SeqCst);
        if self.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        let mut notes = self.notes.lock();
        if batch.len() > LOOKED_THROUGH {
            notes.clear();
        } else {
            for op in batch.ops() {
                if let BatchOp::Point { key, kind: Kind::Put, .. } = op {
                    notes.revive(key);
                }
            }
        }
        self.recount(&notes);
    }

    /// Forgets everything, and takes no notes before [`DeadSpans::reopen`].
    pub(crate) fn close(&self) {
        let mut notes = self.notes.lock();
        notes.clear();
        notes.is_closed = true;
        self.recount(&notes);
    }

    /// What became visible is seen by all views from now on.
    pub(crate) fn reopen(&self) {
        self.notes.lock().is_closed = false;
    }

    /// Where a dead span ends that `at` lies in; going backward, where it begins.
    pub(crate) fn pass(
        &self,
        at: &[u8],
        classes: u32,
        read: ReadPoint,
        backward: bool,
    ) -> Option<Bytes> {
        if self.count.load(Ordering::SeqCst) == 0 {
            return None;
        }
        let notes = self.notes.lock();
        let sets = notes.sets.iter().filter(|(set, _)| classes & !set == 0);
        sets.filter_map(|(_, spans)| {
            let up_to = (Bound::Unbounded, Bound::Included(at));
            let (start, note) = spans.range::<[u8], _>(up_to).next_back()?;
            let is_told = note.read.ts <= read.ts && note.read.visible <= read.visible;
            (is_told && at < note.end.as_ref())
                .then(|| if backward { start.clone() } else { note.end.clone() })
        })
        .next()
    }

    /// A scan is about to walk through a span and may find nothing there. `None`: it cannot say
    /// what came after its view. `current`, asked once others know of the watch: the earliest
    /// moment that is as good as the view's, if that has all ingests and excises and its time is
    /// not over.
    pub(crate) fn watch(
        &self,
        span: KeySpan,
        current: impl FnOnce() -> Option<ReadPoint>,
    ) -> Option<Watch> {
        let mut notes = self.notes.lock();
        if notes.is_closed || notes.watches.len() >= WATCHES_MAX {
            return None;
        }
        notes.last_watch += 1;
        let number = notes.last_watch;
        notes.watches.insert(number, span);
        self.recount(&notes);
        drop(notes);
        let read = current().filter(|read| self.begun.load(Ordering::SeqCst) <= read.visible);
        match read {
            Some(read) => Some(Watch { number, read }),
            None => {
                let mut notes = self.notes.lock();
                notes.watches.remove(&number);
                self.recount(&notes);
                None
            }
        }
    }

    /// The watch is over. `dead`: where no row of these classes was found, if that is worth a note
    /// or goes on where one ends.
    pub(crate) fn end_watch(
        &self,
        watch: Watch,
        classes: u32,
        dead: Option<KeySpan>,
        is_worth_it: bool,
    ) {
        let mut notes = self.notes.lock();
        // Not there any more: everything was forgotten meanwhile.
        if let Some(watched) = notes.watches.remove(&watch.number)
            && let Some(dead) = dead
        {
            notes.note(classes, watched.intersect(&dead), watch.read, is_worth_it);
        }
        self.recount(&notes);
    }

    fn recount(&self, notes: &Notes) {
        let spans: usize = notes.sets.iter().map(|(_, spans)| spans.len()).sum();
        self.count.store(spans + notes.watches.len(), Ordering::SeqCst);
    }
}

impl Notes {
    fn clear(&mut self) {
        self.sets.clear();
        self.watches.clear();
    }

    /// Adds a span, together with those that it touches; if it is not worth a note, only if there
    /// are such.
    fn note(&mut self, classes: u32, span: KeySpan, read: ReadPoint, is_worth_it: bool) {
        if span.is_empty() {
            return;
        }
        let touches = |spans: &BTreeMap<Bytes, Note>| {
            let last = spans.range(..=span.end.clone()).next_back();
            last.is_some_and(|(_, note)| note.end >= span.start)
        };
        let at = match self.sets.iter().position(|(set, _)| *set == classes) {
            Some(at) if is_worth_it || touches(&self.sets[at].1) => at,
            None if is_worth_it && self.sets.len() < SETS_MAX => {
                self.sets.push((classes, BTreeMap::new()));
                self.sets.len() - 1
            }
            _ => return,
        };
        let spans = &mut self.sets[at].1;
        let KeySpan { mut start, mut end } = span;
        let mut read = read;
        while let Some((first, note)) = spans.range(..=end.clone()).next_back()
            && note.end >= start
        {
            let first = first.clone();
            let note = spans.remove(&first).expect("it was just found");
            start = start.min(first);
            end = end.max(note.end);
            read.ts = read.ts.max(note.read.ts);
            read.visible = read.visible.max(note.read.visible);
        }
        if spans.len() >= NOTES_MAX {
            spans.pop_first();
        }
        spans.insert(start, Note { end, read });
    }

    /// A key lives: spans go on on both sides of it, and who watches only up to it.
    fn revive(&mut self, key: &[u8]) {
        for (_, spans) in &mut self.sets {
            let up_to = (Bound::Unbounded, Bound::Included(key));
            let Some((start, note)) = spans.range::<[u8], _>(up_to).next_back() else { continue };
            if key >= note.end.as_ref() {
                continue;
            }
            let (start, note) = (start.clone(), note.clone());
            spans.remove(&start);
            let (before, after) = (Bytes::copy_from_slice(key), behind(key));
            if after < note.end && spans.len() < NOTES_MAX {
                spans.insert(after, note.clone());
            }
            if start < before {
                spans.insert(start, Note { end: before, read: note.read });
            }
        }
        for watched in self.watches.values_mut().filter(|watched| watched.contains(key)) {
            watched.end = Bytes::copy_from_slice(key);
        }
    }
}
