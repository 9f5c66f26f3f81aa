//! What one job does of a proposed compaction: as much as ends soon.
//!
//! A spec grows with what overlaps: deep stacks of wide ssts over a large base level come to
//! gigabytes. As one job that would run for a minute, relieve nobody before its end, and be lost
//! when the process is killed. So a job takes a span of keys of it, from where the stack is deepest
//! up to a *cut*, and is installed by itself; the rest is proposed anew, if nothing is more urgent
//! by then. No byte is written more often for that: a column takes all layers at once.
//!
//! ```text
//!   spec    L0.1     |-------- f7 ---------|              unit    f3, f7, b1, b2 up to the cut
//!           L0.0   |------ f3 ------|--- f5 ---|          after   |-- new --|-- f7' ---|
//!           base   |-- b1 --|-- b2 -|-- b3 ----|                  |         |f3'|- f5 ---|
//!                               ^ cut                             |         |b2'|-- b3 --|
//! ```
//!
//! What lies outside is not read: it stays where it was as a virtual sst of the same file (f3',
//! f7', b2'). That breaks no order: whatever had to come along with a part of the span lies in the
//! span, too. A cut at the end of an sst of the lowest run leaves that run whole.

use std::sync::Arc;

use bytes::Bytes;

use super::spec::Spec;
use crate::error::Result;
use crate::iter::marks_of;
use crate::key::KeySpan;
use crate::versions::{SstEnv, SstFacts, SstMeta};

/// A unit is cut to within this part of its size: ssts that are smaller are not looked into.
const GRAINS: u64 = 16;

/// See the module.
pub(crate) struct Unit {
    /// What is merged or moved: the inputs within the span.
    pub(crate) spec: Spec,
    /// Ssts of the version that it uses up, or a part of them.
    pub(crate) used: Vec<Arc<SstMeta>>,
    /// What is left of those.
    pub(crate) rest: Vec<SstFacts>,
}

impl Unit {
    /// All of a spec.
    pub(crate) fn whole(spec: Spec) -> Unit {
        let used = spec.inputs().cloned().collect();
        Unit { spec, used, rest: Vec::new() }
    }

    /// About `most` bytes of a spec; all of it if that is not much more. `number` gives numbers for
    /// virtual ssts.
    pub(crate) fn of(
        spec: Spec,
        most: u64,
        env: &SstEnv,
        mut number: impl FnMut() -> u64,
    ) -> Result<Unit> {
        let Some(span) = span_of(&spec, most, env)? else { return Ok(Unit::whole(spec)) };
        let (mut runs, mut used, mut rest) = (Vec::new(), Vec::new(), Vec::new());
        for run in &spec.runs {
            let mut part = Vec::new();
            for sst in run.iter().filter(|sst| sst.bounds().overlaps(&span)) {
                used.push(sst.clone());
                if span.covers(sst.bounds()) {
                    part.push(sst.clone());
                    continue;
                }
                let inside = sst.clip(&span, number(), env)?;
                part.extend(inside.map(|facts| Arc::new(sst.sharing(&facts))));
                rest.extend(sst.cut_out(&span, env, &mut number)?);
            }
            if !part.is_empty() {
                runs.push(part);
            }
        }
        if runs.is_empty() {
            return Ok(Unit::whole(spec));
        }
        Ok(Unit { spec: Spec { runs, ..spec }, used, rest })
    }
}

/// The keys of the inputs that one unit takes; `None` if they are not worth to be cut.
fn span_of(spec: &Spec, most: u64, env: &SstEnv) -> Result<Option<KeySpan>> {
    let all: u64 = spec.inputs().map(|sst| sst.size).sum();
    let enough = most.saturating_add(most / 2);
    if all <= enough {
        return Ok(None);
    }
    let hull = spec.hull();
    let from = first_key(spec, most).unwrap_or_else(|| hull.start.clone());
    let behind = KeySpan { start: from, end: hull.end };
    let (mut seen, mut cut, mut clean) = (0, None, None);
    for (key, bytes, is_end) in marks_behind(spec, &behind, most, env)? {
        seen += bytes;
        let is_too_far = seen > most.saturating_add(most / 3) && cut.is_some();
        if key >= behind.end || is_too_far {
            break;
        }
        if key <= behind.start {
            continue;
        }
        if is_end && seen >= most / 2 && seen <= most.saturating_add(most / 3) {
            clean = Some(key.clone());
        }
        if seen >= most && cut.is_none() {
            cut = Some(key);
        }
    }
    let end = clean.or(cut).unwrap_or(behind.end);
    Ok(Some(KeySpan { start: behind.start, end }))
}

/// Where most of the ssts that leave their places lie over each other: there it is most urgent, and
/// in front of all of them there is nothing to do. A small sst of the level that they go to is not
/// cut in two for that.
fn first_key(spec: &Spec, most: u64) -> Option<Bytes> {
    let within_l0 = spec.output_level == 0;
    let leaves = |sst: &&Arc<SstMeta>| within_l0 || sst.level != spec.output_level;
    let mut edges: Vec<(&Bytes, bool)> = Vec::new();
    for sst in spec.inputs().filter(leaves) {
        edges.push((&sst.bounds().start, true));
        edges.push((&sst.bounds().end, false));
    }
    // Where one ends another may begin: they do not lie over each other.
    edges.sort_unstable();
    let (mut depth, mut deepest, mut first) = (0, 0, None);
    for (key, begins) in edges {
        depth = if begins { depth + 1 } else { depth - 1 };
        if depth > deepest {
            (deepest, first) = (depth, Some(key));
        }
    }
    let first = first?;
    let small =
        |sst: &&Arc<SstMeta>| !leaves(sst) && sst.size <= most / 4 && sst.bounds().contains(first);
    let reaches = spec.inputs().filter(small).map(|sst| &sst.bounds().start).min();
    Some(reaches.unwrap_or(first).clone())
}

/// Keys of the inputs in a span with the bytes in front of each, in order, and whether an sst of
/// the lowest run ends there.
fn marks_behind(
    spec: &Spec,
    span: &KeySpan,
    most: u64,
    env: &SstEnv,
) -> Result<Vec<(Bytes, u64, bool)>> {
    let grain = (most / GRAINS).max(1);
    let mut marks: Vec<(Bytes, u64, bool)> = Vec::new();
    for (n, run) in spec.runs.iter().enumerate() {
        let is_lowest = n + 1 == spec.runs.len();
        for sst in run.iter().filter(|sst| sst.bounds().overlaps(span)) {
            let mut inside = Vec::new();
            if sst.size > grain {
                let (part, file) = (span.intersect(sst.bounds()), sst.backing.size);
                marks_of(sst.reader(env)?, &part, file, (file / grain) as usize, &mut inside)?;
            }
            let known: u64 = inside.iter().map(|mark| mark.bytes).sum();
            marks.extend(inside.into_iter().map(|mark| (mark.key, mark.bytes, false)));
            let is_whole = span.covers(sst.bounds());
            let unknown = if is_whole { sst.size.saturating_sub(known) } else { 0 };
            marks.push((sst.bounds().end.clone(), unknown, is_lowest));
        }
    }
    marks.sort_unstable();
    Ok(marks)
}

#[cfg(test)]
mod tests {
    use braid_env::fs::MemFs;

    use super::*;
    use crate::cache::BlockCache;
    use crate::compaction::CompactionReason;
    use crate::key::Kind;
    use crate::options::{Codec, Options};
    use crate::sstable::{SstWriter, WRITE_SIZE, WriterOptions, sst_path};

    struct Files {
        env: SstEnv,
        next: u64,
    }

    impl Files {
        fn new() -> Files {
            let fs = Arc::new(MemFs::new());
            let cache = Arc::new(BlockCache::new(1 << 20));
            Files { env: SstEnv { fs, dir: "/".into(), cache, l0_sublevels: true }, next: 0 }
        }

        /// An sst with the keys of a range in steps, 100 bytes each.
        fn sst(&mut self, level: usize, keys: std::ops::Range<u32>, step: usize) -> Arc<SstMeta> {
            self.next += 1;
            let options = WriterOptions {
                block_size: 500,
                index_partition_size: 200,
                filter_bits_per_key: 0,
                codec: Codec::None,
                row_class: Options::default().row_class,
                write_size: WRITE_SIZE,
            };
            let path = sst_path(&self.env.dir, self.next);
            let mut sst = SstWriter::create(&*self.env.fs, path, self.next, options).unwrap();
            for n in keys.step_by(step) {
                let key = format!("{n:05}");
                sst.add(key.as_bytes(), self.next, Kind::Put, &[7; 95]).unwrap();
            }
            let (properties, size) = sst.finish(&[], (self.next, self.next)).unwrap();
            let facts = SstFacts::of(self.next, level, size, &properties);
            Arc::new(SstMeta::new(&facts, &self.env))
        }

        fn keys(&self, sst: &SstMeta) -> Vec<Vec<u8>> {
            let mut entries = sst.entries(&self.env).unwrap();
            let mut keys = Vec::new();
            while let Some(key) = entries.key() {
                keys.push(key.to_vec());
                entries.advance().unwrap();
            }
            keys
        }

        /// Cuts a spec, and checks that every key of the inputs is in the unit or in the rest.
        fn unit(&mut self, runs: Vec<Vec<Arc<SstMeta>>>, level: usize, most: u64) -> Unit {
            let spec = Spec { runs, output_level: level, reason: CompactionReason::L0ToBase };
            let mut next = 100;
            let number = || {
                next += 1;
                next
            };
            let unit = Unit::of(spec, most, &self.env, number).unwrap();
            let span = unit.spec.hull();
            for sst in &unit.used {
                let file = sst.backing.file_no;
                let rest = unit.rest.iter().filter(|facts| facts.backing.file_no == file);
                let rest = rest.map(|facts| Arc::new(sst.sharing(facts)));
                let own = unit.spec.inputs().filter(|part| part.backing.file_no == file);
                let mut parts: Vec<Arc<SstMeta>> = rest.chain(own.cloned()).collect();
                parts.sort_by(|a, b| a.bounds().start.cmp(&b.bounds().start));
                let keys: Vec<_> = parts.iter().flat_map(|part| self.keys(part)).collect();
                assert_eq!(keys, self.keys(sst), "sst {}", sst.file_no);
            }
            assert!(unit.rest.iter().all(|facts| !facts.bounds.overlaps(&span)));
            unit
        }
    }

    fn bytes(unit: &Unit) -> u64 {
        unit.spec.inputs().map(|sst| sst.size).sum()
    }

    #[test]
    fn a_tall_and_wide_stack_is_done_in_columns() {
        let mut files = Files::new();
        let stack: Vec<_> = (0..10).map(|_| vec![files.sst(0, 0..1_000, 10)]).collect();
        let base: Vec<_> = (0..10).map(|n| files.sst(6, n * 100..n * 100 + 100, 1)).collect();
        let all: u64 = stack.iter().flatten().chain(&base).map(|sst| sst.size).sum();
        let runs = || stack.iter().cloned().chain([base.clone()]).collect::<Vec<_>>();
        let whole = files.unit(runs(), 6, all);
        assert!(whole.rest.is_empty() && bytes(&whole) == all);
        let unit = files.unit(runs(), 6, all / 5);
        assert_eq!(unit.spec.runs.len(), 11, "all layers of it");
        assert!(bytes(&unit) > all / 8 && bytes(&unit) < all / 3, "{} of {all}", bytes(&unit));
        // The lowest run is not cut, all others are.
        assert_eq!(unit.spec.runs[10].len(), unit.used.len() - 10);
        assert!(unit.rest.len() == 10 && unit.rest.iter().all(|facts| facts.level == 0));
        // What is left is cut again, until nothing is.
        let (mut rounds, mut left) = (0, runs());
        loop {
            let unit = files.unit(left.clone(), 6, all / 5);
            rounds += 1;
            for run in &mut left {
                let rest = unit.rest.iter().filter_map(|facts| {
                    let own = run.iter().find(|s| s.backing.file_no == facts.backing.file_no)?;
                    Some(Arc::new(own.sharing(facts)))
                });
                let rest: Vec<_> = rest.collect();
                run.retain(|sst| !unit.used.iter().any(|used| used.file_no == sst.file_no));
                run.splice(0..0, rest);
            }
            left.retain(|run| !run.is_empty());
            if left.is_empty() {
                break;
            }
        }
        assert!((4..9).contains(&rounds), "{rounds} rounds");
    }

    #[test]
    fn what_lies_in_front_of_the_first_sst_that_goes_down_is_left_alone() {
        let mut files = Files::new();
        let upper = files.sst(5, 700..900, 1);
        let lower: Vec<_> = [0..300, 300..1_000, 1_000..1_300]
            .into_iter()
            .map(|keys| files.sst(6, keys, 1))
            .collect();
        let most = upper.size;
        let unit = files.unit(vec![vec![upper.clone()], lower.clone()], 6, most);
        assert!(unit.used.iter().all(|sst| sst.file_no != lower[0].file_no));
        let first = unit.spec.hull().start;
        assert_eq!(first, upper.bounds().start, "the large one below is cut there");
        assert!(unit.rest.iter().any(|facts| facts.bounds.end <= first));
        assert!(bytes(&unit) < 2 * most);
        // A small one that reaches over it is not.
        let small = files.sst(6, 690..710, 1);
        let large = files.sst(6, 710..2_000, 1);
        let unit = files.unit(vec![vec![upper], vec![small.clone(), large]], 6, most);
        assert_eq!(unit.spec.hull().start, small.bounds().start);
    }

    #[test]
    fn ssts_that_nothing_in_front_of_the_cut_lies_under_can_move() {
        let mut files = Files::new();
        let (upper, lower) = (files.sst(0, 0..1_000, 1), files.sst(6, 900..1_000, 1));
        let most = upper.size / 3;
        let unit = files.unit(vec![vec![upper], vec![lower]], 6, most);
        assert_eq!(unit.spec.runs.len(), 1);
        assert_eq!(unit.spec.moves(0).map(<[_]>::len), Some(1));
    }
}
