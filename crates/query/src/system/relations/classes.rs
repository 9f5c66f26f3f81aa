//! `pg_class`: tables, indexes, views, sequences and composite types.

use std::sync::Arc;

use braid_catalog::{Index, Partition, Table, id_of_oid, oid_of};
use braid_sql::partitions::bound_text;
use braid_types::{ArrayValue, Datum, SqlResult, SqlType};

use super::of_system;
use crate::system::row_statistics::class_size;
use crate::system::table::{ROOT, View, flag, object, text};
use crate::system::{roles, type_rows};

type Made = SqlResult<Vec<Vec<Datum>>>;

/// A row of `pg_class`; the schema is an oid.
pub(super) fn class_row(
    oid: u32,
    name: &str,
    schema: u32,
    kind: &str,
    natts: usize,
    checks: usize,
    has_index: bool,
) -> Vec<Datum> {
    let am = match kind {
        "r" | "m" => 2,
        "i" | "I" => 403,
        _ => 0,
    };
    vec![
        Datum::Oid(oid),
        text(name),
        Datum::Oid(schema),
        Datum::Oid(0),
        Datum::Oid(0),
        Datum::Oid(ROOT),
        Datum::Oid(am),
        Datum::Oid(oid),
        Datum::Oid(0),
        Datum::Int4(0),
        Datum::Float4(-1.0),
        Datum::Int4(0),
        Datum::Oid(0),
        flag(has_index),
        flag(false),
        text("p"),
        text(kind),
        Datum::Int2(natts as i16),
        Datum::Int2(checks as i16),
        flag(matches!(kind, "v" | "m")),
        flag(false),
        flag(false),
        flag(false),
        flag(false),
        flag(true),
        text(if matches!(kind, "r" | "m" | "p") { "d" } else { "n" }),
        flag(false),
        Datum::Oid(0),
        Datum::Oid(0),
        Datum::Oid(0),
    ]
}

/// Position of `reltype`.
pub(super) const ROW_TYPE: usize = 3;
/// Positions of `relpages`, `reltuples` and `relhastriggers`.
const PAGES: usize = 9;
const TUPLES: usize = 10;
const TRIGGERS: usize = 20;
/// Positions of `relisshared` and `relreplident`.
pub(super) const SHARED: usize = 14;
pub(super) const IDENTITY: usize = 25;
/// Position of `relispopulated`.
const POPULATED: usize = 24;
/// Positions of `relnamespace`, `relowner`, `relpersistence`, `relam`, `relacl` and `reloptions`.
const NAMESPACE: usize = 2;
const OWNER: usize = 5;
const METHOD: usize = 6;
pub(super) const ACL: usize = 30;
const OPTIONS: usize = 31;
/// Positions of `relhassubclass`, `relispartition` and `relpartbound`.
const SUBCLASS: usize = 21;
const PARTITION: usize = 26;
pub(super) const BOUND: usize = 32;
const PERSISTENCE: usize = 15;

/// The access method of an index in `pg_am`.
fn method_oid(i: &Index) -> u32 {
    type_rows::access_method(i.method())
}

/// A table or a partition with its indexes.
fn table_rows(v: &View<'_>, t: &Arc<Table>, rows: &mut Vec<Vec<Datum>>) -> SqlResult<()> {
    let indexes = v.indexes(t);
    let (oid, visible) = (oid_of(t.id), t.visible_columns().count());
    let indexed = !indexes.is_empty();
    let divided = t.partitioning().and_then(|d| d.key_of(t.shown_id())).is_some();
    let kind = match t.materialized() {
        Some(_) => "m",
        None if divided => "p",
        None => "r",
    };
    let mut row = class_row(oid, &t.name, oid_of(t.schema), kind, visible, t.checks.len(), indexed);
    row[ROW_TYPE] = Datum::Oid(oid);
    row[POPULATED] = flag(t.materialized().is_none_or(|view| view.populated));
    // Foreign keys are triggers in PostgreSQL: clients look for them only where there are some.
    let references =
        !t.foreign_keys.is_empty() || v.catalog.referencing_tables(t.id).next().is_some();
    row[TRIGGERS] = flag(references);
    let (pages, tuples) = class_size(v, t);
    (row[PAGES], row[TUPLES]) = (Datum::Int4(pages), Datum::Float4(tuples));
    let inside = t.partitioning().is_some_and(|d| d.partitions_of(t.shown_id()).next().is_some());
    row[SUBCLASS] = flag(inside);
    if let Some(p) = t.window() {
        row[PARTITION] = flag(true);
        row.resize(BOUND + 1, Datum::Null);
        row[BOUND] = text(bound_text(t, p)?);
    }
    rows.push(row);
    for i in indexes {
        let natts = i.columns.len() + i.include.len();
        let kind = if divided { "I" } else { "i" };
        let mut row = class_row(oid_of(i.id), &i.name, oid_of(t.schema), kind, natts, 0, false);
        row[METHOD] = Datum::Oid(method_oid(i));
        let of_table = |p: &Partition| p.indexes.iter().any(|own| own.id == i.id);
        row[PARTITION] = flag(t.window().is_some_and(of_table));
        // An entry for each row; PostgreSQL has 0 as long as it does not know.
        row[TUPLES] = Datum::Float4(tuples.max(0.0));
        rows.push(row);
    }
    Ok(())
}

pub(in crate::system) fn pg_class(v: &View<'_>) -> Made {
    let mut rows = Vec::new();
    for (_, t) in v.stored() {
        table_rows(v, t, &mut rows)?;
    }
    for view in v.catalog.views().filter(|x| v.schema(x.schema).is_some()) {
        let (oid, schema, width) = (oid_of(view.id), oid_of(view.schema), view.columns.len());
        let mut row = class_row(oid, &view.name, schema, "v", width, 0, false);
        row[ROW_TYPE] = Datum::Oid(oid);
        rows.push(row);
    }
    for s in v.catalog.sequences().filter(|x| v.schema(x.schema).is_some()) {
        rows.push(class_row(oid_of(s.id), &s.name, oid_of(s.schema), "S", 3, 0, false));
    }
    for (user, fields) in type_rows::composites(v) {
        let mut row = class_row(
            oid_of(user.id),
            &user.name,
            oid_of(user.schema),
            "c",
            fields.len(),
            0,
            false,
        );
        row[ROW_TYPE] = object(user.id);
        rows.push(row);
    }
    for row in &mut rows {
        let temporary = |s: &braid_catalog::Schema| s.name.starts_with("pg_temp_");
        let schema = match &row[NAMESPACE] {
            Datum::Oid(oid) => id_of_oid(*oid).and_then(|id| v.schema(id)),
            _ => None,
        };
        if schema.is_some_and(|s| temporary(s)) {
            row[PERSISTENCE] = text("t");
        }
        let Datum::Oid(oid) = row[0] else { continue };
        let Some(id) = id_of_oid(oid) else { continue };
        // An index is whose table it is.
        let of_table = || v.catalog.index(id).map(|(table, _)| table.id);
        let of_partition = v.catalog.partition_index(id).map(|(shown, _)| shown.id);
        let table = of_partition.or_else(of_table);
        row[OWNER] = roles::owner(v, table.unwrap_or(id));
        row.resize(BOUND + 1, Datum::Null);
        if let Some(option) = v.catalog.view(id).and_then(|view| view.check_option) {
            let option = format!("check_option={}", option.sql().to_lowercase());
            row[OPTIONS] = Datum::Array(ArrayValue::list(SqlType::Text, vec![text(option)]).into());
        }
        row[ACL] = if table.is_none() { roles::acl(v, id) } else { Datum::Null };
    }
    rows.extend(of_system::classes(v));
    Ok(rows)
}
