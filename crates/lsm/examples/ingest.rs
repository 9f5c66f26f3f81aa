//! How long an ingest takes: `cargo run --release -p braid-lsm --example ingest -- DIR`
//!
//! Loads of 400 ssts of 500 rows, on the real disk: beside each other into nothing; out of order
//! with some that are wide; over a memtable that a writer keeps filling; and by four threads at the
//! same time, beside each other. Then excises of growing spans of the result. Prints medians and
//! maxima in microseconds.

use std::path::{Path, PathBuf};

use braid_env::clock::{Clock, WallClock};
use braid_env::fs::DiskFs;
use braid_env::random::Random;
use braid_lsm::{Batch, CommitTs, Db, Durability, IngestOptions, KeySpan, Options, SstBuilder};

const FILES: u64 = 400;
const ROWS: u64 = 500;

fn key(n: u64) -> Vec<u8> {
    format!("row/{n:012}").into_bytes()
}

fn build(dir: &Path, options: &Options, ts: u64, first: u64, wide: bool) -> PathBuf {
    let fs = DiskFs::shared();
    let path = dir.join(format!("{ts}.sst"));
    let mut builder = SstBuilder::create(&fs, &path, CommitTs(ts), options).unwrap();
    if wide {
        builder.put(b"meta", b"1").unwrap();
    }
    let mut random = Random::seeded(ts);
    for n in 0..ROWS {
        let mut value = [0; 100];
        random.fill(&mut value);
        builder.put(&key(first + n), &value).unwrap();
    }
    builder.finish().unwrap().path
}

fn report(name: &str, mut nanos: Vec<u64>) {
    nanos.sort_unstable();
    let micros = |at: usize| nanos[at] / 1_000;
    println!(
        "{name:40} median {:7} us, p99 {:7} us, max {:7} us",
        micros(nanos.len() / 2),
        micros(nanos.len() * 99 / 100),
        micros(nanos.len() - 1)
    );
}

fn timed(clock: &WallClock, run: impl FnOnce()) -> u64 {
    let start = clock.monotonic_nanos();
    run();
    clock.monotonic_nanos() - start
}

fn load(db: &Db, dir: &Path, options: &Options, name: &str, ts0: u64, over_memtable: bool) {
    let clock = WallClock;
    let fs = DiskFs::shared();
    let mut random = Random::seeded(ts0);
    let mut times = Vec::new();
    for i in 0..FILES {
        let ts = ts0 + i * 2;
        let first = if ts0 == 1 { i * ROWS } else { random.below(FILES * ROWS) };
        let path = build(dir, options, ts, first, ts0 > 1 && i % 10 == 0);
        if over_memtable {
            let mut batch = Batch::at(CommitTs(ts - 1));
            batch.put(&key(first + 1), b"older");
            batch.put(&key(random.below(FILES * ROWS)), b"elsewhere");
            db.write(batch, Durability::Buffered).unwrap();
        }
        let files = [path];
        times.push(timed(&clock, || db.ingest(&files, IngestOptions::default()).unwrap()));
        fs.remove(&files[0]).unwrap();
    }
    report(name, times);
}

/// Four threads, each with files of its own span.
fn four_at_once(db: &Db, dir: &Path, options: &Options, ts0: u64) {
    let clock = WallClock;
    let mut paths: Vec<Vec<PathBuf>> = Vec::new();
    for thread in 0..4u64 {
        let files = (0..FILES / 4).map(|i| {
            let n = thread * (FILES / 4) + i;
            build(dir, options, ts0 + n, (FILES + n) * ROWS, false)
        });
        paths.push(files.collect());
    }
    let start = clock.monotonic_nanos();
    let times = std::thread::scope(|scope| {
        let threads: Vec<_> = paths
            .iter()
            .map(|own| {
                scope.spawn(|| {
                    let ingest = |path: &PathBuf| {
                        let files = [path.clone()];
                        let clock = WallClock;
                        timed(&clock, || db.ingest(&files, IngestOptions::default()).unwrap())
                    };
                    own.iter().map(ingest).collect::<Vec<u64>>()
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let all = (clock.monotonic_nanos() - start) / 1_000_000;
    report("four at once", times);
    println!("{:40} {all} ms", "  all of them");
}

fn main() {
    let Some(dir) = std::env::args().nth(1).map(PathBuf::from) else {
        eprintln!("usage: ingest DIR");
        return;
    };
    let options = Options { small_ingest_bytes: 0, ballast_size: 0, ..Options::default() };
    let db = Db::open(DiskFs::shared(), &dir.join("store"), options.clone()).unwrap();
    load(&db, &dir, &options, "beside each other", 1, false);
    load(&db, &dir, &options, "out of order, every tenth wide", 10_001, false);
    load(&db, &dir, &options, "over a memtable", 20_001, true);
    four_at_once(&db, &dir, &options, 30_001);
    let metrics = db.metrics();
    println!(
        "flushes {}, compactions {}, runs in L0 {}",
        metrics.flushes, metrics.compactions, metrics.l0_runs
    );
    let clock = WallClock;
    let mut times = Vec::new();
    for i in 1..=100u64 {
        let span = KeySpan::new(key(i * 1_000), key(i * 1_000 + i * 9));
        times.push(timed(&clock, || db.excise(&span).unwrap()));
    }
    report("excise", times);
    report("checkpoint", vec![timed(&clock, || db.checkpoint(&dir.join("copy")).unwrap())]);
    db.close().unwrap();
}
