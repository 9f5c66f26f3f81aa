//! Frames of our own: the rows around each row of a partition that a function looks at.
//!
//! ```text
//!   ORDER BY k ROWS BETWEEN 2 PRECEDING AND 2 FOLLOWING       the frame of the fourth row
//!   k             10   10   20   20   20   30
//!   EXCLUDE ..         [..............*.....]
//!   CURRENT ROW        x    x    x         x
//!   GROUP              x                   x
//!   TIES               x              *    x
//! ```
//! DataFusion knows neither EXCLUDE nor offsets of RANGE that are no numbers of the key's carrier.
//! Rows are in the order of the window, so that both ends of the frame only move forward, and all
//! frames of a partition cost one walk. What is left of a frame is up to three runs of rows.

use std::ops::Range;

use braid_parser::Exclusion;
use braid_scalar::EvalContext;
use braid_types::{Datum, SqlError, SqlResult, SqlState, SqlType};

use super::distance::Distance;
use crate::arrow_form::Reader;

/// What offsets of a frame count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Rows.
    Rows,
    /// Groups of peers.
    Groups,
    /// The distance of keys.
    Range,
}

/// One end of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edge {
    /// UNBOUNDED PRECEDING, or FOLLOWING at the end of the frame.
    Unbounded,
    /// CURRENT ROW.
    Current,
    /// An offset PRECEDING.
    Before,
    /// An offset FOLLOWING.
    Behind,
}

impl Edge {
    /// Whether it has an offset.
    pub(crate) fn has_offset(self) -> bool {
        matches!(self, Edge::Before | Edge::Behind)
    }
}

/// How the frames of a window are cut.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) unit: Unit,
    pub(crate) start: Edge,
    pub(crate) end: Edge,
    pub(crate) exclusion: Option<Exclusion>,
    /// Of the one key of RANGE with an offset: its type, whether it is descending, NULLS FIRST.
    pub(crate) key: Option<(SqlType, bool, bool)>,
}

impl Shape {
    /// Whether it matters which rows are peers.
    pub(crate) fn needs_peers(&self) -> bool {
        let by_peers = match self.unit {
            Unit::Rows => false,
            Unit::Groups => true,
            Unit::Range => [self.start, self.end].contains(&Edge::Current),
        };
        by_peers || matches!(self.exclusion, Some(Exclusion::Group | Exclusion::Ties))
    }

    /// Whether it has offsets that are added to keys.
    pub(crate) fn has_distance(&self) -> bool {
        self.unit == Unit::Range && (self.start.has_offset() || self.end.has_offset())
    }
}

/// 22004 for an offset that is NULL.
pub(crate) fn null_offset(end: bool) -> SqlError {
    let text = format!("frame {} offset must not be null", name(end));
    SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, text)
}

/// 22013 for a number of rows or groups that is negative.
pub(crate) fn negative_offset(end: bool) -> SqlError {
    let text = format!("frame {} offset must not be negative", name(end));
    SqlError::new(SqlState("22013"), text)
}

fn name(end: bool) -> &'static str {
    if end { "ending" } else { "starting" }
}

/// An offset as it is used.
enum Offset {
    None,
    Count(usize),
    Distance(Distance),
}

/// The frames of a partition, one row after the other.
pub(super) struct Frames<'a> {
    shape: &'a Shape,
    rows: usize,
    /// Rows with equal keys, if they are asked for.
    peers: Vec<Range<usize>>,
    /// Those of the row.
    group: usize,
    start: Offset,
    end: Offset,
    keys: Option<Reader<'a>>,
    /// The frame of the row before.
    last: Range<usize>,
    eval: &'a EvalContext,
}

impl<'a> Frames<'a> {
    /// Frames over so many rows with these peers, offsets and keys.
    ///
    /// # Errors
    /// 22004, 22013 for offsets that are none.
    pub(super) fn new(
        shape: &'a Shape,
        (rows, peers): (usize, Vec<Range<usize>>),
        offsets: [Option<Datum>; 2],
        keys: Option<Reader<'a>>,
        eval: &'a EvalContext,
    ) -> SqlResult<Frames<'a>> {
        let [start, end] = offsets;
        let start = offset(shape, shape.start, start, false)?;
        let end = offset(shape, shape.end, end, true)?;
        Ok(Frames { shape, rows, peers, group: 0, start, end, keys, last: 0..0, eval })
    }

    /// What is left of the frame of a row, which is the one behind that of the last call.
    ///
    /// # Errors
    /// 22013 for a negative offset, 22008 for a time out of range.
    pub(super) fn of(&mut self, row: usize) -> SqlResult<Vec<Range<usize>>> {
        while self.peers.get(self.group).is_some_and(|peers| peers.end <= row) {
            self.group += 1;
        }
        let (start, end) = match self.shape.unit {
            Unit::Rows => (self.row_start(row), self.row_end(row)),
            Unit::Groups => (self.group_start(), self.group_end()),
            Unit::Range => (self.key_start(row)?, self.key_end(row)?),
        };
        self.last = start..end;
        let group = self.peers.get(self.group).cloned().unwrap_or(row..row + 1);
        Ok(left_of(&(start..end.max(start)), self.shape.exclusion, row, &group))
    }

    fn row_start(&self, row: usize) -> usize {
        match (self.shape.start, &self.start) {
            (Edge::Unbounded, _) => 0,
            (Edge::Before, Offset::Count(n)) => row.saturating_sub(*n),
            (Edge::Behind, Offset::Count(n)) => row.saturating_add(*n).min(self.rows),
            _ => row,
        }
    }

    fn row_end(&self, row: usize) -> usize {
        match (self.shape.end, &self.end) {
            (Edge::Unbounded, _) => self.rows,
            (Edge::Before, Offset::Count(n)) => (row + 1).saturating_sub(*n),
            (Edge::Behind, Offset::Count(n)) => (row + 1).saturating_add(*n).min(self.rows),
            _ => row + 1,
        }
    }

    fn group_start(&self) -> usize {
        let group = match (self.shape.start, &self.start) {
            (Edge::Unbounded, _) => return 0,
            (Edge::Before, Offset::Count(n)) => self.group.saturating_sub(*n),
            (Edge::Behind, Offset::Count(n)) => self.group.saturating_add(*n),
            _ => self.group,
        };
        self.peers.get(group).map_or(self.rows, |peers| peers.start)
    }

    fn group_end(&self) -> usize {
        let group = match (self.shape.end, &self.end) {
            (Edge::Unbounded, _) => return self.rows,
            (Edge::Before, Offset::Count(n)) => match self.group.checked_sub(*n) {
                Some(group) => group,
                None => return 0,
            },
            (Edge::Behind, Offset::Count(n)) => self.group.saturating_add(*n),
            _ => self.group,
        };
        self.peers.get(group).map_or(self.rows, |peers| peers.end)
    }

    /// The first row whose key the bound is not beyond.
    fn key_start(&self, row: usize) -> SqlResult<usize> {
        let Offset::Distance(distance) = &self.start else { return Ok(self.group_start()) };
        let (key, descending, nulls_first) = self.key(row);
        let mut limit = None;
        let mut at = self.last.start;
        while at < self.rows {
            let other = self.key(at).0;
            let found = match (other.is_null(), key.is_null()) {
                (false, false) => {
                    let limit = known(&mut limit, || distance.limit(&key, self.eval))?;
                    if descending { limit.is_kept(&other) } else { limit.is_reached(&other) }
                }
                (other, own) if nulls_first => !other || own,
                (other, own) => other || !own,
            };
            if found {
                break;
            }
            at += 1;
        }
        Ok(at)
    }

    /// The first row behind the frame, whose key is beyond the bound.
    fn key_end(&self, row: usize) -> SqlResult<usize> {
        let Offset::Distance(distance) = &self.end else { return Ok(self.group_end()) };
        let (key, descending, nulls_first) = self.key(row);
        let mut limit = None;
        let mut at = self.last.end;
        while at < self.rows {
            let other = self.key(at).0;
            let inside = match (other.is_null(), key.is_null()) {
                (false, false) => {
                    let limit = known(&mut limit, || distance.limit(&key, self.eval))?;
                    if descending { limit.is_reached(&other) } else { limit.is_kept(&other) }
                }
                (other, _) if nulls_first => other,
                (_, own) => own,
            };
            if !inside {
                break;
            }
            at += 1;
        }
        Ok(at)
    }

    /// The key of a row, whether keys are descending, and NULLS FIRST.
    fn key(&self, row: usize) -> (Datum, bool, bool) {
        match (&self.keys, &self.shape.key) {
            (Some(keys), Some((ty, descending, nulls_first))) => {
                (keys.get(row, ty), *descending, *nulls_first)
            }
            _ => (Datum::Null, false, false),
        }
    }
}

fn known<T>(slot: &mut Option<T>, make: impl FnOnce() -> SqlResult<T>) -> SqlResult<&T> {
    if slot.is_none() {
        *slot = Some(make()?);
    }
    slot.as_ref().ok_or_else(|| SqlError::internal("just made"))
}

/// The offset of an end.
fn offset(shape: &Shape, edge: Edge, value: Option<Datum>, end: bool) -> SqlResult<Offset> {
    match value.filter(|_| edge.has_offset()) {
        None => Ok(Offset::None),
        Some(Datum::Null) => Err(null_offset(end)),
        Some(value) if shape.unit == Unit::Range => {
            let (ty, descending, _) =
                shape.key.as_ref().ok_or_else(|| SqlError::internal("RANGE without a key"))?;
            let back = (edge == Edge::Before) != *descending;
            Distance::new(ty, value, back).map(Offset::Distance)
        }
        Some(Datum::Int8(n)) if n >= 0 => Ok(Offset::Count(n as usize)),
        Some(_) => Err(negative_offset(end)),
    }
}

/// What is left of the frame of a row in a group of peers.
fn left_of(
    frame: &Range<usize>,
    exclusion: Option<Exclusion>,
    row: usize,
    group: &Range<usize>,
) -> Vec<Range<usize>> {
    let Some(exclusion) = exclusion else {
        return if frame.is_empty() { Vec::new() } else { vec![frame.clone()] };
    };
    let out = match exclusion {
        Exclusion::CurrentRow => row..row + 1,
        Exclusion::Group | Exclusion::Ties => group.clone(),
    };
    let kept = match exclusion {
        Exclusion::Ties => row.max(frame.start)..(row + 1).min(frame.end),
        Exclusion::CurrentRow | Exclusion::Group => 0..0,
    };
    let before = frame.start..frame.end.min(out.start);
    let after = frame.start.max(out.end)..frame.end;
    [before, kept, after].into_iter().filter(|run| run.start < run.end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_without_what_is_excluded() {
        let left = |exclusion: Exclusion, frame, row| {
            let runs = left_of(&frame, Some(exclusion), row, &(2..5));
            runs.into_iter().flatten().collect::<Vec<usize>>()
        };
        assert_eq!(left(Exclusion::CurrentRow, 1..6, 3), [1, 2, 4, 5]);
        assert_eq!(left(Exclusion::Group, 1..6, 3), [1, 5]);
        assert_eq!(left(Exclusion::Ties, 1..6, 3), [1, 3, 5]);
        // The row and its peers may lie outside of the frame.
        assert_eq!(left(Exclusion::Ties, 0..3, 4), [0, 1]);
        assert_eq!(left(Exclusion::CurrentRow, 5..7, 2), [5, 6]);
        assert_eq!(left(Exclusion::Group, 3..4, 2), [0; 0]);
        assert_eq!(left(Exclusion::Ties, 4..4, 2), [0; 0]);
    }
}
