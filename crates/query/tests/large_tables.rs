//! Aggregates over a whole large table read its columns; over a small one the start of such a plan
//! would take longer than the answer.

use crate::harness::Db;

#[test]
fn aggregates_of_a_large_table_are_general_plans() {
    let mut db = Db::new();
    db.run("CREATE TABLE t (id int PRIMARY KEY, a int, n numeric(10,2), s text)");
    let sums = "SELECT count(*), sum(a), sum(n), min(s), max(id) FROM t";
    let is_general =
        |db: &mut Db| db.run(&format!("EXPLAIN {sums}")).join("\n").contains("general plan");
    let fill = "INSERT INTO t SELECT i, i % 100, i / 4.0, 'a text of row ' || i
        FROM generate_series";
    db.run(&format!("{fill}(1, 1000) AS g(i)"));
    assert!(!is_general(&mut db));
    assert_eq!(db.run(sums), ["1000|49500|125125.00|a text of row 1|1000"]);
    db.run(&format!("{fill}(1001, 60000) AS g(i)"));
    assert!(is_general(&mut db));
    assert_eq!(db.run(sums), ["60000|2970000|450007500.00|a text of row 1|60000"]);
    // Own writes, and rows deleted by span, are seen by it as by the other.
    db.run("BEGIN; DELETE FROM t WHERE id > 1000; UPDATE t SET a = a + 1 WHERE id = 1");
    assert_eq!(db.run(sums), ["1000|49501|125125.00|a text of row 1|1000"]);
    db.run("ROLLBACK");
    assert_eq!(db.run(sums), ["60000|2970000|450007500.00|a text of row 1|60000"]);
}

#[test]
fn many_rows_that_a_key_finds_are_read_in_columns() {
    let mut db = Db::new();
    db.run("CREATE TABLE t (tenant int, id int, a int, s text, PRIMARY KEY (tenant, id))");
    db.run(
        "INSERT INTO t SELECT 1, i, i % 100, 'x' FROM generate_series(1, 40000) i;
         INSERT INTO t SELECT 2, i, i % 100, 'y' FROM generate_series(1, 500) i; ANALYZE t",
    );
    let plan = |db: &mut Db, sql: &str| db.run(&format!("EXPLAIN {sql}")).join("\n");
    let is_general = |db: &mut Db, sql: &str| plan(db, sql).contains("general plan");
    let of = |tenant: u32, what: &str| format!("SELECT {what} FROM t WHERE tenant = {tenant}");
    for (what, answer) in [
        ("count(*), sum(id) FILTER (WHERE a = 7)", "40000|7982800"),
        ("max(s)", "x"),
        ("DISTINCT s", "x"),
    ] {
        assert!(is_general(&mut db, &of(1, what)), "{what}");
        assert!(!is_general(&mut db, &of(2, what)) || what.contains("FILTER"), "{what}");
        assert_eq!(db.run(&of(1, what)), [answer], "{what}");
    }
    // A condition that the key does not answer, an order that it does not give.
    let filtered = format!("{} AND a = 99", of(1, "id"));
    assert!(is_general(&mut db, &filtered));
    assert_eq!(db.run(&filtered).len(), 400);
    assert!(is_general(&mut db, &format!("{} ORDER BY a, id", of(1, "id"))));
    // Nothing is left to be done by row, or the first ones are enough.
    for by_key in [
        of(1, "id, s"),
        format!("{} ORDER BY id", of(1, "id, s")),
        format!("{filtered} LIMIT 3"),
        format!("{} AND id = 5 AND a = 99", of(1, "id")),
        format!("{} FOR UPDATE", filtered),
    ] {
        assert!(!is_general(&mut db, &by_key), "{by_key}");
    }
    // What the transaction has written is part of it.
    db.run("BEGIN; UPDATE t SET a = 99 WHERE tenant = 1 AND id <= 10; DELETE FROM t WHERE tenant = 1 AND id > 39000");
    let expected = 400 + 10 - 10;
    assert_eq!(db.run(&filtered).len(), expected);
    db.run("ROLLBACK");
    assert_eq!(db.run(&filtered).len(), 400);
}
