//! What our own plans ask of [`braid_planner`]: the access of a statement that writes, and whether
//! a general plan is better.

use std::sync::Arc;

use braid_planner::access::Access;
use braid_planner::choice::{ROW_BEHIND_ENTRY, Wanted, choose as choose_access};
use braid_planner::facts::{Facts, LOOKUP};
use braid_planner::share::Estimator;
use braid_rows::TableLayout;
use braid_scalar::Bound;

use super::passes::Passes;
use super::rows;
use super::select::Step;
use crate::explain::PlanLine;
use crate::session::Context;

/// What a general plan costs before it reads anything, with a margin: own plans of this cost are
/// still quick.
const GENERAL: f64 = 20_000.0;
/// So many times reading the tables whole may a chain of look-ups cost.
const WHOLE_TABLES: f64 = 4.0;

/// Rows beside each other that own plans look at in the time in which a general plan begins, with a
/// margin for statements that are planned each time.
const FILTERED: f64 = 1_500.0;

/// Whether so many rows of one table are found by its key or an index, or are all of it, to be
/// filtered, sorted or put together, that a general plan is better, which does that in columns and
/// with all threads.
/// `together`: all that is made of them is aggregates, which are made of columns where nothing is
/// left to be filtered.
pub(super) fn finds_too_much(ctx: &Context, steps: &[Step], together: bool) -> bool {
    let [step] = steps else { return false };
    let by_columns = together && step.access.rest.is_empty();
    let beside = if by_columns { GENERAL } else { FILTERED };
    !(by_columns && step.access.is_full()) && looks_through(ctx, steps, beside, |_| 1.0)
}

/// As [`finds_too_much`] and [`looks_up_too_much`], for a plan of which a part waits for the first
/// rows, so that a general one would do more: that is better where very many are found.
pub(super) fn finds_very_much(ctx: &Context, steps: &[Step], passes: &Passes) -> bool {
    looks_through(ctx, steps, GENERAL, |_| 1.0) || looks_up_too_much(ctx, steps, &passes.ends)
}

/// Whether so many rows are looked through for the first that pass that a general plan is better.
pub(super) fn looks_through_much(ctx: &Context, steps: &[Step], first: f64) -> bool {
    let share = |step: &Step| (first / step.rows_expected(ctx, 1.0).max(1.0)).min(1.0);
    looks_through(ctx, steps, FILTERED, share) && !steps[0].access.rest.is_empty()
}

/// Whether the rows of one table that are looked at, a share of those that are found, are many:
/// more than so many that lie beside each other, or fewer that do not.
fn looks_through(ctx: &Context, steps: &[Step], beside: f64, share: impl Fn(&Step) -> f64) -> bool {
    let [step] = steps else { return false };
    // What the whole key names are few, whoever they are.
    if step.made.is_some()
        || step.access.is_whole_key(&step.layout)
        || step.access.is_point(&step.layout)
        || !ctx.db.general().reads_columns()
    {
        return false;
    }
    let rows = step.rows_found(ctx) * share(step);
    match step.access.index {
        Some(_) if !step.is_covered() => rows * cost_of_row(step) > GENERAL,
        _ => rows > beside,
    }
}

/// What a row that a step finds costs in our own plans.
fn cost_of_row(step: &Step) -> f64 {
    match step.access.index {
        Some(_) if !step.is_covered() => 1.0 + ROW_BEHIND_ENTRY,
        _ => 1.0,
    }
}

/// Whether a chain of look-ups costs so much that a general plan, which reads each table once, is
/// better even where the estimates are wrong and others write there. `ends` are those of
/// [`Passes`]: what one pass covers is not looked up.
pub(super) fn looks_up_too_much(ctx: &Context, steps: &[Step], ends: &[usize]) -> bool {
    if steps.len() < 2 || !ctx.db.general().reads_columns() {
        return false;
    }
    let (mut cost, mut whole, mut outer, mut pass) = (0.0, 0.0, 1.0, 0);
    for (n, step) in steps.iter().enumerate() {
        let found = step.rows_found(ctx);
        // The first row is enough to know.
        let found = if step.semi.is_some() { found.min(1.0) } else { found };
        let begins = n == 0 || n > pass;
        cost += outer * (found * cost_of_row(step) + if begins && n > 0 { LOOKUP } else { 0.0 });
        whole += step.facts(ctx).rows();
        outer = step.rows_expected(ctx, outer);
        pass = if begins { ends[n] } else { pass };
    }
    cost > GENERAL + whole * WHOLE_TABLES
}

/// The best of several accesses: by the rules, unless statistics know one that costs markedly less.
pub(super) fn choose(
    ctx: &Context,
    layout: &Arc<TableLayout>,
    offset: usize,
    all: Vec<Access>,
    by_rules: usize,
    order: (Wanted<'_>, &dyn Fn(&Access) -> bool),
) -> Access {
    let facts = Facts::new(ctx.db.clone(), layout.clone());
    let estimator = || Estimator { facts: &facts, eval: Some(&ctx.eval), offset };
    choose_access(layout, all, by_rules, estimator, order)
}

/// The best access for a condition of a statement that writes.
pub(crate) fn for_writing(
    ctx: &Context,
    layout: &Arc<TableLayout>,
    filter: Option<&Bound>,
) -> Access {
    let conjuncts = filter.map(Bound::conjuncts).unwrap_or_default();
    let all = Access::candidates(layout, &conjuncts, 0);
    let by_rules = Access::best_of(&all, layout);
    choose(ctx, layout, 0, all, by_rules, (Wanted::default(), &|_| false))
}

/// How an access of a statement that writes finds its rows, for EXPLAIN.
pub(crate) fn described(
    ctx: &Context,
    layout: &Arc<TableLayout>,
    access: &Access,
    indent: &str,
) -> Vec<PlanLine> {
    let facts = Facts::new(ctx.db.clone(), layout.clone());
    let estimator = Estimator { facts: &facts, eval: Some(&ctx.eval), offset: 0 };
    let mut lines = rows::describe(layout, access, indent, &|at| layout.column_name(at));
    lines[0].expect(estimator.rows_passing(access));
    lines
}
