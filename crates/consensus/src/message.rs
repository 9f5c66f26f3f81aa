//! What replicas of a group say to each other. Opaque to everybody else.

use std::fmt;

use protobuf::Message as _;
use raft::eraftpb::{self, MessageType};

use crate::error::{Error, Result};
use crate::ids::ReplicaId;

/// A message from one replica of a group to another one.
#[derive(Clone, PartialEq)]
pub struct Message {
    pub(crate) raft: eraftpb::Message,
}

impl Message {
    /// Who says it.
    pub fn from(&self) -> ReplicaId {
        ReplicaId(self.raft.from)
    }

    /// Whom it is for.
    pub fn to(&self) -> ReplicaId {
        ReplicaId(self.raft.to)
    }

    /// Whether it brings entries. One that does can be lost like any other, and is sent again.
    pub fn brings_entries(&self) -> bool {
        !self.raft.get_entries().is_empty()
    }

    /// Whether its sender leads, or has led.
    pub fn is_of_leader(&self) -> bool {
        matches!(self.raft.get_msg_type(), MessageType::MsgAppend | MessageType::MsgHeartbeat)
    }

    /// Whether it answers a heartbeat.
    pub(crate) fn answers_heartbeat(&self) -> bool {
        self.raft.get_msg_type() == MessageType::MsgHeartbeatResponse
    }

    /// Whether it asks for a vote because a leader has told its sender to, which may happen while
    /// that leader is there.
    pub fn is_of_transfer(&self) -> bool {
        self.raft.context == raft::CAMPAIGN_TRANSFER
    }

    /// The bytes that [`Message::decode`] reads.
    pub fn encode(&self) -> Vec<u8> {
        self.raft.write_to_bytes().expect("all fields of a message are optional")
    }

    /// Reads bytes that came from another node of the cluster. Never to be called with bytes of
    /// somebody who did not prove to be one: nesting is not bounded in there.
    pub fn decode(bytes: &[u8]) -> Result<Message> {
        let mut raft = eraftpb::Message::default();
        raft.merge_from_bytes(bytes).map_err(|error| Error::BadMessage(error.to_string()))?;
        Ok(Message { raft })
    }
}

fn name(kind: MessageType) -> &'static str {
    match kind {
        MessageType::MsgAppend => "append",
        MessageType::MsgAppendResponse => "appended",
        MessageType::MsgRequestVote => "ask for vote",
        MessageType::MsgRequestVoteResponse => "vote",
        MessageType::MsgRequestPreVote => "would you vote",
        MessageType::MsgRequestPreVoteResponse => "would vote",
        MessageType::MsgHeartbeat => "heartbeat",
        MessageType::MsgHeartbeatResponse => "alive",
        MessageType::MsgTimeoutNow => "campaign now",
        MessageType::MsgTransferLeader => "transfer",
        MessageType::MsgSnapshot => "snapshot",
        _ => "other",
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let m = &self.raft;
        let kind = m.get_msg_type();
        write!(f, "r{} to r{}: {} t{}", m.from, m.to, name(kind), m.term)?;
        match kind {
            MessageType::MsgAppend => {
                let (from, count) = (m.index, m.get_entries().len());
                write!(f, ", {count} behind i{from}/t{}, commit i{}", m.log_term, m.commit)
            }
            MessageType::MsgAppendResponse if m.reject => {
                write!(f, ", no: i{} does not fit, try i{}", m.index, m.reject_hint)
            }
            MessageType::MsgAppendResponse => write!(f, ", up to i{}", m.index),
            MessageType::MsgRequestVote | MessageType::MsgRequestPreVote => {
                write!(f, ", has i{}/t{}", m.index, m.log_term)
            }
            MessageType::MsgHeartbeat => write!(f, ", commit i{}", m.commit),
            _ if m.reject => write!(f, ", no"),
            _ => Ok(()),
        }
    }
}
