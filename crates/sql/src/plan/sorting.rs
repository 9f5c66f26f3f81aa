//! The first rows of an order, and sorting that stops when it is asked to.
//!
//! Of many rows only the first are wanted: once there are twice as many as that, the others go, and
//! with them all that would come behind.
//!
//! A sort of millions of rows takes seconds. Pieces are sorted and then merged two by two, with a
//! look at the cancel flag in between:
//!
//! ```text
//!   5 3 8 1 | 7 2 6 4     pieces
//!   1 3 5 8 | 2 4 6 7     each sorted
//!   1 2 3 4 5 6 7 8       merged
//! ```

use std::cmp::Ordering;
use std::collections::VecDeque;

use braid_catalog::memory_error;
use braid_env::memory::Held;
use braid_rows::{Row, row_memory};
use braid_types::{Datum, SqlResult};
use bytes::Bytes;

use super::select::SortKey;
use crate::session::Context;

/// Rows between two looks.
const PIECE: usize = 4096;
/// Fewer rows are kept though not all of them are wanted.
const FEW: usize = 64;

/// Rows that are to be sorted; all of them are held.
pub(super) struct Order<'a> {
    ctx: &'a Context,
    sort: &'a [SortKey],
    /// So many of the first are wanted.
    most: Option<usize>,
    /// Each with the values that it is sorted by.
    all: Vec<(Row, Bytes, Row)>,
    memory: &'a mut Held,
    held: usize,
    /// So many as are wanted do not come behind a row with these values.
    last: Option<Row>,
}

impl<'a> Order<'a> {
    pub(super) fn new(
        ctx: &'a Context,
        sort: &'a [SortKey],
        most: Option<usize>,
        memory: &'a mut Held,
    ) -> Order<'a> {
        let held = memory.bytes();
        Order { ctx, sort, most, all: Vec::new(), memory, held, last: None }
    }

    /// The values that a row is sorted by; `None` if enough others come before it.
    pub(super) fn wants(&self, row: &Row) -> SqlResult<Option<Row>> {
        let values = self.sort.iter().map(|key| key.expr.eval(row, &self.ctx.eval));
        let values = values.collect::<SqlResult<Row>>()?;
        // Of equal ones the first come first.
        let is_behind = |last: &Row| compare(self.sort, &values, last) != Ordering::Less;
        Ok((!self.last.as_ref().is_some_and(is_behind)).then_some(values))
    }

    /// Takes a row that is wanted so far.
    ///
    /// # Errors
    /// 53200 when the rows do not fit.
    pub(super) fn add(&mut self, values: Row, key: Bytes, row: Row) -> SqlResult<()> {
        let bytes = memory_of(&values, &key, &row);
        self.memory.grow(bytes).map_err(|e| memory_error(&e))?;
        self.held += bytes;
        self.all.push((values, key, row));
        let Some(most) = self.most.filter(|most| self.all.len() >= most.saturating_mul(2).max(FEW))
        else {
            return Ok(());
        };
        self.all.sort_by(|a, b| compare(self.sort, &a.0, &b.0));
        let gone: usize = self.all.drain(most..).map(|(v, k, r)| memory_of(&v, &k, &r)).sum();
        self.last = self.all.last().map(|(values, ..)| values.clone());
        self.held -= gone;
        self.memory.resize(self.held).map_err(|e| memory_error(&e))
    }

    /// All that were taken, in their order.
    pub(super) fn rows(self) -> SqlResult<VecDeque<(Bytes, Row)>> {
        let by_values =
            |a: &(Row, Bytes, Row), b: &(Row, Bytes, Row)| compare(self.sort, &a.0, &b.0);
        let all = sorted(self.all, by_values, || self.ctx.check_cancel())?;
        Ok(all.into_iter().map(|(_, key, row)| (key, row)).collect())
    }
}

fn memory_of(values: &Row, key: &Bytes, row: &Row) -> usize {
    key.len() + row_memory(values) + row_memory(row)
}

/// Sorts rows; equal ones keep their order.
///
/// # Errors
/// That of `check`, which is called every few thousand rows.
pub(super) fn sorted<T>(
    mut rows: Vec<T>,
    compare: impl Fn(&T, &T) -> Ordering,
    check: impl Fn() -> SqlResult<()>,
) -> SqlResult<Vec<T>> {
    if rows.len() <= PIECE {
        rows.sort_by(&compare);
        return Ok(rows);
    }
    let mut pieces: Vec<Vec<T>> = Vec::with_capacity(rows.len() / PIECE + 1);
    while !rows.is_empty() {
        check()?;
        let mut piece = rows.split_off(rows.len().saturating_sub(PIECE));
        piece.sort_by(&compare);
        pieces.push(piece);
    }
    // They were cut off from the end.
    pieces.reverse();
    while pieces.len() > 1 {
        let mut merged = Vec::with_capacity(pieces.len().div_ceil(2));
        let mut from = pieces.into_iter();
        while let Some(left) = from.next() {
            merged.push(match from.next() {
                Some(right) => merge(left, right, &compare, &check)?,
                None => left,
            });
        }
        pieces = merged;
    }
    Ok(pieces.pop().unwrap_or_default())
}

fn merge<T>(
    left: Vec<T>,
    right: Vec<T>,
    compare: &impl Fn(&T, &T) -> Ordering,
    check: &impl Fn() -> SqlResult<()>,
) -> SqlResult<Vec<T>> {
    let mut out = Vec::with_capacity(left.len() + right.len());
    let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
    loop {
        if out.len() % PIECE == 0 {
            check()?;
        }
        let from_right = match (left.peek(), right.peek()) {
            (Some(l), Some(r)) => compare(l, r) == Ordering::Greater,
            (None, Some(_)) => true,
            (Some(_), None) => false,
            (None, None) => return Ok(out),
        };
        out.extend(if from_right { right.next() } else { left.next() });
    }
}

/// The order of two rows of sort values.
pub(super) fn compare(keys: &[SortKey], a: &[Datum], b: &[Datum]) -> Ordering {
    use Ordering::{Equal, Greater, Less};
    for ((k, x), y) in keys.iter().zip(a).zip(b) {
        let o = match (x.is_null(), y.is_null()) {
            (true, true) => Equal,
            (true, false) => {
                if k.nulls_first {
                    Less
                } else {
                    Greater
                }
            }
            (false, true) => {
                if k.nulls_first {
                    Greater
                } else {
                    Less
                }
            }
            _ if k.desc => y.cmp_sql(x),
            _ => x.cmp_sql(y),
        };
        if o != Equal {
            return o;
        }
    }
    Equal
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use braid_types::SqlError;

    use super::*;

    fn numbers(n: u64) -> Vec<(u64, u64)> {
        (0..n).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54, i)).collect()
    }

    #[test]
    fn many_rows_are_sorted_and_equal_ones_keep_their_order() {
        for n in [0, 1, 4096, 4097, 8192, 50_001] {
            let mut expected = numbers(n);
            expected.sort_by_key(|row| row.0);
            let got = sorted(numbers(n), |a, b| a.0.cmp(&b.0), || Ok(())).unwrap();
            assert_eq!(got, expected, "{n} rows");
        }
    }

    #[test]
    fn a_sort_stops_in_the_middle() {
        for allowed in [0, 3, 12, 20, 30] {
            let left = Cell::new(allowed);
            let compared = Cell::new(0usize);
            let check = || match left.get() {
                0 => Err(SqlError::internal("stop")),
                n => {
                    left.set(n - 1);
                    Ok(())
                }
            };
            let compare = |a: &(u64, u64), b: &(u64, u64)| {
                compared.set(compared.get() + 1);
                a.0.cmp(&b.0)
            };
            assert!(sorted(numbers(50_001), compare, check).is_err());
            assert!(compared.get() <= (allowed + 1) * PIECE * 14, "{}", compared.get());
        }
    }
}
