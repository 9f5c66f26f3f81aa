//! Rows of `pg_type` that belong to the relations of the system: the types of their rows, and types
//! that only their columns have.

use std::sync::{Arc, LazyLock};

use braid_types::{CompositeType, Datum, SqlType, SystemType, system_types};

use super::of_system::listed;
use crate::system::table::{INFORMATION_SCHEMA, PG_CATALOG, flag, text};
use crate::system::type_rows::{field, type_row};

static ROWS: LazyLock<Vec<Vec<Datum>>> = LazyLock::new(|| {
    let of_rows = listed().iter().flat_map(|of| {
        let (r, schema) = (of.relation, of.namespace());
        let names = (r.schema.to_string(), r.name.to_string());
        let ty = Arc::new(CompositeType::new((r.row_type, r.array_type), names, Vec::new()));
        let ty = SqlType::Composite(ty);
        let mut own = type_row(&ty, schema);
        own[field::RELATION] = Datum::Oid(r.oid);
        [own, type_row(&SqlType::Array(Box::new(ty)), schema)]
    });
    let others = system_types().iter().flat_map(|ty| match ty.is_domain {
        true => domain(ty),
        false => base(ty),
    });
    of_rows.chain(others).collect()
});

/// All of them.
pub(in crate::system) fn types_of_system() -> &'static [Vec<Datum>] {
    &ROWS
}

/// A type with that of its arrays, if it has one, as one whose values are of another type.
fn base(own: &SystemType) -> Vec<Vec<Datum>> {
    let (ty, length, category) = match own.name {
        "xid" => (SqlType::Oid, 4, "U"),
        "aclitem" => (SqlType::Oid, 12, "U"),
        "xml" => (SqlType::Text, -1, "U"),
        _ => (SqlType::Text, -1, "Z"),
    };
    let mut row = type_row(&ty, PG_CATALOG);
    row[field::LENGTH] = Datum::Int2(length);
    row[field::BY_VALUE] = flag(length == 4);
    row[field::CATEGORY] = text(category);
    named(&mut row, own.oid, own.name.to_string());
    row[field::ARRAY] = Datum::Oid(own.array_oid);
    let array = (own.array_oid != 0).then(|| array_of(&ty, own, PG_CATALOG));
    [row].into_iter().chain(array).collect()
}

/// A domain of `information_schema`.
fn domain(own: &SystemType) -> Vec<Vec<Datum>> {
    const VARCHAR_3: i32 = 3 + 4;
    let (ty, modifier) = match own.name {
        "cardinal_number" => (SqlType::Int4, -1),
        "character_data" => (SqlType::Varchar(None), -1),
        "time_stamp" => (SqlType::TimestampTz, 2),
        "yes_or_no" => (SqlType::Varchar(None), VARCHAR_3),
        _ => (SqlType::Name, -1),
    };
    let mut row = type_row(&ty, INFORMATION_SCHEMA);
    row[field::BASE] = row[field::OID].clone();
    named(&mut row, own.oid, own.name.to_string());
    row[field::KIND] = text("d");
    row[field::SUBSCRIPTS] = Datum::Oid(0);
    row[field::ELEMENT] = Datum::Oid(0);
    row[field::ARRAY] = Datum::Oid(own.array_oid);
    row[field::MODIFIER] = Datum::Int4(modifier);
    if !matches!(row[field::COLLATION], Datum::Oid(0)) {
        row[field::COLLATION] = Datum::Oid(950);
    }
    vec![row, array_of(&ty, own, INFORMATION_SCHEMA)]
}

fn named(row: &mut [Datum], oid: u32, name: String) {
    row[field::OID] = Datum::Oid(oid);
    row[field::NAME] = text(name);
    row[field::PREFERRED] = flag(false);
}

fn array_of(ty: &SqlType, own: &SystemType, schema: u32) -> Vec<Datum> {
    let mut row = type_row(&SqlType::Array(Box::new(ty.clone())), schema);
    named(&mut row, own.array_oid, format!("_{}", own.name));
    row[field::ELEMENT] = Datum::Oid(own.oid);
    row
}
