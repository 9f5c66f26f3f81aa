//! A proposed compaction: inputs, target, reason.

use std::sync::Arc;

use crate::key::KeySpan;
use crate::versions::SstMeta;

/// Why data was moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CompactionReason {
    /// L0 is deep: a part of it went down to the base level.
    L0ToBase,
    /// L0 is deep and the way down was busy: a part of it was merged in place.
    WithinL0,
    /// A level was over its target.
    LevelSize,
    /// Deletes or range tombstones at or below the gc threshold can take effect.
    Garbage,
    /// Ssts that a range tombstone at or below the gc threshold covers were dropped unread.
    DeleteOnly,
    /// Reads paid for overlapping ssts again and again.
    ReadTriggered,
    /// Somebody asked for it.
    Manual,
}

impl CompactionReason {
    /// All of them.
    pub const ALL: [CompactionReason; 7] = [
        CompactionReason::L0ToBase,
        CompactionReason::WithinL0,
        CompactionReason::LevelSize,
        CompactionReason::Garbage,
        CompactionReason::DeleteOnly,
        CompactionReason::ReadTriggered,
        CompactionReason::Manual,
    ];

    /// In words.
    pub fn as_str(self) -> &'static str {
        match self {
            CompactionReason::L0ToBase => "L0 to base",
            CompactionReason::WithinL0 => "within L0",
            CompactionReason::LevelSize => "level size",
            CompactionReason::Garbage => "garbage",
            CompactionReason::DeleteOnly => "delete only",
            CompactionReason::ReadTriggered => "read triggered",
            CompactionReason::Manual => "manual",
        }
    }
}

/// See the module.
#[derive(Clone)]
pub(crate) struct Spec {
    /// Inputs, newest run first, each in key order. Not empty.
    pub(crate) runs: Vec<Vec<Arc<SstMeta>>>,
    pub(crate) output_level: usize,
    pub(crate) reason: CompactionReason,
}

impl Spec {
    pub(crate) fn inputs(&self) -> impl Iterator<Item = &Arc<SstMeta>> {
        self.runs.iter().flatten()
    }

    /// From the first to the last key of the inputs.
    pub(crate) fn hull(&self) -> KeySpan {
        hull_of(self.inputs()).expect("a spec has inputs")
    }

    /// The inputs, if moving them down needs no rewrite: they are one run, nothing is in their way
    /// at the target, and they carry little that could be dropped there.
    pub(crate) fn moves(&self, gc: u64) -> Option<&[Arc<SstMeta>]> {
        let [run] = self.runs.as_slice() else { return None };
        let stays = |sst: &Arc<SstMeta>| {
            sst.level == self.output_level
                || sst.min_ts <= gc
                    && (sst.tombstones > 0 || sst.deletes * 10 >= sst.rows)
                    && sst.deletes + sst.tombstones > 0
        };
        (!run.iter().any(stays)).then_some(run)
    }
}

/// From the first to the last key of some ssts.
pub(crate) fn hull_of<'a>(mut ssts: impl Iterator<Item = &'a Arc<SstMeta>>) -> Option<KeySpan> {
    let mut hull = ssts.next()?.bounds().clone();
    for sst in ssts {
        widen(&mut hull, sst.bounds());
    }
    Some(hull)
}

/// Makes a span include another one.
pub(crate) fn widen(span: &mut KeySpan, other: &KeySpan) {
    if other.start < span.start {
        span.start = other.start.clone();
    }
    if other.end > span.end {
        span.end = other.end.clone();
    }
}
