//! The workloads: which steps, in which order, and which numbers of them count.
//!
//! A line of a workload is `label: step`; only labelled steps are reported.

/// One workload.
pub struct Workload {
    pub name: &'static str,
    pub about: &'static str,
    /// Variants of the engine options or of the data, each run on a fresh store.
    pub variants: Vec<Variant>,
}

/// One fresh store and what is done to it.
pub struct Variant {
    pub name: String,
    /// Added to the `open` step.
    pub options: String,
    /// Engines it makes sense for; empty: all.
    pub only: &'static [&'static str],
    pub steps: Vec<(String, String)>,
}

fn variant(name: &str, options: &str, steps: &[(&str, String)]) -> Variant {
    let steps = steps.iter().map(|(label, step)| (label.to_string(), step.clone())).collect();
    Variant { name: name.into(), options: options.into(), only: &[], steps }
}

fn quiet() -> (&'static str, String) {
    ("", "quiet".to_string())
}

/// All workloads. `scale` is 1.0 for the published figures.
pub fn all(scale: f64) -> Vec<Workload> {
    let n = |full: u64| ((full as f64 * scale) as u64).max(1_000);
    vec![
        delrange(&n),
        memtable_tombstones(&n),
        range_cost(&n),
        ingest(scale),
        fills(&n),
        ycsb_c(&n, scale),
        ycsb_b(&n, scale),
        reads(&n),
    ]
}

fn delrange(n: &dyn Fn(u64) -> u64) -> Workload {
    let (keys, start) = (n(5_000_000), n(4_500_000));
    let ranges = ((keys - start) / 50).max(1);
    // Ours keeps all tombstones and versions; without history it forgets them as peers do.
    let kept = ["range", "points", "none"].map(|mode| (mode, mode.to_string(), "history=1"));
    let dropped = ["range", "points"].map(|mode| (mode, format!("{mode}, no history"), ""));
    let variants = kept
        .into_iter()
        .chain(dropped)
        .map(|(mode, name, options)| {
            let load = format!(
                "delrange_load keys={keys} start={start} ranges={ranges} width=100 value=100 \
                 seed=1 mode={mode}"
            );
            let (gets, short, long) = (n(1_000_000), n(300_000), n(10_000));
            let get = format!("gets n={gets} space={keys} seed=2");
            let seek = |rows: u64, count: u64| {
                format!("scans n={count} len={rows} space={keys} seed=3 value=100")
            };
            let mut variant = variant(
                &name,
                options,
                &[
                    ("load", load),
                    // Otherwise the tombstones would lie in a memtable still.
                    ("", "flush".into()),
                    quiet(),
                    ("", format!("gets n={gets} space={keys} seed=9")),
                    // Compactions for these reads should not run beside the measured ones.
                    quiet(),
                    ("get", get.clone()),
                    ("seek + 10", seek(10, short)),
                    ("seek + 1000", seek(1_000, long)),
                    ("get, beside a writer", format!("{get} writer=10000 value=100")),
                    ("seek + 10, beside a writer", seek(10, short) + " writer=10000"),
                    ("seek + 1000, beside a writer", seek(1_000, long) + " writer=10000"),
                ],
            );
            if options.is_empty() {
                variant.only = &["braid"];
            }
            variant
        })
        .collect();
    Workload {
        name: "delrange",
        about: "5 M keys, 10,000 range deletes of 100 keys after the first 4.5 M, then reads",
        variants,
    }
}

fn memtable_tombstones(n: &dyn Fn(u64) -> u64) -> Workload {
    let variants = ["small", "nested", "wide"]
        .into_iter()
        .map(|shape| {
            variant(
                shape,
                "",
                &[
                    ("", "fill n=100000 order=seq value=100 seed=1 batch=100".into()),
                    (
                        "range delete + get",
                        format!(
                            "alternate n={} space=100000 shape={shape} seed=2 millis=30000",
                            n(10_000)
                        ),
                    ),
                ],
            )
        })
        .collect();
    Workload {
        name: "alternate",
        about: "10,000 times a range delete, then a get, all in the memtable (at most 30 s)",
        variants,
    }
}

fn range_cost(n: &dyn Fn(u64) -> u64) -> Workload {
    let variants = [10u64, 1_000, 100_000, 1_000_000]
        .into_iter()
        .map(|rows| {
            variant(
                &format!("{rows} rows"),
                "",
                &[
                    ("", format!("fill n={} order=seq value=100 seed=1 batch=100", n(1_000_000))),
                    quiet(),
                    ("one range delete + get", format!("rangecost rows={rows}")),
                ],
            )
        })
        .collect();
    Workload { name: "rangecost", about: "one range delete over so many rows", variants }
}

fn ingest(scale: f64) -> Workload {
    let files = ((400.0 * scale) as u64).max(32);
    let steps = |options: &str, name: &str| {
        variant(
            name,
            options,
            &[
                ("accept", format!("ingest files={files} rows=10000 value=100 seed=1")),
                ("until quiet", "quiet".into()),
                ("after", "stats".into()),
            ],
        )
    };
    let mut off = steps("l0_sublevels=0", "sublevels off");
    off.only = &["braid"];
    Workload {
        name: "ingest",
        about: "overlapping ssts of 10,000 rows out of order, every eighth tiny and very wide",
        variants: vec![steps("", "as it is"), off],
    }
}

fn fills(n: &dyn Fn(u64) -> u64) -> Workload {
    let rows = n(3_000_000);
    let variants = ["random", "seq"]
        .into_iter()
        .map(|order| {
            variant(
                &format!("fill{order}"),
                "",
                &[
                    ("put", format!("fill n={rows} order={order} value=100 seed=1")),
                    ("until quiet", "quiet".into()),
                    ("after", "stats".into()),
                ],
            )
        })
        .collect();
    Workload { name: "fill", about: "3 M single puts of 100 bytes, unsynced", variants }
}

/// Sizes of memtable, base level and files for a store of `scale`: 1/32 of the usual ones, so that
/// half a gigabyte of rows has a tree of the shape that a store of 16 GB usually has.
fn small_parts(scale: f64) -> String {
    let part = |full: f64| (full * scale.clamp(0.1, 1.0)) as u64;
    let (memtable, file) = (part(2_097_152.0), part(262_144.0));
    format!("memtable={memtable} base={memtable} file={file}")
}

/// Leaves an untidy tree: all rows in order, then as many random overwrites again by half, and
/// one last flush. Everybody is quiet then, and every level holds its share.
fn untidy(rows: u64, value: u64) -> Vec<(&'static str, String)> {
    let (over, last) = (rows / 2, rows / 250);
    vec![
        ("", format!("fill n={rows} order=seq value={value} seed=1 batch=100")),
        ("", "compact".into()),
        ("", format!("fill n={over} order=random space={rows} value={value} seed=5")),
        ("", "flush".into()),
        quiet(),
        ("", format!("leave_l0 n={last} space={rows} value={value} seed=6 batch=100")),
        ("before", "stats".into()),
    ]
}

/// As it is and, for our engine, with read-triggered compaction off and on an already tidy tree.
fn read_triggered(
    scale: f64,
    load: Vec<(&'static str, String)>,
    steps: &[(&'static str, String)],
) -> Vec<Variant> {
    let make = |name: &str, on: u64, tidy: bool| {
        let mut all = load.clone();
        if tidy {
            all.extend([("", "compact".to_string()), quiet()]);
        }
        all.extend(steps.iter().cloned());
        variant(name, &format!("read_triggered={on} {}", small_parts(scale)), &all)
    };
    let mut off = make("read-triggered off", 0, false);
    let mut tidy = make("the limit: a compacted tree", 0, true);
    (off.only, tidy.only) = (&["braid"], &["braid"]);
    vec![make("as it is", 1, false), off, tidy]
}

fn ycsb_c(n: &dyn Fn(u64) -> u64, scale: f64) -> Workload {
    let rows = n(500_000);
    let millis = ((20_000.0 * scale) as u64).max(2_000);
    let read = |more: &str| {
        format!("ycsb read=100 space={rows} value=1024 threads=2 millis={millis} {more}")
    };
    let steps = [
        ("the first time", read("seed=2")),
        ("ycsb-c", read("seed=3")),
        ("ycsb-c with gets", read("seed=4 point=1")),
        ("after", "stats".into()),
    ];
    Workload {
        name: "ycsb-c",
        about: "1 KB values, reads only, each a seek; after a load that leaves an untidy tree",
        variants: read_triggered(scale, untidy(rows, 1_024), &steps),
    }
}

fn ycsb_b(n: &dyn Fn(u64) -> u64, scale: f64) -> Workload {
    let rows = n(2_000_000);
    let millis = ((60_000.0 * scale) as u64).max(2_000);
    let steps = [
        ("ycsb-b", format!("ycsb read=95 space={rows} value=64 seed=3 threads=2 millis={millis}")),
        ("after", "stats".into()),
    ];
    Workload {
        name: "ycsb-b",
        about: "64 byte values, 95 % reads, each a seek; after a load that leaves an untidy tree",
        variants: read_triggered(scale, untidy(rows, 64), &steps),
    }
}

fn reads(n: &dyn Fn(u64) -> u64) -> Workload {
    let keys = n(5_000_000);
    let (gets, seeks) = (n(2_000_000), n(500_000));
    Workload {
        name: "reads",
        about: "5 M keys filled at random; two threads",
        variants: vec![variant(
            "random fill",
            "",
            &[
                ("", format!("fill n={keys} order=random space={keys} value=100 seed=1")),
                quiet(),
                ("", format!("gets n={gets} space={keys} seed=9 threads=2")),
                ("readrandom", format!("gets n={gets} space={keys} seed=2 threads=2")),
                ("seekrandom", format!("scans n={seeks} len=1 space={keys} seed=3 threads=2")),
                (
                    "readwhilewriting",
                    format!("gets n={gets} space={keys} seed=2 writer=20000 value=100"),
                ),
            ],
        )],
    }
}
