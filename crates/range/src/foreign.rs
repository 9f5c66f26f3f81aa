//! What was stamped a moment ago by other clocks than the holder's: transactions over several
//! ranges that were decided elsewhere.
//!
//! A reader's view of the holder's clock says nothing of these times. There are few of them within
//! the short time that a reader may be in doubt about, and each is a doubt of its own: what the
//! holder itself writes in between, all the time, is none.

use std::collections::VecDeque;

use braid_lsm::CommitTs;

/// Times that are remembered.
const MOST: usize = 1024;

/// See the [module's page](self).
#[derive(Debug, Clone)]
pub(crate) struct Foreign {
    /// In the order in which they became known.
    times: VecDeque<CommitTs>,
    /// Any time up to here may have been one.
    forgotten: CommitTs,
}

impl Foreign {
    /// Any time up to there may have been one.
    pub(crate) fn since(forgotten: CommitTs) -> Foreign {
        Foreign { times: VecDeque::new(), forgotten }
    }

    /// Something was written at a time that another clock has chosen.
    pub(crate) fn note(&mut self, at: CommitTs) {
        self.times.push_back(at);
        if self.times.len() > MOST {
            let gone = self.times.pop_front().expect("there are some");
            self.forgotten = self.forgotten.max(gone);
        }
    }

    /// The times above `floor` and not above `upto` at which such writes may be: pieces of time,
    /// each without its beginning.
    pub(crate) fn within(
        &self,
        floor: CommitTs,
        upto: CommitTs,
    ) -> impl Iterator<Item = (CommitTs, CommitTs)> {
        let from = self.forgotten.min(upto).max(floor);
        let known = self.times.iter().filter(move |at| from < **at && **at <= upto);
        let known = known.map(|at| (CommitTs(at.0 - 1), *at));
        Some((floor, from)).filter(|(floor, from)| floor < from).into_iter().chain(known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn within(foreign: &Foreign, floor: u64, upto: u64) -> Vec<(u64, u64)> {
        let pieces = foreign.within(CommitTs(floor), CommitTs(upto));
        pieces.map(|(floor, upto)| (floor.0, upto.0)).collect()
    }

    #[test]
    fn each_time_is_a_doubt_of_its_own_and_what_is_forgotten_is_one_as_a_whole() {
        let mut foreign = Foreign::since(CommitTs(10));
        [30, 20, 40].into_iter().for_each(|at| foreign.note(CommitTs(at)));
        assert_eq!(within(&foreign, 10, 50), [(29, 30), (19, 20), (39, 40)]);
        assert_eq!(within(&foreign, 20, 39), [(29, 30)]);
        assert_eq!(within(&foreign, 5, 8), [(5, 8)]);
        assert_eq!(within(&foreign, 5, 20), [(5, 10), (19, 20)]);
        assert_eq!(within(&foreign, 40, 40), []);
        (0..MOST as u64 - 1).for_each(|n| foreign.note(CommitTs(100 + n)));
        // The first two have been forgotten.
        assert_eq!(within(&foreign, 10, 50), [(10, 30), (39, 40)]);
        assert_eq!(within(&foreign, 30, 50), [(39, 40)]);
    }
}
