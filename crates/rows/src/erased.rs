//! Spans of rows that went under tombstones while entries of their indexes stayed behind.
//!
//! ```text
//!   DELETE FROM customers WHERE id = 7
//!     tombstone   [/customers/7, ..)                entries of orders_by_state stay where they are
//!     record      customers n: orders, the span     in the same commit
//!   a reader of orders_by_state alone
//!     /open/5/1                                     live: no record has /customers/5/#/orders/1
//!     /open/7/3                                     in the span: only its row can tell
//! ```
//! An entry whose row lies in no such span is live, because everything else that takes a row away
//! takes its entries too. A tombstone could not tell that for ever: it is dropped with what it
//! covers, and entries are no part of that. The record is dropped when all entries have been
//! compared with their rows, by a job.
//!
//! A record is read as of the reader's time, like the entries; own erasures are among them. A
//! serializable reader's commit depends on that there are no others.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use braid_catalog::{Catalog, kv_error};
use braid_keys::system;
use braid_kv::{KeySpan, LockMode, ReadMode, ScanOptions, Txn};
use braid_types::{SqlError, SqlResult, SqlState};
use bytes::Bytes;

use super::TableLayout;
use super::layout::united;

/// Most spans of a record: of more, a few wider ones are as good, since rows tell.
const SPANS_MAX: usize = 64;
/// Most records that are worth reading for an answer without rows.
const RECORDS_MAX: usize = 64;

/// What is known of where entries may be dead, for all scans of a step in a statement: asked for
/// once, and only if somebody wants to know.
#[derive(Clone, Debug, Default)]
pub struct Liveness {
    told: Arc<OnceLock<Option<Erased>>>,
}

impl Liveness {
    /// Asks, unless that has happened. `None`: so many places that all entries must be compared
    /// with their rows.
    pub fn ask(
        &self,
        txn: &Arc<Txn>,
        layout: &TableLayout,
        mode: ReadMode,
    ) -> SqlResult<Option<&Erased>> {
        if self.told.get().is_none() {
            let told = Erased::of(txn, layout, mode)?;
            self.told.get_or_init(|| told);
        }
        Ok(self.known())
    }

    /// As far as it was asked for.
    pub(super) fn known(&self) -> Option<&Erased> {
        self.told.get().and_then(Option::as_ref)
    }
}

/// Spans in which entries may be dead, in order, none of which touches the next.
#[derive(Debug)]
pub struct Erased {
    spans: Vec<KeySpan>,
}

impl Erased {
    /// Those of a table; `None` if they are very many.
    fn of(txn: &Arc<Txn>, layout: &TableLayout, mode: ReadMode) -> SqlResult<Option<Erased>> {
        let (start, end) = system::erasures(layout.rows.root());
        let options = ScanOptions { mode, limit: Some(RECORDS_MAX + 1), ..ScanOptions::default() };
        let mut scan = txn.scan(KeySpan::new(start, end), options).map_err(kv_error)?;
        let (mut spans, mut records) = (Vec::new(), 0);
        while let Some((key, value)) = scan.next_row().map_err(kv_error)? {
            records += 1;
            let record = Record::decode(value).ok_or_else(|| damaged(key))?;
            if record.tables.contains(&layout.table.id) {
                spans.extend(record.spans);
            }
        }
        Ok((records <= RECORDS_MAX).then(|| Erased { spans: united(spans) }))
    }

    /// Whether no row was erased.
    pub(super) fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Whether a row may have been erased.
    pub(super) fn may_hold(&self, key: &[u8]) -> bool {
        let before = self.spans.partition_point(|span| span.start.as_ref() <= key);
        before.checked_sub(1).is_some_and(|at| key < self.spans[at].end.as_ref())
    }
}

fn damaged(key: &[u8]) -> SqlError {
    let key = braid_keys::pretty::key(key);
    SqlError::new(SqlState::DATA_CORRUPTED, format!("damaged system record: {key}"))
}

/// What is stored.
#[derive(Debug, Default, PartialEq)]
struct Record {
    tables: Vec<u32>,
    spans: Vec<KeySpan>,
}

impl Record {
    fn encode(&self) -> Vec<u8> {
        let mut out = (self.tables.len() as u32).to_be_bytes().to_vec();
        self.tables.iter().for_each(|table| out.extend(table.to_be_bytes()));
        for bound in self.spans.iter().flat_map(|span| [&span.start, &span.end]) {
            out.extend((bound.len() as u32).to_be_bytes());
            out.extend_from_slice(bound);
        }
        out
    }

    fn decode(value: &[u8]) -> Option<Record> {
        fn number(value: &mut &[u8]) -> Option<u32> {
            let (number, rest) = value.split_first_chunk::<4>()?;
            *value = rest;
            Some(u32::from_be_bytes(*number))
        }
        fn bound(value: &mut &[u8]) -> Option<Vec<u8>> {
            let length = number(value)? as usize;
            let (bound, rest) = value.split_at_checked(length)?;
            *value = rest;
            Some(bound.to_vec())
        }
        let mut rest = value;
        let mut out = Record::default();
        for _ in 0..number(&mut rest)? {
            out.tables.push(number(&mut rest)?);
        }
        while !rest.is_empty() {
            out.spans.push(KeySpan::new(bound(&mut rest)?, bound(&mut rest)?));
        }
        Some(out)
    }
}

/// Notes with a transaction that rows of these tables, of one hierarchy, were erased in these
/// spans. `number` is given to no other record.
pub fn note(
    txn: &Txn,
    (root, number): (u32, u64),
    tables: Vec<u32>,
    spans: &[KeySpan],
) -> SqlResult<()> {
    let all = united(spans.to_vec());
    let each = all.len().div_ceil(SPANS_MAX).max(1);
    let wide =
        |part: &[KeySpan]| KeySpan::new(part[0].start.clone(), part[part.len() - 1].end.clone());
    let record = Record { tables, spans: all.chunks(each).map(wide).collect() };
    txn.put(system::erasure(root, number), record.encode()).map_err(kv_error)
}

/// Keys of the records about a table, whose root may be forgotten with it.
pub fn records(txn: &Arc<Txn>, root: Option<u32>, table: u32) -> SqlResult<Vec<Bytes>> {
    let (start, end) = root.map_or_else(system::all_erasures, system::erasures);
    let options = ScanOptions { mode: ReadMode::Unrecorded, ..ScanOptions::default() };
    let mut scan = txn.scan(KeySpan::new(start, end), options).map_err(kv_error)?;
    let mut keys = Vec::new();
    while let Some((key, value)) = scan.next().map_err(kv_error)? {
        let record = Record::decode(&value).ok_or_else(|| damaged(&key))?;
        keys.extend(record.tables.contains(&table).then_some(key));
    }
    Ok(keys)
}

/// The tables that records are about.
pub fn tables(txn: &Arc<Txn>) -> SqlResult<BTreeSet<u32>> {
    let (start, end) = system::all_erasures();
    let options = ScanOptions { mode: ReadMode::Unrecorded, ..ScanOptions::default() };
    let mut scan = txn.scan(KeySpan::new(start, end), options).map_err(kv_error)?;
    let mut tables = BTreeSet::new();
    while let Some((key, value)) = scan.next().map_err(kv_error)? {
        tables.extend(Record::decode(&value).ok_or_else(|| damaged(&key))?.tables);
    }
    Ok(tables)
}

/// A record is no longer about a table, nor about any that is gone.
pub fn settle(txn: &Txn, catalog: &Catalog, key: &Bytes, table: u32) -> SqlResult<()> {
    txn.hold(key, LockMode::Exclusive).map_err(kv_error)?;
    let Some(value) = txn.get_as(key, ReadMode::Latest).map_err(kv_error)? else { return Ok(()) };
    let mut record = Record::decode(&value).ok_or_else(|| damaged(key))?;
    record.tables.retain(|own| *own != table && catalog.table(*own).is_some());
    let written = match record.tables.is_empty() {
        true => txn.delete(key.clone()),
        false => txn.put(key.clone(), record.encode()),
    };
    written.map_err(kv_error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start: &str, end: &str) -> KeySpan {
        KeySpan::new(start.as_bytes().to_vec(), end.as_bytes().to_vec())
    }

    #[test]
    fn a_key_is_in_a_span_or_not() {
        let spans = vec![span("m", "p"), span("c", "e"), span("d", "f"), span("f", "g")];
        let erased = Erased { spans: united(spans) };
        assert_eq!(erased.spans.len(), 2);
        for (key, inside) in
            [("b", false), ("c", true), ("fz", true), ("g", false), ("m", true), ("p", false)]
        {
            assert_eq!(erased.may_hold(key.as_bytes()), inside, "{key}");
        }
        assert!(!Erased { spans: Vec::new() }.may_hold(b"a"));
    }

    #[test]
    fn records_are_read_as_they_were_written() {
        let record = Record { tables: vec![7, 300], spans: vec![span("a", "b"), span("c", "")] };
        assert_eq!(Record::decode(&record.encode()), Some(record));
        for value in [&b""[..], b"\0\0\0\x01", b"\0\0\0\0\0\0\0\x01a", b"\0\0\0\0\0\0\0\x02b"] {
            assert_eq!(Record::decode(value), None, "{value:?}");
        }
    }
}
