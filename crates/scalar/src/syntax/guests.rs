//! What GoogleSQL writes as a call and PostgreSQL has no function for.
//!
//! ```text
//!   IF(a, b, c), IFNULL(a, b)          CASE, COALESCE
//!   SAFE_CAST(a AS t), SAFE.f(a)       NULL where the cast, or the function, fails
//!   DATE_DIFF(a, b, DAY)               the part is a word, and no column
//!   a[OFFSET(0)], a[SAFE_ORDINAL(1)]   elements by their places
//! ```
//! A function of a user with such a name goes before all of these.

use std::sync::Arc;

use braid_types::{CastContext, Datum, SqlError, SqlResult, SqlState, SqlType};
use sqlparser::ast::{
    AccessExpr, DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments,
    Subscript,
};

use crate::bind::bind_unsettled;
use crate::bind_call::{bind_named, bind_special};
use crate::conversion::{coerce, fold, settle, unify};
use crate::{
    Applied, BindContext, Bound, CaseBranch, EvalContext, Node, Scope, Volatility, ident_name,
    object_name_parts, refinement_of, sql_type_of,
};

/// Calls whose argument at a place is the word for a part of a date.
const PARTS: [(&str, usize); 5] = [
    ("date_diff", 2),
    ("timestamp_diff", 2),
    ("timestamp_trunc", 1),
    ("last_day", 1),
    // PostgreSQL's own has the part in front.
    ("date_trunc", 1),
];

const PART_NAMES: [&str; 14] = [
    "nanosecond",
    "microsecond",
    "millisecond",
    "second",
    "minute",
    "hour",
    "day",
    "week",
    "isoweek",
    "month",
    "quarter",
    "year",
    "isoyear",
    "dayofweek",
];

/// Arguments that are expressions and nothing else; `None` of other calls.
fn plain_arguments(function: &Function) -> Option<Vec<&Expr>> {
    let FunctionArguments::List(list) = &function.args else { return None };
    let plain = function.over.is_none()
        && function.filter.is_none()
        && function.within_group.is_empty()
        && list.duplicate_treatment.is_none()
        && list.clauses.is_empty();
    let exprs = list.args.iter().map(|arg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(e)) => Some(e),
        _ => None,
    });
    if plain { exprs.collect() } else { None }
}

/// Binds a call that is one of these; `None` if it is none.
pub(crate) fn bind_guest(
    function: &Function,
    scope: &Scope,
    ctx: &mut dyn BindContext,
) -> SqlResult<Option<Bound>> {
    let parts = object_name_parts(&function.name);
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let Some(exprs) = plain_arguments(function) else { return Ok(None) };
    let bound = |exprs: &[&Expr], ctx: &mut dyn BindContext| {
        exprs.iter().map(|e| bind_unsettled(e, scope, ctx)).collect::<SqlResult<Vec<Bound>>>()
    };
    match (parts.as_slice(), exprs.len()) {
        (["safe", name], _) => safe_call(name, bound(&exprs, ctx)?, ctx).map(Some),
        (["ifnull"], 2) => bind_special("coalesce", bound(&exprs, ctx)?, ctx).map(Some),
        (["if"], 3) => choice(bound(&exprs, ctx)?, ctx).map(Some),
        (["sha256" | "sha512"], 1) => {
            let mut args = bound(&exprs, ctx)?;
            if args[0].ty().is_text_like() {
                let encoding = Bound::constant(Datum::text("UTF8"), SqlType::Text);
                let text = coerce(args.remove(0), &SqlType::Text, CastContext::Implicit, ctx)?;
                args = vec![bind_named("convert_to", vec![text, encoding], false, ctx)?];
            }
            bind_special(parts[0], args, ctx).map(Some)
        }
        (["array_concat" | "array_includes_any" | "array_includes_all"], 2..) => {
            let (arrays, _) = unify(bound(&exprs, ctx)?, "ARRAY", ctx)?;
            bind_named(parts[0], arrays, false, ctx).map(Some)
        }
        (["array_includes"], 2) => includes(bound(&exprs, ctx)?, ctx).map(Some),
        ([name], _) => with_part(name, &exprs, scope, ctx),
        _ => Ok(None),
    }
}

/// `IF(condition, a, b)`
fn choice(mut args: Vec<Bound>, ctx: &mut dyn BindContext) -> SqlResult<Bound> {
    let values = args.split_off(1);
    let when = args.remove(0);
    let when = settle(when, &SqlType::Bool, CastContext::Implicit, ctx)?;
    if *when.ty() != SqlType::Bool {
        let text = format!("argument of IF must be type boolean, not type {}", when.ty());
        return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, text));
    }
    let (mut values, ty) = unify(values, "IF", ctx)?;
    let (otherwise, then) = (values.pop(), values.pop());
    let (Some(then), Some(otherwise)) = (then, otherwise) else {
        return Err(SqlError::internal("IF has two values"));
    };
    // What is not chosen is not computed.
    match when.as_const() {
        Some(Datum::Bool(true)) => Ok(then),
        Some(_) => Ok(otherwise),
        None => Ok(Bound::new(Node::Case(vec![CaseBranch { when, then }], Some(otherwise)), ty)),
    }
}

/// `ARRAY_INCLUDES(array, value)`, the numbers of which may be of different types.
fn includes(mut args: Vec<Bound>, ctx: &mut dyn BindContext) -> SqlResult<Bound> {
    if let Some(element) = args[0].ty().element().cloned() {
        let one = Bound::constant(Datum::Null, element);
        let (mut both, ty) = unify(vec![one, args.remove(1)], "ARRAY_INCLUDES", ctx)?;
        let array = coerce(args.remove(0), &ty.array_of(), CastContext::Implicit, ctx)?;
        args = vec![array];
        args.extend(both.pop());
    }
    bind_named("array_includes", args, false, ctx)
}

/// The name of a part of a date; `WEEK(MONDAY)` as `week(monday)`.
fn part_name(expr: &Expr) -> Option<String> {
    let word = |e: &Expr| match e {
        Expr::Identifier(ident) if ident.quote_style.is_none() => Some(ident_name(ident)),
        _ => None,
    };
    if let Expr::Function(week) = expr {
        let day = plain_arguments(week)?;
        let named = object_name_parts(&week.name) == ["week"];
        return match day.as_slice() {
            [day] if named => Some(format!("week({})", word(day)?)),
            _ => None,
        };
    }
    word(expr).filter(|name| PART_NAMES.contains(&name.as_str()))
}

/// A call with the word for a part of a date among its arguments.
fn with_part(
    name: &str,
    exprs: &[&Expr],
    scope: &Scope,
    ctx: &mut dyn BindContext,
) -> SqlResult<Option<Bound>> {
    let Some((_, at)) = PARTS.iter().find(|(known, _)| *known == name) else { return Ok(None) };
    let Some(part) = exprs.get(*at).and_then(|e| part_name(e)) else { return Ok(None) };
    // PostgreSQL's function may be called with a column of this name.
    if name == "date_trunc" && bind_unsettled(exprs[*at], scope, ctx).is_ok() {
        return Ok(None);
    }
    let mut args = Vec::with_capacity(exprs.len());
    for (n, expr) in exprs.iter().enumerate() {
        args.push(match n == *at {
            true => Bound::constant(Datum::text(part.as_str()), SqlType::Text),
            false => bind_unsettled(expr, scope, ctx)?,
        });
    }
    let name = if name == "date_trunc" { "timestamp_trunc" } else { name };
    bind_named(name, args, false, ctx).map(Some)
}

/// `SAFE.f(args)`. What fails within an argument fails all the same.
fn safe_call(name: &str, args: Vec<Bound>, ctx: &mut dyn BindContext) -> SqlResult<Bound> {
    let (mut outer, mut inner) = (Vec::new(), Vec::new());
    for arg in args {
        match arg.is_const() && !arg.has_applied() {
            // Constants and parameters take the types that the function wants.
            true => inner.push(arg),
            false => {
                let column = Bound::column(outer.len(), arg.ty().clone());
                inner.push(column.with_collation(arg.collation().clone()));
                outer.push(arg);
            }
        }
    }
    safe(bind_special(name, inner, ctx)?, outer)
}

/// `SAFE_CAST(value AS type)`
pub(crate) fn safe_cast(
    expr: &Expr,
    data_type: &DataType,
    scope: &Scope,
    ctx: &mut dyn BindContext,
) -> SqlResult<Bound> {
    let ty = sql_type_of(data_type, ctx.params().named_types())?;
    let refinement = refinement_of(data_type, ctx.params().named_types())?;
    let value = bind_unsettled(expr, scope, ctx)?;
    let value = settle(value, &SqlType::Text, CastContext::Explicit, ctx)?;
    let column = Bound::column(0, value.ty().clone()).with_collation(value.collation().clone());
    let cast = coerce(column, &ty, CastContext::Explicit, ctx)?;
    safe(refinement.over(cast), vec![value])
}

fn safe(inner: Bound, args: Vec<Bound>) -> SqlResult<Bound> {
    let (ty, collation) = (inner.ty().clone(), inner.collation().clone());
    let code = Safe { inner };
    let value = fold(Bound::new(Node::Apply(Arc::new(code), args), ty))?;
    Ok(value.with_collation(collation))
}

/// An expression over its arguments as columns: NULL where it fails for what they are.
struct Safe {
    inner: Bound,
}

impl Applied for Safe {
    fn apply(&self, args: &[Datum], ctx: &EvalContext) -> SqlResult<Datum> {
        match self.inner.eval(args, ctx) {
            // What is too large is out of range, too.
            Err(e) if e.state().0.starts_with("22") || e.state().0 == "54000" => Ok(Datum::Null),
            value => value,
        }
    }

    fn label(&self) -> String {
        "safe".to_string()
    }

    fn volatility(&self) -> Volatility {
        self.inner.volatility()
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

/// `array[OFFSET(n)]` and its like; `None` for other subscripts.
pub(crate) fn bind_element(
    array: &Bound,
    access: &AccessExpr,
    scope: &Scope,
    ctx: &mut dyn BindContext,
) -> SqlResult<Option<Bound>> {
    let AccessExpr::Subscript(Subscript::Index { index: Expr::Function(call) }) = access else {
        return Ok(None);
    };
    let name = object_name_parts(&call.name);
    let code = match name.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["offset"] => "array_offset",
        ["ordinal"] => "array_ordinal",
        ["safe_offset"] => "array_safe_offset",
        ["safe_ordinal"] => "array_safe_ordinal",
        _ => return Ok(None),
    };
    let users = match ctx.params().named_types() {
        Some(types) => types.functions(&name)?,
        None => Vec::new(),
    };
    match plain_arguments(call).as_deref() {
        Some([place]) if users.is_empty() => {
            let place = bind_unsettled(place, scope, ctx)?;
            bind_named(code, vec![array.clone(), place], false, ctx).map(Some)
        }
        _ => Ok(None),
    }
}
