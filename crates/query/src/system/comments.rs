//! `pg_description` and `pg_shdescription`: what COMMENT ON has said, from descriptors and notes.

use braid_catalog::{Catalog, EXTENSIONS, Table, TypeKind, id_of_oid, oid_of};
use braid_types::{Datum, SqlResult};

use super::table::{SystemTable, View, constraint_oid, shown_indexes, text};

type Made = SqlResult<Vec<Vec<Datum>>>;

/// Oids of catalogs that hold what is commented.
const CLASS: u32 = 1259;
const TYPE: u32 = 1247;
const COLLATION: u32 = 3456;
const PROC: u32 = 1255;
const CONSTRAINT: u32 = 2606;
const NAMESPACE: u32 = 2615;
const DATABASE: u32 = 1262;
const AUTHID: u32 = 1260;
const EXTENSION: u32 = 3079;

/// One comment: the object, the catalog that it is in, its part, the text.
struct Remark<'a> {
    object: u32,
    class: u32,
    part: i32,
    text: &'a str,
}

/// A table about comments.
pub fn table(name: &str) -> Option<SystemTable> {
    let (layout, rows): (_, super::table::Rows) = match name {
        "pg_description" => {
            ("objoid oid, classoid oid, objsubid int4, description text", pg_description)
        }
        "pg_shdescription" => ("objoid oid, classoid oid, description text", pg_shdescription),
        _ => return None,
    };
    Some(SystemTable { layout, rows, oid: 0 })
}

/// Oid of a constraint of a table.
fn oid_of_constraint(t: &Table, name: &str) -> Option<u32> {
    let mut indexes = shown_indexes(t).into_iter().enumerate();
    let by_index = indexes.find(|(_, i)| i.name == name).map(|(at, _)| constraint_oid(t.id, at));
    let check = || {
        let at = t.checks.iter().position(|c| c.name == name)?;
        Some(constraint_oid(t.id, 200 + at))
    };
    let key = || t.foreign_keys.iter().find(|f| f.name == name).map(|f| oid_of(f.id));
    by_index.or_else(check).or_else(key)
}

/// Comments on objects of a database.
fn remarks(catalog: &Catalog, database: u32) -> Vec<Remark<'_>> {
    let here = |schema: u32| catalog.schema_by_id(schema).is_some_and(|s| s.database == database);
    let mut out = Vec::new();
    let mut add = |object: u32, class, part, text| {
        out.push(Remark { object, class, part, text });
    };
    for t in catalog.tables().filter(|t| here(t.schema)) {
        if let Some(text) = &t.comment {
            add(oid_of(t.id), CLASS, 0, text);
        }
        for c in t.visible_columns() {
            if let Some(text) = &c.comment {
                add(oid_of(t.id), CLASS, c.id as i32, text);
            }
        }
        for i in t.all_indexes() {
            if let Some(text) = catalog.notes(i.id).and_then(|n| n.comment.as_deref()) {
                add(oid_of(i.id), CLASS, 0, text);
            }
        }
        for (name, text) in catalog.notes(t.id).into_iter().flat_map(|n| &n.constraints) {
            if let Some(oid) = oid_of_constraint(t, name) {
                add(oid, CONSTRAINT, 0, text);
            }
        }
    }
    for view in catalog.views().filter(|v| here(v.schema)) {
        view.comment.iter().for_each(|text| add(oid_of(view.id), CLASS, 0, text));
    }
    // What is noted beside descriptors.
    let noted = catalog.views().map(|v| (v.schema, v.id));
    let noted = noted.chain(catalog.sequences().map(|s| (s.schema, s.id)));
    let noted = noted.chain(catalog.shown_partitions().map(|t| (t.schema, t.id)));
    for (_, id) in noted.filter(|(schema, _)| here(*schema)) {
        let Some(notes) = catalog.notes(id) else { continue };
        notes.comment.iter().for_each(|text| add(oid_of(id), CLASS, 0, text));
        for (column, text) in &notes.column_comments {
            add(oid_of(id), CLASS, *column as i32, text);
        }
    }
    function_remarks(catalog, database, &mut out);
    type_remarks(catalog, database, &mut out);
    schema_remarks(catalog, database, &mut out);
    out
}

/// Comments on functions.
fn function_remarks<'a>(catalog: &'a Catalog, database: u32, out: &mut Vec<Remark<'a>>) {
    let mut add = |object: u32, class, part, text| {
        out.push(Remark { object, class, part, text });
    };
    let here = |schema: u32| catalog.schema_by_id(schema).is_some_and(|s| s.database == database);
    for f in catalog.functions().filter(|f| here(f.schema)) {
        let text = catalog.notes(f.id).and_then(|n| n.comment.as_deref());
        text.into_iter().for_each(|text| add(oid_of(f.id), PROC, 0, text));
    }
}

/// Comments on types, their fields and constraints.
fn type_remarks<'a>(catalog: &'a Catalog, database: u32, out: &mut Vec<Remark<'a>>) {
    let mut add = |object: u32, class, part, text| {
        out.push(Remark { object, class, part, text });
    };
    let here = |schema: u32| catalog.schema_by_id(schema).is_some_and(|s| s.database == database);
    for own in catalog.collations().filter(|own| here(own.schema)) {
        own.comment.iter().for_each(|text| add(oid_of(own.id), COLLATION, 0, text));
    }
    for ty in catalog.user_types().filter(|t| here(t.schema)) {
        if let Some(text) = &ty.comment {
            add(oid_of(ty.id), TYPE, 0, text);
        }
        if let TypeKind::Composite(fields) = &ty.kind {
            for field in fields {
                if let Some(text) = &field.comment {
                    add(oid_of(ty.id), CLASS, field.number as i32, text);
                }
            }
        }
        let TypeKind::Domain(domain) = &ty.kind else { continue };
        for (name, text) in catalog.notes(ty.id).into_iter().flat_map(|n| &n.constraints) {
            if let Some(at) = domain.checks.iter().position(|c| c.name == *name) {
                add(constraint_oid(ty.id, at), CONSTRAINT, 0, text);
            }
        }
    }
}

/// Comments on schemas, and those that extensions bring.
fn schema_remarks<'a>(catalog: &'a Catalog, database: u32, out: &mut Vec<Remark<'a>>) {
    let mut add = |object: u32, class, part, text| {
        out.push(Remark { object, class, part, text });
    };
    for s in catalog.schemas(database) {
        match catalog.notes(s.id).and_then(|n| n.comment.as_deref()) {
            Some(text) => add(oid_of(s.id), NAMESPACE, 0, text),
            None if s.name == "public" => {
                add(oid_of(s.id), NAMESPACE, 0, "standard public schema");
            }
            None => {}
        }
    }
    for extension in &EXTENSIONS {
        if let Some(found) = catalog.extension(database, extension.name) {
            add(found.oid, EXTENSION, 0, extension.comment);
        }
    }
}

/// Comments on databases and roles.
fn shared_remarks(catalog: &Catalog) -> Vec<Remark<'_>> {
    let databases = catalog.databases().map(|d| (d.id, DATABASE));
    let roles = catalog.roles().map(|r| (r.id, AUTHID));
    let remark = |(id, class)| {
        let text = catalog.notes(id)?.comment.as_deref()?;
        Some(Remark { object: oid_of(id), class, part: 0, text })
    };
    databases.chain(roles).filter_map(remark).collect()
}

fn pg_description(v: &View<'_>) -> Made {
    let row = |r: Remark<'_>| {
        vec![Datum::Oid(r.object), Datum::Oid(r.class), Datum::Int4(r.part), text(r.text)]
    };
    Ok(remarks(v.catalog, v.database_id).into_iter().map(row).collect())
}

fn pg_shdescription(v: &View<'_>) -> Made {
    let row = |r: Remark<'_>| vec![Datum::Oid(r.object), Datum::Oid(r.class), text(r.text)];
    Ok(shared_remarks(v.catalog).into_iter().map(row).collect())
}

/// The comment on an object, or on one of its columns.
pub(super) fn comment(
    catalog: &Catalog,
    database: u32,
    oid: u32,
    class: Option<u32>,
    column: i32,
) -> Option<String> {
    // Most objects have none, and most that are asked for are tables with their columns.
    let id = id_of_oid(oid);
    if let Some(table) = id.and_then(|id| catalog.table(id)).filter(|_| class.is_none()) {
        return match column {
            0 => table.comment.clone(),
            n => table.column(n as u32)?.comment.clone(),
        };
    }
    let all = remarks(catalog, database).into_iter().chain(shared_remarks(catalog));
    let found = |r: &Remark<'_>| {
        r.object == oid && r.part == column && class.is_none_or(|class| class == r.class)
    };
    all.into_iter().find(found).map(|r| r.text.to_string())
}
