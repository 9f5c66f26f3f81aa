//! What of an sst lies in a span, without reading all of it.

use bytes::Bytes;

use super::block_walker::BlockWalker;
use super::cursor::{SstCursor, Wanted};
use super::reader::SstReader;
use crate::error::Result;
use crate::key::KeySpan;

/// The rows of an sst in a span.
pub(crate) struct Extent {
    /// From the first row to just behind the last one.
    pub(crate) bounds: KeySpan,
    /// Bytes of the blocks that hold them, those at the edges counted whole.
    pub(crate) bytes: u64,
}

impl SstReader {
    /// First and last row in a span and the bytes between them; `None` if no row is in it. Range
    /// tombstones do not count. Reads at most one block at either end.
    pub(crate) fn extent(&self, span: &KeySpan) -> Result<Option<Extent>> {
        let edge = |backward: bool, to: &[u8]| -> Result<Option<Vec<u8>>> {
            let wanted = Wanted {
                read_ts: u64::MAX,
                classes: u32::MAX,
                backward,
                fill_cache: false,
                blocks: false,
                rows: 1,
            };
            let mut cursor = SstCursor::new(wanted);
            cursor.seek(self, to)?;
            Ok(cursor.key().filter(|key| span.contains(key)).map(<[u8]>::to_vec))
        };
        let (Some(first), Some(mut end)) = (edge(false, &span.start)?, edge(true, &span.end)?)
        else {
            return Ok(None);
        };
        let place = |key: &[u8]| -> Result<(u64, u64)> {
            let mut walker = BlockWalker::new(true);
            walker.seek(self, key)?;
            let handle = walker.entry().map(|entry| entry.handle());
            Ok(handle.map_or((0, 0), |h| (h.offset, h.offset + u64::from(h.len))))
        };
        let (from, _) = place(&first)?;
        let (_, to) = place(&end)?;
        end.push(0);
        let bounds = KeySpan::new(Bytes::from(first), Bytes::from(end));
        Ok(Some(Extent { bounds, bytes: to.saturating_sub(from) }))
    }
}
