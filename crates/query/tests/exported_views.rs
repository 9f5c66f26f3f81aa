//! SET TRANSACTION SNAPSHOT: several sessions see one moment, as the workers of pg_dump do.

use crate::harness::Db;

#[test]
fn sessions_see_what_the_block_of_another_sees() {
    let mut db = Db::new();
    db.run("create table t (a int); insert into t values (1)");
    let (mut leader, mut worker) = (db.another(), db.another());
    leader.run("begin isolation level repeatable read read only");
    let id = leader.run("select pg_export_snapshot()").remove(0);
    db.run("insert into t values (2)");
    worker.run("begin");
    worker.run("set transaction isolation level repeatable read, read only");
    worker.run(&format!("set transaction snapshot '{id}'"));
    worker.run("lock table t in access share mode nowait");
    for session in [&mut leader, &mut worker] {
        assert_eq!(session.run("select a from t order by a"), ["1"]);
        session.run("commit");
    }
    assert_eq!(worker.run("select a from t order by a"), ["1", "2"]);
}

#[test]
fn what_is_no_view_is_refused() {
    let mut db = Db::new();
    for (script, state) in [
        ("select pg_export_snapshot()", "25P01"),
        ("begin; set transaction snapshot 'x'", "22023"),
        ("begin; set transaction snapshot '00000001-00000001-2'", "22023"),
        ("begin; select 1; set transaction snapshot '00000001-00000001-1'", "25001"),
    ] {
        let error = db.try_run(script).expect_err(script);
        assert_eq!(error.state().0, state, "{script}: {error}");
        db.run("rollback");
    }
}
