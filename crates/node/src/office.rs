//! Where the roster is changed: nodes join, leave, and may stay after all.
//!
//! ```text
//!   join          a number, as a transaction over the roster's record
//!   decommission  leaving, as long as some range has a replica there; then gone, for ever
//!   recommission  a member again, unless it is gone
//! ```
//!
//! Every node can do it. What it has done others read within a second, and replicas begin to move:
//! nobody waits here for them. Whoever wants to wait asks again.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use braid_cluster::Router;
use braid_env::clock::Clock;
use braid_kv::{Coordinator, Isolation, KvError, KvResult, TxnOptions};
use braid_range::{Locality, NodeId, ShortNodes, Standing};
use bytes::Bytes;

use crate::frame::{Hello, Order, Purpose, Reply};
use crate::identity::Identity;
use crate::roster::{Roster, state_of};

/// A change of the roster is tried so often: others may change it at the same time.
const TRIES: usize = 10;

/// See the [module's page](self).
pub(crate) struct Office {
    pub(crate) identity: Arc<Identity>,
    pub(crate) coordinator: Arc<Coordinator>,
    pub(crate) router: Arc<Router>,
    pub(crate) clock: Arc<dyn Clock>,
    /// Where this node is, if it was told at its start.
    pub(crate) locality: Option<Locality>,
    /// The roster's key.
    pub(crate) key: Bytes,
    /// Tells the replicas whether this node's leases are to be given away.
    pub(crate) drain: Box<dyn Fn(bool) + Send + Sync>,
    /// To whom this node is connected.
    pub(crate) connected: Box<dyn Fn() -> Vec<NodeId> + Send + Sync>,
    /// Whose disks have little room.
    pub(crate) short: Arc<ShortNodes>,
}

fn failed(error: KvError) -> String {
    format!("the roster cannot be read or changed now: {error}")
}

impl Office {
    /// Does what somebody wants who is no node, or not yet. Blocks.
    pub(crate) fn serve(&self, hello: &Hello) -> Result<Reply, String> {
        let Some(cluster) = self.identity.cluster() else {
            return Err("this node has not joined the cluster itself yet".into());
        };
        match hello.purpose {
            Purpose::Talk => Err("it has no number, and does not ask for one".into()),
            Purpose::Join => {
                let address: SocketAddr =
                    hello.address.parse().map_err(|_| "it does not say where it listens")?;
                if hello.store == 0 || !address.ip().is_loopback() {
                    return Err(format!("{address} cannot join: only loopback addresses can"));
                }
                let (node, roster) =
                    self.change(|roster| roster.admit(hello.store, address).map(Some))?;
                tracing::info!(?node, %address, "a node has joined");
                Ok(Reply::Admitted { cluster, node, roster: roster.to_string() })
            }
            Purpose::Order(order) => self.carry_out(order),
        }
    }

    fn carry_out(&self, order: Order) -> Result<Reply, String> {
        let done = |text: String| Ok(Reply::Done { finished: true, text });
        match order {
            Order::Status => done(self.status()?),
            Order::Init => {
                self.change(|_| Ok(None))?;
                done(self.status()?)
            }
            Order::Drain => {
                (self.drain)(true);
                done(format!("{:?} gives its leases away", self.identity.node()))
            }
            Order::Undrain => {
                (self.drain)(false);
                done(format!("{:?} takes leases again", self.identity.node()))
            }
            Order::Replicas(replicas) => {
                let wanted = replicas as usize;
                self.change(|roster| Ok(roster.keep(wanted)?.then_some(self.identity.node())))?;
                done(format!("each range gets {replicas} replicas, one after the other"))
            }
            Order::Decommission(node) => self.decommission(node),
            Order::Recommission(node) => {
                self.change(|roster| {
                    let changed = roster.stand(node, Standing::Member)?;
                    Ok(changed.then_some(node))
                })?;
                done(format!("{node:?} is a member"))
            }
        }
    }

    fn decommission(&self, node: NodeId) -> Result<Reply, String> {
        let known = self.change(|_| Ok(None))?.1;
        if known.nodes.get(&node).is_some_and(|entry| entry.standing == Standing::Gone) {
            let text = format!("{node:?} is not let in any more");
            return Ok(Reply::Done { finished: true, text });
        }
        self.change(|roster| {
            let changed = roster.stand(node, Standing::Leaving)?;
            Ok(changed.then_some(node))
        })?;
        let has = self.router.replicas_on(node).map_err(failed)?;
        if has > 0 {
            let text = format!("{node:?} has replicas of {has} ranges");
            return Ok(Reply::Done { finished: false, text });
        }
        self.change(|roster| Ok(roster.stand(node, Standing::Gone)?.then_some(node)))?;
        let text = format!("{node:?} has nothing any more, and is not let in again");
        Ok(Reply::Done { finished: true, text })
    }

    /// A line for each node.
    fn status(&self) -> Result<String, String> {
        let roster =
            self.change(|_| Ok(None)).map_or_else(|_| self.identity.roster(), |(_, roster)| roster);
        let (connected, own) = ((self.connected)(), self.identity.node());
        let counts = self.router.replica_counts();
        let mut out = format!("replicas of each range: {}\n", roster.replicas);
        for (node, entry) in &roster.nodes {
            let is_there = *node == own || connected.contains(node);
            let state = state_of(entry, (is_there, self.short.has(*node)));
            let ranges = match entry.standing {
                Standing::Gone => String::new(),
                _ => match &counts {
                    Ok(counts) => {
                        format!(", {} replicas", counts.get(node).copied().unwrap_or(0))
                    }
                    Err(_) => ", replicas not known".into(),
                },
            };
            let place = match entry.locality.is_nowhere() {
                true => String::new(),
                false => format!(", {}", entry.locality),
            };
            out.push_str(&format!("{} {} {state}{ranges}{place}\n", node.0, entry.address));
        }
        Ok(out)
    }

    /// Reads the roster, and changes it if that is wanted; what came of it, and the roster as it is
    /// then. Who gets `None` has changed nothing, and is told of this node.
    fn change(
        &self,
        change: impl Fn(&mut Roster) -> Result<Option<NodeId>, String>,
    ) -> Result<(NodeId, Roster), String> {
        for _ in 0..TRIES {
            match self.try_change(&change) {
                Ok(done) => {
                    let (node, roster) = done?;
                    let noted = self.identity.take_roster(roster.clone());
                    noted.map_err(|e| format!("the roster cannot be noted: {e}"))?;
                    return Ok((node, roster));
                }
                Err(KvError::Retry { .. } | KvError::Deadlock { .. }) => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Err("others change the roster all the time: try again".into())
    }

    fn try_change(
        &self,
        change: &impl Fn(&mut Roster) -> Result<Option<NodeId>, String>,
    ) -> KvResult<Result<(NodeId, Roster), String>> {
        let options = TxnOptions { isolation: Isolation::Serializable, ..TxnOptions::default() };
        let txn = self.coordinator.begin(options)?;
        let mut roster = self.read(txn.get(&self.key)?)?;
        let before = roster.version;
        let node = match change(&mut roster) {
            Ok(node) => node.unwrap_or(self.identity.node()),
            Err(why) => return Ok(Err(why)),
        };
        if roster.version != before {
            txn.put(self.key.clone(), Bytes::from(roster.to_string()))?;
            txn.commit()?;
        }
        Ok(Ok((node, roster)))
    }

    /// The roster as a record says; without one it is as the cluster began.
    fn read(&self, record: Option<Bytes>) -> KvResult<Roster> {
        let Some(record) = record else {
            let founders = self.identity.founders();
            if founders.is_empty() {
                let why = "the roster is not there, though this node has joined";
                return Err(KvError::Unavailable(why.into()));
            }
            return Ok(Roster::of_founders(&founders));
        };
        let text = std::str::from_utf8(&record).ok();
        let damaged = || KvError::Unavailable("the roster in the cluster's data is damaged".into());
        text.and_then(Roster::read).ok_or_else(damaged)
    }

    /// Has the roster say where this node is.
    fn say_where(&self, at: &Locality) {
        let own = self.identity.node();
        match self.change(|roster| Ok(roster.locate(own, at).then_some(own))) {
            Ok(_) => tracing::info!(%at, "this node is there"),
            Err(error) => tracing::debug!(%error, "the others are not told where it is yet"),
        }
    }

    /// Looks every second whether the roster has changed; `told` hears of it. Until it is to end.
    pub(crate) fn follow(&self, ending: &AtomicBool, told: impl Fn(&Roster)) {
        let mut last = self.identity.roster();
        while !ending.load(Ordering::SeqCst) {
            self.clock.sleep(std::time::Duration::from_millis(500));
            if ending.load(Ordering::SeqCst) {
                return;
            }
            self.clock.sleep(std::time::Duration::from_millis(500));
            let read = || {
                let options = TxnOptions { read_only: true, ..TxnOptions::default() };
                let txn = self.coordinator.begin(options)?;
                let record = txn.get(&self.key)?;
                txn.commit()?;
                self.read(record)
            };
            if ending.load(Ordering::SeqCst) {
                return;
            }
            match read() {
                Ok(roster) => {
                    if let Err(error) = self.identity.take_roster(roster) {
                        tracing::error!(%error, "the roster cannot be noted");
                    }
                }
                Err(error) => tracing::debug!(%error, "the roster cannot be read now"),
            }
            let now = self.identity.roster();
            let known = now.nodes.get(&self.identity.node());
            if let (Some(at), Some(known)) = (&self.locality, known)
                && known.locality != *at
            {
                self.say_where(at);
            }
            if now != last {
                told(&now);
                last = now;
            }
        }
    }
}
