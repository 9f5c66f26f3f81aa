//! The order of versions of every list, who wrote what, and everything that is wrong without
//! looking at more than one key or one transaction.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::record::{Anomaly, History, Key, Op, Outcome};

/// Who wrote a value.
#[derive(Clone, Copy, Debug)]
struct Author {
    transaction: u32,
    /// The same transaction wrote the key again.
    replaced: bool,
    erases: bool,
}

/// Something that is wrong.
pub(crate) type Finding = (Anomaly, String);

/// Who wrote what in which order.
#[derive(Debug, Default)]
pub struct Versions {
    /// Writer of each value.
    authors: HashMap<(Key, u64), Author>,
    /// All versions of a list in order, over its erasures, as the value that each ends with.
    pub chains: BTreeMap<Key, Vec<u64>>,
    /// The place of a value in its chain.
    pub places: HashMap<(Key, u64), usize>,
    /// What is wrong.
    pub findings: Vec<Finding>,
}

/// Reads of a list between two erasures; the first value, or 0 for the list at the start.
type Epoch = (Key, u64);

impl Versions {
    /// Finds authors and orders.
    pub fn of(history: &History) -> Versions {
        let mut out = Versions::default();
        out.find_authors(history);
        let longest = out.longest_reads(history);
        out.compare_reads(history, &longest);
        out.chain(&longest);
        out.find_lost(history);
        out
    }

    fn find_authors(&mut self, history: &History) {
        for (number, t) in history.transactions.iter().enumerate() {
            let mut last: HashMap<Key, u64> = HashMap::new();
            for op in &t.ops {
                let Some(value) = op.written() else { continue };
                if let Some(before) = last.insert(op.key(), value) {
                    self.authors.entry((op.key(), before)).and_modify(|a| a.replaced = true);
                }
                let author = Author {
                    transaction: number as u32,
                    replaced: false,
                    erases: matches!(op, Op::Erase { .. }),
                };
                self.authors.insert((op.key(), value), author);
            }
        }
    }

    fn epoch(&self, key: Key, values: &[u64]) -> Epoch {
        let erased = |v: &&u64| self.authors.get(&(key, **v)).is_some_and(|a| a.erases);
        (key, values.first().filter(erased).copied().unwrap_or(0))
    }

    fn longest_reads(&self, history: &History) -> BTreeMap<Epoch, Vec<u64>> {
        let mut longest: BTreeMap<Epoch, &[u64]> = BTreeMap::new();
        for (key, values, _) in reads(history) {
            let known = longest.entry(self.epoch(key, values)).or_default();
            if known.len() < values.len() {
                *known = values;
            }
        }
        longest.into_iter().map(|(epoch, values)| (epoch, values.to_vec())).collect()
    }

    fn compare_reads(&mut self, history: &History, longest: &BTreeMap<Epoch, Vec<u64>>) {
        let mut findings = Vec::new();
        for (key, values, reader) in reads(history) {
            let whole = &longest[&self.epoch(key, values)];
            if !whole.starts_with(values) {
                let text = format!("T{reader} read {key:?} as {values:?}, others as {whole:?}");
                findings.push((Anomaly::Disorder, text));
            }
            self.values_are_committed(history, key, values, reader, &mut findings);
        }
        for (epoch, values) in longest {
            let mut seen = HashSet::new();
            if let Some(twice) = values.iter().find(|v| !seen.insert(**v)) {
                findings.push((Anomaly::Duplicate, format!("{twice} is twice in {epoch:?}")));
            }
        }
        self.findings.append(&mut findings);
    }

    fn values_are_committed(
        &self,
        history: &History,
        key: Key,
        values: &[u64],
        reader: u32,
        findings: &mut Vec<Finding>,
    ) {
        for (i, value) in values.iter().enumerate() {
            let Some(author) = self.authors.get(&(key, *value)) else {
                let text = format!("T{reader} read {value} in {key:?}, which nobody wrote");
                findings.push((Anomaly::Unwritten, text));
                continue;
            };
            let writer = author.transaction;
            if writer == reader {
                continue;
            }
            if history.transactions[writer as usize].outcome == Outcome::Aborted {
                let text = format!("T{reader} read {value} in {key:?} of T{writer}, rolled back");
                findings.push((Anomaly::G1a, text));
            } else if author.replaced && i + 1 == values.len() {
                let text = format!("T{reader} read {value} in {key:?}, which T{writer} replaced");
                findings.push((Anomaly::G1b, text));
            }
        }
    }

    fn chain(&mut self, longest: &BTreeMap<Epoch, Vec<u64>>) {
        let keys: HashSet<Key> = self
            .authors
            .keys()
            .map(|(key, _)| *key)
            .filter(|key| !matches!(key, Key::Register(_)))
            .collect();
        for key in keys {
            let mut chain = longest.get(&(key, 0)).cloned().unwrap_or_default();
            if let Key::List(number) = key {
                let trail = longest.get(&(Key::Trail(number), 0)).cloned().unwrap_or_default();
                for erasure in trail {
                    match longest.get(&(key, erasure)) {
                        Some(values) => chain.extend(values),
                        None => chain.push(erasure),
                    }
                }
            }
            for (place, &value) in chain.iter().enumerate() {
                let before = self.places.insert((key, value), place);
                // Twice in one epoch is reported as such.
                if before.is_some() && !self.is_twice_in_one(longest, key, value) {
                    let text = format!("{value} is in {key:?} again after it was erased");
                    self.findings.push((Anomaly::Resurrected, text));
                }
            }
            self.chains.insert(key, chain);
        }
    }

    fn is_twice_in_one(&self, longest: &BTreeMap<Epoch, Vec<u64>>, key: Key, value: u64) -> bool {
        longest
            .range((key, 0)..=(key, u64::MAX))
            .any(|(_, values)| values.iter().filter(|v| **v == value).count() > 1)
    }

    /// Whoever erases reads first, and the history ends with a read of everything: what was
    /// committed is in somebody's read.
    fn find_lost(&mut self, history: &History) {
        for ((of, value), author) in &self.authors {
            let t = &history.transactions[author.transaction as usize];
            let list = !matches!(of, Key::Register(_));
            if list && t.outcome == Outcome::Committed && !self.places.contains_key(&(*of, *value))
            {
                let erased_by_itself = author.replaced
                    && t.ops.iter().any(|op| matches!(op, Op::Erase { key, .. } if key == of));
                if !erased_by_itself {
                    let text = format!("{value} of T{} is not in {of:?}", author.transaction);
                    self.findings.push((Anomaly::Lost, text));
                }
            }
        }
    }

    /// Who wrote a value, if it is a version that counts.
    pub fn writer(&self, key: Key, value: u64) -> Option<u32> {
        self.authors.get(&(key, value)).map(|a| a.transaction)
    }

    /// What is wrong with one read of a register.
    pub(crate) fn register_read(&mut self, history: &History, key: Key, value: u64, reader: u32) {
        if value == 0 || self.writer(key, value) == Some(reader) {
            return;
        }
        let mut findings = Vec::new();
        self.values_are_committed(history, key, &[value], reader, &mut findings);
        self.findings.append(&mut findings);
    }
}

/// Reads of lists by committed transactions.
fn reads(history: &History) -> impl Iterator<Item = (Key, &[u64], u32)> {
    history
        .transactions
        .iter()
        .enumerate()
        .filter(|(_, t)| t.outcome == Outcome::Committed)
        .flat_map(|(number, t)| {
            t.ops.iter().filter_map(move |op| match op {
                Op::Read { key, values, .. } => Some((*key, values.as_slice(), number as u32)),
                _ => None,
            })
        })
}
