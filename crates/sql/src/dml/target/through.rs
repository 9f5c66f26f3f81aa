//! A table behind views: what a statement says of the view's columns, said of the table's.
//!
//! ```text
//!   CREATE VIEW v AS SELECT id, a + b AS sum, c AS d FROM t WHERE e
//!
//!   row of t                id a b c e
//!   scope of the statement  .  . . . .  id sum d     those of the table have no names
//!   settled                             0  1+2 3     over the table's row again
//!
//!   where a query reads it  (SELECT id, a + b AS sum, c AS d, id AS key FROM t WHERE e) AS v
//! ```
//! So our own access paths find the rows, with the conditions of all views; conditions and columns
//! that need a query of their own send the statement to one.

use std::sync::Arc;

use braid_catalog::{CheckOption, Relation, Table, View};
use braid_scalar::{Bound, Node, Scope, general_query_needed, ident_name};
use braid_types::{Datum, SqlError, SqlResult, SqlState, quote_ident};
use sqlparser::ast;

use super::written::scope_of;
use crate::dml::keys::failing_row;
use crate::general_query::KEY_COLUMN;
use crate::session::Context;
use crate::views::{SimpleView, simple};

/// What a statement does to its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::dml) enum Verb {
    Insert,
    Update,
    Delete,
}

impl Verb {
    /// 55000 for a view whose rows are not those of one table.
    fn refuse(self, view: &str, reason: &str) -> SqlError {
        let what = match self {
            Verb::Insert => "insert into",
            Verb::Update => "update",
            Verb::Delete => "delete from",
        };
        let text = format!("cannot {what} view \"{view}\"");
        SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, text)
            .with_detail(reason)
            .with_hint("Write to the tables behind the view.")
    }

    /// 0A000 for a column that is computed.
    fn refuse_column(self, column: &str, view: &str) -> SqlError {
        let what = if self == Verb::Insert { "insert into" } else { "update" };
        let text = format!("cannot {what} column \"{column}\" of view \"{view}\"");
        SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text).with_detail(
            "View columns that are not columns of their base relation are not updatable.",
        )
    }
}

/// A view, and what its query says.
struct Layer {
    view: Arc<View>,
    simple: SimpleView,
}

/// The way from a view to its table.
pub(in crate::dml) struct Through {
    table: Arc<Table>,
    verb: Verb,
    /// From the table outward; the last one is what the statement names.
    layers: Vec<Layer>,
    /// What its columns show, over the table's row; `None`: what only a query can tell.
    shown: Vec<Option<Bound>>,
    /// Which rows, by layer.
    conditions: Vec<Option<Condition>>,
}

/// The condition of a layer.
#[derive(Clone)]
enum Condition {
    /// Over the table's row.
    Own(Bound),
    /// Only a query can tell.
    General,
}

impl Through {
    /// Follows a view to its table.
    ///
    /// # Errors
    /// 55000 if it, or one behind it, is not simple enough.
    pub(super) fn open(ctx: &Context, view: Arc<View>, verb: Verb) -> SqlResult<Through> {
        let mut layers = Vec::new();
        let mut next = view;
        let table = loop {
            let simple = simple(&ctx.catalog, &next)?;
            let simple = simple.map_err(|reason| verb.refuse(&next.name, reason))?;
            let base = simple.base.clone();
            layers.push(Layer { view: next, simple });
            match base {
                Relation::View(inner) => next = inner,
                Relation::Table(t) | Relation::Partition(t) => break t,
                _ => return Err(SqlError::internal("a view over something else")),
            }
        };
        layers.reverse();
        let of_table = |at: usize| {
            let column = &table.columns[at];
            Some(Bound::column(at, column.ty.clone()).with_collation(column.collated()))
        };
        let shown = (0..table.columns.len()).map(of_table).collect();
        let mut out = Through { table, verb, layers, shown, conditions: Vec::new() };
        for at in 0..out.layers.len() {
            out.bind_layer(ctx, at)?;
        }
        Ok(out)
    }

    /// Binds the columns and the condition of a layer over those of the one below it.
    fn bind_layer(&mut self, ctx: &Context, at: usize) -> SqlResult<()> {
        let Layer { view, simple } = &self.layers[at];
        let search_path = Arc::new(view.definition.search_path.clone());
        let within = Context { search_path, ..ctx.clone() };
        let mut params = within.no_params();
        let alias = ident_name(&simple.alias.name);
        let mut scope = match at.checked_sub(1) {
            None => scope_of(&self.table, &alias, None),
            Some(below) => scope_of_view((&self.layers[below].view, &self.shown), &alias, None),
        };
        let visible = scope.columns_mut().iter_mut().filter(|c| !c.hidden);
        for (column, given) in visible.zip(&simple.alias.columns) {
            column.name = ident_name(&given.name);
        }
        let below = &self.shown;
        let plain = |bound: SqlResult<Bound>| match bound {
            Ok(bound) => Ok(over(&bound, below)),
            Err(e) if braid_scalar::needs_general_query(&e) => Ok(None),
            Err(e) => Err(e),
        };
        let items = simple.items.iter();
        let shown = items.map(|e| plain(braid_scalar::bind(e, &scope, &mut params)));
        let shown = shown.collect::<SqlResult<Vec<_>>>()?;
        let condition = match &simple.condition {
            None => None,
            Some(e) => {
                let bound = plain(braid_scalar::bind_bool(e, "WHERE", &scope, &mut params))?;
                Some(bound.map_or(Condition::General, Condition::Own))
            }
        };
        self.shown = shown;
        self.conditions.push(condition);
        Ok(())
    }

    /// The table.
    pub(super) fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// What the statement names.
    pub(super) fn view(&self) -> &Arc<View> {
        &self.layers[self.layers.len() - 1].view
    }

    /// The table's columns, which have no names, and then the view's.
    pub(super) fn scope(&self, alias: &str, schema: Option<&str>) -> Scope {
        let mut scope = Scope::empty();
        scope.pad(self.table.columns.len());
        for column in scope_of_view((self.view(), &self.shown), alias, schema).columns() {
            scope.push(column.clone());
        }
        scope
    }

    /// An expression over [`Through::scope`] and values behind it, over the table's row and those.
    pub(super) fn settle(&self, bound: &Bound) -> SqlResult<Bound> {
        self.settled(bound, &|behind, width, ty| Some(Bound::column(width + behind, ty)))
    }

    /// The same where a second row of the view is behind the first: the table's is then.
    pub(super) fn settle_excluded(&self, bound: &Bound) -> SqlResult<Bound> {
        self.settled(bound, &|behind, width, _| {
            let shown = self.shown.get(behind)?.as_ref()?;
            Some(shown.remap_columns(&|at| width + at))
        })
    }

    fn settled(
        &self,
        bound: &Bound,
        behind: &dyn Fn(usize, usize, braid_types::SqlType) -> Option<Bound>,
    ) -> SqlResult<Bound> {
        let (width, seen) = (self.table.columns.len(), self.shown.len());
        let place = |at: usize, ty: braid_types::SqlType| match at {
            at if at < width => Some(Bound::column(at, ty)),
            at if at < width + seen => self.shown[at - width].clone(),
            at => behind(at - width - seen, width, ty),
        };
        replaced(bound, &place).ok_or_else(|| general_query_needed("a column of a view"))
    }

    /// The conditions of all views.
    pub(super) fn condition(&self) -> SqlResult<Vec<Bound>> {
        let all = self.conditions.iter().flatten().map(|condition| match condition {
            Condition::Own(bound) => Ok(bound.clone()),
            Condition::General => Err(general_query_needed("a condition of a view")),
        });
        all.collect()
    }

    /// The column of the table that a column of the view is.
    pub(super) fn ordinal(&self, name: &str) -> SqlResult<usize> {
        let view = self.view();
        let at = view.columns.iter().position(|(own, _)| own == name).ok_or_else(|| {
            SqlError::new(
                SqlState::UNDEFINED_COLUMN,
                format!("column \"{name}\" of relation \"{}\" does not exist", view.name),
            )
        })?;
        self.written(at)
    }

    /// The column of the table that the view's column at a place is, through all views.
    ///
    /// # Errors
    /// 0A000 by the name that the view has for it where it is computed.
    fn written(&self, at: usize) -> SqlResult<usize> {
        let mut at = at;
        for (n, Layer { view, simple }) in self.layers.iter().enumerate().rev() {
            let Some(own) = &simple.columns[at] else {
                return Err(self.verb.refuse_column(&view.columns[at].0, &view.name));
            };
            let place = match n.checked_sub(1) {
                None => self.table.columns.iter().position(|c| c.name == *own),
                Some(n) => self.layers[n].view.columns.iter().position(|(name, _)| name == own),
            };
            at = place.ok_or_else(|| SqlError::internal("a view's column has no base"))?;
        }
        Ok(at)
    }

    /// The table's columns in the order of the view's, up to the first that is computed; and the
    /// error of that one.
    pub(super) fn in_order(&self) -> (Vec<usize>, Option<SqlError>) {
        let mut out = Vec::new();
        for at in 0..self.view().columns.len() {
            match self.written(at) {
                Ok(own) => out.push(own),
                Err(e) => return (out, Some(e)),
            }
        }
        (out, None)
    }

    /// What the view calls a column of the table.
    pub(super) fn name_of(&self, ordinal: usize) -> Option<&str> {
        let mut all = 0..self.view().columns.len();
        let at = all.find(|at| self.written(*at).is_ok_and(|own| own == ordinal))?;
        Some(&self.view().columns[at].0)
    }

    /// The view as a subquery that gives the keys of the table's rows as well.
    pub(super) fn subquery(&self, ctx: &Context, alias: &str) -> String {
        let quoted = |name: &str| quote_ident(name);
        let keys = self.table.primary.columns.iter().filter_map(|k| self.table.column(k.column));
        let keys: Vec<String> = keys.map(|c| quoted(&c.name)).collect();
        let mut from = String::new();
        for (n, Layer { view, simple }) in self.layers.iter().enumerate() {
            let source = match n {
                0 => {
                    let schema = quoted(&ctx.schema_name(self.table.schema));
                    format!("{schema}.{}", quoted(&self.table.name))
                }
                _ => format!("({from})"),
            };
            let called = quoted(&ident_name(&simple.alias.name));
            let mut items: Vec<String> = Vec::new();
            for (item, (name, _)) in simple.items.iter().zip(&view.columns) {
                items.push(format!("{item} AS {}", quoted(name)));
            }
            for (at, key) in keys.iter().enumerate() {
                let own = if n == 0 { key.clone() } else { key_name(at) };
                items.push(format!("{called}.{own} AS {}", key_name(at)));
            }
            let alias = ast::TableAlias { explicit: true, ..simple.alias.clone() };
            from = format!("SELECT {} FROM {source} {alias}", items.join(", "));
            if let Some(condition) = &simple.condition {
                from.push_str(&format!(" WHERE {condition}"));
            }
        }
        format!("({from}) AS {}", quote_ident(alias))
    }

    /// What new rows must satisfy: the conditions that a CHECK OPTION is about.
    ///
    /// # Errors
    /// 0A000 where such a condition needs a query.
    pub(super) fn checks(&self) -> SqlResult<Option<ViewChecks>> {
        let mut cascaded = false;
        let mut checks = Vec::new();
        for (Layer { view, .. }, condition) in self.layers.iter().zip(&self.conditions).rev() {
            let checked = cascaded || view.check_option.is_some();
            cascaded |= view.check_option == Some(CheckOption::Cascaded);
            match condition {
                Some(Condition::Own(bound)) if checked => {
                    checks.push((view.name.clone(), bound.clone()));
                }
                Some(Condition::General) if checked => {
                    let text =
                        format!("WITH CHECK OPTION of view \"{}\" with a subquery", view.name);
                    return Err(SqlError::unsupported(text)
                        .with_hint("Write to the table behind the view."));
                }
                _ => {}
            }
        }
        checks.reverse();
        Ok((!checks.is_empty()).then_some(ViewChecks(checks)))
    }
}

/// What a key column is called in such a subquery.
pub(super) fn key_name(at: usize) -> String {
    quote_ident(&format!("{KEY_COLUMN}{at}"))
}

/// A view with what its columns show.
fn scope_of_view(
    (view, shown): (&View, &[Option<Bound>]),
    alias: &str,
    schema: Option<&str>,
) -> Scope {
    let columns = view.columns.iter().map(|(name, ty)| (name.clone(), ty.clone(), true));
    let mut scope = Scope::table(alias, schema, columns);
    for (column, shown) in scope.columns_mut().iter_mut().zip(shown) {
        if let Some(shown) = shown {
            column.collation = shown.collation().of_column();
        }
    }
    scope
}

/// An expression with its columns replaced; `None` if one cannot be.
fn over(bound: &Bound, columns: &[Option<Bound>]) -> Option<Bound> {
    replaced(bound, &|at, _| columns[at].clone())
}

fn replaced(
    bound: &Bound,
    place: &dyn Fn(usize, braid_types::SqlType) -> Option<Bound>,
) -> Option<Bound> {
    if let Node::Column(at) = bound.node() {
        return place(*at, bound.ty().clone());
    }
    let mut all = true;
    let out = bound.map_children(&mut |child| match replaced(child, place) {
        Some(child) => child,
        None => {
            all = false;
            child.clone()
        }
    });
    all.then_some(out)
}

/// Conditions that new rows must satisfy, with the views that have them.
pub(in crate::dml) struct ViewChecks(Vec<(String, Bound)>);

impl ViewChecks {
    /// Checks a row of the table.
    ///
    /// # Errors
    /// 44000.
    pub(in crate::dml) fn check(
        &self,
        ctx: &Context,
        table: &Table,
        row: &[Datum],
    ) -> SqlResult<()> {
        for (view, condition) in &self.0 {
            if !condition.eval_bool(row, &ctx.eval)? {
                let text = format!("new row violates check option for view \"{view}\"");
                return Err(
                    SqlError::new(SqlState("44000"), text).with_detail(failing_row(table, row))
                );
            }
        }
        Ok(())
    }
}
