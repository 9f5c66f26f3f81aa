//! CREATE INDEX and its checks.

use braid_catalog::{Column, Index, IndexColumn, Relation, Table, choose_constraint_name};
use braid_keys::column::is_key_type;
use braid_types::{SqlError, SqlResult, SqlState};
use sqlparser::ast;

use super::expressions::{self as declared, Keys};
use super::methods;
use crate::ddl::{
    Change, backfill, bad_table, exists, named_relations, other_kinds, partitions, parts,
};
use braid_parser::{CreateIndex, Name};
use braid_rows::computed::{Computed, Predicate};
use braid_scalar::{OrderKey, ident_name};
use braid_types::quote_ident;

/// Most columns of a key.
const MAX_KEY_COLUMNS: usize = 32;

pub(super) fn no_column(t: &Table, name: &str) -> SqlError {
    let _ = t;
    SqlError::new(
        SqlState::UNDEFINED_COLUMN,
        format!("column \"{name}\" named in key does not exist"),
    )
}

/// Columns of a key as declared.
pub(crate) fn key_columns(t: &Table, columns: &[ast::IndexColumn]) -> SqlResult<Vec<IndexColumn>> {
    let mut out: Vec<IndexColumn> = Vec::new();
    for c in columns {
        let ast::Expr::Identifier(ident) = &c.column.expr else {
            return Err(SqlError::syntax("an expression cannot be part of a constraint's key")
                .with_hint("Use CREATE UNIQUE INDEX .. ((expression))."));
        };
        let name = ident_name(ident);
        let col = t.column_named(&name).ok_or_else(|| no_column(t, &name))?;
        if out.iter().any(|k| k.column == col.id) {
            return Err(SqlError::new(
                SqlState::DUPLICATE_COLUMN,
                format!("column \"{name}\" appears twice in the key"),
            ));
        }
        out.push(directed(col.id, c));
    }
    check_width(out.len())?;
    Ok(out)
}

/// A key column in the direction that is declared.
pub(super) fn directed(column: u32, declared: &ast::IndexColumn) -> IndexColumn {
    let OrderKey { desc, nulls_first } = OrderKey::of(&declared.column.options);
    IndexColumn { column, desc, nulls_first }
}

fn check_width(columns: usize) -> SqlResult<()> {
    if columns > MAX_KEY_COLUMNS {
        return Err(SqlError::new(
            SqlState::TOO_MANY_COLUMNS,
            format!("cannot use more than {MAX_KEY_COLUMNS} columns in an index"),
        ));
    }
    Ok(())
}

/// Refuses types without an order.
pub(crate) fn check_key_types(t: &Table, columns: &[IndexColumn]) -> SqlResult<()> {
    for k in columns {
        let Some(c) = t.column(k.column) else { continue };
        if !is_key_type(&c.ty) {
            return Err(SqlError::new(
                SqlState::UNDEFINED_OBJECT,
                format!(
                    "data type {} has no default operator class for access method \"btree\"",
                    c.ty.name()
                ),
            )
            .with_hint("Columns of this type cannot be part of a key."));
        }
    }
    Ok(())
}

pub(crate) fn run(c: &mut Change, create: &CreateIndex) -> SqlResult<String> {
    c.only = create.only;
    let found = c.ctx.relation(&parts(&create.base.table_name))?;
    let t = match &found {
        Relation::Partition(window) => window.clone(),
        _ => c.ctx.stored(&parts(&create.base.table_name))?,
    };
    if let Some(n) = &create.base.name
        && create.base.if_not_exists
    {
        let name = parts(n).pop().unwrap_or_default();
        if c.taken(t.schema, &name) {
            let text = format!("relation \"{name}\" already exists, skipping");
            c.ctx.notice_in(SqlState::DUPLICATE_TABLE, text);
            return Ok("CREATE INDEX".into());
        }
    }
    // Deletes on ancestors look at the indexes of the whole subtree.
    c.lock_chain(&c.stored(t.id)?)?;
    if matches!(found, Relation::Partition(_)) {
        partitions::create_index(c, &t, create)?;
        return Ok("CREATE INDEX".into());
    }
    let mut t = (*t).clone();
    add(c, &mut t, create)?;
    Ok("CREATE INDEX".into())
}

/// Adds a declared index to a table of the catalog and fills it.
pub(crate) fn add(c: &mut Change, t: &mut Table, create: &CreateIndex) -> SqlResult<()> {
    let (index, expressions) = declare(c, t, create)?;
    let id = index.id;
    t.adopt(&expressions);
    t.indexes.push(index);
    c.put(t.clone());
    if t.index(id).is_some_and(|i| i.unread.is_some()) {
        return Ok(());
    }
    backfill::build_index(c, t.id, id)
}

/// The index that a statement declares, with columns that stand for its expressions.
pub(crate) fn declare(
    c: &Change,
    t: &Table,
    create: &CreateIndex,
) -> SqlResult<(Index, Vec<Column>)> {
    let base = &create.base;
    let mut declared = methods::method(create)?;
    let Keys { columns, expressions, names, again } = declared::keys(c, t, &base.columns)?;
    again.iter().rev().for_each(|place| drop(declared.classes.remove(*place)));
    check_width(columns.len())?;
    let mut with = t.clone();
    with.adopt(&expressions);
    methods::check_classes(&with, &columns, &declared)?;
    methods::tell(c, &declared);
    let (unread, declared) = methods::kept(&with, &columns, declared);
    if unread.is_none() {
        check_key_types(&with, &columns)?;
    }
    let predicate = base.predicate.as_ref();
    let mut predicate = predicate.map(|e| declared::predicate(c, t, e)).transpose()?;
    if create.null_filtered {
        predicate = declared::without_nulls(&with, &columns, predicate);
    }
    let mut include = Vec::new();
    // What is included is a part of the name, as in PostgreSQL.
    let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
    for n in &base.include {
        let column = t.column_named(&ident_name(n)).ok_or_else(|| no_column(t, &ident_name(n)))?;
        include.push(column.id);
        names.push(&column.name);
    }
    let name = match &base.name {
        Some(n) => parts(n).pop().unwrap_or_default(),
        None => choose_constraint_name(&t.name, &names, "idx", |n| c.taken(t.schema, n)),
    };
    if c.taken(t.schema, &name) {
        return Err(exists(&name));
    }
    let mut index = Index {
        id: c.new_id()?,
        generation: 1,
        name,
        unique: base.unique,
        deferral: None,
        nulls_not_distinct: base.nulls_distinct == Some(false),
        columns,
        include,
        interleave_in: None,
        predicate,
        constraint: None,
        of_partition: None,
        unread,
        declared,
    };
    if t.window().is_none() {
        partitions::check_index(t, &index)?;
    }
    if let Some(clause) = &create.interleave {
        index.interleave_in = Some(interleave(c, t, &index, clause)?);
    }
    Ok((index, expressions))
}

/// Whether an index of a table needs a column: as part of its entries, or to compute them.
pub(crate) fn uses_column(t: &Table, i: &Index, id: u32) -> SqlResult<bool> {
    if i.columns.iter().any(|k| k.column == id) || i.include.contains(&id) {
        return Ok(true);
    }
    let at = t.ordinal(id);
    let own = |c: &Computed| i.columns.iter().any(|k| k.column == t.columns[c.ordinal].id);
    let computed = Computed::of_table(t)?;
    let mut used = computed.iter().filter(|c| own(c)).flat_map(|c| c.expr.columns());
    if used.any(|o| Some(o) == at) {
        return Ok(true);
    }
    let predicate = Predicate::of_index(t, i)?;
    Ok(predicate.is_some_and(|p| p.condition.columns().into_iter().any(|o| Some(o) == at)))
}

/// The table in whose rows the index's entries shall live.
fn interleave(
    c: &Change,
    t: &Table,
    index: &Index,
    clause: &braid_parser::InterleaveClause,
) -> SqlResult<u32> {
    if clause.on_delete.is_some() {
        return Err(bad_table(format!("ON DELETE cannot be given for index \"{}\"", index.name))
            .with_hint("Entries always go with the rows they stand for."));
    }
    let ancestor = match c.ctx.find_relation(&clause.parent)? {
        Some(Relation::Table(a)) => a,
        _ => {
            return Err(SqlError::new(
                SqlState::UNDEFINED_TABLE,
                format!("relation \"{}\" does not exist", clause.parent.join(".")),
            ));
        }
    };
    let own = c.catalog.table(t.id).cloned().ok_or_else(|| SqlError::internal("no table"))?;
    if !c.catalog.is_self_or_ancestor(ancestor.id, &own) {
        return Err(bad_table(format!(
            "cannot interleave index \"{}\" of table \"{}\" in table \"{}\": \"{}\" is not an \
             ancestor of \"{}\"",
            index.name, t.name, ancestor.name, ancestor.name, t.name
        ))
        .with_hint("An index can be interleaved in its own table or in one above it."));
    }
    if t.has_row_id() {
        return Err(bad_table(format!("table \"{}\" has no primary key", t.name)));
    }
    for (n, theirs) in ancestor.primary.columns.iter().enumerate() {
        let own = t.primary.columns[n];
        let name = t.column(own.column).map_or("", |c| c.name.as_str());
        let parent_name = ancestor.column(theirs.column).map_or("", |c| c.name.as_str());
        let fits = index.columns.get(n).is_some_and(|k| k.column == own.column);
        if !fits {
            return Err(bad_table(format!(
                "index \"{}\" does not reference index parent key column \"{parent_name}\"",
                index.name
            ))
            .with_hint(format!(
                "The index must start with the columns that hold the key of \"{}\": column {} \
                 must be {}.",
                ancestor.name,
                n + 1,
                quote_ident(name)
            )));
        }
        if index.columns[n].desc != own.desc {
            return Err(bad_table(format!(
                "index \"{}\" references index parent key column \"{parent_name}\" with incorrect \
                 order",
                index.name
            ))
            .with_hint("Use the direction of the parent's primary key."));
        }
    }
    if let Some(list) = &clause.columns {
        let want: Vec<_> = t.primary.columns[..ancestor.primary.columns.len()]
            .iter()
            .map(|k| t.column(k.column).map_or("", |c| c.name.as_str()))
            .collect();
        if list.iter().map(String::as_str).ne(want.iter().copied()) {
            return Err(bad_table(format!(
                "declared interleaved columns ({}) must match the parent's primary key ({})",
                list.join(", "),
                want.join(", ")
            )));
        }
    }
    for id in &index.include {
        if t.primary.columns.iter().any(|k| k.column == *id) {
            let name = t.column(*id).map_or("", |c| c.name.as_str());
            return Err(bad_table(format!(
                "index \"{}\" specifies stored column \"{name}\" which is a key of table \"{}\"",
                index.name, t.name
            ))
            .with_hint("Key columns are in every entry; leave them out."));
        }
    }
    Ok(ancestor.id)
}

/// ALTER INDEX .. RENAME TO.
pub(crate) fn alter(c: &mut Change, name: &Name, if_exists: bool, new: &str) -> SqlResult<String> {
    if if_exists && c.ctx.find_relation(name)?.is_none() {
        c.ctx.notice(format!("relation \"{}\" does not exist, skipping", name.join(".")));
        return Ok("ALTER INDEX".into());
    }
    let relation = c.ctx.relation(name)?;
    let Relation::Index(t, id) = relation else {
        // As in PostgreSQL, where ALTER INDEX was a word for all of them once.
        other_kinds::rename(c, name, &relation, new.to_string())?;
        return Ok("ALTER INDEX".into());
    };
    match t.window() {
        Some(_) => partitions::rename_index(c, &t, id, new.to_string())?,
        None => rename(c, &t, id, new.to_string())?,
    }
    Ok("ALTER INDEX".into())
}

/// Renames an index, and with it its constraint.
pub(crate) fn rename(c: &mut Change, t: &Table, id: u32, new: String) -> SqlResult<()> {
    c.ctx.lock_for_change(t.id)?;
    if c.taken(t.schema, &new) {
        return Err(exists(&new));
    }
    named_relations::follow_renamed(c, (id, t.schema), &new)?;
    let mut t = (*c.stored(t.id)?).clone();
    if t.primary.id == id {
        t.primary.name = new;
    } else if let Some(i) = t.indexes.iter_mut().find(|i| i.id == id) {
        i.name = new;
    }
    c.put(t);
    Ok(())
}
