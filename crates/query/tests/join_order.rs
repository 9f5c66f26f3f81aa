//! Joins are put in an order by what is known about the rows, and answer as in any other.

use crate::harness::Db;

fn shop() -> Db {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE region (r int PRIMARY KEY, name text);
         CREATE TABLE customer (c int PRIMARY KEY, r int, name text);
         CREATE TABLE orders (o int PRIMARY KEY, c int, day int);
         CREATE TABLE line (o int, l int, p int, n int, PRIMARY KEY (o, l));
         CREATE TABLE part (p bigint PRIMARY KEY, kind int);
         CREATE INDEX ON line (p);
         INSERT INTO region SELECT i, 'region ' || i FROM generate_series(1, 5) AS g(i);
         INSERT INTO customer SELECT i, nullif(i % 6, 0), 'name ' || i
             FROM generate_series(1, 200) AS g(i);
         INSERT INTO orders SELECT i, i % 211, i % 365 FROM generate_series(1, 1000) AS g(i);
         INSERT INTO line SELECT i, l, (i * 7 + l) % 120, i % 10
             FROM generate_series(1, 1000) AS g(i), generate_series(1, 4) AS h(l);
         INSERT INTO part SELECT i, i % 13 FROM generate_series(1, 100) AS g(i);
         ANALYZE;",
    );
    db
}

/// The tables of a plan in the order in which they are read.
fn read_order(db: &mut Db, sql: &str) -> Vec<String> {
    let plan = db.run(&format!("EXPLAIN {sql}"));
    let scans = plan.iter().filter_map(|line| line.split("Scan: ").nth(1));
    scans.map(|rest| rest.split([' ', ',']).next().unwrap().to_string()).collect()
}

#[test]
fn few_rows_come_first() {
    let mut db = shop();
    // However it is written: from the one part and its lines to the orders behind them.
    let conditions = "line.o = orders.o AND line.p = part.p AND orders.c = customer.c
        AND customer.r = region.r AND part.p = 7";
    for from in [
        "region, customer, orders, line, part",
        "line, orders, customer, region, part",
        "customer, part, region, line, orders",
    ] {
        let sql = format!("SELECT count(*), sum(n) FROM {from} WHERE {conditions}");
        let order = read_order(&mut db, &sql);
        let at = |table: &str| order.iter().position(|t| t == table).unwrap();
        assert!(at("part") < at("line"), "{from}: {order:?}");
        assert!(at("line") < at("orders") && at("orders") < at("customer"), "{from}: {order:?}");
    }
    // Without a condition the small tables are held and the large one passes by.
    let sql = "SELECT count(*) FROM line JOIN orders ON line.o = orders.o
        JOIN customer ON customer.c = orders.c GROUP BY day";
    assert_eq!(read_order(&mut db, sql), ["customer", "orders", "line"]);
}

/// Statistics decide: the same text, other rows.
#[test]
fn what_analyze_finds_out_matters() {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE a (id int PRIMARY KEY, x int); CREATE TABLE b (id int PRIMARY KEY, x int);
         INSERT INTO a SELECT i, i % 2 FROM generate_series(1, 2000) AS g(i);
         INSERT INTO b SELECT i, i FROM generate_series(1, 2000) AS g(i); ANALYZE a, b;",
    );
    let sql = "SELECT count(*) FROM a JOIN b ON a.id = b.id
        WHERE a.x = 1 AND b.x = 1 GROUP BY a.x";
    assert_eq!(read_order(&mut db, sql), ["b", "a"]);
    db.run("UPDATE a SET x = id; UPDATE b SET x = 1; ANALYZE a; ANALYZE b;");
    assert_eq!(read_order(&mut db, sql), ["a", "b"]);
}

#[test]
fn the_smaller_side_is_held() {
    let mut db = shop();
    for (sql, join) in [
        ("SELECT o FROM orders WHERE c IN (SELECT r FROM region)", "RightSemi"),
        ("SELECT r FROM region WHERE EXISTS (SELECT 1 FROM orders WHERE c = r)", "LeftSemi"),
        ("SELECT o FROM orders WHERE NOT EXISTS (SELECT 1 FROM region WHERE r = c)", "RightAnti"),
        ("SELECT o, name FROM orders LEFT JOIN region ON r = c WHERE day > 1", "Right"),
        ("SELECT o, name FROM region LEFT JOIN orders ON r = c", "Left"),
    ] {
        let plan = db.run(&format!("EXPLAIN {sql}")).join("\n");
        assert!(plan.contains(&format!("join_type={join},")), "{sql}\n{plan}");
    }
}

/// Many relations: greedily, and soon enough.
#[test]
fn twenty_tables_are_joined() {
    let mut db = shop();
    let from: Vec<String> = (0..20).map(|n| format!("customer AS t{n}")).collect();
    let on: Vec<String> = (1..20).map(|n| format!("t{n}.c = t{}.c", n / 2)).collect();
    let sql = format!(
        "SELECT count(*), max(t19.name) FROM {} WHERE {} AND t11.c < 7",
        from.join(", "),
        on.join(" AND ")
    );
    assert_eq!(db.run(&sql), ["6|name 6"]);
}

/// Tables, what is asked of them, and on which conditions.
const CASES: &[(&[&str], &str, &str)] = &[
    (
        &["line", "orders", "customer"],
        "count(*), sum(n), min(customer.name)",
        "line.o = orders.o AND orders.c = customer.c AND customer.r = 3",
    ),
    (
        &["line", "part", "orders"],
        "count(*), sum(part.kind), sum(day)",
        "line.p = part.p AND orders.o = line.o AND part.kind + day > 200 AND line.n < 4",
    ),
    (
        &["region", "customer", "part"],
        "count(*), sum(customer.c), sum(part.p)",
        "region.r = customer.r AND part.kind = 4 AND (customer.c < 9 OR part.p < 20)",
    ),
    (
        &["customer", "orders", "region"],
        "count(*), sum(orders.o)",
        "orders.c = customer.c AND customer.c = region.r AND orders.c = region.r",
    ),
    // Two columns of a table equal the same of another.
    (
        &["line", "orders", "customer"],
        "count(*), sum(line.o)",
        "line.o = orders.o AND line.n = orders.o AND orders.c = customer.c",
    ),
    (
        &["part", "customer", "orders"],
        "count(*), sum(part.p)",
        "part.p = customer.c AND part.kind = customer.c AND customer.r = orders.o AND 1 = 1",
    ),
    (
        &["(SELECT o, count(*) AS k FROM line GROUP BY o) AS g", "orders", "customer"],
        "count(*), sum(k)",
        "g.o = orders.o AND orders.c = customer.c AND k = 4 AND customer.r IS NOT NULL",
    ),
    // Semi and anti joins among them: of one table, of two, of all.
    (
        &["line", "orders", "customer"],
        "count(*), sum(n), sum(orders.o)",
        "line.o = orders.o AND orders.c = customer.c AND customer.r < 4
         AND EXISTS (SELECT 1 FROM line AS x WHERE x.o = line.o AND x.n <> line.n)
         AND NOT EXISTS (SELECT 1 FROM line AS y WHERE y.o = line.o AND y.p <> line.p AND y.p > 110)",
    ),
    (
        &["line", "orders", "customer"],
        "count(*), sum(n), sum(orders.o)",
        "line.o = orders.o AND orders.c = customer.c AND line.n > 3
         AND NOT EXISTS (SELECT 1 FROM part WHERE part.p = line.p AND part.kind = customer.r)
         AND orders.day NOT IN (SELECT kind FROM part WHERE kind IS NOT NULL)
         AND customer.c IN (SELECT c FROM orders AS z WHERE z.day > 300)",
    ),
    (
        &["region", "customer", "part"],
        "count(*), sum(customer.c), sum(part.p)",
        "part.kind = 4 AND customer.c < 50
         AND EXISTS (SELECT 1 FROM line WHERE line.p = part.p AND line.o = customer.c)
         AND EXISTS (SELECT 1 FROM orders WHERE orders.c = customer.c AND orders.day > region.r)",
    ),
];

/// Each query with its tables in every order, against a join that no order is looked for: its
/// equalities are hidden.
#[test]
fn orders_make_no_difference() {
    let mut db = shop();
    for (tables, what, conditions) in CASES {
        let hidden = conditions.replace(" = ", " + 0 = ").replace("name + 0", "name");
        let plain = db.run(&format!("SELECT {what} FROM {} WHERE {hidden}", tables.join(", ")));
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let from: Vec<&str> = order.iter().map(|n| tables[*n]).collect();
            let sql = format!("SELECT {what} FROM {} WHERE {conditions}", from.join(", "));
            assert_eq!(db.run(&sql), plain, "{sql}");
        }
    }
}

/// What leaves few rows comes before what leaves many, and before the tables that are joined to them.
#[test]
fn semi_joins_stand_where_they_leave_few_rows() {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE maker (m int PRIMARY KEY, land int NOT NULL);
         CREATE TABLE orders (o int PRIMARY KEY, state text NOT NULL);
         CREATE TABLE line (o int, l int, m int NOT NULL, late bool NOT NULL, PRIMARY KEY (o, l));
         INSERT INTO maker SELECT i, i % 25 FROM generate_series(1, 1000) AS g(i);
         INSERT INTO orders SELECT i, CASE i % 2 WHEN 0 THEN 'F' ELSE 'O' END
             FROM generate_series(1, 5000) AS g(i);
         INSERT INTO line SELECT o, l, 1 + (o * 37 + l * 411) % 1000, (o * 7 + l) % 3 > 0
             FROM generate_series(1, 5000) AS g(o), generate_series(1, 4) AS h(l);
         ANALYZE;",
    );
    let waiting = "SELECT count(*), sum(a.m) FROM maker, line AS a, orders
        WHERE maker.m = a.m AND orders.o = a.o AND state = 'F' AND a.late AND land = 3
        AND EXISTS (SELECT 1 FROM line AS b WHERE b.o = a.o AND b.m <> a.m)
        AND NOT EXISTS (SELECT 1 FROM line AS c WHERE c.o = a.o AND c.m <> a.m AND c.late)";
    let plan = db.run(&format!("EXPLAIN {waiting}"));
    let at = |what: &str| plan.iter().position(|line| line.contains(what)).expect(what);
    // The deeper it stands, the earlier it is done.
    assert!(at("Semi") < at("Anti"), "{plan:#?}");
    let plain = waiting.replace("b.o = a.o", "b.o + 0 = a.o").replace("c.o = a.o", "c.o + 0 = a.o");
    assert_eq!(db.run(waiting), db.run(&plain));
}

/// Joins inside of what is computed once, and of subqueries that run by themselves, are in order.
#[test]
fn parts_that_run_by_themselves_are_in_order() {
    let mut db = shop();
    let lines = "SELECT line.n, part.kind, customer.name FROM region, customer, orders, line, part
        WHERE line.o = orders.o AND line.p = part.p AND orders.c = customer.c
        AND customer.r = region.r AND part.p = 7";
    let twice =
        format!("WITH l AS MATERIALIZED ({lines}) SELECT count(*), (SELECT max(n) FROM l) FROM l");
    let once = format!("SELECT count(*), max(n) FROM ({lines}) AS l");
    assert_eq!(db.run(&twice), db.run(&once));
    let before = requests(&mut db, &once);
    let after = requests(&mut db, &twice);
    assert!(after <= before + 2, "{after} requests, {before} as a plain query");
}

/// How often a statement asks the store.
fn requests(db: &mut Db, sql: &str) -> u64 {
    let plan = db.run(&format!("EXPLAIN ANALYZE {sql}"));
    let head = plan.iter().find_map(|line| line.split("requests=").nth(1)).expect("is counted");
    head.split([')', ',', ' ']).next().unwrap().parse().expect("a number")
}
