//! Comparing keys without a call: eight bytes at a time, in the order of their bytes.
//!
//! `memcmp` is faster on long keys. But it loads 32 bytes at once, and a processor cannot hand a
//! load what several younger stores are about to write: comparing with a key that was copied a
//! moment ago waits for these stores. Walks that copy a key, compare it and go on use this.

use std::cmp::Ordering;

/// The order of two keys.
#[inline]
pub(crate) fn compare(a: &[u8], b: &[u8]) -> Ordering {
    let both = a.len().min(b.len());
    let mut at = 0;
    while at + 8 <= both {
        let order = word(a, at).cmp(&word(b, at));
        if order.is_ne() {
            return order;
        }
        at += 8;
    }
    let rest = if at == 0 {
        a[..both].cmp(&b[..both])
    } else {
        // The last eight once more: what was compared before is equal.
        word(a, both - 8).cmp(&word(b, both - 8))
    };
    rest.then(a.len().cmp(&b.len()))
}

#[inline]
fn word(key: &[u8], at: usize) -> u64 {
    key[at..].first_chunk().map_or(0, |chunk| u64::from_be_bytes(*chunk))
}

#[cfg(test)]
mod tests {
    use braid_env::random::Random;

    use super::*;

    #[test]
    fn orders_as_slices_do() {
        let mut random = Random::seeded(1);
        for _ in 0..200_000 {
            // Keys that are alike: few letters, a common beginning.
            let common: Vec<u8> = (0..random.below(20)).map(|_| random.below(3) as u8).collect();
            let mut key = || {
                let mut key = common.clone();
                key.extend((0..random.below(12)).map(|_| [0, 1, 255][random.below(3) as usize]));
                key
            };
            let (a, b) = (key(), key());
            assert_eq!(compare(&a, &b), a.cmp(&b), "{a:?} {b:?}");
            assert_eq!(compare(&a, &a), Ordering::Equal);
        }
    }
}
