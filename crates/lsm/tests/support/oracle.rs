//! What the store should answer: the read rule, computed from the list of everything written.
//!
//! Of the entries of a key with a timestamp up to T, the one with the largest timestamp counts (of
//! equal ones the later arrival); it is hidden if a range tombstone up to T with a larger
//! timestamp covers the key. Nothing in here is shared with the engine.

use std::collections::BTreeMap;

pub type Key = Vec<u8>;

/// What one batch did, in the order of its calls.
#[derive(Debug, Clone)]
pub enum Call {
    Put(Key, Vec<u8>),
    Delete(Key),
    DeleteSpan(Key, Key),
    /// Cuts out everything that was written before, at any time. The first call, if there is one.
    Excise(Key, Key),
}

#[derive(Debug, Clone)]
pub struct Written {
    pub ts: u64,
    pub calls: Vec<Call>,
}

#[derive(Debug, Clone)]
struct Entry {
    ts: u64,
    batch: usize,
    /// Seen by the first so many batches only: then it was excised.
    until: usize,
    value: Option<Vec<u8>>,
}

#[derive(Debug, Clone)]
struct Tombstone {
    start: Key,
    end: Key,
    ts: u64,
    batch: usize,
    until: usize,
}

/// The net effect of one batch: points and spans.
pub type Net = (BTreeMap<Key, Option<Vec<u8>>>, Vec<(Key, Key)>);

/// The whole history.
#[derive(Debug, Default, Clone)]
pub struct Oracle {
    pub log: Vec<Written>,
    points: BTreeMap<Key, Vec<Entry>>,
    tombstones: Vec<Tombstone>,
}

impl Oracle {
    /// The state after the first `n` batches of this history.
    pub fn prefix(&self, n: usize) -> Oracle {
        let mut oracle = Oracle::default();
        for written in &self.log[..n] {
            oracle.write(written.clone());
        }
        oracle
    }

    pub fn batches(&self) -> usize {
        self.log.len()
    }

    /// The net effect of the calls: later ones win.
    pub fn net(calls: &[Call]) -> Net {
        let mut points = BTreeMap::new();
        let mut spans = Vec::new();
        for call in calls {
            match call {
                Call::Put(key, value) => {
                    points.insert(key.clone(), Some(value.clone()));
                }
                Call::Delete(key) => {
                    points.insert(key.clone(), None);
                }
                Call::DeleteSpan(start, end) if start < end => {
                    points.retain(|key: &Key, _| key < start || key >= end);
                    spans.push((start.clone(), end.clone()));
                }
                Call::DeleteSpan(..) | Call::Excise(..) => {}
            }
        }
        (points, spans)
    }

    /// Whether the contracts allow the batch.
    pub fn allows(&self, written: &Written, gc: u64) -> bool {
        if written.calls.is_empty() {
            return true;
        }
        let (points, spans) = Oracle::net(&written.calls);
        if points.is_empty() && spans.is_empty() {
            return true;
        }
        if written.ts == 0 || written.ts == u64::MAX || written.ts <= gc {
            return false;
        }
        let all = usize::MAX;
        points.keys().all(|key| self.max_ts(key, all) <= written.ts)
            && spans.iter().all(|(start, end)| {
                let in_span = |key: &Key| start <= key && key < end;
                let older = self
                    .points
                    .iter()
                    .filter(|(key, _)| in_span(key))
                    .flat_map(|(_, entries)| entries)
                    .filter(|entry| entry.until == all)
                    .all(|entry| entry.ts < written.ts);
                let below = self
                    .tombstones
                    .iter()
                    .filter(|t| t.until == all && t.start < *end && *start < t.end);
                older && below.into_iter().all(|t| t.ts <= written.ts)
            })
    }

    /// Cuts everything in `[start, end)` out, for reads of later batches.
    pub fn cut(&mut self, start: &Key, end: &Key) {
        if start >= end {
            return;
        }
        let now = self.log.len();
        for (_, entries) in self.points.range_mut(start.clone()..end.clone()) {
            let live = entries.iter_mut().filter(|entry| entry.until == usize::MAX);
            live.for_each(|entry| entry.until = now);
        }
        let mut outside = Vec::new();
        for t in &mut self.tombstones {
            if t.until < usize::MAX || t.end <= *start || *end <= t.start {
                continue;
            }
            if t.start < *start {
                outside.push(Tombstone { end: start.clone(), ..t.clone() });
            }
            if *end < t.end {
                outside.push(Tombstone { start: end.clone(), ..t.clone() });
            }
            let (from, to) = (t.start.clone().max(start.clone()), t.end.clone().min(end.clone()));
            *t = Tombstone { start: from, end: to, until: now, ..t.clone() };
            // Views from before see the pieces beside the cut as well: they are live in both.
        }
        self.tombstones.extend(outside);
    }

    pub fn write(&mut self, written: Written) {
        if let Some(Call::Excise(start, end)) = written.calls.first() {
            self.cut(start, end);
        }
        let (points, spans) = Oracle::net(&written.calls);
        let batch = self.log.len();
        for (start, end) in spans {
            self.tombstones.push(Tombstone {
                start,
                end,
                ts: written.ts,
                batch,
                until: usize::MAX,
            });
        }
        for (key, value) in points {
            self.points.entry(key).or_default().push(Entry {
                ts: written.ts,
                batch,
                until: usize::MAX,
                value,
            });
        }
        self.log.push(written);
    }

    /// Newest range tombstone over `key` up to `ts`, of the first `batches` batches.
    pub fn tombstone(&self, key: &[u8], ts: u64, batches: usize) -> u64 {
        self.tombstones
            .iter()
            .filter(|t| t.batch < batches && batches <= t.until && t.ts <= ts)
            .filter(|t| t.start.as_slice() <= key && key < t.end.as_slice())
            .map(|t| t.ts)
            .max()
            .unwrap_or(0)
    }

    /// All keys that were ever written, in order.
    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        self.points.keys()
    }

    /// What a read of `key` at `ts` sees of the first `batches` batches.
    pub fn get(&self, key: &[u8], ts: u64, batches: usize) -> Option<(Vec<u8>, u64)> {
        let entries = self.points.get(key)?;
        let newest = entries
            .iter()
            .filter(|e| e.batch < batches && batches <= e.until && e.ts <= ts)
            .max_by_key(|entry| (entry.ts, entry.batch))?;
        if newest.ts < self.tombstone(key, ts, batches) {
            return None;
        }
        newest.value.clone().map(|value| (value, newest.ts))
    }

    /// All rows in `[start, end)` that a read at `ts` sees.
    pub fn scan(
        &self,
        start: &[u8],
        end: &[u8],
        ts: u64,
        batches: usize,
    ) -> Vec<(Key, Vec<u8>, u64)> {
        if start >= end {
            return Vec::new();
        }
        self.points
            .range(start.to_vec()..end.to_vec())
            .filter_map(|(key, _)| {
                self.get(key, ts, batches).map(|(value, ts)| (key.clone(), value, ts))
            })
            .collect()
    }

    /// Newest timestamp of anything that touches `key`.
    pub fn max_ts(&self, key: &[u8], batches: usize) -> u64 {
        let entries = self.points.get(key).into_iter().flatten();
        let point = entries
            .filter(|e| e.batch < batches && batches <= e.until)
            .map(|e| e.ts)
            .max()
            .unwrap_or(0);
        point.max(self.tombstone(key, u64::MAX, batches))
    }

    /// Newest timestamp of anything in `[start, end)` that is not above `upto`.
    pub fn max_ts_in_span(&self, start: &[u8], end: &[u8], upto: u64) -> u64 {
        if start >= end {
            return 0;
        }
        let points = self.points.range(start.to_vec()..end.to_vec());
        let point = points
            .flat_map(|(_, entries)| entries)
            .filter(|e| e.until == usize::MAX)
            .map(|e| e.ts)
            .filter(|ts| *ts <= upto)
            .max()
            .unwrap_or(0);
        let over = self
            .tombstones
            .iter()
            .filter(|t| t.until == usize::MAX)
            .filter(|t| t.start.as_slice() < end && start < t.end.as_slice())
            .map(|t| t.ts)
            .filter(|ts| *ts <= upto)
            .max();
        point.max(over.unwrap_or(0))
    }
}
