//! Plans are made once and executed many times: nothing of one execution is left for the next.

use std::sync::Arc;

use crate::harness::Db;
use braid_sql::{Outcome, Prepared, Rows};
use braid_types::{Datum, TimeZone};

fn shop() -> Db {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE c (id int PRIMARY KEY, name text);
         CREATE TABLE o (id int PRIMARY KEY, c int, total numeric(10,2), at timestamptz);
         CREATE INDEX ON o (c);
         INSERT INTO c SELECT i, 'name ' || i FROM generate_series(1, 50) AS g(i);
         INSERT INTO o SELECT i, i % 50 + 1, i, now() - interval '1 hour'
             FROM generate_series(1, 500) AS g(i);",
    );
    db
}

fn prepare(db: &mut Db, sql: &str) -> Arc<Prepared> {
    let statement = db.session.parse_script(sql).expect("parses").remove(0);
    db.session.prepare(statement, &[]).expect("plans")
}

fn open(db: &mut Db, statement: &Arc<Prepared>, params: &[Datum]) -> Rows {
    match db.session.execute(statement, params.to_vec()).expect("runs") {
        Outcome::Rows(rows) => rows,
        Outcome::Done(tag) => panic!("{tag} has no rows"),
        _ => panic!("rows expected"),
    }
}

fn batch(rows: &mut Rows) -> Option<String> {
    let text = |row: &Vec<Datum>| {
        let cells: Vec<String> =
            row.iter().map(|v| v.to_text(TimeZone::utc()).unwrap_or_default()).collect();
        cells.join("|")
    };
    let batch = rows.next_batch().expect("gives rows")?;
    Some(batch.iter().map(text).collect::<Vec<_>>().join("; "))
}

fn all(db: &mut Db, statement: &Arc<Prepared>, params: &[Datum]) -> String {
    let mut rows = open(db, statement, params);
    let mut out = Vec::new();
    while let Some(batch) = batch(&mut rows) {
        out.push(batch);
    }
    out.join("; ")
}

const JOIN: &str = "SELECT c.name, count(*), sum(o.total) FROM c JOIN o ON o.c = c.id
     WHERE c.id = $1 AND o.id > $2 GROUP BY c.name";

#[test]
fn each_execution_has_its_own_parameters() {
    let mut db = shop();
    let join = prepare(&mut db, JOIN);
    let five = [Datum::Int4(5), Datum::Int4(0)];
    let six = [Datum::Int4(6), Datum::Int4(300)];
    for _ in 0..3 {
        assert_eq!(all(&mut db, &join, &five), "name 5|10|2290.00");
        assert_eq!(all(&mut db, &join, &six), "name 6|4|1520.00");
    }
    assert_eq!(all(&mut db, &join, &[Datum::Null, Datum::Int4(0)]), "");
    assert_eq!(all(&mut db, &join, &five), "name 5|10|2290.00");
}

#[test]
fn what_was_written_meanwhile_is_seen() {
    let mut db = shop();
    let join = prepare(&mut db, JOIN);
    let five = [Datum::Int4(5), Datum::Int4(0)];
    assert_eq!(all(&mut db, &join, &five), "name 5|10|2290.00");
    db.run("UPDATE o SET total = total + 1 WHERE c = 5");
    assert_eq!(all(&mut db, &join, &five), "name 5|10|2300.00");
    db.run("BEGIN; DELETE FROM o WHERE id = 4");
    assert_eq!(all(&mut db, &join, &five), "name 5|9|2295.00");
    db.run("ROLLBACK");
    assert_eq!(all(&mut db, &join, &five), "name 5|10|2300.00");
    db.run("ALTER TABLE c ALTER COLUMN name SET DEFAULT 'x'; DROP INDEX o_c_idx");
    assert_eq!(all(&mut db, &join, &five), "name 5|10|2300.00");
}

#[test]
fn two_open_portals_of_one_statement_do_not_meet() {
    let mut db = shop();
    let pairs = prepare(
        &mut db,
        "SELECT a.id + $1, b.id FROM o a JOIN o b ON a.c = b.c WHERE a.id > b.id ORDER BY 1, 2",
    );
    db.run("BEGIN");
    let mut first = open(&mut db, &pairs, &[Datum::Int4(0)]);
    let head = batch(&mut first).expect("rows");
    let mut second = open(&mut db, &pairs, &[Datum::Int4(1_000)]);
    let other = batch(&mut second).expect("rows");
    assert!(head.starts_with("51|1; ") && other.starts_with("1051|1; "), "{head:.40} {other:.40}");
    let mut rest = 0;
    while let Some(more) = batch(&mut first) {
        assert!(
            more.split("; ").all(|row| row.split('|').next().unwrap().len() <= 3),
            "{more:.40}"
        );
        rest += 1;
    }
    assert!(rest > 0, "the first portal was still open");
    drop((first, second));
    db.run("COMMIT");
    assert!(all(&mut db, &pairs, &[Datum::Int4(7)]).starts_with("58|1; "));
}

#[test]
fn the_clock_and_the_session_are_those_of_the_execution() {
    let mut db = shop();
    let late = prepare(
        &mut db,
        "SELECT count(*) FROM c JOIN o ON o.c = c.id WHERE o.at < now() - interval '30 minutes'",
    );
    assert_eq!(all(&mut db, &late, &[]), "500");
    let clock = prepare(&mut db, "SELECT now(), count(*) FROM c JOIN o ON o.c = c.id");
    let before = all(&mut db, &clock, &[]);
    std::thread::sleep(std::time::Duration::from_millis(3));
    assert_ne!(before, all(&mut db, &clock, &[]));
    let zone = prepare(
        &mut db,
        "SELECT count(*) FROM c JOIN o ON o.c = c.id
         WHERE timestamptz '2020-01-01 00:00' = timestamptz '2020-01-01 00:00+00'",
    );
    assert_eq!(all(&mut db, &zone, &[]), "500");
    db.run("SET TimeZone = 'America/New_York'");
    assert_eq!(all(&mut db, &zone, &[]), "0");
}

#[test]
fn a_failed_execution_leaves_the_plan_usable() {
    let mut db = shop();
    let divided =
        prepare(&mut db, "SELECT sum(o.id / $1) FROM c JOIN o ON o.c = c.id WHERE c.id = $2");
    let with = |by| [Datum::Int4(by), Datum::Int4(5)];
    assert_eq!(all(&mut db, &divided, &with(1)), "2290");
    for _ in 0..2 {
        let error = db.session.execute(&divided, with(0).to_vec()).err().expect("by zero");
        assert_eq!(error.state().0, "22012");
    }
    assert_eq!(all(&mut db, &divided, &with(2)), "1145");
}

/// When the schema or what is known of the rows has changed, a statement is planned once more, not
/// at each execution.
#[test]
fn a_change_is_planned_for_once() {
    let mut db = shop();
    let statement = prepare(&mut db, JOIN);
    let plans = |db: &mut Db| -> i64 {
        let sql = "SELECT sum(plans) FROM pg_stat_statements WHERE query LIKE 'SELECT c.name%'";
        db.run(sql)[0].parse().expect("a number")
    };
    all(&mut db, &statement, &[Datum::Int4(3), Datum::Int4(0)]);
    for change in [
        "CREATE TABLE other (id int PRIMARY KEY)",
        "INSERT INTO o SELECT i + 1000, 7, 1, now() FROM generate_series(1, 3000) AS g(i);
         ANALYZE o",
    ] {
        let before = plans(&mut db);
        db.run(change);
        for id in 2..7 {
            let got = all(&mut db, &statement, &[Datum::Int4(id), Datum::Int4(0)]);
            assert!(got.starts_with(&format!("name {id}|")), "{got}");
        }
        assert_eq!(plans(&mut db), before + 1, "{change}");
    }
}

#[test]
fn integers_beside_declared_numerics_are_numerics_of_that_scale() {
    let mut db = Db::new();
    db.run(
        "create table t (id int primary key, v numeric(15,2), w numeric(30,25), x numeric);
         insert into t select i, i / 4.0, i / 7.0, i / 2.0 from generate_series(-500, 500) g(i);
         insert into t values (1000, 'NaN', null, 'NaN')",
    );
    for condition in [
        "v >= {a} and v <= {a} + {b}",
        "v = {a} or w > {b}",
        "{a} < w",
        "x <> {a}",
        "v in ({a}, {b}, {a} + {b})",
        "v between {a} and {a} * {b}",
        "w < {a} - 1000000000000000000",
    ] {
        let with = |a: &str, b: &str| {
            let condition = condition.replace("{a}", a).replace("{b}", b);
            format!(
                "select count(*), sum(id) from t where {condition} group by id % 2 order by 1, 2"
            )
        };
        for (a, b) in [(1, 10), (-3, 2), (70, 9), (0, 0), (2147483647, 1)] {
            let sum_fits = i32::try_from(i64::from(a) + i64::from(b)).is_ok();
            if condition.contains("{a} + {b}") && !sum_fits {
                continue;
            }
            // The first time with its values, then with parameters; then as numerics.
            let given = with(&a.to_string(), &b.to_string());
            let (first, second) = (db.run(&given), db.run(&given));
            let other = db.run(&with(&format!("{a}::numeric"), &format!("{b}::numeric")));
            assert_eq!(first, second, "{given}");
            assert_eq!(first, other, "{given}");
        }
    }
}

/// Parameters beside `char(n)` are padded once: the column stays one that a scan knows.
#[test]
fn untyped_parameters_of_padded_columns_are_filters() {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE n (k int PRIMARY KEY, name char(25) NOT NULL);
         CREATE TABLE s (k int PRIMARY KEY, n int NOT NULL, v int);
         INSERT INTO n SELECT i, 'name ' || i FROM generate_series(1, 25) AS g(i);
         INSERT INTO s SELECT i, i % 25 + 1, i FROM generate_series(1, 1000) AS g(i); ANALYZE;
         PREPARE q AS SELECT count(*), sum(v) FROM n, s WHERE s.n = n.k AND n.name = $1",
    );
    for (name, sum) in [("name 7", "40|19740"), ("name 7   ", "40|19740"), ("name 70", "0|")] {
        assert_eq!(db.run(&format!("EXECUTE q ('{name}')")), [sum], "{name}");
    }
    let plan = db.run("EXPLAIN (COSTS) EXECUTE q ('name 7')").join("\n");
    assert!(plan.contains("filter=name@0 = #0()"), "{plan}");
    assert!(plan.contains("Scan: n all rows") && plan.contains("rows=1"), "{plan}");
}

/// A plan is made for the values of its first execution; values of which very many other rows are
/// expected get one of their own.
#[test]
fn other_values_get_another_plan_if_they_find_many_more_rows() {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE a (k int PRIMARY KEY, x int NOT NULL, y int NOT NULL);
         CREATE TABLE b (k int PRIMARY KEY, x int NOT NULL, y int NOT NULL);
         INSERT INTO a SELECT i, i, i FROM generate_series(1, 120000) AS g(i);
         INSERT INTO b SELECT i, i, i FROM generate_series(1, 120000) AS g(i); ANALYZE;
         PREPARE q AS SELECT count(*), sum(b.y) FROM a, b WHERE a.x = b.x AND a.y < $1 AND b.y < $2",
    );
    let first = |db: &mut Db, values: &str| {
        let plan = db.run(&format!("EXPLAIN EXECUTE q ({values})"));
        let scan = plan.iter().find_map(|line| line.split("Scan: ").nth(1)).expect("scans");
        scan.split(' ').next().unwrap().to_string()
    };
    for _ in 0..2 {
        assert_eq!(first(&mut db, "10, 110000"), "a");
        assert_eq!(db.run("EXECUTE q (10, 110000)"), ["9|45"]);
        assert_eq!(first(&mut db, "110000, 10"), "b");
        assert_eq!(db.run("EXECUTE q (110000, 10)"), ["9|45"]);
    }
}

/// Every place that a parameter can stand at, with two sets of values.
const PLACES: &[(&str, [&str; 2])] = &[
    ("SELECT x FROM (VALUES ($1::int), (0)) v(x)", ["1", "2"]),
    (
        "SELECT x, y FROM (VALUES ($1::int, 'a'), (0, $2::text), (7, 'z')) v(x, y)",
        ["1, 'b'", "2, 'c'"],
    ),
    ("VALUES ($1::int), ($1 + 1)", ["1", "5"]),
    (
        "SELECT c.id FROM c JOIN (VALUES ($1::int), ($2::int)) v(x) ON c.id = v.x ORDER BY 1",
        ["1, 2", "3, 4"],
    ),
    ("SELECT id FROM c WHERE id IN (VALUES ($1::int), ($2::int)) ORDER BY 1", ["1, 2", "3, 4"]),
    (
        "SELECT (SELECT sum(x) FROM (VALUES (c.id), ($1::int)) v(x)) FROM c WHERE id < 3 ORDER BY 1",
        ["1", "9"],
    ),
    (
        "SELECT c.id, x FROM c, LATERAL (VALUES (c.id), ($1::int)) v(x) WHERE id < 3 ORDER BY 1, 2",
        ["10", "90"],
    ),
    ("SELECT x FROM (VALUES ($1::int), (0) ORDER BY 1 LIMIT 1) v(x)", ["-1", "2"]),
    ("SELECT x FROM (SELECT $1::int UNION ALL SELECT 0) v(x)", ["1", "2"]),
    ("SELECT x FROM (SELECT $1::int UNION SELECT $2::int) v(x) ORDER BY 1", ["1, 1", "2, 3"]),
    ("SELECT $1::int EXCEPT SELECT $2::int", ["1, 2", "3, 3"]),
    ("SELECT count(*) FROM c, o WHERE c.id = o.c AND c.id <= $1", ["2", "20"]),
    ("SELECT c.id FROM c JOIN o ON o.c = c.id ORDER BY o.id LIMIT $1", ["1", "3"]),
    ("SELECT c.id FROM c JOIN o ON o.c = c.id ORDER BY o.id LIMIT 2 OFFSET $1", ["0", "7"]),
    ("SELECT DISTINCT c FROM o ORDER BY c FETCH FIRST $1 ROWS ONLY", ["1", "3"]),
    (
        "SELECT id FROM (SELECT id FROM o ORDER BY id LIMIT $1) x ORDER BY id DESC LIMIT 1",
        ["4", "8"],
    ),
    (
        "SELECT id, sum(id) OVER (ORDER BY id ROWS $1 PRECEDING) FROM c WHERE id < 5 ORDER BY 1",
        ["1", "2"],
    ),
    (
        "SELECT id, sum(id) OVER (ORDER BY id RANGE BETWEEN $1 PRECEDING AND $2 FOLLOWING) FROM c WHERE id < 5 ORDER BY 1",
        ["1, 0", "0, 2"],
    ),
    ("SELECT id, ntile($1) OVER (ORDER BY id) FROM c WHERE id < 7 ORDER BY 1", ["2", "3"]),
    (
        "SELECT id, lag(id, $1, $2) OVER (ORDER BY id) FROM c WHERE id < 5 ORDER BY 1",
        ["1, -1", "2, -2"],
    ),
    ("SELECT id, nth_value(id, $1) OVER (ORDER BY id) FROM c WHERE id < 5 ORDER BY 1", ["1", "2"]),
    ("SELECT percentile_cont($1) WITHIN GROUP (ORDER BY id) FROM c", ["0.5", "0.1"]),
    (
        "SELECT percentile_disc($1::float8[]) WITHIN GROUP (ORDER BY id) FROM c",
        ["'{0.5}'", "'{0.1,1}'"],
    ),
    (
        "SELECT percentile_disc($1::float8[]) WITHIN GROUP (ORDER BY id) FROM c",
        ["'{0.5}'", "'{0.1,1}'"],
    ),
    ("SELECT id % $1, count(*) FROM c GROUP BY id % $1 ORDER BY 1", ["2", "3"]),
    ("SELECT string_agg(name, $1 ORDER BY id) FROM c WHERE id < 4", ["'-'", "'+'"]),
    ("SELECT count(*) FILTER (WHERE id > $1), sum(id + $1) FROM c", ["10", "40"]),
    ("SELECT array_agg(x) FROM generate_series($1::int, $2::int) x", ["1, 3", "5, 6"]),
    (
        "SELECT c.id, x FROM c, generate_series(1, $1::int) x WHERE c.id < 3 ORDER BY 1, 2",
        ["1", "2"],
    ),
    ("SELECT array_agg(x) FROM unnest($1::int[]) WITH ORDINALITY u(x, n)", ["'{1,2}'", "'{7}'"]),
    (
        "SELECT * FROM ROWS FROM (generate_series(1, $1::int), unnest($2::text[])) r(a, b)",
        ["1, '{a,b}'", "2, '{c}'"],
    ),
    (
        "SELECT * FROM json_to_recordset($1::json) r(a int)",
        [r#"'[{"a":1}]'"#, r#"'[{"a":2},{"a":3}]'"#],
    ),
    ("SELECT array_agg(m) FROM regexp_split_to_table($1, ',') m", ["'a,b'", "'c'"]),
    (
        "SELECT c.name FROM c JOIN o ON o.c = c.id WHERE c.name LIKE $1 GROUP BY 1 ORDER BY 1",
        ["'name 1_'", "'%5'"],
    ),
    ("SELECT count(*) FROM c JOIN o ON o.c = c.id WHERE c.name ~ $1", ["'1$'", "'^name 2'"]),
    (
        "SELECT c.id FROM c WHERE c.id IN ($1, $2) OR EXISTS (SELECT 1 FROM o WHERE o.c = c.id AND o.id = $3) ORDER BY 1",
        ["1, 2, 3", "4, 5, 6"],
    ),
    (
        "SELECT c.id FROM c LEFT JOIN o ON o.c = c.id AND o.id = $1 WHERE o.id IS NOT NULL",
        ["7", "77"],
    ),
    (
        "SELECT c.id FROM c WHERE c.id = ANY($1::int[]) AND EXISTS (SELECT FROM o WHERE o.c = c.id) ORDER BY 1",
        ["'{1,2}'", "'{9}'"],
    ),
    (
        "SELECT CASE WHEN c.id = $1 THEN $2 ELSE 'no' END FROM c JOIN o ON o.id = c.id WHERE c.id < 3 ORDER BY c.id",
        ["1, 'one'", "2, 'two'"],
    ),
    (
        "WITH q AS MATERIALIZED (SELECT id FROM c WHERE id < $1) SELECT count(*), sum(a.id) FROM q a, q b",
        ["3", "5"],
    ),
    ("WITH q AS (SELECT $1::int AS n) SELECT a.n + b.n FROM q a, q b", ["3", "5"]),
    (
        "WITH RECURSIVE r AS (SELECT $1::int AS n UNION ALL SELECT n + 1 FROM r WHERE n < $2) SELECT sum(n) FROM r",
        ["1, 3", "5, 6"],
    ),
    (
        "SELECT (SELECT count(*) FROM o WHERE o.c = c.id AND o.id > $1) FROM c WHERE id < 3 ORDER BY id",
        ["100", "400"],
    ),
    ("SELECT (SELECT $1::int + max(id) FROM c)", ["1", "2"]),
    ("SELECT id % $1, count(*) FROM c GROUP BY 1 ORDER BY 1", ["2", "3"]),
    ("SELECT c % 3, count(*) FROM o GROUP BY 1 HAVING count(*) > $1 ORDER BY 1", ["0", "166"]),
    ("SELECT DISTINCT ON (id % $1) id FROM c ORDER BY id % $1, id", ["2", "3"]),
    ("SELECT id FROM c WHERE id < 4 ORDER BY CASE WHEN id = $1 THEN 0 ELSE id END", ["2", "3"]),
    (
        "SELECT id % 2, id % $1, count(*) FROM c GROUP BY GROUPING SETS ((1), (2)) ORDER BY 1, 2",
        ["3", "5"],
    ),
    ("SELECT count(*) FROM c TABLESAMPLE BERNOULLI ($1) REPEATABLE (1)", ["0", "100"]),
    ("SELECT jsonb_path_query('[1,2,3]', $1)", ["'$[0]'", "'$[*] ? (@ > 1)'"]),
    (
        "SELECT to_char(timestamp '2026-11-28 03:04', $1) FROM c JOIN o ON c.id = o.id LIMIT 1",
        ["'YYYY'", "'MM'"],
    ),
    (
        "SELECT timestamptz '2026-11-28 03:04Z' AT TIME ZONE $1 FROM c JOIN o ON c.id = o.id LIMIT 1",
        ["'UTC'", "'Asia/Tokyo'"],
    ),
    (
        "SELECT date_trunc($1, timestamp '2026-11-28 03:04') FROM c JOIN o ON c.id = o.id LIMIT 1",
        ["'day'", "'year'"],
    ),
    ("SELECT (ARRAY[10, 20, 30])[$1] FROM c JOIN o ON c.id = o.id LIMIT 1", ["1", "2"]),
    ("SELECT (ARRAY[10, 20, 30])[$1:] FROM c JOIN o ON c.id = o.id LIMIT 1", ["2", "3"]),
    (
        "SELECT ROW(c.id, o.id) < ROW($1, $2) FROM c JOIN o ON c.id = o.id WHERE c.id = 3",
        ["3, 4", "3, 3"],
    ),
    ("SELECT coalesce($1::int, c.id) FROM c JOIN o ON c.id = o.id WHERE c.id = 3", ["NULL", "8"]),
    (
        "SELECT string_agg(x::text, ',') FROM (SELECT id AS x FROM c WHERE id < $1 INTERSECT SELECT c FROM o WHERE id < $2) q",
        ["9, 3", "4, 9"],
    ),
    ("SELECT max(id) FILTER (WHERE id < $1) OVER () FROM c LIMIT 1", ["9", "4"]),
    ("SELECT (VALUES ($1::int))", ["9", "4"]),
];

#[test]
fn a_parameter_at_any_place_has_its_value_of_now() {
    let mut db = shop();
    let mut wrong = Vec::new();
    for (at, (sql, values)) in PLACES.iter().enumerate() {
        db.run(&format!("PREPARE p{at} AS {sql}"));
        let expected = values.map(|given| db.another().run(&with_literals(sql, given)));
        for round in 0..3 {
            for (given, expected) in values.iter().zip(&expected) {
                let answer = db.run(&format!("EXECUTE p{at}({given})"));
                // And as a text that comes again with other literals.
                let text = db.run(&with_literals(sql, given));
                if answer != *expected || text != *expected {
                    wrong.push(format!("{round} {sql} {given}: {expected:?} {answer:?} {text:?}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The query with values in the place of its parameters.
fn with_literals(sql: &str, values: &str) -> String {
    let split: Vec<&str> = values.split(", ").collect();
    let parts = if sql.contains("$2") { split } else { vec![values] };
    let numbered = parts.iter().enumerate().rev();
    numbered.fold(sql.to_string(), |sql, (at, value)| sql.replace(&format!("${}", at + 1), value))
}

/// Plans are kept by what they depend on, and so are transactions: on the tables that they read.
#[test]
fn a_block_with_general_plans_depends_on_no_other_table() {
    let mut db = shop();
    db.run("CREATE TABLE u (id int PRIMARY KEY, n int); CREATE TABLE log (id int PRIMARY KEY)");
    let mut other = db.another();
    let general = "SELECT c.name, count(*) FROM c JOIN o ON o.c = c.id + 0 \
                   GROUP BY 1 ORDER BY 1 LIMIT 1";
    let changes = [
        "CREATE TABLE v (id int PRIMARY KEY)",
        "ALTER TABLE u ADD COLUMN x int DEFAULT 7",
        "CREATE INDEX ON u (n)",
        "CREATE VIEW w AS SELECT n FROM u",
        "DROP VIEW w; TRUNCATE u",
        "CREATE SCHEMA s; CREATE DATABASE d",
        "DROP TABLE u",
    ];
    for (n, change) in changes.iter().enumerate() {
        db.run(&format!("BEGIN ISOLATION LEVEL SERIALIZABLE; {general}"));
        other.run(change);
        assert_eq!(db.run(general), ["name 1|10"], "{change}");
        db.run(&format!("INSERT INTO log VALUES ({n}); COMMIT"));
    }
    db.run(&format!("BEGIN ISOLATION LEVEL SERIALIZABLE; {general}"));
    other.run("ALTER TABLE o ADD COLUMN x int");
    db.run("INSERT INTO log VALUES (100)");
    assert_eq!(db.try_run("COMMIT").expect_err("its table has changed").state().0, "40001");
    assert_eq!(other.run("SELECT count(*) FROM log"), [changes.len().to_string()]);
}
