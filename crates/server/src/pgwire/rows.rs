//! Values to bytes and back, and the description of result columns.

use braid_sql::answer::{Answer, Cell};
use braid_sql::{ColumnInfo, Row};
use braid_types::{Datum, SqlError, SqlState, SqlType, Style, checked_text};
use bytes::{BufMut, BytesMut};

use super::errors::Fatal;
use super::wire::Wire;

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Text,
    Binary,
}

/// Format codes of a message: none = all text, one = that for all, else one per column.
pub(crate) fn formats(codes: &[i16]) -> Result<Vec<Format>, SqlError> {
    codes
        .iter()
        .map(|code| match code {
            0 => Ok(Format::Text),
            1 => Ok(Format::Binary),
            other => Err(SqlError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("unsupported format code: {other}"),
            )),
        })
        .collect()
}

/// The format of column or parameter `i`.
pub(crate) fn format_of(formats: &[Format], i: usize) -> Format {
    match formats {
        [] => Format::Text,
        [one] => *one,
        many => many.get(i).copied().unwrap_or(Format::Text),
    }
}

/// Sends RowDescription.
pub(crate) fn describe(
    wire: &mut Wire,
    columns: &[ColumnInfo],
    formats: &[Format],
) -> Result<(), Fatal> {
    wire.send_raw(b'T', |out| {
        out.put_i16(columns.len() as i16);
        for (i, column) in columns.iter().enumerate() {
            out.put_slice(column.name.as_bytes());
            out.put_u8(0);
            out.put_u32(column.table_oid);
            out.put_i16(column.attnum);
            out.put_u32(column.ty.oid());
            out.put_i16(column.ty.type_len());
            out.put_i32(column.modifier);
            out.put_i16(format_of(formats, i) as i16);
        }
        Ok(())
    })
}

/// Writes rows of one result.
pub(crate) struct RowWriter<'a> {
    pub(crate) columns: &'a [ColumnInfo],
    pub(crate) formats: &'a [Format],
    /// How values look in text form.
    pub(crate) style: Style,
    /// Binary forms are made here, then copied.
    pub(crate) scratch: Vec<u8>,
}

impl RowWriter<'_> {
    /// Sends one DataRow.
    pub(crate) fn send(&mut self, wire: &mut Wire, row: &Row) -> Result<(), Fatal> {
        wire.send_raw(b'D', |out| {
            out.put_i16(row.len() as i16);
            for (i, datum) in row.iter().enumerate() {
                self.put(i, datum, out);
            }
            Ok(())
        })
    }

    /// Sends a DataRow for each row of a batch.
    pub(crate) fn send_all(&mut self, wire: &mut Wire, batch: &Answer) -> Result<(), Fatal> {
        let columns = match batch {
            Answer::Rows(rows) => return rows.iter().try_for_each(|row| self.send(wire, row)),
            Answer::Columns(columns) => columns,
        };
        let readers = columns.readers();
        for row in 0..columns.rows() {
            wire.send_raw(b'D', |out| {
                out.put_i16(readers.len() as i16);
                for (i, reader) in readers.iter().enumerate() {
                    match reader.cell(row) {
                        // Both forms of a text are its bytes.
                        Cell::Text(text) => put_text(text, out),
                        Cell::Value(value) => self.put(i, &value, out),
                    }
                }
                Ok::<(), Fatal>(())
            })?;
        }
        Ok(())
    }

    fn put(&mut self, i: usize, datum: &Datum, out: &mut BytesMut) {
        let binary = format_of(self.formats, i) == Format::Binary;
        match (datum, binary, self.columns.get(i)) {
            (Datum::Null, ..) => out.put_i32(-1),
            (_, true, Some(column)) => {
                self.scratch.clear();
                datum.to_binary(&column.ty, &mut self.scratch);
                out.put_i32(self.scratch.len() as i32);
                out.put_slice(&self.scratch);
            }
            // Already text: no copy in between.
            (Datum::Text(text), ..) => put_text(text, out),
            (Datum::Int2(v), ..) => put_text(itoa::Buffer::new().format(*v), out),
            (Datum::Int4(v), ..) => put_text(itoa::Buffer::new().format(*v), out),
            (Datum::Int8(v), ..) => put_text(itoa::Buffer::new().format(*v), out),
            _ => put_text(&datum.to_text(self.style).unwrap_or_default(), out),
        }
    }
}

fn put_text(text: &str, out: &mut BytesMut) {
    out.put_i32(text.len() as i32);
    out.put_slice(text.as_bytes());
}

/// Decodes one parameter value; `None` is NULL.
pub(crate) fn decode(
    value: Option<&[u8]>,
    ty: &SqlType,
    format: Format,
    style: &Style,
) -> Result<Datum, SqlError> {
    let Some(bytes) = value else { return Ok(Datum::Null) };
    match format {
        Format::Binary => Datum::from_binary(bytes, ty),
        Format::Text => Datum::parse(checked_text(bytes)?, ty, style),
    }
}
