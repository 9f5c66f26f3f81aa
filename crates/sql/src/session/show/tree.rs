//! SHOW INTERLEAVE TREE: tables and indexes as they lie in each other.
//!
//! ```text
//!   tree             kind    key                      on_delete     rows
//!   customers        table   id                                     1000
//!     orders         table   id, order_id             CASCADE       9980
//!       lines        table   id, order_id, line       CASCADE       40112
//!     by_status      index   id, status
//!     notes          table   id, n                    stays         12
//! ```

use std::sync::Arc;

use braid_catalog::{Index, Table};
use braid_rows::Row;
use braid_types::Datum;

use super::super::Context;

/// The trees of the database, or the one that a table is in.
pub(super) fn rows(ctx: &Context, only: Option<&Arc<Table>>) -> Vec<Row> {
    let c = &ctx.catalog;
    let own = |t: &Table| c.schema_by_id(t.schema).is_some_and(|s| s.database == ctx.database);
    let wanted = only.and_then(|t| c.chain(t).first().cloned());
    let mut roots: Vec<&Arc<Table>> = c
        .tables()
        .filter(|t| own(t) && t.interleave.is_none())
        .filter(|t| match &wanted {
            Some(root) => root.id == t.id,
            // What nothing lies in is no tree.
            None => c.interleaved_children(t.id).next().is_some(),
        })
        .collect();
    roots.sort_by(|a, b| a.name.cmp(&b.name));
    let mut out = Vec::new();
    for root in roots {
        let mut stack = vec![(root.clone(), 0usize)];
        while let Some((t, depth)) = stack.pop() {
            out.push(table(ctx, &t, depth));
            for inside in c.subtree(root) {
                let here = inside.indexes.iter().filter(|i| i.interleave_in == Some(t.id));
                out.extend(here.map(|i| index(&inside, i, depth + 1)));
            }
            let mut children: Vec<_> = c.interleaved_children(t.id).cloned().collect();
            children.sort_by(|a, b| b.name.cmp(&a.name));
            stack.extend(children.into_iter().map(|child| (child, depth + 1)));
        }
    }
    out
}

fn text(value: impl Into<String>) -> Datum {
    Datum::text(value.into())
}

fn indented(name: &str, depth: usize) -> Datum {
    text(format!("{}{name}", "  ".repeat(depth)))
}

fn key(t: &Table, i: &Index) -> Datum {
    let column = |k: &braid_catalog::IndexColumn| {
        let name = t.key_name(k.column);
        format!("{name}{}", if k.desc { " DESC" } else { "" })
    };
    text(i.columns.iter().map(column).collect::<Vec<_>>().join(", "))
}

fn table(ctx: &Context, t: &Arc<Table>, depth: usize) -> Row {
    let on_delete = match &t.interleave {
        None => Datum::Null,
        Some(i) if i.enforced() => text(i.on_delete.sql()),
        Some(_) => text("stays"),
    };
    let rows = ctx.db.statistics(t).map(|known| known.rows.round());
    let rows = rows.map_or(Datum::Null, |rows| text(format!("{rows}")));
    vec![indented(&t.name, depth), text("table"), key(t, &t.primary), on_delete, rows]
}

fn index(t: &Table, i: &Index, depth: usize) -> Row {
    let name = format!("{} on {}", i.name, t.name);
    vec![indented(&name, depth), text("index"), key(t, i), Datum::Null, Datum::Null]
}
