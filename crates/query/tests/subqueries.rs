//! Subqueries as joins, as plans for many rows, and row by row, against the answers PostgreSQL 15
//! gives. `braid workload differential --subqueries` compares random ones.

use crate::harness::Db;

/// `o`: outer rows, `s`: inner ones with NULLs, `e`: no rows, `k`: rows by a key.
fn tables() -> Db {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE o (id int PRIMARY KEY, g int, x int, t text, d numeric(6,2));
         CREATE TABLE s (id int PRIMARY KEY, g int, y int, n int NOT NULL, d numeric(6,2));
         CREATE TABLE e (g int, y int, n int NOT NULL);
         CREATE TABLE k (id int PRIMARY KEY, v text);
         INSERT INTO o VALUES (1, 1, 10, 'a', 1.5), (2, 1, NULL, 'b', 2), (3, 2, 30, 'c', NULL),
           (4, 3, 10, NULL, 4), (5, NULL, 10, 'e', 5);
         INSERT INTO s VALUES (1, 1, 10, 1, 1.50), (2, 1, 20, 2, 7), (3, 2, NULL, 3, 3),
           (4, 2, 40, 4, NULL), (5, NULL, 10, 5, 5);
         INSERT INTO k VALUES (1, 'one'), (2, NULL), (10, 'ten')",
    );
    db
}

#[test]
fn conditions_with_nulls() {
    tables().check(&[
        ("SELECT id FROM o WHERE EXISTS (SELECT 1 FROM s WHERE s.g = o.g)", "1; 2; 3"),
        ("SELECT id FROM o WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.g = o.g)", "4; 5"),
        ("SELECT id FROM o WHERE NOT NOT EXISTS (SELECT * FROM s WHERE s.g = o.g AND s.y > o.x)", "1; 3"),
        ("SELECT id FROM o WHERE EXISTS (SELECT s.y FROM s WHERE s.y < o.x ORDER BY 1 LIMIT 1)", "3"),
        ("SELECT id FROM o WHERE EXISTS (SELECT 1 FROM s WHERE s.g = o.g LIMIT 0)", ""),
        ("SELECT id FROM o WHERE EXISTS (SELECT count(*) FROM e WHERE e.g = o.g)", "1; 2; 3; 4; 5"),
        ("SELECT id FROM o WHERE EXISTS (SELECT 1 FROM s WHERE s.g = o.g GROUP BY s.g HAVING count(*) > 2)", ""),
        ("SELECT id FROM o WHERE x IN (SELECT y FROM s)", "1; 4; 5"),
        ("SELECT id FROM o WHERE x NOT IN (SELECT y FROM s)", ""),
        ("SELECT id FROM o WHERE x NOT IN (SELECT y FROM s WHERE y IS NOT NULL)", "3"),
        ("SELECT id FROM o WHERE x NOT IN (SELECT y FROM e)", "1; 2; 3; 4; 5"),
        ("SELECT id FROM o WHERE x NOT IN (SELECT y FROM s WHERE s.g = o.g)", "4; 5"),
        ("SELECT id FROM o WHERE x NOT IN (SELECT n FROM s WHERE s.g = o.g)", "1; 3; 4; 5"),
        ("SELECT id FROM o WHERE id NOT IN (SELECT n FROM s WHERE s.g = o.g)", "4; 5"),
        ("SELECT id FROM o WHERE (g, x) IN (SELECT g, y FROM s)", "1"),
        ("SELECT id FROM o WHERE (g, x) NOT IN (SELECT g, y FROM s)", ""),
        ("SELECT id FROM o WHERE (id, x) NOT IN (SELECT n, y FROM s)", "4"),
        ("SELECT id FROM o WHERE d IN (SELECT d FROM s)", "1; 5"),
        ("SELECT id FROM o WHERE x > ANY (SELECT y FROM s WHERE s.g = o.g)", ""),
        ("SELECT id FROM o WHERE x <= ALL (SELECT y FROM s WHERE s.g = o.g)", "1; 4; 5"),
        ("SELECT id FROM o WHERE id < ALL (SELECT n FROM s WHERE s.g = o.g)", "4; 5"),
        ("SELECT id FROM o WHERE NOT id < ANY (SELECT n FROM s WHERE s.g = o.g)", "2; 4; 5"),
        ("SELECT id FROM o WHERE NOT id >= ALL (SELECT n FROM s WHERE s.g = o.g)", "1; 3"),
        ("SELECT id FROM o WHERE x < ALL (SELECT y FROM s)", ""),
        ("SELECT id FROM o WHERE x < ANY (SELECT y FROM s)", "1; 3; 4; 5"),
        ("SELECT id FROM o WHERE x <> ALL (SELECT y FROM e)", "1; 2; 3; 4; 5"),
    ]);
}

#[test]
fn values_with_nulls() {
    tables().check(&[
        (
            "SELECT id, EXISTS (SELECT 1 FROM s WHERE s.g = o.g) FROM o ORDER BY 1",
            "1|t; 2|t; 3|t; 4|f; 5|f",
        ),
        (
            "SELECT id, x IN (SELECT y FROM s WHERE s.g = o.g), x NOT IN (SELECT y FROM s WHERE s.g = o.g)
             FROM o ORDER BY 1",
            "1|t|f; 2||; 3||; 4|f|t; 5|f|t",
        ),
        ("SELECT id FROM o WHERE id > 3 OR x IN (SELECT y FROM s WHERE s.g = o.g)", "1; 4; 5"),
        (
            "SELECT id, CASE WHEN EXISTS (SELECT 1 FROM s WHERE s.g = o.g) THEN 'y' ELSE 'n' END
             FROM o ORDER BY 1",
            "1|y; 2|y; 3|y; 4|n; 5|n",
        ),
        (
            "SELECT id, (SELECT count(*) FROM s WHERE s.g = o.g), (SELECT count(y) + 1 FROM s WHERE
             s.g = o.g), (SELECT sum(y) FROM s WHERE s.g = o.g) FROM o ORDER BY 1",
            "1|2|3|30; 2|2|3|30; 3|2|2|40; 4|0|1|; 5|0|1|",
        ),
        ("SELECT id FROM o WHERE d < (SELECT 0.5 * avg(s.d) FROM s WHERE s.g = o.g)", "1; 2"),
        ("SELECT id, (SELECT v FROM k WHERE k.id = o.x) FROM o ORDER BY 1", "1|ten; 2|; 3|; 4|ten; 5|ten"),
        (
            "SELECT id, (SELECT coalesce(v, '-') FROM k WHERE k.id = o.id) FROM o ORDER BY 1",
            "1|one; 2|-; 3|; 4|; 5|",
        ),
        (
            "SELECT id, (SELECT y FROM s WHERE s.g = o.g ORDER BY y DESC NULLS LAST LIMIT 1 OFFSET 1)
             FROM o ORDER BY 1",
            "1|10; 2|10; 3|; 4|; 5|",
        ),
        (
            "SELECT id, ARRAY(SELECT s.id + o.id FROM s WHERE s.g = o.g ORDER BY 1 DESC) FROM o ORDER BY 1",
            "1|{3,2}; 2|{4,3}; 3|{7,6}; 4|{}; 5|{}",
        ),
        (
            "SELECT g, count(*) FROM o GROUP BY g HAVING count(*) = (SELECT count(*) FROM s WHERE
             s.g = o.g) ORDER BY 1",
            "1|2",
        ),
        (
            "SELECT sum((SELECT count(*) FROM s WHERE s.g = o.g)), count(*) FILTER (WHERE x IN
             (SELECT y FROM s WHERE s.g = o.g)) FROM o",
            "6|1",
        ),
        (
            "SELECT id FROM o ORDER BY (SELECT max(n) FROM s WHERE s.g = o.g) DESC NULLS LAST, id",
            "3; 1; 2; 4; 5",
        ),
        (
            "SELECT o.id, k.id FROM o JOIN k ON k.id = o.id AND EXISTS (SELECT 1 FROM s WHERE s.n = k.id)
             ORDER BY 1",
            "1|1; 2|2",
        ),
        (
            "SELECT o.id, k.id FROM o LEFT JOIN k ON k.id = o.id AND EXISTS (SELECT 1 FROM s WHERE
             s.y = o.x) ORDER BY 1",
            "1|1; 2|; 3|; 4|; 5|",
        ),
    ]);
}

/// Two deep; the deeper one names the tables of both around it.
#[test]
fn nested() {
    tables().check(&[
        (
            "SELECT id FROM o WHERE EXISTS (SELECT 1 FROM s WHERE s.g = o.g AND EXISTS
             (SELECT 1 FROM k WHERE k.id = s.n))",
            "1; 2",
        ),
        (
            "SELECT id FROM o WHERE EXISTS (SELECT 1 FROM s WHERE s.g = o.g AND NOT EXISTS
             (SELECT 1 FROM k WHERE k.id = s.n AND k.id <> o.id))",
            "1; 2; 3",
        ),
        (
            "SELECT id, (SELECT count(*) FROM s WHERE s.g = o.g AND s.y IN (SELECT k.id FROM k WHERE
             k.id >= o.id)) FROM o ORDER BY 1",
            "1|1; 2|1; 3|0; 4|0; 5|0",
        ),
        (
            "SELECT id FROM o WHERE x = (SELECT min(y) FROM s WHERE s.g = o.g AND s.n < (SELECT
             max(n) FROM s i WHERE i.g = s.g))",
            "1",
        ),
    ]);
}

#[test]
fn lateral() {
    tables().check(&[
        ("SELECT o.id, l.id FROM o, LATERAL (SELECT * FROM s WHERE s.g = o.g AND s.y > 10) l ORDER BY 1",
            "1|2; 2|2; 3|4"),
        ("SELECT o.id, l.y FROM o LEFT JOIN LATERAL (SELECT y FROM s WHERE s.g = o.g AND s.y > 10) l
          ON true ORDER BY 1", "1|20; 2|20; 3|40; 4|; 5|"),
        ("SELECT o.id, l.y FROM o LEFT JOIN LATERAL (SELECT y FROM s WHERE s.g = o.g) l ON l.y = o.x
          ORDER BY 1", "1|10; 2|; 3|; 4|; 5|"),
        ("SELECT o.id, l.n FROM o JOIN LATERAL (SELECT n FROM s WHERE s.g = o.g ORDER BY n DESC LIMIT 1) l
          ON l.n > 2 ORDER BY 1", "3|4"),
        ("SELECT o.id, l.n FROM o LEFT JOIN LATERAL (SELECT n FROM s WHERE s.g = o.g ORDER BY n DESC
          LIMIT 1) l ON true ORDER BY 1", "1|2; 2|2; 3|4; 4|; 5|"),
        ("SELECT o.id, l.c, l.m FROM o CROSS JOIN LATERAL (SELECT count(*) AS c, max(d) AS m FROM s WHERE
          s.g = o.g) l ORDER BY 1", "1|2|7.00; 2|2|7.00; 3|2|3.00; 4|0|; 5|0|"),
        ("SELECT o.id, a.v, b.w FROM o, LATERAL (SELECT o.x + 1 AS v) a, LATERAL (SELECT a.v * 2 AS w) b
          ORDER BY 1", "1|11|22; 2||; 3|31|62; 4|11|22; 5|11|22"),
        ("SELECT o.id, l.v FROM o, LATERAL (SELECT v FROM k WHERE id = 1) l WHERE o.id < 3 ORDER BY 1",
            "1|one; 2|one"),
        ("SELECT id, (SELECT sum(l.z) FROM k, LATERAL (SELECT k.id * o.id AS z) l WHERE k.id < 3) FROM o
          ORDER BY 1", "1|3; 2|6; 3|9; 4|12; 5|15"),
    ]);
}

/// What can fail is computed for the rows that ask for it only.
#[test]
fn errors_are_those_of_the_rows_that_ask() {
    let mut db = tables();
    db.check(&[
        ("SELECT id FROM o WHERE id > 9 AND EXISTS (SELECT 1 FROM s WHERE s.g = o.g AND 1 / (s.n - 1) > 5)", ""),
        (
            "SELECT id, CASE WHEN id > 3 THEN (SELECT 1 / (s.n - 1) FROM s WHERE s.id = o.id) END FROM o
             ORDER BY 1",
            "1|; 2|; 3|; 4|0; 5|0",
        ),
        ("SELECT id FROM o WHERE id = 4 AND x > (SELECT n FROM s WHERE s.g = o.g)", ""),
    ]);
    for (sql, state) in [
        ("SELECT (SELECT n FROM s WHERE s.g = o.g) FROM o", "21000"),
        ("SELECT (SELECT 1 / (s.n - 1) FROM s WHERE s.id = o.id) FROM o", "22012"),
        (
            "SELECT id FROM o WHERE EXISTS (SELECT 1 FROM s WHERE s.g = o.g AND 1 / (s.n - 1) > 5)",
            "22012",
        ),
    ] {
        let error = db.try_run(sql).expect_err(sql);
        assert_eq!(error.state().0, state, "{sql}: {error}");
    }
}

/// Thousands of rows ask: the answers come from joins, or from one plan for each batch.
#[test]
fn many_rows_are_answered_together() {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE p (id int PRIMARY KEY, a int, b int);
         CREATE TABLE c (p int, n int, v int, PRIMARY KEY (p, n));
         INSERT INTO p SELECT g, g % 7, g % 100 FROM generate_series(1, 3000) g;
         INSERT INTO c SELECT g, n, g * n FROM generate_series(1, 3000, 2) g, generate_series(1, 2) n",
    );
    db.check(&[
        ("SELECT count(*) FROM p WHERE NOT EXISTS (SELECT 1 FROM c WHERE c.p = p.id)", "1500"),
        ("SELECT count(*) FROM p WHERE id NOT IN (SELECT p FROM c)", "1500"),
        ("SELECT sum((SELECT count(*) FROM c WHERE c.p = p.id)) FROM p", "3000"),
        // Row by row by its form: a limit, several levels, a division.
        ("SELECT sum((SELECT v FROM c WHERE c.p = p.id ORDER BY n DESC LIMIT 1)) FROM p", "4500000"),
        ("SELECT count(*) FROM p WHERE EXISTS (SELECT 1 FROM c WHERE c.p = p.id AND 10 / c.n > 7)", "1500"),
        (
            "SELECT count(*) FROM p WHERE EXISTS (SELECT 1 FROM c WHERE c.p = p.id AND EXISTS
             (SELECT 1 FROM c d WHERE d.p = c.p AND d.v > p.id))",
            "1500",
        ),
        (
            "SELECT count(*) FROM p WHERE (SELECT count(*) FROM c WHERE c.p = p.id AND c.v > p.b) = 0",
            "1500",
        ),
    ]);
}

/// A mark of a subquery that itself joins the groups of another.
#[test]
fn marks_of_joins() {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE a (k int PRIMARY KEY, v int); CREATE TABLE b (k int PRIMARY KEY, v int UNIQUE);
         INSERT INTO a VALUES (1, 1), (2, 2), (3, NULL), (4, 7);
         INSERT INTO b VALUES (1, 1), (2, 2), (3, 3), (4, NULL);",
    );
    db.check(&[
        (
            "SELECT k, EXISTS (SELECT 1 FROM a s WHERE o.v < (SELECT min(b.v) FROM b
                WHERE b.v = s.v)) FROM a o ORDER BY 1",
            "1|t; 2|f; 3|f; 4|f",
        ),
        (
            "SELECT k FROM a o WHERE k = 4 OR EXISTS (SELECT 1 FROM a s, b WHERE s.v = b.k
                AND b.v = o.v AND s.k IN (SELECT k FROM b)) ORDER BY 1",
            "1; 2; 4",
        ),
    ]);
}

/// A column that is known to have a value narrows the subquery, whatever form the value has.
#[test]
fn known_values_of_all_types() {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE a (k int PRIMARY KEY, n numeric(8,2), m numeric, f float8, d date, b bigint,
             t text, u uuid);
         INSERT INTO a VALUES (1, 11.60, 2.5, 0.5, '2026-11-23', 7, 'x',
             '00000000-0000-0000-0000-000000000001'), (2, 3, NULL, 1, NULL, 8, 'y', NULL);",
    );
    for (column, value) in [
        ("n", "11.60"),
        ("n", "11.600"),
        ("m", "2.50"),
        ("f", "0.5"),
        ("d", "'2026-11-23'"),
        ("b", "7"),
        ("t", "'x'"),
        ("u", "'00000000-0000-0000-0000-000000000001'"),
    ] {
        let inner = format!("SELECT 1 FROM a s WHERE s.{column} = o.{column}");
        for (condition, want) in [
            (format!("EXISTS ({inner})"), vec!["1"]),
            (format!("NOT EXISTS ({inner})"), vec![]),
            (format!("k IN (SELECT k FROM a s WHERE s.{column} = o.{column})"), vec!["1"]),
            (format!("1 = (SELECT count(*) FROM a s WHERE s.{column} = o.{column})"), vec!["1"]),
        ] {
            let sql = format!("SELECT k FROM a o WHERE o.{column} = {value} AND {condition}");
            assert_eq!(db.run(&sql), want, "{sql}");
        }
        let nothing = format!("SELECT k FROM a o WHERE o.n = 11.605 AND EXISTS ({inner})");
        assert!(db.run(&nothing).is_empty());
    }
}

#[test]
fn aggregates_of_all_rows_are_values_of_every_row() {
    let mut db = Db::new();
    db.run(
        "create table t (id int primary key, a int, v numeric(10,2), name text);
         create table none (id int primary key, a int);
         insert into t select i, nullif(i % 5, 4), i / 4.0, 'n' || i % 3
             from generate_series(1, 1000) g(i)",
    );
    db.check(&[
        ("select id from t where id = (select max(id) from t)", "1000"),
        ("select id, (select min(v) from t) from t where id < 3 order by id", "1|0.25; 2|0.25"),
        ("select (select count(*) from none), (select sum(a) from none)", "0|"),
        ("select count(*) from t where a > (select max(a) from none)", "0"),
        ("select count(*) from t where a is distinct from (select max(a) from none)", "800"),
        ("select count(*) from none where a < (select max(a) from t)", "0"),
        (
            "select a, count(*) from t group by a having count(*) > (select count(*) / 6 from t) \
             and max(v) = (select max(v) from t) order by a",
            "0|200",
        ),
        (
            "select count(*) from t where v > (select avg(v) from t) \
             and id > (select avg(id) from t where a = 1) and id < (select max(id) from t)",
            "499",
        ),
        (
            "select id from t where v = (select max(v) from t where a = (select min(a) from t))",
            "1000",
        ),
        ("select name, (select max(name) from t) || name from t where id = 7", "n1|n2n1"),
        ("select case when id > 1 then (select max(id) from t) end from t where id < 3", "; 1000"),
        ("select id from t order by id = (select min(id) + 1 from t) desc, id limit 2", "2; 1"),
        ("select sum((select max(id) from t)) from t where id < 4", "3000"),
        (
            "select t.id from t left join none on none.id = (select max(id) from t) \
             where t.id < 3 order by 1",
            "1; 2",
        ),
    ]);
    // Not computed for a row that does not ask for it.
    db.check(&[(
        "select count(*) from t where id < 0 and a = (select max(1 / (id - 1)) from t)",
        "0",
    )]);
    let error = db.try_run("select count(*) from t where a = (select max(1 / (id - 1)) from t)");
    assert_eq!(error.expect_err("a division by zero").state().0, "22012");
    for sql in [
        "update t set a = (select max(a) from t) + 1 where id = 1",
        "delete from t where id = (select max(id) from t)",
        "insert into t select (select max(id) from t) + 1, 0, 0, ''",
    ] {
        db.run(sql);
    }
    db.check(&[("select max(id), max(a), count(*) from t", "1000|4|1000")]);
}

#[test]
fn alternatives_with_parameters_answer_as_with_values() {
    let mut db = Db::new();
    db.run(
        "create table p (id int primary key, brand char(10), size int);
         create table l (k int primary key, p int, q numeric(15,2), mode char(5));
         insert into p select i, 'b' || i % 7, i % 50 from generate_series(1, 1000) g(i);
         insert into l select i, i % 1000, i % 60, 'm' || i % 4 from generate_series(1, 5000) g(i)",
    );
    let text = |brands: [&str; 2], low: i32| {
        format!(
            "select count(*), sum(q) from l, p where p.id = l.p and brand = '{}' and q >= {low} \
             and q <= {low} + 10 and size between 1 and 30 and mode in ('m1', 'm2') \
             or p.id = l.p and brand = '{}' and q >= {low} and q <= {low} + 20 and mode = 'm3'",
            brands[0], brands[1],
        )
    };
    // The first is planned with its values, the others with parameters.
    let mut seen = Vec::new();
    for _ in 0..3 {
        for (brands, low) in [(["b1", "b2"], 10), (["b3", "b4"], 20), (["b5", "x"], 0)] {
            seen.push(db.run(&text(brands, low)));
        }
    }
    assert_eq!(seen[..3], seen[3..6]);
    assert_eq!(seen[..3], seen[6..]);
    assert!(seen[0][0] != "0|");
}
