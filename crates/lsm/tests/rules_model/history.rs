//! Random histories of a store, with the oracle beside it.

use braid_env::random::Random;

use crate::rules::Rules;
use crate::store::{KEYS, Layer, Point, Store, Tombstone};
use crate::structure::outside;

const STEPS: u64 = 220;
/// Between the arrival numbers of memtables there is room for operations.
const STEP: u64 = 1_000;

/// A wrong answer.
pub struct Failure {
    /// After how many steps.
    pub step: u64,
    /// What was expected and what came.
    pub story: String,
}

/// Everything that was ever written, with the arrival of the memtable it went into.
#[derive(Clone, Default)]
pub struct Oracle {
    pub points: Vec<(u64, Point)>,
    pub tombstones: Vec<(u64, Tombstone)>,
    /// By key: the oldest time that is read. It is above the store's threshold where that one was
    /// lowered for other keys.
    pub floors: [u64; KEYS as usize],
}

impl Oracle {
    /// The oldest time that is read in all of a span.
    pub fn floor(&self, start: u8, end: u8) -> u64 {
        self.floors[start as usize..end as usize].iter().copied().max().unwrap_or(0)
    }

    fn get(&self, key: u8, ts: u64) -> Option<u32> {
        let newest = self
            .points
            .iter()
            .map(|(_, p)| p)
            .filter(|p| p.key == key && p.ts <= ts)
            .max_by_key(|p| p.ts)?;
        let covered =
            self.tombstones.iter().any(|(_, t)| t.covers(key) && newest.ts < t.ts && t.ts <= ts);
        newest.value.filter(|_| !covered)
    }

    /// Forgets a span.
    pub fn excise(&mut self, start: u8, end: u8) {
        self.points.retain(|(_, p)| p.key < start || p.key >= end);
        let cut = |(arrival, t): &(u64, Tombstone)| {
            let arrival = *arrival;
            outside(&[*t], start, end).into_iter().map(move |t| (arrival, t))
        };
        self.tombstones = self.tombstones.iter().flat_map(cut).collect();
    }

    /// The newest timestamp over a span: of points, of tombstones.
    pub fn newest(&self, start: u8, end: u8) -> (u64, u64) {
        let points = self.points.iter().filter(|(_, p)| start <= p.key && p.key < end);
        let tombstones = self.tombstones.iter().filter(|(_, t)| t.start < end && start < t.end);
        (
            points.map(|(_, p)| p.ts).max().unwrap_or(0),
            tombstones.map(|(_, t)| t.ts).max().unwrap_or(0),
        )
    }
}

pub struct World<'a> {
    pub random: Random,
    pub rules: &'a Rules,
    pub store: Store,
    pub oracle: Oracle,
    pub arrival: u64,
    pub next_value: u32,
    /// What was expected before each operation that still waits, by its arrival.
    pub undo: Vec<(u64, Oracle)>,
    /// What was read at the GC threshold when it was set: nothing arrives at or below it any more,
    /// so these answers never change.
    pub fenced: Option<(u64, Vec<Option<u32>>)>,
}

/// Runs one history. Returns the number of reads compared.
pub fn run(seed: u64, rules: &Rules) -> Result<u64, Failure> {
    let mut store = Store::default();
    store.memtables.push(Layer { arrival: STEP, ..Layer::default() });
    let mut world = World {
        random: Random::seeded(seed),
        rules,
        store,
        oracle: Oracle::default(),
        arrival: STEP,
        undo: Vec::new(),
        next_value: 0,
        fenced: None,
    };
    let mut reads = 0;
    for step in 0..STEPS {
        let what = world.step();
        reads +=
            world.check().map_err(|story| Failure { step, story: format!("{what}: {story}") })?;
    }
    Ok(reads)
}

impl World<'_> {
    fn step(&mut self) -> &'static str {
        match self.random.below(100) {
            0..=49 => self.write(),
            50..=54 => self.restructure(),
            55..=66 => self.flush(),
            67..=76 => self.compact_l0(),
            77..=83 => self.compact_l1(),
            84..=88 => self.compact_within_l0(),
            89..=91 => self.drop_unread(),
            92..=97 => self.move_threshold(),
            _ => self.crash(),
        }
    }

    /// A timestamp that need not be larger than those of other keys.
    pub fn timestamp(&mut self, at_least: u64, (start, end): (u8, u8)) -> u64 {
        let floor = self.oracle.floor(start, end);
        let fence = if self.rules.contract_fence { floor + 1 } else { 1 };
        let base = if self.rules.contract_monotone { at_least } else { at_least / 2 };
        base.max(fence) + self.random.below(4)
    }

    fn write(&mut self) -> &'static str {
        let arrival = self.arrival;
        let memtable = self.store.memtables.last_mut().expect("there is a mutable one");
        debug_assert_eq!(memtable.arrival, arrival);
        if self.random.chance(1, 5) {
            let start = self.random.below(u64::from(KEYS)) as u8;
            let end = start + 1 + self.random.below(u64::from(KEYS - start)) as u8;
            let (points, tombstones) = self.oracle.newest(start, end);
            let ts = self.timestamp((points + 1).max(tombstones), (start, end));
            let tombstone = Tombstone { start, end, ts };
            self.oracle.tombstones.push((arrival, tombstone));
            self.mutable().tombstones.push(tombstone);
            return "range delete";
        }
        let key = self.random.below(u64::from(KEYS)) as u8;
        let (points, tombstones) = self.oracle.newest(key, key + 1);
        let ts = self.timestamp((points + 1).max(tombstones), (key, key + 1));
        if self.oracle.points.iter().any(|(_, p)| p.key == key && p.ts == ts) {
            // Two entries with equal key and timestamp are nobody's promise.
            return "nothing";
        }
        self.next_value += 1;
        let value = self.random.chance(3, 4).then_some(self.next_value);
        let point = Point { key, ts, value };
        self.oracle.points.push((arrival, point));
        self.mutable().points.push(point);
        if value.is_some() { "put" } else { "delete" }
    }

    fn mutable(&mut self) -> &mut Layer {
        self.store.memtables.last_mut().expect("there is a mutable one")
    }

    /// Seals the mutable memtable; writes out the oldest one.
    fn flush(&mut self) -> &'static str {
        self.seal();
        if self.store.memtables.len() > 2 || self.random.chance(1, 2) {
            let oldest = self.store.memtables.remove(0);
            if oldest.structural {
                self.carry_out(oldest);
                return "an operation carried out";
            }
            let merged = self.store.merge(&[oldest], &[], 0, self.rules);
            self.add_l0(merged);
        }
        "flush"
    }

    /// Puts a flushed or merged layer into L0, cut into files that share its arrival.
    pub fn seal(&mut self) {
        self.arrival += STEP;
        self.store.memtables.push(Layer { arrival: self.arrival, ..Layer::default() });
    }

    pub fn add_l0(&mut self, layer: Layer) {
        let cuts = self.cuts();
        let files = Store::cut(layer, &cuts, self.rules);
        self.store.l0.extend(files.into_iter().filter(|file| !file.is_empty()));
        self.store.l0.sort_by_key(|f| f.arrival);
    }

    /// Tombstones that a compaction may borrow from files that are not its inputs.
    fn borrowed(&mut self) -> Vec<Tombstone> {
        if self.random.chance(1, 2) {
            return Vec::new();
        }
        let files = self.store.l0.iter().chain(self.store.levels.iter().flatten());
        let mut out: Vec<Tombstone> = files.flat_map(|f| f.tombstones.clone()).collect();
        if !self.rules.tombstone_durable_first {
            out.extend(self.store.memtables.iter().flat_map(|m| m.tombstones.clone()));
        }
        out
    }

    fn cuts(&mut self) -> Vec<u8> {
        (0..self.random.below(3)).map(|_| self.random.below(u64::from(KEYS)) as u8).collect()
    }

    fn compact_l0(&mut self) -> &'static str {
        if self.store.l0.is_empty() {
            return "nothing";
        }
        let borrowed = self.borrowed();
        let seed = self.random.below(self.store.l0.len() as u64) as usize;
        let mut inputs = self.store.take_l0(seed, self.rules);
        self.install_level(1, &mut inputs, &borrowed);
        "compaction of L0 into L1"
    }

    fn compact_l1(&mut self) -> &'static str {
        if self.store.levels[0].is_empty() {
            return "nothing";
        }
        let borrowed = self.borrowed();
        let seed = self.random.below(self.store.levels[0].len() as u64) as usize;
        let mut inputs = vec![self.store.levels[0].remove(seed)];
        self.install_level(2, &mut inputs, &borrowed);
        "compaction of L1 into L2"
    }

    fn install_level(&mut self, level: usize, inputs: &mut Vec<Layer>, borrowed: &[Tombstone]) {
        let overlapping = self.store.take_overlapping(level, inputs, self.rules);
        inputs.extend(overlapping);
        let merged = self.store.merge(inputs, borrowed, level, self.rules);
        let cuts = self.cuts();
        self.store.levels[level - 1].extend(Store::cut(merged, &cuts, self.rules));
    }

    fn compact_within_l0(&mut self) -> &'static str {
        let count = self.store.l0.len();
        if count < 2 {
            return "nothing";
        }
        let from = self.random.below(count as u64 - 1) as usize;
        let cap = from + 1 + self.random.below((count - from - 1) as u64) as usize;
        let inputs = self.store.take_within_l0(from, cap, self.rules);
        let merged = self.store.merge(&inputs, &[], 0, self.rules);
        self.add_l0(merged);
        "compaction within L0"
    }

    fn drop_unread(&mut self) -> &'static str {
        let killers = self.borrowed();
        self.store.delete_only(&killers, self.rules);
        "files dropped unread"
    }

    fn newest(&self) -> u64 {
        let (points, tombstones) = self.oracle.newest(0, KEYS);
        points.max(tombstones)
    }

    fn move_threshold(&mut self) -> &'static str {
        let room = self.newest().saturating_sub(self.store.gc);
        self.store.gc += self.random.below(room / 2 + 1);
        if self.rules.threshold_durable_first || self.random.chance(1, 2) {
            self.store.durable_gc = self.store.gc;
        }
        let gc = self.store.gc;
        let oracles = self.undo.iter_mut().map(|(_, oracle)| oracle);
        for floor in oracles.chain([&mut self.oracle]).flat_map(|oracle| &mut oracle.floors) {
            *floor = gc.max(*floor);
        }
        self.fenced = Some((gc, self.read_all(gc)));
        "new GC threshold"
    }

    /// Everything that is not flushed is lost: there is no wal here. What remains is a prefix.
    fn crash(&mut self) -> &'static str {
        let lost = self.store.memtables.first().map_or(u64::MAX, |m| m.arrival);
        if let Some(at) = self.undo.iter().position(|(arrival, _)| *arrival >= lost) {
            self.oracle = self.undo.swap_remove(at).1;
        }
        self.undo.clear();
        self.oracle.points.retain(|(arrival, _)| *arrival < lost);
        self.oracle.tombstones.retain(|(arrival, _)| *arrival < lost);
        self.arrival += STEP;
        self.store.memtables = vec![Layer { arrival: self.arrival, ..Layer::default() }];
        // What was read with a threshold that is forgotten is read without it.
        if self.store.durable_gc < self.store.gc {
            let durable = self.store.durable_gc;
            self.oracle.floors.iter_mut().for_each(|floor| *floor = durable.min(*floor));
        }
        self.store.gc = self.store.durable_gc;
        self.fenced = None;
        "crash"
    }

    fn read_all(&self, ts: u64) -> Vec<Option<u32>> {
        (0..KEYS).map(|key| self.store.get(key, ts, self.rules)).collect()
    }

    fn check(&mut self) -> Result<u64, String> {
        let newest = self.newest();
        let mut reads = 0;
        if let Some((ts, before)) = &self.fenced {
            let now = self.read_all(*ts);
            if now != *before {
                return Err(format!("reads at the threshold {ts} changed: {before:?}, {now:?}"));
            }
        }
        for key in 0..KEYS {
            let floor = self.oracle.floors[key as usize];
            let span = newest.saturating_sub(floor) + 2;
            let mut times = vec![floor, newest.max(floor), newest.max(floor) + 1];
            times.extend((0..3).map(|_| floor + self.random.below(span)));
            for ts in times {
                let (want, got) = (self.oracle.get(key, ts), self.store.get(key, ts, self.rules));
                if want != got {
                    return Err(format!("key {key} at {ts}: expected {want:?}, got {got:?}"));
                }
                reads += 1;
            }
        }
        Ok(reads)
    }
}
