//! Parts of files: cutting an sst changes no answer, files live exactly as long as one of their
//! parts, and damage to the facts of a part is noticed.

#[allow(dead_code)]
mod support;

use std::sync::Arc;

use braid_env::fs::{FileSystem, MemFs};
use braid_env::tasks::SeededTasks;
use braid_lsm::{Batch, CommitTs, Db, Durability, KeySpan, Options, ScanOptions, check_store};
use support::options;
use support::workload::{collect, dir, open_on};

fn quiet() -> Options {
    let tasks = Arc::new(SeededTasks::new(1));
    Options { automatic_compaction: false, block_size: 200, ..options::set(0, tasks) }
}

fn key(n: u64) -> Vec<u8> {
    format!("k{n:03}").into_bytes()
}

fn filled(fs: &MemFs) -> Db {
    let db = open_on(Arc::new(fs.clone()), quiet()).unwrap();
    let mut batch = Batch::at(CommitTs(10));
    (0..500).for_each(|n| batch.put(&key(n), &[n as u8; 20]));
    db.write(batch, Durability::Sync).unwrap();
    let mut batch = Batch::at(CommitTs(20));
    batch.delete_span(&key(100), &key(300));
    batch.put(&key(200), b"after");
    db.write(batch, Durability::Sync).unwrap();
    db.flush().unwrap();
    db
}

fn rows(db: &Db, span: KeySpan, reverse: bool) -> Vec<(Vec<u8>, Vec<u8>, u64)> {
    let view = db.view(CommitTs(30)).unwrap();
    let options = ScanOptions { reverse, ..ScanOptions::default() };
    let mut rows = collect(&mut view.scan(span, options).unwrap()).unwrap();
    if reverse {
        rows.reverse();
    }
    rows
}

fn sst_files(fs: &MemFs) -> usize {
    fs.list(dir()).unwrap().iter().filter(|name| name.ends_with(".sst")).count()
}

#[test]
fn cuts_change_no_answer_and_survive_a_reopen() {
    let fs = MemFs::new();
    let db = filled(&fs);
    let before = rows(&db, KeySpan::all(), false);
    assert_eq!(before.len(), 301);
    for n in [50, 100, 150, 199, 200, 201, 299, 300, 499] {
        assert_eq!(db.split_at(&key(n)).unwrap(), 1, "cut at {n}");
        assert_eq!(rows(&db, KeySpan::all(), false), before, "cut at {n}");
        assert_eq!(rows(&db, KeySpan::all(), true), before, "cut at {n}");
    }
    assert_eq!(db.split_at(&key(0)).unwrap(), 0, "nothing lies below the first key");
    let metrics = db.metrics();
    assert_eq!((metrics.levels[0].files, metrics.levels[0].virtual_files), (10, 10));
    assert_eq!(sst_files(&fs), 1);
    for n in 0..500 {
        let found = db.view(CommitTs(30)).unwrap().get(&key(n)).unwrap();
        assert_eq!(found.is_some(), !(100..300).contains(&n) || n == 200, "key {n}");
        assert_eq!(db.max_ts(&key(n)).unwrap().0, if (100..300).contains(&n) { 20 } else { 10 });
    }
    let span = KeySpan::new(key(10), key(90));
    assert_eq!(db.max_ts_in_span(&span).unwrap(), CommitTs(10));
    assert_eq!(rows(&db, span, false).len(), 80);
    db.close().unwrap();
    let report = check_store(Arc::new(fs.clone()), dir()).unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    let db = open_on(Arc::new(fs.clone()), quiet()).unwrap();
    assert_eq!(rows(&db, KeySpan::all(), false), before);
    assert_eq!(sst_files(&fs), 1);
}

#[test]
fn a_file_goes_with_its_last_part_and_its_last_view() {
    let fs = MemFs::new();
    let db = filled(&fs);
    db.split_at(&key(50)).unwrap();
    db.split_at(&key(400)).unwrap();
    let view = db.view(CommitTs(30)).unwrap();
    db.set_gc_threshold(CommitTs(25)).unwrap();
    db.compact_span(&KeySpan::new(key(120), key(130))).unwrap();
    let metrics = db.metrics();
    assert!(metrics.levels[0].virtual_files > 0, "a part of the file stays in L0");
    assert!(metrics.garbage_bytes > 0, "the part that was rewritten is garbage of its file");
    assert_eq!(sst_files(&fs), 2);
    db.compact_span(&KeySpan::all()).unwrap();
    assert_eq!(db.metrics().garbage_bytes, 0);
    let all = view.scan(KeySpan::all(), ScanOptions::default());
    assert_eq!(collect(&mut all.unwrap()).unwrap().len(), 301, "a view keeps what it pinned");
    let with_view = sst_files(&fs);
    drop(view);
    assert_eq!(sst_files(&fs), with_view - 1, "nobody pins the old file any more");
    assert_eq!(rows(&db, KeySpan::all(), false).len(), 301);
}
