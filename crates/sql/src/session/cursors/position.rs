//! Rows of tables that cursors stand on: `UPDATE .. WHERE CURRENT OF`.
//!
//! ```text
//!   DECLARE c CURSOR FOR SELECT b FROM t      SELECT b, t.key FROM t, the key not shown
//!   UPDATE t .. WHERE CURRENT OF c            UPDATE t .. WHERE key = (what c has there)
//! ```
//! The query of a cursor gets the keys of its tables as further columns, and FETCH notes those of
//! the row that it ends at. So the row is found by its key, as any other.

use std::collections::BTreeMap;

use braid_catalog::{Relation, Table};
use braid_parser::parse_expr;
use braid_scalar::{OpenCursor, ident_name, object_name_parts};
use braid_types::{Datum, SqlError, SqlResult, SqlState, SqlType, quote_ident};
use parking_lot::Mutex;
use sqlparser::ast;

use super::cursor::no_cursor;
use crate::session::context::Context;
use crate::session::state::SessionState;

/// The open cursors of a session by name.
pub(in crate::session) type KnownCursors = Mutex<BTreeMap<String, Known>>;

/// What is known of a cursor without asking it.
pub(in crate::session) struct Known {
    /// As `pg_cursors` shows it.
    pub(in crate::session) open: OpenCursor,
    tables: Vec<CursorTable>,
    /// Its query has FOR UPDATE or the like.
    locks: bool,
    /// Its transaction has ended.
    pub(super) held: bool,
    /// The keys of the rows that it stands on, one table's behind the other's.
    pub(super) current: Option<Vec<Datum>>,
}

impl Known {
    pub(super) fn new(open: OpenCursor, tables: &[CursorTable], locks: bool) -> Known {
        Known { open, tables: tables.to_vec(), locks, held: false, current: None }
    }
}

/// A table whose rows a cursor can tell.
#[derive(Clone)]
pub(crate) struct CursorTable {
    id: u32,
    /// The types of its key's columns.
    pub(super) key: Vec<SqlType>,
}

impl CursorTable {
    /// How many columns its key has.
    pub(crate) fn keys(&self) -> usize {
        self.key.len()
    }
}

fn key_columns(table: &Table) -> impl Iterator<Item = &braid_catalog::Column> {
    table.primary.columns.iter().filter_map(|key| table.column(key.column))
}

/// The query of a cursor with the keys of its tables behind its columns; `None` if it is none whose
/// rows are those of tables.
pub(crate) fn with_keys(
    ctx: &Context,
    query: &ast::Query,
) -> Option<(ast::Query, Vec<CursorTable>)> {
    let ast::SetExpr::Select(select) = &*query.body else { return None };
    let grouped = !matches!(&select.group_by,
        ast::GroupByExpr::Expressions(list, _) if list.is_empty());
    if select.distinct.is_some() || grouped || select.having.is_some() {
        return None;
    }
    let from = select.from.iter();
    let factors: Vec<&ast::TableFactor> = from
        .flat_map(|f| std::iter::once(&f.relation).chain(f.joins.iter().map(|j| &j.relation)))
        .collect();
    if query.locks.is_empty() && factors.len() != 1 {
        return None;
    }
    let (mut out, mut tables, mut items) = (query.clone(), Vec::new(), Vec::new());
    for factor in factors {
        let Some((table, alias)) = table_of(ctx, query, factor) else { continue };
        let key: Vec<_> = key_columns(&table).collect();
        for column in &key {
            let quoted = |name: &str| ast::Ident::with_quote('"', name);
            let name = format!("braid_key_{}", items.len());
            items.push(ast::SelectItem::ExprWithAlias {
                expr: ast::Expr::CompoundIdentifier(vec![quoted(&alias), quoted(&column.name)]),
                alias: quoted(&name),
            });
        }
        let key = key.iter().map(|column| column.ty.clone()).collect();
        tables.push(CursorTable { id: table.id, key });
    }
    let ast::SetExpr::Select(select) = &mut *out.body else { return None };
    select.projection.append(&mut items);
    (!tables.is_empty()).then_some((out, tables))
}

/// The table that stands in FROM, and what the query calls it. If the query locks rows, then those
/// of this one.
fn table_of(
    ctx: &Context,
    query: &ast::Query,
    factor: &ast::TableFactor,
) -> Option<(std::sync::Arc<Table>, String)> {
    let ast::TableFactor::Table { name, alias, args: None, .. } = factor else { return None };
    let parts = object_name_parts(name);
    let with = query.with.iter().flat_map(|with| &with.cte_tables);
    if with.into_iter().any(|item| parts == [ident_name(&item.alias.name)]) {
        return None;
    }
    let Ok(Relation::Table(table)) = ctx.relation(&parts) else { return None };
    let called = match alias {
        Some(alias) if !alias.columns.is_empty() => return None,
        Some(alias) => ident_name(&alias.name),
        None => table.name.clone(),
    };
    let locked = |lock: &ast::LockClause| {
        lock.of.as_ref().is_none_or(|of| object_name_parts(of).last() == Some(&called))
    };
    let counts = query.locks.is_empty() || query.locks.iter().any(locked);
    (counts && table.materialized().is_none()).then_some((table, called))
}

/// The condition for the row of a table that a cursor stands on; `alias` is what the statement
/// calls the table.
pub(crate) fn current_row(table: &Table, alias: &str, cursor: &str) -> SqlResult<ast::Expr> {
    let name = cursor.replace('\'', "''");
    let parts: Vec<String> = key_columns(table)
        .enumerate()
        .map(|(at, column)| {
            let (alias, key) = (quote_ident(alias), quote_ident(&column.name));
            let (ty, id) = (column.ty.name(), table.id);
            format!("{alias}.{key} = braid_cursor_key(CAST(NULL AS {ty}), '{name}', {id}, {at})")
        })
        .collect();
    parse_expr(&parts.join(" AND "))
}

impl SessionState {
    /// A column of the key of the row of a table that a cursor stands on.
    pub(in crate::session) fn key_under_cursor(
        &self,
        name: &str,
        table: u32,
        column: usize,
    ) -> SqlResult<Datum> {
        let cursors = self.cursors.lock();
        let known = cursors.get(name).ok_or_else(|| no_cursor(name))?;
        let refused = |why: String| {
            Err(SqlError::new(SqlState::INVALID_CURSOR_STATE, format!("cursor \"{name}\" {why}")))
        };
        if known.held {
            return refused("is held from a previous transaction".into());
        }
        let places: Vec<usize> =
            (0..known.tables.len()).filter(|at| known.tables[*at].id == table).collect();
        let called =
            || self.catalog().table(table).map(|table| table.name.clone()).unwrap_or_default();
        let place = match (places.as_slice(), known.locks) {
            ([place], _) => *place,
            ([], false) => {
                return refused(format!(
                    "is not a simply updatable scan of table \"{}\"",
                    called()
                ));
            }
            ([], true) => {
                let text = "does not have a FOR UPDATE/SHARE reference to table";
                return refused(format!("{text} \"{}\"", called()));
            }
            (_, _) => {
                let text = "has multiple FOR UPDATE/SHARE references to table";
                return refused(format!("{text} \"{}\"", called()));
            }
        };
        let before: usize = known.tables[..place].iter().map(|table| table.key.len()).sum();
        match &known.current {
            Some(keys) => Ok(keys.get(before + column).cloned().unwrap_or(Datum::Null)),
            None => refused("is not positioned on a row".into()),
        }
    }
}
