//! What arrived lately, oldest first: lets a conflict check look at what is new instead of at what
//! is there.
//!
//! ```text
//!   batches   ts 7, first 0 | ts 9, first 2 | ts 8, first 3      newest so far: 7, 9, 9
//!   points    c  f          | a             | b  d  x
//! ```
//!
//! A check for timestamps above 7 walks back from the end and stops at the batch up to which
//! nothing newer came. Both lists lie in pages: a list that moves when it grows would let one
//! writer in a hundred thousand pay for all.

use super::skiplist::NodeRef;
use crate::key::{Between, KeySpan};

/// A list that only grows, and never moves what it holds.
struct Paged<T> {
    /// All full but the last.
    pages: Vec<Vec<T>>,
}

impl<T> Default for Paged<T> {
    fn default() -> Paged<T> {
        Paged { pages: Vec::new() }
    }
}

const PAGE: usize = 1024;

impl<T> Paged<T> {
    fn len(&self) -> usize {
        self.pages.last().map_or(0, |last| (self.pages.len() - 1) * PAGE + last.len())
    }

    fn push(&mut self, value: T) {
        match self.pages.last_mut() {
            Some(last) if last.len() < PAGE => last.push(value),
            // A first page may stay small.
            before => {
                let mut page = Vec::with_capacity(if before.is_some() { PAGE } else { 0 });
                page.push(value);
                self.pages.push(page);
            }
        }
    }

    fn get(&self, at: usize) -> &T {
        &self.pages[at / PAGE][at % PAGE]
    }
}

/// See the module.
#[derive(Default)]
pub(super) struct ArrivalLog {
    /// Points in arrival order.
    points: Paged<NodeRef<'static>>,
    /// Batches in arrival order.
    batches: Paged<Arrived>,
}

/// A batch that arrived.
struct Arrived {
    ts: u64,
    /// Largest timestamp up to and including this batch, to stop the walk backwards.
    newest_so_far: u64,
    /// Position of its first point in the log.
    first: usize,
}

impl ArrivalLog {
    /// Begins a batch.
    pub(super) fn batch(&mut self, ts: u64) {
        let before = self.batches.len().checked_sub(1).map(|last| self.batches.get(last));
        let newest_so_far = before.map_or(ts, |last| ts.max(last.newest_so_far));
        self.batches.push(Arrived { ts, newest_so_far, first: self.points.len() });
    }

    /// A point of the batch.
    pub(super) fn point(&mut self, node: NodeRef<'static>) {
        self.points.push(node);
    }

    /// Newest of some timestamps of a point in the span; their floor if there is none.
    pub(super) fn newest_of(&self, span: &KeySpan, mut times: Between) -> u64 {
        let mut end = self.points.len();
        for batch in (0..self.batches.len()).rev().map(|at| self.batches.get(at)) {
            if batch.newest_so_far <= times.floor {
                break;
            }
            let mut points = (batch.first..end).map(|at| self.points.get(at));
            if times.meets(batch.ts, batch.ts) && points.any(|point| span.contains(point.key())) {
                times.floor = batch.ts;
            }
            end = batch.first;
        }
        times.floor
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paged_list_is_a_list() {
        let mut list = Paged::default();
        for n in 0..5 * PAGE {
            assert_eq!(list.len(), n);
            list.push(n);
            assert_eq!((*list.get(n), *list.get(n / 2)), (n, n / 2));
        }
    }
}
