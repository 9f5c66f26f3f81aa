//! Domains, composite types, elements of arrays, collations.

use braid_catalog::{Domain, Mode, Refined, TypeKind, UserType, oid_of};
use braid_sql::session::Shown;
use braid_types::{Datum, SqlType};

use super::relations::{
    Made, check_text, collation_names, column_row, data_type, number, udt_schema, yes_no,
};
use crate::system::table::{Rows, SystemTable, View, text};
use crate::system::type_rows::{composites, domain_condition};

/// A table about types.
pub(super) fn table(name: &str) -> Option<SystemTable> {
    let (layout, rows): (&'static str, Rows) = match name {
        "attributes" => (ATTRIBUTES, attributes),
        "domains" => (DOMAINS, domains),
        "element_types" => (ELEMENTS, element_types),
        "user_defined_types" => (STRUCTURED, user_defined_types),
        "domain_constraints" => (
            "constraint_catalog name, constraint_schema name, constraint_name name, \
             domain_catalog name, domain_schema name, domain_name name, is_deferrable yes_or_no, \
             initially_deferred yes_or_no",
            domain_constraints,
        ),
        "domain_udt_usage" => (
            "udt_catalog name, udt_schema name, udt_name name, domain_catalog name, \
             domain_schema name, domain_name name",
            domain_udt_usage,
        ),
        "collations" => (
            "collation_catalog name, collation_schema name, collation_name name, \
             pad_attribute text",
            |v| Ok(collations(v).map(|c| [c, vec![text("NO PAD")]].concat()).collect()),
        ),
        "collation_character_set_applicability" => (
            "collation_catalog name, collation_schema name, collation_name name, \
             character_set_catalog name, character_set_schema name, character_set_name name",
            |v| {
                let utf8 = || vec![Datum::Null, Datum::Null, text("UTF8")];
                Ok(collations(v).map(|c| [c, utf8()].concat()).collect())
            },
        ),
        "character_sets" => (
            "character_set_catalog name, character_set_schema name, character_set_name name, \
             character_repertoire name, form_of_use name, default_collate_catalog name, \
             default_collate_schema name, default_collate_name name",
            |v| {
                let names = ["UTF8", "UCS", "UTF8", v.database, "pg_catalog", "C"].map(text);
                Ok(vec![[vec![Datum::Null, Datum::Null], names.to_vec()].concat()])
            },
        ),
        _ => return None,
    };
    Some(SystemTable { layout, rows, oid: 0 })
}

const ATTRIBUTES: &str = "udt_catalog name, udt_schema name, udt_name name, \
     attribute_name name, ordinal_position int4, attribute_default text, is_nullable yes_or_no, \
     data_type text, character_maximum_length int4, character_octet_length int4, \
     character_set_catalog name, character_set_schema name, character_set_name name, \
     collation_catalog name, collation_schema name, collation_name name, \
     numeric_precision int4, numeric_precision_radix int4, numeric_scale int4, \
     datetime_precision int4, interval_type text, interval_precision int4, \
     attribute_udt_catalog name, attribute_udt_schema name, attribute_udt_name name, \
     scope_catalog name, scope_schema name, scope_name name, maximum_cardinality int4, \
     dtd_identifier name, is_derived_reference_attribute yes_or_no";

const DOMAINS: &str = "domain_catalog name, domain_schema name, domain_name name, \
     data_type text, character_maximum_length int4, character_octet_length int4, \
     character_set_catalog name, character_set_schema name, character_set_name name, \
     collation_catalog name, collation_schema name, collation_name name, \
     numeric_precision int4, numeric_precision_radix int4, numeric_scale int4, \
     datetime_precision int4, interval_type text, interval_precision int4, domain_default text, \
     udt_catalog name, udt_schema name, udt_name name, scope_catalog name, scope_schema name, \
     scope_name name, maximum_cardinality int4, dtd_identifier name";

const ELEMENTS: &str = "object_catalog name, object_schema name, object_name name, \
     object_type text, collection_type_identifier name, data_type text, \
     character_maximum_length int4, character_octet_length int4, character_set_catalog name, \
     character_set_schema name, character_set_name name, collation_catalog name, \
     collation_schema name, collation_name name, numeric_precision int4, \
     numeric_precision_radix int4, numeric_scale int4, datetime_precision int4, \
     interval_type text, interval_precision int4, domain_default text, udt_catalog name, \
     udt_schema name, udt_name name, scope_catalog name, scope_schema name, scope_name name, \
     maximum_cardinality int4, dtd_identifier name";

const STRUCTURED: &str = "user_defined_type_catalog name, user_defined_type_schema name, \
     user_defined_type_name name, user_defined_type_category text, is_instantiable yes_or_no, \
     is_final yes_or_no, ordering_form text, ordering_category text, \
     ordering_routine_catalog name, ordering_routine_schema name, \
     ordering_routine_name name, reference_type text, \
     data_type text, character_maximum_length int4, character_octet_length int4, \
     character_set_catalog name, character_set_schema name, character_set_name name, \
     collation_catalog name, collation_schema name, collation_name name, \
     numeric_precision int4, numeric_precision_radix int4, numeric_scale int4, \
     datetime_precision int4, interval_type text, interval_precision int4, \
     source_dtd_identifier name, ref_dtd_identifier name";

/// What is said of a type, as places in a row of `columns`: from what it is to how precise.
const OF_TYPE: [usize; 15] = [7, 8, 9, 16, 17, 18, 19, 20, 21, 10, 11, 12, 13, 14, 15];
/// The same of its names.
const OF_NAMES: [usize; 8] = [25, 26, 27, 28, 29, 30, 31, 32];

/// Fields of composite types.
fn attributes(v: &View<'_>) -> Made {
    let mut rows = Vec::new();
    for (user, fields) in composites(v) {
        let Some(schema) = v.schema(user.schema) else { continue };
        for f in fields {
            let ty = v.catalog.as_known(&f.ty);
            let ty = ty.as_ref().unwrap_or(&f.ty);
            let place = f.number as i32;
            let column = column_row(v.database, &schema.name, &user.name, &f.name, place, ty);
            let mut row = column[..7].to_vec();
            row.extend(OF_TYPE.iter().chain(&OF_NAMES).map(|at| column[*at].clone()));
            row.push(yes_no(false));
            rows.push(row);
        }
    }
    Ok(rows)
}

/// The domains of the session's database with their schemas.
fn all_domains<'a>(v: &View<'a>) -> Vec<(&'a str, &'a UserType, &'a Domain)> {
    let all = v.catalog.user_types().filter_map(|user| match &user.kind {
        TypeKind::Domain(domain) => {
            Some((v.schema(user.schema)?.name.as_str(), &**user, &**domain))
        }
        _ => None,
    });
    all.collect()
}

fn domains(v: &View<'_>) -> Made {
    let mut rows = Vec::new();
    for (schema, user, domain) in all_domains(v) {
        let mut column = column_row(v.database, schema, &user.name, "", 1, &domain.base);
        if let SqlType::Array(_) = domain.base {
            column[7] = text(domain.base.base_name());
        }
        if let Some(digits) = domain.precision {
            column[13] = number(i32::from(digits));
        }
        column[19..22].clone_from_slice(&collation_names(v, domain.collation));
        let mut row = column[..3].to_vec();
        row.extend(OF_TYPE.map(|at| column[at].clone()));
        row.push(domain.default.as_deref().map_or(Datum::Null, text));
        row.extend(OF_NAMES.map(|at| column[at].clone()));
        rows.push(row);
    }
    Ok(rows)
}

fn domain_constraints(v: &View<'_>) -> Made {
    let mut rows = Vec::new();
    for (schema, user, domain) in all_domains(v) {
        for check in &domain.checks {
            let names = [v.database, schema, &check.name, v.database, schema, &user.name];
            rows.push(names.into_iter().chain(["NO", "NO"]).map(text).collect());
        }
    }
    Ok(rows)
}

/// What `check_constraints` says of domains.
pub(super) fn domain_checks(v: &View<'_>) -> Vec<Vec<Datum>> {
    let mut rows = Vec::new();
    for (schema, _, domain) in all_domains(v) {
        for check in &domain.checks {
            let shown = domain_condition(check, &domain.base, Shown::Deparsed);
            let condition = match shown {
                Some(shown) => format!("({shown})"),
                None => check_text(&check.expr),
            };
            rows.push([v.database, schema, &check.name, &condition].map(text).to_vec());
        }
    }
    rows
}

fn domain_udt_usage(v: &View<'_>) -> Made {
    let row = |(schema, user, domain): (&str, &UserType, &Domain)| {
        let name = domain.base.internal_name();
        let own = [v.database, schema, &user.name].map(text);
        [vec![text(v.database), udt_schema(&domain.base), text(name)], own.to_vec()].concat()
    };
    Ok(all_domains(v).into_iter().map(row).collect())
}

/// Composite types: tables have theirs, but are not among these.
fn user_defined_types(v: &View<'_>) -> Made {
    let mut rows = Vec::new();
    for (user, _) in composites(v) {
        let Some(schema) = v.schema(user.schema) else { continue };
        let names = [v.database, &schema.name, &user.name, "STRUCTURED", "YES"];
        rows.push(names.map(text).to_vec());
    }
    Ok(rows)
}

/// The elements of what is an array: columns, domains, fields, parameters and results.
fn element_types(v: &View<'_>) -> Made {
    let mut rows = Vec::new();
    let mut add = |schema: &str, object: &str, kind: &str, place: usize, ty: &SqlType| {
        let Some(element) = ty.element() else { return };
        let mut row = [v.database, schema, object, kind, &place.to_string()].map(text).to_vec();
        row.push(data_type(element));
        row.resize(21, Datum::Null);
        row.extend([text(v.database), udt_schema(element), text(element.internal_name())]);
        row.resize(28, Datum::Null);
        row.push(text(format!("a{place}")));
        rows.push(row);
    };
    for (schema, t) in v.tables() {
        for c in t.visible_columns() {
            if !matches!(c.refinement, Some(Refined::Domain(_))) {
                add(&schema.name, &t.name, "TABLE", c.id as usize, &c.ty);
            }
        }
    }
    for view in v.catalog.views() {
        let Some(schema) = v.schema(view.schema) else { continue };
        for (at, (_, ty)) in view.columns.iter().enumerate() {
            add(&schema.name, &view.name, "TABLE", at + 1, ty);
        }
    }
    for (schema, user, domain) in all_domains(v) {
        add(schema, &user.name, "DOMAIN", 1, &domain.base);
    }
    for (user, fields) in composites(v) {
        let Some(schema) = v.schema(user.schema) else { continue };
        for f in fields {
            add(&schema.name, &user.name, "USER-DEFINED TYPE", f.number as usize, &f.ty);
        }
    }
    for f in v.catalog.functions() {
        let Some(schema) = v.schema(f.schema) else { continue };
        let name = format!("{}_{}", f.name, oid_of(f.id));
        for (at, p) in f.params.iter().enumerate().filter(|(_, p)| p.mode != Mode::Table) {
            add(&schema.name, &name, "ROUTINE", at + 1, &p.ty);
        }
        add(&schema.name, &name, "ROUTINE", 0, &f.returns);
    }
    Ok(rows)
}

/// The names of all collations.
fn collations(v: &View<'_>) -> impl Iterator<Item = Vec<Datum>> {
    let built_in = braid_types::built_in_collations().iter();
    let built_in = built_in.map(|own| ("pg_catalog".to_string(), own.name.clone()));
    let own = v.catalog.collations().filter_map(|own| {
        let schema = v.schema(own.schema)?;
        Some((schema.name.clone(), own.name.clone()))
    });
    let all: Vec<(String, String)> = built_in.chain(own).collect();
    let database = v.database.to_string();
    all.into_iter()
        .map(move |(schema, name)| vec![text(database.clone()), text(schema), text(name)])
}
