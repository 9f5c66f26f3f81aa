//! Interleave declarations: what must be true of a child, and what to say when it is not.
//!
//! ```text
//!   INTERLEAVE IN PARENT p [(cols)] ON DELETE ..   the parent row must exist
//!   INTERLEAVE IN PARENT p                         the same, ON DELETE NO ACTION
//!   INTERLEAVE IN PARENT p (cols)                  layout only
//!   INTERLEAVE IN p [(cols)]                       layout only
//! ```
//! The child's primary key starts with the parent's whole primary key: same order, types and
//! directions. Names may differ when the columns are listed.

use std::sync::Arc;

use braid_catalog::{Interleave, InterleaveForm, MAX_DEPTH, RefAction, Relation, Table};
use braid_kv::ReadMode;
use braid_types::{SqlError, SqlResult, SqlState};

use super::moves::Place;
use super::{Change, backfill, bad_table, moves, ttl};
use braid_parser::{DeleteAction, InterleaveClause};
use braid_types::quote_ident;

/// Checks a declaration for a table whose columns and primary key are known.
pub(super) fn declare(
    c: &mut Change,
    t: &Table,
    clause: &InterleaveClause,
) -> SqlResult<Interleave> {
    let parent = parent(c, t, clause)?;
    if !clause.in_parent && clause.on_delete.is_some() {
        return Err(bad_table(format!(
            "ON DELETE cannot be given for table \"{}\": INTERLEAVE IN is for locality only",
            t.name
        ))
        .with_hint("Write INTERLEAVE IN PARENT to have the parent row enforced."));
    }
    let columns = key_columns(t, &parent, clause)?;
    let depth = c.catalog.depth(&parent) + 1;
    if depth > MAX_DEPTH {
        return Err(bad_table(format!(
            "table \"{}\" is too deeply nested; the limit is {MAX_DEPTH} levels",
            t.name
        ))
        .with_hint(format!(
            "Interleave it in an ancestor of \"{}\", or use a foreign key.",
            parent.name
        )));
    }
    // A change in steps keeps nobody out.
    if c.reading == ReadMode::Latest {
        c.lock_chain(&parent)?;
    }
    let form = match (clause.in_parent, &clause.columns, clause.on_delete) {
        (false, _, _) => InterleaveForm::Locality,
        (true, Some(_), None) => InterleaveForm::Columns,
        _ => InterleaveForm::Enforced,
    };
    let on_delete = clause.on_delete.map(ref_action).unwrap_or_default();
    let declared = Interleave { parent: parent.id, form, on_delete, columns };
    ttl::check_above(c, &t.name, &declared)?;
    Ok(declared)
}

fn parent(c: &Change, t: &Table, clause: &InterleaveClause) -> SqlResult<Arc<Table>> {
    let name = clause.parent.join(".");
    let parent = match c.ctx.find_relation(&clause.parent)? {
        Some(Relation::Table(p)) if p.materialized().is_none() => p,
        Some(other) => {
            return Err(SqlError::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("cannot interleave table \"{}\" in {} \"{name}\"", t.name, other.kind()),
            )
            .with_hint("The parent must be a table."));
        }
        None => {
            return Err(SqlError::new(
                SqlState::UNDEFINED_TABLE,
                format!("relation \"{name}\" does not exist"),
            )
            .with_hint("Create the parent table first."));
        }
    };
    if parent.partitioning().is_some() || t.partitioning().is_some() {
        return Err(SqlError::unsupported("interleaving with partitioned tables")
            .with_hint("Use a foreign key, or a table without partitions."));
    }
    if parent.id == t.id {
        return Err(bad_table(format!("table \"{}\" cannot be interleaved in itself", t.name))
            .with_hint("Use a foreign key for rows that refer to rows of the same table."));
    }
    if parent.has_row_id() {
        return Err(bad_table(format!("parent table \"{name}\" has no primary key"))
            .with_hint("Declare a primary key on the parent table."));
    }
    if t.has_row_id() {
        return Err(bad_table(format!("interleaved table \"{}\" has no primary key", t.name))
            .with_hint(format!(
                "Declare a primary key that starts with the key of \"{name}\": ({}).",
                key_list(&parent)
            )));
    }
    Ok(parent)
}

fn key_list(t: &Table) -> String {
    t.primary
        .columns
        .iter()
        .map(|k| {
            let name = t.column(k.column).map_or("", |c| &c.name);
            format!("{}{}", quote_ident(name), if k.desc { " DESC" } else { "" })
        })
        .collect::<Vec<_>>()
        .join(", ")
}

/// The own columns that hold the parent's key.
fn key_columns(t: &Table, parent: &Table, clause: &InterleaveClause) -> SqlResult<Vec<u32>> {
    let want = format!(
        "The primary key of \"{}\" must start with the primary key of \"{}\": ({}).",
        t.name,
        parent.name,
        key_list(parent)
    );
    match &clause.columns {
        Some(names) => listed(t, parent, names, &want)?,
        None => by_name(t, parent, &want)?,
    }
    let mut out = Vec::new();
    for (n, theirs) in parent.primary.columns.iter().enumerate() {
        let own = t.primary.columns[n];
        let (Some(a), Some(b)) = (t.column(own.column), parent.column(theirs.column)) else {
            return Err(SqlError::internal("primary key names a missing column"));
        };
        if a.ty != b.ty {
            return Err(bad_table(format!(
                "table \"{}\" references parent key column \"{}\" with incorrect type {} (should \
                 be {})",
                t.name,
                b.name,
                a.ty.name(),
                b.ty.name()
            ))
            .with_hint(format!("Declare column \"{}\" as {}.", a.name, b.ty.name())));
        }
        if own.desc != theirs.desc {
            let word = |d: bool| if d { "DESC" } else { "ASC" };
            return Err(bad_table(format!(
                "table \"{}\" references parent key column \"{}\" with incorrect order {} (should \
                 be {})",
                t.name,
                b.name,
                word(own.desc),
                word(theirs.desc)
            ))
            .with_hint(want));
        }
        out.push(own.column);
    }
    Ok(out)
}

/// Checks a column list against both keys.
fn listed(t: &Table, parent: &Table, names: &[String], want: &str) -> SqlResult<()> {
    let list = names.join(", ");
    for n in names {
        if t.column_named(n).is_none() {
            return Err(SqlError::new(
                SqlState::UNDEFINED_COLUMN,
                format!("column \"{n}\" named in INTERLEAVE does not exist"),
            ));
        }
    }
    if names.len() != parent.primary.columns.len() {
        return Err(bad_table(format!(
            "declared interleaved columns ({list}) must match the parent's primary key ({})",
            key_list(parent)
        ))
        .with_hint(format!("List {} columns.", parent.primary.columns.len())));
    }
    let prefix = names.len() <= t.primary.columns.len()
        && names
            .iter()
            .zip(&t.primary.columns)
            .all(|(n, k)| t.column(k.column).is_some_and(|c| c.name == *n));
    if !prefix {
        return Err(bad_table(format!(
            "declared interleaved columns ({list}) must be a prefix of the primary key ({})",
            key_list(t)
        ))
        .with_hint(want.to_string()));
    }
    Ok(())
}

/// Without a list, key columns are found by their names.
fn by_name(t: &Table, parent: &Table, want: &str) -> SqlResult<()> {
    for (n, k) in parent.primary.columns.iter().enumerate() {
        let name = parent.column(k.column).map_or("", |c| &c.name);
        let at = t
            .primary
            .columns
            .iter()
            .position(|k| t.column(k.column).is_some_and(|c| c.name == name));
        match at {
            Some(at) if at == n => {}
            Some(at) => {
                return Err(bad_table(format!(
                    "table \"{}\" references parent key column \"{name}\" at incorrect position {}",
                    t.name,
                    at + 1
                ))
                .with_hint(want.to_string()));
            }
            None => {
                return Err(bad_table(format!(
                    "table \"{}\" does not reference parent key column \"{name}\"",
                    t.name
                ))
                .with_detail(want.to_string())
                .with_hint(format!(
                    "If the column has another name, list the columns: INTERLEAVE IN PARENT {} \
                     (..) ON DELETE ..",
                    quote_ident(&parent.name)
                )));
            }
        }
    }
    Ok(())
}

fn ref_action(action: DeleteAction) -> RefAction {
    match action {
        DeleteAction::Cascade => RefAction::Cascade,
        DeleteAction::NoAction => RefAction::NoAction,
        DeleteAction::Restrict => RefAction::Restrict,
    }
}

/// ALTER TABLE .. SET ON DELETE.
pub(super) fn set_on_delete(c: &mut Change, t: &Arc<Table>, action: DeleteAction) -> SqlResult<()> {
    let mut new = (**t).clone();
    match &mut new.interleave {
        None => {
            return Err(bad_table(format!("table \"{}\" is not interleaved", t.name))
                .with_hint("ON DELETE of a foreign key is part of its constraint."));
        }
        Some(i) if !i.enforced() => {
            return Err(bad_table(format!(
                "cannot SET ON DELETE on table \"{}\": it is interleaved for locality only",
                t.name
            ))
            .with_hint("Use ALTER TABLE .. SET INTERLEAVE IN PARENT .. ON DELETE .. instead."));
        }
        Some(i) => {
            i.on_delete = ref_action(action);
            ttl::check_above(c, &t.name, i)?;
        }
    }
    c.put(new);
    Ok(())
}

/// Whether a declaration names another parent than the one that a table lies in.
pub(super) fn is_elsewhere(c: &Change, t: &Table, clause: &InterleaveClause) -> SqlResult<bool> {
    let parent = parent(c, t, clause)?;
    Ok(t.interleave.as_ref().is_none_or(|old| old.parent != parent.id))
}

/// ALTER TABLE .. SET INTERLEAVE IN: switches between enforcing and locality only in the same
/// parent; in another one, the rows move.
pub(super) fn set_interleave(
    c: &mut Change,
    t: &Arc<Table>,
    clause: &InterleaveClause,
) -> SqlResult<()> {
    let parent = parent(c, t, clause)?;
    let old = t.interleave.as_ref().filter(|old| old.parent == parent.id);
    let Some(was_enforced) = old.map(|old| old.enforced()) else {
        return moves::run(c, t, Place::Inside(clause));
    };
    let new_decl = declare(c, t, clause)?;
    let mut new = (**t).clone();
    let enforce = new_decl.enforced() && !was_enforced;
    new.interleave = Some(new_decl);
    let table = c.put(new);
    if enforce {
        backfill::validate_parents(c, &table)?;
    }
    Ok(())
}
