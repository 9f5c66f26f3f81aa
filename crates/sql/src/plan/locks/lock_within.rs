//! Rows to be locked behind subqueries and views of FROM: those of their tables.
//!
//! ```text
//!   SELECT s.a FROM (SELECT a FROM t WHERE b > 1) AS s FOR UPDATE
//!
//!   query    SELECT s.a, s.key FROM (SELECT a, t.id AS key FROM t WHERE b > 1) AS s
//! ```
//! The names of such keys can be nobody's, and no star means them.

use std::sync::Arc;

use braid_catalog::{Relation, Table};
use braid_scalar::{ident_name, object_name_parts};
use braid_types::{SqlError, SqlResult, SqlState, quote_ident};
use sqlparser::ast::{self, JoinOperator, SetExpr, TableFactor};

use super::super::select::Locking;
use super::lock_clauses::{check_lockable, clause, lockable_select, locking_of};
use crate::general_query::KEY_COLUMN;
use crate::session::Context;
use crate::views::qualified_query;

/// A table, and where its key stands: expressions of the query that asks.
pub(in crate::plan) struct Inner {
    pub(in crate::plan) table: Arc<Table>,
    pub(in crate::plan) locking: Locking,
    pub(in crate::plan) key: Vec<String>,
}

/// Subqueries and views may be inside each other so often.
const MAX_DEPTH: usize = 64;

/// Makes the subqueries and views that a query locks give the keys of their tables' rows.
///
/// # Errors
/// 0A000 where a row of theirs is no row of a table.
pub(in crate::plan) fn open(ctx: &Context, q: &mut ast::Query) -> SqlResult<Vec<Inner>> {
    let locks = q.locks.clone();
    let names = ctes(q);
    let SetExpr::Select(select) = &mut *q.body else { return Ok(Vec::new()) };
    let mut opening = Opening { ctx, clause: clause(&locks), keys: 0 };
    let mut out = Vec::new();
    for from in &mut select.from {
        for factor in factors(from) {
            let Some((alias, query)) = opening.query_of(factor, &names)? else { continue };
            let Some(locking) = locking_of(&locks, &alias) else { continue };
            for (table, key) in opening.subquery(query.0, query.1, 0)? {
                let key = key.into_iter().map(|name| format!("{}.{name}", quote_ident(&alias)));
                out.push(Inner { table, locking, key: key.collect() });
            }
        }
    }
    Ok(out)
}

struct Opening<'a> {
    ctx: &'a Context,
    clause: String,
    /// Names that are given.
    keys: usize,
}

/// A table and the names of its key's columns.
type Keyed = (Arc<Table>, Vec<String>);

impl Opening<'_> {
    /// The alias and the query of a subquery; a view becomes one.
    fn query_of<'f>(
        &self,
        factor: &'f mut TableFactor,
        ctes: &[String],
    ) -> SqlResult<Option<(String, (&'f mut ast::Query, String))>> {
        if let TableFactor::Table { name, alias, args: None, .. } = factor {
            let parts = object_name_parts(name);
            let given = |bare: &String| {
                ctes.contains(bare) || self.ctx.with.as_ref().is_some_and(|with| with.names(bare))
            };
            if matches!(parts.as_slice(), [bare] if given(bare)) {
                return Ok(None);
            }
            let Some(Relation::View(view)) = self.ctx.find_relation(&parts)? else {
                return Ok(None);
            };
            let quoted = |name: &str| ast::Ident::with_quote('"', name);
            let mut shown = alias.clone().unwrap_or_else(|| ast::TableAlias {
                explicit: true,
                name: quoted(&view.name),
                columns: Vec::new(),
                at: None,
            });
            let rest = view.columns.iter().skip(shown.columns.len());
            shown.columns.extend(
                rest.map(|(name, _)| ast::TableAliasColumnDef {
                    name: quoted(name),
                    data_type: None,
                }),
            );
            *factor = TableFactor::Derived {
                lateral: false,
                subquery: Box::new(qualified_query(&self.ctx.catalog, &view)?),
                alias: Some(shown),
                sample: None,
            };
        }
        Ok(match factor {
            TableFactor::Derived { subquery, alias, .. } => {
                let alias = alias.as_ref().map(|a| ident_name(&a.name)).unwrap_or_default();
                Some((alias.clone(), (&mut **subquery, alias)))
            }
            _ => None,
        })
    }

    /// Puts the keys of a subquery's tables behind its columns.
    fn subquery(
        &mut self,
        query: &mut ast::Query,
        alias: String,
        depth: usize,
    ) -> SqlResult<Vec<Keyed>> {
        if depth > MAX_DEPTH || alias.is_empty() {
            let text = format!("{} over a subquery without a name", self.clause);
            return Err(SqlError::unsupported(text).with_hint("Give it an alias."));
        }
        lockable_select(query, &self.clause)?;
        let names = ctes(query);
        let mut keyed: Vec<(String, Keyed)> = Vec::new();
        let SetExpr::Select(select) = &mut *query.body else { return Ok(Vec::new()) };
        for from in &mut select.from {
            refuse_nullable(from, &self.clause)?;
            for factor in factors(from) {
                if let Some((alias, (inner, own))) = self.query_of(factor, &names)? {
                    let inner = self.subquery(inner, own, depth + 1)?;
                    keyed.extend(inner.into_iter().map(|keys| (alias.clone(), keys)));
                } else if let Some((alias, table)) = self.table_of(factor, &names)? {
                    let columns = table.primary.columns.iter();
                    let columns = columns.filter_map(|k| table.column(k.column));
                    let names = columns.map(|c| quote_ident(&c.name)).collect();
                    keyed.push((alias, (table, names)));
                }
            }
        }
        let mut out = Vec::new();
        let mut items = Vec::new();
        for (alias, (table, names)) in keyed {
            let mut given = Vec::new();
            for name in names {
                let own = quote_ident(&format!("{KEY_COLUMN}{}", self.keys));
                self.keys += 1;
                items.push(format!("{}.{name} AS {own}", quote_ident(&alias)));
                given.push(own);
            }
            out.push((table, given));
        }
        append(select, &items)?;
        Ok(out)
    }

    /// A table of FROM with its alias.
    fn table_of(
        &self,
        factor: &TableFactor,
        ctes: &[String],
    ) -> SqlResult<Option<(String, Arc<Table>)>> {
        let TableFactor::Table { name, alias, args: None, .. } = factor else { return Ok(None) };
        let parts = object_name_parts(name);
        let bare = parts.last().cloned().unwrap_or_default();
        if parts.len() == 1 && ctes.contains(&bare) {
            return Ok(None);
        }
        match self.ctx.find_relation(&parts)? {
            Some(Relation::Table(t) | Relation::Partition(t)) => {
                check_lockable(&t)?;
                Ok(Some((alias.as_ref().map_or(bare, |a| ident_name(&a.name)), t)))
            }
            // System catalogs, and what is not there: reading it says so.
            _ => Ok(None),
        }
    }
}

/// The names that a query's WITH gives.
fn ctes(query: &ast::Query) -> Vec<String> {
    let all = query.with.iter().flat_map(|with| &with.cte_tables);
    all.map(|cte| ident_name(&cte.alias.name)).collect()
}

/// All that a part of FROM joins.
fn factors(from: &mut ast::TableWithJoins) -> Vec<&mut TableFactor> {
    let joined = from.joins.iter_mut().map(|join| &mut join.relation);
    let mut out = Vec::new();
    for factor in std::iter::once(&mut from.relation).chain(joined) {
        match factor {
            TableFactor::NestedJoin { table_with_joins, .. } => {
                out.extend(factors(table_with_joins));
            }
            factor => out.push(factor),
        }
    }
    out
}

/// 0A000 for a side of an outer join that may be NULL.
fn refuse_nullable(from: &ast::TableWithJoins, clause: &str) -> SqlResult<()> {
    let outer = from.joins.iter().any(|join| {
        matches!(
            join.join_operator,
            JoinOperator::Left(_)
                | JoinOperator::LeftOuter(_)
                | JoinOperator::Right(_)
                | JoinOperator::RightOuter(_)
                | JoinOperator::FullOuter(_)
        )
    });
    if outer {
        let text = format!("{clause} cannot be applied to the nullable side of an outer join");
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text));
    }
    match &from.relation {
        TableFactor::NestedJoin { table_with_joins, .. } => {
            refuse_nullable(table_with_joins, clause)
        }
        _ => Ok(()),
    }
}

/// Puts items behind a select list.
pub(in crate::plan) fn append(select: &mut ast::Select, items: &[String]) -> SqlResult<()> {
    if items.is_empty() {
        return Ok(());
    }
    let more = braid_parser::parse_query(&format!("SELECT {}", items.join(", ")))?;
    if let SetExpr::Select(more) = *more.body {
        select.projection.extend(more.projection);
    }
    Ok(())
}
