//! Subqueries inside expressions.
//!
//! A subquery is a function of the outer columns it names. Each distinct row of arguments runs its
//! plan once; the result is kept for the statement. A subquery without outer columns thus runs
//! once, and `x IN (SELECT ...)` then probes a hash set.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use braid_scalar::{Bound, CmpOp, EvalContext, compare};
use braid_types::{ArrayValue, Datum, GroupKey, SqlError, SqlResult, SqlState, SqlType};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::execution::SessionState;
use datafusion::logical_expr::{Expr, LogicalPlan};
use parking_lot::Mutex;

use super::scalar::RowFunction;
use crate::arrow_form;
use crate::error::from_df;
use crate::run::collect_rows;

/// What the subquery's rows become.
pub enum Shape {
    /// One value; NULL for no row.
    Scalar,
    /// Whether there is a row.
    Exists,
    /// `needle IN (...)`: the needles come first among the arguments; each row's values are
    /// converted by these expressions before they are compared.
    In(Vec<Bound>),
    /// `needle op ANY (...)`, or ALL with the flag.
    Quantified(CmpOp, Bound, bool),
    /// `ARRAY(...)` of this element type.
    Array(SqlType),
}

/// The set of an IN subquery.
struct Members {
    set: HashSet<GroupKey>,
    /// Rows with a NULL in them.
    partial: Vec<Vec<Datum>>,
}

enum Kept {
    Value(Datum),
    Members(Arc<Members>),
    List(Arc<Vec<Datum>>),
}

/// See the [module documentation](self).
pub struct Subquery {
    /// Plan with placeholders for outer columns.
    pub plan: LogicalPlan,
    /// Types of the plan's columns.
    pub types: Vec<SqlType>,
    /// Placeholder names and types, in the order of the arguments after the needles.
    pub outer: Vec<(String, SqlType)>,
    /// What the rows become.
    pub shape: Shape,
    /// Plans and runs it.
    pub state: Arc<SessionState>,
    /// For conversions.
    pub ctx: EvalContext,
    /// Results by outer values.
    pub kept: Mutex<HashMap<GroupKey, KeptResult>>,
    /// The plan optimized once.
    pub optimized: Mutex<Option<LogicalPlan>>,
}

/// A kept result; opaque outside.
pub struct KeptResult(Kept);

/// Distinct outer rows whose results are kept.
const MAX_KEPT: usize = 10_000;

impl Subquery {
    fn needles(&self) -> usize {
        match &self.shape {
            Shape::In(converters) => converters.len(),
            Shape::Quantified(..) => 1,
            _ => 0,
        }
    }

    fn run(&self, outer: &[Datum]) -> SqlResult<Vec<Vec<Datum>>> {
        let plan = {
            let mut optimized = self.optimized.lock();
            match &*optimized {
                Some(plan) => plan.clone(),
                None => {
                    let plan = self.state.optimize(&self.plan).map_err(from_df)?;
                    optimized.insert(plan).clone()
                }
            }
        };
        let values: HashMap<&str, (usize, &SqlType)> = self
            .outer
            .iter()
            .enumerate()
            .map(|(at, (name, ty))| (name.as_str(), (at, ty)))
            .collect();
        let filled = fill(plan, &|name| {
            values.get(name).map(|(at, ty)| arrow_form::scalar(&outer[*at], ty))
        })?;
        let limit = match self.shape {
            Shape::Scalar => 2,
            Shape::Exists => 1,
            _ => usize::MAX,
        };
        collect_rows(&self.state, filled, &self.types, limit)
    }

    fn compute(&self, outer: &[Datum]) -> SqlResult<Kept> {
        let rows = self.run(outer)?;
        Ok(match &self.shape {
            Shape::Scalar if rows.len() > 1 => {
                return Err(SqlError::new(
                    SqlState::CARDINALITY_VIOLATION,
                    "more than one row returned by a subquery used as an expression",
                ));
            }
            Shape::Scalar => Kept::Value(
                rows.into_iter().next().and_then(|r| r.into_iter().next()).unwrap_or(Datum::Null),
            ),
            Shape::Exists => Kept::Value(Datum::Bool(!rows.is_empty())),
            Shape::Array(element) => {
                let items = rows.into_iter().filter_map(|r| r.into_iter().next()).collect();
                Kept::Value(Datum::Array(Arc::new(ArrayValue { element: element.clone(), items })))
            }
            Shape::In(converters) => {
                let mut members = Members { set: HashSet::new(), partial: Vec::new() };
                for row in rows {
                    let row: Vec<Datum> = converters
                        .iter()
                        .map(|c| c.eval(&row, &self.ctx))
                        .collect::<SqlResult<_>>()?;
                    if row.iter().any(Datum::is_null) {
                        members.partial.push(row);
                    } else {
                        members.set.insert(GroupKey(row));
                    }
                }
                Kept::Members(Arc::new(members))
            }
            Shape::Quantified(_, converter, _) => {
                let values = rows
                    .iter()
                    .map(|row| converter.eval(row, &self.ctx))
                    .collect::<SqlResult<Vec<_>>>()?;
                Kept::List(Arc::new(values))
            }
        })
    }

    fn answer(&self, kept: &Kept, needles: &[Datum]) -> Datum {
        match (kept, &self.shape) {
            (Kept::Value(value), _) => value.clone(),
            (Kept::Members(members), _) => member(members, needles),
            (Kept::List(values), Shape::Quantified(op, _, all)) => {
                let mut unknown = false;
                for value in values.iter() {
                    match compare(*op, &needles[0], value) {
                        Datum::Bool(b) if b != *all => return Datum::Bool(!all),
                        Datum::Bool(_) => {}
                        _ => unknown = true,
                    }
                }
                if unknown { Datum::Null } else { Datum::Bool(*all) }
            }
            (Kept::List(_), _) => Datum::Null,
        }
    }
}

/// SQL's IN: true if equal to some row, unknown if a NULL could make it equal, else false.
fn member(members: &Members, needles: &[Datum]) -> Datum {
    let complete = !needles.iter().any(Datum::is_null);
    if complete && members.set.contains(&GroupKey(needles.to_vec())) {
        return Datum::Bool(true);
    }
    let possible = |row: &[Datum]| {
        row.iter()
            .zip(needles)
            .all(|(a, b)| !matches!(compare(CmpOp::Eq, a, b), Datum::Bool(false)))
    };
    let unknown = members.partial.iter().any(|row| possible(row))
        || (!complete && members.set.iter().any(|key| possible(&key.0)));
    if unknown { Datum::Null } else { Datum::Bool(false) }
}

impl RowFunction for Subquery {
    fn call(&self, args: &[Datum], _: &EvalContext) -> SqlResult<Datum> {
        let (needles, outer) = args.split_at(self.needles());
        let key = GroupKey(outer.to_vec());
        if let Some(found) = self.kept.lock().get(&key) {
            return Ok(self.answer(&found.0, needles));
        }
        let computed = self.compute(outer)?;
        let answer = self.answer(&computed, needles);
        let mut kept = self.kept.lock();
        if kept.len() >= MAX_KEPT {
            kept.clear();
        }
        kept.insert(key, KeptResult(computed));
        Ok(answer)
    }
}

/// Replaces placeholders of a plan by literals.
///
/// # Errors
/// What DataFusion reports when it rebuilds a node.
pub fn fill(
    plan: LogicalPlan,
    value: &dyn Fn(&str) -> Option<datafusion::common::ScalarValue>,
) -> SqlResult<LogicalPlan> {
    plan.transform_up_with_subqueries(|node| {
        let filled = node.map_expressions(|expr| {
            expr.transform_up(|e| match &e {
                Expr::Placeholder(p) => match value(&p.id) {
                    Some(v) => Ok(Transformed::yes(Expr::Literal(v, None))),
                    None => Ok(Transformed::no(e)),
                },
                _ => Ok(Transformed::no(e)),
            })
        })?;
        if filled.transformed { filled.map_data(LogicalPlan::recompute_schema) } else { Ok(filled) }
    })
    .map(|t| t.data)
    .map_err(from_df)
}
