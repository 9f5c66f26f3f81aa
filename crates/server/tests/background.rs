//! What the node does by itself while nobody asks: taking away what nobody can reach any more, and
//! looking what tables hold.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::support::Running;

/// One of the node's numbers, as `/metrics` tells it.
fn metric(running: &Running, name: &str) -> u64 {
    let mut socket = TcpStream::connect(running.http_address()).expect("HTTP is on");
    socket
        .write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        .expect("sent");
    let mut page = String::new();
    socket.read_to_string(&mut page).expect("a page");
    let line = page.lines().find_map(|line| line.strip_prefix(&format!("braid_{name} ")));
    line.and_then(|n| n.trim().parse().ok()).unwrap_or_else(|| panic!("{name} in {page}"))
}

/// Waits until a number is what it must become. It is waited for long, and never has to be quick.
fn becomes(running: &Running, name: &str, wanted: u64) {
    for _ in 0..600 {
        if metric(running, name) == wanted {
            return;
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    panic!("{name} is {}, not {wanted}", metric(running, name));
}

#[test]
fn the_node_reclaims_what_nobody_can_reach_and_counts_it() {
    let running = Running::with(|config| {
        config.http = Some(([127, 0, 0, 1], 0).into());
        config.gc_window = Duration::from_secs(2);
    });
    let mut talk = running.connect();
    let mut run = |sql: &str| {
        talk.query(sql);
        let (answer, _) = talk.until_ready();
        assert!(!answer.contains("Error("), "{sql}: {answer}");
    };
    run("create table p (id int primary key);
         create table c (id int, k int, n int, primary key (id, k))
             interleave in parent p on delete cascade;
         create index by_n on c (n);
         create table d (id int, k int, primary key (id, k))
             interleave in parent p on delete cascade;
         insert into p select g from generate_series(1, 300) g;
         insert into c select g, 1, g from generate_series(1, 300) g;
         insert into d select g, 1 from generate_series(1, 300) g");
    assert_eq!(metric(&running, "reclaim_dead_entries_total"), 0);
    assert_eq!(metric(&running, "reclaim_discarded_total"), 0);
    // Entries elsewhere of rows that go with their families, and rows of a generation that is over.
    run("delete from p where id <= 100");
    run("truncate d");
    becomes(&running, "reclaim_dead_entries_total", 100);
    becomes(&running, "reclaim_discarded_total", 200);
    assert!(metric(&running, "reclaim_examined_total") >= 300);
    // What lives is left alone.
    run("delete from p where id <= 150");
    becomes(&running, "reclaim_dead_entries_total", 150);
    talk.query("select count(*) from c where n > 0");
    let (answer, _) = talk.until_ready();
    assert!(answer.contains("150"), "{answer}");
}

#[test]
fn the_node_analyzes_tables_that_have_changed_much() {
    let running = Running::with(|_| {});
    let mut talk = running.connect();
    talk.query(
        "create table t (id int primary key, n int);
         insert into t select g, g % 7 from generate_series(1, 20000) g",
    );
    assert!(!talk.until_ready().0.contains("Error("));
    let known = "select reltuples || ' rows, ' || n_distinct || ' values' from pg_class, pg_stats
         where relname = 't' and tablename = 't' and attname = 'n'";
    for _ in 0..600 {
        talk.query(known);
        let (answer, _) = talk.until_ready();
        if answer.contains("20000 rows, 7 values") {
            return;
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    panic!("nobody has analyzed the table");
}
