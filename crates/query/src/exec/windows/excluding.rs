//! Window functions over frames with EXCLUDE, which DataFusion does not know.
//!
//! ```text
//!   ORDER BY k ROWS BETWEEN 2 PRECEDING AND 2 FOLLOWING       the frame of the fourth row
//!   k             10   10   20   20   20   30
//!   EXCLUDE ..         [..............*.....]
//!   CURRENT ROW        x    x    x         x
//!   GROUP              x                   x
//!   TIES               x              *    x
//! ```
//! A function of ours stands in the place of the aggregate, or of first_value, last_value and
//! nth_value; the others look at no frame. It is told the frame of one row after the other, and the
//! keys of the order behind the arguments: equal ones are peers. What is left of a frame is up to
//! three runs of rows, of which an aggregate is computed anew for each row, as PostgreSQL does.

use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

use braid_parser::Exclusion;
use braid_scalar::WindowCode;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use datafusion::arrow::compute::{SortColumn, filter};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Int64Type};
use datafusion::common::utils::evaluate_partition_ranges;
use datafusion::common::{Result, ScalarValue, exec_datafusion_err};
use datafusion::logical_expr::function::{PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion::logical_expr::{
    AggregateUDF, PartitionEvaluator, Signature, Volatility, WindowUDF, WindowUDFImpl,
};

use crate::exec::aggregate::state_of;
use crate::exec::scalar::next_id;

/// What is computed of a frame.
#[derive(Clone, Debug)]
pub(crate) enum Inner {
    /// An aggregate.
    Aggregate(Arc<AggregateUDF>),
    /// One of the rows: the first, the last, or one by its number.
    Value(WindowCode),
}

/// A call with an exclusion.
#[derive(Clone, Debug)]
pub(crate) struct Excluding {
    id: u64,
    inner: Inner,
    exclusion: Exclusion,
    /// Its own arguments.
    args: usize,
    /// Behind those is a FILTER.
    filtered: bool,
    ret: DataType,
    name: String,
    signature: Signature,
}

impl Excluding {
    /// The function for a call with so many arguments, with or without a FILTER behind them.
    pub(crate) fn function(
        inner: Inner,
        exclusion: Exclusion,
        (args, filtered): (usize, bool),
        ret: DataType,
    ) -> Arc<WindowUDF> {
        let own = match &inner {
            Inner::Aggregate(aggregate) => aggregate.name(),
            Inner::Value(WindowCode::FirstValue) => "first_value",
            Inner::Value(WindowCode::LastValue) => "last_value",
            Inner::Value(_) => "nth_value",
        };
        let name = format!("{own} exclude {}", exclusion.words().to_lowercase());
        let signature = Signature::any(args + usize::from(filtered), Volatility::Immutable);
        let id = next_id();
        let function = Excluding { id, inner, exclusion, args, filtered, ret, name, signature };
        Arc::new(WindowUDF::new_from_impl(function))
    }
}

impl PartialEq for Excluding {
    fn eq(&self, other: &Excluding) -> bool {
        self.id == other.id
    }
}

impl Eq for Excluding {}

impl Hash for Excluding {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

impl WindowUDFImpl for Excluding {
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
        Ok(Box::new(Frames { of: self.clone(), row: 0, peers: Vec::new(), group: 0 }))
    }

    fn field(&self, args: WindowUDFFieldArgs<'_>) -> Result<FieldRef> {
        Ok(Arc::new(Field::new(args.name(), self.ret.clone(), true)))
    }
}

/// The frames of a partition, one row after the other.
#[derive(Debug)]
struct Frames {
    of: Excluding,
    /// The next row.
    row: usize,
    /// Rows with equal keys; none before the first row.
    peers: Vec<Range<usize>>,
    /// That of the row.
    group: usize,
}

impl PartitionEvaluator for Frames {
    fn uses_window_frame(&self) -> bool {
        true
    }

    fn supports_bounded_execution(&self) -> bool {
        // Rows are counted from the beginning of the partition.
        false
    }

    fn evaluate(&mut self, values: &[ArrayRef], frame: &Range<usize>) -> Result<ScalarValue> {
        let own = self.of.args + usize::from(self.of.filtered);
        let (args, keys) = values.split_at(own);
        if self.peers.is_empty() {
            self.peers = peers(args, keys)?;
        }
        let row = self.row;
        self.row += 1;
        while self.peers.get(self.group).is_some_and(|peers| peers.end <= row) {
            self.group += 1;
        }
        let group = self.peers.get(self.group).cloned().unwrap_or(row..row + 1);
        let left = left_of(frame, self.of.exclusion, row, &group);
        self.of.compute(args, &left)
    }
}

/// Rows with equal keys: all of them without keys.
fn peers(args: &[ArrayRef], keys: &[ArrayRef]) -> Result<Vec<Range<usize>>> {
    let rows = args.iter().chain(keys).map(|array| array.len()).next().unwrap_or(0);
    let keys: Vec<SortColumn> =
        keys.iter().map(|key| SortColumn { values: key.clone(), options: None }).collect();
    evaluate_partition_ranges(rows, &keys)
}

/// What is left of the frame of a row in a group of peers.
fn left_of(
    frame: &Range<usize>,
    exclusion: Exclusion,
    row: usize,
    group: &Range<usize>,
) -> Vec<Range<usize>> {
    let out = match exclusion {
        Exclusion::CurrentRow => row..row + 1,
        Exclusion::Group | Exclusion::Ties => group.clone(),
    };
    let kept = match exclusion {
        Exclusion::Ties => row.max(frame.start)..(row + 1).min(frame.end),
        Exclusion::CurrentRow | Exclusion::Group => 0..0,
    };
    let before = frame.start..frame.end.min(out.start);
    let after = frame.start.max(out.end)..frame.end;
    [before, kept, after].into_iter().filter(|run| run.start < run.end).collect()
}

impl Excluding {
    fn compute(&self, args: &[ArrayRef], runs: &[Range<usize>]) -> Result<ScalarValue> {
        match &self.inner {
            Inner::Aggregate(function) => self.aggregate(function, args, runs),
            Inner::Value(code) => self.value(*code, args, runs),
        }
    }

    fn aggregate(
        &self,
        function: &AggregateUDF,
        args: &[ArrayRef],
        runs: &[Range<usize>],
    ) -> Result<ScalarValue> {
        let carrier = args.first().map(|first| first.data_type());
        let mut state = state_of(function, carrier)
            .ok_or_else(|| exec_datafusion_err!("{} over a frame with EXCLUDE", self.name))?;
        for run in runs {
            let slice = |array: &ArrayRef| array.slice(run.start, run.len());
            let mut rows: Vec<ArrayRef> = args[..self.args].iter().map(slice).collect();
            if let Some(kept) = args.get(self.args).map(slice) {
                let kept = known_true(kept.as_boolean());
                let filtered = rows.iter().map(|array| Ok(filter(array, &kept)?));
                rows = filtered.collect::<Result<_>>()?;
            }
            if rows.first().is_some_and(|first| !first.is_empty()) {
                state.update_batch(&rows)?;
            }
        }
        state.evaluate()
    }

    /// The value of one of the rows; NULL if there is none.
    fn value(
        &self,
        code: WindowCode,
        args: &[ArrayRef],
        runs: &[Range<usize>],
    ) -> Result<ScalarValue> {
        let found = match code {
            WindowCode::FirstValue => runs.first().map(|run| run.start),
            WindowCode::LastValue => runs.last().map(|run| run.end - 1),
            _ => {
                let counts = args[1].as_primitive_opt::<Int64Type>();
                let count = counts.filter(|counts| !counts.is_empty() && !counts.is_null(0));
                count.and_then(|counts| nth(runs, usize::try_from(counts.value(0)).ok()?))
            }
        };
        match found {
            Some(at) => ScalarValue::try_from_array(&args[0], at),
            None => ScalarValue::try_from(&self.ret),
        }
    }
}

/// The row of a number, from 1.
fn nth(runs: &[Range<usize>], number: usize) -> Option<usize> {
    let mut before = number.checked_sub(1)?;
    for run in runs {
        if before < run.len() {
            return Some(run.start + before);
        }
        before -= run.len();
    }
    None
}

fn known_true(condition: &BooleanArray) -> BooleanArray {
    condition.iter().map(|kept| Some(kept == Some(true))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_without_what_is_excluded() {
        let left = |exclusion: Exclusion, frame, row| {
            let runs = left_of(&frame, exclusion, row, &(2..5));
            runs.into_iter().flatten().collect::<Vec<usize>>()
        };
        assert_eq!(left(Exclusion::CurrentRow, 1..6, 3), [1, 2, 4, 5]);
        assert_eq!(left(Exclusion::Group, 1..6, 3), [1, 5]);
        assert_eq!(left(Exclusion::Ties, 1..6, 3), [1, 3, 5]);
        // The row and its peers may lie outside of the frame.
        assert_eq!(left(Exclusion::Ties, 0..3, 4), [0, 1]);
        assert_eq!(left(Exclusion::CurrentRow, 5..7, 2), [5, 6]);
        assert_eq!(left(Exclusion::Group, 3..4, 2), [0; 0]);
        assert_eq!(left(Exclusion::Ties, 4..4, 2), [0; 0]);
    }

    #[test]
    fn rows_are_numbered_over_all_runs() {
        let runs = [1..3, 4..5, 7..9];
        let all: Vec<Option<usize>> = (0..7).map(|n| nth(&runs, n)).collect();
        assert_eq!(all, [None, Some(1), Some(2), Some(4), Some(7), Some(8), None]);
    }
}
