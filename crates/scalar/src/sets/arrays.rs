//! Arrays as rows.

use braid_types::{Datum, SqlResult};

use crate::EvalContext;
use crate::functions::{bool_of, i64_of};
use crate::registry::{Rows, Table};

pub(super) fn items(value: &Datum) -> &[Datum] {
    match value {
        Datum::Array(a) => &a.items,
        _ => &[],
    }
}

fn unnest(a: &[Datum], _: &EvalContext) -> SqlResult<Rows> {
    let longest = a.iter().map(|v| items(v).len()).max().unwrap_or(0);
    let at = |row: usize| a.iter().map(move |v| items(v).get(row).cloned().unwrap_or(Datum::Null));
    Ok((0..longest).map(|row| at(row).collect()).collect())
}

/// The subscripts of a dimension.
fn subscripts(a: &[Datum]) -> Vec<Vec<Datum>> {
    let Datum::Array(array) = &a[0] else { return Vec::new() };
    let at = usize::try_from(i64_of(&a[1])).ok().and_then(|n| n.checked_sub(1));
    let dimensions = array.dimensions();
    let found = at.and_then(|at| dimensions.get(at));
    found.map_or(Vec::new(), |d| (d.lower..=d.upper()).map(|i| vec![Datum::Int4(i)]).collect())
}

/// Adds the functions of this file.
pub(super) fn fill(t: &mut Table) {
    t.rows("unnest(anyarray) anyelement -- the elements of an array", unnest);
    // Several arrays in step, each of its own type; a NULL array is an empty one.
    t.rows("unnest(any, ...any) record", unnest).elements().lax();
    t.rows("generate_subscripts(anyarray, int4) int4 -- the subscripts of an array", |a, _| {
        Ok(Rows::All(subscripts(a)))
    });
    t.rows("generate_subscripts(anyarray, int4, bool) int4", |a, _| {
        let mut rows = subscripts(a);
        if bool_of(&a[2]) {
            rows.reverse();
        }
        Ok(Rows::All(rows))
    });
    t.rows("_pg_expandarray(anyarray) record -- elements with their subscripts", |a, _| {
        let numbered = items(&a[0]).iter().zip(1..);
        Ok(numbered.map(|(v, at)| vec![v.clone(), Datum::Int4(at)]).collect())
    })
    .columns(&[("x", "anyelement"), ("n", "int4")]);
    t.rows(
        "pg_partition_ancestors(regclass) regclass -- nothing: there are no partitions",
        |_, _| Ok(Rows::none()),
    )
    .columns(&[("relid", "regclass")]);
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
