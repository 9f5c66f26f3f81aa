//! What breaks, and when.

use braid_env::random::Random;
use braid_range::{Ask, RangeId, Request, Split};

use crate::data;
use crate::network::Party;
use crate::plan::{Plan, Sabotage};
use crate::world::{Event, FIRST_CLIENT, World, describe, unasked};

/// A piece of trouble.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Trouble {
    /// A node loses power, now or in the middle of some write to come; back after a while.
    Crash { node: u64, in_changes: Option<u64>, down_micros: u64 },
    /// All nodes lose power.
    CrashAll { down_micros: u64 },
    /// Nothing comes through between these and the others.
    Partition { side: Vec<Party>, micros: u64 },
    /// Nothing comes through from one to the other.
    OneWay { pairs: Vec<(Party, Party)>, micros: u64 },
    /// A clock jumps.
    Clock { node: u64, off_micros: i64 },
    /// A process stands still.
    Pause { node: u64, micros: u64 },
    /// Disks take so many bytes more, and no others, for a while.
    Full { nodes: Vec<u64>, spare: u64, micros: u64 },
    /// Nothing comes through from or to a node.
    Alone { node: u64, micros: u64 },
}

/// Draws a piece of trouble; nothing if the plan has none.
fn draw(random: &mut Random, plan: &Plan, parties: &[Party]) -> Option<Trouble> {
    let mut at = random.below(plan.trouble.iter().sum());
    let kind = plan.trouble.iter().position(|weight| {
        let here = at < *weight;
        at = at.saturating_sub(*weight);
        here
    })?;
    let node = random.between(1, plan.all_nodes());
    // Where logs are short, others write past what is kept of them.
    let away = plan.log.max_bytes < 1 << 20 && random.chance(1, 3);
    let longest = if away { 20_000_000 } else { 3_000_000 };
    let down_micros = random.between(10_000, longest);
    Some(match kind {
        0 => {
            let in_changes = random.chance(1, 2).then(|| random.below(60));
            Trouble::Crash { node, in_changes, down_micros }
        }
        1 => Trouble::CrashAll { down_micros },
        2 => {
            let side = parties.iter().copied().filter(|_| random.chance(1, 2)).collect();
            Trouble::Partition { side, micros: random.between(100_000, 5_000_000) }
        }
        3 => {
            let pair = |random: &mut Random| (*random.pick(parties), *random.pick(parties));
            let pairs = (0..random.between(1, 4)).map(|_| pair(random)).collect();
            Trouble::OneWay { pairs, micros: random.between(100_000, 5_000_000) }
        }
        4 => {
            let half = plan.clocks.offset_micros / 2;
            let ahead = match plan.clocks.far {
                true => 2 * half * random.below(2),
                false => random.below(2 * half),
            };
            Trouble::Clock { node, off_micros: ahead as i64 - half as i64 }
        }
        5 => Trouble::Pause { node, micros: random.between(10_000, 4_000_000) },
        7 => {
            let nodes = match random.chance(1, 4) {
                true => (1..=plan.all_nodes()).collect(),
                false => vec![node],
            };
            let spare = *random.pick(&[0, 3_000, 40_000, 100_000, 200_000]);
            Trouble::Full { nodes, spare, micros: random.between(500_000, 10_000_000) }
        }
        _ => Trouble::Alone { node, micros: random.between(3_000_000, 6_000_000) },
    })
}

impl World {
    pub(crate) fn trouble(&mut self) {
        if self.healed_at.is_some() {
            return;
        }
        let every = self.plan.trouble_every;
        let next = self.random.between(every / 2, every * 3 / 2);
        self.after(next, Event::Trouble);
        if self.random.chance(self.plan.splits.of_ten, 10) {
            self.split();
        }
        if self.random.chance(self.plan.clients.deaths, 10) {
            self.kill_client();
        }
        self.change_membership();
        let nodes = 1..=self.plan.all_nodes();
        let parties: Vec<Party> =
            nodes.chain((0..self.workers.len() as u64).map(|n| FIRST_CLIENT + n)).collect();
        let Some(trouble) = draw(&mut self.random, &self.plan, &parties) else { return };
        self.note(format!("{trouble:?}"));
        self.befall(trouble, &parties);
    }

    fn befall(&mut self, trouble: Trouble, parties: &[Party]) {
        match trouble {
            Trouble::Crash { node, in_changes: Some(changes), .. } => {
                let survives = self.plan.disk.survives;
                self.nodes[node as usize - 1].arm_crash(changes, survives);
            }
            Trouble::Crash { node, in_changes: None, down_micros } => self.crash(node, down_micros),
            Trouble::CrashAll { down_micros } => {
                (1..=self.plan.all_nodes()).for_each(|node| self.crash(node, down_micros));
            }
            Trouble::Partition { side, micros } => {
                self.count("partitions");
                for a in parties {
                    for b in parties.iter().filter(|b| side.contains(a) != side.contains(b)) {
                        self.network.cut(*a, *b);
                    }
                }
                self.after(micros, Event::Mend);
            }
            Trouble::OneWay { pairs, micros } => {
                self.count("one-way cuts");
                pairs.iter().for_each(|(from, to)| self.network.cut(*from, *to));
                self.after(micros, Event::Mend);
            }
            Trouble::Clock { node, off_micros } => {
                self.count("clock jumps");
                let mut off = off_micros;
                if self.plan.sabotage == Some(Sabotage::ClocksBeyondBound) {
                    self.nodes.iter().for_each(|node| node.clock.set_off(0));
                    off = -10 * self.plan.leases.micros as i64;
                }
                self.nodes[node as usize - 1].clock.set_off(off);
            }
            Trouble::Pause { node, micros } => {
                self.count("pauses");
                self.nodes[node as usize - 1].paused_until = self.now() + micros;
            }
            Trouble::Full { nodes, spare, micros } => {
                self.count("full disks");
                for node in nodes {
                    self.nodes[node as usize - 1].fill(spare);
                    self.after(micros, Event::Grow { node });
                }
            }
            Trouble::Alone { node, micros } => {
                self.count("nodes alone");
                for other in parties.iter().filter(|other| **other != node) {
                    self.network.cut(node, *other);
                    self.network.cut(*other, node);
                }
                self.after(micros, Event::Mend);
            }
        }
    }

    /// Somebody wants a range to be split, and does not care what becomes of it.
    fn split(&mut self) {
        self.ranges += 1;
        let right = RangeId(self.ranges);
        let at = data::border(self.random.below(self.plan.keys) as u32);
        let ask = Ask::Split(Split { at, right });
        let range = RangeId(self.random.between(1, self.ranges - 1));
        for node in 1..=self.plan.all_nodes() {
            let request = Request { range, ask: ask.clone() };
            self.after(node * 1_000, unasked(node, request));
        }
    }

    pub(crate) fn crash(&mut self, node: u64, down_micros: u64) {
        let here = &mut self.nodes[node as usize - 1];
        if here.process.is_some() {
            let before = describe(here);
            here.crash(self.plan.disk.survives);
            self.note(format!("crash of {before}"));
            self.count("crashes");
            self.close_gateway(node);
            self.after(down_micros, Event::Start { node });
        }
    }
}
