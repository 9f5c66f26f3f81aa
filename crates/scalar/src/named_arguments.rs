//! Arguments by name, and arguments that are left out: `make_interval(days => 10)`.
//!
//! PostgreSQL knows names of parameters of few of its own functions; here are those that we have.

use braid_types::{SqlError, SqlResult, SqlState};
use sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Value,
};

use crate::ident_name;

/// What a parameter is if it is not given.
#[derive(Clone, Copy, PartialEq)]
enum Otherwise {
    /// It must be given.
    Missing,
    /// The number 0.
    Zero,
    /// A truth value.
    Flag(bool),
    /// A text.
    Word(&'static str),
}

use Otherwise::{Flag, Missing, Word, Zero};

/// Functions, with the names of their parameters in order.
const NAMED: &[(&str, &[(&str, Otherwise)])] = &[
    (
        "make_interval",
        &[
            ("years", Zero),
            ("months", Zero),
            ("weeks", Zero),
            ("days", Zero),
            ("hours", Zero),
            ("mins", Zero),
            ("secs", Zero),
        ],
    ),
    ("make_date", &[("year", Missing), ("month", Missing), ("day", Missing)]),
    ("make_time", &[("hour", Missing), ("min", Missing), ("sec", Missing)]),
    ("make_timestamp", TIMESTAMP),
    ("make_timestamptz", TIMESTAMP),
    (
        "jsonb_set",
        &[
            ("jsonb_in", Missing),
            ("path", Missing),
            ("replacement", Missing),
            ("create_if_missing", Flag(true)),
        ],
    ),
    (
        "jsonb_set_lax",
        &[
            ("jsonb_in", Missing),
            ("path", Missing),
            ("replacement", Missing),
            ("create_if_missing", Flag(true)),
            ("null_value_treatment", Word("use_json_null")),
        ],
    ),
    (
        "jsonb_insert",
        &[
            ("jsonb_in", Missing),
            ("path", Missing),
            ("replacement", Missing),
            ("insert_after", Flag(false)),
        ],
    ),
    ("jsonb_path_exists", PATH),
    ("jsonb_path_exists_tz", PATH),
    ("jsonb_path_match", PATH),
    ("jsonb_path_match_tz", PATH),
    ("jsonb_path_query", PATH),
    ("jsonb_path_query_tz", PATH),
    ("jsonb_path_query_array", PATH),
    ("jsonb_path_query_array_tz", PATH),
    ("jsonb_path_query_first", PATH),
    ("jsonb_path_query_first_tz", PATH),
];

const TIMESTAMP: &[(&str, Otherwise)] = &[
    ("year", Missing),
    ("month", Missing),
    ("mday", Missing),
    ("hour", Missing),
    ("min", Missing),
    ("sec", Missing),
];

const PATH: &[(&str, Otherwise)] =
    &[("target", Missing), ("path", Missing), ("vars", Word("{}")), ("silent", Flag(false))];

/// The arguments in their order, with those that are left out; `None` if all are given by their
/// places.
///
/// # Errors
/// 42883 for names that the function has not; 42601 for names twice, and places after names.
pub(crate) fn in_order(name: &str, function: &Function) -> SqlResult<Option<Vec<Expr>>> {
    let FunctionArguments::List(list) = &function.args else { return Ok(None) };
    ordered_arguments(name, &list.args)
}

/// The same of a list of arguments.
///
/// # Errors
/// See above.
pub fn ordered_arguments(name: &str, args: &[FunctionArg]) -> SqlResult<Option<Vec<Expr>>> {
    let parameters = NAMED.iter().find(|(n, _)| *n == name).map(|(_, parameters)| *parameters);
    let is_named = |arg: &FunctionArg| name_of(arg).is_some();
    let any_named = args.iter().any(is_named);
    let optional = parameters.is_some_and(|p| p.iter().any(|(_, otherwise)| *otherwise == Zero));
    if !any_named && !optional {
        return Ok(None);
    }
    let none = || no_function(name, args);
    let parameters = parameters.ok_or_else(none)?;
    let mut given: Vec<Option<Expr>> = vec![None; parameters.len()];
    for (at, arg) in args.iter().enumerate() {
        let (place, value) = match name_of(arg) {
            Some((name, value)) => (place_of(parameters, &name).ok_or_else(none)?, value),
            None if args[..at].iter().any(is_named) => {
                let text = "positional argument cannot follow named argument";
                return Err(SqlError::syntax(text));
            }
            None => match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => (at, value),
                _ => return Err(none()),
            },
        };
        let slot = given.get_mut(place).ok_or_else(none)?;
        if slot.replace(value.clone()).is_some() {
            let name = parameters[place].0;
            return Err(SqlError::syntax(format!("argument name \"{name}\" used more than once")));
        }
    }
    let settle = |(slot, (_, otherwise)): (Option<Expr>, &(&str, Otherwise))| {
        slot.or_else(|| match otherwise {
            Missing => None,
            Zero => Some(Expr::value(Value::Number("0".into(), false))),
            Flag(yes) => Some(Expr::value(Value::Boolean(*yes))),
            Word(text) => Some(Expr::value(Value::SingleQuotedString((*text).into()))),
        })
        .ok_or_else(none)
    };
    given.into_iter().zip(parameters).map(settle).collect::<SqlResult<Vec<_>>>().map(Some)
}

/// The name and the value of `name => value` and `name := value`.
pub(crate) fn name_of(arg: &FunctionArg) -> Option<(String, &Expr)> {
    match arg {
        FunctionArg::Named { name, arg: FunctionArgExpr::Expr(value), .. } => {
            Some((ident_name(name), value))
        }
        FunctionArg::ExprNamed {
            name: Expr::Identifier(name),
            arg: FunctionArgExpr::Expr(value),
            ..
        } => Some((ident_name(name), value)),
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::BinaryOp {
            left,
            op: BinaryOperator::Assignment,
            right,
        })) => match &**left {
            Expr::Identifier(name) => Some((ident_name(name), right)),
            _ => None,
        },
        _ => None,
    }
}

fn place_of(parameters: &[(&str, Otherwise)], name: &str) -> Option<usize> {
    parameters.iter().position(|(n, _)| *n == name)
}

fn no_function(name: &str, args: &[FunctionArg]) -> SqlError {
    let names: Vec<String> = args.iter().filter_map(name_of).map(|(name, _)| name).collect();
    let text = match names.is_empty() {
        true => format!("function {name} does not exist with so many arguments"),
        false => format!("function {name} does not exist with arguments {}", names.join(", ")),
    };
    SqlError::new(SqlState::UNDEFINED_FUNCTION, text).with_hint(
        "No function matches the given name and argument types. \
         You might need to add explicit type casts.",
    )
}
