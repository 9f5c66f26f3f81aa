//! The crash campaign: power fails at a random moment, also inside a flush, a compaction or a
//! recovery, an ingest or an excise; what comes back must be a prefix of the history.
//!
//! ```text
//!   batches     1 2 3 4 5 6 7 8 9
//!               ------------|              waited for: durable
//!                             n            recovered: everything up to n, nothing after it
//!               synced <= n <= all, no hole
//! ```
//!
//! Unsynced writes are kept, lost or torn, names likewise, each on its own. Every batch also sets
//! the key `~n` to its own number, so that the recovered store says which prefix it claims to be;
//! then all rows at several timestamps are compared with that prefix. The history goes on from
//! there, until the next crash.
//!
//! ```text
//!   cargo test -p braid-lsm --test crash                                    the short version
//!   BRAID_SEEDS=2000 cargo test --release -p braid-lsm --test crash         the long campaign
//!   BRAID_FIRST_SEED=17 BRAID_SEEDS=1 cargo test -p braid-lsm --test crash      seed 17 again
//! ```

#[allow(dead_code)]
mod support;

use braid_env::fs::{CrashPolicy, MemFs};
use braid_lsm::{CommitTs, Error};
use support::options::SETS;
use support::oracle::{Call, Written};
use support::seeds;
use support::workload::Subject;

fn policy(subject: &mut Subject) -> CrashPolicy {
    match subject.random.below(8) {
        0 => CrashPolicy::LoseAll,
        1 => CrashPolicy::KeepAll,
        2 => CrashPolicy::LoseNames,
        3 => CrashPolicy::Random(5),
        4 => CrashPolicy::Random(95),
        _ => CrashPolicy::Random(50),
    }
}

/// A batch of the workload that also counts.
fn counted(subject: &mut Subject) -> Written {
    subject.clock += 1 + subject.random.below(3);
    let mut calls = Vec::new();
    for _ in 0..subject.random.between(1, 5) {
        let key = subject.key();
        calls.push(match subject.random.below(10) {
            0 => Call::Delete(key),
            1 => {
                let (start, end) = subject.span();
                let end = end.min(b"~".to_vec());
                Call::DeleteSpan(start, end)
            }
            _ => {
                let mut value = vec![0; subject.random.below(120) as usize];
                subject.random.fill(&mut value);
                Call::Put(key, value)
            }
        });
    }
    let number = subject.oracle.batches() as u64 + 1;
    calls.push(Call::Put(b"~n".to_vec(), number.to_le_bytes().to_vec()));
    Written { ts: subject.clock, calls }
}

fn write(subject: &mut Subject) -> Result<(), Error> {
    let written = counted(subject);
    subject.write_this(written)
}

fn step(subject: &mut Subject) -> Result<(), Error> {
    match subject.random.below(60) {
        0 => subject.db.flush()?,
        1 => {
            subject.gc = subject.random.between(subject.gc, subject.clock.max(subject.gc));
            subject.db.set_gc_threshold(CommitTs(subject.gc))?;
        }
        2 => subject.db.compact_span(&braid_lsm::KeySpan::all())?,
        3..=5 => subject.check_scan()?,
        6..=10 => {
            let written = counted(subject);
            subject.ingest(written, None)?;
        }
        11..=14 => {
            let written = counted(subject);
            let (start, end) = subject.span();
            subject.ingest(written, Some((start, end.min(b"~".to_vec()))))?;
        }
        15 => {
            let key = subject.key();
            subject.db.split_at(&key)?;
        }
        _ => write(subject)?,
    }
    if subject.random.chance(1, 3) {
        subject.tasks.run_one();
    }
    Ok(())
}

/// Works until a crash was taken; returns it, with what was durable before that step.
fn work_until_crash(subject: &mut Subject) -> (MemFs, usize) {
    let changes = subject.random.below(400);
    let policy = policy(subject);
    let seed = subject.random.next_u64();
    subject.fs.arm_crash(changes, braid_env::random::Random::seeded(seed), policy);
    for _ in 0..600 {
        let synced = subject.synced;
        step(subject).unwrap();
        if let Some(crash) = subject.fs.take_crash() {
            return (crash, synced);
        }
    }
    let mut random = subject.random.clone();
    (subject.fs.crash_clone(&mut random, policy), subject.synced)
}

/// Crashes again while the store recovers, a few times.
fn crash_in_recovery(subject: &mut Subject, mut fs: MemFs) -> MemFs {
    for _ in 0..subject.random.below(3) {
        let policy = policy(subject);
        let seed = subject.random.next_u64();
        let changes = subject.random.below(25);
        fs.arm_crash(changes, braid_env::random::Random::seeded(seed), policy);
        subject.recover(fs.clone()).unwrap();
        let after = fs.take_crash();
        let mut random = subject.random.clone();
        fs = after.unwrap_or_else(|| fs.crash_clone(&mut random, policy));
    }
    fs
}

fn run(seed: u64) {
    let set = seed as usize % SETS.len();
    let mut subject = Subject::new(seed, set);
    for round in 0..3 {
        let (crash, synced) = work_until_crash(&mut subject);
        let fs = crash_in_recovery(&mut subject, crash);
        subject.recover(fs).unwrap_or_else(|error| panic!("seed {seed} round {round}: {error}"));
        let claim = subject.db.view(CommitTs(u64::MAX - 1)).unwrap().get(b"~n").unwrap();
        let n = claim.map_or(0, |value| u64::from_le_bytes(value[..].try_into().unwrap())) as usize;
        let all = subject.oracle.batches();
        assert!(
            synced <= n && n <= all,
            "seed {seed} round {round}: {n} batches came back, {synced} were durable of {all}"
        );
        subject.oracle = subject.oracle.prefix(n);
        subject.synced = n;
        // The threshold that came back is a promise: everything since then must be readable.
        let threshold = subject.db.gc_threshold().0;
        assert!(threshold <= subject.gc, "seed {seed} round {round}: threshold from nowhere");
        subject.gc = threshold;
        subject.check_all().unwrap();
    }
}

#[test]
fn a_crash_leaves_a_prefix_without_a_hole() {
    for seed in seeds(120) {
        run(seed);
    }
}
