//! Which classes (`RowClassFn`) the nodes have that a link passes over: a scan of one table goes
//! over the rows of others by the list's upper levels.
//!
//! ```text
//!   level 2   a ────────── {q} ──────────► b
//!   level 1   a ── {q} ──► q ──── {q} ───► b
//!   level 0   a ► q ► q ► q ► q ► q ► q ► b
//! ```
//!
//! The classes stand beside a link as the head of its node does ([`link`](super::link)): they are
//! written after the pointer and read before it, so a reader may follow a pointer that leads less
//! far than what it has read, and never one that leads further. Nodes that come meanwhile belong to
//! batches that the reader does not see. The link of a node that is not linked on its level yet
//! says that it passes over everything: nobody goes on by it.
//!
//! `tests/interleavings.rs` runs this file under loom.

use super::atomics::{AtomicU32, Ordering};
use super::link::Link;

/// Classes of the nodes between a link's node and the one that it leads to, bit c for class c.
pub(crate) struct Passed(AtomicU32);

impl Passed {
    /// Of a link that is not made yet.
    pub(crate) fn everything() -> Passed {
        Passed(AtomicU32::new(u32::MAX))
    }

    /// Of a level without nodes.
    pub(crate) fn nothing() -> Passed {
        Passed(AtomicU32::new(0))
    }

    /// Acquire: what is read of the link after it is at least as new.
    fn read(&self) -> u32 {
        self.0.load(Ordering::Acquire)
    }

    /// Release: whoever reads it reads the link as it was made before, or newer.
    fn write(&self, classes: u32) {
        self.0.store(classes, Ordering::Release);
    }
}

/// A list of nodes with towers. A null pointer stands for the list's own tower.
pub(crate) trait Towers {
    type Node;

    /// The link of a node on one of its levels.
    fn link(&self, node: *mut Self::Node, level: usize) -> &Link<Self::Node>;

    /// What that link passes over; not asked of level 0.
    fn passed(&self, node: *mut Self::Node, level: usize) -> &Passed;

    /// Class of a node, which is not null.
    fn class(&self, node: *mut Self::Node) -> u8;

    /// Levels of a node, which is not null.
    fn height(&self, node: *mut Self::Node) -> usize;

    /// The first node behind one that has one of these classes; null if there is none. What lies
    /// between costs the logarithm of its number.
    fn next_of(&self, from: *mut Self::Node, classes: u32) -> *mut Self::Node {
        let (mut at, mut level) = (from, 0);
        loop {
            let top = self.height(at) - 1;
            // A higher link passes over all that a lower one does.
            while level < top && self.passed(at, level + 1).read() & classes == 0 {
                level += 1;
            }
            while level > 0 && self.passed(at, level).read() & classes != 0 {
                level -= 1;
            }
            at = self.link(at, level).next();
            if at.is_null() || classes & (1 << u32::from(self.class(at))) != 0 {
                return at;
            }
        }
    }

    /// The writer: links of these levels, lowest first, are going to pass over a node of a class.
    fn pass_over(&self, nodes: &[*mut Self::Node], lowest: usize, class: u8) {
        for (level, node) in nodes.iter().enumerate().skip(lowest) {
            let passed = self.passed(*node, level);
            let classes = passed.read();
            let with_it = classes | 1 << u32::from(class);
            if classes == with_it {
                // And so do all that are above.
                return;
            }
            passed.write(with_it);
        }
    }

    /// The writer: puts `node` behind `before` on a level. It is on those below.
    fn link_in(&self, before: *mut Self::Node, node: *mut Self::Node, head: u64, level: usize) {
        let (link, own) = (self.link(before, level), self.link(node, level));
        own.follow(link);
        let Some(below) = level.checked_sub(1) else {
            return link.publish(node, head);
        };
        self.passed(node, level).write(self.between(node, own.next(), below));
        let passed = self.between(before, node, below);
        link.publish(node, head);
        self.passed(before, level).write(passed);
    }

    /// Classes of the nodes between two that are linked on `level`.
    fn between(&self, mut at: *mut Self::Node, end: *mut Self::Node, level: usize) -> u32 {
        let mut classes = 0;
        loop {
            if level > 0 {
                classes |= self.passed(at, level).read();
            }
            at = self.link(at, level).next();
            if at == end || at.is_null() {
                return classes;
            }
            classes |= 1 << u32::from(self.class(at));
        }
    }
}
