//! The same workloads on our engine, RocksDB and Pebble, alternating in one run; prints medians
//! and ratios. See README.md.

mod braid;
mod data;
mod process;
mod report;
#[cfg(feature = "rocksdb")]
mod rocks;
mod run;
mod step;
mod workloads;

use std::path::PathBuf;

use report::Results;
use run::Kv;
use step::{Report, Step};
use workloads::{Variant, Workload};

struct Arguments {
    workloads: Vec<String>,
    engines: Vec<String>,
    rounds: usize,
    scale: f64,
    pebble: PathBuf,
    dir: PathBuf,
    write: Option<PathBuf>,
}

fn arguments() -> Arguments {
    let mut out = Arguments {
        workloads: Vec::new(),
        engines: ["braid", "rocksdb", "pebble"].map(String::from).to_vec(),
        rounds: 3,
        scale: 1.0,
        pebble: PathBuf::from("pebble/pebble"),
        dir: std::env::temp_dir().join("bench-compare"),
        write: None,
    };
    let mut words = std::env::args().skip(1);
    let list = |text: String| text.split(',').map(String::from).collect();
    while let Some(word) = words.next() {
        let mut value = || words.next().unwrap_or_else(|| panic!("{word} needs a value"));
        match word.as_str() {
            "--workloads" => out.workloads = list(value()),
            "--engines" => out.engines = list(value()),
            "--rounds" => out.rounds = value().parse().expect("--rounds is a number"),
            "--scale" => out.scale = value().parse().expect("--scale is a number"),
            "--pebble" => out.pebble = value().into(),
            "--dir" => out.dir = value().into(),
            "--write" => out.write = Some(value().into()),
            other => panic!("unknown argument {other}; see README.md"),
        }
    }
    out
}

enum Engine {
    Here(Box<dyn Kv>),
    There(process::Process),
}

fn open(arguments: &Arguments, name: &str, options: &str) -> Engine {
    let dir = arguments.dir.join(name);
    let _nothing_there = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).expect("the directory can be made");
    // The same for everybody: 1 GiB of cache (everything fits), 64 MiB memtables unless the
    // workload says otherwise, LZ4, bloom filters of 10 bits per key, two background jobs.
    let memtable = if options.contains("memtable=") { "" } else { "memtable=67108864" };
    let line =
        format!("open dir={} cache={} {memtable} jobs=2 {options}", dir.display(), 1u64 << 30,);
    let step = Step::parse(&line);
    match name {
        "braid" => Engine::Here(Box::new(braid::Braid::open(&dir, &step))),
        #[cfg(feature = "rocksdb")]
        "rocksdb" => Engine::Here(Box::new(rocks::Rocks::open(&dir, &step))),
        "pebble" => {
            let mut process = process::Process::start(&arguments.pebble);
            process.run(&step);
            Engine::There(process)
        }
        other => panic!("unknown engine {other}"),
    }
}

fn run_variant(arguments: &Arguments, engine: &str, variant: &Variant) -> Vec<(String, Report)> {
    let mut opened = open(arguments, engine, &variant.options);
    let mut out = Vec::new();
    for (label, line) in &variant.steps {
        let step = Step::parse(line);
        let report = match &mut opened {
            Engine::Here(kv) => run::run(&**kv, &step),
            Engine::There(process) => process.run(&step),
        };
        if !label.is_empty() {
            let shown: Vec<String> =
                report.iter().map(|(name, value)| format!("{name}={value:.1}")).collect();
            eprintln!("  {engine:<8} {:<20} {label:<30} {}", variant.name, shown.join(" "));
            out.push((label.clone(), report));
        }
    }
    drop(opened);
    let _left_behind = std::fs::remove_dir_all(arguments.dir.join(engine));
    out
}

fn run_workload(arguments: &Arguments, workload: &Workload) -> Results {
    let mut results = Results::new(workload.name, workload.about);
    for round in 0..arguments.rounds {
        eprintln!("{} round {}", workload.name, round + 1);
        for variant in &workload.variants {
            for engine in &arguments.engines {
                if !variant.only.is_empty() && !variant.only.contains(&engine.as_str()) {
                    continue;
                }
                for (label, report) in run_variant(arguments, engine, variant) {
                    results.add(&variant.name, &label, engine, report);
                }
            }
        }
    }
    results
}

fn main() {
    let arguments = arguments();
    let mut text = String::new();
    for workload in workloads::all(arguments.scale) {
        let wanted = arguments.workloads.is_empty()
            || arguments.workloads.iter().any(|name| name == workload.name);
        if wanted {
            let part = run_workload(&arguments, &workload).to_string();
            println!("{part}");
            text.push_str(&part);
        }
    }
    if let Some(path) = &arguments.write {
        report::write_between_marks(path, &text);
    }
}
