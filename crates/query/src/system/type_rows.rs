//! `pg_type` and `pg_enum`: the types that are built in, and those of users.

use braid_catalog::TypeKind;
use braid_types::{Datum, SqlResult, SqlType, TypeCategory};

use super::table::{PG_CATALOG, ROOT, View, flag, object, text};

type Made = SqlResult<Vec<Vec<Datum>>>;

/// `array_subscript_handler`, which says that a type is one of true arrays.
const ARRAY_SUBSCRIPTS: u32 = 6179;

fn category(ty: &SqlType) -> &'static str {
    match ty.category() {
        TypeCategory::Array => "A",
        TypeCategory::Boolean => "B",
        TypeCategory::DateTime => "D",
        TypeCategory::Enum => "E",
        TypeCategory::Numeric => "N",
        TypeCategory::Composite => "P",
        TypeCategory::String => "S",
        TypeCategory::Timespan => "T",
        TypeCategory::User => "U",
        TypeCategory::Unknown => "X",
    }
}

fn row(ty: &SqlType, schema: u32) -> Vec<Datum> {
    let length = ty.type_len();
    let kind = match ty {
        SqlType::Record | SqlType::Void | SqlType::Unknown => "p",
        SqlType::Enum(_) => "e",
        _ => "b",
    };
    let element = ty.element().map_or(0, SqlType::oid);
    let mut row = vec![
        Datum::Oid(ty.oid()),
        text(ty.internal_name()),
        Datum::Oid(schema),
        Datum::Oid(ROOT),
        Datum::Int2(length),
        flag((1..=8).contains(&length)),
        text(kind),
        text(category(ty)),
        flag(ty.is_preferred()),
        flag(true),
        text(","),
        Datum::Oid(0),
        Datum::Oid(if element == 0 { 0 } else { ARRAY_SUBSCRIPTS }),
        Datum::Oid(element),
        Datum::Oid(ty.array_oid()),
    ];
    // typinput to typanalyze: there are no such functions.
    row.extend(std::iter::repeat_n(Datum::Oid(0), 7));
    row.extend([
        text(if length == 8 { "d" } else { "i" }),
        text(if length > 0 { "p" } else { "x" }),
        flag(false),
        Datum::Oid(0),
        Datum::Int4(-1),
        Datum::Int4(0),
        Datum::Oid(if ty.is_text_like() { 100 } else { 0 }),
    ]);
    row
}

pub(super) fn pg_type(v: &View<'_>) -> Made {
    let mut rows = Vec::new();
    let mut add = |ty: &SqlType, schema: u32| {
        rows.push(row(ty, schema));
        if ty.array_oid() != 0 {
            rows.push(row(&SqlType::Array(Box::new(ty.clone())), schema));
        }
    };
    SqlType::all_base().for_each(|ty| add(ty, PG_CATALOG));
    for user in v.catalog.user_types().filter(|t| v.schema(t.schema).is_some()) {
        if let (Some(ty), Datum::Oid(schema)) = (v.catalog.sql_type(user), object(user.schema)) {
            add(&ty, schema);
        }
    }
    Ok(rows)
}

pub(super) fn pg_enum(v: &View<'_>) -> Made {
    let mut rows = Vec::new();
    for user in v.catalog.user_types().filter(|t| v.schema(t.schema).is_some()) {
        let TypeKind::Enum(labels) = &user.kind;
        for label in labels {
            rows.push(vec![
                Datum::Oid(label.oid),
                object(user.id),
                Datum::Float4(label.sort_order()),
                text(label.label.as_str()),
            ]);
        }
    }
    Ok(rows)
}
