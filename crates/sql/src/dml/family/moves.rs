//! A row with rows inside of it gets another key: its family moves.
//!
//! ```text
//!   UPDATE customers SET id = 8 WHERE id = 7
//!     1  rows below are read and get the new key columns            in memory
//!     2  [/customers/7, /customers/7 FF) goes                       one tombstone
//!     3  the row, its children, theirs are put, with all that a row is asked that changes its key
//! ```
//! What is interleaved for locality only has no part in it: it stays where it is, and foreign keys
//! say what becomes of it.

use std::collections::HashMap;
use std::sync::Arc;

use braid_catalog::{Index, kv_error};
use braid_kv::ReadMode;
use braid_types::SqlResult;
use bytes::Bytes;

use super::doomed::without;
use super::erase::lock_families;
use super::fate::Fate;
use crate::dml::writer::{TableInfo, Writer};
use crate::general_query::Row;
use crate::jobs::reclaim;
use crate::storage::{TableLayout, TableScan};

/// Rows that move along: by table, parents first; key, old row, new row.
pub(in crate::dml) type Moved = Vec<(Arc<TableInfo>, Vec<(Bytes, Row, Row)>)>;

impl Writer {
    /// Takes families out of their places. The rows given have other keys in their new form.
    pub(in crate::dml) fn take_families(
        &mut self,
        info: &Arc<TableInfo>,
        heads: &[(Bytes, Row, Row)],
        moved: &mut Moved,
    ) -> SqlResult<()> {
        let ctx = self.ctx.clone();
        let fate = Fate::of_moved(&ctx.catalog, info.table())?;
        let mut spans: Vec<_> =
            heads.iter().map(|(key, ..)| TableLayout::family_span(key)).collect();
        spans.sort_by(|a, b| a.start.cmp(&b.start));
        lock_families(&ctx, &spans)?;
        let key = info.layout.rows.columns();
        let by_key: HashMap<&[u8], &Row> =
            heads.iter().map(|(key, _, new)| (key.as_ref() as &[u8], new)).collect();
        for t in &fate.dying[1..] {
            let child = self.info(t.id)?;
            let own = &child.layout.rows.columns()[..key.len()];
            let mut rows = Vec::new();
            let mut scan =
                TableScan::new(ctx.txn.clone(), child.layout.clone(), spans.clone(), None, false)
                    .reading(ReadMode::Latest);
            while let Some((at, old)) = scan.next_row()? {
                ctx.check_cancel()?;
                let head = child.layout.parent_key(&info.layout, &old)?;
                let Some(new) = by_key.get(head.as_slice()) else { continue };
                let mut row = old.clone();
                for (to, from) in own.iter().zip(key) {
                    row[to.ordinal] = new[from.ordinal].clone();
                }
                ctx.keep_rows("rows that move", [&old, &row])?;
                rows.push((at, old, row));
            }
            match moved.iter_mut().find(|(known, _)| known.table().id == t.id) {
                Some((_, known)) => known.extend(rows),
                None => moved.push((child, rows)),
            }
        }
        let mut kept = Vec::new();
        for table in &fate.kept {
            kept.extend(table.spans(&ctx, &spans, &mut |_| Ok(()))?);
        }
        kept.sort_by(|a, b| a.start.cmp(&b.start));
        kept.dedup_by(|next, before| next.start < before.end);
        let gone = without(&spans, &kept);
        for span in &gone {
            ctx.txn.delete_span(span).map_err(kv_error)?;
        }
        let leaves = |i: &Index| fate.leaves_entries(i.interleave_in);
        reclaim::erased(&ctx, &fate.dying, leaves, &gone)?;
        Ok(())
    }
}
