//! Answers on their way out, each with what the node's clock showed when it was made.
//!
//! A reader takes everything that is written where it was served for later than itself if it is
//! above that. So the clock must be read when the read is done: until answers are sent, others may
//! have written. What was proposed and is not applied when it is done is later, too: nobody has
//! been told of it. So the clock of an answer is below that.

use std::sync::Arc;

use braid_env::clock::Hlc;
use braid_lsm::CommitTs;

use crate::request::{Answer, RequestNumber};

/// The answer to a request.
#[derive(Debug)]
pub struct Answered {
    /// Which request.
    pub number: RequestNumber,
    /// Above all that was written there before, below all that is written later.
    pub clock: CommitTs,
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
        let clock = CommitTs(self.hlc.now());
        self.made.push(Answered { number, clock, answer });
    }

    /// The same while something is proposed, at that time or later.
    pub(crate) fn push_below(&mut self, proposed: CommitTs, answer: (RequestNumber, Answer)) {
        self.push(answer);
        let clock = self.made.last_mut().map(|made| &mut made.clock).expect("it was pushed");
        *clock = (*clock).min(CommitTs(proposed.0 - 1));
    }

    pub(crate) fn extend(&mut self, answers: impl Iterator<Item = (RequestNumber, Answer)>) {
        answers.for_each(|answer| self.push(answer));
    }

    pub(crate) fn take(&mut self) -> Vec<Answered> {
        std::mem::take(&mut self.made)
    }
}
