//! What one node sends to another one: a message of a group, or something said about a range's
//! state, with the sender and its clock.

use braid_consensus::codec::{Reader, put_bytes, put_number};
use braid_lsm::CommitTs;

use crate::ids::{NodeId, RangeId};
use crate::raft_snapshot::Said;

const GROUP: u8 = 0;
const STATE: u8 = 1;

/// See the [module's page](self).
pub(crate) struct Envelope<'a> {
    pub(crate) range: RangeId,
    pub(crate) from: NodeId,
    pub(crate) clock: CommitTs,
    kind: u8,
    bytes: std::borrow::Cow<'a, [u8]>,
}

impl Envelope<'_> {
    /// With a message of the range's group.
    pub(crate) fn of_group(
        (range, from, clock): (RangeId, NodeId, CommitTs),
        message: Vec<u8>,
    ) -> Envelope<'static> {
        Envelope { range, from, clock, kind: GROUP, bytes: message.into() }
    }

    /// With something said about its state.
    pub(crate) fn of_state(
        (range, from, clock): (RangeId, NodeId, CommitTs),
        said: &Said,
    ) -> Envelope<'static> {
        Envelope { range, from, clock, kind: STATE, bytes: said.encode().into() }
    }

    /// The bytes that are sent.
    pub(crate) fn seal(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_number(&mut out, self.range.0);
        put_number(&mut out, self.from.0);
        put_number(&mut out, self.clock.0);
        out.push(self.kind);
        put_bytes(&mut out, &self.bytes);
        out
    }

    /// Reads what [`Envelope::seal`] has made.
    pub(crate) fn open(bytes: &[u8]) -> Option<Envelope<'_>> {
        let mut reader = Reader::new(bytes);
        let (range, from) = (RangeId(reader.number()?), NodeId(reader.number()?));
        let (clock, kind) = (CommitTs(reader.number()?), reader.byte()?);
        let bytes = reader.bytes()?.into();
        reader.is_empty().then_some(Envelope { range, from, clock, kind, bytes })
    }

    /// The message of the group, if it is one.
    pub(crate) fn message(&self) -> Option<&[u8]> {
        (self.kind == GROUP).then_some(&self.bytes)
    }

    /// What is said about the state, if it is about that.
    pub(crate) fn said(&self) -> Option<Said> {
        (self.kind == STATE).then(|| Said::decode(&self.bytes)).flatten()
    }

    /// The same with something else said.
    pub(crate) fn with(&self, said: &Said) -> Envelope<'static> {
        Envelope::of_state((self.range, self.from, self.clock), said)
    }
}
