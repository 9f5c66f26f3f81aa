//! What is known of a table's rows, and what planners ask of it.
//!
//! ```text
//!   fractions of all rows      nulls | common values, one by one | the others, by the histogram
//!   histogram                  b0 ──── b1 ─ b2 ──────── b3         equally many rows in each part
//!   n < x                      whole parts below x, and of the part around x as much as lies
//!                              below it if its values are spread evenly
//! ```

use std::cmp::Ordering;
use std::ops::Bound;

use braid_types::Datum;

use crate::position::between;

/// Part of the rows for which a range is assumed to hold when nothing is known.
const UNKNOWN_RANGE: f64 = 1.0 / 3.0;

/// What is known of a table's rows. Of the time of its ANALYZE: how many rows there are now is
/// [`crate::Known::rows`].
#[derive(Clone, Debug, Default)]
pub struct TableStatistics {
    /// Number of rows.
    pub rows: f64,
    /// Average bytes of a row's values.
    pub row_bytes: f64,
    /// By ordinal; `None` where a column was not analyzed as it is now.
    pub columns: Vec<Option<ColumnStatistics>>,
    /// Of a table inside of a parent: how many rows of it a parent's row has.
    pub family: Option<FamilySize>,
}

/// How many rows of a table lie inside of one row of its parent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FamilySize {
    /// On average, over all rows of the parent.
    pub average: f64,
    /// The most that was seen in one.
    pub most: f64,
}

/// What is known of the values of a column.
#[derive(Clone, Debug, Default)]
pub struct ColumnStatistics {
    /// Part of the rows in which it is NULL.
    pub null_fraction: f64,
    /// Number of different values, NULL not among them.
    pub distinct: f64,
    /// Average bytes of a value that is not NULL.
    pub width: f64,
    /// The most common values with their parts of all rows, most common first.
    pub common: Vec<(Datum, f64)>,
    /// Bounds between which equally many of the other values lie, ascending.
    pub histogram: Vec<Datum>,
    /// How much the order of the values is the order of the rows: from -1 to 1.
    pub correlation: Option<f64>,
}

impl TableStatistics {
    /// What is known of the column with this ordinal.
    pub fn column(&self, ordinal: usize) -> Option<&ColumnStatistics> {
        self.columns.get(ordinal)?.as_ref()
    }
}

impl ColumnStatistics {
    /// Part of all rows whose value equals this one. NULL equals nothing.
    pub fn fraction_equal(&self, value: &Datum) -> f64 {
        if value.is_null() {
            return 0.0;
        }
        let known = self.common.iter().find(|(common, _)| common.cmp_sql(value).is_eq());
        match known {
            Some((_, fraction)) => *fraction,
            None => self.fraction_of_another(),
        }
    }

    /// Part of all rows whose value equals one that is not known yet.
    pub fn fraction_of_equal_unknown(&self) -> f64 {
        let fraction = (1.0 - self.null_fraction) / self.distinct.max(1.0);
        fraction.clamp(0.0, 1.0)
    }

    /// Part of all rows whose value lies between bounds. NULLs do not.
    pub fn fraction_between(&self, lower: Bound<&Datum>, upper: Bound<&Datum>) -> f64 {
        if is_null(lower) || is_null(upper) {
            return 0.0;
        }
        let inside = |value: &Datum| above(value, lower) && below(value, upper);
        let common: f64 = self.common.iter().filter(|(v, _)| inside(v)).map(|(_, f)| f).sum();
        let others = self.others();
        (common + others * self.part_of_others(lower, upper)).clamp(0.0, 1.0)
    }

    /// Part of all rows that hold neither NULL nor a common value.
    fn others(&self) -> f64 {
        let common: f64 = self.common.iter().map(|(_, fraction)| fraction).sum();
        (1.0 - self.null_fraction - common).clamp(0.0, 1.0)
    }

    /// Part of all rows that hold one value which is not among the common ones.
    fn fraction_of_another(&self) -> f64 {
        let values = (self.distinct - self.common.len() as f64).max(1.0);
        let fraction = self.others() / values;
        match self.common.last() {
            // It would be among them if there were more rows of it.
            Some((_, least)) => fraction.min(*least),
            None => fraction,
        }
    }

    /// Of the values that are not common, the part that lies between bounds.
    fn part_of_others(&self, lower: Bound<&Datum>, upper: Bound<&Datum>) -> f64 {
        if matches!((lower, upper), (Bound::Unbounded, Bound::Unbounded)) {
            return 1.0;
        }
        if self.histogram.len() < 2 {
            return UNKNOWN_RANGE;
        }
        let others = self.others();
        let one = if others > 0.0 { self.fraction_of_another() / others } else { 0.0 };
        // Where a bound stands among the values: in front of those equal to it, or behind them.
        let behind = |value: &Datum| {
            let known = self.spans(value);
            (self.part_below(value) + if known { one } else { 0.0 }).min(1.0)
        };
        let from = match lower {
            Bound::Unbounded => 0.0,
            Bound::Included(value) => self.part_below(value).min(1.0 - self.at_top(value, one)),
            Bound::Excluded(value) => behind(value),
        };
        let to = match upper {
            Bound::Unbounded => 1.0,
            Bound::Included(value) => behind(value),
            Bound::Excluded(value) => self.part_below(value),
        };
        (to - from).max(0.0)
    }

    /// Whether a value lies between the first and the last bound of the histogram.
    fn spans(&self, value: &Datum) -> bool {
        let at_least = |bound: Option<&Datum>| bound.is_some_and(|b| b.cmp_sql(value).is_le());
        let at_most = |bound: Option<&Datum>| bound.is_some_and(|b| b.cmp_sql(value).is_ge());
        at_least(self.histogram.first()) && at_most(self.histogram.last())
    }

    /// What the greatest value takes for itself.
    fn at_top(&self, value: &Datum, one: f64) -> f64 {
        let top = self.histogram.last().is_some_and(|last| last.cmp_sql(value).is_eq());
        if top { one } else { 0.0 }
    }

    /// Part of the histogram that lies below a value.
    fn part_below(&self, value: &Datum) -> f64 {
        let bounds = &self.histogram;
        let first = bounds.partition_point(|bound| bound.cmp_sql(value).is_lt());
        if first == 0 {
            return 0.0;
        }
        let Some(end) = bounds.get(first) else { return 1.0 };
        let within = between(&bounds[first - 1], end, value);
        ((first - 1) as f64 + within) / (bounds.len() - 1) as f64
    }
}

fn is_null(bound: Bound<&Datum>) -> bool {
    matches!(bound, Bound::Included(Datum::Null) | Bound::Excluded(Datum::Null))
}

fn above(value: &Datum, lower: Bound<&Datum>) -> bool {
    match lower {
        Bound::Unbounded => true,
        Bound::Included(bound) => value.cmp_sql(bound) != Ordering::Less,
        Bound::Excluded(bound) => value.cmp_sql(bound) == Ordering::Greater,
    }
}

fn below(value: &Datum, upper: Bound<&Datum>) -> bool {
    match upper {
        Bound::Unbounded => true,
        Bound::Included(bound) => value.cmp_sql(bound) != Ordering::Greater,
        Bound::Excluded(bound) => value.cmp_sql(bound) == Ordering::Less,
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Bound::{Excluded, Included, Unbounded};

    use super::*;

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    /// A tenth NULL, 20 % are 5, 10 % are 7, the others are spread over 0 .. 100.
    fn column() -> ColumnStatistics {
        ColumnStatistics {
            null_fraction: 0.1,
            distinct: 62.0,
            width: 4.0,
            common: vec![(Datum::Int4(5), 0.2), (Datum::Int4(7), 0.1)],
            histogram: [0, 10, 50, 100].map(Datum::Int4).to_vec(),
            correlation: None,
        }
    }

    #[test]
    fn equal_to_a_common_value_to_another_and_to_null() {
        let c = column();
        assert!(near(c.fraction_equal(&Datum::Int8(5)), 0.2), "types are compared as SQL does");
        assert!(near(c.fraction_equal(&Datum::Int4(8)), 0.6 / 60.0));
        assert!(near(c.fraction_equal(&Datum::Null), 0.0));
        assert!(near(c.fraction_of_equal_unknown(), 0.9 / 62.0));
        let capped = ColumnStatistics { distinct: 3.0, ..column() };
        assert!(near(capped.fraction_equal(&Datum::Int4(8)), 0.1), "less than the least common");
    }

    #[test]
    fn ranges_take_common_values_and_parts_of_the_histogram() {
        let c = column();
        let int = Datum::Int4;
        assert!(near(c.fraction_between(Unbounded, Unbounded), 0.9));
        let half = c.fraction_between(Included(&int(10)), Excluded(&int(30)));
        assert!(near(half, 0.6 * (0.5 / 3.0)), "{half}");
        let low = c.fraction_between(Unbounded, Excluded(&int(6)));
        assert!(near(low, 0.2 + 0.6 * (0.6 / 3.0)), "{low}");
        assert!(near(c.fraction_between(Included(&int(5)), Included(&int(5))), 0.2 + 0.01));
        assert!(near(c.fraction_between(Included(&int(20)), Included(&int(20))), 0.01));
        assert!(near(c.fraction_between(Included(&int(100)), Included(&int(100))), 0.01));
        assert!(near(c.fraction_between(Included(&int(0)), Included(&int(0))), 0.01));
        assert!(near(c.fraction_between(Excluded(&int(100)), Unbounded), 0.0));
        assert!(near(c.fraction_between(Unbounded, Excluded(&int(0))), 0.0));
        assert!(near(c.fraction_between(Excluded(&int(-5)), Unbounded), 0.9));
        assert!(near(c.fraction_between(Included(&int(60)), Included(&int(20))), 0.0));
        assert!(near(c.fraction_between(Excluded(&Datum::Null), Unbounded), 0.0));
    }

    #[test]
    fn whole_and_complement_agree() {
        let c = column();
        for at in -5..110 {
            let at = Datum::Int4(at);
            let below = c.fraction_between(Unbounded, Excluded(&at));
            let above = c.fraction_between(Included(&at), Unbounded);
            assert!((below + above - 0.9).abs() < 0.011, "{at:?} {below} {above}");
            assert!(below <= c.fraction_between(Unbounded, Included(&at)));
        }
    }

    #[test]
    fn without_a_histogram_a_part_is_assumed() {
        let c = ColumnStatistics { histogram: vec![], ..column() };
        let some = c.fraction_between(Included(&Datum::Int4(6)), Unbounded);
        assert!(near(some, 0.1 + 0.6 / 3.0), "{some}");
        let empty = ColumnStatistics::default();
        assert!(near(empty.fraction_of_equal_unknown(), 1.0));
    }
}
