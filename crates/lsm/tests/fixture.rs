//! A store of this format version, kept in the repository, opens and holds what it held.
//!
//! `tests/fixtures/store-1` was written by an earlier build: ssts in two levels, parts of files,
//! range tombstones, an ingested file with a timestamp of its own, batches and a waiting ingest in
//! the wal, manifests of two opens. `rows.txt` says what must be read at three timestamps.
//!
//! When the format changes before a release, write it anew (and say so in the commit):
//!
//! ```text
//!   BRAID_WRITE_FIXTURE=1 cargo test -p braid-lsm --test fixture
//! ```

#[allow(dead_code)]
mod support;

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use braid_env::fs::{DiskFs, FileSystem, MemFs, read_all};
use braid_env::tasks::SeededTasks;
use braid_lsm::{
    Batch, CommitTs, Db, Durability, Error, IngestOptions, KeySpan, Options, ScanOptions,
    SstBuilder, check_store,
};
use support::options;
use support::workload::{collect, dir, open_on};

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/store-1")
}

fn options() -> Options {
    let tasks = Arc::new(SeededTasks::new(1));
    Options {
        automatic_compaction: false,
        block_size: 300,
        index_partition_size: 200,
        wal_segment_size: 4 << 10,
        wal_recycled_segments: 0,
        ..options::set(0, tasks)
    }
}

/// What is read at several timestamps, one row a line.
fn rows(db: &Db) -> Result<String, Error> {
    let mut text = String::new();
    for ts in [15, 35, u64::MAX - 1] {
        let view = db.view(CommitTs(ts))?;
        let found = collect(&mut view.scan(KeySpan::all(), ScanOptions::default())?)?;
        for (key, value, at) in found {
            let (key, value) = (key.escape_ascii(), value.escape_ascii());
            writeln!(text, "@{ts}: {key} = {value} @{at}").unwrap();
        }
    }
    Ok(text)
}

fn write(db: &Db, ts: u64, range: std::ops::Range<u64>) {
    let mut batch = Batch::at(CommitTs(ts));
    for n in range {
        batch.put(format!("key/{n:03}").as_bytes(), format!("value {n} of {ts}").as_bytes());
    }
    db.write(batch, Durability::Sync).unwrap();
}

fn ingest(fs: &Arc<dyn FileSystem>, db: &Db, ts: u64, from: u64, options: &Options) {
    let path = PathBuf::from(format!("/in/{ts}.sst"));
    let mut builder = SstBuilder::create(fs, &path, CommitTs(1), options).unwrap();
    for n in from..from + 20 {
        builder.put(format!("key/{n:03}").as_bytes(), b"ingested").unwrap();
    }
    builder.delete_span(b"key/5", b"key/52").unwrap();
    builder.finish().unwrap();
    let at = IngestOptions { ts_override: Some(CommitTs(ts)), excise: None };
    db.ingest(&[path], at).unwrap();
}

/// Writes the fixture; the expected rows come from the store that was just written.
fn write_fixture() {
    let mem = MemFs::new();
    let fs: Arc<dyn FileSystem> = Arc::new(mem.clone());
    let options = Options { small_ingest_bytes: 0, ..options() };
    let db = open_on(fs.clone(), options.clone()).unwrap();
    write(&db, 10, 0..100);
    let mut batch = Batch::at(CommitTs(20));
    batch.delete_span(b"key/03", b"key/06");
    batch.delete(b"key/070");
    db.write(batch, Durability::Sync).unwrap();
    db.compact_span(&KeySpan::all()).unwrap();
    write(&db, 30, 90..120);
    db.flush().unwrap();
    ingest(&fs, &db, 32, 200, &options);
    db.split_at(b"key/045").unwrap();
    db.excise(&KeySpan::new("key/080", "key/085")).unwrap();
    db.close().unwrap();
    drop(db);
    let db = open_on(fs.clone(), options.clone()).unwrap();
    write(&db, 40, 40..45);
    ingest(&fs, &db, 41, 43, &options);
    write(&db, 42, 60..62);
    let expected = rows(&db).unwrap();
    db.close().unwrap();
    let disk = DiskFs;
    disk.create_dir_all(&fixture()).unwrap();
    for old in disk.list(&fixture()).unwrap() {
        disk.remove(&fixture().join(old)).unwrap();
    }
    let put = |name: &str, bytes: &[u8]| {
        let file = disk.create(&fixture().join(name)).unwrap();
        file.write_at(bytes, 0).unwrap();
    };
    put("rows.txt", expected.as_bytes());
    for name in mem.list(dir()).unwrap().iter().filter(|name| *name != "LOCK") {
        put(name, &read_all(&mem, &dir().join(name)).unwrap());
    }
}

#[test]
fn a_store_of_this_format_opens_and_holds_its_rows() {
    if support::setting("BRAID_WRITE_FIXTURE", 0) == 1 {
        write_fixture();
    }
    let (disk, mem) = (DiskFs, MemFs::new());
    let mut expected = String::new();
    for name in disk.list(&fixture()).unwrap() {
        let bytes = read_all(&disk, &fixture().join(&name)).unwrap();
        if name == "rows.txt" {
            expected = String::from_utf8(bytes).unwrap();
            continue;
        }
        let file = mem.create(&dir().join(&name)).unwrap();
        file.write_at(&bytes, 0).unwrap();
    }
    let report = check_store(Arc::new(mem.clone()), dir()).unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    assert!(report.ssts >= 5 && report.wal_batches >= 2, "{report:?}");
    let db = open_on(Arc::new(mem.clone()), options()).unwrap();
    assert!(expected.lines().count() > 200);
    assert_eq!(rows(&db).unwrap(), expected);
    db.flush().unwrap();
    db.compact_span(&KeySpan::all()).unwrap();
    assert_eq!(rows(&db).unwrap(), expected);
    db.close().unwrap();
}
