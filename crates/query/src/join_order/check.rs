//! Semi and anti joins that have no place of their own in a group of joins.
//!
//! ```text
//!   l1 ⋈ orders ⋈ supplier       rows of l1 with another line of the same order: half of them
//!     EXISTS l2 of l1            .. without a late one: a quarter of them, so this one comes first
//!     NOT EXISTS l3 of l1
//! ```
//! A row passes or does not by what columns of some relations say, whatever else is joined to it.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::{Column, JoinType, Result};
use datafusion::logical_expr::{Expr, Join, LogicalPlan};

use super::estimate::{Estimate, matched, passing};
use super::graph::{Relation, Set};

/// See the [module documentation](self).
pub(super) struct Check {
    join: Join,
    /// The relations whose columns it asks for.
    pub(super) needs: Set,
    /// Of their rows, so many pass.
    pub(super) share: f64,
}

impl Check {
    /// The check that a join is over these relations; `others` is the estimate of its right side.
    pub(super) fn new(
        join: Join,
        needs: Set,
        relations: &[Relation],
        columns: &HashMap<Column, usize>,
        others: &Estimate,
    ) -> Check {
        let relation = |expr: &Expr| {
            let number = expr.column_refs().into_iter().find_map(|c| columns.get(c))?;
            relations.get(*number)
        };
        let own = join.on.iter().filter_map(|(l, r)| Some((relation(l)?, l, r)));
        let before = own.clone().map(|(of, ..)| of.estimate.before).fold(1.0, f64::max);
        let keys = own.map(|(of, l, r)| (of.estimate.values(l), others.values(r)));
        let share = matched(keys, before, others, join.filter.as_ref());
        let share = passing(share, join.join_type == JoinType::LeftAnti);
        Check { join, needs, share }
    }

    /// The check of some rows by others; `rows_first`: the rows are held, else the others.
    pub(super) fn join(
        &self,
        rows: LogicalPlan,
        others: LogicalPlan,
        rows_first: bool,
    ) -> Result<LogicalPlan> {
        let Join { on, filter, join_constraint, null_equality, .. } = self.join.clone();
        let (left, right, on, kind) = match rows_first {
            true => (rows, others, on, self.join.join_type),
            false => {
                let on = on.into_iter().map(|(l, r)| (r, l)).collect();
                (others, rows, on, self.join.join_type.swap())
            }
        };
        let (left, right) = (Arc::new(left), Arc::new(right));
        let join =
            Join::try_new(left, right, on, filter, kind, join_constraint, null_equality, false)?;
        Ok(LogicalPlan::Join(join))
    }

    /// Whether rows that do not pass can be left out while they are read, once the others are
    /// known.
    pub(super) fn can_be_told(&self) -> bool {
        self.join.join_type == JoinType::LeftSemi
    }

    /// What it compares: of the others, or of the rows.
    pub(super) fn keys(&self, others: bool) -> impl Iterator<Item = &Expr> {
        self.join.on.iter().map(move |(l, r)| if others { r } else { l })
    }
}
