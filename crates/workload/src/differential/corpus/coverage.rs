//! What the corpus makes calls of: everything that is claimed, or there is a reason why not.

use super::catalog::{Arg, Claims, Form, Signature};
use super::generate::{left_out_of, without_values};
use super::recipes::{AGGREGATES, Recipe, SETS, WINDOWS};

/// What kind of call a claim is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimKind {
    /// A function of values.
    Function,
    /// An operator.
    Operator,
    /// An aggregate.
    Aggregate,
    /// A function that gives rows.
    SetReturning,
    /// A function of a window.
    Window,
}

/// Something that a server says it has.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Name or sign.
    pub name: String,
    /// Types of its arguments, as `pg_type` names them.
    pub args: Vec<String>,
    /// Kind.
    pub kind: ClaimKind,
}

fn arg(name: &str) -> Arg {
    match name {
        "any" => Arg::Any,
        "anyelement" => Arg::Element,
        "anyarray" => Arg::Array,
        other => Arg::Type(other.to_string()),
    }
}

/// The claims of which the corpus makes no calls and does not say why.
pub fn without_generator(all: &[Claim]) -> Vec<String> {
    let mut claims = Claims::default();
    for claim in all {
        match claim.kind {
            ClaimKind::Aggregate => claims.aggregates.push(claim.name.clone()),
            ClaimKind::SetReturning => claims.set_returning.push(claim.name.clone()),
            ClaimKind::Window => claims.windows.push(claim.name.clone()),
            ClaimKind::Function | ClaimKind::Operator => claims.signatures.push(Signature {
                name: claim.name.clone(),
                form: match claim.kind {
                    ClaimKind::Operator if claim.args.len() == 1 => Form::Prefix,
                    ClaimKind::Operator => Form::Infix,
                    _ => Form::Function,
                },
                args: claim.args.iter().map(|a| arg(a)).collect(),
                variadic: false,
                ret: Arg::Any,
            }),
        }
    }
    uncovered(&claims)
}

/// See [`without_generator`].
pub(super) fn uncovered(claims: &Claims) -> Vec<String> {
    let mut without: Vec<String> = claims
        .signatures
        .iter()
        .filter(|s| left_out_of(s).is_none() && !without_values(s).is_empty())
        .map(|s| format!("{}: no values of {}", s.label(), without_values(s).join(", ")))
        .collect();
    let recipes: [(&[String], &[Recipe]); 3] = [
        (&claims.aggregates, AGGREGATES),
        (&claims.set_returning, SETS),
        (&claims.windows, WINDOWS),
    ];
    for (names, recipes) in recipes {
        let none = |name: &&String| !recipes.iter().any(|r| r.name == name.as_str());
        without.extend(names.iter().filter(none).map(|name| format!("{name}: no recipe")));
    }
    without
}
