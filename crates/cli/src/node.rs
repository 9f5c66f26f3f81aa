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
    /// The node at --peer gives its leases to the others, takes none, and runs on.
    Drain,
    /// The node at --peer takes leases again.
    Undrain,
}

pub(crate) fn run(arguments: NodeArguments) -> CliResult {
    let peer = arguments.peer.ok_or("--peer ADDRESS says which node is asked")?;
    let wish = match arguments.wish {
        Wish::Status => Order::Status,
        Wish::Decommission { node } => Order::Decommission(NodeId(node)),
        Wish::Recommission { node } => Order::Recommission(NodeId(node)),
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
