//! EXPLAIN of a statement: planning it, running it if asked to, and what is said.

use braid_env::clock::{Clock, WallClock, thread_cpu_nanos};
use braid_parser::{ExplainFormat, ExplainOptions, Statement};
use braid_types::SqlResult;

use super::lines::{Explained, PlanLine};
use super::summary::{Ran, Summary};
use super::{debug, text, tree};
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
        let begun = WallClock.monotonic_nanos();
        let p = self.plan(ctx, inner.clone(), &[])?;
        let planning_nanos = WallClock.monotonic_nanos() - begun;
        let runs = options.analyze && !matches!(p.plan, Plan::Utility);
        if runs {
            check_writable(ctx, &p)?;
        }
        let (explained, ran) = run(ctx, &p, runs, options)?;
        let settings = self.changed_settings();
        let summary = Summary { planning_nanos, ran, settings };
        if options.debug {
            let options = ExplainOptions { buffers: true, wal: true, ..*options };
            let plan = text::lines(&explained.lines, &summary, &options);
            return debug::bundle(ctx, inner, &explained.lines, &summary, plan);
        }
        Ok(match options.format {
            ExplainFormat::Text => text::lines(&explained.lines, &summary, options),
            _ => vec![tree::text(&explained.lines, &summary, options)],
        })
    }
}

fn run(
    ctx: &Context,
    p: &Prepared,
    runs: bool,
    options: &ExplainOptions,
) -> SqlResult<(Explained, Option<Ran>)> {
    let (before, begun, cpu) = (ctx.txn.stats(), WallClock.monotonic_nanos(), thread_cpu_nanos());
    let explained = match &p.plan {
        Plan::Select(s) => s.explain(ctx, runs)?,
        Plan::General(g) => g.explain(&ctx.run_context(), runs, options.verbose)?,
        Plan::Insert(i) => i.explain(ctx, runs)?,
        Plan::Update(u) => u.explain(ctx, runs)?,
        Plan::Delete(d) => d.explain(ctx, runs)?,
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
    };
    Ok((explained, Some(ran)))
}
