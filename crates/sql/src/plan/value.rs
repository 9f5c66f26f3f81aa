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
use super::select::SortKey;
use super::stream::compare;
use crate::session::Context;

/// What is computed from the rows of a step.
pub(super) struct Value {
    pub(super) what: What,
    /// The order in which rows are taken in; none: that of the key.
    pub(super) order: Vec<SortKey>,
}

/// See [`Value`].
pub(super) enum What {
    /// Aggregates of all rows, and an expression over what they give.
    Aggregates(Vec<Aggregate>, Bound),
    /// Of the only row; NULL if there is none.
    Row(Bound),
    /// Of each row, as an array with elements of this type.
    Array(Bound, SqlType),
}

/// A value that is being computed.
pub(super) struct Computing {
    so_far: SoFar,
    /// What is computed of rows that have to be ordered first, behind what orders them.
    waiting: Vec<(Row, Row)>,
    /// Memory of what is kept.
    held: Held,
}

enum SoFar {
    Aggregates(Vec<State>),
    Row(Option<Datum>),
    Array(Vec<Datum>),
}

impl Value {
    pub(super) fn start(&self, ctx: &Context) -> Computing {
        let so_far = match &self.what {
            What::Aggregates(all, _) => {
                SoFar::Aggregates(all.iter().map(|a| a.start_in(Some(&ctx.memory))).collect())
            }
            What::Row(_) => SoFar::Row(None),
            What::Array(..) => SoFar::Array(Vec::new()),
        };
        Computing { so_far, waiting: Vec::new(), held: ctx.memory.hold("the value of a subquery") }
    }

    /// Takes in a joined row.
    ///
    /// # Errors
    /// 21000 for a second row where there can be one; of computing.
    pub(super) fn add(
        &self,
        computing: &mut Computing,
        row: &[Datum],
        eval: &EvalContext,
    ) -> SqlResult<()> {
        let all = |exprs: &mut dyn Iterator<Item = &Bound>| -> SqlResult<Row> {
            exprs.map(|e| e.eval(row, eval)).collect()
        };
        let wanted = all(&mut self.inputs())?;
        if self.order.is_empty() {
            return self.take(computing, wanted);
        }
        let kept = (all(&mut self.order.iter().map(|key| &key.expr))?, wanted);
        let bytes = row_memory(&kept.0) + row_memory(&kept.1);
        computing.held.grow(bytes).map_err(|e| memory_error(&e))?;
        computing.waiting.push(kept);
        Ok(())
    }

    /// Takes in what is computed of a row.
    fn take(&self, computing: &mut Computing, wanted: Row) -> SqlResult<()> {
        match (&self.what, &mut computing.so_far) {
            (What::Aggregates(all, _), SoFar::Aggregates(states)) => {
                let mut wanted = wanted.as_slice();
                for (aggregate, state) in all.iter().zip(states) {
                    let (own, others) = wanted.split_at(aggregate.args.len());
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
        let mut waiting = std::mem::take(&mut computing.waiting);
        waiting.sort_by(|a, b| compare(&self.order, &a.0, &b.0));
        for (_, wanted) in waiting {
            self.take(&mut computing, wanted)?;
        }
        match (&self.what, computing.so_far) {
            (What::Aggregates(all, expr), SoFar::Aggregates(states)) => {
                let given = all.iter().zip(&states).map(|(a, state)| a.finish(state, eval));
                expr.eval(&given.collect::<SqlResult<Row>>()?, eval)
            }
            (What::Array(_, element), SoFar::Array(items)) => array_of_values(element, items),
            (What::Row(_), SoFar::Row(value)) => Ok(value.unwrap_or(Datum::Null)),
            _ => Err(SqlError::internal("another value")),
        }
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
        };
        aggregates.iter().flat_map(|a| &a.args).chain(own)
    }

    pub(super) fn describe(&self, names: &dyn Fn(usize) -> String) -> String {
        let mut text = match &self.what {
            What::Aggregates(all, expr) => {
                expr.to_sql(&|at| all.get(at).map_or_else(String::new, |a| a.describe(names)))
            }
            What::Row(expr) => expr.to_sql(names),
            What::Array(expr, _) => format!("ARRAY({})", expr.to_sql(names)),
        };
        for (n, key) in self.order.iter().enumerate() {
            text.push_str(if n == 0 { ", rows by " } else { ", " });
            text.push_str(&key.expr.to_sql(names));
            text.push_str(if key.desc { " desc" } else { "" });
        }
        text
    }
}
