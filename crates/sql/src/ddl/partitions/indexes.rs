//! Indexes of partitions: other names of the table's indexes, and indexes of one partition alone.
//!
//! ```text
//!   CREATE INDEX i ON t (a)          one index; each partition gets a name of it: p_a_idx
//!   CREATE INDEX j ON p (a)          the table has it already: j is p's name of it
//!   CREATE INDEX k ON p (b)          only rows of p have entries: a partial index of the table
//!   ALTER INDEX l ATTACH PARTITION k k becomes p's name of l, and its own entries go
//! ```
//! Dumps create the indexes of partitions and of their table in any order, and then say which
//! belong together.

use std::collections::{HashMap, HashSet};

use braid_catalog::{
    Catalog, Index, IndexConstraint, OfPartition, Partition, PartitionIndex, Partitioning,
    Relation, Table, choose_constraint_name,
};
use braid_parser::{CreateIndex, Name};
use braid_types::{SqlError, SqlResult, SqlState};

use super::{key, redivide};
use crate::ddl::{Change, backfill, drop, exists, index};
use crate::partitions::condition_of;

/// What an index does, by names, so that those of two tables can be compared.
#[derive(PartialEq)]
struct Signature {
    /// Name, DESC, NULLS FIRST.
    key: Vec<(String, bool, bool)>,
    include: Vec<String>,
    unique: bool,
    nulls_not_distinct: bool,
}

fn signature(t: &Table, i: &Index) -> Signature {
    let key = i.columns.iter().map(|k| (t.key_name(k.column).to_string(), k.desc, k.nulls_first));
    let mut include: Vec<String> = i.include.iter().map(|c| t.key_name(*c).to_string()).collect();
    include.sort();
    Signature {
        key: key.collect(),
        include,
        unique: i.is_unique() || i.id == t.primary.id,
        nulls_not_distinct: i.nulls_not_distinct,
    }
}

/// Whether two indexes, each of its own table, do the same.
fn is_same(t: &Table, a: &Index, u: &Table, b: &Index) -> bool {
    let primary = |t: &Table, i: &Index| {
        i.id == t.primary.id || i.constraint == Some(IndexConstraint::Primary)
    };
    let own = |i: &Index| match &i.of_partition {
        Some(of) => of.predicate.clone(),
        None => i.predicate.clone(),
    };
    signature(t, a) == signature(u, b)
        && primary(t, a) == primary(u, b)
        && a.deferral == b.deferral
        && a.declaration() == b.declaration()
        && own(a) == own(b)
}

/// Gives new partitions and new indexes their names, and forgets those of indexes that are gone;
/// unless the statement says ONLY. New unique keys must have what rows are divided by.
pub(in crate::ddl) fn settle_names(c: &mut Change, old: &Catalog, only: bool) -> SqlResult<()> {
    let changed = |t: &&std::sync::Arc<Table>| {
        t.partitioning().is_some()
            && !old.table(t.id).is_some_and(|before| std::sync::Arc::ptr_eq(before, t))
    };
    let tables: Vec<u32> = c.catalog.tables().filter(changed).map(|t| t.id).collect();
    for id in tables {
        let table = c.catalog.table(id).cloned().expect("listed just now");
        check_covers(&table)?;
        let was = old.table(id);
        let is_new = |i: &Index| was.is_none_or(|t| t.index(i.id).is_none());
        let Some(divided) = table.partitioning() else { continue };
        let before = was.and_then(|t| t.partitioning()).into_iter().flat_map(|d| &d.partitions);
        let before: HashSet<u32> = before.map(|p| p.id).collect();
        let mut wanted: Vec<(&Partition, &Index)> = Vec::new();
        for p in &divided.partitions {
            let new = !before.contains(&p.id);
            let named = |i: &Index| p.indexes.iter().any(|own| own.of == i.id);
            let missing = table.shown_indexes().filter(|i| !named(i) && (new || is_new(i)));
            wanted.extend(missing.filter(|i| new || !only || !is_new(i)).map(|i| (p, i)));
        }
        let gone = divided.partitions.iter().flat_map(|p| &p.indexes);
        if wanted.is_empty() && !gone.into_iter().any(|i| table.index(i.of).is_none()) {
            continue;
        }
        let there: HashSet<u32> = table.all_indexes().map(|i| i.id).collect();
        let mut taken: HashSet<String> = names_given(divided).map(str::to_string).collect();
        let mut given: HashMap<u32, Vec<PartitionIndex>> = HashMap::new();
        for (p, i) in wanted {
            let name = own_name(&table, p, i, |n| c.taken(p.schema, n) || taken.contains(n));
            taken.insert(name.clone());
            let own = PartitionIndex { id: c.new_id()?, name, of: i.id };
            given.entry(p.id).or_default().push(own);
        }
        let mut new = (*table).clone();
        for p in new.partitioning_mut().into_iter().flat_map(|d| &mut d.partitions) {
            p.indexes.retain(|i| there.contains(&i.of));
            p.indexes.extend(given.remove(&p.id).unwrap_or_default());
        }
        c.put(new);
    }
    Ok(())
}

/// Names that partitions of a table have given.
fn names_given(divided: &Partitioning) -> impl Iterator<Item = &str> {
    divided.partitions.iter().flat_map(|p| p.indexes.iter().map(|i| i.name.as_str()))
}

fn own_name(t: &Table, p: &Partition, i: &Index, taken: impl Fn(&str) -> bool) -> String {
    if i.id == t.primary.id {
        return choose_constraint_name(&p.name, &[], "pkey", taken);
    }
    let columns = i.columns.iter().map(|k| match t.column(k.column) {
        Some(c) if c.expression.is_none() => c.name.as_str(),
        _ => "expr",
    });
    let kind = if i.constraint == Some(IndexConstraint::Unique) { "key" } else { "idx" };
    choose_constraint_name(&p.name, &columns.collect::<Vec<_>>(), kind, taken)
}

/// That unique keys of a table have all that its rows are divided by.
///
/// # Errors
/// 0A000.
pub(super) fn check_covers(t: &Table) -> SqlResult<()> {
    t.shown_indexes().try_for_each(|i| check_index(t, i))
}

/// As [`check_covers`], of one index that may be to come.
pub(in crate::ddl) fn check_index(t: &Table, i: &Index) -> SqlResult<()> {
    let primary = i.id == t.primary.id;
    let Some(divided) = t.partitioning().filter(|_| primary || i.is_unique()) else {
        return Ok(());
    };
    let keys = divided.partitions.iter().filter_map(|p| p.key.as_ref());
    let kind = if primary { "PRIMARY KEY" } else { "UNIQUE" };
    std::iter::once(&divided.key).chain(keys).try_for_each(|key| key::check_unique(t, key, i, kind))
}

/// CREATE INDEX on a partition.
pub(in crate::ddl) fn create_index(
    c: &mut Change,
    window: &Table,
    create: &CreateIndex,
) -> SqlResult<()> {
    if create.interleave.is_some() {
        return Err(SqlError::unsupported("an interleaved index of a partition alone")
            .with_hint("Create it on the partitioned table."));
    }
    let (index, expressions) = index::declare(c, window, create)?;
    let mut with = window.clone();
    with.adopt(&expressions);
    add(c, &with, index)
}

/// Adds what was declared as an index of a partition.
pub(super) fn add(c: &mut Change, window: &Table, index: Index) -> SqlResult<()> {
    let partition = window.window().ok_or_else(|| SqlError::internal("no partition"))?.clone();
    let table = c.stored(window.id)?;
    let free = |i: &&Index| !partition.indexes.iter().any(|own| own.of == i.id);
    let same = |i: &&Index| is_same(&table, i, window, &index);
    if let Some(of) = table.shown_indexes().filter(free).find(same).map(|i| i.id) {
        let own = PartitionIndex { id: index.id, name: index.name, of };
        redivide(c, table.id, |divided| {
            if let Some(p) = divided.partition_mut(partition.id) {
                p.indexes.push(own);
            }
        })?;
        return Ok(());
    }
    if index.constraint == Some(IndexConstraint::Primary) {
        let nullable = |k: &&braid_catalog::IndexColumn| {
            table.column(k.column).is_some_and(|col| col.nullable)
        };
        if let Some(k) = index.columns.iter().find(nullable) {
            let column = table.key_name(k.column);
            return Err(SqlError::unsupported(
                "a primary key of a partition alone over a column \
                                              that may be NULL",
            )
            .with_hint(format!("ALTER TABLE {} ALTER COLUMN {column} SET NOT NULL.", table.name)));
        }
    }
    let mut new = (*table).clone();
    let expressions: Vec<_> =
        window.columns.iter().filter(|c| c.expression.is_some()).cloned().collect();
    new.adopt(&expressions);
    let of_partition =
        Some(OfPartition { partition: partition.id, predicate: index.predicate.clone() });
    let id = index.id;
    new.indexes.push(Index { of_partition, ..index });
    renew_predicates(&mut new)?;
    let unread = new.index(id).is_some_and(|i| i.unread.is_some());
    c.put(new);
    if unread {
        return Ok(());
    }
    backfill::build_index(c, table.id, id)
}

/// What decides about entries of indexes of one partition alone follows its bound, that of the
/// default partition those of all others.
pub(super) fn renew_predicates(t: &mut Table) -> SqlResult<()> {
    let mut indexes = std::mem::take(&mut t.indexes);
    let own = indexes.iter_mut().filter(|i| i.of_partition.is_some());
    let done = own.into_iter().try_for_each(|i| {
        let Some(of) = &i.of_partition else { return Ok(()) };
        let within = condition_of(t, of.partition)?;
        i.predicate = Some(match &of.predicate {
            Some(own) => format!("{within} AND ({own})"),
            None => within,
        });
        Ok(())
    });
    t.indexes = indexes;
    done
}

/// ALTER INDEX .. ATTACH PARTITION.
pub(super) fn attach(c: &mut Change, name: &Name, partition: &Name) -> SqlResult<()> {
    let (table, id) = named(c, name)?;
    let (shown, own) = named(c, partition)?;
    let (bare, own_name) = (last(name), last(partition));
    let cannot = |state, detail: String| {
        let text = format!("cannot attach index \"{own_name}\" as a partition of index \"{bare}\"");
        Err(SqlError::new(state, text).with_detail(detail))
    };
    let Some(window) = shown.window().cloned() else {
        let detail = format!(
            "Index \"{own_name}\" is not an index on any partition of table \"{}\".",
            table.name
        );
        return cannot(SqlState::INVALID_OBJECT_DEFINITION, detail);
    };
    // Of an index of a partition: the table's index that it is a name of.
    let of_parent = match table.window() {
        None => id,
        Some(parent) => match parent.indexes.iter().find(|i| i.id == id) {
            Some(i) => i.of,
            None => id,
        },
    };
    let holder = match table.window() {
        None => table.id,
        Some(parent) => c.catalog.partition(parent.id).map_or(0, |w| w.id),
    };
    let root = c.catalog.partition(window.id).map_or(0, |w| w.id);
    if root != holder || window.parent != table.shown_id() {
        let detail = format!(
            "Index \"{own_name}\" is not an index on any partition of table \"{}\".",
            table.name
        );
        return cannot(SqlState::INVALID_OBJECT_DEFINITION, detail);
    }
    if let Some(i) = window.indexes.iter().find(|i| i.id == own) {
        if i.of == of_parent {
            return Ok(());
        }
        let detail = format!("Index \"{own_name}\" is already attached to another index.");
        return cannot(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, detail);
    }
    let root = c.stored(root)?;
    c.lock_chain(&root)?;
    if window.indexes.iter().any(|i| i.of == of_parent) {
        let detail =
            format!("Another index is already attached for partition \"{}\".", window.name);
        return cannot(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, detail);
    }
    let (Some(wanted), Some(index)) = (root.index(of_parent), root.index(own)) else {
        return Err(SqlError::internal("an index is not in its table"));
    };
    if !is_same(&root, wanted, &root, index) {
        return cannot(
            SqlState::INVALID_OBJECT_DEFINITION,
            "The index definitions do not match.".into(),
        );
    }
    let alias = PartitionIndex { id: own, name: index.name.clone(), of: of_parent };
    drop::remove_index(c, &root, own, false)?;
    redivide(c, root.id, |divided| {
        // Names of it that partitions further in have.
        let all = divided.partitions.iter_mut().flat_map(|p| &mut p.indexes);
        all.filter(|i| i.of == own).for_each(|i| i.of = of_parent);
        if let Some(p) = divided.partition_mut(window.id) {
            p.indexes.push(alias);
        }
    })?;
    Ok(())
}

fn last(name: &Name) -> &str {
    name.last().map_or("", String::as_str)
}

fn named(c: &Change, name: &Name) -> SqlResult<(std::sync::Arc<Table>, u32)> {
    match c.ctx.relation(name)? {
        Relation::Index(t, id) => Ok((t, id)),
        _ => Err(SqlError::new(
            SqlState::WRONG_OBJECT_TYPE,
            format!("\"{}\" is not an index", last(name)),
        )),
    }
}

/// DROP INDEX of a partition.
pub(in crate::ddl) fn drop_index(
    c: &mut Change,
    shown: &Table,
    id: u32,
    cascade: bool,
) -> SqlResult<()> {
    let Some(window) = shown.window() else { return Ok(()) };
    let root = c.stored(c.catalog.partition(window.id).map_or(0, |w| w.id))?;
    if let Some(own) = window.indexes.iter().find(|i| i.id == id) {
        let of = root.index(own.of).map_or("", |i| i.name.as_str());
        return Err(SqlError::new(
            SqlState::DEPENDENT_OBJECTS_STILL_EXIST,
            format!("cannot drop index {} because index {of} requires it", own.name),
        )
        .with_hint(format!("You can drop index {of} instead.")));
    }
    drop::remove_index(c, &root, id, cascade)
}

/// Gives an index of a partition another name.
pub(in crate::ddl) fn rename(c: &mut Change, shown: &Table, id: u32, new: String) -> SqlResult<()> {
    let Some(window) = shown.window() else { return Ok(()) };
    let root = c.catalog.partition(window.id).map_or(0, |w| w.id);
    c.ctx.lock_for_change(root)?;
    if c.taken(window.schema, &new) {
        return Err(exists(&new));
    }
    let partition = window.id;
    let is_name = window.indexes.iter().any(|i| i.id == id);
    if is_name {
        redivide(c, root, |divided| {
            let own = divided.partition_mut(partition);
            for i in own.into_iter().flat_map(|p| &mut p.indexes).filter(|i| i.id == id) {
                i.name = new.clone();
            }
        })?;
        return Ok(());
    }
    let Some(table) = c.catalog.table(root) else { return Ok(()) };
    let mut table = (**table).clone();
    table.indexes.iter_mut().filter(|i| i.id == id).for_each(|i| i.name = new.clone());
    c.put(table);
    Ok(())
}
