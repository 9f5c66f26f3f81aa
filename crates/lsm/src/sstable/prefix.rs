//! What all keys of a block or an sst begin with, kept where their search begins.
//!
//! A search cuts it off the key and goes on with numbers. Looked up in the block's image, the
//! prefix is one more cold cache line; compared by `memcmp`, it is a call for a few bytes.

/// A short prefix. One per block index and sst, each read by every search there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Prefix {
    bytes: [u8; Prefix::MOST],
    len: u8,
}

impl Prefix {
    /// The longest prefix there is room for.
    pub(crate) const MOST: usize = 31;

    /// `None` if it is too long.
    pub(crate) fn of(prefix: &[u8]) -> Option<Prefix> {
        let mut bytes = [0; Prefix::MOST];
        bytes.get_mut(..prefix.len())?.copy_from_slice(prefix);
        Some(Prefix { bytes, len: prefix.len() as u8 })
    }

    /// The prefix.
    #[inline(always)]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// What the key has behind the prefix; `None` if it does not begin with it.
    #[inline(always)]
    pub(crate) fn strip<'k>(&self, key: &'k [u8]) -> Option<&'k [u8]> {
        let (own, rest) = key.split_at_checked(usize::from(self.len))?;
        let (chunks, tail) = self.bytes().as_chunks::<8>();
        let (own_chunks, own_tail) = own.as_chunks::<8>();
        let differ = chunks
            .iter()
            .zip(own_chunks)
            .fold(0, |differ, (a, b)| differ | (u64::from_ne_bytes(*a) ^ u64::from_ne_bytes(*b)));
        let tails_differ = tail.iter().zip(own_tail).fold(0, |differ, (a, b)| differ | (a ^ b));
        (differ == 0 && tails_differ == 0).then_some(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strips_as_the_standard_library_does() {
        let key: Vec<u8> = (1..=40).collect();
        for len in 0..=Prefix::MOST {
            for changed in 0..=len {
                let mut wanted = key[..len].to_vec();
                if let Some(byte) = wanted.get_mut(changed) {
                    *byte ^= 0x80;
                }
                let prefix = Prefix::of(&wanted).expect("short enough");
                for end in [0, len.saturating_sub(1), len, len + 1, 40] {
                    let key = &key[..end];
                    assert_eq!(prefix.strip(key), key.strip_prefix(wanted.as_slice()));
                }
            }
        }
        assert!(Prefix::of(&key[..32]).is_none());
    }
}
