//! Arrays as rows.

use braid_types::{CastContext, Datum, PRIVILEGES, SqlError, SqlResult, SqlState, SqlType};

use crate::functions::{bool_of, i64_of};
use crate::registry::{Rows, Table};
use crate::{EvalContext, convert_datum};

pub(super) fn items(value: &Datum) -> &[Datum] {
    match value {
        Datum::Array(a) => &a.items,
        _ => &[],
    }
}

fn unnest(a: &[Datum], _: &EvalContext) -> SqlResult<Rows> {
    let longest = a.iter().map(|v| items(v).len()).max().unwrap_or(0);
    let arrays = a.to_vec();
    Ok(Rows::numbered(longest, move |row| {
        arrays.iter().map(|v| items(v).get(row).cloned().unwrap_or(Datum::Null)).collect()
    }))
}

/// The subscripts of a dimension.
fn subscripts(a: &[Datum], reverse: bool) -> Rows {
    let Datum::Array(array) = &a[0] else { return Rows::none() };
    let at = usize::try_from(i64_of(&a[1])).ok().and_then(|n| n.checked_sub(1));
    let dimensions = array.dimensions();
    let Some(found) = at.and_then(|at| dimensions.get(at)) else { return Rows::none() };
    let row = |at| Ok(vec![Datum::Int4(at)]);
    let range = found.lower..=found.upper();
    if reverse { Rows::each(range.rev().map(row)) } else { Rows::each(range.map(row)) }
}

/// The rows of `grantee=letters/grantor`; a star behind a letter says that it may be handed on.
fn privileges(item: &str, c: &EvalContext) -> SqlResult<Vec<Vec<Datum>>> {
    let bad = || {
        let text = format!("invalid input syntax for type aclitem: \"{item}\"");
        SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, text)
    };
    let (rest, grantor) = item.rsplit_once('/').ok_or_else(bad)?;
    let (grantee, letters) = rest.rsplit_once('=').ok_or_else(bad)?;
    let role = |name: &str| match name {
        "" => Ok(Datum::Oid(0)),
        name => convert_datum(
            &Datum::text(name),
            &SqlType::Text,
            &SqlType::Regrole,
            CastContext::Explicit,
            c,
        ),
    };
    let (grantor, grantee) = (role(grantor)?, role(grantee)?);
    let mut rows = Vec::new();
    let mut letters = letters.chars().peekable();
    while let Some(letter) = letters.next() {
        let known = PRIVILEGES.iter().find(|(known, _)| *known == letter);
        let (_, name) = known.ok_or_else(bad)?;
        let grantable = letters.next_if_eq(&'*').is_some();
        let (name, grantable) = (Datum::text(*name), Datum::Bool(grantable));
        rows.push(vec![grantor.clone(), grantee.clone(), name, grantable]);
    }
    Ok(rows)
}

/// The numbers that the session's catalog answers with.
fn numbers(found: Option<Datum>) -> Vec<i64> {
    let number = |v: &Datum| match v {
        Datum::Int8(n) => *n,
        _ => 0,
    };
    found.iter().flat_map(|found| items(found).iter().map(number)).collect()
}

fn sequences(t: &mut Table) {
    t.rows("pg_sequence_parameters(oid) record -- what a sequence was declared with", |a, c| {
        let found = numbers(c.session.catalog_function("pg_sequence_parameters", a)?);
        let row = |one: &[i64]| {
            let mut row: Vec<Datum> = one[..4].iter().map(|n| Datum::Int8(*n)).collect();
            let (cycle, ty) = (Datum::Bool(one[4] != 0), Datum::Oid(one[6] as u32));
            row.extend([cycle, Datum::Int8(one[5]), ty]);
            row
        };
        Ok(found.chunks_exact(7).map(row).collect())
    })
    .columns(&[
        ("start_value", "int8"),
        ("minimum_value", "int8"),
        ("maximum_value", "int8"),
        ("increment", "int8"),
        ("cycle_option", "bool"),
        ("cache_size", "int8"),
        ("data_type", "oid"),
    ]);
}

/// Adds the functions of this file.
pub(super) fn fill(t: &mut Table) {
    t.rows("unnest(anyarray) anyelement -- the elements of an array", unnest);
    // Several arrays in step, each of its own type; a NULL array is an empty one.
    t.rows("unnest(any, ...any) record", unnest).elements().lax();
    t.rows("generate_subscripts(anyarray, int4) int4 -- the subscripts of an array", |a, _| {
        Ok(subscripts(a, false))
    });
    t.rows("generate_subscripts(anyarray, int4, bool) int4", |a, _| {
        Ok(subscripts(a, bool_of(&a[2])))
    });
    t.rows("_pg_expandarray(anyarray) record -- elements with their subscripts", |a, _| {
        let array = a[0].clone();
        Ok(Rows::numbered(items(&a[0]).len(), move |at| {
            vec![items(&array)[at].clone(), Datum::Int4(at as i32 + 1)]
        }))
    })
    .columns(&[("x", "anyelement"), ("n", "int4")]);
    t.rows("pg_partition_ancestors(regclass) regclass -- a partition and what it is in", |a, c| {
        let found = c.session.catalog_function("pg_partition_ancestors", a)?;
        Ok(numbers(found).into_iter().map(|oid| vec![Datum::Oid(oid as u32)]).collect())
    })
    .columns(&[("relid", "regclass")]);
    t.rows("pg_partition_tree(regclass) record -- a table with its partitions", |a, c| {
        let found = numbers(c.session.catalog_function("pg_partition_tree", a)?);
        let row = |one: &[i64]| {
            vec![
                Datum::Oid(one[0] as u32),
                if one[1] == 0 { Datum::Null } else { Datum::Oid(one[1] as u32) },
                Datum::Bool(one[2] != 0),
                Datum::Int4(one[3] as i32),
            ]
        };
        Ok(found.chunks_exact(4).map(row).collect())
    })
    .columns(&[
        ("relid", "regclass"),
        ("parentrelid", "regclass"),
        ("isleaf", "bool"),
        ("level", "int4"),
    ]);
    sequences(t);
    t.rows("aclexplode(text[]) record -- the privileges of a list, one by one", |a, c| {
        let mut rows = Vec::new();
        for item in items(&a[0]).iter().filter(|item| !item.is_null()) {
            rows.extend(privileges(crate::functions::text_of(item), c)?);
        }
        Ok(rows.into_iter().collect())
    })
    .columns(&[
        ("grantor", "oid"),
        ("grantee", "oid"),
        ("privilege_type", "text"),
        ("is_grantable", "bool"),
    ]);
    t.rows("pg_options_to_table(text[]) record -- options written as name=value", |a, _| {
        let pair = |v: &Datum| {
            let text = crate::functions::text_of(v).to_string();
            match text.split_once('=') {
                Some((name, value)) => vec![Datum::text(name), Datum::text(value)],
                None => vec![Datum::text(text), Datum::Null],
            }
        };
        Ok(items(&a[0]).iter().filter(|v| !v.is_null()).map(pair).collect())
    })
    .columns(&[("option_name", "text"), ("option_value", "text")]);
}
