//! Runs steps on an engine in this process. The Go driver mirrors every step of this file.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::data::{Rng, Values, Zipf, key};
use crate::step::{Report, Step};

/// A write.
pub enum Op<'a> {
    Put(&'a [u8], &'a [u8]),
    Delete(&'a [u8]),
    DeleteRange(&'a [u8], &'a [u8]),
}

/// What every engine can do. Writes are not synced.
pub trait Kv: Send + Sync {
    fn write(&self, ops: &[Op<'_>]);
    /// Whether the key is there; the value must have been brought to memory.
    fn get(&self, key: &[u8]) -> bool;
    /// Rows from `from` on, at most `rows`; returns how many, and touches each key and value.
    fn scan(&self, from: &[u8], rows: usize) -> usize;
    /// Keys of existing rows in a span.
    fn keys(&self, from: &[u8], to: &[u8]) -> Vec<Vec<u8>>;
    fn flush(&self);
    fn compact_all(&self);
    /// Whether nothing is being flushed or compacted, and nothing is due.
    fn is_quiet(&self) -> bool;
    /// Writes an sst outside of the tree from rows in key order.
    fn build(&self, rows: &[(Vec<u8>, Vec<u8>)], name: &str);
    /// Takes in a file that was built.
    fn ingest(&self, name: &str);
    /// Sizes and counters.
    fn stats(&self) -> Report;
}

/// CPU time of this process in nanoseconds, all threads.
pub fn cpu_nanos() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let own: u64 = stat.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(0);
    let mut all = 0;
    if let Ok(tasks) = std::fs::read_dir("/proc/self/task") {
        for task in tasks.flatten() {
            let text = std::fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
            all += text.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(0u64);
        }
    }
    own.max(all)
}

fn timed(ops: u64, work: impl FnOnce()) -> Report {
    let cpu = cpu_nanos();
    let start = Instant::now();
    work();
    let wall = start.elapsed().as_nanos() as f64;
    let cpu = cpu_nanos().saturating_sub(cpu) as f64;
    let ops = ops.max(1) as f64;
    Report::from([
        ("ns".into(), wall / ops),
        ("cpu_ns".into(), cpu / ops),
        ("s".into(), wall / 1e9),
    ])
}

/// A reader measured alone, or beside a writer of `rate` puts per second.
fn beside_writer(kv: &dyn Kv, step: &Step, work: impl FnOnce()) {
    let rate = step.number("writer");
    if rate == 0 {
        return work();
    }
    let stop = AtomicBool::new(false);
    let (space, len) = (step.number("space"), step.number("value").max(1) as usize);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let values = Values::new(len);
            let mut rng = Rng::seeded(step.number("seed") ^ 0xabcd);
            let start = Instant::now();
            let mut written = 0u64;
            while !stop.load(Ordering::Relaxed) {
                for _ in 0..16 {
                    let n = rng.below(space);
                    kv.write(&[Op::Put(&key(n), values.get(n))]);
                }
                written += 16;
                let due = Duration::from_nanos(written * 1_000_000_000 / rate);
                if let Some(wait) = due.checked_sub(start.elapsed()) {
                    std::thread::sleep(wait);
                }
            }
        });
        work();
        stop.store(true, Ordering::Relaxed);
    });
}

/// Runs `each(thread, rng)` on several threads.
fn on_threads(step: &Step, each: impl Fn(u64, Rng) + Sync) {
    let threads = step.number("threads").max(1);
    if threads == 1 {
        return each(0, Rng::seeded(step.number("seed")));
    }
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let each = &each;
            let rng = Rng::seeded(step.number("seed") + 7919 * thread);
            scope.spawn(move || each(thread, rng));
        }
    });
}

/// Runs one step.
pub fn run(kv: &dyn Kv, step: &Step) -> Report {
    match step.name.as_str() {
        "fill" => fill(kv, step),
        "delrange_load" => delrange_load(kv, step),
        "gets" => gets(kv, step),
        "scans" => scans(kv, step),
        "alternate" => alternate(kv, step),
        "rangecost" => rangecost(kv, step),
        "ingest" => ingest(kv, step),
        "ycsb" => ycsb(kv, step),
        "leave_l0" => leave_l0(kv, step),
        "count" => Report::from([("rows".into(), kv.scan(&[], usize::MAX) as f64)]),
        "flush" => timed(1, || kv.flush()),
        "compact" => timed(1, || kv.compact_all()),
        "quiet" => timed(1, || {
            while !kv.is_quiet() {
                std::thread::sleep(Duration::from_millis(5));
            }
        }),
        "stats" => kv.stats(),
        other => panic!("unknown step {other}"),
    }
}

/// `n` puts, in key order or at random keys below `space`; `batch` puts per write.
fn fill(kv: &dyn Kv, step: &Step) -> Report {
    let (n, batch) = (step.number("n"), step.number("batch").max(1));
    let space = step.number("space").max(n);
    let values = Values::new(step.number("value") as usize);
    let mut rng = Rng::seeded(step.number("seed"));
    let random = step.text("order") == "random";
    let mut slowest = 0u128;
    let mut report = timed(n, || {
        let mut at = 0;
        while at < n {
            let numbers: Vec<u64> = (at..(at + batch).min(n))
                .map(|i| if random { rng.below(space) } else { i })
                .collect();
            let keys: Vec<[u8; 16]> = numbers.iter().map(|n| key(*n)).collect();
            let ops: Vec<Op<'_>> =
                keys.iter().zip(&numbers).map(|(key, n)| Op::Put(key, values.get(*n))).collect();
            let start = Instant::now();
            kv.write(&ops);
            slowest = slowest.max(start.elapsed().as_micros());
            at += batch;
        }
    });
    report.insert("slowest_ms".into(), slowest as f64 / 1e3);
    report
}

/// The load of RocksDB's DeleteRange article: `keys` random puts; from `start` on, one range of
/// `width` keys is deleted at regular intervals, `ranges` in all. `mode`: by range tombstones, by
/// reading and deleting each row, or not at all.
fn delrange_load(kv: &dyn Kv, step: &Step) -> Report {
    let (keys, start) = (step.number("keys"), step.number("start"));
    let (ranges, width) = (step.number("ranges"), step.number("width"));
    let values = Values::new(step.number("value") as usize);
    let every = (keys - start) / ranges.max(1);
    let mut rng = Rng::seeded(step.number("seed"));
    let mut spots = Rng::seeded(step.number("seed") + 1);
    timed(keys, || {
        for i in 0..keys {
            let n = rng.below(keys);
            kv.write(&[Op::Put(&key(n), values.get(n))]);
            if i >= start && (i - start) % every == 0 {
                let first = spots.below(keys - width);
                let (from, to) = (key(first), key(first + width));
                match step.text("mode") {
                    "range" => kv.write(&[Op::DeleteRange(&from, &to)]),
                    "points" => {
                        for key in kv.keys(&from, &to) {
                            kv.write(&[Op::Delete(&key)]);
                        }
                    }
                    _ => {}
                }
            }
        }
    })
}

fn gets(kv: &dyn Kv, step: &Step) -> Report {
    let (n, space) = (step.number("n"), step.number("space"));
    let found = AtomicU64::new(0);
    let mut report = Report::new();
    beside_writer(kv, step, || {
        report = timed(n, || {
            on_threads(step, |_, mut rng| {
                let mut hits = 0;
                for _ in 0..n / step.number("threads").max(1) {
                    hits += u64::from(kv.get(&key(rng.below(space))));
                }
                found.fetch_add(hits, Ordering::Relaxed);
            });
        });
    });
    report.insert("found".into(), found.into_inner() as f64);
    report
}

fn scans(kv: &dyn Kv, step: &Step) -> Report {
    let (n, space, len) = (step.number("n"), step.number("space"), step.number("len"));
    let rows = AtomicU64::new(0);
    let mut report = Report::new();
    beside_writer(kv, step, || {
        report = timed(n, || {
            on_threads(step, |_, mut rng| {
                let mut seen = 0;
                for _ in 0..n / step.number("threads").max(1) {
                    seen += kv.scan(&key(rng.below(space)), len as usize) as u64;
                }
                rows.fetch_add(seen, Ordering::Relaxed);
            });
        });
    });
    report.insert("rows".into(), rows.into_inner() as f64);
    report
}

/// `n` times: a range delete, then a get of a key. `shape`: `small` spans at random places,
/// `nested` ones that grow, `wide` random ones. Ends early after `millis`, which favours engines
/// that slow down with every tombstone.
fn alternate(kv: &dyn Kv, step: &Step) -> Report {
    let (n, space) = (step.number("n"), step.number("space"));
    let limit = Duration::from_millis(step.number("millis"));
    let mut rng = Rng::seeded(step.number("seed"));
    let (mut found, mut done) = (0u64, 0u64);
    let start = Instant::now();
    let mut report = timed(1, || {
        for i in 0..n {
            if i % 16 == 0 && start.elapsed() > limit {
                break;
            }
            done += 1;
            let (from, to) = match step.text("shape") {
                "nested" => (space / 2 - i, space / 2 + i + 1),
                "wide" => {
                    let a = rng.below(space);
                    (a, a + 1 + rng.below(space - a))
                }
                _ => {
                    let a = rng.below(space - 10);
                    (a, a + 10)
                }
            };
            kv.write(&[Op::DeleteRange(&key(from), &key(to))]);
            found += u64::from(kv.get(&key(rng.below(space))));
        }
    });
    for name in ["ns", "cpu_ns"] {
        if let Some(value) = report.get_mut(name) {
            *value /= done as f64;
        }
    }
    report.insert("done".into(), done as f64);
    report.insert("found".into(), found as f64);
    report
}

/// One range delete over the first `rows` keys, and the first get behind it.
fn rangecost(kv: &dyn Kv, step: &Step) -> Report {
    let rows = step.number("rows");
    timed(1, || {
        kv.write(&[Op::DeleteRange(&key(0), &key(rows))]);
        assert!(!kv.get(&key(rows / 2)), "deleted rows are gone");
    })
}

/// Ssts of `rows` rows each that overlap their neighbours, ingested in random order; every
/// eighth is tiny and spans everything: what an out-of-order restore looks like. Building them is
/// not timed: many machines do that for one that takes them in.
fn ingest(kv: &dyn Kv, step: &Step) -> Report {
    let (files, rows) = (step.number("files"), step.number("rows"));
    let values = Values::new(step.number("value") as usize);
    let mut rng = Rng::seeded(step.number("seed"));
    let mut order: Vec<u64> = (0..files).collect();
    for i in (1..order.len()).rev() {
        order.swap(i, rng.below(i as u64 + 1) as usize);
    }
    let space = files * rows;
    let (mut slowest, mut user) = (0u128, 0u64);
    let (mut most_files, mut most_sublevels, mut most_amp) = (0f64, 0f64, 0f64);
    for (turn, file) in order.iter().enumerate() {
        let numbers: Vec<u64> = if turn % 8 == 7 {
            let mut wide: Vec<u64> = (0..8).map(|i| i * (space / 8) + rng.below(9)).collect();
            wide.push(space - 1);
            wide
        } else {
            // Twice as wide as its rows need: neighbours overlap.
            let first = (file * rows).min(space - 2 * rows);
            (0..rows).map(|i| first + 2 * i + (file & 1)).collect()
        };
        let rows: Vec<(Vec<u8>, Vec<u8>)> =
            numbers.iter().map(|n| (key(*n).to_vec(), values.get(*n).to_vec())).collect();
        user += rows.iter().map(|(k, v)| (k.len() + v.len()) as u64).sum::<u64>();
        kv.build(&rows, &format!("ingest-{turn}.sst"));
    }
    let mut report = timed(files, || {
        for turn in 0..order.len() {
            let start = Instant::now();
            kv.ingest(&format!("ingest-{turn}.sst"));
            slowest = slowest.max(start.elapsed().as_micros());
            if turn % 16 == 15 {
                let stats = kv.stats();
                let get = |name: &str| stats.get(name).copied().unwrap_or(0.0);
                most_files = most_files.max(get("l0_files"));
                most_sublevels = most_sublevels.max(get("l0_sublevels"));
                most_amp = most_amp.max(get("read_amp"));
            }
        }
    });
    report.insert("slowest_ms".into(), slowest as f64 / 1e3);
    report.insert("user_bytes".into(), user as f64);
    report.insert("most_l0_files".into(), most_files);
    report.insert("most_sublevels".into(), most_sublevels);
    report.insert("most_read_amp".into(), most_amp);
    report
}

/// YCSB B and C: `read` percent zipfian reads, the rest puts, for `millis`. A read positions a new
/// iterator at the key and reads the row there; with `point=1` it is a get. What was written in
/// the meantime is compared with what users wrote.
fn ycsb(kv: &dyn Kv, step: &Step) -> Report {
    let (space, read) = (step.number("space"), step.number("read"));
    let values = Values::new(step.number("value") as usize);
    let zipf = Zipf::new(space);
    let (uniform, point) = (step.text("dist") == "uniform", step.number("point") == 1);
    let limit = Duration::from_millis(step.number("millis"));
    let (ops, puts, cpu) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let before = kv.stats();
    let start = Instant::now();
    let amps = beside_sampler(kv, || {
        on_threads(step, |_, mut rng| {
            let (mut done, mut written) = (0u64, 0u64);
            let cpu_before = thread_cpu_nanos();
            while start.elapsed() < limit {
                for _ in 0..64 {
                    let n = if uniform { rng.below(space) } else { zipf.next(&mut rng) };
                    if rng.below(100) >= read {
                        kv.write(&[Op::Put(&key(n), values.get(n))]);
                        written += 1;
                    } else if point {
                        kv.get(&key(n));
                    } else {
                        kv.scan(&key(n), 1);
                    }
                }
                done += 64;
            }
            ops.fetch_add(done, Ordering::Relaxed);
            puts.fetch_add(written, Ordering::Relaxed);
            cpu.fetch_add(thread_cpu_nanos() - cpu_before, Ordering::Relaxed);
        });
    });
    let elapsed = start.elapsed().as_secs_f64();
    let after = kv.stats();
    let ops = ops.into_inner() as f64;
    let user = puts.into_inner() as f64 * (16 + step.number("value")) as f64;
    let written = after["bytes_written"] - before["bytes_written"];
    Report::from([
        ("ops_per_s".into(), ops / elapsed),
        ("cpu_ns".into(), cpu.into_inner() as f64 / ops),
        ("ops".into(), ops),
        ("read_amp".into(), amps.iter().sum::<f64>() / amps.len().max(1) as f64),
        ("bytes_written".into(), written),
        ("write_amp".into(), if user > 0.0 { written / user } else { 0.0 }),
    ])
}

/// CPU time of this thread.
fn thread_cpu_nanos() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(0)
}

/// Does `work`, and meanwhile notes the read amplification four times a second.
fn beside_sampler(kv: &dyn Kv, work: impl FnOnce()) -> Vec<f64> {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let sampler = scope.spawn(|| {
            let mut amps = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(250));
                amps.push(kv.stats()["read_amp"]);
            }
            amps
        });
        work();
        stop.store(true, Ordering::Relaxed);
        sampler.join().expect("the sampler does not panic")
    })
}

/// Overwrites `n` random rows and flushes them, until there is something in L0 although nothing is
/// being compacted, so that every engine ends with a run there that it sees no need to remove. At
/// most four times: some engines leave nothing there.
fn leave_l0(kv: &dyn Kv, step: &Step) -> Report {
    let mut turns = 0u32;
    for turn in 0..4 {
        let seed = (step.number("seed") + turn).to_string();
        fill(kv, &step.with("order", "random").with("seed", &seed));
        kv.flush();
        wait_until_quiet(kv);
        turns += 1;
        if kv.stats()["l0_files"] > 0.0 {
            break;
        }
    }
    Report::from([("turns".into(), f64::from(turns))])
}

/// Waits until nothing runs and nothing is due.
fn wait_until_quiet(kv: &dyn Kv) {
    let mut calm = 0;
    while calm < 3 {
        calm = if kv.is_quiet() { calm + 1 } else { 0 };
        std::thread::sleep(Duration::from_millis(5));
    }
}
