//! Three nodes in processes of their own on this machine: transfers through all of them, kill -9 of
//! one after the other, and ranges that are split.
//!
//! Each transfer writes two accounts and a line of a ledger in one transaction. Whatever is killed
//! when: every line that was acknowledged is there, every balance is what the ledger says, and the
//! sum stays. It is measured, and printed, how long nobody was served after a kill.
//!
//! `BRAID_KILLS=30 cargo test --workspace --test three_nodes -- --nocapture` runs the long form.

#[path = "three_nodes/changes.rs"]
mod changes;
#[path = "three_nodes/erasing.rs"]
mod erasing;
#[path = "three_nodes/growing.rs"]
mod growing;
#[path = "three_nodes/importing.rs"]
mod importing;
#[path = "three_nodes/killing.rs"]
mod killing;
#[path = "three_nodes/leases.rs"]
mod leases;
#[path = "three_nodes/members.rs"]
mod members;
#[path = "three_nodes/over_nodes.rs"]
mod over_nodes;
#[path = "three_nodes/participants.rs"]
mod participants;
#[path = "three_nodes/past.rs"]
mod past;
#[path = "support/ports.rs"]
mod ports;
#[path = "three_nodes/settings.rs"]
mod settings;
#[path = "three_nodes/stopping.rs"]
mod stopping;
mod support;
#[path = "three_nodes/tpcc.rs"]
mod tpcc;
#[path = "three_nodes/views.rs"]
mod views;

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use braid_env::clock::{Clock, WallClock};
use braid_env::random::Random;
use parking_lot::Mutex;
use ports::free_addresses;
use postgres::{Client, NoTls};
use support::Node;

const ACCOUNTS: u64 = 12;
const EACH: u64 = 100;
/// Founders, and those that join later.
const NODES: usize = 5;
/// After so long at most a range is served again whose leaseholder died, beside other tests on few
/// cores. What it is on a machine of its own says docs/cluster.md: at most 6 s.
const MOST_UNSERVED: Duration = Duration::from_secs(10);
/// Whatever takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(120);

type Nodes = Arc<Vec<Mutex<Option<Node>>>>;

/// Ends the process if a test takes so long that it must hang: its threads may wait for answers of
/// processes that do not come. What the nodes logged last is shown first.
struct Watchdog(Option<std::sync::mpsc::Sender<()>>);

impl Watchdog {
    fn after(limit: Duration, logs: &Path, nodes: Nodes) -> Watchdog {
        let (ended, wait) = std::sync::mpsc::channel();
        let logs = logs.to_path_buf();
        let watch = move || {
            if wait.recv_timeout(limit) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                show_logs(&logs);
                // They would outlive the process.
                nodes.iter().for_each(|node| drop(node.lock().take()));
                eprintln!("the test hangs: no end after {limit:?}");
                std::process::abort();
            }
        };
        std::thread::Builder::new().spawn(watch).expect("a thread can be started");
        Watchdog(Some(ended))
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        // Nobody to tell any more: it does not wait.
        self.0.take();
    }
}

/// The last lines that the nodes of a cluster logged. To the process's own output, which a test
/// that ends the process does not lose.
#[expect(clippy::disallowed_methods, reason = "they are files of other processes")]
fn show_logs(folder: &Path) {
    use std::fmt::Write as _;
    let mut shown = String::new();
    for n in 1..=NODES {
        let Ok(log) = std::fs::read(folder.join(format!("n{n}.log"))) else { continue };
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().collect();
        let from = lines.len().saturating_sub(40);
        let _ = writeln!(shown, "n{n}, {} lines, the last ones:", lines.len());
        for line in &lines[from..] {
            let _ = writeln!(shown, "  {line}");
        }
    }
    let _ = std::io::stderr().write_all(shown.as_bytes());
}

/// Three founders, and two that may join; some of them running.
struct Cluster {
    folder: tempfile::TempDir,
    members: Vec<String>,
    http: Vec<String>,
    nodes: Nodes,
    arguments: &'static [&'static str],
    founders: usize,
    _watchdog: Watchdog,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if std::thread::panicking() {
            show_logs(self.folder.path());
        }
        // The watchdog knows them, too, and may live longer than this process.
        self.nodes.iter().for_each(|node| drop(node.lock().take()));
    }
}

impl Cluster {
    /// Starts all three in empty directories. The process ends if it is still there after this
    /// time.
    fn start(limit: Duration, arguments: &'static [&'static str]) -> Cluster {
        Cluster::found(3, limit, arguments)
    }

    /// The same with so many founders.
    fn found(founders: usize, limit: Duration, arguments: &'static [&'static str]) -> Cluster {
        let mut cluster = Cluster::new(limit, arguments);
        cluster.founders = founders;
        let cluster = cluster;
        // None of them serves clients before there is a majority.
        let run = |n: usize| cluster.run(n);
        std::thread::scope(|scope| (0..founders).for_each(|n| drop(scope.spawn(move || run(n)))));
        cluster
    }

    /// Nobody runs yet.
    fn new(limit: Duration, arguments: &'static [&'static str]) -> Cluster {
        let addresses = free_addresses(2 * NODES);
        let mut members: Vec<String> = addresses.iter().map(SocketAddr::to_string).collect();
        let http = members.split_off(NODES);
        let folder = tempfile::tempdir().expect("a folder");
        let nodes: Nodes = Arc::new((0..NODES).map(|_| Mutex::new(None)).collect());
        let _watchdog = Watchdog::after(limit, folder.path(), nodes.clone());
        Cluster { folder, members, http, nodes, arguments, founders: 3, _watchdog }
    }

    fn data(&self, n: usize) -> std::path::PathBuf {
        self.folder.path().join(format!("n{}", n + 1))
    }

    /// What a node is told at its first start as a member.
    fn told(&self, n: usize) -> [String; 4] {
        let told = &self.members[..if n < self.founders { self.founders } else { 2 }];
        let own = self.members[n].clone();
        ["--listen-peers".into(), own, "--join".into(), told.join(",")]
    }

    /// Starts a node, for the first time or again.
    fn run(&self, n: usize) {
        self.run_with(n, &[]);
    }

    /// The same with something that it alone is told.
    fn run_with(&self, n: usize, own: &[&str]) {
        let (data, told) = (self.data(n), self.told(n));
        let mut arguments = [self.arguments, own, &["--http", &self.http[n]]].concat();
        if !data.join("cluster").join("member").exists() {
            arguments.extend(told.iter().map(String::as_str));
        }
        let log = self.folder.path().join(format!("n{}.log", n + 1));
        let log = std::fs::OpenOptions::new().create(true).append(true).open(log);
        let log = Stdio::from(log.expect("a log can be opened"));
        let node = Node::start_as(&data, log, &arguments);
        *self.nodes[n].lock() = Some(node);
    }

    /// kill -9.
    fn kill(&self, n: usize) {
        let node = self.nodes[n].lock().take();
        node.expect("it runs").kill();
    }

    /// A number of a node's metrics.
    fn metric(&self, n: usize, name: &str) -> u64 {
        let mut stream = TcpStream::connect(&self.http[n]).expect("it listens");
        let request = b"GET /metrics HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n";
        stream.write_all(request).expect("it is sent");
        let mut page = String::new();
        stream.read_to_string(&mut page).expect("it answers");
        let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{name}:\n{page}"))
    }

    /// A client of a node that runs, this one if possible.
    fn client(&self, preferred: usize) -> Client {
        let wall = WallClock;
        let until = wall.monotonic_nanos() + PATIENCE.as_nanos() as u64;
        while wall.monotonic_nanos() < until {
            for n in (preferred..).take(NODES) {
                let url = self.nodes[n % NODES].lock().as_ref().map(|node| node.url.clone());
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

/// Writers end when the test does, also by a panic.
struct StopsWriters<'a>(&'a AtomicBool);

impl Drop for StopsWriters<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
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

/// Moves money until the test ends.
fn transfers(cluster: &Cluster, n: usize, seen: &Seen) {
    let mut random = Random::seeded(n as u64);
    commits(cluster, n, seen, |id| {
        let from = random.below(ACCOUNTS);
        let to = (from + 1 + random.below(ACCOUNTS - 1)) % ACCOUNTS;
        format!(
            "BEGIN;
             UPDATE account SET balance = balance - 1 WHERE id = {from};
             UPDATE account SET balance = balance + 1 WHERE id = {to};
             INSERT INTO ledger VALUES ({id}, {from}, {to});
             COMMIT"
        )
    });
}

/// Runs blocks at a node until the test ends, each made for its number, and notes the numbers of
/// those that were acknowledged.
fn commits(cluster: &Cluster, n: usize, seen: &Seen, mut block: impl FnMut(i64) -> String) {
    let mut client = cluster.client(n);
    while !seen.stop.load(Ordering::SeqCst) {
        let id = seen.next.fetch_add(1, Ordering::SeqCst) as i64;
        let result = client.batch_execute(&block(id));
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

/// The rows of a query, asked again while nobody can answer. Nobody who only reads is told to try
/// again: what is in doubt at first is read at a later time, before the client hears of it.
fn rows(client: &mut Client, sql: &str) -> Vec<Vec<i64>> {
    let mut last = None;
    for _ in 0..200 {
        match client.query(sql, &[]) {
            Ok(rows) => {
                let row = |row: &postgres::Row| (0..row.len()).map(|i| row.get(i)).collect();
                return rows.iter().map(row).collect();
            }
            Err(e) => {
                let state = e.code().map(|code| code.code());
                assert_eq!(state, Some("57P03"), "{sql}: {e:?}, after {last:?}");
                last = Some(e);
            }
        }
    }
    panic!("{sql}: never answered, but {last:?}");
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

/// What [`transfers`] write.
fn create_tables(client: &mut Client) {
    client
        .batch_execute(&format!(
            "CREATE TABLE account (id bigint PRIMARY KEY, balance bigint);
             CREATE TABLE ledger (id bigint PRIMARY KEY, a bigint, b bigint);
             INSERT INTO account SELECT g, {EACH} FROM generate_series(0, {ACCOUNTS} - 1) g"
        ))
        .expect("the tables are created");
}

#[test]
fn nothing_acknowledged_is_lost_when_nodes_are_killed() {
    let kills = std::env::var("BRAID_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(3);
    let cluster = Cluster::start(3 * PATIENCE + kills as u32 * Duration::from_secs(30), &[]);
    let mut client = cluster.client(0);
    create_tables(&mut client);
    // Other nodes know it at once.
    assert_eq!(rows(&mut cluster.client(2), "SELECT count(*) FROM account")[0][0], 12);
    let (seen, mut gaps) = (Seen::default(), Vec::new());
    let wall = WallClock;
    std::thread::scope(|scope| {
        let (cluster, seen) = (&cluster, &seen);
        let _stops = StopsWriters(&seen.stop);
        (0..3).for_each(|n| drop(scope.spawn(move || transfers(cluster, n, seen))));
        for kill in 0..kills {
            let n = kill % 3;
            seen.wait_for(20);
            let led = cluster.metric(n, "braid_cluster_ranges_led") > 0;
            cluster.kill(n);
            let killed_at = wall.monotonic_nanos();
            seen.wait_for(2);
            let served = Duration::from_nanos(wall.monotonic_nanos() - killed_at);
            let what = if led { "a leaseholder" } else { "no leaseholder" };
            println!("kill {} of node {}, {what}: next commits after {served:?}", kill + 1, n + 1);
            gaps.extend(Some(served).filter(|_| led));
            seen.wait_for(10);
            cluster.run(n);
            let acknowledged = seen.acknowledged.lock().clone();
            check(&mut cluster.client(n), &acknowledged);
        }
    });
    let acknowledged = seen.acknowledged.lock().clone();
    println!("{} transfers", acknowledged.len());
    (0..3).for_each(|n| check(&mut cluster.client(n), &acknowledged));
    gaps.sort();
    if let (Some(longest), Some(median)) = (gaps.last(), gaps.get(gaps.len() / 2)) {
        let count = gaps.len();
        println!(
            "{count} leaseholders killed: served after {median:?}, the median, {longest:?} at most"
        );
        assert!(*longest < MOST_UNSERVED, "{gaps:?}");
    }
}

/// The longest time without a commit while something is done, and for a second after it.
fn longest_gap(seen: &Seen, work: impl FnOnce()) -> Duration {
    let (wall, done) = (WallClock, AtomicBool::new(false));
    std::thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let (mut count, mut since) =
                (seen.count.load(Ordering::SeqCst), wall.monotonic_nanos());
            let mut longest = 0;
            while !done.load(Ordering::SeqCst) {
                wall.sleep(Duration::from_millis(2));
                let (now, next) = (wall.monotonic_nanos(), seen.count.load(Ordering::SeqCst));
                longest = longest.max(now - since);
                if next != count {
                    (count, since) = (next, now);
                }
            }
            Duration::from_nanos(longest)
        });
        work();
        wall.sleep(Duration::from_secs(1));
        done.store(true, Ordering::SeqCst);
        watch.join().expect("it watches")
    })
}

/// Leases are spread as soon as there are several ranges, and given away before a node ends: one
/// after the other may be started anew, and nobody waits for the end of a lease.
#[test]
fn leases_are_spread_and_a_rolling_restart_leaves_no_gap() {
    let cluster = Cluster::start(3 * PATIENCE, &[]);
    let mut client = cluster.client(0);
    run(
        &mut client,
        &format!(
            "CREATE TABLE account (id bigint PRIMARY KEY, balance bigint);
             CREATE TABLE ledger (id bigint PRIMARY KEY, a bigint, b bigint);
             INSERT INTO account SELECT g, {EACH} FROM generate_series(0, {ACCOUNTS} - 1) g"
        ),
    );
    run(&mut client, "ALTER TABLE account SPLIT AT VALUES (2), (4), (6), (8), (10)");
    let wall = WallClock;
    let until = wall.monotonic_nanos() + PATIENCE.as_nanos() as u64;
    let led = |n: usize| cluster.metric(n, "braid_cluster_ranges_led");
    while !(0..3).all(|n| led(n) >= 2) {
        let shown = [led(0), led(1), led(2)];
        assert!(wall.monotonic_nanos() < until, "leases are not spread: {shown:?}");
        wall.sleep(Duration::from_millis(100));
    }
    let seen = Seen::default();
    std::thread::scope(|scope| {
        let (cluster, seen) = (&cluster, &seen);
        let _stops = StopsWriters(&seen.stop);
        (0..3).for_each(|n| drop(scope.spawn(move || transfers(cluster, n, seen))));
        for n in 0..3 {
            seen.wait_for(20);
            let gap = longest_gap(seen, || {
                let node = cluster.nodes[n].lock().take();
                node.expect("it runs").terminate();
            });
            println!("node {} has ended: {gap:?} without a commit at most", n + 1);
            // A lease lasts for 4 s, and nobody else has it for half a second more.
            assert!(gap < Duration::from_secs(3), "{gap:?}");
            cluster.run(n);
            seen.wait_for(10);
            // It gets its share again.
            let until = wall.monotonic_nanos() + PATIENCE.as_nanos() as u64;
            while led(n) == 0 {
                assert!(wall.monotonic_nanos() < until, "node {} gets no leases", n + 1);
                wall.sleep(Duration::from_millis(100));
            }
        }
    });
    let acknowledged = seen.acknowledged.lock().clone();
    (0..3).for_each(|n| check(&mut cluster.client(n), &acknowledged));
}

/// Runs statements until nobody is in the way.
fn run(client: &mut Client, sql: &str) {
    for _ in 0..200 {
        let result = client.batch_execute(sql);
        match ended(result, client) {
            Ended::Done => return,
            Ended::Not => {}
            Ended::Unknown => panic!("{sql}: nobody knows what became of it"),
        }
    }
    panic!("{sql}: never done");
}

/// A table of parents with their children inside of them.
fn create_families(client: &mut Client) {
    run(
        client,
        "CREATE TABLE parent (id bigint PRIMARY KEY, note text);
         CREATE TABLE child (id bigint, n bigint, note text, PRIMARY KEY (id, n))
             INTERLEAVE IN PARENT parent ON DELETE CASCADE",
    );
}

/// The answer to SHOW RANGES, as text; NULL is empty.
fn ranges(client: &mut Client, sql: &str) -> Vec<Vec<String>> {
    let rows = client.query(sql, &[]).unwrap_or_else(|error| panic!("{sql}: {error}"));
    let row = |row: &postgres::Row| {
        let value = |i| row.get::<_, Option<String>>(i).unwrap_or_default();
        (0..row.len()).map(value).collect()
    };
    rows.iter().map(row).collect()
}

/// Every node says the same of them, soon, and one of the members serves each.
fn shows_the_ranges(cluster: &Cluster, clients: &mut [Client]) {
    let wall = WallClock;
    let until = wall.monotonic_nanos() + PATIENCE.as_nanos() as u64;
    let known = loop {
        let borders = |client: &mut Client| {
            let shown = ranges(client, "SHOW RANGES").into_iter();
            shown.map(|mut range| range.drain(..4).collect::<Vec<_>>()).collect::<Vec<_>>()
        };
        let all: Vec<_> = clients.iter_mut().map(borders).collect();
        if all[0].len() >= 3 && all.iter().all(|shown| *shown == all[0]) {
            break all[0].clone();
        }
        assert!(wall.monotonic_nanos() < until, "they differ: {all:?}");
        wall.sleep(Duration::from_millis(200));
    };
    assert_eq!((known[0][1].as_str(), known[known.len() - 1][2].as_str()), ("/System", "/Max"));
    for (left, right) in known.iter().zip(&known[1..]) {
        assert_eq!(left[2], right[1], "nothing is between two ranges");
        let family = left[2].strip_prefix("/parent/").unwrap_or_else(|| panic!("{left:?}"));
        assert!(family.parse::<u64>().is_ok(), "between two families: {left:?}");
    }
    assert!(known.iter().all(|range| range[3] == "1,2,3"), "{known:?}");
    for client in clients.iter_mut() {
        for range in ranges(client, "SHOW RANGES") {
            // A lease may be on its way from one to another.
            assert!(["1", "2", "3", ""].contains(&range[4].as_str()), "{range:?}");
            assert!(range[5].parse::<u64>().is_ok(), "{range:?}");
        }
    }
    let of_child = ranges(&mut clients[1], "SHOW RANGES FROM TABLE child");
    assert_eq!(of_child.len(), known.len(), "children are where their parents are");
    run(&mut clients[0], "CREATE TABLE other (id bigint PRIMARY KEY)");
    assert_eq!(ranges(&mut clients[2], "SHOW RANGES FROM TABLE other").len(), 1);
    for range in &known[1..known.len() - 1] {
        let (first, next) = (&range[1]["/parent/".len()..], &range[2]["/parent/".len()..]);
        let before: i64 = next.parse::<i64>().expect("a key") - 1;
        for (table, row) in [("parent", first.to_string()), ("child", format!("{before}, 1"))] {
            let sql = format!("SHOW RANGE FROM TABLE {table} FOR ROW ({row})");
            let shown = ranges(&mut clients[0], &sql);
            assert_eq!(shown.len(), 1, "{sql}");
            assert_eq!(shown[0][..3], range[..3], "{sql}");
        }
    }
    let none = clients[0].query("SHOW RANGES FROM nothing", &[]).expect_err("it is not there");
    assert_eq!(none.code().map(|code| code.code()), Some("42P01"), "{none}");
    // Who may not read a table does not see its keys.
    run(&mut clients[0], "CREATE ROLE stranger LOGIN");
    let url = cluster.nodes[1].lock().as_ref().map(|node| node.url.clone()).expect("it runs");
    let mut stranger = url.parse::<postgres::Config>().expect("an address");
    let mut stranger = stranger.user("stranger").connect(NoTls).expect("it connects");
    let shown = ranges(&mut stranger, "SHOW RANGES");
    assert!(shown[1..].iter().all(|range| range[1] == "/parent/.."), "{shown:?}");
}

#[test]
fn families_lie_in_several_ranges_and_go_from_all_of_them() {
    const FAMILIES: u64 = 1_500;
    const ARGUMENTS: [&str; 6] =
        ["--max-range-mib", "1", "--max-memory", "48", "--gc-window-seconds", "2"];
    let cluster = Cluster::start(3 * PATIENCE, &ARGUMENTS);
    let mut clients: Vec<Client> = (0..3).map(|n| cluster.client(n)).collect();
    create_families(&mut clients[0]);
    let mut random = Random::seeded(7);
    for first in (0..FAMILIES).step_by(50) {
        let mut note =
            || (0..64).map(|_| format!("{:016x}", random.next_u64())).collect::<String>();
        let ids = || first..first + 50;
        let parents: Vec<String> = ids().map(|id| format!("({id}, '{}')", note())).collect();
        let children: Vec<String> = ids().map(|id| format!("({id}, 1, '{}')", note())).collect();
        let (parents, children) = (parents.join(","), children.join(","));
        let sql =
            format!("INSERT INTO parent VALUES {parents}; INSERT INTO child VALUES {children}");
        run(&mut clients[1], &sql);
    }
    let wall = WallClock;
    let until = wall.monotonic_nanos() + PATIENCE.as_nanos() as u64;
    let all = "SELECT count(*), count(c.n) FROM parent p LEFT JOIN child c ON c.id = p.id";
    loop {
        assert_eq!(rows(&mut clients[2], all), [[FAMILIES as i64, FAMILIES as i64]]);
        // It has learned of them by asking.
        if cluster.metric(2, "braid_cluster_ranges") >= 3 {
            break;
        }
        assert!(wall.monotonic_nanos() < until, "nothing is split");
        wall.sleep(Duration::from_millis(200));
    }
    assert_eq!(cluster.metric(2, "braid_cluster_members_connected"), 3);
    shows_the_ranges(&cluster, &mut clients);
    // One transaction in the first range and the last one.
    let last = FAMILIES - 1;
    let both = format!("UPDATE parent SET note = 'both' WHERE id IN (0, {last})");
    run(&mut clients[0], &both);
    let read = format!("SELECT count(*) FROM parent WHERE note = 'both' AND id IN (0, {last})");
    assert_eq!(rows(&mut clients[1], &read), [[2]]);
    let then: String =
        clients[0].query_one("SELECT now()::text", &[]).expect("it is answered").get(0);
    let count = "SELECT count(*) FROM parent";
    let mut reader = cluster.client(2);
    reader.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ").expect("it begins");
    assert_eq!(rows(&mut reader, count), [[FAMILIES as i64]]);
    wall.sleep(Duration::from_secs(1));
    run(&mut clients[1], "DELETE FROM parent WHERE id >= 10");
    for client in &mut clients {
        assert_eq!(rows(client, all), [[10, 10]]);
        assert_eq!(rows(client, "SELECT count(*) FROM child"), [[10]]);
    }
    // Somebody still sees them, for longer than versions are kept.
    let before = stored(&mut clients[0]);
    wall.sleep(Duration::from_secs(6));
    assert_eq!(rows(&mut reader, count), [[FAMILIES as i64]]);
    assert!(stored(&mut clients[0]) > before / 2);
    reader.batch_execute("ROLLBACK").expect("it ends");
    room_comes_back(&mut clients, before / 4);
    let past = format!("SELECT count(*) FROM parent AS OF SYSTEM TIME '{then}'");
    let begin = format!("BEGIN AS OF SYSTEM TIME '{then}'");
    for client in &mut clients {
        for sql in [&past, &begin] {
            let refused = client.batch_execute(sql).expect_err("these versions are gone");
            assert_eq!(refused.code().map(|code| code.code()), Some("55000"), "{sql}: {refused}");
        }
        assert_eq!(rows(client, all), [[10, 10]]);
    }
}

/// Works while clients of two nodes add to one of so many rows of `hot` after the other: the second
/// to another one, in another range, in the same transaction.
fn beside_writers(cluster: &Cluster, rows: i64, work: impl FnOnce()) {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _stops = StopsWriters(&stop);
        for (n, away) in [(0, 0), (1, rows / 2)] {
            let stop = &stop;
            scope.spawn(move || {
                let mut client = cluster.client(n);
                for id in (0..rows).cycle().take_while(|_| !stop.load(Ordering::SeqCst)) {
                    let far = (id + away) % rows;
                    let add = "UPDATE hot SET n = n + 1 WHERE id";
                    run(&mut client, &format!("{add} IN ({id}, {far})"));
                }
            });
        }
        work();
    });
}

/// Others write all the time, through other nodes, and leases move: readers of all kinds get an
/// answer at once, and a block that sees one state sees it until its end.
#[test]
fn nobody_who_reads_is_told_to_try_again_while_others_write() {
    let cluster = Cluster::start(3 * PATIENCE, &[]);
    let mut client = cluster.client(2);
    run(
        &mut client,
        "CREATE TABLE hot (id bigint PRIMARY KEY, n bigint);
         INSERT INTO hot SELECT g, 0 FROM generate_series(0, 11) g",
    );
    beside_writers(&cluster, 12, || {
        run(&mut client, "ALTER TABLE hot SPLIT AT VALUES (2), (4), (6), (8), (10)");
        let sum = "SELECT count(*), sum(n)::bigint FROM hot";
        let joined = "SELECT count(*), sum(a.n + b.n)::bigint FROM hot a JOIN hot b USING (id)";
        let (mut last, mut in_doubt) = (0, 0);
        for round in 0..120 {
            let sql = if round % 2 == 0 { sum } else { joined };
            let seen = rows(&mut client, sql)[0][1];
            assert!(seen > 0 && (sql == joined || seen >= last), "{sql}: {seen} after {last}");
            last = if sql == sum { seen } else { last };
            let mut copied = String::new();
            let mut copy = client.copy_out("COPY hot TO STDOUT").expect("it begins");
            copy.read_to_string(&mut copied).expect("it is copied");
            drop(copy);
            assert_eq!(copied.lines().count(), 12);
            let level = ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"][round % 3];
            client.batch_execute(&format!("BEGIN ISOLATION LEVEL {level}")).expect("it begins");
            let first = rows(&mut client, sql);
            let mut doubts = false;
            for _ in 0..3 {
                WallClock.sleep(Duration::from_millis(round as u64));
                if level == "READ COMMITTED" {
                    rows(&mut client, sql);
                    continue;
                }
                doubts = doubts || !is_seen_again(&mut client, sql, &first);
            }
            if doubts {
                in_doubt += 1;
                client.batch_execute("ROLLBACK").expect("it ends");
                continue;
            }
            client.batch_execute("DECLARE c CURSOR FOR TABLE hot").expect("it begins");
            assert_eq!(client.query("FETCH ALL FROM c", &[]).expect("it reads").len(), 12);
            client.batch_execute("COMMIT").expect("it ends");
        }
        assert!(in_doubt < 20, "{in_doubt} of 80 blocks were in doubt");
    });
}

/// Whether a later statement of a block sees what the first one saw. It may also be in doubt about
/// a row (docs/cluster.md): what the block has seen before cannot be taken back. That is rare.
fn is_seen_again(client: &mut Client, sql: &str, first: &[Vec<i64>]) -> bool {
    match client.query(sql, &[]) {
        Ok(again) => {
            let row = |row: &postgres::Row| (0..row.len()).map(|i| row.get(i)).collect();
            let again: Vec<Vec<i64>> = again.iter().map(row).collect();
            assert_eq!(again, first, "{sql}");
            true
        }
        Err(e) => {
            assert_eq!(e.code().map(|code| code.code()), Some("40001"), "{sql}: {e:?}");
            false
        }
    }
}

/// A member is away while the others write past the bound of their logs, and split ranges. It is
/// given the states of these when it comes back, loses its power in the midst of that, and is then
/// one of the two that serve everything.
#[test]
fn a_member_that_was_away_for_long_is_given_the_state_of_all_ranges() {
    const ARGUMENTS: [&str; 6] =
        ["--max-range-mib", "1", "--max-raft-log-mib", "1", "--max-memory", "48"];
    let cluster = Cluster::start(3 * PATIENCE, &ARGUMENTS);
    let mut client = cluster.client(0);
    create_families(&mut client);
    run(
        &mut client,
        "INSERT INTO parent SELECT g, 'first' FROM generate_series(1, 100) g;
         INSERT INTO child SELECT g, 1, 'first' FROM generate_series(1, 100) g",
    );
    cluster.kill(2);
    let mut random = Random::seeded(11);
    for first in (1..3_000).step_by(100) {
        let mut note =
            || (0..128).map(|_| format!("{:016x}", random.next_u64())).collect::<String>();
        let values: Vec<String> =
            (first..first + 100).map(|id| format!("({id}, 2, '{}')", note())).collect();
        run(
            &mut client,
            &format!(
            "INSERT INTO parent SELECT g, 'second' FROM generate_series({first}, {first} + 99) g
                 ON CONFLICT (id) DO UPDATE SET note = 'second';
             INSERT INTO child VALUES {}", values.join(",")
        ),
        );
    }
    run(&mut client, "DELETE FROM parent WHERE id BETWEEN 50 AND 549");
    let all =
        "SELECT count(*), sum(length(note))::bigint, sum(n)::bigint, max(id), min(id) FROM child";
    let expected = rows(&mut client, all);
    let wall = WallClock;
    // Logs are cut when a tick and a sync of the store have passed.
    wall.sleep(Duration::from_secs(5));
    let mut states = 0;
    let installed = |cluster: &Cluster| cluster.metric(2, "braid_cluster_states_installed_total");
    for millis in [1_000, 2_300] {
        cluster.run(2);
        wall.sleep(Duration::from_millis(millis));
        states += installed(&cluster);
        cluster.kill(2);
    }
    cluster.run(2);
    let split = ranges(&mut client, "SHOW RANGES").len();
    println!("{split} ranges, {states} states and then {}", installed(&cluster));
    assert!(split > 1 && states + installed(&cluster) > 0);
    // Of ranges that it has not been given yet it has a vote.
    cluster.kill(0);
    let mut client = cluster.client(2);
    assert_eq!(rows(&mut client, all), expected);
    run(&mut client, "UPDATE child SET note = 'third' WHERE n = 1");
    assert_eq!(rows(&mut client, "SELECT count(*) FROM child WHERE note = 'third'"), [[49]]);
}

/// Bytes of all ranges in the files of a node.
fn stored(client: &mut Client) -> u64 {
    let bytes = |range: Vec<String>| range[5].parse::<u64>().expect("a number");
    ranges(client, "SHOW RANGES").into_iter().map(bytes).sum()
}

/// What was deleted leaves the files of all nodes.
fn room_comes_back(clients: &mut [Client], most: u64) {
    let wall = WallClock;
    let until = wall.monotonic_nanos() + PATIENCE.as_nanos() as u64;
    loop {
        let all: Vec<u64> = clients.iter_mut().map(stored).collect();
        if all.iter().all(|bytes| *bytes < most) {
            return;
        }
        assert!(wall.monotonic_nanos() < until, "{all:?} bytes are there, not less than {most}");
        wall.sleep(Duration::from_millis(200));
    }
}

#[test]
fn a_change_of_the_schema_is_known_everywhere() {
    let cluster = Cluster::start(3 * PATIENCE, &[]);
    let mut clients: Vec<Client> = (0..3).map(|n| cluster.client(n)).collect();
    run(&mut clients[0], "CREATE TABLE t (id serial PRIMARY KEY, c0 bigint)");
    for n in 0..6 {
        let (here, next) = (n % 3, (n + 1) % 3);
        run(&mut clients[next], &format!("INSERT INTO t (c{n}) VALUES ({n})"));
        let column = n + 1;
        let sql = format!("BEGIN; ALTER TABLE t ADD COLUMN c{column} bigint; COMMIT");
        run(&mut clients[here], &sql);
        let sql = format!("SELECT count(*), count(c{column}) FROM t");
        assert_eq!(rows(&mut clients[next], &sql), [[n as i64 + 1, 0]]);
    }
    run(&mut clients[1], "BEGIN; CREATE UNIQUE INDEX by_c1 ON t (c1); COMMIT");
    assert_eq!(rows(&mut clients[2], "SELECT count(*) FROM t WHERE c1 = 1"), [[1]]);
    let twice = clients[0].batch_execute("INSERT INTO t (c1) VALUES (1)").expect_err("it is there");
    assert_eq!(twice.code().map(|code| code.code()), Some("23505"), "{twice}");
}

/// Where ranges begin, as this node shows them when it knows of so many.
fn borders(client: &mut Client, table: &str, count: usize) -> Vec<String> {
    let wall = WallClock;
    let until = wall.monotonic_nanos() + PATIENCE.as_nanos() as u64;
    loop {
        let shown = ranges(client, &format!("SHOW RANGES FROM TABLE {table}"));
        if shown.len() > count {
            return shown[1..].iter().map(|range| range[1].clone()).collect();
        }
        assert!(wall.monotonic_nanos() < until, "{shown:?}");
        wall.sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_table_is_parted_where_somebody_says() {
    let cluster = Cluster::start(3 * PATIENCE, &[]);
    let mut clients: Vec<Client> = (0..3).map(|n| cluster.client(n)).collect();
    run(
        &mut clients[0],
        "CREATE TABLE parent (id bigint PRIMARY KEY, note text);
         CREATE TABLE child (id bigint, n int, note text, PRIMARY KEY (id, n))
             INTERLEAVE IN PARENT parent ON DELETE CASCADE;
         CREATE TABLE down (name text, n int, PRIMARY KEY (name, n DESC))",
    );
    run(&mut clients[1], "ALTER TABLE parent SPLIT AT VALUES (100), (100 + 100)");
    for client in &mut clients {
        assert_eq!(borders(client, "parent", 2), ["/parent/100", "/parent/200"]);
    }
    // Once more, which is none; in front of a family, whichever of its tables names it; inside.
    run(&mut clients[2], "ALTER TABLE parent SPLIT AT VALUES (200)");
    run(&mut clients[2], "ALTER TABLE child SPLIT AT VALUES (150), (150, 7)");
    let parts = ["/parent/100", "/parent/150", "/parent/150/#/child/7", "/parent/200"];
    for client in &mut clients {
        assert_eq!(borders(client, "child", 4), parts);
    }
    // It is no part of a transaction.
    clients[0].batch_execute("BEGIN; INSERT INTO parent VALUES (1, 'gone')").expect("it begins");
    clients[0].batch_execute("ALTER TABLE down SPLIT AT VALUES ('m', 5)").expect("it is split");
    clients[0].batch_execute("ROLLBACK").expect("it ends");
    assert_eq!(borders(&mut clients[1], "down", 1), ["/down/'m'/5"]);
    run(&mut clients[1], "INSERT INTO down SELECT 'm', g FROM generate_series(1, 9) g");
    let near = "SELECT n::bigint FROM down WHERE name = 'm' AND n BETWEEN 4 AND 6 ORDER BY n DESC";
    assert_eq!(rows(&mut clients[2], near), [[6], [5], [4]]);
    // More ranges than anybody is told of at once.
    let many: Vec<String> = (1_000..1_100).map(|id| format!("({id})")).collect();
    run(&mut clients[2], &format!("ALTER TABLE parent SPLIT AT VALUES {}", many.join(",")));
    for (n, client) in clients.iter_mut().enumerate() {
        let (first, last) = (1_000 * n, 1_000 * n + 999);
        let all = format!("SELECT g, 'x' FROM generate_series({first}, {last}) g");
        run(client, &format!("INSERT INTO parent {all}"));
    }
    run(&mut clients[0], "INSERT INTO child SELECT 150, g, 'y' FROM generate_series(1, 20) g");
    for client in &mut clients {
        assert_eq!(rows(client, "SELECT count(*) FROM parent"), [[3_000]]);
        assert_eq!(rows(client, "SELECT count(*) FROM child WHERE id = 150"), [[20]]);
    }
    run(&mut clients[1], "DELETE FROM parent WHERE id BETWEEN 140 AND 1050");
    for client in &mut clients {
        assert_eq!(rows(client, "SELECT count(*) FROM parent"), [[2_089]]);
        assert_eq!(rows(client, "SELECT count(*) FROM child"), [[0]]);
    }
    run(&mut clients[0], "CREATE TABLE heap (n int)");
    for (sql, state) in [
        ("ALTER TABLE parent SPLIT AT VALUES (1, 2)", "42601"),
        ("ALTER TABLE parent SPLIT AT VALUES (NULL)", "23502"),
        ("ALTER TABLE parent SPLIT AT VALUES ('one')", "22P02"),
        ("ALTER TABLE parent SPLIT AT VALUES (id)", "42703"),
        ("ALTER TABLE nothing SPLIT AT VALUES (1)", "42P01"),
        ("ALTER TABLE heap SPLIT AT VALUES (1)", "0A000"),
        ("BEGIN READ ONLY; ALTER TABLE parent SPLIT AT VALUES (5)", "25006"),
    ] {
        let refused = clients[0].batch_execute(sql).expect_err(sql);
        assert_eq!(refused.code().map(|code| code.code()), Some(state), "{sql}: {refused}");
        clients[0].batch_execute("ROLLBACK").expect("it ends");
    }
}
