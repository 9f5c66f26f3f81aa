//! What one node's sessions' side asks that of another one: bytes there and back. What they mean
//! nobody here knows.
//!
//! ```text
//!   call ──► Frame::Call 7 ──► arrived ──► next ── a thread that may block ──► answer
//!        ◄── Frame::Called 7 ◄──────────────────────────────────────────────────┘
//! ```
//! A call or its answer may be lost, and a call may come twice: never by itself, but if its caller
//! says it again.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use braid_kv::NodeCall;
use braid_range::NodeId;
use bytes::Bytes;
use parking_lot::{Condvar, Mutex};

/// So many calls wait to be served; more are lost.
const ARRIVED_MAX: usize = 1_000;

/// The answer to one call: `Some(None)` if there will be none.
#[derive(Default)]
struct Waiting {
    answer: Mutex<Option<Option<Bytes>>>,
    filled: Condvar,
}

impl Waiting {
    fn fill(&self, answer: Option<Bytes>) {
        self.answer.lock().get_or_insert(answer);
        self.filled.notify_all();
    }
}

/// See the [module's page](self).
#[derive(Default)]
pub(crate) struct Calls {
    last: AtomicU64,
    open: Mutex<HashMap<u64, (NodeId, Arc<Waiting>)>>,
    arrived: Mutex<VecDeque<NodeCall>>,
    more: Condvar,
}

impl Calls {
    /// Makes a call that `send` brings on its way, if it can; blocks until it is answered, but not
    /// for longer than that.
    pub(crate) fn call(
        &self,
        node: NodeId,
        patience: Duration,
        send: impl FnOnce(u64) -> bool,
    ) -> Option<Bytes> {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let waiting = Arc::new(Waiting::default());
        self.open.lock().insert(number, (node, waiting.clone()));
        let answer = send(number).then(|| {
            let mut answer = waiting.answer.lock();
            waiting.filled.wait_while_for(&mut answer, |answer| answer.is_none(), patience);
            answer.take().flatten()
        });
        self.open.lock().remove(&number);
        answer.flatten()
    }

    /// A call has been answered.
    pub(crate) fn answered(&self, from: NodeId, number: u64, answer: Bytes) {
        if let Some((_, waiting)) = self.open.lock().get(&number).filter(|(node, _)| *node == from)
        {
            waiting.fill(Some(answer));
        }
    }

    /// A node will not answer any more.
    pub(crate) fn lose(&self, node: NodeId) {
        let open = self.open.lock();
        let lost = open.values().filter(|(asked, _)| *asked == node);
        lost.for_each(|(_, waiting)| waiting.fill(None));
    }

    /// A call has come.
    pub(crate) fn arrive(&self, call: NodeCall) {
        let mut arrived = self.arrived.lock();
        if arrived.len() < ARRIVED_MAX {
            arrived.push_back(call);
            self.more.notify_one();
        }
    }

    /// The next call that is to be served; blocks until there is one, but not for longer than that.
    pub(crate) fn next(&self, patience: Duration) -> Option<NodeCall> {
        let mut arrived = self.arrived.lock();
        self.more.wait_while_for(&mut arrived, |arrived| arrived.is_empty(), patience);
        arrived.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_answered_by_whom_it_was_made_to_or_by_nobody() {
        let calls = Calls::default();
        let body = Bytes::from_static;
        let answer = calls.call(NodeId(2), Duration::from_secs(9), |number| {
            calls.answered(NodeId(3), number, body(b"a stranger's"));
            calls.answered(NodeId(2), number + 1, body(b"another one's"));
            calls.answered(NodeId(2), number, body(b"its own"));
            calls.answered(NodeId(2), number, body(b"late"));
            true
        });
        assert_eq!(answer, Some(body(b"its own")));
        assert_eq!(calls.call(NodeId(2), Duration::from_secs(9), |_| false), None);
        let lost = calls.call(NodeId(2), Duration::from_secs(9), |_| {
            calls.lose(NodeId(2));
            true
        });
        assert_eq!(lost, None);
        assert_eq!(calls.call(NodeId(2), Duration::ZERO, |_| true), None);
        assert!(calls.open.lock().is_empty());
    }

    #[test]
    fn calls_are_served_in_order_and_too_many_are_lost() {
        let calls = Calls::default();
        assert_eq!(calls.next(Duration::ZERO), None);
        for number in 0..ARRIVED_MAX as u64 + 5 {
            calls.arrive(NodeCall { from: 2, number, body: Bytes::new() });
        }
        let served = std::iter::from_fn(|| calls.next(Duration::ZERO)).map(|call| call.number);
        assert!(served.eq(0..ARRIVED_MAX as u64));
    }
}
