//! Opening the store, accepting connections, stopping.

use std::fmt;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use braid_env::clock::WallClock;
use braid_env::fs::DiskFs;
use braid_kv::{KvError, Store, StoreOptions};
use braid_sql::Database;
use braid_types::{SqlError, SqlState};

use crate::cancel::Connections;
use crate::config::ServerConfig;
use crate::http;
use crate::metrics::Metrics;
use crate::pgwire::connection::{serve, tell_and_close};
use crate::pgwire::errors::Fatal;
use crate::pgwire::startup::{self, Opening};
use crate::pgwire::wire::Wire;

/// Stack of a connection's thread. Expressions are evaluated recursively, up to the depth limit
/// of the parser.
const STACK_BYTES: usize = 8 << 20;
/// How often the GC threshold follows the clock.
const GC_INTERVAL: Duration = Duration::from_secs(10);

/// Why a server did not start.
#[derive(Debug)]
pub enum StartError {
    /// The address is not on loopback, and there is no authentication yet.
    NotLoopback(SocketAddr),
    /// The port cannot be had.
    Listen(SocketAddr, std::io::Error),
    /// The store cannot be opened.
    Store(KvError),
    /// The system catalog cannot be read or written.
    Catalog(SqlError),
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
            StartError::Catalog(e) => write!(f, "cannot open the catalog: {e}"),
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
    pub(crate) store: Arc<Store>,
    pub(crate) database: Arc<Database>,
    pub(crate) connections: Arc<Connections>,
    pub(crate) metrics: Metrics,
    pub(crate) stopping: AtomicBool,
    config: ServerConfig,
}

impl Server {
    /// Opens the store and starts to listen. Returns when clients can connect.
    pub fn start(config: ServerConfig) -> Result<Server, StartError> {
        for address in [Some(config.listen), config.http].into_iter().flatten() {
            if !address.ip().is_loopback() {
                return Err(StartError::NotLoopback(address));
            }
        }
        let listen = |a: SocketAddr| TcpListener::bind(a).map_err(|e| StartError::Listen(a, e));
        let listener = listen(config.listen)?;
        let http_listener = config.http.map(listen).transpose()?;

        let mut options =
            StoreOptions::new(DiskFs::shared(), config.data_dir.clone(), Arc::new(WallClock));
        options.gc_window = config.gc_window;
        options.engine.row_class = braid_keys::row_class;
        if let Some(bytes) = config.cache_bytes {
            options.engine.block_cache_size = bytes;
        }
        let store = Store::open(options).map_err(StartError::Store)?;
        let general =
            braid_query::Engine::new(braid_query::DEFAULT_MEMORY).map_err(StartError::Catalog)?;
        let database = Database::open(Arc::clone(&store), general).map_err(StartError::Catalog)?;

        let address = listener.local_addr().map_err(StartError::System)?;
        let http_address = http_listener.as_ref().and_then(|l| l.local_addr().ok());
        let shared = Arc::new(Shared {
            store,
            database,
            connections: Arc::default(),
            metrics: Metrics::default(),
            stopping: AtomicBool::new(false),
            config,
        });
        let mut threads = Vec::new();
        let accept = Arc::clone(&shared);
        threads.push(spawn("accept", move || accept_loop(&listener, &accept))?);
        let gc = Arc::clone(&shared);
        threads.push(spawn("gc", move || gc_loop(&gc))?);
        if let Some(listener) = http_listener {
            let http = Arc::clone(&shared);
            threads.push(spawn("http", move || http::serve(listener, http))?);
        }
        tracing::info!(%address, "listening for PostgreSQL clients (loopback only, no password)");
        Ok(Server { address, http_address, shared, threads })
    }

    /// Where PostgreSQL clients connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where `/healthz` and `/metrics` answer.
    pub fn http_address(&self) -> Option<SocketAddr> {
        self.http_address
    }

    /// Stops accepting, cancels what runs, closes the store. Every acknowledged commit is durable
    /// already; closing only makes the next start quicker.
    pub fn stop(mut self) -> Result<(), KvError> {
        self.shut_down();
        // Connections hold the store until they notice that their socket is closed.
        for _ in 0..100 {
            if self.shared.connections.len() == 0 {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        self.shared.store.engine().close().map_err(KvError::from)
    }

    fn shut_down(&mut self) {
        if self.shared.stopping.swap(true, Ordering::SeqCst) {
            return;
        }
        self.shared.connections.close_all();
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

fn spawn(
    name: &str,
    body: impl FnOnce() + Send + 'static,
) -> Result<std::thread::JoinHandle<()>, StartError> {
    std::thread::Builder::new()
        .name(format!("braid-{name}"))
        .stack_size(STACK_BYTES)
        .spawn(body)
        .map_err(StartError::System)
}

fn gc_loop(shared: &Shared) {
    const STEP: Duration = Duration::from_millis(200);
    let mut waited = Duration::ZERO;
    while !shared.stopping.load(Ordering::Relaxed) {
        std::thread::sleep(STEP);
        waited += STEP;
        if waited >= GC_INTERVAL {
            waited = Duration::ZERO;
            if let Err(e) = shared.store.advance_gc() {
                tracing::warn!(error = %e, "cannot move the GC threshold");
            }
        }
    }
}

fn accept_loop(listener: &TcpListener, shared: &Arc<Shared>) {
    let mut secrets = braid_env::random::Random::from_entropy();
    loop {
        let accepted = listener.accept();
        if shared.stopping.load(Ordering::SeqCst) {
            return;
        }
        let socket = match accepted {
            Ok((socket, _)) => socket,
            Err(e) => {
                // Out of descriptors, most likely; wait until some are closed.
                tracing::warn!(error = %e, "cannot accept a connection");
                std::thread::sleep(Duration::from_millis(50));
                continue;
            }
        };
        let secret = secrets.next_u64() as i32;
        let shared = Arc::clone(shared);
        if let Err(e) = spawn("client", move || converse(socket, secret, &shared)) {
            tracing::warn!(error = %e, "cannot start a thread for a connection");
        }
    }
}

/// A connection's thread. A panic ends this connection only; its transaction is rolled back.
fn converse(socket: TcpStream, secret: i32, shared: &Arc<Shared>) {
    let body = std::panic::AssertUnwindSafe(|| talk(socket, secret, shared));
    match std::panic::catch_unwind(body) {
        Ok(Ok(())) => {}
        Ok(Err(Fatal::Disconnected(e))) => tracing::debug!(error = %e, "a client has left"),
        Ok(Err(Fatal::Told(e))) => tracing::debug!(error = %e, "connection ended"),
        Err(_) => {
            shared.metrics.connection_panics.add(1);
            tracing::error!("a connection's thread panicked; the connection is closed");
        }
    }
}

fn talk(socket: TcpStream, secret: i32, shared: &Arc<Shared>) -> Result<(), Fatal> {
    socket.set_nodelay(true).map_err(Fatal::Disconnected)?;
    let second_handle = socket.try_clone().map_err(Fatal::Disconnected)?;
    let mut wire = Wire::new(socket);
    let parameters = match startup::open(&mut wire) {
        Ok(Opening::Session(parameters)) => parameters,
        Ok(Opening::Gone) => return Ok(()),
        Ok(Opening::Cancel { pid, secret }) => {
            shared.connections.cancel(pid, secret);
            return Ok(());
        }
        Err(Fatal::Told(e)) => return tell_and_close(&mut wire, &e),
        Err(e) => return Err(e),
    };
    let max = shared.config.connections_max;
    let Some(registration) = shared.connections.register(second_handle, secret, max) else {
        let e = SqlError::new(SqlState("53300"), "sorry, too many clients already")
            .with_hint(format!("At most {max} connections are open at once."));
        return tell_and_close(&mut wire, &e);
    };
    shared.metrics.connections_opened.add(1);
    serve(wire, Arc::clone(&shared.database), &registration, parameters)
}
