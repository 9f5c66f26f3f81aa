//! Ports for the nodes of a test.

use std::collections::BTreeSet;
use std::net::{SocketAddr, TcpListener};

use braid_env::clock::{Clock, WallClock};
use braid_env::random::Random;
use parking_lot::Mutex;

/// So many addresses where nobody listens, below those that the system gives to clients: none of
/// them takes one while its node is away. Nor does another test of this process: what was given
/// once is not given again. (Two tests that began in the same microsecond had the same ones.)
pub fn free_addresses(count: usize) -> Vec<SocketAddr> {
    static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
    let mut given = GIVEN.lock();
    let mut random = Random::seeded(WallClock.now_micros() ^ u64::from(std::process::id()));
    let any = |_| SocketAddr::from(([127, 0, 0, 1], 10_000 + random.below(20_000) as u16));
    let mut free = |at: &SocketAddr| given.insert(at.port()) && TcpListener::bind(at).is_ok();
    let found: Vec<SocketAddr> = (0..10_000).map(any).filter(|at| free(at)).take(count).collect();
    assert_eq!(found.len(), count, "ports are free");
    found
}
