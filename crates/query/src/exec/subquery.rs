//! Subqueries inside expressions.
//!
//! A subquery that did not become a join is a function of the outer columns it names. It is told
//! the arguments of a batch of rows beforehand and runs one plan for all that are new
//! ([`crate::decorrelate::keyed`]); where that is not possible, each distinct row of arguments runs
//! the plan once. Results are kept for the execution. A subquery without outer columns thus runs
//! once, and `x IN (SELECT ...)` then probes a hash set.
//!
//! ```text
//!   subquery    plan, operators for one row, plan for many     as long as the plan around it
//!   execution   constants: the outer values; answers           as long as the execution
//! ```
//!
//! A run for many rows that fails is as if it had not been: the row that asks gets the error, if
//! one does.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};

use braid_catalog::memory_error;
use braid_env::memory::Account;
use braid_scalar::{Bound, CmpOp, EvalContext, compare};
use braid_types::{Datum, GroupKey, SqlError, SqlResult, SqlState, SqlType};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, lit};
use parking_lot::Mutex;

use super::constant;
use super::execution::{Execution, Place};
use super::made::Made;
use crate::decorrelate::keyed::Keyed;
use crate::error::from_df;
use crate::run::{Way, collect_rows, fresh_operators, optimized, physical_at};

/// What the subquery's rows become.
pub enum Shape {
    /// One value; NULL for no row.
    Scalar,
    /// The value of the first row; NULL for no row.
    First,
    /// Whether there is a row.
    Exists,
    /// `needle IN (...)`: the needles come first among the arguments; each row's values are
    /// converted by these expressions before they are compared.
    In(Vec<Bound>),
    /// `needle op ANY (...)`, or ALL with the flag.
    Quantified(CmpOp, Bound, bool),
    /// `(a, b) op ANY (...)`: as [`Shape::In`] with another operator and with all rows that are
    /// meant.
    Rowwise(CmpOp, Vec<Bound>, Across),
    /// `ARRAY(...)` of this element type.
    Array(SqlType),
    /// The rows themselves, for LATERAL.
    Rows,
}

/// Which rows a row is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Across {
    /// One of them must compare so.
    Any,
    /// All of them.
    All,
    /// The only one; NULL for no row.
    One,
}

/// The set of an IN subquery.
struct Members {
    set: HashSet<GroupKey>,
    /// Rows with a NULL in them.
    partial: Vec<Vec<Datum>>,
}

impl Members {
    /// Adds a row; what the set itself takes is counted before it grows.
    fn insert(&mut self, row: GroupKey, memory: &Account) -> SqlResult<()> {
        /// Of an element, with the part of a table that stays empty.
        const SLOT: usize = size_of::<GroupKey>() + 6;
        let (len, room) = (self.set.len(), self.set.capacity());
        if len == room {
            let more = (2 * room).max(64);
            memory
                .regrow("subquery", room * SLOT, more * SLOT, || self.set.reserve(more - len))
                .map_err(|e| memory_error(&e))?;
        }
        self.set.insert(row);
        Ok(())
    }
}

/// What tells how a value compares with each value of a list.
struct Extremes {
    /// Least and greatest value that is not NULL.
    ends: Option<(Datum, Datum)>,
    nulls: bool,
}

enum Kept {
    Value(Datum),
    Members(Arc<Members>),
    Extremes(Extremes),
    Rows(Arc<Vec<Vec<Datum>>>),
}

/// See the [module documentation](self).
pub struct Subquery {
    /// A number that no other one has.
    pub(crate) id: u64,
    /// Plan with placeholders for outer columns.
    pub plan: LogicalPlan,
    /// Types of the plan's columns.
    pub types: Vec<SqlType>,
    /// Placeholder names and types, in the order of the arguments after the needles.
    pub outer: Vec<(String, SqlType)>,
    /// What the rows become.
    pub shape: Shape,
    /// Where its executions are. It may be part of a constant of that place.
    pub(crate) place: Weak<Place>,
    /// What runs for one row of outer values.
    pub(crate) for_one: Mutex<Option<ForOne>>,
    /// What runs for many.
    pub(crate) for_many: Mutex<ForMany>,
}

/// The plan for one row of outer values, which are constants of the place. One thread at a time
/// gives these values and runs it.
pub(crate) struct ForOne {
    optimized: LogicalPlan,
    /// The constants that the outer values are.
    constants: Vec<usize>,
    made: Option<Made>,
}

/// How far the plan for many rows has come.
pub(crate) enum ForMany {
    /// Nobody has asked yet.
    Untried,
    /// It is there, optimized.
    Ready(Box<(Keyed, LogicalPlan)>),
    /// There is none, or it failed: every row of arguments runs the plan.
    Never,
}

impl ForMany {
    /// Before the first row. What is volatile runs when its value is asked for.
    pub(crate) fn of(volatile: bool) -> ForMany {
        if volatile { ForMany::Never } else { ForMany::Untried }
    }
}

/// What an execution knows of a subquery: results by outer values.
#[derive(Default)]
pub(crate) struct Answers {
    kept: Mutex<HashMap<GroupKey, Kept>>,
}

impl Answers {
    /// Keeps what was computed for outer values.
    fn keep(&self, key: GroupKey, result: Kept) {
        let mut kept = self.kept.lock();
        if kept.len() >= MAX_KEPT {
            kept.clear();
        }
        kept.insert(key, result);
    }
}

/// Distinct outer rows whose results are kept.
const MAX_KEPT: usize = 10_000;
/// Fewer new rows of arguments than this run the plan for each: it can use their values as bounds.
const MIN_TOGETHER: usize = 16;

impl Subquery {
    /// How many of the arguments are compared with the subquery's rows.
    pub(crate) fn needles(&self) -> usize {
        match &self.shape {
            Shape::In(converters) | Shape::Rowwise(_, converters, _) => converters.len(),
            Shape::Quantified(..) => 1,
            _ => 0,
        }
    }

    /// The execution that runs, and the place where it is.
    fn execution(&self) -> SqlResult<(Arc<Place>, Arc<Execution>)> {
        let place = self.place.upgrade();
        let place = place.ok_or_else(|| SqlError::internal("a subquery of a plan that is gone"))?;
        let execution = place.execution()?;
        Ok((place, execution))
    }

    /// What the execution knows of it.
    fn answers(&self, execution: &Execution) -> Arc<Answers> {
        execution.answers(self.id)
    }

    /// The rows for one row of outer values.
    fn run(
        &self,
        (place, execution): (&Arc<Place>, &Execution),
        outer: &[Datum],
    ) -> SqlResult<Vec<Vec<Datum>>> {
        let limit = match self.shape {
            Shape::Scalar | Shape::Rowwise(.., Across::One) => 2,
            Shape::Exists | Shape::First => 1,
            _ => usize::MAX,
        };
        let mut for_one = self.for_one.lock();
        let plan = match &mut *for_one {
            Some(plan) => plan,
            None => for_one.insert(self.plan_for_one(place, execution)?),
        };
        for (at, value) in plan.constants.iter().zip(outer) {
            execution.set_constant(*at, value.clone());
        }
        let operators = match &plan.made {
            Some(made) if !made.is_for_others() => fresh_operators(&made.operators)?,
            _ => {
                let (way, cancel) = (Way::default(), &execution.cancel);
                let operators = physical_at(plan.optimized.clone(), place, way, cancel)?;
                let made = plan.made.insert(Made::new(way, operators));
                fresh_operators(&made.operators)?
            }
        };
        collect_rows(execution, operators, &self.types, limit)
    }

    fn plan_for_one(&self, place: &Arc<Place>, execution: &Execution) -> SqlResult<ForOne> {
        let mut constants = Vec::with_capacity(self.outer.len());
        let mut named = HashMap::with_capacity(self.outer.len());
        for (name, ty) in &self.outer {
            let at = place.add_constant(Bound::constant(Datum::Null, ty.clone()));
            constants.push(at);
            named.insert(name.as_str(), constant::placeholder(at, ty));
        }
        let plan = filled(self.alone()?, &|name| named.get(name).cloned())?;
        let optimized = optimized(&plan, &execution.cancel)?;
        Ok(ForOne { optimized, constants, made: None })
    }

    /// The plan as it runs for one row of the outer query: of rows that need only be there, no
    /// column is read.
    fn alone(&self) -> SqlResult<LogicalPlan> {
        if !matches!(self.shape, Shape::Exists) {
            return Ok(self.plan.clone());
        }
        LogicalPlanBuilder::from(self.plan.clone())
            .project([lit(true)])
            .and_then(LogicalPlanBuilder::build)
            .map_err(from_df)
    }

    /// Computes the results of arguments that are new, if that can be done together.
    pub(crate) fn expect(&self, args: &[Vec<Datum>]) {
        if self.outer.is_empty() || matches!(*self.for_many.lock(), ForMany::Never) {
            return;
        }
        // Whoever asks for a row will be told.
        let Ok((place, execution)) = self.execution() else { return };
        let (needles, answers) = (self.needles(), self.answers(&execution));
        let mut new = HashSet::new();
        {
            let mut kept = answers.kept.lock();
            if kept.len() + args.len() > MAX_KEPT {
                kept.clear();
            }
            for outer in args.iter().map(|a| &a[needles..]) {
                let key = GroupKey(outer.to_vec());
                if !kept.contains_key(&key) {
                    new.insert(key);
                }
            }
        }
        let new: Vec<Vec<Datum>> = new.into_iter().map(|key| key.0).collect();
        if new.len() >= MIN_TOGETHER && self.run_together((&place, &execution), &new).is_err() {
            *self.for_many.lock() = ForMany::Never;
        }
    }

    fn run_together(
        &self,
        (place, execution): (&Arc<Place>, &Execution),
        keys: &[Vec<Datum>],
    ) -> SqlResult<()> {
        let cancel = &execution.cancel;
        let plan = {
            let mut for_many = self.for_many.lock();
            if matches!(*for_many, ForMany::Untried) {
                let keyed =
                    Keyed::new(&self.plan, &self.outer, self.types.len()).map_err(from_df)?;
                *for_many = match keyed {
                    Some(keyed) => {
                        let optimized = optimized(keyed.plan(), cancel)?;
                        ForMany::Ready(Box::new((keyed, optimized)))
                    }
                    None => ForMany::Never,
                };
            }
            let ForMany::Ready(ready) = &*for_many else { return Ok(()) };
            ready.0.with_keys(ready.1.clone(), keys).map_err(from_df)?
        };
        let operators = physical_at(plan, place, Way::default(), cancel)?;
        let types: Vec<SqlType> =
            std::iter::once(SqlType::Int8).chain(self.types.iter().cloned()).collect();
        let mut found: Vec<Vec<Vec<Datum>>> = keys.iter().map(|_| Vec::new()).collect();
        for mut row in collect_rows(execution, operators, &types, usize::MAX)? {
            let values = row.split_off(1);
            if let [Datum::Int8(number)] = row.as_slice()
                && let Some(rows) = found.get_mut(*number as usize)
            {
                rows.push(values);
            }
        }
        let answers = self.answers(execution);
        let mut kept = answers.kept.lock();
        for (key, rows) in keys.iter().zip(found) {
            // What fails fails again for the row that asks.
            if let Ok(result) = self.result(execution, rows) {
                kept.insert(GroupKey(key.clone()), result);
            }
        }
        Ok(())
    }

    /// What is kept of a result's rows.
    fn result(&self, execution: &Execution, rows: Vec<Vec<Datum>>) -> SqlResult<Kept> {
        let context = &execution.eval;
        Ok(match &self.shape {
            Shape::Scalar | Shape::Rowwise(.., Across::One) if rows.len() > 1 => {
                return Err(SqlError::new(
                    SqlState::CARDINALITY_VIOLATION,
                    "more than one row returned by a subquery used as an expression",
                ));
            }
            Shape::Scalar | Shape::First => Kept::Value(
                rows.into_iter().next().and_then(|r| r.into_iter().next()).unwrap_or(Datum::Null),
            ),
            Shape::Exists => Kept::Value(Datum::Bool(!rows.is_empty())),
            Shape::Rows => Kept::Rows(Arc::new(rows)),
            Shape::Array(element) => {
                let items = rows.into_iter().filter_map(|r| r.into_iter().next()).collect();
                Kept::Value(braid_scalar::array_of_values(element, items)?)
            }
            Shape::In(converters) => {
                let mut members = Members { set: HashSet::new(), partial: Vec::new() };
                for row in rows {
                    let row = converted(converters, &row, context)?;
                    if row.iter().any(Datum::is_null) {
                        members.partial.push(row);
                    } else {
                        members.insert(GroupKey(row), &execution.memory)?;
                    }
                }
                Kept::Members(Arc::new(members))
            }
            Shape::Rowwise(_, converters, _) => {
                let rows = rows.iter().map(|row| converted(converters, row, context));
                Kept::Rows(Arc::new(rows.collect::<SqlResult<_>>()?))
            }
            Shape::Quantified(_, converter, _) => {
                let values = rows
                    .iter()
                    .map(|row| converter.eval(row, context))
                    .collect::<SqlResult<Vec<_>>>()?;
                Kept::Extremes(Extremes::of(values))
            }
        })
    }

    fn answer(&self, kept: &Kept, needles: &[Datum]) -> Datum {
        match (kept, &self.shape) {
            (Kept::Value(value), _) => value.clone(),
            (Kept::Members(members), _) => member(members, needles),
            (Kept::Extremes(extremes), Shape::Quantified(op, _, all)) => {
                extremes.compared(&needles[0], *op, *all)
            }
            (Kept::Rows(rows), Shape::Rowwise(op, _, across)) => {
                let each = rows.iter().map(|row| row_compares(*op, needles, row));
                truth(match across {
                    Across::Any => any(each),
                    Across::All => any(each.map(|holds| holds.map(|holds| !holds))).map(|any| !any),
                    Across::One => rows.first().and_then(|row| row_compares(*op, needles, row)),
                })
            }
            (Kept::Extremes(_) | Kept::Rows(_), _) => Datum::Null,
        }
    }
}

fn converted(converters: &[Bound], row: &[Datum], context: &EvalContext) -> SqlResult<Vec<Datum>> {
    converters.iter().map(|c| c.eval(row, context)).collect()
}

impl Extremes {
    fn of(values: Vec<Datum>) -> Extremes {
        let nulls = values.iter().any(Datum::is_null);
        let order = |a: &&Datum, b: &&Datum| a.cmp_sql(b);
        let known = || values.iter().filter(|v| !v.is_null());
        let ends = known().min_by(order).zip(known().max_by(order));
        Extremes { ends: ends.map(|(l, g)| (l.clone(), g.clone())), nulls }
    }

    /// `needle op ANY` or ALL: an end decides for all values between.
    fn compared(&self, needle: &Datum, op: CmpOp, all: bool) -> Datum {
        let Some((least, greatest)) = &self.ends else {
            return if self.nulls { Datum::Null } else { Datum::Bool(all) };
        };
        if needle.is_null() {
            return Datum::Null;
        }
        let ends = [least, greatest].map(|end| op.holds(needle.cmp_sql(end)));
        let decided = match all {
            true => !ends[0] || !ends[1],
            false => ends[0] || ends[1],
        };
        match decided {
            true => Datum::Bool(!all),
            false if self.nulls => Datum::Null,
            false => Datum::Bool(all),
        }
    }
}

fn truth(known: Option<bool>) -> Datum {
    known.map_or(Datum::Null, Datum::Bool)
}

/// SQL's OR.
fn any(each: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut all = Some(false);
    for one in each {
        match one {
            Some(true) => return Some(true),
            Some(false) => {}
            None => all = None,
        }
    }
    all
}

/// Whether a row compares so with another one. `<` and the like look at fields until two differ.
fn row_compares(op: CmpOp, left: &[Datum], right: &[Datum]) -> Option<bool> {
    let field = |op, (l, r): (&Datum, &Datum)| match compare(op, l, r) {
        Datum::Bool(holds) => Some(holds),
        _ => None,
    };
    let pairs = left.iter().zip(right);
    match op {
        CmpOp::Eq => any(pairs.map(|pair| field(CmpOp::Ne, pair))).map(|differs| !differs),
        CmpOp::Ne => any(pairs.map(|pair| field(CmpOp::Ne, pair))),
        _ => {
            for pair in pairs {
                if !field(CmpOp::Eq, pair)? {
                    return field(op, pair);
                }
            }
            Some(matches!(op, CmpOp::Le | CmpOp::Ge))
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

impl Subquery {
    /// The rows for these outer values.
    ///
    /// # Errors
    /// Of planning and running.
    pub(crate) fn rows(&self, outer: &[Datum]) -> SqlResult<Arc<Vec<Vec<Datum>>>> {
        let (place, execution) = self.execution()?;
        let (answers, key) = (self.answers(&execution), GroupKey(outer.to_vec()));
        if let Some(Kept::Rows(rows)) = answers.kept.lock().get(&key) {
            return Ok(rows.clone());
        }
        let rows = Arc::new(self.run((&place, &execution), outer)?);
        answers.keep(key, Kept::Rows(rows.clone()));
        Ok(rows)
    }

    /// The value for these needles and outer values.
    ///
    /// # Errors
    /// Of planning and running; 21000 for several rows where one is meant.
    pub(crate) fn value(&self, args: &[Datum]) -> SqlResult<Datum> {
        let (place, execution) = self.execution()?;
        let (needles, outer) = args.split_at(self.needles());
        let (answers, key) = (self.answers(&execution), GroupKey(outer.to_vec()));
        if let Some(found) = answers.kept.lock().get(&key) {
            return Ok(self.answer(found, needles));
        }
        let rows = self.run((&place, &execution), outer)?;
        let computed = self.result(&execution, rows)?;
        let answer = self.answer(&computed, needles);
        answers.keep(key, computed);
        Ok(answer)
    }
}

/// A plan with placeholders replaced.
fn filled(plan: LogicalPlan, value: &dyn Fn(&str) -> Option<Expr>) -> SqlResult<LogicalPlan> {
    plan.transform_up_with_subqueries(|node| {
        let filled = node.map_expressions(|expr| {
            expr.transform_up(|e| match &e {
                Expr::Placeholder(p) => match value(&p.id) {
                    Some(value) => Ok(Transformed::yes(value)),
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
