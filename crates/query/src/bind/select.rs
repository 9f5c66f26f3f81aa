//! Queries and SELECTs: the order of the steps.
//!
//! ```text
//!   FROM, WHERE -> groups, aggregates -> HAVING -> windows -> set functions -> projection
//!     -> DISTINCT -> ORDER BY -> OFFSET, LIMIT
//! ```
//! All expressions are bound before the first node above WHERE is built, because only then it is
//! known whether there are aggregates.

use std::sync::Arc;

use braid_scalar::{
    Bound, Node, OrderKey as Direction, Volatility, at_beginning, ident_name, order_form,
    output_name,
};
use braid_types::{Collated, SqlError, SqlResult, SqlState, SqlType};
use datafusion::logical_expr::expr::Sort;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use sqlparser::ast::{self, Spanned};

use super::aggregate_level::is_grouped_by_all;
use super::assumed::{Page, row_count};
use super::from::from_order;
use super::function_table::{columns_of, sets_not_allowed};
use super::grouped_sets::Rewritten;
use super::guests::StarExcept;
use super::{Binder, Binding, Bounded, Cte, Named, OutputColumn, column, faults, grouped_sets};
use crate::error::from_df;
use crate::evaluated::evaluated;
use crate::exec::scalar;

/// One item of the select list, stars expanded.
pub(super) struct Item {
    pub(super) name: String,
    pub(super) bound: Bound,
}

/// A key of ORDER BY.
struct OrderKey {
    target: Target,
    collation: Collated,
    desc: bool,
    nulls_first: bool,
}

impl OrderKey {
    /// Whether both are of the same expression.
    fn is_by_same(&self, other: &OrderKey, items: &[Item]) -> bool {
        let output = |key: &OrderKey| match &key.target {
            Target::Output(at) => Some(*at),
            Target::Expr(bound) => same_item(bound, items),
        };
        match (output(self), output(other), &self.target, &other.target) {
            (None, None, Target::Expr(a), Target::Expr(b)) => a.is_like(b, 0),
            (a, b, ..) => a == b,
        }
    }
}

/// 42P10 if the keys of an ORDER BY do not begin with those of DISTINCT ON, in any order.
fn check_begins_with(keys: &[OrderKey], on: &[OrderKey], items: &[Item]) -> SqlResult<()> {
    let mut left: Vec<&OrderKey> = on.iter().collect();
    for key in keys {
        let before = left.len();
        left.retain(|o| !o.is_by_same(key, items));
        let is_again = || on.iter().any(|o| o.is_by_same(key, items));
        if before > 0 && left.len() == before && !is_again() {
            return Err(SqlError::new(
                SqlState::INVALID_COLUMN_REFERENCE,
                "SELECT DISTINCT ON expressions must match initial ORDER BY expressions",
            ));
        }
    }
    Ok(())
}

/// The expressions of a select list, with their names.
fn targets_of(select: &ast::Select) -> Vec<(Option<String>, ast::Expr)> {
    let target = |item: &ast::SelectItem| match item {
        ast::SelectItem::UnnamedExpr(e) => Some((Some(output_name(e)), e.clone())),
        ast::SelectItem::ExprWithAlias { expr, alias } => {
            Some((Some(ident_name(alias)), expr.clone()))
        }
        _ => None,
    };
    select.projection.iter().filter_map(target).collect()
}

enum Target {
    /// An output column.
    Output(usize),
    /// An expression over the inputs.
    Expr(Bound),
}

impl Binder<'_> {
    /// Binds a whole statement's query.
    pub fn statement(&mut self, query: &ast::Query) -> SqlResult<Bounded> {
        self.levels.push(super::Level::default());
        self.ctes.extend(self.context.given.iter().cloned().map(Cte::Given));
        let bound = self.query(query);
        self.levels.pop();
        bound
    }

    /// Binds a query in the current level.
    pub(super) fn query(&mut self, query: &ast::Query) -> SqlResult<Bounded> {
        if !query.locks.is_empty() {
            return Err(SqlError::unsupported("FOR UPDATE or FOR SHARE in this query").with_hint(
                "Write it as a query of the statement's WITH: WITH q AS (SELECT .. FOR UPDATE) ..",
            ));
        }
        let known = self.ctes.len();
        let result = self.deeper(|b| {
            if let Some(with) = &query.with {
                b.add_ctes(with, query)?;
            }
            b.query_body(query)
        });
        self.ctes.truncate(known);
        result
    }

    fn query_body(&mut self, query: &ast::Query) -> SqlResult<Bounded> {
        let order: &[ast::OrderByExpr] = match &query.order_by {
            None => &[],
            Some(order) => match &order.kind {
                ast::OrderByKind::Expressions(exprs) => exprs,
                ast::OrderByKind::All(_) => return Err(SqlError::unsupported("ORDER BY ALL")),
            },
        };
        let before = self.assumed.takes_none;
        self.assumed.takes_none |= takes_none(query);
        let bound = match &*query.body {
            ast::SetExpr::Select(select) => self.isolated(|b| b.select(select, order))?,
            body => {
                let bound = self.set_expr(body)?;
                self.order_outputs(bound, order)?
            }
        };
        self.assumed.takes_none = before;
        self.limit(bound, query)
    }

    /// The body of a query without ORDER BY and LIMIT.
    pub(super) fn set_expr(&mut self, body: &ast::SetExpr) -> SqlResult<Bounded> {
        match body {
            ast::SetExpr::Select(select) => self.isolated(|b| b.select(select, &[])),
            ast::SetExpr::Query(query) => self.query(query),
            ast::SetExpr::Values(values) => self.isolated(|b| b.values(values)),
            ast::SetExpr::SetOperation { left, op, set_quantifier, right } => {
                self.set_operation(left, *op, *set_quantifier, right)
            }
            other => Err(SqlError::unsupported(format!("{other} as a query"))),
        }
    }

    pub(super) fn add_ctes(&mut self, with: &ast::With, whole: &ast::Query) -> SqlResult<()> {
        let first = self.ctes.len();
        for cte in &braid_scalar::with_in_order(with)?.cte_tables {
            let name = ident_name(&cte.alias.name);
            if self.ctes[first..].iter().any(|c| c.name() == name) {
                return Err(SqlError::new(
                    SqlState::DUPLICATE_ALIAS,
                    format!("WITH query name \"{name}\" specified more than once"),
                ));
            }
            super::cte::check_only_reads(&cte.query)?;
            let entry = self.cte_entry(cte, with.recursive)?;
            let entry = match self.shared_cte(cte, whole, &entry)? {
                Some(shared) => shared,
                None => {
                    self.check_unused(cte, whole, &entry)?;
                    entry
                }
            };
            self.ctes.push(entry);
        }
        Ok(())
    }

    fn select(&mut self, select: &ast::Select, order: &[ast::OrderByExpr]) -> SqlResult<Bounded> {
        refuse(select)?;
        let mut plan = self.bind_from(&select.from)?;
        braid_scalar::decide_by_casts(&select.projection, &mut self.params);
        if let Some(rewritten) = self.without_grouped_sets(select, order)? {
            return self.isolated(|b| b.select(&rewritten.select, &rewritten.order));
        }
        let ctes = std::mem::take(&mut self.ctes);
        let order_of_from = from_order(&select.from, &self.level().scope, &|name| match ctes
            .iter()
            .rfind(|cte| cte.name() == name)?
        {
            Cte::Query { query, columns, recursive: false, .. } => {
                Some((query.clone(), !columns.is_empty()))
            }
            _ => None,
        });
        self.ctes = ctes;
        self.level().aggregating.from_order = order_of_from;
        if let Some(condition) = &select.selection {
            let bound = self.condition(condition, "WHERE")?;
            plan = self.filtered(plan, &bound, true)?;
        }
        self.name_windows(&select.named_window)?;
        let grouped = self.select_groups(select)?;
        let mut items = self.select_items(&select.projection)?;
        let mut having = self.having(select)?;
        let mut keys = self.order_keys(order, &items, ("ORDER BY", "ordering"))?;
        self.check_unused_windows()?;
        let mut distinct_on = self.distinct_on(select, &items)?;
        check_begins_with(&keys, distinct_on.as_deref().unwrap_or_default(), &items)?;
        let qualify = self.qualify(select)?;
        items.extend(qualify.map(|bound| Item { name: String::new(), bound }));
        let aggregated = grouped || having.is_some() || !self.level().aggregates.is_empty();
        if aggregated {
            let grouped = self.regroup_all(&mut items, &mut having, &mut keys);
            grouped.map_err(|e| self.first_ungrouped(select, order, e))?;
            plan = self.aggregate_plan(plan)?;
            if let Some(having) = &having {
                plan = self.filtered(plan, having, false)?;
            }
        }
        plan = self.window_plan(plan)?;
        if select.qualify.is_some()
            && let Some(condition) = items.pop()
        {
            plan = self.filtered(plan, &condition.bound, false)?;
        }
        if let Some(on) =
            distinct_on.take_if(|on| self.is_before_sets(&items, keys.iter().chain(&*on)))
        {
            plan = self.first_inputs(plan, &items, &keys, &on)?;
            keys.clear();
        }
        if select.distinct.is_none() && self.sorts_first(&items, &keys) {
            plan = self.sort_inputs(plan, &items, &keys)?;
            keys.clear();
        }
        plan = self.set_function_plan(plan)?;
        self.finish_select(plan, select, items, keys, distinct_on)
    }

    fn having(&mut self, select: &ast::Select) -> SqlResult<Option<Bound>> {
        let Some(expr) = &select.having else { return Ok(None) };
        let scope = self.level().scope.clone();
        let before = self.level().set_functions.len();
        let bound = braid_scalar::bind_bool(expr, "HAVING", &scope, self)?;
        if self.level().set_functions.len() > before {
            return Err(sets_not_allowed("HAVING"));
        }
        Ok(Some(faults::without_casts(&bound)))
    }

    /// The plan with a condition; with `joined` over tables, else over groups.
    pub(super) fn filtered(
        &mut self,
        mut plan: LogicalPlan,
        condition: &Bound,
        joined: bool,
    ) -> SqlResult<LogicalPlan> {
        let condition = self.lift_conditions(&mut plan, condition)?;
        for filter in self.filters(&condition, joined)? {
            plan = LogicalPlanBuilder::from(plan)
                .filter(filter)
                .and_then(LogicalPlanBuilder::build)
                .map_err(from_df)?;
        }
        Ok(plan)
    }

    /// Whether there are set-returning functions, and none of these keys has one.
    fn is_before_sets<'k>(
        &mut self,
        items: &[Item],
        mut keys: impl Iterator<Item = &'k OrderKey>,
    ) -> bool {
        let sets: Vec<usize> = self.level().set_functions.iter().map(|s| s.slot()).collect();
        !sets.is_empty()
            && !keys.any(|key| {
                let bound = match &key.target {
                    Target::Output(at) => &items[*at].bound,
                    Target::Expr(bound) => bound,
                };
                bound.columns().iter().any(|column| sets.contains(column))
            })
    }

    /// DISTINCT ON of rows of which set-returning functions make several afterwards: the first row
    /// of each group, in their order.
    fn first_inputs(
        &mut self,
        plan: LogicalPlan,
        items: &[Item],
        keys: &[OrderKey],
        on: &[OrderKey],
    ) -> SqlResult<LogicalPlan> {
        let (mut groups, mut sorts) = (Vec::new(), Vec::new());
        for (at, key) in on.iter().chain(keys).enumerate() {
            let bound = match &key.target {
                Target::Output(at) => items[*at].bound.clone(),
                Target::Expr(bound) => bound.clone(),
            };
            if at < on.len() {
                let expr = self.plan_expr(&bound)?;
                groups.push(self.equal_form(expr, bound.ty(), &key.collation)?);
            } else {
                let form = order_form(bound.with_collation(key.collation.clone()))?;
                let expr = scalar::sortable(self.plan_expr(&form)?, form.ty());
                sorts.push(Sort::new(expr, !key.desc, key.nulls_first));
            }
        }
        let firsts = self.firsts(plan, groups, sorts)?.build().map_err(from_df)?;
        match keys.is_empty() {
            true => Ok(firsts),
            false => self.sort_inputs(firsts, items, keys),
        }
    }

    /// Whether the rows are sorted before the select list is computed: volatile functions then run
    /// for the rows that LIMIT leaves, in their order, and set-returning functions keep theirs.
    fn sorts_first(&mut self, items: &[Item], keys: &[OrderKey]) -> bool {
        let sets: Vec<usize> = self.level().set_functions.iter().map(|s| s.slot()).collect();
        let late = |b: &Bound| {
            b.volatility() == Volatility::Volatile || b.columns().iter().any(|c| sets.contains(c))
        };
        !keys.is_empty()
            && items.iter().any(|i| late(&i.bound))
            && !keys.iter().any(|k| match &k.target {
                Target::Output(at) => late(&items[*at].bound),
                Target::Expr(bound) => {
                    bound.columns().iter().any(|c| sets.contains(c))
                        || same_item(bound, items).is_some_and(|at| late(&items[at].bound))
                }
            })
    }

    fn sort_inputs(
        &mut self,
        plan: LogicalPlan,
        items: &[Item],
        keys: &[OrderKey],
    ) -> SqlResult<LogicalPlan> {
        let mut sorts = Vec::new();
        let mut columns = Vec::new();
        for key in keys {
            let bound = match &key.target {
                Target::Output(at) => items[*at].bound.clone(),
                Target::Expr(bound) => bound.clone(),
            };
            let form = order_form(bound.clone().with_collation(key.collation.clone()))?;
            let mut expr = scalar::sortable(self.plan_expr(&form)?, form.ty());
            if bound.columns().is_empty() {
                // Nothing may be left of the rows but this: then it must be a column of theirs.
                let name = self.fresh("k");
                columns.push(expr.alias(name.clone()));
                expr = column(&name);
            }
            sorts.push(Sort::new(expr, !key.desc, key.nulls_first));
        }
        let plan = match columns.is_empty() {
            true => plan,
            false => LogicalPlanBuilder::from(plan.clone())
                .project(columns_of(&plan).into_iter().chain(columns))
                .and_then(LogicalPlanBuilder::build)
                .map_err(from_df)?,
        };
        // Nodes that multiply rows keep their order, but do not say so: a sort below them that
        // takes "at most" so many rows is none that the optimizer leaves out.
        let all = (!self.level().set_functions.is_empty()).then_some(1 << 62);
        LogicalPlanBuilder::from(plan)
            .sort_with_limit(sorts, all)
            .and_then(LogicalPlanBuilder::build)
            .map_err(from_df)
    }

    /// The select list with sets that rows are grouped by in FROM, if there are any. FROM is bound:
    /// its columns come before names of the select list.
    fn without_grouped_sets(
        &mut self,
        select: &ast::Select,
        order: &[ast::OrderByExpr],
    ) -> SqlResult<Option<Rewritten>> {
        let ast::GroupByExpr::Expressions(keys, _) = &select.group_by else { return Ok(None) };
        if keys.is_empty() || !grouped_sets::are_possible(select) {
            return Ok(None);
        }
        let targets = targets_of(select);
        let meant: Vec<ast::Expr> =
            keys.iter().map(|key| self.group_target(key, &targets)).collect::<SqlResult<_>>()?;
        grouped_sets::rewritten(select, order, &meant)
    }

    fn select_groups(&mut self, select: &ast::Select) -> SqlResult<bool> {
        let all;
        let exprs = match &select.group_by {
            ast::GroupByExpr::All(modifiers) if modifiers.is_empty() => {
                all = self.grouped_by_all(select)?;
                &all
            }
            ast::GroupByExpr::All(_) => return Err(SqlError::unsupported("GROUP BY ALL")),
            ast::GroupByExpr::Expressions(exprs, modifiers) if modifiers.is_empty() => exprs,
            ast::GroupByExpr::Expressions(..) => {
                return Err(SqlError::unsupported("GROUPING SETS, CUBE or ROLLUP"));
            }
        };
        let targets = targets_of(select);
        self.bind_groups(exprs, &targets)?;
        Ok(!exprs.is_empty() || matches!(select.group_by, ast::GroupByExpr::All(_)))
    }

    /// What GROUP BY ALL groups by: the items of the select list that are computed of single rows.
    fn grouped_by_all(&mut self, select: &ast::Select) -> SqlResult<Vec<ast::Expr>> {
        let mut out = Vec::new();
        for item in &select.projection {
            let table = match item {
                ast::SelectItem::UnnamedExpr(expr)
                | ast::SelectItem::ExprWithAlias { expr, .. } => {
                    if is_grouped_by_all(expr) {
                        out.push(expr.clone());
                    }
                    continue;
                }
                ast::SelectItem::Wildcard(_) => None,
                ast::SelectItem::QualifiedWildcard(
                    ast::SelectItemQualifiedWildcardKind::ObjectName(name),
                    _,
                ) => braid_scalar::object_name_parts(name).pop(),
                other => {
                    let what = format!("GROUP BY ALL of {other} in a select list");
                    return Err(SqlError::unsupported(what));
                }
            };
            for at in self.level().scope.expand_star(table.as_deref())? {
                let column = self.level().scope.columns()[at].clone();
                if column.hidden && !self.is_using_column(&column.name) {
                    continue;
                }
                let parts = column.table.into_iter().chain([column.name]);
                let parts = parts.map(|part| ast::Ident::with_quote('"', part)).collect();
                out.push(ast::Expr::CompoundIdentifier(parts));
            }
        }
        Ok(out)
    }

    fn regroup_all(
        &mut self,
        items: &mut [Item],
        having: &mut Option<Bound>,
        keys: &mut [OrderKey],
    ) -> SqlResult<()> {
        for item in items.iter_mut() {
            item.bound = self.regroup(&item.bound)?;
        }
        if let Some(bound) = having {
            *bound = self.regroup(bound)?;
        }
        for key in keys.iter_mut() {
            if let Target::Expr(bound) = &mut key.target {
                *bound = self.regroup(bound)?;
            }
        }
        let mut windows = std::mem::take(&mut self.level().windows);
        for window in &mut windows {
            window.for_each(&mut |b| self.regroup(b))?;
        }
        self.level().windows = windows;
        let mut sets = std::mem::take(&mut self.level().set_functions);
        for set in &mut sets {
            set.for_each(&mut |b| self.regroup(b))?;
        }
        self.level().set_functions = sets;
        Ok(())
    }

    fn select_items(&mut self, projection: &[ast::SelectItem]) -> SqlResult<Vec<Item>> {
        let mut items = Vec::new();
        for item in projection {
            match item {
                ast::SelectItem::UnnamedExpr(expr)
                    if let Some(row) = braid_scalar::all_fields(expr) =>
                {
                    let row = self.settled(&row)?;
                    let Some(fields) = braid_scalar::fields_of(&row)? else {
                        return Err(not_a_row(row.ty()));
                    };
                    let item =
                        |(name, bound): (Arc<str>, _)| Item { name: name.to_string(), bound };
                    items.extend(fields.into_iter().map(item));
                }
                ast::SelectItem::UnnamedExpr(expr) if let Some(star) = StarExcept::of(expr)? => {
                    self.star_except(&star, &mut items)?;
                }
                ast::SelectItem::UnnamedExpr(expr) => {
                    let bound = self.settled(expr)?;
                    items.push(Item { name: output_name(expr), bound });
                }
                ast::SelectItem::ExprWithAlias { expr, alias } => {
                    let bound = self.settled(expr)?;
                    items.push(Item { name: ident_name(alias), bound });
                }
                ast::SelectItem::Wildcard(_) => {
                    if self.level().scope.is_empty() {
                        return Err(SqlError::syntax(
                            "SELECT * with no tables specified is not valid",
                        ));
                    }
                    self.star(None, &mut items)?;
                }
                ast::SelectItem::QualifiedWildcard(kind, _) => match kind {
                    ast::SelectItemQualifiedWildcardKind::ObjectName(name) => {
                        let parts = braid_scalar::object_name_parts(name);
                        let start = name.span().start;
                        self.star(parts.last().map(String::as_str), &mut items)
                            .map_err(|e| e.or_at(start.line, start.column))?;
                    }
                    ast::SelectItemQualifiedWildcardKind::Expr(e) => {
                        return Err(SqlError::unsupported(format!("({e}).*")));
                    }
                },
                other => return Err(SqlError::unsupported(format!("{other} in a select list"))),
            }
        }
        Ok(items)
    }

    pub(super) fn star(&mut self, table: Option<&str>, items: &mut Vec<Item>) -> SqlResult<()> {
        if let Some(outer) = table
            && !self.level().scope.has_table(outer)
            && let Some(columns) = self.outer_columns(outer)?
        {
            items.extend(columns.into_iter().map(|(name, bound)| Item { name, bound }));
            return Ok(());
        }
        for at in self.level().scope.expand_star(table)? {
            let column = self.level().scope.columns()[at].clone();
            // A merged USING column is hidden under its table's name only for plain `*`.
            let row_id = column.hidden && table.is_some() && !self.is_using_column(&column.name);
            if row_id {
                continue;
            }
            items.push(Item { name: column.name, bound: self.input_column(at)? });
        }
        Ok(())
    }

    fn is_using_column(&mut self, name: &str) -> bool {
        self.level()
            .scope
            .columns()
            .iter()
            .any(|c| c.table.is_none() && c.name == name && !c.hidden)
    }

    /// The keys of ORDER BY and DISTINCT ON: ordinals, output names, expressions; `operator` is
    /// what they need.
    fn order_keys(
        &mut self,
        order: &[ast::OrderByExpr],
        items: &[Item],
        (clause, operator): (&str, &str),
    ) -> SqlResult<Vec<OrderKey>> {
        let mut keys = Vec::new();
        for key in order {
            let Direction { desc, nulls_first } = Direction::of(&key.options);
            let names: Vec<&str> = items.iter().map(|i| i.name.as_str()).collect();
            let target = match output_target(&key.expr, &names, clause)? {
                Some(at) => Target::Output(at),
                None => Target::Expr(self.settled(&key.expr)?),
            };
            let value = match &target {
                Target::Output(at) => &items[*at].bound,
                Target::Expr(bound) => bound,
            };
            value.ty().check_comparable(operator)?;
            let collation = value.collation().clone();
            keys.push(OrderKey { target, collation, desc, nulls_first });
        }
        Ok(keys)
    }

    fn distinct_on(
        &mut self,
        select: &ast::Select,
        items: &[Item],
    ) -> SqlResult<Option<Vec<OrderKey>>> {
        let Some(ast::Distinct::On(exprs)) = &select.distinct else { return Ok(None) };
        let order: Vec<ast::OrderByExpr> = exprs
            .iter()
            .map(|e| ast::OrderByExpr {
                expr: e.clone(),
                options: ast::OrderByOptions::default(),
                with_fill: None,
            })
            .collect();
        self.order_keys(&order, items, ("DISTINCT ON", "equality")).map(Some)
    }

    fn finish_select(
        &mut self,
        mut plan: LogicalPlan,
        select: &ast::Select,
        items: Vec<Item>,
        keys: Vec<OrderKey>,
        distinct_on: Option<Vec<OrderKey>>,
    ) -> SqlResult<Bounded> {
        let mut exprs = Vec::new();
        let mut columns = Vec::new();
        for item in &items {
            let name = self.fresh("x");
            let origin = item.bound.as_column().and_then(|at| self.level().origin_of(at));
            let nullable = self.nullable(&item.bound);
            let value = self.lift(&mut plan, &item.bound)?;
            // Conditions of the query around are not computed before those in here: what can fail
            // stays where it is.
            let expr = match self.depth > 1 && self.can_fail(&value) {
                true => self.pinned(&value, false)?,
                false => self.plan_expr(&value)?,
            };
            exprs.push(expr.alias(name.clone()));
            columns.push(OutputColumn {
                name: item.name.clone(),
                ty: item.bound.ty().clone(),
                collation: item.bound.collation().clone(),
                expr: column(&name),
                origin,
                nullable,
            });
        }
        let distinct = matches!(select.distinct, Some(ast::Distinct::Distinct));
        let mut sorts = Vec::new();
        for key in &keys {
            let expr = self.key_expr(&mut plan, key, (&items, &columns), distinct, &mut exprs)?;
            sorts.push(Sort::new(expr, !key.desc, key.nulls_first));
        }
        let mut on = Vec::new();
        for key in distinct_on.iter().flatten() {
            let (expr, ty) = match &key.target {
                Target::Output(at) => (columns[*at].expr.clone(), columns[*at].ty.clone()),
                Target::Expr(bound) => {
                    let name = self.fresh("d");
                    exprs.push(self.plan_expr(bound)?.alias(name.clone()));
                    (column(&name), bound.ty().clone())
                }
            };
            on.push(self.equal_form(expr, &ty, &key.collation)?);
        }
        if exprs.is_empty() {
            // DataFusion wants a column; the client gets none.
            exprs.push(
                Expr::Literal(datafusion::common::ScalarValue::Boolean(None), None)
                    .alias("nothing"),
            );
        }
        let mut plan = LogicalPlanBuilder::from(plan)
            .project(exprs)
            .and_then(LogicalPlanBuilder::build)
            .map_err(from_df)?;
        if distinct {
            columns.iter().try_for_each(|c| c.collation.check_implicit())?;
            let named = |c: &OutputColumn| {
                (c.expr.schema_name().to_string(), c.ty.clone(), c.collation.clone())
            };
            let names: Vec<Named> = columns.iter().map(named).collect();
            plan = self.distinct_plan(plan, &names)?;
        }
        let mut builder = LogicalPlanBuilder::from(plan);
        if distinct_on.is_some() {
            let outputs: Vec<Expr> = columns.iter().map(|c| c.expr.clone()).collect();
            return self.first_of_each(builder, on, sorts, outputs, columns);
        }
        if !sorts.is_empty() {
            builder = builder.sort(sorts).map_err(from_df)?;
        }
        let plan = builder.build().map_err(from_df)?;
        Ok(Bounded { plan, columns })
    }

    /// What a key of ORDER BY sorts by; what is no output column is added to those that are
    /// computed.
    fn key_expr(
        &mut self,
        plan: &mut LogicalPlan,
        key: &OrderKey,
        (items, columns): (&[Item], &[OutputColumn]),
        distinct: bool,
        exprs: &mut Vec<Expr>,
    ) -> SqlResult<Expr> {
        // A row is sorted by forms of its fields.
        let apart = |at: usize| match (distinct, &key.collation) {
            (false, Collated::Row(_)) => Some(&items[at].bound),
            _ => None,
        };
        let at = match &key.target {
            Target::Output(at) => Ok(*at),
            Target::Expr(bound) => match same_item(bound, items) {
                Some(at) if !distinct || columns[at].collation == key.collation => Ok(at),
                _ if distinct => return Err(not_distinct()),
                _ => Err(bound),
            },
        };
        match at.and_then(|at| apart(at).map_or(Ok(at), Err)) {
            Ok(at) => {
                let OutputColumn { expr, ty, .. } = &columns[at];
                self.sort_form(expr.clone(), ty, &key.collation)
            }
            Err(bound) => {
                let name = self.fresh("s");
                let form = order_form(bound.clone().with_collation(key.collation.clone()))?;
                let value = self.lift(plan, &form)?;
                exprs.push(self.plan_expr(&value)?.alias(name.clone()));
                Ok(scalar::sortable(column(&name), form.ty()))
            }
        }
    }

    /// DISTINCT ON: the first row of each group in the order of ORDER BY.
    fn first_of_each(
        &mut self,
        builder: LogicalPlanBuilder,
        on: Vec<Expr>,
        sorts: Vec<Sort>,
        outputs: Vec<Expr>,
        columns: Vec<OutputColumn>,
    ) -> SqlResult<Bounded> {
        let input = builder.build().map_err(from_df)?;
        let mut builder = self.firsts(input, on, sorts.clone())?;
        if !sorts.is_empty() {
            builder = builder.sort(sorts).map_err(from_df)?;
        }
        let plan = builder.project(outputs).and_then(LogicalPlanBuilder::build).map_err(from_df)?;
        Ok(Bounded { plan, columns })
    }

    /// The first row of each group in an order.
    fn firsts(
        &mut self,
        input: LogicalPlan,
        on: Vec<Expr>,
        sorts: Vec<Sort>,
    ) -> SqlResult<LogicalPlanBuilder> {
        use datafusion::functions_window::row_number::row_number_udwf;
        use datafusion::logical_expr::expr::WindowFunction;
        use datafusion::logical_expr::{WindowFunctionDefinition, lit};
        let name = self.fresh("n");
        let definition = WindowFunctionDefinition::WindowUDF(row_number_udwf());
        let mut call = WindowFunction::new(definition, Vec::new());
        call.params.partition_by = on;
        call.params.window_frame = super::window::up_to_here(&sorts);
        call.params.order_by = sorts;
        let carrier = datafusion::arrow::datatypes::DataType::Int64;
        let numbered = super::window::window_column(input, call, name.clone(), &carrier)?;
        LogicalPlanBuilder::from(numbered).filter(column(&name).eq(lit(1i64))).map_err(from_df)
    }

    /// ORDER BY of a set operation or VALUES: output columns only.
    fn order_outputs(&mut self, bound: Bounded, order: &[ast::OrderByExpr]) -> SqlResult<Bounded> {
        if order.is_empty() {
            return Ok(bound);
        }
        let names: Vec<&str> = bound.columns.iter().map(|c| c.name.as_str()).collect();
        let mut sorts = Vec::new();
        for key in order {
            let Direction { desc, nulls_first } = Direction::of(&key.options);
            let at = output_target(&key.expr, &names, "ORDER BY")?
                .ok_or_else(|| no_output(&key.expr))?;
            let column = &bound.columns[at];
            column.ty.check_comparable("ordering")?;
            let expr = self.sort_form(column.expr.clone(), &column.ty, &column.collation)?;
            sorts.push(Sort::new(expr, !desc, nulls_first));
        }
        let plan = LogicalPlanBuilder::from(bound.plan)
            .sort(sorts)
            .and_then(LogicalPlanBuilder::build)
            .map_err(from_df)?;
        Ok(Bounded { plan, columns: bound.columns })
    }

    fn limit(&mut self, bound: Bounded, query: &ast::Query) -> SqlResult<Bounded> {
        let (mut limit, mut offset) = (None, None);
        match &query.limit_clause {
            None => {}
            Some(ast::LimitClause::LimitOffset { limit: l, offset: o, limit_by }) => {
                if !limit_by.is_empty() {
                    return Err(SqlError::unsupported("LIMIT BY"));
                }
                limit = l.as_ref();
                offset = o.as_ref().map(|o| &o.value);
            }
            Some(ast::LimitClause::OffsetCommaLimit { .. }) => {
                return Err(SqlError::syntax("LIMIT #,# syntax is not supported")
                    .with_hint("Use separate LIMIT and OFFSET clauses."));
            }
        }
        let one = ast::Expr::Value(ast::Value::Number("1".to_string(), false).into());
        if let Some(fetch) = &query.fetch {
            if fetch.percent {
                return Err(SqlError::syntax("syntax error at or near \"percent\""));
            }
            if query.order_by.is_none() {
                return Err(SqlError::syntax(
                    "WITH TIES cannot be specified without ORDER BY clause",
                ));
            }
            limit = Some(fetch.quantity.as_ref().unwrap_or(&one));
        }
        let limit = limit.map(|e| self.page_count(query, e, "LIMIT")).transpose()?;
        let offset = offset.map(|e| self.page_count(query, e, "OFFSET")).transpose()?;
        let with_ties = query.fetch.is_some();
        if limit.iter().chain(&offset).any(|count| !count.columns().is_empty()) {
            let page = (limit.as_ref(), offset.as_ref());
            let plan = self.as_many_as(bound.plan, page, with_ties)?;
            return Ok(Bounded { plan, columns: bound.columns });
        }
        if let Some(limit) = limit.as_ref().filter(|_| !with_ties)
            && self.chooses_page(limit, offset.as_ref())
            && let Some(page) = Page::of(limit, offset.as_ref(), &self.eval)?
        {
            let plan = first_rows(bound.plan, 0, Some(page.first))?;
            self.assumed.page = Some(page);
            return Ok(Bounded { plan, columns: bound.columns });
        }
        let fetch = match &limit {
            Some(limit) => self.rows_now(limit, "LIMIT")?,
            None => None,
        };
        let skip = match &offset {
            Some(offset) => self.rows_now(offset, "OFFSET")?.unwrap_or(0),
            None => 0,
        };
        if fetch.is_none() && skip == 0 {
            return Ok(bound);
        }
        if let Some(most @ 1..) = fetch
            && with_ties
        {
            let plan = self.with_ties(bound.plan, skip, most)?;
            return Ok(Bounded { plan, columns: bound.columns });
        }
        let plan = match skip {
            0 => bound.plan,
            // What a volatile function does counts for rows that are passed over, too.
            _ => evaluated(bound.plan).map_err(from_df)?,
        };
        let plan = first_rows(plan, skip, fetch)?;
        Ok(Bounded { plan, columns: bound.columns })
    }

    /// Whether each execution of a kept plan chooses its rows from the first ones that the plan
    /// gives: some of these may be computed for nothing.
    fn chooses_page(&self, limit: &Bound, offset: Option<&Bound>) -> bool {
        let counts = || std::iter::once(limit).chain(offset);
        let outermost = self.depth == 1 && self.levels.len() == 1 && self.view_depth == 0;
        self.binding == Binding::ForValues
            && outermost
            && !(self.risky || self.volatile)
            && counts().any(|count| count.volatility() == Volatility::Stable)
            && counts()
                .all(|count| count.volatility() != Volatility::Volatile && !count.has_applied())
    }

    /// So many rows are wanted in the execution that begins, as far as that is known.
    fn rows_now(&mut self, count: &Bound, clause: &str) -> SqlResult<Option<usize>> {
        self.value_now(count)?.map_or(Ok(None), |value| row_count(value, clause))
    }
}

/// Whether it says LIMIT 0.
fn takes_none(query: &ast::Query) -> bool {
    let Some(ast::LimitClause::LimitOffset { limit: Some(limit), .. }) = &query.limit_clause else {
        return false;
    };
    let ast::Expr::Value(value) = limit else { return false };
    matches!(&value.value, ast::Value::Number(digits, _) if digits == "0")
}

fn first_rows(plan: LogicalPlan, skip: usize, fetch: Option<usize>) -> SqlResult<LogicalPlan> {
    LogicalPlanBuilder::from(plan)
        .limit(skip, fetch)
        .and_then(LogicalPlanBuilder::build)
        .map_err(from_df)
}

/// 42P10.
fn not_distinct() -> SqlError {
    SqlError::new(
        SqlState::INVALID_COLUMN_REFERENCE,
        "for SELECT DISTINCT, ORDER BY expressions must appear in select list",
    )
}

/// The select item that an expression repeats.
fn same_item(bound: &Bound, items: &[Item]) -> Option<usize> {
    let text = bound.to_string();
    items.iter().position(|i| match (i.bound.node(), bound.node()) {
        (Node::Column(a), Node::Column(b)) => a == b,
        _ => i.bound.ty() == bound.ty() && i.bound.to_string() == text,
    })
}

/// The output column that a key of a clause names by number or by name.
fn output_target(expr: &ast::Expr, names: &[&str], clause: &str) -> SqlResult<Option<usize>> {
    Ok(match expr {
        ast::Expr::Identifier(ident) => {
            let name = ident_name(ident);
            names.iter().position(|n| *n == name)
        }
        _ => braid_scalar::column_by_number(expr, names.len(), clause)?,
    })
}

/// Why the rows of a set operation are not ordered by something.
fn no_output(expr: &ast::Expr) -> SqlError {
    let error = match expr {
        ast::Expr::Identifier(ident) => {
            let text = format!("column \"{}\" does not exist", ident_name(ident));
            SqlError::new(SqlState::UNDEFINED_COLUMN, text)
        }
        _ => SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "invalid UNION/INTERSECT/EXCEPT ORDER BY clause",
        )
        .with_detail("Only result column names can be used, not expressions or functions.")
        .with_hint(
            "Add the expression/function to every SELECT, or move the UNION into a FROM clause.",
        ),
    };
    at_beginning(error, expr)
}

/// Of what `(..).*` cannot be written out.
fn not_a_row(ty: &SqlType) -> SqlError {
    if *ty == SqlType::Record {
        return SqlError::unsupported("all fields of a row without names")
            .with_hint("Call the function in FROM, or cast the row to a composite type.");
    }
    let text = format!("type {} is not composite", ty.base_name());
    SqlError::new(SqlState::WRONG_OBJECT_TYPE, text)
}

/// Clauses of other systems that the parser takes.
fn refuse(select: &ast::Select) -> SqlResult<()> {
    let refused = [
        (select.top.is_some(), "TOP"),
        (select.into.is_some(), "SELECT INTO"),
        (!select.lateral_views.is_empty(), "LATERAL VIEW"),
        (select.prewhere.is_some(), "PREWHERE"),
        (!select.connect_by.is_empty(), "CONNECT BY"),
        (!select.cluster_by.is_empty(), "CLUSTER BY"),
        (!select.distribute_by.is_empty(), "DISTRIBUTE BY"),
        (!select.sort_by.is_empty(), "SORT BY"),
        (select.value_table_mode.is_some(), "SELECT AS"),
        (select.exclude.is_some(), "EXCLUDE"),
    ];
    match refused.iter().find(|(present, _)| *present) {
        Some((_, what)) => Err(SqlError::unsupported(what)),
        None => Ok(()),
    }
}
