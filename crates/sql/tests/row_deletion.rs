//! Row deletion policies: what may be declared, and what goes.

use crate::harness::{database, rows, run, session, state};
use braid_sql::Session;

const OLD: &str = "now() - interval '40 days'";

fn expire(s: &Session) {
    let db = s.state().db().clone();
    db.expire_rows(&|| false).unwrap();
}

fn policy(s: &mut Session, table: &str) -> Vec<String> {
    let shown = rows(s, "show row deletion policies");
    shown
        .iter()
        .filter(|row| row.starts_with(&format!("{table}|")))
        .map(|row| row.rsplit_once('|').map_or("", |(head, _)| head).to_string())
        .collect()
}

#[test]
fn old_rows_go_with_their_families() {
    let s = &mut session(&database());
    run(
        s,
        "create table a (id int64, at timestamp with time zone, v int64) primary key (id),
             row deletion policy (older_than(at, interval 30 day));
         create table b (id bigint, n int, primary key (id, n)) interleave in parent a on delete cascade;
         create index on a (at); create index on b (n)",
    );
    for id in 0..1_200 {
        let at = if id % 4 == 0 {
            "now()"
        } else if id % 4 == 1 {
            "null"
        } else {
            OLD
        };
        run(s, &format!("insert into a values ({id}, {at}, 1); insert into b values ({id}, 1)"));
    }
    expire(s);
    assert_eq!(rows(s, "select count(*) from a"), ["600"]);
    assert_eq!(rows(s, "select count(*) from b"), ["600"]);
    assert_eq!(rows(s, "select count(*) from b where n = 1"), ["600"]);
    assert_eq!(policy(s, "public.a"), ["public.a|OLDER_THAN(at, INTERVAL '30 days')|600|0"]);
    expire(s);
    assert_eq!(policy(s, "public.a"), ["public.a|OLDER_THAN(at, INTERVAL '30 days')|600|0"]);
    run(s, "alter table a replace row deletion policy (older_than(at, interval 50 day))");
    run(s, &format!("insert into a values (5000, {OLD}, 1)"));
    expire(s);
    assert_eq!(rows(s, "select count(*) from a where id = 5000"), ["1"]);
    run(s, "alter table a alter ttl interval '1 day' on at");
    expire(s);
    assert_eq!(rows(s, "select count(*) from a where id = 5000"), ["0"]);
    run(s, &format!("alter table a drop ttl; insert into a values (5000, {OLD}, 1)"));
    expire(s);
    assert_eq!(rows(s, "select count(*) from a where id = 5000"), ["1"]);
}

#[test]
fn a_leading_column_is_one_span_and_all_types_of_time_grow_old() {
    let s = &mut session(&database());
    run(
        s,
        "create table log (at timestamptz, id int, primary key (at, id)) ttl interval '30 days' on at;
         create table d (id int primary key, on_day date) ttl interval '30 days' on on_day;
         create table n (id int primary key, at timestamp); alter table n add ttl interval '720 hours' on at",
    );
    for id in 0..700 {
        run(s, &format!("insert into log values ({OLD}, {id}), (now(), {id})"));
    }
    run(s, &format!("insert into d values (1, ({OLD})::date), (2, now()::date)"));
    run(s, &format!("insert into n values (1, {OLD}), (2, now())"));
    expire(s);
    assert_eq!(rows(s, "select count(*) from log"), ["700"]);
    assert_eq!(rows(s, "select id from d"), ["2"]);
    assert_eq!(rows(s, "select id from n"), ["2"]);
    let shown = rows(s, "show create table n").join("\n");
    assert!(shown.contains("TTL INTERVAL '720:00:00' ON at"), "{shown}");
    let ddl = shown.split_once('|').map(|(_, ddl)| ddl.replace("public.n", "m")).unwrap();
    run(s, &ddl.replace("n_pkey", "m_pkey"));
    assert_eq!(policy(s, "public.m").len(), 1);
}

#[test]
fn rows_that_cannot_go_are_counted() {
    let s = &mut session(&database());
    run(
        s,
        "create table p (id int primary key, at timestamptz) ttl interval '30 days' on at;
         create table f (k int primary key, p int references p)",
    );
    run(s, &format!("insert into p values (1, {OLD}), (2, {OLD}), (3, {OLD}), (4, {OLD})"));
    run(s, "insert into f values (1, 2)");
    expire(s);
    assert_eq!(rows(s, "select id from p"), ["2"]);
    assert_eq!(policy(s, "public.p"), ["public.p|OLDER_THAN(at, INTERVAL '30 days')|3|1"]);
    run(s, "delete from f");
    expire(s);
    assert_eq!(rows(s, "select count(*) from p"), ["0"]);
    assert_eq!(policy(s, "public.p"), ["public.p|OLDER_THAN(at, INTERVAL '30 days')|4|0"]);
}

#[test]
fn what_cannot_be_declared() {
    let s = &mut session(&database());
    run(
        s,
        "create table p (id int primary key, at timestamptz, v int);
         create table c (id int, n int, primary key (id, n)) interleave in parent p;
         create table t (id int primary key, at timestamptz, ttl int) ttl interval '1 day' on at;
         create table u (id int, n int, primary key (id, n)) interleave in parent t on delete cascade",
    );
    for (sql, code) in [
        ("alter table p add ttl interval '1 day' on at", "42P16"),
        ("alter table t add ttl interval '1 day' on nope", "42703"),
        ("alter table t add ttl interval '1 day' on id", "42804"),
        ("alter table t add ttl interval '-1 day' on at", "22023"),
        ("alter table p drop row deletion policy", "42P16"),
        ("alter table u set on delete no action", "42P16"),
        ("create table w (id int, n int, primary key (id, n)) interleave in parent t", "42P16"),
        ("alter table c set interleave in parent t", "42P16"),
        ("alter table t drop column at", "2BP01"),
        ("alter table t alter column at type text", "2BP01"),
    ] {
        assert_eq!(state(s, sql), code, "{sql}");
    }
    run(s, "alter table t drop row deletion policy; alter table t drop ttl");
    assert_eq!(rows(s, "select * from t").len(), 0);
    assert_eq!(state(s, "select ttl from t"), "42703");
    run(s, "alter table t add ttl interval");
    assert_eq!(rows(s, "select ttl from t").len(), 0);
}

#[test]
fn the_tree_shows_what_lies_in_what() {
    let s = &mut session(&database());
    run(
        s,
        "create table a (id int primary key);
         create table b (id int, n int, v int, primary key (id, n desc)) interleave in parent a on delete cascade;
         create table c (id int, n int, m int, primary key (id, n desc, m)) interleave in parent b;
         create table d (id int, n int, primary key (id, n)) interleave in a;
         create index in_a on b (id, v) interleave in a; create index far on b (v);
         create table alone (id int primary key);
         insert into a values (1), (2); analyze a",
    );
    let tree = [
        "a|table|id|NULL|2",
        "  in_a on b|index|id, v|NULL|NULL",
        "  b|table|id, n DESC|CASCADE|NULL",
        "    c|table|id, n DESC, m|NO ACTION|NULL",
        "  d|table|id, n|stays|NULL",
    ];
    assert_eq!(rows(s, "show interleave tree"), tree);
    assert_eq!(rows(s, "show interleave tree from c"), tree);
    assert_eq!(rows(s, "show interleave tree from alone"), ["alone|table|id|NULL|NULL"]);
}
