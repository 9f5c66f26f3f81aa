//! CREATE TABLE .. PARTITION OF.

use braid_catalog::{Partition, Table};
use braid_parser::{CreatePartition, PartitionBy, parse_query};
use braid_types::{SqlError, SqlResult, SqlState, quote_ident};

use super::{Divided, bounds, key, redivide};
use crate::ddl::{Change, backfill, exists, temporary};
use crate::dml::source::Source;
use crate::partitions::{Key, condition_of};

pub(crate) fn create(c: &mut Change, create: &CreatePartition) -> SqlResult<String> {
    let tag = "CREATE TABLE".to_string();
    let (schema, name) = place(c, create)?;
    if c.taken(schema, &name) {
        if create.if_not_exists {
            let text = format!("relation \"{name}\" already exists, skipping");
            c.ctx.notice_in(SqlState::DUPLICATE_TABLE, text);
            return Ok(tag);
        }
        return Err(exists(&name));
    }
    let parent = Divided::named(c, &create.parent)?;
    same_lifetime(c, schema, &parent.table)?;
    if create.has_items {
        return Err(SqlError::unsupported("columns and constraints of a partition alone")
            .with_hint("Declare them on the partitioned table: its rows are one table's."));
    }
    c.lock_chain(&parent.table)?;
    let bound = bounds::declare(c, &parent_key(&parent)?, &create.bound)?;
    bounds::check_new(&parent.table, parent.partitioning()?, parent.id, (&name, &bound))?;
    let key = create.by.as_ref().map(|by| sub_key(c, &parent.table, by)).transpose()?;
    let partition = Partition {
        id: c.new_id()?,
        schema,
        name,
        parent: parent.id,
        bound,
        key,
        defaults: Vec::new(),
        checks: Vec::new(),
        indexes: Vec::new(),
    };
    add(c, &parent, partition)?;
    Ok(tag)
}

/// By what a partition is divided itself, which the unique keys of the table must have.
pub(super) fn sub_key(
    c: &Change,
    t: &Table,
    by: &PartitionBy,
) -> SqlResult<braid_catalog::PartitionKey> {
    let key = key::declare_key(c, t, by)?;
    for index in t.shown_indexes().filter(|i| i.is_unique()) {
        let kind = if index.id == t.primary.id { "PRIMARY KEY" } else { "UNIQUE" };
        key::check_unique(t, &key, index, kind)?;
    }
    Ok(key)
}

/// The key by which the partitions of a table or a partition are told apart.
pub(super) fn parent_key(parent: &Divided) -> SqlResult<Key> {
    let divided = parent.partitioning()?;
    Key::new(&parent.table, divided.key_of(parent.id).unwrap_or(&divided.key))
}

/// Adds a partition whose bound was checked against the others. Rows of the default partition
/// must not be the new one's.
pub(super) fn add(c: &mut Change, parent: &Divided, partition: Partition) -> SqlResult<()> {
    let id = partition.id;
    let table = redivide(c, parent.table.id, |divided| divided.partitions.push(partition))?;
    check_default(c, parent, &table, &condition_of(&table, id)?)
}

/// That the default partition beside a new one has no row for which its condition holds.
pub(super) fn check_default(
    c: &Change,
    parent: &Divided,
    table: &Table,
    condition: &str,
) -> SqlResult<()> {
    let Some(default) = parent.partitioning()?.default_of(parent.id) else { return Ok(()) };
    if !some_row(c, table, condition)? {
        return Ok(());
    }
    Err(SqlError::new(
        SqlState::CHECK_VIOLATION,
        format!(
            "updated partition constraint for default partition \"{}\" would be violated by some \
             row",
            default.name
        ),
    ))
}

/// Whether a condition holds for some row of a table that was locked for change.
pub(super) fn some_row(c: &Change, table: &Table, condition: &str) -> SqlResult<bool> {
    backfill::renew_view(c, &*backfill::layout(c, table.id)?)?;
    let from = full_name(c, table);
    let query = parse_query(&format!("SELECT 1 FROM {from} WHERE {condition} LIMIT 1"))?;
    Ok(!Source::plan_query(&c.ctx, &query)?.rows(&c.ctx)?.is_empty())
}

/// The name of a table, or of a window, that means it whatever the search path is.
pub(super) fn full_name(c: &Change, table: &Table) -> String {
    format!("{}.{}", quote_ident(&c.ctx.schema_name(table.schema)), quote_ident(&table.name))
}

fn place(c: &mut Change, create: &CreatePartition) -> SqlResult<(u32, String)> {
    match temporary::place(c, &create.name, create.temporary)? {
        Some(place) => Ok(place),
        None => c.ctx.target_schema(&create.name),
    }
}

/// A partition goes with its session exactly if the table does.
pub(super) fn same_lifetime(c: &Change, schema: u32, table: &Table) -> SqlResult<()> {
    let own = temporary::holds_temporary(c, schema);
    if own == temporary::holds_temporary(c, table.schema) {
        return Ok(());
    }
    let (own, theirs) = if own { ("temporary", "permanent") } else { ("permanent", "temporary") };
    let text = format!(
        "cannot create a {own} relation as partition of {theirs} relation \"{}\"",
        table.name
    );
    Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, text))
}
