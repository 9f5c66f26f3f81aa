//! The end of a load: everything in key order into ssts that share no keys.
//!
//! ```text
//!   ssts of full buffers    |--a--|   |--b--|        |--d--|      apart: taken as they are
//!                                        |--c--|                  b and c overlap: merged
//!   runs                                                  |--e--|   with d, too
//!   written                          |--bc-----|     |---de-----|   cut where one that is kept
//!                                                                   lies in between
//! ```

use braid_env::tasks::side_by_side;
use braid_lsm::{CommitTs, KeySpan, SstBuilder, even_cuts};
use bytes::Bytes;

use super::buffer::Buffer;
use super::desk::Desk;
use super::files::BulkFiles;
use super::load::{BulkLoad, Loaded};
use super::merge::Part;
use super::piece::Piece;
use super::sst::{ROW_COPIES, Sst};
use crate::error::{KvError, KvResult};

/// Size at which an sst of a load ends, in bytes.
pub(crate) const SST_BYTES: u64 = 64 << 20;
/// Parts that are merged side by side have at least so many bytes.
const PART_BYTES: u64 = 4 << 20;
/// A buffer is looked at in so many places to find where to cut.
const MARKS: usize = 64;

impl BulkLoad {
    /// Writes the ssts. `each` sees every row before it is written and may refuse the load; but for
    /// rows of ssts that were finished before and lie apart (see [`BulkLoad::look_at_all`]).
    ///
    /// # Errors
    /// Those of `each`, and the disk's; nothing is left of the load then.
    pub fn finish<E: From<KvError>>(
        mut self,
        mut each: impl FnMut(Loaded<'_>) -> Result<(), E>,
    ) -> Result<BulkFiles, E> {
        let mut files = BulkFiles::new(&self.folder);
        for part in self.end_parts()? {
            let mut load = self.part_load(part, 1)?;
            load.write_whole(&[], &mut files, &mut each)?;
        }
        self.sort();
        let kept = self.take_apart();
        self.write_whole(&starts(&kept), &mut files, each)?;
        files.take_in(kept);
        Ok(files)
    }

    /// As [`BulkLoad::finish`], on several threads, each with a part of the keys. `each` is asked
    /// for what sees the rows of one part, in order; equal keys are always in the same part.
    ///
    /// # Errors
    /// As there. If several parts fail, the first one's.
    pub fn finish_beside<E, F>(
        mut self,
        threads: usize,
        each: impl Fn() -> F + Sync,
    ) -> Result<BulkFiles, E>
    where
        E: From<KvError> + Send,
        F: FnMut(Loaded<'_>) -> Result<(), E>,
    {
        let parts: Vec<usize> = self.end_parts()?.collect();
        self.sort();
        let kept = self.take_apart();
        let fences = starts(&kept);
        let threads = threads.max(1);
        self.fit_into_memory(threads)?;
        self.desk = None;
        let mut files = BulkFiles::new(&self.folder);
        let (load, each, fences) = (&self, &each, &fences);
        let own = || BulkFiles::new(&load.folder);
        let jobs = parts.chunks(parts.len().div_ceil(threads).max(1)).map(|parts| {
            let mut own = own();
            move || -> Result<BulkFiles, E> {
                for part in parts {
                    load.part_load(*part, threads)?.write_whole(&[], &mut own, each())?;
                }
                Ok(own)
            }
        });
        for own in side_by_side("bulk-load", jobs.collect()) {
            files.append(own?);
        }
        let jobs = Part::between(load.cuts(threads)).into_iter().map(|part| {
            let mut own = own();
            move || {
                let share = (load.desk_share() / threads).max(Desk::MIN);
                let mut desk = Desk::new(&load.account, share);
                load.write(&part, fences, (&mut own, &mut desk), each()).map(|()| own)
            }
        });
        for own in side_by_side("bulk-load", jobs.collect()) {
            files.append(own?);
        }
        files.take_in(kept);
        Ok(files)
    }

    /// Ends the files of parts; their numbers. They are read with the memory that this had.
    pub(super) fn end_parts(&mut self) -> KvResult<std::ops::Range<usize>> {
        self.desk = None;
        self.scatters.iter_mut().try_for_each(|scatter| scatter.end())?;
        Ok(0..self.scatters.first().map_or(0, |first| first.cuts().len() + 1))
    }

    /// The rows of a part as a load of its own, which shares the memory with others.
    pub(super) fn part_load(&self, part: usize, among: usize) -> KvResult<BulkLoad> {
        let targets = self.looked_at.len();
        let memory = self.memory / among;
        let bytes: u64 = self.scatters.iter().map(|s| s.part_bytes(part)).sum();
        let mut load = BulkLoad::new(self.folder.clone(), targets, memory, &self.account);
        load.stopped.clone_from(&self.stopped);
        let most = memory / 4 * 3;
        if bytes < most as u64 {
            // Mostly rows of one target: all of them together fit.
            load.buffers.iter_mut().for_each(|(_, buffer)| buffer.set_limit(most));
        }
        self.scatters.iter().try_for_each(|scatter| scatter.gather(part, &mut load))?;
        Ok(load)
    }

    /// Takes out the ssts that nothing else of the load overlaps, in key order. The buffers are
    /// sorted.
    fn take_apart(&mut self) -> Vec<Sst> {
        let mut spans: Vec<(usize, KeySpan)> = Vec::new();
        for (at, (_, piece)) in self.pieces.iter().enumerate() {
            if let Piece::Sst(sst) = piece {
                spans.push((at, sst.span.clone()));
            }
        }
        spans.sort_by(|a, b| a.1.start.cmp(&b.1.start));
        let mut apart = vec![false; self.pieces.len()];
        let mut reach = Bytes::new();
        for (n, (at, span)) in spans.iter().enumerate() {
            let behind = spans.get(n + 1).is_some_and(|(_, next)| next.start < span.end);
            let (target, _) = self.pieces[*at];
            apart[*at] = reach <= span.start
                && !behind
                && !self.looked_at[target]
                && !self.meets(&span.start, &span.end);
            reach = reach.max(span.end.clone());
        }
        let mut kept = Vec::new();
        let pieces = std::mem::take(&mut self.pieces);
        for ((target, piece), apart) in pieces.into_iter().zip(apart) {
            match piece {
                Piece::Sst(sst) if apart => kept.push(sst),
                piece => self.pieces.push((target, piece)),
            }
        }
        kept.sort_by(|a, b| a.span.start.cmp(&b.span.start));
        kept
    }

    /// Whether a buffer or a run may have a key in `[start, end)`.
    fn meets(&self, start: &[u8], end: &[u8]) -> bool {
        let holds = |(_, b): &(usize, Buffer)| b.position(start) < b.position(end);
        self.buffers.iter().any(holds)
            || self.pieces.iter().any(|(_, piece)| match piece {
                Piece::Run(run) => run.may_meet(start, end),
                Piece::Sst(_) => false,
            })
    }

    /// Keys that cut the rows into as many parts of about the same size. The buffers are sorted.
    fn cuts(&self, parts: usize) -> Vec<Vec<u8>> {
        let mut marks: Vec<(&[u8], u64)> = Vec::new();
        for (_, buffer) in &self.buffers {
            let step = (buffer.len() / MARKS).max(1);
            let bytes = buffer.bytes() as u64 * step as u64 / buffer.len().max(1) as u64;
            let keys = (0..buffer.len()).step_by(step).filter_map(|n| buffer.key(n));
            marks.extend(keys.map(|key| (key, bytes)));
        }
        for (_, piece) in &self.pieces {
            match piece {
                Piece::Run(run) => marks.extend(run.marks()),
                Piece::Sst(sst) => marks.push((&sst.span.start, sst.bytes)),
            }
        }
        let cuts = even_cuts(marks, parts, PART_BYTES);
        cuts.into_iter().map(<[u8]>::to_vec).collect()
    }

    /// Writes the ssts of everything, none of them over a fence.
    fn write_whole<E: From<KvError>>(
        &mut self,
        fences: &[Bytes],
        files: &mut BulkFiles,
        each: impl FnMut(Loaded<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.sort();
        self.fit_into_memory(1)?;
        let mut desk = self.take_desk();
        self.write(&Part::default(), fences, (files, &mut desk), each)
    }

    /// Writes the ssts of one part, none of them over a fence.
    fn write<E: From<KvError>>(
        &self,
        part: &Part,
        fences: &[Bytes],
        (files, desk): (&mut BulkFiles, &mut Desk),
        mut each: impl FnMut(Loaded<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let folder = &self.folder;
        let mut merge = self.merge(part)?;
        let mut open: Option<SstBuilder> = None;
        let mut passed = 0;
        while let Some(row) = merge.next()? {
            let (key, value) = (row.key, row.value);
            each(Loaded { target: row.target, key, value, again: row.again })?;
            let now = passed + fences[passed..].partition_point(|fence| &fence[..] <= key);
            if now > passed {
                passed = now;
                if let Some(before) = open.take() {
                    before.finish().map_err(KvError::from)?;
                }
            }
            let builder = match &mut open {
                Some(builder) => builder,
                None => {
                    let path = folder.new_path(None, "sst")?;
                    files.add(path.clone());
                    let (fs, options) = (&folder.fs, &folder.options);
                    let builder = SstBuilder::create(fs, &path, CommitTs(1), options);
                    let builder = open.insert(builder.map_err(KvError::from)?);
                    builder.write_at_once(desk.write_size());
                    builder
                }
            };
            desk.need(builder.memory() + (key.len() + value.len()) * ROW_COPIES)?;
            builder.put(key, value).map_err(KvError::from)?;
            if builder.size() >= SST_BYTES || builder.memory() >= desk.share() {
                let full = open.take().expect("it was just written to");
                full.finish().map_err(KvError::from)?;
                desk.settle();
            }
        }
        if let Some(last) = open {
            last.finish().map_err(KvError::from)?;
        }
        Ok(())
    }
}

fn starts(ssts: &[Sst]) -> Vec<Bytes> {
    ssts.iter().map(|sst| sst.span.start.clone()).collect()
}
