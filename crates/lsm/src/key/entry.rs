//! Kinds of point entries. Range tombstones are not points; they live in a skyline.

/// What a point entry says about its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// The key has this value.
    Put = 0,
    /// The key is absent: a point tombstone.
    Delete = 1,
}

impl Kind {
    /// Reads a kind from disk; numbers 2 to 7 are reserved for later formats.
    pub(crate) fn from_u8(byte: u8) -> Option<Kind> {
        match byte {
            0 => Some(Kind::Put),
            1 => Some(Kind::Delete),
            _ => None,
        }
    }
}
