//! Filters: "is this key certainly not in the sst?"
//!
//! A blocked bloom filter: the hash picks one 64-byte line, and all probes stay in it, so a look
//! costs one cache line. There are no false negatives; at 10 bits per key about one absent key
//! in eighty looks present.

use xxhash_rust::xxh3::xxh3_64;

use crate::cache::{Frame, prefetch};

const LINE: usize = 64;
const PROBES: u32 = 6;

/// The hash of a user key; computed once per get.
pub(crate) fn key_hash(key: &[u8]) -> u64 {
    xxh3_64(key)
}

/// Writes a filter over the hashes of all keys of an sst.
pub(crate) fn build(hashes: &[u64], bits_per_key: u32) -> Vec<u8> {
    let bits = hashes.len() as u64 * u64::from(bits_per_key);
    let lines = bits.div_ceil(LINE as u64 * 8).max(1) as usize;
    let mut image = vec![0; lines * LINE];
    for hash in hashes {
        let start = line_of(*hash, lines) * LINE;
        let line = &mut image[start..start + LINE];
        for bit in probes(*hash) {
            line[bit / 8] |= 1 << (bit % 8);
        }
    }
    image
}

/// A filter in memory: its lines are cache lines, as frames begin with one.
pub(crate) struct Filter {
    image: Frame<()>,
    lines: usize,
}

impl Filter {
    /// Copies an image; a rest that is shorter than a line is ignored, and so are lines that the
    /// image does not have: without lines, everything may be there.
    pub(crate) fn of(image: &[u8]) -> Filter {
        Filter { image: Frame::new((), image), lines: image.len() / LINE }
    }

    /// Bytes of memory.
    pub(crate) fn memory(&self) -> usize {
        self.image.memory()
    }

    /// The line of a hash, if there are any.
    #[inline]
    fn line(&self, hash: u64) -> Option<&[u8; LINE]> {
        self.image.image().as_chunks::<LINE>().0.get(line_of(hash, self.lines))
    }

    /// Brings the line of a hash closer.
    #[inline]
    pub(crate) fn prefetch(&self, hash: u64) {
        if let Some(line) = self.line(hash) {
            prefetch(line.as_ptr());
        }
    }

    /// Whether the key with this hash may be in the sst.
    #[inline]
    pub(crate) fn may_contain(&self, hash: u64) -> bool {
        let Some(line) = self.line(hash) else { return true };
        probes(hash).fold(1, |all, bit| all & (line[bit / 8 % LINE] >> (bit % 8))) & 1 != 0
    }
}

/// The line of a hash.
pub(crate) fn line_of(hash: u64, lines: usize) -> usize {
    ((u128::from(hash) * lines as u128) >> 64) as usize
}

/// The bits of a hash inside its line of 512.
pub(crate) fn probes(hash: u64) -> impl Iterator<Item = usize> {
    // The line came from the high bits; nine bits per probe come from a remix of all of them.
    let mixed = hash.wrapping_mul(0x9FB2_1C65_1E98_DF25);
    (0..PROBES).map(move |i| (mixed >> (i * 9)) as usize & (LINE * 8 - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_false_negatives_and_few_false_positives() {
        let hashes: Vec<u64> = (0..20_000u64).map(|i| key_hash(&i.to_le_bytes())).collect();
        let filter = Filter::of(&build(&hashes, 10));
        assert!(hashes.iter().all(|hash| filter.may_contain(*hash)));
        let wrong =
            (20_000..120_000u64).filter(|i| filter.may_contain(key_hash(&i.to_le_bytes()))).count();
        assert!(wrong < 2_500, "{wrong} of 100,000 absent keys look present");
    }
}
