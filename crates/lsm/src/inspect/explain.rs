//! What a read looks at, layer by layer, and why it stops: for people and for tests.
//!
//! ```text
//!   get "k17" @90
//!     mutable memtable: no entry, no tombstone
//!     L0, sst 31: older than the read only from @95 on: skipped
//!     L0, sst 30: filter says no; range tombstone @80: stop, everything below is older
//!   absent
//! ```
//!
//! It walks the same layers by the same rules as a read, one at a time and without its shortcuts;
//! the answer is compared with the read's own in tests.

use std::fmt::Write;
use std::sync::Arc;

use crate::error::Result;
use crate::iter::{ReadPoint, ReadWork, ScanOptions};
use crate::key::{KeySpan, Kind};
use crate::memtable::Memtable;
use crate::sstable::key_hash;
use crate::state::State;
use crate::structure::Queued;
use crate::versions::{SstEnv, SstMeta};
use crate::view::View;

/// What one layer says about a key.
struct Found {
    entry: Option<(u64, bool)>,
    tombstone: u64,
}

impl Found {
    /// The end of the sentence, and whether the read stops here with a value.
    fn verdict(&self, out: &mut String) -> Option<bool> {
        if self.tombstone > 0 {
            let _ = write!(out, ", range tombstone @{}", self.tombstone);
        }
        let Some((ts, is_put)) = self.entry else {
            if self.tombstone == 0 {
                let _ = writeln!(out);
                return None;
            }
            let _ = writeln!(out, ": stop, everything below is older");
            return Some(false);
        };
        if ts < self.tombstone {
            let _ = writeln!(out, ": stop, the tombstone hides @{ts}");
            return Some(false);
        }
        let what = if is_put { "the value" } else { "deleted" };
        let _ = writeln!(out, ": stop, @{ts} is {what}");
        Some(is_put)
    }
}

fn in_memtable(memtable: &Memtable, key: &[u8], read: ReadPoint, out: &mut String) -> Found {
    let (tombstone, _) = memtable.stab(key, read);
    let may = memtable.may_contain(key_hash(key));
    let node = memtable.get(key, read.ts, read.visible);
    let _ = match &node {
        Some(node) => write!(out, "entry @{}", node.ts()),
        None if may => write!(out, "no visible entry"),
        None => write!(out, "filter says no"),
    };
    Found { entry: node.map(|node| (node.ts(), node.kind() == Kind::Put)), tombstone }
}

fn in_sst(
    env: &SstEnv,
    sst: &SstMeta,
    key: &[u8],
    read_ts: u64,
    out: &mut String,
) -> Result<Found> {
    let none = Found { entry: None, tombstone: 0 };
    if sst.min_ts > read_ts {
        let _ = write!(out, "skipped, all of it is newer (from @{})", sst.min_ts);
        return Ok(none);
    }
    let reader = sst.reader(env)?;
    let tombstone = if sst.tombstones > 0 { reader.skyline().stab(key, read_ts) } else { 0 };
    if !reader.may_contain(key_hash(key)) {
        let _ = write!(out, "filter says no");
        return Ok(Found { tombstone, ..none });
    }
    let mut work = ReadWork::default();
    let found = reader.get(key, read_ts, &mut work)?;
    let _ = match &found {
        Some(found) => write!(out, "entry @{}", found.ts),
        None => write!(out, "no visible entry"),
    };
    let _ = write!(out, " in {} blocks ({} from the device)", work.blocks, work.from_disk);
    Ok(Found { entry: found.map(|found| (found.ts, found.kind == Kind::Put)), tombstone })
}

fn sst_of<'a>(run: &'a [Arc<SstMeta>], key: &[u8]) -> Option<&'a Arc<SstMeta>> {
    run.iter().find(|sst| sst.bounds().contains(key))
}

/// How a get of `key` goes.
pub(crate) fn explain_get(
    state: &State,
    env: &SstEnv,
    key: &[u8],
    read: ReadPoint,
) -> Result<String> {
    let mut out = format!("get \"{}\" @{}\n", key.escape_ascii(), read.ts);
    let mut verdict = None;
    for layer in state.queue() {
        match layer {
            Queued::Memtable(memtable) => {
                let is_mutable = Arc::ptr_eq(memtable, &state.mutable);
                let name = if is_mutable { "mutable memtable" } else { "sealed memtable" };
                let _ = write!(out, "  {name} (arrival {}): ", memtable.arrival);
                verdict = in_memtable(memtable, key, read, &mut out).verdict(&mut out);
            }
            Queued::Structural(op) => {
                if let Some(sst) = sst_of(op.run.ssts(), key) {
                    let _ = write!(out, "  waiting ingest, sst {}: ", sst.file_no);
                    verdict = in_sst(env, sst, key, read.ts, &mut out)?.verdict(&mut out);
                }
                let excised = op.excised.as_ref().is_some_and(|span| span.contains(key));
                if verdict.is_none() && excised {
                    out.push_str("  waiting excise: stop, nothing below is seen here\n");
                    verdict = Some(false);
                }
            }
        }
        if verdict.is_some() {
            break;
        }
    }
    if verdict.is_none() {
        let mut elsewhere = 0;
        for run in state.version.runs() {
            let Some(sst) = sst_of(run, key) else {
                elsewhere += 1;
                continue;
            };
            let part = if sst.is_virtual() { ", part of a file" } else { "" };
            let _ = write!(out, "  L{}, sst {}{part}: ", sst.level, sst.file_no);
            verdict = in_sst(env, sst, key, read.ts, &mut out)?.verdict(&mut out);
            if verdict.is_some() {
                break;
            }
        }
        if elsewhere > 0 {
            let _ = writeln!(out, "  {elsewhere} runs hold nothing at this key");
        }
    }
    out.push_str(if verdict == Some(true) { "present\n" } else { "absent\n" });
    Ok(out)
}

/// How a scan of a span goes: what it may look at, then what it did.
pub(crate) fn explain_scan(view: &View, span: &KeySpan) -> Result<String> {
    let (state, env, read) = (view.state(), view.env(), view.read_point());
    let mut out = format!("scan {span:?} @{}\n", read.ts);
    for layer in state.queue() {
        match layer {
            Queued::Memtable(memtable) => {
                let newest = memtable.skyline().max_ts_in(&span.start, &span.end);
                let _ = write!(out, "  memtable (arrival {}), ", memtable.arrival);
                let _ = match (memtable.is_empty() || memtable.min_ts() > read.ts, newest) {
                    (true, _) => writeln!(out, "skipped"),
                    (_, 0) => writeln!(out, "no range tombstones in the span"),
                    (_, ts) => writeln!(out, "range tombstones up to @{ts}"),
                };
            }
            Queued::Structural(op) => {
                let ssts = op.run.ssts().iter().filter(|sst| sst.bounds().overlaps(span)).count();
                let _ = writeln!(out, "  waiting ingest of {ssts} ssts, excise {:?}", op.excised);
            }
        }
    }
    for run in state.version.runs() {
        let there: Vec<_> = run.iter().filter(|sst| sst.bounds().overlaps(span)).collect();
        let Some(first) = there.first() else { continue };
        let bytes: u64 = there.iter().map(|sst| sst.size).sum();
        let _ = write!(out, "  L{}, {} ssts, {bytes} bytes", first.level, there.len());
        if there.iter().all(|sst| sst.min_ts > read.ts) {
            out.push_str(", skipped, newer than the read\n");
            continue;
        }
        let mut tombstones = 0;
        for sst in &there {
            let visible = sst.tombstones_inside(env)?.into_iter();
            tombstones += visible
                .filter(|t| t.ts <= read.ts && t.start < span.end && span.start < t.end)
                .count();
        }
        let _ = writeln!(out, ", {tombstones} visible range tombstones in the span");
    }
    let mut scan = view.scan(span.clone(), ScanOptions::default())?;
    while scan.next_row()?.is_some() {}
    let stats = scan.stats();
    let _ = writeln!(
        out,
        "{} rows of {} entries looked at, {} seeks, parked {} times, {} blocks ({} from disk)",
        stats.rows_returned,
        stats.rows_visited,
        stats.seeks,
        stats.slabs_parked,
        stats.blocks_read,
        stats.blocks_from_disk
    );
    Ok(out)
}
