//! COPY.

use crate::harness;

use crate::harness::{database, error, rows, run, session, state, tag};
use braid_env::random::Random;
use braid_kv::{KeySpan, TxnOptions};
use braid_sql::{Outcome, Session};
use braid_types::SqlResult;

fn copy_in(s: &mut Session, sql: &str, pieces: &[&[u8]]) -> SqlResult<u64> {
    let statement = s.parse_script(sql)?.remove(0);
    let p = s.prepare(statement, &[])?;
    let Outcome::CopyIn(mut c) = s.execute(&p, vec![])? else { panic!("not a COPY FROM STDIN") };
    for piece in pieces {
        c.feed(piece)?;
    }
    c.finish()
}

fn copy_out(s: &mut Session, sql: &str) -> Vec<u8> {
    let statement = s.parse_script(sql).unwrap().remove(0);
    let p = s.prepare(statement, &[]).unwrap();
    let Outcome::CopyOut(mut c) = s.execute(&p, vec![]).unwrap() else { panic!("not a COPY TO") };
    let (mut out, mut row) = (Vec::new(), Vec::new());
    while c.next_row(&mut row).unwrap() {
        out.extend_from_slice(&row);
    }
    out
}

#[test]
fn text_csv_and_binary_round_trip() {
    let s = &mut session(&database());
    run(s, "create table p (id int primary key); insert into p values (1), (2)");
    run(
        s,
        "create table t (id int, n int, x text, d date default '2020-01-01', primary key (id, n)) \
            interleave in parent p on delete cascade",
    );
    let n = copy_in(
        s,
        "copy t (id, n, x) from stdin",
        &[b"1\t1\ta\\tb\n1\t2", b"\t\\N\n2\t1\tz\n\\.\n"],
    );
    assert_eq!(n.unwrap(), 3);
    assert_eq!(rows(s, "select * from t order by id, n")[1], "1|2|NULL|2020-01-01");
    for format in ["text", "csv", "binary"] {
        let data = copy_out(s, &format!("copy t to stdout (format {format})"));
        run(s, "delete from t");
        let n = copy_in(s, &format!("copy t from stdin with (format {format})"), &[&data]);
        assert_eq!(n.unwrap(), 3, "{format}");
        assert_eq!(rows(s, "select x from t where id = 1 and n = 1"), ["a\tb"]);
    }
    let data = copy_out(s, "copy (select n, x from t where id = 2) to stdout csv header");
    assert_eq!(String::from_utf8(data).unwrap(), "n,x\n1,z\n");
}

#[test]
fn errors_name_the_place_and_nothing_stays() {
    let s = &mut session(&database());
    run(s, "create table t (id int primary key, n int)");
    let e = copy_in(s, "copy t from stdin csv", &[b"1,1\n2,x\n"]).unwrap_err();
    assert_eq!(e.state().0, "22P02");
    assert_eq!((e.context(), e.detail()), (Some("COPY t, line 2, column n: \"x\""), None));
    let long = format!("1,1\n2,{}\n", "9".repeat(120));
    let e = copy_in(s, "copy t from stdin csv", &[long.as_bytes()]).unwrap_err();
    let shown = format!("COPY t, line 2, column n: \"{}...\"", "9".repeat(100));
    assert_eq!((e.state().0, e.context()), ("22003", Some(&*shown)));
    let e = copy_in(s, "copy t from stdin csv", &[b"1,1\n1,2\n"]).unwrap_err();
    assert_eq!(e.context(), Some("COPY t, line 2"));
    assert_eq!(copy_in(s, "copy t from stdin csv", &[b"1\n"]).unwrap_err().state().0, "22P04");
    assert_eq!(rows(s, "select count(*) from t"), ["0"]);
    run(s, "begin");
    assert!(copy_in(s, "copy t from stdin csv", &[b"3,3\n"]).is_ok());
    run(s, "rollback");
    assert_eq!(rows(s, "select count(*) from t"), ["0"]);
}

#[test]
fn header_match_compares_names() {
    let s = &mut session(&database());
    run(s, "create table t (id int primary key, n int)");
    let sql = "copy t from stdin (format csv, header match)";
    assert_eq!(copy_in(s, sql, &[b"id,n\n1,1\n"]).unwrap(), 1);
    for wrong in ["n,id\n2,2\n", "id\n2\n", "id,x\n2,2\n"] {
        let e = copy_in(s, sql, &[wrong.as_bytes()]).unwrap_err();
        assert_eq!(e.state().0, "22P04", "{wrong}: {e}");
    }
    assert_eq!(copy_in(s, "copy t from stdin csv header", &[b"x,y\n3,3\n"]).unwrap(), 1);
    assert_eq!(rows(s, "select id from t order by id"), ["1", "3"]);
}

fn feed(s: &mut Session, sql: &str, lines: impl Iterator<Item = String>) -> SqlResult<u64> {
    let statement = s.parse_script(sql)?.remove(0);
    let p = s.prepare(statement, &[])?;
    let Outcome::CopyIn(mut copy) = s.execute(&p, Vec::new())? else { panic!("COPY expected") };
    for line in lines {
        if let Err(e) = copy.feed(line.as_bytes()) {
            s.fail();
            return Err(e);
        }
    }
    copy.finish().inspect_err(|_| s.fail())
}

/// Above what is written row by row.
const MANY: u64 = 12_000;

#[test]
fn many_rows_go_in_as_one_load() {
    let db = database();
    let s = &mut session(&db);
    run(
        s,
        "create table p (id int primary key);
         insert into p values (1), (2), (3);
         create table t (id int primary key, u int unique, n int default 7, p int references p,
             check (n < 100)); create index on t (n)",
    );
    let row = |n: u64| format!("{}\t{}\t{}\n", (n * 7919) % MANY, n, n % 3 + 1);
    let copy = "copy t (id, u, p) from stdin";
    assert_eq!(feed(s, copy, (0..MANY).map(row)).unwrap(), MANY);
    assert_eq!(db.coordinator().describe_locks().lines, "");
    assert_eq!(rows(s, "select count(*) from t where n = 7"), [MANY.to_string()]);
    assert_eq!(rows(s, "select id, p from t where u = 1"), ["7919|2"]);
    // Rows that were there are found; of a load that fails nothing stays.
    let shifted = |by: u64| (0..MANY).map(move |n| format!("{}\t{}\t1\n", n + by, n + MANY + by));
    let e = feed(s, copy, shifted(MANY - 1)).unwrap_err();
    assert_eq!((e.state().0, e.detail()), ("23505", Some("Key (id)=(11999) already exists.")));
    let e = feed(s, copy, (0..MANY).map(|n| format!("{}\t{n}\t1\n", n + MANY))).unwrap_err();
    assert_eq!((e.state().0, e.detail()), ("23505", Some("Key (u)=(0) already exists.")));
    let twice = |n: u64| format!("{}\t{}\t1\n", MANY + n, MANY + n % (MANY - 1));
    assert_eq!(feed(s, copy, (0..MANY).map(twice)).unwrap_err().state().0, "23505");
    let orphan =
        |n: u64| format!("{}\t{}\t{}\n", MANY + n, MANY + n, if n == 11_000 { 9 } else { 1 });
    let e = feed(s, copy, (0..MANY).map(orphan)).unwrap_err();
    assert_eq!(e.state().0, "23503");
    assert!(e.context().unwrap_or_default().contains("line 11001"), "{e}");
    assert_eq!(rows(s, "select count(*) from t"), [MANY.to_string()]);
    assert_eq!(feed(s, copy, shifted(MANY)).unwrap(), MANY);
    assert_eq!(rows(s, "select count(*) from t where n = 7"), [(2 * MANY).to_string()]);
}

#[test]
fn the_rows_of_a_query_go_in_as_one_load() {
    let db = database();
    let s = &mut session(&db);
    let count = |s: &mut Session, of: &str| rows(s, &format!("select count(*) from {of}"));
    run(s, "create table a (id int primary key, u int unique)");
    feed(s, "copy a from stdin", (1..=MANY).map(|n| format!("{n}\t{}\n", n * 2))).unwrap();
    // A statement never meets its own rows, also when it reads the table that it fills.
    assert_eq!(tag(s, "insert into a select id + 12000, u + 24000 from a"), "INSERT 0 12000");
    assert_eq!(db.coordinator().describe_locks().lines, "");
    assert_eq!(count(s, "a"), ["24000"]);
    assert_eq!(rows(s, "select u from a where id = 24000"), ["48000"]);
    let e = error(s, "insert into a select id + 23999, u + 48000 from a");
    assert_eq!((e.state().0, e.detail()), ("23505", Some("Key (id)=(24000) already exists.")));
    assert_eq!(state(s, "insert into a select id + 24000, 7 from a"), "23505");
    let middle = "insert into a select id + 24000, 48000 + 2 * (id / (id - 20000)) from a";
    assert_eq!(state(s, middle), "22012", "an error in the middle leaves nothing");
    assert_eq!(count(s, "a"), ["24000"]);
    assert_eq!(tag(s, "create table b as select u, id from a where id > 12000"), "SELECT 12000");
    assert_eq!(rows(s, "select u from b where id = 12001"), ["24002"]);
    // In a block: a table of its own, and one that others know.
    run(s, "begin; create table c (id int primary key); insert into c select id from a");
    run(s, "insert into b select 1, id from a; commit");
    assert_eq!((count(s, "c"), count(s, "b")), (vec!["24000".into()], vec!["36000".into()]));
}

#[test]
fn a_block_sees_what_it_loaded_into_its_own_table() {
    for level in ["serializable", "repeatable read", "read committed"] {
        let db = database();
        let s = &mut session(&db);
        let lines = || (0..MANY).map(|n| format!("{n}\t{}\n", n % 10));
        run(s, "create table other (id int primary key); insert into other values (1)");
        run(s, &format!("begin isolation level {level}; select * from other"));
        run(s, "create table t (id int primary key, n int)");
        feed(s, "copy t from stdin", lines()).unwrap();
        assert_eq!(rows(s, "select count(*) from t"), [MANY.to_string()], "{level}");
        run(s, "create index i on t (n); delete from t where n = 3");
        assert_eq!(rows(s, "select count(*) from t where n = 4"), [(MANY / 10).to_string()]);
        assert_eq!(rows(s, "select count(*) from t where n = 3"), ["0"]);
        run(s, "commit");
        assert_eq!(rows(s, "select count(*) from t"), [(MANY / 10 * 9).to_string()]);
        // A table that was emptied in the block takes a load too, and the old rows stay away.
        run(s, "begin; truncate t");
        feed(s, "copy t from stdin", lines()).unwrap();
        run(s, "commit");
        assert_eq!(rows(s, "select count(*) from t"), [MANY.to_string()], "{level}");
        assert_eq!(rows(s, "select count(*) from t where n = 3"), [(MANY / 10).to_string()]);
        run(s, "begin; truncate t");
        feed(s, "copy t from stdin", lines().take(11_000)).unwrap();
        run(s, "rollback");
        assert_eq!(rows(s, "select count(*) from t"), [MANY.to_string()], "{level}");
        // Back to a savepoint: row by row, since that can be taken back.
        if level == "repeatable read" {
            continue;
        }
        run(s, "begin; truncate t; savepoint s");
        feed(s, "copy t from stdin", lines().take(10_500)).unwrap();
        run(s, "rollback to s; commit");
        assert_eq!(rows(s, "select count(*) from t"), ["0"], "{level}");
    }
}

#[test]
fn a_load_into_a_family_finds_parents_and_leaves_others_alone() {
    let db = database();
    let s = &mut session(&db);
    run(
        s,
        "create table p (id int primary key, n int);
         create table c (id int, k int, u int, primary key (id, k)) interleave in parent p on delete cascade;
         create unique index on c (u)",
    );
    feed(s, "copy p from stdin", (0..11_000).map(|n| format!("{n}\t0\n"))).unwrap();
    let lines =
        |from: u64| (0..MANY).map(move |n| format!("{}\t{}\t{}\n", n % 6_000, n + from, n + from));
    feed(s, "copy c from stdin", lines(0)).unwrap();
    assert_eq!(rows(s, "select count(*) from c"), [MANY.to_string()]);
    run(s, "delete from p where id < 4000");
    assert_eq!(rows(s, "select count(*) from c"), ["4000"]);
    // The erased rows' entries in the unique index are in nobody's way.
    let free = |n: u64| format!("{}\t{n}\t{n}\n", 4_000 + n % 4_000);
    feed(s, "copy c from stdin", (100_000..100_000 + MANY).map(free)).unwrap();
    run(s, "delete from c where u >= 100000");
    let reuse = (0..4_000).map(|n| format!("{}\t{}\t{n}\n", n + 4_000, n + 500_000));
    assert_eq!(feed(s, "copy c from stdin", reuse).unwrap(), 4_000);
    let e = feed(s, "copy c from stdin", lines(900_000)).unwrap_err();
    assert_eq!(e.state().0, "23503", "parents below 4,000 are gone");
}

#[test]
fn other_writers_wait_for_a_load_and_readers_do_not() {
    let db = database();
    let (a, b) = (&mut session(&db), &mut session(&db));
    run(a, "create table t (id int primary key); insert into t values (-1)");
    let statement = a.parse_script("copy t from stdin").unwrap().remove(0);
    let p = a.prepare(statement, &[]).unwrap();
    let Outcome::CopyIn(mut copy) = a.execute(&p, Vec::new()).unwrap() else { panic!() };
    run(b, "insert into t values (-2)");
    for n in 0..MANY {
        copy.feed(format!("{n}\n").as_bytes()).unwrap();
    }
    run(b, "set lock_timeout = '50ms'");
    assert_eq!(state(b, "insert into t values (-3)"), "55P03");
    assert_eq!(rows(b, "select count(*) from t"), ["2"]);
    copy.finish().unwrap();
    run(b, "insert into t values (-3)");
    assert_eq!(rows(b, "select count(*) from t"), [(MANY + 3).to_string()]);
}

/// Rows that go one by one, alone or in a block: others write the keys between them meanwhile.
#[test]
fn a_copy_commits_beside_inserts_of_the_keys_between_its_own() {
    for level in ["serializable", "repeatable read", "read committed"] {
        for (count, block) in [(5_000, false), (5_000, true), (MANY, true)] {
            let db = database();
            let (a, b) = (&mut session(&db), &mut session(&db));
            run(a, "create table t (id int primary key, u int unique); create index on t (u, id)");
            run(a, &format!("set default_transaction_isolation = '{level}'"));
            run(b, "set lock_timeout = '50ms'");
            if block {
                run(a, "begin; select count(*) from t where id = -2");
            }
            let statement = a.parse_script("copy t from stdin").unwrap().remove(0);
            let p = a.prepare(statement, &[]).unwrap();
            let Outcome::CopyIn(mut copy) = a.execute(&p, Vec::new()).unwrap() else { panic!() };
            let mut odd = 0;
            for n in 0..count {
                copy.feed(format!("{}\t{}\n", 2 * n, 2 * n).as_bytes()).unwrap();
                if n % 1_000 == 500 {
                    // Behind what was fed, and where it will come to.
                    for key in [2 * n - 777, 2 * n + 777] {
                        run(b, &format!("insert into t values ({key}, {key})"));
                        odd += 1;
                    }
                }
            }
            let what = format!("{level}, {count} rows, in a block: {block}");
            assert_eq!(copy.finish().unwrap_or_else(|e| panic!("{what}: {e}")), count, "{what}");
            if block {
                run(b, "insert into t values (-1, -1)");
                odd += 1;
                run(a, "commit");
            }
            let all = (count + odd).to_string();
            assert_eq!(rows(b, "select count(*) from t").concat(), all, "{what}");
            assert_eq!(rows(b, "select count(*) from t where u >= -1"), [all], "{what}");
        }
    }
}

#[test]
fn what_a_rolled_back_load_left_behind_is_erased_at_the_next_start() {
    use braid_env::clock::WallClock;
    use braid_kv::{KeySpan, ScanOptions, Store, StoreOptions, TxnOptions};
    let fs = std::sync::Arc::new(braid_env::fs::MemFs::new());
    let open = || {
        let mut options = StoreOptions::new(fs.clone(), "db", std::sync::Arc::new(WallClock));
        options.engine.row_class = braid_keys::row_class;
        let store = Store::open(options).unwrap();
        let general = std::sync::Arc::new(braid_sql::NoGeneralQueries);
        braid_sql::Database::open(store.coordinator(), general).unwrap()
    };
    let stored = |db: &braid_sql::Database| {
        let txn = db.coordinator().begin(TxnOptions::default()).unwrap();
        let mut scan = txn.scan(KeySpan::new(vec![2], vec![255]), ScanOptions::default()).unwrap();
        let mut rows = 0;
        while scan.next().unwrap().is_some() {
            rows += 1;
        }
        rows
    };
    let db = open();
    let s = &mut session(&db);
    run(s, "create table kept (id int primary key); insert into kept values (1)");
    run(s, "begin; create table t (id int primary key)");
    feed(s, "copy t from stdin", (0..MANY).map(|n| format!("{n}\n"))).unwrap();
    run(s, "rollback; begin; create table u (id int primary key)");
    feed(s, "copy u from stdin", (0..MANY).map(|n| format!("{n}\n"))).unwrap();
    run(s, "commit");
    assert_eq!(stored(&db), 2 * MANY + 1);
    *s = session(&database());
    drop(db);
    let db = open();
    assert_eq!(stored(&db), MANY + 1);
    assert_eq!(rows(&mut session(&db), "select count(*) from u"), [MANY.to_string()]);
}

#[test]
fn large_tables_are_rewritten_as_loads() {
    let db = database();
    let s = &mut session(&db);
    run(s, "create table t (a int, b int, c text)");
    feed(s, "copy t from stdin", (0..MANY).map(|n| format!("{n}\t{}\tx{n}\n", n % 100))).unwrap();
    run(s, "create index i on t (b)");
    assert_eq!(rows(s, "select count(*) from t where b = 5"), [(MANY / 100).to_string()]);
    assert_eq!(state(s, "create unique index on t (b)"), "23505");
    run(s, "alter table t alter column c type int using substr(c, 2)::int");
    assert_eq!(rows(s, "select a from t where b = 5 and c = 105"), ["105"]);
    assert_eq!(state(s, "alter table t add primary key (b)"), "23505");
    run(s, "alter table t add primary key (a)");
    assert_eq!(rows(s, "select b, c from t where a = 777"), ["77|777"]);
    assert_eq!(rows(s, "select count(*) from t where b = 5"), [(MANY / 100).to_string()]);
    run(s, "alter table t add column d int generated always as (a + 1) stored check (d > 0)");
    assert_eq!(rows(s, "select d from t where a = 5"), ["6"]);
    assert_eq!(rows(s, "select count(*) from t where b = 5"), [(MANY / 100).to_string()]);
    run(s, "begin; create index j on t (c); rollback; create index j on t (c)");
    assert_eq!(rows(s, "select a from t where c = 42"), ["42"]);
    assert_eq!(rows(s, "select count(*) from t"), [MANY.to_string()]);
}

/// Two threads read, sort and write; what they make is what one makes.
#[test]
fn an_index_is_built_by_several_threads() {
    let db = database();
    let mut s = session(&db);
    run(&mut s, "CREATE TABLE t (a int PRIMARY KEY, b int, c text, d int)");
    // Nothing in the texts repeats, so that they stay large.
    let row = |n: u64| {
        let mut random = Random::seeded(n);
        let text: String = (0..8).map(|_| format!("{:016x}", random.next_u64())).collect();
        format!("{n}\t{}\t{text}\t{}\n", n * 7919 % 100_003, n % 80_000)
    };
    let data: String = (1..=90_000).map(row).collect();
    copy_in(&mut s, "COPY t FROM STDIN", &[data.as_bytes()]).unwrap();
    let txn = db.coordinator().begin(TxnOptions::default()).unwrap();
    let parts = txn.divide(&KeySpan::new("", [0xff; 9].to_vec()), 2, 4 << 20).unwrap();
    assert_eq!(parts.len(), 2, "two threads have something to do");
    let built = [0, 2].map(|workers| {
        run(&mut s, &format!("SET max_parallel_maintenance_workers = {workers}"));
        run(&mut s, "CREATE UNIQUE INDEX i ON t (b, c)");
        let all = rows(&mut s, "SELECT a, b FROM t WHERE b > 0 ORDER BY b");
        let one = rows(&mut s, "SELECT a FROM t WHERE b = 7919");
        // Whichever thread comes to it.
        let twice = error(&mut s, "CREATE UNIQUE INDEX bad ON t (d)");
        assert_eq!(twice.state().0, "23505");
        assert!(twice.detail().is_some_and(|d| d.contains("is duplicated")));
        run(&mut s, "DROP INDEX i");
        (all, one)
    });
    assert_eq!((built[0].0.len(), &built[0].1), (90_000, &vec!["1".to_string()]));
    assert!(built[0] == built[1]);
    assert_eq!(state(&mut s, "SET max_parallel_maintenance_workers = -1"), "22023");
}

/// As PostgreSQL 15 answered; ON_ERROR and what belongs to it as of 17 and 18.
#[test]
fn options_say_what_is_null_and_which_rows_come() {
    let s = &mut session(&database());
    run(s, "create table t (a int, b text, c text)");
    let rows_of = "1,x,y\n2,\"N\",N\n3,N,\"N\"\n";
    let sql = "copy t from stdin with (format csv, null 'N', force_null (b), force_not_null (c))
               where a > 1";
    assert_eq!(copy_in(s, sql, &[rows_of.as_bytes()]).unwrap(), 2);
    assert_eq!(rows(s, "select * from t"), ["2|NULL|N", "3|NULL|N"]);
    run(s, "delete from t");
    let old = "copy t from stdin csv null 'N' force not null b, c force null a where b = 'N'";
    assert_eq!(copy_in(s, old, &[b"1,N,\"N\"\n", b"\"N\",x,N\n"]).unwrap(), 1);
    assert_eq!(rows(s, "select * from t"), ["1|N|N"]);
    run(s, "create table g (a int, g int generated always as (a * 2) stored)");
    for (sql, wanted) in [
        ("copy t (a) from stdin with (format csv, force_null (b))", "42P10"),
        ("copy t from stdin with (force_null (b))", "0A000"),
        ("copy t to stdout with (format csv, force_not_null (b))", "0A000"),
        ("copy t to stdout where a > 1", "42601"),
        ("copy g from stdin where g > 1", "42P10"),
        ("copy t from stdin where nope > 1", "42703"),
        ("copy t from stdin where a", "42804"),
        ("copy t from stdin with (format binary, on_error ignore)", "42601"),
        ("copy t from stdin with (on_error maybe)", "22023"),
        ("copy t from stdin with (reject_limit 3)", "22023"),
    ] {
        let e = copy_in(s, sql, &[]).expect_err(sql);
        assert_eq!(e.state().0, wanted, "{sql}: {e:?}");
    }
    run(s, "delete from t");
    s.take_notices();
    let ignore = "copy t from stdin with (on_error ignore, log_verbosity verbose)";
    let input = b"1\tx\ty\ntwo\tx\ty\n3\tx\ty\n9999999999\tx\ty\n";
    assert_eq!(copy_in(s, ignore, &[input]).unwrap(), 2);
    assert_eq!(rows(s, "select a from t"), ["1", "3"]);
    let told: Vec<String> = s.take_notices().into_iter().map(|n| n.message).collect();
    assert!(told[0].contains("at line 2 for column \"a\": \"two\""), "{told:?}");
    assert_eq!(told[2], "2 rows were skipped due to data type incompatibility");
    let limited = "copy t from stdin with (on_error ignore, reject_limit 1)";
    let e = copy_in(s, limited, &[input]).unwrap_err();
    let place = "COPY t, line 4, column a: \"9999999999\"";
    assert_eq!((e.state().0, e.context()), ("22P02", Some(place)));
    // A row that is no row is an error all the same.
    assert_eq!(copy_in(s, ignore, &[b"1\tx\n"]).unwrap_err().state().0, "22P04");
    assert_eq!(rows(s, "select count(*) from t"), ["2"]);
}

#[test]
fn files_are_those_of_the_folder_for_imports() {
    let files = harness::import_files::Files::new();
    let (_, s) = &mut files.database();
    run(s, "create table t (a int, b text)");
    files.put("in/a.csv", "1,x\n2,\"y\nz\"\n");
    assert_eq!(tag(s, "copy t from 'in/a.csv' csv"), "COPY 2");
    assert_eq!(tag(s, "copy t to 'in/b.csv' csv"), "COPY 2");
    assert_eq!(files.text("in/b.csv"), "1,x\n2,\"y\nz\"\n");
    run(s, "delete from t where a = 1");
    assert_eq!(tag(s, "copy t to 'in/b.csv' csv"), "COPY 1", "it is replaced");
    assert_eq!(files.text("in/b.csv"), "2,\"y\nz\"\n");
    for sql in ["copy t from '/etc/passwd'", "copy t from '../x'", "copy t to '/tmp/x.csv'"] {
        assert_eq!(state(s, sql), "42501", "{sql}");
    }
    let e = error(s, "copy t from 'in/b.csv' with (format csv, delimiter ';')");
    assert!(e.detail().unwrap().contains("file \"in/b.csv\""), "{e:?}");
    assert_eq!(state(s, "copy t from 'in/none.csv'"), "58P01");
}

/// What returns rows may write: it is done when the first of them comes.
#[test]
fn rows_of_statements_that_write_go_out_once_these_are_committed() {
    let db = database();
    let (s, other) = (&mut session(&db), &mut session(&db));
    run(s, "create table t (id int primary key, n int); insert into t values (1, 1), (2, 2)");
    let text = |s: &mut Session, sql: &str| String::from_utf8(copy_out(s, sql)).unwrap();
    let insert = "copy (insert into t values (3, 3), (4, null) returning id, n) to stdout";
    assert_eq!(text(s, insert), "3\t3\n4\t\\N\n");
    assert_eq!(rows(other, "select count(*) from t"), ["4"]);
    let update = "copy (update t set n = 10 where id = 1 returning *) to stdout csv header";
    assert_eq!(text(s, update), "id,n\n1,10\n");
    let upsert = "copy (insert into t values (1, 5) on conflict ((id)) where true do update \
                  set n = excluded.n returning n) to stdout";
    assert_eq!(text(s, upsert), "5\n");
    run(s, "begin");
    assert_eq!(text(s, "copy (delete from t where id > 2 returning id) to stdout"), "3\n4\n");
    assert_eq!(rows(other, "select count(*) from t"), ["4"]);
    run(s, "rollback");
    assert_eq!(text(s, "copy (delete from t where id > 9 returning id) to stdout"), "");
    assert_eq!(rows(s, "select count(*) from t"), ["4"]);
    let e = error(s, "copy (delete from t) to stdout");
    assert_eq!((e.state().0, e.message()), ("0A000", "COPY query must have a RETURNING clause"));
    assert_eq!(state(s, "copy (insert into t values (1, 1) returning id) to stdout"), "23505");
}

/// A load is filled while later rows are read: the first bad row is told all the same.
#[test]
fn the_first_bad_row_of_a_load_is_told() {
    let s = &mut session(&database());
    run(s, "create table t (id int primary key, n int check (n < 100), d date)");
    let line = |id: u32, bad: &[(u32, &str)]| match bad.iter().find(|(at, _)| *at == id) {
        Some((_, line)) => format!("{line}\n"),
        None => format!("{id}\t{}\t2026-01-{:02}\n", id % 100, id % 28 + 1),
    };
    let checked = (15_500, "15500\t100\t2026-01-01");
    let unread = |at| (at, "x\t1\t2026-01-01");
    let short = |at| (at, "1");
    type Case<'a> = (&'a [(u32, &'a str)], &'a str, &'a str);
    let cases: [Case<'_>; 5] = [
        (&[checked, unread(15_501)], "23514", "COPY t, line 15500"),
        (&[checked, short(15_600)], "23514", "COPY t, line 15500"),
        (&[unread(15_499), checked], "22P02", "COPY t, line 15499, column id: \"x\""),
        (&[checked, (15_501, "15501\t100\t2026-01-01")], "23514", "COPY t, line 15500"),
        (&[(19_999, "19999\t100\t2026-01-01")], "23514", "COPY t, line 19999"),
    ];
    for (bad, state, place) in cases {
        // In pieces that end anywhere, and all at once.
        for piece in [777, usize::MAX] {
            let all: String = (1..20_000).map(|id| line(id, bad)).collect();
            let pieces: Vec<&[u8]> = all.as_bytes().chunks(piece).collect();
            let e = copy_in(s, "copy t from stdin", &pieces).unwrap_err();
            assert_eq!((e.state().0, e.context()), (state, Some(place)), "{bad:?}: {e}");
            assert_eq!(rows(s, "select count(*) from t"), ["0"]);
        }
    }
    let all: String = (1..20_000).map(|id| line(id, &[])).collect();
    assert_eq!(copy_in(s, "copy t from stdin", &[all.as_bytes()]).unwrap(), 19_999);
    assert_eq!(rows(s, "select count(*), sum(n) from t"), ["19999|990000"]);
}
