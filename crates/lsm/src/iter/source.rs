//! What a layer must offer to take part in a merged read.

use crate::error::Result;
use crate::key::Kind;
use crate::range_tombstone::Cover;

/// The moment a read looks at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadPoint {
    /// Entries above this timestamp do not exist.
    pub(crate) ts: u64,
    /// Batches after this commit index do not exist (memtables only).
    pub(crate) visible: u64,
}

/// A cursor over one layer: the newest entry per key that the read may see, puts and deletes.
///
/// A cursor has a direction for life. Forward: `seek(k)` goes to the first key at or after `k`.
/// Backward: `seek(k)` goes to the last key below `k`. It does not apply range tombstones to its
/// entries; it reports them by `cover`.
pub(crate) trait Source: Send {
    /// Goes to a key; see the trait for the meaning in each direction.
    fn seek(&mut self, to: &[u8]) -> Result<()>;

    /// Goes to the next key in its direction; does nothing at the end.
    fn advance(&mut self) -> Result<()>;

    /// The current key; `None` at the end or before the first seek.
    fn key(&self) -> Option<&[u8]>;

    /// Timestamp of the current entry.
    fn ts(&self) -> u64;

    /// Kind of the current entry.
    fn kind(&self) -> Kind;

    /// Value of the current entry.
    fn value(&self) -> &[u8];

    /// The range tombstone of this layer at a position, and how far the answer holds in this
    /// cursor's direction. Need not be the cursor's own position.
    fn cover(&mut self, at: &[u8]) -> Result<Cover>;

    /// The cursor stands in a span that its own tombstone `cover` hides: it may jump over entries
    /// older than it, up to the end of the cover, if it can do so without looking at each.
    fn skip_hidden(&mut self, cover: &Cover) -> Result<()>;
}
