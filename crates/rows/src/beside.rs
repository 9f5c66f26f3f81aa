//! What lies beside a block in the cache, and how it is found without waiting for memory at each
//! turn.
//!
//! ```text
//!   slot ─► sidecar ─► list of tables ─► table's columns ─► which rows    ▒▒
//!                                                       └─► column ─► its values ▒▒▒
//! ```
//! Each arrow leads to another place of memory, of which a large scan finds none in the processor's
//! caches. So a batch's parts go along the arrows together, one arrow at a time, and what comes
//! next is asked for before it is looked at: *group prefetching* (Chen, Ailamaki, Gibbons, Mowry:
//! "Improving Hash Join Performance through Prefetching", ICDE 2004).

use std::sync::Arc;

use braid_kv::{BlockPart, Piece, Sidecar, prefetch};

use super::block_columns::Names;
use super::columns::Column;
use super::packed::{PackedColumn, Picks};

/// What lies beside a block.
struct BesideBlock {
    /// By [`TableColumns::table`], which is here so that other tables are not looked at.
    tables: Vec<(u128, Arc<TableColumns>)>,
}

/// Columns of a table's rows in one block.
pub(super) struct TableColumns {
    /// Which table, with all that tells its rows from others.
    pub(super) table: u128,
    /// Which rows of the block are the table's.
    pub(super) rows: Arc<[u16]>,
    /// By what they are called ([`Names`]). `None` for one that not all rows have.
    pub(super) columns: Vec<(u128, Option<Arc<PackedColumn>>)>,
}

/// What lies beside a block may take so many times its own bytes; then only what was used last
/// stays.
const MOST_BESIDE: usize = 2;

impl BesideBlock {
    fn of(&self, table: u128) -> Option<&Arc<TableColumns>> {
        self.tables.iter().find(|(known, _)| *known == table).map(|(_, columns)| columns)
    }
}

impl TableColumns {
    /// Bytes of memory.
    pub(super) fn memory(&self) -> usize {
        let packed = |column: &Option<Arc<PackedColumn>>| column.as_ref().map_or(0, |c| c.memory());
        let columns = self.columns.iter().map(|(_, column)| packed(column) + 64);
        size_of_val(&*self.rows) + columns.sum::<usize>() + 128
    }

    fn get(&self, name: u128) -> Option<&PackedColumn> {
        self.columns.iter().find(|(known, _)| *known == name).and_then(|(_, c)| c.as_deref())
    }

    /// Whether one of these cannot be made.
    pub(super) fn lacks(&self, names: &[u128]) -> bool {
        self.columns.iter().any(|(name, column)| column.is_none() && names.contains(name))
    }

    /// Whether all of these are there.
    pub(super) fn has(&self, names: &[u128]) -> bool {
        names.iter().all(|name| self.get(*name).is_some())
    }

    /// Adds the picked values of a column that it has.
    pub(super) fn give(
        &self,
        name: u128,
        picks: Picks<'_>,
        (column, before): (&mut Column, usize),
    ) {
        self.get(name).expect("it was made before").give(picks, column, before);
    }

    /// Which rows of the block these are.
    pub(super) fn picked(&self, picks: Picks<'_>) -> Vec<u16> {
        match picks {
            Picks::Run(from, to) => self.rows[from..to].to_vec(),
            Picks::These(places) => places.iter().map(|at| self.rows[usize::from(*at)]).collect(),
        }
    }

    /// Those columns that a reader wants and that are there.
    fn wanted(&self, names: &Names) -> impl Iterator<Item = &PackedColumn> {
        names.probe.iter().chain(&names.out).filter_map(|name| self.get(*name))
    }

    /// Brings closer which rows these are, and where their columns are.
    fn prefetch(&self) {
        prefetch(self.rows.as_ptr());
        let columns = self.columns.as_ptr();
        (0..self.columns.len()).step_by(2).for_each(|at| prefetch(columns.wrapping_add(at)));
    }
}

/// So many parts go along together: what they ask for has room in the nearest cache.
const TOGETHER: usize = 32;

/// For each part of a block among these pieces, what lies beside its block of a table.
pub(super) fn find_beside(pieces: &[Piece<'_>], names: &Names) -> Vec<Option<Arc<TableColumns>>> {
    let parts = pieces.iter().filter_map(|piece| match piece {
        Piece::Part(part, _) => Some(*part),
        Piece::Single(_) => None,
    });
    let parts: Vec<&BlockPart> = parts.collect();
    let mut found = Vec::with_capacity(parts.len());
    for parts in parts.chunks(TOGETHER) {
        parts.iter().for_each(|part| part.prefetch_kept());
        let kept = parts.iter().map(|part| part.kept().inspect(|kept| kept.prefetch()));
        let kept: Vec<Option<Arc<Sidecar>>> = kept.collect();
        let lists = kept.iter().map(|kept| kept.as_ref()?.get::<BesideBlock>());
        let lists = lists.map(|list| list.inspect(|list| prefetch(list.tables.as_ptr())));
        let lists: Vec<Option<&BesideBlock>> = lists.collect();
        let tables = lists.into_iter().map(|list| list?.of(names.table));
        let tables = tables.map(|table| table.inspect(|table| prefetch(Arc::as_ptr(table))));
        let tables: Vec<Option<&Arc<TableColumns>>> = tables.collect();
        let there = || tables.iter().flatten();
        there().for_each(|table| table.prefetch());
        there().for_each(|table| table.wanted(names).for_each(|column| prefetch(column)));
        there().for_each(|table| table.wanted(names).for_each(PackedColumn::prefetch));
        for (part, table) in parts.iter().zip(&tables) {
            if table.is_some() {
                part.note_use_of_kept();
            }
            found.push(table.cloned());
        }
    }
    found
}

/// Bytes that may lie beside a block.
pub(super) fn most_beside(part: &BlockPart) -> usize {
    MOST_BESIDE * part.block_bytes()
}

/// Keeps a table's columns beside a block, with those of other tables if there is room.
pub(super) fn keep(part: &BlockPart, table: &Arc<TableColumns>) {
    let mut tables = vec![(table.table, table.clone())];
    let mut bytes = table.memory();
    if let Some(sidecar) = part.kept()
        && let Some(beside) = sidecar.get::<BesideBlock>()
    {
        for (name, other) in &beside.tables {
            if *name != table.table && bytes + other.memory() <= most_beside(part) {
                bytes += other.memory();
                tables.push((*name, other.clone()));
            }
        }
    }
    part.keep(BesideBlock { tables }, bytes);
}
