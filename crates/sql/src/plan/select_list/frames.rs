//! Frames of windows: the rows around each row of a partition that a function looks at.
//!
//! ```text
//!   ORDER BY k ROWS BETWEEN 1 PRECEDING AND CURRENT ROW       ORDER BY k
//!   k             10   10   20   20                           10   10   20   20
//!   of the third      [10   20]                              [10   10   20   20]
//! ```
//! Offsets are numbers that are written there, and count rows; all others, and EXCLUDE, are for
//! general plans.

use std::ops::Range;

use sqlparser::ast::{self, Expr, Value, WindowFrameBound, WindowFrameUnits};

/// The most rows of a frame that begins behind the first row of its partition: such an aggregate is
/// computed anew for each row.
const ROWS_MAX: usize = 64;

/// See the [module documentation](self).
#[derive(Clone, Copy)]
pub(super) struct Frame {
    /// Its ends are rows; else those of peers.
    by_rows: bool,
    start: Edge,
    end: Edge,
}

/// An end of a frame.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Edge {
    /// That of the partition.
    Unbounded,
    /// So many rows behind the row, or before it.
    Rows(i64),
}

impl Frame {
    /// As it is written, for a window with an order or without; `None` if general plans know it, or
    /// what is wrong with it.
    pub(super) fn of(frame: Option<&ast::WindowFrame>, ordered: bool) -> Option<Frame> {
        let Some(frame) = frame else {
            return Some(Frame { by_rows: false, start: Edge::Unbounded, end: Edge::Rows(0) });
        };
        let by_rows = match frame.units {
            WindowFrameUnits::Rows => true,
            WindowFrameUnits::Range => false,
            WindowFrameUnits::Groups if ordered => false,
            WindowFrameUnits::Groups => return None,
        };
        let start = match &frame.start_bound {
            WindowFrameBound::Preceding(None) => Edge::Unbounded,
            bound => Edge::near(bound)?,
        };
        let end = match &frame.end_bound {
            None => Edge::Rows(0),
            Some(WindowFrameBound::Following(None)) => Edge::Unbounded,
            Some(bound) => Edge::near(bound)?,
        };
        let counts = |bound: &WindowFrameBound| {
            use WindowFrameBound::{Following, Preceding};
            matches!(bound, Preceding(Some(_)) | Following(Some(_)))
        };
        let last = frame.end_bound.as_ref().unwrap_or(&WindowFrameBound::CurrentRow);
        let distant = counts(&frame.start_bound) || counts(last);
        let fits = side(&frame.start_bound) <= side(last) && (by_rows || !distant);
        fits.then_some(Frame { by_rows, start, end })
    }

    /// Whether it begins with the partition.
    pub(super) fn begins(self) -> bool {
        self.start == Edge::Unbounded
    }

    /// Whether it is the whole partition for each row.
    pub(super) fn is_whole(self, ordered: bool) -> bool {
        let peers = !self.by_rows && !ordered;
        self.begins() && (self.end == Edge::Unbounded || peers)
    }

    /// Whether it has few rows, whatever the partition has.
    pub(super) fn is_short(self) -> bool {
        match (self.start, self.end) {
            (Edge::Rows(start), Edge::Rows(end)) => {
                self.by_rows && end.abs_diff(start) < ROWS_MAX as u64
            }
            _ => false,
        }
    }

    /// The frame of a row of a partition of so many, which has these peers.
    pub(super) fn around(self, row: usize, peers: &Range<usize>, rows: usize) -> Range<usize> {
        let (first, behind) = match self.by_rows {
            true => (row, row + 1),
            false => (peers.start, peers.end),
        };
        let at = |place: usize, by: i64| {
            usize::try_from(place as i128 + i128::from(by)).unwrap_or(0).min(rows)
        };
        let start = match self.start {
            Edge::Unbounded => 0,
            Edge::Rows(by) => at(first, by),
        };
        let end = match self.end {
            Edge::Unbounded => rows,
            Edge::Rows(by) => at(behind, by),
        };
        start..end.max(start)
    }

    /// What EXPLAIN says of it: nothing of the one that windows have which name none.
    pub(super) fn describe(self) -> String {
        let edge = |edge| match edge {
            Edge::Unbounded => "unbounded".to_string(),
            Edge::Rows(0) => "current".to_string(),
            Edge::Rows(by) => format!("{by:+}"),
        };
        let (start, end) = (edge(self.start), edge(self.end));
        match (self.by_rows, self.begins() && self.end == Edge::Rows(0)) {
            (false, true) => String::new(),
            (false, false) => format!(" peers {start} to {end}"),
            (true, _) => format!(" rows {start} to {end}"),
        }
    }
}

/// On which side of the row a bound lies, whatever its number: a frame that begins behind where it
/// may end is refused.
fn side(bound: &WindowFrameBound) -> u8 {
    match bound {
        WindowFrameBound::Preceding(_) => 0,
        WindowFrameBound::CurrentRow => 1,
        WindowFrameBound::Following(_) => 2,
    }
}

impl Edge {
    /// An end that is no further away than is written.
    fn near(bound: &WindowFrameBound) -> Option<Edge> {
        let count = |expr: &Expr| match expr {
            Expr::Value(value) => match &value.value {
                Value::Number(digits, _) => digits.parse::<u32>().ok().map(i64::from),
                _ => None,
            },
            _ => None,
        };
        Some(Edge::Rows(match bound {
            WindowFrameBound::CurrentRow => 0,
            WindowFrameBound::Preceding(Some(expr)) => -count(expr)?,
            WindowFrameBound::Following(Some(expr)) => count(expr)?,
            _ => return None,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_end_within_their_partition() {
        let frame = |by_rows, start, end| Frame { by_rows, start, end };
        let of = |frame: Frame, row| frame.around(row, &(2..4), 5);
        let moving = frame(true, Edge::Rows(-2), Edge::Rows(1));
        assert_eq!([of(moving, 0), of(moving, 2), of(moving, 4)], [0..2, 0..4, 2..5]);
        let peers = frame(false, Edge::Unbounded, Edge::Rows(0));
        assert_eq!(of(peers, 3), 0..4);
        let rest = frame(false, Edge::Rows(0), Edge::Unbounded);
        assert_eq!(of(rest, 3), 2..5);
        let before = frame(true, Edge::Rows(-3), Edge::Rows(-2));
        assert_eq!([of(before, 0), of(before, 1), of(before, 2)], [0..0, 0..0, 0..1]);
        let behind = frame(true, Edge::Rows(2), Edge::Rows(3));
        assert_eq!([of(behind, 2), of(behind, 4)], [4..5, 5..5]);
    }
}
