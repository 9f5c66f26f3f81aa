//! Which query an aggregate belongs to.
//!
//! ```text
//!   SELECT g, (SELECT max(y.a) FROM y WHERE y.a < sum(t.v)) FROM t GROUP BY g
//! ```
//! `sum(t.v)` stands in the inner query, but its rows are those of the outer one: SQL says that an
//! aggregate is of the innermost query whose columns are in its arguments or its filter, and of the
//! query it stands in if there are none. For the queries further inside it is a constant then, like
//! an outer column. What a query within the arguments uses is known when it is bound: that is done
//! once more for it, on trial.

use std::ops::ControlFlow;

use braid_scalar::{ident_name, is_aggregate, object_name_parts};
use braid_types::{SqlError, SqlResult, SqlState};
use braid_walk::Walk;
use sqlparser::ast::{self, Visitor};

use super::{Binder, Level};

impl Binder<'_> {
    /// How many queries further out the rows of an aggregate are; 0 for its own query.
    ///
    /// # Errors
    /// 42803 for arguments in front of WITHIN GROUP that are of a query further inside.
    pub(super) fn queries_out(&mut self, function: &ast::Function) -> SqlResult<usize> {
        if function.within_group.is_empty() {
            return Ok(self.nearest_of(function, Some(function)).unwrap_or(0));
        }
        let (filter, keys) = (&function.filter, &function.within_group);
        let levels = [self.nearest_of(filter, None), self.nearest_of(keys, None)];
        let level = levels.into_iter().flatten().min();
        let direct = self.nearest_of(&function.args, Some(function));
        if direct.is_some_and(|direct| level.is_some_and(|level| direct < level)) {
            return Err(SqlError::new(
                SqlState::GROUPING_ERROR,
                "outer-level aggregate cannot contain a lower-level variable in its direct \
                 arguments",
            ));
        }
        Ok(level.unwrap_or(0))
    }

    /// How many queries further out the nearest table is that is used within, or by the arguments
    /// of a call; `None`: none is.
    fn nearest_of(&mut self, within: &impl Walk, call: Option<&ast::Function>) -> Option<usize> {
        // The body of a function does not see the levels around it.
        let body = self.levels.iter().rposition(|level| level.arguments.is_some());
        let levels = &self.levels[body.unwrap_or(0)..];
        let mut uses = Uses { levels, nearest: None, inside: 0, queries: Vec::new() };
        call.into_iter().for_each(|call| uses.stars(call));
        let _walked: ControlFlow<()> = within.walk(&mut uses);
        let Uses { mut nearest, queries, .. } = uses;
        if nearest == Some(0) || levels.len() < 2 {
            return nearest;
        }
        for query in queries {
            nearest = nearest.into_iter().chain(self.used_by(&query)).min();
        }
        nearest
    }

    /// How far out the nearest table is that a query within this level uses; 0 if that is not
    /// certain.
    fn used_by(&mut self, query: &ast::Query) -> Option<usize> {
        let lengths = |level: &Level| {
            let lists = [level.slots.len(), level.outer.len(), level.groups.len()];
            (lists, [level.aggregates.len(), level.windows.len(), level.set_functions.len()])
        };
        let before: Vec<_> = self.levels.iter().map(lengths).collect();
        let bound = self.inner_query(query);
        let nearest = match &bound {
            Err(_) => Some(0),
            Ok(inner) => {
                let columns = inner.outer.iter().flat_map(|(_, bound)| bound.columns());
                columns.filter_map(|at| self.depth_of(self.levels.len() - 1, at)).min()
            }
        };
        for (level, (lists, calls)) in self.levels.iter_mut().zip(before) {
            let [slots, outer, groups] = lists;
            let [aggregates, windows, set_functions] = calls;
            level.slots.truncate(slots);
            level.outer.truncate(outer);
            level.groups.truncate(groups);
            level.aggregates.truncate(aggregates);
            level.windows.truncate(windows);
            level.set_functions.truncate(set_functions);
        }
        nearest
    }

    /// How far out from a level the table of a column is; `None` of a function's argument.
    fn depth_of(&self, level: usize, column: usize) -> Option<usize> {
        let known = &self.levels[level];
        let Some((_, bound, _)) = known.outer.iter().find(|(_, _, slot)| *slot == column) else {
            return Some(0);
        };
        if known.arguments.is_some() {
            return None;
        }
        let out = level.checked_sub(1)?;
        let depths = bound.columns().into_iter().filter_map(|at| self.depth_of(out, at));
        depths.min().map(|depth| depth + 1)
    }
}

/// The columns that an aggregate uses.
struct Uses<'a> {
    levels: &'a [Level],
    /// How far out the nearest table is.
    nearest: Option<usize>,
    /// Subqueries around the expression within the arguments.
    inside: usize,
    queries: Vec<ast::Query>,
}

impl Uses<'_> {
    fn found(&mut self, at: usize) {
        self.nearest = Some(self.nearest.map_or(at, |nearest| nearest.min(at)));
    }

    /// The whole rows among the arguments of a call.
    fn stars(&mut self, call: &ast::Function) {
        let ast::FunctionArguments::List(list) = &call.args else { return };
        for arg in &list.args {
            if let ast::FunctionArg::Unnamed(ast::FunctionArgExpr::QualifiedWildcard(name)) = arg
                && let Some(table) = object_name_parts(name).last()
            {
                let mut levels = self.levels.iter().rev();
                if let Some(at) = levels.position(|level| level.scope.has_table(table)) {
                    self.found(at);
                }
            }
        }
    }

    fn name(&mut self, parts: &[String]) {
        let is_row = |level: &Level| matches!(parts, [table] if level.scope.has_table(table));
        let of = |level: &&Level| {
            // What is ambiguous is found, and refused when it is bound.
            level.scope.find(parts).map_or(true, |found| found.is_some()) || is_row(level)
        };
        if let Some(at) = self.levels.iter().rev().position(|level| of(&level)) {
            self.found(at);
        }
    }
}

impl Visitor for Uses<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &ast::Query) -> ControlFlow<()> {
        if self.inside == 0 {
            self.queries.push(query.clone());
        }
        self.inside += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &ast::Query) -> ControlFlow<()> {
        self.inside -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &ast::Expr) -> ControlFlow<()> {
        match expr {
            _ if self.inside > 0 => {}
            ast::Expr::Identifier(name) => self.name(&[ident_name(name)]),
            ast::Expr::CompoundIdentifier(parts) => {
                self.name(&parts.iter().map(ident_name).collect::<Vec<_>>());
            }
            ast::Expr::Function(call) => self.stars(call),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Whether GROUP BY ALL groups by an item of the select list: it is computed of single rows.
pub(super) fn is_grouped_by_all(expr: &ast::Expr) -> bool {
    let constant = matches!(expr, ast::Expr::Value(_));
    !constant && expr.walk(&mut OfRows { inside: 0 }).is_continue()
}

/// Stops at an aggregate or a window function that no query within has.
struct OfRows {
    inside: usize,
}

impl Visitor for OfRows {
    type Break = ();

    fn pre_visit_query(&mut self, _: &ast::Query) -> ControlFlow<()> {
        self.inside += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &ast::Query) -> ControlFlow<()> {
        self.inside -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &ast::Expr) -> ControlFlow<()> {
        let ast::Expr::Function(call) = expr else { return ControlFlow::Continue(()) };
        let name = object_name_parts(&call.name);
        let aggregate = name.last().is_some_and(|name| is_aggregate(name));
        match self.inside == 0 && (aggregate || call.over.is_some()) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}
