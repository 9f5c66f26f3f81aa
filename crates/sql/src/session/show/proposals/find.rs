//! Which tables could lie in which.

use std::cmp::Reverse;
use std::sync::Arc;

use braid_catalog::{Catalog, ForeignKey, MAX_DEPTH, RefAction, Table};

use super::super::super::Context;

/// A table that could lie in another one, or why it cannot.
#[derive(Debug)]
pub(super) struct Proposal {
    pub(super) child: Arc<Table>,
    pub(super) parent: Arc<Table>,
    /// What says that rows of the child belong to one of the parent; nothing but equal columns, if
    /// there is none.
    pub(super) key: Option<ForeignKey>,
    /// The child's columns that hold the parent's key, in the order of that key. As many as could
    /// be found.
    pub(super) own: Vec<u32>,
    pub(super) verdict: Verdict,
}

/// What there is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The child's primary key begins with the parent's.
    Ready,
    /// The columns are there, and have to come in front of the primary key.
    NewKey,
    /// It could, but lies better in another table: its id.
    Another(u32, Box<Verdict>),
    /// It lies there.
    Done,
    /// It cannot, and why.
    No(String),
}

impl Proposal {
    /// What it takes, if it can be done at all: [`Verdict::Ready`] or [`Verdict::NewKey`].
    pub(super) fn possible(&self) -> Option<&Verdict> {
        match &self.verdict {
            Verdict::Another(_, verdict) => Some(verdict),
            Verdict::Ready | Verdict::NewKey => Some(&self.verdict),
            Verdict::Done | Verdict::No(_) => None,
        }
    }
}

/// All of the database, parents in front of their children.
pub(super) fn proposals(ctx: &Context) -> Vec<Proposal> {
    let c = &*ctx.catalog;
    let own = |t: &&Arc<Table>| {
        let here = c.schema_by_id(t.schema).is_some_and(|s| s.database == ctx.database);
        here && t.materialized().is_none()
    };
    let mut tables: Vec<&Arc<Table>> = c.tables().filter(own).collect();
    tables.sort_by(|a, b| (&a.name, a.id).cmp(&(&b.name, b.id)));
    let mut out = Vec::new();
    for child in &tables {
        let mut of_child: Vec<Proposal> =
            child.kept_foreign_keys().filter_map(|fk| by_foreign_key(c, child, fk)).collect();
        if of_child.is_empty() && child.interleave.is_none() {
            out.extend(by_columns(child, &tables));
            continue;
        }
        // Two keys to one parent by the same columns are one proposal.
        of_child.dedup_by(|a, b| a.parent.id == b.parent.id && a.own == b.own);
        choose(ctx, child, &mut of_child);
        out.extend(of_child);
    }
    no_circles(&mut out);
    let depths: Vec<usize> = out.iter().map(|p| depth(&out, p.parent.id, 0)).collect();
    let mut order: Vec<usize> = (0..out.len()).collect();
    order.sort_by_key(|at| {
        let p = &out[*at];
        (depths[*at], p.parent.name.clone(), p.child.name.clone())
    });
    let mut sorted: Vec<Option<Proposal>> = out.into_iter().map(Some).collect();
    order.into_iter().filter_map(|at| sorted[at].take()).collect()
}

/// What a foreign key proposes. Those of views and of tables that are gone propose nothing.
fn by_foreign_key(c: &Catalog, child: &Arc<Table>, fk: &ForeignKey) -> Option<Proposal> {
    let parent = c.table(fk.parent)?;
    let key = &parent.primary.columns;
    // The columns in the order of the parent's key.
    let own: Vec<u32> = key
        .iter()
        .map_while(|k| fk.parent_columns.iter().position(|p| *p == k.column))
        .map(|at| fk.columns[at])
        .collect();
    let whole = own.len() == key.len() && fk.columns.len() == key.len();
    let verdict = match &child.interleave {
        _ if child.id == parent.id => {
            Verdict::No("rows that refer to rows of their own table".into())
        }
        Some(i) if i.parent == parent.id => Verdict::Done,
        _ if parent.has_row_id() => Verdict::No(format!("{} has no primary key", parent.name)),
        _ if !whole => Verdict::No(format!(
            "the foreign key refers to ({}), and the primary key of {} is ({})",
            names(parent, &fk.parent_columns),
            parent.name,
            names(parent, &parent.key_columns()),
        )),
        _ => possible(c, child, parent, &own, fk),
    };
    Some(Proposal {
        child: child.clone(),
        parent: parent.clone(),
        key: Some(fk.clone()),
        own,
        verdict,
    })
}

/// What it takes, when the columns are there.
fn possible(
    c: &Catalog,
    child: &Table,
    parent: &Arc<Table>,
    own: &[u32],
    fk: &ForeignKey,
) -> Verdict {
    if child.has_row_id() {
        return Verdict::No(format!("{} has no primary key", child.name));
    }
    for (theirs, id) in parent.primary.columns.iter().zip(own) {
        let (Some(a), Some(b)) = (child.column(*id), parent.column(theirs.column)) else {
            return Verdict::No("a column is gone".into());
        };
        if a.ty != b.ty {
            let (theirs, ours) = (b.ty.name(), a.ty.name());
            return Verdict::No(format!(
                "column {} is {ours} and {}.{} is {theirs}",
                a.name, parent.name, b.name
            ));
        }
        if a.nullable {
            return Verdict::No(format!("column {} may be NULL: such rows lie in none", a.name));
        }
    }
    if let action @ (RefAction::SetNull | RefAction::SetDefault) = fk.on_delete {
        let action = action.sql();
        return Verdict::No(format!("ON DELETE {action}: rows outlive the one that they refer to"));
    }
    if c.depth(parent) + 1 > MAX_DEPTH {
        return Verdict::No(format!("hierarchies have at most {MAX_DEPTH} levels"));
    }
    let begins = child.primary.columns.iter().zip(own).filter(|(k, id)| k.column == **id).count();
    let same_order =
        |(ours, theirs): (&braid_catalog::IndexColumn, &braid_catalog::IndexColumn)| {
            ours.desc == theirs.desc
        };
    let in_order = child.primary.columns.iter().zip(&parent.primary.columns).all(same_order);
    if begins == own.len() && child.primary.columns.len() >= own.len() && in_order {
        return Verdict::Ready;
    }
    match c.interleaved_children(child.id).next() {
        Some(inside) => Verdict::No(format!(
            "its primary key would have to change, and {0} lies in it by that: ALTER TABLE {0} \
             DROP INTERLEAVE, and it can",
            inside.name
        )),
        None => Verdict::NewKey,
    }
}

/// Tables whose primary key the child's begins with, by name and type: the longest of them. What
/// has one key with it is no parent.
fn by_columns(child: &Arc<Table>, tables: &[&Arc<Table>]) -> Option<Proposal> {
    if child.has_row_id() {
        return None;
    }
    let begins = |parent: &&&Arc<Table>| {
        let (ours, theirs) = (&child.primary.columns, &parent.primary.columns);
        parent.id != child.id
            && !parent.has_row_id()
            && theirs.len() < ours.len()
            && ours.iter().zip(theirs).all(|(a, b)| {
                a.desc == b.desc
                    && match (child.column(a.column), parent.column(b.column)) {
                        (Some(a), Some(b)) => a.name == b.name && a.ty == b.ty,
                        _ => false,
                    }
            })
    };
    let parent = tables.iter().filter(begins).max_by_key(|t| t.primary.columns.len())?;
    let own = child.key_columns()[..parent.primary.columns.len()].to_vec();
    let (child, parent) = (child.clone(), (*parent).clone());
    Some(Proposal { child, parent, key: None, own, verdict: Verdict::Ready })
}

/// Of the parents that a table could have, one is best: whose key it begins with already, which is
/// the closest, which takes its rows along, and which has fewer of them in each of its own. But a
/// table that lies in another one stays there.
fn choose(ctx: &Context, child: &Table, of_child: &mut [Proposal]) {
    let rank = |p: &Proposal| {
        let cascades = p.key.as_ref().is_some_and(|fk| fk.on_delete == RefAction::Cascade);
        let rows = ctx.db.statistics(&p.parent).map_or(0, |known| known.rows as u64);
        (p.possible() == Some(&Verdict::Ready), p.own.len(), cascades, rows)
    };
    let possible = (0..of_child.len()).filter(|at| of_child[*at].possible().is_some());
    let best = possible.max_by_key(|at| (rank(&of_child[*at]), Reverse(*at)));
    let there = child.interleave.as_ref().map(|i| i.parent);
    let Some(parent) = there.or(best.map(|at| of_child[at].parent.id)) else { return };
    for (at, p) in of_child.iter_mut().enumerate() {
        if there.is_none() && best == Some(at) {
            continue;
        }
        if let Some(verdict) = p.possible().cloned() {
            p.verdict = Verdict::Another(parent, Box::new(verdict));
        }
    }
}

/// Where tables refer to each other in a circle, one of them stays outside.
fn no_circles(all: &mut [Proposal]) {
    for at in 0..all.len() {
        if !matches!(all[at].verdict, Verdict::Ready | Verdict::NewKey) {
            continue;
        }
        let (mut above, mut steps) = (all[at].parent.id, 0);
        while let Some(next) = all
            .iter()
            .find(|p| p.child.id == above && matches!(p.verdict, Verdict::Ready | Verdict::NewKey))
        {
            above = next.parent.id;
            steps += 1;
            if above == all[at].child.id || steps > all.len() {
                let name = all[at].parent.name.clone();
                all[at].verdict = Verdict::No(format!("{name} would lie in it, too: a circle"));
                break;
            }
        }
    }
}

/// How deep a table would lie if all were done.
fn depth(all: &[Proposal], table: u32, steps: usize) -> usize {
    let chosen = |p: &&Proposal| {
        p.child.id == table && matches!(p.verdict, Verdict::Ready | Verdict::NewKey | Verdict::Done)
    };
    match all.iter().find(chosen) {
        Some(p) if steps < MAX_DEPTH => 1 + depth(all, p.parent.id, steps + 1),
        _ => 0,
    }
}

/// Names of columns, as a list.
pub(super) fn names(table: &Table, columns: &[u32]) -> String {
    columns.iter().map(|id| table.key_name(*id)).collect::<Vec<_>>().join(", ")
}
