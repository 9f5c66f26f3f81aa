//! Statements over very many rows, a part of them at a time: memory does not grow with the rows.
//!
//! ```text
//!   scan, opened before anything is written ─► 8,192 rows ─► written, asked about ─┐
//!                                  ▲                                               │
//!                                  └───────────────────────────────────────────────┘
//! ```
//! A statement means all its rows at once: `SET id = id + 1` may pass over keys that its own rows
//! still have, and a row may go before those that refer to it. Where each row *stands alone*, that
//! makes no difference: no key or unique value changes, and nobody refers to what goes or changes.
//! Other statements hold all their rows, but not what lies inside of them (`family/moves.rs`).
//!
//! What a transaction has written then lies on disk, if it is much (`kv`), and when its locks on
//! rows take much memory, one lock on each table stands for them ([`Writer::lock_tables_instead`]).

use std::sync::Arc;

use braid_catalog::{kv_error, memory_error};
use braid_env::memory::{Account, Held};
use braid_rows::{Row, row_memory};
use braid_types::SqlResult;
use bytes::Bytes;

use super::Written;
use super::target::{Returning, returned};
use super::writer::{TableInfo, Writer};
use crate::plan::rows::{RowSource, passing_row};
use crate::session::Context;
use braid_planner::access::Access;

/// Rows of a part,
const PART_ROWS: usize = 8_192;
/// or so many bytes of them,
const PART_BYTES: usize = 4 << 20;
/// or this part of what the statement may hold,
const PART_OF_LIMIT: usize = 8;
/// or this part of what the node has to give at present: locks on long keys of indexes, and what is
/// written, come on top.
const PART_OF_ROOM: usize = 32;

/// Whether rows of which these columns are set stand alone.
pub(super) fn stand_alone_updated(
    info: &TableInfo,
    sets: impl Iterator<Item = usize> + Clone,
) -> bool {
    let (layout, table) = (&info.layout, info.table());
    let changes = |at: usize| {
        sets.clone().any(|set| set == at)
            || table.columns.get(at).is_none_or(|column| column.generated.is_some())
    };
    let unique = || layout.kept_indexes().filter(|i| i.index.is_unique());
    let kept = |ordinal: usize| !changes(ordinal);
    let referred = |fk: &braid_catalog::ForeignKey| {
        fk.parent_columns.iter().all(|c| table.ordinal(*c).is_some_and(kept))
    };
    layout.rows.columns().iter().all(|key| kept(key.ordinal))
        && unique().all(|i| {
            i.predicate.is_none() && i.layout.columns().iter().all(|key| kept(key.ordinal))
        })
        && info.referenced_by.iter().all(|(_, fk)| referred(fk))
}

/// Whether rows that are deleted stand alone.
pub(super) fn stand_alone_deleted(ctx: &Context, info: &TableInfo) -> SqlResult<bool> {
    let none = info.referenced_by.is_empty() && info.children.is_empty();
    Ok(none && !info.fate(ctx)?.is_family())
}

/// Writes the rows of an access path part by part: `write` takes those of one, and says what they
/// are to RETURNING, which is not one by a query.
pub(super) fn write_in_parts(
    ctx: &Context,
    (info, access): (&Arc<TableInfo>, &Access),
    mut w: Writer,
    returning: Option<&Returning>,
    mut write: impl FnMut(&mut Writer, Vec<(Bytes, Row)>) -> SqlResult<Vec<Row>>,
) -> SqlResult<Written> {
    let (mut count, mut all) = (0, returning.map(|_| Vec::new()));
    let mut parts = Parts::open(ctx, info, access)?;
    while let Some(rows) = parts.next()? {
        count += rows.len() as u64;
        let rows = write(&mut w, rows)?;
        w.finish()?;
        w.forget_deleted();
        if let Some(all) = &mut all {
            all.extend(returned(ctx, returning, &rows, None)?.unwrap_or_default());
        }
    }
    w.finish()?;
    Ok(Written { count, returning: all, work: w.work })
}

/// The rows of an access path, part by part.
struct Parts<'a> {
    ctx: &'a Context,
    access: &'a Access,
    source: RowSource,
    held: Held,
}

impl<'a> Parts<'a> {
    fn open(ctx: &'a Context, info: &Arc<TableInfo>, access: &'a Access) -> SqlResult<Parts<'a>> {
        let source = RowSource::open(ctx, &info.layout, access, None, false)?;
        Ok(Parts { ctx, access, source, held: ctx.memory.hold("rows to be written") })
    }

    /// The next rows; `None` at the end. Those of the part before are forgotten.
    fn next(&mut self) -> SqlResult<Option<Vec<(Bytes, Row)>>> {
        let Parts { ctx, access, source, held } = self;
        part(ctx, held, || passing_row(ctx, access, source))
    }
}

/// The next part of rows; `None` at the end. Those of the part before are forgotten.
pub(super) fn part(
    ctx: &Context,
    held: &mut Held,
    mut next: impl FnMut() -> SqlResult<Option<(Bytes, Row)>>,
) -> SqlResult<Option<Vec<(Bytes, Row)>>> {
    held.release();
    let most = part_bytes(&ctx.memory);
    let mut rows = Vec::new();
    while rows.len() < PART_ROWS
        && held.bytes() < most
        && let Some((key, row)) = next()?
    {
        held.grow(row_memory(&row)).map_err(|e| memory_error(&e))?;
        rows.push((key, row));
    }
    Ok(Some(rows).filter(|rows| !rows.is_empty()))
}

/// Bytes of a part.
fn part_bytes(account: &Account) -> usize {
    let room = account.pool().room() / PART_OF_ROOM;
    PART_BYTES.min(account.limit() / PART_OF_LIMIT).min(room)
}

impl Writer {
    /// If the locks on rows take much memory, locks all that was written to in their place. Waits
    /// for others who hold locks there.
    pub(super) fn lock_tables_instead(&self) -> SqlResult<()> {
        let txn = &self.ctx.txn;
        if !txn.holds_many_locks() {
            return Ok(());
        }
        for info in self.infos() {
            let indexes = info.layout.kept_indexes().map(|i| i.layout.whole_span());
            for span in indexes.chain([info.layout.rows.whole_span()]) {
                txn.lock_instead(&span).map_err(kv_error)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use braid_env::memory::Pool;

    use super::*;

    #[test]
    fn parts_follow_what_the_statement_may_hold_and_what_the_node_has_to_give() {
        const MIB: usize = 1 << 20;
        let node = Pool::new(1024 * MIB);
        let account = node.account(256 * MIB);
        assert_eq!(part_bytes(&account), PART_BYTES);
        assert_eq!(part_bytes(&node.account(8 * MIB)), MIB);
        // The process has 960 MiB that nobody counted: a quarter of the pool is left.
        node.note_resident(960 * MIB, 0);
        assert_eq!(part_bytes(&account), 4 * MIB);
        let small = Pool::new(160 * MIB);
        small.note_resident(128 * MIB, 0);
        assert_eq!(part_bytes(&small.account(256 * MIB)), 40 * MIB / PART_OF_ROOM);
    }
}
