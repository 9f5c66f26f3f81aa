//! What a SELECT shows of the rows that it finds: expressions, aggregates or groups, and ORDER BY.

use braid_scalar::{Bound, ParamTypes, Scope, ident_name};
use braid_types::{SqlError, SqlResult, SqlState, SqlType};
use sqlparser::ast::{self, OrderByKind};

use super::{whole_rows, windows};
use crate::dml::returning;
use crate::general_query::ColumnInfo;
use crate::plan::build::From;
use crate::plan::groups::{Groups, Over, has_groups};
use crate::plan::select::{EachRow, Output, SortKey, Totals};
use crate::plan::shown::Showing;

/// What is shown, its columns and its order.
type Shown = (Output, Vec<ColumnInfo>, Vec<SortKey>);

/// What is shown of the joined rows, and in which order; `None` if a general plan knows.
pub(in crate::plan) fn shown(
    (q, select): (&ast::Query, &ast::Select),
    tables: &[From],
    joined: usize,
    scope: &mut Scope,
    params: &mut ParamTypes,
) -> SqlResult<Option<Shown>> {
    let origin = |at: usize| {
        let t = tables.iter().rev().find(|t| t.offset <= at)?;
        if let Some(made) = &t.made {
            return made.origin(at - t.offset);
        }
        if let Some(view) = &t.view {
            return view.origin(&t.layout.table, at - t.offset);
        }
        let c = t.layout.table.columns.get(at - t.offset)?;
        Some((t.layout.table.id, c.id))
    };
    let rows = whole_rows::named(select, &tables[..joined], scope);
    let select = rows.as_ref().map_or(select, |(select, _)| select);
    // What is wrong with a window, general plans tell.
    let windowed = windows::taken_out((q, select), scope, params);
    let Some(windowed) = windowed.unwrap_or_default() else { return Ok(None) };
    let (q, select) = windowed.as_ref().map_or((q, select), |w| (&w.query, &w.select));
    let bound = match output(q, select, &Over { scope, origin: &origin }, params) {
        // A function of a row of that table: general plans know it.
        Err(e) if rows.is_some() && e.state() != SqlState::INTERNAL_ERROR => return Ok(None),
        bound => bound?,
    };
    let Some((mut output, columns)) = bound else { return Ok(None) };
    let mut sort = sort_keys(q, &output, &columns, scope, params)?;
    if let Some((_, rows)) = &rows {
        rows.put_into(&mut output, &mut sort);
        if columns.iter().any(|column| column.ty == SqlType::Record) {
            return Ok(None);
        }
    }
    match (&mut output, windowed) {
        (Output::Rows(out), Some(windowed)) => out.windows = windowed.windows,
        (_, Some(_)) => return Ok(None),
        (_, None) => {}
    }
    Ok(Some((output, columns, sort)))
}

/// What is selected: groups, plain expressions, or aggregates only.
fn output(
    q: &ast::Query,
    select: &ast::Select,
    over: &Over<'_>,
    params: &mut ParamTypes,
) -> SqlResult<Option<(Output, Vec<ColumnInfo>)>> {
    let (scope, origin) = (over.scope, over.origin);
    if has_groups(select) {
        let groups = Groups::bind(q, select, over, params)?;
        return Ok(groups.map(|(groups, columns)| (Output::Groups(groups), columns)));
    }
    let mut plain = params.clone();
    match returning(&select.projection, scope, origin, &mut plain) {
        Ok(r) if select.having.is_none() => {
            *params = plain;
            let (exprs, on, windows) = (r.exprs, Vec::new(), Vec::new());
            return Ok(Some((Output::Rows(EachRow { exprs, on, windows }), r.columns)));
        }
        Ok(_) => return Ok(None),
        Err(e) if braid_scalar::needs_general_query(&e) => {}
        Err(e) => return Err(e),
    }
    let mut showing = Showing::new(over, &[], &[]);
    for item in &select.projection {
        if !showing.show(item, params)? {
            return Ok(None);
        }
    }
    if let Some(having) = &select.having
        && !showing.having(having, params)?
    {
        return Ok(None);
    }
    let (list, shown, columns) = showing.done();
    // Without any it is one row of something else.
    Ok((!list.is_empty()).then_some((Output::Aggregates(Totals { list, shown }), columns)))
}

/// ORDER BY: ordinals, output names, expressions over the tables.
fn sort_keys(
    q: &ast::Query,
    output: &Output,
    columns: &[ColumnInfo],
    scope: &Scope,
    params: &mut ParamTypes,
) -> SqlResult<Vec<SortKey>> {
    let Some(order) = &q.order_by else { return Ok(Vec::new()) };
    let OrderByKind::Expressions(list) = &order.kind else {
        return Err(SqlError::unsupported("ORDER BY ALL"));
    };
    let exprs = match output {
        Output::Rows(out) => &out.exprs,
        // They know it themselves.
        Output::Groups(_) => return Ok(Vec::new()),
        Output::Aggregates(_) => return Err(SqlError::unsupported("ORDER BY of an aggregate")),
    };
    let mut out = Vec::new();
    for o in list {
        let key = sort_key(&o.expr, (exprs, columns, scope), params)?;
        out.push(SortKey::by(key, &o.options));
    }
    Ok(out)
}

/// What an expression of ORDER BY means beside what is shown, and over the tables.
pub(in crate::plan) fn sort_key(
    expr: &ast::Expr,
    (exprs, columns, scope): (&[Bound], &[ColumnInfo], &Scope),
    params: &mut ParamTypes,
) -> SqlResult<Bound> {
    let numbered = braid_scalar::column_by_number(expr, exprs.len(), "ORDER BY")?;
    let bound = match (expr, numbered) {
        (_, Some(at)) => exprs[at].clone(),
        (ast::Expr::Identifier(i), None) => {
            let name = ident_name(i);
            // An output name wins over a column, as in PostgreSQL.
            match columns.iter().position(|c| c.name == name) {
                Some(n) => exprs[n].clone(),
                None => braid_scalar::bind(expr, scope, params)?,
            }
        }
        (e, None) => braid_scalar::bind(e, scope, params)?,
    };
    bound.ty().check_comparable("ordering")?;
    braid_scalar::order_form(bound)
}
