//! Function calls: constructs that look like functions, aggregates (refused here), overloads.

use std::ops::ControlFlow;

use braid_types::{
    CastContext, DEFAULT_COLLATION, Datum, SqlError, SqlResult, SqlState, SqlType, TypeCategory,
    cast_exists,
};
use braid_walk::Walk;
use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::ast::{
    ArrayElemTypeDef, BinaryOperator, DataType, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArguments, ObjectName, SelectItem, SetExpr, TableFactor, Visitor,
};

use crate::bind::{bind_unsettled, general_query_needed};
use crate::bind_compare::{is_shape, is_without_order, match_sides};
use crate::conversion::{at_stranger, coerce, fails_always, fold, unify, written_arguments};
use crate::functions::populate;
use crate::resolve::no_match;
use crate::syntax::{bind_guest, bind_spread, marked};
use crate::texts::collated::{
    self, EQUATING, check_collated, comparable, compared_forms, value_of_form,
};
use crate::user_functions::{Resolved, constructors, resolve_call};
use crate::{
    ArgType, BindContext, Bound, CmpOp, Node, Scope, compare_bound, enums, fields_of, ident_name,
    is_aggregate, is_set_returning, missing_table, named_arguments, object_name_parts, registry,
    resolve,
};

/// Name of a called function without `pg_catalog`.
fn function_name(name: &ObjectName) -> SqlResult<String> {
    let parts = object_name_parts(name);
    match parts.as_slice() {
        [name] => Ok(name.clone()),
        [schema, name] if schema == "pg_catalog" || schema == "information_schema" => {
            Ok(name.clone())
        }
        _ => Err(SqlError::new(
            SqlState::UNDEFINED_FUNCTION,
            format!("function {} does not exist", parts.join(".")),
        )),
    }
}

/// That there is no such schema, or that it has no such function for these arguments, if their
/// types are known.
fn unknown_in_schema(
    function: &Function,
    scope: &Scope,
    ctx: &mut dyn BindContext,
) -> Option<SqlError> {
    let parts = object_name_parts(&function.name);
    // Whether there is a schema is known of who is asked for a collation in it.
    if let [schema, _] = parts.as_slice()
        && !schema.starts_with("pg_temp")
        && let Some(Err(error)) = ctx.params().named_types().map(|types| types.collation(&parts))
        && error.state() == SqlState::INVALID_SCHEMA_NAME
    {
        return Some(error);
    }
    let args = argument_exprs(function).ok()?;
    let bound = args.iter().map(|e| bind_unsettled(e, scope, ctx));
    let types: Vec<SqlType> =
        bound.map(|arg| arg.ok().map(|arg| arg.ty().clone())).collect::<Option<_>>()?;
    Some(no_match(&parts.join("."), &types, false))
}

fn argument_exprs(function: &Function) -> SqlResult<Vec<&Expr>> {
    let list = match &function.args {
        FunctionArguments::None => return Ok(Vec::new()),
        FunctionArguments::Subquery(_) => return Err(general_query_needed("a subquery")),
        FunctionArguments::List(list) => list,
    };
    list.args
        .iter()
        .map(|arg| match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(e)) => Ok(e),
            FunctionArg::Unnamed(_) => Err(SqlError::syntax("* is only for count(*)")),
            FunctionArg::Named { .. } | FunctionArg::ExprNamed { .. } => {
                Err(SqlError::unsupported("a named argument"))
            }
        })
        .collect()
}

/// What the parser calls `* EXCEPT (..)` of a select list.
const STAR_EXCEPT: &str = "star except";

/// Binds a function call.
pub(crate) fn bind_function(
    function: &Function,
    scope: &Scope,
    ctx: &mut dyn BindContext,
) -> SqlResult<Bound> {
    match resolve_call(function, scope, ctx)? {
        Resolved::Nothing => {}
        Resolved::User(call) => return call.value(ctx),
        Resolved::Builtin(name, args) => return bind_special(&name, args, ctx),
    }
    if let Some(bound) = bind_guest(function, scope, ctx)? {
        return Ok(bound);
    }
    if let Some(ty) = constructors::named_by(&function.name, ctx) {
        let args = argument_exprs(function)?;
        let args = args.iter().map(|e| bind_unsettled(e, scope, ctx)).collect::<SqlResult<_>>()?;
        return constructors::bind(ty, args, ctx);
    }
    let name = match function_name(&function.name) {
        Ok(name) => name,
        Err(error) => return Err(unknown_in_schema(function, scope, ctx).unwrap_or(error)),
    };
    check_arguments(&name, function)?;
    if function.over.is_some() {
        return Err(general_query_needed("a window function"));
    }
    if !function.within_group.is_empty() && !is_aggregate(&name) {
        let text = format!("WITHIN GROUP specified, but {name} is not an aggregate function");
        return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, text));
    }
    if is_called_as_window(&name, function) {
        let text = format!("window function {name} requires an OVER clause");
        return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, text));
    }
    if is_aggregate(&name) || name == "grouping" {
        return Err(general_query_needed("an aggregate"));
    }
    if is_set_returning(&name) {
        return Err(general_query_needed("a set-returning function"));
    }
    if function.filter.is_some() {
        return Err(SqlError::new(
            SqlState::WRONG_OBJECT_TYPE,
            format!("FILTER specified, but {name} is not an aggregate function"),
        ));
    }
    if name == "array" {
        return Err(general_query_needed("a subquery"));
    }
    if name == STAR_EXCEPT {
        return Err(general_query_needed("a star with exceptions"));
    }
    if let Some(spread) = marked(function) {
        return bind_spread(&name, spread, scope, ctx);
    }
    let stars = match name == "row" {
        true => with_stars(function, scope, ctx)?,
        false => with_rows(function)?,
    };
    let ordered = named_arguments::in_order(&name, function)?;
    let exprs = match stars.as_ref().or(ordered.as_ref()) {
        Some(exprs) => exprs.iter().collect(),
        None => argument_exprs(function)?,
    };
    let args =
        exprs.iter().map(|e| bind_unsettled(e, scope, ctx)).collect::<SqlResult<Vec<_>>>()?;
    let types: Vec<SqlType> = args.iter().map(|arg| arg.ty().clone()).collect();
    bind_special(&name, args, ctx).map_err(|e| at_stranger(e, &types, &exprs))
}

/// What some functions do not take as arguments, or not in this form.
fn check_arguments(name: &str, function: &Function) -> SqlResult<()> {
    if matches!(name, "lower" | "upper" | "initcap")
        && function.args.walk(&mut BytesOnly).is_break()
    {
        return Err(SqlError::unsupported(format!("COLLATE in an argument of {name}"))
            .with_hint("Letters of all alphabets are changed here, under every collation."));
    }
    if name.starts_with("regexp_") && function.args.walk(&mut BytesOnly).is_break() {
        return Err(classes_of_all_alphabets(name));
    }
    if name == "position" && function.name.0.len() == 1 {
        // Its arguments are written with IN; the function is found by its schema.
        return Err(SqlError::syntax("syntax error at or near \",\""));
    }
    Ok(())
}

/// `t.*`
fn is_star(arg: &FunctionArg) -> bool {
    matches!(arg, FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(_)))
}

/// The fields of `ROW(t.*, ..)`: each column of the table is one. `None` without a star.
fn with_stars(
    function: &Function,
    scope: &Scope,
    ctx: &mut dyn BindContext,
) -> SqlResult<Option<Vec<Expr>>> {
    let FunctionArguments::List(list) = &function.args else { return Ok(None) };
    if !list.args.iter().any(is_star) {
        return Ok(None);
    }
    let mut out = Vec::new();
    for arg in &list.args {
        let table = match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(e)) => {
                out.push(e.clone());
                continue;
            }
            FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(table)) => table,
            _ => return Err(SqlError::syntax("syntax error in ROW")),
        };
        let alias = object_name_parts(table).pop().unwrap_or_default();
        let whole = Expr::QualifiedWildcard(table.clone(), AttachedToken::empty());
        let row = ctx.intercept(&whole, scope)?;
        let names: Vec<String> = match row.as_ref().map(fields_of).transpose()?.flatten() {
            Some(fields) => fields.into_iter().map(|(name, _)| name.to_string()).collect(),
            None => {
                let own = |c: &&crate::ScopeColumn| c.table.as_deref() == Some(&*alias);
                let columns = scope.columns().iter().filter(own).filter(|c| !c.hidden);
                columns.map(|c| c.name.clone()).collect()
            }
        };
        if names.is_empty() {
            return Err(missing_table(&alias));
        }
        let quoted = |name: &str| sqlparser::ast::Ident::with_quote('"', name);
        let field = |name: &String| Expr::CompoundIdentifier(vec![quoted(&alias), quoted(name)]);
        out.extend(names.iter().map(field));
    }
    Ok(Some(out))
}

/// `f(t.*)`: the whole row. `None` without a star.
pub(crate) fn with_rows(function: &Function) -> SqlResult<Option<Vec<Expr>>> {
    let FunctionArguments::List(list) = &function.args else { return Ok(None) };
    if !list.args.iter().any(is_star) {
        return Ok(None);
    }
    let row = |arg: &FunctionArg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(table)) => {
            Ok(Expr::QualifiedWildcard(table.clone(), AttachedToken::empty()))
        }
        FunctionArg::Unnamed(FunctionArgExpr::Expr(e)) => Ok(e.clone()),
        _ => Err(SqlError::unsupported("a named argument beside a whole row")),
    };
    list.args.iter().map(row).collect::<SqlResult<_>>().map(Some)
}

/// Constructs with rules of their own, then the table.
pub(crate) fn bind_special(
    name: &str,
    mut args: Vec<Bound>,
    ctx: &mut dyn BindContext,
) -> SqlResult<Bound> {
    match (name, args.len()) {
        ("coalesce", 1..) => {
            let (mut parts, ty) = unify(args, "COALESCE", ctx)?;
            let collation = Bound::new(Node::Coalesce(parts.clone()), ty.clone());
            let collation = collation.collation().clone();
            // Behind a constant that is not NULL nothing is computed.
            let is = |p: &Bound, null: bool| p.as_const().is_some_and(|v| v.is_null() == null);
            parts.retain(|p| !is(p, true));
            if let Some(at) = parts.iter().position(|p| is(p, false)) {
                parts.truncate(at + 1);
            }
            let value = match parts.len() {
                0 => Bound::constant(Datum::Null, ty),
                1 if *parts[0].ty() == ty => parts.remove(0),
                _ => fold(Bound::new(Node::Coalesce(parts), ty))?,
            };
            Ok(value.with_collation(collation))
        }
        ("greatest" | "least", 1..) => {
            let what = if name == "least" { "LEAST" } else { "GREATEST" };
            let (parts, ty) = unify(args, what, ctx)?;
            if is_without_order(ty.element().unwrap_or(&ty)) {
                return Err(SqlError::new(
                    SqlState::UNDEFINED_FUNCTION,
                    format!("could not identify a comparison function for type {ty}"),
                ));
            }
            extreme(parts, name == "least", ty)
        }
        ("nullif", 2) => {
            let right = args.pop().expect("two arguments");
            let left = args.pop().expect("two arguments");
            bind_nullif(left, right, ctx)
        }
        ("row", _) => {
            let parts = args
                .into_iter()
                .map(|a| match a.ty() {
                    SqlType::Unknown => coerce(a, &SqlType::Text, CastContext::Implicit, ctx),
                    _ => Ok(a),
                })
                .collect::<SqlResult<Vec<_>>>()?;
            Ok(Bound::new(Node::Row(parts, None), SqlType::Record))
        }
        ("pg_typeof", 1) => {
            let ty = args[0].ty().clone();
            Ok(Bound::constant(braid_types::Datum::Oid(ty.oid()), SqlType::Regtype))
        }
        ("pg_collation_for", 1) => collated::name_of(&args[0]),
        ("json_populate_record" | "jsonb_populate_record", 2) => populate::bind(name, args, ctx),
        ("enum_first" | "enum_last" | "enum_range", 1 | 2) => enums::bind(name, args, ctx),
        // A type's name called as function is a cast: text(x), int4(x), date(x). Only a function
        // that takes the very type goes before it.
        (_, 1) => match as_type(name, args[0].ty()) {
            Some(ty) => coerce(args.remove(0), &ty, CastContext::Explicit, ctx),
            None => bind_named(name, args, false, ctx),
        },
        _ => bind_named(name, args, false, ctx),
    }
}

/// GREATEST or LEAST. Texts of a locale are compared by their keys.
fn extreme(parts: Vec<Bound>, least: bool, ty: SqlType) -> SqlResult<Bound> {
    let whole = Bound::new(Node::Extreme(parts, least), ty.clone());
    if whole.collation().is_by_bytes() {
        return fold(whole);
    }
    let Node::Extreme(parts, _) = whole.node() else { return Ok(whole) };
    let keys = compared_forms(parts.clone())?;
    let Some(form) = keys.first().map(|key| key.ty().clone()) else { return Ok(whole) };
    let best = fold(Bound::new(Node::Extreme(keys, least), form))?;
    value_of_form(best, &ty, whole.collation())
}

/// The type that a function's name with one argument of a type means.
fn as_type(name: &str, given: &SqlType) -> Option<SqlType> {
    let takes = |arg: &ArgType| matches!(arg, ArgType::Exact(ty) if ty.same_base(given));
    let own =
        registry::overloads(name).iter().any(|f| matches!(f.args.as_slice(), [arg] if takes(arg)));
    // Nor is it one where there is no such cast, but a function.
    let called =
        |ty: &SqlType| !registry::overloads(name).is_empty() && cast_exists(given, ty).is_none();
    if own { None } else { SqlType::from_name(name).filter(|ty| !called(ty)) }
}

/// NULLIF has the type that its left side has as an operand of `=`: `nullif(1, 1.5)` is numeric.
fn bind_nullif(left: Bound, right: Bound, ctx: &mut dyn BindContext) -> SqlResult<Bound> {
    if left.ty().is_row() || right.ty().is_row() || is_shape(&left) || is_shape(&right) {
        let equality = compare_bound(CmpOp::Eq, left.clone(), right, ctx)?;
        let ty = left.ty().clone();
        return Ok(Bound::new(Node::NullIf(left, equality), ty));
    }
    let shown = blank_padded(&left, right.ty(), ctx)?;
    let padded = shown.is_some();
    let (l, r) = match_sides("=", left.clone(), right, ctx)?;
    let known = |ty: &SqlType| *ty != SqlType::Unknown;
    let float = |ty: &SqlType| matches!(ty, SqlType::Float4 | SqlType::Float8);
    // There are operators over these pairs of types: the left side stays as it is.
    let own = known(left.ty())
        && ((left.ty().is_integer() && r.ty().is_integer())
            || (float(left.ty()) && float(r.ty()))
            || left.ty().category() == TypeCategory::DateTime);
    let value = match &l {
        _ if own => left,
        l if padded => shown.unwrap_or_else(|| l.clone()),
        l if *l.ty() == SqlType::Cidr => {
            coerce(l.clone(), &SqlType::Inet, CastContext::Implicit, ctx)?
        }
        l if matches!(l.ty(), SqlType::Varchar(_)) => l.clone().relabeled(SqlType::Text),
        l => l.clone(),
    };
    let ty = value.ty().clone();
    let null = |side: &Bound| side.as_const().is_some_and(Datum::is_null);
    if (null(&l) && !fails_always(&r)) || null(&r) {
        // A NULL equals nothing.
        return Ok(value);
    }
    let (l, r) = comparable(CmpOp::Eq, l, r)?;
    let equality = fold(Bound::new(Node::Compare(CmpOp::Eq, l, r), SqlType::Bool))?;
    fold(Bound::new(Node::NullIf(value, equality), ty))
}

/// What NULLIF shows where `char(n)` is on one side: text beside text, else `char`.
fn blank_padded(
    left: &Bound,
    right: &SqlType,
    ctx: &mut dyn BindContext,
) -> SqlResult<Option<Bound>> {
    let char = |ty: &SqlType| matches!(ty, SqlType::Char(_));
    if !char(left.ty()) && !char(right) {
        return Ok(None);
    }
    if *left.ty() == SqlType::Text || *right == SqlType::Text {
        return coerce(left.clone(), &SqlType::Text, CastContext::Implicit, ctx).map(Some);
    }
    Ok(Some(match char(left.ty()) {
        true => left.clone().relabeled(SqlType::Char(0)),
        false => coerce(left.clone(), &SqlType::Char(0), CastContext::Implicit, ctx)?,
    }))
}

/// Binds a call of a function or operator of the table.
///
/// # Errors
/// 42883, 42725.
pub(crate) fn bind_named(
    name: &str,
    args: Vec<Bound>,
    operator: bool,
    ctx: &mut dyn BindContext,
) -> SqlResult<Bound> {
    let args = written_arguments(name, args)?;
    let given: Vec<SqlType> = args.iter().map(|a| a.ty().clone()).collect();
    let choice = resolve::resolve(name, &given, operator)?;
    if choice.function.args.first() == Some(&ArgType::AnyArray) && EQUATING.contains(&name) {
        let element = choice.args[0].element().filter(|ty| is_without_order(ty));
        if let Some(element) = element {
            let text = format!("could not identify an equality operator for type {element}");
            return Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, text));
        }
    }
    let mut converted = Vec::with_capacity(args.len());
    for (arg, want) in args.into_iter().zip(&choice.args) {
        converted.push(coerce(arg, want, CastContext::Implicit, ctx)?);
    }
    check_collated(name, &converted)?;
    fold(Bound::new(Node::Call(choice.function, converted), choice.ret))
}

/// The column name PostgreSQL gives to a select-list expression without alias.
pub fn output_name(expr: &Expr) -> String {
    named(expr).unwrap_or_else(|| "?column?".to_string())
}

fn named(expr: &Expr) -> Option<String> {
    let fixed = |s: &str| Some(s.to_string());
    match expr {
        Expr::Identifier(ident) => Some(ident_name(ident)),
        Expr::CompoundIdentifier(parts) => parts.last().map(ident_name),
        Expr::CompoundFieldAccess { root, access_chain } => {
            let dotted = access_chain.iter().rev().find_map(|a| match a {
                sqlparser::ast::AccessExpr::Dot(Expr::Identifier(ident)) => Some(ident_name(ident)),
                _ => None,
            });
            dotted.or_else(|| named(root))
        }
        Expr::Nested(inner) | Expr::Collate { expr: inner, .. } => named(inner),
        Expr::Function(f) => object_name_parts(&f.name).pop(),
        // A cast keeps the name of what it casts if that has one of its own, else the type's.
        Expr::Cast { expr, data_type, .. } => own_name(expr).or_else(|| type_column(data_type)),
        Expr::TypedString(typed) => type_column(&typed.data_type),
        Expr::Interval(_) => fixed("interval"),
        Expr::Case { else_result, .. } => {
            else_result.as_deref().and_then(own_name).or_else(|| fixed("case"))
        }
        Expr::Exists { .. } => fixed("exists"),
        Expr::Array(_) => fixed("array"),
        Expr::Tuple(_) => fixed("row"),
        Expr::Extract { .. } => fixed("extract"),
        Expr::Ceil { .. } => fixed("ceil"),
        Expr::Floor { .. } => fixed("floor"),
        Expr::Position { .. } => fixed("position"),
        Expr::Substring { shorthand, .. } => fixed(if *shorthand { "substr" } else { "substring" }),
        Expr::Overlay { .. } => fixed("overlay"),
        Expr::AtTimeZone { .. } => fixed("timezone"),
        Expr::IsNormalized { negated: false, .. } => fixed("is_normalized"),
        Expr::BinaryOp { op: BinaryOperator::Overlaps, .. } => fixed("overlaps"),
        Expr::Trim { trim_where, .. } => fixed(match trim_where {
            Some(sqlparser::ast::TrimWhereField::Leading) => "ltrim",
            Some(sqlparser::ast::TrimWhereField::Trailing) => "rtrim",
            _ => "btrim",
        }),
        Expr::Value(v) => match v.value {
            sqlparser::ast::Value::Boolean(_) => fixed("bool"),
            sqlparser::ast::Value::NationalStringLiteral(_) => fixed("bpchar"),
            _ => None,
        },
        Expr::Subquery(query) => first_column(&query.body),
        _ => None,
    }
}

/// The name of the first column of a query.
fn first_column(body: &SetExpr) -> Option<String> {
    match body {
        SetExpr::Select(select) => match select.projection.first()? {
            SelectItem::UnnamedExpr(e) => Some(output_name(e)),
            SelectItem::ExprWithAlias { alias, .. } => Some(ident_name(alias)),
            SelectItem::Wildcard(_) => first_of_derived(&select.from.first()?.relation),
            _ => None,
        },
        SetExpr::Query(inner) => first_column(&inner.body),
        SetExpr::SetOperation { left, .. } => first_column(left),
        SetExpr::Values(_) => Some("column1".to_string()),
        _ => None,
    }
}

/// The same of a query in FROM.
fn first_of_derived(relation: &TableFactor) -> Option<String> {
    let TableFactor::Derived { subquery, alias, .. } = relation else { return None };
    match alias.as_ref().and_then(|alias| alias.columns.first()) {
        Some(column) => Some(ident_name(&column.name)),
        None => first_column(&subquery.body),
    }
}

/// The name of a column that only has a type: that of the type, of an array that of its elements.
fn type_column(data_type: &DataType) -> Option<String> {
    match crate::sql_type_of(data_type, None) {
        Ok(SqlType::Array(element)) => Some(element.internal_name()),
        Ok(other) => Some(other.internal_name()),
        // A type of a user; binding says whether there is one.
        Err(_) => match data_type {
            DataType::Array(
                ArrayElemTypeDef::SquareBracket(inner, _)
                | ArrayElemTypeDef::AngleBracket(inner)
                | ArrayElemTypeDef::Parenthesis(inner),
            ) => type_column(inner),
            other => crate::user_type_name(other)?.pop(),
        },
    }
}

/// The name that an expression keeps under a cast: not one that only tells its type.
fn own_name(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Nested(inner) | Expr::Collate { expr: inner, .. } => own_name(inner),
        Expr::Cast { expr, .. } => own_name(expr),
        Expr::Case { else_result, .. } => else_result.as_deref().and_then(own_name),
        Expr::TypedString(_) | Expr::Interval(_) | Expr::Value(_) => None,
        Expr::CompoundFieldAccess { root, access_chain } => {
            let dotted =
                access_chain.iter().any(|a| matches!(a, sqlparser::ast::AccessExpr::Dot(_)));
            if dotted { named(expr) } else { own_name(root) }
        }
        other => named(other),
    }
}

/// Refuses a pattern under a collation that knows letters of ASCII only, if that could matter: here
/// letters and classes are those of all alphabets.
///
/// # Errors
/// 0A000.
pub(crate) fn refuse_bytes_in_patterns(name: &str, text: &Expr, pattern: &Expr) -> SqlResult<()> {
    if !matches!(name, "~" | "~*" | "!~" | "!~*" | "~~*" | "!~~*") {
        return Ok(());
    }
    let under_bytes = |e: &Expr| e.walk(&mut BytesOnly).is_break();
    if !under_bytes(text) && !under_bytes(pattern) {
        return Ok(());
    }
    let plain = |e: &Expr| match e {
        Expr::Value(value) => value.value.clone().into_string().is_some_and(|literal| {
            literal.is_ascii() && !literal.contains('\\') && !literal.contains("[:")
        }),
        _ => false,
    };
    let pattern = match pattern {
        Expr::Collate { expr, .. } => expr,
        other => other,
    };
    match plain(pattern) {
        true => Ok(()),
        false => Err(classes_of_all_alphabets(name)),
    }
}

fn classes_of_all_alphabets(name: &str) -> SqlError {
    SqlError::unsupported(format!("COLLATE in an argument of {name}"))
        .with_hint("Classes of characters are those of all alphabets, under every collation.")
}

/// Looks for a collation that knows letters of ASCII only.
struct BytesOnly;

impl Visitor for BytesOnly {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::Collate { collation, .. }
                if crate::object_name_parts(collation)
                    .last()
                    .and_then(|name| braid_types::built_in_collation(name))
                    .is_some_and(|c| c.locale.is_none() && c.oid != DEFAULT_COLLATION) =>
            {
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

/// Whether the call is one of a window function: `rank` and its like are aggregates as well, behind
/// which is WITHIN GROUP, and which always have arguments.
pub fn is_called_as_window(name: &str, function: &Function) -> bool {
    let has_arguments = match &function.args {
        FunctionArguments::List(list) => !list.args.is_empty(),
        _ => false,
    };
    let plain = !has_arguments && function.within_group.is_empty();
    registry::is_window(name) && (plain || !is_aggregate(name))
}
