//! A skiplist of entries: one writer, any number of readers without locks.
//!
//! ```text
//!   order:   key ascending, then ts descending, then commit index descending
//!   node:    head u64 | ts u64 | idx u64 | key_len u32 | value_len u32 | kind u8 | height u8 |
//!            class u8 | link[height] | passed[height - 1] u32 | key bytes | value bytes
//!   link:    pointer to the next node | head of that node
//! ```
//!
//! `head` ([`head`](super::head)) decides most comparisons, so that they touch no key bytes.
//!
//! Publication: a node is complete before it is linked; readers walk without locks. A link repeats
//! the head of the node it leads to; how that goes together is in [`link`](super::link).
//!
//! Nodes are never changed or freed before the list is dropped. The last insert's path is
//! remembered, so that a sorted batch costs O(1) per entry.
//!
//! Above the lowest level each link also says which classes of rows it passes over
//! ([`classes`](super::classes)).

use std::cmp::Ordering as Cmp;
use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicUsize, Ordering};

use braid_env::random::Random;
use parking_lot::Mutex;

use super::arena::Arena;
use super::classes::{Passed, Towers};
use super::head::key_head;
use super::link::Link;
use crate::cache::prefetch;
use crate::key::Kind;

const MAX_HEIGHT: usize = 20;

/// An entry's header.
#[repr(C)]
pub(crate) struct Node {
    head: u64,
    ts: u64,
    idx: u64,
    key_len: u32,
    value_len: u32,
    kind: Kind,
    height: u8,
    class: u8,
    // links: [Link; height], passed: [Passed; height - 1], key, value follow.
}

const TOWER_OFFSET: usize = size_of::<Node>();

/// Where what the links of a node of this height pass over begins.
fn passed_offset(height: usize) -> usize {
    TOWER_OFFSET + height * size_of::<Link<Node>>()
}

/// Where its key begins.
fn key_offset(height: usize) -> usize {
    passed_offset(height) + (height - 1) * size_of::<Passed>()
}

/// The writer's side: memory, heights and the path of the last insert.
struct Writer {
    arena: Arena,
    random: Random,
    /// Last node before the insert position, per level; null stands for the list's own tower.
    path: [*mut Node; MAX_HEIGHT],
    last: *mut Node,
}

// SAFETY: the pointers lead into the arena of the same struct and are used only under its mutex.
unsafe impl Send for Writer {}

/// An ordered list of entries.
pub(crate) struct SkipList {
    tower: [Link<Node>; MAX_HEIGHT],
    /// Of the tower's links; that of level 0 is not used.
    passed: [Passed; MAX_HEIGHT],
    height: AtomicUsize,
    prefix: Box<[u8]>,
    writer: Mutex<Writer>,
}

// SAFETY: nodes are immutable after publication and live as long as the list; the writer's state
// is behind a mutex. Raw pointers inside are only an implementation of that sharing.
unsafe impl Send for SkipList {}
// SAFETY: as above.
unsafe impl Sync for SkipList {}

/// One entry of a list; valid as long as the list is borrowed.
#[derive(Clone, Copy)]
pub(crate) struct NodeRef<'a> {
    node: NonNull<Node>,
    list: PhantomData<&'a SkipList>,
}

// SAFETY: a node is immutable once it is reachable, except for its atomic pointers.
unsafe impl Send for NodeRef<'_> {}

impl<'a> NodeRef<'a> {
    fn new(node: *mut Node) -> Option<NodeRef<'a>> {
        NonNull::new(node).map(|node| NodeRef { node, list: PhantomData })
    }

    /// The same node, whatever the compiler knows about its list.
    ///
    /// # Safety
    /// The caller must not use it after the list is dropped.
    pub(crate) unsafe fn outliving_its_borrow(self) -> NodeRef<'static> {
        NodeRef { node: self.node, list: PhantomData }
    }

    fn header(&self) -> &'a Node {
        // SAFETY: published nodes are initialised and live as long as the list ('a).
        unsafe { self.node.as_ref() }
    }

    fn bytes(&self, skip: usize, len: usize) -> &'a [u8] {
        let start = key_offset(usize::from(self.header().height)) + skip;
        // SAFETY: `insert` allocated and filled tower, key and value behind the header; the
        // callers pass positions within key and value. The bytes are immutable.
        unsafe { std::slice::from_raw_parts(self.node.as_ptr().cast::<u8>().add(start), len) }
    }

    pub(crate) fn key(&self) -> &'a [u8] {
        self.bytes(0, self.header().key_len as usize)
    }

    pub(crate) fn value(&self) -> &'a [u8] {
        let header = self.header();
        self.bytes(header.key_len as usize, header.value_len as usize)
    }

    pub(crate) fn ts(&self) -> u64 {
        self.header().ts
    }

    pub(crate) fn idx(&self) -> u64 {
        self.header().idx
    }

    pub(crate) fn kind(&self) -> Kind {
        self.header().kind
    }

    /// See `RowClassFn`.
    pub(crate) fn class(&self) -> u8 {
        self.header().class
    }

    /// Brings the following entry closer: key, value and all, if they are short.
    pub(crate) fn prefetch_next(&self) {
        // SAFETY: every node has at least one level.
        let next = unsafe { link_of(self.node.as_ptr(), 0) }.next().cast::<u8>();
        for line in 0..4 {
            prefetch(next.wrapping_add(line * 64));
        }
    }

    /// The following entry.
    pub(crate) fn next(&self) -> Option<NodeRef<'a>> {
        // SAFETY: every node has at least one level.
        NodeRef::new(unsafe { link_of(self.node.as_ptr(), 0) }.next())
    }

    /// The first entry of a later key. Entries of this one are passed by their own towers, so a
    /// key that is written all the time costs the logarithm of its versions, and one with a single
    /// version no more than [`NodeRef::next`]. (*Finger search*: Pugh, A Skip List Cookbook, 1990.)
    pub(crate) fn next_key(&self) -> Option<NodeRef<'a>> {
        let mut at = self.next()?;
        if !at.is_of_key(self) {
            return Some(at);
        }
        let mut level = usize::from(at.header().height) - 1;
        // Up, as high as what is reached allows.
        while let Some(next) = at.next_version(level) {
            at = next;
            level = usize::from(at.header().height) - 1;
        }
        // Down again.
        while level > 0 {
            level -= 1;
            while let Some(next) = at.next_version(level) {
                at = next;
            }
        }
        // A version that is linked in this moment may stand there before the link's head says so.
        let mut next = at.next();
        while let Some(node) = next.filter(|node| node.is_of_key(self)) {
            next = node.next();
        }
        next
    }

    /// The following entry on a level that this one has, if it is of the same key.
    fn next_version(&self, level: usize) -> Option<NodeRef<'a>> {
        // SAFETY: callers ask for a level of this node.
        let (head, next) = unsafe { link_of(self.node.as_ptr(), level) }.read();
        // The head tells most other keys without a look at their nodes.
        NodeRef::new(next).filter(|next| head == self.header().head && next.is_of_key(self))
    }

    /// Whether its key lies below another one, whose head in this list is known.
    #[inline]
    pub(crate) fn is_below(&self, key: &[u8], head: u64) -> bool {
        let own = self.header().head;
        own < head || (own == head && self.key() < key)
    }

    fn is_of_key(&self, other: &NodeRef<'_>) -> bool {
        self.header().head == other.header().head && self.key() == other.key()
    }
}

/// The link of `node` at `level`.
///
/// # Safety
/// `node` must be a node of a living list with more than `level` levels.
unsafe fn link_of<'a>(node: *mut Node, level: usize) -> &'a Link<Node> {
    // SAFETY: the tower follows the header, which is a multiple of 8 bytes long.
    unsafe { &*node.cast::<u8>().add(TOWER_OFFSET).cast::<Link<Node>>().add(level) }
}

/// The place of an entry in the order of the list.
#[derive(Clone, Copy)]
struct Position<'a> {
    head: u64,
    key: &'a [u8],
    ts: u64,
    idx: u64,
}

impl SkipList {
    /// An empty list; `prefix` is a guess of what most keys begin with.
    pub(crate) fn new(prefix: &[u8], seed: u64) -> SkipList {
        SkipList {
            tower: std::array::from_fn(|_| Link::end()),
            passed: std::array::from_fn(|_| Passed::nothing()),
            height: AtomicUsize::new(1),
            prefix: prefix.into(),
            writer: Mutex::new(Writer {
                arena: Arena::new(),
                random: Random::seeded(seed),
                path: [ptr::null_mut(); MAX_HEIGHT],
                last: ptr::null_mut(),
            }),
        }
    }

    /// The head of a key in this list.
    pub(crate) fn head_of(&self, key: &[u8]) -> u64 {
        key_head(&self.prefix, key)
    }

    fn follow(&self, node: *mut Node, level: usize) -> *mut Node {
        self.link(node, level).next()
    }

    /// The first entry behind one of this list that has one of these classes (bit c: class c).
    pub(crate) fn next_of<'a>(&'a self, from: NodeRef<'a>, classes: u32) -> Option<NodeRef<'a>> {
        NodeRef::new(Towers::next_of(self, from.node.as_ptr(), classes))
    }

    /// Moves forward on one level while the next node is before `position`.
    #[inline]
    fn walk(&self, mut at: *mut Node, level: usize, position: &Position<'_>) -> *mut Node {
        loop {
            let (head, next) = self.link(at, level).read();
            if head > position.head {
                return at;
            }
            let Some(node) = NodeRef::new(next) else { return at };
            // The node in front of the one with this head is before the position if that one is;
            // only equal heads make it necessary to look at the node itself.
            if head == position.head && !node_before(node, position) {
                return at;
            }
            at = next;
        }
    }

    /// Last node before `position`, null if there is none.
    fn before(&self, position: &Position<'_>) -> *mut Node {
        let mut at = ptr::null_mut();
        for level in (0..self.height.load(Ordering::Relaxed)).rev() {
            at = self.walk(at, level, position);
        }
        at
    }

    /// First entry at or after `(key, ts)`: the newest of `key` with a timestamp up to `ts`, or
    /// the first entry of a later key.
    pub(crate) fn seek(&self, key: &[u8], ts: u64) -> Option<NodeRef<'_>> {
        let position = Position { head: key_head(&self.prefix, key), key, ts, idx: u64::MAX };
        let mut at = self.before(&position);
        loop {
            // What was linked in behind `at` meanwhile may still lie before the position.
            let next = NodeRef::new(self.follow(at, 0));
            match next {
                Some(node) if node_before(node, &position) => at = node.node.as_ptr(),
                _ => return next,
            }
        }
    }

    /// Last entry with a key below `key` (the oldest version of that key).
    pub(crate) fn last_below(&self, key: &[u8]) -> Option<NodeRef<'_>> {
        let position =
            Position { head: key_head(&self.prefix, key), key, ts: u64::MAX, idx: u64::MAX };
        NodeRef::new(self.before(&position))
    }

    /// Entries with keys between two, about evenly spread: those of the highest level that has
    /// `enough` of them there, or of the lowest. Also, for how many entries each stands.
    pub(crate) fn spread(
        &self,
        (start, end): (&[u8], &[u8]),
        enough: usize,
    ) -> (Vec<NodeRef<'_>>, u64) {
        let head = key_head(&self.prefix, start);
        let position = Position { head, key: start, ts: u64::MAX, idx: u64::MAX };
        let (mut at, mut found) = (ptr::null_mut(), Vec::new());
        for level in (0..self.height.load(Ordering::Relaxed)).rev() {
            at = self.walk(at, level, &position);
            found.clear();
            let mut next = NodeRef::new(self.follow(at, level));
            while let Some(node) = next.filter(|node| node.key() < end) {
                found.push(node);
                next = NodeRef::new(self.follow(node.node.as_ptr(), level));
            }
            if found.len() >= enough {
                return (found, 1 << level);
            }
        }
        (found, 1)
    }

    /// First entry.
    pub(crate) fn first(&self) -> Option<NodeRef<'_>> {
        NodeRef::new(self.follow(ptr::null_mut(), 0))
    }

    /// Last entry.
    pub(crate) fn last(&self) -> Option<NodeRef<'_>> {
        let mut at: *mut Node = ptr::null_mut();
        for level in (0..self.height.load(Ordering::Relaxed)).rev() {
            loop {
                let next = self.follow(at, level);
                if next.is_null() {
                    break;
                }
                at = next;
            }
        }
        NodeRef::new(at)
    }

    /// Adds an entry and returns it. Amortised O(1) for ascending keys, O(log n) otherwise.
    pub(crate) fn insert(
        &self,
        key: &[u8],
        ts: u64,
        idx: u64,
        (kind, class): (Kind, u8),
        value: &[u8],
    ) -> NodeRef<'_> {
        let mut writer = self.writer.lock();
        let writer = &mut *writer;
        let position = Position { head: key_head(&self.prefix, key), key, ts, idx };
        let old_height = self.height.load(Ordering::Relaxed);
        self.find_path(writer, &position, old_height);
        // Every second node is one level higher. A search touches the nodes it walks over:
        // (1 - p)/p per level, on log n / log(1/p) levels. As links know the next head, that is
        // a third less than with every fourth node, for eleven bytes more per node.
        let height = (1 + writer.random.next_u64().trailing_zeros() as usize).min(MAX_HEIGHT);
        let node = allocate_node(&mut writer.arena, &position, (kind, class), value, height);
        if height > old_height {
            writer.path[old_height..height].fill(ptr::null_mut());
            self.height.store(height, Ordering::Relaxed);
        }
        self.pass_over(&writer.path[..old_height], height, class);
        for level in 0..height {
            self.link_in(writer.path[level], node, position.head, level);
            writer.path[level] = node;
        }
        writer.last = node;
        NodeRef { node: NonNull::new(node).expect("just allocated"), list: PhantomData }
    }

    /// Fills the path with the last node before `position` on each level.
    fn find_path(&self, writer: &mut Writer, position: &Position<'_>, height: usize) {
        let mut top = height;
        let mut at = ptr::null_mut();
        if NodeRef::new(writer.last).is_some_and(|last| node_before(last, position)) {
            // The path of the last insert lies before this position on every level. Go up to the
            // first level on which it is still right; all levels above are right too.
            for level in 0..height {
                let next = NodeRef::new(self.follow(writer.path[level], level));
                if !next.is_some_and(|next| node_before(next, position)) {
                    top = level;
                    break;
                }
            }
            if top < height {
                at = writer.path[top];
            } else {
                at = writer.path[height - 1];
            }
        }
        for level in (0..top).rev() {
            // A remembered node of a lower level is never further back than `at`.
            at = self.walk(at, level, position);
            writer.path[level] = at;
        }
    }
}

impl Towers for SkipList {
    type Node = Node;

    fn link(&self, node: *mut Node, level: usize) -> &Link<Node> {
        if node.is_null() {
            &self.tower[level]
        } else {
            // SAFETY: callers come to `node` over a link of this or a higher level.
            unsafe { link_of(node, level) }
        }
    }

    fn passed(&self, node: *mut Node, level: usize) -> &Passed {
        if node.is_null() {
            return &self.passed[level];
        }
        // SAFETY: nodes live as long as the list, and what their links pass over follows the links.
        unsafe {
            let start = passed_offset(usize::from((*node).height));
            &*node.cast::<u8>().add(start).cast::<Passed>().add(level - 1)
        }
    }

    fn class(&self, node: *mut Node) -> u8 {
        // SAFETY: nodes live as long as the list, and never change.
        unsafe { (*node).class }
    }

    fn height(&self, node: *mut Node) -> usize {
        // SAFETY: as above.
        usize::from(unsafe { (*node).height })
    }
}

fn node_before(node: NodeRef<'_>, position: &Position<'_>) -> bool {
    let header = node.header();
    let order = header.head.cmp(&position.head).then_with(|| node.key().cmp(position.key));
    match order {
        Cmp::Less => true,
        Cmp::Greater => false,
        // Newer first.
        Cmp::Equal => (header.ts, header.idx) > (position.ts, position.idx),
    }
}

fn allocate_node(
    arena: &mut Arena,
    position: &Position<'_>,
    (kind, class): (Kind, u8),
    value: &[u8],
    height: usize,
) -> *mut Node {
    let key_at = key_offset(height);
    let raw = arena.allocate(key_at + position.key.len() + value.len()).as_ptr();
    let header = Node {
        head: position.head,
        ts: position.ts,
        idx: position.idx,
        key_len: position.key.len() as u32,
        value_len: value.len() as u32,
        kind,
        height: height as u8,
        class,
    };
    // SAFETY: the allocation is large enough for header, tower, key and value, is aligned to 8,
    // and nobody else has a pointer to it yet.
    unsafe {
        raw.cast::<Node>().write(header);
        for level in 0..height {
            raw.add(TOWER_OFFSET).cast::<Link<Node>>().add(level).write(Link::end());
        }
        for level in 1..height {
            let passed = raw.add(passed_offset(height)).cast::<Passed>();
            passed.add(level - 1).write(Passed::everything());
        }
        let key_at = raw.add(key_at);
        ptr::copy_nonoverlapping(position.key.as_ptr(), key_at, position.key.len());
        ptr::copy_nonoverlapping(value.as_ptr(), key_at.add(position.key.len()), value.len());
    }
    raw.cast::<Node>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn random_and_sorted_inserts_come_back_in_order() {
        for seed in 0..20 {
            let mut random = Random::seeded(seed);
            let list = SkipList::new(if seed % 2 == 0 { b"k0" } else { b"" }, seed);
            let mut expected = BTreeMap::new();
            for idx in 1..1_500u64 {
                let n = if idx % 3 == 0 { random.below(2_000) } else { idx };
                let key = format!("k{n:04}").into_bytes();
                let ts = random.below(50);
                list.insert(&key, ts, idx, (Kind::Put, 0), &idx.to_le_bytes());
                expected.insert((key, u64::MAX - ts, u64::MAX - idx), idx);
            }
            let mut at = list.first();
            for ((key, ts, _), idx) in &expected {
                let node = at.expect("as many nodes as entries");
                assert_eq!((node.key(), node.ts()), (key.as_slice(), u64::MAX - ts));
                assert_eq!(node.value(), idx.to_le_bytes());
                at = node.next();
            }
            assert!(at.is_none());
            let last = expected.keys().next_back().unwrap();
            assert_eq!(list.last().unwrap().key(), last.0);
            for n in 0..2_000u64 {
                let key = format!("k{n:04}").into_bytes();
                let found = list.seek(&key, 25).map(|node| (node.key().to_vec(), node.ts()));
                let wanted = expected.range((key.clone(), u64::MAX - 25, 0)..).next();
                assert_eq!(found, wanted.map(|(k, _)| (k.0.clone(), u64::MAX - k.1)));
                let below = list.last_below(&key).map(|node| node.key().to_vec());
                let wanted = expected.range(..(key, 0, 0)).next_back().map(|(k, _)| k.0.clone());
                assert_eq!(below, wanted);
            }
        }
    }

    #[test]
    fn entries_of_an_upper_level_are_spread_evenly() {
        let list = SkipList::new(b"k", 3);
        let key = |n: u64| format!("k{n:06}").into_bytes();
        for n in 0..20_000 {
            list.insert(&key(n), 1, n, (Kind::Put, 0), b"");
        }
        let (from, to) = (key(5_000), key(15_000));
        for enough in [1, 16, 100, 1_000] {
            let (found, each) = list.spread((&from, &to), enough);
            assert!(found.len() >= enough && found.len() < 4 * enough.max(4), "{}", found.len());
            let all = found.len() as u64 * each;
            assert!(enough < 16 || (5_000..20_000).contains(&all), "10,000 and not {all}");
            assert!(found.iter().all(|node| (&from[..]..&to[..]).contains(&node.key())));
            assert!(found.windows(2).all(|pair| pair[0].key() < pair[1].key()));
        }
        assert_eq!(list.spread((&from, &to), 20_000).0.len(), 10_000, "all that are there");
        assert!(list.spread((b"l", b"z"), 1).0.is_empty());
    }

    #[test]
    fn versions_are_passed_by_their_towers() {
        let mut random = Random::seeded(7);
        let list = SkipList::new(b"k", 7);
        // Heads are equal within each hundred of keys: only the keys themselves tell.
        let key = |n: u64| format!("k{:08}{:02}", n / 100, n % 100).into_bytes();
        let mut versions = BTreeMap::new();
        for idx in 1..20_000u64 {
            // A key in three is written again and again.
            let n = if random.below(2) == 0 { random.below(10) * 30 } else { random.below(300) };
            list.insert(&key(n), idx, idx, (Kind::Put, 0), b"");
            *versions.entry(n).or_insert(0) += 1;
        }
        let mut at = list.first();
        for n in versions.keys() {
            let first = at.expect("a node for each key");
            assert_eq!(first.key(), key(*n));
            // From any version the same.
            let mut version = Some(first);
            let mut passed = 0;
            while let Some(node) = version.filter(|node| node.key() == first.key()) {
                let later = node.next_key().map(|node| node.key().to_vec());
                assert_eq!(later, first.next_key().map(|node| node.key().to_vec()));
                version = node.next();
                passed += 1;
            }
            assert_eq!(passed, versions[n]);
            at = first.next_key();
        }
        assert!(at.is_none());
    }

    #[test]
    fn nodes_of_a_class_are_found_over_those_of_others() {
        for seed in 0..30 {
            let mut random = Random::seeded(seed);
            let list = SkipList::new(b"k", seed);
            let mut expected = BTreeMap::new();
            for idx in 1..1_500u64 {
                // Runs of one class, single ones, and what comes in between later.
                let n = if random.below(2) == 0 { idx * 7 } else { random.below(10_500) };
                let class = if random.below(8) == 0 { random.below(32) } else { n / 700 % 3 } as u8;
                let key = format!("k{n:08}").into_bytes();
                let class = *expected.entry(key.clone()).or_insert(class);
                list.insert(&key, idx, idx, (Kind::Put, class), b"");
            }
            for classes in [1, 2, 4, 1 << 31, 6, 1 << 9 | 1 << 10, 0, u32::MAX] {
                let is_of = |class: &u8| classes & (1 << u32::from(*class)) != 0;
                let mut at = list.first().filter(|node| !is_of(&node.class()));
                let first = expected.first_key_value().filter(|(_, class)| !is_of(class));
                assert_eq!(at.is_some(), first.is_some());
                let rest = expected.iter().filter(|(_, class)| is_of(class));
                for (key, _) in rest.take(if at.is_some() { usize::MAX } else { 0 }) {
                    at = at.and_then(|node| list.next_of(node, classes));
                    assert_eq!(at.map(|node| node.key()), Some(key.as_slice()), "seed {seed}");
                    // Past its older versions.
                    while let Some(next) =
                        at.and_then(|node| node.next()).filter(|n| n.key() == key)
                    {
                        at = Some(next);
                    }
                }
                assert!(at.and_then(|node| list.next_of(node, classes)).is_none());
            }
        }
    }

    #[test]
    fn what_a_reader_sees_is_passed_by_no_link_of_another_class() {
        let list = Arc::new(SkipList::new(b"", 1));
        // Batches are visible up to this one.
        let visible = Arc::new(AtomicUsize::new(0));
        let reader = {
            let (list, visible) = (list.clone(), visible.clone());
            braid_env::tasks::spawn_thread("reader", move || {
                loop {
                    let seen = visible.load(Ordering::Acquire);
                    let mut found = 0;
                    let mut at = list.first();
                    while let Some(node) = at {
                        found += usize::from(node.class() == 1 && node.idx() <= seen as u64);
                        at = list.next_of(node, 2);
                    }
                    // A node in four is of the class, the first of all is not.
                    assert_eq!(found, seen / 4);
                    if seen == 20_000 {
                        return;
                    }
                }
            })
        };
        let mut random = Random::seeded(3);
        list.insert(&[0], 1, 0, (Kind::Put, 0), b"");
        for idx in 1..=20_000u64 {
            let mut key = random.next_u64().to_be_bytes().to_vec();
            key.extend_from_slice(&idx.to_be_bytes());
            list.insert(&key, 1, idx, (Kind::Put, u8::from(idx % 4 == 0)), b"");
            visible.store(idx as usize, Ordering::Release);
        }
        reader.join().unwrap();
    }

    #[test]
    fn readers_see_a_sorted_list_while_it_grows() {
        let list = Arc::new(SkipList::new(b"", 1));
        let done = Arc::new(AtomicBool::new(false));
        let reader = {
            let (list, done) = (list.clone(), done.clone());
            braid_env::tasks::spawn_thread("reader", move || {
                while !done.load(Ordering::Relaxed) {
                    let mut last: Vec<u8> = Vec::new();
                    let mut at = list.first();
                    while let Some(node) = at {
                        assert!(node.key() > last.as_slice());
                        assert_eq!(node.key(), node.value());
                        last = node.key().to_vec();
                        at = node.next();
                    }
                }
            })
        };
        let mut random = Random::seeded(3);
        for idx in 0..20_000u64 {
            let mut key = random.next_u64().to_be_bytes().to_vec();
            key.extend_from_slice(&idx.to_be_bytes());
            list.insert(&key, 1, idx, (Kind::Put, 0), &key);
        }
        done.store(true, Ordering::Relaxed);
        reader.join().unwrap();
    }
}
