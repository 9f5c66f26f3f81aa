//! Keys that hold the time of their commit: `PRIMARY KEY (doc, at DESC)`, `INDEX (at)`.

use crate::harness::Db;

const DOCS: &str = "create table docs (doc int primary key, title text, revisions int default 0)";
const REVISIONS: &str = "create table revisions (doc int, at spanner.commit_timestamp, body text,
     primary key (doc, at desc)) interleave in parent docs on delete cascade";

/// Documents and what was in them, the newest first.
fn documents() -> Db {
    let mut s = Db::new();
    run(&mut s, &format!("{DOCS}; {REVISIONS}; create index by_time on revisions (at)"));
    run(&mut s, "insert into docs (doc) values (1), (2), (3)");
    s
}

fn run(s: &mut Db, sql: &str) {
    s.run(sql);
}

fn rows(s: &mut Db, sql: &str) -> Vec<String> {
    s.run(sql)
}

fn state(s: &mut Db, sql: &str) -> &'static str {
    s.try_run(sql).expect_err(sql).state().0
}

fn add(s: &mut Db, doc: i32, body: &str) {
    run(s, &format!("insert into revisions values ({doc}, pending_commit_timestamp(), '{body}')"));
}

#[test]
fn rows_lie_in_the_order_of_their_commits() {
    let s = &mut documents();
    for n in 0..10 {
        add(s, n % 3 + 1, &format!("body {n}"));
    }
    run(s, "insert into revisions values (1, '2020-01-01', 'old')");
    let newest = "select body from revisions where doc = 1 order by at desc";
    assert_eq!(rows(s, newest), ["body 9", "body 6", "body 3", "body 0", "old"]);
    assert_eq!(rows(s, &format!("{newest} limit 1")), ["body 9"]);
    // By the index too, and by value.
    let by_time = "select body from revisions where at > '2021-01-01' order by at limit 3";
    let plan = rows(s, &format!("explain {by_time}")).join(" ");
    assert!(plan.contains("by_time"), "{plan}");
    assert_eq!(rows(s, by_time), ["body 0", "body 1", "body 2"]);
    let at = rows(s, "select at from revisions where body = 'body 6'").remove(0);
    assert_eq!(
        rows(s, &format!("select body from revisions where doc = 1 and at = '{at}'")),
        ["body 6"]
    );
    assert_eq!(rows(s, &format!("select body from revisions where at = '{at}'")), ["body 6"]);
    // The row can be read as of that very time, and not before.
    let seen = format!("select count(*) from revisions as of system time '{at}' where doc = 1");
    assert_eq!(rows(s, &seen), ["3"]);
    assert_eq!(rows(s, "select count(*), count(distinct at) from revisions"), ["11|11"]);
    // They are rows as any others now.
    run(s, &format!("update revisions set body = 'changed' where doc = 1 and at = '{at}'"));
    assert_eq!(rows(s, &format!("{newest} offset 1 limit 1")), ["changed"]);
    run(s, &format!("delete from revisions where doc = 1 and at < '{at}'"));
    assert_eq!(rows(s, newest), ["body 9", "changed"]);
    run(s, "delete from docs where doc = 1");
    assert_eq!(rows(s, "select count(*) from revisions"), ["6"]);
    assert_eq!(rows(s, "select count(*) from revisions where at > '2021-01-01'"), ["6"]);
}

#[test]
fn a_transaction_has_one_time_and_one_row_for_a_key() {
    let s = &mut documents();
    run(
        s,
        "begin; insert into revisions values (1, pending_commit_timestamp(), 'a'),
             (2, pending_commit_timestamp(), 'b');
         insert into revisions (body, doc, at) select 'c', 3, pending_commit_timestamp();
         update docs set revisions = revisions + 1 where doc = 1; commit",
    );
    assert_eq!(rows(s, "select count(*), count(distinct at) from revisions"), ["3|1"]);
    let twice = "insert into revisions values (1, pending_commit_timestamp(), 'd')";
    run(s, &format!("begin; {twice}"));
    assert_eq!(state(s, twice), "23505");
    run(s, "rollback");
    assert_eq!(
        state(s, "insert into revisions values (9, pending_commit_timestamp(), '')"),
        "23503"
    );
    assert_eq!(
        state(s, "insert into revisions values (1, pending_commit_timestamp(), '') returning at"),
        "55000"
    );
    assert_eq!(
        rows(
            s,
            "insert into revisions values (1, pending_commit_timestamp(), '') returning doc, body"
        ),
        ["1|"]
    );
    // Upserts meet nobody but themselves.
    run(
        s,
        "begin; insert or update revisions (doc, at, body) values (2, pending_commit_timestamp(), 'x');
         insert or update revisions (doc, at, body) values (2, pending_commit_timestamp(), 'y');
         insert into revisions values (2, pending_commit_timestamp(), 'z') on conflict do nothing;
         commit",
    );
    let bodies = "select body from revisions where doc = 2 order by at";
    assert_eq!(rows(s, bodies), ["b", "y"]);
    assert_eq!(rows(s, "select count(*) from revisions where at > '2021-01-01'"), ["5"]);
}

#[test]
fn until_the_commit_nobody_scans_where_they_are_going_to_be() {
    let s = &mut documents();
    add(s, 1, "first");
    add(s, 2, "other");
    run(s, "begin; insert into revisions values (1, pending_commit_timestamp(), 'x'); savepoint a");
    for sql in [
        "select * from revisions",
        "select count(*) from revisions where doc = 1",
        "select body from revisions where doc = 1 and at > now()",
        "select body from revisions where at > '2021-01-01' order by at",
        "update revisions set body = 'y' where doc = 1",
        "delete from revisions where doc = 1 and at < '2100-01-01'",
        "delete from revisions where at is not null",
        "select d.doc, r.body from docs d join revisions r on r.doc = d.doc order by 1, 2",
    ] {
        assert_eq!(state(s, sql), "55000", "{sql}");
        run(s, "rollback to a");
    }
    // What it does not touch can be read, and written.
    assert_eq!(rows(s, "select body from revisions where doc = 2"), ["other"]);
    assert_eq!(rows(s, "select body from revisions where doc = 1 and at < '2021-01-01'"), [""; 0]);
    assert_eq!(rows(s, "select title from docs where doc = 1"), [""]);
    run(s, "insert into revisions values (2, pending_commit_timestamp(), 'z'); commit");
    assert_eq!(
        rows(s, "select body from revisions order by doc, at"),
        ["first", "x", "other", "z"]
    );
    // What was taken back is in nobody's way.
    run(
        s,
        "begin; savepoint a; insert into revisions values (1, pending_commit_timestamp(), 'no')",
    );
    run(s, "rollback to a");
    assert_eq!(rows(s, "select count(*) from revisions where doc = 1"), ["2"]);
    run(s, "commit; delete from revisions where doc = 1");
    assert_eq!(rows(s, "select body from revisions order by doc, at"), ["other", "z"]);
    // A family goes with what comes into it.
    run(s, "begin; insert into revisions values (2, pending_commit_timestamp(), 'no')");
    run(s, "delete from docs where doc = 2; commit");
    assert_eq!(rows(s, "select count(*) from revisions"), ["0"]);
    assert_eq!(rows(s, "select count(*) from revisions where at > '2021-01-01'"), ["0"]);
    // Deleted first, written then.
    run(s, "insert into docs values (2); begin; delete from revisions where doc = 2");
    run(s, "insert into revisions values (2, pending_commit_timestamp(), 'new'); commit");
    assert_eq!(rows(s, "select body from revisions"), ["new"]);
}

#[test]
fn nobody_deletes_unseen_what_is_going_to_be_there() {
    let s = &mut documents();
    add(s, 1, "first");
    let other = &mut s.another();
    run(other, "set default_transaction_isolation = 'read committed'; set lock_timeout = '50ms'");
    run(s, "begin; insert into revisions values (1, pending_commit_timestamp(), 'second')");
    assert_eq!(state(other, "delete from docs where doc = 1"), "55P03");
    // Rows that are found one by one, and those alone, or none because it waits.
    for delete in [
        "delete from revisions where doc = 1 and at < '2100-01-01'",
        "delete from revisions where doc = 1",
    ] {
        let deleted = other.try_run(delete);
        assert!(deleted.is_ok_and(|rows| rows.is_empty()), "{delete}");
    }
    // Writers wait for each other where they would write the same key, and not elsewhere.
    add(other, 2, "meanwhile");
    let same = "insert into revisions values (1, pending_commit_timestamp(), 'third')";
    assert_eq!(state(other, same), "55P03");
    run(s, "commit");
    run(other, same);
    let bodies = "select body from revisions order by doc, at";
    assert_eq!(rows(s, bodies), ["second", "third", "meanwhile"]);
}

#[test]
fn keys_of_indexes_follow_updates() {
    let s = &mut Db::new();
    run(
        s,
        "create table t (id int primary key, v int, at spanner.commit_timestamp);
         create index by_at on t (at desc, v); create unique index one on t (at, id);
         insert into t values (1, 1, pending_commit_timestamp()), (2, 2, null), (3, 3, '2020-01-01')",
    );
    let newest = "select id from t order by at desc nulls last, v limit 2";
    assert_eq!(rows(s, newest), ["1", "3"]);
    run(s, "update t set at = pending_commit_timestamp(), v = v + 1 where id = 2");
    assert_eq!(rows(s, newest), ["2", "1"]);
    run(
        s,
        "update t set v = 10 where id = 2; update t set at = pending_commit_timestamp() where v < 5",
    );
    assert_eq!(rows(s, "select id from t order by at desc, v"), ["1", "3", "2"]);
    assert_eq!(rows(s, "select count(*) from t where at > '2021-01-01'"), ["3"]);
    run(s, "begin; update t set at = pending_commit_timestamp() where id = 3");
    assert_eq!(rows(s, "select v from t where id = 3"), ["3"]);
    assert_eq!(state(s, "select id from t where at > '2021-01-01' order by at"), "55000");
    run(s, "rollback; create index later on t (v, at)");
    run(s, "begin; update t set at = pending_commit_timestamp(); commit");
    assert_eq!(rows(s, "select count(distinct at), count(*) from t"), ["1|3"]);
    for index in ["by_at", "one", "later"] {
        run(s, &format!("drop index {index}"));
    }
    run(s, "create index on t (at)");
    assert_eq!(
        rows(s, "select id from t where at > '2021-01-01' order by at, id"),
        ["1", "2", "3"]
    );
}

#[test]
fn a_child_of_such_a_row_lies_in_it() {
    let s = &mut documents();
    run(
        s,
        "create table parts (doc int, at spanner.commit_timestamp, part int, text text,
             primary key (doc, at desc, part)) interleave in parent revisions on delete cascade;
         create index by_text on parts (text)",
    );
    run(
        s,
        "begin; insert into revisions values (1, pending_commit_timestamp(), 'a');
         insert into parts values (1, pending_commit_timestamp(), 1, 'x'),
             (1, pending_commit_timestamp(), 2, 'y'); commit",
    );
    let joined =
        "select r.body, p.part, p.text from revisions r join parts p using (doc, at) order by 2";
    assert_eq!(rows(s, joined), ["a|1|x", "a|2|y"]);
    assert_eq!(rows(s, "select part from parts where text = 'y'"), ["2"]);
    assert_eq!(
        state(s, "insert into parts values (1, pending_commit_timestamp(), 3, 'z')"),
        "23503"
    );
    run(s, "insert into parts select doc, at, 3, 'z' from revisions");
    assert_eq!(rows(s, joined), ["a|1|x", "a|2|y", "a|3|z"]);
    run(s, "delete from revisions where doc = 1");
    assert_eq!(rows(s, "select count(*) from parts"), ["0"]);
}

#[test]
fn many_rows_and_many_writers() {
    let s = &mut documents();
    run(s, "create table log (at spanner.commit_timestamp, n int, primary key (at, n))");
    run(s, "insert into log select pending_commit_timestamp(), n from generate_series(1, 4000) n");
    assert_eq!(rows(s, "select count(*), count(distinct at) from log"), ["4000|1"]);
    run(s, "begin");
    run(s, "insert into log select pending_commit_timestamp(), n from generate_series(1, 10001) n");
    assert_eq!(state(s, "commit"), "54000");
    run(s, "insert into log select pending_commit_timestamp(), n + 1 from log where n < 3000");
    assert_eq!(rows(s, "select count(*), count(distinct at) from log"), ["6999|2"]);
    std::thread::scope(|scope| {
        for n in 0..4 {
            let mut s = s.another();
            scope.spawn(move || {
                for i in 0..50 {
                    add(&mut s, n % 2 + 1, &format!("{n} {i}"));
                }
            });
        }
    });
    assert_eq!(rows(s, "select count(*), count(distinct at) from revisions"), ["200|200"]);
    assert_eq!(rows(s, "select count(*) from revisions where at > '2021-01-01'"), ["200"]);
}

#[test]
fn whatever_rewrites_rows_keeps_their_time() {
    let s = &mut documents();
    for doc in 1..=3 {
        add(s, doc, "body");
    }
    let all = "select doc, at from revisions order by doc, at";
    let before = rows(s, all);
    for sql in [
        "alter table revisions add column u uuid default gen_random_uuid()",
        "create index on revisions (body, at)",
        "alter table revisions drop interleave",
        "alter table revisions set interleave in parent docs on delete cascade",
        "update docs set doc = doc + 10; update docs set doc = doc - 10",
        "alter table revisions alter primary key using columns (doc, body, at)
             interleave in parent docs on delete cascade",
        "analyze revisions",
    ] {
        run(s, sql);
        assert_eq!(rows(s, all), before, "{sql}");
        add(s, 1, "more");
        run(s, "delete from revisions where body = 'more'");
        assert_eq!(rows(s, all), before, "after {sql}");
    }
}
