//! SET of UPDATE: which columns are assigned what.
//!
//! ```text
//!   SET (a, b) = (x, y)                  a = x                    b = y
//!   SET (a, b) = (SELECT x, y FROM ..)   a = (SELECT x FROM ..)   b = (SELECT y FROM ..)
//! ```
//! A subquery is taken apart by its select list, or as a whole where the list alone is not all of
//! it (DISTINCT, UNION, ORDER BY of an item), or what it calls is volatile. Parts of a whole can be
//! asked for together again ([`shared`]).

use std::borrow::Cow;

use braid_scalar::{ParamTypes, ident_name, object_name_parts};
use braid_types::{SqlError, SqlResult, SqlState};
use sqlparser::ast::{self, AssignmentTarget, Expr, Ident, SelectItem};

use super::calls::{calls_aggregate, refuse_calls};
use super::fields::{Place, place, twice, with_fields};
use super::row_stars;
use crate::dml::target::Target;

/// The assigned columns with their expressions.
pub(in crate::dml) fn set_list<'a>(
    target: &Target,
    assignments: &'a [ast::Assignment],
    params: &ParamTypes,
) -> SqlResult<Vec<(usize, Cow<'a, Expr>)>> {
    let table = &target.table;
    for a in assignments {
        refuse_calls(&a.value, "UPDATE")?;
    }
    let mut all: Vec<(Place, Cow<'a, Expr>)> = Vec::new();
    for a in assignments {
        match &a.target {
            AssignmentTarget::ColumnName(name) => {
                all.push((place(target, name)?, Cow::Borrowed(&a.value)));
            }
            AssignmentTarget::Tuple(names) => {
                let value = row_stars::expanded(&a.value, &mut |of| Ok(own_columns(target, of)))?;
                let given = match value {
                    Cow::Borrowed(e) => values(e, names.len(), params)?,
                    Cow::Owned(e) => {
                        let given = values(&e, names.len(), params)?.into_iter();
                        given.map(|e| Cow::Owned(e.into_owned())).collect()
                    }
                };
                for (name, e) in names.iter().zip(given) {
                    all.push((place(target, name)?, e));
                }
            }
        }
    }
    let mut out: Vec<(usize, Cow<'a, Expr>)> = Vec::new();
    let mut fields: Vec<(usize, Vec<Place>, Vec<Expr>)> = Vec::new();
    for (place, e) in all {
        let name = &table.columns[place.column].name;
        let known = fields.iter_mut().find(|(column, ..)| *column == place.column);
        match known {
            Some((_, places, exprs)) if !place.path.is_empty() => {
                places.push(place);
                exprs.push(e.into_owned());
            }
            None if !out.iter().any(|(column, _)| *column == place.column) => {
                let column = place.column;
                if place.path.is_empty() {
                    out.push((column, e));
                } else {
                    // Its value follows when all of its fields are known.
                    out.push((column, Cow::Owned(Expr::value(ast::Value::Null))));
                    fields.push((column, vec![place], vec![e.into_owned()]));
                }
            }
            _ => return Err(twice(name)),
        }
    }
    for (column, places, exprs) in fields {
        if exprs.iter().filter_map(shared).any(|part| params.calls_volatile(part.query)) {
            return Err(cannot_part("a volatile function to fields of columns"));
        }
        let own = [target.alias.as_str(), target.name_of(column)]
            .map(|name| Ident::with_quote('"', name));
        let base = Expr::CompoundIdentifier(own.to_vec());
        let paths = places.iter().map(|place| place.path.as_slice());
        let sets: Vec<_> = paths.zip(exprs).collect();
        let whole = with_fields(table, column, Some(base), &sets)?;
        for (_, e) in out.iter_mut().filter(|(at, _)| *at == column) {
            *e = Cow::Owned(whole.clone());
        }
    }
    Ok(out)
}

/// The columns of the target, and of the row that ON CONFLICT has in its place.
fn own_columns(target: &Target, of: &[String]) -> Option<Vec<String>> {
    let named = |name: &str| *of == [name];
    (named(&target.alias) || named("excluded")).then(|| target.shown_names())
}

/// What so many columns are assigned.
fn values<'a>(e: &'a Expr, count: usize, params: &ParamTypes) -> SqlResult<Vec<Cow<'a, Expr>>> {
    let given: Vec<Cow<'_, Expr>> = match e {
        Expr::Tuple(exprs) => exprs.iter().map(Cow::Borrowed).collect(),
        Expr::Subquery(query) => parts(query, count, params)?.into_iter().map(Cow::Owned).collect(),
        Expr::Nested(inner) if count > 1 => return values(inner, count, params),
        Expr::Function(f) => match row(f) {
            Some(exprs) => exprs.into_iter().map(Cow::Borrowed).collect(),
            None => vec![Cow::Borrowed(e)],
        },
        _ if count == 1 => vec![Cow::Borrowed(e)],
        _ => {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression",
            ));
        }
    };
    if given.len() != count {
        return Err(SqlError::syntax("number of columns does not match number of values"));
    }
    Ok(given)
}

/// The arguments of ROW(..).
fn row(f: &ast::Function) -> Option<Vec<&Expr>> {
    if *object_name_parts(&f.name) != ["row"] {
        return None;
    }
    let ast::FunctionArguments::List(list) = &f.args else { return None };
    let one = |arg: &'_ ast::FunctionArg| matches!(arg, ast::FunctionArg::Unnamed(_));
    list.args.iter().all(one).then(|| {
        let exprs = list.args.iter().filter_map(|arg| match arg {
            ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(e)) => Some(e),
            _ => None,
        });
        exprs.collect()
    })
}

/// A subquery for each of its columns.
fn parts(query: &ast::Query, count: usize, params: &ParamTypes) -> SqlResult<Vec<Expr>> {
    let width = width(&query.body)
        .ok_or_else(|| cannot_part("a list of columns that is not written out"))?;
    if width != count {
        return Err(SqlError::syntax("number of columns does not match number of values"));
    }
    if params.calls_volatile(query) {
        return wholes(query, count);
    }
    let select = match &*query.body {
        ast::SetExpr::Select(select)
            if select.distinct.is_none() && select.projection.len() == count =>
        {
            select
        }
        _ => return wholes(query, count),
    };
    let items = select.projection.iter().map(|item| match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(ident_name(alias)),
        _ => None,
    });
    let items: Vec<Option<String>> = items.collect();
    // What names an item, by its number or its alias, would be lost with the item.
    let names_item = |e: &Expr| match e {
        Expr::Value(v) => matches!(v.value, ast::Value::Number(..)),
        Expr::Identifier(i) => items.contains(&Some(ident_name(i))),
        _ => false,
    };
    let ordered = query.order_by.iter().flat_map(|order| match &order.kind {
        ast::OrderByKind::Expressions(exprs) => exprs.as_slice(),
        ast::OrderByKind::All(_) => &[],
    });
    let grouped = match &select.group_by {
        ast::GroupByExpr::Expressions(exprs, _) => exprs.as_slice(),
        ast::GroupByExpr::All(_) => &[],
    };
    // Without its aggregate, a query has other rows.
    let aggregates = select.projection.iter().filter(|item| calls_aggregate(*item)).count();
    let mixed = aggregates > 0 && aggregates < count;
    if mixed || ordered.map(|o| &o.expr).chain(grouped).any(names_item) {
        return wholes(query, count);
    }
    let one = |item: &SelectItem| {
        let select = ast::Select { projection: vec![item.clone()], ..(**select).clone() };
        let mut query = query.clone();
        *query.body = ast::SetExpr::Select(Box::new(select));
        Expr::Subquery(Box::new(query))
    };
    Ok(select.projection.iter().map(one).collect())
}

/// How many columns a query has, if they are written out.
fn width(body: &ast::SetExpr) -> Option<usize> {
    match body {
        ast::SetExpr::Select(select) => {
            let written_out = |item: &SelectItem| {
                matches!(item, SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. })
            };
            if let ([SelectItem::Wildcard(_)], [from]) = (&*select.projection, &*select.from)
                && let ast::TableFactor::Derived { subquery, .. } = &from.relation
                && from.joins.is_empty()
            {
                return width(&subquery.body);
            }
            let all = select.projection.iter().all(written_out);
            all.then_some(select.projection.len())
        }
        ast::SetExpr::Query(query) => width(&query.body),
        ast::SetExpr::SetOperation { left, .. } => width(left),
        ast::SetExpr::Values(values) => values.rows.first().map(|row| row.content.len()),
        _ => None,
    }
}

/// The alias of a subquery of which each column is asked for by itself.
const WHOLE: &str = "\0whole";

/// A subquery for each of its columns, around all of it.
fn wholes(query: &ast::Query, count: usize) -> SqlResult<Vec<Expr>> {
    let names = part_names(count);
    let one = |name: &String| {
        let text = format!("SELECT {name} FROM ({query}) AS \"{WHOLE}\" ({})", names.join(", "));
        Ok(Expr::Subquery(braid_parser::parse_query(&text)?))
    };
    names.iter().map(one).collect()
}

fn part_names(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("\"\0part {n}\"")).collect()
}

/// One column of a subquery that was assigned to several.
pub(in crate::dml) struct Shared<'a> {
    /// The subquery.
    pub(in crate::dml) query: &'a ast::Query,
    /// Which of its columns.
    pub(in crate::dml) field: usize,
    width: usize,
}

impl Shared<'_> {
    /// The subquery's row as one value.
    pub(in crate::dml) fn row(&self) -> String {
        let (query, names) = (self.query, part_names(self.width).join(", "));
        format!("(SELECT ROW({names}) FROM ({query}) AS \"{WHOLE}\" ({names}))")
    }
}

/// Whether an expression is one of those that a subquery was taken apart into.
pub(in crate::dml) fn shared(e: &Expr) -> Option<Shared<'_>> {
    let Expr::Subquery(outer) = e else { return None };
    let ast::SetExpr::Select(select) = &*outer.body else { return None };
    let ([SelectItem::UnnamedExpr(Expr::Identifier(part))], [from]) =
        (&*select.projection, &*select.from)
    else {
        return None;
    };
    let ast::TableFactor::Derived { subquery, alias: Some(alias), .. } = &from.relation else {
        return None;
    };
    let field = alias.columns.iter().position(|column| column.name == *part)?;
    let known = alias.name.value == WHOLE;
    known.then_some(Shared { query: subquery, field, width: alias.columns.len() })
}

fn cannot_part(what: &str) -> SqlError {
    SqlError::unsupported(format!("assigning a subquery with {what} to several columns"))
        .with_hint("Assign each column on its own, or use UPDATE .. FROM.")
}
