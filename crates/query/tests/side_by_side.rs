//! Queries for which several threads read: the same answers, and nobody reads when the statement
//! is over. On a machine with one core, one thread reads whatever is asked for.

use crate::harness::Db;
use braid_env::tasks::cores;
use braid_sql::Outcome;

const FORM: &str = "
    CREATE TABLE p (id int PRIMARY KEY, kind int, n numeric(10,2), s text, f float8);
    CREATE TABLE c (id int, pos int, ref int, s text, PRIMARY KEY (id, pos),
        FOREIGN KEY (id) REFERENCES p (id)) INTERLEAVE IN PARENT p ON DELETE CASCADE;
    CREATE TABLE few (k int PRIMARY KEY, name text);
    INSERT INTO p SELECT i, CASE WHEN i % 11 = 0 THEN NULL ELSE i % 7 END, i / 4.0,
        'text ' || i % 1000, i / 8.0 FROM generate_series(1, 40000) AS g(i);
    INSERT INTO c SELECT i % 40000 + 1, i / 40000, CASE WHEN i % 13 = 0 THEN NULL ELSE i % 50 END,
        'child ' || i FROM generate_series(0, 59999) AS g(i);
    INSERT INTO few SELECT i, 'few ' || i FROM generate_series(0, 9) AS g(i)";

/// A database with tables that are large enough, and its settings.
fn db() -> Db {
    let mut db = Db::new();
    db.run(FORM);
    db.run("SET min_parallel_table_scan_size = 0");
    db
}

fn helpers(db: &mut Db, count: usize) {
    db.run(&format!("SET max_parallel_workers_per_gather = {count}"));
}

fn plan(db: &mut Db, sql: &str) -> String {
    db.run(&format!("EXPLAIN {sql}")).join("\n")
}

const QUERIES: &[&str] = &[
    "SELECT count(*), sum(n), min(s), max(f), avg(kind) FROM p",
    "SELECT kind, count(*), sum(n), count(DISTINCT s), avg(n) FROM p GROUP BY kind",
    "SELECT s, max(id) FROM p WHERE kind > 2 GROUP BY s HAVING count(*) > 20",
    "SELECT DISTINCT kind, f > 100 FROM p",
    "SELECT p.kind, count(*), sum(c.pos) FROM p JOIN c USING (id) GROUP BY p.kind",
    "SELECT count(*), count(few.k) FROM c LEFT JOIN few ON few.k = c.ref",
    "SELECT few.k, count(c.id) FROM c RIGHT JOIN few ON few.k = c.ref GROUP BY few.k",
    "SELECT count(*), count(few.k), count(c.id) FROM c FULL JOIN few ON few.k = c.ref + 5",
    "SELECT few.name FROM few WHERE EXISTS (SELECT 1 FROM c WHERE c.ref = few.k AND c.pos = 1)",
    "SELECT name FROM few WHERE k NOT IN (SELECT kind FROM p WHERE kind IS NOT NULL)",
    "SELECT name FROM few WHERE k NOT IN (SELECT kind FROM p)",
    "SELECT count(*) FROM c WHERE ref NOT IN (SELECT k FROM few)",
    "SELECT count(*) FROM p WHERE NOT EXISTS (SELECT 1 FROM c WHERE c.id = p.id AND c.pos > 0)",
    "SELECT count(*) FROM p WHERE n > (SELECT avg(n) FROM p)",
    "SELECT count(*) FROM p a, p b WHERE a.id = b.id + 20000 AND a.kind = b.kind",
    "SELECT count(*) FROM p JOIN few ON p.kind < few.k AND p.id % 100 = few.k",
    "SELECT id, s FROM p WHERE kind = 3 ORDER BY n DESC, id LIMIT 7",
    "SELECT s, id, row_number() OVER (PARTITION BY s ORDER BY id) FROM p WHERE id % 40 = 0",
    "SELECT kind FROM p UNION SELECT ref FROM c",
    "SELECT kind FROM p EXCEPT SELECT k FROM few",
    "SELECT count(*) FROM (SELECT id FROM p ORDER BY s, id OFFSET 100 LIMIT 1000) t",
    "SELECT sum(CASE WHEN s LIKE '%9' THEN 1 ELSE 0 END), bool_or(id = 7), bool_and(n > 0) FROM p",
    "SELECT few.name, x.m FROM few LEFT JOIN LATERAL \
        (SELECT max(c.id) AS m FROM c WHERE c.ref = few.k) x ON true",
    "WITH t AS (SELECT kind, count(*) AS n, sum(n) AS s FROM p GROUP BY kind) \
        SELECT a.kind, a.n, a.s FROM t a WHERE a.n >= (SELECT avg(b.n) FROM t b)",
    "WITH t AS MATERIALIZED (SELECT id, s FROM p WHERE kind = 2), \
        u AS MATERIALIZED (SELECT c.ref, count(t.s) AS n FROM c LEFT JOIN t USING (id) GROUP BY 1) \
        SELECT count(*), sum(n), (SELECT count(*) FROM t), (SELECT max(ref) FROM u) FROM u",
];

#[test]
fn answers_do_not_depend_on_the_number_of_threads() {
    let mut db = db();
    for analyzed in [false, true] {
        if analyzed {
            db.run("ANALYZE");
        }
        for sql in QUERIES {
            let mut answers = Vec::new();
            // Several times: how many threads read is known better after the first.
            for count in [0, 7, 7] {
                helpers(&mut db, count);
                let mut rows = db.run(sql);
                if !sql.contains("ORDER BY n DESC") {
                    rows.sort();
                }
                answers.push(rows);
            }
            answers.dedup();
            assert_eq!(answers.len(), 1, "{sql}\n{answers:?}");
            if cores() > 1 && !sql.contains(" n DESC") {
                helpers(&mut db, 1);
                assert!(plan(&mut db, sql).contains("threads=2"), "{}", plan(&mut db, sql));
            }
        }
    }
}

#[test]
fn own_writes_and_isolation_levels_are_as_with_one_thread() {
    let mut db = db();
    let sums = "SELECT kind, count(*), sum(n), sum(m) FROM p \
        LEFT JOIN (SELECT id, count(*) AS m FROM c GROUP BY id) c USING (id) \
        GROUP BY kind ORDER BY kind";
    for level in ["SERIALIZABLE", "REPEATABLE READ", "READ COMMITTED"] {
        db.run(&format!("BEGIN ISOLATION LEVEL {level}"));
        db.run(
            "DELETE FROM p WHERE id BETWEEN 100 AND 20000;
             UPDATE p SET kind = 5, n = n + 1 WHERE id > 39000;
             INSERT INTO p VALUES (50000, 6, 1, 'own', 0), (50001, 6, 2, 'own', 0)",
        );
        helpers(&mut db, 0);
        let one = db.run(sums);
        helpers(&mut db, 3);
        assert_eq!(db.run(sums), one, "{level}");
        db.run("ROLLBACK");
    }
}

#[test]
fn what_several_threads_have_read_is_validated() {
    let mut db = db();
    let mut other = db.another();
    helpers(&mut db, 3);
    db.run("BEGIN");
    assert_eq!(db.run("SELECT kind, count(*) FROM p WHERE f < 0 GROUP BY kind").len(), 0);
    other.run("UPDATE p SET f = -1 WHERE id = 23456");
    db.run("INSERT INTO few VALUES (100, 'there was none below 0')");
    let error = db.try_run("COMMIT").expect_err("another order would have shown it");
    assert_eq!(error.state().0, "40001");
}

#[test]
fn a_plan_goes_by_what_its_last_execution_has_read() {
    let mut db = db();
    db.run("SET min_parallel_table_scan_size = '1MB'");
    helpers(&mut db, 1);
    let sql = "SELECT kind, count(*) FROM p WHERE id BETWEEN $1 AND $2 GROUP BY kind";
    let statement = db.session.parse_script(sql).expect("parses").remove(0);
    let prepared = db.session.prepare(statement, &[]).expect("prepares");
    let mut groups = |low: i32, high: i32| -> Vec<usize> {
        let params = vec![braid_types::Datum::Int4(low), braid_types::Datum::Int4(high)];
        let outcome = db.session.execute(&prepared, params).expect("runs");
        let Outcome::Rows(mut rows) = outcome else { panic!("rows") };
        let mut out = Vec::new();
        while let Some(batch) = rows.next_batch().expect("rows") {
            out.extend(batch.iter().map(|row| row.len()));
        }
        out
    };
    for (low, high, found) in
        [(1, 40_000, 8), (1, 40_000, 8), (1, 10, 7), (5, 5, 1), (1, 40_000, 8)]
    {
        assert_eq!(groups(low, high).len(), found);
        assert_eq!(groups(low, high).len(), found);
    }
}

#[test]
fn one_thread_reads_for_what_depends_on_the_order_or_is_volatile() {
    let mut db = db();
    helpers(&mut db, 3);
    db.run("CREATE SEQUENCE seq");
    for sql in [
        "SELECT string_agg(s, ',') FROM p",
        "SELECT kind, array_agg(id) FROM p GROUP BY kind",
        "SELECT kind, max(nextval('seq')) FROM p GROUP BY kind",
        "SELECT count(*) FROM p WHERE random() < 2 GROUP BY kind",
    ] {
        assert!(!plan(&mut db, sql).contains("threads="), "{}", plan(&mut db, sql));
    }
    // Less than what makes it worth it.
    db.run("SET min_parallel_table_scan_size = '1GB'");
    let sql = "SELECT kind, count(*) FROM p GROUP BY kind";
    assert!(!plan(&mut db, sql).contains("threads="));
    db.run("SET min_parallel_table_scan_size = '1MB'");
    assert_eq!(plan(&mut db, sql).contains("threads="), cores() > 1);
    assert!(!plan(&mut db, "SELECT name, count(*) FROM few GROUP BY name").contains("threads="));
}

#[test]
fn errors_and_limits_end_all_threads() {
    let mut db = db();
    helpers(&mut db, 3);
    for _ in 0..20 {
        let rows = db.run("SELECT p.id, c.s FROM p JOIN c ON p.kind = c.ref LIMIT 3");
        assert_eq!(rows.len(), 3);
        let error = db.try_run("SELECT count(*) FROM p GROUP BY 10 / (id - 30000)");
        assert_eq!(error.expect_err("a division by zero").state().0, "22012");
        // What is still being read would be in the way of these.
        db.run("UPDATE p SET n = n + 1 WHERE id = 30000");
    }
    let error = db.try_run("SELECT kind, sum(n / (id - 39999)) FROM p GROUP BY kind");
    assert_eq!(error.expect_err("a division by zero").state().0, "22012");
}

/// What computes a common table expression ends with its rows or before, however much of its inputs
/// nobody wants any more, and also when somebody watches it.
#[test]
fn common_rows_leave_nobody_reading() {
    let mut db = db();
    helpers(&mut db, 3);
    let queries = [
        // A join without rows on its held side ends before the other side is read.
        "WITH t AS MATERIALIZED (SELECT p.kind, sum(c.pos) AS n FROM few \
            JOIN c ON c.ref = few.k JOIN p ON p.id = c.id WHERE few.name = 'none' GROUP BY p.kind) \
            SELECT (SELECT count(*) FROM t), (SELECT max(n) FROM t)",
        "WITH t AS MATERIALIZED (SELECT p.id FROM p JOIN c ON p.kind = c.ref LIMIT 5) \
            SELECT count(*), (SELECT count(*) FROM t) FROM t",
        // Nobody gets so far as to ask, or asks for one row.
        "WITH t AS MATERIALIZED (SELECT kind, count(*) AS n FROM p GROUP BY kind) \
            SELECT few.name FROM few JOIN t ON t.kind = few.k WHERE few.k > 100",
        "WITH t AS MATERIALIZED (SELECT id, s FROM p WHERE kind > 1) SELECT count(*) FROM \
            (SELECT t.id FROM t JOIN c USING (id) LIMIT 1) x, (SELECT id FROM t LIMIT 1) y",
    ];
    let answers = ["0|", "5|5", "", "1"];
    let fails = "WITH t AS MATERIALIZED (SELECT 10 / (id - 30000) AS q FROM p) \
        SELECT count(*) FROM t a JOIN c ON c.ref = a.q";
    for _ in 0..5 {
        for (sql, answer) in queries.iter().zip(answers) {
            assert_eq!(db.run(sql).join(";"), answer, "{sql}");
            db.run(&format!("EXPLAIN ANALYZE {sql}"));
        }
        for sql in [fails.to_string(), format!("EXPLAIN ANALYZE {fails}")] {
            assert_eq!(db.try_run(&sql).expect_err("a division by zero").state().0, "22012");
        }
        db.run("UPDATE p SET n = n + 1 WHERE id = 30000");
    }
}

#[test]
fn explain_analyze_counts_what_each_has_read_once() {
    let mut db = db();
    let sql = "EXPLAIN (ANALYZE, FORMAT JSON) SELECT kind, count(*) FROM p GROUP BY kind";
    let read = |db: &mut Db, count: usize| -> (u64, u64) {
        helpers(db, count);
        let text = db.run(sql).join("\n");
        let of = |key: &str| -> u64 {
            let at = text.find(&format!("\"{key}\"")).unwrap_or_else(|| panic!("{key}: {text}"));
            let digits = text[at..].split_once(':').expect("a value").1.trim_start();
            digits[..digits.find(|c: char| !c.is_ascii_digit()).expect("an end")]
                .parse()
                .unwrap_or_else(|e| panic!("{key}: {e} {digits}"))
        };
        (of("rows_scanned"), of("Actual Rows"))
    };
    let (one, several) = (read(&mut db, 0), read(&mut db, 3));
    assert_eq!(one.1, several.1);
    // Each piece may look at the first entry behind its end.
    assert!((one.0..one.0 + 50).contains(&several.0), "{one:?} {several:?}");
}
