//! Opening the store, accepting connections, stopping.

use std::fmt;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use braid_env::fs::{DiskFs, FileSystem};
use braid_env::memory;
use braid_kv::KvError;
use braid_node::{Member, MemberError};
use braid_query::SpillDirectory;
use braid_sql::{Cause, Database, GeneralQueries};
use braid_types::{SqlError, SqlState};
use pgwire::messages::Message;

use crate::backends::{Backend, Backends, GREETINGS_MAX, Parked};
use crate::config::ServerConfig;
use crate::http;
use crate::metrics::Metrics;
use crate::pgwire::connection::{Connection, Pause, tell_and_close};
use crate::pgwire::errors::{Fatal, error_response};
use crate::pgwire::startup::{Greeting, Opening};
use crate::place::Place;
use crate::watch::{self, Interest, Watch};
use crate::workers::Workers;

/// Descriptors that are not connections: files of the store, the listeners, HTTP.
const OTHER_DESCRIPTORS: u64 = 200;
/// Keys that reclaiming looks at in a second.
const RECLAIM_BUDGET: usize = 8_192;
/// How often the GC threshold follows the clock, if the window is not shorter.
const GC_INTERVAL: Duration = Duration::from_secs(10);
/// How often it is asked whether a table has changed much.
const ANALYZE_INTERVAL: Duration = Duration::from_secs(2);
/// How often row deletion policies have their turn.
const EXPIRY_INTERVAL: Duration = Duration::from_secs(60);

/// Why a server did not start.
#[derive(Debug)]
pub enum StartError {
    /// The address is not on loopback, and there is no authentication yet.
    NotLoopback(SocketAddr),
    /// The port cannot be had.
    Listen(SocketAddr, std::io::Error),
    /// The store cannot be opened.
    Store(KvError),
    /// The node cannot be a member of a cluster.
    Member(MemberError),
    /// A node alone is not started where a node of a cluster has had its store.
    OfCluster(PathBuf),
    /// What a node alone has left cannot become the first of a cluster as it is.
    NotReady(String),
    /// The system catalog cannot be read or written.
    Catalog(SqlError),
    /// A setting that sessions cannot begin with.
    Setting(SqlError),
    /// The operating system refused a thread or another resource.
    System(std::io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::NotLoopback(address) => write!(
                f,
                "{address} is not a loopback address: there are no passwords and no TLS yet, so \
                 BraidDB listens on loopback only (try 127.0.0.1:{})",
                address.port()
            ),
            StartError::Listen(address, e) => write!(f, "cannot listen on {address}: {e}"),
            StartError::Store(e) => write!(f, "cannot open the store: {e}"),
            StartError::Member(e) => write!(f, "cannot be a member of the cluster: {e}"),
            StartError::OfCluster(dir) => write!(
                f,
                "{} holds the store of a node of a cluster, whose other files (the folder \
                 \"cluster\" beside it) are not there: what it has promised to the other nodes is \
                 lost, so it is started neither alone nor with --join. The other nodes have the \
                 rows; let a node with an empty directory join them",
                dir.display()
            ),
            StartError::NotReady(why) => {
                write!(f, "this node cannot become the first of a cluster yet: {why}")
            }
            StartError::Catalog(e) => write!(f, "cannot open the catalog: {e}"),
            StartError::Setting(e) => write!(f, "{e}"),
            StartError::System(e) => write!(f, "{e}"),
        }
    }
}

impl std::error::Error for StartError {}

/// A running node. Dropping it stops it.
pub struct Server {
    address: SocketAddr,
    http_address: Option<SocketAddr>,
    shared: Arc<Shared>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

/// What all threads of a server use.
pub(crate) struct Shared {
    pub(crate) place: Place,
    /// Bytes of the block cache and the memtables.
    pub(crate) memory_fixed: usize,
    pub(crate) database: Arc<Database>,
    pub(crate) backends: Arc<Backends>,
    pub(crate) watch: Watch,
    pub(crate) workers: Workers,
    /// As configured, or fewer if the system has not enough descriptors.
    connections_max: usize,
    pub(crate) metrics: Metrics,
    pub(crate) stopping: AtomicBool,
    /// A connection has fallen silent or ended since memory was given back last.
    pub(crate) rested: AtomicBool,
    pub(crate) config: ServerConfig,
}

impl Server {
    /// Opens the store and starts to listen. Returns when clients can connect.
    pub fn start(config: ServerConfig) -> Result<Server, StartError> {
        let cluster = config.cluster.listen.iter().chain(&config.cluster.members);
        let own = [Some(config.listen), config.http].into_iter().flatten();
        for address in own.chain(cluster.copied()) {
            if !address.ip().is_loopback() {
                return Err(StartError::NotLoopback(address));
            }
        }
        let listen = |a: SocketAddr| TcpListener::bind(a).map_err(|e| StartError::Listen(a, e));
        let listener = listen(config.listen)?;
        let http_listener = config.http.map(listen).transpose()?;

        let (place, memory_fixed) = Place::open(&config)?;
        let spill = spill_directory(&config).map_err(StartError::System)?;
        let general: Arc<dyn GeneralQueries> =
            braid_query::Engine::new(spill).map_err(StartError::Catalog)?;
        let database = place.database(&general, &config.data_dir)?;
        if config.safe_mode {
            database.cluster_settings().enter_safe_mode();
            tracing::warn!("safe mode: rules of DENY QUERY do not hold on this node");
        }
        database.set_defaults(config.settings.clone()).map_err(StartError::Setting)?;
        let import_dir = config.import_dir.clone();
        database.set_import_folder(import_dir.unwrap_or_else(|| config.data_dir.join("import")));

        let address = listener.local_addr().map_err(StartError::System)?;
        let http_address = http_listener.as_ref().and_then(|l| l.local_addr().ok());
        let shared = Arc::new(Shared {
            place,
            memory_fixed,
            database,
            backends: Arc::default(),
            watch: Watch::new().map_err(StartError::System)?,
            workers: Workers::default(),
            connections_max: affordable(config.connections_max),
            metrics: Metrics::default(),
            stopping: AtomicBool::new(false),
            rested: AtomicBool::new(false),
            config,
        });
        shared.database.set_backends(Arc::new(Signals(Arc::downgrade(&shared))));
        let mut threads = Vec::new();
        let watched = Arc::clone(&shared);
        threads.push(spawn("watch", move || watch::watch(&watched))?);
        let accept = Arc::clone(&shared);
        threads.push(spawn("accept", move || accept_loop(&listener, &accept))?);
        let gc = Arc::clone(&shared);
        threads.push(spawn("gc", move || gc_loop(&gc))?);
        let analyze = Arc::clone(&shared);
        threads.push(spawn("analyze", move || analyze_loop(&analyze))?);
        let expiry = Arc::clone(&shared);
        threads.push(spawn("expiry", move || expiry_loop(&expiry))?);
        if let Some(listener) = http_listener {
            let http = Arc::clone(&shared);
            threads.push(spawn("http", move || http::serve(listener, http))?);
        }
        if shared.place.member().is_some() {
            threads.extend(spawn_for_others(&shared)?);
        }
        shared.database.resume_jobs().map_err(StartError::Catalog)?;
        tracing::info!(%address, "listening for PostgreSQL clients (loopback only, no password)");
        Ok(Server { address, http_address, shared, threads })
    }

    /// Where PostgreSQL clients connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What clients make the node hold, and how much that may be.
    pub fn memory(&self) -> &Arc<memory::Pool> {
        self.shared.place.memory()
    }

    /// Where `/healthz` and `/metrics` answer.
    pub fn http_address(&self) -> Option<SocketAddr> {
        self.http_address
    }

    /// This node among the members of its cluster: number, address, whether it is connected.
    pub fn members(&self) -> Vec<(u64, SocketAddr, bool)> {
        let members = self.shared.place.member().map(Member::members).unwrap_or_default();
        members.into_iter().map(|(node, at, connected)| (node.0, at, connected)).collect()
    }

    /// The node's number in its cluster, if it is in one.
    pub fn node(&self) -> Option<u64> {
        self.shared.place.member().map(|member| member.node().0)
    }

    /// Stops accepting, cancels what runs, closes the store. Every acknowledged commit is durable
    /// already; closing only makes the next start quicker.
    pub fn stop(mut self) -> Result<(), KvError> {
        self.shut_down();
        // Connections hold the store until they notice that their socket is closed.
        for turn in 0..150 {
            if self.shared.backends.is_empty() {
                break;
            }
            if turn == 100 {
                // They were told, or do not read.
                self.shared.backends.cut_all();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        if let Err(error) = self.shared.database.keep_over_nodes() {
            tracing::warn!(%error, "advisory locks are free in a few seconds only");
        }
        if let Err(error) = self.shared.database.give_sequences_back() {
            tracing::warn!(%error, "sequences leave out what was reserved, as after a crash");
        }
        if let Err(error) = self.shared.database.end_schema_lease() {
            tracing::warn!(%error, "schema changes wait until this node's lease is over");
        }
        self.shared.place.drain();
        self.shared.place.close()
    }

    fn shut_down(&mut self) {
        if self.shared.stopping.swap(true, Ordering::SeqCst) {
            return;
        }
        for pid in self.shared.backends.pids() {
            watch::raise(&self.shared, pid, Cause::Shutdown);
        }
        self.shared.database.jobs().stop_all();
        // The accept loop sleeps in accept(): one more connection wakes it.
        let _woken = TcpStream::connect(self.address);
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a server thread panicked");
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shut_down();
    }
}

/// An empty directory for what does not fit into memory. What is in it belongs to statements that
/// died with an earlier process.
fn spill_directory(config: &ServerConfig) -> std::io::Result<SpillDirectory> {
    let path = config.data_dir.join("spill");
    match std::fs::remove_dir_all(&path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    DiskFs.create_dir_all(&path)?;
    Ok(SpillDirectory(Some(path)))
}

/// How many connections there can be, after asking the system for enough descriptors.
fn affordable(wanted: usize) -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let other = OTHER_DESCRIPTORS + GREETINGS_MAX as u64;
    let needed = wanted as u64 + other;
    let limit = getrlimit(Resource::Nofile);
    let Some(current) = limit.current.filter(|current| *current < needed) else { return wanted };
    let raised = limit.maximum.map_or(needed, |maximum| maximum.min(needed));
    let granted =
        match setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum: limit.maximum })
        {
            Ok(()) => raised,
            Err(_) => current,
        };
    let possible = usize::try_from(granted.saturating_sub(other)).unwrap_or(usize::MAX).max(1);
    if possible < wanted {
        tracing::warn!(
            wanted,
            possible,
            "fewer connections than configured: the system grants {granted} descriptors (ulimit -n)"
        );
    }
    possible.min(wanted)
}

/// What functions of one session do to another.
struct Signals(Weak<Shared>);

impl braid_sql::Backends for Signals {
    fn signal(&self, pid: i32, cause: Cause) -> bool {
        self.0.upgrade().is_some_and(|shared| {
            shared.backends.is_session(pid) && watch::raise(&shared, pid, cause)
        })
    }

    fn wake(&self, pid: i32) {
        if let Some(shared) = self.0.upgrade()
            && let Some(parked) = shared.backends.rouse(pid)
        {
            watch::wake(&shared, parked);
        }
    }
}

fn spawn(
    name: &str,
    body: impl FnOnce() + Send + 'static,
) -> Result<std::thread::JoinHandle<()>, StartError> {
    std::thread::Builder::new()
        .name(format!("braid-{name}"))
        .spawn(body)
        .map_err(StartError::System)
}

/// Threads that a node of a cluster has for what it shares with the others.
fn spawn_for_others(shared: &Arc<Shared>) -> Result<Vec<std::thread::JoinHandle<()>>, StartError> {
    type Body = fn(&Shared);
    let loops: [(&str, Body); 5] = [
        ("schema-lease", lease_loop),
        ("settings", settings_loop),
        ("held", held_loop),
        ("messages", messages_loop),
        ("calls", calls_loop),
    ];
    let begin = |(name, body): (&str, Body)| {
        let shared = Arc::clone(shared);
        spawn(name, move || body(&shared))
    };
    loops.into_iter().map(begin).collect()
}

/// Small work that comes again: the GC threshold, jobs, what nobody can reach, an idle memtable.
fn gc_loop(shared: &Shared) {
    const STEP: Duration = Duration::from_millis(200);
    let interval = shared.config.gc_window.clamp(5 * STEP, GC_INTERVAL);
    const LEFT_EVERY: u32 = 3;
    let (mut waited, mut seconds) = (Duration::ZERO, 0u32);
    while !shared.stopping.load(Ordering::Relaxed) {
        std::thread::sleep(STEP);
        waited += STEP;
        shared.place.engine().flush_if_idle();
        if waited >= interval {
            waited = Duration::ZERO;
            if let Err(e) = shared.place.advance_gc() {
                tracing::warn!(error = %e, "cannot move the GC threshold");
            }
            if let Err(e) = shared.database.go_on_with_jobs() {
                tracing::warn!(error = %e, "a job cannot go on");
            }
        }
        let second = waited.as_millis().is_multiple_of(1_000);
        if second {
            shared.database.count_minutes();
        }
        // What other nodes have left. In a cluster that rests it takes a remote call to know.
        seconds += u32::from(second);
        let looks = second && seconds.is_multiple_of(LEFT_EVERY);
        if looks && let Err(e) = shared.database.take_back_orphans() {
            tracing::warn!(error = %e, "cannot take back what another node has left");
        }
        if looks && let Err(e) = shared.database.drop_temporary_of_gone(false) {
            tracing::warn!(error = %e, "cannot drop temporary tables of nodes that are gone");
        }
        if second
            && let Some(readable) = shared.place.oldest_readable()
            && let Err(e) = shared.database.reclaim(readable, RECLAIM_BUDGET)
        {
            tracing::warn!(error = %e, "cannot reclaim what nobody can reach");
        }
    }
}

/// Keeps the node's schema lease.
fn lease_loop(shared: &Shared) {
    const PATIENCE: Duration = Duration::from_millis(200);
    while !shared.stopping.load(Ordering::Relaxed) {
        if let Err(e) = shared.database.keep_schema_lease(PATIENCE) {
            tracing::debug!(error = %e, "no schema lease can be got or given back now");
            std::thread::sleep(PATIENCE);
        }
    }
}

/// Follows changes of the cluster's settings by other nodes.
fn settings_loop(shared: &Shared) {
    const PATIENCE: Duration = Duration::from_millis(500);
    // So often the records are read without any news.
    const READ_EVERY: u32 = 20;
    let mut round = 0;
    while !shared.stopping.load(Ordering::Relaxed) {
        round = (round + 1) % READ_EVERY;
        if let Err(e) = shared.database.follow_cluster_settings(PATIENCE, round == 0) {
            tracing::debug!(error = %e, "newer cluster settings cannot be read now");
            std::thread::sleep(PATIENCE / 5);
        }
    }
}

/// Keeps what sessions hold among all nodes: advisory locks.
fn held_loop(shared: &Shared) {
    const STEP: Duration = Duration::from_millis(200);
    while !shared.stopping.load(Ordering::Relaxed) {
        std::thread::sleep(STEP);
        if let Err(e) = shared.database.keep_over_nodes() {
            tracing::debug!(error = %e, "what sessions hold cannot be kept or given back now");
        }
    }
}

/// Answers what other nodes ask of this one's sessions and jobs.
fn calls_loop(shared: &Shared) {
    const PATIENCE: Duration = Duration::from_millis(200);
    while !shared.stopping.load(Ordering::Relaxed) {
        shared.database.serve_calls(PATIENCE);
    }
}

/// Hears what sessions of other nodes have said: NOTIFY.
fn messages_loop(shared: &Shared) {
    const PATIENCE: Duration = Duration::from_millis(500);
    while !shared.stopping.load(Ordering::Relaxed) {
        if let Err(e) = shared.database.follow_messages(PATIENCE) {
            tracing::debug!(error = %e, "notifications cannot be read now");
            std::thread::sleep(PATIENCE / 5);
        }
    }
}

/// Does something again and again, each time after so long, until the server stops.
fn every(shared: &Shared, interval: Duration, mut work: impl FnMut(&dyn Fn() -> bool)) {
    const STEP: Duration = Duration::from_millis(500);
    let ending = || shared.stopping.load(Ordering::Relaxed);
    let mut waited = Duration::ZERO;
    while !ending() {
        std::thread::sleep(STEP);
        waited += STEP;
        if waited >= interval {
            waited = Duration::ZERO;
            work(&ending);
        }
    }
}

/// Keeps statistics of tables as new as plans need them. Long work has a thread of its own.
fn analyze_loop(shared: &Shared) {
    every(shared, ANALYZE_INTERVAL, |ending| {
        if let Err(e) = shared.database.analyze_changed(ending) {
            tracing::warn!(error = %e, "cannot analyze a table");
        }
    });
}

/// Takes rows away that row deletion policies find too old.
fn expiry_loop(shared: &Shared) {
    every(shared, EXPIRY_INTERVAL, |ending| {
        if let Err(e) = shared.database.expire_rows(ending) {
            tracing::warn!(error = %e, "cannot delete rows that are too old");
        }
    });
}

/// Accepts connections; who they are is asked elsewhere.
fn accept_loop(listener: &TcpListener, shared: &Arc<Shared>) {
    let mut secrets = braid_env::random::Random::from_entropy();
    // Out of descriptors, accept() fails at once and for ever. This one is given up for a moment
    // then, to accept a client and tell it.
    let mut spare = listener.try_clone().ok();
    loop {
        let accepted = listener.accept();
        if shared.stopping.load(Ordering::SeqCst) {
            return;
        }
        match accepted {
            Ok((socket, _)) => admit(socket, secrets.next_u64() as i32, shared),
            Err(e) => {
                tracing::warn!(error = %e, "cannot accept a connection");
                match spare.take() {
                    Some(held) => {
                        drop(held);
                        // Whoever comes may come much later.
                        let accepted = listener.accept();
                        if shared.stopping.load(Ordering::SeqCst) {
                            return;
                        }
                        spare = listener.try_clone().ok();
                        match accepted {
                            Ok((socket, _)) if spare.is_some() => {
                                admit(socket, secrets.next_u64() as i32, shared);
                            }
                            Ok((socket, _)) => {
                                turn_away(&socket, "the server has no descriptor for this client");
                                hear_out(&socket);
                            }
                            Err(e) => tracing::warn!(error = %e, "cannot accept a connection"),
                        }
                    }
                    None => std::thread::sleep(Duration::from_millis(50)),
                }
                spare = spare.or_else(|| listener.try_clone().ok());
            }
        }
    }
}

/// Registers a new socket and has it watched. Whoever has kept silent longest must go if there
/// are too many that have not said who they are.
fn admit(socket: TcpStream, secret: i32, shared: &Arc<Shared>) {
    let registration = shared.backends.admit(socket, secret, shared);
    let backend = Arc::clone(&registration.backend);
    let parked = Greeting::new(registration, shared.config.eager_wait).and_then(|greeting| {
        let parked = Parked::Greeting(Box::new(greeting));
        let (pid, speech) = (backend.pid, Interest::Speech);
        shared.backends.park(pid, parked, |b| shared.watch.add(pid, &b.socket, speech))
    });
    if let Err(e) = parked {
        tracing::warn!(error = %e, "cannot set up a connection");
    }
    while let Some(Parked::Greeting(oldest)) = shared.backends.surplus_greeting() {
        let socket = &oldest.registration.backend.socket;
        turn_away(socket, "too many clients connect at the same time");
    }
}

/// Tells a client that has not spoken yet that it cannot be served.
fn turn_away(socket: &TcpStream, why: &str) {
    let e = SqlError::new(SqlState("53300"), why.to_string());
    let mut out = bytes::BytesMut::new();
    let told = error_response("FATAL", &e)
        .encode(&mut out)
        .map_err(std::io::Error::other)
        .and_then(|()| socket.set_nonblocking(true))
        .and_then(|()| (&mut &*socket).write_all(&out));
    if let Err(e) = told {
        tracing::debug!(error = %e, "a client left before it was turned away");
    }
}

/// Takes what a client is saying before its socket is closed: unread, it would make the system
/// throw away what the client was told.
fn hear_out(socket: &TcpStream) {
    const PATIENCE: Duration = Duration::from_millis(20);
    let heard = socket
        .shutdown(std::net::Shutdown::Write)
        .and_then(|()| socket.set_nonblocking(false))
        .and_then(|()| socket.set_read_timeout(Some(PATIENCE)))
        .and_then(|()| (&mut &*socket).read(&mut [0; 1024]));
    if let Err(e) = heard {
        tracing::debug!(error = %e, "a client that was turned away said nothing");
    }
}

/// Serves a connection that is spoken to until it is silent again. A panic ends this connection
/// only; its transaction is rolled back.
pub(crate) fn resume(parked: Parked, shared: &Arc<Shared>) {
    let body = std::panic::AssertUnwindSafe(|| converse(parked, shared));
    match std::panic::catch_unwind(body) {
        Ok(Ok(())) => shared.rested.store(true, Ordering::Relaxed),
        Ok(Err(Fatal::Disconnected(e))) => tracing::debug!(error = %e, "a client has left"),
        Ok(Err(Fatal::Told(e))) => tracing::debug!(error = %e, "connection ended"),
        Err(_) => {
            shared.metrics.connection_panics.add(1);
            tracing::error!("a connection's thread panicked; the connection is closed");
        }
    }
}

fn converse(parked: Parked, shared: &Arc<Shared>) -> Result<(), Fatal> {
    let mut connection = match parked {
        Parked::Session(connection) => connection,
        Parked::Greeting(greeting) => match greet(*greeting, shared)? {
            Some(connection) => connection,
            None => return Ok(()),
        },
    };
    let backend = Arc::clone(connection.backend());
    let arm = |interest| shared.watch.arm(backend.pid, &backend.socket, interest);
    arm(Interest::Departure).map_err(Fatal::Disconnected)?;
    match connection.serve(&shared.workers)? {
        Pause::End => Ok(()),
        Pause::Silence => {
            connection.rest();
            let parked = Parked::Session(connection);
            let kept = shared.backends.park(backend.pid, parked, |_| arm(Interest::Speech));
            kept.map_err(Fatal::Disconnected)?;
            // Something to tell may have come while nobody could take the connection.
            if let Some(parked) = shared.backends.roused(backend.pid) {
                watch::wake(shared, parked);
            }
            Ok(())
        }
    }
}

/// Listens to a client that has not said who it is; a session, if it wants one.
fn greet(mut greeting: Greeting, shared: &Arc<Shared>) -> Result<Option<Box<Connection>>, Fatal> {
    let backend = Arc::clone(&greeting.registration.backend);
    if backend.interrupt.cause().is_some() {
        tracing::debug!(pid = backend.pid, "a client did not say who it is in time");
        return Ok(None);
    }
    match greeting.listen() {
        Ok(Opening::Session(parameters)) => {
            let max = shared.connections_max;
            let database = Arc::clone(&shared.database);
            let opened = Connection::open(greeting, parameters, database, &shared.backends, max)?;
            shared.metrics.connections_opened.add(u64::from(opened.is_some()));
            Ok(opened)
        }
        Ok(Opening::Cancel { pid, secret }) => {
            shared.backends.cancel(pid, secret);
            Ok(None)
        }
        Ok(Opening::Silence) => {
            let parked = Parked::Greeting(Box::new(greeting));
            let arm = |b: &Backend| shared.watch.arm(b.pid, &b.socket, Interest::Speech);
            shared.backends.park(backend.pid, parked, arm).map_err(Fatal::Disconnected)?;
            Ok(None)
        }
        Ok(Opening::Gone) => Ok(None),
        Err(Fatal::Told(e)) => {
            tell_and_close(&mut greeting.wire, &e)?;
            Ok(None)
        }
        Err(e) => Err(e),
    }
}
