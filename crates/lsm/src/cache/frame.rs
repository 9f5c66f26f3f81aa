//! A frame: a block's image behind what was read from its header, in one piece of memory, counted.
//!
//! ```text
//!   | owners | length | header H | image bytes ... |        aligned to a cache line
//! ```
//!
//! A search in a block begins in its first lines. With `Arc<Block>` over an image of its own, the
//! first of them says only where the others are, and the processor waits twice. Here their
//! addresses follow from the pointer in the slot, so all of them can be fetched at once.

use std::alloc::Layout;
use std::ptr::NonNull;

use super::frame_pool::{self, Life};
use super::owners::Owners;
use super::prefetch::prefetch;

const LINE: usize = 64;

#[repr(C, align(64))]
struct Inner<H> {
    owners: Owners,
    len: usize,
    header: H,
}

/// What a frame's image begins with.
pub(crate) trait Header: Copy {
    /// How long frames with such a header live.
    const LIFE: Life;
}

/// Images without a header are filters and parts of an index.
impl Header for () {
    const LIFE: Life = Life::Staying;
}

/// A counted pointer to a header and the bytes behind it.
pub(crate) struct Frame<H: Header> {
    inner: NonNull<Inner<H>>,
}

// SAFETY: a frame gives out shared references only (except `header_mut` to a single owner), its
// count is atomic, and H is as free to move and share as its bounds say.
unsafe impl<H: Header + Send + Sync> Send for Frame<H> {}
// SAFETY: as above.
unsafe impl<H: Header + Send + Sync> Sync for Frame<H> {}

impl<H: Header> Frame<H> {
    fn layout(len: usize) -> Layout {
        let size = size_of::<Inner<H>>() + len;
        Layout::from_size_align(size, LINE).expect("blocks are smaller than half the memory")
    }

    /// A frame with a copy of `image`.
    pub(crate) fn new(header: H, image: &[u8]) -> Frame<H> {
        let layout = Frame::<H>::layout(image.len());
        let inner = frame_pool::allocate(layout, H::LIFE).cast::<Inner<H>>();
        // SAFETY: the allocation is aligned for Inner and large enough for it and the image behind
        // it; nobody else has a pointer to it.
        unsafe {
            inner.write(Inner { owners: Owners::one(), len: image.len(), header });
            let bytes = inner.add(1).cast::<u8>().as_ptr();
            bytes.copy_from_nonoverlapping(image.as_ptr(), image.len());
        }
        Frame { inner }
    }

    #[inline(always)]
    pub(crate) fn header(&self) -> &H {
        // SAFETY: the frame is alive as long as anybody counts as owner, as `self` does.
        unsafe { &(*self.inner.as_ptr()).header }
    }

    /// The header, to be changed; `None` if there are other owners.
    pub(crate) fn header_mut(&mut self) -> Option<&mut H> {
        // SAFETY: alive, as above.
        if !unsafe { &(*self.inner.as_ptr()).owners }.is_one() {
            return None;
        }
        // SAFETY: `self` is the only owner and is borrowed exclusively.
        Some(unsafe { &mut (*self.inner.as_ptr()).header })
    }

    #[inline(always)]
    pub(crate) fn image(&self) -> &[u8] {
        // SAFETY: `new` wrote `len` bytes behind Inner; they never change.
        unsafe {
            let len = (*self.inner.as_ptr()).len;
            std::slice::from_raw_parts(self.inner.add(1).cast::<u8>().as_ptr(), len)
        }
    }

    /// Bytes of memory.
    pub(crate) fn memory(&self) -> usize {
        frame_pool::size_taken(Frame::<H>::layout(self.image().len()))
    }

    /// Brings the first `lines` cache lines closer, without waiting for any.
    #[inline(always)]
    pub(crate) fn prefetch(&self, lines: usize) {
        let start = self.inner.as_ptr().cast::<u8>();
        for line in 0..lines {
            prefetch(start.wrapping_add(line * LINE));
        }
    }
}

impl<H: Header> Clone for Frame<H> {
    fn clone(&self) -> Frame<H> {
        // SAFETY: alive, as `self` is an owner.
        unsafe { &(*self.inner.as_ptr()).owners }.join();
        Frame { inner: self.inner }
    }
}

impl<H: Header> Drop for Frame<H> {
    fn drop(&mut self) {
        // SAFETY: alive, as `self` is still an owner.
        let inner = unsafe { &*self.inner.as_ptr() };
        if !inner.owners.leave() {
            return;
        }
        let layout = Frame::<H>::layout(inner.len);
        // SAFETY: this was the last owner; the memory came from `allocate` with this layout. H is
        // Copy, so nothing in it wants to be dropped.
        unsafe { frame_pool::free(self.inner.cast::<u8>(), layout, H::LIFE) };
    }
}

// SAFETY: the raw pointer is the frame's own; turning it back gives the same frame; the count is
// not touched by either. Two frames have the same pointer only if they are the same.
unsafe impl<H: Header> arc_swap::RefCnt for Frame<H> {
    type Base = u8;

    fn into_ptr(me: Frame<H>) -> *mut u8 {
        let raw = me.inner.as_ptr().cast::<u8>();
        std::mem::forget(me);
        raw
    }

    fn as_ptr(me: &Frame<H>) -> *mut u8 {
        me.inner.as_ptr().cast::<u8>()
    }

    unsafe fn from_ptr(ptr: *const u8) -> Frame<H> {
        let inner = NonNull::new(ptr.cast_mut().cast::<Inner<H>>());
        Frame { inner: inner.expect("frames are never null") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Header for u64 {
        const LIFE: Life = Life::Passing;
    }

    #[test]
    fn owners_share_one_image_until_the_last_is_gone() {
        let mut frame = Frame::new(7u64, b"image");
        *frame.header_mut().expect("one owner") = 8;
        let copies: Vec<Frame<u64>> = (0..10).map(|_| frame.clone()).collect();
        assert!(frame.header_mut().is_none());
        let threads: Vec<_> = copies
            .into_iter()
            .map(|copy| {
                braid_env::tasks::spawn_thread("owner", move || {
                    assert_eq!((*copy.header(), copy.image()), (8, b"image".as_slice()));
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(frame.image(), b"image");
        assert!(frame.header_mut().is_some());
    }
}
