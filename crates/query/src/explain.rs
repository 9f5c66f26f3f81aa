//! What EXPLAIN says of a general plan: its operators, and what each did.
//!
//! ```text
//!   Sort            Measured            rows, starts, time with that of the inputs: taken where
//!     Scan    ──►     Sort              batches are handed over
//!                       Measured
//!                         Scan          memory and spilled bytes: the operator's own figures;
//!                                       requests and what was looked at: the scan's
//! ```
//! Only EXPLAIN ANALYZE puts these in; other executions pay nothing.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};

use braid_env::clock::{Clock, WallClock};
use braid_kv::Tally;
use braid_sql::explain::{Actual, Operator, PlanLine};
use braid_types::SqlResult;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::metrics::{MetricValue, MetricsSet};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, StatisticsArgs, StatisticsContext, displayable,
    execute_stream,
};
use futures::{Stream, StreamExt};

use crate::error::from_df;
use crate::exec::around::around_rows;
use crate::exec::execution::{about_scan, common_scan};
use crate::exec::materialized::{Materialized, Watching};
use crate::exec::stoppable::{is_stoppable, stoppable};
use crate::memory::fitting;
use crate::run::drive;

/// What was seen of an operator. Partitions of it may run side by side.
#[derive(Debug, Default)]
struct Seen {
    starts: AtomicU64,
    rows: AtomicU64,
    nanos: AtomicU64,
    /// Nanoseconds until the first row; 0: there was none.
    first: AtomicU64,
}

/// See the [module documentation](self).
#[derive(Clone, Debug)]
struct Measured {
    input: Arc<dyn ExecutionPlan>,
    seen: Arc<Seen>,
}

/// Puts measures around all operators of a plan that is about to be executed.
///
/// # Errors
/// When an operator refuses its new inputs.
fn measured(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let measured = plan.transform_up(|node| {
        if is_stoppable(&node) {
            return Ok(Transformed::no(node));
        }
        if let Some(scan) = common_scan(node.as_ref()) {
            scan.rows.watch(&scan.execution, Watching { measured, told: |plan| lines(plan, 0) });
        }
        let node: Arc<dyn ExecutionPlan> = Arc::new(Measured { input: node, seen: Arc::default() });
        Ok(Transformed::yes(node))
    })?;
    Ok(measured.data)
}

/// Runs a plan for EXPLAIN ANALYZE: the plan with what its operators did, and its number of rows.
///
/// # Errors
/// Of starting and running it.
pub(super) fn measure(
    task: Arc<TaskContext>,
    plan: Arc<dyn ExecutionPlan>,
    cancel: &Arc<AtomicBool>,
) -> SqlResult<(Arc<dyn ExecutionPlan>, u64)> {
    let task = fitting(task, plan.as_ref());
    let plan = stoppable(plan, cancel).and_then(measured).map_err(from_df)?;
    let mut stream = execute_stream(plan.clone(), task).map_err(from_df)?;
    let mut rows = 0;
    while let Some(batch) = drive(stream.next()) {
        rows += batch.map_err(from_df)?.num_rows() as u64;
    }
    Ok((plan, rows))
}

/// The operators of a plan, measured or not, from this depth on.
pub(super) fn lines(plan: &Arc<dyn ExecutionPlan>, depth: usize) -> Vec<PlanLine> {
    let mut lines = Lines::default();
    lines.add(plan, None, depth);
    lines.out
}

/// What was said so far.
#[derive(Default)]
struct Lines {
    out: Vec<PlanLine>,
    /// Common table expressions whose operators are there.
    told: Vec<*const Materialized>,
}

impl Lines {
    fn add(&mut self, plan: &Arc<dyn ExecutionPlan>, seen: Option<&Seen>, depth: usize) {
        // By name: a measure passes itself off as what it is around.
        if let Some(measured) = as_measured(plan) {
            return self.add(&measured.input, Some(&measured.seen), depth);
        }
        if is_stoppable(plan) {
            return plan.children().into_iter().for_each(|below| self.add(below, seen, depth));
        }
        self.out.push(line(plan, seen, depth));
        if let Some(scan) = common_scan(plan.as_ref())
            && !self.told.contains(&Arc::as_ptr(scan.rows))
            && let Ok(Some(told)) = Materialized::told(&scan, |plan| lines(plan, 0))
        {
            self.told.push(Arc::as_ptr(scan.rows));
            let blanks = "  ".repeat(depth + 1);
            let below = |line: PlanLine| PlanLine { text: blanks.clone() + &line.text, ..line };
            self.out.extend(told.into_iter().map(below));
        }
        plan.children().into_iter().for_each(|below| self.add(below, None, depth + 1));
    }
}

fn line(plan: &Arc<dyn ExecutionPlan>, seen: Option<&Seen>, depth: usize) -> PlanLine {
    let text = displayable(plan.as_ref()).one_line().to_string();
    let text = format!("{}{}", "  ".repeat(depth), text.trim());
    let scan = about_scan(plan.as_ref());
    let estimate = StatisticsContext::new().compute(plan.as_ref(), &StatisticsArgs::default());
    let estimate = estimate.ok().and_then(|s| s.num_rows.get_value().map(|rows| *rows as f64));
    let mut operator = Operator {
        kind: kind(plan.as_ref(), scan.as_ref().is_some_and(|s| s.index.is_some())),
        estimate,
        actual: seen.map(|seen| actual(plan.as_ref(), seen)),
        ..Operator::default()
    };
    if let Some(scan) = scan {
        if let Some(actual) = &mut operator.actual {
            let Tally { requests, network, work } = scan.asked;
            (actual.requests, actual.network, actual.work) = (requests, network, work);
        }
        (operator.relation, operator.index) = (Some(scan.relation), scan.index);
        operator.estimate = scan.estimate.or(operator.estimate);
    }
    PlanLine { text, operator: Some(operator) }
}

fn as_measured(plan: &Arc<dyn ExecutionPlan>) -> Option<&Measured> {
    (plan.name() == MEASURED).then(|| plan.downcast_ref::<Measured>()).flatten()
}

fn actual(plan: &dyn ExecutionPlan, seen: &Seen) -> Actual {
    let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let (memory_peak, spilled_bytes) = held(plan.metrics().unwrap_or_default());
    Actual {
        rows: get(&seen.rows),
        loops: get(&seen.starts),
        nanos: Some((get(&seen.first), get(&seen.nanos))),
        memory_peak,
        spilled_bytes,
        ..Actual::default()
    }
}

/// Most memory that an operator says it held, and bytes that it spilled.
fn held(metrics: MetricsSet) -> (Option<u64>, u64) {
    let (mut peak, mut spilled) = (None, 0);
    for metric in metrics.iter() {
        match metric.value() {
            MetricValue::SpilledBytes(count) => spilled += count.value() as u64,
            MetricValue::CurrentMemoryUsage(gauge) => peak = peak.max(Some(gauge.value() as u64)),
            MetricValue::Gauge { name, gauge } if name.contains("mem") => {
                peak = peak.max(Some(gauge.value() as u64));
            }
            _ => {}
        }
    }
    (peak, spilled)
}

/// What PostgreSQL calls such an operator, as far as it has one.
fn kind(plan: &dyn ExecutionPlan, by_index: bool) -> String {
    let name = plan.name();
    let known = match name {
        "SqlScan" if by_index => "Index Scan",
        "SqlScan" => "Seq Scan",
        "AggregateExec" => "Aggregate",
        "FilterExec" => "Filter",
        "GlobalLimitExec" | "LocalLimitExec" => "Limit",
        "HashJoinExec" => "Hash Join",
        "NestedLoopJoinExec" | "CrossJoinExec" => "Nested Loop",
        "SortMergeJoinExec" => "Merge Join",
        "CoalescePartitionsExec" => "Gather",
        "SortPreservingMergeExec" => "Gather Merge",
        "SortExec" => "Sort",
        "UnionExec" | "InOrder" => "Append",
        "WindowAggExec" | "BoundedWindowAggExec" => "WindowAgg",
        "RecursiveQueryExec" => "Recursive Union",
        "ProjectionExec" => "Projection",
        other => other,
    };
    known.to_string()
}

const MEASURED: &str = "Measured";

impl DisplayAs for Measured {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MEASURED)
    }
}

impl ExecutionPlan for Measured {
    around_rows!();

    fn name(&self) -> &str {
        MEASURED
    }

    fn execute(
        &self,
        partition: usize,
        task: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let begun = now();
        let input = self.input.execute(partition, task)?;
        self.seen.starts.fetch_add(1, Ordering::Relaxed);
        self.seen.nanos.fetch_add(now() - begun, Ordering::Relaxed);
        Ok(Box::pin(Watched { input, seen: self.seen.clone() }))
    }
}

struct Watched {
    input: SendableRecordBatchStream,
    seen: Arc<Seen>,
}

fn now() -> u64 {
    WallClock.monotonic_nanos()
}

impl Stream for Watched {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let begun = now();
        let polled = self.input.as_mut().poll_next(cx);
        let took = now() - begun;
        let nanos = self.seen.nanos.fetch_add(took, Ordering::Relaxed) + took;
        if let Poll::Ready(Some(Ok(batch))) = &polled {
            let before = self.seen.rows.fetch_add(batch.num_rows() as u64, Ordering::Relaxed);
            if before == 0 && batch.num_rows() > 0 {
                self.seen.first.store(nanos, Ordering::Relaxed);
            }
        }
        polled
    }
}

impl RecordBatchStream for Watched {
    fn schema(&self) -> SchemaRef {
        self.input.schema()
    }
}
