//! The options of IMPORT PGDUMP.

use std::collections::BTreeSet;

use braid_import::Compression;
use braid_parser::ImportDump;
use braid_types::SqlResult;

use super::super::options::CHECKPOINT_BYTES;
use super::super::values::IMPORT;
use super::hierarchy::Wish;

/// What the statement was told.
pub(super) struct Options {
    pub(super) ignore_unsupported: bool,
    /// A file for the whole texts of statements that were left out.
    pub(super) log_ignored: Option<String>,
    pub(super) allow_destructive: bool,
    pub(super) skip_foreign_keys: bool,
    pub(super) dry_run: bool,
    /// The statement answers at once.
    pub(super) detached: bool,
    /// Say which tables could lie in others.
    pub(super) propose: bool,
    /// Which tables are to lie in others.
    pub(super) interleave: Wish,
    pub(super) row_limit: u64,
    pub(super) row_bytes_max: usize,
    pub(super) compression: Compression,
    /// Bytes that all of it may hold, if that was said.
    pub(super) memory: Option<usize>,
    /// Bytes of the dump between two checkpoints.
    pub(super) checkpoint_bytes: u64,
}

/// Statements need some, besides loads.
const MEMORY_MIN: usize = 4 << 20;

const KNOWN: &str = "ignore_unsupported_statements, log_ignored_statements, allow_destructive, \
    skip_foreign_keys, interleave, propose_interleave, row_limit, max_row_size, decompress, \
    memory, checkpoint_size, dry_run, detached";

impl Options {
    /// Reads all options.
    ///
    /// # Errors
    /// 22023 for one that is not known, comes twice or has a value that it cannot have.
    pub(super) fn read(d: &ImportDump) -> SqlResult<Options> {
        let mut out = Options {
            ignore_unsupported: false,
            log_ignored: None,
            allow_destructive: false,
            skip_foreign_keys: false,
            dry_run: false,
            detached: false,
            propose: false,
            interleave: Wish::Flat,
            row_limit: u64::MAX,
            row_bytes_max: 256 << 20,
            compression: Compression::Auto,
            memory: None,
            checkpoint_bytes: CHECKPOINT_BYTES,
        };
        let mut seen = BTreeSet::new();
        for (name, value) in &d.options {
            if !seen.insert(name) {
                return Err(IMPORT.bad(name, "is given twice"));
            }
            match name.as_str() {
                "ignore_unsupported_statements" => {
                    out.ignore_unsupported = IMPORT.flag(name, value)?;
                }
                "log_ignored_statements" => out.log_ignored = Some(IMPORT.text(name, value)?),
                "allow_destructive" => out.allow_destructive = IMPORT.flag(name, value)?,
                "skip_foreign_keys" => out.skip_foreign_keys = IMPORT.flag(name, value)?,
                "dry_run" => out.dry_run = IMPORT.flag(name, value)?,
                "detached" => out.detached = IMPORT.flag(name, value)?,
                "propose_interleave" => out.propose = IMPORT.flag(name, value)?,
                "interleave" => out.interleave = Wish::read(&IMPORT.text(name, value)?)?,
                "row_limit" => out.row_limit = IMPORT.number(name, value)?.max(1),
                "max_row_size" => out.row_bytes_max = IMPORT.size(name, value)?,
                "memory" => out.memory = Some(IMPORT.size(name, value)?),
                "checkpoint_size" => {
                    out.checkpoint_bytes = IMPORT.size(name, value)? as u64;
                }
                "decompress" => {
                    let named = Compression::named(&IMPORT.text(name, value)?.to_lowercase());
                    out.compression = named
                        .ok_or_else(|| IMPORT.bad(name, "is auto, none, gzip, zstd or bzip2"))?;
                }
                other => {
                    let e = IMPORT.bad(other, "is not known for a dump");
                    return Err(e.with_hint(format!("Options are {KNOWN}.")));
                }
            }
        }
        if out.memory.is_some_and(|bytes| bytes < MEMORY_MIN) {
            return Err(IMPORT.bad("memory", "must be at least 4MB for a dump"));
        }
        if out.detached && (out.dry_run || out.propose) {
            return Err(IMPORT.bad("detached", "has nobody who would get the report"));
        }
        Ok(out)
    }
}
