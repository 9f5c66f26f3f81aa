//! The clocks of other nodes, before much is read there.
//!
//! ```text
//!   reader begins   t0 |-- doubt --| what n2's clock shows when it is read from first
//!   n2's ranges                          come seconds later: t0 |------- doubt -------| limit
//!   n2 is asked for its clock at t0      t0 |-| doubt
//! ```
//!
//! What a node writes after its clock was seen came later than the reader. A scan goes from range
//! to range and comes to some nodes late; all that was written there meanwhile, up to the limit,
//! would be in doubt, and where others write all the time the scan would never come to its end. So
//! whoever is about to read several ranges asks those who serve them for their clocks, all at once.
//! Who does not answer soon is read from as if nothing had been asked.
//!
//! A reader who keeps its view for several statements cannot begin again once it has told somebody
//! what it saw. It asks all who may serve ranges *before* it has a read timestamp, and takes one
//! above what they show: nothing that they stamp later is in doubt then, however much later it
//! comes to it, wherever it is written, and whoever has a lease by then. What they have stamped
//! before is below. What a node says of its clock that has begun a moment ago does not count for
//! that: it may have stamped later times before.

use std::collections::BTreeSet;
use std::time::Duration;

use braid_env::clock::Hlc;
use braid_kv::{Spans, Tally, TxnId};
use braid_lsm::{CommitTs, KeySpan};
use braid_range::{Answer, Ask, NodeId, Request};

use crate::router::Router;
use crate::transport::Reply;
use crate::txns::SeenClock;

/// Clocks are waited for no longer than this.
const PATIENCE: Duration = Duration::from_millis(100);

impl Router {
    /// Asks those who serve a span for their clocks, if this reader has not done so.
    pub(crate) fn meet(&self, at: CommitTs, span: impl FnOnce() -> KeySpan) {
        if !self.txns.lock().is_to_meet(at) {
            return;
        }
        let span = span();
        let mut nodes = self.routes.lock().holders(&span);
        nodes.retain(|node| !self.txns.lock().has_met(at, *node));
        let clocks = self.clocks_of(nodes);
        self.txns.lock().meet(at, clocks);
    }

    /// A read timestamp above what the clocks of all showed who may serve ranges, after somebody
    /// has wanted one: what they stamp from then on is later, and was not there.
    pub(crate) fn settled(&self, txn: TxnId, old: CommitTs) -> CommitTs {
        let mut nodes = self.routes.lock().nodes().clone();
        if let Some(home) = self.options.home {
            nodes.remove(&home);
        }
        let clocks = self.clocks_of(nodes);
        let at = self.refresh(txn, old);
        self.txns.lock().meet(at, clocks);
        at
    }

    /// Whether a time of the own clock is above all that this node has ever stamped: an earlier
    /// process may have had it lifted by the bound.
    pub(crate) fn is_sure(&self, at: CommitTs) -> bool {
        Hlc::micros_of(at.0 - self.began.0) > self.options.max_clock_offset_micros
    }

    /// What the clocks of nodes show; of those that answer soon. The own one is above them then.
    fn clocks_of(&self, nodes: BTreeSet<NodeId>) -> Vec<SeenClock> {
        if nodes.is_empty() {
            return Vec::new();
        }
        let ask = |node: NodeId| {
            self.count_call(node);
            (node, Request::of_node(Ask::Clock))
        };
        let requests: Vec<(NodeId, Request)> = nodes.into_iter().map(ask).collect();
        let stop = Tally::stop_flag();
        let stop = stop.as_deref().unwrap_or(&self.never);
        let replies = self.transport.ask_all(&requests, PATIENCE, stop);
        let answered = requests.iter().zip(replies);
        let clocks = answered.filter_map(|((node, _), reply)| {
            let Reply { times, answer } = reply?;
            let sure = matches!(answer, Answer::Fine);
            Some(SeenClock { node: *node, clock: times.clock, sure })
        });
        clocks.inspect(|seen| self.hear(seen.clock)).collect()
    }
}
