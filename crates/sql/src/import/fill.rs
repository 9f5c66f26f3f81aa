//! Files into loads: several files side by side, each into a load of its own, with checkpoints.
//!
//! ```text
//!   file 1 ─ reader (a thread) ─► worker 1 ─► load ┐
//!   file 2 ─ reader (a thread) ─► worker 2 ─► load ┴─► one load, when all files were read
//! ```
//! A worker takes one file after the other. What is wrong with the first file that fails is told,
//! as if they had been read in order. After each so many bytes a worker brings its load to the disk
//! and notes how far it is, while the others go on.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use braid_env::tasks::side_by_side;
use braid_import::{Batch, Position, Reader};
use braid_rows::Row;
use braid_types::{SqlError, SqlResult};
use parking_lot::Mutex;

use super::checkpoint::{FileMark, Note, Part};
use super::refused::{Place, Refusal, Refused};
use super::run::{Item, READING, Run, in_order};
use crate::dml::table_load::TableLoad;

/// What workers share.
struct Filling<'a> {
    run: &'a Run,
    refused: Mutex<&'a mut Refused>,
    /// Files that others have begun.
    next: AtomicUsize,
    /// The first file that failed, and how.
    failed: Mutex<Option<(usize, SqlError)>>,
    failed_file: AtomicUsize,
    /// By file: bytes of it that were read.
    read: Vec<AtomicU64>,
    /// Rows that may still be taken.
    left: AtomicU64,
    /// What was saved last.
    saved: Mutex<Saved>,
    /// How far files had been read before.
    begun: BTreeMap<usize, FileMark>,
}

/// What notes say of loads.
struct Saved {
    /// From another process; the first worker has it, and saves it again.
    before: Vec<Part>,
    /// By worker.
    own: Vec<Part>,
}

/// One that takes files.
struct Worker<'a> {
    filling: &'a Filling<'a>,
    number: usize,
    load: TableLoad,
    /// Files that it has taken rows of.
    marks: BTreeMap<usize, FileMark>,
    /// Bytes put when it saved last.
    saved_at: u64,
}

/// Puts all rows of the files into a load, from where a note says, if there is one.
pub(super) fn fill(
    run: &Run,
    load: TableLoad,
    note: Option<Note>,
    refused: &mut Refused,
) -> SqlResult<TableLoad> {
    let before = note.map(|note| note.parts).unwrap_or_default();
    let begun: BTreeMap<usize, FileMark> =
        before.iter().flat_map(|part| part.files.clone()).collect();
    let taken = begun.values().map(|mark| mark.taken).sum();
    let loads = load.side_by_side(run.memory.workers().min(run.files.len()));
    let filling = Filling {
        run,
        refused: Mutex::new(refused),
        next: AtomicUsize::new(0),
        failed: Mutex::new(None),
        failed_file: AtomicUsize::new(usize::MAX),
        read: run.files.iter().map(|_| AtomicU64::new(0)).collect(),
        left: AtomicU64::new(run.options.row_limit.unwrap_or(u64::MAX).saturating_sub(taken)),
        saved: Mutex::new(Saved { before, own: vec![Part::default(); loads.len()] }),
        begun,
    };
    for (file, mark) in &filling.begun {
        filling.read[*file].store(mark.read, Ordering::Relaxed);
    }
    // What was there before belongs to the first one.
    let mut marks = Some(filling.begun.clone());
    let jobs = loads.into_iter().enumerate().map(|(number, load)| {
        let marks = marks.take().unwrap_or_default();
        let saved_at = load.written().bytes;
        let worker = Worker { filling: &filling, number, load, marks, saved_at };
        move || worker.work()
    });
    let mut all: Option<TableLoad> = None;
    for load in side_by_side("import", jobs.collect()) {
        match &mut all {
            Some(all) => all.absorb(load),
            None => all = Some(load),
        }
    }
    let failed = filling.failed.lock().take();
    match failed {
        Some((_, e)) => Err(e),
        None => all.ok_or_else(|| SqlError::internal("an import without a worker")),
    }
}

impl Worker<'_> {
    fn work(mut self) -> TableLoad {
        loop {
            let file = self.filling.next.fetch_add(1, Ordering::Relaxed);
            if file >= self.filling.run.files.len() || self.must_stop(file) {
                return self.load;
            }
            let begun = self.filling.begun.get(&file).copied().unwrap_or_default();
            if begun.done {
                continue;
            }
            if let Err(e) = self.file(file, begun) {
                let mut failed = self.filling.failed.lock();
                if failed.as_ref().is_none_or(|(first, _)| file < *first) {
                    *failed = Some((file, e));
                    self.filling.failed_file.store(file, Ordering::Relaxed);
                }
                return self.load;
            }
        }
    }

    /// Whether a file in front of this one has failed.
    fn must_stop(&self, file: usize) -> bool {
        self.filling.failed_file.load(Ordering::Relaxed) < file
    }

    fn file(&mut self, file: usize, begun: FileMark) -> SqlResult<()> {
        let Filling { run, left, .. } = self.filling;
        let mut reader = Reader::start(run.reading_of(file, begun.position()))?;
        let mut taken = begun.taken;
        while let Some(batch) = reader.next_batch(&mut || self.load.relieve())? {
            run.job.pass(&|| run.ctx.check_cancel())?;
            if self.must_stop(file) {
                return Ok(());
            }
            let (read, end, last) = (batch.read, batch.end, batch.last);
            let before = left.load(Ordering::Relaxed);
            taken += self.batch(batch)?;
            self.progress(file, if last { run.files[file].size } else { read });
            let enough = before > 0 && left.load(Ordering::Relaxed) == 0;
            self.marks.insert(file, FileMark::at(end, last, read, taken));
            // Behind a limit a batch was not taken whole: there is little left to do.
            if !enough {
                self.checkpoint_if_due()?;
            }
            if left.load(Ordering::Relaxed) == 0 {
                return Ok(());
            }
        }
        self.progress(file, run.files[file].size);
        let size = run.files[file].size;
        self.marks.insert(file, FileMark::at(Position::default(), true, size, taken));
        Ok(())
    }

    /// Puts the rows of a batch; how many there were, misfits too.
    fn batch(&mut self, mut batch: Batch) -> SqlResult<u64> {
        let Filling { run, refused, left, .. } = self.filling;
        let file = batch.file;
        let some_refused = refused.lock().count() > 0;
        let mut pending: Vec<(Place, Row)> = Vec::new();
        let mut taken = 0;
        for (number, item) in in_order(&mut batch) {
            let place = (file, number);
            let one = |left: u64| left.checked_sub(1);
            if left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one).is_err() {
                break;
            }
            taken += 1;
            match item {
                Item::Row(_) if some_refused && refused.lock().holds(&place) => {}
                Item::Row(values) => match run.whole(values) {
                    Ok(row) => pending.push((place, row)),
                    Err(refusal) => {
                        self.put(std::mem::take(&mut pending))?;
                        refused.lock().add_if_of_row(&run.ctx, place, refusal)?;
                    }
                },
                Item::Misfit(m) => {
                    // What is wrong with rows before this one is told first.
                    self.put(std::mem::take(&mut pending))?;
                    let column = m.column.map(|at| run.reading.target.columns[at].name.clone());
                    let refusal = Refusal { error: m.error, column, text: Some(m.text) };
                    refused.lock().add(&run.ctx, place, refusal)?;
                }
            }
        }
        self.put(pending)?;
        Ok(taken)
    }

    fn put(&mut self, mut rows: Vec<(Place, Row)>) -> SqlResult<()> {
        let Filling { run, refused, .. } = self.filling;
        let at_once = run.ctx.txn.batch_max().max(1);
        while !rows.is_empty() {
            let rest = rows.split_off(rows.len().min(at_once));
            self.load.add_or_refuse(rows, &mut |place, error| {
                let refusal = Refusal { error, column: None, text: None };
                refused.lock().add_if_of_row(&run.ctx, place, refusal)
            })?;
            rows = rest;
        }
        Ok(())
    }

    fn progress(&self, file: usize, read: u64) {
        let Filling { run, read: all, .. } = self.filling;
        all[file].store(read, Ordering::Relaxed);
        let sum: u64 = all.iter().map(|n| n.load(Ordering::Relaxed)).sum();
        run.job.at_least(sum as f64 / run.bytes.max(1) as f64 * READING);
    }

    /// Saves what there is, if that is worth it by now.
    fn checkpoint_if_due(&mut self) -> SqlResult<()> {
        let Filling { run, saved: all, refused, .. } = self.filling;
        let (written, Some(every)) = (self.load.written(), run.checkpoint_every()) else {
            return Ok(());
        };
        if written.bytes - self.saved_at < every {
            return Ok(());
        }
        self.saved_at = written.bytes;
        let saved = self.load.save()?;
        let part = Part::new(self.marks.clone(), written, &saved);
        // Written one after the other, each with all that was saved so far.
        let mut all = all.lock();
        all.own[self.number] = part;
        if self.number == 0 {
            all.before.clear();
        }
        let parts = all.before.iter().chain(&all.own).cloned().collect();
        let stored = refused.lock().stored();
        let fraction = run.job.record().fraction;
        let note = Note::new(&run.ctx, run.surroundings, parts, stored, fraction)?;
        note.store(&run.ctx, run.job.id())?;
        run.job.tell("checkpoint");
        Ok(())
    }
}
