//! One run: disjoint ssts in key order, opened when the read gets there.
//!
//! A virtual sst is a part of its file: its cursor walks the file, and this one stops it at the
//! sst's bounds.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;

use super::scan::ScanPlan;
use super::{ReadWork, Source, Stretch};
use crate::error::Result;
use crate::key::{Kind, compare};
use crate::range_tombstone::Cover;
use crate::sstable::{SstCursor, SstReader, Wanted};
use crate::versions::{Run, SstMeta};

/// A cursor over a run of a scan's view.
pub(crate) struct RunCursor {
    plan: Arc<ScanPlan>,
    /// Which run of the version.
    run_no: usize,
    /// The ssts of the run that overlap the scan's span.
    files: std::ops::Range<usize>,
    /// The file the cursor is in.
    at: usize,
    is_open: bool,
    cursor: SstCursor,
    /// File and tombstone where it looked last for tombstones to pass.
    finger: (usize, usize),
}

impl RunCursor {
    /// `files`: positions of the ssts of the run that overlap the span.
    pub(crate) fn new(
        plan: Arc<ScanPlan>,
        run_no: usize,
        files: std::ops::Range<usize>,
    ) -> RunCursor {
        let wanted = Wanted {
            read_ts: plan.read().ts,
            classes: plan.options.classes,
            backward: plan.options.reverse,
            fill_cache: plan.options.fill_cache,
            rows: plan.options.limit.unwrap_or(usize::MAX),
            blocks: plan.options.blocks && !plan.options.reverse,
        };
        let cursor = SstCursor::new(wanted);
        RunCursor { plan, run_no, at: files.start, files, is_open: false, cursor, finger: (0, 0) }
    }

    /// The sst the cursor is in, if it reaches over `at`.
    pub(crate) fn sst_at(&self, at: &[u8]) -> Option<&SstMeta> {
        let file = self.is_open.then(|| self.file(self.at))?;
        let bounds = file.bounds();
        (bounds.start.as_ref() <= at && at <= bounds.end.as_ref()).then_some(file)
    }

    fn run(&self) -> &Run {
        self.plan.run(self.run_no)
    }

    fn backward(&self) -> bool {
        self.plan.options.reverse
    }

    fn file(&self, at: usize) -> &SstMeta {
        &self.run().ssts()[at]
    }

    /// A seek in file `at` does not leave its part of the file.
    fn inside<'k>(&self, at: usize, to: &'k [u8]) -> Cow<'k, [u8]> {
        if !self.run().files()[at].is_virtual {
            return Cow::Borrowed(to);
        }
        let bounds = self.file(at).bounds();
        let edge = if self.backward() { &bounds.end } else { &bounds.start };
        let outside = if self.backward() { to > edge.as_ref() } else { to < edge.as_ref() };
        if outside { Cow::Owned(edge.to_vec()) } else { Cow::Borrowed(to) }
    }

    /// Whether the cursor stands behind its file's part of the run.
    fn has_left_its_file(&self) -> bool {
        let file = &self.run().files()[self.at];
        self.cursor.key().is_none_or(|key| file.is_virtual && !file.sst.bounds().contains(key))
    }

    /// Makes the cursor one of file `at`, before a seek.
    fn open(&mut self, at: usize) {
        if !self.is_open || self.at != at {
            self.at = at;
            self.is_open = true;
            self.cursor.leave();
        }
    }

    /// The cursor, and the sst it is in.
    fn parts(&mut self) -> Result<(&mut SstCursor, &SstReader)> {
        let RunCursor { plan, run_no, at, cursor, .. } = self;
        let reader = plan.run(*run_no).files()[*at].reader(plan.env())?;
        Ok((cursor, reader))
    }

    fn enter(&mut self, at: usize, to: &[u8]) -> Result<()> {
        self.open(at);
        let to = self.inside(at, to);
        let (cursor, reader) = self.parts()?;
        cursor.seek(reader, &to)
    }

    /// While the current file has nothing, goes on to its neighbours in the span.
    fn settle(&mut self) -> Result<()> {
        while self.is_open && self.has_left_its_file() {
            let next = if self.backward() { self.at.checked_sub(1) } else { Some(self.at + 1) };
            let Some(next) = next.filter(|next| self.files.contains(next)) else {
                self.is_open = false;
                return Ok(());
            };
            // From the file's edge or the span's, whichever comes later.
            let plan = self.plan.clone();
            let bounds = plan.run(self.run_no).ssts()[next].bounds();
            let to = if self.backward() {
                (&bounds.end).min(&plan.span.end)
            } else {
                (&bounds.start).max(&plan.span.start)
            };
            self.enter(next, to)?;
        }
        Ok(())
    }

    /// Going forward: the file that holds `key` or the first one behind it. Going backward: the
    /// file that holds the keys just below `key`, or the last one before it.
    fn file_for(&self, key: &[u8]) -> Option<usize> {
        let at = if self.backward() {
            self.run().first_starting_at(key).min(self.files.end).checked_sub(1)?
        } else {
            self.run().first_ending_above(key).max(self.files.start)
        };
        self.files.contains(&at).then_some(at)
    }

    /// From file `at` on in the direction of the scan, the next bound of a file with tombstones.
    fn next_tombstones(&self, at: usize) -> Option<Bytes> {
        let run = self.run();
        let next = if self.backward() { run.tombstones_up_to(at) } else { run.tombstones_from(at) };
        let bounds = self.file(next.filter(|next| self.files.contains(next))?).bounds();
        Some(if self.backward() { bounds.end.clone() } else { bounds.start.clone() })
    }
}

impl Source for RunCursor {
    fn aim(&mut self, to: &[u8]) -> Result<()> {
        if self.backward() {
            return Ok(());
        }
        let Some(at) = self.file_for(to) else {
            self.is_open = false;
            return Ok(());
        };
        self.open(at);
        let to = self.inside(at, to);
        let has_tombstones = self.run().files()[at].has_tombstones;
        let (cursor, reader) = self.parts()?;
        if has_tombstones {
            reader.skyline().prefetch(&to);
        }
        cursor.aim(reader, &to)
    }

    fn settle_at(&mut self, to: &[u8]) -> Result<()> {
        if self.backward() {
            return self.seek(to);
        }
        if !self.is_open {
            return Ok(());
        }
        let to = self.inside(self.at, to);
        let (cursor, reader) = self.parts()?;
        cursor.settle_at(reader, &to)?;
        self.settle()
    }

    fn seek(&mut self, to: &[u8]) -> Result<()> {
        match self.file_for(to) {
            Some(at) => {
                self.enter(at, to)?;
                self.settle()
            }
            None => {
                self.is_open = false;
                Ok(())
            }
        }
    }

    fn advance(&mut self) -> Result<()> {
        if self.is_open {
            let (cursor, reader) = self.parts()?;
            cursor.advance(reader)?;
        }
        self.settle()
    }

    fn fill(&mut self, stretch: &mut Stretch<'_>) -> Result<()> {
        if self.backward() {
            return self.fill_by_steps(stretch);
        }
        while self.key().is_some_and(|key| stretch.takes(key)) {
            let plan = self.plan.clone();
            let file = &plan.run(self.run_no).ssts()[self.at];
            let end = file.is_virtual().then_some(file.bounds().end.as_ref());
            let (cursor, reader) = self.parts()?;
            stretch.within(end, |stretch| cursor.fill(reader, stretch))?;
            self.settle()?;
        }
        Ok(())
    }

    fn key(&self) -> Option<&[u8]> {
        if self.is_open { self.cursor.key() } else { None }
    }

    fn ts(&self) -> u64 {
        self.cursor.ts()
    }

    fn kind(&self) -> Kind {
        self.cursor.kind()
    }

    fn value(&self) -> &[u8] {
        self.cursor.value()
    }

    fn work(&self) -> ReadWork {
        self.cursor.work()
    }

    fn cover(&mut self, at: &[u8]) -> Result<Cover> {
        let none = |until| Cover { ts: 0, until, clean: false };
        if !self.run().has_tombstones() {
            return Ok(none(None));
        }
        let Some(i) = self.file_for(at) else { return Ok(none(None)) };
        let inside = if self.backward() {
            at <= self.file(i).bounds().end.as_ref()
        } else {
            self.run().starts_up_to(i, at)
        };
        if !inside || !self.run().files()[i].has_tombstones {
            return Ok(none(self.next_tombstones(i)));
        }
        let skyline = self.run().files()[i].reader(self.plan.env())?.skyline();
        let mut cover = skyline.cover(at, self.plan.read().ts, self.backward());
        let file = &self.run().files()[i];
        cover.clean = cover.ts > 0 && file.max_point_ts < cover.ts;
        if cover.until.is_some() && !file.is_virtual {
            // A file's own tombstones do not reach over its bounds.
            return Ok(cover);
        }
        let bounds = file.sst.bounds();
        let file_ends = if self.backward() { &bounds.start } else { &bounds.end };
        let reaches_further = match &cover.until {
            None => true,
            Some(until) if self.backward() => until < file_ends,
            Some(until) => until > file_ends,
        };
        if reaches_further {
            cover.until = Some(file_ends.clone());
        }
        Ok(cover)
    }

    fn pass(&mut self, at: &mut Vec<u8>, stop: &[u8]) -> Result<u64> {
        if self.backward() || !self.run().has_tombstones() {
            return Ok(0);
        }
        let mut passed = 0;
        let (run, mut finger) = (self.run(), self.finger);
        // What was not looked for yet may begin right here.
        let own_key = if self.is_open { self.cursor.key() } else { None };
        // The next file may go on where one ends.
        while at.as_slice() < stop {
            let near = finger.0;
            let is_near = self.files.contains(&near)
                && compare(at, &run.ssts()[near].bounds().end).is_lt()
                && compare(&run.ssts()[near].bounds().start, at).is_le();
            let found = if is_near { Some(near) } else { self.file_for(at) };
            let Some(i) = found.filter(|i| is_near || run.starts_up_to(*i, at)) else { break };
            let file = &run.files()[i];
            if !file.has_tombstones {
                break;
            }
            if finger.0 != i {
                finger = (i, 0);
            }
            let skyline = file.reader(self.plan.env())?.skyline();
            let read = (self.plan.read().ts, file.max_point_ts);
            let own = own_key.map(|own| own.max(at.as_slice()));
            let end = run.ssts()[i].bounds().end.as_ref();
            let to = if compare(end, stop).is_lt() { end } else { stop };
            let reached = skyline.run_from(at, read, (to, own), &mut finger.1, &mut passed);
            let Some(reached) = reached else { break };
            at.clear();
            let reached = if compare(reached, to).is_lt() { reached } else { to };
            at.extend_from_slice(reached);
            if compare(reached, end).is_ne() {
                break;
            }
        }
        self.finger = finger;
        Ok(passed)
    }

    fn skip_hidden(&mut self, cover: &Cover) -> Result<()> {
        // The cover belongs to one file; the cursor may stand in another one behind it.
        let (Some(key), Some(until)) = (self.key(), &cover.until) else { return Ok(()) };
        let behind = if self.backward() { key < until.as_ref() } else { key >= until.as_ref() };
        if behind {
            return Ok(());
        }
        let (cursor, reader) = self.parts()?;
        cursor.skip_hidden(reader, cover)?;
        self.settle()
    }
}
