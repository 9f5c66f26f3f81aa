//! Partitions in `pg_catalog`: `pg_inherits`, `pg_partitioned_table`, and the functions about them.

use braid_catalog::{
    Catalog, KeyPart, PartitionBound, PartitionKey, Partitioning, Strategy, Table, id_of_oid,
    oid_of,
};
use braid_sql::partitions;
use braid_types::{ArrayValue, Datum, SqlResult, SqlType};

use super::pg_tables::collation;
use super::table::{SystemTable, View, flag, int2_vector, object, oid_vector, text};
use super::type_rows::class_of;

type Made = SqlResult<Vec<Vec<Datum>>>;

/// A table about partitions.
pub fn table(name: &str) -> Option<SystemTable> {
    let (layout, rows): (_, super::table::Rows) = match name {
        "pg_inherits" => {
            ("inhrelid oid, inhparent oid, inhseqno int4, inhdetachpending bool", pg_inherits)
        }
        "pg_partitioned_table" => (
            "partrelid oid, partstrat char, partnatts int2, partdefid oid, partattrs int2vector, \
             partclass oidvector, partcollation oidvector, partexprs pg_node_tree",
            pg_partitioned_table,
        ),
        _ => return None,
    };
    Some(SystemTable { layout, rows, oid: 0 })
}

/// Divided tables of the session's database.
fn divided<'a>(v: &View<'a>) -> Vec<(&'a Table, &'a Partitioning)> {
    let stored: Vec<_> = v.stored().map(|(_, t)| t).collect();
    let own = stored.into_iter().filter(|t| t.window().is_none());
    own.filter_map(|t| Some((&**t, t.partitioning()?))).collect()
}

fn pg_inherits(v: &View<'_>) -> Made {
    let row =
        |child: u32, parent: u32| vec![object(child), object(parent), Datum::Int4(1), flag(false)];
    let mut rows = Vec::new();
    for (table, divided) in divided(v) {
        for p in &divided.partitions {
            rows.push(row(p.id, p.parent));
            let parents = divided.partition(p.parent).map(|parent| &parent.indexes);
            for i in &p.indexes {
                let parent = match parents {
                    None => Some(i.of),
                    Some(all) => all.iter().find(|own| own.of == i.of).map(|own| own.id),
                };
                let shown = parent.filter(|id| table.id != *id);
                rows.extend(shown.map(|parent| row(i.id, parent)));
            }
        }
    }
    Ok(rows)
}

fn pg_partitioned_table(v: &View<'_>) -> Made {
    let mut rows = Vec::new();
    for (table, divided) in divided(v) {
        let inside = divided.partitions.iter().filter_map(|p| Some((p.id, p.key.as_ref()?)));
        for (id, key) in std::iter::once((table.id, &divided.key)).chain(inside) {
            rows.push(partitioned_row(table, divided, id, key)?);
        }
    }
    Ok(rows)
}

fn partitioned_row(
    table: &Table,
    divided: &Partitioning,
    id: u32,
    key: &PartitionKey,
) -> SqlResult<Vec<Datum>> {
    let types = partitions::key_types(table, key)?;
    let columns = key.parts.iter().map(|part| match part {
        KeyPart::Column(id) => *id,
        KeyPart::Expression(_) => 0,
    });
    let expressions: Vec<&str> = key
        .parts
        .iter()
        .filter_map(|part| match part {
            KeyPart::Column(_) => None,
            KeyPart::Expression(text) => Some(text.as_str()),
        })
        .collect();
    let default = divided.partitions_of(id).find(|p| p.bound == PartitionBound::Default);
    Ok(vec![
        object(id),
        text(match key.strategy {
            Strategy::List => "l",
            Strategy::Range => "r",
            Strategy::Hash => "h",
        }),
        Datum::Int2(key.parts.len() as i16),
        default.map_or(Datum::Oid(0), |p| object(p.id)),
        int2_vector(columns),
        oid_vector(types.iter().map(class_of)),
        oid_vector(types.iter().map(collation)),
        if expressions.is_empty() { Datum::Null } else { text(expressions.join(", ")) },
    ])
}

/// The divided table of which this is the table or a partition.
fn around(catalog: &Catalog, oid: u32) -> Option<(&Table, u32)> {
    let id = id_of_oid(oid)?;
    if let Some(table) = catalog.table(id) {
        table.partitioning()?;
        return Some((table, id));
    }
    let window = catalog.partition(id)?;
    Some((catalog.table(window.id)?, id))
}

/// `pg_get_partkeydef`.
fn key_definition(catalog: &Catalog, oid: u32) -> Option<String> {
    let (table, id) = around(catalog, oid)?;
    Some(partitions::key_text(table, table.partitioning()?.key_of(id)?))
}

/// `pg_get_partition_constraintdef`.
fn constraint(catalog: &Catalog, oid: u32) -> SqlResult<Option<String>> {
    let Some((table, id)) = around(catalog, oid) else { return Ok(None) };
    if table.id == id {
        return Ok(None);
    }
    let shown = partitions::constraint_text(table, id)?;
    Ok((shown != "true").then_some(shown))
}

/// A list of numbers for functions that give rows.
fn numbers(all: Vec<i64>) -> Datum {
    let items = all.into_iter().map(Datum::Int8).collect();
    Datum::Array(std::sync::Arc::new(ArrayValue::list(SqlType::Int8, items)))
}

/// `pg_partition_tree`: oid, oid of the parent or 0, whether it is a leaf, level; of each.
fn tree(catalog: &Catalog, oid: u32) -> Option<Datum> {
    let (table, id) = around(catalog, oid)?;
    let divided = table.partitioning()?;
    let mut out = Vec::new();
    let mut level = vec![(id, divided.partition(id).map(|p| p.parent))];
    let mut depth = 0;
    while !level.is_empty() {
        let mut next = Vec::new();
        for (id, parent) in level {
            let leaf = divided.key_of(id).is_none();
            let parent = parent.map_or(0, |p| i64::from(oid_of(p)));
            out.extend([i64::from(oid_of(id)), parent, i64::from(leaf), depth]);
            next.extend(divided.partitions_of(id).map(|p| (p.id, Some(p.parent))));
        }
        level = next;
        depth += 1;
    }
    Some(numbers(out))
}

/// `pg_partition_ancestors`: it, and what it is in, from the inside.
fn ancestors(catalog: &Catalog, oid: u32) -> Option<Datum> {
    let (table, id) = around(catalog, oid)?;
    let inside = table.partitioning()?.upwards(id);
    let ids = inside.iter().map(|p| p.id).chain([table.id]);
    Some(numbers(ids.map(|id| i64::from(oid_of(id))).collect()))
}

/// `pg_partition_root`.
fn root(catalog: &Catalog, oid: u32) -> Option<Datum> {
    Some(object(around(catalog, oid)?.0.id))
}

/// Functions about partitions; `None` if it is none of them, or of what is none.
pub(super) fn function(
    catalog: &Catalog,
    name: &str,
    oid: Option<u32>,
) -> SqlResult<Option<Datum>> {
    let Some(oid) = oid else { return Ok(None) };
    Ok(match name {
        "pg_get_partkeydef" => key_definition(catalog, oid).map(Datum::text),
        "pg_get_partition_constraintdef" => constraint(catalog, oid)?.map(Datum::text),
        "pg_partition_tree" => tree(catalog, oid),
        "pg_partition_ancestors" => ancestors(catalog, oid),
        "pg_partition_root" => root(catalog, oid),
        _ => None,
    })
}
