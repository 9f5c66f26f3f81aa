//! DROP of everything.
//!
//! RESTRICT (the default) lists what depends on the object; CASCADE takes it along: views,
//! foreign keys of others, and interleaved tables with their rows. A table that is interleaved for
//! locality only does not depend on its parent: it is moved out and stays.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use braid_catalog::{
    ForeignKey, Function, Index, IndexColumn, IndexConstraint, Relation, Table, oid_of, uses_type,
};
use braid_types::{SqlError, SqlResult, SqlState, SqlType};
use sqlparser::ast::{self, ObjectType};

use super::access::roles::wrong_kind;
use super::kept::users;
use super::view::uses;
use super::{Change, backfill, collation, partitions, parts, sequence, truncate, user_type};
use braid_parser::{DropAbsent, Name};

pub(crate) fn run(
    c: &mut Change,
    kind: ObjectType,
    if_exists: bool,
    names: &[ast::ObjectName],
    cascade: bool,
) -> SqlResult<String> {
    let tag = format!("DROP {kind}");
    if matches!(kind, ObjectType::Table | ObjectType::MaterializedView) {
        // All at once, so that what they are to each other is in nobody's way.
        let (mut tables, mut windows) = (Vec::new(), Vec::new());
        for name in names {
            match named(c, kind, &parts(name), if_exists)? {
                Some(Relation::Table(t)) => tables.push(t),
                Some(Relation::Partition(w)) => windows.push(w),
                _ => {}
            }
        }
        // Those of tables that go with them need no work of their own.
        windows.retain(|w| !tables.iter().any(|t| t.id == w.id));
        for w in windows {
            drop_partition(c, &w, cascade)?;
        }
        drop_tables(c, &tables, cascade)?;
        return Ok(tag);
    }
    if kind == ObjectType::Type {
        user_type::drop_types(c, names, if_exists, cascade)?;
        return Ok(tag);
    }
    for name in names {
        let name = parts(name);
        match kind {
            ObjectType::Schema => drop_schema(c, &name, if_exists, cascade)?,
            ObjectType::Database => drop_database(c, &name, if_exists)?,
            ObjectType::View | ObjectType::Index | ObjectType::Sequence => {
                drop_relation(c, kind, &name, if_exists, cascade)?;
            }
            other => return Err(SqlError::unsupported(format!("DROP {other}"))),
        }
    }
    Ok(tag)
}

fn word(kind: ObjectType) -> &'static str {
    match kind {
        ObjectType::Table => "table",
        ObjectType::View => "view",
        ObjectType::MaterializedView => "materialized view",
        ObjectType::Index => "index",
        _ => "sequence",
    }
}

fn with_article(kind: &str) -> String {
    format!("{} {kind}", if kind.starts_with('i') { "an" } else { "a" })
}

/// The relation of this kind and name; `None` if there is none and that is allowed.
fn named(
    c: &Change,
    kind: ObjectType,
    name: &Name,
    if_exists: bool,
) -> SqlResult<Option<Relation>> {
    let what = word(kind);
    let Some(found) = c.ctx.find_relation(name)? else {
        if if_exists {
            c.ctx.notice(format!("{what} \"{}\" does not exist, skipping", name.join(".")));
            return Ok(None);
        }
        let state = if kind == ObjectType::Index {
            SqlState::UNDEFINED_OBJECT
        } else {
            SqlState::UNDEFINED_TABLE
        };
        return Err(SqlError::new(state, format!("{what} \"{}\" does not exist", name.join("."))));
    };
    if found.kind() != what {
        return Err(wrong_kind(name, what).with_hint(format!(
            "Use DROP {} to remove {}.",
            found.kind().to_uppercase(),
            with_article(found.kind())
        )));
    }
    Ok(Some(found))
}

fn drop_relation(
    c: &mut Change,
    kind: ObjectType,
    name: &Name,
    if_exists: bool,
    cascade: bool,
) -> SqlResult<()> {
    let Some(found) = named(c, kind, name, if_exists)? else { return Ok(()) };
    match found {
        Relation::Table(t) => drop_tables(c, &[t], cascade),
        Relation::View(v) => {
            let of = BTreeSet::from([v.id]);
            let what = format!("view {}", v.name);
            let defaults = sequence::defaults_of(c, &of, &|_, _| false)?;
            let mut lines = view_lines(c, &of);
            lines.extend(sequence::lines(&defaults));
            let over = functions_over(c, &[oid_of(v.id)]);
            let line = |f: &Arc<Function>| {
                let types = f.inputs().map(|p| match &p.ty {
                    SqlType::Composite(row) => c.catalog.type_name(row.oid).unwrap_or_default(),
                    other => other.base_name(),
                });
                let types: Vec<String> = types.collect();
                format!("function {}({}) depends on type {}", f.name, types.join(","), v.name)
            };
            lines.extend(over.iter().map(line));
            let mut named = users::of_rows(c, v.id, &of);
            lines.extend(users::in_order(std::mem::take(&mut named.lines)));
            refuse_or_notice(c, cascade, &what, &lines)?;
            sequence::forget_defaults(c, &defaults)?;
            users::remove(c, &named)?;
            users::remove_functions(c, &over.iter().map(|f| f.id).collect::<Vec<_>>())?;
            remove_views(c, dependent_views(c, &of).union(named.views()).copied())?;
            c.catalog.remove(v.id);
            c.sync();
            Ok(())
        }
        Relation::Sequence(s) => {
            let of = BTreeSet::from([s.id]);
            let defaults = sequence::defaults_of(c, &of, &|_, _| false)?;
            let mut lines = view_lines(c, &of);
            lines.extend(sequence::lines(&defaults));
            let what = format!("sequence {}", sequence::called(c, s.id));
            refuse_or_notice(c, cascade, &what, &lines)?;
            sequence::forget_defaults(c, &defaults)?;
            remove_views(c, dependent_views(c, &of))?;
            c.catalog.remove(s.id);
            c.sync();
            Ok(())
        }
        Relation::Partition(w) => drop_partition(c, &w, cascade),
        Relation::Index(t, id) if t.window().is_some() => {
            partitions::drop_index(c, &t, id, cascade)
        }
        Relation::Index(t, id) => drop_index(c, &t, id, cascade),
    }
}

/// Drops a partition with those of it, unless another one has taken it along.
fn drop_partition(c: &mut Change, window: &Arc<Table>, cascade: bool) -> SqlResult<()> {
    let Some(now) = c.catalog.partition(window.shown_id()).cloned() else { return Ok(()) };
    let inside = now.partitioning().map(|d| d.downwards(now.shown_id())).unwrap_or_default();
    let ids: BTreeSet<u32> = inside.iter().map(|p| p.id).collect();
    refuse_or_notice(c, cascade, &format!("table {}", now.name), &view_lines(c, &ids))?;
    remove_views(c, dependent_views(c, &ids))?;
    c.sync();
    partitions::drop_partition(c, &now)
}

pub(super) fn refuse_or_notice(
    c: &Change,
    cascade: bool,
    what: &str,
    lines: &[String],
) -> SqlResult<()> {
    if lines.is_empty() {
        return Ok(());
    }
    if cascade {
        let object = |line: &String| {
            format!("drop cascades to {}", line.split(" depends on ").next().unwrap_or(line))
        };
        match lines {
            [one] => c.ctx.notice(object(one)),
            more => c.ctx.notice_with(
                format!("drop cascades to {} other objects", more.len()),
                Some(more.iter().map(object).collect::<Vec<_>>().join("\n")),
            ),
        }
        return Ok(());
    }
    Err(SqlError::new(
        SqlState::DEPENDENT_OBJECTS_STILL_EXIST,
        format!("cannot drop {what} because other objects depend on it"),
    )
    .with_detail(lines.join("\n"))
    .with_hint("Use DROP ... CASCADE to drop the dependent objects too."))
}

/// Views of both kinds that use any of the relations, directly or through views, each with the
/// first that it was found to use. In the order in which PostgreSQL names them.
fn dependents(c: &Change, of: &BTreeSet<u32>) -> Vec<(u32, u32)> {
    let mut found: Vec<(u32, u32)> = Vec::new();
    let mut todo: Vec<(u32, u32)> = Vec::new();
    let users = |on: u32| {
        let using = c.catalog.definitions().filter(move |(_, d)| d.depends_on.contains(&on));
        let mut using: Vec<(u32, u32)> = using.map(|(view, _)| (view, on)).collect();
        using.sort_unstable_by(|a, b| b.cmp(a));
        using
    };
    todo.extend(of.iter().rev().flat_map(|on| users(*on)));
    while let Some((view, on)) = todo.pop() {
        if !of.contains(&view) && !found.iter().any(|(known, _)| *known == view) {
            found.push((view, on));
            todo.extend(users(view));
        }
    }
    found
}

/// Views of both kinds that use any of the relations, directly or through views.
pub(super) fn dependent_views(c: &Change, of: &BTreeSet<u32>) -> BTreeSet<u32> {
    dependents(c, of).into_iter().map(|(view, _)| view).collect()
}

/// The same in words, as details of an error.
pub(super) fn view_lines(c: &Change, of: &BTreeSet<u32>) -> Vec<String> {
    view_lines_by_id(c, of).into_iter().map(|(_, line)| line).collect()
}

/// The same, each with the id of the view that uses one of the relations itself.
pub(super) fn view_lines_by_id(c: &Change, of: &BTreeSet<u32>) -> Vec<(u32, String)> {
    let mut direct = 0;
    let lines = dependents(c, of).into_iter().map(|(view, on)| {
        if of.contains(&on) {
            direct = view;
        }
        (direct, line(c, view, on))
    });
    lines.collect()
}

fn line(c: &Change, view: u32, on: u32) -> String {
    let function =
        |id: u32| c.catalog.function(id).map(|f| format!("function {}", function_called(c, f)));
    let name = |id: u32| match c.catalog.relation_by_id(id) {
        Some(relation) => format!("{} {}", relation.kind(), sequence::called(c, id)),
        None => function(id).unwrap_or_default(),
    };
    format!("{} depends on {}", name(view), name(on))
}

/// Views of both kinds that may use a column, directly or through views, and the same in words.
pub(super) fn views_of_column(c: &Change, t: &Table, column: &str) -> (BTreeSet<u32>, Vec<String>) {
    let direct = c.catalog.definitions().filter(|(_, definition)| {
        let uses = || uses::may_use_column(definition, &t.name, column);
        definition.depends_on.contains(&t.id) && uses()
    });
    let direct: BTreeSet<u32> = direct.map(|(view, _)| view).collect();
    let mut all = direct.clone();
    let mut lines = Vec::new();
    for view in &direct {
        let called = c.catalog.relation_by_id(*view).map(|view| called(c, &view));
        let called = called.unwrap_or_default();
        lines.push(format!("{called} depends on column {column} of table {}", t.name));
        for (user, on) in dependents(c, &BTreeSet::from([*view])) {
            if all.insert(user) {
                lines.push(line(c, user, on));
            }
        }
    }
    (all, lines)
}

/// A relation's kind and name.
pub(super) fn called(c: &Change, relation: &Relation) -> String {
    let (_, name) = c.catalog.qualified_name(relation.id()).unwrap_or_default();
    format!("{} {name}", relation.kind())
}

/// Removes views of both kinds.
pub(super) fn remove_views(c: &mut Change, views: impl IntoIterator<Item = u32>) -> SqlResult<()> {
    for id in views {
        match c.catalog.table(id).cloned() {
            Some(kept) => remove_table(c, &kept)?,
            None => c.catalog.remove(id),
        }
    }
    Ok(())
}

/// Drops tables together: what depends on one of them and is not one of them is refused, or goes
/// along with CASCADE. Tables that are interleaved for locality only depend on nothing: with
/// CASCADE they and their rows stay, in a place of their own.
pub(super) fn drop_tables(c: &mut Change, tables: &[Arc<Table>], cascade: bool) -> SqlResult<()> {
    let named: BTreeSet<u32> = tables.iter().map(|t| t.id).collect();
    let (dying, survivors) = fates(c, tables);
    let parts = dying.iter().filter_map(|t| t.partitioning()).flat_map(|d| &d.partitions);
    let parts = parts.map(|p| p.id);
    let ids: BTreeSet<u32> = dying.iter().map(|t| t.id).chain(parts).collect();
    let mut lines: Vec<String> = Vec::new();
    let moved: &[Arc<Table>] = if cascade { &[] } else { &survivors };
    for t in dying.iter().filter(|t| !named.contains(&t.id)).chain(moved) {
        let parent = t.interleave.as_ref().and_then(|i| c.catalog.table(i.parent));
        let parent = parent.map_or("", |p| p.name.as_str());
        lines.push(format!("table {} depends on table {parent}", t.name));
    }
    let mut unlink = BTreeSet::new();
    for t in &dying {
        for r in c.catalog.referencing_tables(t.id).filter(|r| !ids.contains(&r.id)) {
            for fk in r.foreign_keys.iter().filter(|fk| fk.parent == t.id) {
                lines.push(format!(
                    "constraint {} on table {} depends on table {}",
                    fk.name, r.name, t.name
                ));
            }
            unlink.insert(r.id);
        }
    }
    let owned = dying.iter().flat_map(|t| truncate::owned_sequences(&c.catalog, t));
    let gone: BTreeSet<u32> = owned.map(|s| s.id).chain(ids.iter().copied()).collect();
    let mut views = dependent_views(c, &gone);
    lines.extend(view_lines(c, &gone));
    let over = functions_over(c, &dying.iter().map(|t| oid_of(t.id)).collect::<Vec<_>>());
    lines.extend(over.iter().map(|f| line_of_rows(c, f, &dying)));
    let mut naming: Vec<_> = dying.iter().map(|t| users::of_rows(c, t.id, &ids)).collect();
    for named in &mut naming {
        lines.extend(users::in_order(std::mem::take(&mut named.lines)));
        views.extend(named.views());
    }
    let defaults = sequence::defaults_of(c, &gone, &|t, _| ids.contains(&t.id))?;
    lines.extend(sequence::lines(&defaults));
    let what = match tables {
        [one] => format!("{} {}", one.kind(), one.name),
        _ => "desired object(s)".into(),
    };
    refuse_or_notice(c, cascade, &what, &lines)?;
    for t in &dying {
        c.lock_chain(t)?;
    }
    for id in unlink {
        c.ctx.lock_for_change(id)?;
        if let Some(r) = c.catalog.table(id) {
            let mut r = (**r).clone();
            r.foreign_keys.retain(|fk| !ids.contains(&fk.parent));
            c.catalog.put_table(r);
        }
    }
    sequence::forget_defaults(c, &defaults)?;
    remove_views(c, views)?;
    naming.iter().try_for_each(|named| users::remove(c, named))?;
    users::remove_functions(c, &over.iter().map(|f| f.id).collect::<Vec<_>>())?;
    for t in &survivors {
        move_out(c, t.id)?;
    }
    for t in dying.iter().rev() {
        remove_table(c, t)?;
    }
    c.sync();
    Ok(())
}

/// Functions over types, by their oids: what they take or give is of one of them.
pub(super) fn functions_over(c: &Change, oids: &[u32]) -> Vec<Arc<Function>> {
    c.catalog.functions().filter(|f| is_over(f, oids)).cloned().collect()
}

/// A function that takes or gives rows of one of the tables.
fn line_of_rows(c: &Change, f: &Function, tables: &[Arc<Table>]) -> String {
    let of = tables.iter().find(|t| is_over(f, &[oid_of(t.id)]));
    let ty = of.map_or("", |t| &t.name);
    format!("function {} depends on type {ty}", function_called(c, f))
}

fn is_over(f: &Function, oids: &[u32]) -> bool {
    let of = |ty: &SqlType| oids.iter().any(|oid| uses_type(ty, *oid));
    of(&f.returns) || f.params.iter().any(|p| of(&p.ty))
}

/// `f(integer, t)`: rows of a table are named by it.
fn function_called(c: &Change, f: &Function) -> String {
    let name = |ty: &SqlType| {
        let known = ty.base_name();
        let of_rows = || c.catalog.tables().find(|t| uses_type(ty, oid_of(t.id)));
        if known.is_empty() { of_rows().map_or(known, |t| t.name.clone()) } else { known }
    };
    let types: Vec<String> = f.inputs().map(|p| name(&p.ty)).collect();
    format!("{}({})", f.name, types.join(","))
}

/// The tables with all that is interleaved in them and enforces it, parents first; and the highest
/// tables below them that do not.
fn fates(c: &Change, tables: &[Arc<Table>]) -> (Vec<Arc<Table>>, Vec<Arc<Table>>) {
    let named: BTreeSet<u32> = tables.iter().map(|t| t.id).collect();
    let mut dying: Vec<Arc<Table>> = Vec::new();
    let mut survivors = Vec::new();
    let mut todo: VecDeque<Arc<Table>> = tables.iter().cloned().collect();
    while let Some(t) = todo.pop_front() {
        if dying.iter().any(|d| d.id == t.id) {
            continue;
        }
        for child in c.catalog.interleaved_children(t.id) {
            let enforced = child.interleave.as_ref().is_some_and(|i| i.enforced());
            if enforced || named.contains(&child.id) {
                todo.push_back(child.clone());
            } else {
                survivors.push(child.clone());
            }
        }
        dying.push(t);
    }
    dying.sort_by_key(|t| c.catalog.depth(t));
    (dying, survivors)
}

/// Makes a table that loses its parent a root table: it and everything interleaved in it is written
/// anew under keys of its own.
fn move_out(c: &mut Change, table: u32) -> SqlResult<()> {
    let t = &c.catalog.table(table).cloned().expect("it survives");
    let subtree = c.catalog.subtree(t);
    let mut old = Vec::new();
    for s in &subtree {
        c.ctx.lock_for_change(s.id)?;
        c.discard(s)?;
        old.push(backfill::layout(c, s.id)?);
    }
    for s in &subtree {
        let mut new = (**s).clone();
        if s.id == t.id {
            new.interleave = None;
        }
        // Everything gets new keys, and entries name rows by their keys.
        new.generation = c.new_generation()?;
        for i in &mut new.indexes {
            i.generation = c.new_generation()?;
            if i.interleave_in.is_some_and(|at| !subtree.iter().any(|s| s.id == at)) {
                i.interleave_in = None;
            }
        }
        c.catalog.put_table(new);
    }
    c.sync();
    for (s, old) in subtree.iter().zip(&old) {
        backfill::rewrite(c, old, s.id, Ok)?;
    }
    c.ctx.notice(format!(
        "table \"{}\" was moved out of the dropped table and keeps its rows",
        t.name
    ));
    Ok(())
}

/// Removes one table with its rows, indexes and sequences.
pub(super) fn remove_table(c: &mut Change, t: &Arc<Table>) -> SqlResult<()> {
    c.ctx.lock_for_change(t.id)?;
    if t.interleave.is_none() {
        truncate::erase(c, t.id, t.generation)?;
    }
    for i in t.indexes.iter().filter(|i| i.interleave_in.is_none()) {
        truncate::erase(c, i.id, i.generation)?;
    }
    c.discard(t)?;
    for s in truncate::owned_sequences(&c.catalog, t) {
        c.catalog.remove(s.id);
    }
    // Foreign keys to other tables change what deletes over there must look for.
    for fk in &t.foreign_keys {
        c.ctx.lock_for_change(fk.parent)?;
    }
    c.catalog.remove(t.id);
    Ok(())
}

fn drop_index(c: &mut Change, t: &Arc<Table>, id: u32, cascade: bool) -> SqlResult<()> {
    let Some(index) = t.index(id).cloned() else { return Ok(()) };
    if let Some(k) = index.constraint {
        let word = if k == IndexConstraint::Primary { "primary key" } else { "unique" };
        return Err(SqlError::new(
            SqlState::DEPENDENT_OBJECTS_STILL_EXIST,
            format!(
                "cannot drop index {} because constraint {} on table {} requires it",
                index.name, index.name, t.name
            ),
        )
        .with_hint(format!(
            "It is the index of a {word} constraint: drop constraint {} on table {} instead.",
            index.name, t.name
        )));
    }
    remove_index(c, t, id, cascade)
}

/// Removes a secondary index; foreign keys that need its uniqueness go along with CASCADE.
pub(super) fn remove_index(
    c: &mut Change,
    t: &Arc<Table>,
    id: u32,
    cascade: bool,
) -> SqlResult<()> {
    c.lock_chain(t)?;
    let mut new = (**t).clone();
    let Some(at) = new.indexes.iter().position(|i| i.id == id) else { return Ok(()) };
    let index = new.indexes.remove(at);
    new.forget_expressions();
    let leaning = if index.unique && index.predicate.is_none() {
        foreign_keys_that_need(c, &new, &index.columns)
    } else {
        Vec::new()
    };
    let needs = |(r, fk): &(Arc<Table>, String)| {
        format!("constraint {fk} on table {} depends on index {}", r.name, index.name)
    };
    let text: Vec<_> = leaning.iter().map(needs).collect();
    refuse_or_notice(c, cascade, &format!("index {}", index.name), &text)?;
    c.put(new);
    remove_foreign_keys(c, leaning.into_iter().map(|(r, fk)| (r.id, fk)))?;
    match index.interleave_in {
        None => truncate::erase(c, index.id, index.generation),
        Some(lies_in) => c.discard_index(lies_in, &index),
    }
}

/// Foreign keys, with their tables, to columns that nothing in `t`, which has lost a unique key on
/// them, holds unique any more.
pub(super) fn foreign_keys_that_need(
    c: &Change,
    t: &Table,
    columns: &[IndexColumn],
) -> Vec<(Arc<Table>, String)> {
    let set = |columns: &[IndexColumn]| -> BTreeSet<u32> {
        columns.iter().map(|column| column.column).collect()
    };
    let key = set(columns);
    let unique = |i: &Index| i.unique && i.predicate.is_none();
    if t.all_indexes().any(|i| unique(i) && set(&i.columns) == key) {
        return Vec::new();
    }
    let to_it = |fk: &&ForeignKey| {
        fk.parent == t.id && fk.parent_columns.iter().copied().collect::<BTreeSet<_>>() == key
    };
    let of = |r: &Arc<Table>| {
        let names: Vec<_> = r.foreign_keys.iter().filter(to_it).map(|fk| fk.name.clone()).collect();
        names.into_iter().map(|name| (r.clone(), name)).collect::<Vec<_>>()
    };
    c.catalog.referencing_tables(t.id).flat_map(of).collect()
}

/// Takes foreign keys from their tables, by name.
pub(super) fn remove_foreign_keys(
    c: &mut Change,
    gone: impl IntoIterator<Item = (u32, String)>,
) -> SqlResult<()> {
    for (table, name) in gone {
        c.ctx.lock_for_change(table)?;
        let mut table = (*c.stored(table)?).clone();
        table.foreign_keys.retain(|k| k.name != name);
        c.put(table);
    }
    Ok(())
}

fn drop_schema(c: &mut Change, name: &Name, if_exists: bool, cascade: bool) -> SqlResult<()> {
    let bare = name.last().cloned().unwrap_or_default();
    let Some(schema) = c.catalog.schema(c.ctx.database, &bare).cloned() else {
        if if_exists {
            c.ctx.notice(format!("schema \"{bare}\" does not exist, skipping"));
            return Ok(());
        }
        return Err(crate::session::no_schema(&bare));
    };
    let mut tables: Vec<_> =
        c.catalog.tables().filter(|t| t.schema == schema.id).cloned().collect();
    let views: BTreeSet<u32> =
        c.catalog.views().filter(|v| v.schema == schema.id).map(|v| v.id).collect();
    let sequences: Vec<_> =
        c.catalog.sequences().filter(|s| s.schema == schema.id).map(|s| s.id).collect();
    let mut lines: Vec<String> = tables
        .iter()
        .map(|t| format!("{} {} depends on schema {bare}", t.kind(), t.name))
        .collect();
    let named = views.iter().filter_map(|id| c.catalog.view(*id));
    lines.extend(named.map(|v| format!("view {} depends on schema {bare}", v.name)));
    let alone = sequences.iter().filter_map(|id| c.catalog.sequence(*id));
    let alone = alone.filter(|s| s.owned_by.is_none());
    lines.extend(alone.map(|s| format!("sequence {bare}.{} depends on schema {bare}", s.name)));
    let of = sequences.iter().copied().collect();
    let defaults = sequence::defaults_of(c, &of, &|t, _| t.schema == schema.id)?;
    lines.extend(sequence::lines(&defaults));
    let types: Vec<_> = c.catalog.user_types().filter(|t| t.schema == schema.id).cloned().collect();
    lines.extend(types.iter().map(|t| format!("type {} depends on schema {bare}", t.name)));
    let partitions = c.catalog.partitions().filter(|p| p.schema == schema.id);
    let windows: Vec<_> = partitions.filter_map(|p| c.catalog.partition(p.id)).cloned().collect();
    lines.extend(windows.iter().map(|w| format!("table {} depends on schema {bare}", w.name)));
    let own: Vec<_> = c.catalog.functions().filter(|f| f.schema == schema.id).cloned().collect();
    let line =
        |f: &Arc<Function>| format!("function {} depends on schema {bare}", function_called(c, f));
    lines.extend(own.iter().map(line));
    let collations = c.catalog.collations().filter(|own| own.schema == schema.id);
    let collations: Vec<_> = collations.cloned().collect();
    for own in &collations {
        let shown = collation::shown(c, own);
        lines.push(format!("collation {shown} depends on schema {bare}"));
        lines.extend(collation::dependents(c, own).lines);
    }
    refuse_or_notice(c, cascade, &format!("schema {bare}"), &lines)?;
    sequence::forget_defaults(c, &defaults)?;
    users::remove_functions(c, &own.iter().map(|f| f.id).collect::<Vec<_>>())?;
    let dependents = dependent_views(c, &views);
    remove_views(c, dependents.into_iter().chain(views))?;
    c.sync();
    tables.retain(|t| c.catalog.table(t.id).is_some());
    drop_tables(c, &tables, true)?;
    for w in &windows {
        drop_partition(c, w, true)?;
    }
    for s in sequences {
        c.catalog.remove(s);
    }
    // What is of a type was made after it.
    for ty in types.iter().rev() {
        if c.catalog.user_type(ty.id).is_some() {
            user_type::drop_type(c, ty, true)?;
        }
    }
    for own in &collations {
        collation::drop_collation(c, own, true)?;
    }
    c.catalog.remove(schema.id);
    c.sync();
    Ok(())
}

fn drop_database(c: &mut Change, name: &Name, if_exists: bool) -> SqlResult<()> {
    let bare = name.last().cloned().unwrap_or_default();
    let Some(db) = c.catalog.database(&bare).cloned() else {
        if if_exists {
            c.ctx.notice(format!("database \"{bare}\" does not exist, skipping"));
            return Ok(());
        }
        return Err(SqlError::new(
            SqlState::INVALID_CATALOG_NAME,
            format!("database \"{bare}\" does not exist"),
        ));
    };
    if db.id == c.ctx.database {
        return Err(SqlError::new(
            SqlState::OBJECT_IN_USE,
            "cannot drop the currently open database",
        ));
    }
    if c.ctx.block.is_some() {
        return Err(SqlError::new(
            SqlState::ACTIVE_SQL_TRANSACTION,
            "DROP DATABASE cannot run inside a transaction block",
        ));
    }
    let schemas: Vec<_> = c.catalog.schemas(db.id).map(|s| s.id).collect();
    let views: Vec<_> =
        c.catalog.views().filter(|v| schemas.contains(&v.schema)).map(|v| v.id).collect();
    for v in views {
        c.catalog.remove(v);
    }
    // First, so that nothing is told of those that take rows of tables.
    let own = c.catalog.functions().filter(|f| schemas.contains(&f.schema));
    let own: Vec<u32> = own.map(|f| f.id).collect();
    for id in own {
        c.catalog.remove(id);
    }
    let tables: Vec<_> =
        c.catalog.tables().filter(|t| schemas.contains(&t.schema)).cloned().collect();
    drop_tables(c, &tables, true)?;
    let sequences: Vec<_> =
        c.catalog.sequences().filter(|s| schemas.contains(&s.schema)).map(|s| s.id).collect();
    let types: Vec<_> = c.catalog.user_types().map(|t| (t.schema, t.id)).collect();
    let types = types.into_iter().filter(|t| schemas.contains(&t.0)).map(|t| t.1);
    let types: Vec<u32> = types.collect();
    let collations = c.catalog.collations().filter(|own| schemas.contains(&own.schema));
    let collations: Vec<u32> = collations.map(|own| own.id).collect();
    for id in sequences.into_iter().chain(collations).chain(types).chain(schemas) {
        c.catalog.remove(id);
    }
    c.catalog.remove(db.id);
    c.sync();
    Ok(())
}

/// DROP of an object of a kind that is not here.
pub(crate) fn absent(c: &mut Change, d: &DropAbsent) -> SqlResult<String> {
    let DropAbsent { tag, noun, name, of, if_exists } = d;
    let tag = tag.clone();
    if let Some(of) = of
        && c.ctx.find_relation(of)?.is_none()
    {
        if !if_exists {
            return Err(crate::session::no_relation(of));
        }
        c.ctx.notice(format!("relation \"{}\" does not exist, skipping", of.join(".")));
        return Ok(tag);
    }
    let bare = of.as_ref().and_then(|of| of.last());
    let kind = if *if_exists || *noun == "rule" { "relation" } else { "table" };
    let text = match bare {
        Some(of) => format!("{noun} \"{name}\" for {kind} \"{of}\" does not exist"),
        None => format!("{noun} \"{name}\" does not exist"),
    };
    if !if_exists {
        return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, text));
    }
    c.ctx.notice(format!("{text}, skipping"));
    Ok(tag)
}
