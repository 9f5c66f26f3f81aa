//! Values in place of queries of rows that are known: `id IN (SELECT id FROM next)` as
//! `id IN (7, 9)`.
//!
//! Once the steps of a WITH have run, few rows of theirs are better told as values: then the keys
//! that the main part is about are known when it is planned, and nothing else is read.

use std::ops::ControlFlow;

use braid_scalar::{ident_name, object_name_parts};
use braid_types::{Collated, Datum, SqlType, Style};
use braid_walk::WalkMut;
use sqlparser::ast::{self, Expr, SelectItem, SetExpr, TableFactor, VisitorMut};

use super::joined::without_join;
use crate::general_query::GivenRows;

/// So many values make a list.
pub(super) const VALUES_MAX: usize = 256;

/// The query with values; `None` if there is nothing to put in.
pub(in crate::dml) fn with_values(query: &ast::Query, given: &[GivenRows]) -> Option<ast::Query> {
    let mut query = query.clone();
    let mut putter = Putter { given, put: without_join(&mut query, given), kept: None };
    match query.walk_mut(&mut putter) {
        ControlFlow::Break(()) => None,
        ControlFlow::Continue(()) => putter.put.then_some(query),
    }
}

struct Putter<'a> {
    given: &'a [GivenRows],
    put: bool,
    /// A query that is no value: that of ANY or ALL.
    kept: Option<*const Expr>,
}

impl VisitorMut for Putter<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut ast::Query) -> ControlFlow<()> {
        // Names may mean something else there.
        let with = query.with.iter().flat_map(|with| &with.cte_tables);
        let mut names = with.map(|cte| ident_name(&cte.alias.name));
        match names.any(|name| self.given.iter().any(|given| given.name == name)) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let new = match expr {
            Expr::AnyOp { right, .. } | Expr::AllOp { right, .. } => {
                self.kept = Some(std::ptr::from_ref(&**right));
                None
            }
            Expr::Subquery(_) if self.kept == Some(std::ptr::from_ref(expr)) => None,
            Expr::Subquery(query) => match self.values(query).as_deref() {
                Some([one]) => Some(one.clone()),
                _ => None,
            },
            Expr::InSubquery { expr: left, subquery, negated } => self
                .values(subquery)
                .filter(|list| !list.is_empty())
                .map(|list| Expr::InList { expr: left.clone(), list, negated: *negated }),
            _ => None,
        };
        if let Some(new) = new {
            *expr = new;
            self.put = true;
        }
        ControlFlow::Continue(())
    }
}

impl Putter<'_> {
    /// The values that a query of one column of given rows has.
    fn values(&self, query: &ast::Query) -> Option<Vec<Expr>> {
        let (item, from) = bare(query)?;
        let TableFactor::Table { name, alias: None, args: None, .. } = from else {
            return None;
        };
        let parts = object_name_parts(name);
        let given = self.given.iter().find(|given| *parts == [given.name.as_str()])?;
        let rows = given.rows.as_ref()?;
        if rows.len() > VALUES_MAX {
            return None;
        }
        let columns = given.columns.as_ref()?;
        // A literal has none.
        if !given.collations.iter().all(Collated::is_by_bytes) {
            return None;
        }
        let at = match item {
            SelectItem::Wildcard(_) if columns.len() == 1 => 0,
            SelectItem::UnnamedExpr(Expr::Identifier(name)) => {
                let name = ident_name(name);
                columns.iter().position(|(column, _)| *column == name)?
            }
            SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) => match parts.as_slice() {
                [table, name] if ident_name(table) == given.name => {
                    let name = ident_name(name);
                    columns.iter().position(|(column, _)| *column == name)?
                }
                _ => return None,
            },
            _ => return None,
        };
        rows.iter().map(|row| literal(&row[at], &columns[at].1)).collect()
    }
}

/// What a query selects that has one item over one table, and nothing else that says which rows.
pub(super) fn bare(query: &ast::Query) -> Option<(&SelectItem, &TableFactor)> {
    let plain = query.order_by.is_none()
        && query.limit_clause.is_none()
        && query.fetch.is_none()
        && query.locks.is_empty();
    let SetExpr::Select(select) = &*query.body else { return None };
    let ([item], [from]) = (select.projection.as_slice(), select.from.as_slice()) else {
        return None;
    };
    let is_bare = select.selection.is_none()
        && select.distinct.is_none()
        && select.having.is_none()
        && matches!(&select.group_by, ast::GroupByExpr::Expressions(e, _) if e.is_empty());
    (plain && is_bare && from.joins.is_empty()).then_some((item, &from.relation))
}

/// A value as it is written; `None` for types that are not written so.
pub(super) fn literal(value: &Datum, ty: &SqlType) -> Option<Expr> {
    use SqlType::{Bool, Date, Int2, Int4, Int8, Numeric, Text, Timestamp, TimestampTz, Uuid};
    let is_number = matches!(ty, Int2 | Int4 | Int8 | Numeric(_));
    let is_other =
        matches!(ty, Bool | Date | Text | SqlType::Varchar(_) | Timestamp | TimestampTz | Uuid);
    if !is_number && !is_other {
        return None;
    }
    let text = match value.to_text(Style::utc()) {
        None => "NULL".to_string(),
        Some(text) => format!("'{}'", text.replace('\'', "''")),
    };
    braid_parser::parse_expr(&format!("CAST({text} AS {})", ty.base_name())).ok()
}
