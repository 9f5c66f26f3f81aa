//! Joined rows: a chain of steps, each of which looks up rows for those of the step before.
//!
//! ```text
//!   step 0   o1 o2 o3 ..            a window of its rows
//!   step 1   what is wanted for o1 o2 o3 ..      one request, asked ahead
//!            for each o, in order: its rows      answered from there
//! ```
//! Rows come in the order of nested loops, and errors when the row comes that has them: a window
//! changes how often is asked. It is as large as the rows that are still wanted, and grows where
//! most rows find no match: by the share of those that did. What conditions with a volatile
//! function do is seen from outside, so there it is one row.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use braid_scalar::{Bound, Volatility};
use braid_types::{Datum, SqlError, SqlResult};
use bytes::Bytes;

use super::compound::{ByKey, Keys, Made, MadeRows};
use super::family::{FamilyScan, joined};
use super::gather::GatherScan;
use super::order::Met;
use super::passes::Passes;
use super::rows::{self, RowSource};
use super::select::{Parts, Step};
use super::semi::Semi;
use super::value::Computing;
use crate::explain::Timed;
use crate::session::Context;
use braid_rows::Liveness;
use braid_rows::{Row, row_memory};

/// Bytes of rows in a window.
const WINDOW_BYTES: usize = 1 << 20;
/// Each window of a step is at least so many times the one before.
const GROWTH: usize = 4;

/// Where the rows of an open step come from.
enum Source {
    /// Rows of the step's table.
    Table(RowSource),
    /// Rows of this and the following steps, joined already.
    Family(FamilyScan),
    /// The same, of tables that are not one chain.
    Gathered(GatherScan),
    /// The first rows for the row before, joined with it.
    First(VecDeque<(Bytes, Row)>),
}

impl Source {
    /// The next row of all steps of a pass.
    fn next_of_pass(&mut self, ctx: &Context, passes: &Passes) -> SqlResult<Option<Row>> {
        match (self, &passes.gather) {
            (Source::Family(scan), _) => scan.next_row(ctx),
            (Source::Gathered(scan), Some(gather)) => scan.next_row(ctx, gather),
            _ => Err(SqlError::internal("no pass over families")),
        }
    }

    /// Whether the first step of a pass has found a row.
    fn has_matched(&self) -> bool {
        match self {
            Source::Family(scan) => scan.matched,
            _ => true,
        }
    }
}

/// A step, or several in one pass, looking up rows for one row of the steps before.
struct Open {
    source: Source,
    /// The row of the steps before.
    outer: Row,
    matched: bool,
    /// Of a step that gives one.
    value: Option<Computing>,
}

/// What becomes of a row of a step's table.
enum Taken {
    /// It does not pass, or a value has taken it in.
    Passed,
    /// A value has taken it in, and wants no more.
    Enough,
    /// Joined with the row before.
    Row(Row),
}

impl Open {
    /// Takes the next row of the table of a step.
    fn take(&mut self, parts: &Parts, n: usize, own: Row, ctx: &Context) -> SqlResult<Taken> {
        let step = &parts.steps[n];
        let row = match self.outer.is_empty() {
            true => own,
            false => joined(&self.outer, own),
        };
        if !passes(&step.access.rest, &row, ctx)? {
            return Ok(Taken::Passed);
        }
        note(ctx, parts, n, (1, 0));
        if let (Some(value), Some(computing)) = (&step.value, &mut self.value) {
            let wants_more = value.add(computing, &row, &ctx.eval)?;
            return Ok(if wants_more { Taken::Passed } else { Taken::Enough });
        }
        self.matched = true;
        Ok(Taken::Row(row))
    }
}

/// Steps `first` to `last`, which are one pass if they are several.
struct Stage {
    first: usize,
    last: usize,
    /// Rows of the stages before, which were asked for.
    waiting: VecDeque<Row>,
    /// What comes after them, if it is no row.
    end: Option<SqlResult<()>>,
    /// Least size of the next window.
    window: usize,
    /// Rows of all windows so far.
    asked: usize,
    open: Option<Open>,
}

/// Joined rows, one at a time.
pub(super) struct Joined {
    ctx: Arc<Context>,
    parts: Arc<Parts>,
    /// Whether it is the passes for parameters that are alike.
    alike: bool,
    stages: Vec<Stage>,
    /// For each step, where entries of its index may be dead.
    liveness: Vec<Liveness>,
    /// For each step, the rows of its query by their keys.
    by_key: Vec<Option<(Arc<Vec<Row>>, ByKey)>>,
    /// Rows that the first stage begins with.
    start: VecDeque<Row>,
    /// Rows that will be wanted, if that is known.
    first: Option<usize>,
    given: usize,
    /// Whether conditions may be evaluated for rows that come later.
    foresees: bool,
}

/// Measures a part of what a step does, if somebody wants to know.
fn counted<T>(ctx: &Context, (parts, step): (&Parts, usize), work: impl FnOnce() -> T) -> T {
    let Some(measured) = &ctx.within.measured else { return work() };
    let timed = Timed::begin(ctx);
    let out = work();
    let did = timed.end(ctx);
    measured.note(parts, step, |known| known.add(did));
    out
}

/// A step has begun once more, or gives a row.
fn note(ctx: &Context, parts: &Parts, step: usize, (rows, loops): (u64, u64)) {
    if let Some(measured) = &ctx.within.measured {
        measured.note(parts, step, |known| known.note(rows, loops));
    }
}

/// Whether all of them hold.
pub(super) fn passes(conditions: &[Bound], row: &Row, ctx: &Context) -> SqlResult<bool> {
    for condition in conditions {
        if !condition.eval_bool(row, &ctx.eval)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// What becomes of a row for which these steps have found nothing: LEFT JOINs go on with NULLs, and
/// so does what there should be none of.
pub(super) fn without_match(steps: &[Step], mut row: Row, ctx: &Context) -> SqlResult<Option<Row>> {
    for step in steps {
        if !step.left && step.semi != Some(Semi::Absent) {
            return Ok(None);
        }
        row.extend(vec![Datum::Null; step.layout.table.columns.len()]);
        if !passes(&step.after, &row, ctx)? {
            return Ok(None);
        }
    }
    Ok(Some(row))
}

/// The row that comes when these steps, of which one may give a value, have no more rows for
/// `outer`: with the value that was wanted, or without match.
pub(super) fn ended(
    steps: &[Step],
    outer: Row,
    (value, matched): (Option<Computing>, bool),
    ctx: &Context,
) -> SqlResult<Option<Row>> {
    let (mut row, step) = (outer, &steps[0]);
    match (&step.value, value) {
        (Some(value), Some(computing)) => {
            row.extend(vec![Datum::Null; step.inner_width()]);
            row.push(value.finish(computing, &ctx.eval)?);
            Ok(passes(&step.after, &row, ctx)?.then_some(row))
        }
        _ if matched => Ok(None),
        _ => without_match(steps, row, ctx),
    }
}

/// The rows of a query for a row before them.
fn made_rows(
    ctx: &Arc<Context>,
    (made, keys): &(Arc<Made>, Option<Keys>),
    by_key: &mut Option<(Arc<Vec<Row>>, ByKey)>,
    outer: &Row,
) -> SqlResult<RowSource> {
    let Some(keys) = keys else {
        return Ok(RowSource::Made(MadeRows::new(made.rows(ctx)?, None)));
    };
    let (rows, by_key) = match by_key {
        Some(known) => known,
        None => {
            let rows = made.rows(ctx)?;
            let found = ByKey::new(keys, &rows, ctx)?;
            by_key.insert((rows, found))
        }
    };
    let places = by_key.places(keys, outer, ctx)?;
    Ok(RowSource::Made(MadeRows::new(rows.clone(), Some(places))))
}

impl Joined {
    /// All steps.
    pub(super) fn open(ctx: Arc<Context>, parts: Arc<Parts>, first: Option<usize>) -> Joined {
        let all = 0..parts.steps.len();
        Joined::of_steps(ctx, parts, first, (all, VecDeque::from([Row::new()])))
    }

    /// Some steps, which begin and end where passes do, for rows of those before.
    pub(super) fn of_steps(
        ctx: Arc<Context>,
        parts: Arc<Parts>,
        first: Option<usize>,
        (steps, start): (Range<usize>, VecDeque<Row>),
    ) -> Joined {
        let mut stages = Vec::new();
        let alike = parts.passes.are_alike(&ctx.eval);
        let mut n = steps.start;
        while n < steps.end {
            let last = parts.passes.of(alike).ends[n];
            let waiting = VecDeque::new();
            let (end, window, asked, open) = (None, 1, 0, None);
            stages.push(Stage { first: n, last, waiting, end, window, asked, open });
            n = last + 1;
        }
        let settled = |b: &Bound| b.volatility() != Volatility::Volatile;
        let conditions = |s: &Step| s.after.iter().chain(&s.access.rest).all(settled);
        let foresees = parts.steps.iter().all(conditions);
        let liveness = parts.steps.iter().map(|_| Liveness::default()).collect();
        let by_key = parts.steps.iter().map(|_| None).collect();
        Joined { ctx, parts, alike, stages, liveness, by_key, start, first, given: 0, foresees }
    }

    /// The next row, with the key of the table's row if there is one table.
    pub(super) fn next_row(&mut self) -> SqlResult<Option<(Bytes, Row)>> {
        let row = self.next_before(self.stages.len())?;
        self.given += usize::from(row.is_some());
        Ok(row)
    }

    /// The next row of all stages before this one.
    fn next_before(&mut self, at: usize) -> SqlResult<Option<(Bytes, Row)>> {
        match at.checked_sub(1) {
            Some(before) => self.next_of(before),
            None => Ok(self.start.pop_front().map(|row| (Bytes::new(), row))),
        }
    }

    /// The next row of all stages up to this one.
    fn next_of(&mut self, at: usize) -> SqlResult<Option<(Bytes, Row)>> {
        loop {
            self.ctx.check_cancel()?;
            if self.stages[at].open.is_none() && !self.open_next(at)? {
                return Ok(None);
            }
            let (ctx, parts, stage) = (&self.ctx, &self.parts, &mut self.stages[at]);
            let Some(open) = &mut stage.open else { continue };
            let (step, chosen) = (&parts.steps[stage.first], parts.passes.of(self.alike));
            let at = (&**parts, stage.first);
            let found = match &mut open.source {
                Source::First(rows) => rows.pop_front().inspect(|_| {
                    note(ctx, parts, stage.first, (1, 0));
                    open.matched = true;
                }),
                Source::Table(rows) => match counted(ctx, at, || rows.next_row(ctx))? {
                    None => None,
                    Some((key, own)) => match open.take(parts, stage.first, own, ctx)? {
                        Taken::Passed => continue,
                        Taken::Enough => None,
                        Taken::Row(row) => Some((key, row)),
                    },
                },
                pass => {
                    if let Some(row) = counted(ctx, at, || pass.next_of_pass(ctx, chosen))? {
                        note(ctx, parts, stage.first, (1, 0));
                        return Ok(Some((Bytes::new(), row)));
                    }
                    open.matched = pass.has_matched();
                    None
                }
            };
            let Some((key, row)) = found else {
                let Some(done) = stage.open.take() else { continue };
                let steps = &parts.steps[stage.first..=stage.last];
                match ended(steps, done.outer, (done.value, done.matched), ctx)? {
                    Some(row) => return Ok(Some((Bytes::new(), row))),
                    None => continue,
                }
            };
            match step.semi {
                None if passes(&step.after, &row, ctx)? => return Ok(Some((key, row))),
                None => {}
                // One is enough to know.
                Some(Semi::Exists) => {
                    stage.open = None;
                    return Ok(Some((key, row)));
                }
                Some(Semi::Absent) => stage.open = None,
            }
        }
    }

    /// Opens a stage for the next row of those before; `false` at the end.
    fn open_next(&mut self, at: usize) -> SqlResult<bool> {
        if self.stages[at].waiting.is_empty() && self.stages[at].end.is_none() {
            self.fill(at)?;
        }
        let first = &self.parts.steps[self.stages[at].first];
        let reverse = match first.in_order {
            Some(met) => met == Met::Backward,
            None => self.stages[at].first == 0 && self.parts.reverse,
        };
        let (ctx, parts, stage) = (&self.ctx, &self.parts, &mut self.stages[at]);
        let Some(outer) = stage.waiting.pop_front() else {
            return stage.end.clone().unwrap_or(Ok(())).map(|()| false);
        };
        let source = if stage.first == 0 && parts.passes.of(self.alike).gather.is_some() {
            Source::Gathered(GatherScan::open(ctx, parts.clone())?)
        } else if stage.last > stage.first {
            let scan =
                FamilyScan::open(ctx, parts.clone(), stage.first, stage.last, outer.clone())?;
            Source::Family(scan)
        } else {
            let s = &parts.steps[stage.first];
            let wanted = s.wanted.clone();
            let rows = match &s.made {
                Some(made) => made_rows(ctx, made, &mut self.by_key[stage.first], &outer)?,
                None => RowSource::lookup(ctx, &s.layout, &s.access, wanted, reverse, &outer)?,
            };
            let rows = match parts.locking {
                None => rows.covering(self.liveness[stage.first].clone()),
                Some(_) => rows,
            };
            let first = match &s.value {
                Some(value) => s.in_order.and_then(|_| value.enough(ctx)),
                None => self.first,
            };
            match (&s.first, first) {
                (Some(first), _) => {
                    let found = || first.find(ctx, s, (rows, &outer));
                    Source::First(counted(ctx, (parts, stage.first), found)?)
                }
                (None, Some(first)) => Source::Table(rows.expecting(first)),
                (None, None) => Source::Table(rows),
            }
        };
        note(ctx, parts, stage.first, (0, 1));
        let step = &parts.steps[stage.first];
        let value = step.value.as_ref().map(|value| value.start(ctx, step.in_order.is_some()));
        let value = value.transpose()?;
        stage.open = Some(Open { source, outer, matched: false, value });
        Ok(true)
    }

    /// Takes the next window of rows from the stages before, and asks for what is wanted for them.
    fn fill(&mut self, at: usize) -> SqlResult<()> {
        let most = if self.foresees { self.ctx.txn.batch_max() } else { 1 };
        let wanted = self.first.map_or(usize::MAX, |first| first.saturating_sub(self.given));
        let Stage { window, asked, .. } = self.stages[at];
        // So many rows more, if as large a share of them comes through as before.
        let likely = wanted.saturating_mul(asked) / self.given.max(1);
        let size = window.max(wanted).max(likely.min(asked.saturating_mul(GROWTH))).min(most);
        let mut rows = VecDeque::new();
        let mut bytes = 0;
        while rows.len() < size && bytes < WINDOW_BYTES && self.stages[at].end.is_none() {
            match self.next_before(at) {
                Ok(Some((_, row))) => {
                    bytes += row_memory(&row);
                    rows.push_back(row);
                }
                Ok(None) => self.stages[at].end = Some(Ok(())),
                Err(error) => self.stages[at].end = Some(Err::<(), SqlError>(error)),
            }
        }
        let (ctx, parts, stage) = (&self.ctx, &self.parts, &mut self.stages[at]);
        stage.window = stage.window.saturating_mul(GROWTH);
        stage.asked += rows.len();
        stage.waiting = rows;
        if stage.waiting.len() < 2 {
            return Ok(());
        }
        let step = &parts.steps[stage.first];
        if step.in_order.is_some() || step.made.is_some() {
            // Of each one's rows the first are wanted, or they are here.
            return Ok(());
        }
        let rows = stage.waiting.iter();
        let liveness = &self.liveness[stage.first];
        let covered = (parts.locking.is_none() && step.is_covered()).then_some(liveness);
        counted(ctx, (parts, stage.first), || match stage.last > stage.first {
            true => FamilyScan::ask_ahead(ctx, parts, (stage.first, stage.last), rows),
            false => rows::ask_ahead(ctx, &step.layout, &step.access, rows, covered),
        })
    }
}
