//! Entries of an index for one row after the other, made in memory that is used again: where very
//! many are made, asking for memory is a part of the work that can be seen.

use braid_types::SqlResult;

use super::TableLayout;
use super::layout::IndexLayout;
use super::row_value::RowWriter;
use crate::Row;

/// Makes the entries of one index.
pub struct EntryMaker<'a> {
    layout: &'a TableLayout,
    index: &'a IndexLayout,
    /// Ids and ordinals of the columns in the values.
    columns: Vec<(u32, usize)>,
    writer: RowWriter,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl<'a> EntryMaker<'a> {
    /// Of an index of the table.
    pub fn new(layout: &'a TableLayout, index: &'a IndexLayout) -> EntryMaker<'a> {
        let columns = layout.value_columns(index).collect();
        let writer = RowWriter::new(layout.highest());
        EntryMaker { layout, index, columns, writer, key: Vec::new(), value: Vec::new() }
    }

    /// Key and value of the entry that a row has; `None` if a partial index leaves it out.
    /// Expressions of the index are computed in the row.
    ///
    /// # Errors
    /// Those of the expressions; 54000 if the key is too long.
    pub fn entry(&mut self, row: &mut Row) -> SqlResult<Option<(&[u8], &[u8])>> {
        self.layout.compute(self.index, row)?;
        if !self.index.takes(row)? {
            return Ok(None);
        }
        self.key = self.index.key_in(std::mem::take(&mut self.key), row)?;
        self.writer.again();
        for (id, ordinal) in &self.columns {
            self.writer.column(*id, &row[*ordinal]);
        }
        self.value.clear();
        self.writer.write_to(&mut self.value);
        Ok(Some((&self.key, &self.value)))
    }
}
