//! Preparing: from a parsed statement to a plan, kept while the catalog is the same.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use braid_catalog::Catalog;
use braid_kv::{ReadMode, Tally, Txn, TxnOptions};
use braid_types::{Datum, SqlError, SqlResult, SqlState, SqlType};
use parking_lot::Mutex;

use super::client::Session;
use super::context::{Block, Context, Paying};
use super::prepared::{Basis, Plan, Prepared};
use super::transaction::{OpenTxn, aborted};
use crate::general_query::ColumnInfo;
use crate::plan;
use crate::plan::Within;
use crate::plan::locked::LockedPlan;
use crate::runtime::measure::now_nanos;
use crate::statement::entry::{Planner, Runs};
use crate::statement::{out_of_reach, out_parameters, registry};
use braid_parser::{Statement, TxnModes};
use braid_scalar::{EvalContext, LargeValues, ParamTypes};

/// PostgreSQL's name for the place of that error: drivers look at it.
pub(super) const PLAN_CHANGED: &str = "RevalidateCachedQuery";

/// Plans kept per session.
const CACHED_PLANS: usize = 256;

impl Session {
    /// Plans a statement. `declared` are parameter types known to the client.
    pub fn prepare(
        &mut self,
        statement: Statement,
        declared: &[Option<SqlType>],
    ) -> SqlResult<Arc<Prepared>> {
        self.begins(&statement.text);
        let _stops = Tally::stop_by(&self.cancel);
        let result = self.prepare_inner(statement.clone(), declared);
        result.map_err(|e| {
            self.fail();
            statement.locate(braid_scalar::told_to_clients(e))
        })
    }

    pub(super) fn prepare_inner(
        &mut self,
        statement: Statement,
        declared: &[Option<SqlType>],
    ) -> SqlResult<Arc<Prepared>> {
        let ctx = self.begin_planning(&statement)?;
        let cacheable = declared.iter().all(Option::is_none);
        if cacheable
            && let Some(p) = self.cache.get(&statement.text)
            && p.fits(&ctx)
        {
            return Ok(p.clone());
        }
        let prepared = Arc::new(self.plan(&ctx, statement, declared)?);
        if cacheable && !matches!(prepared.plan, Plan::Utility) {
            if self.cache.len() >= CACHED_PLANS {
                self.cache.clear();
            }
            self.cache.insert(prepared.statement.text.clone(), prepared.clone());
        }
        Ok(prepared)
    }

    /// As [`Session::prepare_inner`], of a shape: it is good for this catalog only, since types of
    /// its parameters may come from what they are compared with.
    pub(super) fn prepare_shape(
        &mut self,
        statement: Statement,
        declared: &[Option<SqlType>],
    ) -> SqlResult<Arc<Prepared>> {
        let ctx = self.begin_planning(&statement)?;
        let prepared = self.plan(&ctx, statement, declared)?;
        Ok(Arc::new(Prepared { is_of_shape: true, ..prepared }))
    }

    fn begin_planning(&mut self, statement: &Statement) -> SqlResult<Context> {
        if self.open.as_ref().is_some_and(OpenTxn::is_failed)
            && !registry::entry_of(statement).is_ok_and(|entry| entry.in_failed_block)
        {
            return Err(aborted());
        }
        self.check_planned(statement)?;
        if let Some(open) = &mut self.open {
            open.begin_planning(&self.db)?;
        }
        let ctx = self.planning_context(statement.as_of.as_deref())?;
        for notice in statement.notices.iter() {
            ctx.notice_in(notice.state, notice.message.as_str());
        }
        Ok(ctx)
    }

    /// A context good for planning only: its transaction is the open one or a read-only one.
    pub(crate) fn planning_context(
        &self,
        as_of: Option<&sqlparser::ast::Expr>,
    ) -> SqlResult<Context> {
        match &self.open {
            Some(o) => Ok(self.context(o.txn.clone(), o.catalog.clone(), Arc::default())),
            None => {
                // A read of the past is planned with the tables of the past.
                let options = match as_of {
                    Some(_) => self.txn_options(&TxnModes::default(), as_of)?,
                    None => TxnOptions {
                        read_only: true,
                        cancel: Some(self.cancel.clone()),
                        shown: Some(self.shown.clone()),
                        ..TxnOptions::default()
                    },
                };
                let (txn, catalog) = self.db.begin(options)?;
                Ok(self.context(txn, catalog, Arc::default()))
            }
        }
    }

    pub(super) fn context(
        &self,
        txn: Arc<Txn>,
        catalog: Arc<Catalog>,
        params: Arc<[Datum]>,
    ) -> Context {
        let (derived, database) = self.state.begin_with(&catalog);
        // SET of a block counts from then on.
        txn.set_lock_timeout(derived.lock_timeout);
        let now = self.begun.get();
        let started = self.open.as_ref().map_or(now, |o| o.started_micros);
        self.state.note_view(self.open.as_ref().map_or(0, |o| o.txn.read_ts().0));
        let memory = self.state.account(derived.sizes.statement);
        txn.pay_from(&memory);
        let large: Option<Arc<dyn LargeValues>> = Some(Arc::new(Paying(memory.clone())));
        let eval = self.state.eval_context(params, derived.style, started, now);
        let eval = EvalContext { large, ..eval };
        Context {
            db: self.db.clone(),
            txn,
            database,
            search_path: derived.search_path.clone(),
            catalog,
            session: self.state.clone(),
            eval,
            cancel: self.cancel.clone(),
            reading: ReadMode::Recorded,
            within: Within::default(),
            memory,
            epoch: self.open.as_ref().map_or_else(|| self.db.schema_epoch(), |o| o.epoch),
            block: self.open.as_ref().map(|o| Block {
                failure: o.failure.clone(),
                deferred: o.deferred.clone(),
                changed: o.changed,
            }),
            notices: self.notices.clone(),
            with: None,
        }
    }

    pub(crate) fn plan(
        &mut self,
        ctx: &Context,
        statement: Statement,
        declared: &[Option<SqlType>],
    ) -> SqlResult<Prepared> {
        let statement = out_parameters::without(&statement, declared).unwrap_or(statement);
        let entry = registry::entry_of(&statement)?;
        let begun = now_nanos();
        let mut params = ctx.params(declared);
        let statistics = ctx.db.statistics_version();
        let (plan, mut columns) = match (&entry.runs, entry.columns) {
            (Runs::Plan(of), _) => {
                let planning = of(&statement).expect("the entry claims it");
                planning(&mut Planner { ctx, params: &mut params, declared })
                    .map_err(|e| out_of_reach::told(e, &statement.kind))?
            }
            (_, Some(columns)) => (Plan::Utility, columns(self, &statement)?),
            (_, None) => (Plan::Utility, None),
        };
        columns.iter_mut().flatten().for_each(|column| column.as_declared(&ctx.catalog));
        let rows = match &plan {
            Plan::Declare(d) => &d.rows,
            plan => plan,
        };
        let (params, domains) = match rows {
            Plan::General(g) => (g.param_types().to_vec(), g.param_domains().to_vec()),
            _ => (params.finish(), params.domains().to_vec()),
        };
        Ok(Prepared {
            newer: Mutex::default(),
            statement,
            entry,
            plan,
            columns,
            params,
            domains,
            basis: Basis::of(ctx, statistics),
            counted: Mutex::default(),
            planned: AtomicU64::new(now_nanos().saturating_sub(begun).max(1)),
            is_of_shape: false,
            digests: OnceLock::new(),
        })
    }

    /// The plan for the context's catalog: the given one, or a new one.
    ///
    /// # Errors
    /// [`PLAN_CHANGED`] if rows would look otherwise, and for shapes; those of planning.
    pub(crate) fn replan(&mut self, p: &Arc<Prepared>, ctx: &Context) -> SqlResult<Arc<Prepared>> {
        if p.fits(ctx) {
            return Ok(p.clone());
        }
        if p.is_of_shape {
            return Err(plan_changed());
        }
        if let Some(newer) = p.newer.lock().clone().filter(|newer| newer.fits(ctx)) {
            return Ok(newer);
        }
        let declared: Vec<_> = p.params.iter().cloned().map(Some).collect();
        let new = self.plan(ctx, p.statement.clone(), &declared)?;
        let is_alike = |a: &ColumnInfo, b: &ColumnInfo| a.name == b.name && is_same(&a.ty, &b.ty);
        let stays = match (&p.columns, &new.columns) {
            (None, None) => true,
            (Some(before), Some(now)) => {
                before.len() == now.len() && before.iter().zip(now).all(|(a, b)| is_alike(a, b))
            }
            _ => false,
        };
        if !stays {
            return Err(plan_changed());
        }
        if let Some(measure) = &mut self.measuring {
            measure.add_planning(new.planned.swap(0, Ordering::Relaxed));
        }
        let new = Arc::new(new);
        *p.newer.lock() = Some(new.clone());
        Ok(new)
    }
}

/// Whether a client takes both for one type. What fields a row has is not said with it.
fn is_same(a: &SqlType, b: &SqlType) -> bool {
    match (a, b) {
        (SqlType::Composite(a), SqlType::Composite(b)) => a.oid == b.oid,
        (SqlType::Array(a), SqlType::Array(b)) => is_same(a, b),
        _ => a == b,
    }
}

fn plan_changed() -> SqlError {
    let text = "cached plan must not change result type";
    // By this name the JDBC driver knows that preparing again heals it.
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text).with_routine(PLAN_CHANGED)
}

/// Own plan or general plan of a query.
pub(crate) fn plan_query(
    ctx: &Context,
    q: &sqlparser::ast::Query,
    params: &mut ParamTypes,
    declared: &[Option<SqlType>],
) -> SqlResult<(Plan, Vec<ColumnInfo>)> {
    if let Some(p) = plan::plan_query(ctx, q, params)? {
        let columns = p.columns().to_vec();
        return Ok((Plan::Select(Arc::new(p)), columns));
    }
    if !q.locks.is_empty() {
        let plan = LockedPlan::new(ctx, q, params)?;
        let columns = plan.columns().to_vec();
        return Ok((Plan::Locked(Arc::new(plan)), columns));
    }
    let g = ctx.db.general().plan(q, &ctx.plan_context(), declared)?;
    let columns = g.columns().to_vec();
    Ok((Plan::General(g), columns))
}
