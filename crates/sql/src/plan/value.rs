//! Subqueries as values: steps that give one value for each row of the steps before.
//!
//! ```text
//!   SELECT name, (SELECT count(*) FROM orders o WHERE o.id = c.id) FROM customers c WHERE id = 7
//!     step 1   point read on customers      key id = 7
//!     step 2   span read on orders          key id = c.id, value: count(*)
//!   joined row   customers' columns | orders' columns, NULL | the value
//! ```
//! In the query around it a column of that place stands for the subquery. How subqueries become
//! such steps: [`super::subqueries`]. A value may need values itself, of what lies in its rows:
//! those are steps within the step, whose places lie between its columns and its value.

use braid_catalog::memory_error;
use braid_env::memory::Held;
use braid_rows::{Row, row_memory};
use braid_scalar::{Bound, EvalContext, array_of_values};
use braid_types::{Datum, SqlError, SqlResult, SqlState, SqlType};

use super::aggregate::{Aggregate, State};
use super::select::{SortKey, count};
use super::sorting::compare;
use crate::session::Context;

/// What is computed from the rows of a step.
pub(super) struct Value {
    pub(super) what: What,
    /// The order in which rows are taken in; none: that of the key.
    pub(super) order: Vec<SortKey>,
    /// LIMIT and OFFSET of the rows that are taken in.
    pub(super) page: (Option<Bound>, Option<Bound>),
}

/// See [`Value`].
pub(super) enum What {
    /// Aggregates of all rows, and an expression over what they give.
    Aggregates(Vec<Aggregate>, Bound),
    /// Of the only row; NULL if there is none.
    Row(Bound),
    /// Of each row, as an array with elements of this type.
    Array(Bound, SqlType),
    /// Whether there is a row, or there is none.
    Exists(bool),
}

/// A value that is being computed.
pub(super) struct Computing {
    so_far: SoFar,
    /// What is computed of rows that have to be ordered first, behind what orders them; `None`:
    /// they come in their order.
    waiting: Option<Vec<(Row, Row)>>,
    /// Rows that are passed over, and how many are wanted then.
    skip: u64,
    left: u64,
    /// Memory of what is kept.
    held: Held,
}

enum SoFar {
    Aggregates(Vec<State>),
    Row(Option<Datum>),
    Array(Vec<Datum>),
    Exists(bool),
}

impl Value {
    /// Begins. Rows may come in their order already.
    ///
    /// # Errors
    /// 2201W and 2201X for a LIMIT and an OFFSET below 0.
    pub(super) fn start(&self, ctx: &Context, in_order: bool) -> SqlResult<Computing> {
        let so_far = match &self.what {
            What::Aggregates(all, _) => {
                SoFar::Aggregates(all.iter().map(|a| a.start(Some(&ctx.memory))).collect())
            }
            What::Row(_) => SoFar::Row(None),
            What::Array(..) => SoFar::Array(Vec::new()),
            What::Exists(_) => SoFar::Exists(false),
        };
        let left = count(&self.page.0, "LIMIT", ctx)?.unwrap_or(u64::MAX);
        let skip = count(&self.page.1, "OFFSET", ctx)?.unwrap_or(0);
        let waiting = (!in_order && !self.order.is_empty()).then(Vec::new);
        let held = ctx.memory.hold("the value of a subquery");
        Ok(Computing { so_far, waiting, skip, left, held })
    }

    /// Takes in a joined row; `false` if no more of them are wanted.
    ///
    /// # Errors
    /// 21000 for a second row where there can be one; of computing.
    pub(super) fn add(
        &self,
        computing: &mut Computing,
        row: &[Datum],
        eval: &EvalContext,
    ) -> SqlResult<bool> {
        let all = |exprs: &mut dyn Iterator<Item = &Bound>| -> SqlResult<Row> {
            exprs.map(|e| e.eval(row, eval)).collect()
        };
        let Some(waiting) = &mut computing.waiting else {
            if computing.skip > 0 {
                computing.skip -= 1;
                return Ok(computing.left > 0);
            }
            if computing.left > 0 {
                let wanted = all(&mut self.inputs())?;
                self.take(computing, wanted)?;
                computing.left -= 1;
            }
            return Ok(computing.left > 0 && !matches!(computing.so_far, SoFar::Exists(true)));
        };
        let kept = (all(&mut self.order.iter().map(|key| &key.expr))?, all(&mut self.inputs())?);
        let bytes = row_memory(&kept.0) + row_memory(&kept.1);
        computing.held.grow(bytes).map_err(|e| memory_error(&e))?;
        waiting.push(kept);
        Ok(true)
    }

    /// Whether its first rows are enough, if they come in their order.
    pub(super) fn wants_first(&self) -> bool {
        self.page.0.is_some() || matches!(self.what, What::Exists(_))
    }

    /// How many rows are enough, if they come in their order.
    pub(super) fn enough(&self, ctx: &Context) -> Option<usize> {
        if matches!(self.what, What::Exists(_)) {
            return Some(1);
        }
        let limit = count(&self.page.0, "LIMIT", ctx).ok()??;
        let offset = count(&self.page.1, "OFFSET", ctx).ok()?.unwrap_or(0);
        usize::try_from(limit.saturating_add(offset)).ok()
    }

    /// Takes in what is computed of a row.
    fn take(&self, computing: &mut Computing, wanted: Row) -> SqlResult<()> {
        match (&self.what, &mut computing.so_far) {
            (What::Exists(_), SoFar::Exists(known)) => {
                *known = true;
                Ok(())
            }
            (What::Aggregates(all, _), SoFar::Aggregates(states)) => {
                let mut wanted = wanted.as_slice();
                for (aggregate, state) in all.iter().zip(states) {
                    let (own, others) = wanted.split_at(aggregate.exprs().count());
                    aggregate.add_values(state, own)?;
                    wanted = others;
                }
                Ok(())
            }
            (What::Row(_), SoFar::Row(known @ None)) => {
                *known = wanted.into_iter().next();
                Ok(())
            }
            (What::Array(..), SoFar::Array(items)) => {
                let bytes = row_memory(&wanted);
                computing.held.grow(bytes).map_err(|e| memory_error(&e))?;
                items.extend(wanted);
                Ok(())
            }
            _ => Err(SqlError::new(
                SqlState::CARDINALITY_VIOLATION,
                "more than one row returned by a subquery used as an expression",
            )),
        }
    }

    /// The value, once all rows were taken in.
    ///
    /// # Errors
    /// Of the aggregates.
    pub(super) fn finish(&self, mut computing: Computing, eval: &EvalContext) -> SqlResult<Datum> {
        let mut waiting = computing.waiting.take().unwrap_or_default();
        waiting.sort_by(|a, b| compare(&self.order, &a.0, &b.0));
        let [skip, left] =
            [computing.skip, computing.left].map(|n| usize::try_from(n).unwrap_or(usize::MAX));
        for (_, wanted) in waiting.into_iter().skip(skip).take(left) {
            self.take(&mut computing, wanted)?;
        }
        match (&self.what, computing.so_far) {
            (What::Exists(wanted), SoFar::Exists(known)) => Ok(Datum::Bool(known == *wanted)),
            (What::Aggregates(all, expr), SoFar::Aggregates(mut states)) => {
                let given = all.iter().zip(&mut states).map(|(a, state)| a.finish(state, eval));
                expr.eval(&given.collect::<SqlResult<Row>>()?, eval)
            }
            (What::Array(_, element), SoFar::Array(items)) => array_of_values(element, items),
            (What::Row(_), SoFar::Row(value)) => Ok(value.unwrap_or(Datum::Null)),
            _ => Err(SqlError::internal("another value")),
        }
    }

    /// An expression over what aggregates give.
    pub(super) fn shown(&self) -> Option<&Bound> {
        match &self.what {
            What::Aggregates(_, expr) => Some(expr),
            _ => None,
        }
    }

    /// Whether a second row is an error.
    pub(super) fn wants_one_row(&self) -> bool {
        let one = |limit: &Bound| matches!(limit.as_const(), Some(Datum::Int8(0 | 1)));
        matches!(self.what, What::Row(_)) && !self.page.0.as_ref().is_some_and(one)
    }

    /// Expressions over the joined row.
    pub(super) fn exprs(&self) -> impl Iterator<Item = &Bound> {
        self.inputs().chain(self.order.iter().map(|key| &key.expr))
    }

    /// Those of them that are not for the order.
    fn inputs(&self) -> impl Iterator<Item = &Bound> {
        let (aggregates, own) = match &self.what {
            What::Aggregates(all, _) => (all.as_slice(), None),
            What::Row(expr) | What::Array(expr, _) => (&[][..], Some(expr)),
            What::Exists(_) => (&[][..], None),
        };
        aggregates.iter().flat_map(Aggregate::exprs).chain(own)
    }

    pub(super) fn describe(&self, names: &dyn Fn(usize) -> String) -> String {
        let mut text = match &self.what {
            What::Aggregates(all, expr) => {
                expr.to_sql(&|at| all.get(at).map_or_else(String::new, |a| a.describe(names)))
            }
            What::Row(expr) => expr.to_sql(names),
            What::Array(expr, _) => format!("ARRAY({})", expr.to_sql(names)),
            What::Exists(true) => "is there one?".to_string(),
            What::Exists(false) => "is there none?".to_string(),
        };
        text.push_str(&SortKey::describe(&self.order, ", rows by ", names));
        if let Some(limit) = &self.page.0 {
            text.push_str(&format!(", limit {limit}"));
        }
        if let Some(offset) = &self.page.1 {
            text.push_str(&format!(", offset {offset}"));
        }
        text
    }
}
