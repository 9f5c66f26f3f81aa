//! `count`, `sum`, `avg` and the spread of values.

use std::sync::Arc;

use braid_types::numeric::{self, BigDecimal};
use braid_types::{Datum, Interval, SqlError, SqlResult, SqlState, SqlType};

use super::accumulator::{Accumulator, AggregateTypes, count, exact, float_overflow, part, zero};
use crate::EvalContext;
use crate::functions::{f64_of, i64_of};
use crate::registry::Table;

/// `count`, `regr_count`: how many rows without a NULL among the arguments.
#[derive(Debug, Default)]
pub(super) struct Count(i64);

impl Accumulator for Count {
    fn update(&mut self, args: &[Datum]) -> SqlResult<()> {
        self.0 += i64::from(!args.iter().any(Datum::is_null));
        Ok(())
    }

    fn update_many(&mut self, args: &[Datum], rows: usize) -> SqlResult<()> {
        self.0 += if args.iter().any(Datum::is_null) { 0 } else { rows as i64 };
        Ok(())
    }

    fn update_integers(&mut self, _: i128, number: usize) -> bool {
        self.0 += number as i64;
        true
    }

    fn finish(&self, _: &EvalContext) -> SqlResult<Datum> {
        Ok(Datum::Int8(self.0))
    }

    fn parts(&self) -> Vec<Datum> {
        vec![Datum::Int8(self.0)]
    }

    fn merge(&mut self, parts: &[Datum]) -> SqlResult<()> {
        self.0 += count(parts, 0);
        Ok(())
    }
}

/// What is made of a sum in the end.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Wanted {
    Sum,
    Average,
}

/// Exact sum of integers.
#[derive(Debug)]
struct Integers {
    sum: i128,
    n: i64,
    wanted: Wanted,
    narrow: bool,
}

impl Accumulator for Integers {
    fn update(&mut self, args: &[Datum]) -> SqlResult<()> {
        if !args[0].is_null() {
            self.sum += i128::from(i64_of(&args[0]));
            self.n += 1;
        }
        Ok(())
    }

    fn update_integers(&mut self, sum: i128, number: usize) -> bool {
        self.sum += sum;
        self.n += number as i64;
        true
    }

    fn finish(&self, _: &EvalContext) -> SqlResult<Datum> {
        let sum = numeric::from_i128(self.sum);
        match (self.n, self.wanted) {
            (0, _) => Ok(Datum::Null),
            (n, Wanted::Average) => {
                numeric::datum(numeric::div(&sum, &numeric::from_i128(n.into()))?)
            }
            _ if self.narrow => i64::try_from(self.sum).map(Datum::Int8).map_err(|_| {
                SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "bigint out of range")
            }),
            _ => numeric::datum(sum),
        }
    }

    fn parts(&self) -> Vec<Datum> {
        vec![Datum::Numeric(Arc::new(numeric::from_i128(self.sum))), Datum::Int8(self.n)]
    }

    fn merge(&mut self, parts: &[Datum]) -> SqlResult<()> {
        self.sum += numeric::to_i128(&part(parts, 0)).unwrap_or(0);
        self.n += count(parts, 1);
        Ok(())
    }
}

/// Which values that are not finite a sum has met.
#[derive(Clone, Copy, Debug, Default)]
struct Special {
    nan: bool,
    plus: bool,
    minus: bool,
}

impl Special {
    fn note(&mut self, value: &Datum) {
        match value {
            Datum::NumericInf(true) => self.minus = true,
            Datum::NumericInf(false) => self.plus = true,
            _ => self.nan = true,
        }
    }

    /// The sum, if it is not a number.
    fn sum(self) -> Option<Datum> {
        match (self.nan || (self.plus && self.minus), self.plus, self.minus) {
            (true, _, _) => Some(Datum::NumericNan),
            (_, true, _) => Some(Datum::NumericInf(false)),
            (_, _, true) => Some(Datum::NumericInf(true)),
            _ => None,
        }
    }

    fn parts(self) -> [Datum; 3] {
        [Datum::Bool(self.nan), Datum::Bool(self.plus), Datum::Bool(self.minus)]
    }

    fn merge(&mut self, parts: &[Datum], from: usize) {
        let set = |at: usize| matches!(parts.get(from + at), Some(Datum::Bool(true)));
        self.nan |= set(0);
        self.plus |= set(1);
        self.minus |= set(2);
    }
}

/// Exact sum of `numeric`.
#[derive(Debug)]
struct Exact {
    sum: BigDecimal,
    n: i64,
    special: Special,
    wanted: Wanted,
}

impl Accumulator for Exact {
    fn update(&mut self, args: &[Datum]) -> SqlResult<()> {
        if !args[0].is_null() {
            match exact(&args[0]) {
                Some(v) => self.sum = numeric::add(&self.sum, &v),
                None => self.special.note(&args[0]),
            }
            self.n += 1;
        }
        Ok(())
    }

    fn finish(&self, _: &EvalContext) -> SqlResult<Datum> {
        match (self.n, self.special.sum(), self.wanted) {
            (0, _, _) => Ok(Datum::Null),
            (_, Some(special), _) => Ok(special),
            (n, _, Wanted::Average) => {
                numeric::datum(numeric::div(&self.sum, &numeric::from_i128(n.into()))?)
            }
            _ => numeric::datum(self.sum.clone()),
        }
    }

    fn parts(&self) -> Vec<Datum> {
        let mut parts = vec![Datum::Numeric(Arc::new(self.sum.clone())), Datum::Int8(self.n)];
        parts.extend(self.special.parts());
        parts
    }

    fn merge(&mut self, parts: &[Datum]) -> SqlResult<()> {
        self.sum = numeric::add(&self.sum, &part(parts, 0));
        self.n += count(parts, 1);
        self.special.merge(parts, 2);
        Ok(())
    }
}

/// Sum of doubles; a sum of `real` is one at each step.
#[derive(Debug)]
struct Doubles {
    sum: f64,
    n: i64,
    single: bool,
}

impl Doubles {
    fn add(&mut self, x: f64, n: i64) -> SqlResult<()> {
        let before = self.sum;
        self.sum = match self.single {
            true => f64::from((before + x) as f32),
            false => before + x,
        };
        if self.sum.is_infinite() && before.is_finite() && x.is_finite() {
            return Err(float_overflow());
        }
        self.n += n;
        Ok(())
    }
}

impl Accumulator for Doubles {
    fn update(&mut self, args: &[Datum]) -> SqlResult<()> {
        if args[0].is_null() {
            return Ok(());
        }
        self.add(f64_of(&args[0]), 1)
    }

    fn finish(&self, _: &EvalContext) -> SqlResult<Datum> {
        Ok(match self.n {
            0 => Datum::Null,
            _ if self.single => Datum::Float4(self.sum as f32),
            _ => Datum::Float8(self.sum),
        })
    }

    fn parts(&self) -> Vec<Datum> {
        vec![Datum::Float8(self.sum), Datum::Int8(self.n)]
    }

    fn merge(&mut self, parts: &[Datum]) -> SqlResult<()> {
        self.add(parts.first().map_or(0.0, f64_of), count(parts, 1))
    }
}

/// Sum of intervals.
#[derive(Debug)]
struct Spans {
    sum: Interval,
    n: i64,
    wanted: Wanted,
}

impl Accumulator for Spans {
    fn update(&mut self, args: &[Datum]) -> SqlResult<()> {
        if let Datum::Interval(i) = &args[0] {
            self.sum = self.sum.add(i)?;
            self.n += 1;
        }
        Ok(())
    }

    fn finish(&self, _: &EvalContext) -> SqlResult<Datum> {
        Ok(match (self.n, self.wanted) {
            (0, _) => Datum::Null,
            (n, Wanted::Average) => Datum::Interval(self.sum.div(n as f64)?),
            _ => Datum::Interval(self.sum),
        })
    }

    fn parts(&self) -> Vec<Datum> {
        vec![Datum::Interval(self.sum), Datum::Int8(self.n)]
    }

    fn merge(&mut self, parts: &[Datum]) -> SqlResult<()> {
        if let Some(Datum::Interval(i)) = parts.first() {
            self.sum = self.sum.add(i)?;
        }
        self.n += count(parts, 1);
        Ok(())
    }
}

/// Variance or its root, of a sample or of all.
#[derive(Clone, Copy, Debug)]
struct Spread {
    sample: bool,
    root: bool,
}

impl Spread {
    fn divisor(self, n: i64) -> Option<i64> {
        let divisor = if self.sample { n - 1 } else { n };
        (divisor > 0).then_some(divisor)
    }
}

/// Count, sum and sum of squares, exact.
#[derive(Debug)]
struct Squares {
    n: i64,
    sum: BigDecimal,
    squares: BigDecimal,
    special: Special,
    spread: Spread,
}

impl Accumulator for Squares {
    fn update(&mut self, args: &[Datum]) -> SqlResult<()> {
        if args[0].is_null() {
            return Ok(());
        }
        match exact(&args[0]) {
            Some(v) => {
                self.sum = numeric::add(&self.sum, &v);
                self.squares = numeric::add(&self.squares, &numeric::mul(&v, &v));
            }
            None => self.special.note(&args[0]),
        }
        self.n += 1;
        Ok(())
    }

    fn finish(&self, _: &EvalContext) -> SqlResult<Datum> {
        let Some(divisor) = self.spread.divisor(self.n) else { return Ok(Datum::Null) };
        if self.special.sum().is_some() {
            return Ok(Datum::NumericNan);
        }
        let n = numeric::from_i128(self.n.into());
        let above =
            numeric::sub(&numeric::mul(&n, &self.squares), &numeric::mul(&self.sum, &self.sum));
        if numeric::compare(&above, &zero()).is_le() {
            // No digits are shown of a zero, as PostgreSQL has it.
            return numeric::datum(zero());
        }
        let below = numeric::mul(&n, &numeric::from_i128(divisor.into()));
        let variance = numeric::div(&above, &below)?;
        let scale = numeric::parts(&variance).1;
        let root = self.spread.root;
        numeric::datum(if root { numeric::sqrt_to(&variance, scale)? } else { variance })
    }

    fn parts(&self) -> Vec<Datum> {
        let exact = |v: &BigDecimal| Datum::Numeric(Arc::new(v.clone()));
        let mut parts = vec![Datum::Int8(self.n), exact(&self.sum), exact(&self.squares)];
        parts.extend(self.special.parts());
        parts
    }

    fn merge(&mut self, parts: &[Datum]) -> SqlResult<()> {
        self.n += count(parts, 0);
        self.sum = numeric::add(&self.sum, &part(parts, 1));
        self.squares = numeric::add(&self.squares, &part(parts, 2));
        self.special.merge(parts, 3);
        Ok(())
    }
}

/// Count, sum and sum of squared distances from the mean (Youngs and Cramer). Averages keep the
/// distances too: where they overflow, PostgreSQL refuses the average.
#[derive(Debug)]
struct Distances {
    n: i64,
    sum: f64,
    distance: f64,
    /// Without it the average is wanted.
    spread: Option<Spread>,
}

impl Accumulator for Distances {
    fn update(&mut self, args: &[Datum]) -> SqlResult<()> {
        if args[0].is_null() {
            return Ok(());
        }
        let x = f64_of(&args[0]);
        let before = self.sum;
        self.n += 1;
        self.sum += x;
        if self.n > 1 {
            let n = self.n as f64;
            let away = x * n - self.sum;
            self.distance += away * away / (n * (n - 1.0));
            if self.sum.is_infinite() || self.distance.is_infinite() {
                if !before.is_infinite() && !x.is_infinite() {
                    return Err(float_overflow());
                }
                self.distance = f64::NAN;
            }
        } else if !x.is_finite() {
            self.distance = f64::NAN;
        }
        Ok(())
    }

    fn finish(&self, _: &EvalContext) -> SqlResult<Datum> {
        let Some(spread) = self.spread else {
            let mean = || Datum::Float8(self.sum / self.n as f64);
            return Ok(if self.n == 0 { Datum::Null } else { mean() });
        };
        let Some(divisor) = spread.divisor(self.n) else { return Ok(Datum::Null) };
        let variance = self.distance / divisor as f64;
        Ok(Datum::Float8(if spread.root { variance.sqrt() } else { variance }))
    }

    fn parts(&self) -> Vec<Datum> {
        vec![Datum::Int8(self.n), Datum::Float8(self.sum), Datum::Float8(self.distance)]
    }

    fn merge(&mut self, parts: &[Datum]) -> SqlResult<()> {
        let (n, sum) = (count(parts, 0), parts.get(1).map_or(0.0, f64_of));
        let distance = parts.get(2).map_or(0.0, f64_of);
        if self.n == 0 {
            (self.n, self.sum, self.distance) = (n, sum, distance);
        } else if n > 0 {
            let (a, b) = (self.n as f64, n as f64);
            let away = self.sum / a - sum / b;
            self.distance += distance + a * b * away * away / (a + b);
            self.sum += sum;
            self.n += n;
        }
        Ok(())
    }
}

fn summed(types: AggregateTypes<'_>, wanted: Wanted) -> Box<dyn Accumulator> {
    match &types.args[0] {
        SqlType::Int2 | SqlType::Int4 | SqlType::Int8 => {
            let narrow = *types.ret == SqlType::Int8;
            Box::new(Integers { sum: 0, n: 0, wanted, narrow })
        }
        SqlType::Float4 | SqlType::Float8 => {
            let single = *types.ret == SqlType::Float4;
            match wanted {
                // The sum of nothing but -0 is -0.
                Wanted::Sum => Box::new(Doubles { sum: -0.0, n: 0, single }),
                Wanted::Average => {
                    Box::new(Distances { n: 0, sum: 0.0, distance: 0.0, spread: None })
                }
            }
        }
        SqlType::Interval => Box::new(Spans { sum: Interval::default(), n: 0, wanted }),
        _ => Box::new(Exact { sum: zero(), n: 0, special: Special::default(), wanted }),
    }
}

fn spread(types: AggregateTypes<'_>, sample: bool, root: bool) -> Box<dyn Accumulator> {
    let spread = Spread { sample, root };
    match &types.args[0] {
        SqlType::Float4 | SqlType::Float8 => {
            Box::new(Distances { n: 0, sum: 0.0, distance: 0.0, spread: Some(spread) })
        }
        _ => Box::new(Squares {
            n: 0,
            sum: zero(),
            squares: zero(),
            special: Special::default(),
            spread,
        }),
    }
}

/// Adds the aggregates of this file.
pub(super) fn fill(t: &mut Table) {
    for signature in
        ["count() int8 -- number of rows", "count(any) int8 -- number of values that are not NULL"]
    {
        t.aggregate(signature, |_| Box::<Count>::default());
    }
    for signature in [
        "sum(int2) int8 -- sum",
        "sum(int4) int8",
        "sum(int8) numeric",
        "sum(numeric) numeric",
        "sum(float4) float4",
        "sum(float8) float8",
        "sum(interval) interval",
    ] {
        t.aggregate(signature, |types| summed(types, Wanted::Sum));
    }
    for signature in [
        "avg(int2) numeric -- arithmetic mean",
        "avg(int4) numeric",
        "avg(int8) numeric",
        "avg(numeric) numeric",
        "avg(float4) float8",
        "avg(float8) float8",
        "avg(interval) interval",
    ] {
        t.aggregate(signature, |types| summed(types, Wanted::Average));
    }
    macro_rules! spread {
        ($name:literal, $about:literal, $sample:literal, $root:literal) => {
            for signature in [
                concat!($name, "(int2) numeric -- ", $about),
                concat!($name, "(int4) numeric"),
                concat!($name, "(int8) numeric"),
                concat!($name, "(numeric) numeric"),
                concat!($name, "(float4) float8"),
                concat!($name, "(float8) float8"),
            ] {
                t.aggregate(signature, |types| spread(types, $sample, $root));
            }
        };
    }
    spread!("stddev", "as `stddev_samp`", true, true);
    spread!("stddev_samp", "standard deviation of a sample", true, true);
    spread!("stddev_pop", "standard deviation of all", false, true);
    spread!("variance", "as `var_samp`", true, false);
    spread!("var_samp", "variance of a sample", true, false);
    spread!("var_pop", "variance of all", false, false);
}
