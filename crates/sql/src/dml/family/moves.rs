//! A row with rows inside of it gets another key: its family moves.
//!
//! ```text
//!   UPDATE customers SET id = 8 WHERE id = 7
//!     1  scans of the tables below are opened                       they see what there is now
//!     2  [/customers/7, /customers/7 FF) goes                       one tombstone
//!     3  the row is put, then its children, then theirs, a part     with all that a row is asked
//!        at a time from the scans, with the new key columns         that changes its key
//! ```
//! So however many rows a family has, few of them are in memory; what is written lies on disk when
//! it is much. What is interleaved for locality only has no part in it: it stays where it is, and
//! foreign keys say what becomes of it.

use std::collections::HashMap;
use std::sync::Arc;

use braid_catalog::{Index, kv_error, memory_error};
use braid_env::memory::Held;
use braid_kv::{KeySpan, ReadMode};
use braid_types::{Datum, SqlResult};
use bytes::Bytes;

use super::doomed::without;
use super::erase::lock_families;
use super::fate::Fate;
use crate::dml::in_parts::part;
use crate::dml::writer::{TableInfo, Writer};
use crate::jobs::reclaim;
use crate::session::Context;
use braid_rows::Row;
use braid_rows::{TableLayout, TableScan};

/// An open scan takes about so many bytes.
const SCAN_BYTES: usize = 512;

/// By its old key, the key columns of each row that moves with its family.
type Heads = HashMap<Bytes, Vec<Datum>>;

/// Rows that move along with those above them.
pub(in crate::dml) struct Moving {
    /// Their table.
    pub(in crate::dml) info: Arc<TableInfo>,
    above: Arc<TableInfo>,
    heads: Arc<Heads>,
    scan: TableScan,
    /// The open scans.
    _open: Held,
    /// A part of the rows.
    held: Held,
}

impl Moving {
    /// Those of families in spans that are sorted.
    fn open(
        ctx: &Context,
        (info, above): (Arc<TableInfo>, &Arc<TableInfo>),
        heads: &Arc<Heads>,
        spans: &[KeySpan],
    ) -> SqlResult<Moving> {
        let mut open = ctx.memory.hold("scans of rows that move");
        open.grow(spans.len() * SCAN_BYTES).map_err(|e| memory_error(&e))?;
        let (txn, layout) = (ctx.txn.clone(), info.layout.clone());
        let mut scan =
            TableScan::new(txn, layout, spans.to_vec(), None, false).reading(ReadMode::Latest);
        scan.open_all()?;
        let (above, heads) = (above.clone(), heads.clone());
        let held = ctx.memory.hold("rows that move");
        Ok(Moving { info, above, heads, scan, _open: open, held })
    }

    /// How many tables they lie in.
    pub(in crate::dml) fn depth(&self) -> usize {
        self.info.layout.rows.depth()
    }

    /// The next of them, with what they become; `None` at the end.
    pub(in crate::dml) fn next_part(
        &mut self,
        ctx: &Context,
    ) -> SqlResult<Option<Vec<(Bytes, Row, Row)>>> {
        let Moving { info, above, heads, scan, held, .. } = self;
        let Some(rows) = part(ctx, held, || scan.next_row())? else { return Ok(None) };
        let key = above.layout.rows.columns().len();
        let own = &info.layout.rows.columns()[..key];
        let mut out = Vec::with_capacity(rows.len());
        for (at, old) in rows {
            ctx.check_cancel()?;
            let head = info.layout.parent_key(&above.layout, &old)?;
            let Some(new) = heads.get(head.as_slice()) else { continue };
            let mut row = old.clone();
            for (to, value) in own.iter().zip(new) {
                row[to.ordinal] = value.clone();
            }
            out.push((at, old, row));
        }
        Ok(Some(out))
    }
}

impl Writer {
    /// Takes families out of their places. The rows given have other keys in their new form. What
    /// moves along is added to `moving`, parents first.
    pub(in crate::dml) fn take_families(
        &mut self,
        info: &Arc<TableInfo>,
        heads: &[(Bytes, Row, Row)],
        moving: &mut Vec<Moving>,
    ) -> SqlResult<()> {
        let ctx = self.ctx.clone();
        let fate = Fate::of_moved(&ctx.catalog, info.table())?;
        let mut spans: Vec<_> =
            heads.iter().map(|(key, ..)| TableLayout::family_span(key)).collect();
        spans.sort_by(|a, b| a.start.cmp(&b.start));
        lock_families(&ctx, &spans)?;
        let key = info.layout.rows.columns();
        let columns = |row: &Row| key.iter().map(|c| row[c.ordinal].clone()).collect();
        let by_key: Heads = heads.iter().map(|(key, _, new)| (key.clone(), columns(new))).collect();
        let by_key = Arc::new(by_key);
        for t in &fate.dying[1..] {
            let child = self.info(t.id)?;
            moving.push(Moving::open(&ctx, (child, info), &by_key, &spans)?);
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
