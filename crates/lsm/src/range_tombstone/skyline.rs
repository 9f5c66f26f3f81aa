//! The stacked skyline: which range tombstone covers a key, at which time.
//!
//! Tombstones are kept as non-overlapping *fragments* in an ordered tree. Each fragment carries
//! the tree of what it covered when it came (`under`), so that a read in the past can go down:
//!
//! ```text
//!   insert [a, e)@1, [c, g)@2, [b, d)@3
//!
//!   top      a--1--b----3----c....d--2--------g
//!   under           b-1-c--2--d   d-1-e
//!   under                c-1-d
//! ```
//!
//! Invariant: going down at any key, timestamps do not increase (contract C1: newer tombstones
//! arrive later). The tree is persistent: an insert copies O(log n) nodes and shares the rest, so
//! readers keep the root they pinned, and no read ever rebuilds anything. An insert makes at most
//! three fragments, so memory is O(n), however deeply tombstones are nested.
//!
//! The tree is a treap: priorities come from a counter hashed once per fragment.

use std::cmp::Ordering;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering as Memory};

use bytes::Bytes;

use super::bound::Bound;
use crate::memtable::Tombstone;

type Tree = Option<Arc<Node>>;

struct Node {
    start: Bound,
    end: Bound,
    ts: u64,
    /// Commit index of the batch in its memtable; 0 in ssts.
    idx: u64,
    /// Whether a point arrived in the span after this tombstone. Shared by all its pieces.
    overwritten: Arc<AtomicBool>,
    under: Tree,
    left: Tree,
    right: Tree,
    priority: u64,
    /// Largest `ts` in this subtree's own fragments: the fragments below them are not newer.
    max_ts: u64,
}

/// What covers a key: the visible tombstone and how far it goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cover {
    /// Timestamp of the visible tombstone; 0 if none.
    pub(crate) ts: u64,
    /// Forward: the answer holds for keys below this; backward: for keys from this on.
    /// `None`: to the end of the key space in that direction.
    pub(crate) until: Option<Bytes>,
    /// No point of this layer is newer than the tombstone: all of them in the span are hidden.
    pub(crate) clean: bool,
}

/// Range tombstones of one layer. Cloning is O(1) and shares everything.
#[derive(Clone, Default)]
pub(crate) struct Skyline {
    root: Tree,
    /// Number of inserts so far; also the seed of priorities.
    count: u64,
}

impl std::fmt::Debug for Skyline {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut list = f.debug_list();
        self.for_each_top(&mut |start, end, ts| {
            list.entry(&format!("[{},{})@{ts}", start.escape_ascii(), end.escape_ascii()));
        });
        list.finish()
    }
}

impl Drop for Node {
    /// Takes the tree apart in a loop: nested tombstones are chains as long as their number, and
    /// the compiler's recursive drop would overflow the stack.
    fn drop(&mut self) {
        let mut work: Vec<Arc<Node>> = Vec::new();
        work.extend(self.under.take());
        work.extend(self.left.take());
        work.extend(self.right.take());
        while let Some(node) = work.pop() {
            if let Some(mut node) = Arc::into_inner(node) {
                work.extend(node.under.take());
                work.extend(node.left.take());
                work.extend(node.right.take());
            }
        }
    }
}

fn max_ts(tree: &Tree) -> u64 {
    tree.as_ref().map_or(0, |node| node.max_ts)
}

impl Node {
    fn with_children(&self, left: Tree, right: Tree) -> Arc<Node> {
        Arc::new(Node {
            start: self.start.clone(),
            end: self.end.clone(),
            ts: self.ts,
            idx: self.idx,
            overwritten: self.overwritten.clone(),
            under: self.under.clone(),
            priority: self.priority,
            max_ts: self.ts.max(max_ts(&left)).max(max_ts(&right)),
            left,
            right,
        })
    }

    fn with_bounds(&self, start: Bound, end: Bound, priority: u64) -> Arc<Node> {
        Arc::new(Node {
            start,
            end,
            ts: self.ts,
            idx: self.idx,
            overwritten: self.overwritten.clone(),
            under: self.under.clone(),
            left: None,
            right: None,
            priority,
            max_ts: self.ts,
        })
    }
}

/// Cuts a tree at a key: fragments below it, fragments from it on. One that crosses is split.
fn split(tree: &Tree, key: &Bound, seed: &mut u64) -> (Tree, Tree) {
    let Some(node) = tree else {
        return (None, None);
    };
    if **key <= *node.start {
        let (left, right) = split(&node.left, key, seed);
        (left, Some(node.with_children(right, node.right.clone())))
    } else if **key >= *node.end {
        let (left, right) = split(&node.right, key, seed);
        (Some(node.with_children(node.left.clone(), left)), right)
    } else {
        let low = node.with_bounds(node.start.clone(), key.clone(), next_priority(seed));
        let high = node.with_bounds(key.clone(), node.end.clone(), next_priority(seed));
        (merge(node.left.clone(), Some(low)), merge(Some(high), node.right.clone()))
    }
}

/// Joins two trees, all of whose fragments are in order.
fn merge(left: Tree, right: Tree) -> Tree {
    match (left, right) {
        (None, tree) | (tree, None) => tree,
        (Some(a), Some(b)) => Some(if a.priority >= b.priority {
            a.with_children(a.left.clone(), merge(a.right.clone(), Some(b)))
        } else {
            b.with_children(merge(Some(a), b.left.clone()), b.right.clone())
        }),
    }
}

fn next_priority(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *seed;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Where a key lies among the fragments of one tree.
enum Place<'a> {
    Inside(&'a Node),
    /// Between the end of one fragment and the start of the next.
    Gap(Option<&'a Bound>, Option<&'a Bound>),
}

/// Finds the fragment of `key`. With `before`, the place of the keys just below `key` instead.
fn locate<'a>(tree: &'a Tree, key: &[u8], before: bool) -> Place<'a> {
    let mut low = None;
    let mut high = None;
    let mut at = tree;
    while let Some(node) = at {
        let (is_below, is_above) = if before {
            (key <= &*node.start, key > &*node.end)
        } else {
            (key < &*node.start, key >= &*node.end)
        };
        if is_below {
            high = Some(&node.start);
            at = &node.left;
        } else if is_above {
            low = Some(&node.end);
            at = &node.right;
        } else {
            return Place::Inside(node);
        }
    }
    Place::Gap(low, high)
}

impl Skyline {
    /// A skyline without tombstones.
    pub(crate) fn new() -> Skyline {
        Skyline::default()
    }

    /// Whether there are no tombstones.
    pub(crate) fn is_empty(&self) -> bool {
        self.root.is_none()
    }

    /// Adds `[start, end)@ts`. O(log n). `ts` must not be below any tombstone in the span.
    pub(crate) fn insert(&mut self, start: &[u8], end: &[u8], ts: u64, idx: u64) {
        let start = Bytes::copy_from_slice(start);
        let end = Bytes::copy_from_slice(end);
        self.insert_bytes(start, end, ts, idx);
    }

    /// As [`Skyline::insert`], sharing the bytes of the bounds.
    pub(crate) fn insert_bytes(&mut self, start: Bytes, end: Bytes, ts: u64, idx: u64) {
        debug_assert!(start < end, "a tombstone covers at least one key");
        self.count += 1;
        let mut seed = self.count.wrapping_mul(0xD6E8_FEB8_6659_FD93);
        let (start, end) = (Bound::from(start), Bound::from(end));
        let (left, rest) = split(&self.root, &start, &mut seed);
        let (under, right) = split(&rest, &end, &mut seed);
        let priority = next_priority(&mut seed);
        let fragment = Arc::new(Node {
            start,
            end,
            ts,
            idx,
            overwritten: Arc::default(),
            under,
            left: None,
            right: None,
            priority,
            max_ts: ts,
        });
        self.root = merge(merge(left, Some(fragment)), right);
    }

    /// Timestamp of the newest tombstone over `key` with `ts <= read_ts` and `idx <= visible`;
    /// 0 if there is none.
    pub(crate) fn stab(&self, key: &[u8], read_ts: u64, visible: u64) -> u64 {
        let mut tree = &self.root;
        while let Place::Inside(node) = locate(tree, key, false) {
            if node.ts <= read_ts && node.idx <= visible {
                return node.ts;
            }
            tree = &node.under;
        }
        0
    }

    /// As [`Skyline::stab`], with the span over which the answer holds. Forward: for `key` and
    /// the keys after it; backward: for the keys just below `key`.
    pub(crate) fn cover(&self, key: &[u8], read_ts: u64, visible: u64, backward: bool) -> Cover {
        let mut until: Option<&Bound> = None;
        let narrow = |until: &mut Option<&Bound>, found: Option<&'_ Bound>| -> bool {
            match (&until, found) {
                (_, None) => false,
                (None, Some(_)) => true,
                (Some(old), Some(new)) => match (**new).cmp(&***old) {
                    Ordering::Less => !backward,
                    Ordering::Greater => backward,
                    Ordering::Equal => false,
                },
            }
        };
        let mut tree = &self.root;
        let (ts, clean) = loop {
            match locate(tree, key, backward) {
                Place::Gap(low, high) => {
                    let found = if backward { low } else { high };
                    if narrow(&mut until, found) {
                        until = found;
                    }
                    break (0, false);
                }
                Place::Inside(node) => {
                    let found = Some(if backward { &node.start } else { &node.end });
                    if narrow(&mut until, found) {
                        until = found;
                    }
                    if node.ts <= read_ts && node.idx <= visible {
                        break (node.ts, !node.overwritten.load(Memory::Acquire));
                    }
                    tree = &node.under;
                }
            }
        };
        Cover { ts, until: until.map(Bound::to_bytes), clean }
    }

    /// Notes that a point arrives at `key`: a tombstone over it no longer hides all rows of its
    /// layer. Must be called before the point becomes visible.
    pub(crate) fn point_arrives(&self, key: &[u8]) {
        if let Place::Inside(node) = locate(&self.root, key, false)
            && !node.overwritten.load(Memory::Relaxed)
        {
            node.overwritten.store(true, Memory::Release);
        }
    }

    /// Largest timestamp of a tombstone that shares a key with `[start, end)`; 0 if none.
    /// O(log n): whole subtrees inside the span answer from their root.
    pub(crate) fn max_ts_in(&self, start: &[u8], end: &[u8]) -> u64 {
        // `open_*`: whether the subtree may still reach beyond that side of the span.
        fn walk(tree: &Tree, start: &[u8], end: &[u8], open_low: bool, open_high: bool) -> u64 {
            let Some(node) = tree else { return 0 };
            if !open_low && !open_high {
                return node.max_ts;
            }
            if open_low && &*node.end <= start {
                return walk(&node.right, start, end, open_low, open_high);
            }
            if open_high && &*node.start >= end {
                return walk(&node.left, start, end, open_low, open_high);
            }
            let left = walk(&node.left, start, end, open_low, false);
            let right = walk(&node.right, start, end, false, open_high);
            node.ts.max(left).max(right)
        }
        walk(&self.root, start, end, true, true)
    }

    /// Calls `visit(start, end, ts)` for the topmost fragments, in key order.
    pub(crate) fn for_each_top(&self, visit: &mut dyn FnMut(&Bytes, &Bytes, u64)) {
        let mut stack: Vec<&Node> = Vec::new();
        let mut at = &self.root;
        loop {
            while let Some(node) = at {
                stack.push(node);
                at = &node.left;
            }
            let Some(node) = stack.pop() else { return };
            visit(&node.start.to_bytes(), &node.end.to_bytes(), node.ts);
            at = &node.right;
        }
    }
}

/// Joins pieces of the same timestamp that touch; sorts by timestamp, then start.
pub(crate) fn coalesce(mut pieces: Vec<Tombstone>) -> Vec<Tombstone> {
    pieces.sort_by(|a, b| a.ts.cmp(&b.ts).then_with(|| a.start.cmp(&b.start)));
    let mut joined: Vec<Tombstone> = Vec::with_capacity(pieces.len());
    for piece in pieces {
        match joined.last_mut() {
            Some(last) if last.ts == piece.ts && piece.start <= last.end => {
                if piece.end > last.end {
                    last.end = piece.end;
                }
            }
            _ => joined.push(piece),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;
    use braid_env::random::Random;

    fn key(n: u64) -> Vec<u8> {
        format!("{n:03}").into_bytes()
    }

    #[test]
    fn answers_as_a_plain_list_does() {
        for seed in 0..60 {
            let mut random = Random::seeded(seed);
            let mut skyline = Skyline::new();
            let mut list = Vec::new();
            for idx in 1..=80u64 {
                let a = random.below(99);
                let b = a + 1 + random.below(99 - a);
                let ts = idx / 3 + 1;
                skyline.insert(&key(a), &key(b), ts, idx);
                list.push((a, b, ts, idx));
                let (t, visible) = (random.below(30), random.below(idx + 1));
                let newest = |k: u64| {
                    list.iter()
                        .filter(|x| x.0 <= k && k < x.1 && x.2 <= t && x.3 <= visible)
                        .map(|x| x.2)
                        .max()
                        .unwrap_or(0)
                };
                for k in 0..100 {
                    assert_eq!(skyline.stab(&key(k), t, visible), newest(k), "seed {seed}");
                    let cover = skyline.cover(&key(k), t, visible, false);
                    assert_eq!(cover.ts, newest(k));
                    let end = cover.until.map_or(100, |u| {
                        String::from_utf8(u.to_vec()).unwrap().parse::<u64>().unwrap()
                    });
                    assert!(end > k);
                    assert!((k..end).all(|x| newest(x) == cover.ts), "seed {seed}");
                    if k > 0 {
                        let cover = skyline.cover(&key(k), t, visible, true);
                        let from = cover.until.map_or(0, |u| {
                            String::from_utf8(u.to_vec()).unwrap().parse::<u64>().unwrap()
                        });
                        assert!(from < k);
                        assert!((from..k).all(|x| newest(x) == cover.ts), "seed {seed}");
                    }
                }
                let max = list.iter().filter(|x| x.0 < b && a < x.1).map(|x| x.2).max();
                assert_eq!(skyline.max_ts_in(&key(a), &key(b)), max.unwrap_or(0));
            }
        }
    }

    #[test]
    fn deeply_nested_tombstones_are_dropped_without_recursion() {
        let mut skyline = Skyline::new();
        for ts in 1..=200_000 {
            skyline.insert(b"a", b"z", ts, 0);
        }
        assert_eq!(skyline.stab(b"m", 77, 0), 77);
        drop(skyline);
    }
}
