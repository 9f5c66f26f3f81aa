//! Comparisons and IN lists.
//!
//! Both sides are brought to one carrier whose order Arrow knows: integers to the wider one, floats
//! to integers that sort as PostgreSQL sorts floats, decimals to the larger scale.

use std::sync::Arc;

use braid_scalar::{Bound, CmpOp};
use braid_types::{Datum, SqlType};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use datafusion::arrow::compute::is_null;
use datafusion::arrow::compute::kernels::cmp;
use datafusion::arrow::datatypes::{
    DataType, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, UInt32Type,
};
use datafusion::arrow::error::ArrowError;

use super::compile::{Compiled, Compiler};
use super::value::{Fit, Unfit, Vector, each};
use super::{decimals, lazy, packed};
use crate::arrow_form;

/// An integer that is to others as the double is to others: NaN is the greatest, the zeros are one.
pub(crate) fn float_order(value: f64) -> i64 {
    let normal = if value.is_nan() { f64::NAN } else { value + 0.0 };
    let bits = normal.to_bits() as i64;
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

/// Integers and floats as 64-bit integers of the same order.
fn ordinals(kernel: Compiled) -> Option<Compiled> {
    let out = DataType::Int64;
    let widen: fn(&Vector, &DataType) -> Fit<Vector> = match kernel.ty {
        DataType::Int64 => return Some(kernel),
        DataType::Int16 => |v, out| each::<Int16Type, Int64Type>(v, out, i64::from),
        DataType::Int32 => |v, out| each::<Int32Type, Int64Type>(v, out, i64::from),
        DataType::UInt32 => |v, out| each::<UInt32Type, Int64Type>(v, out, i64::from),
        DataType::Float32 => {
            |v, out| each::<Float32Type, Int64Type>(v, out, |x| float_order(f64::from(x)))
        }
        DataType::Float64 => |v, out| each::<Float64Type, Int64Type>(v, out, float_order),
        _ => return None,
    };
    let (null, shell) = (kernel.null, Compiled::new(out.clone(), &[&kernel], |_, _| Err(Unfit)));
    let mut wide = shell.code(move |frame, ctx| widen(&kernel.run(frame, ctx)?, &out));
    wide.null = null;
    Some(wide)
}

/// Kinds of values that compare with each other.
fn kind(ty: &SqlType) -> Option<u8> {
    Some(match ty {
        SqlType::Bool => 0,
        SqlType::Int2 | SqlType::Int4 | SqlType::Int8 => 1,
        ty if ty.is_oid_like() => 1,
        SqlType::Float4 | SqlType::Float8 => 2,
        SqlType::Numeric(_) => 3,
        SqlType::Date => 4,
        SqlType::Time => 5,
        SqlType::Timestamp | SqlType::TimestampTz => 6,
        SqlType::Bytea => 7,
        SqlType::Uuid => 8,
        SqlType::Enum(_) => 10,
        ty if ty.is_text_like() => 9,
        _ => return None,
    })
}

/// Both sides in one carrier that Arrow compares as SQL does.
fn comparable(
    compiler: &Compiler<'_>,
    left: &Bound,
    right: &Bound,
) -> Option<(Compiled, Compiled)> {
    let kind = kind(left.ty()).filter(|k| kind(right.ty()) == Some(*k))?;
    let (left, right) = (compiler.compile(left)?, compiler.compile(right)?);
    match kind {
        2 => Some((ordinals(left)?, ordinals(right)?)),
        3 => decimals::aligned(left, right),
        _ if left.ty == right.ty => Some((left, right)),
        _ => Some((ordinals(left)?, ordinals(right)?)),
    }
}

type Comparison = fn(
    &dyn datafusion::arrow::array::Datum,
    &dyn datafusion::arrow::array::Datum,
) -> Result<BooleanArray, ArrowError>;

fn compared(left: Compiled, right: Compiled, by: Comparison) -> Compiled {
    let kernel = Compiled::new(DataType::Boolean, &[&left, &right], |_, _| Err(Unfit));
    kernel.code(move |frame, ctx| {
        let (l, r) = (left.run(frame, ctx)?, right.run(frame, ctx)?);
        let truths = Vector::pair(&l, &r, by)?;
        Ok(Vector::joined(&l, &r, Arc::new(truths)))
    })
}

/// A comparison.
pub(super) fn compare(
    compiler: &Compiler<'_>,
    op: CmpOp,
    left: &Bound,
    right: &Bound,
) -> Option<Compiled> {
    let Some((left, right)) = comparable(compiler, left, right) else {
        return packed::compare(compiler, op, left, right);
    };
    Some(compared(
        left,
        right,
        match op {
            CmpOp::Eq => cmp::eq,
            CmpOp::Ne => cmp::neq,
            CmpOp::Lt => cmp::lt,
            CmpOp::Le => cmp::lt_eq,
            CmpOp::Gt => cmp::gt,
            CmpOp::Ge => cmp::gt_eq,
        },
    ))
}

/// `IS DISTINCT FROM`, or with the flag `IS NOT DISTINCT FROM`.
pub(super) fn distinct(
    compiler: &Compiler<'_>,
    left: &Bound,
    right: &Bound,
    not: bool,
) -> Option<Compiled> {
    let (left, right) = comparable(compiler, left, right)?;
    Some(compared(left, right, if not { cmp::not_distinct } else { cmp::distinct }))
}

/// GREATEST, or LEAST: the best of the values that are not NULL; of equal ones the first.
pub(super) fn extreme(
    compiler: &Compiler<'_>,
    bound: &Bound,
    parts: &[Bound],
    smallest: bool,
) -> Option<Compiled> {
    let own = kind(bound.ty()).filter(|k| *k != 2)?;
    let parts = parts.iter().map(|p| compiler.compile(p)).collect::<Option<Vec<_>>>()?;
    let (parts, carrier, digits) = lazy::alike(bound, parts)?;
    if own == 3 && carrier == DataType::Binary {
        return None;
    }
    let better: Comparison = if smallest { cmp::lt } else { cmp::gt };
    let all: Vec<&Compiled> = parts.iter().collect();
    let kernel = Compiled::new(carrier, &all, |_, _| Err(Unfit)).digits(digits);
    Some(kernel.code(move |frame, ctx| {
        let rows = frame.rows();
        let mut best: Option<ArrayRef> = None;
        for part in &parts {
            let next = part.run(frame, ctx)?;
            let Some(known) = best else {
                best = Some(next.array(rows)?);
                continue;
            };
            let kept = Vector::Each(known.clone());
            let wins = lazy::holds(&Vector::pair(&next, &kept, better)?);
            // What is not NULL is better than NULL.
            let taken = BooleanArray::new(wins.values() | is_null(&known)?.values(), None);
            best = Some(lazy::chosen(&taken, &next, &kept)?);
        }
        Ok(Vector::Each(best.ok_or(Unfit)?))
    }))
}

/// The values of an IN list, sorted.
enum Members {
    Ordinals(Vec<i64>),
    Decimals(Vec<i128>),
    Bytes(Vec<Vec<u8>>),
}

/// Below so many members, looking at each is faster than halving.
const FEW: usize = 8;

fn among<T: Ord + ?Sized, M: std::borrow::Borrow<T>>(members: &[M], value: &T) -> bool {
    match members.len() {
        ..FEW => members.iter().any(|m| m.borrow() == value),
        _ => members.binary_search_by(|m| m.borrow().cmp(value)).is_ok(),
    }
}

fn ordinal(value: &Datum) -> Option<i64> {
    Some(match value {
        Datum::Int2(v) => i64::from(*v),
        Datum::Int4(v) | Datum::Date(v) => i64::from(*v),
        Datum::Int8(v) | Datum::Time(v) | Datum::Timestamp(v) | Datum::TimestampTz(v) => *v,
        Datum::Oid(v) => i64::from(*v),
        Datum::Float4(v) => float_order(f64::from(*v)),
        Datum::Float8(v) => float_order(*v),
        _ => return None,
    })
}

impl Members {
    /// The members as values of a carrier; those that it does not hold equal none of its values.
    fn new(values: &[&Datum], needle: &Compiled) -> Option<Members> {
        match &needle.ty {
            DataType::Utf8 | DataType::Binary => {
                let bytes = values.iter().map(|v| match v {
                    Datum::Text(s) => Some(s.as_bytes().to_vec()),
                    Datum::Bytea(b) => Some(b.to_vec()),
                    Datum::Uuid(u) => Some(u.to_vec()),
                    _ => None,
                });
                let mut bytes = bytes.collect::<Option<Vec<_>>>()?;
                bytes.sort();
                Some(Members::Bytes(bytes))
            }
            DataType::Decimal128(..) => {
                let scale = needle.scale()?;
                let fits = |v: &&Datum| arrow_form::to_decimal(v, scale);
                let mut numbers: Vec<i128> = values.iter().filter_map(fits).collect();
                numbers.sort();
                Some(Members::Decimals(numbers))
            }
            _ => {
                let mut numbers =
                    values.iter().map(|v| ordinal(v)).collect::<Option<Vec<i64>>>()?;
                numbers.sort();
                Some(Members::Ordinals(numbers))
            }
        }
    }

    /// Whether each value is among them.
    fn find(&self, array: &ArrayRef) -> Fit<Vec<bool>> {
        Ok(match self {
            Members::Ordinals(members) => {
                let values = array.as_primitive_opt::<Int64Type>().ok_or(Unfit)?.values();
                values.iter().map(|v| among(members, v)).collect()
            }
            Members::Decimals(members) => {
                let values = array.as_primitive_opt::<Decimal128Type>().ok_or(Unfit)?.values();
                values.iter().map(|v| among(members, v)).collect()
            }
            Members::Bytes(members) => {
                let found = |bytes: &[u8]| among(members, bytes);
                match array.data_type() {
                    DataType::Utf8 => {
                        let texts = array.as_string::<i32>();
                        (0..texts.len()).map(|at| found(texts.value(at).as_bytes())).collect()
                    }
                    DataType::Binary => {
                        let bytes = array.as_binary::<i32>();
                        (0..bytes.len()).map(|at| found(bytes.value(at))).collect()
                    }
                    _ => return Err(Unfit),
                }
            }
        })
    }
}

/// `needle [NOT] IN (constants)`.
pub(super) fn in_list(
    compiler: &Compiler<'_>,
    needle: &Bound,
    list: &[Bound],
    negated: bool,
) -> Option<Compiled> {
    let own = kind(needle.ty()).filter(|k| *k != 0)?;
    let mut values = Vec::with_capacity(list.len());
    for item in list {
        let value = item.as_const()?;
        if !value.is_null() && kind(item.ty()) != Some(own) {
            return None;
        }
        values.push(value);
    }
    let nulls = values.iter().any(|v| v.is_null());
    values.retain(|v| !v.is_null());
    let needle = compiler.compile(needle)?;
    let needle = match needle.ty {
        DataType::Utf8 | DataType::Decimal128(..) => needle,
        DataType::Binary if own != 3 => needle,
        _ => ordinals(needle)?,
    };
    let members = Members::new(&values, &needle)?;
    let kernel = Compiled::new(DataType::Boolean, &[&needle], |_, _| Err(Unfit));
    Some(kernel.code(move |frame, ctx| {
        let value = needle.run(frame, ctx)?;
        let array = value.inner();
        let found = members.find(array)?;
        // Not found among NULLs is unknown.
        let truths: BooleanArray = (0..array.len())
            .map(|at| match (array.is_null(at), found[at]) {
                (true, _) => None,
                (_, true) => Some(!negated),
                (_, false) if nulls => None,
                (_, false) => Some(negated),
            })
            .collect();
        Ok(value.with(Arc::new(truths)))
    }))
}
