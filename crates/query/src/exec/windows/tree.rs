//! Aggregates of runs by parts of the rows that were aggregated before.
//!
//! ```text
//!   rows      ................ ................ ................ ................ ...
//!   level 0          a                b                c                d
//!   level 1                  ab                                cd
//!   a run          [..........|       b        |       cd        .. ]    rows, b, cd, rows
//! ```
//! A part is the state of an aggregate as values, 16 rows each, and of two parts each above. They
//! are made when the first run is long enough. Any run is rows and parts in their order, of which
//! there are about as many as its length has digits in base two. The first run of most frames is
//! that of the row before and some more: its state is kept.

use std::ops::Range;

use braid_scalar::Accumulator as State;
use braid_types::Datum;
use datafusion::common::Result;

use super::over_runs::{Input, OverRuns};
use crate::error::to_df;

/// Rows of a part of the lowest level.
const BLOCK: usize = 16;

/// Runs of fewer rows than this are not put together of parts.
const SHORT: usize = 2 * BLOCK;

/// As [`SHORT`], where parts round.
const SHORT_ROUNDING: usize = 128;

/// See the [module documentation](self).
pub(super) struct Tree<'a> {
    input: Input<'a>,
    /// Parts by level; a level has only those whose rows are all there.
    levels: Vec<Vec<Vec<Datum>>>,
    /// The state of the first run of the frame before.
    running: Option<(Range<usize>, Box<dyn State>)>,
    short: usize,
}

impl<'a> Tree<'a> {
    /// Of rows.
    pub(super) fn new(input: Input<'a>) -> Tree<'a> {
        let short = if input.rounds() { SHORT_ROUNDING } else { SHORT };
        Tree { input, levels: Vec::new(), running: None, short }
    }

    /// Makes the parts.
    fn build(&mut self) -> Result<()> {
        let blocks = self.input.rows / BLOCK;
        let mut level = Vec::with_capacity(blocks);
        for block in 0..blocks {
            let mut state = self.input.start();
            self.input.update(&mut *state, block * BLOCK..(block + 1) * BLOCK)?;
            level.push(state.parts());
        }
        while level.len() > 1 {
            let mut above = Vec::with_capacity(level.len() / 2);
            for pair in level.chunks_exact(2) {
                self.input.looked()?;
                let mut state = self.input.start();
                for part in pair {
                    state.merge(part).map_err(to_df)?;
                }
                above.push(state.parts());
            }
            self.levels.push(std::mem::replace(&mut level, above));
        }
        self.levels.push(level);
        Ok(())
    }

    /// Gives a run to a state.
    fn add(&mut self, state: &mut dyn State, run: Range<usize>) -> Result<()> {
        let (first, end) = (run.start.div_ceil(BLOCK), run.end / BLOCK);
        if run.len() < SHORT || first >= end {
            return self.input.update(state, run);
        }
        if self.levels.is_empty() {
            self.build()?;
        }
        self.input.update(state, run.start..first * BLOCK)?;
        let mut at = first;
        while at < end {
            // The highest part that begins here and does not go on behind the run.
            let most = (end - at).ilog2().min(at.trailing_zeros()) as usize;
            let level = most.min(self.levels.len() - 1);
            state.merge(&self.levels[level][at >> level]).map_err(to_df)?;
            at += 1 << level;
            self.input.looked()?;
        }
        self.input.update(state, end * BLOCK..run.end)
    }

    /// Makes the running state that of a run.
    fn run_to(&mut self, run: &Range<usize>) -> Result<()> {
        let (mut known, mut state) = match self.running.take() {
            Some((known, state)) if known.start == run.start && known.end <= run.end => {
                (known, state)
            }
            _ => (run.start..run.start, self.input.start()),
        };
        self.add(&mut *state, known.end..run.end)?;
        known.end = run.end;
        self.running = Some((known, state));
        Ok(())
    }
}

impl OverRuns for Tree<'_> {
    fn value(&mut self, runs: &[Range<usize>]) -> Result<Datum> {
        let rows: usize = runs.iter().map(Range::len).sum();
        let [first, rest @ ..] = runs else { return self.input.whole(runs) };
        if rows < self.short {
            return self.input.whole(runs);
        }
        self.run_to(first)?;
        let Some((_, state)) = &self.running else { return self.input.whole(runs) };
        if rest.is_empty() {
            return self.input.finish(&**state);
        }
        let mut all = self.input.start();
        all.merge(&state.parts()).map_err(to_df)?;
        for run in rest {
            self.add(&mut *all, run.clone())?;
        }
        self.input.finish(&*all)
    }
}
