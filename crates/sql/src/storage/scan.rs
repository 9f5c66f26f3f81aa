//! Rows of a table over spans, directly or through an index.
//!
//! A scan of a parent table asks the engine for its row class only and, going forward, jumps over
//! each row's family with one seek, so children cost nothing however many they are.
//!
//! **Liveness of index entries.** A range delete removes rows without removing their entries in
//! indexes that lie outside of the deleted span. So an entry counts only if its base row exists
//! and yields this very entry; [`IndexScan`] reads the base row anyway and checks that.

use std::sync::Arc;

use braid_catalog::kv_error;
use braid_keys::family_end;
use braid_kv::{KeySpan, ReadMode, ScanOptions, Txn, TxnScan};
use braid_types::SqlResult;
use bytes::Bytes;

use super::TableLayout;
use super::layout::IndexLayout;
use crate::general_query::Row;

/// Rows of a table.
pub struct TableScan {
    txn: Arc<Txn>,
    layout: Arc<TableLayout>,
    spans: std::vec::IntoIter<KeySpan>,
    open: Option<TxnScan>,
    wanted: Option<Vec<bool>>,
    reverse: bool,
    mode: ReadMode,
    /// Rows given back so far.
    pub rows: u64,
}

impl TableScan {
    /// Scans the spans one after the other. `wanted` says by ordinal which columns to decode.
    pub fn new(
        txn: Arc<Txn>,
        layout: Arc<TableLayout>,
        mut spans: Vec<KeySpan>,
        wanted: Option<Vec<bool>>,
        reverse: bool,
    ) -> TableScan {
        if reverse {
            spans.reverse();
        }
        let (spans, mode) = (spans.into_iter(), ReadMode::Recorded);
        TableScan { txn, layout, spans, open: None, wanted, reverse, mode, rows: 0 }
    }

    /// Sets which state the scan sees. Default: the transaction's, recorded.
    pub fn reading(mut self, mode: ReadMode) -> TableScan {
        self.mode = mode;
        self
    }

    /// The next row with its key.
    pub fn next_row(&mut self) -> SqlResult<Option<(Bytes, Row)>> {
        loop {
            let scan = match &mut self.open {
                Some(s) => s,
                None => match self.spans.next() {
                    None => return Ok(None),
                    Some(span) => {
                        self.layout.used_by(&self.txn, self.mode)?;
                        let options = ScanOptions {
                            reverse: self.reverse,
                            limit: None,
                            classes: self.layout.rows.class_mask(),
                            mode: self.mode,
                        };
                        self.open.insert(self.txn.scan(span, options).map_err(kv_error)?)
                    }
                },
            };
            let Some((key, value)) = scan.next().map_err(kv_error)? else {
                self.open = None;
                continue;
            };
            let Some(row) = self.layout.decode(&key, &value, self.wanted.as_deref())? else {
                continue;
            };
            if self.layout.has_children && !self.reverse {
                scan.seek(&family_end(&key)).map_err(kv_error)?;
            }
            self.rows += 1;
            return Ok(Some((key, row)));
        }
    }
}

/// Rows of a table in the order of an index.
pub struct IndexScan {
    txn: Arc<Txn>,
    layout: Arc<TableLayout>,
    index: usize,
    spans: std::vec::IntoIter<KeySpan>,
    open: Option<TxnScan>,
    reverse: bool,
    mode: ReadMode,
}

impl IndexScan {
    /// Scans the spans of the table's secondary index at position `index`.
    pub fn new(
        txn: Arc<Txn>,
        layout: Arc<TableLayout>,
        index: usize,
        mut spans: Vec<KeySpan>,
        reverse: bool,
    ) -> IndexScan {
        if reverse {
            spans.reverse();
        }
        let (spans, mode) = (spans.into_iter(), ReadMode::Recorded);
        IndexScan { txn, layout, index, spans, open: None, reverse, mode }
    }

    /// Sets which state the scan sees. Default: the transaction's, recorded.
    pub fn reading(mut self, mode: ReadMode) -> IndexScan {
        self.mode = mode;
        self
    }

    /// The next row with its key.
    pub fn next_row(&mut self) -> SqlResult<Option<(Bytes, Row)>> {
        let index = &self.layout.indexes[self.index];
        loop {
            let scan = match &mut self.open {
                Some(s) => s,
                None => match self.spans.next() {
                    None => return Ok(None),
                    Some(span) => {
                        self.layout.used_by(&self.txn, self.mode)?;
                        let options = ScanOptions {
                            reverse: self.reverse,
                            limit: None,
                            classes: index.layout.class_mask(),
                            mode: self.mode,
                        };
                        self.open.insert(self.txn.scan(span, options).map_err(kv_error)?)
                    }
                },
            };
            let Some((key, value)) = scan.next().map_err(kv_error)? else {
                self.open = None;
                continue;
            };
            if let Some(found) = live_row(&self.txn, &self.layout, index, &key, &value, self.mode)?
            {
                return Ok(Some(found));
            }
        }
    }
}

/// The row behind an index entry, if the entry is live.
pub fn live_row(
    txn: &Txn,
    layout: &TableLayout,
    index: &IndexLayout,
    key: &[u8],
    value: &[u8],
    mode: ReadMode,
) -> SqlResult<Option<(Bytes, Row)>> {
    let Some(row_key) = layout.row_key_of_entry(index, key, value)? else { return Ok(None) };
    let Some((row_key, row)) = get_row_as(txn, layout, row_key, mode)? else { return Ok(None) };
    if index.entry_key(&row)? != key {
        return Ok(None);
    }
    Ok(Some((row_key, row)))
}

/// The row with this key.
pub fn get_row(
    txn: &Txn,
    layout: &TableLayout,
    key: impl Into<Bytes>,
) -> SqlResult<Option<(Bytes, Row)>> {
    get_row_as(txn, layout, key, ReadMode::Recorded)
}

/// The row with this key, in the state that the mode says.
pub fn get_row_as(
    txn: &Txn,
    layout: &TableLayout,
    key: impl Into<Bytes>,
    mode: ReadMode,
) -> SqlResult<Option<(Bytes, Row)>> {
    let key = key.into();
    let Some(value) = txn.get_as(&key, mode).map_err(kv_error)? else { return Ok(None) };
    Ok(layout.decode(&key, &value, None)?.map(|row| (key, row)))
}
