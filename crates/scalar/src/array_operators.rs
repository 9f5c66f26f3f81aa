//! Operators over arrays: one behind the other, one in another.

use std::sync::Arc;

use braid_types::{
    ArrayValue, Datum, Dimension, SqlError, SqlResult, SqlState, SqlType, check_bounds,
};

use crate::EvalContext;
use crate::registry::{Eval, Table};

/// The elements of an array; of NULL none.
pub(crate) fn items_of(value: &Datum) -> &[Datum] {
    match value {
        Datum::Array(a) => &a.items,
        _ => &[],
    }
}

/// An array of items.
pub(crate) fn array(element: SqlType, items: Vec<Datum>) -> Datum {
    Datum::Array(Arc::new(ArrayValue::list(element, items)))
}

/// An array of values, which may be arrays themselves: then it has one dimension more.
///
/// # Errors
/// 2202E for arrays of different or no dimensions, 22004 for NULL among them.
pub fn array_of_values(element: &SqlType, items: Vec<Datum>) -> SqlResult<Datum> {
    let SqlType::Array(inner) = element else { return Ok(array(element.clone(), items)) };
    let mut parts = Vec::with_capacity(items.len());
    for item in items {
        match item {
            Datum::Array(part) if part.items.is_empty() => {
                return Err(SqlError::new(SqlState("2202E"), "cannot accumulate empty arrays"));
            }
            Datum::Array(part) => parts.push(part),
            _ => {
                return Err(SqlError::new(SqlState("22004"), "cannot accumulate null arrays"));
            }
        }
    }
    let differ = |p: &Arc<ArrayValue>| p.dimensions() != parts[0].dimensions();
    if parts.iter().any(differ) {
        let message = "cannot accumulate arrays of different dimensionality";
        return Err(SqlError::new(SqlState("2202E"), message));
    }
    Ok(Datum::Array(Arc::new(ArrayValue::stack((**inner).clone(), &parts)?)))
}

fn incompatible(detail: impl Into<String>) -> SqlError {
    SqlError::new(SqlState("2202E"), "cannot concatenate incompatible arrays").with_detail(detail)
}

fn concat(a: &[Datum], _: &EvalContext) -> SqlResult<Datum> {
    let (left, right) = match (&a[0], &a[1]) {
        (Datum::Array(left), Datum::Array(right)) => (left, right),
        (Datum::Null, other) | (other, Datum::Null) => return Ok(other.clone()),
        _ => return Ok(Datum::Null),
    };
    if right.items.is_empty() {
        return Ok(a[0].clone());
    }
    if left.items.is_empty() {
        return Ok(a[1].clone());
    }
    let (l, r) = (left.dimensions(), right.dimensions());
    let (own, inner) = match l.len() as i64 - r.len() as i64 {
        0 => (join(&l, r[0].length), l[1..] == r[1..]),
        1 => (join(&l, 1), l[1..] == r[..]),
        -1 => (join(&r, 1), r[1..] == l[..]),
        _ => {
            let (l, r) = (l.len(), r.len());
            return Err(incompatible(format!(
                "Arrays of {l} and {r} dimensions are not compatible for concatenation."
            )));
        }
    };
    if !inner {
        let what = if l.len() == r.len() { "element dimensions" } else { "dimensions" };
        return Err(incompatible(format!(
            "Arrays with differing {what} are not compatible for concatenation."
        )));
    }
    check_bounds(&own)?;
    let items = [&left.items[..], &right.items[..]].concat();
    Ok(Datum::Array(Arc::new(ArrayValue::of(left.element.clone(), items, &own))))
}

/// Dimensions of which the first is longer.
fn join(dimensions: &[Dimension], more: usize) -> Vec<Dimension> {
    let mut joined = dimensions.to_vec();
    joined[0].length += more;
    joined
}

/// The list to which an element is added, and its first subscript.
fn list_of(value: &Datum) -> SqlResult<(&[Datum], i32)> {
    let Datum::Array(array) = value else { return Ok((&[], 1)) };
    match array.dimensions().as_slice() {
        [] => Ok((&[], 1)),
        [one] => Ok((&array.items, one.lower)),
        _ => {
            Err(SqlError::new(SqlState("22000"), "argument must be empty or one-dimensional array"))
        }
    }
}

fn with_element(value: &Datum, element: &Datum, at_start: bool) -> SqlResult<Datum> {
    let ty = match value {
        Datum::Array(array) => array.element.clone(),
        _ => element.implied_type(),
    };
    let (items, lower) = list_of(value)?;
    if at_start && lower == i32::MIN {
        let state = SqlState::NUMERIC_VALUE_OUT_OF_RANGE;
        return Err(SqlError::new(state, "integer out of range"));
    }
    let one = std::slice::from_ref(element);
    let items = if at_start { [one, items].concat() } else { [items, one].concat() };
    let laid = [Dimension { lower, length: items.len() }];
    check_bounds(&laid)?;
    Ok(Datum::Array(Arc::new(ArrayValue::of(ty, items, &laid))))
}

/// Adds the operators of this file.
pub(crate) fn fill(t: &mut Table) {
    t.add("||(anyarray, anyarray) anyarray", concat).lax();
    t.add("array_cat(anyarray, anyarray) anyarray -- both arrays one behind the other", concat)
        .lax();
    let append: Eval = |a, _| with_element(&a[0], &a[1], false);
    t.add("||(anyarray, anyelement) anyarray", append).lax();
    t.add("array_append(anyarray, anyelement) anyarray -- with an element at the end", append)
        .lax();
    let prepend: Eval = |a, _| with_element(&a[1], &a[0], true);
    t.add("||(anyelement, anyarray) anyarray", prepend).lax();
    t.add("array_prepend(anyelement, anyarray) anyarray -- with an element at the start", prepend)
        .lax();
    t.add("@>(anyarray, anyarray) bool -- whether the left side holds the right one", |a, _| {
        Ok(Datum::Bool(contains(&a[0], &a[1])))
    });
    t.add("<@(anyarray, anyarray) bool -- whether the right side holds the left one", |a, _| {
        Ok(Datum::Bool(contains(&a[1], &a[0])))
    });
    t.add("&&(anyarray, anyarray) bool -- whether the arrays have an element in common", |a, _| {
        let (left, right) = (items_of(&a[0]), items_of(&a[1]));
        Ok(Datum::Bool(
            left.iter().any(|x| !x.is_null() && right.iter().any(|y| x.cmp_sql(y).is_eq())),
        ))
    });
}

fn contains(left: &Datum, right: &Datum) -> bool {
    let left = items_of(left);
    items_of(right).iter().all(|x| !x.is_null() && left.iter().any(|y| x.cmp_sql(y).is_eq()))
}
