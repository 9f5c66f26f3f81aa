//! Columns, constants, and ways over two of them.

use datafusion::arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, PrimitiveArray, Scalar,
    UInt32Array, new_null_array,
};
use datafusion::arrow::compute::kernels::arity;
use datafusion::arrow::compute::{filter, take};
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::error::ArrowError;
use datafusion::logical_expr::ColumnarValue;

/// A kernel cannot compute this batch; the row form can.
#[derive(Debug)]
pub(super) struct Unfit;

impl From<ArrowError> for Unfit {
    fn from(_: ArrowError) -> Unfit {
        Unfit
    }
}

/// What a kernel gives.
pub(super) type Fit<T> = Result<T, Unfit>;

/// A column, or one value for all rows.
#[derive(Clone, Debug)]
pub(super) enum Vector {
    /// One value for each row.
    Each(ArrayRef),
    /// An array of one value, which all rows have.
    Same(ArrayRef),
}

impl Vector {
    /// An argument as DataFusion gives it.
    pub fn of(value: &ColumnarValue) -> Option<Vector> {
        Some(match value {
            ColumnarValue::Array(array) => Vector::Each(array.clone()),
            ColumnarValue::Scalar(scalar) => Vector::Same(scalar.to_array().ok()?),
        })
    }

    /// The array behind it, of one value or of all.
    pub fn inner(&self) -> &ArrayRef {
        match self {
            Vector::Each(array) | Vector::Same(array) => array,
        }
    }

    /// The same shape around another array.
    pub fn with(&self, array: ArrayRef) -> Vector {
        match self {
            Vector::Each(_) => Vector::Each(array),
            Vector::Same(_) => Vector::Same(array),
        }
    }

    /// One value for each row.
    pub fn array(&self, rows: usize) -> Fit<ArrayRef> {
        match self {
            Vector::Each(array) => Ok(array.clone()),
            Vector::Same(array) if rows == 1 => Ok(array.clone()),
            Vector::Same(array) => Ok(take(array, &UInt32Array::from(vec![0; rows]), None)?),
        }
    }

    /// Whether it is NULL for all rows because it is one NULL.
    pub fn is_null(&self) -> bool {
        matches!(self, Vector::Same(array) if array.is_null(0))
    }

    /// The truth values.
    pub fn truths(&self, rows: usize) -> Fit<BooleanArray> {
        Ok(self.array(rows)?.as_boolean_opt().ok_or(Unfit)?.clone())
    }

    /// Calls `f` with what Arrow's kernels of two operands take.
    pub fn pair<T>(
        a: &Vector,
        b: &Vector,
        f: impl Fn(&dyn datafusion::arrow::array::Datum, &dyn datafusion::arrow::array::Datum) -> T,
    ) -> T {
        match (a, b) {
            (Vector::Each(a), Vector::Same(b)) => f(a, &Scalar::new(b.clone())),
            (Vector::Same(a), Vector::Each(b)) => f(&Scalar::new(a.clone()), b),
            (Vector::Each(a), Vector::Each(b)) | (Vector::Same(a), Vector::Same(b)) => f(a, b),
        }
    }

    /// What a kernel of two operands gave: one value if both have one.
    pub fn joined(a: &Vector, b: &Vector, array: ArrayRef) -> Vector {
        match (a, b) {
            (Vector::Same(_), Vector::Same(_)) => Vector::Same(array),
            _ => Vector::Each(array),
        }
    }
}

/// The columns that an expression is computed over.
pub(super) struct Frame {
    columns: Vec<Vector>,
    rows: usize,
}

impl Frame {
    /// Columns of so many rows.
    pub fn new(columns: Vec<Vector>, rows: usize) -> Frame {
        Frame { columns, rows }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The column at this ordinal.
    pub fn column(&self, at: usize) -> Fit<Vector> {
        self.columns.get(at).cloned().ok_or(Unfit)
    }

    /// The rows at which the mask is true, of the columns that are used.
    pub fn filtered(&self, mask: &BooleanArray, used: &[usize]) -> Fit<Frame> {
        let mut columns = Vec::with_capacity(self.columns.len());
        for (at, column) in self.columns.iter().enumerate() {
            columns.push(match column {
                Vector::Each(array) if used.contains(&at) => Vector::Each(filter(array, mask)?),
                Vector::Each(array) => Vector::Same(new_null_array(array.data_type(), 1)),
                same => same.clone(),
            });
        }
        Ok(Frame { columns, rows: mask.true_count() })
    }
}

/// Values for the rows at which the mask is true become values for all rows; the others are NULL.
pub(super) fn scattered(values: &Vector, mask: &BooleanArray) -> Fit<ArrayRef> {
    let mut next = 0;
    let places: UInt32Array = (0..mask.len())
        .map(|at| {
            mask.value(at).then(|| {
                next += 1;
                next - 1
            })
        })
        .collect();
    Ok(take(&values.array(next as usize)?, &places, None)?)
}

/// Primitive values as this carrier: decimals have a scale that their numbers do not tell.
fn typed<O: ArrowPrimitiveType>(array: PrimitiveArray<O>, out: &DataType) -> ArrayRef {
    std::sync::Arc::new(array.with_data_type(out.clone()))
}

/// `f` of each value.
pub(super) fn each<A: ArrowPrimitiveType, O: ArrowPrimitiveType>(
    a: &Vector,
    out: &DataType,
    f: impl Fn(A::Native) -> O::Native,
) -> Fit<Vector> {
    let array = a.inner().as_primitive_opt::<A>().ok_or(Unfit)?;
    Ok(a.with(typed(array.unary::<_, O>(f), out)))
}

/// `f` of each value that is not NULL; unfit where it gives nothing.
pub(super) fn try_each<A: ArrowPrimitiveType, O: ArrowPrimitiveType>(
    a: &Vector,
    out: &DataType,
    f: impl Fn(A::Native) -> Option<O::Native>,
) -> Fit<Vector> {
    let array = a.inner().as_primitive_opt::<A>().ok_or(Unfit)?;
    let values = array.try_unary::<_, O, Unfit>(|v| f(v).ok_or(Unfit))?;
    Ok(a.with(typed(values, out)))
}

/// `f` of each pair of values.
pub(super) fn zip<A: ArrowPrimitiveType, B: ArrowPrimitiveType, O: ArrowPrimitiveType>(
    (a, b): (&Vector, &Vector),
    rows: usize,
    out: &DataType,
    f: impl Fn(A::Native, B::Native) -> O::Native,
) -> Fit<Vector> {
    if a.is_null() || b.is_null() {
        return Ok(nulls(a, b, rows, out));
    }
    let x = a.inner().as_primitive_opt::<A>().ok_or(Unfit)?;
    let y = b.inner().as_primitive_opt::<B>().ok_or(Unfit)?;
    let values = match (a, b) {
        (Vector::Each(_), Vector::Same(_)) => {
            let y = y.value(0);
            x.unary::<_, O>(|x| f(x, y))
        }
        (Vector::Same(_), Vector::Each(_)) => {
            let x = x.value(0);
            y.unary::<_, O>(|y| f(x, y))
        }
        _ => arity::binary::<A, B, _, O>(x, y, f)?,
    };
    Ok(Vector::joined(a, b, typed(values, out)))
}

/// `f` of each pair of values without a NULL; unfit where it gives nothing.
pub(super) fn try_zip<A: ArrowPrimitiveType, B: ArrowPrimitiveType, O: ArrowPrimitiveType>(
    (a, b): (&Vector, &Vector),
    rows: usize,
    out: &DataType,
    f: impl Fn(A::Native, B::Native) -> Option<O::Native>,
) -> Fit<Vector> {
    if a.is_null() || b.is_null() {
        return Ok(nulls(a, b, rows, out));
    }
    let x = a.inner().as_primitive_opt::<A>().ok_or(Unfit)?;
    let y = b.inner().as_primitive_opt::<B>().ok_or(Unfit)?;
    let values = match (a, b) {
        (Vector::Each(_), Vector::Same(_)) => {
            let y = y.value(0);
            x.try_unary::<_, O, Unfit>(|x| f(x, y).ok_or(Unfit))?
        }
        (Vector::Same(_), Vector::Each(_)) => {
            let x = x.value(0);
            y.try_unary::<_, O, Unfit>(|y| f(x, y).ok_or(Unfit))?
        }
        _ => arity::try_binary(x, y, |x, y| f(x, y).ok_or(ArrowError::DivideByZero))?,
    };
    Ok(Vector::joined(a, b, typed(values, out)))
}

/// NULL for every row.
fn nulls(a: &Vector, b: &Vector, rows: usize, out: &DataType) -> Vector {
    let length = match (a, b) {
        (Vector::Same(_), Vector::Same(_)) => 1,
        _ => rows,
    };
    Vector::joined(a, b, new_null_array(out, length))
}
