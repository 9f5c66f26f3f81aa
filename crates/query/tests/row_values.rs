//! Row values: what their parameters are, which keys they bound, and ORs of keys in general.

use crate::harness::Db;
use braid_types::{Datum, SqlType};

fn pages() -> Db {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE o (id bigint, no bigint, placed date, state text, PRIMARY KEY (id, no));
         CREATE INDEX o_placed ON o (placed, no);
         INSERT INTO o SELECT i, n, date '2026-01-01' + (i * 7 + n)::int % 90, 'state ' || n % 3
             FROM generate_series(1, 40) AS g(i), generate_series(1, 5) AS h(n);",
    );
    db
}

fn prepared(db: &mut Db, sql: &str, params: &[&str]) -> (Vec<SqlType>, Vec<String>) {
    let statement = db.session.parse_script(sql).expect("parses").remove(0);
    let prepared = db.session.prepare(statement, &[]).expect("plans");
    let types = prepared.param_types().to_vec();
    let zone = braid_types::TimeZone::utc();
    let values: Vec<Datum> = params
        .iter()
        .zip(&types)
        .map(|(text, ty)| Datum::parse(text, ty, zone).expect("a value"))
        .collect();
    let braid_sql::Outcome::Rows(mut rows) = db.session.execute(&prepared, values).expect("runs")
    else {
        panic!("rows expected")
    };
    let mut lines = Vec::new();
    while let Some(batch) = rows.next_batch().expect("rows") {
        for row in batch {
            let cells: Vec<String> =
                row.iter().map(|v| v.to_text(zone).unwrap_or_default()).collect();
            lines.push(cells.join("|"));
        }
    }
    (types, lines)
}

/// A statement, its parameters, their types, the answer.
type Case<'a> = (&'a str, &'a [&'a str], &'a [SqlType], &'a [&'a str]);

#[test]
fn parameters_in_rows_take_the_types_of_the_columns_beside_them() {
    let mut db = pages();
    let (int8, date, text) = (SqlType::Int8, SqlType::Date, SqlType::Text);
    let cases: &[Case] = &[
        (
            "SELECT id, no FROM o WHERE (id, no) > ($1, $2) ORDER BY id, no LIMIT 3",
            &["7", "4"],
            &[int8.clone(), int8.clone()],
            &["7|5", "8|1", "8|2"],
        ),
        (
            "SELECT id, no FROM o WHERE (id, no) IN (($1, $2), ($3, $4)) ORDER BY id DESC",
            &["3", "1", "9", "5"],
            &[int8.clone(), int8.clone(), int8.clone(), int8.clone()],
            &["9|5", "3|1"],
        ),
        (
            "SELECT id, no FROM o WHERE ROW($1, $2) = (id, no)",
            &["3", "1"],
            &[int8.clone(), int8.clone()],
            &["3|1"],
        ),
        (
            "SELECT count(*) FROM o WHERE (placed, state) BETWEEN ($1, $2) AND ($3, $4)",
            &["2026-01-03", "state 1", "2026-01-05", "state 1"],
            &[date.clone(), text.clone(), date, text.clone()],
            &["5"],
        ),
        (
            "SELECT count(*) FROM o WHERE (no, state) IS NOT DISTINCT FROM ($1, $2)",
            &["2", "state 2"],
            &[int8, text],
            &["40"],
        ),
    ];
    for (sql, params, types, want) in cases {
        let (got_types, got) = prepared(&mut db, sql, params);
        assert_eq!(got_types, *types, "{sql}");
        assert_eq!(got, *want, "{sql}");
    }
}

#[test]
fn literals_in_rows_take_them_too() {
    pages().check(&[
        ("SELECT count(*) FROM o WHERE (placed, no) > ('2026-03-30', 2)", "5"),
        (
            "SELECT count(*) FROM o WHERE (no, placed) IN ((1, '2026-01-09'), (2, '2026-01-10'))",
            "2",
        ),
        ("SELECT (1, 'a') = (1, 'a'), (1, NULL) = (1, 2), ROW('b', 2) > ROW('a', 3)", "t||t"),
        ("SELECT (1, ('x', 2)) = (1, ('x', 2))", "t"),
        ("SELECT (1, NULL) IS DISTINCT FROM (1, NULL)", "f"),
    ]);
    let mut db = pages();
    for sql in [
        "SELECT (1, 2) = (1, 2, 3)",
        "SELECT 1 FROM o WHERE (id, placed) > (1, 'no date')",
        "SELECT 1 FROM o WHERE (id, no) = (1, true)",
    ] {
        assert!(db.try_run(sql).is_err(), "{sql}");
    }
}

#[test]
fn rows_bound_the_key() {
    let mut db = pages();
    let cases = [
        ("SELECT * FROM o WHERE (id, no) > (7, 4)", "(id > 7) OR (id = 7 AND no > 4)"),
        ("SELECT * FROM o WHERE (id, no) IN ((1, 2), (3, 4))", "(id, no) IN ((1, 2), (3, 4))"),
        ("SELECT * FROM o WHERE id = 7 OR id = 9 AND no < 3", "(id = 7) OR (id = 9 AND no < 3)"),
        (
            "SELECT id, count(*) FROM o WHERE (id, no) <= (7, 4) GROUP BY ROLLUP (id)",
            "spans=1 key: (id < 7)",
        ),
        (
            "SELECT id, count(*) FROM o WHERE (id, no) IN ((1, 2), (3, 4)) GROUP BY ROLLUP (id)",
            "spans=2 key: (id, no) IN ((1, 2), (3, 4))",
        ),
    ];
    for (sql, want) in cases {
        let plan = db.run(&format!("EXPLAIN {sql}")).join("\n");
        assert!(plan.contains(want), "{sql}\n{plan}");
    }
    // An alternative that bounds nothing bounds all.
    let plan = db.run("EXPLAIN SELECT * FROM o WHERE id = 7 OR no = 2").join("\n");
    assert!(plan.contains("full scan"), "{plan}");
}

/// Numbers that look random: the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) % n
    }

    fn value(&mut self, column: &str) -> String {
        match column {
            "t" => format!("'{}'", ["a", "ab", "b", "", "c"][self.below(5) as usize]),
            _ if self.below(12) == 0 => "NULL".into(),
            _ => self.below(7).to_string(),
        }
    }

    fn condition(&mut self, depth: u32) -> String {
        const COLUMNS: [&str; 4] = ["a", "b", "c", "t"];
        let kind = if depth == 0 { self.below(4) } else { self.below(7) };
        let column = |n: &mut Numbers| COLUMNS[n.below(4) as usize];
        match kind {
            0 => {
                let (c, op) = (column(self), ["=", "<", ">", "<=", ">="][self.below(5) as usize]);
                format!("{c} {op} {}", self.value(c))
            }
            1 => {
                let c = column(self);
                let list: Vec<String> = (0..=self.below(3)).map(|_| self.value(c)).collect();
                format!("{c} IN ({})", list.join(", "))
            }
            2 => {
                let columns: Vec<&str> = (0..=1 + self.below(2)).map(|_| column(self)).collect();
                let values: Vec<String> = columns.iter().map(|c| self.value(c)).collect();
                let op = ["=", "<", ">", "<=", ">=", "<>"][self.below(6) as usize];
                format!("({}) {op} ({})", columns.join(", "), values.join(", "))
            }
            3 => {
                let columns: Vec<&str> = (0..=1 + self.below(2)).map(|_| column(self)).collect();
                let row = |n: &mut Numbers| {
                    let values: Vec<String> = columns.iter().map(|c| n.value(c)).collect();
                    format!("({})", values.join(", "))
                };
                let rows: Vec<String> = (0..=self.below(3)).map(|_| row(self)).collect();
                format!("({}) IN ({})", columns.join(", "), rows.join(", "))
            }
            4 => format!("NOT ({})", self.condition(depth - 1)),
            _ => {
                let op = ["AND", "OR", "OR"][self.below(3) as usize];
                let parts: Vec<String> =
                    (0..=1 + self.below(2)).map(|_| self.condition(depth - 1)).collect();
                format!("({})", parts.join(&format!(" {op} ")))
            }
        }
    }
}

/// The same condition over tables with keys and over one without gives the same rows, in own plans
/// and in general ones, alone and in a join.
#[test]
fn keys_make_no_difference() {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE plain (a int, b bigint, c smallint, t text);
         INSERT INTO plain SELECT x % 7, (x / 7) % 7, nullif((x / 49) % 7, 6)::smallint,
             (array['a', 'ab', 'b', '', 'c'])[x % 5 + 1] FROM generate_series(0, 342) AS g(x);
         CREATE TABLE keyed (a int, b bigint, c smallint, t text, n int,
             PRIMARY KEY (a, b DESC, n));
         INSERT INTO keyed SELECT a, b, c, t, row_number() OVER () FROM plain;
         CREATE TABLE indexed (a int, b bigint, c smallint, t text, n int PRIMARY KEY);
         INSERT INTO indexed SELECT a, b, c, t, n FROM keyed;
         CREATE INDEX i1 ON indexed (t, a DESC);
         CREATE INDEX i2 ON indexed (c, b);
         CREATE INDEX i3 ON indexed (b DESC, c DESC, t);",
    );
    let mut numbers = Numbers(20_261_123);
    let cases = std::env::var("BRAID_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(60);
    for _ in 0..cases {
        let condition = numbers.condition(2);
        let of = |db: &mut Db, query: String| db.run(&query);
        let rows = |table: &str, end: &str| {
            format!("SELECT a, b, c, t FROM {table} WHERE {condition} ORDER BY 1, 2, 3, 4{end}")
        };
        let want = of(&mut db, rows("plain", ""));
        for table in ["keyed", "indexed"] {
            assert_eq!(of(&mut db, rows(table, "")), want, "{table}: {condition}");
            let general =
                format!("(SELECT DISTINCT a, b, c, t FROM {table} WHERE {condition}) AS d");
            let mut different = want.clone();
            different.dedup();
            let query = format!("SELECT a, b, c, t FROM {general} ORDER BY 1, 2, 3, 4");
            assert_eq!(of(&mut db, query), different, "{table}, general: {condition}");
        }
        let first: Vec<String> = want.iter().take(3).cloned().collect();
        assert_eq!(of(&mut db, rows("keyed", " LIMIT 3")), first, "limit: {condition}");
    }
}
