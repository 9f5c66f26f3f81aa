//! General queries against the answers PostgreSQL 15 gives.

use crate::harness::Db;

fn shop() -> Db {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE customers (id int PRIMARY KEY, name text, credit numeric(10,2), since date);
         CREATE TABLE orders (id int PRIMARY KEY, customer int, total numeric, note varchar(20));
         INSERT INTO customers VALUES (1, 'ann', 10.50, '2020-01-01'), (2, 'bob', NULL, '2021-05-05'),
            (3, 'cid', 7, NULL), (4, 'Dan', 10.50, '2019-12-31');
         INSERT INTO orders VALUES (10, 1, 5.0, 'x'), (11, 1, 7.25, NULL), (12, 2, 1, 'y'),
            (13, 9, 3, 'z'), (14, NULL, 2.5, 'x');",
    );
    db
}

#[test]
fn joins_and_grouping() {
    shop().check(&[
        (
            "SELECT c.name, o.id FROM customers c JOIN orders o ON o.customer = c.id ORDER BY 2",
            "ann|10; ann|11; bob|12",
        ),
        (
            "SELECT c.name, o.id FROM customers c LEFT JOIN orders o ON o.customer = c.id
             ORDER BY c.name, o.id",
            "Dan|; ann|10; ann|11; bob|12; cid|",
        ),
        (
            "SELECT c.id, o.id FROM customers c FULL JOIN orders o ON o.customer = c.id
             ORDER BY c.id, o.id",
            "1|10; 1|11; 2|12; 3|; 4|; |13; |14",
        ),
        ("SELECT count(*), count(customer), count(DISTINCT customer) FROM orders", "5|4|3"),
        ("SELECT sum(total), avg(total), min(note), max(id) FROM orders",
            "18.75|3.7500000000000000|x|14"),
        ("SELECT avg(id), sum(id) FROM orders", "12.0000000000000000|60"),
        (
            "SELECT customer, count(*) FROM orders GROUP BY customer ORDER BY customer NULLS FIRST",
            "|1; 1|2; 2|1; 9|1",
        ),
        (
            "SELECT credit, count(*) FROM customers GROUP BY 1 HAVING count(*) > 1",
            "10.50|2",
        ),
        ("SELECT note n, sum(total) FROM orders GROUP BY n ORDER BY sum(total) DESC, n",
            "x|7.5; |7.25; z|3; y|1"),
        ("SELECT c.name, count(o.id) FROM customers c LEFT JOIN orders o ON c.id = o.customer
          GROUP BY c.id ORDER BY c.id", "ann|2; bob|1; cid|0; Dan|0"),
        ("SELECT count(*) FROM orders WHERE false", "0"),
        ("SELECT sum(total) FROM orders WHERE false", ""),
        ("SELECT sum(x), sum(x::real) FROM (VALUES ('-0'::float8)) v(x)", "-0|-0"),
        ("SELECT sum(x) FROM (VALUES ('-0'::float8), ('0')) v(x)", "0"),
        ("SELECT string_agg(note, ',' ORDER BY id DESC) FROM orders", "x,z,y,x"),
        ("SELECT array_agg(id ORDER BY id) FROM orders WHERE id > 12", "{13,14}"),
        ("SELECT count(*) FILTER (WHERE total > 2) FROM orders", "4"),
        ("SELECT bool_and(total > 0), bool_or(note IS NULL) FROM orders", "t|t"),
        ("SELECT a.id, b.id FROM customers a, customers b WHERE a.credit = b.credit AND a.id < b.id",
            "1|4"),
        ("SELECT * FROM (VALUES (1, 'a'), (2, 'b')) v(n, s) JOIN (VALUES (2, 'c')) w(n, t) USING (n)",
            "2|b|c"),
    ]);
}

#[test]
fn subqueries() {
    shop().check(&[
        ("SELECT (SELECT max(total) FROM orders)", "7.25"),
        (
            "SELECT name, (SELECT count(*) FROM orders o WHERE o.customer = c.id) FROM customers c
             ORDER BY id",
            "ann|2; bob|1; cid|0; Dan|0",
        ),
        (
            "SELECT name FROM customers c WHERE EXISTS (SELECT 1 FROM orders o WHERE o.customer = c.id)
             ORDER BY 1",
            "ann; bob",
        ),
        (
            "SELECT name FROM customers WHERE id NOT IN (SELECT customer FROM orders)",
            "",
        ),
        (
            "SELECT name FROM customers WHERE id NOT IN (SELECT customer FROM orders WHERE customer
             IS NOT NULL) ORDER BY 1",
            "Dan; cid",
        ),
        ("SELECT id FROM orders WHERE customer IN (SELECT id FROM customers) ORDER BY 1", "10; 11; 12"),
        ("SELECT id FROM orders WHERE total > ALL (SELECT credit / 2 FROM customers WHERE credit IS
          NOT NULL) ORDER BY 1", "11"),
        ("SELECT id FROM orders WHERE total = ANY (SELECT 5.00)", "10"),
        ("SELECT ARRAY(SELECT id FROM orders WHERE customer = 1 ORDER BY id)", "{10,11}"),
        ("SELECT id FROM orders WHERE (customer, note) IN (SELECT 1, 'x')", "10"),
        (
            "SELECT s.name FROM (SELECT name, id FROM customers WHERE id < 3) s ORDER BY s.id DESC",
            "bob; ann",
        ),
        ("SELECT count(*), (SELECT count(*) FROM orders) FROM customers", "4|5"),
    ]);
    let error = shop().try_run("SELECT (SELECT id FROM orders)").expect_err("several rows");
    assert_eq!(error.state().0, "21000");
}

#[test]
fn set_operations_and_ctes() {
    shop().check(&[
        ("SELECT 1 UNION SELECT 1 UNION ALL SELECT 2 ORDER BY 1", "1; 2"),
        ("SELECT 1 UNION SELECT 2.0 ORDER BY 1", "1; 2.0"),
        ("SELECT id FROM customers INTERSECT SELECT customer FROM orders ORDER BY 1", "1; 2"),
        ("SELECT id FROM customers EXCEPT SELECT customer FROM orders ORDER BY 1", "3; 4"),
        ("SELECT 1.0 INTERSECT SELECT 1.00", "1.0"),
        ("(VALUES (1), (1), (1), (2)) EXCEPT ALL VALUES (1), (2), (3)", "1; 1"),
        ("SELECT * FROM ((VALUES (1), (1), (2)) INTERSECT ALL VALUES (1), (1), (1)) v", "1; 1"),
        ("VALUES (1, 'a'), (2, NULL) ORDER BY 1 DESC", "2|; 1|a"),
        ("WITH a AS (SELECT 1 AS x), b AS (SELECT x + 1 AS y FROM a) SELECT * FROM a, b", "1|2"),
        (
            "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 5)
             SELECT sum(n), count(*) FROM t",
            "15|5",
        ),
        (
            "WITH RECURSIVE t(n) AS (VALUES (1) UNION SELECT (n + 1) % 3 FROM t)
             SELECT n FROM t ORDER BY n",
            "0; 1; 2",
        ),
        ("SELECT DISTINCT note FROM orders ORDER BY note", "x; y; z; "),
        ("SELECT DISTINCT credit FROM customers ORDER BY 1 DESC NULLS LAST", "10.50; 7.00; "),
        (
            "SELECT DISTINCT ON (note) note, id FROM orders ORDER BY note, id DESC",
            "x|14; y|12; z|13; |11",
        ),
    ]);
}

#[test]
fn windows() {
    shop().check(&[
        (
            "SELECT id, row_number() OVER (ORDER BY total DESC) FROM orders ORDER BY id",
            "10|2; 11|1; 12|5; 13|3; 14|4",
        ),
        (
            "SELECT id, rank() OVER (PARTITION BY note ORDER BY id), sum(total) OVER (PARTITION BY
             note ORDER BY id) FROM orders ORDER BY id",
            "10|1|5.0; 11|1|7.25; 12|1|1; 13|1|3; 14|2|7.5",
        ),
        (
            "SELECT id, sum(id) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)
             FROM orders ORDER BY id",
            "10|10; 11|21; 12|23; 13|25; 14|27",
        ),
        ("SELECT id, lag(id) OVER (ORDER BY id), lead(id, 2, 0) OVER (ORDER BY id) FROM orders
          ORDER BY id", "10||12; 11|10|13; 12|11|14; 13|12|0; 14|13|0"),
        ("SELECT note, count(*) , rank() OVER (ORDER BY count(*) DESC, note) FROM orders GROUP BY note
          ORDER BY 3", "x|2|1; y|1|2; z|1|3; |1|4"),
        ("SELECT first_value(id) OVER w, last_value(id) OVER w FROM orders
          WINDOW w AS (PARTITION BY note ORDER BY id) ORDER BY id", "10|10; 11|11; 12|12; 13|13; 10|14"),
        ("SELECT ntile(2) OVER (ORDER BY id) FROM orders", "1; 1; 1; 2; 2"),
    ]);
}

#[test]
fn functions_in_from() {
    shop().check(&[
        ("SELECT * FROM generate_series(1, 3)", "1; 2; 3"),
        ("SELECT n * 2 FROM generate_series(3, 1, -1) AS n", "6; 4; 2"),
        ("SELECT sum(g) FROM generate_series(1, 10000) g", "50005000"),
        ("SELECT u, o FROM unnest(ARRAY['a', 'b']) WITH ORDINALITY AS t(u, o)", "a|1; b|2"),
        (
            "SELECT id, unnest(ARRAY[1, 2]) FROM customers WHERE id < 3 ORDER BY 1, 2",
            "1|1; 1|2; 2|1; 2|2",
        ),
        (
            "SELECT c.id, x FROM customers c, unnest(ARRAY[c.id, c.id * 10]) x WHERE c.id < 3
          ORDER BY 1, 2",
            "1|1; 1|10; 2|2; 2|20",
        ),
        ("SELECT key, value FROM jsonb_each('{\"a\": 1, \"b\": [2]}')", "a|1; b|[2]"),
        (
            "SELECT generate_series(date '2024-01-01', '2024-01-03', interval '1 day')::date",
            "2024-01-01; 2024-01-02; 2024-01-03",
        ),
        ("SELECT jsonb_agg(id ORDER BY id) FROM customers", "[1, 2, 3, 4]"),
        ("SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY id) FROM orders", "12"),
        ("SELECT id FROM orders ORDER BY note DESC, id LIMIT 2 OFFSET 1", "13; 12"),
        ("SELECT stddev(id), var_pop(id) FROM orders", "1.5811388300841897|2.0000000000000000"),
    ]);
}

#[test]
fn errors_are_postgres() {
    let mut db = shop();
    for (sql, state, message) in [
        (
            "SELECT name, count(*) FROM customers",
            "42803",
            "column \"customers.name\" must appear in the GROUP BY clause",
        ),
        ("SELECT id FROM customers, orders", "42702", "column reference \"id\" is ambiguous"),
        ("SELECT * FROM nothing", "42P01", "relation \"nothing\" does not exist"),
        ("SELECT 1 FROM customers a, orders a", "42712", "specified more than once"),
        ("SELECT 1 / (id - id) FROM customers", "22012", "division by zero"),
        ("SELECT id FROM customers UNION SELECT '2020-01-01'::date", "42804", "cannot be matched"),
        ("SELECT 1 UNION SELECT 1, 2", "42601", "same number of columns"),
        ("SELECT count(count(*)) FROM customers", "42803", "cannot be nested"),
        ("SELECT id FROM customers WHERE count(*) > 1", "42803", "not allowed in WHERE"),
        ("SELECT sum(name) FROM customers", "42883", "function sum(text) does not exist"),
        ("SELECT id FROM orders ORDER BY 5", "42P10", "ORDER BY position 5"),
    ] {
        let error = db.try_run(sql).expect_err(sql);
        assert_eq!(error.state().0, state, "{sql}: {error}");
        assert!(error.message().contains(message), "{sql}: {error}");
    }
}

#[test]
fn parameters_have_types_and_values() {
    use braid_sql::Outcome;
    use braid_types::{Datum, SqlType};
    let mut db = shop();
    let sql = "SELECT o.id FROM orders o JOIN customers c ON c.id = o.customer
               WHERE c.id = $1 AND o.total > $2 ORDER BY 1 LIMIT $3";
    let statement = db.session.parse_script(sql).expect("parse").remove(0);
    let prepared = db.session.prepare(statement, &[]).expect("prepare");
    let types = prepared.param_types().to_vec();
    assert_eq!(types, [SqlType::Int4, SqlType::Numeric(None), SqlType::Int8]);
    for (limit, want) in [(1, vec![10]), (5, vec![10, 11])] {
        let total = Datum::parse("1.5", &types[1], braid_types::TimeZone::utc()).expect("total");
        let params = vec![Datum::Int4(1), total, Datum::Int8(limit)];
        let Outcome::Rows(mut rows) = db.session.execute(&prepared, params).expect("run") else {
            panic!("rows expected");
        };
        let mut got = Vec::new();
        while let Some(batch) = rows.next_batch().expect("rows") {
            got.extend(batch.into_iter().map(|r| r[0].to_string()));
        }
        assert_eq!(got, want.iter().map(i32::to_string).collect::<Vec<_>>());
    }
}

#[test]
fn plans_use_keys() {
    let mut db = shop();
    let plan = db.run(
        "EXPLAIN SELECT c.name, count(*) FROM customers c, orders o
         WHERE c.id = 2 AND o.id IN (10, 12) GROUP BY ROLLUP (c.name)",
    );
    let text = plan.join("\n");
    assert!(text.contains("customers spans=1 key: id = 2,"), "{text}");
    assert!(text.contains("orders spans=2 key: id IN (10, 12),"), "{text}");
}

#[test]
fn explain_analyze_counts_the_requests_of_a_general_plan() {
    let mut db = Db::new();
    db.run(
        "create table a (id int primary key, n int, v int);
         create index on a (n);
         create table b (id int primary key, n int);
         insert into a select g, g % 50, g from generate_series(1, 6000) g;
         insert into b select g, g from generate_series(1, 3000) g",
    );
    let number = |line: &str| -> Option<u64> {
        let (_, rest) = line.split_once("requests=")?;
        rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse().ok()
    };
    // All that the plan asked, and what each of its scans did.
    let mut asked = |sql: &str| -> (u64, Vec<u64>) {
        let lines = db.run(&format!("explain analyze {sql}"));
        assert!(lines[0].starts_with("general plan (DataFusion) (actual rows="), "{lines:?}");
        let all = number(&lines[0]).unwrap_or_else(|| panic!("{lines:?}"));
        (all, lines[1..].iter().filter_map(|line| number(line)).collect())
    };
    let (all, scans) = asked("select n, count(*) from a group by rollup (n) order by n");
    assert!((3..=12).contains(&all), "{all}");
    assert_eq!(scans, [all]);
    let (all, scans) = asked("select a.v, b.n from a join b on b.n = a.v where a.v + b.n > 7");
    assert_eq!((scans.len(), scans.iter().sum::<u64>()), (2, all));
    assert!(all <= 24, "{all}");
    // By an index: entries and the rows behind them, both in batches.
    let (all, scans) = asked("select n, sum(v) from a where n in (3, 4, 5) group by rollup (n)");
    assert_eq!(scans, [all]);
    assert!((2..=10).contains(&all), "{all}");
    let (all, _) = asked(
        "with few as (select * from a limit 10) select array_agg(n) over (order by n) from few",
    );
    assert!(all <= 2, "{all}");
    let plain = db.run("explain select n, count(*) + 1 from a group by rollup (n)");
    assert!(plain.iter().all(|line| !line.contains("requests")), "{plain:?}");
}

/// Every aggregate of one value, over columns of its type: by our own plan, which reads the table,
/// and by a general one, which reads a function as well. Both take the registry's accumulators.
#[test]
fn own_and_general_plans_aggregate_alike() {
    use braid_scalar::{ArgType, FunctionKind, functions_of};
    let mut db = Db::new();
    let values = [
        ("int2", "1, -7, null, 3"),
        ("int4", "1, 2147483647, null, 2147483647"),
        ("int8", "9223372036854775807, 1, null, -5"),
        ("numeric", "1.50, 'NaN', null, -0.003"),
        ("float4", "1.5, 'Infinity', null, -2"),
        ("float8", "1.5, 0.1, null, -2"),
        ("text", "'b', '', null, 'a'"),
        ("bool", "true, false, null, true"),
        ("date", "'2024-02-29', 'infinity', null, '1999-01-01'"),
        ("interval", "'1 mon', '30 days 1 hour', null, '-1 day'"),
        ("timestamptz", "'2024-02-29 12:00+02', '2020-01-01 00:00Z', null, '1999-01-01 00:00Z'"),
    ];
    let mut compared = 0;
    for (ty, list) in values {
        let rows: Vec<String> =
            list.split(", ").enumerate().map(|(i, v)| format!("({i}, {v})")).collect();
        db.run(&format!("create table of_{ty} (k int primary key, v {ty})"));
        for filled in [false, true] {
            if filled {
                db.run(&format!("insert into of_{ty} values {}", rows.join(", ")));
            }
            for f in functions_of(FunctionKind::Aggregate) {
                let [ArgType::Exact(arg)] = f.args.as_slice() else { continue };
                if arg.base_name() != braid_types::SqlType::from_name(ty).unwrap().base_name() {
                    continue;
                }
                let own = format!("select {}(v) from of_{ty}", f.name);
                let general = format!("select {}(v) from of_{ty}, (values (row(1))) o (o)", f.name);
                let state =
                    |r: Result<Vec<String>, braid_types::SqlError>| r.map_err(|e| e.state().0);
                let found = state(db.try_run(&own));
                assert_eq!(found, state(db.try_run(&general)), "{own}");
                let plan = db.run(&format!("explain {own}"));
                compared += usize::from(plan[0].starts_with("aggregate:"));
            }
        }
    }
    assert!(compared > 100, "{compared} by our own plan");
    assert_eq!(db.run("select count(*), corr(v, v), max(v) from of_float8"), ["4|1|1.5"]);
}
