//! Tunables of a store, with defaults that suit a small server.

use std::sync::Arc;

use braid_env::clock::{Clock, WallClock};
use braid_env::tasks::{Tasks, ThreadTasks};

use crate::inspect::EventListener;

/// Longest key, in bytes.
pub const MAX_KEY_LEN: usize = 64 << 10;
/// Longest value, in bytes.
pub(crate) const MAX_VALUE_LEN: usize = 256 << 20;
/// Largest batch, in bytes.
pub(crate) const MAX_BATCH_LEN: usize = (1 << 30) - 1;

/// Gives each key a class from 0 to 31 ("which table of a family is this row of"), so that scans
/// can skip blocks without the classes they want. Must depend on the key alone and never change
/// for a store.
pub type RowClassFn = fn(&[u8]) -> u8;

/// How blocks are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    /// Not at all.
    None,
    /// LZ4: fast in both directions.
    Lz4,
    /// Zstandard, level 1: smaller, slower.
    Zstd,
}

/// Tunables. All sizes in bytes.
#[derive(Clone)]
pub struct Options {
    /// Classifies rows; by default every row is of class 0.
    pub row_class: RowClassFn,
    /// A memtable is sealed and flushed when it has this many bytes.
    pub memtable_size: usize,
    /// Writers wait while this many sealed memtables are not flushed yet.
    pub max_immutable_memtables: usize,
    /// Target size of a row block before compression.
    pub block_size: usize,
    /// Target size of a partition of the block index.
    pub index_partition_size: usize,
    /// Target size of an sst at the base level; doubles per level up to 64 MiB.
    pub target_sst_size: u64,
    /// Target size of the base level.
    pub base_level_size: u64,
    /// Each level is this many times larger than the one above it.
    pub level_multiplier: u64,
    /// Whether overlapping ssts of L0 are laid out as sublevels, with flushes cut into columns and
    /// several compactions out of L0 at once. Without, each L0 file is a run of its own and L0 is
    /// compacted as a whole, as engines used to; only for comparison.
    pub l0_sublevels: bool,
    /// Sublevels that start a compaction.
    pub l0_compaction_sublevels: usize,
    /// Sublevels at which writers are slowed down.
    pub l0_slow_sublevels: usize,
    /// Sublevels from which on bulk waits for background work, never longer than a second, and
    /// small writes wait for some milliseconds each.
    pub l0_stop_sublevels: usize,
    /// Ssts over one key that are merged inside of L0 while the way down is busy.
    pub l0_intra_depth: usize,
    /// Without sublevels: files in L0 that start a compaction.
    pub l0_compaction_files: usize,
    /// Without sublevels: files in L0 at which writers are slowed down.
    pub l0_slow_files: usize,
    /// Without sublevels: files in L0 at which each write waits.
    pub l0_stop_files: usize,
    /// Bytes of L0, per sublevel, after which outputs of flushes are cut.
    pub flush_split_bytes: u64,
    /// Whether spans are compacted because reads pay for their overlapping ssts again and again.
    pub read_triggered: bool,
    /// Percent of the bytes that flushes and other compactions write that such compactions may
    /// write on top. Beyond that they only run while users write next to nothing.
    pub read_compaction_share: u32,
    /// One in about this many gets and seeks is looked at to find such spans.
    pub read_sample_every: u32,
    /// After so many deleted entries of blocks without a row, or an eighth of that in a memtable, a
    /// scan looks whether it is known where they end. Eight times as many are worth a note.
    pub dead_run: u64,
    /// Compactions that run at once; a flush may run beside them.
    pub compaction_slots: usize,
    /// A compaction of much more than this many bytes is done in parts, each installed by itself.
    pub compaction_unit_bytes: u64,
    /// Bits per key of the filters; 0 turns them off.
    pub filter_bits_per_key: u32,
    /// Compression of L0 to L5.
    pub codec: Codec,
    /// Compression of the bottom level.
    pub bottom_codec: Codec,
    /// Size of a wal segment; a batch that is larger makes its segment larger.
    pub wal_segment_size: u64,
    /// Used wal segments that are kept to be written again.
    pub wal_recycled_segments: usize,
    /// A manifest of this length goes on in a new file, if most of it does not count any more.
    pub manifest_size: u64,
    /// Bytes of blocks kept in memory.
    pub block_cache_size: usize,
    /// An ingest of at most so many bytes of files goes through the memtable as a batch, if all of
    /// it is of one timestamp.
    pub small_ingest_bytes: u64,
    /// A prepared batch of so many entries is written into ssts instead of the memtable, so that
    /// others need not wait while it is taken in.
    pub large_batch_rows: usize,
    /// The same for so many bytes.
    pub large_batch_bytes: u64,
    /// Bytes held back on the device, so that deletes work when it is full. 0 turns it off.
    pub ballast_size: u64,
    /// Whether flushes and compactions start by themselves.
    pub automatic_compaction: bool,
    /// Runs flushes and compactions. By default the store starts its own threads.
    pub tasks: Option<Arc<dyn Tasks>>,
    /// Gets every event of the store.
    pub listener: Option<Arc<dyn EventListener>>,
    /// Clock for durations in events and metrics.
    pub clock: Arc<dyn Clock>,
    /// Checks every new version against the engine's invariants. Default: in debug builds.
    pub paranoid_checks: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            row_class: |_| 0,
            memtable_size: 32 << 20,
            max_immutable_memtables: 4,
            block_size: 16 << 10,
            index_partition_size: 8 << 10,
            target_sst_size: 8 << 20,
            base_level_size: 64 << 20,
            level_multiplier: 10,
            l0_sublevels: true,
            l0_compaction_sublevels: 2,
            l0_slow_sublevels: 8,
            l0_stop_sublevels: 20,
            l0_intra_depth: 4,
            l0_compaction_files: 4,
            l0_slow_files: 12,
            l0_stop_files: 24,
            flush_split_bytes: 8 << 20,
            read_triggered: true,
            read_compaction_share: 50,
            read_sample_every: 256,
            dead_run: 512,
            compaction_slots: ThreadTasks::default_parallelism().max(2),
            compaction_unit_bytes: 64 << 20,
            filter_bits_per_key: 10,
            codec: Codec::Lz4,
            bottom_codec: Codec::Lz4,
            wal_segment_size: 32 << 20,
            wal_recycled_segments: 4,
            manifest_size: 16 << 20,
            block_cache_size: 256 << 20,
            small_ingest_bytes: 64 << 10,
            large_batch_rows: 20_000,
            large_batch_bytes: 16 << 20,
            ballast_size: 64 << 20,
            automatic_compaction: true,
            tasks: None,
            listener: None,
            clock: Arc::new(WallClock),
            paranoid_checks: cfg!(debug_assertions),
        }
    }
}

impl Options {
    /// The executor to use: the given one, or threads of our own.
    pub(crate) fn executor(&self) -> Arc<dyn Tasks> {
        self.tasks.clone().unwrap_or_else(|| {
            // One for flushes.
            let threads = self.compaction_slots.max(1) + 1;
            Arc::new(ThreadTasks::start("braid-lsm", threads))
        })
    }
}
