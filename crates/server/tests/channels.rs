//! LISTEN and NOTIFY: who is told what, and when.

use std::time::Duration;

use braid_env::clock::{Clock, WallClock};

use crate::support::{Running, Talk};

/// Runs statements that must succeed.
fn run(talk: &mut Talk, sql: &str) {
    talk.query(sql);
    let (said, _) = talk.until_ready();
    assert!(!said.contains("Error"), "{sql}: {said}");
}

/// The next notification: process id, channel, payload. Nothing else may come before it.
fn told(talk: &mut Talk) -> (i32, String, String) {
    let (kind, body) = talk.message().expect("a notification");
    assert_eq!(kind, b'A', "{body:?}");
    notification(&body)
}

fn notification(body: &[u8]) -> (i32, String, String) {
    let pid = i32::from_be_bytes(body[..4].try_into().unwrap());
    let mut words = body[4..].split(|b| *b == 0);
    let mut word = || String::from_utf8(words.next().unwrap().to_vec()).unwrap();
    (pid, word(), word())
}

/// Runs statements; the notifications among the answers.
fn heard(talk: &mut Talk, sql: &str) -> Vec<(String, String)> {
    talk.query(sql);
    let mut out = Vec::new();
    loop {
        let (kind, body) = talk.message().expect("an answer");
        match kind {
            b'A' => {
                let (_, channel, payload) = notification(&body);
                out.push((channel, payload));
            }
            b'Z' => return out,
            b'E' => panic!("{sql}: {}", String::from_utf8_lossy(&body)),
            _ => {}
        }
    }
}

fn pairs(all: &[(&str, &str)]) -> Vec<(String, String)> {
    all.iter().map(|(c, p)| (c.to_string(), p.to_string())).collect()
}

#[test]
fn an_idle_client_is_told_at_once_and_in_the_order_of_commits() {
    let server = Running::new();
    let (mut a, mut b) = (server.connect(), server.connect());
    run(&mut b, "listen c");
    run(&mut b, "listen \"Other\"");
    // Long enough that no thread waits for it any more.
    std::thread::sleep(Duration::from_millis(300));
    let begun = WallClock.monotonic_nanos();
    run(&mut a, "notify c, 'one'");
    assert_eq!(told(&mut b), (a.pid, "c".into(), "one".into()));
    let waited = Duration::from_nanos(WallClock.monotonic_nanos() - begun);
    assert!(waited < Duration::from_secs(2), "{waited:?}");
    run(&mut a, "notify c");
    run(&mut a, "begin; notify \"Other\", 'x'; select pg_notify('c', 'y'); commit");
    run(&mut a, "select pg_notify('C', 'nobody')");
    run(&mut a, "notify c, 'last'");
    assert_eq!(told(&mut b), (a.pid, "c".into(), String::new()));
    assert_eq!(told(&mut b), (a.pid, "Other".into(), "x".into()));
    assert_eq!(told(&mut b), (a.pid, "c".into(), "y".into()));
    assert_eq!(told(&mut b), (a.pid, "c".into(), "last".into()));
}

#[test]
fn what_rolls_back_was_never_said() {
    let server = Running::new();
    let mut a = server.connect();
    run(&mut a, "listen c");
    assert_eq!(heard(&mut a, "begin; notify c, 'no'; rollback"), []);
    assert_eq!(heard(&mut a, "begin; unlisten *; listen d; rollback"), []);
    let said = heard(
        &mut a,
        "begin; notify c, '1'; savepoint s; notify c, '2'; rollback to s; notify c, '3'; \
         notify c, '1'; commit",
    );
    // Twice the same in one transaction is told once.
    assert_eq!(said, pairs(&[("c", "1"), ("c", "3")]));
    // A block that failed.
    a.query("begin; notify c, 'lost'; select 1 / 0");
    let (answer, _) = a.until_ready();
    assert!(answer.contains("22012"), "{answer}");
    assert_eq!(heard(&mut a, "commit"), []);
    // A statement that failed after it had said something.
    a.query("select pg_notify('c', 'lost'), 1 / (random() * 0)::int");
    let (answer, _) = a.until_ready();
    assert!(answer.contains("22012"), "{answer}");
    assert_eq!(heard(&mut a, "select pg_notify('c', 'kept')"), pairs(&[("c", "kept")]));
}

#[test]
fn nothing_is_told_inside_of_a_block() {
    let server = Running::new();
    let (mut a, mut b) = (server.connect(), server.connect());
    run(&mut b, "listen c");
    run(&mut b, "begin; select 1");
    run(&mut a, "notify c, 'x'");
    assert_eq!(heard(&mut b, "select 2"), []);
    assert_eq!(heard(&mut b, "commit"), pairs(&[("c", "x")]));
    // LISTEN counts from the commit on.
    run(&mut b, "begin; listen d");
    run(&mut a, "notify d, 'early'");
    assert_eq!(heard(&mut b, "commit"), []);
    run(&mut a, "notify d, 'late'");
    assert_eq!(told(&mut b).2, "late");
    run(&mut b, "unlisten d");
    run(&mut a, "notify d, 'gone'; notify c, 'still'");
    assert_eq!(told(&mut b).2, "still");
    run(&mut b, "discard all");
    assert_eq!(heard(&mut b, "notify c"), []);
}

#[test]
fn channels_belong_to_a_database_and_names_have_their_limits() {
    let server = Running::new();
    let mut a = server.connect();
    run(&mut a, "listen b; listen a; listen a");
    a.query("select * from pg_listening_channels()");
    let (answer, _) = a.until_ready();
    assert!(answer.contains('a') && answer.contains("SELECT 2"), "{answer}");
    for (sql, state) in [
        ("select pg_notify('', 'x')", "22023"),
        ("select pg_notify(null, 'x')", "22023"),
        ("select pg_notify(repeat('x', 64), 'x')", "22023"),
        ("select pg_notify('c', repeat('x', 8000))", "22023"),
        ("notify", "42601"),
        ("notify c, 5", "42601"),
        ("listen *", "42601"),
    ] {
        a.query(sql);
        let (answer, _) = a.until_ready();
        assert!(answer.contains(state), "{sql}: {answer}");
    }
    let long = heard(&mut a, "select pg_notify('a', repeat('x', 7999))");
    assert_eq!(long[0].1.len(), 7999);
}

#[test]
fn a_session_that_takes_nothing_stops_the_others_before_memory_ends() {
    let server = Running::new();
    let (mut a, mut b) = (server.connect(), server.connect());
    run(&mut b, "listen c");
    run(&mut b, "begin; select 1");
    let mut refused = None;
    for n in 0..40 {
        a.query(&format!(
            "select count(pg_notify('c', n || repeat('x', 7900)))
             from generate_series({}, {}) n(n)",
            n * 100,
            n * 100 + 99
        ));
        let (answer, _) = a.until_ready();
        if answer.contains("54000") {
            refused = Some(n);
            break;
        }
    }
    assert!(refused.is_some_and(|n| n > 5), "{refused:?}");
    assert!(heard(&mut b, "commit").len() > 500);
    run(&mut a, "notify c, 'again'");
    assert_eq!(told(&mut b).2, "again");
}
