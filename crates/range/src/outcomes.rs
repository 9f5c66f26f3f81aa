//! What became of transactions lately: a repeated request is answered, not executed.
//!
//! ```text
//!   outcomes   |--- window ---------------------------| newest timestamp of the range
//!        x  x  |  o    o  o      o    o        o      o
//!   forgotten, and who began before is refused
//! ```
//!
//! A commit's timestamp is above the time at which its transaction began. So a transaction whose
//! outcome was forgotten began before the window, too, and is refused instead of executed.
//!
//! An outcome that other ranges still wait for has an *anchor*, and is kept whatever its age: those
//! who ask for a transaction that nobody knows are told that it has not happened.

use std::collections::{BTreeMap, VecDeque};

use braid_consensus::codec::{Reader, put_number};
use braid_lsm::CommitTs;

use crate::ids::TxnId;
use crate::lease::micros;
use crate::prepared::{Anchor, Decision};

/// What is known of a transaction's end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) decision: Decision,
    /// Timestamp of the entry since which it may be forgotten after a while.
    pub(crate) since: CommitTs,
    pub(crate) anchor: Option<Anchor>,
}

impl Outcome {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.decision.encode(&mut out);
        put_number(&mut out, self.since.0);
        out.push(u8::from(self.anchor.is_some()));
        self.anchor.iter().for_each(|anchor| anchor.encode(&mut out));
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Outcome> {
        let mut reader = Reader::new(bytes);
        let decision = Decision::decode(&mut reader)?;
        let since = CommitTs(reader.number()?);
        let anchor = match reader.byte()? {
            0 => None,
            1 => Some(Anchor::decode(&mut reader)?),
            _ => return None,
        };
        reader.is_empty().then_some(Outcome { decision, since, anchor })
    }
}

/// See the [module's page](self). The same on all replicas.
#[derive(Debug, Default)]
pub(crate) struct Outcomes {
    window_micros: u64,
    by_txn: BTreeMap<TxnId, Outcome>,
    /// Those without an anchor, in the order of timestamps.
    order: VecDeque<(CommitTs, TxnId)>,
}

impl Outcomes {
    pub(crate) fn new(window_micros: u64) -> Outcomes {
        Outcomes { window_micros, ..Outcomes::default() }
    }

    pub(crate) fn of(&self, txn: TxnId) -> Option<Decision> {
        self.by_txn.get(&txn).map(|outcome| outcome.decision)
    }

    pub(crate) fn record_of(&self, txn: TxnId) -> Option<&Outcome> {
        self.by_txn.get(&txn)
    }

    /// Those that others wait for.
    pub(crate) fn anchored(&self) -> impl Iterator<Item = (TxnId, &Outcome)> {
        let anchored = self.by_txn.iter().filter(|(_, outcome)| outcome.anchor.is_some());
        anchored.map(|(txn, outcome)| (*txn, outcome))
    }

    /// Whether the transaction began before the window that ends at `newest`.
    pub(crate) fn is_forgotten(&self, txn: TxnId, newest: CommitTs) -> bool {
        micros(txn.began) + self.window_micros < micros(newest)
    }

    /// Remembers an outcome that is newer than all others, or takes the place of one.
    pub(crate) fn add(&mut self, txn: TxnId, outcome: Outcome) {
        if outcome.anchor.is_none() {
            self.order.push_back((outcome.since, txn));
        }
        self.by_txn.insert(txn, outcome);
    }

    /// Forgets what lies before the window that ends at `newest`; returns whose outcomes.
    pub(crate) fn trim(&mut self, newest: CommitTs) -> Vec<TxnId> {
        let mut gone = Vec::new();
        while let Some((since, txn)) = self.order.front().copied()
            && micros(since) + self.window_micros < micros(newest)
        {
            self.order.pop_front();
            self.by_txn.remove(&txn);
            gone.push(txn);
        }
        gone
    }

    /// All that are remembered.
    pub(crate) fn all(&self) -> impl Iterator<Item = (TxnId, &Outcome)> {
        self.by_txn.iter().map(|(txn, outcome)| (*txn, outcome))
    }

    /// How many are remembered.
    pub(crate) fn count(&self) -> usize {
        self.by_txn.len()
    }

    /// Takes what was stored, in any order.
    pub(crate) fn load(&mut self, mut stored: Vec<(TxnId, Outcome)>) {
        stored.sort_unstable_by_key(|(txn, outcome)| (outcome.since, *txn));
        stored.into_iter().for_each(|(txn, outcome)| self.add(txn, outcome));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::NodeId;
    use braid_env::clock::Hlc;
    use braid_lsm::KeySpan;

    fn at(micros: u64) -> CommitTs {
        CommitTs(Hlc::from_micros(micros))
    }

    fn committed(at: CommitTs) -> Outcome {
        let decision = Decision::Committed { at, by: NodeId(1) };
        Outcome { decision, since: at, anchor: None }
    }

    #[test]
    fn whose_outcome_is_forgotten_is_refused() {
        let mut outcomes = Outcomes::new(100);
        for n in 0..50u64 {
            let txn = TxnId { began: at(n * 10), number: n };
            let newest = at(n * 10 + 5);
            outcomes.add(txn, committed(newest));
            for gone in outcomes.trim(newest) {
                assert!(outcomes.is_forgotten(gone, newest), "{gone:?}");
            }
            assert_eq!(outcomes.of(txn), Some(committed(newest).decision));
            assert!(outcomes.by_txn.len() <= 11);
        }
    }

    #[test]
    fn what_others_wait_for_stays_and_round_trips() {
        let mut outcomes = Outcomes::new(100);
        let txn = TxnId { began: at(1), number: 1 };
        let participants = vec![KeySpan::new("c", "d")];
        let anchor = Some(Anchor { key: "a".into(), participants });
        let record = Outcome { anchor, ..committed(at(5)) };
        assert_eq!(Outcome::decode(&record.encode()), Some(record.clone()));
        outcomes.add(txn, record);
        assert_eq!(outcomes.trim(at(10_000)), []);
        assert_eq!(outcomes.anchored().count(), 1);
        // All have resolved it: it may go after a while.
        let settled = Outcome { since: at(10_000), ..committed(at(5)) };
        outcomes.add(txn, settled);
        assert_eq!(outcomes.trim(at(10_050)), []);
        assert_eq!(outcomes.trim(at(10_200)), [txn]);
    }
}
