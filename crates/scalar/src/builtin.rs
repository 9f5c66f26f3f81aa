//! The table of functions and operators, and how a call finds its overload.
//!
//! An entry is a signature as text and a Rust function over values:
//!
//! ```text
//!   t.add("lower(text) text", |a, _| ...)
//!   t.add("+(int4, int4) int4", |a, _| ...)           operators are functions named by their sign
//!   t.add("concat(...any) text", |a, _| ...).lax()    variadic; lax: called with NULLs too
//! ```
//!
//! Resolution is PostgreSQL's: exact match, else the candidates reachable by implicit casts, of
//! those the ones with most exact arguments, then those with preferred types, then the category
//! rule for unknown literals.

use std::collections::HashMap;
use std::fmt;
use std::sync::OnceLock;

use braid_types::{
    CastContext, Datum, SqlError, SqlResult, SqlState, SqlType, TypeCategory, cast_exists,
};

use crate::{EvalContext, Volatility, functions, operators};

/// What a parameter of a function accepts.
#[derive(Clone, Debug, PartialEq)]
pub enum ArgType {
    /// This type.
    Exact(SqlType),
    /// Any type; all of these in one call are the same type.
    AnyElement,
    /// Any array, of the call's any-element type.
    AnyArray,
    /// Any type, each on its own.
    Any,
}

/// Code of a function.
pub type Eval = fn(&[Datum], &EvalContext) -> SqlResult<Datum>;

/// One overload of a function or operator.
pub struct Builtin {
    /// Name, or sign of an operator.
    pub name: &'static str,
    /// Parameter types; with `variadic`, the last repeats.
    pub args: Vec<ArgType>,
    /// Whether the last parameter repeats.
    pub variadic: bool,
    /// Result type.
    pub ret: ArgType,
    /// NULL in, NULL out.
    pub strict: bool,
    /// How often the result may change.
    pub volatility: Volatility,
    /// The code.
    pub eval: Eval,
}

impl fmt::Debug for Builtin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// The table while it is being filled.
#[derive(Default)]
pub(crate) struct Table {
    by_name: HashMap<&'static str, Vec<Builtin>>,
}

/// The entry just added, for setting its properties.
pub(crate) struct Added<'a>(&'a mut Builtin);

impl Added<'_> {
    /// Called with NULL arguments too.
    pub(crate) fn lax(self) -> Self {
        self.0.strict = false;
        self
    }

    /// Depends on the session or the statement's time.
    pub(crate) fn stable(self) -> Self {
        self.0.volatility = Volatility::Stable;
        self
    }

    /// May differ at each call.
    pub(crate) fn volatile(self) -> Self {
        self.0.volatility = Volatility::Volatile;
        self
    }
}

fn arg_type(text: &str) -> ArgType {
    match text {
        "any" => ArgType::Any,
        "anyelement" => ArgType::AnyElement,
        "anyarray" => ArgType::AnyArray,
        name => ArgType::Exact(
            SqlType::from_name(name)
                .unwrap_or_else(|| panic!("signature names the unknown type {name}")),
        ),
    }
}

impl Table {
    /// Adds an overload by its signature.
    pub(crate) fn add(&mut self, signature: &'static str, eval: Eval) -> Added<'_> {
        let open = signature.find('(').expect("signature has arguments");
        let close = signature.rfind(')').expect("signature has arguments");
        let name = &signature[..open];
        let mut variadic = false;
        let args = signature[open + 1..close]
            .split(',')
            .map(str::trim)
            .filter(|a| !a.is_empty())
            .map(|a| arg_type(a.strip_prefix("...").inspect(|_| variadic = true).unwrap_or(a)))
            .collect();
        let list = self.by_name.entry(name).or_default();
        list.push(Builtin {
            name,
            args,
            variadic,
            ret: arg_type(signature[close + 1..].trim()),
            strict: true,
            volatility: Volatility::Immutable,
            eval,
        });
        Added(list.last_mut().expect("just pushed"))
    }
}

fn table() -> &'static HashMap<&'static str, Vec<Builtin>> {
    static TABLE: OnceLock<HashMap<&'static str, Vec<Builtin>>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut table = Table::default();
        operators::fill(&mut table);
        functions::fill(&mut table);
        table.by_name
    })
}

/// Names of all functions (not operators), for `pg_proc`.
pub fn function_names() -> Vec<&'static Builtin> {
    let mut all: Vec<&'static Builtin> = table()
        .values()
        .flatten()
        .filter(|b| b.name.starts_with(|c: char| c.is_ascii_alphabetic()))
        // SIMILAR TO is syntax.
        .filter(|b| b.name != "similar_to")
        .collect();
    all.sort_by_key(|b| (b.name, b.args.len()));
    all
}

/// All operators that are functions, by name.
pub fn operator_list() -> Vec<&'static Builtin> {
    let mut all: Vec<&'static Builtin> = table()
        .values()
        .flatten()
        .filter(|b| !b.name.starts_with(|c: char| c.is_ascii_alphabetic()))
        .collect();
    all.sort_by_key(|b| (b.name, b.args.len()));
    all
}

/// Whether a function of this name may give another value at each call.
pub fn is_volatile(name: &str) -> bool {
    let all = table().get(name).map_or(&[][..], Vec::as_slice);
    all.iter().any(|b| b.volatility == Volatility::Volatile)
}

/// Whether any overload has this name.
pub(crate) fn exists(name: &str) -> bool {
    table().contains_key(name)
}

/// A chosen overload: parameter types after polymorphism, and the result type.
#[derive(Debug)]
pub(crate) struct Choice {
    pub(crate) function: &'static Builtin,
    pub(crate) args: Vec<SqlType>,
    pub(crate) ret: SqlType,
}

fn param(function: &Builtin, at: usize) -> &ArgType {
    &function.args[at.min(function.args.len() - 1)]
}

/// Types of the parameters for these arguments if the call can work, with the result type.
fn instantiate(function: &'static Builtin, given: &[SqlType]) -> Option<Choice> {
    let fits = if function.variadic {
        given.len() >= function.args.len()
    } else {
        given.len() == function.args.len()
    };
    if !fits {
        return None;
    }
    let mut elements: Vec<&SqlType> = Vec::new();
    for (at, ty) in given.iter().enumerate() {
        match (param(function, at), ty) {
            (_, SqlType::Unknown) => {}
            (ArgType::AnyElement, ty) => elements.push(ty),
            (ArgType::AnyArray, SqlType::Array(element)) => elements.push(element),
            (ArgType::AnyArray, _) => return None,
            _ => {}
        }
    }
    let polymorphic = |a: &ArgType| matches!(a, ArgType::AnyElement | ArgType::AnyArray);
    let element = if function.args.iter().any(polymorphic) {
        crate::conversion::common_type(&elements)?
    } else {
        SqlType::Text
    };
    // Arrays have one dimension.
    let arrays = function.args.contains(&ArgType::AnyArray) || function.ret == ArgType::AnyArray;
    if arrays && matches!(element, SqlType::Array(_)) {
        return None;
    }
    // Without one argument that is an array for sure, an array function is not meant.
    let array_given = given.iter().enumerate().any(|(at, ty)| {
        matches!((param(function, at), ty), (ArgType::AnyArray, SqlType::Array(_)))
    });
    let operator = !function.name.starts_with(|c: char| c.is_ascii_alphabetic());
    if function.args.contains(&ArgType::AnyArray)
        && !array_given
        && (operator || (elements.is_empty() && given.iter().any(|ty| *ty != SqlType::Unknown)))
    {
        return None;
    }
    let resolve = |a: &ArgType, own: &SqlType| match a {
        ArgType::Exact(ty) => ty.clone(),
        ArgType::AnyElement => element.base(),
        ArgType::AnyArray => SqlType::Array(Box::new(element.base())),
        ArgType::Any if *own == SqlType::Unknown => SqlType::Text,
        ArgType::Any => own.clone(),
    };
    let args: Vec<SqlType> =
        given.iter().enumerate().map(|(at, ty)| resolve(param(function, at), ty)).collect();
    let reachable = given
        .iter()
        .zip(&args)
        .all(|(have, want)| matches!(cast_exists(have, want), Some(CastContext::Implicit)));
    if !reachable {
        return None;
    }
    let ret = resolve(&function.ret, &SqlType::Text);
    Some(Choice { function, args, ret })
}

/// Picks the overload for argument types.
///
/// # Errors
/// 42883 none fits, 42725 several fit equally well.
pub(crate) fn resolve(name: &str, given: &[SqlType], operator: bool) -> SqlResult<Choice> {
    let overloads: &'static [Builtin] = table().get(name).map_or(&[], Vec::as_slice);
    let mut all: Vec<Choice> = overloads.iter().filter_map(|f| instantiate(f, given)).collect();
    if operator
        && let [a, b] = given
        && (*a == SqlType::Unknown) != (*b == SqlType::Unknown)
    {
        // One unknown operand: first try the other's type for it.
        let known = if *a == SqlType::Unknown { b } else { a };
        if let Some(at) = all.iter().position(|c| c.args.iter().all(|t| t.same_base(known))) {
            return Ok(all.swap_remove(at));
        }
    }
    if all.is_empty() {
        return Err(no_match(name, given, operator));
    }
    let exact =
        |c: &Choice| c.args.iter().zip(given).filter(|(want, have)| want.same_base(have)).count();
    keep_best(&mut all, exact);
    if all.len() > 1 {
        let preferred = |c: &Choice| {
            c.args
                .iter()
                .zip(given)
                .filter(|(want, have)| {
                    want.same_base(have) || (**have != SqlType::Unknown && want.is_preferred())
                })
                .count()
        };
        keep_best(&mut all, preferred);
    }
    if all.len() > 1 {
        prefer_for_unknowns(&mut all, given);
    }
    if all.len() > 1 {
        // Plain signatures win over polymorphic ones.
        let plain =
            |c: &Choice| c.function.args.iter().filter(|a| matches!(a, ArgType::Exact(_))).count();
        keep_best(&mut all, plain);
    }
    if all.len() == 1 {
        let choice = all.pop().expect("one candidate");
        return check_polymorphic(choice, given);
    }
    Err(SqlError::new(
        SqlState::AMBIGUOUS_FUNCTION,
        if operator {
            format!("operator is not unique: {}", signature(name, given, true))
        } else {
            format!("function {} is not unique", signature(name, given, false))
        },
    )
    .with_hint("Could not choose a best candidate. You might need to add explicit type casts."))
}

/// Refuses a call whose any-element type nothing tells: all its arguments of that type are literals
/// without one. Some functions over arrays take these for text.
fn check_polymorphic(choice: Choice, given: &[SqlType]) -> SqlResult<Choice> {
    const COMPATIBLE: &[&str] = &[
        "array_append",
        "array_prepend",
        "array_cat",
        "array_position",
        "array_positions",
        "array_remove",
        "array_replace",
    ];
    let function = choice.function;
    let any = |at: usize| matches!(param(function, at), ArgType::AnyElement | ArgType::AnyArray);
    let told = (0..given.len()).any(|at| any(at) && given[at] != SqlType::Unknown);
    let open = (0..given.len()).any(any);
    match open && !told && !COMPATIBLE.contains(&function.name) && function.name != "||" {
        false => Ok(choice),
        true => Err(SqlError::new(
            SqlState::DATATYPE_MISMATCH,
            "could not determine polymorphic type because input has type unknown",
        )),
    }
}

fn keep_best(all: &mut Vec<Choice>, score: impl Fn(&Choice) -> usize) {
    let best = all.iter().map(&score).max().unwrap_or(0);
    all.retain(|c| score(c) == best);
}

fn prefer_for_unknowns(all: &mut Vec<Choice>, given: &[SqlType]) {
    // The category of each literal: strings if a candidate takes one, else the one they all take.
    // A literal of which that cannot be said leaves all candidates as they are.
    let mut chosen = Vec::new();
    for at in (0..given.len()).filter(|at| given[*at] == SqlType::Unknown) {
        let mut types = all.iter().map(|c| &c.args[at]);
        let first = types.clone().next().map_or(TypeCategory::String, SqlType::category);
        let category = match types.clone().any(|t| t.category() == TypeCategory::String) {
            true => TypeCategory::String,
            false if types.clone().all(|t| t.category() == first) => first,
            false => break,
        };
        let preferred = types.any(|t| t.category() == category && t.is_preferred());
        chosen.push((at, category, preferred));
    }
    if chosen.len() == given.iter().filter(|t| **t == SqlType::Unknown).count() {
        let fits = |c: &Choice| {
            chosen.iter().all(|(at, category, preferred)| {
                let ty = &c.args[*at];
                ty.category() == *category && (!preferred || ty.is_preferred())
            })
        };
        if all.iter().any(fits) {
            all.retain(fits);
        }
    }
    let mut types = given.iter().filter(|t| **t != SqlType::Unknown);
    let Some(known) = types.next().filter(|first| types.all(|t| t == *first)) else { return };
    // At last literals are taken for the type of the other arguments, if one candidate takes it.
    let same = |c: &Choice| c.args.iter().all(|t| t.same_base(known));
    let takes = |c: &Choice| {
        let literals = c.args.iter().zip(given).filter(|(_, have)| **have == SqlType::Unknown);
        literals.into_iter().all(|(t, _)| cast_exists(known, t) == Some(CastContext::Implicit))
    };
    if all.len() > 1 && all.iter().any(same) {
        all.retain(same);
    } else if all.len() > 1 && all.iter().filter(|c| takes(c)).count() == 1 {
        all.retain(takes);
    }
}

fn signature(name: &str, given: &[SqlType], operator: bool) -> String {
    let types: Vec<String> = given.iter().map(SqlType::base_name).collect();
    match (operator, types.as_slice()) {
        (true, [a, b]) => format!("{a} {name} {b}"),
        (true, [a]) => format!("{name} {a}"),
        _ => format!("{name}({})", types.join(", ")),
    }
}

/// The 42883 error for a call that nothing matches.
pub(crate) fn no_match(name: &str, given: &[SqlType], operator: bool) -> SqlError {
    let kind = if operator { "operator" } else { "function" };
    SqlError::new(
        SqlState::UNDEFINED_FUNCTION,
        if operator {
            format!("operator does not exist: {}", signature(name, given, true))
        } else {
            format!("function {} does not exist", signature(name, given, false))
        },
    )
    .with_hint(format!(
        "No {kind} matches the given name and argument types. You might need to add explicit type \
         casts."
    ))
}
