//! Rows on their way into the store: in memory, and on disk what does not fit there.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use braid_env::memory::Account;

use super::buffer::Buffer;
use super::folder::BulkFolder;
use super::merge::{Merge, Part, Source};
use super::order::{Order, SpillAs};
use super::run::{Run, RunWriter};
use super::scatter::Scatter;
use super::sst::Sst;
use crate::error::{KvError, KvResult};

/// What a full buffer became.
pub(super) enum Piece {
    Run(Run),
    Sst(Sst),
}

/// See the [module documentation](super).
pub struct BulkLoad {
    pub(super) folder: Arc<BulkFolder>,
    pub(super) account: Arc<Account>,
    /// Whose files they are, if they may be needed after the process.
    pub(super) job: Option<u32>,
    /// Files stay when they are dropped.
    pub(super) stays: Arc<AtomicBool>,
    /// With the target they belong to; the first ones are filled.
    pub(super) buffers: Vec<(usize, Buffer)>,
    /// With the target they belong to.
    pub(super) pieces: Vec<(usize, Piece)>,
    /// Instead of both, once the load was cut; the first one is filled.
    pub(super) scatters: Vec<Scatter>,
    /// By target.
    pub(super) orders: Vec<Order>,
    /// By target: every row is looked at in the end, so that its ssts are merged like runs.
    pub(super) looked_at: Vec<bool>,
    /// Bytes that one buffer may hold.
    pub(super) budget: usize,
}

/// What [`BulkLoad::finish`] tells about each row, in key order.
pub struct Loaded<'a> {
    /// Which target it was put to.
    pub target: usize,
    /// Its key.
    pub key: &'a [u8],
    /// Its value.
    pub value: &'a [u8],
    /// Whether the row before had the same key. The caller must refuse that.
    pub again: bool,
}

/// What lies on disk of a load, in files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spilled {
    /// Sorted runs.
    pub runs: usize,
    /// Finished ssts.
    pub ssts: usize,
    /// Unsorted parts.
    pub parts: usize,
}

impl BulkLoad {
    pub(crate) fn new(
        folder: Arc<BulkFolder>,
        targets: usize,
        budget: usize,
        account: &Arc<Account>,
    ) -> BulkLoad {
        let budget = (budget / targets.max(1)).max(1 << 16);
        BulkLoad {
            folder,
            account: account.clone(),
            job: None,
            stays: Arc::default(),
            buffers: (0..targets).map(|target| (target, Buffer::new(account))).collect(),
            pieces: Vec::new(),
            scatters: Vec::new(),
            orders: (0..targets).map(|_| Order::default()).collect(),
            looked_at: vec![false; targets],
            budget,
        }
    }

    /// Its files belong to a job, which may go on when the load or the process has ended: they stay
    /// until [`Coordinator::sweep_job_files`](crate::Coordinator::sweep_job_files). Said first.
    pub fn for_job(&mut self, job: u32) {
        debug_assert!(self.pieces.is_empty() && self.scatters.is_empty());
        self.job = Some(job);
        self.stays.store(true, Ordering::SeqCst);
    }

    /// How full buffers of a target are written: sorted runs, unless this says otherwise.
    pub fn spill_as(&mut self, target: usize, spill: SpillAs) {
        self.orders[target].spill = spill;
    }

    /// [`BulkLoad::finish`] tells about every row of a target; otherwise only of those that were
    /// not yet in an sst that lies apart from all others.
    pub fn look_at_all(&mut self, target: usize) {
        self.looked_at[target] = true;
    }

    /// Rows are put into parts between these keys, which ascend, and sorted part by part.
    pub fn cut_at(&mut self, cuts: Vec<Vec<u8>>) {
        debug_assert!(self.pieces.is_empty() && self.buffers.iter().all(|(_, b)| b.is_empty()));
        self.scatters = vec![self.scatter(&Arc::new(cuts))];
    }

    pub(super) fn scatter(&self, cuts: &Arc<Vec<Vec<u8>>>) -> Scatter {
        let memory = self.budget * self.looked_at.len();
        Scatter::new(&self.folder, (self.job, &self.stays), cuts, memory, &self.account)
    }

    /// Another load like this one, to be filled beside it and [absorbed](BulkLoad::absorb) then.
    /// Both together have the memory that this one had.
    pub fn sibling(&self) -> BulkLoad {
        let targets = self.looked_at.len();
        let folder = self.folder.clone();
        let mut other = BulkLoad::new(folder, targets, self.budget * targets, &self.account);
        (other.job, other.stays) = (self.job, self.stays.clone());
        other.looked_at.clone_from(&self.looked_at);
        for (own, order) in other.orders.iter_mut().zip(&self.orders) {
            own.spill = order.spill;
        }
        if let Some(first) = self.scatters.first() {
            other.scatters = vec![self.scatter(first.cuts())];
        }
        other
    }

    /// Gives each of so many siblings its part of the memory.
    pub fn share_memory(&mut self, among: usize) {
        self.budget = (self.budget / among.max(1)).max(1 << 16);
    }

    /// Adds a row to a target.
    ///
    /// # Errors
    /// The disk's, when a full buffer becomes a run; [`KvError::OutOfMemory`] if not even one row
    /// may be held.
    pub fn put(&mut self, target: usize, key: &[u8], value: &[u8]) -> KvResult<()> {
        if let Some(scatter) = self.scatters.first_mut() {
            return scatter.put(target, key, value);
        }
        let buffer = &mut self.buffers[target].1;
        if !buffer.is_empty() && buffer.bytes() + key.len() + value.len() > self.budget {
            self.spill(target)?;
        }
        match self.buffers[target].1.push(key, value) {
            Err(_) if !self.buffers[target].1.is_empty() => {
                self.spill(target)?;
                Ok(self.buffers[target].1.push(key, value)?)
            }
            other => Ok(other?),
        }
    }

    /// Puts what is in memory in order, as [`BulkLoad::finish`] would: for loads that are filled
    /// side by side and then become one.
    pub fn sort(&mut self) {
        self.buffers.iter_mut().for_each(|(_, buffer)| buffer.sort());
    }

    /// Takes over the rows of another load, with the same targets.
    pub fn absorb(&mut self, other: BulkLoad) {
        self.buffers.extend(other.buffers);
        self.pieces.extend(other.pieces);
        self.scatters.extend(other.scatters);
    }

    /// Whether everything is still in memory, and takes fewer bytes than this.
    pub fn is_below(&self, bytes: usize) -> bool {
        let held = self.buffers.iter().map(|(_, b)| b.bytes()).sum::<usize>();
        self.pieces.is_empty() && self.scatters.is_empty() && held < bytes
    }

    /// What lies on disk.
    pub fn spilled(&self) -> Spilled {
        let ssts = self.pieces.iter().filter(|(_, p)| matches!(p, Piece::Sst(_))).count();
        let parts = self.scatters.iter().map(Scatter::count).sum();
        Spilled { runs: self.pieces.len() - ssts, ssts, parts }
    }

    pub(super) fn spill(&mut self, target: usize) -> KvResult<()> {
        let BulkLoad { folder, buffers, pieces, orders, .. } = self;
        let buffer = &mut buffers[target].1;
        buffer.sort();
        if orders[target].as_ssts(buffer) {
            let ssts = Sst::of_buffer(folder, (self.job, &self.stays), buffer)?;
            pieces.extend(ssts.into_iter().map(|sst| (target, Piece::Sst(sst))));
        } else {
            let path = folder.new_path(self.job, "run")?;
            let mut writer = RunWriter::create(&folder.fs, &self.stays, path)?;
            for (key, value) in buffer.rows(0..buffer.len()) {
                writer.put(key, value)?;
            }
            let last = buffer.key(buffer.len() - 1).unwrap_or_default();
            pieces.push((target, Piece::Run(writer.finish(last)?)));
        }
        buffer.clear();
        Ok(())
    }

    /// The rows of a part in key order. The buffers are sorted.
    pub(super) fn merge(&self, part: &Part) -> KvResult<Merge<'_>> {
        let mut sources = Vec::new();
        for (target, buffer) in &self.buffers {
            sources.push((*target, Source::memory(buffer, part)));
        }
        for (target, piece) in &self.pieces {
            match piece {
                Piece::Run(run) => sources.push((*target, Source::run(run, part)?)),
                Piece::Sst(sst) => {
                    let reader = sst.reader(part)?;
                    sources.extend(reader.map(|r| (*target, Source::Sst(Box::new(r)))));
                }
            }
        }
        Ok(Merge::new(sources))
    }

    /// Calls `each` with every row in key order, and nothing else: for loads that turned out to be
    /// small.
    pub fn drain<E: From<KvError>>(
        mut self,
        each: impl FnMut(Loaded<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.visit(each)
    }

    /// Calls `each` with every row in key order, and writes nothing.
    pub fn visit<E: From<KvError>>(
        &mut self,
        mut each: impl FnMut(Loaded<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        for part in self.end_parts()? {
            self.part_load(part, 1)?.visit_merged(&mut each)?;
        }
        self.visit_merged(&mut each)
    }

    fn visit_merged<E: From<KvError>>(
        &mut self,
        each: &mut dyn FnMut(Loaded<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.sort();
        let mut merge = self.merge(&Part::default())?;
        while let Some(row) = merge.next()? {
            each(row)?;
        }
        Ok(())
    }
}
