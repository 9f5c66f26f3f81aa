//! Everything a read needs, as one immutable value behind an atomic pointer; and the reads that
//! look at all layers of it.

use std::sync::Arc;

use bytes::Bytes;

use crate::error::Result;
use crate::iter::{RunCursor, ScanOptions, Source};
use crate::key::{CommitTs, KeySpan, Kind};
use crate::memtable::Memtable;
use crate::sstable::key_hash;
use crate::versions::{SstEnv, SstMeta, Version};
use crate::view::ReadCounters;

/// The layers of the store at a moment. Replaced as a whole, never changed.
pub(crate) struct State {
    /// Receives writes.
    pub(crate) mutable: Arc<Memtable>,
    /// Sealed, not flushed yet; newest first.
    pub(crate) immutable: Vec<Arc<Memtable>>,
    /// The live ssts.
    pub(crate) version: Arc<Version>,
}

/// The sst of a run that may hold `key`.
fn sst_of<'a>(run: &'a [Arc<SstMeta>], key: &[u8]) -> Option<&'a Arc<SstMeta>> {
    let at = run.partition_point(|sst| sst.bounds().end.as_ref() <= key);
    run.get(at).filter(|sst| sst.bounds().start.as_ref() <= key)
}

impl State {
    /// All memtables, newest first.
    pub(crate) fn memtables(&self) -> impl Iterator<Item = &Arc<Memtable>> {
        std::iter::once(&self.mutable).chain(&self.immutable)
    }

    /// The value of a key in ssts at a timestamp. Stops at the first run with a point or a
    /// tombstone: everything below is older.
    pub(crate) fn get_from_ssts(
        &self,
        env: &SstEnv,
        key: &[u8],
        hash: u64,
        read_ts: u64,
        counters: &ReadCounters,
    ) -> Result<Option<(Bytes, CommitTs)>> {
        for run in self.version.runs() {
            let Some(sst) = sst_of(run, key).filter(|sst| sst.min_ts <= read_ts) else { continue };
            let reader = sst.reader(env)?;
            let hidden_below =
                if sst.tombstones > 0 { reader.skyline().stab(key, read_ts, u64::MAX) } else { 0 };
            if reader.may_contain(hash)
                && let Some(found) = reader.get(key, read_ts, Some(counters))?
            {
                let lives = found.kind == Kind::Put && found.ts >= hidden_below;
                return Ok(lives.then_some((found.value, CommitTs(found.ts))));
            }
            if hidden_below > 0 {
                return Ok(None);
            }
        }
        Ok(None)
    }

    /// Timestamp of the newest visible range tombstone over a key in ssts; 0 if none.
    pub(crate) fn stab_ssts(&self, env: &SstEnv, key: &[u8], read_ts: u64) -> Result<u64> {
        for run in self.version.runs() {
            if let Some(sst) = sst_of(run, key).filter(|sst| sst.tombstones > 0) {
                let ts = sst.reader(env)?.skyline().stab(key, read_ts, u64::MAX);
                if ts > 0 {
                    return Ok(ts);
                }
            }
        }
        Ok(0)
    }

    /// Cursors over the runs that overlap a span, newest first.
    pub(crate) fn run_cursors(
        &self,
        env: &Arc<SstEnv>,
        span: &KeySpan,
        read_ts: u64,
        options: &ScanOptions,
        counters: &Arc<ReadCounters>,
    ) -> Vec<Box<dyn Source>> {
        let mut sources: Vec<Box<dyn Source>> = Vec::new();
        for run in self.version.runs() {
            let first = run.partition_point(|sst| sst.bounds().end <= span.start);
            let end = run.partition_point(|sst| sst.bounds().start < span.end);
            if first >= end {
                continue;
            }
            let files = run[first..end].to_vec();
            if files.iter().all(|sst| sst.min_ts > read_ts) {
                continue;
            }
            sources.push(Box::new(RunCursor::new(
                env.clone(),
                files,
                span.clone(),
                read_ts,
                options.clone(),
                counters.clone(),
            )));
        }
        sources
    }

    /// Newest timestamp above `floor` of anything in the span, 0 if there is none above it.
    /// `tombstones`: whether range tombstones count as well as points.
    pub(crate) fn newest_above(
        &self,
        env: &SstEnv,
        span: &KeySpan,
        floor: u64,
        tombstones: bool,
    ) -> Result<u64> {
        if span.is_empty() {
            return Ok(0);
        }
        let mut newest = floor;
        for memtable in self.memtables() {
            newest = newest.max(memtable.newest_above(span, newest, tombstones));
        }
        for run in self.version.runs() {
            let first = run.partition_point(|sst| sst.bounds().end <= span.start);
            for sst in run[first..].iter().take_while(|sst| sst.bounds().start < span.end) {
                if sst.max_ts <= newest {
                    continue;
                }
                let reader = sst.reader(env)?;
                let span = span.intersect(sst.bounds());
                if tombstones {
                    newest = newest.max(reader.skyline().max_ts_in(&span.start, &span.end));
                }
                newest = newest.max(reader.newest_point_above(&span, newest)?);
            }
        }
        Ok(if newest > floor { newest } else { 0 })
    }

    /// Newest timestamp of an entry of `key` or a tombstone over it; 0 if none.
    pub(crate) fn max_ts_of(&self, env: &SstEnv, key: &[u8]) -> Result<u64> {
        let hash = key_hash(key);
        for memtable in self.memtables() {
            let ts = memtable.max_ts_of(key, hash);
            if ts > 0 {
                return Ok(ts);
            }
        }
        for run in self.version.runs() {
            let Some(sst) = sst_of(run, key) else { continue };
            let reader = sst.reader(env)?;
            let mut ts = reader.skyline().stab(key, u64::MAX, u64::MAX);
            if reader.may_contain(hash)
                && let Some(found) = reader.get(key, u64::MAX, None)?
            {
                ts = ts.max(found.ts);
            }
            if ts > 0 {
                return Ok(ts);
            }
        }
        Ok(0)
    }
}
