//! Rows that plans expect, and the keys that they choose by them.

use crate::harness::Db;
use serde_json::Value;

/// 20,000 tasks, of which 19 of 20 are done; 100 customers with 5 orders of 4 lines each.
fn db() -> Db {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE tasks (id int PRIMARY KEY, state text, day int, owner int, note text);
         CREATE INDEX by_state ON tasks (state);
         CREATE INDEX by_day ON tasks (day);
         CREATE INDEX by_owner ON tasks (owner, state);
         INSERT INTO tasks SELECT i, CASE WHEN i % 20 = 0 THEN 'open' ELSE 'done' END, i % 400,
             CASE WHEN i % 1000 = 0 THEN NULL ELSE i % 3 END, 'note ' || i
             FROM generate_series(1, 20000) AS g(i);
         CREATE TABLE few (id int PRIMARY KEY, kind int);
         CREATE INDEX by_kind ON few (kind);
         INSERT INTO few SELECT i, i % 2 FROM generate_series(1, 100) AS g(i);
         CREATE TABLE customers (id int PRIMARY KEY, name text);
         CREATE TABLE orders (id int, o int, total int, PRIMARY KEY (id, o))
             INTERLEAVE IN PARENT customers (id) ON DELETE CASCADE;
         CREATE TABLE lines (id int, o int, l int, PRIMARY KEY (id, o, l))
             INTERLEAVE IN PARENT orders (id, o) ON DELETE CASCADE;
         INSERT INTO customers SELECT i, 'name ' || i FROM generate_series(1, 100) AS g(i);
         INSERT INTO orders SELECT i, o, o * 10
             FROM generate_series(1, 100) AS g(i), generate_series(1, 5) AS h(o);
         INSERT INTO lines SELECT i, o, l FROM generate_series(1, 100) AS g(i),
             generate_series(1, 5) AS h(o), generate_series(1, 4) AS k(l)",
    );
    db
}

fn analyzed() -> Db {
    let mut db = db();
    db.run("ANALYZE");
    db
}

fn plan(db: &mut Db, sql: &str) -> String {
    db.run(&format!("EXPLAIN {sql}")).join("\n")
}

/// Expected and actual rows of each operator. What a statement writes, it has read.
fn rows(plan: &Value, above: Option<f64>, out: &mut Vec<(String, f64, f64)>) {
    let actual = plan["Actual Rows"].as_f64().or(above);
    if let (Some(expected), Some(actual)) = (plan["Plan Rows"].as_f64(), actual) {
        out.push((plan["Operation"].to_string(), expected, actual));
    }
    let written = actual.filter(|_| plan["Node Type"] == "ModifyTable");
    plan["Plans"].as_array().into_iter().flatten().for_each(|below| rows(below, written, out));
}

#[test]
fn expected_rows_are_about_those_that_come() {
    let mut db = analyzed();
    let queries = [
        "SELECT * FROM tasks WHERE id = 7",
        "SELECT * FROM tasks WHERE id BETWEEN 1000 AND 4999",
        "SELECT * FROM tasks WHERE id < 500 AND state = 'done'",
        "SELECT * FROM tasks WHERE state = 'open'",
        "SELECT * FROM tasks WHERE state <> 'open'",
        "SELECT * FROM tasks WHERE day IN (1, 2, 3)",
        "SELECT * FROM tasks WHERE day = ANY (ARRAY[1, 2, 3])",
        "SELECT * FROM tasks WHERE day = 7 AND state = 'done'",
        "SELECT * FROM tasks WHERE owner = 1 AND state = 'open'",
        "SELECT * FROM tasks WHERE (id = 3 OR id = 5 OR id > 19000)",
        "SELECT * FROM tasks WHERE (id < 3000 OR id > 17000) AND state = 'open'",
        "SELECT * FROM tasks WHERE (id < 3000 AND day < 40 OR id > 17000 AND day >= 360)
         AND owner = 1",
        "SELECT * FROM tasks WHERE (owner, state) IN ((1, 'open'), (2, 'open')) AND day < 100",
        "SELECT * FROM orders WHERE id = 7 AND (o, total) IN ((1, 10), (2, 20), (4, 40))",
        "SELECT * FROM tasks WHERE owner IS NULL",
        "SELECT * FROM orders WHERE id = 7",
        "SELECT * FROM orders WHERE id IN (7, 8)",
        "SELECT * FROM lines WHERE id = 7 AND o = 2",
        "SELECT * FROM customers c JOIN orders o ON o.id = c.id WHERE c.id = 7",
        "SELECT * FROM customers c JOIN orders o ON o.id = c.id JOIN lines l
         ON l.id = o.id AND l.o = o.o WHERE c.id < 21",
        "SELECT state, count(*) FROM tasks WHERE day < 40 GROUP BY state",
        "DELETE FROM tasks WHERE day = 399",
        "UPDATE tasks SET note = 'x' WHERE id > 19900",
    ];
    for sql in queries {
        let text = db.run(&format!("EXPLAIN (ANALYZE, FORMAT JSON) {sql}"));
        let explained: Value = serde_json::from_str(&text[0]).expect("JSON");
        let mut seen = Vec::new();
        rows(&explained[0]["Plan"], None, &mut seen);
        assert!(!seen.is_empty(), "{sql}\n{explained}");
        for (operation, expected, actual) in seen {
            let off = (expected.max(actual) + 1.0) / (expected.min(actual) + 1.0);
            assert!(off < 2.0, "{sql}: {operation} expects {expected} and gives {actual}");
        }
    }
}

#[test]
fn rows_are_shown_on_demand() {
    let mut db = analyzed();
    let lines = db.run("EXPLAIN (COSTS) SELECT * FROM orders WHERE id = 7");
    assert_eq!(lines, ["span read on orders  (rows=5)", "  key: id = 7"]);
    let lines = db.run("EXPLAIN (COSTS) SELECT array_agg(total) OVER (ORDER BY total) FROM orders");
    assert!(lines.iter().any(|l| l.contains("TableScan: orders") && l.ends_with("(rows=500)")));
    let lines = db.run("EXPLAIN SELECT * FROM orders WHERE id = 7");
    assert_eq!(lines, ["span read on orders", "  key: id = 7"]);
}

#[test]
fn the_key_is_chosen_by_what_it_finds() {
    let mut db = db();
    let unselective = "SELECT * FROM tasks WHERE state = 'done'";
    let two = "SELECT * FROM tasks WHERE state = 'done' AND day = 5";
    let pair = "SELECT * FROM tasks WHERE owner = 1 AND state = 'done' AND day = 5";
    let general = "SELECT array_agg(note) OVER (ORDER BY note) FROM tasks WHERE state = 'done'";
    // Nothing is known: as the conditions look.
    assert!(plan(&mut db, unselective).starts_with("index lookup on tasks using by_state"));
    assert!(plan(&mut db, pair).starts_with("index lookup on tasks using by_owner"));
    assert!(plan(&mut db, general).contains("IndexScan: tasks using by_state"));
    db.run("ANALYZE");
    let shown = plan(&mut db, unselective);
    assert!(shown.contains("TableScan: tasks all rows"), "{shown}");
    for sql in [two, pair] {
        let shown = plan(&mut db, sql);
        assert!(shown.starts_with("index lookup on tasks using by_day"), "{shown}");
    }
    let shown = plan(&mut db, general);
    assert!(shown.contains("TableScan: tasks all rows"), "{shown}");
    let rare = plan(&mut db, "SELECT * FROM tasks WHERE state = 'open'");
    assert!(rare.starts_with("index lookup on tasks using by_state"), "{rare}");
    let rare = plan(&mut db, "UPDATE tasks SET note = '' WHERE owner = 1 AND day = 5");
    assert!(rare.contains("using by_day"), "{rare}");
    // Entries that tell all that is wanted cost less than rows behind them.
    let told = plan(&mut db, "SELECT count(*), max(day) FROM tasks WHERE day < 200");
    assert!(told.contains("index lookup on tasks using by_day (covering)"), "{told}");
    let rows = plan(&mut db, "SELECT count(*), max(note) FROM tasks WHERE day < 200");
    assert!(rows.contains("full scan of tasks") || rows.contains("tasks all rows"), "{rows}");
    // The first rows of an order are found sooner than all rows of a condition.
    let first = "SELECT * FROM tasks WHERE state = 'done' ORDER BY id LIMIT 5";
    let shown = plan(&mut db, first);
    assert!(shown.contains("full scan of tasks") && !shown.contains("sort"), "{shown}");
    assert_eq!(db.run(&first.replace('*', "id")), ["1", "2", "3", "4", "5"]);
    // Whoever reads all of a small table is in the way of others for nothing.
    let small = plan(&mut db, "SELECT * FROM few WHERE kind = 1");
    assert!(small.starts_with("index lookup on few using by_kind"), "{small}");
}

/// A plan that was made before anything was known is made again.
#[test]
fn kept_plans_follow_statistics() {
    let mut db = db();
    db.run("PREPARE p AS SELECT count(*) FROM tasks WHERE owner = $1 AND state = $2 AND day = $3");
    let seen = |db: &mut Db| {
        let sql = "SELECT sum(entries_read)::bigint FROM braid_statement_statistics";
        db.run(sql)[0].parse::<i64>().expect("a number")
    };
    let mut entries = || {
        let before = seen(&mut db);
        assert_eq!(db.run("EXECUTE p (1, 'done', 5)"), ["16"]);
        let after = seen(&mut db);
        db.run("ANALYZE tasks");
        after - before
    };
    let (by_owner, by_day) = (entries(), entries());
    assert!(by_owner > 6_000 && by_day < 500, "{by_owner} by owner and state, {by_day} by day");
}

#[test]
fn many_look_ups_are_a_general_plan() {
    let mut db = db();
    let joined = "FROM tasks a, tasks b, orders o, lines l WHERE b.day = a.day AND o.id = b.id
        AND l.id = o.id AND l.o = o.o";
    // A half of a range is much, whoever has counted.
    let much = format!("SELECT a.id, l.l {joined} AND a.owner < 2");
    let grouped = format!("SELECT a.owner, count(*) {joined} AND a.owner < 2 GROUP BY a.owner");
    let few = format!("SELECT a.id, l.l {joined} AND a.id BETWEEN 1 AND 2");
    // The first rows are found soon.
    let first = format!("{much} LIMIT 3");
    for analyzed in [false, true] {
        for sql in [&much, &grouped] {
            let shown = plan(&mut db, sql);
            assert!(shown.starts_with("general plan"), "{analyzed}: {sql}\n{shown}");
        }
        for sql in [&few, &first] {
            let shown = plan(&mut db, sql);
            assert!(!shown.contains("general plan"), "{analyzed}: {sql}\n{shown}");
        }
        db.run("ANALYZE");
    }
    let few = db.run(&format!("{few} ORDER BY 1, 2"));
    assert_eq!(few.len(), 2 * 20, "days 1 and 2 have one customer each: {few:?}");
}
