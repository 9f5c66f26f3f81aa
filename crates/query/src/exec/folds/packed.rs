//! `sum` and `avg` of numerics of any scale.
//!
//! A group keeps an integer at the largest scale that it has met; numbers that do not fit are set
//! aside, as in `sums.rs`.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use braid_types::numeric::{self, BigDecimal};
use braid_types::{Datum, SqlResult, SqlType, small_numeric};
use datafusion::arrow::array::{ArrayRef, AsArray, BinaryArray, Int64Array};
use datafusion::arrow::datatypes::Int64Type;
use datafusion::common::Result;

use super::fold::{Fold, Rows, primitive};
use super::sums::{forget_aside, set_aside};
use crate::arrow_form::{self, unpack};
use crate::error::to_df;

/// The fold of a sum, or average.
pub(super) fn fold(average: bool) -> Box<dyn Fold> {
    Box::new(Packed { average, sums: Vec::new(), aside: HashMap::new() })
}

/// The running sum of a group.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    sum: i128,
    scale: u8,
    n: i64,
    nan: bool,
    plus: bool,
    minus: bool,
}

impl Sum {
    /// Adds a number; false if that does not fit, and nothing is changed.
    fn add(&mut self, number: i128, scale: u8) -> bool {
        let raised = |v: i128, by: u8| 10i128.checked_pow(by.into()).and_then(|p| v.checked_mul(p));
        let wider = self.scale.max(scale);
        let parts = (raised(self.sum, wider - self.scale), raised(number, wider - scale));
        let (Some(a), Some(b)) = parts else { return false };
        let Some(sum) = a.checked_add(b) else { return false };
        (self.sum, self.scale) = (sum, wider);
        true
    }
}

/// See the module's header.
#[derive(Debug)]
struct Packed {
    average: bool,
    sums: Vec<Sum>,
    aside: HashMap<usize, BigDecimal>,
}

impl Packed {
    fn take(&mut self, group: usize, bytes: &[u8], n: i64) {
        let state = &mut self.sums[group];
        state.n += n;
        if small_numeric(bytes).is_some_and(|(number, scale)| state.add(number, scale)) {
            return;
        }
        match unpack(bytes, &SqlType::Numeric(None)) {
            Datum::Numeric(number) => set_aside(&mut self.aside, group, &number),
            Datum::NumericInf(false) => state.plus = true,
            Datum::NumericInf(true) => state.minus = true,
            _ => state.nan = true,
        }
    }

    fn column(arrays: &[ArrayRef]) -> Result<&BinaryArray> {
        match arrays.first().and_then(|a| a.as_binary_opt::<i32>()) {
            Some(array) => Ok(array),
            None => datafusion::common::internal_err!("packed numerics of another type"),
        }
    }

    fn total(&self, group: usize) -> Datum {
        let state = &self.sums[group];
        match (state.nan || (state.plus && state.minus), state.plus, state.minus) {
            (true, _, _) => Datum::NumericNan,
            (_, true, _) => Datum::NumericInf(false),
            (_, _, true) => Datum::NumericInf(true),
            _ => {
                let sum = numeric::from_scaled(state.sum, state.scale);
                let all = self.aside.get(&group).map(|more| numeric::add(&sum, more));
                Datum::Numeric(Arc::new(all.unwrap_or(sum)))
            }
        }
    }

    fn value(&self, group: usize) -> SqlResult<Datum> {
        match (self.sums[group].n, self.total(group)) {
            (0, _) => Ok(Datum::Null),
            (n, Datum::Numeric(sum)) if self.average => {
                numeric::datum(numeric::div(&sum, &numeric::from_i128(n.into()))?)
            }
            (_, Datum::Numeric(sum)) => numeric::datum((*sum).clone()),
            (_, special) => Ok(special),
        }
    }
}

impl Fold for Packed {
    fn grow(&mut self, groups: usize) {
        self.sums.resize(groups, Sum::default());
    }

    fn update(&mut self, args: &[ArrayRef], rows: &Rows<'_>) -> Result<()> {
        let values = Packed::column(args)?;
        rows.each(values, |group, at| {
            self.take(group, values.value(at), 1);
            Ok(())
        })
    }

    fn merge(&mut self, states: &[ArrayRef], rows: &Rows<'_>) -> Result<()> {
        let sums = Packed::column(states)?;
        let counts = primitive::<Int64Type>(states, 1)?;
        rows.each(sums, |group, at| {
            self.take(group, sums.value(at), counts.value(at));
            Ok(())
        })
    }

    fn finish(&self, groups: Range<usize>) -> Result<ArrayRef> {
        let values = groups.map(|group| self.value(group).map_err(to_df));
        let values = values.collect::<Result<Vec<Datum>>>()?;
        Ok(arrow_form::build(&SqlType::Numeric(None), values.iter()))
    }

    fn state(&self, groups: Range<usize>) -> Result<Vec<ArrayRef>> {
        let sums: Vec<Datum> = groups.clone().map(|group| self.total(group)).collect();
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
