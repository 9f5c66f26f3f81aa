//! The surroundings of one running statement.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use braid_catalog::{
    Catalog, Lost, Relation, Schema, SeenBy, Table, change_lock_key, kv_error, memory_error,
    recall_leases, stage, table_lock_key,
};
use braid_env::memory::Account;
use braid_kv::{KvError, LockMode, ReadMode, Txn, Wait};
use braid_types::{SqlError, SqlResult, SqlState};
use parking_lot::Mutex;

use super::SessionState;
use super::temporary::is_temporary_schema;
use super::transaction::Failure;
use crate::database::Database;
use crate::dml::With;
use crate::dml::deferred::Deferred;
use crate::general_query::{GeneralPlan, PlanContext, RunContext};
use crate::jobs::RunAs;
use crate::plan::Within;
use braid_parser::Name;
use braid_rows::{Row, row_memory};
use braid_scalar::{EvalContext, LargeValues};

/// A message to the client that is not an error.
#[derive(Clone, Debug, PartialEq)]
pub struct Notice {
    /// `NOTICE` or `WARNING`.
    pub severity: &'static str,
    /// SQLSTATE.
    pub state: SqlState,
    /// Text.
    pub message: String,
    /// More of it, in lines.
    pub detail: Option<String>,
    /// What to do.
    pub hint: Option<String>,
}

impl Notice {
    /// What would be an error elsewhere.
    pub(super) fn warning(e: SqlError) -> Notice {
        Notice {
            severity: "WARNING",
            state: e.state(),
            message: e.message().into(),
            detail: e.detail().map(str::to_string),
            hint: e.hint().map(str::to_string),
        }
    }
}

/// What a statement knows of its transaction block.
#[derive(Clone)]
pub(crate) struct Block {
    /// What a late error raises.
    pub(crate) failure: Arc<Failure>,
    /// Checks that wait for its end.
    pub(crate) deferred: Arc<Deferred>,
    /// Who sees what it has changed of the catalog.
    pub(crate) changed: Option<SeenBy>,
}

/// What a statement runs in.
#[derive(Clone)]
pub struct Context {
    /// The database.
    pub db: Arc<Database>,
    /// The transaction.
    pub txn: Arc<Txn>,
    /// Descriptors as the transaction sees them.
    pub catalog: Arc<Catalog>,
    /// The session's shared part.
    pub session: Arc<SessionState>,
    /// For expressions: parameters, clock.
    pub eval: EvalContext,
    /// Id of the session's database.
    pub database: u32,
    /// Effective search path.
    pub search_path: Arc<Vec<String>>,
    /// Cancel flag.
    pub cancel: Arc<AtomicBool>,
    /// How rows are read that the statement returns.
    pub(crate) reading: ReadMode,
    /// What the parts of an own plan share.
    pub(crate) within: Within,
    /// What the statement holds.
    pub memory: Arc<Account>,
    /// Announced schema changes when the catalog was chosen.
    pub(crate) epoch: Option<u64>,
    /// The transaction block that it is in, if there is one.
    pub(crate) block: Option<Block>,
    /// Messages for the client.
    pub(crate) notices: Arc<Mutex<Vec<Notice>>>,
    /// What a WITH around the statement lets it name.
    pub(crate) with: Option<Arc<With>>,
}

/// What a call makes is there so many times: as it was made, as a value, in a column.
const COPIES: usize = 3;

/// Large values are paid from the statement's account.
pub(super) struct Paying(pub(super) Arc<Account>);

impl LargeValues for Paying {
    fn pass(&self, bytes: usize) -> SqlResult<()> {
        self.0.pass(bytes, COPIES).map_err(|e| memory_error(&e))
    }
}

impl Context {
    /// The same in another transaction, which begins now.
    ///
    /// # Errors
    /// Of beginning it.
    pub(crate) fn begin_anew(&self) -> SqlResult<Context> {
        let epoch = self.db.schema_epoch();
        let (txn, catalog) = self.db.begin(self.txn.options().clone())?;
        Ok(Context { txn, catalog, epoch, ..self.clone() })
    }

    /// Whether foreign keys are asked at all: see `session_replication_role`.
    pub(crate) fn asks_references(&self) -> bool {
        self.session.derived().asks_references
    }

    /// Whether foreign keys of a table's rows, and to them, are asked.
    pub(crate) fn asks_references_of(&self, table: &Table) -> bool {
        !table.upkeep.unguarded && self.asks_references()
    }

    /// Adds a NOTICE.
    pub fn notice(&self, message: impl Into<String>) {
        self.notice_with(message, None);
    }

    /// Adds a NOTICE with a SQLSTATE of its own.
    pub(crate) fn notice_in(&self, state: SqlState, message: impl Into<String>) {
        let message = message.into();
        self.notices.lock().push(Notice {
            severity: "NOTICE",
            state,
            message,
            detail: None,
            hint: None,
        });
    }

    /// Adds a NOTICE with its details.
    pub(crate) fn notice_with(&self, message: impl Into<String>, detail: Option<String>) {
        self.notices.lock().push(Notice {
            severity: "NOTICE",
            state: SqlState::SUCCESSFUL_COMPLETION,
            message: message.into(),
            detail,
            hint: None,
        });
    }

    /// Adds what only clients hear that asked for it.
    pub(crate) fn debug(&self, message: impl Into<String>) {
        self.notices.lock().push(Notice {
            severity: "DEBUG",
            state: SqlState::SUCCESSFUL_COMPLETION,
            message: message.into(),
            detail: None,
            hint: None,
        });
    }

    /// Adds a WARNING.
    pub(crate) fn warn(&self, message: impl Into<String>) {
        self.notices.lock().push(Notice {
            severity: "WARNING",
            state: SqlState("01000"),
            message: message.into(),
            detail: None,
            hint: None,
        });
    }

    /// For planning general queries.
    pub(crate) fn plan_context(&self) -> PlanContext {
        PlanContext {
            catalog: self.catalog.clone(),
            database: self.session.database.clone(),
            search_path: self.search_path.to_vec(),
            user: self.session.user.clone(),
            db: self.db.clone(),
            eval: self.eval.clone(),
            cancel: self.cancel.clone(),
            given: self.with.as_ref().map(|with| with.given.clone()).unwrap_or_default(),
        }
    }

    /// For running general queries.
    pub(crate) fn run_context(&self) -> RunContext {
        RunContext {
            txn: self.txn.clone(),
            plan: self.plan_context(),
            eval: self.eval.clone(),
            cancel: self.cancel.clone(),
            memory: self.memory.clone(),
            side_by_side: self.session.derived().side_by_side,
            passed_over: Arc::default(),
        }
    }

    /// As [`Context::run_context`], with as many parameters as a plan has asked for.
    pub(crate) fn run_context_of(&self, plan: &dyn GeneralPlan) -> RunContext {
        let mut run = self.run_context();
        let wanted = plan.param_types().len();
        if run.eval.params.len() > wanted {
            run.eval.params = run.eval.params[..wanted].to_vec().into();
        }
        run
    }

    /// Takes memory for rows that the statement keeps until its end.
    ///
    /// # Errors
    /// 53200, naming `what`.
    pub(crate) fn keep_rows<'a>(
        &self,
        what: &str,
        rows: impl IntoIterator<Item = &'a Row>,
    ) -> SqlResult<()> {
        let bytes = rows.into_iter().map(|row| row_memory(row)).sum();
        self.memory.take(what, bytes).map_err(|e| memory_error(&e))
    }

    /// 57014 if the client asked to stop.
    pub fn check_cancel(&self) -> SqlResult<()> {
        if self.cancel.load(std::sync::atomic::Ordering::Relaxed) {
            return Err(canceled());
        }
        Ok(())
    }

    /// The schema id and bare name that a name means for a new relation.
    pub(crate) fn target_schema(&self, name: &Name) -> SqlResult<(u32, String)> {
        let (schema, bare) = self.split(name)?;
        match schema {
            Some(s) => match self.catalog.schema(self.database, &s) {
                Some(s) => Ok((s.id, bare)),
                None => Err(no_schema(&s)),
            },
            None => self
                .search_path
                .iter()
                .filter(|s| !is_temporary_schema(s))
                .find_map(|s| self.catalog.schema(self.database, s))
                .map(|s| (s.id, bare))
                .ok_or_else(|| {
                    SqlError::new(
                        SqlState::INVALID_SCHEMA_NAME,
                        "no schema has been selected to create in",
                    )
                }),
        }
    }

    /// Whether a relation is a temporary one of the session.
    pub(crate) fn is_temporary(&self, relation: u32) -> bool {
        let named = self.catalog.qualified_name(relation);
        named.is_some_and(|(schema, _)| schema == self.session.temporary_schema())
    }

    /// Optional schema and bare name. A database part must be the session's.
    pub fn split(&self, name: &Name) -> SqlResult<(Option<String>, String)> {
        match name.as_slice() {
            [n] => Ok((None, n.clone())),
            [s, n] if self.session.is_own_temporary(s) => {
                Ok((Some(self.session.temporary_schema()), n.clone()))
            }
            [s, _] if is_temporary_schema(s) => Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "cannot access temporary tables of other sessions",
            )),
            [s, n] => Ok((Some(s.clone()), n.clone())),
            [d, s, n] if *d == self.session.database => Ok((Some(s.clone()), n.clone())),
            [_, _, _] => Err(SqlError::unsupported(format!(
                "a reference to another database: \"{}\"",
                name.join(".")
            ))),
            _ => Err(SqlError::syntax(format!(
                "improper qualified name (too many dotted names): {}",
                name.join(".")
            ))),
        }
    }

    /// A relation by name, if it exists.
    pub(crate) fn find_relation(&self, name: &Name) -> SqlResult<Option<Relation>> {
        let (schema, bare) = self.split(name)?;
        Ok(match schema {
            Some(s) => self
                .catalog
                .schema(self.database, &s)
                .and_then(|s| self.catalog.relation(s.id, &bare)),
            None => self.catalog.resolve(self.database, &self.search_path, &bare),
        })
    }

    /// A relation by name.
    ///
    /// # Errors
    /// 42P01.
    pub fn relation(&self, name: &Name) -> SqlResult<Relation> {
        self.find_relation(name)?.ok_or_else(|| no_relation(name))
    }

    /// A table by name.
    ///
    /// # Errors
    /// 42P01; 42809 if it is not a table.
    pub fn table(&self, name: &Name) -> SqlResult<Arc<Table>> {
        match self.relation(name)? {
            Relation::Table(t) if t.materialized().is_none() => Ok(t),
            Relation::Partition(window) => Err(self.is_partition(&window)),
            _ => Err(SqlError::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("\"{}\" is not a table", name.last().map_or("", |s| s)),
            )),
        }
    }

    /// A table or a materialized view by name.
    ///
    /// # Errors
    /// As [`Context::table`].
    pub(crate) fn stored(&self, name: &Name) -> SqlResult<Arc<Table>> {
        match self.relation(name)? {
            Relation::Table(t) => Ok(t),
            Relation::Partition(window) => Err(self.is_partition(&window)),
            _ => Err(SqlError::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("\"{}\" is not a table", name.last().map_or("", |s| s)),
            )),
        }
    }

    /// As [`Context::stored`], of a partition: its table as it is seen through it.
    pub(crate) fn seen(&self, name: &Name) -> SqlResult<Arc<Table>> {
        match self.relation(name)? {
            Relation::Partition(window) => Ok(window),
            _ => self.stored(name),
        }
    }

    /// 0A000 for what is done to a table as a whole only.
    fn is_partition(&self, window: &Table) -> SqlError {
        let table = self.catalog.table(window.id).map_or("", |t| t.name.as_str());
        SqlError::unsupported(format!("this on \"{}\", which is a partition,", window.name))
            .with_hint(format!("Use its table: \"{table}\"."))
    }

    /// What a job needs to begin again without the client that asked for it.
    pub(crate) fn run_as(&self) -> RunAs {
        let (user, database) = (self.session.user.clone(), self.session.database.clone());
        RunAs { user, database, settings: self.session.changed_settings() }
    }

    /// Name of a table's schema.
    pub fn schema_name(&self, schema: u32) -> String {
        self.catalog.schema_by_id(schema).map(|s| s.name.clone()).unwrap_or_default()
    }

    /// Keeps a table's shape as it is until the end of the transaction, and makes sure that it
    /// still is what the statement was planned with.
    ///
    /// # Errors
    /// 40001 if a schema change came in between: running again sees the new shape.
    pub(crate) fn lock_shape(&self, table: &Table) -> SqlResult<()> {
        self.lock_table(table, LockMode::Shared, Wait::Block)
    }

    /// As [`Context::lock_shape`], and keeps all others from writing to the table.
    ///
    /// # Errors
    /// The same; 55P03 if others would have to be waited for, and that is not to be.
    pub(crate) fn lock_writers_out(&self, table: &Table, wait: Wait) -> SqlResult<()> {
        self.lock_table(table, LockMode::Exclusive, wait)
    }

    /// Locks the shape at the step that the statement was planned with, and makes sure that it is
    /// still the newest. Who holds it already may go on: whatever changes the table waits for him
    /// before it takes its next step.
    fn lock_table(&self, table: &Table, mode: LockMode, wait: Wait) -> SqlResult<()> {
        let key = table_lock_key(table.id, table.step);
        if mode == LockMode::Shared {
            let is_shared = self.db.is_shared();
            if self.txn.holds(&key, mode) || (is_shared && self.txn.holds_under_lease(&key)) {
                return Ok(());
            }
            // Not to stand in line behind a change that waits for the last who use an older step.
            self.check_newest(table)?;
            if is_shared && self.txn.lock_under_lease(&key).map_err(kv_error)? {
                return self.check_newest(table);
            }
        } else {
            recall_leases(&self.txn)?;
        }
        let held = |error| match error {
            KvError::LockNotAvailable => {
                let text = format!("could not obtain lock on relation \"{}\"", table.name);
                Lost::NotFree.error(text)
            }
            other => kv_error(other),
        };
        self.txn.hold_after(&key, mode, wait).map_err(held)?;
        if mode == LockMode::Exclusive && table.step > 0 {
            let before = table_lock_key(table.id, table.step - 1);
            self.txn.hold_after(&before, mode, wait).map_err(held)?;
        }
        self.check_newest(table)
    }

    /// That a table and its surroundings are what the statement was planned with.
    fn check_newest(&self, table: &Table) -> SqlResult<()> {
        if self.epoch.is_some() && self.db.schema_epoch() == self.epoch {
            return Ok(());
        }
        let schema = self.catalog.schema_by_id(table.schema);
        let is_own = schema.is_some_and(|s| self.session.is_own_temporary(&s.name));
        if self.excludes_changes() || is_own {
            return Ok(());
        }
        let now = self.db.current_catalog()?;
        // What it has set apart itself nobody else knows yet.
        let known = self.session.before_apart(self.txn.id());
        if same_surroundings(known.as_ref().unwrap_or(&self.catalog), &now, table) {
            return Ok(());
        }
        Err(changed_meanwhile(&table.name))
    }

    /// Whether its block has changed what all sessions see: nobody else can then, until it ends.
    fn excludes_changes(&self) -> bool {
        self.block.as_ref().is_some_and(|block| block.changed == Some(SeenBy::All))
    }

    /// Writes a schema change into the transaction: the new catalog, and who sees what is new.
    pub(crate) fn stage(&self, mut new: Catalog) -> SqlResult<(Arc<Catalog>, SeenBy)> {
        let is_own =
            |s: &Schema| s.database == self.database && s.name == self.session.temporary_schema();
        let seen_by = stage(&self.txn, &self.catalog, &mut new, is_own)?;
        Ok((Arc::new(new), seen_by))
    }

    /// Whether nobody else can know this table's rows: the transaction has created or truncated it,
    /// and cannot return to before that without ending.
    pub(crate) fn is_private(&self, table: &Table) -> SqlResult<bool> {
        let Some(Block { failure, .. }) = &self.block else { return Ok(false) };
        if failure.has_savepoint() {
            return Ok(false);
        }
        let committed = self.db.current_catalog()?;
        Ok(committed.table(table.id).is_none_or(|t| t.generation < table.generation))
    }

    /// Excludes all statements that use a table's shape, and all other changes of it.
    ///
    /// # Errors
    /// 40001 if a change in steps has come between; 55006 if one is running and would wait for us.
    pub(crate) fn lock_for_change(&self, table: u32) -> SqlResult<()> {
        if let Some(block) = &self.block {
            block.deferred.refuse_change(table)?;
        }
        if let Some(job) = self.db.jobs().changing(table)
            && self.excludes_changes()
        {
            // No step of the job can be published before this block ends.
            return Err(SqlError::new(
                SqlState::OBJECT_IN_USE,
                format!("a table that this needs is being changed by job {job}"),
            )
            .with_hint("Run again when SHOW JOBS shows that it has ended, or CANCEL JOB."));
        }
        recall_leases(&self.txn)?;
        self.txn.hold(&change_lock_key(table), LockMode::Exclusive).map_err(kv_error)?;
        let known = self.catalog.table(table);
        let step = known.map_or(0, |t| t.step);
        // A change in steps that was given up may have left users of two steps.
        for step in step.saturating_sub(1)..=step {
            self.txn.hold(&table_lock_key(table, step), LockMode::Exclusive).map_err(kv_error)?;
        }
        match known {
            Some(t) if t.building.is_some() => Err(changed_meanwhile(&t.name)),
            _ => Ok(()),
        }
    }
}

/// 57014.
pub(super) fn canceled() -> SqlError {
    SqlError::new(SqlState::QUERY_CANCELED, "canceling statement due to user request")
}

fn changed_meanwhile(table: &str) -> SqlError {
    Lost::Replanned.error(format!("table \"{table}\" was changed by a concurrent schema change"))
}

/// Whether all that writing a table depends on is equal in both catalogs: its hierarchy and the
/// tables that refer to it.
fn same_surroundings(a: &Catalog, b: &Catalog, table: &Table) -> bool {
    let around = |c: &Catalog| -> Vec<Arc<Table>> {
        let Some(t) = c.table(table.id) else { return Vec::new() };
        let mut out = c.chain(t);
        out.extend(c.subtree(t));
        out.extend(c.referencing_tables(t.id).cloned());
        out
    };
    let (x, y) = (around(a), around(b));
    x.len() == y.len() && x.iter().zip(&y).all(|(p, q)| Arc::ptr_eq(p, q) || p == q)
}

/// 42P01.
pub(crate) fn no_relation(name: &Name) -> SqlError {
    SqlError::new(
        SqlState::UNDEFINED_TABLE,
        format!("relation \"{}\" does not exist", name.join(".")),
    )
}

/// 3F000.
pub fn no_schema(name: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_SCHEMA_NAME, format!("schema \"{name}\" does not exist"))
}
