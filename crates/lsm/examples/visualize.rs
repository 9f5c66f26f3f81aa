//! Makes a store with an untidy load, and the page that replays it:
//!
//! `cargo run -p braid-lsm --example visualize -- DIR OUT.html`
//!
//! Keys come out of order in small ssts; now and then one holds a housekeeping key at the start of
//! the key space as well, and is so wide that it overlaps everything. Then spans are deleted and
//! one is excised.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use braid_env::fs::DiskFs;
use braid_env::random::Random;
use braid_lsm::{
    Batch, CommitTs, Db, Durability, IngestOptions, KeySpan, Options, SstBuilder, lsm_page,
};

fn key(n: u64) -> Vec<u8> {
    format!("order/{n:08}").into_bytes()
}

fn ingest(db: &Db, dir: &Path, options: &Options, ts: u64, random: &mut Random) {
    let fs = DiskFs::shared();
    let path = dir.join(format!("load-{ts}.sst"));
    let mut builder = SstBuilder::create(&fs, &path, CommitTs(ts), options).unwrap();
    if random.chance(1, 12) {
        builder.put(b"meta/statistics", &ts.to_le_bytes()).unwrap();
    }
    let first = random.below(100_000);
    for n in 0..300 {
        let mut value = [0; 100];
        random.fill(&mut value);
        builder.put(&key(first + n * 3), &value).unwrap();
    }
    let file = builder.finish().unwrap();
    db.ingest(&[file.path], IngestOptions::default()).unwrap();
    fs_remove(&path);
}

fn fs_remove(path: &Path) {
    let fs = DiskFs::shared();
    fs.remove(path).unwrap();
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(PathBuf::from);
    let (Some(dir), Some(out)) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: visualize DIR OUT.html");
        return;
    };
    let options = Options {
        memtable_size: 256 << 10,
        wal_segment_size: 1 << 20,
        base_level_size: 1 << 20,
        target_sst_size: 256 << 10,
        flush_split_bytes: 128 << 10,
        small_ingest_bytes: 0,
        ballast_size: 0,
        ..Options::default()
    };
    let fs = DiskFs::shared();
    let db = Db::open(fs.clone(), &dir.join("store"), options.clone()).unwrap();
    let mut random = Random::seeded(1);
    let first = db.last_commit_ts().0 + 1;
    for ts in first..first + 400 {
        if ts % 3 == 0 {
            ingest(&db, &dir, &options, ts, &mut random);
            continue;
        }
        let mut batch = Batch::at(CommitTs(ts));
        if ts % 50 == 1 {
            let from = random.below(90_000);
            batch.delete_span(&key(from), &key(from + 5_000));
        }
        for _ in 0..40 {
            let mut value = [0; 200];
            random.fill(&mut value);
            batch.put(&key(random.below(100_000)), &value);
        }
        db.write(batch, Durability::Buffered).unwrap();
    }
    db.excise(&KeySpan::new(key(40_000), key(60_000))).unwrap();
    db.set_gc_threshold(db.last_commit_ts()).unwrap();
    db.flush().unwrap();
    db.close().unwrap();
    let page = lsm_page(Arc::new(DiskFs), &dir.join("store"), "An untidy load").unwrap();
    let file = fs.create(&out).unwrap();
    file.write_at(page.as_bytes(), 0).unwrap();
    println!("{}: {} bytes", out.display(), page.len());
}
