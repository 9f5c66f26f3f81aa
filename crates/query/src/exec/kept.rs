//! Batches in their order: in memory as long as there is room, then in files, one after the other.

use std::collections::VecDeque;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::spill_file::SpillFile;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::SpillManager;
use datafusion::physical_plan::metrics::SpillMetrics;
use datafusion::physical_plan::spill::get_record_batch_memory_size;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{StreamExt, TryStreamExt, stream};

use crate::memory::part_of;

/// Files are not smaller than this, however little memory there is.
const FILE_MIN: usize = 4 << 20;

/// See the [module documentation](self).
pub(super) struct Kept {
    spill: SpillManager,
    memory: MemoryReservation,
    /// Bytes that are kept in memory, however much there is.
    most: usize,
    /// What they are, for the names of the files.
    what: &'static str,
    files: VecDeque<Arc<dyn SpillFile>>,
    /// Those behind the files.
    batches: VecDeque<RecordBatch>,
    /// The first file, that is being read.
    open: Option<SendableRecordBatchStream>,
    rows: usize,
}

impl Kept {
    /// Nothing yet. `name` is who an error says has asked, `what` are the rows.
    pub(super) fn new(
        (name, what): (&str, &'static str),
        schema: SchemaRef,
        task: &TaskContext,
        metrics: SpillMetrics,
    ) -> Kept {
        let spill = SpillManager::new(task.runtime_env(), metrics, schema);
        let memory = MemoryConsumer::new(name).with_can_spill(true).register(task.memory_pool());
        let (files, batches) = Default::default();
        Kept { spill, memory, most: usize::MAX, what, files, batches, open: None, rows: 0 }
    }

    /// Leaves all but this part of the statement's memory to others.
    pub(super) fn within_part(mut self, part: usize, task: &TaskContext) -> Kept {
        self.most = part_of(task, part);
        self
    }

    /// Rows that were put in.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Takes the next batch.
    ///
    /// # Errors
    /// There is no room in memory, and nothing can be written to disk.
    pub(super) fn push(&mut self, batch: RecordBatch) -> Result<()> {
        self.rows += batch.num_rows();
        let bytes = get_record_batch_memory_size(&batch);
        self.batches.push_back(batch);
        if self.memory.size() < FILE_MIN {
            self.memory.grow(bytes);
        } else if self.memory.size() + bytes > self.most || self.memory.try_grow(bytes).is_err() {
            let batches = self.batches.make_contiguous();
            self.files.extend(self.spill.spill_record_batch_and_finish(batches, self.what)?);
            self.batches.clear();
            self.memory.free();
        }
        Ok(())
    }

    /// Takes out the first batch.
    ///
    /// # Errors
    /// Of the disk.
    pub(super) async fn pop(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(open) = &mut self.open {
                match open.next().await {
                    None => self.open = None,
                    Some(batch) => return batch.map(Some),
                }
            }
            let Some(file) = self.files.pop_front() else { break };
            self.open = Some(self.spill.read_spill_as_stream_unbuffered(file, None)?);
        }
        let batch = self.batches.pop_front();
        if self.batches.is_empty() {
            self.memory.free();
        }
        Ok(batch)
    }

    /// Nothing more is put in, and it is read as often as wanted.
    pub(super) fn finish(self) -> Arc<Whole> {
        let Kept { spill, memory, files, batches, .. } = self;
        let (files, batches) = (files.into(), batches.into());
        Arc::new(Whole { spill, _memory: memory, files, batches })
    }
}

/// What was [kept](Kept), all of it.
pub(super) struct Whole {
    spill: SpillManager,
    _memory: MemoryReservation,
    files: Vec<Arc<dyn SpillFile>>,
    /// Those behind the files.
    batches: Vec<RecordBatch>,
}

impl Whole {
    /// All batches once more, from the first. Nobody waits for anybody else who reads.
    pub(super) fn read(self: &Arc<Whole>) -> SendableRecordBatchStream {
        let (whole, files) = (self.clone(), 0..self.files.len());
        let of_files = stream::iter(files)
            .map(move |at| {
                let file = whole.files[at].clone();
                whole.spill.read_spill_as_stream_unbuffered(file, None)
            })
            .try_flatten();
        let whole = self.clone();
        let in_memory = (0..self.batches.len()).map(move |at| Ok(whole.batches[at].clone()));
        let all = of_files.chain(stream::iter(in_memory));
        Box::pin(RecordBatchStreamAdapter::new(self.spill.schema().clone(), all))
    }
}
