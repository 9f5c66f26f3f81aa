//! `count`, and `sum` and `avg` of exact numbers, of any runs of rows: differences of the sums of
//! all rows before their ends.

use std::ops::Range;

use braid_types::numeric;
use braid_types::{Datum, SqlError, SqlState, SqlType};
use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Int16Type, Int32Type, Int64Type};
use datafusion::common::Result;

use super::over_runs::{Input, OverRuns};
use crate::arrow_form::DECIMAL_NAN;
use crate::error::to_df;

/// See the [module documentation](self).
pub(super) struct Sums {
    shown: Shown,
    /// Of the rows before each place: how many count, how many of those are NaN, their sum.
    counts: Vec<usize>,
    nans: Vec<usize>,
    sums: Vec<i128>,
    /// Digits behind the point.
    scale: u8,
}

/// Sums of first rows stay within this, so that differences of three of them fit.
const ROOM: u128 = i128::MAX as u128 / 8;

/// What is made of count and sum.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Shown {
    Count,
    Int8,
    Numeric,
    Average,
}

/// The sums of rows, if the aggregate is one of these and all of them fit.
pub(super) fn of(input: &mut Input<'_>) -> Result<Option<Sums>> {
    let spec = input.spec;
    let shown = match (spec.name.as_str(), &spec.ret) {
        ("count", _) => Shown::Count,
        ("sum", SqlType::Int8) => Shown::Int8,
        ("sum", SqlType::Numeric(_)) => Shown::Numeric,
        ("avg", SqlType::Numeric(_)) => Shown::Average,
        _ => return Ok(None),
    };
    let Some(number) = numbers(shown, spec.args.first(), input.args) else { return Ok(None) };
    let scale = match input.args.first().map(|arg| arg.data_type()) {
        Some(DataType::Decimal128(_, scale)) => *scale as u8,
        _ => 0,
    };
    let room = || Vec::with_capacity(input.rows + 1);
    let mut of = Sums { shown, counts: room(), nans: Vec::new(), sums: Vec::new(), scale };
    let (mut count, mut nan, mut sum) = (0, 0, 0_i128);
    of.push(count, nan, sum);
    for row in 0..input.rows {
        input.looked()?;
        if input.is_kept(row) && input.args.iter().all(|arg| arg.is_valid(row)) {
            count += 1;
            match number(row) {
                DECIMAL_NAN if shown != Shown::Count => nan += 1,
                value => match sum.checked_add(value).filter(|sum| sum.unsigned_abs() <= ROOM) {
                    Some(more) => sum = more,
                    None => return Ok(None),
                },
            }
        }
        of.push(count, nan, sum);
    }
    Ok(Some(of))
}

/// The number of a row that is not NULL.
type Number<'a> = Box<dyn Fn(usize) -> i128 + 'a>;

fn numbers<'a>(shown: Shown, ty: Option<&SqlType>, args: &'a [ArrayRef]) -> Option<Number<'a>> {
    if shown == Shown::Count {
        return Some(Box::new(|_| 0));
    }
    let [arg] = args else { return None };
    Some(match (ty?, arg.data_type()) {
        (SqlType::Int2, DataType::Int16) => {
            let values = arg.as_primitive::<Int16Type>().values();
            Box::new(|row| values[row].into())
        }
        (SqlType::Int4, DataType::Int32) => {
            let values = arg.as_primitive::<Int32Type>().values();
            Box::new(|row| values[row].into())
        }
        (SqlType::Int8, DataType::Int64) => {
            let values = arg.as_primitive::<Int64Type>().values();
            Box::new(|row| values[row].into())
        }
        (SqlType::Numeric(_), DataType::Decimal128(..)) => {
            let values = arg.as_primitive::<Decimal128Type>().values();
            Box::new(|row| values[row])
        }
        _ => return None,
    })
}

impl Sums {
    fn push(&mut self, count: usize, nan: usize, sum: i128) {
        self.counts.push(count);
        if self.shown != Shown::Count {
            self.sums.push(sum);
            self.nans.push(nan);
        }
    }
}

impl OverRuns for Sums {
    fn value(&mut self, runs: &[Range<usize>]) -> Result<Datum> {
        let between = |all: &[usize]| runs.iter().map(|run| all[run.end] - all[run.start]).sum();
        let count: usize = between(&self.counts);
        match (self.shown, count) {
            (Shown::Count, count) => return Ok(Datum::Int8(count as i64)),
            (_, 0) => return Ok(Datum::Null),
            _ if between(&self.nans) > 0_usize => return Ok(Datum::NumericNan),
            _ => {}
        }
        let sum: i128 = runs.iter().map(|run| self.sums[run.end] - self.sums[run.start]).sum();
        let whole = || numeric::from_scaled(sum, self.scale);
        let value = match self.shown {
            Shown::Count | Shown::Int8 => i64::try_from(sum).map(Datum::Int8).map_err(|_| {
                SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "bigint out of range")
            }),
            Shown::Numeric => numeric::datum(whole()),
            Shown::Average => {
                let count = numeric::from_i128(count as i128);
                numeric::div(&whole(), &count).and_then(numeric::datum)
            }
        };
        value.map_err(to_df)
    }
}
