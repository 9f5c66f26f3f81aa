//! Aggregates over sorted values, called with WITHIN GROUP.

use std::sync::Arc;

use braid_types::{ArrayValue, Datum, SqlError, SqlResult, SqlState, SqlType};

use super::accumulator::{Accumulator, AggregateTypes, OrderKey};
use crate::EvalContext;
use crate::functions::f64_of;
use crate::registry::Table;

/// The value that occurs most often, of several the first.
#[derive(Debug)]
struct Mode(Vec<Datum>, OrderKey);

impl Accumulator for Mode {
    fn update(&mut self, args: &[Datum]) -> SqlResult<()> {
        if !args[0].is_null() {
            self.0.push(args[0].clone());
        }
        Ok(())
    }

    fn finish(&self, _: &EvalContext) -> SqlResult<Datum> {
        let mut sorted: Vec<&Datum> = self.0.iter().collect();
        sorted.sort_by(|a, b| self.1.compare(a, b));
        let mut best: (usize, &Datum) = (0, &Datum::Null);
        for run in sorted.chunk_by(|a, b| a.cmp_sql(b).is_eq()) {
            if run.len() > best.0 {
                best = (run.len(), run[0]);
            }
        }
        Ok(best.1.clone())
    }

    fn parts(&self) -> Vec<Datum> {
        self.0.clone()
    }

    fn merge(&mut self, parts: &[Datum]) -> SqlResult<()> {
        self.0.extend_from_slice(parts);
        Ok(())
    }

    fn keeps_rows(&self) -> bool {
        true
    }

    fn copies_at_end(&self) -> usize {
        1
    }
}

/// The value at a fraction of the sorted values.
#[derive(Debug)]
struct Percentile {
    fraction: Datum,
    values: Vec<Datum>,
    continuous: bool,
    /// The type of the values.
    element: SqlType,
    key: OrderKey,
}

impl Accumulator for Percentile {
    fn update(&mut self, args: &[Datum]) -> SqlResult<()> {
        match &args[0] {
            Datum::Null => {}
            Datum::Array(all) => all.items.iter().try_for_each(check_fraction)?,
            one => check_fraction(one)?,
        }
        self.fraction = args[0].clone();
        if !args[1].is_null() {
            self.values.push(args[1].clone());
        }
        Ok(())
    }

    fn finish(&self, _: &EvalContext) -> SqlResult<Datum> {
        if self.values.is_empty() || self.fraction.is_null() {
            return Ok(Datum::Null);
        }
        let mut values: Vec<&Datum> = self.values.iter().collect();
        values.sort_by(|a, b| self.key.compare(a, b));
        let Datum::Array(all) = &self.fraction else { return self.at(&values, &self.fraction) };
        let items = all.items.iter().map(|one| self.at(&values, one)).collect::<SqlResult<_>>()?;
        Ok(Datum::Array(Arc::new(ArrayValue::of(self.element.clone(), items, &all.dimensions()))))
    }

    fn parts(&self) -> Vec<Datum> {
        let mut parts = vec![self.fraction.clone()];
        parts.extend_from_slice(&self.values);
        parts
    }

    fn merge(&mut self, parts: &[Datum]) -> SqlResult<()> {
        if let [fraction, values @ ..] = parts {
            if !fraction.is_null() {
                self.fraction = fraction.clone();
            }
            self.values.extend_from_slice(values);
        }
        Ok(())
    }

    fn keeps_rows(&self) -> bool {
        true
    }

    fn copies_at_end(&self) -> usize {
        1
    }
}

/// 22003 for what is no fraction.
fn check_fraction(fraction: &Datum) -> SqlResult<()> {
    let number = f64_of(fraction);
    if fraction.is_null() || (0.0..=1.0).contains(&number) {
        return Ok(());
    }
    Err(SqlError::new(
        SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
        format!("percentile value {number} is not between 0 and 1"),
    ))
}

impl Percentile {
    /// The value at one fraction of the sorted values.
    fn at(&self, values: &[&Datum], fraction: &Datum) -> SqlResult<Datum> {
        if fraction.is_null() {
            return Ok(Datum::Null);
        }
        let fraction = f64_of(fraction);
        if !self.continuous {
            let at = ((fraction * values.len() as f64).ceil() as usize).max(1) - 1;
            return Ok(values[at.min(values.len() - 1)].clone());
        }
        let position = fraction * (values.len() - 1) as f64;
        let (low, high) = (position.floor() as usize, position.ceil() as usize);
        let share = position - low as f64;
        if low == high {
            return Ok(values[low].clone());
        }
        if let (Datum::Interval(a), Datum::Interval(b)) = (values[low], values[high]) {
            return Ok(Datum::Interval(a.add(&b.add(&a.neg()?)?.mul(share)?)?));
        }
        let (a, b) = (f64_of(values[low]), f64_of(values[high]));
        Ok(Datum::Float8(a + (b - a) * share))
    }
}

fn key(types: AggregateTypes<'_>) -> OrderKey {
    types.sorted.first().copied().unwrap_or_default()
}

fn percentile(types: AggregateTypes<'_>, continuous: bool) -> Box<dyn Accumulator> {
    let element = types.args.get(1).cloned().unwrap_or(SqlType::Text);
    let (fraction, values, key) = (Datum::Null, Vec::new(), key(types));
    Box::new(Percentile { fraction, values, continuous, element, key })
}

/// Adds the aggregates of this file.
pub(super) fn fill(t: &mut Table) {
    t.aggregate("mode(anyelement) anyelement -- the value that occurs most often", |types| {
        Box::new(Mode(Vec::new(), key(types)))
    })
    .within_group(0);
    for signature in [
        "percentile_cont(float8, float8) float8 -- the value at a fraction, between two if need be",
        "percentile_cont(float8, interval) interval",
        "percentile_cont(float8[], float8) float8[] -- one value for each fraction",
        "percentile_cont(float8[], interval) interval[]",
    ] {
        t.aggregate(signature, |types| percentile(types, true)).within_group(1);
    }
    for signature in [
        "percentile_disc(float8, anyelement) anyelement -- the first value at a fraction",
        "percentile_disc(float8[], anyelement) anyarray -- one value for each fraction",
    ] {
        t.aggregate(signature, |types| percentile(types, false)).within_group(1);
    }
}
