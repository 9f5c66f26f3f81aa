//! Which parts of a plan are the same.
//!
//! Two parts are compared by what they read and how, with columns named by the number of their scan
//! and their place in its table, and parameters by the order in which they come:
//!
//! ```text
//!   Join s.nation = n.key                Scan supplier
//!     Scan supplier s           ──►      Scan nation, 1.1 = ?0
//!     Scan nation n, n.name = $3         Join 0.3 = 1.0
//! ```
//! Which columns they give makes no difference: each can give more.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use datafusion::arrow::datatypes::FieldRef;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, JoinType, NullEquality, Result, internal_err};
use datafusion::logical_expr::logical_plan::TableScanBuilder;
use datafusion::logical_expr::{Expr, Extension, Filter, Join, LogicalPlan, Projection, TableScan};

use super::node::{Group, Part};
use crate::exec::constant::{is_constant, number};
use crate::exec::table::facts_of;
use crate::join_order::rows_expected;
use crate::planning::check_stop;

/// What reads fewer rows is done twice before it would be kept once.
const READ_LEAST: f64 = 10_000.0;
/// So many times as many rows must be read as kept.
const READ_FOR_EACH: f64 = 4.0;
/// Rows that are kept at most, as far as that is known.
const KEPT_MOST: f64 = 250_000.0;

/// A column by its scan, in the order in which they stand in the part, and its ordinal.
type Place = (usize, usize);

/// One thing that a part does.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Step {
    /// Reads a table, of which the filters are wanted.
    Scan(u32, Vec<Expr>),
    Filter(Expr),
    Join(JoinType, NullEquality, bool, Vec<(Expr, Expr)>, Option<Expr>),
}

/// See the [module documentation](self).
#[derive(Default)]
struct Shape {
    /// The inputs of each come before it.
    steps: Vec<Step>,
    /// Parameters, in the order in which they come.
    constants: Vec<Expr>,
    places: HashMap<Column, Place>,
    scans: usize,
    /// Rows of all tables that it reads.
    read: f64,
}

impl Shape {
    /// The shape of a part; `None` if it has another operator, or cannot be computed once for all.
    fn of(plan: &LogicalPlan) -> Option<Shape> {
        let mut shape = Shape::default();
        shape.add(plan)?;
        Some(shape)
    }

    fn add(&mut self, plan: &LogicalPlan) -> Option<()> {
        match plan {
            LogicalPlan::TableScan(scan) if scan.fetch.is_none() => self.add_scan(scan),
            LogicalPlan::Filter(filter) => {
                self.add(&filter.input)?;
                let predicate = self.neutral(&filter.predicate)?;
                self.steps.push(Step::Filter(predicate));
                Some(())
            }
            LogicalPlan::Projection(projection) if is_choice(projection) => {
                self.add(&projection.input)
            }
            LogicalPlan::Join(join) => {
                self.add(&join.left)?;
                self.add(&join.right)?;
                let pairs = join.on.iter();
                let on = pairs.map(|(l, r)| Some((self.neutral(l)?, self.neutral(r)?)));
                let on = on.collect::<Option<Vec<_>>>()?;
                let filter = match &join.filter {
                    Some(filter) => Some(self.neutral(filter)?),
                    None => None,
                };
                let (ty, nulls) = (join.join_type, join.null_equality);
                self.steps.push(Step::Join(ty, nulls, join.null_aware, on, filter));
                Some(())
            }
            _ => None,
        }
    }

    fn add_scan(&mut self, scan: &TableScan) -> Option<()> {
        let facts = facts_of(&scan.source)?;
        for (ordinal, field) in scan.source.schema().fields().iter().enumerate() {
            let column = Column::new(Some(scan.table_name.clone()), field.name());
            if self.places.insert(column, (self.scans, ordinal)).is_some() {
                return None;
            }
        }
        self.scans += 1;
        self.read += facts.rows();
        let filters = scan.filters.iter().map(|filter| self.neutral(filter));
        let filters = filters.collect::<Option<Vec<_>>>()?;
        self.steps.push(Step::Scan(facts.layout().table.id, filters));
        Some(())
    }

    /// An expression without names; `None` if it is not the same wherever it is computed.
    fn neutral(&mut self, expr: &Expr) -> Option<Expr> {
        if expr.is_volatile() {
            return None;
        }
        let mut known = true;
        let neutral = expr.clone().transform_up(|part| {
            Ok(match part {
                Expr::Column(column) => match self.places.get(&column) {
                    Some((scan, ordinal)) => {
                        let name = format!("{scan}.{ordinal}");
                        Transformed::yes(Expr::Column(Column::from_name(name)))
                    }
                    None => {
                        known = false;
                        Transformed::no(Expr::Column(column))
                    }
                },
                Expr::Placeholder(mut parameter) => {
                    let expr = Expr::Placeholder(parameter.clone());
                    known &= is_constant(&expr) && number(&expr).is_some();
                    parameter.id = format!("?{}", self.constants.len());
                    let field = parameter.field.take();
                    let named = |field: FieldRef| field.as_ref().clone().with_name(&parameter.id);
                    parameter.field = field.map(|field| Arc::new(named(field)));
                    self.constants.push(expr);
                    Transformed::yes(Expr::Placeholder(parameter))
                }
                Expr::Exists(_)
                | Expr::InSubquery(_)
                | Expr::ScalarSubquery(_)
                | Expr::SetComparison(_)
                | Expr::OuterReferenceColumn(..) => {
                    known = false;
                    Transformed::no(part)
                }
                other => Transformed::no(other),
            })
        });
        neutral.ok().filter(|_| known).map(|neutral| neutral.data)
    }

    /// Where the columns of the part come from; `None` for a mark of a join.
    fn given(&self, plan: &LogicalPlan) -> Option<Vec<Place>> {
        plan.schema().columns().iter().map(|column| self.places.get(column).copied()).collect()
    }
}

/// Whether a projection only leaves columns out.
fn is_choice(projection: &Projection) -> bool {
    projection.expr.iter().all(|expr| matches!(expr, Expr::Column(_)))
}

/// The shape of what may be a part: a join of which few rows are left.
fn candidate(plan: &LogicalPlan) -> Option<(Shape, Vec<Place>)> {
    let LogicalPlan::Join(_) = plan else { return None };
    let shape = Shape::of(plan)?;
    let rows = rows_expected(plan);
    let is_worth_it = shape.read >= READ_LEAST.max(rows * READ_FOR_EACH) && rows <= KEPT_MOST;
    let given = shape.given(plan)?;
    is_worth_it.then_some((shape, given))
}

/// Occurrences of one part.
#[derive(Default)]
struct Occurrences {
    /// What any of them gives.
    given: BTreeSet<Place>,
    constants: Vec<Vec<Expr>>,
    /// Those that were replaced.
    replaced: usize,
    group: u64,
}

type Parts = HashMap<Vec<Step>, Occurrences>;

/// Whether who reads a node's inputs may stop before their end.
fn is_hurried(plan: &LogicalPlan, above: bool) -> bool {
    match plan {
        LogicalPlan::Limit(_) => true,
        LogicalPlan::Sort(_) | LogicalPlan::Aggregate(_) | LogicalPlan::Window(_) => false,
        _ => above,
    }
}

/// Counts the shapes below a node. `all`: of all nodes, else only of those that are not in a part
/// that is known to occur more than once. `hurried`: who reads it may stop after some rows.
fn count(plan: &LogicalPlan, hurried: bool, known: Option<&Parts>, out: &mut Parts) -> Result<()> {
    check_stop()?;
    let hurried = is_hurried(plan, hurried);
    if !hurried && let Some((shape, given)) = candidate(plan) {
        let is_part = known.is_some_and(|parts| parts.contains_key(&shape.steps));
        if known.is_none() || is_part {
            let occurrences = out.entry(shape.steps).or_default();
            occurrences.given.extend(given);
            occurrences.constants.push(shape.constants);
        }
        if is_part {
            return Ok(());
        }
    }
    plan.inputs().into_iter().try_for_each(|input| count(input, hurried, known, out))
}

fn reads_a_table_twice(plan: &LogicalPlan) -> Result<bool> {
    let mut tables = HashSet::new();
    plan.exists(|node| {
        let LogicalPlan::TableScan(scan) = node else { return Ok(false) };
        Ok(facts_of(&scan.source).is_some_and(|facts| !tables.insert(facts.layout().table.id)))
    })
}

/// The plan with parts that occur more than once marked as such.
///
/// # Errors
/// What DataFusion reports when it rebuilds a node.
pub(crate) fn shared(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    if !reads_a_table_twice(&plan)? {
        return Ok(Transformed::no(plan));
    }
    let several = |parts: &mut Parts| parts.retain(|_, found| found.constants.len() > 1);
    let mut all = Parts::new();
    count(&plan, false, None, &mut all)?;
    several(&mut all);
    if all.is_empty() {
        return Ok(Transformed::no(plan));
    }
    // What lies in a part occurs as often as that, and need not be one itself.
    let mut parts = Parts::new();
    count(&plan, false, Some(&all), &mut parts)?;
    several(&mut parts);
    for found in parts.values_mut() {
        found.group = Group::fresh();
    }
    marked(plan, false, &mut parts)
}

/// As [`count`], but puts the parts in.
fn marked(plan: LogicalPlan, hurried: bool, parts: &mut Parts) -> Result<Transformed<LogicalPlan>> {
    let hurried = is_hurried(&plan, hurried);
    if !hurried
        && let Some((shape, _)) = candidate(&plan)
        && let Some(found) = parts.get_mut(&shape.steps)
    {
        let part = part_of(&plan, &shape, found)?;
        found.replaced += 1;
        return Ok(Transformed::yes(part));
    }
    plan.map_children(|input| marked(input, hurried, parts))
}

/// One occurrence: its columns, chosen from all that the part gives.
fn part_of(plan: &LogicalPlan, shape: &Shape, all: &Occurrences) -> Result<LogicalPlan> {
    if all.constants.get(all.replaced) != Some(&shape.constants) {
        return internal_err!("parts of a plan come in another order");
    }
    let input = widened(plan, &all.given, &mut 0)?;
    let names: HashMap<Place, &Column> = shape.places.iter().map(|(c, at)| (*at, c)).collect();
    let columns = all.given.iter().filter_map(|at| Some(Expr::Column((*names.get(at)?).clone())));
    let input = Projection::try_new(columns.collect(), Arc::new(input))?;
    let group = Group { id: all.group, constants: all.constants.clone() };
    let part = Part::new(group, all.replaced, LogicalPlan::Projection(input));
    let part = LogicalPlan::Extension(Extension { node: Arc::new(part) });
    let wanted = plan.schema().columns().into_iter().map(Expr::Column).collect();
    let chosen = Projection::try_new_with_schema(wanted, Arc::new(part), plan.schema().clone())?;
    Ok(LogicalPlan::Projection(chosen))
}

/// A part that leaves none of these columns out.
fn widened(plan: &LogicalPlan, given: &BTreeSet<Place>, scans: &mut usize) -> Result<LogicalPlan> {
    Ok(match plan {
        LogicalPlan::TableScan(scan) => {
            let own = given.range((*scans, 0)..(*scans + 1, 0)).map(|(_, ordinal)| *ordinal);
            *scans += 1;
            let projection = scan.projection.as_ref().map(|projection| {
                let all: BTreeSet<usize> = projection.iter().copied().chain(own).collect();
                all.into_iter().collect()
            });
            let (name, source) = (scan.table_name.clone(), scan.source.clone());
            let all = TableScanBuilder::new(name, source).with_projection(projection);
            LogicalPlan::TableScan(all.with_filters(scan.filters.clone()).build()?)
        }
        LogicalPlan::Projection(projection) => widened(&projection.input, given, scans)?,
        LogicalPlan::Filter(filter) => {
            let input = Arc::new(widened(&filter.input, given, scans)?);
            LogicalPlan::Filter(Filter::try_new(filter.predicate.clone(), input)?)
        }
        LogicalPlan::Join(join) => {
            let left = Arc::new(widened(&join.left, given, scans)?);
            let right = Arc::new(widened(&join.right, given, scans)?);
            LogicalPlan::Join(Join::try_new(
                left,
                right,
                join.on.clone(),
                join.filter.clone(),
                join.join_type,
                join.join_constraint,
                join.null_equality,
                join.null_aware,
            )?)
        }
        other => other.clone(),
    })
}
