//! `braid start`: a node in the foreground, until it gets SIGINT or SIGTERM.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use braid_range::Locality;
use braid_server::{ClusterConfig, Server, ServerConfig};
use clap::Args;

use crate::{CliResult, logs};

/// Arguments of `braid start`.
#[derive(Args)]
pub(crate) struct StartArguments {
    /// Directory of the store. Created if it does not exist.
    #[arg(long, default_value = "braid-data", env = "BRAID_DATA")]
    data: PathBuf,
    /// Address for PostgreSQL clients. Loopback only: there are no passwords and no TLS yet.
    #[arg(long, default_value = "127.0.0.1:26500")]
    listen: SocketAddr,
    /// Address for /healthz and /metrics; "off" for none.
    #[arg(long, default_value = "127.0.0.1:26580")]
    http: String,
    /// Clients beyond this number are turned away; the last three places are for root.
    #[arg(long, alias = "connections-max", default_value_t = 1000)]
    max_connections: usize,
    /// Seconds in which a new client must say who it is.
    #[arg(long, default_value_t = 10)]
    startup_timeout_seconds: u64,
    /// Microseconds for which a thread looks for the next message of a quick client before it
    /// sleeps; 0 for never.
    #[arg(long, default_value_t = 100)]
    eager_wait_micros: u64,
    /// How many seconds back AS OF SYSTEM TIME can read.
    #[arg(long, default_value_t = 4 * 3600)]
    gc_window_seconds: u64,
    /// What the node may hold in MiB: cache, memtables, and what clients make it hold. Half of the
    /// machine's memory, or of the control group's, unless given.
    #[arg(long, value_name = "MIB")]
    max_memory: Option<usize>,
    /// Block cache in MiB.
    #[arg(long)]
    cache_mib: Option<usize>,
    /// The folder that IMPORT reads files below; "import" in the store's directory unless given.
    #[arg(long, value_name = "DIR")]
    import_dir: Option<PathBuf>,
    #[command(flatten)]
    cluster: ClusterArguments,
    /// Rules of DENY QUERY do not hold on this node: for who cannot get in to end one.
    #[arg(long)]
    safe_mode: bool,
    /// A setting that sessions begin with, for instance log_min_duration_statement=100ms. May be
    /// given several times.
    #[arg(long = "set", value_name = "NAME=VALUE")]
    settings: Vec<String>,
}

/// How the node takes part in a cluster.
#[derive(Args)]
struct ClusterArguments {
    /// Makes the node a member of a cluster: where it listens for the other members. Loopback only:
    /// there is no TLS yet. Later starts need not say it.
    #[arg(long, value_name = "ADDRESS", requires = "join")]
    listen_peers: Option<SocketAddr>,
    /// Begins a cluster: the addresses of its first members, this one included, in the same order
    /// for each: 3, 5, 7 or 9. Or joins one that runs: addresses of some of its nodes. Later starts
    /// need not say it.
    #[arg(long, value_name = "ADDRESS,..", value_delimiter = ',', requires = "listen_peers")]
    join: Vec<SocketAddr>,
    /// A node of the cluster that was not heard of for so many seconds is dead: others get its
    /// replicas, if there are enough.
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    dead_after_seconds: u64,
    /// Where the node is, from the largest to the smallest, for instance region=eu,zone=a: replicas
    /// of a range are on nodes that are far from each other. Later starts need not say it.
    #[arg(long, value_name = "TIER=PLACE,..")]
    locality: Option<Locality>,
    /// No two members' clocks may differ by more.
    #[arg(long, value_name = "MILLIS", default_value_t = 250)]
    max_clock_offset_millis: u64,
    /// A range of the cluster with more MiB in files is split.
    #[arg(long, value_name = "MIB", default_value_t = 256)]
    max_range_mib: u64,
    /// The log of a range with more MiB is cut though a member that is away needs it: when it comes
    /// back it gets the state of the range instead.
    #[arg(long, value_name = "MIB", default_value_t = 64)]
    max_raft_log_mib: u64,
}

pub(crate) fn run(arguments: StartArguments) -> CliResult {
    logs::init("info");
    let mut config = ServerConfig::new(arguments.data);
    config.listen = arguments.listen;
    config.http = match arguments.http.as_str() {
        "off" => None,
        address => Some(address.parse().map_err(|e| format!("--http {address}: {e}"))?),
    };
    config.connections_max = arguments.max_connections;
    config.startup_timeout = Duration::from_secs(arguments.startup_timeout_seconds);
    config.eager_wait = Duration::from_micros(arguments.eager_wait_micros);
    config.gc_window = Duration::from_secs(arguments.gc_window_seconds);
    config.memory_max = arguments.max_memory.map(|mib| mib << 20);
    config.import_dir = arguments.import_dir;
    config.cluster = ClusterConfig {
        listen: arguments.cluster.listen_peers,
        members: arguments.cluster.join,
        max_clock_offset: Duration::from_millis(arguments.cluster.max_clock_offset_millis),
        max_range_bytes: arguments.cluster.max_range_mib << 20,
        max_log_bytes: arguments.cluster.max_raft_log_mib << 20,
        dead_after: Duration::from_secs(arguments.cluster.dead_after_seconds),
        locality: arguments.cluster.locality,
    };
    config.safe_mode = arguments.safe_mode;
    config.trim = Some(crate::allocator::return_free_memory);
    config.resident = Some(braid_env::memory::resident);
    config.cache_bytes = arguments.cache_mib.map(|mib| mib << 20);

    for setting in &arguments.settings {
        let (name, value) = setting
            .split_once('=')
            .ok_or_else(|| format!("--set {setting}: NAME=VALUE is expected"))?;
        config.settings.push((name.trim().to_string(), value.trim().to_string()));
    }

    let data_dir = config.data_dir.display().to_string();
    let server = Server::start(config)?;
    println!("BraidDB {} on {data_dir}", env!("CARGO_PKG_VERSION"));
    println!("  SQL      {}", url(server.address()));
    if let Some(http) = server.http_address() {
        println!("  health   http://{http}/healthz");
        println!("  metrics  http://{http}/metrics");
    }
    if let Some(node) = server.node() {
        let members = server.members();
        let own = members.iter().find(|(number, ..)| *number == node);
        if let Some((_, address, _)) = own {
            println!("  peers    {address} (member {node} of {})", members.len());
        }
    }
    println!("Listening on loopback only: passwords and TLS come later.");
    println!("Roles and privileges are kept and shown, but not enforced. Ctrl-C stops.");
    wait_for_signal()?;
    tracing::info!("stopping");
    server.stop()?;
    Ok(())
}

/// The connection URL for clients of this machine.
pub(crate) fn url(address: SocketAddr) -> String {
    format!("postgresql://root@{address}/defaultdb")
}

fn wait_for_signal() -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        Ok(())
    })
}
