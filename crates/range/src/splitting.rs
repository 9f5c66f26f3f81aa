//! When a range is split by its size, and where.
//!
//! ```text
//!   span     [ family a | family b ..... | family c | .. )
//!   middle                     x
//!   split             at the start of b; at its end, if the range begins with b
//!   inside of b       only if b alone is larger than a range: at the highest border that helps
//! ```
//!
//! What belongs together is known by the keys alone: a row's key begins with those of the rows that
//! it lies inside of, and [`SplitPoints`] says where these end. Sizes are those of files; what was
//! written last is counted when it is in one.

use braid_lsm::{KeySpan, Result, ScanOptions};
use bytes::Bytes;

use crate::machine::newest;
use crate::replica::Replica;

/// Lengths of the beginnings of a key in front of which a range may be split, shortest first: that
/// of its outermost row, of the row inside of that, and so on.
pub type SplitPoints = fn(key: &[u8]) -> Vec<usize>;

/// Every key stands for itself.
pub fn anywhere(key: &[u8]) -> Vec<usize> {
    vec![key.len()]
}

impl Replica {
    /// Where the range should be split now, if it is too large.
    pub(crate) fn wanted_split(&self) -> Result<Option<Bytes>> {
        if !self.proposes() || !self.serves(self.clocks.now()) || self.is_being_split() {
            return Ok(None);
        }
        let (span, most) = (&self.machine.state.descriptor.span, self.options.max_range_bytes);
        let view = self.machine.view(newest())?;
        if view.stored_bytes(span)? <= most {
            return Ok(None);
        }
        let Some(middle) = view.divide(span, 2, most / 4)?.into_iter().next() else {
            return Ok(None);
        };
        // Where files are cut need not be a key.
        let Some(middle) = self.first_key(&KeySpan::new(middle, span.end.clone()))? else {
            return Ok(None);
        };
        let inside = |at: &Bytes| span.start < *at && *at < span.end;
        let points = self.machine.split_points();
        for (level, length) in points(&middle).into_iter().enumerate() {
            let family = KeySpan::prefix(&middle[..length.min(middle.len())]);
            if inside(&family.start) {
                return Ok(Some(family.start));
            }
            // The range begins with it, or inside of it.
            let is_larger = view.stored_bytes(&family)? > most;
            let behind = KeySpan::new(family.end, span.end.clone());
            if let Some(next) = self.first_key(&behind)?.filter(|_| !is_larger) {
                // In front of its family, of which the first rows may be missing now.
                let length = points(&next).get(level).map_or(next.len(), |at| *at.min(&next.len()));
                return Ok(Some(next.slice(..length)).filter(inside));
            }
        }
        Ok(None)
    }

    fn first_key(&self, span: &KeySpan) -> Result<Option<Bytes>> {
        if span.is_empty() {
            return Ok(None);
        }
        let options = ScanOptions { limit: Some(1), ..ScanOptions::default() };
        let mut scan = self.machine.view(newest())?.scan(span.clone(), options)?;
        Ok(scan.next_row()?.map(|row| Bytes::copy_from_slice(&row.key)))
    }
}
