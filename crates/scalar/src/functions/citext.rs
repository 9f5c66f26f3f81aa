//! `citext`: patterns and searches to which small and capital letters are the same.
//!
//! Everything else is done by the functions of texts, which such a value is by itself.

use std::borrow::Cow;

use braid_types::ordered::citext;
use braid_types::{Datum, SqlError, SqlResult, SqlType};

use super::text_of;
use crate::context::EvalContext;
use crate::registry::{ArgType, Builtin, Eval, Table, overloads};

/// A text, whatever type of text it is of.
fn plain(value: &Datum) -> &str {
    match value {
        Datum::Ordered(value) => citext::text(value),
        text => text_of(text),
    }
}

/// The function of texts with so many arguments, or with numbers behind `texts` of them.
fn of_texts(name: &str, given: &[Datum], ctx: &EvalContext) -> SqlResult<Datum> {
    let wanted = |value: &Datum| match value {
        Datum::Int4(_) => SqlType::Int4,
        _ => SqlType::Text,
    };
    let fits = |f: &&Builtin| {
        f.args.len() == given.len()
            && f.args
                .iter()
                .zip(given)
                .all(|(arg, value)| matches!(arg, ArgType::Exact(ty) if *ty == wanted(value)))
    };
    match overloads(name).iter().find(fits) {
        Some(function) => function.eval(given, ctx),
        None => Err(SqlError::internal(format!("no {name} of texts"))),
    }
}

/// Flags of a regular expression under which letters are the same, unless they say otherwise.
fn any_case(flags: &str) -> Cow<'_, str> {
    match flags.contains('c') {
        true => Cow::Borrowed(flags),
        false => Cow::Owned(format!("{flags}i")),
    }
}

/// A text, a regular expression and flags, for functions of texts.
pub(crate) fn regex_arguments(a: &[Datum]) -> Vec<Datum> {
    let flags = any_case(a.get(2).map_or("", plain));
    vec![Datum::text(plain(&a[0])), Datum::text(plain(&a[1])), Datum::text(&*flags)]
}

/// A text as a regular expression that it alone matches.
fn literally(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.chars().flat_map(|c| (!is_plain(c)).then_some('\\').into_iter().chain([c])).collect()
}

fn regexes(t: &mut Table) {
    t.add("regexp_match(citext, citext) text[]", |a, c| {
        of_texts("regexp_match", &regex_arguments(a), c)
    });
    t.add("regexp_match(citext, citext, text) text[]", |a, c| {
        of_texts("regexp_match", &regex_arguments(a), c)
    });
    t.add("regexp_split_to_array(citext, citext) text[]", |a, c| {
        of_texts("regexp_split_to_array", &regex_arguments(a), c)
    });
    t.add("regexp_split_to_array(citext, citext, text) text[]", |a, c| {
        of_texts("regexp_split_to_array", &regex_arguments(a), c)
    });
    let replace: Eval = |a, c| {
        let flags = any_case(a.get(3).map_or("", plain));
        let given = [plain(&a[0]), plain(&a[1]), plain(&a[2]), &flags].map(Datum::text);
        of_texts("regexp_replace", &given, c)
    };
    t.add("regexp_replace(citext, citext, text) text", replace);
    t.add("regexp_replace(citext, citext, text, text) text", replace);
}

fn searches(t: &mut Table) {
    t.add("strpos(citext, citext) int4", |a, c| {
        let given = [plain(&a[0]), plain(&a[1])].map(|text| Datum::text(text.to_lowercase()));
        of_texts("strpos", &given, c)
    });
    t.add("replace(citext, citext, citext) text", |a, c| {
        let from = literally(plain(&a[1]));
        let given = [plain(&a[0]), &from, plain(&a[2]), "gi"].map(Datum::text);
        of_texts("regexp_replace", &given, c)
    });
    t.add("split_part(citext, citext, int4) text", |a, c| {
        let delimiter = literally(plain(&a[1]));
        let given = [plain(&a[0]), &delimiter, "i"].map(Datum::text);
        let Datum::Array(pieces) = of_texts("regexp_split_to_array", &given, c)? else {
            return Ok(Datum::Null);
        };
        let Datum::Int4(at) = a[2] else { return Ok(Datum::Null) };
        let at = usize::try_from(at).ok().and_then(|at| at.checked_sub(1));
        Ok(at.and_then(|at| pieces.items.get(at)).cloned().unwrap_or(Datum::Null))
    });
    t.add("translate(citext, citext, text) text", |a, c| {
        let (from, to) = (plain(&a[1]), a[2].clone());
        let small = [Datum::text(plain(&a[0])), Datum::text(from.to_lowercase()), to.clone()];
        let done = of_texts("translate", &small, c)?;
        of_texts("translate", &[done, Datum::text(from.to_uppercase()), to], c)
    });
}

macro_rules! patterns {
    ($t:ident, $($name:literal as $of:literal),*) => {
        $(
            $t.add(concat!($name, "(citext, citext) bool"), |a, c| {
                of_texts($of, &[plain(&a[0]), plain(&a[1])].map(Datum::text), c)
            });
            $t.add(concat!($name, "(citext, text) bool"), |a, c| {
                of_texts($of, &[plain(&a[0]), plain(&a[1])].map(Datum::text), c)
            });
        )*
    };
}

pub(super) fn fill(t: &mut Table) {
    patterns! { t,
        "~~" as "~~*", "!~~" as "!~~*", "~~*" as "~~*", "!~~*" as "!~~*",
        "~" as "~*", "!~" as "!~*", "~*" as "~*", "!~*" as "!~*"
    }
    regexes(t);
    searches(t);
}
