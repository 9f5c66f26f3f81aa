//! Rows that go along by a foreign key with ON DELETE CASCADE and lie elsewhere: however many they
//! are, by whichever way they are found, they go as they would one by one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::harness::actors::Stage;
use crate::harness::{database, rows, run, session, state, tag, try_run};
use braid_env::clock::WallClock;
use braid_env::fs::MemFs;
use braid_kv::{CommitTs, Store, StoreOptions};
use braid_sql::{Database, NoGeneralQueries, Session};

/// Parents, and several ways to refer to them. `{n}` stands for the table.
const SHAPES: [(&str, &str); 9] = [
    (
        "the key begins with it",
        "(id int, n int, u int, primary key (id, n), foreign key (id) references p on delete cascade)",
    ),
    (
        "in another direction",
        "(id int, n int, u int, primary key (id desc, n desc), foreign key (id) references p on delete cascade)",
    ),
    (
        "wider than what it refers to",
        "(id bigint, n int, u int, primary key (id, n), foreign key (id) references p on delete cascade)",
    ),
    (
        "rows whose keys follow each other",
        "(n int primary key, id int references p on delete cascade, u int)",
    ),
    (
        "rows whose keys do not",
        "(n text primary key, id int references p on delete cascade, u int)",
    ),
    (
        "nobody's index",
        "(n int unique, id int references p on delete cascade, u int, t uuid default gen_random_uuid() primary key)",
    ),
    (
        "another key of the parent",
        "(id int, n int, u int, primary key (id, n), foreign key (id) references p (k) on delete cascade)",
    ),
    (
        "a part of the key",
        "(id int, x int default 1, n int, u int, primary key (x, id, n), foreign key (id) references p on delete cascade)",
    ),
    (
        "in a table of its own",
        "(n int, id int references p on delete cascade, u int, primary key (n)) interleave in q",
    ),
];

fn schema(s: &mut Session, shape: &str) {
    run(
        s,
        "create table p (id int primary key, k int unique, name text);
         create table q (n int primary key)",
    );
    run(s, &format!("create table t {shape}"));
    run(s, "create index t_id on t (id); create unique index t_u on t (u, id)");
}

/// Parents 1 to 5 with so many rows each.
fn fill(s: &mut Session, each: usize) {
    for id in 1..=5 {
        run(s, &format!("insert into p values ({id}, {id}, 'p')"));
        let row = |n: usize| format!("({id}, {0}, {0})", n * 5 + id);
        let values: Vec<String> = (0..each).map(row).collect();
        for part in values.chunks(4_000) {
            run(s, &format!("insert into t (id, n, u) values {}", part.join(", ")));
        }
    }
}

/// The rows that are left, by the table and by each index, which must say the same.
fn left(s: &mut Session) -> Vec<String> {
    let by = |s: &mut Session, filter: &str| {
        let mut found = rows(s, &format!("select id, n, u from t where {filter}"));
        found.sort();
        found
    };
    let all = by(s, "id + 0 > -1");
    assert_eq!(by(s, "id > -1"), all, "by id");
    let ids = ["1", "2", "3", "4", "5"].map(|id| by(s, &format!("id = {id}")));
    assert_eq!(ids.iter().map(Vec::len).sum::<usize>(), all.len(), "by each id");
    assert_eq!(by(s, "u >= 0"), all, "by u");
    all
}

#[test]
fn few_and_many_rows_go_alike_however_they_are_found() {
    let all_sizes = std::env::var("BRAID_ALL_SIZES").is_ok();
    for (n, (what, shape)) in SHAPES.into_iter().enumerate() {
        // One shape of the others at each of the larger sizes; all of them by flag.
        let is_short = |each: usize| each == [256, 1_200][n % 2] && n > 1;
        for each in [3, 256, 257, 1_200] {
            if is_short(each) && !all_sizes {
                continue;
            }
            for delete in [
                "delete from p where id = 2",
                "delete from p where id in (2, 3, 5)",
                "delete from p where k between 2 and 4",
                "delete from p",
            ] {
                // Each form at one size beyond the bound at least; all of them at all sizes by flag.
                let once = each != 257 && delete.contains("in (");
                let twice = [256, 1_200].contains(&each) && delete.contains("between");
                if (once || twice) && !all_sizes {
                    continue;
                }
                let story = format!("{what}, {each} each: {delete}");
                let s = &mut session(&database());
                schema(s, shape);
                fill(s, each);
                let all = left(s);
                run(s, "begin; savepoint a");
                run(s, delete);
                let gone = rows(s, "select id from p order by id");
                let want: Vec<String> = all
                    .iter()
                    .filter(|row| gone.iter().any(|id| row.split('|').next() == Some(id)))
                    .cloned()
                    .collect();
                assert_eq!(left(s), want, "{story}");
                // Back, and what comes again where it was.
                run(s, "rollback to a");
                assert_eq!(left(s), all, "{story}");
                run(s, delete);
                run(s, "insert into p values (2, 2, 'again') on conflict do nothing");
                run(s, "insert into t (id, n, u) values (2, 7, 7)");
                run(s, "commit");
                assert_eq!(left(s).len(), want.len() + 1, "{story}");
                assert_eq!(
                    state(s, "insert into t (id, n, u) values (2, 9999, 7)"),
                    "23505",
                    "{story}"
                );
            }
        }
    }
}

#[test]
fn many_rows_go_by_few_tombstones() {
    for (shape, at_most) in [(SHAPES[0].1, 1), (SHAPES[1].1, 1), (SHAPES[6].1, 1)] {
        let s = &mut session(&database());
        schema(s, shape);
        fill(s, 2_000);
        let plan = rows(s, "explain delete from p where id = 3").join("\n");
        let says = plan.contains("many rows by range deletes");
        assert_eq!(says, !shape.contains("(k)"), "{plan}");
        let told = rows(s, "explain (analyze, timing off, summary off) delete from p where id = 3");
        let told = told.last().unwrap().clone();
        assert!(told.contains(&format!("tombstones: {at_most},")), "{told}");
        assert!(told.contains("index entries: 1,"), "of p_k_key: {told}");
        assert_eq!(rows(s, "select count(*) from t where u > 0"), ["8000"]);
    }
    // In the order of their keys, a part at a time.
    let s = &mut session(&database());
    run(
        s,
        "create table p (id int primary key); insert into p values (1), (2);
         create table t (n int primary key, id int references p on delete cascade);
         create index on t (id)",
    );
    let values: Vec<String> = (0..20_000).map(|n| format!("({n}, {})", n / 10_000 + 1)).collect();
    values.chunks(5_000).for_each(|part| {
        run(s, &format!("insert into t values {}", part.join(", ")));
    });
    let told = rows(s, "explain (analyze, timing off, summary off) delete from p where id = 2");
    assert!(told.last().unwrap().contains("tombstones: 2,"), "{told:?}");
    assert_eq!(rows(s, "select count(*), max(n) from t"), ["10000|9999"]);
    assert_eq!(rows(s, "select count(*) from t where id = 2"), ["0"]);
}

#[test]
fn whoever_refers_to_what_goes_along_is_asked() {
    // Three levels of plain keys, families below, and those who refuse or change.
    let s = &mut session(&database());
    run(
        s,
        "create table p (id int primary key);
         create table o (id int references p on delete cascade, o int, primary key (id, o));
         create table l (id int, o int, l int, primary key (id, o, l),
             foreign key (id, o) references o on delete cascade);
         create table f (id int, o int, f int, primary key (id, o, f)) interleave in parent o on delete cascade;
         create table stays (id int, o int, f int, x int, primary key (id, o, f, x)) interleave in f;
         create table seen (k int primary key, id int, o int, l int,
             foreign key (id, o, l) references l on delete set null);
         create table held (k int primary key, id int, o int, l int,
             foreign key (id, o, l) references l)",
    );
    let many = |s: &mut Session| {
        run(s, "insert into p values (1), (2), (3)");
        for id in 1..=3 {
            let o: Vec<String> = (0..300).map(|o| format!("({id}, {o})")).collect();
            run(s, &format!("insert into o values {}", o.join(", ")));
            let l: Vec<String> = (0..3_000).map(|l| format!("({id}, {}, {l})", l / 10)).collect();
            run(s, &format!("insert into l values {}", l.join(", ")));
            let f: Vec<String> = (0..300).map(|o| format!("({id}, {o}, 1)")).collect();
            run(s, &format!("insert into f values {}", f.join(", ")));
        }
        run(s, "insert into stays values (2, 5, 1, 1), (3, 5, 1, 1)");
        run(s, "insert into seen values (1, 2, 4, 44), (2, 3, 4, 44)");
    };
    many(s);
    run(s, "insert into held values (1, 2, 7, 71)");
    assert_eq!(state(s, "delete from p where id = 2"), "23503");
    assert_eq!(rows(s, "select count(*) from l"), ["9000"]);
    // It may go in the same statement's block.
    run(s, "begin; delete from held; delete from p where id = 2; commit");
    for (t, n) in [("p", 2), ("o", 600), ("l", 6_000), ("f", 600), ("stays", 2)] {
        assert_eq!(rows(s, &format!("select count(*) from {t}")), [n.to_string()], "{t}");
    }
    assert_eq!(rows(s, "select * from seen order by k"), ["1|NULL|NULL|NULL", "2|3|4|44"]);
    // Bounds behind the first column leave rows where they are.
    assert_eq!(tag(s, "delete from o where id = 3 and o < 4"), "DELETE 4");
    assert_eq!(rows(s, "select count(*), min(l) from l where id = 3"), ["2960|40"]);
    assert_eq!(tag(s, "delete from o where id = 3 and o < 290"), "DELETE 286");
    assert_eq!(rows(s, "select count(*), min(l) from l where id = 3"), ["100|2900"]);
    run(s, "insert into held values (1, 1, 7, 71)");
    assert_eq!(state(s, "delete from o"), "23503");
    run(s, "delete from held; delete from o");
    for t in ["o", "l", "f"] {
        assert_eq!(rows(s, &format!("select count(*) from {t}")), ["0"], "{t}");
    }
    assert_eq!(rows(s, "select count(*) from p"), ["2"]);
}

#[test]
fn rows_that_refer_to_nothing_or_to_each_other() {
    let s = &mut session(&database());
    // MATCH FULL and NULLs; a key of two columns of which one may be NULL.
    run(
        s,
        "create table p (a int, b int, primary key (a, b));
         create table t (a int, b int, n int primary key, foreign key (a, b) references p on delete cascade);
         create index on t (a, b);
         create table tree (id int primary key, up int references tree on delete cascade);
         create index on tree (up)",
    );
    run(s, "insert into p values (1, 1), (1, 2)");
    for b in ["1", "2", "null"] {
        let from = b.parse().unwrap_or(3) * 1_000;
        let values: Vec<String> = (0..600).map(|n| format!("(1, {b}, {})", from + n)).collect();
        run(s, &format!("insert into t values {}", values.join(", ")));
    }
    run(s, "delete from p where b = 2");
    assert_eq!(rows(s, "select count(*), max(n) from t"), ["1200|3599"]);
    run(s, "delete from p");
    assert_eq!(rows(s, "select count(*), min(n) from t"), ["600|3000"]);
    // A tree, wide and deep.
    run(s, "insert into tree values (0, null)");
    for level in 0..3 {
        let values: Vec<String> = (0..700)
            .map(|n| {
                format!(
                    "({}, {})",
                    level * 1_000 + n + 1,
                    if level == 0 { 0 } else { (level - 1) * 1_000 + n % 2 + 1 }
                )
            })
            .collect();
        run(s, &format!("insert into tree values {}", values.join(", ")));
    }
    run(s, "insert into tree values (9000, null), (9001, 9000)");
    run(s, "delete from tree where id = 2");
    assert_eq!(rows(s, "select count(*) from tree"), [(2_103 - 1 - 350 - 350).to_string()]);
    run(s, "delete from tree where id = 0");
    assert_eq!(rows(s, "select * from tree order by id"), ["9000|NULL", "9001|9000"]);
}

/// Parent 1 with many rows in two tables: one whose key begins with it, and one found by an index.
fn crowded() -> Arc<Database> {
    let db = database();
    let s = &mut session(&db);
    run(
        s,
        "create table p (id int primary key, v int); insert into p values (1, 0), (2, 0);
         create table t (id int references p on delete cascade, n int, v int, primary key (id, n));
         create index on t (v);
         create table x (n int primary key, id int references p on delete cascade, v int);
         create index on x (id)",
    );
    let values: Vec<String> = (0..1_000).map(|n| format!("(1, {n}, {n})")).collect();
    run(s, &format!("insert into t values {}", values.join(", ")));
    run(s, &format!("insert into x (id, n, v) values {}", values.join(", ")));
    db
}

#[test]
fn who_inserts_a_row_meanwhile_is_told_and_nobody_is_in_a_circle() {
    for level in ["serializable", "repeatable read", "read committed"] {
        for table in ["t", "x"] {
            for end in ["commit", "rollback"] {
                let story = format!("{level}, {table}, {end}");
                let db = crowded();
                let mut stage = Stage::new(&db, 2, "");
                // The row comes first: who deletes waits for its end.
                stage.run(0, &format!("begin isolation level {level}")).unwrap();
                let sql = format!("insert into {table} (id, n, v) values (1, 5000, 5000)");
                stage.run(0, &sql).unwrap();
                stage.send(1, "delete from p where id = 1");
                assert!(stage.waits(1), "{story}");
                stage.run(0, &sql.replace("5000", "5001")).unwrap();
                stage.run(0, end).unwrap();
                assert_eq!(stage.take(1).unwrap().tag, "DELETE 1", "{story}");
                // Who deletes comes first.
                let db = crowded();
                let mut stage = Stage::new(&db, 2, "");
                stage.run(0, &format!("begin isolation level {level}")).unwrap();
                stage.run(0, "delete from p where id = 1").unwrap();
                stage.send(1, &sql);
                assert!(stage.waits(1), "{story}");
                stage.run(0, end).unwrap();
                let code = stage.take(1).err().map(|e| e.state().0);
                assert_eq!(code, (end == "commit").then_some("23503"), "{story}");
                let s = &mut session(&db);
                let count = rows(s, &format!("select count(*) from {table} where id = 1"));
                assert_eq!(count, [if end == "commit" { "0" } else { "1001" }], "{story}");
            }
        }
    }
}

/// Who inserts has his row's key first and then asks for its parent; who deletes has the parent first.
#[test]
fn threads_that_insert_and_delete_are_in_no_circle() {
    let db = database();
    let s = &mut session(&db);
    run(
        s,
        "create table p (id int primary key);
         create table t (id int references p on delete cascade, n int, primary key (id, n));
         create table x (n int primary key, id int references p on delete cascade);
         create index on x (id)",
    );
    let all = |table: &str, from: usize| {
        let value = |n: usize| match table {
            "t" => format!("(1, {})", from + n),
            _ => format!("({}, 1)", from + n),
        };
        let values: Vec<String> = (0..300).map(value).collect();
        format!("insert into {table} values {}", values.join(", "))
    };
    let filled = format!("insert into p values (1); {}; {}", all("t", 0), all("x", 0));
    run(s, &filled);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for who in 1..4 {
            let (db, stop) = (&db, &stop);
            scope.spawn(move || {
                let s = &mut session(db);
                let mut n = 0;
                while !stop.load(Ordering::Relaxed) {
                    n += 1;
                    let key = 1_000_000 * who + n;
                    let sql = match n % 3 {
                        0 => format!("insert into t values (1, {key}), (1, -{key})"),
                        1 => format!("insert into x values ({key}, 1), (-{key}, 1)"),
                        _ => format!("begin; insert into t values (1, {key}); insert into x values ({key}, 1); commit"),
                    };
                    if let Err(e) = try_run(s, &sql, &[]) {
                        assert!(["23503", "40001"].contains(&e.state().0), "{sql}: {e}");
                        s.fail();
                        run(s, "rollback");
                    }
                }
            });
        }
        for _ in 0..40 {
            assert_eq!(tag(s, "delete from p"), "DELETE 1");
            assert_eq!(rows(s, "select count(*) from p"), ["0"]);
            for table in ["t", "x"] {
                assert_eq!(rows(s, &format!("select count(*) from {table}")), ["0"], "{table}");
            }
            run(s, &filled);
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_row_that_somebody_has_in_hand_is_waited_for_and_goes() {
    for (table, other) in [
        ("t", "update t set v = -1 where n = 500"),
        ("x", "update x set v = -1 where n = 500"),
        ("t", "delete from t where n = 500"),
        ("t", "update t set n = -500 where n = 500"),
        ("x", "update x set n = -500 where n = 500"),
        ("x", "update x set id = 2 where n = 500"),
    ] {
        for end in ["commit", "rollback"] {
            let db = crowded();
            let mut stage =
                Stage::new(&db, 2, "set default_transaction_isolation = 'read committed'");
            stage.run(0, &format!("begin; {other}")).unwrap();
            stage.send(1, "delete from p where id = 1");
            assert!(stage.waits(1), "{other}");
            stage.run(0, end).unwrap();
            assert_eq!(stage.take(1).unwrap().tag, "DELETE 1", "{other} {end}");
            let s = &mut session(&db);
            let kept = usize::from(other.contains("id = 2") && end == "commit");
            assert_eq!(
                rows(s, &format!("select count(*) from {table}")),
                [kept.to_string()],
                "{other} {end}"
            );
            assert_eq!(rows(s, "select count(*) from t where v = -1"), ["0"], "{other} {end}");
        }
    }
}

#[test]
fn a_crowd_goes_in_little_memory() {
    let db = database();
    let s = &mut session(&db);
    run(
        s,
        "create table p (id int primary key); insert into p values (1);
         create table t (n text primary key, id int references p on delete cascade, v text);
         create index on t (id)",
    );
    for part in 0..8 {
        let row = |n: u64| format!("(md5('{n}'), 1, repeat('x', 200))");
        let values: Vec<String> = (part * 2_500..(part + 1) * 2_500).map(row).collect();
        run(s, &format!("insert into t values {}", values.join(", ")));
    }
    // All of them at once would take 8 MB.
    run(s, "set statement_mem = '2MB'; set braid.transaction_mem = '256kB'");
    assert_eq!(tag(s, "delete from p"), "DELETE 1");
    assert_eq!(rows(s, "select count(*) from t"), ["0"]);
    assert!(db.coordinator().describe_locks().locks.is_empty());
}

#[test]
fn entries_that_are_left_are_taken_away_also_after_a_restart() {
    let fs = MemFs::new();
    let open = || {
        let mut options = StoreOptions::new(Arc::new(fs.clone()), "db", Arc::new(WallClock));
        options.engine.row_class = braid_keys::row_class;
        let store = Store::open(options).unwrap();
        let db = Database::open(store.coordinator(), Arc::new(NoGeneralQueries)).unwrap();
        (store, db)
    };
    let (store, db) = open();
    let mut first = session(&db);
    let s = &mut first;
    run(
        s,
        "create table p (id int primary key); insert into p values (1), (2);
         create table t (id int references p on delete cascade, n int, v int, primary key (id, n));
         create index on t (v)",
    );
    for id in 1..=2 {
        let values: Vec<String> = (0..400).map(|n| format!("({id}, {n}, {n})")).collect();
        run(s, &format!("insert into t values {}", values.join(", ")));
    }
    let always = CommitTs(u64::MAX);
    run(s, "delete from p where id = 1");
    db.reclaim(always, 1_000_000).unwrap();
    assert_eq!(db.reclaimed().dead_entries, 400);
    run(s, "delete from p where id = 2");
    let _closed = (drop(first), drop(db), drop(store));
    let (_store, db) = open();
    db.reclaim(always, 1_000_000).unwrap();
    assert_eq!(db.reclaimed().dead_entries, 400);
    assert_eq!(rows(&mut session(&db), "select count(*) from t where v >= 0"), ["0"]);
}
