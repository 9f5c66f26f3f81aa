//! Ingest and excise in the model: layers among the memtables, then one change of the files.
//!
//! An operation that overlaps nothing in memory is carried out at once, below all memtables.
//! Otherwise the mutable memtable is sealed, the operation goes on top of it, and is carried out
//! when everything older was flushed. A crash loses it with what it waits for.

use crate::history::World;
use crate::store::{KEYS, Layer, Point, Store, Tombstone};

impl World<'_> {
    /// An excise, an ingest, or both at once.
    pub fn restructure(&mut self) -> &'static str {
        let excises = self.random.chance(1, 2);
        let ingests = !excises || self.random.chance(1, 2);
        let before = self.oracle.clone();
        let mut op = Layer { structural: true, ..Layer::default() };
        if excises {
            let start = self.random.below(u64::from(KEYS)) as u8;
            let end = start + 1 + self.random.below(u64::from(KEYS - start)) as u8;
            op.barrier = Some((start, end));
            self.oracle.excise(start, end);
        }
        if ingests {
            self.lower_threshold(&op);
            self.fill(&mut op);
        }
        let clash =
            |p: &Point| self.oracle.points.iter().any(|(_, o)| o.key == p.key && o.ts == p.ts);
        if op.points.iter().any(clash) {
            self.oracle = before;
            return "nothing";
        }
        // What was read at the threshold may be gone now, or may be another one.
        if excises {
            self.fenced = None;
        }
        // There is no wal here: a crash must not keep this one and lose one that came before.
        let mut waits = !self.undo.is_empty();
        waits |= self.store.memtables.iter().any(|m| {
            let touches = |(start, end): (u8, u8)| m.holds(start, end);
            op.extent().is_some_and(touches)
                || op.barrier.is_some_and(touches)
                || (m.structural && m.meets(&op))
        });
        if waits && self.rules.ingest_seals_memtables {
            self.seal();
            op.arrival = self.arrival - 500;
            self.record(&op);
            self.undo.push((op.arrival, before));
            if !self.rules.excise_waits_for_memtables
                && let Some((start, end)) = op.barrier.take()
            {
                self.excise_files(start, end);
            }
            let at = self.store.memtables.len() - 1;
            self.store.memtables.insert(at, op);
            return "an operation that waits";
        }
        let flushed = self.store.l0.iter().map(|f| f.arrival).max().unwrap_or(0);
        op.arrival = flushed + 1;
        self.record(&op);
        self.carry_out(op);
        "an operation at once"
    }

    /// What is put in the place of a span may be read from an earlier time on than all the rest.
    fn lower_threshold(&mut self, op: &Layer) {
        let Some((start, end)) = op.barrier.filter(|_| self.random.chance(1, 2)) else { return };
        let lowered = self.random.below(self.store.gc + 1);
        self.oracle.floors[start as usize..end as usize].fill(lowered);
        if self.rules.old_ingest_lowers_threshold {
            self.store.gc = lowered;
        }
        if self.rules.lowered_threshold_durable_first {
            self.store.durable_gc = self.store.gc;
        }
    }

    /// Some rows of one timestamp, newer than what is there; where all was cut out at any time.
    fn fill(&mut self, op: &mut Layer) {
        let keys: Vec<u8> = (0..KEYS).filter(|_| self.random.chance(1, 4)).collect();
        let (first, last) = (keys.first().copied().unwrap_or(2), keys.last().copied().unwrap_or(2));
        let (points, tombstones) = self.oracle.newest(first, last + 1);
        let newer = (points + 1).max(tombstones);
        let cut_out = op.barrier.is_some_and(|(start, end)| start <= first && last < end);
        let may_be_old = cut_out || !self.rules.old_ingest_needs_excise;
        let ts = match may_be_old && self.random.chance(1, 2) {
            true => newer + self.random.below(4),
            false => self.timestamp(newer, (first, last + 1)),
        };
        for key in keys {
            self.next_value += 1;
            let value = self.random.chance(3, 4).then_some(self.next_value);
            op.points.push(Point { key, ts, value });
        }
        if op.points.is_empty() || self.random.chance(1, 3) {
            op.tombstones.push(Tombstone { start: first, end: last + 1, ts });
        }
    }

    fn record(&mut self, op: &Layer) {
        let arrival = op.arrival;
        self.oracle.points.extend(op.points.iter().map(|p| (arrival, *p)));
        self.oracle.tombstones.extend(op.tombstones.iter().map(|t| (arrival, *t)));
    }

    /// Makes an operation part of the files.
    pub fn carry_out(&mut self, mut op: Layer) {
        self.undo.retain(|(arrival, _)| *arrival != op.arrival);
        if let Some((start, end)) = op.barrier.take() {
            self.excise_files(start, end);
        }
        op.structural = false;
        let Some((start, end)) = op.extent() else { return };
        let above = !self.rules.ingest_looks_at_l0 || !holds(&self.store.l0, start, end);
        let level = match above {
            false => 0,
            true if holds(&self.store.levels[0], start, end) => 0,
            true if holds(&self.store.levels[1], start, end) => 1,
            true => 2,
        };
        if level == 0 {
            return self.add_l0(op);
        }
        // A file whose bounds are in the way, but no data, is cut in two.
        let files = std::mem::take(&mut self.store.levels[level - 1]);
        let cut = |file: Layer| Store::cut(file, &[start, end], self.rules);
        self.store.levels[level - 1] = files.into_iter().flat_map(cut).chain([op]).collect();
    }

    fn excise_files(&mut self, start: u8, end: u8) {
        // What a compaction that began before would put back.
        let stale = self.store.levels[1].iter().find(|file| file.holds(start, end)).cloned();
        let cuts_tombstones = self.rules.excise_cuts_tombstones;
        let excise = |file: &mut Layer| {
            file.points.retain(|p| p.key < start || p.key >= end);
            if cuts_tombstones {
                file.tombstones = outside(&file.tombstones, start, end);
            }
        };
        self.store.l0.iter_mut().for_each(excise);
        self.store.l0.retain(|file| !file.is_empty());
        for files in &mut self.store.levels {
            files.iter_mut().for_each(excise);
            let all = std::mem::take(files);
            let cut = |file: Layer| Store::cut(file, &[start, end], self.rules);
            *files = all.into_iter().flat_map(cut).collect();
        }
        if !self.rules.excise_cancels_compactions
            && let Some(stale) = stale
        {
            self.store.levels[1].push(stale);
        }
    }
}

fn holds(files: &[Layer], start: u8, end: u8) -> bool {
    files.iter().any(|file| file.holds(start, end))
}

/// The parts of tombstones beside a span.
pub fn outside(tombstones: &[Tombstone], start: u8, end: u8) -> Vec<Tombstone> {
    let beside = |t: &Tombstone| {
        let low = Tombstone { end: t.end.min(start), ..*t };
        let high = Tombstone { start: t.start.max(end), ..*t };
        [low, high].into_iter().filter(|t| t.start < t.end)
    };
    tombstones.iter().flat_map(beside).collect()
}
