//! Schema changes beside other sessions, at every isolation level, and what hangs on what they
//! change.

use crate::harness::actors::Stage;
use crate::harness::{database, error, rows, run, session, session_in, state, tag};

const LEVELS: [&str; 3] = ["serializable", "repeatable read", "read committed"];

/// Runs a schema change in a block of its own that has to wait for an uncommitted insert.
fn behind_an_insert(level: &str, setup: &str, insert: &str, change: &str) -> (bool, bool) {
    let db = database();
    run(&mut session(&db), setup);
    let mut stage = Stage::new(&db, 2, "");
    stage.run(0, "begin").unwrap();
    stage.run(0, insert).unwrap();
    stage.run(1, &format!("begin isolation level {level}; select * from other")).unwrap();
    stage.send(1, change);
    let waited = stage.waits(1);
    stage.run(0, "commit").unwrap();
    let worked = stage.take(1).is_ok();
    stage.run(1, if worked { "commit" } else { "rollback" }).unwrap();
    if worked {
        let s = &mut session(&db);
        assert_eq!(rows(s, "select id from t where n = 5"), ["2"], "{level}: {change}");
        assert_eq!(rows(s, "select count(*) from t where n > 0"), ["2"], "{level}: {change}");
    }
    (waited, worked)
}

#[test]
fn an_index_built_behind_an_insert_is_complete() {
    let setup = "create table other (id int primary key);
        create table t (id int primary key, n int); insert into t values (1, 1)";
    for level in LEVELS {
        for change in ["create index i on t (n)", "create unique index i on t (n)"] {
            let result = behind_an_insert(level, setup, "insert into t values (2, 5)", change);
            // Its view could not use an index over what came later.
            assert_eq!(result, (true, level != "repeatable read"), "{level}");
        }
    }
}

#[test]
fn constraints_added_behind_an_insert_are_proven() {
    let setup = "create table other (id int primary key); insert into other values (1);
        create table t (id int primary key, n int, o int default 1); insert into t values (1, 1)";
    for level in LEVELS {
        for (insert, change, works) in [
            ("insert into t values (2, 5)", "alter table t add check (n < 9)", true),
            ("insert into t values (2, 15)", "alter table t add check (n < 9)", false),
            ("insert into t values (2, 5)", "alter table t alter n set not null", true),
            ("insert into t values (2, null)", "alter table t alter n set not null", false),
            (
                "insert into t values (2, 5, 1)",
                "alter table t add foreign key (o) references other",
                true,
            ),
            (
                "insert into t values (2, 5, 7)",
                "alter table t add foreign key (o) references other",
                false,
            ),
            ("insert into t values (2, 1)", "alter table t add unique (n)", false),
        ] {
            let result = behind_an_insert(level, setup, insert, change);
            let works = works && level != "repeatable read";
            assert_eq!(result, (true, works), "{level}: {change} behind {insert}");
        }
    }
}

#[test]
fn partitions_change_behind_an_insert_with_all_its_rows() {
    const SETUP: &str = "create table other (id int primary key);
        create table t (a int, b int) partition by range (a);
        create table p partition of t for values from (0) to (10);
        create table rest partition of t default;
        create table j (a int, b int);
        insert into t values (1, 1); insert into j values (300, 1)";
    let made = "create table q partition of t for values from (20) to (30)";
    let attached = "alter table t attach partition j for values from (300) to (400)";
    let lost = "select count(*) from t where a between 0 and 9";
    // Who inserts what meanwhile, what waits for it, and what is there after it, if it works.
    let cases = [
        ("insert into t values (25, 1)", made, None),
        ("insert into j values (900, 1)", attached, None),
        ("insert into t values (350, 1)", attached, None),
        ("insert into j values (301, 1)", attached, Some(("select count(*) from t", "3"))),
        ("insert into t values (2, 1)", "alter table t detach partition p", Some((lost, "0"))),
        (
            "insert into t values (2, 1)",
            "alter table t detach partition p",
            Some(("select count(*) from p", "2")),
        ),
        ("insert into t values (2, 1)", "drop table p", Some((lost, "0"))),
        ("insert into t values (2, 1)", "truncate p", Some((lost, "0"))),
    ];
    for level in LEVELS {
        for (insert, change, after) in cases {
            let db = database();
            run(&mut session(&db), SETUP);
            let mut stage = Stage::new(&db, 2, "");
            stage.run(0, "begin").unwrap();
            stage.run(0, insert).unwrap();
            stage.run(1, &format!("begin isolation level {level}; select * from other")).unwrap();
            stage.send(1, change);
            assert!(stage.waits(1), "{level}: {change} behind {insert}");
            stage.run(0, "commit").unwrap();
            let worked = stage.take(1).is_ok();
            assert_eq!(
                worked,
                after.is_some() && level != "repeatable read",
                "{level}: {change} behind {insert}"
            );
            stage.run(1, if worked { "commit" } else { "rollback" }).unwrap();
            let s = &mut session(&db);
            if let Some((query, expected)) = after.filter(|_| worked) {
                assert_eq!(rows(s, query), [expected], "{level}: {change} behind {insert}");
            }
        }
    }
}

#[test]
fn rows_can_be_migrated_at_every_level() {
    for level in LEVELS {
        let s = &mut session(&database());
        run(
            s,
            "create table t (id int primary key, n int, d text); insert into t values (1, 1, '7')",
        );
        run(s, &format!("set default_transaction_isolation = '{level}'; begin"));
        run(s, "create index i on t (n); alter table t add check (n > 0)");
        run(s, "alter table t alter n set not null; alter table t alter d type int using d::int");
        run(s, "alter table t add column x int default 3; update t set x = 4; commit");
        assert_eq!(rows(s, "select * from t where n = 1"), ["1|1|7|4"], "{level}");
    }
}

#[test]
fn a_count_beside_a_truncate_is_serializable() {
    for read in [
        "select count(*) from c",
        "select * from c where id = 1",
        "select c.k from p join c on c.id = p.id where p.id = 1",
    ] {
        let db = database();
        let (a, b) = (&mut session(&db), &mut session(&db));
        run(a, "create table p (id int primary key); insert into p values (1);
            create table c (id int, k int, primary key (id, k)) interleave in parent p on delete cascade;
            insert into c values (1, 1); create table log (id int primary key)");
        run(a, "begin; select count(*) from log");
        run(a, read);
        run(b, "begin; select count(*) from log; truncate c; commit");
        // a has seen the rows; b has not seen what a writes: one of them must fail.
        run(a, "insert into log values (1)");
        assert_eq!(state(a, "commit"), "40001", "{read}");
    }
}

#[test]
fn a_transaction_depends_only_on_the_descriptors_it_used() {
    let db = database();
    let (a, b) = (&mut session(&db), &mut session(&db));
    run(
        a,
        "create table t (id int primary key); create table u (id int primary key); create database d",
    );
    for change in [
        "create table v (id int primary key)",
        "alter table u add column x int",
        "create index i on u (id)",
        "truncate u",
        "drop table u",
    ] {
        run(a, "begin; select * from t");
        run(b, change);
        run(
            a,
            "insert into t select 1 where false; delete from t; insert into t values (1); commit",
        );
    }
    run(a, "begin; select * from t");
    run(b, "alter table t add column x int; insert into v values (1)");
    run(a, "insert into v values (2)");
    let e = error(a, "commit");
    assert_eq!(e.state().0, "40001");
    let detail = e.detail().unwrap_or_default().to_string();
    assert!(detail.contains("/System/Shape/"), "{detail}");
}

#[test]
fn what_becomes_of_other_objects_and_databases_ends_no_block() {
    let db = database();
    let (a, b) = (&mut session(&db), &mut session(&db));
    run(
        a,
        "create table p (id int primary key); insert into p values (1);
         create table t (id int primary key, n int, p int references p); create index on t (n);
         create table u (id int primary key, n int); create database d",
    );
    let d = &mut session_in(&db, "d");
    let here = [
        "create schema s",
        "create table s.t (id int primary key, n int)",
        "create sequence q",
        "create type mood as enum ('calm')",
        "create view w as select * from u",
        "create role reader",
        "grant select on u to reader",
        "comment on table u is 'other'",
        "alter table u add check (n > 0)",
        "alter table u rename to v",
        "create database e",
        "drop database e",
    ];
    let elsewhere = [
        "create table t (id int primary key, n int)",
        "insert into t values (1, 1); alter table t add column x int default 7",
        "create index i on t (n)",
        "alter table t alter n type bigint",
        "truncate t",
        "drop table t",
        "create table p (id int primary key); create table c (id int, k int, primary key (id, k))
            interleave in parent p on delete cascade; drop table p cascade",
    ];
    let all = here.map(|change| (false, change)).into_iter().chain(elsewhere.map(|c| (true, c)));
    for (n, (in_d, change)) in all.enumerate() {
        let level = LEVELS[n % 3];
        run(a, &format!("begin isolation level {level}; select * from t where n = 1"));
        run(a, &format!("insert into t values ({n}, 1, 1)"));
        run(if in_d { &mut *d } else { &mut *b }, change);
        run(a, &format!("update t set n = 2 where id = {n}; select * from p; commit"));
    }
    assert_eq!(rows(a, "select count(*) from t where n = 2"), ["19"]);
}

#[test]
fn conflicts_print_keys_readably() {
    let db = database();
    let (a, b) = (&mut session(&db), &mut session(&db));
    run(a, "create table t (id int primary key, n int); insert into t values (7, 1)");
    run(a, "begin isolation level repeatable read; select * from t");
    run(b, "update t set n = 2 where id = 7");
    let detail =
        error(a, "update t set n = 3 where id = 7").detail().unwrap_or_default().to_string();
    assert!(detail.starts_with("/Table/") && detail.contains("/7 has changed"), "{detail}");
}

#[test]
fn tables_that_refer_to_each_other_are_dropped_together() {
    let s = &mut session(&database());
    run(s, "create table a (id int primary key); create table b (id int primary key references a)");
    run(s, "alter table a add foreign key (id) references b");
    assert_eq!(state(s, "drop table a"), "2BP01");
    assert_eq!(state(s, "drop table b"), "2BP01");
    assert_eq!(tag(s, "drop table a, b"), "DROP TABLE");
    run(
        s,
        "create table p (id int primary key);
        create table c (id int, k int, primary key (id, k)) interleave in parent p",
    );
    assert_eq!(state(s, "drop table p"), "2BP01");
    run(s, "drop table p, c");
    run(s, "create table a (id int primary key)");
    assert_eq!(state(s, "drop table a, missing"), "42P01");
    assert_eq!(rows(s, "show tables").len(), 1);
}

#[test]
fn a_type_change_takes_along_what_hangs_on_the_column() {
    let s = &mut session(&database());
    run(
        s,
        "create table p (id int primary key);
        create table t (id int primary key, n int default 7 check (n < 100), r int references p,
            g int generated always as (r + 1) stored, v varchar(9) check (v <> 'bad'))",
    );
    run(s, "insert into p values (1); insert into t (id, n, r) values (1, 50, 1)");
    assert_eq!(
        state(s, "alter table t alter r type bigint"),
        "0A000",
        "a generated column uses it"
    );
    run(s, "alter table t drop column g");
    assert_eq!(state(s, "alter table t alter r type text using r::text"), "42804");
    assert_eq!(state(s, "alter table t alter n type int using n * 10"), "23514");
    // The check compares with a number: it means nothing over text.
    assert!(matches!(state(s, "alter table t alter n type text using n::text"), "42883" | "42804"));
    run(s, "alter table t alter n type bigint; insert into t (id, r) values (2, 1)");
    assert_eq!(rows(s, "select n from t where id = 2"), ["7"]);
    assert_eq!(state(s, "insert into t (id, n) values (3, 100)"), "23514");
    run(s, "create table d (id int primary key, n int default 7)");
    run(s, "alter table d alter n type text; insert into d (id) values (1)");
    assert_eq!(rows(s, "select n from d"), ["7"]);
    run(s, "create table e (id int primary key, b bool default true)");
    assert_eq!(state(s, "alter table e alter b type timestamp using now()"), "42804");
    run(s, "create table f (id int primary key, r int references p); insert into f values (1, 1)");
    assert_eq!(state(s, "alter table f alter r type int using r + 5"), "23503");
}

#[test]
fn cascades_are_as_long_as_the_chain() {
    let s = &mut session(&database());
    run(s, "create table t (id int primary key, up int references t on delete cascade)");
    run(s, "insert into t values (0, null)");
    for i in 1..2_000 {
        run(s, &format!("insert into t values ({i}, {})", i - 1));
    }
    assert_eq!(tag(s, "delete from t where id = 0"), "DELETE 1");
    assert_eq!(rows(s, "select count(*) from t"), ["0"]);
    run(
        s,
        "create table u (id int primary key, up int references u on update cascade on delete set null)",
    );
    run(s, "insert into u values (1, 1), (2, 1); update u set id = 5 where id = 1");
    assert_eq!(rows(s, "select * from u order by id"), ["2|5", "5|5"]);
}

#[test]
fn two_references_to_one_row_are_both_set() {
    let s = &mut session(&database());
    run(
        s,
        "create table p (id int primary key); insert into p values (1), (2);
        create table c (id int primary key, a int references p on delete set null,
            b int references p on delete set null); insert into c values (1, 1, 1), (2, 1, 2)",
    );
    run(s, "delete from p where id = 1");
    assert_eq!(rows(s, "select * from c order by id"), ["1|NULL|NULL", "2|NULL|2"]);
}

#[test]
fn the_default_that_is_set_must_exist() {
    let s = &mut session(&database());
    run(
        s,
        "create table p (id int primary key); insert into p values (1), (2);
        create table c (id int primary key, p int default 1 references p on delete set default)",
    );
    run(s, "insert into c values (1, 1), (2, 2)");
    assert_eq!(state(s, "delete from p where id = 1"), "23503", "it is its own default");
    run(s, "delete from p where id = 2");
    assert_eq!(rows(s, "select * from c order by id"), ["1|1", "2|1"]);
    run(
        s,
        "alter table c alter p set default 9; insert into p values (3); insert into c values (3, 3)",
    );
    assert_eq!(state(s, "delete from p where id = 3"), "23503");
}
