//! An out-of-order load, with and without sublevels: what the sublevel article of CockroachDB is
//! about.
//!
//! `cargo run --release -p braid-lsm --example out_of_order [files [rows [directory]]]` (`-` for no
//! directory, a fourth argument `on` or `off` for one of the two alone): ssts that
//! overlap each other, ten deep, are ingested in random order as fast as they are taken; every
//! eighth is tiny and as wide as all of them together. Prints how long that took, how long until
//! the tree was quiet, the longest single ingest, how deep L0 became, and what was written. In
//! memory, unless a directory is given.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use braid_env::clock::{Clock, WallClock};
use braid_env::fs::{DiskFs, FileSystem, MemFs};
use braid_env::random::Random;
use braid_lsm::{CommitTs, CompactionReason, Db, Error, IngestOptions, Options, SstBuilder};

/// How many files lie over each key: an import whose input is in another order than its keys
/// passes over the key space again and again.
const PASSES: u64 = 10;

fn key(n: u64) -> Vec<u8> {
    format!("{n:016}").into_bytes()
}

/// Builds file number `turn` of the load.
fn build(
    fs: &Arc<dyn FileSystem>,
    path: &Path,
    numbers: &[u64],
    ts: u64,
    options: &Options,
) -> Result<(), Error> {
    let mut sst = SstBuilder::create(fs, path, CommitTs(ts), options)?;
    let mut random = Random::seeded(ts);
    let mut value = [0; 100];
    for n in numbers {
        random.fill(&mut value[..50]);
        sst.put(&key(*n), &value)?;
    }
    sst.finish()?;
    Ok(())
}

/// User and system time of this process; 0 where it cannot be read.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks = after_name.split_whitespace().skip(11).take(2);
    ticks.filter_map(|field| field.parse::<f64>().ok()).sum::<f64>() / 100.0
}

fn seconds(since: u64) -> f64 {
    (WallClock.monotonic_nanos() - since) as f64 / 1e9
}

fn run(sublevels: bool, files: u64, rows: u64, dir: Option<&Path>) -> Result<f64, Error> {
    let fs: Arc<dyn FileSystem> =
        if dir.is_some() { DiskFs::shared() } else { Arc::new(MemFs::new()) };
    let dir = dir.map_or_else(|| PathBuf::from("/load"), |dir| dir.join(format!("{sublevels}")));
    let outside = dir.with_extension("outside");
    fs.create_dir_all(&outside).expect("the directory can be made");
    let mut options = Options { l0_sublevels: sublevels, ballast_size: 0, ..Options::default() };
    if !sublevels {
        options.small_ingest_bytes = 0;
    }
    let mut random = Random::seeded(1);
    let mut order: Vec<u64> = (0..files).collect();
    for i in (1..order.len()).rev() {
        order.swap(i, random.below(i as u64 + 1) as usize);
    }
    let space = files * rows;
    let mut paths = Vec::new();
    for (turn, file) in order.iter().enumerate() {
        let numbers: Vec<u64> = if turn % 8 == 7 {
            (0..9).map(|i| i * (space - 1) / 8).collect()
        } else {
            // Column and pass: the passes of a column interleave.
            let (column, pass) = (file / PASSES, file % PASSES);
            (0..rows).map(|i| (column * rows + i) * PASSES + pass).collect()
        };
        let path = outside.join(format!("{turn}.sst"));
        build(&fs, &path, &numbers, turn as u64 + 1, &options)?;
        paths.push(path);
    }
    fs.sync_dir(&outside).expect("the directory can be synced");
    let db = Db::open(fs, &dir, options)?;
    let cpu = cpu_seconds();
    let (start, mut longest) = (WallClock.monotonic_nanos(), 0f64);
    let (mut most_files, mut most_runs) = (0, 0);
    for path in paths {
        let before = WallClock.monotonic_nanos();
        db.ingest(&[path], IngestOptions::default())?;
        longest = longest.max(seconds(before));
        let metrics = db.metrics();
        most_files = most_files.max(metrics.levels[0].files);
        most_runs = most_runs.max(metrics.l0_runs);
    }
    let accepted = seconds(start);
    while !db.is_quiet() {
        WallClock.sleep(Duration::from_millis(1));
    }
    let (quiet, cpu) = (seconds(start), cpu_seconds() - cpu);
    let metrics = db.metrics();
    let bytes: u64 = metrics.levels.iter().map(|level| level.bytes).sum();
    println!(
        "sublevels {sublevels:<5}  accepted {accepted:>7.2} s  quiet {quiet:>7.2} s ({cpu:.2} s of \
         cpu)  longest ingest {:>6.1} ms  L0 at most {most_files} files, {most_runs} runs",
        longest * 1e3
    );
    println!(
        "                 compactions wrote {} MB of {} MB; moved {} ssts; within L0 {}",
        metrics.compaction_bytes_out >> 20,
        bytes >> 20,
        metrics.reasons.iter().map(|reason| reason.moves).sum::<u64>(),
        metrics.reason(CompactionReason::WithinL0).compactions,
    );
    for (number, level) in metrics.levels.iter().enumerate().filter(|(_, l)| l.bytes_written > 0) {
        println!(
            "                 L{number}: {} files, {} MB; written {} MB, read {} MB, moved {} MB",
            level.files,
            level.bytes >> 20,
            level.bytes_written >> 20,
            level.bytes_read >> 20,
            level.bytes_moved >> 20
        );
    }
    db.close()?;
    Ok(quiet)
}

fn main() -> Result<(), Error> {
    let number = |n: usize, default: u64| {
        std::env::args().nth(n).and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let (files, rows) = (number(1, 2_000), number(2, 10_000));
    let dir = std::env::args().nth(3).filter(|dir| dir != "-").map(PathBuf::from);
    let only = std::env::args().nth(4);
    let wanted = |name: &str| only.as_ref().is_none_or(|only| only == name);
    let measure = |name: &str| {
        wanted(name).then(|| run(name == "on", files, rows, dir.as_deref())).transpose()
    };
    if only.is_none() {
        // The first load pays for memory that the later ones find: a file in memory is not what is
        // measured. So the first one does not count.
        print!("warm-up: ");
        run(true, files, rows, dir.as_deref())?;
    }
    if let (Some(on), Some(off)) = (measure("on")?, measure("off")?) {
        println!("with sublevels, {:.1} % less time until quiet", (1.0 - on / off) * 100.0);
    }
    Ok(())
}
