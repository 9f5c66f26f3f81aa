//! From an entry of an index to its row, bytes to bytes.
//!
//! ```text
//!   entry   /lines_product/ 4711 / 7 / 3 / 1        columns of the index, then those of the key
//!   row     /customers/7/#/orders/3/#/lines/1       the same bytes, between other elements
//!   back    product of the row = 4711 ?             the columns of the key are the same for sure
//! ```
//! Nothing is decoded where both keys write their common columns alike. Short entries of unique
//! indexes name their row in their value, and take the way over values.
//!
//! An entry that tells all that is wanted of its row *covers* the query: the row is not read, if
//! the entry is known to be live ([`super::erased`]).

use braid_keys::column::{encode_column, is_composite};
use braid_types::{Datum, SqlResult, commit_time_is_pending};
use bytes::Bytes;

use super::layout::{IndexLayout, TableLayout};
use super::row_codec::decode_payload;
use super::row_value::{RowReader, split_pending};
use crate::Row;

/// Most columns of an entry whose places are kept.
const COLUMNS_MAX: usize = 16;

impl TableLayout {
    /// Whether the columns that are wanted can be told from an entry alone: its key gives them as
    /// they are, or its value holds them.
    pub fn is_covered_by(&self, index: &IndexLayout, wanted: &[bool]) -> bool {
        let told = |at: usize| {
            let column = &self.table.columns[at];
            let keys = index.layout.columns();
            let in_key = keys.iter().any(|key| key.ordinal == at) && !is_composite(&column.ty);
            in_key || self.is_in_value(index, column.id)
        };
        (0..wanted.len()).all(|at| !wanted[at] || told(at))
    }

    /// The key of the row that an index entry stands for; `None` if it is of another index.
    pub fn row_key_of_entry(
        &self,
        index: &IndexLayout,
        key: &[u8],
        value: &[u8],
    ) -> SqlResult<Option<Vec<u8>>> {
        let mut row_key = Vec::with_capacity(key.len() + 16);
        let is_own = self.append_row_key(index, (key, value), &mut row_key)?;
        Ok(is_own.then_some(row_key))
    }

    fn append_row_key(
        &self,
        index: &IndexLayout,
        (key, value): (&[u8], &[u8]),
        out: &mut Vec<u8>,
    ) -> SqlResult<bool> {
        if let Some(from) = &index.row_places
            && let Some(places) = places(index, key)?
        {
            self.rows.append_key_of_columns(from.iter().map(|at| places[*at]), out);
            return Ok(true);
        }
        let Some(row) = self.row_of_entry(index, key, value)? else { return Ok(false) };
        out.extend_from_slice(&self.row_key(&row)?);
        Ok(true)
    }

    /// The keys of the rows that entries stand for, all in one piece of memory; `None` for an entry
    /// of another index.
    pub(super) fn row_keys<'e>(
        &self,
        index: &IndexLayout,
        entries: impl Iterator<Item = (&'e [u8], &'e [u8])>,
    ) -> SqlResult<Vec<Option<Bytes>>> {
        let expected = entries.size_hint().0;
        let (mut keys, mut ends) =
            (Vec::with_capacity(expected * 32), Vec::with_capacity(expected));
        for entry in entries {
            let is_own = self.append_row_key(index, entry, &mut keys)?;
            ends.push(is_own.then_some(keys.len()));
        }
        let (keys, mut start) = (Bytes::from(keys), 0);
        let key = |end: Option<usize>| {
            let end = end?;
            let key = keys.slice(start..end);
            start = end;
            Some(key)
        };
        Ok(ends.into_iter().map(key).collect())
    }

    /// A row of which only the columns are set that an index entry holds.
    pub fn row_of_entry(
        &self,
        index: &IndexLayout,
        key: &[u8],
        value: &[u8],
    ) -> SqlResult<Option<Row>> {
        let mut row = vec![Datum::Null; self.table.columns.len()];
        if !index.layout.decode(key, &mut row, None)? {
            return Ok(None);
        }
        let value = split_pending(value)?.map_or(value, |(_, rest)| rest);
        let mut r = RowReader::new(value)?;
        while let Some((id, payload)) = r.next_column()? {
            if let Some(k) = self.rows.columns().iter().find(|k| k.column == id) {
                row[k.ordinal] = decode_payload(payload, &k.ty)?;
            }
        }
        Ok(Some(row))
    }

    /// The wanted columns of a row, of an entry that [covers](TableLayout::is_covered_by) them.
    fn row_from_entry(
        &self,
        index: &IndexLayout,
        (key, value): (&[u8], &[u8]),
        wanted: &[bool],
    ) -> SqlResult<Option<Row>> {
        let mut row = vec![Datum::Null; self.table.columns.len()];
        if !index.layout.decode(key, &mut row, Some(wanted))? {
            return Ok(None);
        }
        let value = match split_pending(value)? {
            None => value,
            Some((pending, rest)) => {
                let ids = self.table.columns.iter().zip(wanted);
                if ids.into_iter().any(|(column, wanted)| *wanted && pending.contains(&column.id)) {
                    return Err(commit_time_is_pending());
                }
                rest
            }
        };
        let mut reader = RowReader::new(value)?;
        while let Some((id, payload)) = reader.next_column()? {
            let at = self.table.columns.iter().position(|column| column.id == id);
            if let Some(at) = at.filter(|at| wanted[*at]) {
                row[at] = decode_payload(payload, &self.table.columns[at].ty)?;
            }
        }
        Ok(Some(row))
    }
}

/// Where the columns of an entry's key lie.
type Places<'a> = [&'a [u8]; COLUMNS_MAX];

/// How entries of one index lead to rows of their table.
pub(super) struct EntryWay {
    /// Columns of an entry's key, that are none of a row's key.
    own: Vec<usize>,
    /// By ordinal, which columns of a row are decoded.
    wanted: Option<Vec<bool>>,
    /// Those that an entry tells, if these are all that are wanted.
    covered: Option<Vec<bool>>,
    /// An encoded column.
    scratch: Vec<u8>,
}

impl EntryWay {
    pub(super) fn new(table: &TableLayout, index: &IndexLayout) -> EntryWay {
        let (entry, row) = (index.layout.columns(), table.rows.columns());
        let is_own = |at: &usize| row.iter().all(|key| key.column != entry[*at].column);
        let own = (0..entry.len()).filter(is_own).collect();
        EntryWay { own, wanted: None, covered: None, scratch: Vec::new() }
    }

    /// Decodes these columns only, and those of the index.
    pub(super) fn wanting(&mut self, wanted: Option<Vec<bool>>, index: &IndexLayout) {
        self.wanted = wanted;
        if let Some(wanted) = &mut self.wanted {
            index.layout.columns().iter().for_each(|column| wanted[column.ordinal] = true);
            let predicate = index.predicate.iter().flat_map(|predicate| predicate.inputs());
            predicate.for_each(|at| wanted[*at] = true);
        }
    }

    /// Lets rows be made of entries, where these tell all that is wanted.
    pub(super) fn covering(&mut self, (table, index): (&TableLayout, &IndexLayout)) {
        let wanted = self.wanted.as_ref();
        self.covered = wanted.filter(|wanted| table.is_covered_by(index, wanted)).cloned();
    }

    /// Whether rows may be made of entries.
    pub(super) fn covers(&self) -> bool {
        self.covered.is_some()
    }

    /// The row that a live entry tells; `None` if entries do not tell all that is wanted.
    pub(super) fn told(
        &self,
        (table, index): (&TableLayout, &IndexLayout),
        entry: (&[u8], &[u8]),
    ) -> SqlResult<Option<Row>> {
        let Some(covered) = &self.covered else { return Ok(None) };
        table.row_from_entry(index, entry, covered)
    }

    /// The row, if the entry is one that it has.
    pub(super) fn row(
        &mut self,
        (table, index): (&TableLayout, &IndexLayout),
        entry: &[u8],
        (key, value): (&[u8], &[u8]),
    ) -> SqlResult<Option<Row>> {
        let Some(row) = table.decode(key, value, self.wanted.as_deref())? else { return Ok(None) };
        if !index.takes(&row)? {
            return Ok(None);
        }
        let known = index.row_places.as_ref().map(|_| places(index, entry)).transpose()?;
        let Some(places) = known.flatten() else {
            return Ok((index.key_of(&row)? == entry).then_some(row));
        };
        for at in &self.own {
            let column = &index.layout.columns()[*at];
            self.scratch.clear();
            encode_column(&mut self.scratch, &row[column.ordinal], column.dir)?;
            if self.scratch != places[*at] {
                return Ok(None);
            }
        }
        Ok(Some(row))
    }
}

/// The columns of an entry's key, if it holds all of them, and they are not very many.
fn places<'a>(index: &IndexLayout, key: &'a [u8]) -> SqlResult<Option<Places<'a>>> {
    if index.layout.columns().len() > COLUMNS_MAX {
        return Ok(None);
    }
    let mut places: Places<'a> = [&[]; COLUMNS_MAX];
    let whole = index.layout.split(key, |at, bytes| places[at] = bytes)?;
    Ok(whole.then_some(places))
}
