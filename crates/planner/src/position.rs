//! Where a value lies between two others, as a fraction of the way.
//!
//! Numbers, dates and times by their distance; texts and bytes by the first bytes in which the two
//! ends differ, read as a fraction to the base of 256. Of other types nothing is known but the
//! order: such a value lies in the middle.

use std::borrow::Cow;

use braid_types::Datum;

/// Bytes that are looked at behind the common start: what is behind them is less than a rounding.
const BYTES: usize = 8;

/// How far `value` is on the way from `low` to `high`, from 0 to 1.
pub fn between(low: &Datum, high: &Datum, value: &Datum) -> f64 {
    if let (Some(a), Some(b), Some(v)) = (bytes(low), bytes(high), bytes(value)) {
        let common = a.iter().zip(b.iter()).take_while(|(x, y)| x == y).count();
        let at = |bytes: &[u8]| fraction(bytes.get(common..).unwrap_or_default());
        // Between two values that begin alike there are only such that begin so too.
        return share(at(&a), at(&b), at(&v));
    }
    match (number(low), number(high), number(value)) {
        (Some(a), Some(b), Some(v)) => share(a, b, v),
        _ => 0.5,
    }
}

fn share(low: f64, high: f64, value: f64) -> f64 {
    let way = high - low;
    let part = (value - low) / way;
    if way > 0.0 && part.is_finite() { part.clamp(0.0, 1.0) } else { 0.5 }
}

/// `0.b1 b2 b3 ..` to the base of 256.
fn fraction(bytes: &[u8]) -> f64 {
    bytes.iter().take(BYTES).rev().fold(0.0, |sum, byte| (sum + f64::from(*byte)) / 256.0)
}

fn bytes(value: &Datum) -> Option<Cow<'_, [u8]>> {
    Some(match value {
        Datum::Text(text) => text.as_bytes().into(),
        Datum::Bytea(bytes) => (&**bytes).into(),
        Datum::Ordered(value) => value.key(),
        Datum::Uuid(bytes) => bytes[..].into(),
        _ => return None,
    })
}

fn number(value: &Datum) -> Option<f64> {
    Some(match value {
        Datum::Bool(v) => f64::from(u8::from(*v)),
        Datum::Int2(v) => f64::from(*v),
        Datum::Int4(v) | Datum::Date(v) => f64::from(*v),
        Datum::Int8(v) | Datum::Time(v) | Datum::Timestamp(v) | Datum::TimestampTz(v) => *v as f64,
        Datum::Oid(v) => f64::from(*v),
        Datum::Float4(v) => f64::from(*v),
        Datum::Float8(v) => *v,
        Datum::Numeric(v) => v.to_string().parse().ok()?,
        Datum::Interval(v) => v.length() as f64,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn numbers_and_times_by_distance() {
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-6, "{a} {b}");
        near(between(&Datum::Int4(10), &Datum::Int4(20), &Datum::Int8(15)), 0.5);
        near(between(&Datum::Date(0), &Datum::Date(100), &Datum::Date(25)), 0.25);
        near(between(&Datum::Timestamp(0), &Datum::Timestamp(10), &Datum::Timestamp(9)), 0.9);
        let numeric = |s: &str| Datum::Numeric(Arc::new(s.parse().unwrap()));
        near(between(&numeric("0.5"), &numeric("1.5"), &numeric("0.75")), 0.25);
        near(between(&Datum::Float8(0.0), &Datum::Float8(f64::INFINITY), &Datum::Float8(1.0)), 0.0);
        near(between(&Datum::Float8(0.0), &Datum::Float8(f64::NAN), &Datum::Float8(1.0)), 0.5);
        near(between(&Datum::Int4(3), &Datum::Int4(3), &Datum::Int4(3)), 0.5);
    }

    #[test]
    fn texts_by_the_bytes_in_which_the_ends_differ() {
        let text = |s: &str| Datum::text(s);
        let at = between(&text("item-a"), &text("item-e"), &text("item-c"));
        assert!((at - 0.5).abs() < 1e-6, "{at}");
        let deep = |s: &str| text(&format!("{}{s}", "a".repeat(20)));
        let long = between(&deep("0"), &deep("8"), &deep("2"));
        assert!((long - 0.25).abs() < 1e-6, "{long}");
        assert!(
            between(&text(""), &text("z"), &text("b")) < between(&text(""), &text("z"), &text("y"))
        );
        let uuid = |b: u8| Datum::Uuid([b; 16]);
        assert!((between(&uuid(0), &uuid(200), &uuid(100)) - 0.5).abs() < 0.01);
    }
}
