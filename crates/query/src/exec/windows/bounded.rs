//! Counts what a window operator keeps whose frames end near the row.
//!
//! ```text
//!   BoundedWindows      counts the rows that come out
//!     BoundedWindowAgg
//!       Tap             counts the rows that go in, and asks for room for those between
//! ```

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::spill::get_record_batch_memory_size;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, ReplaceChildrenOptions,
};
use futures::Stream;
use parking_lot::Mutex;

use crate::exec::around::{around_operator, around_rows};

/// How often the operator has a row that it keeps: in what it was given, in its partition, and once
/// more while either is copied into a longer one.
const COPIES: usize = 3;

/// See the [module documentation](self).
#[derive(Debug)]
pub(super) struct BoundedWindows {
    window: Arc<dyn ExecutionPlan>,
}

impl BoundedWindows {
    /// Around an operator.
    pub(super) fn new(window: Arc<dyn ExecutionPlan>) -> BoundedWindows {
        BoundedWindows { window }
    }
}

impl DisplayAs for BoundedWindows {
    fn fmt_as(&self, kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.window.fmt_as(kind, f)
    }
}

impl ExecutionPlan for BoundedWindows {
    around_operator!();

    fn metrics(&self) -> Option<MetricsSet> {
        self.window.metrics()
    }

    fn execute(
        &self,
        partition: usize,
        task: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let memory = MemoryConsumer::new(self.name()).register(task.memory_pool());
        let meter = Arc::new(Mutex::new(Meter { memory, rows: 0, taken: 0, bytes: 0 }));
        let tapped = self.children().into_iter().map(|input| {
            let (input, meter) = (Arc::clone(input), Arc::clone(&meter));
            Arc::new(Tap { input, meter }) as Arc<dyn ExecutionPlan>
        });
        let mode = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep);
        let window = self.window.clone().replace_children(tapped.collect(), mode)?;
        let input = window.execute(partition, task)?;
        Ok(Box::pin(Out { input, meter }))
    }
}

/// The rows between what went in and what came out.
#[derive(Debug)]
struct Meter {
    memory: MemoryReservation,
    rows: usize,
    /// All that went in.
    taken: usize,
    bytes: usize,
}

impl Meter {
    fn kept(&self) -> usize {
        let row = self.bytes / self.taken.max(1);
        row * self.rows * COPIES
    }

    fn comes(&mut self, batch: &RecordBatch) -> Result<()> {
        self.rows += batch.num_rows();
        self.taken += batch.num_rows();
        self.bytes += get_record_batch_memory_size(batch);
        self.memory.try_resize(self.kept())
    }

    fn goes(&mut self, batch: &RecordBatch) {
        self.rows = self.rows.saturating_sub(batch.num_rows());
        self.memory.resize(self.kept());
    }
}

/// Counts what an operator takes.
#[derive(Clone, Debug)]
struct Tap {
    input: Arc<dyn ExecutionPlan>,
    meter: Arc<Mutex<Meter>>,
}

impl DisplayAs for Tap {
    fn fmt_as(&self, kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.input.fmt_as(kind, f)
    }
}

impl ExecutionPlan for Tap {
    around_rows!();

    fn name(&self) -> &str {
        self.input.name()
    }

    fn execute(
        &self,
        partition: usize,
        task: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, task)?;
        Ok(Box::pin(In { input, meter: Arc::clone(&self.meter) }))
    }
}

struct In {
    input: SendableRecordBatchStream,
    meter: Arc<Mutex<Meter>>,
}

impl Stream for In {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = self.input.as_mut().poll_next(cx);
        if let Poll::Ready(Some(Ok(batch))) = &next
            && let Err(refused) = self.meter.lock().comes(batch)
        {
            return Poll::Ready(Some(Err(refused)));
        }
        next
    }
}

impl RecordBatchStream for In {
    fn schema(&self) -> SchemaRef {
        self.input.schema()
    }
}

struct Out {
    input: SendableRecordBatchStream,
    meter: Arc<Mutex<Meter>>,
}

impl Stream for Out {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = self.input.as_mut().poll_next(cx);
        if let Poll::Ready(Some(Ok(batch))) = &next {
            self.meter.lock().goes(batch);
        }
        next
    }
}

impl RecordBatchStream for Out {
    fn schema(&self) -> SchemaRef {
        self.input.schema()
    }
}
