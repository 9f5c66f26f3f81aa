//! What becomes of tables that move to other keys: into a parent, out of one, to another parent, to
//! another primary key; with everything interleaved in them. And the move itself where it belongs
//! to a transaction.
//!
//! ```text
//!   ALTER TABLE lines SET INTERLEAVE IN PARENT orders ON DELETE CASCADE
//!     rows of lines and of what lies in lines ─ sorted ─► runs under new keys, taken in at once
//!     the catalog changes with the commit: readers see the old rows until then
//!     the old rows: one tombstone, or a record for the background where they lay in families
//! ```
//! Every table and index that moves gets a new generation, so that nothing can be mistaken: a crash
//! in the middle leaves the old rows and the old catalog, and new rows that nobody can reach.
//! In a block writers of the tables wait meanwhile; else it goes in steps ([`super::online`]).

use std::sync::Arc;

use braid_catalog::{
    Index, IndexColumn, IndexConstraint, MAX_DEPTH, Table, choose_constraint_name, kv_error,
};
use braid_kv::{LockMode, ReadMode, Wait};
use braid_parser::InterleaveClause;
use braid_types::{SqlError, SqlResult, SqlState};

use crate::ddl::tables::primary_key;
use crate::ddl::{Change, backfill, bad_table, create_table, index, interleave, truncate};
use crate::statistics::Delta;
use braid_rows::Row;
use braid_rows::{IndexLayout, TableLayout};

/// Where a table is to lie.
#[derive(Clone, Copy)]
pub(in crate::ddl) enum Place<'a> {
    /// In a parent that it does not lie in.
    Inside(&'a InterleaveClause),
    /// In none.
    Alone,
    /// Under another primary key. The old one becomes a unique index, for those who refer to it.
    /// Without a clause the table lies in no parent afterwards.
    Key(&'a [(String, bool)], Option<&'a InterleaveClause>),
}

/// Moves a table with the statement's transaction.
pub(in crate::ddl) fn run(c: &mut Change, t: &Arc<Table>, place: Place<'_>) -> SqlResult<()> {
    let new = wanted(c, t, place)?;
    let enforced = new.interleave.as_ref().is_some_and(|i| i.enforced());
    rewrite(c, t, vec![new], |_, row| Ok(row))?;
    match c.catalog.table(t.id).cloned().filter(|_| enforced) {
        Some(moved) => backfill::validate_parents(c, &moved),
        None => Ok(()),
    }
}

/// What the table becomes. Nothing is changed yet.
pub(super) fn wanted(c: &mut Change, t: &Arc<Table>, place: Place<'_>) -> SqlResult<Table> {
    match place {
        Place::Inside(clause) => into_parent(c, t, clause),
        Place::Alone => out_of_parent(t),
        Place::Key(columns, clause) => under_key(c, t, columns, clause),
    }
}

fn into_parent(c: &mut Change, t: &Arc<Table>, clause: &InterleaveClause) -> SqlResult<Table> {
    let declared = interleave::declare(c, t, clause)?;
    let parent = c.catalog.table(declared.parent).cloned();
    let parent = parent.ok_or_else(|| SqlError::internal("the parent is gone"))?;
    if c.catalog.is_self_or_ancestor(t.id, &parent) {
        return Err(bad_table(format!(
            "table \"{}\" cannot be interleaved in \"{}\", which lies in it",
            t.name, parent.name
        )));
    }
    let below = c.catalog.subtree(t).iter().map(|s| c.catalog.depth(s)).max().unwrap_or_default();
    let depth = c.catalog.depth(&parent) + 1 + below - c.catalog.depth(t);
    if depth > MAX_DEPTH {
        return Err(bad_table(format!(
            "tables in \"{}\" would be too deeply nested; the limit is {MAX_DEPTH} levels",
            t.name
        )));
    }
    Ok(Table { interleave: Some(declared), ..(**t).clone() })
}

fn out_of_parent(t: &Table) -> SqlResult<Table> {
    if t.interleave.is_none() {
        return Err(bad_table(format!("table \"{}\" is not interleaved", t.name))
            .with_hint("SHOW CREATE TABLE tells where a table lies."));
    }
    Ok(Table { interleave: None, ..t.clone() })
}

fn under_key(
    c: &mut Change,
    t: &Arc<Table>,
    columns: &[(String, bool)],
    clause: Option<&InterleaveClause>,
) -> SqlResult<Table> {
    primary_key::refuse_parent(c, t, "change")?;
    if t.has_row_id() {
        return Err(bad_table(format!("table \"{}\" has no primary key", t.name))
            .with_hint("Use ALTER TABLE .. ADD PRIMARY KEY."));
    }
    let columns = key(t, columns)?;
    for k in &columns {
        let nullable = t.ordinal(k.column).filter(|at| t.columns[*at].nullable);
        // In steps each row is looked at as it moves.
        if let Some(at) = nullable.filter(|_| c.reading == ReadMode::Latest) {
            backfill::validate_not_null(c, t.id, at)?;
        }
    }
    let mut new = (**t).clone();
    let ids = |columns: &[IndexColumn]| {
        let mut ids: Vec<u32> = columns.iter().map(|k| k.column).collect();
        ids.sort_unstable();
        ids
    };
    let (old, wanted) = (ids(&t.primary.columns), ids(&columns));
    let kept = |i: &Index| i.unique && i.predicate.is_none() && ids(&i.columns) == old;
    if old != wanted && !t.indexes.iter().any(kept) {
        new.indexes.push(former_key(c, t)?);
    }
    create_table::set_primary(&mut new, columns, t.primary.name.clone())?;
    new.interleave = None;
    if let Some(clause) = clause {
        new.interleave = Some(interleave::declare(c, &new, clause)?);
    }
    Ok(new)
}

fn key(t: &Table, columns: &[(String, bool)]) -> SqlResult<Vec<IndexColumn>> {
    let mut out: Vec<IndexColumn> = Vec::new();
    for (name, desc) in columns {
        let column = t.column_named(name).ok_or_else(|| {
            SqlError::new(
                SqlState::UNDEFINED_COLUMN,
                format!("column \"{name}\" named in key does not exist"),
            )
        })?;
        if out.iter().any(|k| k.column == column.id) {
            return Err(SqlError::new(
                SqlState::DUPLICATE_COLUMN,
                format!("column \"{name}\" appears twice in the key"),
            ));
        }
        out.push(IndexColumn { column: column.id, desc: *desc, nulls_first: *desc });
    }
    index::check_key_types(t, &out)?;
    Ok(out)
}

/// A unique index on the columns of the primary key that ends.
fn former_key(c: &Change, t: &Table) -> SqlResult<Index> {
    let names: Vec<&str> =
        t.primary.columns.iter().filter_map(|k| t.column(k.column)).map(|c| &*c.name).collect();
    let directed = t.primary.columns.iter().any(|k| k.desc);
    Ok(Index {
        id: c.new_id()?,
        name: choose_constraint_name(&t.name, &names, "key", |n| c.taken(t.schema, n)),
        // A constraint would not tell the direction.
        constraint: (!directed).then_some(IndexConstraint::Unique),
        interleave_in: None,
        ..t.primary.clone()
    })
}

/// Writes a table's rows, and those of everything in it, under the keys that their tables give them
/// by now: `new` are those of the tables that change. `convert` makes the new row of a table, which
/// is told by its id.
pub(in crate::ddl) fn rewrite(
    c: &mut Change,
    t: &Arc<Table>,
    new: Vec<Table>,
    mut convert: impl FnMut(u32, Row) -> SqlResult<Row>,
) -> SqlResult<()> {
    let subtree = c.catalog.subtree(t);
    for s in &subtree {
        c.ctx.lock_for_change(s.id)?;
    }
    let old = subtree
        .iter()
        .map(|s| Ok(Arc::new(TableLayout::new(&c.catalog, s)?)))
        .collect::<SqlResult<Vec<_>>>()?;
    for s in &subtree {
        c.discard(s)?;
    }
    renew_all(c, new, &subtree)?;
    // Whoever has written here has ended; if that was after this statement began, it begins anew
    // before the work instead of after it.
    let root = t.interleave.is_none();
    if root {
        let span = old[0].rows.whole_span();
        c.ctx.txn.lock_span(&span, LockMode::Exclusive, Wait::Block).map_err(kv_error)?;
    }
    for old in &old {
        copy(c, old, |row| convert(old.table.id, row))?;
    }
    old.iter().try_for_each(|old| erase(c, old))
}

/// Erases what a table had outside of families.
pub(super) fn erase(c: &Change, old: &TableLayout) -> SqlResult<()> {
    let t = &old.table;
    if t.interleave.is_none() {
        truncate::erase(c, t.id, t.generation)?;
    }
    for i in old.indexes.iter().filter(|i| i.index.interleave_in.is_none()) {
        truncate::erase(c, i.index.id, i.index.generation)?;
    }
    Ok(())
}

/// Puts tables as they will be, and gives all that move new generations.
pub(super) fn renew_all(c: &mut Change, new: Vec<Table>, subtree: &[Arc<Table>]) -> SqlResult<()> {
    for table in new {
        c.put(table);
    }
    subtree.iter().try_for_each(|s| renew(c, s.id))
}

/// Gives a table that moves, and its indexes, new generations. An index that lay in a table which
/// is above no more lies by itself.
fn renew(c: &mut Change, table: u32) -> SqlResult<()> {
    let t = c.stored(table)?;
    let mut new = (*t).clone();
    new.generation = c.next_generation(t.id, t.generation)?;
    for i in &mut new.indexes {
        i.generation = c.next_generation(i.id, i.generation)?;
        if let Some(ancestor) = i.interleave_in.filter(|a| !c.catalog.is_self_or_ancestor(*a, &t)) {
            let name = c.catalog.table(ancestor).map_or("", |a| &a.name);
            c.ctx.notice(format!("index \"{}\" is not interleaved in \"{name}\" any more", i.name));
            i.interleave_in = None;
        }
    }
    c.put(new);
    Ok(())
}

/// All rows of a table, converted, with their entries, under its present keys.
fn copy(
    c: &mut Change,
    old: &Arc<TableLayout>,
    convert: impl FnMut(Row) -> SqlResult<Row>,
) -> SqlResult<()> {
    let now = backfill::layout(c, old.table.id)?;
    let indexes: Vec<&IndexLayout> = now.indexes.iter().collect();
    let rows = backfill::load_rows(c, old, &now, &indexes, convert)?;
    c.ctx.db.statistics_state().changes.add(&now.table, Delta::inserted(rows));
    Ok(())
}
