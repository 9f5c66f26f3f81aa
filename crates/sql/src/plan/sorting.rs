//! Sorting that stops when it is asked to.
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

use braid_types::SqlResult;

/// Rows between two looks.
const PIECE: usize = 4096;

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
