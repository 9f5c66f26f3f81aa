//! Ours, about hierarchies: `braid_interleaved`, what lies in what and how much of it, and
//! `braid_families`, the largest families.

use std::sync::Arc;

use braid_catalog::{Index, InterleaveForm, Privileges, Securable, Table};
use braid_types::{Datum, SqlResult};

use super::super::table::{Rows, SystemTable, View, text};

type Made = SqlResult<Vec<Vec<Datum>>>;

/// A table about hierarchies.
pub(in crate::system) fn table(name: &str) -> Option<SystemTable> {
    let (layout, rows): (&'static str, Rows) = match name {
        "braid_interleaved" => (
            "schemaname name, tablename name, indexname name, parent_schemaname name, \
             parent_tablename name, root_tablename name, depth int4, form text, on_delete text, \
             key text, rows int8, bytes int8, rows_per_parent float8, most_per_parent float8",
            interleaved,
        ),
        "braid_families" => (
            "schemaname name, tablename name, key text, bytes int8, share float8, tree_bytes int8",
            families,
        ),
        _ => return None,
    };
    Some(SystemTable { layout, rows, oid: 0 })
}

/// Tables in which others lie, and what lies in them; each tree from its root downwards.
fn interleaved(v: &View<'_>) -> Made {
    let mut out = Vec::new();
    for root in roots(v) {
        for t in v.catalog.subtree(root) {
            out.push(table_row(v, root, &t));
            for i in v.indexes(&t).into_iter().filter(|i| i.interleave_in.is_some()) {
                out.push(index_row(v, root, &t, i));
            }
        }
    }
    Ok(out)
}

/// Root tables of the session's database in which others lie, by name.
fn roots<'a>(v: &View<'a>) -> Vec<&'a Arc<Table>> {
    let mut out: Vec<_> = v
        .tables()
        .into_iter()
        .filter(|(_, t)| {
            t.interleave.is_none() && v.catalog.interleaved_children(t.id).next().is_some()
        })
        .collect();
    out.sort_by(|a, b| (&a.0.name, &a.1.name).cmp(&(&b.0.name, &b.1.name)));
    out.into_iter().map(|(_, t)| t).collect()
}

fn schema_name(v: &View<'_>, t: &Table) -> Datum {
    v.schema(t.schema).map_or(Datum::Null, |s| text(s.name.as_str()))
}

fn key(t: &Table, i: &Index) -> Datum {
    let column = |k: &braid_catalog::IndexColumn| {
        let name = t.key_name(k.column);
        format!("{name}{}", if k.desc { " DESC" } else { "" })
    };
    text(i.columns.iter().map(column).collect::<Vec<_>>().join(", "))
}

fn number(value: f64) -> Datum {
    Datum::Int8(value.round() as i64)
}

fn table_row(v: &View<'_>, root: &Table, t: &Arc<Table>) -> Vec<Datum> {
    let parent = t.interleave.as_ref().and_then(|i| v.catalog.table(i.parent));
    let form = t.interleave.as_ref().map(|i| match i.form {
        InterleaveForm::Enforced => "enforced",
        _ => "locality",
    });
    let on_delete = t.interleave.as_ref().filter(|i| i.enforced()).map(|i| i.on_delete.sql());
    let known = v.database_object.statistics(t);
    let family = known.as_ref().and_then(|known| known.family);
    vec![
        schema_name(v, t),
        text(t.name.as_str()),
        Datum::Null,
        parent.map_or(Datum::Null, |p| schema_name(v, p)),
        parent.map_or(Datum::Null, |p| text(p.name.as_str())),
        text(root.name.as_str()),
        Datum::Int4(v.catalog.depth(t) as i32),
        form.map_or(Datum::Null, text),
        on_delete.map_or(Datum::Null, text),
        key(t, &t.primary),
        known.as_ref().map_or(Datum::Null, |known| number(known.rows)),
        known.as_ref().map_or(Datum::Null, |known| number(known.rows * known.row_bytes)),
        family.map_or(Datum::Null, |family| Datum::Float8(family.average)),
        family.map_or(Datum::Null, |family| Datum::Float8(family.most)),
    ]
}

fn index_row(v: &View<'_>, root: &Table, t: &Table, i: &Index) -> Vec<Datum> {
    let parent = i.interleave_in.and_then(|id| v.catalog.table(id));
    let depth = parent.map_or(0, |p| v.catalog.depth(p) + 1);
    let mut row = vec![Datum::Null; 14];
    row[0] = schema_name(v, t);
    row[1] = text(t.name.as_str());
    row[2] = text(i.name.as_str());
    row[3] = parent.map_or(Datum::Null, |p| schema_name(v, p));
    row[4] = parent.map_or(Datum::Null, |p| text(p.name.as_str()));
    row[5] = text(root.name.as_str());
    row[6] = Datum::Int4(depth as i32);
    row[9] = key(t, i);
    row
}

/// Keys are values of rows: only those who may read these see them.
fn families(v: &View<'_>) -> Made {
    let role = v.catalog.acting_role(&v.eval.session.current_user());
    let mut out = Vec::new();
    for root in roots(v) {
        if !v.catalog.may(role, root.id, Securable::Table, Privileges::of("r")) {
            continue;
        }
        let all = v.database_object.tree_bytes(v.catalog, root)?;
        for family in v.database_object.large_families(v.catalog, root)? {
            let key: Vec<String> = family
                .key
                .iter()
                .map(|value| value.to_text(v.eval.style).unwrap_or_else(|| "NULL".into()))
                .collect();
            out.push(vec![
                schema_name(v, root),
                text(root.name.as_str()),
                text(key.join(", ")),
                Datum::Int8(family.bytes as i64),
                Datum::Float8(family.share),
                Datum::Int8(all as i64),
            ]);
        }
    }
    Ok(out)
}
