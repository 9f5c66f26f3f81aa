//! A link of a skiplist: a pointer to the next node, with the head of that node beside it.
//!
//! A search touches the nodes that it walks over, and not those that turn out to lie too far:
//! every node is a cache miss in a large list.
//!
//! The two words are not written together. The pointer is stored before the head and read after
//! it, so a reader may find a pointer that is newer than the head. Nodes are only ever put *in
//! front* of the one a link leads to, so the newer pointer leads to a smaller key:
//!
//! * "the head lies before the position" holds for the pointer's node too: walking on is right;
//! * "the head lies behind it" at worst makes a reader miss nodes that are being inserted now,
//!   whose batches are not visible to it yet.
//!
//! `tests/interleavings.rs` runs this file under loom.

use super::atomics::{AtomicPtr, AtomicU64, Ordering};

/// Where a level of the list goes on.
pub(crate) struct Link<N> {
    next: AtomicPtr<N>,
    /// Head of `next`, or of a node behind it; MAX at the end.
    head: AtomicU64,
}

impl<N> Link<N> {
    /// The end of a level.
    pub(crate) fn end() -> Link<N> {
        Link { next: AtomicPtr::new(std::ptr::null_mut()), head: AtomicU64::new(u64::MAX) }
    }

    /// The next node; null at the end. What was written to it before it was linked is visible.
    pub(crate) fn next(&self) -> *mut N {
        self.next.load(Ordering::Acquire)
    }

    /// A head, then the next node, which lies at or in front of where that head came from.
    pub(crate) fn read(&self) -> (u64, *mut N) {
        // Acquire: the pointer read after it is at least as new.
        let head = self.head.load(Ordering::Acquire);
        (head, self.next.load(Ordering::Acquire))
    }

    /// Makes this link of a node that is not in the list yet lead where `before` does.
    pub(crate) fn follow(&self, before: &Link<N>) {
        self.next.store(before.next.load(Ordering::Relaxed), Ordering::Relaxed);
        self.head.store(before.head.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Puts a finished node in front of what this link leads to. Only the list's one writer.
    pub(crate) fn publish(&self, node: *mut N, head: u64) {
        // Release: whoever finds the node finds what is in it.
        self.next.store(node, Ordering::Release);
        // Release: whoever reads this head reads the pointer above, or a newer one.
        self.head.store(head, Ordering::Release);
    }
}
