//! [`Session`]: preparing and executing statements.
//!
//! Outside of a transaction block a statement has its own transaction, and runs again by itself
//! when it loses against a concurrent one (up to [`MAX_ATTEMPTS`] times). A SELECT's transaction
//! lives as long as its stream of rows; everything else is complete, durable and committed when
//! [`Session::execute`] returns. Inside a block a statement that meets a newer row runs again by
//! itself too, with its own writes taken back and its locks kept: under READ COMMITTED always,
//! under SERIALIZABLE if what the block read before it is still as it was.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use braid_catalog::{Catalog, kv_error, write_changes};
use braid_kv::{Isolation, ReadMode, Shown, Txn, TxnOptions};
use braid_types::{CastContext, Datum, SqlError, SqlResult, SqlState, SqlType};
use parking_lot::Mutex;

use super::context::{Context, Notice};
use super::outcome::{Outcome, Rows, RowsTag, VecRows};
use super::prepared::{Plan, Prepared};
use super::settings::Settings;
use super::state::SessionState;
use super::transaction::{Failure, OpenTxn, aborted, as_of_timestamp, isolation_at};
use crate::copy::{CopyIn, CopyOut};
use crate::database::Database;
use crate::dml::{DeletePlan, InsertPlan, UpdatePlan};
use crate::general_query::{ColumnInfo, RowStream};
use crate::plan;
use braid_parser::{Kind, Statement, TxnModes};
use braid_scalar::{EvalContext, ParamTypes, Scope};

/// Tries of a statement outside of a transaction block before the conflict is the client's.
const MAX_ATTEMPTS: usize = 50;
/// Plans kept per session.
const CACHED_PLANS: usize = 256;

/// How a session starts.
#[derive(Clone, Debug, Default)]
pub struct SessionOptions {
    /// User name.
    pub user: String,
    /// Database name.
    pub database: String,
    /// Settings given by the client: `application_name`, `client_encoding`, `TimeZone`, ..
    pub settings: Vec<(String, String)>,
    /// Raised by a cancel request; the server lowers it before each message.
    pub cancel: Arc<AtomicBool>,
    /// The process id that the client was told; `None`: any.
    pub pid: Option<i32>,
}

/// One client's session. Not shared between threads at a time.
pub struct Session {
    pub(super) db: Arc<Database>,
    pub(super) state: Arc<SessionState>,
    pub(super) cancel: Arc<AtomicBool>,
    pub(super) open: Option<OpenTxn>,
    pub(super) notices: Arc<Mutex<Vec<Notice>>>,
    /// What answers wait for, so that a crash does not take back what they say.
    pub(super) shown: Arc<Shown>,
    pub(super) named: HashMap<String, Arc<Prepared>>,
    pub(super) cache: HashMap<Arc<str>, Arc<Prepared>>,
}

/// What one try of a statement did.
struct Ran {
    outcome: Outcome,
    /// The catalog it left behind.
    catalog: Option<Arc<Catalog>>,
}

impl From<Outcome> for Ran {
    fn from(outcome: Outcome) -> Ran {
        Ran { outcome, catalog: None }
    }
}

impl Session {
    /// Starts a session.
    ///
    /// # Errors
    /// 3D000 if there is no such database; 22023 for a bad setting.
    pub fn new(db: Arc<Database>, options: SessionOptions) -> SqlResult<Session> {
        let catalog = db.current_catalog()?;
        if catalog.database(&options.database).is_none() {
            return Err(SqlError::new(
                SqlState::INVALID_CATALOG_NAME,
                format!("database \"{}\" does not exist", options.database),
            ));
        }
        let mut settings = Settings::default();
        for (name, value) in &options.settings {
            settings.set_startup(name, value)?;
        }
        let state = SessionState::new(
            db.clone(),
            options.user,
            options.database,
            settings,
            catalog,
            options.pid,
        );
        let notices = state.notices.clone();
        Ok(Session {
            db,
            state: Arc::new(state),
            cancel: options.cancel,
            open: None,
            notices,
            shown: Arc::default(),
            named: HashMap::new(),
            cache: HashMap::new(),
        })
    }

    /// The part that running statements share.
    pub fn state(&self) -> &Arc<SessionState> {
        &self.state
    }

    /// What must be settled before bytes leave for the client: see [`Shown::settle`].
    pub fn shown(&self) -> Arc<Shown> {
        self.shown.clone()
    }

    /// Parses a text into statements; see [`braid_parser::parse_script`].
    pub fn parse_script(&self, sql: &str) -> SqlResult<Vec<Statement>> {
        braid_parser::parse_script(sql)
    }

    /// `I` idle, `T` in a transaction block, `E` in a failed one.
    pub fn tx_status(&self) -> u8 {
        match &self.open {
            Some(o) if o.is_failed() => b'E',
            Some(o) if o.explicit => b'T',
            _ => b'I',
        }
    }

    /// Gives back memory that only saves time, because the client is silent: plans of statements
    /// that were not prepared by name are made again when they come again.
    pub fn rest(&mut self) {
        self.cache = HashMap::new();
    }

    /// Messages since the last call.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices.lock())
    }

    /// Settings to tell the client about, changed since the last call.
    pub fn take_parameter_changes(&mut self) -> Vec<(String, String)> {
        self.state.take_reports()
    }

    /// All settings that clients are told about at the start.
    pub fn parameters(&self) -> Vec<(String, String)> {
        self.state.settings(|s| s.reported())
    }

    /// Several statements of one message run in one transaction: call this before the first.
    pub fn begin_implicit(&mut self) -> SqlResult<()> {
        if self.open.is_none() {
            self.open_txn(&TxnModes::default(), None, false)?;
        }
        Ok(())
    }

    /// After the last statement of the message: commits what [`Session::begin_implicit`] opened,
    /// or rolls it back if a statement failed. An explicit block stays open.
    pub fn end_implicit(&mut self) -> SqlResult<()> {
        match &self.open {
            Some(o) if !o.explicit && o.is_failed() => {
                self.rollback();
                Ok(())
            }
            Some(o) if !o.explicit => self.commit(),
            _ => Ok(()),
        }
    }

    /// Plans a statement. `declared` are parameter types known to the client.
    pub fn prepare(
        &mut self,
        statement: Statement,
        declared: &[Option<SqlType>],
    ) -> SqlResult<Arc<Prepared>> {
        let result = self.prepare_inner(statement, declared);
        if result.is_err() {
            self.fail();
        }
        result
    }

    pub(super) fn prepare_inner(
        &mut self,
        statement: Statement,
        declared: &[Option<SqlType>],
    ) -> SqlResult<Arc<Prepared>> {
        if self.open.as_ref().is_some_and(OpenTxn::is_failed) && !ends_block(&statement.kind) {
            return Err(aborted());
        }
        let ctx = self.planning_context(statement.as_of.as_deref())?;
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

    /// A context good for planning only: its transaction is the open one or a read-only one.
    pub(super) fn planning_context(
        &self,
        as_of: Option<&sqlparser::ast::Expr>,
    ) -> SqlResult<Context> {
        match &self.open {
            Some(o) => Ok(self.context(o.txn.clone(), o.catalog.clone(), Vec::new())),
            None => {
                // A read of the past is planned with the tables of the past.
                let options = match as_of {
                    Some(_) => self.txn_options(&TxnModes::default(), as_of)?,
                    None => TxnOptions {
                        read_only: true,
                        shown: Some(self.shown.clone()),
                        ..TxnOptions::default()
                    },
                };
                let (txn, catalog) = self.db.begin(options)?;
                Ok(self.context(txn, catalog, Vec::new()))
            }
        }
    }

    pub(super) fn context(
        &self,
        txn: Arc<Txn>,
        catalog: Arc<Catalog>,
        params: Vec<Datum>,
    ) -> Context {
        self.state.set_catalog(catalog.clone());
        let now = self.db.clock_micros();
        let started = self.open.as_ref().map_or(now, |o| o.started_micros);
        let eval: EvalContext = self.state.eval_context(params, started, now);
        Context {
            db: self.db.clone(),
            txn,
            database: catalog.database(&self.state.database).map_or(0, |d| d.id),
            search_path: self.state.derived().search_path.clone(),
            catalog,
            session: self.state.clone(),
            eval,
            cancel: self.cancel.clone(),
            reading: ReadMode::Recorded,
            asked: None,
            memory: self.db.coordinator().memory().account(self.state.derived().statement_mem),
            epoch: self.open.as_ref().map_or_else(|| self.db.schema_epoch(), |o| o.epoch),
            failure: self.open.as_ref().map(|o| o.failure.clone()),
            notices: self.notices.clone(),
        }
    }

    fn plan(
        &mut self,
        ctx: &Context,
        statement: Statement,
        declared: &[Option<SqlType>],
    ) -> SqlResult<Prepared> {
        let mut params = ParamTypes::new(declared);
        let (plan, columns) = match &*statement.kind {
            Kind::Sql(s) => match &**s {
                sqlparser::ast::Statement::Query(q) => {
                    let (plan, columns) = plan_query(ctx, q, &mut params, declared)?;
                    (plan, Some(columns))
                }
                sqlparser::ast::Statement::Update(u) => {
                    let p = UpdatePlan::new(ctx, u, &mut params)?;
                    let columns = p.columns();
                    (Plan::Update(Arc::new(p)), columns)
                }
                sqlparser::ast::Statement::Delete(d) => {
                    let p = DeletePlan::new(ctx, d, &mut params)?;
                    let columns = p.columns();
                    (Plan::Delete(Arc::new(p)), columns)
                }
                _ => (Plan::Utility, None),
            },
            Kind::Insert(i, overriding) => {
                let p = InsertPlan::new(ctx, i, *overriding, &mut params)?;
                let columns = p.columns();
                (Plan::Insert(Arc::new(p)), columns)
            }
            Kind::Explain { .. } => {
                (Plan::Utility, Some(vec![ColumnInfo::computed("QUERY PLAN", SqlType::Text)]))
            }
            Kind::Show(s) => (Plan::Utility, Some(super::show::columns(s))),
            Kind::Execute(name, _) => {
                let columns = self.named(name)?.columns.clone();
                (Plan::Utility, columns)
            }
            Kind::Refused(what) => {
                return Err(SqlError::unsupported(what));
            }
            _ => (Plan::Utility, None),
        };
        let params = match &plan {
            Plan::General(g) => g.param_types().to_vec(),
            _ => params.finish(),
        };
        Ok(Prepared {
            statement,
            plan,
            columns,
            params,
            catalog: ctx.catalog.clone(),
            search_path: ctx.search_path.clone(),
        })
    }

    pub(super) fn named(&self, name: &str) -> SqlResult<Arc<Prepared>> {
        self.named.get(name).cloned().ok_or_else(|| {
            SqlError::new(
                SqlState::INVALID_SQL_STATEMENT_NAME,
                format!("prepared statement \"{name}\" does not exist"),
            )
        })
    }

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

    fn execute_inner(&mut self, p: &Arc<Prepared>, params: Vec<Datum>) -> SqlResult<Outcome> {
        if self.open.as_ref().is_some_and(OpenTxn::is_failed) && !ends_block(&p.statement.kind) {
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
        if let Some(done) = self.control(&p.statement)? {
            return Ok(done);
        }
        if let Kind::Execute(name, args) = &*p.statement.kind {
            let target = self.named(name)?;
            let params = self.execute_args(&target, name, args)?;
            return self.execute_inner(&target, params);
        }
        if self.open.is_some() {
            return self.run_in_block(p, params);
        }
        match self.run_in_steps(&p.statement)? {
            Some(done) => Ok(done),
            None => self.run_alone(p, params),
        }
    }

    fn execute_args(
        &mut self,
        target: &Prepared,
        name: &str,
        args: &[sqlparser::ast::Expr],
    ) -> SqlResult<Vec<Datum>> {
        if args.len() != target.params.len() {
            return Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                format!("wrong number of parameters for prepared statement \"{name}\""),
            )
            .with_detail(format!(
                "Expected {} parameters but got {}.",
                target.params.len(),
                args.len()
            )));
        }
        let ctx = self.planning_context(None)?;
        let mut none = ParamTypes::default();
        args.iter()
            .zip(&target.params)
            .map(|(a, ty)| {
                braid_scalar::bind_to(a, ty, &Scope::empty(), &mut none)?.eval(&[], &ctx.eval)
            })
            .collect()
    }

    /// The plan for the context's catalog: the given one, or a new one.
    fn replan(&mut self, p: &Arc<Prepared>, ctx: &Context) -> SqlResult<Arc<Prepared>> {
        if p.fits(ctx) {
            return Ok(p.clone());
        }
        let declared: Vec<_> = p.params.iter().cloned().map(Some).collect();
        let new = self.plan(ctx, p.statement.clone(), &declared)?;
        let types = |p: &Prepared| {
            p.columns.as_ref().map(|c| c.iter().map(|c| c.ty.clone()).collect::<Vec<_>>())
        };
        if types(p) != types(&new) {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "cached plan must not change result type",
            )
            // By this name the JDBC driver knows that preparing again heals it.
            .with_routine("RevalidateCachedQuery"));
        }
        Ok(Arc::new(new))
    }

    fn run_in_block(&mut self, p: &Arc<Prepared>, params: Vec<Datum>) -> SqlResult<Outcome> {
        if p.statement.as_of.is_some() {
            return Err(SqlError::unsupported("AS OF SYSTEM TIME inside of a transaction block")
                .with_hint("Say it at the start: BEGIN AS OF SYSTEM TIME .."));
        }
        let mut attempt = 0;
        // Set when the read timestamp has moved for this statement: the schema epoch before that.
        let mut moved: Option<Option<u64>> = None;
        loop {
            attempt += 1;
            let open = self.open.as_mut().expect("the caller checked");
            let committed_each = open.txn.isolation() == Isolation::ReadCommitted;
            // The block's view is that of its first statement, as in PostgreSQL; nothing was told
            // to the client before, so this statement may start over with a newer one.
            let first = !open.as_of && open.statements == 0;
            let epoch = moved.unwrap_or_else(|| self.db.schema_epoch());
            if first {
                open.txn.restart().map_err(kv_error)?;
            } else {
                open.txn.begin_statement().map_err(kv_error)?;
            }
            if (first || committed_each || moved.is_some()) && !open.schema_changed {
                let calm = epoch.is_some() && epoch == open.epoch;
                if !calm || self.db.schema_epoch() != epoch {
                    open.catalog = self.db.catalog_at(&open.txn)?;
                }
                open.epoch = epoch;
            }
            let (txn, catalog) = (open.txn.clone(), open.catalog.clone());
            let mark = txn.begin_retryable();
            let may_retry = !open.schema_changed || committed_each || first;
            let ctx = self.context(txn.clone(), catalog, params.clone());
            let p = self.replan(p, &ctx)?;
            match run(self, &ctx, &p) {
                Ok(ran) => {
                    let open = self.open.as_mut().expect("a statement does not end its block");
                    open.statements += 1;
                    if let Some(catalog) = ran.catalog {
                        open.catalog = catalog.clone();
                        open.schema_changed = true;
                        self.state.set_catalog(catalog);
                    }
                    return Ok(fail_late(ran.outcome, &open.failure));
                }
                // Before the first row went to the client nobody knows of this try.
                Err(e)
                    if may_retry
                        && e.state() == SqlState::SERIALIZATION_FAILURE
                        && attempt < MAX_ATTEMPTS =>
                {
                    let epoch = self.db.schema_epoch();
                    if !first && txn.retry_statement(mark).is_err() {
                        return Err(e);
                    }
                    moved = Some(epoch);
                    ctx.check_cancel()?;
                }
                Err(e) => return Err(e),
            }
        }
    }

    fn run_alone(&mut self, p: &Arc<Prepared>, params: Vec<Datum>) -> SqlResult<Outcome> {
        let options = self.txn_options(&TxnModes::default(), p.statement.as_of.as_deref())?;
        let options = TxnOptions { read_only: options.read_only || p.only_reads(), ..options };
        let mut attempt = 0;
        let mut begun: Option<Arc<Txn>> = None;
        // Always taken before the read timestamp is chosen.
        let mut epoch = self.db.schema_epoch();
        loop {
            attempt += 1;
            let (txn, catalog) = match begun.take() {
                Some(txn) => {
                    let catalog = self.db.catalog_at(&txn)?;
                    (txn, catalog)
                }
                None => {
                    epoch = self.db.schema_epoch();
                    self.db.begin(options.clone())?
                }
            };
            let mut ctx = self.context(txn.clone(), catalog, params.clone());
            ctx.epoch = epoch;
            let p = self.replan(p, &ctx)?;
            let error = match run(self, &ctx, &p) {
                Ok(Ran { outcome: Outcome::Rows(rows), catalog: None }) if p.only_reads() => {
                    // The stream owns the transaction; reading needs no commit.
                    return Ok(Outcome::Rows(rows));
                }
                Ok(Ran { outcome: o @ Outcome::CopyIn(_), .. }) => return Ok(o),
                Ok(Ran { outcome: o @ Outcome::CopyOut(_), .. }) => return Ok(o),
                Ok(ran) => {
                    let committed = match &ran.catalog {
                        Some(_) => self.db.commit_schema_change(&txn),
                        None => txn.commit().map(|_| ()),
                    };
                    match committed {
                        Ok(()) => return Ok(ran.outcome),
                        Err(e) => kv_error(e),
                    }
                }
                Err(e) => {
                    // Keeping the locks lets the second try win; a deadlock needs them gone.
                    epoch = self.db.schema_epoch();
                    if e.state() == SqlState::SERIALIZATION_FAILURE && txn.restart().is_ok() {
                        begun = Some(txn);
                    } else {
                        txn.rollback();
                    }
                    e
                }
            };
            let again = matches!(
                error.state(),
                SqlState::SERIALIZATION_FAILURE | SqlState::DEADLOCK_DETECTED
            );
            if !again || attempt >= MAX_ATTEMPTS {
                return Err(error);
            }
            ctx.check_cancel()?;
        }
    }

    pub(super) fn txn_options(
        &self,
        modes: &TxnModes,
        as_of: Option<&sqlparser::ast::Expr>,
    ) -> SqlResult<TxnOptions> {
        let as_of = match as_of {
            None => None,
            Some(e) => {
                let bound = braid_scalar::bind(e, &Scope::empty(), &mut ParamTypes::default())?;
                let now = self.db.clock_micros();
                let eval = self.state.eval_context(Vec::new(), now, now);
                let value = bound.eval(&[], &eval)?;
                let wall = self.db.coordinator().wall_clock_us();
                Some(as_of_timestamp(&value, wall, &eval.style.zone)?)
            }
        };
        let d = self.state.derived();
        Ok(TxnOptions {
            isolation: modes.isolation.map_or(d.isolation, isolation_at),
            read_only: modes.read_only.unwrap_or(d.read_only),
            as_of,
            cancel: Some(self.cancel.clone()),
            lock_timeout: d.lock_timeout,
            async_commit: d.async_commit,
            shown: Some(self.shown.clone()),
            batch: d.request_batch,
        })
    }

    pub(super) fn open_txn(
        &mut self,
        modes: &TxnModes,
        as_of: Option<&sqlparser::ast::Expr>,
        explicit: bool,
    ) -> SqlResult<()> {
        let options = self.txn_options(modes, as_of)?;
        let as_of = options.as_of.is_some();
        let epoch = self.db.schema_epoch();
        let (txn, catalog) = self.db.begin(options)?;
        self.state.set_catalog(catalog.clone());
        self.open = Some(OpenTxn {
            failure: Failure::new(&txn),
            txn,
            catalog,
            explicit,
            savepoints: Vec::new(),
            schema_changed: false,
            started_micros: self.db.clock_micros(),
            statements: 0,
            as_of,
            settings: self.state.settings(|s| s.clone()),
            epoch,
        });
        Ok(())
    }

    /// The transaction of the open block, if any.
    pub fn open_transaction(&self) -> Option<&Arc<Txn>> {
        self.open.as_ref().map(|o| &o.txn)
    }

    /// Plans and explains a statement.
    fn explain(
        &mut self,
        ctx: &Context,
        inner: &Statement,
        analyze: bool,
    ) -> SqlResult<Vec<String>> {
        let p = self.plan(ctx, inner.clone(), &[])?;
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

impl Prepared {
    fn fits(&self, ctx: &Context) -> bool {
        Arc::ptr_eq(&self.catalog, &ctx.catalog) && self.search_path == ctx.search_path
    }

    /// Whether it can run in a read-only transaction whose end nobody waits for.
    fn only_reads(&self) -> bool {
        match &self.plan {
            Plan::Select(s) => !s.locks_rows(),
            Plan::General(_) => true,
            Plan::Utility => match &*self.statement.kind {
                Kind::Show(_) => true,
                Kind::Explain { analyze, .. } => !analyze,
                Kind::Copy(c) => c.to,
                _ => false,
            },
            _ => false,
        }
    }
}

/// Statements that are allowed in a failed block.
fn ends_block(kind: &Kind) -> bool {
    matches!(kind, Kind::Rollback(_) | Kind::RollbackTo(_) | Kind::Commit(_) | Kind::Empty)
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
        return Err(SqlError::unsupported("FOR UPDATE or FOR SHARE in this query").with_hint(
            "It works on one table by primary key or index, without grouping or DISTINCT.",
        ));
    }
    let g = ctx.db.general().plan(q, &ctx.plan_context(), declared)?;
    let columns = g.columns().to_vec();
    Ok((Plan::General(g), columns))
}

/// One try of a statement.
fn run(session: &mut Session, ctx: &Context, p: &Arc<Prepared>) -> SqlResult<Ran> {
    ctx.check_cancel()?;
    if ctx.txn.read_only() && !p.only_reads() {
        let word = p.statement.text.split_whitespace().next().unwrap_or_default().to_uppercase();
        if !matches!(&*p.statement.kind, Kind::Explain { .. }) {
            return Err(SqlError::new(
                SqlState::READ_ONLY_SQL_TRANSACTION,
                format!("cannot execute {word} in a read-only transaction"),
            ));
        }
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

fn text_rows(rows: Vec<Vec<Datum>>, tag: &str) -> Ran {
    Outcome::Rows(Rows::new(Box::new(VecRows::new(rows)), RowsTag::Fixed(tag.into()))).into()
}

fn utility(session: &mut Session, ctx: &Context, p: &Arc<Prepared>) -> SqlResult<Ran> {
    match &*p.statement.kind {
        Kind::Explain { analyze, statement } => {
            let lines = session.explain(ctx, statement, *analyze)?;
            let rows = lines.into_iter().map(|l| vec![Datum::text(l)]).collect();
            Ok(text_rows(rows, "EXPLAIN"))
        }
        Kind::Show(s) => Ok(text_rows(super::show::rows(ctx, s)?, "SHOW")),
        Kind::Copy(c) => Ok(if c.to {
            let out = CopyOut::start(ctx, c)?;
            match c.file {
                Some(_) => Outcome::Done(out.write_file(ctx, c)?).into(),
                None => Outcome::CopyOut(Box::new(out)).into(),
            }
        } else {
            match c.file {
                Some(_) => Outcome::Done(crate::copy::copy_from_file(ctx, c)?).into(),
                None => Outcome::CopyIn(Box::new(CopyIn::start(ctx, c)?)).into(),
            }
        }),
        Kind::Import(i) => Ok(Outcome::Done(crate::copy::import(ctx, i)?).into()),
        _ => {
            let (tag, changed) = crate::ddl::run(ctx, &p.statement)?;
            let catalog = match changed {
                None => None,
                Some(mut new) => {
                    write_changes(&ctx.txn, &ctx.catalog, &mut new)?;
                    Some(Arc::new(new))
                }
            };
            Ok(Ran { outcome: Outcome::Done(tag), catalog })
        }
    }
}

/// Makes errors in the middle of a stream fail the block.
fn fail_late(outcome: Outcome, failure: &Arc<Failure>) -> Outcome {
    match outcome {
        Outcome::Rows(rows) => Outcome::Rows(rows.failing(failure.clone())),
        other => other,
    }
}

/// Assignment of a computed value to a type, for callers outside of binding.
pub(crate) fn assign(
    value: &Datum,
    from: &SqlType,
    to: &SqlType,
    eval: &EvalContext,
) -> SqlResult<Datum> {
    braid_types::cast(value, from, to, CastContext::Assignment, eval.style)
}

/// A stream type that can be sent to the server's thread.
pub type BoxedRows = Box<dyn RowStream>;
