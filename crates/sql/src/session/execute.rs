//! Executing a prepared statement: who runs it, and what one try of it did.

use std::sync::Arc;

use braid_catalog::{Catalog, write_changes};
use braid_types::{Datum, SqlError, SqlResult, SqlState};

use super::client::Session;
use super::context::Context;
use super::outcome::{Outcome, Rows, RowsTag, VecRows};
use super::prepared::{Plan, Prepared};
use super::transaction::{OpenTxn, aborted};
use crate::statement::Effect;
use crate::statement::entry::Runs;
use braid_parser::Statement;

/// What one try of a statement did.
pub(crate) struct Ran {
    pub(crate) outcome: Outcome,
    /// The catalog it left behind.
    pub(crate) catalog: Option<Arc<Catalog>>,
}

impl From<Outcome> for Ran {
    fn from(outcome: Outcome) -> Ran {
        Ran { outcome, catalog: None }
    }
}

impl Session {
    /// Runs a statement with parameter values in the types of [`Prepared::param_types`].
    pub fn execute(&mut self, p: &Arc<Prepared>, params: Vec<Datum>) -> SqlResult<Outcome> {
        let result = self.execute_inner(p, params);
        if result.is_err() {
            self.fail();
        }
        result
    }

    /// Marks an open transaction as failed: something outside of `execute` went wrong.
    pub fn fail(&mut self) {
        if let Some(o) = &self.open {
            o.fail();
        }
    }

    pub(super) fn execute_inner(
        &mut self,
        p: &Arc<Prepared>,
        params: Vec<Datum>,
    ) -> SqlResult<Outcome> {
        if self.open.as_ref().is_some_and(OpenTxn::is_failed) && !p.entry.in_failed_block {
            return Err(aborted());
        }
        if params.len() != p.params.len() {
            return Err(SqlError::new(
                SqlState::PROTOCOL_VIOLATION,
                format!(
                    "bind message supplies {} parameters, but prepared statement requires {}",
                    params.len(),
                    p.params.len()
                ),
            ));
        }
        if let Runs::Session(of) = p.entry.runs {
            return of(&p.statement).expect("the entry claims it")(self);
        }
        if self.open.is_some() {
            return self.run_in_block(p, params);
        }
        if p.entry.in_steps.is_some_and(|may| may(&p.statement.kind))
            && let Some(done) = self.run_in_steps(&p.statement)?
        {
            return Ok(done);
        }
        self.run_alone(p, params)
    }

    /// Plans and explains a statement.
    pub(crate) fn explain(
        &mut self,
        ctx: &Context,
        inner: &Statement,
        analyze: bool,
    ) -> SqlResult<Vec<String>> {
        let p = self.plan(ctx, inner.clone(), &[])?;
        if analyze && !matches!(p.plan, Plan::Utility) {
            check_writable(ctx, &p)?;
        }
        match &p.plan {
            Plan::Select(s) => s.explain(ctx, analyze),
            Plan::General(g) => g.explain(&ctx.run_context(), analyze),
            Plan::Insert(i) => i.explain(ctx, analyze),
            Plan::Update(u) => u.explain(ctx, analyze),
            Plan::Delete(d) => d.explain(ctx, analyze),
            Plan::Utility => Ok(vec!["Utility statement".to_string()]),
        }
    }
}

/// 25006 if it writes, and the transaction must not.
fn check_writable(ctx: &Context, p: &Prepared) -> SqlResult<()> {
    if ctx.txn.read_only() && !p.only_reads() {
        let name = p.name();
        return Err(SqlError::new(
            SqlState::READ_ONLY_SQL_TRANSACTION,
            format!("cannot execute {name} in a read-only transaction"),
        ));
    }
    Ok(())
}

/// One try of a statement.
pub(super) fn run(session: &mut Session, ctx: &Context, p: &Arc<Prepared>) -> SqlResult<Ran> {
    ctx.check_cancel()?;
    if p.entry.effect != Effect::AsExplained {
        check_writable(ctx, p)?;
    }
    let memory = ctx.memory.clone();
    let ran = run_plan(session, ctx, p)?;
    Ok(match ran {
        Ran { outcome: Outcome::Rows(rows), catalog } => {
            Ran { outcome: Outcome::Rows(rows.holding(memory)), catalog }
        }
        other => other,
    })
}

fn run_plan(session: &mut Session, ctx: &Context, p: &Arc<Prepared>) -> SqlResult<Ran> {
    match &p.plan {
        Plan::Select(s) => {
            Ok(Outcome::Rows(Rows::new(s.run(ctx)?, RowsTag::Counted("SELECT"))).into())
        }
        Plan::General(g) => {
            let stream = g.execute(&ctx.run_context())?;
            Ok(Outcome::Rows(Rows::new(stream, RowsTag::Counted("SELECT"))).into())
        }
        Plan::Insert(i) => written(i.run(ctx)?, "INSERT 0"),
        Plan::Update(u) => written(u.run(ctx)?, "UPDATE"),
        Plan::Delete(d) => written(d.run(ctx)?, "DELETE"),
        Plan::Utility => utility(session, ctx, p),
    }
}

fn written(w: crate::dml::Written, word: &str) -> SqlResult<Ran> {
    let tag = format!("{word} {}", w.count);
    Ok(match w.returning {
        Some(rows) => {
            Outcome::Rows(Rows::new(Box::new(VecRows::new(rows)), RowsTag::Fixed(tag))).into()
        }
        None => Outcome::Done(tag).into(),
    })
}

/// Rows that are here already, with their command tag.
pub(crate) fn text_rows(rows: Vec<Vec<Datum>>, tag: &str) -> Ran {
    Outcome::Rows(Rows::new(Box::new(VecRows::new(rows)), RowsTag::Fixed(tag.into()))).into()
}

fn utility(session: &mut Session, ctx: &Context, p: &Arc<Prepared>) -> SqlResult<Ran> {
    const CLAIMED: &str = "the entry claims it";
    match p.entry.runs {
        Runs::Utility(of) => of(&p.statement).expect(CLAIMED)(session, ctx),
        Runs::Change(of) => {
            let (tag, mut new) = crate::ddl::run(ctx, of(&p.statement).expect(CLAIMED))?;
            write_changes(&ctx.txn, &ctx.catalog, &mut new)?;
            Ok(Ran { outcome: Outcome::Done(tag), catalog: Some(Arc::new(new)) })
        }
        Runs::Session(_) | Runs::Plan(_) => unreachable!("these have run before"),
    }
}
