//! The vote of a replica that is not there yet: a member of the group that has heard of it from
//! its messages only, since the state that it begins with has not arrived.
//!
//! It has a vote all the same. If those of three that have the log lose one, the other needs it;
//! and it can be given: its log is empty, or what was logged before the range's own records were
//! lost, so it stands in nobody's way who has more. What it promises it must keep as any other
//! does, also when the state has arrived. (Raft, Ongaro and Ousterhout 2014, 5.2 and 5.4.1: a vote
//! depends on nothing but term, earlier vote and the end of the log.)

use raft::eraftpb::{self, MessageType};

use crate::entry::HardState;
use crate::ids::{LogIndex, ReplicaId, Term};
use crate::message::Message;
use crate::raft_log::LoggedGroup;

/// What a replica answers that is not there yet.
#[derive(Debug)]
pub struct AbsentVote {
    /// To be made durable before the answer is sent, if it is another one than before.
    pub promised: HardState,
    /// For whoever asked.
    pub answer: Message,
}

/// Place and term of the last entry that is logged.
fn last(logged: &LoggedGroup) -> (Term, LogIndex) {
    let entry = logged.entries.last().map(|entry| (entry.term, entry.index));
    entry.unwrap_or((logged.cut.1, logged.cut.0))
}

/// The answer to a message, if it asks for a vote.
pub fn vote_absent(logged: &LoggedGroup, message: &Message) -> Option<AbsentVote> {
    let (asks, before) = (&message.raft, logged.hard_state);
    let (term, candidate) = (Term(asks.term), ReplicaId(asks.from));
    let has_all = (Term(asks.log_term), LogIndex(asks.index)) >= last(logged);
    let (kind, promised, grants) = match asks.get_msg_type() {
        MessageType::MsgRequestPreVote => {
            let grants = term > before.term && has_all;
            (MessageType::MsgRequestPreVoteResponse, before, grants)
        }
        MessageType::MsgRequestVote if term >= before.term => {
            let vote = before.vote.filter(|_| term == before.term);
            let grants = has_all && vote.is_none_or(|vote| vote == candidate);
            let vote = if grants { Some(candidate) } else { vote };
            let promised = HardState { term, vote, commit: before.commit };
            (MessageType::MsgRequestVoteResponse, promised, grants)
        }
        _ => return None,
    };
    let mut answer = eraftpb::Message::default();
    answer.set_msg_type(kind);
    (answer.from, answer.to) = (asks.to, asks.from);
    // Who is granted a vote counts it for the term that was asked for.
    answer.term = if grants { term.0 } else { promised.term.0 };
    answer.reject = !grants;
    Some(AbsentVote { promised, answer: Message { raft: answer } })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::{Entry, EntryKind};

    fn asks(kind: MessageType, from: u64, term: u64, (log_term, index): (u64, u64)) -> Message {
        let mut raft = eraftpb::Message::default();
        raft.set_msg_type(kind);
        (raft.from, raft.to, raft.term) = (from, 3, term);
        (raft.log_term, raft.index) = (log_term, index);
        Message { raft }
    }

    /// What it says, and what it has promised then.
    fn said(logged: &mut LoggedGroup, message: &Message) -> String {
        let Some(vote) = vote_absent(logged, message) else { return "nothing".into() };
        logged.hard_state = vote.promised;
        let HardState { term, vote: promised, .. } = vote.promised;
        format!("{:?} | {term} {promised:?}", vote.answer)
    }

    #[test]
    fn one_vote_is_given_in_a_term_and_kept() {
        use MessageType::{MsgHeartbeat, MsgRequestPreVote, MsgRequestVote};
        let mut none = LoggedGroup::default();
        let mut say = |message: Message| said(&mut none, &message);
        assert_eq!(say(asks(MsgHeartbeat, 1, 2, (0, 0))), "nothing");
        // Whether it would vote promises nothing.
        let would = asks(MsgRequestPreVote, 2, 3, (1, 5));
        assert_eq!(say(would), "r3 to r2: would vote t3 | t0 None");
        let vote = || asks(MsgRequestVote, 2, 3, (1, 5));
        assert_eq!(say(vote()), "r3 to r2: vote t3 | t3 Some(r2)");
        let other = asks(MsgRequestVote, 1, 3, (1, 9));
        assert_eq!(say(other), "r3 to r1: vote t3, no | t3 Some(r2)");
        assert_eq!(say(vote()), "r3 to r2: vote t3 | t3 Some(r2)");
        let late = asks(MsgRequestPreVote, 1, 3, (1, 9));
        assert_eq!(say(late), "r3 to r1: would vote t3, no | t3 Some(r2)");
        assert_eq!(say(asks(MsgRequestVote, 1, 2, (1, 9))), "nothing");
        let next = asks(MsgRequestVote, 1, 4, (1, 9));
        assert_eq!(say(next), "r3 to r1: vote t4 | t4 Some(r1)");
    }

    #[test]
    fn what_is_logged_must_be_in_the_candidates_log() {
        let entry = |index, term| Entry {
            index: LogIndex(index),
            term: Term(term),
            kind: EntryKind::Command,
            data: bytes::Bytes::new(),
        };
        let mut logged =
            LoggedGroup { entries: vec![entry(1, 1), entry(2, 2)], ..LoggedGroup::default() };
        let shorter = asks(MessageType::MsgRequestVote, 1, 5, (1, 9));
        assert_eq!(said(&mut logged, &shorter), "r3 to r1: vote t5, no | t5 None");
        let same = asks(MessageType::MsgRequestVote, 2, 5, (2, 2));
        assert_eq!(said(&mut logged, &same), "r3 to r2: vote t5 | t5 Some(r2)");
    }
}
