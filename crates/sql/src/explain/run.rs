//! EXPLAIN of a statement: planning it, running it if asked to, and what is said.

use std::sync::Arc;

use braid_catalog::kv_error;
use braid_env::clock::{Clock, WallClock, thread_cpu_nanos};
use braid_parser::{ExplainFormat, ExplainOptions, Kind, Statement};
use braid_types::{SqlError, SqlResult};

use super::lines::{Explained, PlanLine};
use super::summary::{Ran, Summary};
use super::{debug, interleave, text, tree};
use crate::session::execute::check_writable;
use crate::session::prepared::{Plan, Prepared};
use crate::session::{Context, Session};

impl Session {
    /// The rows of EXPLAIN.
    pub(crate) fn explain(
        &mut self,
        ctx: &Context,
        inner: &Statement,
        options: &ExplainOptions,
    ) -> SqlResult<Vec<String>> {
        if options.interleave && options.format != ExplainFormat::Text {
            return Err(SqlError::unsupported("EXPLAIN (INTERLEAVE) in JSON, YAML or XML")
                .with_hint("FORMAT TEXT draws the trees."));
        }
        let begun = WallClock.monotonic_nanos();
        let (ctx, p) = &self.explained_plan(ctx, inner)?;
        let planning_nanos = WallClock.monotonic_nanos() - begun;
        if runs(p, options) {
            check_writable(ctx, p)?;
        }
        let is_kept = matches!(*inner.kind, Kind::Execute(..));
        let (explained, ran) = run(ctx, p, is_kept, options)?;
        let settings = self.changed_settings();
        let summary = Summary { planning_nanos, ran, settings };
        if options.debug {
            let options = ExplainOptions { buffers: true, wal: true, ..*options };
            let plan = text::lines(&explained.lines, &summary, &options);
            return debug::bundle(ctx, inner, &explained.lines, &summary, plan);
        }
        Ok(match options.format {
            ExplainFormat::Text => {
                let mut out = text::lines(&explained.lines, &summary, options);
                if options.interleave {
                    out.extend(interleave::lines(ctx, &explained.lines));
                }
                out
            }
            _ => vec![tree::text(&explained.lines, &summary, options)],
        })
    }

    /// Whether it is EXPLAIN ANALYZE of a statement that only reads: it has to read as that does,
    /// in a transaction that will not write.
    pub(crate) fn explains_what_only_reads(&mut self, p: &Prepared) -> bool {
        let Kind::Explain { options, statement } = &*p.statement.kind else { return false };
        // What is wrong with the statement is said when it runs.
        let plan = |session: &mut Session| {
            let ctx = session.planning_context(p.statement.as_of.as_deref())?;
            session.explained_plan(&ctx, statement)
        };
        options.analyze && plan(self).is_ok_and(|(_, inner)| inner.only_reads())
    }

    /// The plan, and what it runs in. That of EXECUTE is the plan which is kept for it.
    fn explained_plan(
        &mut self,
        ctx: &Context,
        inner: &Statement,
    ) -> SqlResult<(Context, Arc<Prepared>)> {
        let Kind::Execute(name, values) = &*inner.kind else {
            return Ok((ctx.clone(), Arc::new(self.plan(ctx, inner.clone(), &[])?)));
        };
        let target = self.named(name)?;
        let params = self.execute_args(&target, name, values)?;
        let mut ctx = ctx.clone();
        ctx.eval.params = Arc::from(params);
        let p = self.replan(&target, &ctx)?;
        Ok((ctx, p))
    }
}

/// Whether a plan is executed.
fn runs(p: &Prepared, options: &ExplainOptions) -> bool {
    options.analyze && !matches!(p.plan, Plan::Utility)
}

fn run(
    ctx: &Context,
    p: &Prepared,
    is_kept: bool,
    options: &ExplainOptions,
) -> SqlResult<(Explained, Option<Ran>)> {
    let runs = runs(p, options);
    ctx.txn.begin_touching();
    let (before, begun, cpu) = (ctx.txn.stats(), WallClock.monotonic_nanos(), thread_cpu_nanos());
    let explained = match &p.plan {
        Plan::Select(s) => s.explain(ctx, runs)?,
        Plan::General(g) => g.explain(&ctx.run_context(), runs, is_kept)?,
        Plan::Locked(l) => l.explain(ctx, runs)?,
        Plan::Insert(i) => i.explain(ctx, runs)?,
        Plan::Update(u) => u.explain(ctx, runs)?,
        Plan::Delete(d) => d.explain(ctx, runs)?,
        Plan::With(w) => w.explain(ctx, runs)?,
        Plan::Merge(m) => m.explain(ctx, runs)?,
        Plan::Utility | Plan::Declare(_) => {
            Explained { lines: vec![PlanLine::from("Utility statement")], rows: None }
        }
    };
    if !runs {
        return Ok((explained, None));
    }
    let ran = Ran {
        nanos: WallClock.monotonic_nanos() - begun,
        cpu_nanos: thread_cpu_nanos().zip(cpu).map(|(now, then)| now.saturating_sub(then)),
        rows: explained.rows.unwrap_or(0),
        memory_peak: ctx.memory.peak() as u64,
        before,
        after: ctx.txn.stats(),
        participants: ctx.txn.participants_so_far().map_err(kv_error)?,
    };
    Ok((explained, Some(ran)))
}
