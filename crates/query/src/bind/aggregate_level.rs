//! Which query an aggregate belongs to.
//!
//! ```text
//!   SELECT g, (SELECT max(y.a) FROM y WHERE y.a < sum(t.v)) FROM t GROUP BY g
//! ```
//! `sum(t.v)` stands in the inner query, but its rows are those of the outer one: SQL says that an
//! aggregate is of the innermost query whose columns are in its arguments or its filter, and of the
//! query it stands in if there are none. For the queries further inside it is a constant then, like
//! an outer column.

use std::ops::ControlFlow;

use braid_scalar::{ident_name, object_name_parts};
use sqlparser::ast::{self, Visit, Visitor};

use super::{Binder, Level};

impl Binder<'_> {
    /// How many queries further out the rows of an aggregate are; 0 for its own query.
    pub(super) fn queries_out(&self, function: &ast::Function) -> usize {
        // The body of a function does not see the levels around it.
        let body = self.levels.iter().rposition(|level| level.arguments.is_some());
        let levels = &self.levels[body.unwrap_or(0)..];
        let mut uses = Uses { levels, nearest: None, inside: 0 };
        uses.stars(function);
        let _walked: ControlFlow<()> = function.visit(&mut uses);
        uses.nearest.unwrap_or(0)
    }
}

/// The columns that an aggregate uses.
struct Uses<'a> {
    levels: &'a [Level],
    /// How far out the nearest table is.
    nearest: Option<usize>,
    /// Subqueries around the expression within the arguments.
    inside: usize,
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

    fn pre_visit_query(&mut self, _: &ast::Query) -> ControlFlow<()> {
        self.inside += 1;
        // Its names may be its own: what is not certain stays where it stands.
        self.found(0);
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
