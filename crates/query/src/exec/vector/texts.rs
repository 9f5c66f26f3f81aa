//! Functions and patterns of text.

use std::sync::Arc;

use braid_scalar::{Bound, TextPattern};
use braid_types::{Datum, SqlType};
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Int32Array, StringArray, StringBuilder,
};
use datafusion::arrow::datatypes::{DataType, Int32Type};

use super::compile::{Compiled, Compiler};
use super::value::{Fit, Frame, Unfit, Vector};

/// The kernel of a function of text.
pub(super) fn call(
    compiler: &Compiler<'_>,
    _: &Bound,
    name: &str,
    args: &[Bound],
) -> Option<Compiled> {
    if !args.first()?.ty().is_text_like() {
        return None;
    }
    match (name, args) {
        ("lower", [s]) => mapped(compiler, s, |s, out| out.push_str(&s.to_lowercase())),
        ("upper", [s]) => mapped(compiler, s, |s, out| out.push_str(&s.to_uppercase())),
        ("btrim" | "ltrim" | "rtrim", [s]) => trimmed(compiler, name, s, " "),
        ("btrim" | "ltrim" | "rtrim", [s, set]) => match set.as_const()? {
            Datum::Text(set) => trimmed(compiler, name, s, set),
            _ => None,
        },
        ("length" | "char_length" | "character_length", [s]) => {
            let count = |s: &str| if s.is_ascii() { s.len() } else { s.chars().count() };
            counted(compiler, s, count)
        }
        ("octet_length", [s]) => counted(compiler, s, str::len),
        ("||", [a, b]) if b.ty().is_text_like() => joined(compiler, a, b),
        ("substring" | "substr", [s, from, rest @ ..])
            if [from].into_iter().chain(rest).all(|n| *n.ty() == SqlType::Int4) =>
        {
            cut(compiler, s, from, rest.first())
        }
        (_, [s, pattern]) => matched(compiler, name, s, pattern),
        _ => None,
    }
}

/// The texts of a column.
fn texts(value: &Vector) -> Fit<&StringArray> {
    value.inner().as_string_opt::<i32>().ok_or(Unfit)
}

fn collected<'a>(
    rows: impl Iterator<Item = Option<&'a str>>,
    mut f: impl FnMut(&str, &mut String),
) -> ArrayRef {
    let mut builder = StringBuilder::new();
    let mut piece = String::new();
    for text in rows {
        match text {
            None => builder.append_null(),
            Some(text) => {
                piece.clear();
                f(text, &mut piece);
                builder.append_value(&piece);
            }
        }
    }
    Arc::new(builder.finish())
}

/// A text of each text.
fn mapped(
    compiler: &Compiler<'_>,
    text: &Bound,
    f: impl Fn(&str, &mut String) + Send + Sync + 'static,
) -> Option<Compiled> {
    over(compiler.compile(text)?, f)
}

fn over(text: Compiled, f: impl Fn(&str, &mut String) + Send + Sync + 'static) -> Option<Compiled> {
    if text.ty != DataType::Utf8 {
        return None;
    }
    let shell = Compiled::new(DataType::Utf8, &[&text], |_, _| Err(Unfit));
    Some(shell.risky().code(move |frame, ctx| {
        let value = text.run(frame, ctx)?;
        Ok(value.with(collected(texts(&value)?.iter(), &f)))
    }))
}

/// `char(n)` as text: without its padding.
pub(super) fn unpadded(text: Compiled) -> Option<Compiled> {
    over(text, |s, out| out.push_str(s.trim_end_matches(' ')))
}

fn trimmed(compiler: &Compiler<'_>, name: &str, text: &Bound, set: &str) -> Option<Compiled> {
    let set: Vec<char> = set.chars().collect();
    match name {
        "btrim" => mapped(compiler, text, move |s, out| out.push_str(s.trim_matches(&set[..]))),
        "ltrim" => {
            mapped(compiler, text, move |s, out| out.push_str(s.trim_start_matches(&set[..])))
        }
        _ => mapped(compiler, text, move |s, out| out.push_str(s.trim_end_matches(&set[..]))),
    }
}

/// A number of each text.
fn counted(compiler: &Compiler<'_>, text: &Bound, f: fn(&str) -> usize) -> Option<Compiled> {
    let text = compiler.compile(text).filter(|k| k.ty == DataType::Utf8)?;
    let shell = Compiled::new(DataType::Int32, &[&text], |_, _| Err(Unfit));
    Some(shell.code(move |frame, ctx| {
        let value = text.run(frame, ctx)?;
        let counts: Int32Array = texts(&value)?.iter().map(|s| s.map(|s| f(s) as i32)).collect();
        Ok(value.with(Arc::new(counts)))
    }))
}

/// Texts of so many bytes are left to the row form, which knows the limits of a call.
const LONG: usize = 1 << 20;

/// One text behind the other.
fn joined(compiler: &Compiler<'_>, a: &Bound, b: &Bound) -> Option<Compiled> {
    let a = compiler.compile(a).filter(|k| k.ty == DataType::Utf8)?;
    let b = compiler.compile(b).filter(|k| k.ty == DataType::Utf8)?;
    let shell = Compiled::new(DataType::Utf8, &[&a, &b], |_, _| Err(Unfit));
    Some(shell.code(move |frame, ctx| {
        let (x, y) = (a.run(frame, ctx)?, b.run(frame, ctx)?);
        let once = matches!((&x, &y), (Vector::Same(_), Vector::Same(_)));
        let (left, right) = (texts(&x)?, texts(&y)?);
        let mut builder = StringBuilder::new();
        let mut piece = String::new();
        for at in 0..if once { 1 } else { frame.rows() } {
            let place = |v: &Vector| if matches!(v, Vector::Same(_)) { 0 } else { at };
            let (l, r) = (place(&x), place(&y));
            if left.is_null(l) || right.is_null(r) {
                builder.append_null();
                continue;
            }
            let (first, second) = (left.value(l), right.value(r));
            if first.len() + second.len() >= LONG {
                return Err(Unfit);
            }
            piece.clear();
            piece.push_str(first);
            piece.push_str(second);
            builder.append_value(&piece);
        }
        Ok(Vector::joined(&x, &y, Arc::new(builder.finish())))
    }))
}

/// The characters from a 1-based position on, so many of them.
fn part(text: &str, from: i64, length: Option<i64>) -> &str {
    let end = length.map_or(i64::MAX, |n| from.saturating_add(n));
    let start = from.max(1);
    if end <= start {
        return "";
    }
    let (skip, take) = ((start - 1) as usize, (end - start) as usize);
    if text.is_ascii() {
        let from = skip.min(text.len());
        return &text[from..from.saturating_add(take).min(text.len())];
    }
    let place = |s: &str, n: usize| s.char_indices().nth(n).map_or(s.len(), |(at, _)| at);
    let rest = &text[place(text, skip)..];
    &rest[..place(rest, take)]
}

/// `substring` by positions that are the same for all rows.
fn cut(
    compiler: &Compiler<'_>,
    text: &Bound,
    from: &Bound,
    length: Option<&Bound>,
) -> Option<Compiled> {
    if !from.is_const() || !length.is_none_or(Bound::is_const) {
        return None;
    }
    let text = compiler.compile(text).filter(|k| k.ty == DataType::Utf8)?;
    let from = compiler.compile(from).filter(|k| k.ty == DataType::Int32)?;
    let length = match length {
        Some(length) => Some(compiler.compile(length).filter(|k| k.ty == DataType::Int32)?),
        None => None,
    };
    let mut parts = vec![&text, &from];
    parts.extend(&length);
    let shell = Compiled::new(DataType::Utf8, &parts, |_, _| Err(Unfit)).risky();
    Some(shell.code(move |frame, ctx| {
        let value = text.run(frame, ctx)?;
        let start = fixed(&from, frame, ctx)?;
        let count = match &length {
            Some(length) => Some(fixed(length, frame, ctx)?),
            None => None,
        };
        if count.is_some_and(|n| n < 0) {
            return Err(Unfit);
        }
        let found: StringArray =
            texts(&value)?.iter().map(|s| s.map(|s| part(s, start, count))).collect();
        Ok(value.with(Arc::new(found)))
    }))
}

/// A number that all rows have.
fn fixed(kernel: &Compiled, frame: &Frame, ctx: &braid_scalar::EvalContext) -> Fit<i64> {
    match kernel.run(frame, ctx)? {
        Vector::Same(array) if !array.is_null(0) => {
            Ok(i64::from(array.as_primitive_opt::<Int32Type>().ok_or(Unfit)?.value(0)))
        }
        _ => Err(Unfit),
    }
}

/// LIKE and regular expressions with a constant pattern.
fn matched(compiler: &Compiler<'_>, name: &str, text: &Bound, pattern: &Bound) -> Option<Compiled> {
    let Datum::Text(pattern) = pattern.as_const()? else { return None };
    let (pattern, negated) = TextPattern::of_operator(name, pattern)?;
    let text = compiler.compile(text).filter(|k| k.ty == DataType::Utf8)?;
    let shell = Compiled::new(DataType::Boolean, &[&text], |_, _| Err(Unfit)).risky();
    Some(shell.code(move |frame, ctx| {
        let value = text.run(frame, ctx)?;
        let array = texts(&value)?;
        let truths = array.iter().map(|s| match s {
            None => Ok(None),
            Some(s) => match pattern.matches(s) {
                Ok(found) => Ok(Some(found != negated)),
                Err(_) => Err(Unfit),
            },
        });
        let truths = truths.collect::<Fit<BooleanArray>>()?;
        Ok(value.with(Arc::new(truths)))
    }))
}
