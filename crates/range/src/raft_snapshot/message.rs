//! What is said about the state of a range (`docs/formats/range_entries.md`).

use braid_consensus::codec::{Reader, put_bytes, put_number};
use braid_consensus::{LogIndex, ReplicaId, Term};
use braid_lsm::{CommitTs, Exported};
use bytes::Bytes;

use crate::ids::{put_span, take_span};
use crate::leading::closed::Closed;
use crate::state::RangeState;

const LACKS: u8 = 1;
const BEGIN: u8 = 2;
const PIECE: u8 = 3;
const GOT: u8 = 4;
const STOPPED: u8 = 5;
const DRAINS: u8 = 6;
const HERE: u8 = 7;
const REMOVED: u8 = 8;
const ASKS: u8 = 9;
const IS_FOUNDED: u8 = 10;
const FOUNDED: u8 = 11;
const THERE: u8 = 12;
const SLEEP: u8 = 13;
const CLOSED: u8 = 14;
const SHORT: u8 = 15;

/// What is about to come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Begin {
    /// Tells it from others of its sender.
    pub(crate) number: u64,
    /// The term in which its sender leads.
    pub(crate) term: Term,
    /// The range as of the last entry that it has applied.
    pub(crate) state: RangeState,
    /// The term of that entry.
    pub(crate) at_term: Term,
}

impl Begin {
    /// The place in the log that the state makes unnecessary.
    pub(crate) fn at(&self) -> (LogIndex, Term) {
        (self.state.applied, self.at_term)
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        put_number(out, self.number);
        put_number(out, self.term.0);
        put_number(out, self.at_term.0);
        put_bytes(out, &self.state.encode());
    }

    pub(crate) fn decode(reader: &mut Reader<'_>) -> Option<Begin> {
        let (number, term, at_term) =
            (reader.number()?, Term(reader.number()?), Term(reader.number()?));
        Some(Begin { number, term, at_term, state: RangeState::decode(reader.bytes()?)? })
    }
}

/// A part of what the range holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Of the state that it belongs to.
    pub(crate) number: u64,
    /// Its place, from 0 on.
    pub(crate) place: u64,
    pub(crate) is_last: bool,
    /// In the order of keys, records of the range first.
    pub(crate) items: Vec<Exported>,
}

/// What one node says to another one about the state of a range, or about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Said {
    /// Others speak of the range, and there is no replica of it here.
    Lacks,
    Begin(Box<Begin>),
    Piece(Piece),
    /// All pieces in front of this place are there.
    Got {
        number: u64,
        upto: u64,
    },
    /// Whoever receives does not want it, or whoever sends does not go on.
    Stopped {
        number: u64,
        why: String,
    },
    /// The node gives its leases away, and wants none. About no range.
    Drains,
    /// The node is there, has so many replicas, and leads so many ranges. About no range.
    Here {
        replicas: u64,
        led: u64,
    },
    /// This replica of the node that is told does not belong to the range any more.
    Removed {
        replica: ReplicaId,
    },
    /// Whether this replica of the sender still belongs to the range: it hears of no leader.
    Asks {
        replica: ReplicaId,
    },
    /// Whether the range is founded.
    IsFounded,
    /// It is.
    Founded,
    /// The node is there, and was started so often. About no range.
    There {
        life: u64,
    },
    /// The range's leader sleeps from now on. Who follows it in this term, with this last entry,
    /// may sleep, too.
    Sleep {
        term: Term,
        last: LogIndex,
    },
    /// Up to when the range is closed.
    Closed(Closed),
    /// The node's disk has little room. About no range.
    Short,
}

impl Said {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Said::Lacks => out.push(LACKS),
            Said::Drains => out.push(DRAINS),
            Said::Short => out.push(SHORT),
            Said::IsFounded => out.push(IS_FOUNDED),
            Said::Founded => out.push(FOUNDED),
            Said::Here { replicas, led } => {
                out.push(HERE);
                put_number(&mut out, *replicas);
                put_number(&mut out, *led);
            }
            Said::There { life } => {
                out.push(THERE);
                put_number(&mut out, *life);
            }
            Said::Sleep { term, last } => {
                out.push(SLEEP);
                put_number(&mut out, term.0);
                put_number(&mut out, last.0);
            }
            Said::Closed(Closed { upto, last }) => {
                out.push(CLOSED);
                put_number(&mut out, upto.0);
                put_number(&mut out, last.0);
            }
            Said::Removed { replica } => {
                out.push(REMOVED);
                put_number(&mut out, replica.0);
            }
            Said::Asks { replica } => {
                out.push(ASKS);
                put_number(&mut out, replica.0);
            }
            Said::Begin(begin) => {
                out.push(BEGIN);
                begin.encode(&mut out);
            }
            Said::Piece(piece) => {
                out.push(PIECE);
                put_number(&mut out, piece.number);
                put_number(&mut out, piece.place);
                out.push(u8::from(piece.is_last));
                piece.items.iter().for_each(|item| put_item(&mut out, item));
            }
            Said::Got { number, upto } => {
                out.push(GOT);
                put_number(&mut out, *number);
                put_number(&mut out, *upto);
            }
            Said::Stopped { number, why } => {
                out.push(STOPPED);
                put_number(&mut out, *number);
                put_bytes(&mut out, why.as_bytes());
            }
        }
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Said> {
        let reader = &mut Reader::new(bytes);
        let said = match reader.byte()? {
            LACKS => Said::Lacks,
            DRAINS => Said::Drains,
            SHORT => Said::Short,
            IS_FOUNDED => Said::IsFounded,
            FOUNDED => Said::Founded,
            BEGIN => Said::Begin(Box::new(Begin::decode(reader)?)),
            PIECE => {
                let (number, place) = (reader.number()?, reader.number()?);
                let is_last = reader.byte()? == 1;
                let mut items = Vec::new();
                while !reader.is_empty() {
                    items.push(take_item(reader)?);
                }
                Said::Piece(Piece { number, place, is_last, items })
            }
            HERE => Said::Here { replicas: reader.number()?, led: reader.number()? },
            THERE => Said::There { life: reader.number()? },
            SLEEP => {
                let (term, last) = (Term(reader.number()?), LogIndex(reader.number()?));
                Said::Sleep { term, last }
            }
            CLOSED => {
                let (upto, last) = (CommitTs(reader.number()?), LogIndex(reader.number()?));
                Said::Closed(Closed { upto, last })
            }
            REMOVED => Said::Removed { replica: ReplicaId(reader.number()?) },
            ASKS => Said::Asks { replica: ReplicaId(reader.number()?) },
            GOT => Said::Got { number: reader.number()?, upto: reader.number()? },
            STOPPED => {
                let number = reader.number()?;
                let why = String::from_utf8_lossy(reader.bytes()?).into_owned();
                Said::Stopped { number, why }
            }
            _ => return None,
        };
        reader.is_empty().then_some(said)
    }
}

pub(super) fn put_item(out: &mut Vec<u8>, item: &Exported) {
    match item {
        Exported::Entry { key, ts, value } => {
            out.push(u8::from(value.is_some()));
            put_bytes(out, key);
            put_number(out, ts.0);
            value.iter().for_each(|value| put_bytes(out, value));
        }
        Exported::Tombstone { span, ts } => {
            out.push(2);
            put_span(out, span);
            put_number(out, ts.0);
        }
    }
}

pub(super) fn take_item(reader: &mut Reader<'_>) -> Option<Exported> {
    let kind = reader.byte()?;
    if kind == 2 {
        let span = take_span(reader)?;
        return Some(Exported::Tombstone { span, ts: CommitTs(reader.number()?) });
    }
    let key = Bytes::copy_from_slice(reader.bytes()?);
    let ts = CommitTs(reader.number()?);
    let value = match kind {
        0 => None,
        1 => Some(Bytes::copy_from_slice(reader.bytes()?)),
        _ => return None,
    };
    Some(Exported::Entry { key, ts, value })
}

/// For simulations: a message between nodes as one with a mistake would have sent it, which leaves
/// out some of what a range holds; `None` if it is no piece of a state.
pub fn thin_out(envelope: &[u8], leaves_out: fn(&Exported) -> bool) -> Option<Vec<u8>> {
    let opened = crate::envelope::Envelope::open(envelope)?;
    let Some(Said::Piece(mut piece)) = opened.said() else { return None };
    piece.items.retain(|item| !leaves_out(item));
    Some(opened.with(&Said::Piece(piece)).seal())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{NodeId, RangeDescriptor, RangeId};
    use braid_lsm::KeySpan;

    #[test]
    fn what_is_said_round_trips_and_cuts_are_noticed() {
        let replicas = vec![(ReplicaId(1), NodeId(1))];
        let span = KeySpan::new("a", "b");
        let descriptor = RangeDescriptor::new(RangeId(1), span, replicas);
        let state = RangeState::new(descriptor);
        let begin = Begin { number: 300, term: Term(4), state, at_term: Term(3) };
        let (key, ts) = (Bytes::from_static(b"k"), CommitTs(1 << 40));
        let items = vec![
            Exported::Tombstone { span: KeySpan::new("a", "k"), ts },
            Exported::Entry { key: key.clone(), ts, value: Some("".into()) },
            Exported::Entry { key, ts: CommitTs(1), value: None },
        ];
        let said = [
            Said::Lacks,
            Said::Drains,
            Said::Short,
            Said::Here { replicas: 300, led: 4 },
            Said::Removed { replica: ReplicaId(300) },
            Said::Asks { replica: ReplicaId(3) },
            Said::IsFounded,
            Said::Founded,
            Said::There { life: 300 },
            Said::Sleep { term: Term(4), last: LogIndex(300) },
            Said::Closed(Closed { upto: CommitTs(1 << 40), last: LogIndex(300) }),
            Said::Begin(Box::new(begin)),
            Said::Piece(Piece { number: 1, place: 0, is_last: true, items }),
            Said::Got { number: 1, upto: 2 },
            Said::Stopped { number: 1, why: "no".into() },
        ];
        for said in said {
            let bytes = said.encode();
            assert_eq!(Said::decode(&bytes).as_ref(), Some(&said));
            // A piece may end behind any of its items.
            for len in 0..bytes.len() {
                let cut = Said::decode(&bytes[..len]);
                assert!(cut.is_none() || matches!(cut, Some(Said::Piece(_))), "{said:?}");
            }
        }
    }
}
