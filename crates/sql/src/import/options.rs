//! The options of IMPORT: their names, which format they are for, and what values they take.
//!
//! Names are CockroachDB's where it has the option.

use std::collections::BTreeSet;

use braid_import::{Compression, Format, Header, ReadOptions};
use braid_parser::Import;
use braid_types::{SqlError, SqlResult};

use super::values::IMPORT;
use crate::bulk::LOAD_MEMORY;
use crate::dml::load_ways::Mode;

/// What IMPORT was told.
#[derive(Clone, Debug)]
pub(super) struct Options {
    /// How files are read.
    pub(super) read: ReadOptions,
    /// Rows after which reading ends.
    pub(super) row_limit: Option<u64>,
    /// So many rows may be no good.
    pub(super) max_bad_rows: u64,
    /// Where those are written.
    pub(super) reject_file: Option<String>,
    /// Everything is read and checked, and nothing is applied.
    pub(super) dry_run: bool,
    /// The statement answers at once, and the job goes on.
    pub(super) detached: bool,
    /// Fields that no column has are left out.
    pub(super) ignore_unknown: bool,
    /// How rows are kept until the end.
    pub(super) mode: Mode,
    /// Small transactions instead.
    pub(super) online: bool,
    /// In which rows are sorted, in bytes.
    pub(super) memory: usize,
    /// Bytes of rows between two checkpoints.
    pub(super) checkpoint_bytes: u64,
}

/// For which formats an option is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum For {
    Csv,
    Lines,
    Named,
    All,
}

const KNOWN: &[(&str, For)] = &[
    ("delimiter", For::Csv),
    ("quote", For::Csv),
    ("escape", For::Csv),
    ("nullif", For::Csv),
    ("header", For::Csv),
    ("skip", For::Csv),
    ("comment", For::Csv),
    ("strict_quotes", For::Csv),
    ("decompress", For::Lines),
    ("max_row_size", For::Lines),
    ("ignore_unknown_fields", For::Named),
    ("row_limit", For::All),
    ("max_bad_rows", For::All),
    ("reject_file", For::All),
    ("dry_run", For::All),
    ("detached", For::All),
    ("mode", For::All),
    ("online", For::All),
    ("memory", For::All),
    ("checkpoint_size", For::All),
];
/// Less memory than this makes more files than anybody wants.
pub(super) const MEMORY_MIN: usize = 1 << 20;
/// Rows between two checkpoints, in bytes: a fraction of a minute.
pub(super) const CHECKPOINT_BYTES: u64 = 512 << 20;

impl For {
    fn holds(self, format: Format) -> bool {
        match self {
            For::Csv => format == Format::Csv,
            For::Lines => matches!(format, Format::Csv | Format::JsonLines),
            For::Named => format != Format::Csv,
            For::All => true,
        }
    }
}

/// Whether a statement asks for a dry run, as far as can be told before its options are checked.
pub(super) fn is_dry_run(i: &Import) -> bool {
    i.options
        .iter()
        .any(|(name, value)| name == "dry_run" && IMPORT.flag(name, value).unwrap_or(false))
}

impl Options {
    /// Reads all options.
    ///
    /// # Errors
    /// 0A000 for a format that there is not; 22023 for an option that is not known, is not for the
    /// format, comes twice or has a value that it cannot have.
    pub(super) fn read(i: &Import) -> SqlResult<Options> {
        let format = Format::named(&i.format).ok_or_else(|| {
            SqlError::unsupported(format!("IMPORT of {} data", i.format.to_uppercase()))
                .with_hint("Formats are CSV, JSONL, PARQUET and AVRO.")
        })?;
        let mut out = Options {
            read: ReadOptions::new(format),
            row_limit: None,
            max_bad_rows: 0,
            reject_file: None,
            dry_run: false,
            detached: false,
            ignore_unknown: false,
            mode: Mode::Auto,
            online: false,
            memory: LOAD_MEMORY,
            checkpoint_bytes: CHECKPOINT_BYTES,
        };
        let mut seen = BTreeSet::new();
        for (name, value) in &i.options {
            let name = if name == "null" { "nullif" } else { name.as_str() };
            check_known(name, format)?;
            if !seen.insert(name) {
                return Err(IMPORT.bad(name, "is given twice"));
            }
            out.take(name, value)?;
        }
        out.check(&seen)?;
        Ok(out)
    }

    fn take(&mut self, name: &str, value: &Option<String>) -> SqlResult<()> {
        let csv = &mut self.read.csv;
        match name {
            "delimiter" => csv.delimiter = IMPORT.byte(name, value)?,
            "quote" => {
                let same = csv.escape == csv.quote;
                csv.quote = IMPORT.byte(name, value)?;
                if same {
                    csv.escape = csv.quote;
                }
            }
            "escape" => csv.escape = IMPORT.byte(name, value)?,
            "comment" => csv.comment = Some(IMPORT.byte(name, value)?),
            "nullif" => csv.null = IMPORT.text(name, value)?.into_bytes(),
            "header" => {
                csv.header = match value.as_deref() {
                    Some("match") => Header::Match,
                    _ if IMPORT.flag(name, value)? => Header::Skipped,
                    _ => Header::None,
                }
            }
            "skip" => csv.skip = IMPORT.number(name, value)?,
            "strict_quotes" => csv.strict_quotes = IMPORT.flag(name, value)?,
            "decompress" => {
                let named = Compression::named(&IMPORT.text(name, value)?.to_lowercase());
                self.read.compression =
                    named.ok_or_else(|| IMPORT.bad(name, "is auto, none, gzip, zstd or bzip2"))?;
            }
            "max_row_size" => self.read.row_bytes_max = IMPORT.size(name, value)?,
            "ignore_unknown_fields" => self.ignore_unknown = IMPORT.flag(name, value)?,
            "row_limit" => self.row_limit = Some(IMPORT.number(name, value)?),
            "max_bad_rows" => self.max_bad_rows = IMPORT.number(name, value)?,
            "reject_file" => self.reject_file = Some(IMPORT.text(name, value)?),
            "dry_run" => self.dry_run = IMPORT.flag(name, value)?,
            "detached" => self.detached = IMPORT.flag(name, value)?,
            "mode" => {
                let named = Mode::named(&IMPORT.text(name, value)?.to_lowercase());
                self.mode =
                    named.ok_or_else(|| IMPORT.bad(name, "is one_pass, two_pass or auto"))?;
            }
            "online" => self.online = IMPORT.flag(name, value)?,
            "memory" => self.memory = IMPORT.size(name, value)?,
            "checkpoint_size" => self.checkpoint_bytes = IMPORT.size(name, value)? as u64,
            other => return Err(SqlError::internal(format!("nobody reads option {other}"))),
        }
        Ok(())
    }

    /// What options say of each other.
    fn check(&self, given: &BTreeSet<&str>) -> SqlResult<()> {
        let csv = &self.read.csv;
        if csv.delimiter == csv.quote {
            return Err(IMPORT.bad("delimiter", "must not be the quote"));
        }
        if csv.delimiter == csv.escape {
            return Err(IMPORT.bad("delimiter", "must not be the escape"));
        }
        if csv.comment.is_some_and(|c| c == csv.quote || c == csv.delimiter) {
            return Err(IMPORT.bad("comment", "must be neither the quote nor the delimiter"));
        }
        if csv.null.contains(&csv.delimiter) || csv.null.contains(&b'\n') {
            return Err(IMPORT.bad("nullif", "must hold neither the delimiter nor a line break"));
        }
        if self.row_limit == Some(0) {
            return Err(IMPORT.bad("row_limit", "must be more than 0"));
        }
        if given.contains("reject_file") && self.max_bad_rows == 0 {
            let e = IMPORT.bad("reject_file", "needs max_bad_rows");
            return Err(e.with_hint("WITH max_bad_rows = '100' lets so many rows be no good."));
        }
        if self.memory < MEMORY_MIN {
            return Err(IMPORT.bad("memory", "must be at least 1MB"));
        }
        if self.online && (given.contains("mode") || given.contains("memory")) {
            let e = IMPORT.bad("online", "goes with neither mode nor memory");
            return Err(e.with_hint("Rows go through transactions, and nothing is sorted."));
        }
        if self.dry_run && self.online {
            return Err(IMPORT.bad("dry_run", "does not go with online: those rows stay"));
        }
        if self.dry_run && (self.detached || given.contains("reject_file")) {
            return Err(IMPORT.bad("dry_run", "writes nothing and answers with a report"));
        }
        Ok(())
    }
}

fn check_known(name: &str, format: Format) -> SqlResult<()> {
    match KNOWN.iter().find(|(known, _)| *known == name) {
        Some((_, formats)) if formats.holds(format) => Ok(()),
        Some(_) => Err(IMPORT.bad(name, "is not for this format").with_hint(known(format))),
        None => Err(IMPORT.bad(name, "is not known").with_hint(known(format))),
    }
}

fn known(format: Format) -> String {
    let names: Vec<&str> =
        KNOWN.iter().filter(|(_, f)| f.holds(format)).map(|(name, _)| *name).collect();
    format!("Options are {}.", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(format: &str, options: &[(&str, Option<&str>)]) -> SqlResult<Options> {
        let options = options.iter().map(|(n, v)| (n.to_string(), v.map(str::to_string))).collect();
        let (table, columns, files) = (vec!["t".into()], Vec::new(), Vec::new());
        let (format, job) = (format.into(), None);
        Options::read(&Import { table, columns, format, files, options, job })
    }

    #[test]
    fn what_is_not_known_or_not_for_the_format_is_refused_with_what_there_is() {
        for (format, name, value, says) in [
            ("csv", "delimitr", Some(","), "is not known"),
            ("parquet", "delimiter", Some(","), "is not for this format"),
            ("csv", "delimiter", Some("ab"), "single one-byte"),
            ("csv", "delimiter", Some("\""), "must not be the quote"),
            ("csv", "skip", Some("-1"), "whole number"),
            ("csv", "skip", None, "needs a value"),
            ("csv", "header", Some("maybe"), "true or false"),
            ("jsonl", "decompress", Some("lzma"), "gzip, zstd or bzip2"),
            ("csv", "max_row_size", Some("10 parsecs"), "is a size"),
            ("csv", "row_limit", Some("0"), "more than 0"),
            ("avro", "reject_file", Some("x"), "needs max_bad_rows"),
            ("csv", "mode", Some("three_pass"), "one_pass, two_pass or auto"),
            ("csv", "memory", Some("10"), "at least 1MB"),
        ] {
            let e = read(format, &[(name, value)]).expect_err(name);
            assert_eq!(e.state().0, "22023", "{name}");
            assert!(e.message().contains(says), "{name}: {}", e.message());
        }
        assert!(read("csv", &[("skip", Some("1")), ("skip", Some("1"))]).is_err());
        assert_eq!(read("xml", &[]).unwrap_err().state().0, "0A000");
    }

    #[test]
    fn sizes_have_units_and_quotes_take_their_escape_along() {
        let o = read("csv", &[("max_row_size", Some("10 MiB")), ("quote", Some("'"))]).unwrap();
        assert_eq!(o.read.row_bytes_max, 10 << 20);
        assert_eq!((o.read.csv.quote, o.read.csv.escape), (b'\'', b'\''));
        let o = read("csv", &[("null", Some("\\N")), ("delimiter", Some("\\t"))]).unwrap();
        assert_eq!((o.read.csv.null.as_slice(), o.read.csv.delimiter), (&b"\\N"[..], b'\t'));
    }
}
