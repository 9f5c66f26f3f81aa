//! JOIN .. USING, and NATURAL JOIN.
//!
//! ```text
//!   t JOIN u USING (a) AS j      a, then the columns of t and u, where t.a, u.a and j.a are hidden
//! ```

use braid_scalar::{Bound, CmpOp, Node, ScopeColumn, coerce, common_type, compare_bound};
use braid_types::{CastContext, SqlError, SqlResult, SqlState};
use datafusion::common::JoinType;
use datafusion::logical_expr::LogicalPlanBuilder;

use super::items::{Item, combine, copy_of};
use crate::bind::{Binder, Relation};
use crate::error::from_df;

impl Binder<'_> {
    pub(super) fn using_join(
        &mut self,
        left: Item,
        right: Item,
        kind: JoinType,
        names: &[String],
        width: usize,
    ) -> SqlResult<Item> {
        let mut pairs = Vec::new();
        for name in names {
            let find = |item: &Item, side: &str| {
                item.relation.scope.find(std::slice::from_ref(name))?.ok_or_else(|| {
                    SqlError::new(
                        SqlState::UNDEFINED_COLUMN,
                        format!(
                            "column \"{name}\" specified in USING clause does not exist in {side} \
                             table"
                        ),
                    )
                })
            };
            pairs.push((find(&left, "left")?, find(&right, "right")? + width));
        }
        let both = combine(
            left.relation.plan.clone(),
            copy_of(&left),
            copy_of(&right),
            matches!(kind, JoinType::Right | JoinType::Full),
            matches!(kind, JoinType::Left | JoinType::Full),
        );
        let columns = both.relation.scope.columns().to_vec();
        let typed = |at: usize| {
            let column = &columns[at];
            Bound::column(at, column.ty.clone()).with_collation(column.collation.clone())
        };
        let (on, merged) = self.over(&both, |b| {
            let mut on = Vec::new();
            let mut merged = Vec::new();
            for (l, r) in &pairs {
                let equal = compare_bound(CmpOp::Eq, typed(*l), typed(*r), b)?;
                on.push(b.plan_expr(&equal)?);
                let (lt, rt) = (columns[*l].ty.clone(), columns[*r].ty.clone());
                let ty = common_type(&[&lt, &rt]).unwrap_or(lt);
                let side =
                    |b: &mut Self, at: usize| coerce(typed(at), &ty, CastContext::Implicit, b);
                merged.push(match kind {
                    JoinType::Right => side(b, *r)?,
                    JoinType::Full => {
                        let parts = vec![side(b, *l)?, side(b, *r)?];
                        Bound::new(Node::Coalesce(parts), ty)
                    }
                    _ => side(b, *l)?,
                });
            }
            let merged = merged
                .iter()
                .map(|m| Ok((b.plan_expr(m)?, m.clone())))
                .collect::<SqlResult<Vec<_>>>()?;
            Ok((on, merged))
        })?;
        let plan = LogicalPlanBuilder::from(left.relation.plan)
            .join_on(right.relation.plan, kind, on)
            .and_then(LogicalPlanBuilder::build)
            .map_err(from_df)?;
        let mut out = Item {
            relation: Relation { plan, scope: Default::default(), columns: Vec::new() },
            origins: Vec::new(),
        };
        for (name, (expr, value)) in names.iter().zip(merged) {
            out.relation.scope.push(ScopeColumn {
                collation: value.collation().of_column(),
                ..ScopeColumn::new(name, value.ty().clone())
            });
            out.relation.columns.push(expr);
            out.origins.push(value.as_column().and_then(|at| both.origins[at]));
        }
        for (at, column) in both.relation.scope.columns().iter().enumerate() {
            let mut column = column.clone();
            column.hidden |= pairs.iter().any(|(l, r)| *l == at || *r == at);
            out.relation.scope.push(column);
            out.relation.columns.push(both.relation.columns[at].clone());
            out.origins.push(both.origins[at]);
        }
        Ok(out)
    }
}

/// The first columns of a join, those of USING, by the alias of the join, too.
pub(super) fn name_merged(item: &mut Item, alias: &str, count: usize) -> SqlResult<()> {
    let columns = item.relation.scope.columns().to_vec();
    if columns.iter().any(|column| column.table.as_deref() == Some(alias)) {
        return Err(SqlError::new(
            SqlState::DUPLICATE_ALIAS,
            format!("table name \"{alias}\" specified more than once"),
        ));
    }
    for (at, column) in columns.into_iter().take(count).enumerate() {
        // It is in `*` already.
        let named = ScopeColumn { table: Some(alias.to_string()), hidden: true, ..column };
        item.relation.scope.push(named);
        item.relation.columns.push(item.relation.columns[at].clone());
        item.origins.push(item.origins[at]);
    }
    Ok(())
}
