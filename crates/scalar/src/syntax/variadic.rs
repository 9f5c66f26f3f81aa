//! `concat(VARIADIC list)`: the elements of an array as the last arguments of a call.

use std::sync::Arc;

use braid_types::{CastContext, Datum, SqlError, SqlResult, SqlState, SqlType};
use sqlparser::ast::{Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments};

use crate::bind::bind_unsettled;
use crate::conversion::{coerce, fold, written_arguments};
use crate::registry::ArgType;
use crate::resolve::{no_match, resolve};
use crate::{
    Applied, BindContext, Bound, Builtin, EvalContext, Node, Scope, Volatility, object_name_parts,
};

/// The array that is marked in a call, with what stands before it; `None` if none is.
pub(crate) fn marked(function: &Function) -> Option<(&[FunctionArg], &Expr)> {
    let FunctionArguments::List(list) = &function.args else { return None };
    let (last, before) = list.args.split_last()?;
    let FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Function(mark))) = last else {
        return None;
    };
    if object_name_parts(&mark.name) != [MARK] {
        return None;
    }
    match &mark.args {
        FunctionArguments::List(inner) => match inner.args.as_slice() {
            [FunctionArg::Unnamed(FunctionArgExpr::Expr(array))] => Some((before, array)),
            _ => None,
        },
        _ => None,
    }
}

/// What the parser marks such an array with: a call of this name.
const MARK: &str = "variadic array";

/// Binds a call of a function with its last arguments in an array.
pub(crate) fn bind_spread(
    name: &str,
    (before, array): (&[FunctionArg], &Expr),
    scope: &Scope,
    ctx: &mut dyn BindContext,
) -> SqlResult<Bound> {
    let mut args = Vec::with_capacity(before.len() + 1);
    for arg in before {
        let FunctionArg::Unnamed(FunctionArgExpr::Expr(arg)) = arg else {
            return Err(SqlError::unsupported("a named argument beside VARIADIC"));
        };
        args.push(bind_unsettled(arg, scope, ctx)?);
    }
    args.push(bind_unsettled(array, scope, ctx)?);
    let mut args = written_arguments(name, args)?;
    let array = args.pop().ok_or_else(|| SqlError::internal("the array is missing"))?;
    let no_array =
        || SqlError::new(SqlState::DATATYPE_MISMATCH, "VARIADIC argument must be an array");
    let element = match array.ty() {
        SqlType::Unknown => SqlType::Text,
        ty => ty.element().cloned().ok_or_else(no_array)?,
    };
    let mut given: Vec<SqlType> = args.iter().map(|arg| arg.ty().clone()).collect();
    given.push(element.array_of());
    let none = || no_match(name, &given, false);
    let types = [&given[..args.len()], &[element]].concat();
    let choice = resolve(name, &types, false).map_err(|_| none())?;
    // The array is all of the last parameter, and no part of it.
    if !choice.function.variadic || choice.function.args.len() != types.len() {
        return Err(none());
    }
    // Whoever takes values of any types does not say what a text without one is.
    if *array.ty() == SqlType::Unknown && choice.function.args.last() == Some(&ArgType::Any) {
        return Err(no_array());
    }
    let (last, wanted) = choice.args.split_last().ok_or_else(none)?;
    let mut converted = Vec::with_capacity(args.len() + 1);
    for (arg, want) in args.into_iter().zip(wanted) {
        converted.push(coerce(arg, want, CastContext::Implicit, ctx)?);
    }
    converted.push(coerce(array, &last.array_of(), CastContext::Implicit, ctx)?);
    let spread = Spread { function: choice.function };
    fold(Bound::new(Node::Apply(Arc::new(spread), converted), choice.ret))
}

/// Calls a function with the elements of its last argument.
struct Spread {
    function: &'static Builtin,
}

impl Applied for Spread {
    fn apply(&self, args: &[Datum], ctx: &EvalContext) -> SqlResult<Datum> {
        let Some((list, before)) = args.split_last() else { return Ok(Datum::Null) };
        let mut all = before.to_vec();
        match list {
            Datum::Array(array) => all.extend(array.items.iter().cloned()),
            // A format without values is one all the same.
            _ if self.function.name == "format" => {}
            _ => return Ok(Datum::Null),
        }
        if self.function.strict && all.iter().any(Datum::is_null) {
            return Ok(Datum::Null);
        }
        self.function.eval(&all, ctx)
    }

    fn label(&self) -> String {
        self.function.name.to_string()
    }

    fn volatility(&self) -> Volatility {
        self.function.volatility
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}
