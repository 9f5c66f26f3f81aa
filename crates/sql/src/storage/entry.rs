//! From an entry of an index to its row, bytes to bytes.
//!
//! ```text
//!   entry   /lines_product/ 4711 / 7 / 3 / 1        columns of the index, then those of the key
//!   row     /customers/7/#/orders/3/#/lines/1       the same bytes, between other elements
//!   back    product of the row = 4711 ?             the columns of the key are the same for sure
//! ```
//! Nothing is decoded where both keys write their common columns alike. Short entries of unique
//! indexes name their row in their value, and take the way over values.

use braid_keys::column::encode_column;
use braid_types::SqlResult;
use bytes::Bytes;

use super::layout::{IndexLayout, TableLayout};
use crate::general_query::Row;

/// Most columns of an entry whose places are kept.
const COLUMNS_MAX: usize = 16;

/// Where the columns of an entry's key lie.
type Places<'a> = [&'a [u8]; COLUMNS_MAX];

/// How entries of one index lead to rows of their table.
pub(super) struct EntryWay {
    /// For each column of a row's key, which column of an entry's key holds the same bytes; `None`
    /// if some do not.
    key: Option<Vec<usize>>,
    /// Columns of an entry's key, that are none of a row's key.
    own: Vec<usize>,
    /// By ordinal, which columns of a row are decoded.
    wanted: Option<Vec<bool>>,
    /// An encoded column.
    scratch: Vec<u8>,
}

impl EntryWay {
    pub(super) fn new(table: &TableLayout, index: &IndexLayout) -> EntryWay {
        let (entry, row) = (index.layout.columns(), table.rows.columns());
        let place = |key: &super::KeyColumn| {
            entry.iter().position(|own| own.column == key.column && own.dir == key.dir)
        };
        let fits = entry.len() <= COLUMNS_MAX;
        let key = fits.then(|| row.iter().map(place).collect::<Option<Vec<usize>>>()).flatten();
        let is_own = |at: &usize| row.iter().all(|key| key.column != entry[*at].column);
        let own = (0..entry.len()).filter(is_own).collect();
        EntryWay { key, own, wanted: None, scratch: Vec::new() }
    }

    /// Decodes these columns only, and those of the index.
    pub(super) fn wanting(&mut self, wanted: Option<Vec<bool>>, index: &IndexLayout) {
        self.wanted = wanted;
        if let Some(wanted) = &mut self.wanted {
            index.layout.columns().iter().for_each(|column| wanted[column.ordinal] = true);
        }
    }

    /// The key of the row that an entry stands for; `None` if the entry is of another index.
    pub(super) fn row_key(
        &self,
        (table, index): (&TableLayout, &IndexLayout),
        key: &[u8],
        value: &[u8],
    ) -> SqlResult<Option<Bytes>> {
        if let Some(from) = &self.key
            && let Some(places) = places(index, key)?
        {
            let columns = from.iter().map(|at| places[*at]);
            return Ok(Some(table.rows.key_of_columns(columns).into()));
        }
        Ok(table.row_key_of_entry(index, key, value)?.map(Bytes::from))
    }

    /// The row, if the entry is one that it has.
    pub(super) fn row(
        &mut self,
        (table, index): (&TableLayout, &IndexLayout),
        entry: &[u8],
        (key, value): (&[u8], &[u8]),
    ) -> SqlResult<Option<Row>> {
        let Some(row) = table.decode(key, value, self.wanted.as_deref())? else { return Ok(None) };
        let known = self.key.as_ref().map(|_| places(index, entry)).transpose()?;
        let Some(places) = known.flatten() else {
            return Ok((index.entry_key(&row)? == entry).then_some(row));
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

/// The columns of an entry's key, if it holds all of them.
fn places<'a>(index: &IndexLayout, key: &'a [u8]) -> SqlResult<Option<Places<'a>>> {
    let mut places: Places<'a> = [&[]; COLUMNS_MAX];
    let whole = index.layout.split(key, |at, bytes| places[at] = bytes)?;
    Ok(whole.then_some(places))
}
