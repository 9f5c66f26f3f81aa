//! Which column of a grouped query is neither grouped nor aggregated, and where it stands.
//!
//! ```text
//!   SELECT a, max(s), upper(s) FROM t GROUP BY a
//!                          `-- this one: the first in the order of the text
//! ```
//! Expressions are moved from inputs to groups when they are bound, and then know nothing of the
//! text. What goes wrong there is looked for once more in the parsed tree.

use std::ops::ControlFlow;

use braid_scalar::{beginning, ident_name, is_aggregate, object_name_parts};
use braid_types::{Mark, Place, SqlError, SqlState};
use braid_walk::Walk;
use sqlparser::ast::{self, Spanned, Visitor};
use sqlparser::tokenizer::Location;

use super::Binder;

impl Binder<'_> {
    /// The error for the first column of a query that cannot be told of a group, with its place; if
    /// none is found, the error as it is.
    pub(super) fn first_ungrouped(
        &mut self,
        select: &ast::Select,
        order: &[ast::OrderByExpr],
        error: SqlError,
    ) -> SqlError {
        if error.state() != SqlState::GROUPING_ERROR {
            return error;
        }
        let names = select.projection.iter().filter_map(|item| match item {
            ast::SelectItem::ExprWithAlias { alias, .. } => Some(ident_name(alias)),
            _ => None,
        });
        let names: Vec<String> = names.collect();
        let by_name = |key: &ast::Expr| match key {
            ast::Expr::Identifier(name) => names.contains(&ident_name(name)),
            _ => false,
        };
        let mut search = Search { binder: self, quiet: 0 };
        let mut found = search.items(&select.projection);
        let keys = order.iter().map(|key| &key.expr).filter(|key| !by_name(key));
        for expr in select.having.iter().chain(keys) {
            if found.is_continue() {
                found = expr.walk(&mut search);
            }
        }
        found.break_value().unwrap_or(error)
    }
}

struct Search<'a, 'b> {
    binder: &'a mut Binder<'b>,
    /// How many aggregates, groups and queries are around.
    quiet: usize,
}

impl Search<'_, '_> {
    fn items(&mut self, items: &[ast::SelectItem]) -> ControlFlow<SqlError> {
        items.iter().try_for_each(|item| match item {
            ast::SelectItem::Wildcard(options) => {
                self.star(None, options.wildcard_token.0.span.start, "*")
            }
            ast::SelectItem::QualifiedWildcard(
                ast::SelectItemQualifiedWildcardKind::ObjectName(name),
                _,
            ) => match object_name_parts(name).last() {
                Some(table) => self.star(Some(table), name.span().start, table),
                None => ControlFlow::Continue(()),
            },
            item => item.walk(self),
        })
    }

    fn star(&mut self, table: Option<&str>, start: Location, word: &str) -> ControlFlow<SqlError> {
        let Ok(columns) = self.binder.level().scope.expand_star(table) else {
            return ControlFlow::Continue(());
        };
        let mark = Mark::Word(word.to_string());
        let place = Place { line: start.line, column: start.column, mark };
        columns.into_iter().try_for_each(|at| self.column(at, Some(&place)))
    }

    fn column(&mut self, at: usize, place: Option<&Place>) -> ControlFlow<SqlError> {
        match self.binder.group_of_input(at) {
            Ok(_) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error.or_place(place.cloned())),
        }
    }

    /// Whether what is within an expression is of no interest.
    fn is_quiet(&mut self, expr: &ast::Expr) -> bool {
        let aggregates = match expr {
            ast::Expr::Function(call) => {
                let name = object_name_parts(&call.name);
                call.over.is_none() && name.last().is_some_and(|name| is_aggregate(name))
            }
            _ => false,
        };
        aggregates || self.binder.level().groups.iter().any(|g| g.ast.as_ref() == Some(expr))
    }
}

impl Visitor for Search<'_, '_> {
    type Break = SqlError;

    fn pre_visit_query(&mut self, _: &ast::Query) -> ControlFlow<SqlError> {
        // Names may be its own.
        self.quiet += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &ast::Query) -> ControlFlow<SqlError> {
        self.quiet -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &ast::Expr) -> ControlFlow<SqlError> {
        if self.is_quiet(expr) {
            self.quiet += 1;
        }
        if self.quiet > 0 {
            return ControlFlow::Continue(());
        }
        let parts: Vec<String> = match expr {
            ast::Expr::Identifier(name) => vec![ident_name(name)],
            ast::Expr::CompoundIdentifier(parts) => parts.iter().map(ident_name).collect(),
            _ => return ControlFlow::Continue(()),
        };
        match self.binder.level().scope.find(&parts) {
            Ok(Some(at)) => self.column(at, beginning(expr).as_ref()),
            _ => ControlFlow::Continue(()),
        }
    }

    fn post_visit_expr(&mut self, expr: &ast::Expr) -> ControlFlow<SqlError> {
        if self.is_quiet(expr) {
            self.quiet -= 1;
        }
        ControlFlow::Continue(())
    }
}
