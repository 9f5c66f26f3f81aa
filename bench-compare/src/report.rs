//! Medians over the rounds, as Markdown tables with ratios.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use crate::step::Report;

/// What a workload gave.
pub struct Results {
    name: &'static str,
    about: &'static str,
    /// In order of their first appearance.
    rows: Vec<(String, String)>,
    samples: BTreeMap<(String, String, String, String), Vec<f64>>,
}

/// What is shown of a step, in this order, as far as it is there. Names that end in `ns` or `s`
/// are times: less is better.
const SHOWN: [&str; 13] = [
    "ns",
    "s",
    "ops_per_s",
    "slowest_ms",
    "most_l0_files",
    "most_sublevels",
    "most_read_amp",
    "read_amp",
    "l0_files",
    "bytes_written",
    "write_amp",
    "user_bytes",
    "done",
];

impl Results {
    pub fn new(name: &'static str, about: &'static str) -> Results {
        Results { name, about, rows: Vec::new(), samples: BTreeMap::new() }
    }

    pub fn add(&mut self, variant: &str, label: &str, engine: &str, report: Report) {
        let row = (variant.to_string(), label.to_string());
        if !self.rows.contains(&row) {
            self.rows.push(row);
        }
        for (name, value) in report {
            let key = (variant.to_string(), label.to_string(), name, engine.to_string());
            self.samples.entry(key).or_default().push(value);
        }
    }

    fn median(&self, row: &(String, String), name: &str, engine: &str) -> Option<f64> {
        let key = (row.0.clone(), row.1.clone(), name.to_string(), engine.to_string());
        let mut values = self.samples.get(&key)?.clone();
        values.sort_by(f64::total_cmp);
        Some(values[values.len() / 2])
    }
}

fn number(value: f64) -> String {
    match value {
        v if v >= 10_000.0 => format!("{:.0}", v),
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 1.0 => format!("{v:.2}"),
        v => format!("{v:.4}"),
    }
}

impl fmt::Display for Results {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "### {}\n\n{}.\n", self.name, self.about)?;
        writeln!(f, "| case | what | BraidDB | RocksDB | Pebble | best peer / ours |")?;
        writeln!(f, "|---|---|---|---|---|---|")?;
        for row in &self.rows {
            for name in SHOWN {
                let ours = self.median(row, name, "braid");
                let peers = ["rocksdb", "pebble"].map(|peer| self.median(row, name, peer));
                if ours.is_none() && peers.iter().all(Option::is_none) {
                    continue;
                }
                // The time of one operation says it all; totals only where there is just one.
                if name == "s" && self.median(row, "ns", "braid").is_some() && row.1 != "load" {
                    let total = ["until quiet", "accept"].contains(&row.1.as_str());
                    if !total {
                        continue;
                    }
                }
                let show = |value: Option<f64>| value.map_or("".into(), number);
                let more_is_better = name == "ops_per_s";
                let best = peers
                    .iter()
                    .flatten()
                    .copied()
                    .reduce(|a, b| if more_is_better { a.max(b) } else { a.min(b) });
                let ratio = match (ours, best) {
                    (Some(ours), Some(best)) if more_is_better => Some(ours / best),
                    (Some(ours), Some(best)) if ours > 0.0 => Some(best / ours),
                    _ => None,
                };
                writeln!(
                    f,
                    "| {}: {} | {name} | {} | {} | {} | {} |",
                    row.0,
                    row.1,
                    show(ours),
                    show(peers[0]),
                    show(peers[1]),
                    ratio.map_or(String::new(), |ratio| format!("{ratio:.2}")),
                )?;
            }
        }
        writeln!(f)
    }
}

/// Replaces what is between the marks of a Markdown file.
pub fn write_between_marks(path: &Path, text: &str) {
    const START: &str = "<!-- bench-compare: start -->";
    const END: &str = "<!-- bench-compare: end -->";
    let old = std::fs::read_to_string(path).expect("the file can be read");
    let (head, rest) = old.split_once(START).expect("the file has the start mark");
    let (_, tail) = rest.split_once(END).expect("the file has the end mark");
    let new = format!("{head}{START}\n\n{}\n\n{END}{tail}", text.trim_end());
    std::fs::write(path, new).expect("the file can be written");
}
