//! Access to the columns of a block image, without bounds checks.
//!
//! A block's columns are checked once, when it is loaded: where they begin and end, and that the
//! offsets in them lead into the image. After that a search would spend more time on checking the
//! same bounds again than on comparing keys. This is the one place that relies on it.

/// Reads a little-endian number of `N` bytes.
///
/// # Safety
/// `at + N` must not be above `bytes.len()`.
#[inline(always)]
unsafe fn read<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    debug_assert!(at + N <= bytes.len(), "column access out of bounds");
    // SAFETY: the caller promises that the bytes are there; arrays of bytes have no alignment.
    unsafe { bytes.as_ptr().add(at).cast::<[u8; N]>().read() }
}

/// # Safety
/// As [`read`].
#[inline(always)]
pub(super) unsafe fn u8_at(bytes: &[u8], at: usize) -> u8 {
    // SAFETY: the caller's promise is handed on.
    let [byte] = unsafe { read(bytes, at) };
    byte
}

/// # Safety
/// As [`read`].
#[inline(always)]
pub(super) unsafe fn u16_at(bytes: &[u8], at: usize) -> u16 {
    // SAFETY: the caller's promise is handed on.
    u16::from_le_bytes(unsafe { read(bytes, at) })
}

/// # Safety
/// As [`read`].
#[inline(always)]
pub(super) unsafe fn u32_at(bytes: &[u8], at: usize) -> u32 {
    // SAFETY: the caller's promise is handed on.
    u32::from_le_bytes(unsafe { read(bytes, at) })
}

/// # Safety
/// As [`read`].
#[inline(always)]
pub(super) unsafe fn u64_at(bytes: &[u8], at: usize) -> u64 {
    // SAFETY: the caller's promise is handed on.
    u64::from_le_bytes(unsafe { read(bytes, at) })
}

/// # Safety
/// `start <= end <= bytes.len()`.
#[inline(always)]
pub(super) unsafe fn slice_at(bytes: &[u8], start: usize, end: usize) -> &[u8] {
    debug_assert!(start <= end && end <= bytes.len(), "column slice out of bounds");
    // SAFETY: the caller promises that the range lies inside.
    unsafe { bytes.get_unchecked(start..end) }
}

/// The first eight bytes of a key as a number that sorts as they do; zero padded.
#[inline(always)]
pub(crate) fn head_of(key: &[u8]) -> u64 {
    if let Some(first) = key.first_chunk::<8>() {
        return u64::from_be_bytes(*first);
    }
    let mut head = [0; 8];
    head[..key.len()].copy_from_slice(key);
    u64::from_be_bytes(head)
}

/// As [`head_of`] for the key at `start..end` of an image: one load where eight bytes are there.
///
/// # Safety
/// `start <= end <= bytes.len()`.
#[inline(always)]
pub(super) unsafe fn head_at(bytes: &[u8], start: usize, end: usize) -> u64 {
    let len = end - start;
    if start + 8 > bytes.len() {
        // SAFETY: the caller's promise is handed on.
        return head_of(unsafe { slice_at(bytes, start, end) });
    }
    // SAFETY: just checked.
    let raw = u64::from_be_bytes(unsafe { read(bytes, start) });
    match len {
        0 => 0,
        1..=7 => raw & !(u64::MAX >> (len * 8)),
        _ => raw,
    }
}

/// First position in `0..n` at which `before` is false; `before` holds up to there and not behind.
/// Compiles to conditional moves: a search among numbers mispredicts no branch.
#[inline(always)]
pub(crate) fn partition_point(n: usize, before: impl Fn(usize) -> bool) -> usize {
    if n == 0 {
        return 0;
    }
    let (mut base, mut size) = (0, n);
    while size > 1 {
        let half = size / 2;
        base = std::hint::select_unpredictable(before(base + half), base + half, base);
        size -= half;
    }
    base + usize::from(before(base))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partition_point_agrees_with_the_standard_library() {
        for n in 0..70usize {
            let list: Vec<usize> = (0..n).collect();
            for split in 0..=n {
                let expected = list.partition_point(|x| *x < split);
                assert_eq!(partition_point(n, |i| list[i] < split), expected);
            }
        }
    }

    #[test]
    fn heads_in_an_image_are_those_of_the_keys() {
        let image: Vec<u8> = (1..=20).collect();
        for start in 0..=20 {
            for end in start..=20 {
                // SAFETY: the ranges lie in the image.
                let head = unsafe { head_at(&image, start, end) };
                assert_eq!(head, head_of(&image[start..end]));
            }
        }
    }
}
