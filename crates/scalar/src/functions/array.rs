//! Functions over arrays.

use braid_types::{Datum, SqlError, SqlState, SqlType};

use super::i64_of;
use crate::operators::array;
use crate::registry::{Eval, Table};

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

/// Adds the functions of this file.
pub(super) fn fill(t: &mut Table) {
    let length: Eval = |a, _| {
        let n = items(&a[0]).len();
        Ok(if i64_of(&a[1]) == 1 && n > 0 { Datum::Int4(n as i32) } else { Datum::Null })
    };
    t.add(
        "array_length(anyarray, int4) int4 -- number of elements, NULL of an empty array",
        length,
    );
    t.add("array_upper(anyarray, int4) int4 -- highest subscript", length);
    t.add("array_lower(anyarray, int4) int4 -- lowest subscript", |a, _| {
        let some = i64_of(&a[1]) == 1 && !items(&a[0]).is_empty();
        Ok(if some { Datum::Int4(1) } else { Datum::Null })
    });
    t.add("cardinality(anyarray) int4 -- number of elements", |a, _| {
        Ok(Datum::Int4(items(&a[0]).len() as i32))
    });
    t.add("array_ndims(anyarray) int4 -- number of dimensions", |a, _| {
        Ok(if items(&a[0]).is_empty() { Datum::Null } else { Datum::Int4(1) })
    });
    t.add("array_dims(anyarray) text -- the dimensions as text", |a, _| {
        let n = items(&a[0]).len();
        Ok(if n == 0 { Datum::Null } else { Datum::text(format!("[1:{n}]")) })
    });
    t.add(
        "array_position(anyarray, anyelement) int4 -- subscript of the first such element",
        |a, _| {
            if a[0].is_null() {
                return Ok(Datum::Null);
            }
            let found = items(&a[0]).iter().position(|i| i.cmp_sql(&a[1]).is_eq());
            Ok(found.map_or(Datum::Null, |at| Datum::Int4(at as i32 + 1)))
        },
    )
    .lax();
    t.add(
        "array_positions(anyarray, anyelement) int4[] -- subscripts of all such elements",
        |a, _| {
            if a[0].is_null() {
                return Ok(Datum::Null);
            }
            let found = items(&a[0])
                .iter()
                .enumerate()
                .filter(|(_, i)| i.cmp_sql(&a[1]).is_eq())
                .map(|(at, _)| Datum::Int4(at as i32 + 1))
                .collect();
            Ok(array(SqlType::Int4, found))
        },
    )
    .lax();
    t.add("array_remove(anyarray, anyelement) anyarray -- without these elements", |a, _| {
        if a[0].is_null() {
            return Ok(Datum::Null);
        }
        let kept = items(&a[0]).iter().filter(|i| i.cmp_sql(&a[1]).is_ne()).cloned().collect();
        Ok(array(element(&a[0]), kept))
    })
    .lax();
    t.add(
        "array_replace(anyarray, anyelement, anyelement) anyarray -- these elements replaced",
        |a, _| {
            if a[0].is_null() {
                return Ok(Datum::Null);
            }
            let replaced = items(&a[0])
                .iter()
                .map(|i| if i.cmp_sql(&a[1]).is_eq() { a[2].clone() } else { i.clone() })
                .collect();
            Ok(array(element(&a[0]), replaced))
        },
    )
    .lax();
    t.add("array_fill(anyelement, int4[]) anyarray -- an array of one value", |a, _| {
        let sizes = items(&a[1]);
        let [size] = sizes else {
            return Err(SqlError::unsupported("an array of several dimensions"));
        };
        let n = i64_of(size);
        if !(0..=10_000_000).contains(&n) {
            return Err(SqlError::new(
                SqlState::PROGRAM_LIMIT_EXCEEDED,
                "array size exceeds the maximum allowed",
            ));
        }
        Ok(array(a[0].implied_type(), vec![a[0].clone(); n as usize]))
    })
    .lax();
    t.add("trim_array(anyarray, int4) anyarray -- without so many elements at the end", |a, _| {
        let all = items(&a[0]);
        let n = i64_of(&a[1]);
        if n < 0 || n > all.len() as i64 {
            return Err(SqlError::new(
                SqlState("2202E"),
                format!("number of elements to trim must be between 0 and {}", all.len()),
            ));
        }
        Ok(array(element(&a[0]), all[..all.len() - n as usize].to_vec()))
    });
}
