//! Rows of FROM whose columns are computed even if nobody asks for them.
//!
//! ```text
//!   SELECT count(*) FROM (SELECT nextval('s') FROM t) x      the sequence moves for each row of t
//!
//!   Aggregate count(*)
//!     Evaluated              asks for the columns that are volatile
//!       Projection nextval
//! ```
//! What a volatile function does counts, not only what it gives; rules that leave out columns and
//! put projections together do not know that. In a physical plan, too, the node stands between
//! projections.

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashSet};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchemaRef, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{
    Expr, Extension, LogicalPlan, UserDefinedLogicalNode, UserDefinedLogicalNodeCore, Volatility,
};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan};
use datafusion::physical_planner::{ExtensionPlanner, PhysicalPlanner};

use crate::exec::around::around_rows;
use crate::exec::scalar::is_only_pinned;
use crate::exec::set_returning::Records;

const EVALUATED: &str = "Evaluated";

/// The plan, whose columns are all computed that a volatile function gives.
///
/// # Errors
/// Of walking through the plan.
pub(crate) fn evaluated(plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut volatile = BTreeSet::new();
    plan.apply(|node| {
        if let LogicalPlan::Projection(projection) = node {
            let outputs = projection.expr.iter().zip(projection.schema.fields());
            let changing = outputs.filter(|(expr, _)| changes(expr) && !is_unnested(expr));
            volatile.extend(changing.map(|(_, field)| field.name().clone()));
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    if volatile.is_empty() {
        return Ok(plan);
    }
    let outputs: BTreeSet<String> = names(&plan).cloned().collect();
    // What is called otherwise further up may be any of them.
    let columns = if volatile.is_subset(&outputs) { volatile } else { outputs };
    let node = Arc::new(Evaluated { columns, input: plan });
    Ok(LogicalPlan::Extension(Extension { node }))
}

/// Whether computing it counts: not if it is volatile only to stay where it is, so that nobody
/// computes what fails for nothing.
fn changes(expr: &Expr) -> bool {
    let calls = |e: &Expr| match e {
        Expr::ScalarFunction(call) => {
            call.func.signature().volatility == Volatility::Volatile && !is_only_pinned(e)
        }
        _ => false,
    };
    expr.is_volatile() && expr.exists(|e| Ok(calls(e))).unwrap_or(true)
}

/// Rows are multiplied by what is unnested: it is computed in any case.
fn is_unnested(expr: &Expr) -> bool {
    match expr {
        Expr::Alias(alias) => is_unnested(&alias.expr),
        Expr::ScalarFunction(call) => Records::of(&call.func).is_some(),
        _ => false,
    }
}

fn names(plan: &LogicalPlan) -> impl Iterator<Item = &String> {
    plan.schema().fields().iter().map(|field| field.name())
}

/// See the [module documentation](self).
#[derive(Clone, Debug, PartialEq, Eq)]
struct Evaluated {
    /// Which are computed.
    columns: BTreeSet<String>,
    input: LogicalPlan,
}

impl Hash for Evaluated {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.columns.hash(state);
        self.input.hash(state);
    }
}

impl PartialOrd for Evaluated {
    fn partial_cmp(&self, other: &Evaluated) -> Option<Ordering> {
        self.input.partial_cmp(&other.input)
    }
}

impl UserDefinedLogicalNodeCore for Evaluated {
    fn name(&self) -> &str {
        EVALUATED
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        self.input.schema()
    }

    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(EVALUATED)
    }

    fn with_exprs_and_inputs(
        &self,
        _: Vec<Expr>,
        mut inputs: Vec<LogicalPlan>,
    ) -> Result<Evaluated> {
        let input = inputs.pop().unwrap_or_else(|| self.input.clone());
        Ok(Evaluated { columns: self.columns.clone(), input })
    }

    fn necessary_children_exprs(&self, wanted: &[usize]) -> Option<Vec<Vec<usize>>> {
        let all = names(&self.input).enumerate();
        let needed = all.filter(|(at, name)| wanted.contains(at) || self.columns.contains(*name));
        Some(vec![needed.map(|(at, _)| at).collect()])
    }

    fn supports_limit_pushdown(&self) -> bool {
        true
    }

    /// A condition over others first chooses the rows.
    fn prevent_predicate_push_down_columns(&self) -> HashSet<String> {
        self.columns.iter().cloned().collect()
    }
}

/// Plans the node.
pub(crate) struct EvaluatedPlanner;

#[async_trait]
impl ExtensionPlanner for EvaluatedPlanner {
    async fn plan_extension(
        &self,
        _: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _: &[&LogicalPlan],
        inputs: &[Arc<dyn ExecutionPlan>],
        _: &dyn Session,
        _: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let (Some(_), [input]) = (node.as_any().downcast_ref::<Evaluated>(), inputs) else {
            return Ok(None);
        };
        Ok(Some(Arc::new(EvaluatedExec { input: input.clone() })))
    }
}

/// The node of a physical plan: hands on what comes.
#[derive(Clone, Debug)]
struct EvaluatedExec {
    input: Arc<dyn ExecutionPlan>,
}

impl DisplayAs for EvaluatedExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(EVALUATED)
    }
}

impl ExecutionPlan for EvaluatedExec {
    around_rows!();

    fn name(&self) -> &str {
        EVALUATED
    }

    fn execute(
        &self,
        partition: usize,
        task: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        self.input.execute(partition, task)
    }
}
