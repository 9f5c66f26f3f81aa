//! Expressions and predicates of indexes, as they are declared.
//!
//! ```text
//!   CREATE UNIQUE INDEX ON users (tenant, (lower(email)) DESC) WHERE deleted_at IS NULL
//!                                 column   a hidden column       predicate
//! ```
//! Both are kept as text and bound with the table's layout ([`braid_rows::computed`]), without
//! a session: they may only use what means the same to everybody, at any time.

use std::ops::ControlFlow;

use braid_catalog::{Column, ColumnOptions, IndexColumn, Table, choose_name};
use braid_rows::table_scope;
use braid_scalar::{Bound, ParamTypes, Volatility, ident_name, output_name};
use braid_types::{SqlError, SqlResult, SqlState, quote_ident};
use sqlparser::ast;

use super::declare::{directed, no_column};
use crate::ddl::constraint::with_bare_columns;
use crate::ddl::{Change, parts};

/// The columns of an index's key.
pub(super) struct Keys {
    pub(super) columns: Vec<IndexColumn>,
    /// Columns to come that stand for expressions.
    pub(super) expressions: Vec<Column>,
    /// What they are called in the index's own name.
    pub(super) names: Vec<String>,
    /// Places of those that were there already.
    pub(super) again: Vec<usize>,
}

/// Columns and expressions of an index as declared.
pub(super) fn keys(c: &Change, t: &Table, declared: &[ast::IndexColumn]) -> SqlResult<Keys> {
    let (columns, expressions, names) = (Vec::new(), Vec::new(), Vec::new());
    let mut out = Keys { columns, expressions, names, again: Vec::new() };
    for (place, d) in declared.iter().enumerate() {
        let e = &with_bare_columns(c, t, plain(c, &d.column.expr)?);
        if let ast::Expr::Identifier(ident) = e {
            let name = ident_name(ident);
            let column = t.column_named(&name).ok_or_else(|| no_column(t, &name))?;
            // Entries have each column once: what comes again tells nothing more.
            if out.columns.iter().any(|k| k.column == column.id) {
                out.again.push(place);
            } else {
                out.columns.push(directed(column.id, d));
                out.names.push(name);
            }
            continue;
        }
        let bound = immutable(c, t, e, "index expression", |e, scope, none| {
            braid_scalar::bind(e, scope, none)
        })?;
        let id = t.next_column + out.expressions.len() as u32;
        out.columns.push(directed(id, d));
        out.expressions.push(standing_for(id, e, &bound));
        let name = match output_name(e).as_str() {
            "?column?" => "expr".to_string(),
            name => name.to_string(),
        };
        let name = choose_name(&name, |name| out.names.iter().any(|n| n == name));
        out.names.push(name);
    }
    Ok(out)
}

/// The predicate of a partial index, as text.
pub(super) fn predicate(c: &Change, t: &Table, e: &ast::Expr) -> SqlResult<String> {
    let e = &with_bare_columns(c, t, plain(c, e)?);
    immutable(c, t, e, "index predicate", |e, scope, none| {
        braid_scalar::bind_bool(e, "WHERE", scope, none)
    })?;
    Ok(e.to_string())
}

/// The predicate of an index that leaves out rows with a NULL in its key.
pub(super) fn without_nulls(
    t: &Table,
    columns: &[IndexColumn],
    predicate: Option<String>,
) -> Option<String> {
    let nullable = columns.iter().filter_map(|k| t.column(k.column)).filter(|c| c.nullable);
    let part = |c: &Column| match &c.expression {
        Some(text) => format!("({text}) IS NOT NULL"),
        None => format!("{} IS NOT NULL", quote_ident(&c.name)),
    };
    let parts: Vec<String> =
        nullable.map(part).chain(predicate.map(|p| format!("({p})"))).collect();
    (!parts.is_empty()).then(|| parts.join(" AND "))
}

/// An expression without the parentheses that the grammar asks for, and without a collation that
/// is the only one anyway.
fn plain<'a>(c: &Change, e: &'a ast::Expr) -> SqlResult<&'a ast::Expr> {
    match e {
        ast::Expr::Nested(inner) => plain(c, inner),
        // Entries lie in the order of their bytes, whatever the collation: equal texts are equal
        // bytes, and no order is taken from an index where another is asked for.
        ast::Expr::Collate { expr, collation } => {
            c.ctx.no_params().collation(&parts(collation))?;
            plain(c, expr)
        }
        e => Ok(e),
    }
}

/// The hidden column that stands for an expression. Its name can be nobody's.
fn standing_for(id: u32, e: &ast::Expr, bound: &Bound) -> Column {
    Column {
        hidden: true,
        expression: Some(e.to_string()),
        options: ColumnOptions {
            collation: bound.collation().known().cloned(),
            ..ColumnOptions::default()
        },
        ..Column::new(id, format!("\0{id}"), bound.ty().clone())
    }
}

type Bind<'a> = &'a dyn Fn(&ast::Expr, &braid_scalar::Scope, &mut ParamTypes) -> SqlResult<Bound>;

/// Binds what must mean the same whenever it is evaluated. `what` it is, for errors.
pub(in crate::ddl) fn immutable(
    c: &Change,
    t: &Table,
    e: &ast::Expr,
    what: &str,
    bind: impl Fn(&ast::Expr, &braid_scalar::Scope, &mut ParamTypes) -> SqlResult<Bound>,
) -> SqlResult<Bound> {
    let bind: Bind<'_> = &bind;
    let scope = table_scope(t);
    let bound = bind(e, &scope, &mut ParamTypes::default()).map_err(|error| {
        if braid_scalar::needs_general_query(&error) {
            return not_scalar(e, what);
        }
        // With the types and functions of users it would be good.
        let mut params = c.ctx.no_params();
        let known = bind(e, &scope, &mut params).is_ok();
        if !params.called().is_empty() {
            return SqlError::unsupported(format!("a user's function in an {what}"))
                .with_hint("Write out what its body says.");
        }
        if known {
            return SqlError::unsupported(format!("a user's type named in an {what}"))
                .with_hint("Compare with a literal: it takes the type of the column.");
        }
        error
    })?;
    if bound.volatility() != Volatility::Immutable {
        return Err(SqlError::new(
            SqlState::INVALID_OBJECT_DEFINITION,
            format!("functions in {what} must be marked IMMUTABLE"),
        ));
    }
    Ok(bound)
}

/// Why an expression that only a query can compute is refused.
fn not_scalar(e: &ast::Expr, what: &str) -> SqlError {
    let (mut subquery, mut window, mut set) = (false, false, false);
    let _ = braid_walk::expressions(e, |e| {
        match e {
            ast::Expr::Subquery(_) | ast::Expr::Exists { .. } | ast::Expr::InSubquery { .. } => {
                subquery = true;
            }
            ast::Expr::Function(f) => {
                window |= f.over.is_some();
                let name = parts(&f.name).pop().unwrap_or_default();
                set |= braid_scalar::is_set_returning(&name);
            }
            _ => {}
        }
        ControlFlow::<()>::Continue(())
    });
    let plural = format!("{what}s");
    if subquery {
        let text = format!("cannot use subquery in {what}");
        return SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text);
    }
    if window {
        let text = format!("window functions are not allowed in {plural}");
        return SqlError::new(SqlState("42P20"), text);
    }
    if set {
        let text = format!("set-returning functions are not allowed in {plural}");
        return SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text);
    }
    let text = format!("aggregate functions are not allowed in {plural}");
    SqlError::new(SqlState::GROUPING_ERROR, text)
}
