//! What an index finds is what a scan of the rows finds, whatever has become of them meanwhile.

use crate::harness::Db;
use braid_kv::CommitTs;

/// A number of a sequence that is the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % n
    }
}

/// Children of `p`, inside of it or beside it, with an index of each kind.
fn create(interleaved: bool) -> Db {
    let mut db = Db::new();
    let (place, below) = match interleaved {
        true => (
            "INTERLEAVE IN PARENT p (a) ON DELETE CASCADE",
            "INTERLEAVE IN PARENT c (a, k) ON DELETE CASCADE",
        ),
        false => ("", ""),
    };
    let wide: Vec<String> = (1..=18).map(|n| format!("w{n} int DEFAULT {n}")).collect();
    let names: Vec<String> = (1..=18).map(|n| format!("w{n}")).collect();
    db.run(&format!(
        "CREATE TABLE p (a int PRIMARY KEY, v text);
         CREATE TABLE c (a int, k text, n int, u int, t text, x numeric, {wide},
             PRIMARY KEY (a, k)) {place};
         CREATE TABLE d (a int, k text, l int, PRIMARY KEY (a, k, l)) {below};
         CREATE INDEX by_n ON c (n);
         CREATE UNIQUE INDEX by_u ON c (u);
         CREATE INDEX by_t ON c (t DESC, k DESC) INCLUDE (x);
         CREATE INDEX by_x ON c (x, n);
         CREATE INDEX by_wide ON c ({names});",
        wide = wide.join(", "),
        names = names.join(", "),
    ));
    if interleaved {
        db.run("CREATE INDEX inside ON c (a, n) INTERLEAVE IN p");
    }
    db
}

/// A statement that writes.
fn write(random: &mut Random) -> String {
    let (a, k) = (random.below(12), random.below(4));
    let (n, x) = (random.below(6), random.below(5));
    let u = match random.below(3) {
        0 => "NULL".to_string(),
        _ => random.below(40).to_string(),
    };
    match random.below(10) {
        0..4 => format!(
            "INSERT INTO p VALUES ({a}, 'v') ON CONFLICT DO NOTHING;
             INSERT INTO c (a, k, n, u, t, x) VALUES ({a}, 'k{k}', {n}, {u}, 't{x}', {x}.50)
             ON CONFLICT DO NOTHING; INSERT INTO d VALUES ({a}, 'k{k}', {n}) ON CONFLICT DO NOTHING"
        ),
        4 => format!("UPDATE c SET n = {n}, x = {x} WHERE a = {a}"),
        5 => format!("UPDATE c SET t = 't{x}', w3 = {n} WHERE a = {a} AND k = 'k{k}'"),
        6 => format!("DELETE FROM c WHERE a = {a} AND k = 'k{k}'"),
        7 => format!("DELETE FROM c WHERE n = {n} AND a > {a}"),
        _ => format!("DELETE FROM p WHERE a BETWEEN {a} AND {}", a + random.below(3)),
    }
}

/// Queries by an index, and the same without.
fn queries(random: &mut Random) -> Vec<(&'static str, String, String)> {
    let (n, x, u) = (random.below(6), random.below(5), random.below(40));
    let pair = |index, columns: &str, by: String, without: String| {
        let sql = |condition: &str| format!("SELECT {columns} FROM c WHERE {condition}");
        (index, sql(&by), sql(&without))
    };
    vec![
        pair("by_n", "a, k, n", format!("n = {n}"), format!("n + 0 = {n}")),
        pair("by_n", "*", format!("n = {n} AND k > 'k1'"), format!("n + 0 = {n} AND k > 'k1'")),
        pair("by_n", "n, k", format!("n IN (1, {n})"), format!("n + 0 IN (1, {n})")),
        pair("by_u", "a, u, t", format!("u = {u}"), format!("u + 0 = {u}")),
        pair("by_u", "u", format!("u < {u}"), format!("u + 0 < {u}")),
        pair("by_t", "t, k, x, a", format!("t = 't{x}'"), format!("t || '' = 't{x}'")),
        pair("by_t", "v", format!("t > 't{x}'"), format!("t || '' > 't{x}'")).named("w5"),
        pair("by_x", "x, n, a", format!("x = {x}.5"), format!("x + 0 = {x}.5")),
        pair("by_x", "x", format!("x >= {x}"), format!("x + 0 >= {x}")),
        pair("by_wide", "w1, w18, k", "w1 = 1 AND w2 = 2".into(), "w1 + 0 = 1 AND w2 = 2".into()),
    ]
}

trait Named {
    fn named(self, columns: &str) -> Self;
}

impl Named for (&'static str, String, String) {
    /// With other columns instead of `v`.
    fn named(self, columns: &str) -> Self {
        let other = |sql: String| sql.replace("SELECT v ", &format!("SELECT {columns} "));
        (self.0, other(self.1), other(self.2))
    }
}

fn sorted(db: &mut Db, sql: &str) -> Vec<String> {
    let mut rows = db.run(sql);
    rows.sort();
    rows
}

/// Takes entries away whose rows are gone, or some of them.
fn reclaim(db: &Db, budget: usize) {
    db.session.state().db().reclaim(CommitTs(u64::MAX), budget).expect("reclaims");
}

fn check(db: &mut Db, random: &mut Random, what: &str) {
    for (index, by_index, without) in queries(random) {
        let want = sorted(db, &without);
        assert_eq!(sorted(db, &by_index), want, "{what}: {by_index}");
        let plan = db.run(&format!("EXPLAIN {by_index}")).join("\n");
        assert!(plan.contains(index), "{by_index}: {plan}");
        // The same rows by a general plan.
        let general = |sql: &str| format!("SELECT s.* FROM ({sql}) s, generate_series(1, 2)");
        let mut twice = [want.clone(), want].concat();
        twice.sort();
        assert_eq!(sorted(db, &general(&by_index)), twice, "{what}: {by_index}");
    }
}

fn histories(interleaved: bool, level: &str) {
    let mut random = Random(level.len() as u64);
    for history in 0..2 {
        let mut db = create(interleaved);
        let mut beside = db.another();
        for step in 0..8 {
            let what = format!("{level}, history {history}, step {step}");
            db.run(&format!("BEGIN ISOLATION LEVEL {level}"));
            check(&mut db, &mut random, &what);
            // What others do meanwhile is seen or not, by all queries alike.
            for _ in 0..random.below(3) {
                let sql = write(&mut random);
                _ = beside.try_run(&sql);
            }
            if random.below(3) == 0 {
                reclaim(&db, random.below(200) as usize);
            }
            check(&mut db, &mut random, &what);
            for _ in 0..random.below(5) {
                let sql = write(&mut random);
                if db.try_run(&sql).is_err() {
                    break;
                }
                check(&mut db, &mut random, &format!("{what}, own {sql}"));
            }
            if db.try_run("COMMIT").is_err() {
                db.run("ROLLBACK");
            }
            check(&mut db, &mut random, &what);
        }
    }
}

#[test]
fn read_committed() {
    histories(true, "READ COMMITTED");
}

#[test]
fn repeatable_read() {
    histories(true, "REPEATABLE READ");
}

#[test]
fn serializable() {
    histories(true, "SERIALIZABLE");
}

#[test]
fn flat_tables() {
    histories(false, "SERIALIZABLE");
}

fn point_reads(db: &mut Db, sql: &str) -> (bool, u64) {
    let lines = db.run(&format!("EXPLAIN ANALYZE {sql}")).join("\n");
    let reads = lines.split("point reads: ").nth(1).expect("tells how many");
    let reads = reads.split(',').next().expect("a number").parse().expect("a number");
    (lines.contains("(covering)"), reads)
}

#[test]
fn what_entries_tell_needs_no_rows() {
    let mut db = create(true);
    db.run(
        "INSERT INTO p SELECT i, 'v' FROM generate_series(1, 20) AS g(i);
         INSERT INTO c (a, k, n, u, t, x) SELECT i, 'k' || j, j, i * 10 + j, 't', 1.50
             FROM generate_series(1, 20) AS g(i), generate_series(1, 5) AS h(j)",
    );
    for (sql, covers) in [
        ("SELECT a, k, n FROM c WHERE n = 3", true),
        ("SELECT count(*) FROM c WHERE n = 3", true),
        ("SELECT sum(a) FROM c WHERE n = 3 AND k > 'k1'", true),
        ("SELECT x, t FROM c WHERE t = 't'", true),
        ("SELECT n FROM c WHERE n > 2 ORDER BY n DESC", true),
        ("SELECT u FROM c WHERE u < 100", true),
        ("SELECT u, a, k FROM c WHERE u < 100", true),
        ("SELECT n FROM c WHERE n IN (2, 3, 4)", true),
        ("SELECT n FROM c WHERE a < 50 AND a > 0 AND n = 3", true),
        ("SELECT n FROM c WHERE n = 3 AND v = 'x'", false),
        ("SELECT n, t FROM c WHERE n = 3", false),
        // 1.50 and 1.5 have one key.
        ("SELECT x FROM c WHERE x = 1.5", false),
        ("SELECT n FROM c WHERE n = 3 FOR UPDATE", false),
    ] {
        let sql = sql.replace("v = 'x'", "w7 = 7");
        let (covering, reads) = point_reads(&mut db, &sql);
        assert_eq!((covering, reads == 0), (covers, covers), "{sql}: {reads} point reads");
    }
    assert_eq!(db.run("SELECT x FROM c WHERE t = 't' LIMIT 1"), ["1.50"]);
    let general = "EXPLAIN SELECT array_agg(k) OVER (ORDER BY k) FROM c WHERE n = 3";
    assert!(db.run(general).join("\n").contains("using by_n (covering)"));
    // Where a family was erased, rows tell, until all entries were looked at.
    db.run("DELETE FROM p WHERE a = 7");
    let sql = "SELECT a, k, n FROM c WHERE n = 3";
    assert_eq!((point_reads(&mut db, sql), db.run(sql).len()), ((true, 1), 19));
    let mut before = db.another();
    before.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM p");
    reclaim(&db, 1_000);
    assert_eq!((point_reads(&mut db, sql), db.run(sql).len()), ((true, 0), 19));
    assert_eq!((point_reads(&mut before, sql), before.run(sql).len()), ((true, 1), 19));
}

/// An erasure that a serializable reader of entries did not see is a conflict, as if it had read
/// the rows.
#[test]
fn readers_of_entries_notice_erasures() {
    for (level, lost) in [("SERIALIZABLE", true), ("REPEATABLE READ", false)] {
        let mut db = create(true);
        db.run(
            "INSERT INTO p SELECT i, 'v' FROM generate_series(1, 9) AS g(i);
             INSERT INTO c (a, k, n) SELECT i, 'k', 3 FROM generate_series(1, 9) AS g(i)",
        );
        let mut beside = db.another();
        db.run(&format!("BEGIN ISOLATION LEVEL {level}"));
        assert_eq!(db.run("SELECT count(*) FROM c WHERE n = 3"), ["9"]);
        beside.run("DELETE FROM p WHERE a = 4");
        assert_eq!(db.run("SELECT count(*) FROM c WHERE n = 3"), ["9"]);
        db.run("INSERT INTO p VALUES (100, 'v')");
        assert_eq!(db.try_run("COMMIT").is_err(), lost, "{level}");
        assert_eq!(beside.run("SELECT count(*) FROM c WHERE n = 3"), ["8"]);
    }
}

/// Children of `p` with columns of many types, and this index.
fn create_of_types(index: &str) -> Db {
    let mut db = Db::new();
    db.run(&format!(
        "CREATE TABLE p (a int PRIMARY KEY);
         CREATE TABLE c (a int, k int, g bigint, b bool, s smallint, d date, t text, z timestamptz,
             y char(3), x numeric(8,2), f float8, PRIMARY KEY (a, k))
             INTERLEAVE IN PARENT p (a) ON DELETE CASCADE;
         CREATE INDEX by_g ON c {index};
         INSERT INTO p SELECT i FROM generate_series(0, 300) AS g(i);
         INSERT INTO c SELECT i / 10, i % 10, i % 1000, nullif(i % 3, 0) = 1, nullif(-i % 700, 3),
             nullif(date '2020-01-01' - i, date '2019-12-01'), nullif('é' || i % 77, 'é5'),
             timestamptz '2020-01-01 00:00:00+00' - i * interval '1 hour', left('y' || i % 50, 3),
             nullif(i % 90, 7) / 4.0, i / 8.0 FROM generate_series(0, 2999) AS g(i)"
    ));
    db
}

/// Long runs of entries, short ones of many spans, and what is left after an erasure.
#[test]
fn columns_of_entries_are_those_of_rows() {
    let many: Vec<String> = (0..400).map(|i| (i * 7 % 1_003).to_string()).collect();
    let conditions =
        ["{g} >= 0".to_string(), "{g} = 7".to_string(), format!("{{g}} IN ({})", many.join(", "))];
    let cases = [
        (
            "(g, b, s, d) INCLUDE (x, f)",
            vec!["a, k, g, b, s, d, x, f", "count(*), sum(s), min(d), max(x), sum(f)", "b, d"],
        ),
        (
            "(g DESC, t DESC, z DESC, y DESC) INCLUDE (x)",
            vec!["t, g, z, y, x", "count(t), max(y), min(z), sum(x)", "k"],
        ),
        ("(g, t) WHERE b", vec!["t, b", "count(*), max(k)"]),
    ];
    for (index, selected) in cases {
        let mut db = create_of_types(index);
        let partial = if index.contains("WHERE") { " AND b" } else { "" };
        for round in 0..3 {
            for (condition, columns) in
                conditions.iter().flat_map(|c| selected.iter().map(move |s| (c, s)))
            {
                let sql = |g: &str| {
                    let condition = condition.replace("{g}", g);
                    format!("SELECT {columns} FROM c WHERE {condition}{partial}")
                };
                let (by_index, without) = (sql("g"), sql("(g + 0)"));
                let what = format!("{index}, round {round}: {by_index}");
                assert_eq!(sorted(&mut db, &by_index), sorted(&mut db, &without), "{what}");
                let twice = |sql: &str| {
                    format!("SELECT * FROM ({sql}) s UNION ALL SELECT * FROM ({sql}) r")
                };
                let (got, want) = (twice(&by_index), twice(&without));
                assert_eq!(sorted(&mut db, &got), sorted(&mut db, &want), "{what}, twice");
                for sql in [&by_index, &got] {
                    let plan = db.run(&format!("EXPLAIN {sql}")).join("\n");
                    // General plans do not look for a predicate that is implied.
                    let covers = plan.contains("by_g (covering)");
                    assert!(covers || !partial.is_empty(), "{plan}");
                }
            }
            match round {
                0 => db.run("DELETE FROM p WHERE a BETWEEN 20 AND 24 OR a = 77"),
                _ => db.run("BEGIN; DELETE FROM p WHERE a = 100; UPDATE c SET g = 7 WHERE a = 101"),
            };
        }
    }
}
