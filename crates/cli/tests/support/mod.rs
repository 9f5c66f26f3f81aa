//! A node in its own process, for tests that need the real binary.
#![allow(dead_code, reason = "every test file uses another part")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use parking_lot::Mutex;
use postgres::{Client, NoTls};

/// A node in its own process; killed without warning when dropped.
pub struct Node {
    process: Mutex<Child>,
    /// Where PostgreSQL clients connect.
    pub url: String,
}

impl Node {
    /// Starts a node on a directory and waits until clients can connect.
    pub fn start(data: &Path) -> Node {
        Node::start_with(data, Stdio::null())
    }

    /// As [`Node::start`]; what the node logs goes there.
    pub fn start_with(data: &Path, log: Stdio) -> Node {
        Node::start_as(data, log, &["--http", "off"])
    }

    /// As [`Node::start_with`], with more arguments.
    pub fn start_as(data: &Path, log: Stdio, arguments: &[&str]) -> Node {
        Node::run(Command::new(Node::binary()), data, log, arguments)
    }

    /// As [`Node::start_as`], in a process that may have so many descriptors and no more.
    pub fn start_limited(descriptors: u64, data: &Path, log: Stdio, arguments: &[&str]) -> Node {
        let mut command = Command::new("prlimit");
        command.arg(format!("--nofile={descriptors}:{descriptors}")).arg(Node::binary());
        Node::run(command, data, log, arguments)
    }

    fn binary() -> String {
        // A release build is of another kind than this test; `BRAID_BINARY` names it.
        std::env::var("BRAID_BINARY").unwrap_or_else(|_| env!("CARGO_BIN_EXE_braid").to_string())
    }

    fn run(mut command: Command, data: &Path, log: Stdio, arguments: &[&str]) -> Node {
        let mut process = command
            .args(["start", "--listen", "127.0.0.1:0", "--data"])
            .arg(data)
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .expect("the binary starts");
        let output = process.stdout.take().expect("stdout is piped");
        let mut lines = BufReader::new(output).lines();
        let url = loop {
            let line = lines.next().expect("the node says where it listens").expect("text");
            if let Some(url) = line.trim().strip_prefix("SQL") {
                break url.trim().to_string();
            }
        };
        // Somebody has to read what else the node prints.
        std::thread::Builder::new()
            .spawn(move || lines.for_each(drop))
            .expect("a thread can be started");
        Node { process: Mutex::new(process), url }
    }

    /// Its number with the operating system.
    pub fn pid(&self) -> u32 {
        self.process.lock().id()
    }

    /// A new connection.
    pub fn client(&self) -> Client {
        Client::connect(&self.url, NoTls).expect("the node accepts clients")
    }

    /// Asks it to end, and waits until it has.
    #[allow(dead_code, reason = "not every test ends nodes in order")]
    pub fn terminate(&self) {
        let pid = self.pid().to_string();
        let told = Command::new("kill").args(["-TERM", &pid]).status();
        assert!(told.expect("kill is there").success());
        self.process.lock().wait().expect("the process ends");
    }

    /// kill -9, and wait until the process is gone.
    pub fn kill(&self) {
        let mut process = self.process.lock();
        process.kill().expect("SIGKILL can be sent");
        process.wait().expect("the process ends");
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Rows of TPC-C for so many small warehouses: 200 items, 30 customers and orders in each district.
pub fn small_tpcc(warehouses: u32) -> String {
    let w = format!("generate_series(1, {warehouses}) AS w(w)");
    let d = format!("{w}, generate_series(1, 10) AS g(d)");
    format!(
        "INSERT INTO item SELECT i, i, 'item ' || i, 1 + i % 90, 'data'
            FROM generate_series(1, 200) AS g(i);
        INSERT INTO warehouse
            SELECT w, 'w', 's', 's', 'c', 'st', 'zip', 0.1, 300000 FROM {w};
        INSERT INTO district
            SELECT w, d, 'd', 's', 's', 'c', 'st', 'zip', 0.1, 30000, 31 FROM {d};
        INSERT INTO customer SELECT w, d, c, 'f' || c, 'OE', 'BARBARBAR', 's', 's', 'c', 'st',
            'zip', 'phone', now()::timestamp, CASE WHEN c % 3 = 0 THEN 'BC' ELSE 'GC' END, 50000,
            0.1, -10, 10, 1, 0, 'data'
            FROM {d}, generate_series(1, 30) AS h(c);
        INSERT INTO stock SELECT w, i, 50, 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 0, 0, 0,
            'data' FROM {w}, generate_series(1, 200) AS g(i);
        INSERT INTO orders SELECT w, d, o, o, now()::timestamp, NULL, 1, 1
            FROM {d}, generate_series(1, 30) AS h(o);
        INSERT INTO order_line SELECT w, d, o, 1, o, 1, NULL, 5, 1.5, 'x'
            FROM {d}, generate_series(1, 30) AS h(o);
        INSERT INTO new_order SELECT w, d, o FROM {d}, generate_series(20, 30) AS h(o)"
    )
}
