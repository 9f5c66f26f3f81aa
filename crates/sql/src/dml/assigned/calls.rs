//! Calls that are made of many rows, where there is one: in SET and RETURNING.

use std::ops::ControlFlow;

use braid_scalar::{is_aggregate, is_set_returning, object_name_parts};
use braid_types::{SqlError, SqlResult, SqlState};
use braid_walk::Walk;
use sqlparser::ast::{self, Expr, Visitor};

/// Tells the calls that are looked for.
type Wanted = fn(&ast::Function) -> bool;

/// The first call outside of subqueries that is one of these.
fn call(of: &impl Walk, wanted: Wanted) -> Option<Expr> {
    struct Outside(usize, Wanted);
    impl Visitor for Outside {
        type Break = Expr;
        fn pre_visit_query(&mut self, _: &ast::Query) -> ControlFlow<Expr> {
            self.0 += 1;
            ControlFlow::Continue(())
        }
        fn post_visit_query(&mut self, _: &ast::Query) -> ControlFlow<Expr> {
            self.0 -= 1;
            ControlFlow::Continue(())
        }
        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Expr> {
            match expr {
                Expr::Function(f) if self.0 == 0 && (self.1)(f) => ControlFlow::Break(expr.clone()),
                _ => ControlFlow::Continue(()),
            }
        }
    }
    match of.walk(&mut Outside(0, wanted)) {
        ControlFlow::Break(call) => Some(call),
        ControlFlow::Continue(()) => None,
    }
}

fn aggregates(f: &ast::Function) -> bool {
    let name = object_name_parts(&f.name).pop();
    f.over.is_none() && name.is_some_and(|name| is_aggregate(&name))
}

fn returns_set(f: &ast::Function) -> bool {
    let name = object_name_parts(&f.name).pop();
    f.over.is_none() && name.is_some_and(|name| is_set_returning(&name))
}

/// Whether an aggregate is called outside of subqueries.
pub(super) fn calls_aggregate(of: &impl Walk) -> bool {
    call(of, aggregates).is_some()
}

/// Refuses aggregates, window functions and set-returning functions in a clause.
///
/// # Errors
/// 42803, 42P20, 0A000.
pub(in crate::dml) fn refuse_calls(of: &impl Walk, clause: &str) -> SqlResult<()> {
    let kinds: [(Wanted, &str, SqlState); 3] = [
        (aggregates, "aggregate", SqlState::GROUPING_ERROR),
        (|f| f.over.is_some(), "window", SqlState("42P20")),
        (returns_set, "set-returning", SqlState::FEATURE_NOT_SUPPORTED),
    ];
    for (wanted, kind, state) in kinds {
        if let Some(call) = call(of, wanted) {
            let text = format!("{kind} functions are not allowed in {clause}");
            return Err(SqlError::new(state, text).or_place(braid_scalar::beginning(&call)));
        }
    }
    Ok(())
}
