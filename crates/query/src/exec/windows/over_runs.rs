//! Aggregates of many runs of the same rows, one list of runs after the other.
//!
//! ```text
//!   sums.rs   count, sum and avg of exact numbers    a difference of two sums of first rows
//!   tree.rs   what can be put together of parts      parts that are there, and rows at their edges
//!   here      lists and the like                     all rows of the runs: the result is as long
//! ```
//! So frames cost no more when they are large, whether an aggregate has an inverse or not. Floats
//! round: of few rows they are added up in their order, as PostgreSQL does for every frame, and of
//! many by parts.

use std::ops::Range;

use braid_scalar::Accumulator as State;
use braid_types::{Datum, SqlType};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use datafusion::common::Result;

use super::sums;
use super::tree::Tree;
use crate::arrow_form::Reader;
use crate::error::to_df;
use crate::exec::aggregate::Spec;
use crate::exec::execution::Execution;
use crate::exec::stoppable::check;

/// So many rows are taken between two looks at the cancel flag.
const LOOK_EVERY: usize = 4096;

/// The rows of a partition as an aggregate is given them.
pub(super) struct Input<'a> {
    pub(super) spec: &'a Spec,
    pub(super) args: &'a [ArrayRef],
    readers: Vec<Reader<'a>>,
    /// Of each row, whether it is given at all; `None`: all are.
    kept: Option<&'a BooleanArray>,
    pub(super) rows: usize,
    execution: &'a Execution,
    taken: usize,
    row: Vec<Datum>,
}

impl<'a> Input<'a> {
    /// Rows of arguments, with a filter or without.
    pub(super) fn new(
        spec: &'a Spec,
        args: &'a [ArrayRef],
        filter: Option<&'a ArrayRef>,
        rows: usize,
        execution: &'a Execution,
    ) -> Input<'a> {
        let readers = args.iter().map(|arg| Reader::new(arg)).collect();
        let kept = filter.and_then(|filter| filter.as_boolean_opt());
        Input { spec, args, readers, kept, rows, execution, taken: 0, row: Vec::new() }
    }

    /// Whether the filter leaves a row.
    pub(super) fn is_kept(&self, row: usize) -> bool {
        self.kept.is_none_or(|kept| kept.is_valid(row) && kept.value(row))
    }

    /// A state that has seen nothing.
    pub(super) fn start(&self) -> Box<dyn State> {
        self.spec.start()
    }

    /// Gives rows to a state.
    pub(super) fn update(&mut self, state: &mut dyn State, rows: Range<usize>) -> Result<()> {
        for row in rows {
            self.looked()?;
            if self.is_kept(row) {
                let values = self.readers.iter().zip(&self.spec.args);
                self.row.clear();
                self.row.extend(values.map(|(reader, ty)| reader.get(row, ty)));
                state.update(&self.row).map_err(to_df)?;
            }
        }
        Ok(())
    }

    /// Counts a step, and looks at the cancel flag now and then.
    pub(super) fn looked(&mut self) -> Result<()> {
        self.taken += 1;
        match self.taken % LOOK_EVERY {
            0 => check(&self.execution.cancel),
            _ => Ok(()),
        }
    }

    /// The result of a state.
    pub(super) fn finish(&self, state: &dyn State) -> Result<Datum> {
        state.finish(&self.execution.eval).map_err(to_df)
    }

    /// The aggregate of all rows of the runs, in their order.
    pub(super) fn whole(&mut self, runs: &[Range<usize>]) -> Result<Datum> {
        let mut state = self.start();
        for run in runs {
            self.update(&mut *state, run.clone())?;
        }
        self.finish(&*state)
    }

    /// Whether numbers are rounded when they are put together.
    pub(super) fn rounds(&self) -> bool {
        self.spec.args.iter().any(|ty| matches!(ty, SqlType::Float4 | SqlType::Float8))
    }
}

/// Aggregates of runs of rows.
pub(super) trait OverRuns {
    /// The aggregate of the rows of these runs, which are in order.
    fn value(&mut self, runs: &[Range<usize>]) -> Result<Datum>;
}

/// What computes an aggregate of any runs of these rows.
pub(super) fn over_runs<'a>(mut input: Input<'a>) -> Result<Box<dyn OverRuns + 'a>> {
    if let Some(sums) = sums::of(&mut input)? {
        return Ok(Box::new(sums));
    }
    Ok(match input.start().keeps_rows() {
        true => Box::new(Whole(input)),
        false => Box::new(Tree::new(input)),
    })
}

/// All rows of the runs, each time.
struct Whole<'a>(Input<'a>);

impl OverRuns for Whole<'_> {
    fn value(&mut self, runs: &[Range<usize>]) -> Result<Datum> {
        self.0.whole(runs)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use braid_scalar::{Code, resolve};

    use super::*;
    use crate::arrow_form::build;

    fn spec(name: &str, ty: &SqlType) -> Arc<Spec> {
        let choice = resolve(name, std::slice::from_ref(ty), false).expect("an aggregate");
        let Code::Aggregate(code) = choice.function.code else { panic!("{name}") };
        let (name, args, ret) = (name.to_string(), choice.args, choice.ret);
        let (distinct, filtered, place) = (false, false, Arc::default());
        let (order, within) = (Vec::new(), Vec::new());
        Arc::new(Spec { code, name, args, ret, distinct, filtered, order, within, place })
    }

    /// Numbers that jump about, every seventh of them NULL.
    fn number(ty: &SqlType, row: usize) -> Datum {
        let n = ((row * 7919) % 1009) as i64 - 500;
        match ty {
            _ if row.is_multiple_of(7) => Datum::Null,
            SqlType::Int4 => Datum::Int4(n as i32),
            SqlType::Float8 => Datum::Float8(n as f64 / 4.0),
            SqlType::Text => Datum::text(format!("{n}")),
            SqlType::Numeric(Some((_, scale))) => {
                let shown = braid_types::numeric::from_scaled(n.into(), *scale as u8);
                Datum::Numeric(Arc::new(shown))
            }
            _ => {
                let scale = if row.is_multiple_of(5) { 3 } else { 1 };
                Datum::Numeric(Arc::new(braid_types::numeric::from_scaled(n.into(), scale)))
            }
        }
    }

    #[test]
    fn parts_and_sums_say_what_all_rows_say() {
        let execution = Execution::new(
            braid_scalar::EvalContext::constant(),
            None,
            crate::exec::stoppable::Bounds::none(),
        );
        let rows = 700;
        let numeric = SqlType::Numeric(None);
        let declared = SqlType::Numeric(Some((10, 2)));
        let calls = [
            ("sum", SqlType::Int4),
            ("avg", SqlType::Int4),
            ("count", SqlType::Text),
            ("sum", declared.clone()),
            ("avg", declared),
            ("sum", numeric.clone()),
            ("avg", numeric.clone()),
            ("min", numeric.clone()),
            ("max", SqlType::Text),
            ("stddev", numeric),
            ("sum", SqlType::Float8),
            ("any_value", SqlType::Int4),
            ("bit_xor", SqlType::Int4),
        ];
        for (name, ty) in calls {
            let spec = spec(name, &ty);
            let values: Vec<Datum> = (0..rows).map(|row| number(&ty, row)).collect();
            let args = [build(&ty, values.iter())];
            let wanted: BooleanArray = (0..rows).map(|row| Some(row % 3 != 1)).collect();
            let filter: ArrayRef = Arc::new(wanted);
            for filter in [None, Some(&filter)] {
                let input = || Input::new(&spec, &args, filter, rows, &execution);
                let (mut fast, mut plain) = (over_runs(input()).expect("rows"), input());
                for row in (0..rows).step_by(11) {
                    let (from, to) = (row.saturating_sub(row % 400), (row + 250).min(rows));
                    for runs in [
                        vec![0..row, row + 1..rows],
                        std::iter::once(0..row + 1).collect(),
                        vec![from..row, row..row + 1, (row + 2).min(to)..to],
                        vec![],
                    ] {
                        let runs: Vec<Range<usize>> =
                            runs.into_iter().filter(|run| !run.is_empty()).collect();
                        let (a, b) = (fast.value(&runs), plain.whole(&runs));
                        let (a, b) = (a.expect("a value"), b.expect("a value"));
                        assert_eq!(format!("{a:?}"), format!("{b:?}"), "{name} {ty:?} {runs:?}");
                    }
                }
            }
        }
    }
}
