//! One SQL value.

use std::sync::Arc;

use bigdecimal::BigDecimal;

use crate::{ArrayValue, EnumValue, Geometry, MultirangeValue, Ordered, RangeValue};

/// One SQL value. The type is implied by the variant only up to its modifiers: `varchar(3)`,
/// `char(3)`, `text` and `name` are all [`Datum::Text`] (a `char(n)` keeps its blank padding).
///
/// Cloning is cheap: long values are shared.
#[derive(Clone, Debug)]
pub enum Datum {
    /// NULL of any type.
    Null,
    /// `boolean`.
    Bool(bool),
    /// `smallint`.
    Int2(i16),
    /// `integer`.
    Int4(i32),
    /// `bigint`.
    Int8(i64),
    /// `oid`, `regclass`, `regtype` and the other types that name objects.
    Oid(u32),
    /// `real`.
    Float4(f32),
    /// `double precision`.
    Float8(f64),
    /// Finite `numeric`; its scale is its display scale.
    Numeric(Arc<BigDecimal>),
    /// `numeric` NaN.
    NumericNan,
    /// `numeric` infinity; the flag is the sign, true for `-Infinity`.
    NumericInf(bool),
    /// `text`, `varchar`, `char`, `name`.
    Text(Arc<str>),
    /// `bytea`.
    Bytea(Arc<[u8]>),
    /// Days since 2000-01-01; `i32::MIN` and `i32::MAX` are -infinity and infinity.
    Date(i32),
    /// Microseconds since midnight, 0 ..= 86,400,000,000.
    Time(i64),
    /// Microseconds since 2000-01-01 00:00; `i64::MIN` and `i64::MAX` are the infinities.
    Timestamp(i64),
    /// Microseconds since 2000-01-01 00:00 UTC; infinities as for `Timestamp`.
    TimestampTz(i64),
    /// `interval`.
    Interval(Interval),
    /// `uuid`, big-endian bytes.
    Uuid([u8; 16]),
    /// `jsonb`, normalised: object keys sorted as PostgreSQL does, no duplicates.
    Jsonb(Arc<serde_json::Value>),
    /// `json`, checked.
    Json(Arc<str>),
    /// A value of an enum type.
    Enum(EnumValue),
    /// A value of one of the types that are kept as bytes in their order: `inet`, `bit`, ...
    Ordered(Ordered),
    /// A range.
    Range(Arc<RangeValue>),
    /// Several ranges of one type.
    Multirange(Arc<MultirangeValue>),
    /// A shape in the plane.
    Geometry(Arc<Geometry>),
    /// Array.
    Array(Arc<ArrayValue>),
    /// Row value.
    Record(Arc<RecordValue>),
}

/// `interval`: three parts that are kept apart, as in PostgreSQL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Interval {
    /// Months.
    pub months: i32,
    /// Days.
    pub days: i32,
    /// Microseconds.
    pub micros: i64,
}

/// The fields of a row value.
#[derive(Clone, Debug)]
pub struct RecordValue {
    /// Names of the fields; a row made by `ROW(..)` has none.
    pub names: Option<Arc<[Arc<str>]>>,
    /// Values.
    pub fields: Vec<Datum>,
}

impl std::ops::Deref for RecordValue {
    type Target = [Datum];

    fn deref(&self) -> &[Datum] {
        &self.fields
    }
}

/// Bytes of a JSON tree.
fn tree_memory(value: &serde_json::Value) -> usize {
    use serde_json::Value;
    // An object keeps a hash beside each of its members.
    const MEMBER: usize = 48;
    size_of::<Value>()
        + match value {
            Value::String(s) => s.len(),
            Value::Array(items) => items.iter().map(tree_memory).sum(),
            Value::Object(members) => {
                members.iter().map(|(k, v)| k.len() + MEMBER + tree_memory(v)).sum()
            }
            _ => 0,
        }
}

impl Datum {
    /// A row value without names.
    pub fn record(fields: Vec<Datum>) -> Datum {
        Datum::Record(Arc::new(RecordValue { names: None, fields }))
    }

    /// Bytes that the value takes, those behind its pointers included.
    pub fn memory(&self) -> usize {
        // Two counts stand in front of what an Arc points to.
        const SHARED: usize = 16;
        size_of::<Datum>()
            + match self {
                Datum::Text(s) => SHARED + s.len(),
                Datum::Bytea(b) => SHARED + b.len(),
                Datum::Range(r) => SHARED + r.memory(),
                Datum::Multirange(m) => {
                    SHARED + m.ranges().iter().map(RangeValue::memory).sum::<usize>()
                }
                Datum::Geometry(g) => SHARED + g.memory(),
                Datum::Ordered(o) => SHARED + o.bytes().len(),
                Datum::Numeric(_) => SHARED + 64,
                Datum::Array(a) => SHARED + a.items.iter().map(Datum::memory).sum::<usize>(),
                Datum::Record(r) => SHARED + r.iter().map(Datum::memory).sum::<usize>(),
                Datum::Json(s) => SHARED + s.len(),
                Datum::Jsonb(v) => SHARED + tree_memory(v),
                _ => 0,
            }
    }

    /// Whether this is NULL.
    pub fn is_null(&self) -> bool {
        matches!(self, Datum::Null)
    }

    /// A text value.
    pub fn text(s: impl Into<Arc<str>>) -> Datum {
        Datum::Text(s.into())
    }
}
