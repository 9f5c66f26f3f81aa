//! Scalar expressions: from parsed text to a typed tree, and from the tree to values.
//!
//! ```text
//!  ast::Expr --bind(scope, ctx)--> Bound (typed, overloads chosen, casts explicit)
//!                                    | eval(row, EvalContext)
//!                                    v
//!                                  Datum
//! ```
//! Every part of the system that computes a scalar goes through here: CHECK, DEFAULT, WHERE, SET,
//! VALUES, RETURNING in our own plans, and the functions that general plans call row by row. So a
//! value is the same on both paths.
//!
//! Invariants:
//! - A [`Bound`] never holds an implicit conversion that is not a node of the tree.
//! - Binding decides every type. Evaluation never looks at type names to choose a behaviour.
//! - Subqueries, aggregates and window functions are not scalar: binding them here fails with an
//!   error for which [`needs_general_query`] is true, unless [`BindContext::intercept`] takes them.

mod bound;
mod context;
mod scope;

pub use bound::{Bound, CaseBranch, CmpOp, Node, Volatility};
pub use context::{BindContext, EvalContext, NoSession, ParamTypes, SessionFunctions};
pub use scope::{Scope, ScopeColumn, ident_name, object_name_parts};

use braid_types::{SqlError, SqlResult, SqlState, SqlType};
use sqlparser::ast;

/// Marks errors of [`bind`] that mean "this expression holds a subquery, aggregate or window
/// function": the caller sends the whole statement to the general planner.
const GENERAL_MARK: &str = "needs general query: ";

/// The error that [`needs_general_query`] recognises.
pub fn general_query_needed(what: &str) -> SqlError {
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, format!("{GENERAL_MARK}{what}"))
}

/// Whether binding failed only because the expression holds a subquery, aggregate, window or
/// set-returning function, which the general planner can run.
pub fn needs_general_query(error: &SqlError) -> bool {
    error.message().starts_with(GENERAL_MARK)
}

/// Binds an expression over the columns of `scope`. Unknown-typed literals become text.
pub fn bind(expr: &ast::Expr, scope: &Scope, ctx: &mut dyn BindContext) -> SqlResult<Bound> {
    let _ = (expr, scope, ctx);
    Err(SqlError::unsupported("this expression"))
}

/// Binds and converts to a column's type by assignment rules; an unknown literal is parsed as that
/// type and a parameter of unknown type takes it.
///
/// # Errors
/// 42804 when no assignment cast exists; the message is PostgreSQL's without the column name:
/// see [`assignment_error`].
pub fn bind_to(
    expr: &ast::Expr,
    target: &SqlType,
    scope: &Scope,
    ctx: &mut dyn BindContext,
) -> SqlResult<Bound> {
    let _ = (expr, target, scope, ctx);
    Err(SqlError::unsupported("this expression"))
}

/// Binds a condition. `clause` names it in the error, for example `WHERE`.
pub fn bind_bool(
    expr: &ast::Expr,
    clause: &str,
    scope: &Scope,
    ctx: &mut dyn BindContext,
) -> SqlResult<Bound> {
    let _ = (expr, clause, scope, ctx);
    Err(SqlError::unsupported("this expression"))
}

/// The type that a parsed type name means: `integer`, `varchar(3)`, `text[]`, also Spanner's names.
pub fn sql_type_of(data_type: &ast::DataType) -> SqlResult<SqlType> {
    let _ = data_type;
    Err(SqlError::unsupported("this type"))
}

/// The column name PostgreSQL gives to a select-list expression without alias.
pub fn output_name(expr: &ast::Expr) -> String {
    let _ = expr;
    "?column?".to_string()
}
