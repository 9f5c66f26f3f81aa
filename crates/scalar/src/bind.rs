//! Binding of expressions: the walk over the parsed tree.

use std::sync::Arc;

use braid_types::{
    CastContext, Collated, Datum, SqlError, SqlResult, SqlState, SqlType, Style, numeric,
};
use sqlparser::ast::{
    AccessExpr, BinaryOperator, CaseWhen, CastKind, DataType, Expr, Ident, NormalizationForm,
    Subscript, TypedString, UnaryOperator, Value,
};

use crate::bind_call::{bind_function, bind_named, refuse_bytes_in_patterns};
use crate::bind_compare::{
    bind_any_all, bind_in_list, bind_side, compare_bound, distinct_bound, without_symmetric,
};
use crate::conversion::{at_stranger, coerce, fold, settle, unify};
use crate::scope::is_star;
use crate::syntax::{
    at_beginning, at_its_place, bind_element, bind_interval, comparison, interval_text,
    operator_name, parameter, plain_operator, safe_cast,
};
use crate::{
    BindContext, Bound, CaseBranch, CmpOp, Node, Scope, ident_name, refinement_of, sql_type_of,
};

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

/// The error as clients are told it: where nobody could send the statement to the general planner,
/// what it holds cannot stand there.
pub fn told_to_clients(error: SqlError) -> SqlError {
    match error.message().strip_prefix(GENERAL_MARK) {
        None => error,
        Some(what) => {
            let told = SqlError::unsupported(format!("{what} here"));
            told.with_hint("Name it in a WITH in front, or compute it in a statement of its own.")
        }
    }
}

/// Binds an expression over the columns of `scope`. Literals and parameters that nothing gave a
/// type become text.
///
/// # Errors
/// Unknown columns and functions, types that do not fit; see [`needs_general_query`].
pub fn bind(expr: &Expr, scope: &Scope, ctx: &mut dyn BindContext) -> SqlResult<Bound> {
    let bound = bind_unsettled(expr, scope, ctx)?;
    settle(bound, &SqlType::Text, CastContext::Implicit, ctx)
}

/// Binds and converts to a column's type by assignment rules; an unknown literal is parsed as that
/// type and a parameter of unknown type takes it.
///
/// # Errors
/// As [`bind`]; 42804 when no assignment cast exists (the caller adds the column's name).
pub fn bind_to(
    expr: &Expr,
    target: &SqlType,
    scope: &Scope,
    ctx: &mut dyn BindContext,
) -> SqlResult<Bound> {
    // A list of nothing has the type that is wanted of it.
    let empty = matches!(expr, Expr::Array(list) if list.elem.is_empty())
        && matches!(target, SqlType::Array(_));
    let bound = match empty {
        true => cast_to(expr, target, scope, ctx)?,
        false => bind_for(expr, target, scope, ctx)?,
    };
    coerce(bound, target, CastContext::Assignment, ctx).map_err(|e| match e.state() {
        SqlState::DATATYPE_MISMATCH => at_beginning(e, expr),
        _ => at_its_place(e, expr),
    })
}

/// As [`bind_unsettled`]. The fields of `ROW(..)` that becomes a value of a composite type stay
/// unknown, too: they take the types of its fields.
fn bind_for(
    expr: &Expr,
    target: &SqlType,
    scope: &Scope,
    ctx: &mut dyn BindContext,
) -> SqlResult<Bound> {
    match target {
        SqlType::Composite(_) => bind_side(expr, scope, ctx),
        _ => bind_unsettled(expr, scope, ctx),
    }
}

/// Binds a condition. `clause` names it in the error, for example `WHERE`.
///
/// # Errors
/// As [`bind`]; 42804 when it is not boolean.
pub fn bind_bool(
    expr: &Expr,
    clause: &str,
    scope: &Scope,
    ctx: &mut dyn BindContext,
) -> SqlResult<Bound> {
    let bound = bind_unsettled(expr, scope, ctx)?;
    let bound = settle(bound, &SqlType::Bool, CastContext::Implicit, ctx)
        .map_err(|e| at_its_place(e, expr))?;
    if *bound.ty() != SqlType::Bool {
        let text = format!("argument of {clause} must be type boolean, not type {}", bound.ty());
        return Err(at_beginning(SqlError::new(SqlState::DATATYPE_MISMATCH, text), expr));
    }
    Ok(bound)
}

fn column_parts(parts: &[Ident]) -> Vec<String> {
    parts.iter().map(ident_name).collect()
}

/// Binds and leaves literals, NULLs and parameters of unknown type unknown.
///
/// # Errors
/// As [`bind`].
pub fn bind_unsettled(expr: &Expr, scope: &Scope, ctx: &mut dyn BindContext) -> SqlResult<Bound> {
    let bound = bind_anywhere(expr, scope, ctx).map_err(|e| at_its_place(e, expr))?;
    bound.collation().check_explicit()?;
    Ok(bound)
}

/// The field of EXTRACT: a word, or a text in quotes.
pub(crate) fn field_name(field: &sqlparser::ast::DateTimeField) -> String {
    match field {
        sqlparser::ast::DateTimeField::Custom(name) => name.value.to_lowercase(),
        known => known.to_string().to_lowercase(),
    }
}

fn bind_anywhere(expr: &Expr, scope: &Scope, ctx: &mut dyn BindContext) -> SqlResult<Bound> {
    if let Some(bound) = ctx.intercept(expr, scope)? {
        return Ok(bound);
    }
    match expr {
        Expr::Nested(inner) => bind_unsettled(inner, scope, ctx),
        Expr::Identifier(ident) => bind_column(&[ident_name(ident)], scope, ctx),
        Expr::CompoundIdentifier(parts) => bind_column(&column_parts(parts), scope, ctx),
        Expr::QualifiedWildcard(..) => Err(general_query_needed("a whole row")),
        Expr::CompoundFieldAccess { root, access_chain } => {
            bind_access(root, access_chain, scope, ctx)
        }
        Expr::Value(value) => bind_value(&value.value, ctx),
        Expr::TypedString(typed) => bind_typed(typed, ctx),
        Expr::Interval(interval) => bind_interval(interval, scope, ctx),
        Expr::UnaryOp { op, expr } => bind_unary(*op, expr, scope, ctx),
        Expr::BinaryOp { left, op, right } => bind_binary(left, op, right, scope, ctx),
        Expr::IsNull(e) => bind_is_null(e, false, scope, ctx),
        Expr::IsNotNull(e) => bind_is_null(e, true, scope, ctx),
        Expr::IsTrue(e) => bind_truth(e, Some(true), false, "IS TRUE", scope, ctx),
        Expr::IsNotTrue(e) => bind_truth(e, Some(true), true, "IS NOT TRUE", scope, ctx),
        Expr::IsFalse(e) => bind_truth(e, Some(false), false, "IS FALSE", scope, ctx),
        Expr::IsNotFalse(e) => bind_truth(e, Some(false), true, "IS NOT FALSE", scope, ctx),
        Expr::IsNormalized { .. } => bind_normalized(expr, scope, ctx),
        Expr::IsUnknown(e) => bind_truth(e, None, false, "IS UNKNOWN", scope, ctx),
        Expr::IsNotUnknown(e) => bind_truth(e, None, true, "IS NOT UNKNOWN", scope, ctx),
        Expr::IsDistinctFrom(a, b) => match rotated(a, b, false) {
            Some(whole) => bind_unsettled(&whole, scope, ctx),
            None => bind_distinct(a, b, false, scope, ctx),
        },
        Expr::IsNotDistinctFrom(a, b) => match rotated(a, b, true) {
            Some(whole) => bind_unsettled(&whole, scope, ctx),
            None => bind_distinct(a, b, true, scope, ctx),
        },
        Expr::InList { expr, list, negated } => bind_in_list(expr, list, *negated, scope, ctx),
        Expr::Between { expr, negated, low, high } => {
            let plain = without_symmetric(low);
            let value = bind_side(expr, scope, ctx)?;
            let low = bind_side(plain.as_ref().unwrap_or(low), scope, ctx)?;
            let high = bind_side(high, scope, ctx)?;
            let between = |low: &Bound, high: &Bound, ctx: &mut dyn BindContext| {
                let above = compare_bound(CmpOp::Ge, value.clone(), low.clone(), ctx)?;
                let below = compare_bound(CmpOp::Le, value.clone(), high.clone(), ctx)?;
                Ok::<_, SqlError>(Bound::and(vec![above, below]))
            };
            let mut both = between(&low, &high, ctx)?;
            if plain.is_some() {
                both = Bound::or(vec![both, between(&high, &low, ctx)?]);
            }
            Ok(if *negated { both.negated() } else { both })
        }
        Expr::Like { negated, any: false, expr, pattern, escape_char } => {
            let name = if *negated { "!~~" } else { "~~" };
            bind_like(name, expr, pattern, escape_char.as_ref(), scope, ctx)
        }
        Expr::ILike { negated, any: false, expr, pattern, escape_char } => {
            let name = if *negated { "!~~*" } else { "~~*" };
            bind_like(name, expr, pattern, escape_char.as_ref(), scope, ctx)
        }
        Expr::SimilarTo { negated, expr, pattern, escape_char } => {
            let found = bind_like("similar_to", expr, pattern, escape_char.as_ref(), scope, ctx)?;
            Ok(if *negated { found.negated() } else { found })
        }
        Expr::AnyOp { left, compare_op, right, .. } => {
            bind_any_all(left, compare_op, right, false, scope, ctx)
        }
        Expr::AllOp { left, compare_op, right } => {
            bind_any_all(left, compare_op, right, true, scope, ctx)
        }
        Expr::Cast { kind: CastKind::SafeCast | CastKind::TryCast, expr, data_type, .. } => {
            safe_cast(expr, data_type, scope, ctx)
        }
        Expr::Cast { expr, data_type, format: None, .. } => bind_cast(expr, data_type, scope, ctx),
        Expr::Function(function) => bind_function(function, scope, ctx),
        Expr::Case { operand, conditions, else_result, .. } => {
            bind_case(operand.as_deref(), conditions, else_result.as_deref(), scope, ctx)
        }
        Expr::Array(array) => bind_array(&array.elem, scope, ctx),
        Expr::Tuple(parts) => {
            let parts = parts.iter().map(|e| bind(e, scope, ctx)).collect::<SqlResult<Vec<_>>>()?;
            Ok(Bound::new(Node::Row(parts, None), SqlType::Record))
        }
        Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. } => {
            Err(general_query_needed("a subquery"))
        }
        other => bind_syntax(other, scope, ctx),
    }
}

/// Functions with a syntax of their own: EXTRACT, SUBSTRING .. FROM, TRIM, AT TIME ZONE, COLLATE.
fn bind_syntax(expr: &Expr, scope: &Scope, ctx: &mut dyn BindContext) -> SqlResult<Bound> {
    match expr {
        Expr::Cast { .. } => Err(SqlError::unsupported("CAST with FORMAT")
            .with_hint("Use to_char, to_date, to_timestamp or to_number.")),
        Expr::AtTimeZone { timestamp, time_zone } => {
            let value = bind_unsettled(timestamp, scope, ctx)?;
            let value = settle(value, &SqlType::TimestampTz, CastContext::Implicit, ctx)?;
            let zone = bind_unsettled(time_zone, scope, ctx)?;
            bind_named("timezone", vec![zone, value], false, ctx)
        }
        Expr::Extract { field, expr, .. } => {
            let field = Bound::constant(Datum::text(field_name(field)), SqlType::Text);
            let value = bind_unsettled(expr, scope, ctx)?;
            bind_named("extract", vec![field, value], false, ctx)
        }
        Expr::Ceil { expr, .. } => {
            let value = bind_unsettled(expr, scope, ctx)?;
            bind_named("ceil", vec![value], false, ctx)
        }
        Expr::Floor { expr, .. } => {
            let value = bind_unsettled(expr, scope, ctx)?;
            bind_named("floor", vec![value], false, ctx)
        }
        Expr::Position { expr, r#in } => {
            let needle = bind_unsettled(expr, scope, ctx)?;
            let text = bind_unsettled(r#in, scope, ctx)?;
            bind_named("position", vec![text, needle], false, ctx)
        }
        Expr::Substring { expr, substring_from, substring_for, shorthand, .. } => {
            let mut args = vec![bind_unsettled(expr, scope, ctx)?];
            match substring_from {
                Some(from) => args.push(bind_unsettled(from, scope, ctx)?),
                None => args.push(Bound::constant(Datum::Int4(1), SqlType::Int4)),
            }
            if let Some(length) = substring_for {
                args.push(bind_unsettled(length, scope, ctx)?);
            }
            bind_named(if *shorthand { "substr" } else { "substring" }, args, false, ctx)
        }
        Expr::Trim { .. } => bind_trim(expr, scope, ctx),
        Expr::Overlay { expr, overlay_what, overlay_from, overlay_for } => {
            let mut args = vec![
                bind_unsettled(expr, scope, ctx)?,
                bind_unsettled(overlay_what, scope, ctx)?,
                bind_unsettled(overlay_from, scope, ctx)?,
            ];
            if let Some(length) = overlay_for {
                args.push(bind_unsettled(length, scope, ctx)?);
            }
            bind_named("overlay", args, false, ctx)
        }
        Expr::Collate { expr, collation } => {
            let collation = ctx.params().collation(&crate::object_name_parts(collation))?;
            let value = bind_unsettled(expr, scope, ctx)?;
            let value = settle(value, &SqlType::Text, CastContext::Implicit, ctx)?;
            value.ty().check_collation(&collation)?;
            Ok(value.with_collation(Collated::Explicit(collation)))
        }
        other => Err(SqlError::unsupported(format!("the expression {other}"))),
    }
}

fn bind_column(parts: &[String], scope: &Scope, ctx: &mut dyn BindContext) -> SqlResult<Bound> {
    match parts {
        [name] if scope.has_table(name) && scope.find(parts)?.is_none() => {
            return Err(general_query_needed("a whole row"));
        }
        // `t.f` calls a function with a row of `t`, unless there is a column of that name.
        [table, name]
            if scope.has_table(table)
                && scope.find(parts)?.is_none()
                && is_function(name, ctx)? =>
        {
            return Err(general_query_needed("a function of a whole row"));
        }
        _ => {}
    }
    let at = scope.resolve(parts)?;
    let column = &scope.columns()[at];
    Ok(Bound::column(at, column.ty.clone()).with_collation(column.collation.clone()))
}

/// Whether users have made a function of a name.
fn is_function(name: &str, ctx: &mut dyn BindContext) -> SqlResult<bool> {
    let Some(types) = ctx.params().named_types() else { return Ok(false) };
    Ok(!types.functions(&[name.to_string()])?.is_empty())
}

fn bind_access(
    root: &Expr,
    chain: &[AccessExpr],
    scope: &Scope,
    ctx: &mut dyn BindContext,
) -> SqlResult<Bound> {
    // `t.arr[1]` arrives as root t, then .arr, then [1].
    let mut names = match root {
        Expr::Identifier(ident) => vec![ident.clone()],
        Expr::CompoundIdentifier(parts) => parts.clone(),
        _ => Vec::new(),
    };
    let mut rest = chain;
    while let (false, Some(AccessExpr::Dot(Expr::Identifier(ident)))) =
        (names.is_empty(), rest.first())
    {
        names.push(ident.clone());
        rest = &rest[1..];
    }
    let mut value = if names.len() > 1 {
        // As any other column: who binds a subquery finds it outside, or in a group.
        bind_unsettled(&Expr::CompoundIdentifier(names), scope, ctx)?
    } else {
        bind_unsettled(root, scope, ctx)?
    };
    while let Some((access, after)) = rest.split_first() {
        rest = after;
        if let Some(element) = bind_element(&value, access, scope, ctx)? {
            value = element;
            continue;
        }
        value = match access {
            // As an argument, all fields are the row.
            star if is_star(star) => value,
            AccessExpr::Dot(field) => select_field(&value, field)?,
            AccessExpr::Subscript(subscript) if value.ty().subscripted().is_none() => {
                bind_subscript(value, subscript, scope, ctx)?
            }
            AccessExpr::Subscript(first) => {
                let mut subscripts = vec![first];
                while let Some((AccessExpr::Subscript(next), after)) = rest.split_first() {
                    subscripts.push(next);
                    rest = after;
                }
                bind_subscripts(value, &subscripts, scope, ctx)?
            }
        };
    }
    Ok(value)
}

/// `(row).field` of a row whose fields have names.
fn select_field(value: &Bound, field: &Expr) -> SqlResult<Bound> {
    let row = inner_row(value);
    if let (SqlType::Composite(ty), Expr::Identifier(ident)) = (value.ty(), field) {
        let name = ident_name(ident);
        let no_field = || {
            let text = match ty.oid == SqlType::Record.oid() {
                true => format!("could not identify column \"{name}\" in record data type"),
                false => format!("column \"{name}\" not found in data type {}", ty.shown_name()),
            };
            SqlError::new(SqlState::UNDEFINED_COLUMN, text)
        };
        let at = ty.place_of(&name).ok_or_else(no_field)?;
        return field_of(value, at);
    }
    if let (Node::Row(parts, None), Expr::Identifier(ident)) = (row.node(), field) {
        let name = ident_name(ident);
        let places = plain_names(parts.len());
        if let Some(at) = places.iter().position(|n| **n == *name) {
            return Ok(parts[at].clone());
        }
    }
    let (Node::Row(parts, Some(names)), Expr::Identifier(ident)) = (row.node(), field) else {
        if *value.ty() == SqlType::Record {
            let text =
                format!("could not identify column \"{}\" in record data type", shown(field));
            return Err(SqlError::new(SqlState::UNDEFINED_COLUMN, text));
        }
        return Err(SqlError::new(
            SqlState::WRONG_OBJECT_TYPE,
            format!(
                "column notation .{field} applied to type {}, which is not a composite type",
                value.ty()
            ),
        ));
    };
    let name = ident_name(ident);
    match names.iter().position(|n| **n == *name) {
        Some(at) => Ok(parts[at].clone()),
        None => Err(SqlError::new(
            SqlState::UNDEFINED_COLUMN,
            format!("column \"{name}\" not found in data type record"),
        )),
    }
}

/// A field as it was written, without quotes.
fn shown(field: &Expr) -> String {
    match field {
        Expr::Identifier(ident) => ident_name(ident),
        other => other.to_string(),
    }
}

/// The names of the fields of `ROW(..)`.
fn plain_names(count: usize) -> Arc<[Arc<str>]> {
    (1..=count).map(|n| Arc::from(format!("f{n}"))).collect()
}

/// Fields of a row, each with its name.
pub type NamedFields = Vec<(Arc<str>, Bound)>;

/// The fields of a row with their names, as `(row).*` writes them out; `None` for what is no row,
/// or one whose names are not known.
///
/// # Errors
/// Those of constants that are computed.
pub fn fields_of(value: &Bound) -> SqlResult<Option<NamedFields>> {
    let names = match (value.ty(), inner_row(value).node()) {
        (SqlType::Composite(ty), _) => ty.names().clone(),
        (_, Node::Row(_, Some(names))) => names.clone(),
        (_, Node::Row(parts, None)) => plain_names(parts.len()),
        _ => return Ok(None),
    };
    let of = match value.ty() {
        SqlType::Composite(_) => value,
        _ => inner_row(value),
    };
    let field = |(at, name): (usize, &Arc<str>)| Ok((name.clone(), field_of(of, at)?));
    names.iter().enumerate().map(field).collect::<SqlResult<_>>().map(Some)
}

/// The row itself. One that an outer join may have left out has NULL fields then.
fn inner_row(value: &Bound) -> &Bound {
    match value.node() {
        Node::Case(_, Some(row)) if matches!(row.node(), Node::Row(..)) => row,
        _ => value,
    }
}

/// The field that a name means of a value of a composite type; `None` if there is none.
///
/// # Errors
/// Those of constants that are computed.
pub fn field_named(value: &Bound, name: &str) -> SqlResult<Option<Bound>> {
    let SqlType::Composite(ty) = value.ty() else { return Ok(None) };
    ty.place_of(name).map(|at| field_of(value, at)).transpose()
}

/// The field at a place of a value of a composite type.
pub(crate) fn field_of(value: &Bound, at: usize) -> SqlResult<Bound> {
    if let Node::Row(parts, _) = value.node() {
        return Ok(parts[at].clone());
    }
    let field = match value.ty() {
        SqlType::Composite(ty) => ty.fields.get(at).map(|f| f.ty.clone()),
        _ => None,
    };
    let ty = field.ok_or_else(|| SqlError::internal("a field of what is no row"))?;
    fold(Bound::new(Node::Field(value.clone(), at), ty))
}

/// `json['key']` and `name[0]`.
fn bind_subscript(
    value: Bound,
    subscript: &Subscript,
    scope: &Scope,
    ctx: &mut dyn BindContext,
) -> SqlResult<Bound> {
    if *value.ty() == SqlType::Jsonb
        && let Subscript::Index { index } = subscript
    {
        // A path of one step: a number is a key of an object, too, and a scalar has no places.
        let at = bind_unsettled(index, scope, ctx)?;
        let context = match at.ty().is_integer() {
            true => CastContext::Explicit,
            false => CastContext::Implicit,
        };
        if !matches!(at.ty(), SqlType::Unknown) && !at.ty().is_integer() && !at.ty().is_text_like()
        {
            let text = format!("subscript type {} is not supported", at.ty().base_name());
            let error = SqlError::new(SqlState::DATATYPE_MISMATCH, text)
                .with_hint("jsonb subscript must be coercible to either integer or text.");
            return Err(at_beginning(error, index));
        }
        let step = coerce(at, &SqlType::Text, context, ctx)?;
        let path = Bound::new(Node::Array(vec![step]), SqlType::Text.array_of());
        return bind_named("#>", vec![value, path], true, ctx);
    }
    if *value.ty() == SqlType::Name
        && let Subscript::Index { index } = subscript
    {
        // A name is an array of characters, the first of which has the number 0.
        let index = bind_unsettled(index, scope, ctx)?;
        let one = Bound::constant(Datum::Int4(1), SqlType::Int4);
        let place = bind_named("+", vec![index, one.clone()], true, ctx)?;
        let text = coerce(value, &SqlType::Text, CastContext::Implicit, ctx)?;
        return bind_named("substr", vec![text, place, one], false, ctx);
    }
    Err(SqlError::new(
        SqlState::DATATYPE_MISMATCH,
        format!("cannot subscript type {} because it does not support subscripting", value.ty()),
    ))
}

/// `array[1][2]`, and `array[1:2][3]`: with one slice among them all are slices, those of one
/// number from 1 to it.
fn bind_subscripts(
    value: Bound,
    subscripts: &[&Subscript],
    scope: &Scope,
    ctx: &mut dyn BindContext,
) -> SqlResult<Bound> {
    let mut index = |e: &Expr| {
        let bound = bind_unsettled(e, scope, ctx)?;
        coerce(bound, &SqlType::Int4, CastContext::Assignment, ctx)
    };
    let ty = value.ty().clone();
    let element = ty.subscripted().unwrap_or(SqlType::Unknown);
    braid_types::check_dimensions(subscripts.len())?;
    let sliced = subscripts.iter().any(|s| matches!(s, Subscript::Slice { .. }));
    if sliced && matches!(ty, SqlType::Geometry(_)) {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "slices of fixed-length arrays not implemented",
        ));
    }
    let (mut places, mut bounds) = (Vec::new(), Vec::new());
    for subscript in subscripts {
        match subscript {
            Subscript::Index { index: at } if sliced => {
                let one = Bound::constant(Datum::Int4(1), SqlType::Int4);
                bounds.push((Some(one), Some(index(at)?)));
            }
            Subscript::Index { index: at } => places.push(index(at)?),
            Subscript::Slice { lower_bound, upper_bound, .. } => {
                let low = lower_bound.as_ref().map(&mut index).transpose()?;
                bounds.push((low, upper_bound.as_ref().map(&mut index).transpose()?));
            }
        }
    }
    fold(match sliced {
        true => Bound::new(Node::Slice(value, bounds), ty),
        false => Bound::new(Node::Subscript(value, places), element),
    })
}

fn number(text: &str) -> SqlResult<Bound> {
    let whole = !text.contains(['.', 'e', 'E']);
    if whole && let Ok(v) = text.parse::<i32>() {
        return Ok(Bound::constant(Datum::Int4(v), SqlType::Int4));
    }
    if whole && let Ok(v) = text.parse::<i64>() {
        return Ok(Bound::constant(Datum::Int8(v), SqlType::Int8));
    }
    let value = numeric::parse(text)
        .ok_or_else(|| SqlError::syntax(format!("invalid number \"{text}\"")))?;
    Ok(Bound::constant(numeric::datum(value)?, SqlType::Numeric(None)))
}

fn bind_value(value: &Value, ctx: &mut dyn BindContext) -> SqlResult<Bound> {
    let text = |s: &str| Ok(Bound::constant(Datum::text(s), SqlType::Unknown));
    match value {
        Value::Number(digits, _) => number(&digits.to_string()),
        Value::SingleQuotedString(s)
        | Value::EscapedStringLiteral(s)
        | Value::UnicodeStringLiteral(s) => text(s),
        Value::NationalStringLiteral(s) => {
            Ok(Bound::constant(Datum::text(s.as_str()), SqlType::Char(0)))
        }
        Value::DollarQuotedString(s) => text(&s.value),
        Value::Boolean(b) => Ok(Bound::boolean(*b)),
        Value::Null => Ok(Bound::constant(Datum::Null, SqlType::Unknown)),
        Value::Placeholder(name) => {
            let index = name
                .strip_prefix('$')
                .and_then(|n| n.parse::<usize>().ok())
                .filter(|n| (1..=65_535).contains(n))
                .ok_or_else(|| SqlError::syntax(format!("syntax error at or near \"{name}\"")))?
                - 1;
            ctx.params().mention(index);
            let ty = ctx.params().get(index).cloned().unwrap_or(SqlType::Unknown);
            Ok(Bound::new(Node::Param(index), ty))
        }
        Value::SingleQuotedByteStringLiteral(digits) => bit_string(digits, 'b'),
        Value::HexStringLiteral(digits) => bit_string(digits, 'x'),
        other => Err(SqlError::unsupported(format!("the literal {other}"))),
    }
}

fn bit_string(digits: &str, kind: char) -> SqlResult<Bound> {
    let ty = SqlType::Bit(0);
    let value = Datum::parse(&format!("{kind}{digits}"), &ty, Style::utc())?;
    Ok(Bound::constant(value, ty))
}

fn bind_unary(
    op: UnaryOperator,
    expr: &Expr,
    scope: &Scope,
    ctx: &mut dyn BindContext,
) -> SqlResult<Bound> {
    if op == UnaryOperator::Minus
        && let Expr::Value(value) = expr
        && let Value::Number(digits, _) = &value.value
    {
        return number(&format!("-{digits}"));
    }
    if op == UnaryOperator::Not {
        return fold(bind_bool(expr, "NOT", scope, ctx)?.negated());
    }
    // The parser reads `-2 ^ 2` as `-(2 ^ 2)`; a sign binds closer.
    if matches!(op, UnaryOperator::Minus | UnaryOperator::Plus)
        && let Expr::BinaryOp { left, op: BinaryOperator::PGExp, right } = expr
    {
        let left = Box::new(Expr::UnaryOp { op, expr: left.clone() });
        let turned = Expr::BinaryOp { left, op: BinaryOperator::PGExp, right: right.clone() };
        return bind_unsettled(&turned, scope, ctx);
    }
    let value = bind_unsettled(expr, scope, ctx)?;
    let name = match op {
        UnaryOperator::Plus => "+",
        UnaryOperator::Minus => "-",
        UnaryOperator::BitwiseNot => "~",
        UnaryOperator::PGAbs => "@",
        UnaryOperator::PGSquareRoot => "|/",
        UnaryOperator::PGCubeRoot => "||/",
        UnaryOperator::Hash => "#",
        UnaryOperator::AtDashAt => "@-@",
        UnaryOperator::DoubleAt => "@@",
        UnaryOperator::QuestionDash => "?-",
        UnaryOperator::QuestionPipe => "?|",
        other => return Err(SqlError::unsupported(format!("operator {other}"))),
    };
    bind_named(name, vec![value], true, ctx)
}

fn bind_binary(
    left: &Expr,
    op: &BinaryOperator,
    right: &Expr,
    scope: &Scope,
    ctx: &mut dyn BindContext,
) -> SqlResult<Bound> {
    let op = &plain_operator(op)?;
    match op {
        BinaryOperator::And | BinaryOperator::Or => {
            // Long chains lean to the left: walk them without recursion.
            let clause = if *op == BinaryOperator::And { "AND" } else { "OR" };
            let mut parts = vec![bind_bool(right, clause, scope, ctx)?];
            let mut rest = left;
            while let Expr::BinaryOp { left, op: inner, right } = rest
                && inner == op
            {
                parts.push(bind_bool(right, clause, scope, ctx)?);
                rest = left;
            }
            parts.push(bind_bool(rest, clause, scope, ctx)?);
            parts.reverse();
            return fold(if *op == BinaryOperator::And {
                Bound::and(parts)
            } else {
                Bound::or(parts)
            });
        }
        _ => {}
    }
    if let (BinaryOperator::Overlaps, Expr::Tuple(first), Expr::Tuple(second)) = (op, left, right) {
        return bind_overlaps(first, second, scope, ctx);
    }
    if let Some(op) = comparison(op) {
        let (l, r) = (bind_side(left, scope, ctx)?, bind_side(right, scope, ctx)?);
        return compare_bound(op, l, r, ctx);
    }
    if let Some(name) = operator_name(op) {
        refuse_bytes_in_patterns(name, left, right)?;
    }
    let l = bind_unsettled(left, scope, ctx)?;
    let r = bind_unsettled(right, scope, ctx)?;
    match operator_name(op) {
        Some(name) => bind_named(name, vec![l, r], true, ctx),
        None => {
            Err(crate::resolve::no_match(&op.to_string(), &[l.ty().clone(), r.ty().clone()], true))
        }
    }
}

/// `(a, b) OVERLAPS (c, d)`.
fn bind_overlaps(
    first: &[Expr],
    second: &[Expr],
    scope: &Scope,
    ctx: &mut dyn BindContext,
) -> SqlResult<Bound> {
    for (side, ends) in [("left", first), ("right", second)] {
        if ends.len() != 2 {
            let text = format!("wrong number of parameters on {side} side of OVERLAPS expression");
            return Err(SqlError::syntax(text));
        }
    }
    let ends = first.iter().chain(second).map(|e| bind_unsettled(e, scope, ctx));
    let ends = ends.collect::<SqlResult<Vec<_>>>()?;
    bind_named("overlaps", ends, false, ctx)
}

/// `x IS [NOT] NFC NORMALIZED`.
fn bind_normalized(e: &Expr, scope: &Scope, ctx: &mut dyn BindContext) -> SqlResult<Bound> {
    let Expr::IsNormalized { expr, form, negated } = e else {
        return Err(SqlError::internal("no IS NORMALIZED"));
    };
    let form = form.unwrap_or(NormalizationForm::NFC).to_string();
    let form = Bound::constant(Datum::text(form), SqlType::Text);
    let found = bind_named("is_normalized", vec![bind(expr, scope, ctx)?, form], false, ctx)?;
    Ok(if *negated { found.negated() } else { found })
}

fn bind_is_null(
    expr: &Expr,
    not: bool,
    scope: &Scope,
    ctx: &mut dyn BindContext,
) -> SqlResult<Bound> {
    let value = bind(expr, scope, ctx)?;
    fold(Bound::new(Node::IsNull(value, not), SqlType::Bool))
}

fn bind_truth(
    expr: &Expr,
    truth: Option<bool>,
    not: bool,
    clause: &str,
    scope: &Scope,
    ctx: &mut dyn BindContext,
) -> SqlResult<Bound> {
    let value = bind_bool(expr, clause, scope, ctx)?;
    fold(Bound::new(Node::IsTruth(value, truth, not), SqlType::Bool))
}

/// The parser reads the right side of IS DISTINCT FROM too far, over AND and OR. This gives the
/// tree that was meant: `a IS DISTINCT FROM (x AND y)` becomes `(a IS DISTINCT FROM x) AND y` when
/// the right side was written without parentheses.
pub(crate) fn rotated(a: &Expr, b: &Expr, not: bool) -> Option<Expr> {
    let connective =
        |e: &Expr| matches!(e, Expr::BinaryOp { op: BinaryOperator::And | BinaryOperator::Or, .. });
    if !connective(b) {
        return None;
    }
    let mut whole = b.clone();
    let mut leaf = &mut whole;
    while connective(leaf) {
        let Expr::BinaryOp { left, .. } = leaf else { return None };
        leaf = left;
    }
    let right = Box::new(leaf.clone());
    let left = Box::new(a.clone());
    *leaf =
        if not { Expr::IsNotDistinctFrom(left, right) } else { Expr::IsDistinctFrom(left, right) };
    Some(whole)
}

fn bind_distinct(
    a: &Expr,
    b: &Expr,
    not: bool,
    scope: &Scope,
    ctx: &mut dyn BindContext,
) -> SqlResult<Bound> {
    let a = bind_side(a, scope, ctx)?;
    let b = bind_side(b, scope, ctx)?;
    distinct_bound(a, b, not, ctx)
}

fn bind_like(
    name: &'static str,
    expr: &Expr,
    pattern: &Expr,
    escape: Option<&sqlparser::ast::ValueWithSpan>,
    scope: &Scope,
    ctx: &mut dyn BindContext,
) -> SqlResult<Bound> {
    refuse_bytes_in_patterns(name, expr, pattern)?;
    let mut args = vec![bind_unsettled(expr, scope, ctx)?, bind_unsettled(pattern, scope, ctx)?];
    // What is of no type yet is bytes beside bytes.
    let bytes = args.iter().any(|arg| *arg.ty() == SqlType::Bytea);
    let other = if bytes { SqlType::Bytea } else { SqlType::Text };
    if let Some(escape) = escape {
        let escape = bind_value(&escape.value, ctx)?;
        args.push(settle(escape, &other, CastContext::Implicit, ctx)?);
    }
    for arg in &mut args {
        if *arg.ty() == SqlType::Unknown {
            *arg = settle(arg.clone(), &other, CastContext::Implicit, ctx)?;
        }
    }
    bind_named(name, args, true, ctx)
}

fn bind_trim(expr: &Expr, scope: &Scope, ctx: &mut dyn BindContext) -> SqlResult<Bound> {
    use sqlparser::ast::TrimWhereField;
    let Expr::Trim { expr, trim_where, trim_what, trim_characters } = expr else {
        return Err(SqlError::internal("bind_trim of another expression"));
    };
    let name = match trim_where {
        Some(TrimWhereField::Leading) => "ltrim",
        Some(TrimWhereField::Trailing) => "rtrim",
        _ => "btrim",
    };
    let mut args = vec![bind_unsettled(expr, scope, ctx)?];
    if let Some(what) = trim_what {
        args.push(bind_unsettled(what, scope, ctx)?);
    }
    for what in trim_characters.iter().flatten() {
        args.push(bind_unsettled(what, scope, ctx)?);
    }
    bind_named(name, args, false, ctx)
}

/// `date '2020-01-01'`
fn bind_typed(typed: &TypedString, ctx: &mut dyn BindContext) -> SqlResult<Bound> {
    let text = typed.value.clone().into_string().unwrap_or_default();
    let ty = sql_type_of(&typed.data_type, ctx.params().named_types())?;
    let refinement = refinement_of(&typed.data_type, ctx.params().named_types())?;
    let literal = Bound::constant(Datum::text(text), SqlType::Unknown);
    let value = match interval_text(&literal, &refinement)? {
        Some(interval) => interval,
        None => settle(literal, &ty, CastContext::Explicit, ctx)?,
    };
    fold(refinement.over(value))
}

fn bind_cast(
    expr: &Expr,
    data_type: &DataType,
    scope: &Scope,
    ctx: &mut dyn BindContext,
) -> SqlResult<Bound> {
    let ty = sql_type_of(data_type, ctx.params().named_types())?;
    let refinement = refinement_of(data_type, ctx.params().named_types())?;
    if let (Some(domain), Some(index)) = (refinement.domain_oid(), parameter(expr)) {
        ctx.params().decide_domain(index, &ty.base(), domain);
    }
    if refinement.fields.is_some() {
        let value = bind_unsettled(expr, scope, ctx)?;
        if let Some(interval) = interval_text(&value, &refinement)? {
            return fold(refinement.over(interval));
        }
    }
    let value = cast_to(expr, &ty, scope, ctx)?;
    fold(refinement.over(value))
}

fn cast_to(
    expr: &Expr,
    ty: &SqlType,
    scope: &Scope,
    ctx: &mut dyn BindContext,
) -> SqlResult<Bound> {
    // ARRAY[] alone has no element type: the cast gives it.
    if let (Expr::Array(array), SqlType::Array(element)) = (expr, ty) {
        // Beside a list in the list, what has no type yet is the text of one: all are of one type.
        let of_lists = array.elem.iter().any(|e| matches!(e, Expr::Array(_)));
        let meant = if of_lists { ty } else { &**element };
        let parts = array
            .elem
            .iter()
            .map(|e| {
                if matches!(e, Expr::Array(_)) {
                    return cast_to(e, ty, scope, ctx);
                }
                let part = bind_for(e, meant, scope, ctx)?;
                let whole = matches!(part.ty(), SqlType::Array(_));
                coerce(part, if whole { ty } else { meant }, CastContext::Explicit, ctx)
            })
            .collect::<SqlResult<Vec<_>>>()?;
        return fold(Bound::new(Node::Array(parts), ty.clone()));
    }
    let value = bind_for(expr, ty, scope, ctx)?;
    if *value.ty() == SqlType::Unknown && matches!(value.node(), Node::Const(Datum::Text(_))) {
        // Explicit: '...'::varchar(3) cuts. Parsing happens in the base type, then the cut.
        let base = settle(value, &ty.base(), CastContext::Explicit, ctx);
        return match (ty, base) {
            (SqlType::Char(_), _) => {
                let text = bind(expr, scope, ctx)?;
                coerce(text, ty, CastContext::Explicit, ctx)
            }
            (_, Ok(base)) => {
                if base.ty() == ty {
                    Ok(base)
                } else {
                    fold(Bound::new(Node::Cast(base, CastContext::Explicit), ty.clone()))
                }
            }
            (_, Err(e)) => Err(e),
        };
    }
    coerce(value, ty, CastContext::Explicit, ctx)
}

fn bind_array(elements: &[Expr], scope: &Scope, ctx: &mut dyn BindContext) -> SqlResult<Bound> {
    let parts = elements.iter().map(|e| bind_unsettled(e, scope, ctx));
    let parts = parts.collect::<SqlResult<Vec<_>>>()?;
    let types: Vec<SqlType> = parts.iter().map(|part| part.ty().clone()).collect();
    let (parts, element) = unify(parts, "ARRAY", ctx)
        .map_err(|e| at_stranger(e, &types, &elements.iter().collect::<Vec<_>>()))?;
    fold(Bound::new(Node::Array(parts), element.array_of()))
}

fn bind_case(
    operand: Option<&Expr>,
    conditions: &[CaseWhen],
    else_result: Option<&Expr>,
    scope: &Scope,
    ctx: &mut dyn BindContext,
) -> SqlResult<Bound> {
    let operand = operand.map(|e| bind_unsettled(e, scope, ctx)).transpose()?;
    let mut whens = Vec::with_capacity(conditions.len());
    let mut values = Vec::with_capacity(conditions.len() + 1);
    for condition in conditions {
        whens.push(match &operand {
            None => bind_bool(&condition.condition, "CASE/WHEN", scope, ctx)?,
            Some(operand) => {
                let value = bind_unsettled(&condition.condition, scope, ctx)?;
                compare_bound(CmpOp::Eq, operand.clone(), value, ctx)?
            }
        });
        values.push(bind_unsettled(&condition.result, scope, ctx)?);
    }
    let mut exprs: Vec<&Expr> = conditions.iter().map(|condition| &condition.result).collect();
    let has_else = else_result.is_some();
    if let Some(e) = else_result {
        // Its type is looked at first, as in PostgreSQL.
        values.insert(0, bind_unsettled(e, scope, ctx)?);
        exprs.insert(0, e);
    }
    if !has_else {
        // It is a NULL of no type.
        values.insert(0, Bound::constant(Datum::Null, SqlType::Unknown));
    }
    let types: Vec<SqlType> = values.iter().map(|value| value.ty().clone()).collect();
    let types = &types[usize::from(!has_else)..];
    let (mut values, ty) = unify(values, "CASE", ctx).map_err(|e| at_stranger(e, types, &exprs))?;
    let otherwise = Some(values.remove(0)).filter(|_| has_else);
    // As of all that it may be, whichever is left.
    let all = values.iter().chain(&otherwise);
    let collation = all.fold(Collated::Default, |all, value| all.with(value.collation()));
    let branches =
        whens.into_iter().zip(values).map(|(when, then)| CaseBranch { when, then }).collect();
    Ok(fold_case(branches, otherwise, ty)?.with_collation(collation))
}

/// Leaves out branches whose condition is known: what they would compute is not wanted.
fn fold_case(
    branches: Vec<CaseBranch>,
    otherwise: Option<Bound>,
    ty: braid_types::SqlType,
) -> SqlResult<Bound> {
    let mut kept = Vec::with_capacity(branches.len());
    let mut otherwise = otherwise;
    for branch in branches {
        match branch.when.as_const() {
            Some(Datum::Bool(true)) => {
                otherwise = Some(branch.then);
                break;
            }
            Some(_) => {}
            None => kept.push(branch),
        }
    }
    if kept.is_empty() {
        return Ok(match otherwise {
            Some(value) if *value.ty() == ty => value,
            Some(value) => value.relabeled(ty),
            None => Bound::constant(Datum::Null, ty),
        });
    }
    Ok(Bound::new(Node::Case(kept, otherwise), ty))
}
