//! Rows by part of the key space, for loads whose keys were sampled before: each part fits into
//! memory and is sorted there, once.
//!
//! ```text
//!   cuts, from a sample       k2        k5        k8
//!   put                  part 0 |  part 1 | part 2 | part 3     a file for each, rows as they come
//!   finish               read one, sort it, write ssts; then the next
//! ```
//! A part that turns out too large for memory is sorted in runs, as any load is.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use braid_env::memory::{Account, Held};

use super::folder::BulkFolder;
use super::load::BulkLoad;
use super::merge::Part;
use super::run::{FRAME_BYTES, FRAME_MIN, Run, RunWriter};
use crate::error::KvResult;

/// See the [module documentation](self).
pub(crate) struct Scatter {
    folder: Arc<BulkFolder>,
    stays: Arc<AtomicBool>,
    job: Option<u32>,
    cuts: Arc<Vec<Vec<u8>>>,
    /// Files that are being written, by part and target.
    open: BTreeMap<(usize, usize), RunWriter>,
    /// Those that are complete, with their parts and targets.
    done: Vec<(usize, usize, Run)>,
    frame_bytes: usize,
    held: Held,
}

impl Scatter {
    /// Parts between these keys, which ascend; memory for what is not written yet is at most half
    /// of what the load has, unless that is too little for so many parts.
    pub(super) fn new(
        folder: &Arc<BulkFolder>,
        (job, stays): (Option<u32>, &Arc<AtomicBool>),
        cuts: &Arc<Vec<Vec<u8>>>,
        (memory, targets): (usize, usize),
        account: &Arc<Account>,
    ) -> Scatter {
        // Targets lie behind each other, so that few parts have rows of several.
        let files = cuts.len() + targets;
        let frame_bytes = (memory / 2 / files).clamp(FRAME_MIN, FRAME_BYTES);
        let held = account.hold("rows to be loaded, by part");
        let (folder, stays, cuts) = (folder.clone(), stays.clone(), cuts.clone());
        let (open, done) = (BTreeMap::new(), Vec::new());
        Scatter { folder, stays, job, cuts, open, done, frame_bytes, held }
    }

    pub(super) fn cuts(&self) -> &Arc<Vec<Vec<u8>>> {
        &self.cuts
    }

    pub(super) fn put(&mut self, target: usize, key: &[u8], value: &[u8]) -> KvResult<()> {
        let part = self.cuts.partition_point(|cut| &cut[..] <= key);
        if !self.open.contains_key(&(part, target)) {
            self.held.grow(self.frame_bytes)?;
            let path = self.folder.new_path(self.job, "part")?;
            let writer = RunWriter::create(&self.folder.fs, &self.stays, path)?;
            self.open.insert((part, target), writer.with_frames_of(self.frame_bytes));
        }
        let writer = self.open.get_mut(&(part, target)).expect("just looked");
        let long = writer.memory_with(key, value).saturating_sub(self.frame_bytes * 2);
        self.held.grow(long)?;
        let put = writer.put(key, value);
        self.held.shrink(long);
        put
    }

    /// Takes a complete file of an earlier process.
    pub(super) fn take(&mut self, part: usize, target: usize, run: Run) {
        self.done.push((part, target, run));
    }

    /// Ends all files.
    pub(super) fn end(&mut self) -> KvResult<()> {
        for ((part, target), writer) in std::mem::take(&mut self.open) {
            self.done.push((part, target, writer.finish(&[])?));
        }
        self.held.release();
        Ok(())
    }

    pub(super) fn files_mut(&mut self) -> impl Iterator<Item = &mut (usize, usize, Run)> {
        self.done.iter_mut()
    }

    /// How many files there are.
    pub(super) fn count(&self) -> usize {
        self.open.len() + self.done.len()
    }

    /// Bytes of a part's files.
    pub(super) fn part_bytes(&self, part: usize) -> u64 {
        self.done.iter().filter(|(p, ..)| *p == part).map(|(.., run)| run.byte_len()).sum()
    }

    /// Adds the rows of a part to a load.
    pub(super) fn gather(&self, part: usize, load: &mut BulkLoad) -> KvResult<()> {
        for (_, target, run) in self.done.iter().filter(|(p, ..)| *p == part) {
            let mut reader = run.reader(Part::default())?;
            while let Some((key, value)) = reader.row() {
                load.put(*target, key, value)?;
                reader.advance()?;
            }
        }
        Ok(())
    }
}
