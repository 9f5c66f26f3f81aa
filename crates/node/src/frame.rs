//! Frames: what one connection carries, one after the other.
//!
//! ```text
//!   length (4 bytes, little-endian)   crc32c of the payload (4 bytes)   payload
//! ```
//!
//! The checksum is there since what is carried becomes durable on other nodes, and TCP's own lets
//! one damaged packet in some ten thousand through.

use std::fmt;
use std::io::{self, Read, Write};

use braid_cluster::Word;
use braid_consensus::codec::Reader;
use braid_range::{Answer, AnswerTimes, NodeId, Request};
use bytes::Bytes;

use crate::codec::{Coded, decode, enums, structs};

/// Bytes of a payload: a commit is at most 64 MiB, and some more.
pub(crate) const MAX_PAYLOAD: usize = 96 << 20;
/// Bytes of a payload of somebody who has not said who it is.
pub(crate) const MAX_GREETING: usize = 4 << 10;
/// Bytes of an answer to a greeting: all nodes that a cluster ever had may be in it.
const MAX_REPLY: usize = 64 << 10;
/// Bytes in front of a payload: its length and its checksum.
const HEADER: usize = 8;
/// First bytes of every greeting.
pub(crate) const MAGIC: u64 = 0x4252_4149_444E_4F44;
/// Of the format; both sides must have the same.
pub const FORMAT_VERSION: u64 = 16;

/// Why a connection to another node was given up.
#[derive(Debug)]
pub enum WireError {
    /// The socket's.
    Io(io::Error),
    /// Whoever spoke is no node.
    Foreign,
    /// Another version of the format.
    Version(u64),
    /// Longer than may be.
    TooLarge(usize),
    /// Damaged on the way.
    Checksum,
    /// No message.
    Malformed,
    /// The other node has refused this one, and says why.
    Refused(String),
    /// This node has refused the other one.
    Unwanted(String),
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WireError::Io(e) => write!(f, "{e}"),
            WireError::Foreign => write!(f, "whoever speaks there is no node of a cluster"),
            WireError::Version(theirs) => {
                write!(f, "the node speaks version {theirs}, this one version {FORMAT_VERSION}")
            }
            WireError::TooLarge(bytes) => write!(f, "a message of {bytes} bytes is too large"),
            WireError::Checksum => write!(f, "a message was damaged on the way"),
            WireError::Malformed => write!(f, "a message is malformed"),
            WireError::Refused(why) => write!(f, "the other node refuses: {why}"),
            WireError::Unwanted(why) => write!(f, "refused: {why}"),
        }
    }
}

impl std::error::Error for WireError {}

impl From<io::Error> for WireError {
    fn from(e: io::Error) -> WireError {
        WireError::Io(e)
    }
}

/// The first frame of a connection, of who dials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    /// That it is one.
    pub magic: u64,
    /// Of what follows.
    pub version: u64,
    /// The cluster; 0: a new node that wants to know.
    pub cluster: u128,
    /// Who dials; 0: somebody without a number.
    pub node: NodeId,
    /// Its files; 0: it has none.
    pub store: u128,
    /// Where it listens for other nodes.
    pub address: String,
    /// All founders' addresses, as it was told; nobody's if it is not one of them.
    pub members: Vec<String>,
    /// What it wants.
    pub purpose: Purpose,
}

/// What somebody who dials wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To talk to a node as another one.
    Talk,
    /// To get a number: it is a new node of a running cluster.
    Join,
    /// To have something done, for an operator.
    Order(Order),
}

/// What an operator wants to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// To be told of all nodes.
    Status,
    /// A node is to give away all that it has, and is not let in any more when it has nothing.
    Decommission(NodeId),
    /// A node is to stay after all.
    Recommission(NodeId),
    /// The node that is asked is to give its leases away, and to run on.
    Drain,
    /// It is to take leases again.
    Undrain,
    /// To be told of all nodes, once the cluster serves.
    Init,
    /// Each range is to have so many replicas.
    Replicas(u64),
}

/// Who answers one that it lets in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Welcome {
    /// The cluster.
    pub cluster: u128,
    /// Who answers.
    pub node: NodeId,
    /// Its files.
    pub store: u128,
    /// The cluster has grown from a node that was alone: that one is its first founder, and no
    /// other one begins with replicas.
    pub grown: bool,
}

/// The answer to [`Hello`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// Go on.
    Welcome(Welcome),
    /// Go away.
    Refusal {
        /// Why.
        why: String,
    },
    /// To one who wants to join: this is its number.
    Admitted {
        /// The cluster.
        cluster: u128,
        /// Its number.
        node: NodeId,
        /// All nodes, as text.
        roster: String,
    },
    /// To an order.
    Done {
        /// Whether all of it is done; if not, it goes on, and can be asked for again.
        finished: bool,
        /// For a person.
        text: String,
    },
}

/// What comes after that.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// For [`braid_range::Replicas::receive`].
    Raft(Bytes),
    /// Who asks wants an answer with the same number; 0: none.
    Request {
        number: u64,
        request: Box<Request>,
    },
    Answer {
        number: u64,
        times: AnswerTimes,
        answer: Box<Answer>,
    },
    /// It is there, and this is what it knows of the cluster's settings.
    Alive(Word),
    /// What a node asks another one's sessions' side.
    Call {
        /// Tells it from others of its sender.
        number: u64,
        body: Bytes,
    },
    /// What that one answers.
    Called {
        number: u64,
        body: Bytes,
    },
}

enums! {
    Reply {
        1 Welcome(welcome),
        2 Refusal { why },
        3 Admitted { cluster, node, roster },
        4 Done { finished, text },
    }
    Purpose { 1 Talk, 2 Join, 3 Order(order), }
    Order { 1 Status, 2 Decommission(node), 3 Recommission(node), 4 Drain, 5 Undrain, 6 Init,
        7 Replicas(replicas), }
    Frame {
        1 Raft(bytes),
        2 Request { number, request },
        3 Answer { number, times, answer },
        4 Alive(word),
        5 Call { number, body },
        6 Called { number, body },
    }
}

structs! {
    Hello { magic, version, cluster, node, store, address, members, purpose }
    Welcome { cluster, node, store, grown }
    AnswerTimes { clock, certain }
    Word { goes_by, newest, messages }
}

impl Frame {
    /// As it is sent.
    pub(crate) fn framed(&self) -> Vec<u8> {
        framed(self)
    }
}

/// A payload with what is in front of it.
pub(crate) fn framed(payload: &impl Coded) -> Vec<u8> {
    let mut out = vec![0; 8];
    payload.put(&mut out);
    let (len, crc) = ((out.len() - 8) as u32, crc32c::crc32c(&out[8..]));
    out[..4].copy_from_slice(&len.to_le_bytes());
    out[4..8].copy_from_slice(&crc.to_le_bytes());
    out
}

/// Takes a payload of at most so many bytes. Blocks.
///
/// # Errors
/// The socket's; [`WireError::TooLarge`] and [`WireError::Checksum`].
pub(crate) fn read_payload(input: &mut impl Read, most: usize) -> Result<Vec<u8>, WireError> {
    let mut head = [0; HEADER];
    input.read_exact(&mut head)?;
    let number =
        |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let (len, crc) = (number(0) as usize, number(4));
    if len > most {
        return Err(WireError::TooLarge(len));
    }
    // Memory comes with the bytes: a length alone costs nothing.
    let mut payload = Vec::new();
    input.take(len as u64).read_to_end(&mut payload)?;
    if payload.len() < len {
        return Err(WireError::Io(io::ErrorKind::UnexpectedEof.into()));
    }
    match crc32c::crc32c(&payload) == crc {
        true => Ok(payload),
        false => Err(WireError::Checksum),
    }
}

/// Takes a greeting. What is no greeting of this version is told from one that is damaged.
///
/// # Errors
/// As [`read_payload`]; [`WireError::Foreign`], [`WireError::Version`], [`WireError::Malformed`].
pub(crate) fn read_hello(input: &mut impl Read) -> Result<Hello, WireError> {
    let payload = match read_payload(input, MAX_GREETING) {
        Err(WireError::TooLarge(_) | WireError::Checksum) => return Err(WireError::Foreign),
        other => other?,
    };
    let mut reader = Reader::new(&payload);
    match (reader.number(), reader.number()) {
        (Some(MAGIC), Some(FORMAT_VERSION)) => {}
        (Some(MAGIC), Some(theirs)) => return Err(WireError::Version(theirs)),
        _ => return Err(WireError::Foreign),
    }
    decode(&payload).ok_or(WireError::Malformed)
}

/// Says who dials, and takes the answer.
///
/// # Errors
/// As [`read_payload`]; [`WireError::Refused`] and [`WireError::Malformed`].
pub fn greet(stream: &mut (impl Read + Write), hello: &Hello) -> Result<Welcome, WireError> {
    match ask(stream, hello)? {
        Reply::Welcome(welcome) => Ok(welcome),
        _ => Err(WireError::Malformed),
    }
}

/// Says what somebody wants who is no node, or not yet, and takes the answer.
///
/// # Errors
/// As [`read_payload`]; [`WireError::Refused`] and [`WireError::Malformed`].
pub(crate) fn ask(stream: &mut (impl Read + Write), hello: &Hello) -> Result<Reply, WireError> {
    stream.write_all(&framed(hello))?;
    match decode(&read_payload(stream, MAX_REPLY)?) {
        Some(Reply::Refusal { why }) => Err(WireError::Refused(why)),
        Some(reply) => Ok(reply),
        None => Err(WireError::Malformed),
    }
}

/// Takes the next frame.
///
/// # Errors
/// As [`read_payload`]; [`WireError::Malformed`].
pub(crate) fn read_frame(input: &mut impl Read) -> Result<(Frame, usize), WireError> {
    let payload = read_payload(input, MAX_PAYLOAD)?;
    let frame = decode(&payload).ok_or(WireError::Malformed)?;
    Ok((frame, HEADER + payload.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_round_trip_and_damage_has_a_name() {
        let frame = Frame::Raft(Bytes::from_static(b"a message"));
        let bytes = frame.framed();
        assert_eq!(read_frame(&mut &bytes[..]).expect("it is whole"), (frame, bytes.len()));
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x40;
            assert!(read_frame(&mut &damaged[..]).is_err(), "byte {at}");
            assert!(matches!(read_frame(&mut &bytes[..at]), Err(WireError::Io(_))), "cut at {at}");
        }
        let huge = [0xFF; 8];
        assert!(matches!(read_frame(&mut &huge[..]), Err(WireError::TooLarge(_))));
    }

    #[test]
    fn greetings_of_strangers_are_told_apart() {
        let hello = Hello {
            magic: MAGIC,
            version: FORMAT_VERSION,
            cluster: 7 << 80,
            node: NodeId(2),
            store: 9,
            address: "127.0.0.1:2".into(),
            members: vec!["127.0.0.1:1".into()],
            purpose: Purpose::Order(Order::Decommission(NodeId(3))),
        };
        let good = framed(&hello);
        assert_eq!(read_hello(&mut &good[..]).expect("it is one"), hello);
        let other = framed(&Hello { version: FORMAT_VERSION + 1, ..hello.clone() });
        let refused = read_hello(&mut &other[..]);
        assert!(matches!(refused, Err(WireError::Version(v)) if v == FORMAT_VERSION + 1));
        let foreign = framed(&Hello { magic: 1, ..hello });
        assert!(matches!(read_hello(&mut &foreign[..]), Err(WireError::Foreign)));
        let http = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n";
        assert!(matches!(read_hello(&mut &http[..]), Err(WireError::Foreign)));
    }
}
