//! Which expressions give a value for every row: those of functions that refuse no argument.
//!
//! ```text
//!   lower(name) || '!'      always          price * 2      as long as price is declared short
//!   a / b                   not if b is 0   '7'::int       known before any row is looked at
//! ```

use std::cmp::Ordering;
use std::sync::Arc;

use braid_types::{CastContext, Datum, SqlType, cast_exists, numeric};

use crate::{Bound, Node, QuantifiedOp};

/// Whether computing an expression can raise an error, or runs a subquery. `short` says so of
/// numeric columns, as [`is_short`] does.
pub fn can_fail(bound: &Bound, short: &dyn Fn(&Bound) -> bool) -> bool {
    if is_given(bound) {
        return false;
    }
    let own = match bound.node() {
        Node::Call(function, args) => {
            !TOTAL.contains(&function.name)
                && !total_call(function.name, args)
                && !is_short(bound, short)
        }
        Node::Cast(inner, context) => !total_cast(inner.ty(), bound.ty(), *context),
        Node::Quantified(QuantifiedOp::Function(_), ..) | Node::Apply(..) => true,
        _ => false,
    };
    own || bound.children().into_iter().any(|part| can_fail(part, short))
}

/// Whether a numeric is computed from so few digits that it cannot become too long: PostgreSQL has
/// room for 131,072 of them, declared types for 1,000. `short` says so of columns.
pub fn is_short(bound: &Bound, short: &dyn Fn(&Bound) -> bool) -> bool {
    if !matches!(bound.ty(), SqlType::Numeric(_)) {
        return false;
    }
    match bound.node() {
        Node::Const(_) => true,
        Node::Column(_) => short(bound),
        Node::Cast(inner, _) => inner.ty().is_integer() || is_short(inner, short),
        Node::Call(function, args) => match (function.name, args.as_slice()) {
            ("+" | "-" | "*", args) => args.iter().all(|arg| is_short(arg, short)),
            ("/", [dividend, divisor]) => {
                let sign = divisor.as_const().map(|d| d.cmp_sql(&zero()));
                is_short(dividend, short) && sign.is_some_and(Ordering::is_ne)
            }
            _ => false,
        },
        _ => false,
    }
}

/// The numeric 0.
fn zero() -> Datum {
    Datum::Numeric(Arc::new(numeric::from_i128(0)))
}

/// Functions and operators that give a value for every argument.
const TOTAL: &[&str] = &[
    "||",
    "lower",
    "upper",
    "length",
    "char_length",
    "character_length",
    "octet_length",
    "btrim",
    "ltrim",
    "rtrim",
    "initcap",
    "strpos",
    "starts_with",
    "^@",
    "replace",
    "reverse",
    "md5",
    "concat",
    "concat_ws",
    "left",
    "right",
    "translate",
    "cardinality",
    "array_length",
    "array_upper",
    "array_lower",
    "@>",
    "<@",
    "&&",
    "?",
    "?|",
    "?&",
    "jsonb_typeof",
    "now",
    "current_date",
    "current_timestamp",
    "current_user",
    "current_database",
    "current_schema",
    "isfinite",
    "->",
    "->>",
    "#>",
    "#>>",
    "coalesce",
    "sign",
    "ceil",
    "floor",
    "round",
    "trunc",
    "array_to_string",
    "blank_padded",
    "collation_class",
    "collation_key",
    "collated_text",
    "string_to_array",
    "pg_table_is_visible",
    "pg_get_expr",
    "format_type",
    "pg_get_userbyid",
    "obj_description",
    "col_description",
    "pg_get_indexdef",
    "pg_get_constraintdef",
];

/// Fields that every date and moment has.
const FIELDS: &[&str] = &[
    "century",
    "day",
    "decade",
    "dow",
    "doy",
    "epoch",
    "isodow",
    "isoyear",
    "millennium",
    "month",
    "quarter",
    "week",
    "year",
];

/// Whether a conversion gives a value for every argument.
fn total_cast(from: &SqlType, to: &SqlType, context: CastContext) -> bool {
    let unlimited = to.typmod() < 0;
    unlimited
        && (from.same_base(to)
            || widens(from, to)
            || matches!(to, SqlType::Text | SqlType::Varchar(None))
            || (context == CastContext::Implicit
                && cast_exists(from, to) == Some(CastContext::Implicit)
                && (from.is_integer() || from.is_text_like())))
}

/// Whether each number of a type is one of the other, or near one.
fn widens(from: &SqlType, to: &SqlType) -> bool {
    use SqlType::{Float4, Float8, Int2, Int4, Int8, Numeric};
    match to {
        Numeric(_) | Float8 => {
            matches!(from, Int2 | Int4 | Int8) || (from, to) == (&Float4, &Float8)
        }
        Float4 => matches!(from, Int2 | Int4 | Int8),
        Int8 => matches!(from, Int2 | Int4),
        Int4 => matches!(from, Int2),
        _ => false,
    }
}

/// Whether this is a number, a date or a time that parameters give, all but as it is: what can be
/// wrong with it is wrong for all rows, and PostgreSQL says so before it looks at any.
fn is_given(bound: &Bound) -> bool {
    use SqlType as T;
    let plain = |ty: &SqlType| {
        ty.is_integer()
            || matches!(ty, T::Numeric(_) | T::Date | T::Timestamp | T::TimestampTz | T::Interval)
    };
    match bound.node() {
        Node::Const(_) | Node::Param(_) => true,
        Node::Cast(inner, _) => plain(inner.ty()) && plain(bound.ty()) && is_given(inner),
        Node::Call(function, args) => {
            matches!(function.name, "+" | "-" | "*")
                && plain(bound.ty())
                && args.iter().all(is_given)
        }
        _ => false,
    }
}

/// Whether an argument is a number of at least this much.
fn at_least(bound: Option<&Bound>, least: i32) -> bool {
    matches!(bound.and_then(Bound::as_const), Some(Datum::Int4(n)) if *n >= least)
}

/// Whether a call gives a value for every row because of what its arguments are.
fn total_call(name: &str, args: &[Bound]) -> bool {
    match name {
        // Only a backslash at the end of a pattern is an error.
        "~~" | "!~~" | "~~*" | "!~~*" => match args {
            [_, pattern] => match pattern.as_const() {
                Some(Datum::Text(text)) => !text.contains('\\'),
                value => value.is_some_and(Datum::is_null),
            },
            _ => false,
        },
        // Other fields and units are refused; what becomes a moment first may lie too far away.
        "extract" | "date_part" => match args {
            [field, of] => {
                let known = |d: &Datum| matches!(d, Datum::Text(t) if FIELDS.contains(&&**t));
                let total = match of.ty() {
                    SqlType::Timestamp | SqlType::TimestampTz => true,
                    SqlType::Date => name == "extract",
                    _ => false,
                };
                total && field.as_const().is_some_and(known)
            }
            _ => false,
        },
        // Bit strings and addresses must be alike, patterns well-formed.
        "&" | "|" | "#" | "~" => args.iter().all(|arg| arg.ty().is_integer()),
        // Names may be nobody's.
        "has_table_privilege" | "has_schema_privilege" => {
            args.iter().all(|arg| *arg.ty() == SqlType::Oid || arg.as_const().is_some())
        }
        "substring" | "substr" => {
            args.len() > 1
                && args[1..].iter().all(|a| *a.ty() == SqlType::Int4)
                && (args.len() == 2 || at_least(args.get(2), 0))
        }
        _ => false,
    }
}
