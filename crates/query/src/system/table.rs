//! How a system table is described: its columns as text, and the code that makes its rows.

use std::sync::Arc;

use braid_catalog::{Catalog, Definition, Index, Schema, Table, oid_of};
use braid_scalar::EvalContext;
use braid_sql::{Database, PlanContext};
use braid_types::{Datum, SqlResult, SqlType, system_relation};

use super::relations::{SystemColumn, declared};

/// Oid of the schema `pg_catalog`.
pub(crate) const PG_CATALOG: u32 = 11;
/// Oid of the schema `information_schema`.
pub(crate) const INFORMATION_SCHEMA: u32 = 13_183;
/// Oid of the user `root`.
pub(crate) const ROOT: u32 = 10;

/// The hidden column that tells which table a row is of.
pub(crate) const TABLE_OID: &str = "tableoid";
/// The hidden column that tells which transaction has written a row: that which looks at it, since
/// rows are made when they are read. Whoever asks for what is new since then finds everything.
const XMIN: &str = "xmin";
/// Columns that no star gives, in their order behind the others.
pub(crate) const HIDDEN: [&str; 2] = [TABLE_OID, XMIN];

/// Code that makes the rows of a table.
pub type Rows = fn(&View<'_>) -> SqlResult<Vec<Vec<Datum>>>;

/// A system table.
#[derive(Clone, Copy)]
pub struct SystemTable {
    /// `name type, name type, ...`. In `information_schema` `name`, `text`, `int4` and
    /// `timestamptz` stand for its domains over them.
    pub layout: &'static str,
    /// Its rows.
    pub rows: Rows,
    /// Its oid, which is known when it was found by its name.
    pub oid: u32,
}

impl SystemTable {
    /// Columns by the layout.
    pub fn columns(&self) -> Vec<(String, SqlType)> {
        self.declared()
            .map(|column| (column.name.to_string(), column.ty))
            .chain(HIDDEN.into_iter().filter(|_| self.is_table()).map(hidden))
            .collect()
    }

    /// Columns as they are declared.
    pub(super) fn declared(&self) -> impl Iterator<Item = SystemColumn> {
        let relation = system_relation(self.oid);
        let is_standard = relation.is_some_and(|r| r.schema == "information_schema");
        let columns = self.layout.split(',').filter_map(|column| column.trim().split_once(' '));
        columns.map(move |(name, ty)| {
            let (ty, declared) = declared(ty.trim(), is_standard);
            SystemColumn { name, ty, declared }
        })
    }

    /// Whether its rows tell which table they are of, and since when they are there: those of
    /// views do not.
    pub(super) fn is_table(&self) -> bool {
        system_relation(self.oid).is_some_and(|relation| !relation.is_view)
    }

    /// Number of columns.
    pub fn width(&self) -> usize {
        self.layout.split(',').count()
    }
}

fn hidden(name: &str) -> (String, SqlType) {
    (name.to_string(), SqlType::Oid)
}

/// What the rows are made from.
pub struct View<'a> {
    /// All descriptors.
    pub catalog: &'a Arc<Catalog>,
    /// Name of the session's database.
    pub database: &'a str,
    /// Its id.
    pub database_id: u32,
    /// The session's user.
    pub user: &'a str,
    /// Schemas whose names may be left out.
    pub search_path: &'a [String],
    /// The database, for what happens in it.
    pub database_object: &'a Arc<Database>,
    /// The session, for settings.
    pub eval: &'a EvalContext,
}

impl<'a> View<'a> {
    /// The view of a plan's context.
    pub fn new(context: &'a PlanContext, eval: &'a EvalContext) -> View<'a> {
        View {
            catalog: &context.catalog,
            database: &context.database,
            database_id: context.database_id(),
            user: &context.user,
            search_path: &context.search_path,
            database_object: &context.db,
            eval,
        }
    }

    /// Schemas of the session's database.
    pub fn schemas(&self) -> impl Iterator<Item = &'a Arc<Schema>> + use<'a> {
        self.catalog.schemas(self.database_id)
    }

    /// The schema of an object, if it is in the session's database.
    pub fn schema(&self, id: u32) -> Option<&'a Arc<Schema>> {
        self.catalog.schema_by_id(id).filter(|s| s.database == self.database_id)
    }

    /// Tables of the session's database with their schemas.
    pub fn tables(&self) -> Vec<(&'a Arc<Schema>, &'a Arc<Table>)> {
        self.stored().filter(|(_, t)| t.materialized().is_none()).collect()
    }

    /// Its tables with their partitions, and materialized views.
    pub fn stored(&self) -> impl Iterator<Item = (&'a Arc<Schema>, &'a Arc<Table>)> {
        let all = self.catalog.tables().chain(self.catalog.shown_partitions());
        all.filter_map(|t| Some((self.schema(t.schema)?, t)))
    }

    /// The query of a view, as clients are shown it.
    pub fn query_of(&self, view: u32, definition: &Definition) -> Datum {
        let asked = [object(view)];
        let shown = self.eval.session.catalog_function("pg_get_viewdef", &asked);
        let shown = shown.ok().flatten().filter(|shown| !shown.is_null());
        shown.unwrap_or_else(|| text(braid_parser::shown(&definition.query)))
    }

    /// Indexes of a table that clients see.
    pub fn indexes(&self, table: &'a Table) -> Vec<&'a Index> {
        shown_indexes(table)
    }
}

/// Indexes of a table that clients see: not the one of a hidden row id.
pub(crate) fn shown_indexes(table: &Table) -> Vec<&Index> {
    table.shown_indexes().collect()
}

/// A text.
pub fn text(value: impl Into<Arc<str>>) -> Datum {
    Datum::text(value)
}

/// An oid of an object by its id.
pub fn object(id: u32) -> Datum {
    Datum::Oid(oid_of(id))
}

/// A boolean.
pub fn flag(value: bool) -> Datum {
    Datum::Bool(value)
}

/// No rows.
pub fn empty(_: &View<'_>) -> SqlResult<Vec<Vec<Datum>>> {
    Ok(Vec::new())
}

/// The oid of a constraint, made from its table and its place, apart from all others.
pub(crate) fn constraint_oid(table: u32, place: usize) -> u32 {
    2_000_000_000 + (table % 1_000_000) * 1_000 + place as u32 % 1_000
}

/// The oid of a column's default.
pub(crate) fn default_oid(table: u32, column: u32) -> u32 {
    constraint_oid(table, 500 + column as usize)
}

/// The oid of the rule that makes a view of a relation.
pub(crate) fn rule_oid(view: u32) -> u32 {
    1_000_000_000 + view
}

/// The attribute numbers of columns, as PostgreSQL counts them.
pub(crate) fn attnums(columns: impl IntoIterator<Item = u32>) -> Datum {
    let items = columns.into_iter().map(|c| Datum::Int2(c as i16)).collect();
    Datum::Array(Arc::new(braid_types::ArrayValue::list(SqlType::Int2, items)))
}

/// The same as an `int2vector`.
pub(crate) fn int2_vector(numbers: impl IntoIterator<Item = u32>) -> Datum {
    let items = numbers.into_iter().map(|c| Datum::Int2(c as i16)).collect();
    Datum::Array(Arc::new(braid_types::ArrayValue::vector(SqlType::Int2, items)))
}

/// Oids as an `oidvector`.
pub(crate) fn oid_vector(oids: impl IntoIterator<Item = u32>) -> Datum {
    let items = oids.into_iter().map(Datum::Oid).collect();
    Datum::Array(Arc::new(braid_types::ArrayValue::vector(SqlType::Oid, items)))
}
