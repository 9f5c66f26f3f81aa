//! Which keys a partition of a layer certainly does not have: a bloom filter (Bloom, "Space/time
//! trade-offs in hash coding with allowable errors", 1970).

use std::hash::{DefaultHasher, Hasher};

/// With six probes, about one absent key in a hundred looks present.
const BITS_PER_KEY: usize = 10;
const PROBES: u64 = 6;

/// The hash of a key, for all filters.
pub(super) fn hash(key: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(key);
    hasher.finish()
}

/// See the module.
pub(super) struct Filter {
    words: Vec<u64>,
}

impl Filter {
    /// A filter over keys with these hashes.
    pub(super) fn new(hashes: &[u64]) -> Filter {
        let words = (hashes.len() * BITS_PER_KEY).div_ceil(64).max(1);
        let mut filter = Filter { words: vec![0; words] };
        for hash in hashes {
            for bit in filter.bits(*hash) {
                filter.words[bit / 64] |= 1 << (bit % 64);
            }
        }
        filter
    }

    /// Whether a key with this hash may be among them.
    pub(super) fn may_contain(&self, hash: u64) -> bool {
        self.bits(hash).all(|bit| self.words[bit / 64] & 1 << (bit % 64) != 0)
    }

    /// The filter with these words, if there are any.
    pub(super) fn of_words(words: Vec<u64>) -> Option<Filter> {
        (!words.is_empty()).then_some(Filter { words })
    }

    pub(super) fn words(&self) -> &[u64] {
        &self.words
    }

    /// Bytes of memory.
    pub(super) fn memory(&self) -> usize {
        self.words.len() * 8
    }

    /// Two halves of the hash make all probes (Kirsch and Mitzenmacher, "Less hashing, same
    /// performance", 2006).
    fn bits(&self, hash: u64) -> impl Iterator<Item = usize> + use<> {
        let (step, bits) = (hash.rotate_left(32) | 1, self.words.len() as u64 * 64);
        (0..PROBES).map(move |n| (hash.wrapping_add(n.wrapping_mul(step)) % bits) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::{Filter, hash};

    #[test]
    fn keys_are_found_and_few_others() {
        let key = |n: u32| hash(&n.to_be_bytes());
        let hashes: Vec<u64> = (0..10_000).map(key).collect();
        let filter = Filter::new(&hashes);
        assert!(hashes.iter().all(|h| filter.may_contain(*h)));
        let wrong = (10_000..20_000).filter(|n| filter.may_contain(key(*n))).count();
        assert!(wrong < 300, "{wrong} of 10,000 absent keys look present");
    }
}
