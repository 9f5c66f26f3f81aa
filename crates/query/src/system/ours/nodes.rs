//! Ours, about the cluster: `braid_nodes` and `braid_ranges`. A node that is alone has neither.

use braid_catalog::kv_error;
use braid_kv::ShownRange;
use braid_sql::{RangeViewer, shown_borders};
use braid_types::{Datum, SqlResult};

use super::super::table::{Rows, SystemTable, View, text};

type Made = SqlResult<Vec<Vec<Datum>>>;

/// A table about the cluster.
pub(in crate::system) fn table(name: &str) -> Option<SystemTable> {
    let (layout, rows): (&'static str, Rows) = match name {
        "braid_nodes" => (
            "node_id int8, address text, state text, replicas int8, leases int8, locality text",
            nodes,
        ),
        "braid_ranges" => (
            "range_id int8, start_key text, end_key text, replicas text, leaseholder int8, \
             bytes int8, moves text",
            ranges,
        ),
        _ => return None,
    };
    Some(SystemTable { layout, rows, oid: 0 })
}

fn known(v: &View<'_>) -> SqlResult<Vec<ShownRange>> {
    let ranges = v.database_object.coordinator().describe_ranges().map_err(kv_error)?;
    Ok(ranges.unwrap_or_default())
}

/// All nodes that there ever were, with what they have as this one knows it.
fn nodes(v: &View<'_>) -> Made {
    let ranges = known(v)?;
    let row = |node: braid_kv::ShownNode| {
        let count = |has: &dyn Fn(&ShownRange) -> bool| {
            Datum::Int8(ranges.iter().filter(|range| has(range)).count() as i64)
        };
        vec![
            Datum::Int8(node.id as i64),
            text(node.address),
            text(node.state),
            count(&|range| range.replicas.contains(&node.id)),
            count(&|range| range.leaseholder == Some(node.id)),
            text(node.locality),
        ]
    };
    Ok(v.database_object.coordinator().describe_nodes().into_iter().map(row).collect())
}

/// What SHOW RANGES shows.
fn ranges(v: &View<'_>) -> Made {
    let ranges = known(v)?;
    let search_path = v.search_path;
    let viewer =
        RangeViewer { catalog: v.catalog, user: v.user, database: v.database_id, search_path };
    let borders = shown_borders(viewer, &ranges);
    let row = |(range, (start, end)): (ShownRange, (String, String))| {
        let replicas: Vec<String> = range.replicas.iter().map(u64::to_string).collect();
        vec![
            Datum::Int8(range.id as i64),
            text(start),
            text(end),
            text(replicas.join(",")),
            range.leaseholder.map_or(Datum::Null, |node| Datum::Int8(node as i64)),
            Datum::Int8(range.bytes as i64),
            range.moves.map_or(Datum::Null, text),
        ]
    };
    Ok(ranges.into_iter().zip(borders).map(row).collect())
}
