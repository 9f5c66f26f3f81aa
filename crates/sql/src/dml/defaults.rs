//! Values that a row gets by itself (defaults, sequences, generated columns), and the checks that
//! every new row must pass (NOT NULL, CHECK).

use std::sync::Arc;

use braid_catalog::{Check, Column, Refined, Relation, Table};
use braid_types::{CastContext, Datum, SqlError, SqlResult, SqlState, SqlType};

use super::assigned::commit_time::check_past;
use super::keys::failing_row;
use crate::partitions::Router;
use crate::session::Context;
use braid_parser::parse_expr;
use braid_rows::computed::Computed;
use braid_rows::table_scope;
use braid_scalar::{Bound, EvalContext, Refinement, Scope, Volatility};

/// Where a column's value comes from when none is given.
#[derive(Clone, Debug)]
enum Default {
    Null,
    Expr(Bound),
    Sequence(u32),
    RowId,
}

/// Defaults, generated columns and checks of a table, bound once.
#[derive(Clone, Debug)]
pub struct Filler {
    table: Arc<Table>,
    defaults: Vec<Default>,
    generated: Vec<(usize, Bound)>,
    /// What declared types ask of values.
    refined: Vec<(usize, Refinement)>,
    checks: Vec<(String, Bound)>,
    /// Columns that may not be in the future.
    commit_times: Vec<usize>,
    /// Expressions of indexes.
    computed: Vec<Computed>,
    /// Finds the partition of a row.
    router: Option<Router>,
    /// CHECK constraints of partitions alone.
    partition_checks: Vec<(u32, String, Bound)>,
}

/// The CHECKs that rows are held to, in the order of their names, as PostgreSQL has it.
fn by_name(table: &Table) -> Vec<&Check> {
    let mut kept: Vec<_> = table.kept_checks().collect();
    kept.sort_by(|a, b| a.name.cmp(&b.name));
    kept
}

impl Filler {
    /// Binds everything.
    pub fn new(ctx: &Context, table: &Arc<Table>) -> SqlResult<Filler> {
        let scope = table_scope(table);
        let mut defaults = Vec::new();
        let (mut generated, mut refined) = (Vec::new(), Vec::new());
        let mut none = ctx.no_params();
        for (at, c) in table.columns.iter().enumerate() {
            if let Some(g) = &c.generated {
                generated
                    .push((at, braid_scalar::bind_to(&parse_expr(g)?, &c.ty, &scope, &mut none)?));
            }
            defaults.push(match (&c.default, c.sequence) {
                _ if c.is_row_id() => Default::RowId,
                (_, Some(s)) => Default::Sequence(s),
                (Some(d), None) => Default::Expr(braid_scalar::bind_to(
                    &parse_expr(d)?,
                    &c.ty,
                    &Scope::empty(),
                    &mut none,
                )?),
                (None, None) => match domain_default(ctx, c) {
                    Some(d) => Default::Expr(braid_scalar::bind_to(
                        &parse_expr(d)?,
                        &c.ty,
                        &Scope::empty(),
                        &mut none,
                    )?),
                    None => Default::Null,
                },
            });
            let refinement = ctx.refinement(c)?;
            if !refinement.is_none() {
                refined.push((at, refinement));
            }
        }
        let checks = by_name(table)
            .into_iter()
            .map(|k| {
                let bound =
                    braid_scalar::bind_bool(&parse_expr(&k.expr)?, "CHECK", &scope, &mut none)?;
                Ok((k.name.clone(), bound))
            })
            .collect::<SqlResult<_>>()?;
        let computed = Computed::of_table(table)?;
        let columns = table.columns.iter().enumerate();
        let commit_times = columns.filter(|(_, c)| c.commit_time).map(|(at, _)| at).collect();
        let router = Router::new(table)?;
        let partitions = table.partitioning().into_iter().flat_map(|divided| &divided.partitions);
        let partition_checks = partitions
            .flat_map(|p| p.checks.iter().map(|k| (p.id, k)))
            .map(|(of, k)| {
                let bound =
                    braid_scalar::bind_bool(&parse_expr(&k.expr)?, "CHECK", &scope, &mut none)?;
                Ok((of, k.name.clone(), bound))
            })
            .collect::<SqlResult<_>>()?;
        let table = table.clone();
        Ok(Filler {
            table,
            defaults,
            generated,
            refined,
            checks,
            commit_times,
            computed,
            router,
            partition_checks,
        })
    }

    /// The value of a column that was not given.
    pub fn default(&self, ctx: &Context, at: usize) -> SqlResult<Datum> {
        match &self.defaults[at] {
            Default::Null => Ok(Datum::Null),
            Default::Expr(e) => e.eval(&[], &ctx.eval),
            Default::RowId => Ok(Datum::Int8(ctx.db.new_row_id())),
            Default::Sequence(id) => {
                let Some(Relation::Sequence(s)) = ctx.catalog.relation_by_id(*id) else {
                    return Err(SqlError::internal("the sequence of a default is gone"));
                };
                let v = ctx.session.next_of(&s)?;
                let ty = &self.table.columns[at].ty;
                assign(&Datum::Int8(v), &braid_types::SqlType::Int8, ty, &ctx.eval)
            }
        }
    }

    /// Fills one column of an otherwise complete row.
    pub(crate) fn fill_one(&self, ctx: &Context, row: &mut [Datum], at: usize) -> SqlResult<()> {
        match self.generated.iter().find(|g| g.0 == at) {
            Some((_, e)) => row[at] = e.eval(row, &ctx.eval)?,
            None => row[at] = self.default(ctx, at)?,
        }
        Ok(())
    }

    /// Whether a column's default is the same for all rows of a statement.
    pub(crate) fn is_settled(&self, at: usize) -> bool {
        match &self.defaults[at] {
            Default::Null => true,
            Default::Expr(e) => e.volatility() != Volatility::Volatile,
            Default::Sequence(_) | Default::RowId => false,
        }
    }

    /// Refines values as their columns' types want them, and computes generated columns and
    /// expressions of indexes.
    pub fn generate(&self, ctx: &Context, row: &mut [Datum]) -> SqlResult<()> {
        self.fill_columns(ctx, row)?;
        self.compute(row)
    }

    fn compute(&self, row: &mut [Datum]) -> SqlResult<()> {
        for computed in &self.computed {
            row[computed.ordinal] = computed.value(row)?;
        }
        Ok(())
    }

    fn fill_columns(&self, ctx: &Context, row: &mut [Datum]) -> SqlResult<()> {
        let generated = |at: &usize| self.generated.iter().any(|(g, _)| g == at);
        for (at, refinement) in self.refined.iter().filter(|(at, _)| !generated(at)) {
            row[*at] =
                refinement.refine(std::mem::replace(&mut row[*at], Datum::Null), &ctx.eval)?;
        }
        for (at, e) in &self.generated {
            row[*at] = e.eval(row, &ctx.eval)?;
        }
        for (at, refinement) in self.refined.iter().filter(|(at, _)| generated(at)) {
            row[*at] =
                refinement.refine(std::mem::replace(&mut row[*at], Datum::Null), &ctx.eval)?;
        }
        Ok(())
    }

    /// Computes generated columns, then checks that there is a partition, NOT NULL and CHECK; then
    /// computes what indexes want.
    pub fn complete(&self, ctx: &Context, row: &mut [Datum]) -> SqlResult<()> {
        self.fill_columns(ctx, row)?;
        let t = &self.table;
        let (name, path) = match &self.router {
            None => (&*t.name, Vec::new()),
            Some(router) => {
                let path = router.route(row, &ctx.eval, || failing_row(t, row))?;
                (router.name_within(&path), path)
            }
        };
        for (c, v) in t.columns.iter().zip(row.iter()) {
            if v.is_null() && !t.takes_null(c) {
                return Err(SqlError::new(
                    SqlState::NOT_NULL_VIOLATION,
                    format!(
                        "null value in column \"{}\" of relation \"{}\" violates not-null \
                         constraint",
                        c.name, name
                    ),
                )
                .with_detail(failing_row(t, row))
                .with_table(ctx.schema_name(t.schema), name)
                .with_column(&c.name));
            }
        }
        for at in &self.commit_times {
            check_past(ctx, t, *at, &row[*at])?;
        }
        let own = self.partition_checks.iter().filter(|(of, ..)| path.contains(of));
        let own = own.map(|(_, constraint, check)| (constraint, check));
        for (constraint, check) in self.checks.iter().map(|(name, k)| (name, k)).chain(own) {
            if matches!(check.eval(row, &ctx.eval)?, Datum::Bool(false)) {
                return Err(SqlError::new(
                    SqlState::CHECK_VIOLATION,
                    format!(
                        "new row for relation \"{name}\" violates check constraint \
                         \"{constraint}\""
                    ),
                )
                .with_detail(failing_row(t, row))
                .with_table(ctx.schema_name(t.schema), name)
                .with_constraint(constraint));
            }
        }
        self.compute(row)
    }
}

/// The default of a column's domain.
fn domain_default<'a>(ctx: &'a Context, column: &Column) -> Option<&'a str> {
    match column.refinement {
        Some(Refined::Domain(id)) => ctx.catalog.domain(id)?.default.as_deref(),
        _ => None,
    }
}

/// Assignment of a computed value to the type of a column.
pub(crate) fn assign(
    value: &Datum,
    from: &SqlType,
    to: &SqlType,
    eval: &EvalContext,
) -> SqlResult<Datum> {
    braid_types::cast(value, from, to, CastContext::Assignment, eval.style)
}
