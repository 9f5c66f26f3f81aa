//! Statements that come again with other literals share a plan, and nobody can tell.

use crate::harness::Db;
use braid_sql::{Outcome, Rows, Session, SessionOptions};
use braid_types::{Datum, SqlResult, TimeZone};

fn shop() -> Db {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE t (id int PRIMARY KEY, small smallint, big bigint, name varchar(10),
            code char(4), price numeric(10,2), ratio float8, day date, at timestamptz, ok bool);
         CREATE INDEX ON t (name);
         CREATE INDEX ON t (small);
         CREATE TABLE u (id int PRIMARY KEY, t int, note text);
         INSERT INTO t SELECT i, i % 7, i * 1000000007::bigint, 'name ' || i, 'c' || i % 10, i + 0.25, i / 4.0,
             date '2026-01-01' + i, timestamptz '2026-01-01 00:00:00+00' + i * interval '1 day',
             i % 3 = 0 FROM generate_series(1, 60) AS g(i);
         INSERT INTO u SELECT i, i % 60 + 1, 'note ' || i FROM generate_series(1, 200) AS g(i);",
    );
    db
}

fn rows_of(mut rows: Rows) -> SqlResult<Vec<String>> {
    let mut out = Vec::new();
    while let Some(batch) = rows.next_batch()? {
        for row in batch {
            let cells = row.iter().map(|v: &Datum| v.to_text(TimeZone::utc()).unwrap_or_default());
            out.push(cells.collect::<Vec<_>>().join("|"));
        }
    }
    Ok(out)
}

/// The answer by the plan of the shape, `None` when there is none.
fn by_shape(db: &mut Db, sql: &str) -> Option<Result<Vec<String>, String>> {
    let answer = match db.session.run_shape(sql) {
        Ok(None) => return None,
        Ok(Some((prepared, Outcome::Rows(rows)))) => rows_of(rows).map(|mut rows| {
            let names = prepared.columns().unwrap_or_default().iter().map(|c| c.name.clone());
            rows.insert(0, names.collect::<Vec<_>>().join("|"));
            rows
        }),
        Ok(Some((_, Outcome::Done(tag)))) => Ok(vec![tag]),
        Ok(Some(_)) => panic!("{sql} copies nothing"),
        Err(e) => Err(e),
    };
    Some(answer.map_err(|e| e.to_string()))
}

fn by_text(db: &mut Db, sql: &str) -> Result<Vec<String>, String> {
    let statement = db.session.parse_script(sql).map_err(|e| e.to_string())?.remove(0);
    let prepared = db.session.prepare(statement, &[]).map_err(|e| e.to_string())?;
    match db.session.execute(&prepared, Vec::new()).map_err(|e| e.to_string())? {
        Outcome::Rows(rows) => {
            let mut out = rows_of(rows).map_err(|e| e.to_string())?;
            let names = prepared.columns().unwrap_or_default().iter().map(|c| c.name.clone());
            out.insert(0, names.collect::<Vec<_>>().join("|"));
            Ok(out)
        }
        Outcome::Done(tag) => Ok(vec![tag]),
        _ => panic!("{sql} copies nothing"),
    }
}

/// Statements with a `?` each, and what is put there.
const STATEMENTS: &[(&str, &[&str])] = &[
    ("SELECT * FROM t WHERE id = ?", &["3", "4", "-1", "9999999999", "3.0", "3.5", "'5'", "'x'"]),
    ("SELECT id FROM t WHERE small = ?", &["3", "70000", "2.0", "'4'", "5"]),
    ("SELECT id FROM t WHERE big > ? ORDER BY id LIMIT 3", &["5", "30000000210", "1.5", "'7'"]),
    ("SELECT id FROM t WHERE name = ?", &["'name 7'", "'name 8'", "'it''s'", "''"]),
    ("SELECT id FROM t WHERE code = ? ORDER BY id", &["'c1'", "'c1  '", "'c'", "'toolong'"]),
    ("SELECT id FROM t WHERE price = ?", &["7.25", "7.250", "7", "'9.25'", "1e1"]),
    ("SELECT id FROM t WHERE ratio < ? ORDER BY id", &["1", "0.9", "'1.5'", "'NaN'"]),
    ("SELECT id FROM t WHERE day > ? ORDER BY id", &["'2026-02-27'", "'2026-13-01'", "'infinity'"]),
    (
        "SELECT id FROM t WHERE at >= ? ORDER BY id",
        &["'2026-02-27 12:00'", "'2026-02-28 00:00+02'"],
    ),
    (
        "SELECT id FROM t WHERE id IN (?, 5, 7) ORDER BY id",
        &["1", "5", "'2'", "2.5", "70000000000"],
    ),
    ("SELECT id FROM t WHERE id BETWEEN ? AND ? + 2 ORDER BY id", &["1", "50", "-3"]),
    ("SELECT name FROM t WHERE id + ? = 9", &["1", "2", "1.0"]),
    (
        "SELECT t.name, count(*) FROM t JOIN u ON u.t = t.id WHERE t.id = ? GROUP BY t.name",
        &["2", "3", "'4'", "100"],
    ),
    ("SELECT id FROM t WHERE ok AND small = 1 AND id > ? ORDER BY id DESC", &["1", "40"]),
    ("SELECT id, id + 1 AS next FROM t WHERE id < ? ORDER BY id + 1 LIMIT 2", &["9", "10"]),
    ("SELECT small + 1 FROM t WHERE id < ? GROUP BY small + 1 ORDER BY 1", &["9", "10"]),
    ("INSERT INTO u VALUES (?, 5, 'x')", &["1000", "1001", "1", "'1002'", "1003.4", "'y'"]),
    ("INSERT INTO t (id, name) VALUES (?00, 'much too long for it')", &["1", "2"]),
    ("INSERT INTO t (id, name, price) VALUES (?, 'short', 12345678901.5)", &["2001", "2002"]),
    ("UPDATE t SET price = price + ?, name = 'new' WHERE id = 3", &["1", "2.505", "99999999"]),
    ("UPDATE t SET small = ? WHERE id = 3 RETURNING small + 1", &["1", "70000", "'4'", "2.5"]),
    ("DELETE FROM u WHERE id = ?", &["1", "2", "'3'", "4"]),
    (
        "SELECT id FROM t WHERE (small, id) > (?, 3) ORDER BY small, id LIMIT 3",
        &["1", "4", "'5'", "-1", "70000", "2.5", "NULL"],
    ),
    (
        "SELECT id FROM t WHERE (day, id) >= ('2026-02-20', ?) ORDER BY day, id",
        &["50", "51", "1000000000000"],
    ),
    ("SELECT id FROM t WHERE (id, small) IN ((?, 3), (4, 4), (5, 6))", &["3", "10", "'17'", "3.0"]),
    ("SELECT id FROM t WHERE (id) IN ((?), (f(5, 6)), (7))", &["3", "4"]),
    ("SELECT id FROM t WHERE name = 'name ' || ?::text", &["3", "4.0", "-5", "'6'"]),
    ("SELECT id FROM t WHERE name = ?::int || 'x'", &["3", "4", "9999999999"]),
    (
        "SELECT id FROM t WHERE id = ANY (ARRAY[?, 5 + 6, 9]::int[]) ORDER BY id",
        &["1", "2", "-3", "'4'", "2.5", "99999999999"],
    ),
    ("SELECT id FROM t WHERE id = (?) OR id = (4 + 5)", &["1", "'3'", "(7)"]),
    ("INSERT INTO u VALUES (?::int, abs(-5), substr('abc', 2))", &["2010", "2011.6", "2012"]),
];

#[test]
fn answers_are_those_of_the_text() {
    let (mut shaped, mut plain) = (shop(), shop());
    let mut by_plan = 0;
    for (statement, values) in STATEMENTS {
        // Twice, so that every kind of literal meets a plan.
        for value in values.iter().chain(*values) {
            let sql = statement.replace('?', value);
            let want = by_text(&mut plain, &sql);
            let got = match by_shape(&mut shaped, &sql) {
                Some(answer) => {
                    by_plan += 1;
                    answer
                }
                None => by_text(&mut shaped, &sql),
            };
            assert_eq!(got, want, "{sql}");
        }
    }
    assert!(by_plan > 70, "{by_plan} statements had a plan of their shape");
}

/// An int4 of a text beside an int8 column: the scan is bounded all the same, so what others write
/// elsewhere in the table is no conflict.
#[test]
fn plans_of_shapes_read_no_more_than_they_must() {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE big (id bigint, n int, PRIMARY KEY (id, n));
         CREATE TABLE few (id bigint PRIMARY KEY);
         INSERT INTO big SELECT i % 300, i FROM generate_series(1, 3000) AS g(i)",
    );
    let options = SessionOptions {
        user: "root".into(),
        database: "defaultdb".into(),
        ..SessionOptions::default()
    };
    let beside = Session::new(db.session.state().db().clone(), options).expect("a session");
    let mut beside = Db { session: beside, store: None };
    for id in 1..5 {
        db.run("BEGIN ISOLATION LEVEL SERIALIZABLE");
        let sql = format!("SELECT DISTINCT id FROM big WHERE id = {id}");
        let answer = by_shape(&mut db, &sql).unwrap_or_else(|| by_text(&mut db, &sql));
        assert_eq!(answer.expect("runs"), ["id".to_string(), id.to_string()]);
        beside.run(&format!("INSERT INTO big VALUES (200, {})", 1_000_000 + id));
        db.run(&format!("INSERT INTO few VALUES ({id}); COMMIT"));
    }
}

/// What alternatives have in common is a condition of its own: equal texts are one parameter, so that
/// a plan with parameters knows.
#[test]
fn alternatives_that_repeat_a_text_share_its_parameter() {
    let mut db = shop();
    let either = |a: &str, b: &str, note: &str| {
        format!(
            "SELECT sum(u.id) FROM t, u WHERE t.id = u.t AND t.code = '{a}' AND u.note > '{note}' \
             AND u.id > 5 OR t.id = u.t AND t.code = '{b}' AND u.note > 'note 3' AND u.id > 7"
        )
    };
    let mut by_plan = 0;
    for n in [1, 2, 3, 1, 4, 2] {
        // Some with all four texts different, some with two equal ones twice.
        for (code, note) in [("c1", "note 3"), ("c2", "note 3"), ("c3", "note 2"), ("c0", "c0")] {
            let sql = either(code, &format!("c{n}"), note);
            let want = by_text(&mut db, &sql);
            if let Some(got) = by_shape(&mut db, &sql) {
                by_plan += 1;
                assert_eq!(got, want, "{sql}");
            }
        }
    }
    // All but the first, and those whose two equal texts stand beside columns of two types.
    assert_eq!(by_plan, 17);
    // A text that stands where values of two types are wanted stays one for each.
    let mixed = "SELECT sum(u.id) FROM t, u WHERE t.id = u.t AND (t.name = '7' OR t.small = '7' OR u.id = '8')";
    for _ in 0..3 {
        let want = by_text(&mut db, mixed);
        assert!(by_shape(&mut db, mixed).is_none_or(|got| got == want));
    }
    let plan = db.run(&format!("EXPLAIN {}", either("c1", "c2", "note 3"))).join("\n");
    let filters: Vec<&str> = plan.lines().filter(|line| line.contains("filter=note@")).collect();
    assert_eq!(filters.len(), 1, "{plan}");
}

#[test]
fn a_plan_of_a_shape_follows_the_schema() {
    let mut db = shop();
    let ask = |db: &mut Db, id: u32| by_shape(db, &format!("SELECT * FROM u WHERE id = {id}"));
    assert_eq!(ask(&mut db, 1), None, "nobody knows yet that it comes again");
    assert_eq!(ask(&mut db, 2), Some(Ok(vec!["id|t|note".into(), "2|3|note 2".into()])));
    db.run("ALTER TABLE u RENAME COLUMN note TO remark");
    assert_eq!(ask(&mut db, 3), Some(Ok(vec!["id|t|remark".into(), "3|4|note 3".into()])));
    assert_eq!(by_text(&mut db, "SELECT * FROM u WHERE id = 3").unwrap()[0], "id|t|remark");
    db.run("CREATE INDEX ON u (t)");
    assert_eq!(ask(&mut db, 6), Some(Ok(vec!["id|t|remark".into(), "6|7|note 6".into()])));
    db.run("DROP TABLE u");
    assert_eq!(ask(&mut db, 7), None, "the table is gone");
    db.run("CREATE TABLE u (id text PRIMARY KEY); INSERT INTO u VALUES ('8')");
    assert_eq!(ask(&mut db, 8), None, "text is compared with a number");
    let error = by_text(&mut db, "SELECT * FROM u WHERE id = 8").expect_err("it is refused");
    assert!(error.contains("operator does not exist: text = integer"), "{error}");
}

/// A literal in quotes is what its column says, when the column's type changes, too: in this session,
/// in another one, or since another table is meant.
#[test]
fn literals_follow_the_types_of_their_columns() {
    let (mut shaped, mut plain) = (Db::new(), Db::new());
    let both = |sql: &str, shaped: &mut Db, plain: &mut Db| {
        shaped.run(sql);
        plain.run(sql);
    };
    let setup = "CREATE TABLE k (id text PRIMARY KEY, day date, other date, n int);
                 INSERT INTO k SELECT g, date '2026-01-01' + g, date '2026-01-01' + g, g
                   FROM generate_series(1, 9) g;
                 CREATE SCHEMA s; CREATE TABLE s.k (id bytea, day timestamp, other text, n int);
                 INSERT INTO s.k VALUES ('7', '2026-01-08 01:00', 'x', 70)";
    both(setup, &mut shaped, &mut plain);
    let statements = [
        "SELECT n FROM k WHERE id = '?'",
        "SELECT a.n, count(*) FROM k a JOIN k b ON a.id = b.id WHERE a.id = '?' GROUP BY 1",
        "SELECT n FROM k WHERE day > '2026-01-0? 12:00' ORDER BY n",
        "SELECT count(*) FROM k WHERE day = '2026-01-0?' OR other = '2026-01-0?'",
        "SELECT n, count(*) FROM k WHERE day = '2026-01-0? 01:00' OR other = '2026-01-0? 01:00' GROUP BY n",
        "UPDATE k SET other = '2026-01-0? 03:04' WHERE id = '?'",
    ];
    let changes = [
        "SELECT 1",
        "ALTER TABLE k ALTER id TYPE bigint USING id::bigint",
        "ALTER TABLE k ALTER day TYPE timestamp USING day + interval '1 hour'",
        "ALTER TABLE k ALTER id TYPE text USING id::text, ALTER other TYPE timestamptz",
        "SET search_path = s, public",
        "ALTER TABLE s.k ALTER other TYPE timestamp USING day",
    ];
    let mut by_plan = 0;
    for change in changes {
        match change.starts_with("SET") {
            true => shaped.run(change),
            false => shaped.another().run(change),
        };
        plain.run(change);
        for sql in statements.iter().flat_map(|s| (6..9).map(|n| s.replace('?', &n.to_string()))) {
            let want = by_text(&mut plain, &sql);
            let got = by_shape(&mut shaped, &sql);
            by_plan += u32::from(got.is_some());
            let got = got.unwrap_or_else(|| by_text(&mut shaped, &sql));
            assert_eq!(got, want, "{sql}\nafter {change}");
        }
    }
    assert!(by_plan >= 60, "{by_plan} by plans");
}

#[test]
fn a_failed_statement_fails_its_block() {
    let mut db = shop();
    for id in [5001, 5002] {
        let sql = format!("INSERT INTO u VALUES ({id}, 1, 'x')");
        if by_shape(&mut db, &sql).is_none() {
            by_text(&mut db, &sql).expect("inserts");
        }
    }
    db.run("BEGIN");
    let twice = by_shape(&mut db, "INSERT INTO u VALUES (5001, 1, 'x')").expect("has a plan");
    assert!(twice.expect_err("a duplicate").contains("duplicate key"), "named as it is");
    assert_eq!(by_shape(&mut db, "INSERT INTO u VALUES (5003, 1, 'x')"), None);
    let aborted = by_text(&mut db, "INSERT INTO u VALUES (5003, 1, 'x')").expect_err("aborted");
    assert!(aborted.contains("current transaction is aborted"), "{aborted}");
    db.run("ROLLBACK");
}

/// A hierarchy of three levels, as in `scripts/bench-oltp`.
const HIERARCHY: &str = "
    CREATE TABLE customers (id bigint PRIMARY KEY, name text NOT NULL, city text NOT NULL,
        balance bigint NOT NULL);
    CREATE TABLE orders (id bigint, order_no bigint, placed date NOT NULL, state text NOT NULL,
        PRIMARY KEY (id, order_no)) INTERLEAVE IN PARENT customers (id) ON DELETE CASCADE;
    CREATE TABLE lines (id bigint, order_no bigint, line int, product bigint NOT NULL,
        amount bigint NOT NULL, note text, PRIMARY KEY (id, order_no, line))
        INTERLEAVE IN PARENT orders (id, order_no) ON DELETE CASCADE;
    CREATE TABLE counters (id bigint PRIMARY KEY, n bigint NOT NULL);
    CREATE TABLE history (tid bigint, bid bigint, aid bigint, delta bigint, at timestamp);
    CREATE INDEX customers_name ON customers (name);
    CREATE INDEX lines_product ON lines (product);
    INSERT INTO customers SELECT i, 'name ' || i, 'city ' || i % 5, 0
        FROM generate_series(1, 60) AS g(i);
    INSERT INTO orders SELECT i, o, date '2026-01-01' + o::int, 'state ' || o % 5
        FROM generate_series(1, 60) AS g(i), generate_series(1, 3) AS h(o);
    INSERT INTO lines SELECT i, o, l, i + o + l, (i + o + l) % 97, 'note'
        FROM generate_series(1, 60) AS g(i), generate_series(1, 3) AS h(o),
             generate_series(1, 3) AS k(l);
    INSERT INTO counters SELECT i, 0 FROM generate_series(1, 1000) AS g(i)";

/// The statements of `scripts/bench-oltp`, with a `?` for each value.
const SHORT_STATEMENTS: &[&str] = &[
    "SELECT name FROM customers WHERE id = ?;",
    "SELECT * FROM orders WHERE id = ? AND order_no = ?;",
    "SELECT line, product, amount FROM lines WHERE id = ?;",
    "SELECT id, name FROM customers WHERE id BETWEEN ? AND ? + 99;",
    "SELECT id FROM customers WHERE name = 'name ' || ?::text;",
    "SELECT id, amount FROM lines WHERE product BETWEEN ? AND ? + 4;",
    "SELECT id, name FROM customers WHERE id IN (?, ? + 7, ? + 13, ? + 29, ? + 31);",
    "SELECT id, name FROM customers WHERE id = ANY (ARRAY[?, ? + 7, ? + 13]::bigint[]);",
    "SELECT c.name, o.placed, l.product FROM customers c JOIN orders o ON o.id = c.id
     JOIN lines l ON l.id = o.id AND l.order_no = o.order_no WHERE c.id = ? AND o.order_no = ?;",
    "SELECT c.name, o.placed, l.product FROM customers c JOIN orders o ON o.id = c.id
     JOIN lines l ON l.id = o.id AND l.order_no = o.order_no WHERE c.id = ?;",
    "SELECT o.order_no, o.placed, count(*), sum(l.amount) FROM orders o JOIN lines l
     ON l.id = o.id AND l.order_no = o.order_no WHERE o.id = ? GROUP BY o.order_no, o.placed;",
    "SELECT count(*), sum(amount), max(product) FROM lines WHERE id = ?;",
    "SELECT order_no FROM orders o WHERE id = ? AND EXISTS (SELECT 1 FROM lines l
     WHERE l.id = o.id AND l.order_no = o.order_no AND l.amount > 90);",
    "SELECT order_no FROM orders o WHERE id = ? AND NOT EXISTS (SELECT 1 FROM lines l
     WHERE l.id = o.id AND l.order_no = o.order_no AND l.amount > 90);",
    "SELECT name, (SELECT count(*) FROM orders o WHERE o.id = c.id) FROM customers c WHERE id = ?;",
    "SELECT order_no, placed FROM orders WHERE id = ? AND order_no IN (SELECT order_no FROM lines
     WHERE id = ? AND amount > 80);",
    "SELECT DISTINCT state FROM orders WHERE id = ?;",
    "SELECT order_no, placed FROM orders WHERE id = ? ORDER BY placed DESC LIMIT 3;",
    "SELECT id, order_no, state FROM orders WHERE (id, order_no) > (?, ?)
     ORDER BY id, order_no LIMIT 20;",
    "INSERT INTO counters VALUES (10?, 1);",
    "UPDATE customers SET balance = balance + 1 WHERE id = ?;",
    "UPDATE customers SET name = 'name ' || ?::text WHERE id = ?;",
    "INSERT INTO counters VALUES (?, 1) ON CONFLICT (id) DO UPDATE SET n = counters.n + 1;",
    "SELECT n FROM counters WHERE id = ?;",
    "INSERT INTO history VALUES (?, 1, ?, 1, now());",
];

/// Plannings of all statements so far.
fn plannings(db: &mut Db) -> i64 {
    let sql = "SELECT sum(plans)::bigint FROM pg_stat_statements WHERE query NOT LIKE '%plans%'";
    db.run(sql)[0].parse().expect("a number")
}

#[test]
fn short_statements_are_planned_once() {
    let (mut db, mut plain) = (Db::new(), Db::new());
    db.run(HIERARCHY);
    plain.run(HIERARCHY);
    let mut wrong = Vec::new();
    for statement in SHORT_STATEMENTS {
        let text = |n: u32| statement.replace('?', &n.to_string());
        // The first is planned as it is written, the second as a shape.
        for n in [11, 12] {
            let sql = text(n);
            let got = by_shape(&mut db, &sql).unwrap_or_else(|| by_text(&mut db, &sql));
            assert_eq!(got, by_text(&mut plain, &sql), "{sql}");
        }
        let before = plannings(&mut db);
        for n in 13..18 {
            let sql = text(n);
            match by_shape(&mut db, &sql) {
                Some(got) => assert_eq!(got, by_text(&mut plain, &sql), "{sql}"),
                None => wrong.push(format!("has no shape: {sql}")),
            }
        }
        let planned = plannings(&mut db) - before;
        if planned > 0 {
            wrong.push(format!("{planned} plannings: {statement}"));
        }
        let plan = db.run(&format!("EXPLAIN {}", text(5)));
        if plan[0].contains("made for each execution") {
            wrong.push(format!("{}: {statement}", plan[0]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Such a word is no value that a plan could be made with: it is read at each execution.
#[test]
fn words_for_moments_mean_those_of_now() {
    let mut db = shop();
    let mut planned = 0;
    for _ in 0..3 {
        for (word, expected) in
            [("now", "60"), ("yesterday", "60"), ("epoch", "0"), ("today", "60")]
        {
            let sql = format!("SELECT count(*) FROM t WHERE at < '{word}'");
            if let Some(answer) = by_shape(&mut db, &sql) {
                assert_eq!(answer.expect("runs")[1], expected, "{word}");
                planned += 1;
            }
        }
    }
    assert!(planned > 8, "{planned} of 12 had a plan");
    let style = db.session.input_style();
    db.run("BEGIN");
    let (first, again) = (db.session.input_style().now, db.session.input_style().now);
    assert!(first == again && first > style.now);
}
