//! Who waits for whom, what a failed block gives back, and queues of work.

use crate::harness::actors::Stage;
use crate::harness::{database, rows, run, session, state, tag, try_run};

const LEVELS: [&str; 3] = ["serializable", "repeatable read", "read committed"];

#[test]
fn a_failed_block_holds_no_locks() {
    for level in LEVELS {
        let db = database();
        let (a, b) = (&mut session(&db), &mut session(&db));
        run(a, "create table t (id int primary key, n int); insert into t values (1, 0), (2, 0)");
        run(b, "set lock_timeout = '50ms'");
        run(a, &format!("begin isolation level {level}; update t set n = 1 where id = 1"));
        assert_eq!(state(a, "select 1 / 0"), "22012");
        assert_eq!(db.coordinator().describe_locks().lines, "", "{level}");
        assert_eq!(tag(b, "update t set n = 2 where id = 1"), "UPDATE 1");
        assert_eq!(state(a, "select 1"), "25P02");
        assert_eq!(tag(a, "commit"), "ROLLBACK");
        // Up to the newest savepoint: what was locked before it stays locked.
        run(a, &format!("begin isolation level {level}; update t set n = 3 where id = 1"));
        run(a, "savepoint s; update t set n = 3 where id = 2");
        assert_eq!(state(a, "select 1 / 0"), "22012");
        assert_eq!(tag(b, "update t set n = 4 where id = 2"), "UPDATE 1");
        assert_eq!(state(b, "update t set n = 4 where id = 1"), "55P03");
        run(a, "rollback to s");
        if level == "serializable" {
            // That row 2 was there is known to the client, whatever was rolled back.
            assert_eq!(state(a, "commit"), "40001");
            continue;
        }
        run(a, "commit");
        assert_eq!(rows(b, "select n from t order by id"), ["3", "4"], "{level}");
    }
}

#[test]
fn lock_timeout_holds_in_the_transaction_that_is_open() {
    let db = database();
    let (a, b) = (&mut session(&db), &mut session(&db));
    run(a, "create table t (id int primary key, n int); insert into t values (1, 0)");
    run(a, "begin; select * from t where id = 1 for update");
    run(b, "set statement_timeout = '20s'");
    for set in ["set local lock_timeout = 1", "set lock_timeout = '5ms'"] {
        run(b, "begin; select 1");
        run(b, set);
        assert_eq!(state(b, "select * from t where id = 1 for update"), "55P03", "{set}");
        run(b, "rollback");
    }
}

#[test]
fn a_deadlock_victim_lets_the_other_go_on() {
    let db = database();
    run(
        &mut session(&db),
        "create table t (id int primary key, n int); insert into t values (1, 0), (2, 0)",
    );
    let mut stage = Stage::new(&db, 2, "");
    for who in 0..2 {
        stage.run(who, "begin isolation level read committed").unwrap();
        stage.run(who, &format!("update t set n = {who} where id = {}", who + 1)).unwrap();
    }
    stage.send(0, "update t set n = 5 where id = 2");
    assert!(stage.waits(0));
    assert_eq!(stage.run(1, "update t set n = 5 where id = 1").unwrap_err().state().0, "40P01");
    assert_eq!(stage.take(0).unwrap().tag, "UPDATE 1");
    stage.run(0, "commit").unwrap();
}

#[test]
fn a_unique_value_that_is_being_deleted_is_waited_for() {
    for level in LEVELS {
        for delete in ["delete from t where id = 1", "update t set u = 9 where id = 1"] {
            for (commits, end) in [(true, "commit"), (false, "rollback")] {
                let db = database();
                run(
                    &mut session(&db),
                    "create table t (id int primary key, u int unique); insert into t values (1, 5)",
                );
                let mut stage = Stage::new(&db, 2, "");
                stage.run(0, "begin").unwrap();
                stage.run(0, delete).unwrap();
                stage.run(1, &format!("begin isolation level {level}")).unwrap();
                stage.send(1, "insert into t values (2, 5)");
                assert!(stage.waits(1), "{level}: {delete}");
                stage.run(0, end).unwrap();
                let inserted = stage.take(1);
                match inserted {
                    Ok(_) => assert!(commits),
                    Err(e) => assert_eq!((e.state().0, commits), ("23505", false), "{level}"),
                }
            }
        }
    }
}

#[test]
fn a_unique_value_in_a_family_that_is_being_erased_is_waited_for() {
    let db = database();
    run(
        &mut session(&db),
        "create table p (id int primary key); insert into p values (1), (2);
         create table c (id int, k int, u int, primary key (id, k)) interleave in parent p on delete cascade;
         create unique index on c (u); insert into c values (1, 1, 5)",
    );
    let mut stage = Stage::new(&db, 2, "");
    stage.run(0, "begin; delete from p where id = 1").unwrap();
    stage.send(1, "insert into c values (2, 1, 5)");
    assert!(stage.waits(1));
    stage.run(0, "commit").unwrap();
    assert_eq!(stage.take(1).unwrap().tag, "INSERT 0 1");
    assert_eq!(rows(&mut session(&db), "select * from c where u = 5"), ["2|1|5"]);
}

#[test]
fn workers_of_a_queue_do_not_fail_each_other() {
    for level in LEVELS {
        let db = database();
        let s = &mut session(&db);
        run(s, "create table q (id int primary key, state text); create index on q (state)");
        for i in 0..12 {
            run(s, &format!("insert into q values ({i}, 'new')"));
        }
        let mut workers: Vec<_> = (0..4).map(|_| session(&db)).collect();
        let mut done = Vec::new();
        for _ in 0..3 {
            let mut taken = Vec::new();
            for w in &mut workers {
                run(w, &format!("begin isolation level {level}"));
                let one = rows(
                    w,
                    "select id from q where state = 'new' order by id limit 1 for update skip locked",
                );
                taken.push(one[0].clone());
            }
            for (w, id) in workers.iter_mut().zip(&taken) {
                run(w, &format!("update q set state = 'done' where id = {id}; commit"));
            }
            done.extend(taken);
        }
        done.sort_by_key(|id| id.parse::<u32>().unwrap());
        assert_eq!(done, (0..12).map(|i| i.to_string()).collect::<Vec<_>>(), "{level}");
    }
}

#[test]
fn a_row_of_a_family_can_be_locked_before_the_family_is_deleted() {
    let db = database();
    run(
        &mut session(&db),
        "create table p (id int primary key); insert into p values (1);
         create table c (id int, k int, primary key (id, k)) interleave in parent p on delete cascade;
         insert into c values (1, 1)",
    );
    let mut stage = Stage::new(&db, 2, "");
    stage.run(0, "begin; select * from c where id = 1 and k = 1 for update").unwrap();
    stage.send(1, "delete from p where id = 1");
    assert!(stage.waits(1));
    assert_eq!(stage.run(0, "delete from p where id = 1").unwrap().tag, "DELETE 1");
    stage.run(0, "commit").unwrap();
    assert_eq!(stage.take(1).unwrap().tag, "DELETE 0");
}

#[test]
fn bulk_inserts_beside_other_keys_commit() {
    let db = database();
    let (a, b) = (&mut session(&db), &mut session(&db));
    run(a, "create table t (id int primary key, u int unique); begin");
    for chunk in 0..20 {
        let values: Vec<String> =
            (0..1000).map(|i| (chunk * 1000 + i) * 2).map(|id| format!("({id}, {id})")).collect();
        run(a, &format!("insert into t values {}", values.join(", ")));
    }
    for id in [1, 999, 20_001, 39_999] {
        run(b, &format!("insert into t values ({id}, {id})"));
    }
    run(a, "commit");
    assert_eq!(rows(b, "select count(*) from t"), ["20004"]);
}

#[test]
fn an_open_portal_is_validated_at_commit() {
    let db = database();
    let (a, b) = (&mut session(&db), &mut session(&db));
    run(a, "create table t (id int primary key, n int); create table log (id int primary key)");
    for i in 0..3000 {
        run(a, &format!("insert into t values ({i}, 0)"));
    }
    run(a, "begin");
    let statement = a.parse_script("select * from t").unwrap().remove(0);
    let p = a.prepare(statement, &[]).unwrap();
    let braid_sql::Outcome::Rows(mut portal) = a.execute(&p, Vec::new()).unwrap() else { panic!() };
    portal.next_batch().unwrap().unwrap();
    run(b, "update t set n = 1 where id = 0");
    run(a, "insert into log values (1)");
    assert_eq!(state(a, "commit"), "40001", "what the portal showed has changed");
    drop(portal);
    assert!(try_run(b, "select * from log", &[]).unwrap().rows.is_empty());
}

#[test]
fn a_load_waits_for_those_who_write_to_its_tables() {
    let db = database();
    let s = &mut session(&db);
    run(
        s,
        "create table p (id int primary key);
         create table r (id int primary key);
         create table c (id int, r int references r, k int, primary key (id, k))
             interleave in parent p on delete cascade;
         create table source (id int primary key, r int, k int);
         insert into p values (1), (2); insert into r values (1), (2)",
    );
    let rows_of = |n: std::ops::Range<i32>| {
        n.map(|n| format!("({n}, {}, {n})", n % 2 + 1)).collect::<Vec<_>>().join(", ")
    };
    run(s, &format!("insert into source values {}", rows_of(0..10_500)));
    let load = "insert into c select 1, r, k from source";
    // What others have not committed yet decides whether the load is right.
    for (write, then) in [
        ("insert into c values (1, 1, 7000)", "23505"),
        ("delete from r where id = 2", "23503"),
        ("delete from p where id = 1", "23503"),
    ] {
        let mut stage = Stage::new(&db, 2, "");
        stage.run(0, "begin isolation level read committed").unwrap();
        stage.run(0, write).unwrap();
        stage.send(1, load);
        assert!(stage.waits(1), "{write}");
        stage.run(0, "commit").unwrap();
        assert_eq!(stage.take(1).unwrap_err().state().0, then, "{write}");
        run(s, "truncate c; insert into p values (1) on conflict do nothing");
        run(s, "insert into r values (2) on conflict do nothing");
    }
    assert_eq!(tag(s, load), "INSERT 0 10500");
}
