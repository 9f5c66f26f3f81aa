//! What happens to everybody else when rows of a table go.
//!
//! ```text
//!   customers            goes
//!     orders             ON DELETE CASCADE, or a foreign key that cascades along the key: goes
//!       lines            goes
//!       pictures         for locality only: stays, and all below it
//!     invoices           ON DELETE NO ACTION: must not be there when the statement ends
//!   audits               a foreign key from elsewhere: its rows are looked up
//! ```
//! A foreign key whose row lies inside of the row that it refers to goes with it and is not looked
//! at. All others are asked about, those of tables that stay among them.

use std::sync::Arc;

use braid_catalog::{Catalog, ForeignKey, RefAction, Table};
use braid_types::SqlResult;

use super::kept::{Check, Kept};
use crate::session::Context;
use braid_rows::TableLayout;

/// What goes with rows of a table.
#[derive(Debug)]
pub(crate) struct Fate {
    /// The table and what goes with it, parents first.
    pub(crate) dying: Vec<Arc<Table>>,
    /// Tables below whose rows stay, or must not be there.
    pub(super) kept: Vec<Kept>,
    /// Foreign keys to what goes, of rows that may stay.
    pub(super) incoming: Vec<Incoming>,
}

/// Whether rows of a child stay, and what is asked about them; given the tables that go.
type Stays<'a> = dyn Fn(&Table, &[Arc<Table>]) -> Option<Check> + 'a;

/// A foreign key to a table that goes.
#[derive(Debug)]
pub(super) struct Incoming {
    pub(super) from: Arc<TableLayout>,
    pub(super) fk: ForeignKey,
    pub(super) to: Arc<TableLayout>,
    /// Nothing else that a statement does can take its rows away: the first of them decides.
    pub(super) settled: bool,
    /// Its rows count although they go along.
    pub(super) strict: bool,
    /// Its rows go too, and their keys begin with the key that they refer to.
    pub(super) follows: bool,
}

impl Fate {
    /// Of rows that are deleted.
    pub(crate) fn of_deleted(ctx: &Context, table: &Arc<Table>) -> SqlResult<Fate> {
        let c = &ctx.catalog;
        let asked = |to: &Table| ctx.asks_references_of(to);
        let mut fate = Fate { dying: vec![table.clone()], kept: Vec::new(), incoming: Vec::new() };
        fate.descend(c, table, &|child, dying| match child.interleave.as_ref() {
            _ if goes_by_key(child, dying, &asked) => None,
            Some(i) if i.enforced() => match i.on_delete {
                RefAction::Cascade => None,
                RefAction::Restrict => Some(Check::Refuses),
                _ if settled(child) => Some(Check::Refuses),
                _ => Some(Check::Later),
            },
            _ => Some(Check::Nothing),
        })?;
        for to in fate.dying.iter().filter(|to| asked(to)) {
            for from in c.referencing_tables(to.id) {
                for fk in from.kept_foreign_keys().filter(|fk| fk.parent == to.id) {
                    let inside = fate.dying.iter().any(|t| t.id == from.id);
                    let alike = along_the_path(from, fk, to);
                    let along = inside && alike;
                    if along && fk.on_delete != RefAction::Restrict {
                        continue;
                    }
                    fate.incoming.push(Incoming {
                        from: Arc::new(TableLayout::new(c, from)?),
                        fk: fk.clone(),
                        to: Arc::new(TableLayout::new(c, to)?),
                        settled: !inside && settled(from),
                        strict: along,
                        follows: !inside && alike && fk.on_delete == RefAction::Cascade,
                    });
                }
            }
        }
        Ok(fate)
    }

    /// Of rows that get another key: what enforces its parent goes along. Foreign keys are asked
    /// for each row.
    pub(in crate::dml) fn of_moved(c: &Catalog, table: &Arc<Table>) -> SqlResult<Fate> {
        let mut fate = Fate { dying: vec![table.clone()], kept: Vec::new(), incoming: Vec::new() };
        let moves = |t: &Table| t.interleave.as_ref().is_some_and(|i| i.enforced());
        fate.descend(c, table, &|child, _| (!moves(child)).then_some(Check::Nothing))?;
        Ok(fate)
    }

    fn descend(&mut self, c: &Catalog, table: &Arc<Table>, stays: &Stays<'_>) -> SqlResult<()> {
        let mut children: Vec<Arc<Table>> = c.interleaved_children(table.id).cloned().collect();
        children.sort_by_key(|child| child.id);
        for child in &children {
            match stays(child, &self.dying) {
                Some(check) => self.kept.push(Kept::new(c, child, check)?),
                None => {
                    self.dying.push(child.clone());
                    self.descend(c, child, stays)?;
                }
            }
        }
        Ok(())
    }

    /// Whether anything lies inside of the rows that goes with them.
    pub(crate) fn is_family(&self) -> bool {
        self.dying.len() > 1
    }

    /// EXPLAIN lines: who stays, who is asked.
    pub(crate) fn explain(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.kept.iter().map(Kept::explain).collect();
        for i in &self.incoming {
            let (key, table) = (&i.fk.name, &i.from.table.name);
            lines.push(match i.fk.on_delete {
                RefAction::NoAction | RefAction::Restrict => {
                    format!("check: foreign key {key} of {table}")
                }
                action => {
                    let many = if i.follows { ", many rows by range deletes" } else { "" };
                    format!(
                        "cascade: foreign key {key} of {table} (ON DELETE {}{many})",
                        action.sql()
                    )
                }
            });
        }
        lines
    }

    /// EXPLAIN line: which indexes keep entries of rows that went in spans.
    pub(crate) fn explain_left(&self) -> Option<String> {
        let left: Vec<&str> = (self.dying.iter())
            .flat_map(|t| {
                t.indexes
                    .iter()
                    .filter(|i| i.unread.is_none() && self.leaves_entries(i.interleave_in))
            })
            .map(|i| i.name.as_str())
            .collect();
        let names = left.join(", ");
        (!left.is_empty()).then(|| format!("entries left to the background: {names}"))
    }

    /// Whether entries of an index that lies in such a table outlive the spans.
    pub(super) fn leaves_entries(&self, lies_in: Option<u32>) -> bool {
        lies_in.is_none_or(|id| !self.dying.iter().any(|t| t.id == id))
    }
}

/// Whether a foreign key along the key takes a child's rows away with a row that goes.
fn goes_by_key(child: &Table, dying: &[Arc<Table>], asked: &dyn Fn(&Table) -> bool) -> bool {
    child.kept_foreign_keys().filter(|fk| fk.on_delete == RefAction::Cascade).any(|fk| {
        let refers = |to: &Arc<Table>| to.id == fk.parent && asked(to);
        dying.iter().any(|to| refers(to) && along_the_path(child, fk, to))
    })
}

/// Whether no statement can take rows of a table away by deleting others.
fn settled(t: &Table) -> bool {
    let acts = |action| !matches!(action, RefAction::NoAction | RefAction::Restrict);
    let along = t.interleave.as_ref().is_some_and(|i| i.enforced() && acts(i.on_delete));
    !along && !t.kept_foreign_keys().any(|fk| acts(fk.on_delete))
}

/// Whether the referencing row lies inside the referenced one: the foreign key's columns are the
/// leading key columns, matched with the referenced table's key in order.
fn along_the_path(from: &Table, fk: &ForeignKey, to: &Table) -> bool {
    from.id != to.id
        && fk.columns.len() == to.primary.columns.len()
        && fk.columns.len() <= from.primary.columns.len()
        && to.primary.columns.iter().zip(&from.primary.columns).all(|(theirs, own)| {
            fk.parent_columns
                .iter()
                .position(|p| *p == theirs.column)
                .is_some_and(|at| fk.columns[at] == own.column)
        })
}
