//! How files are read.

use std::path::Path;

/// What the files hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Separated fields in lines.
    Csv,
    /// One JSON object or array in a line.
    JsonLines,
    /// Apache Parquet.
    Parquet,
    /// Apache Avro object container files.
    Avro,
}

impl Format {
    /// By the name that statements use, in lower case.
    pub fn named(name: &str) -> Option<Format> {
        Some(match name {
            "csv" => Format::Csv,
            "jsonl" | "ndjson" => Format::JsonLines,
            "parquet" => Format::Parquet,
            "avro" => Format::Avro,
            _ => return None,
        })
    }

    /// What messages call a row's number.
    pub fn counts(self) -> &'static str {
        match self {
            Format::Csv | Format::JsonLines => "line",
            Format::Parquet | Format::Avro => "row",
        }
    }
}

/// How a file is compressed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Compression {
    /// By the file's suffix.
    #[default]
    Auto,
    /// Not at all.
    None,
    /// gzip, also of several members.
    Gzip,
    /// Zstandard, also of several frames.
    Zstd,
    /// bzip2, also of several streams.
    Bzip2,
}

impl Compression {
    /// By the name that statements use, in lower case.
    pub fn named(name: &str) -> Option<Compression> {
        Some(match name {
            "auto" => Compression::Auto,
            "none" => Compression::None,
            "gzip" | "gz" => Compression::Gzip,
            "zstd" | "zst" => Compression::Zstd,
            "bzip" | "bzip2" | "bz2" => Compression::Bzip2,
            _ => return None,
        })
    }

    /// What it means for a file: anything but [`Compression::Auto`].
    pub(crate) fn of(self, path: &Path) -> Compression {
        if self != Compression::Auto {
            return self;
        }
        let suffix = path.extension().and_then(|s| s.to_str()).unwrap_or_default();
        match suffix.to_ascii_lowercase().as_str() {
            "gz" | "gzip" => Compression::Gzip,
            "zst" | "zstd" => Compression::Zstd,
            "bz2" | "bz" => Compression::Bzip2,
            _ => Compression::None,
        }
    }
}

/// What the first line of a CSV file is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Header {
    /// A row like all.
    #[default]
    None,
    /// Names that nobody looks at.
    Skipped,
    /// The columns' names, in their order.
    Match,
}

/// How CSV is written.
#[derive(Debug, Clone)]
pub struct CsvOptions {
    /// Between two fields. `,`.
    pub delimiter: u8,
    /// Around a field. `"`.
    pub quote: u8,
    /// Before a quote inside of quotes. The quote itself.
    pub escape: u8,
    /// What stands for NULL, without quotes. Nothing.
    pub null: Vec<u8>,
    /// What the first line is.
    pub header: Header,
    /// Lines that are left out in front of each file, besides the header.
    pub skip: u64,
    /// Lines that begin with this byte are no rows.
    pub comment: Option<u8>,
    /// A quote may only stand around a whole field.
    pub strict_quotes: bool,
}

impl Default for CsvOptions {
    fn default() -> CsvOptions {
        CsvOptions {
            delimiter: b',',
            quote: b'"',
            escape: b'"',
            null: Vec::new(),
            header: Header::None,
            skip: 0,
            comment: None,
            strict_quotes: false,
        }
    }
}

/// How files are read.
#[derive(Debug, Clone)]
pub struct ReadOptions {
    /// What they hold.
    pub format: Format,
    /// How they are compressed.
    pub compression: Compression,
    /// For CSV.
    pub csv: CsvOptions,
    /// Longest row, in bytes. 256 MiB: a quote that is never closed must not eat the memory.
    pub row_bytes_max: usize,
}

impl ReadOptions {
    /// With the format's defaults.
    pub fn new(format: Format) -> ReadOptions {
        ReadOptions {
            format,
            compression: Compression::Auto,
            csv: CsvOptions::default(),
            row_bytes_max: 256 << 20,
        }
    }
}
