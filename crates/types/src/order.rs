//! The order of values, and equality as GROUP BY sees it.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use bigdecimal::BigDecimal;

use crate::{ArrayValue, Datum, RangeValue, jsonb, numeric};

fn float_order(a: f64, b: f64) -> Ordering {
    // NaN is equal to itself and greater than everything else; the zeros are equal.
    match (a.is_nan(), b.is_nan()) {
        (true, true) => Ordering::Equal,
        (true, false) => Ordering::Greater,
        (false, true) => Ordering::Less,
        (false, false) => a.partial_cmp(&b).expect("neither is NaN"),
    }
}

fn integer(value: &Datum) -> Option<i64> {
    Some(match value {
        Datum::Int2(v) => i64::from(*v),
        Datum::Int4(v) => i64::from(*v),
        Datum::Int8(v) => *v,
        Datum::Oid(v) => i64::from(*v),
        _ => return None,
    })
}

fn float(value: &Datum) -> Option<f64> {
    Some(match value {
        Datum::Float4(v) => f64::from(*v),
        Datum::Float8(v) => *v,
        Datum::Numeric(v) => numeric::to_f64(v),
        Datum::NumericNan => f64::NAN,
        Datum::NumericInf(negative) => numeric::infinity(*negative),
        other => integer(other)? as f64,
    })
}

fn decimal(value: &Datum) -> Option<std::borrow::Cow<'_, BigDecimal>> {
    match value {
        Datum::Numeric(v) => Some(std::borrow::Cow::Borrowed(v)),
        other => Some(std::borrow::Cow::Owned(numeric::from_i128(integer(other)?.into()))),
    }
}

impl Datum {
    /// The order of a PostgreSQL btree; text by bytes. Integers of different widths, oids, floats
    /// and numerics compare by value. NULL comes after everything and equals NULL: callers that
    /// need SQL's NULL logic test for it first.
    pub fn cmp_sql(&self, other: &Datum) -> Ordering {
        match (self, other) {
            (Datum::Null, Datum::Null) => Ordering::Equal,
            (Datum::Null, _) => Ordering::Greater,
            (_, Datum::Null) => Ordering::Less,
            (Datum::Bool(a), Datum::Bool(b)) => a.cmp(b),
            (Datum::Text(a), Datum::Text(b)) => a.as_bytes().cmp(b.as_bytes()),
            (Datum::Bytea(a), Datum::Bytea(b)) => a.cmp(b),
            (Datum::Date(a), Datum::Date(b)) => a.cmp(b),
            (Datum::Time(a), Datum::Time(b)) => a.cmp(b),
            (
                Datum::Timestamp(a) | Datum::TimestampTz(a),
                Datum::Timestamp(b) | Datum::TimestampTz(b),
            ) => a.cmp(b),
            (Datum::Interval(a), Datum::Interval(b)) => a.length().cmp(&b.length()),
            (Datum::Uuid(a), Datum::Uuid(b)) => a.cmp(b),
            (Datum::Ordered(a), Datum::Ordered(b)) => a.compare(b),
            (Datum::Range(a), Datum::Range(b)) => a.compare(b),
            (Datum::Multirange(a), Datum::Multirange(b)) => a.compare(b),
            (Datum::Geometry(a), Datum::Geometry(b)) => a.order(b),
            (Datum::Enum(a), Datum::Enum(b)) => a.place.cmp(&b.place),
            (Datum::Jsonb(a), Datum::Jsonb(b)) => jsonb::compare(a, b),
            (Datum::Json(a), Datum::Json(b)) => a.cmp(b),
            (Datum::Array(a), Datum::Array(b)) => {
                sequence(&a.items, &b.items).then_with(|| match a.shape == b.shape {
                    true => Ordering::Equal,
                    false => dimensions(a, b),
                })
            }
            (Datum::Record(a), Datum::Record(b)) => sequence(a, b),
            (Datum::NumericNan, Datum::NumericNan) => Ordering::Equal,
            _ => self.cmp_number(other),
        }
    }

    fn cmp_number(&self, other: &Datum) -> Ordering {
        if let (Some(a), Some(b)) = (integer(self), integer(other)) {
            return a.cmp(&b);
        }
        let exact = |d: &Datum| !matches!(d, Datum::Float4(_) | Datum::Float8(_));
        if exact(self) && exact(other) {
            match (self, other) {
                (Datum::NumericNan, _) => return Ordering::Greater,
                (_, Datum::NumericNan) => return Ordering::Less,
                (Datum::NumericInf(a), Datum::NumericInf(b)) => return b.cmp(a),
                (Datum::NumericInf(negative), _) => return beyond(*negative),
                (_, Datum::NumericInf(negative)) => return beyond(*negative).reverse(),
                _ => {}
            }
            if let (Some(a), Some(b)) = (decimal(self), decimal(other)) {
                return numeric::compare(&a, &b);
            }
        }
        match (float(self), float(other)) {
            (Some(a), Some(b)) => float_order(a, b),
            // Values of unlike kinds never meet in a bound expression; any fixed order does.
            _ => kind(self).cmp(&kind(other)),
        }
    }
}

/// Where an infinity stands beside finite values.
fn beyond(negative: bool) -> Ordering {
    if negative { Ordering::Less } else { Ordering::Greater }
}

/// The order of arrays of equal elements: by the number of dimensions, their lengths, their first
/// subscripts.
fn dimensions(a: &ArrayValue, b: &ArrayValue) -> Ordering {
    let (a, b) = (a.dimensions(), b.dimensions());
    let lengths = || a.iter().map(|d| d.length).cmp(b.iter().map(|d| d.length));
    let lowers = || a.iter().map(|d| d.lower).cmp(b.iter().map(|d| d.lower));
    a.len().cmp(&b.len()).then_with(lengths).then_with(lowers)
}

fn sequence(a: &[Datum], b: &[Datum]) -> Ordering {
    a.iter()
        .zip(b)
        .map(|(x, y)| x.cmp_sql(y))
        .find(|o| o.is_ne())
        .unwrap_or_else(|| a.len().cmp(&b.len()))
}

fn kind(value: &Datum) -> u8 {
    match value {
        Datum::Bool(_) => 0,
        Datum::Int2(_) | Datum::Int4(_) | Datum::Int8(_) | Datum::Oid(_) => 1,
        Datum::Float4(_) | Datum::Float8(_) => 1,
        Datum::Numeric(_) | Datum::NumericNan | Datum::NumericInf(_) => 1,
        Datum::Text(_) => 2,
        Datum::Bytea(_) => 3,
        Datum::Date(_) => 4,
        Datum::Time(_) => 5,
        Datum::Timestamp(_) | Datum::TimestampTz(_) => 6,
        Datum::Interval(_) => 7,
        Datum::Uuid(_) => 8,
        Datum::Jsonb(_) | Datum::Json(_) => 9,
        Datum::Array(_) => 10,
        Datum::Record(_) => 11,
        Datum::Enum(_) => 12,
        Datum::Ordered(_) => 13,
        Datum::Range(_) => 14,
        Datum::Multirange(_) => 15,
        Datum::Geometry(_) => 16,
        Datum::Null => 17,
    }
}

/// A row used as hash key: equal as GROUP BY and DISTINCT mean it (NULL equals NULL, 1.0 equals
/// 1.00, NaN equals NaN).
#[derive(Clone, Debug, Default)]
pub struct GroupKey(pub Vec<Datum>);

impl PartialEq for GroupKey {
    fn eq(&self, other: &GroupKey) -> bool {
        sequence(&self.0, &other.0).is_eq()
    }
}

impl Eq for GroupKey {}

impl Hash for GroupKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for value in &self.0 {
            hash_datum(value, state);
        }
    }
}

fn hash_range<H: Hasher>(range: &RangeValue, state: &mut H) {
    range.empty.hash(state);
    hash_datum(&range.lower, state);
    hash_datum(&range.upper, state);
}

fn hash_datum<H: Hasher>(value: &Datum, state: &mut H) {
    kind(value).hash(state);
    match value {
        Datum::Null => {}
        Datum::Bool(b) => b.hash(state),
        Datum::Text(s) => s.as_bytes().hash(state),
        Datum::Bytea(b) => b.hash(state),
        Datum::Date(d) => d.hash(state),
        Datum::Time(t) | Datum::Timestamp(t) | Datum::TimestampTz(t) => t.hash(state),
        Datum::Interval(i) => i.length().hash(state),
        Datum::Uuid(u) => u.hash(state),
        Datum::Enum(value) => value.place.hash(state),
        Datum::Ordered(value) => value.hash_key(state),
        Datum::Range(range) => hash_range(range, state),
        Datum::Multirange(value) => value.ranges().iter().for_each(|r| hash_range(r, state)),
        Datum::Geometry(shape) => shape.bytes().hash(state),
        Datum::Json(text) => text.hash(state),
        Datum::Array(a) => {
            for item in &a.items {
                hash_datum(item, state);
            }
        }
        Datum::Record(fields) => {
            for field in fields.iter() {
                hash_datum(field, state);
            }
        }
        // Equal documents have equal normal forms but for numbers' trailing zeros.
        Datum::Jsonb(v) => jsonb_hash(v, state),
        // Numbers of any kind that are equal must hash alike: through the double they round to.
        number => {
            let f = float(number).unwrap_or(f64::NAN);
            let canonical = if f.is_nan() {
                f64::NAN.to_bits()
            } else if f == 0.0 {
                0
            } else {
                f.to_bits()
            };
            canonical.hash(state);
        }
    }
}

fn jsonb_hash<H: Hasher>(value: &serde_json::Value, state: &mut H) {
    match value {
        serde_json::Value::Null => 0u8.hash(state),
        serde_json::Value::Bool(b) => b.hash(state),
        serde_json::Value::String(s) => s.hash(state),
        serde_json::Value::Number(_) => 1u8.hash(state),
        serde_json::Value::Array(items) => items.iter().for_each(|i| jsonb_hash(i, state)),
        serde_json::Value::Object(map) => map.iter().for_each(|(k, v)| {
            k.hash(state);
            jsonb_hash(v, state);
        }),
    }
}
