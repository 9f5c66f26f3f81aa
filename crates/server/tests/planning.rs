//! Statements that are large or deep: they are planned or refused with 54001, planning stops when
//! it is asked to, and the node lives in any case. A statement that needs more stack than there is
//! would end the whole node.

use crate::support::{Running, Talk};

fn server() -> (Running, Talk) {
    let server = Running::with(|config| config.connections_max = 20);
    let mut talk = server.connect();
    talk.query(
        "CREATE TABLE k (a int PRIMARY KEY, v text); \
         INSERT INTO k SELECT n, 'row ' || n FROM generate_series(1, 20) n(n)",
    );
    let said = talk.answer();
    assert!(said.ends_with("Complete(INSERT 0 20) I"), "{said}");
    (server, talk)
}

fn joined(what: &[String], by: &str) -> String {
    what.join(by)
}

fn each(n: usize, f: impl Fn(usize) -> String) -> Vec<String> {
    (0..n).map(f).collect()
}

fn joins(n: usize) -> String {
    let more = each(n - 1, |i| format!("JOIN k t{} ON t{}.a = t{i}.a", i + 1, i + 1));
    format!("SELECT count(*) FROM k t0 {}", joined(&more, " "))
}

fn commas(n: usize) -> String {
    let tables = joined(&each(n, |i| format!("k t{i}")), ", ");
    let equal = joined(&each(n - 1, |i| format!("t{}.a = t{i}.a", i + 1)), " AND ");
    format!("SELECT count(*) FROM {tables} WHERE {equal}")
}

fn unions(n: usize, word: &str) -> String {
    format!(
        "SELECT count(*) FROM ({}) s",
        joined(&each(n, |i| format!("SELECT a + 0 FROM k WHERE a = {i}")), word)
    )
}

#[test]
fn many_unions_make_a_wide_plan_with_the_right_rows() {
    let (_server, mut talk) = server();
    let constants = |word: &str| joined(&each(1000, |i| format!("SELECT {}", i % 300)), word);
    for (sql, rows) in [
        (unions(200, " UNION ALL "), 20),
        (unions(200, " UNION "), 20),
        (format!("SELECT count(*) FROM ({}) s", constants(" UNION ALL ")), 1000),
        (format!("SELECT count(*) FROM ({}) s", constants(" UNION ")), 300),
    ] {
        talk.query(&sql);
        assert_eq!(
            talk.answer(),
            format!("Columns Row({rows}) Complete(SELECT 1) I"),
            "{}",
            &sql[..80]
        );
    }
    // Chains of different kinds are not one.
    for (sql, rows) in [
        ("SELECT 1 UNION SELECT 1 UNION ALL SELECT 1", 2),
        ("SELECT 1 UNION ALL SELECT 1 UNION SELECT 1", 1),
        ("SELECT 1 UNION ALL (SELECT 1 UNION SELECT 1)", 2),
        ("SELECT 1 UNION ALL SELECT 2 EXCEPT SELECT 1 UNION ALL SELECT 1 UNION ALL SELECT 1", 3),
    ] {
        talk.query(&format!("SELECT count(*) FROM ({sql}) s"));
        assert_eq!(talk.answer(), format!("Columns Row({rows}) Complete(SELECT 1) I"), "{sql}");
    }
    talk.query("SELECT 1 UNION ALL SELECT 2.5 UNION ALL SELECT 3::float8 ORDER BY 1");
    assert_eq!(talk.answer(), "Columns Row(1) Row(2.5) Row(3) Complete(SELECT 3) I");
}

#[test]
fn deep_and_long_statements_run_or_are_refused_and_the_node_lives() {
    let (server, _) = server();
    let nested = |n: usize| format!("SELECT {}1{}", "(SELECT ".repeat(n), ")".repeat(n));
    let derived = |n: usize| {
        format!("SELECT count(*) FROM {}k{}", "(SELECT a FROM ".repeat(n), ") s".repeat(n))
    };
    let inside = |n: usize| {
        let begin = "SELECT a FROM k WHERE a IN (".repeat(n);
        format!("{begin}1{}", ")".repeat(n))
    };
    let cases = [
        (
            "plus 4,000",
            format!("SELECT {}", joined(&each(4000, |_| "1".into()), " + ")),
            "Row(4000)",
        ),
        ("plus 6,000", format!("SELECT {}", joined(&each(6000, |_| "1".into()), "+")), "54001"),
        ("plus 1,000,000", format!("SELECT {}", vec!["1"; 1_000_000].join("+")), "54001"),
        ("concat", format!("SELECT length({})", vec!["'ab'"; 4000].join("||")), "Row(8000)"),
        ("casts", format!("SELECT 1{}", "::int".repeat(100_000)), "54001"),
        ("subscripts", format!("SELECT a{} FROM k", "[1]".repeat(100_000)), "54001"),
        ("is null", format!("SELECT 1{}", " IS NULL".repeat(100_000)), "54001"),
        (
            "ands",
            format!(
                "SELECT count(*) FROM k WHERE {}",
                joined(&each(10_000, |i| format!("a <> {}", i + 5)), " AND ")
            ),
            "Row(4)",
        ),
        (
            "ors",
            format!(
                "SELECT count(*) FROM k WHERE {}",
                joined(&each(10_000, |i| format!("a = {}", i + 5)), " OR ")
            ),
            "Row(16)",
        ),
        (
            "in list",
            format!(
                "SELECT count(*) FROM k x, k y WHERE x.a = y.a AND x.a IN ({})",
                joined(&each(5000, |i| format!("{}", i + 5)), ",")
            ),
            "Row(16)",
        ),
        ("unions", vec!["SELECT 1"; 100_000].join(" UNION ALL "), "54001"),
        ("intersections", vec!["SELECT 1"; 5_000].join(" INTERSECT "), "54001"),
        ("subqueries in FROM", derived(100), "Row(20)"),
        ("subqueries in expressions", nested(100), "54001"),
        ("conditions", inside(60), "54001"),
        ("brackets", format!("SELECT {}1{}", "(".repeat(190), ")".repeat(190)), "Row(1)"),
        ("too many brackets", format!("SELECT {}1{}", "(".repeat(9000), ")".repeat(9000)), "54001"),
    ];
    for (what, sql, expected) in cases {
        let mut talk = server.connect();
        talk.query(&sql);
        let said = talk.answer();
        let shown: String = said.chars().take(200).collect();
        assert!(said.contains(expected), "{what}: {shown}");
    }
}

#[test]
fn planning_stops_at_its_time_limit() {
    let (server, mut talk) = server();
    talk.query("SET statement_timeout = '20ms'");
    talk.answer();
    let windows = joined(&each(200, |i| format!("array_agg(a) OVER (ORDER BY a + {i})")), ", ");
    for (what, sql) in [
        ("joins", joins(120)),
        ("very many joins", joins(299)),
        ("cross joins", commas(120)),
        ("very many cross joins", commas(299)),
        ("unions", unions(1000, " UNION ALL ")),
        ("windows", format!("SELECT {windows} FROM k")),
    ] {
        talk.query(&format!("EXPLAIN {sql}"));
        let said = talk.answer();
        assert!(said.ends_with("Error(ERROR 57014) I"), "{what}: {said}");
    }
    drop(server);
}

#[test]
fn joins_of_many_tables_give_their_rows() {
    let (_server, mut talk) = server();
    for sql in [joins(60), commas(60)] {
        talk.query(&sql);
        assert_eq!(talk.answer(), "Columns Row(20) Complete(SELECT 1) I");
    }
}
