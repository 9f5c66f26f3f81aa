//! Fields of composite columns as targets: `SET c.f = 1`, `INSERT INTO t (c.f, c.g)`.
//!
//! ```text
//!   SET c.y = 2               c = CAST(ROW((t.c).x, 2, (t.c).z) AS point)
//!   SET c.y = 2, c.z = 3      c = CAST(ROW((t.c).x, 2, 3) AS point)
//!   INSERT INTO t (c.y) ..    c = CAST(ROW(NULL, .., NULL) AS point)
//! ```
//! So an unknown literal is what its field wants, and a row that was NULL gets the fields that are
//! named.

use braid_catalog::Table;
use braid_scalar::object_name_parts;
use braid_types::{CompositeType, SqlError, SqlResult, SqlState, SqlType};
use sqlparser::ast::{self, AccessExpr, Expr, Ident};

use super::subscripts::{Subscripts, not_subscripted};
use super::untyped::written;
use crate::dml::target::{Target, is_default};
use braid_parser::subscript;

/// A field of a column, or with no names the whole column.
pub(super) struct Place {
    pub(super) column: usize,
    pub(super) path: Vec<String>,
}

/// What a name on the left side means: `column` or `column.field`, never `table.column`.
pub(super) fn place(target: &Target, name: &ast::ObjectName) -> SqlResult<Place> {
    let mut parts = object_name_parts(name);
    let path = parts.split_off(1.min(parts.len()));
    Ok(Place { column: target.ordinal_of(name)?, path })
}

/// Fields that are set, by the names that lead to them, with their values.
type Sets<'a> = [(&'a [String], Expr)];

/// A composite column with some fields set; the others are those of `base`, or NULL.
pub(super) fn with_fields(
    table: &Table,
    column: usize,
    base: Option<Expr>,
    sets: &Sets<'_>,
) -> SqlResult<Expr> {
    if sets.iter().any(|(_, e)| is_default(e)) {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "cannot set a subfield to DEFAULT",
        ));
    }
    let column = &table.columns[column];
    rebuilt(&column.name, &column.ty, base, sets)
}

fn rebuilt(column: &str, ty: &SqlType, base: Option<Expr>, sets: &Sets<'_>) -> SqlResult<Expr> {
    let first = |path: &[String]| path.first().cloned().unwrap_or_default();
    if sets.iter().any(|(path, _)| path.first().is_some_and(|step| subscript(step).is_some())) {
        return subscripted(column, ty, base, sets);
    }
    let SqlType::Composite(row) = ty else {
        let field = sets.first().map(|(path, _)| first(path)).unwrap_or_default();
        let text = format!(
            "cannot assign to field \"{field}\" of column \"{column}\" because its type {} is not \
             a composite type",
            ty.base_name()
        );
        return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, text));
    };
    if let Some((path, _)) = sets.iter().find(|(path, _)| row.place_of(&first(path)).is_none()) {
        let text = format!(
            "cannot assign to field \"{}\" of column \"{column}\" because there is no such column \
             in data type {}",
            first(path),
            row.shown_name()
        );
        return Err(SqlError::new(SqlState::UNDEFINED_COLUMN, text));
    }
    let mut fields = Vec::with_capacity(row.fields.len());
    for field in &row.fields {
        let own = sets.iter().filter(|(path, _)| first(path) == *field.name);
        let own: Vec<(&[String], Expr)> = own.map(|(path, e)| (&path[1..], e.clone())).collect();
        let before = base.clone().map(|base| field_of(base, &field.name));
        fields.push(match own.as_slice() {
            [] => before.unwrap_or_else(|| Expr::value(ast::Value::Null)),
            // Of several assignments to a field the last one counts.
            [.., ([], e)] if own.iter().all(|(path, _)| path.is_empty()) => e.clone(),
            inner if inner.iter().any(|(path, _)| path.is_empty()) => {
                return Err(twice(column));
            }
            inner => rebuilt(&field.name, &field.ty, before, inner)?,
        });
    }
    Ok(row_of(row, fields))
}

/// A value with others at subscripts, one after the other.
fn subscripted(column: &str, ty: &SqlType, base: Option<Expr>, sets: &Sets<'_>) -> SqlResult<Expr> {
    let mut whole = base.unwrap_or_else(|| null_of(ty));
    for (path, e) in sets {
        let [step, rest @ ..] = path else { return Err(twice(column)) };
        let at = subscript(step).ok_or_else(|| twice(column))?;
        let at = Subscripts::read(at)?;
        let value = match rest {
            [] => e.clone(),
            rest => {
                let element = ty.element().ok_or_else(|| not_subscripted(ty))?;
                let inner = at.of(whole.clone());
                rebuilt(column, element, Some(inner), &[(rest, e.clone())])?
            }
        };
        whole = at.assigned(ty, whole, value)?;
    }
    Ok(whole)
}

/// NULL of a type: what is asked of it by subscripts needs one.
fn null_of(ty: &SqlType) -> Expr {
    let null = Expr::value(ast::Value::Null);
    match written(&ty.base().to_string()) {
        None => null,
        Some(data_type) => Expr::Cast {
            kind: ast::CastKind::Cast,
            expr: Box::new(null),
            data_type,
            array: false,
            format: None,
        },
    }
}

/// 42601 for a target that is named more than once.
pub(super) fn twice(column: &str) -> SqlError {
    SqlError::syntax(format!("multiple assignments to same column \"{column}\""))
}

fn quoted(name: &str) -> Ident {
    Ident::with_quote('"', name)
}

/// `(base).name`.
fn field_of(base: Expr, name: &str) -> Expr {
    Expr::CompoundFieldAccess {
        root: Box::new(Expr::Nested(Box::new(base))),
        access_chain: vec![AccessExpr::Dot(Expr::Identifier(quoted(name)))],
    }
}

/// `CAST(ROW(fields) AS type)`.
fn row_of(ty: &CompositeType, fields: Vec<Expr>) -> Expr {
    let arg = |e| ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(e));
    let list = ast::FunctionArgumentList {
        duplicate_treatment: None,
        args: fields.into_iter().map(arg).collect(),
        clauses: Vec::new(),
    };
    let row = Expr::Function(ast::Function {
        name: ast::ObjectName::from(vec![Ident::new("row")]),
        uses_odbc_syntax: false,
        parameters: ast::FunctionArguments::None,
        args: ast::FunctionArguments::List(list),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    });
    let name = ast::ObjectName::from(vec![quoted(&ty.schema), quoted(&ty.name)]);
    Expr::Cast {
        kind: ast::CastKind::Cast,
        expr: Box::new(row),
        data_type: ast::DataType::Custom(name, Vec::new()),
        array: false,
        format: None,
    }
}

/// An INSERT whose columns are whole ones; `None` if they all are.
pub(in crate::dml) fn whole_columns(
    target: &Target,
    insert: &ast::Insert,
) -> SqlResult<Option<ast::Insert>> {
    if insert.columns.iter().all(|name| name.0.len() < 2) {
        return Ok(None);
    }
    let table = &target.table;
    let places = insert.columns.iter().map(|name| place(target, name));
    let places = places.collect::<SqlResult<Vec<_>>>()?;
    if places.iter().all(|place| place.path.is_empty()) {
        return Ok(None);
    }
    let mut columns: Vec<usize> = Vec::new();
    for place in &places {
        if !columns.contains(&place.column) {
            columns.push(place.column);
        }
    }
    let whole = |given: &[Expr]| -> SqlResult<Vec<Expr>> {
        let one = |column: &usize| {
            let own = places.iter().zip(given).filter(|(place, _)| place.column == *column);
            let sets: Vec<(&[String], Expr)> =
                own.map(|(place, e)| (place.path.as_slice(), e.clone())).collect();
            match sets.as_slice() {
                [([], e)] => Ok(e.clone()),
                sets if sets.iter().any(|(path, _)| path.is_empty()) => {
                    Err(twice(&table.columns[*column].name))
                }
                sets => with_fields(table, *column, None, sets),
            }
        };
        columns.iter().map(one).collect()
    };
    let mut out = insert.clone();
    let name = |column: &usize| ast::ObjectName::from(vec![quoted(target.name_of(*column))]);
    out.columns = columns.iter().map(name).collect();
    if let Some(query) = &mut out.source {
        **query = source(query, places.len(), &whole)?;
    }
    Ok(Some(out))
}

/// Makes values of whole columns of those of their parts.
type Whole<'a> = dyn Fn(&[Expr]) -> SqlResult<Vec<Expr>> + 'a;

/// The source of an INSERT with so many targets, as one of whole columns.
fn source(query: &ast::Query, count: usize, whole: &Whole<'_>) -> SqlResult<ast::Query> {
    let check = |given: usize| match given.cmp(&count) {
        std::cmp::Ordering::Equal => Ok(()),
        std::cmp::Ordering::Less => {
            Err(SqlError::syntax("INSERT has more target columns than expressions"))
        }
        std::cmp::Ordering::Greater => {
            Err(SqlError::syntax("INSERT has more expressions than target columns"))
        }
    };
    let plain = query.with.is_none() && query.order_by.is_none() && query.limit_clause.is_none();
    if let ast::SetExpr::Values(values) = &*query.body
        && plain
    {
        let mut values = values.clone();
        for row in &mut values.rows {
            check(row.content.len())?;
            row.content = whole(&row.content)?;
        }
        return Ok(ast::Query { body: Box::new(ast::SetExpr::Values(values)), ..query.clone() });
    }
    let names: Vec<String> = (1..=count).map(|n| format!("\"value {n}\"")).collect();
    let given: Vec<Expr> =
        (1..=count).map(|n| Expr::Identifier(quoted(&format!("value {n}")))).collect();
    let items: Vec<String> = whole(&given)?.iter().map(ToString::to_string).collect();
    let (items, names) = (items.join(", "), names.join(", "));
    let text = format!("SELECT {items} FROM ({query}) AS \"fields\" ({names})");
    braid_parser::parse_query(&text).map(|query| *query)
}
