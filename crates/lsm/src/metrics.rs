//! Numbers about a running store.

use crate::compaction::CompactionReason;

/// One level.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LevelMetrics {
    /// Number of ssts.
    pub files: usize,
    /// Bytes of all ssts. Of a part of a file, its share.
    pub bytes: u64,
    /// Ssts that are only a part of their file.
    pub virtual_files: usize,
    /// Bytes that flushes and compactions wrote to it.
    pub bytes_written: u64,
    /// Bytes that compactions read from it.
    pub bytes_read: u64,
    /// Bytes that came from above without being rewritten.
    pub bytes_moved: u64,
}

/// Compactions for one reason. Bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReasonMetrics {
    /// Why.
    pub reason: CompactionReason,
    /// Number of compactions that rewrote something, or dropped ssts unread.
    pub compactions: u64,
    /// Read.
    pub bytes_in: u64,
    /// Written.
    pub bytes_out: u64,
    /// Ssts that went down without being rewritten.
    pub moves: u64,
    /// Ssts dropped without being read.
    pub dropped_ssts: u64,
}

/// Counters since open, and sizes now. Bytes unless said otherwise.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Metrics {
    /// L0 to L6.
    pub levels: Vec<LevelMetrics>,
    /// Runs in L0: what it adds to the cost of a read.
    pub l0_runs: usize,
    /// Compactions by their reason.
    pub reasons: Vec<ReasonMetrics>,
    /// Gets that were sampled, and the ssts that those looked into: their read amplification.
    pub sampled_gets: u64,
    /// See `sampled_gets`.
    pub sampled_get_ssts: u64,
    /// The same of seeks.
    pub sampled_seeks: u64,
    /// See `sampled_seeks`.
    pub sampled_seek_ssts: u64,
    /// Nanoseconds that writes were delayed for the sake of background work, all together.
    pub write_wait_nanos: u64,
    /// The longest such delay of one write.
    pub longest_write_wait_nanos: u64,
    /// The level that L0 compacts into.
    pub base_level: usize,
    /// Memory of all memtables.
    pub memtable_bytes: u64,
    /// Sealed memtables that wait for their flush.
    pub immutable_memtables: usize,
    /// Wal bytes made durable.
    pub wal_bytes_synced: u64,
    /// Bytes of blocks in the cache.
    pub cache_block_bytes: u64,
    /// Bytes of indexes and filters of open ssts, which count towards the cache's size: at most
    /// about half of it.
    pub cache_pinned_bytes: u64,
    /// Bytes of what readers have kept beside blocks, which [`Metrics::cache_block_bytes`] counts
    /// too: at most half of the cache's size.
    pub cache_sidecar_bytes: u64,
    /// Bytes of the regions that blocks, indexes and filters of all stores of the process lie in.
    pub frame_region_bytes: u64,
    /// Of these, what is free.
    pub frame_free_bytes: u64,
    /// Blocks found in the cache.
    pub cache_hits: u64,
    /// Blocks that had to be read.
    pub cache_misses: u64,
    /// Blocks read from the device.
    pub blocks_read: u64,
    /// Range tombstones written.
    pub tombstones_written: u64,
    /// Puts and deletes written.
    pub points_written: u64,
    /// Batches written.
    pub batches_written: u64,
    /// Bytes written by flushes.
    pub flush_bytes: u64,
    /// Bytes read by compactions.
    pub compaction_bytes_in: u64,
    /// Bytes written by compactions.
    pub compaction_bytes_out: u64,
    /// Number of flushes.
    pub flushes: u64,
    /// Number of compactions.
    pub compactions: u64,
    /// Bytes of sst files that no live sst uses: they belong to files of which parts are live.
    pub garbage_bytes: u64,
    /// Whether writes that add data are refused because the device is full.
    pub disk_full: bool,
}

impl Metrics {
    /// Bytes written to ssts per byte that flushes wrote.
    pub fn write_amplification(&self) -> f64 {
        let flushed = self.flush_bytes.max(1) as f64;
        (self.flush_bytes + self.compaction_bytes_out) as f64 / flushed
    }

    /// The numbers of one reason.
    pub fn reason(&self, reason: CompactionReason) -> ReasonMetrics {
        let found = self.reasons.iter().find(|numbers| numbers.reason == reason);
        found.copied().unwrap_or(ReasonMetrics {
            reason,
            compactions: 0,
            bytes_in: 0,
            bytes_out: 0,
            moves: 0,
            dropped_ssts: 0,
        })
    }
}
