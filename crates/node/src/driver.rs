//! The thread that owns a node's replicas: it takes what has come, lets time pass, syncs the raft
//! log, and sends what is to be sent.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use braid_cluster::Reply;
use braid_consensus::Result;
use braid_env::clock::Clock;
use braid_env::tasks::spawn_thread;
use braid_range::{
    Answered, Members, NodeId, Replicas, Request, RequestNumber, Room, RoomWatch, StorePosition,
};
use bytes::Bytes;

use crate::carrier::Slot;
use crate::frame::Frame;
use crate::peers::Peers;

/// From one tick to the next: elections begin after ten to twenty of them.
pub(crate) const TICK: Duration = Duration::from_millis(100);
/// Events that wait; who has more waits with them.
pub(crate) const MAX_EVENTS: usize = 1024;
/// Events that are taken before the raft log is synced for all of them.
const MAX_TAKEN: usize = 256;
/// The store is synced every so many ticks.
const STORE_TICKS: u64 = 10;
/// From one look at the disk's room to the next: in that time no reserve is used up.
const LOOK: Duration = Duration::from_millis(10);

/// Who wants an answer.
pub(crate) enum Asker {
    /// A thread of this node.
    Here(Arc<Slot>),
    /// Another node, with its number for it.
    Node(NodeId, u64),
    Nobody,
}

/// What has happened.
pub(crate) enum Event {
    /// A message of another replica.
    Raft(Bytes),
    Ask(Asker, Box<Request>),
    /// What the store held then is durable.
    StoreSynced(StorePosition),
    /// Others are to have the node's leases; or it is to take some again.
    Drain(bool),
    /// Who belongs to the cluster.
    Members(Members),
    Stop,
}

/// See the [module's page](self).
pub(crate) struct Driver {
    pub(crate) replicas: Replicas,
    pub(crate) peers: Arc<Peers>,
    pub(crate) clock: Arc<dyn Clock>,
    /// The node cannot go on: its disk has failed, or what was stored does not fit together.
    pub(crate) failed: Arc<AtomicBool>,
    pub(crate) watch: RoomWatch,
    /// What was seen last.
    pub(crate) room: Room,
    /// When it looks again, of the monotonic clock.
    pub(crate) next_look: u64,
}

impl Driver {
    pub(crate) fn new(
        replicas: Replicas,
        (peers, clock, failed): (&Arc<Peers>, &Arc<dyn Clock>, &Arc<AtomicBool>),
        watch: RoomWatch,
    ) -> Driver {
        let (peers, clock, failed) = (peers.clone(), clock.clone(), failed.clone());
        Driver { replicas, peers, clock, failed, watch, room: Room::Enough, next_look: 0 }
    }

    /// Runs until it is told to stop, or the node cannot go on.
    pub(crate) fn run(mut self, own: &SyncSender<Event>, events: &Receiver<Event>) {
        let mut askers = Askers::default();
        let end = self.go_on(own, events, &mut askers);
        if let Err(e) = &end {
            tracing::error!(error = %e, "this node's replicas cannot go on; it serves nothing");
            self.failed.store(true, Ordering::SeqCst);
        }
        std::mem::take(&mut askers.all).into_values().for_each(|asker| self.answer(asker, None));
        if let Err(e) = self.replicas.store().close() {
            tracing::error!(error = %e, "the store was not closed in order");
        }
        if end.is_err() {
            self.stand_still(events, &mut askers);
        }
    }

    /// Until it is told to stop the node says that others serve. So its connections live, and its
    /// clients are served by the others.
    fn stand_still(&mut self, events: &Receiver<Event>, askers: &mut Askers) {
        // What replicas wanted to say when they could not go on is not said.
        drop(self.replicas.effects());
        while let Ok(event) = events.recv() {
            if matches!(event, Event::Stop) {
                return;
            }
            self.take_without_room(event, askers);
            let answers = self.replicas.effects().answers;
            self.give_answers(answers, askers);
        }
    }

    fn go_on(
        &mut self,
        own: &SyncSender<Event>,
        events: &Receiver<Event>,
        askers: &mut Askers,
    ) -> Result<()> {
        let positions = self.sync_store(own);
        let mut ticks = 0u64;
        let mut next = self.clock.monotonic_nanos();
        loop {
            let has_room = self.look_at_room(askers)?;
            let now = self.clock.monotonic_nanos();
            if now >= next {
                // Ticks that were missed are not made up for.
                next = now + TICK.as_nanos() as u64;
                ticks += 1;
                if has_room {
                    self.tick(ticks, &positions)?;
                    self.settle(askers)?;
                }
            }
            let left = Duration::from_nanos(next.saturating_sub(self.clock.monotonic_nanos()));
            let mut event = match events.recv_timeout(left) {
                Ok(event) => Some(event),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            };
            for _ in 0..MAX_TAKEN {
                match event.take() {
                    None => break,
                    Some(Event::Stop) => return Ok(()),
                    Some(other) if has_room => self.take(other, askers)?,
                    Some(other) => self.take_without_room(other, askers),
                }
                event = events.try_recv().ok();
            }
            match event {
                None => {}
                Some(Event::Stop) => return Ok(()),
                Some(left_over) if has_room => self.take(left_over, askers)?,
                Some(left_over) => self.take_without_room(left_over, askers),
            }
            self.settle(askers)?;
        }
    }

    /// The thread that syncs the store; it ends with the sender that is returned.
    fn sync_store(&self, own: &SyncSender<Event>) -> SyncSender<StorePosition> {
        let (positions, to_sync) = sync_channel::<StorePosition>(1);
        let (synced, failed) = (own.clone(), self.failed.clone());
        spawn_thread("braid-store-sync", move || {
            for position in to_sync {
                if let Err(e) = position.wait_durable() {
                    tracing::error!(error = %e, "the store cannot be synced");
                    failed.store(true, Ordering::SeqCst);
                    return;
                }
                if synced.send(Event::StoreSynced(position)).is_err() {
                    return;
                }
            }
        });
        positions
    }

    fn tick(&mut self, ticks: u64, positions: &SyncSender<StorePosition>) -> Result<()> {
        self.replicas.tick()?;
        if ticks.is_multiple_of(STORE_TICKS)
            && let Err(TrySendError::Disconnected(_)) =
                positions.try_send(self.replicas.store_position())
        {
            return Err(braid_consensus::Error::Inconsistent("no sync".into()));
        }
        Ok(())
    }

    /// Whether there is room for anything that is taken. What is left of the store's reserve counts
    /// as little.
    fn look_at_room(&mut self, askers: &mut Askers) -> Result<bool> {
        let now = self.clock.monotonic_nanos();
        if now < self.next_look {
            return Ok(self.room != Room::Out);
        }
        self.next_look = now + LOOK.as_nanos() as u64;
        let is_full = self.replicas.store().is_full();
        let room = self.watch.look().max(if is_full { Room::Short } else { Room::Enough });
        let before = self.room;
        self.room = room;
        if room != before {
            match room {
                Room::Enough => tracing::info!("the disk has room again"),
                Room::Short => tracing::warn!(
                    "the disk is nearly full: other nodes get the leases of this one. Make room"
                ),
                Room::Out => tracing::error!(
                    "the disk is full: this node's replicas stand still until there is room"
                ),
            }
            self.replicas.note_room(room);
            self.settle(askers)?;
        }
        Ok(room != Room::Out)
    }

    /// Something has happened while the replicas stand still: it is as if messages were lost.
    fn take_without_room(&mut self, event: Event, askers: &mut Askers) {
        match event {
            Event::Ask(asker, request) => {
                let number = askers.add(asker);
                if !self.replicas.request_without_room(number, *request)
                    && let Some(asker) = askers.all.remove(&number)
                {
                    self.answer(asker, None);
                }
            }
            Event::Drain(drains) => self.replicas.drain(drains),
            Event::Members(members) => self.replicas.set_members(members),
            // What is durable is noticed by the next one.
            Event::Raft(_) | Event::StoreSynced(_) | Event::Stop => {}
        }
    }

    fn take(&mut self, event: Event, askers: &mut Askers) -> Result<()> {
        match event {
            Event::Raft(bytes) => self.replicas.receive(&bytes),
            Event::Ask(asker, request) => {
                let number = askers.add(asker);
                self.replicas.request(number, *request)
            }
            Event::StoreSynced(position) => self.replicas.store_synced(&position),
            Event::Drain(drains) => {
                self.replicas.drain(drains);
                Ok(())
            }
            Event::Members(members) => {
                self.replicas.set_members(members);
                Ok(())
            }
            Event::Stop => Ok(()),
        }
    }

    /// Carries out what the replicas want until they want nothing.
    fn settle(&mut self, askers: &mut Askers) -> Result<()> {
        loop {
            let effects = self.replicas.effects();
            for note in effects.notes {
                tracing::info!("{note}");
            }
            for (node, bytes) in effects.send {
                // Lost if there is no connection: it is sent again.
                self.peers.send(node, &Frame::Raft(bytes.into()));
            }
            self.give_answers(effects.answers, askers);
            let Some(place) = effects.sync else { return Ok(()) };
            self.replicas.sync_log(place)?;
            self.replicas.log_synced(place)?;
        }
    }

    fn give_answers(&self, answers: Vec<Answered>, askers: &mut Askers) {
        for Answered { number, times, answer } in answers {
            if let Some(asker) = askers.all.remove(&number) {
                self.answer(asker, Some(Reply { times, answer }));
            }
        }
    }

    fn answer(&self, asker: Asker, reply: Option<Reply>) {
        match (asker, reply) {
            (Asker::Here(slot), reply) => slot.fill(reply),
            (Asker::Node(node, number), Some(Reply { times, answer })) => {
                let answer = Box::new(answer);
                self.peers.send(node, &Frame::Answer { number, times, answer });
            }
            (Asker::Node(..), None) | (Asker::Nobody, _) => {}
        }
    }
}

/// Who has asked what the replicas have not answered.
#[derive(Default)]
struct Askers {
    all: HashMap<RequestNumber, Asker>,
    last: RequestNumber,
}

impl Askers {
    fn add(&mut self, asker: Asker) -> RequestNumber {
        self.last += 1;
        self.all.insert(self.last, asker);
        self.last
    }
}
