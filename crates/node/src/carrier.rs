//! Carries requests to nodes and answers back: [`Transport`] over threads and connections.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use braid_cluster::{News, Reply, Transport};
use braid_env::clock::Clock;
use braid_kv::{Network, NodeCall, ShownNode, Tally};
use braid_range::{NodeId, Request, ShortNodes};
use bytes::Bytes;
use parking_lot::{Condvar, Mutex};

use crate::calls::Calls;
use crate::driver::{Asker, Event};
use crate::frame::{self, Frame, Hello};
use crate::identity::Identity;
use crate::office::Office;
use crate::peers::{Peers, Sink};
use crate::roster::{RosterEntry, state_of};

/// A waiting thread looks so often whether it should stop.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Who asks a node that is not there is told so after a moment, not to ask again and again.
const ABSENT_PAUSE: Duration = Duration::from_millis(20);

/// Where an answer is put.
#[derive(Default)]
pub(crate) struct Slot {
    /// `Some(None)`: there will be none.
    answer: Mutex<Option<Option<Reply>>>,
    filled: Condvar,
    /// Of the answer, if another node has sent it.
    bytes: AtomicUsize,
}

impl Slot {
    /// The first one counts.
    pub(crate) fn fill(&self, reply: Option<Reply>) {
        self.answer.lock().get_or_insert(reply);
        self.filled.notify_all();
    }

    fn wait(&self, clock: &dyn Clock, patience: Duration, stop: &AtomicBool) -> Option<Reply> {
        let until = clock.monotonic_nanos() + patience.as_nanos() as u64;
        let mut answer = self.answer.lock();
        loop {
            if let Some(reply) = answer.take() {
                return reply;
            }
            if stop.load(Ordering::Relaxed) || clock.monotonic_nanos() > until {
                return None;
            }
            self.filled.wait_for(&mut answer, LOOK_EVERY);
        }
    }
}

/// Questions to other nodes that are not answered yet.
#[derive(Default)]
pub(crate) struct Questions {
    open: Mutex<HashMap<u64, (NodeId, Arc<Slot>)>>,
    last: AtomicU64,
    calls: Calls,
}

impl Questions {
    fn ask(&self, node: NodeId) -> (u64, Arc<Slot>) {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let slot = Arc::new(Slot::default());
        self.open.lock().insert(number, (node, slot.clone()));
        (number, slot)
    }

    fn forget(&self, number: u64) {
        self.open.lock().remove(&number);
    }

    fn answer(&self, from: NodeId, number: u64, reply: Reply, bytes: usize) {
        let mut open = self.open.lock();
        if open.get(&number).is_some_and(|(node, _)| *node == from)
            && let Some((_, slot)) = open.remove(&number)
        {
            slot.bytes.store(bytes, Ordering::Relaxed);
            slot.fill(Some(reply));
        }
    }

    fn lose(&self, node: NodeId) {
        self.calls.lose(node);
        let lost = |(_, asked): &(&u64, &(NodeId, Arc<Slot>))| asked.0 == node;
        self.open.lock().iter().filter(lost).for_each(|(_, (_, slot))| slot.fill(None));
    }
}

/// What comes from other nodes goes to the driver, or to whoever waits for it.
pub(crate) struct Inbox {
    pub(crate) events: SyncSender<Event>,
    pub(crate) questions: Arc<Questions>,
    /// There when transactions can be begun.
    pub(crate) office: Arc<OnceLock<Office>>,
    pub(crate) news: Arc<News>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Sink for Inbox {
    fn take(&self, from: NodeId, frame: Frame, bytes: usize) -> bool {
        let event = match frame {
            Frame::Raft(bytes) => Event::Raft(bytes),
            Frame::Request { number: 0, request } => Event::Ask(Asker::Nobody, request),
            Frame::Request { number, request } => Event::Ask(Asker::Node(from, number), request),
            Frame::Answer { number, times, answer } => {
                self.questions.answer(from, number, Reply { times, answer: *answer }, bytes);
                return true;
            }
            Frame::Call { number, body } => {
                self.questions.calls.arrive(NodeCall { from: from.0, number, body });
                return true;
            }
            Frame::Called { number, body } => {
                self.questions.calls.answered(from, number, body);
                return true;
            }
            Frame::Alive(word) => {
                self.news.hear(from, word, self.clock.monotonic_nanos());
                return true;
            }
        };
        self.events.send(event).is_ok()
    }

    fn lost(&self, node: NodeId) {
        self.questions.lose(node);
    }

    fn serve(&self, hello: &Hello) -> Result<frame::Reply, String> {
        let office = self.office.get().ok_or("this node has just been started: try again")?;
        office.serve(hello)
    }
}

/// See the [module's page](self).
pub(crate) struct Carrier {
    pub(crate) identity: Arc<Identity>,
    pub(crate) events: SyncSender<Event>,
    pub(crate) questions: Arc<Questions>,
    pub(crate) peers: Arc<Peers>,
    pub(crate) news: Arc<News>,
    /// Whose disks have little room.
    pub(crate) short: Arc<ShortNodes>,
    pub(crate) clock: Arc<dyn Clock>,
}

/// A question that is on its way.
struct Asked {
    slot: Arc<Slot>,
    /// To another node: its number, and how many bytes were sent.
    sent: Option<(u64, usize)>,
}

impl Carrier {
    /// Sends a request; `None`: nobody is there.
    fn begin(&self, node: NodeId, request: &Request) -> Option<Asked> {
        if node == self.identity.node() {
            let slot = Arc::new(Slot::default());
            let event = Event::Ask(Asker::Here(slot.clone()), Box::new(request.clone()));
            self.events.send(event).ok()?;
            return Some(Asked { slot, sent: None });
        }
        if !self.peers.hears(node) {
            return None;
        }
        let (number, slot) = self.questions.ask(node);
        let frame = Frame::Request { number, request: Box::new(request.clone()) };
        let Some(bytes) = self.peers.send(node, &frame) else {
            self.questions.forget(number);
            return None;
        };
        Some(Asked { slot, sent: Some((number, bytes)) })
    }

    /// Waits for the answer; also says how many bytes went over the network.
    fn end(&self, asked: Asked, patience: Duration, stop: &AtomicBool) -> (Option<Reply>, u64) {
        let reply = asked.slot.wait(&*self.clock, patience, stop);
        let Some((number, sent)) = asked.sent else { return (reply, 0) };
        self.questions.forget(number);
        (reply, (sent + asked.slot.bytes.load(Ordering::Relaxed)) as u64)
    }
}

impl Transport for Carrier {
    fn ask(
        &self,
        node: NodeId,
        request: &Request,
        patience: Duration,
        stop: &AtomicBool,
    ) -> Option<Reply> {
        let begun = self.clock.monotonic_nanos();
        let asked = self.begin(node, request);
        let is_there = node != self.identity.node() && asked.is_some();
        let (reply, bytes) = asked.map_or((None, 0), |asked| self.end(asked, patience, stop));
        if is_there {
            let nanos = self.clock.monotonic_nanos() - begun;
            Tally::add_network(Network { calls: 0, bytes, nanos });
        }
        if reply.is_none() && !stop.load(Ordering::Relaxed) {
            self.pause(ABSENT_PAUSE);
        }
        reply
    }

    fn ask_all(
        &self,
        requests: &[(NodeId, Request)],
        patience: Duration,
        stop: &AtomicBool,
    ) -> Vec<Option<Reply>> {
        let begun = self.clock.monotonic_nanos();
        let begin = |(node, request): &(NodeId, Request)| self.begin(*node, request);
        let asked: Vec<Option<Asked>> = requests.iter().map(begin).collect();
        let mut all = 0;
        let replies = asked.into_iter().map(|asked| {
            let gone = Duration::from_nanos(self.clock.monotonic_nanos() - begun);
            let (reply, bytes) = self.end(asked?, patience.saturating_sub(gone), stop);
            all += bytes;
            reply
        });
        let replies = replies.collect();
        if all > 0 {
            let nanos = self.clock.monotonic_nanos() - begun;
            Tally::add_network(Network { calls: 0, bytes: all, nanos });
        }
        replies
    }

    fn is_cut_off(&self) -> bool {
        let members = self.identity.members();
        let (connected, own) = (self.peers.connected(), self.identity.node());
        let there = members.iter().filter(|(node, _)| *node == own || connected.contains(node));
        2 * there.count() <= members.len()
    }

    fn nodes(&self) -> Vec<NodeId> {
        self.peers.nodes()
    }

    fn nearest(&self, nodes: &[NodeId]) -> Option<NodeId> {
        let is_there = |node: &NodeId| self.peers.hears(*node);
        let there: Vec<NodeId> = nodes.iter().copied().filter(is_there).collect();
        self.identity.nearest(&there)
    }

    fn call(&self, node: NodeId, body: Bytes, patience: Duration) -> Option<Bytes> {
        self.questions.calls.call(node, patience, |number| {
            let frame = Frame::Call { number, body };
            self.peers.hears(node) && self.peers.send(node, &frame).is_some()
        })
    }

    fn next_call(&self, patience: Duration) -> Option<NodeCall> {
        self.questions.calls.next(patience)
    }

    fn answer_call(&self, call: &NodeCall, answer: Bytes) {
        let frame = Frame::Called { number: call.number, body: answer };
        // Whoever has asked waits for a while only.
        let _sent = self.peers.send(NodeId(call.from), &frame);
    }

    fn shown_nodes(&self) -> Vec<ShownNode> {
        let (connected, own) = (self.peers.connected(), self.identity.node());
        let shown = |(node, entry): (&NodeId, &RosterEntry)| ShownNode {
            id: node.0,
            address: entry.address.to_string(),
            locality: entry.locality.to_string(),
            state: state_of(
                entry,
                (*node == own || connected.contains(node), self.short.has(*node)),
            ),
        };
        self.identity.roster().nodes.iter().map(shown).collect()
    }

    fn tell(&self, node: NodeId, request: &Request) {
        let request = Box::new(request.clone());
        if node == self.identity.node() {
            // Lost if this node is stopping, as it may be.
            let _sent = self.events.send(Event::Ask(Asker::Nobody, request));
        } else {
            let sent = self.peers.send(node, &Frame::Request { number: 0, request });
            let bytes = sent.unwrap_or(0) as u64;
            Tally::add_network(Network { bytes, ..Network::default() });
        }
    }

    fn news(&self) -> Option<&News> {
        Some(&self.news)
    }

    fn spread_news(&self) {
        let frame = Frame::Alive(self.news.word());
        for node in self.peers.nodes() {
            // Who is not connected hears it when it is.
            let _sent = self.peers.send(node, &frame);
        }
    }

    fn pause(&self, time: Duration) {
        self.clock.sleep(time);
    }
}
