//! Three nodes in processes of their own on this machine: transfers through all of them, kill -9 of
//! one after the other, and ranges that are split.
//!
//! Each transfer writes two accounts and a line of a ledger in one transaction. Whatever is killed
//! when: every line that was acknowledged is there, every balance is what the ledger says, and the
//! sum stays. It is measured, and printed, how long nobody was served after a kill.
//!
//! `BRAID_KILLS=30 cargo test --workspace --test three_nodes -- --nocapture` runs the long form.

mod support;

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use braid_env::clock::{Clock, WallClock};
use braid_env::random::Random;
use parking_lot::Mutex;
use postgres::{Client, NoTls};
use support::Node;

const ACCOUNTS: u64 = 12;
const EACH: u64 = 100;
/// Whatever takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(120);

/// Three members, some of them running.
struct Cluster {
    folder: tempfile::TempDir,
    members: Vec<String>,
    nodes: Vec<Mutex<Option<Node>>>,
    arguments: &'static [&'static str],
}

impl Cluster {
    /// Starts all three in empty directories.
    fn start(arguments: &'static [&'static str]) -> Cluster {
        let free = || TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let listeners: Vec<TcpListener> = (0..3).map(|_| free()).collect();
        let address = |l: &TcpListener| l.local_addr().expect("it listens").to_string();
        let members = listeners.iter().map(address).collect();
        drop(listeners);
        let folder = tempfile::tempdir().expect("a folder");
        let nodes = (0..3).map(|_| Mutex::new(None)).collect();
        let cluster = Cluster { folder, members, nodes, arguments };
        // None of them serves clients before there is a majority.
        let run = |n: usize| cluster.run(n);
        std::thread::scope(|scope| (0..3).for_each(|n| drop(scope.spawn(move || run(n)))));
        cluster
    }

    fn data(&self, n: usize) -> std::path::PathBuf {
        self.folder.path().join(format!("n{}", n + 1))
    }

    /// Starts a node, for the first time or again.
    fn run(&self, n: usize) {
        let data = self.data(n);
        let join = self.members.join(",");
        let mut arguments = self.arguments.to_vec();
        if !Path::new(&data).exists() {
            arguments.extend(["--listen-peers", &self.members[n], "--join", &join]);
        }
        let node = Node::start_as(&data, Stdio::null(), &arguments);
        *self.nodes[n].lock() = Some(node);
    }

    /// kill -9.
    fn kill(&self, n: usize) {
        let node = self.nodes[n].lock().take();
        node.expect("it runs").kill();
    }

    /// A client of a node that runs, this one if possible.
    fn client(&self, preferred: usize) -> Client {
        let wall = WallClock;
        let until = wall.monotonic_nanos() + PATIENCE.as_nanos() as u64;
        while wall.monotonic_nanos() < until {
            for n in (preferred..).take(3) {
                let url = self.nodes[n % 3].lock().as_ref().map(|node| node.url.clone());
                if let Some(client) = url.and_then(|url| Client::connect(&url, NoTls).ok()) {
                    return client;
                }
            }
            wall.sleep(Duration::from_millis(20));
        }
        panic!("no node takes clients");
    }
}

/// What became of a transaction.
enum Ended {
    Done,
    /// It has not happened.
    Not,
    /// Who knows.
    Unknown,
}

fn ended(result: Result<(), postgres::Error>, client: &mut Client) -> Ended {
    let Err(error) = result else { return Ended::Done };
    let Some(state) = error.code().map(|code| code.code().to_string()) else {
        return Ended::Unknown;
    };
    if client.batch_execute("ROLLBACK").is_err() {
        return Ended::Unknown;
    }
    match state.as_str() {
        "40001" | "40P01" | "57P03" => Ended::Not,
        "40003" => Ended::Unknown,
        other => panic!("{other}: {error}"),
    }
}

/// What the writers have seen.
#[derive(Default)]
struct Seen {
    acknowledged: Mutex<BTreeSet<i64>>,
    count: AtomicU64,
    next: AtomicU64,
    stop: AtomicBool,
}

impl Seen {
    fn wait_for(&self, more: u64) {
        let (wall, from) = (WallClock, self.count.load(Ordering::SeqCst));
        let until = wall.monotonic_nanos() + PATIENCE.as_nanos() as u64;
        while self.count.load(Ordering::SeqCst) < from + more {
            assert!(wall.monotonic_nanos() < until, "nothing is committed any more");
            wall.sleep(Duration::from_millis(5));
        }
    }
}

fn transfers(cluster: &Cluster, n: usize, seen: &Seen) {
    let mut random = Random::seeded(n as u64);
    let mut client = cluster.client(n);
    while !seen.stop.load(Ordering::SeqCst) {
        let id = seen.next.fetch_add(1, Ordering::SeqCst) as i64;
        let from = random.below(ACCOUNTS);
        let to = (from + 1 + random.below(ACCOUNTS - 1)) % ACCOUNTS;
        let sql = format!(
            "BEGIN;
             UPDATE account SET balance = balance - 1 WHERE id = {from};
             UPDATE account SET balance = balance + 1 WHERE id = {to};
             INSERT INTO ledger VALUES ({id}, {from}, {to});
             COMMIT"
        );
        let result = client.batch_execute(&sql);
        match ended(result, &mut client) {
            Ended::Done => {
                seen.acknowledged.lock().insert(id);
                seen.count.fetch_add(1, Ordering::SeqCst);
            }
            Ended::Not => {}
            Ended::Unknown if client.is_closed() => client = cluster.client(n),
            Ended::Unknown => {}
        }
    }
}

/// The rows of a query, asked again while nobody can answer.
fn rows(client: &mut Client, sql: &str) -> Vec<Vec<i64>> {
    for _ in 0..200 {
        match client.query(sql, &[]) {
            Ok(rows) => {
                let row = |row: &postgres::Row| (0..row.len()).map(|i| row.get(i)).collect();
                return rows.iter().map(row).collect();
            }
            Err(e) => {
                let state = e.code().map(|code| code.code().to_string()).unwrap_or_default();
                assert!(["40001", "57P03"].contains(&state.as_str()), "{sql}: {e}");
            }
        }
    }
    panic!("{sql}: never answered");
}

/// What must be true, as this node tells it.
fn check(client: &mut Client, acknowledged: &BTreeSet<i64>) {
    let both = "SELECT id, a, b FROM ledger UNION ALL SELECT id, balance, -1 FROM account";
    let mut expected = vec![EACH as i64; ACCOUNTS as usize];
    let (accounts, ledger): (Vec<_>, Vec<_>) =
        rows(client, both).into_iter().partition(|row| row[2] == -1);
    for line in &ledger {
        expected[line[1] as usize] -= 1;
        expected[line[2] as usize] += 1;
    }
    let there: BTreeSet<i64> = ledger.iter().map(|line| line[0]).collect();
    assert_eq!(there.len(), ledger.len(), "a line is there once");
    let lost: Vec<_> = acknowledged.difference(&there).collect();
    assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
    assert_eq!(accounts.len(), ACCOUNTS as usize);
    for account in accounts {
        assert_eq!(account[1], expected[account[0] as usize], "account {}", account[0]);
    }
}

#[test]
fn nothing_acknowledged_is_lost_when_nodes_are_killed() {
    let kills = std::env::var("BRAID_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(3);
    let cluster = Cluster::start(&["--http", "off"]);
    let mut client = cluster.client(0);
    client
        .batch_execute(&format!(
            "CREATE TABLE account (id bigint PRIMARY KEY, balance bigint);
             CREATE TABLE ledger (id bigint PRIMARY KEY, a bigint, b bigint);
             INSERT INTO account SELECT g, {EACH} FROM generate_series(0, {ACCOUNTS} - 1) g"
        ))
        .expect("the tables are created");
    // Other nodes know it at once.
    assert_eq!(rows(&mut cluster.client(2), "SELECT count(*) FROM account")[0][0], 12);
    let seen = Seen::default();
    let wall = WallClock;
    std::thread::scope(|scope| {
        let (cluster, seen) = (&cluster, &seen);
        (0..3).for_each(|n| drop(scope.spawn(move || transfers(cluster, n, seen))));
        for kill in 0..kills {
            let n = kill % 3;
            seen.wait_for(20);
            cluster.kill(n);
            let killed_at = wall.monotonic_nanos();
            seen.wait_for(2);
            let served = Duration::from_nanos(wall.monotonic_nanos() - killed_at);
            println!("kill {} of node {}: next commits after {served:?}", kill + 1, n + 1);
            seen.wait_for(10);
            cluster.run(n);
            let acknowledged = seen.acknowledged.lock().clone();
            check(&mut cluster.client(n), &acknowledged);
        }
        seen.stop.store(true, Ordering::SeqCst);
    });
    let acknowledged = seen.acknowledged.lock().clone();
    println!("{} transfers", acknowledged.len());
    (0..3).for_each(|n| check(&mut cluster.client(n), &acknowledged));
}
