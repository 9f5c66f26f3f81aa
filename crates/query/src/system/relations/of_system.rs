//! What the catalogs say of the relations of `pg_catalog` and `information_schema` themselves:
//! their columns come from the layouts that their rows are made by, all else from the one list of
//! them.

use std::sync::LazyLock;

use braid_catalog::{Grant, PUBLIC, Privileges, Securable};
use braid_types::{
    ArrayValue, Datum, SqlError, SqlResult, SqlState, SqlType, SystemRelation, system_relations,
    system_type_oid,
};

use super::attributes::{Attribute, attribute_row};
use super::classes::{ACL, BOUND, IDENTITY, ROW_TYPE, SHARED, class_row};
use crate::system::table::{INFORMATION_SCHEMA, PG_CATALOG, ROOT, View, flag, text};
use crate::system::{lookup, pg_tables, type_named};

/// Oid of `pg_class`.
const CLASS: u32 = 1259;
/// Oid of the collation "C", which texts of the system have.
const BYTES: u32 = 950;

/// A column of a relation of the system.
pub(in crate::system) struct SystemColumn {
    pub(in crate::system) name: &'static str,
    /// The type that its values have.
    pub(in crate::system) ty: SqlType,
    /// Oid of the type that it is declared with: a domain, or one that only the system has.
    pub(in crate::system) declared: u32,
}

/// A relation of the system with its columns.
pub(in crate::system) struct Listed {
    pub(in crate::system) relation: &'static SystemRelation,
    pub(in crate::system) columns: Vec<SystemColumn>,
}

impl Listed {
    /// Oid of the collation of a column: texts of tables are ordered by their bytes.
    pub(in crate::system) fn collation(&self, column: &SystemColumn) -> u32 {
        let own = match column.declared {
            ACL_ITEMS => 0,
            _ => pg_tables::collation(&column.ty),
        };
        let computed = self.relation.is_view && column.declared == column.ty.oid();
        if own == 0 || computed { own } else { BYTES }
    }

    /// What `relkind` says.
    fn kind(&self) -> &'static str {
        if self.relation.is_view { "v" } else { "r" }
    }

    /// Whether a number is that of a column.
    ///
    /// # Errors
    /// 42703 for a name that no column has.
    pub(in crate::system) fn has_column(&self, column: &Datum) -> SqlResult<bool> {
        match column {
            Datum::Int2(number) => {
                Ok(usize::try_from(*number).is_ok_and(|n| (1..=self.columns.len()).contains(&n)))
            }
            Datum::Text(name) if self.columns.iter().all(|c| *c.name != **name) => {
                let relation = self.relation.name;
                let text = format!("column \"{name}\" of relation \"{relation}\" does not exist");
                Err(SqlError::new(SqlState::UNDEFINED_COLUMN, text))
            }
            _ => Ok(true),
        }
    }

    /// Oid of its schema.
    pub(in crate::system) fn namespace(&self) -> u32 {
        if self.relation.schema == "pg_catalog" { PG_CATALOG } else { INFORMATION_SCHEMA }
    }
}

static LISTED: LazyLock<Vec<Listed>> = LazyLock::new(|| {
    let with_columns = |relation: &'static SystemRelation| {
        let table = lookup::table(relation.schema, relation.name)?;
        Some(Listed { relation, columns: table.declared().collect() })
    };
    system_relations().iter().filter_map(with_columns).collect()
});

static CLASSES: LazyLock<Vec<Vec<Datum>>> = LazyLock::new(|| {
    let row = |of: &Listed| {
        let r = of.relation;
        let width = of.columns.len();
        let mut row = class_row(r.oid, r.name, of.namespace(), of.kind(), width, 0, false);
        row[ROW_TYPE] = Datum::Oid(r.row_type);
        row[SHARED] = flag(r.is_shared);
        if of.namespace() == PG_CATALOG {
            row[IDENTITY] = text("n");
        }
        row.resize(BOUND + 1, Datum::Null);
        row
    };
    LISTED.iter().map(row).collect()
});

static ATTRIBUTES: LazyLock<Vec<Vec<Datum>>> = LazyLock::new(|| {
    let rows = LISTED.iter().flat_map(|of| {
        of.columns.iter().enumerate().map(|(at, column)| {
            let number = at as i16 + 1;
            let mut own = Attribute::plain(of.relation.oid, column.name, &column.ty, number);
            own.declared = (column.declared, -1);
            own.collation = of.collation(column);
            own.not_null = of.relation.requires(at, column.name);
            attribute_row(&own)
        })
    });
    rows.collect()
});

/// The relations of the system.
pub(in crate::system) fn listed() -> &'static [Listed] {
    &LISTED
}

/// The one with an oid.
pub(in crate::system) fn listed_by_oid(oid: u32) -> Option<&'static Listed> {
    LISTED.iter().find(|of| of.relation.oid == oid)
}

/// Their rows of `pg_class`.
pub(super) fn classes(v: &View<'_>) -> impl Iterator<Item = Vec<Datum>> {
    let acl = acl_items(v);
    CLASSES.iter().map(move |row| {
        let mut row = row.clone();
        row[ACL] = acl.clone();
        row
    })
}

/// Their rows of `pg_attribute`.
pub(super) fn attributes() -> &'static [Vec<Datum>] {
    &ATTRIBUTES
}

/// Who may do what with them: everybody reads them.
pub(in crate::system) fn acl_of_system() -> [Grant; 2] {
    let grant = |grantee, privileges| Grant {
        grantee,
        grantor: ROOT,
        privileges,
        grantable: Privileges::NONE,
    };
    [grant(ROOT, Securable::Table.privileges()), grant(PUBLIC, Privileges::of("r"))]
}

fn acl_items(v: &View<'_>) -> Datum {
    let items = v.catalog.acl_items(&acl_of_system(), v.user).into_iter().map(Datum::text);
    Datum::Array(ArrayValue::list(SqlType::Text, items.collect()).into())
}

/// `pg_init_privs`: what was granted on them at the beginning, which no dump need say.
pub(in crate::system) fn init_privileges(v: &View<'_>) -> SqlResult<Vec<Vec<Datum>>> {
    let acl = acl_items(v);
    let row = |of: &Listed| {
        let place = [Datum::Oid(of.relation.oid), Datum::Oid(CLASS), Datum::Int4(0), text("i")];
        place.into_iter().chain([acl.clone()]).collect()
    };
    Ok(LISTED.iter().map(row).collect())
}

/// The type that a layout means by a name: that of values, and the oid of the declared one.
pub(in crate::system) fn declared(name: &str, is_standard: bool) -> (SqlType, u32) {
    let of_standard = match name {
        "name" => Some((SqlType::Name, "sql_identifier")),
        "text" => Some((SqlType::Varchar(None), "character_data")),
        "yes_or_no" => Some((SqlType::Varchar(Some(3)), "yes_or_no")),
        "int4" => Some((SqlType::Int4, "cardinal_number")),
        "timestamptz" => Some((SqlType::TimestampTz, "time_stamp")),
        _ => None,
    };
    if let Some((ty, domain)) = of_standard.filter(|_| is_standard) {
        let oid = system_type_oid(&format!("information_schema.{domain}"));
        let oid = oid.unwrap_or_else(|| ty.oid());
        return (ty, oid);
    }
    // Of these types there are no values: theirs are texts and numbers.
    let ty = match name {
        "aclitem[]" => SqlType::Array(Box::new(SqlType::Text)),
        "xid" => SqlType::Oid,
        "anyarray" => return (SqlType::Text, ANY_ARRAY),
        "pg_node_tree" | "pg_ndistinct" | "pg_dependencies" | "pg_mcv_list" | "pg_statistic[]" => {
            SqlType::Text
        }
        known => {
            let ty = type_named(known);
            let oid = ty.oid();
            return (ty, oid);
        }
    };
    let oid = system_type_oid(name).unwrap_or_else(|| ty.oid());
    (ty, oid)
}

/// Oid of `aclitem[]`.
const ACL_ITEMS: u32 = 1034;
/// Oid of `anyarray`.
const ANY_ARRAY: u32 = 2277;
