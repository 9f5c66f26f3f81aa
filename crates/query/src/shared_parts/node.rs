//! A part of a logical plan that occurs more than once.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering as Atomic};

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::{DFSchema, DFSchemaRef, Result};
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{
    Expr, LogicalPlan, UserDefinedLogicalNode, UserDefinedLogicalNodeCore,
};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, ExtensionPlanner, PhysicalPlanner};

use super::exec::PartExec;
use crate::evaluated::EvaluatedPlanner;

/// Occurrences of one part.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Group {
    pub(super) id: u64,
    /// The parameters of each occurrence.
    pub(super) constants: Vec<Vec<Expr>>,
}

impl Group {
    /// A number that no other group has.
    pub(super) fn fresh() -> u64 {
        static LAST: AtomicU64 = AtomicU64::new(0);
        LAST.fetch_add(1, Atomic::Relaxed) + 1
    }
}

/// See the [module documentation](self).
#[derive(Clone, Debug)]
pub(super) struct Part {
    group: Group,
    /// Which of them it is.
    number: usize,
    input: LogicalPlan,
}

impl Part {
    pub(super) fn new(group: Group, number: usize, input: LogicalPlan) -> Part {
        Part { group, number, input }
    }

    fn identity(&self) -> (u64, usize) {
        (self.group.id, self.number)
    }
}

impl PartialEq for Part {
    fn eq(&self, other: &Part) -> bool {
        self.identity() == other.identity() && self.input == other.input
    }
}

impl Eq for Part {}

impl Hash for Part {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.identity().hash(state);
    }
}

impl PartialOrd for Part {
    fn partial_cmp(&self, other: &Part) -> Option<Ordering> {
        self.identity().partial_cmp(&other.identity())
    }
}

impl UserDefinedLogicalNodeCore for Part {
    fn name(&self) -> &str {
        "Part"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        self.input.schema()
    }

    fn expressions(&self) -> Vec<Expr> {
        self.group.constants.iter().flatten().cloned().collect()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Part: {}", self.group.id)
    }

    fn with_exprs_and_inputs(
        &self,
        exprs: Vec<Expr>,
        mut inputs: Vec<LogicalPlan>,
    ) -> Result<Part> {
        let mut exprs = exprs.into_iter();
        let of = |one: &Vec<Expr>| exprs.by_ref().take(one.len()).collect();
        let constants = self.group.constants.iter().map(of).collect();
        let group = Group { id: self.group.id, constants };
        let input = inputs.pop().unwrap_or_else(|| self.input.clone());
        Ok(Part { group, number: self.number, input })
    }

    /// Another occurrence may need what nobody asks this one for.
    fn necessary_children_exprs(&self, _: &[usize]) -> Option<Vec<Vec<usize>>> {
        Some(vec![(0..self.input.schema().fields().len()).collect()])
    }
}

/// Plans the nodes that are ours, and everything else as DataFusion does.
#[derive(Debug)]
pub(crate) struct PartPlanner;

#[async_trait]
impl QueryPlanner for PartPlanner {
    async fn create_physical_plan(
        &self,
        plan: &LogicalPlan,
        session: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let planner = DefaultPhysicalPlanner::with_extension_planners(vec![
            Arc::new(PartPlanner),
            Arc::new(EvaluatedPlanner),
        ]);
        planner.create_physical_plan(plan, session).await
    }
}

#[async_trait]
impl ExtensionPlanner for PartPlanner {
    async fn plan_extension(
        &self,
        planner: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _: &[&LogicalPlan],
        inputs: &[Arc<dyn ExecutionPlan>],
        session: &dyn Session,
        context: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let (Some(part), [input]) = (node.as_any().downcast_ref::<Part>(), inputs) else {
            return Ok(None);
        };
        let nothing = DFSchema::empty();
        let mut values = Vec::new();
        for constants in &part.group.constants {
            let constants = constants
                .iter()
                .map(|expr| planner.create_physical_expr(expr, &nothing, session, context));
            values.push(constants.collect::<Result<Vec<_>>>()?);
        }
        let exec = PartExec::new(part.group.id, (part.number, values), input.clone());
        Ok(Some(Arc::new(exec)))
    }
}
