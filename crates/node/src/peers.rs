//! Connections to the other nodes: one thread that dials each, one that listens, one for each
//! node that has dialed.
//!
//! What is to be sent waits in a queue with a limit in bytes; beyond it, it is lost, as it may be
//! anyway. Who reads stops reading while this node has too much to do, and then TCP tells the other
//! side. A connection on which nothing has come for [`SILENCE`] is given up: whoever has nothing to
//! say says so every second.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, BufReader, BufWriter, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use braid_cluster::News;
use braid_env::tasks::spawn_thread;
use braid_range::NodeId;
use parking_lot::{Condvar, Mutex};

use crate::frame::{
    Frame, Hello, Purpose, Reply, WireError, framed, greet, read_frame, read_hello,
};
use crate::identity::Identity;

/// Bytes that wait for one node; one frame may always wait.
const MAX_QUEUED: usize = 64 << 20;
/// Connections that are listened to at the same time.
const MAX_READERS: usize = 64;
/// How often a node says that it is there.
const ALIVE_EVERY: Duration = Duration::from_secs(1);
/// A connection is given up after so long without a byte, or without room for one.
pub(crate) const SILENCE: Duration = Duration::from_secs(5);
/// From one try to dial to the next.
const REDIAL: Duration = Duration::from_millis(200);

/// Takes what comes.
pub(crate) trait Sink: Send + Sync {
    /// A frame of so many bytes; may block. `false`: this node is stopping.
    fn take(&self, from: NodeId, frame: Frame, bytes: usize) -> bool;
    /// A node has gone, or was not there: what it was asked will not be answered.
    fn lost(&self, node: NodeId);
    /// Somebody who is no node, or not yet, wants something. Blocks until that is done.
    fn serve(&self, hello: &Hello) -> Result<Reply, String>;
}

#[derive(Default)]
struct Queue {
    frames: VecDeque<Vec<u8>>,
    bytes: usize,
    connected: bool,
}

struct Link {
    address: SocketAddr,
    queue: Mutex<Queue>,
    wake: Condvar,
    /// The node is not talked to any more.
    is_over: AtomicBool,
}

struct Shared {
    identity: Arc<Identity>,
    links: Mutex<BTreeMap<NodeId, Arc<Link>>>,
    sink: Arc<dyn Sink>,
    /// What it says of the cluster's settings when it has nothing else to say.
    news: Arc<News>,
    stopping: AtomicBool,
    /// Sockets of those who have dialed, and who that is.
    readers: Mutex<BTreeMap<u64, (Option<NodeId>, TcpStream)>>,
    next_reader: AtomicU64,
    /// That dial or listen.
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// See the [module's page](self).
pub(crate) struct Peers {
    shared: Arc<Shared>,
    listens_at: SocketAddr,
}

impl Peers {
    /// Begins to listen and to dial.
    pub(crate) fn start(
        listener: TcpListener,
        identity: Arc<Identity>,
        sink: Arc<dyn Sink>,
        news: Arc<News>,
    ) -> io::Result<Peers> {
        let shared = Arc::new(Shared {
            links: Mutex::default(),
            identity,
            sink,
            news,
            stopping: AtomicBool::new(false),
            readers: Mutex::default(),
            next_reader: AtomicU64::new(0),
            threads: Mutex::default(),
        });
        let listens_at = listener.local_addr()?;
        let accepts = shared.clone();
        let listens = spawn_thread("braid-peers", move || accepts.accept_all(&listener));
        shared.threads.lock().push(listens);
        shared.follow_roster();
        Ok(Peers { shared, listens_at })
    }

    /// Talks to all nodes that may be talked to by now, and to no others.
    pub(crate) fn follow_roster(&self) {
        self.shared.follow_roster();
    }

    /// The nodes that are talked to.
    pub(crate) fn nodes(&self) -> Vec<NodeId> {
        self.shared.links.lock().keys().copied().collect()
    }

    /// Has a frame sent, if the node is connected and there is room: how many bytes it has. It may
    /// be lost nevertheless.
    pub(crate) fn send(&self, node: NodeId, frame: &Frame) -> Option<usize> {
        let link = self.shared.links.lock().get(&node).cloned()?;
        if !link.queue.lock().connected {
            return None;
        }
        let bytes = frame.framed();
        let size = bytes.len();
        let mut queue = link.queue.lock();
        let fits = queue.bytes == 0 || queue.bytes + size <= MAX_QUEUED;
        if !queue.connected || !fits {
            return None;
        }
        queue.bytes += size;
        queue.frames.push_back(bytes);
        link.wake.notify_one();
        Some(size)
    }

    /// Whether a node is connected to this one, and has said something a moment ago: otherwise it
    /// cannot answer, since it answers on the connection that it has dialed itself. One that stands
    /// still can be sent to for long, as its system takes what comes.
    pub(crate) fn hears(&self, node: NodeId) -> bool {
        self.shared.readers.lock().values().any(|(of, _)| *of == Some(node))
    }

    /// To whom this node is connected, in both directions.
    pub(crate) fn connected(&self) -> Vec<NodeId> {
        let links: Vec<(NodeId, Arc<Link>)> =
            self.shared.links.lock().iter().map(|(node, link)| (*node, link.clone())).collect();
        let is_connected =
            |(node, link): &(NodeId, Arc<Link>)| link.queue.lock().connected && self.hears(*node);
        links.into_iter().filter(is_connected).map(|(node, _)| node).collect()
    }

    /// Ends all connections and waits until nobody dials or listens any more.
    pub(crate) fn stop(&self) {
        if self.shared.stopping.swap(true, Ordering::SeqCst) {
            return;
        }
        for link in self.shared.links.lock().values() {
            // Not to be missed by who is about to wait.
            let _queue = link.queue.lock();
            link.wake.notify_all();
        }
        for (_, socket) in self.shared.readers.lock().values() {
            // One that is gone is closed already.
            let _closed = socket.shutdown(Shutdown::Both);
        }
        // The thread that listens sleeps in accept(): one more connection wakes it.
        let _woken = TcpStream::connect_timeout(&self.listens_at, ALIVE_EVERY);
        let threads = std::mem::take(&mut *self.shared.threads.lock());
        for thread in threads {
            if thread.join().is_err() {
                tracing::error!("a thread for other nodes panicked");
            }
        }
    }
}

impl Drop for Peers {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Connects to a node.
pub(crate) fn connect(address: SocketAddr) -> Result<TcpStream, WireError> {
    let stream = TcpStream::connect_timeout(&address, SILENCE)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(SILENCE))?;
    stream.set_write_timeout(Some(SILENCE))?;
    Ok(stream)
}

/// Connects to a node and agrees with it on who is who.
pub(crate) fn dial(
    identity: &Identity,
    node: NodeId,
    address: SocketAddr,
) -> Result<TcpStream, WireError> {
    let mut stream = connect(address)?;
    let welcome = greet(&mut stream, &identity.hello())?;
    identity.welcomed(node, welcome)?;
    Ok(stream)
}

impl Shared {
    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    /// Talks to all nodes that may be talked to by now, and to no others.
    fn follow_roster(self: &Arc<Self>) {
        let (own, members) = (self.identity.node(), self.identity.members());
        for (node, socket) in self.readers.lock().values() {
            if node.is_some_and(|node| !members.iter().any(|(member, _)| *member == node)) {
                // One that is gone is closed already.
                let _closed = socket.shutdown(Shutdown::Both);
            }
        }
        let mut links = self.links.lock();
        links.retain(|node, link| {
            let stays = members.contains(&(*node, link.address));
            if !stays {
                link.is_over.store(true, Ordering::SeqCst);
                // Not to be missed by who is about to wait.
                let _queue = link.queue.lock();
                link.wake.notify_all();
            }
            stays
        });
        for (node, address) in members {
            if node == own || links.contains_key(&node) || self.is_stopping() {
                continue;
            }
            let (queue, wake, is_over) = (Mutex::default(), Condvar::new(), AtomicBool::new(false));
            let link = Arc::new(Link { address, queue, wake, is_over });
            links.insert(node, link.clone());
            let shared = self.clone();
            let keeps = move || shared.keep_link(node, &link);
            self.threads.lock().push(spawn_thread(&format!("braid-to-{}", node.0), keeps));
        }
    }

    fn is_over(&self, link: &Link) -> bool {
        self.is_stopping() || link.is_over.load(Ordering::SeqCst)
    }

    /// Dials a node and sends it what there is, again and again.
    fn keep_link(&self, node: NodeId, link: &Link) {
        let mut told = String::new();
        while !self.is_over(link) {
            let ended = dial(&self.identity, node, link.address).and_then(|stream| {
                tracing::info!(?node, address = %link.address, "connected to a node");
                told.clear();
                self.send_all(link, stream)
            });
            {
                let mut queue = link.queue.lock();
                *queue = Queue::default();
            }
            self.sink.lost(node);
            let Err(error) = ended else { return };
            let text = error.to_string();
            // Once for each reason: a node may be away for long.
            if text != told {
                tracing::warn!(?node, address = %link.address, error = %text, "no connection");
                told = text;
            }
            let mut queue = link.queue.lock();
            if !self.is_over(link) {
                link.wake.wait_for(&mut queue, REDIAL);
            }
        }
    }

    /// Sends until that fails, or this node stops.
    fn send_all(&self, link: &Link, stream: TcpStream) -> Result<(), WireError> {
        link.queue.lock().connected = true;
        let mut out = BufWriter::with_capacity(64 << 10, stream);
        // What was told while there was no connection is lost.
        out.write_all(&Frame::Alive(self.news.word()).framed())?;
        out.flush()?;
        while !self.is_over(link) {
            let frames = {
                let mut queue = link.queue.lock();
                if queue.frames.is_empty() && !self.is_over(link) {
                    link.wake.wait_for(&mut queue, ALIVE_EVERY);
                }
                queue.bytes = 0;
                std::mem::take(&mut queue.frames)
            };
            if frames.is_empty() {
                out.write_all(&Frame::Alive(self.news.word()).framed())?;
            }
            for frame in &frames {
                out.write_all(frame)?;
            }
            out.flush()?;
        }
        Ok(())
    }

    fn accept_all(self: &Arc<Self>, listener: &TcpListener) {
        while !self.is_stopping() {
            let accepted = listener.accept();
            if self.is_stopping() {
                return;
            }
            match accepted {
                Ok((socket, from)) => self.admit(socket, from),
                Err(e) => {
                    tracing::warn!(error = %e, "cannot accept a connection of a node");
                    std::thread::sleep(REDIAL);
                }
            }
        }
    }

    /// Gives a connection a thread, if there is room for one more.
    fn admit(self: &Arc<Self>, socket: TcpStream, from: SocketAddr) {
        let number = self.next_reader.fetch_add(1, Ordering::Relaxed);
        {
            let mut readers = self.readers.lock();
            if readers.len() >= MAX_READERS {
                tracing::warn!(%from, "too many connections of nodes: this one is closed");
                return;
            }
            match socket.try_clone() {
                Ok(clone) => drop(readers.insert(number, (None, clone))),
                Err(e) => return tracing::warn!(%from, error = %e, "a connection cannot be kept"),
            }
        }
        let shared = self.clone();
        spawn_thread("braid-from", move || {
            let mut node = None;
            match shared.read_all(socket, number, &mut node) {
                Err(WireError::Io(e)) => tracing::info!(%from, ?node, error = %e, "a node is gone"),
                Err(e) => tracing::warn!(%from, ?node, error = %e, "a connection is closed"),
                Ok(()) => {}
            }
            shared.readers.lock().remove(&number);
            if let Some(node) = node {
                shared.sink.lost(node);
            }
        });
    }

    /// Takes what a connection brings until it ends.
    fn read_all(
        self: &Arc<Self>,
        mut socket: TcpStream,
        number: u64,
        node: &mut Option<NodeId>,
    ) -> Result<(), WireError> {
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(SILENCE))?;
        socket.set_write_timeout(Some(SILENCE))?;
        let hello = read_hello(&mut socket)?;
        if hello.purpose != Purpose::Talk {
            let reply = self.sink.serve(&hello).unwrap_or_else(|why| Reply::Refusal { why });
            return Ok(socket.write_all(&framed(&reply))?);
        }
        let (reply, refusal) = self.identity.judge(&hello);
        socket.write_all(&framed(&reply))?;
        if let Some(error) = refusal {
            return Err(error);
        }
        *node = Some(hello.node);
        if let Some((of, _)) = self.readers.lock().get_mut(&number) {
            *of = *node;
        }
        // It may be one that this node has not known so far.
        if !self.links.lock().contains_key(&hello.node) {
            self.follow_roster();
        }
        let mut input = BufReader::with_capacity(64 << 10, socket);
        while !self.is_stopping() {
            let (frame, bytes) = read_frame(&mut input)?;
            if !self.sink.take(hello.node, frame, bytes) {
                return Ok(());
            }
        }
        Ok(())
    }
}
