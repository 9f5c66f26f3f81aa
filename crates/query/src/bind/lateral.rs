//! LATERAL subqueries: they see what stands before them in FROM.
//!
//! ```text
//!   FROM t, LATERAL (SELECT .. WHERE s.k = t.k) x       a join with the condition s.k = t.k
//!   FROM t, LATERAL (SELECT .. ORDER BY .. LIMIT 3) x   a list of records for each row, unnested
//!   FROM t, LATERAL (SELECT t.a + 1) x                  a column beside the row
//!   FROM t, LATERAL (VALUES (t.a), (t.b)) x             a list of the values, unnested
//! ```
//! The first where the subquery's plan can be taken apart and cannot fail, the last two where it
//! reads no table.

use std::collections::HashMap;

use braid_scalar::{ScopeColumn, ident_name, object_name_parts};
use braid_types::{SqlError, SqlResult};
use datafusion::common::{Column, JoinType, NullHandling};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use sqlparser::ast::{self, Ident};

use super::call::Inner;
use super::from::{Item, bare, combine, copy_of, rename_columns};
use super::function_table::{columns_of, unnested};
use super::{Binder, Relation, column};
use crate::decorrelate::outer::substitute;
use crate::decorrelate::pull;
use crate::error::from_df;
use crate::evaluated::evaluated;
use crate::exec::scalar;
use crate::exec::set_returning::subquery_expr;
use crate::exec::subquery::Shape;
use crate::system;

pub(super) fn is_true(condition: &ast::Expr) -> bool {
    let yes = ast::Value::Boolean(true);
    matches!(condition, ast::Expr::Value(v) if v.value == yes)
}

/// An alias without names for columns.
fn named(name: Ident) -> ast::TableAlias {
    ast::TableAlias { explicit: true, name, columns: Vec::new(), at: None }
}

/// A subquery of the rows of a table that a condition holds for: an outer join `ON` it is one with
/// this subquery `ON true`.
fn satisfying(table: ast::TableFactor, condition: &ast::Expr) -> SqlResult<ast::Query> {
    let mut query = system::parse_query("SELECT * FROM a WHERE true")?;
    if let ast::SetExpr::Select(select) = &mut *query.body {
        select.from[0].relation = table;
        select.selection = Some(condition.clone());
    }
    Ok(query)
}

/// What stands in FROM and may name what stands before it.
#[derive(Clone, Copy)]
pub(super) enum Source<'a> {
    /// A subquery.
    Query(&'a ast::Query),
    /// A call of a function that gives rows.
    Call(&'a ast::Function),
}

/// A bound LATERAL subquery.
pub(super) enum Lateral {
    /// It names nothing of the tables before it: a table like others.
    Plain(Item),
    /// Already joined with what stands before it.
    Joined(Item),
}

impl Binder<'_> {
    /// A LATERAL subquery beside `left`; an outer join with its condition.
    pub(super) fn lateral_item(
        &mut self,
        source: Source<'_>,
        alias: Option<&ast::TableAlias>,
        left: &Item,
        (kind, on): (JoinType, Option<&ast::Expr>),
    ) -> SqlResult<Lateral> {
        let (inner, outer) = self.over(left, |b| {
            let inner = match source {
                Source::Query(query) => b.inner_query(query)?,
                Source::Call(call) => b.rows_of_call(call)?,
            };
            let mut outer = Vec::with_capacity(inner.outer.len());
            for (name, bound) in &inner.outer {
                outer.push((name.clone(), b.plan_expr(bound)?));
            }
            Ok((inner, outer))
        })?;
        let table = alias.map(|a| ident_name(&a.name));
        if inner.outer.is_empty() {
            let plan = evaluated(inner.plan.clone()).map_err(from_df)?;
            let item = item_of(&inner, plan, inner.values.clone(), table, alias)?;
            return Ok(Lateral::Plain(item));
        }
        if let Some((plan, conditions)) = self.lateral_join_parts(&inner, &outer)? {
            let own = item_of(&inner, plan.clone(), inner.values.clone(), table, alias)?;
            self.check_aliases(left, &own)?;
            let before = left.relation.plan.clone();
            let mut both =
                combine(before.clone(), copy_of(left), own, false, kind == JoinType::Left);
            let mut all = conditions;
            if let Some(on) = on {
                all.extend(self.over(&both, |b| {
                    let bound = b.condition(on, "JOIN/ON")?;
                    b.filters(&bound, true)
                })?);
            }
            both.relation.plan = LogicalPlanBuilder::from(before)
                .join_on(plan, kind, all)
                .and_then(LogicalPlanBuilder::build)
                .map_err(from_df)?;
            return Ok(Lateral::Joined(both));
        }
        if on.is_none_or(is_true)
            && let Some(item) =
                self.beside_row(&inner, &outer, (table.clone(), alias), (left, kind))?
        {
            return Ok(Lateral::Joined(item));
        }
        if let (Some(on), Source::Query(query)) = (on, source)
            && !is_true(on)
        {
            let table = ast::TableFactor::Derived {
                lateral: false,
                subquery: Box::new(query.clone()),
                alias: alias.cloned(),
                sample: None,
            };
            let query = satisfying(table, on)?;
            let alias = alias.map(|a| named(a.name.clone()));
            return self.lateral_item(Source::Query(&query), alias.as_ref(), left, (kind, None));
        }
        let args = outer.into_iter().map(|(_, expr)| expr).collect();
        let item = self.lateral_lists(inner, (table, alias), left, args, kind == JoinType::Left)?;
        Ok(Lateral::Joined(item))
    }

    /// `left LEFT JOIN f(left.x) ON ..`: the function in a subquery.
    pub(super) fn outer_function(
        &mut self,
        function: &ast::TableFactor,
        left: &Item,
        on: &ast::Expr,
    ) -> SqlResult<Item> {
        let (name, alias) = match function {
            ast::TableFactor::Table { name, alias, .. }
            | ast::TableFactor::Function { name, alias, .. } => {
                (object_name_parts(name).pop().unwrap_or_default(), alias)
            }
            ast::TableFactor::UNNEST { alias, .. } => ("unnest".to_string(), alias),
            other => return Err(SqlError::unsupported(format!("an outer join with {other}"))),
        };
        let name = alias.as_ref().map_or_else(|| Ident::with_quote('"', name), |a| a.name.clone());
        let query = satisfying(function.clone(), on)?;
        let source = Source::Query(&query);
        match self.lateral_item(source, Some(&named(name)), left, (JoinType::Left, None))? {
            Lateral::Joined(mut item) => {
                let own = &mut item.relation.scope.columns_mut()[left.relation.columns.len()..];
                if let [column] = own {
                    column.scalar = true;
                }
                Ok(item)
            }
            // It names nothing of `left`, and came here because it does.
            Lateral::Plain(_) => Err(SqlError::internal("a function that needs no other side")),
        }
    }

    /// A subquery without tables: what it gives is computed of the row beside it. `None` if it is
    /// another one.
    fn beside_row(
        &mut self,
        inner: &Inner,
        outer: &[(String, Expr)],
        (table, alias): (Option<String>, Option<&ast::TableAlias>),
        (left, kind): (&Item, JoinType),
    ) -> SqlResult<Option<Item>> {
        let (core, values) =
            pull::open(inner.plan.clone(), inner.values.clone()).map_err(from_df)?;
        let outer: HashMap<String, Expr> = outer.iter().cloned().collect();
        let told = |exprs: Vec<Expr>| {
            let told = exprs.into_iter().map(|e| substitute(e, &outer));
            told.collect::<Result<Vec<_>, _>>().map_err(from_df)
        };
        let before = left.relation.plan.clone();
        let columns = columns_of(&before);
        let rows = match &core {
            LogicalPlan::EmptyRelation(one) if one.produce_one_row => before,
            // A list may be empty; then an outer join keeps the row.
            LogicalPlan::Unnest(unnest) if kind == JoinType::Inner => {
                let LogicalPlan::Projection(lists) = &*unnest.input else { return Ok(None) };
                let one_row =
                    matches!(&*lists.input, LogicalPlan::EmptyRelation(e) if e.produce_one_row);
                if !one_row {
                    return Ok(None);
                }
                let both = columns.iter().cloned().chain(told(lists.expr.clone())?);
                let keeps = unnest.options.null_handling != NullHandling::Drop;
                unnested(before, both, unnest.exec_columns.clone(), keeps)
                    .and_then(LogicalPlanBuilder::build)
                    .map_err(from_df)?
            }
            _ => return Ok(None),
        };
        let names: Vec<String> = values.iter().map(|_| self.fresh("lat")).collect();
        let computed = told(values)?.into_iter().zip(&names).map(|(e, name)| e.alias(name));
        let plan = LogicalPlanBuilder::from(rows)
            .project(columns.into_iter().chain(computed))
            .and_then(LogicalPlanBuilder::build)
            .and_then(evaluated)
            .map_err(from_df)?;
        let fresh = names.iter().map(|name| column(name)).collect();
        let own = item_of(inner, left.relation.plan.clone(), fresh, table, alias)?;
        self.check_aliases(left, &own)?;
        Ok(Some(combine(plan, copy_of(left), own, false, false)))
    }

    /// The rows of a subquery as a list for each row of `left`, unnested; with `outer` a row
    /// without any stays.
    fn lateral_lists(
        &mut self,
        inner: Inner,
        (table, alias): (Option<String>, Option<&ast::TableAlias>),
        left: &Item,
        args: Vec<Expr>,
        outer: bool,
    ) -> SqlResult<Item> {
        let types = inner.types.clone();
        let list = self.fresh("list");
        let mut lists = columns_of(&left.relation.plan);
        let mut results = lists.clone();
        let mut values = Vec::with_capacity(types.len());
        for (at, ty) in types.iter().enumerate() {
            let name = self.fresh("lat");
            results.push(scalar::record_field(column(&list), at, ty).alias(name.clone()));
            values.push(column(&name));
        }
        let own = item_of(&inner, left.relation.plan.clone(), values, table, alias)?;
        self.check_aliases(left, &own)?;
        lists.push(subquery_expr(inner.prepared(Shape::Rows, self), args).alias(list.clone()));
        let (left_plan, names) = (left.relation.plan.clone(), vec![Column::new_unqualified(list)]);
        let plan = unnested(left_plan, lists, names, outer)
            .and_then(|b| b.project(results))
            .and_then(LogicalPlanBuilder::build)
            .map_err(from_df)?;
        Ok(combine(plan, copy_of(left), own, false, outer))
    }

    /// The subquery's plan and the conditions that join it, if it can be taken apart.
    fn lateral_join_parts(
        &mut self,
        inner: &Inner,
        outer: &[(String, Expr)],
    ) -> SqlResult<Option<(LogicalPlan, Vec<Expr>)>> {
        if inner.risky {
            return Ok(None);
        }
        let core = pull::pull(&inner.plan, &mut || self.fresh("key")).map_err(from_df)?;
        let Some(core) = core else { return Ok(None) };
        let outer: HashMap<String, Expr> = outer.iter().cloned().collect();
        let conditions = core.conditions.into_iter().map(|c| substitute(c, &outer));
        let conditions = conditions.collect::<Result<Vec<_>, _>>().map_err(from_df)?;
        Ok(Some((core.plan, conditions)))
    }
}

fn item_of(
    inner: &Inner,
    plan: LogicalPlan,
    columns: Vec<Expr>,
    table: Option<String>,
    alias: Option<&ast::TableAlias>,
) -> SqlResult<Item> {
    let mut relation = Relation { plan, scope: Default::default(), columns };
    let types = inner.types.iter().zip(&inner.collations);
    for ((name, (ty, collation)), nullable) in inner.names.iter().zip(types).zip(&inner.nullable) {
        relation.scope.push(ScopeColumn {
            table: table.clone(),
            nullable: *nullable,
            collation: collation.clone(),
            ..ScopeColumn::new(name, ty.clone())
        });
    }
    if let Some(alias) = alias {
        rename_columns(&mut relation, alias)?;
    }
    Ok(bare(relation))
}
