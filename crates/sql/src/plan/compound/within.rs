//! What the parts of an own plan share.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::made::Made;
use crate::explain::{Actual, PlanLine};
use crate::plan::select::{Parts, Step};
use crate::session::Context;
use braid_rows::Row;

/// Rows of queries that were made, by the places of these.
type MadeByPlace = HashMap<usize, Arc<Vec<Row>>>;

/// What the parts of a plan share while it is planned and while it runs.
#[derive(Clone, Default)]
pub(crate) struct Within {
    /// While it is planned: what WITH names, the innermost last.
    pub(super) named: Arc<Vec<(String, Arc<Made>)>>,
    /// While it runs: the rows of queries that were made.
    pub(super) made: Option<Arc<Mutex<MadeByPlace>>>,
    /// EXPLAIN ANALYZE: what the steps of each chain do.
    pub(in crate::plan) measured: Option<Arc<Measured>>,
}

impl Within {
    /// As it is, with one more name.
    pub(super) fn naming(&self, name: String, made: Arc<Made>) -> Within {
        let mut named = self.named.to_vec();
        named.push((name, made));
        Within { named: Arc::new(named), ..self.clone() }
    }
}

/// What the steps of chains did.
#[derive(Default)]
pub(in crate::plan) struct Measured(Mutex<HashMap<usize, Vec<Actual>>>);

impl Measured {
    /// The chain's place: plans outlive their executions.
    fn place(parts: &Parts) -> usize {
        std::ptr::from_ref(parts) as usize
    }

    /// Changes what is known of a step.
    pub(in crate::plan) fn note(&self, parts: &Parts, step: usize, note: impl FnOnce(&mut Actual)) {
        let mut all = self.0.lock();
        let steps = all.entry(Measured::place(parts)).or_default();
        steps.resize(parts.steps.len(), Actual::default());
        note(&mut steps[step]);
    }

    /// What the steps of a chain did, each without those behind it.
    pub(in crate::plan) fn of(&self, parts: &Parts) -> Vec<Actual> {
        let known = self.0.lock().get(&Measured::place(parts)).cloned();
        known.unwrap_or_else(|| vec![Actual::default(); parts.steps.len()])
    }
}

/// EXPLAIN of a plan.
#[derive(Default)]
pub(in crate::plan) struct Telling<'a> {
    /// What was done, if it was run.
    pub(in crate::plan) ran: Option<&'a Measured>,
    /// Queries that were told already, by their places.
    told: Vec<usize>,
}

impl<'a> Telling<'a> {
    /// Nothing was told yet.
    pub(super) fn new(ran: Option<&'a Measured>) -> Telling<'a> {
        Telling { ran, told: Vec::new() }
    }

    /// The plan of the query whose rows a step reads, so deep; once for all who read them.
    pub(in crate::plan) fn query_of(
        &mut self,
        step: &Step,
        ctx: &Context,
        depth: usize,
    ) -> Vec<PlanLine> {
        let Some((made, _)) = &step.made else { return Vec::new() };
        let place = Arc::as_ptr(made) as usize;
        if self.told.contains(&place) {
            return Vec::new();
        }
        self.told.push(place);
        let mut lines = Vec::new();
        for query in made.queries() {
            lines.extend(query.lines(ctx, self));
        }
        for _ in 0..depth {
            lines = lines.into_iter().map(PlanLine::indented).collect();
        }
        lines
    }
}
