//! What a group agrees on, and what a replica must not forget.

use std::collections::BTreeSet;
use std::fmt;

use bytes::Bytes;
use protobuf::Message as _;
use raft::eraftpb::{self, ConfChangeType, ConfChangeV2, ConfState, EntryType};

use crate::ids::{LogIndex, ReplicaId, Term};

/// What an entry says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// Bytes that the group does not look into. Empty ones are the leader's own: with such an entry
    /// it begins its term.
    Command,
    /// The group has other replicas from here on.
    Replicas,
}

/// One entry of a group's log.
#[derive(Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its place.
    pub index: LogIndex,
    /// The term of the leader that made it.
    pub term: Term,
    /// What `data` is.
    pub kind: EntryKind,
    /// What it says.
    pub data: Bytes,
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{} ", self.index, self.term)?;
        match self.kind {
            EntryKind::Command if self.data.is_empty() => write!(f, "empty"),
            EntryKind::Command => write!(f, "\"{}\"", self.data.escape_ascii()),
            EntryKind::Replicas => write!(f, "replicas"),
        }
    }
}

impl Entry {
    /// The command that the entry carries, of whichever kind it is; `None`: it is damaged.
    pub fn command(&self) -> Option<Bytes> {
        match self.kind {
            EntryKind::Command => Some(self.data.clone()),
            EntryKind::Replicas => {
                let mut change = ConfChangeV2::default();
                change.merge_from_bytes(&self.data).ok()?;
                Some(change.context)
            }
        }
    }

    pub(crate) fn of_raft(entry: eraftpb::Entry) -> Entry {
        let kind = match entry.get_entry_type() {
            EntryType::EntryNormal => EntryKind::Command,
            EntryType::EntryConfChange | EntryType::EntryConfChangeV2 => EntryKind::Replicas,
        };
        let (index, term) = (LogIndex(entry.index), Term(entry.term));
        Entry { index, term, kind, data: entry.data }
    }

    pub(crate) fn to_raft(&self) -> eraftpb::Entry {
        let mut entry = eraftpb::Entry {
            index: self.index.0,
            term: self.term.0,
            data: self.data.clone(),
            ..eraftpb::Entry::default()
        };
        entry.set_entry_type(match self.kind {
            EntryKind::Command => EntryType::EntryNormal,
            // Those of the older form are never proposed.
            EntryKind::Replicas => EntryType::EntryConfChangeV2,
        });
        entry
    }
}

/// What a replica has promised and knows; durable before it says so to anybody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HardState {
    /// The newest term that it has heard of.
    pub term: Term,
    /// Whom it voted for in that term.
    pub vote: Option<ReplicaId>,
    /// All entries up to here are committed. May lag behind what is known.
    pub commit: LogIndex,
}

impl HardState {
    pub(crate) fn of_raft(state: &eraftpb::HardState) -> HardState {
        let vote = Some(ReplicaId(state.vote)).filter(|vote| vote.0 != 0);
        HardState { term: Term(state.term), vote, commit: LogIndex(state.commit) }
    }

    pub(crate) fn to_raft(self) -> eraftpb::HardState {
        eraftpb::HardState {
            term: self.term.0,
            vote: self.vote.map_or(0, |vote| vote.0),
            commit: self.commit.0,
            ..eraftpb::HardState::default()
        }
    }
}

/// Who belongs to a group, as of some applied entry.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReplicaSet {
    /// Their majority decides.
    pub voters: BTreeSet<ReplicaId>,
    /// They get all entries and have no vote.
    pub learners: BTreeSet<ReplicaId>,
    /// While a change of several replicas is under way: the voters before it, whose majority is
    /// needed too. Else empty.
    pub outgoing: BTreeSet<ReplicaId>,
    /// Outgoing voters that become learners when the change is over.
    pub learners_next: BTreeSet<ReplicaId>,
    /// The leader ends the change under way by itself.
    pub auto_leave: bool,
}

impl ReplicaSet {
    /// A set of voters.
    pub fn of_voters(voters: impl IntoIterator<Item = ReplicaId>) -> ReplicaSet {
        ReplicaSet { voters: voters.into_iter().collect(), ..ReplicaSet::default() }
    }

    /// Whether the replica belongs to the group in any way.
    pub fn contains(&self, replica: ReplicaId) -> bool {
        [&self.voters, &self.learners, &self.outgoing, &self.learners_next]
            .iter()
            .any(|part| part.contains(&replica))
    }

    pub(crate) fn of_raft(state: &ConfState) -> ReplicaSet {
        let set = |ids: &[u64]| ids.iter().copied().map(ReplicaId).collect();
        ReplicaSet {
            voters: set(state.get_voters()),
            learners: set(state.get_learners()),
            outgoing: set(state.get_voters_outgoing()),
            learners_next: set(state.get_learners_next()),
            auto_leave: state.auto_leave,
        }
    }

    pub(crate) fn to_raft(&self) -> ConfState {
        let list = |ids: &BTreeSet<ReplicaId>| ids.iter().map(|id| id.0).collect::<Vec<_>>();
        let mut state = ConfState::default();
        state.set_voters(list(&self.voters));
        state.set_learners(list(&self.learners));
        state.set_voters_outgoing(list(&self.outgoing));
        state.set_learners_next(list(&self.learners_next));
        state.auto_leave = self.auto_leave;
        state
    }
}

impl fmt::Display for ReplicaSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            ("voters", &self.voters),
            ("learners", &self.learners),
            ("outgoing", &self.outgoing),
            ("next learners", &self.learners_next),
        ];
        let mut first = true;
        for (name, ids) in parts.into_iter().filter(|(_, ids)| !ids.is_empty()) {
            let ids: Vec<String> = ids.iter().map(ReplicaId::to_string).collect();
            write!(f, "{}{name} {}", if first { "" } else { ", " }, ids.join(" "))?;
            first = false;
        }
        Ok(())
    }
}

/// A change of who belongs to a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplicaChange {
    /// With a vote; a learner is promoted.
    Voter(ReplicaId),
    /// Without a vote; a voter is demoted.
    Learner(ReplicaId),
    /// Not at all.
    Remove(ReplicaId),
}

impl ReplicaChange {
    pub(crate) fn to_raft(self) -> eraftpb::ConfChangeSingle {
        let (kind, id) = match self {
            ReplicaChange::Voter(id) => (ConfChangeType::AddNode, id),
            ReplicaChange::Learner(id) => (ConfChangeType::AddLearnerNode, id),
            ReplicaChange::Remove(id) => (ConfChangeType::RemoveNode, id),
        };
        let mut change = eraftpb::ConfChangeSingle::default();
        change.set_change_type(kind);
        change.node_id = id.0;
        change
    }
}
