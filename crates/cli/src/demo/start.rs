//! Starting the demo: a node in this process, or a cluster of processes, and the shell.

use std::net::SocketAddr;
use std::path::Path;

use braid_server::{Server, ServerConfig};
use clap::Args;

use super::{load, nodes, tour};
use crate::shell::Shell;
use crate::start::url;
use crate::{CliResult, logs};

/// Arguments of `braid demo`.
#[derive(Args)]
pub(crate) struct DemoArguments {
    /// Port for PostgreSQL clients; 0 takes any free one. Of several nodes each takes the next one.
    #[arg(long, default_value_t = 26500)]
    port: u16,
    /// Port for /healthz and /metrics; 0 takes any free one. Nodes of a cluster have none.
    #[arg(long, default_value_t = 26580)]
    http_port: u16,
    /// A cluster of so many nodes, each a process: 3, 5, 7 or 9. \kill 2 and \start 2 in the shell
    /// end one and start it again.
    #[arg(long, default_value_t = 1)]
    nodes: usize,
    /// Run these statements instead of opening a shell. Can be given several times.
    #[arg(short = 'c', long = "command")]
    commands: Vec<String>,
    /// Load TPC-C with this many warehouses, too.
    #[arg(long, default_value_t = 0)]
    warehouses: u32,
}

pub(crate) fn run(arguments: DemoArguments) -> CliResult {
    logs::init("warn");
    let directory = tempfile::Builder::new().prefix("braid-demo-").tempdir()?;
    if arguments.nodes > 1 {
        return run_cluster(&arguments, directory.path());
    }
    let mut config = ServerConfig::new(directory.path().join("store"));
    config.listen = SocketAddr::from(([127, 0, 0, 1], arguments.port));
    config.http = Some(SocketAddr::from(([127, 0, 0, 1], arguments.http_port)));
    let server = Server::start(config)?;
    let url = url(server.address());
    load::all(&url, arguments.warehouses)?;
    if arguments.commands.is_empty() {
        println!("BraidDB demo: customers, orders, order_lines in a temporary store.");
        println!("  SQL      {url}");
        if let Some(http) = server.http_address() {
            println!("  metrics  http://{http}/metrics (a console follows in a later version)");
        }
        println!("{}", tour::HINTS);
    }
    let mut shell = Shell::connect(&url)?;
    shell.with_tour(tour::steps(false));
    shell.serve(&arguments.commands)?;
    drop(shell);
    server.stop()?;
    Ok(())
}

fn run_cluster(arguments: &DemoArguments, directory: &Path) -> CliResult {
    let nodes = nodes::Nodes::start(arguments.nodes, arguments.port, directory)?;
    let url = nodes.url();
    load::all(&url, arguments.warehouses)?;
    if arguments.commands.is_empty() {
        println!("BraidDB demo: a cluster of {} nodes of this machine.", arguments.nodes);
        println!("  SQL      {url}");
        println!("  logs     {}", directory.display());
        println!("{}{}", tour::HINTS, tour::CLUSTER_HINTS);
    }
    let mut shell = Shell::connect(&url)?;
    shell.with_tour(tour::steps(true));
    shell.belongs_to(Box::new(nodes));
    shell.serve(&arguments.commands)
}
