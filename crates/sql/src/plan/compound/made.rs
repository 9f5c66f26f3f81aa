//! Queries of WITH and of FROM whose rows are made first, and kept in memory for the statement.
//!
//! ```text
//!   WITH c AS (SELECT * FROM customers WHERE id = $1)
//!   SELECT c.name, o.id FROM c LEFT JOIN orders o ON o.customer = c.id
//!
//!   step 1   rows of c                 made when they are asked for first
//!   step 2   index lookup on orders    customer = c.id
//! ```
//! For the plan around it such a query is a table without keys ([`Made::layout`]). Where it is
//! looked up by equalities, its rows are found by their values ([`ByKey`]). It is made once,
//! whoever names it and however often. PostgreSQL would compute no more of it than is asked
//! for, so nothing in it may fail, nor do anything; and it has few rows: what many rows are
//! filtered by belongs into the query.

use std::collections::HashMap;
use std::sync::Arc;

use braid_catalog::{Column, Index, Table, Upkeep};
use braid_planner::access::{Access, RangeOn};
use braid_planner::{Known, TableStatistics};
use braid_rows::{Row, TableLayout};
use braid_scalar::{Bound, CmpOp, Node, ParamTypes, Volatility, ident_name};
use braid_types::{Collated, Datum, GroupKey, SqlError, SqlResult, SqlState, SqlType};
use sqlparser::ast;

use super::functions::FunctionRows;
use super::recursion::Recursion;
use super::whole::{SelectPlan, plan_any};
use crate::explain::PlanLine;
use crate::general_query::ColumnInfo;
use crate::plan::gather::at_own_place;
use crate::session::Context;

/// Rows that a general plan filters in the time that it takes to begin: where conditions around a
/// query would have left few of them, no more is lost.
pub(super) const LITTLE: f64 = 1_000.0;

/// See the [module documentation](self).
pub(in crate::plan) struct Made {
    /// What EXPLAIN calls it.
    name: String,
    layout: Arc<TableLayout>,
    /// The table and column that a column is.
    origins: Vec<Option<(u32, u32)>>,
    by: MadeBy,
    /// Rows that it is expected to have.
    expected: f64,
}

/// How rows are made.
pub(super) enum MadeBy {
    Query(SelectPlan),
    Recursion(Recursion),
    Function(FunctionRows),
    /// They are put there by the recursion around.
    Work,
}

impl Made {
    /// Plans a query to be made; `None` if it is none of ours, or not worth it. `columns` are other
    /// names for its first columns.
    ///
    /// # Errors
    /// XX000. What is wrong with it is for general plans to tell: it may name what is around it.
    pub(in crate::plan) fn plan(
        ctx: &Context,
        query: &ast::Query,
        (name, columns): (String, &[ast::TableAliasColumnDef]),
        params: &mut ParamTypes,
    ) -> SqlResult<Option<Arc<Made>>> {
        let mut tried = params.clone();
        let plan = match plan_any(ctx, query, &mut tried) {
            Err(e) if e.state() == SqlState::INTERNAL_ERROR => return Err(e),
            Ok(Some(plan)) => plan,
            _ => return Ok(None),
        };
        if plan.locks_rows()
            || !plan.is_quiet()
            || plan.work(ctx) > LITTLE && ctx.db.general().reads_columns()
        {
            return Ok(None);
        }
        let (shown, expected) = (plan.columns().to_vec(), plan.rows_given(ctx).max(1.0));
        let made = Made::of(ctx, MadeBy::Query(plan), ((name, columns), &shown), expected)?;
        if made.is_some() {
            *params = tried;
        }
        Ok(made)
    }

    /// Rows that are made so, with such columns; `None` if general plans know more of these.
    ///
    /// # Errors
    /// XX000.
    pub(super) fn of(
        ctx: &Context,
        by: MadeBy,
        ((name, renamed), columns): ((String, &[ast::TableAliasColumnDef]), &[ColumnInfo]),
        expected: f64,
    ) -> SqlResult<Option<Arc<Made>>> {
        if renamed.len() > columns.len() {
            return Ok(None);
        }
        let names = renamed.iter().map(|column| Some(ident_name(&column.name)));
        let names = names.chain(std::iter::repeat_n(None, columns.len() - renamed.len()));
        let mut table = no_table(name.clone());
        let mut origins = Vec::new();
        for (at, (column, renamed)) in columns.iter().zip(names).enumerate() {
            let plain = matches!(column.collation, Collated::Default);
            let name = renamed.unwrap_or_else(|| column.name.clone());
            // Names that nobody can type are of columns that no star shows.
            let unseen = name.starts_with(char::is_control);
            if !plain || unseen || matches!(column.ty, SqlType::Record | SqlType::Unknown) {
                return Ok(None);
            }
            table.columns.push(Column::new(at as u32 + 1, name, column.ty.clone()));
            let origin = column.origin().and_then(|(oid, number)| {
                Some((braid_catalog::id_of_oid(oid)?, u32::try_from(number).ok()?))
            });
            origins.push(origin.filter(|_| matches!(by, MadeBy::Query(_))));
        }
        table.next_column = table.columns.len() as u32 + 1;
        let layout = Arc::new(TableLayout::new(&ctx.catalog, &Arc::new(table))?);
        Ok(Some(Arc::new(Made { name, layout, origins, by, expected })))
    }

    /// What tells it from others in a statement.
    pub(super) fn place(&self) -> usize {
        std::ptr::from_ref(self) as usize
    }

    /// Whether it may not be made where nobody asks for all its rows.
    pub(in crate::plan) fn is_quiet(&self) -> bool {
        match &self.by {
            MadeBy::Query(_) => true,
            MadeBy::Function(rows) => rows.is_quiet(),
            MadeBy::Recursion(_) | MadeBy::Work => false,
        }
    }

    /// It as a table.
    pub(in crate::plan) fn layout(&self) -> &Arc<TableLayout> {
        &self.layout
    }

    /// The table and column that a column is.
    pub(in crate::plan) fn origin(&self, column: usize) -> Option<(u32, u32)> {
        self.origins.get(column).copied().flatten()
    }

    /// Its rows. They stay on the statement's account.
    ///
    /// # Errors
    /// Of the query; 53200 when they do not fit.
    pub(in crate::plan) fn rows(&self, ctx: &Arc<Context>) -> SqlResult<Arc<Vec<Row>>> {
        let place = self.place();
        let Some(kept) = &ctx.within.made else { return self.run(ctx).map(Arc::new) };
        if let Some(known) = kept.lock().get(&place) {
            return Ok(known.clone());
        }
        let rows = Arc::new(self.run(ctx)?);
        kept.lock().insert(place, rows.clone());
        Ok(rows)
    }

    fn run(&self, ctx: &Arc<Context>) -> SqlResult<Vec<Row>> {
        let plan = match &self.by {
            MadeBy::Query(plan) => plan,
            MadeBy::Recursion(recursion) => return recursion.rows(ctx),
            MadeBy::Function(rows) => return rows.rows(ctx),
            MadeBy::Work => return Err(SqlError::internal("rows of no recursion")),
        };
        let mut stream = plan.run_for(ctx, None)?;
        let mut out = Vec::new();
        while let Some(batch) = stream.next_batch()? {
            ctx.check_cancel()?;
            ctx.keep_rows("rows of a query in FROM", &batch)?;
            out.extend(batch);
        }
        Ok(out)
    }

    /// The first line of EXPLAIN about a step that reads it.
    pub(in crate::plan) fn described(&self, indent: &str) -> PlanLine {
        let text = format!("{indent}rows of {}", self.name);
        PlanLine::operator(text, "Subquery Scan", Some(&self.name))
    }

    /// The plans of its queries.
    pub(in crate::plan) fn queries(&self) -> Vec<&SelectPlan> {
        match &self.by {
            MadeBy::Query(plan) => vec![plan],
            MadeBy::Recursion(recursion) => recursion.parts().to_vec(),
            MadeBy::Function(_) | MadeBy::Work => Vec::new(),
        }
    }

    /// All of it, with these conditions.
    pub(in crate::plan) fn access(rest: Vec<Bound>) -> Access {
        let range = RangeOn::default();
        let (eq, either) = (Vec::new(), Vec::new());
        Access { index: None, eq, range, either, tuples: None, partial: false, rest }
    }
}

impl Known for Made {
    fn rows(&self, _: &TableLayout) -> f64 {
        self.expected
    }

    fn bytes(&self, _: &TableLayout) -> f64 {
        self.expected
    }

    fn statistics(&self, _: &Arc<Table>) -> Option<Arc<TableStatistics>> {
        None
    }

    fn beside(&self, _: &Table) -> f64 {
        0.0
    }

    fn note_beside(&self, _: &Table, _: f64) {}
}

/// A table that is nowhere: no other has its id.
fn no_table(name: String) -> Table {
    let primary = Index {
        id: u32::MAX,
        generation: 1,
        name: String::new(),
        unique: false,
        deferral: None,
        nulls_not_distinct: false,
        columns: Vec::new(),
        include: Vec::new(),
        interleave_in: None,
        predicate: None,
        constraint: None,
        of_partition: None,
        unread: None,
        declared: None,
    };
    Table {
        id: u32::MAX,
        schema: 0,
        name,
        generation: 1,
        columns: Vec::new(),
        next_column: 1,
        primary,
        indexes: Vec::new(),
        checks: Vec::new(),
        foreign_keys: Vec::new(),
        interleave: None,
        comment: None,
        step: 0,
        building: None,
        upkeep: Upkeep::default(),
    }
}

/// By which equalities rows that were made are looked up: values over a row of theirs, and over the
/// row before.
pub(in crate::plan) struct Keys(Vec<(Bound, Bound)>);

impl Keys {
    /// Those among conditions on a table whose columns begin at `offset`; `None` if there are none.
    pub(in crate::plan) fn among(conditions: &[Bound], offset: usize, end: usize) -> Option<Keys> {
        let own = |e: &Bound| {
            let columns = e.columns();
            !columns.is_empty() && columns.iter().all(|at| (offset..end).contains(at))
        };
        let before = |e: &Bound| match e.node() {
            Node::Column(at) => *at < offset,
            Node::Const(_) | Node::Param(_) => true,
            _ => false,
        };
        let hashed = |e: &Bound| {
            e.volatility() != Volatility::Volatile
                && e.collation().is_by_bytes()
                && !matches!(e.ty(), SqlType::Char(_))
        };
        let pair = |condition: &Bound| {
            let Node::Compare(CmpOp::Eq, l, r) = condition.node() else { return None };
            let (inner, outer) = if own(l) && before(r) { (l, r) } else { (r, l) };
            let fits = own(inner) && before(outer) && inner.as_column().is_some();
            (fits && inner.ty() == outer.ty() && hashed(inner) && hashed(outer))
                .then(|| (at_own_place(inner, offset), outer.clone()))
        };
        let found: Vec<_> = conditions.iter().filter_map(pair).collect();
        (!found.is_empty()).then_some(Keys(found))
    }
}

/// Rows by the values of their keys.
pub(in crate::plan) struct ByKey(HashMap<GroupKey, Vec<usize>>);

impl ByKey {
    /// Puts rows in order.
    ///
    /// # Errors
    /// Of computing.
    pub(in crate::plan) fn new(keys: &Keys, rows: &[Row], ctx: &Context) -> SqlResult<ByKey> {
        let mut out: HashMap<GroupKey, Vec<usize>> = HashMap::with_capacity(rows.len());
        for (at, row) in rows.iter().enumerate() {
            let key = keys.0.iter().map(|(inner, _)| inner.eval(row, &ctx.eval));
            let key = key.collect::<SqlResult<Vec<Datum>>>()?;
            if !key.iter().any(Datum::is_null) {
                out.entry(GroupKey(key)).or_default().push(at);
            }
        }
        Ok(ByKey(out))
    }

    /// The places of the rows for a row before them.
    ///
    /// # Errors
    /// Of computing.
    pub(in crate::plan) fn places(
        &self,
        keys: &Keys,
        outer: &[Datum],
        ctx: &Context,
    ) -> SqlResult<Vec<usize>> {
        let key = keys.0.iter().map(|(_, before)| before.eval(outer, &ctx.eval));
        let key = GroupKey(key.collect::<SqlResult<Vec<Datum>>>()?);
        Ok(self.0.get(&key).cloned().unwrap_or_default())
    }
}

/// Rows that were made, or some of them.
pub(crate) struct MadeRows {
    rows: Arc<Vec<Row>>,
    /// Which of them; all, if that is not said.
    places: Option<std::vec::IntoIter<usize>>,
    at: usize,
}

impl MadeRows {
    /// All rows, or those at some places.
    pub(in crate::plan) fn new(rows: Arc<Vec<Row>>, places: Option<Vec<usize>>) -> MadeRows {
        MadeRows { rows, places: places.map(Vec::into_iter), at: 0 }
    }

    /// The next row.
    pub(in crate::plan) fn next_row(&mut self) -> Option<Row> {
        let at = match &mut self.places {
            Some(places) => places.next()?,
            None => {
                self.at += 1;
                self.at - 1
            }
        };
        self.rows.get(at).cloned()
    }
}
