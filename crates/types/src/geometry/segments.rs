//! Lines and segments: where they meet, and which of their points lies next to another.

use super::plane::{Point, hypotenuse, minus, nearer, over, plus, same, times, zero};
use crate::SqlResult;

/// A segment between two points.
pub type Segment = [Point; 2];

/// A line of the points for which `Ax + By + C` is 0.
pub type Line = [f64; 3];

/// How steep a segment is; infinity for one that goes straight up.
///
/// # Errors
/// 22003.
pub fn slope([a, b]: Segment) -> SqlResult<f64> {
    if same(a.x, b.x) {
        return Ok(f64::INFINITY);
    }
    if same(a.y, b.y) {
        return Ok(0.0);
    }
    over(minus(a.y, b.y)?, minus(a.x, b.x)?)
}

/// How steep a segment is that stands on this one.
///
/// # Errors
/// 22003.
pub fn standing_slope([a, b]: Segment) -> SqlResult<f64> {
    if same(a.x, b.x) {
        return Ok(0.0);
    }
    if same(a.y, b.y) {
        return Ok(f64::INFINITY);
    }
    over(minus(a.x, b.x)?, minus(b.y, a.y)?)
}

/// The line through a point.
///
/// # Errors
/// 22003.
pub fn line_at(point: Point, slope: f64) -> SqlResult<Line> {
    if slope.is_infinite() {
        return Ok([-1.0, 0.0, point.x]);
    }
    if slope == 0.0 {
        return Ok([0.0, -1.0, point.y]);
    }
    let height = minus(point.y, times(slope, point.x)?)?;
    // No -0.
    Ok([slope, -1.0, if height == 0.0 { 0.0 } else { height }])
}

/// The line that goes on where a segment ends.
fn extended(segment: Segment) -> SqlResult<Line> {
    line_at(segment[0], slope(segment)?)
}

/// How steep a line is that stands on this one.
fn standing(line: Line) -> SqlResult<f64> {
    if zero(line[0]) {
        return Ok(f64::INFINITY);
    }
    if zero(line[1]) {
        return Ok(0.0);
    }
    over(line[1], line[0])
}

/// The point that is on both lines; `None` if they are parallel.
///
/// # Errors
/// 22003.
pub fn lines_meet(one: Line, two: Line) -> SqlResult<Option<Point>> {
    let (l, m) = match (zero(one[1]), zero(two[1])) {
        (false, _) => (one, two),
        (true, false) => (two, one),
        (true, true) => return Ok(None),
    };
    if same(m[0], times(l[0], over(m[1], l[1])?)?) {
        return Ok(None);
    }
    let above = minus(times(l[1], m[2])?, times(m[1], l[2])?)?;
    let below = minus(times(l[0], m[1])?, times(m[0], l[1])?)?;
    let x = over(above, below)?;
    let y = over(-plus(times(l[0], x)?, l[2])?, l[1])?;
    let positive = |n: f64| if n == 0.0 { 0.0 } else { n };
    Ok(Some(Point::at(positive(x), positive(y))))
}

/// Whether a point is on a segment.
///
/// # Errors
/// 22003.
pub fn on_segment([a, b]: Segment, point: Point) -> SqlResult<bool> {
    Ok(same(plus(point.to(a)?, point.to(b)?)?, a.to(b)?))
}

/// The point of a segment that is on a line.
///
/// # Errors
/// 22003.
pub fn segment_meets_line(segment: Segment, line: Line) -> SqlResult<Option<Point>> {
    let Some(found) = lines_meet(extended(segment)?, line)? else { return Ok(None) };
    if !on_segment(segment, found)? {
        return Ok(None);
    }
    // An end that is as good is exact.
    Ok(Some(segment.into_iter().find(|end| end.is(found)).unwrap_or(found)))
}

/// The point that two segments have in common.
///
/// # Errors
/// 22003.
pub fn segments_meet(one: Segment, two: Segment) -> SqlResult<Option<Point>> {
    let Some(found) = segment_meets_line(one, extended(two)?)? else { return Ok(None) };
    Ok(if on_segment(two, found)? { Some(found) } else { None })
}

/// How steep a line is; infinity for one that goes straight up.
///
/// # Errors
/// 22003.
pub fn line_slope(line: Line) -> SqlResult<f64> {
    if zero(line[0]) {
        return Ok(0.0);
    }
    if zero(line[1]) {
        return Ok(f64::INFINITY);
    }
    over(line[0], -line[1])
}

/// The point of a line that lies next to another; `None` where numbers are none.
///
/// # Errors
/// 22003.
pub fn nearest_on_line(line: Line, point: Point) -> SqlResult<Option<Point>> {
    lines_meet(line_at(point, standing(line)?)?, line)
}

/// How far a point lies from a line.
pub(crate) fn line_to_point(line: Line, point: Point) -> SqlResult<f64> {
    nearest_on_line(line, point)?.map_or(Ok(f64::NAN), |nearest| nearest.to(point))
}

/// How far two lines lie apart.
///
/// # Errors
/// 22003.
pub(crate) fn line_to_line(one: Line, two: Line) -> SqlResult<f64> {
    if lines_meet(one, two)?.is_some() {
        return Ok(0.0);
    }
    let counts = |at: usize| ![one[at], two[at]].iter().any(|n| zero(*n) || n.is_nan());
    let ratio = match (counts(0), counts(1)) {
        (true, _) => over(one[0], two[0])?,
        (false, true) => over(one[1], two[1])?,
        (false, false) => 1.0,
    };
    let apart = minus(one[2], times(ratio, two[2])?)?.abs();
    over(apart, hypotenuse(one[0], one[1])?)
}

/// How far a segment lies from a line, and which of its points is next to it.
///
/// # Errors
/// 22003.
pub fn segment_to_line(segment: Segment, line: Line) -> SqlResult<(f64, Point)> {
    if let Some(common) = segment_meets_line(segment, line)? {
        return Ok((0.0, common));
    }
    let [a, b] = segment;
    let (to_a, to_b) = (line_to_point(line, a)?, line_to_point(line, b)?);
    Ok(if to_a < to_b { (to_a, a) } else { (to_b, b) })
}

/// How far a point lies from a segment, and which of its points is next to it.
///
/// # Errors
/// 22003.
pub fn segment_to_point(segment: Segment, point: Point) -> SqlResult<(f64, Point)> {
    let standing = line_at(point, standing_slope(segment)?)?;
    let (_, nearest) = segment_to_line(segment, standing)?;
    Ok((nearest.to(point)?, nearest))
}

/// How far two segments lie apart, and which point of the first is next to the second.
///
/// # Errors
/// 22003.
pub fn segment_to_segment(on: Segment, to: Segment) -> SqlResult<(f64, Point)> {
    if let Some(common) = segments_meet(on, to)? {
        return Ok((0.0, common));
    }
    let mut nearest = segment_to_point(on, to[0])?;
    let candidates = [
        segment_to_point(on, to[1])?,
        (segment_to_point(to, on[0])?.0, on[0]),
        (segment_to_point(to, on[1])?.0, on[1]),
    ];
    for candidate in candidates {
        if nearer(candidate.0, nearest.0) {
            nearest = candidate;
        }
    }
    Ok(nearest)
}

/// Whether two lines are the same one.
///
/// # Errors
/// 22003.
pub fn same_lines(one: Line, two: Line) -> SqlResult<bool> {
    if one.iter().chain(&two).any(|n| n.is_nan()) {
        let equal = |(a, b): (f64, f64)| a == b || (a.is_nan() && b.is_nan());
        return Ok(one.into_iter().zip(two).all(equal));
    }
    let ratio = match (0..3).find(|at| !zero(two[*at])) {
        Some(at) => over(one[at], two[at])?,
        None => 1.0,
    };
    for at in 0..3 {
        if !same(one[at], times(ratio, two[at])?) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether one line stands on the other.
///
/// # Errors
/// 22003.
pub fn stands_on(one: Line, two: Line) -> SqlResult<bool> {
    if zero(one[0]) {
        return Ok(zero(two[1]));
    }
    if zero(two[0]) {
        return Ok(zero(one[1]));
    }
    if zero(one[1]) {
        return Ok(zero(two[0]));
    }
    if zero(two[1]) {
        return Ok(zero(one[0]));
    }
    Ok(same(over(times(one[0], two[0])?, times(one[1], two[1])?)?, -1.0))
}
