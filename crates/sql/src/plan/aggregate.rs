//! Aggregates over all rows, without DISTINCT, FILTER, ORDER BY, GROUP BY. What they compute is the
//! registry's ([`braid_scalar::Accumulator`]); general plans use the same.

use std::sync::Arc;

use braid_catalog::memory_error;
use braid_env::memory::{Account, Held};
use braid_rows::row_memory;
use braid_scalar::{
    Accumulator, AggregateCode, AggregateTypes, Bound, Choice, Code, EvalContext, ParamTypes,
    Scope, bind_unsettled, coerce, needs_general_query, object_name_parts, resolve,
};
use braid_types::{CastContext, Datum, SqlResult, SqlType};
use sqlparser::ast::{self, FunctionArg, FunctionArgExpr, FunctionArguments};

use crate::answer::{ColumnBatch, StoredColumns};

/// One aggregate; its arguments are over the joined row. No argument is `count(*)`.
pub(super) struct Aggregate {
    name: &'static str,
    code: AggregateCode,
    pub(super) args: Vec<Bound>,
    pub(super) ty: SqlType,
}

/// An aggregate in the making.
pub(super) struct State {
    accumulator: Box<dyn Accumulator>,
    /// The arguments of the row at hand.
    row: Vec<Datum>,
    /// Memory of one that keeps its rows.
    held: Option<Held>,
}

impl State {
    /// Pays for a row that is kept, and for what is made of it at the end.
    fn hold(&mut self, bytes: impl FnOnce(&[Datum]) -> usize) -> SqlResult<()> {
        let Some(held) = &mut self.held else { return Ok(()) };
        let bytes = bytes(&self.row) * (1 + self.accumulator.copies_at_end());
        held.grow(bytes).map_err(|e| memory_error(&e))
    }
}

impl Aggregate {
    /// What EXPLAIN says, with columns of the joined row named by `names`.
    pub(super) fn describe(&self, names: &dyn Fn(usize) -> String) -> String {
        let args: Vec<String> = self.args.iter().map(|arg| arg.to_sql(names)).collect();
        let args = if args.is_empty() { "*".to_string() } else { args.join(", ") };
        format!("{}({args})", self.name)
    }

    /// Binds an aggregate call; `None` if it is not one, or one that the general planner runs:
    /// those that look at the order of rows or keep them.
    pub(super) fn bind(
        e: &ast::Expr,
        scope: &Scope,
        params: &mut ParamTypes,
    ) -> SqlResult<Option<Aggregate>> {
        let keeps = |aggregate: &Aggregate| {
            aggregate.code.by_order || aggregate.start_in(None).accumulator.keeps_rows()
        };
        Ok(Aggregate::bind_any(e, scope, params)?.filter(|aggregate| !keeps(aggregate)))
    }

    /// As [`Aggregate::bind`], of those too that keep their rows, which then come in key order.
    pub(super) fn bind_any(
        e: &ast::Expr,
        scope: &Scope,
        params: &mut ParamTypes,
    ) -> SqlResult<Option<Aggregate>> {
        let ast::Expr::Function(f) = e else { return Ok(None) };
        if f.filter.is_some() || f.over.is_some() || !f.within_group.is_empty() {
            return Ok(None);
        }
        let FunctionArguments::List(list) = &f.args else { return Ok(None) };
        if list.duplicate_treatment.is_some() || !list.clauses.is_empty() || list.args.is_empty() {
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
                FunctionArg::Unnamed(FunctionArgExpr::Wildcard) if list.args.len() == 1 => {}
                FunctionArg::Unnamed(FunctionArgExpr::Expr(e)) => {
                    match bind_unsettled(e, scope, params) {
                        Ok(bound) => args.push(bound),
                        Err(e) if needs_general_query(&e) => return Ok(None),
                        Err(e) => return Err(e),
                    }
                }
                _ => return Ok(None),
            }
        }
        let given: Vec<SqlType> = args.iter().map(|a| a.ty().clone()).collect();
        // Of texts of a locale general plans know.
        if !args.iter().all(|arg| arg.collation().is_by_bytes()) {
            return Ok(None);
        }
        // What fits no overload is the general planner's to refuse.
        let Ok(choice) = resolve(&name, &given, false) else { return Ok(None) };
        Aggregate::chosen(choice, args, params)
    }

    fn chosen(
        choice: Choice,
        given: Vec<Bound>,
        params: &mut ParamTypes,
    ) -> SqlResult<Option<Aggregate>> {
        let Code::Aggregate(code) = choice.function.code else { return Ok(None) };
        if code.within_group.is_some() {
            return Ok(None);
        }
        let mut args = Vec::with_capacity(given.len());
        for (arg, ty) in given.into_iter().zip(&choice.args) {
            args.push(coerce(arg, ty, CastContext::Implicit, params)?);
        }
        Ok(Some(Aggregate { name: choice.function.name, code, args, ty: choice.ret }))
    }

    /// For the first or last value of a bare column: the column, and whether the last is wanted.
    pub(super) fn extreme(&self) -> Option<(usize, bool)> {
        let [arg] = self.args.as_slice() else { return None };
        Some((arg.as_column()?, self.code.extreme?))
    }

    pub(super) fn start(&self) -> State {
        self.start_in(None)
    }

    /// As [`Aggregate::start`], with the account that pays for rows that it keeps.
    pub(super) fn start_in(&self, account: Option<&Arc<Account>>) -> State {
        let types: Vec<SqlType> = self.args.iter().map(|a| a.ty().clone()).collect();
        let types = AggregateTypes { args: &types, ret: &self.ty, sorted: &[] };
        let accumulator = (self.code.start)(types);
        let account = account.filter(|_| accumulator.keeps_rows());
        let held = account.map(|account| account.hold("the value of a subquery"));
        State { accumulator, row: Vec::with_capacity(self.args.len()), held }
    }

    pub(super) fn add(&self, s: &mut State, row: &[Datum], eval: &EvalContext) -> SqlResult<()> {
        s.row.clear();
        for arg in &self.args {
            s.row.push(arg.eval(row, eval)?);
        }
        s.hold(row_memory)?;
        s.accumulator.update(&s.row)
    }

    /// As [`Aggregate::add`] for each row of a batch whose columns stand at these places in it;
    /// `false` if its arguments are not such columns, and it has taken nothing.
    pub(super) fn add_batch(
        &self,
        s: &mut State,
        batch: &StoredColumns,
        places: &[usize],
    ) -> SqlResult<bool> {
        if s.held.is_some() {
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

    /// As [`Aggregate::add`], of arguments that were computed before.
    pub(super) fn add_values(&self, s: &mut State, values: &[Datum]) -> SqlResult<()> {
        s.hold(|_| row_memory(values))?;
        s.accumulator.update(values)
    }

    pub(super) fn finish(&self, s: &State, eval: &EvalContext) -> SqlResult<Datum> {
        s.accumulator.finish(eval)
    }
}
