//! Columns that are told when their row was committed.

use crate::harness::Db;
use braid_env::fs::MemFs;
use braid_types::{Datum, SqlType, TimeZone};

const TABLE: &str = "create table t (id int64 not null, v int64, at timestamp options \
     (allow_commit_timestamp = true)) primary key (id)";

fn rows(s: &mut Db, sql: &str) -> Vec<String> {
    s.run(sql)
}

fn run(s: &mut Db, sql: &str) {
    s.run(sql);
}

fn state(s: &mut Db, sql: &str) -> &'static str {
    s.try_run(sql).expect_err(sql).state().0
}

/// What AS OF SYSTEM TIME sees at a time, so many microseconds later.
fn seen_at(s: &mut Db, time: &str, later: i64) -> Vec<String> {
    let at = Datum::parse(time, &SqlType::TimestampTz, TimeZone::utc());
    let Ok(Datum::TimestampTz(micros)) = at else { panic!("{time} is a time") };
    let at = Datum::TimestampTz(micros + later).to_text(TimeZone::utc()).unwrap();
    rows(s, &format!("select id from t as of system time '{at}' order by id"))
}

#[test]
fn rows_of_a_transaction_have_the_time_at_which_it_is_seen() {
    let s = &mut Db::new();
    run(s, TABLE);
    run(s, "insert into t values (0, 0, timestamptz '2020-01-01 00:00:00+00')");
    run(
        s,
        "begin; insert into t values (1, 1, pending_commit_timestamp()), (2, 2, null);
         insert into t (id, at) values (3, spanner.pending_commit_timestamp());
         update t set at = pending_commit_timestamp() where id = 2; commit",
    );
    let times = rows(s, "select distinct at from t where id > 0");
    assert_eq!(times.len(), 1, "{times:?}");
    assert_eq!(seen_at(s, &times[0], 0), ["0", "1", "2", "3"]);
    assert_eq!(seen_at(s, &times[0], -1), ["0"]);
    // Each later one is later, and the others keep theirs.
    run(s, "update t set at = pending_commit_timestamp() where id = 2; update t set v = 9");
    assert_eq!(rows(s, "select distinct at from t where id in (1, 3)"), times);
    assert_eq!(rows(s, "select a.at < b.at from t a join t b on a.id = 1 and b.id = 2"), ["t"]);
    assert_eq!(rows(s, "select at from t where id = 0"), ["2020-01-01 00:00:00+00"]);
    assert_eq!(
        rows(s, &format!("select id from t where at = '{}' order by id", times[0])),
        ["1", "3"]
    );
    // What was there in the past had the time of then.
    let past = rows(s, &format!("select at from t as of system time '{}' where id = 2", times[0]));
    assert_eq!(past, times);
}

#[test]
fn the_order_of_times_is_that_of_commits() {
    let s = &mut Db::new();
    run(s, TABLE);
    run(s, "insert into t values (0, 0, pending_commit_timestamp())");
    std::thread::scope(|scope| {
        for n in 0..4 {
            let mut s = s.another();
            scope.spawn(move || {
                let s = &mut s;
                for i in 0..25 {
                    // One after the other, by a counter that all of them change.
                    run(s, &format!(
                        "begin; update t set v = v + 1, at = pending_commit_timestamp() where id = 0;
                         insert into t select {}, v, null from t where id = 0;
                         update t set at = pending_commit_timestamp() where id = {}; commit",
                        1 + n * 100 + i, 1 + n * 100 + i
                    ));
                }
            });
        }
    });
    let by_counter = rows(s, "select id from t where id > 0 order by v");
    let by_time = rows(s, "select id from t where id > 0 order by at, v");
    assert_eq!(by_counter.len(), 100);
    assert_eq!(by_counter, by_time);
}

#[test]
fn what_is_pending_is_not_read() {
    let s = &mut Db::new();
    run(s, TABLE);
    run(s, "insert into t values (7, 7, null)");
    run(s, "begin; insert into t values (1, 1, pending_commit_timestamp()), (2, 2, null)");
    run(s, "savepoint a");
    for sql in [
        "select at from t",
        "select * from t where id = 1",
        "select v from t where at is null",
        "select count(at) from t",
        "select max(at) from t where id = 1",
        "select v from t order by at",
        "update t set v = 3 where at > '2020-01-01'",
        "update t set at = at + interval '1 day'",
        "delete from t where at is not null",
        "delete from t returning at",
        "update t set at = pending_commit_timestamp() returning *",
        "insert into t values (3, 3, pending_commit_timestamp()) returning at",
        "insert into t values (1, 1, null) on conflict (id) do update set v = 5 where t.at is null",
    ] {
        assert_eq!(state(s, sql), "55000", "{sql}");
        run(s, "rollback to a");
    }
    assert_eq!(rows(s, "select id, v from t order by id"), ["1|1", "2|2", "7|7"]);
    assert_eq!(rows(s, "select at from t where id in (2, 7)"), ["", ""]);
    assert_eq!(rows(s, "update t set v = v + 1 where id = 1 returning v"), ["2"]);
    run(s, "update t set id = 5 where id = 1; update t set at = null where id = 5; savepoint b");
    run(s, "update t set at = pending_commit_timestamp(); rollback to b");
    assert_eq!(rows(s, "select at from t where id = 5"), [""]);
    run(s, "rollback to a; delete from t where id = 1; commit");
    assert_eq!(rows(s, "select id, at from t order by id"), ["2|", "7|"]);
}

#[test]
fn upserts_pass_it_on() {
    let s = &mut Db::new();
    run(s, TABLE);
    run(s, "insert into t values (1, 1, null)");
    run(
        s,
        "insert or update t (id, at) values (1, pending_commit_timestamp()), (2, pending_commit_timestamp())",
    );
    assert_eq!(
        rows(s, "select count(*), count(distinct at), min(v) from t where at <= now()"),
        ["2|1|1"]
    );
    run(
        s,
        "begin; insert or update t (id, at) values (1, pending_commit_timestamp());
         insert or update t (id, at) values (1, pending_commit_timestamp());
         insert into t values (1, 8, pending_commit_timestamp())
             on conflict (id) do update set v = excluded.v, at = excluded.at; commit",
    );
    assert_eq!(
        rows(s, "select v, at > (select at from t where id = 2) from t where id = 1").len(),
        1
    );
    // Only into the column itself.
    run(s, "alter table t add column other timestamptz");
    let sql = "insert into t values (1, 8, pending_commit_timestamp())
         on conflict (id) do update set other = excluded.at";
    assert_eq!(state(s, sql), "55000");
}

#[test]
fn rows_of_queries_and_of_merge_get_the_time_too() {
    let s = &mut Db::new();
    run(s, TABLE);
    run(s, "insert into t select n, n, pending_commit_timestamp() from generate_series(1, 3000) n");
    let first = rows(s, "select distinct at from t");
    assert_eq!((first.len(), seen_at(s, &first[0], 0).len()), (1, 3000));
    run(s, "insert into t (at, id) select pending_commit_timestamp() as at, 3001 limit 1");
    run(
        s,
        "create table s (id int64 primary key, v int64); insert into s values (3, 7), (4000, 8)",
    );
    run(
        s,
        "merge into t using s on t.id = s.id
         when matched and s.v > 100 then delete
         when matched then update set v = s.v, at = pending_commit_timestamp()
         when not matched then insert (id, v, at) values (s.id, s.v, pending_commit_timestamp())",
    );
    let merged = rows(s, "select distinct at from t where id in (3, 4000)");
    assert_eq!(merged.len(), 1);
    assert_eq!(seen_at(s, &merged[0], -1).len(), 3001);
    assert_eq!(
        rows(
            s,
            "select id, v, at > (select at from t where id = 1) from t where id in (3, 4000) order by id"
        ),
        ["3|7|t", "4000|8|t"]
    );
    // In a block it is nobody's before the end, of these rows as of others.
    run(s, "begin; insert into t select 5000, 1, pending_commit_timestamp()");
    assert_eq!(state(s, "select at from t where id = 5000"), "55000");
    run(s, "rollback");
    assert_eq!(
        state(s, "insert into t select 5001, 1, pending_commit_timestamp() returning at"),
        "55000"
    );
    let wrong = "merge into t using s on t.id = s.id
         when not matched then insert (id, v) values (s.id, pending_commit_timestamp())";
    assert_eq!(state(s, wrong), "55000");
}

#[test]
fn what_it_can_not_be_is_refused() {
    let s = &mut Db::new();
    run(s, TABLE);
    run(s, "create table plain (id int primary key, at timestamptz, b timestamp)");
    for (sql, want) in [
        ("insert into plain values (1, pending_commit_timestamp(), null)", "55000"),
        ("update plain set at = pending_commit_timestamp()", "55000"),
        ("select pending_commit_timestamp()", "0A000"),
        ("insert into t values (1, 1, pending_commit_timestamp() + interval '1 day')", "0A000"),
        (
            "insert into t select 1, 1, pending_commit_timestamp() union all select 2, 2, null",
            "0A000",
        ),
        ("insert into plain select 1, pending_commit_timestamp()", "55000"),
        ("insert into t (id, v) values (1, pending_commit_timestamp())", "55000"),
        ("insert into t values (1, 1, now() + interval '1 hour')", "23514"),
        ("insert into t values (1, 1, 'infinity')", "23514"),
        ("create index on t (v) where at is null", "0A000"),
        ("create index on t ((at is null))", "0A000"),
        ("alter table t add check (at > '2020-01-01')", "0A000"),
        ("alter table t add column g boolean generated always as (at is null) stored", "0A000"),
        ("alter table t alter column at set default pending_commit_timestamp()", "0A000"),
        ("alter table t alter column at set default now()", "0A000"),
        ("alter table t alter column at type text", "0A000"),
        (
            "create table k (id int, at spanner.commit_timestamp, primary key (id, at))
             partition by range (at)",
            "0A000",
        ),
        ("create table k (id int, at date options (allow_commit_timestamp = true))", "0A000"),
        ("alter table plain alter column b set options (allow_commit_timestamp = true)", "0A000"),
        ("alter table plain alter column nix set options (allow_commit_timestamp = true)", "42703"),
    ] {
        assert_eq!(state(s, sql), want, "{sql}");
    }
    // With rows there is another way to an index and a constraint.
    run(
        s,
        "insert into t values (1, 1, null); insert into plain values (1, now() + interval '1 day')",
    );
    assert_eq!(state(s, "alter table t add check (at is null)"), "0A000");
    let allow = "alter table plain alter column at set options (allow_commit_timestamp = true)";
    assert_eq!(state(s, allow), "23514");
    run(s, "update plain set at = now() - interval '1 day'");
    run(s, allow);
    run(s, "update plain set at = pending_commit_timestamp()");
    assert_eq!(state(s, "update plain set at = now() + interval '1 day'"), "23514");
    run(s, "alter table plain alter column at set options (allow_commit_timestamp = null)");
    run(s, "update plain set at = now() + interval '1 day'");
    assert_eq!(state(s, "alter table plain alter at type spanner.commit_timestamp"), "23514");
}

#[test]
fn entries_of_indexes_have_it_with_their_rows() {
    let s = &mut Db::new();
    run(
        s,
        "create table p (id int primary key, name text);
         create table c (id int, n int, v int, at spanner.commit_timestamp not null,
             primary key (id, n)) interleave in parent p on delete cascade;
         create index by_v on c (v) include (at);
         create index inner_v on c (id, v) include (at) interleave in p;
         insert into p values (1, 'a'), (2, 'b')",
    );
    run(s, "insert into c select 1, n, n, now() - interval '1 day' from generate_series(1, 20) n");
    run(s, "update c set at = pending_commit_timestamp() where n > 10");
    run(
        s,
        "update c set v = v + 100 where n = 20; update c set at = pending_commit_timestamp() where n = 19",
    );
    for (index, span) in [("by_v", ""), ("inner_v", "id = 1 and")] {
        let sql = format!("select v, at from c where {span} v between 11 and 200 order by v");
        let plan = rows(s, &format!("explain {sql}")).join("\n");
        assert!(plan.contains(index), "{plan}");
        let by_rows = rows(s, "select v, at from c where n > 10 order by n + 0, v");
        let mut found = rows(s, &sql);
        found.sort();
        let mut wanted = by_rows.clone();
        wanted.sort();
        assert_eq!(found, wanted, "{index}");
    }
    assert_eq!(rows(s, "select count(distinct at) from c where n > 10"), ["2"]);
    run(s, "begin; update c set at = pending_commit_timestamp() where n = 12; savepoint a");
    assert_eq!(state(s, "select v, at from c where v = 12"), "55000");
    run(s, "rollback to a; update p set id = 3 where id = 1; commit");
    assert_eq!(
        rows(s, "select count(*), count(distinct at) from c where id = 3 and n > 10"),
        ["10|3"]
    );
}

#[test]
fn whatever_rewrites_rows_keeps_their_time() {
    let s = &mut Db::new();
    run(s, "create table p (id int8 primary key)");
    run(s, TABLE);
    run(s, "insert into p values (1), (2), (3)");
    for id in 1..=3 {
        run(s, &format!("insert into t values ({id}, {id}, pending_commit_timestamp())"));
    }
    let before = rows(s, "select id, at from t order by id");
    for sql in [
        "alter table t alter column v type text using v::text",
        "alter table t add column u uuid default gen_random_uuid()",
        "create index by_v on t (v) include (at)",
        "alter table t set interleave in parent p",
        "update p set id = id + 10; update p set id = id - 10",
        "alter table t drop interleave",
        "create index again on t (v) include (at)",
        "update t set v = v || 'x'",
        "analyze t",
    ] {
        run(s, sql);
        assert_eq!(rows(s, "select id, at from t order by id"), before, "{sql}");
    }
    // In a block, what is rewritten before the commit cannot be told its time.
    run(s, "begin; insert into t (id, at) values (4, pending_commit_timestamp())");
    assert_eq!(state(s, "alter table t add column w uuid default gen_random_uuid()"), "55000");
    run(s, "rollback; begin; insert into t (id, at) values (4, pending_commit_timestamp())");
    assert_eq!(state(s, "create index third on t (v) include (at)"), "55000");
    run(s, "rollback");
    run(
        s,
        "begin; insert into t (id, at) values (4, pending_commit_timestamp()); create index third on t (v); commit",
    );
    assert_eq!(rows(s, "select count(*) from t where at is null"), ["0"]);
}

#[test]
fn writes_that_lie_on_disk_get_it_too() {
    let s = &mut Db::new();
    run(s, TABLE);
    run(s, "create index by_v on t (v) include (at); set braid.transaction_mem = '1kB'; begin");
    run(s, "insert into t select n, n, null from generate_series(1, 3000) n");
    run(s, "update t set at = pending_commit_timestamp() where id % 3 = 0; commit");
    let times = rows(s, "select distinct at from t where at is not null");
    assert_eq!(times.len(), 1, "{times:?}");
    assert_eq!(rows(s, "select count(*), count(at) from t"), ["3000|1000"]);
    assert_eq!(seen_at(s, &times[0], 0).len(), 3000);
    assert_eq!(seen_at(s, &times[0], -1).len(), 0);
    assert_eq!(rows(s, "select at from t where v = 300"), times);
}

#[test]
fn who_has_read_the_column_depends_on_it() {
    let a = &mut Db::new();
    let b = &mut a.another();
    run(a, TABLE);
    run(a, "insert into t values (1, 1, pending_commit_timestamp()), (2, 2, null)");
    run(a, "begin; select at from t where id = 1");
    run(b, "update t set at = pending_commit_timestamp() where id = 1");
    run(a, "update t set v = 5 where id = 2");
    assert_eq!(state(a, "commit"), "40001");
    // Who has read another column does not.
    run(a, "rollback; begin; select v from t where id = 1");
    run(b, "update t set at = pending_commit_timestamp() where id = 1");
    run(a, "update t set v = 5 where id = 2; commit");
}

#[test]
fn prepared_statements_and_catalogs_know_it() {
    let s = &mut Db::new();
    run(s, TABLE);
    run(s, "alter table t add column also spanner.commit_timestamp");
    for id in 1..4 {
        let insert = "insert into t values ($1, $1, pending_commit_timestamp(), null)";
        let statement = s.session.parse_script(insert).unwrap().remove(0);
        let prepared = s.session.prepare(statement, &[]).unwrap();
        s.session.execute(&prepared, vec![Datum::Int8(id)]).unwrap();
    }
    assert_eq!(rows(s, "select count(distinct at) from t"), ["3"]);
    let shown = rows(s, "show create table t")[0].clone();
    assert_eq!(shown.matches("spanner.commit_timestamp").count(), 2, "{shown}");
    let create = shown
        .split_once("CREATE")
        .unwrap()
        .1
        .replace("public.t ", "public.u ")
        .replace("t_pkey", "u_pkey");
    run(s, &format!("CREATE{create}"));
    run(s, "insert into u values (1, 1, pending_commit_timestamp(), pending_commit_timestamp())");
    assert_eq!(rows(s, "select at = also from u"), ["t"]);
}

#[test]
fn it_is_the_same_when_the_store_was_opened_again() {
    let files = MemFs::new();
    let before = {
        let s = &mut Db::on(files.clone());
        run(s, TABLE);
        run(s, "insert into t values (1, 1, pending_commit_timestamp()), (2, 2, null)");
        rows(s, "select id, at from t order by id")
    };
    let s = &mut Db::on(files);
    assert_eq!(rows(s, "select id, at from t order by id"), before);
}

#[test]
fn what_else_meets_a_pending_value_says_so_or_leaves_it_out() {
    let s = &mut Db::new();
    run(
        s,
        "create table t (id int primary key, v int check (v > 0), at spanner.commit_timestamp) ttl \
             interval '0 days' on at;
         insert into t values (7, 7, null)",
    );
    run(s, "begin; insert into t values (1, 1, pending_commit_timestamp()); savepoint a");
    let refused = s.try_run("update t set v = 0 where id = 1").unwrap_err();
    assert_eq!(refused.detail(), Some("Failing row contains (1, 0, pending)."));
    run(s, "rollback to a; analyze t; commit");
    let copied = "create table u as select id, at from t";
    run(s, &format!("{copied}; drop table u"));
    run(s, "begin; update t set at = pending_commit_timestamp() where id = 7; savepoint a");
    for sql in [
        copied,
        "insert into t select id + 100, v, at from t",
        "with x as (select at from t) select * from x",
    ] {
        assert_eq!(state(s, sql), "55000", "{sql}");
        run(s, "rollback to a");
    }
    let upserts = "with x as (insert into t values (8, 8, pending_commit_timestamp()) returning id)
         select * from x";
    assert_eq!(rows(s, upserts), ["8"]);
    run(s, "commit");
    assert_eq!(rows(s, "select id from t where at is not null order by id"), ["1", "7", "8"]);
    // What is older than its commit is too old, once the clock here has come to that: another
    // node's may be ahead.
    for _ in 0..100 {
        s.session.state().db().clone().expire_rows(&|| false).unwrap();
        if rows(s, "select count(*) from t") == ["0"] {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("some stay: {:?}", rows(s, "select id, at, now() from t"));
}
