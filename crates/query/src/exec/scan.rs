//! The operator that reads one table.
//!
//! ```text
//!   planned     access: spans of a key from the statement's conditions
//!   learned     a join above has read its other side, and knows which keys can meet: few keys are
//!               looked up one by one, else the least and the greatest bound the span
//!   read        columns of rows that pass the filter (columns.rs), or rows of an index
//! ```
//! Several threads may read what was found: `partitions/pieces.rs`.
//!
//! What joins, sorts with a limit and aggregates above learn arrives as dynamic filters of
//! DataFusion, which the scan takes in the last phase of planning.

use std::any::Any;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use braid_kv::{KeySpan, ReadMode, Txn};
use braid_planner::access::Access;
use braid_rows::{IndexScan, Liveness, TableLayout, TableScan};
use braid_scalar::{Bound, Node};
use braid_types::{Datum, SqlError, SqlResult, SqlType};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, Statistics};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::Expr;
use datafusion::physical_expr::expressions::{CastExpr, Column, DynamicFilterPhysicalExpr};
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::filter_pushdown::{
    ChildPushdownResult, FilterPushdownPhase, FilterPushdownPropagation, PushedDown,
};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties, StatisticsArgs,
};
use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;

use super::execution::{Execution, Place};
use super::facts::Facts;
use super::key_conditions::Learned;
use super::partitions::pieces::Pieces;
use super::scan_filter::ScanFilter;
use super::scan_stream::{Rows, ScanStream, SharedStream};
use super::table::Source;
use crate::error::to_df;
use crate::join_order::share_of_table;
use crate::planning::check_stop;

/// Longest text of spans in EXPLAIN.
const KEY_TEXT_MAX: usize = 160;

/// What is read, as it was planned.
#[derive(Debug)]
pub(super) struct Spec {
    pub(super) name: String,
    /// Ordinals of the columns that are wanted.
    pub(super) projection: Vec<usize>,
    pub(super) types: Vec<SqlType>,
    pub(super) schema: SchemaRef,
    /// All columns of the table.
    pub(super) table: SchemaRef,
    /// `None`: the rows are not stored.
    pub(super) access: Option<Access>,
    /// What is known about the table.
    pub(super) facts: Option<Arc<Facts>>,
    /// What the access was chosen for.
    pub(super) conditions: Vec<Bound>,
    /// All that is known of the rows that are wanted.
    pub(super) filters: Vec<Expr>,
    pub(super) limit: Option<usize>,
    /// How many threads may read.
    pub(super) threads: usize,
    pub(super) source: Source,
    pub(super) place: Arc<Place>,
}

/// See the [module documentation](self).
#[derive(Clone, Debug)]
pub(super) struct SqlScan {
    spec: Arc<Spec>,
    properties: Arc<PlanProperties>,
    filter: Option<ScanFilter>,
    /// The filter and what operators above have learned, as far as it is for this scan.
    learning: Option<ScanFilter>,
    learned: Vec<Arc<dyn PhysicalExpr>>,
    /// Those of them that must be complete before it begins.
    awaited: Vec<Arc<DynamicFilterPhysicalExpr>>,
    /// Requests to the store so far.
    asked: Arc<AtomicU64>,
    /// Spans that were looked up because of what was learned.
    looked_up: Arc<AtomicU64>,
    /// What several threads have not read yet; `None`: none of them has begun.
    pieces: Arc<Mutex<Option<Pieces>>>,
}

impl Spec {
    /// How many rows its table has.
    pub(super) fn rows_of_table(&self) -> Option<f64> {
        self.facts.as_ref().map(|facts| facts.rows())
    }

    /// How many rows are expected with the values of the execution that has begun, without what
    /// operators above are going to tell.
    pub(super) fn rows_expected(&self) -> Option<f64> {
        let facts = self.facts.as_ref()?;
        let rows = facts.rows() * share_of_table(facts, &self.place, &self.filters);
        Some(self.limit.map_or(rows, |limit| rows.min(limit as f64)))
    }
}

impl SqlScan {
    pub(super) fn new(spec: Spec, filter: Option<ScanFilter>) -> SqlScan {
        let properties = Arc::new(PlanProperties::new(
            EquivalenceProperties::new(spec.schema.clone()),
            Partitioning::UnknownPartitioning(spec.threads),
            EmissionType::Incremental,
            Boundedness::Bounded,
        ));
        SqlScan {
            spec: Arc::new(spec),
            properties,
            filter,
            learning: None,
            learned: Vec::new(),
            awaited: Vec::new(),
            asked: Arc::default(),
            looked_up: Arc::default(),
            pieces: Arc::default(),
        }
    }

    /// The filter that rows must pass.
    pub(super) fn filter(&self) -> Option<&ScanFilter> {
        self.learning.as_ref().or(self.filter.as_ref())
    }

    pub(super) fn spec(&self) -> &Spec {
        &self.spec
    }

    /// The same scan, that waits for those of these filters that it learns. `None`: it learns
    /// none, or nothing reads it before its turn.
    pub(super) fn awaiting(&self, told: &HashSet<u64>) -> Option<SqlScan> {
        if self.spec.threads == 1 {
            return None;
        }
        let is_told = |filter: &&Arc<dyn PhysicalExpr>| {
            filter.expression_id().is_some_and(|id| told.contains(&id))
        };
        let filters = self.learned.iter().filter(is_told);
        let awaited: Vec<_> = filters
            .filter_map(|filter| {
                let filter: Arc<dyn Any + Send + Sync> = filter.clone();
                filter.downcast().ok()
            })
            .collect();
        (!awaited.is_empty()).then(|| SqlScan { awaited, ..self.clone() })
    }

    /// Ends when nothing is awaited any more.
    pub(super) fn told(&self) -> Option<BoxFuture<'static, ()>> {
        let awaited = self.awaited.clone();
        (!awaited.is_empty()).then(|| {
            let all = async move {
                for filter in awaited {
                    filter.wait_complete().await;
                }
            };
            all.boxed()
        })
    }

    /// Counts requests to the store.
    pub(super) fn count(&self, requests: u64) {
        self.asked.fetch_add(requests, Ordering::Relaxed);
    }

    /// The columns that the filter is about, with their types.
    pub(super) fn probe_types(&self) -> Vec<(usize, SqlType)> {
        let (Some(filter), Source::Stored(layout)) = (self.filter(), &self.spec.source) else {
            return Vec::new();
        };
        let columns = &layout.table.columns;
        filter.columns.iter().map(|at| (*at, columns[*at].ty.clone())).collect()
    }

    /// Begins to read, once the operators above know what they want; the next piece, if several
    /// threads read. `None`: all was read, or is being read.
    ///
    /// # Errors
    /// Of reading.
    pub(super) fn open(&self, execution: &Execution) -> SqlResult<Option<Rows>> {
        let spec = &self.spec;
        let (layout, access) = match (&spec.source, &spec.access) {
            (Source::Rows(rows) | Source::Given(rows), _) => {
                return self.made(rows, execution).map(|rows| Some(Rows::Made(rows, 0)));
            }
            (Source::Stored(layout), Some(access)) => (layout, access),
            _ => return Err(SqlError::internal("a scan without rows")),
        };
        let txn = execution.txn.as_ref();
        let txn = txn.ok_or_else(|| SqlError::internal("a scan without transaction"))?;
        let reading = execution.reading(layout.table.id);
        let whole = || -> SqlResult<(Access, Vec<KeySpan>)> {
            Ok(self.narrowed(layout, access, execution)?.unwrap_or_else(|| {
                let spans = spans_of(access, layout, execution);
                (access.clone(), spans)
            }))
        };
        if spec.threads == 1 {
            let (access, spans) = whole()?;
            return Ok(Some(self.rows(layout, (txn, reading), &access, spans)));
        }
        let mut pieces = self.pieces.lock();
        let pieces = match &mut *pieces {
            Some(pieces) => pieces,
            none => {
                let (access, spans) = whole()?;
                none.insert(Pieces::new(txn, access, spans, spec.threads)?)
            }
        };
        let piece = pieces.take();
        Ok(piece.map(|spans| self.rows(layout, (txn, reading), &pieces.access, spans)))
    }

    /// Those of rows made beforehand that conditions above may let through.
    fn made(
        &self,
        rows: &Arc<Vec<Vec<Datum>>>,
        execution: &Execution,
    ) -> SqlResult<Arc<Vec<Vec<Datum>>>> {
        let conditions = &self.spec.conditions;
        if conditions.is_empty() {
            return Ok(rows.clone());
        }
        let mut kept = Vec::new();
        for row in rows.iter() {
            let mut passes = true;
            for condition in conditions {
                passes = passes && condition.eval_bool(row, &execution.eval)?;
            }
            if passes {
                kept.push(row.clone());
            }
        }
        Ok(Arc::new(kept))
    }

    /// The rows in these spans.
    fn rows(
        &self,
        layout: &Arc<TableLayout>,
        (txn, reading): (&Arc<Txn>, ReadMode),
        access: &Access,
        spans: Vec<KeySpan>,
    ) -> Rows {
        let (spec, txn, layout) = (&self.spec, txn.clone(), layout.clone());
        let rows = match access.index {
            Some(at) => {
                let wanted = Some(self.wanted(&layout));
                let scan = IndexScan::new(txn, layout, at, spans, false).reading(reading);
                Rows::Index(scan.wanting(wanted).covering(Liveness::default()))
            }
            None => {
                let mut wanted = vec![false; layout.table.columns.len()];
                spec.projection.iter().for_each(|at| wanted[*at] = true);
                let scan = TableScan::new(txn, layout, spans, Some(wanted), false);
                Rows::Table(scan.reading(reading))
            }
        };
        let expected = spec.limit.filter(|_| self.filter().is_none());
        rows.expecting(expected).in_columns(spec, self.filter().cloned())
    }

    /// A narrower access because of what was learned, if that is worth it, and its spans.
    fn narrowed(
        &self,
        layout: &TableLayout,
        planned: &Access,
        execution: &Execution,
    ) -> SqlResult<Option<(Access, Vec<KeySpan>)>> {
        let Some(facts) = self.spec.facts.as_ref().filter(|_| !self.learned.is_empty()) else {
            return Ok(None);
        };
        let learned = Learned { layout, projection: &self.spec.projection };
        let all_rows = facts.rows_now();
        let wanted = self.wanted(layout);
        let planned_spans = spans_of(planned, layout, execution).len();
        let mut planned_cost = facts.cost(planned, planned_spans, all_rows, &wanted);
        if execution.is_validated(layout.table.id) {
            planned_cost += facts.look_up_cost(LOOKUPS_TO_READ_LESS);
        }
        // More cost more however they are looked up.
        let lookups_max = facts.lookups_for(planned_cost);
        let mut known = Vec::new();
        for filter in &self.learned {
            if let Some(filter) = filter.downcast_ref::<DynamicFilterPhysicalExpr>() {
                let now = filter.current().map_err(crate::error::from_df)?;
                learned.add(&now, lookups_max, &mut known);
            }
        }
        if known.is_empty() {
            return Ok(None);
        }
        let with = |known: &[Bound]| {
            let known = known.iter().flat_map(Bound::conjuncts);
            let all: Vec<Bound> = self.spec.conditions.iter().cloned().chain(known).collect();
            Some(Access::choose_among(layout, &all))
                .filter(|access| access.is_better_than(planned, layout))
        };
        let listed = known.iter().map(alternatives).max().unwrap_or(0);
        if listed > 0
            && execution.holds_keys(&self.spec, listed)
            && let Some(access) = with(&known)
        {
            let spans = spans_of(&access, layout, execution);
            if facts.cost(&access, spans.len(), all_rows, &wanted) < planned_cost {
                self.looked_up.fetch_add(spans.len() as u64, Ordering::Relaxed);
                return Ok(Some((access, spans)));
            }
        }
        known.retain(|c| matches!(c.node(), Node::Compare(..)));
        // Bounds of an index would lead to each row between them.
        let bounded = with(&known).filter(|access| access.index.is_none());
        Ok(bounded.map(|access| {
            let spans = spans_of(&access, layout, execution);
            (access, spans)
        }))
    }
}

/// Where the commit depends on what was read, reading less is worth that much more: of a small
/// table that all read as a whole, nobody could change a row beside the others.
const LOOKUPS_TO_READ_LESS: usize = 16;

/// The spans of an access. A constant that cannot be computed bounds nothing: the filter above
/// the scan computes it if it comes to that.
fn spans_of(access: &Access, layout: &TableLayout, execution: &Execution) -> Vec<KeySpan> {
    access
        .spans(layout, &[], &execution.eval)
        .unwrap_or_else(|_| vec![access.layout(layout).whole_span()])
}

/// How many values or rows of values a condition lists.
fn alternatives(condition: &Bound) -> usize {
    match condition.node() {
        Node::InList(_, list, _) => list.len(),
        Node::Or(parts) => parts.len(),
        _ => 0,
    }
}

impl DisplayAs for SqlScan {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let spec = &self.spec;
        let fields = spec.schema.fields();
        let columns: Vec<&str> = fields.iter().map(|field| field.name().as_str()).collect();
        match (&spec.source, &spec.access) {
            (Source::Rows(rows) | Source::Given(rows), _) => {
                write!(f, "RowsScan: {} ({} rows)", spec.name, rows.len())?;
            }
            (Source::Stored(layout), Some(access)) => self.fmt_access(layout, access, f)?,
            _ => write!(f, "CteScan: {}", spec.name)?,
        }
        write!(f, ", columns=[{}]", columns.join(", "))?;
        if let Some(filter) = &self.filter {
            write!(f, ", filter={filter:?}")?;
        }
        if !self.learned.is_empty() {
            let keys: Vec<String> = self.learned.iter().map(learned_columns).collect();
            write!(f, ", learns=[{}]", keys.join("; "))?;
        }
        if let Some(limit) = spec.limit {
            write!(f, ", limit={limit}")?;
        }
        if spec.threads > 1 {
            write!(f, ", threads={}", spec.threads)?;
        }
        match self.looked_up.load(Ordering::Relaxed) {
            0 => {}
            looked_up => write!(f, ", looked up={looked_up}")?,
        }
        match self.asked.load(Ordering::Relaxed) {
            0 => {}
            asked => write!(f, ", requests={asked}")?,
        }
        Ok(())
    }
}

/// Whether a key can be computed for rows that a condition above the scan would refuse.
fn cannot_fail(key: &Arc<dyn PhysicalExpr>) -> bool {
    match key.downcast_ref::<CastExpr>() {
        Some(cast) => cast.cast_type().is_integer() && cannot_fail(cast.expr()),
        None => key.downcast_ref::<Column>().is_some(),
    }
}

/// The columns that a dynamic filter is about.
fn learned_columns(filter: &Arc<dyn PhysicalExpr>) -> String {
    let columns = collect_columns(filter);
    let mut names: Vec<&str> = columns.iter().map(Column::name).collect();
    names.sort_unstable();
    names.join(", ")
}

impl SqlScan {
    /// By ordinal, the columns of rows that are read one by one.
    fn wanted(&self, layout: &TableLayout) -> Vec<bool> {
        let mut wanted = vec![false; layout.table.columns.len()];
        let filtered = self.filter().map(|filter| &filter.columns);
        let all = self.spec.projection.iter().chain(filtered.into_iter().flatten());
        all.for_each(|at| wanted[*at] = true);
        wanted
    }

    fn fmt_access(
        &self,
        layout: &TableLayout,
        access: &Access,
        f: &mut fmt::Formatter<'_>,
    ) -> fmt::Result {
        let name = &self.spec.name;
        match access.index {
            None => write!(f, "TableScan: {name}")?,
            Some(at) => {
                let index = &layout.indexes[at];
                write!(f, "IndexScan: {name} using {}", index.index.name)?;
                if layout.is_covered_by(index, &self.wanted(layout)) {
                    f.write_str(" (covering)")?;
                }
            }
        }
        if access.is_full() {
            return f.write_str(" all rows");
        }
        if let Ok(execution) = self.spec.place.execution() {
            write!(f, " spans={}", spans_of(access, layout, &execution).len())?;
        }
        let mut key = access.describe(layout, &|at| layout.column_name(at));
        if key.len() > KEY_TEXT_MAX {
            key.truncate(key.floor_char_boundary(KEY_TEXT_MAX));
            key.push_str(" ..");
        }
        write!(f, " key: {key}")
    }
}

impl ExecutionPlan for SqlScan {
    fn name(&self) -> &str {
        "SqlScan"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        // So that joins know that somebody listens.
        let mut recursion = TreeNodeRecursion::Continue;
        for filter in &self.learned {
            recursion = recursion.visit_sibling(|| visit(filter))?;
        }
        Ok(recursion)
    }

    fn statistics_from_inputs(
        &self,
        _: &[Arc<Statistics>],
        _: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        check_stop()?;
        Ok(Arc::new(Statistics::new_unknown(&self.schema())))
    }

    fn with_new_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        check_stop()?;
        Ok(self)
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(SqlScan {
            learning: None,
            learned: Vec::new(),
            awaited: Vec::new(),
            asked: Arc::default(),
            looked_up: Arc::default(),
            pieces: Arc::default(),
            ..SqlScan::clone(&self)
        }))
    }

    fn handle_child_pushdown_result(
        &self,
        phase: FilterPushdownPhase,
        result: ChildPushdownResult,
        _: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        let filters = result.parent_filters.iter().map(|filter| &filter.filter);
        let learned: Vec<Arc<dyn PhysicalExpr>> = filters
            .filter(|filter| filter.downcast_ref::<DynamicFilterPhysicalExpr>().is_some())
            .filter(|filter| filter.children().into_iter().all(cannot_fail))
            .cloned()
            .collect();
        // Whoever has learned it checks it: the scan may leave out what it likes.
        let nothing = vec![PushedDown::No; result.parent_filters.len()];
        let kept = FilterPushdownPropagation::with_parent_pushdown_result(nothing);
        if !matches!(self.spec.source, Source::Stored(_)) {
            return Ok(kept);
        }
        if phase != FilterPushdownPhase::Post || learned.is_empty() {
            return Ok(kept);
        }
        let learning = ScanFilter::learning(self.filter.as_ref(), &learned, &self.spec.table)?;
        let scan = SqlScan { learning: Some(learning), learned, ..self.clone() };
        Ok(kept.with_updated_node(Arc::new(scan)))
    }

    fn execute(&self, _: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let execution = self.spec.place.execution().map_err(to_df)?;
        if let Source::Shared(rows) = &self.spec.source {
            return Ok(Box::pin(SharedStream::new(rows, &self.spec, &execution)));
        }
        Ok(Box::pin(ScanStream::new(self.clone(), execution)))
    }
}
