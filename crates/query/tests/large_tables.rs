//! Aggregates over a whole large table read its columns; over a small one the start of such a plan
//! would take longer than the answer.

mod harness;

use harness::Db;

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
