//! Scans in columns: what lies in their spans goes to a decoder, many short spans at a time.
//!
//! ```text
//!   long span      rows of the store ─────────────────────────────────► decoder
//!   short spans    7 .. | 9 .. .. | 12 .. | 30 ..   ─ put together ───► decoder
//!   index          entries of any number of spans ─ their rows, asked
//!                                                   for at once ──────► decoder
//!   covering       entries, less those whose rows are erased ─────────► decoder
//! ```
//! A look-up finds few rows, and a decoder and its filter take about as long to begin as for a
//! hundred rows.

use braid_catalog::kv_error;
use braid_kv::{ReadMode, Rows};
use braid_types::SqlResult;
use bytes::Bytes;

use super::columns::{Column, Form, RowDecoder, StoredRows};
use super::erased::Erased;
use super::scan::{IndexScan, Part, TableScan, WORTH_ASKING, stored_rows};

/// So many rows of a span are decoded where they lie.
const MANY: usize = 128;
/// Rows, and bytes, that are put together at most.
const TOGETHER: usize = 1_024;
const TOGETHER_BYTES: usize = 1 << 20;

/// Keys and values of several spans, put together.
#[derive(Default)]
struct Gathered {
    bytes: Vec<u8>,
    /// Where each key and each value ends.
    ends: Vec<(usize, usize)>,
}

impl Gathered {
    fn push(&mut self, key: &[u8], value: &[u8]) {
        self.bytes.extend_from_slice(key);
        let key_end = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.ends.push((key_end, self.bytes.len()));
    }

    fn extend(&mut self, rows: &Rows<'_>) {
        self.ends.reserve(rows.len());
        (0..rows.len()).for_each(|at| self.push(rows.key(at), rows.value(at)));
    }

    fn extend_stored(&mut self, parts: &[Part]) {
        for (rows, wanted) in parts {
            let stored = stored_rows(rows).skip(wanted.start).take(wanted.len());
            stored.for_each(|(key, value)| self.push(key, value));
        }
    }

    fn is_full(&self, most: usize) -> bool {
        self.count() >= most.min(TOGETHER) || self.bytes.len() >= TOGETHER_BYTES
    }

    /// Those that are wanted, by their number.
    fn part(self, wanted: impl Fn(usize) -> bool) -> Gathered {
        if (0..self.count()).all(&wanted) {
            return self;
        }
        let mut part = Gathered::default();
        let wanted = (0..self.count()).filter(|at| wanted(*at));
        wanted.for_each(|at| part.push(self.key(at), self.value(at)));
        part
    }

    fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], &[u8])> {
        (0..self.count()).map(|at| (self.key(at), self.value(at)))
    }

    fn start(&self, at: usize) -> usize {
        at.checked_sub(1).map_or(0, |before| self.ends[before].1)
    }
}

impl StoredRows for Gathered {
    fn count(&self) -> usize {
        self.ends.len()
    }

    #[inline]
    fn key(&self, i: usize) -> &[u8] {
        &self.bytes[self.start(i)..self.ends[i].0]
    }

    #[inline]
    fn value(&self, i: usize) -> &[u8] {
        &self.bytes[self.ends[i].0..self.ends[i].1]
    }
}

impl TableScan {
    /// What [`TableScan::read_columns`] decodes these columns with, and those of a filter.
    pub fn decoder(&self, out: &[(usize, Form)], probe: &[(usize, Form)]) -> RowDecoder {
        RowDecoder::new(self.layout().clone(), None, out, probe)
    }

    /// Reads the next rows, `most` or fewer, into a decoder; `false` at the end. `filter` is as
    /// for [`RowDecoder::push`].
    ///
    /// Rows that the filter refuses count as read.
    pub fn read_columns(
        &mut self,
        decoder: &mut RowDecoder,
        most: usize,
        filter: impl FnOnce(Vec<Column>, usize) -> SqlResult<Option<Vec<u32>>>,
    ) -> SqlResult<bool> {
        let mut together = Gathered::default();
        self.spans.options.blocks = decoder.reads_parts();
        while !together.is_full(most) {
            if self.open.is_none()
                && let Some(found) = self.spans.together(most - together.count())?
            {
                together.extend_stored(&found);
                self.rows += found.iter().map(|(_, rows)| rows.len() as u64).sum::<u64>();
                continue;
            }
            let scan = match &mut self.open {
                Some(scan) => scan,
                None => match self.spans.open()? {
                    None => break,
                    Some(scan) => {
                        self.spans.found.clear();
                        self.open.insert(scan)
                    }
                },
            };
            let Some(rows) = scan.next_batch(most - together.count()).map_err(kv_error)? else {
                self.open = None;
                continue;
            };
            self.rows += rows.len() as u64;
            // Few rows are decoded where they lie, too, if no others can come to them.
            let is_all = rows.are_last() && self.spans.is_last();
            let is_all = is_all || rows.len() >= MANY.min(most);
            if together.count() == 0 && is_all {
                match rows.has_parts() {
                    true => decoder.push_pieces(&rows, filter)?,
                    false => decoder.push(&rows, filter)?,
                }
                return Ok(true);
            }
            together.extend(&rows);
        }
        if together.count() == 0 {
            return Ok(false);
        }
        decoder.push(&together, filter)?;
        Ok(true)
    }
}

impl IndexScan {
    /// Whether columns are made of entries alone. Entries of unique indexes do not all have the
    /// same columns.
    fn reads_entries(&self) -> bool {
        self.way.covers() && !self.layout().indexes[self.index].index.unique
    }

    /// Whether [`IndexScan::read_columns`] gives what is wanted.
    pub fn gives_columns(&self) -> bool {
        self.reads_entries() || !self.way.covers()
    }

    /// As [`TableScan::decoder`].
    pub fn decoder(&self, out: &[(usize, Form)], probe: &[(usize, Form)]) -> RowDecoder {
        let index = self.reads_entries().then_some(self.index);
        RowDecoder::new(self.layout().clone(), index, out, probe)
    }

    /// Reads the next entries, or the rows behind them, `most` or fewer, into a decoder; `false`
    /// at the end. `filter` is as for [`RowDecoder::push`].
    ///
    /// Of a state that locks do not move. Entries that lie in no erased span are not compared with
    /// their rows; where rows are read, that is looked up without a trace, since what was read of
    /// them is checked when the transaction commits.
    pub fn read_columns(
        &mut self,
        decoder: &mut RowDecoder,
        most: usize,
        filter: impl FnOnce(Vec<Column>, usize) -> SqlResult<Option<Vec<u32>>>,
    ) -> SqlResult<bool> {
        if self.reads_entries() {
            return self.read_entries(decoder, most, filter);
        }
        let Some(rows) = self.rows_behind(most)? else { return Ok(false) };
        decoder.push(&rows, filter)?;
        Ok(true)
    }

    /// Opens the scan of the next span; `false` if there is none.
    fn open_entries(&mut self) -> SqlResult<bool> {
        if self.open.is_none() {
            self.open = self.spans.open()?;
            self.spans.found.clear();
        }
        Ok(self.open.is_some())
    }

    /// The next entries, about `most` of them, of as many spans as have few.
    fn next_entries(&mut self, most: usize) -> SqlResult<Gathered> {
        let mut entries = Gathered::default();
        while !entries.is_full(most) {
            if !self.gather_short(&mut entries, most)? {
                if !self.open_entries()? {
                    break;
                }
                let Some(scan) = &mut self.open else { break };
                match scan.next_batch(most - entries.count()).map_err(kv_error)? {
                    Some(rows) => entries.extend(&rows),
                    None => self.open = None,
                }
            }
        }
        Ok(entries)
    }

    /// Adds entries of short spans, if such come next.
    fn gather_short(&mut self, entries: &mut Gathered, most: usize) -> SqlResult<bool> {
        if self.open.is_some() {
            return Ok(false);
        }
        let Some(found) = self.spans.together(most - entries.count())? else { return Ok(false) };
        entries.extend_stored(&found);
        Ok(true)
    }

    fn read_entries(
        &mut self,
        decoder: &mut RowDecoder,
        most: usize,
        filter: impl FnOnce(Vec<Column>, usize) -> SqlResult<Option<Vec<u32>>>,
    ) -> SqlResult<bool> {
        let most = self.next_step(most);
        let mut together = Gathered::default();
        while !together.is_full(most) {
            if self.gather_short(&mut together, most)? {
                continue;
            }
            if !self.open_entries()? {
                break;
            }
            let Some(scan) = &mut self.open else { break };
            let Some(entries) = scan.next_batch(most - together.count()).map_err(kv_error)? else {
                self.open = None;
                continue;
            };
            if together.count() == 0 && entries.len() >= MANY.min(most).max(WORTH_ASKING) {
                let (txn, mode) = (&self.spans.txn, self.spans.options.mode);
                let erased = self.liveness.ask(txn, &self.spans.layout, mode)?;
                if erased.is_some_and(Erased::is_empty) {
                    decoder.push(&entries, filter)?;
                    return Ok(true);
                }
            }
            together.extend(&entries);
        }
        if together.count() == 0 {
            return Ok(false);
        }
        let live = self.live(together)?;
        decoder.push(&live, filter)?;
        Ok(true)
    }

    /// Entries less those that are dead.
    fn live(&mut self, entries: Gathered) -> SqlResult<Gathered> {
        let (txn, layout, mode) = (&self.spans.txn, &self.spans.layout, self.spans.options.mode);
        let table = (&**layout, &layout.indexes[self.index]);
        if entries.count() >= WORTH_ASKING {
            self.liveness.ask(txn, layout, mode)?;
        }
        let erased = self.liveness.known();
        if erased.is_some_and(Erased::is_empty) {
            return Ok(entries);
        }
        let mut live = vec![true; entries.count()];
        let (mut keys, mut of) = (Vec::new(), Vec::new());
        let row_keys = table.0.row_keys(table.1, entries.iter())?;
        for (at, (live, key)) in live.iter_mut().zip(row_keys).enumerate() {
            match key {
                None => *live = false,
                Some(key) if erased.is_none_or(|erased| erased.may_hold(&key)) => {
                    keys.push(key);
                    of.push(at);
                }
                Some(_) => {}
            }
        }
        let values = txn.get_many(&keys, mode).map_err(kv_error)?;
        for ((key, value), at) in keys.iter().zip(values).zip(of) {
            live[at] = match value {
                None => false,
                Some(value) => self.way.row(table, entries.key(at), (key, &value))?.is_some(),
            };
        }
        Ok(entries.part(|at| live[at]))
    }

    /// Takes the next entries, of as many spans as have few, and reads their rows as they are
    /// stored; `None` at the end.
    fn rows_behind(&mut self, most: usize) -> SqlResult<Option<Vec<(Bytes, Bytes)>>> {
        let most = self.next_step(most);
        let entries = self.next_entries(most)?;
        let layout = &self.spans.layout;
        let table = (&**layout, &layout.indexes[self.index]);
        if entries.count() == 0 {
            return Ok(None);
        }
        let keys = table.0.row_keys(table.1, entries.iter())?;
        let entries = entries.part(|at| keys[at].is_some());
        let keys: Vec<Bytes> = keys.into_iter().flatten().collect();
        let (txn, layout, mode) = (&self.spans.txn, &self.spans.layout, self.spans.options.mode);
        let table = (&**layout, &layout.indexes[self.index]);
        if keys.len() >= WORTH_ASKING {
            self.liveness.ask(txn, layout, ReadMode::Unrecorded)?;
        }
        let values = txn.get_many(&keys, mode).map_err(kv_error)?;
        // What it erases itself while the rows are fetched was not told.
        let erased = self.liveness.known().filter(|_| txn.is_clean());
        let mut out = Vec::with_capacity(keys.len());
        for (at, (key, value)) in keys.into_iter().zip(values).enumerate() {
            let Some(value) = value else { continue };
            let alive = erased.is_some_and(|erased| !erased.may_hold(&key));
            if alive || self.way.row(table, entries.key(at), (&key, &value))?.is_some() {
                out.push((key, value));
            }
        }
        Ok(Some(out))
    }
}
