//! Ranges without a replica on this node: what is kept of them, and their votes.
//!
//! A member of a range may have no replica of it yet: it was away while the range was split off
//! another one, and is given its state when somebody has found out. Until then it votes
//! ([`vote_absent`]), or a range whose other members are one who has everything and one who is
//! lost would be served by nobody.

use std::collections::BTreeMap;

use braid_consensus::{GroupId, HardState, LogBatch, LoggedGroup, Message, Result, vote_absent};

use crate::envelope::Envelope;
use crate::ids::{NodeId, RangeId};
use crate::members::retiring::Retired;
use crate::replicas::Replicas;

/// As many ranges are remembered as led by somebody.
const MOST_LED: usize = 10_000;

/// What is known of ranges that have no replica here.
pub(crate) struct Absent {
    /// What the raft log has of ranges that the store does not know: a split was lost with the end
    /// of the store's log, and will be applied again; or a vote that was given.
    pub(crate) unborn: BTreeMap<GroupId, LoggedGroup>,
    pub(crate) retired: Retired,
    /// When a leader was heard of last, in ticks.
    led: BTreeMap<RangeId, u64>,
}

impl Absent {
    /// What log and store have, when the node is opened.
    pub(crate) fn new(unborn: BTreeMap<GroupId, LoggedGroup>, retired: Retired) -> Absent {
        Absent { unborn, retired, led: BTreeMap::new() }
    }

    /// What was promised, a line for each group.
    pub(crate) fn describe(&self, node: NodeId) -> impl Iterator<Item = String> {
        self.unborn.iter().map(move |(group, logged)| {
            let HardState { term, vote, .. } = logged.hard_state;
            let vote = vote.map_or("nobody".into(), |vote| vote.to_string());
            format!("{node:?} {group:?} is not there: {term}, voted {vote}")
        })
    }

    /// Writes again what was promised in a group, if that is all there is of it: it must not keep
    /// old files of the raft log.
    pub(crate) fn keep_promise(&self, group: GroupId, batch: &mut LogBatch) {
        // Where a log was cut is part of what a vote depends on.
        let promised = |logged: &&LoggedGroup| {
            logged.entries.is_empty() && logged.cut == LoggedGroup::default().cut
        };
        if let Some(logged) = self.unborn.get(&group).filter(promised) {
            batch.promise(group, logged.hard_state);
        }
    }
}

impl Replicas {
    /// A message has come for a range that has no replica here. Blocks on the device if it gets a
    /// vote.
    pub(crate) fn receive_absent(
        &mut self,
        range: RangeId,
        from: NodeId,
        message: &Message,
    ) -> Result<()> {
        let (now, patience) = (self.counts.ticks, self.options.group.election_ticks as u64);
        if message.is_of_leader() {
            let led = &mut self.absent.led;
            led.insert(range, now);
            if led.len() > MOST_LED {
                led.retain(|_, heard| *heard + patience > now);
            }
            self.note_strange(range, from);
            return Ok(());
        }
        let heard = self.absent.led.get(&range).is_some_and(|heard| *heard + patience > now);
        // Where a replica was removed, what a later one has promised may have gone with it.
        if heard && !message.is_of_transfer() || self.absent.retired.contains_key(&range) {
            return Ok(());
        }
        let group = range.group();
        let logged = self.absent.unborn.get(&group);
        let Some(vote) = vote_absent(logged.unwrap_or(&LoggedGroup::default()), message) else {
            return Ok(());
        };
        if logged.map(|logged| logged.hard_state).unwrap_or_default() != vote.promised {
            let mut batch = LogBatch::default();
            batch.promise(group, vote.promised);
            let place = self.log.write(&batch)?;
            self.log.sync(place)?;
            self.absent.unborn.entry(group).or_default().hard_state = vote.promised;
        }
        let head = (range, self.options.node, self.clock());
        let answer = Envelope::of_group(head, vote.answer.encode()).seal();
        self.effects.send.push((from, answer));
        Ok(())
    }
}
