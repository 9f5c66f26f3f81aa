//! `sum` and `avg`.
//!
//! Integers and decimals are added up in 128 bits. When such a sum overflows, it is set aside as a
//! number of any length, and the group goes on from the next value: nothing is lost, and nobody
//! pays for it who does not overflow.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use braid_types::numeric::{self, BigDecimal};
use braid_types::{Datum, SqlError, SqlState, SqlType};
use datafusion::arrow::array::{
    ArrayRef, ArrowPrimitiveType, Float32Array, Float64Array, Int64Array,
};
use datafusion::arrow::datatypes::{
    DataType, Decimal128Type, Decimal256Type, Float32Type, Float64Type, Int16Type, Int32Type,
    Int64Type,
};
use datafusion::common::Result;

use super::fold::{Fold, Rows, primitive};
use super::packed;
use crate::arrow_form::{self, DECIMAL_NAN, Reader, WIDE_NAN};
use crate::error::to_df;

/// The fold of a sum or average of values of this carrier.
pub(super) fn fold(
    arg: &SqlType,
    carrier: &DataType,
    ret: &SqlType,
    average: bool,
) -> Option<Box<dyn Fold>> {
    let (numbers, scale) = match (arg, carrier) {
        (SqlType::Int2, DataType::Int16) => (Numbers::Int2, 0),
        (SqlType::Int4, DataType::Int32) => (Numbers::Int4, 0),
        (SqlType::Int8, DataType::Int64) => (Numbers::Int8, 0),
        (SqlType::Numeric(_), DataType::Decimal128(_, scale)) => (Numbers::Decimal, *scale),
        (SqlType::Numeric(_), DataType::Decimal256(_, scale)) => (Numbers::Wide, *scale),
        (SqlType::Numeric(_), DataType::Binary) => return Some(packed::fold(average)),
        (SqlType::Float4 | SqlType::Float8, DataType::Float32 | DataType::Float64) => {
            let single = *carrier == DataType::Float32;
            return Some(match average {
                true => Box::new(Means { single, states: Vec::new() }),
                false => Box::new(Floats { single, ret: ret.clone(), states: Vec::new() }),
            });
        }
        _ => return None,
    };
    let shown = match (average, ret) {
        (true, _) => Shown::Average,
        (false, SqlType::Int8) => Shown::Int8,
        (false, _) => Shown::Numeric,
    };
    let scale = scale as u8;
    Some(Box::new(Exact { numbers, scale, shown, sums: Vec::new(), aside: HashMap::new() }))
}

/// What is added up.
#[derive(Clone, Copy, Debug)]
enum Numbers {
    Int2,
    Int4,
    Int8,
    Decimal,
    Wide,
}

/// What is made of a sum in the end.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Shown {
    Int8,
    Numeric,
    Average,
}

/// The running sum of a group.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    sum: i128,
    n: i64,
    nan: bool,
}

/// Exact sums of integers or decimals.
#[derive(Debug)]
struct Exact {
    numbers: Numbers,
    scale: u8,
    shown: Shown,
    sums: Vec<Sum>,
    /// What no longer went into the sums of these groups.
    aside: HashMap<usize, BigDecimal>,
}

/// The first groups are gone: what was set aside for the others moves up.
pub(super) fn forget_aside(aside: &mut HashMap<usize, BigDecimal>, groups: usize) {
    let all = std::mem::take(aside);
    let left = all.into_iter().filter(|(group, _)| *group >= groups);
    *aside = left.map(|(group, number)| (group - groups, number)).collect();
}

/// Puts a number beside the sum of a group.
pub(super) fn set_aside(aside: &mut HashMap<usize, BigDecimal>, group: usize, number: &BigDecimal) {
    let known = aside.entry(group).or_insert_with(|| numeric::from_i128(0));
    *known = numeric::add(known, number);
}

impl Exact {
    fn take<T: ArrowPrimitiveType>(
        &mut self,
        args: &[ArrayRef],
        rows: &Rows<'_>,
        number: impl Fn(T::Native) -> i128,
    ) -> Result<()> {
        let (sums, aside, scale) = (&mut self.sums, &mut self.aside, self.scale);
        rows.values(primitive::<T>(args, 0)?, |group, value| {
            let state = &mut sums[group];
            let value = number(value);
            state.n += 1;
            match state.sum.checked_add(value) {
                _ if value == DECIMAL_NAN => state.nan = true,
                Some(sum) => state.sum = sum,
                None => {
                    set_aside(aside, group, &numeric::from_scaled(state.sum, scale));
                    state.sum = value;
                }
            }
            Ok(())
        })
    }

    /// Numbers of up to 76 digits, most of which are short all the same.
    fn take_wide(&mut self, args: &[ArrayRef], rows: &Rows<'_>) -> Result<()> {
        let (sums, aside, scale) = (&mut self.sums, &mut self.aside, self.scale);
        rows.values(primitive::<Decimal256Type>(args, 0)?, |group, value| {
            let state = &mut sums[group];
            state.n += 1;
            if value == WIDE_NAN {
                state.nan = true;
                return Ok(());
            }
            match value.to_i128().and_then(|small| state.sum.checked_add(small)) {
                Some(sum) => state.sum = sum,
                None => set_aside(aside, group, &arrow_form::wide_number(value, scale)),
            }
            Ok(())
        })
    }

    /// The whole sum of a group; `None` for NaN.
    fn total(&self, group: usize) -> Option<BigDecimal> {
        let state = &self.sums[group];
        if state.nan {
            return None;
        }
        let sum = numeric::from_scaled(state.sum, self.scale);
        Some(match self.aside.get(&group) {
            Some(more) => numeric::add(&sum, more),
            None => sum,
        })
    }

    fn value(&self, group: usize) -> braid_types::SqlResult<Datum> {
        let n = self.sums[group].n;
        if n == 0 {
            return Ok(Datum::Null);
        }
        if self.shown == Shown::Int8 {
            return i64::try_from(self.sums[group].sum).map(Datum::Int8).map_err(|_| {
                SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "bigint out of range")
            });
        }
        match (self.total(group), self.shown) {
            (None, _) => Ok(Datum::NumericNan),
            (Some(sum), Shown::Average) => {
                numeric::datum(numeric::div(&sum, &numeric::from_i128(n.into()))?)
            }
            (Some(sum), _) => numeric::datum(sum),
        }
    }

    fn add_state(&mut self, group: usize, sum: &Datum, n: i64) {
        let (scale, state) = (self.scale, &mut self.sums[group]);
        state.n += n;
        match sum {
            Datum::Numeric(more) => {
                let small = numeric::at_scale(more, scale);
                match small.and_then(|small| state.sum.checked_add(small)) {
                    Some(sum) => state.sum = sum,
                    None => set_aside(&mut self.aside, group, more),
                }
            }
            Datum::NumericNan => state.nan = true,
            _ => {}
        }
    }
}

impl Fold for Exact {
    fn grow(&mut self, groups: usize) {
        self.sums.resize(groups, Sum::default());
    }

    fn update(&mut self, args: &[ArrayRef], rows: &Rows<'_>) -> Result<()> {
        match self.numbers {
            Numbers::Int2 => self.take::<Int16Type>(args, rows, i128::from),
            Numbers::Int4 => self.take::<Int32Type>(args, rows, i128::from),
            Numbers::Int8 => self.take::<Int64Type>(args, rows, i128::from),
            Numbers::Decimal => self.take::<Decimal128Type>(args, rows, |v| v),
            Numbers::Wide => self.take_wide(args, rows),
        }
    }

    fn merge(&mut self, states: &[ArrayRef], rows: &Rows<'_>) -> Result<()> {
        let counts = primitive::<Int64Type>(states, 1)?;
        let sums = Reader::new(&states[0]);
        for (at, group) in rows.groups.iter().enumerate() {
            self.add_state(*group, &sums.get(at, &SqlType::Numeric(None)), counts.value(at));
        }
        Ok(())
    }

    fn finish(&self, groups: Range<usize>) -> Result<ArrayRef> {
        let values = groups.map(|group| self.value(group).map_err(to_df));
        let values = values.collect::<Result<Vec<Datum>>>()?;
        let ty = if self.shown == Shown::Int8 { SqlType::Int8 } else { SqlType::Numeric(None) };
        Ok(arrow_form::build(&ty, values.iter()))
    }

    fn state(&self, groups: Range<usize>) -> Result<Vec<ArrayRef>> {
        let sums: Vec<Datum> = groups
            .clone()
            .map(|group| match self.total(group) {
                Some(sum) => Datum::Numeric(Arc::new(sum)),
                None => Datum::NumericNan,
            })
            .collect();
        let counts: Int64Array = groups.map(|group| Some(self.sums[group].n)).collect();
        Ok(vec![arrow_form::build(&SqlType::Numeric(None), sums.iter()), Arc::new(counts)])
    }

    fn forget(&mut self, groups: usize) {
        self.sums.drain(..groups);
        forget_aside(&mut self.aside, groups);
    }

    fn size(&self) -> usize {
        self.sums.capacity() * size_of::<Sum>() + self.aside.capacity() * 128
    }
}

fn overflow() -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: overflow")
}

/// Doubles of a float column.
fn doubles(
    single: bool,
    args: &[ArrayRef],
    rows: &Rows<'_>,
    mut f: impl FnMut(usize, f64) -> Result<()>,
) -> Result<()> {
    match single {
        true => rows.values(primitive::<Float32Type>(args, 0)?, |group, x| f(group, x.into())),
        false => rows.values(primitive::<Float64Type>(args, 0)?, f),
    }
}

/// Sums of floats, in the order of the rows; a sum of `real` is one at each step.
#[derive(Debug)]
struct Floats {
    single: bool,
    ret: SqlType,
    states: Vec<(f64, i64)>,
}

impl Floats {
    fn add(single: bool, state: &mut (f64, i64), x: f64, n: i64) -> Result<()> {
        let before = state.0;
        let sum = before + x;
        state.0 = if single { f64::from(sum as f32) } else { sum };
        if state.0.is_infinite() && before.is_finite() && x.is_finite() {
            return Err(to_df(overflow()));
        }
        state.1 += n;
        Ok(())
    }
}

impl Fold for Floats {
    fn grow(&mut self, groups: usize) {
        // The sum of nothing but -0 is -0.
        self.states.resize(groups, (-0.0, 0));
    }

    fn update(&mut self, args: &[ArrayRef], rows: &Rows<'_>) -> Result<()> {
        let (narrow, states) = (self.ret == SqlType::Float4, &mut self.states);
        doubles(self.single, args, rows, |group, x| Floats::add(narrow, &mut states[group], x, 1))
    }

    fn merge(&mut self, states: &[ArrayRef], rows: &Rows<'_>) -> Result<()> {
        let counts = primitive::<Int64Type>(states, 1)?;
        let sums = primitive::<Float64Type>(states, 0)?;
        let (narrow, own) = (self.ret == SqlType::Float4, &mut self.states);
        rows.each(sums, |group, at| {
            Floats::add(narrow, &mut own[group], sums.value(at), counts.value(at))
        })
    }

    fn finish(&self, groups: Range<usize>) -> Result<ArrayRef> {
        let sums = self.states[groups].iter().map(|(sum, n)| (*n > 0).then_some(*sum));
        Ok(match self.ret {
            SqlType::Float4 => {
                Arc::new(sums.map(|s| s.map(|s| s as f32)).collect::<Float32Array>())
            }
            _ => Arc::new(sums.collect::<Float64Array>()),
        })
    }

    fn state(&self, groups: Range<usize>) -> Result<Vec<ArrayRef>> {
        let states = &self.states[groups];
        let sums: Float64Array = states.iter().map(|(sum, _)| Some(*sum)).collect();
        let counts: Int64Array = states.iter().map(|(_, n)| Some(*n)).collect();
        Ok(vec![Arc::new(sums), Arc::new(counts)])
    }

    fn forget(&mut self, groups: usize) {
        self.states.drain(..groups);
    }

    fn size(&self) -> usize {
        self.states.capacity() * size_of::<(f64, i64)>()
    }
}

/// Count, sum, and sum of squared distances: where those overflow, PostgreSQL refuses the average
/// (Youngs and Cramer, as in the row form).
#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    n: i64,
    sum: f64,
    distance: f64,
}

impl Mean {
    fn add(&mut self, x: f64) -> Result<()> {
        let before = self.sum;
        self.n += 1;
        self.sum += x;
        if self.n > 1 {
            let n = self.n as f64;
            let away = x * n - self.sum;
            self.distance += away * away / (n * (n - 1.0));
            if self.sum.is_infinite() || self.distance.is_infinite() {
                if !before.is_infinite() && !x.is_infinite() {
                    return Err(to_df(overflow()));
                }
                self.distance = f64::NAN;
            }
        } else if !x.is_finite() {
            self.distance = f64::NAN;
        }
        Ok(())
    }

    fn merge(&mut self, other: Mean) {
        if self.n == 0 {
            *self = other;
        } else if other.n > 0 {
            let (a, b) = (self.n as f64, other.n as f64);
            let away = self.sum / a - other.sum / b;
            self.distance += other.distance + a * b * away * away / (a + b);
            self.sum += other.sum;
            self.n += other.n;
        }
    }
}

/// Averages of floats.
#[derive(Debug)]
struct Means {
    single: bool,
    states: Vec<Mean>,
}

impl Fold for Means {
    fn grow(&mut self, groups: usize) {
        self.states.resize(groups, Mean::default());
    }

    fn update(&mut self, args: &[ArrayRef], rows: &Rows<'_>) -> Result<()> {
        let states = &mut self.states;
        doubles(self.single, args, rows, |group, x| states[group].add(x))
    }

    fn merge(&mut self, states: &[ArrayRef], rows: &Rows<'_>) -> Result<()> {
        let counts = primitive::<Int64Type>(states, 0)?;
        let sums = primitive::<Float64Type>(states, 1)?;
        let distances = primitive::<Float64Type>(states, 2)?;
        for (at, group) in rows.groups.iter().enumerate() {
            let (n, sum) = (counts.value(at), sums.value(at));
            self.states[*group].merge(Mean { n, sum, distance: distances.value(at) });
        }
        Ok(())
    }

    fn finish(&self, groups: Range<usize>) -> Result<ArrayRef> {
        let means = self.states[groups].iter();
        let means = means.map(|m| (m.n > 0).then(|| m.sum / m.n as f64));
        Ok(Arc::new(means.collect::<Float64Array>()))
    }

    fn state(&self, groups: Range<usize>) -> Result<Vec<ArrayRef>> {
        let states = &self.states[groups];
        let counts: Int64Array = states.iter().map(|m| Some(m.n)).collect();
        let sums: Float64Array = states.iter().map(|m| Some(m.sum)).collect();
        let distances: Float64Array = states.iter().map(|m| Some(m.distance)).collect();
        Ok(vec![Arc::new(counts), Arc::new(sums), Arc::new(distances)])
    }

    fn forget(&mut self, groups: usize) {
        self.states.drain(..groups);
    }

    fn size(&self) -> usize {
        self.states.capacity() * size_of::<Mean>()
    }
}
