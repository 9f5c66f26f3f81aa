//! What a fold is, and how DataFusion drives one: for groups, and for one group alone.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use braid_types::SqlType;
use datafusion::arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, PrimitiveArray,
};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{Accumulator, EmitTo, GroupsAccumulator};

use super::{counts, distinct, extremes, sums};
use crate::exec::aggregate::{FIRST, Spec};
use crate::exec::execution::Place;
use crate::exec::stoppable::check;

/// Which rows of a batch go into which group.
pub(in crate::exec) struct Rows<'a> {
    pub(super) groups: &'a [usize],
    pub(super) filter: Option<&'a BooleanArray>,
}

impl Rows<'_> {
    /// Calls `f` with the group and the place of each row that counts and is valid.
    pub(super) fn each(
        &self,
        array: &dyn Array,
        mut f: impl FnMut(usize, usize) -> Result<()>,
    ) -> Result<()> {
        let wanted = |at: usize| self.filter.is_none_or(|f| f.is_valid(at) && f.value(at));
        match (self.filter, array.null_count()) {
            (None, 0) => {
                for (at, group) in self.groups.iter().enumerate() {
                    f(*group, at)?;
                }
            }
            _ => {
                for (at, group) in self.groups.iter().enumerate() {
                    if wanted(at) && array.is_valid(at) {
                        f(*group, at)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// As [`Rows::each`], with the values of a primitive array.
    pub(super) fn values<T: ArrowPrimitiveType>(
        &self,
        array: &PrimitiveArray<T>,
        mut f: impl FnMut(usize, T::Native) -> Result<()>,
    ) -> Result<()> {
        let values = array.values();
        self.each(array, |group, at| f(group, values[at]))
    }
}

/// The states of one aggregate in all groups.
pub(in crate::exec) trait Fold: Send + Sync + fmt::Debug {
    /// Makes room for so many groups; new ones are empty.
    fn grow(&mut self, groups: usize);

    /// Takes a batch of arguments.
    fn update(&mut self, args: &[ArrayRef], rows: &Rows<'_>) -> Result<()>;

    /// Takes a batch of states.
    fn merge(&mut self, states: &[ArrayRef], rows: &Rows<'_>) -> Result<()>;

    /// The aggregates of these groups.
    fn finish(&self, groups: Range<usize>) -> Result<ArrayRef>;

    /// The states of these groups as columns.
    fn state(&self, groups: Range<usize>) -> Result<Vec<ArrayRef>>;

    /// Gives up the first groups; the others move to their places.
    fn forget(&mut self, groups: usize);

    /// Bytes taken.
    fn size(&self) -> usize;
}

/// A fold for an aggregate over arguments of this carrier.
pub(in crate::exec) fn fold(spec: &Spec, carrier: Option<&DataType>) -> Option<Box<dyn Fold>> {
    if !spec.order.is_empty() {
        return None;
    }
    let (arg, carrier) = (spec.args.first()?, carrier?);
    if spec.distinct {
        let counted = spec.name == "count" && spec.args.len() == 1;
        return counted.then(|| distinct::fold(arg, carrier)).flatten();
    }
    match spec.name.as_str() {
        "count" => Some(Box::new(counts::Count::new())),
        "bool_and" | "every" => Some(Box::new(counts::Truths::new(true))),
        "bool_or" => Some(Box::new(counts::Truths::new(false))),
        "sum" => sums::fold(arg, carrier, &spec.ret, false),
        "avg" => sums::fold(arg, carrier, &spec.ret, true),
        "min" => extremes::fold(arg, carrier, &spec.ret, false),
        "max" => extremes::fold(arg, carrier, &spec.ret, true),
        FIRST => extremes::first(carrier),
        _ => None,
    }
}

/// The columns of the state of a fold, for an aggregate of this name.
pub(in crate::exec) fn state_fields(name: &str, fold: &dyn Fold) -> Result<Vec<FieldRef>> {
    let empty = fold.state(0..0)?;
    let named = empty.iter().enumerate().map(|(at, array)| {
        let name = format!("{name}[state {at}]");
        Arc::new(Field::new(name, array.data_type().clone(), true))
    });
    Ok(named.collect())
}

/// What makes a new fold.
pub(in crate::exec) type Make = Box<dyn Fn() -> Option<Box<dyn Fold>> + Send + Sync>;

/// A fold as DataFusion drives it for groups.
pub(in crate::exec) struct Groups {
    fold: Box<dyn Fold>,
    make: Make,
    count: usize,
}

impl Groups {
    /// Around a new fold.
    pub(in crate::exec) fn new(make: Make) -> Option<Groups> {
        Some(Groups { fold: make()?, make, count: 0 })
    }

    fn grow(&mut self, total: usize) {
        self.count = self.count.max(total);
        self.fold.grow(self.count);
    }

    /// The groups that are asked for.
    fn emitted(&self, emit_to: EmitTo) -> usize {
        match emit_to {
            EmitTo::All => self.count,
            EmitTo::First(n) => n.min(self.count),
        }
    }

    fn forget(&mut self, groups: usize) {
        self.fold.forget(groups);
        self.count -= groups;
    }
}

impl GroupsAccumulator for Groups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        self.grow(total);
        self.fold.update(values, &Rows { groups, filter })
    }

    fn merge_batch(&mut self, values: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        self.grow(total);
        self.fold.merge(values, &Rows { groups, filter: None })
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let groups = self.emitted(emit_to);
        let result = self.fold.finish(0..groups)?;
        self.forget(groups);
        Ok(result)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let groups = self.emitted(emit_to);
        let states = self.fold.state(0..groups)?;
        self.forget(groups);
        Ok(states)
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let rows = values.first().map_or(0, |a| a.len());
        let groups: Vec<usize> = (0..rows).collect();
        let Some(mut fold) = (self.make)() else {
            return datafusion::common::internal_err!("an aggregate without fold");
        };
        fold.grow(rows);
        fold.update(values, &Rows { groups: &groups, filter })?;
        fold.state(0..rows)
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.fold.size()
    }
}

/// A fold of one group.
#[derive(Debug)]
pub(in crate::exec) struct Single {
    fold: Box<dyn Fold>,
    /// The group of each row of a batch.
    zeros: Vec<usize>,
    place: Arc<Place>,
    results: usize,
}

impl Single {
    /// Around a new fold.
    pub(in crate::exec) fn new(mut fold: Box<dyn Fold>, place: Arc<Place>) -> Single {
        fold.grow(1);
        Single { fold, zeros: Vec::new(), place, results: 0 }
    }

    fn rows(&mut self, arrays: &[ArrayRef]) -> usize {
        let rows = arrays.first().map_or(0, |a| a.len());
        if self.zeros.len() < rows {
            self.zeros.resize(rows, 0);
        }
        rows
    }
}

impl Accumulator for Single {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let rows = self.rows(values);
        self.fold.update(values, &Rows { groups: &self.zeros[..rows], filter: None })
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let rows = self.rows(states);
        self.fold.merge(states, &Rows { groups: &self.zeros[..rows], filter: None })
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        // A window asks once for each row, in one go for very many that are peers.
        self.results += 1;
        if self.results.is_multiple_of(256) {
            check(&self.place.execution_or_nothing().cancel)?;
        }
        ScalarValue::try_from_array(&self.fold.finish(0..1)?, 0)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let states = self.fold.state(0..1)?;
        states.iter().map(|array| ScalarValue::try_from_array(array, 0)).collect()
    }

    fn size(&self) -> usize {
        // A set grows by being copied into one of twice the size, and is counted afterwards.
        size_of::<Self>() + 2 * self.fold.size() + self.zeros.capacity() * size_of::<usize>()
    }
}

/// What an allocator takes for so many bytes.
pub(super) fn allocated(bytes: usize) -> usize {
    bytes.next_multiple_of(16)
}

/// A column of arguments or states as what it is.
pub(super) fn primitive<T: ArrowPrimitiveType>(
    arrays: &[ArrayRef],
    at: usize,
) -> Result<&PrimitiveArray<T>> {
    match arrays.get(at).and_then(|a| a.as_primitive_opt::<T>()) {
        Some(array) => Ok(array),
        None => datafusion::common::internal_err!("a column of an aggregate has another type"),
    }
}

/// Whether an aggregate of numerics shows them packed: its type says nothing of their digits.
pub(super) fn shows_packed(ret: &SqlType) -> bool {
    crate::arrow_form::data_type(ret) == DataType::Binary
}
