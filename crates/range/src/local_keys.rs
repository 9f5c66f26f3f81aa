//! Keys of the records that a node keeps beside the data, in the same store.
//!
//! ```text
//!   00 'n'                        the node: its number, how often its store was started
//!   00 'r' range 's'              state of a range's replica: what was applied, lease, descriptor
//!   00 'r' range 'o' began number outcome of a transaction
//!   00 'r' range 'p' began number part of a transaction that is prepared and not resolved
//!   00 'r' range 'd' began number it is being resolved: its writes are there
//!   00 't' range                  replicas of the range below a number were removed from the node
//!   01 ..                         data
//! ```
//!
//! Numbers have eight bytes, big-endian. Readers of data never come here: requests for keys below
//! `01` are refused. A record is written in the batch of the entry that changes it, at the entry's
//! timestamp: timestamps of the entries of a range only grow (see `machine`), so that contract C1
//! holds for its records as it does for its data.

use braid_lsm::KeySpan;

use crate::ids::{RangeId, TxnId};

/// Data has keys from here on.
pub const FIRST_DATA_KEY: &[u8] = &[1];

/// Key of the node's record.
pub(crate) const NODE: &[u8] = &[0, b'n'];

fn of_range(range: RangeId, kind: u8) -> Vec<u8> {
    let mut key = vec![0, b'r'];
    key.extend_from_slice(&range.0.to_be_bytes());
    key.push(kind);
    key
}

/// Keys of all records of a range.
pub(crate) fn records(range: RangeId) -> KeySpan {
    let mut prefix = of_range(range, 0);
    prefix.pop();
    KeySpan::prefix(&prefix)
}

/// Key of the state of a range's replica.
pub(crate) fn state(range: RangeId) -> Vec<u8> {
    of_range(range, b's')
}

/// Keys of the outcomes that a range remembers.
pub(crate) fn outcomes(range: RangeId) -> KeySpan {
    KeySpan::prefix(&of_range(range, b'o'))
}

fn of_txn(range: RangeId, kind: u8, txn: TxnId) -> Vec<u8> {
    let mut key = of_range(range, kind);
    key.extend_from_slice(&txn.began.0.to_be_bytes());
    key.extend_from_slice(&txn.number.to_be_bytes());
    key
}

/// Key of the outcome of a transaction.
pub(crate) fn outcome(range: RangeId, txn: TxnId) -> Vec<u8> {
    of_txn(range, b'o', txn)
}

/// Keys of what is prepared in a range.
pub(crate) fn all_prepared(range: RangeId) -> KeySpan {
    KeySpan::prefix(&of_range(range, b'p'))
}

/// Key of what a transaction has prepared in a range.
pub(crate) fn prepared(range: RangeId, txn: TxnId) -> Vec<u8> {
    of_txn(range, b'p', txn)
}

/// Key that is there while a transaction's writes are, and its resolution is not.
pub(crate) fn done(range: RangeId, txn: TxnId) -> Vec<u8> {
    of_txn(range, b'd', txn)
}

/// The transaction of a key made by [`outcome`] or [`prepared`].
pub(crate) fn txn_of(key: &[u8]) -> Option<TxnId> {
    let rest = key.get(11..)?;
    let number = |at: usize| -> Option<u64> {
        Some(u64::from_be_bytes(rest.get(at..at + 8)?.try_into().ok()?))
    };
    Some(TxnId { began: braid_lsm::CommitTs(number(0)?), number: number(8)? })
}

/// Key that is there when a replica of a range was removed from the node.
pub(crate) fn retired(range: RangeId) -> Vec<u8> {
    let mut key = vec![0, b't'];
    key.extend_from_slice(&range.0.to_be_bytes());
    key
}

/// Keys of all ranges of which replicas were removed.
pub(crate) fn all_retired() -> KeySpan {
    KeySpan::prefix(&[0, b't'])
}

/// The range of a key made by [`retired`].
pub(crate) fn retired_range(key: &[u8]) -> Option<RangeId> {
    Some(RangeId(u64::from_be_bytes(key.get(2..)?.try_into().ok()?)))
}

/// All state records.
pub(crate) fn all_ranges() -> KeySpan {
    KeySpan::prefix(&[0, b'r'])
}

/// Whether a key is that of a state record.
pub(crate) fn is_state(key: &[u8]) -> bool {
    key.len() == 11 && key[10] == b's'
}

#[cfg(test)]
mod tests {
    use super::*;
    use braid_lsm::CommitTs;

    #[test]
    fn keys_of_a_range_are_its_own() {
        let txn = TxnId { began: CommitTs(7), number: 9 };
        let key = outcome(RangeId(3), txn);
        assert!(outcomes(RangeId(3)).contains(&key) && !outcomes(RangeId(4)).contains(&key));
        assert_eq!(txn_of(&key), Some(txn));
        assert!(is_state(&state(RangeId(3))) && !is_state(&key));
        let gone = retired(RangeId(3));
        assert!(all_retired().contains(&gone) && !records(RangeId(3)).contains(&gone));
        assert_eq!(retired_range(&gone), Some(RangeId(3)));
        assert!(all_ranges().contains(&key) && key.as_slice() < FIRST_DATA_KEY);
    }
}
