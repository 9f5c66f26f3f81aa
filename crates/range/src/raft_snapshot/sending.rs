//! The leader's side: who needs a state, and how it is sent.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use braid_consensus::{LogIndex, Result};
use braid_lsm::{Db, Export, Exported, Scan, ScanOptions};
use bytes::Bytes;

use super::installing::Staging;
use super::message::{Begin, Piece, Said};
use super::receiving::Receiving;
use crate::envelope::Envelope;
use crate::ids::{NodeId, RangeId};
use crate::local_keys;
use crate::machine::newest;
use crate::replica::Replica;
use crate::replicas::Replicas;
use crate::state::RangeState;

/// A piece is full with so many bytes; one item may be larger.
const PIECE_BYTES: usize = 128 << 10;
/// Pieces on the way of one state.
const ON_THE_WAY: usize = 4;
/// States that a node sends at the same time if they are larger than a piece.
const AT_THE_SAME_TIME: usize = 2;
/// The same of smaller ones.
const SMALL_AT_THE_SAME_TIME: usize = 8;
/// So many are received at the same time.
pub(super) const RECEIVED_AT_THE_SAME_TIME: usize = 16;
/// Bytes that a node sends in a tick, that is 32 MiB in a second.
const TICK_BYTES: usize = 3_300_000;
/// After so many ticks without a word what was sent is sent again.
const AGAIN_TICKS: u64 = 10;
/// After so many it is given up.
const SILENT_TICKS: u64 = 60;
/// So many ticks after an end, good or bad, the next state is sent to the same replica.
const REST_TICKS: u64 = 10;
/// A range that others speak of has no replica here for so many ticks before that is said: usually
/// a split is about to be applied.
const STRANGE_TICKS: u64 = 20;
/// Ranges without a replica that are remembered.
const MOST_STRANGE: usize = 10_000;

/// A state that is being sent.
struct Sending {
    begin: Begin,
    has_begun: bool,
    local: Option<Scan>,
    data: Export,
    /// The item that had no room in the last piece.
    held_back: Option<Exported>,
    is_read: bool,
    /// It will not fit into a piece.
    is_large: bool,
    /// The place of the next piece.
    next: u64,
    /// Pieces without an answer.
    unanswered: VecDeque<(u64, Said)>,
    silent_ticks: u64,
}

/// What nodes send to each other of ranges' states.
pub(crate) struct Traffic {
    pub(super) staging: Staging,
    sending: BTreeMap<(RangeId, NodeId), Sending>,
    pub(super) receiving: BTreeMap<RangeId, Receiving>,
    wanted: BTreeSet<(RangeId, NodeId)>,
    /// Who gets none before some tick.
    resting: BTreeMap<(RangeId, NodeId), u64>,
    /// Ranges without a replica here: since which tick, and when that is said next.
    strange: BTreeMap<RangeId, (u64, u64)>,
    bytes_left: usize,
    count: u64,
    /// States that this process has installed.
    pub(crate) installed: Arc<AtomicU64>,
}

impl Traffic {
    pub(crate) fn new(staging: Staging) -> Traffic {
        Traffic {
            staging,
            sending: BTreeMap::new(),
            receiving: BTreeMap::new(),
            wanted: BTreeSet::new(),
            resting: BTreeMap::new(),
            strange: BTreeMap::new(),
            bytes_left: 0,
            count: 0,
            installed: Arc::default(),
        }
    }

    /// A follower needs a state.
    pub(crate) fn want(&mut self, range: RangeId, node: NodeId) {
        self.wanted.insert((range, node));
    }

    fn has_room(&self) -> bool {
        self.sending.len() < AT_THE_SAME_TIME + SMALL_AT_THE_SAME_TIME
    }

    fn has_room_for_large(&self) -> bool {
        let large = self.sending.values().filter(|sending| sending.is_large);
        large.count() < AT_THE_SAME_TIME
    }

    /// The oldest place behind which a range's log is needed for states on their way.
    fn needed(&self, range: RangeId) -> Option<LogIndex> {
        let of_range = self.sending.iter().filter(|((of, _), _)| *of == range);
        of_range.map(|(_, sending)| sending.begin.state.applied).min()
    }
}

impl Sending {
    /// A replica's state as it is now.
    fn new(db: &Db, replica: &Replica, number: u64) -> Result<Option<Sending>> {
        let state = replica.machine.state.clone();
        let Some(at_term) = replica.group.term_of(state.applied) else { return Ok(None) };
        let view = db.view(newest())?;
        let is_large = view.stored_bytes(&state.descriptor.span)? > PIECE_BYTES as u64;
        let local = local_keys::records(state.descriptor.id);
        let local = Some(view.scan(local, ScanOptions::default())?);
        let data = view.export(&state.descriptor.span)?;
        let term = replica.group.term();
        Ok(Some(Sending {
            begin: Begin { number, term, state, at_term },
            has_begun: false,
            local,
            data,
            held_back: None,
            is_read: false,
            is_large,
            next: 0,
            unanswered: VecDeque::new(),
            silent_ticks: 0,
        }))
    }

    /// What the range holds, one after the other: its records, its state as the last of them, then
    /// its keys.
    fn next_item(&mut self) -> Result<Option<Exported>> {
        if let Some(item) = self.held_back.take() {
            return Ok(Some(item));
        }
        while let Some(records) = &mut self.local {
            let Some(row) = records.next_row()? else {
                self.local = None;
                // What is stored may lag behind by entries without effect.
                return Ok(Some(state_record(&self.begin.state)));
            };
            if !local_keys::is_state(&row.key) {
                let copy = |part: &Bytes| Bytes::copy_from_slice(part);
                let (key, value) = (copy(&row.key), Some(copy(&row.value)));
                return Ok(Some(Exported::Entry { key, ts: row.ts, value }));
            }
        }
        Ok(self.data.next_item()?)
    }

    /// Reads the next piece; returns it with about its bytes.
    fn read_piece(&mut self) -> Result<(Said, usize)> {
        let (mut items, mut bytes) = (Vec::new(), 0);
        while let Some(item) = self.next_item()? {
            let size = size_of(&item);
            if !items.is_empty() && bytes + size > PIECE_BYTES {
                self.held_back = Some(item);
                break;
            }
            bytes += size;
            items.push(item);
        }
        self.is_read = self.held_back.is_none();
        let (number, place, is_last) = (self.begin.number, self.next, self.is_read);
        self.next += 1;
        Ok((Said::Piece(Piece { number, place, is_last, items }), bytes))
    }
}

fn state_record(state: &RangeState) -> Exported {
    let key = local_keys::state(state.descriptor.id).into();
    Exported::Entry { key, ts: state.stamp, value: Some(state.encode().into()) }
}

fn size_of(item: &Exported) -> usize {
    const FRAME: usize = 16;
    FRAME
        + match item {
            Exported::Entry { key, value, .. } => key.len() + value.as_ref().map_or(0, Bytes::len),
            Exported::Tombstone { span, .. } => span.start.len() + span.end.len(),
        }
}

impl Replicas {
    /// Sends something about a range's state.
    pub(crate) fn say(&mut self, range: RangeId, to: NodeId, said: &Said) {
        let bytes = Envelope::of_state((range, self.options.node, self.clock()), said).seal();
        self.effects.send.push((to, bytes));
    }

    /// Another node has said something about a range's state.
    pub(crate) fn heed(&mut self, range: RangeId, from: NodeId, said: Said) -> Result<()> {
        match said {
            Said::Lacks => {
                let replica = self.replicas.get(&range);
                let is_member = replica.is_some_and(|replica| {
                    replica.machine.state.descriptor.replica_on(from).is_some()
                });
                if is_member {
                    self.wake(range);
                    self.traffic.want(range, from);
                }
                Ok(())
            }
            Said::Drains => {
                self.note_draining(from);
                Ok(())
            }
            Said::Short => {
                self.moves.short.hear(from, self.counts.ticks);
                Ok(())
            }
            Said::Here { replicas, led } => {
                self.moves.placement.hear_counts(from, replicas, led);
                Ok(())
            }
            Said::Removed { replica } => self.hear_of_removal(range, replica),
            Said::Asks { replica } => {
                self.tell_removed(range, from, replica);
                Ok(())
            }
            Said::IsFounded => {
                if self.is_founded(range) {
                    self.say(range, from, &Said::Founded);
                }
                Ok(())
            }
            Said::Founded => self.hear_of_founding(range),
            Said::There { life } => {
                self.hear_life(from, life);
                Ok(())
            }
            Said::Sleep { term, last } => {
                self.hear_last_word(range, from, (term, last));
                Ok(())
            }
            Said::Closed(closed) => {
                self.hear_closed(range, closed);
                Ok(())
            }
            Said::Begin(begin) => self.begin_receiving(range, from, *begin),
            Said::Piece(piece) => self.receive_piece(range, from, piece),
            Said::Got { number, upto } => self.was_got(range, from, (number, upto)),
            Said::Stopped { number, why } => {
                let sent = self.traffic.sending.get(&(range, from));
                if sent.is_some_and(|sending| sending.begin.number == number) {
                    self.end_sending(range, from, &why);
                } else {
                    self.stop_receiving(range, from, number);
                }
                Ok(())
            }
        }
    }

    /// A message for a range without a replica here has come from a leader.
    pub(crate) fn note_strange(&mut self, range: RangeId, from: NodeId) {
        let now = self.counts.ticks;
        let strange = &mut self.traffic.strange;
        if strange.len() >= MOST_STRANGE {
            strange.clear();
        }
        let (_, next) = strange.entry(range).or_insert((now, now + STRANGE_TICKS));
        if *next <= now {
            *next = now + AGAIN_TICKS;
            self.say(range, from, &Said::Lacks);
        }
    }

    /// Time has passed for states on their way.
    pub(crate) fn tick_states(&mut self) -> Result<()> {
        let now = self.counts.ticks;
        let traffic = &mut self.traffic;
        traffic.bytes_left = TICK_BYTES;
        traffic.resting.retain(|_, until| *until > now);
        let replicas = &self.replicas;
        traffic.strange.retain(|range, (since, next)| {
            !replicas.contains_key(range) && now < (*since).max(*next) + SILENT_TICKS
        });
        let mut ended = Vec::new();
        let mut again = Vec::new();
        for ((range, to), sending) in &mut traffic.sending {
            sending.silent_ticks += 1;
            // Without the one that gets it there may be no majority that acknowledges anything:
            // its sender is elected again and again then, by votes alone. It sends what is
            // committed.
            let goes_on = replicas
                .get(range)
                .is_some_and(|replica| replica.group.is_leader() || !replica.group.hears_leader());
            if !goes_on {
                ended.push((*range, *to, "its sender does not lead any more"));
            } else if sending.silent_ticks > SILENT_TICKS {
                ended.push((*range, *to, "nothing was heard of it"));
            } else if sending.silent_ticks.is_multiple_of(AGAIN_TICKS) {
                match sending.has_begun {
                    true => again.extend(
                        sending.unanswered.iter().map(|(_, said)| (*range, *to, said.clone())),
                    ),
                    false => {
                        let begin = Box::new(sending.begin.clone());
                        again.push((*range, *to, Said::Begin(begin)));
                    }
                }
            }
        }
        for (range, to, why) in ended {
            let number = self.traffic.sending[&(range, to)].begin.number;
            self.say(range, to, &Said::Stopped { number, why: why.into() });
            self.end_sending(range, to, why);
        }
        again.iter().for_each(|(range, to, said)| self.say(*range, *to, said));
        self.begin_sending()?;
        self.send_pieces()?;
        self.tick_receiving()
    }

    /// Begins with those who need a state, as far as there is room.
    fn begin_sending(&mut self) -> Result<()> {
        for (range, to) in std::mem::take(&mut self.traffic.wanted) {
            let key = (range, to);
            let traffic = &mut self.traffic;
            let waits = traffic.sending.contains_key(&key) || traffic.resting.contains_key(&key);
            let Some(replica) = self.replicas.get_mut(&range) else { continue };
            if waits || !replica.group.is_leader() || !traffic.has_room() {
                // Who is behind is named again.
                continue;
            }
            traffic.count += 1;
            let number = self.counts.starts << 32 | traffic.count;
            let Some(sending) = Sending::new(&self.db, replica, number)? else { continue };
            if sending.is_large && !self.traffic.has_room_for_large() {
                continue;
            }
            let said = Said::Begin(Box::new(sending.begin.clone()));
            let at = sending.begin.state.applied;
            self.effects.notes.push(format!("{to:?} is given the state of {range:?} as of {at}"));
            self.traffic.sending.insert(key, sending);
            self.keep_log(range);
            self.say(range, to, &said);
        }
        Ok(())
    }

    /// The replica must not let its log be cut behind what is on its way.
    fn keep_log(&mut self, range: RangeId) {
        let needed = self.traffic.needed(range);
        if let Some(replica) = self.replicas.get_mut(&range) {
            replica.log.needed = needed;
        }
    }

    fn end_sending(&mut self, range: RangeId, to: NodeId, why: &str) {
        if let Some(sending) = self.traffic.sending.remove(&(range, to)) {
            let at = sending.begin.state.applied;
            let note = format!("the state of {range:?} as of {at} is not sent to {to:?}: {why}");
            self.effects.notes.push(note);
            self.rest(range, to);
        }
    }

    fn rest(&mut self, range: RangeId, to: NodeId) {
        self.traffic.resting.insert((range, to), self.counts.ticks + REST_TICKS);
        self.keep_log(range);
    }

    /// Pieces in front of a place have arrived.
    fn was_got(&mut self, range: RangeId, from: NodeId, got: (u64, u64)) -> Result<()> {
        let (number, upto) = got;
        let Some(sending) = self.traffic.sending.get_mut(&(range, from)) else { return Ok(()) };
        if sending.begin.number != number {
            return Ok(());
        }
        (sending.has_begun, sending.silent_ticks) = (true, 0);
        while sending.unanswered.pop_front_if(|(place, _)| *place < upto).is_some() {}
        if sending.is_read && sending.unanswered.is_empty() {
            self.traffic.sending.remove(&(range, from));
            self.effects.notes.push(format!("{from:?} has the state of {range:?}"));
            self.rest(range, from);
            return Ok(());
        }
        self.send_pieces()
    }

    /// Sends what may be on the way.
    fn send_pieces(&mut self) -> Result<()> {
        let mut out = Vec::new();
        let traffic = &mut self.traffic;
        for ((range, to), sending) in &mut traffic.sending {
            while sending.has_begun
                && !sending.is_read
                && sending.unanswered.len() < ON_THE_WAY
                && traffic.bytes_left > 0
            {
                let place = sending.next;
                let (said, bytes) = sending.read_piece()?;
                traffic.bytes_left = traffic.bytes_left.saturating_sub(bytes);
                sending.unanswered.push_back((place, said.clone()));
                out.push((*range, *to, said));
            }
        }
        out.iter().for_each(|(range, to, said)| self.say(*range, *to, said));
        Ok(())
    }
}
