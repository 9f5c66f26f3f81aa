//! What a kept plan takes for granted of its executions.
//!
//! ```text
//!   ROWS $1 PRECEDING       the value itself: another one needs another plan
//!   LIMIT $1 OFFSET $2      the plan gives the first 16, 32, 64, .. rows; an execution takes its
//!                           page of them, whichever fits
//! ```
//! How many rows a sort keeps is part of its plan: one for the first page is no good for the
//! hundredth, and one for the hundredth sorts too much for the first.

use braid_scalar::{Bound, EvalContext};
use braid_types::{Datum, GroupKey, SqlError, SqlResult, SqlState};

/// A plan gives at least so many first rows,
const FIRST_LEAST: usize = 16;
/// and at most so many.
const FIRST_MOST: usize = 1 << 20;
/// It is for pages that end behind such a part of them.
const PART: usize = 4;

/// See the [module documentation](self).
#[derive(Default)]
pub(crate) struct Assumed {
    pub(super) values: Vec<(Bound, Datum)>,
    pub(super) page: Option<Page>,
    /// Whether no rows are taken of the query that is being bound: it is not run.
    pub(super) takes_none: bool,
}

impl Assumed {
    /// Whether it is true of an execution.
    pub(crate) fn holds(&self, eval: &EvalContext) -> bool {
        let same = |(bound, then): &(Bound, Datum)| match bound.eval(&[], eval) {
            Ok(now) => GroupKey(vec![now]) == GroupKey(vec![then.clone()]),
            Err(_) => false,
        };
        self.values.iter().all(same) && self.page.as_ref().is_none_or(|page| page.fits(eval))
    }

    /// How many of the plan's rows an execution passes over, and how many it takes, if not all.
    ///
    /// # Errors
    /// Those of computing it, which nobody has who was told that it holds.
    pub(crate) fn page(&self, eval: &EvalContext) -> SqlResult<Option<(usize, usize)>> {
        self.page.as_ref().map_or(Ok(None), |page| page.now(eval))
    }
}

/// The rows of a result that each execution chooses.
pub(super) struct Page {
    limit: Bound,
    offset: Option<Bound>,
    /// So many rows does the plan give.
    pub(super) first: usize,
}

impl Page {
    /// The page for an execution, unless it wants too many rows.
    ///
    /// # Errors
    /// Of computing the values; 2201W and 2201X for negative ones.
    pub(super) fn of(
        limit: &Bound,
        offset: Option<&Bound>,
        eval: &EvalContext,
    ) -> SqlResult<Option<Page>> {
        let mut page = Page { limit: limit.clone(), offset: offset.cloned(), first: 0 };
        let Some((skipped, taken)) = page.now(eval)? else { return Ok(None) };
        let wanted = skipped.saturating_add(taken);
        page.first = wanted.clamp(FIRST_LEAST, FIRST_MOST).next_power_of_two();
        Ok((wanted <= FIRST_MOST).then_some(page))
    }

    /// Rows to pass over and to take; `None` if all are wanted.
    fn now(&self, eval: &EvalContext) -> SqlResult<Option<(usize, usize)>> {
        let Some(taken) = row_count(self.limit.eval(&[], eval)?, "LIMIT")? else { return Ok(None) };
        let skipped = match &self.offset {
            Some(offset) => row_count(offset.eval(&[], eval)?, "OFFSET")?.unwrap_or(0),
            None => 0,
        };
        Ok(Some((skipped, taken)))
    }

    fn fits(&self, eval: &EvalContext) -> bool {
        let Ok(Some((skipped, taken))) = self.now(eval) else { return false };
        let wanted = skipped.saturating_add(taken);
        wanted <= self.first && (self.first == FIRST_LEAST || wanted > self.first / PART)
    }
}

/// The number of rows that LIMIT or OFFSET names; `None` for NULL.
///
/// # Errors
/// 2201W and 2201X for negative ones.
pub(super) fn row_count(value: Datum, clause: &str) -> SqlResult<Option<usize>> {
    match value {
        Datum::Null => Ok(None),
        Datum::Int8(n) if n >= 0 => Ok(Some(n as usize)),
        _ => Err(SqlError::new(
            SqlState(if clause == "LIMIT" { "2201W" } else { "2201X" }),
            format!("{clause} must not be negative"),
        )),
    }
}
