//! How nodes hear that the cluster's settings have changed, and that sessions have said something.
//!
//! ```text
//!   node 1 changes a setting ─► goes by version 8 ─► tells all that it hears: 8, newest 8
//!   node 2                                 goes by 7, newest 8: reads, goes by 8, tells all
//!   node 3, cut off from 1                            hears it from 2
//! ```
//! A word says which version a node goes by, and the newest one that it knows of. It is sent when
//! either changes, when a connection begins, and now and then, since any may be lost. Numbers only
//! grow; what the settings are everybody reads where they are stored.
//!
//! The number of messages (NOTIFY) goes along: who hears of more than it knows reads them.
//!
//! Nothing here waits for a clock or a network: whoever carries the words does, and so does a
//! simulation.

use std::collections::BTreeMap;
use std::time::Duration;

use braid_kv::NodeSettings;
use braid_range::NodeId;
use parking_lot::{Condvar, Mutex};

/// What a node says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Word {
    /// The version that it goes by.
    pub goes_by: u64,
    /// The newest one that it has heard of.
    pub newest: u64,
    /// So many messages of sessions to each other it has heard of.
    pub messages: u64,
}

#[derive(Default)]
struct Known {
    own: Word,
    /// The last word of each other node, and when it came, on this node's clock.
    others: BTreeMap<NodeId, (Word, u64)>,
}

/// See the [module's page](self).
#[derive(Default)]
pub struct News {
    known: Mutex<Known>,
    changed: Condvar,
}

impl News {
    /// What this node says.
    pub fn word(&self) -> Word {
        self.known.lock().own
    }

    /// This node goes by a version; whether others are to be told.
    pub fn goes_by(&self, version: u64) -> bool {
        let mut known = self.known.lock();
        let is_new = version > known.own.goes_by;
        known.own.goes_by = known.own.goes_by.max(version);
        known.own.newest = known.own.newest.max(version);
        is_new
    }

    /// Another node has said something; whether there is something newer than before.
    pub fn hear(&self, from: NodeId, word: Word, now_nanos: u64) -> bool {
        let mut known = self.known.lock();
        let (last, when) = known.others.entry(from).or_default();
        // Words may come late: numbers only grow.
        last.goes_by = last.goes_by.max(word.goes_by);
        last.newest = last.newest.max(word.newest);
        last.messages = last.messages.max(word.messages);
        *when = (*when).max(now_nanos);
        let is_new = word.newest > known.own.newest || word.messages > known.own.messages;
        known.own.newest = known.own.newest.max(word.newest);
        known.own.messages = known.own.messages.max(word.messages);
        if is_new {
            self.changed.notify_all();
        }
        is_new
    }

    /// There are so many messages; whether others are to be told.
    pub fn has_messages(&self, count: u64) -> bool {
        let mut known = self.known.lock();
        let is_new = count > known.own.messages;
        known.own.messages = known.own.messages.max(count);
        is_new
    }

    /// Blocks until there are more messages than that (`None`: than now), but not for longer than
    /// that.
    pub(crate) fn wait_for_messages(&self, count: Option<u64>, patience: Duration) {
        let mut known = self.known.lock();
        let count = count.unwrap_or(known.own.messages);
        let more = |known: &mut Known| known.own.messages <= count;
        self.changed.wait_while_for(&mut known, more, patience);
    }

    /// Blocks until there is something newer than `version`, but not for longer than that; the
    /// newest version that was heard of.
    pub fn wait(&self, version: u64, patience: Duration) -> u64 {
        let mut known = self.known.lock();
        let older = |known: &mut Known| known.own.newest <= version;
        self.changed.wait_while_for(&mut known, older, patience);
        known.own.newest
    }

    /// What each node has said, this one among them if it has a number.
    pub fn of_nodes(&self, own: Option<NodeId>, now_nanos: u64) -> Vec<NodeSettings> {
        let known = self.known.lock();
        let mut all: Vec<NodeSettings> = known
            .others
            .iter()
            .map(|(node, (word, when))| NodeSettings {
                node: node.0,
                version: word.goes_by,
                silent: Duration::from_nanos(now_nanos.saturating_sub(*when)),
            })
            .collect();
        all.extend(own.map(|node| NodeSettings {
            node: node.0,
            version: known.own.goes_by,
            silent: Duration::ZERO,
        }));
        all.sort_by_key(|one| one.node);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_only_grow_and_pass_through_others() {
        let (one, two, three) = (News::default(), News::default(), News::default());
        assert!(one.goes_by(8) && !one.goes_by(7));
        assert!(two.hear(NodeId(1), one.word(), 5));
        assert_eq!(two.word(), Word { goes_by: 0, newest: 8, messages: 0 });
        // Two goes by nothing yet, and three hears of it nevertheless.
        assert!(three.hear(NodeId(2), two.word(), 6));
        assert_eq!(three.wait(7, Duration::ZERO), 8);
        assert!(
            !three.hear(NodeId(1), Word { goes_by: 3, newest: 3, messages: 0 }, 7),
            "it comes late"
        );
        assert!(one.has_messages(5) && !one.has_messages(4));
        assert!(two.hear(NodeId(1), one.word(), 8) && two.word().messages == 5);
        two.wait_for_messages(Some(4), Duration::MAX);
        two.goes_by(8);
        three.hear(NodeId(2), two.word(), 9);
        let said = three.of_nodes(Some(NodeId(3)), 10);
        let said: Vec<_> = said.iter().map(|n| (n.node, n.version, n.silent.as_nanos())).collect();
        assert_eq!(said, [(1, 3, 3), (2, 8, 1), (3, 0, 0)]);
    }
}
