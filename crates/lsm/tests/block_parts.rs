//! Parts of blocks hold the rows that steps give, whoever asks in whichever way; what is kept beside
//! a block is found again as long as the block stays.

use std::path::Path;
use std::sync::Arc;

use braid_env::fs::MemFs;
use braid_env::random::Random;
use braid_lsm::{
    Batch, CommitTs, Db, Durability, KeySpan, Options, Piece, Row, RowBatch, ScanOptions,
};

const KEYS: u64 = 4_000;

fn key(n: u64) -> Vec<u8> {
    format!("{:04}/{}", n / 3, ["", "a", "bb"][(n % 3) as usize]).into_bytes()
}

/// Versions of keys of three classes: together in blocks below, newer ones above, newest in a
/// memtable, with deletes and range tombstones. Returns the last timestamp.
fn store(seed: u64) -> (Db, u64) {
    let options = Options {
        row_class: |key| key.len().saturating_sub(5) as u8,
        block_cache_size: 4 << 20,
        ..Options::default()
    };
    let db = Db::open(Arc::new(MemFs::new()), Path::new("/store"), options).unwrap();
    let mut random = Random::seeded(seed);
    let mut ts = 0;
    for round in 0..5 {
        for n in 0..KEYS {
            // What is newest lies together, so that there are long stretches of what is below.
            let is_hot = round < 3 || n % 1_000 < 150;
            if round > 0 && !(is_hot && random.chance(1, 8)) {
                continue;
            }
            ts += 1;
            let mut batch = Batch::at(CommitTs(ts));
            match random.below(30) {
                0 | 1 => batch.delete(&key(n)),
                2 if round > 2 => {
                    batch.delete_span(&key(n), &key((n + random.below(90)).min(KEYS - 1)));
                }
                _ => batch.put(&key(n), &vec![n as u8; random.below(60) as usize]),
            }
            db.write(batch, Durability::Buffered).unwrap();
        }
        match round {
            2 => db.compact_span(&KeySpan::all()).unwrap(),
            3 => db.flush().unwrap(),
            _ => {}
        }
    }
    (db, ts)
}

fn steps(db: &Db, at: CommitTs, span: &KeySpan, options: &ScanOptions) -> Vec<Row> {
    let mut scan = db.view(at).unwrap().scan(span.clone(), options.clone()).unwrap();
    std::iter::from_fn(|| scan.next_row().unwrap()).collect()
}

/// The rows of a batch from its pieces; how many came in parts.
fn by_pieces(batch: &RowBatch, rows: std::ops::Range<usize>) -> (Vec<Row>, usize) {
    let (mut out, mut in_parts, mut key) = (Vec::new(), 0, Vec::new());
    let mut singles = rows.start;
    for piece in batch.pieces(rows) {
        match piece {
            Piece::Single(rows) => {
                for i in 0..rows.len() {
                    let (key, value) = (rows.key(i).to_vec(), rows.value(i).to_vec());
                    out.push(Row { key: key.into(), value: value.into(), ts: batch.ts(singles) });
                    singles += 1;
                }
            }
            Piece::Part(part, wanted) => {
                singles += wanted.len();
                in_parts += wanted.len();
                for row in part.rows()[wanted].iter().map(|row| usize::from(*row)) {
                    assert!(part.has_value(row) && row < part.block_len());
                    part.read_key(row, &mut key);
                    let (key, value) = (key.clone().into(), part.value(row).to_vec().into());
                    out.push(Row { key, value, ts: part.ts(row) });
                }
            }
        }
    }
    (out, in_parts)
}

#[test]
fn parts_of_blocks_hold_the_rows_that_steps_give() {
    let (mut all, mut in_parts) = (0, 0);
    for seed in 0..3 {
        let (db, last) = store(seed);
        let mut random = Random::seeded(seed + 100);
        for turn in 0..80 {
            let (a, b) = (key(random.below(KEYS)), key(random.below(KEYS)));
            let span = KeySpan::new(a.clone().min(b.clone()), a.max(b));
            let at = CommitTs(if turn % 2 == 0 { last } else { random.below(last) + 1 });
            let classes = [u32::MAX, 1, 2, 5, 8][random.below(5) as usize];
            let limit = random.chance(1, 4).then(|| random.below(900) as usize);
            let options = ScanOptions { classes, limit, blocks: true, ..ScanOptions::default() };
            let single = ScanOptions { blocks: false, ..options.clone() };
            let expected = steps(&db, at, &span, &single);
            let max_rows = [1, 50, 700, 100_000][random.below(4) as usize];
            let max_bytes = [900, 40_000, usize::MAX][random.below(3) as usize];
            let mut scan = db.view(at).unwrap().scan(span, options).unwrap();
            let (mut found, mut batch) = (Vec::new(), RowBatch::new());
            while scan.next_batch_into(&mut batch, max_rows, max_bytes).unwrap() > 0 {
                assert!(batch.len() <= max_rows);
                let (rows, parts) = by_pieces(&batch, 0..batch.len());
                assert_eq!((rows.len(), parts > 0), (batch.len(), batch.has_parts()));
                // Any of them, by number, by piece and by key alone.
                let from = random.below(batch.len() as u64) as usize;
                let to = from + random.below((batch.len() - from) as u64 + 1) as usize;
                assert_eq!(by_pieces(&batch, from..to).0, rows[from..to]);
                let mut last_key = Vec::new();
                batch.read_key(from, &mut last_key);
                assert_eq!(rows[from].key, last_key);
                let plain: Vec<Row> = batch.iter().map(owned).collect();
                assert_eq!(plain, rows);
                all += rows.len();
                in_parts += parts;
                found.extend(rows);
            }
            assert_eq!(found, expected, "seed {seed}, turn {turn}, at {at:?}, classes {classes}");
        }
    }
    assert!(in_parts * 3 > all, "{in_parts} of {all} rows came in parts");
}

fn owned((key, value, ts): (&[u8], &[u8], CommitTs)) -> Row {
    Row { key: key.to_vec().into(), value: value.to_vec().into(), ts }
}

#[test]
fn a_batch_with_parts_can_be_changed_as_any_other() {
    let (db, last) = store(7);
    let options = ScanOptions { blocks: true, ..ScanOptions::default() };
    let mut scan = db.view(CommitTs(last)).unwrap().scan(KeySpan::all(), options).unwrap();
    let first = scan.next_batch(600, usize::MAX).unwrap();
    assert!(first.has_parts());
    let rows: Vec<Row> = first.iter().map(owned).collect();
    let mut kept = first.clone();
    kept.retain_keys(0, |key| key.ends_with(b"a"));
    let wanted: Vec<Row> = rows.iter().filter(|row| row.key.ends_with(b"a")).cloned().collect();
    assert_eq!(kept.iter().map(owned).collect::<Vec<_>>(), wanted);
    let mut changed = first.clone();
    changed.set_value(3, b"new");
    changed.push(b"z", b"last", CommitTs(1));
    assert_eq!((changed.value(3), changed.value(4)), (b"new".as_ref(), rows[4].value.as_ref()));
    assert_eq!(changed.key(changed.len() - 1), b"z");
    let mut pushed = first.clone();
    pushed.push(b"z", b"last", CommitTs(1));
    assert_eq!((pushed.len(), pushed.key(first.len())), (first.len() + 1, b"z".as_ref()));
    assert_eq!(by_pieces(&first, 0..first.len()).0, rows, "the copies were copies");
    pushed.clear();
    assert!(pushed.is_empty() && !pushed.has_parts() && pushed.byte_len() == 0);
}

#[test]
fn what_is_kept_beside_a_block_is_there_for_the_next_reader() {
    let (db, last) = store(1);
    let parts = || {
        let options = ScanOptions { blocks: true, ..ScanOptions::default() };
        let mut scan = db.view(CommitTs(last)).unwrap().scan(KeySpan::all(), options).unwrap();
        scan.next_batch(usize::MAX, usize::MAX).unwrap()
    };
    for part in parts().parts() {
        part.keep(part.block_len(), 100);
    }
    let (mut found, mut first) = (0, None);
    for part in parts().parts() {
        assert!(part.is_worth_keeping());
        let kept = part.kept().expect("it was kept");
        assert_eq!(kept.get::<usize>(), Some(&part.block_len()));
        assert_eq!(kept.get::<String>(), None);
        found += 1;
        first.get_or_insert_with(|| part.clone());
    }
    assert!(found > 5, "{found} blocks");
    let bytes = db.metrics().cache_sidecar_bytes;
    // A block may have come in more than one part.
    assert!(bytes > 500 && bytes < 200 * found, "{bytes} for {found}");
    // More than half of the cache is refused; what there was stays.
    let first = first.expect("there are parts");
    first.keep("large", 3 << 20);
    assert_eq!(first.kept().unwrap().get::<usize>(), Some(&first.block_len()));
    assert_eq!(db.metrics().cache_sidecar_bytes, bytes);
    // Blocks that are no more take it with them, and a part outlives them.
    let mut all = Batch::at(CommitTs(last + 1));
    all.delete_span(b"", b"\xff");
    db.write(all, Durability::Buffered).unwrap();
    db.set_gc_threshold(CommitTs(last + 2)).unwrap();
    db.compact_span(&KeySpan::all()).unwrap();
    assert_eq!(
        first.rows().len(),
        first.rows().iter().filter(|r| first.has_value(**r as usize)).count()
    );
}
