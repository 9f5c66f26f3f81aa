//! Executing a prepared statement: who runs it, and what one try of it did.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use braid_catalog::{Catalog, SeenBy};
use braid_kv::{Isolation, Tally};
use braid_types::{Datum, SqlError, SqlResult, SqlState};

use super::begun::begun;
use super::client::Session;
use super::context::Context;
use super::cursors::Declared;
use super::outcome::{Outcome, Rows, RowsTag, VecRows};
use super::prepared::{Plan, Prepared};
use super::transaction::{OpenTxn, aborted};
use crate::runtime::log::{self, Logged};
use crate::runtime::measure::{Begin, Measure, rows_of_tag};
use crate::runtime::sessions::Sum;
use crate::runtime::statements::Counted;
use crate::statement::Effect;
use crate::statement::entry::Runs;
use braid_parser::Kind;

/// What one try of a statement did.
pub(crate) struct Ran {
    pub(crate) outcome: Outcome,
    /// The catalog it left behind, and who sees what is new in it.
    pub(crate) catalog: Option<(Arc<Catalog>, SeenBy)>,
}

impl From<Outcome> for Ran {
    fn from(outcome: Outcome) -> Ran {
        Ran { outcome, catalog: None }
    }
}

impl Session {
    /// Runs a statement with parameter values in the types of [`Prepared::param_types`].
    pub fn execute(&mut self, p: &Arc<Prepared>, params: Vec<Datum>) -> SqlResult<Outcome> {
        self.begins(&p.statement.text);
        let _stops = Tally::stop_by(&self.cancel);
        let result = self.execute_inner(p, params);
        result.map_err(|e| {
            self.fail();
            p.statement.locate(braid_scalar::told_to_clients(e))
        })
    }

    /// Marks an open transaction as failed: something outside of `execute` went wrong.
    pub fn fail(&mut self) {
        match &self.open {
            Some(o) => o.fail(),
            None => self.state.forget_asked(0),
        }
    }

    /// Runs it and counts what it does.
    pub(super) fn execute_inner(
        &mut self,
        p: &Arc<Prepared>,
        params: Vec<Datum>,
    ) -> SqlResult<Outcome> {
        self.measuring = self.measure(p);
        if let Some(open) = &mut self.open
            && !matches!(p.entry.runs, Runs::Session(_))
            && let Some(id) = self.measuring.as_ref().and_then(|measure| measure.fingerprint())
        {
            open.story.runs(id);
        }
        let result = self.execute_unmeasured(p, params);
        let Some(measure) = self.measuring.take() else { return result };
        let outcome = match result {
            Ok(outcome) => outcome,
            Err(e) => {
                if let Some(open) = &mut self.open {
                    open.story.loses(&e);
                }
                measure.fail(&e);
                return Err(e);
            }
        };
        Ok(match outcome {
            Outcome::Rows(rows) => Outcome::Rows(rows.measured(measure)),
            Outcome::Done(tag) => {
                measure.end(rows_of_tag(&tag));
                Outcome::Done(tag)
            }
            Outcome::CopyIn(copy) => Outcome::CopyIn(Box::new(copy.measured(measure))),
            Outcome::CopyOut(copy) => Outcome::CopyOut(Box::new(copy.measured(measure))),
            Outcome::Empty => {
                measure.end(0);
                Outcome::Empty
            }
        })
    }

    /// A try of the statement that runs was lost, and it runs again.
    pub(super) fn loses(&mut self, e: &SqlError) {
        if let Some(measure) = &mut self.measuring {
            measure.lose(e);
        }
        if let Some(open) = &mut self.open {
            open.story.loses(e);
        }
    }

    /// An execution that begins, if executions of such statements are counted. EXECUTE is not:
    /// what it runs is.
    fn measure(&self, p: &Arc<Prepared>) -> Option<Box<Measure>> {
        let derived = self.state.derived();
        let counts = derived.counts;
        let is_utility = matches!(p.plan, Plan::Utility);
        let is_about_others = matches!(
            *p.statement.kind,
            Kind::Empty | Kind::Execute(..) | Kind::Do(_) | Kind::Prepare(..) | Kind::Deallocate(_)
        );
        if is_about_others {
            return None;
        }
        if derived.log.begun >= logged_by(p) {
            log::statement(&self.activity);
        }
        let counted = counts.queries && (counts.utilities || !is_utility);
        let counted = counted.then(|| self.counted(p));
        self.activity.runs(counted.as_ref().map_or(0, |counted| counted.id()));
        let planned = match p.planned.load(Ordering::Relaxed) {
            0 => 0,
            _ => p.planned.swap(0, Ordering::Relaxed),
        };
        let planned = if is_utility { 0 } else { planned };
        Some(Measure::begin(Begin {
            counted,
            activity: self.activity.clone(),
            rows_are: written(p),
            alone: self.open.is_none() && !matches!(*p.statement.kind, Kind::Begin(_)),
            planned,
            slow: derived.log.slow,
        }))
    }

    /// Where executions of a statement are counted.
    fn counted(&self, p: &Prepared) -> Arc<Counted> {
        let mut known = p.counted.lock();
        if let Some(counted) = known.as_ref().filter(|counted| !counted.is_gone()) {
            return counted.clone();
        }
        let database = self.state.database_id();
        known.insert(self.db.statements().entry(database, &p.statement.text)).clone()
    }

    fn execute_unmeasured(&mut self, p: &Arc<Prepared>, params: Vec<Datum>) -> SqlResult<Outcome> {
        if self.open.as_ref().is_some_and(OpenTxn::is_failed) && !p.entry.in_failed_block {
            return Err(aborted());
        }
        self.check_run(&p.statement, p.entry, &p.digests)?;
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
        let params: Arc<[Datum]> = params.into();
        if let Some(open) = &self.open {
            let same_view = open.txn.isolation() != Isolation::ReadCommitted;
            if !(same_view && p.only_reads()) {
                self.settle_cursors()?;
            }
            return self.run_in_block(p, params);
        }
        if p.entry.in_steps.is_some_and(|may| may(&p.statement.kind))
            && let Some(done) = self.run_in_steps(&p.statement)?
        {
            return Ok(done);
        }
        self.run_alone(p, params)
    }
}

/// The least of `log_statement` by which it is logged.
fn logged_by(p: &Prepared) -> Logged {
    match p.entry.runs {
        Runs::Change(_) => Logged::Ddl,
        _ if p.entry.effect == Effect::Writes || matches!(p.plan, Plan::With(_)) => Logged::Mod,
        _ => Logged::All,
    }
}

/// As what its rows are counted.
fn written(p: &Prepared) -> Sum {
    match (&p.plan, &*p.statement.kind) {
        (Plan::Insert(_), _) | (_, Kind::Import(_)) => Sum::Inserted,
        (_, Kind::Copy(copy)) if !copy.to => Sum::Inserted,
        (Plan::Update(_) | Plan::Merge(_), _) => Sum::Updated,
        (Plan::Delete(_), _) => Sum::Deleted,
        (Plan::With(w), _) => match w.verb() {
            "INSERT" => Sum::Inserted,
            "UPDATE" | "MERGE" => Sum::Updated,
            "DELETE" => Sum::Deleted,
            _ => Sum::RowsGiven,
        },
        _ => Sum::RowsGiven,
    }
}

/// 25006 if it writes, and the transaction must not. Nobody else sees temporary tables, so that
/// their rows may be written in any transaction of now.
pub(crate) fn check_writable(ctx: &Context, p: &Prepared) -> SqlResult<()> {
    let refused =
        || ctx.txn.read_only() || ctx.session.modes().read_only && !p.only_writes_temporary(ctx);
    if !p.only_reads() && refused() {
        let name = p.name();
        return Err(SqlError::new(
            SqlState::READ_ONLY_SQL_TRANSACTION,
            format!("cannot execute {name} in a read-only transaction"),
        ));
    }
    Ok(())
}

/// One try of a statement.
pub(super) fn run(session: &mut Session, ctx: &Arc<Context>, p: &Arc<Prepared>) -> SqlResult<Ran> {
    if let Some(measure) = &mut session.measuring {
        measure.begin_try(ctx);
    }
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

fn run_plan(session: &mut Session, ctx: &Arc<Context>, p: &Arc<Prepared>) -> SqlResult<Ran> {
    match &p.plan {
        Plan::Select(_) | Plan::General(_) | Plan::Locked(_) => {
            Ok(Outcome::Rows(rows_of(ctx, &p.plan)?).into())
        }
        Plan::Declare(d) => {
            let rows = rows_of(ctx, &d.rows)?.holding(ctx.memory.clone());
            session.declare(
                ctx,
                Declared {
                    cursor: &d.cursor,
                    text: p.statement.text.clone(),
                    columns: d.columns.clone(),
                    tables: &d.tables,
                },
                rows,
            )?;
            Ok(Outcome::Done("DECLARE CURSOR".into()).into())
        }
        Plan::Insert(i) => wrote(i.run(ctx)?, "INSERT 0"),
        Plan::Update(u) => wrote(u.run(ctx)?, "UPDATE"),
        Plan::Delete(d) => wrote(d.run(ctx)?, "DELETE"),
        Plan::Merge(m) => wrote(m.run(ctx)?, "MERGE"),
        Plan::With(w) => {
            let word = if w.verb() == "INSERT" { "INSERT 0" } else { w.verb() };
            wrote(w.run(ctx)?, word)
        }
        Plan::Utility => utility(session, ctx, p),
    }
}

/// The rows of a query.
fn rows_of(ctx: &Arc<Context>, plan: &Plan) -> SqlResult<Rows> {
    let stream = match plan {
        Plan::Select(s) => s.run(ctx)?,
        Plan::General(g) => g.execute(&ctx.run_context())?,
        Plan::Locked(l) => l.run(ctx)?,
        _ => return Err(SqlError::internal("a plan that is no query's")),
    };
    Ok(Rows::new(begun(ctx, stream)?, RowsTag::Counted("SELECT")))
}

fn wrote(w: crate::dml::Written, word: &str) -> SqlResult<Ran> {
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
            let (tag, new) = crate::ddl::run(ctx, of(&p.statement).expect(CLAIMED))?;
            Ok(Ran { outcome: Outcome::Done(tag), catalog: Some(ctx.stage(new)?) })
        }
        Runs::Session(_) | Runs::Plan(_) => unreachable!("these have run before"),
    }
}
