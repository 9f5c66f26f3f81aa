//! What TRUNCATE, DROP and range deletes leave behind, and how it is taken away.

use std::sync::Arc;

use crate::harness::{rows, run, session, state};
use braid_catalog::load_catalog;
use braid_env::clock::WallClock;
use braid_env::fs::MemFs;
use braid_kv::{CommitTs, KeySpan, ReadMode, ScanOptions, Store, StoreOptions, TxnOptions};
use braid_rows::TableLayout;
use braid_sql::{Database, NoGeneralQueries};

const ALWAYS: CommitTs = CommitTs(u64::MAX);

fn open(fs: &MemFs) -> (Arc<Store>, Arc<Database>) {
    let mut options = StoreOptions::new(Arc::new(fs.clone()), "db", Arc::new(WallClock));
    options.engine.row_class = braid_keys::row_class;
    options.engine.automatic_compaction = false;
    let store = Store::open(options).unwrap();
    let db = Database::open(store.coordinator(), Arc::new(NoGeneralQueries)).unwrap();
    (store, db)
}

/// Whoever works in the background has a database for a moment longer than its sessions.
fn close(store: Arc<Store>, db: Arc<Database>) {
    drop(db);
    while Arc::strong_count(&store) > 1 {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

/// Keys of rows and entries that are stored, readable or not.
fn stored(db: &Arc<Database>) -> usize {
    let txn = db.coordinator().begin(TxnOptions::default()).unwrap();
    let prefix = braid_keys::path::DATA_PREFIX;
    let span = KeySpan::new(vec![prefix], vec![prefix + 1]);
    let mut scan = txn.scan(span, ScanOptions::default()).unwrap();
    std::iter::from_fn(|| scan.next().unwrap()).count()
}

/// A hierarchy of `families`, each with a row of `c` and one of `d` below it.
fn families(db: &Arc<Database>, families: usize) {
    let s = &mut session(db);
    run(
        s,
        "create table p (id int primary key, v text);
         create table c (id int, k int, n int, primary key (id, k)) interleave in parent p on delete cascade;
         create table d (id int, k int, m int, primary key (id, k, m)) interleave in parent c on delete cascade;
         create table e (id int, k int, primary key (id, k)) interleave in parent p on delete cascade;
         create index by_n on c (n); create index inside on c (id, n) interleave in p; begin",
    );
    for i in 0..families {
        run(
            s,
            &format!(
                "insert into p values ({i}, 'parent'); insert into c values ({i}, 1, {i}); insert into d values ({i}, 1, 1)"
            ),
        );
    }
    run(s, "commit");
}

/// What a scan of a table costs the engine: blocks that it looks at.
fn cost(store: &Arc<Store>, db: &Arc<Database>, table: &str) -> u64 {
    let txn = db.coordinator().begin(TxnOptions::default()).unwrap();
    let catalog = load_catalog(&txn).unwrap();
    let table = catalog.tables().find(|t| t.name == table).unwrap();
    let layout = TableLayout::new(&catalog, table).unwrap();
    let blocks = || store.engine().metrics().blocks_read;
    let before = blocks();
    let options = layout.scan_options(ReadMode::Unrecorded, false);
    let mut scan = txn.scan(layout.rows.whole_span(), options).unwrap();
    while scan.next().unwrap().is_some() {}
    drop(scan);
    blocks() - before
}

#[test]
fn a_scan_of_a_truncated_table_costs_what_an_empty_one_costs() {
    let fs = MemFs::new();
    let (store, db) = open(&fs);
    families(&db, 5_000);
    store.engine().flush().unwrap();
    store.engine().compact_span(&KeySpan::all()).unwrap();
    let (before, empty) = (cost(&store, &db, "c"), cost(&store, &db, "e"));
    assert!(before > 10 * empty.max(1), "{before:?} {empty:?}");
    run(&mut session(&db), "truncate c, d");
    assert_eq!(rows(&mut session(&db), "select * from c"), Vec::<String>::new());
    for table in ["c", "d"] {
        assert_eq!(cost(&store, &db, table), cost(&store, &db, "e"), "{table}");
    }
    run(&mut session(&db), "insert into c values (7, 1, 7), (7, 2, 8)");
    assert_eq!(rows(&mut session(&db), "select k from c"), ["1", "2"]);
    assert_eq!(rows(&mut session(&db), "select k from c where n = 8"), ["2"]);
}

#[test]
fn generations_that_are_over_are_taken_away() {
    for change in ["truncate c, d", "drop table d; drop table c", "drop table c cascade"] {
        let fs = MemFs::new();
        let (store, db) = open(&fs);
        families(&db, 500);
        run(&mut session(&db), change);
        assert_eq!(stored(&db), 4 * 500, "{change}: p, and three inside of it");
        // While somebody may read the time before, nothing goes.
        db.reclaim(CommitTs(1), 1_000_000).unwrap();
        assert_eq!((stored(&db), db.reclaimed().discarded), (4 * 500, 0));
        // A budget at a time; what has begun goes on after a restart.
        db.reclaim(ALWAYS, 200).unwrap();
        let (left, first) = (stored(&db), db.reclaimed().discarded);
        assert!(left < 4 * 500 && left > 500 && first > 0, "{change}: {left}");
        close(store, db);
        let (_store, db) = open(&fs);
        db.reclaim(ALWAYS, 1_000_000).unwrap();
        assert_eq!(stored(&db), 500, "{change}");
        assert_eq!(db.reclaimed().discarded + first, 3 * 500, "{change}");
        let examined = db.reclaimed().examined;
        db.reclaim(ALWAYS, 1_000_000).unwrap();
        assert_eq!(db.reclaimed().examined, examined, "{change}: there is nothing left to do");
    }
}

#[test]
fn readers_of_the_past_see_what_is_taken_away() {
    let fs = MemFs::new();
    let (_store, db) = open(&fs);
    families(&db, 20);
    let (a, b) = (&mut session(&db), &mut session(&db));
    run(a, "begin isolation level repeatable read; select * from p where id = 0");
    run(b, "delete from p where id < 10; truncate c, d");
    db.reclaim(ALWAYS, 1_000_000).unwrap();
    assert!(db.reclaimed().discarded > 0 && db.reclaimed().dead_entries == 0);
    assert_eq!(rows(a, "select k from c where n = 3"), ["1"]);
    assert_eq!(rows(a, "select count(*) from c"), ["20"]);
    assert_eq!(rows(a, "select count(*) from d"), ["20"]);
    run(a, "commit");
}

#[test]
fn dead_entries_of_global_indexes_are_taken_away() {
    let fs = MemFs::new();
    let (_store, db) = open(&fs);
    families(&db, 1_500);
    let (a, s) = (&mut session(&db), &mut session(&db));
    run(a, "begin isolation level repeatable read; select * from p where id = 0");
    // Of a table that range deletes do not reach nothing is looked at; of this one each entry.
    db.reclaim(ALWAYS, 1_000_000).unwrap();
    let before = db.reclaimed();
    run(
        s,
        "delete from p where id < 1000; insert into p values (5, 'again'); insert into c values (5, 1, 5), (5, 2, 6)",
    );
    let all = stored(&db);
    // Somebody else writes an entry that is dead, and has not committed: it stays, others go.
    let c = &mut session(&db);
    run(c, "begin; insert into p values (9, 'x'); insert into c values (9, 1, 9)");
    db.reclaim(ALWAYS, 700).unwrap();
    run(c, "commit");
    db.reclaim(ALWAYS, 1_000_000).unwrap();
    let done = db.reclaimed();
    assert_eq!(done.dead_entries - before.dead_entries, 998, "all but 5 and 9");
    assert_eq!(stored(&db), all - 998 + 3, "the row, its parent, its inner entry");
    assert_eq!(rows(a, "select k from c where n = 3"), ["1"], "an older view");
    run(a, "commit");
    for (n, k) in [(5, vec!["1"]), (6, vec!["2"]), (9, vec!["1"]), (3, vec![]), (1_200, vec!["1"])]
    {
        assert_eq!(rows(s, &format!("select k from c where n = {n}")), k, "{n}");
    }
    assert_eq!(state(s, "insert into c values (3, 1, 3)"), "23503");
}

#[test]
fn dead_entries_in_ancestors_are_taken_away() {
    let fs = MemFs::new();
    let (_store, db) = open(&fs);
    families(&db, 300);
    let s = &mut session(&db);
    db.reclaim(ALWAYS, 1_000_000).unwrap();
    let (all, before) = (stored(&db), db.reclaimed().dead_entries);
    // The rows of c are spans of their own; the entries lie beside them, in p.
    run(s, "delete from c where k + 0 = 1 and id < 200");
    assert_eq!(stored(&db), all - 400, "c and d");
    db.reclaim(ALWAYS, 1_000_000).unwrap();
    assert_eq!(db.reclaimed().dead_entries - before, 400, "of by_n and of inside");
    assert_eq!(stored(&db), all - 800);
    assert_eq!(rows(s, "select count(*) from c where id >= 0 and n >= 0"), ["100"]);
}

#[test]
fn a_fresh_process_looks_for_dead_entries_once() {
    let fs = MemFs::new();
    let (store, db) = open(&fs);
    families(&db, 700);
    run(&mut session(&db), "delete from p where id < 600");
    db.reclaim(ALWAYS, 520).unwrap();
    let first = db.reclaimed().dead_entries;
    assert!(first > 0 && first < 600);
    close(store, db);
    let (_store, db) = open(&fs);
    db.reclaim(ALWAYS, 300).unwrap();
    assert_eq!(db.reclaimed().dead_entries + first, 600, "it goes on where it was");
    // What was erased while another process looked, it cannot know: it looks once more.
    db.reclaim(ALWAYS, 1_000_000).unwrap();
    let examined = db.reclaimed().examined;
    assert!(examined < 600, "{examined}");
    db.reclaim(ALWAYS, 1_000_000).unwrap();
    assert_eq!(db.reclaimed().examined, examined);
}

#[test]
fn a_look_at_an_index_comes_to_its_end_a_part_at_a_time() {
    let fs = MemFs::new();
    let (store, db) = open(&fs);
    families(&db, 2_000);
    // What is dead lies behind what lives.
    run(&mut session(&db), "delete from p where id >= 1900");
    for part in 0..3 {
        db.reclaim(ALWAYS, 512).unwrap();
        assert_eq!(db.reclaimed().dead_entries, 0, "part {part}");
    }
    close(store, db);
    let (_store, db) = open(&fs);
    db.reclaim(ALWAYS, 512).unwrap();
    assert_eq!(db.reclaimed().dead_entries, 100, "it goes on where it was");
    assert_eq!(rows(&mut session(&db), "select count(*) from c where n >= 0"), ["1900"]);
}

#[test]
fn a_later_generation_of_the_same_class_is_left_alone() {
    let fs = MemFs::new();
    let (_store, db) = open(&fs);
    families(&db, 50);
    let s = &mut session(&db);
    // Row classes repeat: one of these generations has that of one that is over.
    for n in 0..70 {
        run(s, "truncate c, d");
        run(s, &format!("insert into c values (7, 1, {n}), (7, 2, {n})"));
        if n % 34 == 0 {
            let before = db.reclaimed().discarded;
            db.reclaim(ALWAYS, 1_000_000).unwrap();
            assert!(db.reclaimed().discarded > before, "{n}");
        }
        let by_index = format!("select k from c where n = {n} order by k");
        for sql in [by_index.as_str(), "select k from c order by id, k"] {
            assert_eq!(rows(s, sql), ["1", "2"], "{n}");
        }
    }
    db.reclaim(ALWAYS, 1_000_000).unwrap();
    assert_eq!(rows(s, "select count(*) from c"), ["2"]);
    assert_eq!(rows(s, "select count(*) from c where n = 69"), ["2"]);
    assert_eq!(stored(&db), 50 + 2 + 4, "p, and c with two indexes");
}
