//! The nodes of `braid demo --nodes 3`: processes of their own, which the shell ends and starts.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use braid_env::clock::{Clock, WallClock};
use parking_lot::Mutex;
use postgres::{Client, NoTls};

use crate::CliResult;
use crate::shell::DemoNodes;

/// A node that serves nobody after this time does not come up.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(50);

struct Node {
    listen: SocketAddr,
    peers: SocketAddr,
    /// Whoever ends the demo ends them, too.
    child: Arc<Mutex<Option<Child>>>,
}

/// See the [module's page](self). Dropping it ends all of them.
pub(super) struct Nodes {
    directory: PathBuf,
    all: Vec<Node>,
}

impl Nodes {
    /// Starts so many, at this port and the following ones; 0: at free ones. Blocks until they
    /// serve clients.
    pub(super) fn start(count: usize, port: u16, directory: &Path) -> CliResult<Nodes> {
        if ![3, 5, 7, 9].contains(&count) {
            return Err(
                format!("a cluster has 3, 5, 7 or 9 nodes to begin with, not {count}").into()
            );
        }
        let at = |n: usize| match port {
            0 => 0,
            port => port.saturating_add(n as u16),
        };
        let mut held = Vec::new();
        let mut free = |port: u16| -> CliResult<SocketAddr> {
            let address = SocketAddr::from(([127, 0, 0, 1], port));
            let listener = TcpListener::bind(address).map_err(|e| format!("{address}: {e}"))?;
            let address = listener.local_addr()?;
            held.push(listener);
            Ok(address)
        };
        let mut all = Vec::new();
        for n in 0..count {
            let (listen, peers) = (free(at(n))?, free(at(count + n))?);
            all.push(Node { listen, peers, child: Arc::default() });
        }
        drop(held);
        let nodes = Nodes { directory: directory.to_path_buf(), all };
        nodes.end_with_the_demo();
        eprintln!("starting {count} nodes ..");
        for n in 0..count {
            nodes.run(n)?;
        }
        for n in 0..count {
            nodes.wait(n)?;
        }
        Ok(nodes)
    }

    /// All of them: a client takes the first one that answers.
    pub(super) fn url(&self) -> String {
        let all: Vec<String> = self.all.iter().map(|node| node.listen.to_string()).collect();
        format!("postgresql://root@{}/defaultdb", all.join(","))
    }

    fn run(&self, n: usize) -> CliResult {
        let node = &self.all[n];
        let data = self.directory.join(format!("n{}", n + 1));
        let log = self.directory.join(format!("n{}.log", n + 1));
        let log = std::fs::OpenOptions::new().create(true).append(true).open(log)?;
        let is_new = !data.exists();
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("start").arg("--data").arg(&data).args(["--http", "off"]);
        command.args(["--listen", &node.listen.to_string()]);
        if is_new {
            let peers: Vec<String> = self.all.iter().map(|node| node.peers.to_string()).collect();
            command.args(["--listen-peers", &node.peers.to_string(), "--join", &peers.join(",")]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        // Ctrl-C in the shell is for the statement that runs, not for them.
        let child = command.process_group(0).spawn()?;
        *node.child.lock() = Some(child);
        Ok(())
    }

    /// Until a node serves clients.
    fn wait(&self, n: usize) -> CliResult {
        let node = &self.all[n];
        let url = format!("postgresql://root@{}/defaultdb?connect_timeout=2", node.listen);
        let (clock, begun) = (WallClock, WallClock.monotonic_nanos());
        loop {
            let connected = TcpStream::connect(node.listen).is_ok();
            if connected && Client::connect(&url, NoTls).is_ok() {
                return Ok(());
            }
            let ended =
                node.child.lock().as_mut().and_then(|child| child.try_wait().ok().flatten());
            let late = clock.monotonic_nanos() - begun > PATIENCE.as_nanos() as u64;
            if ended.is_some() || late {
                let log = self.directory.join(format!("n{}.log", n + 1));
                return Err(format!("node {} does not come up:\n{}", n + 1, tail(&log)).into());
            }
            clock.sleep(LOOK_EVERY);
        }
    }

    /// SIGTERM and SIGHUP end the demo: its nodes are no children of the terminal and would stay.
    fn end_with_the_demo(&self) {
        let children: Vec<_> = self.all.iter().map(|node| node.child.clone()).collect();
        let directory = self.directory.clone();
        let watch = move || {
            use tokio::signal::unix::{SignalKind, signal};
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let Ok(runtime) = runtime else { return };
            runtime.block_on(async {
                let (Ok(mut terminate), Ok(mut hang_up)) =
                    (signal(SignalKind::terminate()), signal(SignalKind::hangup()))
                else {
                    return;
                };
                tokio::select! { _ = terminate.recv() => {} _ = hang_up.recv() => {} }
                children.iter().for_each(|child| end(&mut child.lock().take()));
                let _gone = std::fs::remove_dir_all(&directory);
                std::process::exit(143);
            });
        };
        if let Err(e) = std::thread::Builder::new().name("demo-signals".into()).spawn(watch) {
            eprintln!("nodes stay if this process is ended by a signal: {e}");
        }
    }

    fn at(&self, node: usize) -> CliResult<usize> {
        match (1..=self.all.len()).contains(&node) {
            true => Ok(node - 1),
            false => Err(format!("there are nodes 1 to {}", self.all.len()).into()),
        }
    }

    fn runs(&self, n: usize) -> bool {
        let mut child = self.all[n].child.lock();
        child.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None)))
    }
}

/// The last lines of a log.
fn tail(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(5)..].join("\n")
}

fn end(child: &mut Option<Child>) {
    if let Some(mut child) = child.take() {
        // It may have ended by itself.
        let _killed = child.kill();
        let _ended = child.wait();
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        self.all.iter().for_each(|node| end(&mut node.child.lock()));
    }
}

impl DemoNodes for Nodes {
    fn kill(&mut self, node: usize) -> CliResult<String> {
        let n = self.at(node)?;
        if !self.runs(n) {
            return Err(format!("node {node} does not run").into());
        }
        end(&mut self.all[n].child.lock());
        let left = (0..self.all.len()).filter(|n| self.runs(*n)).count();
        let majority = match left > self.all.len() / 2 {
            true => {
                "the others are a majority and go on; what it led is served again within seconds"
            }
            false => "the others are no majority: nothing is read or written until one is back",
        };
        Ok(format!("Node {node} is killed: {majority}."))
    }

    fn start(&mut self, node: usize) -> CliResult<String> {
        let n = self.at(node)?;
        if self.runs(n) {
            return Err(format!("node {node} runs").into());
        }
        self.run(n)?;
        let majority = (0..self.all.len()).filter(|n| self.runs(*n)).count() > self.all.len() / 2;
        if majority {
            self.wait(n)?;
        }
        Ok(format!("Node {node} is started."))
    }

    fn list(&mut self) -> CliResult<String> {
        let line = |n: usize| {
            let state = if self.runs(n) { "runs" } else { "does not run" };
            format!("{}  {}  {state}", n + 1, self.all[n].listen)
        };
        Ok((0..self.all.len()).map(line).collect::<Vec<_>>().join("\n"))
    }
}
