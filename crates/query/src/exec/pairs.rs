//! Aggregates over pairs of doubles: `corr`, `covar_pop`, `regr_slope` and the rest of the family.
//!
//! The state is (n, sum x, Sxx, sum y, Syy, Sxy), where Sxx is the sum of squared distances from
//! the mean, kept as rows come (Youngs and Cramer), so that large values lose no digits.

use braid_types::{Datum, SqlError, SqlResult, SqlState};

use super::running::PairKind;

fn overflow() -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: overflow")
}

/// Adds a pair; the first argument of these aggregates is Y.
///
/// # Errors
/// 22003 when a sum of finite numbers overflows.
pub(super) fn add(state: &mut [f64; 6], y: f64, x: f64) -> SqlResult<()> {
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
            return Err(overflow());
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
pub(super) fn merge(state: &mut [f64; 6], other: &[f64; 6]) -> SqlResult<()> {
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
        true => Err(overflow()),
        false => Ok(()),
    }
}

/// The result.
pub(super) fn finish(kind: PairKind, state: &[f64; 6]) -> Datum {
    let [n, sx, sxx, sy, syy, sxy] = *state;
    if kind == PairKind::Count {
        return Datum::Int8(n as i64);
    }
    let enough = if kind == PairKind::CovarSamp { n > 1.0 } else { n > 0.0 };
    if !enough {
        return Datum::Null;
    }
    let found = match kind {
        PairKind::Corr if sxx == 0.0 || syy == 0.0 => None,
        PairKind::Corr => Some(sxy / (sxx * syy).sqrt()),
        PairKind::CovarPop => Some(sxy / n),
        PairKind::CovarSamp => Some(sxy / (n - 1.0)),
        PairKind::Slope if sxx == 0.0 => None,
        PairKind::Slope => Some(sxy / sxx),
        PairKind::Intercept if sxx == 0.0 => None,
        PairKind::Intercept => Some((sy - sx * sxy / sxx) / n),
        PairKind::R2 if sxx == 0.0 => None,
        PairKind::R2 if syy == 0.0 => Some(1.0),
        PairKind::R2 => Some(sxy * sxy / (sxx * syy)),
        PairKind::AvgX => Some(sx / n),
        PairKind::AvgY => Some(sy / n),
        PairKind::Sxx => Some(sxx),
        PairKind::Syy => Some(syy),
        PairKind::Sxy => Some(sxy),
        PairKind::Count => None,
    };
    found.map_or(Datum::Null, Datum::Float8)
}
