//! The key of the row that a cursor stands on, put together from its pieces.
//!
//! ```text
//!   block prefix | bundle prefix | own rest          16 rows of a bundle share the first two
//!   <------- shared -------->
//! ```
//!
//! Keys are short, and a call of `memcpy` for a few bytes takes longer than copying them. So what
//! a bundle shares is kept at the head of a piece of [`WHOLE`] bytes, which is copied as it is;
//! the eight bytes behind the shared ones are overwritten by the row's own, and the rest is cut
//! off again.

use super::row_block::{BUNDLE, RowBlock};

/// Bytes that are copied at once.
const WHOLE: usize = 48;
/// Bytes of a row's own rest that are copied at once.
const REST: usize = 8;

/// The key of a row, and what the next rows of its bundle can use of it.
pub(super) struct RowKey {
    bytes: Vec<u8>,
    /// Bundle whose shared bytes are known; MAX: none.
    bundle: usize,
    /// Number of bytes that the bundle shares.
    shared: usize,
    /// The shared bytes, if there are at most WHOLE - REST.
    whole: [u8; WHOLE],
}

impl RowKey {
    /// No key yet.
    pub(super) fn new() -> RowKey {
        RowKey { bytes: Vec::new(), bundle: usize::MAX, shared: 0, whole: [0; WHOLE] }
    }

    /// The key read last.
    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Call when going on to another block: bundle numbers mean something else there.
    pub(super) fn leave_block(&mut self) {
        self.bundle = usize::MAX;
    }

    /// Takes the key out; until the next read there is none.
    pub(super) fn take(&mut self) -> Vec<u8> {
        self.leave_block();
        std::mem::take(&mut self.bytes)
    }

    /// Makes a key taken out the current one again.
    pub(super) fn put_back(&mut self, key: Vec<u8>) {
        self.bytes = key;
    }

    /// Reads the key of a row.
    #[inline]
    pub(super) fn read(&mut self, block: &RowBlock, row: usize) {
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        self.append(block, row, &mut bytes);
        self.bytes = bytes;
    }

    /// Appends the key of a row to `out`, without making it the current one.
    #[inline]
    pub(super) fn append(&mut self, block: &RowBlock, row: usize, out: &mut Vec<u8>) {
        if self.bundle != row / BUNDLE {
            self.enter_bundle(block, row);
        }
        let (rest, rest_len) = block.own_head(row);
        if self.shared + REST > WHOLE || rest_len > REST {
            block.append_shared(row, out);
            out.extend_from_slice(block.own_key(row));
            return;
        }
        let start = out.len();
        out.extend_from_slice(&self.whole);
        out[start + self.shared..][..REST].copy_from_slice(&rest);
        out.truncate(start + self.shared + rest_len);
    }

    fn enter_bundle(&mut self, block: &RowBlock, row: usize) {
        self.bundle = row / BUNDLE;
        self.shared = block.shared_len(row);
        if self.shared + REST <= WHOLE {
            block.copy_shared(row, &mut self.whole);
        }
    }
}
