//! The model: layers of points and tombstones, reads with early stop, compactions that drop.

use crate::rules::Rules;

/// Number of keys; keys are `0..KEYS`, spans are `[start, end)`.
pub const KEYS: u8 = 6;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    pub key: u8,
    pub ts: u64,
    /// `None` is a Delete.
    pub value: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tombstone {
    pub start: u8,
    pub end: u8,
    pub ts: u64,
}

impl Tombstone {
    pub fn covers(&self, key: u8) -> bool {
        self.start <= key && key < self.end
    }
}

/// A memtable or an sst.
#[derive(Clone, Debug, Default)]
pub struct Layer {
    pub arrival: u64,
    pub points: Vec<Point>,
    pub tombstones: Vec<Tombstone>,
    /// An ingest or excise that waits among the memtables.
    pub structural: bool,
    /// Nothing below is seen in this span.
    pub barrier: Option<(u8, u8)>,
}

impl Layer {
    pub fn is_empty(&self) -> bool {
        self.points.is_empty() && self.tombstones.is_empty()
    }

    /// First key and the key after the last.
    fn bounds(&self, rules: &Rules) -> (u8, u8) {
        let points = self.points.iter().map(|p| (p.key, p.key + 1));
        let tombstones = self.tombstones.iter().map(|t| (t.start, t.end));
        let all: Vec<(u8, u8)> = if rules.overlap_counts_tombstones || self.points.is_empty() {
            points.chain(tombstones).collect()
        } else {
            points.collect()
        };
        let start = all.iter().map(|b| b.0).min().unwrap_or(0);
        (start, all.iter().map(|b| b.1).max().unwrap_or(0))
    }

    fn overlaps(&self, other: (u8, u8), rules: &Rules) -> bool {
        let (start, end) = self.bounds(rules);
        start < other.1 && other.0 < end
    }

    /// First key and the key after the last, if it holds anything.
    pub fn extent(&self) -> Option<(u8, u8)> {
        (!self.is_empty()).then(|| self.bounds(&Rules::default()))
    }

    /// Whether two operations touch the same keys.
    pub fn meets(&self, other: &Layer) -> bool {
        let spans = |layer: &Layer| [layer.extent(), layer.barrier];
        let meet = |a: (u8, u8), b: (u8, u8)| a.0 < b.1 && b.0 < a.1;
        spans(self).iter().flatten().any(|a| spans(other).iter().flatten().any(|b| meet(*a, *b)))
    }

    fn max_ts(&self) -> u64 {
        let points = self.points.iter().map(|p| p.ts);
        points.chain(self.tombstones.iter().map(|t| t.ts)).max().unwrap_or(0)
    }

    /// Whether it holds anything that the key or tombstone hides.
    pub fn holds(&self, start: u8, end: u8) -> bool {
        self.points.iter().any(|p| start <= p.key && p.key < end)
            || self.tombstones.iter().any(|t| t.start < end && start < t.end)
    }
}

/// The store. `memtables` has the mutable one last; `l0` is sorted by arrival, newest last.
#[derive(Clone, Default)]
pub struct Store {
    pub memtables: Vec<Layer>,
    pub l0: Vec<Layer>,
    /// Levels 1 and 2: disjoint files.
    pub levels: [Vec<Layer>; 2],
    pub gc: u64,
    pub durable_gc: u64,
}

impl Store {
    /// The read rule with early stop, as the engine applies it.
    pub fn get(&self, key: u8, ts: u64, rules: &Rules) -> Option<u32> {
        let mut upper: Vec<&Layer> = self.l0.iter().chain(&self.memtables).rev().collect();
        if !rules.search_by_arrival {
            upper.sort_by_key(|l| std::cmp::Reverse(l.max_ts()));
        }
        let levels = self.levels.iter().flatten();
        let mut best: Option<Point> = None;
        let mut hidden = 0;
        for layer in upper.into_iter().chain(levels) {
            let point =
                layer.points.iter().filter(|p| p.key == key && p.ts <= ts).max_by_key(|p| p.ts);
            let covering = layer.tombstones.iter().filter(|t| t.covers(key));
            let tombstone =
                covering.filter(|t| t.ts <= ts || !rules.hide_only_if_visible).map(|t| t.ts).max();
            hidden = hidden.max(tombstone.unwrap_or(0));
            if point.is_some_and(|p| best.is_none_or(|b| p.ts > b.ts)) {
                best = point.copied();
            }
            let invisible = layer.points.iter().any(|p| p.key == key);
            let gave = point.is_some() || tombstone.is_some();
            let barred = layer.barrier.is_some_and(|(start, end)| start <= key && key < end);
            if gave || (invisible && !rules.stop_only_at_visible) || (barred && rules.barrier_hides)
            {
                break;
            }
        }
        let best = best?;
        let hides = if rules.point_wins_tie { best.ts < hidden } else { best.ts <= hidden };
        best.value.filter(|_| !hides)
    }

    /// What lies below an output at `level` (0 = L0) that took the place of files up to `arrival`:
    /// in L0, every file that arrived earlier and was not merged may.
    fn holds_below(&self, level: usize, arrival: u64, start: u8, end: u8, rules: &Rules) -> bool {
        let older = self.l0.iter().filter(|f| level == 0 && f.arrival < arrival);
        let older = older.filter(|_| rules.below_includes_older_l0);
        let below = self.levels.iter().skip(level).flatten();
        older.chain(below).any(|f| f.holds(start, end))
    }

    /// Merges layers that were taken out of the store; what may be dropped is dropped. `borrowed`
    /// are tombstones of other layers. The result belongs at `level`.
    pub fn merge(
        &self,
        inputs: &[Layer],
        borrowed: &[Tombstone],
        level: usize,
        rules: &Rules,
    ) -> Layer {
        let arrival = inputs.iter().map(|l| l.arrival).max().unwrap_or(0);
        let mut points: Vec<Point> = inputs.iter().flat_map(|l| l.points.clone()).collect();
        points.sort_by_key(|p| (p.key, std::cmp::Reverse(p.ts)));
        points.dedup_by_key(|p| (p.key, p.ts));
        let tombstones: Vec<Tombstone> = inputs.iter().flat_map(|l| l.tombstones.clone()).collect();

        let kept: Vec<Point> = points
            .iter()
            .filter(|v| !self.point_is_dead(v, &points, tombstones.iter().chain(borrowed), rules))
            .copied()
            .collect();
        let kept_tombstones: Vec<Tombstone> = tombstones
            .iter()
            .filter(|r| !self.tombstone_is_dead(r, &tombstones, rules))
            .copied()
            .collect();
        // Rule 4, after the others: what it hid in the inputs is gone by rules 1 and 2 already.
        let may_go = |ts: u64| ts <= self.gc || !rules.elide_needs_threshold;
        let points = kept
            .iter()
            .filter(|p| {
                let below = self.holds_below(level, arrival, p.key, p.key + 1, rules)
                    && rules.elide_delete_at_bottom_only;
                p.value.is_some() || !may_go(p.ts) || below
            })
            .copied()
            .collect();
        let tombstones = kept_tombstones
            .into_iter()
            .filter(|t| {
                let below = self.holds_below(level, arrival, t.start, t.end, rules)
                    && rules.elide_tombstone_at_bottom_only;
                !may_go(t.ts) || below
            })
            .collect();
        Layer { arrival, points, tombstones, ..Layer::default() }
    }

    /// Rules 1 and 2.
    fn point_is_dead<'a>(
        &self,
        v: &Point,
        points: &[Point],
        mut tombstones: impl Iterator<Item = &'a Tombstone>,
        rules: &Rules,
    ) -> bool {
        let shadowed = points.iter().any(|n| {
            n.key == v.key && v.ts < n.ts && (n.ts <= self.gc || !rules.shadow_needs_threshold)
        });
        shadowed
            || tombstones.any(|t| {
                t.covers(v.key)
                    && (v.ts < t.ts || !rules.cover_compares_timestamps)
                    && (t.ts <= self.gc || !rules.cover_needs_threshold)
            })
    }

    /// Rule 3.
    fn tombstone_is_dead(&self, r: &Tombstone, all: &[Tombstone], rules: &Rules) -> bool {
        all.iter().any(|n| {
            let covers = if rules.cover_whole_fragment {
                n.start <= r.start && r.end <= n.end
            } else {
                n.start < r.end && r.start < n.end
            };
            covers && r.ts < n.ts && n.ts <= self.gc
        })
    }

    /// One edit that drops files unread: those that `killers` cover, and files of tombstones with
    /// nothing left below them. Of files that one killer covers in part, the covered part is cut
    /// away.
    pub fn delete_only(&mut self, killers: &[Tombstone], rules: &Rules) {
        let gc = self.gc;
        let kills = |file: &Layer, key: u8| {
            killers.iter().any(|t| {
                t.covers(key)
                    && (file.max_ts() < t.ts || !rules.file_drop_compares_timestamps)
                    && (t.ts <= gc || !rules.file_drop_needs_threshold)
            })
        };
        let keep = |file: &Layer| {
            let (start, end) = file.bounds(rules);
            if rules.file_drop_covers_all {
                (start..end).any(|key| !kills(file, key))
            } else {
                !(start..end).any(|key| kills(file, key))
            }
        };
        let clip = |file: &mut Layer| {
            let max_ts = file.max_ts();
            let killer = killers.iter().find(|t| t.ts <= gc && max_ts < t.ts);
            let Some(killer) = killer else { return };
            file.points.retain(|p| !killer.covers(p.key));
            let mut rest = Vec::new();
            for t in &file.tombstones {
                let below = Tombstone { end: t.end.min(killer.start), ..*t };
                let above = Tombstone { start: t.start.max(killer.end), ..*t };
                rest.extend([below, above].into_iter().filter(|t| t.start < t.end));
            }
            file.tombstones = rest;
        };
        for files in std::iter::once(&mut self.l0).chain(&mut self.levels) {
            files.retain(keep);
            files.iter_mut().for_each(clip);
            files.retain(|file| !file.is_empty());
        }
        let dead = |file: &Layer, level: usize| {
            let (start, end) = file.bounds(rules);
            file.points.is_empty()
                && file.max_ts() <= gc
                && !(rules.file_elision_at_bottom_only
                    && self.holds_below(level, file.arrival, start, end, rules))
        };
        let l0: Vec<bool> = self.l0.iter().map(|file| dead(file, 0)).collect();
        let levels: Vec<Vec<bool>> =
            (0..2).map(|i| self.levels[i].iter().map(|file| dead(file, i + 1)).collect()).collect();
        let drop = |files: &mut Vec<Layer>, dead: &[bool]| {
            let mut at = dead.iter();
            files.retain(|_| !at.next().expect("one answer per file"));
        };
        drop(&mut self.l0, &l0);
        for (files, dead) in self.levels.iter_mut().zip(&levels) {
            drop(files, dead);
        }
    }

    /// Cuts a merged layer into files at the given keys; tombstones are cut alike.
    pub fn cut(layer: Layer, cuts: &[u8], rules: &Rules) -> Vec<Layer> {
        let mut bounds = vec![0];
        bounds.extend_from_slice(cuts);
        bounds.push(KEYS);
        bounds.sort_unstable();
        bounds.dedup();
        let last = bounds.len() - 2;
        let mut out = Vec::new();
        for (i, pair) in bounds.windows(2).enumerate() {
            let (start, end) = (pair[0], pair[1]);
            let points = layer.points.iter().filter(|p| start <= p.key && p.key < end);
            let loses = !rules.cut_keeps_all_pieces && last > 0 && i == last;
            let pieces = layer.tombstones.iter().filter_map(|t| {
                let piece = Tombstone { start: t.start.max(start), end: t.end.min(end), ts: t.ts };
                let from_before = t.start < start;
                (piece.start < piece.end && !(loses && from_before)).then_some(piece)
            });
            let file = Layer {
                arrival: layer.arrival,
                points: points.copied().collect(),
                tombstones: pieces.collect(),
                ..Layer::default()
            };
            if !file.is_empty() {
                out.push(file);
            }
        }
        out
    }

    /// Takes an L0 file with what must go along: older overlapping ones, until nothing is added.
    pub fn take_l0(&mut self, seed: usize, rules: &Rules) -> Vec<Layer> {
        let mut taken = vec![seed];
        loop {
            let grown: Vec<usize> = (0..seed)
                .filter(|i| !taken.contains(i))
                .filter(|i| {
                    rules.l0_closure
                        && taken.iter().any(|t| {
                            i < t && self.l0[*i].overlaps(self.l0[*t].bounds(rules), rules)
                        })
                })
                .collect();
            if grown.is_empty() {
                break;
            }
            taken.extend(grown);
        }
        taken.sort_unstable();
        taken.into_iter().rev().map(|i| self.l0.remove(i)).collect()
    }

    /// Takes an L0 file with what must go along when the result stays in L0, where it lies by its
    /// newest part: newer overlapping files up to `cap`, until nothing is added. Newest first.
    pub fn take_within_l0(&mut self, seed: usize, cap: usize, rules: &Rules) -> Vec<Layer> {
        let newest = self.l0[cap].arrival;
        let mut taken = if rules.intra_l0_closure { vec![seed] } else { vec![seed, cap] };
        loop {
            let grown: Vec<usize> = (seed + 1..self.l0.len())
                .filter(|i| {
                    rules.intra_l0_closure && !taken.contains(i) && self.l0[*i].arrival <= newest
                })
                .filter(|i| {
                    let bounds = self.l0[*i].bounds(rules);
                    taken.iter().any(|t| t < i && self.l0[*t].overlaps(bounds, rules))
                })
                .collect();
            if grown.is_empty() {
                break;
            }
            taken.extend(grown);
        }
        taken.sort_unstable();
        taken.into_iter().rev().map(|i| self.l0.remove(i)).collect()
    }

    /// Takes the files of a level that overlap any of the inputs.
    pub fn take_overlapping(
        &mut self,
        level: usize,
        inputs: &[Layer],
        rules: &Rules,
    ) -> Vec<Layer> {
        let start = inputs.iter().map(|l| l.bounds(rules).0).min().unwrap_or(0);
        let end = inputs.iter().map(|l| l.bounds(rules).1).max().unwrap_or(0);
        let files = std::mem::take(&mut self.levels[level - 1]);
        let (taken, kept) = files.into_iter().partition(|f| f.overlaps((start, end), rules));
        self.levels[level - 1] = kept;
        taken
    }
}
