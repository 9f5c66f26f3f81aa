//! Window functions over frames that end with the partition: one partition after the other.
//!
//! ```text
//!   rows, sorted by partition    what the functions look at       results         rows out
//!   a  1  ...................    a  1  ┐
//!   a  2  ...................    a  2  ┘ computed when b comes    r r             a  1 ... r
//!   b  5  ...................    b  5  ...                                        a  2 ... r
//! ```
//! The rows themselves are [`Kept`], in memory or on disk, until the results of their partition are
//! there. An aggregate of the whole partition (`count(*) OVER ()`) takes the rows as they come, and
//! has one result for all of them. What the other functions look at, and their results, are in
//! memory; 53200 when there is no room for a partition's. Small partitions are computed together,
//! about a batch at a time.
//!
//! [`Kept`]: crate::exec::kept::Kept

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use datafusion::common::utils::evaluate_partition_ranges;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricsSet, SpillMetrics};
use datafusion::physical_plan::stream::{EmptyRecordBatchStream, RecordBatchStreamAdapter};
use datafusion::physical_plan::windows::WindowAggExec;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan};
use futures::{StreamExt, stream};

use super::functions::Functions;
use super::part::{Done, Part, Start};

use crate::exec::around::around_operator;

/// See the [module documentation](self).
#[derive(Debug)]
pub(super) struct WholeWindows {
    window: Arc<dyn ExecutionPlan>,
    metrics: ExecutionPlanMetricsSet,
}

impl WholeWindows {
    /// In the place of a [`WindowAggExec`].
    pub(super) fn new(window: Arc<dyn ExecutionPlan>) -> WholeWindows {
        WholeWindows { window, metrics: ExecutionPlanMetricsSet::new() }
    }
}

impl DisplayAs for WholeWindows {
    fn fmt_as(&self, kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.window.fmt_as(kind, f)
    }
}

impl ExecutionPlan for WholeWindows {
    around_operator!();

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn execute(
        &self,
        partition: usize,
        task: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let Some(window) = self.window.downcast_ref::<WindowAggExec>() else {
            return datafusion::common::internal_err!("{} for whole partitions", self.name());
        };
        let metrics = SpillMetrics::new(&self.metrics, partition);
        let functions = Functions::of(window)?;
        let input = window.input().execute(partition, Arc::clone(&task))?;
        let start = Start { schema: window.input().schema(), task, metrics };
        let part = start.part(&functions)?;
        let schema = self.schema();
        let reading = Reading { input, functions, start, part, done: None, schema: schema.clone() };
        let rows = stream::try_unfold(reading, |mut reading| async move {
            Ok(reading.next().await?.map(|batch| (batch, reading)))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }
}

/// The stream's state.
struct Reading {
    input: SendableRecordBatchStream,
    functions: Functions,
    start: Start,
    part: Part,
    done: Option<Done>,
    schema: SchemaRef,
}

impl Reading {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(done) = &mut self.done {
                if let Some(batch) = done.next(&self.schema).await? {
                    return Ok(Some(batch));
                }
                self.done = None;
            }
            match self.input.next().await {
                Some(batch) => self.take(batch?)?,
                None if self.part.is_empty() => return Ok(None),
                None => {
                    // What is below gives its memory back before the results are computed.
                    self.input = Box::pin(EmptyRecordBatchStream::new(self.input.schema()));
                    self.finish_part()?;
                }
            }
        }
    }

    /// Takes a batch; what it shows to be whole is done.
    fn take(&mut self, batch: RecordBatch) -> Result<()> {
        let rows = batch.num_rows();
        if rows == 0 {
            return Ok(());
        }
        let keys = self.functions.partitions(&batch)?;
        let last = evaluate_partition_ranges(rows, &keys)?.pop().map_or(0, |last| last.start);
        if last == 0 && (self.part.is_empty() || self.part.goes_on(&keys)?) {
            return self.part.push(batch, &self.functions);
        }
        self.part.push(batch.slice(0, last), &self.functions)?;
        self.finish_part()?;
        self.part.push(batch.slice(last, rows - last), &self.functions)
    }

    fn finish_part(&mut self) -> Result<()> {
        let next = self.start.part(&self.functions)?;
        let part = std::mem::replace(&mut self.part, next);
        self.done = Some(part.done(&self.functions)?);
        Ok(())
    }
}
