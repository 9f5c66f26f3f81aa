//! Small reads and writes through the seam: what a transaction adds to the engine's own cost.
//!
//! ```text
//!   cargo run --release -p braid-kv --example small_reads [rounds, default 5] [part of a name]
//! ```
//!
//! Medians over the rounds, in nanoseconds; everything is in memory.

use std::path::Path;
use std::sync::Arc;

use braid_env::clock::{Clock, WallClock};
use braid_env::fs::MemFs;
use braid_kv::{Coordinator, KeySpan, ScanOptions, Store, StoreOptions, Txn, TxnOptions};

/// As the node has it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const ROWS: u64 = 200_000;

fn key(n: u64) -> Vec<u8> {
    [b"table/".as_slice(), &n.to_be_bytes()].concat()
}

fn begin(at: &Arc<Coordinator>, read_only: bool) -> Arc<Txn> {
    at.begin(TxnOptions { read_only, ..TxnOptions::default() }).expect("begins")
}

fn place(n: u64) -> u64 {
    n.wrapping_mul(7919) % (ROWS - 2_000)
}

/// Nanoseconds of one of `count` calls.
fn time(count: u64, mut work: impl FnMut(u64)) -> u64 {
    let start = WallClock.monotonic_nanos();
    (0..count).for_each(&mut work);
    (WallClock.monotonic_nanos() - start) / count
}

fn scan(txn: &Arc<Txn>, from: u64, rows: u64, limit: Option<usize>) {
    let options = ScanOptions { limit, ..ScanOptions::default() };
    let span = KeySpan::new(key(from), key(from + rows));
    let mut scan = txn.scan(span, options).expect("opens");
    while scan.next().expect("scans").is_some() {}
}

/// A measurement, and its name.
type Case<'a> = (&'static str, Box<dyn Fn() -> u64 + 'a>);

fn cases(at: &Arc<Coordinator>) -> Vec<Case<'_>> {
    let (read, write) = (begin(at, true), begin(at, false));
    // As a statement outside of a block does.
    let alone = move |from: u64, rows: u64, limit: Option<usize>| {
        scan(&begin(at, true), from, rows, limit);
    };
    let get = |txn: &Txn, n: u64| assert!(txn.get(&key(place(n))).expect("gets").is_some());
    vec![
        ("get, own transaction", Box::new(move || time(200_000, |n| get(&begin(at, true), n)))),
        ("get, read only", Box::new(move || time(200_000, |n| get(&read, n)))),
        ("get, serializable", Box::new(move || time(200_000, |n| get(&write, n)))),
        ("scan 1 row", Box::new(move || time(100_000, |n| alone(place(n), 1, None)))),
        ("scan 10 rows", Box::new(move || time(50_000, |n| alone(place(n), 10, None)))),
        ("scan 100 rows", Box::new(move || time(10_000, |n| alone(place(n), 100, None)))),
        ("scan, limit 10", Box::new(move || time(50_000, |n| alone(place(n), 2_000, Some(10))))),
        ("scan 200,000 rows", Box::new(move || time(5, |_| alone(0, ROWS, None)))),
        ("put and commit", Box::new(move || time(50_000, |n| write_one(at, n)))),
    ]
}

fn write_one(at: &Arc<Coordinator>, n: u64) {
    let txn = begin(at, false);
    txn.put(key(place(n)), "new").expect("puts");
    txn.commit().expect("commits");
}

fn main() {
    let rounds: u64 = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(5);
    let fs = Arc::new(MemFs::new());
    let options = StoreOptions::new(fs, Path::new("db"), Arc::new(WallClock));
    let store = Store::open(options).expect("opens");
    let at = store.coordinator();
    let txn = begin(&at, false);
    for n in 0..ROWS {
        txn.put(key(n), vec![7; 60]).expect("puts");
    }
    txn.commit().expect("commits");
    drop(txn);
    store.engine().flush().expect("flushes");
    let only = std::env::args().nth(2).unwrap_or_default();
    for (what, case) in cases(&at).iter().filter(|(what, _)| what.contains(&only)) {
        let mut times: Vec<u64> = (0..rounds).map(|_| case()).collect();
        times.sort_unstable();
        println!("{what:<24} {:>10} ns", times[times.len() / 2]);
    }
}
