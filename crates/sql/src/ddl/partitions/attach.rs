//! ATTACH and DETACH: a table becomes a partition, and the other way round. Its rows move into the
//! table that holds all rows, or out of it.

use std::sync::Arc;

use braid_catalog::{
    Index, KeyPart, OfPartition, Partition, PartitionBound, PartitionIndex, PartitionKey,
    Partitioning, Relation, Table,
};
use braid_parser::{ForValues, Kind, Name, PartitionChange, parse_expr, parse_script};
use braid_scalar::{ParamTypes, bind_bool};
use braid_types::{Datum, SqlError, SqlResult, SqlState};
use sqlparser::ast::Statement as Sql;

use super::declare::{full_name, parent_key, same_lifetime, some_row};
use super::{Divided, bounds, indexes, redivide};
use crate::ddl::{Change, backfill, create_table, drop, table_scope};
use crate::dml::DeletePlan;
use crate::dml::table_load::{FEW_ROWS, TableLoad};
use crate::dml::writer::{TableInfo, Writer};
use crate::general_query::Row;
use crate::partitions::condition_of;
use crate::storage::TableLayout;
use crate::storage::bulk::LOAD_MEMORY;

pub(crate) fn change(c: &mut Change, change: &PartitionChange) -> SqlResult<String> {
    match change {
        PartitionChange::AttachIndex { index, partition } => {
            indexes::attach(c, index, partition)?;
            return Ok("ALTER INDEX".into());
        }
        PartitionChange::Attach { table, if_exists, .. }
        | PartitionChange::Detach { table, if_exists, .. }
            if *if_exists && c.ctx.find_relation(table)?.is_none() =>
        {
            c.ctx.notice(format!("relation \"{}\" does not exist, skipping", table.join(".")));
        }
        PartitionChange::Attach { table, partition, bound, .. } => {
            attach(c, table, partition, bound)?;
        }
        PartitionChange::Detach { table, partition, .. } => detach(c, table, partition)?,
    }
    Ok("ALTER TABLE".into())
}

fn attach(c: &mut Change, name: &Name, partition: &Name, bound: &ForValues) -> SqlResult<()> {
    let parent = Divided::named(c, name).map_err(|e| match e.state() {
        SqlState::INVALID_OBJECT_DEFINITION => {
            let bare = name.last().map_or("", String::as_str);
            let text = format!("table \"{bare}\" is not partitioned");
            SqlError::new(SqlState::INVALID_OBJECT_DEFINITION, text)
        }
        _ => e,
    })?;
    let joining = match c.ctx.relation(partition)? {
        Relation::Table(t) if t.materialized().is_none() => t,
        Relation::Partition(w) => {
            let text = format!("\"{}\" is already a partition", w.name);
            return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, text));
        }
        _ => {
            let bare = partition.last().map_or("", String::as_str);
            let text = format!("\"{bare}\" is not a table");
            return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, text));
        }
    };
    if joining.id == parent.table.id {
        return Err(SqlError::new(SqlState::DUPLICATE_TABLE, "circular inheritance not allowed")
            .with_detail(format!("\"{0}\" is already a child of \"{0}\".", joining.name)));
    }
    same_lifetime(c, joining.schema, &parent.table)?;
    c.lock_chain(&parent.table)?;
    c.lock_chain(&joining)?;
    check_alone(c, &joining)?;
    check_columns(&parent.table, &joining)?;
    let bound = bounds::declare(c, &parent_key(&parent)?, bound)?;
    let divided = parent.partitioning()?;
    bounds::check_new(&parent.table, divided, parent.id, (&joining.name, &bound))?;
    let parts = joining_parts(&parent, &joining, bound)?;
    check_rows(c, &parent, &joining, &parts)?;
    take_rows(c, &parent, &joining, parts)
}

/// What is interleaved, referred to or kept by a policy is more than a partition can be.
fn check_alone(c: &Change, t: &Table) -> SqlResult<()> {
    let interleaved =
        t.interleave.is_some() || c.catalog.interleaved_children(t.id).next().is_some();
    if interleaved {
        return Err(SqlError::unsupported("partitions with interleaved tables")
            .with_hint("Use ALTER TABLE .. DROP INTERLEAVE first."));
    }
    if t.upkeep.ttl.is_some() {
        return Err(SqlError::unsupported("a row deletion policy of a partition alone")
            .with_hint("Give the partitioned table the policy."));
    }
    if let Some(r) = c.catalog.referencing_tables(t.id).next() {
        return Err(SqlError::unsupported("attaching a table that foreign keys refer to")
            .with_hint(format!("Drop the foreign key of table \"{}\" first.", r.name)));
    }
    Ok(())
}

/// 42804.
fn mismatch(text: String) -> SqlError {
    SqlError::new(SqlState::DATATYPE_MISMATCH, text)
}

/// That a table has the columns and constraints of the one that it becomes a part of.
fn check_columns(table: &Table, joining: &Table) -> SqlResult<()> {
    for col in joining.visible_columns() {
        if table.column_named(&col.name).is_none() {
            return Err(mismatch(format!(
                "table \"{}\" contains column \"{}\" not found in parent \"{}\"",
                joining.name, col.name, table.name
            ))
            .with_detail("The new partition may contain only the columns present in parent."));
        }
    }
    for col in table.visible_columns() {
        let Some(own) = joining.column_named(&col.name) else {
            return Err(mismatch(format!("child table is missing column \"{}\"", col.name)));
        };
        if own.ty != col.ty || own.refinement != col.refinement {
            return Err(mismatch(format!(
                "child table \"{}\" has different type for column \"{}\"",
                joining.name, col.name
            )));
        }
        if own.nullable && !col.nullable {
            return Err(mismatch(format!(
                "column \"{}\" in child table must be marked NOT NULL",
                col.name
            )));
        }
        if own.generated.is_some() != col.generated.is_some() {
            let not = if own.generated.is_some() { "not " } else { "" };
            return Err(mismatch(format!(
                "column \"{}\" in child table must {not}be a generated column",
                col.name
            )));
        }
    }
    let names = |t: &Table| t.visible_columns().map(|c| c.name.clone()).collect::<Vec<_>>();
    if names(table) != names(joining) {
        return Err(SqlError::unsupported("a partition with its columns in another order")
            .with_hint(format!(
                "The order is: {}. CREATE TABLE .. PARTITION OF makes it so; then copy the rows.",
                names(table).join(", ")
            )));
    }
    for check in &table.checks {
        match joining.checks.iter().find(|k| k.name == check.name) {
            None => {
                let text = format!("child table is missing constraint \"{}\"", check.name);
                return Err(mismatch(text));
            }
            Some(own) if own.expr != check.expr => {
                return Err(mismatch(format!(
                    "child table \"{}\" has different definition for check constraint \"{}\"",
                    joining.name, check.name
                )));
            }
            Some(_) => {}
        }
    }
    check_references(table, joining)
}

/// Foreign keys are those of the whole table.
fn check_references(table: &Table, joining: &Table) -> SqlResult<()> {
    let names = |t: &Table, columns: &[u32]| {
        columns.iter().map(|c| t.key_name(*c).to_string()).collect::<Vec<_>>()
    };
    for own in &joining.foreign_keys {
        let same = |fk: &&braid_catalog::ForeignKey| {
            fk.parent == own.parent
                && fk.parent_columns == own.parent_columns
                && names(table, &fk.columns) == names(joining, &own.columns)
                && (fk.on_delete, fk.on_update) == (own.on_delete, own.on_update)
        };
        if !table.foreign_keys.iter().any(|fk| same(&fk)) {
            return Err(SqlError::unsupported("a foreign key of a partition alone").with_hint(
                format!(
                    "Give table \"{}\" the foreign key, or drop \"{}\" first.",
                    table.name, own.name
                ),
            ));
        }
    }
    Ok(())
}

/// A table as a partition, and its partitions as those of one.
fn joining_parts(
    parent: &Divided,
    joining: &Table,
    bound: PartitionBound,
) -> SqlResult<Vec<Partition>> {
    let table = &parent.table;
    let renamed = |key: &PartitionKey| PartitionKey {
        strategy: key.strategy,
        parts: key.parts.iter().map(|part| moved_part(joining, table, part)).collect(),
    };
    let defaults = joining.visible_columns().filter_map(|own| {
        let col = table.column_named(&own.name)?;
        let differs = own.default != col.default || own.sequence.is_some();
        (differs && own.generated.is_none()).then(|| (col.id, own.default.clone()))
    });
    let divided = joining.partitioning();
    let first = Partition {
        id: joining.id,
        schema: joining.schema,
        name: joining.name.clone(),
        parent: parent.id,
        bound,
        key: divided.map(|d| renamed(&d.key)),
        defaults: defaults.collect(),
        checks: joining
            .checks
            .iter()
            .filter(|k| !table.checks.iter().any(|own| own.name == k.name))
            .cloned()
            .collect(),
        indexes: Vec::new(),
    };
    let mut out = vec![first];
    for p in divided.into_iter().flat_map(|d| &d.partitions) {
        let key = p.key.as_ref().map(renamed);
        let defaults = p.defaults.iter().filter_map(|(id, default)| {
            let name = &joining.column(*id)?.name;
            Some((table.column_named(name)?.id, default.clone()))
        });
        out.push(Partition { key, defaults: defaults.collect(), ..p.clone() });
    }
    let mut trial = (**table).clone();
    if let Some(divided) = &mut trial.upkeep.partitioning {
        divided.partitions.extend(out.iter().cloned());
    }
    indexes::check_covers(&trial)?;
    Ok(out)
}

fn moved_part(from: &Table, to: &Table, part: &KeyPart) -> KeyPart {
    match part {
        KeyPart::Column(id) => {
            let column = from.column(*id).and_then(|c| to.column_named(&c.name));
            KeyPart::Column(column.map_or(0, |c| c.id))
        }
        KeyPart::Expression(text) => KeyPart::Expression(text.clone()),
    }
}

/// That the rows are within the bound, and that the default partition has none of it.
fn check_rows(c: &Change, parent: &Divided, joining: &Table, parts: &[Partition]) -> SqlResult<()> {
    let mut trial = (*parent.table).clone();
    if let Some(divided) = &mut trial.upkeep.partitioning {
        divided.partitions.extend(parts.iter().cloned());
    }
    let condition = condition_of(&trial, joining.id)?;
    if some_row(c, joining, &format!("({condition}) IS NOT TRUE"))? {
        return Err(SqlError::new(
            SqlState::CHECK_VIOLATION,
            format!(
                "partition constraint of relation \"{}\" is violated by some row",
                joining.name
            ),
        ));
    }
    let mut others = parent.partitioning()?.partitions_of(parent.id);
    let default = others.find(|p| p.bound == PartitionBound::Default);
    if let Some(default) = default
        && some_row(c, &parent.table, &condition)?
    {
        return Err(SqlError::new(
            SqlState::CHECK_VIOLATION,
            format!(
                "updated partition constraint for default partition \"{}\" would be violated by \
                 some row",
                default.name
            ),
        ));
    }
    Ok(())
}

/// The table goes, the partition comes, and the rows move.
fn take_rows(
    c: &mut Change,
    parent: &Divided,
    joining: &Arc<Table>,
    parts: Vec<Partition>,
) -> SqlResult<()> {
    let old = backfill::layout(c, joining.id)?;
    let comment = joining.comment.clone();
    let columns: Vec<(u32, String)> = joining
        .columns
        .iter()
        .filter_map(|own| {
            let column = parent.table.column_named(&own.name)?;
            Some((column.id, own.comment.clone()?))
        })
        .collect();
    let mut wanted = Vec::new();
    for i in joining.shown_indexes() {
        let (mut index, expressions) = as_of_table(&parent.table, joining, i);
        index.generation = c.new_generation()?;
        wanted.push((index, expressions));
    }
    let mut divided = (*parent.table).clone();
    if let Some(own) = &mut divided.upkeep.partitioning {
        own.partitions.extend(parts.iter().cloned());
    }
    // The name is still the table's, whose rows go with it.
    move_rows(c, &old, &Arc::new(divided), None)?;
    // Sequences that defaults name stay, and are nobody's.
    let mut stripped = (**joining).clone();
    stripped.columns.iter_mut().for_each(|col| col.sequence = None);
    for mut s in crate::ddl::truncate::owned_sequences(&c.catalog, joining) {
        s.owned_by = None;
        c.catalog.put_sequence(s);
    }
    drop::remove_table(c, &Arc::new(stripped))?;
    c.sync();
    redivide(c, parent.table.id, |divided| divided.partitions.extend(parts))?;
    if let Some(text) = comment {
        c.catalog.note(joining.id, |notes| notes.comment = Some(text));
    }
    for (id, text) in columns {
        c.catalog.note(joining.id, |notes| {
            notes.column_comments.insert(id, text);
        });
    }
    c.sync();
    for (index, expressions) in wanted {
        let window = c.catalog.partition(joining.id).cloned();
        let window = window.ok_or_else(|| SqlError::internal("a partition is gone"))?;
        let mut with = (*window).clone();
        with.adopt(&renumbered(&with, &expressions));
        indexes::add(c, &with, matched(&with, index, &expressions))?;
    }
    Ok(())
}

/// An index as one of another table with the same columns, and the expressions that it has.
fn as_of_table(to: &Table, from: &Table, i: &Index) -> (Index, Vec<braid_catalog::Column>) {
    let mut expressions = Vec::new();
    let mut column = |id: u32| {
        let own = from.column(id)?;
        if own.expression.is_some() {
            expressions.push(own.clone());
            return Some(id);
        }
        to.column_named(&own.name).map(|c| c.id)
    };
    let mut index = i.clone();
    for k in &mut index.columns {
        k.column = column(k.column).unwrap_or(k.column);
    }
    for id in &mut index.include {
        *id = column(*id).unwrap_or(*id);
    }
    if i.id == from.primary.id {
        index.unique = true;
    }
    (index, expressions)
}

/// Expressions as columns to come of a table.
fn renumbered(t: &Table, expressions: &[braid_catalog::Column]) -> Vec<braid_catalog::Column> {
    let number = |(n, c): (usize, &braid_catalog::Column)| {
        let id = t.next_column + n as u32;
        braid_catalog::Column { id, name: format!("\0{id}"), ..c.clone() }
    };
    expressions.iter().enumerate().map(number).collect()
}

/// An index over the columns that its expressions have become.
fn matched(t: &Table, mut index: Index, expressions: &[braid_catalog::Column]) -> Index {
    let first = t.next_column - expressions.len() as u32;
    for k in &mut index.columns {
        if let Some(n) = expressions.iter().position(|c| c.id == k.column) {
            k.column = first + n as u32;
        }
    }
    index
}

/// Writes the rows of a layout as rows of a table: all, or those for which a condition holds, which
/// then go where they were.
fn move_rows(
    c: &Change,
    old: &Arc<TableLayout>,
    table: &Arc<Table>,
    condition: Option<&str>,
) -> SqlResult<()> {
    let info = Arc::new(TableInfo::new(&c.ctx, table)?);
    let from = &old.table;
    let bind = |text: &str| {
        bind_bool(&parse_expr(text)?, "WHERE", &table_scope(from), &mut ParamTypes::default())
    };
    let condition = condition.map(bind).transpose()?;
    let places: Vec<Option<usize>> = table
        .columns
        .iter()
        .map(|col| from.columns.iter().position(|own| !col.hidden && own.name == col.name))
        .collect();
    let moved = |row: &Row| {
        let value = |(at, place): (usize, &Option<usize>)| match place {
            Some(place) => Ok(row[*place].clone()),
            None if info.table().columns[at].is_row_id() => info.filler.default(&c.ctx, at),
            None => Ok(Datum::Null),
        };
        places.iter().enumerate().map(value).collect::<SqlResult<Row>>()
    };
    let mut mover = Mover { c, info: &info, rows: Vec::new(), load: None };
    backfill::each_row(c, old, |_, row| {
        let wanted = match &condition {
            Some(condition) => condition.eval_bool(&row, &c.ctx.eval)?,
            None => true,
        };
        if wanted {
            mover.add(moved(&row)?)?;
        }
        Ok(())
    })?;
    mover.end()
}

/// Writes rows: a few one by one, many as a load.
struct Mover<'a> {
    c: &'a Change,
    info: &'a Arc<TableInfo>,
    rows: Vec<((), Row)>,
    load: Option<TableLoad>,
}

impl Mover<'_> {
    fn add(&mut self, row: Row) -> SqlResult<()> {
        self.rows.push(((), row));
        let ctx = &self.c.ctx;
        if self.load.is_none() {
            if self.rows.len() < FEW_ROWS {
                return Ok(());
            }
            if TableLoad::is_possible(ctx, self.info)? {
                self.load = Some(TableLoad::start(ctx, self.info, LOAD_MEMORY)?);
            }
        }
        if self.rows.len() >= ctx.txn.batch_max() { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> SqlResult<()> {
        let mut rows = std::mem::take(&mut self.rows);
        if let Some(load) = &mut self.load {
            return load.add(rows).map_err(|((), e)| e);
        }
        let mut w = Writer::new(&self.c.ctx);
        w.use_info(self.info)?;
        let most = self.c.ctx.txn.batch_max();
        while !rows.is_empty() {
            let mut part: Vec<((), Row)> = rows.drain(..most.min(rows.len())).collect();
            let bad = w.prepare(self.info, &mut part, false)?;
            for ((), row) in part {
                w.insert(self.info, row)?;
            }
            if let Some(((), e)) = bad {
                return Err(e);
            }
        }
        w.finish()
    }

    fn end(mut self) -> SqlResult<()> {
        self.flush()?;
        match self.load {
            Some(load) => {
                load.finish()?;
                Ok(())
            }
            None => Ok(()),
        }
    }
}

fn detach(c: &mut Change, name: &Name, partition: &Name) -> SqlResult<()> {
    let parent = Divided::named(c, name).map_err(|e| match e.state() {
        SqlState::INVALID_OBJECT_DEFINITION => {
            let bare = name.last().map_or("", String::as_str);
            let text = format!("table \"{bare}\" is not partitioned");
            SqlError::new(SqlState::INVALID_OBJECT_DEFINITION, text)
        }
        _ => e,
    })?;
    let found = c.ctx.relation(partition)?;
    let window = match &found {
        Relation::Partition(w) if w.window().is_some_and(|p| p.parent == parent.id) => w.clone(),
        _ => {
            let bare = partition.last().map_or("", String::as_str);
            return Err(SqlError::new(
                SqlState::UNDEFINED_TABLE,
                format!("relation \"{bare}\" is not a partition of relation \"{}\"", parent.name),
            ));
        }
    };
    let own = window.window().cloned().ok_or_else(|| SqlError::internal("no partition"))?;
    c.lock_chain(&parent.table)?;
    if c.catalog.referencing_tables(parent.table.id).next().is_some()
        && some_row(c, &window, "true")?
    {
        return Err(SqlError::unsupported("detaching rows of a table that foreign keys refer to")
            .with_hint("Delete the rows first, or drop the foreign keys."));
    }
    let condition = condition_of(&parent.table, own.id)?;
    let table = as_table(c, &window, &own)?;
    let old = backfill::layout(c, parent.table.id)?;
    remove_from(c, &parent, &own)?;
    let table = c.put(table);
    move_rows(c, &old, &table, Some(&condition))?;
    delete_rows(c, &old, &condition)
}

/// Removes a partition with those of it, and their own indexes.
fn remove_from(c: &mut Change, parent: &Divided, own: &Partition) -> SqlResult<()> {
    let divided = parent.partitioning()?;
    let gone: Vec<u32> = divided.downwards(own.id).iter().map(|p| p.id).collect();
    let is_gone = |of: &OfPartition| gone.contains(&of.partition);
    let indexes = parent.table.indexes.iter();
    let alone = indexes.filter(|i| i.of_partition.as_ref().is_some_and(is_gone));
    for i in alone.map(|i| i.id).collect::<Vec<_>>() {
        let table = c.catalog.table(parent.table.id).cloned();
        let table = table.ok_or_else(|| SqlError::internal("a table is gone"))?;
        drop::remove_index(c, &table, i, false)?;
    }
    redivide(c, parent.table.id, |divided| divided.partitions.retain(|p| !gone.contains(&p.id)))?;
    Ok(())
}

/// Deletes the rows for which a condition holds.
fn delete_rows(c: &Change, old: &Arc<TableLayout>, condition: &str) -> SqlResult<()> {
    let table =
        c.catalog.table(old.table.id).ok_or_else(|| SqlError::internal("a table is gone"))?;
    delete_from(c, &format!("{} WHERE {condition}", full_name(c, table)))
}

fn delete_from(c: &Change, what: &str) -> SqlResult<()> {
    let statements = parse_script(&format!("DELETE FROM {what}"))?;
    let kind = statements.first().map(|s| &*s.kind);
    let Some(Kind::Sql(sql)) = kind else {
        return Err(SqlError::internal("a DELETE is none"));
    };
    let Sql::Delete(delete) = &**sql else { return Err(SqlError::internal("a DELETE is none")) };
    DeletePlan::new(&c.ctx, delete, &mut c.ctx.no_params())?.run(&c.ctx)?;
    Ok(())
}

/// A partition as the table that it becomes: without rows, and with the columns, constraints and
/// indexes that it has.
fn as_table(c: &Change, window: &Table, own: &Partition) -> SqlResult<Table> {
    let mut table = create_table::empty(c, own.schema, own.name.clone())?;
    let spare = table.primary.id;
    table.id = own.id;
    table.generation = c.new_generation()?;
    table.columns = window.columns.clone();
    table.next_column = window.next_column;
    table.primary = Index { generation: 1, ..window.primary.clone() };
    table.primary.id =
        own.indexes.iter().find(|i| i.of == window.primary.id).map_or(spare, |i| i.id);
    table.checks = window.checks.clone();
    for fk in &window.foreign_keys {
        table.foreign_keys.push(braid_catalog::ForeignKey { id: c.new_id()?, ..fk.clone() });
    }
    for i in &window.indexes {
        let alias = own.indexes.iter().find(|o| o.of == i.id);
        let alone = i.of_partition.as_ref().filter(|of| of.partition == own.id);
        let id = match (alias, alone) {
            (Some(alias), _) => alias.id,
            (None, Some(_)) => i.id,
            (None, None) => continue,
        };
        let predicate = match &i.of_partition {
            Some(of) => of.predicate.clone(),
            None => i.predicate.clone(),
        };
        table.indexes.push(Index {
            id,
            generation: c.new_generation()?,
            predicate,
            of_partition: None,
            interleave_in: None,
            ..i.clone()
        });
    }
    table.forget_expressions();
    let divided = window.partitioning();
    table.upkeep.partitioning = own.key.as_ref().map(|key| {
        let inside = divided.map(|d| d.downwards(own.id)).unwrap_or_default();
        let partitions = inside.into_iter().filter(|p| p.id != own.id).map(|p| {
            let mut p = p.clone();
            // They are names of the new table's indexes now.
            p.indexes = renamed(&p.indexes, own);
            p
        });
        Box::new(Partitioning { key: key.clone(), partitions: partitions.collect() })
    });
    Ok(table)
}

fn renamed(indexes: &[PartitionIndex], own: &Partition) -> Vec<PartitionIndex> {
    let of = |i: &PartitionIndex| Some(own.indexes.iter().find(|o| o.of == i.of)?.id);
    indexes.iter().filter_map(|i| Some(PartitionIndex { of: of(i)?, ..i.clone() })).collect()
}

/// 2BP01 or 0A000 where foreign keys refer to the table: PostgreSQL has them depend on each
/// partition.
fn check_unreferenced(c: &Change, window: &Table, what: &str) -> SqlResult<()> {
    let Some(r) = c.catalog.referencing_tables(window.id).next() else { return Ok(()) };
    if what == "truncate" {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "cannot truncate a table referenced in a foreign key constraint",
        )
        .with_detail(format!("Table \"{}\" references \"{}\".", r.name, window.name))
        .with_hint(format!(
            "Truncate table \"{}\" at the same time, or use TRUNCATE ... CASCADE.",
            r.name
        )));
    }
    let fk = r.foreign_keys.iter().find(|fk| fk.parent == window.id);
    let fk = fk.map_or("", |fk| fk.name.as_str());
    Err(SqlError::new(
        SqlState::DEPENDENT_OBJECTS_STILL_EXIST,
        format!("cannot drop table {} because other objects depend on it", window.name),
    )
    .with_detail(format!("constraint {fk} on table {} depends on table {}", r.name, window.name))
    .with_hint("Use DROP ... CASCADE to drop the dependent objects too."))
}

/// TRUNCATE of a partition.
pub(in crate::ddl) fn empty(c: &mut Change, window: &Table) -> SqlResult<()> {
    check_unreferenced(c, window, "truncate")?;
    let table = c.catalog.table(window.id).cloned();
    c.lock_chain(&table.ok_or_else(|| SqlError::internal("a table is gone"))?)?;
    backfill::check_unseen(c, &*backfill::layout(c, window.id)?)?;
    delete_from(c, &full_name(c, window))
}

/// DROP TABLE of a partition: its rows go.
pub(in crate::ddl) fn drop_partition(c: &mut Change, window: &Table) -> SqlResult<()> {
    check_unreferenced(c, window, "drop")?;
    let table = c.catalog.table(window.id).cloned();
    let table = table.ok_or_else(|| SqlError::internal("a table is gone"))?;
    c.lock_chain(&table)?;
    backfill::check_unseen(c, &*backfill::layout(c, window.id)?)?;
    delete_from(c, &full_name(c, window))?;
    let own = window.window().cloned().ok_or_else(|| SqlError::internal("no partition"))?;
    let parent = Divided { id: own.parent, name: table.name.clone(), table };
    remove_from(c, &parent, &own)
}
