//! Which of a table's keys is read: by estimated rows where ANALYZE has told something, else by
//! what the key's conditions look like.
//!
//! ```text
//!   WHERE state = 'open' AND day = $1         rows    a row costs    together
//!     all rows, filter both                  90,000        1           90,000
//!     index on state, filter the other       60,000       13          780,000
//!     index on day, filter the other            250       13            3,300   this one
//! ```
//! Statistics must promise much before they overrule the rules: a plan that changes with every
//! ANALYZE is worth less than one that is a little slower. A table is read whole instead of by an
//! index only if it is not small: whoever reads all of it is in the way of all who write there.

use braid_rows::TableLayout;
use braid_scalar::{Bound, Node};
use braid_types::Datum;

use crate::access::{Access, Values};
use crate::facts::{BEHIND_ENTRY, COVERING_ENTRY, Facts, Range};
use crate::share::Estimator;

/// What the row behind an entry of an index costs in our own plans, counted in rows of a scan.
pub const ROW_BEHIND_ENTRY: f64 = 12.0;
/// What beginning to read a span costs.
const SPAN: f64 = 10.0;
/// What a row costs that is sorted.
const SORTED: f64 = 2.0;
/// Another access than that of the rules costs less than this part of it.
const MARKEDLY: f64 = 0.7;
/// A table of fewer rows is not read whole if there is another way.
const SMALL: f64 = 1_000.0;
/// Values that an array is taken to have.
const ARRAY: f64 = 10.0;

impl Estimator<'_> {
    /// How many rows an access finds, before its rest is checked.
    pub fn rows_found(&self, access: &Access) -> f64 {
        let all = self.rows_known(access);
        if !access.either.is_empty() {
            let each = access.either.iter().map(|access| self.rows_found(access));
            return each.sum::<f64>().min(all);
        }
        let layout = self.facts.layout();
        let key = access.layout(layout).columns();
        if let Some(tuples) = &access.tuples {
            let columns: Vec<usize> =
                key[..tuples.fields.len()].iter().map(|column| column.ordinal).collect();
            return (tuples.rows.len() as f64 * self.facts.rows_for(&columns, all)).min(all);
        }
        let mut parts = Vec::with_capacity(access.eq.len());
        for (values, column) in access.eq.iter().zip(key) {
            parts.push(self.of_values(values, column.ordinal));
        }
        let spans: f64 = parts.iter().map(|(count, _)| count).product();
        if access.is_whole_key(layout) {
            return spans.min(all);
        }
        let mut rows = all;
        let mut narrowing = parts.as_slice();
        // What lies inside of one parent is known better than what values have in common.
        let inherited = layout.rows.pure_len();
        let family = self.facts.statistics().and_then(|s| s.family);
        if let Some(family) = family.filter(|_| access.index.is_none() && inherited > 0)
            && parts.len() >= inherited
        {
            let parents: f64 = parts[..inherited].iter().map(|(count, _)| count).product();
            rows = (parents * family.average).min(all);
            narrowing = &parts[inherited..];
        }
        let equal: f64 = narrowing.iter().map(|(_, share)| share).product();
        let behind = key.get(access.eq.len()).map(|column| {
            let range = Range {
                low: self.limit(&access.range.lower),
                high: self.limit(&access.range.upper),
            };
            self.facts.share_between(column.ordinal, &range)
        });
        (rows * equal * behind.unwrap_or(1.0)).max(1.0).min(all)
    }

    /// How many rows the key of an access knows: a partial index not all.
    fn rows_known(&self, access: &Access) -> f64 {
        let predicate = access.index.and_then(|at| {
            self.facts.layout().indexes[at].predicate.as_ref().map(|p| p.condition.conjuncts())
        });
        let whole = Estimator { offset: 0, ..*self };
        self.facts.rows() * predicate.map_or(1.0, |conjuncts| whole.share(&conjuncts))
    }

    fn limit(&self, bound: &Option<(Bound, bool)>) -> std::ops::Bound<Option<Datum>> {
        match bound {
            None => std::ops::Bound::Unbounded,
            Some((value, true)) => std::ops::Bound::Included(self.value(value)),
            Some((value, false)) => std::ops::Bound::Excluded(self.value(value)),
        }
    }

    /// How many values a key column may have, and the share of rows that have one of them.
    fn of_values(&self, values: &Values, ordinal: usize) -> (f64, f64) {
        match values {
            Values::List(list) => (list.len() as f64, self.any_of(ordinal, list)),
            Values::Array(array) => match self.value(array) {
                Some(Datum::Array(array)) => {
                    let equal = |value| self.facts.share_equal(ordinal, Some(value));
                    let share: f64 = array.items.iter().map(equal).sum();
                    (array.items.len() as f64, share.min(1.0))
                }
                _ => (ARRAY, (ARRAY * self.facts.share_equal(ordinal, None)).min(1.0)),
            },
        }
    }

    /// Whether entries of an index tell these columns.
    fn covers(&self, index: usize, columns: Option<&[bool]>) -> bool {
        let layout = self.facts.layout();
        columns.is_some_and(|columns| layout.is_covered_by(&layout.indexes[index], columns))
    }

    /// How many rows pass an access with its rest.
    pub fn rows_passing(&self, access: &Access) -> f64 {
        let found = self.rows_found(access);
        let passing = match (&access.tuples, access.either.as_slice()) {
            // Its rest may be the whole condition, of which each alternative's spans say a part.
            (None, [_, ..]) => access.either.iter().map(|one| self.rows_passing(one)).sum(),
            (None, []) => found * self.share(&access.rest),
            (Some(tuples), _) => {
                // The rows of values themselves, where the key does not take all of them in.
                let said = |c: &&Bound| match c.node() {
                    Node::Or(parts) => parts.len() == tuples.rows.len(),
                    _ => false,
                };
                let unsaid = access.rest.iter().filter(|c| !said(c)).cloned();
                found * self.share(&unsaid.collect::<Vec<_>>())
            }
        };
        passing.max(1.0).min(found)
    }

    /// The access of the rules, or one that costs markedly less. `gives` says which ones give the
    /// order that is wanted, `behind_entry` what the row behind an entry of an index costs.
    fn choose(
        &self,
        all: &[Access],
        by_rules: usize,
        behind_entry: f64,
        (wanted, gives): (Wanted<'_>, &dyn Fn(&Access) -> bool),
    ) -> usize {
        let cost = |access: &Access| {
            let (found, passing) = (self.rows_found(access), self.rows_passing(access));
            let row = match access.index {
                Some(at) if self.covers(at, wanted.columns) => COVERING_ENTRY,
                Some(_) => 1.0 + behind_entry,
                None => 1.0,
            };
            match wanted.first {
                _ if wanted.ordered && !gives(access) => SPAN + found * row + SORTED * passing,
                // Reading ends with the last row that is wanted.
                Some(first) => SPAN + found * row * (first / passing.max(1.0)).min(1.0),
                None => SPAN + found * row,
            }
        };
        let small = self.facts.rows() < SMALL;
        let is_way = |access: &Access| match access.index {
            _ if !access.is_full() => true,
            None => !small,
            Some(_) => wanted.ordered && gives(access),
        };
        let others =
            all.iter().enumerate().filter(|(at, access)| *at != by_rules && is_way(access));
        let others = others.map(|(at, access)| (at, cost(access)));
        let cheapest = others.min_by(|a, b| a.1.total_cmp(&b.1));
        match cheapest {
            Some((at, least)) if least < cost(&all[by_rules]) * MARKEDLY => at,
            _ => by_rules,
        }
    }
}

/// Whether there is a choice at all: most statements name a whole key, or no part of any.
fn is_open(all: &[Access], by_rules: &Access, layout: &TableLayout) -> bool {
    let decided = by_rules.is_whole_key(layout) || by_rules.is_point(layout);
    all.len() > 1 && !decided && !all.iter().all(Access::is_full)
}

/// What a query wants of the rows of its only table.
#[derive(Clone, Copy, Default)]
pub struct Wanted<'a> {
    /// They come in an order, for which rows are sorted where the key does not give it.
    pub ordered: bool,
    /// So many of them.
    pub first: Option<f64>,
    /// By ordinal, no other columns than these; `None`: all of them.
    pub columns: Option<&'a [bool]>,
}

/// The best of several accesses of our own plans: by the rules, unless statistics know one that
/// costs markedly less. See [`Estimator::choose`]. The facts are asked for where there is a choice.
pub fn choose<'f>(
    layout: &TableLayout,
    mut all: Vec<Access>,
    by_rules: usize,
    estimator: impl FnOnce() -> Estimator<'f>,
    (wanted, gives): (Wanted<'_>, &dyn Fn(&Access) -> bool),
) -> Access {
    if !is_open(&all, &all[by_rules], layout) {
        return all.swap_remove(by_rules);
    }
    let estimator = estimator();
    if estimator.facts.statistics().is_none() {
        return all.swap_remove(by_rules);
    }
    let best = estimator.choose(&all, by_rules, ROW_BEHIND_ENTRY, (wanted, gives));
    all.swap_remove(best)
}

/// The best access for the conditions of a scan that reads columns. What its constants are is not
/// asked: the plan outlives this execution.
pub fn for_scan(facts: &Facts, conditions: &[Bound], columns: &[bool]) -> Access {
    let layout = facts.layout();
    let mut all = Access::candidates(layout, conditions, 0);
    let mut best = Access::best_of(&all, layout);
    if is_open(&all, &all[best], layout) && facts.statistics().is_some() {
        let estimator = Estimator { facts, eval: None, offset: 0 };
        let wanted = Wanted { columns: Some(columns), ..Wanted::default() };
        best = estimator.choose(&all, best, BEHIND_ENTRY, (wanted, &|_| false));
    }
    all.swap_remove(best)
}
