//! Questions that writing a row leaves for later: for the end of the statement, or of the block
//! ([`super::deferred`]).

use std::sync::Arc;

use braid_catalog::{Deferral, ForeignKey, Table, kv_error};
use braid_kv::{LockMode, ReadMode};
use braid_types::{Datum, SqlResult};
use foldhash::HashMap;

use super::ahead::{self, Ahead, Referring};
use super::keys::duplicate_key;
use super::references::{
    find_by_key, missing_reference, reference_exists, rows_with, still_has_children,
    still_referenced,
};
use super::writer::{TableInfo, Writer};
use braid_rows::Row;
use braid_rows::scan::{get_row, live_row};

/// A question for the end of the statement.
pub(super) enum Later {
    /// Does the referenced row exist now? (table, foreign key, row)
    Reference(Arc<TableInfo>, usize, Row),
    /// Is the old key still referenced? (referenced table, its old row, referencing table, key)
    Referenced(Arc<TableInfo>, Row, u32, ForeignKey),
    /// Are there still children below this row? (parent, its row, child)
    Children(Arc<TableInfo>, Row, Arc<Table>),
    /// Has another row the same key, in an index whose entries do not tell? (index, row)
    Unique(Arc<TableInfo>, u32, Row),
}

impl Later {
    /// The id of the constraint that it is about and whether that can wait; none: an interleaving.
    pub(super) fn constraint(&self) -> Option<(u32, Option<Deferral>)> {
        match self {
            Later::Reference(info, n, _) => {
                Some(&info.references[*n].0).map(|k| (k.id, k.deferral))
            }
            Later::Referenced(_, _, _, fk) => Some((fk.id, fk.deferral)),
            Later::Children(..) => None,
            Later::Unique(info, id, _) => {
                info.table().index(*id).map(|index| (*id, index.deferral))
            }
        }
    }

    /// The row that it keeps.
    pub(super) fn row(&self) -> &Row {
        match self {
            Later::Reference(_, _, row) | Later::Referenced(_, row, ..) => row,
            Later::Children(_, row, _) | Later::Unique(_, _, row) => row,
        }
    }

    fn parts(&self) -> (&Arc<TableInfo>, u32) {
        match self {
            Later::Reference(info, n, _) => (info, info.references[*n].0.parent),
            Later::Referenced(info, _, child, _) => (info, *child),
            Later::Children(info, _, child) => (info, child.id),
            Later::Unique(info, ..) => (info, info.table().id),
        }
    }

    /// The tables that it is about.
    pub(super) fn tables(&self) -> [u32; 2] {
        let (info, other) = self.parts();
        [info.table().id, other]
    }

    /// The name of one of its tables.
    pub(super) fn name_of(&self, table: u32) -> Option<&str> {
        let (info, _) = self.parts();
        let other = match self {
            Later::Reference(info, n, _) => &info.references[*n].1.table.name,
            Later::Referenced(info, _, child, _) => {
                &info.referenced_by.iter().find(|(t, _)| t.id == *child)?.0.name
            }
            Later::Children(_, _, child) => &child.name,
            Later::Unique(info, ..) => &info.table().name,
        };
        Some(if info.table().id == table { &info.table().name } else { other })
    }
}

impl Writer {
    /// Answers all that was asked.
    pub(super) fn answer_all(&mut self) -> SqlResult<()> {
        let mut laters = std::mem::take(&mut self.later).into_iter();
        loop {
            let part: Vec<Later> = laters.by_ref().take(self.ctx.txn.batch_max()).collect();
            if part.is_empty() {
                self.tally.tell(&self.ctx.db.statistics_state().changes);
                return Ok(());
            }
            if part.len() > 1 {
                self.ask_laters(&part)?;
            }
            self.answer(part)?;
        }
    }

    /// Asks ahead what questions for the end of the statement will ask.
    fn ask_laters(&mut self, laters: &[Later]) -> SqlResult<()> {
        let mut infos = HashMap::default();
        for later in laters {
            if let Later::Referenced(_, _, id, _) = later {
                infos.insert(*id, self.info(*id)?);
            } else if let Later::Children(_, _, child) = later {
                infos.insert(child.id, self.info(child.id)?);
            }
        }
        let (mut ahead, mut referring) = (Ahead::new(&self.ctx), Referring::new(&self.ctx));
        for later in laters {
            match later {
                Later::Reference(info, _, row) => ahead.references(info, row, None)?,
                Later::Referenced(info, old, child, fk) => {
                    if let Some(values) = ahead::key_values(info, fk, old) {
                        ahead.find(&info.layout, fk, &values)?;
                        referring.rows_with(&infos[child].layout, &fk.columns, &values)?;
                    }
                }
                // Found one by one: nobody can tell beforehand which of them are doubtful.
                Later::Unique(..) => {}
                Later::Children(info, row, child) => {
                    ahead.newest(info.layout.row_key(row)?);
                    referring.children(&infos[&child.id].layout, &info.layout, row)?;
                }
            }
        }
        ahead.ask()?;
        referring.ask()
    }

    fn answer(&mut self, laters: Vec<Later>) -> SqlResult<()> {
        for later in laters {
            match later {
                Later::Reference(info, n, row) => {
                    let (fk, parent) = &info.references[n];
                    // The row itself may be gone or changed again meanwhile.
                    let key = info.layout.row_key(&row)?;
                    let Some((_, now)) = get_row(&self.ctx.txn, &info.layout, key)? else {
                        continue;
                    };
                    if !reference_exists(&self.ctx, info.table(), fk, parent, &now)? {
                        return Err(missing_reference(
                            &self.ctx,
                            info.table(),
                            fk,
                            &parent.table,
                            &now,
                        ));
                    }
                }
                Later::Referenced(info, old, child, fk) => {
                    let values: Vec<Datum> = fk
                        .parent_columns
                        .iter()
                        .map(|c| info.table().ordinal(*c).map_or(Datum::Null, |o| old[o].clone()))
                        .collect();
                    if find_by_key(&self.ctx, &info.layout, &fk.parent_columns, &values)?.is_some()
                    {
                        continue;
                    }
                    let child = self.info(child)?;
                    if !rows_with(&self.ctx, &child.layout, &fk.columns, &values, 1)?.is_empty() {
                        return Err(still_referenced(
                            &self.ctx,
                            info.table(),
                            &old,
                            child.table(),
                            &fk,
                        ));
                    }
                }
                Later::Children(info, row, child) => {
                    let key = info.layout.row_key(&row)?;
                    let latest = self.ctx.txn.get_as(&key, ReadMode::Latest);
                    if latest.map_err(kv_error)?.is_some() {
                        continue;
                    }
                    let c = self.info(child.id)?;
                    if !self.child_rows(&c, &info, &row, 1)?.is_empty() {
                        return Err(still_has_children(
                            &self.ctx,
                            info.table(),
                            Some(&row),
                            &child,
                        ));
                    }
                }
                Later::Unique(info, id, row) => self.only_one_has_key(&info, id, &row)?,
            }
        }
        Ok(())
    }

    /// That a key of a DEFERRABLE constraint, which a row was written with, is that of one row.
    fn only_one_has_key(&self, info: &TableInfo, id: u32, row: &Row) -> SqlResult<()> {
        let (layout, txn) = (&info.layout, &self.ctx.txn);
        let Some(i) = layout.kept_indexes().find(|i| i.index.id == id) else { return Ok(()) };
        let Some(key) = i.deferred_key(row)? else { return Ok(()) };
        // Whoever else writes this key asks under the same lock: one of us sees the other's row.
        txn.hold(&key, LockMode::Exclusive).map_err(kv_error)?;
        let span = i.layout.span_behind(key);
        let mut scan = txn.scan(span, i.scan_options(ReadMode::Latest, false)).map_err(kv_error)?;
        let mut rows = 0;
        while let Some((key, value)) = scan.next().map_err(kv_error)? {
            rows +=
                usize::from(live_row(txn, layout, i, &key, &value, ReadMode::Latest)?.is_some());
            if rows > 1 {
                return Err(duplicate_key(&self.ctx, &layout.table, &i.index, row));
            }
        }
        Ok(())
    }
}
