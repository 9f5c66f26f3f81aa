//! What other clocks than the holder's have stamped: transactions over several ranges that were
//! decided elsewhere, and all that was written under the leases of others.
//!
//! A reader's view of the holder's clock says nothing of these times. Of transactions there are few
//! within the short time that a reader may be in doubt about, and each is a doubt of its own: what
//! the holder itself writes in between, all the time, is none. Of earlier holders it is only known
//! until when they had the lease.
//!
//! A reader who has met the clock of whoever has stamped something knows whether that came later.

use std::collections::{BTreeMap, VecDeque};

use braid_lsm::CommitTs;

use crate::ids::NodeId;
use crate::request::MetClocks;

/// Times that are remembered.
const MOST: usize = 1024;
/// Nobody knows who. No clock of it is ever met.
const SOMEBODY: NodeId = NodeId(0);

/// See the [module's page](self).
#[derive(Debug, Clone)]
pub(crate) struct Foreign {
    /// In the order in which they became known, and whose they are.
    times: VecDeque<(CommitTs, NodeId)>,
    /// Any time up to there may have been one of that node.
    forgotten: BTreeMap<NodeId, CommitTs>,
    /// That node may have stamped anything up to there, as the holder.
    held: BTreeMap<NodeId, CommitTs>,
}

impl Foreign {
    /// Somebody may have decided something at any time up to the first, and stamped anything as the
    /// holder up to the second.
    pub(crate) fn since(forgotten: CommitTs, held: CommitTs) -> Foreign {
        let somebody = |upto| BTreeMap::from([(SOMEBODY, upto)]);
        let (forgotten, held) = (somebody(forgotten), somebody(held));
        Foreign { times: VecDeque::new(), forgotten, held }
    }

    /// Something was written at a time that the clock of another node has chosen.
    pub(crate) fn note(&mut self, at: CommitTs, by: NodeId) {
        self.times.push_back((at, by));
        if self.times.len() > MOST {
            let (gone, by) = self.times.pop_front().expect("there are some");
            raise(&mut self.forgotten, by, gone);
        }
    }

    /// From there on another node has the lease; or the same one, of which it is not known that it
    /// has had it all the time: a process that was begun anew need not remember what its clock
    /// showed.
    pub(crate) fn note_lease(&mut self, before: NodeId, after: NodeId, start: CommitTs) {
        raise(&mut self.held, if before == after { SOMEBODY } else { before }, start);
    }

    /// Up to when others may have stamped something as holders before a reader began.
    pub(crate) fn held_until(&self, met: &MetClocks) -> CommitTs {
        let ends = self.held.iter().map(|(node, end)| met.bound((*node, *end)));
        ends.max().unwrap_or(CommitTs::ZERO)
    }

    /// The times above `floor` and not above `upto` at which transactions may have been decided
    /// elsewhere before a reader began: pieces of time, each without its beginning.
    pub(crate) fn within<'a>(
        &'a self,
        (floor, upto): (CommitTs, CommitTs),
        met: &'a MetClocks,
    ) -> impl Iterator<Item = (CommitTs, CommitTs)> + use<'a> {
        let ends = self.forgotten.iter().map(|(node, end)| met.bound((*node, *end)));
        let from = ends.max().unwrap_or(CommitTs::ZERO).min(upto).max(floor);
        let known = self.times.iter().filter(move |(at, _)| from < *at && *at <= upto);
        let known = known.filter(|(at, by)| met.bound((*by, *at)) == *at);
        let known = known.map(|(at, _)| (CommitTs(at.0 - 1), *at));
        Some((floor, from)).filter(|(floor, from)| floor < from).into_iter().chain(known)
    }
}

fn raise(times: &mut BTreeMap<NodeId, CommitTs>, node: NodeId, at: CommitTs) {
    let known = times.entry(node).or_default();
    *known = at.max(*known);
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALICE: NodeId = NodeId(1);
    const BOB: NodeId = NodeId(2);

    fn met(clocks: &[(NodeId, u64)]) -> MetClocks {
        MetClocks(clocks.iter().map(|(node, clock)| (*node, CommitTs(*clock))).collect())
    }

    fn within(foreign: &Foreign, floor: u64, upto: u64, met: &MetClocks) -> Vec<(u64, u64)> {
        let pieces = foreign.within((CommitTs(floor), CommitTs(upto)), met);
        pieces.map(|(floor, upto)| (floor.0, upto.0)).collect()
    }

    #[test]
    fn each_time_is_a_doubt_of_its_own_and_what_is_forgotten_is_one_as_a_whole() {
        let mut foreign = Foreign::since(CommitTs(10), CommitTs(5));
        [30, 20, 40].into_iter().for_each(|at| foreign.note(CommitTs(at), ALICE));
        let nobody = MetClocks::default();
        assert_eq!(within(&foreign, 10, 50, &nobody), [(29, 30), (19, 20), (39, 40)]);
        assert_eq!(within(&foreign, 20, 39, &nobody), [(29, 30)]);
        assert_eq!(within(&foreign, 5, 8, &nobody), [(5, 8)]);
        assert_eq!(within(&foreign, 5, 20, &nobody), [(5, 10), (19, 20)]);
        assert_eq!(within(&foreign, 40, 40, &nobody), []);
        (0..MOST as u64 - 1).for_each(|n| foreign.note(CommitTs(100 + n), ALICE));
        // The first two have been forgotten.
        assert_eq!(within(&foreign, 10, 50, &nobody), [(10, 30), (39, 40)]);
        assert_eq!(within(&foreign, 30, 50, &nobody), [(39, 40)]);
    }

    #[test]
    fn what_is_above_a_clock_that_was_met_is_no_doubt() {
        let mut foreign = Foreign::since(CommitTs(10), CommitTs(5));
        foreign.note(CommitTs(20), ALICE);
        foreign.note(CommitTs(30), BOB);
        assert_eq!(within(&foreign, 10, 50, &met(&[(ALICE, 10)])), [(29, 30)]);
        assert_eq!(within(&foreign, 10, 50, &met(&[(ALICE, 20)])), [(19, 20), (29, 30)]);
        assert_eq!(within(&foreign, 10, 50, &met(&[(ALICE, 19), (BOB, 12)])), []);
        // Whose it was stays known when the time itself is forgotten.
        (0..MOST as u64).for_each(|n| foreign.note(CommitTs(100 + n), ALICE));
        assert_eq!(within(&foreign, 10, 50, &met(&[(ALICE, 10)])), [(10, 30)]);
        assert_eq!(within(&foreign, 10, 50, &met(&[(BOB, 10)])), [(10, 20)]);
        assert_eq!(within(&foreign, 10, 50, &met(&[(BOB, 10), (ALICE, 10)])), []);
        // What was before this process is anybody's.
        assert_eq!(within(&foreign, 5, 50, &met(&[(BOB, 5), (ALICE, 5)])), [(5, 10)]);
    }

    #[test]
    fn an_earlier_holder_may_have_stamped_anything_up_to_the_next_lease() {
        let mut foreign = Foreign::since(CommitTs(10), CommitTs(5));
        let until =
            |foreign: &Foreign, clocks: &[(NodeId, u64)]| foreign.held_until(&met(clocks)).0;
        assert_eq!(until(&foreign, &[]), 5);
        foreign.note_lease(ALICE, BOB, CommitTs(40));
        assert_eq!(until(&foreign, &[]), 40);
        assert_eq!(until(&foreign, &[(BOB, 10)]), 40);
        assert_eq!(until(&foreign, &[(ALICE, 20)]), 20);
        foreign.note_lease(BOB, ALICE, CommitTs(50));
        assert_eq!(until(&foreign, &[(ALICE, 20)]), 50);
        assert_eq!(until(&foreign, &[(ALICE, 20), (BOB, 21)]), 21);
        // It may have been begun anew.
        foreign.note_lease(ALICE, ALICE, CommitTs(60));
        assert_eq!(until(&foreign, &[(ALICE, 20), (BOB, 21)]), 60);
    }
}
