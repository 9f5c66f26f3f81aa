//! A family of rows lives and dies: `cargo run -p braid-lsm --example family`.
//!
//! A customer with orders is written, deleted by one range tombstone, read as it was before, and
//! removed for good once the garbage collection threshold has passed.

use braid_env::fs::DiskFs;
use braid_lsm::{Batch, CommitTs, Db, Durability, Error, KeySpan, Options, ScanOptions};

fn count(db: &Db, ts: u64) -> Result<usize, Error> {
    let view = db.view(CommitTs(ts))?;
    let mut scan = view.scan(KeySpan::prefix(b"customer/7"), ScanOptions::default())?;
    let mut rows = 0;
    while scan.next_row()?.is_some() {
        rows += 1;
    }
    println!("at {ts}: {rows} rows, {:?}", scan.stats());
    Ok(rows)
}

fn main() -> Result<(), Error> {
    let dir = std::env::temp_dir().join(format!("braid-lsm-family-{}", std::process::id()));
    let db = Db::open(DiskFs::shared(), &dir, Options::default())?;
    let mut batch = Batch::at(CommitTs(10));
    batch.put(b"customer/7", b"Ada");
    for order in 0..10_000 {
        batch.put(format!("customer/7/order/{order:05}").as_bytes(), b"tea");
    }
    db.write(batch, Durability::Sync)?;
    db.flush()?;
    count(&db, 10)?;

    let mut batch = Batch::at(CommitTs(20));
    batch.delete_span(b"customer/7", b"customer/8");
    db.write(batch, Durability::Sync)?;
    count(&db, 20)?;
    count(&db, 19)?;

    db.set_gc_threshold(CommitTs(20))?;
    db.compact_span(&KeySpan::all())?;
    let bytes: u64 = db.metrics().levels.iter().map(|level| level.bytes).sum();
    println!("after garbage collection {bytes} bytes are left in ssts");
    match db.view(CommitTs(19)) {
        Err(error) => println!("and the past is closed: {error}"),
        Ok(_) => println!("the past is still open"),
    }
    db.close()
}
