//! What transactions have done, by the statements in them: `braid_transaction_statistics`.

use crate::harness::Db;

fn db() -> Db {
    let mut db = Db::new();
    db.run("create table t (id int primary key, v text)");
    db.run("insert into t values (1, 'a'), (2, 'b'), (3, 'c')");
    db.run("select pg_stat_statements_reset()");
    db
}

const SHOWN: &str = "select query, commits, rollbacks, writing_commits, avg_participants, \
                     total_time > 0 and mean_time > 0, total_commit_time > 0 \
                     from braid_transaction_statistics \
                     where query like '% t%' and query not like '%braid%' \
                     order by query, rollbacks";

#[test]
fn blocks_and_statements_alone_are_kinds() {
    let mut db = db();
    for id in 10..13 {
        db.run(&format!("begin; insert into t values ({id}, 'x')"));
        db.run(&format!("insert into t values ({id} + 100, 'y')"));
        db.run("update t set v = 'z' where id = 1");
        db.run("commit");
    }
    db.run("begin");
    db.run("update t set v = 'y' where id = 1");
    db.run("rollback");
    db.run("update t set v = 'x' where id = 2");
    db.run("select v from t where id = 2");
    db.run("begin");
    db.run("commit");
    assert_eq!(
        db.run(SHOWN),
        [
            "insert into t values ($1, $2); insert into t values ($1 + $2, $3); \
             update t set v = $1 where id = $2|3|0|3|1|t|t",
            "select v from t where id = $1|1|0|0||t|f",
            "update t set v = $1 where id = $2|1|0|1|1|t|t",
            "update t set v = $1 where id = $2|0|1|0||t|f",
        ]
    );
}

#[test]
fn what_was_lost_is_told_by_its_reason() {
    let mut db = db();
    let mut other = db.another();
    db.run("begin isolation level serializable");
    db.run("select sum(id) from t");
    db.run("update t set v = 'mine' where id = 1");
    other.run("update t set v = 'theirs' where id = 2");
    assert_eq!(db.try_run("commit").expect_err("what it read has changed").state().0, "40001");
    db.run("begin isolation level repeatable read");
    db.run("select count(*) from t");
    other.run("update t set v = 'again' where id = 3");
    let lost = db.try_run("update t set v = 'mine' where id = 3").expect_err("it has changed");
    assert_eq!(lost.state().0, "40001");
    db.run("rollback");
    let shown = "select query, commits, rollbacks, read_conflicts, write_conflicts \
                 from braid_transaction_statistics where query like 'select % from t; %' \
                 order by query";
    assert_eq!(
        db.run(shown),
        [
            "select count(*) from t; update t set v = $1 where id = $2|0|1|0|1",
            "select sum(id) from t; update t set v = $1 where id = $2|0|1|1|0",
        ]
    );
    // The statement that met the newer row, and COMMIT.
    let shown = "select sum(write_conflicts), sum(read_conflicts) from braid_statement_statistics";
    assert_eq!(db.run(shown), ["1|1"]);
}

#[test]
fn nothing_is_kept_of_what_is_not_counted() {
    let mut db = db();
    db.run("set pg_stat_statements.track = none");
    db.run("begin");
    db.run("update t set v = 'y' where id = 1");
    db.run("commit");
    assert!(db.run(SHOWN).is_empty());
    db.run("reset pg_stat_statements.track");
    db.run("begin");
    db.run("update t set v = 'y' where id = 1");
    db.run("commit");
    assert_eq!(db.run(SHOWN).len(), 1);
    db.run("select pg_stat_statements_reset()");
    assert!(db.run(SHOWN).is_empty());
}
