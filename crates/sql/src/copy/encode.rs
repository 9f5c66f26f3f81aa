//! Rows to COPY data: text, CSV and binary.

use braid_types::encodings::{Encoding, recode_binary};
use braid_types::{Datum, SqlResult, SqlType, Style, checked_text};

use super::decode::{default_null, one_byte};
use braid_parser::{CopyFormat, CopyOptions};

/// Writes rows in one format.
pub(crate) struct Encoder {
    format: CopyFormat,
    delimiter: u8,
    null: String,
    quote: u8,
    escape: u8,
    header: bool,
    /// Per column: quote every value that is not NULL.
    force_quote: Vec<bool>,
    names: Vec<String>,
    types: Vec<SqlType>,
    style: Style,
    /// Of what is written, if it is not UTF-8.
    encoding: Option<Encoding>,
}

impl Encoder {
    /// An encoder for columns with these names and types.
    pub(crate) fn new(
        options: &CopyOptions,
        columns: Vec<(String, SqlType)>,
        style: Style,
    ) -> SqlResult<Encoder> {
        let csv = options.format == CopyFormat::Csv;
        let quote = one_byte("quote", options.quote, b'"')?;
        let forced = |name: &String| {
            options.force_quote.as_ref().is_some_and(|list| list.is_empty() || list.contains(name))
        };
        let (names, types): (Vec<String>, Vec<SqlType>) = columns.into_iter().unzip();
        Ok(Encoder {
            format: options.format,
            delimiter: one_byte("delimiter", options.delimiter, if csv { b',' } else { b'\t' })?,
            null: options.null.clone().unwrap_or(default_null(options.format).to_string()),
            quote,
            escape: one_byte("escape", options.escape, quote)?,
            header: options.header,
            force_quote: names.iter().map(forced).collect(),
            names,
            types,
            style,
            encoding: None,
        })
    }

    /// Texts are written in this encoding.
    pub(crate) fn in_encoding(mut self, encoding: Option<Encoding>) -> Encoder {
        self.encoding = encoding;
        self
    }

    /// What stands before the first row in the encoding that is wanted.
    ///
    /// # Errors
    /// 22P05 for what it does not have.
    pub(crate) fn start_encoded(&self, out: &mut Vec<u8>) -> SqlResult<()> {
        self.start(out);
        self.recode_text(out)
    }

    /// One row in the encoding that is wanted.
    ///
    /// # Errors
    /// 22P05 for what it does not have.
    pub(crate) fn row_encoded(&self, row: &[Datum], out: &mut Vec<u8>) -> SqlResult<()> {
        match (self.encoding, self.format) {
            (Some(encoding), CopyFormat::Binary) => self.binary_row(row, encoding, out),
            _ => {
                self.row(row, out);
                self.recode_text(out)
            }
        }
    }

    /// Text that was written, which stands alone.
    fn recode_text(&self, out: &mut Vec<u8>) -> SqlResult<()> {
        let Some(encoding) = self.encoding else { return Ok(()) };
        if self.format != CopyFormat::Binary && !out.is_ascii() {
            let text = std::mem::take(out);
            encoding.encode(checked_text(&text)?, out)?;
        }
        Ok(())
    }

    fn binary_row(&self, row: &[Datum], encoding: Encoding, out: &mut Vec<u8>) -> SqlResult<()> {
        let mut encode = |text: &[u8], out: &mut Vec<u8>| encoding.encode(checked_text(text)?, out);
        out.extend_from_slice(&(row.len() as i16).to_be_bytes());
        for (datum, ty) in row.iter().zip(&self.types) {
            let (mut own, mut recoded) = (Vec::new(), Vec::new());
            binary_field(datum, ty, &mut own);
            if datum.is_null() {
                out.extend_from_slice(&own);
                continue;
            }
            recode_binary(&own[4..], ty, &mut encode, &mut recoded)?;
            out.extend_from_slice(&(recoded.len() as i32).to_be_bytes());
            out.extend_from_slice(&recoded);
        }
        Ok(())
    }

    /// What stands before the first row.
    pub(crate) fn start(&self, out: &mut Vec<u8>) {
        match self.format {
            CopyFormat::Binary => {
                out.extend_from_slice(b"PGCOPY\n\xff\r\n\0");
                out.extend_from_slice(&[0; 8]);
            }
            _ if self.header => {
                let names: Vec<Datum> =
                    self.names.iter().map(|n| Datum::text(n.as_str())).collect();
                self.text_row(&names, &[], out);
            }
            _ => {}
        }
    }

    /// What stands after the last row.
    pub(crate) fn end(&self, out: &mut Vec<u8>) {
        if self.format == CopyFormat::Binary {
            out.extend_from_slice(&[0xff, 0xff]);
        }
    }

    /// One row.
    pub(crate) fn row(&self, row: &[Datum], out: &mut Vec<u8>) {
        if self.format == CopyFormat::Binary {
            out.extend_from_slice(&(row.len() as i16).to_be_bytes());
            for (datum, ty) in row.iter().zip(&self.types) {
                binary_field(datum, ty, out);
            }
            return;
        }
        self.text_row(row, &self.force_quote, out);
    }

    /// One row as text or CSV; in CSV these columns are always quoted.
    fn text_row(&self, row: &[Datum], quoted: &[bool], out: &mut Vec<u8>) {
        for (i, datum) in row.iter().enumerate() {
            if i > 0 {
                out.push(self.delimiter);
            }
            match datum.to_text(self.style) {
                None => out.extend_from_slice(self.null.as_bytes()),
                Some(text) if self.format == CopyFormat::Csv => {
                    self.csv_field(&text, quoted.get(i) == Some(&true), row.len(), out);
                }
                Some(text) => self.text_field(&text, out),
            }
        }
        out.push(b'\n');
    }

    fn text_field(&self, text: &str, out: &mut Vec<u8>) {
        for byte in text.bytes() {
            let letter = match byte {
                b'\\' => b'\\',
                8 => b'b',
                12 => b'f',
                b'\n' => b'n',
                b'\r' => b'r',
                b'\t' => b't',
                11 => b'v',
                b if b == self.delimiter => b,
                b => {
                    out.push(b);
                    continue;
                }
            };
            out.extend_from_slice(&[b'\\', letter]);
        }
    }

    fn csv_field(&self, text: &str, forced: bool, columns: usize, out: &mut Vec<u8>) {
        let special = |b: u8| b == self.delimiter || b == self.quote || b == b'\n' || b == b'\r';
        // A lone `\.` would read as the end marker.
        let marker = columns == 1 && text == "\\.";
        if !(forced || marker || text == self.null || text.bytes().any(special)) {
            out.extend_from_slice(text.as_bytes());
            return;
        }
        out.push(self.quote);
        for byte in text.bytes() {
            if byte == self.quote || byte == self.escape {
                out.push(self.escape);
            }
            out.push(byte);
        }
        out.push(self.quote);
    }
}

fn binary_field(datum: &Datum, ty: &SqlType, out: &mut Vec<u8>) {
    if datum.is_null() {
        out.extend_from_slice(&(-1i32).to_be_bytes());
        return;
    }
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    datum.to_binary(ty, out);
    let length = (out.len() - start - 4) as i32;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::copy::decode::Decoder;
    use crate::copy::raw_rows::RawRows;

    fn rows() -> Vec<Vec<Datum>> {
        vec![
            vec![Datum::Int4(1), Datum::text("plain")],
            vec![Datum::Null, Datum::text("a\tb\\c\nd,\"e\"")],
            vec![Datum::Int4(-7), Datum::text("")],
            vec![Datum::Int4(0), Datum::text("\\N")],
        ]
    }

    #[test]
    fn what_is_written_reads_back() {
        for format in [CopyFormat::Text, CopyFormat::Csv, CopyFormat::Binary] {
            let options = CopyOptions { format, ..CopyOptions::default() };
            let columns = vec![("a".to_string(), SqlType::Int4), ("b".to_string(), SqlType::Text)];
            let encoder = Encoder::new(&options, columns, Style::utc()).expect("good options");
            let mut data = Vec::new();
            encoder.start(&mut data);
            rows().iter().for_each(|row| encoder.row(row, &mut data));
            encoder.end(&mut data);
            let mut decoder = Decoder::new(&options, 2).expect("good options");
            let mut out = RawRows::default();
            decoder.feed(&data, &mut out).expect("well-formed");
            decoder.finish(&mut out).expect("well-formed");
            for (row, raw) in rows().iter().zip(out.iter()) {
                for (datum, field) in row.iter().zip(raw.fields()) {
                    let want = match (format, datum) {
                        (_, Datum::Null) => None,
                        (CopyFormat::Binary, Datum::Int4(v)) => Some(v.to_be_bytes().to_vec()),
                        _ => datum.to_text(Style::utc()).map(String::into_bytes),
                    };
                    assert_eq!(field, want.as_deref(), "{format:?}");
                }
            }
            assert_eq!(out.iter().count(), rows().len());
        }
    }
}
