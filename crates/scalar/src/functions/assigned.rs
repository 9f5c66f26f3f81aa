//! Arrays and documents with something else at a subscript: what `SET a[2] = ..`, `SET a[2:3] = ..`
//! and `SET data['k'] = ..` are read as.
//!
//! ```text
//!   array_with(a, ARRAY[2], x)                    a[2] = x
//!   array_with(a, ARRAY[2], ARRAY[3], part)       a[2:3] = part; a NULL bound is that of the array
//!   array_with(p, ARRAY[0], x)                    p[0] = x, of a point or a segment
//!   jsonb_with(data, '["k", 0]', x)               data['k'][0] = x
//! ```
//! An array of one dimension grows, with NULLs between; documents get what is missing on the way.

use std::sync::Arc;

use braid_types::jsonb::serde_json::{Map, Value};
use braid_types::{
    ArrayValue, Datum, Dimension, Geometry, SqlError, SqlResult, SqlState, SqlType, check_bounds,
    jsonb,
};

use super::{i64_of, json_of};
use crate::registry::Table;

/// What stands for a bound that is NULL, where NULL stands for one that is left out.
pub const NULL_BOUND: i32 = i32::MIN;

fn subscript_error(text: &str) -> SqlError {
    SqlError::new(SqlState("2202E"), text)
}

fn wrong_number() -> SqlError {
    subscript_error("wrong number of array subscripts")
}

fn outside() -> SqlError {
    subscript_error("array subscript out of range")
}

/// Subscripts; `None`: NULL.
fn subscripts(value: &Datum) -> Vec<Option<i64>> {
    let Datum::Array(all) = value else { return Vec::new() };
    let one = |item: &Datum| (!item.is_null()).then(|| i64_of(item));
    all.items.iter().map(one).collect()
}

fn known(value: &Datum) -> SqlResult<Vec<i64>> {
    let all: Option<Vec<i64>> = subscripts(value).into_iter().collect();
    let known = all.filter(|all| !all.contains(&NULL_BOUND.into()));
    known.ok_or_else(|| {
        SqlError::new(SqlState("22004"), "array subscript in assignment must not be null")
    })
}

fn made(element: SqlType, items: Vec<Datum>, dimensions: &[Dimension]) -> SqlResult<Datum> {
    check_bounds(dimensions)?;
    Ok(Datum::Array(Arc::new(ArrayValue::of(element, items, dimensions))))
}

fn dimension(lower: i64, length: i64) -> SqlResult<Dimension> {
    let lower = i32::try_from(lower).map_err(|_| outside())?;
    Ok(Dimension { lower, length: usize::try_from(length).map_err(|_| outside())? })
}

/// Most places that an array may have.
const MAX_PLACES: i64 = 134_217_727;

/// An array of one dimension, grown to hold these subscripts.
fn grown(old: &ArrayValue, low: i64, high: i64) -> SqlResult<(Vec<Datum>, i64)> {
    let laid = old.dimensions();
    let Some(own) = laid.first() else {
        check_size(high - low + 1)?;
        return Ok((vec![Datum::Null; usize::try_from(high - low + 1).unwrap_or(0)], low));
    };
    let (from, to) = (i64::from(own.lower), i64::from(own.upper()));
    let (first, last) = (from.min(low), to.max(high));
    check_size(last - first + 1)?;
    let before = usize::try_from(from - first).unwrap_or(0);
    let behind = usize::try_from(last - to).unwrap_or(0);
    let nulls = |count| std::iter::repeat_n(Datum::Null, count);
    Ok((nulls(before).chain(old.items.iter().cloned()).chain(nulls(behind)).collect(), first))
}

fn check_size(places: i64) -> SqlResult<()> {
    if places > MAX_PLACES {
        let text = format!("array size exceeds the maximum allowed ({MAX_PLACES})");
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, text));
    }
    Ok(())
}

/// `p[i] = x` of a shape of two parts.
fn shape_part(a: &[Datum]) -> SqlResult<Datum> {
    let at = known(&a[1])?;
    let [at] = at.as_slice() else { return Err(wrong_number()) };
    let at = usize::try_from(*at).ok().filter(|at| *at < 2).ok_or_else(outside)?;
    let Datum::Geometry(shape) = &a[0] else { return Ok(a[0].clone()) };
    let mut changed = (**shape).clone();
    match (&mut changed, &a[2]) {
        (Geometry::Point(p), Datum::Float8(number)) if at == 0 => p.x = *number,
        (Geometry::Point(p), Datum::Float8(number)) => p.y = *number,
        (Geometry::Lseg(ends), Datum::Geometry(end)) => {
            if let Geometry::Point(end) = &**end {
                ends[at] = *end;
            }
        }
        _ => {}
    }
    Ok(Datum::Geometry(Arc::new(changed)))
}

/// `a[i] = x`.
fn element(old: &ArrayValue, at: &[i64], value: Datum) -> SqlResult<Datum> {
    let laid = old.dimensions();
    if laid.is_empty() {
        let dimensions = at.iter().map(|at| dimension(*at, 1)).collect::<SqlResult<Vec<_>>>()?;
        return made(old.element.clone(), vec![value], &dimensions);
    }
    if laid.len() != at.len() {
        return Err(wrong_number());
    }
    if let [at] = at {
        let (mut items, first) = grown(old, *at, *at)?;
        items[usize::try_from(at - first).map_err(|_| outside())?] = value;
        let own = dimension(first, items.len() as i64)?;
        return made(old.element.clone(), items, &[own]);
    }
    let mut place = 0;
    for (own, at) in laid.iter().zip(at) {
        let inside = i32::try_from(*at).ok().and_then(|at| own.place(at));
        place = place * own.length + inside.ok_or_else(outside)?;
    }
    let mut items = old.items.clone();
    items[place] = value;
    made(old.element.clone(), items, &laid)
}

/// The bounds of a part, those that are left out being the array's own.
fn bounds(laid: &[Dimension], low: &Datum, high: &Datum) -> SqlResult<Vec<(i64, i64)>> {
    let (low, high) = (subscripts(low), subscripts(high));
    if !laid.is_empty() && laid.len() < low.len() {
        return Err(wrong_number());
    }
    let mut out = Vec::new();
    for (at, (low, high)) in low.into_iter().zip(high).enumerate() {
        if [low, high].contains(&Some(NULL_BOUND.into())) {
            let text = "array subscript in assignment must not be null";
            return Err(SqlError::new(SqlState("22004"), text));
        }
        let own = laid.get(at);
        let given = |bound: Option<i64>, own: Option<i32>| {
            bound.or(own.map(i64::from)).ok_or_else(|| {
                subscript_error("array slice subscript must provide both boundaries").with_detail(
                    "When assigning to a slice of an empty array value, slice boundaries must be \
                     fully specified.",
                )
            })
        };
        let low = given(low, own.map(|own| own.lower))?;
        let high = given(high, own.map(Dimension::upper))?;
        if low > high {
            return Err(subscript_error("upper bound cannot be less than lower bound"));
        }
        check_size(high - low + 1)?;
        out.push((low, high));
    }
    let rest = laid.iter().skip(out.len());
    out.extend(rest.map(|own| (i64::from(own.lower), i64::from(own.upper()))));
    Ok(out)
}

/// `a[i:j] = part`.
fn part(old: &ArrayValue, low: &Datum, high: &Datum, given: &[Datum]) -> SqlResult<Datum> {
    let mut laid = old.dimensions();
    let bounds = bounds(&laid, low, high)?;
    let places: i64 = bounds.iter().map(|(low, high)| high - low + 1).product();
    if places > given.len() as i64 {
        return Err(subscript_error("source array too small"));
    }
    let mut items = old.items.clone();
    if laid.is_empty() {
        let made = bounds.iter().map(|(low, high)| dimension(*low, high - low + 1));
        laid = made.collect::<SqlResult<_>>()?;
        items = vec![Datum::Null; usize::try_from(places).unwrap_or(0)];
    } else if let [(low, high)] = bounds.as_slice() {
        let first;
        (items, first) = grown(old, *low, *high)?;
        laid = vec![dimension(first, items.len() as i64)?];
    }
    let within = |(own, (low, high)): (&Dimension, &(i64, i64))| {
        *low >= i64::from(own.lower) && *high <= i64::from(own.upper())
    };
    if !laid.iter().zip(&bounds).all(within) {
        return Err(outside());
    }
    let mut given = given.iter();
    let mut at: Vec<i64> = bounds.iter().map(|(low, _)| *low).collect();
    for _ in 0..places {
        let step = |place: usize, (own, at): (&Dimension, &i64)| {
            place * own.length + usize::try_from(at - i64::from(own.lower)).unwrap_or(0)
        };
        let place = laid.iter().zip(&at).fold(0, step);
        items[place] = given.next().cloned().unwrap_or(Datum::Null);
        // The last subscript runs fastest.
        for (at, (low, high)) in at.iter_mut().zip(&bounds).rev() {
            *at += 1;
            if *at <= *high {
                break;
            }
            *at = *low;
        }
    }
    made(old.element.clone(), items, &laid)
}

fn scalar_in_the_way() -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, "cannot replace existing key")
        .with_detail("The path assumes key is a composite object, but it is a scalar value.")
}

fn step_text(step: &Value) -> String {
    match step {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// What is put where nothing was: with all that the rest of the path needs.
fn fresh(path: &[Value], value: Value) -> Value {
    let mut out = value;
    for step in path.iter().rev().map(step_text) {
        out = match step.parse::<i64>() {
            Ok(at) => {
                let mut items = vec![Value::Null; usize::try_from(at).unwrap_or(0)];
                items.push(out);
                Value::Array(items)
            }
            Err(_) => Value::Object(Map::from_iter([(step, out)])),
        };
    }
    out
}

/// `data[path] = value`; `at` is the place in the path, for errors.
fn in_document(target: &mut Value, path: &[Value], at: usize, value: Value) -> SqlResult<()> {
    let Some(step) = path.get(at) else {
        *target = value;
        return Ok(());
    };
    let text = step_text(step);
    match target {
        Value::Object(map) => match map.get_mut(&text) {
            Some(inner) => in_document(inner, path, at + 1, value)?,
            None => {
                map.insert(text, fresh(&path[at + 1..], value));
            }
        },
        Value::Array(items) => {
            let given: i64 = text.parse().map_err(|_| {
                let place = at + 1;
                let text =
                    format!("path element at position {place} is not an integer: \"{text}\"");
                SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, text)
            })?;
            let place = if given < 0 { given + items.len() as i64 } else { given };
            let place = usize::try_from(place).map_err(|_| {
                let text = format!("path element at position {} is out of range: {given}", at + 1);
                SqlError::new(SqlState::INVALID_PARAMETER_VALUE, text)
            })?;
            check_size(place as i64)?;
            match items.get_mut(place) {
                Some(inner) => in_document(inner, path, at + 1, value)?,
                None => {
                    items.resize(place, Value::Null);
                    items.push(fresh(&path[at + 1..], value));
                }
            }
        }
        _ => return Err(scalar_in_the_way()),
    }
    Ok(())
}

fn with_value(document: &Datum, path: &Datum, value: &Datum) -> SqlResult<Datum> {
    let path = json_of(path).as_array().cloned().unwrap_or_default();
    if path.iter().any(Value::is_null) {
        let text = "jsonb subscript in assignment must not be null";
        return Err(SqlError::new(SqlState("22004"), text));
    }
    let mut out = match document {
        // What an empty document is, the first subscript says.
        Datum::Null if path.first().is_some_and(Value::is_number) => Value::Array(Vec::new()),
        Datum::Null => Value::Object(Map::new()),
        document => json_of(document).clone(),
    };
    let value = if value.is_null() { Value::Null } else { json_of(value).clone() };
    in_document(&mut out, &path, 0, value)?;
    Ok(jsonb::datum(jsonb::normalize(out)?))
}

/// An array, or an empty one for NULL.
fn array_of(value: &Datum, element: impl FnOnce() -> SqlType) -> Arc<ArrayValue> {
    match value {
        Datum::Array(array) => array.clone(),
        _ => Arc::new(ArrayValue::list(element(), Vec::new())),
    }
}

/// Adds the functions of this file.
pub(super) fn fill(t: &mut Table) {
    t.add(
        "array_with(anyarray, int4[], anyelement) anyarray -- with another element at subscripts",
        |a, _| {
            let old = array_of(&a[0], || a[2].implied_type());
            element(&old, &known(&a[1])?, a[2].clone())
        },
    )
    .lax();
    t.add("array_with(point, int4[], float8) point", |a, _| shape_part(a));
    t.add("array_with(lseg, int4[], point) lseg", |a, _| shape_part(a));
    t.add(
        "array_with(anyarray, int4[], int4[], anyarray) anyarray -- with another part between \
         subscripts",
        |a, _| {
            let Datum::Array(given) = &a[3] else { return Ok(a[0].clone()) };
            let old = array_of(&a[0], || given.element.clone());
            part(&old, &a[1], &a[2], &given.items)
        },
    )
    .lax();
    t.add(
        "jsonb_with(jsonb, jsonb, jsonb) jsonb -- with another value at a path of subscripts",
        |a, _| with_value(&a[0], &a[1], &a[2]),
    )
    .lax();
}
