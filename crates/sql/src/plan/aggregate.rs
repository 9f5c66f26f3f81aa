//! Aggregates over all rows or those of a group, with FILTER, ORDER BY, DISTINCT and WITHIN GROUP.
//! What they compute is the registry's ([`braid_scalar::Accumulator`]), as in general plans.
//!
//! Rows of DISTINCT are sorted by the arguments, as PostgreSQL sorts them: then those that are
//! equal stand beside each other, and what depends on their order is what it is there.

use std::sync::Arc;

use braid_catalog::memory_error;
use braid_env::memory::{Account, Held};
use braid_rows::{Row, row_memory};
use braid_scalar::{
    Accumulator, AggregateCode, AggregateTypes, Bound, Choice, Code, Direct, EvalContext, OrderKey,
    ParamTypes, Scope, Volatility, bind_bool, bind_unsettled, coerce, needs_general_query,
    object_name_parts, resolve,
};
use braid_types::{CastContext, Datum, SqlResult, SqlType};
use sqlparser::ast::{
    self, DuplicateTreatment, FunctionArg, FunctionArgExpr, FunctionArguments, OrderByOptions,
};

use super::select::SortKey;
use super::sorting::compare;
use crate::answer::{ColumnBatch, StoredColumns};

/// One aggregate; its expressions are over the joined row. No argument is `count(*)`.
pub(super) struct Aggregate {
    name: &'static str,
    code: AggregateCode,
    args: Vec<Bound>,
    /// Only rows for which it holds.
    filter: Option<Bound>,
    /// The order in which rows are taken in; none: as they come.
    order: Vec<SortKey>,
    /// Of rows with equal values of the order one is taken in.
    distinct: bool,
    /// How the keys of WITHIN GROUP sort, which are the last arguments.
    within: Vec<OrderKey>,
    pub(super) ty: SqlType,
}

/// An aggregate in the making.
pub(super) struct State {
    accumulator: Box<dyn Accumulator>,
    /// The arguments of the row at hand.
    row: Vec<Datum>,
    /// Arguments that wait for their order, each behind what orders them.
    waiting: Vec<(Row, Row)>,
    /// Memory of one that keeps its rows.
    held: Option<Held>,
}

impl State {
    /// Pays for a row that is kept, and for what is made of it at the end.
    fn hold(&mut self, bytes: impl FnOnce(&[Datum]) -> usize) -> SqlResult<()> {
        if !self.accumulator.keeps_rows() {
            return Ok(());
        }
        let Some(held) = &mut self.held else { return Ok(()) };
        let bytes = bytes(&self.row) * (1 + self.accumulator.copies_at_end());
        held.grow(bytes).map_err(|e| memory_error(&e))
    }

    /// Takes in the arguments of the row at hand, or lets them wait for their order.
    fn take(&mut self, order: Option<Row>) -> SqlResult<()> {
        let Some(order) = order else {
            self.hold(row_memory)?;
            return self.accumulator.update(&self.row);
        };
        let kept = (order, std::mem::take(&mut self.row));
        if let Some(held) = &mut self.held {
            let bytes = row_memory(&kept.0) + row_memory(&kept.1);
            held.grow(bytes).map_err(|e| memory_error(&e))?;
        }
        self.waiting.push(kept);
        Ok(())
    }
}

impl Aggregate {
    /// What EXPLAIN says, with columns of the joined row named by `names`.
    pub(super) fn describe(&self, names: &dyn Fn(usize) -> String) -> String {
        let args: Vec<String> = self.args.iter().map(|arg| arg.to_sql(names)).collect();
        let mut text = if args.is_empty() { "*".to_string() } else { args.join(", ") };
        match self.distinct {
            true => text.insert_str(0, "distinct "),
            false => text.push_str(&SortKey::describe(&self.order, " by ", names)),
        }
        match &self.filter {
            Some(filter) => format!("{}({text}) filter {}", self.name, filter.to_sql(names)),
            None => format!("{}({text})", self.name),
        }
    }

    /// All expressions over the joined row: arguments, FILTER, ORDER BY.
    pub(super) fn exprs(&self) -> impl Iterator<Item = &Bound> {
        let order = self.order.iter().map(|key| &key.expr);
        self.args.iter().chain(&self.filter).chain(order)
    }

    /// The same, to be changed.
    pub(super) fn exprs_mut(&mut self) -> impl Iterator<Item = &mut Bound> {
        let order = self.order.iter_mut().map(|key| &mut key.expr);
        self.args.iter_mut().chain(&mut self.filter).chain(order)
    }

    /// Whether it may give something else for the same rows.
    pub(super) fn is_volatile(&self) -> bool {
        self.exprs().any(|e| e.volatility() == Volatility::Volatile)
    }

    /// Takes rows in by this order; `None` if it has another one.
    pub(super) fn ordered(self, order: Vec<SortKey>) -> Option<Aggregate> {
        match order.is_empty() {
            true => Some(self),
            false if self.distinct || !self.within.is_empty() => None,
            false => Some(Aggregate { order, ..self }),
        }
    }

    /// Whether its call has a clause that windows do not know.
    pub(super) fn is_of_sorted(&self) -> bool {
        self.distinct || !self.within.is_empty()
    }

    /// Whether it holds on to rows until its end: then it needs an account.
    pub(super) fn keeps(&self) -> bool {
        !self.order.is_empty() || self.code.by_order || self.start(None).accumulator.keeps_rows()
    }

    /// Binds an aggregate call without ORDER BY; `None` if it is not one, or one that the general
    /// planner runs.
    pub(super) fn bind(
        e: &ast::Expr,
        scope: &Scope,
        params: &mut ParamTypes,
    ) -> SqlResult<Option<Aggregate>> {
        let ast::Expr::Function(f) = e else { return Ok(None) };
        let FunctionArguments::List(list) = &f.args else { return Ok(None) };
        let (within, distinct) = (&f.within_group, list.duplicate_treatment);
        let distinct = distinct == Some(DuplicateTreatment::Distinct);
        let none = list.args.is_empty() && within.is_empty();
        if f.over.is_some() || !list.clauses.is_empty() || none || distinct && !within.is_empty() {
            return Ok(None);
        }
        let name = object_name_parts(&f.name);
        let name = match name.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            [name] | ["pg_catalog", name] if braid_scalar::is_aggregate(name) => name.to_string(),
            _ => return Ok(None),
        };
        let mut args = Vec::with_capacity(list.args.len());
        for arg in &list.args {
            match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Wildcard)
                    if list.args.len() == 1 && !distinct && within.is_empty() => {}
                FunctionArg::Unnamed(FunctionArgExpr::Expr(e)) => {
                    let Some(bound) = argument(e, scope, params)? else { return Ok(None) };
                    args.push(bound);
                }
                _ => return Ok(None),
            }
        }
        for key in within {
            let Some(bound) = argument(&key.expr, scope, params)? else { return Ok(None) };
            args.push(bound);
        }
        let given: Vec<SqlType> = args.iter().map(|a| a.ty().clone()).collect();
        // Texts of a locale general plans know, and what prints as a name.
        let named = |ty: &SqlType| ty.element().unwrap_or(ty).names_objects();
        if !args.iter().all(|arg| arg.collation().is_by_bytes()) || given.iter().any(named) {
            return Ok(None);
        }
        let filter = match f.filter.as_deref().map(|e| bind_bool(e, "FILTER", scope, params)) {
            None => None,
            Some(Ok(filter)) => Some(filter),
            Some(Err(e)) if needs_general_query(&e) => return Ok(None),
            Some(Err(e)) => return Err(e),
        };
        // What fits no overload is the general planner's to refuse.
        let Ok(choice) = resolve(&name, &given, false) else { return Ok(None) };
        let found = Aggregate::chosen(choice, (args, within), params)?;
        let found = found.map(|found| Aggregate { filter, ..found });
        Ok(if distinct { found.and_then(Aggregate::of_distinct) } else { found })
    }

    /// Takes each row in once; `None` for values that are not compared as they are.
    fn of_distinct(mut self) -> Option<Aggregate> {
        let plain = |arg: &Bound| arg.ty().is_comparable() && !arg.ty().is_row();
        if !self.args.iter().all(plain) {
            return None;
        }
        let ascending = OrderByOptions { asc: None, nulls_first: None };
        let keys = self.args.iter().map(|arg| SortKey::by(arg.clone(), &ascending));
        (self.order, self.distinct) = (keys.collect(), true);
        Some(self)
    }

    fn chosen(
        choice: Choice,
        (given, within): (Vec<Bound>, &[ast::OrderByExpr]),
        params: &mut ParamTypes,
    ) -> SqlResult<Option<Aggregate>> {
        let Code::Aggregate(code) = choice.function.code else { return Ok(None) };
        let Some(direct) = given.len().checked_sub(within.len()) else { return Ok(None) };
        match code.within_group {
            None if within.is_empty() => {}
            Some(Direct::Count(count)) if count == direct && within.len() == 1 => {}
            // What is wrong with it, and what asks where a row would stand, is the general
            // planner's.
            _ => return Ok(None),
        }
        let mut args = Vec::with_capacity(given.len());
        for (arg, ty) in given.into_iter().zip(&choice.args) {
            args.push(coerce(arg, ty, CastContext::Implicit, params)?);
        }
        let (own, keys) = args.split_at(direct);
        let settled =
            |arg: &Bound| arg.columns().is_empty() && arg.volatility() != Volatility::Volatile;
        let fits = own.iter().all(settled) && keys.iter().all(|key| key.ty().is_comparable());
        if !within.is_empty() && !fits {
            return Ok(None);
        }
        let within = within.iter().map(|key| OrderKey::of(&key.options));
        let (name, within, ty) = (choice.function.name, within.collect(), choice.ret);
        let (filter, order, distinct) = (None, Vec::new(), false);
        Ok(Some(Aggregate { name, code, args, filter, order, distinct, within, ty }))
    }

    /// For the first or last value of a bare column: the column, and whether the last is wanted.
    pub(super) fn extreme(&self) -> Option<(usize, bool)> {
        let [arg] = self.args.as_slice() else { return None };
        if self.filter.is_some() {
            return None;
        }
        Some((arg.as_column()?, self.code.extreme?))
    }

    /// Nothing taken in yet. The account pays for rows that it keeps.
    pub(super) fn start(&self, account: Option<&Arc<Account>>) -> State {
        let types: Vec<SqlType> = self.args.iter().map(|a| a.ty().clone()).collect();
        let types = AggregateTypes { args: &types, ret: &self.ty, sorted: &self.within };
        let accumulator = (self.code.start)(types);
        let account = account.filter(|_| accumulator.keeps_rows() || !self.order.is_empty());
        let held = account.map(|account| account.hold("rows of an aggregate"));
        let row = Vec::with_capacity(self.args.len());
        State { accumulator, row, waiting: Vec::new(), held }
    }

    /// Takes in a joined row.
    ///
    /// # Errors
    /// Of computing; 53200 when what it keeps does not fit.
    pub(super) fn add(&self, s: &mut State, row: &[Datum], eval: &EvalContext) -> SqlResult<()> {
        if let Some(filter) = &self.filter
            && !filter.eval_bool(row, eval)?
        {
            return Ok(());
        }
        s.row.clear();
        for arg in &self.args {
            s.row.push(arg.eval(row, eval)?);
        }
        if self.order.is_empty() {
            return s.take(None);
        }
        let order = self.order.iter().map(|key| key.expr.eval(row, eval));
        s.take(Some(order.collect::<SqlResult<Row>>()?))
    }

    /// As [`Aggregate::add`] for each row of a batch whose columns stand at these places in it;
    /// `false` if its arguments are not such columns, and it has taken nothing.
    pub(super) fn add_batch(
        &self,
        s: &mut State,
        batch: &StoredColumns,
        places: &[usize],
    ) -> SqlResult<bool> {
        if s.held.is_some() || self.filter.is_some() || !self.order.is_empty() {
            return Ok(false);
        }
        let column = match self.args.as_slice() {
            [] => {
                s.accumulator.update_many(&[], batch.rows())?;
                return Ok(true);
            }
            [arg] => arg.as_column(),
            _ => None,
        };
        let place = column.and_then(|column| places.iter().position(|at| *at == column));
        let Some(place) = place else { return Ok(false) };
        if let Some(integers) = batch.integers(place) {
            if let Some(last) = self.code.extreme {
                if let Some(row) = integers.extreme(last) {
                    s.accumulator.update(&[batch.value(place, row)])?;
                }
                return Ok(true);
            }
            let (sum, number) = integers.sum();
            if s.accumulator.update_integers(sum, number) {
                return Ok(true);
            }
        }
        for row in 0..batch.rows() {
            s.accumulator.update(&[batch.value(place, row)])?;
        }
        Ok(true)
    }

    /// As [`Aggregate::add`], of values that [`Aggregate::exprs`] gave before.
    pub(super) fn add_values(&self, s: &mut State, values: &[Datum]) -> SqlResult<()> {
        let (args, others) = values.split_at(self.args.len());
        let (filter, order) = others.split_at(usize::from(self.filter.is_some()));
        if filter.iter().any(|holds| !matches!(holds, Datum::Bool(true))) {
            return Ok(());
        }
        s.row.clear();
        s.row.extend_from_slice(args);
        s.take((!order.is_empty()).then(|| order.to_vec()))
    }

    /// What it gives, once all rows were taken in.
    ///
    /// # Errors
    /// Of computing.
    pub(super) fn finish(&self, s: &mut State, eval: &EvalContext) -> SqlResult<Datum> {
        let mut waiting = std::mem::take(&mut s.waiting);
        waiting.sort_by(|a, b| compare(&self.order, &a.0, &b.0));
        if self.distinct {
            waiting.dedup_by(|a, b| compare(&self.order, &a.0, &b.0).is_eq());
        }
        for (_, row) in waiting {
            s.row = row;
            s.take(None)?;
        }
        s.accumulator.finish(eval)
    }
}

/// An argument; `None` if general plans know it.
fn argument(e: &ast::Expr, scope: &Scope, params: &mut ParamTypes) -> SqlResult<Option<Bound>> {
    match bind_unsettled(e, scope, params) {
        Ok(bound) => Ok(Some(bound)),
        Err(e) if needs_general_query(&e) => Ok(None),
        Err(e) => Err(e),
    }
}
