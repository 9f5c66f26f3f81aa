//! Families side by side, erased and written again, over all layers: the way over tombstones that
//! touch never passes a row that lives, whatever lies above, below or between.
//!
//! `BRAID_SEEDS=5000 cargo test --release -p braid-lsm --test gap` is the long form.

#[allow(dead_code)]
mod support;

use std::sync::Arc;

use braid_env::fs::MemFs;
use braid_env::random::Random;
use braid_env::tasks::SeededTasks;
use braid_lsm::{Batch, CommitTs, Db, Durability, KeySpan, ScanOptions};
use support::options;
use support::oracle::{Call, Oracle, Written};
use support::workload::open_on;

const FAMILIES: u64 = 40;

fn family(n: u64) -> Vec<u8> {
    format!("f{n:02}").into_bytes()
}

fn call(random: &mut Random) -> Call {
    let n = random.below(FAMILIES);
    match random.below(5) {
        // Mostly one family, so that neighbours touch and differ in their time.
        0..=2 => Call::DeleteSpan(family(n), family(n + 1 + random.below(4) / 3)),
        3 => Call::Delete([family(n), vec![b'0' + random.below(3) as u8]].concat()),
        _ => {
            let key = [family(n), vec![b'0' + random.below(3) as u8]].concat();
            Call::Put(key, vec![7; 1 + random.below(30) as usize])
        }
    }
}

fn apply(db: &Db, written: &Written) {
    let mut batch = Batch::at(CommitTs(written.ts));
    for call in &written.calls {
        match call {
            Call::Put(key, value) => batch.put(key, value),
            Call::Delete(key) => batch.delete(key),
            Call::DeleteSpan(start, end) => batch.delete_span(start, end),
            Call::Excise(..) => unreachable!("nothing is excised"),
        }
    }
    db.write(batch, Durability::Buffered).unwrap();
}

/// A scan that jumps now and then; what it hands out is compared row by row.
fn check(db: &Db, oracle: &Oracle, random: &mut Random, now: u64, words: &str) {
    let ts = if random.chance(1, 2) { u64::MAX - 1 } else { random.between(1, now) };
    let (from, to) = (random.below(FAMILIES), random.below(FAMILIES + 2));
    let span = KeySpan::new(family(from.min(to)), family(from.max(to)));
    let mut expected = oracle.scan(&span.start, &span.end, ts, oracle.batches());
    let reverse = random.chance(1, 4);
    if reverse {
        expected.reverse();
    }
    let view = db.view(CommitTs(ts)).unwrap();
    let options = ScanOptions { reverse, ..ScanOptions::default() };
    let mut scan = view.scan(span, options).unwrap();
    let mut at = 0;
    let jumps = random.chance(1, 2);
    loop {
        if jumps && random.chance(1, 3) {
            let to = family(random.below(FAMILIES));
            scan.seek(&to).unwrap();
            let passed =
                |key: &[u8]| if reverse { key >= to.as_slice() } else { key < to.as_slice() };
            while expected.get(at).is_some_and(|(key, ..)| passed(key)) {
                at += 1;
            }
        }
        let row = scan.next_row().unwrap().map(|row| (row.key.to_vec(), row.ts.0));
        let wanted = expected.get(at).map(|(key, _, ts)| (key.clone(), *ts));
        assert_eq!(row, wanted, "{words}, at {ts}, reverse {reverse}");
        if row.is_none() {
            return;
        }
        at += 1;
    }
}

fn run(seed: u64) {
    let mut random = Random::seeded(seed);
    let tasks = Arc::new(SeededTasks::new(seed));
    let set = seed as usize % options::SETS.len();
    let db = open_on(Arc::new(MemFs::new()), options::set(set, tasks.clone())).unwrap();
    let mut oracle = Oracle::default();
    for ts in 1..=250 {
        let calls = (0..1 + random.below(2)).map(|_| call(&mut random)).collect();
        let written = Written { ts, calls };
        apply(&db, &written);
        oracle.write(written);
        if random.chance(1, 25) {
            db.flush().unwrap();
        }
        if random.chance(1, 60) {
            db.compact_span(&KeySpan::all()).unwrap();
        }
        if random.chance(1, 3) {
            tasks.run_one();
        }
        if random.chance(1, 3) {
            check(&db, &oracle, &mut random, ts, &format!("seed {seed}, after {ts}"));
        }
    }
}

#[test]
fn what_lives_between_tombstones_is_found() {
    for seed in support::seeds(150) {
        run(seed);
    }
}
