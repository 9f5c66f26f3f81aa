//! `pg_attribute`: the columns of all relations.

use braid_catalog::{Column, Refined, oid_of};
use braid_types::{Datum, SqlResult, SqlType};

use super::of_system;
use crate::system::pg_tables::{collation, column_collation};
use crate::system::table::{View, flag, text};
use crate::system::{roles, type_rows};

type Made = SqlResult<Vec<Vec<Datum>>>;

/// A column of a relation.
pub(super) struct Attribute<'a> {
    relation: u32,
    name: &'a str,
    ty: &'a SqlType,
    /// Oid and modifier of the type as it was declared.
    pub(super) declared: (u32, i32),
    pub(super) collation: u32,
    number: i16,
    pub(super) not_null: bool,
    has_default: bool,
    identity: &'a str,
    generated: &'a str,
    statistics: Option<u32>,
    acl: Datum,
    /// It is a partition's, which has it of its table.
    inherited: bool,
}

impl<'a> Attribute<'a> {
    /// One of which nothing is known but its name and its type.
    pub(super) fn plain(
        relation: u32,
        name: &'a str,
        ty: &'a SqlType,
        number: i16,
    ) -> Attribute<'a> {
        Attribute {
            relation,
            name,
            ty,
            declared: (ty.oid(), ty.typmod()),
            collation: collation(ty),
            number,
            not_null: false,
            has_default: false,
            identity: "",
            generated: "",
            statistics: None,
            acl: Datum::Null,
            inherited: false,
        }
    }
}

/// Oid and modifier of a column's type as it was declared.
fn declared(v: &View<'_>, c: &Column) -> (u32, i32) {
    match c.refinement {
        Some(Refined::Domain(id)) => (oid_of(id), -1),
        Some(Refined::Elements(id)) if let Some(user) = v.catalog.user_type(id) => {
            (oid_of(user.array), -1)
        }
        _ => (c.ty.oid(), c.typmod()),
    }
}

/// A row of `pg_attribute`.
pub(super) fn attribute_row(a: &Attribute<'_>) -> Vec<Datum> {
    let length = a.ty.type_len();
    vec![
        Datum::Oid(a.relation),
        text(a.name),
        Datum::Oid(a.declared.0),
        Datum::Int4(a.statistics.map_or(-1, |target| target as i32)),
        Datum::Int2(length),
        Datum::Int2(a.number),
        Datum::Int4(i32::from(a.ty.element().is_some())),
        Datum::Int4(-1),
        Datum::Int4(a.declared.1),
        flag((1..=8).contains(&length)),
        text(type_rows::alignment(a.ty)),
        text(type_rows::storage(a.ty)),
        text(""),
        flag(a.not_null),
        flag(a.has_default),
        flag(false),
        text(a.identity),
        text(a.generated),
        flag(false),
        flag(!a.inherited),
        Datum::Int4(i32::from(a.inherited)),
        Datum::Oid(a.collation),
        a.acl.clone(),
    ]
}

pub(in crate::system) fn pg_attribute(v: &View<'_>) -> Made {
    let mut rows = Vec::new();
    for (_, t) in v.stored() {
        for c in t.visible_columns() {
            rows.push(attribute_row(&Attribute {
                relation: oid_of(t.id),
                name: &c.name,
                ty: &c.ty,
                declared: declared(v, c),
                collation: column_collation(c),
                number: c.id as i16,
                not_null: !c.nullable,
                has_default: c.default.is_some() || c.generated.is_some(),
                identity: match c.identity {
                    Some(braid_catalog::Identity::Always) => "a",
                    Some(braid_catalog::Identity::ByDefault) => "d",
                    None => "",
                },
                generated: if c.generated.is_some() { "s" } else { "" },
                statistics: c.options.statistics,
                acl: roles::column_acl(v, t.id, c.id),
                inherited: t.window().is_some(),
            }));
        }
        for i in v.indexes(t) {
            let keys = i.columns.iter().map(|c| c.column).chain(i.include.iter().copied());
            let mut taken = Vec::new();
            for (at, id) in keys.enumerate() {
                let Some(c) = t.column(id) else { continue };
                let name = braid_sql::session::index_column_name(c, &taken);
                let plain = Attribute::plain(oid_of(i.id), &name, &c.ty, at as i16 + 1);
                let (declared, collation) = (declared(v, c), column_collation(c));
                rows.push(attribute_row(&Attribute { declared, collation, ..plain }));
                taken.push(name);
            }
        }
    }
    for (user, fields) in type_rows::composites(v) {
        for f in fields {
            let (relation, ty) = (oid_of(user.id), v.catalog.as_known(&f.ty));
            let ty = ty.as_ref().unwrap_or(&f.ty);
            let plain = Attribute::plain(relation, &f.name, ty, f.number as i16);
            let column = Column::new(f.number, f.name.as_str(), ty.clone());
            let declared = declared(v, &Column { refinement: f.refinement, ..column });
            rows.push(attribute_row(&Attribute { declared, ..plain }));
        }
    }
    for view in v.catalog.views().filter(|x| v.schema(x.schema).is_some()) {
        for (at, (name, ty)) in view.columns.iter().enumerate() {
            let acl = roles::column_acl(v, view.id, at as u32 + 1);
            let plain = Attribute::plain(oid_of(view.id), name, ty, at as i16 + 1);
            let own = view.collations.get(at).copied().flatten();
            let collation = own.unwrap_or(plain.collation);
            rows.push(attribute_row(&Attribute { acl, collation, ..plain }));
        }
    }
    sequence_attributes(v, &mut rows);
    rows.extend_from_slice(of_system::attributes());
    Ok(rows)
}

/// What a SELECT from a sequence shows.
fn sequence_attributes(v: &View<'_>, rows: &mut Vec<Vec<Datum>>) {
    let columns =
        [("last_value", SqlType::Int8), ("log_cnt", SqlType::Int8), ("is_called", SqlType::Bool)];
    for s in v.catalog.sequences().filter(|s| v.schema(s.schema).is_some()) {
        for ((name, ty), number) in columns.iter().zip(1..) {
            let plain = Attribute::plain(oid_of(s.id), name, ty, number);
            rows.push(attribute_row(&Attribute { not_null: true, ..plain }));
        }
    }
}
