//! Rows from a query, by our own plan or a general one.

use braid_rows::Row;
use std::sync::Arc;

use braid_types::{SqlResult, SqlType};
use sqlparser::ast;

use crate::explain::{Explained, PlanLine};
use crate::general_query::{ColumnInfo, GeneralPlan, RowStream};
use crate::plan::SelectPlan;
use crate::plan::locked::LockedPlan;
use crate::session::Context;
use braid_scalar::ParamTypes;

/// A planned query.
pub enum Source {
    /// Ours.
    Own(Arc<SelectPlan>),
    /// DataFusion's.
    General(Arc<dyn GeneralPlan>),
    /// DataFusion's, of whose rows some are locked.
    Locked(Arc<LockedPlan>),
}

impl Source {
    /// Plans a query without parameters.
    pub(crate) fn plan_query(ctx: &Context, q: &ast::Query) -> SqlResult<Source> {
        Source::plan(ctx, q, &mut ctx.no_params())
    }

    /// Plans a query; parameters are shared with the statement around it.
    pub fn plan(ctx: &Context, q: &ast::Query, params: &mut ParamTypes) -> SqlResult<Source> {
        let with = ctx.with.as_ref();
        let around = with.and_then(|with| with.around(q));
        let q = around.as_ref().unwrap_or(q);
        let mut own = params.clone();
        if !with.is_some_and(|with| with.gives(q))
            && let Some(p) = crate::plan::plan_query(ctx, q, &mut own)?
        {
            *params = own;
            return Ok(Source::Own(Arc::new(p)));
        }
        if !q.locks.is_empty() {
            return Ok(Source::Locked(Arc::new(LockedPlan::new(ctx, q, params)?)));
        }
        let declared: Vec<Option<SqlType>> =
            (0..params.len()).map(|i| params.get(i).cloned()).collect();
        let g = ctx.db.general().plan(q, &ctx.plan_context(), &declared)?;
        for (i, ty) in g.param_types().iter().enumerate() {
            params.decide(i, ty);
        }
        params.note_domains(g.param_domains());
        g.called().iter().for_each(|function| params.note_called(*function));
        Ok(Source::General(g))
    }

    /// Result columns.
    pub fn columns(&self) -> &[ColumnInfo] {
        match self {
            Source::Own(p) => p.columns(),
            Source::General(g) => g.columns(),
            Source::Locked(l) => l.columns(),
        }
    }

    /// Runs it.
    pub fn stream(&self, ctx: &Context) -> SqlResult<Box<dyn RowStream>> {
        match self {
            Source::Own(p) => p.run(&Arc::new(ctx.clone())),
            Source::General(g) => g.execute(&ctx.run_context_of(&**g)),
            Source::Locked(l) => l.run(ctx),
        }
    }

    /// All rows.
    pub fn rows(&self, ctx: &Context) -> SqlResult<Vec<Row>> {
        let _past = ctx.look_back()?;
        let mut stream = self.stream(ctx)?;
        let mut out = Vec::new();
        while let Some(batch) = stream.next_batch()? {
            ctx.keep_rows("rows to be written", &batch)?;
            out.extend(batch);
        }
        Ok(out)
    }

    /// EXPLAIN lines.
    pub fn explain(&self, ctx: &Context) -> SqlResult<Vec<PlanLine>> {
        Ok(self.explained(ctx)?.lines.into_iter().map(PlanLine::indented).collect())
    }

    /// EXPLAIN of it alone.
    pub(super) fn explained(&self, ctx: &Context) -> SqlResult<Explained> {
        match self {
            Source::Own(p) => p.explain(ctx, false),
            Source::General(g) => g.explain(&ctx.run_context(), false, false),
            Source::Locked(l) => l.explain(ctx, false),
        }
    }
}
