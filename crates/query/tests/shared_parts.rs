//! What occurs twice in a statement is computed once, and answers as if it were not.

use crate::harness::Db;

fn shop() -> Db {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE land (k int PRIMARY KEY, name text);
         CREATE TABLE maker (m int PRIMARY KEY, k int, name text);
         CREATE TABLE stock (p int, m int, n int, cost numeric(10,2), PRIMARY KEY (p, m));
         INSERT INTO land SELECT i, 'land ' || i FROM generate_series(0, 19) AS g(i);
         INSERT INTO maker SELECT i, i % 20, 'maker ' || i FROM generate_series(1, 200) AS g(i);
         INSERT INTO stock SELECT p, 1 + (p * 7 + i * 50) % 200, nullif(p % 50, 7), p / 4.0 + i
             FROM generate_series(1, 5000) AS g(p), generate_series(0, 3) AS h(i);
         ANALYZE;",
    );
    db
}

/// Rows of a part, a filter, and what of the whole is more than that.
const LARGER: &str = "SELECT p, sum(n * cost) FROM stock, maker, land
    WHERE stock.m = maker.m AND maker.k = land.k AND land.name = $ONE GROUP BY p
    HAVING sum(n * cost) > (SELECT sum(n * cost) * 0.002 FROM stock, maker, land
        WHERE stock.m = maker.m AND maker.k = land.k AND land.name = $TWO) ORDER BY 2 DESC, 1";

/// The statement with these texts, and one of which no part occurs twice.
fn larger(one: &str, two: &str) -> (String, String) {
    let with = LARGER.replace("$ONE", one).replace("$TWO", two);
    let apart = LARGER.replace("name = $TWO", "name = $TWO AND stock.p > -1");
    (with, apart.replace("$ONE", one).replace("$TWO", two))
}

/// The scans of an executed plan that have read rows of a table.
fn reads_of(plan: &[String], table: &str) -> usize {
    let scans = plan.iter().filter(|line| line.contains(&format!("Scan: {table}")));
    scans.filter(|line| line.contains("requests=")).count()
}

#[test]
fn a_join_that_occurs_twice_is_computed_once() {
    let mut db = shop();
    let (sql, apart) = larger("'land 3'", "'land 3'");
    let plan = db.run(&format!("EXPLAIN ANALYZE {sql}"));
    assert_eq!(plan.iter().filter(|l| l.contains("Part: ")).count(), 2, "{plan:#?}");
    assert_eq!(reads_of(&plan, "stock"), 1, "{plan:#?}");
    let rows = db.run(&sql);
    assert!(rows.len() > 10);
    assert_eq!(rows, db.run(&apart));
    let plan = db.run(&format!("EXPLAIN ANALYZE {apart}"));
    assert_eq!(reads_of(&plan, "stock"), 2, "{plan:#?}");
}

/// Kept plans do not know yet whether both are the same.
#[test]
fn parameters_decide_whether_two_parts_are_one() {
    let mut db = shop();
    let (sql, _) = larger("$1", "$2");
    db.run(&format!("PREPARE s (text, text) AS {sql}"));
    for (one, two) in [("land 3", "land 3"), ("land 3", "land 4"), ("land 4", "none"), ("x", "x")] {
        let (_, apart) = larger(&format!("'{one}'"), &format!("'{two}'"));
        let expected = db.run(&apart);
        for _ in 0..2 {
            assert_eq!(db.run(&format!("EXECUTE s ('{one}', '{two}')")), expected, "{one} {two}");
        }
        let plan = db.run(&format!("EXPLAIN ANALYZE EXECUTE s ('{one}', '{two}')"));
        let wanted = if one == two { 1 } else { 2 };
        assert!(reads_of(&plan, "stock") <= wanted, "{plan:#?}");
    }
    // What was computed for one execution is not there in the next.
    let both = "EXECUTE s ('land 3', 'land 3')";
    let before = db.run(both);
    db.run("UPDATE stock SET n = n + 1 WHERE m = 3");
    let after = db.run(both);
    assert_ne!(before, after);
    let (_, apart) = larger("'land 3'", "'land 3'");
    assert_eq!(after, db.run(&apart));
}

#[test]
fn parts_that_only_look_alike_are_two() {
    let mut db = shop();
    let part = |condition: &str, column: &str| {
        format!(
            "(SELECT count({column}) FROM stock, maker, land WHERE stock.m = maker.m
            AND maker.k = land.k AND land.name = 'land 3' AND {condition})"
        )
    };
    for (a, b) in [
        (part("n > 5", "n"), part("n > 6", "n")),
        (part("stock.p < 100", "n"), part("maker.m < 100", "n")),
        (part("random() < 2", "n"), part("random() < 2", "n")),
    ] {
        let plan = db.run(&format!("EXPLAIN SELECT {a}, {b}"));
        assert!(!plan.iter().any(|line| line.contains("Part: ")), "{plan:#?}");
    }
    // Other columns of the same rows, NULLs among them.
    let (a, b) = (part("n > 5 OR n IS NULL", "n"), part("n > 5 OR n IS NULL", "maker.name"));
    let counts = db.run(&format!("SELECT {a}, {b}"));
    let single = [db.run(&format!("SELECT {a}")), db.run(&format!("SELECT {b}"))];
    assert_eq!(counts.join("|"), single.map(|rows| rows.join("")).join("|"), "{counts:?}");
}

/// An error of the part is the statement's, whoever computes it; own writes are seen.
#[test]
fn a_part_fails_and_sees_as_its_statement_does() {
    let mut db = shop();
    let (sql, apart) = larger("'land 3'", "'land 3'");
    db.run("BEGIN");
    db.run("DELETE FROM stock WHERE p % 3 = 0; INSERT INTO stock VALUES (9999, 3, 900, 1000)");
    assert_eq!(db.run(&sql), db.run(&apart));
    assert!(db.run(&sql).iter().any(|row| row.contains("9999")));
    db.run("SAVEPOINT s; DELETE FROM stock WHERE p = 9999");
    assert_eq!(db.run(&sql), db.run(&apart));
    db.run("ROLLBACK TO s");
    assert!(db.run(&sql).iter().any(|row| row.contains("9999")));
    db.run("ROLLBACK");
    let failing = sql.replace("GROUP BY", "AND 1 / (n - 16) < 2 GROUP BY");
    let failing = failing.replace(
        "land.name = 'land 3')",
        "land.name = 'land 3'
        AND 1 / (n - 16) < 2)",
    );
    let error = db.try_run(&failing).expect_err("a division by zero");
    assert_eq!(error.state().0, "22012");
}
