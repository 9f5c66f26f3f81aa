//! A bound of a fragment: a key that usually lies inside of the node that holds it.
//!
//! A look into a skyline compares with two keys per node. As long as they are short they cost no
//! cache miss of their own, and copying a node counts no references.

use std::ops::Deref;

use bytes::Bytes;

const INLINE: usize = 38;

/// A key, in place if it is short.
#[derive(Clone)]
pub(super) enum Bound {
    Short { len: u8, bytes: [u8; INLINE] },
    Long(Bytes),
}

impl From<Bytes> for Bound {
    fn from(key: Bytes) -> Bound {
        if key.len() > INLINE {
            return Bound::Long(key);
        }
        let mut bytes = [0; INLINE];
        bytes[..key.len()].copy_from_slice(&key);
        Bound::Short { len: key.len() as u8, bytes }
    }
}

impl Deref for Bound {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Bound::Short { len, bytes } => &bytes[..usize::from(*len)],
            Bound::Long(key) => key,
        }
    }
}

impl Bound {
    /// The key, to keep.
    pub(super) fn to_bytes(&self) -> Bytes {
        match self {
            Bound::Short { .. } => Bytes::copy_from_slice(self),
            Bound::Long(key) => key.clone(),
        }
    }
}
