//! `char(n)`: compared without its padding.
//!
//! Rows hold such values padded to their length, and scans compare them as they are stored. So what
//! has a value before any row is read is padded likewise, and the column stays bare: planners find
//! it in keys and statistics, and scans check it on columns.
//!
//! ```text
//!   c = 'ab'          c = 'ab   '              c char(5)
//!   c = $1            c = blank_padded($1, 5)  once for each execution
//!   c = d             text(c) = text(d)        another length: both without their padding
//!   c = v             text(c) = text(bpchar(v))                v varchar: compared as char(n), too
//!   c = 'ab '::text   never: at the end of a text blanks count, and the column has lost its own
//! ```

use std::sync::LazyLock;

use braid_types::{CastContext, Datum, SqlResult, SqlType};

use crate::conversion::coerce;
use crate::registry::{ArgType, Code};
use crate::{BindContext, Bound, Builtin, Node, Volatility};

/// The two sides of a comparison of texts, one of which at least is of `char(n)`, so that they
/// compare as they are.
pub(crate) fn match_blank_padded(
    left: Bound,
    right: Bound,
    ctx: &mut dyn BindContext,
) -> SqlResult<(Bound, Bound)> {
    if let Some(right) = padded(&right, left.ty()) {
        return Ok((left, right));
    }
    if let Some(left) = padded(&left, right.ty()) {
        return Ok((left, right));
    }
    Ok((bare(as_char(left, ctx)?, ctx)?, bare(as_char(right, ctx)?, ctx)?))
}

/// A varchar beside a `char(n)` is one itself.
fn as_char(side: Bound, ctx: &mut dyn BindContext) -> SqlResult<Bound> {
    match side.ty() {
        SqlType::Varchar(_) => coerce(side, &SqlType::Char(0), CastContext::Implicit, ctx),
        _ => Ok(side),
    }
}

/// `column = ANY (array)` of a constant array, as a list of padded values.
pub(crate) fn padded_list(left: &Bound, array: &Bound) -> Option<Bound> {
    let element = array.ty().element()?;
    let Datum::Array(values) = array.as_const()? else { return None };
    let item = |value: &Datum| match value {
        Datum::Null => matches!(left.ty(), SqlType::Char(1..))
            .then(|| Bound::constant(Datum::Null, left.ty().clone())),
        value => padded(&Bound::constant(value.clone(), element.clone()), left.ty()),
    };
    let items = values.items.iter().map(item).collect::<Option<Vec<_>>>()?;
    let list = Node::InList(left.clone(), items, false);
    (!values.items.is_empty()).then(|| Bound::new(list, SqlType::Bool))
}

/// A value and an array of texts without padding, if one of the two is of `char(n)`.
pub(crate) fn without_padding(
    left: Bound,
    array: Bound,
    ctx: &mut dyn BindContext,
) -> SqlResult<(Bound, Bound)> {
    let is_char = |ty: &SqlType| matches!(ty, SqlType::Char(_));
    let array = match array.ty().element() {
        Some(SqlType::Varchar(_)) if is_char(left.ty()) => {
            let chars = SqlType::Array(Box::new(SqlType::Char(0)));
            coerce(array, &chars, CastContext::Implicit, ctx)?
        }
        _ => array,
    };
    let left = match array.ty().element() {
        Some(element) if is_char(element) => as_char(left, ctx)?,
        _ => left,
    };
    let array = match array.ty().element() {
        Some(element) if is_char(element) => {
            coerce(array, &SqlType::Array(Box::new(SqlType::Text)), CastContext::Implicit, ctx)?
        }
        _ => array,
    };
    Ok((bare(left, ctx)?, array))
}

/// A text as it is, a `char(n)` without its padding.
fn bare(side: Bound, ctx: &mut dyn BindContext) -> SqlResult<Bound> {
    match side.ty() {
        SqlType::Char(_) => coerce(side, &SqlType::Text, CastContext::Implicit, ctx),
        _ => Ok(side),
    }
}

/// A value that is the same for all rows, as it is beside values of `to`, if that is `char(n)`.
fn padded(value: &Bound, to: &SqlType) -> Option<Bound> {
    let SqlType::Char(length @ 1..) = to else { return None };
    // Blanks at the end of a text are a part of it.
    let exact = !matches!(value.ty(), SqlType::Char(_) | SqlType::Varchar(_));
    if let Some(known) = value.as_const() {
        let Datum::Text(text) = known else { return None };
        return Some(Bound::constant(fill(text, *length, exact), to.clone()));
    }
    if !value.ty().is_text_like()
        || !value.columns().is_empty()
        || value.has_applied()
        || value.volatility() == Volatility::Volatile
    {
        return None;
    }
    let length = Bound::constant(Datum::Int4(i32::try_from(*length).ok()?), SqlType::Int4);
    let exact = Bound::constant(Datum::Bool(exact), SqlType::Bool);
    let call = Node::Call(&BLANK_PADDED, vec![value.clone(), length, exact]);
    Some(Bound::new(call, to.clone()))
}

/// A text that equals just those of `length` characters that equal it but for their padding, and
/// lies among them where it belongs. It is longer than they are if it equals none of them.
fn fill(text: &str, length: u32, exact: bool) -> Datum {
    let trimmed = text.trim_end_matches(' ');
    let blanks = exact && trimmed.len() < text.len();
    let least = length as usize + usize::from(blanks);
    let text = if exact { text } else { trimmed };
    let missing = least.saturating_sub(text.chars().count());
    Datum::text(format!("{text}{}", " ".repeat(missing)))
}

/// [`fill`] as a function. Nobody calls it by its name.
static BLANK_PADDED: LazyLock<Builtin> = LazyLock::new(|| Builtin {
    name: "blank_padded",
    args: [SqlType::Text, SqlType::Int4, SqlType::Bool].map(ArgType::Exact).to_vec(),
    variadic: false,
    ret: ArgType::Exact(SqlType::Char(0)),
    strict: true,
    volatility: Volatility::Immutable,
    about: "",
    code: Code::Value(|args, _| {
        Ok(match args {
            [Datum::Text(text), Datum::Int4(length), Datum::Bool(exact)] => {
                fill(text, length.unsigned_abs(), *exact)
            }
            _ => Datum::Null,
        })
    }),
    guest: false,
});

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str, length: u32, exact: bool) -> String {
        match fill(text, length, exact) {
            Datum::Text(text) => text.to_string(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn values_meet_what_equals_them() {
        for (text, exact, filled_to) in [
            ("ab", false, "ab   "),
            ("ab  ", false, "ab   "),
            ("", false, "     "),
            ("abcdef", false, "abcdef"),
            ("abcde   ", false, "abcde"),
            ("\u{e4}\u{f6}", false, "\u{e4}\u{f6}   "),
            ("ab", true, "ab   "),
            // No column has them, whatever its length.
            ("ab ", true, "ab    "),
            ("abcde ", true, "abcde "),
            (" ", true, "      "),
        ] {
            assert_eq!(filled(text, 5, exact), filled_to, "{text:?} {exact}");
        }
    }

    /// For all pairs: the order of the stored value and the filled one is that of the texts.
    #[test]
    fn the_order_is_that_of_texts_without_padding() {
        let texts = ["", "a", "a b", "ab", "abc", "abcd", "abcde", "b", "\u{e4}"];
        for stored in texts.iter().filter(|t| t.chars().count() <= 3) {
            let padded = filled(stored, 3, false);
            for text in texts {
                assert_eq!(
                    padded.cmp(&filled(text, 3, false)),
                    (*stored).cmp(text),
                    "{stored} {text}"
                );
            }
            let blanks = format!("{stored} ");
            assert!(padded < filled(&blanks, 3, true), "{stored}: text with a blank is greater");
        }
    }
}
