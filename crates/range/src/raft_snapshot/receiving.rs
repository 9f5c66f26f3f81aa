//! The other side: whether a state is wanted, and the files that it becomes.

use braid_consensus::Result;
use braid_lsm::{CommitTs, Exported, KeySpan, SstBuilder};
use bytes::Bytes;

use super::installing::{Arrived, Staging};
use super::message::{Begin, Piece, Said};
use super::sending::RECEIVED_AT_THE_SAME_TIME;
use super::small::Small;
use crate::ids::{NodeId, RangeId};
use crate::local_keys::FIRST_DATA_KEY;
use crate::replicas::Replicas;

/// A file is full with so many bytes.
const FILE_BYTES: u64 = 16 << 20;
/// What a range tombstone counts for in that.
const TOMBSTONE_BYTES: u64 = 64;
/// After so many ticks without a word what has come is thrown away.
const SILENT_TICKS: u64 = 100;

/// A file that is being written.
struct Writer {
    builder: SstBuilder,
    is_local: bool,
    /// The last key.
    last: Bytes,
    /// They may reach beyond the file: cut when it ends.
    tombstones: Vec<(KeySpan, CommitTs)>,
}

/// A state that is arriving.
pub(super) struct Receiving {
    from: NodeId,
    begin: Begin,
    /// The place of the piece that is wanted.
    next: u64,
    /// What came, if that was all in one piece: it may need no files.
    held: Vec<Exported>,
    writer: Option<Writer>,
    /// Of the range's records, and of its keys.
    local: Vec<String>,
    data: Vec<String>,
    /// All is there.
    is_whole: bool,
    silent_ticks: u64,
}

impl Receiving {
    fn new(from: NodeId, begin: Begin) -> Receiving {
        Receiving {
            from,
            begin,
            next: 0,
            held: Vec::new(),
            writer: None,
            local: Vec::new(),
            data: Vec::new(),
            is_whole: false,
            silent_ticks: 0,
        }
    }

    fn take(&mut self, staging: &Staging, items: Vec<Exported>) -> braid_lsm::Result<()> {
        for item in items {
            let (at, is_tombstone) = match &item {
                Exported::Entry { key, .. } => (key, false),
                Exported::Tombstone { span, .. } => (&span.start, true),
            };
            let is_local = at.as_ref() < FIRST_DATA_KEY;
            let full = self.writer.as_ref().is_some_and(|writer| {
                let tombstones = writer.tombstones.len() as u64 * TOMBSTONE_BYTES;
                let is_large = writer.builder.size() + tombstones > FILE_BYTES;
                // All versions of a key are in one file.
                writer.is_local != is_local || is_large && *at > writer.last
            });
            let mut carried = Vec::new();
            if full {
                carried = self.finish_file(Some(at))?;
            }
            let writer = match &mut self.writer {
                Some(writer) => writer,
                empty => {
                    let count = self.local.len() + self.data.len();
                    let range = self.begin.state.descriptor.id;
                    let (name, builder) = staging.new_file(range, count)?;
                    let files = if is_local { &mut self.local } else { &mut self.data };
                    files.push(name);
                    let (last, tombstones) = (Bytes::new(), carried);
                    empty.insert(Writer { builder, is_local, last, tombstones })
                }
            };
            if !is_tombstone {
                writer.last = at.clone();
            }
            match item {
                Exported::Entry { key, ts, value: Some(value) } => {
                    writer.builder.put_at(&key, ts, &value)?;
                }
                Exported::Entry { key, ts, value: None } => writer.builder.delete_at(&key, ts)?,
                Exported::Tombstone { span, ts } => writer.tombstones.push((span, ts)),
            }
        }
        Ok(())
    }

    /// Ends the file in front of a key; returns what is left of tombstones that reach beyond it.
    fn finish_file(&mut self, end: Option<&Bytes>) -> braid_lsm::Result<Vec<(KeySpan, CommitTs)>> {
        let Some(mut writer) = self.writer.take() else { return Ok(Vec::new()) };
        let mut rest = Vec::new();
        for (span, ts) in writer.tombstones {
            let upto = end.map_or(&span.end, |end| end.min(&span.end));
            writer.builder.delete_span_at(&span.start, upto, ts)?;
            if *upto < span.end {
                rest.push((KeySpan::new(upto.clone(), span.end), ts));
            }
        }
        writer.builder.finish()?;
        Ok(rest)
    }
}

impl Replicas {
    /// Another node wants to give this one the state of a range.
    pub(super) fn begin_receiving(
        &mut self,
        range: RangeId,
        from: NodeId,
        begin: Begin,
    ) -> Result<()> {
        let number = begin.number;
        if let Some(known) = self.traffic.receiving.get(&range) {
            if known.from == from && known.begin.number == number {
                let upto = known.next;
                self.say(range, from, &Said::Got { number, upto });
                return Ok(());
            }
            if begin.term < known.begin.term {
                let why = "a state is arriving from a later leader".into();
                self.say(range, from, &Said::Stopped { number, why });
                return Ok(());
            }
            self.forget_arriving(range)?;
        }
        self.make_way(range, &begin)?;
        let no = match self.traffic.receiving.len() < RECEIVED_AT_THE_SAME_TIME {
            true if self.is_short() => Some("its disk has little room".into()),
            true => self.does_not_want(range, from, &begin),
            false => Some("other states are arriving".into()),
        };
        if let Some(why) = no {
            self.say(range, from, &Said::Stopped { number, why });
            return Ok(());
        }
        self.traffic.staging.clear(range)?;
        self.traffic.receiving.insert(range, Receiving::new(from, begin));
        self.say(range, from, &Said::Got { number, upto: 0 });
        Ok(())
    }

    /// A replica that was removed goes, if there is one here: a range has one replica on a node,
    /// and
    /// the state is for another one.
    fn make_way(&mut self, range: RangeId, begin: &Begin) -> Result<()> {
        let next = begin.state.descriptor.replica_on(self.options.node);
        let own = self.replicas.get(&range).map(|own| own.group.id());
        match (own, next) {
            (Some(own), Some(next)) if own < next => self.retire(range),
            _ => Ok(()),
        }
    }

    /// Why a state cannot take the place of what is here, if it cannot. Who has it already is
    /// told so as a leader is.
    fn does_not_want(&mut self, range: RangeId, from: NodeId, begin: &Begin) -> Option<String> {
        let (descriptor, at) = (&begin.state.descriptor, begin.at());
        let leader = descriptor.replica_on(from);
        let (Some(leader), Some(own)) = (leader, descriptor.replica_on(self.options.node)) else {
            return Some("it is no range of both nodes".into());
        };
        if self.was_removed(range, own) {
            return Some("that replica of this node was removed".into());
        }
        if descriptor.id != range {
            return Some("it is the state of another range".into());
        }
        let others = self.replicas.iter().filter(|(other, _)| **other != range);
        let mut spans = others.map(|(_, replica)| &replica.machine.state.descriptor.span);
        if spans.any(|span| span.overlaps(&descriptor.span)) {
            return Some("another range has its keys here, and will be split".into());
        }
        let replica = self.replicas.get(&range)?;
        if replica.group.id() != own {
            return Some("it is for an earlier replica".into());
        }
        let applied = replica.machine.state.applied;
        if replica.group.is_leader() {
            return Some("this replica leads".into());
        }
        if applied >= at.0 || replica.group.has(at.0, at.1) {
            let message = replica.group.say_has(leader, applied.max(at.0));
            self.send(range, vec![message]);
            return Some("this replica has it".into());
        }
        if replica.group.term_of(at.0) == Some(at.1) {
            return Some("this replica is about to have it".into());
        }
        let own = &replica.machine.state.descriptor.span;
        (!own.covers(&descriptor.span)).then(|| "it has keys that the range had not".into())
    }

    /// A piece has arrived.
    pub(super) fn receive_piece(
        &mut self,
        range: RangeId,
        from: NodeId,
        piece: Piece,
    ) -> Result<()> {
        let number = piece.number;
        let known = self.traffic.receiving.get_mut(&range);
        let known = known.filter(|known| known.from == from && known.begin.number == number);
        let Some(known) = known else {
            // Of one that has been installed, or was given up.
            let why = "nothing is known of it".into();
            self.say(range, from, &Said::Stopped { number, why });
            return Ok(());
        };
        known.silent_ticks = 0;
        if piece.place == known.next && !known.is_whole {
            known.is_whole = piece.is_last;
            if piece.is_last && piece.place == 0 {
                // With the others that come in this tick.
                known.held = piece.items;
                return Ok(());
            }
            known.next += u64::from(!piece.is_last);
            let (items, is_last) = (piece.items, piece.is_last);
            if !self.take_into_files(range, items, is_last)? {
                return Ok(());
            }
        }
        let known = &self.traffic.receiving[&range];
        if known.is_whole && known.held.is_empty() {
            return self.try_install(range);
        }
        let upto = known.next;
        self.say(range, from, &Said::Got { number, upto });
        Ok(())
    }

    /// Writes what has come into files; false, and the state is given up, if that fails.
    fn take_into_files(
        &mut self,
        range: RangeId,
        items: Vec<Exported>,
        is_last: bool,
    ) -> Result<bool> {
        let traffic = &mut self.traffic;
        let Some(known) = traffic.receiving.get_mut(&range) else { return Ok(false) };
        let mut taken = known.take(&traffic.staging, items);
        if is_last {
            taken = taken.and_then(|()| known.finish_file(None).map(drop));
        }
        let Err(error) = taken else { return Ok(true) };
        let (from, number, why) = (known.from, known.begin.number, error.to_string());
        self.say(range, from, &Said::Stopped { number, why });
        self.forget_arriving(range)?;
        Ok(false)
    }

    /// Installs what came in one piece, if the store has room: all of it in one step, where
    /// nothing of the ranges is here.
    fn try_install_held(&mut self) -> Result<()> {
        if !self.db.has_room() || self.is_short() {
            return Ok(());
        }
        let receiving = &self.traffic.receiving;
        let held = receiving.iter().filter(|(_, known)| !known.held.is_empty());
        let held: Vec<RangeId> = held.map(|(range, _)| *range).collect();
        let (mut states, mut answers): (Vec<Small>, Vec<_>) = (Vec::new(), Vec::new());
        for range in held {
            let known = &self.traffic.receiving[&range];
            let span = &known.begin.state.descriptor.span;
            if states.iter().any(|other| other.begin.state.descriptor.span.overlaps(span)) {
                // One of the two will be refused, once the other is there.
                continue;
            }
            let Some(known) = self.traffic.receiving.get_mut(&range) else { continue };
            let items = std::mem::take(&mut known.held);
            let small = Small { begin: known.begin.clone(), items };
            if !self.has_nothing_of(&small)? {
                if self.take_into_files(range, small.items, true)? {
                    self.try_install(range)?;
                }
                continue;
            }
            let Some(known) = self.traffic.receiving.remove(&range) else { continue };
            let (from, number) = (known.from, small.begin.number);
            match self.does_not_want(range, from, &small.begin) {
                Some(why) => self.say(range, from, &Said::Stopped { number, why }),
                None => {
                    answers.push((range, from, Said::Got { number, upto: known.next + 1 }));
                    states.push(small);
                }
            }
        }
        self.install_small(states)?;
        answers.iter().for_each(|(range, from, said)| self.say(*range, *from, said));
        Ok(())
    }

    /// Installs a state that is there, in files, if the store has room.
    fn try_install(&mut self, range: RangeId) -> Result<()> {
        if !self.db.has_room() || self.is_short() {
            return Ok(());
        }
        let Some(known) = self.traffic.receiving.remove(&range) else { return Ok(()) };
        let Receiving { from, begin, local, data, next, .. } = known;
        let number = begin.number;
        // It may have caught up otherwise.
        if let Some(why) = self.does_not_want(range, from, &begin) {
            self.say(range, from, &Said::Stopped { number, why });
            return self.traffic.staging.clear(range);
        }
        self.install(Arrived { begin, local, data })?;
        self.say(range, from, &Said::Got { number, upto: next + 1 });
        Ok(())
    }

    /// Throws away what has come of a state.
    fn forget_arriving(&mut self, range: RangeId) -> Result<()> {
        self.traffic.receiving.remove(&range);
        self.traffic.staging.clear(range)
    }

    /// Whoever sends a state does not go on.
    pub(super) fn stop_receiving(&mut self, range: RangeId, from: NodeId, number: u64) {
        let known = self.traffic.receiving.get_mut(&range);
        if let Some(known) = known.filter(|k| k.from == from && k.begin.number == number) {
            // It goes with the next tick.
            known.silent_ticks = SILENT_TICKS;
        }
    }

    /// Time has passed for states that arrive.
    pub(super) fn tick_receiving(&mut self) -> Result<()> {
        let ranges: Vec<RangeId> = self.traffic.receiving.keys().copied().collect();
        for range in ranges {
            let known = self.traffic.receiving.get_mut(&range).expect("listed");
            known.silent_ticks += 1;
            match (known.is_whole, known.silent_ticks > SILENT_TICKS) {
                (true, _) if known.held.is_empty() => self.try_install(range)?,
                (true, _) => {}
                (false, true) => self.forget_arriving(range)?,
                (false, false) => {}
            }
        }
        self.try_install_held()
    }
}
