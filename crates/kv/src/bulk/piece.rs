//! What full buffers became, and how many there may be: what is merged must be read side by side.
//!
//! ```text
//!   runs of a target   |..| |...| |.| |..| |......|
//!                       └────┬─────┘                  more than can be read at once, or than
//!   one run              |........|   |......|        there are files: the smallest become one
//! ```

use super::desk::Desk;
use super::load::BulkLoad;
use super::merge::{Merge, Part, Source};
use super::run::{Run, RunWriter};
use super::sst::Sst;
use crate::error::{KvError, KvResult};

/// A file of rows in key order.
pub(super) enum Piece {
    Run(Run),
    Sst(Sst),
}

/// So many runs a load may have: each is an open file.
const RUNS_MAX: usize = 1024;
/// Fewer where there is little memory, but so many.
const RUNS_MIN: usize = 32;
/// Rows that are merged between two looks at whether to go on.
const LOOK: usize = 4096;

impl Piece {
    /// Bytes of memory that reading it takes.
    pub(super) fn reading(&self) -> usize {
        match self {
            Piece::Run(run) => run.reading(),
            Piece::Sst(sst) => sst.reading(),
        }
    }

    fn byte_len(&self) -> u64 {
        match self {
            Piece::Run(run) => run.byte_len(),
            Piece::Sst(sst) => sst.bytes,
        }
    }

    /// Its rows in a part; `None` if there are none.
    pub(super) fn source(&self, part: &Part) -> KvResult<Option<Source<'static>>> {
        Ok(match self {
            Piece::Run(run) => Some(Source::run(run, part)?),
            Piece::Sst(sst) => sst.reader(part)?.map(|reader| Source::Sst(Box::new(reader))),
        })
    }

    /// Its rows lie elsewhere now.
    fn discard(self) -> KvResult<()> {
        match self {
            Piece::Run(run) => run.discard(),
            Piece::Sst(sst) => sst.discard(),
        }
    }
}

impl BulkLoad {
    /// What reading all pieces at once takes.
    fn reading(&self) -> usize {
        self.pieces.iter().map(|(_, piece)| piece.reading()).sum()
    }

    /// What the account would still give.
    fn free(&self) -> usize {
        self.account.limit().saturating_sub(self.account.used())
    }

    /// Sees to it that everything can be merged in the memory that there is, on so many threads.
    /// The buffers are sorted.
    pub(super) fn fit_into_memory(&mut self, threads: usize) -> KvResult<()> {
        if self.pieces.is_empty() {
            return Ok(());
        }
        let room = self.memory.saturating_sub(self.desk_share());
        let held: usize = self.buffers.iter().map(|(_, buffer)| buffer.held()).sum();
        let wanted = self.reading() * threads;
        if held + wanted <= room && wanted <= self.free() {
            return Ok(());
        }
        for n in 0..self.buffers.len() {
            if !self.buffers[n].1.is_empty() {
                self.spill_as_run(n)?;
            }
            self.buffers[n].1.release();
        }
        // Others of the same account may hold more than was planned.
        let room = room.min(self.free());
        while self.reading() * threads > room && self.merge_some(usize::MAX, room)? {}
        Ok(())
    }

    /// Sees to it that there are not too many runs, while rows come.
    pub(super) fn limit_runs(&mut self) -> KvResult<()> {
        let runs = self.pieces.iter().filter(|(_, piece)| matches!(piece, Piece::Run(_))).count();
        let most = (self.memory >> 16).clamp(RUNS_MIN, RUNS_MAX);
        if runs <= most {
            return Ok(());
        }
        // One buffer has just become empty.
        let empty = self.buffers.iter_mut().filter(|(_, buffer)| buffer.is_empty());
        empty.for_each(|(_, buffer)| buffer.release());
        let held: usize = self.buffers.iter().map(|(_, buffer)| buffer.held()).sum();
        // Half of them: the longest ones are not written again each time.
        let room = self.memory.saturating_sub(self.desk_share() + held);
        self.merge_some(runs / 2, room.min(self.free()))?;
        Ok(())
    }

    /// Merges some of the smallest pieces of the target that needs most memory for them, `most` at
    /// most, such that reading them takes no more than `room`; `false` if no two can be merged.
    fn merge_some(&mut self, most: usize, room: usize) -> KvResult<bool> {
        let mut needs = vec![(0, 0); self.looked_at.len()];
        for (target, piece) in &self.pieces {
            let (count, bytes) = needs[*target];
            needs[*target] = (count + 1, bytes + piece.reading());
        }
        let several = needs.iter().enumerate().filter(|(_, (count, _))| *count >= 2);
        let Some((target, _)) = several.max_by_key(|(_, (_, bytes))| *bytes) else {
            return Ok(false);
        };
        let own = self.pieces.iter().enumerate().filter(|(_, (of, _))| *of == target);
        let mut own: Vec<usize> = own.map(|(at, _)| at).collect();
        own.sort_by_key(|at| self.pieces[*at].1.byte_len());
        let mut left = room;
        let fits = own.iter().take_while(|at| {
            let rest = left.checked_sub(self.pieces[**at].1.reading());
            left = rest.unwrap_or(0);
            rest.is_some()
        });
        let count = fits.count().min(most).max(2);
        own.truncate(count);
        own.sort_unstable();
        // From behind, so that the others keep their places.
        let taken: Vec<Piece> = own.iter().rev().map(|at| self.pieces.swap_remove(*at).1).collect();
        let run = self.merged(&taken)?;
        taken.into_iter().try_for_each(Piece::discard)?;
        self.pieces.push((target, Piece::Run(run)));
        Ok(true)
    }

    /// One run of the rows of several pieces.
    fn merged(&mut self, pieces: &[Piece]) -> KvResult<Run> {
        let mut sources = Vec::new();
        for piece in pieces {
            sources.extend(piece.source(&Part::default())?.map(|source| (0, source)));
        }
        let memory = pieces.iter().map(Piece::reading).sum();
        let (share, frame_bytes) = (self.desk_share(), self.frame_bytes());
        let desk = self.desk.get_or_insert_with(|| Desk::new(&self.account, share));
        let mut merge = Merge::new(sources).counted(&self.account, memory)?;
        let path = self.folder.new_path(self.job, "run")?;
        let writer = RunWriter::create(&self.folder.fs, &self.stays, path)?;
        let mut writer = writer.with_frames_of(frame_bytes);
        let mut last = Vec::new();
        let mut rows = 0usize;
        while let Some(row) = merge.next()? {
            rows += 1;
            if rows.is_multiple_of(LOOK) && self.stopped.as_ref().is_some_and(|stopped| stopped()) {
                return Err(KvError::Canceled);
            }
            desk.need(writer.memory_with(row.key, row.value))?;
            writer.put(row.key, row.value)?;
            last.clear();
            last.extend_from_slice(row.key);
        }
        desk.settle();
        writer.finish(&last)
    }
}
