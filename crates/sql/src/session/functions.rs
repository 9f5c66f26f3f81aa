//! Functions of users as expressions call them: from their descriptors.

use std::sync::Arc;

use braid_catalog::{Catalog, Function, Mode, Stability};
use braid_parser::{Kind, parse_expr, parse_query, parse_script};
use braid_scalar::{UserBody, UserFunction, UserParam, Volatility};
use braid_types::{CompositeType, SqlError, SqlResult, SqlType};
use sqlparser::ast::{Expr, GroupByExpr, Query, SelectItem, SetExpr, Statement};

/// A type as it is now: rows of tables have the columns that their tables have.
fn now(catalog: &Catalog, ty: &SqlType) -> SqlType {
    match ty {
        SqlType::Composite(row) => catalog.sql_type_by_oid(row.oid).unwrap_or_else(|| ty.clone()),
        SqlType::Array(element) => now(catalog, element).array_of(),
        other => other.clone(),
    }
}

/// A function as calls see it.
pub(super) fn callable(catalog: &Catalog, f: &Function) -> SqlResult<Arc<UserFunction>> {
    let mut params = Vec::new();
    for p in f.inputs() {
        let default = p.default.as_deref().map(parse_expr).transpose()?;
        params.push(UserParam { name: p.name.clone(), ty: now(catalog, &p.ty), default });
    }
    let returns = now(catalog, &f.returns);
    let in_table = f.outputs().any(|p| p.mode == Mode::Table);
    let columns = match &returns {
        SqlType::Record => outputs(catalog, f),
        _ if in_table => outputs(catalog, f),
        SqlType::Composite(row) => {
            row.fields.iter().map(|field| (field.name.to_string(), field.ty.clone())).collect()
        }
        _ if f.set => vec![(set_name(f), returns.clone())],
        _ => Vec::new(),
    };
    // OUT parameters name the fields.
    let returns = match returns {
        SqlType::Record if !columns.is_empty() => {
            SqlType::Composite(Arc::new(CompositeType::record(&columns)))
        }
        other => other,
    };
    Ok(Arc::new(UserFunction {
        id: f.id,
        name: f.name.clone(),
        params,
        variadic: f.inputs().any(|p| p.mode == Mode::Variadic),
        returns,
        columns,
        set: f.set,
        strict: f.strict,
        volatility: match f.stability {
            Stability::Immutable => Volatility::Immutable,
            Stability::Stable => Volatility::Stable,
            Stability::Volatile => Volatility::Volatile,
        },
    }))
}

/// The column of a set of values: that of its OUT parameter, or of the function.
fn set_name(f: &Function) -> String {
    f.outputs().find_map(|p| p.name.clone()).unwrap_or_else(|| f.name.clone())
}

fn outputs(catalog: &Catalog, f: &Function) -> Vec<(String, SqlType)> {
    let named = |(at, p): (usize, &braid_catalog::Parameter)| {
        let name = p.name.clone().unwrap_or_else(|| format!("column{}", at + 1));
        (name, now(catalog, &p.ty))
    };
    f.outputs().enumerate().map(named).collect()
}

/// The body of a function.
///
/// # Errors
/// 0A000 for what is not one query.
pub(super) fn body(f: &Function) -> SqlResult<UserBody> {
    if f.returned {
        let query = parse_query(&format!("SELECT {}", f.body))?;
        return Ok(UserBody { query: Some(query), value: Some(parse_expr(&f.body)?) });
    }
    let mut statements = parse_script(&f.body)?;
    statements.retain(|s| !matches!(*s.kind, Kind::Empty));
    let refused = |what: &str| {
        SqlError::unsupported(format!("{what} in the body of a function"))
            .with_hint("A body is one SELECT.")
    };
    let Some(last) = statements.pop() else { return Ok(UserBody { query: None, value: None }) };
    if !statements.is_empty() {
        return Err(refused("more than one statement"));
    }
    if last.as_of.is_some() {
        return Err(refused("AS OF SYSTEM TIME"));
    }
    match &*last.kind {
        Kind::Sql(sql) => match &**sql {
            Statement::Query(query) => {
                crate::dml::with::refuse(query, "a data-modifying WITH in a function", None)?;
                if !query.locks.is_empty() {
                    return Err(refused("FOR UPDATE or FOR SHARE"));
                }
                Ok(UserBody { value: only_value(query), query: Some(query.clone()) })
            }
            Statement::Update(_) => Err(refused("UPDATE")),
            Statement::Delete(_) => Err(refused("DELETE")),
            _ => Err(refused("a statement that is no SELECT")),
        },
        Kind::Insert(..) => Err(refused("INSERT")),
        _ => Err(refused("a statement that is no SELECT")),
    }
}

/// The expression that `SELECT expression` is; `None` for a query that does more.
fn only_value(query: &Query) -> Option<Expr> {
    let Query { with: None, order_by: None, limit_clause: None, fetch: None, .. } = query else {
        return None;
    };
    let SetExpr::Select(select) = &*query.body else { return None };
    let grouped = match &select.group_by {
        GroupByExpr::Expressions(by, modifiers) => !by.is_empty() || !modifiers.is_empty(),
        GroupByExpr::All(_) => true,
    };
    let plain = select.from.is_empty()
        && select.distinct.is_none()
        && select.selection.is_none()
        && select.having.is_none()
        && select.qualify.is_none()
        && !grouped;
    match select.projection.as_slice() {
        [SelectItem::UnnamedExpr(e) | SelectItem::ExprWithAlias { expr: e, .. }] if plain => {
            Some(e.clone())
        }
        _ => None,
    }
}
