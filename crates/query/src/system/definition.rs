//! Descriptors back to SQL, and the functions over the catalog that clients call.

use braid_catalog::{Catalog, ForeignKey, Index, Relation, Table, id_of_oid, oid_of};
use braid_scalar::SessionFunctions;
use braid_sql::session::{SessionState, column_names, foreign_key, index_definition, key_column};
use braid_types::quote_ident;
use braid_types::{Datum, SqlError, SqlResult, SqlState};

use super::table::{INFORMATION_SCHEMA, PG_CATALOG};

/// The key columns of an index, without directions.
pub(crate) fn key_text(t: &Table, i: &Index) -> String {
    let mut out = column_names(t, i.columns.iter().map(|c| c.column));
    if !i.include.is_empty() {
        out.push_str(&format!(") INCLUDE ({}", column_names(t, i.include.iter().copied())));
    }
    out
}

/// `CREATE INDEX` as `pg_get_indexdef` prints it.
pub(crate) fn index_text(c: &Catalog, t: &Table, i: &Index) -> String {
    index_definition(c, t, i, "USING btree ")
}

/// A CHECK constraint.
pub fn check_text(expr: &str) -> String {
    format!("CHECK (({expr}))")
}

/// A foreign key as `pg_get_constraintdef` prints it.
pub(crate) fn foreign_key_text(c: &Catalog, t: &Table, fk: &ForeignKey) -> String {
    foreign_key(c, t, fk, |parent| quote_ident(&parent.name))
}

fn oid_arg(args: &[Datum], at: usize) -> Option<u32> {
    match args.get(at) {
        Some(Datum::Oid(oid)) => Some(*oid),
        _ => None,
    }
}

fn definition_of(catalog: &Catalog, args: &[Datum]) -> Option<String> {
    let (table, index) = catalog.index(id_of_oid(oid_arg(args, 0)?)?)?;
    match args.get(1) {
        Some(Datum::Int4(n)) if *n > 0 => {
            let at = *n as usize - 1;
            let keys: Vec<u32> = index
                .columns
                .iter()
                .map(|c| c.column)
                .chain(index.include.iter().copied())
                .collect();
            Some(key_column(table, *keys.get(at)?))
        }
        _ => Some(index_text(catalog, table, index)),
    }
}

/// Whether the name of a relation finds it without its schema.
fn visible(session: &SessionState, catalog: &Catalog, oid: u32) -> Option<bool> {
    let id = id_of_oid(oid)?;
    let (_, name) = catalog.qualified_name(id)?;
    let database = catalog.database(&session.database)?.id;
    let found = catalog.resolve(database, &session.search_path(), &name)?;
    Some(found.id() == id)
}

fn comment(catalog: &Catalog, oid: u32, column: i32) -> Option<String> {
    let id = id_of_oid(oid)?;
    if let Some(ty) = catalog.user_type(id) {
        return ty.comment.clone();
    }
    match catalog.relation_by_id(id)? {
        Relation::Table(t) if column > 0 => t.column(column as u32)?.comment.clone(),
        Relation::Table(t) => t.comment.clone(),
        Relation::View(v) => v.comment.clone(),
        _ => None,
    }
}

fn serial_sequence(session: &SessionState, catalog: &Catalog, args: &[Datum]) -> Option<String> {
    let (Datum::Text(table), Datum::Text(column)) = (args.first()?, args.get(1)?) else {
        return None;
    };
    let oid = session.relation_oid(table).ok()??;
    let table = catalog.table(id_of_oid(oid)?)?;
    let sequence = table.column_named(column)?.sequence?;
    let (schema, name) = catalog.qualified_name(sequence)?;
    Some(format!("{}.{}", quote_ident(&schema), quote_ident(&name)))
}

/// The oid of a schema by its name.
fn schema_oid(session: &SessionState, catalog: &Catalog, args: &[Datum]) -> SqlResult<u32> {
    let Some(Datum::Text(name)) = args.first() else { return Ok(0) };
    if let Ok(oid) = name.trim().parse() {
        return Ok(oid);
    }
    let database = catalog.database(&session.database).map_or(0, |d| d.id);
    match name.trim().trim_matches('"') {
        "pg_catalog" => Ok(PG_CATALOG),
        "information_schema" => Ok(INFORMATION_SCHEMA),
        own => catalog.schema(database, own).map(|s| oid_of(s.id)).ok_or_else(|| {
            SqlError::new(SqlState("3F000"), format!("schema \"{own}\" does not exist"))
        }),
    }
}

/// Functions over the catalog; `None` leaves the answer to the function's default.
///
/// # Errors
/// 3F000 for a schema that is not there.
pub fn catalog_function(
    session: &SessionState,
    name: &str,
    args: &[Datum],
) -> SqlResult<Option<Datum>> {
    let catalog = session.catalog();
    let as_text = |t: Option<String>| t.map(Datum::text);
    Ok(match name {
        // Expressions are kept as text, so the stored form is the shown one.
        "pg_get_expr" => args.first().cloned(),
        "regnamespacein" => Some(Datum::Oid(schema_oid(session, &catalog, args)?)),
        "pg_get_indexdef" => as_text(definition_of(&catalog, args)),
        "pg_get_constraintdef" => {
            let database = catalog.database(&session.database).map_or(0, |d| d.id);
            as_text(
                oid_arg(args, 0)
                    .and_then(|oid| super::pg_tables::constraint_text(&catalog, database, oid)),
            )
        }
        "pg_get_viewdef" => as_text(
            oid_arg(args, 0)
                .and_then(id_of_oid)
                .and_then(|id| catalog.view(id).map(|v| format!(" {};", v.query))),
        ),
        "pg_get_serial_sequence" => as_text(serial_sequence(session, &catalog, args)),
        "pg_get_userbyid" => Some(Datum::text(session.user.clone())),
        "pg_table_is_visible" => Some(Datum::Bool(
            oid_arg(args, 0).is_some_and(|oid| visible(session, &catalog, oid).unwrap_or(false)),
        )),
        "obj_description" => as_text(oid_arg(args, 0).and_then(|oid| comment(&catalog, oid, 0))),
        "col_description" => {
            let column = match args.get(1) {
                Some(Datum::Int4(n)) => *n,
                _ => 0,
            };
            as_text(oid_arg(args, 0).and_then(|oid| comment(&catalog, oid, column)))
        }
        _ => None,
    })
}
