//! Functions of the places of rows: one so far away, one by its number, a part of the partition.

use std::ops::Range;
use std::sync::Arc;

use braid_types::{Datum, SqlError, SqlState, SqlType};
use datafusion::arrow::array::{Array, ArrayRef, Int32Array, new_null_array};
use datafusion::arrow::compute::interleave;
use datafusion::common::Result;

use crate::arrow_form::Reader;
use crate::error::to_df;

/// The row of a number, from 1, of several runs.
pub(super) fn nth(runs: &[Range<usize>], number: usize) -> Option<usize> {
    let mut before = number.checked_sub(1)?;
    for run in runs {
        if before < run.len() {
            return Some(run.start + before);
        }
        before -= run.len();
    }
    None
}

/// `lag` and `lead` of values, by offsets and with defaults that are those of each row. Without an
/// offset the result is NULL, and not the default.
pub(super) fn shifted(back: bool, args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let [values, rest @ ..] = args else {
        return datafusion::common::internal_err!("a shift of nothing");
    };
    let offsets = rest.first().map(|offsets| Reader::new(offsets));
    let nothing = new_null_array(values.data_type(), 1);
    let defaults = rest.get(1);
    let mut found = Vec::with_capacity(rows);
    for row in 0..rows {
        let offset = match offsets.as_ref().map(|offsets| offsets.get(row, &SqlType::Int8)) {
            None => 1,
            Some(Datum::Int8(offset)) => i128::from(offset),
            Some(_) => {
                found.push((1, 0));
                continue;
            }
        };
        let at = row as i128 + if back { -offset } else { offset };
        found.push(match usize::try_from(at).ok().filter(|at| *at < rows) {
            Some(at) => (0, at),
            None if defaults.is_some() => (2, row),
            None => (1, 0),
        });
    }
    let mut from: Vec<&dyn Array> = vec![&**values, &*nothing];
    from.extend(defaults.map(|defaults| &**defaults));
    Ok(interleave(&from, &found)?)
}

/// `ntile`. The number of parts is that of the first row that has one, and the rows before it are
/// in none.
pub(super) fn tiles(counts: &ArrayRef, rows: usize) -> Result<ArrayRef> {
    let reader = Reader::new(counts);
    let first = (0..rows).find(|row| counts.is_valid(*row));
    let Some(first) = first else { return Ok(new_null_array(&counts_type(), rows)) };
    let Datum::Int8(parts @ 1..) = reader.get(first, &SqlType::Int8) else {
        let text = "argument of ntile must be greater than zero";
        return Err(to_df(SqlError::new(SqlState("22014"), text)));
    };
    let (size, longer) = (rows as i64 / parts, rows as i64 % parts);
    let part = |row: i64| match row {
        row if row < longer * (size + 1) => row / (size + 1) + 1,
        // There are no parts behind those of one row each.
        row => longer + (row - longer * (size + 1)) / size.max(1) + 1,
    };
    let tiles = (0..rows).map(|row| (row >= first).then(|| part((row - first) as i64) as i32));
    Ok(Arc::new(tiles.collect::<Int32Array>()))
}

fn counts_type() -> datafusion::arrow::datatypes::DataType {
    crate::arrow_form::data_type(&SqlType::Int4)
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::Int64Array;

    use super::*;

    #[test]
    fn rows_are_numbered_over_all_runs() {
        let runs = [1..3, 4..5, 7..9];
        let all: Vec<Option<usize>> = (0..7).map(|n| nth(&runs, n)).collect();
        assert_eq!(all, [None, Some(1), Some(2), Some(4), Some(7), Some(8), None]);
    }

    #[test]
    fn longer_parts_come_first() {
        let tiled = |parts: Option<i64>, rows: usize| {
            let counts: ArrayRef = Arc::new(Int64Array::from(vec![parts; rows]));
            let tiles = tiles(&counts, rows).expect("parts");
            let reader = Reader::new(&tiles);
            (0..rows).map(|row| reader.get(row, &SqlType::Int4)).collect::<Vec<_>>()
        };
        let shown = |parts, rows| {
            let of = |tile: Datum| if let Datum::Int4(n) = tile { n } else { 0 };
            tiled(parts, rows).into_iter().map(of).collect::<Vec<i32>>()
        };
        assert_eq!(shown(Some(3), 7), [1, 1, 1, 2, 2, 3, 3]);
        assert_eq!(shown(Some(3), 6), [1, 1, 2, 2, 3, 3]);
        assert_eq!(shown(Some(5), 3), [1, 2, 3]);
        assert_eq!(shown(None, 2), [0, 0]);
    }
}
