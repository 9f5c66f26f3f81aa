//! What a plan looks at while it runs: parameters, clock, session, transaction, cancel flag.
//!
//! A plan is made once and executed many times. What differs from one execution to the next lies
//! in one [`Place`] that its functions, scans and constants share:
//!
//! ```text
//!   WHERE k = $1 AND at < now()      k = #0 AND at < #1      constants: #0 is $1, #1 is now()
//!   each execution                   enter ── #0 = 7, #1 = 2026-11-23 ── leave
//! ```
//! A *constant* is an expression without columns whose value is the same for a whole execution but
//! not for all: it is computed at its first use, so what fails fails only where it is wanted.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, LazyLock, OnceLock};

use braid_env::memory::{Account, Held};
use braid_kv::{ReadMode, Tally, Txn};
use braid_scalar::{Bound, EvalContext};
use braid_sql::{RunContext, SideBySide};
use braid_types::{Datum, SqlError, SqlResult, SqlType};
use datafusion::execution::TaskContext;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_plan::ExecutionPlan;
use parking_lot::Mutex;

use super::facts::LOOKUP_BYTES;
use super::materialized::{CommonRows, Materialized};
use super::partitions::pieces::Readers;
use super::scan::{Spec, SqlScan};
use super::stoppable::Bounds;
use super::subquery::Answers;
use super::table::Source;
use crate::run::task;

/// One execution of a plan.
pub struct Execution {
    /// Parameters, clock, session.
    pub eval: EvalContext,
    /// All reads go through it; without one the plan can only be described.
    pub txn: Option<Arc<Txn>>,
    /// Raised when it has to stop.
    pub cancel: Arc<AtomicBool>,
    /// What it may hold.
    pub memory: Arc<Account>,
    /// Tables of which reads are not recorded.
    pub passed_over: Arc<[u32]>,
    /// Values of the place's constants, as far as they were wanted.
    values: Mutex<Vec<Option<Datum>>>,
    /// What each scan has asked the store, by the address of what it was planned as.
    scanned: Mutex<HashMap<usize, Tally>>,
    /// Memory of the keys that each scan looks up, by the address of what it was planned as.
    keys: Mutex<HashMap<usize, Held>>,
    /// Other threads that read for it.
    pub(crate) readers: Arc<Readers>,
    /// Queries that are computed beforehand, and those of subqueries, run beside its own plan.
    beside: Beside,
}

/// Plans that run for parts of another one.
#[derive(Default)]
struct Beside {
    /// What all plans share.
    common: Option<Arc<RuntimeEnv>>,
    side_by_side: Option<SideBySide>,
    task: OnceLock<Arc<TaskContext>>,
    /// Answers of subqueries, by the number of each.
    answers: Mutex<HashMap<u64, Arc<Answers>>>,
    /// Rows of common table expressions, by the number of each.
    rows: Mutex<HashMap<u64, Arc<CommonRows>>>,
}

impl Execution {
    /// An execution that has computed nothing yet.
    pub fn new(eval: EvalContext, txn: Option<Arc<Txn>>, bounds: Bounds) -> Execution {
        let Bounds { cancel, memory } = bounds;
        let (values, scanned, readers) = (Mutex::default(), Mutex::default(), Arc::default());
        let (passed_over, keys, beside) = (Arc::default(), Mutex::default(), Beside::default());
        Execution { eval, txn, cancel, memory, passed_over, values, scanned, keys, readers, beside }
    }

    /// An execution for somebody.
    pub(crate) fn of(run: &RunContext, bounds: Bounds, common: &Arc<RuntimeEnv>) -> Execution {
        let passed_over = run.passed_over.clone();
        let new = Execution::new(run.eval.clone(), Some(run.txn.clone()), bounds);
        let (common, side_by_side) = (Some(common.clone()), Some(run.side_by_side));
        let beside = Beside { common, side_by_side, ..Beside::default() };
        Execution { passed_over, beside, ..new }
    }

    /// What operators of plans look at that run for parts of its plan.
    ///
    /// # Errors
    /// XX000 for an execution that can only describe.
    pub(crate) fn task_beside(&self) -> SqlResult<Arc<TaskContext>> {
        if let Some(task) = self.beside.task.get() {
            return Ok(task.clone());
        }
        let common = self.beside.common.as_ref();
        let common = common.ok_or_else(|| SqlError::internal("nothing runs in this execution"))?;
        let bounds = Bounds { cancel: self.cancel.clone(), memory: self.memory.clone() };
        Ok(self.beside.task.get_or_init(|| task(bounds, common)).clone())
    }

    /// Whether several threads may read for what is computed beforehand.
    pub(super) fn side_by_side(&self) -> SideBySide {
        self.beside.side_by_side.unwrap_or(SideBySide::NEVER)
    }

    /// The answers of the subquery of this number.
    pub(super) fn answers(&self, subquery: u64) -> Arc<Answers> {
        self.beside.answers.lock().entry(subquery).or_default().clone()
    }

    /// The rows of the common table expression of this number.
    pub(super) fn common_rows(&self, of: u64) -> Arc<CommonRows> {
        self.beside.rows.lock().entry(of).or_default().clone()
    }

    /// Gives a constant a value.
    pub(super) fn set_constant(&self, at: usize, value: Datum) {
        let mut values = self.values.lock();
        if values.len() <= at {
            values.resize(at + 1, None);
        }
        values[at] = Some(value);
    }

    /// How rows of a table are read.
    pub(super) fn reading(&self, table: u32) -> ReadMode {
        match self.passed_over.contains(&table) {
            true => ReadMode::Unrecorded,
            false => ReadMode::Recorded,
        }
    }

    /// Whether the commit will depend on the rows of a table that are read.
    pub(super) fn is_validated(&self, table: u32) -> bool {
        self.txn.as_ref().is_some_and(|txn| txn.is_validated(self.reading(table)))
    }

    /// Whether there is memory for so many keys that a scan will look up. It is held until the
    /// execution ends, or the scan begins again: those of a recursion do so many times.
    pub(super) fn holds_keys(&self, spec: &Spec, keys: usize) -> bool {
        let mut all = self.keys.lock();
        let held = all.entry(std::ptr::from_ref(spec) as usize);
        let held = held.or_insert_with(|| self.memory.hold("keys of a join"));
        held.resize(keys * LOOKUP_BYTES).is_ok()
    }

    /// A scan has read, and asked this.
    pub(super) fn scanned(&self, spec: &Spec, asked: Tally) {
        let mut scanned = self.scanned.lock();
        let all = scanned.entry(std::ptr::from_ref(spec) as usize).or_default();
        *all = all.plus(asked);
    }

    /// Entries that the scan that looked at most of them has looked at.
    pub(crate) fn most_entries(&self) -> u64 {
        self.scanned.lock().values().map(|asked| asked.work.entries).max().unwrap_or(0)
    }
}

/// See the [module documentation](self).
#[derive(Default)]
pub struct Place {
    now: Mutex<Option<Arc<Execution>>>,
    constants: Mutex<Vec<Bound>>,
}

impl std::fmt::Debug for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Place of {} constants", self.constants.lock().len())
    }
}

impl Place {
    /// A place whose execution has begun.
    pub fn of(execution: Execution) -> Arc<Place> {
        let place = Arc::new(Place::default());
        place.enter(execution);
        place
    }

    /// An execution begins; there is none before.
    pub fn enter(&self, execution: Execution) {
        *self.now.lock() = Some(Arc::new(execution));
    }

    /// The execution has ended, and whoever wanted its rows is gone. Waits for other threads that
    /// read for it. Gives the number of entries that the scan that looked at most has looked at.
    pub fn leave(&self) -> Option<u64> {
        // Dropped outside of the lock: it may be the last to hold the transaction.
        let ended = self.now.lock().take()?;
        ended.readers.end();
        Some(ended.most_entries())
    }

    /// The execution that runs.
    ///
    /// # Errors
    /// XX000 when none does.
    pub fn execution(&self) -> SqlResult<Arc<Execution>> {
        self.now.lock().clone().ok_or_else(|| SqlError::internal("no execution of this plan runs"))
    }

    /// The execution that runs, or, when none does, one that knows nothing: enough for functions
    /// whose value depends on their arguments alone.
    pub(crate) fn execution_or_nothing(&self) -> Arc<Execution> {
        static NOTHING: LazyLock<Arc<Execution>> = LazyLock::new(|| {
            Arc::new(Execution::new(EvalContext::constant(), None, Bounds::none()))
        });
        self.now.lock().clone().unwrap_or_else(|| NOTHING.clone())
    }

    /// Adds a constant and gives its number.
    pub(crate) fn add_constant(&self, bound: Bound) -> usize {
        let mut constants = self.constants.lock();
        constants.push(bound);
        constants.len() - 1
    }

    /// The type of a constant.
    pub(crate) fn constant_type(&self, at: usize) -> Option<SqlType> {
        self.constants.lock().get(at).map(|bound| bound.ty().clone())
    }

    /// The value of a constant in the execution that runs.
    ///
    /// # Errors
    /// Of computing it; XX000 when no execution runs.
    pub fn constant(&self, at: usize) -> SqlResult<Datum> {
        let execution = self.execution()?;
        if let Some(Some(value)) = execution.values.lock().get(at) {
            return Ok(value.clone());
        }
        let bound = self.constants.lock().get(at).cloned();
        let bound = bound.ok_or_else(|| SqlError::internal("no such constant"))?;
        let value = bound.eval(&[], &execution.eval)?;
        execution.set_constant(at, value.clone());
        Ok(value)
    }
}

/// The place of a plan that is made. Constants may hold plans, and these their place: they are
/// forgotten with the plan.
#[derive(Debug, Default)]
pub(crate) struct OwnPlace(Arc<Place>);

impl OwnPlace {
    /// Of what is going to run once, now.
    pub(crate) fn of(execution: Execution) -> OwnPlace {
        OwnPlace(Place::of(execution))
    }
}

impl Deref for OwnPlace {
    type Target = Arc<Place>;

    fn deref(&self) -> &Arc<Place> {
        &self.0
    }
}

impl Drop for OwnPlace {
    fn drop(&mut self) {
        let constants = std::mem::take(&mut *self.0.constants.lock());
        // Outside of the lock: they may be the last to hold plans that look at it.
        drop(constants);
    }
}

/// What EXPLAIN says of a scan beside its line.
pub(crate) struct AboutScan {
    pub(crate) relation: String,
    pub(crate) index: Option<String>,
    pub(crate) estimate: Option<f64>,
    pub(crate) asked: Tally,
}

/// How many rows the scans of a plan are expected to give in the execution that has begun, in the
/// order in which they stand.
pub(crate) fn rows_expected(plan: &Arc<dyn ExecutionPlan>) -> Vec<f64> {
    let mut rows = Vec::new();
    let mut waiting = vec![plan];
    while let Some(node) = waiting.pop() {
        if let Some(scan) = node.downcast_ref::<SqlScan>() {
            rows.extend(scan.spec().rows_expected());
        }
        waiting.extend(node.children());
    }
    rows
}

/// How many rows the largest table of a plan has that one of its scans reads.
pub(crate) fn most_rows(plan: &Arc<dyn ExecutionPlan>) -> f64 {
    let own = plan.downcast_ref::<SqlScan>().and_then(|scan| scan.spec().rows_of_table());
    let below = plan.children().into_iter().map(most_rows);
    below.fold(own.unwrap_or_default(), f64::max)
}

/// A scan of a common table expression that is computed once.
pub(crate) struct CommonScan<'a> {
    pub(crate) rows: &'a Arc<Materialized>,
    pub(crate) place: &'a Arc<Place>,
    /// That it is read for.
    pub(crate) execution: Arc<Execution>,
}

/// The operator, if it is such a scan.
pub(crate) fn common_scan(plan: &dyn ExecutionPlan) -> Option<CommonScan<'_>> {
    let spec = plan.downcast_ref::<SqlScan>()?.spec();
    let Source::Shared(rows) = &spec.source else { return None };
    let (place, execution) = (&spec.place, spec.place.execution_or_nothing());
    Some(CommonScan { rows, place, execution })
}

/// About an operator that is a scan, in the execution that runs.
pub(crate) fn about_scan(plan: &dyn ExecutionPlan) -> Option<AboutScan> {
    let spec = plan.downcast_ref::<SqlScan>()?.spec();
    let index = match (&spec.source, &spec.access) {
        (Source::Stored(layout), Some(access)) => {
            access.index.map(|at| layout.indexes[at].index.name.clone())
        }
        _ => None,
    };
    let scanned = spec.place.execution_or_nothing();
    let known = scanned.scanned.lock().get(&(std::ptr::from_ref(spec) as usize)).copied();
    let asked = known.unwrap_or_default();
    let (relation, estimate) = (spec.name.clone(), spec.rows_expected());
    Some(AboutScan { relation, index, estimate, asked })
}
