//! Materialized views among sessions, in large, and where only this database has something to say.
//! What PostgreSQL answers too is in `testscripts/postgres/materialized_*.txt`.

use crate::harness::Db;

/// More rows than are written one by one.
const MANY: usize = 25_000;

fn state(db: &mut Db, sql: &str) -> String {
    match db.try_run(sql) {
        Ok(rows) => panic!("{sql}: {rows:?}"),
        Err(e) => e.state().0.to_string(),
    }
}

fn many() -> Db {
    let mut db = Db::new();
    db.run(&format!(
        "create table t (id int primary key, n int);
         insert into t select g, g % 100 from generate_series(1, {MANY}) g;
         create materialized view m as select id, n from t;
         create unique index m_id on m (id); create index m_n on m (n)"
    ));
    db
}

#[test]
fn many_rows_are_refreshed_with_their_indexes() {
    let mut db = many();
    for refresh in ["refresh materialized view m", "refresh materialized view concurrently m"] {
        db.run("delete from t where id <= 1000; update t set n = n + 1 where id > 20000");
        let before = db.run("select id, n from t order by id");
        db.run(refresh);
        assert_eq!(db.run("select id, n from m order by id"), before, "{refresh}");
        assert_eq!(
            db.run("select n from m where id = 20001"),
            db.run("select n from t where id = 20001")
        );
        assert_eq!(
            db.run("select count(*) from m where n = 7"),
            db.run("select count(*) from t where n = 7")
        );
    }
    let plan = db.run("explain select n from m where id = 5000").join("\n");
    assert!(plan.contains("m_id"), "{plan}");
}

#[test]
fn a_refresh_in_a_block_is_taken_back_with_it() {
    let mut db = many();
    let mut other = db.another();
    db.run("begin; delete from t where id > 10; refresh materialized view m");
    assert_eq!(db.run("select count(*), max(id) from m"), ["10|10"]);
    assert_eq!(other.run("select count(*) from m"), [MANY.to_string()]);
    db.run("savepoint s; delete from t; refresh materialized view m");
    assert_eq!(db.run("select count(*) from m"), ["0"]);
    db.run("rollback to s");
    assert_eq!(db.run("select count(*) from m where id = 3"), ["1"]);
    db.run("rollback");
    assert_eq!(db.run("select count(*) from m where n = 7"), [(MANY / 100).to_string()]);
}

#[test]
fn an_error_among_many_rows_leaves_the_old_ones() {
    let mut db = many();
    db.run("create materialized view d as select 1 / (n - 100) as x, id from t");
    db.run("create unique index d_id on d (id)");
    db.run("update t set n = 100 where id = 24999");
    assert_eq!(state(&mut db, "refresh materialized view d"), "22012");
    assert_eq!(state(&mut db, "refresh materialized view concurrently d"), "22012");
    assert_eq!(db.run("select count(*) from d"), [MANY.to_string()]);
    db.run(
        "create table twice (id int); insert into twice select * from generate_series(1, 20000);
            create materialized view u as select id from twice; create unique index on u (id);
            insert into twice values (777)",
    );
    let e = db.try_run("refresh materialized view u").unwrap_err();
    assert_eq!(e.message(), "could not create unique index \"u_id_idx\"");
    assert_eq!(e.detail(), Some("Key (id)=(777) is duplicated."));
    let e = db.try_run("refresh materialized view concurrently u").unwrap_err();
    assert_eq!(e.message(), "duplicate key value violates unique constraint \"u_id_idx\"");
    assert_eq!(db.run("select count(*) from u where id = 777"), ["1"]);
}

#[test]
fn who_reads_an_older_state_finds_the_older_rows() {
    for level in ["repeatable read", "serializable"] {
        let mut db = Db::new();
        db.run(
            "create table t (id int primary key); insert into t values (1), (2);
             create materialized view m as select id from t",
        );
        let mut reader = db.another();
        reader.run(&format!("begin isolation level {level} read only"));
        assert_eq!(reader.run("select count(*) from m"), ["2"]);
        db.run("insert into t values (3); refresh materialized view m");
        assert_eq!(reader.run("select count(*) from m"), ["2"], "{level}");
        db.run("refresh materialized view m with no data");
        assert_eq!(reader.run("select id from m order by id"), ["1", "2"], "{level}");
        reader.run("commit");
        assert_eq!(state(&mut reader, "select * from m"), "55000");
        db.run("refresh materialized view m");
        let mut committed = db.another();
        committed.run("begin isolation level read committed");
        assert_eq!(committed.run("select count(*) from m"), ["3"]);
        db.run("drop materialized view m");
        assert_eq!(state(&mut committed, "select * from m"), "42P01");
    }
}

#[test]
fn a_cursor_goes_on_over_the_rows_that_it_began_with() {
    let mut db = many();
    db.run("begin; declare c cursor for select id from m order by id");
    assert_eq!(db.run("fetch 1 from c"), ["1"]);
    db.run("delete from t; refresh materialized view m");
    assert_eq!(db.run("fetch 1 from c"), ["2"]);
    db.run("commit");
}

#[test]
fn plans_that_are_kept_see_what_becomes_of_the_view() {
    let mut db = Db::new();
    db.run(
        "create table t (id int primary key); insert into t values (1);
         create materialized view m as select id from t; create unique index on m (id);
         prepare own as select id from m where id = $1;
         prepare general as select count(*), max(id) from m x join m y using (id)",
    );
    assert_eq!(db.run("execute own (1)"), ["1"]);
    assert_eq!(db.run("execute general"), ["1|1"]);
    db.run("insert into t values (2); refresh materialized view m");
    assert_eq!(db.run("execute own (2)"), ["2"]);
    assert_eq!(db.run("execute general"), ["2|2"]);
    db.run("refresh materialized view m with no data");
    assert_eq!(state(&mut db, "execute own (2)"), "55000");
    assert_eq!(state(&mut db, "execute general"), "55000");
    assert_eq!(state(&mut db, "explain analyze select * from m"), "55000");
    db.run("explain select * from m");
    db.run("refresh materialized view m");
    assert_eq!(db.run("execute own (2)"), ["2"]);
    assert_eq!(db.run("execute general"), ["2|2"]);
}

#[test]
fn families_can_be_kept_and_views_are_no_families() {
    let mut db = Db::new();
    db.run(
        "create table p (id int primary key, s text);
         create table c (id int, n int, v int, primary key (id, n)) interleave in parent p on delete cascade;
         insert into p values (1, 'a'), (2, 'b'); insert into c values (1, 1, 10), (1, 2, 20), (2, 1, 30);
         create materialized view m as select p.id, s, sum(v) as v from p join c using (id) group by p.id;
         create unique index m_id on m (id)",
    );
    db.run("delete from p where id = 1");
    assert_eq!(db.run("select * from m order by id"), ["1|a|30", "2|b|30"]);
    db.run("refresh materialized view concurrently m");
    assert_eq!(db.run("select * from m"), ["2|b|30"]);
    let inside = "create table x (id int primary key) interleave in parent m";
    assert_eq!(state(&mut db, inside), "42809");
    for sql in [
        "alter table m set interleave in parent p",
        "alter table m drop interleave",
        "alter table m alter primary key using columns (id)",
        "alter table m add ttl interval '1 day' on s",
        "alter table m add constraint u unique (id)",
        "alter table m add foreign key (id) references p (id)",
        "create index i on p (s) interleave in m",
        "create sequence q owned by m.id",
        "import into m csv data ('nowhere.csv')",
        "copy m from stdin",
    ] {
        assert!(["42809", "42P16"].contains(&state(&mut db, sql).as_str()), "{sql}");
    }
    assert_eq!(state(&mut db, "drop table p cascade; select * from m"), "42P01");
}

#[test]
fn show_create_gives_the_same_view() {
    let mut db = Db::new();
    db.run(
        "create table t (id int primary key, \"N\" int); insert into t values (1, 2);
         create materialized view m (a, \"B\") as select id, \"N\" from t where id < 10;
         create unique index m_a on m (a) where a > 0; create index on m ((a + 1))",
    );
    assert_eq!(db.run("show tables"), ["public|t|table|", "public|m|materialized view|"]);
    let made = db.run("show create table m").join("\n");
    let statement = made.strip_prefix("m|").expect("the name comes first").to_string();
    db.run("drop materialized view m");
    db.run(&statement);
    assert_eq!(db.run("show create table m").join("\n"), made);
    assert_eq!(db.run("select \"B\" from m where a = 1"), ["2"]);
}

#[test]
fn nobody_locks_it_but_for_its_change() {
    let mut db = many();
    assert_eq!(state(&mut db, "begin; lock table m"), "42809");
    db.run("rollback");
    let mut other = db.another();
    other.run("begin; select count(*) from m");
    db.run("refresh materialized view m; alter materialized view m rename to w");
    other.run("commit");
    assert_eq!(other.run("select count(*) from w"), [MANY.to_string()]);
}
