//! The network: when a message arrives, if it does, and how often.

use std::collections::BTreeSet;

use braid_env::random::Random;

use crate::plan::NetworkPlan;

/// Whoever sends and receives: nodes from 1 on, clients from 1,000 on.
pub(crate) type Party = u64;

/// See the [module's page](self).
pub(crate) struct Network {
    random: Random,
    lost: u64,
    doubled: u64,
    slow: u64,
    delay_micros: u64,
    /// From whom to whom nothing comes through.
    cut: BTreeSet<(Party, Party)>,
}

impl Network {
    pub(crate) fn new(plan: &NetworkPlan, random: Random) -> Network {
        let NetworkPlan { lost, doubled, slow, delay_micros } = *plan;
        Network { random, lost, doubled, slow, delay_micros, cut: BTreeSet::new() }
    }

    /// After how many microseconds a message arrives: once, never or twice.
    pub(crate) fn arrivals(&mut self, from: Party, to: Party) -> Vec<u64> {
        if from == to {
            // Within a process nothing is lost.
            return vec![20];
        }
        let random = &mut self.random;
        let lost = random.chance(self.lost, 1_000);
        let copies = if random.chance(self.doubled, 1_000) { 2 } else { 1 };
        let (slow, delay) = (self.slow, self.delay_micros);
        let mut one = |_| {
            let times = if random.chance(slow, 1_000) { 100 } else { 1 };
            20 + random.below(delay * times)
        };
        let arrivals = (0..copies).map(&mut one).collect();
        if lost || self.cut.contains(&(from, to)) { Vec::new() } else { arrivals }
    }

    pub(crate) fn cut(&mut self, from: Party, to: Party) {
        self.cut.insert((from, to));
    }

    pub(crate) fn mend(&mut self) {
        self.cut.clear();
    }

    /// From now on it is a good network.
    pub(crate) fn heal(&mut self) {
        self.mend();
        (self.lost, self.doubled, self.slow) = (0, 0, 0);
        self.delay_micros = self.delay_micros.min(1_000);
    }
}
