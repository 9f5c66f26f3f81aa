//! Values to bytes and back, and the description of result columns.

use braid_rows::Row;
use braid_sql::answer::{Answer, Cell};
use braid_sql::object_names::{ObjectNames, names_objects};
use braid_sql::{ColumnInfo, Session};
use braid_types::encodings::{Encoding, recode_binary};
use braid_types::{Datum, SqlError, SqlState, SqlType, Style, checked_text};
use bytes::{BufMut, BytesMut};

use super::errors::Failure;
use super::message::FormatCode;
use super::wire::Wire;

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Text,
    Binary,
}

/// Format codes of a message: none = all text, one = that for all, else one per column.
pub(crate) fn formats(codes: &[FormatCode]) -> Result<Vec<Format>, SqlError> {
    if *codes == [[0, 0]] {
        return Ok(Vec::new());
    }
    codes
        .iter()
        .map(|code| match i16::from_be_bytes(*code) {
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
) -> Result<(), Failure> {
    let encoding = wire.encoding;
    wire.send_raw(b'T', |out| {
        out.put_i16(columns.len() as i16);
        for (i, column) in columns.iter().enumerate() {
            match encoding {
                None => out.put_slice(column.name.as_bytes()),
                Some(encoding) => {
                    let mut name = Vec::new();
                    encoding.encode(&column.name, &mut name)?;
                    out.put_slice(&name);
                }
            }
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
    columns: &'a [ColumnInfo],
    formats: &'a [Format],
    /// How values look in text form.
    style: Style,
    /// What oids are shown as in text form, if a column has such.
    names: Option<ObjectNames>,
    /// Binary forms are made here, then copied.
    scratch: Vec<u8>,
}

impl<'a> RowWriter<'a> {
    /// A writer for a session's rows as its settings are now.
    pub(crate) fn new(
        session: &Session,
        columns: &'a [ColumnInfo],
        formats: &'a [Format],
    ) -> RowWriter<'a> {
        let style = session.state().style();
        let is_named = columns.iter().any(|c| names_objects(&c.ty));
        let names = is_named.then(|| session.object_names());
        RowWriter { columns, formats, style, names, scratch: Vec::new() }
    }

    /// Sends one DataRow.
    pub(crate) fn send(&mut self, wire: &mut Wire, row: &Row) -> Result<(), Failure> {
        if let Some(encoding) = wire.encoding {
            return self.send_recoded(wire, encoding, row.len(), |i| Cell::Value(row[i].clone()));
        }
        wire.send_raw(b'D', |out| {
            out.put_i16(row.len() as i16);
            for (i, datum) in row.iter().enumerate() {
                self.put(i, datum, out)?;
            }
            Ok(())
        })
    }

    /// Sends a DataRow for each row of a batch.
    pub(crate) fn send_all(&mut self, wire: &mut Wire, batch: &Answer) -> Result<(), Failure> {
        let columns = match batch {
            Answer::Rows(rows) => return rows.iter().try_for_each(|row| self.send(wire, row)),
            Answer::Columns(columns) => columns,
        };
        let readers = columns.readers();
        for row in 0..columns.rows() {
            if let Some(encoding) = wire.encoding {
                let cell = |i: usize| readers[i].cell(row);
                self.send_recoded(wire, encoding, readers.len(), cell)?;
                continue;
            }
            wire.send_raw(b'D', |out| {
                out.put_i16(readers.len() as i16);
                for (i, reader) in readers.iter().enumerate() {
                    match reader.cell(row) {
                        // Both forms of a text are its bytes.
                        Cell::Text(text) => put_text(text, out),
                        Cell::Value(value) => self.put(i, &value, out)?,
                    }
                }
                Ok::<(), Failure>(())
            })?;
        }
        Ok(())
    }

    /// Sends one DataRow with its texts in the client's encoding.
    fn send_recoded<'c>(
        &mut self,
        wire: &mut Wire,
        encoding: Encoding,
        cells: usize,
        cell: impl Fn(usize) -> Cell<'c>,
    ) -> Result<(), Failure> {
        wire.send_raw(b'D', |out| {
            out.put_i16(cells as i16);
            for i in 0..cells {
                let at = out.len();
                match cell(i) {
                    Cell::Text(text) => put_text(text, out),
                    Cell::Value(value) => self.put(i, &value, out)?,
                }
                let own = &out[at + 4..];
                if own.is_ascii() {
                    continue;
                }
                let mut recoded = Vec::with_capacity(own.len());
                let mut encode =
                    |text: &[u8], out: &mut Vec<u8>| encoding.encode(checked_text(text)?, out);
                match (format_of(self.formats, i), self.columns.get(i)) {
                    (Format::Binary, Some(column)) => {
                        recode_binary(own, &column.ty, &mut encode, &mut recoded)?;
                    }
                    _ => encode(own, &mut recoded)?,
                }
                out.truncate(at);
                out.put_i32(recoded.len() as i32);
                out.put_slice(&recoded);
            }
            Ok(())
        })
    }

    fn put(&mut self, i: usize, datum: &Datum, out: &mut BytesMut) -> Result<(), SqlError> {
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
            (_, _, column) => {
                let name = match (&self.names, column) {
                    (Some(names), Some(column)) => names.of(datum, &column.ty)?,
                    _ => None,
                };
                let shown = name.as_ref().unwrap_or(datum);
                put_text(&shown.to_text(self.style).unwrap_or_default(), out);
            }
        }
        Ok(())
    }
}

fn put_text(text: &str, out: &mut BytesMut) {
    out.put_i32(text.len() as i32);
    out.put_slice(text.as_bytes());
}

/// The bytes of a parameter value with its texts in UTF-8.
pub(crate) fn in_utf8(
    bytes: &[u8],
    ty: &SqlType,
    format: Format,
    encoding: Encoding,
) -> Result<Vec<u8>, SqlError> {
    let mut out = Vec::new();
    let mut decode = |text: &[u8], out: &mut Vec<u8>| {
        out.extend_from_slice(encoding.decode(text)?.as_bytes());
        Ok(())
    };
    match format {
        Format::Binary => recode_binary(bytes, ty, &mut decode, &mut out)?,
        Format::Text => decode(bytes, &mut out)?,
    }
    Ok(out)
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
