//! Finding a system table or the query of a view, and reading its rows.

use braid_scalar::EvalContext;
use braid_sql::PlanContext;
use braid_types::{Datum, SqlResult, SqlType, system_relations};
use sqlparser::ast;

use super::ours::{families, nodes, settings, transactions};
use super::table::{SystemTable, View};
use super::{
    activity, extensions, info_schema, pg_tables, roles, row_statistics, sql_functions, statistics,
};

/// Whether `pg_catalog` has a table of this name, which then means it unless a schema is named.
pub(crate) fn is_pg_table(name: &str) -> bool {
    (name.starts_with("pg_") || name.starts_with("braid_")) && table("pg_catalog", name).is_some()
}

/// A system table by schema and name.
pub fn table(schema: &str, name: &str) -> Option<SystemTable> {
    let mut all = system_relations().iter();
    let oid = all.find(|r| r.schema == schema && r.name == name)?.oid;
    let found = match schema {
        "pg_catalog" => {
            let live = || statistics::table(name).or_else(|| activity::table(name));
            let known = pg_tables::table(name).or_else(|| row_statistics::table(name));
            known
                .or_else(live)
                .or_else(|| extensions::table(name))
                .or_else(|| families::table(name))
                .or_else(|| nodes::table(name))
                .or_else(|| settings::table(name))
                .or_else(|| transactions::table(name))
        }
        _ => info_schema::table(name)
            .or_else(|| roles::information_table(name))
            .or_else(|| sql_functions::table(name)),
    };
    found.map(|table| SystemTable { oid, ..table })
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
    let hidden = match table.is_table() {
        true => vec![Datum::Oid(table.oid), transaction(eval)?],
        false => Vec::new(),
    };
    for row in &mut rows {
        row.resize(table.width(), Datum::Null);
        row.extend(hidden.iter().cloned());
    }
    Ok(rows)
}

/// The number of the transaction, of the size that `xid` has.
fn transaction(eval: &EvalContext) -> SqlResult<Datum> {
    let number = eval.session.catalog_function("txid_current", &[])?;
    Ok(match number {
        Some(Datum::Int8(number)) => Datum::Oid(number as u32),
        _ => Datum::Null,
    })
}

/// Parses the text of a view.
///
/// # Errors
/// 42601 when it is not one query.
pub fn parse_query(text: &str) -> SqlResult<ast::Query> {
    braid_parser::parse_query(text).map(|query| *query)
}

/// Types by their short names in table definitions.
pub(crate) fn type_named(name: &str) -> SqlType {
    SqlType::from_name(name).unwrap_or(SqlType::Text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_relation_that_is_listed_is_there() {
        let lacks = system_relations().iter().filter(|r| table(r.schema, r.name).is_none());
        assert_eq!(lacks.map(|r| r.name).collect::<Vec<_>>(), Vec::<&str>::new());
    }
}
