//! Where shapes lie: how far apart, in one another, beside, above, across.

use braid_types::geometry::areas::{
    any_meet, box_contains, box_has, box_meets, box_meets_line, boxes_overlap, greatest, has,
    least, on_path, polygon_contains, polygons_overlap, segments_of,
};
use braid_types::geometry::distance;
use braid_types::geometry::plane::{at_most, less, minus, plus, same, zero};
use braid_types::geometry::segments::{
    Segment, lines_meet, on_segment, segment_meets_line, segments_meet, slope, standing_slope,
    stands_on,
};
use braid_types::{Datum, Geometry, Point, SqlResult};

use super::arguments::{circle, corners, ends, is_closed, line, made, point, shape, truth};
use crate::registry::Table;

/// Adds the functions of this file.
pub(in crate::functions) fn fill(t: &mut Table) {
    distances(t);
    inside(t);
    overlaps(t);
    beside_points(t);
    beside_boxes(t);
    beside_polygons(t);
    beside_circles(t);
    horizontal(t);
    vertical(t);
    meetings(t);
}

fn apart(a: &Datum, b: &Datum) -> SqlResult<Datum> {
    let found = match distance::between(shape(a), shape(b))? {
        None => distance::between(shape(b), shape(a))?,
        found => found,
    };
    Ok(found.map_or(Datum::Null, Datum::Float8))
}

fn distances(t: &mut Table) {
    t.add("<->(point, point) float8 -- how far two shapes lie apart", |a, _| apart(&a[0], &a[1]));
    for signature in [
        "<->(point, line) float8",
        "<->(line, point) float8",
        "<->(point, lseg) float8",
        "<->(lseg, point) float8",
        "<->(point, box) float8",
        "<->(box, point) float8",
        "<->(point, path) float8",
        "<->(path, point) float8",
        "<->(point, polygon) float8",
        "<->(polygon, point) float8",
        "<->(point, circle) float8",
        "<->(circle, point) float8",
        "<->(line, line) float8",
        "<->(lseg, line) float8",
        "<->(line, lseg) float8",
        "<->(lseg, lseg) float8",
        "<->(lseg, box) float8",
        "<->(box, lseg) float8",
        "<->(box, box) float8",
        "<->(path, path) float8",
        "<->(circle, circle) float8",
        "<->(polygon, polygon) float8",
        "<->(circle, polygon) float8",
        "<->(polygon, circle) float8",
    ] {
        t.add(signature, |a, _| apart(&a[0], &a[1]));
    }
}

/// Whether the second shape lies in the first.
fn contains(outer: &Datum, inner: &Datum) -> SqlResult<Datum> {
    use Geometry as G;
    truth(match (shape(outer), shape(inner)) {
        (G::Box(corners), G::Point(p)) => box_has(*corners, *p),
        (G::Box(corners), G::Box(inner)) => box_contains(*corners, *inner),
        (G::Box(corners), G::Lseg([a, b])) => box_has(*corners, *a) && box_has(*corners, *b),
        (G::Line([a, b, c]), G::Point(p)) => zero(plus(plus(a * p.x, b * p.y)?, *c)?),
        (G::Line(line), G::Lseg([p, q])) => {
            let on = |p: &Point| Ok(zero(plus(plus(line[0] * p.x, line[1] * p.y)?, line[2])?));
            on(p)? && on(q)?
        }
        (G::Lseg(ends), G::Point(p)) => on_segment(*ends, *p)?,
        (G::Path { closed: false, points }, G::Point(p)) => on_path(points, *p)?,
        (G::Path { points, .. } | G::Polygon(points), G::Point(p)) => has(points, *p)?,
        (G::Polygon(points), G::Polygon(inner)) => polygon_contains(points, inner)?,
        (G::Circle { center, radius }, G::Point(p)) => center.to(*p)? <= *radius,
        (G::Circle { center, radius }, G::Circle { center: other, radius: less }) => {
            at_most(center.to(*other)?, minus(*radius, *less)?)
        }
        _ => false,
    })
}

fn inside(t: &mut Table) {
    for signature in [
        "@>(box, box) bool",
        "@>(box, point) bool",
        "@>(path, point) bool",
        "@>(polygon, point) bool",
        "@>(polygon, polygon) bool",
        "@>(circle, point) bool",
        "@>(circle, circle) bool",
    ] {
        t.add(signature, |a, _| contains(&a[0], &a[1]));
    }
    for signature in [
        "<@(box, box) bool",
        "<@(point, box) bool",
        "<@(lseg, box) bool",
        "<@(point, line) bool",
        "<@(lseg, line) bool",
        "<@(point, lseg) bool",
        "<@(point, path) bool",
        "<@(point, polygon) bool",
        "<@(polygon, polygon) bool",
        "<@(point, circle) bool",
        "<@(circle, circle) bool",
    ] {
        t.add(signature, |a, _| contains(&a[1], &a[0]));
    }
}

fn overlaps(t: &mut Table) {
    t.add("&&(box, box) bool", |a, _| truth(boxes_overlap(corners(&a[0]), corners(&a[1]))));
    t.add("&&(polygon, polygon) bool", |a, _| {
        truth(polygons_overlap(shape(&a[0]).points(), shape(&a[1]).points())?)
    });
    t.add("&&(circle, circle) bool", |a, _| {
        let ((c, r), (d, s)) = (circle(&a[0]), circle(&a[1]));
        truth(at_most(c.to(d)?, plus(r, s)?))
    });
}

/// From where to where a shape reaches to the right, or up.
type Extent = fn(&Datum) -> SqlResult<(f64, f64)>;

fn x_of_box(value: &Datum) -> SqlResult<(f64, f64)> {
    let [high, low] = corners(value);
    Ok((low.x, high.x))
}

fn y_of_box(value: &Datum) -> SqlResult<(f64, f64)> {
    let [high, low] = corners(value);
    Ok((low.y, high.y))
}

fn x_of_circle(value: &Datum) -> SqlResult<(f64, f64)> {
    let (center, radius) = circle(value);
    Ok((minus(center.x, radius)?, plus(center.x, radius)?))
}

fn y_of_circle(value: &Datum) -> SqlResult<(f64, f64)> {
    let (center, radius) = circle(value);
    Ok((minus(center.y, radius)?, plus(center.y, radius)?))
}

/// How two shapes lie beside each other, from the extents of both.
type Side = fn((f64, f64), (f64, f64)) -> bool;

const BEFORE: Side = |a, b| less(a.1, b.0);
const NOT_BEYOND: Side = |a, b| at_most(a.1, b.1);
const NOT_BEFORE: Side = |a, b| at_most(b.0, a.0);
const BEYOND: Side = |a, b| less(b.1, a.0);

fn side(a: &[Datum], extent: Extent, side: Side) -> SqlResult<Datum> {
    truth(side(extent(&a[0])?, extent(&a[1])?))
}

fn beside_points(t: &mut Table) {
    t.add("<<(point, point) bool", |a, _| truth(less(point(&a[0]).x, point(&a[1]).x)));
    t.add(">>(point, point) bool", |a, _| truth(less(point(&a[1]).x, point(&a[0]).x)));
    t.add("<<|(point, point) bool -- whether a shape lies below another", |a, _| below(a));
    t.add("|>>(point, point) bool -- whether a shape lies above another", |a, _| above(a));
    t.add("<^(point, point) bool -- whether a shape lies below another", |a, _| below(a));
    t.add(">^(point, point) bool -- whether a shape lies above another", |a, _| above(a));
    t.add("<^(box, box) bool", |a, _| side(a, y_of_box, |a, b| at_most(a.1, b.0)));
    t.add(">^(box, box) bool", |a, _| side(a, y_of_box, |a, b| at_most(b.1, a.0)));
}

fn below(a: &[Datum]) -> SqlResult<Datum> {
    truth(less(point(&a[0]).y, point(&a[1]).y))
}

fn above(a: &[Datum]) -> SqlResult<Datum> {
    truth(less(point(&a[1]).y, point(&a[0]).y))
}

fn beside_boxes(t: &mut Table) {
    t.add("<<(box, box) bool", |a, _| side(a, x_of_box, BEFORE));
    t.add("&<(box, box) bool", |a, _| side(a, x_of_box, NOT_BEYOND));
    t.add("&>(box, box) bool", |a, _| side(a, x_of_box, NOT_BEFORE));
    t.add(">>(box, box) bool", |a, _| side(a, x_of_box, BEYOND));
    t.add("<<|(box, box) bool", |a, _| side(a, y_of_box, BEFORE));
    t.add("&<|(box, box) bool -- whether a shape does not reach above another", |a, _| {
        side(a, y_of_box, NOT_BEYOND)
    });
    t.add("|&>(box, box) bool -- whether a shape does not reach below another", |a, _| {
        side(a, y_of_box, NOT_BEFORE)
    });
    t.add("|>>(box, box) bool", |a, _| side(a, y_of_box, BEYOND));
}

// Polygons are compared to the last digit.
const EXACTLY_BEFORE: Side = |a, b| a.1 < b.0;
const EXACTLY_NOT_BEYOND: Side = |a, b| a.1 <= b.1;
const EXACTLY_NOT_BEFORE: Side = |a, b| a.0 >= b.0;
const EXACTLY_BEYOND: Side = |a, b| a.0 > b.1;

fn beside_polygons(t: &mut Table) {
    t.add("<<(polygon, polygon) bool", |a, _| side(a, x_of_box, EXACTLY_BEFORE));
    t.add("&<(polygon, polygon) bool", |a, _| side(a, x_of_box, EXACTLY_NOT_BEYOND));
    t.add("&>(polygon, polygon) bool", |a, _| side(a, x_of_box, EXACTLY_NOT_BEFORE));
    t.add(">>(polygon, polygon) bool", |a, _| side(a, x_of_box, EXACTLY_BEYOND));
    t.add("<<|(polygon, polygon) bool", |a, _| side(a, y_of_box, EXACTLY_BEFORE));
    t.add("&<|(polygon, polygon) bool", |a, _| side(a, y_of_box, EXACTLY_NOT_BEYOND));
    t.add("|&>(polygon, polygon) bool", |a, _| side(a, y_of_box, EXACTLY_NOT_BEFORE));
    t.add("|>>(polygon, polygon) bool", |a, _| side(a, y_of_box, EXACTLY_BEYOND));
}

fn beside_circles(t: &mut Table) {
    t.add("<<(circle, circle) bool", |a, _| side(a, x_of_circle, BEFORE));
    t.add("&<(circle, circle) bool", |a, _| side(a, x_of_circle, NOT_BEYOND));
    t.add("&>(circle, circle) bool", |a, _| side(a, x_of_circle, NOT_BEFORE));
    t.add(">>(circle, circle) bool", |a, _| side(a, x_of_circle, BEYOND));
    t.add("<<|(circle, circle) bool", |a, _| side(a, y_of_circle, BEFORE));
    t.add("&<|(circle, circle) bool", |a, _| side(a, y_of_circle, NOT_BEYOND));
    t.add("|&>(circle, circle) bool", |a, _| side(a, y_of_circle, NOT_BEFORE));
    t.add("|>>(circle, circle) bool", |a, _| side(a, y_of_circle, BEYOND));
}

fn horizontal(t: &mut Table) {
    t.add("?-(point, point) bool -- whether two points lie on one level", |a, _| {
        truth(same(point(&a[0]).y, point(&a[1]).y))
    });
    t.add("?-(lseg) bool", |a, _| {
        let [p, q] = ends(&a[0]);
        truth(same(p.y, q.y))
    });
    t.add("?-(line) bool", |a, _| truth(zero(line(&a[0])[0])));
}

fn vertical(t: &mut Table) {
    t.add("?|(point, point) bool", |a, _| truth(same(point(&a[0]).x, point(&a[1]).x)));
    t.add("?|(lseg) bool", |a, _| {
        let [p, q] = ends(&a[0]);
        truth(same(p.x, q.x))
    });
    t.add("?|(line) bool", |a, _| truth(zero(line(&a[0])[1])));
    t.add("?||(lseg, lseg) bool -- whether two lines are parallel", |a, _| {
        truth(same(slope(ends(&a[0]))?, slope(ends(&a[1]))?))
    });
    t.add("?||(line, line) bool", |a, _| truth(lines_meet(line(&a[0]), line(&a[1]))?.is_none()));
    t.add("?-|(lseg, lseg) bool -- whether one line stands on another", |a, _| {
        truth(same(slope(ends(&a[0]))?, standing_slope(ends(&a[1]))?))
    });
    t.add("?-|(line, line) bool", |a, _| truth(stands_on(line(&a[0]), line(&a[1]))?));
}

fn segments(path: &Datum) -> Vec<Segment> {
    segments_of(shape(path).points(), is_closed(path))
}

fn common(found: Option<Point>) -> SqlResult<Datum> {
    found.map_or(Ok(Datum::Null), |p| made(Geometry::Point(p)))
}

fn meetings(t: &mut Table) {
    t.add("?#(box, box) bool -- whether two shapes have a point in common", |a, _| {
        truth(boxes_overlap(corners(&a[0]), corners(&a[1])))
    });
    t.add("?#(line, line) bool", |a, _| truth(lines_meet(line(&a[0]), line(&a[1]))?.is_some()));
    t.add("?#(lseg, line) bool", |a, _| {
        truth(segment_meets_line(ends(&a[0]), line(&a[1]))?.is_some())
    });
    t.add("?#(lseg, lseg) bool", |a, _| truth(segments_meet(ends(&a[0]), ends(&a[1]))?.is_some()));
    t.add("?#(lseg, box) bool", |a, _| truth(box_meets(corners(&a[1]), ends(&a[0]))?));
    t.add("?#(line, box) bool", |a, _| truth(box_meets_line(corners(&a[1]), line(&a[0]))?));
    t.add("?#(path, path) bool", |a, _| {
        let near = boxes_overlap(corners(&a[0]), corners(&a[1]));
        truth(near && any_meet(&segments(&a[0]), &segments(&a[1]))?)
    });
    t.add("#(line, line) point", |a, _| common(lines_meet(line(&a[0]), line(&a[1]))?));
    t.add("#(lseg, lseg) point", |a, _| common(segments_meet(ends(&a[0]), ends(&a[1]))?));
    t.add("#(box, box) box", |a, _| {
        let ([ah, al], [bh, bl]) = (corners(&a[0]), corners(&a[1]));
        if !boxes_overlap([ah, al], [bh, bl]) {
            return Ok(Datum::Null);
        }
        let high = Point::at(least(ah.x, bh.x), least(ah.y, bh.y));
        made(Geometry::Box([high, Point::at(greatest(al.x, bl.x), greatest(al.y, bl.y))]))
    });
}
