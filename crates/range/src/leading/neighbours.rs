//! Which nodes are there: each says so to each other one that it shares ranges with, in one word
//! for all of these ranges.
//!
//! ```text
//!   heard ... heard ............ silent ....... heard again
//!                  <- 12 ticks ->  ranges wake   ranges wake
//! ```
//!
//! While a follower sleeps, a word of its leader's node counts as one of its leader. So when the
//! node is silent for longer than a leader may be, the follower wakes, and asks for votes like any
//! other that hears nothing. A node that began anew says so by its *life*: it leads nothing of what
//! it has led before.

use std::collections::BTreeMap;

use crate::ids::NodeId;

/// What is known of another node.
#[derive(Debug)]
struct Neighbour {
    /// In which tick it was heard last.
    heard: u64,
    is_silent: bool,
    /// Which start of its process has said so; 0: it has not said that yet.
    life: u64,
}

/// See the [module's page](self).
#[derive(Debug)]
pub(crate) struct Neighbours {
    known: BTreeMap<NodeId, Neighbour>,
    /// After so many ticks without a word a node is silent.
    silent_after: u64,
}

impl Neighbours {
    /// Nobody is known. Elections begin after so many ticks at the earliest, and after twice as
    /// many at the latest.
    pub(crate) fn new(election_ticks: usize) -> Neighbours {
        Neighbours { known: BTreeMap::new(), silent_after: election_ticks as u64 * 6 / 5 }
    }

    /// From now on it is noticed whether a node is there.
    pub(crate) fn watch(&mut self, node: NodeId, now: u64) {
        let new = Neighbour { heard: now, is_silent: false, life: 0 };
        self.known.entry(node).or_insert(new);
    }

    /// All that are watched.
    pub(crate) fn nodes(&self) -> Vec<NodeId> {
        self.known.keys().copied().collect()
    }

    /// Something was heard of a node; whether it was silent.
    pub(crate) fn hear(&mut self, node: NodeId, now: u64) -> bool {
        let Some(known) = self.known.get_mut(&node) else { return false };
        known.heard = now;
        std::mem::take(&mut known.is_silent)
    }

    /// A node has said in which life it is; whether it has begun anew since it said so last.
    pub(crate) fn hear_life(&mut self, node: NodeId, life: u64) -> bool {
        let Some(known) = self.known.get_mut(&node) else { return false };
        let before = known.life;
        known.life = before.max(life);
        before != 0 && before < life
    }

    /// A tick has passed; who is silent since then.
    pub(crate) fn tick(&mut self, now: u64) -> Vec<NodeId> {
        let mut silent = Vec::new();
        for (node, known) in &mut self.known {
            if !known.is_silent && known.heard + self.silent_after <= now {
                known.is_silent = true;
                silent.push(*node);
            }
        }
        silent
    }

    /// Whether a node is silent.
    pub(crate) fn is_silent(&self, node: NodeId) -> bool {
        self.known.get(&node).is_some_and(|known| known.is_silent)
    }

    /// For how many ticks nothing was heard of a node.
    pub(crate) fn silent_ticks(&self, node: NodeId, now: u64) -> u64 {
        self.known.get(&node).map_or(0, |known| now.saturating_sub(known.heard))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_silent_is_named_once_and_so_is_who_comes_back() {
        let mut neighbours = Neighbours::new(10);
        let (one, two) = (NodeId(1), NodeId(2));
        assert!(!neighbours.hear(one, 1), "nobody wants to know");
        assert!(neighbours.tick(100).is_empty());
        neighbours.watch(one, 100);
        neighbours.watch(two, 100);
        neighbours.watch(one, 110);
        assert!(neighbours.tick(111).is_empty());
        assert!(!neighbours.hear(two, 111));
        assert_eq!(neighbours.tick(112), [one]);
        assert_eq!(neighbours.tick(113), []);
        assert!(neighbours.is_silent(one) && !neighbours.is_silent(two));
        assert_eq!(neighbours.silent_ticks(one, 113), 13);
        assert!(neighbours.hear(one, 117), "it is back");
        assert!(!neighbours.hear(one, 118) && !neighbours.is_silent(one));
        assert_eq!(neighbours.tick(123), [two]);
    }

    #[test]
    fn who_begins_anew_is_noticed_and_late_words_are_not() {
        let mut neighbours = Neighbours::new(10);
        let one = NodeId(1);
        assert!(!neighbours.hear_life(one, 3), "nobody wants to know");
        neighbours.watch(one, 0);
        assert!(!neighbours.hear_life(one, 3), "the first word");
        assert!(!neighbours.hear_life(one, 3));
        assert!(neighbours.hear_life(one, 4));
        assert!(!neighbours.hear_life(one, 3), "it is late");
        assert!(!neighbours.hear_life(one, 4));
    }
}
