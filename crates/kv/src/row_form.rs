//! What the store is told of the values that it keeps, without knowing what a row is.
//!
//! ```text
//!   write      a value that begins with `stamped`: "in this column, when I was committed"
//!   commit     the entry gets its timestamp; the value stays as it is
//!   read       the value as it reads at that timestamp
//! ```
//! So a transaction can store the time of its commit, which nobody knows when the value is written,
//! and nothing needs to be written anew when it is known. Values are *settled* where they leave the
//! engine; a transaction's own writes are not.

use braid_lsm::{CommitTs, Db, Piece, RowBatch};
use bytes::Bytes;

use crate::error::KvResult;

/// The value of a key, as it is when committed at this timestamp; `None` for what is not stamped.
pub type Settle = fn(key: &[u8], value: &[u8], at: CommitTs) -> Option<Vec<u8>>;

/// What is known of the values of rows.
#[derive(Clone, Copy)]
pub struct RowForm {
    /// Tells a part of a value from others: equal parts have equal digests. `None` for what is no
    /// value. It must be as good as unique: a transaction goes on when the digest has stayed.
    pub part_digest: fn(value: &[u8], what: &[u8]) -> Option<u128>,
    /// First byte of values that hold their commit's time somewhere. Others may begin with it.
    pub stamped: u8,
    /// Puts the time into such a value.
    pub settle: Settle,
}

impl RowForm {
    #[inline]
    fn is_stamped(&self, value: &[u8]) -> bool {
        value.first() == Some(&self.stamped)
    }

    /// What a key was found to be as of `at`, settled.
    pub(crate) fn settled(
        &self,
        engine: &Db,
        (key, value): (&[u8], Bytes),
        at: CommitTs,
    ) -> KvResult<Bytes> {
        if !self.is_stamped(&value) {
            return Ok(value);
        }
        // Few values are: their timestamps are looked up.
        let found = engine.view(at)?.get_with_ts(key)?;
        let settled = found.and_then(|(value, ts)| (self.settle)(key, &value, ts));
        Ok(settled.map_or(value, Bytes::from))
    }

    /// Settles rows of a scan.
    pub(crate) fn settle_rows(&self, rows: &mut RowBatch) {
        if rows.has_parts() {
            let is_stamped = |piece| match piece {
                Piece::Part(part, _) => part.may_begin_with(self.stamped),
                Piece::Single(rows) => (0..rows.len()).any(|i| self.is_stamped(rows.value(i))),
            };
            if !rows.pieces(0..rows.len()).any(is_stamped) {
                return;
            }
            rows.make_single();
        }
        for i in 0..rows.len() {
            if self.is_stamped(rows.value(i))
                && let Some(value) = (self.settle)(rows.key(i), rows.value(i), rows.ts(i))
            {
                rows.set_value(i, &value);
            }
        }
    }
}
