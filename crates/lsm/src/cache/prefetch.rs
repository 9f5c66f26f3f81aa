//! A hint to the processor.

/// Asks the processor to bring the cache line at `at` closer; does nothing where it cannot.
#[inline]
pub fn prefetch<T: ?Sized>(at: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch has no effect that a program can see, whatever the address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(at.cast::<i8>());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}
