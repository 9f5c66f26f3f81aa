//! The allocator of the binary: mimalloc 3, told to take little memory, and asked in its short way.
//!
//! Nearly all layouts of Rust ask for 16 bytes of alignment or less, which every block of
//! mimalloc's has. Its functions for aligned blocks do not make use of that: above 1 KiB they take
//! a block that is larger by the alignment, so that buffers of 8, 64 or 1,024 KiB lie in blocks of
//! the next size (an eighth to a quarter more), and they find each block the slow way. The wrapper
//! in the crate `mimalloc` calls nothing else; this one calls them for large alignments only.

use std::alloc::{GlobalAlloc, Layout};

use libmimalloc_sys::{
    mi_free, mi_malloc, mi_malloc_aligned, mi_realloc, mi_realloc_aligned, mi_zalloc,
    mi_zalloc_aligned,
};

/// What every block is aligned to that is not smaller (`MI_MAX_ALIGN_SIZE`).
const ALIGNED_TO: usize = 16;

struct Allocator;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// Whether any block of this size has the alignment.
fn is_aligned_anyway(size: usize, align: usize) -> bool {
    align <= ALIGNED_TO && align <= size
}

// SAFETY: mimalloc's functions keep the contract of an allocator; those without an alignment are
// called only where it holds for all blocks of the size.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let (size, align) = (layout.size(), layout.align());
        // SAFETY: the size is not 0, and the alignment is a power of two.
        unsafe {
            if is_aligned_anyway(size, align) {
                mi_malloc(size).cast()
            } else {
                mi_malloc_aligned(size, align).cast()
            }
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let (size, align) = (layout.size(), layout.align());
        // SAFETY: as for `alloc`.
        unsafe {
            if is_aligned_anyway(size, align) {
                mi_zalloc(size).cast()
            } else {
                mi_zalloc_aligned(size, align).cast()
            }
        }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, _layout: Layout) {
        // SAFETY: the block comes from one of the functions above.
        unsafe { mi_free(block.cast()) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let align = layout.align();
        // SAFETY: the block comes from one of the functions above; the size is not 0.
        unsafe {
            if is_aligned_anyway(size, align) {
                mi_realloc(block.cast(), size).cast()
            } else {
                mi_realloc_aligned(block.cast(), size, align).cast()
            }
        }
    }
}

/// Makes the allocator take memory page by page, and give it back soon. It would ask for huge pages
/// else, of which every thread's heap touches many and fills few: 200 busy connections took 800 MiB
/// more. And it would keep what is free for a second, in which others take what was given back to
/// the node's pool: 160 MiB more.
extern "C" fn use_little_memory() {
    unsafe extern "C" {
        fn mi_option_set(option: i32, value: std::ffi::c_long);
    }
    /// `mi_option_arena_eager_commit` of mimalloc 3.
    const ARENA_EAGER_COMMIT: i32 = 4;
    /// `mi_option_purge_delay`, in milliseconds.
    const PURGE_DELAY: i32 = 15;
    // SAFETY: mimalloc is linked as the global allocator; the function writes one number.
    unsafe {
        mi_option_set(ARENA_EAGER_COMMIT, 0);
        mi_option_set(PURGE_DELAY, 10);
    }
}

/// The first option counts only before the first allocation, which the runtime makes before `main`.
#[used]
#[cfg(target_os = "linux")]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = use_little_memory;

/// Returns memory that is free to the system, for this thread and for threads that have ended.
pub(crate) fn return_free_memory() {
    unsafe extern "C" {
        fn mi_collect(force: bool);
    }
    // SAFETY: mimalloc is linked as the global allocator; the function takes no pointers and may be
    // called by any thread at any time.
    unsafe { mi_collect(true) }
}

#[cfg(test)]
mod tests {
    use std::alloc::{GlobalAlloc, Layout};

    use super::Allocator;

    /// Blocks of all sizes at all alignments, several of each, so that their places differ.
    #[test]
    fn every_block_has_the_alignment_that_is_asked_for_and_keeps_its_bytes() {
        let sizes = (1..200).chain((1..=21).flat_map(|n| [(1 << n) - 1, 1 << n, (1 << n) + 8]));
        for size in sizes.filter(|size| *size > 0) {
            for align in (0..=13).map(|n| 1 << n) {
                let layout = Layout::from_size_align(size, align).unwrap();
                let larger = size + size / 3 + 1;
                let blocks: Vec<*mut u8> = (0..3_u8)
                    .map(|n| {
                        // SAFETY: the layout is not empty; what is written lies in the block.
                        unsafe {
                            let block = Allocator.alloc(layout);
                            block.write_bytes(n + 1, size);
                            let block = Allocator.realloc(block, layout, larger);
                            assert_eq!(block.addr() % align, 0, "{layout:?} moved to {larger}");
                            assert_eq!((*block, *block.add(size - 1)), (n + 1, n + 1));
                            block
                        }
                    })
                    .collect();
                for block in blocks {
                    let now = Layout::from_size_align(larger, align).unwrap();
                    // SAFETY: the block was made with this layout.
                    unsafe { Allocator.dealloc(block, now) };
                }
                // SAFETY: the layout is not empty; the bytes that are read lie in the block.
                unsafe {
                    let block = Allocator.alloc_zeroed(layout);
                    assert_eq!(block.addr() % align, 0, "{layout:?}");
                    assert_eq!((*block, *block.add(size - 1)), (0, 0), "{layout:?}");
                    Allocator.dealloc(block, layout);
                }
            }
        }
    }
}
