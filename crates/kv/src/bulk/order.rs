//! What a full buffer becomes: finished ssts, or a sorted run that is merged later.
//!
//! ```text
//!   rows come in order       |--1--|--2--|--3--|     ssts: written once, nothing is left to do
//!   rows come in any order   |----1----|
//!                             |----2----|            runs: cheap to write, merged into ssts
//!                            |-----3-----|
//! ```
//! Finished ssts that others overlap must be merged like runs, and cost more to write. So a target
//! begins with what the order inside of its first buffer promises, and changes its mind when a
//! buffer lies among those before it, or does so no longer.

use super::buffer::Buffer;

/// How buffers of a target are written when they are full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SpillAs {
    /// As sorted runs.
    #[default]
    Runs,
    /// As finished ssts.
    Ssts,
    /// As the order of the rows suggests, buffer by buffer.
    Observed,
}

/// Part of rows that must rise (or fall) for them to count as ordered, in percent.
const ORDERED: usize = 80;
/// Part of a buffer that may lie among earlier ones while it still counts as apart, in percent.
const AMONG: usize = 20;

/// What was seen of a target's buffers so far.
#[derive(Debug, Default)]
pub(super) struct Order {
    pub(super) spill: SpillAs,
    /// First and last key of all spilled buffers.
    span: Option<(Vec<u8>, Vec<u8>)>,
    /// What the last one became: ssts, or else a run.
    last: Option<bool>,
    ways: Ways,
}

/// What full buffers of a target became, and what was seen of them that decided it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ways {
    /// Buffers that became finished ssts.
    pub ssts: usize,
    /// Buffers that became sorted runs.
    pub runs: usize,
    /// How often a buffer became something else than the one before it.
    pub changes: usize,
    /// Part of the first buffer that came in the order of its keys, or in the opposite one, in
    /// percent; of several loads the one with the least order.
    pub ordered: Option<usize>,
    /// The most of a later buffer that lay among earlier ones, in percent.
    pub among: usize,
}

impl Ways {
    /// Takes over what a load beside this one has seen.
    pub(super) fn add(&mut self, other: Ways) {
        self.ssts += other.ssts;
        self.runs += other.runs;
        self.changes += other.changes;
        self.ordered = self.ordered.into_iter().chain(other.ordered).min();
        self.among = self.among.max(other.among);
    }
}

impl Order {
    /// Whether a sorted buffer becomes ssts; takes it into account. Rows with equal keys never do:
    /// an sst cannot hold them.
    pub(super) fn as_ssts(&mut self, buffer: &Buffer) -> bool {
        let (Some(first), Some(last)) = (buffer.key(0), buffer.key(buffer.len() - 1)) else {
            return false;
        };
        let apart = match &self.span {
            None => {
                let ordered = buffer.ordered_percent();
                self.ways.ordered = Some(ordered);
                ordered >= ORDERED
            }
            Some((low, high)) => {
                let among = buffer.position(&[high, &[0][..]].concat()) - buffer.position(low);
                self.ways.among = self.ways.among.max(among * 100 / buffer.len());
                among * 100 <= buffer.len() * AMONG
            }
        };
        let (first, last) = (first.to_vec(), last.to_vec());
        self.span = Some(match self.span.take() {
            None => (first, last),
            Some((low, high)) => (low.min(first), high.max(last)),
        });
        let wanted = match self.spill {
            SpillAs::Runs => false,
            SpillAs::Ssts => true,
            SpillAs::Observed => apart,
        };
        let ssts = wanted && !buffer.has_twins();
        *(if ssts { &mut self.ways.ssts } else { &mut self.ways.runs }) += 1;
        let changed = self.last.replace(ssts).is_some_and(|last| last != ssts);
        self.ways.changes += usize::from(changed);
        ssts
    }

    /// What buffers became so far.
    pub(super) fn ways(&self) -> Ways {
        self.ways
    }

    /// Takes over what a load beside this one has seen.
    pub(super) fn absorb(&mut self, other: &Order) {
        self.ways.add(other.ways);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use braid_env::memory::Account;

    fn decide(order: &mut Order, keys: impl Iterator<Item = u64>) -> bool {
        let mut buffer = Buffer::new(&Account::unlimited(), usize::MAX);
        keys.for_each(|n| buffer.push(format!("k{n:06}").as_bytes(), b"").unwrap());
        buffer.sort();
        order.as_ssts(&buffer)
    }

    #[test]
    fn ssts_while_buffers_come_one_behind_the_other() {
        let observed = || Order { spill: SpillAs::Observed, ..Order::default() };
        let up = &mut observed();
        assert!((0..4).all(|n| decide(up, n * 100..n * 100 + 100)));
        // Now they come in between, and then no longer.
        assert!(!decide(up, 50..150));
        assert!(decide(up, 390..480) && decide(up, 500..600));
        let seen = Ways { ssts: 6, runs: 1, changes: 2, ordered: Some(100), among: 100 };
        assert_eq!(up.ways(), seen);
        let down = &mut observed();
        assert!((0..4).rev().all(|n| decide(down, (n * 100..n * 100 + 100).rev())));
        let scattered = &mut observed();
        let mixed = |from: u64| (0..1000).map(move |n| (n * 7919 + from) % 10_007);
        assert!((0..4).all(|n| !decide(scattered, mixed(n))));
        let Ways { ssts, runs, changes, ordered, among } = scattered.ways();
        assert_eq!((ssts, runs, changes), (0, 4, 0));
        assert!(ordered.is_some_and(|ordered| ordered < ORDERED) && among > AMONG);
        up.absorb(scattered);
        let (both, seen) = (up.ways(), seen);
        assert_eq!((both.ssts, both.runs, both.changes), (seen.ssts, seen.runs + 4, seen.changes));
        assert_eq!((both.ordered, both.among), (ordered, 100), "the least order, the most among");
        assert!(!decide(&mut Order::default(), 0..100), "runs only");
        let always = &mut Order { spill: SpillAs::Ssts, ..Order::default() };
        assert!(decide(always, mixed(0)) && decide(always, mixed(1)));
        assert!(!decide(always, [1, 2, 2].into_iter()), "two rows of one key are no sst");
    }
}
