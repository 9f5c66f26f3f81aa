//! A node that has no descriptor left for new clients: it tells them, and goes on. One that is given
//! few from the beginning takes fewer clients, so that there are always some for its files and for
//! root.
//!
//! The limit of the running process is taken down to what it has open (`prlimit`), so that accept()
//! fails with EMFILE.

mod support;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use postgres::{Client, NoTls};
use support::Node;

/// The lowest descriptor that a process does not have open, whatever it opens for a moment.
fn lowest_free(pid: u32) -> usize {
    let folder = format!("/proc/{pid}/fd");
    let free = || {
        let entries = std::fs::read_dir(Path::new(&folder)).expect("a process of ours");
        let names = entries.map(|entry| entry.expect("an entry").file_name());
        let open: BTreeSet<usize> = names.filter_map(|n| n.to_str()?.parse().ok()).collect();
        (0..).find(|n| !open.contains(n)).expect("one is free")
    };
    let samples = (0..20).map(|_| {
        std::thread::sleep(Duration::from_millis(5));
        free()
    });
    samples.min().expect("twenty samples")
}

fn limit(pid: u32, descriptors: usize) {
    let done = Command::new("prlimit")
        .args(["--pid", &pid.to_string(), &format!("--nofile={descriptors}:")])
        .status()
        .expect("prlimit is installed");
    assert!(done.success(), "the limit can be set");
}

#[test]
fn without_descriptors_clients_are_told_and_sessions_go_on() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let log = tempfile::NamedTempFile::new().expect("a file");
    let out = log.reopen().expect("the file");
    let node = Node::start_with(&directory.path().join("store"), Stdio::from(out));
    let mut inside = node.client();
    inside.batch_execute("CREATE TABLE t (id int PRIMARY KEY)").expect("a table");
    let mut second = node.client();
    limit(node.pid(), lowest_free(node.pid()));
    // One that the node was about to open already, and what it closes now, may be had still.
    let mut others: Vec<Client> = Vec::new();
    let mut refused = 0;
    while refused < 5 {
        match Client::connect(&node.url, NoTls) {
            Ok(client) => others.push(client),
            Err(e) => {
                assert_eq!(e.code().map(|c| c.code()), Some("53300"), "{e:?}");
                refused += 1;
                inside.execute("INSERT INTO t VALUES ($1)", &[&refused]).expect("it goes on");
                let count = second.query_one("SELECT count(*) FROM t", &[]).expect("it, too");
                assert_eq!(count.get::<_, i64>(0), i64::from(refused));
            }
        }
        assert!(others.len() < 20, "the limit is not felt");
    }
    // Who leaves makes room for another one.
    drop(second);
    let mut tries = (0..600).filter_map(|_| {
        std::thread::sleep(Duration::from_millis(50));
        Client::connect(&node.url, NoTls).ok()
    });
    let mut third = tries.next().expect("somebody comes in");
    third.batch_execute("INSERT INTO t VALUES (100)").expect("it works");
    limit(node.pid(), 1024);
    let mut more: Vec<Client> = (0..20).map(|_| node.client()).collect();
    let count = more[19].query_one("SELECT count(*) FROM t", &[]).expect("as before");
    assert_eq!(count.get::<_, i64>(0), 6);
    let said = std::fs::read_to_string(log.path()).expect("a log");
    assert!(said.contains("cannot accept a connection"), "{said}");
}

/// The configured number of connections would need more descriptors than there are.
#[test]
fn a_node_with_few_descriptors_takes_fewer_clients_and_keeps_places_for_root() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let store = directory.path().join("store");
    let more = ["--http", "off", "--max-connections", "1000"];
    // Those of files, of clients that have not said who they are, and ten.
    let node = Node::start_limited(460, &store, Stdio::null(), &more);
    // Silent ones, far more than that, keep nobody out.
    let address = node.url.split(['@', '/']).nth(3).expect("host and port").to_string();
    let connect = |_| std::net::TcpStream::connect(&address).expect("the node listens");
    let _silent: Vec<std::net::TcpStream> = (0..600).map(connect).collect();
    let app = node.url.replace("root@", "app@");
    let mut apps: Vec<Client> = Vec::new();
    let told = loop {
        match Client::connect(&app, NoTls) {
            Ok(client) => apps.push(client),
            Err(e) => break e,
        }
    };
    assert_eq!(told.code().map(|c| c.code()), Some("53300"), "{told:?}");
    assert_eq!(apps.len(), 7, "ten, and three of them are for root");
    let mut roots: Vec<Client> = (0..3).map(|_| node.client()).collect();
    let full = Client::connect(&node.url, NoTls).err().expect("there is no place left");
    assert_eq!(full.code().map(|c| c.code()), Some("53300"), "{full:?}");
    // There are descriptors for what the store does: new files, sorted runs, merges.
    let work = "CREATE TABLE t (id int PRIMARY KEY, v text);
        INSERT INTO t SELECT g, repeat('x', 100) || g FROM generate_series(1, 30000) g;
        CREATE INDEX ON t (v); UPDATE t SET v = v || 'y'";
    roots[0].batch_execute(work).expect("it works");
    let sorted = "SELECT count(*) FROM (SELECT v FROM t ORDER BY v DESC OFFSET 1) s";
    let rows = apps[6].query_one("SELECT 1", &[]).expect("it works, too");
    assert_eq!(rows.get::<_, i32>(0), 1);
    assert_eq!(roots[2].query_one(sorted, &[]).expect("a count").get::<_, i64>(0), 29_999);
}
