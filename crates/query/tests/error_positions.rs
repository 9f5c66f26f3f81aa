//! Errors tell where in the script stands what is wrong, as PostgreSQL does: clients put a caret
//! under it. Here it stands in front.

mod harness;

use harness::Db;

/// The position of the error of a script that has a caret in front of its place.
fn check(db: &mut Db, marked: &str) -> Result<(), String> {
    let script = marked.replacen('^', "", 1);
    let expected = marked.chars().position(|c| c == '^').map(|at| at + 1);
    let error = db.try_run(&script).expect_err(marked);
    match error.position() == expected {
        true => Ok(()),
        false => Err(format!("{marked}: {error} at {:?}, not {expected:?}", error.position())),
    }
}

#[test]
fn errors_know_their_place() {
    let mut db = Db::new();
    db.run("CREATE TABLE t (id int PRIMARY KEY, a int, s text); INSERT INTO t VALUES (1, 2, 'x')");
    db.run("CREATE VIEW v AS SELECT id, a FROM t; CREATE TABLE u (id int PRIMARY KEY, a int)");
    let marked = [
        "select ^nosuch",
        "select id, ^nosuch from t where id = 1",
        "select id from t where ^nosuch = 1 order by id",
        "select ^t.nosuch from t",
        "select ^x.id from t",
        "select 'ä', id,\n\t^é from t",
        "select 1; select id from t; select ^nosuch from v",
        "select * from ^nosuch",
        "select * from t join ^nosuch n on true",
        "select * from ^public.nosuch",
        "select ^nosuch(id) from t",
        "select upper(s), lower(^nosuch) from t",
        "select ^lower(1, 2) from t",
        "select ^'abc'::int",
        "select ^a from t, u where t.id = u.id",
        "select a from t group by a having max(^nosuch) > 1",
        "select (select ^nosuch from u) from t",
        "select id from t where exists (select 1 from ^nosuch)",
        "with w as (select ^nosuch from t) select * from w",
        "update t set a = ^nosuch where id = 1",
        "delete from t where ^nosuch = 1",
        "insert into u select id, ^nosuch from t",
        "insert into u values (1, ^nosuch)",
        "explain select ^nosuch from t",
        "select id from t order by ^nosuch",
    ];
    let wrong: Vec<String> = marked.iter().filter_map(|m| check(&mut db, m).err()).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_stands_in_another_text_has_no_place() {
    let mut db = Db::new();
    db.run("CREATE TABLE t (id int PRIMARY KEY, a int)");
    db.run("CREATE FUNCTION tenth(n int) RETURNS int LANGUAGE sql AS 'SELECT n / (n - n)'");
    for script in ["select tenth(4)", "select 1 / (id - id) from (values (1)) v(id)"] {
        let error = db.try_run(script).expect_err(script);
        assert_eq!(error.position(), None, "{script}: {error}");
    }
}
