//! Small commits beside a commit of a million rows, and beside a bulk load of as many: how long
//! does the longest of them wait, and what was being done then?
//!
//! ```text
//!   cargo run --release -p braid-kv --example commit_beside [rows, default 1000000]
//! ```
//!
//! On a directory of the real disk (`BRAID_DIR`, default a new one below the current), and in
//! memory, where nothing but the pipeline is to be waited for.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use braid_env::clock::{Clock, WallClock};
use braid_env::fs::{DiskFs, FileSystem, MemFs};
use braid_env::memory::Account;
use braid_kv::{Store, StoreOptions, Txn, TxnOptions};

/// As the node has it: millions of small pieces come back at the end of a large transaction.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn begin(store: &Arc<Store>) -> Arc<Txn> {
    store.begin(TxnOptions::default()).expect("begins")
}

fn millis(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}

fn small_commit(store: &Arc<Store>, n: u64) -> u64 {
    let start = WallClock.monotonic_nanos();
    let txn = begin(store);
    txn.put([b"small/".as_slice(), &n.to_be_bytes()].concat(), "1").expect("puts");
    txn.commit().expect("commits");
    WallClock.monotonic_nanos() - start
}

fn describe(what: &str, mut times: Vec<u64>) {
    times.sort_unstable();
    let at = |share: usize| millis(times[(times.len() - 1) * share / 1_000]);
    println!(
        "  {what:<28} {:>7} commits, median {:.3} ms, 99 % {:.3} ms, longest {:.3} ms",
        times.len(),
        at(500),
        at(990),
        at(1_000)
    );
}

fn measure(fs: Arc<dyn FileSystem>, dir: PathBuf, rows: u64) {
    let store = Store::open(StoreOptions::new(fs, dir, Arc::new(WallClock))).expect("opens");
    let large = begin(&store);
    for n in 0..rows {
        large.put([b"large/".as_slice(), &n.to_be_bytes()].concat(), vec![7; 60]).expect("puts");
    }
    describe("alone", (0..500).map(|n| small_commit(&store, n)).collect());
    let done = AtomicBool::new(false);
    let (times, took) = std::thread::scope(|scope| {
        let beside = scope.spawn(|| {
            let mut times = Vec::new();
            while !done.load(Ordering::Acquire) {
                times.push(small_commit(&store, 1_000 + times.len() as u64));
            }
            times
        });
        let start = WallClock.monotonic_nanos();
        large.commit().expect("commits");
        let took = WallClock.monotonic_nanos() - start;
        done.store(true, Ordering::Release);
        (beside.join().expect("does not panic"), took)
    });
    println!("  the commit of {rows} rows took {:.0} ms", millis(took));
    describe("beside it", times);
    assert!(begin(&store).get(b"large/\0\0\0\0\0\0\0\0").expect("reads").is_some());
    store.engine().close().expect("closes");
}

/// Small commits until `done`: when each began, and how long it took.
fn commits_until(store: &Arc<Store>, done: &AtomicBool) -> Vec<(u64, u64)> {
    let mut times = Vec::new();
    while !done.load(Ordering::Acquire) {
        let begun = WallClock.monotonic_nanos();
        times.push((begun, small_commit(store, 1_000_000 + times.len() as u64)));
    }
    times
}

/// A load that is taken in with a commit of its own, or where nobody else looks.
fn measure_load(fs: Arc<dyn FileSystem>, dir: PathBuf, rows: u64, is_private: bool) {
    let store = Store::open(StoreOptions::new(fs, dir, Arc::new(WallClock))).expect("opens");
    let done = AtomicBool::new(false);
    let mut phases = Vec::new();
    let times = std::thread::scope(|scope| {
        let beside = scope.spawn(|| commits_until(&store, &done));
        let mut phase = |name| phases.push((name, WallClock.monotonic_nanos()));
        phase("rows come");
        let txn = begin(&store);
        let mut load = txn.bulk_load(2, 32 << 20, &Account::unlimited()).expect("begins");
        for n in 0..rows {
            let key = [b"load/".as_slice(), &n.to_be_bytes()].concat();
            load.put(0, &key, &[7; 60]).expect("puts");
            let entry = [b"index/".as_slice(), &(n.wrapping_mul(7_919) % rows).to_be_bytes()];
            load.put(1, &entry.concat(), b"").expect("puts");
        }
        phase("ssts are written");
        let each = || |_: braid_kv::Loaded<'_>| Ok::<_, braid_kv::KvError>(());
        let files = load.finish_beside(2, each).expect("finishes");
        phase("they are taken in");
        if is_private {
            txn.ingest_private(&files).expect("ingests");
        } else {
            txn.attach(files).expect("attaches");
            txn.commit().expect("commits");
        }
        phase("afterwards");
        WallClock.sleep(std::time::Duration::from_millis(500));
        phase("the end");
        done.store(true, Ordering::Release);
        beside.join().expect("does not panic")
    });
    for pair in phases.windows(2) {
        let ((name, from), (_, to)) = (pair[0], pair[1]);
        // Whoever began before and was kept waiting into it belongs to both.
        let inside = times.iter().filter(|(begun, took)| begun + took >= from && *begun < to);
        let inside: Vec<u64> = inside.map(|(_, took)| *took).collect();
        if !inside.is_empty() {
            describe(&format!("{name}, {:.0} ms", millis(to - from)), inside);
        }
    }
    store.engine().close().expect("closes");
}

fn main() {
    let rows = std::env::args().nth(1).map_or(1_000_000, |text| text.parse().expect("a number"));
    println!("in memory");
    measure(Arc::new(MemFs::new()), PathBuf::from("/store"), rows);
    let dir = std::env::var("BRAID_DIR").unwrap_or_else(|_| "commit-beside.tmp".into());
    println!("on disk, in {dir}");
    measure(DiskFs::shared(), PathBuf::from(&dir), rows);
    for (is_private, name) in [(false, "a load with its own commit"), (true, "a private load")] {
        println!("{name}, on disk");
        measure_load(DiskFs::shared(), PathBuf::from(&dir).join(name), rows, is_private);
    }
}
