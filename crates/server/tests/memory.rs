//! What clients make the node hold is counted and limited: whoever goes over it fails by name,
//! everybody else goes on, and everything is given back.

mod support;

use std::io::Write;
use std::time::Duration;

use support::{Running, Talk};

fn server() -> (Running, Talk) {
    let server = Running::with(|config| {
        config.connections_max = 100;
        config.memory_max = Some(256 << 20);
    });
    let mut talk = server.connect();
    talk.query(
        "CREATE TABLE k (a int PRIMARY KEY, v text); CREATE TABLE sink (a int PRIMARY KEY, v text); \
         INSERT INTO k SELECT n, repeat('x', 500) || n FROM generate_series(1, 4000) n(n)",
    );
    let said = talk.answer();
    assert!(said.ends_with("Complete(INSERT 0 4000) I"), "{said}");
    (server, talk)
}

/// The message of the next error, up to ReadyForQuery.
fn error(talk: &mut Talk) -> String {
    let mut out = String::new();
    loop {
        match talk.message().expect("the session lives") {
            (b'Z', _) => return out,
            (b'E', body) => {
                let fields = String::from_utf8_lossy(&body).into_owned();
                let field = |code: char| {
                    let mut all = fields.split('\0');
                    all.find_map(|s| s.strip_prefix(code)).unwrap_or_default().to_string()
                };
                out = format!("{} {}", field('C'), field('M'));
            }
            _ => {}
        }
    }
}

fn wait_for_nothing_held(server: &Running) {
    let mut turns = 0;
    while server.memory().used() > 0 {
        turns += 1;
        assert!(turns < 500, "{} bytes are still held", server.memory().used());
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn each_operator_over_its_limit_says_its_name_and_gives_all_back() {
    let (server, mut talk) = server();
    talk.query("SET statement_mem = '512kB'");
    talk.answer();
    let cases = [
        ("SELECT * FROM k ORDER BY v", "Sort"),
        ("SELECT a.v FROM k a JOIN k b ON a.v = b.v", ""),
        ("SELECT a.v FROM k a WHERE a.v NOT IN (SELECT b.v FROM k b)", ""),
        ("SELECT count(*) FROM k a, k b WHERE a.v > b.v", ""),
        ("UPDATE k SET a = a + 100000", "rows to be written"),
        ("DELETE FROM k WHERE v > '' RETURNING *", "RETURNING"),
        ("INSERT INTO sink SELECT a, v FROM k", "rows to be written"),
        (
            "SELECT max(length(s)) FROM (SELECT repeat('x', 40000 + g) s FROM generate_series(1, 4000) g) t",
            "values of functions",
        ),
        (
            "SELECT a FROM k WHERE (v, a) IN (SELECT v, a FROM k) AND a + 0 = ANY (SELECT a FROM k x WHERE x.v <> k.v)",
            "",
        ),
    ];
    for (sql, name) in cases {
        talk.query(sql);
        let said = error(&mut talk);
        assert!(said.starts_with("53200 out of memory: ") && said.contains(name), "{sql}: {said}");
        wait_for_nothing_held(&server);
    }
    // Rows that stand alone are written part by part.
    talk.query("BEGIN; UPDATE k SET v = v || 'y'; DELETE FROM k; ROLLBACK");
    let said = talk.answer();
    assert!(
        said.contains("Complete(UPDATE 4000)") && said.contains("Complete(DELETE 4000)"),
        "{said}"
    );
    // What keeps few rows needs little memory; what can spill does.
    talk.query("SET statement_mem = '4MB'");
    talk.answer();
    for sql in ["SELECT * FROM k", "SELECT * FROM k ORDER BY v LIMIT 10", "SELECT count(*) FROM k"]
    {
        talk.query(sql);
        let said = error(&mut talk);
        assert_eq!(said, "", "{sql}");
    }
    talk.query("SET statement_mem = '8MB'");
    talk.answer();
    talk.query("SELECT count(*) FROM (SELECT a.v, b.a FROM k a, generate_series(1, 20) b(a) ORDER BY a.v, b.a OFFSET 5) s");
    let said = talk.answer();
    assert!(said.contains("Row(79995)"), "sorting 40 MB in 8 MB spills: {said}");
    // So do rows of WITH that are read twice, and rows that come before the ones wanted.
    for (sql, want) in [
        (
            "WITH c AS MATERIALIZED (W) SELECT count(*), right(max(w), 5) FROM c, k WHERE a = 4000",
            "Row(80000,999/9)",
        ),
        (
            "WITH c AS (W) SELECT (SELECT count(*) FROM c), (SELECT count(DISTINCT w) FROM c)",
            "Row(80000,80000)",
        ),
        ("WITH c AS MATERIALIZED (W) SELECT x FROM c LIMIT 1", "Complete(SELECT 1)"),
        ("WITH c AS (W) SELECT right(w, 5) FROM c ORDER BY w LIMIT 1 OFFSET 79999", "Row(999/9)"),
        (
            "WITH c AS (W) SELECT count(*) FROM (SELECT * FROM c ORDER BY w LIMIT 70000) s",
            "Row(70000)",
        ),
    ] {
        let rows = "SELECT a.v || '/' || g.x AS w, g.x FROM k a, generate_series(1, 20) g(x)";
        talk.query(&sql.replace("W)", &format!("{rows})")));
        let said = talk.answer();
        assert!(said.contains(want), "{sql}: {said}");
        wait_for_nothing_held(&server);
    }
    // Sets of values are groups, which spill; sets in states are counted with what they point to.
    for (sql, want) in [
        ("SELECT count(DISTINCT w) FROM", "Row(80000)"),
        ("SELECT sum(n) FROM (SELECT count(DISTINCT w) n FROM", "Row(80000)"),
        ("SELECT count(DISTINCT w), sum(length(w)) FROM", "53200"),
    ] {
        let grouped = if sql.contains("sum(n)") { " GROUP BY x % 3) s" } else { "" };
        talk.query(&format!(
            "{sql} (SELECT a.v || '/' || g.x AS w, g.x FROM k a, generate_series(1, 20) g(x)) t{grouped}"
        ));
        let said = talk.answer();
        assert!(said.contains(want), "{sql}: {said}");
        wait_for_nothing_held(&server);
    }
    // Windows keep rows on disk, what their functions look at in memory, a partition at a time.
    for (calls, want) in [
        ("count(*) OVER () = 80000 AND sum(x) OVER () = 840000", "Row(80000)"),
        ("count(*) OVER (PARTITION BY x % 2) = 40000", "Row(80000)"),
        ("last_value(w) OVER (PARTITION BY w) = w", "Row(80000)"),
        (
            "last_value(x) OVER (ORDER BY x ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) = 20",
            "",
        ),
        (
            "last_value(w) OVER (ORDER BY w ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) > ''",
            "Error(ERROR 53200)",
        ),
        ("count(w) OVER (ORDER BY x % 2) > 0", "Error(ERROR 53200)"),
        // Lists are as long as their frames.
        (
            "array_length(array_agg(x) OVER (PARTITION BY x ORDER BY w ROWS BETWEEN UNBOUNDED \
             PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW), 1) > 0",
            "Error(ERROR 53200)",
        ),
        (
            "max(x) OVER (PARTITION BY x % 4 ORDER BY x ROWS BETWEEN UNBOUNDED PRECEDING AND \
             UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW) > 0",
            "Row(80000)",
        ),
        ("row_number() OVER (ORDER BY w) > 0", "Row(80000)"),
    ] {
        talk.query(&format!(
            "SELECT count(*) FROM (SELECT w, {calls} AS yes FROM (SELECT a.v || '/' || g.x AS w, g.x \
             FROM k a, generate_series(1, 20) g(x)) t) s WHERE yes"
        ));
        let said = talk.answer();
        assert!(said.contains(want), "{calls}: {said}");
        wait_for_nothing_held(&server);
    }
    talk.query("SET statement_mem = '16MB'");
    talk.answer();
    talk.query(
        "WITH c AS (SELECT a.v || '/' || g.x AS w FROM k a, generate_series(1, 20) g(x)) \
         SELECT count(*) FROM c x JOIN c y USING (w)",
    );
    let said = talk.answer();
    assert!(said.contains("Row(80000)"), "a join of rows that lie on disk twice: {said}");
    talk.query("SELECT count(*), max(y.a) FROM (SELECT a.v, b.a FROM k a, generate_series(1, 20) b(a)) x JOIN k y ON x.v = y.v");
    let said = talk.answer();
    assert!(
        said.contains("Row(80000"),
        "a hash join that does not fit becomes one that spills: {said}"
    );
    wait_for_nothing_held(&server);
    // Also one that several threads began, whose memory is given back before the other begins.
    talk.query("SET min_parallel_table_scan_size = 0");
    talk.answer();
    for _ in 0..5 {
        talk.query("SELECT count(*), max(y.a) FROM (SELECT a.v, b.a FROM k a, generate_series(1, 20) b(a)) x JOIN k y ON x.v = y.v");
        let said = error(&mut talk);
        assert_eq!(said, "");
        wait_for_nothing_held(&server);
    }
}

#[test]
fn cancel_departure_and_rollback_give_memory_back() {
    let (server, mut talk) = server();
    talk.query("BEGIN; INSERT INTO sink SELECT a, v FROM k");
    talk.answer();
    assert!(server.memory().used() > 2 << 20, "the transaction's writes are counted");
    talk.query("ROLLBACK");
    talk.answer();
    wait_for_nothing_held(&server);
    talk.query("SET statement_timeout = 200; SELECT count(*) FROM (SELECT a.v FROM k a, k b, k c ORDER BY a.v, b.v, c.a) s");
    let said = error(&mut talk);
    assert!(said.starts_with("57014") || said.starts_with("53200"), "{said}");
    wait_for_nothing_held(&server);
    let mut other = server.connect();
    other.query("BEGIN; INSERT INTO sink SELECT a, v FROM k");
    other.answer();
    drop(other);
    wait_for_nothing_held(&server);
}

#[test]
fn a_transaction_larger_than_memory_goes_to_disk_and_the_node_goes_on() {
    let (server, mut talk) = server();
    talk.query("CREATE TABLE big (a bigint PRIMARY KEY, v text)");
    talk.answer();
    // In a block over a table that others may use, rows go one by one through the transaction.
    talk.query("BEGIN; DELETE FROM big");
    talk.answer();
    talk.query("COPY big FROM STDIN");
    talk.until_ready();
    let line = "x".repeat(60_000);
    let mut sent = 0;
    // 400 MB, more than the node may hold.
    for n in 0..6_500 {
        let row = format!("{n}\t{line}\n");
        sent += row.len();
        talk.send(b'd', row.as_bytes());
    }
    assert!(sent > server.memory().limit(), "{sent} bytes are no test");
    talk.send(b'c', b"");
    assert_eq!(error(&mut talk), "");
    talk.query("SELECT count(*), max(length(v)) FROM big WHERE a >= 0");
    let said = talk.answer();
    assert!(said.contains("Row(6500"), "{said}");
    assert!(server.memory().peak() <= server.memory().limit(), "{}", server.memory().peak());
    talk.query("ROLLBACK");
    talk.answer();
    wait_for_nothing_held(&server);
    talk.query("SELECT count(*) FROM big");
    assert!(talk.answer().contains("Row(0)"));
}

#[test]
fn unfinished_messages_are_counted_before_they_are_read() {
    let (server, mut talk) = server();
    let mut held = Vec::new();
    for _ in 0..27 {
        let mut other = server.connect();
        let length = 60i32 << 20;
        other.send_bytes(&[&b"Q"[..], &length.to_be_bytes()].concat());
        other.send_bytes(&vec![b' '; 1 << 20]);
        held.push(other);
    }
    std::thread::sleep(Duration::from_millis(500));
    assert!(server.memory().used() <= server.memory().limit());
    assert!(server.memory().used() >= 60 << 20, "at least one was let in");
    talk.query("SELECT 1");
    assert!(talk.answer().contains("Row(1)"));
    // The last one was refused: it hears of it when its message has ended, and goes on.
    let last = held.last_mut().expect("there are many");
    let rest = vec![b' '; (60 << 20) - 4 - (1 << 20)];
    last.socket.write_all(&rest).expect("the server reads on");
    assert_eq!(error(last), "53200 out of memory: message of a client");
    last.query("SELECT 2");
    assert!(last.answer().contains("Row(2)"));
    drop(held);
    wait_for_nothing_held(&server);
}

#[test]
fn a_node_takes_half_of_the_memory_and_divides_no_more_than_that() {
    let clients = |max| Running::with(|config| config.memory_max = max).memory().limit();
    let half = braid_env::memory::available() / 2;
    assert_eq!(clients(None), clients(Some(half)));
    for max in [64 << 20, 512 << 20, half] {
        let theirs = clients(Some(max));
        assert!((max / 4..max / 4 * 3).contains(&theirs), "{theirs} of {max}");
    }
}

/// Rows wait at their source, and not in the memory of the node.
#[test]
fn rows_for_clients_that_do_not_read_are_not_kept() {
    let (server, mut talk) = server();
    let mut slow = Vec::new();
    for sql in [
        "SELECT a.v, b.v FROM k a, k b",
        "SELECT v || g FROM k, generate_series(1, 100000) g",
        "COPY (SELECT a.v, b.v FROM k a, k b) TO STDOUT",
        // Sorted rows lie on disk.
        "SET statement_mem = '8MB'; SELECT v || g FROM k, generate_series(1, 50) g ORDER BY 1",
    ] {
        let mut client = server.connect();
        client.query(sql);
        slow.push(client);
    }
    for _ in 0..30 {
        std::thread::sleep(Duration::from_millis(50));
        let used = server.memory().used();
        assert!(used < 48 << 20, "{used} bytes for four who do not read");
        talk.query("SELECT count(*) FROM k");
        assert_eq!(talk.answer(), "Columns Row(4000) Complete(SELECT 1) I");
    }
    // Who reads on has what was shown to it, in order, and no error.
    let (kind, _) = slow[0].message().expect("it was begun");
    assert_eq!(kind, b'T');
    for _ in 0..20_000 {
        assert_eq!(slow[0].message().map(|m| m.0), Some(b'D'));
    }
    drop(slow);
    wait_for_nothing_held(&server);
}

/// The first message of a statement of so many bytes, which never comes.
fn announce(server: &Running, bytes: i32) -> Talk {
    let mut talk = server.connect();
    talk.send_bytes(&[&b"Q"[..], &bytes.to_be_bytes(), &[b' '; 1 << 17]].concat());
    talk
}

#[test]
fn large_values_have_room_for_all_their_copies_or_are_refused() {
    let (server, mut talk) = server();
    talk.query("INSERT INTO k SELECT -1, repeat('y', 12000000)");
    assert!(talk.answer().contains("Complete(INSERT 0 1)"));
    let cases = [
        ("SELECT length(repeat('ab ', 4000000))", "Row(12000000)"),
        ("SELECT length(v) FROM k WHERE a = -1", "Row(12000000)"),
        ("SELECT length(v) FROM k WHERE a IN (-1, 2) ORDER BY a", "Row(12000000)"),
        ("SELECT max(length(v)) FROM k", "Row(12000000)"),
        ("SELECT length(x.v) FROM k x, generate_series(1, 2) g WHERE x.a = -g", "Row(12000000)"),
        ("SELECT count(*) FROM string_to_table(repeat('ab', 6000000), 'c')", "Row(1)"),
    ];
    for (sql, want) in cases {
        talk.query(sql);
        let said = talk.answer();
        assert!(said.contains(want), "{sql}: {said}");
        wait_for_nothing_held(&server);
    }
    // Others hold the memory, but for less than the value takes three times.
    let others: Vec<Talk> = (0..12).map(|_| announce(&server, 24 << 20)).collect();
    let memory = server.memory();
    while memory.used() + (24 << 20) <= memory.room() {
        std::thread::sleep(Duration::from_millis(10));
    }
    for (sql, _) in cases {
        // With another text, since a plan may have kept what it computed.
        talk.query(&sql.replacen("SELECT ", "SELECT 1, ", 1));
        assert_eq!(error(&mut talk), "53200 out of memory: a large value", "{sql}");
    }
    talk.query("SELECT length(v) FROM k WHERE a = 1; SELECT count(*) FROM k WHERE a > 0");
    assert!(talk.answer().ends_with("Row(4000) Complete(SELECT 1) I"));
    drop(others);
    wait_for_nothing_held(&server);
}

/// Each sort reserves something for merging what it may spill: of many that run at the same time, all
/// together must leave room for their rows.
#[test]
fn many_sorts_share_a_small_memory() {
    let (_server, mut talk) = server();
    // EXPLAIN ANALYZE tries no other plan when this one is refused its memory.
    let ranked = |n: usize| {
        format!("SELECT max(r) FROM (SELECT rank() OVER (ORDER BY a % {n}) AS r FROM k) AS x")
    };
    let all: Vec<String> = (1..=24).map(ranked).collect();
    talk.query("SET min_parallel_table_scan_size = 0; SET statement_mem = '64MB'");
    talk.answer();
    talk.query(&format!("EXPLAIN ANALYZE {}", all.join(" UNION ")));
    assert_eq!(error(&mut talk), "");
}

/// Plans that were made while there were few rows, and meet many.
#[test]
fn own_plans_that_find_more_than_they_may_keep_go_on_as_general_ones() {
    let (server, mut talk) = server();
    // Statistics that come meanwhile, of whatever table, would have the plans made anew.
    talk.query("ALTER SYSTEM SET autovacuum = off");
    talk.answer();
    talk.query("ANALYZE k");
    talk.answer();
    talk.query(
        "CREATE TABLE big (id int PRIMARY KEY, g int, s text); CREATE TABLE none (a int, v text)",
    );
    talk.answer();
    let queries = [
        "SELECT id, s FROM big WHERE g >= 0 UNION ALL SELECT a, v FROM none ORDER BY 1 LIMIT 2 OFFSET 39998",
        "SELECT id FROM (SELECT id, s, row_number() OVER (PARTITION BY g ORDER BY s) r \
         FROM big WHERE g >= 0) x WHERE r = 1 ORDER BY id LIMIT 2 OFFSET 98",
    ];
    talk.query("BEGIN");
    talk.answer();
    for (n, sql) in queries.iter().enumerate() {
        for text in [format!("PREPARE q{n} AS {sql}"), format!("EXECUTE q{n}")] {
            talk.query(&text);
            talk.answer();
        }
    }
    talk.query(
        "INSERT INTO big SELECT i, i % 100, repeat(i::text, 30) FROM generate_series(1, 40000) i",
    );
    assert!(talk.answer().contains("Complete(INSERT 0 40000)"));
    let mut answers = Vec::new();
    for n in 0..queries.len() {
        talk.query(&format!("EXPLAIN EXECUTE q{n}"));
        let plan = talk.answer();
        assert!(plan.contains("Complete(EXPLAIN)") && !plan.contains("general plan"), "{plan}");
        talk.query(&format!("EXECUTE q{n}"));
        answers.push(talk.answer());
    }
    talk.query("SET statement_mem = '8MB'");
    talk.answer();
    for (n, expected) in answers.iter().enumerate() {
        talk.query(&format!("EXECUTE q{n}"));
        assert_eq!(talk.answer(), *expected, "{}", queries[n]);
        assert!(expected.contains("Row("), "{expected}");
    }
    talk.query("ROLLBACK");
    talk.answer();
    wait_for_nothing_held(&server);
}
