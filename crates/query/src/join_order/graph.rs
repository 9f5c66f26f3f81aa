//! A group of inner joins as a graph: relations, and what connects them.
//!
//! A semi or anti join over such a group is a *check*: a relation of which no column is given, and
//! which lets some rows of the others pass, wherever in the tree it stands above those whose
//! columns it asks for.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::{Column, JoinConstraint, JoinType, NullEquality, Result};
use datafusion::logical_expr::{Expr, ExprSchemable, Join, LogicalPlan, Projection};

use super::check::Check;
use super::estimate::{Estimate, estimate};

/// More relations than this are joined as they are.
const RELATIONS_MAX: usize = 64;

/// A set of relations, by their numbers.
pub(super) type Set = u64;

/// One input of the group.
pub(super) struct Relation {
    pub(super) plan: Arc<LogicalPlan>,
    pub(super) estimate: Estimate,
    /// What it is if it only lets rows of others pass.
    pub(super) check: Option<Check>,
}

/// A column, or a column that is widened, that takes part in an equality.
pub(super) struct Member {
    pub(super) expr: Expr,
    pub(super) relation: usize,
    pub(super) distinct: f64,
}

/// A condition that is no equality of two relations.
struct Condition {
    expr: Expr,
    uses: Set,
}

/// See the [module documentation](self).
pub(super) struct Graph {
    pub(super) relations: Vec<Relation>,
    /// Members that are all equal to each other.
    pub(super) classes: Vec<Vec<Member>>,
    conditions: Vec<Condition>,
    columns: HashMap<Column, usize>,
}

/// A group while it is collected.
#[derive(Default)]
struct Collected {
    relations: Vec<Arc<LogicalPlan>>,
    checks: Vec<Join>,
    equalities: Vec<(Expr, Expr)>,
    conditions: Vec<Expr>,
}

impl Collected {
    fn add(&mut self, plan: &Arc<LogicalPlan>) {
        match plan.as_ref() {
            LogicalPlan::Join(join) if is_inner(join) => {
                self.add(&join.left);
                self.add(&join.right);
                self.equalities.extend(join.on.iter().cloned());
                self.conditions.extend(join.filter.clone());
            }
            LogicalPlan::Join(join) if is_check(join) => {
                self.add(&join.left);
                self.checks.push(join.clone());
            }
            // Columns that are left out here are left out again later.
            LogicalPlan::Projection(projection)
                if projection.expr.iter().all(|e| matches!(e, Expr::Column(_)))
                    && is_group(&projection.input) =>
            {
                self.add(&projection.input);
            }
            _ => self.relations.push(plan.clone()),
        }
    }
}

/// Whether a plan is a group of joins that can be put in order: of a single semi join only the
/// sides can be exchanged.
fn is_group(plan: &LogicalPlan) -> bool {
    fn is_join(plan: &LogicalPlan) -> bool {
        match plan {
            LogicalPlan::Join(join) => is_inner(join) || is_check(join),
            LogicalPlan::Projection(projection) => is_join(&projection.input),
            _ => false,
        }
    }
    match plan {
        LogicalPlan::Join(join) => is_inner(join) || is_check(join) && is_join(&join.left),
        _ => false,
    }
}

/// Whether a join is a check that can be done at another place.
fn is_check(join: &Join) -> bool {
    matches!(join.join_type, JoinType::LeftSemi | JoinType::LeftAnti)
        && !join.on.is_empty()
        && !join.null_aware
        && is_movable(join)
}

/// Whether a join can be done at another place with the same rows and the same errors.
fn is_inner(join: &Join) -> bool {
    join.join_type == JoinType::Inner && is_movable(join)
}

fn is_movable(join: &Join) -> bool {
    join.null_equality == NullEquality::NullEqualsNothing
        && join.on.iter().all(|(l, r)| is_plain(l) && is_plain(r))
        && join.filter.as_ref().is_none_or(|filter| !filter.is_volatile())
}

/// A column, perhaps widened: it cannot fail.
fn is_plain(expr: &Expr) -> bool {
    match expr {
        Expr::Column(_) => true,
        Expr::Cast(cast) => cast.field.data_type().is_integer() && is_plain(&cast.expr),
        _ => false,
    }
}

impl Graph {
    /// The group that begins at a node; `None` if it is none, or too large.
    pub(super) fn of(plan: &LogicalPlan) -> Result<Option<Graph>> {
        if !is_group(plan) {
            return Ok(None);
        }
        let mut collected = Collected::default();
        collected.add(&Arc::new(plan.clone()));
        if collected.relations.len() + collected.checks.len() > RELATIONS_MAX {
            return Ok(None);
        }
        let mut columns = HashMap::new();
        let mut relations = Vec::new();
        for (number, plan) in collected.relations.into_iter().enumerate() {
            let plan = Arc::new(super::groups::in_order(plan.as_ref().clone())?);
            for column in plan.schema().columns() {
                if columns.insert(column, number).is_some() {
                    return Ok(None);
                }
            }
            let estimate = estimate(&plan);
            relations.push(Relation { plan, estimate, check: None });
        }
        let (classes, conditions) = (Vec::new(), Vec::new());
        let mut graph = Graph { relations, classes, conditions, columns };
        for (left, right) in collected.equalities {
            if !graph.add_equality(&left, &right)? {
                graph.add_condition(left.eq(right));
            }
        }
        for filter in collected.conditions {
            datafusion::logical_expr::utils::split_conjunction_owned(filter)
                .into_iter()
                .for_each(|part| graph.add_condition(part));
        }
        graph.add_equalities_within();
        for join in collected.checks {
            if !graph.add_check(join)? {
                return Ok(None);
            }
        }
        // What is about no relation has no place in a tree of them.
        Ok(graph.conditions.iter().all(|c| c.uses != 0).then_some(graph))
    }

    /// Adds a semi or anti join as a relation; `false` if it is not clear what it asks for.
    fn add_check(&mut self, join: Join) -> Result<bool> {
        let plan = Arc::new(super::groups::in_order(join.right.as_ref().clone())?);
        if plan.schema().columns().iter().any(|column| self.columns.contains_key(column)) {
            return Ok(false);
        }
        let left = join.on.iter().map(|(left, _)| self.uses(left));
        let filter = join.filter.as_ref().map_or(0, |filter| self.uses(filter));
        let needs = left.fold(filter, |all, one| all | one);
        let estimate = estimate(&plan);
        let check = Check::new(join, needs, &self.relations, &self.columns, &estimate);
        self.relations.push(Relation { plan, estimate, check: Some(check) });
        Ok(true)
    }

    /// The check that a set is, if it is one.
    pub(super) fn check_of(&self, set: Set) -> Option<&Check> {
        if set.count_ones() != 1 {
            return None;
        }
        self.relations[set.trailing_zeros() as usize].check.as_ref()
    }

    /// Columns of one relation that equal the same elsewhere equal each other: a join compares one
    /// of them with the other side.
    fn add_equalities_within(&mut self) {
        let mut within = Vec::new();
        for class in &self.classes {
            for (at, member) in class.iter().enumerate() {
                let first = class[..at].iter().find(|m| m.relation == member.relation);
                within.extend(first.map(|first| first.expr.clone().eq(member.expr.clone())));
            }
        }
        within.into_iter().for_each(|equality| self.add_condition(equality));
    }

    fn uses(&self, expr: &Expr) -> Set {
        let used = expr.column_refs().into_iter().filter_map(|c| self.columns.get(c));
        used.fold(0, |set, number| set | 1 << number)
    }

    fn add_condition(&mut self, expr: Expr) {
        let uses = self.uses(&expr);
        self.conditions.push(Condition { expr, uses });
    }

    /// Notes that two members are equal; `false` if they are not of two relations and one type.
    fn add_equality(&mut self, left: &Expr, right: &Expr) -> Result<bool> {
        let (a, b) = (self.uses(left), self.uses(right));
        if a.count_ones() != 1 || b.count_ones() != 1 || a == b {
            return Ok(false);
        }
        let (a, b) = (a.trailing_zeros() as usize, b.trailing_zeros() as usize);
        let ty = |e: &Expr, n: usize| e.get_type(self.relations[n].plan.schema());
        if ty(left, a)? != ty(right, b)? {
            return Ok(false);
        }
        let (left, right) = (self.class_of(left, a), self.class_of(right, b));
        if left != right {
            let moved = self.classes.remove(left.max(right));
            self.classes[left.min(right)].extend(moved);
        }
        Ok(true)
    }

    fn class_of(&mut self, expr: &Expr, relation: usize) -> usize {
        let has = |class: &Vec<Member>| class.iter().any(|m| m.expr == *expr);
        if let Some(at) = self.classes.iter().position(has) {
            return at;
        }
        let distinct = self.relations[relation].estimate.distinct(expr);
        self.classes.push(vec![Member { expr: expr.clone(), relation, distinct }]);
        self.classes.len() - 1
    }

    /// How many conditions can be checked first when these two sets meet.
    pub(super) fn conditions_between(&self, left: Set, right: Set) -> usize {
        self.conditions.iter().filter(|c| is_between(c.uses, left, right)).count()
    }

    /// A relation with the conditions that are about it alone.
    pub(super) fn relation_plan(&self, number: usize) -> Result<LogicalPlan> {
        let plan = self.relations[number].plan.as_ref().clone();
        let own = self.conditions.iter().filter(|c| c.uses == 1 << number);
        let Some(filter) = own.map(|c| c.expr.clone()).reduce(Expr::and) else { return Ok(plan) };
        datafusion::logical_expr::LogicalPlanBuilder::from(plan).filter(filter)?.build()
    }

    /// The join of two plans over these sets.
    pub(super) fn join(
        &self,
        (left, left_set): (LogicalPlan, Set),
        (right, right_set): (LogicalPlan, Set),
    ) -> Result<LogicalPlan> {
        if let Some(check) = self.check_of(right_set) {
            return check.join(left, right, true);
        }
        if let Some(check) = self.check_of(left_set) {
            return check.join(right, left, false);
        }
        let within = |set: Set, class: &[Member]| {
            class.iter().find(|m| set & 1 << m.relation != 0).map(|m| m.expr.clone())
        };
        let pair =
            |class: &Vec<Member>| Some((within(left_set, class)?, within(right_set, class)?));
        let on = self.classes.iter().filter_map(pair).collect();
        let between = self.conditions.iter().filter(|c| is_between(c.uses, left_set, right_set));
        let filter = between.map(|c| c.expr.clone()).reduce(Expr::and);
        let join = Join::try_new(
            Arc::new(left),
            Arc::new(right),
            on,
            filter,
            JoinType::Inner,
            JoinConstraint::On,
            NullEquality::NullEqualsNothing,
            false,
        )?;
        Ok(LogicalPlan::Join(join))
    }
}

/// Whether a condition needs both sets and nothing else. One about no column at all, or about one
/// relation, is not between any.
fn is_between(uses: Set, left: Set, right: Set) -> bool {
    uses & left != 0 && uses & right != 0 && uses & !(left | right) == 0
}

/// A plan with the columns of another one, in their order.
pub(super) fn with_columns_of(plan: LogicalPlan, wanted: &LogicalPlan) -> Result<LogicalPlan> {
    if plan.schema().columns() == wanted.schema().columns() {
        return Ok(plan);
    }
    let columns = wanted.schema().columns().into_iter().map(Expr::Column).collect();
    let schema = wanted.schema().clone();
    let projection = Projection::try_new_with_schema(columns, Arc::new(plan), schema)?;
    Ok(LogicalPlan::Projection(projection))
}
