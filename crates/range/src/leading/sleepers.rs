//! What a node knows of its ranges that sleep, so that it need not look at each of them.
//!
//! What is done with every tick, or every second, is done for those that are awake. Of the others
//! there are sums, which change when one falls asleep or wakes: nothing else changes while it
//! sleeps.

use std::collections::{BTreeMap, BTreeSet};

use braid_lsm::CommitTs;

use crate::ids::{NodeId, RangeId};

/// How often each of some things is there.
#[derive(Debug)]
struct Counted<T>(BTreeMap<T, u64>);

impl<T: Ord + Copy> Counted<T> {
    fn add(&mut self, one: T) {
        *self.0.entry(one).or_default() += 1;
    }

    fn remove(&mut self, one: T) {
        if let Some(count) = self.0.get_mut(&one) {
            *count -= 1;
            if *count == 0 {
                self.0.remove(&one);
            }
        }
    }
}

impl<T> Default for Counted<T> {
    fn default() -> Self {
        Counted(BTreeMap::new())
    }
}

/// A range that sleeps.
#[derive(Debug)]
pub(crate) struct Asleep {
    /// The node that leads it.
    pub(crate) leader: NodeId,
    /// Other nodes that have all of its log, if this node leads it.
    pub(crate) current: Vec<NodeId>,
    /// Its threshold, if it holds that of the store.
    pub(crate) threshold: Option<CommitTs>,
}

/// See the [module's page](self).
#[derive(Debug, Default)]
pub(crate) struct Sleepers {
    awake: BTreeSet<RangeId>,
    asleep: BTreeMap<RangeId, Asleep>,
    /// Those that sleep, and of which the store may hold something that is not durable.
    unsynced: BTreeSet<RangeId>,
    leads: Counted<NodeId>,
    current: Counted<NodeId>,
    thresholds: Counted<CommitTs>,
    /// How often one fell asleep.
    pub(crate) naps: u64,
}

impl Sleepers {
    /// A range has a replica from now on, or another one: it is awake.
    pub(crate) fn begin(&mut self, range: RangeId) {
        self.wake(range);
        self.awake.insert(range);
    }

    /// A range has no replica any more.
    pub(crate) fn end(&mut self, range: RangeId) {
        self.wake(range);
        self.awake.remove(&range);
    }

    /// A range that is awake falls asleep.
    pub(crate) fn sleep(&mut self, range: RangeId, how: Asleep) {
        if !self.awake.remove(&range) {
            return;
        }
        self.naps += 1;
        self.unsynced.insert(range);
        self.leads.add(how.leader);
        how.current.iter().for_each(|node| self.current.add(*node));
        how.threshold.into_iter().for_each(|threshold| self.thresholds.add(threshold));
        self.asleep.insert(range, how);
    }

    /// A range wakes, if it sleeps; then the node that leads it is returned.
    pub(crate) fn wake(&mut self, range: RangeId) -> Option<NodeId> {
        let how = self.asleep.remove(&range)?;
        self.unsynced.remove(&range);
        self.leads.remove(how.leader);
        how.current.iter().for_each(|node| self.current.remove(*node));
        how.threshold.into_iter().for_each(|threshold| self.thresholds.remove(threshold));
        self.awake.insert(range);
        Some(how.leader)
    }

    /// Those that are awake.
    pub(crate) fn awake(&self) -> Vec<RangeId> {
        self.awake.iter().copied().collect()
    }

    /// Those of which the store may hold something that is not durable.
    pub(crate) fn restless(&self) -> impl Iterator<Item = RangeId> {
        self.awake.iter().chain(&self.unsynced).copied()
    }

    /// Everything that the store holds of a range is durable, as long as it sleeps.
    pub(crate) fn is_synced(&mut self, range: RangeId) {
        self.unsynced.remove(&range);
    }

    /// How many are awake.
    pub(crate) fn count_awake(&self) -> usize {
        self.awake.len()
    }

    /// Those that sleep.
    pub(crate) fn asleep(&self) -> impl Iterator<Item = (RangeId, &Asleep)> {
        self.asleep.iter().map(|(range, how)| (*range, how))
    }

    /// The node that leads a range, if that sleeps.
    pub(crate) fn leader_of(&self, range: RangeId) -> Option<NodeId> {
        self.asleep.get(&range).map(|how| how.leader)
    }

    /// Whether a range sleeps.
    pub(crate) fn sleeps(&self, range: RangeId) -> bool {
        self.asleep.contains_key(&range)
    }

    /// How many sleep.
    pub(crate) fn count(&self) -> usize {
        self.asleep.len()
    }

    /// Of those that sleep: how many each node leads.
    pub(crate) fn leads(&self) -> BTreeMap<NodeId, u64> {
        self.leads.0.clone()
    }

    /// Other nodes that have all of the log of one that sleeps and that this node leads.
    pub(crate) fn current(&self) -> impl Iterator<Item = NodeId> {
        self.current.0.keys().copied()
    }

    /// The lowest threshold of those that sleep and hold that of the store.
    pub(crate) fn lowest_threshold(&self) -> Option<CommitTs> {
        self.thresholds.0.keys().next().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn how(leader: u64, current: &[u64], gc: u64) -> Asleep {
        let current = current.iter().map(|node| NodeId(*node)).collect();
        let threshold = (gc > 0).then_some(CommitTs(gc));
        Asleep { leader: NodeId(leader), current, threshold }
    }

    #[test]
    fn sums_are_those_of_who_sleeps() {
        let mut sleepers = Sleepers::default();
        let ranges = [1, 2, 3].map(RangeId);
        ranges.iter().for_each(|range| sleepers.begin(*range));
        sleepers.sleep(ranges[0], how(1, &[2, 3], 7));
        sleepers.sleep(ranges[1], how(1, &[3], 5));
        sleepers.sleep(ranges[1], how(2, &[], 1));
        assert_eq!(sleepers.awake(), [ranges[2]]);
        assert_eq!(sleepers.leads(), [(NodeId(1), 2)].into());
        assert_eq!(sleepers.current().collect::<Vec<_>>(), [NodeId(2), NodeId(3)]);
        assert_eq!((sleepers.lowest_threshold(), sleepers.naps), (Some(CommitTs(5)), 2));
        sleepers.sleep(ranges[2], how(1, &[2], 0));
        assert_eq!(sleepers.lowest_threshold(), Some(CommitTs(5)), "that one is settled");
        sleepers.wake(ranges[2]);
        // What was written last may not be durable yet.
        assert_eq!(sleepers.restless().count(), 3);
        sleepers.is_synced(ranges[1]);
        assert_eq!(sleepers.restless().collect::<Vec<_>>(), [ranges[2], ranges[0]]);
        assert_eq!(sleepers.wake(ranges[1]), Some(NodeId(1)));
        assert_eq!(sleepers.wake(ranges[1]), None);
        assert_eq!(sleepers.lowest_threshold(), Some(CommitTs(7)));
        sleepers.end(ranges[0]);
        assert_eq!((sleepers.count(), sleepers.leads().len()), (0, 0));
        assert_eq!(sleepers.awake(), ranges[1..]);
    }
}
