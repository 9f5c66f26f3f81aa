//! `pg_type`, `pg_range`, `pg_enum` and `pg_opclass`: the types that are built in, those of users,
//! and how their values are ordered.

use std::collections::{HashMap, HashSet};

use braid_catalog::{
    Attribute, Catalog, Check, Domain, Index, OperatorClass, Refined, Table, TypeKind, UserType,
    id_of_oid, oid_of,
};
use braid_parser::parse_expr;
use braid_scalar::functions_of_type;
use braid_sql::session::Shown;
use braid_types::oid::PSEUDO_TYPES;
use braid_types::{
    Collation, DEFAULT_COLLATION, Datum, MAX_IDENTIFIER, RangeKind, SqlResult, SqlType,
    TypeCategory, built_in_collations, clip_name,
};

use super::pg_tables::collation;
use super::relations::types_of_system;
use super::roles;
use super::table::{PG_CATALOG, ROOT, View, constraint_oid, flag, object, text};

type Made = SqlResult<Vec<Vec<Datum>>>;

/// `array_subscript_handler`, which says that a type is one of true arrays.
const ARRAY_SUBSCRIPTS: u32 = 6179;

/// `raw_array_subscript_handler`: values of a fixed length have parts.
const RAW_SUBSCRIPTS: u32 = 6180;

fn category(ty: &SqlType) -> &'static str {
    match ty.category() {
        _ if matches!(ty, SqlType::Composite(_)) => "C",
        _ if *ty == SqlType::Void => "P",
        TypeCategory::Array => "A",
        TypeCategory::Boolean => "B",
        TypeCategory::DateTime => "D",
        TypeCategory::Enum => "E",
        TypeCategory::Numeric => "N",
        TypeCategory::Composite => "P",
        TypeCategory::String => "S",
        TypeCategory::Timespan => "T",
        TypeCategory::User => "U",
        TypeCategory::BitString => "V",
        TypeCategory::Network => "I",
        TypeCategory::Range => "R",
        TypeCategory::Geometric => "G",
        TypeCategory::Unknown => "X",
    }
}

/// How PostgreSQL would keep long values.
pub(super) fn storage(ty: &SqlType) -> &'static str {
    match ty {
        SqlType::Numeric(_) | SqlType::Inet | SqlType::Cidr => "m",
        _ if ty.type_len() > 0 => "p",
        _ => "x",
    }
}

/// At which addresses PostgreSQL would keep values.
pub(super) fn alignment(ty: &SqlType) -> &'static str {
    let of = ty.element().unwrap_or(ty);
    let of_ranges = match of {
        SqlType::Range(kind) | SqlType::Multirange(kind) => kind.element().type_len() == 8,
        _ => false,
    };
    let shape = matches!(of, SqlType::Geometry(_));
    match ty {
        SqlType::Bool | SqlType::CharByte | SqlType::Name | SqlType::Uuid | SqlType::Unknown => "c",
        SqlType::Int2 | SqlType::Tid => "s",
        _ if ty.type_len() == 8 || of_ranges || of.is_row() || shape => "d",
        _ => "i",
    }
}

/// The row of a type; the schema is an oid.
pub(super) fn type_row(ty: &SqlType, schema: u32) -> Vec<Datum> {
    let length = ty.type_len();
    let kind = match ty {
        SqlType::Record | SqlType::Void | SqlType::Unknown => "p",
        SqlType::Enum(_) => "e",
        SqlType::Range(_) => "r",
        SqlType::Multirange(_) => "m",
        SqlType::Composite(_) => "c",
        _ => "b",
    };
    let relation = if kind == "c" { ty.oid() } else { 0 };
    let of = ty.element().unwrap_or(ty);
    let element = ty.subscripted().map_or(0, |ty| ty.oid());
    let subscripts = match ty {
        SqlType::Geometry(_) => RAW_SUBSCRIPTS,
        _ => ARRAY_SUBSCRIPTS,
    };
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
        text(of.delimiter().to_string()),
        Datum::Oid(relation),
        Datum::Oid(if element == 0 { 0 } else { subscripts }),
        Datum::Oid(element),
        Datum::Oid(ty.array_oid()),
    ];
    let functions = functions_of_type(ty);
    row.extend((0..4).map(|at| Datum::Oid(functions.get(at).map_or(0, |f| f.oid))));
    // typmodin, typmodout, typanalyze: there are no such functions.
    row.extend(std::iter::repeat_n(Datum::Oid(0), 3));
    row.extend([
        text(alignment(ty)),
        text(storage(ty)),
        flag(false),
        Datum::Oid(0),
        Datum::Int4(-1),
        Datum::Int4(0),
        Datum::Oid(collation(ty)),
    ]);
    row
}

pub(super) fn pg_type(v: &View<'_>) -> Made {
    let (mut rows, mut domains) = (Vec::new(), Vec::new());
    let mut add = |ty: &SqlType, schema: u32| {
        rows.push(type_row(ty, schema));
        if ty.array_oid() != 0 {
            rows.push(type_row(&SqlType::Array(Box::new(ty.clone())), schema));
        }
    };
    let citext = v.catalog.extension(v.database_id, "citext").map(|extension| extension.schema);
    for ty in SqlType::all_base() {
        match ty {
            SqlType::Citext => citext.into_iter().for_each(|schema| add(ty, schema)),
            ty => add(ty, PG_CATALOG),
        }
    }
    let pseudo = PSEUDO_TYPES.map(|(oid, name, length)| {
        let mut row = type_row(&SqlType::Void, PG_CATALOG);
        (row[0], row[1], row[4]) = (Datum::Oid(oid), text(name), Datum::Int2(length));
        row[5] = flag(length > 0);
        row
    });
    for user in v.catalog.user_types().filter(|t| v.schema(t.schema).is_some()) {
        let Some(ty) = v.catalog.sql_type(user) else { continue };
        match &user.kind {
            TypeKind::Range(_) => {
                add(&ty, oid_of(user.schema));
                if let Some(many) = v.catalog.multirange_type(user) {
                    add(&many, oid_of(user.schema));
                }
            }
            TypeKind::Enum(_) | TypeKind::Composite(_) => add(&ty, oid_of(user.schema)),
            TypeKind::Domain(domain) => {
                let array = SqlType::Array(Box::new(ty.clone()));
                domains.push(domain_row(v, user, domain, type_row(&ty, oid_of(user.schema))));
                domains.push(domain_array_row(user, type_row(&array, oid_of(user.schema))));
            }
        }
    }
    for (schema, table) in v.stored() {
        add(&SqlType::Composite(v.catalog.row_type(table)), oid_of(schema.id));
    }
    for view in v.catalog.views().filter(|view| v.schema(view.schema).is_some()) {
        add(&SqlType::Composite(v.catalog.row_type_of_view(view)), oid_of(view.schema));
    }
    rows.extend(domains);
    name_arrays(&mut rows);
    rows.extend(pseudo);
    own(v, &mut rows);
    rows.extend_from_slice(types_of_system());
    Ok(rows)
}

/// Where a type has the name that another one's array would have, the array gets one more
/// underscore in front: the arrays of types that were there first choose first.
fn name_arrays(rows: &mut [Vec<Datum>]) {
    let is_own = |row: &[Datum]| !matches!(row[field::SCHEMA], Datum::Oid(PG_CATALOG));
    let is_array = |row: &[Datum]| !matches!(row[field::ELEMENT], Datum::Oid(0));
    let key = |row: &[Datum]| match (&row[field::SCHEMA], &row[field::NAME]) {
        (Datum::Oid(schema), Datum::Text(name)) => Some((*schema, name.to_string())),
        _ => None,
    };
    let own = rows.iter().filter(|row| is_own(row) && !is_array(row));
    let mut taken: HashSet<(u32, String)> = own.filter_map(|row| key(row)).collect();
    let mut arrays: Vec<usize> =
        (0..rows.len()).filter(|at| is_own(&rows[*at]) && is_array(&rows[*at])).collect();
    arrays.sort_by_key(|at| match rows[*at][field::ELEMENT] {
        Datum::Oid(element) => element,
        _ => 0,
    });
    for at in arrays {
        let Some((schema, mut name)) = key(&rows[at]) else { continue };
        for _ in 0..MAX_IDENTIFIER {
            if taken.insert((schema, name.clone())) {
                break;
            }
            name = clip_name(&format!("_{name}")).to_string();
        }
        rows[at][field::NAME] = text(name);
    }
}

/// The composite types of the session's database, and their fields.
pub(super) fn composites<'a>(
    v: &View<'a>,
) -> impl Iterator<Item = (&'a UserType, &'a [Attribute])> {
    let (catalog, here) = (v.catalog, v.schemas().map(|s| s.id).collect::<Vec<_>>());
    catalog.user_types().filter_map(move |user| match &user.kind {
        TypeKind::Composite(fields) if here.contains(&user.schema) => {
            Some((&**user, fields.as_slice()))
        }
        _ => None,
    })
}

/// Writes owners and privileges into the rows of types of users.
fn own(v: &View<'_>, rows: &mut [Vec<Datum>]) {
    let mut owners: HashMap<u32, u32> = HashMap::new();
    for user in v.catalog.user_types() {
        owners.extend([(oid_of(user.id), user.id), (oid_of(user.array), user.id)]);
        if let Some(of) = user.multirange() {
            let ids = [of.multirange_id, of.multirange_array];
            owners.extend(ids.map(|id| (oid_of(id), user.id)));
        }
    }
    for (_, table) in v.stored() {
        let row_type = v.catalog.row_type(table);
        owners.extend([(row_type.oid, table.id), (row_type.array_oid, table.id)]);
    }
    for view in v.catalog.views() {
        let row_type = v.catalog.row_type_of_view(view);
        owners.extend([(row_type.oid, view.id), (row_type.array_oid, view.id)]);
    }
    for row in rows {
        let Datum::Oid(oid) = row[field::OID] else { continue };
        let Some(id) = owners.get(&oid) else { continue };
        row[field::OWNER] = roles::owner(v, *id);
        row.resize(field::ACL + 1, Datum::Null);
        if id_of_oid(oid) == Some(*id) && v.catalog.user_type(*id).is_some() {
            row[field::ACL] = roles::acl(v, *id);
        }
    }
}

/// Positions of fields, for rows that differ in them from another type's.
pub(super) mod field {
    pub(in crate::system) const OID: usize = 0;
    pub(in crate::system) const NAME: usize = 1;
    pub(in crate::system) const SCHEMA: usize = 2;
    pub(in crate::system) const OWNER: usize = 3;
    pub(in crate::system) const LENGTH: usize = 4;
    pub(in crate::system) const BY_VALUE: usize = 5;
    pub(in crate::system) const KIND: usize = 6;
    pub(in crate::system) const CATEGORY: usize = 7;
    pub(in crate::system) const PREFERRED: usize = 8;
    pub(in crate::system) const RELATION: usize = 11;
    pub(in crate::system) const SUBSCRIPTS: usize = 12;
    pub(in crate::system) const ELEMENT: usize = 13;
    pub(in crate::system) const ARRAY: usize = 14;
    pub(in crate::system) const NOT_NULL: usize = 24;
    pub(in crate::system) const BASE: usize = 25;
    pub(in crate::system) const MODIFIER: usize = 26;
    pub(in crate::system) const COLLATION: usize = 28;
    pub(in crate::system) const DEFAULT_EXPRESSION: usize = 29;
    pub(in crate::system) const DEFAULT: usize = 30;
    pub(in crate::system) const ACL: usize = 31;
}

fn domain_row(v: &View<'_>, user: &UserType, domain: &Domain, mut row: Vec<Datum>) -> Vec<Datum> {
    row.resize(field::DEFAULT + 1, Datum::Null);
    row[field::BASE] = match domain.over {
        Some(Refined::Domain(id)) => object(id),
        Some(Refined::Elements(id)) if let Some(element) = v.catalog.user_type(id) => {
            object(element.array)
        }
        _ => row[field::OID].clone(),
    };
    row[field::OID] = object(user.id);
    row[field::NAME] = text(user.name.as_str());
    row[field::KIND] = text("d");
    row[field::PREFERRED] = flag(false);
    row[field::SUBSCRIPTS] = Datum::Oid(0);
    row[field::ELEMENT] = Datum::Oid(0);
    row[field::ARRAY] = object(user.array);
    row[field::NOT_NULL] = flag(domain.not_null);
    row[field::MODIFIER] = Datum::Int4(domain.typmod());
    if let Some(own) = domain.collation {
        row[field::COLLATION] = Datum::Oid(own);
    }
    row[field::DEFAULT] = domain.default.as_deref().map_or(Datum::Null, text);
    row[field::DEFAULT_EXPRESSION] = row[field::DEFAULT].clone();
    row
}

fn domain_array_row(user: &UserType, mut row: Vec<Datum>) -> Vec<Datum> {
    row[field::OID] = object(user.array);
    row[field::NAME] = text(format!("_{}", user.name));
    row[field::ELEMENT] = object(user.id);
    row
}

/// Rows of `pg_constraint` for the conditions of domains.
pub(super) fn domain_constraints(v: &View<'_>) -> Vec<Vec<Datum>> {
    let mut rows = Vec::new();
    for user in v.catalog.user_types().filter(|t| v.schema(t.schema).is_some()) {
        let TypeKind::Domain(domain) = &user.kind else { continue };
        for (at, check) in domain.checks.iter().enumerate() {
            let mut row = vec![Datum::Null; 26];
            row[0] = Datum::Oid(constraint_oid(user.id, at));
            row[1] = text(check.name.as_str());
            row[2] = object(user.schema);
            row[3] = text("c");
            row[4..6].fill(flag(false));
            row[6] = flag(true);
            row[7] = Datum::Oid(0);
            row[8] = object(user.id);
            row[9..12].fill(Datum::Oid(0));
            row[12..15].fill(text(" "));
            row[15] = flag(true);
            row[16] = Datum::Int4(0);
            row[17] = flag(false);
            row[25] = text(check.expr.as_str());
            rows.push(row);
        }
    }
    rows
}

/// The condition of a domain with this oid; `None` within where it is not known how PostgreSQL
/// prints it.
pub(super) fn domain_check(
    catalog: &Catalog,
    oid: u32,
    how: Shown,
) -> Option<(&Check, Option<String>)> {
    let (check, base) = catalog.user_types().find_map(|user| match &user.kind {
        TypeKind::Domain(domain) => {
            let mut checks = domain.checks.iter().enumerate();
            let found = checks.find(|(at, _)| constraint_oid(user.id, *at) == oid);
            found.map(|(_, check)| (check, &domain.base))
        }
        TypeKind::Enum(_) | TypeKind::Composite(_) | TypeKind::Range(_) => None,
    })?;
    Some((check, domain_condition(check, base, how)))
}

/// The condition of a domain over a type; `None` where it is not known how PostgreSQL prints it.
pub(super) fn domain_condition(check: &Check, base: &SqlType, how: Shown) -> Option<String> {
    let parsed = parse_expr(&check.expr).ok()?;
    let deparsed = braid_scalar::deparse_of_domain(&parsed, base)?;
    Some(deparsed.text(how == Shown::Plain))
}

/// Those that are built in, and those of users.
pub(super) fn pg_collation(v: &View<'_>) -> Made {
    let row = |own: &Collation, schema: u32, owner: u32| {
        let by_database = own.oid == DEFAULT_COLLATION;
        let bytes = own.locale.is_none() && !by_database;
        let provider = match &own.locale {
            Some(_) => "i",
            None if by_database => "d",
            None => "c",
        };
        // In PostgreSQL these two are for texts in UTF-8 alone.
        let utf8 = matches!(own.name.as_str(), "ucs_basic" | "C.utf8");
        let name = match own.name.as_str() {
            name @ ("POSIX" | "C.utf8") => name,
            _ => "C",
        };
        let locale = if bytes { text(name) } else { Datum::Null };
        vec![
            Datum::Oid(own.oid),
            text(own.name.as_str()),
            Datum::Oid(schema),
            Datum::Oid(owner),
            text(provider),
            flag(own.deterministic),
            Datum::Int4(if utf8 { 6 } else { -1 }),
            locale.clone(),
            locale,
            own.locale.as_deref().map_or(Datum::Null, text),
            own.locale.as_ref().map_or(Datum::Null, |_| text(braid_scalar::COLLATION_VERSION)),
        ]
    };
    let built_in = built_in_collations().iter().map(|own| row(own, PG_CATALOG, ROOT));
    let here = v.catalog.collations().filter(|own| v.schema(own.schema).is_some());
    let owned = here.map(|own| row(&own.collation(), oid_of(own.schema), v.catalog.owner(own.id)));
    Ok(built_in.chain(owned).collect())
}

pub(super) fn pg_range(v: &View<'_>) -> Made {
    let row = |kind: RangeKind| {
        let subtype = kind.element();
        let ordered = collation(&subtype);
        let types = [SqlType::Range(kind.clone()), subtype, SqlType::Multirange(kind)];
        let class = class_of(&types[1]);
        // Functions: there are none.
        types.map(|ty| ty.oid()).into_iter().chain([ordered, class, 0, 0]).map(Datum::Oid).collect()
    };
    let made = v.catalog.user_types().filter(|t| v.schema(t.schema).is_some());
    let made = made.filter_map(|user| match v.catalog.sql_type(user)? {
        SqlType::Range(kind @ RangeKind::Made(_)) if user.multirange().is_some() => Some(kind),
        _ => None,
    });
    Ok(RangeKind::ALL.into_iter().chain(made).map(row).collect())
}

/// The operator class that orders values of a type, 0 if there is none.
pub(super) fn class_of(ty: &SqlType) -> u32 {
    braid_catalog::default_operator_class("btree", ty).map_or(0, |class| class.oid)
}

/// Oid of an access method.
pub(super) fn access_method(name: &str) -> u32 {
    match name {
        "hash" => 405,
        "gist" => 783,
        "gin" => 2742,
        "brin" => 3580,
        "spgist" => 4000,
        _ => 403,
    }
}

/// Oids of the operator classes of an index's key.
pub(super) fn operator_classes<'a>(t: &'a Table, i: &'a Index) -> impl Iterator<Item = u32> + 'a {
    i.columns.iter().enumerate().map(|(at, key)| {
        let Some(column) = t.column(key.column) else { return 0 };
        let class = braid_catalog::operator_class(i.method(), &column.ty, i.class_at(at));
        class.map_or(0, |class| class.oid)
    })
}

pub(super) fn pg_opclass(_: &View<'_>) -> Made {
    let row = |class: &OperatorClass| {
        vec![
            Datum::Oid(class.oid),
            Datum::Oid(access_method(class.method)),
            text(class.name.as_str()),
            Datum::Oid(PG_CATALOG),
            Datum::Oid(ROOT),
            Datum::Oid(0),
            Datum::Oid(class.takes),
            flag(class.is_default),
            Datum::Oid(0),
        ]
    };
    Ok(braid_catalog::operator_classes().iter().map(row).collect())
}

pub(super) fn pg_enum(v: &View<'_>) -> Made {
    let mut rows = Vec::new();
    for user in v.catalog.user_types().filter(|t| v.schema(t.schema).is_some()) {
        let TypeKind::Enum(labels) = &user.kind else { continue };
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
