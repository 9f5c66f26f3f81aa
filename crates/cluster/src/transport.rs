//! How requests reach nodes. Whoever carries them is elsewhere: a simulation, or sockets.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use braid_kv::{NodeCall, ShownNode};
use braid_range::{Answer, AnswerTimes, NodeId, Request};

use bytes::Bytes;

use crate::news::News;

/// What a node has answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// What its clock showed then.
    pub times: AnswerTimes,
    /// The answer.
    pub answer: Answer,
}

/// Carries requests to nodes and answers back. Both may be lost, late or doubled on the way: who
/// asks does so again, and names what must not happen twice.
pub trait Transport: Send + Sync {
    /// Asks a node, and blocks until it has answered. `None`: there was no answer for that long, or
    /// `stop` was raised.
    fn ask(
        &self,
        node: NodeId,
        request: &Request,
        patience: Duration,
        stop: &AtomicBool,
    ) -> Option<Reply>;

    /// Asks several nodes, or one of them several things, and blocks until all have answered; else
    /// as [`Transport::ask`]. One after the other, unless whoever carries them can do better.
    fn ask_all(
        &self,
        requests: &[(NodeId, Request)],
        patience: Duration,
        stop: &AtomicBool,
    ) -> Vec<Option<Reply>> {
        let ask = |(node, request): &(NodeId, Request)| self.ask(*node, request, patience, stop);
        requests.iter().map(ask).collect()
    }

    /// Whether this node does not reach a majority of the members.
    fn is_cut_off(&self) -> bool {
        false
    }

    /// Nodes that can be asked, beside those that are known from ranges.
    fn nodes(&self) -> Vec<NodeId> {
        Vec::new()
    }

    /// All nodes that the cluster ever had, by number, as far as somebody keeps that.
    fn shown_nodes(&self) -> Vec<ShownNode> {
        Vec::new()
    }

    /// Of some nodes the one that is nearest to this one; the first of those that are equally far
    /// away.
    fn nearest(&self, nodes: &[NodeId]) -> Option<NodeId> {
        nodes.first().copied()
    }

    /// Sends a request to a node, and does not wait for the answer.
    fn tell(&self, node: NodeId, request: &Request);

    /// What nodes tell each other of the cluster's settings; `None`: nobody does.
    fn news(&self) -> Option<&News> {
        None
    }

    /// Tells all nodes what this one knows of the settings; any word may be lost.
    fn spread_news(&self) {}

    /// As in [`braid_kv::Spans::call_node`].
    fn call(&self, _node: NodeId, _body: Bytes, _patience: Duration) -> Option<Bytes> {
        None
    }

    /// As in [`braid_kv::Spans::next_call`].
    fn next_call(&self, patience: Duration) -> Option<NodeCall> {
        self.pause(patience);
        None
    }

    /// As in [`braid_kv::Spans::answer_call`].
    fn answer_call(&self, _call: &NodeCall, _answer: Bytes) {}

    /// Blocks for a moment, before another try.
    fn pause(&self, time: Duration);
}
