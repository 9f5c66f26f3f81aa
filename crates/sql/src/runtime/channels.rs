//! Channels: LISTEN, NOTIFY, and what waits to be told to whom.
//!
//! ```text
//!   session A   NOTIFY c, 'x' ──► asked list ── commit ──► B's inbox ──► B's client
//!   session B   LISTEN c ───────► asked list ── commit ──► B's channels
//! ```
//! Everything is asked for inside of a transaction and happens when it has committed, in the order
//! of commits; what rolls back was never asked. A client is told when its session is outside of a
//! block, an idle one at once. Channels live on this node, and an inbox ends with its session; how
//! sessions of other nodes hear it: [`crate::over_nodes::messages`].
//!
//! An inbox that nobody empties grows to [`INBOX_BYTES_MAX`]; then NOTIFY fails, as PostgreSQL's
//! does when its queue is full.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use braid_types::{SqlError, SqlResult, SqlState};
use parking_lot::{Mutex, MutexGuard};

/// Bytes that one session may be behind.
const INBOX_BYTES_MAX: usize = 8 << 20;
/// Bytes that a payload has at most: one less, as in PostgreSQL.
const PAYLOAD_BYTES_END: usize = 8_000;
/// Bytes of a channel's name, likewise.
const NAME_BYTES_END: usize = 64;

/// What a client is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notification {
    /// Process id of the session that has said NOTIFY.
    pub pid: i32,
    /// Channel.
    pub channel: Arc<str>,
    /// What was said; empty if nothing.
    pub payload: Arc<str>,
}

impl Notification {
    /// Bytes that it is counted with.
    fn weight(&self) -> usize {
        size_of::<Notification>() + self.channel.len() + self.payload.len()
    }
}

/// What a transaction has asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Listen(Arc<str>),
    /// `None`: all channels.
    Unlisten(Option<Arc<str>>),
    Notify(Notification),
}

impl Asked {
    /// # Errors
    /// 22023 for a name or a payload that is too long, or no name.
    pub(crate) fn notify(pid: i32, channel: &str, payload: &str) -> SqlResult<Asked> {
        let bad = |message: &str| Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
        if channel.is_empty() {
            return bad("channel name cannot be empty");
        }
        if channel.len() >= NAME_BYTES_END {
            return bad("channel name too long");
        }
        if payload.len() >= PAYLOAD_BYTES_END {
            return bad("payload string too long");
        }
        let (channel, payload) = (channel.into(), payload.into());
        Ok(Asked::Notify(Notification { pid, channel, payload }))
    }
}

/// What the transactions of a session have asked for and not yet got.
#[derive(Debug, Default)]
pub(crate) struct AskedList {
    all: Vec<Asked>,
    /// Channels and payloads: what one transaction says twice is told once.
    said: HashSet<(Arc<str>, Arc<str>)>,
    bytes: usize,
    /// The transaction has stored them for all nodes: the number of the last one.
    stored: Option<u64>,
}

impl AskedList {
    /// What is to be told to others.
    pub(crate) fn notifications(&self) -> Vec<Notification> {
        let told = self.all.iter().filter_map(|one| match one {
            Asked::Notify(notification) => Some(notification.clone()),
            _ => None,
        });
        told.collect()
    }

    /// The transaction has stored them for all nodes, up to this number.
    pub(crate) fn are_said(&mut self, last: u64) {
        self.stored = Some(last);
    }

    /// Takes out what is to be told to others, with the number of the last one if it is stored.
    pub(crate) fn take_notifications(&mut self) -> (Vec<Notification>, Option<u64>) {
        let told = self.notifications();
        self.all.retain(|one| !matches!(one, Asked::Notify(_)));
        (told, self.stored)
    }

    pub(crate) fn push(&mut self, one: Asked) {
        if let Asked::Notify(n) = &one {
            if !self.said.insert((n.channel.clone(), n.payload.clone())) {
                return;
            }
            self.bytes += n.weight();
        }
        self.all.push(one);
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether a channel is listened to from now on.
    pub(crate) fn listens(&self) -> bool {
        self.all.iter().any(|one| matches!(one, Asked::Listen(_)))
    }

    /// Forgets all but the first.
    pub(crate) fn truncate(&mut self, count: usize) {
        self.stored = None;
        for one in self.all.drain(count.min(self.all.len())..) {
            if let Asked::Notify(n) = one {
                self.bytes -= n.weight();
                self.said.remove(&(n.channel, n.payload));
            }
        }
    }
}

/// What a session is still to be told, and what it listens to.
#[derive(Debug, Default)]
struct Inbox {
    channels: BTreeSet<Arc<str>>,
    waiting: Vec<Notification>,
    bytes: usize,
}

/// A session among the listeners: its database, and its process id.
type Place = (u32, i32);

/// See the [module documentation](self).
#[derive(Debug, Default)]
pub(crate) struct Channels {
    inboxes: Mutex<HashMap<Place, Inbox>>,
    /// Held by who commits with notifications, so that they come in the order of commits.
    order: Mutex<()>,
}

impl Channels {
    /// Makes a commit and its notifications one step among others of their kind.
    pub(crate) fn in_order(&self) -> MutexGuard<'_, ()> {
        self.order.lock()
    }

    /// Whether one more can be told, beside what was asked before it.
    ///
    /// # Errors
    /// 54000 if somebody who listens is too far behind, or the transaction says too much.
    pub(crate) fn check_room(
        &self,
        database: u32,
        before: &AskedList,
        one: &Asked,
    ) -> SqlResult<()> {
        let Asked::Notify(one) = one else { return Ok(()) };
        let full = || {
            let message = "too many notifications in the NOTIFY queue";
            SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
        };
        let more = before.bytes + one.weight();
        if more > INBOX_BYTES_MAX {
            return Err(full().with_hint("Say less in one transaction."));
        }
        let inboxes = self.inboxes.lock();
        let listeners = inboxes.iter().filter(|((d, _), _)| *d == database);
        let mut behind = listeners
            .filter(|(_, inbox)| inbox.channels.contains(&one.channel))
            .filter(|(_, inbox)| inbox.bytes + more > INBOX_BYTES_MAX);
        match behind.next() {
            None => Ok(()),
            Some(((_, pid), _)) => Err(full()
                .with_detail(format!("The session of process {pid} does not take its own."))
                .with_hint("End its transaction block, or its session.")),
        }
    }

    /// Does what a committed transaction has asked; gives those whose inbox was empty before.
    pub(crate) fn post(&self, own: Place, asked: AskedList) -> Vec<i32> {
        let mut inboxes = self.inboxes.lock();
        let mut woken = Vec::new();
        for one in asked.all {
            match one {
                Asked::Listen(channel) => {
                    inboxes.entry(own).or_default().channels.insert(channel);
                }
                Asked::Unlisten(which) => {
                    let Some(inbox) = inboxes.get_mut(&own) else { continue };
                    inbox.channels.retain(|c| which.as_ref().is_some_and(|w| w != c));
                }
                Asked::Notify(notification) => {
                    let told = put(&mut inboxes, own.0, &notification).into_iter();
                    woken.extend(told.filter(|pid| *pid != own.1));
                }
            }
        }
        woken
    }

    /// Tells those of a database who listen; gives those whose inbox was empty before, and those
    /// whose inbox is too full.
    pub(crate) fn tell(&self, database: u32, one: &Notification) -> (Vec<i32>, Vec<i32>) {
        let mut inboxes = self.inboxes.lock();
        let woken = put(&mut inboxes, database, one);
        let full = inboxes.iter().filter(|(_, inbox)| inbox.bytes > INBOX_BYTES_MAX);
        (woken, full.map(|((_, pid), _)| *pid).collect())
    }

    /// All sessions that listen to something.
    pub(crate) fn listeners(&self) -> Vec<i32> {
        let inboxes = self.inboxes.lock();
        let all = inboxes.iter().filter(|(_, inbox)| !inbox.channels.is_empty());
        all.map(|((_, pid), _)| *pid).collect()
    }

    /// Takes what a session is to be told.
    pub(crate) fn take(&self, own: Place) -> Vec<Notification> {
        let mut inboxes = self.inboxes.lock();
        let Some(inbox) = inboxes.get_mut(&own) else { return Vec::new() };
        inbox.bytes = 0;
        std::mem::take(&mut inbox.waiting)
    }

    /// What a session listens to.
    pub(crate) fn of(&self, own: Place) -> Vec<Arc<str>> {
        let inboxes = self.inboxes.lock();
        inboxes.get(&own).map_or(Vec::new(), |inbox| inbox.channels.iter().cloned().collect())
    }

    /// A session has ended.
    pub(crate) fn close(&self, own: Place) {
        self.inboxes.lock().remove(&own);
    }
}

/// Puts a notification into the inboxes of those who listen; gives those that were empty.
fn put(inboxes: &mut HashMap<Place, Inbox>, database: u32, one: &Notification) -> Vec<i32> {
    let mut woken = Vec::new();
    let listeners = inboxes
        .iter_mut()
        .filter(|((d, _), i)| *d == database && i.channels.contains(&one.channel));
    for ((_, pid), inbox) in listeners {
        if inbox.waiting.is_empty() {
            woken.push(*pid);
        }
        inbox.bytes += one.weight();
        inbox.waiting.push(one.clone());
    }
    woken
}
