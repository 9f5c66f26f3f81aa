//! How a call finds its overload among the entries of the registry.
//!
//! Resolution is PostgreSQL's: exact match, else the candidates reachable by implicit casts, of
//! those the ones with most exact arguments, then those with preferred types, then the category
//! rule for unknown literals.

use braid_types::{
    CastContext, RangeKind, SqlError, SqlResult, SqlState, SqlType, TypeCategory, cast_exists,
};

use crate::registry::{ArgType, Builtin, Code, Columns, FunctionKind, overloads};
use crate::type_name::{NO_LARGE_OBJECTS, NO_SNAPSHOTS, NO_TEXT_SEARCH, NO_XML};

/// A chosen overload: parameter types after polymorphism, and the result type.
#[derive(Debug)]
pub struct Choice {
    /// The entry.
    pub function: &'static Builtin,
    /// Types that the arguments are converted to.
    pub args: Vec<SqlType>,
    /// Type of the result.
    pub ret: SqlType,
}

/// What a call could mean: the types that its arguments would become.
pub(crate) trait Candidate {
    /// For each given argument.
    fn wants(&self) -> &[SqlType];
    /// How many of its parameters are of one type alone.
    fn plain(&self) -> usize;
}

impl Candidate for Choice {
    fn wants(&self) -> &[SqlType] {
        &self.args
    }

    fn plain(&self) -> usize {
        self.function.args.iter().filter(|a| matches!(a, ArgType::Exact(_))).count()
    }
}

fn param(function: &Builtin, at: usize) -> &ArgType {
    &function.args[at.min(function.args.len() - 1)]
}

/// Functions over arrays that bring elements of different types together, and take literals without
/// a type for text.
const COMPATIBLE: &[&str] = &[
    "||",
    "array_append",
    "array_prepend",
    "array_cat",
    "array_position",
    "array_positions",
    "array_remove",
    "array_replace",
];

/// Whether the arrays among the arguments have elements of one type.
fn same_arrays(function: &Builtin, given: &[SqlType]) -> bool {
    let mut elements = (0..given.len())
        .filter(|at| matches!(param(function, *at), ArgType::AnyArray))
        .filter_map(|at| given[at].element());
    let Some(first) = elements.next() else { return true };
    elements.all(|e| e.same_base(first) || (e.is_oid_like() && first.is_oid_like()))
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
    if is_of_made_ranges(function) {
        return over_made_ranges(function, given);
    }
    if matches!(function.code, Code::Rows(_, Columns::Elements))
        && !given.iter().all(|ty| ty.element().is_some())
    {
        return None;
    }
    let mut elements: Vec<&SqlType> = Vec::new();
    for (at, ty) in given.iter().enumerate() {
        match (param(function, at), ty) {
            (_, SqlType::Unknown) => {}
            (ArgType::AnyElement, ty) | (ArgType::AnyEnum, ty @ SqlType::Enum(_)) => {
                elements.push(ty);
            }
            (ArgType::AnyEnum, _) => return None,
            (ArgType::AnyArray, ty) => elements.push(ty.element()?),
            _ => {}
        }
    }
    if !COMPATIBLE.contains(&function.name) && !same_arrays(function, given) {
        return None;
    }
    let polymorphic =
        |a: &ArgType| matches!(a, ArgType::AnyElement | ArgType::AnyArray | ArgType::AnyEnum);
    let element = if function.args.iter().any(polymorphic) {
        crate::conversion::common_type(&elements)?
    } else {
        SqlType::Text
    };
    if function.args.contains(&ArgType::AnyEnum) && !matches!(element, SqlType::Enum(_)) {
        return None;
    }
    if !arrays_are_meant(function, given, &element, elements.is_empty()) {
        return None;
    }
    let resolve = |a: &ArgType, own: &SqlType| match a {
        ArgType::Exact(ty) => ty.clone(),
        ArgType::AnyElement | ArgType::AnyEnum | ArgType::AnyRange | ArgType::AnyMultirange => {
            element.base()
        }
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

fn is_of_made_ranges(function: &Builtin) -> bool {
    function.args.iter().any(|a| matches!(a, ArgType::AnyRange | ArgType::AnyMultirange))
}

/// As [`instantiate`], of a function over ranges of a type that a user has made: one argument at
/// least is of such a type, and says what the others must be. Nothing is converted for it.
fn over_made_ranges(function: &'static Builtin, given: &[SqlType]) -> Option<Choice> {
    let kind = given.iter().find_map(|ty| match ty {
        SqlType::Range(kind @ RangeKind::Made(_))
        | SqlType::Multirange(kind @ RangeKind::Made(_)) => Some(kind),
        _ => None,
    })?;
    let resolve = |a: &ArgType| match a {
        ArgType::AnyRange => Some(SqlType::Range(kind.clone())),
        ArgType::AnyMultirange => Some(SqlType::Multirange(kind.clone())),
        ArgType::AnyElement => Some(kind.element()),
        ArgType::Exact(ty) => Some(ty.clone()),
        ArgType::AnyArray | ArgType::AnyEnum | ArgType::Any => None,
    };
    let args =
        (0..given.len()).map(|at| resolve(param(function, at))).collect::<Option<Vec<_>>>()?;
    let fits =
        |(have, want): (&SqlType, &SqlType)| *have == SqlType::Unknown || have.same_base(want);
    if !given.iter().zip(&args).all(fits) {
        return None;
    }
    Some(Choice { function, args, ret: resolve(&function.ret)? })
}

/// Whether a call can mean a function over arrays, if it is one.
fn arrays_are_meant(
    function: &Builtin,
    given: &[SqlType],
    element: &SqlType,
    no_elements: bool,
) -> bool {
    // An array of arrays has no type of its own.
    let arrays = function.args.contains(&ArgType::AnyArray) || function.ret == ArgType::AnyArray;
    if arrays && matches!(element, SqlType::Array(_)) {
        return false;
    }
    if !function.args.contains(&ArgType::AnyArray) {
        return true;
    }
    // Without one argument that is an array for sure, an array function is not meant.
    let array_given = given
        .iter()
        .enumerate()
        .any(|(at, ty)| *param(function, at) == ArgType::AnyArray && ty.element().is_some());
    let operator = function.kind() == FunctionKind::Operator;
    let any = |at: usize| matches!(param(function, at), ArgType::AnyElement | ArgType::AnyArray);
    let some_type = given.iter().enumerate().any(|(at, ty)| any(at) && *ty != SqlType::Unknown);
    array_given || !(operator || (no_elements && some_type))
}

/// What is built in under a name and takes these types.
pub(crate) fn candidates(name: &str, given: &[SqlType]) -> Vec<Choice> {
    overloads(name).iter().filter_map(|f| instantiate(f, given)).collect()
}

/// The candidates that fit best.
pub(crate) fn select<C: Candidate>(mut all: Vec<C>, given: &[SqlType]) -> Vec<C> {
    let exact =
        |c: &C| c.wants().iter().zip(given).filter(|(want, have)| want.same_base(have)).count();
    keep_best(&mut all, exact);
    if all.len() > 1 {
        let preferred = |c: &C| {
            let fits = |(want, have): &(&SqlType, &SqlType)| {
                want.same_base(have) || (**have != SqlType::Unknown && want.is_preferred())
            };
            c.wants().iter().zip(given).filter(fits).count()
        };
        keep_best(&mut all, preferred);
    }
    if all.len() > 1 {
        prefer_for_unknowns(&mut all, given);
    }
    if all.len() > 1 {
        // Plain signatures win over polymorphic ones.
        keep_best(&mut all, C::plain);
    }
    all
}

/// Picks the overload for argument types.
///
/// # Errors
/// 42883 none fits, 42725 several fit equally well.
pub fn resolve(name: &str, given: &[SqlType], operator: bool) -> SqlResult<Choice> {
    let mut all = candidates(name, given);
    if let ("@>" | "<@", [a, b]) = (name, given) {
        all.retain(|_| is_of_its_elements(a, b) && is_of_its_elements(b, a));
    }
    if operator
        && let [a, b] = given
        && (*a == SqlType::Unknown) != (*b == SqlType::Unknown)
    {
        // One unknown operand: first try the other's type for it.
        let known = if *a == SqlType::Unknown { b } else { a };
        if let Some(at) = all.iter().position(|c| c.args.iter().all(|t| t.same_base(known))) {
            return Ok(all.swap_remove(at));
        }
        if let Some(element) = held_by_a_literal(name, a, b)
            && element.element().is_none()
        {
            return Err(not_unique(name, given, operator));
        }
    }
    if all.is_empty() {
        return Err(no_match(name, given, operator));
    }
    let untyped = !given.is_empty() && given.iter().all(|ty| *ty == SqlType::Unknown);
    if untyped && ALSO_OF_OTHER_TYPES.contains(&(name, given.len())) {
        return Err(not_unique(name, given, operator));
    }
    all = select(all, given);
    if all.len() == 1 {
        let choice = all.pop().expect("one candidate");
        return check_polymorphic(choice, given);
    }
    Err(not_unique(name, given, operator))
}

/// Calls that PostgreSQL also has over types that are not here (`macaddr`, `xid`, ranges, shapes):
/// literals alone do not tell which is meant.
const ALSO_OF_OTHER_TYPES: &[(&str, usize)] =
    &[("trunc", 1), ("age", 1), ("<@", 2), ("@>", 2), ("&&", 2), ("?|", 2)];

/// Whether an operand beside a range is a range too, or of the very type of the range's bounds: it
/// is not converted.
fn is_of_its_elements(range: &SqlType, other: &SqlType) -> bool {
    match (range, other) {
        (
            SqlType::Range(_) | SqlType::Multirange(_),
            SqlType::Range(_) | SqlType::Multirange(_) | SqlType::Unknown,
        ) => true,
        (SqlType::Range(kind) | SqlType::Multirange(kind), other) => {
            kind.element().same_base(other)
        }
        _ => true,
    }
}

/// The operand of a known type of `element <@ 'literal'` and `'literal' @> element`, where the
/// literal may be a range or, in PostgreSQL, several.
fn held_by_a_literal<'a>(name: &str, left: &'a SqlType, right: &'a SqlType) -> Option<&'a SqlType> {
    match name {
        "<@" if *right == SqlType::Unknown => Some(left),
        "@>" if *left == SqlType::Unknown => Some(right),
        _ => None,
    }
}

pub(crate) fn not_unique(name: &str, given: &[SqlType], operator: bool) -> SqlError {
    SqlError::new(
        SqlState::AMBIGUOUS_FUNCTION,
        if operator {
            format!("operator is not unique: {}", signature(name, given, true))
        } else {
            format!("function {} is not unique", signature(name, given, false))
        },
    )
    .with_hint(format!(
        "Could not choose a best candidate {}. You might need to add explicit type casts.",
        if operator { "operator" } else { "function" }
    ))
}

/// Refuses a call whose any-element type nothing tells: all its arguments of that type are literals
/// without one.
fn check_polymorphic(choice: Choice, given: &[SqlType]) -> SqlResult<Choice> {
    let function = choice.function;
    let any = |at: usize| matches!(param(function, at), ArgType::AnyElement | ArgType::AnyArray);
    let told = (0..given.len()).any(|at| any(at) && given[at] != SqlType::Unknown);
    let open = (0..given.len()).any(any);
    match open && !told && !COMPATIBLE.contains(&function.name) {
        false => Ok(choice),
        true => Err(SqlError::new(
            SqlState::DATATYPE_MISMATCH,
            "could not determine polymorphic type because input has type unknown",
        )),
    }
}

fn keep_best<C>(all: &mut Vec<C>, score: impl Fn(&C) -> usize) {
    let best = all.iter().map(&score).max().unwrap_or(0);
    all.retain(|c| score(c) == best);
}

fn prefer_for_unknowns<C: Candidate>(all: &mut Vec<C>, given: &[SqlType]) {
    // The category of each literal: strings if a candidate takes one, else the one they all take.
    // A literal of which that cannot be said leaves all candidates as they are.
    let mut chosen = Vec::new();
    for at in (0..given.len()).filter(|at| given[*at] == SqlType::Unknown) {
        let mut types = all.iter().map(|c| &c.wants()[at]);
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
        let fits = |c: &C| {
            chosen.iter().all(|(at, category, preferred)| {
                let ty = &c.wants()[*at];
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
    let same = |c: &C| c.wants().iter().all(|t| t.same_base(known));
    let takes = |c: &C| {
        let literals = c.wants().iter().zip(given).filter(|(_, have)| **have == SqlType::Unknown);
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

fn is_of_text_search(name: &str) -> bool {
    const OTHERS: [&str; 5] = ["setweight", "strip", "numnode", "querytree", "array_to_tsvector"];
    name.starts_with("ts_")
        || name.ends_with("to_tsvector")
        || name.ends_with("to_tsquery")
        || OTHERS.contains(&name)
}

/// Functions of snapshots, and of transactions that are told by their numbers afterwards.
fn is_of_snapshots(name: &str) -> bool {
    const OTHERS: [&str; 4] =
        ["pg_current_snapshot", "pg_xact_status", "pg_visible_in_snapshot", "txid_status"];
    name.starts_with("pg_snapshot_")
        || name.contains("_snapshot_") && name.starts_with("txid_")
        || name.starts_with("txid_") && name.ends_with("_snapshot")
        || OTHERS.contains(&name)
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
    .with_hint(match (operator, given) {
        (false, _) if is_of_text_search(name) => NO_TEXT_SEARCH.to_string(),
        (false, _) if is_of_snapshots(name) => NO_SNAPSHOTS.to_string(),
        (false, _) if name.starts_with("xpath") => NO_XML.to_string(),
        (false, _) if name.starts_with("xml") || name.contains("_to_xml") => NO_XML.to_string(),
        (false, _) if name.starts_with("lo_") => NO_LARGE_OBJECTS.to_string(),
        (true, [_]) => {
            "No operator matches the given name and argument type. You might need to add an \
             explicit type cast."
                .to_string()
        }
        _ => format!(
            "No {kind} matches the given name and argument types. You might need to add explicit \
             type casts."
        ),
    })
}
