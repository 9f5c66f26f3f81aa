//! What can go wrong, by what the caller can do about it.

use std::fmt;

use crate::ids::ReplicaId;

/// An error of a group or of the raft log.
#[derive(Debug, Clone)]
pub enum Error {
    /// Only the leader takes proposals. Ask it, or wait until there is one.
    NotLeader {
        /// Who leads, as far as this replica knows.
        leader: Option<ReplicaId>,
    },
    /// The leader takes no proposals now: too much is not committed yet, or it hands leadership
    /// over, or a change of replicas is under way. Nothing was proposed; try again.
    Busy,
    /// Bytes from elsewhere are no message, or not for this replica. They were not looked at
    /// further.
    BadMessage(String),
    /// What was stored does not fit together: the replica cannot go on.
    Inconsistent(String),
    /// The log on disk failed, or is damaged.
    Log(braid_lsm::Error),
}

/// A result with an [`enum@Error`].
pub type Result<T> = std::result::Result<T, Error>;

impl From<braid_lsm::Error> for Error {
    fn from(error: braid_lsm::Error) -> Error {
        Error::Log(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NotLeader { leader: Some(leader) } => write!(f, "not the leader: {leader} is"),
            Error::NotLeader { leader: None } => write!(f, "not the leader, and none is known"),
            Error::Busy => write!(f, "the leader takes no proposals at the moment"),
            Error::BadMessage(reason) => write!(f, "bad message: {reason}"),
            Error::Inconsistent(reason) => write!(f, "stored state does not fit: {reason}"),
            Error::Log(error) => write!(f, "raft log: {error}"),
        }
    }
}

impl std::error::Error for Error {}
