//! `*=`, `*<` and their like: rows compared by the bytes that PostgreSQL keeps of their fields, so
//! that equal values that look different (1.0 and 1.00) differ.

use std::cmp::Ordering;

use braid_types::{Datum, SqlError, SqlResult, SqlState};

use crate::registry::Table;

/// The bytes of a value in their order: integers and other values of a machine's word as if they
/// had no sign.
fn image(value: &Datum) -> Vec<u8> {
    let word = |bits: i64| bits.to_be_bytes().to_vec();
    match value {
        Datum::Bool(v) => word(i64::from(*v)),
        Datum::Int2(v) => word(i64::from(*v)),
        Datum::Int4(v) | Datum::Date(v) => word(i64::from(*v)),
        Datum::Int8(v) | Datum::Time(v) | Datum::Timestamp(v) | Datum::TimestampTz(v) => word(*v),
        Datum::Oid(v) => word(i64::from(*v)),
        Datum::Float4(v) => word(i64::from(v.to_bits() as i32)),
        Datum::Float8(v) => word(v.to_bits() as i64),
        other => {
            let mut bytes = Vec::new();
            other.to_binary(&other.implied_type(), &mut bytes);
            bytes
        }
    }
}

fn compare(left: &Datum, right: &Datum) -> SqlResult<Ordering> {
    let (Datum::Record(left), Datum::Record(right)) = (left, right) else {
        return Ok(Ordering::Equal);
    };
    let mismatch = |text: String| SqlError::new(SqlState::DATATYPE_MISMATCH, text);
    for (at, (a, b)) in left.iter().zip(right.iter()).enumerate() {
        let (own, other) = (a.implied_type(), b.implied_type());
        if !a.is_null() && !b.is_null() && !own.same_base(&other) {
            let types = format!("{} and {}", own.base_name(), other.base_name());
            let column = at + 1;
            return Err(mismatch(format!(
                "cannot compare dissimilar column types {types} at record column {column}"
            )));
        }
        let order = match (a.is_null(), b.is_null()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => image(a).cmp(&image(b)),
        };
        if order.is_ne() {
            return Ok(order);
        }
    }
    match left.len() == right.len() {
        true => Ok(Ordering::Equal),
        false => {
            let text = "cannot compare record types with different numbers of columns";
            Err(mismatch(text.to_string()))
        }
    }
}

/// Adds the operators of this file.
pub(super) fn fill(t: &mut Table) {
    t.add("*=(record, record) bool -- whether two rows are the same in each byte", |a, _| {
        compare(&a[0], &a[1]).map(|order| Datum::Bool(order.is_eq()))
    });
    t.add("*<>(record, record) bool -- whether two rows differ in a byte", |a, _| {
        compare(&a[0], &a[1]).map(|order| Datum::Bool(order.is_ne()))
    });
    t.add("*<(record, record) bool -- whether a row is before another by their bytes", |a, _| {
        compare(&a[0], &a[1]).map(|order| Datum::Bool(order.is_lt()))
    });
    t.add("*<=(record, record) bool -- whether it is before it, or the same", |a, _| {
        compare(&a[0], &a[1]).map(|order| Datum::Bool(order.is_le()))
    });
    t.add("*>(record, record) bool -- whether it is behind it", |a, _| {
        compare(&a[0], &a[1]).map(|order| Datum::Bool(order.is_gt()))
    });
    t.add("*>=(record, record) bool -- whether it is behind it, or the same", |a, _| {
        compare(&a[0], &a[1]).map(|order| Datum::Bool(order.is_ge()))
    });
}
