//! Planning that ends: bounded in size, and stopped when it is asked to.
//!
//! Optimizers rewrite a plan rule by rule, and some rules need time that grows with the cube of the
//! number of tables. Three things keep that within bounds:
//!
//! ```text
//!   each rule, at each node     looks at the cancel flag first
//!   order of inner joins        is looked for among few tables only; more are joined as written
//!   depth and size of a plan    beyond the limits: 54001, before any rule has seen it
//! ```
//! Operators and rules recurse; the limit of depth is what a connection's stack can hold.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use braid_types::{SqlError, SqlResult, SqlState};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{JoinType, Result};
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::optimize_projections::OptimizeProjections;
use datafusion::optimizer::optimizer::{ApplyOrder, Optimizer};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use datafusion::physical_optimizer::optimizer::{
    PhysicalOptimizer, PhysicalOptimizerContext, PhysicalOptimizerRule,
};
use datafusion::physical_plan::ExecutionPlan;

use crate::bare_groups::BareGroups;
use crate::distinct_groups::DistinctGroups;
use crate::exec::partitions::in_order::UnionsInOrder;
use crate::exec::project_set::ProjectSets;
use crate::exec::stoppable::check;
use crate::exec::windows::CountedWindows;
use crate::learned_names::{LINKING, LinkByNames};
use crate::once_conditions::OnceConditions;
use crate::short_memory::{SortedJoins, WholeSorts};
use crate::top_rows::TopRows;

/// Inner joins among which the optimizer looks for a good order.
const ORDERED_JOINS: usize = 32;
/// Longest way from the top of a plan to a table.
const DEPTH_MAX: usize = 700;
/// Most nodes of a plan.
const NODES_MAX: usize = 6_000;

type Rule = Arc<dyn OptimizerRule + Send + Sync>;
type PhysicalRule = Arc<dyn PhysicalOptimizerRule + Send + Sync>;

thread_local! {
    /// The flag that stops what this thread plans.
    static STOP: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

/// Plans something on this thread, which the flag stops. Plans are made by one thread each, and the
/// rules are the same for all of them.
pub(crate) fn stopping_at<T>(cancel: &Arc<AtomicBool>, plan: impl FnOnce() -> T) -> T {
    let outer = STOP.replace(Some(Arc::clone(cancel)));
    let result = plan();
    STOP.set(outer);
    result
}

/// 57014 if what this thread plans shall stop. Rules may take long at one node, but all of them ask
/// our tables, scans and functions again and again, which look here, too.
pub(crate) fn check_stop() -> Result<()> {
    STOP.with_borrow(|stop| stop.as_ref().map_or(Ok(()), |cancel| check(cancel)))
}

/// The rules for plans.
pub(crate) fn rules() -> Vec<Rule> {
    let watched = |rule: Rule| -> Rule {
        let few_joins = rule.name() == "eliminate_cross_join";
        Arc::new(Watched { rule, few_joins })
    };
    let first: Rule = Arc::new(OnceConditions);
    let own: [Rule; 3] = [Arc::new(TopRows), Arc::new(DistinctGroups), Arc::new(BareGroups)];
    let rules = std::iter::once(first).chain(Optimizer::new().rules).chain(own);
    rules.map(watched).collect()
}

/// The rules for plans whose joins were put in order.
pub(crate) fn rules_after_ordering() -> Optimizer {
    Optimizer::with_rules(vec![Arc::new(OptimizeProjections::new()), Arc::new(BareGroups)])
}

/// As [`rules`], for physical plans.
///
/// `short_memory`: nothing holds a whole input that cannot spill it, see [`SortedJoins`] and
/// [`WholeSorts`]. `threads`: how many read.
pub(crate) fn physical_rules(short_memory: bool, threads: usize) -> Vec<PhysicalRule> {
    let mut rules: Vec<PhysicalRule> = vec![Arc::new(ProjectSets)];
    if threads == 1 {
        rules.push(Arc::new(UnionsInOrder));
    }
    for rule in PhysicalOptimizer::new().rules {
        // It moves conditions below projections that can fail, before the conditions that stand
        // there; scans have got theirs from the logical plan. (The rule of the same name at the end
        // fills in what joins and sorts learn while they run.)
        if rule.name() == "FilterPushdown" {
            continue;
        }
        let rule = match rule.name() {
            LINKING => Arc::new(LinkByNames) as PhysicalRule,
            _ => rule,
        };
        let selects = rule.name() == "join_selection";
        rules.push(Arc::new(WatchedPhysical { rule }));
        // Before the rule that adds the sorts.
        if short_memory && selects {
            rules.push(Arc::new(SortedJoins));
        }
    }
    if short_memory {
        rules.push(Arc::new(WholeSorts));
    }
    rules.push(Arc::new(CountedWindows));
    rules
}

/// A rule that stops.
#[derive(Debug)]
struct Watched {
    rule: Rule,
    /// It is left out when there are many joins.
    few_joins: bool,
}

impl OptimizerRule for Watched {
    fn name(&self) -> &str {
        self.rule.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.rule.apply_order()
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        check_stop()?;
        if self.few_joins && inner_joins(&plan) > ORDERED_JOINS {
            return Ok(Transformed::no(plan));
        }
        self.rule.rewrite(plan, config)
    }
}

fn inner_joins(plan: &LogicalPlan) -> usize {
    let mut count = 0;
    let counted = plan.apply_with_subqueries(|node| {
        if let LogicalPlan::Join(join) = node {
            count += usize::from(join.join_type == JoinType::Inner);
        }
        Ok(TreeNodeRecursion::Continue)
    });
    if counted.is_ok() { count } else { usize::MAX }
}

/// A physical rule that stops.
#[derive(Debug)]
struct WatchedPhysical {
    rule: PhysicalRule,
}

impl PhysicalOptimizerRule for WatchedPhysical {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        check_stop()?;
        self.rule.optimize(plan, config)
    }

    fn optimize_with_context(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        context: &dyn PhysicalOptimizerContext,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        check_stop()?;
        self.rule.optimize_with_context(plan, context)
    }

    fn name(&self) -> &str {
        self.rule.name()
    }

    fn schema_check(&self) -> bool {
        self.rule.schema_check()
    }
}

/// Refuses plans that are too deep or too large.
///
/// # Errors
/// 54001 with the limit.
pub(crate) fn check_size(plan: &LogicalPlan) -> SqlResult<()> {
    // By hand: what measures the depth must not need the stack for it.
    let mut waiting = vec![(plan, 1)];
    let mut nodes = 0;
    while let Some((node, depth)) = waiting.pop() {
        nodes += 1;
        if depth > DEPTH_MAX {
            return Err(too_complex(format!("its plan is deeper than {DEPTH_MAX} operators")));
        }
        if nodes > NODES_MAX {
            return Err(too_complex(format!("its plan has more than {NODES_MAX} operators")));
        }
        waiting.extend(node.inputs().into_iter().map(|input| (input, depth + 1)));
    }
    Ok(())
}

/// 54001 for a query.
pub(crate) fn too_complex(detail: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, "statement too complex")
        .with_detail(detail)
        .with_hint("Divide it into several statements, or keep parts in a temporary result table.")
}
