//! `min` and `max`.

use std::cmp::Ordering;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use braid_types::{SqlType, push_numeric};
use datafusion::arrow::array::{
    ArrayRef, ArrowPrimitiveType, AsArray, BinaryArray, BinaryBuilder, PrimitiveArray, StringArray,
};
use datafusion::arrow::datatypes::{
    DataType, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, UInt32Type,
};
use datafusion::common::Result;

use super::fold::{Fold, Rows, allocated, primitive, shows_packed};
use crate::arrow_form::{self, DECIMAL_NAN};
use crate::exec::vector::float_order;

/// The fold of an extreme over values of this carrier.
pub(super) fn fold(
    arg: &SqlType,
    carrier: &DataType,
    ret: &SqlType,
    greatest: bool,
) -> Option<Box<dyn Fold>> {
    fn of<T: ArrowPrimitiveType>(
        greatest: bool,
        order: fn(&T::Native, &T::Native) -> Ordering,
        carrier: &DataType,
    ) -> Extreme<T> {
        let better = if greatest { Ordering::Greater } else { Ordering::Less };
        Extreme { better, order, carrier: carrier.clone(), kept: Vec::new() }
    }
    Some(match carrier {
        DataType::Int16 => Box::new(of::<Int16Type>(greatest, Ord::cmp, carrier)),
        DataType::Int32 => Box::new(of::<Int32Type>(greatest, Ord::cmp, carrier)),
        DataType::Int64 => Box::new(of::<Int64Type>(greatest, Ord::cmp, carrier)),
        DataType::UInt32 => Box::new(of::<UInt32Type>(greatest, Ord::cmp, carrier)),
        DataType::Float32 => Box::new(of::<Float32Type>(greatest, latest_float(greatest), carrier)),
        DataType::Float64 => Box::new(of::<Float64Type>(greatest, latest_float(greatest), carrier)),
        DataType::Decimal128(_, scale) if shows_packed(ret) => Box::new(Packed {
            numbers: of::<Decimal128Type>(greatest, Ord::cmp, carrier),
            scale: *scale as u8,
        }),
        DataType::Utf8 if arg.is_text_like() => {
            let better = if greatest { Ordering::Greater } else { Ordering::Less };
            Box::new(Texts { better: Some(better), kept: Vec::new(), bytes: 0 })
        }
        _ => return None,
    })
}

/// The order in which a float is better than an equal one before it: zeros have signs, and
/// PostgreSQL keeps the last.
fn latest_float<T: Copy + Into<f64>>(greatest: bool) -> fn(&T, &T) -> Ordering {
    fn order<T: Copy + Into<f64>>(a: &T, b: &T) -> Ordering {
        float_order((*a).into()).cmp(&float_order((*b).into()))
    }
    if greatest {
        |a, b| order(a, b).then(Ordering::Greater)
    } else {
        |a, b| order(a, b).then(Ordering::Less)
    }
}

/// The fold that keeps the first value of each group that is not NULL.
pub(super) fn first(carrier: &DataType) -> Option<Box<dyn Fold>> {
    fn of<T: ArrowPrimitiveType>(carrier: &DataType) -> Extreme<T> {
        // No value is better than one that is kept.
        let order = |_: &T::Native, _: &T::Native| Ordering::Equal;
        Extreme { better: Ordering::Less, order, carrier: carrier.clone(), kept: Vec::new() }
    }
    Some(match carrier {
        DataType::Int16 => Box::new(of::<Int16Type>(carrier)),
        DataType::Int32 => Box::new(of::<Int32Type>(carrier)),
        DataType::Int64 => Box::new(of::<Int64Type>(carrier)),
        DataType::UInt32 => Box::new(of::<UInt32Type>(carrier)),
        DataType::Float32 => Box::new(of::<Float32Type>(carrier)),
        DataType::Float64 => Box::new(of::<Float64Type>(carrier)),
        DataType::Decimal128(..) => Box::new(of::<Decimal128Type>(carrier)),
        DataType::Utf8 => Box::new(Texts { better: None, kept: Vec::new(), bytes: 0 }),
        DataType::Binary => Box::new(FirstBytes { kept: Vec::new(), bytes: 0 }),
        _ => return None,
    })
}

/// The best value of each group.
#[derive(Debug)]
struct Extreme<T: ArrowPrimitiveType> {
    /// How a better value stands to the one that is kept. Of equal values the first stays.
    better: Ordering,
    order: fn(&T::Native, &T::Native) -> Ordering,
    carrier: DataType,
    kept: Vec<Option<T::Native>>,
}

impl<T: ArrowPrimitiveType + fmt::Debug> Fold for Extreme<T> {
    fn grow(&mut self, groups: usize) {
        self.kept.resize(groups, None);
    }

    fn update(&mut self, args: &[ArrayRef], rows: &Rows<'_>) -> Result<()> {
        let (order, better, kept) = (self.order, self.better, &mut self.kept);
        rows.values(primitive::<T>(args, 0)?, |group, value| {
            match &mut kept[group] {
                Some(known) if order(&value, known) != better => {}
                slot => *slot = Some(value),
            }
            Ok(())
        })
    }

    fn merge(&mut self, states: &[ArrayRef], rows: &Rows<'_>) -> Result<()> {
        self.update(states, rows)
    }

    fn finish(&self, groups: Range<usize>) -> Result<ArrayRef> {
        let values: PrimitiveArray<T> = self.kept[groups].iter().copied().collect();
        Ok(Arc::new(values.with_data_type(self.carrier.clone())))
    }

    fn state(&self, groups: Range<usize>) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.finish(groups)?])
    }

    fn forget(&mut self, groups: usize) {
        self.kept.drain(..groups);
    }

    fn size(&self) -> usize {
        self.kept.capacity() * size_of::<Option<T::Native>>()
    }
}

/// Decimals whose best is shown as a numeric of any kind.
#[derive(Debug)]
struct Packed {
    numbers: Extreme<Decimal128Type>,
    scale: u8,
}

impl Fold for Packed {
    fn grow(&mut self, groups: usize) {
        self.numbers.grow(groups);
    }

    fn update(&mut self, args: &[ArrayRef], rows: &Rows<'_>) -> Result<()> {
        self.numbers.update(args, rows)
    }

    fn merge(&mut self, states: &[ArrayRef], rows: &Rows<'_>) -> Result<()> {
        self.numbers.update(states, rows)
    }

    fn finish(&self, groups: Range<usize>) -> Result<ArrayRef> {
        let mut builder = BinaryBuilder::new();
        for value in &self.numbers.kept[groups] {
            match value {
                None => builder.append_null(),
                Some(value) => builder.append_value(packed(*value, self.scale)),
            }
        }
        Ok(Arc::new(builder.finish()))
    }

    fn state(&self, groups: Range<usize>) -> Result<Vec<ArrayRef>> {
        self.numbers.state(groups)
    }

    fn forget(&mut self, groups: usize) {
        self.numbers.forget(groups);
    }

    fn size(&self) -> usize {
        self.numbers.size()
    }
}

/// A decimal in packed form.
fn packed(value: i128, scale: u8) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(32);
    if value == DECIMAL_NAN || !push_numeric(value, u16::from(scale), &mut bytes) {
        bytes.clear();
        arrow_form::pack(&arrow_form::from_decimal(value, scale), &mut bytes);
    }
    bytes
}

/// The best text of each group, by bytes.
#[derive(Debug)]
struct Texts {
    /// How a better text stands to the one that is kept; without it the first stays.
    better: Option<Ordering>,
    kept: Vec<Option<Box<str>>>,
    /// Those of the texts.
    bytes: usize,
}

impl Fold for Texts {
    fn grow(&mut self, groups: usize) {
        self.kept.resize(groups, None);
    }

    fn update(&mut self, args: &[ArrayRef], rows: &Rows<'_>) -> Result<()> {
        let Some(texts) = args.first().and_then(|a| a.as_string_opt::<i32>()) else {
            return datafusion::common::internal_err!("texts of another type");
        };
        let (better, kept) = (self.better, &mut self.kept);
        rows.each(texts, |group, at| {
            let text = texts.value(at);
            match &kept[group] {
                Some(known) if better != Some(text.cmp(known)) => return Ok(()),
                Some(known) => self.bytes -= allocated(known.len()),
                None => {}
            }
            self.bytes += allocated(text.len());
            kept[group] = Some(text.into());
            Ok(())
        })
    }

    fn merge(&mut self, states: &[ArrayRef], rows: &Rows<'_>) -> Result<()> {
        self.update(states, rows)
    }

    fn finish(&self, groups: Range<usize>) -> Result<ArrayRef> {
        let texts: StringArray = self.kept[groups].iter().map(Option::as_deref).collect();
        Ok(Arc::new(texts))
    }

    fn state(&self, groups: Range<usize>) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.finish(groups)?])
    }

    fn forget(&mut self, groups: usize) {
        let gone = self.kept.drain(..groups).flatten();
        self.bytes -= gone.map(|kept| allocated(kept.len())).sum::<usize>();
    }

    fn size(&self) -> usize {
        self.kept.capacity() * size_of::<Option<Box<str>>>() + self.bytes
    }
}

/// The first packed value of each group.
#[derive(Debug)]
struct FirstBytes {
    kept: Vec<Option<Box<[u8]>>>,
    /// Those of the values.
    bytes: usize,
}

impl Fold for FirstBytes {
    fn grow(&mut self, groups: usize) {
        self.kept.resize(groups, None);
    }

    fn update(&mut self, args: &[ArrayRef], rows: &Rows<'_>) -> Result<()> {
        let Some(values) = args.first().and_then(|a| a.as_binary_opt::<i32>()) else {
            return datafusion::common::internal_err!("packed values of another type");
        };
        let kept = &mut self.kept;
        rows.each(values, |group, at| {
            kept[group].get_or_insert_with(|| {
                self.bytes += allocated(values.value(at).len());
                values.value(at).into()
            });
            Ok(())
        })
    }

    fn merge(&mut self, states: &[ArrayRef], rows: &Rows<'_>) -> Result<()> {
        self.update(states, rows)
    }

    fn finish(&self, groups: Range<usize>) -> Result<ArrayRef> {
        let values: BinaryArray = self.kept[groups].iter().map(Option::as_deref).collect();
        Ok(Arc::new(values))
    }

    fn state(&self, groups: Range<usize>) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.finish(groups)?])
    }

    fn forget(&mut self, groups: usize) {
        let gone = self.kept.drain(..groups).flatten();
        self.bytes -= gone.map(|kept| allocated(kept.len())).sum::<usize>();
    }

    fn size(&self) -> usize {
        self.kept.capacity() * size_of::<Option<Box<[u8]>>>() + self.bytes
    }
}
