//! EXPLAIN ANALYZE (DEBUG): all that somebody needs to understand a plan who was not there.

use std::collections::BTreeSet;

use braid_catalog::{Relation, Table};
use braid_parser::Statement;
use braid_types::SqlResult;

use super::lines::PlanLine;
use super::summary::Summary;
use crate::session::Context;
use crate::session::show::create;

/// One text of several parts.
pub(super) fn bundle(
    ctx: &Context,
    statement: &Statement,
    lines: &[PlanLine],
    summary: &Summary,
    plan: Vec<String>,
) -> SqlResult<Vec<String>> {
    let mut out = vec!["-- Version".to_string()];
    out.push(crate::session::settings::SERVER_VERSION.to_string());
    out.push("-- Statement".to_string());
    out.extend(statement.text.lines().map(str::to_string));
    out.push("-- Settings that are not as at the start".to_string());
    out.extend(summary.settings.iter().map(|(name, value)| format!("SET {name} = '{value}'")));
    out.push("-- Schema".to_string());
    let tables = tables(ctx, lines);
    for id in &tables {
        if let Some(relation) = ctx.catalog.relation_by_id(*id) {
            let created = create::create_statement(ctx, &relation)?;
            out.extend(format!("{created};").lines().map(str::to_string));
        }
    }
    out.push("-- Statistics".to_string());
    for id in &tables {
        if let Some(Relation::Table(table)) = ctx.catalog.relation_by_id(*id) {
            out.push(statistics(ctx, &table));
        }
    }
    out.push("-- Plan".to_string());
    out.extend(plan);
    Ok(out)
}

/// The tables that operators name, and those that they are interleaved in, oldest first: so they
/// can be created in this order.
fn tables(ctx: &Context, lines: &[PlanLine]) -> BTreeSet<u32> {
    let named = |table: &Table| {
        let operators = lines.iter().filter_map(|line| line.operator.as_ref());
        operators.filter_map(|o| o.relation.as_deref()).any(|name| name == table.name)
    };
    let own = |table: &Table| {
        ctx.catalog.schema_by_id(table.schema).is_some_and(|s| s.database == ctx.database)
    };
    let mut out = BTreeSet::new();
    for table in ctx.catalog.tables().filter(|t| own(t) && named(t)) {
        let mut at = Some(table.id);
        while let Some(id) = at {
            out.insert(id);
            let above = ctx.catalog.table(id).and_then(|t| t.interleave.as_ref());
            at = above.map(|interleave| interleave.parent);
        }
    }
    out
}

fn statistics(ctx: &Context, table: &std::sync::Arc<Table>) -> String {
    match ctx.db.statistics(table) {
        Some(known) => format!("{}: {} rows when ANALYZE counted them", table.name, known.rows),
        None => format!("{}: none; ANALYZE {} counts them", table.name, table.name),
    }
}
