//! `count(DISTINCT x)`: the values of each group that were met.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use braid_types::{OrderedKind, SqlType};
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BinaryBuilder, Int64Array, PrimitiveArray,
};
use datafusion::arrow::datatypes::{
    ArrowPrimitiveType, DataType, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type,
    Int64Type, UInt32Type,
};
use datafusion::common::Result;

use super::fold::{Fold, Rows, allocated};
use crate::exec::vector::float_order;

/// The fold for values of this carrier, if their equality is that of its bytes or numbers.
pub(super) fn fold(arg: &SqlType, carrier: &DataType) -> Option<Box<dyn Fold>> {
    Some(match carrier {
        DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::UInt32
        | DataType::Float32
        | DataType::Float64
        | DataType::Decimal128(..) => Box::new(Distinct::<i128>::new()),
        DataType::Utf8 if arg.is_text_like() => Box::new(Distinct::<Box<[u8]>>::new()),
        DataType::Binary
            if matches!(arg, SqlType::Bytea | SqlType::Uuid) || OrderedKind::of(arg).is_some() =>
        {
            Box::new(Distinct::<Box<[u8]>>::new())
        }
        _ => return None,
    })
}

/// Values as members of a set.
trait Member: Sized + Eq + std::hash::Hash + std::fmt::Debug + Send + Sync + 'static {
    /// Calls `f` with each value that counts.
    fn each(array: &ArrayRef, rows: &Rows<'_>, f: impl FnMut(usize, Self)) -> Result<()>;

    /// Bytes that it holds behind a pointer.
    fn behind(&self) -> usize;

    /// Its bytes in a state.
    fn push(&self, out: &mut Vec<u8>);

    /// Reads what [`Member::push`] wrote.
    fn take(bytes: &mut &[u8]) -> Option<Self>;
}

impl Member for i128 {
    fn each(array: &ArrayRef, rows: &Rows<'_>, mut f: impl FnMut(usize, i128)) -> Result<()> {
        fn all<T: ArrowPrimitiveType>(
            array: &PrimitiveArray<T>,
            rows: &Rows<'_>,
            number: impl Fn(T::Native) -> i128,
            f: &mut impl FnMut(usize, i128),
        ) -> Result<()> {
            rows.values(array, |group, value| {
                f(group, number(value));
                Ok(())
            })
        }
        let wide = |x: f32| i128::from(float_order(f64::from(x)));
        match array.data_type() {
            DataType::Int16 => all(array.as_primitive::<Int16Type>(), rows, i128::from, &mut f),
            DataType::Int32 => all(array.as_primitive::<Int32Type>(), rows, i128::from, &mut f),
            DataType::Int64 => all(array.as_primitive::<Int64Type>(), rows, i128::from, &mut f),
            DataType::UInt32 => all(array.as_primitive::<UInt32Type>(), rows, i128::from, &mut f),
            DataType::Float32 => all(array.as_primitive::<Float32Type>(), rows, wide, &mut f),
            DataType::Float64 => {
                let order = |x| i128::from(float_order(x));
                all(array.as_primitive::<Float64Type>(), rows, order, &mut f)
            }
            DataType::Decimal128(..) => {
                all(array.as_primitive::<Decimal128Type>(), rows, |v| v, &mut f)
            }
            other => datafusion::common::internal_err!("numbers of type {other}"),
        }
    }

    fn behind(&self) -> usize {
        0
    }

    fn push(&self, out: &mut Vec<u8>) {
        out.extend(self.to_be_bytes());
    }

    fn take(bytes: &mut &[u8]) -> Option<i128> {
        let (head, rest) = bytes.split_first_chunk::<16>()?;
        *bytes = rest;
        Some(i128::from_be_bytes(*head))
    }
}

impl Member for Box<[u8]> {
    fn each(array: &ArrayRef, rows: &Rows<'_>, mut f: impl FnMut(usize, Self)) -> Result<()> {
        let (texts, bytes) = (array.as_string_opt::<i32>(), array.as_binary_opt::<i32>());
        rows.each(array, |group, at| {
            match (texts, bytes) {
                (Some(texts), _) => f(group, texts.value(at).as_bytes().into()),
                (_, Some(bytes)) => f(group, bytes.value(at).into()),
                _ => return datafusion::common::internal_err!("bytes of another type"),
            }
            Ok(())
        })
    }

    fn behind(&self) -> usize {
        allocated(self.len())
    }

    fn push(&self, out: &mut Vec<u8>) {
        out.extend((self.len() as u32).to_be_bytes());
        out.extend(self.iter());
    }

    fn take(bytes: &mut &[u8]) -> Option<Self> {
        let (length, rest) = bytes.split_first_chunk::<4>()?;
        let (value, rest) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
        *bytes = rest;
        Some(value.into())
    }
}

/// The values that each group has met.
#[derive(Debug)]
struct Distinct<M> {
    met: Vec<HashSet<M>>,
    /// What the values hold behind pointers, together.
    behind: usize,
}

impl<M: Member> Distinct<M> {
    fn new() -> Distinct<M> {
        Distinct { met: Vec::new(), behind: 0 }
    }

    fn insert(&mut self, group: usize, value: M) {
        let behind = value.behind();
        if self.met[group].insert(value) {
            self.behind += behind;
        }
    }
}

impl<M: Member> Fold for Distinct<M> {
    fn grow(&mut self, groups: usize) {
        self.met.resize_with(groups, HashSet::new);
    }

    fn update(&mut self, args: &[ArrayRef], rows: &Rows<'_>) -> Result<()> {
        M::each(&args[0], rows, |group, value| self.insert(group, value))
    }

    fn merge(&mut self, states: &[ArrayRef], rows: &Rows<'_>) -> Result<()> {
        let Some(sets) = states.first().and_then(|a| a.as_binary_opt::<i32>()) else {
            return datafusion::common::internal_err!("a state of another type");
        };
        rows.each(sets, |group, at| {
            let mut bytes = sets.value(at);
            while let Some(value) = M::take(&mut bytes) {
                self.insert(group, value);
            }
            Ok(())
        })
    }

    fn finish(&self, groups: Range<usize>) -> Result<ArrayRef> {
        let counts: Int64Array =
            self.met[groups].iter().map(|set| Some(set.len() as i64)).collect();
        Ok(Arc::new(counts))
    }

    fn state(&self, groups: Range<usize>) -> Result<Vec<ArrayRef>> {
        let mut builder = BinaryBuilder::new();
        let mut bytes = Vec::new();
        for set in &self.met[groups] {
            bytes.clear();
            set.iter().for_each(|value| value.push(&mut bytes));
            builder.append_value(&bytes);
        }
        Ok(vec![Arc::new(builder.finish())])
    }

    fn forget(&mut self, groups: usize) {
        for value in self.met.drain(..groups).flatten() {
            self.behind -= value.behind();
        }
    }

    fn size(&self) -> usize {
        // A set has a byte beside each place.
        let member = size_of::<M>() + 1;
        let sets = self.met.capacity() * size_of::<HashSet<M>>();
        sets + self.met.iter().map(|set| set.capacity() * member).sum::<usize>() + self.behind
    }
}
