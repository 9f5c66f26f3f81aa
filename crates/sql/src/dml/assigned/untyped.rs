//! Literals without a type in the query of an INSERT.
//!
//! ```text
//!   INSERT INTO t (d, n) SELECT '2026-11-23', NULL FROM s
//!   ──►                  SELECT CAST('2026-11-23' AS date), CAST(NULL AS int4) FROM s
//! ```
//! Elsewhere such a literal is text; here it is what the column wants, and so is a parameter.

use braid_catalog::{Column, Refined, Table, oid_of};
use braid_scalar::ParamTypes;
use sqlparser::ast;
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::Parser;

/// The query with casts around literals and parameters that have no type; `None`: it has none.
pub(in crate::dml) fn typed(
    query: &ast::Query,
    table: &Table,
    targets: &[usize],
) -> Option<ast::Query> {
    let ast::SetExpr::Select(select) = &*query.body else { return None };
    if select.distinct.is_some() {
        return None;
    }
    let mut projection = select.projection.clone();
    let mut changed = false;
    for (item, at) in projection.iter_mut().zip(targets) {
        let expr = match item {
            ast::SelectItem::UnnamedExpr(e) | ast::SelectItem::ExprWithAlias { expr: e, .. } => e,
            // Nobody knows here how many columns a star is.
            _ => break,
        };
        if has_no_type(expr)
            && let Some(data_type) = written(&table.columns[*at].ty.base().to_string())
        {
            *expr = ast::Expr::Cast {
                kind: ast::CastKind::Cast,
                expr: Box::new(expr.clone()),
                data_type,
                array: false,
                format: None,
            };
            changed = true;
        }
    }
    changed.then(|| {
        let mut query = query.clone();
        let select = ast::Select { projection, ..(**select).clone() };
        *query.body = ast::SetExpr::Select(Box::new(select));
        query
    })
}

/// Parameters in a select list that become values of columns of domains are of these.
pub(in crate::dml) fn decide_domains(
    query: &ast::Query,
    table: &Table,
    targets: &[usize],
    params: &mut ParamTypes,
) {
    let ast::SetExpr::Select(select) = &*query.body else { return };
    for (item, at) in select.projection.iter().zip(targets) {
        match item {
            ast::SelectItem::UnnamedExpr(e) | ast::SelectItem::ExprWithAlias { expr: e, .. } => {
                decide_domain(e, &table.columns[*at], params);
            }
            _ => break,
        }
    }
}

/// A parameter that becomes a value of a column of a domain is one of that domain.
pub(in crate::dml) fn decide_domain(expr: &ast::Expr, column: &Column, params: &mut ParamTypes) {
    let Some(index) = braid_scalar::parameter(expr) else { return };
    let oid = match column.refinement {
        Some(Refined::Domain(id)) => Some(oid_of(id)),
        Some(Refined::Elements(id)) => {
            params.named_types().and_then(|names| names.array_oid(oid_of(id)))
        }
        _ => None,
    };
    if let Some(oid) = oid {
        params.decide_domain(index, &column.ty.base(), oid);
    }
}

fn has_no_type(expr: &ast::Expr) -> bool {
    let ast::Expr::Value(value) = expr else { return false };
    matches!(
        value.value,
        ast::Value::Null
            | ast::Value::Placeholder(_)
            | ast::Value::SingleQuotedString(_)
            | ast::Value::EscapedStringLiteral(_)
            | ast::Value::DollarQuotedString(_)
    )
}

/// A type as the parser gives it.
pub(super) fn written(ty: &str) -> Option<ast::DataType> {
    Parser::new(&PostgreSqlDialect {}).try_with_sql(ty).ok()?.parse_data_type().ok()
}
