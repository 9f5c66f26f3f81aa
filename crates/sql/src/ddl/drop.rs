//! DROP of everything.
//!
//! RESTRICT (the default) lists what depends on the object; CASCADE takes it along: views,
//! foreign keys of others, and interleaved tables with their rows.

use std::collections::BTreeSet;
use std::sync::Arc;

use braid_catalog::{IndexConstraint, Relation, Table};
use braid_types::{SqlError, SqlResult, SqlState};
use sqlparser::ast::{self, ObjectType};

use super::{Change, parts, truncate};
use crate::parse::Name;

pub(super) fn run(
    c: &mut Change,
    kind: ObjectType,
    if_exists: bool,
    names: &[ast::ObjectName],
    cascade: bool,
) -> SqlResult<String> {
    let tag = format!("DROP {kind}");
    for name in names {
        let name = parts(name);
        match kind {
            ObjectType::Schema => drop_schema(c, &name, if_exists, cascade)?,
            ObjectType::Database => drop_database(c, &name, if_exists)?,
            ObjectType::Table | ObjectType::View | ObjectType::Index | ObjectType::Sequence => {
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
        ObjectType::Index => "index",
        _ => "sequence",
    }
}

fn drop_relation(
    c: &mut Change,
    kind: ObjectType,
    name: &Name,
    if_exists: bool,
    cascade: bool,
) -> SqlResult<()> {
    let what = word(kind);
    let Some(found) = c.ctx.find_relation(name)? else {
        if if_exists {
            c.ctx.notice(format!("{what} \"{}\" does not exist, skipping", name.join(".")));
            return Ok(());
        }
        let state = if kind == ObjectType::Index {
            SqlState::UNDEFINED_OBJECT
        } else {
            SqlState::UNDEFINED_TABLE
        };
        return Err(SqlError::new(state, format!("{what} \"{}\" does not exist", name.join("."))));
    };
    if found.kind() != what {
        return Err(SqlError::new(
            SqlState::WRONG_OBJECT_TYPE,
            format!("\"{}\" is not a {what}", name.join(".")),
        )
        .with_hint(format!(
            "Use DROP {} to remove a {}.",
            found.kind().to_uppercase(),
            found.kind()
        )));
    }
    match found {
        Relation::Table(t) => drop_tables(c, &[t], cascade),
        Relation::View(v) => {
            let views = dependent_views(c, &BTreeSet::from([v.id]));
            refuse_or_notice(
                c,
                cascade,
                &format!("view {}", v.name),
                &view_lines(c, &views, &v.name),
            )?;
            for id in views {
                c.catalog.remove(id);
            }
            c.catalog.remove(v.id);
            c.sync();
            Ok(())
        }
        Relation::Sequence(s) => {
            let owner = s.owned_by.and_then(|(t, col)| Some((c.catalog.table(t)?.clone(), col)));
            if let Some((t, col)) = owner {
                let column = t.column(col).map_or("", |x| x.name.as_str());
                let line = format!(
                    "default value for column {column} of table {} depends on sequence {}",
                    t.name, s.name
                );
                refuse_or_notice(c, cascade, &format!("sequence {}", s.name), &[line])?;
                let mut t = (*t).clone();
                for x in t.columns.iter_mut().filter(|x| x.sequence == Some(s.id)) {
                    x.sequence = None;
                    x.default = None;
                    x.identity = None;
                }
                c.put(t);
            }
            c.catalog.remove(s.id);
            c.sync();
            Ok(())
        }
        Relation::Index(t, id) => drop_index(c, &t, id, cascade),
    }
}

fn refuse_or_notice(c: &Change, cascade: bool, what: &str, lines: &[String]) -> SqlResult<()> {
    if lines.is_empty() {
        return Ok(());
    }
    if cascade {
        for l in lines {
            let object = l.split(" depends on ").next().unwrap_or(l);
            c.ctx.notice(format!("drop cascades to {object}"));
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

/// Views that use any of the relations, directly or through views.
pub(super) fn dependent_views(c: &Change, of: &BTreeSet<u32>) -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    loop {
        let before = found.len();
        for v in c.catalog.views() {
            if v.depends_on.iter().any(|d| of.contains(d) || found.contains(d)) {
                found.insert(v.id);
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

fn view_lines(c: &Change, views: &BTreeSet<u32>, on: &str) -> Vec<String> {
    views
        .iter()
        .filter_map(|id| c.catalog.view(*id))
        .map(|v| format!("view {} depends on {on}", v.name))
        .collect()
}

fn drop_tables(c: &mut Change, tables: &[Arc<Table>], cascade: bool) -> SqlResult<()> {
    for t in tables {
        // CASCADE of something before may have taken it.
        if c.catalog.table(t.id).is_none() {
            continue;
        }
        let subtree = c.catalog.subtree(t);
        let ids: BTreeSet<u32> = subtree.iter().map(|t| t.id).collect();
        let mut lines: Vec<String> = subtree[1..]
            .iter()
            .map(|k| format!("table {} is interleaved in and depends on table {}", k.name, t.name))
            .map(|l| l.replacen(" is interleaved in and depends on", " depends on", 1))
            .collect();
        let mut unlink = Vec::new();
        for id in &ids {
            for r in c.catalog.referencing_tables(*id).filter(|r| !ids.contains(&r.id)) {
                for fk in r.foreign_keys.iter().filter(|fk| fk.parent == *id) {
                    lines.push(format!(
                        "constraint {} on table {} depends on table {}",
                        fk.name, r.name, t.name
                    ));
                }
                unlink.push(r.id);
            }
        }
        let views = dependent_views(c, &ids);
        lines.extend(view_lines(c, &views, &format!("table {}", t.name)));
        refuse_or_notice(c, cascade, &format!("table {}", t.name), &lines)?;
        c.lock_chain(t)?;
        for id in unlink {
            c.ctx.lock_for_change(id)?;
            if let Some(r) = c.catalog.table(id) {
                let mut r = (**r).clone();
                r.foreign_keys.retain(|fk| !ids.contains(&fk.parent));
                c.catalog.put_table(r);
            }
        }
        for id in views {
            c.catalog.remove(id);
        }
        for k in subtree.iter().rev() {
            remove_table(c, k)?;
        }
        c.sync();
    }
    Ok(())
}

/// Removes one table with its rows, indexes and sequences.
fn remove_table(c: &mut Change, t: &Arc<Table>) -> SqlResult<()> {
    c.ctx.lock_for_change(t.id)?;
    if t.interleave.is_none() {
        truncate::erase(c, t.id)?;
    }
    for i in t.indexes.iter().filter(|i| i.interleave_in.is_none()) {
        truncate::erase(c, i.id)?;
    }
    for s in t.columns.iter().filter_map(|x| x.sequence) {
        c.catalog.remove(s);
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
    let key: BTreeSet<u32> = index.columns.iter().map(|k| k.column).collect();
    let still_unique = new
        .all_indexes()
        .any(|i| i.unique && i.columns.iter().map(|k| k.column).collect::<BTreeSet<_>>() == key);
    let mut lines = Vec::new();
    if index.unique && !still_unique {
        for r in c.catalog.referencing_tables(t.id) {
            for fk in &r.foreign_keys {
                if fk.parent == t.id
                    && fk.parent_columns.iter().copied().collect::<BTreeSet<_>>() == key
                {
                    lines.push((r.id, fk.name.clone(), r.name.clone()));
                }
            }
        }
    }
    let text: Vec<_> = lines
        .iter()
        .map(|(_, fk, r)| format!("constraint {fk} on table {r} depends on index {}", index.name))
        .collect();
    refuse_or_notice(c, cascade, &format!("index {}", index.name), &text)?;
    c.put(new);
    for (r, fk, _) in lines {
        c.ctx.lock_for_change(r)?;
        let mut r = (**c.catalog.table(r).expect("listed above")).clone();
        r.foreign_keys.retain(|k| k.name != fk);
        c.put(r);
    }
    if index.interleave_in.is_none() {
        truncate::erase(c, index.id)?;
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
    let tables: Vec<_> = c.catalog.tables().filter(|t| t.schema == schema.id).cloned().collect();
    let views: BTreeSet<u32> =
        c.catalog.views().filter(|v| v.schema == schema.id).map(|v| v.id).collect();
    let sequences: Vec<_> =
        c.catalog.sequences().filter(|s| s.schema == schema.id).map(|s| s.id).collect();
    let mut lines: Vec<String> =
        tables.iter().map(|t| format!("table {} depends on schema {bare}", t.name)).collect();
    lines.extend(view_lines(c, &views, &format!("schema {bare}")));
    if sequences.iter().any(|s| c.catalog.sequence(*s).is_some_and(|s| s.owned_by.is_none())) {
        lines.push(format!("sequence depends on schema {bare}"));
    }
    refuse_or_notice(c, cascade, &format!("schema {bare}"), &lines)?;
    for v in dependent_views(c, &views).into_iter().chain(views) {
        c.catalog.remove(v);
    }
    c.sync();
    drop_tables(c, &tables, true)?;
    for s in sequences {
        c.catalog.remove(s);
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
    if c.ctx.failed.is_some() {
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
    let tables: Vec<_> =
        c.catalog.tables().filter(|t| schemas.contains(&t.schema)).cloned().collect();
    drop_tables(c, &tables, true)?;
    let sequences: Vec<_> =
        c.catalog.sequences().filter(|s| schemas.contains(&s.schema)).map(|s| s.id).collect();
    for id in sequences.into_iter().chain(schemas) {
        c.catalog.remove(id);
    }
    c.catalog.remove(db.id);
    c.sync();
    Ok(())
}
