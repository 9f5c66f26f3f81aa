//! Memory for skiplist nodes: handed out in order, freed all at once.
//!
//! Chunks of 256 KiB; a node larger than a quarter of that gets a chunk of its own, so one batch
//! of any size fits. Nothing moves, so pointers stay valid as long as the arena lives.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::NonNull;

const CHUNK: usize = 256 << 10;
const ALIGN: usize = 8;

/// An append-only pool of bytes aligned to 8.
pub(crate) struct Arena {
    chunks: Vec<(NonNull<u8>, Layout)>,
    free: *mut u8,
    left: usize,
}

// SAFETY: the arena owns its chunks exclusively; the raw pointers are never shared by it.
unsafe impl Send for Arena {}

impl Arena {
    pub(crate) fn new() -> Arena {
        Arena { chunks: Vec::new(), free: std::ptr::null_mut(), left: 0 }
    }

    /// Returns `size` uninitialised bytes, aligned to 8, valid until the arena is dropped.
    pub(crate) fn allocate(&mut self, size: usize) -> NonNull<u8> {
        let size = size.next_multiple_of(ALIGN);
        if size > CHUNK / 4 {
            return self.new_chunk(size);
        }
        if size > self.left {
            // The first chunks are small, so that an idle store costs little.
            let chunk_size = if self.chunks.len() < 4 { CHUNK / 16 } else { CHUNK };
            self.free = self.new_chunk(chunk_size.max(size)).as_ptr();
            self.left = chunk_size.max(size);
        }
        let start = self.free;
        // SAFETY: `left >= size`, so the result is within, or one past, the current chunk.
        self.free = unsafe { self.free.add(size) };
        self.left -= size;
        NonNull::new(start).expect("a chunk never starts at the null address")
    }

    fn new_chunk(&mut self, size: usize) -> NonNull<u8> {
        let layout = Layout::from_size_align(size, ALIGN).expect("entry sizes are limited");
        // SAFETY: the layout has a size above zero: callers allocate at least a node header.
        let raw = unsafe { alloc(layout) };
        let Some(chunk) = NonNull::new(raw) else { handle_alloc_error(layout) };
        self.chunks.push((chunk, layout));
        chunk
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        for (chunk, layout) in self.chunks.drain(..) {
            // SAFETY: the chunk came from `alloc` with this layout and is freed once.
            unsafe { dealloc(chunk.as_ptr(), layout) };
        }
    }
}
