//! Files of a closed or crashed raft log that are deleted, cut off, exchanged, repeated, taken from
//! another log or changed in a byte: what opens is right, or the error names a file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use braid_consensus::{Append, Error, GroupId, LogBatch, RaftLog};
use braid_env::fs::{CrashPolicy, FileSystem, MemFs, read_all};
use braid_env::random::Random;

use crate::raft_log_crash::{Groups, entry, options};

const DIR: &str = "/raft";

/// A log of several segments, synced; closed if that is wanted.
fn written(seed: u64, close: bool) -> (MemFs, Groups) {
    let mut random = Random::seeded(seed);
    let fs = MemFs::new();
    let open = || RaftLog::open(Arc::new(fs.clone()), Path::new(DIR), options()).expect("it opens");
    let (mut log, _) = open();
    for index in 1..=60 {
        let mut batch = LogBatch::default();
        let len = random.below(300) as usize;
        let entries = vec![entry(index, 1, len)];
        let append = Append { entries, must_sync: true, ..Append::default() };
        batch.append(GroupId(1), &append);
        let place = log.write(&batch).expect("the disk works");
        log.sync(place).expect("the disk works");
    }
    match close {
        true => log.close().expect("the disk works"),
        false => drop(log),
    }
    let copy = fs.crash_clone(&mut random, CrashPolicy::LoseAll);
    let (_, groups) = RaftLog::open(Arc::new(copy), Path::new(DIR), options()).expect("it opens");
    (fs, groups)
}

/// Segments and the mark, the last segment at the end. A segment that was begun ahead holds
/// nothing yet.
fn files(fs: &MemFs) -> Vec<PathBuf> {
    let mut names = fs.list(Path::new(DIR)).expect("it is there");
    names.sort_by_key(|name| (name != "MARK", name.clone()));
    let data = names.iter().filter(|name| *name == "MARK" || name.ends_with(".wal"));
    data.map(|name| Path::new(DIR).join(name)).collect()
}

fn put(fs: &MemFs, path: &Path, bytes: &[u8]) {
    fs.create(path).and_then(|file| file.write_at(bytes, 0)).expect("the disk works");
}

/// Opens a damaged log; true if it was refused. What opens must be right.
fn refused(fs: &MemFs, right: &Groups, what: &str) -> bool {
    match RaftLog::open(Arc::new(fs.clone()), Path::new(DIR), options()) {
        Ok((_, groups)) => {
            assert!(groups == *right, "{what}: opened with a wrong answer");
            false
        }
        Err(Error::Log(error)) => {
            assert!(error.to_string().contains(DIR), "{what}: {error} names no file");
            true
        }
        Err(error) => panic!("{what}: {error}"),
    }
}

fn copy_of(fs: &MemFs) -> MemFs {
    fs.crash_clone(&mut Random::seeded(1), CrashPolicy::KeepAll)
}

#[test]
fn lost_exchanged_repeated_and_foreign_files_are_refused() {
    for close in [false, true] {
        let (fs, right) = written(1, close);
        let (other, _) = written(2, close);
        let all = files(&fs);
        assert!(all.len() > 4, "several segments: {all:?}");
        for (n, path) in all.iter().enumerate() {
            let named = |what: &str| format!("{what} {} (closed: {close})", path.display());
            let damaged = copy_of(&fs);
            damaged.remove(path).expect("it is there");
            assert!(refused(&damaged, &right, &named("without")), "{}", named("without"));
            for (m, from) in all.iter().enumerate().filter(|(m, _)| *m != n) {
                let damaged = copy_of(&fs);
                put(&damaged, path, &read_all(&fs, from).expect("it is there"));
                let what = named(&format!("file {m} in the place of"));
                assert!(refused(&damaged, &right, &what), "{what}");
            }
            let damaged = copy_of(&fs);
            put(&damaged, path, &read_all(&other, path).expect("it is there"));
            assert!(refused(&damaged, &right, &named("foreign")), "{}", named("foreign"));
        }
        let damaged = copy_of(&fs);
        let (one, two) = (&all[0], &all[1]);
        put(&damaged, one, &read_all(&fs, two).expect("it is there"));
        put(&damaged, two, &read_all(&fs, one).expect("it is there"));
        assert!(refused(&damaged, &right, "exchanged"), "exchanged (closed: {close})");
    }
}

#[test]
fn cut_off_files_and_changed_bytes_are_refused_or_harmless() {
    let (first, seeds) = crate::seeds(150);
    let mut refusals = 0;
    for close in [false, true] {
        let (fs, right) = written(1, close);
        let all = files(&fs);
        // The end of a log that nobody closed may be torn: its last segment is left out.
        let safe = if close { all.len() } else { all.len() - 1 };
        for seed in first..first + seeds {
            let mut random = Random::seeded(seed);
            let path = &all[random.below(safe as u64) as usize];
            let len = read_all(&fs, path).expect("it is there").len() as u64;
            let (damaged, at) = (copy_of(&fs), random.below(len));
            let what = match random.chance(1, 2) {
                true => {
                    damaged.flip(path, at, 1 << random.below(8)).expect("it is there");
                    "changed"
                }
                false => {
                    damaged.open_write(path).and_then(|file| file.set_len(at)).expect("it works");
                    "cut off"
                }
            };
            let what = format!("seed {seed}: {} {what} at {at}", path.display());
            refusals += u64::from(refused(&damaged, &right, &what));
        }
    }
    assert!(refusals > seeds, "{refusals} of {} were refused", 2 * seeds);
}
