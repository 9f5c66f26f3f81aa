//! `braid node`: what an operator wants of the nodes of a cluster.
//!
//! It talks to any running node, at the address where that one listens for the others
//! (`--listen-peers`): that node does it, or says why not.

use std::net::SocketAddr;
use std::time::Duration;

use braid_env::clock::{Clock, WallClock};
use braid_node::{Order, order};
use braid_range::NodeId;
use clap::{Args, Subcommand};

use crate::CliResult;

/// What is not done yet is asked for again after so long.
const AGAIN: Duration = Duration::from_secs(1);

#[derive(Args)]
pub(crate) struct NodeArguments {
    /// Where a running node of the cluster listens for the others: its --listen-peers.
    #[arg(long, value_name = "ADDRESS", global = true)]
    peer: Option<SocketAddr>,
    #[command(subcommand)]
    wish: Wish,
}

#[derive(Subcommand)]
enum Wish {
    /// All nodes: number, address, state, how many replicas each has.
    Status,
    /// A node gives away all that it has, to the others; then it is not let in any more, for ever.
    /// Also for one that is lost. Waits until that is done.
    Decommission {
        /// Its number.
        node: u64,
    },
    /// A node that is being decommissioned stays after all, unless it is gone already.
    Recommission {
        /// Its number.
        node: u64,
    },
    /// Each range is to have so many replicas from now on: three at the beginning. With five it
    /// survives that two nodes are lost at once. They come and go by themselves, one after the
    /// other.
    Replicas {
        /// How many; not more than there are nodes.
        replicas: u64,
    },
    /// The node at --peer gives its leases to the others, takes none, and runs on.
    Drain,
    /// The node at --peer takes leases again.
    Undrain,
}

/// Arguments of `braid init`.
#[derive(Args)]
pub(crate) struct InitArguments {
    /// Where a node of the cluster listens for the others: its --listen-peers.
    #[arg(long, value_name = "ADDRESS")]
    peer: SocketAddr,
    /// Gives up after so many seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    wait_seconds: u64,
}

/// Waits until a majority of the members is there and serves; says who belongs to the cluster.
pub(crate) fn wait_until_founded(arguments: &InitArguments) -> CliResult {
    let begun = WallClock.monotonic_nanos();
    let patience = Duration::from_secs(arguments.wait_seconds);
    loop {
        match order(arguments.peer, Order::Init) {
            Ok((true, text)) => {
                println!("{}", text.trim_end());
                return Ok(());
            }
            other => {
                let waited = Duration::from_nanos(WallClock.monotonic_nanos() - begun);
                if waited >= patience {
                    let why = other.map_or_else(|e| e.to_string(), |(_, text)| text);
                    return Err(format!("{}: {}", arguments.peer, why.trim_end()).into());
                }
            }
        }
        WallClock.sleep(AGAIN);
    }
}

pub(crate) fn run(arguments: NodeArguments) -> CliResult {
    let peer = arguments.peer.ok_or("--peer ADDRESS says which node is asked")?;
    let wish = match arguments.wish {
        Wish::Status => Order::Status,
        Wish::Decommission { node } => Order::Decommission(NodeId(node)),
        Wish::Recommission { node } => Order::Recommission(NodeId(node)),
        Wish::Replicas { replicas } => Order::Replicas(replicas),
        Wish::Drain => Order::Drain,
        Wish::Undrain => Order::Undrain,
    };
    let mut last = String::new();
    loop {
        let (finished, text) = order(peer, wish).map_err(|e| format!("{peer}: {e}"))?;
        if text != last {
            println!("{}", text.trim_end());
            last = text;
        }
        if finished {
            return Ok(());
        }
        WallClock.sleep(AGAIN);
    }
}
