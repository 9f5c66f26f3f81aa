//! What rank a row would have among the rows of a group: `rank(..) WITHIN GROUP (ORDER BY ..)`.
//!
//! The row is given by the arguments before WITHIN GROUP, one for each key of its ORDER BY. It
//! stands in front of its equals for `rank`, `percent_rank` and `dense_rank`, behind them for
//! `cume_dist`.

use std::cmp::Ordering;
use std::collections::HashSet;

use braid_types::{Datum, GroupKey, SqlResult};

use super::accumulator::{Accumulator, AggregateTypes, OrderKey, count};
use crate::EvalContext;
use crate::registry::Table;

/// What is told of the place.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Told {
    Rank,
    DenseRank,
    PercentRank,
    CumeDist,
}

/// Rows that were compared with the given one.
#[derive(Debug)]
struct Place {
    told: Told,
    keys: Vec<OrderKey>,
    rows: i64,
    before: i64,
    equal: i64,
    /// The different ones among those before, if they are wanted.
    different: HashSet<GroupKey>,
}

impl Place {
    fn start(told: Told, types: AggregateTypes<'_>) -> Box<dyn Accumulator> {
        let (keys, different) = (types.sorted.to_vec(), HashSet::new());
        Box::new(Place { told, keys, rows: 0, before: 0, equal: 0, different })
    }
}

impl Accumulator for Place {
    fn update(&mut self, args: &[Datum]) -> SqlResult<()> {
        let (given, row) = args.split_at(self.keys.len().min(args.len()));
        let pairs = self.keys.iter().zip(row.iter().zip(given));
        let mut order = pairs.map(|(key, (value, given))| key.compare(value, given));
        self.rows += 1;
        match order.find(|order| order.is_ne()) {
            None => self.equal += 1,
            Some(Ordering::Less) => {
                self.before += 1;
                if self.told == Told::DenseRank {
                    self.different.insert(GroupKey(row.to_vec()));
                }
            }
            Some(_) => {}
        }
        Ok(())
    }

    fn finish(&self, _: &EvalContext) -> SqlResult<Datum> {
        let share = |part: i64, all: i64| Datum::Float8(part as f64 / all as f64);
        Ok(match self.told {
            Told::Rank => Datum::Int8(self.before + 1),
            Told::DenseRank => Datum::Int8(self.different.len() as i64 + 1),
            Told::PercentRank if self.rows == 0 => Datum::Float8(0.0),
            Told::PercentRank => share(self.before, self.rows),
            Told::CumeDist => share(self.before + self.equal + 1, self.rows + 1),
        })
    }

    fn parts(&self) -> Vec<Datum> {
        let counts = [self.rows, self.before, self.equal].map(Datum::Int8).into_iter();
        counts.chain(self.different.iter().map(|row| Datum::record(row.0.clone()))).collect()
    }

    fn merge(&mut self, parts: &[Datum]) -> SqlResult<()> {
        self.rows += count(parts, 0);
        self.before += count(parts, 1);
        self.equal += count(parts, 2);
        for row in parts.iter().skip(3) {
            if let Datum::Record(row) = row {
                self.different.insert(GroupKey(row.to_vec()));
            }
        }
        Ok(())
    }

    fn keeps_rows(&self) -> bool {
        self.told == Told::DenseRank
    }
}

/// Adds the aggregates of this file.
pub(super) fn fill(t: &mut Table) {
    t.aggregate("rank(...any) int8 -- the rank that a row would have", |types| {
        Place::start(Told::Rank, types)
    })
    .within_group_as_given();
    t.aggregate(
        "dense_rank(...any) int8 -- the rank that a row would have, without gaps",
        |types| Place::start(Told::DenseRank, types),
    )
    .within_group_as_given();
    t.aggregate("percent_rank(...any) float8 -- the share of the rows before a row", |types| {
        Place::start(Told::PercentRank, types)
    })
    .within_group_as_given();
    t.aggregate("cume_dist(...any) float8 -- the share of the rows up to a row", |types| {
        Place::start(Told::CumeDist, types)
    })
    .within_group_as_given();
}
