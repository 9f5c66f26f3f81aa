//! Leases on locks: who has one, how others ask for it, and how locks under it become others.

use std::collections::BTreeSet;
use std::time::Duration;

use braid_kv::{Conflict, KvError, KvResult, LeaseHolder, LockItem, LockMany, Tally};
use braid_range::{Answer, Ask, LockAsk, NodeId, RangeId, Request};

use crate::router::{Router, Sent, unexpected};
use crate::routes::Route;

/// A node that is asked for a lease has so long to say whether it was given back: it knows.
const RECALL_PATIENCE: Duration = Duration::from_millis(200);
/// Until it is asked again.
const RECALL_PAUSE: Duration = Duration::from_millis(3);

impl Router {
    /// Who this process is to others. A router that is on no node is asked by nobody.
    pub(crate) fn lease_holder(&self) -> LeaseHolder {
        let node = self.options.home.map_or(0, |home| home.0);
        LeaseHolder { node, coordinator: self.options.coordinator }
    }

    /// Asks for a lease back; whether it was given back.
    pub(crate) fn recall_lease(&self, holder: LeaseHolder) -> bool {
        let LeaseHolder { node, coordinator } = holder;
        let request = Request::of_node(Ask::Recall { coordinator });
        self.count_call(NodeId(node));
        let stop = Tally::stop_flag();
        let stop = stop.as_deref().unwrap_or(&self.never);
        let reply = self.transport.ask(NodeId(node), &request, RECALL_PATIENCE, stop);
        if let Some(reply) = reply {
            // Whatever it has begun to read is older than what is done from here on.
            self.hear(reply.times.clock);
            let is_over = match reply.answer {
                Answer::Fine => true,
                // It had sent commits that rely on the lease.
                Answer::OfPredecessor { nodes } => self.fence(coordinator, &nodes),
                _ => false,
            };
            if is_over {
                return true;
            }
        }
        self.transport.pause(RECALL_PAUSE);
        false
    }

    /// A process is gone: has all nodes look at nothing any more that it has sent. Whether all do;
    /// then what it has not done by now will not happen. `others`: nodes that it may have asked,
    /// beside those that are known here.
    fn fence(&self, coordinator: u64, others: &[NodeId]) -> bool {
        let mut nodes: BTreeSet<NodeId> = others.iter().copied().collect();
        nodes.extend(self.transport.nodes().into_iter().chain(self.options.home));
        nodes.extend(self.routes.lock().nodes());
        let request = Request::of_node(Ask::Fence { coordinator });
        nodes.into_iter().all(|node| {
            self.count_call(node);
            let reply = self.transport.ask(node, &request, RECALL_PATIENCE, &self.never);
            reply.is_some_and(|reply| {
                // What it let through before is older than what is done from here on.
                self.hear(reply.times.clock);
                reply.answer == Answer::Fine
            })
        })
    }

    /// Says to all nodes that processes of this one are gone which were there before: their locks
    /// are free at once. Who does not hear it finds out later.
    pub fn tell_of_predecessors(&self, coordinators: &[u64]) {
        let mut nodes: BTreeSet<NodeId> = self.transport.nodes().into_iter().collect();
        nodes.extend(self.options.home);
        for coordinator in coordinators {
            let request = Request::of_node(Ask::Fence { coordinator: *coordinator });
            nodes.iter().for_each(|node| self.transport.tell(*node, &request));
        }
    }

    /// Takes locks beside what else a transaction asks for.
    pub(crate) fn lock_beside(&self, request: &LockMany) -> KvResult<()> {
        let mut left = request.items.clone();
        while let Some(item) = left.pop() {
            for (route, piece) in self.pieces_of(0, &item.target)? {
                let target = piece.target;
                let part = LockItem { target, ..item.clone() };
                if !self.lock_piece_beside(&route, request, &part)? {
                    left.push(part);
                }
            }
        }
        Ok(())
    }

    /// Whether the range had it.
    fn lock_piece_beside(
        &self,
        route: &Route,
        request: &LockMany,
        item: &LockItem,
    ) -> KvResult<bool> {
        let session = {
            let mut txns = self.txns.lock();
            txns.asks_for_locks(request.txn, route.range);
            txns.session(request.txn, route.range)
        };
        let request = LockMany { items: vec![item.clone()], ..request.clone() };
        let ask = LockAsk { request, step: 0, session };
        match self.send_stoppable(route, &|_| Ask::Lock(ask.clone()))? {
            Sent::Moved => Ok(false),
            Sent::Answer(Answer::Locked(locked)) => match locked.stop {
                Some(stop) => Err(stop.into()),
                None => self.has_locks_beside(&ask, (route.range, locked.session)).map(|()| true),
            },
            Sent::Answer(other) => Err(unexpected(other)),
        }
    }

    fn has_locks_beside(&self, ask: &LockAsk, there: (RangeId, u64)) -> KvResult<()> {
        let txn = ask.request.txn;
        let targets = ask.request.items.iter().map(|item| item.target.clone());
        let mut txns = self.txns.lock();
        txns.has_locks(txn, there, targets);
        // A request of its own has met another lease meanwhile.
        match txns.session(txn, there.0) == Some(there.1) {
            true => Ok(()),
            false => Err(KvError::Retry { conflict: Conflict::LocksLost }),
        }
    }
}
