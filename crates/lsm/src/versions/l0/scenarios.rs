//! Drawings of L0 and what is picked from them: `testscripts/l0/*.txt`, and random layouts.
//!
//! A script is a list of cases, separated by empty lines: lines that build a layout, one command,
//! `----`, and what it prints. `BRAID_REWRITE=1 cargo test -p braid-lsm scenarios` writes the
//! answers anew; look at the difference.
//!
//! ```text
//!   sst 3 c k        sst number 3 with the keys from c to k, arrival 3, size 10
//!   sst 4 a c at=3   its arrival;  size=5  its size
//!   base 9 a f       an sst of the base level
//!   busy 3           it is an input of a running job
//!   draw | split N | base DEPTH | intra DEPTH | moves
//! ```

use std::collections::HashSet;
use std::sync::Arc;

use braid_env::fs::MemFs;
use braid_env::random::Random;
use bytes::Bytes;

use super::*;
use crate::cache::BlockCache;
use crate::key::KeySpan;
use crate::sstable::Properties;
use crate::versions::{SstEnv, SstFacts, SstMeta};

type Runs = Vec<Vec<Arc<SstMeta>>>;

fn sst(file_no: u64, start: &str, end: &str, arrival: u64, size: u64) -> Arc<SstMeta> {
    let env = SstEnv {
        fs: Arc::new(MemFs::new()),
        dir: "/".into(),
        cache: Arc::new(BlockCache::new(1)),
        l0_sublevels: true,
    };
    let properties = Properties {
        start: Bytes::copy_from_slice(start.as_bytes()),
        end: Bytes::copy_from_slice(end.as_bytes()),
        arrival_low: arrival,
        arrival_high: arrival,
        rows: 1,
        ..Properties::default()
    };
    let facts = SstFacts::of(file_no, 0, size, &properties);
    Arc::new(SstMeta::new(&facts, &env))
}

fn show(runs: &Runs) -> String {
    let run = |run: &Vec<Arc<SstMeta>>| {
        let names: Vec<String> = run.iter().map(|sst| sst.file_no.to_string()).collect();
        names.join(" ")
    };
    runs.iter().map(run).collect::<Vec<_>>().join(" / ")
}

#[derive(Default)]
struct Case {
    files: Vec<Arc<SstMeta>>,
    base: Vec<Arc<SstMeta>>,
    busy: HashSet<u64>,
}

impl Case {
    fn line(&mut self, line: &str) -> Option<String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |text: &str| text.parse::<u64>().expect("a number");
        let option = |name: &str, default: u64| {
            let found = words.iter().find_map(|word| word.strip_prefix(name));
            found.map_or(default, number)
        };
        let l0 = || Sublevels::build(self.files.clone(), false);
        let busy = |sst: &SstMeta| self.busy.contains(&sst.file_no);
        let traffic = Traffic { busy: &busy, blocked: &|_, _| false };
        let limits = Limits { soft_bytes: 60, hard_bytes: 100 };
        let picked = |runs: Option<Runs>| Some(runs.map_or("nothing".into(), |runs| show(&runs)));
        match words[0] {
            "sst" => {
                let name = number(words[1]);
                let (arrival, size) = (option("at=", name), option("size=", 10));
                self.files.push(sst(name, words[2], words[3], arrival, size));
                None
            }
            "base" if words.len() == 4 => {
                self.base.push(sst(number(words[1]), words[2], words[3], 0, 10));
                None
            }
            "busy" => {
                self.busy.extend(words[1..].iter().map(|word| number(word)));
                None
            }
            "draw" => Some(l0().drawing().trim_end().to_string()),
            "split" => {
                let keys = l0().split_keys(number(words[1]));
                let keys: Vec<String> = keys.iter().map(|k| k.escape_ascii().to_string()).collect();
                Some(if keys.is_empty() { "nowhere".into() } else { keys.join(" ") })
            }
            "base" => {
                let depth = number(words[1]) as usize;
                picked(pick_base(&l0(), 1, &self.base, &traffic, depth, limits))
            }
            "intra" => picked(pick_intra(&l0(), &traffic, number(words[1]) as usize, limits)),
            "moves" => Some(show(&vec![pick_moves(&l0(), 1, &self.base, &traffic, &|_| true, 9)])),
            other => panic!("unknown line: {other}"),
        }
    }
}

#[test]
fn scripts_print_what_they_did() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/testscripts/l0");
    braid_script::check(
        folder,
        || (),
        |(), lines| {
            let mut case = Case::default();
            lines.iter().fold(String::new(), |answer, line| case.line(line).unwrap_or(answer))
        },
    );
}

/// Flushes of one to three disjoint ssts each.
fn random_flush(random: &mut Random, arrival: u64, next: &mut u64) -> Vec<Arc<SstMeta>> {
    let mut bounds: Vec<u64> = (0..6).map(|_| random.below(40)).collect();
    bounds.sort_unstable();
    let mut files = Vec::new();
    for pair in bounds.chunks(2).filter(|pair| pair[0] < pair[1]) {
        let key = |n: u64| format!("{n:02}");
        *next += 1;
        files.push(sst(*next, &key(pair[0]), &key(pair[1]), arrival, 1 + random.below(20)));
    }
    files
}

fn overlap(a: &SstMeta, b: &SstMeta) -> bool {
    a.bounds().overlaps(b.bounds())
}

/// What must hold of a set that is taken out of L0; `cap`: it stays in L0, at this arrival.
fn check_taken(l0: &Sublevels, runs: &Runs, cap: Option<u64>) {
    let taken: HashSet<u64> = runs.iter().flatten().map(|sst| sst.file_no).collect();
    for left in l0.files().iter().filter(|placed| !taken.contains(&placed.sst.file_no)) {
        for input in runs.iter().flatten().filter(|sst| sst.level == 0) {
            if !overlap(&left.sst, input) {
                continue;
            }
            let newer = left.sst.arrival_high > input.arrival_high;
            let above_cap = cap.is_some_and(|cap| left.sst.arrival_high > cap);
            let fine = if cap.is_some() { !newer || above_cap } else { newer };
            let (left, input) = (left.sst.file_no, input.file_no);
            assert!(fine, "{left} cannot be parted from {input}\n{}", l0.drawing());
        }
    }
}

#[test]
fn random_layouts_are_the_same_however_they_came_about_and_picks_are_closed() {
    let (mut picks, mut merges) = (0, 0);
    for seed in 0..300 {
        let mut random = Random::seeded(seed);
        let mut next = 0;
        let mut files = Vec::new();
        let mut l0 = Sublevels::build(Vec::new(), false);
        for arrival in 1..=random.between(2, 14) {
            let new = random_flush(&mut random, arrival, &mut next);
            files.extend(new.iter().cloned());
            l0 = l0.with_newer(&new).unwrap_or_else(|| panic!("seed {seed}: newer than all"));
        }
        let again = Sublevels::build(files.clone(), false);
        assert_eq!(l0.drawing(), again.drawing(), "seed {seed}");
        assert_eq!(l0.split_keys(7), again.split_keys(7), "seed {seed}");
        l0.check().unwrap();
        let stacks = |l0: &Sublevels| -> Vec<Vec<usize>> {
            (0..l0.interval_count()).map(|interval| l0.stack(interval).to_vec()).collect()
        };
        assert_eq!(stacks(&l0), stacks(&again), "seed {seed}");
        let (from, to) = (random.below(40), random.below(40));
        let span = KeySpan::new(format!("{:02}", from.min(to)), format!("{:02}", from.max(to) + 1));
        let mut over: Vec<u64> = l0.over(&span).iter().map(|sst| sst.file_no).collect();
        let mut expected: Vec<u64> = files
            .iter()
            .filter(|sst| sst.bounds().overlaps(&span))
            .map(|sst| sst.file_no)
            .collect();
        over.sort_unstable();
        expected.sort_unstable();
        assert_eq!(over, expected, "seed {seed}");
        let busy: HashSet<u64> = (0..=next).filter(|_| random.chance(1, 8)).collect();
        let is_busy = |sst: &SstMeta| busy.contains(&sst.file_no);
        let traffic = Traffic { busy: &is_busy, blocked: &|_, _| false };
        let limits = Limits { soft_bytes: 50, hard_bytes: 120 };
        let key = |n: u64| format!("{n:02}");
        let base: Vec<_> =
            (0..10).map(|n| sst(1_000 + n, &key(n * 4), &key(n * 4 + 3), 0, 10)).collect();
        if let Some(mut runs) = pick_base(&l0, 1, &base, &traffic, 2, limits) {
            picks += 1;
            runs.retain(|run| run[0].file_no < 1_000);
            check_taken(&l0, &runs, None);
            assert!(runs.iter().flatten().all(|sst| !is_busy(sst)), "seed {seed}");
        }
        if let Some(runs) = pick_intra(&l0, &traffic, 3, limits) {
            merges += 1;
            let cap = runs.iter().flatten().map(|sst| sst.arrival_high).max();
            check_taken(&l0, &runs, cap);
            let mut at = KeySpan::new("", "");
            let mut parts: Vec<KeySpan> =
                runs.iter().flatten().map(|sst| sst.bounds().clone()).collect();
            parts.sort_by(|a, b| a.start.cmp(&b.start));
            for part in parts {
                assert!(at.end.is_empty() || part.start <= at.end, "seed {seed}: a hole");
                at.end = at.end.max(part.end);
            }
        }
    }
    assert!(picks > 50 && merges > 50, "{picks} {merges}");
}
