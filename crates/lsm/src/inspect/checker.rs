//! Reads everything in a closed store and says what is wrong with it.
//!
//! Checks checksums and, behind them, that what the files say about themselves is true: order of
//! rows (I8) and of layers (I5), bounds of keys and tombstones (I1, I7), timestamps, counts and
//! class bitmaps (I6), filters without false negatives (I12), files that are there with their size
//! (I13), that the manifest replays to a possible version (I14), and that the log is the one that
//! the manifest knows, segment after segment. It changes nothing and takes no lock.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use braid_env::fs::FileSystem;

use crate::cache::BlockCache;
use crate::compaction::EntryMerge;
use crate::error::{Error, Result};
use crate::sstable::{SstEntries, SstReader, key_hash, sst_path};
use crate::structure::Record;
use crate::versions::{
    Edit, Recovered, SstEnv, SstFacts, SstMeta, Version, load_manifest, manifest_numbers,
    manifest_path,
};
use crate::wal::{SegmentEnd, SegmentRead, read_segment, walk_log};

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file.
    pub file: PathBuf,
    /// Where in it, in bytes.
    pub offset: u64,
    /// What is wrong there.
    pub reason: String,
}

/// What a check found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// Live ssts.
    pub ssts: usize,
    /// Point entries in them.
    pub rows: u64,
    /// Range tombstones in them.
    pub tombstones: u64,
    /// Wal segments that the next open would replay.
    pub wal_segments: usize,
    /// Batches in them.
    pub wal_batches: u64,
    /// What is wrong; empty for a healthy store.
    pub problems: Vec<Problem>,
}

impl CheckReport {
    fn problem(&mut self, error: Error) {
        let (file, offset, reason) = match error {
            Error::Corruption { file, offset, reason } => (file, offset, reason),
            Error::FormatTooNew { ref file, .. } => (file.clone(), 0, error.to_string()),
            other => (PathBuf::new(), 0, other.to_string()),
        };
        self.problems.push(Problem { file, offset, reason });
    }
}

/// Checks the store in a directory. Fails only if the directory cannot be read at all; damage is
/// in the report. The store should not be open: files may come and go under a reader.
pub fn check_store(fs: Arc<dyn FileSystem>, dir: &Path) -> Result<CheckReport> {
    let mut report = CheckReport::default();
    let names =
        fs.list(dir).map_err(|error| Error::io(format!("listing {}", dir.display()), &error))?;
    let cache = Arc::new(BlockCache::new(1 << 20));
    let env =
        Arc::new(SstEnv { fs: fs.clone(), dir: dir.to_path_buf(), cache, l0_sublevels: true });
    let recovered = match load_manifest(&env) {
        Ok(Some(recovered)) => recovered,
        Ok(None) => {
            let reason = "there is no store in this directory";
            report.problem(Error::corruption(dir.join("CURRENT"), 0, reason));
            return Ok(report);
        }
        Err(error) => {
            report.problem(error);
            return Ok(report);
        }
    };
    if let Err(reason) = recovered.version.check() {
        report.problem(Error::corruption(dir.join("CURRENT"), 0, reason));
    }
    // Manifests before the current one are kept to be looked at.
    for number in manifest_numbers(&names).into_iter().filter(|n| *n < recovered.number) {
        let path = manifest_path(dir, number);
        let read = read_segment(&*fs, &path, number, &mut |offset, record| {
            Edit::decode(record)
                .map(|_| ())
                .map_err(|reason| Error::corruption(&path, offset, reason))
        });
        match read {
            // It was durable before it was made current: at least its snapshot must be there.
            Ok(SegmentRead { end: SegmentEnd::Torn { empty: true, .. }, .. }) => {
                let reason = "an earlier manifest holds no record";
                report.problem(Error::corruption(&path, 0, reason));
            }
            Ok(_) => {}
            Err(error) => report.problem(error),
        }
    }
    for sst in recovered.version.ssts() {
        report.ssts += 1;
        report.rows += sst.rows;
        report.tombstones += sst.tombstones;
        if let Err(error) = check_sst(&env, sst) {
            report.problem(error);
        }
    }
    if report.problems.is_empty()
        && let Err(error) = check_order_of_layers(&env, &recovered.version)
    {
        report.problem(error);
    }
    // Ingests that the next open will carry out.
    for facts in check_wal(&*fs, dir, &names, &recovered, &mut report) {
        report.ssts += 1;
        if let Err(error) = check_sst(&env, &Arc::new(SstMeta::new(&facts, &env))) {
            report.problem(error);
        }
    }
    Ok(report)
}

fn check_sst(env: &SstEnv, sst: &Arc<SstMeta>) -> Result<()> {
    let path = sst_path(&env.dir, sst.backing.file_no);
    let wrong = |offset: u64, reason: &str| Err(Error::corruption(&path, offset, reason));
    let len = env
        .fs
        .open(&path)
        .and_then(|file| file.len())
        .map_err(|error| Error::corruption(&path, 0, format!("cannot be opened: {error}")))?;
    if len != sst.backing.size {
        return wrong(
            len.min(sst.backing.size),
            "the file has another size than the manifest says",
        );
    }
    let reader = sst.reader(env)?;
    let tombstones = sst.tombstones_inside(env)?;
    // Pieces of one timestamp that touch are one tombstone to a reader, however many were written.
    if tombstones.is_empty() != (sst.tombstones == 0) {
        return wrong(0, "I6: the number of range tombstones is another one");
    }
    for tombstone in &tombstones {
        let inside = tombstone.start >= sst.bounds().start && tombstone.end <= sst.bounds().end;
        if !inside || tombstone.ts > sst.max_ts || tombstone.ts < sst.min_ts {
            return wrong(0, "I7: a range tombstone is outside of the sst's bounds");
        }
    }
    check_rows(env, sst, reader, &path)?;
    if sst.is_virtual() {
        // What lies beside the part is garbage, but damage there is still damage of the device.
        let mut all = SstEntries::open(reader.clone())?;
        while all.key().is_some() {
            all.advance()?;
        }
    }
    Ok(())
}

fn check_rows(env: &SstEnv, sst: &SstMeta, reader: &Arc<SstReader>, path: &Path) -> Result<()> {
    let mut entries = sst.entries(env)?;
    let mut last: Option<(Vec<u8>, u64)> = None;
    let (mut rows, mut deletes, mut max_ts) = (0u64, 0u64, 0u64);
    while let Some(key) = entries.key() {
        let ts = entries.ts();
        let at = entries.block_offset();
        let wrong = |reason: &str| Err(Error::corruption(path, at, reason));
        let in_order = last.as_ref().is_none_or(|(before, newer)| {
            before.as_slice() < key || (before == key && *newer > ts)
        });
        if !in_order {
            return wrong("I8: rows are not in order");
        }
        if !sst.bounds().contains(key) {
            return wrong("I1: a row is outside of the sst's bounds");
        }
        if !reader.may_contain(key_hash(key)) {
            return wrong("I12: the filter denies a key that is there");
        }
        if let Err(reason) = entries.check_facts() {
            return wrong(reason);
        }
        rows += 1;
        deletes += u64::from(entries.kind() == crate::key::Kind::Delete);
        max_ts = max_ts.max(ts);
        last = Some((key.to_vec(), ts));
        entries.advance()?;
    }
    let holds = if sst.is_virtual() {
        // Counts are estimates, but they know "none" from "some".
        (rows == 0) == (sst.rows == 0) && max_ts <= sst.max_point_ts
    } else {
        (rows, deletes, max_ts) == (sst.rows, sst.deletes, sst.max_point_ts)
    };
    if !holds {
        return Err(Error::corruption(path, 0, "I6: counts do not match the rows"));
    }
    Ok(())
}

/// I5: where layers hold the same key, the upper one has the newer entries, and no tombstone of a
/// lower layer is newer than an entry above it.
fn check_order_of_layers(env: &Arc<SstEnv>, version: &Version) -> Result<()> {
    let runs: Vec<Vec<Arc<SstMeta>>> = version.runs().map(<[_]>::to_vec).collect();
    let mut skylines = Vec::new();
    for run in &runs {
        let mut of_run = Vec::new();
        for sst in run.iter().filter(|sst| sst.tombstones > 0) {
            of_run.push((sst.bounds().clone(), sst.reader(env)?.clone()));
        }
        skylines.push(of_run);
    }
    let mut merge = EntryMerge::open(env, &[], runs)?;
    let mut key: Vec<u8> = Vec::new();
    let mut deepest = 0;
    while let Some(at) = merge.key() {
        if key != at {
            key = at.to_vec();
            deepest = 0;
        }
        let layer = merge.layer_number();
        let newest_below = skylines[layer + 1..]
            .iter()
            .flatten()
            .filter(|(bounds, _)| bounds.contains(&key))
            .map(|(_, reader)| reader.skyline().stab(&key, u64::MAX))
            .max();
        if layer < deepest || newest_below.is_some_and(|ts| ts > merge.ts()) {
            let reason = format!("I5: \"{}\" is newer in a lower layer", key.escape_ascii());
            return Err(Error::corruption(&env.dir, 0, reason));
        }
        deepest = layer;
        merge.advance()?;
    }
    Ok(())
}

/// Walks over the log as the next open will. Returns the ssts that it would ingest.
fn check_wal(
    fs: &dyn FileSystem,
    dir: &Path,
    names: &[String],
    recovered: &Recovered,
    report: &mut CheckReport,
) -> Vec<SstFacts> {
    let mut waiting = Vec::new();
    let mut batches = 0;
    let walked = walk_log(fs, dir, names, &recovered.log(), &mut |segment, path, at, record| {
        let record =
            Record::decode(record).map_err(|reason| Error::corruption(path, at, reason))?;
        match record {
            Record::Batch(_) => batches += 1,
            Record::Structural(op) if recovered.installed.contains(&(segment, op.number)) => {}
            Record::Structural(op) => waiting.extend(op.ssts),
        }
        Ok(())
    });
    report.wal_batches = batches;
    match walked {
        Ok(walked) => report.wal_segments = walked.kept.len(),
        Err(error) => report.problem(error),
    }
    waiting
}
