//! Memory in large pages, for what is read here and there.
//!
//! A search in a skiplist or in cached blocks goes all over its memory, and each page of 4 KiB
//! costs it a miss in the processor's page tables as well, which in a virtual machine are two
//! tables in one another. Regions of 2 MiB that ask the kernel for large pages have one entry each.

use std::alloc::{Layout, alloc, handle_alloc_error};
use std::ptr::NonNull;

/// Size and alignment of a region: a large page of common processors.
pub(crate) const REGION: usize = 2 << 20;

/// How a region is allocated, and to be freed.
pub(crate) fn region_layout() -> Layout {
    Layout::from_size_align(REGION, REGION).expect("a power of two")
}

/// An uninitialised region, aligned to its size. Freed by `dealloc` with [`region_layout`].
pub(crate) fn region() -> NonNull<u8> {
    // SAFETY: the layout is not empty.
    let raw = unsafe { alloc(region_layout()) };
    let Some(start) = NonNull::new(raw) else { handle_alloc_error(region_layout()) };
    ask_for_large_pages(start);
    start
}

/// Gives pages of a region back to the system. Their contents are lost; whoever touches them again
/// gets zeroed ones, from then on small ones.
///
/// # Safety
/// `start` is the beginning of a page in a region, the `bytes` are whole pages of it, and nobody
/// uses what lies in them.
pub(crate) unsafe fn release(start: NonNull<u8>, bytes: usize) {
    #[cfg(target_os = "linux")]
    {
        use rustix::mm::{Advice, madvise};
        let region = start.as_ptr().map_addr(|address| address & !(REGION - 1));
        // Without this the system would make a large page again, of pages that nobody needs.
        // SAFETY: the region is an allocation of our own, and this advice changes no contents.
        let small = unsafe { madvise(region.cast(), REGION, Advice::LinuxNoHugepage) };
        // SAFETY: the caller's promise.
        let released = unsafe { madvise(start.as_ptr().cast(), bytes, Advice::LinuxDontNeed) };
        if let Err(error) = small.and(released) {
            tracing::debug!(%error, "memory is not given back");
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (start, bytes);
}

/// A hint: without large pages everything works, slower.
fn ask_for_large_pages(region: NonNull<u8>) {
    #[cfg(target_os = "linux")]
    {
        use rustix::mm::{Advice, madvise};
        // SAFETY: the range is an allocation of our own, and this advice changes no contents.
        let asked = unsafe { madvise(region.as_ptr().cast(), REGION, Advice::LinuxHugepage) };
        if let Err(error) = asked {
            tracing::debug!(%error, "no large pages");
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = region;
}
