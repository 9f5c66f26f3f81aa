//! What statements have done, by fingerprint: `pg_stat_statements` and what is beside it.

use crate::harness::Db;
use braid_sql::Outcome;

const T: &str = "create table t (id int primary key, v text)";

/// A database with rows, whose statements so far are forgotten.
fn db() -> Db {
    let mut db = Db::new();
    db.run(T);
    db.run("insert into t values (1, 'a'), (2, 'b'), (3, 'c')");
    db.run("select pg_stat_statements_reset()");
    db
}

/// Calls and rows of the statements that are about `t`.
const SHOWN: &str = "select query, calls, rows from pg_stat_statements \
                     where query like '% t%' and query not like '%pg_stat%' order by query";

#[test]
fn executions_are_counted_by_what_they_have_in_common() {
    let mut db = db();
    for id in 1..=4 {
        db.run(&format!("select v from t where id = {id}"));
    }
    db.run("SELECT v  FROM t -- again\n WHERE id = 1");
    db.run("update t set v = 'x' where id > 1");
    db.run("insert into t values (4, 'd') returning id");
    db.run("select count(*) from t group by v having count(*) > 1");
    db.run("prepare p (int) as select id from t where id = $1");
    db.run("execute p (1)");
    db.run("execute p (2)");
    db.run("explain select v from t");
    assert_eq!(
        db.run(SHOWN),
        [
            "explain select v from t|1|1",
            "insert into t values ($1, $2) returning id|1|1",
            "select count(*) from t group by v having count(*) > $1|1|1",
            "select id from t where id = $1|2|2",
            "select v from t where id = $1|5|4",
            "update t set v = $1 where id > $2|1|2",
        ]
    );
}

#[test]
fn statements_that_share_a_plan_are_counted_with_the_others() {
    let mut db = db();
    for id in 1..=5 {
        let text = format!("select v from t where id = {id}");
        match db.session.run_shape(&text).expect("runs") {
            Some((_, Outcome::Rows(mut rows))) => {
                while rows.next_batch().expect("rows").is_some() {}
            }
            Some(_) => panic!("a query has rows"),
            None => drop(db.run(&text)),
        }
    }
    assert_eq!(db.run(SHOWN), ["select v from t where id = $1|5|3"]);
}

#[test]
fn failures_retries_and_work_are_in_our_own_view() {
    let mut db = db();
    assert!(db.try_run("select 1 / (id - 2) from t").is_err());
    assert!(db.try_run("insert into t values (1, 'again')").is_err());
    db.run("select v from t where id = 1");
    db.run("select v, count(*) from t group by v");
    let shown = "select query, calls, errors, requests > 0, memory_peak_bytes > 0, plans \
                 from braid_statement_statistics where query like '% t%' \
                 and query not like '%statistics%' order by query";
    assert_eq!(
        db.run(shown),
        [
            "insert into t values ($1, $2)|0|1|f|f|0",
            "select $1 / (id - $2) from t|0|1|f|f|0",
            "select v from t where id = $1|1|0|t|f|1",
            "select v, count(*) from t group by v|1|0|t|t|1",
        ]
    );
    // PostgreSQL's view has those that came to their end.
    assert_eq!(db.run(SHOWN).len(), 2);
}

#[test]
fn times_fit_together() {
    let mut db = db();
    for _ in 0..5 {
        db.run("select v from t where id = 1");
    }
    let fit = "select calls = 5 and min_exec_time > 0 and min_exec_time <= mean_exec_time \
               and mean_exec_time <= max_exec_time and stddev_exec_time >= 0 \
               and abs(total_exec_time - 5 * mean_exec_time) < 0.001 \
               and plans = 1 and total_plan_time > 0, \
               dbid = (select oid from pg_database where datname = current_database()), toplevel \
               from pg_stat_statements where query = 'select v from t where id = $1'";
    assert_eq!(db.run(fit), ["t|t|t"]);
}

#[test]
fn rows_that_nobody_wanted_end_an_execution_too() {
    let mut db = db();
    let statement = db.session.parse_script("select v from t").expect("parses").remove(0);
    let prepared = db.session.prepare(statement, &[]).expect("plans");
    let outcome = db.session.execute(&prepared, Vec::new()).expect("runs");
    drop(outcome);
    assert_eq!(db.run(SHOWN), ["select v from t|1|0"]);
}

#[test]
fn settings_say_what_is_counted() {
    let mut db = db();
    db.run("set pg_stat_statements.track = none");
    db.run("select v from t where id = 1");
    db.run("set pg_stat_statements.track = 'TOP'");
    db.run("set pg_stat_statements.track_utility = off");
    db.run("select id from t where id = 1");
    db.run("truncate t");
    assert_eq!(db.run(SHOWN), ["select id from t where id = $1|1|1"]);
    let wrong = db.try_run("set pg_stat_statements.track = 'some'").expect_err("no such value");
    assert_eq!(wrong.state().0, "22023");
    assert!(db.try_run("set pg_stat_statements.max = 1").is_err());
    assert_eq!(db.run("show pg_stat_statements.max"), ["5000"]);
}

#[test]
fn a_reset_is_of_all_or_of_what_is_named() {
    let mut db = db();
    db.run("select v from t where id = 1");
    db.run("select id from t where id = 1");
    let count = "select count(*) from pg_stat_statements where query like 'select % t where%'";
    db.run(
        "select pg_stat_statements_reset(0, 0, queryid) from pg_stat_statements \
         where query like 'select v%'",
    );
    assert_eq!(db.run(count), ["1"]);
    db.run("select pg_stat_statements_reset(0, 4711, 0)");
    assert_eq!(db.run(count), ["1"]);
    let before = db.run("select stats_reset from pg_stat_statements_info");
    db.run("select pg_stat_statements_reset()");
    assert_eq!(db.run(count), ["0"]);
    assert_ne!(db.run("select stats_reset from pg_stat_statements_info"), before);
    // What was counted before goes on with a new entry.
    db.run("select id from t where id = 1");
    assert_eq!(db.run(count), ["1"]);
}

#[test]
fn the_extension_is_there() {
    let mut db = Db::new();
    db.run("create extension if not exists pg_stat_statements");
    assert!(db.session.take_notices().is_empty());
    db.run("create extension if not exists pg_stat_statements");
    let notices = db.session.take_notices();
    assert_eq!(notices[0].message, "extension \"pg_stat_statements\" already exists, skipping");
    assert_eq!(db.try_run("create extension postgis").expect_err("no").state().0, "0A000");
}
