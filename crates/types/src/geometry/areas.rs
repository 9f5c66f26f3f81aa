//! Boxes, paths and polygons.

use super::plane::{Point, at_most, less, minus, nearer, over, plus, same, times, zero};
use super::segments::{
    Line, Segment, on_segment, segment_meets_line, segment_to_point, segment_to_segment,
    segments_meet,
};
use crate::SqlResult;

/// A rectangle: the corner with the greatest numbers, and the one with the least.
pub type Corners = [Point; 2];

/// Whether a number is greater than another, as numbers sort: what is no number is the greatest.
fn above(a: f64, b: f64) -> bool {
    !b.is_nan() && (a.is_nan() || a > b)
}

/// The greater of two numbers.
pub fn greatest(a: f64, b: f64) -> f64 {
    if above(a, b) { a } else { b }
}

/// The lesser of two numbers.
pub fn least(a: f64, b: f64) -> f64 {
    if above(b, a) { a } else { b }
}

/// The two numbers, the greater first. Of equal ones (0 and -0) the second comes first.
fn sorted(a: f64, b: f64) -> (f64, f64) {
    if above(a, b) { (a, b) } else { (b, a) }
}

/// The box with these corners.
pub(crate) fn box_of(a: Point, b: Point) -> Corners {
    let ((right, left), (top, bottom)) = (sorted(a.x, b.x), sorted(a.y, b.y));
    [Point::at(right, top), Point::at(left, bottom)]
}

/// The smallest box around points.
pub fn around(points: &[Point]) -> Corners {
    let first = points.first().copied().unwrap_or(Point::at(0.0, 0.0));
    let further = |known: f64, new: f64| if above(new, known) { new } else { known };
    let nearer = |known: f64, new: f64| if above(known, new) { new } else { known };
    points.iter().fold([first, first], |[high, low], p| {
        [
            Point::at(further(high.x, p.x), further(high.y, p.y)),
            Point::at(nearer(low.x, p.x), nearer(low.y, p.y)),
        ]
    })
}

/// Whether two boxes have a point in common.
pub fn boxes_overlap([ah, al]: Corners, [bh, bl]: Corners) -> bool {
    at_most(al.x, bh.x) && at_most(bl.x, ah.x) && at_most(al.y, bh.y) && at_most(bl.y, ah.y)
}

/// Whether the second box lies in the first.
pub fn box_contains([ah, al]: Corners, [bh, bl]: Corners) -> bool {
    at_most(bh.x, ah.x) && at_most(al.x, bl.x) && at_most(bh.y, ah.y) && at_most(al.y, bl.y)
}

/// Whether a point lies in a box.
pub fn box_has([high, low]: Corners, p: Point) -> bool {
    high.x >= p.x && low.x <= p.x && high.y >= p.y && low.y <= p.y
}

/// The sides of a box.
fn sides([high, low]: Corners) -> [Segment; 4] {
    let (left, right) = (Point::at(low.x, high.y), Point::at(high.x, low.y));
    [[low, left], [high, left], [low, right], [high, right]]
}

/// Width and height.
///
/// # Errors
/// 22003.
pub fn extent([high, low]: Corners) -> SqlResult<(f64, f64)> {
    Ok((minus(high.x, low.x)?, minus(high.y, low.y)?))
}

/// Whether a segment has a point in a box.
///
/// # Errors
/// 22003.
pub fn box_meets(corners: Corners, segment: Segment) -> SqlResult<bool> {
    let [a, b] = segment;
    if !boxes_overlap(box_of(a, b), corners) {
        return Ok(false);
    }
    if box_has(corners, a) || box_has(corners, b) {
        return Ok(true);
    }
    any_meet(&[segment], &sides(corners))
}

/// Whether a line has a point in a box.
///
/// # Errors
/// 22003.
pub fn box_meets_line(corners: Corners, line: Line) -> SqlResult<bool> {
    for side in sides(corners) {
        if segment_meets_line(side, line)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The first of the least distances, with its point.
fn least_of(
    sides: [Segment; 4],
    from: impl Fn(Segment) -> SqlResult<(f64, Point)>,
) -> SqlResult<(f64, Point)> {
    let mut nearest = from(sides[0])?;
    for side in &sides[1..] {
        let candidate = from(*side)?;
        if nearer(candidate.0, nearest.0) {
            nearest = candidate;
        }
    }
    Ok(nearest)
}

/// How far a point lies from a box, and which point of the box is next to it.
///
/// # Errors
/// 22003.
pub fn box_to_point(corners: Corners, point: Point) -> SqlResult<(f64, Point)> {
    if box_has(corners, point) {
        return Ok((0.0, point));
    }
    least_of(sides(corners), |side| segment_to_point(side, point))
}

/// How far a segment lies from a box, and which point of the box is next to it: of a segment that
/// goes through the box, the one next to the middle.
///
/// # Errors
/// 22003.
pub fn box_to_segment(corners: Corners, segment: Segment) -> SqlResult<(f64, Point)> {
    if box_meets(corners, segment)? {
        let middle = corners[0].middle(corners[1])?;
        return Ok((0.0, segment_to_point(segment, middle)?.1));
    }
    least_of(sides(corners), |side| segment_to_segment(side, segment))
}

/// Whether one of these segments meets one of those.
///
/// # Errors
/// 22003.
pub fn any_meet(these: &[Segment], those: &[Segment]) -> SqlResult<bool> {
    for one in these {
        for two in those {
            if segments_meet(*one, *two)?.is_some() {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// The segments of a path: of a closed one the first goes from the last point to the first.
pub fn segments_of(points: &[Point], closed: bool) -> Vec<Segment> {
    let back = points.last().zip(points.first()).filter(|_| closed).map(|(a, b)| [*a, *b]);
    back.into_iter().chain(points.windows(2).map(|pair| [pair[0], pair[1]])).collect()
}

/// The area in a closed path.
///
/// # Errors
/// 22003.
pub fn enclosed(points: &[Point]) -> SqlResult<f64> {
    let mut area = 0.0;
    for (at, p) in points.iter().enumerate() {
        let next = points[(at + 1) % points.len()];
        area = plus(area, times(p.x, next.y)?)?;
        area = minus(area, times(p.y, next.x)?)?;
    }
    over(area.abs(), 2.0)
}

/// The middle of points.
///
/// # Errors
/// 22003.
pub fn centre(points: &[Point]) -> SqlResult<Point> {
    let mut sum = Point::at(0.0, 0.0);
    for p in points {
        sum = sum.moved(*p)?;
    }
    let count = points.len() as f64;
    Ok(Point::at(over(sum.x, count)?, over(sum.y, count)?))
}

/// What crosses the half-line that goes right from (0, 0), in halves and with the sign of its
/// direction; `None` if the side has (0, 0).
fn crossing(at: Point, before: Point) -> SqlResult<Option<i32>> {
    let above = |n: f64| less(0.0, n);
    let below = |n: f64| less(n, 0.0);
    if zero(at.y) {
        return Ok(match (zero(at.x), above(at.x), zero(before.y)) {
            (true, ..) => None,
            (_, true, true) => above(before.x).then_some(0),
            (_, true, false) => Some(if below(before.y) { 1 } else { -1 }),
            (_, false, true) => below(before.x).then_some(0),
            (_, false, false) => Some(0),
        });
    }
    let sign = if above(at.y) { 1 } else { -1 };
    if zero(before.y) {
        return Ok(Some(if below(before.x) { 0 } else { sign }));
    }
    if (sign < 0 && below(before.y)) || (sign > 0 && above(before.y)) {
        return Ok(Some(0));
    }
    if at_most(0.0, at.x) && above(before.x) {
        return Ok(Some(2 * sign));
    }
    if below(at.x) && at_most(before.x, 0.0) {
        return Ok(Some(0));
    }
    let turn = minus(times(minus(at.x, before.x)?, at.y)?, times(minus(at.y, before.y)?, at.x)?)?;
    Ok(match turn {
        z if zero(z) => None,
        z if (sign < 0 && below(z)) || (sign > 0 && above(z)) => Some(0),
        _ => Some(2 * sign),
    })
}

/// Whether a point lies in a polygon, or on its border.
///
/// # Errors
/// 22003.
pub fn has(polygon: &[Point], point: Point) -> SqlResult<bool> {
    let Some(first) = polygon.first() else { return Ok(false) };
    let first = first.moved_back(point)?;
    let (mut before, mut total) = (first, 0);
    for p in &polygon[1..] {
        let at = p.moved_back(point)?;
        let Some(halves) = crossing(at, before)? else { return Ok(true) };
        (before, total) = (at, total + halves);
    }
    Ok(crossing(first, before)?.is_none_or(|halves| total + halves != 0))
}

/// Whether a point lies on an open path.
///
/// # Errors
/// 22003.
pub fn on_path(points: &[Point], point: Point) -> SqlResult<bool> {
    for side in segments_of(points, false) {
        if on_segment(side, point)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether two polygons have a point in common.
///
/// # Errors
/// 22003.
pub fn polygons_overlap(a: &[Point], b: &[Point]) -> SqlResult<bool> {
    if !boxes_overlap(around(a), around(b)) {
        return Ok(false);
    }
    Ok(any_meet(&segments_of(a, true), &segments_of(b, true))? || has(b, a[0])? || has(a, b[0])?)
}

/// Whether the second polygon lies in the first.
///
/// # Errors
/// 22003.
pub fn polygon_contains(outer: &[Point], inner: &[Point]) -> SqlResult<bool> {
    if !box_contains(around(outer), around(inner)) {
        return Ok(false);
    }
    for side in segments_of(inner, true) {
        if !segment_inside(side, outer, 0)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether a segment lies in a polygon of which the sides before one are known not to matter.
fn segment_inside(segment: Segment, polygon: &[Point], from: usize) -> SqlResult<bool> {
    let [a, b] = segment;
    let count = polygon.len();
    let mut before = polygon[if from == 0 { count - 1 } else { from - 1 }];
    let mut crossed = false;
    for at in from..count {
        let side = [before, polygon[at]];
        let inside = if on_segment(side, a)? {
            if on_segment(side, b)? {
                return Ok(true);
            }
            touching_inside([a, b], side, polygon, at + 1)?
        } else if on_segment(side, b)? {
            touching_inside([b, a], side, polygon, at + 1)?
        } else if let Some(cut) = segments_meet(segment, side)? {
            crossed = true;
            segment_inside([a, cut], polygon, at + 1)? && segment_inside([b, cut], polygon, at + 1)?
        } else {
            true
        };
        if !inside {
            return Ok(false);
        }
        before = polygon[at];
    }
    // Without a crossing the whole segment lies where its middle lies.
    if crossed { Ok(true) } else { has(polygon, a.middle(b)?) }
}

/// As [`segment_inside`], of a segment whose first end is on a side: the rest of it from where it
/// leaves the side.
fn touching_inside(
    [a, b]: Segment,
    side: Segment,
    polygon: &[Point],
    from: usize,
) -> SqlResult<bool> {
    let [first, last] = side;
    let ends = match (a.is(first), a.is(last)) {
        (true, _) => vec![last],
        (false, true) => vec![first],
        (false, false) => vec![first, last],
    };
    for end in ends {
        if on_segment([a, b], end)? {
            return segment_inside([b, end], polygon, from);
        }
    }
    Ok(true)
}

/// Whether two polygons have the same points in the same order, from any of them on and in any
/// direction.
pub fn same_polygons(a: &[Point], b: &[Point]) -> bool {
    let count = a.len();
    let matches = |place: &dyn Fn(usize) -> usize| (0..count).all(|at| b[place(at)].is(a[at]));
    count == b.len()
        && (0..count).any(|start| {
            matches(&|at| (start + at) % count) || matches(&|at| (start + count - at) % count)
        })
}

/// Whether two circles are the same.
pub fn same_circles((a, r): (Point, f64), (b, s): (Point, f64)) -> bool {
    ((r.is_nan() && s.is_nan()) || same(r, s)) && a.is(b)
}
