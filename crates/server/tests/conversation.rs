//! PostgreSQL's protocol as a conversation, byte by byte: what clients send, what comes back.
//!
//! Drivers hide most of this; here messages are written by hand, so that also wrong ones can be.

use std::io::Read;
use std::time::Duration;

use crate::support::{Running, Talk, text};

#[test]
fn startup_refuses_encryption_and_unknown_versions() {
    let server = Running::new();
    let mut talk = server.connect_raw();
    talk.send_bytes(&[0, 0, 0, 8, 4, 210, 22, 47]);
    let mut reply = [0];
    talk.socket.read_exact(&mut reply).expect("an answer to SSLRequest");
    assert_eq!(reply, *b"N");
    talk.startup(3, 0);
    assert_eq!(talk.until_ready().1, Some('I'));

    let mut newer = server.connect_raw();
    newer.startup(3, 2);
    assert!(newer.until_ready().0.starts_with("Negotiate AuthenticationOk"));

    let mut older = server.connect_raw();
    older.startup(2, 0);
    assert_eq!(older.answer(), "Error(FATAL 0A000) closed");

    let mut wrong = server.connect_raw();
    let body = [&196_608i32.to_be_bytes()[..], b"user\0root\0database\0nowhere\0\0"].concat();
    wrong.send_bytes(&[&(body.len() as i32 + 4).to_be_bytes()[..], &body].concat());
    assert_eq!(wrong.answer(), "Error(FATAL 3D000) closed");
}

/// A startup message with these options.
fn with_options(options: &str) -> Vec<u8> {
    let mut body = 196_608i32.to_be_bytes().to_vec();
    for word in ["user", "root", "database", "defaultdb", "options", options, ""] {
        body.extend(text(word));
    }
    [&(body.len() as i32 + 4).to_be_bytes()[..], &body].concat()
}

#[test]
fn options_of_a_connection_are_its_settings() {
    let server = Running::new();
    let mut talk = server.connect_raw();
    talk.send_bytes(&with_options("-c statement_timeout=5s --search-path=a,b"));
    assert_eq!(talk.until_ready().1, Some('I'));
    talk.query(
        "select 1/(case when current_setting('statement_timeout') = '5s' \
                and current_setting('search_path') = 'a,b' then 1 else 0 end)",
    );
    assert!(!talk.until_ready().0.contains("Error"));
    for wrong in ["-x", "-c nothing_like_it=1"] {
        let mut talk = server.connect_raw();
        talk.send_bytes(&with_options(wrong));
        assert!(talk.answer().starts_with("Error(FATAL 42"), "{wrong}");
    }
}

#[test]
fn hostile_bytes_end_their_connection_only() {
    let server = Running::new();
    let attacks: &[&[u8]] = &[
        b"GET / HTTP/1.1\r\n\r\n",
        &[0, 0, 0, 0],
        &[0x7f, 0xff, 0xff, 0xff, 0, 3, 0, 0],
        &[0xff; 64],
    ];
    for attack in attacks {
        let mut talk = server.connect_raw();
        talk.send_bytes(attack);
        let said = talk.answer();
        assert!(said.contains("closed") && said.contains("08P01"), "{attack:?}: {said}");
    }
    let attacks: &[(u8, &[u8])] = &[
        (b'B', &[0, 0, 0xff, 0xff]),
        (b'B', b"\0\0\0\x01\0\x01\0\x01\x7f\xff\xff\xff"),
        (b'P', b"no terminator"),
        (b'?', b""),
        (b'E', b"\0"),
        (b'p', b"secret\0"),
    ];
    for (kind, body) in attacks {
        let mut talk = server.connect();
        talk.send(*kind, body);
        talk.sync();
        let said = talk.answer();
        assert!(said.contains("Error("), "{}: {said}", char::from(*kind));
    }
    let mut talk = server.connect();
    talk.send_bytes(&[b'Q', 0x7f, 0xff, 0xff, 0xff]);
    assert_eq!(talk.answer(), "Error(FATAL 08P01) closed", "a huge length costs no memory");
    let mut talk = server.connect();
    talk.query("SHOW server_version");
    assert!(talk.answer().ends_with("Complete(SHOW) I"), "the server goes on");
}

#[test]
fn rows_are_described_before_one_of_them_fails() {
    let server = Running::new();
    let mut talk = server.connect();
    talk.query("create table t (a int primary key); insert into t values (1)");
    assert!(!talk.answer().contains("Error"));
    for (sql, wanted) in [
        ("select 1 / (a - 1) from t", "Columns Error(ERROR 22012) I"),
        ("select 1 / (g - 1) from generate_series(1, 2) g", "Columns Error(ERROR 22012) I"),
        // A constant is computed before anything is told, and what writes runs before its rows.
        ("select 1 / 0", "Error(ERROR 22012) I"),
        ("insert into t values (2) returning 1 / (a - 2)", "Error(ERROR 22012) I"),
        ("select b from t", "Error(ERROR 42703) I"),
    ] {
        talk.query(sql);
        assert_eq!(talk.answer(), wanted, "{sql}");
    }
}

#[test]
fn too_many_clients_are_turned_away() {
    let server = Running::new();
    let _held: Vec<Talk> = (0..5).map(|_| server.connect()).collect();
    let mut talk = server.connect_raw();
    talk.startup(3, 0);
    assert_eq!(talk.answer(), "Error(FATAL 53300) closed");
}

#[test]
fn simple_queries() {
    let server = Running::new();
    let mut talk = server.connect();
    talk.query("");
    assert_eq!(talk.answer(), "Empty I");
    talk.query("CREATE TABLE t (a int PRIMARY KEY, b text)");
    assert_eq!(talk.answer(), "Complete(CREATE TABLE) I");
    talk.query("INSERT INTO t VALUES (1, 'x'), (2, NULL); SELECT * FROM t ORDER BY a");
    assert_eq!(
        talk.answer(),
        "Complete(INSERT 0 2) Columns Row(1,x) Row(2,NULL) Complete(SELECT 2) I"
    );
    talk.query("INSERT INTO t VALUES (3, 'y'); INSERT INTO t VALUES (1, 'again'); SELECT 1");
    assert_eq!(talk.answer(), "Complete(INSERT 0 1) Error(ERROR 23505) I");
    talk.query("SELECT count(*) FROM t");
    assert_eq!(
        talk.answer(),
        "Columns Row(2) Complete(SELECT 1) I",
        "one message, one transaction"
    );
    talk.query("BEGIN");
    assert_eq!(talk.answer(), "Complete(BEGIN) T");
    talk.query("SELEC");
    assert_eq!(talk.answer(), "Error(ERROR 42601) E");
    talk.query("SELECT 1");
    assert_eq!(talk.answer(), "Error(ERROR 25P02) E");
    talk.query("COMMIT");
    assert_eq!(talk.answer(), "Complete(ROLLBACK) I");
}

#[test]
fn extended_protocol() {
    let server = Running::new();
    let mut talk = server.connect();
    talk.query("CREATE TABLE t (a int PRIMARY KEY, b text); INSERT INTO t VALUES (1, 'x'), (2, 'y'), (3, 'z')");
    talk.answer();
    talk.parse("s", "SELECT b FROM t WHERE a >= $1 ORDER BY a");
    talk.send(b'D', b"Ss\0");
    talk.bind("s", &["2"]);
    talk.send(b'D', b"P\0");
    talk.execute(0);
    talk.sync();
    assert_eq!(
        talk.answer(),
        "Parsed Parameters Columns Bound Columns Row(y) Row(z) Complete(SELECT 2) I"
    );
    talk.bind("s", &["1"]);
    talk.execute(2);
    talk.execute(2);
    talk.sync();
    assert_eq!(
        talk.answer(),
        "Bound Row(x) Row(y) Suspended Row(z) Complete(SELECT 1) I",
        "a portal gives its rows in pieces"
    );
    talk.bind("s", &["not a number"]);
    talk.execute(0);
    talk.execute(0);
    talk.sync();
    assert_eq!(talk.answer(), "Error(ERROR 22P02) I", "after an error all is skipped up to Sync");
    talk.bind("nobody", &[]);
    talk.sync();
    assert_eq!(talk.answer(), "Error(ERROR 26000) I");
    talk.execute(0);
    talk.sync();
    assert_eq!(talk.answer(), "Error(ERROR 34000) I");
    talk.parse("s", "SELECT 1");
    talk.sync();
    assert_eq!(talk.answer(), "Error(ERROR 42P05) I");
    talk.send(b'C', b"Ss\0");
    talk.sync();
    assert_eq!(talk.answer(), "Closed I");
}

#[test]
fn statements_up_to_sync_are_one_transaction() {
    let server = Running::new();
    let mut talk = server.connect();
    talk.query("CREATE TABLE t (a int PRIMARY KEY)");
    talk.answer();
    talk.parse("i", "INSERT INTO t VALUES ($1)");
    for value in ["1", "2", "1"] {
        talk.bind("i", &[value]);
        talk.execute(0);
    }
    talk.sync();
    let said = talk.answer();
    assert!(said.contains("Error(ERROR 23505)") && said.ends_with('I'), "{said}");
    talk.query("SELECT count(*) FROM t");
    assert!(talk.answer().contains("Row(0)"), "the first two went with the third");
}

#[test]
fn copy_in_can_fail_on_both_sides() {
    let server = Running::new();
    let mut talk = server.connect();
    talk.query("CREATE TABLE t (a int PRIMARY KEY, b text)");
    talk.answer();
    talk.query("COPY t FROM STDIN");
    assert_eq!(talk.answer(), "CopyIn closed");
    talk.send(b'd', b"1\tx\n2");
    talk.send(b'd', b"\ty\n");
    talk.send(b'c', b"");
    assert_eq!(talk.answer(), "Complete(COPY 2) I");
    talk.query("COPY t FROM STDIN");
    talk.until_ready();
    talk.send(b'd', b"3\tz\n");
    talk.send(b'f', &text("no more"));
    assert_eq!(talk.answer(), "Error(ERROR 57014) I");
    talk.query("COPY t FROM STDIN");
    talk.until_ready();
    talk.send(b'd', b"3\tz\nnot a number\tw\n");
    talk.send(b'd', b"4\tu\n");
    talk.send(b'c', b"");
    assert_eq!(talk.answer(), "Error(ERROR 22P02) I");
    talk.query("SELECT count(*) FROM t");
    assert!(talk.answer().contains("Row(2)"), "nothing of a failed COPY stays");
}

/// Many rows are put away by another thread than the one that reads them.
#[test]
fn a_copy_of_many_rows_can_fail_on_both_sides() {
    let server = Running::new();
    let mut talk = server.connect();
    talk.query("CREATE TABLE t (a int PRIMARY KEY, b text CHECK (b <> 'bad'))");
    talk.answer();
    let rows = |from: u32, count: u32| -> String {
        (from..from + count).map(|n| format!("{n}\ta text of some length\n")).collect()
    };
    for (last, answer) in [
        ("f", "Error(ERROR 57014) I"),
        ("25001\tbad\n", "Error(ERROR 23514) I"),
        ("25001\n", "Error(ERROR 22P04) I"),
        ("1\tagain\n", "Error(ERROR 23505) I"),
        ("25001\tgood\n", "Complete(COPY 25001) I"),
    ] {
        talk.query("COPY t FROM STDIN");
        talk.until_ready();
        for part in 0..5 {
            talk.send(b'd', rows(part * 5_000 + 1, 5_000).as_bytes());
        }
        match last {
            "f" => talk.send(b'f', &text("no more")),
            row => {
                talk.send(b'd', row.as_bytes());
                talk.send(b'c', b"");
            }
        }
        assert_eq!(talk.answer(), answer, "{last}");
        // Its locks are gone, and so are its rows.
        let mut other = server.connect();
        other.query("SELECT count(*) FROM t");
        let count = if answer.starts_with("Complete") { "Row(25001)" } else { "Row(0)" };
        assert!(other.answer().contains(count), "{last}");
        other.query("INSERT INTO t VALUES (-1, ''); DELETE FROM t WHERE a = -1");
        assert!(other.answer().ends_with("Complete(DELETE 1) I"), "{last}");
    }
    // A client that goes away in the middle.
    let mut gone = server.connect();
    gone.query("COPY t FROM STDIN");
    gone.until_ready();
    for part in 0..5 {
        gone.send(b'd', rows(part * 5_000 + 30_000, 5_000).as_bytes());
    }
    drop(gone);
    talk.query("INSERT INTO t VALUES (-1, ''); SELECT count(*) FROM t");
    assert!(talk.answer().contains("Row(25002)"), "nothing of it stays");
}

#[test]
fn a_cancel_request_needs_the_secret() {
    let server = Running::new();
    let mut holder = server.connect();
    holder.query("CREATE TABLE t (a int PRIMARY KEY); INSERT INTO t VALUES (1)");
    holder.answer();
    holder.query("BEGIN; DELETE FROM t WHERE a = 1");
    holder.answer();
    let mut waiter = server.connect();
    waiter.query("DELETE FROM t WHERE a = 1");
    let cancel = |secret: i32| {
        let mut talk = server.connect_raw();
        let mut packet = 16i32.to_be_bytes().to_vec();
        packet.extend(80_877_102i32.to_be_bytes());
        packet.extend(waiter.pid.to_be_bytes());
        packet.extend(secret.to_be_bytes());
        talk.send_bytes(&packet);
        assert_eq!(talk.answer(), " closed", "a cancel request is never answered");
    };
    cancel(waiter.secret ^ 1);
    std::thread::sleep(Duration::from_millis(200));
    waiter.socket.set_nonblocking(true).unwrap();
    assert!(waiter.socket.peek(&mut [0]).is_err(), "a wrong secret changes nothing");
    waiter.socket.set_nonblocking(false).unwrap();
    cancel(waiter.secret);
    assert_eq!(waiter.answer(), "Error(ERROR 57014) I");
    waiter.query("SHOW server_version");
    assert!(waiter.answer().ends_with('I'), "the connection goes on");
}

#[test]
fn a_statement_ends_at_its_nul_and_nothing_may_follow() {
    let server = Running::new();
    let mut talk = server.connect();
    talk.query("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1), (4)");
    talk.answer();
    talk.query("delete from t\0where id=4");
    assert_eq!(talk.answer(), "Error(ERROR 08P01) I");
    talk.parse("", "delete from t\0where id=4");
    talk.sync();
    assert_eq!(talk.answer(), "Error(ERROR 08P01) I");
    talk.send(b'S', b"more");
    assert_eq!(talk.answer(), "Error(ERROR 08P01) I");
    talk.query("SELECT count(*) FROM t");
    assert_eq!(talk.answer(), "Columns Row(2) Complete(SELECT 1) I");
}

#[test]
fn bytes_that_are_no_utf8_are_22021_everywhere() {
    let server = Running::new();
    let mut talk = server.connect();
    talk.query("CREATE TABLE t (id int PRIMARY KEY, s text)");
    talk.answer();
    talk.send(b'Q', b"INSERT INTO t VALUES (1, 'a\xffb')\0");
    assert_eq!(talk.answer(), "Error(ERROR 22021) I");
    talk.send(b'P', b"\0INSERT INTO t VALUES (1, '\xc3')\0\0\0");
    talk.sync();
    assert_eq!(talk.answer(), "Error(ERROR 22021) I");
    for (format, value) in [(0, b"\xff\xfe"), (1, b"\xff\xfe"), (0, b"a\0"), (1, b"a\0")] {
        talk.parse("", "INSERT INTO t VALUES (1, $1)");
        let parameter = [&[0, 0, 0, 1, 0, format, 0, 1, 0, 0, 0, 2][..], value, &[0, 0]].concat();
        talk.send(b'B', &parameter);
        talk.execute(0);
        talk.sync();
        assert_eq!(talk.answer(), "Parsed Error(ERROR 22021) I", "{format} {value:?}");
    }
    for data in [&b"1\t\xff\n"[..], b"1\ta\0b\n"] {
        talk.query("COPY t FROM STDIN");
        talk.until_ready();
        talk.send(b'd', data);
        talk.send(b'c', b"");
        assert_eq!(talk.answer(), "Error(ERROR 22021) I");
    }
    talk.query("SELECT count(*) FROM t");
    assert_eq!(talk.answer(), "Columns Row(0) Complete(SELECT 1) I");
}

#[test]
fn an_error_is_sent_at_once_and_flush_needs_no_sync() {
    let server = Running::new();
    let mut talk = server.connect();
    talk.parse("", "SELECT 1/0 FROM nowhere");
    talk.send(b'H', b"");
    assert_eq!(talk.message().map(|m| m.0), Some(b'E'), "the client waits for it without Sync");
    talk.sync();
    assert_eq!(talk.answer(), " I");
    talk.parse("", "SELECT 1");
    talk.send(b'H', b"");
    assert_eq!(talk.message().map(|m| m.0), Some(b'1'));
    talk.bind("", &["one too many"]);
    assert_eq!(talk.message().map(|m| m.0), Some(b'E'), "not even Flush is needed");
    talk.send(b'H', b"");
    talk.sync();
    assert_eq!(talk.answer(), " I");
}

#[test]
fn copy_out_sends_one_row_in_a_message() {
    let server = Running::new();
    let mut talk = server.connect();
    talk.query(
        "CREATE TABLE t (a int PRIMARY KEY, b text); INSERT INTO t VALUES (1, 'x'), (2, NULL)",
    );
    talk.answer();
    talk.query("COPY t TO STDOUT");
    assert_eq!(
        talk.answer(),
        "CopyOut Data(1\\tx\\n) Data(2\\t\\\\N\\n) CopyDone Complete(COPY 2) I"
    );
    talk.query("COPY t TO STDOUT (FORMAT csv, HEADER)");
    assert_eq!(
        talk.answer(),
        "CopyOut Data(a,b\\n) Data(1,x\\n) Data(2,\\n) CopyDone Complete(COPY 2) I"
    );
    talk.query("COPY t TO STDOUT (FORMAT binary)");
    let said = talk.answer();
    assert_eq!(said.matches("Data(").count(), 3, "head with the first row, second, end: {said}");
    talk.query("COPY (SELECT generate_series(1, 3000)) TO STDOUT");
    assert_eq!(talk.answer().matches("Data(").count(), 3000);
}

#[test]
fn prepared_statements_have_one_set_of_names() {
    let server = Running::new();
    let mut talk = server.connect();
    talk.parse("p", "SELECT 1");
    talk.sync();
    assert_eq!(talk.answer(), "Parsed I");
    talk.query("PREPARE p AS SELECT 2");
    assert_eq!(talk.answer(), "Error(ERROR 42P05) I");
    talk.query("EXECUTE p");
    assert_eq!(talk.answer(), "Columns Row(1) Complete(SELECT 1) I");
    talk.query("DEALLOCATE p; PREPARE p AS SELECT 2");
    assert_eq!(talk.answer(), "Complete(DEALLOCATE) Complete(PREPARE) I");
    talk.bind("p", &[]);
    talk.execute(0);
    talk.sync();
    assert_eq!(talk.answer(), "Bound Row(2) Complete(SELECT 1) I");
    talk.send(b'C', b"Sp\0");
    talk.sync();
    assert_eq!(talk.answer(), "Closed I");
    talk.query("EXECUTE p");
    assert_eq!(talk.answer(), "Error(ERROR 26000) I");
    for forget in ["DISCARD ALL", "DEALLOCATE ALL"] {
        talk.parse("p", "SELECT 1");
        talk.sync();
        talk.answer();
        talk.query(forget);
        talk.answer();
        talk.bind("p", &[]);
        talk.sync();
        assert_eq!(talk.answer(), "Error(ERROR 26000) I", "{forget}");
    }
}

#[test]
fn clients_are_told_when_a_setting_returns_to_what_it_was() {
    let server = Running::new();
    let mut talk = server.connect();
    let mut says = |sql: &str, answer: &str| {
        talk.query(sql);
        assert_eq!(talk.answer(), answer, "{sql}");
    };
    // SET LOCAL ends with its block, however that ends.
    for (end, idle) in [("commit", "Complete(COMMIT) I"), ("rollback", "Complete(ROLLBACK) I")] {
        says("begin", "Complete(BEGIN) T");
        says("set local timezone to 'Asia/Tokyo'", "ParameterStatus Complete(SET) T");
        says(end, &format!("ParameterStatus {idle}"));
        says("show timezone", "Columns Row(UTC) Complete(SHOW) I");
    }
    // SET is taken back by what takes back its block or a part of it.
    says("begin", "Complete(BEGIN) T");
    says("set datestyle to german", "ParameterStatus Complete(SET) T");
    says("savepoint s", "Complete(SAVEPOINT) T");
    says("set datestyle to sql", "ParameterStatus Complete(SET) T");
    says("rollback to s", "ParameterStatus Complete(ROLLBACK) T");
    says("show datestyle", "Columns Row(German, DMY) Complete(SHOW) T");
    says("rollback", "ParameterStatus Complete(ROLLBACK) I");
    says("show datestyle", "Columns Row(ISO, MDY) Complete(SHOW) I");
    // Where nothing changed nothing is said.
    says("begin", "Complete(BEGIN) T");
    says("savepoint s", "Complete(SAVEPOINT) T");
    says("rollback to s", "Complete(ROLLBACK) T");
    says("rollback", "Complete(ROLLBACK) I");
}

#[test]
fn a_changed_result_type_names_the_routine_that_drivers_look_for() {
    let server = Running::new();
    let mut talk = server.connect();
    talk.query("CREATE TABLE t (a int PRIMARY KEY)");
    talk.answer();
    talk.parse("s", "SELECT * FROM t");
    talk.sync();
    talk.answer();
    talk.query("ALTER TABLE t ADD COLUMN b text");
    talk.answer();
    talk.bind("s", &[]);
    talk.execute(0);
    talk.sync();
    let fields = loop {
        match talk.message() {
            Some((b'E', body)) => break String::from_utf8_lossy(&body).into_owned(),
            Some(_) => {}
            None => panic!("no error came"),
        }
    };
    for field in ["SERROR\0", "VERROR\0", "C0A000\0", "RRevalidateCachedQuery\0"] {
        assert!(fields.contains(field), "{field} in {fields:?}");
    }
    talk.answer();
    talk.query("SELECT 1 +* 2 FROM t");
    let Some((b'E', body)) = talk.message() else { panic!("an error") };
    let fields = String::from_utf8_lossy(&body).into_owned();
    assert!(fields.contains("\0P"), "syntax errors carry their position: {fields:?}");
}

#[test]
fn silent_sockets_keep_nobody_out_and_are_gone_in_time() {
    let server = Running::with(|config| {
        config.connections_max = 5;
        config.startup_timeout = Duration::from_secs(4);
    });
    let mut silent: Vec<Talk> = (0..300).map(|_| server.connect_raw()).collect();
    let mut talk = server.connect();
    talk.query("SELECT 1");
    assert!(talk.answer().ends_with('I'));
    assert_eq!(silent[0].answer(), "Error(FATAL 53300) closed", "the oldest had to go");
    for mut talk in silent {
        assert!(talk.answer().ends_with("closed"), "its time is up");
    }
    talk.query("SELECT 1");
    assert!(talk.answer().ends_with('I'), "the limit is for those who have not spoken");
}

#[test]
fn the_last_places_are_for_root() {
    let server = Running::with(|config| config.connections_max = 7);
    let join = |user: &str| {
        let mut talk = server.connect_raw();
        let body = [&196_608i32.to_be_bytes()[..], b"user\0", user.as_bytes()];
        let body = [&body.concat()[..], b"\0database\0defaultdb\0\0"].concat();
        talk.send_bytes(&[&(body.len() as i32 + 4).to_be_bytes()[..], &body].concat());
        let answer = talk.until_ready();
        (talk, answer)
    };
    let apps: Vec<_> = (0..4).map(|_| join("app")).collect();
    assert!(apps.iter().all(|(_, (_, status))| *status == Some('I')));
    assert_eq!(join("app").1, ("Error(FATAL 53300)".to_string(), None));
    let roots: Vec<_> = (0..3).map(|_| join("root")).collect();
    assert!(roots.iter().all(|(_, (_, status))| *status == Some('I')));
    assert_eq!(join("root").1.0, "Error(FATAL 53300)");
    drop(apps);
    let mut waited = 0;
    while join("app").1.1.is_none() {
        waited += 1;
        assert!(waited < 200, "places are given back");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_silent_connection_goes_on_where_it_was() {
    let server = Running::new();
    let mut talk = server.connect();
    talk.query("CREATE TABLE t (a int PRIMARY KEY); INSERT INTO t SELECT generate_series(1, 10)");
    talk.answer();
    talk.query("BEGIN; INSERT INTO t VALUES (11)");
    talk.answer();
    talk.parse("s", "SELECT a FROM t ORDER BY a");
    talk.bind("s", &[]);
    talk.execute(2);
    talk.send(b'H', b"");
    std::thread::sleep(Duration::from_millis(500));
    // Half a message, silence, the other half.
    let execute = [&b"E\0\0\0\x09"[..], b"\0\0\0\0\x09"].concat();
    talk.send_bytes(&execute[..3]);
    std::thread::sleep(Duration::from_millis(500));
    talk.send_bytes(&execute[3..]);
    talk.sync();
    let said = talk.answer();
    assert!(
        said.contains("Row(2) Suspended Row(3)") && said.ends_with("Row(11) Suspended T"),
        "{said}"
    );
    talk.query("COMMIT");
    assert_eq!(talk.answer(), "Complete(COMMIT) I");
}

#[test]
fn many_clients_that_come_at_once_are_all_served_and_counted() {
    let server = Running::with(|config| config.connections_max = 200);
    let came: Vec<_> = (0..150)
        .map(|_| {
            let mut talk = server.connect_raw();
            talk.startup(3, 0);
            talk
        })
        .collect();
    // Silent ones beside them push out silent ones only.
    let _silent: Vec<Talk> = (0..300).map(|_| server.connect_raw()).collect();
    for mut talk in came {
        assert_eq!(talk.until_ready().1, Some('I'));
    }
    let mut talk = server.connect();
    talk.query("SELECT 1");
    assert!(talk.answer().ends_with('I'), "the node still accepts");
}

#[test]
fn arguments_that_only_come_out_of_a_call_are_left_out() {
    let server = Running::new();
    let mut talk = server.connect();
    let types = [0, 2, 0, 0, 8, 230, 0, 0, 0, 25];
    for sql in ["select * from upper($1, $2) as result", "select upper($1, $2)"] {
        talk.send(b'P', &[&text("")[..], &text(sql), &types].concat());
        // No formats; NULL, and a text; no formats.
        let values = b"\0\0\0\0\0\x02\xff\xff\xff\xff\0\0\0\x01x\0\0";
        talk.send(b'B', values);
        talk.execute(0);
        talk.sync();
        assert_eq!(talk.answer(), "Parsed Bound Row(X) Complete(SELECT 1) I", "{sql}");
    }
}

#[test]
fn move_passes_rows_of_a_portal() {
    let server = Running::new();
    let mut talk = server.connect();
    talk.query("begin");
    talk.answer();
    talk.parse("", "select * from generate_series(1, 9)");
    talk.send(b'B', b"p\0\0\0\0\0\0\0\0");
    talk.send(b'E', &[text("p"), 2i32.to_be_bytes().to_vec()].concat());
    talk.sync();
    assert_eq!(talk.answer(), "Parsed Bound Row(1) Row(2) Suspended T");
    talk.query("move forward 3 p; move 1 in p");
    assert_eq!(talk.answer(), "Complete(MOVE 3) Complete(MOVE 1) T");
    talk.send(b'E', &[text("p"), 1i32.to_be_bytes().to_vec()].concat());
    talk.sync();
    assert_eq!(talk.answer(), "Row(7) Suspended T");
    talk.query("move all in p");
    assert_eq!(talk.answer(), "Complete(MOVE 2) T");
    talk.query("move backward 1 in p");
    assert_eq!(talk.answer(), "Error(ERROR 55000) E");
    talk.query("move 1 in p");
    assert_eq!(talk.answer(), "Error(ERROR 25P02) E");
    talk.send(b'E', &[text("p"), 1i32.to_be_bytes().to_vec()].concat());
    talk.sync();
    assert_eq!(talk.answer(), "Error(ERROR 25P02) E");
}

#[test]
fn fetch_and_close_find_portals() {
    let server = Running::new();
    let mut talk = server.connect();
    talk.query("begin; declare c cursor for values (1)");
    talk.answer();
    talk.parse("s", "select * from generate_series(1, 9)");
    talk.send(b'B', b"p\0s\0\0\0\0\0\0\0");
    talk.send(b'B', b"q\0s\0\0\0\0\0\0\0");
    talk.send(b'E', &[text("p"), 2i32.to_be_bytes().to_vec()].concat());
    talk.sync();
    assert_eq!(talk.answer(), "Parsed Bound Bound Row(1) Row(2) Suspended T");
    talk.query("fetch 2 from p; fetch relative 2 in p");
    let expected = "Columns Row(3) Row(4) Complete(FETCH 2) Columns Row(6) Complete(FETCH 1) T";
    assert_eq!(talk.answer(), expected);
    talk.query("fetch p; fetch all p; fetch p");
    let expected = "Columns Row(7) Complete(FETCH 1) Columns Row(8) Row(9) Complete(FETCH 2) \
                    Columns Complete(FETCH 0) T";
    assert_eq!(talk.answer(), expected);
    talk.query("fetch q");
    assert_eq!(talk.answer(), "Columns Row(1) Complete(FETCH 1) T");
    talk.query("close p; fetch c");
    assert_eq!(talk.answer(), "Complete(CLOSE CURSOR) Columns Row(1) Complete(FETCH 1) T");
    talk.query("close all");
    assert_eq!(talk.answer(), "Complete(CLOSE CURSOR ALL) T");
    talk.query("fetch q");
    assert_eq!(talk.answer(), "Error(ERROR 34000) E");
}

/// What a client was shown of an answer that it has not read to its end counts at COMMIT.
#[test]
fn what_a_suspended_portal_has_shown_is_validated_at_commit() {
    let server = Running::new();
    let (mut a, mut b) = (server.connect(), server.connect());
    a.query(
        "CREATE TABLE t (id int PRIMARY KEY, n int); CREATE TABLE log (id int PRIMARY KEY); \
         INSERT INTO t SELECT g, 0 FROM generate_series(1, 3000) g",
    );
    assert!(a.answer().ends_with("Complete(INSERT 0 3000) I"));
    let queries = [
        "SELECT id, n FROM t",
        "SELECT id, n FROM t ORDER BY id",
        "SELECT t.id, u.n FROM t JOIN t u ON u.id = t.id",
        "SELECT n + g, id FROM t, generate_series(1, 2) g WHERE id > 0",
        "SELECT id, sum(n) OVER (ORDER BY id) FROM t",
    ];
    let mut log = 0;
    for (level, commit) in
        [("SERIALIZABLE", "Error(ERROR 40001) I"), ("REPEATABLE READ", "Complete(COMMIT) I")]
    {
        for (sql, cursor) in queries.iter().flat_map(|sql| [(sql, false), (sql, true)]) {
            a.query(&format!("BEGIN ISOLATION LEVEL {level}"));
            a.answer();
            if cursor {
                a.query(&format!("DECLARE c CURSOR FOR {sql}; FETCH 2 FROM c"));
            } else {
                a.parse("", sql);
                a.bind("", &[]);
                a.execute(2);
                a.sync();
            }
            let said = a.answer();
            assert_eq!(said.matches("Row(").count(), 2, "{sql}: {said}");
            // All have shown or used the first rows by now.
            b.query("UPDATE t SET n = n + 1 WHERE id < 3");
            assert_eq!(b.answer(), "Complete(UPDATE 2) I");
            log += 1;
            a.query(&format!("INSERT INTO log VALUES ({log})"));
            assert_eq!(a.answer(), "Complete(INSERT 0 1) T");
            a.query("COMMIT");
            assert_eq!(a.answer(), commit, "{level}, a cursor: {cursor}: {sql}");
        }
    }
    b.query("SELECT count(*) FROM log");
    assert_eq!(b.answer(), "Columns Row(10) Complete(SELECT 1) I");
}

/// Sends a Bind of the unnamed statement whose rows are wanted in a format, and Execute.
fn run_in_format(talk: &mut Talk, binary: bool) {
    let format = i16::from(binary).to_be_bytes();
    let body = [&text("")[..], &text(""), &[0, 0, 0, 0], &1i16.to_be_bytes(), &format].concat();
    talk.send(b'B', &body);
    talk.execute(0);
}

/// Oids of the types that the next RowDescription tells, and the values of the first row behind it.
fn described(talk: &mut Talk) -> (Vec<u32>, Vec<Vec<u8>>) {
    let (mut types, mut values) = (Vec::new(), Vec::new());
    while let Some((kind, body)) = talk.message() {
        let mut rest = &body[2.min(body.len())..];
        match kind {
            b'T' => {
                while let Some(end) = rest.iter().position(|b| *b == 0) {
                    let oid = rest[end + 7..end + 11].try_into().expect("four bytes");
                    types.push(u32::from_be_bytes(oid));
                    rest = &rest[end + 19..];
                }
            }
            b'D' if values.is_empty() => {
                while let Some((length, after)) = rest.split_first_chunk::<4>() {
                    let length = i32::from_be_bytes(*length).max(0) as usize;
                    values.push(after[..length].to_vec());
                    rest = &after[length..];
                }
            }
            b'E' => panic!("{}", String::from_utf8_lossy(&body)),
            b'Z' => break,
            _ => {}
        }
    }
    (types, values)
}

#[test]
fn names_of_objects_are_oids_for_clients() {
    let server = Running::new();
    let mut talk = server.connect();
    talk.query("CREATE SCHEMA s; CREATE TABLE s.t (a int PRIMARY KEY, c regclass, d regtype[])");
    talk.until_ready();
    talk.query("INSERT INTO s.t VALUES (1, 's.t', '{int4,text}')");
    talk.until_ready();
    let own = "SELECT c, d, 'public'::regnamespace, 'root'::regrole FROM s.t WHERE a = 1";
    let general = "SELECT max(c::oid)::regclass, array_agg(d[1]), min(oid)::regnamespace,
        'root'::regrole FROM s.t, pg_namespace WHERE nspname = 'public'";
    let written = "UPDATE s.t SET a = a RETURNING c, d, 'public'::regnamespace, 'root'::regrole";
    let oids = vec![2205, 2211, 4089, 4096];
    for sql in [own, written, general] {
        talk.query(sql);
        let (types, shown) = described(&mut talk);
        assert_eq!(types, oids, "{sql}");
        let shown: Vec<_> = shown.iter().map(|v| String::from_utf8_lossy(v)).collect();
        let array = if sql == general { "{integer}" } else { "{integer,text}" };
        assert_eq!(shown, ["s.t", array, "public", "root"], "{sql}");

        talk.parse("", sql);
        run_in_format(&mut talk, true);
        talk.sync();
        let (_, sent) = described(&mut talk);
        talk.query("SELECT 's.t'::regclass::oid, 2211, 'public'::regnamespace::oid");
        let (_, oids) = described(&mut talk);
        let number = |v: &[u8]| String::from_utf8_lossy(v).parse::<u32>().expect("an oid");
        assert_eq!(sent[0], number(&oids[0]).to_be_bytes(), "{sql}");
        assert_eq!(sent[2], number(&oids[2]).to_be_bytes(), "{sql}");
        // Dimensions, a flag, the type of the elements, how many there are, from which on.
        assert_eq!(sent[1][8..12], 2206u32.to_be_bytes(), "{sql}");
        assert_eq!(sent[1][20..28], [&4i32.to_be_bytes()[..], &23u32.to_be_bytes()].concat());
    }
    // Its text is the name that it has when it is shown.
    talk.query("CREATE TABLE s.k AS SELECT c, d FROM s.t; ALTER TABLE s.t RENAME TO u");
    talk.until_ready();
    talk.query("BEGIN; DECLARE k CURSOR FOR SELECT c, d FROM s.k; FETCH 1 FROM k");
    let (types, shown) = described(&mut talk);
    assert_eq!((types, &shown[0][..]), (vec![2205, 2211], &b"s.u"[..]));
    talk.query("COPY s.k TO STDOUT");
    let data = "CopyOut Data(s.u\\t{integer,text}\\n) CopyDone Complete(COPY 1) T";
    assert_eq!(talk.answer(), data);
}

/// The types of a statement's parameters, as they are described.
fn parameters(talk: &mut Talk) -> Vec<u32> {
    let mut oids = Vec::new();
    while let Some((kind, body)) = talk.message() {
        match kind {
            b't' => {
                let parts = body[2..].chunks(4).map(|oid| oid.try_into().expect("four bytes"));
                oids.extend(parts.map(u32::from_be_bytes));
            }
            b'Z' => break,
            _ => {}
        }
    }
    oids
}

#[test]
fn a_parameter_that_becomes_a_value_of_a_domain_is_of_it() {
    let server = Running::new();
    let mut talk = server.connect();
    talk.query(
        "create domain posint as int check (value > 0); create domain w as varchar(3) not null; \
         create table t (id int primary key, p posint, w w, l posint[])",
    );
    talk.until_ready();
    talk.query(
        "select 'posint'::regtype::oid, 'w'::regtype::oid, 'posint[]'::regtype::oid from t \
         union all select 'posint'::regtype::oid, 'w'::regtype::oid, 'posint[]'::regtype::oid",
    );
    let (rows, _) = talk.until_ready();
    let row = rows.split("Row(").nth(1).and_then(|row| row.split(')').next()).expect("a row");
    let oids: Vec<u32> = row.split(',').map(|oid| oid.parse().expect("an oid")).collect();
    let (posint, word, list) = (oids[0], oids[1], oids[2]);
    for (sql, want) in [
        ("insert into t values ($1, $2, $3, $4)", vec![23, posint, word, list]),
        ("insert into t select $1, $2, 'x', null from t", vec![23, posint]),
        ("update t set p = $1 where p = $2", vec![posint, 23]),
        ("select $1::posint, $2::posint[]", vec![posint, list]),
        ("select count(*) from t group by id having sum(p) > $1::posint", vec![posint]),
        ("insert into t (id, p) values ($1, $1)", vec![23]),
        ("select p + $1 from t", vec![23]),
    ] {
        talk.parse("", sql);
        talk.send(b'D', b"S\0");
        talk.sync();
        assert_eq!(parameters(&mut talk), want, "{sql}");
    }
    // Asked at Bind, and nothing is run.
    talk.parse("i", "insert into t values ($1, $2, $3, $4)");
    for (values, want) in [
        (["1", "-1", "x", "{1}"], "Error(ERROR 23514) I"),
        (["1", "1", "long", "{1}"], "Error(ERROR 22001) I"),
        (["1", "1", "x", "{1,-1}"], "Error(ERROR 23514) I"),
        (["1", "1", "x", "{1}"], "Bound Complete(INSERT 0 1) I"),
    ] {
        talk.bind("i", &values);
        talk.execute(0);
        talk.sync();
        assert_eq!(talk.answer().trim_start_matches("Parsed "), want);
    }
    // A client that declares the domain is told the domain.
    let declared = [text(""), text("select $1"), vec![0, 1], posint.to_be_bytes().to_vec()];
    talk.send(b'P', &declared.concat());
    talk.send(b'D', b"S\0");
    talk.sync();
    assert_eq!(parameters(&mut talk), [posint]);
    talk.bind("", &["-4"]);
    talk.sync();
    assert_eq!(talk.answer(), "Error(ERROR 23514) I");
}
