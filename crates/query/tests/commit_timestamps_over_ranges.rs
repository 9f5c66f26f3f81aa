//! The tests of `commit_timestamps.rs` once more, where keys are kept by several ranges that are
//! split all the time: the name of this crate is the switch (`harness`).

#[path = "commit_timestamps.rs"]
mod commit_timestamps;
mod harness;

#[test]
fn keys_do_not_get_it_there() {
    let s = &mut harness::Db::new();
    s.run("create table t (id int primary key, at spanner.commit_timestamp)");
    for sql in [
        "create table k (id int, at spanner.commit_timestamp, primary key (id, at))",
        "create index on t (at)",
        "create index on t (id, at desc)",
        "alter table t alter primary key using columns (id, at)",
    ] {
        let refused = s.try_run(sql).expect_err(sql);
        assert_eq!(refused.state().0, "0A000", "{sql}");
    }
    s.run("create index on t (id) include (at)");
}
