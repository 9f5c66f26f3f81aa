//! Words that name nothing unless they are in quotes: sqlparser takes them for names of tables,
//! columns and items of WITH.

use std::ops::ControlFlow;

use braid_types::{SqlError, SqlResult, is_reserved};
use braid_walk::Walk;
use sqlparser::ast::{self, Ident, ObjectName, Visitor};

use crate::Kind;

/// # Errors
/// 42601 for a reserved word where a statement gives a name.
pub(crate) fn check(kind: &Kind) -> SqlResult<()> {
    match kind {
        Kind::CreateTable(create) => {
            last_of(&create.base.name)?;
            create.base.columns.iter().try_for_each(|column| given(&column.name))
        }
        Kind::CreateIndex(create) => create.base.name.as_ref().map_or(Ok(()), last_of),
        Kind::Sql(statement) => {
            in_statement(statement)?;
            with_items(&**statement)
        }
        Kind::Insert(insert, _) => match &insert.source {
            Some(query) => with_items(&**query),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

fn in_statement(statement: &ast::Statement) -> SqlResult<()> {
    match statement {
        ast::Statement::CreateView(view) => last_of(&view.name),
        ast::Statement::CreateType { name, .. } => last_of(name),
        ast::Statement::CreateSchema { schema_name, .. } => match schema_name {
            ast::SchemaName::Simple(name) | ast::SchemaName::NamedAuthorization(name, _) => {
                last_of(name)
            }
            ast::SchemaName::UnnamedAuthorization(_) => Ok(()),
        },
        ast::Statement::AlterTable(alter) => alter.operations.iter().try_for_each(|o| match o {
            ast::AlterTableOperation::AddColumn { column_def, .. } => given(&column_def.name),
            _ => Ok(()),
        }),
        _ => Ok(()),
    }
}

fn last_of(name: &ObjectName) -> SqlResult<()> {
    let last = name.0.last().and_then(|part| part.as_ident());
    last.map_or(Ok(()), given)
}

/// A name that is given. What has no place in the text was put in by a rewriting.
fn given(name: &Ident) -> SqlResult<()> {
    let start = name.span.start;
    if name.quote_style.is_some() || start.line == 0 || !is_reserved(&name.value.to_lowercase()) {
        return Ok(());
    }
    let text = format!("syntax error at or near \"{}\"", name.value.to_lowercase());
    Err(SqlError::syntax(text).or_at(start.line, start.column))
}

fn with_items(tree: &impl Walk) -> SqlResult<()> {
    struct Items;
    impl Visitor for Items {
        type Break = SqlError;
        fn pre_visit_query(&mut self, query: &ast::Query) -> ControlFlow<SqlError> {
            for item in query.with.iter().flat_map(|with| &with.cte_tables) {
                if let Err(e) = given(&item.alias.name) {
                    return ControlFlow::Break(e);
                }
            }
            ControlFlow::Continue(())
        }
    }
    match tree.walk(&mut Items) {
        ControlFlow::Break(e) => Err(e),
        ControlFlow::Continue(()) => Ok(()),
    }
}
