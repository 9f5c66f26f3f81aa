//! Option sets that push every limit: whatever they are, answers must be the same.

use std::sync::Arc;

use braid_env::clock::ManualClock;
use braid_env::tasks::SeededTasks;
use braid_lsm::{Codec, Options};

/// Class of a test key: by its first byte.
pub fn class_of(key: &[u8]) -> u8 {
    key.first().map_or(0, |byte| byte % 4)
}

fn base(tasks: Arc<SeededTasks>) -> Options {
    Options {
        row_class: class_of,
        memtable_size: 64 << 10,
        wal_segment_size: 64 << 10,
        block_cache_size: 1 << 20,
        small_ingest_bytes: 0,
        large_batch_rows: 4,
        compaction_unit_bytes: 6 << 10,
        ballast_size: 0,
        clock: Arc::new(ManualClock::at_micros(1)),
        tasks: Some(tasks),
        paranoid_checks: true,
        ..Options::default()
    }
}

/// The names of all option sets.
pub const SETS: [&str; 15] = [
    "plain, compactions as a whole",
    "one row per block",
    "tiny memtables",
    "one sublevel, tiny levels",
    "no filter, no compression",
    "zstd",
    "cache of a few blocks",
    "large memtables, no ssts",
    "many sublevels",
    "no automatic compaction",
    "l0 without sublevels",
    "every flush cut everywhere, four compactions at once",
    "deep l0, merged in place",
    "structural",
    "reads cause compactions",
];

/// An option set by its number.
pub fn set(number: usize, tasks: Arc<SeededTasks>) -> Options {
    let options = Options { dead_run: [1, 2, 5][number % 3], ..base(tasks) };
    match number {
        0 => Options { small_ingest_bytes: 2 << 10, compaction_unit_bytes: u64::MAX, ..options },
        1 => Options { block_size: 1, index_partition_size: 1, memtable_size: 8 << 10, ..options },
        2 => Options {
            memtable_size: 2 << 10,
            wal_segment_size: 1 << 10,
            manifest_size: 1 << 10,
            block_size: 200,
            max_immutable_memtables: 2,
            ..options
        },
        3 => Options {
            memtable_size: 6 << 10,
            manifest_size: 0,
            l0_compaction_sublevels: 1,
            base_level_size: 2 << 10,
            level_multiplier: 2,
            target_sst_size: 512,
            compaction_unit_bytes: 1 << 10,
            block_size: 300,
            index_partition_size: 100,
            ..options
        },
        4 => Options {
            filter_bits_per_key: 0,
            codec: Codec::None,
            bottom_codec: Codec::None,
            memtable_size: 10 << 10,
            target_sst_size: 4 << 10,
            ..options
        },
        5 => Options {
            codec: Codec::Zstd,
            bottom_codec: Codec::Zstd,
            memtable_size: 5 << 10,
            flush_split_bytes: 1 << 10,
            ..options
        },
        6 => Options { block_cache_size: 100, block_size: 500, memtable_size: 8 << 10, ..options },
        7 => Options { memtable_size: 64 << 20, wal_segment_size: 4 << 20, ..options },
        8 => Options {
            memtable_size: 3 << 10,
            l0_compaction_sublevels: 20,
            l0_slow_sublevels: 30,
            l0_stop_sublevels: 40,
            base_level_size: 1 << 30,
            max_immutable_memtables: 6,
            ..options
        },
        10 => Options {
            l0_sublevels: false,
            memtable_size: 3 << 10,
            l0_compaction_files: 3,
            l0_slow_files: 6,
            l0_stop_files: 10,
            base_level_size: 4 << 10,
            level_multiplier: 3,
            target_sst_size: 1 << 10,
            ..options
        },
        11 => Options {
            memtable_size: 3 << 10,
            flush_split_bytes: 1,
            target_sst_size: 400,
            base_level_size: 3 << 10,
            level_multiplier: 3,
            block_size: 300,
            compaction_slots: 4,
            compaction_unit_bytes: 1,
            ..options
        },
        12 => Options {
            memtable_size: 1 << 10,
            flush_split_bytes: 1 << 20,
            target_sst_size: 1 << 20,
            max_immutable_memtables: 1,
            l0_intra_depth: 2,
            l0_slow_sublevels: 4,
            l0_stop_sublevels: 6,
            base_level_size: 6 << 10,
            level_multiplier: 2,
            compaction_slots: 3,
            compaction_unit_bytes: 2 << 10,
            ..options
        },
        13 => Options {
            memtable_size: 4 << 10,
            manifest_size: 0,
            block_size: 100,
            l0_compaction_files: 3,
            base_level_size: 3 << 10,
            level_multiplier: 3,
            target_sst_size: 1 << 10,
            compaction_slots: 2,
            ..options
        },
        14 => Options {
            // Overlapping ssts come from flushes here.
            large_batch_rows: usize::MAX,
            memtable_size: 4 << 10,
            base_level_size: 8 << 10,
            level_multiplier: 2,
            target_sst_size: 1 << 10,
            flush_split_bytes: 2 << 10,
            l0_compaction_sublevels: 6,
            read_sample_every: 1,
            read_compaction_share: 1_000,
            ..options
        },
        _ => Options { automatic_compaction: false, memtable_size: 4 << 10, ..options },
    }
}
