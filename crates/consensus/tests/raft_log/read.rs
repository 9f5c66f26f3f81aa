//! Entries that are only in files: what is kept in memory at open, and what reads find.

use std::path::Path;
use std::sync::Arc;

use braid_consensus::{Entry, Error, GroupId, LogBatch, LogIndex, RaftLog, RaftLogOptions, Term};
use braid_env::fs::{FileSystem, MemFs};

use crate::raft_log_crash::entry;

const GROUP: GroupId = GroupId(7);

fn options() -> RaftLogOptions {
    RaftLogOptions { segment_size: 100_000, ..RaftLogOptions::default() }
}

fn open(fs: &MemFs) -> (RaftLog, Option<braid_consensus::LoggedGroup>) {
    let opened = RaftLog::open(Arc::new(fs.clone()), Path::new("/raft"), options());
    let (log, mut found) = opened.expect("it opens");
    (log, found.remove(&GROUP))
}

/// Three terms of 400 entries with 1,000 bytes each, beside a group that is not asked for.
fn filled(fs: &MemFs) -> Vec<Entry> {
    let (mut log, _) = open(fs);
    let entries: Vec<Entry> =
        (1..=1_200).map(|index| entry(index, 1 + (index - 1) / 400, 1_000)).collect();
    for some in entries.chunks(7) {
        let mut batch = LogBatch::default();
        batch.entries(GROUP, some);
        batch.entries(GroupId(8), some);
        log.write(&batch).expect("the disk works");
    }
    log.sync(log.written()).expect("the disk works");
    entries
}

#[test]
fn a_long_log_is_opened_with_little_of_it_in_memory() {
    let fs = MemFs::new();
    let entries = filled(&fs);
    let (mut log, found) = open(&fs);
    let found = found.expect("it was written");
    let kept: usize = found.entries.iter().map(|entry| entry.data.len()).sum();
    assert!(kept <= 256 << 10 && kept > 200 << 10, "{kept} bytes are kept");
    assert_eq!(found.entries, entries[entries.len() - found.entries.len()..]);
    let begins = [(1, 1), (401, 2), (801, 3)].map(|(index, term)| (LogIndex(index), Term(term)));
    assert_eq!(found.older, begins);
    let all = log.read(GROUP, LogIndex(1), LogIndex(1_201), u64::MAX).expect("all is there");
    assert_eq!(all, entries);
    let part = log.read(GROUP, LogIndex(399), LogIndex(900), 3_000).expect("all is there");
    assert_eq!(part, entries[398..401], "one more than fits, or the first");
    // A cut in the middle of what is only in files: terms begin behind it.
    let mut batch = LogBatch::default();
    batch.cut(GROUP, (LogIndex(500), Term(2)));
    batch.cut(GroupId(8), (LogIndex(1_200), Term(3)));
    log.write(&batch).expect("the disk works");
    log.release().expect("the disk works");
    drop(log);
    let (log, found) = open(&fs);
    let found = found.expect("it was written");
    assert_eq!(found.older, [(LogIndex(501), Term(2)), (LogIndex(801), Term(3))]);
    let rest = log.read(GROUP, LogIndex(501), LogIndex(1_201), u64::MAX).expect("all is there");
    assert_eq!(rest, entries[500..]);
    let gone = log.read(GROUP, LogIndex(1), LogIndex(2), 1);
    assert!(matches!(gone, Err(Error::Inconsistent(_))), "{gone:?}");
    let later = log.read(GROUP, LogIndex(1_200), LogIndex(1_202), u64::MAX);
    assert!(matches!(later, Err(Error::Inconsistent(_))), "{later:?}");
}

#[test]
fn a_damaged_entry_is_an_error_with_file_and_offset() {
    let fs = MemFs::new();
    filled(&fs);
    let (log, _) = open(&fs);
    let path = Path::new("/raft/000002.wal");
    let file = fs.open_write(path).expect("it is there");
    let mut byte = [0];
    file.read_exact_at(&mut byte, 50_000).expect("it is long enough");
    file.write_at(&[byte[0] ^ 1], 50_000).expect("the disk works");
    let read = log.read(GROUP, LogIndex(1), LogIndex(1_201), u64::MAX);
    let said = read.expect_err("a byte was changed").to_string();
    assert!(said.contains("/raft/000002.wal") && said.contains("offset"), "{said}");
}
