//! Where the entries of a group lie in the log's files.
//!
//! ```text
//!   entries  1 .. 40 | 41 .. 60 | 61 .. 64      runs: each begins with a record, at a known
//!   segment      7   |     7    |     8         offset, and goes on with what follows it there
//! ```
//!
//! A run ends where its segment does, where it was overwritten, and after so many bytes: whoever
//! looks for an entry reads less than that for nothing.

use std::collections::VecDeque;

use crate::ids::LogIndex;

/// A run is so long at most, in bytes, unless one record is longer.
const RUN_BYTES: u64 = 64 << 10;

/// Where a record lies, and how long it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) segment: u64,
    pub(super) offset: u64,
    pub(super) bytes: u64,
}

/// Entries that lie behind each other in a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) first: LogIndex,
    pub(super) last: LogIndex,
    /// Of the record that has the first one.
    pub(super) place: Place,
}

/// See the [module's page](self). Without gaps.
#[derive(Debug, Clone, Default)]
pub(super) struct Runs {
    runs: VecDeque<Run>,
}

impl Runs {
    /// Entries were written into a segment: what was there from the first on does not count.
    pub(super) fn write(&mut self, first: LogIndex, last: LogIndex, place: Place) {
        let mut overwritten = false;
        while self.runs.back().is_some_and(|run| run.first >= first) {
            self.runs.pop_back();
            overwritten = true;
        }
        let Some(run) = self.runs.back_mut() else {
            return self.runs.push_back(Run { first, last, place });
        };
        overwritten |= run.last >= first;
        run.last = run.last.min(LogIndex(first.0 - 1));
        let follows = run.place.segment == place.segment
            && place.offset + place.bytes < run.place.offset + RUN_BYTES;
        // Behind a run that was cut short lies what does not count.
        if follows && !overwritten {
            run.last = last;
        } else {
            self.runs.push_back(Run { first, last, place });
        }
    }

    /// Entries up to there are not needed.
    pub(super) fn cut(&mut self, index: LogIndex) {
        while self.runs.front().is_some_and(|run| run.last <= index) {
            self.runs.pop_front();
        }
    }

    /// The oldest segment that is needed.
    pub(super) fn oldest(&self) -> Option<u64> {
        self.runs.iter().map(|run| run.place.segment).min()
    }

    /// The run that has an entry.
    pub(super) fn holding(&self, index: LogIndex) -> Option<Run> {
        let at = self.runs.partition_point(|run| run.last < index);
        self.runs.get(at).copied().filter(|run| run.first <= index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_know_the_oldest_segment_that_is_needed() {
        let i = LogIndex;
        let at = |segment, offset| Place { segment, offset, bytes: 10 };
        let run = |first, last, place| Run { first: i(first), last: i(last), place };
        let mut runs = Runs::default();
        runs.write(i(1), i(4), at(1, 0));
        runs.write(i(5), i(6), at(1, 10));
        runs.write(i(7), i(9), at(2, 0));
        assert_eq!(runs.oldest(), Some(1));
        assert_eq!(runs.runs, [run(1, 6, at(1, 0)), run(7, 9, at(2, 0))]);
        // Entries 5 to 9 are overwritten: 1 to 4 are still in segment 1.
        runs.write(i(5), i(5), at(3, 0));
        assert_eq!(runs.runs, [run(1, 4, at(1, 0)), run(5, 5, at(3, 0))]);
        assert_eq!(runs.holding(i(4)), Some(run(1, 4, at(1, 0))));
        assert_eq!((runs.holding(i(6)), runs.holding(i(0))), (None, None));
        runs.cut(i(3));
        assert_eq!(runs.oldest(), Some(1));
        runs.cut(i(4));
        assert_eq!(runs.oldest(), Some(3));
        runs.cut(i(5));
        assert_eq!(runs.oldest(), None);
    }

    #[test]
    fn a_run_ends_where_it_was_overwritten_also_in_its_own_segment() {
        let i = LogIndex;
        let at = |offset| Place { segment: 1, offset, bytes: 10 };
        let mut runs = Runs::default();
        runs.write(i(1), i(5), at(0));
        runs.write(i(3), i(4), at(10));
        runs.write(i(5), i(5), at(20));
        let run = |first, last, place| Run { first: i(first), last: i(last), place };
        assert_eq!(runs.runs, [run(1, 2, at(0)), run(3, 5, at(10))]);
        // The third entry once more: the run before it still ends in the middle of its record.
        runs.write(i(3), i(3), at(30));
        assert_eq!(runs.runs, [run(1, 2, at(0)), run(3, 3, at(30))]);
        runs.write(i(4), i(4), at(30 + RUN_BYTES));
        assert_eq!(runs.holding(i(4)), Some(run(4, 4, at(30 + RUN_BYTES))));
    }
}
