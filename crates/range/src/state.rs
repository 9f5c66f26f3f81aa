//! What a replica has applied: its place in the log, and what the log has made of the range.

use braid_consensus::codec::{Reader, put_number};
use braid_consensus::{LogIndex, ReplicaId, ReplicaSet};
use braid_lsm::CommitTs;

use crate::ids::{NodeId, RangeDescriptor, RangeId};
use crate::lease::Lease;

/// Version 1 had no threshold: nothing was collected. Up to version 2 replicas could not change.
/// Version 3 knew nothing of replicas that leave, nor of ranges that are not founded. Version 4 did
/// not say when data was written first and last.
const VERSION: u8 = 5;

/// The same on all replicas that have applied the same entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RangeState {
    /// The last entry that was applied. What is stored may lag behind by entries without effect.
    pub(crate) applied: LogIndex,
    /// Newest timestamp of an entry with an effect.
    pub(crate) stamp: CommitTs,
    pub(crate) lease: Lease,
    /// Newest timestamp of data that was not taken from the holder's own clock: of transactions
    /// over several ranges that were decided elsewhere.
    pub(crate) foreign: CommitTs,
    /// Last proposal under that lease that had an effect.
    pub(crate) proposal: u64,
    /// The log may be cut up to here: all replicas have it, or it is too long.
    pub(crate) cut: LogIndex,
    /// Nobody reads as of a time below, and nothing is written at or below: versions that only such
    /// readers would see may go.
    pub(crate) gc: CommitTs,
    /// Newest timestamp of data, or a later time.
    pub(crate) written: CommitTs,
    /// Oldest timestamp of data above the threshold, or an earlier time above it; the last of all
    /// times if there is no such data.
    pub(crate) first: CommitTs,
    /// Ranges that were split off, and of which it is not known that a majority has them: see
    /// [`crate::members::founding`].
    pub(crate) unfounded: Vec<RangeId>,
    pub(crate) descriptor: RangeDescriptor,
}

impl RangeState {
    /// A range nothing was proposed in yet.
    pub(crate) fn new(descriptor: RangeDescriptor) -> RangeState {
        RangeState {
            applied: LogIndex(0),
            stamp: CommitTs(1),
            foreign: CommitTs::ZERO,
            lease: Lease::NONE,
            proposal: 0,
            cut: LogIndex(0),
            gc: CommitTs::ZERO,
            written: CommitTs::ZERO,
            first: CommitTs(u64::MAX),
            unfounded: Vec::new(),
            descriptor,
        }
    }

    /// A range that begins with the rows of a node that was alone: none is newer than `newest`, and
    /// below `gc` versions may be missing. No lease has stamped them, so a reader may be in doubt
    /// about any of them.
    pub(crate) fn over_rows(
        descriptor: RangeDescriptor,
        newest: CommitTs,
        gc: CommitTs,
    ) -> RangeState {
        // Nothing is written at the threshold or below.
        let stamp = newest.max(CommitTs(gc.0 + 1));
        let state = RangeState { stamp, foreign: newest, gc, ..RangeState::new(descriptor) };
        state.with_data_up_to(newest)
    }

    /// Nothing is known of its data but that none is newer.
    fn with_data_up_to(mut self, newest: CommitTs) -> RangeState {
        self.written = newest;
        self.first = if newest > self.gc { CommitTs(self.gc.0 + 1) } else { CommitTs(u64::MAX) };
        self
    }

    /// There is data of that time, which is above the threshold.
    pub(crate) fn note_data(&mut self, at: CommitTs) {
        self.written = self.written.max(at);
        self.first = self.first.min(at);
    }

    /// The threshold moves.
    pub(crate) fn move_threshold(&mut self, gc: CommitTs) {
        self.gc = gc;
        if self.written <= gc {
            self.first = CommitTs(u64::MAX);
        } else {
            self.first = self.first.max(CommitTs(gc.0 + 1));
        }
    }

    /// Who belongs to the group.
    pub(crate) fn replicas(&self) -> ReplicaSet {
        let RangeDescriptor { replicas, learners, leaving, .. } = &self.descriptor;
        let id = |(replica, _): &(ReplicaId, NodeId)| *replica;
        ReplicaSet {
            voters: replicas.iter().map(id).collect(),
            learners: learners.iter().chain(leaving).map(id).collect(),
            ..ReplicaSet::default()
        }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        put_number(&mut out, self.applied.0);
        put_number(&mut out, self.stamp.0);
        put_number(&mut out, self.foreign.0);
        self.lease.encode(&mut out);
        put_number(&mut out, self.proposal);
        put_number(&mut out, self.cut.0);
        put_number(&mut out, self.gc.0);
        self.descriptor.encode(&mut out);
        put_number(&mut out, self.unfounded.len() as u64);
        self.unfounded.iter().for_each(|range| put_number(&mut out, range.0));
        put_number(&mut out, self.written.0);
        put_number(&mut out, self.first.0);
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<RangeState> {
        let mut reader = Reader::new(bytes);
        let version = reader.byte()?;
        if !(1..=VERSION).contains(&version) {
            return None;
        }
        let mut state = RangeState {
            applied: LogIndex(reader.number()?),
            stamp: CommitTs(reader.number()?),
            foreign: CommitTs(reader.number()?),
            lease: Lease::decode(&mut reader)?,
            proposal: reader.number()?,
            cut: LogIndex(reader.number()?),
            gc: CommitTs(if version == 1 { 0 } else { reader.number()? }),
            descriptor: RangeDescriptor::decode(&mut reader, version)?,
            written: CommitTs::ZERO,
            first: CommitTs(u64::MAX),
            unfounded: Vec::new(),
        };
        for _ in 0..if version < 4 { 0 } else { reader.number()? } {
            state.unfounded.push(RangeId(reader.number()?));
        }
        if version < 5 {
            // Data is not newer than the entry that it comes with.
            let stamp = state.stamp;
            return reader.is_empty().then(|| state.with_data_up_to(stamp));
        }
        state.written = CommitTs(reader.number()?);
        state.first = CommitTs(reader.number()?);
        reader.is_empty().then_some(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use braid_lsm::KeySpan;

    fn descriptor_len(state: &RangeState) -> usize {
        let mut bytes = Vec::new();
        state.descriptor.encode(&mut bytes);
        bytes.len()
    }

    #[test]
    fn entries_come_above_the_rows_and_the_threshold_of_a_node_that_was_alone() {
        let descriptor = || RangeDescriptor::new(RangeId(1), KeySpan::all(), Vec::new());
        let begin = |newest, gc| {
            let state = RangeState::over_rows(descriptor(), CommitTs(newest), CommitTs(gc));
            (state.stamp.0, state.foreign.0, state.gc.0)
        };
        assert_eq!(begin(900, 300), (900, 900, 300));
        // The threshold follows the clock, also when nobody writes.
        assert_eq!(begin(900, 2_000), (2_001, 900, 2_000));
        // Without rows it is any new range.
        assert_eq!(RangeState::over_rows(descriptor(), CommitTs(0), CommitTs(0)), {
            RangeState::new(descriptor())
        });
    }

    #[test]
    fn states_round_trip_and_cuts_are_noticed() {
        let replicas = vec![(ReplicaId(4), NodeId(1)), (ReplicaId(5), NodeId(300))];
        let span = KeySpan::new("a", "q");
        let descriptor =
            RangeDescriptor { generation: 2, ..RangeDescriptor::new(RangeId(9), span, replicas) };
        let mut state = RangeState::new(descriptor);
        (state.applied, state.proposal) = (LogIndex(70_000), 12);
        // As version 4 wrote it: without the time of the newest data.
        state.stamp = CommitTs(9);
        (state.written, state.first) = (CommitTs(9), CommitTs(1));
        let mut fourth = state.encode();
        assert_eq!((fourth.pop(), fourth.pop()), (Some(1), Some(9)));
        fourth[0] = 4;
        assert_eq!(RangeState::decode(&fourth).as_ref(), Some(&state));
        // As version 3 wrote it: without replicas that leave, and ranges that are not founded.
        let mut third = fourth;
        assert_eq!((third.pop(), third.pop()), (Some(0), Some(0)));
        third[0] = 3;
        assert_eq!(RangeState::decode(&third).as_ref(), Some(&state));
        // As version 2 wrote it: without learners (none), and without the next number (6).
        let mut second = third;
        assert_eq!((second.pop(), second.pop()), (Some(6), Some(0)));
        second[0] = 2;
        assert_eq!(RangeState::decode(&second).as_ref(), Some(&state));
        // As version 1 wrote it.
        let mut first = second;
        assert_eq!(first.remove(first.len() - (descriptor_len(&state) - 3) - 1), 0);
        first[0] = 1;
        assert_eq!(RangeState::decode(&first).as_ref(), Some(&state));
        state.descriptor.learners = vec![(ReplicaId(6), NodeId(4))];
        state.descriptor.leaving = vec![(ReplicaId(3), NodeId(7))];
        state.descriptor.next_replica = ReplicaId(7);
        state.unfounded = vec![RangeId(300), RangeId(4)];
        state.gc = CommitTs(1 << 40);
        (state.written, state.first) = (CommitTs(5), CommitTs(u64::MAX));
        let bytes = state.encode();
        assert_eq!(RangeState::decode(&bytes), Some(state));
        (0..bytes.len()).for_each(|len| assert_eq!(RangeState::decode(&bytes[..len]), None));
    }
}
