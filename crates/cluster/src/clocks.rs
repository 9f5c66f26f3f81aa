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

use std::time::Duration;

use braid_kv::Tally;
use braid_lsm::{CommitTs, KeySpan};
use braid_range::{Ask, NodeId, Request};

use crate::router::Router;

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
        if nodes.is_empty() {
            return;
        }
        let ask = |node: NodeId| (node, Request::of_node(Ask::Clock));
        let requests: Vec<(NodeId, Request)> = nodes.into_iter().map(ask).collect();
        let stop = Tally::stop_flag();
        let stop = stop.as_deref().unwrap_or(&self.never);
        let replies = self.transport.ask_all(&requests, PATIENCE, stop);
        for ((node, _), reply) in requests.iter().zip(replies) {
            let Some(reply) = reply else { continue };
            self.hear(reply.times.clock);
            self.txns.lock().observe(at, (*node, None), reply.times.clock);
        }
    }
}
