//! Orders of operators, from outside of the cluster: see [`Order`].

use std::net::SocketAddr;
use std::time::Duration;

use braid_range::NodeId;

use crate::frame::{FORMAT_VERSION, Hello, MAGIC, Order, Purpose, Reply, WireError, ask};
use crate::peers::connect;

/// A node may have to ask others that do not answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// Has a node carry an order out; whether all of it is done, and what it says. What is not done
/// goes
/// on by itself. Blocks.
///
/// # Errors
/// [`WireError::Refused`] says why it is not carried out; else the node cannot be talked to.
pub fn order(node: SocketAddr, order: Order) -> Result<(bool, String), WireError> {
    let mut stream = connect(node)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let hello = Hello {
        magic: MAGIC,
        version: FORMAT_VERSION,
        cluster: 0,
        node: NodeId(0),
        store: 0,
        address: String::new(),
        members: Vec::new(),
        purpose: Purpose::Order(order),
    };
    match ask(&mut stream, &hello)? {
        Reply::Done { finished, text } => Ok((finished, text)),
        _ => Err(WireError::Malformed),
    }
}
