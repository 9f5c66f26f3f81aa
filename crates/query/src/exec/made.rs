//! Operators of plans that are kept, and when they are made anew.

use std::sync::Arc;

use datafusion::physical_plan::ExecutionPlan;

use super::execution::{most_rows, rows_expected};
use crate::run::Way;

/// A scan that gives so many times more or fewer rows than the plan was made for asks for another
/// plan.
const OTHER_ROWS: f64 = 10.0;
/// Not, if it gives no more than this.
const FEW_ROWS: f64 = 50_000.0;

/// Operators of a plan. Never executed themselves: each execution gets its own.
pub(crate) struct Made {
    pub(crate) way: Way,
    pub(crate) operators: Arc<dyn ExecutionPlan>,
    /// How many rows its scans were expected to give when it was made.
    expected: Vec<f64>,
}

impl Made {
    /// Operators that were made for the values of the execution that has begun.
    pub(crate) fn new(way: Way, operators: Arc<dyn ExecutionPlan>) -> Made {
        let expected = rows_expected(&operators);
        Made { way, operators, expected }
    }

    /// Whether a plan for the values of the execution that has begun might be another one.
    pub(crate) fn is_for_others(&self) -> bool {
        // To look for the values' shares costs more than many a small query.
        let then = self.expected.iter().copied().fold(0.0, f64::max);
        if then <= FEW_ROWS && most_rows(&self.operators) <= FEW_ROWS {
            return false;
        }
        let now = rows_expected(&self.operators);
        let differ = |(then, now): (&f64, &f64)| {
            let (less, more) = (then.min(*now), then.max(*now));
            more > FEW_ROWS && more > less * OTHER_ROWS
        };
        self.expected.iter().zip(&now).any(differ)
    }
}
