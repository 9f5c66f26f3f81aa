//! Small states: those that came in one piece, of ranges of which nothing is here.
//!
//! A node that gets its share of thousands of small ranges would make two files for each of them,
//! sync each of these, and wait for the device a dozen times. What came in one piece is written
//! like other rows, and all that came within a tick takes its place in one step:
//!
//! ```text
//!   small durable         all of them, with what they hold: from here on it happens
//!   rows written          their own times, the oldest first; the range's state as the last one
//!   raft logs begun anew  one sync for all
//!   small gone
//! ```
//!
//! The store takes them below its threshold, too, since nothing was ever written where they go
//! ([`Db::fill`]). Where something was, the state takes the other way, through files.

use std::collections::BTreeMap;
use std::path::Path;

use braid_consensus::codec::{Reader, put_bytes, put_number};
use braid_consensus::{GroupId, LoggedGroup, RaftLog, Result};
use braid_lsm::{Batch, CommitTs, Db, Exported, KeySpan, Pending};

use super::installing::{Staging, begin_logs_anew, damaged, is_in_place};
use super::message::{Begin, put_item, take_item};
use crate::ids::RangeId;
use crate::local_keys;
use crate::replicas::Replicas;

const VERSION: u8 = 1;

/// A state that is there.
pub(super) struct Small {
    pub(super) begin: Begin,
    pub(super) items: Vec<Exported>,
}

impl Small {
    fn range(&self) -> RangeId {
        self.begin.state.descriptor.id
    }

    fn span(&self) -> &KeySpan {
        &self.begin.state.descriptor.span
    }

    fn encode(&self, out: &mut Vec<u8>) {
        self.begin.encode(out);
        put_number(out, self.items.len() as u64);
        let mut items = Vec::new();
        self.items.iter().for_each(|item| put_item(&mut items, item));
        put_bytes(out, &items);
    }

    fn decode(reader: &mut Reader<'_>) -> Option<Small> {
        let begin = Begin::decode(reader)?;
        let count = reader.number()?;
        let items = &mut Reader::new(reader.bytes()?);
        let items = (0..count).map(|_| take_item(items)).collect::<Option<_>>()?;
        Some(Small { begin, items })
    }

    /// Writes all that it holds, the range's state behind everything else: with that it is there.
    fn fill(&self, db: &Db) -> Result<Option<Pending>> {
        let state = local_keys::state(self.range());
        let mut last = None;
        let mut batches: BTreeMap<CommitTs, Batch> = BTreeMap::new();
        // What is written at the time of a tombstone over it lies on it.
        let is_tombstone = |item: &&Exported| matches!(item, Exported::Tombstone { .. });
        let entries = self.items.iter().filter(|item| !is_tombstone(item));
        for item in self.items.iter().filter(is_tombstone).chain(entries) {
            let (Exported::Entry { ts, .. } | Exported::Tombstone { ts, .. }) = item;
            let batch = batches.entry(*ts).or_insert_with(|| Batch::at(*ts));
            match item {
                Exported::Tombstone { span, .. } => batch.delete_span(&span.start, &span.end),
                Exported::Entry { key, value, .. } if *key == state => {
                    last = value.as_ref().map(|value| (*ts, value));
                }
                Exported::Entry { key, value: Some(value), .. } => batch.put(key, value),
                Exported::Entry { key, value: None, .. } => batch.delete(key),
            }
        }
        for batch in batches.into_values() {
            // Durable with the state's own, which comes behind them.
            drop(db.fill(batch)?);
        }
        let Some((ts, value)) = last else { return Ok(None) };
        let mut batch = Batch::at(ts);
        batch.put(&state, value);
        Ok(Some(db.fill(batch)?))
    }
}

/// Whether nothing was written in a range's span and among its records.
fn is_empty(db: &Db, small: &Small) -> Result<bool> {
    let newest = |span: &KeySpan| db.newest_above(span, CommitTs::ZERO);
    Ok(newest(small.span())?.is_none() && newest(&local_keys::records(small.range()))?.is_none())
}

/// Puts states in place that are not. Durable when it returns.
fn put_in_place(db: &Db, states: &[Small]) -> Result<()> {
    let mut last = None;
    for small in states {
        if is_in_place(db, &small.begin)? {
            continue;
        }
        db.lower_gc_threshold(small.begin.state.gc)?;
        if !is_empty(db, small)? {
            // A crash has left a part of it.
            db.excise(small.span())?;
            db.excise(&local_keys::records(small.range()))?;
        }
        last = small.fill(db)?.or(last);
    }
    last.map_or(Ok(()), |last| Ok(last.wait_durable()?))
}

fn encode(states: &[Small]) -> Vec<u8> {
    let mut out = vec![VERSION];
    put_number(&mut out, states.len() as u64);
    states.iter().for_each(|small| small.encode(&mut out));
    out
}

fn decode(bytes: &[u8]) -> Option<Vec<Small>> {
    let reader = &mut Reader::new(bytes);
    if reader.byte()? != VERSION {
        return None;
    }
    let states = (0..reader.number()?).map(|_| Small::decode(reader)).collect::<Option<_>>()?;
    reader.is_empty().then_some(states)
}

/// Does what was resolved before a crash.
pub(super) fn finish_small(
    staging: &Staging,
    db: &Db,
    log: &mut RaftLog,
    logged: &mut BTreeMap<GroupId, LoggedGroup>,
) -> Result<()> {
    let path: &Path = &staging.small();
    if !staging.has(path)? {
        return Ok(());
    }
    let states = decode(&staging.read(path)?).ok_or_else(|| damaged(path))?;
    put_in_place(db, &states)?;
    let begins: Vec<&Begin> = states.iter().map(|small| &small.begin).collect();
    begin_logs_anew(log, logged, &begins)?;
    staging.remove_durably(path)
}

impl Replicas {
    /// Whether a state that came in one piece can be written like other rows.
    pub(super) fn has_nothing_of(&self, small: &Small) -> Result<bool> {
        Ok(!self.replicas.contains_key(&small.range()) && is_empty(&self.db, small)?)
    }

    /// Replicas begin, each with a state that is there; nothing of these ranges is here, and none
    /// of them has keys of another one. Blocks on the device.
    pub(super) fn install_small(&mut self, states: Vec<Small>) -> Result<()> {
        if states.is_empty() {
            return Ok(());
        }
        let path = self.traffic.staging.small();
        self.traffic.staging.write_durably(&path, &encode(&states))?;
        put_in_place(&self.db, &states)?;
        let mut logged = BTreeMap::new();
        for small in &states {
            let group = small.range().group();
            logged.insert(group, self.absent.unborn.remove(&group).unwrap_or_default());
        }
        let begins: Vec<&Begin> = states.iter().map(|small| &small.begin).collect();
        begin_logs_anew(&mut self.log, &mut logged, &begins)?;
        self.traffic.staging.remove_durably(&path)?;
        for Small { begin, .. } in states {
            let group = begin.state.descriptor.id.group();
            self.begin_with(begin, logged.remove(&group).unwrap_or_default())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::ids::{NodeId, RangeDescriptor};
    use crate::machine::newest;
    use crate::state::RangeState;
    use braid_consensus::{LogIndex, ReplicaId, Term};
    use braid_env::fs::MemFs;
    use braid_lsm::Options;
    use bytes::Bytes;

    fn small(items: Vec<Exported>) -> Small {
        let span = KeySpan::new("b", "f");
        let replicas = vec![(ReplicaId(1), NodeId(1))];
        let mut state = RangeState::new(RangeDescriptor::new(RangeId(3), span, replicas));
        (state.applied, state.stamp) = (LogIndex(20), CommitTs(9));
        let key = local_keys::state(RangeId(3)).into();
        let record = Exported::Entry { key, ts: state.stamp, value: Some(state.encode().into()) };
        let begin = Begin { number: 1, term: Term(5), state, at_term: Term(4) };
        Small { begin, items: [vec![record], items].concat() }
    }

    fn entry(key: &'static str, ts: u64, value: Option<&'static str>) -> Exported {
        Exported::Entry { key: Bytes::from(key), ts: CommitTs(ts), value: value.map(Bytes::from) }
    }

    fn items() -> Vec<Exported> {
        let span = KeySpan::new("b", "d");
        vec![
            Exported::Tombstone { span, ts: CommitTs(8) },
            entry("b", 8, Some("on it")),
            entry("c", 7, Some("under it")),
            entry("c", 3, None),
            entry("c", 2, Some("first")),
            entry("e", 6, Some("e")),
        ]
    }

    fn open() -> Db {
        let options = Options { ballast_size: 0, ..Options::default() };
        Db::open(Arc::new(MemFs::new()), Path::new("/store"), options).unwrap()
    }

    fn held(db: &Db) -> Vec<Exported> {
        let mut export = db.view(newest()).unwrap().export(&KeySpan::new("b", "f")).unwrap();
        std::iter::from_fn(|| export.next_item().unwrap()).collect()
    }

    /// The store's threshold is above all of it, as in a cluster that is older than its versions
    /// are kept.
    #[test]
    fn all_versions_of_a_small_state_are_written_as_they_were_below_the_threshold_too() {
        let db = open();
        db.set_gc_threshold(CommitTs(100)).unwrap();
        let states = [small(items())];
        assert!(is_empty(&db, &states[0]).unwrap());
        put_in_place(&db, &states).unwrap();
        assert_eq!(held(&db), items());
        assert!(is_in_place(&db, &states[0].begin).unwrap() && !is_empty(&db, &states[0]).unwrap());
    }

    /// The power failed between two batches: what is there of a state is cut out.
    #[test]
    fn a_part_of_a_small_state_is_replaced() {
        let db = open();
        let mut batch = Batch::at(CommitTs(3));
        batch.put(b"c", b"of the part");
        batch.put(b"d", b"of another one");
        drop(db.fill(batch).unwrap());
        let states = [small(items())];
        put_in_place(&db, &states).unwrap();
        assert_eq!(held(&db), items());
    }

    #[test]
    fn small_states_round_trip_and_cuts_are_noticed() {
        let states = vec![small(items()), small(Vec::new())];
        let bytes = encode(&states);
        let back = decode(&bytes).unwrap();
        let same = |(a, b): (&Small, &Small)| a.begin == b.begin && a.items == b.items;
        assert!(back.len() == 2 && back.iter().zip(&states).all(same));
        assert!((0..bytes.len()).all(|len| decode(&bytes[..len]).is_none()));
    }
}
