//! A run as reads use it: disjoint ssts in key order, and what finds the right one quickly.
//!
//! A search compares eight bytes per step, in a dense array, and follows no pointer to an sst:
//!
//! ```text
//!   ssts    [a .. f)   [f .. m)   [m .. q)   [t .. z)
//!   ends     f          m          q          z        common prefix cut off, first 8 bytes
//! ```

use std::sync::Arc;

use super::sst_meta::SstMeta;
use crate::sstable::{head_of, partition_point};

/// One run of a version.
pub(crate) struct Run {
    ssts: Vec<Arc<SstMeta>>,
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
        Run { ssts, prefix, heads, with_tombstones, min_ts }
    }

    pub(crate) fn ssts(&self) -> &[Arc<SstMeta>] {
        &self.ssts
    }

    /// Smallest timestamp in the run.
    pub(crate) fn min_ts(&self) -> u64 {
        self.min_ts
    }

    /// Position of the first sst that ends behind `key`.
    #[inline]
    pub(crate) fn first_ending_above(&self, key: &[u8]) -> usize {
        let n = self.ssts.len();
        let Some(rest) = key.strip_prefix(self.prefix.as_slice()) else {
            return if key < self.prefix.as_slice() { 0 } else { n };
        };
        let head = head_of(rest);
        let at = partition_point(n, |i| self.heads[i] < head);
        if at == n || self.heads[at] != head {
            return at;
        }
        let equal = partition_point(n - at, |i| self.heads[at + i] == head);
        at + partition_point(equal, |i| self.ssts[at + i].bounds().end.as_ref() <= key)
    }

    /// Position of the first sst that starts at or behind `key`.
    pub(crate) fn first_starting_at(&self, key: &[u8]) -> usize {
        // Ssts are disjoint: only the first one that ends above `key` can start below it.
        let at = self.first_ending_above(key);
        let starts_below = self.ssts.get(at).is_some_and(|sst| sst.bounds().start.as_ref() < key);
        at + usize::from(starts_below)
    }

    /// The sst that may hold `key`.
    #[inline]
    pub(crate) fn sst_of(&self, key: &[u8]) -> Option<&Arc<SstMeta>> {
        let sst = self.ssts.get(self.first_ending_above(key))?;
        (sst.bounds().start.as_ref() <= key).then_some(sst)
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
