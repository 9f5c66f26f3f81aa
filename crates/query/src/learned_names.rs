//! What operators tell scans below them finds its way by names of columns: not where two columns
//! have one name.
//!
//! ```text
//!   t JOIN (a JOIN b) ON t.x = b.n        b.n is [1, 7]    ──►  a.n is [1, 7]
//! ```
//! DataFusion hands such a condition on to an operator's input as one on the first column there
//! that is called like that. So between an operator and an input with columns of one name stands a
//! [`Doubtful`] while conditions are handed on, which lets pass only those that are about the
//! column that they were made for.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use datafusion::arrow::datatypes::Schema;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::filter_pushdown::FilterPushdown;
use datafusion::physical_plan::filter_pushdown::{
    ChildFilterDescription, FilterDescription, FilterPushdownPhase,
};
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan};

use crate::exec::around::around_rows;
use crate::exec::awaited::awaiting;

/// Hands what operators are going to learn on to the scans below them.
///
/// # Errors
/// What DataFusion reports when it rebuilds a node.
pub(crate) fn link(
    plan: Arc<dyn ExecutionPlan>,
    options: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    let rule = FilterPushdown::new_post_optimization();
    if !plan.exists(|node| Ok(shared_names(&node.schema()).next().is_some()))? {
        return awaiting(rule.optimize(plan, options)?);
    }
    let guarded = plan.transform_up(|node| {
        let doubtful = shared_names(&node.schema()).next().is_some();
        Ok(match doubtful {
            true => Transformed::yes(Arc::new(Doubtful { input: node }) as Arc<dyn ExecutionPlan>),
            false => Transformed::no(node),
        })
    })?;
    let linked = rule.optimize(guarded.data, options)?;
    let freed = linked.transform_up(|node| {
        Ok(match node.downcast_ref::<Doubtful>() {
            Some(doubtful) => Transformed::yes(doubtful.input.clone()),
            None => Transformed::no(node),
        })
    })?;
    awaiting(freed.data)
}

/// The columns that have the name of another one.
fn shared_names(schema: &Schema) -> impl Iterator<Item = usize> {
    let mut seen: HashMap<&str, usize> = HashMap::with_capacity(schema.fields().len());
    for field in schema.fields() {
        *seen.entry(field.name()).or_default() += 1;
    }
    let shared: Vec<usize> = schema
        .fields()
        .iter()
        .enumerate()
        .filter(|(_, field)| seen[field.name().as_str()] > 1)
        .map(|(at, _)| at)
        .collect();
    shared.into_iter()
}

/// The rule of the physical optimizer that links.
#[derive(Debug)]
pub(crate) struct LinkByNames;

impl PhysicalOptimizerRule for LinkByNames {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        link(plan, config)
    }

    fn name(&self) -> &str {
        LINKING
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// What DataFusion calls its rule.
pub(crate) const LINKING: &str = "FilterPushdown(Post)";

/// An operator among whose columns some have one name.
#[derive(Clone, Debug)]
struct Doubtful {
    input: Arc<dyn ExecutionPlan>,
}

impl Doubtful {
    /// The columns of which a condition here is surely one of theirs. Whoever has handed it on by
    /// its name means the first of that name by now, whichever it was; another one is told by the
    /// operator above itself, and only a hash join goes on by places.
    fn certain(&self) -> HashSet<usize> {
        let schema = self.input.schema();
        let by_places = self.input.downcast_ref::<HashJoinExec>().is_some();
        let shared: HashSet<usize> = shared_names(&schema).collect();
        let first = |at: usize| schema.index_of(schema.field(at).name()).is_ok_and(|n| n == at);
        (0..schema.fields().len())
            .filter(|at| !shared.contains(at) || (by_places && !first(*at)))
            .collect()
    }
}

impl DisplayAs for Doubtful {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Doubtful")
    }
}

impl ExecutionPlan for Doubtful {
    around_rows!();

    fn name(&self) -> &str {
        "Doubtful"
    }

    fn gather_filters_for_pushdown(
        &self,
        _: FilterPushdownPhase,
        parent_filters: Vec<Arc<dyn PhysicalExpr>>,
        _: &ConfigOptions,
    ) -> Result<FilterDescription> {
        let certain = self.certain();
        let is_certain = |filter: &&Arc<dyn PhysicalExpr>| {
            collect_columns(filter).iter().all(|column| certain.contains(&column.index()))
        };
        // As conditions of its own, since those from above are handed on by name.
        let own = parent_filters.iter().filter(is_certain).cloned().collect();
        let child = ChildFilterDescription::all_unsupported(&parent_filters);
        Ok(FilterDescription::new().with_child(child.with_self_filters(own)))
    }

    fn execute(
        &self,
        partition: usize,
        task: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        self.input.execute(partition, task)
    }
}
