//! [`SelectPlan`]: the planned form of a query of ours.

use std::sync::Arc;

use braid_scalar::ParamTypes;
use braid_types::{SqlResult, SqlState};
use sqlparser::ast::{self, SetExpr};

use super::outgrown::Again;
use super::sets::Sets;
use super::with;
use super::within::{Measured, Telling, Within};
use crate::explain::{Explained, PlanLine};
use crate::general_query::{ColumnInfo, RowStream};
use crate::plan::select::Chain;
use crate::session::Context;

/// A planned query; see the [module documentation](crate::plan).
pub struct SelectPlan {
    body: Body,
    /// Its query, if it keeps rows and may be run again.
    again: Option<Arc<Again>>,
}

/// What a plan is made of.
enum Body {
    /// One SELECT.
    Chain(Chain),
    /// UNION, INTERSECT, EXCEPT.
    Sets(Arc<Sets>),
}

impl SelectPlan {
    /// Result columns.
    pub fn columns(&self) -> &[ColumnInfo] {
        match &self.body {
            Body::Chain(chain) => &chain.parts.columns,
            Body::Sets(sets) => sets.columns(),
        }
    }

    /// FOR UPDATE or FOR SHARE.
    pub(crate) fn locks_rows(&self) -> bool {
        match &self.body {
            Body::Chain(chain) => chain.parts.locking.is_some(),
            Body::Sets(_) => false,
        }
    }

    /// The table whose rows it locks.
    pub(crate) fn locked_table(&self) -> Option<u32> {
        match &self.body {
            Body::Chain(chain) if chain.parts.locking.is_some() => {
                Some(chain.parts.steps[0].layout.table.id)
            }
            _ => None,
        }
    }

    /// Runs it. Locking reads are done when this returns, so that they can be tried again.
    pub fn run(&self, ctx: &Arc<Context>) -> SqlResult<Box<dyn RowStream>> {
        let again = self.again.as_ref().filter(|_| ctx.with.is_none());
        let own = self.context(ctx, again.is_some());
        let rows = self.run_for(&own, None);
        match again {
            Some(again) => again.instead_of(ctx, rows, own.memory.clone()),
            None => rows,
        }
    }

    /// What it runs in: what it makes is its own, and what it keeps can be given back by itself, if
    /// that is wanted.
    fn context(&self, ctx: &Arc<Context>, apart: bool) -> Arc<Context> {
        let makes_rows = self.makes_rows();
        if !makes_rows && !apart {
            return ctx.clone();
        }
        let mut own = Context::clone(ctx);
        if makes_rows {
            own.within.made = Some(Arc::default());
        }
        if apart {
            own.memory = ctx.memory.part(ctx.memory.limit());
        }
        Arc::new(own)
    }

    /// The same; where it finds more rows than it may keep, a general plan of the query goes on.
    #[must_use]
    pub(in crate::plan) fn or_general(self, q: &ast::Query, params: &ParamTypes) -> SelectPlan {
        let keeps_rows = match &self.body {
            Body::Chain(chain) => {
                let parts = &chain.parts;
                !parts.sort.is_empty() || !parts.output.is_plain() || chain.makes_rows()
            }
            Body::Sets(_) => true,
        };
        let may_run_again = keeps_rows && !self.locks_rows() && self.is_quiet();
        let again = may_run_again.then(|| Arc::new(Again::of(q, params)));
        SelectPlan { again, ..self }
    }

    /// Runs it within another one, for so many rows if not all are wanted.
    pub(super) fn run_for(
        &self,
        ctx: &Arc<Context>,
        most: Option<u64>,
    ) -> SqlResult<Box<dyn RowStream>> {
        match &self.body {
            Body::Chain(chain) => chain.run(ctx, most),
            Body::Sets(sets) => sets.run(ctx, most),
        }
    }

    /// EXPLAIN.
    pub fn explain(&self, ctx: &Context, analyze: bool) -> SqlResult<Explained> {
        if !analyze {
            let lines = self.lines(ctx, &mut Telling::default());
            return Ok(Explained { lines, rows: None });
        }
        let measured = Arc::new(Measured::default());
        let within = Within { measured: Some(measured.clone()), ..ctx.within.clone() };
        let running = Arc::new(Context { within, ..ctx.clone() });
        let before = ctx.txn.stats();
        let mut stream = self.run(&running)?;
        let mut rows = 0;
        while let Some(batch) = stream.next_batch()? {
            rows += batch.len() as u64;
        }
        drop(stream);
        let after = ctx.txn.stats();
        let mut lines = self.lines(ctx, &mut Telling::new(Some(&measured)));
        lines.push(PlanLine::from(format!(
            "rows: {rows}, point reads: {}, rows scanned: {}, requests: {}",
            after.gets - before.gets,
            after.rows_scanned - before.rows_scanned,
            after.requests - before.requests
        )));
        Ok(Explained { lines, rows: Some(rows) })
    }

    /// The plan as lines.
    pub(super) fn lines(&self, ctx: &Context, telling: &mut Telling<'_>) -> Vec<PlanLine> {
        match &self.body {
            Body::Chain(chain) => chain.explain(ctx, telling),
            Body::Sets(sets) => sets.explain(ctx, telling),
        }
    }

    /// How many rows it is expected to look at, about, if that is not bounded by a LIMIT.
    pub(super) fn work(&self, ctx: &Context) -> f64 {
        match &self.body {
            Body::Chain(chain) => chain.work(ctx),
            Body::Sets(sets) => sets.work(ctx),
        }
    }

    /// How many rows it is expected to give, about.
    pub(super) fn rows_given(&self, ctx: &Context) -> f64 {
        match &self.body {
            Body::Chain(chain) => chain.rows_given(ctx),
            Body::Sets(sets) => sets.rows_given(ctx),
        }
    }

    /// Whether it shows each row that it finds, whatever the others are.
    pub(super) fn shows_each_row(&self) -> bool {
        match &self.body {
            Body::Chain(chain) => chain.parts.output.is_plain(),
            Body::Sets(_) => false,
        }
    }

    /// Whether nothing that it computes can fail, or does anything.
    pub(super) fn is_quiet(&self) -> bool {
        match &self.body {
            Body::Chain(chain) => chain.is_quiet(),
            Body::Sets(sets) => sets.is_quiet(),
        }
    }

    /// Whether some of it is made first.
    pub(super) fn makes_rows(&self) -> bool {
        match &self.body {
            Body::Chain(chain) => chain.makes_rows(),
            Body::Sets(sets) => sets.makes_rows(),
        }
    }
}

/// Plans a query of any form; `None` if it is none of ours.
///
/// # Errors
/// What is wrong with it, when it would be ours if it were right.
pub(in crate::plan) fn plan_any(
    ctx: &Context,
    q: &ast::Query,
    params: &mut ParamTypes,
) -> SqlResult<Option<SelectPlan>> {
    if let Some(with) = &q.with {
        return with::plan(ctx, with, q, params);
    }
    let body = match &*q.body {
        SetExpr::Select(_) => with::plan_select(ctx, q, params)?.map(Body::Chain),
        SetExpr::SetOperation { .. } => {
            Sets::plan(ctx, q, params)?.map(|sets| Body::Sets(Arc::new(sets)))
        }
        SetExpr::Values(values) => match as_selects(q, values) {
            // What is wrong with them, general plans tell.
            Some(selects) => match plan_any(ctx, &selects, params) {
                Err(e) if e.state() == SqlState::INTERNAL_ERROR => return Err(e),
                found => return Ok(found.unwrap_or_default()),
            },
            None => None,
        },
        _ => None,
    };
    Ok(body.map(|body| SelectPlan { body, again: None }))
}

/// Rows of VALUES, from which on a general plan makes them faster.
const FEW_VALUES: usize = 50;

/// VALUES as a SELECT for each row; `None` if they are many.
fn as_selects(q: &ast::Query, values: &ast::Values) -> Option<ast::Query> {
    let [first, others @ ..] = values.rows.as_slice() else { return None };
    let alike = others.iter().all(|row| row.content.len() == first.content.len());
    // General plans tell where a literal stands that has not the type of its column.
    let settled = |at: usize| {
        let all = || values.rows.iter().map(|row| literal(&row.content[at]));
        !all().any(|one| one == Literal::Text) || !all().any(|one| one == Literal::Other)
    };
    if values.rows.len() > FEW_VALUES
        || !alike
        || !(0..first.content.len()).all(settled)
        || !q.locks.is_empty()
    {
        return None;
    }
    let bare = braid_parser::parse_query("SELECT 1").ok()?;
    let SetExpr::Select(bare) = *bare.body else { return None };
    let select = |row: &[ast::Expr]| {
        let named = |(n, expr): (usize, &ast::Expr)| ast::SelectItem::ExprWithAlias {
            expr: expr.clone(),
            alias: ast::Ident::new(format!("column{}", n + 1)),
        };
        let projection = row.iter().enumerate().map(named).collect();
        SetExpr::Select(Box::new(ast::Select { projection, ..(*bare).clone() }))
    };
    let mut body = select(&first.content);
    for row in others {
        body = SetExpr::SetOperation {
            op: ast::SetOperator::Union,
            set_quantifier: ast::SetQuantifier::All,
            left: Box::new(body),
            right: Box::new(select(&row.content)),
        };
    }
    Some(ast::Query { body: Box::new(body), ..q.clone() })
}

/// What an expression of VALUES says of the type of its column.
#[derive(PartialEq)]
enum Literal {
    /// Nothing.
    Null,
    /// That it may be any.
    Text,
    Other,
}

fn literal(e: &ast::Expr) -> Literal {
    match e {
        ast::Expr::Value(value) => match &value.value {
            ast::Value::Null => Literal::Null,
            ast::Value::Number(..) | ast::Value::Boolean(_) => Literal::Other,
            _ => Literal::Text,
        },
        _ => Literal::Other,
    }
}
