//! The options of EXPORT, by CockroachDB's names where it has them.

use std::collections::BTreeSet;

use braid_import::Compression;
use braid_parser::{CopyFormat, CopyOptions, Export};
use braid_types::{SqlError, SqlResult};

use crate::import::OptionsOf;

/// A part is about so large before it is compressed: few files, and several of them for the readers
/// of an import, which work side by side.
const CHUNK_BYTES: usize = 128 << 20;

/// What is written.
#[derive(Debug, Clone)]
pub(super) enum Format {
    /// As COPY writes CSV, in files that are compressed whole.
    Csv(Box<CopyOptions>, Compression),
    /// With this codec for its pages.
    Parquet(String),
}

/// What EXPORT was told.
#[derive(Debug)]
pub(super) struct Options {
    pub(super) format: Format,
    /// Rows after which a part ends.
    pub(super) chunk_rows: u64,
    /// Bytes after which a part ends.
    pub(super) chunk_bytes: usize,
}

const EXPORT: OptionsOf = OptionsOf("EXPORT");
const OF_ALL: &[&str] = &["chunk_rows", "chunk_size", "compression"];
const OF_CSV: &[&str] = &["delimiter", "nullas", "header", "quote", "escape"];

impl Options {
    /// Reads all options.
    ///
    /// # Errors
    /// 0A000 for a format that there is not; 22023 for an option that is not known, is not for the
    /// format, comes twice or has a value that it cannot have.
    pub(super) fn read(e: &Export) -> SqlResult<Options> {
        let is_csv = match e.format.as_str() {
            "csv" => true,
            "parquet" => false,
            other => {
                let what = format!("EXPORT of {} data", other.to_uppercase());
                return Err(SqlError::unsupported(what).with_hint("Formats are CSV and PARQUET."));
            }
        };
        let mut csv = CopyOptions { format: CopyFormat::Csv, ..CopyOptions::default() };
        let (mut chunk_rows, mut chunk_bytes) = (u64::MAX, CHUNK_BYTES);
        let mut packing = None;
        let mut seen = BTreeSet::new();
        for (name, value) in &e.options {
            let known = OF_ALL.contains(&&**name) || is_csv && OF_CSV.contains(&&**name);
            if !known {
                return Err(unknown(name, is_csv));
            }
            if !seen.insert(name) {
                return Err(EXPORT.bad(name, "is given twice"));
            }
            match name.as_str() {
                "chunk_rows" => chunk_rows = EXPORT.number(name, value)?,
                "chunk_size" => chunk_bytes = EXPORT.size(name, value)?,
                "compression" => packing = Some(EXPORT.text(name, value)?.to_lowercase()),
                "delimiter" => csv.delimiter = Some(char::from(EXPORT.byte(name, value)?)),
                "quote" => csv.quote = Some(char::from(EXPORT.byte(name, value)?)),
                "escape" => csv.escape = Some(char::from(EXPORT.byte(name, value)?)),
                "nullas" => csv.null = Some(EXPORT.text(name, value)?),
                _ => csv.header = EXPORT.flag(name, value)?,
            }
        }
        if chunk_rows == 0 {
            return Err(EXPORT.bad("chunk_rows", "must be more than 0"));
        }
        let format = if is_csv {
            check_csv(&csv)?;
            let named = packing.as_deref().unwrap_or("none");
            let compression = Compression::named(named).filter(|c| *c != Compression::Auto);
            let compression = compression
                .ok_or_else(|| EXPORT.bad("compression", "is none, gzip, zstd or bzip2 for CSV"))?;
            Format::Csv(Box::new(csv), compression)
        } else {
            let codec = packing.unwrap_or_else(|| "snappy".into());
            if !["none", "snappy", "gzip", "zstd"].contains(&&*codec) {
                return Err(EXPORT.bad("compression", "is none, snappy, gzip or zstd for Parquet"));
            }
            Format::Parquet(codec)
        };
        Ok(Options { format, chunk_rows, chunk_bytes })
    }
}

fn check_csv(csv: &CopyOptions) -> SqlResult<()> {
    let (delimiter, quote) = (csv.delimiter.unwrap_or(','), csv.quote.unwrap_or('"'));
    if delimiter == quote {
        return Err(EXPORT.bad("delimiter", "must not be the quote"));
    }
    if delimiter == csv.escape.unwrap_or(quote) {
        return Err(EXPORT.bad("delimiter", "must not be the escape"));
    }
    let null = csv.null.as_deref().unwrap_or_default();
    if null.contains([delimiter, quote, '\n', '\r']) {
        let e = EXPORT.bad("nullas", "must hold neither the delimiter, the quote nor a line break");
        return Err(
            e.with_hint("Text that reads like it is quoted, so that IMPORT tells them apart.")
        );
    }
    Ok(())
}

fn unknown(name: &str, is_csv: bool) -> SqlError {
    let mut names: Vec<&str> = OF_ALL.to_vec();
    if is_csv {
        names.extend(OF_CSV);
    }
    let what = if OF_CSV.contains(&name) { "is not for this format" } else { "is not known" };
    EXPORT.bad(name, what).with_hint(format!("Options are {}.", names.join(", ")))
}
