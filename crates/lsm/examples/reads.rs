//! Times reads of a settled, cached store of several levels: the figures that
//! `docs/performance.md` quotes for point gets and scans.
//!
//! `cargo run --release -p braid-lsm --example reads [directory] [million keys]`: 16-byte keys in
//! random order, 100-byte values; gets that hit and miss, seeks with 10 and 1,000 rows, a full
//! scan; then 10,000 range tombstones, and the same again. A directory that already holds the
//! keys is used as it is. Prints medians of three rounds, in nanoseconds per operation: on the
//! clock, and on a processor (which a busy machine disturbs less).

use std::path::PathBuf;

use braid_env::clock::{Clock, WallClock};
use braid_env::fs::DiskFs;
use braid_env::random::Random;
use braid_env::tasks::spawn_thread;
use braid_lsm::{Batch, CommitTs, Db, Durability, Error, KeySpan, Options, RowBatch, ScanOptions};
use rustix::time::ClockId;

const NOW: CommitTs = CommitTs(u64::MAX - 1);
const TOMBSTONES: u64 = 10_000;

/// Present keys are even.
fn key(n: u64) -> [u8; 16] {
    let mut key = *b"0000000000000000";
    let mut rest = n;
    for digit in key.iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    key
}

fn load(db: &Db, keys: u64) -> Result<(), Error> {
    let mut ts = db.last_commit_ts().0;
    if ts > 0 {
        return Ok(());
    }
    let mut random = Random::seeded(1);
    let noise: Vec<u8> = (0..1 << 20).map(|_| random.below(256) as u8).collect();
    let (start, cpu_start) = (WallClock.monotonic_nanos(), nanos_of(ClockId::ThreadCPUTime));
    // A permutation: `keys` is even, the factor odd and no multiple of 5.
    let step = 2_654_435_761;
    for first in (0..keys).step_by(100) {
        ts += 1;
        let mut batch = Batch::at(CommitTs(ts));
        for i in first..first + 100 {
            let at = random.below(1 << 19) as usize;
            batch.put(&key((i * step % keys) * 2), &noise[at..at + 100]);
        }
        db.write(batch, Durability::Buffered)?;
    }
    db.flush()?;
    report("load, random order", keys, WallClock.monotonic_nanos() - start);
    report("  on the writer's processor", keys, nanos_of(ClockId::ThreadCPUTime) - cpu_start);
    Ok(())
}

fn report(name: &str, count: u64, nanos: u64) {
    println!("{name:<40} {:>10.0} ns", nanos as f64 / count as f64);
}

fn nanos_of(clock: ClockId) -> u64 {
    let time = rustix::time::clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Time that the threads of this process were running, in nanoseconds.
fn cpu_nanos() -> u64 {
    nanos_of(ClockId::ProcessCPUTime)
}

/// Medians of three rounds: time on the clock, and time on a processor.
fn measure(name: &str, count: u64, mut work: impl FnMut() -> Result<u64, Error>) {
    let (mut times, mut cpu_times) = (Vec::new(), Vec::new());
    let mut found = 0;
    for _ in 0..3 {
        let (start, cpu_start) = (WallClock.monotonic_nanos(), cpu_nanos());
        found = work().expect("read");
        times.push(WallClock.monotonic_nanos() - start);
        cpu_times.push(cpu_nanos() - cpu_start);
    }
    times.sort_unstable();
    cpu_times.sort_unstable();
    let each = |times: &[u64]| times[1] as f64 / count as f64;
    let (time, cpu) = (each(&times), each(&cpu_times));
    println!("{name:<36} {time:>10.0} ns {cpu:>10.0} ns cpu   ({found} rows)");
}

fn gets(db: &Db, keys: u64, count: u64, odd: u64, seed: u64) -> Result<u64, Error> {
    let mut random = Random::seeded(seed);
    let mut found = 0;
    for _ in 0..count {
        found += u64::from(get(db, &key(random.below(keys) * 2 + odd))?);
    }
    Ok(found)
}

fn get(db: &Db, key: &[u8]) -> Result<bool, Error> {
    Ok(db.get(key, NOW)?.is_some())
}

fn seeks(db: &Db, keys: u64, count: u64, rows: usize, seed: u64) -> Result<u64, Error> {
    let mut random = Random::seeded(seed);
    let mut batch = RowBatch::new();
    let mut found = 0;
    let end = KeySpan::all().end;
    for _ in 0..count {
        let from = key(random.below(keys) * 2);
        let span = KeySpan { start: from.to_vec().into(), end: end.clone() };
        let options = ScanOptions { limit: Some(rows), ..ScanOptions::default() };
        let mut scan = db.view(NOW)?.scan(span, options)?;
        found += scan.next_batch_into(&mut batch, rows, usize::MAX)? as u64;
    }
    Ok(found)
}

fn scan_all(db: &Db, reverse: bool) -> Result<u64, Error> {
    let options = ScanOptions { reverse, ..ScanOptions::default() };
    let mut scan = db.view(NOW)?.scan(KeySpan::all(), options)?;
    let mut batch = RowBatch::new();
    let mut rows = 0;
    while scan.next_batch_into(&mut batch, 1_024, 1 << 20)? > 0 {
        rows += batch.len() as u64;
    }
    Ok(rows)
}

fn all_reads(db: &Db, keys: u64, only: &str) {
    let wanted = |name: &str| only.is_empty() || name.contains(only);
    if wanted("get") {
        measure("get, hit", 500_000, || gets(db, keys, 500_000, 0, 7));
        measure("get, miss", 500_000, || gets(db, keys, 500_000, 1, 7));
        measure("get, hit, 2 threads", 500_000, || {
            let other = db.clone();
            let thread = spawn_thread("reader", move || gets(&other, keys, 500_000, 0, 9));
            let found = gets(db, keys, 500_000, 0, 7)?;
            Ok(found + thread.join().expect("reader")?)
        });
    }
    if wanted("seek") {
        measure("seek + 10", 200_000, || seeks(db, keys, 200_000, 10, 8));
        measure("seek + 10, 2 threads", 200_000, || {
            let other = db.clone();
            let thread = spawn_thread("reader", move || seeks(&other, keys, 200_000, 10, 9));
            let found = seeks(db, keys, 200_000, 10, 8)?;
            Ok(found + thread.join().expect("reader")?)
        });
        measure("seek + 1000", 5_000, || seeks(db, keys, 5_000, 1_000, 8));
    }
    if wanted("full") {
        measure("full scan, per row", keys, || scan_all(db, false));
        measure("full scan backwards, per row", keys, || scan_all(db, true));
    }
}

/// Writes tombstones over two keys each, at regular intervals.
fn delete_spans(db: &Db, keys: u64) -> Result<(), Error> {
    let step = keys / TOMBSTONES;
    let mut times = Vec::new();
    for n in 0..TOMBSTONES {
        let mut batch = Batch::at(db.last_commit_ts().next());
        batch.delete_span(&key(n * step * 2), &key((n * step + 100) * 2));
        let start = WallClock.monotonic_nanos();
        let pending = db.apply(batch)?;
        times.push(WallClock.monotonic_nanos() - start);
        drop(pending);
    }
    print_times("range delete", &mut times);
    Ok(())
}

/// A range delete and a get, in turns.
fn alternate(db: &Db, keys: u64) -> Result<(), Error> {
    let step = keys / TOMBSTONES;
    let (mut inserts, mut reads) = (Vec::new(), Vec::new());
    for n in 0..TOMBSTONES {
        let at = n * 7_919 % TOMBSTONES * step;
        let mut batch = Batch::at(db.last_commit_ts().next());
        batch.delete_span(&key(at * 2), &key((at + 10) * 2));
        let start = WallClock.monotonic_nanos();
        drop(db.apply(batch)?);
        let middle = WallClock.monotonic_nanos();
        get(db, &key(at * 2))?;
        inserts.push(middle - start);
        reads.push(WallClock.monotonic_nanos() - middle);
    }
    print_times("alternating: range delete", &mut inserts);
    print_times("alternating: get", &mut reads);
    Ok(())
}

fn print_times(name: &str, times: &mut [u64]) {
    times.sort_unstable();
    let (p50, p99) = (times[times.len() / 2], times[times.len() * 99 / 100]);
    println!("{name:<40} {p50:>10} ns p50 {p99:>10} ns p99");
}

fn main() -> Result<(), Error> {
    let mut args = std::env::args().skip(1);
    let dir = args.next().map_or_else(
        || std::env::temp_dir().join(format!("braid-lsm-reads-{}", std::process::id())),
        PathBuf::from,
    );
    let keys = args.next().map_or(5, |n| n.parse().expect("a number of million keys")) * 1_000_000;
    let only = args.next().unwrap_or_default();
    let options = Options { block_cache_size: 2 << 30, ..Options::default() };
    let db = Db::open(DiskFs::shared(), &dir, options)?;
    load(&db, keys)?;
    println!("{:?}", db.metrics().levels);
    let rows = scan_all(&db, false)?;
    println!("{rows} rows");
    all_reads(&db, keys, &only);
    if rows == keys && only.is_empty() {
        delete_spans(&db, keys)?;
        println!("-- {TOMBSTONES} range tombstones in the memtable");
        all_reads(&db, keys, &only);
        db.flush()?;
        println!("-- {TOMBSTONES} range tombstones in ssts");
        all_reads(&db, keys, &only);
        alternate(&db, keys)?;
    }
    db.close()
}
