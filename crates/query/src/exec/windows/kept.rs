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
use futures::StreamExt;

/// Files are not smaller than this, however little memory there is.
const FILE_MIN: usize = 4 << 20;

/// See the [module documentation](self).
pub(super) struct Kept {
    spill: SpillManager,
    memory: MemoryReservation,
    files: VecDeque<Arc<dyn SpillFile>>,
    /// Those behind the files.
    batches: VecDeque<RecordBatch>,
    /// The first file, that is being read.
    open: Option<SendableRecordBatchStream>,
    rows: usize,
}

impl Kept {
    /// Nothing yet. `name` is who an error says has asked.
    pub(super) fn new(
        name: &str,
        schema: SchemaRef,
        task: &TaskContext,
        metrics: SpillMetrics,
    ) -> Kept {
        let spill = SpillManager::new(task.runtime_env(), metrics, schema);
        let memory = MemoryConsumer::new(name).with_can_spill(true).register(task.memory_pool());
        let (files, batches) = Default::default();
        Kept { spill, memory, files, batches, open: None, rows: 0 }
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
        } else if self.memory.try_grow(bytes).is_err() {
            let written = self.spill.spill_record_batch_and_finish(
                self.batches.make_contiguous(),
                "rows of a window",
            )?;
            self.files.extend(written);
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
}
