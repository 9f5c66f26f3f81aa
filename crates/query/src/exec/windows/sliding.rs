//! The aggregate of a frame of few rows that moves, as DataFusion drives it: rows come at its end
//! and leave at its beginning.
//!
//! ```text
//!   rows of the frame     a   b   c   d  |  e   f
//!   states, made at once  abcd bcd cd d  |  ef, goes on
//! ```
//! A step costs a few states to be put together, not all rows of the frame: when all states in
//! front are used up, the rows that are there get states of their own, from the last to the first.
//! Few rows, and lists, whose result is as long as the frame, are taken anew at each step.

use braid_rows::row_memory;
use std::collections::VecDeque;
use std::sync::Arc;

use braid_scalar::Accumulator as State;
use braid_types::{Datum, SqlType};
use datafusion::arrow::array::ArrayRef;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::Accumulator;

use crate::arrow_form;
use crate::error::to_df;
use crate::exec::aggregate::{Spec, rows};
use crate::exec::stoppable::check;

/// Frames of fewer rows than this are taken anew.
const SHORT: usize = 16;

/// As [`SHORT`], of floats, which round when they are put together in another order.
const SHORT_FLOATS: usize = 128;

/// So many rows are taken between two looks at the cancel flag.
const LOOK_EVERY: usize = 4096;

/// See the [module documentation](self).
#[derive(Debug)]
pub(crate) struct Sliding {
    spec: Arc<Spec>,
    rows: VecDeque<Vec<Datum>>,
    /// States of each of the first rows and all behind it of those, the first one last.
    front: Vec<Vec<Datum>>,
    /// The state of the rows behind those; `None`: some of them have left.
    back: Option<Box<dyn State>>,
    /// Whether all rows are taken at each step.
    anew: bool,
    short: usize,
    /// Rows since somebody looked at the cancel flag.
    taken: usize,
}

impl Sliding {
    /// Of no rows.
    pub(crate) fn new(spec: Arc<Spec>) -> Sliding {
        let floats = spec.args.iter().any(|ty| matches!(ty, SqlType::Float4 | SqlType::Float8));
        let start = spec.start();
        Sliding {
            rows: VecDeque::new(),
            front: Vec::new(),
            anew: start.keeps_rows(),
            back: Some(start),
            short: if floats { SHORT_FLOATS } else { SHORT },
            taken: 0,
            spec,
        }
    }

    fn own<'a>(&self, row: &'a [Datum]) -> &'a [Datum] {
        &row[..self.spec.args.len()]
    }

    fn whole(&self) -> Result<Datum> {
        let mut state = self.spec.start();
        for row in &self.rows {
            state.update(self.own(row)).map_err(to_df)?;
        }
        self.spec.finish(&*state)
    }

    /// Gives all rows that are there a state in front.
    fn turn(&mut self) -> Result<()> {
        let mut front: Vec<Vec<Datum>> = Vec::with_capacity(self.rows.len());
        for row in self.rows.iter().rev() {
            let mut state = self.spec.start();
            state.update(self.own(row)).map_err(to_df)?;
            if let Some(behind) = front.last() {
                state.merge(behind).map_err(to_df)?;
            }
            front.push(state.parts());
        }
        self.front = front;
        self.back = Some(self.spec.start());
        Ok(())
    }

    fn value(&mut self) -> Result<Datum> {
        if self.anew || self.rows.len() < self.short {
            return self.whole();
        }
        if self.back.is_none() {
            self.turn()?;
        }
        let Some(back) = &self.back else { return self.whole() };
        let Some(front) = self.front.last() else { return self.spec.finish(&**back) };
        let mut state = self.spec.start();
        state.merge(front).map_err(to_df)?;
        state.merge(&back.parts()).map_err(to_df)?;
        self.spec.finish(&*state)
    }
}

impl Accumulator for Sliding {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let spec = self.spec.clone();
        rows(&spec, values, |row| {
            if let Some(back) = self.back.as_mut().filter(|_| !self.anew) {
                back.update(&row[..spec.args.len()]).map_err(to_df)?;
            }
            self.rows.push_back(row);
            Ok(())
        })
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        // Frames only move forward, so what leaves is what came first.
        let leaving = values.first().map_or(0, |a| a.len()).min(self.rows.len());
        self.rows.drain(..leaving);
        match self.front.len().checked_sub(leaving) {
            Some(left) => self.front.truncate(left),
            None => {
                self.front.clear();
                self.back = None;
            }
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let anew = self.anew || self.rows.len() < self.short;
        self.taken += if anew { self.rows.len() } else { SHORT };
        if self.taken >= LOOK_EVERY {
            self.taken = 0;
            check(&self.spec.place.execution_or_nothing().cancel)?;
        }
        let value = self.value()?;
        Ok(arrow_form::scalar(value, &self.spec.ret))
    }

    fn size(&self) -> usize {
        let rows = self.rows.iter().chain(&self.front);
        size_of::<Self>() + rows.map(|row| row_memory(row)).sum::<usize>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let parts: Vec<Datum> = self.rows.iter().map(|row| Datum::record(row.clone())).collect();
        Ok(vec![arrow_form::scalar(Datum::record(parts), &SqlType::Record)])
    }

    fn merge_batch(&mut self, _: &[ArrayRef]) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use braid_scalar::{Code, resolve};
    use datafusion::arrow::array::Array;

    use super::*;

    #[test]
    fn states_in_front_and_behind_say_what_all_rows_say() {
        for (name, ty) in [("max", SqlType::Int4), ("sum", SqlType::Numeric(None))] {
            let choice = resolve(name, std::slice::from_ref(&ty), false).expect("an aggregate");
            let Code::Aggregate(code) = choice.function.code else { panic!("{name}") };
            let (args, ret, place) = (choice.args, choice.ret, Arc::default());
            let (name, order, within) = (name.to_string(), Vec::new(), Vec::new());
            let (distinct, filtered) = (false, false);
            let spec = Spec { code, name, args, ret, distinct, filtered, order, within, place };
            let mut sliding = Sliding::new(Arc::new(spec));
            let number = |row: i32| match ty {
                SqlType::Int4 => Datum::Int4(row * 7919 % 101),
                _ => Datum::Numeric(Arc::new((row * 7919 % 101).into())),
            };
            let rows: Vec<Datum> = (0..600).map(number).collect();
            let column = arrow_form::build(&ty, rows.iter());
            let mut frame = 0..0;
            for step in 0..600 {
                // It grows and shrinks, sometimes by many rows at once.
                let end = (step + 1 + 37 * (step % 5)).clamp(frame.end, rows.len());
                sliding.update_batch(&[column.slice(frame.end, end - frame.end)]).expect("came");
                let start = (step.saturating_sub(90 * (step % 3))).clamp(frame.start, end);
                let gone = column.slice(frame.start, start - frame.start);
                sliding.retract_batch(&[gone]).expect("gone");
                frame = start..end;
                let (value, whole) = (sliding.value(), sliding.whole());
                let (value, whole) = (value.expect("a value"), whole.expect("a value"));
                assert_eq!(format!("{value:?}"), format!("{whole:?}"), "step {step}");
            }
            assert!(!sliding.front.is_empty(), "states in front were used");
        }
    }
}
