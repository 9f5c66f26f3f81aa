//! Assigned columns whose values a query selects.
//!
//! ```text
//!   SET a = x, (b, c) = (SELECT f, g ..)
//!
//!   selected     x, (SELECT ROW(f, g) ..)               what b and c get is asked for once
//!   for types    x, (SELECT f ..), (SELECT g ..)        planned, not run: a row does not tell them
//! ```

use braid_catalog::Table;
use braid_rows::Row;
use braid_scalar::{LATE_ITEM, ParamTypes};
use braid_types::{Datum, SqlError, SqlResult, SqlType, quote_ident};
use sqlparser::ast::{self, Expr};

use super::by_query::check_settable;
use super::written::{Target, check_assignable, is_default};
use crate::dml::assigned::commit_time::{is_pending, pending};
use crate::dml::assigned::set_list::{Shared, set_list, shared};
use crate::dml::writer::TableInfo;
use crate::general_query::ColumnInfo;
use crate::session::Context;

/// What a column is set to by a query.
pub(in crate::dml) enum Set {
    /// Its default.
    Default,
    /// The same for all rows.
    Constant(Datum),
    /// What was selected.
    Selected(Selected),
}

/// A value among those that are selected.
pub(in crate::dml) struct Selected {
    /// The select item.
    item: usize,
    /// The place in the row that the item is, if it is one for several columns.
    field: Option<usize>,
    /// Its type.
    ty: SqlType,
}

/// The assigned columns, and what a query selects for them.
pub(in crate::dml) struct Sets {
    pub(in crate::dml) items: Vec<String>,
    pub(in crate::dml) columns: Vec<(usize, Set)>,
    /// An item for each selected value, if some share one.
    apart: Option<Vec<String>>,
}

impl Sets {
    /// Of the assignments of a statement.
    pub(in crate::dml) fn new(
        target: &Target,
        assignments: &[ast::Assignment],
        params: &ParamTypes,
    ) -> SqlResult<Sets> {
        let table = &target.table;
        let mut sets = Sets { items: Vec::new(), columns: Vec::new(), apart: None };
        let (mut apart, mut last) = (Vec::new(), None);
        let list = set_list(target, assignments, params)?;
        for (at, e) in &list {
            let (at, e) = (*at, &**e);
            if is_default(e) {
                sets.columns.push((at, Set::Default));
                continue;
            }
            check_settable(table, at)?;
            if is_pending(e) {
                let value = pending(table, at)?.as_const().cloned().unwrap_or(Datum::Null);
                sets.columns.push((at, Set::Constant(value)));
                continue;
            }
            let ty = table.columns[at].ty.clone();
            apart.push(item_of(e, &ty));
            let part = shared(e);
            let goes_on = match (&last, &part) {
                (Some(Shared { query, field, .. }), Some(now)) => {
                    *query == now.query && field + 1 == now.field
                }
                _ => false,
            };
            if !goes_on {
                let item = part.as_ref().map_or_else(|| item_of(e, &ty), Shared::row);
                // It comes behind WHERE, whatever the query has first.
                let name = quote_ident(&format!("{LATE_ITEM}{}", sets.items.len()));
                sets.items.push(format!("{item} AS {name}"));
            }
            let (item, field) = (sets.items.len() - 1, part.as_ref().map(|part| part.field));
            sets.columns.push((at, Set::Selected(Selected { item, field, ty })));
            last = part;
        }
        sets.apart = (apart.len() > sets.items.len()).then_some(apart);
        Ok(sets)
    }

    /// Learns the types of what is selected. `given` are the columns of the query that selects it;
    /// `plan` tells those of another list of items over the same rows.
    pub(in crate::dml) fn typed(
        &mut self,
        table: &Table,
        given: &[ColumnInfo],
        plan: impl FnOnce(&[String]) -> SqlResult<Vec<ColumnInfo>>,
    ) -> SqlResult<()> {
        let apart = self.apart.take().map(|apart| plan(&apart)).transpose()?;
        let mut given = apart.as_deref().unwrap_or(given).iter();
        for (at, set) in &mut self.columns {
            if let Set::Selected(selected) = set {
                let c = given.next().ok_or_else(|| SqlError::internal("a SET value is missing"))?;
                check_assignable(table, *at, &c.ty, None)?;
                selected.ty = if c.ty == SqlType::Unknown { SqlType::Text } else { c.ty.clone() };
            }
        }
        Ok(())
    }

    /// Sets the columns of a row to what was selected for it.
    pub(in crate::dml) fn apply(
        &self,
        ctx: &Context,
        info: &TableInfo,
        given: &[Datum],
        row: &mut Row,
    ) -> SqlResult<()> {
        for (at, set) in &self.columns {
            row[*at] = match set {
                Set::Constant(value) => value.clone(),
                Set::Selected(selected) => {
                    let to = &info.table().columns[*at].ty;
                    crate::dml::assign(selected.value(given), &selected.ty, to, &ctx.eval)?
                }
                Set::Default => info.filler.default(ctx, *at)?,
            };
        }
        Ok(())
    }
}

impl Selected {
    /// The value among those that were selected; of a row that is not there NULL.
    fn value<'a>(&self, given: &'a [Datum]) -> &'a Datum {
        match (given.get(self.item), self.field) {
            (Some(value), None) => value,
            (Some(Datum::Record(row)), Some(field)) => row.get(field).unwrap_or(&Datum::Null),
            _ => &Datum::Null,
        }
    }
}

/// A value as a select item.
fn item_of(e: &Expr, ty: &SqlType) -> String {
    let untyped = matches!(e, Expr::Value(v) if matches!(
        v.value,
        ast::Value::Placeholder(_)
            | ast::Value::SingleQuotedString(_)
            | ast::Value::EscapedStringLiteral(_)
    ));
    match e {
        // An untyped literal takes the column's type; modifiers come with the assignment.
        _ if untyped => format!("CAST({e} AS {})", ty.base_name()),
        // As a select item it would be all of its columns.
        Expr::QualifiedWildcard(row, _) => row.to_string(),
        e => e.to_string(),
    }
}
