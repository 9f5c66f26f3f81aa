//! Rows of tables as values in a select list.
//!
//! ```text
//!   SELECT json_agg(o) FROM (SELECT id, total FROM orders ..) o
//!     bound as   json_agg(#5)          a column that stands for the row
//!     becomes    json_agg(ROW(#0, #1)) with the names of the fields
//! ```

use std::sync::Arc;

use braid_scalar::{Bound, Node, Scope, ScopeColumn};
use braid_types::SqlType;
use sqlparser::ast::{self, SelectItem};

use crate::plan::aggregate::Aggregate;
use crate::plan::build::From;
use crate::plan::select::{Output, SortKey};
use crate::plan::shown::STAND_INS;
use crate::plan::subqueries::name_rows;

/// What the columns stand for from the first of them on.
pub(super) struct WholeRows {
    first: usize,
    meant: Vec<Bound>,
}

/// The query with columns in the place of whole rows, which the scope has then; `None` if it names
/// none. Rows of a LEFT JOIN may not be there.
pub(super) fn named(
    select: &ast::Select,
    tables: &[From],
    scope: &mut Scope,
) -> Option<(ast::Select, WholeRows)> {
    if select.distinct.is_some() {
        return None;
    }
    let mut out = select.clone();
    let mut rows = WholeRows { first: scope.len(), meant: Vec::new() };
    for table in tables.iter().filter(|table| !table.left && is_plain(table)) {
        let name = format!("row {}", table.alias);
        let before = out.projection.clone();
        for item in &mut out.projection {
            if let SelectItem::UnnamedExpr(e) | SelectItem::ExprWithAlias { expr: e, .. } = item {
                name_rows(e, (&table.alias, &name), scope);
            }
        }
        if before == out.projection {
            continue;
        }
        let field = |(at, c): (usize, &braid_catalog::Column)| {
            let name = match &table.view {
                Some(view) => view.name_of(at)?,
                None => Some(c.name.as_str()).filter(|_| !c.hidden)?,
            };
            let field = Bound::column(table.offset + at, c.ty.clone());
            Some((field.with_collation(c.collated()), Arc::from(name)))
        };
        let columns = table.layout.table.columns.iter().enumerate();
        let (fields, names): (Vec<Bound>, Vec<Arc<str>>) = columns.filter_map(field).unzip();
        rows.meant.push(Bound::new(Node::Row(fields, Some(names.into())), SqlType::Record));
        scope.push(ScopeColumn {
            table: Some(STAND_INS.to_string()),
            hidden: true,
            ..ScopeColumn::new(name, SqlType::Record)
        });
    }
    (!rows.meant.is_empty()).then_some((out, rows))
}

/// Whether functions of rows need to know nothing of the fields: some types write names, which
/// only general plans see behind a row.
fn is_plain(table: &From) -> bool {
    table.layout.table.visible_columns().all(|column| {
        let ty = column.ty.element().unwrap_or(&column.ty);
        !ty.names_objects() && !matches!(ty, SqlType::Record | SqlType::Composite(_))
    })
}

impl WholeRows {
    /// Puts the rows in the place of the columns that stand for them.
    pub(super) fn put_into(&self, output: &mut Output, sort: &mut [SortKey]) {
        let put = |e: &mut Bound| *e = self.resolved(e);
        match output {
            Output::Rows(out) => out.exprs.iter_mut().for_each(put),
            Output::Aggregates(totals) => {
                totals.list.iter_mut().flat_map(Aggregate::exprs_mut).for_each(put);
            }
            Output::Groups(groups) => groups.exprs_mut().for_each(put),
        }
        sort.iter_mut().for_each(|key| put(&mut key.expr));
    }

    fn resolved(&self, e: &Bound) -> Bound {
        match e.as_column() {
            Some(at) if at >= self.first => self.meant[at - self.first].clone(),
            Some(_) => e.clone(),
            None => e.map_children(&mut |part| self.resolved(part)),
        }
    }
}
