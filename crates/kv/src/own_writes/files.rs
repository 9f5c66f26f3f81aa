//! The ssts of a commit: all that a transaction has written, in key order, and the spans that it
//! deleted, cut where one file ends and the next begins.
//!
//! ```text
//!   spans    [a ────────────────── k)                  [p ── r)
//!   points       b   c       f   g        m                     z
//!   files    [a ─────────── f)│[f ─────────────────────────────]
//! ```
//! Points and spans get one timestamp when the files enter the store, and at equal timestamps
//! points win: so a point inside of a span was written after it, as in the buffer.

use std::sync::Arc;

use braid_lsm::{CommitTs, SstBuilder};
use bytes::Bytes;

use super::rows::OwnRows;
use crate::bulk::{BulkFiles, BulkFolder, SST_BYTES};
use crate::error::{KvError, KvResult};
use crate::span_map::SpanMap;

pub(super) fn write(
    folder: &Arc<BulkFolder>,
    mut rows: OwnRows,
    spans: &SpanMap,
) -> KvResult<BulkFiles> {
    let mut files = BulkFiles::new(folder);
    let mut from = Bytes::new();
    let mut open: Option<SstBuilder> = None;
    while let Some((key, slot)) = rows.next()? {
        if open.as_ref().is_some_and(|full| full.size() >= SST_BYTES)
            && let Some(full) = open.take()
        {
            end(full, spans, (&from, Some(&key)))?;
            from = key.clone();
        }
        let builder = match &mut open {
            Some(builder) => builder,
            None => open.insert(begin(folder, &mut files)?),
        };
        match slot {
            Some(value) => builder.put(&key, &value),
            None => builder.delete(&key),
        }
        .map_err(KvError::from)?;
    }
    let last = match open {
        Some(last) => Some(last),
        None if spans.is_empty() => None,
        None => Some(begin(folder, &mut files)?),
    };
    last.map_or(Ok(()), |last| end(last, spans, (&from, None)))?;
    Ok(files)
}

fn begin(folder: &Arc<BulkFolder>, files: &mut BulkFiles) -> KvResult<SstBuilder> {
    let path = folder.new_path(None, "sst")?;
    files.add(path.clone());
    let builder = SstBuilder::create(folder.fs(), &path, CommitTs(1), folder.options());
    builder.map_err(KvError::from)
}

/// Ends a file that begins at a key and ends in front of another one.
fn end(mut file: SstBuilder, spans: &SpanMap, part: (&Bytes, Option<&Bytes>)) -> KvResult<()> {
    let (from, to) = part;
    for span in spans.iter() {
        let start = (&span.start).max(from);
        let end = to.map_or(&span.end, |to| to.min(&span.end));
        if start < end {
            file.delete_span(start, end).map_err(KvError::from)?;
        }
    }
    file.finish().map_err(KvError::from)?;
    Ok(())
}
