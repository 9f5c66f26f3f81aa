//! Which function a call means, among those of users and those that are built in.
//!
//! The rules are those of [`mod@crate::resolve`]. What is built in comes first in every search
//! path: a function of a user that takes the same types is not seen behind it.

use std::sync::Arc;

use braid_types::{CastContext, SqlError, SqlResult, SqlState, SqlType, cast_exists};
use sqlparser::ast::{Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments};

use super::{UserBody, UserCall, UserFunction};
use crate::bind::bind_unsettled;
use crate::bind_call::with_rows;
use crate::conversion::{coerce, fold};
use crate::named_arguments::name_of;
use crate::registry::overloads;
use crate::resolve::{Candidate, Choice, candidates, no_match, not_unique, select};
use crate::syntax::marked;
use crate::{BindContext, Bound, Node, ParamTypes, Scope, TypeNames, bind_to, object_name_parts};

/// What a call means.
pub(crate) enum Resolved {
    /// No function of a user has this name.
    Nothing,
    /// What is built in fits better; with its arguments, which are bound once.
    Builtin(String, Vec<Bound>),
    /// A function of a user.
    User(Box<UserCall>),
}

/// A function that could be meant, and where the arguments go.
struct Found {
    function: Arc<UserFunction>,
    /// For each given argument the parameter that it is for.
    places: Vec<usize>,
    /// For each given argument the type that it becomes.
    wants: Vec<SqlType>,
    /// The last argument is VARIADIC: the list itself.
    spread: bool,
}

enum Callee {
    Builtin(Choice),
    User(Found),
}

impl Candidate for Callee {
    fn wants(&self) -> &[SqlType] {
        match self {
            Callee::Builtin(choice) => choice.wants(),
            Callee::User(found) => &found.wants,
        }
    }

    fn plain(&self) -> usize {
        match self {
            Callee::Builtin(choice) => choice.plain(),
            Callee::User(found) => found.wants.len(),
        }
    }
}

/// Finds the function that a call means, and binds its arguments.
pub(crate) fn resolve_call(
    call: &Function,
    scope: &Scope,
    ctx: &mut dyn BindContext,
) -> SqlResult<Resolved> {
    let Some(names) = ctx.params().names() else { return Ok(Resolved::Nothing) };
    let parts = object_name_parts(&call.name);
    let users = names.functions(&parts)?;
    let Some(name) = parts.last().filter(|_| !users.is_empty()) else {
        return Ok(Resolved::Nothing);
    };
    refuse_clauses(call, name)?;
    let plain = without_mark(call);
    let spread = plain.is_some();
    let given = arguments(plain.as_ref().unwrap_or(call))?;
    let args: Vec<Bound> =
        given.iter().map(|(_, e)| bind_unsettled(e, scope, ctx)).collect::<SqlResult<_>>()?;
    let labels: Vec<Option<&str>> = given.iter().map(|(label, _)| label.as_deref()).collect();
    let types: Vec<SqlType> = args.iter().map(|a| a.ty().clone()).collect();
    if spread && users.iter().all(|f| matched(f.clone(), &labels, &types, true).is_none()) {
        // One that is built in may take it.
        return match overloads(name) {
            [] => Err(no_match(&parts.join("."), &types, false)),
            _ => Ok(Resolved::Nothing),
        };
    }
    match chosen(&parts, users, (&labels, spread), &types)? {
        Callee::Builtin(_) => Ok(Resolved::Builtin(name.clone(), args)),
        Callee::User(found) => {
            let body = names.body(found.function.id)?;
            user(found, body, args, &names, ctx).map(|call| Resolved::User(Box::new(call)))
        }
    }
}

/// The call without the mark of VARIADIC, if it has one.
fn without_mark(call: &Function) -> Option<Function> {
    let (before, array) = marked(call)?;
    let last = FunctionArg::Unnamed(FunctionArgExpr::Expr(array.clone()));
    let args = before.iter().cloned().chain([last]).collect();
    let mut plain = call.clone();
    if let FunctionArguments::List(list) = &mut plain.args {
        list.args = args;
    }
    Some(plain)
}

fn chosen(
    parts: &[String],
    users: Vec<Arc<UserFunction>>,
    (labels, spread): (&[Option<&str>], bool),
    types: &[SqlType],
) -> SqlResult<Callee> {
    let by_place = labels.iter().all(Option::is_none);
    let built_in = |guests: bool| -> Vec<Callee> {
        let all = match parts {
            [name] if by_place && !spread => candidates(name, types),
            _ => Vec::new(),
        };
        all.into_iter().filter(|c| c.function.guest == guests).map(Callee::Builtin).collect()
    };
    let mut all = built_in(false);
    let hidden = |f: &Found, all: &[Callee]| {
        let same = |c: &Callee| c.wants().iter().zip(&f.wants).all(|(a, b)| a.same_base(b));
        all.iter().any(|c| matches!(c, Callee::Builtin(_)) && same(c))
    };
    for function in users {
        if let Some(found) = matched(function, labels, types, spread)
            && !hidden(&found, &all)
        {
            all.push(Callee::User(found));
        }
    }
    let mut best = select(all, types);
    if best.is_empty() {
        best = select(built_in(true), types);
    }
    // One that takes the arguments as they are written goes before one that fills in others.
    let filled = |c: &Callee| match c {
        Callee::User(f) => {
            f.function.params.len() > f.places.len() || f.function.variadic && !f.spread
        }
        Callee::Builtin(_) => false,
    };
    if best.len() > 1 && best.iter().any(|c| !filled(c)) {
        best.retain(|c| !filled(c));
    }
    let shown = parts.join(".");
    match (best.pop(), best.is_empty()) {
        (Some(only), true) => Ok(only),
        (Some(_), false) => Err(not_unique(&shown, types, false)),
        (None, _) if by_place => Err(no_match(&shown, types, false)),
        (None, _) => Err(no_named_match(&shown, labels, types)),
    }
}

fn no_named_match(name: &str, labels: &[Option<&str>], types: &[SqlType]) -> SqlError {
    let one = |(label, ty): (&Option<&str>, &SqlType)| match label {
        Some(label) => format!("{label} => {}", ty.base_name()),
        None => ty.base_name(),
    };
    let args: Vec<String> = labels.iter().zip(types).map(one).collect();
    let text = format!("function {name}({}) does not exist", args.join(", "));
    SqlError::new(SqlState::UNDEFINED_FUNCTION, text).with_hint(
        "No function matches the given name and argument types. \
         You might need to add explicit type casts.",
    )
}

/// OVER, FILTER and others are of aggregates and windows.
fn refuse_clauses(call: &Function, name: &str) -> SqlResult<()> {
    let what = match call {
        Function { over: Some(_), .. } => "OVER",
        Function { filter: Some(_), .. } => "FILTER",
        f if !f.within_group.is_empty() => "WITHIN GROUP",
        _ => return Ok(()),
    };
    let neither = match what {
        "OVER" => "a window function nor an aggregate function",
        _ => "an aggregate function",
    };
    Err(SqlError::new(
        SqlState::WRONG_OBJECT_TYPE,
        format!("{what} specified, but {name} is not {neither}"),
    ))
}

/// The arguments with the names that they are given.
fn arguments(call: &Function) -> SqlResult<Vec<(Option<String>, Expr)>> {
    if let Some(rows) = with_rows(call)? {
        return Ok(rows.into_iter().map(|e| (None, e)).collect());
    }
    let list = match &call.args {
        FunctionArguments::List(list) => list,
        FunctionArguments::None => return Ok(Vec::new()),
        FunctionArguments::Subquery(_) => return Err(SqlError::syntax("a query as an argument")),
    };
    let mut out: Vec<(Option<String>, Expr)> = Vec::new();
    for arg in &list.args {
        match (name_of(arg), arg) {
            (Some((name, value)), _) => {
                if out.iter().any(|(known, _)| known.as_ref() == Some(&name)) {
                    let text = format!("argument name \"{name}\" used more than once");
                    return Err(SqlError::syntax(text));
                }
                out.push((Some(name), value.clone()));
            }
            (None, _) if out.iter().any(|(name, _)| name.is_some()) => {
                let text = "positional argument cannot follow named argument";
                return Err(SqlError::syntax(text));
            }
            (None, FunctionArg::Unnamed(FunctionArgExpr::Expr(value))) => {
                out.push((None, value.clone()));
            }
            _ => return Err(SqlError::syntax("* is only for count(*)")),
        }
    }
    Ok(out)
}

/// Where the arguments of a call go, if the function takes them.
fn matched(
    function: Arc<UserFunction>,
    labels: &[Option<&str>],
    types: &[SqlType],
    spread: bool,
) -> Option<Found> {
    let params = &function.params;
    let takes_rest = function.variadic && !spread;
    let mut places = Vec::with_capacity(labels.len());
    for (at, label) in labels.iter().enumerate() {
        let place = match label {
            Some(label) => params.iter().position(|p| p.name.as_deref() == Some(*label))?,
            None if at < params.len() => at,
            None if takes_rest => params.len() - 1,
            None => return None,
        };
        let again = takes_rest && label.is_none() && place + 1 == params.len();
        if places.contains(&place) && !again {
            return None;
        }
        places.push(place);
    }
    let missing = |at: usize| !places.contains(&at) && params[at].default.is_none();
    if (0..params.len()).any(missing) {
        return None;
    }
    let want = |place: &usize| {
        let ty = &params[*place].ty;
        match ty.element().filter(|_| takes_rest && *place + 1 == params.len()) {
            Some(element) => element.clone(),
            None => ty.clone(),
        }
    };
    let wants: Vec<SqlType> = places.iter().map(want).collect();
    let reachable = |(have, want): (&SqlType, &SqlType)| {
        have.same_base(want) || cast_exists(have, want) == Some(CastContext::Implicit)
    };
    types.iter().zip(&wants).all(reachable).then_some(Found { function, places, wants, spread })
}

/// The call with an argument for each parameter.
fn user(
    found: Found,
    body: UserBody,
    given: Vec<Bound>,
    names: &Arc<dyn TypeNames>,
    ctx: &mut dyn BindContext,
) -> SqlResult<UserCall> {
    let Found { function, places, wants, spread } = found;
    let mut converted = Vec::with_capacity(given.len());
    for (arg, want) in given.into_iter().zip(&wants) {
        converted.push(coerce(arg, want, CastContext::Implicit, ctx)?);
    }
    let mut args = Vec::with_capacity(function.params.len());
    for (at, param) in function.params.iter().enumerate() {
        let mut own = places.iter().zip(&converted).filter(|(place, _)| **place == at);
        let is_list = function.variadic && !spread && at + 1 == function.params.len();
        args.push(match (own.next(), &param.default) {
            (Some((_, first)), _) if is_list => {
                let items = std::iter::once(first).chain(own.map(|(_, arg)| arg));
                fold(Bound::new(Node::Array(items.cloned().collect()), param.ty.clone()))?
            }
            (Some((_, arg)), _) => arg.clone(),
            (None, Some(default)) => {
                let mut outside = ParamTypes::default().with_types(Some(names.clone()));
                bind_to(default, &param.ty, &Scope::empty(), &mut outside)?
            }
            (None, None) => return Err(SqlError::internal("a parameter without an argument")),
        });
    }
    ctx.params().note_called(function.id);
    Ok(UserCall { function, body, args })
}
