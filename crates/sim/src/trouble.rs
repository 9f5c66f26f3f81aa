//! What breaks, and when.

use braid_env::random::Random;

use crate::network::Party;
use crate::plan::Plan;

/// A piece of trouble.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Trouble {
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
}

/// Draws a piece of trouble; nothing if the plan has none.
pub(crate) fn draw(random: &mut Random, plan: &Plan, parties: &[Party]) -> Option<Trouble> {
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
            let half = plan.offset_micros / 2;
            Trouble::Clock { node, off_micros: random.below(2 * half) as i64 - half as i64 }
        }
        _ => Trouble::Pause { node, micros: random.between(10_000, 4_000_000) },
    })
}
