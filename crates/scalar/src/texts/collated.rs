//! Comparisons by a locale, as comparisons of bytes.
//!
//! ```text
//!   a < b COLLATE "sv-x-icu"              collation_key(a, 'sv') < collation_key(b, 'sv')
//!   ORDER BY a COLLATE "sv-x-icu"         ORDER BY collation_key(a, 'sv')
//!   greatest(a, b COLLATE "sv-x-icu")     collated_text(greatest(collation_key(a, 'sv'), ..))
//!   a = b COLLATE "sv-x-icu"              a = b: texts are equal only if their bytes are
//! ```
//! So no planner has to know of collations: a key of a table, a bound of a scan or a histogram is
//! of the column, and the column itself is not compared. A key ends with the text, which decides
//! where the locale sees no difference, as in PostgreSQL.

use std::sync::{Arc, LazyLock};

use braid_types::{
    ArrayValue, CastContext, Collated, DEFAULT_COLLATION, Datum, SqlError, SqlResult, SqlState,
    SqlType, quote_ident,
};

use super::collator::collator;
use crate::conversion::fold;
use crate::registry::{ArgType, Code, Eval};
use crate::{Bound, Builtin, CmpOp, Node, Volatility};

/// What an error says about comparisons.
const COMPARISON: &str = "string comparison";

/// What stands for a text where texts are compared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// What the locale sees of it, and the text itself.
    Whole,
    /// What the locale sees of it alone.
    Seen,
}

/// Both sides of a comparison so that their values compare as the collation of both says.
///
/// # Errors
/// 42P21, 42P22 if that cannot be told.
pub(crate) fn comparable(op: CmpOp, left: Bound, right: Bound) -> SqlResult<(Bound, Bound)> {
    let both = left.collation().with(right.collation());
    if left.collation().is_by_bytes() && right.collation().is_by_bytes() {
        return both.check_explicit().map(|()| (left, right));
    }
    let equality = matches!(op, CmpOp::Eq | CmpOp::Ne);
    if equality && matches!(both, Collated::Row(true)) {
        return Ok((left, right));
    }
    if both.locale(COMPARISON).is_err() && matches!(both, Collated::Row(_)) {
        let form = Form::of(&both);
        return Ok((formed(left, form)?, formed(right, form)?));
    }
    if both.locale(COMPARISON)?.is_none() || equality && both.is_deterministic() {
        return Ok((left, right));
    }
    let form = Form::of(&both);
    Ok((
        formed(left.with_collation(both.clone()), form)?,
        formed(right.with_collation(both), form)?,
    ))
}

impl Form {
    /// The form by which values of a collation are in order, and equal.
    fn of(collation: &Collated) -> Form {
        if collation.is_deterministic() { Form::Whole } else { Form::Seen }
    }
}

/// Functions whose value depends on the order of texts or on the letters of a language, in a way
/// that is not there for locales: their arguments, by what PostgreSQL calls it.
const NOT_BY_LOCALE: &[&str] = &["initcap", "width_bucket"];

/// Functions over arrays that ask whether elements are equal.
pub(crate) const EQUATING: &[&str] =
    &["@>", "<@", "&&", "array_position", "array_positions", "array_remove", "array_replace"];

/// Languages in which letters change their case in a way of their own.
const OWN_CASES: [&str; 4] = ["tr", "az", "lt", "el"];

/// Refuses calls that would have another value by the collation of their arguments.
///
/// # Errors
/// 42P21, 42P22 if that cannot be told; 0A000.
pub(crate) fn check_collated(name: &str, args: &[Bound]) -> SqlResult<()> {
    if args.iter().all(|arg| matches!(arg.collation(), Collated::Default)) {
        return Ok(());
    }
    let all = args.iter().fold(Collated::Default, |all, arg| all.with(arg.collation()));
    all.check_explicit()?;
    let matching = match name {
        "~~" | "!~~" => Some("LIKE"),
        "~~*" | "!~~*" => Some("ILIKE"),
        "~" | "~*" | "!~" | "!~*" => Some("regular expression"),
        name if name.starts_with("regexp_") => Some("regular expression"),
        _ => None,
    };
    if let Some(what) = matching {
        all.locale(what)?;
    }
    let what = match name {
        _ if all.is_deterministic() => None,
        "similar_to" => Some("regular expressions"),
        "~~" | "!~~" => Some("LIKE"),
        "strpos" | "position" | "replace" | "split_part" | "starts_with" | "^@"
        | "string_to_array" => Some("substring searches"),
        _ => matching.map(|what| if what == "ILIKE" { what } else { "regular expressions" }),
    };
    if let Some(what) = what {
        let text = format!("nondeterministic collations are not supported for {what}");
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text));
    }
    if matching.is_some() {
        return Ok(());
    }
    if EQUATING.contains(&name) && !all.is_deterministic() {
        let text = format!("{name} with a nondeterministic collation");
        return Err(SqlError::unsupported(text).with_hint("Unnest the array, and compare."));
    }
    let changes_case = matches!(name, "lower" | "upper");
    if !changes_case && !NOT_BY_LOCALE.contains(&name) {
        return Ok(());
    }
    let Some(locale) = all.locale(&format!("{name}() function"))? else { return Ok(()) };
    let language = locale.split(['-', '_', '@']).next().unwrap_or_default();
    if changes_case && !OWN_CASES.contains(&language.to_ascii_lowercase().as_str()) {
        return Ok(());
    }
    Err(SqlError::unsupported(format!("{name} by the rules of the locale \"{locale}\""))
        .with_hint("Give its argument COLLATE \"default\"."))
}

/// What rows are sorted by, so that they come as the collation of an expression says.
///
/// # Errors
/// 42P21 if that cannot be told.
pub fn order_form(value: Bound) -> SqlResult<Bound> {
    if value.collation().is_by_bytes() {
        return Ok(value);
    }
    value.collation().check_implicit()?;
    let form = Form::of(value.collation());
    formed(value, form)
}

/// What is equal where the values of an expression are by its collation.
///
/// # Errors
/// 42P21 if that cannot be told.
pub fn equality_form(value: Bound) -> SqlResult<Bound> {
    value.collation().check_implicit()?;
    match value.collation().is_deterministic() {
        true => Ok(value),
        false => formed(value, Form::Seen),
    }
}

/// What compares as the values of an expression do by its collation, and holds them.
///
/// # Errors
/// 42P21, 42P22 if that cannot be told.
pub fn compared_form(value: Bound) -> SqlResult<Bound> {
    formed(value, Form::Whole)
}

fn formed(value: Bound, form: Form) -> SqlResult<Bound> {
    if let Node::Row(fields, names) = value.node() {
        let fields = fields.iter().cloned().map(|field| formed(field, form));
        let row = Node::Row(fields.collect::<SqlResult<_>>()?, names.clone());
        return Ok(Bound::new(row, SqlType::Record));
    }
    match value.collation().clone().locale(COMPARISON)? {
        Some(locale) => key(value, locale, form),
        None => Ok(value),
    }
}

/// `pg_collation_for`: the name of the collation of an expression.
///
/// # Errors
/// 42804 if its type has none.
pub(crate) fn name_of(value: &Bound) -> SqlResult<Bound> {
    let ty = value.ty();
    if !ty.is_collatable() && *ty != SqlType::Unknown {
        let text = format!("collations are not supported by type {}", ty.base_name());
        return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, text));
    }
    let name = match value.collation() {
        _ if *ty == SqlType::Unknown => Datum::Null,
        Collated::Default if *ty == SqlType::Name => Datum::text(quote_ident("C").to_string()),
        Collated::Default => Datum::text("\"default\""),
        other => other.known().map_or(Datum::Null, |own| {
            Datum::text(match own.oid {
                DEFAULT_COLLATION => "\"default\"".to_string(),
                _ => quote_ident(&own.name).to_string(),
            })
        }),
    };
    Ok(Bound::constant(name, SqlType::Text))
}

/// Texts that are ordered together, as what compares by the collation of all.
///
/// # Errors
/// 42P21, 42P22 if that cannot be told.
pub fn order_forms(values: Vec<Bound>) -> SqlResult<Vec<Bound>> {
    together(values, Form::of)
}

/// As [`order_forms`], each holding its text.
pub(crate) fn compared_forms(values: Vec<Bound>) -> SqlResult<Vec<Bound>> {
    together(values, |_| Form::Whole)
}

fn together(values: Vec<Bound>, form: impl Fn(&Collated) -> Form) -> SqlResult<Vec<Bound>> {
    let all = values.iter().fold(Collated::Default, |all, v| all.with(v.collation()));
    let form = form(&all);
    values.into_iter().map(|v| formed(v.with_collation(all.clone()), form)).collect()
}

/// The text, or array of texts, that [`compared_form`] was made of, as a value of its type.
///
/// # Errors
/// Those of constants that are computed.
pub fn value_of_form(form: Bound, ty: &SqlType, collation: &Collated) -> SqlResult<Bound> {
    let text = Bound::new(Node::Call(&COLLATED_TEXT, vec![form]), text_like(ty));
    let value = match ty.element().unwrap_or(ty) {
        // Keys have lost the padding.
        SqlType::Char(_) => Bound::new(Node::Cast(text, CastContext::Explicit), ty.clone()),
        _ => text.relabeled(ty.clone()),
    };
    Ok(fold(value)?.with_collation(collation.clone()))
}

fn text_like(ty: &SqlType) -> SqlType {
    match ty.element() {
        Some(_) => SqlType::Text.array_of(),
        None => SqlType::Text,
    }
}

/// The key of a text, or the array of keys of an array of texts.
fn key(value: Bound, locale: &str, form: Form) -> SqlResult<Bound> {
    let padded = matches!(value.ty().element().unwrap_or(value.ty()), SqlType::Char(_));
    let value = match padded {
        true => {
            let text = text_like(value.ty());
            Bound::new(Node::Cast(value, CastContext::Implicit), text)
        }
        false => value,
    };
    let ty = match value.ty().element() {
        Some(_) => SqlType::Bytea.array_of(),
        None => SqlType::Bytea,
    };
    let locale = Bound::constant(Datum::text(locale), SqlType::Text);
    let function = match form {
        Form::Whole => &COLLATION_KEY,
        Form::Seen => &COLLATION_CLASS,
    };
    fold(Bound::new(Node::Call(function, vec![value, locale]), ty))
}

/// Applies to a text, or to each of an array.
fn each(
    value: &Datum,
    element: &SqlType,
    f: &dyn Fn(&Datum) -> SqlResult<Datum>,
) -> SqlResult<Datum> {
    match value {
        Datum::Array(array) => {
            let items = array.items.iter().map(f).collect::<SqlResult<Vec<_>>>()?;
            let made = ArrayValue::of(element.clone(), items, &array.dimensions());
            Ok(Datum::Array(Arc::new(made)))
        }
        one => f(one),
    }
}

fn key_of(args: &[Datum], form: Form) -> SqlResult<Datum> {
    let [value, Datum::Text(locale)] = args else { return Ok(Datum::Null) };
    let collator = collator(locale)?;
    each(value, &SqlType::Bytea, &|value| {
        let Datum::Text(text) = value else { return Ok(Datum::Null) };
        let mut key = Vec::with_capacity(2 * text.len() + 8);
        collator.write_key(text, &mut key);
        if form == Form::Whole {
            key.push(0);
            key.extend_from_slice(text.as_bytes());
        }
        Ok(Datum::Bytea(key.into()))
    })
}

fn text_of(args: &[Datum]) -> SqlResult<Datum> {
    let [value] = args else { return Ok(Datum::Null) };
    each(value, &SqlType::Text, &|value| {
        let Datum::Bytea(key) = value else { return Ok(Datum::Null) };
        let text = key.iter().position(|byte| *byte == 0).map_or(&key[..], |at| &key[at + 1..]);
        Ok(Datum::text(String::from_utf8_lossy(text)))
    })
}

fn hidden(name: &'static str, args: Vec<ArgType>, ret: SqlType, code: Eval) -> Builtin {
    Builtin {
        name,
        args,
        variadic: false,
        ret: ArgType::Exact(ret),
        strict: true,
        volatility: Volatility::Immutable,
        about: "",
        code: Code::Value(code),
        guest: false,
    }
}

/// The key of a text by a locale. Nobody calls it by its name.
static COLLATION_KEY: LazyLock<Builtin> = LazyLock::new(|| {
    let args = [SqlType::Text, SqlType::Text].map(ArgType::Exact).to_vec();
    hidden("collation_key", args, SqlType::Bytea, |args, _| key_of(args, Form::Whole))
});

/// What a locale sees of a text. Nobody calls it by its name.
static COLLATION_CLASS: LazyLock<Builtin> = LazyLock::new(|| {
    let args = [SqlType::Text, SqlType::Text].map(ArgType::Exact).to_vec();
    hidden("collation_class", args, SqlType::Bytea, |args, _| key_of(args, Form::Seen))
});

/// The text of such a key. Nobody calls it by its name.
static COLLATED_TEXT: LazyLock<Builtin> = LazyLock::new(|| {
    let args = vec![ArgType::Exact(SqlType::Bytea)];
    hidden("collated_text", args, SqlType::Text, |args, _| text_of(args))
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_gives_its_text_back() {
        for text in ["", "a", "\u{e5}ngstr\u{f6}m", "a\u{1}b", "\u{10ffff}"] {
            let key = key_of(&[Datum::text(text), Datum::text("sv")], Form::Whole).unwrap();
            let Datum::Text(back) = text_of(&[key]).unwrap() else { panic!("{text}") };
            assert_eq!(&*back, text);
        }
    }
}
