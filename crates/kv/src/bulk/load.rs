//! Rows on their way into the store: in memory, and on disk what does not fit there.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use braid_env::memory::Account;

use super::buffer::{Buffer, Full};
use super::desk::Desk;
use super::folder::BulkFolder;
use super::merge::{Merge, Part, Source};
use super::order::{Order, SpillAs, Ways};
use super::piece::Piece;
use super::run::{FRAME_MIN, RunWriter};
use super::scatter::Scatter;
use super::sst::Sst;
use crate::error::{KvError, KvResult};

/// Of a load's memory, what files that are written take, and what is read of sorted runs while
/// buffers are still in memory: each this part.
const BESIDE: usize = 8;
/// The least that buffers, and what writes them, work with, in bytes.
const BUFFER_MIN: usize = 64 << 10;
/// More parts than this would have frames too small to write.
const PARTS_MAX: usize = 256;
/// Frames of runs are this part of the memory: so many can be merged at once.
const FRAMES: usize = 32;

/// Whether somebody wants the load to end.
pub(super) type Stopped = Arc<dyn Fn() -> bool + Send + Sync>;

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
    /// By target: few rows go there, which need no memory of their own.
    pub(super) few: Vec<bool>,
    /// Bytes that all of it may hold.
    pub(super) memory: usize,
    /// Where full buffers are written, from the first one on.
    pub(super) desk: Option<Desk>,
    pub(super) stopped: Option<Stopped>,
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
        memory: usize,
        account: &Arc<Account>,
    ) -> BulkLoad {
        let mut load = BulkLoad {
            folder,
            account: account.clone(),
            job: None,
            stays: Arc::default(),
            buffers: (0..targets).map(|target| (target, Buffer::new(account, 0))).collect(),
            pieces: Vec::new(),
            scatters: Vec::new(),
            orders: (0..targets).map(|_| Order::default()).collect(),
            looked_at: vec![false; targets],
            few: vec![false; targets],
            memory,
            desk: None,
            stopped: None,
        };
        load.limit_buffers();
        load
    }

    /// The least memory that a load with so many targets keeps.
    pub fn least_memory(targets: usize) -> usize {
        (targets * BUFFER_MIN + Desk::MIN) * BESIDE / (BESIDE - 1)
    }

    /// Into how many parts a load with so much memory can be [cut](BulkLoad::cut_at).
    pub fn parts_max(memory: usize, targets: usize) -> usize {
        (memory / 2 / FRAME_MIN).saturating_sub(targets).clamp(1, PARTS_MAX)
    }

    /// Gives each buffer its part.
    fn limit_buffers(&mut self) {
        let all = self.memory.saturating_sub(self.desk_share() + self.memory / BESIDE);
        let many = self.few.iter().filter(|few| !**few).count();
        let each = (all / many.max(1)).max(BUFFER_MIN);
        for (target, buffer) in &mut self.buffers {
            buffer.set_limit(if self.few[*target] { BUFFER_MIN } else { each });
        }
    }

    /// What files that are written may take.
    pub(super) fn desk_share(&self) -> usize {
        (self.memory / BESIDE).clamp(Desk::MIN, Desk::MAX)
    }

    /// Payload at which frames of runs end.
    pub(super) fn frame_bytes(&self) -> usize {
        self.memory / FRAMES
    }

    /// Where the end of the load is written.
    pub(super) fn take_desk(&mut self) -> Desk {
        self.desk.take().unwrap_or_else(|| Desk::new(&self.account, self.desk_share()))
    }

    /// Asked now and then where the load works for long: on `true` it ends with
    /// [`KvError::Canceled`].
    pub fn stop_if(&mut self, stopped: impl Fn() -> bool + Send + Sync + 'static) {
        self.stopped = Some(Arc::new(stopped));
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

    /// Few rows go to a target: the others have its part of the memory.
    pub fn expect_few(&mut self, target: usize) {
        self.few[target] = true;
        self.limit_buffers();
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
        let memory = (self.memory, self.looked_at.len());
        Scatter::new(&self.folder, (self.job, &self.stays), cuts, memory, &self.account)
    }

    /// Another load like this one, to be filled beside it and [absorbed](BulkLoad::absorb) then.
    /// Both together have the memory that this one had.
    pub fn sibling(&self) -> BulkLoad {
        let targets = self.looked_at.len();
        let folder = self.folder.clone();
        let mut other = BulkLoad::new(folder, targets, self.memory, &self.account);
        (other.job, other.stays) = (self.job, self.stays.clone());
        other.stopped.clone_from(&self.stopped);
        other.looked_at.clone_from(&self.looked_at);
        other.few.clone_from(&self.few);
        other.limit_buffers();
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
        self.memory /= among.max(1);
        self.limit_buffers();
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
        if self.buffers[target].1.push(key, value).is_ok() {
            return Ok(());
        }
        if !self.buffers[target].1.is_empty() {
            self.spill(target)?;
            if self.buffers[target].1.push(key, value).is_ok() {
                return Ok(());
            }
        }
        // A row that is longer than what others have left.
        self.relieve()?;
        match self.buffers[target].1.push(key, value) {
            Ok(()) => Ok(()),
            Err(Full::Refused(e)) => Err(e.into()),
            Err(Full::Limit) => unreachable!("an empty buffer takes a row of any length"),
        }
    }

    /// Brings what is in memory to the disk, and gives the memory back: others need it. It is taken
    /// again as rows come.
    ///
    /// # Errors
    /// The disk's.
    pub fn relieve(&mut self) -> KvResult<()> {
        for n in 0..self.buffers.len() {
            if !self.buffers[n].1.is_empty() {
                self.spill(n)?;
            }
            self.buffers[n].1.release();
        }
        self.desk = None;
        Ok(())
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
        self.orders.iter_mut().zip(&other.orders).for_each(|(own, other)| own.absorb(other));
        self.memory += other.memory;
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

    /// By target: what its full buffers became since the load began in this process, and why.
    pub fn ways(&self) -> impl Iterator<Item = Ways> {
        self.orders.iter().map(Order::ways)
    }

    /// Writes a buffer to the disk.
    pub(super) fn spill(&mut self, n: usize) -> KvResult<()> {
        let (target, share) = (self.buffers[n].0, self.desk_share());
        let BulkLoad { folder, buffers, pieces, orders, .. } = self;
        let buffer = &mut buffers[n].1;
        buffer.sort();
        if !orders[target].as_ssts(buffer) {
            self.spill_as_run(n)?;
            return self.limit_runs();
        }
        let desk = self.desk.get_or_insert_with(|| Desk::new(&self.account, share));
        let ssts = Sst::of_buffer(folder, (self.job, &self.stays), buffer, desk)?;
        pieces.extend(ssts.into_iter().map(|sst| (target, Piece::Sst(sst))));
        buffer.clear();
        Ok(())
    }

    /// Writes a sorted buffer to the disk as a run.
    pub(super) fn spill_as_run(&mut self, n: usize) -> KvResult<()> {
        let (share, frame_bytes) = (self.desk_share(), self.frame_bytes());
        let (target, buffer) = &mut self.buffers[n];
        let desk = self.desk.get_or_insert_with(|| Desk::new(&self.account, share));
        let path = self.folder.new_path(self.job, "run")?;
        let writer = RunWriter::create(&self.folder.fs, &self.stays, path)?;
        let mut writer = writer.with_frames_of(frame_bytes);
        for (key, value) in buffer.rows(0..buffer.len()) {
            desk.need(writer.memory_with(key, value))?;
            writer.put(key, value)?;
        }
        desk.settle();
        let last = buffer.key(buffer.len() - 1).unwrap_or_default();
        self.pieces.push((*target, Piece::Run(writer.finish(last)?)));
        buffer.clear();
        Ok(())
    }

    /// The rows of a part in key order. The buffers are sorted.
    pub(super) fn merge(&self, part: &Part) -> KvResult<Merge<'_>> {
        let mut sources = Vec::new();
        for (target, buffer) in &self.buffers {
            sources.push((*target, Source::memory(buffer, part)));
        }
        let mut memory = 0;
        for (target, piece) in &self.pieces {
            let source = piece.source(part)?;
            memory += if source.is_some() { piece.reading() } else { 0 };
            sources.extend(source.map(|source| (*target, source)));
        }
        Merge::new(sources).counted(&self.account, memory)
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
        self.fit_into_memory(1)?;
        let mut merge = self.merge(&Part::default())?;
        while let Some(row) = merge.next()? {
            each(row)?;
        }
        Ok(())
    }
}
