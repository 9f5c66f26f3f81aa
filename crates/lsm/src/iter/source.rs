//! What a layer must offer to take part in a merged read.

use super::stretch::Stretch;
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

/// What a read did. Plain numbers: every cursor counts for itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ReadWork {
    /// Row and index blocks looked at, cached or not.
    pub(crate) blocks: u64,
    /// Blocks that came from the device.
    pub(crate) from_disk: u64,
    /// Entries passed that the read does not want or cannot see.
    pub(crate) rows_passed: u64,
}

impl ReadWork {
    /// Adds what another cursor did.
    pub(crate) fn add(&mut self, other: ReadWork) {
        self.blocks += other.blocks;
        self.from_disk += other.from_disk;
        self.rows_passed += other.rows_passed;
    }
}

/// A cursor over one layer: the newest entry per key that the read may see, puts and deletes.
///
/// A cursor has a direction for life. Forward: `seek(k)` goes to the first key at or after `k`.
/// Backward: `seek(k)` goes to the last key below `k`. It does not apply range tombstones to its
/// entries; it reports them by `cover`.
pub(crate) trait Source: Send {
    /// Goes to a key; see the trait for the meaning in each direction.
    fn seek(&mut self, to: &[u8]) -> Result<()>;

    /// The first half of a seek: finds the place and brings it closer. Always followed by
    /// `settle_at` with the same key; the merge does the first half for all layers, then the
    /// second, so that their cache misses overlap.
    fn aim(&mut self, _to: &[u8]) -> Result<()> {
        Ok(())
    }

    /// The second half of a seek.
    fn settle_at(&mut self, to: &[u8]) -> Result<()> {
        self.seek(to)
    }

    /// Goes to the next key in its direction; does nothing at the end.
    fn advance(&mut self) -> Result<()>;

    /// Hands out rows from the current one on, while they lie within the stretch; then stands on
    /// the first row that was not handed out.
    fn fill(&mut self, stretch: &mut Stretch<'_>) -> Result<()> {
        self.fill_by_steps(stretch)
    }

    /// [`Source::fill`] for sources without a faster way.
    fn fill_by_steps(&mut self, stretch: &mut Stretch<'_>) -> Result<()> {
        while let Some(key) = self.key() {
            if !stretch.takes(key) {
                break;
            }
            if self.kind() == Kind::Put && self.ts() >= stretch.hidden_below() {
                stretch.push(key, self.value(), self.ts());
            } else {
                stretch.pass();
            }
            self.advance()?;
        }
        Ok(())
    }

    /// The current key; `None` at the end or before the first seek.
    fn key(&self) -> Option<&[u8]>;

    /// Timestamp of the current entry.
    fn ts(&self) -> u64;

    /// Kind of the current entry.
    fn kind(&self) -> Kind;

    /// Value of the current entry.
    fn value(&self) -> &[u8];

    /// What the cursor did so far.
    fn work(&self) -> ReadWork;

    /// The range tombstone of this layer at a position, and how far the answer holds in this
    /// cursor's direction. Need not be the cursor's own position.
    fn cover(&mut self, at: &[u8]) -> Result<Cover>;

    /// If a visible tombstone of this layer is over `at`, and nothing of this layer below it is
    /// visible: moves `at` to its end, and on over tombstones that touch, as long as the same is
    /// true of them, but not beyond `stop`. Returns how many there were. The cursor stands on its
    /// next entry, or `at` is behind it, and only forward.
    fn pass(&mut self, _at: &mut Vec<u8>, _stop: &[u8]) -> Result<u64> {
        Ok(0)
    }

    /// The cursor stands in a span that its own tombstone `cover` hides: it may jump over entries
    /// older than it, up to the end of the cover, if it can do so without looking at each.
    fn skip_hidden(&mut self, cover: &Cover) -> Result<()>;
}
