//! How far shapes lie apart.

use super::areas::{box_to_point, box_to_segment, has, polygons_overlap, segments_of};
use super::plane::{Point, minus, nearer, plus};
use super::segments::{
    Segment, line_to_line, line_to_point, segment_to_line, segment_to_point, segment_to_segment,
};
use super::value::Geometry;
use crate::SqlResult;

/// The distance of two shapes; `None` for two that PostgreSQL measures no distance between, as are
/// paths without segments.
///
/// # Errors
/// 22003.
pub fn between(a: &Geometry, b: &Geometry) -> SqlResult<Option<f64>> {
    use Geometry as G;
    Ok(Some(match (a, b) {
        (G::Point(p), G::Point(q)) => p.to(*q)?,
        (G::Point(p), G::Line(line)) => line_to_point(*line, *p)?,
        (G::Point(p), G::Lseg(ends)) => segment_to_point(*ends, *p)?.0,
        (G::Point(p), G::Box(corners)) => box_to_point(*corners, *p)?.0,
        (G::Point(p), G::Path { closed, points }) => to_point(&segments_of(points, *closed), *p)?,
        (G::Point(p), G::Polygon(points)) => polygon_to_point(points, *p)?,
        (G::Point(p), G::Circle { center, radius }) => outside(minus(p.to(*center)?, *radius)?),
        (G::Line(one), G::Line(two)) => line_to_line(*one, *two)?,
        (G::Lseg(ends), G::Line(line)) => segment_to_line(*ends, *line)?.0,
        (G::Lseg(one), G::Lseg(two)) => segment_to_segment(*one, *two)?.0,
        (G::Lseg(ends), G::Box(corners)) => box_to_segment(*corners, *ends)?.0,
        (G::Box([ah, al]), G::Box([bh, bl])) => ah.middle(*al)?.to(bh.middle(*bl)?)?,
        (G::Path { closed, points }, G::Path { closed: other, points: others }) => {
            return apart(&segments_of(points, *closed), &segments_of(others, *other));
        }
        (G::Polygon(points), G::Polygon(others)) if polygons_overlap(points, others)? => 0.0,
        (G::Polygon(points), G::Polygon(others)) => {
            return apart(&segments_of(points, true), &segments_of(others, true));
        }
        (G::Circle { center, radius }, G::Circle { center: other, radius: others }) => {
            outside(minus(center.to(*other)?, plus(*radius, *others)?)?)
        }
        (G::Circle { center, radius }, G::Polygon(points)) => {
            outside(minus(polygon_to_point(points, *center)?, *radius)?)
        }
        _ => return Ok(None),
    }))
}

/// Nothing is nearer than what touches.
fn outside(distance: f64) -> f64 {
    if distance < 0.0 { 0.0 } else { distance }
}

/// The least of distances; `None` of none.
fn least(all: impl Iterator<Item = SqlResult<f64>>) -> SqlResult<Option<f64>> {
    let mut least = None;
    for distance in all {
        let distance = distance?;
        if least.is_none_or(|known| nearer(distance, known)) {
            least = Some(distance);
        }
    }
    Ok(least)
}

fn to_point(segments: &[Segment], point: Point) -> SqlResult<f64> {
    let distances = segments.iter().map(|segment| Ok(segment_to_point(*segment, point)?.0));
    Ok(least(distances)?.unwrap_or(0.0))
}

fn apart(these: &[Segment], those: &[Segment]) -> SqlResult<Option<f64>> {
    let pairs = these.iter().flat_map(|one| those.iter().map(move |two| (*one, *two)));
    least(pairs.map(|(one, two)| Ok(segment_to_segment(one, two)?.0)))
}

fn polygon_to_point(points: &[Point], point: Point) -> SqlResult<f64> {
    if has(points, point)? {
        return Ok(0.0);
    }
    let mut sides = segments_of(points, true);
    // PostgreSQL measures to the side that closes a polygon from its other end.
    if let Some([last, first]) = sides.first().copied() {
        sides[0] = [first, last];
    }
    to_point(&sides, point)
}
