//! Figures in Prometheus' text form.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::listener::Shared;

/// A number that only grows.
#[derive(Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Counters of the server itself; those of the engine live in the engine.
#[derive(Default)]
pub(crate) struct Metrics {
    pub(crate) connections_opened: Counter,
    pub(crate) connection_panics: Counter,
}

/// One line group: name, kind, help, values by label set.
fn family(out: &mut String, name: &str, kind: &str, help: &str, values: &[(String, u64)]) {
    // Writing to a String cannot fail.
    let _infallible = writeln!(out, "# HELP braid_{name} {help}\n# TYPE braid_{name} {kind}");
    for (labels, value) in values {
        let _infallible = writeln!(out, "braid_{name}{labels} {value}");
    }
}

fn single(out: &mut String, name: &str, kind: &str, help: &str, value: u64) {
    family(out, name, kind, help, &[(String::new(), value)]);
}

/// The whole page.
pub(crate) fn render(shared: &Shared) -> String {
    let mut out = String::new();
    let m = &shared.metrics;
    let (gauge, counter) = ("gauge", "counter");
    single(&mut out, "connections", gauge, "Open connections.", shared.backends.sessions() as u64);
    single(
        &mut out,
        "connections_opened_total",
        counter,
        "Connections opened since start.",
        m.connections_opened.get(),
    );
    single(
        &mut out,
        "connection_panics_total",
        counter,
        "Connections closed because of a bug in the server.",
        m.connection_panics.get(),
    );
    single(
        &mut out,
        "transactions_running",
        gauge,
        "Transactions that have begun and not ended.",
        shared.place.active_transactions() as u64,
    );
    let memory = shared.place.memory();
    let held = "Bytes that statements, transactions and messages hold.";
    single(&mut out, "memory_held_bytes", gauge, held, memory.used() as u64);
    let peak = "Most bytes held at any time.";
    single(&mut out, "memory_held_peak_bytes", gauge, peak, memory.peak() as u64);
    let limit = "Bytes that may be held.";
    single(&mut out, "memory_limit_bytes", gauge, limit, memory.limit() as u64);
    let uncounted = "Bytes that the process has and nobody counted: they are taken off the limit.";
    single(&mut out, "memory_uncounted_bytes", gauge, uncounted, memory.uncounted() as u64);
    let done = shared.database.reclaimed();
    let help = "Keys that were looked at to find what nobody can reach.";
    single(&mut out, "reclaim_examined_total", counter, help, done.examined);
    let help = "Rows and entries of truncated and dropped tables taken away inside of families.";
    single(&mut out, "reclaim_discarded_total", counter, help, done.discarded);
    let help = "Entries of global indexes taken away whose rows a range delete had erased.";
    single(&mut out, "reclaim_dead_entries_total", counter, help, done.dead_entries);
    refused(&mut out, shared);
    if let Some(member) = shared.place.member() {
        let (members, ranges) = (member.members(), member.range_count() as u64);
        let connected = members.iter().filter(|(_, _, connected)| *connected).count() as u64;
        let help = "Members of the cluster that this one can send to, itself included.";
        single(&mut out, "cluster_members_connected", gauge, help, connected);
        single(&mut out, "cluster_members", gauge, "Members.", members.len() as u64);
        single(&mut out, "cluster_ranges", gauge, "Ranges that this node knows.", ranges);
        let led = member.led_ranges();
        single(&mut out, "cluster_ranges_led", gauge, "Ranges that this node leads.", led);
        let help = "Room on the disk of this node: 0 enough, 1 little, 2 none.";
        single(&mut out, "cluster_disk_room", gauge, help, member.room() as u64);
        let (help, asleep) = ("Ranges that sleep on this node.", member.sleeping_ranges());
        single(&mut out, "cluster_ranges_asleep", gauge, help, asleep);
        let (help, near) = ("Reads of the past at a replica nearby.", member.near_reads());
        single(&mut out, "cluster_follower_reads_total", counter, help, near);
        let about = "States of ranges that this node got instead of entries of their logs.";
        let states = member.states_installed();
        single(&mut out, "cluster_states_installed_total", "counter", about, states);
    }
    engine(&mut out, shared);
    out
}

/// What administrators have switched off or denied.
fn refused(out: &mut String, shared: &Shared) {
    let (features, rules) = shared.database.cluster_settings().refused();
    let by = |what: &str, count| (format!("{{by=\"{what}\"}}"), count);
    let values = [by("feature", features), by("rule", rules)];
    let help = "Statements that were refused: their class is switched off, or a rule denies them.";
    family(out, "denied_statements_total", "counter", help, &values);
    let version = shared.database.cluster_settings().version();
    let help = "The version of the cluster settings that this node goes by.";
    single(out, "cluster_settings_version", "gauge", help, version);
}

fn engine(out: &mut String, shared: &Shared) {
    let m = shared.place.engine().metrics();
    let (gauge, counter) = ("gauge", "counter");
    let level = |f: fn(&braid_lsm::LevelMetrics) -> u64| -> Vec<(String, u64)> {
        m.levels.iter().enumerate().map(|(i, l)| (format!("{{level=\"{i}\"}}"), f(l))).collect()
    };
    family(out, "lsm_files", gauge, "Live ssts.", &level(|l| l.files as u64));
    family(out, "lsm_bytes", gauge, "Bytes of live ssts.", &level(|l| l.bytes));
    let numbers: [(&str, &str, &str, u64); 19] = [
        ("lsm_memtable_bytes", gauge, "Bytes in memtables.", m.memtable_bytes),
        (
            "lsm_immutable_memtables",
            gauge,
            "Memtables waiting for their flush.",
            m.immutable_memtables as u64,
        ),
        ("lsm_wal_bytes_total", counter, "Bytes made durable in the wal.", m.wal_bytes_synced),
        ("lsm_cache_block_bytes", gauge, "Bytes of blocks in the cache.", m.cache_block_bytes),
        (
            "lsm_cache_pinned_bytes",
            gauge,
            "Bytes of indexes and filters, which count towards the cache.",
            m.cache_pinned_bytes,
        ),
        (
            "lsm_cache_sidecar_bytes",
            gauge,
            "Of the bytes of blocks, those of columns kept beside them.",
            m.cache_sidecar_bytes,
        ),
        (
            "lsm_frame_region_bytes",
            gauge,
            "Bytes of memory that both lie in.",
            m.frame_region_bytes,
        ),
        ("lsm_frame_free_bytes", gauge, "Of these, what is free.", m.frame_free_bytes),
        ("lsm_cache_hits_total", counter, "Blocks found in the cache.", m.cache_hits),
        ("lsm_cache_misses_total", counter, "Blocks not found in the cache.", m.cache_misses),
        ("lsm_blocks_read_total", counter, "Blocks that reads looked at.", m.blocks_read),
        ("lsm_range_tombstones_total", counter, "Range deletes written.", m.tombstones_written),
        ("lsm_points_total", counter, "Rows written or deleted one by one.", m.points_written),
        ("lsm_batches_total", counter, "Batches committed.", m.batches_written),
        ("lsm_flushes_total", counter, "Flushes.", m.flushes),
        ("lsm_flush_bytes_total", counter, "Bytes written by flushes.", m.flush_bytes),
        ("lsm_compactions_total", counter, "Compactions.", m.compactions),
        ("lsm_compaction_in_bytes_total", counter, "Bytes read by them.", m.compaction_bytes_in),
        (
            "lsm_compaction_out_bytes_total",
            counter,
            "Bytes written by them.",
            m.compaction_bytes_out,
        ),
    ];
    for (name, kind, help, value) in numbers {
        single(out, name, kind, help, value);
    }
    single(
        out,
        "lsm_disk_full",
        gauge,
        "1 while writes are refused: disk full.",
        m.disk_full.into(),
    );
}
