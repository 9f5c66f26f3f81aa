//! A version: the live ssts at a moment, immutable.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, OnceLock};

use super::edit::Edit;
use super::l0::Sublevels;
use super::run::Run;
use super::sst_meta::{SstEnv, SstFacts, SstMeta};
use crate::key::KeySpan;

/// L0 to L6.
pub(crate) const LEVELS: usize = 7;

/// The live ssts. L0 is ordered newest arrival first, then by key; other levels by key. A level
/// that an edit does not touch is shared with the version before.
pub(crate) struct Version {
    levels: Vec<Arc<Vec<Arc<SstMeta>>>>,
    bytes: [u64; LEVELS],
    l0: Sublevels,
    /// Made from the levels by the first read.
    runs: OnceLock<Vec<Run>>,
}

impl Version {
    /// No ssts.
    pub(crate) fn empty() -> Version {
        Version {
            levels: vec![Arc::default(); LEVELS],
            bytes: [0; LEVELS],
            l0: Sublevels::default(),
            runs: OnceLock::new(),
        }
    }

    pub(crate) fn level(&self, level: usize) -> &[Arc<SstMeta>] {
        &self.levels[level]
    }

    /// All ssts with their levels' order.
    pub(crate) fn ssts(&self) -> impl Iterator<Item = &Arc<SstMeta>> {
        self.levels.iter().flat_map(|level| level.iter())
    }

    pub(crate) fn level_bytes(&self, level: usize) -> u64 {
        self.bytes[level]
    }

    /// Arrival number of the newest sst of L0; 0 if there is none.
    pub(crate) fn newest_arrival(&self) -> u64 {
        self.levels[0].first().map_or(0, |sst| sst.arrival_high)
    }

    /// L0 as runs.
    pub(crate) fn l0(&self) -> &Sublevels {
        &self.l0
    }

    /// All runs, newest first: sublevels, then levels.
    pub(crate) fn runs(&self) -> impl Iterator<Item = &[Arc<SstMeta>]> {
        let lower = self.levels[1..].iter().filter(|level| !level.is_empty());
        self.l0.runs().chain(lower.map(|level| level.as_slice()))
    }

    /// All runs, newest first, in the form that reads search.
    #[inline]
    pub(crate) fn runs_for_reads(&self) -> &[Run] {
        self.runs.get_or_init(|| self.runs().map(|run| Run::new(run.to_vec())).collect())
    }

    /// The ssts of a level below L0 that overlap a span, in key order.
    pub(crate) fn overlapping(&self, level: usize, span: &KeySpan) -> &[Arc<SstMeta>] {
        debug_assert!(level > 0, "ssts of L0 overlap each other");
        let run = &self.levels[level];
        let first = run.partition_point(|sst| sst.bounds().end <= span.start);
        let end = run.partition_point(|sst| sst.bounds().start < span.end);
        &run[first..end.max(first)]
    }

    /// The version after an edit. The second list has the ssts whose files nobody uses any more.
    /// `lent`: owners of files that the edit adds and that readers may have open already.
    pub(crate) fn apply(
        &self,
        edit: &Edit,
        env: &SstEnv,
        lent: &[Arc<SstMeta>],
    ) -> (Version, Vec<Arc<SstMeta>>) {
        let mut levels = self.levels.clone();
        let mut bytes = self.bytes;
        let dropped_numbers: HashSet<u64> = edit.dropped.iter().copied().collect();
        let mut dropped = Vec::new();
        if !dropped_numbers.is_empty() {
            let goes = |sst: &Arc<SstMeta>| dropped_numbers.contains(&sst.file_no);
            for level in levels.iter_mut().filter(|level| level.iter().any(goes)) {
                dropped.extend(Arc::make_mut(level).extract_if(.., |sst| goes(sst)));
            }
        }
        for sst in &dropped {
            bytes[sst.level] -= sst.size;
        }
        let l0_untouched = dropped.iter().all(|sst| sst.level > 0);
        let mut new = vec![Vec::new(); LEVELS];
        for facts in &edit.added {
            let backing = facts.backing.file_no;
            // Moved ssts and parts of one share its file; a new file has no owner yet.
            let shares = |sst: &&Arc<SstMeta>| sst.backing.file_no == backing;
            let mut owner = dropped.iter().chain(lent).find(shares);
            if facts.is_virtual() {
                let mut there = levels.iter().flat_map(|level| level.iter());
                owner = owner
                    .or_else(|| there.find(shares))
                    .or_else(|| new.iter().flatten().find(shares));
            }
            let meta = owner.map_or_else(|| SstMeta::new(facts, env), |sst| sst.sharing(facts));
            bytes[facts.level] += facts.size;
            new[facts.level].push(Arc::new(meta));
        }
        dropped.retain(|gone| {
            let file_no = gone.backing.file_no;
            let used_by_new = edit.added.iter().any(|new| new.backing.file_no == file_no);
            let mut others = levels.iter().flat_map(|level| level.iter());
            let used_by_old = gone.is_virtual() && others.any(|sst| sst.backing.file_no == file_no);
            !used_by_new && !used_by_old
        });
        let same_layout = l0_untouched && env.l0_sublevels != self.l0.per_file();
        let added = if same_layout { self.l0.with_newer(&new[0]) } else { None };
        let by_key = |a: &Arc<SstMeta>, b: &Arc<SstMeta>| a.bounds().start.cmp(&b.bounds().start);
        insert(&mut levels[0], std::mem::take(&mut new[0]), |a, b| {
            b.arrival_high.cmp(&a.arrival_high).then_with(|| by_key(a, b))
        });
        for (level, new) in levels.iter_mut().zip(new).skip(1) {
            insert(level, new, by_key);
        }
        let l0 = added.unwrap_or_else(|| Sublevels::build(levels[0].to_vec(), !env.l0_sublevels));
        (Version { levels, bytes, l0, runs: OnceLock::new() }, dropped)
    }

    /// Bytes of live files that belong to no live sst.
    pub(crate) fn garbage_bytes(&self) -> u64 {
        let mut files: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        for sst in self.ssts().filter(|sst| sst.is_virtual()) {
            let (_, used) = files.entry(sst.backing.file_no).or_insert((sst.backing.size, 0));
            *used += sst.size;
        }
        files.values().map(|(size, used)| size.saturating_sub(*used)).sum()
    }

    /// Whether an edit still fits: what it drops is live, what it adds below L0 overlaps nothing
    /// that stays. If not, a structural edit came in between, and the edit must not be made.
    pub(crate) fn accepts(&self, edit: &Edit) -> bool {
        let mut missing: HashSet<u64> = edit.dropped.iter().copied().collect();
        if !missing.is_empty() {
            for sst in self.ssts() {
                missing.remove(&sst.file_no);
            }
        }
        let stays = |sst: &Arc<SstMeta>| !edit.dropped.contains(&sst.file_no);
        let free = |new: &SstFacts| {
            new.level == 0 || !self.overlapping(new.level, &new.bounds).iter().any(stays)
        };
        missing.is_empty() && edit.added.iter().all(free)
    }

    /// Invariants I1, I3, I6 and I13 as far as facts tell; the text says what is wrong.
    pub(crate) fn check(&self) -> std::result::Result<(), String> {
        for run in self.runs() {
            for pair in run.windows(2) {
                if pair[0].bounds().end > pair[1].bounds().start {
                    return Err(format!(
                        "I1: ssts {} and {} of one run overlap",
                        pair[0].file_no, pair[1].file_no
                    ));
                }
            }
        }
        for sst in self.ssts() {
            if sst.bounds().is_empty() || sst.min_ts > sst.max_ts || sst.max_point_ts > sst.max_ts {
                return Err(format!("I6: facts of sst {} cannot be right", sst.file_no));
            }
            if sst.arrival_low > sst.arrival_high {
                return Err(format!("I3: arrival of sst {} is reversed", sst.file_no));
            }
        }
        // Below L0, arrival bounds of whole ssts are too coarse to compare: a compaction takes
        // parts of several runs along.
        self.l0.check()?;
        let mut on_files: Vec<&Arc<SstMeta>> = self.ssts().collect();
        on_files.sort_by(|a, b| {
            let files = a.backing.file_no.cmp(&b.backing.file_no);
            files.then_with(|| a.bounds().start.cmp(&b.bounds().start))
        });
        for pair in on_files.windows(2).filter(|p| p[0].backing.file_no == p[1].backing.file_no) {
            let (a, b) = (pair[0], pair[1]);
            let parts = a.is_virtual() && b.is_virtual() && a.backing == b.backing;
            if !parts || a.bounds().end > b.bounds().start {
                let (a, b) = (a.file_no, b.file_no);
                return Err(format!("I13: ssts {a} and {b} share bytes of one file"));
            }
        }
        let mut numbers: Vec<u64> = self.ssts().map(|sst| sst.file_no).collect();
        numbers.sort_unstable();
        if numbers.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err("I13: an sst is live twice".into());
        }
        Ok(())
    }
}

/// Puts ssts into a level, each behind those that it does not come before.
fn insert(
    level: &mut Arc<Vec<Arc<SstMeta>>>,
    new: Vec<Arc<SstMeta>>,
    order: impl Fn(&Arc<SstMeta>, &Arc<SstMeta>) -> Ordering,
) {
    /// More than so many are sorted in together.
    const MANY: usize = 16;
    if new.is_empty() {
        return;
    }
    let level = Arc::make_mut(level);
    if new.len() > MANY {
        level.extend(new);
        level.sort_by(order);
        return;
    }
    for sst in new {
        let at = level.partition_point(|other| order(other, &sst) != Ordering::Greater);
        level.insert(at, sst);
    }
}
