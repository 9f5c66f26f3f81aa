//! Finding a system table or the query of a view, and reading its rows.

use braid_scalar::EvalContext;
use braid_sql::PlanContext;
use braid_types::{Datum, SqlError, SqlResult, SqlState, SqlType};
use sqlparser::ast;
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::Parser;

use super::table::{SystemTable, View};
use super::{activity, info_schema, pg_tables, row_statistics, statistics};

/// Whether `pg_catalog` has a table of this name, which then means it unless a schema is named.
pub(crate) fn is_pg_table(name: &str) -> bool {
    (name.starts_with("pg_") || name.starts_with("braid_")) && table("pg_catalog", name).is_some()
}

/// A system table by schema and name.
pub fn table(schema: &str, name: &str) -> Option<SystemTable> {
    match schema {
        "pg_catalog" => {
            let live = || statistics::table(name).or_else(|| activity::table(name));
            let known = pg_tables::table(name).or_else(|| row_statistics::table(name));
            known.or_else(live).map(|table| SystemTable { oid: oid_of_table(name), ..table })
        }
        "information_schema" => info_schema::table(name),
        _ => None,
    }
}

/// The oid of a table of `pg_catalog`: PostgreSQL's where clients know it by heart.
fn oid_of_table(name: &str) -> u32 {
    const KNOWN: &[(&str, u32)] = &[
        ("pg_type", 1247),
        ("pg_attribute", 1249),
        ("pg_proc", 1255),
        ("pg_class", 1259),
        ("pg_authid", 1260),
        ("pg_auth_members", 1261),
        ("pg_database", 1262),
        ("pg_tablespace", 1213),
        ("pg_shdescription", 2396),
        ("pg_am", 2601),
        ("pg_amop", 2602),
        ("pg_amproc", 2603),
        ("pg_attrdef", 2604),
        ("pg_cast", 2605),
        ("pg_constraint", 2606),
        ("pg_conversion", 2607),
        ("pg_depend", 2608),
        ("pg_description", 2609),
        ("pg_index", 2610),
        ("pg_inherits", 2611),
        ("pg_language", 2612),
        ("pg_namespace", 2615),
        ("pg_opclass", 2616),
        ("pg_operator", 2617),
        ("pg_rewrite", 2618),
        ("pg_trigger", 2620),
        ("pg_opfamily", 2753),
        ("pg_extension", 3079),
        ("pg_collation", 3456),
        ("pg_enum", 3501),
    ];
    let known = KNOWN.iter().find(|(known, _)| *known == name).map(|(_, oid)| *oid);
    // Of the others it only matters that each has its own.
    known.unwrap_or_else(|| {
        let hash = name.bytes().fold(7u32, |hash, b| hash.wrapping_mul(31).wrapping_add(b.into()));
        14_000 + hash % 2_000
    })
}

/// The rows of a system table.
///
/// # Errors
/// When a descriptor cannot be shown.
pub fn rows(
    table: &SystemTable,
    context: &PlanContext,
    eval: &EvalContext,
) -> SqlResult<Vec<Vec<Datum>>> {
    let view = View::new(context, eval);
    let mut rows = (table.rows)(&view)?;
    for row in &mut rows {
        row.resize(table.width(), Datum::Null);
        row.extend((table.oid != 0).then_some(Datum::Oid(table.oid)));
    }
    Ok(rows)
}

/// Parses the text of a view.
///
/// # Errors
/// 42601 when it is not one query.
pub fn parse_query(text: &str) -> SqlResult<ast::Query> {
    let statements = Parser::parse_sql(&PostgreSqlDialect {}, text)
        .map_err(|e| SqlError::new(SqlState::SYNTAX_ERROR, e.to_string()))?;
    match statements.into_iter().next() {
        Some(ast::Statement::Query(query)) => Ok(*query),
        _ => Err(SqlError::internal("a view that is not a query")),
    }
}

/// Types by their short names in table definitions.
pub(crate) fn type_named(name: &str) -> SqlType {
    SqlType::from_name(name).unwrap_or(SqlType::Text)
}
