//! Every interleaving of the lock-free parts, under loom.
//!
//! The files under test are the engine's own: they take their atomics from the module around them,
//! which is loom's here. What they rely on (one writer, counts that bring order) is acted out in
//! each model as the engine does it. `weakened` shows that the models would notice: the same
//! protocol with one ordering relaxed is caught.
//!
//! `cargo test -p braid-lsm --test interleavings` (in the ordinary test run; seconds).

use loom::sync::Arc;
use loom::thread;

mod atomics {
    pub(super) use loom::sync::atomic::{
        AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
    };
}

#[path = "../src/memtable/link.rs"]
mod link;

#[path = "../src/memtable/classes.rs"]
mod classes;

#[path = "../src/cache/owners.rs"]
#[expect(dead_code, reason = "not every model needs every method")]
mod owners;

use atomics::{AtomicU64, AtomicUsize, Ordering};
use classes::{Passed, Towers};
use link::Link;
use owners::Owners;

/// A node of a list with one level; leaked, as nodes live as long as their arena.
struct Node {
    head: u64,
    /// Written before the node is linked, read by whoever finds it: loom reports a race.
    value: loom::cell::UnsafeCell<u64>,
    idx: u64,
    link: Link<Node>,
}

// SAFETY: `value` is written before the node is published and only read afterwards; loom checks.
unsafe impl Send for Node {}
// SAFETY: as above.
unsafe impl Sync for Node {}

struct List {
    first: Link<Node>,
    /// Commit index of the last batch that readers see.
    visible: AtomicU64,
}

impl List {
    fn new() -> List {
        List { first: Link::end(), visible: AtomicU64::new(0) }
    }

    fn link(&self, node: *mut Node) -> &Link<Node> {
        // SAFETY: nodes are never freed while the model runs.
        if node.is_null() { &self.first } else { unsafe { &(*node).link } }
    }

    /// As the skiplist's walk on one level.
    fn before(&self, head: u64) -> *mut Node {
        let mut at = std::ptr::null_mut();
        loop {
            let (next_head, next) = self.link(at).read();
            if next_head >= head || next.is_null() {
                return at;
            }
            // SAFETY: as above. What the engine relies on: the node lies before the position.
            assert!(unsafe { (*next).head } < head, "walked past the position");
            at = next;
        }
    }

    /// What the one writer does: link the node, then make its batch visible.
    fn insert(&self, head: u64, idx: u64, nodes: &mut Vec<*mut Node>) {
        let node = Box::into_raw(Box::new(Node {
            head,
            value: loom::cell::UnsafeCell::new(head * 10),
            idx,
            link: Link::end(),
        }));
        nodes.push(node);
        let before = self.link(self.before(head));
        // SAFETY: just made, not yet reachable by others.
        unsafe { (*node).link.follow(before) };
        before.publish(node, head);
        self.visible.store(idx, Ordering::Release);
    }

    /// The value at `head`, if the batch that wrote it is visible.
    fn get(&self, head: u64) -> (u64, Option<u64>) {
        let visible = self.visible.load(Ordering::Acquire);
        let mut at = self.link(self.before(head)).next();
        while !at.is_null() {
            // SAFETY: nodes are never freed while the model runs.
            let node = unsafe { &*at };
            if node.head >= head {
                let found = node.head == head && node.idx <= visible;
                // SAFETY: published with the link; loom checks the order.
                return (visible, found.then(|| node.value.with(|value| unsafe { *value })));
            }
            at = node.link.next();
        }
        (visible, None)
    }
}

/// All interleavings of one writer's inserts, `(idx, head)` each, and what `read` does.
fn beside_inserts(inserts: &'static [(u64, u64)], read: fn(&List)) {
    loom::model(move || {
        let list = Arc::new(List::new());
        let writer = {
            let list = list.clone();
            thread::spawn(move || {
                let mut nodes = Vec::new();
                for (idx, head) in inserts {
                    list.insert(*head, *idx, &mut nodes);
                }
                nodes.into_iter().map(|node| node as usize).collect::<Vec<_>>()
            })
        };
        read(&list);
        for node in writer.join().unwrap() {
            // SAFETY: both threads are done with the list.
            drop(unsafe { Box::from_raw(node as *mut Node) });
        }
    });
}

#[test]
fn a_reader_finds_every_visible_entry_and_never_a_half_written_one() {
    // The second goes in front of the first, the third behind it.
    beside_inserts(&[(1, 5), (2, 3), (3, 7)], |list| {
        let (visible, found) = list.get(5);
        assert_eq!(found, (visible >= 1).then_some(50));
        let (visible, found) = list.get(3);
        assert_eq!(found, (visible >= 2).then_some(30));
    });
}

#[test]
fn a_reader_behind_the_last_entry_sees_all_of_a_sorted_batch() {
    beside_inserts(&[(1, 2), (2, 4)], |list| {
        let (visible, found) = list.get(4);
        assert_eq!(found, (visible >= 2).then_some(40));
    });
}

/// A node of a list with two levels at most, of a class.
struct Tall {
    class: u8,
    height: usize,
    links: [Link<Tall>; 2],
    passed: Passed,
}

fn tall(class: u8, height: usize) -> *mut Tall {
    let links = [Link::end(), Link::end()];
    Box::into_raw(Box::new(Tall { class, height, links, passed: Passed::everything() }))
}

/// The list's own tower.
struct TallList {
    links: [Link<Tall>; 2],
    passed: Passed,
}

// SAFETY: the pointers lead to nodes that live as long as the model.
unsafe impl Send for TallList {}
// SAFETY: as above.
unsafe impl Sync for TallList {}

impl Towers for TallList {
    type Node = Tall;

    fn link(&self, node: *mut Tall, level: usize) -> &Link<Tall> {
        // SAFETY: nodes are never freed while the model runs, here and below.
        if node.is_null() { &self.links[level] } else { unsafe { &(*node).links[level] } }
    }

    fn passed(&self, node: *mut Tall, _: usize) -> &Passed {
        // SAFETY: as above.
        if node.is_null() { &self.passed } else { unsafe { &(*node).passed } }
    }

    fn class(&self, node: *mut Tall) -> u8 {
        // SAFETY: as above.
        unsafe { (*node).class }
    }

    fn height(&self, node: *mut Tall) -> usize {
        // SAFETY: as above.
        unsafe { (*node).height }
    }
}

/// A list of nodes `(class, height)`. Behind its first one comes a node of class 0 and two levels:
/// whoever looks from the first one for class 1 finds what is of it all the same.
fn beside_a_tall_one(nodes: &'static [(u8, usize)]) {
    loom::model(move || {
        let links = [Link::end(), Link::end()];
        let list = Arc::new(TallList { links, passed: Passed::nothing() });
        let mut all: Vec<*mut Tall> = Vec::new();
        // Last node of each level.
        let mut path: [*mut Tall; 2] = [std::ptr::null_mut(); 2];
        for (head, (class, height)) in nodes.iter().enumerate() {
            let node = tall(*class, *height);
            list.pass_over(&path, *height, *class);
            for (level, before) in path.iter_mut().enumerate().take(*height) {
                list.link_in(*before, node, 10 * head as u64, level);
                *before = node;
            }
            all.push(node);
        }
        let first = all[0];
        let on_top = if list.height(first) == 2 { first } else { std::ptr::null_mut() };
        let writer = {
            let (list, path) = (list.clone(), [first as usize, on_top as usize]);
            thread::spawn(move || {
                let node = tall(0, 2);
                for (level, before) in path.into_iter().enumerate() {
                    list.link_in(before as *mut Tall, node, 5, level);
                }
                node as usize
            })
        };
        let expected = all.iter().skip(1).copied().find(|node| list.class(*node) == 1);
        assert_eq!(Some(list.next_of(first, 1 << 1)), expected);
        all.push(writer.join().unwrap() as *mut Tall);
        for node in all {
            // SAFETY: both threads are done with the list.
            drop(unsafe { Box::from_raw(node) });
        }
    });
}

#[test]
fn a_link_that_is_shortened_does_not_pass_over_what_lies_behind_it() {
    beside_a_tall_one(&[(0, 2), (1, 1), (0, 2)]);
    beside_a_tall_one(&[(0, 2), (0, 1), (1, 2)]);
}

#[test]
fn nobody_goes_on_by_a_link_that_is_not_made_yet() {
    beside_a_tall_one(&[(0, 1), (1, 1)]);
    beside_a_tall_one(&[(0, 1), (0, 2), (1, 1)]);
}

/// A frame: its memory may be taken back only when the last owner has read it.
struct Frame {
    owners: Owners,
    image: loom::cell::UnsafeCell<u64>,
    freed: AtomicUsize,
}

// SAFETY: the image is written only by the last owner; loom checks.
unsafe impl Send for Frame {}
// SAFETY: as above.
unsafe impl Sync for Frame {}

impl Frame {
    fn release(&self) {
        if self.owners.leave() {
            // Stands for giving the memory back: a write that must not race with any read.
            // SAFETY: the last owner is alone with it; loom checks that.
            self.image.with_mut(|image| unsafe { *image = 0 });
            self.freed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[test]
fn a_frame_is_freed_once_and_not_while_it_is_read() {
    loom::model(|| {
        let frame = Arc::new(Frame {
            owners: Owners::one(),
            image: loom::cell::UnsafeCell::new(7),
            freed: AtomicUsize::new(0),
        });
        let readers: Vec<_> = (0..2)
            .map(|_| {
                // The slot's owner hands a reference to each reader (pins are counts).
                frame.owners.join();
                let frame = frame.clone();
                thread::spawn(move || {
                    // SAFETY: owners only read; loom checks that nobody writes meanwhile.
                    assert_eq!(frame.image.with(|image| unsafe { *image }), 7);
                    frame.release();
                })
            })
            .collect();
        // Eviction: the slot lets go while readers are still there.
        frame.release();
        readers.into_iter().for_each(|reader| reader.join().unwrap());
        assert_eq!(frame.freed.load(Ordering::Relaxed), 1);
    });
}

/// The pointer's release is what makes the node's contents visible: without it loom must object.
#[test]
#[should_panic(expected = "")]
fn weakened_publication_is_caught() {
    loom::model(|| {
        let next = Arc::new(loom::sync::atomic::AtomicPtr::new(std::ptr::null_mut::<Node>()));
        let writer = {
            let next = next.clone();
            thread::spawn(move || {
                let node = Box::into_raw(Box::new(Node {
                    head: 1,
                    value: loom::cell::UnsafeCell::new(0),
                    idx: 1,
                    link: Link::end(),
                }));
                // SAFETY: not yet reachable by others.
                unsafe { (*node).value.with_mut(|value| *value = 10) };
                next.store(node, Ordering::Relaxed);
            })
        };
        let node = next.load(Ordering::Acquire);
        if !node.is_null() {
            // SAFETY: never freed; the race is what loom reports.
            assert_eq!(unsafe { (*node).value.with(|value| *value) }, 10);
        }
        writer.join().unwrap();
    });
}

/// A count that goes down without release lets the memory go while a reader still reads it.
#[test]
#[should_panic(expected = "")]
fn weakened_release_of_a_frame_is_caught() {
    loom::model(|| {
        let frame = Arc::new((AtomicUsize::new(2), loom::cell::UnsafeCell::new(7u64)));
        let leave = |frame: &(AtomicUsize, loom::cell::UnsafeCell<u64>)| {
            if frame.0.fetch_sub(1, Ordering::Relaxed) == 1 {
                // SAFETY: the race is what loom reports.
                frame.1.with_mut(|image| unsafe { *image = 0 });
            }
        };
        let reader = {
            let frame = frame.clone();
            thread::spawn(move || {
                // SAFETY: as above.
                assert_eq!(frame.1.with(|image| unsafe { *image }), 7);
                leave(&frame);
            })
        };
        leave(&frame);
        reader.join().unwrap();
    });
}

/// A piece of a range tombstone, as in the engine's skyline, in lists of one level.
struct Piece {
    start: u64,
    end: AtomicU64,
    idx: u64,
    /// The first of what it covered when it came.
    under: *mut Piece,
    link: Link<Piece>,
}

// SAFETY: `under` is written before the piece is published; the rest is atomic or never changes.
unsafe impl Send for Piece {}
// SAFETY: as above.
unsafe impl Sync for Piece {}

/// A tombstone over `[2, 8)` of batch 1; one over `[4, 6)` of batch 2 comes.
struct Pieces {
    first: *mut Piece,
    visible: AtomicU64,
}

// SAFETY: the pointer leads to a piece that lives as long as the model.
unsafe impl Send for Pieces {}
// SAFETY: as above.
unsafe impl Sync for Pieces {}

fn piece(start: u64, end: u64, idx: u64, under: *mut Piece) -> *mut Piece {
    Box::into_raw(Box::new(Piece {
        start,
        end: AtomicU64::new(end),
        idx,
        under,
        link: Link::end(),
    }))
}

impl Pieces {
    /// The insert of the skyline: two cuts, then the new piece in place of what lies between.
    /// `late`: the rest is linked before the end moves, as it must be.
    fn insert(&self, late: bool) -> Vec<usize> {
        let (low, high) =
            (piece(4, 8, 1, std::ptr::null_mut()), piece(6, 8, 1, std::ptr::null_mut()));
        let new = piece(4, 6, 2, low);
        let cut = |over: *mut Piece, rest: *mut Piece| {
            // SAFETY: pieces live as long as the model, here and below.
            let (over, rest_ref) = unsafe { (&*over, &*rest) };
            rest_ref.link.follow(&over.link);
            if !late {
                over.end.store(rest_ref.start, Ordering::Release);
            }
            over.link.publish(rest, rest_ref.start);
            over.end.store(rest_ref.start, Ordering::Release);
        };
        cut(self.first, low);
        cut(low, high);
        // SAFETY: as above.
        unsafe {
            (*new).link.follow(&(*low).link);
            (*self.first).link.publish(new, 4);
        }
        self.visible.store(2, Ordering::Release);
        [low, high, new].map(|piece| piece as usize).to_vec()
    }

    /// The newest visible tombstone over a key, as the engine looks for it.
    fn newest_over(&self, key: u64) -> (u64, u64) {
        let visible = self.visible.load(Ordering::Acquire);
        let mut at = self.first;
        while !at.is_null() {
            // SAFETY: pieces live as long as the model.
            let found = unsafe { &*at };
            let (head, next) = found.link.read();
            // SAFETY: as above.
            if head <= key && !next.is_null() && unsafe { (*next).start } <= key {
                at = next;
                continue;
            }
            if key < found.end.load(Ordering::Acquire) {
                if found.idx <= visible {
                    return (visible, found.idx);
                }
                at = found.under;
                continue;
            }
            // Cut just now, or a gap.
            let next = found.link.next();
            // SAFETY: as above.
            if next.is_null() || unsafe { (*next).start } > key {
                break;
            }
            at = next;
        }
        (visible, 0)
    }
}

/// Looks for the tombstone over `key` while the second one comes.
fn beside_a_range_delete(key: u64, late: bool) {
    loom::model(move || {
        let first = piece(2, 8, 1, std::ptr::null_mut());
        let pieces = Arc::new(Pieces { first, visible: AtomicU64::new(1) });
        let writer = {
            let pieces = pieces.clone();
            thread::spawn(move || pieces.insert(late))
        };
        let (visible, found) = pieces.newest_over(key);
        assert_eq!(found, if key == 5 { visible } else { 1 });
        for made in writer.join().unwrap().into_iter().chain([first as usize]) {
            // SAFETY: both threads are done with the pieces.
            drop(unsafe { Box::from_raw(made as *mut Piece) });
        }
    });
}

#[test]
fn a_reader_finds_its_tombstones_while_they_are_cut_and_covered() {
    for key in [3, 5, 7] {
        beside_a_range_delete(key, true);
    }
}

/// A piece whose end moves before the rest is linked leaves a gap that loom must find.
#[test]
#[should_panic(expected = "")]
fn weakened_cut_is_caught() {
    beside_a_range_delete(7, false);
}
