//! Segments go when no group needs them, and only then.

use std::path::Path;
use std::sync::Arc;

use braid_consensus::{
    Append, GroupId, HardState, LogBatch, LogIndex, LogPlace, RaftLog, ReplicaId, Term,
};
use braid_env::fs::{FileSystem, MemFs};

use crate::raft_log_crash::{entry, options};

const DIR: &str = "/raft";

fn open(fs: &MemFs) -> RaftLog {
    RaftLog::open(Arc::new(fs.clone()), Path::new(DIR), options()).expect("it opens").0
}

fn append(log: &mut RaftLog, group: u64, index: u64) -> LogPlace {
    let hard_state = HardState { term: Term(1), vote: Some(ReplicaId(1)), commit: LogIndex(index) };
    let (entries, hard_state) = (vec![entry(index, 1, 400)], Some(hard_state));
    let append = Append { entries, hard_state, must_sync: true, ..Append::default() };
    let mut batch = LogBatch::default();
    batch.append(GroupId(group), &append);
    log.write(&batch).expect("the disk works")
}

fn cut(log: &mut RaftLog, group: u64, index: u64) {
    let mut batch = LogBatch::default();
    batch.cut(GroupId(group), (LogIndex(index), Term(1)));
    log.write(&batch).expect("the disk works");
    log.release().expect("the disk works");
}

fn segments(fs: &MemFs) -> usize {
    let names = fs.list(Path::new(DIR)).expect("it is there");
    names.iter().filter(|name| name.ends_with(".wal") || name.ends_with(".ahead")).count()
}

#[test]
fn a_log_that_is_cut_stays_small_and_a_quiet_group_can_be_moved() {
    let fs = MemFs::new();
    let mut log = open(&fs);
    append(&mut log, 2, 1);
    for index in 1..=200 {
        let place = append(&mut log, 1, index);
        log.sync(place).expect("the disk works");
        cut(&mut log, 1, index - 1);
    }
    let held = segments(&fs);
    assert!(held > 20, "the entry of group 2 is in the first segment: {held} segments");
    assert_eq!(log.holding(2), [GroupId(2)]);
    let mut again = LogBatch::default();
    again.entries(GroupId(2), &[entry(1, 1, 400)]);
    log.write(&again).expect("the disk works");
    log.release().expect("the disk works");
    assert!(segments(&fs) < 5, "{} segments", segments(&fs));
    assert_eq!(log.holding(2), []);
    log.close().expect("the disk works");
    let (_, found) = RaftLog::open(Arc::new(fs), Path::new(DIR), options()).expect("it opens");
    let entries = |group: u64| {
        found[&GroupId(group)].entries.iter().map(|entry| entry.index.0).collect::<Vec<_>>()
    };
    assert_eq!((entries(1), entries(2)), (vec![200], vec![1]));
    assert_eq!(found[&GroupId(2)].hard_state.commit, LogIndex(1));
}

#[test]
fn a_removed_group_needs_nothing() {
    let fs = MemFs::new();
    let mut log = open(&fs);
    for index in 1..=40 {
        append(&mut log, 1, index);
        append(&mut log, 2, index);
    }
    cut(&mut log, 1, 40);
    assert!(segments(&fs) > 5);
    let mut batch = LogBatch::default();
    batch.remove(GroupId(2));
    log.write(&batch).expect("the disk works");
    log.release().expect("the disk works");
    assert!(segments(&fs) < 5, "{} segments", segments(&fs));
    drop(log);
    let (_, found) = RaftLog::open(Arc::new(fs), Path::new(DIR), options()).expect("it opens");
    assert!(!found.contains_key(&GroupId(2)));
    assert_eq!(found[&GroupId(1)].cut, (LogIndex(40), Term(1)));
}
