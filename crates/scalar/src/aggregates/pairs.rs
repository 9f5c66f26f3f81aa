//! Aggregates over pairs of doubles: `corr`, `covar_pop`, `regr_slope` and the rest of the family.
//!
//! The state is (n, sum x, Sxx, sum y, Syy, Sxy), where Sxx is the sum of squared distances from
//! the mean, kept as rows come (Youngs and Cramer), so that large values lose no digits.

use braid_types::{Datum, SqlResult};

use super::accumulator::{Accumulator, float_overflow};
use super::sums::Count;
use crate::EvalContext;
use crate::functions::f64_of;
use crate::registry::Table;

/// The state, and what is made of it in the end.
#[derive(Debug)]
struct Pairs {
    state: [f64; 6],
    make: fn(&[f64; 6]) -> Option<f64>,
}

impl Accumulator for Pairs {
    fn update(&mut self, args: &[Datum]) -> SqlResult<()> {
        // The first argument of these aggregates is Y.
        match args {
            [y, x, ..] if !y.is_null() && !x.is_null() => {
                add(&mut self.state, f64_of(y), f64_of(x))
            }
            _ => Ok(()),
        }
    }

    fn finish(&self, _: &EvalContext) -> SqlResult<Datum> {
        let enough = self.state[0] > 0.0;
        let found = if enough { (self.make)(&self.state) } else { None };
        Ok(found.map_or(Datum::Null, Datum::Float8))
    }

    fn parts(&self) -> Vec<Datum> {
        self.state.iter().map(|v| Datum::Float8(*v)).collect()
    }

    fn merge(&mut self, parts: &[Datum]) -> SqlResult<()> {
        let other: Vec<f64> = parts.iter().map(f64_of).collect();
        match <[f64; 6]>::try_from(other) {
            Ok(other) => merge(&mut self.state, &other),
            Err(_) => Ok(()),
        }
    }
}

/// Adds a pair; the first argument of these aggregates is Y.
///
/// # Errors
/// 22003 when a sum of finite numbers overflows.
fn add(state: &mut [f64; 6], y: f64, x: f64) -> SqlResult<()> {
    let finite_x = state[1].is_finite() && x.is_finite();
    let finite_y = state[3].is_finite() && y.is_finite();
    let [n, sx, sxx, sy, syy, sxy] = state;
    *n += 1.0;
    *sx += x;
    *sy += y;
    if *n > 1.0 {
        let (dx, dy) = (x * *n - *sx, y * *n - *sy);
        let scale = 1.0 / (*n * (*n - 1.0));
        *sxx += dx * dx * scale;
        *syy += dy * dy * scale;
        *sxy += dx * dy * scale;
        let over_x = finite_x && (sx.is_infinite() || sxx.is_infinite());
        let over_y = finite_y && (sy.is_infinite() || syy.is_infinite());
        if over_x || over_y || (finite_x && finite_y && sxy.is_infinite()) {
            return Err(float_overflow());
        }
        // Distances from an infinite mean are no numbers.
        for sum in [sxx, syy, sxy] {
            if sum.is_infinite() {
                *sum = f64::NAN;
            }
        }
        return Ok(());
    }
    if !x.is_finite() {
        (*sxx, *sxy) = (f64::NAN, f64::NAN);
    }
    if !y.is_finite() {
        (*syy, *sxy) = (f64::NAN, f64::NAN);
    }
    Ok(())
}

/// Adds another state.
///
/// # Errors
/// 22003 when a sum of finite numbers overflows.
fn merge(state: &mut [f64; 6], other: &[f64; 6]) -> SqlResult<()> {
    if state[0] == 0.0 {
        *state = *other;
        return Ok(());
    }
    if other[0] == 0.0 {
        return Ok(());
    }
    let finite: Vec<bool> =
        state.iter().zip(other).map(|(a, b)| !a.is_infinite() && !b.is_infinite()).collect();
    let (a, b) = (state[0], other[0]);
    let dx = state[1] / a - other[1] / b;
    let dy = state[3] / a - other[3] / b;
    let share = a * b / (a + b);
    state[0] = a + b;
    state[1] += other[1];
    state[2] += other[2] + share * dx * dx;
    state[3] += other[3];
    state[4] += other[4] + share * dy * dy;
    state[5] += other[5] + share * dx * dy;
    match state.iter().zip(finite).any(|(sum, finite)| finite && sum.is_infinite()) {
        true => Err(float_overflow()),
        false => Ok(()),
    }
}

/// Nothing when the divisor is zero.
fn ratio(above: f64, below: f64) -> Option<f64> {
    (below != 0.0).then(|| above / below)
}

/// Adds the aggregates of this file.
pub(super) fn fill(t: &mut Table) {
    macro_rules! pairs {
        ($($signature:literal => $make:expr;)*) => {
            $(t.aggregate($signature, |_| Box::new(Pairs { state: [0.0; 6], make: $make }));)*
        };
    }
    pairs! {
        "corr(float8, float8) float8 -- correlation" => |[_, _, sxx, _, syy, sxy]| {
            (*sxx != 0.0 && *syy != 0.0).then(|| sxy / (sxx * syy).sqrt())
        };
        "covar_pop(float8, float8) float8 -- covariance of all" => |[n, .., sxy]| Some(sxy / n);
        "covar_samp(float8, float8) float8 -- covariance of a sample" => |[n, .., sxy]| {
            (*n > 1.0).then(|| sxy / (n - 1.0))
        };
        "regr_slope(float8, float8) float8 -- slope of the fitted line" => |[_, _, sxx, .., sxy]| {
            ratio(*sxy, *sxx)
        };
        "regr_intercept(float8, float8) float8 -- where the fitted line meets the y axis" =>
            |[n, sx, sxx, sy, _, sxy]| (*sxx != 0.0).then(|| (sy - sx * sxy / sxx) / n);
        "regr_r2(float8, float8) float8 -- square of the correlation" => |s| {
            let [_, _, sxx, _, syy, sxy] = s;
            match (*sxx == 0.0, *syy == 0.0) {
                (true, _) => None,
                (_, true) => Some(1.0),
                _ => Some(sxy * sxy / (sxx * syy)),
            }
        };
        "regr_avgx(float8, float8) float8 -- mean of the second argument" => |[n, sx, ..]| {
            Some(sx / n)
        };
        "regr_avgy(float8, float8) float8 -- mean of the first argument" => |[n, _, _, sy, ..]| {
            Some(sy / n)
        };
        "regr_sxx(float8, float8) float8 \
         -- squared distances of the second argument from its mean" =>
            |[_, _, sxx, ..]| Some(*sxx);
        "regr_syy(float8, float8) float8 \
         -- squared distances of the first argument from its mean" =>
            |[_, _, _, _, syy, _]| Some(*syy);
        "regr_sxy(float8, float8) float8 -- products of the distances from the means" =>
            |[.., sxy]| Some(*sxy);
    }
    t.aggregate("regr_count(float8, float8) int8 -- number of pairs without NULL", |_| {
        Box::<Count>::default()
    });
}
