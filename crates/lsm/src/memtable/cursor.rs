//! Walks the rows of a memtable that a view can see, one entry per key, in both directions.

use std::sync::Arc;

use super::skiplist::NodeRef;
use super::table::Memtable;
use crate::error::Result;
use crate::iter::{ReadPoint, ReadWork, ScanPlan, Source, Stretch};
use crate::key::{KeySpan, Kind, compare};
use crate::range_tombstone::{Cover, Finger};

/// Entries from after the read are passed so many one by one, before it is searched where those
/// end that it may see.
const TOO_NEW_MAX: usize = 8;
/// Entries of other classes are passed so many one by one, each on its way from memory when the one
/// before is looked at; more by the list's upper levels.
const UNWANTED_MAX: usize = 32;

/// A cursor over the newest visible entry of each key.
pub(crate) struct MemtableCursor {
    // `at` borrows from `table`, which this struct keeps alive; it is dropped first.
    at: Option<NodeRef<'static>>,
    read: ReadPoint,
    backward: bool,
    classes: u32,
    work: ReadWork,
    /// The scan's span: rows that are not wanted are not passed beyond it. With its end comes the
    /// head of that.
    span: KeySpan,
    end_head: u64,
    /// Where it looked last for tombstones to pass.
    finger: Finger,
    table: Arc<Memtable>,
}

impl MemtableCursor {
    pub(crate) fn new(table: Arc<Memtable>, read: ReadPoint, plan: &ScanPlan) -> MemtableCursor {
        MemtableCursor {
            at: None,
            read,
            backward: plan.options.reverse,
            classes: plan.options.classes,
            work: ReadWork::default(),
            end_head: table.points().head_of(&plan.span.end),
            span: plan.span.clone(),
            finger: Finger::nowhere(),
            table,
        }
    }

    /// Forward: the first visible entry at or after `node`.
    fn settle_forward(&mut self, mut node: Option<NodeRef<'static>>) {
        let (mut too_new, mut unwanted) = (0, 0);
        while let Some(found) = node {
            // Neighbours in key order are strangers in memory.
            found.prefetch_next();
            let wanted = self.wanted(&found);
            let in_time = found.ts() <= self.read.ts;
            if wanted && in_time && found.idx() <= self.read.visible {
                break;
            }
            self.work.rows_passed += 1;
            let next = if !wanted && unwanted < UNWANTED_MAX {
                unwanted += 1;
                found.next_key()
            } else if !wanted {
                // SAFETY: see `outlive`.
                unsafe { outlive(self.table.points().next_of(found, self.classes)) }
            } else if in_time || too_new < TOO_NEW_MAX {
                too_new += 1;
                found.next()
            } else {
                too_new = 0;
                // SAFETY: see `outlive`.
                unsafe { outlive(self.table.points().seek(found.key(), self.read.ts)) }
            };
            node = next.filter(|_| found.is_below(&self.span.end, self.end_head));
        }
        self.at = node;
    }

    /// Backward: the newest visible entry of the last key that has one, from `node` down.
    fn settle_backward(&mut self, mut node: Option<NodeRef<'static>>) {
        while let Some(found) = node {
            let key = found.key();
            if self.wanted(&found) {
                // SAFETY: see `outlive`.
                let newest =
                    unsafe { outlive(self.table.get(key, self.read.ts, self.read.visible)) };
                if newest.is_some() {
                    self.at = newest;
                    return;
                }
            }
            self.work.rows_passed += 1;
            if key < self.span.start.as_ref() {
                break;
            }
            // SAFETY: see `outlive`.
            node = unsafe { outlive(self.table.points().last_below(key)) };
        }
        self.at = None;
    }

    fn wanted(&self, node: &NodeRef<'_>) -> bool {
        self.classes & (1 << u32::from(node.class())) != 0
    }

    fn node(&self) -> &NodeRef<'static> {
        self.at.as_ref().expect("callers look at the entry only while there is one")
    }
}

/// Lets a node outlive the borrow of its memtable.
///
/// # Safety
/// The caller must keep the `Arc<Memtable>` alive as long as the node, as `MemtableCursor` does.
unsafe fn outlive(node: Option<NodeRef<'_>>) -> Option<NodeRef<'static>> {
    // SAFETY: only the lifetime parameter changes; the caller keeps the memory alive.
    unsafe { std::mem::transmute(node) }
}

impl Source for MemtableCursor {
    fn seek(&mut self, to: &[u8]) -> Result<()> {
        if self.backward {
            // SAFETY: `self.table` outlives `self.at`.
            let node = unsafe { outlive(self.table.points().last_below(to)) };
            self.settle_backward(node);
        } else {
            // SAFETY: `self.table` outlives `self.at`.
            let node = unsafe { outlive(self.table.points().seek(to, self.read.ts)) };
            self.settle_forward(node);
        }
        Ok(())
    }

    fn advance(&mut self) -> Result<()> {
        let Some(node) = self.at else { return Ok(()) };
        let key = node.key();
        if self.backward {
            // SAFETY: `self.table` outlives `self.at`.
            let below = unsafe { outlive(self.table.points().last_below(key)) };
            self.settle_backward(below);
        } else {
            self.settle_forward(node.next_key());
        }
        Ok(())
    }

    fn fill(&mut self, stretch: &mut Stretch<'_>) -> Result<()> {
        if self.backward {
            return self.fill_by_steps(stretch);
        }
        let (until, hidden_below) = (stretch.until(), stretch.hidden_below());
        // Most keys are told by eight bytes that lie in front of the entry.
        let head = self.table.points().head_of(until);
        while let Some(node) = self.at {
            if !node.is_below(until, head) || !stretch.has_room() {
                break;
            }
            if node.kind() == Kind::Put && node.ts() >= hidden_below {
                stretch.push(node.key(), node.value(), node.ts());
            } else {
                stretch.pass();
            }
            self.settle_forward(node.next_key());
        }
        Ok(())
    }

    fn key(&self) -> Option<&[u8]> {
        self.at.as_ref().map(|node| node.key())
    }

    fn ts(&self) -> u64 {
        self.node().ts()
    }

    fn kind(&self) -> Kind {
        self.node().kind()
    }

    fn value(&self) -> &[u8] {
        self.node().value()
    }

    fn work(&self) -> ReadWork {
        self.work
    }

    fn cover(&mut self, at: &[u8]) -> Result<Cover> {
        let skyline = self.table.skyline();
        if skyline.is_empty() {
            return Ok(Cover { ts: 0, until: None, clean: false });
        }
        Ok(skyline.cover(at, self.read.ts, self.read.visible, self.backward))
    }

    fn pass(&mut self, at: &mut Vec<u8>, stop: &[u8]) -> Result<u64> {
        let skyline = self.table.skyline();
        if self.backward || skyline.is_empty() {
            return Ok(0);
        }
        let mut passed = 0;
        let read = (self.read.ts, self.read.visible);
        // What was not looked for yet may begin right here.
        let own = self.at.as_ref().map(|node| node.key().max(at.as_slice()));
        let reached = skyline.run_from(at, read, (stop, own), &mut self.finger, &mut passed);
        if let Some(reached) = reached {
            let reached = if compare(reached, stop).is_lt() { reached } else { stop };
            at.clear();
            at.extend_from_slice(reached);
        }
        Ok(passed)
    }

    fn skip_hidden(&mut self, cover: &Cover) -> Result<()> {
        if !cover.clean {
            return Ok(());
        }
        match &cover.until {
            Some(until) => self.seek(until)?,
            None => self.at = None,
        }
        Ok(())
    }
}
