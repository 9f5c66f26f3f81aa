//! Rows of partitions whose results are not there yet, and rows with their results.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, RecordBatch};
use datafusion::arrow::compute::{SortColumn, concat, concat_batches};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::utils::evaluate_partition_ranges;
use datafusion::common::{Result, ScalarValue};
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::logical_expr::Accumulator;
use datafusion::physical_plan::metrics::SpillMetrics;

use super::functions::{Function, Functions, copy};
use crate::exec::kept::Kept;

/// Batches are cut so that their constant results take about so much: one large value may stand
/// beside each of very many rows.
const CONSTANTS_MAX: usize = 16 << 20;

/// What parts are made of.
pub(super) struct Start {
    pub(super) schema: SchemaRef,
    pub(super) task: Arc<TaskContext>,
    pub(super) metrics: SpillMetrics,
}

impl Start {
    pub(super) fn part(&self, functions: &Functions) -> Result<Part> {
        let (name, task) = ("WindowAggExec", &self.task);
        Ok(Part {
            rows: Kept::new(
                (name, "rows of a window"),
                self.schema.clone(),
                task,
                self.metrics.clone(),
            ),
            seen: Vec::new(),
            memory: MemoryConsumer::new(name).register(task.memory_pool()),
            last: Vec::new(),
            states: functions.states()?,
            state_bytes: 0,
            constants: vec![Vec::new(); functions.constants().count()],
            open: 0,
        })
    }
}

/// Rows of one or more partitions.
pub(super) struct Part {
    rows: Kept,
    seen: Vec<RecordBatch>,
    /// For what is seen, a copy of it in one piece, the results; and the states.
    memory: MemoryReservation,
    /// The values that make the partition of the last row.
    last: Vec<ArrayRef>,
    /// Of the constant functions in the last partition.
    states: Vec<Box<dyn Accumulator>>,
    state_bytes: usize,
    /// Their results in the partitions before it, each with its number of rows.
    constants: Vec<Vec<(usize, ScalarValue)>>,
    /// Rows of the last partition.
    open: usize,
}

impl Part {
    pub(super) fn is_empty(&self) -> bool {
        self.rows.rows() == 0
    }

    /// Takes rows.
    pub(super) fn push(&mut self, batch: RecordBatch, functions: &Functions) -> Result<()> {
        let rows = batch.num_rows();
        if rows == 0 {
            return Ok(());
        }
        let narrow = functions.narrow(&batch)?;
        let bytes = 2 * narrow.get_array_memory_size() + functions.result_bytes(&narrow);
        self.memory.try_grow(bytes)?;
        let keys = functions.partitions(&narrow)?;
        self.accumulate(&batch, &keys, functions)?;
        let last = keys.iter().map(|key| copy(&key.values.slice(rows - 1, 1)));
        self.last = last.collect::<Result<_>>()?;
        self.seen.push(narrow);
        self.rows.push(batch)
    }

    /// Whether the first of these rows belongs to the partition of the last one.
    pub(super) fn goes_on(&self, with: &[SortColumn]) -> Result<bool> {
        let both = self.last.iter().zip(with).map(|(last, next)| {
            let values = concat(&[&**last, &*next.values.slice(0, 1)])?;
            Ok(SortColumn { values, options: None })
        });
        let both = both.collect::<Result<Vec<_>>>()?;
        Ok(evaluate_partition_ranges(2, &both)?.len() == 1)
    }

    /// Gives rows to the constant functions.
    fn accumulate(
        &mut self,
        batch: &RecordBatch,
        keys: &[SortColumn],
        functions: &Functions,
    ) -> Result<()> {
        if self.states.is_empty() {
            return Ok(());
        }
        let args = functions.constants().map(|function| function.evaluate_args(batch));
        let args = args.collect::<Result<Vec<_>>>()?;
        for range in evaluate_partition_ranges(batch.num_rows(), keys)? {
            if range.start > 0 || (self.open > 0 && !self.goes_on(keys)?) {
                self.close_partition()?;
                self.states = functions.states()?;
            }
            self.open += range.len();
            for (state, args) in self.states.iter_mut().zip(&args) {
                let args = args.iter().map(|arg| arg.slice(range.start, range.len()));
                state.update_batch(&args.collect::<Vec<_>>())?;
            }
        }
        let bytes: usize = self.states.iter().map(|state| state.size()).sum();
        match bytes.checked_sub(self.state_bytes) {
            Some(more) => self.memory.try_grow(more)?,
            None => self.memory.shrink(self.state_bytes - bytes),
        }
        self.state_bytes = bytes;
        Ok(())
    }

    fn close_partition(&mut self) -> Result<()> {
        for (state, results) in self.states.iter_mut().zip(&mut self.constants) {
            results.push((self.open, state.evaluate()?));
        }
        self.open = 0;
        Ok(())
    }

    /// Computes the results.
    pub(super) fn done(mut self, functions: &Functions) -> Result<Done> {
        self.close_partition()?;
        self.states.clear();
        let whole = concat_batches(&functions.schema, &self.seen)?;
        self.seen.clear();
        let general = functions.results(&whole)?;
        drop(whole);
        let constants = self.constants.iter().flatten().map(|(_, value)| value.size());
        let columns = general.iter().map(|column| column.get_array_memory_size());
        self.memory.resize(columns.chain(constants).sum());
        let (mut general, mut constants) = (general.into_iter(), self.constants.into_iter());
        let results = functions.all.iter().map(|function| match function {
            Function::General(_) => general.next().map(Results::Column),
            Function::Constant(_) => constants.next().map(Results::Runs),
        });
        let results = results.flatten().collect();
        Ok(Done { rows: self.rows, rest: None, results, given: 0, _memory: self.memory })
    }
}

/// The results of one function.
enum Results {
    Column(ArrayRef),
    /// One for each partition, with its number of rows.
    Runs(Vec<(usize, ScalarValue)>),
}

impl Results {
    /// What the results of a row may take that are not in a column yet.
    fn row_bytes(&self) -> usize {
        match self {
            Results::Column(_) => 0,
            Results::Runs(runs) => runs.iter().map(|(_, value)| value.size()).max().unwrap_or(0),
        }
    }

    fn slice(&self, from: usize, rows: usize) -> Result<ArrayRef> {
        let runs = match self {
            Results::Column(column) => return Ok(column.slice(from, rows)),
            Results::Runs(runs) => runs,
        };
        let mut parts = Vec::new();
        let mut start = 0;
        for (length, value) in runs {
            let (first, end) = (start.max(from), (start + length).min(from + rows));
            if first < end {
                parts.push(value.to_array_of_size(end - first)?);
            }
            start += length;
        }
        let parts: Vec<&dyn Array> = parts.iter().map(|part| &**part).collect();
        Ok(concat(&parts)?)
    }
}

/// Rows with their results.
pub(super) struct Done {
    rows: Kept,
    /// What is left of a batch that was cut.
    rest: Option<RecordBatch>,
    results: Vec<Results>,
    /// Rows that were given out.
    given: usize,
    _memory: MemoryReservation,
}

impl Done {
    pub(super) async fn next(&mut self, schema: &SchemaRef) -> Result<Option<RecordBatch>> {
        let batch = match self.rest.take() {
            Some(rest) => Some(rest),
            None => self.rows.pop().await?,
        };
        let Some(mut batch) = batch else { return Ok(None) };
        let row: usize = self.results.iter().map(Results::row_bytes).sum();
        let most = (CONSTANTS_MAX / row.max(1)).max(1);
        if batch.num_rows() > most {
            self.rest = Some(batch.slice(most, batch.num_rows() - most));
            batch = batch.slice(0, most);
        }
        let (from, rows) = (self.given, batch.num_rows());
        self.given += rows;
        let results = self.results.iter().map(|results| results.slice(from, rows));
        let results = results.collect::<Result<Vec<_>>>()?;
        let columns = batch.columns().iter().cloned().chain(results).collect();
        Ok(Some(RecordBatch::try_new(schema.clone(), columns)?))
    }
}
