//! Answers on their way out, each with what the node's clock showed when it was made.
//!
//! A reader takes everything that is written where it was served for later than itself if it is
//! above that. So the clock must be read when the read is done: until answers are sent, others may
//! have written. What was proposed and is not applied when it is done is later, too: nobody has
//! been told of it. So the clock of an answer is below that.

//!
//! Besides, a read says up to when something may have been written there that is older than the
//! reader. A clock that was seen before says that more narrowly than the clock of the answer. It
//! has
//! to be told: whoever has the lease later does not know what had been seen of this clock.

use std::sync::Arc;

use braid_env::clock::Hlc;
use braid_lsm::CommitTs;

use crate::request::{Answer, RequestNumber};

/// What an answer says of times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnswerTimes {
    /// Above all that was written there before, below all that is written later.
    pub clock: CommitTs,
    /// What the holders of the range write above this, under their own clocks, is later than the
    /// beginning of whoever has read. Not above `clock`.
    pub certain: CommitTs,
}

impl AnswerTimes {
    /// Of an answer to which only the clock says something.
    pub fn of(clock: CommitTs) -> AnswerTimes {
        AnswerTimes { clock, certain: clock }
    }
}

/// The answer to a request.
#[derive(Debug)]
pub struct Answered {
    /// Which request.
    pub number: RequestNumber,
    /// When it was made.
    pub times: AnswerTimes,
    /// What it says.
    pub answer: Answer,
}

/// See the [module's page](self).
pub(crate) struct Answers {
    hlc: Arc<Hlc>,
    made: Vec<Answered>,
}

impl Answers {
    pub(crate) fn new(hlc: Arc<Hlc>) -> Answers {
        Answers { hlc, made: Vec::new() }
    }

    pub(crate) fn push(&mut self, (number, answer): (RequestNumber, Answer)) {
        let times = AnswerTimes::of(CommitTs(self.hlc.now()));
        self.made.push(Answered { number, times, answer });
    }

    /// The last one was made for a reader that is certain of what is above that.
    pub(crate) fn is_certain_above(&mut self, certain: CommitTs) {
        let times = self.made.last_mut().map(|made| &mut made.times).expect("it was pushed");
        times.certain = times.certain.min(certain);
    }

    /// The same while something is proposed, at that time or later.
    pub(crate) fn push_below(&mut self, proposed: CommitTs, answer: (RequestNumber, Answer)) {
        self.push(answer);
        let times = self.made.last_mut().map(|made| &mut made.times).expect("it was pushed");
        *times = AnswerTimes::of(times.clock.min(CommitTs(proposed.0 - 1)));
    }

    pub(crate) fn extend(&mut self, answers: impl Iterator<Item = (RequestNumber, Answer)>) {
        answers.for_each(|answer| self.push(answer));
    }

    pub(crate) fn take(&mut self) -> Vec<Answered> {
        std::mem::take(&mut self.made)
    }
}
