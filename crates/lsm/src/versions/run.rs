//! A run as reads use it: disjoint ssts in key order, and what finds the right one quickly.
//!
//! A search compares eight bytes per step, in a dense array, and follows no pointer to an sst:
//!
//! ```text
//!   ssts    [a .. f)   [f .. m)   [m .. q)   [t .. z)
//!   ends     f          m          q          z        common prefix cut off, first 8 bytes
//! ```

use std::sync::{Arc, OnceLock};

use super::sst_meta::{SstEnv, SstMeta};
use crate::error::Result;
use crate::sstable::{SstReader, head_of, partition_point};

/// What a read needs to know of one sst, in one cache line.
#[repr(align(64))]
pub(crate) struct RunFile {
    pub(crate) sst: Arc<SstMeta>,
    reader: OnceLock<Arc<SstReader>>,
    pub(crate) min_ts: u64,
    /// Eight bytes of the start, behind the run's prefix; 0 if it sorts before the prefix.
    start_head: u64,
    pub(crate) max_point_ts: u64,
    pub(crate) has_tombstones: bool,
    pub(crate) is_virtual: bool,
}

impl RunFile {
    fn new(sst: &Arc<SstMeta>, prefix: &[u8]) -> RunFile {
        RunFile {
            sst: sst.clone(),
            reader: OnceLock::new(),
            min_ts: sst.min_ts,
            start_head: sst.bounds().start.strip_prefix(prefix).map_or(0, head_of),
            max_point_ts: sst.max_point_ts,
            has_tombstones: sst.tombstones > 0,
            is_virtual: sst.is_virtual(),
        }
    }

    /// The open file; see [`SstMeta::reader`].
    #[inline]
    pub(crate) fn reader(&self, env: &SstEnv) -> Result<&Arc<SstReader>> {
        match self.reader.get() {
            Some(reader) => Ok(reader),
            None => {
                let reader = self.sst.reader(env)?.clone();
                Ok(self.reader.get_or_init(|| reader))
            }
        }
    }
}

/// One run of a version.
pub(crate) struct Run {
    ssts: Vec<Arc<SstMeta>>,
    files: Vec<RunFile>,
    /// What the ends of all ssts begin with.
    prefix: Vec<u8>,
    /// Eight bytes of each end, behind the prefix.
    heads: Vec<u64>,
    /// Positions of ssts with range tombstones.
    with_tombstones: Vec<u32>,
    min_ts: u64,
}

impl Run {
    /// A run of ssts in key order.
    pub(crate) fn new(ssts: Vec<Arc<SstMeta>>) -> Run {
        let end = |sst: &Arc<SstMeta>| sst.bounds().end.clone();
        let prefix = match (ssts.first(), ssts.last()) {
            (Some(a), Some(b)) => {
                let (a, b) = (end(a), end(b));
                let shared = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
                a[..shared].to_vec()
            }
            _ => Vec::new(),
        };
        let heads = ssts.iter().map(|sst| head_of(&sst.bounds().end[prefix.len()..])).collect();
        let with_tombstones =
            (0..ssts.len() as u32).filter(|i| ssts[*i as usize].tombstones > 0).collect();
        let min_ts = ssts.iter().map(|sst| sst.min_ts).min().unwrap_or(u64::MAX);
        let files = ssts.iter().map(|sst| RunFile::new(sst, &prefix)).collect();
        Run { ssts, files, prefix, heads, with_tombstones, min_ts }
    }

    pub(crate) fn ssts(&self) -> &[Arc<SstMeta>] {
        &self.ssts
    }

    /// The same ssts, as gets use them.
    #[inline]
    pub(crate) fn files(&self) -> &[RunFile] {
        &self.files
    }

    /// Smallest timestamp in the run.
    pub(crate) fn min_ts(&self) -> u64 {
        self.min_ts
    }

    /// Position of the first sst that ends behind `key`.
    #[inline]
    pub(crate) fn first_ending_above(&self, key: &[u8]) -> usize {
        match key.strip_prefix(self.prefix.as_slice()) {
            Some(rest) => self.search(key, head_of(rest)),
            None if key < self.prefix.as_slice() => 0,
            None => self.ssts.len(),
        }
    }

    #[inline]
    fn search(&self, key: &[u8], head: u64) -> usize {
        let n = self.ssts.len();
        let at = partition_point(n, |i| self.heads[i] < head);
        if at == n || self.heads[at] != head {
            return at;
        }
        let equal = partition_point(n - at, |i| self.heads[at + i] == head);
        at + partition_point(equal, |i| self.ssts[at + i].bounds().end.as_ref() <= key)
    }

    /// The sst that may hold `key`.
    #[inline]
    pub(crate) fn file_of(&self, key: &[u8]) -> Option<&RunFile> {
        let Some(rest) = key.strip_prefix(self.prefix.as_slice()) else {
            return self.sst_of(key).map(|at| &self.files[at]);
        };
        let at = self.search(key, head_of(rest));
        (at < self.files.len() && self.starts_up_to(at, key)).then(|| &self.files[at])
    }

    /// Position of the sst that may hold `key`.
    fn sst_of(&self, key: &[u8]) -> Option<usize> {
        let at = self.first_ending_above(key);
        (self.ssts.get(at)?.bounds().start.as_ref() <= key).then_some(at)
    }

    /// Position of the first sst that starts at or behind `key`.
    pub(crate) fn first_starting_at(&self, key: &[u8]) -> usize {
        // Ssts are disjoint: only the first one that ends above `key` can start below it.
        let at = self.first_ending_above(key);
        let starts_below = self.ssts.get(at).is_some_and(|sst| sst.bounds().start.as_ref() < key);
        at + usize::from(starts_below)
    }

    /// Whether sst `at` starts at or below `key`.
    #[inline]
    pub(crate) fn starts_up_to(&self, at: usize, key: &[u8]) -> bool {
        let start = || self.ssts[at].bounds().start.as_ref();
        match key.strip_prefix(self.prefix.as_slice()).map(head_of) {
            Some(head) if self.files[at].start_head != head => self.files[at].start_head < head,
            _ => start() <= key,
        }
    }

    /// Whether any sst has range tombstones.
    pub(crate) fn has_tombstones(&self) -> bool {
        !self.with_tombstones.is_empty()
    }

    /// Position of the first sst with range tombstones from `at` on.
    pub(crate) fn tombstones_from(&self, at: usize) -> Option<usize> {
        let i = self.with_tombstones.partition_point(|sst| (*sst as usize) < at);
        self.with_tombstones.get(i).map(|sst| *sst as usize)
    }

    /// Position of the last sst with range tombstones up to `at`.
    pub(crate) fn tombstones_up_to(&self, at: usize) -> Option<usize> {
        let i = self.with_tombstones.partition_point(|sst| *sst as usize <= at);
        i.checked_sub(1).map(|i| self.with_tombstones[i] as usize)
    }
}
