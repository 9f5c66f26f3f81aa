//! Columns that can be given the time of the commit.
//!
//! ```text
//!   at TIMESTAMP OPTIONS (allow_commit_timestamp = true)                 GoogleSQL
//!   at SPANNER.COMMIT_TIMESTAMP                                          PostgreSQL dialect
//!   ALTER COLUMN at SET OPTIONS (allow_commit_timestamp = true | null)   both
//! ```
//! The time is known when the row is read, and not when it is written (`storage/row_value.rs`). So
//! no expression may depend on the column that is computed when the row is written. Keys get it
//! when the transaction commits (`kv/src/row_form.rs`), on a node alone.

use std::sync::Arc;

use braid_catalog::{Addition, Building, Column, Index, KeyPart, Table};
use braid_parser::parse_expr;
use braid_rows::table_scope;
use braid_scalar::ParamTypes;
use braid_types::{SqlError, SqlResult, SqlType};
use sqlparser::ast::{self, ObjectName};

use crate::ddl::{Change, alter_column, backfill, index, parts};
use crate::dml::assigned::commit_time::check_past;
use crate::session::Context;

/// The type that declares such a column.
const TYPE_NAME: [&str; 2] = ["spanner", "commit_timestamp"];

/// Whether a declared type is [`TYPE_NAME`].
pub(in crate::ddl) fn is_declared(data_type: &ast::DataType) -> bool {
    let is_name = |name: &ObjectName| parts(name).iter().eq(TYPE_NAME);
    matches!(data_type, ast::DataType::Custom(name, modifiers)
        if modifiers.is_empty() && is_name(name))
}

/// SET OPTIONS (allow_commit_timestamp): from now on, or no longer.
pub(in crate::ddl) fn set(
    c: &mut Change,
    t: &Arc<Table>,
    name: &str,
    allow: bool,
) -> SqlResult<()> {
    let Some(col) = t.column_named(name) else { return Err(alter_column::no_column(t, name)) };
    let at = t.ordinal(col.id).expect("found by name");
    let mut new = (**t).clone();
    new.columns[at].commit_time = allow;
    if allow {
        check(&c.ctx, &new)?;
        let layout = backfill::layout(c, t.id)?;
        backfill::each_row(c, &layout, |_, row| check_past(&c.ctx, t, at, &row[at]))?;
    }
    c.put(new);
    Ok(())
}

/// Refuses what nothing can be made of: see the [module's page](self).
pub(in crate::ddl) fn check(ctx: &Context, t: &Table) -> SqlResult<()> {
    let keys = ctx.txn.gives_key_times();
    t.columns.iter().filter(|column| column.commit_time).try_for_each(|c| check_column(t, c, keys))
}

/// As [`check`], of a table that is going to have something more.
pub(in crate::ddl) fn check_with(ctx: &Context, t: &Table, addition: &Addition) -> SqlResult<()> {
    if !t.columns.iter().any(|column| column.commit_time) {
        return Ok(());
    }
    let mut with = t.clone();
    if let Addition::Index { expressions, .. } = addition {
        with.adopt(expressions);
    }
    with.building = Some(Building { job: 0, addition: addition.clone() });
    check(ctx, &with)
}

/// `keys`: whether keys can hold it.
fn check_column(t: &Table, c: &Column, keys: bool) -> SqlResult<()> {
    let plain = c.default.is_none() && c.generated.is_none() && c.refinement.is_none();
    if c.ty != SqlType::TimestampTz {
        return Err(refused(c, "of another type than timestamptz")
            .with_hint("ALTER COLUMN .. TYPE timestamptz."));
    }
    if !plain {
        return Err(refused(c, "with a DEFAULT, an expression, a precision or a domain")
            .with_hint("Name the column in INSERT: PENDING_COMMIT_TIMESTAMP()."));
    }
    let building = t.building_index().map(|(index, _)| index);
    for i in t.all_indexes().chain(building) {
        let is_key = i.columns.iter().any(|key| key.column == c.id);
        if is_key && !keys {
            return Err(refused(c, "in a key, in a cluster of several nodes").with_hint(
                "Put it behind INCLUDE (STORING); or use a timestamptz with DEFAULT \
                 clock_timestamp(), the time of the row, a little before its commit.",
            ));
        }
        let others = i.columns.iter().filter(|key| key.column != c.id).cloned();
        let computed = Index { include: Vec::new(), columns: others.collect(), ..i.clone() };
        if index::uses_column(t, &computed, c.id)? {
            return Err(refused(c, "in the condition or an expression of an index")
                .with_hint("Put the column itself into the index."));
        }
    }
    if t.kept_foreign_keys().any(|fk| fk.columns.contains(&c.id)) {
        return Err(refused(c, "in a foreign key"));
    }
    let (scope, at) = (table_scope(t), t.ordinal(c.id));
    let generated = t.columns.iter().filter_map(|other| other.generated.as_ref());
    let mut texts: Vec<&String> =
        t.kept_checks().map(|check| &check.expr).chain(generated).collect();
    for part in partition_keys(t) {
        match part {
            KeyPart::Column(id) if *id == c.id => return Err(refused(c, "in a partition key")),
            KeyPart::Column(_) => {}
            KeyPart::Expression(text) => texts.push(text),
        }
    }
    for text in texts {
        let bound = braid_scalar::bind(&parse_expr(text)?, &scope, &mut ParamTypes::default());
        // An expression over types of users is not bound here; they have no times in them.
        if bound.is_ok_and(|bound| bound.columns().into_iter().any(|used| Some(used) == at)) {
            return Err(refused(c, "in a CHECK, a generated column or a partition key"));
        }
    }
    Ok(())
}

/// What divides a table and its partitions.
fn partition_keys(t: &Table) -> impl Iterator<Item = &KeyPart> {
    let divided = t.partitioning().into_iter();
    let keys = divided.flat_map(|divided| {
        divided.partitions.iter().filter_map(|p| p.key.as_ref()).chain([&divided.key])
    });
    keys.flat_map(|key| &key.parts)
}

/// 0A000.
fn refused(c: &Column, what: &str) -> SqlError {
    SqlError::unsupported(format!("commit timestamp column \"{}\" {what}", c.name))
}
