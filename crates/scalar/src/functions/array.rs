//! Functions over arrays.

use std::sync::Arc;

use braid_types::{ArrayValue, Datum, Dimension, SqlError, SqlResult, SqlState, SqlType};

use super::i64_of;
use crate::EvalContext;
use crate::array_operators::array;
use crate::limits::{MAX_ITEMS, too_many_items};
use crate::registry::Table;

fn items(value: &Datum) -> &[Datum] {
    match value {
        Datum::Array(a) => &a.items,
        _ => &[],
    }
}

fn element(value: &Datum) -> SqlType {
    match value {
        Datum::Array(a) => a.element.clone(),
        other => other.implied_type(),
    }
}

/// A dimension by its number, from 1.
fn dimension(value: &Datum, number: &Datum) -> Option<Dimension> {
    let Datum::Array(array) = value else { return None };
    let at = usize::try_from(i64_of(number)).ok()?.checked_sub(1)?;
    array.dimensions().get(at).copied()
}

fn number(value: Option<i32>) -> SqlResult<Datum> {
    Ok(value.map_or(Datum::Null, Datum::Int4))
}

fn dimensions(value: &Datum) -> Vec<Dimension> {
    match value {
        Datum::Array(array) => array.dimensions(),
        _ => Vec::new(),
    }
}

/// How many of the sorted bounds are not above a value.
fn bucket(value: &Datum, bounds: &Datum) -> SqlResult<Datum> {
    let Datum::Array(bounds) = bounds else { return Ok(Datum::Null) };
    if bounds.dimensions().len() > 1 {
        let text = "thresholds must be one-dimensional array";
        return Err(SqlError::new(SqlState("2202E"), text));
    }
    if bounds.items.iter().any(Datum::is_null) {
        let text = "thresholds array must not contain NULLs";
        return Err(SqlError::new(SqlState("22004"), text));
    }
    let below = bounds.items.partition_point(|bound| bound.cmp_sql(value).is_le());
    Ok(Datum::Int4(below as i32))
}

/// Adds the functions of this file.
pub(super) fn fill(t: &mut Table) {
    t.add("width_bucket(anyelement, anyarray) int4", |a, _| bucket(&a[0], &a[1]));
    t.add(
        "array_length(anyarray, int4) int4 -- length of a dimension, NULL of an empty array",
        |a, _| number(dimension(&a[0], &a[1]).map(|d| d.length as i32)),
    );
    t.add("array_upper(anyarray, int4) int4 -- highest subscript of a dimension", |a, _| {
        number(dimension(&a[0], &a[1]).map(|d| d.upper()))
    });
    t.add("array_lower(anyarray, int4) int4 -- lowest subscript of a dimension", |a, _| {
        number(dimension(&a[0], &a[1]).map(|d| d.lower))
    });
    t.add("cardinality(anyarray) int4 -- number of elements", |a, _| {
        Ok(Datum::Int4(items(&a[0]).len() as i32))
    });
    t.add("array_ndims(anyarray) int4 -- number of dimensions", |a, _| {
        number(Some(dimensions(&a[0]).len() as i32).filter(|n| *n > 0))
    });
    t.add("array_dims(anyarray) text -- the dimensions as text", |a, _| {
        let all = dimensions(&a[0]);
        let text: String = all.iter().map(|d| format!("[{}:{}]", d.lower, d.upper())).collect();
        Ok(if all.is_empty() { Datum::Null } else { Datum::text(text) })
    });
    searches(t);
    changes(t);
}

/// The first subscript of an array that is searched.
fn searched(value: &Datum) -> SqlResult<i32> {
    match dimensions(value).as_slice() {
        [] => Ok(1),
        [one] => Ok(one.lower),
        _ => Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "searching for elements in multidimensional arrays is not supported",
        )),
    }
}

fn searches(t: &mut Table) {
    t.add(
        "array_position(anyarray, anyelement) int4 -- subscript of the first such element",
        |a, _| {
            if a[0].is_null() {
                return Ok(Datum::Null);
            }
            let lower = searched(&a[0])?;
            let found = items(&a[0]).iter().position(|i| i.cmp_sql(&a[1]).is_eq());
            number(found.map(|at| at as i32 + lower))
        },
    )
    .lax();
    t.add(
        "array_position(anyarray, anyelement, int4) int4 -- the first from a subscript on",
        |a, _| {
            if a[0].is_null() {
                return Ok(Datum::Null);
            }
            let lower = searched(&a[0])?;
            // Where it is not looked further, nobody looks at the position.
            let all = items(&a[0]);
            if all.is_empty() || (a[1].is_null() && !all.iter().any(Datum::is_null)) {
                return Ok(Datum::Null);
            }
            if a[2].is_null() {
                return Err(SqlError::new(SqlState("22004"), "initial position must not be null"));
            }
            let skipped = usize::try_from(i64_of(&a[2]) - i64::from(lower)).unwrap_or(0);
            let mut rest = all.iter().skip(skipped);
            let found = rest.position(|i| i.cmp_sql(&a[1]).is_eq());
            number(found.map(|at| (at + skipped) as i32 + lower))
        },
    )
    .lax();
    t.add(
        "array_positions(anyarray, anyelement) int4[] -- subscripts of all such elements",
        |a, _| {
            if a[0].is_null() {
                return Ok(Datum::Null);
            }
            let lower = searched(&a[0])?;
            let found = items(&a[0])
                .iter()
                .enumerate()
                .filter(|(_, i)| i.cmp_sql(&a[1]).is_eq())
                .map(|(at, _)| Datum::Int4(at as i32 + lower))
                .collect();
            Ok(array(SqlType::Int4, found))
        },
    )
    .lax();
}

fn changes(t: &mut Table) {
    t.add("array_remove(anyarray, anyelement) anyarray -- without these elements", |a, _| {
        if a[0].is_null() {
            return Ok(Datum::Null);
        }
        let all = dimensions(&a[0]);
        if all.len() > 1 {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "removing elements from multidimensional arrays is not supported",
            ));
        }
        let kept = items(&a[0]).iter().filter(|i| i.cmp_sql(&a[1]).is_ne()).cloned();
        let kept: Vec<Datum> = kept.collect();
        let laid = all.iter().map(|d| Dimension { length: kept.len(), ..*d });
        Ok(laid_out(element(&a[0]), kept.clone(), &laid.collect::<Vec<_>>()))
    })
    .lax();
    t.add(
        "array_replace(anyarray, anyelement, anyelement) anyarray -- these elements replaced",
        |a, _| {
            let Datum::Array(whole) = &a[0] else { return Ok(Datum::Null) };
            let replaced = whole
                .items
                .iter()
                .map(|i| if i.cmp_sql(&a[1]).is_eq() { a[2].clone() } else { i.clone() })
                .collect();
            Ok(Datum::Array(Arc::new(whole.like(whole.element.clone(), replaced))))
        },
    )
    .lax();
    t.add("array_fill(anyelement, int4[]) anyarray -- an array of one value", filled).lax();
    t.add("array_fill(anyelement, int4[], int4[]) anyarray -- with first subscripts", filled).lax();
    t.add("trim_array(anyarray, int4) anyarray -- without so many elements at the end", |a, _| {
        let Datum::Array(whole) = &a[0] else { return Ok(Datum::Null) };
        let n = i64_of(&a[1]);
        let first = whole.dimensions().first().copied();
        let length = first.map_or(0, |d| d.length as i64);
        if n < 0 || n > length {
            return Err(SqlError::new(
                SqlState("2202E"),
                format!("number of elements to trim must be between 0 and {length}"),
            ));
        }
        let upper = first.map(|d| d.upper().wrapping_sub(n as i32));
        Ok(Datum::Array(Arc::new(whole.slice(&[(None, upper)]))))
    });
}

fn laid_out(element: SqlType, items: Vec<Datum>, dimensions: &[Dimension]) -> Datum {
    Datum::Array(Arc::new(ArrayValue::of(element, items, dimensions)))
}

/// `array_fill`.
fn filled(a: &[Datum], _: &EvalContext) -> SqlResult<Datum> {
    let null = |what: &str| SqlError::new(SqlState("22004"), what.to_string());
    if a[1..].iter().any(Datum::is_null) {
        return Err(null("dimension array or low bound array cannot be null"));
    }
    let (sizes, lowers) = (items(&a[1]), a.get(2).map(items));
    if sizes.iter().chain(lowers.unwrap_or_default()).any(Datum::is_null) {
        return Err(null("dimension values cannot be null"));
    }
    if lowers.is_some_and(|l| l.len() != sizes.len()) {
        return Err(SqlError::new(SqlState("2202E"), "wrong number of array subscripts")
            .with_detail("Low bound array has different size than dimensions array."));
    }
    braid_types::check_dimensions(sizes.len())?;
    let (mut laid, mut count) = (Vec::new(), 1usize);
    for (at, size) in sizes.iter().enumerate() {
        let length = usize::try_from(i64_of(size)).map_err(|_| too_many_items())?;
        count = count.checked_mul(length).filter(|n| *n <= MAX_ITEMS).ok_or_else(too_many_items)?;
        let lower = lowers.map_or(1, |l| i64_of(&l[at]) as i32);
        laid.push(Dimension { lower, length });
    }
    let count = if sizes.is_empty() { 0 } else { count };
    braid_types::check_bounds(&laid)?;
    Ok(laid_out(a[0].implied_type(), vec![a[0].clone(); count], &laid))
}
