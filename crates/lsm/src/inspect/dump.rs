//! Prints files of a store for people: `braid debug sst`, `wal` and `manifest` are these.
//!
//! Damage is printed where it is found, as far as the file can be read, and then returned.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use braid_env::fs::FileSystem;

use crate::batch::BatchOp;
use crate::cache::BlockCache;
use crate::error::{Error, Result};
use crate::iter::ReadWork;
use crate::key::Kind;
use crate::sstable::{SstEntries, SstIdentity, SstReader};
use crate::structure::Record;
use crate::versions::Edit;
use crate::wal::{SegmentEnd, read_head, read_segment};

/// How much of a value is printed.
const SHOWN: usize = 64;

fn shown(bytes: &[u8]) -> String {
    let cut = &bytes[..bytes.len().min(SHOWN)];
    let more = if bytes.len() > SHOWN { "..." } else { "" };
    format!("\"{}\"{more}", cut.escape_ascii())
}

fn line(out: &mut dyn Write, text: &str) -> Result<()> {
    writeln!(out, "{text}").map_err(|error| Error::io("printing", &error))
}

/// The number in a file name such as `000012.sst` or `MANIFEST-000003`.
fn number_in(path: &Path) -> Result<u64> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("");
    let digits: String = name.chars().filter(char::is_ascii_digit).collect();
    digits
        .parse()
        .map_err(|_| Error::corruption(path, 0, "the file name holds no number of a store's file"))
}

/// Prints facts, range tombstones, block index and (with `rows`) every entry of an sst.
pub fn dump_sst(fs: &dyn FileSystem, path: &Path, rows: bool, out: &mut dyn Write) -> Result<()> {
    let cache = Arc::new(BlockCache::new(1 << 20));
    let identity = SstIdentity { sealed_no: None, ..SstIdentity::own(number_in(path)?) };
    let reader = Arc::new(SstReader::open(fs, path, identity, cache)?);
    let facts = reader.properties();
    line(out, &format!("sst {}", reader.path().display()))?;
    if reader.sealed_no() != number_in(path)? {
        line(out, &format!("  written elsewhere, sealed as {:#x}", reader.sealed_no()))?;
    }
    line(
        out,
        &format!(
            "  rows {} (deletes {}), range tombstones {}, row blocks {}",
            facts.rows, facts.deletes, facts.tombstones, facts.blocks
        ),
    )?;
    line(out, &format!("  span [{}, {})", shown(&facts.start), shown(&facts.end)))?;
    line(
        out,
        &format!(
            "  ts {} to {} (points to {}), arrival {} to {}",
            facts.min_ts, facts.max_ts, facts.max_point_ts, facts.arrival_low, facts.arrival_high
        ),
    )?;
    line(
        out,
        &format!("  raw bytes: keys {}, values {}", facts.raw_key_bytes, facts.raw_value_bytes),
    )?;
    for tombstone in reader.skyline().tombstones() {
        let (start, end) = (shown(&tombstone.start), shown(&tombstone.end));
        line(out, &format!("  tombstone [{start}, {end}) @{}", tombstone.ts))?;
    }
    for part in 0..reader.top().len() {
        let index = &reader.partition(part, false, &mut ReadWork::default())?.index;
        for i in 0..index.len() {
            let handle = index.handle(i);
            line(
                out,
                &format!(
                    "  block at {:>10} len {:>7} ts {}..{} classes {:#x} live rows to here {} up \
                     to {}",
                    handle.offset,
                    handle.len,
                    index.min_ts(i),
                    index.max_ts(i),
                    index.classes(i),
                    index.cum_live(i),
                    shown(index.separator(i)),
                ),
            )?;
        }
    }
    if !rows {
        return Ok(());
    }
    let mut entries = SstEntries::open(reader.clone())?;
    while let Some(key) = entries.key() {
        let what = match entries.kind() {
            Kind::Put => format!("= {}", shown(entries.value())),
            Kind::Delete => "deleted".to_string(),
        };
        line(out, &format!("  {} @{} {what}", shown(key), entries.ts()))?;
        entries.advance()?;
    }
    Ok(())
}

/// Prints the batches of a wal segment, and how it ends.
pub fn dump_wal(fs: &dyn FileSystem, path: &Path, out: &mut dyn Write) -> Result<()> {
    let segment = number_in(path)?;
    line(out, &format!("wal segment {segment}"))?;
    if let Some(head) = read_head(fs, path)? {
        line(
            out,
            &format!(
                "  head: segment {} of store {:016x}, identity {:016x}, follows {:016x}",
                head.number, head.store, head.identity, head.follows
            ),
        )?;
    }
    let read = read_segment(fs, path, segment, &mut |offset, record| {
        let record =
            Record::decode(record).map_err(|reason| Error::corruption(path, offset, reason))?;
        let batch = match record {
            Record::Batch(batch) => batch,
            Record::Structural(op) => {
                line(out, &format!("  at {offset}: structural operation {}", op.number))?;
                if let Some(span) = &op.excised {
                    let (start, end) = (shown(&span.start), shown(&span.end));
                    line(out, &format!("    excise [{start}, {end})"))?;
                }
                for facts in &op.ssts {
                    let (start, end) = (shown(&facts.bounds.start), shown(&facts.bounds.end));
                    let file_no = facts.file_no;
                    line(out, &format!("    ingest sst {file_no} [{start}, {end})"))?;
                }
                return Ok(());
            }
        };
        line(out, &format!("  at {offset}: batch @{} with {} entries", batch.ts(), batch.len()))?;
        for op in batch.ops() {
            let text = match op {
                BatchOp::Point { key, kind: Kind::Put, value } => {
                    format!("put {} = {}", shown(key), shown(value))
                }
                BatchOp::Point { key, .. } => format!("delete {}", shown(key)),
                BatchOp::Span { start, end } => {
                    format!("delete span [{}, {})", shown(start), shown(end))
                }
            };
            line(out, &format!("    {text}"))?;
        }
        Ok(())
    })?;
    match read.end {
        SegmentEnd::Sealed => line(out, "  sealed"),
        SegmentEnd::Torn { at, .. } => {
            line(out, &format!("  ends at {at} without a seal (still open, or power failed)"))
        }
    }
}

/// Prints the version edits of a manifest.
pub fn dump_manifest(fs: &dyn FileSystem, path: &Path, out: &mut dyn Write) -> Result<()> {
    let number = number_in(path)?;
    line(out, &format!("manifest {number}"))?;
    let read = read_segment(fs, path, number, &mut |offset, record| {
        let edit =
            Edit::decode(record).map_err(|reason| Error::corruption(path, offset, reason))?;
        let what = if edit.snapshot { "snapshot" } else { "edit" };
        let reason = edit.reason.as_ref().map_or(String::new(), |reason| format!(": {reason}"));
        line(out, &format!("  at {offset}: {what}{reason}"))?;
        let numbers = [
            ("format version", edit.format_version.map(u64::from)),
            ("wal floor", edit.wal_floor),
            ("next file", edit.next_file),
            ("next arrival", edit.next_arrival),
            ("gc threshold", edit.gc_threshold),
            ("newest ts", edit.newest_ts),
        ];
        for (name, value) in numbers {
            if let Some(value) = value {
                line(out, &format!("    {name} {value}"))?;
            }
        }
        if let Some(store) = edit.store {
            line(out, &format!("    store {store:016x}"))?;
        }
        if let Some(mark) = edit.log_mark {
            let (segment, position) = (mark.segment, mark.position);
            line(out, &format!("    the log is durable to segment {segment}, offset {position}"))?;
        }
        for (segment, number) in &edit.installed {
            line(out, &format!("    structural operation {number} of wal segment {segment}"))?;
        }
        for file_no in &edit.dropped {
            line(out, &format!("    - sst {file_no}"))?;
        }
        for facts in &edit.added {
            line(
                out,
                &format!(
                    "    + sst {} L{} {} bytes, {} rows, {} range tombstones, ts {}..{}, [{}, {})",
                    facts.file_no,
                    facts.level,
                    facts.size,
                    facts.rows,
                    facts.tombstones,
                    facts.min_ts,
                    facts.max_ts,
                    shown(&facts.bounds.start),
                    shown(&facts.bounds.end),
                ),
            )?;
            if facts.is_virtual() {
                let backing = facts.backing.file_no;
                line(out, &format!("      virtual: a part of file {backing}"))?;
            }
            if facts.backing.ts_override > 0 {
                let ts = facts.backing.ts_override;
                line(out, &format!("      ingested: all of it counts as written @{ts}"))?;
            }
        }
        Ok(())
    })?;
    match read.end {
        SegmentEnd::Sealed => line(out, "  sealed"),
        SegmentEnd::Torn { at, .. } => line(out, &format!("  ends at {at} without a seal")),
    }
}
