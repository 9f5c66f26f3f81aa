//! Window functions that DataFusion does not have: over frames of our own, and those whose counts
//! differ from row to row.
//!
//! ```text
//!   arguments of sum(x) FILTER (WHERE c) OVER (ORDER BY k, j ROWS $1 PRECEDING EXCLUDE TIES)
//!     x | c | $1 | k j           its own, the filter, offsets, a key with a distance, the peers
//! ```
//! A function of ours stands in the place of the aggregate, or of `first_value` and the like. It is
//! given a whole partition at once ([`whole`](super::whole)), finds the frames of all rows
//! ([`Frames`]), and computes each: rows by their places, aggregates by [`over_runs`].

use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

use braid_catalog::memory_error;
use braid_env::memory::Held;
use braid_scalar::WindowCode;
use braid_types::{Datum, SqlError, SqlResult, SqlState, SqlType};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, UInt64Array};
use datafusion::arrow::compute::{SortColumn, concat, take};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::Result;
use datafusion::common::utils::evaluate_partition_ranges;
use datafusion::logical_expr::function::{PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion::logical_expr::{
    PartitionEvaluator, Signature, Volatility, WindowUDF, WindowUDFImpl,
};

use super::frame::{Frames, Shape};
use super::over_runs::{Input, over_runs};
use super::places::{nth, shifted, tiles};
use crate::arrow_form::{self, Reader};
use crate::error::to_df;
use crate::exec::aggregate::Spec;
use crate::exec::execution::{Execution, Place};
use crate::exec::scalar::next_id;
use crate::exec::stoppable::check;

/// Results that are put together at once.
const CHUNK: usize = 1024;

/// What is computed.
#[derive(Clone, Debug)]
pub(crate) enum Inner {
    /// An aggregate of the frame.
    Aggregate(Arc<Spec>),
    /// One of the frame's rows, or one that is so far from the row, or a part of the partition.
    Window(WindowCode),
}

/// The arguments of a call behind its own, in this order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layout {
    /// Its own.
    pub(crate) own: usize,
    /// A FILTER.
    pub(crate) filtered: bool,
    /// Offsets of the frame's start and of its end.
    pub(crate) offsets: [bool; 2],
    /// The key that RANGE adds its offsets to.
    pub(crate) keyed: bool,
    /// Keys of which equal ones are peers.
    pub(crate) peers: usize,
}

impl Layout {
    fn count(&self) -> usize {
        let [start, end] = self.offsets;
        let flags = [self.filtered, start, end, self.keyed];
        self.own + flags.into_iter().filter(|there| *there).count() + self.peers
    }
}

/// A call.
#[derive(Clone, Debug)]
pub(crate) struct Framed {
    id: u64,
    pub(crate) inner: Inner,
    pub(crate) shape: Shape,
    pub(crate) layout: Layout,
    pub(crate) ret: SqlType,
    pub(crate) place: Arc<Place>,
    signature: Signature,
    name: String,
}

impl Framed {
    /// The function for a call.
    pub(crate) fn function(
        inner: Inner,
        shape: Shape,
        layout: Layout,
        ret: SqlType,
        place: Arc<Place>,
    ) -> Arc<WindowUDF> {
        let own = match &inner {
            Inner::Aggregate(spec) => spec.name.as_str(),
            Inner::Window(code) => code.name(),
        };
        let name = match shape.exclusion {
            Some(exclusion) => format!("{own} exclude {}", exclusion.words().to_lowercase()),
            None => own.to_string(),
        };
        let signature = Signature::any(layout.count(), Volatility::Immutable);
        let id = next_id();
        let function = Framed { id, inner, shape, layout, ret, place, signature, name };
        Arc::new(WindowUDF::new_from_impl(function))
    }
}

impl PartialEq for Framed {
    fn eq(&self, other: &Framed) -> bool {
        self.id == other.id
    }
}

impl Eq for Framed {}

impl Hash for Framed {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

impl WindowUDFImpl for Framed {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn partition_evaluator(
        &self,
        _: PartitionEvaluatorArgs<'_>,
    ) -> Result<Box<dyn PartitionEvaluator>> {
        Ok(Box::new(Partition { call: self.clone() }))
    }

    fn field(&self, args: WindowUDFFieldArgs<'_>) -> Result<FieldRef> {
        Ok(Arc::new(Field::new(args.name(), arrow_form::data_type(&self.ret), true)))
    }
}

/// Computes a partition.
#[derive(Debug)]
struct Partition {
    call: Framed,
}

impl PartitionEvaluator for Partition {
    fn supports_bounded_execution(&self) -> bool {
        false
    }

    fn evaluate_all(&mut self, values: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        let call = &self.call;
        let execution = call.place.execution_or_nothing();
        match &call.inner {
            Inner::Window(code @ (WindowCode::Lag | WindowCode::Lead)) => {
                shifted(*code == WindowCode::Lag, &values[..call.layout.own], rows)
            }
            Inner::Window(WindowCode::Ntile) => tiles(&values[0], rows),
            Inner::Window(code) => {
                let found = call.rows_found(*code, values, rows, &execution)?;
                Room::of(&execution).note_rows(&values[0], &found).map_err(to_df)?;
                Ok(take(&values[0], &found, None)?)
            }
            Inner::Aggregate(spec) => call.aggregates(spec, values, rows, &execution),
        }
    }
}

impl Framed {
    /// The frames of a partition.
    fn frames<'a>(
        &'a self,
        values: &'a [ArrayRef],
        rows: usize,
        execution: &'a Execution,
    ) -> Result<Frames<'a>> {
        let mut at = self.layout.own + usize::from(self.layout.filtered);
        let mut next = |there: bool| {
            let value = values.get(at).filter(|_| there);
            at += usize::from(there);
            value
        };
        let key = |n: usize| match (self.shape.has_distance(), &self.shape.key) {
            (true, Some((ty, ..))) => crate::exec::windows::offset_type(ty),
            _ if n < 2 => Some(SqlType::Int8),
            _ => None,
        };
        let offsets = [0, 1].map(|n| {
            let value = next(self.layout.offsets[n])?;
            Some(Reader::new(value).get(0, &key(n)?))
        });
        let keys = next(self.layout.keyed).map(|keys| Reader::new(keys));
        let peers = match self.shape.needs_peers() {
            true => peers(&values[at..], rows)?,
            false => Vec::new(),
        };
        Frames::new(&self.shape, (rows, peers), offsets, keys, &execution.eval).map_err(to_df)
    }

    /// The row that each row shows a value of.
    fn rows_found(
        &self,
        code: WindowCode,
        values: &[ArrayRef],
        rows: usize,
        execution: &Execution,
    ) -> Result<UInt64Array> {
        let mut frames = self.frames(values, rows, execution)?;
        let counts = values.get(1).map(|counts| Reader::new(counts));
        let mut found = Vec::with_capacity(rows);
        for row in 0..rows {
            if row % CHUNK == 0 {
                check(&execution.cancel)?;
            }
            let runs = frames.of(row).map_err(to_df)?;
            found.push(match code {
                WindowCode::FirstValue => runs.first().map(|run| run.start),
                WindowCode::LastValue => runs.last().map(|run| run.end - 1),
                _ => {
                    let count = counts.as_ref().map(|counts| counts.get(row, &SqlType::Int8));
                    numbered(&runs, count).map_err(to_df)?
                }
            });
        }
        Ok(found.into_iter().map(|row| row.map(|row| row as u64)).collect())
    }

    /// The aggregate of each row's frame.
    fn aggregates(
        &self,
        spec: &Arc<Spec>,
        values: &[ArrayRef],
        rows: usize,
        execution: &Execution,
    ) -> Result<ArrayRef> {
        let mut frames = self.frames(values, rows, execution)?;
        let filter = values.get(self.layout.own).filter(|_| self.layout.filtered);
        let input = Input::new(spec, &values[..self.layout.own], filter, rows, execution);
        let mut results = over_runs(input)?;
        let mut memory = Room::of(execution);
        let mut parts: Vec<ArrayRef> = Vec::with_capacity(rows.div_ceil(CHUNK));
        let mut chunk: Vec<Datum> = Vec::with_capacity(CHUNK.min(rows));
        for row in 0..rows {
            if row % CHUNK == 0 {
                check(&execution.cancel)?;
            }
            let runs = frames.of(row).map_err(to_df)?;
            let value = results.value(&runs)?;
            memory.note(value.memory()).map_err(to_df)?;
            chunk.push(value);
            if chunk.len() == CHUNK {
                parts.push(arrow_form::build(&self.ret, chunk.iter()));
                chunk.clear();
            }
        }
        if !chunk.is_empty() || parts.is_empty() {
            parts.push(arrow_form::build(&self.ret, chunk.iter()));
        }
        drop(chunk);
        let parts: Vec<&dyn Array> = parts.iter().map(|part| &**part).collect();
        Ok(concat(&parts)?)
    }
}

/// Room for results that are larger than what the operator has set aside for each row.
struct Room {
    held: Held,
    bytes: usize,
    /// What of it is held.
    counted: usize,
}

impl Room {
    /// Results are asked for in steps of so much.
    const STEP: usize = 256 << 10;

    fn of(execution: &Execution) -> Room {
        Room { held: execution.memory.hold("WindowAggExec"), bytes: 0, counted: 0 }
    }

    /// A result is kept: as a value, in a part of the column, and in the column.
    fn note(&mut self, bytes: usize) -> SqlResult<()> {
        self.bytes += 2 * bytes.saturating_sub(super::functions::RESULT_BYTES);
        if self.bytes < self.counted + Room::STEP {
            return Ok(());
        }
        if self.bytes > i32::MAX as usize {
            let text = "out of memory: WindowAggExec";
            return Err(SqlError::new(SqlState::OUT_OF_MEMORY, text)
                .with_detail("The results of one partition are longer than 1 GB."));
        }
        self.held.grow(self.bytes - self.counted).map_err(|e| memory_error(&e))?;
        self.counted = self.bytes;
        Ok(())
    }

    /// As [`Room::note`], of the values of these rows.
    fn note_rows(&mut self, values: &ArrayRef, rows: &UInt64Array) -> SqlResult<()> {
        let length: Box<dyn Fn(usize) -> usize> = match values.data_type() {
            DataType::Utf8 => Box::new(|row| values.as_string::<i32>().value_length(row) as usize),
            DataType::Binary => {
                Box::new(|row| values.as_binary::<i32>().value_length(row) as usize)
            }
            _ => return Ok(()),
        };
        rows.iter().flatten().try_for_each(|row| self.note(length(row as usize)))
    }
}

/// The row of a frame by its number.
fn numbered(runs: &[Range<usize>], count: Option<Datum>) -> SqlResult<Option<usize>> {
    match count {
        Some(Datum::Int8(count @ 1..)) => Ok(nth(runs, count as usize)),
        Some(Datum::Int8(_)) => {
            Err(SqlError::new(SqlState("22016"), "argument of nth_value must be greater than zero"))
        }
        _ => Ok(None),
    }
}

/// Rows with equal keys: all of them without keys.
fn peers(keys: &[ArrayRef], rows: usize) -> Result<Vec<Range<usize>>> {
    let keys: Vec<SortColumn> =
        keys.iter().map(|key| SortColumn { values: key.clone(), options: None }).collect();
    evaluate_partition_ranges(rows, &keys)
}
