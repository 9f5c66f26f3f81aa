//! `count`, `bool_and`, `bool_or`.

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array};
use datafusion::arrow::datatypes::Int64Type;
use datafusion::common::Result;

use super::fold::{Fold, Rows, primitive};

/// How many rows without a NULL among the arguments.
#[derive(Debug)]
pub(super) struct Count(Vec<i64>);

impl Count {
    pub(super) fn new() -> Count {
        Count(Vec::new())
    }
}

impl Fold for Count {
    fn grow(&mut self, groups: usize) {
        self.0.resize(groups, 0);
    }

    fn update(&mut self, args: &[ArrayRef], rows: &Rows<'_>) -> Result<()> {
        let Some((first, others)) = args.split_first() else { return Ok(()) };
        let counts = &mut self.0;
        rows.each(first, |group, at| {
            counts[group] += i64::from(others.iter().all(|a| a.is_valid(at)));
            Ok(())
        })
    }

    fn merge(&mut self, states: &[ArrayRef], rows: &Rows<'_>) -> Result<()> {
        let counts = &mut self.0;
        rows.values(primitive::<Int64Type>(states, 0)?, |group, n| {
            counts[group] += n;
            Ok(())
        })
    }

    fn finish(&self, groups: Range<usize>) -> Result<ArrayRef> {
        Ok(Arc::new(Int64Array::from(self.0[groups].to_vec())))
    }

    fn state(&self, groups: Range<usize>) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.finish(groups)?])
    }

    fn forget(&mut self, groups: usize) {
        self.0.drain(..groups);
    }

    fn size(&self) -> usize {
        self.0.capacity() * size_of::<i64>()
    }
}

/// Whether all, or one, of the values are true.
#[derive(Debug)]
pub(super) struct Truths {
    /// All of them have to be.
    all: bool,
    found: Vec<Option<bool>>,
}

impl Truths {
    pub(super) fn new(all: bool) -> Truths {
        Truths { all, found: Vec::new() }
    }
}

impl Fold for Truths {
    fn grow(&mut self, groups: usize) {
        self.found.resize(groups, None);
    }

    fn update(&mut self, args: &[ArrayRef], rows: &Rows<'_>) -> Result<()> {
        let Some(values) = args.first().and_then(|a| a.as_boolean_opt()) else {
            return datafusion::common::internal_err!("truth values of another type");
        };
        let (all, found) = (self.all, &mut self.found);
        rows.each(values, |group, at| {
            let value = values.value(at);
            let known = found[group].get_or_insert(value);
            *known = if all { *known && value } else { *known || value };
            Ok(())
        })
    }

    fn merge(&mut self, states: &[ArrayRef], rows: &Rows<'_>) -> Result<()> {
        self.update(states, rows)
    }

    fn finish(&self, groups: Range<usize>) -> Result<ArrayRef> {
        Ok(Arc::new(self.found[groups].iter().copied().collect::<BooleanArray>()))
    }

    fn state(&self, groups: Range<usize>) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.finish(groups)?])
    }

    fn forget(&mut self, groups: usize) {
        self.found.drain(..groups);
    }

    fn size(&self) -> usize {
        self.found.capacity() * size_of::<Option<bool>>()
    }
}
