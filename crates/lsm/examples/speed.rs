//! Times what the engine promises to do quickly, on a real directory.
//!
//! `cargo run --release -p braid-lsm --example speed [directory]`: small synced commits by one and
//! by eight threads, one batch of a million rows, point reads, full scans in both directions, and
//! range deletes over few and over many rows. Prints one line per measurement.

use std::path::PathBuf;

use braid_env::clock::{Clock, WallClock};
use braid_env::fs::DiskFs;
use braid_env::random::Random;
use braid_env::tasks::spawn_thread;
use braid_lsm::{Batch, CommitTs, Db, Durability, Error, KeySpan, Options, RowBatch, ScanOptions};

const ROWS: u64 = 1_000_000;

fn key(n: u64) -> Vec<u8> {
    format!("parent/{:04}/child/{n:08}", n / 10_000).into_bytes()
}

fn seconds<T>(name: &str, work: impl FnOnce() -> Result<T, Error>) -> Result<(T, f64), Error> {
    let start = WallClock.monotonic_nanos();
    let result = work()?;
    let seconds = (WallClock.monotonic_nanos() - start) as f64 / 1e9;
    println!("{name:<44} {seconds:>9.3} s");
    Ok((result, seconds))
}

fn scan_all(db: &Db, reverse: bool) -> Result<u64, Error> {
    let view = db.view(CommitTs(u64::MAX - 1))?;
    let options = ScanOptions { reverse, ..ScanOptions::default() };
    let mut scan = view.scan(KeySpan::all(), options)?;
    let mut batch = RowBatch::new();
    let mut rows = 0;
    while scan.next_batch_into(&mut batch, 1_024, 1 << 20)? > 0 {
        rows += batch.len() as u64;
    }
    Ok(rows)
}

fn gets(db: &Db, count: u64) -> Result<u64, Error> {
    let view = db.view(CommitTs(u64::MAX - 1))?;
    let mut random = Random::seeded(7);
    let mut found = 0;
    for _ in 0..count {
        found += u64::from(view.get(&key(random.below(ROWS)))?.is_some());
    }
    Ok(found)
}

fn small_commits(db: &Db, ts: &mut u64) -> Result<(), Error> {
    const COMMITS: u64 = 300;
    let (_, time) = seconds("300 synced commits, 1 thread", || {
        for n in 0..COMMITS {
            *ts += 1;
            let mut batch = Batch::at(CommitTs(*ts));
            batch.put(format!("small/{n}").as_bytes(), &[7; 100]);
            db.write(batch, Durability::Sync)?;
        }
        Ok(())
    })?;
    println!("{:<44} {:>9.1} us", "  per commit", time / COMMITS as f64 * 1e6);
    let base = *ts + 1;
    *ts += 8 * COMMITS + 8;
    let (_, time) = seconds("2,400 synced commits, 8 threads", || {
        let threads: Vec<_> = (0..8u64)
            .map(|thread| {
                let db = db.clone();
                spawn_thread("writer", move || {
                    for n in 0..COMMITS {
                        let mut batch = Batch::at(CommitTs(base + n * 8 + thread));
                        batch.put(format!("small/{thread}/{n}").as_bytes(), &[7; 100]);
                        db.write(batch, Durability::Sync).expect("write");
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().expect("writer");
        }
        Ok(())
    })?;
    println!("{:<44} {:>9.1} us", "  per commit", time / (8 * COMMITS) as f64 * 1e6);
    Ok(())
}

fn main() -> Result<(), Error> {
    let dir = std::env::args().nth(1).map_or_else(
        || std::env::temp_dir().join(format!("braid-lsm-speed-{}", std::process::id())),
        PathBuf::from,
    );
    let db = Db::open(DiskFs::shared(), &dir, Options::default())?;
    let mut ts = db.last_commit_ts().0 + 1;
    small_commits(&db, &mut ts)?;
    seconds("1,000,000 rows of 200 B in one batch", || {
        ts += 1;
        let mut batch = Batch::at(CommitTs(ts));
        for n in 0..ROWS {
            batch.put(&key(n), &[n as u8; 176]);
        }
        db.write(batch, Durability::Sync)
    })?;
    let rate = |name: &str, count: u64, time: f64| {
        println!("{name:<44} {:>9.2} M/s", count as f64 / time / 1e6);
    };
    let (rows, time) = seconds("full scan, memtable", || scan_all(&db, false))?;
    rate("  rows", rows, time);
    let (found, time) = seconds("200,000 point reads, memtable", || gets(&db, 200_000))?;
    println!("{:<44} {:>9.2} us", "  per read", time / found as f64 * 1e6);
    seconds("flush", || db.flush())?;
    seconds("compact everything", || db.compact_span(&KeySpan::all()))?;
    for name in ["full scan, ssts, cold", "full scan, ssts, warm"] {
        let (rows, time) = seconds(name, || scan_all(&db, false))?;
        rate("  rows", rows, time);
    }
    let (rows, time) = seconds("full scan, backwards", || scan_all(&db, true))?;
    rate("  rows", rows, time);
    let (found, time) = seconds("200,000 point reads, ssts", || gets(&db, 200_000))?;
    println!("{:<44} {:>9.2} us", "  per read", time / found as f64 * 1e6);
    seconds("3,000,000 rows of 200 B in batches of 1,000", || {
        for start in (0..3 * ROWS).step_by(1_000) {
            ts += 1;
            let mut batch = Batch::at(CommitTs(ts));
            for n in start..start + 1_000 {
                let key = format!("loaded/{:08}", n.wrapping_mul(2_654_435_761) % 100_000_000);
                batch.put(key.as_bytes(), &[n as u8; 176]);
            }
            db.write(batch, Durability::Buffered)?;
        }
        db.flush()
    })?;
    for rows in [1_000u64, 10_000, 100_000, 500_000] {
        ts += 1;
        let span = (key(0), key(rows));
        let (_, time) = seconds(&format!("range delete over {rows} rows"), || {
            let floor =
                db.newest_above(&KeySpan::new(span.0.clone(), span.1.clone()), CommitTs(ts - 1))?;
            assert!(floor.is_none());
            let mut batch = Batch::at(CommitTs(ts));
            batch.delete_span(&span.0, &span.1);
            db.write(batch, Durability::Sync)
        })?;
        println!("{:<44} {:>9.1} us", "  each", time * 1e6);
    }
    let (rows, _) = seconds("full scan past 500,000 deleted rows", || scan_all(&db, false))?;
    println!("{rows} rows left; {:?}", db.metrics());
    db.close()
}
