//! Numbers about a running store.

/// One level.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LevelMetrics {
    /// Number of ssts.
    pub files: usize,
    /// Bytes of all ssts. Of a part of a file, its share.
    pub bytes: u64,
    /// Ssts that are only a part of their file.
    pub virtual_files: usize,
}

/// Counters since open, and sizes now. Bytes unless said otherwise.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Metrics {
    /// L0 to L6.
    pub levels: Vec<LevelMetrics>,
    /// The level that L0 compacts into.
    pub base_level: usize,
    /// Memory of all memtables.
    pub memtable_bytes: u64,
    /// Sealed memtables that wait for their flush.
    pub immutable_memtables: usize,
    /// Wal bytes made durable.
    pub wal_bytes_synced: u64,
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
