//! What a server needs to start.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use braid_node::Locality;

/// Configuration of one node.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Directory of the store; created if missing.
    pub data_dir: PathBuf,
    /// Address for PostgreSQL clients. Loopback only, until there are passwords and TLS.
    pub listen: SocketAddr,
    /// Address for `/healthz` and `/metrics`; `None` = no HTTP. Loopback only.
    pub http: Option<SocketAddr>,
    /// Clients beyond this number are turned away with SQLSTATE 53300. Default 1,000.
    pub connections_max: usize,
    /// A client that has not said who it is after this time is disconnected. Default 10 seconds.
    pub startup_timeout: Duration,
    /// How long a thread looks for the next message of a client that has just been quick, before
    /// it sleeps; zero: never. Default 100 microseconds. It is processor time, of half of the
    /// processors at most, for answers that need not wait until a thread is awake.
    pub eager_wait: Duration,
    /// How far into the past `AS OF SYSTEM TIME` can read. Default 4 hours.
    pub gc_window: Duration,
    /// Block cache in bytes. Default 256 MiB, or a quarter of `memory_max` if that is less;
    /// RocksDB calls it the block cache, too.
    pub cache_bytes: Option<usize>,
    /// What the node may hold: cache, memtables, and what clients make it hold. Default: half of
    /// the machine's memory, or of the control group's.
    pub memory_max: Option<usize>,
    /// The folder that IMPORT reads files below. Default: `import` in the store's directory;
    /// CockroachDB calls it the external I/O directory.
    pub import_dir: Option<PathBuf>,
    /// How the node takes part in a cluster, if it does.
    pub cluster: ClusterConfig,
    /// Rules of DENY QUERY do not hold on this node.
    pub safe_mode: bool,
    /// Settings that sessions begin with, by name.
    pub settings: Vec<(String, String)>,
    /// Returns free memory to the system; called now and then. The allocator is the binary's
    /// choice.
    pub trim: Option<fn()>,
    /// Bytes that the process really has; asked often. `None` where it is not the node's alone.
    pub resident: Option<fn() -> usize>,
}

impl ServerConfig {
    /// The default ports on loopback, with the store in `data_dir`.
    pub fn new(data_dir: impl Into<PathBuf>) -> ServerConfig {
        ServerConfig {
            data_dir: data_dir.into(),
            listen: SocketAddr::from(([127, 0, 0, 1], 26500)),
            http: Some(SocketAddr::from(([127, 0, 0, 1], 26580))),
            connections_max: 1000,
            startup_timeout: Duration::from_secs(10),
            eager_wait: Duration::from_micros(100),
            gc_window: Duration::from_secs(4 * 3600),
            cache_bytes: None,
            memory_max: None,
            import_dir: None,
            cluster: ClusterConfig::default(),
            safe_mode: false,
            settings: Vec::new(),
            trim: None,
            resident: None,
        }
    }
}

/// How a node takes part in a cluster. It does if `listen` is given, or if it did before.
#[derive(Clone, Debug)]
pub struct ClusterConfig {
    /// Where it listens for the other members. Loopback only. Default: as at its first start.
    pub listen: Option<SocketAddr>,
    /// The first members in an order that is the same for all of them; or, for one that joins
    /// later,
    /// some members. Default: as at its first start.
    pub members: Vec<SocketAddr>,
    /// No two members' clocks differ by more. Default 250 ms.
    pub max_clock_offset: Duration,
    /// A range with more bytes is split. Default 256 MiB.
    pub max_range_bytes: u64,
    /// The log of a range with more bytes is cut though somebody who is away needs it. Default
    /// 64 MiB.
    pub max_log_bytes: u64,
    /// A member that was not heard of for so long is dead: others get its replicas. Default 5 min.
    pub dead_after: Duration,
    /// Where the node is: replicas of a range are far from each other. Default: as it has said
    /// before.
    pub locality: Option<Locality>,
}

impl Default for ClusterConfig {
    fn default() -> ClusterConfig {
        ClusterConfig {
            listen: None,
            members: Vec::new(),
            max_clock_offset: Duration::from_millis(250),
            max_range_bytes: 256 << 20,
            max_log_bytes: 64 << 20,
            dead_after: Duration::from_secs(300),
            locality: None,
        }
    }
}
