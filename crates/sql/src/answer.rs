//! Answers on their way to the client: rows of values, or columns that nobody has made values of.
//!
//! ```text
//!   stored bytes ---> columns ------------------------> text or binary of the protocol
//!                        \---> rows of Datums --------->
//! ```
//!
//! Whoever asks for a batch of an [`Answer`] takes either. Rows are for those who look at values:
//! cursors, COPY, statements that write what a query gives.

use std::sync::Arc;

use braid_types::{Datum, SqlType};

use braid_rows::Row;
use braid_rows::{Column, Values};

/// A batch of a result, never empty.
pub enum Answer {
    /// Rows.
    Rows(Vec<Row>),
    /// Columns.
    Columns(Box<dyn ColumnBatch>),
}

/// Rows in columns.
pub trait ColumnBatch: Send {
    /// How many rows there are.
    fn rows(&self) -> usize;
    /// The columns, each to be read from above.
    fn readers(&self) -> Vec<Box<dyn CellReader + '_>>;
}

/// Reads one column.
pub trait CellReader {
    /// What stands in a row.
    fn cell(&self, row: usize) -> Cell<'_>;
}

/// What stands in one row of one column.
#[derive(Debug)]
pub enum Cell<'a> {
    /// A text that need not be copied.
    Text(&'a str),
    /// Any other value, and NULL.
    Value(Datum),
}

impl Cell<'_> {
    /// As a value.
    pub(crate) fn into_value(self) -> Datum {
        match self {
            Cell::Text(text) => Datum::text(text),
            Cell::Value(value) => value,
        }
    }
}

impl Answer {
    /// How many rows there are.
    pub fn rows(&self) -> usize {
        match self {
            Answer::Rows(rows) => rows.len(),
            Answer::Columns(columns) => columns.rows(),
        }
    }

    /// As rows of values.
    pub fn into_rows(self) -> Vec<Row> {
        let columns = match self {
            Answer::Rows(rows) => return rows,
            Answer::Columns(columns) => columns,
        };
        let readers = columns.readers();
        let row = |at: usize| readers.iter().map(|r| r.cell(at).into_value()).collect();
        (0..columns.rows()).map(row).collect()
    }
}

/// Columns of a stored table, decoded.
pub(crate) struct StoredColumns {
    columns: Vec<Column>,
    types: Arc<[SqlType]>,
    rows: usize,
}

impl StoredColumns {
    /// `types`: what the columns are, in their order.
    pub(crate) fn new(columns: Vec<Column>, types: Arc<[SqlType]>, rows: usize) -> StoredColumns {
        StoredColumns { columns, types, rows }
    }

    /// What stands in a row of a column.
    pub(crate) fn value(&self, at: usize, row: usize) -> Datum {
        StoredCells { column: &self.columns[at], ty: &self.types[at] }.cell(row).into_value()
    }

    /// The integers of a column, if it is of such, or of dates or times, which lie in their order.
    pub(crate) fn integers(&self, at: usize) -> Option<Integers<'_>> {
        Integers::of(&self.columns[at])
    }
}

/// A column of integers.
pub(crate) struct Integers<'a> {
    values: Fixed<'a>,
    nulls: &'a [u32],
}

enum Fixed<'a> {
    I16(&'a [i16]),
    I32(&'a [i32]),
    I64(&'a [i64]),
}

impl<'a> Integers<'a> {
    fn of(column: &'a Column) -> Option<Integers<'a>> {
        let values = match &column.values {
            Values::I16(values) => Fixed::I16(values),
            Values::I32(values) => Fixed::I32(values),
            Values::I64(values) => Fixed::I64(values),
            _ => return None,
        };
        Some(Integers { values, nulls: &column.nulls })
    }

    /// Their sum without NULLs, and how many those are that it is of.
    pub(crate) fn sum(&self) -> (i128, usize) {
        let (mut sum, mut number) = (0, 0);
        self.each(|_, value| {
            sum += i128::from(value);
            number += 1;
        });
        (sum, number)
    }

    /// The row of the last of them in their order, or of the first; `None` if all are NULL.
    pub(crate) fn extreme(&self, last: bool) -> Option<usize> {
        let mut best: Option<(usize, i64)> = None;
        self.each(|row, value| {
            let better = |known: i64| if last { value > known } else { value < known };
            if best.is_none_or(|(_, known)| better(known)) {
                best = Some((row, value));
            }
        });
        best.map(|(row, _)| row)
    }

    /// Gives each that is not NULL with its row.
    fn each(&self, take: impl FnMut(usize, i64)) {
        match self.values {
            Fixed::I16(values) => each_known(values, self.nulls, take),
            Fixed::I32(values) => each_known(values, self.nulls, take),
            Fixed::I64(values) => each_known(values, self.nulls, take),
        }
    }
}

fn each_known<T: Copy + Into<i64>>(values: &[T], nulls: &[u32], mut take: impl FnMut(usize, i64)) {
    let mut nulls = nulls.iter().peekable();
    for (row, value) in values.iter().enumerate() {
        if nulls.next_if(|null| **null as usize == row).is_none() {
            take(row, (*value).into());
        }
    }
}

impl ColumnBatch for StoredColumns {
    fn rows(&self) -> usize {
        self.rows
    }

    fn readers(&self) -> Vec<Box<dyn CellReader + '_>> {
        let reader = |(column, ty)| Box::new(StoredCells { column, ty }) as Box<dyn CellReader>;
        self.columns.iter().zip(self.types.iter()).map(reader).collect()
    }
}

struct StoredCells<'a> {
    column: &'a Column,
    ty: &'a SqlType,
}

impl CellReader for StoredCells<'_> {
    fn cell(&self, row: usize) -> Cell<'_> {
        let nulls = &self.column.nulls;
        if !nulls.is_empty() && nulls.binary_search(&(row as u32)).is_ok() {
            return Cell::Value(Datum::Null);
        }
        Cell::Value(match &self.column.values {
            Values::Bool(values) => Datum::Bool(values[row]),
            Values::I16(values) => Datum::Int2(values[row]),
            Values::I32(values) if *self.ty == SqlType::Date => Datum::Date(values[row]),
            Values::I32(values) => Datum::Int4(values[row]),
            Values::I64(values) => match self.ty {
                SqlType::Time => Datum::Time(values[row]),
                SqlType::Timestamp => Datum::Timestamp(values[row]),
                SqlType::TimestampTz => Datum::TimestampTz(values[row]),
                _ => Datum::Int8(values[row]),
            },
            Values::F32(values) => Datum::Float4(values[row]),
            Values::F64(values) => Datum::Float8(values[row]),
            Values::Bytes(ends, bytes) => {
                let bytes = &bytes[ends[row] as usize..ends[row + 1] as usize];
                return Cell::Text(std::str::from_utf8(bytes).unwrap_or_default());
            }
            Values::Made(values) => values[row].clone(),
            Values::U32(_) | Values::I128(_) => {
                unreachable!("no column of an answer is decoded so: plan/columnar.rs")
            }
        })
    }
}
