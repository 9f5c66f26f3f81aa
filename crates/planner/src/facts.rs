//! What is known about a stored table: rows, statistics, and what reading it by a key costs.
//!
//! Costs are counted in rows of a scan that gives columns: one costs 1, beginning a look-up as much
//! as dozens of them, a row behind an entry of an index half of that, an entry that tells all that
//! is wanted little more than a row. Where the last large scan found columns beside its blocks,
//! a row of the next one costs a fraction.

use std::fmt;
use std::ops::Bound;
use std::sync::{Arc, OnceLock};

use braid_types::Datum;

use crate::Known;
use crate::access::Access;
use crate::statistics::TableStatistics;
use braid_rows::{IndexLayout, KeyColumn, Layout, TableLayout};

/// Most different keys of a join that its other side is told one by one, wherever there is memory
/// for them.
pub const LOOKUPS_MAX: usize = 100_000;
/// So many keys are told even where there is little.
pub const LOOKUPS_LEAST: usize = 8_000;
/// Bytes that such a key takes: as it is told, as a condition, as a span, as a request.
pub const LOOKUP_BYTES: usize = 800;
/// Rows that are read in the time that a look-up takes to begin.
pub const LOOKUP: f64 = 40.0;
/// What a row of a large scan costs whose columns lie beside its block.
const KEPT: f64 = 0.15;
/// Of fewer rows in a span nothing is concluded.
const MANY: u64 = 10_000;
/// Rows that are read in the time of one behind an entry of an index.
pub(crate) const BEHIND_ENTRY: f64 = 20.0;
/// The same of an entry that tells all that is wanted of its row.
pub(crate) const COVERING_ENTRY: f64 = 1.5;
/// Share of a table that a range of a key has, when nothing else is known.
const RANGE: f64 = 0.3;
/// Share of rows that pass a condition about which nothing is known.
pub const SOME: f64 = 0.3;
/// The same for a pattern.
pub const LIKE: f64 = 0.05;
/// The same for one end of a range.
const HALF_OPEN: f64 = 1.0 / 3.0;
/// The same for both.
const BOTH_ENDS: f64 = 0.025;
/// The same for being NULL.
const NULLS: f64 = 0.005;

/// See the [module documentation](self). Looked up when somebody asks.
pub struct Facts {
    known: Arc<dyn Known>,
    layout: Arc<TableLayout>,
    rows: OnceLock<f64>,
    statistics: OnceLock<Option<Arc<TableStatistics>>>,
}

/// Bounds on one column, whose values may be unknown.
#[derive(Clone, Debug)]
pub struct Range {
    /// The lower one.
    pub low: Bound<Option<Datum>>,
    /// The upper one.
    pub high: Bound<Option<Datum>>,
}

impl Default for Range {
    fn default() -> Range {
        Range { low: Bound::Unbounded, high: Bound::Unbounded }
    }
}

/// A bound with its value; `None` if that is not known.
fn known(bound: &Bound<Option<Datum>>) -> Option<Bound<&Datum>> {
    Some(match bound {
        Bound::Unbounded => Bound::Unbounded,
        Bound::Included(value) => Bound::Included(value.as_ref()?),
        Bound::Excluded(value) => Bound::Excluded(value.as_ref()?),
    })
}

/// How many whole numbers or days lie between bounds; `None` if they are none, or one is open.
fn integers_between(low: Bound<&Datum>, high: Bound<&Datum>) -> Option<f64> {
    let number = |value: &Datum| match value {
        Datum::Int2(n) => Some(f64::from(*n)),
        Datum::Int4(n) | Datum::Date(n) => Some(f64::from(*n)),
        Datum::Int8(n) => Some(*n as f64),
        _ => None,
    };
    let edge = |bound: Bound<&Datum>, inwards: f64| match bound {
        Bound::Unbounded => None,
        Bound::Included(value) => number(value),
        Bound::Excluded(value) => Some(number(value)? + inwards),
    };
    Some((edge(high, -1.0)? - edge(low, 1.0)? + 1.0).max(0.0))
}

impl fmt::Debug for Facts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Facts of {}", self.layout.table.name)
    }
}

impl Facts {
    /// About a table.
    pub fn new(known: Arc<dyn Known>, layout: Arc<TableLayout>) -> Facts {
        Facts { known, layout, rows: OnceLock::new(), statistics: OnceLock::new() }
    }

    /// How the table is stored.
    pub fn layout(&self) -> &TableLayout {
        &self.layout
    }

    /// How many rows it had, about, when somebody asked first.
    pub fn rows(&self) -> f64 {
        *self.rows.get_or_init(|| self.rows_now())
    }

    /// How many rows it has, about.
    pub fn rows_now(&self) -> f64 {
        self.known.rows(&self.layout)
    }

    /// How many bytes its rows have in files, about.
    pub fn bytes(&self) -> f64 {
        self.known.bytes(&self.layout)
    }

    /// What ANALYZE has found out.
    pub fn statistics(&self) -> Option<&TableStatistics> {
        let found = || self.known.statistics(&self.layout.table);
        self.statistics.get_or_init(found).as_deref()
    }

    /// How many different values a column has.
    pub fn distinct(&self, ordinal: usize) -> f64 {
        let known = self.statistics().and_then(|s| s.column(ordinal).map(|c| c.distinct));
        if let Some(distinct) = known {
            return distinct.max(1.0);
        }
        let rows = self.rows().max(1.0);
        let key = self.layout.rows.columns();
        let unique = |i: &IndexLayout| {
            i.tells_rows_apart() && i.declared == 1 && i.layout.columns()[0].ordinal == ordinal
        };
        if key.len() == 1 && key[0].ordinal == ordinal || self.layout.indexes.iter().any(unique) {
            return rows;
        }
        // A part of a key: more values the fewer parts there are.
        if key.iter().any(|column| column.ordinal == ordinal) {
            return rows.powf(1.5 / key.len() as f64).min(rows).max(1.0);
        }
        (rows / 10.0).clamp(1.0, 200.0).max(rows.sqrt())
    }

    /// Share of the rows whose value equals this one, or one that is not known yet.
    pub fn share_equal(&self, ordinal: usize, value: Option<&Datum>) -> f64 {
        match (self.statistics().and_then(|s| s.column(ordinal)), value) {
            (Some(column), Some(value)) => column.fraction_equal(value),
            (Some(column), None) => column.fraction_of_equal_unknown(),
            (None, _) => 1.0 / self.distinct(ordinal),
        }
    }

    /// Share of the rows whose value lies between bounds; `None` is a value that is not known yet.
    pub fn share_between(&self, ordinal: usize, range: &Range) -> f64 {
        let edge = |b: &Bound<Option<Datum>>| !matches!(b, Bound::Unbounded);
        let unknown = match (edge(&range.low), edge(&range.high)) {
            (false, false) => return 1.0,
            (true, true) => BOTH_ENDS,
            _ => HALF_OPEN,
        };
        let column = self.statistics().and_then(|s| s.column(ordinal));
        match (column, known(&range.low), known(&range.high)) {
            (Some(column), Some(low), Some(high)) => column.fraction_between(low, high),
            (_, Some(low), Some(high)) => match integers_between(low, high) {
                // So many values have so many rows at most.
                Some(values) => unknown.min(values / self.distinct(ordinal)),
                None => unknown,
            },
            _ => unknown,
        }
    }

    /// Share of the rows in which a column is NULL.
    pub fn share_of_nulls(&self, ordinal: usize) -> f64 {
        let column = self.statistics().and_then(|s| s.column(ordinal));
        column.map_or(NULLS, |column| column.null_fraction)
    }

    /// Whether some of these columns tell rows apart.
    pub fn has_key_within<'a>(&self, columns: impl Iterator<Item = &'a str>) -> bool {
        let given = self.ordinals(columns);
        let all = |keys: &[KeyColumn]| keys.iter().all(|key| given.contains(&key.ordinal));
        let unique =
            |i: &IndexLayout| i.tells_rows_apart() && all(&i.layout.columns()[..i.declared]);
        all(self.layout.rows.columns()) || self.layout.indexes.iter().any(unique)
    }

    /// What it costs to look up so many values of these columns for the wanted ones, by ordinal;
    /// `None` if no key begins with any of them.
    pub fn cost_by_columns<'a>(
        &self,
        columns: impl Iterator<Item = &'a str>,
        values: f64,
        wanted: &[bool],
    ) -> Option<f64> {
        let given = self.ordinals(columns);
        let leading = |layout: &Layout, most: usize| -> Vec<usize> {
            let keys = layout.columns()[..most].iter().map(|key| key.ordinal);
            keys.take_while(|ordinal| given.contains(ordinal)).collect()
        };
        let rows = &self.layout.rows;
        let own = leading(rows, rows.columns().len());
        let indexes = self.layout.indexes.iter().filter(|i| i.predicate.is_none());
        let entry = |i: &IndexLayout| match self.layout.is_covered_by(i, wanted) {
            true => COVERING_ENTRY,
            false => BEHIND_ENTRY,
        };
        let indexes = indexes.map(|i| (leading(&i.layout, i.declared), entry(i)));
        let costs = std::iter::once((own, 1.0)).chain(indexes);
        let costs = costs.filter(|(bound, _)| !bound.is_empty());
        let costs =
            costs.map(|(bound, row)| values * (LOOKUP + self.rows_for(&bound, self.rows()) * row));
        costs.reduce(f64::min)
    }

    /// Notes how many rows a scan of so many spans has read, and how many of them have columns
    /// beside their blocks. Look-ups do not use those, and tell nothing: else whoever has looked up
    /// once would do so for ever.
    pub fn note_read(&self, spans: usize, (rows, kept): (u64, u64)) {
        if rows >= MANY * spans as u64 {
            self.known.note_beside(&self.layout.table, kept as f64 / rows as f64);
        }
    }

    /// What it costs to read the wanted columns in these spans of an access.
    pub fn cost(&self, access: &Access, spans: usize, all_rows: f64, wanted: &[bool]) -> f64 {
        let row = match access.index.map(|at| &self.layout.indexes[at]) {
            // A large scan the last time, and this one.
            None if spans as f64 * MANY as f64 <= all_rows => {
                1.0 - self.known.beside(&self.layout.table) * (1.0 - KEPT)
            }
            None => 1.0,
            Some(index) if self.layout.is_covered_by(index, wanted) => COVERING_ENTRY,
            Some(_) => BEHIND_ENTRY,
        };
        if access.is_full() {
            return all_rows * row;
        }
        let bound = access.bound_columns(&self.layout);
        let rows = match bound.is_empty() {
            true => all_rows * RANGE,
            false => spans as f64 * self.rows_for(&bound, all_rows),
        };
        spans as f64 * LOOKUP + rows.min(all_rows) * row
    }

    /// The least that so many look-ups cost.
    pub fn look_up_cost(&self, lookups: usize) -> f64 {
        lookups as f64 * LOOKUP
    }

    /// How many look-ups cost no more than that, at the least.
    pub fn lookups_for(&self, cost: f64) -> usize {
        (cost / LOOKUP) as usize
    }

    /// Rows with the same values in these columns.
    pub(crate) fn rows_for(&self, columns: &[usize], all_rows: f64) -> f64 {
        let different: f64 = columns.iter().map(|ordinal| self.distinct(*ordinal)).product();
        (all_rows / different.max(1.0)).max(1.0)
    }

    fn ordinals<'a>(&self, columns: impl Iterator<Item = &'a str>) -> Vec<usize> {
        let own = &self.layout.table.columns;
        columns.filter_map(|name| own.iter().position(|c| c.name == *name)).collect()
    }
}
