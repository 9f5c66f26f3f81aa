//! Numerics and floats in general queries: how they travel must not show.

use crate::harness::Db;

fn numbers() -> Db {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE a (id int PRIMARY KEY, n numeric(10,2), m numeric(12,4), u numeric, f float8);
         CREATE TABLE b (id int PRIMARY KEY, n numeric(8,3), f float8, r real);
         INSERT INTO a VALUES (1, 1.5, 1.5, 1.50, 0), (2, 'NaN', 2.25, 'NaN', 'NaN'),
            (3, 10, 10, 10, '-0'), (4, NULL, 0.0001, 'Infinity', 'Infinity'), (5, 1.5, NULL, 1.5, 1);
         INSERT INTO b VALUES (1, 1.5, '-0', 0), (2, 'NaN', 'NaN', 'NaN'), (3, 10.000, 1, 1);",
    );
    db
}

#[test]
fn declared_numerics_keep_their_digits() {
    numbers().check(&[
        ("SELECT n FROM a WHERE f IS NOT NULL ORDER BY n, id", "1.50; 1.50; 10.00; NaN; "),
        ("SELECT n, count(*) FROM a GROUP BY n ORDER BY n NULLS FIRST", "|1; 1.50|2; 10.00|1; NaN|1"),
        ("SELECT DISTINCT n FROM a ORDER BY 1 DESC", "; NaN; 10.00; 1.50"),
        ("SELECT a.id, b.id FROM a JOIN b ON a.n = b.n ORDER BY 1, 2", "1|1; 2|2; 3|3; 5|1"),
        ("SELECT a.id, b.id FROM a JOIN b ON a.u = b.n ORDER BY 1, 2", "1|1; 2|2; 3|3; 5|1"),
        ("SELECT a.id, b.id FROM a JOIN b ON a.n = b.id * 1.5 ORDER BY 1, 2", "1|1; 5|1"),
        ("SELECT x.id, y.id FROM a x JOIN a y ON x.n = y.n WHERE x.id < y.id", "1|5"),
        ("SELECT id FROM a WHERE n = 1.500 AND f >= 0 ORDER BY f DESC", "5; 1"),
        ("SELECT id FROM a WHERE n > 1.505 ORDER BY f, id", "3; 2"),
        ("SELECT id FROM a WHERE n IN (1.5, 10.001, 'NaN') ORDER BY f, id", "1; 5; 2"),
        ("SELECT n FROM a UNION SELECT n FROM b ORDER BY 1", "1.50; 10.00; NaN; "),
        ("SELECT n FROM a UNION ALL SELECT u FROM a WHERE id = 3 ORDER BY 1 LIMIT 3", "1.50; 1.50; 10.00"),
        ("SELECT n FROM a INTERSECT SELECT n FROM b ORDER BY 1", "1.50; 10.00; NaN"),
        ("SELECT n::text, m FROM (SELECT coalesce(n, m) n, m FROM a) q ORDER BY m LIMIT 2",
            "0.0001|0.0001; 1.50|1.5000"),
        ("SELECT (SELECT n FROM a x WHERE x.id = y.id), n FROM b y ORDER BY id",
            "1.50|1.500; NaN|NaN; 10.00|10.000"),
        ("WITH c AS MATERIALIZED (SELECT n FROM a) SELECT sum(n) FROM c WHERE n < 5", "3.00"),
        ("SELECT id FROM a WHERE n = (SELECT max(n) FROM b WHERE n < 100) ORDER BY f", "3"),
        ("SELECT lag(n) OVER (ORDER BY id), sum(n) OVER (ORDER BY n) FROM a WHERE n < 5 ORDER BY id",
            "|3.00; 1.50|3.00"),
    ]);
}

#[test]
fn sums_of_expressions_are_exact() {
    numbers().check(&[
        ("SELECT sum(n * (1 - m)) FROM a WHERE id IN (1, 3) AND f < 5", "-90.750000"),
        ("SELECT sum(n * m * n * m * n), min(n * m) FROM a WHERE n < 100 AND f < 5",
            "100007.59375000000000|2.250000"),
        ("SELECT sum(n), avg(n), min(n), max(n) FROM a WHERE f < 100", "13.00|4.3333333333333333|1.50|10.00"),
        ("SELECT sum(n), max(n) FROM a WHERE f IS NOT NULL", "NaN|NaN"),
        ("SELECT f > 0, count(n), sum(n), avg(id), sum(id) FROM a GROUP BY 1 ORDER BY 1",
            "f|2|11.50|2.0000000000000000|4; t|2|NaN|3.6666666666666667|11"),
        ("SELECT sum(n) FILTER (WHERE id > 1), count(*) FILTER (WHERE f = 0) FROM a WHERE id <> 2 AND f < 9",
            "11.50|2"),
        ("SELECT sum(v), avg(v) FROM (VALUES (9223372036854775807), (9223372036854775807)) x(v)",
            "18446744073709551614|9223372036854775807"),
        (
            "SELECT sum(x) FROM (VALUES (99999999999999999999999999999999999999::numeric(38,0)),
             (99999999999999999999999999999999999999)) y(x)",
            "199999999999999999999999999999999999998",
        ),
        ("SELECT count(*), sum(n) FROM a WHERE false", "0|"),
        ("SELECT sum(CASE WHEN id < 4 THEN n ELSE 0 END) FROM a WHERE n < 100 AND f < 9", "11.50"),
    ]);
    let error = numbers().try_run(
        "SELECT sum(x) FROM (VALUES (9223372036854775807::int8)) v(x)
        JOIN (VALUES (1), (2)) w(y) ON true WHERE x / (y - 1) > 0",
    );
    assert_eq!(error.expect_err("a division by zero").state().0, "22012");
}

#[test]
fn floats_have_one_zero_and_one_nan() {
    numbers().check(&[
        ("SELECT f, count(*) FROM a GROUP BY f ORDER BY f", "0|2; 1|1; Infinity|1; NaN|1"),
        ("SELECT a.id, b.id FROM a JOIN b ON a.f = b.f ORDER BY 1, 2", "1|1; 2|2; 3|1; 5|3"),
        ("SELECT a.id, b.id FROM a JOIN b ON a.f = b.r ORDER BY 1, 2", "1|1; 2|2; 3|1; 5|3"),
        ("SELECT id FROM a WHERE f = 0 AND n IS NOT NULL ORDER BY f, id DESC", "3; 1"),
        // Of equal values the last one, as PostgreSQL 15 does.
        ("SELECT count(DISTINCT f), min(f), max(f) FROM a WHERE n IS NOT NULL", "3|-0|NaN"),
        ("SELECT id FROM a WHERE f > 'Infinity' AND id > 0 ORDER BY n", "2"),
    ]);
}

#[test]
fn what_is_computed_row_by_row_is_marked() {
    let mut db = numbers();
    let mut marked = |sql: &str| db.run(&format!("EXPLAIN {sql}")).join("\n").contains("by row:");
    assert!(!marked(
        "SELECT sum(n * (1 - m)) FROM a WHERE n < m AND f > 0 GROUP BY ROLLUP (id % 3)"
    ));
    assert!(!marked("SELECT count(*) FROM a WHERE n BETWEEN 1.5 AND 2 GROUP BY ROLLUP (m)"));
    assert!(marked("SELECT count(*) FROM a WHERE sqrt(f) > 1 GROUP BY ROLLUP (m)"));
}
