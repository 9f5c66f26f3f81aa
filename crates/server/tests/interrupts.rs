//! Statements and sessions that have to stop: by request, because time is up, because nobody is
//! there to read the answer. Each of the statements here would run for hours.

mod support;

use std::time::Duration;

use support::{Running, Talk};

/// Statements that compute without end, by what they spend it on.
const ENDLESS: &[(&str, &str)] = &[
    ("cross join", "SELECT count(*) FROM k a, k b, k c, k d"),
    (
        "nested loop",
        "SELECT count(*) FROM k a JOIN k b ON a.a < b.a JOIN k c ON b.a < c.a + a.a JOIN k d ON d.a < c.a",
    ),
    ("aggregate", "SELECT a.v, sum(b.a * c.a) FROM k a, k b, k c, k d GROUP BY 1"),
    ("sort", "SELECT * FROM k a, k b, k c, k d ORDER BY a.v, d.v DESC"),
    ("distinct", "SELECT DISTINCT a.v, b.a FROM k a, k b, k c, k d"),
    ("set", "SELECT a.a FROM k a, k b, k c, k d EXCEPT SELECT b.a FROM k b"),
    ("window", "SELECT sum(a.a) OVER (ORDER BY b.a) FROM k a, k b, k c, k d"),
    (
        "lists of frames",
        "SELECT count(x) FROM (SELECT array_agg(a.a) OVER (ORDER BY a.a ROWS BETWEEN UNBOUNDED \
         PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW) x FROM k a, generate_series(1, 20)) y",
    ),
    (
        "recursion",
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT count(*) FROM r",
    ),
    (
        "recursion of none",
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n FROM r) SELECT n FROM r WHERE n > 5",
    ),
    (
        "series",
        "SELECT count(*) FROM generate_series(1, 100000) a, generate_series(1, 100000) b, k c",
    ),
    (
        "path",
        "SELECT jsonb_path_exists((SELECT jsonb_agg(a) FROM k), \
         '$[*] ? ($[*] ? ($[*] == -1) == -2)')",
    ),
    ("one series", "SELECT count(*) FROM generate_series(1, 9000000000000000)"),
    (
        "lateral",
        "SELECT count(*) FROM k a, LATERAL (SELECT b.a FROM k b, k c, k d WHERE b.a + c.a + d.a + \
         a.a < 0) x",
    ),
    ("subquery", "SELECT (SELECT count(*) FROM k b, k c, k d WHERE b.a <> a.a) FROM k a"),
    ("insert", "INSERT INTO sink SELECT a.a + b.a * 1000 + c.a * 1000000 FROM k a, k b, k c, k d"),
    ("update", "UPDATE k SET v = (SELECT count(*) FROM k b, k c, k d)::text"),
    (
        "delete",
        "DELETE FROM k WHERE a IN (SELECT b.a FROM k b, k c, k d, k e WHERE b.a + c.a + d.a + e.a = 0)",
    ),
    ("copy", "COPY (SELECT count(*) FROM k a, k b, k c, k d) TO STDOUT"),
    ("explain", "EXPLAIN ANALYZE SELECT count(*) FROM k a, k b, k c, k d"),
];

fn server() -> (Running, Talk) {
    let server = Running::with(|config| config.connections_max = 50);
    let mut talk = server.connect();
    talk.query(
        "CREATE TABLE k (a int PRIMARY KEY, v text); CREATE TABLE sink (a bigint PRIMARY KEY); \
         INSERT INTO k SELECT n, 'row ' || n FROM generate_series(1, 900) n(n)",
    );
    let said = talk.answer();
    assert!(said.ends_with("Complete(INSERT 0 900) I"), "{said}");
    (server, talk)
}

#[test]
fn every_computing_statement_stops_at_its_time_limit() {
    let (_server, mut talk) = server();
    talk.query("SET statement_timeout = '100ms'");
    talk.answer();
    for (what, sql) in ENDLESS {
        talk.query(sql);
        let said = talk.answer();
        assert!(said.ends_with("Error(ERROR 57014) I"), "{what}: {said}");
    }
    // The extended protocol, and rows fetched in pieces.
    talk.parse("", ENDLESS[0].1);
    talk.bind("", &[]);
    talk.execute(1);
    talk.sync();
    let said = talk.answer();
    assert!(said.ends_with("Error(ERROR 57014) I"), "{said}");
    talk.query("SELECT 1");
    assert_eq!(talk.answer(), "Columns Row(1) Complete(SELECT 1) I");
}

#[test]
fn cancel_requests_and_functions_stop_computing_statements() {
    let (server, mut other) = server();
    for (i, (what, sql)) in ENDLESS.iter().enumerate() {
        let mut talk = server.connect();
        talk.query(sql);
        std::thread::sleep(Duration::from_millis(50));
        if i % 2 == 0 {
            let mut cancel = server.connect_raw();
            let mut packet = 16i32.to_be_bytes().to_vec();
            packet.extend(80_877_102i32.to_be_bytes());
            packet.extend(talk.pid.to_be_bytes());
            packet.extend(talk.secret.to_be_bytes());
            cancel.send_bytes(&packet);
        } else {
            other.query(&format!("SELECT pg_cancel_backend({})", talk.pid));
            assert_eq!(other.answer(), "Columns Row(t) Complete(SELECT 1) I");
        }
        let said = talk.answer();
        assert!(said.ends_with("Error(ERROR 57014) I"), "{what}: {said}");
        talk.query("SELECT 1");
        assert!(talk.answer().ends_with("Complete(SELECT 1) I"), "{what}");
    }
    other.query("SELECT pg_cancel_backend(123456789)");
    // As PostgreSQL: a warning says that there is nobody, not only the value.
    let mut warning = String::new();
    loop {
        match other.message().expect("the session lives") {
            (b'Z', _) => break,
            (b'N', body) => warning = String::from_utf8_lossy(&body).into_owned(),
            (b'E', body) => panic!("{}", String::from_utf8_lossy(&body)),
            _ => {}
        }
    }
    assert!(warning.contains("C01000"), "{warning}");
    assert!(warning.contains("PID 123456789 is not a PostgreSQL server process"), "{warning}");
}

/// Few rows, and something slow to compute of each: no batch is too small to look.
const SLOW_ROWS: &[&str] = &[
    "SELECT md5(repeat(v, 1000000)) FROM k",
    "SELECT a FROM k WHERE md5(repeat(v, 1000000)) = 'x'",
    "SELECT a FROM k ORDER BY md5(repeat(v, 1000000)) LIMIT 1",
    "SELECT max(md5(repeat(v, 1000000))) FROM k",
    "SELECT md5(repeat(v, 1000000)), count(*) FROM k GROUP BY 1 HAVING count(*) > 5",
    "SELECT DISTINCT ON (md5(repeat(v, 1000000))) a FROM k",
    "SELECT count(*) FROM k x JOIN k y ON md5(repeat(x.v, 1000000)) = y.v",
    "SELECT max(length(x.v)) FROM k x, k y WHERE x.a = y.a AND md5(repeat(y.v, 1000000)) <> x.v",
    "SELECT count(md5(repeat(v, 1000000))) OVER (ORDER BY a) FROM k",
    "SELECT md5(repeat(g::text, 2000000)) FROM generate_series(100, 999) g",
    "WITH c AS MATERIALIZED (SELECT md5(repeat(v, 1000000)) m FROM k) SELECT count(*) FROM c, c d",
    "DELETE FROM k RETURNING md5(repeat(v, 1000000))",
    "UPDATE k SET v = md5(repeat(v, 1000000))",
    "INSERT INTO k SELECT a + 10000, md5(repeat(v, 1000000)) FROM k",
    "COPY (SELECT md5(repeat(v, 1000000)) FROM k) TO STDOUT",
];

#[test]
fn few_rows_that_are_slow_to_compute_stop_between_two_of_them() {
    let (server, mut other) = server();
    let mut wrong = Vec::new();
    for sql in SLOW_ROWS {
        let mut talk = server.connect();
        talk.query("SET statement_timeout = '100ms'");
        talk.answer();
        talk.query(sql);
        let said = talk.answer();
        if !said.ends_with("Error(ERROR 57014) I") {
            let said: String = said.chars().take(200).collect();
            wrong.push(format!("{sql}: {said}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    other.query("SELECT count(*), max(length(v)) FROM k");
    assert_eq!(other.answer(), "Columns Row(900,7) Complete(SELECT 1) I");
}

/// Changes of tables that compute something slow of each row, in their own blocks and alone.
const LONG_CHANGES: &[&str] = &[
    "CREATE INDEX ON k (md5(repeat(v, 200000)))",
    "CREATE UNIQUE INDEX ON k (a) WHERE md5(repeat(v, 200000)) <> ''",
    "ALTER TABLE k ALTER v TYPE varchar USING md5(repeat(v, 200000))",
    "ALTER TABLE k ADD CHECK (md5(repeat(v, 200000)) <> '')",
    "ALTER TABLE k ADD COLUMN x text GENERATED ALWAYS AS (md5(repeat(v, 200000))) STORED",
    "CREATE TABLE made AS SELECT md5(repeat(v, 200000)) FROM k",
    "CREATE MATERIALIZED VIEW made AS SELECT md5(repeat(v, 200000)) FROM k",
];

#[test]
fn changes_of_tables_stop_by_limit_and_request_and_leave_nothing() {
    let (server, mut other) = server();
    let mut talk = server.connect();
    let shape = "SELECT count(*), count(v), (SELECT count(*) FROM pg_class WHERE relname IN \
                 ('k', 'made')), (SELECT count(*) FROM pg_attribute WHERE attrelid = 'k'::regclass \
                 AND attnum > 0), (SELECT count(*) FROM pg_index WHERE indrelid = 'k'::regclass), \
                 (SELECT count(*) FROM pg_constraint WHERE conrelid = 'k'::regclass) FROM k";
    talk.query(shape);
    let before = talk.answer();
    for (n, sql) in LONG_CHANGES.iter().enumerate() {
        for block in [false, true] {
            let begin = if block { "BEGIN; " } else { "" };
            talk.query(&format!("SET statement_timeout = 100; {begin}{sql}"));
            let said = talk.answer();
            assert!(said.contains("Error(ERROR 57014)"), "{sql}: {said}");
            talk.query("ROLLBACK; SET statement_timeout = 0");
            talk.answer();
            talk.query(&format!("{begin}{sql}"));
            // Whoever asks before it has begun asks for nothing.
            let patience = Duration::from_millis(200);
            talk.socket.set_read_timeout(Some(patience)).expect("a time-out can be set");
            while talk.socket.peek(&mut [0]).is_err() {
                other.query(&format!("SELECT pg_cancel_backend({})", talk.pid));
                assert_eq!(other.answer(), "Columns Row(t) Complete(SELECT 1) I");
            }
            let patience = Duration::from_secs(20);
            talk.socket.set_read_timeout(Some(patience)).expect("a time-out can be set");
            let said = talk.answer();
            assert!(said.contains("Error(ERROR 57014)"), "{sql}: {said}");
            talk.query("ROLLBACK");
            talk.answer();
            other.query(shape);
            assert_eq!(other.answer(), before, "{n}: {sql}");
        }
    }
    // Whoever leaves in the middle of one holds nobody up.
    talk.query(&format!("BEGIN; {}", LONG_CHANGES[2]));
    std::thread::sleep(Duration::from_millis(100));
    drop(talk);
    other.query("SET statement_timeout = '15s'; UPDATE k SET v = v WHERE a = 1");
    assert!(other.answer().ends_with("Complete(UPDATE 1) I"));
}

#[test]
fn a_copy_stops_whether_its_client_sends_or_is_silent() {
    let (server, mut other) = server();
    for (what, sends) in [("silent", false), ("sending", true)] {
        for (set, expected) in [
            ("SET statement_timeout = 300", "Error(ERROR 57014) I"),
            ("SET transaction_timeout = 300", "Error(FATAL 25P04) closed"),
            ("SELECT 'canceled'", "Error(ERROR 57014) I"),
            ("SELECT 'terminated'", "Error(FATAL 57P01) closed"),
        ] {
            let mut talk = server.connect();
            talk.query(set);
            talk.answer();
            talk.query("COPY sink FROM STDIN");
            assert_eq!(talk.answer(), "CopyIn closed");
            talk.send(b'd', b"1\n2\n");
            if set.starts_with("SELECT") {
                let call = if set.contains("cancel") { "cancel" } else { "terminate" };
                other.query(&format!("SELECT pg_{call}_backend({})", talk.pid));
                assert_eq!(other.answer(), "Columns Row(t) Complete(SELECT 1) I");
            }
            if sends {
                // What is still on its way after the error is passed over.
                for n in 10..60 {
                    let line = format!("{n}\n");
                    let length = (line.len() as i32 + 4).to_be_bytes();
                    let message = [&b"d"[..], &length, line.as_bytes()].concat();
                    let _gone = std::io::Write::write_all(&mut talk.socket, &message);
                    std::thread::sleep(Duration::from_millis(10));
                }
                let _gone = std::io::Write::write_all(&mut talk.socket, b"c\0\0\0\x04");
            }
            assert_eq!(talk.answer().trim_start(), expected, "{what}: {set}");
        }
    }
    other.query("SELECT count(*) FROM sink");
    assert_eq!(other.answer(), "Columns Row(0) Complete(SELECT 1) I");
}

#[test]
fn a_terminated_session_is_told_whatever_it_does() {
    let (server, mut other) = server();
    let cases =
        [("computing", ENDLESS[0].1, 50), ("idle", "SELECT 1", 50), ("silent", "BEGIN", 600)];
    for (what, sql, wait) in cases {
        let mut talk = server.connect();
        talk.query(sql);
        if what != "computing" {
            talk.answer();
        }
        std::thread::sleep(Duration::from_millis(wait));
        other.query(&format!("SELECT pg_terminate_backend({})", talk.pid));
        assert_eq!(other.answer(), "Columns Row(t) Complete(SELECT 1) I");
        let said = talk.answer();
        assert!(said.ends_with("Error(FATAL 57P01) closed"), "{what}: {said}");
    }
    other.query("SELECT pg_terminate_backend(pg_backend_pid())");
    assert!(other.answer().ends_with("Error(FATAL 57P01) closed"));
}

#[test]
fn a_client_that_leaves_takes_its_statement_with_it() {
    let (server, mut other) = server();
    for (what, sql) in ENDLESS {
        let mut talk = server.connect();
        let pid = talk.pid;
        talk.query(sql);
        std::thread::sleep(Duration::from_millis(20));
        drop(talk);
        let mut turns = 0;
        loop {
            other.query(&format!("SELECT pg_cancel_backend({pid})"));
            let said = other.answer();
            if said.contains("Row(f)") {
                break;
            }
            turns += 1;
            assert!(turns < 500, "{what}: still there: {said}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn limits_of_idleness_and_of_transactions_end_the_session() {
    let (server, _other) = server();
    let cases = [
        ("SET idle_in_transaction_session_timeout = 50; BEGIN", "25P03"),
        ("SET idle_in_transaction_session_timeout = 700; BEGIN", "25P03"),
        ("SET idle_session_timeout = 300", "57P05"),
        ("SET transaction_timeout = 300; BEGIN", "25P04"),
    ];
    for (sql, state) in cases {
        let mut talk = server.connect();
        talk.query(sql);
        let said = talk.answer();
        assert!(!said.contains("Error"), "{sql}: {said}");
        assert_eq!(talk.answer(), format!("Error(FATAL {state}) closed"), "{sql}");
    }
    let mut talk = server.connect();
    talk.query("SET transaction_timeout = 200");
    talk.answer();
    talk.query(ENDLESS[0].1);
    assert!(talk.answer().ends_with("Error(FATAL 25P04) closed"));
    // Idle outside of a transaction is no idleness in one, and a failed block counts as one.
    let mut talk = server.connect();
    talk.query("SET idle_in_transaction_session_timeout = 100; SELECT 1");
    talk.answer();
    std::thread::sleep(Duration::from_millis(300));
    talk.query("BEGIN; SELECT 1/0");
    assert!(talk.answer().ends_with("Error(ERROR 22012) E"));
    assert_eq!(talk.answer(), "Error(FATAL 25P03) closed");
}

#[test]
fn waiting_for_locks_ends_by_each_limit() {
    let (server, mut holder) = server();
    holder.query("BEGIN; DELETE FROM k WHERE a = 1");
    holder.answer();
    for (set, answer) in [
        ("SET lock_timeout = 100", "Error(ERROR 55P03) I"),
        ("SET statement_timeout = 100", "Error(ERROR 57014) I"),
        ("SET transaction_timeout = 100", "Error(FATAL 25P04) closed"),
    ] {
        let mut talk = server.connect();
        talk.query(set);
        talk.answer();
        talk.query("DELETE FROM k WHERE a = 1");
        assert_eq!(talk.answer(), answer, "{set}");
    }
}

#[test]
fn a_stopping_node_tells_its_sessions() {
    let (server, mut idle) = server();
    let mut busy = server.connect();
    busy.query(ENDLESS[0].1);
    std::thread::sleep(Duration::from_millis(300));
    drop(server);
    assert_eq!(idle.answer(), "Error(FATAL 57P01) closed");
    assert!(busy.answer().ends_with("Error(FATAL 57P01) closed"));
}

/// The error that lock_timeout ends in is told apart from that of NOWAIT by its text.
#[test]
fn lock_timeout_says_so() {
    let (server, mut holder) = server();
    holder.query("BEGIN; DELETE FROM k WHERE a = 1");
    holder.answer();
    let mut talk = server.connect();
    talk.query("SET lock_timeout = 50");
    talk.answer();
    for (sql, text) in [
        ("DELETE FROM k WHERE a = 1", "Mcanceling statement due to lock timeout\0"),
        ("SELECT * FROM k WHERE a = 1 FOR UPDATE", "Mcanceling statement due to lock timeout\0"),
        (
            "SELECT * FROM k WHERE a = 1 FOR UPDATE NOWAIT",
            "Mcould not obtain lock on row in relation",
        ),
    ] {
        talk.query(sql);
        let mut said = String::new();
        while let Some((kind, body)) = talk.message() {
            match kind {
                b'Z' => break,
                b'E' => said = String::from_utf8_lossy(&body).into_owned(),
                _ => {}
            }
        }
        assert!(said.contains("C55P03\0") && said.contains(text), "{sql}: {said}");
    }
}
