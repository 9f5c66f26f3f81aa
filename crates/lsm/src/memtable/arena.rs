//! Memory for skiplist nodes: handed out in order, freed all at once.
//!
//! Small chunks first, then whole regions in large pages. A node larger than a small chunk gets a
//! chunk of its own, so one batch of any size fits. Nothing moves, so pointers stay valid as long
//! as the arena lives.
//!
//! Large chunks are used again by later arenas: fresh pages come from the kernel filled with zeros,
//! which costs a writer more than inserting into them. While arenas take chunks, background work
//! keeps a few more ready ([`prepare_chunks`]), so that no writer waits for the kernel.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::large_pages::{REGION, region, region_layout};

const SMALL_CHUNK: usize = 16 << 10;
/// The first chunks are small, so that an idle store costs little.
const SMALL_CHUNKS: usize = 16;
const ALIGN: usize = 8;

/// A large chunk that no arena uses.
struct Spare(NonNull<u8>);

// SAFETY: nobody else has a pointer into a spare chunk.
unsafe impl Send for Spare {}

/// At most so many are kept, 64 MiB: a memtable of usual size.
const MOST_SPARE: usize = 32;
static SPARE: Mutex<Vec<Spare>> = Mutex::new(Vec::new());
/// So many should be there while arenas take them.
const READY: usize = 2;
static WANTED: AtomicBool = AtomicBool::new(false);

/// Whether arenas take large chunks, and few are left.
pub(crate) fn wants_chunks() -> bool {
    WANTED.load(Ordering::Relaxed)
}

/// Makes spare chunks until there are a few.
pub(crate) fn prepare_chunks() {
    WANTED.store(false, Ordering::Relaxed);
    while SPARE.lock().len() < READY {
        let chunk = region();
        for page in (0..REGION).step_by(4096) {
            // SAFETY: inside of the region, which is nobody else's. The write makes the kernel
            // back the page with memory.
            unsafe { chunk.as_ptr().add(page).write_volatile(0) };
        }
        SPARE.lock().push(Spare(chunk));
    }
}

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
        if size > SMALL_CHUNK {
            return self.new_chunk(size);
        }
        if size > self.left {
            let small = self.chunks.len() < SMALL_CHUNKS;
            self.left = if small { SMALL_CHUNK } else { REGION };
            let chunk = if small { self.new_chunk(SMALL_CHUNK) } else { self.large_chunk() };
            self.free = chunk.as_ptr();
        }
        let start = self.free;
        // SAFETY: `left >= size`, so the result is within, or one past, the current chunk.
        self.free = unsafe { self.free.add(size) };
        self.left -= size;
        NonNull::new(start).expect("a chunk never starts at the null address")
    }

    fn large_chunk(&mut self) -> NonNull<u8> {
        let (spare, left) = {
            let mut spare = SPARE.lock();
            (spare.pop(), spare.len())
        };
        if left < READY {
            WANTED.store(true, Ordering::Relaxed);
        }
        let chunk = spare.map_or_else(region, |Spare(chunk)| chunk);
        self.chunks.push((chunk, region_layout()));
        chunk
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
            if layout == region_layout() {
                let mut spare = SPARE.lock();
                if spare.len() < MOST_SPARE {
                    spare.push(Spare(chunk));
                    continue;
                }
            }
            // SAFETY: the chunk came from `alloc` with this layout and is freed once.
            unsafe { dealloc(chunk.as_ptr(), layout) };
        }
    }
}
