//! Whether several threads read for one query.
//!
//! ```text
//!   Aggregate (final)                    one thread each:
//!     Repartition by the groups' keys      pieces of the table's span, one after the other,
//!       Aggregate (partial) x n            until none is left (exec/partitions/pieces.rs)
//!         Join x n    held side: read before, by n threads too
//!           Scan x n
//! ```
//! DataFusion puts the operators around it; here is said how many threads there are. A query that
//! reads little is done before another thread has begun, so:
//!
//! - the first execution of a plan asks how large the tables are that it reads as a whole,
//! - the next ones go by how many entries the one before has looked at.
//!
//! One thread reads for a query that calls volatile functions, or whose aggregates depend on the
//! order of the rows, and for a query that another one runs for its values. A common table
//! expression that is computed once is a query of its own in this.

use braid_env::tasks::cores;
use braid_sql::{RunContext, SideBySide};
use braid_types::SqlResult;
use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::{Expr, LogicalPlan, TableScan};

use crate::error::from_df;
use crate::exec::aggregate::depends_on_order;
use crate::exec::table::SqlTable;

/// Bytes of an entry in files, as they usually are.
const ENTRY_BYTES: u64 = 100;

/// How many threads read for a query that does not read little.
pub(crate) fn threads(settings: SideBySide) -> usize {
    cores().min(settings.helpers.saturating_add(1))
}

/// Whether the next execution of a plan is one by several threads, after one that has looked at so
/// many entries.
pub(crate) fn after(run: &RunContext, entries: u64) -> bool {
    // As many as a table has that is just large enough, with rows of the usual size.
    entries >= (run.side_by_side.least_bytes / ENTRY_BYTES)
}

/// Whether the first execution of a plan is one by several threads.
///
/// # Errors
/// Of walking through the plan.
pub(crate) fn at_first(settings: SideBySide, plan: &LogicalPlan) -> SqlResult<bool> {
    if settings.helpers == 0 {
        return Ok(false);
    }
    let mut much = false;
    let walked = plan.apply(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            much |= is_large(settings, scan)?;
        }
        Ok(if much { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    walked.map(|_| much).map_err(from_df)
}

fn is_large(settings: SideBySide, scan: &TableScan) -> Result<bool> {
    let provider = source_as_provider(&scan.source)?;
    let Some(table) = provider.downcast_ref::<SqlTable>() else { return Ok(false) };
    Ok(table.bytes() >= settings.least_bytes as f64 && table.is_read_whole(&scan.filters))
}

/// Whether a plan gives the same answer whatever the order in which rows come.
///
/// # Errors
/// Of walking through the plan.
pub(crate) fn is_possible(plan: &LogicalPlan) -> Result<bool> {
    let mut possible = true;
    plan.apply(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|part| {
                possible &= match part {
                    Expr::AggregateFunction(call) => !depends_on_order(&call.func),
                    _ => true,
                };
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(possible)
}
