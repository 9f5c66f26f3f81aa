//! Rows as they stood in the input of a COPY, before anybody looks at their values.
//!
//! ```text
//!   bytes   1Ada2Grace3
//!   fields  0..1 1..4 │ 4..5 5..10 │ 10..11 NULL
//!   rows    line 1      line 2       line 3
//! ```
//! Millions of them come by: they lie one behind the other, and their room is used again.

use std::ops::Range;

/// See the [module documentation](self).
#[derive(Debug, Default)]
pub(crate) struct RawRows {
    bytes: Vec<u8>,
    /// `None` is NULL.
    fields: Vec<Option<Range<usize>>>,
    rows: Vec<End>,
}

/// Where a row ends.
#[derive(Clone, Copy, Debug, Default)]
struct End {
    line: u64,
    fields: usize,
    bytes: usize,
}

/// One of them.
#[derive(Clone, Copy)]
pub(crate) struct RawRow<'a> {
    /// 1-based line on which it begins; for binary data its 1-based number.
    pub(crate) line: u64,
    bytes: &'a [u8],
    fields: &'a [Option<Range<usize>>],
}

/// Room that is kept for the next rows, in bytes.
const KEPT: usize = 1 << 20;

impl RawRows {
    /// Adds a field to the row that is being read.
    pub(super) fn push(&mut self, field: Option<&[u8]>) {
        let start = self.bytes.len();
        self.fields.push(field.map(|bytes| {
            self.bytes.extend_from_slice(bytes);
            start..self.bytes.len()
        }));
    }

    /// Fields of the row that is being read.
    pub(super) fn open(&self) -> RawRow<'_> {
        let End { line, fields, .. } = self.last();
        RawRow { line, bytes: &self.bytes, fields: &self.fields[fields..] }
    }

    fn last(&self) -> End {
        self.rows.last().copied().unwrap_or_default()
    }

    /// The row that is being read is whole.
    pub(super) fn end_row(&mut self, line: u64) {
        self.rows.push(End { line, fields: self.fields.len(), bytes: self.bytes.len() });
    }

    /// The row that is being read is none.
    pub(super) fn drop_open(&mut self) {
        let End { fields, bytes, .. } = self.last();
        self.fields.truncate(fields);
        self.bytes.truncate(bytes);
    }

    /// All whole rows, in their order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = RawRow<'_>> {
        let mut start = 0;
        self.rows.iter().map(move |end| {
            let fields = &self.fields[std::mem::replace(&mut start, end.fields)..end.fields];
            RawRow { line: end.line, bytes: &self.bytes, fields }
        })
    }

    /// Forgets them.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(KEPT);
        self.fields.clear();
        self.rows.clear();
    }
}

impl<'a> RawRow<'a> {
    /// Its fields; `None` is NULL.
    pub(crate) fn fields(self) -> impl ExactSizeIterator<Item = Option<&'a [u8]>> {
        self.fields.iter().map(move |field| field.clone().map(|at| &self.bytes[at]))
    }

    /// Bytes of its values.
    pub(crate) fn size(self) -> usize {
        self.fields.iter().flatten().map(Range::len).sum()
    }
}
