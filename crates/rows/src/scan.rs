//! Rows of a table over spans, directly or through an index.
//!
//! A scan of a parent table asks the engine for its row class only and, going forward, jumps over
//! each row's family with one seek, so children cost nothing however many they are.
//!
//! **Liveness of index entries.** A range delete removes rows without removing their entries in
//! indexes that lie outside of the deleted span. So an entry counts only if its base row exists
//! and yields this very entry; [`IndexScan`] checks that where it reads the base row anyway. Where
//! the entry alone would do, it asks first in which spans rows were erased ([`super::erased`]), and
//! reads the rows that lie there.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use braid_catalog::kv_error;
use braid_keys::family_end;
use braid_kv::{KeySpan, ReadMode, RowBatch, ScanOptions, Txn, TxnScan};
use braid_types::SqlResult;
use bytes::Bytes;

use super::TableLayout;
use super::entry::EntryWay;
use super::erased::Liveness;
use super::layout::IndexLayout;
use crate::Row;

/// How many of the things that come next are asked for at once: few first, since nobody knows how
/// many will be wanted.
pub struct Lookahead {
    /// Those that were asked for and did not come yet.
    asked: usize,
    step: usize,
}

impl Lookahead {
    /// So many of them at first.
    pub fn new(step: usize) -> Lookahead {
        Lookahead { asked: 0, step: step.max(1) }
    }

    /// One of `waiting` comes now. How many to ask for, this one among them; 0: it was asked for.
    pub fn next(&mut self, waiting: usize, most: usize) -> usize {
        if self.asked == 0 {
            self.asked = self.step.min(most).min(waiting).max(1);
            self.step = self.step.saturating_mul(4);
            let asked = self.asked;
            self.asked -= 1;
            return asked;
        }
        self.asked -= 1;
        0
    }

    /// How many to take now, at most.
    fn take(&mut self, most: usize) -> usize {
        self.asked = 0;
        self.next(most, most)
    }
}

/// Spans that are scanned one after the other.
pub(super) struct Spans {
    pub(super) txn: Arc<Txn>,
    pub(super) layout: Arc<TableLayout>,
    spans: VecDeque<KeySpan>,
    /// Scans of the spans before those, which were opened before they are needed.
    opened: VecDeque<TxnScan>,
    pub(super) options: ScanOptions,
    ahead: Lookahead,
    /// Rows that were stored in spans asked for ahead.
    pub(super) found: Vec<Arc<RowBatch>>,
    /// The next span has many rows.
    is_long: bool,
    /// Rows that were read together and not taken yet, from this one of the first batch on.
    surplus: VecDeque<Arc<RowBatch>>,
    taken: usize,
}

/// Rows of a batch.
pub(super) type Part = (Arc<RowBatch>, Range<usize>);

/// Rows of a span for which it is scanned by itself.
const LONG: usize = 256;

impl Spans {
    fn new(
        txn: Arc<Txn>,
        layout: Arc<TableLayout>,
        mut spans: Vec<KeySpan>,
        options: ScanOptions,
    ) -> Spans {
        if options.reverse {
            spans.reverse();
        }
        let (spans, ahead) = (VecDeque::from(spans), Lookahead::new(1));
        let (opened, found, is_long) = (VecDeque::new(), Vec::new(), false);
        let (surplus, taken) = (VecDeque::new(), 0);
        Spans { txn, layout, spans, opened, options, ahead, found, is_long, surplus, taken }
    }

    /// Rows of the spans that come next, at most so many, all of them in order; `None` if the next
    /// one has to be scanned.
    pub(super) fn together(&mut self, most: usize) -> SqlResult<Option<Vec<Part>>> {
        if self.surplus.is_empty() && !self.read_together(most)? {
            return Ok(None);
        }
        let (mut parts, mut left) = (Vec::new(), most);
        while left > 0
            && let Some(rows) = self.surplus.front()
        {
            let end = rows.len().min(self.taken + left);
            parts.push((rows.clone(), self.taken..end));
            left -= end - self.taken;
            self.taken = end;
            if end == rows.len() {
                self.surplus.pop_front();
                self.taken = 0;
            }
        }
        Ok(Some(parts))
    }

    /// Reads rows of the spans that come next, about `most`; `false`: the next one has to be
    /// scanned.
    fn read_together(&mut self, most: usize) -> SqlResult<bool> {
        let few = self.spans.len() < 2 || !self.opened.is_empty();
        if few || self.is_long || !self.txn.reads_spans(&self.options) {
            return Ok(false);
        }
        self.layout.used_by(&self.txn, self.options.mode)?;
        let spans = self.ahead.take(self.spans.len());
        let before = self.spans.len() - spans;
        let found = self.txn.read_spans(&mut self.spans, &self.options, (spans, most));
        let found = found.map_err(kv_error)?;
        // Something is left of the last one that has rows.
        let cut = self.spans.len() > before;
        self.is_long = cut && found.last().is_some_and(|rows| rows.len() >= most.min(LONG));
        self.surplus = found.into();
        Ok(true)
    }

    /// Whether there is none behind the one that is being scanned.
    pub(super) fn is_last(&self) -> bool {
        self.spans.is_empty() && self.opened.is_empty() && self.surplus.is_empty()
    }

    /// The scan of the next span.
    pub(super) fn open(&mut self) -> SqlResult<Option<TxnScan>> {
        match self.opened.pop_front() {
            Some(scan) => Ok(Some(scan)),
            None => self.open_next(),
        }
    }

    /// Opens the scan of the next span that has none.
    fn open_next(&mut self) -> SqlResult<Option<TxnScan>> {
        let waiting = &*self.spans.make_contiguous();
        let Some(span) = waiting.first().cloned() else { return Ok(None) };
        let ask = self.ahead.next(waiting.len(), self.txn.batch_max());
        if ask > 1 {
            let found = self.txn.scan_ahead(&waiting[..ask], &self.options).map_err(kv_error)?;
            self.found.extend(found);
        }
        self.spans.pop_front();
        self.is_long = false;
        self.layout.used_by(&self.txn, self.options.mode)?;
        self.txn.scan(span, self.options).map(Some).map_err(kv_error)
    }
}

/// Rows of a table.
pub struct TableScan {
    pub(super) spans: Spans,
    pub(super) open: Option<TxnScan>,
    wanted: Option<Vec<bool>>,
    /// Rows given back so far.
    pub rows: u64,
}

impl TableScan {
    /// Scans the spans one after the other. `wanted` says by ordinal which columns to decode.
    pub fn new(
        txn: Arc<Txn>,
        layout: Arc<TableLayout>,
        spans: Vec<KeySpan>,
        wanted: Option<Vec<bool>>,
        reverse: bool,
    ) -> TableScan {
        let options = layout.scan_options(ReadMode::Recorded, reverse);
        TableScan { spans: Spans::new(txn, layout, spans, options), open: None, wanted, rows: 0 }
    }

    /// The table.
    pub fn layout(&self) -> &Arc<TableLayout> {
        &self.spans.layout
    }

    /// How many spans were not begun yet.
    pub fn spans_left(&self) -> usize {
        self.spans.spans.len()
    }

    /// Sets which state the scan sees. Default: the transaction's, recorded.
    pub fn reading(mut self, mode: ReadMode) -> TableScan {
        self.spans.options.mode = mode;
        self
    }

    /// Says how many rows will be wanted, as far as that is known.
    pub fn expecting(mut self, rows: usize) -> TableScan {
        self.spans.options.first = rows;
        self
    }

    /// Opens the scans of all spans now: whatever this transaction writes from now on, they see the
    /// rows that are there at this moment.
    pub fn open_all(&mut self) -> SqlResult<()> {
        while let Some(scan) = self.spans.open_next()? {
            self.spans.opened.push_back(scan);
            self.spans.found.clear();
        }
        Ok(())
    }

    /// The next row with its key.
    pub fn next_row(&mut self) -> SqlResult<Option<(Bytes, Row)>> {
        let (mut key, mut row) = (Vec::new(), Row::new());
        Ok(self.next_into(&mut key, &mut row)?.then(|| (key.into(), row)))
    }

    /// As [`TableScan::next_row`], in place of what stands in `key` and `row`; `false` at the end.
    pub fn next_into(&mut self, row_key: &mut Vec<u8>, row: &mut Row) -> SqlResult<bool> {
        loop {
            let scan = match &mut self.open {
                Some(s) => s,
                None => match self.spans.open()? {
                    None => return Ok(false),
                    Some(scan) => {
                        self.spans.found.clear();
                        self.open.insert(scan)
                    }
                },
            };
            let Some((key, value)) = scan.next_row().map_err(kv_error)? else {
                self.open = None;
                continue;
            };
            let layout = &self.spans.layout;
            if !layout.decode_into(key, value, self.wanted.as_deref(), row)? {
                continue;
            }
            row_key.clear();
            row_key.extend_from_slice(key);
            // Where classes do not tell the rows, the scan does not jump by itself.
            if layout.has_children && !layout.jumps() && !self.spans.options.reverse {
                scan.seek(&family_end(row_key)).map_err(kv_error)?;
            }
            self.rows += 1;
            return Ok(true);
        }
    }
}

/// Rows of a table in the order of an index.
///
/// Entries are taken many at a time, and their rows asked for in one request. Of the newest state,
/// which the locks may move that are taken for one row after the other, they are only asked for
/// ahead.
pub struct IndexScan {
    pub(super) spans: Spans,
    pub(super) index: usize,
    pub(super) open: Option<TxnScan>,
    pub(super) way: EntryWay,
    /// Entries to take next.
    step: usize,
    /// Rows of the entries that were taken.
    ready: VecDeque<(Bytes, Row)>,
    pub(super) liveness: Liveness,
    ahead: Lookahead,
    /// Entries that come next, as they are stored, with the keys of their rows.
    entries: VecDeque<Entry>,
}

/// An entry of an index.
struct Entry {
    key: Bytes,
    value: Bytes,
    /// `None`: it is of another index.
    row: Option<Bytes>,
}

impl IndexScan {
    /// Scans the spans of the table's secondary index at position `index`.
    pub fn new(
        txn: Arc<Txn>,
        layout: Arc<TableLayout>,
        index: usize,
        spans: Vec<KeySpan>,
        reverse: bool,
    ) -> IndexScan {
        let options = layout.indexes[index].scan_options(ReadMode::Recorded, reverse);
        let (ahead, step) = (Lookahead::new(options.first), options.first);
        let way = EntryWay::new(&layout, &layout.indexes[index]);
        let (entries, ready) = (VecDeque::new(), VecDeque::new());
        let spans = Spans::new(txn, layout, spans, options);
        let liveness = Liveness::default();
        IndexScan { spans, index, open: None, way, step, ready, liveness, ahead, entries }
    }

    /// Decodes these columns and those of the index; the others are NULL.
    pub fn wanting(mut self, wanted: Option<Vec<bool>>) -> IndexScan {
        self.way.wanting(wanted, &self.spans.layout.indexes[self.index]);
        self
    }

    /// Makes rows of entries where these tell all columns that are wanted: nobody asks for the rows
    /// themselves, to lock or to change them.
    pub fn covering(mut self, liveness: Liveness) -> IndexScan {
        self.liveness = liveness;
        let layout = &self.spans.layout;
        self.way.covering((layout, &layout.indexes[self.index]));
        self
    }

    /// The table.
    pub fn layout(&self) -> &Arc<TableLayout> {
        &self.spans.layout
    }

    /// Sets which state the scan sees. Default: the transaction's, recorded.
    pub fn reading(mut self, mode: ReadMode) -> IndexScan {
        self.spans.options.mode = mode;
        self
    }

    /// Says how many rows will be wanted, as far as that is known.
    pub fn expecting(mut self, rows: usize) -> IndexScan {
        self.spans.options.first = rows;
        (self.ahead, self.step) = (Lookahead::new(rows), rows.max(1));
        self
    }

    /// The next row with its key.
    pub fn next_row(&mut self) -> SqlResult<Option<(Bytes, Row)>> {
        loop {
            if let Some(row) = self.ready.pop_front() {
                return Ok(Some(row));
            }
            if self.open.is_none() && !self.open_next()? {
                return Ok(None);
            }
            let more = match self.spans.options.mode {
                ReadMode::Latest => self.take_one()?,
                ReadMode::Recorded | ReadMode::Unrecorded => self.take_many()?,
            };
            if !more {
                self.open = None;
            }
        }
    }

    /// Opens the scan of the next span; `false` if there is none.
    fn open_next(&mut self) -> SqlResult<bool> {
        self.open = self.spans.open()?;
        let found = std::mem::take(&mut self.spans.found);
        self.entries.clear();
        if found.is_empty() {
            return Ok(self.open.is_some());
        }
        let (txn, layout, mode) = (&self.spans.txn, &self.spans.layout, self.spans.options.mode);
        if !self.way.covers() || self.liveness.ask(txn, layout, mode)?.is_none() {
            let found = found.iter().flat_map(|rows| stored_rows(rows));
            rows_ahead(txn, layout, &layout.indexes[self.index], found, mode)?;
        }
        Ok(self.open.is_some())
    }

    /// How many entries to take now, of which `most` are wanted: few first.
    pub(super) fn next_step(&mut self, most: usize) -> usize {
        let step = self.step.min(self.spans.txn.batch_max()).min(most).max(1);
        self.step = self.step.saturating_mul(4);
        step
    }

    /// Takes the next entries, and of those that do not tell all that is wanted asks for the rows;
    /// `false` at the end of the span.
    fn take_many(&mut self) -> SqlResult<bool> {
        let most = self.next_step(usize::MAX);
        let Some(scan) = &mut self.open else { return Ok(false) };
        let (txn, layout, mode) = (&self.spans.txn, &self.spans.layout, self.spans.options.mode);
        let table = (&**layout, &layout.indexes[self.index]);
        let Some(entries) = scan.next_batch(most).map_err(kv_error)? else { return Ok(false) };
        let covers = self.way.covers();
        if covers && entries.len() >= WORTH_ASKING {
            self.liveness.ask(txn, layout, mode)?;
        }
        // Rows stay in the order of their entries.
        let (mut out, mut keys) = (Vec::with_capacity(entries.len()), Vec::new());
        let mut of = Vec::new();
        let erased = self.liveness.known().filter(|_| covers);
        let stored = (0..entries.len()).map(|at| (entries.key(at), entries.value(at)));
        let row_keys = layout.row_keys(table.1, stored.clone())?;
        for (entry, key) in stored.zip(row_keys) {
            let Some(key) = key else { continue };
            if erased.is_some_and(|erased| !erased.may_hold(&key)) {
                out.push(self.way.told(table, entry)?.map(|row| (key, row)));
            } else {
                of.push((out.len(), entry.0));
                keys.push(key);
                out.push(None);
            }
        }
        if !keys.is_empty() {
            let values = txn.get_many(&keys, mode).map_err(kv_error)?;
            for ((key, value), (place, entry)) in keys.into_iter().zip(values).zip(of) {
                let Some(value) = value else { continue };
                let row = self.way.row(table, entry, (&key, &value))?;
                out[place] = row.map(|row| (key, row));
            }
        }
        self.ready.extend(out.into_iter().flatten());
        Ok(true)
    }

    /// Takes one entry and reads its row; `false` at the end of the span.
    fn take_one(&mut self) -> SqlResult<bool> {
        let Some(scan) = &mut self.open else { return Ok(false) };
        let Some((key, value)) = scan.next().map_err(kv_error)? else { return Ok(false) };
        let most = self.spans.txn.batch_max();
        let ask = self.ahead.next(scan.waiting() + 1, most);
        if ask > 1 {
            let next: (&[u8], &[u8]) = (&key, &value);
            let entries = std::iter::once(next).chain(scan.waiting_rows().take(ask - 1));
            ask_entries(&self.spans, self.index, entries, &mut self.entries)?;
        }
        let known = self.known(&key, &value);
        let (txn, layout) = (&self.spans.txn, &self.spans.layout);
        let index = &layout.indexes[self.index];
        let row_key = match known {
            Some(row_key) => row_key,
            None => layout.row_key_of_entry(index, &key, &value)?.map(Bytes::from),
        };
        if let Some(row_key) = row_key {
            let mode = self.spans.options.mode;
            self.ready.extend(row_of_live_entry(txn, layout, index, &key, row_key, mode)?);
        }
        Ok(true)
    }

    /// The key of the row behind an entry, if it was worked out before. Own writes may have hidden
    /// entries, or brought others.
    fn known(&mut self, key: &[u8], value: &[u8]) -> Option<Option<Bytes>> {
        let at = self.entries.iter().position(|e| e.key == key)?;
        self.entries.drain(..at);
        let entry = self.entries.pop_front()?;
        (entry.value == value).then_some(entry.row)
    }
}

/// Of fewer entries the rows are asked for at once, instead of asking first which ones are alive.
pub(super) const WORTH_ASKING: usize = 4;

/// Asks ahead for the rows behind entries, and remembers which those are.
fn ask_entries<'a>(
    spans: &Spans,
    index: usize,
    entries: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    out: &mut VecDeque<Entry>,
) -> SqlResult<()> {
    out.clear();
    for (key, value) in entries {
        let row = spans.layout.row_key_of_entry(&spans.layout.indexes[index], key, value)?;
        let (key, value) = (Bytes::copy_from_slice(key), Bytes::copy_from_slice(value));
        out.push_back(Entry { key, value, row: row.map(Bytes::from) });
    }
    let keys = out.iter().filter_map(|e| e.row.clone());
    spans.txn.get_ahead(keys, spans.options.mode).map_err(kv_error)
}

/// Keys and values of rows.
pub fn stored_rows(rows: &RowBatch) -> impl Iterator<Item = (&[u8], &[u8])> {
    rows.iter().map(|(key, value, _)| (key, value))
}

/// Asks ahead for the rows behind entries of an index.
pub fn rows_ahead<'a>(
    txn: &Txn,
    layout: &TableLayout,
    index: &IndexLayout,
    entries: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    mode: ReadMode,
) -> SqlResult<()> {
    let keys = layout.row_keys(index, entries)?;
    txn.get_ahead(keys.into_iter().flatten(), mode).map_err(kv_error)
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
    row_of_live_entry(txn, layout, index, key, row_key.into(), mode)
}

/// As [`live_row`], with the key of the row that the entry leads to.
fn row_of_live_entry(
    txn: &Txn,
    layout: &TableLayout,
    index: &IndexLayout,
    key: &[u8],
    row_key: Bytes,
    mode: ReadMode,
) -> SqlResult<Option<(Bytes, Row)>> {
    let Some((row_key, row)) = get_row_as(txn, layout, row_key, mode)? else { return Ok(None) };
    if index.entry_key(&row)?.as_deref() != Some(key) {
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

/// The row with this key, with these columns; the others are NULL, and nothing depends on them.
pub fn get_part_of_row(
    txn: &Txn,
    layout: &TableLayout,
    key: impl Into<Bytes>,
    mode: ReadMode,
    (wanted, part): (&[bool], &Bytes),
) -> SqlResult<Option<(Bytes, Row)>> {
    let key = key.into();
    let Some(value) = txn.get_part(&key, mode, part).map_err(kv_error)? else { return Ok(None) };
    Ok(layout.decode(&key, &value, Some(wanted))?.map(|row| (key, row)))
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
