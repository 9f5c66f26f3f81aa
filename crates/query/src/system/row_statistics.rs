//! What ANALYZE has found out, and how many rows were written, as PostgreSQL's tables: `pg_stats`,
//! `pg_statistic`, `pg_stat_user_tables`, `pg_stat_user_indexes`.

use std::sync::Arc;

use braid_catalog::{Column, Schema, Table, oid_of};
use braid_planner::ColumnStatistics;
use braid_rows::TableLayout;
use braid_sql::statistics::TableActivity;
use braid_types::{ArrayValue, Datum, SqlResult, SqlType, Style};

use super::table::{SystemTable, View, flag, object, text};

type Made = SqlResult<Vec<Vec<Datum>>>;

/// Part of the rows from which on PostgreSQL writes a number of distinct values as such a part.
const GROWING: f64 = 0.1;
/// PostgreSQL counts in pages of so many bytes.
const PAGE: f64 = 8192.0;
/// Bytes that a row takes in such a page beside its values.
const ROW_OVERHEAD: f64 = 28.0;
/// Kinds of slots of `pg_statistic`.
const COMMON: i16 = 1;
const HISTOGRAM: i16 = 2;
const CORRELATION: i16 = 3;
/// Slots that a row of it has.
const SLOTS: usize = 5;

const ACTIVITY: &str = "relid oid, schemaname name, relname name, seq_scan int8, \
     seq_tup_read int8, idx_scan int8, idx_tup_fetch int8, n_tup_ins int8, n_tup_upd int8, \
     n_tup_del int8, n_tup_hot_upd int8, n_live_tup int8, n_dead_tup int8, \
     n_mod_since_analyze int8, n_ins_since_vacuum int8, last_vacuum timestamptz, \
     last_autovacuum timestamptz, last_analyze timestamptz, last_autoanalyze timestamptz, \
     vacuum_count int8, autovacuum_count int8, analyze_count int8, autoanalyze_count int8";

/// `pg_stat_*_indexes`.
const INDEX_ACTIVITY: &str = "relid oid, indexrelid oid, schemaname name, relname name, \
     indexrelname name, idx_scan int8, idx_tup_read int8, idx_tup_fetch int8";

/// `pg_statio_*_indexes`.
const INDEX_BLOCKS: &str = "relid oid, indexrelid oid, schemaname name, relname name, \
     indexrelname name, idx_blks_read int8, idx_blks_hit int8";

/// `pg_statio_*_tables`.
const BLOCKS: &str = "relid oid, schemaname name, relname name, heap_blks_read int8, \
     heap_blks_hit int8, idx_blks_read int8, idx_blks_hit int8, toast_blks_read int8, \
     toast_blks_hit int8, tidx_blks_read int8, tidx_blks_hit int8";

/// A table about statistics of rows.
pub(super) fn table(name: &str) -> Option<SystemTable> {
    let (layout, rows): (_, super::table::Rows) = match name {
        "pg_stats" => (
            "schemaname name, tablename name, attname name, inherited bool, null_frac float4, \
             avg_width int4, n_distinct float4, most_common_vals anyarray, \
             most_common_freqs float4[], histogram_bounds anyarray, correlation float4, \
             most_common_elems anyarray, most_common_elem_freqs float4[], \
             elem_count_histogram float4[]",
            pg_stats,
        ),
        "pg_statistic" => (
            "starelid oid, staattnum int2, stainherit bool, stanullfrac float4, stawidth int4, \
             stadistinct float4, stakind1 int2, stakind2 int2, stakind3 int2, stakind4 int2, \
             stakind5 int2, staop1 oid, staop2 oid, staop3 oid, staop4 oid, staop5 oid, \
             stacoll1 oid, stacoll2 oid, stacoll3 oid, stacoll4 oid, stacoll5 oid, \
             stanumbers1 float4[], stanumbers2 float4[], stanumbers3 float4[], \
             stanumbers4 float4[], stanumbers5 float4[], stavalues1 anyarray, stavalues2 anyarray, \
             stavalues3 anyarray, stavalues4 anyarray, stavalues5 anyarray",
            pg_statistic,
        ),
        "pg_stat_user_tables" | "pg_stat_all_tables" => (ACTIVITY, pg_stat_tables),
        "pg_stat_sys_tables" => (ACTIVITY, super::table::empty),
        "pg_stat_user_indexes" | "pg_stat_all_indexes" => {
            (INDEX_ACTIVITY, |v| Ok(index_rows(v, 3)))
        }
        "pg_stat_sys_indexes" => (INDEX_ACTIVITY, super::table::empty),
        "pg_statio_user_indexes" | "pg_statio_all_indexes" => {
            (INDEX_BLOCKS, |v| Ok(index_rows(v, 2)))
        }
        "pg_statio_sys_indexes" => (INDEX_BLOCKS, super::table::empty),
        "pg_statio_user_tables" | "pg_statio_all_tables" => (BLOCKS, pg_statio_tables),
        "pg_statio_sys_tables" => (BLOCKS, super::table::empty),
        _ => return None,
    };
    Some(SystemTable { layout, rows, oid: 0 })
}

/// `relpages` and `reltuples` of a table.
pub(super) fn class_size(v: &View<'_>, table: &Arc<Table>) -> (i32, f32) {
    match v.database_object.statistics(table) {
        Some(known) => {
            let bytes = known.rows * (known.row_bytes + ROW_OVERHEAD);
            ((bytes / PAGE).ceil() as i32, known.rows as f32)
        }
        None => (0, -1.0),
    }
}

/// What is known of one column.
struct Analyzed<'a> {
    schema: &'a Schema,
    table: &'a Table,
    column: &'a Column,
    known: ColumnStatistics,
    /// As PostgreSQL writes it.
    distinct: f64,
}

fn analyzed<'a>(v: &View<'a>) -> Vec<Analyzed<'a>> {
    let mut out = Vec::new();
    for (schema, table) in v.stored() {
        let Some(all) = v.database_object.statistics(table) else { continue };
        for (at, column) in table.columns.iter().enumerate().filter(|(_, c)| !c.hidden) {
            let Some(known) = all.column(at).cloned() else { continue };
            let distinct = match known.distinct {
                n if n > GROWING * all.rows => -(n / all.rows),
                n => n,
            };
            out.push(Analyzed { schema, table, column, known, distinct });
        }
    }
    out
}

fn pg_stats(v: &View<'_>) -> Made {
    let style = v.eval.style;
    let row = |a: Analyzed<'_>| {
        let c = &a.known;
        let common = c.common.iter().map(|(value, _)| value);
        vec![
            text(a.schema.name.as_str()),
            text(a.table.name.as_str()),
            text(a.column.name.as_str()),
            flag(false),
            Datum::Float4(c.null_fraction as f32),
            Datum::Int4(c.width as i32),
            Datum::Float4(a.distinct as f32),
            values(common, style),
            numbers(c.common.iter().map(|(_, part)| *part)),
            values(c.histogram.iter(), style),
            c.correlation.map_or(Datum::Null, |r| Datum::Float4(r as f32)),
        ]
    };
    Ok(analyzed(v).into_iter().map(row).collect())
}

fn pg_statistic(v: &View<'_>) -> Made {
    let style = v.eval.style;
    Ok(analyzed(v).into_iter().map(|a| statistic_row(&a, style)).collect())
}

fn statistic_row(a: &Analyzed<'_>, style: Style) -> Vec<Datum> {
    let c = &a.known;
    let mut slots = Vec::new();
    if !c.common.is_empty() {
        let (of, parts) = (c.common.iter().map(|e| &e.0), c.common.iter().map(|e| e.1));
        slots.push((COMMON, numbers(parts), values(of, style)));
    }
    if !c.histogram.is_empty() {
        slots.push((HISTOGRAM, Datum::Null, values(c.histogram.iter(), style)));
    }
    if let Some(r) = c.correlation {
        slots.push((CORRELATION, numbers(std::iter::once(r)), Datum::Null));
    }
    slots.resize(SLOTS, (0, Datum::Null, Datum::Null));
    let mut row = vec![
        object(a.table.id),
        Datum::Int2(a.column.id as i16),
        flag(false),
        Datum::Float4(c.null_fraction as f32),
        Datum::Int4(c.width as i32),
        Datum::Float4(a.distinct as f32),
    ];
    row.extend(slots.iter().map(|(kind, ..)| Datum::Int2(*kind)));
    // Operators and collations.
    row.extend((0..2 * SLOTS).map(|_| Datum::Oid(0)));
    row.extend(slots.iter().map(|(_, numbers, _)| numbers.clone()));
    row.extend(slots.into_iter().map(|(.., values)| values));
    row
}

/// Values as the text of an array; NULL if there are none.
fn values<'a>(values: impl Iterator<Item = &'a Datum>, style: Style) -> Datum {
    let shown = |value: &Datum| value.to_text(style).map_or(Datum::Null, Datum::text);
    let items: Vec<Datum> = values.map(shown).collect();
    if items.is_empty() {
        return Datum::Null;
    }
    let array = Datum::Array(Arc::new(ArrayValue::list(SqlType::Text, items)));
    array.to_text(style).map_or(Datum::Null, Datum::text)
}

/// NULL if there are none.
fn numbers(numbers: impl Iterator<Item = f64>) -> Datum {
    let items: Vec<Datum> = numbers.map(|n| Datum::Float4(n as f32)).collect();
    if items.is_empty() {
        return Datum::Null;
    }
    Datum::Array(Arc::new(ArrayValue::list(SqlType::Float4, items)))
}

/// Which tables there are: blocks are not counted by table, they hold rows of many.
fn pg_statio_tables(v: &View<'_>) -> Made {
    let row = |(schema, table): (&Arc<Schema>, &Arc<Table>)| {
        let (schema, name) = (text(schema.name.as_str()), text(table.name.as_str()));
        let mut row = vec![Datum::Oid(oid_of(table.id)), schema, name];
        row.resize(11, Datum::Null);
        row
    };
    Ok(v.stored().map(row).collect())
}

/// Which indexes there are, with so many counts: none is kept, as of scans of tables.
fn index_rows(v: &View<'_>, counts: usize) -> Vec<Vec<Datum>> {
    let mut rows = Vec::new();
    for (schema, table) in v.stored() {
        for index in v.indexes(table) {
            let mut row = vec![object(table.id), object(index.id)];
            row.extend([&schema.name, &table.name, &index.name].map(|name| text(name.as_str())));
            row.resize(row.len() + counts, Datum::Null);
            rows.push(row);
        }
    }
    rows
}

fn pg_stat_tables(v: &View<'_>) -> Made {
    let mut rows = Vec::new();
    for (schema, table) in v.stored() {
        let db = v.database_object;
        let live = db.estimated_rows(&TableLayout::new(v.catalog, table)?);
        let seen: TableActivity = db.table_activity(table);
        let count = |n: u64| Datum::Int8(n as i64);
        let time = |t: Option<i64>| t.map_or(Datum::Null, Datum::TimestampTz);
        let mut row = vec![
            Datum::Oid(oid_of(table.id)),
            text(schema.name.as_str()),
            text(table.name.as_str()),
        ];
        // Scans are not counted.
        row.extend((0..4).map(|_| Datum::Null));
        row.extend([count(seen.inserted), count(seen.updated), count(seen.deleted)]);
        // Old versions are no matter of tables here, and compactions do what VACUUM does.
        row.extend([count(0), Datum::Int8(live.round() as i64), count(0), count(seen.modified)]);
        row.extend([Datum::Null, Datum::Null, Datum::Null]);
        row.extend([time(seen.last_analyze), time(seen.last_auto_analyze)]);
        row.extend([count(0), count(0), count(seen.analyzes), count(seen.auto_analyzes)]);
        rows.push(row);
    }
    Ok(rows)
}
