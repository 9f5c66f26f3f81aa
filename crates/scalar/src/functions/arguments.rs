//! Arguments as what they are. They arrive converted to the types of the signature, so these only
//! unpack; strict functions never see NULL.

use braid_types::jsonb::serde_json;
use braid_types::{Datum, Interval, numeric};

/// Text of a text argument.
pub(crate) fn text_of(value: &Datum) -> &str {
    match value {
        Datum::Text(s) => s,
        _ => "",
    }
}

/// Whole number of an integer argument of any width.
pub(crate) fn i64_of(value: &Datum) -> i64 {
    match value {
        Datum::Int2(v) => i64::from(*v),
        Datum::Int4(v) => i64::from(*v),
        Datum::Int8(v) => *v,
        Datum::Oid(v) => i64::from(*v),
        _ => 0,
    }
}

/// Double of a number argument.
pub(crate) fn f64_of(value: &Datum) -> f64 {
    match value {
        Datum::Float8(v) => *v,
        Datum::Float4(v) => f64::from(*v),
        Datum::Numeric(v) => numeric::to_f64(v),
        Datum::NumericNan => f64::NAN,
        Datum::NumericInf(negative) => numeric::infinity(*negative),
        other => i64_of(other) as f64,
    }
}

/// Truth of a boolean argument.
pub(crate) fn bool_of(value: &Datum) -> bool {
    matches!(value, Datum::Bool(true))
}

/// Interval of an interval argument.
pub(crate) fn interval_of(value: &Datum) -> Interval {
    match value {
        Datum::Interval(i) => *i,
        _ => Interval::default(),
    }
}

/// Document of a jsonb argument.
pub(crate) fn json_of(value: &Datum) -> &serde_json::Value {
    match value {
        Datum::Jsonb(v) => v,
        _ => &serde_json::Value::Null,
    }
}

/// Bytes of a bytea argument.
pub(crate) fn bytes_of(value: &Datum) -> &[u8] {
    match value {
        Datum::Bytea(b) => b,
        _ => &[],
    }
}

/// Texts of a text[] argument, NULLs left out.
pub(crate) fn words(value: &Datum) -> Vec<&str> {
    match value {
        Datum::Array(a) => a.items.iter().filter(|i| !i.is_null()).map(text_of).collect(),
        _ => Vec::new(),
    }
}
